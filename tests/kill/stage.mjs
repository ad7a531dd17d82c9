// What a campaign needs: a runner that can be killed, behind a proxy that widens the states of a job;
// an account whose callers never stop; a witness; and what must be true when it is over.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { account, allowOrigins, childrenOf, idHex, mark, pidOf, sql } from '../lib/instance.mjs';
import { leftovers, sandboxes, startRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { DelayProxy } from './delay.mjs';
import { Load } from './load.mjs';
import { Witness } from './witness.mjs';

export const PATIENCE_MS = 240000;
const CALLERS = 8;
const RUNNER = ['--network', 'host', '--memory', '256', '--disk', '32', '--max-sandboxes', '64'];

const roleOf = (pid) => {
	try {
		return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1];
	} catch {
		return undefined;
	}
};

/** Living children of the master by role. */
export const children = (role) =>
	childrenOf(pidOf('connector')).filter((pid) => roleOf(pid) === role);

const mounts = () => fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
	.filter((line) => /compute-runner|cc-runner/.test(line));

export class Stage {
	async start(delayMs) {
		process.setMaxListeners(0); // each runner that a test starts has one
		this.mounts = mounts();
		this.prefix = await mark();
		this.witness = await new Witness().start();
		this.proxy = await new DelayProxy(delayMs).start();
		await this.newRunner();
		await allowOrigins([this.proxy.url]);
		this.client = await account('pro');
		const saved = await this.client.rest('save_provider_key', { provider: 'tunnel', name: 'delayed',
			token: 'x'.repeat(43), bridge_url: this.proxy.url });
		if (saved.status !== 200) throw new Error(`not saved: ${saved.text}`);
		this.load = new Load(this.client, this.witness);
		this.load.start(CALLERS);
	}

	async newRunner() {
		this.runner = await startRunner({ port: this.runner?.port ?? 0, args: RUNNER });
		this.proxy.aim(this.runner);
	}

	async stop() {
		if (this.load) this.load.stopping = true;
		await this.runner?.stop();
		this.proxy?.stop();
		this.witness?.stop();
	}
}

/** The tests of what is true when the callers have stopped; `least` calls must have been made. */
export function endings(stage, least) {
	let jobs; // [hex id, state, outcome, exit code]

	test('every caller gets an answer that counts, and no other one', async () => {
		await stage.load.stop();
		assert.deepEqual(stage.load.odd, []);
		assert.ok(stage.load.calls.length >= least, `${stage.load.calls.length} calls`);
	});

	test('every accepted job comes to its end', async () => {
		await until('no job is left', async () =>
			(await sql("SELECT COUNT(*) FROM job WHERE state <> 'ended'"))[0][0] === '0', PATIENCE_MS);
		jobs = await sql(`SELECT LOWER(HEX(id)), state, outcome, exit_code FROM job
			WHERE account = ${idHex(stage.client.account)}`);
		const outcomes = {};
		for (const [, , outcome] of jobs) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
		console.log(`${stage.load.calls.length} calls, ${jobs.length} jobs: ${JSON.stringify(outcomes)}`);
	});

	test('no command began twice, and what began and what did not is told truly', () => {
		const times = new Map([...stage.witness.began].map(([job, n]) =>
			[idHex(`job_${job}`).slice(2, -1), n]));
		const wrong = [];
		for (const [id, , outcome] of jobs) {
			const n = times.get(id) ?? 0;
			const none = outcome === 'not_started' || outcome === 'provider_error';
			// A lost one was started; its box may have died in the moment before its first line ran.
			const once = ['succeeded', 'failed', 'timed_out'].includes(outcome);
			if (n > 1 || (none && n !== 0) || (once && n !== 1))
				wrong.push(`${id} is ${outcome} and began ${n} times`);
		}
		assert.deepEqual(wrong, []);
		assert.equal([...times.keys()].filter((id) => !jobs.some((j) => j[0] === id)).length, 0,
			'a command began that no row knows of');
		assert.ok(times.size > least / 2, `the witness saw ${times.size} commands`);
	});

	test('one idempotency key means one job that began', () => {
		for (const [call, began] of stage.witness.calls) assert.equal(began.size, 1, call);
		const answered = new Set(stage.load.calls.flatMap((call) => call.jobs).map(idHex));
		// A job nobody got an answer about never began: its key was free for the next try.
		for (const [id, , outcome] of jobs.filter((j) => !answered.has(`x'${j[0]}'`)))
			assert.equal(outcome, 'not_started', id);
	});

	test('the result of every job can be picked up by its id', async () => {
		for (const call of stage.load.calls) {
			const [id] = call.jobs;
			if (!id) continue;
			const job = await stage.client.get(id, { wait_s: 0 });
			assert.equal(job.state, 'ended', JSON.stringify(job));
			if (!['succeeded', 'failed'].includes(job.outcome)) continue;
			if (call.kind.outcome) assert.equal(job.outcome, call.kind.outcome, JSON.stringify(job));
			assert.equal(job.exit_code, job.outcome === 'failed' ? 7 : 0);
			assert.equal(job.stdout, `kept-${id.slice(4)}\n`);
		}
	});

	test('no sandbox, process, cgroup or mount is left, and the rows say so', async () => {
		await until('every sandbox row is settled', async () =>
			(await sql("SELECT COUNT(*) FROM sandbox WHERE state NOT IN ('stopped', 'absent')"))[0][0] === '0',
		PATIENCE_MS);
		assert.deepEqual((await sandboxes(stage.runner)).filter((id) => id.startsWith(stage.prefix)), []);
		await until('nothing is left of the boxes', () => {
			const { groups, processes } = leftovers(stage.prefix);
			if (groups.length || processes.length) throw new Error(JSON.stringify({ groups, processes }));
			return true;
		});
		assert.deepEqual(mounts(), stage.mounts);
	});
}
