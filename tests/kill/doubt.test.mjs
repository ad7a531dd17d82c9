// What nobody can know is not told as known: the answer to a start is lost, and so is the sandbox.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { account, allowOrigins, idHex, sqlOne } from '../lib/instance.mjs';
import { proxyHub } from '../lib/proxy.mjs';
import { bridge, instanceRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';

const START = { method: 'POST', path: /\/exec$/ };
let client, hub, lane;

before(async () => {
	hub = await proxyHub();
	lane = hub.lane(instanceRunner().url);
	await allowOrigins([hub.url]);
	client = await account('pro');
	const saved = await client.rest('save_provider_key', { provider: 'tunnel', name: 'lane',
		token: instanceRunner().token, bridge_url: lane.url });
	assert.equal(saved.status, 200, saved.text);
});
after(() => hub.stop());

const boxOf = (id) => until('its sandbox is known', () =>
	sqlOne(`SELECT provider_id FROM sandbox WHERE job = ${idHex(id)} AND provider_id IS NOT NULL`));

/** Runs a job whose first start meets `act`; its sandbox is gone when the start is repeated. */
async function loses(act) {
	lane.clear();
	lane.rule(START, act, { times: 1 });
	const again = lane.rule(START, 'hold', { times: 1 });
	const { job_id: id } = await client.job({ cmd: 'sleep 100', wait_s: 0 });
	await again.seen;
	await bridge(instanceRunner(), 'DELETE', `/sandboxes/${await boxOf(id)}`);
	again.release();
	return until('it has ended', async () => {
		const job = await client.get(id, { wait_s: 5 });
		return job.state === 'ended' && job;
	}, 120000);
}

test('a start whose answer was lost, in a sandbox that is gone, is uncertain', async () => {
	const job = await loses('cut');
	assert.equal(job.outcome, 'uncertain', JSON.stringify(job));
	assert.equal(job.exit_code, undefined);
	assert.ok(job.error.code);
});

test('a sandbox that is gone before the first start was no start', async () => {
	lane.clear();
	const first = lane.rule(START, 'hold', { times: 1 });
	const { job_id: id } = await client.job({ cmd: 'sleep 100', wait_s: 0 });
	await first.seen;
	await bridge(instanceRunner(), 'DELETE', `/sandboxes/${await boxOf(id)}`);
	first.release();
	const job = await until('it has ended', async () => {
		const seen = await client.get(id, { wait_s: 5 });
		return seen.state === 'ended' && seen;
	}, 120000);
	assert.equal(job.outcome, 'provider_error', JSON.stringify(job));
});
