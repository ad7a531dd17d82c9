// What only Vercel Sandbox does: names and sessions, sizes in steps, streams that end early, refusals by
// code, and what public reports tell of its other clients (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { until } from '../lib/wait.mjs';
import { open } from './places.mjs';
import { LEAK, Stage } from './stage.mjs';
import { once, POLLED } from './trouble.mjs';

const s = new Stage(await open('vercel'));
const { sim } = s.place;
const plain = { ...sim.plan };
const ND = { 'content-type': 'application/x-ndjson' };
const begun = '{"command":{"id":"cmd_1","name":"sh","args":[],"cwd":"/","sessionId":"sbx_1","exitCode":null,"startedAt":1}}\n';

before(() => s.start());
afterEach(() => {
	sim.clear();
	Object.assign(sim.plan, plain);
});
after(() => s.stop());

const run = async (args) => s.end(await (await s.way()).start(args));
const markOf = async (job) => (await s.sandboxes(job))[0][2];
const told = async (job) => sim.told(await markOf(job));
/** A body that is made when it is sent. */
const late = (rule, body) => Object.defineProperty(rule.more, 'body', { get: body });
const refuse = (op, status, code, more = {}) => sim.rule({ op }, 'answer', { times: 1, status,
	headers: { 'content-type': 'application/json', ...more.headers }, body: JSON.stringify({ error: { code, message: LEAK } }), ...more });

// ---- the key -------------------------------------------------------------------------------------

for (const [what, change, field, words] of [
	['token', { token: 'another-token' }, 'token', /does not accept the token/],
	['team', { team_id: 'team_other' }, 'team_id', /accepts the token, but not for this team/],
	['project', { project_id: 'prj_other' }, 'project_id', /no such project/],
])
	test(`a wrong ${what} is told as that`, async () => {
		const reply = await s.place.save(s.client, 'wrong', change);
		assert.equal(reply.status, 400, reply.text);
		assert.deepEqual([reply.json.code, reply.json.field], ['key_refused', field]);
		assert.match(reply.text, words);
		assert.ok(!reply.text.includes('another-token'));
	});

test('a token without the right to the project is told as that', async () => {
	refuse('check', 403, 'forbidden');
	const reply = await s.place.save(s.client, 'wrong');
	assert.deepEqual([reply.json.code, reply.json.field], ['key_refused', 'project_id']);
	assert.ok(!reply.text.includes(LEAK));
});

test('an account that has to pay first is told as that', async () => {
	refuse('check', 402, 'payment_required');
	const reply = await s.place.save(s.client, 'wrong');
	assert.equal(reply.json.code, 'key_refused');
	assert.match(reply.text, /payment/);
});

test('a good key is checked with one request, and a team may be given by its name', async () => {
	sim.log.length = 0;
	const reply = await s.place.save(s.client, 'by-name', { team_id: 'the-team' });
	assert.equal(reply.status, 200, reply.text);
	assert.deepEqual(sim.log.filter((e) => e.op !== 'list').map((e) => e.op), ['check']);
});

// ---- what is asked for ---------------------------------------------------------------------------

test('a sandbox has our name, an end of its own, and keeps nothing', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 300', timeout_s: 100 });
	await s.runs(job);
	const { sandbox, session } = await told(job);
	assert.match(sandbox.name, /^cc-[a-z2-7]{6}-[a-z2-7]{26}$/);
	assert.equal(sandbox.persistent, false);
	assert.equal(session.timeout, 220000);
	assert.deepEqual(sandbox.tags, { 'made-by': 'compute-connector' });
	assert.equal((await s.sandboxes(job))[0][1], `${sandbox.name}/${session.id}`);
	await s.client.rest('cancel_job', { job_id: job.job_id });
	await s.settled(await s.ends(job, 'cancelled'));
});

for (const [args, wanted, version] of [
	[{ cpu: 4 }, { vcpus: 4, memory: 8192 }, 'v3'],
	[{ memory_mb: 2048 }, { vcpus: 1, memory: 2048 }, 'v3'],
	[{ cpu: 8, memory_mb: 16384 }, { vcpus: 8, memory: 16384 }, 'v3'],
	[{ runtime: 'node22' }, { runtime: 'node22', vcpus: 2 }, 'v2'],
	[{ template: 'vercel/sandbox/python:3.14' }, { image: 'vercel/sandbox/python:3.14' }, 'v3'],
])
	test(`${JSON.stringify(args)} is given`, async () => {
		sim.log.length = 0;
		const job = await run({ cmd: 'echo it', ...args });
		assert.equal(job.stdout, 'it\n', JSON.stringify(job.error));
		const { sandbox } = await told(job);
		for (const [key, value] of Object.entries(wanted)) assert.equal(sandbox[key], value);
		assert.equal(sim.log.find((e) => e.op === 'create').path, `/api/${version}/sandboxes`);
		await s.settled(job);
	});

for (const [args, words] of [
	[{ cpu: 3 }, /1, 2, 4/],
	[{ cpu: 64 }, /32 on Enterprise/],
	[{ memory_mb: 3000 }, /2048 MB for each cpu/],
	[{ memory_mb: 4096, cpu: 4 }, /2048 MB for each cpu/],
	[{ runtime: 'node18' }, /node22, node24, node26 and python3.13/],
	[{ runtime: 'node22', template: 'vercel/sandbox/node:24' }, /not both/],
])
	test(`${JSON.stringify(args)} is refused by name before anything is sent`, async () => {
		sim.log.length = 0;
		const job = await run({ cmd: 'true', ...args });
		assert.equal(job.error.code, 'unsupported', JSON.stringify(job));
		assert.match(job.error.detail, words);
		assert.equal(sim.count('create'), 0);
	});

test('a size and an image that the service does not give are told as that', async () => {
	const larger = await run({ cmd: 'true', cpu: 16 });
	assert.deepEqual([larger.outcome, larger.error.code], ['provider_error', 'unsupported']);
	const image = await run({ cmd: 'true', template: 'nobody/has-it' });
	assert.equal(image.error.code, 'unsupported');
	assert.match(image.error.detail, /image/);
});

test('a job that is longer than the plan allows is refused with the numbers', async () => {
	sim.plan.maxLifeMs = 45 * 60000;
	const job = await run({ cmd: 'true', timeout_s: 2600 });
	assert.equal(job.error.code, 'bad_input');
	assert.match(job.error.detail, /2580 s/);
	const fits = await run({ cmd: 'echo a', timeout_s: 2580 });
	assert.equal(fits.outcome, 'succeeded');
	await s.settled(fits);
});

// ---- create --------------------------------------------------------------------------------------

for (const [status, code, error, words] of [
	[400, 'bad_request', 'upstream_error', /status 400/],
	[401, 'unauthorized', 'key_refused', /token/],
	[402, 'payment_required', 'key_refused', /payment/],
	[403, 'forbidden', 'key_refused', /team and project/],
	[404, 'not_found', 'key_refused', /no such project/],
])
	test(`a create that is refused with ${status} has its own error and is not repeated`, async () => {
		const way = await s.way();
		const rule = refuse('create', status, code);
		const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
		assert.equal(job.error.code, error);
		assert.match(job.error.detail, words);
		assert.equal(rule.count, 1);
		await s.settled(job);
		assert.deepEqual(await way.living(), []);
	});

test('a name that exists already is a create that happened', async () => {
	const way = await s.way();
	const body = JSON.stringify({ error: { code: 'bad_request', message: "A sandbox with the name 'x' already exists for this project." } });
	way.rule('create', 'replace', { times: 1, status: 400, headers: { 'content-type': 'application/json' }, body });
	const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
	assert.equal(job.error.code, 'upstream_unsure');
	await s.settled(job);
	assert.deepEqual(await way.living(), []);
});

for (const status of ['failed', 'aborted', 'stopped'])
	test(`a new sandbox that is ${status} is not waited for`, async () => {
		const way = await s.way();
		const rule = way.rule('create', 'replace', { times: 1, status: 200, headers: { 'content-type': 'application/json' } });
		late(rule, () => JSON.stringify({ sandbox: { name: [...way.marks][0], status, currentSessionId: 'sbx_1' },
			session: { id: 'sbx_1', status }, routes: [] }));
		const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
		assert.equal(job.error.code, 'upstream_unsure');
		await s.settled(job);
		assert.deepEqual(await way.living(), []);
	});

// ---- commands ------------------------------------------------------------------------------------

// Both objects of a command hold its scripts, so that once and a half their size lies between them.
const half = (scripts) => Math.floor(1.5 * scripts.map((name) =>
	JSON.stringify(fs.readFileSync(`${process.env.CC_ROOT}/providers/spool/${name}.sh`, 'utf8')).length).reduce((a, b) => a + b));
const CUTS = {
	'in the middle of the first object': ['cut-body', { bytes: 40 }],
	'before the last object': ['cut-body', (scripts) => ({ bytes: half(scripts) })],
	'with a line that tells that it was closed': ['replace', { status: 200, headers: ND,
		body: `${begun}{"stream":"error","data":{"code":"sandbox_stream_closed","message":"${LEAK}"}}\n` }],
	'as if all was well': ['replace', { status: 200, headers: ND, body: begun }],
	'with nothing at all': ['replace', { status: 200, headers: ND, body: '' }],
	'with the code of another command': ['replace', { status: 200, headers: ND, body: `${begun}{"command":{"id":"cmd_2","exitCode":0}}\n` }],
	'with an error body as output': ['replace', { status: 200, headers: { 'content-type': 'application/json' },
		body: JSON.stringify({ error: { code: 'bad_request', message: LEAK } }) }],
};
for (const [how, [act, more]] of Object.entries(CUTS))
	test(`streams that end ${how} are no result, and the command runs once`, async () => {
		const way = await s.way();
		const spoils = [['start', 'poll'], ['poll']].map((scripts) => (typeof more === 'function' ? more(scripts) : more));
		const rules = [way.rule('exec', act, { times: 1, ...spoils[0] }), way.rule('exec', act, { skip: 1, times: 1, ...spoils[1] })];
		const job = await s.ends(await way.start({ cmd: once(`${POLLED}echo ran; exit 6`) }), 'failed');
		assert.deepEqual([job.exit_code, job.stdout], [6, 'ran\n']);
		for (const rule of rules) assert.equal(rule.count, 1);
		await s.settled(job);
	});

test('a code that was told is kept when the connection breaks after it', async () => {
	const way = await s.way();
	const rule = way.rule('exec', 'cut-body', { bytes: 1 << 20 });
	const job = await s.ends(await way.start({ cmd: once('echo ran; exit 6') }), 'failed');
	assert.deepEqual([job.exit_code, job.stdout], [6, 'ran\n']);
	assert.ok(rule.count >= 1 && rule.count <= 3, `${rule.count} commands for start and polls`);
	await s.settled(job);
});

test('bytes that are no text come back as they were', async () => {
	const job = await run({ cmd: 'printf "\\377\\000\\303"; printf "\\200" >&2', base64_output: true });
	const done = await s.client.get(job.job_id, { base64_output: true });
	const bytes = JSON.stringify(done);
	assert.ok(bytes.includes(Buffer.from([0xff, 0, 0xc3]).toString('base64')), bytes);
	await s.settled(job);
});

// ---- the end -------------------------------------------------------------------------------------

test('a sandbox that reached its end under a running command is gone, and is deleted', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 300', timeout_s: 400 });
	await s.runs(job);
	sim.expire(await markOf(job));
	const done = await s.ends(job, 'lost');
	assert.equal(done.error.code, 'sandbox_gone');
	await s.settled(job);
});

for (const code of ['sandbox_stopping', 'sandbox_snapshotting'])
	test(`a stop that is answered with ${code} is asked for again`, async () => {
		const way = await s.way();
		const rule = way.rule('destroy', 'answer', { times: 2, status: 422, headers: { 'content-type': 'application/json' },
			body: JSON.stringify({ error: { code, message: LEAK } }) });
		const job = await s.ends(await way.start({ cmd: 'true' }), 'succeeded');
		await s.settled(job);
		assert.equal(rule.count, 2);
		assert.deepEqual(await way.living(), []);
	});

test('a stop whose answer says "running" is no proof', async () => {
	const way = await s.way();
	const rule = way.rule('destroy', 'replace', { times: 1, status: 200, headers: { 'content-type': 'application/json' } });
	late(rule, () => JSON.stringify({ sandbox: { name: [...way.marks][0], status: 'running' } }));
	const job = await s.ends(await way.start({ cmd: 'true' }), 'succeeded');
	await s.settled(job);
	assert.equal(way.count('destroy'), 2);
});

test('the sweep reads every page', async () => {
	const job = await run({ cmd: 'true' });
	await s.settled(job);
	const prefix = (await markOf(job)).slice(0, 'cc-xxxxxx-'.length);
	const before = s.logged('sandbox.without_row');
	const ids = [];
	for (const c of 'abcdefgh') ids.push(await s.place.plant(`${prefix}${c.repeat(26)}`));
	assert.ok(ids.length > 2 * sim.plan.page);
	await until('all are told', () => s.logged('sandbox.without_row') >= before + ids.length);
	for (const id of ids) await s.place.vanish(id);
});

test('after all that nothing lives and nothing is stored', async () => {
	await until('nothing lives', () => sim.boxes().every((box) => box.state === 'stopped'));
	assert.deepEqual(sim.snapshots(), []);
	assert.deepEqual(s.place.strays, []);
});
