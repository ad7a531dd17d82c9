// Daytona's own SDK against the simulator: what it accepts and what it sees there is what a simulator has to
// be trusted for.

import assert from 'node:assert/strict';
import tls from 'node:tls';
import { after, afterEach, before, test } from 'node:test';
import { Daytona, DaytonaError } from '@daytonaio/sdk';
import { certificate } from '../simulators/lib.mjs';
import { start } from '../simulators/daytona/index.mjs';
import { until } from '../lib/wait.mjs';

tls.setDefaultCACertificates([...tls.getCACertificates('default'), certificate().cert.toString()]);

let place, sdk;
const plain = {};
const connect = (more = {}) => new Daytona({ apiKey: place.credential.token, apiUrl: place.base, target: 'us',
	useDeprecatedPolling: true, ...more });

before(async () => {
	place = await start();
	Object.assign(plain, place.plan);
	sdk = connect();
});
afterEach(() => {
	place.clear();
	Object.assign(place.plan, plain);
});
after(() => place.stop());

/** A sandbox for one test, deleted behind it. */
async function withBox(work, params = {}) {
	const box = await sdk.create({ autoDeleteInterval: 0, ...params });
	try {
		return await work(box);
	} finally {
		await box.delete().catch(() => {});
	}
}

const refused = (status, words) => (error) => {
	assert.ok(error instanceof DaytonaError, String(error));
	assert.equal(error.statusCode, status);
	assert.match(error.message, words);
	return true;
};

// ---- sandboxes -----------------------------------------------------------------------------------

test('a sandbox is created, found by id and by name, and deleted', async () => {
	const box = await sdk.create({ name: 'sdk-1', labels: { a: '1' }, envVars: { WHO: 'me' }, ttlMinutes: 10,
		autoStopInterval: 7, autoDeleteInterval: 0, snapshot: 'daytona-small' });
	assert.equal(box.state, 'started');
	assert.equal(box.name, 'sdk-1');
	assert.equal(box.labels.a, '1');
	assert.equal(box.autoStopInterval, 7);
	assert.equal(box.autoDeleteInterval, 0);
	assert.ok(new Date(box.autoDestroyAt) > new Date());
	assert.equal((await sdk.get(box.id)).name, 'sdk-1');
	assert.equal((await sdk.get('sdk-1')).id, box.id);
	assert.equal((await box.process.executeCommand('echo $WHO')).result, 'me\n');
	await box.delete(60, true);
	await assert.rejects(sdk.get('sdk-1'), refused(404, /not found/));
	await until('the meter stops', () => place.boxes().find((b) => b.id === box.id).ended);
});

test('a slow sandbox is waited for', async () => {
	place.plan.startMs = 300;
	await withBox((box) => assert.equal(box.state, 'started'));
	assert.ok(place.count('find') > 1);
});

test('a sandbox that does not start is an error with its reason', async () => {
	place.plan.startMs = 50;
	place.plan.failStart = 'no room on the runner';
	await assert.rejects(sdk.create(), /no room on the runner/);
});

test('a name is given once', async () => {
	await withBox(async () => {
		await assert.rejects(sdk.create({ name: 'twice' }), refused(409, /already exists/));
	}, { name: 'twice' });
	await withBox(() => {}, { name: 'twice' });
});

test('what can not be made is refused', async () => {
	await assert.rejects(sdk.create({ snapshot: 'unheard-of' }), refused(400, /not found/));
	await assert.rejects(sdk.create({ snapshot: 'daytona-small', resources: { cpu: 2 } }), refused(400, /resources/));
	place.plan.boxes = 0;
	await assert.rejects(sdk.create(), refused(400, /quota exceeded/));
	place.plan.boxes = Infinity;
	place.plan.createsPerMinute = 0;
	await assert.rejects(sdk.create(), (e) => refused(429, /Too Many/)(e) && e.headers['retry-after-sandbox-create'] === '7');
});

test('keys: wrong, expired, without rights, of a suspended organisation', async () => {
	await assert.rejects(connect({ apiKey: 'dtn_wrong' }).get('x'), refused(401, /Invalid credentials/));
	place.plan.expired = true;
	await assert.rejects(sdk.get('x'), refused(401, /expired/));
	place.plan.expired = false;
	place.plan.permissions = [];
	await assert.rejects(sdk.create(), refused(403, /permissions/));
	place.plan.permissions = plain.permissions;
	place.plan.suspended = true;
	await assert.rejects(sdk.create(), refused(403, /suspended/));
});

test('a list comes in pages, by label, by name and by state', async () => {
	const boxes = await Promise.all([1, 2, 3, 4, 5].map((n) => sdk.create({ name: `List-${n}`, labels: { of: 'list' } })));
	const names = async (query) => {
		const found = [];
		for await (const box of sdk.list(query)) found.push(box.name);
		return found.sort();
	};
	const asked = place.count('list');
	assert.deepEqual(await names({ labels: { of: 'list' } }), ['List-1', 'List-2', 'List-3', 'List-4', 'List-5']);
	assert.equal(place.count('list') - asked, 2);
	assert.deepEqual(await names({ name: 'list-2' }), ['List-2']);
	assert.deepEqual(await names({ labels: { of: 'nothing' } }), []);
	assert.deepEqual(await names({ labels: { of: 'list' }, states: ['stopped'] }), []);
	place.plan.list = 'array';
	await assert.rejects(names({})); // the SDK knows the new form only
	await Promise.all(boxes.map((box) => box.delete()));
});

test('stop, start, labels, timers', async () => {
	await withBox(async (box) => {
		await box.setLabels({ b: '2' });
		assert.deepEqual((await sdk.get(box.id)).labels, { b: '2' });
		await box.setAutostopInterval(30);
		await box.setAutoDeleteInterval(60);
		await box.setTtl(5);
		await box.refreshActivity();
		await box.refreshData();
		assert.equal(box.autoStopInterval, 30);
		assert.equal(box.autoDeleteInterval, 60);
		await box.stop();
		assert.equal(box.state, 'stopped');
		await assert.rejects(box.process.executeCommand('true'), refused(400, /./));
		await box.start();
		assert.equal(box.state, 'started');
		assert.equal((await box.process.executeCommand('echo back')).result, 'back\n');
	});
});

test('a sandbox that deletes itself when it stops is gone after a stop', async () => {
	const box = await sdk.create({ ephemeral: true });
	await box.stop();
	await until('it is gone', () => sdk.get(box.id).then(() => false, () => true));
});

test('the hard limit ends a busy sandbox, the idle limit a quiet one', async () => {
	place.plan.minuteMs = 300;
	const busy = await sdk.create({ ttlMinutes: 1, autoStopInterval: 0, autoDeleteInterval: 0 });
	const idle = await sdk.create({ autoStopInterval: 1, autoDeleteInterval: 0 });
	for (const { id } of [busy, idle])
		await until('it ends by itself', () => place.boxes().find((b) => b.id === id).ended);
	place.plan.ttl = false;
	const old = await sdk.create({ ttlMinutes: 1, autoStopInterval: 0 });
	assert.equal(old.autoDestroyAt, undefined);
	await old.delete();
});

test('a deletion in the middle of a change is a conflict', async () => {
	await withBox(async (box) => {
		place.box(box.id).stuck = true;
		await assert.rejects(box.delete(), refused(409, /state change in progress/));
		place.box(box.id).stuck = false;
	});
});

test('a preview has an address and a token', async () => {
	await withBox(async (box) => {
		const { url, token } = await box.getPreviewLink(3000);
		assert.match(url, /^https:\/\/3000-/);
		assert.ok(token);
		assert.match((await box.getSignedPreviewUrl(3000, 90)).url, /until=90/);
	});
});

test('the event socket may be missing', async () => {
	const box = await connect({ useDeprecatedPolling: false }).create();
	assert.equal(box.state, 'started');
	await box.delete();
});

// ---- commands ------------------------------------------------------------------------------------

test('a command: output, exit code, folder, environment', async () => {
	await withBox(async (box) => {
		const run = (...args) => box.process.executeCommand(...args);
		assert.deepEqual(await run('echo out; echo err >&2; exit 3').then((r) => [r.result, r.exitCode]), ['out\nerr\n', 3]);
		assert.equal((await run('pwd', '/tmp')).result, '/tmp\n');
		assert.equal((await run('pwd')).result, '/home/daytona\n');
		assert.equal((await run('printf %s "$V"', undefined, { V: 'a b$c' })).result, 'a b$c');
		assert.equal((await run('true', '/no/such/folder')).exitCode, -1);
		assert.equal((await run('no-such-program')).exitCode, 127);
	});
});

test('a program that reads its input eats the rest of the command', async () => {
	await withBox(async (box) => {
		assert.equal((await box.process.executeCommand('cat\necho after')).result, 'echo after');
		assert.equal((await box.process.executeCommand('cat </dev/null\necho after')).result, 'after\n');
	});
});

test('a command that takes too long is ended with its group', async () => {
	await withBox(async (box) => {
		await assert.rejects(box.process.executeCommand('(while :; do date >>/tmp/alive; sleep 0.05; done)', undefined, undefined, 1),
			refused(408, /timeout/));
		const size = async () => (await box.process.executeCommand('wc -c </tmp/alive')).result;
		await until('nothing is written any more', async () => await size() === await size());
	});
});

test('processes of two sandboxes do not meet, nor do their files', async () => {
	await withBox((a) => withBox(async (b) => {
		await a.process.executeCommand('echo secret >/tmp/mine; sleep 1000 >/dev/null 2>&1 &');
		assert.equal((await b.process.executeCommand('ls /tmp/mine')).exitCode, 2);
		const sleeping = 'cat /proc/[0-9]*/comm | grep -xc sleep';
		assert.equal((await a.process.executeCommand(sleeping)).result, '1\n');
		assert.equal((await b.process.executeCommand(sleeping)).result, '0\n');
	}));
});

test('a dead daemon is 502 without a body, a missing sandbox 400', async () => {
	await withBox(async (box) => {
		place.box(box.id).daemonDead = true;
		await assert.rejects(box.process.executeCommand('true'), refused(502, /./));
	});
	const gone = await sdk.create();
	await gone.delete(60, true);
	await assert.rejects(gone.process.executeCommand('true'), refused(400, /failed to get runner info/));
});

test('an answer that is no JSON loses the exit code in the SDK', async () => {
	await withBox(async (box) => {
		place.rule({ op: 'exec' }, 'replace', { status: 200, headers: { 'content-type': 'text/plain' }, body: 'hello' });
		assert.equal((await box.process.executeCommand('exit 3')).exitCode, undefined);
	});
});

test('code runs', async () => {
	await withBox(async (box) => {
		const done = await box.process.codeRun('import sys\nprint(6 * 7)\nsys.exit(4)');
		assert.equal(done.result, '42\n');
		assert.equal(done.exitCode, 4);
		await assert.rejects(box.process.codeRun('import time\ntime.sleep(60)', undefined, 1), refused(408, /timeout/));
	});
});

// ---- sessions ------------------------------------------------------------------------------------

test('a session keeps its state and tells the streams apart', async () => {
	await withBox(async (box) => {
		await box.process.createSession('s1');
		await assert.rejects(box.process.createSession('s1'), refused(409, /exists/));
		const run = (command) => box.process.executeSessionCommand('s1', { command });
		await run('cd /tmp; X=7');
		const done = await run('pwd; echo "err $X" >&2; (exit 5)');
		assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['/tmp\n', 'err 7\n', 5]);
		assert.equal((await box.process.getSession('s1')).commands.length, 2);
		assert.equal((await box.process.listSessions()).length, 1);
		await box.process.deleteSession('s1');
		await assert.rejects(box.process.getSession('s1'), refused(404, /not found/));
	});
});

test('a command in the background of a session: state, log, input, following', async () => {
	await withBox(async (box) => {
		await box.process.createSession('s2');
		const { cmdId } = await box.process.executeSessionCommand('s2',
			{ command: 'echo begin; read -r line; echo "got $line"; echo bad >&2', runAsync: true, suppressInputEcho: true });
		assert.equal((await box.process.getSessionCommand('s2', cmdId)).exitCode ?? undefined, undefined);
		await until('it began', async () => (await box.process.getSessionCommandLogs('s2', cmdId)).stdout === 'begin\n');
		const heard = { out: '', err: '' };
		const followed = box.process.getSessionCommandLogs('s2', cmdId, (t) => { heard.out += t; }, (t) => { heard.err += t; });
		await box.process.sendSessionCommandInput('s2', cmdId, 'héllo');
		await followed;
		assert.deepEqual(heard, { out: 'begin\ngot héllo\n', err: 'bad\n' });
		assert.equal((await box.process.getSessionCommand('s2', cmdId)).exitCode, 0);
		await assert.rejects(box.process.sendSessionCommandInput('s2', cmdId, 'x'), refused(410, /completed/));
	});
});

test('bytes that are no text come through a followed log', async () => {
	await withBox(async (box) => {
		await box.process.createSession('s4');
		const { cmdId } = await box.process.executeSessionCommand('s4', { command: "printf 'a\\377b'", runAsync: true });
		let heard = '';
		await box.process.getSessionCommandLogs('s4', cmdId, (t) => { heard += t; }, () => {});
		assert.equal(heard, 'a\ufffdb\n'); // and a newline that nobody wrote
	});
});

test('a client of another kind gets both streams as one text', async () => {
	await withBox(async (box) => {
		await box.process.createSession('s5');
		const { cmdId } = await box.process.executeSessionCommand('s5', { command: 'echo out; echo err >&2' });
		const log = async (headers) => {
			const reply = await fetch(`${place.url}/toolbox/${box.id}/process/session/s5/command/${cmdId}/logs`,
				{ headers: { authorization: `Bearer ${place.credential.token}`, ...headers } });
			return [reply.headers.get('content-type'), await reply.text()];
		};
		assert.deepEqual((await log({}))[1].split('\n').sort(), ['', 'err', 'out']);
		assert.equal(JSON.parse((await log({ 'x-daytona-split-output': 'true' }))[1]).stderr, 'err\n');
		assert.equal(JSON.parse((await log({ 'x-daytona-sdk-version': '0.218.0' }))[1]).stderr, 'err\n');
	});
});

test('a request keeps a sandbox awake, a process does not', async () => {
	place.plan.minuteMs = 600;
	const [asked, busy] = await Promise.all([1, 2].map(() => sdk.create({ autoStopInterval: 0, autoDeleteInterval: 0 })));
	await busy.process.executeCommand('sleep 1000 >/dev/null 2>&1 &');
	const answer = asked.process.executeCommand('until [ -e /tmp/go ]; do sleep 0.1; done; echo awake');
	await until('the command runs', () => place.box(asked.id).requests > 0);
	await Promise.all([asked, busy].map((box) => box.setAutostopInterval(1)));
	await until('the other one is idle', () => place.boxes().find((b) => b.id === busy.id).ended);
	await asked.fs.uploadFile(Buffer.from(''), '/tmp/go');
	assert.equal((await answer).result, 'awake\n');
	await asked.delete().catch(() => {});
});

test('a command that ends the shell of its session never gets an exit code', async () => {
	await withBox(async (box) => {
		await box.process.createSession('s3');
		const { cmdId } = await box.process.executeSessionCommand('s3', { command: 'exit 3', runAsync: true });
		await until('the session is over', () => box.process.executeSessionCommand('s3', { command: 'true', runAsync: true })
			.then(() => false, refused(410, /ended/)));
		assert.equal((await box.process.getSessionCommand('s3', cmdId)).exitCode ?? undefined, undefined);
	});
});

// ---- files ---------------------------------------------------------------------------------------

test('files go up and come down byte for byte', async () => {
	await withBox(async (box) => {
		const bytes = Buffer.from(Array.from({ length: 70000 }, (_, i) => i & 255));
		await box.fs.uploadFiles([{ source: bytes, destination: '/tmp/new/folder/a.bin' },
			{ source: Buffer.from('text'), destination: 'b.txt' }]);
		assert.deepEqual(Buffer.from(await box.fs.downloadFile('/tmp/new/folder/a.bin')), bytes);
		assert.equal((await box.process.executeCommand('cat b.txt')).result, 'text');
		await assert.rejects(box.fs.downloadFile('/tmp/none'), /not found/);
		await assert.rejects(box.fs.uploadFile(Buffer.from('x'), '/etc/x'), refused(400, /./));
		await box.fs.uploadFile(Buffer.from(''), '/tmp/empty');
		assert.equal((await box.fs.getFileDetails('/tmp/empty')).size, 0);
	});
});

test('folders, lists, moves and removals', async () => {
	await withBox(async (box) => {
		await box.fs.createFolder('/tmp/d', '755');
		await box.fs.uploadFile(Buffer.from('1'), '/tmp/d/one');
		await box.fs.moveFiles('/tmp/d/one', '/tmp/d/two');
		assert.deepEqual((await box.fs.listFiles('/tmp/d')).map((f) => [f.name, f.size, f.isDir]), [['two', 1, false]]);
		await assert.rejects(box.fs.deleteFile('/tmp/d'), refused(400, /recursive/));
		await box.fs.deleteFile('/tmp/d', true);
		await assert.rejects(box.fs.getFileDetails('/tmp/d'), refused(404, /not found/));
		assert.equal(await box.getWorkDir(), '/home/daytona');
	});
});

// ---- terminals and interpreter -------------------------------------------------------------------

test('a terminal: environment, size, exit code', async () => {
	await withBox(async (box) => {
		let seen = '';
		const pty = await box.process.createPty({ id: 'p1', cols: 100, rows: 30, envs: { COLOUR: 'green' },
			onData: (data) => { seen += Buffer.from(data).toString(); } });
		await pty.sendInput('echo "<$COLOUR>"; stty size\n');
		await until('it answered', () => /<green>\r\n30 100/.test(seen));
		await pty.resize(120, 40);
		await pty.sendInput('stty size\n');
		await until('it has the new size', () => /40 120/.test(seen));
		assert.equal((await box.process.listPtySessions()).length, 1);
		await pty.sendInput('exit 6\n');
		assert.equal((await pty.wait()).exitCode, 6);
		await box.process.killPtySession('p1');
	});
});

test('the interpreter remembers, and tells errors and time-outs', async () => {
	await withBox(async (box) => {
		await box.codeInterpreter.runCode('x = 41');
		assert.equal((await box.codeInterpreter.runCode('print(x + 1)')).stdout, '42\n');
		assert.equal((await box.codeInterpreter.runCode('1 / 0')).error.name, 'ZeroDivisionError');
		await assert.rejects(box.codeInterpreter.runCode('import time; time.sleep(60)', { timeout: 1 }), /timed out|timeout/i);
	});
});

// ---- trouble -------------------------------------------------------------------------------------

test('a create whose answer was lost has made a sandbox', async () => {
	place.rule({ op: 'create' }, 'cut', { times: 1 });
	await assert.rejects(sdk.create({ name: 'lost' }));
	const box = await sdk.get('lost');
	await box.delete();
});

test('fifty sandboxes at once', async () => {
	const boxes = await Promise.all(Array.from({ length: 50 }, () => sdk.create({}, { timeout: 300 })));
	const said = await Promise.all(boxes.map((box, i) => box.process.executeCommand(`echo ${i} >/tmp/n; cat /tmp/n`)));
	assert.deepEqual(said.map((s) => s.result), boxes.map((_, i) => `${i}\n`));
	await Promise.all(boxes.map((box) => box.delete()));
});
