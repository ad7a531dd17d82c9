// What only Daytona does: slow and failing starts, timers that are not known, daemons that die, refusals by
// words, and what its own issue tracker tells.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { sql } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { open } from './places.mjs';
import { LEAK, Stage } from './stage.mjs';

const s = new Stage(await open('daytona'));
const { sim } = s.place;
const { plan } = sim;
const plain = { ...plan };
const JSON_TYPE = { 'content-type': 'application/json' };

before(() => s.start());
afterEach(() => {
	sim.clear();
	Object.assign(plan, plain);
});
after(() => s.stop());

const run = async (args) => s.end(await (await s.way()).start(args));
const only = (job) => job.attempts[0];
/** The simulator's own view of a job's sandbox. */
const inside = async (job) => sim.box((await s.sandboxes(job))[0][2]);
const refuse = (op, status, message, times = 1) => sim.rule({ op }, 'answer', { times, status, headers: JSON_TYPE,
	body: JSON.stringify({ statusCode: status, error: 'E', message: `${message} ${LEAK}`, path: '/' }) });

// ---- create --------------------------------------------------------------------------------------

test('a sandbox has our name and label, a hard end, and deletes itself when it stops', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 2', timeout_s: 100 });
	await s.runs(job);
	const box = (await inside(job)).told();
	assert.match(box.name, /^cc-[a-z2-7]{6}-[a-z2-7]{26}$/);
	assert.equal(box.labels['cc-install'], box.name.slice(0, 9));
	assert.equal(box.autoDeleteInterval, 0);
	assert.equal(box.autoStopInterval, 4);
	assert.ok(Math.abs(new Date(box.autoDestroyAt) - Date.now() - 4 * 60000) < 60000);
	const done = await s.ends(job, 'succeeded');
	assert.equal(only(done).warnings, undefined);
	await s.settled(job);
});

test('a slow start is waited for', async () => {
	plan.startMs = 1500;
	const job = await run({ cmd: 'echo here' });
	assert.equal(job.stdout, 'here\n');
	await s.settled(job);
});

test('a sandbox that fails to start is told and deleted', async () => {
	Object.assign(plan, { startMs: 100, failStart: LEAK });
	const job = await run({ cmd: 'true' });
	assert.equal(job.outcome, 'provider_error');
	assert.match(job.error.detail, /failed to start/);
	await s.settled(job);
	assert.equal((await inside(job)).state, 'destroyed');
});

test('a server without a hard end is told, and the idle limit ends what nobody deletes', async () => {
	plan.ttl = false;
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 2', timeout_s: 30 });
	await s.runs(job);
	const box = await inside(job);
	assert.equal(box.autoDestroyAt, undefined);
	assert.equal(box.autoStopInterval, 3);
	const done = await s.ends(job, 'succeeded');
	assert.match(only(done).warnings, /no hard end.*3 idle minutes/);
	await s.settled(job);
});

test('every refusal of a create has its own error', async () => {
	for (const [status, message, code, words] of [
		[400, 'Total CPU quota exceeded. Maximum allowed: 10.', 'upstream_limit', /quota/],
		[403, 'Total memory limit exceeded', 'upstream_limit', /quota/],
		[403, 'Organization is suspended', 'key_refused', /suspended/],
		[403, 'Region eu is not available to the organization', 'key_refused', /region/],
		[403, 'Forbidden resource', 'key_refused', /write:sandboxes/],
		[401, 'This API key has expired', 'key_refused', /expired/],
		[401, 'Invalid credentials', 'key_refused', /does not accept/],
		[400, 'bad', 'upstream_error', /in the form/],
		[409, 'Sandbox with name x already exists', 'upstream_unsure', /there already/],
	]) {
		const rule = refuse('create', status, message, Infinity);
		const job = await run({ cmd: 'true' });
		assert.equal(job.outcome, 'provider_error', message);
		assert.equal(job.error.code, code, message);
		assert.match(job.error.detail, words);
		if (code !== 'upstream_limit') assert.equal(rule.count, 1, 'it is not tried again');
		rule.release();
		await s.settled(job);
		assert.equal(await inside(job), undefined);
	}
});

test('a snapshot that is not there names the template; one that is gets used', async () => {
	const wrong = await run({ cmd: 'true', template: 'unheard-of' });
	assert.equal(wrong.error.code, 'unsupported', JSON.stringify(wrong));
	assert.match(wrong.error.detail, /no active snapshot/);
	const job = await run({ cmd: 'true', template: 'daytona-medium' });
	assert.equal(job.outcome, 'succeeded');
	assert.equal((await inside(job)).snapshot, 'daytona-medium');
	await s.settled(job);
});

test('memory, processors and runtime are refused by name before anything is sent', async () => {
	const way = await s.way();
	const asked = sim.count('create');
	for (const [field, value] of [['memory_mb', 2048], ['cpu', 2], ['runtime', 'node22']]) {
		const reply = await way.client.rest('run_job', { key: way.key, cmd: 'true', [field]: value, wait_s: 0 });
		assert.equal(reply.json.code, 'unsupported', reply.text);
		assert.equal(reply.json.field, field);
	}
	assert.equal(sim.count('create'), asked);
});

test('an address of another house gets nothing, and its sandbox ends', async () => {
	const way = await s.way();
	plan.toolbox = 'https://evil.example/toolbox';
	const job = await s.end(await way.start({ cmd: 'true' }));
	assert.equal(job.outcome, 'provider_error');
	assert.match(job.error.detail, /not sent there/);
	await s.settled(job);
});

// ---- inside --------------------------------------------------------------------------------------

test('here-documents, set -e, reading from an input that is not there, and missing programs', async () => {
	await Promise.all([
		['cat <<END\nline $((1 + 1))\nEND', 0, 'line 2\n'],
		['set -e; echo before; false; echo after', 1, 'before\n'],
		['exit 3', 3, ''],
		['cat; read x; echo "<$x>"', 0, '<>\n'],
		['no-such-program-here', 127, ''],
		['exec no-such-program-here', 127, ''],
		["printf 'b\\377'", 0, 'b\ufffd'],
		['printf "\\001\\001\\001x\\002\\002\\002"', 0, '\u0001\u0001\u0001x\u0002\u0002\u0002'],
		['( sleep 300 & ) ; echo done', 0, 'done\n'],
	].map(async ([cmd, code, stdout]) => {
		const job = await run({ cmd });
		assert.equal(job.exit_code, code, cmd);
		assert.equal(job.stdout, stdout, cmd);
		await s.settled(job);
	}));
});

test('a daemon that answers 502 for a while costs no job', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'echo a; until [ -e /tmp/go ]; do sleep 0.1; done; echo b' });
	await s.runs(job);
	const box = await inside(job);
	box.daemonDead = true;
	const asked = way.count('find');
	await until('the API was asked how the sandbox stands', () => way.count('find') > asked + 1);
	box.daemonDead = false;
	fs.writeFileSync(box.guest.file('/tmp/go'), '');
	assert.equal((await s.ends(job, 'succeeded')).stdout, 'a\nb\n');
	await s.settled(job);
});

test('a sandbox that stops behind our back is lost, and the job knows it', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 1000', timeout_s: 600 });
	await s.runs(job);
	const box = await inside(job);
	box.autoDeleteInterval = -1; // it stays, stopped
	await box.stop(plan);
	const done = await s.ends(job, 'lost');
	assert.equal(done.exit_code, undefined);
	await s.settled(job);
	assert.equal(box.state, 'destroyed', 'a stopped one keeps its disk: it is deleted as well');
});

test('a dead daemon from the first moment is no success and leaves nothing', async () => {
	plan.daemon = false;
	const job = await run({ cmd: 'true' });
	assert.equal(job.outcome, 'provider_error');
	assert.match(job.error.detail, /can not reach the sandbox/);
	await s.settled(job);
});

test('a text in the place of a result is no exit code', async () => {
	const way = await s.way();
	const rule = sim.rule({ op: 'exec' }, 'replace', { times: 2, status: 200, headers: { 'content-type': 'text/plain' }, body: 'hello' });
	const job = await s.end(await way.start({ cmd: 'exit 4' }));
	assert.equal(job.exit_code, 4);
	assert.equal(rule.count, 2);
	await s.settled(job);
});

test('a short command that the daemon ended at its limit is asked for again', async () => {
	const way = await s.way();
	refuse('exec', 408, 'command execution timeout');
	const job = await s.end(await way.start({ cmd: 'echo once >>/tmp/times; wc -l </tmp/times' }));
	assert.equal(job.stdout.trim(), '1');
	await s.settled(job);
});

// ---- the end -------------------------------------------------------------------------------------

test('a deletion that is not possible yet is asked for until it is', async () => {
	const way = await s.way();
	const job = await way.start({ cmd: 'sleep 1' });
	await s.runs(job);
	const box = await inside(job);
	box.stuck = true;
	await s.ends(job, 'succeeded');
	await until('it was refused twice', () => way.count('destroy') >= 2);
	assert.notEqual((await s.sandboxes(job))[0][0], 'stopped', 'nobody says so before it is true');
	box.stuck = false;
	await s.settled(job);
	assert.equal(box.state, 'destroyed');
});

test('500 to a deletion is asked again', async () => {
	const way = await s.way();
	const rule = refuse('destroy', 500, 'Internal server error');
	const job = await s.end(await way.start({ cmd: 'true' }));
	await s.settled(job);
	assert.equal(rule.count, 1);
});

test('the older form of a list is swept as well', async () => {
	plan.list = 'array';
	const way = await s.way();
	const job = await way.start({ cmd: 'true' });
	await s.settled(await s.end(job));
	const [[, , mark]] = await s.sandboxes(job);
	await sql(`UPDATE sandbox SET created_at = created_at - 600000 WHERE mark = '${mark}'`);
	const left = await s.place.plant(mark);
	await until('the sweep ends it', async () => (await s.place.boxes()).find((b) => b.id === left).ended);
	await s.settled(job);
});

// ---- keys ----------------------------------------------------------------------------------------

test('every bad key has its own error', async () => {
	const save = async (more = {}) => (await s.place.save(await s.newClient(), 'k', more)).json;
	assert.equal((await save()).checked, true);
	const wrong = await save({ token: 'dtn_wrong' });
	assert.deepEqual([wrong.code, wrong.field], ['key_refused', 'token']);
	plan.permissions = ['write:sandboxes'];
	assert.match((await save()).detail, /lacks the permission delete:sandboxes/);
	plan.permissions = plain.permissions;
	plan.expired = true;
	assert.match((await save()).detail, /expired/);
	plan.expired = false;
	plan.keys = false; // a server that does not know the call
	assert.equal((await save()).checked, true);
	plan.keys = true;
	sim.rule({ op: 'check' }, 'answer', { times: 1, status: 200, headers: { 'content-type': 'text/html' }, body: `<h1>${LEAK}</h1>` });
	const page = await save();
	assert.equal(page.code, 'key_check_failed');
	assert.match(page.detail, /not the API of Daytona/);
});

test('an installation of ones own is used by its address', async () => {
	const client = await s.newClient();
	const saved = await s.place.save(client, 'own', { api_url: `${sim.url}/` });
	assert.equal(saved.status, 200, saved.text);
	const reply = await client.rest('run_job', { key: 'own', cmd: 'echo own', wait_s: 0 });
	const job = await s.end(reply.json, client);
	assert.equal(job.stdout, 'own\n');
	await s.settled(job);
	const elsewhere = await s.place.save(client, 'other', { api_url: `${sim.url}/nowhere` });
	assert.equal(elsewhere.json.code, 'key_check_failed', elsewhere.text);
	assert.equal(elsewhere.json.field, 'api_url');
	const plainHttp = await s.place.save(client, 'other', { api_url: 'http://127.0.0.1:1/api' });
	assert.equal(plainHttp.json.code, 'forbidden_address', plainHttp.text);
});
