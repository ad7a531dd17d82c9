// Begin and end of a run: options, connection file, signals, kill -9, leftovers, other ways to listen.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { after, describe, test } from 'node:test';
import * as h from './harness.mjs';

const { BASE, call, create, execRaw, sh, until } = h;
after(h.cleanUp);

const gone = (mark) => until(`${mark} to end`, () => h.processesWith(`sleep\0${mark}`).length === 0, 6000);
const dead = (pid) => { try { process.kill(pid, 0); return fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z'); } catch { return true; } };
const newMark = () => `88${crypto.randomInt(1e6)}`;
async function busy(r, mark, more) {
	const id = await create(r, more);
	await execRaw(r, id, { argv: ['sh', '-c', `trap "" TERM INT HUP; setsid sleep ${mark} & sleep ${mark}`], follow_ms: 0 });
	await until('both children', () => h.processesWith(`sleep\0${mark}`).length === 2);
	return id;
}

// Begins at once, so that its minute runs beside the other tests.
const shortRun = h.startRunner(h.isRoot ? 'root' : 'plain', ['--lifetime', '60', '--network', 'none']);
const shortMark = newMark();
const shortBusy = shortRun.then((r) => busy(r, shortMark, { ttl_seconds: 3600 }));

describe('command line', { concurrency: 2 }, () => {
	for (const [args, word] of [
		[['--lifetime', '59'], /lifetime.*60 to 86400/], [['--lifetime', '86401'], /lifetime/], [['--lifetime', '0'], /lifetime/],
		[['--lifetime'], /lifetime/], [['--lifetime', '9x'], /lifetime/], [['--network', 'lan'], /network/],
		[['--memory', '1'], /memory/], [['--memory', '-5'], /memory/], [['--cpus', '0'], /cpus/], [['--cpus', 'all'], /cpus/],
		[['--pids', '1'], /pids/], [['--disk', '0'], /disk/], [['--max-sandboxes', '0'], /max-sandboxes/],
		[['--max-sandboxes', '100000'], /max-sandboxes/], [['--check=yes'], /check/], [['--nonsense'], /unknown option/],
		[['extra'], /unknown option/], [['--url', ''], /url/]])
		test(`${args.join(' ')} is refused`, () => {
			const x = h.runOnce(args);
			assert.equal(x.status, 2);
			assert.match(x.stderr, word);
		});

	for (const [args, word] of [
		[['--listen', '0.0.0.0:80'], /listen/], [['--listen', '127.0.0.1:99999'], /listen/], [['--listen', 'unix:relative'], /listen/],
		[['--listen', 'unix:/no/such/folder/s'], /listen/], [['--rootfs', '/no/such'], /rootfs/], [['--rootfs', '/'], /rootfs/],
		[['--user', 'no-such-user-here'], /user/], [['--user', 'root'], /user/], [['--connection-file', '/no/such/folder/f'], /connection-file/]])
		test(`${args.join(' ')} is refused`, () => {
			const x = h.runOnce([...args, '--network', 'none']);
			assert.equal(x.status, 1);
			assert.match(x.stderr, word);
		});

	for (const mode of h.isRoot ? ['root', 'plain'] : ['plain'])
		test(`--check as ${mode} tells what can be enforced and leaves nothing`, () => {
			const x = h.runOnce(['--check', '--memory', '100'], mode);
			assert.equal(x.status, 0, x.stderr);
			const v = JSON.parse(x.stdout);
			assert.equal(v.ok, true);
			assert.equal(v.root, mode === 'root');
			assert.equal(v.limits.memory_mib, 100);
			assert.ok(v.enforced.includes('disk') && v.enforced.includes('pids'));
			assert.equal(v.enforced.includes('memory'), !v.warnings.some((w) => w.startsWith('memory')));
			if (mode === 'root') assert.ok(v.enforced.includes('memory'));
		});

	test('--check says no where no box can be made', () => {
		const x = spawnSync(h.program, ['--check', '--network', 'none'], { encoding: 'utf8', env: { PATH: '/nowhere' } });
		assert.equal(x.status, 1);
		assert.equal(JSON.parse(x.stdout).ok, false);
	});

	test('a mode that was asked for and cannot be had is refused, never replaced', () => {
		const bin = h.freshFolder();
		fs.chmodSync(bin, 0o755);
		for (const p of ['bwrap', 'sh']) fs.symlinkSync(spawnSync('which', [p], { encoding: 'utf8' }).stdout.trim(), `${bin}/${p}`);
		const run = (args) => spawnSync(h.program, ['--check', ...args], { encoding: 'utf8', env: { PATH: bin } });
		assert.equal(run(['--network', 'internet']).status, 1);
		const v = JSON.parse(run([]).stdout);
		assert.equal(v.network, 'none');
		assert.ok(v.warnings.some((w) => /no network/.test(w)));
	});
});

describe('connection file', { concurrency: 2 }, () => {
	test('has what a connector needs and only its owner can read it', async () => {
		const r = await h.startRunner('plain', ['--network', 'none', '--url', 'https://box.example']);
		const st = fs.statSync(r.file), v = JSON.parse(fs.readFileSync(r.file, 'utf8'));
		assert.equal(st.mode & 0o777, 0o600);
		assert.deepEqual(Object.keys(v).sort(), ['expiresAt', 'pid', 'token', 'url']);
		assert.match(v.token, /^[A-Za-z0-9_-]{43}$/);
		assert.equal(v.url, 'https://box.example');
		assert.ok(Math.abs(Date.parse(v.expiresAt) - Date.now() - 900e3) < 60e3);
		assert.deepEqual(fs.readdirSync(r.folder), ['connection.json']);
		assert.ok(!r.log.includes(v.token));
		for (const p of [v.pid, ...h.children(v.pid)])
			assert.ok(!fs.readFileSync(`/proc/${p}/cmdline`, 'latin1').includes(v.token));
		const second = h.runOnce(['--network', 'none', '--connection-file', r.file], 'plain');
		assert.equal(second.status, 1);
		assert.match(second.stderr, /living run/);
		await r.stop();
		assert.deepEqual(fs.readdirSync(r.folder), []);
	});

	test('of a dead run is replaced', async () => {
		const folder = h.freshFolder();
		fs.writeFileSync(`${folder}/c`, JSON.stringify({ url: 'x', token: 'y', pid: 4194303 }));
		const x = h.runOnce(['--network', 'none', '--connection-file', `${folder}/c`, '--listen', 'unix:/no/such/s'], h.isRoot ? 'root' : 'plain');
		assert.match(x.stderr, /listen/); // it came as far as that
		await until('the folder to be empty', () => fs.readdirSync(folder).length === 0);
	});

	for (const [name, make] of [
		['a foreign file', (f) => fs.writeFileSync(`${f}/c`, 'notes of mine')],
		['a file without a pid', (f) => fs.writeFileSync(`${f}/c`, '{"url":"x"}')],
		['a link', (f) => fs.symlinkSync('/etc/hostname', `${f}/c`)],
		['a folder', (f) => fs.mkdirSync(`${f}/c`)],
		['a pipe', (f) => spawnSync('mkfifo', [`${f}/c`])],
		['a folder that others may write to', (f) => fs.chmodSync(f, 0o777)]])
		test(`${name} in its place is refused and left alone`, () => {
			const folder = h.freshFolder();
			make(folder);
			const before = fs.readdirSync(folder);
			const x = h.runOnce(['--network', 'none', '--connection-file', `${folder}/c`], h.isRoot ? 'root' : 'plain');
			assert.equal(x.status, 1);
			assert.match(x.stderr, /connection-file/);
			assert.deepEqual(fs.readdirSync(folder), before);
		});
});

describe('the end', { concurrency: 2 }, () => {
	for (const mode of h.isRoot ? ['root', 'plain'] : ['plain'])
		for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'])
			test(`${signal} as ${mode} ends everything within five seconds`, async () => {
				const r = await h.startRunner(mode), mark = newMark();
				const id = await busy(r, mark);
				const following = sh(r, id, `echo ${mark}; sleep 60`).catch(() => null);
				await until('the follower', () => h.processesWith(`echo ${mark}; sleep 60`).length > 0);
				const before = Date.now(), kids = h.children(r.pid);
				assert.equal(kids.length, 1);
				await r.stop(signal);
				assert.deepEqual(r.exit, { code: 0, signal: null });
				assert.ok(Date.now() - before < 5000);
				assert.ok(dead(kids[0]));
				assert.deepEqual(h.processesWith(`sleep\0${mark}`), []);
				assert.deepEqual(fs.readdirSync(r.folder), []);
				const e = await following; // told, or cut: never an exit
				assert.notEqual(e?.last.t, 'exit');
			});

	for (const mode of h.isRoot ? ['root', 'plain'] : ['plain'])
		test(`kill -9 of the runner as ${mode} leaves no process, group, mount or file`, async () => {
			const mounts = h.mounts();
			const r = await h.startRunner(mode), mark = newMark(), id = await busy(r, mark);
			const [launcher] = h.children(r.pid);
			await r.stop('SIGKILL');
			await gone(mark);
			await until('the launcher to end', () => dead(launcher), 6000);
			assert.deepEqual(h.groups(id), []);
			assert.deepEqual(fs.readdirSync(r.folder), []);
			assert.equal(h.mounts(), mounts);
		});

	for (const mode of h.isRoot ? ['root', 'plain'] : ['plain'])
		test(`kill -9 of the launcher as ${mode} ends boxes and runner`, async () => {
			const r = await h.startRunner(mode), mark = newMark();
			await busy(r, mark);
			process.kill(h.children(r.pid)[0], 'SIGKILL');
			assert.deepEqual(await r.ended, { code: 1, signal: null });
			await gone(mark);
		});

	test('what a run that was killed altogether left behind is removed by the next', async () => {
		const r = await h.startRunner('root'), mark = newMark(), id = await busy(r, mark);
		const [launcher] = h.children(r.pid);
		process.kill(launcher, 'SIGSTOP'); // so that it can't clean up
		process.kill(r.pid, 'SIGKILL');
		process.kill(launcher, 'SIGKILL');
		await r.ended;
		await gone(mark);
		const next = await h.startRunner('root', ['--network', 'none']);
		await until('the groups to be gone', () => h.groups(id).length === 0);
		await next.stop();
	});

	test('two runs do not disturb each other', async () => {
		const mode = h.isRoot ? 'root' : 'plain';
		const [a, b] = [await h.startRunner(mode, ['--network', 'none']), await h.startRunner(mode, ['--network', 'none'])];
		const [x, y] = [await create(a), await create(b)];
		await a.stop();
		assert.equal((await sh(b, y, 'echo here')).text, 'here\n');
		assert.notEqual(x, y);
		await b.stop();
	});
});

describe('other ways', { concurrency: 2 }, () => {
	const mode = h.isRoot ? 'root' : 'plain';

	test('a unix socket serves, and its file goes with the run', async () => {
		const path = `${h.freshFolder()}/s`;
		const r = await h.startRunner(mode, ['--network', 'none', '--listen', `unix:${path}`]);
		assert.equal(r.url, `unix:${path}`);
		const id = await create(r);
		assert.equal((await sh(r, id, 'echo over a path')).text, 'over a path\n');
		assert.equal((await call(r, 'GET', BASE, undefined, { headers: { authorization: null } })).status, 401);
		await r.stop();
		assert.ok(!fs.existsSync(path));
	});

	test('sandboxes beyond the most are refused until one ends', async () => {
		const r = await h.startRunner(mode, ['--network', 'none', '--max-sandboxes', '2']);
		const [a] = [await create(r), await create(r)];
		const no = await call(r, 'POST', BASE, { id: 'one-too-many', ttl_seconds: 5 });
		assert.deepEqual([no.status, no.json.error.code, no.headers['retry-after']], [503, 'capacity', '2']);
		await h.destroy(r, a);
		await create(r);
		await r.stop();
	});

	test('the network of the machine only when the runner was started with it', async () => {
		const r = await h.startRunner(mode, ['--network', 'host']);
		const id = await create(r);
		const s = (await call(r, 'GET', `${BASE}/${id}`)).json;
		assert.equal(s.network, 'host');
		assert.ok(!s.enforced.includes('network') && s.warnings.some((w) => /shares/.test(w)));
		const port = new URL(r.url).port;
		assert.equal((await sh(r, id, `bash -c '</dev/tcp/127.0.0.1/${port}'`)).code, 0);
		const none = await create(r, { network: 'none' });
		assert.notEqual((await sh(r, none, `bash -c '</dev/tcp/127.0.0.1/${port}'`)).code, 0);
		await r.stop();
	});

	test('a given root folder is what the box sees', async (t) => {
		// The sanitizers' init needs their libraries in the root.
		if (!h.isRoot || process.env.CC_SANITIZED) return t.skip('needs root and a build without sanitizers');
		const root = h.freshFolder();
		fs.chmodSync(root, 0o700); // as below root's home
		spawnSync('cp', ['-a', '/bin', '/lib', '/lib64', root]);
		fs.mkdirSync(`${root}/etc`);
		for (const [f, s] of [['passwd', 'x:x:0:0:::\n'], ['only-here', 'yes\n']]) fs.writeFileSync(`${root}/etc/${f}`, s);
		fs.mkdirSync(`${root}/usr/bin`, { recursive: true });
		fs.mkdirSync(`${root}/usr/lib`);
		fs.mkdirSync(`${root}/usr/lib64`);
		for (const p of ['sh', 'cat', 'ls', 'id']) fs.copyFileSync(`/usr/bin/${p}`, `${root}/usr/bin/${p}`);
		const needed = spawnSync('ldd', ['/usr/bin/ls', '/usr/bin/id'], { encoding: 'utf8' }).stdout.match(/\/[^\s:]+/g)
			.filter((p) => p.includes('lib'));
		for (const p of new Set(needed)) {
			fs.mkdirSync(`${root}${p.replace(/\/[^/]*$/, '').replace(/^\/lib/, '/usr/lib')}`, { recursive: true });
			fs.copyFileSync(p, `${root}${p.replace(/^\/lib/, '/usr/lib')}`);
		}
		const r = await h.startRunner('root', ['--network', 'none', '--rootfs', root]);
		const id = await create(r);
		assert.equal((await sh(r, id, 'cat /etc/only-here; ls /usr/bin; echo x >/tmp/x && cat /tmp/x')).text, 'yes\ncat\nid\nls\nsh\nx\n');
		assert.notEqual((await sh(r, id, 'echo x >/etc/only-here')).code, 0);
		await r.stop();
	});

	test('it works in a root entered by pivot_root', async (t) => {
		if (!h.isRoot) return t.skip('needs root');
		const root = h.freshFolder();
		const script = `set -e; mount --make-rprivate /; mount -t tmpfs t ${root}; cd ${root}
			for d in usr etc var dev proc sys; do mkdir $d; mount --rbind /$d $d; done
			for l in bin sbin lib lib64; do [ ! -L /$l ] || ln -s usr/$l $l; done; mkdir tmp mnt run old; chmod 1777 tmp
			pivot_root . old; umount -l /old; exec ${h.program} --check`;
		const x = spawnSync('unshare', ['-m', 'sh', '-c', script], { encoding: 'utf8', cwd: '/' });
		assert.equal(x.status, 0, x.stderr + x.stdout);
		const v = JSON.parse(x.stdout);
		assert.ok(v.ok && v.enforced.includes('memory'), x.stdout);
	});

	test('mode internet: outside yes, this machine and its resolver\'s other ports no', async (t) => {
		if (!h.isRoot || spawnSync('slirp4netns', ['--version']).status !== 0) return t.skip('needs root and slirp4netns');
		// A small world in namespaces of its own: this machine (.1), a machine outside (.2), and a
		// resolver on this machine's loopback, which is the awkward case.
		const folder = h.freshFolder(), file = `${folder}/connection.json`;
		fs.writeFileSync(`${folder}/resolv.conf`, 'nameserver 127.9.8.7\n');
		const tcp = (address) => `perl -MIO::Socket -e '$l=IO::Socket::INET->new(Listen=>9,LocalAddr=>"${address}",LocalPort=>4444,ReuseAddr=>1) or die; while($c=$l->accept){print $c "reached ${address}\\n"; close $c}' &`;
		const script = `ip link set lo up; mount --bind ${folder}/resolv.conf /etc/resolv.conf
			unshare -n sleep 600 & P=$!; until [ "$(readlink /proc/$P/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
			ip link add v0 type veth peer name v1 netns $P && ip addr add 198.51.100.1/24 dev v0 && ip link set v0 up && ip route add default via 198.51.100.2
			nsenter -t $P -n sh -c 'ip addr add 198.51.100.2/24 dev v1; ip link set v1 up; ip link set lo up; ip route add default via 198.51.100.1'
			nsenter -t $P -n ${tcp('198.51.100.2')}
			${tcp('0.0.0.0')}
			perl -MIO::Socket -e '$u=IO::Socket::INET->new(Proto=>"udp",LocalAddr=>"127.9.8.7",LocalPort=>53) or die; while($u->recv($m,99)){$u->send("answer to $m")}' &
			exec ${h.program} --network internet --listen unix:${folder}/s --connection-file ${file}`;
		const world = spawn('unshare', ['-mn', 'bash', '-c', script], { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
		let log = '';
		world.stderr.on('data', (d) => { log += d; });
		await until(`the runner: ${log}`, () => fs.existsSync(file)).catch((e) => { throw new Error(`${e.message} ${log}`); });
		const r = { ...JSON.parse(fs.readFileSync(file, 'utf8')) };
		try {
			const id = await create(r);
			const reach = async (a) => {
				const e = await sh(r, id, `timeout 10 bash -c 'cat </dev/tcp/${a}/4444'`);
				return e.text || e.err.toString();
			};
			assert.equal(await reach('198.51.100.2'), 'reached 198.51.100.2\n'); // the positive control
			for (const a of ['198.51.100.1', '10.0.2.2', '10.0.2.3', '127.9.8.7', '127.0.0.1', '169.254.169.254', '192.168.0.1'])
				assert.match(await reach(a), /unreachable|No route|refused/i, a);
			const dns = await sh(r, id, `perl -MIO::Socket -e '$u=IO::Socket::INET->new(Proto=>"udp",PeerAddr=>"10.0.2.3",PeerPort=>53); $u->send("x"); alarm 10; $u->recv($m,99); print $m'`);
			assert.equal(dns.text, 'answer to x');
			const none = await create(r, { network: 'none' });
			assert.notEqual((await sh(r, none, `bash -c '</dev/tcp/198.51.100.2/4444'`)).code, 0);
		} finally {
			process.kill(r.pid, 'SIGTERM');
			await until('the end', () => dead(r.pid));
			process.kill(-world.pid, 'SIGKILL'); // the helpers, too
		}
	});

	test('--tunnel tells the name that cloudflared prints', async () => {
		const bin = h.freshFolder();
		fs.chmodSync(bin, 0o755);
		fs.writeFileSync(`${bin}/cloudflared`, `#!/bin/sh
echo "$@" >&2
echo "INF Requesting new quick Tunnel on trycloudflare.com..." >&2
echo "INF |  https://some-odd-words.trycloudflare.com  |" >&2
exec sleep 600
`, { mode: 0o755 });
		const r = await h.startRunner(mode, ['--network', 'none', '--tunnel'], { PATH: `${bin}:${process.env.PATH}` });
		assert.equal(r.url, 'https://some-odd-words.trycloudflare.com');
		const kids = h.children(r.pid);
		assert.equal(kids.length, 2);
		await r.stop();
		for (const pid of kids) await until('its end', () => dead(pid));
	});

	test('--tunnel without cloudflared is an error, and so is one that tells nothing', () => {
		assert.match(h.runOnce(['--network', 'none', '--tunnel']).stderr, /cloudflared/);
	});
});

test('the lifetime ends the run and all in it', { timeout: 120000 }, async () => {
	const r = await shortRun;
	await shortBusy;
	const left = Date.parse(r.expiresAt) - Date.now();
	assert.ok(left <= 60000);
	assert.deepEqual(await r.ended, { code: 0, signal: null });
	assert.ok(Date.now() >= Date.parse(r.expiresAt) - 1000);
	await gone(shortMark);
	assert.ok(!fs.existsSync(r.file));
});
