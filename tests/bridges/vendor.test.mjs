// Cloudflare's own bridge as it comes from npm, in the real Workers runtime: what providers/workers_vendor.c
// relies on, and the weaknesses it is written against.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { until } from '../lib/wait.mjs';
import { start } from '../simulators/workers/index.mjs';
import { call } from './client.mjs';

const spool = (name) => fs.readFileSync(path.resolve(import.meta.dirname, `../../providers/spool/${name}.sh`), 'utf8');
const letters = 'abcdefghijklmnopqrstuvwxyz234567';
const newId = () => `cc${Array.from(crypto.randomBytes(32), (b) => letters[b % 32]).join('')}`;
const FIRST = ['sh', '-c', 'umask 077 && mkdir -p /tmp/.sbx'];

/** Events of a reply: { out, err, code }, code undefined when none came. */
function events(answer) {
	const got = { out: '', err: '', code: undefined };
	for (const block of answer.bytes.toString().split('\n\n').filter(Boolean)) {
		const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block);
		if (event === 'stdout') got.out += Buffer.from(data, 'base64');
		if (event === 'stderr') got.err += Buffer.from(data, 'base64');
		if (event === 'exit') got.code = JSON.parse(data).exit_code;
		if (event === 'error') got.error = JSON.parse(data).code;
	}
	return got;
}

describe('the vendor\'s bridge', () => {
	let p;
	const exec = async (id, argv, more) => {
		const a = await call(p, 'POST', `/v1/sandbox/${id}/exec`, { argv, timeout_ms: 30000, ...more });
		assert.equal(a.status, 200, String(a.bytes));
		assert.match(a.headers['content-type'], /^text\/event-stream/);
		return events(a);
	};
	const running = (id) => p.boxes().filter((b) => b.id === id && b.state === 'running').length;

	before(async () => { p = await start({ dialect: 'vendor' }); });
	after(() => p?.stop());

	test('health has no contract', async () => {
		const a = await call(p, 'GET', '/health', undefined, { headers: { authorization: null } });
		assert.deepEqual([a.status, a.json], [200, { ok: true }]);
	});

	test('the numbers need the key, and start nothing', async () => {
		for (const authorization of [null, 'Bearer x', `bearer ${p.credential.token}`]) {
			const a = await call(p, 'GET', '/v1/pool/stats', undefined, { headers: { authorization } });
			assert.deepEqual([a.status, a.json.code], [401, 'unauthorized']);
		}
		const a = await call(p, 'GET', '/v1/pool/stats');
		assert.equal(a.status, 200);
		assert.equal(a.json.assigned, 0);
		assert.equal(p.machines.history.length, 0);
	});

	test('ids are of its alphabet only', async () => {
		for (const id of ['cc-abcdef-aaaaaaaaaa', 'UPPER', 'a1', 'a'.repeat(129)]) {
			const a = await call(p, 'POST', `/v1/sandbox/${id}/exec`, { argv: ['true'] });
			assert.deepEqual([a.status, a.json.code], [400, 'invalid_request'], id);
		}
	});

	test('the first command makes a sandbox of our id; streams and code are its own', async () => {
		const id = newId();
		assert.deepEqual(await exec(id, FIRST), { out: '', err: '', code: 0 });
		assert.deepEqual(await exec(id, ['sh', '-c', 'echo "$1"; echo "$2" >&2; exit 7', 'sbx', 'a\'b"$c\n', '\\ *']),
			{ out: 'a\'b"$c\n\n', err: '\\ *\n', code: 7 });
		assert.equal(running(id), 1);
		await call(p, 'DELETE', `/v1/sandbox/${id}`);
		assert.equal(running(id), 0);
	});

	test('files are written below /workspace only; a command moves them', async () => {
		const id = newId(), data = crypto.randomBytes(70000);
		await exec(id, FIRST);
		assert.equal((await call(p, 'PUT', `/v1/sandbox/${id}/file/tmp/x`, data)).status, 403);
		assert.equal((await call(p, 'PUT', `/v1/sandbox/${id}/file/workspace/.sbx-1`, data)).status, 200);
		const moved = await exec(id, ['sh', '-c', 'mv -f "$1" "$2" && sha256sum "$2"', 'sbx', '/workspace/.sbx-1', '/tmp/there']);
		assert.equal(moved.out.slice(0, 64), crypto.createHash('sha256').update(data).digest('hex'));
		assert.equal((await call(p, 'PUT', `/v1/sandbox/${id}/file/workspace/big`, Buffer.alloc((32 << 20) + 1))).status, 413);
		await call(p, 'DELETE', `/v1/sandbox/${id}`);
	});

	test('a machine that was replaced is told by the spool, not by the bridge', async () => {
		const id = newId();
		await exec(id, FIRST);
		assert.equal((await exec(id, ['sh', '-c', spool('poll'), 'sbx', 'job', '0', '0', '100', '0'])).out, 'sbx1 gone\n');
		await p.machines.lose(p.machineOf(id));
		for (const [name, ...params] of [['poll', 'job', '0', '0', '100', '0'], ['kill', 'job', 'TERM'], ['start', 'job', '5', '/tmp/none.tar']])
			assert.match((await exec(id, ['sh', '-c', spool(name), 'sbx', ...params])).out, /^sbx1 (reset|gone)\n$/, name);
		await call(p, 'DELETE', `/v1/sandbox/${id}`);
	});

	test('DELETE says 204 although the machine lives on', async () => {
		const id = newId();
		await exec(id, FIRST);
		p.machines.failEnd = 1;
		const a = await call(p, 'DELETE', `/v1/sandbox/${id}`);
		assert.equal(a.status, 204);
		assert.equal((await call(p, 'GET', '/v1/pool/stats')).json.assigned, 0, 'and its numbers do not show it');
		assert.equal(running(id), 1);
		await p.machines.lose(p.machineOf(id));
	});

	test('a stream without an end has no code', async () => {
		const id = newId();
		await exec(id, FIRST);
		const going = call(p, 'POST', `/v1/sandbox/${id}/exec`, { argv: ['sh', '-c', ': >/tmp/up; sleep 60'] });
		const { guest } = p.machines.history.find((one) => one.name === p.machineOf(id));
		await until('the command', () => fs.existsSync(guest.file('/tmp/up')));
		await p.machines.lose(p.machineOf(id));
		const got = events(await going);
		assert.ok(got.code === undefined || got.code !== 0, JSON.stringify(got));
		await call(p, 'DELETE', `/v1/sandbox/${id}`);
	});
});

describe('the vendor\'s bridge without its secret', () => {
	test('is open to everybody, which is why such a one is never saved', async () => {
		const p = await start({ dialect: 'vendor', token: '' });
		try {
			const a = await call(p, 'GET', '/v1/pool/stats', undefined, { headers: { authorization: null } });
			assert.equal(a.status, 200);
		} finally {
			await p.stop();
		}
	});
});
