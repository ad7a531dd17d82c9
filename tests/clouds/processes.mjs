// The part of the list in which our own processes die or are replaced while jobs are in every state.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { children, driverOf, idHex, ready, service, servicePid, sql, sqlOne } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { once } from './trouble.mjs';

const HERE = [{ path: 'here', content: 'in its folder\n' }];
const ENDS = { cmd: once('cat here; exit 3'), files: HERE };
const LONG = { cmd: once('cat here; sleep 8; exit 3'), files: HERE, timeout_s: 100 };

const FIND_MS = 150000;
const CLAIM_MS = 60000; // so long a keeper that lives may have a sandbox in hand

// A job that is held in a state: by which rule, and what it runs.
const STATES = {
	creating: { hold: ['create', 'hold-reply'], job: ENDS },
	arriving: { hold: ['create', 'hold'], job: ENDS }, // the create reaches the provider when it is let go
	uploading: { hold: ['put', 'hold'], job: ENDS },
	uploaded: { hold: ['exec', 'hold'], job: ENDS },
	started: { hold: ['exec', 'hold-reply'], job: ENDS },
	running: { job: LONG },
	stopping: { hold: ['destroy', 'hold'], job: ENDS },
};

async function bring(s, state) {
	const way = await s.way();
	const { hold, job: args } = STATES[state];
	const rule = hold && way.rule(...hold, { times: 1 });
	const job = await way.start(args);
	if (rule) await rule.seen;
	else await s.runs(job);
	return { state, way, rule, job };
}

/** The job ends as if nothing had been, or (when it may) never began; and once. */
async function endsTruly(s, { state, way, rule, job }, mayBeNothing) {
	if (state === 'arriving' && mayBeNothing)
		await until('its mark was looked for', () => way.count('find') > 0, FIND_MS);
	rule?.release();
	const done = await s.end(job);
	if (mayBeNothing && ['creating', 'arriving', 'uploading'].includes(state)) {
		assert.equal(done.outcome, 'not_started', `${state}: ${JSON.stringify(done.error)}`);
		assert.equal(done.error.code, 'busy');
		assert.equal(way.count('exec'), 0);
	} else {
		assert.equal(done.outcome, 'failed', `${state}: ${done.outcome} ${JSON.stringify(done.error)}`);
		assert.deepEqual([done.exit_code, done.stdout], [3, 'in its folder\n'], state);
	}
	await s.settled(job);
	assert.deepEqual(await way.living(), [], state);
	assert.equal(way.marks.size, 1, `${state}: one sandbox was asked for`);
}

const isDead = (pid) => until(`process ${pid} is gone`, () => {
	try {
		process.kill(pid, 0);
		return false;
	} catch {
		return true;
	}
});

async function kill(pids) {
	for (const pid of pids) process.kill(pid, 'SIGKILL');
	await Promise.all(pids.map(isDead));
}

// What can not be looked for is ended by its mark, whether it came or not: a create that comes even later is
// ended by its own limit.
const all = (s, { list }) => Promise.all(Object.keys(STATES).filter((state) => list || state !== 'arriving')
	.map((state) => bring(s, state)));
const allEnd = (s, held, mayBeNothing) => Promise.all(held.map((h) => endsTruly(s, h, mayBeNothing)));

export function processes(s, can) {
	describe(`${s.place.name}: processes that end`, () => {
		test('all workers are killed with jobs in every state, then the keeper that took them over', async () => {
			const held = await all(s, can);
			await kill((await children()).worker);
			await ready();
			const running = held.find((h) => h.state === 'running');
			await until('the keeper has a job', async () =>
				(await children()).keeper.includes(await driverOf(running.job.job_id)));
			await kill((await children()).keeper);
			await allEnd(s, held, true);
		});

		test('a keeper that is killed with a stop in hand: the next one goes on with it at once', async () => {
			const way = await s.way();
			const stop = way.rule('destroy', 'hold');
			const job = await way.start({ cmd: 'true' });
			await stop.seen;
			await kill((await children()).worker);
			const claim = await until('the keeper has the stop in hand', async () => {
				const [[tries, until_ms]] = await sql(`SELECT stop_tries, next_try_at FROM sandbox WHERE job = ${idHex(job.job_id)}`);
				return tries !== '0' && Number(until_ms) - Date.now() > CLAIM_MS / 2 && Number(until_ms);
			});
			await kill((await children()).keeper);
			stop.release();
			await s.settled(await s.ends(job, 'succeeded'));
			const stopped = Number(await sqlOne(`SELECT stopped_at FROM sandbox WHERE job = ${idHex(job.job_id)}`));
			assert.ok(stopped < claim, `stopped ${stopped - claim} ms after the claim of the dead keeper ran out`);
		});

		test('a reload with jobs in every state: all of them go on', async () => {
			const held = await all(s, can);
			const before = (await children()).worker;
			process.kill(await servicePid('connector'), 'SIGHUP');
			await until('new workers serve', async () => (await children()).worker.some((pid) => !before.includes(pid)));
			await allEnd(s, held, false);
		});

		test('a restart of the connector with jobs that began: they end truly', async () => {
			const held = await Promise.all(['running', 'running', 'started'].map((state) => bring(s, state)));
			for (const h of held) h.rule?.release();
			await service('restart', 'connector');
			await ready();
			await allEnd(s, held, false);
		});
	});
}
