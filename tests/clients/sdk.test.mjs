// The official TypeScript clients: 1.x, and 2.x in each of its ways to find the revision.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v2 from '@modelcontextprotocol/client';
import { account, dev } from '../lib/instance.mjs'; // CC_DEV_JSON
import { instanceRunner } from '../lib/runner.mjs';
import { passingKey, refusedKeys, url } from './world.mjs';

const refused = await refusedKeys();

const ME = { name: 'a-client', version: '1' };
const TOOLS = ['cancel_job', 'check_memory', 'delete_provider_key', 'get_job', 'list_jobs', 'list_providers',
	'provider_setup', 'run_job', 'save_provider_key', 'usage_and_upgrade', 'weekly_report'];

const second = (options) => ({
	client: () => new v2.Client(ME, options),
	Transport: v2.StreamableHTTPClientTransport,
	call: (client, params, more) => client.callTool(params, more),
});
const kinds = {
	'SDK 1.x': {
		client: () => new v1.Client(ME),
		Transport: Transport1,
		call: (client, params, more) => client.callTool(params, undefined, more),
	},
	'SDK 2.x': { ...second(), version: '2025-11-25' },
	'SDK 2.x auto': { ...second({ versionNegotiation: { mode: 'auto' } }), version: '2026-07-28' },
	'SDK 2.x pinned to 2026-07-28':
		{ ...second({ versionNegotiation: { mode: { pin: '2026-07-28' } } }), version: '2026-07-28' },
};

/** A connected client; { client, tool(name, args, options) }. Tools are listed, so results are validated. */
async function connected(kind, key) {
	const client = kind.client();
	const headers = key ? { Authorization: `Bearer ${key}` } : {};
	await client.connect(new kind.Transport(new URL(url), { requestInit: { headers } }));
	await client.listTools();
	return {
		client,
		tool: (name, args = {}, more = {}) =>
			kind.call(client, { name, arguments: args }, { timeout: 120000, ...more }),
	};
}

for (const [name, kind] of Object.entries(kinds)) {
	describe(name, { concurrency: true }, () => {
		let own, nobody;
		before(async () => {
			own = await connected(kind, dev.key);
			nobody = await connected(kind);
		});
		after(async () => {
			await own.client.close();
			await nobody.client.close();
		});

		test('connects, and is told who it talks to', () => {
			assert.equal(own.client.getServerVersion().name, 'compute-connector');
			const tasks = kind.version === '2026-07-28' ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {};
			assert.deepEqual(own.client.getServerCapabilities(), { tools: {}, ...tasks });
			assert.match(own.client.getInstructions(), /check_memory/);
			if (kind.version) assert.equal(own.client.getNegotiatedProtocolVersion(), kind.version);
		});

		test('lists every tool, with schemas, the same with a key and without', async () => {
			const { tools } = await own.client.listTools();
			assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
			for (const tool of tools) {
				assert.equal(tool.inputSchema.type, 'object');
				assert.equal(tool.outputSchema.type, 'object');
				assert.ok(tool.description && tool.annotations);
			}
			assert.deepEqual((await nobody.client.listTools()).tools, tools);
		});

		test('check_memory gives a verdict that fits its schema', async () => {
			const { structuredContent: verdict, content, isError } =
				await own.tool('check_memory', { job: 'npm test', free_mb: 100, total_mb: 8000 });
			assert.ok(!isError);
			assert.equal(verdict.verdict, 'offload');
			assert.deepEqual(JSON.parse(content[0].text), verdict);
		});

		test('run_job runs, and its result fits its schema', async () => {
			const { structuredContent: job, isError } = await own.tool('run_job', {
				cmd: 'cat data; echo "$WORD" >&2; exit 7',
				env: { WORD: 'spoken' },
				files: [{ path: 'data', content: 'from a file\n' }],
			});
			assert.ok(!isError, 'an exit code is a result');
			assert.equal(job.outcome, 'failed');
			assert.equal(job.exit_code, 7);
			assert.equal(job.stdout, 'from a file\n');
			assert.equal(job.stderr, 'spoken\n');
		});

		test('progress of a longer job grows, and the result comes after it', async () => {
			const seen = [];
			const { structuredContent: job } = await own.tool('run_job',
				{ cmd: 'echo begun; sleep 12; echo done', timeout_s: 60, wait_s: 60 },
				{ onprogress: (progress) => seen.push(progress), resetTimeoutOnProgress: true });
			assert.equal(job.outcome, 'succeeded');
			assert.equal(job.stdout, 'begun\ndone\n');
			assert.ok(seen.length >= 2, JSON.stringify(seen));
			for (const { message } of seen) assert.ok(message.includes(job.job_id), message);
			for (let i = 1; i < seen.length; i++) assert.ok(seen[i].progress > seen[i - 1].progress);
		});

		test('a job that outlives wait_s is picked up with get_job, or ended with cancel_job', async () => {
			const { structuredContent: job } = await own.tool('run_job', { cmd: 'sleep 100', wait_s: 0 });
			assert.notEqual(job.state, 'ended');
			await own.tool('cancel_job', { job_id: job.job_id });
			const { structuredContent: ended } =
				await own.tool('get_job', { job_id: job.job_id, wait_s: 60 });
			assert.equal(ended.outcome, 'cancelled');
		});

		test('wrong arguments are errors of the tool that name field and bound', async () => {
			for (const [args, words] of [
				[{}, /cmd.*required/],
				[{ cmd: 5 }, /cmd.*string/],
				[{ cmd: 'true', timeout_s: 3601 }, /timeout_s.*3600/],
				[{ cmd: 'true', colour: 'red' }, /colour|unknown|not known/],
				[{ cmd: 'true', files: [{ path: '../x', content: '' }] }, /files/],
			]) {
				const { isError, content } = await own.tool('run_job', args);
				assert.equal(isError, true);
				assert.match(content[0].text, words);
			}
		});

		test('a tool that is refused on this account says why', async () => {
			const { isError, content } = await own.tool('get_job', { job_id: 'job_aaaaaaaaaaaaaaaaaaaaaaaaaa' });
			assert.equal(isError, true);
			assert.match(content[0].text, /job_not_found/);
		});

		test('an unknown tool is an error of the protocol', async () => {
			await assert.rejects(own.tool('run_jobs', {}), (error) => {
				assert.equal(error.code, -32602);
				assert.match(error.message, /no tool of this name/);
				return true;
			});
		});

		for (const [what, key] of refused)
			test(`a ${what} key is refused at once with 401`, async () => {
				await assert.rejects(connected(kind, key), (error) => {
					assert.equal(error.status ?? error.code, 401, error);
					return true;
				});
			});

		test('a key that is revoked in the middle lets no further call in', async () => {
			const { key, revoke } = await passingKey();
			const other = await connected(kind, key);
			assert.ok(!(await other.tool('usage_and_upgrade')).isError);
			await revoke();
			await assert.rejects(other.tool('usage_and_upgrade'), (error) => {
				assert.equal(error.status ?? error.code, 401, error);
				return true;
			});
			await other.client.close();
		});

		test('without a key free tools work, and the others tell how to get one', async () => {
			for (const tool of ['list_providers', 'usage_and_upgrade'])
				assert.ok(!(await nobody.tool(tool)).isError, tool);
			assert.ok(!(await nobody.tool('provider_setup', { provider: 'vercel' })).isError);
			const memory = await nobody.tool('check_memory', { job: 'make', free_mb: 9000, total_mb: 9999 });
			assert.ok(!memory.isError);
			const run = await nobody.tool('run_job', { cmd: 'true' });
			assert.equal(run.isError, true);
			assert.match(run.content[0].text, /API key/);
		});

		test('a provider that can not be reached is an error that is still a job', async () => {
			const client = await account('pro');
			await client.rest('save_provider_key', { provider: 'tunnel', name: 'away',
				token: 'x'.repeat(43), bridge_url: instanceRunner().url, skip_check: true });
			const other = await connected(kind, client.key);
			const { isError, structuredContent: job } = await other.tool('run_job', { cmd: 'true' });
			assert.equal(isError, true);
			assert.equal(job.outcome, 'provider_error');
			assert.ok(job.error.code);
			await other.client.close();
		});
	});
}
