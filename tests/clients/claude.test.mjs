// Claude Code, in a HOME where it has never run, with the very line that ./run prints.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { dev } from '../lib/instance.mjs'; // CC_DEV_JSON
import { scriptedModel } from './messages.mjs';
import { freshHome, printedLines, refusedKeys, run, tidy, url } from './world.mjs';

const NAME = 'compute-connector';
const TOOL = `mcp__${NAME}__run_job`;
const lines = await printedLines();
const refused = await refusedKeys();
after(tidy);

const claude = (home, ...args) => run('claude', args, { home });

async function added(line = lines.claude) {
	const home = freshHome();
	const { code, out, err } = await run('bash', ['-c', line], { home, env: { NODE_EXTRA_CA_CERTS: '' } });
	assert.equal(code, 0, out + err);
	return home;
}

describe('claude mcp', { concurrency: true }, () => {
	test('the printed line adds the server, list and get show it connected', async () => {
		const home = await added();
		const list = await claude(home, 'mcp', 'list');
		assert.match(list.out, /compute-connector: .* ✔ Connected/, list.out + list.err);
		const get = await claude(home, 'mcp', 'get', NAME);
		assert.match(get.out, /Status: ✔ Connected/, get.out + get.err);
		assert.match(get.out, /Type: http/);
		const removed = await claude(home, 'mcp', 'remove', NAME, '-s', 'local');
		assert.equal(removed.code, 0);
	});

	test('without a key it connects as well', async () => {
		const home = freshHome();
		await claude(home, 'mcp', 'add', '--transport', 'http', NAME, url);
		const list = await claude(home, 'mcp', 'list');
		assert.match(list.out, /✔ Connected/, list.out + list.err);
	});

	for (const [what, key] of refused)
		test(`a ${what} key is told in words, and no login is begun`, async () => {
			const home = await added(lines.claude.replace(dev.key, key));
			const list = await claude(home, 'mcp', 'list');
			assert.match(list.out, /✘ Failed to connect/, list.out + list.err);
			assert.match(list.out, /HTTP 401/);
			assert.match(list.out, /The API key is not valid\./);
			assert.doesNotMatch(list.out, /Needs authentication/);
		});

	test('without the CA the address is not trusted', async () => {
		const home = await added();
		const list = await run('claude', ['mcp', 'list'], { home, env: { NODE_EXTRA_CA_CERTS: '' } });
		assert.match(list.out, /✘ Failed to connect/, list.out);
	});
});

/** One headless turn; gives what the tool's result was and how the program ended. */
async function turn(input, key = dev.key) {
	const model = await scriptedModel({ name: TOOL, input });
	const servers = { [NAME]: { type: 'http', url, ...(key && { headers: { Authorization: `Bearer ${key}` } }) } };
	try {
		const ended = await run('claude', ['-p', 'go', '--mcp-config', JSON.stringify({ mcpServers: servers }),
			'--strict-mcp-config', '--allowedTools', `mcp__${NAME}`, '--output-format', 'json'], {
			env: {
				ANTHROPIC_BASE_URL: model.url,
				ANTHROPIC_API_KEY: 'sk-ant-of-a-test',
				CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
				ENABLE_TOOL_SEARCH: 'false',
			},
		});
		return { ...ended, result: model.results[0], offered: model.offered() };
	} finally {
		await model.stop();
	}
}

const textOf = (result) => (typeof result.content === 'string' ? result.content
	: result.content.map((part) => part.text).join(''));

describe('claude -p', { concurrency: true }, () => {
	test('a model runs a job and reads its result', async () => {
		const cmd = 'echo "six times seven is $((6 * 7))"; exit 3';
		const { code, out, err, result, offered } = await turn({ cmd });
		assert.ok(result, `the tool was not called: ${code} ${out} ${err}`);
		assert.equal(code, 0, err);
		assert.equal(JSON.parse(out).result, 'Finished.');
		assert.ok(!result.is_error, textOf(result));
		const job = JSON.parse(textOf(result));
		assert.equal(job.outcome, 'failed');
		assert.equal(job.exit_code, 3);
		assert.equal(job.stdout, 'six times seven is 42\n');
		for (const name of ['check_memory', 'get_job', 'cancel_job'])
			assert.ok(offered.includes(`mcp__${NAME}__${name}`), name);
	});

	test('a refused argument reaches the model as an error that names the field', async () => {
		const { result, out, err } = await turn({ cmd: 'true', timeout_s: 99999 });
		assert.ok(result, out + err);
		assert.ok(result.is_error);
		assert.match(textOf(result), /timeout_s.*3600/);
	});

	test('without a key the model is told how to get one', async () => {
		const { result, out, err, code } = await turn({ cmd: 'true' }, null);
		assert.ok(result, out + err);
		assert.equal(code, 0);
		assert.ok(result.is_error);
		assert.match(textOf(result), /token_needed/);
		assert.match(textOf(result), /Authorization: Bearer/);
	});

	for (const [what, key] of refused)
		test(`with a ${what} key no tool is offered, no login is begun, and the turn ends`, async () => {
			const { code, out, err, result, offered } = await turn({ cmd: 'true' }, key);
			assert.equal(code, 0, out + err);
			assert.equal(JSON.parse(out).result, 'Finished.');
			assert.equal(result, undefined);
			assert.deepEqual(offered, []);
		});
});
