// Long work as tasks: the official client package of the extension on top of the official SDK, the
// Inspector, and plain messages where a test looks at what goes over the wire.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';
import { account, dev, driverOf, jobState, owner, ready, service } from '../lib/instance.mjs'; // CC_DEV_JSON
import { request } from '../lib/client.mjs';
import { instanceRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { run, tidy, url } from './world.mjs';

const VERSION = '2026-07-28';
const TASKS = 'io.modelcontextprotocol/tasks';
const DECLARED = { extensions: { [TASKS]: {} } };
const ME = { name: 'a-client', version: '1' };
after(tidy);

let ids = 0;
const NAMED = { 'tools/call': 'name', 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' };

/** One message on a connection of its own: { status, result, error, headers }. */
async function ask(method, params, { key = dev.key, capabilities = DECLARED, headers = {}, meta = {} } = {}) {
	const body = JSON.stringify({ jsonrpc: '2.0', id: (ids += 1), method, params: { ...params, _meta: {
		'io.modelcontextprotocol/protocolVersion': VERSION,
		'io.modelcontextprotocol/clientCapabilities': capabilities, ...meta } } });
	const name = params[NAMED[method]];
	const answer = await request(url, { method: 'POST', body, headers: {
		'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body),
		Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': VERSION, 'Mcp-Method': method,
		...(typeof name === 'string' ? { 'Mcp-Name': name } : {}),
		...(key ? { Authorization: `Bearer ${key}` } : {}), ...headers } });
	if (answer.json?.error === undefined)
		assert.equal(answer.json?.result?._meta['io.modelcontextprotocol/serverInfo'].name, 'compute-connector');
	return { status: answer.status, headers: answer.headers, ...answer.json };
}

const call = (args, options) => ask('tools/call', { name: 'run_job', arguments: args }, options);
const get = (taskId, options) => ask('tasks/get', { taskId }, options);
const cancel = (taskId) => ask('tasks/cancel', { taskId });

/** A task that was just made. */
async function begun(args, options) {
	const { result, error } = await call(args, options);
	assert.equal(result?.resultType, 'task', JSON.stringify(error ?? result));
	return result;
}

const over = (taskId, options) => until('the task is over', async () => {
	const { result } = await get(taskId, options);
	return result.status !== 'working' && result;
}, 100000);

const TASK = ['_meta', 'createdAt', 'lastUpdatedAt', 'pollIntervalMs', 'resultType', 'status', 'statusMessage', 'taskId',
	'ttlMs'];
function checkTask(task, status, more = []) {
	assert.deepEqual(Object.keys(task).sort(), [...TASK, ...more].sort());
	assert.equal(task.status, status);
	assert.match(task.taskId, /^job_[a-z2-7]{26}$/);
	assert.ok(Number.isInteger(task.ttlMs) && task.ttlMs >= 3600000);
	assert.ok(Number.isInteger(task.pollIntervalMs) && task.pollIntervalMs > 0);
	for (const at of [task.createdAt, task.lastUpdatedAt]) assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
	assert.ok(task.lastUpdatedAt >= task.createdAt);
}

describe('over the wire', { concurrency: true }, () => {
	test('run_job answers with a task at once, which tasks/get finds at once', async () => {
		const task = await begun({ cmd: 'sleep 3; echo seen; echo bad >&2; exit 3', wait_s: 100 });
		checkTask(task, 'working');
		const first = await get(task.taskId);
		assert.equal(first.result.resultType, 'complete');
		checkTask(first.result, 'working');
		const end = await over(task.taskId);
		checkTask(end, 'completed', ['result']);
		assert.equal(end.statusMessage, 'failed with exit code 3');
		const { structuredContent: job, content, isError } = end.result;
		assert.deepEqual(JSON.parse(content[0].text), job);
		assert.equal(isError, undefined, 'an exit code is a result');
		assert.equal(job.job_id, task.taskId);
		assert.equal(job.stdout, 'seen\n');
		assert.equal(job.stderr, 'bad\n');
		assert.equal(job.exit_code, 3);
		assert.equal(job.sandbox, 'stopped');
	});

	test('the same job is there for get_job, and for a client that declares nothing', async () => {
		const { taskId } = await begun({ cmd: 'echo both' });
		await over(taskId);
		const { result } = await ask('tools/call', { name: 'get_job', arguments: { job_id: taskId } },
			{ capabilities: {} });
		assert.equal(result.resultType, 'complete');
		assert.equal(result.structuredContent.stdout, 'both\n');
	});

	test('a client that does not declare tasks gets the result itself', async () => {
		for (const capabilities of [{}, { extensions: {} }, { extensions: { [TASKS]: true } }, { [TASKS]: {} }]) {
			const { result } = await call({ cmd: 'echo inline' }, { capabilities });
			assert.equal(result.resultType, 'complete');
			assert.equal(result.structuredContent.stdout, 'inline\n');
		}
	});

	test('a progress token makes no stream of a task', async () => {
		const { result } = await call({ cmd: 'true' }, { meta: { progressToken: 1 } });
		assert.equal(result.resultType, 'task');
	});

	test('no other tool becomes a task', async () => {
		for (const [name, args] of [['check_memory', { free_mb: 9000 }], ['list_jobs', {}], ['usage_and_upgrade', {}]]) {
			const { result } = await ask('tools/call', { name, arguments: args });
			assert.equal(result.resultType, 'complete', name);
			assert.ok(result.structuredContent, name);
		}
	});

	test('refused arguments are a result, not a task', async () => {
		for (const [args, code] of [[{}, 'bad_input'], [{ cmd: 'x', timeout_s: 0 }, 'bad_input'],
			[{ cmd: 'x', provider: 'nowhere' }, 'unknown_provider'], [{ cmd: 'x', key: 'none' }, 'key_not_found']]) {
			const { result } = await call(args);
			assert.equal(result.resultType, 'complete');
			assert.equal(result.isError, true);
			assert.match(result.content[0].text, new RegExp(code));
		}
	});

	test('a plan that only watches answers at once', async () => {
		const free = await account('free');
		const { result } = await call({ cmd: 'true' }, { key: free.key });
		assert.equal(result.resultType, 'complete');
		assert.equal(result.structuredContent.state, 'watch_only');
	});

	test('without a key run_job says what it needs', async () => {
		const { status, result } = await call({ cmd: 'true' }, { key: null });
		assert.equal(status, 200);
		assert.match(result.content[0].text, /token_needed/);
	});

	test('the same idempotency key is the same task, and after its end the result', async () => {
		const args = { cmd: 'sleep 2; date +%N', idempotency_key: `task-${process.pid}` };
		const [a, b] = [await begun(args), await begun(args)];
		assert.equal(a.taskId, b.taskId);
		const end = await over(a.taskId);
		const { result } = await call(args);
		assert.equal(result.resultType, 'complete');
		assert.equal(result.structuredContent.stdout, end.result.structuredContent.stdout);
		const { result: other } = await call({ ...args, cmd: 'true' });
		assert.match(other.content[0].text, /idempotency_conflict/);
	});

	test('cancelled means cancelled, twice is like once, and the sandbox is gone', async () => {
		const { taskId } = await begun({ cmd: 'sleep 500' });
		await until('it runs', async () => await jobState(taskId) === 'running');
		for (let i = 0; i < 2; i++) {
			const { status, result } = await cancel(taskId);
			assert.equal(status, 200);
			assert.deepEqual(Object.keys(result).sort(), ['_meta', 'resultType']);
		}
		const end = await over(taskId);
		checkTask(end, 'cancelled');
		const job = await owner().get(taskId);
		assert.equal(job.outcome, 'cancelled');
		assert.equal(job.sandbox, 'stopped');
		await cancel(taskId);
		assert.equal((await get(taskId)).result.status, 'cancelled');
	});

	test('a task that was completed stays so when it is cancelled', async () => {
		const { taskId } = await begun({ cmd: 'true' });
		await over(taskId);
		assert.equal((await cancel(taskId)).status, 200);
		assert.equal((await get(taskId)).result.status, 'completed');
	});

	test('a time-out is a result', async () => {
		const { taskId } = await begun({ cmd: 'sleep 100', timeout_s: 1 });
		const end = await over(taskId);
		assert.equal(end.status, 'completed');
		assert.equal(end.result.structuredContent.outcome, 'timed_out');
		assert.equal(end.statusMessage.startsWith('timed_out'), true);
	});

	test('a provider that can not be reached is a completed task with isError', async () => {
		const away = await account('pro');
		await away.rest('save_provider_key', { provider: 'tunnel', name: 'away', token: 'x'.repeat(43),
			bridge_url: instanceRunner().url, skip_check: true });
		const { taskId } = await begun({ cmd: 'true' }, { key: away.key });
		const end = await over(taskId, { key: away.key });
		assert.equal(end.status, 'completed');
		assert.equal(end.result.isError, true);
		assert.equal(end.result.structuredContent.outcome, 'provider_error');
	});

	test('bytes that are no text come as base64, too', async () => {
		const { taskId } = await begun({ cmd: "printf '\\377\\000x'" });
		const { result: { structuredContent: job } } = await over(taskId);
		assert.equal(job.invalid_utf8_replaced, true);
		assert.deepEqual([...Buffer.from(job.stdout_base64, 'base64')], [255, 0, 120]);
		const plain = await begun({ cmd: 'echo plain' });
		assert.equal((await over(plain.taskId)).result.structuredContent.stdout_base64, undefined);
	});

	test('answers that nobody asked for are taken and change nothing', async () => {
		const { taskId } = await begun({ cmd: 'true' });
		const { status, result } = await ask('tasks/update', { taskId, inputResponses: { x: { action: 'accept' } } });
		assert.equal(status, 200);
		assert.deepEqual(Object.keys(result).sort(), ['_meta', 'resultType']);
		assert.equal((await over(taskId)).status, 'completed');
	});

	test('the task of another account is unknown, to get, update and cancel', async () => {
		const { taskId } = await begun({ cmd: 'sleep 20' });
		const { key } = await account('pro');
		for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
			const { status, error } = await ask(method, { taskId, inputResponses: {} }, { key });
			assert.equal(status, 200);
			assert.equal(error.code, -32602);
			assert.equal(error.data.code, 'job_not_found');
			const { error: none } = await ask(method, { taskId, inputResponses: {} }, { key: null });
			assert.equal(none.code, -32602);
			assert.equal(none.data.code, 'token_needed');
		}
		assert.equal((await get(taskId)).result.status, 'working');
		await cancel(taskId);
	});

	test('an agent key of the account sees the end, but not the output', async () => {
		const { taskId } = await begun({ cmd: 'echo for its own key' });
		await over(taskId);
		const { json: agent } = await owner().api('POST', '/api/keys', { kind: 'agent' });
		const end = await over(taskId, { key: agent.key });
		assert.equal(end.result.structuredContent.output, 'sealed_to_other_key');
		assert.equal(end.result.structuredContent.stdout, undefined);
	});
});

describe('a task outlives', () => {
	test('the connection it was asked on', async () => {
		const { taskId } = await begun({ cmd: 'sleep 1; echo later' });
		const end = await over(taskId); // each message has a connection of its own
		assert.equal(end.result.structuredContent.stdout, 'later\n');
	});

	test('the worker that drives it', async () => {
		const { taskId } = await begun({ cmd: 'sleep 4; echo survived' });
		await until('it runs', async () => await jobState(taskId) === 'running');
		process.kill(await driverOf(taskId), 'SIGKILL');
		const end = await over(taskId);
		assert.equal(end.status, 'completed');
		assert.equal(end.result.structuredContent.stdout, 'survived\n');
	});

	test('a restart of the connector', async () => {
		const running = await begun({ cmd: 'sleep 6; echo after the restart' });
		const ended = await begun({ cmd: 'echo before it' });
		await over(ended.taskId);
		await until('it runs', async () => await jobState(running.taskId) === 'running');
		await service('restart', 'connector');
		await ready();
		assert.equal((await get(ended.taskId)).result.result.structuredContent.stdout, 'before it\n');
		assert.equal((await over(running.taskId)).result.structuredContent.stdout, 'after the restart\n');
	});
});

describe('the official client of the extension', { concurrency: true }, () => {
	let client, session;
	const framing = { protocolVersion: VERSION, clientInfo: ME, clientCapabilities: {} };
	const rawDispatch = async (message, { signal } = {}) => {
		const name = message.params?.[NAMED[message.method]];
		const reply = await fetch(url, { method: 'POST', signal, body: JSON.stringify({ jsonrpc: '2.0', id: (ids += 1), ...message }),
			headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
				'MCP-Protocol-Version': VERSION, 'Mcp-Method': message.method, ...(name ? { 'Mcp-Name': name } : {}),
				Authorization: `Bearer ${dev.key}` } });
		const { result, error } = await reply.json();
		return error ? { kind: 'error', error } : { kind: 'result', result };
	};
	before(async () => {
		client = new Client(ME, { versionNegotiation: { mode: { pin: VERSION } } });
		await client.connect(new StreamableHTTPClientTransport(new URL(url),
			{ requestInit: { headers: { Authorization: `Bearer ${dev.key}` } } }));
		session = createTaskSessionFromClient(client, { endpointId: 'ours', rawDispatch, v2RequestFraming: framing });
	});
	after(async () => {
		await session.close();
		await client.close();
	});

	test('is told of the extension', () => {
		assert.deepEqual(client.getServerCapabilities().extensions, { [TASKS]: {} });
	});

	test('runs a job to its end', async () => {
		const execution = await session.callTool('run_job', { cmd: 'sleep 2; echo through a session' });
		const { outcome } = await execution.settle();
		assert.equal(resultFromTaskOutcome(outcome).structuredContent.stdout, 'through a session\n');
	});

	test('gets an immediate result of any other tool, and errors of run_job', async () => {
		const free = await (await session.callTool('list_providers', {})).settle();
		assert.ok(resultFromTaskOutcome(free.outcome).structuredContent.providers);
		const wrong = await (await session.callTool('run_job', { cmd: 5 })).settle();
		assert.equal(resultFromTaskOutcome(wrong.outcome).isError, true);
	});
});

describe('the Inspector', () => {
	test('in the modern era drives run_job as a task', async () => {
		const { code, out, err } = await run('mcp-inspector', ['--cli', url, '--transport', 'http', '--format', 'json', '-q',
			'--protocol-era', 'modern', '--header', `Authorization: Bearer ${dev.key}`, '--stored-auth-only',
			'--method', 'tools/call', '--tool-name', 'run_job',
			'--tool-args-json', JSON.stringify({ cmd: 'sleep 3; echo inspected', wait_s: 0 })]);
		assert.equal(code, 0, out + err);
		// wait_s 0 without a task would have given a job that has not ended.
		assert.equal(JSON.parse(out).result.structuredContent.stdout, 'inspected\n');
	});
});
