// What is remembered of a key's health, by all workers alike; limits of a provider; what list_providers
// and the estimates say, held against the rows.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { idHex, sql, sqlOne } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { CANNOT, change, CREATE, creates, customer, drivers, pauseOn, pauseOver, REFUSES, row, save, shown, sicken, stage, together,
	tried } from './stage.mjs';

let hub;
before(async () => {
	hub = await stage();
});
after(() => hub?.stop());

const at = (iso) => Date.parse(iso);

describe('breaker', { concurrency: 3 }, () => {
	test('two failures in a row open nothing, a success ends the row', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sicken(client, lanes, 'a', 2);
		assert.deepEqual(await row(client, 'a', 'fails, open_until'), ['2', 'NULL']);
		assert.equal((await shown(client, 'a')).health, 'untried');
		assert.deepEqual(tried(await client.job({ cmd: 'true' })), [['a']]);
		assert.deepEqual(await row(client, 'a', 'fails, open_until'), ['0', 'NULL']);
		await sicken(client, lanes, 'a', 2);
		assert.equal((await shown(client, 'a')).health, 'healthy');
		assert.equal((await client.job({ cmd: 'true' })).key, 'a');
	});

	test('three open it: the key is tried last, by every worker', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { fallback: false });
		await sicken(client, lanes, 'a');
		const [failed, open] = await row(client, 'a', 'failed_at, open_until');
		assert.equal(Number(open) - Number(failed), 30000);
		await pauseOn(client, 'a');
		const seen = creates(lanes.a);
		for (const name of ['b', 'c']) lanes[name].rule(CREATE, 'answer', CANNOT);
		const jobs = await together(client, 16);
		assert.deepEqual(jobs.map((j) => tried(j).join()), jobs.map(() => 'b,unsupported'));
		assert.equal(creates(lanes.a), seen);
		assert.ok(await drivers(client) > 1, 'one worker has not seen the failures itself');
		const key = await shown(client, 'a');
		assert.deepEqual([key.health, key.last_error, key.used_at], ['sick', 'upstream_error', undefined]);
		assert.equal(at(key.health_since), at(key.failed_at));
		await change(client, { fallback: true });
		assert.deepEqual(tried(await client.job({ cmd: 'true' })),
			[['b', 'unsupported'], ['c', 'unsupported'], ['a']], 'last, and not left out');
	});

	test('failures that workers see at the same time are all counted', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		await together(client, 10);
		assert.equal((await row(client, 'a', 'fails'))[0], '10');
		assert.ok(await drivers(client) > 1);
	});

	test('a sick key that is the only one is used all the same, and gets well', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		await sicken(client, lanes, 'a');
		assert.equal((await shown(client, 'a')).health, 'sick');
		assert.equal((await client.job({ cmd: 'true' })).outcome, 'succeeded');
		const key = await shown(client, 'a');
		assert.deepEqual([key.health, key.last_error], ['healthy', 'upstream_error']);
		assert.ok(at(key.health_since) >= at(key.failed_at));
	});

	test('a sick key that was named is used all the same', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sicken(client, lanes, 'a');
		const job = await client.job({ cmd: 'true', key: 'a' });
		assert.deepEqual([job.key, tried(job)], ['a', [['a']]]);
	});

	test('after the pause one job tries it, whichever worker it is on; its success closes the breaker', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b'], { fallback: false });
		await sicken(client, lanes, 'a');
		await pauseOver(client, 'a');
		const seen = creates(lanes.a);
		lanes.b.rule(CREATE, 'answer', CANNOT);
		const rule = lanes.a.rule(CREATE, 'hold', { times: 1 });
		const all = together(client, 12);
		await rule.seen;
		await until('the others are done', async () => await sqlOne(`SELECT COUNT(*) FROM job
			WHERE account = ${idHex(client.account)} AND state = 'ended' AND key_name = 'b'`) === '11');
		assert.equal(creates(lanes.a), seen + 1);
		assert.equal((await shown(client, 'a')).health, 'sick', 'until it has succeeded');
		rule.release();
		const jobs = await all;
		assert.deepEqual(jobs.map((j) => tried(j).join()).sort(), ['a', ...Array(11).fill('b,unsupported')]);
		assert.equal((await shown(client, 'a')).health, 'healthy');
		assert.equal((await client.job({ cmd: 'true' })).key, 'a');
	});

	test('a try that fails opens it for twice as long, and falls back', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sicken(client, lanes, 'a');
		const { health_since: since } = await shown(client, 'a');
		for (const pause of [60000, 120000]) {
			await pauseOver(client, 'a');
			lanes.a.rule(CREATE, 'answer', { ...REFUSES, times: 1 });
			assert.deepEqual(tried(await client.job({ cmd: 'true' })), [['a', 'upstream_error'], ['b']]);
			const [failed, open] = await row(client, 'a', 'failed_at, open_until');
			assert.equal(Number(open) - Number(failed), pause);
			await pauseOn(client, 'a');
			assert.deepEqual(tried(await client.job({ cmd: 'true' })), [['b']]);
		}
		assert.equal((await shown(client, 'a')).health_since, since, 'it was sick all the time');
	});

	test('the pause grows to ten minutes and no further', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sql(`UPDATE provider_key SET fails = 60, open_until = 1 WHERE account = ${idHex(client.account)} AND name = 'a'`);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		await client.job({ cmd: 'true' });
		const [fails, failed, open] = await row(client, 'a', 'fails, failed_at, open_until');
		assert.deepEqual([fails, Number(open) - Number(failed)], ['61', 600000]);
	});

	test('a try that was never heard of again frees its place', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sicken(client, lanes, 'a');
		const now = Date.now();
		await sql(`UPDATE provider_key SET open_until = 1, probe_until = ${now + 3600000}
			WHERE account = ${idHex(client.account)} AND name = 'a'`);
		assert.equal((await client.job({ cmd: 'true' })).key, 'b');
		await sql(`UPDATE provider_key SET probe_until = ${now - 1} WHERE account = ${idHex(client.account)} AND name = 'a'`);
		assert.equal((await client.job({ cmd: 'true' })).key, 'a');
	});

	test('a half-open key in second place is left alone until it is needed', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sql(`UPDATE provider_key SET fails = 3, open_until = 1 WHERE account = ${idHex(client.account)} AND name = 'b'`);
		assert.deepEqual(tried(await client.job({ cmd: 'true' })), [['a']]);
		assert.equal(creates(lanes.b), 0);
		assert.equal((await row(client, 'b', 'probe_until'))[0], 'NULL');
	});

	test('a refused key is an illness, a wish that can not be fulfilled is none', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule(CREATE, 'answer', { ...CANNOT, times: 5 });
		await together(client, 5, { cmd: 'true', key: 'a' });
		assert.equal((await row(client, 'a', 'fails'))[0], '0');
		lanes.a.rule(CREATE, 'answer', { status: 401, body: '{}', times: 3 });
		for (let i = 0; i < 3; i++) await client.job({ cmd: 'true', key: 'a' });
		const key = await shown(client, 'a');
		assert.deepEqual([key.health, key.last_error], ['sick', 'key_refused']);
	});

	test('a command that fails is nobody\'s illness', async () => {
		const { client } = await customer(hub, ['a']);
		for (let i = 0; i < 3; i++) await client.job({ cmd: 'exit 1' });
		assert.deepEqual((await row(client, 'a', 'fails, failed_at')), ['0', 'NULL']);
	});

	test('a key that is saved anew has a new life', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await sicken(client, lanes, 'a');
		await save(client, 'a', lanes.a);
		const key = await shown(client, 'a');
		assert.deepEqual([key.health, key.last_error, key.version, key.place, key.is_default], ['untried', undefined, 2, 1, true]);
		assert.equal((await client.job({ cmd: 'true' })).key, 'a');
	});
});

describe('limits of a provider', { concurrency: 4 }, () => {
	const limits = (seconds, more = {}) => ({ status: 429, body: '{}',
		headers: seconds === undefined ? {} : { 'Retry-After': String(seconds) }, ...more });

	test('a short wait is waited for, in the same attempt', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		const rule = lanes.a.rule(CREATE, 'answer', limits(1, { times: 2 }));
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual([job.outcome, tried(job)], ['succeeded', [['a']]]);
		assert.equal(rule.count, 2);
		assert.ok(job.attempts[0].waited_ms >= 2000, 'never earlier than it was told');
		assert.ok(job.timings.queue_ms >= 2000);
		assert.deepEqual(await row(client, 'a', 'fails, failed_at, limited_until'), ['0', 'NULL', 'NULL']);
	});

	test('a long wait is not waited for when another key is there', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		const rule = lanes.a.rule(CREATE, 'answer', limits(60));
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual(tried(job), [['a', 'upstream_limit'], ['b']]);
		assert.deepEqual([rule.count, job.attempts[0].waited_ms], [1, 0]);
		const key = await shown(client, 'a');
		assert.equal(key.health, 'untried', 'it is no illness');
		assert.ok(at(key.limited_until) > Date.now() + 30000);
		const jobs = await together(client, 6);
		assert.deepEqual(jobs.map((j) => tried(j).join()), Array(6).fill('b'));
		assert.equal(rule.count, 1, 'nobody asks before the time is over');
	});

	test('a limited key comes before a sick one', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c']);
		const now = Date.now();
		await sql(`UPDATE provider_key SET fails = 3, open_until = ${now + 3600000} WHERE account = ${idHex(client.account)} AND name = 'a'`);
		await sql(`UPDATE provider_key SET limited_until = ${now + 3600000} WHERE account = ${idHex(client.account)} AND name = 'b'`);
		for (const name of ['a', 'b', 'c']) lanes[name].rule(CREATE, 'answer', CANNOT);
		assert.equal((await client.job({ cmd: 'true' })).attempts.map((k) => k.key).join(''), 'cba');
	});

	test('no job waits for longer than it may run', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		const rule = lanes.a.rule(CREATE, 'answer', limits(4));
		const job = await client.job({ cmd: 'true', timeout_s: 3 });
		assert.deepEqual([job.outcome, job.error.code, rule.count], ['provider_error', 'upstream_limit', 1]);
	});

	test('an hour is too long for every job', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		const rule = lanes.a.rule(CREATE, 'answer', limits(3600));
		const job = await client.job({ cmd: 'true', timeout_s: 3600, key: 'a' });
		assert.deepEqual([job.outcome, job.error.code, rule.count], ['provider_error', 'upstream_limit', 1]);
	});

	test('without a told time: a few tries when there is no other key, none when there is', async () => {
		const one = await customer(hub, ['a']);
		const rule = one.lanes.a.rule(CREATE, 'answer', limits());
		const job = await one.client.job({ cmd: 'true' });
		assert.deepEqual([job.error.code, rule.count], ['upstream_limit', 4]);
		assert.ok(job.attempts[0].waited_ms >= 7000);
		const two = await customer(hub, ['a', 'b']);
		const other = two.lanes.a.rule(CREATE, 'answer', limits());
		assert.deepEqual(tried(await two.client.job({ cmd: 'true' })), [['a', 'upstream_limit'], ['b']]);
		assert.equal(other.count, 1);
	});

	test('cancelled while it waits', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		const rule = lanes.a.rule(CREATE, 'answer', limits(60));
		const job = await client.job({ cmd: 'true', wait_s: 0 });
		await rule.seen;
		const done = await client.rest('cancel_job', { job_id: job.job_id, wait_s: 30 });
		assert.deepEqual([done.json.outcome, done.json.sandbox], ['cancelled', 'none']);
		assert.equal(rule.count, 1);
	});

	for (const [what, answer, error] of [
		['status 500', { status: 500, body: '{}', headers: { 'Retry-After': '1' } }, 'upstream_unsure'],
		['status 503 of a proxy', { status: 503, body: 'busy', headers: { 'Retry-After': '1' } }, 'upstream_unsure'],
		['status 400', { ...REFUSES, headers: { 'Retry-After': '1' } }, 'upstream_error']])
		test(`${what} with a waiting time is not asked again`, async () => {
			const { client, lanes } = await customer(hub, ['a']);
			const rule = lanes.a.rule(CREATE, 'answer', answer);
			const job = await client.job({ cmd: 'true' });
			assert.deepEqual([job.outcome, job.error.code, rule.count], ['provider_error', error, 1]);
		});
});

describe('numbers', { concurrency: 2 }, () => {
	test('list_providers shows what the rows hold', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { order: ['b', 'a'] });
		for (const n of [5, 4]) await together(client, n, { cmd: 'true', key: n === 5 ? 'a' : 'b' });
		lanes.b.rule(CREATE, 'answer', { ...REFUSES, times: 1 });
		await client.job({ cmd: 'true', key: 'b' });
		const { keys, providers } = (await client.rest('list_providers')).json;
		const tunnel = providers.find((p) => p.name === 'tunnel');
		assert.deepEqual(keys.map((k) => [k.place, k.name]), [[1, 'b'], [2, 'a'], [3, 'c']]);
		for (const key of keys) {
			const took = (await sql(`SELECT create_ms FROM sandbox WHERE account = ${idHex(client.account)}
				AND key_name = '${key.name}' AND provider_id IS NOT NULL`)).flat().map(Number).sort((x, y) => x - y);
			const n = took.length;
			const median = Math.floor((took[Math.floor((n - 1) / 2)] + took[Math.floor(n / 2)]) / 2);
			assert.deepEqual([key.creates, key.create_ms], [n, n ? median : undefined]);
			const [used, failed, error, since] = await row(client, key.name, 'used_at, failed_at, fail_error, health_at');
			const ms = (v) => (v === undefined ? 'NULL' : String(at(v)));
			assert.deepEqual([ms(key.used_at), ms(key.failed_at), key.last_error ?? 'NULL', ms(key.health_since)],
				[used, failed, error, since]);
			assert.deepEqual([key.options, key.timeout_max_s, key.price, key.rates],
				[tunnel.options, tunnel.timeout_max_s, tunnel.price, tunnel.rates]);
		}
		assert.deepEqual(keys.map((k) => [k.health, k.last_error, k.creates]),
			[['healthy', 'upstream_error', 4], ['healthy', undefined, 5], ['untried', undefined, 0]]);
	});

	test('every price is there twice, as a sentence and as numbers of the same date', async () => {
		const { client } = await customer(hub, ['a']);
		const { providers } = (await client.rest('list_providers')).json;
		assert.ok(providers.filter((p) => p.rates).length >= 5);
		for (const { name, price, rates } of providers) {
			assert.equal(price === undefined, rates === undefined, name);
			if (!rates) continue;
			assert.match(rates.as_of, /^20\d\d(-[01]\d)?$/, name);
			for (const n of [rates.cpu_hour_usd, rates.gib_hour_usd, rates.sandbox_hour_usd].filter(Boolean))
				assert.ok(price.includes(`$${n}`), `${name}: ${n}`);
		}
	});

	test('an estimate is seconds times rate, from the rows, and is called one', async () => {
		const { client } = await customer(hub, ['a']);
		const free = await client.job({ cmd: 'sleep 1' });
		const box = `sandbox WHERE job = ${idHex(free.job_id)}`;
		assert.deepEqual([free.cost_estimate.estimate, free.cost_estimate.usd], [true, 0]);
		await until('it is stopped', async () => await sqlOne(`SELECT state FROM ${box}`) === 'stopped');
		await sql(`UPDATE sandbox SET provider = 'vercel', rate_micros = 340800000 WHERE job = ${idHex(free.job_id)}`);
		const [[created, waited, stopped]] = await sql(`SELECT created_at, waited_ms, stopped_at FROM ${box}`);
		const ms = Number(stopped) - Number(created) - Number(waited);
		assert.ok(ms >= 1000);
		for (const way of ['rest', 'mcp']) {
			const { cost_estimate: cost } = (await client[way]('get_job', { job_id: free.job_id })).json;
			assert.equal(cost.usd, Math.round(ms * 340800000 / 3600000) / 1e6);
			assert.deepEqual([cost.usd_per_hour, cost.seconds, cost.prices_of], [340.8, Math.round(ms / 1000), '2026']);
			assert.match(cost.note, /^At most/);
		}
		await sql(`UPDATE sandbox SET provider = 'runloop', rate_micros = NULL WHERE job = ${idHex(free.job_id)}`);
		const { cost_estimate: unknown } = await client.get(free.job_id);
		assert.deepEqual([unknown.usd, unknown.usd_per_hour, unknown.prices_of], [null, null, null]);
		assert.match(unknown.note, /not known/);
	});

	test('of a running job it is what it cost so far', async () => {
		const { client } = await customer(hub, ['a']);
		const job = await client.job({ cmd: 'sleep 60', wait_s: 0 });
		await sql(`UPDATE sandbox SET rate_micros = 3600000000, created_at = created_at - 10000 WHERE job = ${idHex(job.job_id)}`);
		const seen = await until('it lives', async () => {
			const { cost_estimate: cost } = await client.get(job.job_id, { wait_s: 0 });
			return cost.seconds > 0 && cost;
		});
		assert.ok(seen.seconds >= 10 && seen.usd >= 10 && seen.usd < 100, JSON.stringify(seen));
		await client.rest('cancel_job', { job_id: job.job_id });
	});
});
