// Processes that die, are reloaded or lose their database while jobs are in every state. A command
// runs once or not at all, ends truly, and leaves nothing.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { children, dev, driverOf, idHex, jobState, mark, ready, service, servicePid, sql, sqlOne, state } from '../lib/instance.mjs';
import { instanceRunner, leftovers, nothingLeft, sandboxes } from '../lib/runner.mjs';
import { Client } from '../lib/client.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded, CREATE, customer, EXEC, hubs, saveRunner, UPLOAD } from './stage.mjs';

let hub, client;

before(async () => {
	[hub] = await hubs(1);
	client = await customer();
});
after(() => hub.stop());

const runs = (id) => until('it runs', async () => await jobState(id) === 'running');
const settled = (id) => until('its sandboxes are stopped or absent', async () =>
	(await sql(`SELECT state FROM sandbox WHERE job = ${idHex(id)}`))
		.every(([state]) => ['stopped', 'absent'].includes(state)), 100000);
const isDead = (pid) => until(`process ${pid} is gone`, () => {
	try {
		process.kill(pid, 0);
		return false;
	} catch {
		return true;
	}
});

let lanes = 0;
async function lane() {
	const way = hub.lane(instanceRunner().url);
	const key = `lane-${lanes += 1}`;
	await saveRunner(client, key, { url: way.url, token: instanceRunner().token });
	return { way, key };
}

/** Kills the process that drives the job; gives its pid. */
async function killDriver(id) {
	const pid = await driverOf(id);
	assert.ok(pid > 0);
	process.kill(pid, 'SIGKILL');
	await isDead(pid);
	return pid;
}

// A command that tells apart a second run: it fails when it finds what the first one left.
const once = (rest) => `mkdir /tmp/first || exit 99; ${rest}`;

describe('a worker that is killed', () => {
	test('while the sandbox is created: not_started, and the sandbox is found and destroyed', async () => {
		const { way, key } = await lane();
		const rule = way.rule(CREATE, 'hold-reply', { times: 1 });
		const job = await client.job({ cmd: once('true'), key, wait_s: 0, idempotency_key: 'killed' });
		await rule.seen;
		assert.equal(await jobState(job.job_id), 'creating');
		await killDriver(job.job_id);
		const done = assertEnded(await client.get(job.job_id), 'not_started');
		assert.equal(done.error.code, 'busy');
		rule.release();
		await settled(job.job_id);
		assert.equal(way.requests.filter((r) => r.endsWith('/exec')).length, 0);
		const again = await client.job({ cmd: 'echo again', idempotency_key: 'killed' });
		assertEnded(again, 'succeeded');
	});

	test('while the files are sent: not_started, told over MCP too, and the sandbox destroyed', async () => {
		const { way, key } = await lane();
		const rule = way.rule(UPLOAD, 'hold', { times: 1 });
		const job = await client.job({ cmd: once('true'), key, wait_s: 0 });
		await rule.seen;
		assert.equal(await jobState(job.job_id), 'uploading');
		await killDriver(job.job_id);
		const reply = await client.mcp('get_job', { job_id: job.job_id });
		assertEnded(reply.json, 'not_started');
		assert.equal(reply.isError, true);
		rule.release();
		await settled(job.job_id);
		assert.equal(way.requests.filter((r) => r.endsWith('/exec')).length, 0);
	});

	test('before the start: another process starts it, in its folder, once', async () => {
		const { way, key } = await lane();
		const rule = way.rule(EXEC, 'hold', { times: 1 });
		const job = await client.job({
			cmd: once('cat here; echo "$V"; exit 3'), cwd: 'deep/down', key, wait_s: 0,
			env: { V: 'value' }, files: [{ path: 'deep/down/here', content: 'in its folder\n' }],
		});
		await rule.seen;
		assert.equal(await jobState(job.job_id), 'uploaded');
		await killDriver(job.job_id);
		const done = assertEnded(await client.get(job.job_id), 'failed');
		assert.deepEqual([done.exit_code, done.stdout], [3, 'in its folder\nvalue\n']);
		rule.release();
		await settled(job.job_id);
	});

	test('after a start whose reply did not come: it ran once', async () => {
		const { way, key } = await lane();
		const rule = way.rule(EXEC, 'hold-reply', { times: 1 });
		const job = await client.job({ cmd: once('sleep 2; echo end'), key, wait_s: 0 });
		await rule.seen;
		await killDriver(job.job_id);
		rule.release();
		assert.equal(assertEnded(await client.get(job.job_id), 'succeeded').stdout, 'end\n');
		await settled(job.job_id);
	});

	test('before the start of a job that was cancelled: it never begins', async () => {
		const { way, key } = await lane();
		const rule = way.rule(EXEC, 'hold');
		const job = await client.job({ cmd: once('sleep 100'), key, wait_s: 0 });
		await rule.seen;
		await sql(`UPDATE job SET cancel_at = 1 WHERE id = ${idHex(job.job_id)}`);
		await killDriver(job.job_id);
		rule.left = 0;
		const done = assertEnded(await client.get(job.job_id), 'cancelled');
		assert.equal(done.started_at, undefined);
		rule.release();
		await settled(job.job_id);
	});

	test('while the command runs: it goes on and ends truly, also when the next driver dies', async () => {
		const job = await client.job({ cmd: once('sleep 6; echo end; exit 5'), wait_s: 0 });
		await runs(job.job_id);
		const first = await killDriver(job.job_id);
		const second = await until('somebody else drives it', async () => {
			const pid = await driverOf(job.job_id);
			return pid && pid !== first && pid;
		});
		assert.ok((await children()).keeper.includes(second), 'the keeper took it');
		process.kill(second, 'SIGKILL');
		await isDead(second);
		const done = assertEnded(await client.get(job.job_id), 'failed');
		assert.deepEqual([done.exit_code, done.stdout], [5, 'end\n']);
		await settled(job.job_id);
	});

	test('with a caller waiting: 503 with Retry-After, and list_jobs finds the job', async () => {
		const call = client.rest('run_job', { cmd: once('sleep 3; echo end') });
		const id = await until('it runs', async () =>
			(await client.rest('list_jobs')).json.jobs.find((j) => j.state === 'running')?.job_id);
		await killDriver(id);
		const reply = await call;
		if (reply.status !== 200) {
			assert.equal(reply.status, 503);
			assert.match(reply.headers['content-type'], /problem\+json/);
			assert.ok(Number(reply.headers['retry-after']) > 0);
		}
		assert.equal(assertEnded(await client.get(id), 'succeeded').stdout, 'end\n');
	});
});

describe('a reload', () => {
	const waitingJobs = (n, seconds) => Array.from({ length: n }, (_, i) =>
		client[i % 2 ? 'mcp' : 'rest']('run_job', { cmd: once(`sleep ${seconds}; echo end`) }));

	test('of the connector with waiting jobs: every answer arrives', async () => {
		const calls = waitingJobs(8, 5);
		await until('all run', async () =>
			(await client.rest('list_jobs')).json.jobs.filter((j) => j.state === 'running').length >= 8);
		const before = (await children()).worker;
		process.kill(await servicePid('connector'), 'SIGHUP');
		await until('new workers serve', async () =>
			(await children()).worker.some((pid) => !before.includes(pid)));
		for (const reply of await Promise.all(calls)) {
			assert.equal(reply.status, 200, reply.text);
			assert.equal(assertEnded(reply.json, 'succeeded').stdout, 'end\n');
		}
		await Promise.all(before.map(isDead));
	});

	test('that is shorter than a job: the answer says it is running, and it ends elsewhere', async () => {
		const call = client.rest('run_job', { cmd: once('sleep 22; echo end'), wait_s: 60 });
		await until('it runs', async () => (await client.rest('list_jobs')).json.jobs[0].state === 'running');
		process.kill(await servicePid('connector'), 'SIGHUP');
		const reply = await call;
		assert.equal(reply.status, 200, reply.text);
		assert.equal(reply.json.state, 'running');
		assert.match(reply.json.note, /get_job/);
		assert.equal(assertEnded(await client.get(reply.json.job_id), 'succeeded').stdout, 'end\n');
	});

	test('of nginx with waiting jobs: every answer arrives', async () => {
		const calls = waitingJobs(6, 4);
		await until('all run', async () =>
			(await client.rest('list_jobs')).json.jobs.filter((j) => j.state === 'running').length >= 6);
		process.kill(await servicePid('nginx'), 'SIGHUP');
		for (const reply of await Promise.all(calls))
			assert.equal(assertEnded(reply.json, 'succeeded').stdout, 'end\n');
	});

	test('a restart of the connector: running jobs end truly', async () => {
		const job = await client.job({ cmd: once('sleep 4; echo end'), wait_s: 0 });
		await runs(job.job_id);
		await service('restart', 'connector');
		await ready();
		assert.equal(assertEnded(await client.get(job.job_id), 'succeeded').stdout, 'end\n');
	});
});

describe('without the database', () => {
	test('calls are 503 in the declared form, a running job ends truly, a waiting caller is answered', async () => {
		const fast = await client.job({ cmd: once('sleep 4; echo fast'), wait_s: 0 });
		const slow = await client.job({ cmd: once('sleep 300'), timeout_s: 400, wait_s: 0 });
		await runs(fast.job_id);
		await runs(slow.job_id);
		const box = await sqlOne(`SELECT provider_id FROM sandbox WHERE job = ${idHex(fast.job_id)}`);
		const waiting = client.rest('get_job', { job_id: slow.job_id, wait_s: 3 });
		await service('kill', 'mariadb');
		const rest = await until('the database is missed', async () => {
			const reply = await client.rest('list_jobs');
			return reply.status !== 200 && reply;
		});
		assert.equal(rest.status, 503, rest.text);
		assert.match(rest.headers['content-type'], /problem\+json/);
		assert.equal(rest.json.code, 'unavailable');
		assert.ok(Number(rest.headers['retry-after']) > 0);
		const mcp = await client.mcp('run_job', { cmd: 'true' });
		assert.equal(mcp.status, 503, mcp.text);
		assert.equal(mcp.error.code, -32603);
		assert.ok(Number(mcp.headers['retry-after']) > 0);
		assert.equal((await new Client(dev.url).api('GET', '/healthz')).status, 200);
		assert.equal((await new Client(dev.url).api('GET', '/readyz')).status, 503);
		const answer = await waiting;
		assert.equal(answer.status, 503);
		assert.match(answer.json.detail, new RegExp(slow.job_id));
		await until('the fast one has ended in its sandbox', () =>
			!leftovers(box).processes.some((p) => p.endsWith(' sleep')));
		await service('start', 'mariadb');
		await ready();
		assert.equal(assertEnded(await client.get(fast.job_id), 'succeeded').stdout, 'fast\n');
		assert.equal(await jobState(slow.job_id), 'running');
		assertEnded((await client.rest('cancel_job', { job_id: slow.job_id })).json, 'cancelled');
		await settled(slow.job_id);
	});

	test('for longer than a driver may be silent: nobody is taken for dead', async () => {
		const job = await client.job({ cmd: once('sleep 300'), timeout_s: 400, wait_s: 0 });
		await runs(job.job_id);
		const driver = await driverOf(job.job_id);
		await service('stop', 'mariadb');
		await service('start', 'mariadb');
		// As if it had been away for an hour: every process was last heard of long ago.
		await sql('UPDATE process SET beat_at = beat_at - 3600000 WHERE dead = 0');
		await ready();
		const beats = () => sqlOne('SELECT COUNT(*) FROM process WHERE dead = 0 AND beat_at < UNIX_TIMESTAMP() * 1000 - 60000');
		await until('all are heard of again', async () => await beats() === '0');
		assert.equal(await driverOf(job.job_id), driver);
		assertEnded(await client.job({ cmd: 'true' }), 'succeeded');
		assertEnded((await client.rest('cancel_job', { job_id: job.job_id })).json, 'cancelled');
	});

	test('a process that was taken for dead comes back to life and its new jobs are its own', async () => {
		await sql('UPDATE process SET dead = 1');
		await until('the living are alive again', async () => {
			const { worker, keeper } = await children();
			const alive = await sql('SELECT pid FROM process WHERE dead = 0');
			return [...worker, ...keeper].every((pid) => alive.some(([p]) => Number(p) === pid));
		});
		for (let i = 0; i < 4; i++) assertEnded(await client.job({ cmd: once('true') }), 'succeeded');
	});
});

describe('a runner', () => {
	test('that is restarted ends its sandboxes; its jobs are told as what they are', async () => {
		const job = await client.job({ cmd: once('sleep 100'), timeout_s: 2, wait_s: 0 });
		await runs(job.job_id);
		const prefix = await mark();
		await service('kill', 'runner');
		await until('its processes died with it', () => leftovers(prefix).processes.length === 0);
		await service('start', 'runner');
		// Its new token is another key: with the old one nobody can ask how the job ended.
		const done = await client.get(job.job_id, { wait_s: 100 });
		assertEnded(done, 'uncertain');
		assert.equal(done.sandbox, 'stopping');
		// Nor whether the sandbox is gone, until its own limit must have ended it.
		await until('it was asked in vain', async () => await sqlOne(`SELECT error FROM sandbox
			WHERE job = ${idHex(job.job_id)}`) === 'key_refused');
		await sql(`UPDATE sandbox SET ends_at = ends_at - 7200000, next_try_at = 0
			WHERE job = ${idHex(job.job_id)}`);
		await settled(job.job_id);
		await until('the operator is told', () =>
			fs.readFileSync(path.join(state, 'log', 'connector.log'), 'utf8').includes('"sandbox.ran_out"'));
		await saveRunner(client, 'direct', instanceRunner());
		assertEnded(await client.job({ cmd: 'true', key: 'direct' }), 'succeeded');
	});
});

test('after all that nothing is left', async () => {
	const prefix = await mark();
	await until('every job has ended', async () =>
		await sqlOne(`SELECT COUNT(*) FROM job WHERE state <> 'ended'`) === '0', 60000);
	await until('every sandbox is stopped or absent', async () =>
		await sqlOne(`SELECT COUNT(*) FROM sandbox WHERE state NOT IN ('stopped', 'absent')`) === '0', 100000);
	assert.deepEqual(await sandboxes(instanceRunner()), []);
	await nothingLeft(prefix);
	assert.equal(await sqlOne('SELECT COUNT(*) FROM job WHERE exit_code = 99'), '0', 'no command ran twice');
});
