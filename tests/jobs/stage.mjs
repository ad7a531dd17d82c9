// What every file of this folder begins with: an account of its own, the instance's runner as its
// default provider, and the same runner again behind a fault proxy.

import assert from 'node:assert/strict';
import { account, allowOrigins } from '../lib/instance.mjs';
import { proxyHub } from '../lib/proxy.mjs';
import { instanceRunner } from '../lib/runner.mjs';

/** Saves a runner (or a proxy in front of it) as a provider key. */
export async function saveRunner(client, name, { url, token }, more = {}) {
	const reply = await client.rest('save_provider_key',
		{ provider: 'tunnel', name, token, bridge_url: url, ...more });
	assert.equal(reply.status, 200, reply.text);
	return reply.json;
}

/** A hub of fault proxies whose lanes the connector may call; one restart for all origins. */
export async function hubs(n, ...origins) {
	const list = await Promise.all(Array.from({ length: n }, proxyHub));
	try {
		await allowOrigins([...list.map((hub) => hub.url), ...origins]);
	} catch (error) {
		await Promise.all(list.map((hub) => hub.stop()));
		throw error;
	}
	return list;
}

/** A new pro account whose default key is the instance's runner. */
export async function customer() {
	const client = await account('pro');
	await saveRunner(client, 'direct', instanceRunner(), { make_default: true });
	return client;
}

/** A key of this account that goes through a proxy; gives its name. */
export async function through(client, lane, name) {
	await saveRunner(client, name, { url: lane.url, token: instanceRunner().token });
	return name;
}

export const CREATE = { method: 'POST', path: /\/sandboxes$/ };
export const UPLOAD = { method: 'PUT', path: /\/file\?/ };
export const EXEC = { method: 'POST', path: /\/exec$/ };
export const DESTROY = { method: 'DELETE', path: /\/sandboxes\// };

/** What every ended job must say, whatever its outcome. */
export function assertEnded(job, outcome) {
	assert.equal(job.state, 'ended', JSON.stringify(job));
	assert.equal(job.outcome, outcome, JSON.stringify(job));
	if (outcome === 'succeeded') assert.equal(job.exit_code, 0);
	else if (outcome === 'failed') assert.ok(job.exit_code > 0);
	else assert.equal(job.exit_code, undefined, 'the command\'s own code is not known');
	const explained = !['succeeded', 'failed', 'timed_out', 'cancelled'].includes(outcome);
	assert.equal(job.error !== undefined, explained, JSON.stringify(job.error));
	return job;
}
