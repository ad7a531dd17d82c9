// Programs that speak MCP for others: the Inspector's command line, mcp-remote, and plain curl.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { dev } from '../lib/instance.mjs'; // CC_DEV_JSON
import { bare, freshHome, printedLines, programs, refusedKeys, run, tidy, url } from './world.mjs';

const lines = await printedLines();
const refused = await refusedKeys();
const NO_CA = { NODE_EXTRA_CA_CERTS: '' };
after(tidy);

const withKey = (key) => ['--header', `Authorization: Bearer ${key}`, '--stored-auth-only'];
const inspect = (...args) =>
	run('mcp-inspector', ['--cli', url, '--transport', 'http', '--format', 'json', '-q', ...args]);
const callJob = (args, ...more) => inspect('--method', 'tools/call', '--tool-name', 'run_job',
	'--tool-args-json', JSON.stringify(args), ...more);

for (const era of ['legacy', 'modern']) {
	describe(`Inspector, ${era}`, { concurrency: true }, () => {
		const inEra = ['--protocol-era', era];

		test('tools/list --strict finds every schema portable', async () => {
			const { code, out, err } = await inspect('--method', 'tools/list', '--strict', ...inEra);
			assert.equal(code, 0, out + err);
			assert.equal(JSON.parse(out).result.tools.length, 11);
		});

		test('tools/call runs a job; its exit code is a result', async () => {
			const { code, out, err } = await callJob({ cmd: 'echo seen; exit 4' }, ...withKey(dev.key), ...inEra);
			assert.equal(code, 0, out + err);
			const job = JSON.parse(out).result.structuredContent;
			assert.equal(job.exit_code, 4);
			assert.equal(job.stdout, 'seen\n');
		});

		test('a refused argument ends it with 5 and names the field', async () => {
			const { code, out, err } = await callJob({ cmd: '' }, ...withKey(dev.key), ...inEra);
			assert.equal(code, 5, out + err);
			assert.match(out + err, /bad_input.*cmd/);
		});

		test('a tool that needs a key ends it with 5, not with a login', async () => {
			const { code, out, err } = await callJob({ cmd: 'true' }, ...inEra);
			assert.equal(code, 5, out + err);
			assert.match(out + err, /token_needed/);
		});

		test('an unknown tool ends it with 5', async () => {
			const { code, out, err } = await inspect('--method', 'tools/call', '--tool-name', 'no_tool', ...inEra);
			assert.equal(code, 5, out + err);
		});

		for (const [what, key] of refused)
			test(`a ${what} key ends it with 3`, async () => {
				const { code, out, err } = await callJob({ cmd: 'true' }, ...withKey(key), ...inEra);
				assert.equal(code, 3, out + err);
				assert.match(err, era === 'legacy' ? /The API key is not valid/ : /401/);
			});

		test('without the CA it does not connect', async () => {
			const { code, out, err } = await run('mcp-inspector', ['--cli', url, '--transport', 'http', '--format', 'json', '-q',
				'--method', 'tools/list', ...inEra], { env: NO_CA });
			assert.notEqual(code, 0, out + err);
			assert.doesNotMatch(out, /check_memory/);
		});
	});
}

/** A client of mcp-remote's standard input and output; what it wrote to standard error is in `errors`. */
async function bridged(key, env = {}) {
	const home = freshHome();
	const transport = new StdioClientTransport({
		command: path.join(programs, 'mcp-remote'),
		args: [url, '--transport', 'http-only', ...(key ? ['--header', `Authorization: Bearer ${key}`] : [])],
		env: bare(home, { MCP_REMOTE_CONFIG_DIR: home, BROWSER: '/bin/false', ...env }),
		cwd: home,
		stderr: 'pipe',
	});
	const seen = { errors: '' };
	transport.stderr.on('data', (text) => { seen.errors += text; });
	const client = new Client({ name: 'behind-a-bridge', version: '1' });
	try {
		await client.connect(transport, { timeout: 120000 });
	} catch (error) {
		await transport.close();
		throw new Error(seen.errors, { cause: error });
	}
	return client;
}

describe('mcp-remote', { concurrency: true }, () => {
	test('shakes hands, lists the tools, runs a job', async () => {
		const client = await bridged(dev.key);
		assert.equal(client.getServerVersion().name, 'compute-connector');
		assert.equal((await client.listTools()).tools.length, 11);
		const { structuredContent: job } = await client.callTool(
			{ name: 'run_job', arguments: { cmd: 'echo through a bridge' } }, undefined, { timeout: 120000 });
		assert.equal(job.outcome, 'succeeded');
		assert.equal(job.stdout, 'through a bridge\n');
		const refused = await client.callTool({ name: 'run_job', arguments: { cmd: 1 } });
		assert.equal(refused.isError, true);
		assert.match(refused.content[0].text, /cmd/);
		await client.close();
	});

	test('without a key it connects, and free tools work', async () => {
		const client = await bridged();
		const { isError } = await client.callTool({ name: 'list_providers', arguments: {} });
		assert.ok(!isError);
		assert.equal((await client.callTool({ name: 'run_job', arguments: { cmd: 'true' } })).isError, true);
		await client.close();
	});

	for (const [what, key] of refused)
		test(`with a ${what} key it ends and tells so`, async () => {
			await assert.rejects(bridged(key), (error) => {
				assert.match(error.message, /401|not valid|rejected|[Uu]nauthorized/);
				return true;
			});
		});

	test('without the CA it does not connect', async () => {
		await assert.rejects(bridged(dev.key, NO_CA), /certificate|UNABLE_TO|self.signed|fetch failed/);
	});
});

describe('curl', { concurrency: true }, () => {
	test('the printed line runs a job', async () => {
		const { code, out, err } = await run('bash', ['-c', lines.curl]);
		assert.equal(code, 0, err);
		const job = JSON.parse(out);
		assert.equal(job.outcome, 'succeeded');
		assert.match(job.stdout, /^Linux /);
	});

	for (const [what, key, words] of refused)
		test(`the same with a ${what} key answers 401 and a problem that says so`, async () => {
			const { code, out } = await run('bash', ['-c', lines.curl.replace(dev.key, key)]);
			assert.equal(code, 0);
			assert.equal(JSON.parse(out).code, 'token_invalid');
			assert.equal(JSON.parse(out).detail, words);
		});

	test('the same without the CA is refused by curl', async () => {
		const { code } = await run('bash', ['-c', lines.curl.replace(/--cacert \S+ /, '')]);
		assert.equal(code, 60);
	});

	test('the printed address of the start page answers', async () => {
		const page = /start page: (\S+)\)/.exec(lines.all)[1];
		const { out, code } = await run('curl', ['-sS', '--cacert', dev.ca, page]);
		assert.equal(code, 0);
		assert.match(out, /<title>[^<]*Compute Connector/);
	});
});
