// Keys of several clouds on one account: each of them reaches its own provider and nobody else, also when
// a job falls back from one to the next, and no caller's key leaves (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { account, state, useSimulators } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded } from '../jobs/stage.mjs';
import { open } from './places.mjs';

const NAMES = ['vercel', 'e2b', 'daytona'];

describe('several clouds on one account', () => {
	const places = [];
	const texts = []; // of all answers
	let client;

	before(async () => {
		for (const name of NAMES) places.push(await open(name));
		await useSimulators(Object.fromEntries(places.map((place) => [place.name, place.sim])));
		client = await account('pro');
		for (const place of places)
			for (const secret of [client.key, ...places.filter((p) => p !== place).map((p) => p.token)]) place.secrets.add(secret);
	});
	after(() => Promise.all(places.map((place) => place.close())));

	const ended = async (args) => {
		const reply = await client.rest('run_job', { wait_s: 200, ...args });
		assert.equal(reply.status, 200, reply.text);
		texts.push(reply.text);
		return reply.json;
	};

	test('each key is saved and checked at its own provider', async () => {
		for (const place of places) {
			const reply = await place.save(client, place.name);
			assert.equal(reply.status, 200, reply.text);
			assert.equal(reply.json.checked, true);
			texts.push(reply.text);
			for (const other of places.filter((p) => p !== place && places.indexOf(p) > places.indexOf(place)))
				assert.equal(other.sim.log.length, 0, `${other.name} was not asked`);
		}
	});

	test('a job goes to the provider that was named, and to no other one', async () => {
		for (const place of places) {
			const before = places.map((p) => p.sim.count('create'));
			assertEnded(await ended({ cmd: 'echo here', provider: place.name }), 'succeeded');
			places.forEach((p, i) => assert.equal(p.sim.count('create') - before[i], p === place ? 1 : 0, p.name));
		}
	});

	test('a named provider that fails is not replaced by another one', async () => {
		const rule = places[0].sim.rule({ op: 'create' }, 'answer', { status: 401, headers: { 'content-type': 'application/json' },
			body: '{"error":{"code":"no","message":"no"}}' });
		const job = assertEnded(await ended({ cmd: 'true', provider: NAMES[0] }), 'provider_error');
		rule.release();
		assert.deepEqual(job.attempts.map((a) => a.provider), [NAMES[0]]);
	});

	test('without a name the next key is tried, and each provider sees its own key only', async () => {
		const rules = places.slice(0, 2).map((place) => place.sim.rule({ op: 'create' }, 'drop'));
		const job = assertEnded(await ended({ cmd: 'echo last' }), 'succeeded');
		for (const rule of rules) rule.release();
		assert.equal(job.stdout, 'last\n');
		assert.equal(job.provider, NAMES[2]);
		assert.deepEqual(job.attempts.map((a) => a.provider).sort(), [...NAMES].sort());
	});

	test('when all of them fail there is one error, and every attempt is told', async () => {
		const rules = places.map((place) => place.sim.rule({ op: 'create' }, 'answer', { status: 401,
			headers: { 'content-type': 'application/json' }, body: '{"error":{"code":"no","message":"no"}}' }));
		const job = assertEnded(await ended({ cmd: 'true' }), 'provider_error');
		for (const rule of rules) rule.release();
		assert.equal(job.attempts.length, NAMES.length);
		assert.equal(job.sandbox === 'running', false);
		assert.ok(job.attempts.every((a) => a.error === 'key_refused'), JSON.stringify(job.attempts));
	});

	test('nothing lives, no key was where it does not belong, and none is in an answer or a log', async () => {
		for (const place of places) {
			await until(`${place.name} has no sandbox`, async () =>
				(await place.boxes()).every((box) => box.ended !== undefined), 100000);
			assert.deepEqual(place.strays, [], place.name);
		}
		const logs = fs.readdirSync(path.join(state, 'log')).map((name) => fs.readFileSync(path.join(state, 'log', name)));
		for (const secret of [client.key, ...places.map((p) => p.token)]) {
			assert.ok(!texts.some((text) => text.includes(secret)));
			assert.ok(!logs.some((text) => text.includes(secret)));
		}
	});
});
