// The simulator of E2B under the provider's own SDK: what the SDK can not use is no simulator.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import tls from 'node:tls';
import { certificate } from '../simulators/lib.mjs';
import { until } from '../lib/wait.mjs';
import { start } from '../simulators/e2b/index.mjs';

// Before the SDK is loaded: it makes its own connections.
tls.setDefaultCACertificates([...tls.getCACertificates('default'), certificate().cert.toString()]);
const sdk = await import('e2b');
const { CommandExitError, Sandbox } = sdk;

const place = await start();
const opts = { apiKey: place.key, apiUrl: place.url, sandboxUrl: place.url, retries: 0 };
const create = (more = {}) => Sandbox.create('base', { ...opts, timeoutMs: 120000, ...more });

/** A sandbox for one test. */
async function withBox(fn, more) {
	const box = await create(more);
	try {
		await fn(box);
	} finally {
		await box.kill();
		place.clear();
	}
}

test.after(() => place.stop());

const refused = (error, name, text) => {
	assert.equal(error.constructor.name, name, `${error}`);
	assert.match(error.message, text);
	return true;
};

test('a command: both streams and its exit code', () => withBox(async (box) => {
	const good = await box.commands.run('echo out; echo err >&2');
	assert.deepEqual([good.exitCode, good.stdout, good.stderr], [0, 'out\n', 'err\n']);
	await assert.rejects(box.commands.run('echo gone wrong; exit 3'), (error) =>
		error instanceof CommandExitError && error.exitCode === 3 && error.stdout === 'gone wrong\n');
}));

test('environment, working directory, user', () => withBox(async (box) => {
	const env = await box.commands.run('echo "$A-$B" "$PWD" "$HOME"', { envs: { A: "it's", B: 'b c' }, cwd: '/tmp' });
	assert.equal(env.stdout, "it's-b c /tmp /home/user\n");
}, { envs: { B: 'of the sandbox' } }));

test('a working directory that does not exist', () => withBox(async (box) => {
	await assert.rejects(box.commands.run('true', { cwd: '/nowhere' }), /cwd '\/nowhere' does not exist/);
}));

test('characters that are split over frames come out whole', () => withBox(async (box) => {
	place.chunk = 1;
	const { stdout } = await box.commands.run("printf 'für 日本 %s' 🚀");
	place.chunk = 32768;
	assert.equal(stdout, 'für 日本 🚀');
}));

test('output of some megabytes', () => withBox(async (box) => {
	const { stdout } = await box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x');
	assert.equal(stdout.length, 3000000);
}));

test('in the background: listed, heard by number, killed', () => withBox(async (box) => {
	const handle = await box.commands.run('echo first; sleep 1000', { background: true });
	await until('first is heard', () => handle.stdout === 'first\n');
	const list = await box.commands.list();
	assert.equal(list.filter(({ pid }) => pid === handle.pid).length, 1);
	assert.equal(await box.commands.kill(handle.pid), true);
	await assert.rejects(handle.wait(), (error) => error.exitCode === -1 && /killed/.test(error.error ?? error.message));
	assert.equal(await box.commands.kill(handle.pid), false);
	assert.deepEqual(await box.commands.list(), []);
}));

test('standard input', () => withBox(async (box) => {
	const handle = await box.commands.run('cat', { background: true, stdin: true });
	await box.commands.sendStdin(handle.pid, 'hello');
	await box.commands.closeStdin(handle.pid);
	assert.equal((await handle.wait()).stdout, 'hello');
}));

test('who comes later hears only what comes later', () => withBox(async (box) => {
	const first = await box.commands.run('echo early; cat; exit 5', { background: true, stdin: true });
	await until('early is heard', () => first.stdout === 'early\n');
	const second = await box.commands.connect(first.pid);
	await box.commands.sendStdin(first.pid, 'late');
	await box.commands.closeStdin(first.pid);
	await assert.rejects(second.wait(), (error) => error.exitCode === 5 && error.stdout === 'late');
}));

test('the time-out of a command kills it', () => withBox(async (box) => {
	await assert.rejects(box.commands.run('echo $$ >/tmp/pid; exec sleep 1000', { timeoutMs: 1000 }),
		(error) => refused(error, 'TimeoutError', /./));
	await until('it is gone', async () => (await box.commands.list()).length === 0);
}));

test('files: written, read, listed, moved, removed', () => withBox(async (box) => {
	const info = await box.files.write('/home/user/a/b.txt', 'content');
	assert.equal(info.path, '/home/user/a/b.txt');
	assert.equal(await box.files.read('a/b.txt'), 'content');
	assert.equal((await box.commands.run('cat a/b.txt')).stdout, 'content');
	assert.equal(await box.files.exists('/home/user/a/b.txt'), true);
	assert.equal(await box.files.makeDir('/tmp/made'), true);
	assert.equal(await box.files.makeDir('/tmp/made'), false);
	await box.files.rename('/home/user/a/b.txt', '/tmp/made/c.txt');
	assert.deepEqual((await box.files.list('/tmp/made')).map(({ name, type }) => [name, type]), [['c.txt', 'file']]);
	await box.files.remove('/tmp/made');
	assert.equal(await box.files.exists('/tmp/made/c.txt'), false);
	await assert.rejects(box.files.read('/tmp/none'), (error) => refused(error, 'FileNotFoundError', /does not exist/));
}));

test('files: many in one request, and bytes as they are', () => withBox(async (box) => {
	const bytes = new Uint8Array([0, 255, 10, 13, 0, 128]);
	const before = place.count('put');
	await box.files.write([
		{ path: '/tmp/1', data: 'one' }, { path: '/tmp/deep/2', data: bytes.buffer },
	]);
	assert.equal(place.count('put') > before, true);
	assert.deepEqual([...await box.files.read('/tmp/deep/2', { format: 'bytes' })], [...bytes]);
}));

test('a full disk', () => withBox(async (box) => {
	place.box(box.sandboxId).full = true;
	await assert.rejects(box.files.write('/tmp/x', 'y'), (error) => refused(error, 'NotEnoughSpaceError', /space/));
}));

test('found by metadata, in pages, with values that need escapes', async () => {
	const made = [];
	for (const name of ['one', 'two', 'three'])
		made.push(await create({ metadata: { job: 'id a&b=c', name } }));
	const other = await create({ metadata: { job: 'another' } });
	const query = { metadata: { job: 'id a&b=c' }, state: ['running', 'paused'] };
	const pages = Sandbox.list({ ...opts, limit: 2, query });
	const found = [];
	while (pages.hasNext) found.push(...await pages.nextItems());
	assert.deepEqual(found.map(({ sandboxId }) => sandboxId).sort(), made.map(({ sandboxId }) => sandboxId).sort());
	assert.equal(place.log.filter(({ query }) => query.get('nextToken')).length > 0, true);
	for (const box of [...made, other]) await box.kill();
});

test('facts of a sandbox, its time-out moved, its end by the clock of the provider', async () => {
	const box = await create({ metadata: { a: 'b' } });
	const info = await box.getInfo();
	assert.deepEqual([info.sandboxId, info.state, info.metadata.a], [box.sandboxId, 'running', 'b']);
	assert.equal(await box.isRunning(), true);
	await box.setTimeout(1000);
	await until('it has ended', async () => !(await box.isRunning()));
	await assert.rejects(box.commands.run('true'), (error) => refused(error, 'SandboxNotFoundError', /./));
	await assert.rejects(Sandbox.getInfo(box.sandboxId, opts), /not found/);
	assert.equal(await Sandbox.kill(box.sandboxId, opts), false);
	const row = place.boxes().find(({ id }) => id === box.sandboxId);
	assert.equal(row.state, 'stopped');
	assert.equal(row.billedMs, row.ended - row.started);
});

test('kill ends every process', async () => {
	const box = await create();
	await box.commands.run('sleep 1000 & setsid sleep 1000 & sleep 1000', { background: true });
	const { pid } = place.box(box.sandboxId).guest;
	assert.equal(await box.kill(), true);
	await until('the first process is gone', () => {
		try {
			process.kill(pid, 0);
			return false;
		} catch {
			return true;
		}
	});
});

test('connect brings the access token back; a paused sandbox costs nothing', async () => {
	const box = await create();
	await box.files.write('/tmp/kept', 'kept');
	await box.pause();
	const billed = place.box(box.sandboxId).billedMs();
	await assert.rejects(box.commands.run('true'));
	const again = await Sandbox.connect(box.sandboxId, opts);
	assert.equal(await again.files.read('/tmp/kept'), 'kept');
	assert.equal(place.box(box.sandboxId).billedMs() >= billed, true);
	await again.kill();
});

test('a snapshot holds the files', async () => {
	const box = await create();
	await box.files.write('/tmp/kept', 'kept');
	const { snapshotId } = await box.createSnapshot();
	const copy = await Sandbox.create(snapshotId, opts);
	assert.equal(await copy.files.read('/tmp/kept'), 'kept');
	assert.equal(await Sandbox.deleteSnapshot(snapshotId, opts), true);
	await Promise.all([box.kill(), copy.kill()]);
});

test('two sandboxes do not meet', async () => {
	const [a, b] = await Promise.all([create(), create()]);
	await a.files.write('/tmp/x', 'a');
	assert.equal(await b.files.exists('/tmp/x'), false);
	await assert.rejects(Sandbox.connect('i00000000000000000000', opts), /./);
	await Promise.all([a.kill(), b.kill()]);
});

test('a wrong key, a blocked team', async () => {
	await assert.rejects(create({ apiKey: `e2b_${'0'.repeat(40)}` }),
		(error) => refused(error, 'AuthenticationError', /Invalid API key/));
	place.blocked = 'the team is blocked';
	await assert.rejects(create(), /the team is blocked/);
	place.blocked = undefined;
});

test('a template that does not exist, and times that are not allowed', async () => {
	await assert.rejects(Sandbox.create('none', opts), /template 'none' not found/);
	place.plan.lifeS = 3600;
	await assert.rejects(create({ timeoutMs: 7200000 }), /cannot be greater than 1 hours/);
	place.plan.lifeS = 86400;
});

test('as many as the plan allows, and as often', async () => {
	place.plan.concurrency = 0;
	await assert.rejects(create(), (error) => refused(error, 'RateLimitError', /concurrent/));
	place.plan.concurrency = 2000;
	place.plan.rate = 0;
	await assert.rejects(create(), (error) => refused(error, 'RateLimitError', /Rate limit exceeded/));
	place.plan.rate = Infinity;
});

test('a stream that breaks off before its last frame is no success', () => withBox(async (box) => {
	place.rule({ op: 'exec' }, 'cut-body', { times: 1, bytes: 120 });
	await assert.rejects(box.commands.run('echo 1'));
}));

test('trouble: a page of the edge in place of an answer, a create whose reply is lost', async () => {
	place.rule({ op: 'create' }, 'replace', { times: 1, status: 502, headers: { 'content-type': 'text/html' },
		body: '<html>bad gateway</html>' });
	await assert.rejects(create({ metadata: { mark: 'lost' } }));
	const [lost] = await Sandbox.list({ ...opts, query: { metadata: { mark: 'lost' } } }).nextItems();
	assert.equal(place.boxes().find(({ mark }) => mark === 'lost').id, lost.sandboxId);
	await Sandbox.kill(lost.sandboxId, opts);
});

/** Some at a time: client and servers share this process, and a handshake that waits for long is given up. */
async function inWaves(list, fn) {
	const done = [];
	for (let at = 0; at < list.length; at += 10)
		done.push(...await Promise.all(list.slice(at, at + 10).map((one, i) => fn(one, at + i))));
	return done;
}

test('fifty live at once', async () => {
	place.plan.page = 100;
	const all = await inWaves(Array.from({ length: 50 }), () => create());
	const said = await inWaves(all, (box, i) => box.commands.run(`echo ${i} >/tmp/n; cat /tmp/n`));
	assert.deepEqual(said.map(({ stdout }) => stdout), all.map((box, i) => `${i}\n`));
	await inWaves(all, (box) => box.kill());
	assert.equal(place.boxes().every(({ state }) => state === 'stopped'), true);
});
