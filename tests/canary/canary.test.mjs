// Planted values are searched for wherever they do not belong, after jobs that ended in every way and
// calls that were refused in every way. In each kind of place the same search must find a value that was
// put there on purpose.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { request } from '../lib/client.mjs';
import { account, children, dev, driverOf, service, servicePid, sql, state } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { core, Needles } from './needles.mjs';
import { OUTPUT, Stage } from './stage.mjs';
import { trouble } from './trouble.mjs';
import { familyOf, openFiles, Sampler } from './watch.mjs';

const run = promisify(execFile);
const stage = new Stage();
const control = core(); // found on purpose
const controls = new Needles({ control });
const services = {};
const looks = { open: [], temp: [] };
const CA_IN_MEMORY = '/memfd:ca'; // the bundle of CAs, read once for all workers
const TEMP = path.join(state, 'nginx/temp');
let sampler;

const none = (found, where) => assert.deepEqual(found, [], `planted values ${where}`);

/** Open files of the connector and of nginx, at this moment. */
function lookAtFiles() {
	for (const pid of familyOf([services.connector, services.nginx]))
		for (const file of openFiles(pid))
			looks.open.push({ ...file, held: stage.needles.inText(file.content()) });
}

const succeed = async () => {
	const { json } = await stage.rest(stage.owner, 'run_job',
		stage.job({ idempotency_key: stage.planted['idempotency argument'], base64_output: true }), OUTPUT);
	assert.equal(json.outcome, 'succeeded');
	assert.equal(json.stdout, `${stage.planted.stdout}\n`, 'the planted output was there');
	assert.equal(json.stderr, `${stage.planted.stderr}\n`);
};

const fails = async () => {
	const { job } = await stage.mcp(stage.agent, 'run_job', stage.job({ tail: 'exit 3' }), OUTPUT);
	assert.equal(job.exit_code, 3);
	await stage.mcp(stage.agent, 'get_job', { job_id: job.job_id }, OUTPUT);
	const other = await stage.rest(stage.owner, 'get_job', { job_id: job.job_id });
	assert.equal(other.json.output, 'sealed_to_other_key');
};

const timesOut = async () => {
	const { json } = await stage.rest(stage.owner, 'run_job', stage.job({ tail: 'sleep 100', timeout_s: 3 }), OUTPUT,
		{ headers: { 'Idempotency-Key': stage.planted['idempotency header'] } });
	assert.equal(json.outcome, 'timed_out', JSON.stringify(json));
};

/** Runs until there were enough looks at it, and is cancelled then. */
const cancelled = async () => {
	const { json } = await stage.rest(stage.owner, 'run_job', stage.job({ tail: 'sleep 200', wait_s: 0 }), OUTPUT);
	await stage.runs(json.job_id);
	const before = sampler.samples;
	lookAtFiles();
	await until('it was looked at', () => sampler.samples >= before + 20, 60000);
	lookAtFiles();
	await stage.mcp(stage.owner, 'cancel_job', { job_id: json.job_id }, OUTPUT);
	const ended = await stage.rest(stage.owner, 'get_job', { job_id: json.job_id, wait_s: 60 }, OUTPUT);
	assert.equal(ended.json.outcome, 'cancelled');
};

const refusedByProviders = async () => {
	for (const name of ['refuse', 'tell', 'redirect']) {
		assert.equal((await stage.save(name, { skip_check: true })).status, 200);
		const rest = await stage.rest(stage.owner, 'run_job', stage.job({ key: name }));
		const { job } = await stage.mcp(stage.agent, 'run_job', stage.job({ key: name }));
		for (const { outcome } of [rest.json, job])
			assert.ok(['provider_error', 'not_started', 'uncertain'].includes(outcome), outcome);
	}
};

/** Bodies as large as they may be, at once, in pieces, and one whose answer is read slowly. */
const largeBodies = async () => {
	const body = JSON.stringify(stage.job()).padEnd(4 << 20);
	const headers = { Authorization: `Bearer ${stage.owner.key}`, 'Content-Type': 'application/json' };
	const run_job = `${dev.url}/api/run/run_job`;
	for (const length of [{ 'Content-Length': body.length }, { 'Transfer-Encoding': 'chunked' }]) {
		const reply = await stage.note('large body',
			request(run_job, { method: 'POST', headers: { ...headers, ...length }, body }), OUTPUT);
		assert.equal(reply.json?.outcome, 'succeeded', reply.text);
	}
	assert.equal((await stage.note('document', stage.nobody.api('GET', '/openapi.json'))).status, 200);
};

/** Calls `seen` with the name of everything that appears below a folder. */
function watchFolder(folder, seen) {
	const watchers = [folder, ...fs.readdirSync(folder).map((name) => path.join(folder, name))]
		.map((dir) => fs.watch(dir, (_, name) => seen(path.join(dir, name ?? ''))));
	return () => watchers.forEach((watcher) => watcher.close());
}

async function play() {
	await stage.begin();
	for (const name of ['connector', 'nginx', 'mariadb', 'runner']) services[name] = await servicePid(name);
	sampler = new Sampler(() => Object.values(services));
	for (const name of ['first', 'second']) {
		const saved = await stage.save(name, { make_default: name === 'first' });
		assert.equal(saved.status, 200, saved.text);
	}
	await Promise.all([succeed(), fails(), timesOut(), cancelled(), refusedByProviders(), largeBodies()]);
	await trouble(stage, await account('free'));
	for (const tool of ['list_jobs', 'list_providers', 'usage_and_upgrade', 'weekly_report'])
		for (const call of ['rest', 'mcp']) await stage[call](stage.owner, tool, {});
	lookAtFiles();
}

async function leave() {
	await sampler?.stop();
	await stage.end();
	controls.done();
}

before(async () => {
	const unwatch = watchFolder(TEMP, (name) => looks.temp.push(name));
	try {
		await play();
		await sampler.stop();
	} catch (error) {
		await leave(); // after() is not called then
		throw error;
	} finally {
		unwatch();
	}
});
after(leave);

test('every form of a value is found', () => {
	const text = 'Zm9vYmFyCg0123as';
	const needles = new Needles({ x: text });
	const hex = Buffer.from(text).toString('hex');
	const forms = [text, hex, hex.toUpperCase(), encodeURIComponent(`"${text}"`), JSON.stringify({ a: `"${text}\n` }),
		hex.replaceAll(/../g, '%$&'), hex.replaceAll(/../g, '\\u00$&'),
		...['', '-', '--'].map((front) => Buffer.from(`${front}${text}?`).toString('base64')),
		Buffer.from(text).toString('base64url')];
	for (const form of forms) assert.equal(needles.inText(`..${form}..`).length, 1, form);
	assert.equal(needles.inText(Buffer.from(text, 'utf16le')).length, 1);
	none(needles.inText('Zm9vYmFyCg'), 'in what is only a part');
	needles.done();
});

describe('replies', () => {
	test('hold none of it but the output, and that only where it is the caller\'s own', () => {
		assert.ok(stage.replies.length > 150, `${stage.replies.length} replies`);
		none(stage.replies.flatMap(({ label, text, allowed }) =>
			stage.needles.inText(text, allowed).map((name) => `${label}: ${name}: ${text.slice(0, 300)}`)), 'in bodies');
		none(stage.replies.flatMap(({ label, head }) =>
			stage.needles.inText(head).map((name) => `${label}: ${name}`)), 'in headers');
	});

	test('control: the owner\'s own output is found in the replies that may hold it', () => {
		const own = stage.replies.filter(({ allowed }) => allowed.length);
		for (const kind of [...OUTPUT.map((o) => `${o} as raw`), 'stdout as base64+0', 'stderr as base64+0'])
			assert.ok(own.some(({ text }) => stage.needles.inText(text).includes(kind)), kind);
	});
});

describe('logs', () => {
	test('hold none of it', async () => {
		none(await stage.needles.inFiles([path.join(state, 'log')]), 'in logs');
		const logs = fs.readdirSync(path.join(state, 'log'));
		for (const name of ['connector.log', 'nginx.access.log', 'nginx.error.log', 'mariadb.log', 'runner.log'])
			assert.ok(logs.includes(name), name);
		assert.match(fs.readFileSync(path.join(state, 'log/connector.log'), 'utf8'), /job\.ended/);
		assert.match(fs.readFileSync(path.join(state, 'log/nginx.access.log'), 'utf8'), /run_job/);
	});

	test('control: a path that was asked for is found in the access log', async () => {
		await request(`${dev.url}/${control}`);
		await until('it was logged', async () =>
			(await controls.inFiles([path.join(state, 'log')])).some((line) => /access\.log: control as raw/.test(line)));
	});
});

describe('processes', () => {
	test('command lines and environments hold none of it while jobs run', () => {
		assert.ok(sampler.samples >= 20, `${sampler.samples} looks`);
		assert.ok(sampler.boxes > 0, 'boxes were running');
		none([...sampler.seen].flatMap((line) =>
			stage.needles.inText(line).map((name) => `${name}: ${line.replaceAll('\0', ' ').slice(0, 300)}`)), 'in /proc');
	});

	test('control: a command line and an environment are found', async () => {
		const own = new Sampler(() => [process.pid]);
		const one = spawn('sleep', ['1000'], { env: { X: control }, stdio: 'ignore' });
		const two = spawn('sleep', ['1000'], { argv0: control, stdio: 'ignore' });
		try {
			for (const line of [`X=${control}`, `${control}\0`])
				await until('it is seen', () => [...own.seen].some((seen) =>
					seen.startsWith(line) && controls.inText(seen).length));
		} finally {
			one.kill();
			two.kill();
			await own.stop();
		}
	});
});

describe('open files', () => {
	test('of connector and nginx are logs and settings: none is deleted, none holds any of it', () => {
		const bad = looks.open.filter(({ name, deleted, held }) => held.length ||
			(name !== CA_IN_MEMORY && (deleted || !name.startsWith(path.join(state, 'log/')))));
		none(bad.map(({ pid, name, deleted, held }) => `${pid} ${name} ${deleted} ${held}`), 'in open files');
		assert.ok(looks.open.some(({ name }) => name.endsWith('nginx.access.log')), 'nginx was looked at');
		assert.ok(looks.open.some(({ name }) => name.endsWith('connector.log')), 'the connector was looked at');
	});

	test('of MariaDB hold none of it', () => {
		const files = openFiles(services.mariadb);
		assert.ok(files.some(({ name }) => name.endsWith('ib_logfile0')));
		none(files.flatMap(({ name, content }) => stage.needles.inText(content()).map((n) => `${name}: ${n}`)),
			'in open files of MariaDB');
	});

	test('control: a deleted file of our own is found', () => {
		const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-open-'));
		const fd = fs.openSync(path.join(dir, 'gone'), 'w+');
		fs.writeSync(fd, control);
		fs.rmSync(dir, { recursive: true });
		const found = openFiles(process.pid).filter(({ deleted, content }) =>
			deleted && controls.inText(content()).length);
		assert.equal(found.length, 1);
		fs.closeSync(fd);
	});
});

describe('files of nginx', () => {
	test('no body and no answer was put into a file', () => {
		none(looks.temp, 'went through a file');
	});

	test('bodies of 4 MiB pass while nginx can make no file at all', async () => {
		const dirs = fs.readdirSync(TEMP).map((name) => path.join(TEMP, name));
		assert.ok(dirs.length >= 2, dirs.join());
		for (const dir of dirs) fs.chmodSync(dir, 0);
		try {
			await largeBodies();
		} finally {
			for (const dir of dirs) fs.chmodSync(dir, 0o700);
		}
	});

	test('control: a file that is made there is seen', async () => {
		const seen = [];
		const unwatch = watchFolder(TEMP, (name) => seen.push(name));
		const file = path.join(TEMP, fs.readdirSync(TEMP)[0], control);
		fs.writeFileSync(file, control);
		fs.rmSync(file);
		await until('it is seen', () => seen.some((name) => controls.inText(name).length));
		unwatch();
	});
});

describe('providers', () => {
	const at = (name) => Buffer.concat(stage.providers[name].received);

	test('never get a key of ours, an idempotency key, or the key of another provider', () => {
		for (const name of Object.keys(stage.providers)) {
			assert.ok(at(name).length > 0, `${name} was called`);
			const own = [`key of ${name}`, 'command', 'env value', 'file content', 'file path'];
			const got = stage.needles.inText(at(name), own);
			// Only the two that run jobs answer with output, and nobody is sent any.
			none(got, `at the provider ${name}`);
		}
	});

	test('control: each gets its own key, and the one that runs jobs gets the job', () => {
		for (const name of Object.keys(stage.providers))
			assert.ok(stage.needles.inText(at(name)).includes(`key of ${name} as raw`), name);
		for (const kind of ['command', 'env value', 'file content', 'file path'])
			assert.ok(stage.needles.inText(at('first')).some((name) => name.startsWith(`${kind} as`)), kind);
	});
});

const cores = (dir) => fs.readdirSync(dir).filter((name) => /^core(\.|$)/.test(name));

describe('core files', () => {
	test('a worker that crashes with a job in hand leaves none', async () => {
		const { json } = await stage.rest(stage.owner, 'run_job', stage.job({ tail: 'sleep 5', wait_s: 0 }), OUTPUT);
		await stage.runs(json.job_id);
		const pid = await until('a worker drives it', () => driverOf(json.job_id));
		const places = [fs.readlinkSync(`/proc/${pid}/cwd`), state, path.join(state, 'bin'), path.join(state, 'log')];
		const before = places.map(cores);
		assert.match(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'), /^Max core file size +0 +0 /m);
		if (process.getuid() === 0)
			assert.equal(fs.statSync(`/proc/${pid}/fd`).uid, 0, 'it can not be dumped, so its files belong to root');
		process.kill(pid, 'SIGSEGV');
		await until('another worker is there', async () => {
			const { worker } = await children();
			return worker.length === 2 && !worker.includes(pid);
		}, 60000);
		assert.deepEqual(places.map(cores), before);
		const ended = await until('the job ends', async () => {
			const got = await stage.note('get_job', stage.owner.rest('get_job', { job_id: json.job_id, wait_s: 30 }), OUTPUT);
			return got.json?.state === 'ended' && got.json;
		}, 120000);
		assert.equal(ended.outcome, 'succeeded', 'the job went on');
	});

	test('no service may write one', () => {
		for (const pid of familyOf(Object.values(services))) {
			const limits = fs.existsSync(`/proc/${pid}/limits`) && fs.readFileSync(`/proc/${pid}/limits`, 'utf8');
			if (limits) assert.match(limits, /^Max core file size +0 +0 /m);
		}
	});

	test('control: the crash of another program leaves one with its memory, or the machine writes none', async () => {
		const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-core-'));
		const pattern = fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
		await run('sh', ['-c', 'ulimit -c unlimited && kill -SEGV $$'], { cwd: dir, env: { X: control } }).catch(() => {});
		if (/^[|/]/.test(pattern) || !/^Max core file size +\d+ +unlimited/m.test(fs.readFileSync('/proc/self/limits', 'utf8'))) {
			assert.deepEqual(cores(dir), []);
		} else {
			assert.equal(cores(dir).length, 1, pattern);
			assert.ok((await controls.inFiles([dir])).length > 0);
		}
		fs.rmSync(dir, { recursive: true });
	});
});

describe('state on disk', () => {
	const STATE = [path.join(state, 'db'), path.join(state, 'tmp'), path.join(state, 'nginx'), path.join(state, 'log')];

	test('the database holds none of it while it runs, redo log and temporary space included', async () => {
		none(await stage.needles.inFiles(STATE), 'on disk');
		const [[jobs, results]] = await sql('SELECT (SELECT COUNT(*) FROM job), (SELECT COUNT(*) FROM result)');
		assert.ok(Number(jobs) >= 8 && Number(results) >= 1, 'jobs and results were stored');
	});

	test('and none after it was stopped', async () => {
		await sql(`UPDATE token SET name = '${control}' WHERE name = 'of an agent'`);
		await service('stop', 'mariadb');
		none(await stage.needles.inFiles(STATE), 'on disk');
		assert.ok(fs.existsSync(path.join(state, 'db/ib_logfile0')));
	});

	test('control: what was written to a column is found in a table and in the redo log', async () => {
		const found = await controls.inFiles(STATE);
		assert.ok(found.some((line) => line.includes('/compute_connector/token.ibd: control as raw')), found.join('\n'));
		await service('start', 'mariadb');
	});
});
