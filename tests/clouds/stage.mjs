// What every file of the list works with: an account, its jobs as the database knows them, and what must
// be true of each of them.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { assertEnded } from '../jobs/stage.mjs';
import { hurried } from '../lib/hurry.mjs';
import { account, idHex, sql, sqlOne, state } from '../lib/instance.mjs';
import { pause, until } from '../lib/wait.mjs';

export { assertEnded };

export const LEAK = 'a-text-from-the-provider-7f3a'; // stands in spoilt replies, and in no answer of ours
const PATIENCE_MS = 100000;
const LOOK_MS = 150;
const IDLE_MS = 20000;
const CONNECTOR_LOG = path.join(state, 'log', 'connector.log');

export class Stage {
	#agent = new https.Agent({ keepAlive: true, timeout: IDLE_MS }); // nginx keeps idle connections for longer
	jobs = new Set(); // ids of all jobs that were seen to end
	hindered = new Set(); // marks of sandboxes whose stop a rule held back

	/** `place` is where the jobs run; `trouble` false: a real service, which nobody spoils. */
	constructor(place, { trouble = true } = {}) {
		this.place = place;
		this.trouble = trouble;
	}

	async start() {
		this.began = Date.now();
		await this.place.use();
		this.log = fs.statSync(CONNECTOR_LOG).size;
		this.client = await this.newClient();
	}

	async newClient() {
		const client = await account('pro');
		client.agent = this.#agent;
		this.place.secrets.add(client.key);
		return client;
	}

	async stop() {
		this.#agent.destroy();
		await this.place.close();
	}

	way(client = this.client) {
		return this.place.way(client);
	}

	/** [state, provider_id, mark] of a job's sandboxes. */
	sandboxes(job) {
		return sql(`SELECT state, provider_id, mark FROM sandbox WHERE job = ${idHex(job.job_id)} ORDER BY attempt`);
	}

	/** Spares the two minutes that a lost create is looked for, unless one is under way that may still come. */
	async hurry(which) {
		if (!this.place.creating()) await sql(hurried(which));
	}

	/** Until every sandbox of the job is proven to be stopped or never to have been. */
	settled(job) {
		return until(`the sandboxes of ${job.job_id} are stopped or absent`, async () => {
			await this.hurry(`job = ${idHex(job.job_id)}`);
			const states = (await this.sandboxes(job)).map(([s]) => s);
			if (states.every((s) => ['stopped', 'absent'].includes(s))) return true;
			await pause(LOOK_MS); // many wait here, and few of them for long
			return { missing: states };
		}, PATIENCE_MS);
	}

	/** The job is running, by what the database says. */
	runs(job) {
		return this.is(job, 'running');
	}

	is(job, wanted) {
		return until(`it is ${wanted}`, async () =>
			await sqlOne(`SELECT state FROM job WHERE id = ${idHex(job.job_id)}`) === wanted);
	}

	/** Waits for the end and says that it is this one; then nothing of the job is left. */
	async ends(job, outcome) {
		const done = await this.end(job);
		assertEnded(done, outcome);
		return done;
	}

	async end(job, client = this.client) {
		const done = await until(`${job.job_id} ends`, async () => {
			const seen = await client.get(job.job_id, { wait_s: 100 });
			return seen.state === 'ended' && seen;
		}, 200000);
		return this.judge(done);
	}

	/** What is true of every ended job. */
	judge(done) {
		assert.ok(!JSON.stringify(done).includes(LEAK), 'no text of the provider is shown');
		this.jobs.add(done.job_id);
		return done;
	}

	/** Of what the connector logged since the start. */
	logged(word) {
		return fs.readFileSync(CONNECTOR_LOG).subarray(this.log).toString().split(word).length - 1;
	}

	/** How many processes of the job's command there are on this machine: all simulated sandboxes are here. */
	processesOf(job) {
		const mark = Buffer.from(`SBX_JOB=${job.job_id.replace(/^job_/, '')}\0`);
		return fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
			try {
				return fs.readFileSync(`/proc/${pid}/environ`).includes(mark);
			} catch {
				return false;
			}
		}).length;
	}

	end_ms(jobId) {
		return sqlOne(`SELECT ended_at FROM job WHERE id = ${idHex(jobId)}`).then(Number);
	}
}
