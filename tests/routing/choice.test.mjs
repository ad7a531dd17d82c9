// Which key a job gets: named, default, order, turns; when it goes on to the next one, and what it
// tells of that.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { idHex, sql, sqlOne } from '../lib/instance.mjs';
import { change, CANNOT, CREATE, creates, customer, drivers, REFUSES, row, save, stage, together, tried }
	from './stage.mjs';

let hub;
before(async () => {
	hub = await stage();
});
after(() => hub?.stop());

describe('priority', { concurrency: 4 }, () => {
	test('the default key comes first, whatever its place', async () => {
		const { client } = await customer(hub, ['a', 'b', 'c'], { default_key: 'b' });
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual([job.key, job.outcome, tried(job)], ['b', 'succeeded', [['b']]]);
	});

	test('without a default the order decides', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { default_key: '', order: ['c', 'a'] });
		for (const name of ['c', 'a']) lanes[name].rule(CREATE, 'answer', REFUSES);
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual(tried(job), [['c', 'upstream_error'], ['a', 'upstream_error'], ['b']]);
	});

	test('after the default the others follow in their order', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { order: ['c', 'b', 'a'] });
		for (const name of ['a', 'c']) lanes[name].rule(CREATE, 'answer', REFUSES);
		assert.deepEqual(tried(await client.job({ cmd: 'true' })),
			[['a', 'upstream_error'], ['c', 'upstream_error'], ['b']]);
	});

	test('make_default of a key is the same setting', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		await save(client, 'b', lanes.b, { make_default: true });
		assert.equal((await client.api('GET', '/api/account')).json.default_key, 'b');
		assert.equal((await client.job({ cmd: 'true' })).key, 'b');
	});

	test('a deleted default leaves the order', async () => {
		const { client } = await customer(hub, ['a', 'b', 'c'], { order: ['c', 'b', 'a'] });
		assert.equal((await client.rest('delete_provider_key', { name: 'a' })).status, 200);
		const { json } = await client.api('GET', '/api/account');
		assert.deepEqual([json.default_key, json.order], [null, ['c', 'b']]);
		assert.equal((await client.job({ cmd: 'true' })).key, 'c');
	});

	test('an account\'s keys of another one are no keys here', async () => {
		const [one, other] = await Promise.all([customer(hub, ['a']), customer(hub, ['z'])]);
		const reply = await one.client.api('PATCH', '/api/account', { order: ['z'] });
		assert.deepEqual([reply.status, reply.json.code, reply.json.field], [404, 'key_not_found', 'order[0]']);
		const named = await one.client.rest('run_job', { cmd: 'true', key: 'z' });
		assert.equal(named.json.code, 'key_not_found');
		assert.equal(creates(other.lanes.z), 0);
	});

	test('many changes of the order at once leave one whole order', async () => {
		const names = ['a', 'b', 'c', 'd'];
		const { client } = await customer(hub, names);
		const orders = [['a', 'b', 'c', 'd'], ['d', 'c', 'b', 'a'], ['b', 'd', 'a', 'c'], ['c', 'a', 'd', 'b']];
		const given = await Promise.all([...orders, ...orders].map((order) => change(client, { order })));
		for (const settings of given) assert.deepEqual([...settings.order].sort(), names);
		const last = (await client.api('GET', '/api/account')).json.order;
		assert.ok(orders.some((o) => o.join() === last.join()), last.join());
		const places = await sql(`SELECT rank_no FROM provider_key WHERE account = ${idHex(client.account)}`);
		assert.deepEqual(places.flat().map(Number).sort(), [0, 1, 2, 3]);
	});
});

describe('fallback', { concurrency: 4 }, () => {
	test('each attempt is told with its key, error, words and time', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		const job = await client.job({ cmd: 'echo here' });
		assert.deepEqual([job.outcome, job.key, job.stdout], ['succeeded', 'b', 'here\n']);
		const [first, second] = job.attempts;
		assert.deepEqual([first.provider, first.key, first.sandbox, first.error, first.detail],
			['tunnel', 'a', 'absent', 'upstream_error', 'the bridge answered with status 400']);
		assert.deepEqual([second.provider, second.key, second.error, second.detail],
			['tunnel', 'b', undefined, undefined]);
		assert.ok(first.create_ms >= 0 && second.create_ms > 0);
		assert.deepEqual((await client.get(job.job_id)).attempts[0], first, 'get_job tells the same');
	});

	test('off: one attempt, and its own error', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b'], { fallback: false });
		lanes.a.rule(CREATE, 'answer', REFUSES);
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual([job.outcome, job.error.code], ['provider_error', 'upstream_error']);
		assert.deepEqual(tried(job), [['a', 'upstream_error']]);
		assert.equal(creates(lanes.b), 0);
		await change(client, { fallback: true });
		assert.equal((await client.job({ cmd: 'true' })).key, 'b');
	});

	test('never when a key was named', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.b.rule(CREATE, 'answer', REFUSES);
		for (const args of [{ key: 'b' }, { provider: 'b' }]) {
			const job = await client.job({ cmd: 'true', ...args });
			assert.deepEqual([job.outcome, job.error.code, tried(job)],
				['provider_error', 'upstream_error', [['b', 'upstream_error']]]);
		}
		assert.equal(creates(lanes.a), 0);
	});

	test('never when a provider was named, although it has another key', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		const job = await client.job({ cmd: 'true', provider: 'tunnel' });
		assert.deepEqual(tried(job), [['a', 'upstream_error']]);
		assert.equal(creates(lanes.b), 0);
	});

	test('only on create: a failed upload ends the job where it is', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule({ method: 'PUT', path: /\/file\?/ }, 'drop');
		const job = await client.job({ cmd: 'true' });
		assert.equal(job.outcome, 'provider_error');
		assert.equal(job.attempts.length, 1);
		assert.equal(creates(lanes.b), 0);
		assert.equal((await row(client, 'a', 'fails, fail_error')).join(), '1,upstream_unsure', 'but it counts');
	});

	test('a wish that one key can not fulfil goes to the next one, and nobody is blamed', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule(CREATE, 'answer', CANNOT);
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual(tried(job), [['a', 'unsupported'], ['b']]);
		assert.deepEqual(await row(client, 'a', 'fails, failed_at'), ['0', 'NULL']);
	});

	test('a lost answer: the next key is asked, and the cost is not known until the first is', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		lanes.a.rule(CREATE, 'drop', { times: 1 });
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual(tried(job), [['a', 'upstream_unsure'], ['b']]);
		assert.equal(job.attempts[0].sandbox, 'unsure');
		assert.equal(job.cost_estimate.usd, null);
		assert.match(job.cost_estimate.note, /not known yet/);
	});

	test('all fail: one error with a line for each key', async () => {
		const { client, lanes } = await customer(hub, ['a', 'key of mine', 'c']);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		lanes['key of mine'].rule(CREATE, 'answer', { status: 401, body: '{}' });
		lanes.c.rule(CREATE, 'answer', { status: 429, headers: { 'Retry-After': '3600' }, body: '{}' });
		const want = ['a (tunnel): upstream_error, the bridge answered with status 400',
			'key of mine (tunnel): key_refused, the bridge does not accept the token',
			'c (tunnel): upstream_limit, the bridge takes no more at the moment'];
		for (const way of ['rest', 'mcp']) {
			const reply = await client[way]('run_job', { cmd: 'true' });
			assert.equal(reply.status, 200);
			const job = reply.json;
			assert.deepEqual([job.state, job.outcome, job.sandbox], ['ended', 'provider_error', 'none']);
			assert.equal(job.error.code, 'all_providers_failed');
			assert.deepEqual(job.error.detail.split('\n'), want);
			assert.deepEqual(job.attempts.map((a) => a.sandbox), ['absent', 'absent', 'absent']);
			assert.deepEqual([job.cost_estimate.usd, job.cost_estimate.seconds], [0, 0]);
			if (way === 'mcp') assert.equal(reply.isError, true);
		}
		const listed = (await client.rest('list_jobs')).json.jobs[0];
		assert.match(listed.error.detail, /^3 keys were tried/);
	});

	test('a single key that fails keeps its own error', async () => {
		const { client, lanes } = await customer(hub, ['a']);
		lanes.a.rule(CREATE, 'answer', REFUSES);
		const job = await client.job({ cmd: 'true' });
		assert.deepEqual([job.error.code, job.error.detail], ['upstream_error', 'the bridge answered with status 400']);
	});

	test('cancelled between two attempts: the second is not made', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b']);
		const rule = lanes.a.rule(CREATE, 'hold', { times: 1 });
		const job = await client.job({ cmd: 'true', wait_s: 0 });
		await rule.seen;
		lanes.a.target = new URL('http://127.0.0.1:1'); // where nobody listens
		await client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		rule.release();
		const ended = await client.get(job.job_id);
		assert.equal(ended.outcome, 'cancelled');
		assert.equal(creates(lanes.b), 0);
	});
});

describe('round-robin', { concurrency: 1 }, () => {
	/** How many jobs asked each key first. */
	const counts = async (client) => Object.fromEntries(await sql(`SELECT key_name, COUNT(*) FROM sandbox
		WHERE account = ${idHex(client.account)} AND attempt = 0 GROUP BY key_name ORDER BY key_name`));

	test('40 jobs at once over four keys: ten each, over more than one worker', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c', 'd'], { strategy: 'round-robin', fallback: false });
		for (const lane of Object.values(lanes)) lane.rule(CREATE, 'answer', CANNOT); // so the runner can keep up
		const jobs = await together(client, 40);
		assert.deepEqual(jobs.filter((j) => j.attempts.length !== 1 || j.error.code !== 'unsupported'), []);
		assert.deepEqual(await counts(client), { a: '10', b: '10', c: '10', d: '10' });
		assert.ok(await drivers(client) > 1, 'the cursor is not one process\'s own');
	});

	test('one after the other they follow the order, and the default is not special', async () => {
		const { client } = await customer(hub, ['a', 'b', 'c'],
			{ strategy: 'round-robin', order: ['c', 'a', 'b'], default_key: 'b' });
		const keys = [];
		for (let i = 0; i < 6; i++) keys.push((await client.job({ cmd: 'true' })).key);
		assert.deepEqual(keys.slice(0, 3), keys.slice(3));
		assert.ok('cabcab'.includes(keys.slice(0, 3).join('')), keys.join());
	});

	test('who falls back goes on in rotation', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { strategy: 'round-robin' });
		for (const name of ['a', 'b', 'c']) lanes[name].rule(CREATE, 'answer', CANNOT);
		const orders = [];
		for (let i = 0; i < 3; i++) orders.push((await client.job({ cmd: 'true' })).attempts.map((a) => a.key).join(''));
		assert.deepEqual(orders.sort(), ['abc', 'bca', 'cab']);
	});

	test('a sick key leaves its turns to the others in equal shares', async () => {
		const { client, lanes } = await customer(hub, ['a', 'b', 'c'], { strategy: 'round-robin', fallback: false });
		for (const lane of Object.values(lanes)) lane.rule(CREATE, 'answer', CANNOT);
		await sql(`UPDATE provider_key SET fails = 3, open_until = ${Date.now() + 3600000}
			WHERE account = ${idHex(client.account)} AND name = 'b'`);
		await together(client, 12);
		assert.deepEqual(await counts(client), { a: '6', c: '6' });
	});

	test('a named key takes no turn and is not in rotation', async () => {
		const { client } = await customer(hub, ['a', 'b'], { strategy: 'round-robin' });
		const turn = () => sqlOne(`SELECT turn FROM account WHERE id = ${idHex(client.account)}`);
		for (let i = 0; i < 2; i++) assert.equal((await client.job({ cmd: 'true', key: 'b' })).key, 'b');
		assert.equal(await turn(), '0');
		await client.job({ cmd: 'true' });
		assert.equal(await turn(), '1');
	});

	test('a job that is refused before it is one takes a turn from nobody else', async () => {
		const { client } = await customer(hub, ['a', 'b'], { strategy: 'round-robin' });
		const reply = await client.rest('run_job', { cmd: ' ' });
		assert.equal(reply.json.code, 'bad_input');
		assert.equal(await sqlOne(`SELECT turn FROM account WHERE id = ${idHex(client.account)}`), '0');
	});
});
