// The contract sbx-bridge 1 as a list of cases, for every bridge that is deployed on a user's account:
//
//   contract('workers', () => start(), { provider: 'cloudflare', replaces: true, unsupported: {...} })
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { until } from '../lib/wait.mjs';
import * as c from './client.mjs';

const { BASE, call, create, destroy, exec, execRaw, fileUrl, follow, frames, newExec, newId, sh } = c;

const refused = (a, status, code) => {
	assert.equal(a.status, status, `${a.status} ${a.bytes}`);
	assert.equal(a.json?.error?.code, code, String(a.bytes));
	assert.equal(typeof a.json.error.message, 'string');
	assert.match(a.headers['content-type'], /^application\/json/);
	assert.equal(a.headers['cache-control'], 'no-store');
};

export function contract(name, boot, facts) {
	describe(`${name}: the contract`, { concurrency: 2 }, () => {
		let p, box;
		before(async () => {
			p = await boot();
			box = await create(p, { labels: { a: '1', b: 'x=y' } });
		});
		after(() => p?.stop());

		// -- who may ask what ----------------------------------------------------------------------

		test('health needs no token and tells contract, limits and features', async () => {
			const a = await call(p, 'GET', '/health', undefined, { headers: { authorization: null } });
			assert.equal(a.status, 200);
			const { ok, contract: word, version, provider, features, limits } = a.json;
			assert.deepEqual([ok, word, version, provider], [true, 'sbx-bridge', 1, facts.provider]);
			for (const f of ['exec', 'kill', 'stdin', 'env', 'files', 'ttl']) assert.ok(features.includes(f), f);
			assert.deepEqual(limits, { follow_ms: 60000, file_block: 8388608, command_bytes: 32768 });
		});

		for (const [what, value] of Object.entries({
			'no token': null, 'an empty one': 'Bearer ', 'a wrong one': `Bearer ${'A'.repeat(43)}`, 'a short one': 'Bearer x',
			'a long one': `Bearer ${'A'.repeat(5000)}`, 'another scheme': 'Basic Zm9v' }))
			test(`a call with ${what} is refused`, async () => {
				for (const [method, url] of [['GET', BASE], ['POST', BASE], ['DELETE', `${BASE}/${box}`], ['GET', '/anything']])
					refused(await call(p, method, url, method === 'POST' ? '{}' : undefined, { headers: { authorization: value } }), 401, 'unauthorized');
			});

		test('a token that differs a little is refused', async () => {
			const t = p.credential.token;
			for (const other of [`${t.slice(0, -1)}${t.at(-1) === 'A' ? 'B' : 'A'}`, `${t}A`, t.slice(0, -1), t.toUpperCase()])
				refused(await call(p, 'GET', BASE, undefined, { headers: { authorization: `Bearer ${other}` } }), 401, 'unauthorized');
		});

		test('unknown routes are 404, known ones with another method 405', async () => {
			for (const at of ['/', '/bridge/v1', '/bridge/v2/sandboxes', `${BASE}/`, `${BASE}/short`, `${BASE}/${box}/x`, `${BASE}/UPPERCASE1`,
				`${BASE}/${box}/exec/`, `${BASE}/${box}/exec/a/kill`, `${BASE}/${box}/file/x`, `${BASE}/${box}%00`, `${BASE}/${box}/exec/exec-0001/kill/x`])
				refused(await call(p, 'GET', at), 404, 'not_found');
			for (const [method, at] of [['PUT', BASE], ['DELETE', BASE], ['POST', `${BASE}/${box}`], ['GET', `${BASE}/${box}/exec`],
				['DELETE', fileUrl(box, '/tmp/x')], ['PATCH', `${BASE}/${box}`], ['GET', `${BASE}/${box}/exec/exec-0001/kill`]])
				refused(await call(p, method, at), 405, 'method_not_allowed');
		});

		// -- create and delete ---------------------------------------------------------------------

		const good = () => ({ id: newId(), ttl_seconds: 60 });
		for (const [what, body, status = 400, code = 'bad_request'] of [
			['text that is not JSON', '{"id":'],
			['an empty body', ''],
			['a list', '[]'],
			['broken UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
			['no id', { ttl_seconds: 60 }],
			['a number as id', { ...good(), id: 12345678 }],
			['a short id', { ...good(), id: 'short' }],
			['a long id', { ...good(), id: 'a'.repeat(64) }],
			['an id in capitals', { ...good(), id: 'Sandbox-12' }],
			['an id that begins with a digit', { ...good(), id: '1sandbox-1' }],
			['an id with a path in it', { ...good(), id: 'aaaa/../../etc' }],
			['an id with a line end', { ...good(), id: 'sandbox-12\n' }],
			['no ttl_seconds', { id: newId() }],
			['ttl_seconds 0', { ...good(), ttl_seconds: 0 }],
			['ttl_seconds 86401', { ...good(), ttl_seconds: 86401 }],
			['ttl_seconds as text', { ...good(), ttl_seconds: '60' }],
			['ttl_seconds 1.5', { ...good(), ttl_seconds: 1.5 }],
			['ttl_seconds true', { ...good(), ttl_seconds: true }],
			['idle_seconds 0', { ...good(), idle_seconds: 0 }],
			['labels that are no object', { ...good(), labels: ['a'] }],
			['a label that is no string', { ...good(), labels: { a: 1 } }],
			['a bad env name', { ...good(), env: { 'A-B': '1' } }],
			['an env name with an equals sign', { ...good(), env: { 'A=B': '1' } }],
			['an env name with a line end', { ...good(), env: { 'A\n': '1' } }],
			['a NUL in an env value', { ...good(), env: { A: 'a\0b' } }],
			['the network of the machine', { ...good(), network: 'host' }, 400, 'unsupported'],
			['a body over 1 MiB', `{"id":"${'x'.repeat(1 << 20)}"}`, 413, 'too_large'],
			...facts.refusals(good),
		])
			test(`create with ${what} is refused`, async () => {
				refused(await call(p, 'POST', BASE, body), status, code);
			});

		test('create answers 201 and what the sandbox is, then 200 and the same', async () => {
			const id = newId(), t = Date.now() / 1000;
			const a = await call(p, 'POST', BASE, { id, ttl_seconds: 120, labels: { 'k"<': 'v\u00e9' }, unknown_member: 1 });
			assert.equal(a.status, 201);
			assert.equal(a.headers['cache-control'], 'no-store');
			assert.deepEqual([a.json.id, a.json.state, a.json.labels], [id, 'running', { 'k"<': 'v\u00e9' }]);
			assert.ok(a.json.created_at >= t - 2 && a.json.created_at < t + 60);
			assert.ok(Math.abs(a.json.expires_at - a.json.created_at - 120) < 0.01);
			const again = await call(p, 'POST', BASE, { id, ttl_seconds: 7, labels: {} });
			assert.deepEqual([again.status, again.json], [200, a.json]);
			assert.deepEqual((await call(p, 'GET', `${BASE}/${id}`)).json, a.json);
			assert.equal((await destroy(p, id)).json.state, 'stopped');
			refused(await call(p, 'GET', `${BASE}/${id}`), 404, 'sandbox_not_found');
		});

		test('eight creates of one id at once make one sandbox', async () => {
			const id = newId();
			const all = await Promise.all([...Array(8)].map(() => call(p, 'POST', BASE, { id, ttl_seconds: 60 })));
			assert.deepEqual(all.map((a) => a.status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
			assert.equal(new Set(all.map((a) => a.json.created_at)).size, 1);
			await destroy(p, id);
		});

		test('the list can be filtered by labels', async () => {
			const has = async (q) => (await call(p, 'GET', `${BASE}${q}`)).json.sandboxes.some((s) => s.id === box);
			for (const q of ['', '?label=a=1', '?label=a=1&label=b%3Dx%3Dy']) assert.ok(await has(q), q);
			for (const q of ['?label=a=2', '?label=a=1&label=c=1']) assert.ok(!await has(q), q);
			for (const q of ['?label=a', '?label==1']) refused(await call(p, 'GET', `${BASE}${q}`), 400, 'bad_request');
		});

		test('delete is proven, may be repeated, and frees the id', async () => {
			const id = await create(p);
			await sh(p, id, 'echo one >/tmp/f');
			for (let i = 0; i < 3; i++) {
				const a = await destroy(p, id);
				assert.deepEqual([a.status, a.json], [200, { id, state: 'stopped' }]);
			}
			assert.ok(p.boxes().filter((b) => b.mark === id).every((b) => b.state === 'stopped'));
			for (const again of [execRaw(p, id, { argv: ['true'] }), call(p, 'GET', fileUrl(id, '/tmp/f')), call(p, 'PUT', fileUrl(id, '/tmp/f'), 'x')])
				refused(await again, 404, 'sandbox_not_found');
			const unknown = newId();
			assert.deepEqual((await destroy(p, unknown)).json, { id: unknown, state: 'stopped' });
			await create(p, { id });
			assert.equal((await sh(p, id, 'cat /tmp/f')).code, 1);
			await destroy(p, id);
		});

		test('a stop that fails is "stopping" or an error, never "stopped", and may be repeated', async () => {
			const id = await create(p);
			await sh(p, id, 'true');
			p.machines.failEnd = 1;
			const a = await destroy(p, id);
			assert.ok(a.status === 202 || a.status === 502, String(a.bytes));
			assert.notEqual(a.json.state, 'stopped');
			const b = await until('the end', async () => { const r = await destroy(p, id); return r.status === 200 && r; });
			assert.equal(b.json.state, 'stopped');
			assert.ok(p.boxes().filter((one) => one.mark === id).every((one) => one.state === 'stopped'));
		});

		test('a sandbox ends at its end although nobody asks', async () => {
			const id = await create(p, { ttl_seconds: 6 });
			await execRaw(p, id, { argv: ['sleep', '300'], follow_ms: 0 });
			assert.ok(p.boxes().some((b) => b.mark === id));
			await until('its end', () => p.boxes().every((b) => b.mark !== id || b.state === 'stopped'));
			await until('that it is known', async () => (await call(p, 'GET', `${BASE}/${id}`)).status === 404);
		});

		// -- commands ------------------------------------------------------------------------------

		for (const [what, body, status = 400, code = 'bad_request'] of [
			['no exec_id', { exec_id: null, argv: ['true'] }],
			['a short exec_id', { exec_id: 'abc', argv: ['true'] }],
			['an exec_id with a slash', { exec_id: 'aaaa/bbbb', argv: ['true'] }],
			['an exec_id with a line end', { exec_id: 'aaaabbbb\n', argv: ['true'] }],
			['no argv', {}],
			['an empty argv', { argv: [] }],
			['an empty program name', { argv: [''] }],
			['argv as text', { argv: 'true' }],
			['a number in argv', { argv: ['echo', 1] }],
			['a NUL in argv', { argv: ['echo', 'a\0b'] }],
			['a bad env name', { argv: ['true'], env: { '1A': 'x' } }],
			['an env value that is no string', { argv: ['true'], env: { A: 1 } }],
			['stdin that is not base64', { argv: ['cat'], stdin_b64: 'a*b=' }],
			['a negative timeout', { argv: ['true'], timeout_ms: -1 }],
			['a follow_ms over 60000', { argv: ['true'], follow_ms: 60001 }],
			['a cwd that does not exist', { argv: ['true'], cwd: '/no/such' }, 400, 'bad_cwd'],
			['a cwd that is a file', { argv: ['true'], cwd: '/etc/passwd' }, 400, 'bad_cwd'],
			['a command over 32768 bytes', { argv: ['true', 'x'.repeat(32768)] }, 413, 'too_large'],
			['a command over 32768 bytes in fewer characters', { argv: ['true', '\u20ac'.repeat(11000)] }, 413, 'too_large'],
			['env that makes it too large', { argv: ['true', 'x'.repeat(20000)], env: { A: 'y'.repeat(13000) } }, 413, 'too_large'],
			['stdin that makes it too large', { argv: ['cat'], stdin_b64: Buffer.alloc(30000).toString('base64') }, 413, 'too_large'],
		])
			test(`exec with ${what} is refused`, async () => {
				refused(await execRaw(p, box, body), status, code);
			});

		test('what is not there is told by its own word', async () => {
			refused(await execRaw(p, newId(), { argv: ['true'] }), 404, 'sandbox_not_found');
			refused(await call(p, 'GET', `${BASE}/${box}/exec/${newExec()}`), 404, 'exec_not_found');
			refused(await call(p, 'POST', `${BASE}/${box}/exec/${newExec()}/kill`, {}), 404, 'exec_not_found');
		});

		test('an exec id whose start was refused is still free', async () => {
			const exec_id = newExec();
			refused(await execRaw(p, box, { exec_id, argv: ['true'], cwd: '/no/such' }), 400, 'bad_cwd');
			assert.equal((await exec(p, box, ['true'], { exec_id })).code, 0);
		});

		test('exit codes are the command\'s own', async () => {
			for (const [text, code] of [['true', 0], ['exit 1', 1], ['exit 7', 7], ['exit 137', 137], ['exit 255', 255],
				['kill -KILL $$', 137], ['kill -TERM $$', 143], ['/no/such/program', 127]]) {
				const e = await sh(p, box, text);
				assert.deepEqual([e.code, e.last.timed_out], [code, false], text);
			}
			assert.equal((await exec(p, box, ['/no/such'])).code, 127);
			assert.equal((await exec(p, box, ['/etc/passwd'])).code, 126);
		});

		test('every byte comes back as it was, on both streams', async () => {
			const e = await exec(p, box, ['perl', '-e', 'print pack("C*",0..255); print STDERR pack("C*",reverse 0..255)']);
			const all = Buffer.from([...Array(256).keys()]);
			assert.deepEqual([e.out, e.err], [all, Buffer.from(all).reverse()]);
			assert.equal(e.list[0].t, 'start');
		});

		test('a megabyte comes whole', async () => {
			const e = await exec(p, box, ['perl', '-e', 'print pack("N", $_) for 0..262143']);
			assert.equal(e.out.length, 1 << 20);
			for (let i = 0; i < 262144; i += 4099) assert.equal(e.out.readUInt32BE(4 * i), i);
		});

		test('arguments arrive as they are', async () => {
			const odd = ['', ' ', 'a b', '\'', '"', '$HOME', '`id`', '\\', '\n', '*', '-n', '\u00e9\u{1f600}', '!', '$(id)', '\'\\\'\'', '#'];
			assert.equal((await exec(p, box, ['printf', '%s\\n', ...odd])).text, `${odd.join('\n')}\n`);
		});

		test('stdin arrives whole and ends; folder and variables are as asked', async () => {
			const data = crypto.randomBytes(16000);
			assert.deepEqual((await exec(p, box, ['cat'], { stdin_b64: data.toString('base64') })).out, data);
			assert.equal((await exec(p, box, ['wc', '-c'])).text.trim(), '0');
			const id = await create(p, { env: { FROM_BOX: 'box', BOTH: 'box' } });
			const e = await exec(p, id, ['env'], { env: { BOTH: 'exec', EMPTY: '', ODD: 'a=b\n"$x' }, cwd: '/tmp' });
			for (const line of ['FROM_BOX=box', 'BOTH=exec', 'EMPTY=', 'ODD=a=b', '"$x']) assert.ok(e.text.includes(`${line}\n`), line);
			assert.ok(!e.text.includes('BOTH=box'));
			assert.equal((await exec(p, id, ['pwd'], { cwd: '/tmp' })).text, '/tmp\n');
			await destroy(p, id);
		});

		test('an exec id runs once, and its repetition shows the same', async () => {
			const body = { exec_id: newExec(), argv: ['sh', '-c', 'echo x >>/tmp/once; wc -l </tmp/once'] };
			const first = await execRaw(p, box, body), second = await execRaw(p, box, body);
			assert.deepEqual(frames(second).out, frames(first).out);
			const other = frames(await execRaw(p, box, { ...body, argv: ['sh', '-c', 'exit 9'] }));
			assert.deepEqual([other.last.code, other.out.toString()], [0, '1\n']);
		});

		test('eight execs of one id at once run once and all follow', async () => {
			const body = { exec_id: newExec(), follow_ms: 60000, argv: ['sh', '-c', 'echo x >>/tmp/eight; sleep 0.3; wc -l </tmp/eight'] };
			for (const a of await Promise.all([...Array(8)].map(() => execRaw(p, box, body))))
				assert.deepEqual([frames(a).out.toString(), frames(a).last.code], ['1\n', 0]);
		});

		test('follow goes on from any offset', async () => {
			const exec_id = newExec();
			await exec(p, box, ['sh', '-c', 'printf 0123456789; printf abc >&2'], { exec_id });
			const f = await follow(p, box, exec_id, 'stdout=4&stderr=2', [4, 2]);
			assert.deepEqual([f.out.toString(), f.err.toString(), f.last.code], ['456789', 'c', 0]);
			const end = await follow(p, box, exec_id, 'stdout=10&stderr=3');
			assert.deepEqual(end.list.map((one) => one.t), ['start', 'exit']);
			assert.equal((await follow(p, box, exec_id, 'stdout=999999999999999')).last.t, 'exit');
			for (const q of ['stdout=-1', 'stdout=x', 'stdout=1e3', 'stderr=', 'stdout=1&stdout=2', 'follow_ms=a', 'stdout=1234567890123456'])
				refused(await call(p, 'GET', `${BASE}/${box}/exec/${exec_id}?${q}`), 400, 'bad_request');
		});

		test('a running command is pending, and the next call goes on where this one ended', async () => {
			const exec_id = newExec();
			const f = frames(await execRaw(p, box, { exec_id, follow_ms: 1500,
				argv: ['sh', '-c', 'printf one; until [ -e /tmp/go ]; do sleep 0.02; done; printf two; exit 3'] }));
			assert.deepEqual(f.last, { t: 'pending', stdout: 3, stderr: 0 });
			assert.equal((await follow(p, box, exec_id, 'stdout=3&follow_ms=0', [3, 0])).last.t, 'pending');
			await sh(p, box, 'touch /tmp/go');
			const rest = await follow(p, box, exec_id, 'stdout=3&follow_ms=20000', [3, 0]);
			assert.deepEqual([rest.out.toString(), rest.last.code], ['two', 3]);
		});

		test('output is sent while the command runs, and silence is marked', async () => {
			let partOf = '', early = false;
			const a = await call(p, 'POST', `${BASE}/${box}/exec`,
				{ exec_id: newExec(), argv: ['sh', '-c', 'echo now; until [ -e /tmp/then ]; do sleep 0.1; done; echo then'], follow_ms: 60000 },
				{ onData: (part) => {
					partOf += part;
					if (!early && partOf.includes('"hb"')) {
						early = partOf.includes('"out"') && !partOf.includes('"exit"');
						sh(p, box, 'touch /tmp/then').catch(() => {});
					}
				} });
			assert.ok(early);
			assert.equal(frames(a).out.toString(), 'now\nthen\n');
		});

		test('a client that goes away does not end the command', async () => {
			const exec_id = newExec();
			let request;
			await assert.rejects(call(p, 'POST', `${BASE}/${box}/exec`, { exec_id, argv: ['sh', '-c', 'echo a; sleep 0.5; echo b'], follow_ms: 60000 },
				{ onRequest: (q) => { request = q; }, onData: () => request.destroy() }));
			assert.equal((await follow(p, box, exec_id, 'follow_ms=20000')).out.toString(), 'a\nb\n');
		});

		test('the time limit ends the whole group and is told', async () => {
			const mark = `77${crypto.randomInt(1e6)}`;
			const e = await sh(p, box, `sleep ${mark} & sleep ${mark}; echo never`, { timeout_ms: 1 });
			assert.deepEqual([e.last.timed_out, e.code], [true, 143]);
			await until('the group to end', async () => (await sh(p, box, `pgrep -xf 'sleep ${mark}'`)).code === 1);
			const stubborn = await sh(p, box, 'trap "" TERM; while :; do sleep 0.1; done', { timeout_ms: 500 });
			assert.deepEqual([stubborn.code, stubborn.last.timed_out], [137, true]);
			const own = await sh(p, box, 'exit 143', { timeout_ms: 60000 });
			assert.deepEqual([own.code, own.last.timed_out], [143, false]);
		});

		for (const [signal, code] of [['TERM', 143], ['INT', 130], ['KILL', 137], [undefined, 137]])
			test(`kill ${signal ?? 'without a signal'} reaches the whole group`, async () => {
				const exec_id = newExec(), mark = `66${crypto.randomInt(1e6)}`;
				// Background children of a shell without job control ignore INT.
				const text = signal === 'INT' ? `exec sleep ${mark}` : `sleep ${mark} & sleep ${mark}`;
				await execRaw(p, box, { exec_id, argv: ['sh', '-c', text], follow_ms: 0 });
				await until('the children', async () => (await sh(p, box, `pgrep -xf 'sleep ${mark}'`)).code === 0);
				const kill = () => call(p, 'POST', `${BASE}/${box}/exec/${exec_id}/kill`, signal ? { signal } : {});
				const k = await kill();
				assert.deepEqual([k.status, k.json], [200, { state: 'sent' }]);
				const f = await follow(p, box, exec_id, 'follow_ms=20000');
				assert.deepEqual([f.last.code, f.last.timed_out], [code, false]);
				await until('the group to end', async () => (await sh(p, box, `pgrep -xf 'sleep ${mark}'`)).code === 1);
				assert.deepEqual((await kill()).json, { state: 'done' });
			});

		test('kill with another signal is refused', async () => {
			const exec_id = newExec();
			await exec(p, box, ['true'], { exec_id });
			for (const body of [{ signal: 'HUP' }, { signal: 9 }, { signal: '' }, '[]', '{'])
				refused(await call(p, 'POST', `${BASE}/${box}/exec/${exec_id}/kill`, body), 400, 'bad_request');
		});

		test('a child that holds the output open does not hold up the end', async () => {
			const e = await sh(p, box, 'sleep 30 & echo done');
			assert.deepEqual([e.code, e.text], [0, 'done\n']);
		});

		test('a supervisor that was killed is "lost", not an exit code', async () => {
			const exec_id = newExec();
			await execRaw(p, box, { exec_id, argv: ['sleep', '60'], follow_ms: 0 });
			await sh(p, box, `kill -KILL $(cut -d" " -f1 /tmp/.sbx-bridge/${exec_id}/sup /tmp/.sbx-bridge/${exec_id}/job)`);
			assert.equal((await follow(p, box, exec_id, 'follow_ms=20000')).last.code, 'exec_lost');
		});

		test('a follower learns that the sandbox ended under its command', async () => {
			const id = await create(p);
			const following = sh(p, id, 'echo up; sleep 60');
			await until('the command', async () => (await sh(p, id, 'pgrep -x sleep')).code === 0);
			await destroy(p, id);
			const e = await following;
			assert.equal(e.last.t, 'error');
			assert.ok(['exec_lost', 'sandbox_reset', 'sandbox_not_found', 'provider_error'].includes(e.last.code), e.last.code);
			await until('that nothing is left', () => p.boxes().every((b) => b.mark !== id || b.state === 'stopped'));
		});

		if (facts.replaces)
			test('a machine that was replaced is told, in every call', async () => {
				const id = await create(p), exec_id = newExec();
				await exec(p, id, ['true'], { exec_id });
				await p.machines.lose(p.machineOf(id));
				refused(await execRaw(p, id, { argv: ['true'] }), 409, 'sandbox_reset');
				refused(await call(p, 'GET', `${BASE}/${id}/exec/${exec_id}`), 409, 'sandbox_reset');
				refused(await call(p, 'POST', `${BASE}/${id}/exec/${exec_id}/kill`, {}), 409, 'sandbox_reset');
				refused(await call(p, 'GET', fileUrl(id, '/tmp/x')), 409, 'sandbox_reset');
				refused(await call(p, 'PUT', fileUrl(id, '/tmp/x'), 'x'), 409, 'sandbox_reset');
				assert.equal((await destroy(p, id)).json.state, 'stopped');
			});
		else
			test('a call that comes too late for a machine starts none', async () => {
				const id = await create(p);
				await p.machines.lose(p.machineOf(id));
				refused(await execRaw(p, id, { argv: ['true'] }), 404, 'sandbox_not_found');
				assert.equal(p.machines.history.filter(({ name }) => name === p.machineOf(id)).length, 1);
				await destroy(p, id);
			});

		// -- files ---------------------------------------------------------------------------------

		test('a file goes in and comes out, with its size', async () => {
			const data = crypto.randomBytes(100000), url = fileUrl(box, '/tmp/d/e/f g+h \u00e9\n%');
			assert.deepEqual((await call(p, 'PUT', url, data)).json, { size: 100000 });
			const a = await call(p, 'GET', url);
			assert.deepEqual(a.bytes, data);
			assert.equal(a.headers['x-file-size'], '100000');
			assert.equal(a.headers['content-type'], 'application/octet-stream');
			assert.deepEqual((await call(p, 'GET', `${url}&offset=99990&length=5`)).bytes, data.subarray(99990, 99995));
			const past = await call(p, 'GET', `${url}&offset=100001`);
			assert.deepEqual([past.status, past.bytes.length, past.headers['x-file-size']], [200, 0, '100000']);
			assert.deepEqual((await call(p, 'PUT', url, Buffer.alloc(0))).json, { size: 0 });
			assert.equal((await call(p, 'GET', url)).bytes.length, 0);
		});

		test('upload in blocks goes on only at the present size', async () => {
			const url = fileUrl(box, '/tmp/blocks');
			await call(p, 'PUT', url, 'hello ');
			assert.deepEqual((await call(p, 'PUT', `${url}&offset=6`, 'world')).json, { size: 11 });
			refused(await call(p, 'PUT', `${url}&offset=6`, 'again'), 409, 'conflict');
			refused(await call(p, 'PUT', `${url}&offset=12`, 'gap'), 409, 'conflict');
			assert.equal(String((await call(p, 'GET', url)).bytes), 'hello world');
		});

		test('a block of 8 MiB is taken, one byte more is not', async () => {
			const own = await create(p), data = crypto.randomBytes(8388608), url = fileUrl(own, '/tmp/big');
			assert.deepEqual((await call(p, 'PUT', url, data)).json, { size: 8388608 });
			assert.ok((await call(p, 'GET', url)).bytes.equals(data));
			refused(await call(p, 'PUT', url, Buffer.alloc(8388609)), 413, 'too_large');
			assert.equal((await sh(p, own, 'wc -c </tmp/big; rm /tmp/big; ls -a /tmp | grep -c sbx-part')).text, '8388608\n0\n');
		});

		for (const [what, method, at, status, code] of [
			['a missing file', 'GET', '/tmp/none', 404, 'file_not_found'],
			['a folder', 'GET', '/tmp', 400, 'is_directory'],
			['writing to a folder', 'PUT', '/tmp', 400, 'is_directory'],
			['a device', 'GET', '/dev/zero', 400, 'file_error'],
			['writing to a device', 'PUT', '/dev/null', 400, 'file_error'],
			['writing where nothing may be written', 'PUT', '/usr/x', 400, 'file_error'],
			['a relative path', 'GET', 'tmp/x', 400, 'bad_request'],
			['an empty path', 'GET', '', 400, 'bad_request'],
			['a very long path', 'GET', `/${'a'.repeat(5000)}`, 400, 'bad_request'],
			['a very long name', 'PUT', `/tmp/${'a'.repeat(300)}`, 400, 'file_error'],
		])
			test(`${what} is refused`, async () => {
				refused(await call(p, method, fileUrl(box, at), method === 'PUT' ? 'x' : undefined), status, code);
			});

		test('malformed file queries are refused', async () => {
			for (const q of ['', '?path=/a&path=/b', '?path=/a%00b', '?path=/a&offset=-1', '?path=/a&length=x'])
				refused(await call(p, 'GET', `${BASE}/${box}/file${q}`), 400, 'bad_request');
		});

		test('a pipe in the place of a file holds nothing up', async () => {
			await sh(p, box, 'mkfifo /tmp/pipe');
			refused(await call(p, 'GET', fileUrl(box, '/tmp/pipe')), 400, 'file_error');
			refused(await call(p, 'PUT', fileUrl(box, '/tmp/pipe'), 'x'), 400, 'file_error');
		});
	});

	describe(`${name}: without a token of its own`, () => {
		let p;
		before(async () => { p = await boot({ token: 'too-short-to-be-a-token' }); });
		after(() => p?.stop());

		test('it refuses everything', async () => {
			const a = await call(p, 'GET', '/health', undefined, { headers: { authorization: null } });
			assert.deepEqual([a.status, a.json.ok, a.json.contract], [503, false, 'sbx-bridge']);
			refused(await call(p, 'GET', BASE), 503, 'misconfigured');
			refused(await call(p, 'POST', BASE, { id: newId(), ttl_seconds: 5 }), 503, 'misconfigured');
			refused(await call(p, 'GET', BASE, undefined, { headers: { authorization: null } }), 503, 'misconfigured');
		});
	});
}
