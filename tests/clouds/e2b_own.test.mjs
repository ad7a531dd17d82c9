// What is E2B's alone: older servers and daemons, limits of a plan, and what its users reported as bugs of
// others (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { allowOrigins, sql } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { start } from '../simulators/e2b/index.mjs';
import { open } from './places.mjs';
import { LEAK, Stage } from './stage.mjs';
import { once } from './trouble.mjs';

const s = new Stage(await open('e2b'));
const { sim } = s.place;
const old = await start({ onlyV1: true, daemon: '0.5.0' });
const astray = await start({ domain: 'elsewhere.example' });

const closed = { status: 502, headers: { 'content-type': 'application/json' },
	body: JSON.stringify({ sandboxId: 'x', message: 'The sandbox is running but port is not open', code: 502 }) };
const text504 = { status: 504, headers: { 'content-type': 'text/plain' }, body: 'upstream request timeout' };
const unplaced = { status: 500, headers: { 'content-type': 'application/json' },
	body: JSON.stringify({ code: 500, message: `Failed to place sandbox ${LEAK}` }) };

const page = { status: 200, headers: { 'content-type': 'text/html' }, body: LEAK };

const run = (key, args = {}) => s.client.rest('run_job', { key, cmd: once('exit 3'), wait_s: 200, ...args });
const save = (name, args) => s.client.rest('save_provider_key', { provider: 'e2b', name, ...args });
const living = (place) => place.boxes().filter((box) => box.ended === undefined);

/** The simulator as one test wants it, and as it was. */
async function with_(change, fn) {
	const before = { ...sim.plan };
	change(sim);
	try {
		await fn();
	} finally {
		Object.assign(sim.plan, before);
		sim.blocked = undefined;
		sim.chunk = 32768;
	}
}

describe('e2b alone', () => {
	before(async () => {
		await s.start();
		await allowOrigins([sim.url, old.url, astray.url]);
		assert.equal((await save('e2b', sim.credential)).status, 200);
	});
	after(async () => {
		await s.stop();
		await old.stop();
		await astray.stop();
	});

	test('an older server with older daemons runs jobs with files', async () => {
		const saved = await save('old', { token: old.key, api_url: `${old.url}/` });
		assert.equal(saved.status, 200, saved.text);
		const { json } = await run('old', { cmd: 'cat f; exit 4', files: [{ path: 'f', content: 'kept' }] });
		assert.deepEqual([json.outcome, json.exit_code, json.stdout], ['failed', 4, 'kept'], JSON.stringify(json));
		await s.settled(json);
		assert.deepEqual(living(old), []);
		assert.equal(old.boxes().length, 1);
		assert.equal(old.log.some(({ headers }) => /^multipart/.test(headers['content-type'] ?? '')), true);
	});

	test('a server that leads to a host that is not its own: nothing is sent there, and the sandbox ends', async () => {
		assert.equal((await save('astray', { token: astray.key, api_url: astray.url })).status, 200);
		const { json } = await run('astray');
		assert.deepEqual([json.outcome, json.error.code], ['provider_error', 'upstream_unsure']);
		assert.match(json.error.detail, /not below its own domain/);
		assert.ok(!JSON.stringify(json).includes('elsewhere'));
		await s.settled(json);
		assert.equal(astray.boxes().length, 1);
		assert.deepEqual(living(astray), []);
		assert.equal(astray.count('exec') + astray.count('put'), 0);
	});

	test('what answers is not E2B', async () => {
		const rule = old.rule({ op: 'check' }, 'answer', page);
		const list = old.rule({ op: 'list' }, 'answer', page);
		const reply = await save('no-e2b', { token: 'any form of a key', api_url: old.url });
		rule.release();
		list.release();
		assert.equal(reply.json.code, 'key_check_failed');
		assert.equal(reply.json.field, 'api_url');
		assert.match(reply.json.detail, /is not E2B/);
	});

	test('a key that is unknown, and one whose team is blocked', async () => {
		const unknown = await save('unknown', { token: `e2b_${'0'.repeat(40)}` });
		assert.deepEqual([unknown.json.code, unknown.json.field], ['key_refused', 'token']);
		assert.match(unknown.json.detail, /does not know the key/);
		await with_((place) => { place.blocked = LEAK; }, async () => {
			const blocked = await save('blocked', sim.credential);
			assert.deepEqual([blocked.json.code, blocked.json.field], ['key_refused', 'token']);
			assert.match(blocked.json.detail, /has blocked the team/);
			assert.ok(!blocked.text.includes(LEAK));
		});
	});

	test('a template that does not exist, and sizes that belong to templates', async () => {
		const { json } = await run('e2b', { template: 'none' });
		assert.deepEqual([json.outcome, json.error.code, json.sandbox], ['provider_error', 'bad_input', 'none']);
		assert.match(json.error.detail, /no such template/);
		for (const [field, value] of [['memory_mb', 1024], ['cpu', 4], ['runtime', 'python']]) {
			const reply = await run('e2b', { [field]: value });
			assert.deepEqual([reply.json.code, reply.json.field], ['unsupported', field]);
		}
	});

	test('the plan ends sandboxes sooner than the job would: told with the number', () =>
		with_((place) => { place.plan.lifeS = 3600; }, async () => {
			const { json } = await run('e2b', { timeout_s: 3600 });
			assert.equal(json.error.code, 'bad_input');
			assert.match(json.error.detail, /at most 3480 s/);
			assert.equal((await run('e2b', { timeout_s: 3480 })).json.exit_code, 3);
		}));

	test('as many sandboxes as the plan allows: told as that, after no useless waiting', () =>
		with_((place) => { place.plan.concurrency = 0; }, async () => {
			const { json } = await run('e2b');
			assert.deepEqual([json.outcome, json.error.code], ['provider_error', 'upstream_limit']);
			assert.match(json.error.detail, /as many sandboxes/);
			assert.deepEqual([json.sandbox, living(sim).length], ['none', 0]);
		}));

	test('the daemon is not up yet when the sandbox is (#684, #812, #863)', async () => {
		const rules = ['put', 'exec'].map((op) => sim.rule({ op }, 'answer', { times: 2, ...closed }));
		const { json } = await run('e2b');
		assert.deepEqual([json.outcome, json.exit_code], ['failed', 3], JSON.stringify(json));
		assert.deepEqual(rules.map(({ count }) => count), [2, 2]);
		await s.settled(json);
	});

	for (const [name, reply] of [['504 in plain text (#1038)', text504], ['500, not placed (#1038)', unplaced]])
		test(`a create that is answered with ${name} is uncertain, and what it made is ended`, async () => {
			sim.rule({ op: 'create' }, 'replace', { times: 1, ...reply });
			const { json } = await run('e2b');
			assert.deepEqual([json.outcome, json.error.code], ['provider_error', 'upstream_unsure']);
			await s.settled(json);
			assert.deepEqual(living(sim), []);
		});

	test('a create whose reply comes late has a sandbox that is found (#1130)', async () => {
		const rule = sim.rule({ op: 'create' }, 'hold-reply', { times: 1 });
		const began = await run('e2b', { wait_s: 0 });
		await rule.seen;
		await until('it runs there', () => living(sim).length === 1);
		const job = await s.ends(began.json, 'provider_error');
		assert.equal(job.error.code, 'upstream_unsure');
		await s.settled(job);
		rule.release();
		assert.deepEqual(living(sim), []);
	});

	test('a create that a proxy repeated: all of one mark end, whether its reply was lost or not', async () => {
		sim.twins = 2;
		const lost = sim.rule({ op: 'create' }, 'cut', { times: 1 });
		const first = (await run('e2b')).json;
		assert.equal(lost.count, 1);
		await s.settled(first);
		assert.deepEqual(living(sim), []);
		sim.twins = 1;
		const { json } = await run('e2b');
		assert.equal(json.exit_code, 3);
		await s.settled(json);
		assert.equal(living(sim).length, 1);
		const [[, , mark]] = await s.sandboxes(json);
		await sql(`UPDATE sandbox SET created_at = created_at - 600000 WHERE mark = '${mark}'`);
		await until('the sweep ends the other one', () => living(sim).length === 0);
	});

	test('no deadline goes along with a command, which the daemon would kill at it (#1074)', () => {
		assert.ok(sim.count('exec') > 0);
		for (const { headers } of sim.log) assert.equal(headers['connect-timeout-ms'], undefined);
	});

	test('a character that is split over frames comes out whole (#505)', () =>
		with_((place) => { place.chunk = 1; }, async () => {
			const { json } = await run('e2b', { cmd: "printf 'für 日本 🚀'; printf 'é' >&2" });
			assert.deepEqual([json.stdout, json.stderr], ['für 日本 🚀', 'é']);
		}));

	test('the children of a command end with it (#1031, #1034)', async () => {
		const stop = sim.rule({ op: 'destroy' }, 'hold', { times: 1 });
		const began = await run('e2b', { cmd: 'sleep 400 & setsid sleep 400 & sleep 400', timeout_s: 1, wait_s: 0 });
		await stop.seen;
		assert.equal(await s.processesOf(began.json), 0);
		stop.release();
		await s.settled(await s.ends(began.json, 'timed_out'));
	});

	test('the key goes to the API alone, a token of a sandbox to that sandbox alone', () => {
		const tokens = new Map(sim.boxes().map(({ id }) => [id, sim.box(id).token]));
		for (const { op, headers } of sim.log) {
			const box = headers['e2b-sandbox-id'];
			assert.equal(headers['x-access-token'], box && tokens.get(box), op);
			assert.equal(headers['x-api-key'] !== undefined, box === undefined, op);
		}
	});
});
