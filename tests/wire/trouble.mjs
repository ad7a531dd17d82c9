// The database away: every way in says so at once, and serves again as soon as it is back.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { service } from './instance.mjs';
import { until } from '../lib/wait.mjs';
import { TOOL_ERROR, judgeMcp, judgeRest, seen } from './judge.mjs';
import { send } from './send.mjs';
import { caller, headersOf } from './states.mjs';

const asks = {
	'a tool over REST': { method: 'POST', path: '/api/run/usage_and_upgrade' },
	'a new account': { method: 'POST', path: '/api/key' },
	'a tool with a key': { method: 'POST', path: '/api/run/list_jobs', as: 'pro' },
	'the keys': { method: 'GET', path: '/api/keys', as: 'pro' },
	'a message with a key': { method: 'POST', path: '/mcp', as: 'pro', sent: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
	'a tool over MCP': { method: 'POST', path: '/mcp',
		sent: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'usage_and_upgrade' } } },
};

async function ask({ method, path, as = 'none', sent }) {
	const body = sent && Buffer.from(JSON.stringify(sent));
	const headers = { ...(sent ? { 'Content-Type': 'application/json' } : {}), ...headersOf(await caller(as)) };
	const answer = await send({ method, path, headers, body });
	return { answer, value: sent ? judgeMcp(answer, { sent }) : judgeRest({ method, path }, answer) };
}

async function checkAway(name) {
	const { answer, value } = await ask(asks[name]);
	const problem = value?.error?.data ?? value?.result?._meta?.[TOOL_ERROR] ?? value;
	assert.equal(problem.code, 'unavailable', name);
	assert.equal(problem.retryable, true);
	if (!value.result)
		assert.equal(answer.status, 503, name);
	seen.cases++;
	seen.refusals++;
}

const status = async (path) => (await send({ method: 'GET', path })).status;

test('the connector away and back', async () => {
	service('stop', 'connector');
	try {
		for (const name of Object.keys(asks)) {
			const { answer, value } = await ask(asks[name]);
			assert.equal(answer.status, 503, name);
			assert.equal(value.code, 'busy', name);
			seen.cases++;
			seen.refusals++;
		}
	} finally {
		service('start', 'connector');
	}
	while (await status('/readyz') !== 200);
	for (const name of Object.keys(asks))
		assert.ok((await ask(asks[name])).answer.status < 300, name);
});

test('the database away and back', async () => {
	await caller('pro');
	service('stop', 'mariadb');
	try {
		assert.equal(await status('/healthz'), 200);
		assert.equal(await status('/readyz'), 503);
		assert.equal(await status('/openapi.json'), 200);
		for (const name of Object.keys(asks))
			await checkAway(name);
	} finally {
		service('start', 'mariadb');
	}
	assert.equal(await status('/readyz'), 200);
	// A connection that was left from before may still be refused, with 503 and "try again".
	for (const name of Object.keys(asks))
		await until(`${name} is served`, async () => {
			const { status: seen } = (await ask(asks[name])).answer;
			return seen < 300 || { missing: seen };
		}, 20000);
});
