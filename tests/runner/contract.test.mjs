// compute-runner against the bridge contract, with real boxes: as root and as an ordinary user.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import * as h from './harness.mjs';

const { BASE, call, create, destroy, exec, execRaw, fileUrl, follow, frames, newExec, newId, sh, until } = h;
const CANARY = `canary${crypto.randomBytes(6).toString('hex')}`;
const LIMITS = ['--memory', '256', '--pids', '48', '--disk', '48', '--cpus', '1', '--lifetime', '600'];

const refused = (a, status, code, word) => {
	assert.equal(a.status, status, `${a.status} ${a.bytes}`);
	assert.equal(a.json?.error?.code, code, String(a.bytes));
	assert.equal(typeof a.json.error.message, 'string');
	assert.match(a.headers['content-type'], /^application\/json/);
	if (word) assert.match(a.json.error.message, word);
};

after(h.cleanUp);

for (const mode of h.isRoot ? ['root', 'plain'] : ['plain'])
	describe(`as ${mode}`, { concurrency: 4 }, () => {
		let r, box, hostServer, hostPort;
		before(async () => {
			r = await h.startRunner(mode, LIMITS, { CANARY_OF_HOST: CANARY });
			box = await create(r, { labels: { a: '1', b: 'x=y' }, env: { FROM_BOX: 'box', BOTH: 'box' } });
			hostServer = net.createServer((s) => s.end('host')).listen(0, '0.0.0.0');
			await new Promise((ok) => hostServer.on('listening', ok));
			hostPort = hostServer.address().port;
		});
		after(async () => {
			hostServer.close();
			await r.stop();
		});

		// -- who may ask what ------------------------------------------------------------------

		test('health needs no token and tells contract, limits and features', async () => {
			const a = await call(r, 'GET', '/health', undefined, { headers: { authorization: null } });
			assert.equal(a.status, 200);
			assert.equal(a.json.ok, true);
			assert.equal(a.json.contract, 'sbx-bridge');
			assert.equal(a.json.version, 1);
			assert.equal(a.json.minor, 1);
			for (const f of ['exec', 'kill', 'stdin', 'env', 'files', 'ttl', 'network', 'limits'])
				assert.ok(a.json.features.includes(f), f);
			assert.deepEqual(a.json.limits, { follow_ms: 60000, file_block: 8388608, command_bytes: 32768 });
		});

		for (const [name, value] of Object.entries({
			'no token': null, 'an empty one': 'Bearer ', 'a wrong one': `Bearer ${'A'.repeat(43)}`,
			'a short one': 'Bearer x', 'a long one': `Bearer ${'A'.repeat(5000)}`, 'another scheme': 'Basic Zm9v' }))
			test(`a call with ${name} is refused`, async () => {
				refused(await call(r, 'GET', BASE, undefined, { headers: { authorization: value } }), 401, 'unauthorized');
				refused(await call(r, 'POST', BASE, '{}', { headers: { authorization: value } }), 401, 'unauthorized');
			});

		test('a token that differs in its last character or by more is refused', async () => {
			const last = r.token.at(-1) === 'A' ? 'B' : 'A';
			for (const t of [r.token.slice(0, -1) + last, `${r.token}A`, r.token.slice(0, -1), r.token.toLowerCase()])
				refused(await call(r, 'GET', BASE, undefined, { headers: { authorization: `Bearer ${t}` } }), 401, 'unauthorized');
		});

		test('web pages are refused whatever they know', async () => {
			refused(await call(r, 'GET', BASE, undefined, { headers: { origin: 'https://a.example' } }), 403, 'forbidden_origin');
			refused(await call(r, 'GET', '/health', undefined, { headers: { origin: 'null' } }), 403, 'forbidden_origin');
		});

		test('unknown routes are told only to those who know the token', async () => {
			for (const p of ['/', '/bridge/v1', '/bridge/v2/sandboxes', `${BASE}/`, `${BASE}/short`, `${BASE}/${box}/x`,
				`${BASE}/${box}/exec/`, `${BASE}/${box}/exec/a/kill`, `${BASE}/${box}/file/x`, `${BASE}/${box}%00`,
				`${BASE}/UPPERCASE1`, '/health/', '/HEALTH', `${BASE}/${box}/exec/exec-0001/kill/x`]) {
				refused(await call(r, 'GET', p), 404, 'not_found');
				refused(await call(r, 'GET', p, undefined, { headers: { authorization: null } }), 401, 'unauthorized');
			}
		});

		test('a route with another method is 405', async () => {
			for (const [m, p] of [['PUT', BASE], ['DELETE', BASE], ['POST', `${BASE}/${box}`], ['GET', `${BASE}/${box}/exec`],
				['DELETE', fileUrl(box, '/tmp/x')], ['PATCH', `${BASE}/${box}`], ['POST', '/health'],
				['GET', `${BASE}/${box}/exec/exec-0001/kill`]])
				refused(await call(r, m, p), 405, 'method_not_allowed');
		});

		// -- create ----------------------------------------------------------------------------

		const good = () => ({ id: newId(), ttl_seconds: 60 });
		for (const [name, body, status = 400, code = 'bad_request', word] of [
			['text that is not JSON', '{"id":'],
			['an empty body', ''],
			['a list', '[]'],
			['a duplicate key', '{"id":"sandbox-1","id":"sandbox-1","ttl_seconds":5}'],
			['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
			['no id', { ttl_seconds: 60 }, 400, 'bad_request', /id/],
			['a number as id', { ...good(), id: 12345678 }],
			['a short id', { ...good(), id: 'short' }],
			['a long id', { ...good(), id: 'a'.repeat(64) }],
			['an id in capitals', { ...good(), id: 'Sandbox-12' }],
			['an id that begins with a digit', { ...good(), id: '1sandbox-1' }],
			['an id with a path in it', { ...good(), id: 'aaaa/../../etc' }],
			['no ttl_seconds', { id: newId() }, 400, 'bad_request', /ttl_seconds/],
			['ttl_seconds 0', { ...good(), ttl_seconds: 0 }, 400, 'bad_request', /1 to 86400/],
			['ttl_seconds 86401', { ...good(), ttl_seconds: 86401 }],
			['ttl_seconds as text', { ...good(), ttl_seconds: '60' }],
			['ttl_seconds 1.5', { ...good(), ttl_seconds: 1.5 }],
			['idle_seconds 0', { ...good(), idle_seconds: 0 }],
			['labels that are no object', { ...good(), labels: ['a'] }],
			['a label that is no string', { ...good(), labels: { a: 1 } }],
			['65 labels', { ...good(), labels: Object.fromEntries([...Array(65).keys()].map((i) => [`l${i}`, 'x'])) }],
			['a label of 257 bytes', { ...good(), labels: { a: 'x'.repeat(257) } }],
			['a bad env name', { ...good(), env: { 'A-B': '1' } }, 400, 'bad_request', /env/],
			['an env name with an equals sign', { ...good(), env: { 'A=B': '1' } }],
			['a NUL in an env value', '{"id":"sandbox-1","ttl_seconds":5,"env":{"A":"\\u0000"}}'],
			['an unknown network', { ...good(), network: 'lan' }, 400, 'bad_request', /network/],
			['limits that are no object', { ...good(), limits: 5 }],
			['a limit of the wrong type', { ...good(), limits: { pids: 'many' } }, 400, 'bad_request', /pids/],
			['a limit of 0', { ...good(), limits: { memory_mib: 0 } }],
			['more memory than the runner gives', { ...good(), limits: { memory_mib: 257 } }, 400, 'unsupported', /memory_mib.*256/],
			['more processes', { ...good(), limits: { pids: 49 } }, 400, 'unsupported', /pids.*48/],
			['more disk', { ...good(), limits: { disk_mib: 49 } }, 400, 'unsupported', /disk_mib/],
			['more CPUs', { ...good(), limits: { cpus: 1.5 } }, 400, 'unsupported', /cpus/],
			['the network of the machine', { ...good(), network: 'host' }, 400, 'unsupported', /network/],
			['an image', { ...good(), image: 'debian' }, 400, 'unsupported', /image/],
			['a body over 1 MiB', `{"id":"${'x'.repeat(1 << 20)}"}`, 413, 'too_large'],
		])
			test(`create with ${name} is refused`, async () => {
				refused(await call(r, 'POST', BASE, body), status, code, word);
			});

		test('create answers 201 and what the sandbox is, then 200 and the same', async () => {
			const id = newId(), t = Date.now() / 1000;
			const a = await call(r, 'POST', BASE, { id, ttl_seconds: 120, labels: { 'k"<': 'v\u00e9' }, unknown_member: 1 });
			assert.equal(a.status, 201);
			assert.equal(a.headers['cache-control'], 'no-store');
			assert.equal(a.json.id, id);
			assert.equal(a.json.state, 'running');
			assert.deepEqual(a.json.labels, { 'k"<': 'v\u00e9' });
			assert.ok(a.json.created_at >= t - 2 && a.json.created_at < t + 60);
			assert.ok(Math.abs(a.json.expires_at - a.json.created_at - 120) < 0.01);
			assert.ok(a.json.enforced.includes('disk') && a.json.enforced.includes('pids') && a.json.enforced.includes('network'));
			if (mode === 'root') assert.ok(a.json.enforced.includes('memory') && a.json.enforced.includes('cpus'));
			else assert.equal(a.json.enforced.includes('memory'), !a.json.warnings.some((w) => /memory/.test(w)));
			const again = await call(r, 'POST', BASE, { id, ttl_seconds: 7, labels: {} });
			assert.equal(again.status, 200);
			assert.deepEqual(again.json, a.json);
			assert.deepEqual((await call(r, 'GET', `${BASE}/${id}`)).json, a.json);
			assert.equal((await destroy(r, id)).json.state, 'stopped');
			refused(await call(r, 'GET', `${BASE}/${id}`), 404, 'sandbox_not_found');
		});

		test('the list can be filtered by labels', async () => {
			const has = async (q) => (await call(r, 'GET', `${BASE}${q}`)).json.sandboxes.some((s) => s.id === box);
			assert.ok(await has(''));
			assert.ok(await has('?label=a=1'));
			assert.ok(await has('?label=a=1&label=b%3Dx%3Dy'));
			assert.ok(!await has('?label=a=2'));
			assert.ok(!await has('?label=a=1&label=c=1'));
			for (const q of ['?label=a', '?label==1', '?label=%zz', '?label=a%00=1', '?label=%4'])
				refused(await call(r, 'GET', `${BASE}${q}`), 400, 'bad_request');
		});

		test('eight creates of one id at once make one sandbox', async () => {
			const id = newId();
			const all = await Promise.all([...Array(8)].map(() => call(r, 'POST', BASE, { id, ttl_seconds: 60 })));
			assert.deepEqual(all.map((a) => a.status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
			assert.equal(new Set(all.map((a) => a.json.created_at)).size, 1);
			assert.equal((await destroy(r, id)).status, 200);
		});

		test('delete is proven, may be repeated, and frees the id', async () => {
			const id = await create(r);
			await sh(r, id, 'echo one >/tmp/f');
			for (let i = 0; i < 3; i++) assert.deepEqual((await destroy(r, id)).json, { id, state: 'stopped' });
			refused(await execRaw(r, id, { argv: ['true'] }), 404, 'sandbox_not_found');
			assert.deepEqual((await destroy(r, newId())).json.state, 'stopped');
			await create(r, { id });
			assert.equal((await sh(r, id, 'cat /tmp/f')).code, 1);
			await destroy(r, id);
		});

		// -- exec ------------------------------------------------------------------------------

		for (const [name, body, status = 400, code = 'bad_request', word] of [
			['no exec_id', { exec_id: null, argv: ['true'] }, 400, 'bad_request', /exec_id/],
			['a short exec_id', { exec_id: 'abc', argv: ['true'] }],
			['an exec_id with a slash', { exec_id: 'aaaa/bbbb', argv: ['true'] }],
			['no argv', {}, 400, 'bad_request', /argv/],
			['an empty argv', { argv: [] }],
			['an empty program name', { argv: [''] }],
			['argv as text', { argv: 'true' }],
			['a number in argv', { argv: ['echo', 1] }, 400, 'bad_request', /argv\[1\]/],
			['a bad env name', { argv: ['true'], env: { '1A': 'x' } }],
			['an env value that is no string', { argv: ['true'], env: { A: 1 } }],
			['stdin that is not base64', { argv: ['cat'], stdin_b64: 'a*b=' }, 400, 'bad_request', /stdin_b64/],
			['a negative timeout', { argv: ['true'], timeout_ms: -1 }],
			['a follow_ms over 60000', { argv: ['true'], follow_ms: 60001 }, 400, 'bad_request', /follow_ms/],
			['a cwd that does not exist', { argv: ['true'], cwd: '/no/such' }, 400, 'bad_cwd'],
			['a cwd that is a file', { argv: ['true'], cwd: '/etc/passwd' }, 400, 'bad_cwd'],
			['a command over 32768 bytes', { argv: ['true', 'x'.repeat(32768)] }, 413, 'too_large'],
			['env that makes it too large', { argv: ['true', 'x'.repeat(20000)], env: { A: 'y'.repeat(13000) } }, 413, 'too_large'],
			['stdin that makes it too large', { argv: ['cat'], stdin_b64: Buffer.alloc(30000).toString('base64') }, 413, 'too_large'],
		])
			test(`exec with ${name} is refused`, async () => {
				refused(await execRaw(r, box, body), status, code, word);
			});

		test('exec in an unknown sandbox is refused', async () => {
			refused(await execRaw(r, newId(), { argv: ['true'] }), 404, 'sandbox_not_found');
			refused(await call(r, 'GET', `${BASE}/${box}/exec/${newExec()}`), 404, 'exec_not_found');
			refused(await call(r, 'POST', `${BASE}/${box}/exec/${newExec()}/kill`, {}), 404, 'exec_not_found');
		});

		test('an exec id whose start was refused is still free', async () => {
			const exec_id = newExec();
			refused(await execRaw(r, box, { exec_id, argv: ['true'], cwd: '/no/such' }), 400, 'bad_cwd');
			assert.equal((await exec(r, box, ['true'], { exec_id })).code, 0);
		});

		test('exit codes are the command\'s own', async () => {
			for (const [text, code] of [['true', 0], ['exit 1', 1], ['exit 7', 7], ['exit 137', 137], ['exit 255', 255],
				['kill -KILL $$', 137], ['kill -TERM $$', 143], ['kill -SEGV $$', 139], ['/no/such/program', 127]]) {
				const e = await sh(r, box, text);
				assert.equal(e.code, code, text);
				assert.equal(e.last.timed_out, false);
			}
			assert.equal((await exec(r, box, ['/no/such'])).code, 127);
			assert.equal((await exec(r, box, ['/etc/passwd'])).code, 126);
		});

		test('every byte comes back as it was, on both streams', async () => {
			const e = await exec(r, box, ['perl', '-e', 'print pack("C*",0..255); print STDERR pack("C*",reverse 0..255)']);
			const all = Buffer.from([...Array(256).keys()]);
			assert.deepEqual(e.out, all);
			assert.deepEqual(e.err, Buffer.from(all).reverse());
			assert.equal(e.list[0].t, 'start');
		});

		test('stdin arrives whole and ends', async () => {
			const data = crypto.randomBytes(16000);
			assert.deepEqual((await exec(r, box, ['cat'], { stdin_b64: data.toString('base64') })).out, data);
			assert.equal((await exec(r, box, ['wc', '-c'])).text.trim(), '0');
		});

		test('variables: only ours, the sandbox\'s and the command\'s', async () => {
			const e = await exec(r, box, ['env'], { env: { BOTH: 'exec', EMPTY: '', ODD: 'a=b\n"$x' } });
			const text = e.text;
			for (const line of ['HOME=/home/user', 'USER=user', 'FROM_BOX=box', 'BOTH=exec', 'EMPTY=', 'ODD=a=b'])
				assert.ok(text.includes(`${line}\n`), line);
			assert.ok(!text.includes(CANARY) && !text.includes('CANARY_OF_HOST') && !text.includes('BOTH=box'));
			assert.equal((await sh(r, box, 'cat /proc/[0-9]*/environ')).text.includes(CANARY), false);
			assert.equal((await exec(r, box, ['pwd'])).text, '/home/user\n');
			assert.equal((await exec(r, box, ['pwd'], { cwd: '/tmp' })).text, '/tmp\n');
		});

		test('an exec id runs once, and its repetition shows the same', async () => {
			const body = { exec_id: newExec(), argv: ['sh', '-c', 'echo x >>/tmp/once; wc -l </tmp/once'] };
			const first = await execRaw(r, box, body), second = await execRaw(r, box, body);
			assert.deepEqual(frames(second).list, frames(first).list);
			const other = await execRaw(r, box, { ...body, argv: ['sh', '-c', 'exit 9'] });
			assert.equal(frames(other).last.code, 0);
			assert.equal((await sh(r, box, 'cat /tmp/once')).text, 'x\n');
		});

		test('eight execs of one id at once run once and all follow', async () => {
			const body = { exec_id: newExec(), follow_ms: 60000,
				argv: ['sh', '-c', 'echo x >>/tmp/eight; sleep 0.3; wc -l </tmp/eight'] };
			for (const a of await Promise.all([...Array(8)].map(() => execRaw(r, box, body)))) {
				assert.equal(frames(a).out.toString(), '1\n');
				assert.equal(frames(a).last.code, 0);
			}
		});

		test('follow goes on from any offset', async () => {
			const exec_id = newExec();
			await exec(r, box, ['sh', '-c', 'printf 0123456789; printf abc >&2'], { exec_id });
			const f = await follow(r, box, exec_id, 'stdout=4&stderr=2', [4, 2]);
			assert.equal(f.out.toString(), '456789');
			assert.equal(f.err.toString(), 'c');
			assert.equal(f.last.code, 0);
			const end = await follow(r, box, exec_id, 'stdout=10&stderr=3');
			assert.deepEqual(end.list.map((x) => x.t), ['start', 'exit']);
			assert.equal((await follow(r, box, exec_id, 'stdout=999999999999999')).last.t, 'exit');
			for (const q of ['stdout=-1', 'stdout=x', 'stdout=1e3', 'stderr=', 'stdout=1&stdout=2', 'follow_ms=a', 'stdout=1234567890123456'])
				refused(await call(r, 'GET', `${BASE}/${box}/exec/${exec_id}?${q}`), 400, 'bad_request');
		});

		test('a running command is pending, and the next call goes on where this one ended', async () => {
			const exec_id = newExec();
			const a = await execRaw(r, box, { exec_id, follow_ms: 300,
				argv: ['sh', '-c', 'printf one; until [ -e /tmp/go ]; do sleep 0.02; done; printf two; exit 3'] });
			const f = frames(a);
			assert.deepEqual(f.last, { t: 'pending', stdout: 3, stderr: 0 });
			const zero = await follow(r, box, exec_id, 'stdout=3&follow_ms=0', [3, 0]);
			assert.equal(zero.last.t, 'pending');
			await sh(r, box, 'touch /tmp/go');
			const rest = await follow(r, box, exec_id, 'stdout=3&follow_ms=20000', [3, 0]);
			assert.equal(rest.out.toString(), 'two');
			assert.equal(rest.last.code, 3);
		});

		test('output is sent while the command runs, and silence is marked', async () => {
			const exec_id = newExec();
			let first = 0;
			const a = await call(r, 'POST', `${BASE}/${box}/exec`,
				{ exec_id, argv: ['sh', '-c', 'echo now; sleep 11; echo then'], follow_ms: 60000 },
				{ onData: (d) => { if (!first && String(d).includes('"out"')) first = Date.now(); } });
			const f = frames(a);
			assert.ok(Date.now() - first > 9000, 'the first line came with the last');
			assert.ok(f.list.some((x) => x.t === 'hb'));
			assert.equal(f.text ?? f.out.toString(), 'now\nthen\n');
		});

		test('a client that goes away does not end the command', async () => {
			const exec_id = newExec();
			let request;
			const broken = call(r, 'POST', `${BASE}/${box}/exec`,
				{ exec_id, argv: ['sh', '-c', 'echo a; sleep 0.5; echo b'], follow_ms: 60000 },
				{ onRequest: (q) => { request = q; }, onData: () => request.destroy() });
			await assert.rejects(broken);
			assert.equal((await follow(r, box, exec_id, 'follow_ms=20000')).out.toString(), 'a\nb\n');
		});

		test('the time limit ends the whole group and is told', async () => {
			const mark = `77${crypto.randomInt(1e6)}`;
			const e = await sh(r, box, `sleep ${mark} & sleep ${mark}; echo never`, { timeout_ms: 1 });
			assert.equal(e.last.timed_out, true);
			assert.equal(e.code, 143);
			await until('the group to end', () => h.processesWith(`sleep\0${mark}`).length === 0);
		});

		test('a command that ignores TERM is killed after its grace', async () => {
			const e = await sh(r, box, 'trap "" TERM; while :; do sleep 0.1; done', { timeout_ms: 500 });
			assert.deepEqual([e.code, e.last.timed_out], [137, true]);
		});

		test('a command that ends before its limit is not timed out', async () => {
			const e = await sh(r, box, 'exit 143', { timeout_ms: 60000 });
			assert.deepEqual([e.code, e.last.timed_out], [143, false]);
		});

		for (const [signal, code] of [['TERM', 143], ['INT', 130], ['KILL', 137], [undefined, 137]])
			test(`kill ${signal ?? 'without a signal'} reaches the whole group`, async () => {
				const exec_id = newExec(), mark = `66${crypto.randomInt(1e6)}`;
				// INT is ignored by background children of a shell without job control, so exec them.
				const text = signal === 'INT' ? `exec sleep ${mark}` : `sleep ${mark} & sleep ${mark}`;
				await execRaw(r, box, { exec_id, argv: ['sh', '-c', text], follow_ms: 0 });
				await until('the children', () => h.processesWith(`sleep\0${mark}`).length > 0);
				const k = await call(r, 'POST', `${BASE}/${box}/exec/${exec_id}/kill`, signal ? { signal } : '{}');
				assert.deepEqual([k.status, k.json], [200, { state: 'sent' }]);
				const f = await follow(r, box, exec_id, 'follow_ms=20000');
				assert.deepEqual([f.last.code, f.last.timed_out], [code, false]);
				await until('the group to end', () => h.processesWith(`sleep\0${mark}`).length === 0);
				const again = await call(r, 'POST', `${BASE}/${box}/exec/${exec_id}/kill`, {});
				assert.deepEqual(again.json, { state: 'done' });
			});

		test('kill with another signal is refused', async () => {
			const exec_id = newExec();
			await exec(r, box, ['true'], { exec_id });
			for (const body of [{ signal: 'HUP' }, { signal: 9 }, { signal: '' }, '[]', '{'])
				refused(await call(r, 'POST', `${BASE}/${box}/exec/${exec_id}/kill`, body), 400, 'bad_request');
		});

		test('background children outlive their command and die with the sandbox', async () => {
			const id = await create(r), mark = `55${crypto.randomInt(1e6)}`;
			await sh(r, id, `sleep ${mark} & setsid sh -c 'setsid sleep ${mark} & sleep ${mark}' >/dev/null 2>&1 &`);
			await until('three children', () => h.processesWith(`sleep\0${mark}`).length === 3);
			assert.equal((await sh(r, id, 'pgrep -xc sleep')).text.trim(), '3');
			assert.equal((await destroy(r, id)).json.state, 'stopped');
			assert.deepEqual(h.processesWith(`sleep\0${mark}`), []);
		});

		test('a child that holds the output open does not hold up the end', async () => {
			const e = await sh(r, box, 'sleep 3 & echo done');
			assert.deepEqual([e.code, e.text], [0, 'done\n']);
		});

		test('orphans are reaped', async () => {
			const id = await create(r);
			await sh(r, id, 'for i in 1 2 3 4 5; do (sh -c "sleep 0.01 &" ); done; sleep 0.2');
			await until('no zombie', async () => !(await sh(r, id, 'ps -eo stat=')).text.includes('Z'));
			await destroy(r, id);
		});

		test('a follower learns that the sandbox ended under its command', async () => {
			const id = await create(r);
			const following = sh(r, id, 'echo up; sleep 60');
			await until('the command', async () => (await sh(r, id, 'pgrep -x sleep')).code === 0);
			await destroy(r, id);
			const e = await following;
			assert.deepEqual([e.last.t, e.last.code, e.text], ['error', 'exec_lost', 'up\n']);
		});

		// -- files -----------------------------------------------------------------------------

		test('a file goes in and comes out, with its size', async () => {
			const data = crypto.randomBytes(100000), url = fileUrl(box, '/tmp/d/e/f g+h é\n%');
			assert.deepEqual((await call(r, 'PUT', url, data)).json, { size: 100000 });
			const a = await call(r, 'GET', url);
			assert.deepEqual(a.bytes, data);
			assert.equal(a.headers['x-file-size'], '100000');
			assert.equal(a.headers['content-type'], 'application/octet-stream');
			const part = await call(r, 'GET', `${url}&offset=99990&length=5`);
			assert.deepEqual(part.bytes, data.subarray(99990, 99995));
			const past = await call(r, 'GET', `${url}&offset=100001`);
			assert.deepEqual([past.status, past.bytes.length, past.headers['x-file-size']], [200, 0, '100000']);
			assert.deepEqual((await call(r, 'PUT', url, Buffer.alloc(0))).json, { size: 0 });
			assert.equal((await call(r, 'GET', url)).bytes.length, 0);
		});

		test('upload in blocks goes on only at the present size', async () => {
			const url = fileUrl(box, '/home/user/blocks');
			await call(r, 'PUT', url, 'hello ');
			assert.deepEqual((await call(r, 'PUT', `${url}&offset=6`, 'world')).json, { size: 11 });
			refused(await call(r, 'PUT', `${url}&offset=6`, 'again'), 409, 'conflict');
			refused(await call(r, 'PUT', `${url}&offset=12`, 'gap'), 409, 'conflict');
			assert.equal(String((await call(r, 'GET', url)).bytes), 'hello world');
		});

		test('a block of 8 MiB is taken, one byte more is not', async () => {
			const data = crypto.randomBytes(8388608), url = fileUrl(box, '/tmp/big');
			assert.deepEqual((await call(r, 'PUT', url, data)).json, { size: 8388608 });
			assert.ok((await call(r, 'GET', url)).bytes.equals(data));
			refused(await call(r, 'PUT', url, Buffer.alloc(8388609)), 413, 'too_large');
			assert.equal((await sh(r, box, 'wc -c </tmp/big; rm /tmp/big')).text.trim(), '8388608');
		});

		for (const [name, method, p, status, code] of [
			['a missing file', 'GET', '/tmp/none', 404, 'file_not_found'],
			['a folder', 'GET', '/tmp', 400, 'is_directory'],
			['writing to a folder', 'PUT', '/tmp', 400, 'is_directory'],
			['a device', 'GET', '/dev/zero', 400, 'file_error'],
			['writing where nothing may be written', 'PUT', '/usr/x', 400, 'file_error'],
			['writing over a system file', 'PUT', '/etc/passwd', 400, 'file_error'],
			['a file as a folder', 'GET', '/etc/passwd/x', 400, 'file_error'],
			['a relative path', 'GET', 'tmp/x', 400, 'bad_request'],
			['an empty path', 'GET', '', 400, 'bad_request'],
			['a very long path', 'GET', `/${'a'.repeat(5000)}`, 400, 'bad_request'],
			['a very long name', 'PUT', `/tmp/${'a'.repeat(300)}`, 400, 'file_error'],
			['the shadow file', 'GET', '/etc/shadow', 404, 'file_not_found'],
		])
			test(`${name} is refused`, async () => {
				refused(await call(r, method, fileUrl(box, p), method === 'PUT' ? 'x' : undefined), status, code);
			});

		test('malformed file queries are refused', async () => {
			for (const q of ['', '?path=/a&path=/b', '?path=/a%00b', '?path=/a%', '?path=/a&offset=-1', '?path=/a&length=x'])
				refused(await call(r, 'GET', `${BASE}/${box}/file${q}`), 400, 'bad_request');
		});

		test('a pipe in the place of a file does not hold up the runner', async () => {
			await sh(r, box, 'mkfifo /tmp/pipe');
			refused(await call(r, 'GET', fileUrl(box, '/tmp/pipe')), 400, 'file_error');
			refused(await call(r, 'PUT', fileUrl(box, '/tmp/pipe'), 'x'), 400, 'file_error');
		});

		test('links lead nowhere outside', async () => {
			await sh(r, box, 'ln -sf /etc/shadow /tmp/s; ln -sf ../../../../../root/.profile /tmp/t; ln -sf /proc/1/root /tmp/u');
			refused(await call(r, 'GET', fileUrl(box, '/tmp/s')), 404, 'file_not_found');
			refused(await call(r, 'GET', fileUrl(box, '/tmp/t')), 404, 'file_not_found');
			assert.notEqual((await call(r, 'GET', fileUrl(box, '/tmp/u/etc/shadow'))).status, 200);
		});

		// -- isolation -------------------------------------------------------------------------

		test('the box sees nothing of this machine', async () => {
			const e = await sh(r, box, `id -u; hostname; ls /root /etc/shadow /home 2>&1; cat /proc/net/unix | wc -l;
				grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; ls -d /proc/[0-9]* | wc -l; ls /`);
			assert.match(e.text, /^1000\nbox\n/);
			assert.match(e.text, /cannot access '\/root'/);
			assert.match(e.text, /cannot access '\/etc\/shadow'/);
			assert.match(e.text, /CapEff:\t0000000000000000\n/);
			assert.match(e.text, /NoNewPrivs:\t1\n/);
			for (const p of h.work.split('/').slice(1, 2)) assert.ok(!(await sh(r, box, `ls /${p}/tmp`)).text.includes('runner-test'));
		});

		test('the box cannot gain rights', async () => {
			for (const text of ['unshare -U true', 'unshare -m true', 'mount -t tmpfs x /tmp', 'chroot / true',
				'cat /proc/1/environ', 'ls /proc/1/fd', 'touch /usr/x', 'touch /x', 'touch /dev/x', 'touch /etc/x', 'chown 0 /tmp',
				'mknod /tmp/n b 7 0', 'echo x >/sys/fs/cgroup/memory/cgroup.procs', 'su -c true', 'echo 1 >/proc/sys/kernel/panic',
				'ip link set lo down', 'ip addr add 10.1.1.1/8 dev lo', 'hostname other'])
				assert.notEqual((await sh(r, box, `${text} 2>/dev/null; s=$?; [ "$s" != 127 ] || s=1; exit $s`)).code, 0, text);
			// The kernel lets nothing inside end the first process.
			await sh(r, box, 'kill -KILL 1; kill -TERM 1; kill -STOP 1');
			assert.equal((await sh(r, box, 'echo fine')).text, 'fine\n');
		});

		test('sandboxes do not see each other', async () => {
			const [a, b] = [await create(r), await create(r)];
			const mark = `44${crypto.randomInt(1e6)}`;
			await sh(r, a, `echo mine >/tmp/mine; echo mine >/dev/shm/mine; sleep ${mark} >/dev/null &`);
			const e = await sh(r, b, `cat /tmp/mine /dev/shm/mine; pgrep -f 'slee[p] ${mark}'; ls /tmp /dev/shm /home/user`);
			assert.ok(!e.text.includes('mine') && e.code === 0, e.text);
			await Promise.all([destroy(r, a), destroy(r, b)]);
		});

		test('without a network there is only loopback of its own', async () => {
			const id = await create(r, { network: 'none' });
			assert.equal((await call(r, 'GET', `${BASE}/${id}`)).json.network, 'none');
			assert.equal((await sh(r, id, 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " \n"')).text, 'lo');
			assert.equal((await sh(r, id, 'tail -n +2 /proc/net/route')).text, '');
			const e = await sh(r, id, `for a in 127.0.0.1 10.0.2.2 1.1.1.1; do timeout 5 bash -c "</dev/tcp/$a/${hostPort}" 2>/dev/null && echo leak; done;
				perl -MIO::Socket -e '$l=IO::Socket::INET->new(Listen=>1,LocalAddr=>"127.0.0.1") or die; $c=IO::Socket::INET->new(PeerAddr=>"127.0.0.1",PeerPort=>$l->sockport) or die; print "loop\n"'`);
			assert.equal(e.text, 'loop\n');
			await destroy(r, id);
		});

		// -- limits ----------------------------------------------------------------------------

		test('a full disk is an error of the command and keeps its exit code', async () => {
			const id = await create(r, { limits: { disk_mib: 8 } });
			const e = await sh(r, id, 'cat /dev/zero >/tmp/fill; echo more >/home/user/x || echo failed; exit 7');
			assert.equal(e.code, 7);
			assert.match(e.err.toString(), /No space left/);
			assert.equal(e.text, 'failed\n');
			refused(await call(r, 'PUT', fileUrl(id, '/tmp/late'), Buffer.alloc(100000)), 400, 'file_error', /space/);
			assert.equal((await sh(r, id, 'rm /tmp/fill; wc -c </tmp/late; df -k --output=size /tmp | tail -1')).text.replace(/\s+/g, ' ').trim(), '0 8192');
			const more = await sh(r, id, 'cat /dev/zero >/dev/shm/fill; exit 3');
			assert.equal(more.code, 3);
			await destroy(r, id);
		});

		test('a fork bomb stays within its limit and the sandbox can be ended', async () => {
			const id = await create(r, { limits: { pids: 24 } }), mark = `33${crypto.randomInt(1e6)}`;
			const e = await sh(r, id, `for i in $(seq 60); do sleep ${mark} & done; wait`, { timeout_ms: 60000, follow_ms: 2000 });
			assert.match(e.err.toString(), /fork|Resource temporarily/i);
			const n = h.processesWith(`sleep\0${mark}`).length;
			assert.ok(n > 5 && n <= 24, `${n} processes`);
			// The shell that could not fork may have ended and left its place to another command.
			refused(await until('the refusal', async () => {
				const a = await execRaw(r, id, { argv: ['sleep', mark], follow_ms: 0 });
				return a.status === 503 && a;
			}), 503, 'capacity', /process/);
			assert.equal((await destroy(r, id)).json.state, 'stopped');
			assert.deepEqual(h.processesWith(`sleep\0${mark}`), []);
		});

		test('100 MB of output come whole while the runner stays small', async () => {
			const id = await create(r);
			const hash = crypto.createHash('sha256');
			for (let i = 0; i < 100; i++) hash.update(Buffer.alloc(1 << 20, i));
			const e = await exec(r, id, ['perl', '-e', 'for $i (0..99) { print chr($i) x (1<<20) } exit 5']);
			assert.equal(e.out.length, 100 << 20);
			assert.equal(crypto.createHash('sha256').update(e.out).digest('hex'), hash.digest('hex'));
			assert.equal(e.code, 5);
			const status = fs.readFileSync(`/proc/${r.pid}/status`, 'utf8');
			if (!/sanitize/.test(process.env.CC_BUILD ?? '') && !process.env.CC_SANITIZED)
				assert.ok(Number(/VmHWM:\s+(\d+)/.exec(status)[1]) < 200000, status.match(/VmHWM.*/)[0]);
			await destroy(r, id);
		});

		test('output beyond 256 MiB is dropped and counted, the exit code stays', async () => {
			const id = await create(r), exec_id = newExec();
			await execRaw(r, id, { exec_id, follow_ms: 0, argv: ['perl', '-e', 'for (1..300) { print "x" x (1<<20) } exit 6'] });
			const f = await until('the end', async () => {
				const a = await follow(r, id, exec_id, `stdout=${256 << 20}&follow_ms=20000`);
				return a.last.t === 'exit' && a;
			}, 60000);
			assert.deepEqual([f.last.code, f.last.dropped], [6, { stdout: 44 << 20, stderr: 0 }]);
			await destroy(r, id);
		});

		test('many short commands leave nothing open, and a forgotten id does not run again', async () => {
			const id = await create(r), exec_id = newExec();
			await exec(r, id, ['sh', '-c', 'echo x >>/tmp/n'], { exec_id });
			for (let round = 0; round < 17; round++)
				await Promise.all([...Array(16)].map(async () => assert.equal((await exec(r, id, ['true'])).code, 0)));
			await until('it to be forgotten', async () => (await call(r, 'GET', `${BASE}/${id}/exec/${exec_id}`)).status === 404);
			refused(await execRaw(r, id, { exec_id, argv: ['sh', '-c', 'echo x >>/tmp/n'] }), 404, 'exec_not_found', /ended/);
			assert.equal((await sh(r, id, 'cat /tmp/n')).text, 'x\n');
			if (h.isRoot) await until('few descriptors', () => fs.readdirSync(`/proc/${r.pid}/fd`).length < 300);
			await destroy(r, id);
		});

		// -- time ------------------------------------------------------------------------------

		test('a sandbox ends at its hard end, whatever it does', async () => {
			const mark = `22${crypto.randomInt(1e6)}`;
			const id = await create(r, { ttl_seconds: 6 });
			const e = await sh(r, id, `trap "" TERM INT HUP; sleep ${mark}; sleep ${mark}`);
			assert.equal(e.last.code, 'exec_lost');
			await until('the end', async () => (await call(r, 'GET', `${BASE}/${id}`)).status === 404);
			await until('no process', () => h.processesWith(`sleep\0${mark}`).length === 0);
			assert.ok(!(await call(r, 'GET', BASE)).json.sandboxes.some((s) => s.id === id && s.state === 'running'));
		});

		test('an idle sandbox ends, a busy one does not', async () => {
			const idle = await create(r, { idle_seconds: 1 }), busy = await create(r, { idle_seconds: 6 });
			const running = sh(r, busy, 'sleep 8; echo still');
			await until('the idle end', async () => !(await call(r, 'GET', BASE)).json.sandboxes.some((s) => s.id === idle));
			assert.equal((await running).text, 'still\n');
			await destroy(r, busy);
		});

		test('a ttl beyond the runner\'s own end is cut and told', async () => {
			const a = await call(r, 'POST', BASE, { id: newId(), ttl_seconds: 86400 });
			assert.ok(a.json.expires_at - a.json.created_at <= 600);
			assert.ok(a.json.warnings.some((w) => /lifetime/.test(w)));
			await destroy(r, a.json.id);
		});

		test('30 sandboxes at once', async () => {
			const ids = await Promise.all([...Array(30)].map(() => create(r, { network: 'none' })));
			const out = await Promise.all(ids.map((id) => sh(r, id, `echo ${id} >/tmp/i; sleep 0.2; cat /tmp/i`)));
			assert.deepEqual(out.map((e) => e.text.trim()), ids);
			const ended = await Promise.all(ids.map((id) => destroy(r, id)));
			for (const [i, a] of ended.entries())
				if (a.status === 202) await until('the end', async () => (await destroy(r, ids[i])).status === 200);
			if (mode === 'root') assert.deepEqual(ids.flatMap((id) => h.groups(id)), []);
		});

		// -- hostile bytes ---------------------------------------------------------------------

		test('bytes that are no HTTP do no harm', async () => {
			const port = new URL(r.url).port;
			const texts = ['\0\0\0\0', 'GET', 'GET / HTTP/9.9\r\n\r\n', `GET /${'a'.repeat(200000)} HTTP/1.1\r\n\r\n`,
				`POST ${BASE} HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n`,
				`POST ${BASE} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz`,
				`POST ${BASE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${r.token}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
				`GET ${BASE} HTTP/1.1\r\n${'X-A: b\r\n'.repeat(20000)}\r\n`, crypto.randomBytes(5000)];
			await Promise.all(texts.map((t) => new Promise((done) => {
				const s = net.connect(port, '127.0.0.1', () => s.end(t));
				s.on('data', () => {});
				s.on('error', done);
				s.on('close', done);
				setTimeout(() => s.destroy(), 3000);
			})));
			const half = net.connect(port, '127.0.0.1', () => half.write(`POST ${BASE} HTTP/1.1\r\nContent-Length: 100\r\n\r\n{`));
			half.on('error', () => {});
			assert.equal((await call(r, 'GET', '/health')).status, 200);
			half.destroy();
		});

		test('random bodies are refused in the declared form', async () => {
			for (let i = 0; i < 30; i++) {
				const a = await call(r, 'POST', i % 2 ? BASE : `${BASE}/${box}/exec`, crypto.randomBytes(crypto.randomInt(1, 300)));
				refused(a, 400, 'bad_request');
			}
		});

		test('a chunked body without a length is bounded too', async () => {
			const a = await new Promise((resolve, reject) => {
				const req = http.request(r.url + BASE, { method: 'POST', headers: { authorization: `Bearer ${r.token}` } }, (res) => {
					res.resume();
					res.on('end', () => resolve(res.statusCode));
				});
				req.on('error', reject);
				for (let i = 0; i < 20; i++) req.write(' '.repeat(65536));
				req.end('{}');
			});
			assert.equal(a, 413);
		});

		// -- root: groups and the internet -----------------------------------------------------

		if (mode !== 'root') return;

		test('a memory hog is killed, counted, and the sandbox lives on', async () => {
			const id = await create(r, { limits: { memory_mib: 64 } });
			const e = await exec(r, id, ['perl', '-e', '$x = "x" x (1 << 28); print "survived"']);
			assert.deepEqual([e.code, e.text], [137, '']);
			const files = (await sh(r, id, `cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null;
				cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null;
				cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes /sys/fs/cgroup/memory.peak 2>/dev/null`)).text;
			assert.match(files, /oom_kill [1-9]/);
			assert.match(files, /^67108864$/m);
			assert.ok(files.trim().split('\n').at(-1) > 30 << 20, files);
			assert.equal((await sh(r, id, 'echo alive')).text, 'alive\n');
			await destroy(r, id);
		});

		test('memory of files counts too', async () => {
			const id = await create(r, { limits: { memory_mib: 24, disk_mib: 48 } });
			const e = await sh(r, id, 'head -c 40000000 /dev/zero >/tmp/f; echo $?');
			assert.notEqual(e.text, '0\n');
			await destroy(r, id);
		});

		test('groups have the limits and go with the sandbox', async () => {
			const id = await create(r, { limits: { memory_mib: 100, cpus: 0.5, pids: 20 } });
			const folders = h.groups(id);
			assert.ok(folders.length >= 1);
			const read = (f) => folders.map((p) => `${p}/${f}`).filter((p) => fs.existsSync(p)).map((p) => fs.readFileSync(p, 'utf8').trim())[0];
			assert.equal(read('memory.limit_in_bytes') ?? read('memory.max'), String(100 << 20));
			assert.equal(read('pids.max'), '22');
			assert.equal(read('cpu.cfs_quota_us') ?? read('cpu.max').split(' ')[0], '50000');
			await destroy(r, id);
			assert.deepEqual(h.groups(id), []);
		});

		test('boxes run as nobody\'s user and the HTTP side has no rights', async () => {
			const mark = `11${crypto.randomInt(1e6)}`;
			await execRaw(r, box, { argv: ['sleep', mark], follow_ms: 0 });
			const [pid] = await until('the process', () => { const p = h.processesWith(`sleep\0${mark}`); return p.length && p; });
			const uids = (p) => /Uid:\t(\d+)/.exec(fs.readFileSync(`/proc/${p}/status`, 'utf8'))[1];
			assert.equal(uids(pid), '64071');
			assert.equal(uids(r.pid), '64070');
			assert.match(fs.readFileSync(`/proc/${r.pid}/status`, 'utf8'), /CapEff:\t0000000000000000/);
		});

		test('the internet does not include this machine or its neighbours', async (t) => {
			if ((await call(r, 'GET', `${BASE}/${box}`)).json.network !== 'internet') return t.skip('no slirp4netns here');
			const own = Object.values((await import('node:os')).networkInterfaces()).flat()
				.filter((i) => i.family === 'IPv4' && !i.internal).map((i) => i.address);
			assert.match((await sh(r, box, 'cat /proc/net/route')).text, /tap0\t00000000/);
			for (const a of ['10.0.2.2', '10.0.2.3', '127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', ...own]) {
				const e = await sh(r, box, `timeout 10 bash -c "</dev/tcp/${a}/${hostPort}"`);
				assert.match(e.err.toString(), /unreachable|No route|refused|denied/i, `${a}: ${e.err}`);
			}
			assert.equal((await sh(r, box, 'cat /etc/resolv.conf')).text, 'nameserver 10.0.2.3\n');
		});
	});
