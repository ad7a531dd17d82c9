// Every outcome of a job, over REST and over MCP, and what is left of it at the runner.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { idHex, jobState, mark, sql, sqlOne } from '../lib/instance.mjs';
import { bridge, instanceRunner, sandboxes, startRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded, CREATE, customer, DESTROY, EXEC, hubs, saveRunner, through, UPLOAD } from './stage.mjs';

let client, hub, fragile, runner, prefix, small;
const NOBODY = 'http://127.0.0.1:1'; // where nobody listens
const spare = () => hub.lane(runner.url);

before(async () => {
	runner = instanceRunner();
	small = await startRunner({ args: ['--max-sandboxes', '1', '--memory', '512'] });
	[hub, fragile] = await hubs(2, small.url, NOBODY);
	client = await customer();
	prefix = await mark();
});
after(async () => {
	await hub.stop();
	await fragile.stop();
	await small.stop();
});

/** The job's sandboxes as the database knows them: [state, provider_id]. */
const boxes = (job) => sql(`SELECT state, provider_id FROM sandbox WHERE job = ${idHex(job.job_id)}
	ORDER BY attempt`);

const settled = (job) => until('its sandboxes are stopped or absent', async () =>
	(await boxes(job)).every(([state]) => ['stopped', 'absent'].includes(state)), 100000);

describe('outcomes', { concurrency: 8 }, () => {
	test('exit code 0 is succeeded, over REST and MCP alike', async () => {
		const rest = assertEnded(await client.job({ cmd: 'echo out; echo err >&2' }), 'succeeded');
		const mcp = await client.mcp('run_job', { cmd: 'echo out; echo err >&2' });
		assertEnded(mcp.json, 'succeeded');
		assert.equal(mcp.isError, false);
		assert.deepEqual(JSON.parse(mcp.result.content[0].text), mcp.json);
		for (const job of [rest, mcp.json]) {
			assert.equal(job.stdout, 'out\n');
			assert.equal(job.stderr, 'err\n');
			assert.match(job.sandbox, /^stopp(ed|ing)$/);
			assert.equal(job.output, 'inline');
			await settled(job);
			assert.equal((await client.get(job.job_id)).sandbox, 'stopped');
			assert.equal(job.oom_suspected, false);
			assert.equal(job.attempts.length, 1);
			assert.ok(job.timings.own_ms >= 0 && job.timings.round_trips > 0);
		}
		assert.deepEqual(Object.keys(rest).sort(), Object.keys(mcp.json).sort());
	});

	test('another exit code is failed, which is a result and no MCP error', async () => {
		const mcp = await client.mcp('run_job', { cmd: 'exit 7' });
		assert.equal(assertEnded(mcp.json, 'failed').exit_code, 7);
		assert.equal(mcp.isError, false);
		assert.equal(assertEnded(await client.job({ cmd: 'exit 255' }), 'failed').exit_code, 255);
	});

	test('a command that outlives its time is timed_out, and TERM is enough', async () => {
		const job = assertEnded(await client.job({ cmd: 'echo begun; sleep 100', timeout_s: 3 }),
			'timed_out');
		assert.equal(job.stdout, 'begun\n');
		assert.equal(job.oom_suspected, false);
	});

	test('a command that ignores TERM is killed 5 seconds later and timed_out', async () => {
		const cmd = 'trap "echo no" TERM; echo begun; while :; do sleep 1; done';
		const mcp = await client.mcp('run_job', { cmd, timeout_s: 3 });
		assertEnded(mcp.json, 'timed_out');
		assert.equal(mcp.isError, false);
		assert.match(mcp.json.stdout, /^begun\nno\n/);
		await settled(mcp.json);
	});

	test('a command that answers TERM with exit 0 was still timed out', async () => {
		const cmd = 'trap "exit 0" TERM; while :; do sleep 0.1; done';
		assertEnded(await client.job({ cmd, timeout_s: 3 }), 'timed_out');
	});

	test('cancelled while it runs: over REST and MCP', async () => {
		for (const way of ['rest', 'mcp']) {
			const job = await client.job({ cmd: 'echo begun; sleep 300', wait_s: 0, timeout_s: 400 });
			await until('it runs', async () => (await client.get(job.job_id, { wait_s: 0 })).stdout);
			const reply = await client[way]('cancel_job', { job_id: job.job_id });
			const done = assertEnded(reply.json, 'cancelled');
			assert.equal(done.stdout, 'begun\n');
			await settled(job);
			assert.ok(!reply.isError);
		}
	});

	test('cancelled while its sandbox is created: the command never begins', async () => {
		const lane = spare();
		const key = await through(client, lane, 'held-create');
		const rule = lane.rule(CREATE, 'hold-reply', { times: 1 });
		const job = await client.job({ cmd: 'touch /tmp/began', key, wait_s: 0 });
		await rule.seen;
		const cancel = await client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		assert.equal(cancel.status, 200);
		assert.equal(cancel.json.state, 'creating');
		rule.release();
		const done = assertEnded(await client.get(job.job_id), 'cancelled');
		assert.equal(done.started_at, undefined);
		assert.equal(lane.requests.filter((r) => /exec$/.test(r)).length, 0, lane.requests.join());
		await settled(job);
	});

	test('cancelled while its files are sent: the command never begins', async () => {
		const lane = spare();
		const key = await through(client, lane, 'held-upload');
		const rule = lane.rule(UPLOAD, 'hold', { times: 1 });
		const job = await client.job({ cmd: 'sleep 100', key, wait_s: 0 });
		await rule.seen;
		await client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		rule.release();
		const done = assertEnded(await client.get(job.job_id), 'cancelled');
		assert.equal(done.started_at, undefined);
		await settled(job);
	});

	test('cancelled while it is started: it is killed at once', async () => {
		const lane = spare();
		const key = await through(client, lane, 'held-start');
		const rule = lane.rule(EXEC, 'hold-reply', { times: 1 });
		const job = await client.job({ cmd: 'sleep 100', key, wait_s: 0 });
		await rule.seen;
		await client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		rule.release();
		const done = assertEnded(await client.get(job.job_id), 'cancelled');
		assert.ok(done.timings.run_ms < 20000, 'not only when a poll was over');
		await settled(job);
	});

	test('a job that has ended keeps its outcome when it is cancelled', async () => {
		const job = await client.job({ cmd: 'exit 3' });
		const reply = await client.rest('cancel_job', { job_id: job.job_id });
		assert.equal(assertEnded(reply.json, 'failed').exit_code, 3);
	});

	test('a working directory that does not exist is not_started and names cwd', async () => {
		for (const way of ['rest', 'mcp']) {
			const reply = await client[way]('run_job', { cmd: 'true', cwd: 'no/such' });
			assert.equal(reply.status, 200);
			const job = assertEnded(reply.json, 'not_started');
			assert.equal(job.error.code, 'bad_input');
			assert.match(job.error.detail, /folder/);
			assert.equal(job.started_at, undefined);
			await settled(job);
			if (way === 'mcp') assert.equal(reply.isError, true);
		}
	});

	test('the idempotency key of a job that did not start is free again', async () => {
		const args = { cmd: 'true', cwd: 'later', idempotency_key: 'free-again' };
		const first = assertEnded(await client.job(args), 'not_started');
		const second = await client.job({ cmd: 'echo now', idempotency_key: 'free-again' });
		assertEnded(second, 'succeeded');
		assert.notEqual(first.job_id, second.job_id);
	});

	test('a runner that is not there is provider_error without a sandbox', async () => {
		await saveRunner(client, 'down', { url: NOBODY, token: 'x' }, { skip_check: true });
		for (const way of ['rest', 'mcp']) {
			const reply = await client[way]('run_job', { cmd: 'true', key: 'down' });
			assert.equal(reply.status, 200);
			const job = assertEnded(reply.json, 'provider_error');
			assert.equal(job.error.code, 'upstream_error');
			assert.equal(job.sandbox, 'none');
			assert.equal(job.attempts[0].sandbox, 'absent');
			if (way === 'mcp') assert.equal(reply.isError, true);
		}
	});

	test('a runner without capacity is provider_error and says so', async () => {
		await saveRunner(client, 'small', small);
		const first = await client.job({ cmd: 'sleep 240', key: 'small', wait_s: 0 });
		await until('it has its sandbox', async () => (await sandboxes(small)).length === 1);
		// It waits as long as the runner asks for, within its own patience, which is its timeout_s here.
		const job = assertEnded(await client.job({ cmd: 'true', key: 'small', timeout_s: 4 }), 'provider_error');
		assert.equal(job.error.code, 'upstream_limit');
		assert.ok(job.timings.own_ms === undefined || job.timings.own_ms < 4000, 'the wait is no time of ours');
		assert.equal(job.sandbox, 'none');
		await client.rest('cancel_job', { job_id: first.job_id });
		await settled(first);
		assert.deepEqual(await sandboxes(small), []);
	});

	test('without a named provider the next key is tried, and both attempts are told', async () => {
		const other = await customer();
		await saveRunner(other, 'first', { url: NOBODY, token: 'x' },
			{ make_default: true, skip_check: true });
		const job = assertEnded(await other.job({ cmd: 'echo here' }), 'succeeded');
		assert.deepEqual(job.attempts.map((a) => [a.key, a.sandbox]),
			[['first', 'absent'], ['direct', 'stopped']]);
		assert.equal(job.attempts[0].error, 'upstream_error');
		assert.equal(job.key, 'direct');
		assert.equal(job.stdout, 'here\n');
	});

	test('a lost reply to the create: provider_error, and the sandbox is found and destroyed', async () => {
		const lane = spare();
		const key = await through(client, lane, 'lost-create');
		const rule = lane.rule(CREATE, 'cut', { times: 1 });
		const job = assertEnded(await client.job({ cmd: 'true', key }), 'provider_error');
		assert.equal(job.error.code, 'upstream_unsure');
		assert.equal(rule.count, 1, 'a create is never repeated');
		await settled(job);
		const [[state, id]] = await boxes(job);
		assert.equal(state, 'stopped');
		assert.ok(id.startsWith(prefix));
		assert.ok(!(await sandboxes(runner)).includes(id));
	});

	test('nonsense instead of the new sandbox: provider_error, and it is destroyed', async () => {
		const lane = spare();
		const key = await through(client, lane, 'garbage-create');
		lane.rule(CREATE, 'garbage', { times: 1 });
		const job = assertEnded(await client.job({ cmd: 'true', key }), 'provider_error');
		assert.equal(job.error.code, 'upstream_unsure');
		await settled(job);
		assert.equal((await boxes(job))[0][0], 'stopped');
	});

	test('a create that was lost on its way is found to be absent', async () => {
		const lane = spare();
		const key = await through(client, lane, 'never-came');
		lane.rule(CREATE, 'drop', { times: 1 });
		const job = assertEnded(await client.job({ cmd: 'true', key }), 'provider_error');
		assert.equal(job.sandbox, 'stopping', 'it may still appear');
		await settled(job);
		assert.equal((await boxes(job))[0][0], 'absent');
		assert.equal((await client.get(job.job_id)).sandbox, 'none');
	});

	test('uploads and starts are repeated, and the command still runs once', async () => {
		const lane = spare();
		const key = await through(client, lane, 'stutter');
		const upload = lane.rule(UPLOAD, 'cut', { times: 1 });
		const start = lane.rule(EXEC, 'cut', { times: 2 });
		const cmd = 'echo run; test ! -e /tmp/ran && touch /tmp/ran';
		const job = assertEnded(await client.job({ cmd, key }), 'succeeded');
		assert.equal(job.stdout, 'run\n');
		assert.deepEqual([upload.count, start.count], [1, 2]);
	});

	test('uploads that never arrive are provider_error', async () => {
		const lane = spare();
		const key = await through(client, lane, 'no-upload');
		lane.rule(UPLOAD, 'drop');
		const job = assertEnded(await client.job({ cmd: 'true', key }), 'provider_error');
		assert.equal(job.started_at, undefined);
		await settled(job);
	});

	test('a sandbox that vanishes under a running command is lost', async () => {
		for (const way of ['rest', 'mcp']) {
			const job = await client.job({ cmd: 'echo begun; sleep 300', wait_s: 0 });
			await until('it runs', async () => await jobState(job.job_id) === 'running');
			const [[, box]] = await boxes(job);
			await bridge(runner, 'DELETE', `/sandboxes/${box}`);
			const reply = await client[way]('get_job', { job_id: job.job_id });
			const done = assertEnded(reply.json, 'lost');
			assert.equal(done.error.code, 'sandbox_gone');
			if (way === 'mcp') assert.equal(reply.isError, true);
			await settled(job);
		}
	});

	test('a runner that was killed and came back in mid-job is lost', async () => {
		const lane = spare();
		const first = await startRunner();
		lane.target = new URL(first.url);
		await saveRunner(client, 'mortal', { url: lane.url, token: first.token });
		const job = await client.job({ cmd: 'echo begun; sleep 300', key: 'mortal', wait_s: 0 });
		await until('it runs', async () => (await client.get(job.job_id, { wait_s: 0 })).stdout);
		await first.kill();
		const second = await startRunner();
		lane.bearer = second.token;
		lane.target = new URL(second.url);
		const done = assertEnded(await client.get(job.job_id), 'lost');
		assert.equal(done.error.code, 'sandbox_gone');
		await settled(job);
		await second.stop();
	});

	test('a runner that stays away until the end of the job is uncertain', async () => {
		const key = await through(client, fragile.lane(runner.url), 'away');
		const job = await client.job({ cmd: 'sleep 30', key, wait_s: 0, timeout_s: 3 });
		await until('it runs', async () => await jobState(job.job_id) === 'running');
		await fragile.down();
		const reply = await client.mcp('get_job', { job_id: job.job_id });
		const done = assertEnded(reply.json, 'uncertain');
		assert.equal(reply.isError, true);
		assert.equal(done.error.code, 'upstream_error');
		assert.equal(done.sandbox, 'stopping', 'nobody has confirmed its end');
		await fragile.up();
		await settled(job);
	});

	test('polls that fail for a while change nothing about the end', async () => {
		const lane = spare();
		const key = await through(client, lane, 'flaky');
		const rule = lane.rule(EXEC, 'garbage', { skip: 1 }); // all but the start
		const job = await client.job({ cmd: 'sleep 4; echo end; exit 4', key, wait_s: 0 });
		await until('several failed', () => rule.count >= 2);
		rule.release();
		const done = assertEnded(await client.get(job.job_id), 'failed');
		assert.deepEqual([done.exit_code, done.stdout], [4, 'end\n']);
	});

	test('a stop that can not be confirmed is told as stopping, and confirmed later', async () => {
		const lane = spare();
		const key = await through(client, lane, 'no-stop');
		const rule = lane.rule(DESTROY, 'answer', { status: 500, body: '{}' });
		const job = assertEnded(await client.job({ cmd: 'echo done', key }), 'succeeded');
		assert.equal(job.sandbox, 'stopping');
		assert.equal(job.stdout, 'done\n');
		rule.release();
		await settled(job);
		assert.equal((await client.get(job.job_id)).sandbox, 'stopped');
	});
});

test('every outcome was seen, and every sandbox of them is gone', async () => {
	const rows = await sql('SELECT DISTINCT outcome FROM job WHERE outcome IS NOT NULL');
	assert.deepEqual(rows.map(([o]) => o).sort(), ['cancelled', 'failed', 'lost', 'not_started',
		'provider_error', 'succeeded', 'timed_out', 'uncertain']);
	assert.equal(await sqlOne(`SELECT COUNT(*) FROM job WHERE state <> 'ended'`), '0');
	await until('no sandbox is left', async () => (await sandboxes(runner)).length === 0);
});
