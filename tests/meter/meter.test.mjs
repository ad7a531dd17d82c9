// The daily limit is exact: over two workers and 64 callers at once, with and without a key, mixed with
// calls that are refused for their arguments, and across midnight UTC.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { account, children, dev, idHex, ready, service, sql, sqlOne } from '../lib/instance.mjs';
import { Client } from '../lib/client.mjs';
import { pause, until } from '../lib/wait.mjs';

const CALLERS = 64;
const LIMITS = { anonymous: 150, free: 170, pro: 190 };
const DAY_S = 86400;
const NEAR_S = 45; // so long before midnight the shifted server starts

const CHECK = ['check_memory', { total_mb: 8000, free_mb: 4000 }];
// Refused by the handler, after the call was counted.
const BAD = ['run_job', { cmd: 'true', files: [{ path: 'a', content: '' }, { path: 'a', content: '' }] }];

/** Calls of 64 callers until `enough(tally)`; tally: { 200: n, 400: n, 429: n }. */
async function storm(client, enough, withBad) {
	const tally = { 200: 0, 400: 0, 429: 0, other: [] };
	let turn = 0;
	await Promise.all(Array.from({ length: CALLERS }, async () => {
		while (!enough(tally)) {
			turn += 1;
			const [tool, args] = withBad && turn % 3 === 0 ? BAD : CHECK;
			const reply = await client.rest(tool, args);
			if (!(reply.status in tally)) {
				tally.other.push(`${reply.status} ${reply.text}`);
				await pause(50);
				continue;
			}
			tally[reply.status] += 1;
			if (reply.status !== 429) continue;
			assert.equal(reply.json.code, 'quota_used_up');
			assert.ok(Number(reply.headers['retry-after']) > 0);
			assert.match(reply.json.detail, /midnight UTC/);
			await pause(20);
		}
	}));
	assert.deepEqual(tally.other, []);
	return tally;
}

const refusedOften = (tally) => tally[429] >= CALLERS * 3;

const used = async (client) => {
	const reply = await client.rest('usage_and_upgrade');
	assert.equal(reply.status, 200, reply.text);
	return reply.json;
};

describe('the limit of a day', () => {
	before(async () => {
		assert.equal((await children()).worker.length, 2);
	});

	for (const plan of ['free', 'pro'])
		test(`exactly ${LIMITS[plan]} calls of a ${plan} account are accepted`, async () => {
			const client = await account(plan);
			const tally = await storm(client, refusedOften);
			assert.equal(tally[200], LIMITS[plan]);
			const usage = await used(client);
			assert.equal(usage.used, LIMITS[plan]);
			assert.equal(usage.remaining, 0);
			const over = await client.mcp(...CHECK);
			assert.ok(over.isError || over.error, 'MCP refuses as well');
			assert.match(over.text, /quota_used_up/);
		});

	test('calls that are refused for their arguments take nothing away', async () => {
		const client = await account('pro');
		const tally = await storm(client, refusedOften, true);
		// A refused call may hold a place for a moment; nobody loses it for good.
		const rest = await storm(client, (t) => t[429] >= CALLERS);
		assert.ok(tally[400] > 0, 'some were refused for their arguments');
		assert.equal(tally[200] + rest[200], LIMITS.pro);
	});

	test('exactly the limit is accepted from callers without a key', async () => {
		const tally = await storm(new Client(dev.url), refusedOften);
		assert.equal(tally[200], LIMITS.anonymous);
		const usage = await used(new Client(dev.url));
		assert.equal(usage.used, LIMITS.anonymous);
	});

	test('0 accounts a day means none, the first one included', async () => {
		const reply = await new Client(dev.url).api('POST', '/api/key', {});
		assert.equal(reply.status, 429, reply.text);
		assert.equal(reply.json.code, 'rate_limited');
	});
});

describe('across midnight UTC', () => {
	let shift;

	before(async () => {
		const now = Date.now() / 1000;
		shift = Math.round(DAY_S - NEAR_S - (now % DAY_S));
		if (shift < 0) shift += DAY_S;
		process.env.CC_CLOCK_SHIFT_S = String(shift + 2 * DAY_S);
		await service('restart', 'connector');
		await ready();
	});
	after(async () => {
		delete process.env.CC_CLOCK_SHIFT_S;
		await service('restart', 'connector');
	});

	test('each day accepts its limit, and the callers who wait get the next day', async () => {
		const clients = [await account('pro'), await account('free'), new Client(dev.url)];
		const limits = [LIMITS.pro, LIMITS.free, LIMITS.anonymous];
		// Each one calls on until it was accepted on the second day and refused again.
		const tallies = await Promise.all(clients.map((client, i) => {
			// Refusals of the first day may arrive after the first acceptance of the second one.
			let [accepted, refused] = [0, 0];
			return storm(client, (t) => {
				if (t[200] !== accepted) [accepted, refused] = [t[200], t[429]];
				return accepted > limits[i] && t[429] - refused >= CALLERS * 2;
			}, i === 0);
		}));
		tallies.forEach((t, i) => assert.equal(t[200], 2 * limits[i]));
		for (const [i, client] of clients.slice(0, 2).entries()) {
			const rows = await sql(`SELECT n FROM usage_day WHERE account = ${idHex(client.account)} ORDER BY day`);
			assert.deepEqual(rows, [[String(limits[i])], [String(limits[i])]]);
		}
		const anonymous = await sql("SELECT n FROM address_day WHERE kind = 'call' ORDER BY day DESC LIMIT 2");
		assert.deepEqual(anonymous, [[String(LIMITS.anonymous)], [String(LIMITS.anonymous)]]);
		assert.equal(await sqlOne('SELECT MAX(n) > 190 FROM usage_day'), '0');
		await until('the server is well', async () => (await used(clients[0])).remaining === 0);
	});
});
