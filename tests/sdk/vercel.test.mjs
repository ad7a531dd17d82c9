// The official SDK of Vercel Sandbox against our simulator: what it takes for the real service is what the
// connector may be tested with.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { APIError, Sandbox, Snapshot } from '@vercel/sandbox';
import { Agent, fetch } from 'undici';
import WebSocket from 'ws';
import { certificate } from '../simulators/lib.mjs';
import { start } from '../simulators/vercel/index.mjs';
import { until } from '../lib/wait.mjs';

let place, dispatcher, access;
const made = [];

before(async () => {
	place = await start();
	dispatcher = new Agent({ connect: { ca: certificate().cert }, bodyTimeout: 0 });
	const { token, team_id: teamId, project_id: projectId } = place.credential;
	const rewritten = (url, init) => fetch(String(url).replace('https://vercel.com/api', place.base), { ...init, dispatcher });
	access = { token, teamId, projectId, fetch: rewritten };
});

afterEach(async () => {
	place.clear();
	place.log.length = 0;
	for (const box of made.splice(0)) await box.delete().catch(() => {});
});

after(async () => {
	await dispatcher.destroy();
	await place.stop();
});

async function create(more = {}) {
	const box = await Sandbox.create({ ...access, persistent: false, timeout: 120000, ...more });
	made.push(box);
	return box;
}

const refusal = (status, code) => (error) => {
	assert.ok(error instanceof APIError, String(error));
	assert.equal(error.response.status, status);
	if (code) assert.equal(error.json?.error?.code, code);
	return true;
};

const boxOf = (name) => place.boxes().find((b) => b.mark === name);

test('a sandbox is made, used and deleted', async () => {
	const box = await create({ name: 'first', tags: { job: '1' }, resources: { vcpus: 4 }, networkPolicy: 'deny-all' });
	assert.equal(box.name, 'first');
	assert.equal(box.status, 'running');
	assert.equal(box.vcpus, 4);
	assert.equal(box.memory, 8192);
	assert.equal(box.networkPolicy, 'deny-all');
	assert.deepEqual(box.tags, { job: '1' });
	assert.equal(boxOf('first').state, 'running');
	await box.delete();
	assert.equal(boxOf('first').state, 'stopped');
	await assert.rejects(Sandbox.get({ ...access, name: 'first' }), refusal(404, 'not_found'));
});

test('the runtime decides the version of the path', async () => {
	const box = await create({ runtime: 'node22' });
	assert.equal(box.runtime, 'node22');
	await create({ image: 'vercel/sandbox/node:24' });
	const paths = place.log.filter((e) => e.op === 'create').map((e) => e.path);
	assert.deepEqual(paths, ['/api/v2/sandboxes', '/api/v3/sandboxes']);
});

test('a command gives both streams and its exit code', async () => {
	const box = await create();
	const done = await box.runCommand('sh', ['-c', 'echo out; echo err >&2; exit 3']);
	assert.equal(done.exitCode, 3);
	assert.equal(await done.stdout(), 'out\n');
	assert.equal(await done.stderr(), 'err\n');
	assert.ok(done.cmdId.startsWith('cmd_'));
});

test('environment, folder and root are as asked', async () => {
	const box = await create({ env: { A: 'box', B: 'box' } });
	const done = await box.runCommand({ cmd: 'sh', args: ['-c', 'echo "$A $B"; pwd; echo $HOME'], env: { B: 'cmd' }, cwd: '/tmp', sudo: true });
	assert.equal(await done.stdout(), 'box cmd\n/tmp\n/root\n');
	assert.equal(await (await box.runCommand('pwd')).stdout(), '/vercel/sandbox\n');
});

test('a character is not cut in two, and what is no text is replaced', async () => {
	const box = await create();
	const done = await box.runCommand('sh', ['-c', 'printf "\\303"; sleep 0.1; printf "\\244"; printf "\\377" >&2']);
	assert.equal(await done.stdout(), 'ä');
	assert.equal(await done.stderr(), '\ufffd');
});

test('a command in the background is followed, waited for and found again', async () => {
	const box = await create();
	await box.runCommand('mkfifo', ['fifo']);
	const running = await box.runCommand({ cmd: 'sh', args: ['-c', 'read x < fifo; echo $x; exit 5'], detached: true });
	assert.equal(running.exitCode, null);
	const known = await box.getCommand(running.cmdId);
	assert.equal(known.exitCode, null);
	await box.runCommand('sh', ['-c', 'echo now > fifo']);
	assert.equal((await known.wait()).exitCode, 5);
	assert.equal(await running.stdout(), 'now\n');
});

test('logs are replayed from the start and end with the command', async () => {
	const box = await create();
	const running = await box.runCommand({ cmd: 'sh', args: ['-c', 'echo one; echo bad >&2; echo two'], detached: true });
	await running.wait();
	const seen = { stdout: '', stderr: '' };
	for await (const { stream, data } of running.logs()) seen[stream] += data;
	assert.deepEqual(seen, { stdout: 'one\ntwo\n', stderr: 'bad\n' });
	assert.equal(await (await box.getCommand(running.cmdId)).stdout(), 'one\ntwo\n');
});

for (const [signal, code] of [['SIGTERM', 143], ['SIGINT', 130], ['SIGKILL', 137]])
	test(`a kill by ${signal} shows as ${code}`, async () => {
		const box = await create();
		const running = await box.runCommand({ cmd: 'sleep', args: ['100'], detached: true });
		await running.kill(signal);
		assert.equal((await running.wait()).exitCode, code);
	});

test('a time-out of a command shows as 137', async () => {
	const box = await create();
	const done = await box.runCommand('sleep', ['100'], { timeoutMs: 100 });
	assert.equal(done.exitCode, 137);
});

test('files go there and come back, whatever their bytes are', async () => {
	const box = await create();
	const bytes = Buffer.from(Array.from({ length: 70000 }, (_, i) => (i * 7) % 256));
	await box.writeFiles([
		{ path: 'a/deep/one.bin', content: bytes },
		{ path: '/tmp/two.sh', content: Buffer.from('echo hi'), mode: 0o755 },
	]);
	assert.deepEqual(await box.readFileToBuffer({ path: 'a/deep/one.bin' }), bytes);
	assert.equal(await (await box.runCommand('sh', ['-c', '/tmp/two.sh; stat -c %a /tmp/two.sh'])).stdout(), 'hi\n755\n');
	assert.equal(await box.readFileToBuffer({ path: 'nothing' }), null);
	await box.mkDir('folder');
	await assert.rejects(box.mkDir('folder'), refusal(400));
});

test('the helpers for files, which run programs, find what they need', async () => {
	const box = await create();
	await box.fs.writeFile('/tmp/x', 'content');
	assert.equal(await box.fs.readFile('/tmp/x', 'utf8'), 'content');
	assert.equal((await box.fs.stat('/tmp/x')).size, 7);
	assert.ok((await box.fs.readdir('/tmp')).includes('x'));
	const [entry] = (await box.fs.readdir('/tmp', { withFileTypes: true })).filter((e) => e.name === 'x');
	assert.ok(entry.isFile());
	await box.fs.rename('/tmp/x', '/tmp/y');
	assert.equal(await box.fs.exists('/tmp/x'), false);
	await box.fs.rm('/tmp/y');
	await assert.rejects(box.fs.stat('/tmp/y'), { code: 'ENOENT' });
});

test('a terminal is opened, typed in and ends with a code', async () => {
	const box = await create();
	const { url, token } = await box.openInteractive();
	const ws = new WebSocket(`${url}?token=${token}`, { ca: certificate().cert });
	let shown = '', code;
	ws.on('message', (data, binary) => {
		if (binary) shown += data;
		else ({ code } = JSON.parse(data));
	});
	await new Promise((resolve, reject) => ws.on('open', resolve).on('error', reject));
	ws.send(JSON.stringify({ type: 'start', command: 'sh', args: [], env: ['TERM=xterm', 'PS1=ready>'], cwd: '/tmp', cols: 100, rows: 30 }));
	await until('it asks', () => shown.includes('ready>'));
	ws.send(Buffer.from('stty size; pwd; exit 7\n'));
	await until('it has ended', () => code !== undefined);
	assert.equal(code, 7);
	assert.match(shown, /30 100\r\n\/tmp\r\n/);
	const wrong = new WebSocket(`${url}?token=x`, { ca: certificate().cert });
	await assert.rejects(new Promise((resolve, reject) => wrong.on('open', resolve).on('error', reject)), /403/);
});

test('two sandboxes do not share their files', async () => {
	const one = await create(), two = await create();
	await one.fs.writeFile('/tmp/mine', 'x');
	assert.equal(await two.readFileToBuffer({ path: '/tmp/mine' }), null);
});

test('a list comes in pages, by the beginning of the name or by a tag', async () => {
	for (const name of ['aa-3', 'aa-1', 'ab-1', 'aa-2', 'aa-4']) await create({ name, tags: { kind: name.slice(0, 2) } });
	const named = await Sandbox.list({ ...access, namePrefix: 'aa-', sortBy: 'name', sortOrder: 'asc' });
	assert.ok(named.pagination.next);
	const names = [];
	for await (const { name } of named) names.push(name);
	assert.deepEqual(names, ['aa-1', 'aa-2', 'aa-3', 'aa-4']);
	const tagged = await Sandbox.list({ ...access, tags: { kind: 'ab' } });
	assert.deepEqual(tagged.sandboxes.map((s) => s.name), ['ab-1']);
	await assert.rejects(Sandbox.list({ ...access, namePrefix: 'aa-', sortBy: 'createdAt' }), refusal(400));
});

test('a sandbox is found by its name, in another process too', async () => {
	const box = await create({ name: 'found' });
	await box.fs.writeFile('/tmp/a', '1');
	const again = await Sandbox.get({ ...access, name: 'found' });
	assert.equal(again.currentSession().sessionId, box.currentSession().sessionId);
	assert.equal(await again.fs.readFile('/tmp/a', 'utf8'), '1');
});

test('a name is given once', async () => {
	await create({ name: 'once' });
	await assert.rejects(create({ name: 'once' }), refusal(400, 'bad_request'));
});

test('a stopped one is over for its commands, and leaves no storage', async () => {
	const box = await create({ name: 'over' });
	const session = box.currentSession();
	await box.stop();
	assert.equal(boxOf('over').state, 'stopped');
	await assert.rejects(session.runCommand('true'), refusal(410, 'sandbox_stopped'));
	assert.deepEqual(place.snapshots(), []);
});

test('a persistent one goes on with its files, and its storage can be deleted', async () => {
	const box = await create({ persistent: true });
	await box.fs.writeFile('kept', 'still here');
	await box.stop();
	assert.equal(place.snapshots().length, 1);
	assert.equal(await box.fs.readFile('kept', 'utf8'), 'still here');
	await (await Snapshot.get({ ...access, snapshotId: place.snapshots()[0].id })).delete();
	assert.deepEqual(place.snapshots(), []);
	await box.delete();
});

test('the end that was set comes by itself; a command under way is then lost', async () => {
	const box = await create({ name: 'short', timeout: 1000 });
	await assert.rejects(box.currentSession().runCommand('sleep', ['100']), /stream was closed/);
	await until('it has ended', () => boxOf('short').state === 'stopped');
	assert.ok(boxOf('short').billedMs >= 1000);
});

test('the end is moved, within the plan', async () => {
	const box = await create({ timeout: 60000 });
	await box.extendTimeout(60000);
	assert.equal(box.currentSession().timeout, 120000);
	await assert.rejects(box.extendTimeout(place.plan.maxLifeMs), refusal(400, 'sandbox_timeout_invalid'));
	await assert.rejects(create({ timeout: place.plan.maxLifeMs + 1000 }), refusal(400, 'sandbox_timeout_invalid'));
});

test('size, tags and rules of the network are changed later', async () => {
	const box = await create({ name: 'changed' });
	await box.update({ tags: { a: 'b' }, networkPolicy: 'deny-all' });
	assert.deepEqual(box.tags, { a: 'b' });
	await assert.rejects(create({ resources: { vcpus: 3 } }), refusal(400));
});

for (const [what, change, status, code] of [
	['another token', { token: 'other' }, 403, 'forbidden'],
	['another team', { teamId: 'team_other' }, 403, 'forbidden'],
	['another project', { projectId: 'prj_other' }, 404, 'not_found'],
])
	test(`${what} is refused`, async () => {
		await assert.rejects(Sandbox.list({ ...access, ...change }), refusal(status, code));
		await assert.rejects(Sandbox.create({ ...access, ...change }), refusal(status, code));
	});

test('a plan that is used up, and a rate that is too high', async () => {
	place.plan.unpaid = true;
	await assert.rejects(create(), refusal(402));
	place.plan.unpaid = false;
	place.plan.rate = 0;
	place.rule({ op: 'create' }, 'answer', { status: 429, headers: { 'retry-after': '99' }, body: { error: { code: 'rate_limited', message: '' } } });
	await assert.rejects(create(), refusal(429));
	place.plan.rate = Infinity;
});

test('a stream that is cut is no end of a command', async () => {
	const box = await create();
	place.rule({ op: 'exec' }, 'cut-body', { bytes: 250, times: 1 });
	await assert.rejects(box.runCommand('sh', ['-c', 'echo done']));
});

test('the SDK starts a command twice when the first answer is lost: the connector must not', async () => {
	const box = await create();
	place.rule({ op: 'exec' }, 'cut', { times: 1 });
	await box.runCommand('sh', ['-c', 'echo x >> /tmp/runs']);
	assert.equal(await box.fs.readFile('/tmp/runs', 'utf8'), 'x\nx\n');
});

test('fifty at once', async () => {
	const boxes = await Promise.all(Array.from({ length: 50 }, () => create()));
	const codes = await Promise.all(boxes.map(async (box, i) => (await box.runCommand('sh', ['-c', `exit ${i}`])).exitCode));
	assert.deepEqual(codes, codes.map((_, i) => i));
});
