// What every file of this folder begins with: accounts whose keys lead to one runner through lanes of
// a fault proxy, so that each key is a provider whose trouble the test chooses.

import assert from 'node:assert/strict';
import { account, allowOrigins, idHex, sql, sqlOne } from '../lib/instance.mjs';
import { proxyHub } from '../lib/proxy.mjs';
import { instanceRunner } from '../lib/runner.mjs';

export const CREATE = { method: 'POST', path: /\/sandboxes$/ };

/** A refusal that is certain and the provider's own fault. */
export const REFUSES = { status: 400, body: '{}' };
/** A refusal of the wish: nobody is to blame. */
export const CANNOT = { status: 400, body: '{"error":{"code":"unsupported"}}' };

/** A proxy whose lanes the connector may call. */
export async function stage() {
	const hub = await proxyHub();
	try {
		await allowOrigins([hub.url]);
	} catch (error) {
		await hub.stop();
		throw error;
	}
	return hub;
}

/** Saves a lane as a key. */
export async function save(client, name, lane, more = {}) {
	const reply = await client.rest('save_provider_key', { provider: 'tunnel', name,
		token: instanceRunner().token, bridge_url: lane.url, skip_check: true, ...more });
	assert.equal(reply.status, 200, reply.text);
	return reply.json;
}

/** A new pro account with keys of these names: { client, lanes: { name: lane } }. The first is its default. */
export async function customer(hub, names, settings = {}) {
	const client = await account('pro');
	const lanes = {};
	for (const name of names) {
		lanes[name] = hub.lane(instanceRunner().url);
		await save(client, name, lanes[name]);
	}
	if (Object.keys(settings).length) await change(client, settings);
	return { client, lanes };
}

/** Changes the account's settings; gives them. */
export async function change(client, settings) {
	const reply = await client.api('PATCH', '/api/account', settings);
	assert.equal(reply.status, 200, reply.text);
	return reply.json;
}

/** [key, error] of each attempt. */
export const tried = (job) => job.attempts.map((a) => (a.error ? [a.key, a.error] : [a.key]));

/** A key as list_providers shows it. */
export async function shown(client, name) {
	const reply = await client.rest('list_providers');
	assert.equal(reply.status, 200, reply.text);
	return reply.json.keys.find((k) => k.name === name);
}

/** Columns of a key's row. */
export async function row(client, name, columns) {
	const rows = await sql(`SELECT ${columns} FROM provider_key WHERE account = ${idHex(client.account)}
		AND name = '${name}' AND state = 'active'`);
	assert.equal(rows.length, 1);
	return rows[0];
}

/** As if the pause of a sick key were over. */
export const pauseOver = (client, name) => sql(`UPDATE provider_key SET open_until = 1, probe_until = NULL
	WHERE account = ${idHex(client.account)} AND name = '${name}' AND state = 'active'`);

/** Makes a key sick by jobs that fail there. They name it, so that they make no sandbox elsewhere: a
 * loaded machine makes few in the time of a pause. */
export async function sicken(client, lanes, key, times = 3) {
	const rule = lanes[key].rule(CREATE, 'answer', { ...REFUSES, times });
	for (let i = 0; i < times; i++) await client.job({ cmd: 'true', key });
	assert.equal(rule.count, times);
}

/** As if a pause had no end in this test. */
export const pauseOn = (client, name) => sql(`UPDATE provider_key SET open_until = open_until + 3600000
	WHERE account = ${idHex(client.account)} AND name = '${name}' AND state = 'active'`);

/** How many processes of the connector have driven jobs of this account. */
export const drivers = (client) => sqlOne(`SELECT COUNT(DISTINCT driver) FROM job WHERE account = ${idHex(client.account)}`)
	.then(Number);

export const creates = (lane) => lane.requests.filter((r) => /^POST .*\/sandboxes$/.test(r)).length;

/** Runs n jobs at the same time. */
export const together = (client, n, args = { cmd: 'true' }) =>
	Promise.all(Array.from({ length: n }, () => client.job(args)));
