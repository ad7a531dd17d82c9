// Callers that never stop: each one runs a short job under an idempotency key of its own, repeats the
// call until it has an answer that counts, and follows the job to its end.

import { randomUUID } from 'node:crypto';
import { pause } from '../lib/wait.mjs';

const COMMANDS = [
	{ tail: 'sleep 0.2; echo kept-$SBX_JOB', outcome: 'succeeded' },
	{ tail: 'echo kept-$SBX_JOB; exit 7', outcome: 'failed' },
	{ tail: 'echo kept-$SBX_JOB; sleep 1', outcome: 'succeeded' },
	{ tail: 'echo kept-$SBX_JOB; sleep 30', cancel: true },
];

export class Load {
	calls = [];
	stopping = false;
	odd = []; // answers that nobody may get

	constructor(client, witness) {
		this.client = client;
		this.witness = witness;
	}

	start(callers) {
		this.callers = Array.from({ length: callers }, () => this.#caller());
	}

	async stop() {
		this.stopping = true;
		await Promise.all(this.callers);
	}

	async #caller() {
		while (!this.stopping) {
			const kind = COMMANDS[this.calls.length % COMMANDS.length];
			const call = { name: `c${this.calls.length}`, key: randomUUID(), kind, jobs: [] };
			this.calls.push(call);
			await this.#run(call);
		}
	}

	/** Repeats one REST call until its answer is neither a broken connection nor a "come again". */
	async #ask(tool, args) {
		for (;;) {
			try {
				const reply = await this.client.rest(tool, args, { signal: AbortSignal.timeout(60000) });
				if (reply.status === 200) return reply.json;
				const { code } = reply.json ?? {};
				if (![502, 503, 504].includes(reply.status))
					this.odd.push(`${tool}: ${reply.status} ${reply.text.slice(0, 300)}`);
				else if (reply.json && !code)
					this.odd.push(`${tool}: ${reply.status} without a code: ${reply.text.slice(0, 300)}`);
			} catch (error) {
				if (!['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'UND_ERR_SOCKET'].includes(error.code)
					&& error.name !== 'TimeoutError' && error.name !== 'AbortError')
					this.odd.push(`${tool}: ${error.stack}`);
			}
			await pause(100);
		}
	}

	async #run(call) {
		const wait = Math.random() < 0.4 && !call.kind.cancel;
		const job = await this.#ask('run_job', {
			cmd: `${this.witness.line(call.name)}; ${call.kind.tail}`,
			timeout_s: 120, key: 'delayed', idempotency_key: call.key, wait_s: wait ? 10 : 0,
		});
		call.jobs.push(job.job_id);
		if (call.kind.cancel) {
			await pause(Math.random() * 2500);
			await this.#ask('cancel_job', { job_id: job.job_id, wait_s: 0 });
		}
		// The last word comes at the end, when everything is quiet; here the caller only paces itself.
		for (let i = 0; i < 10; i++) {
			const seen = await this.#ask('get_job', { job_id: job.job_id, wait_s: 5 });
			if (seen.state === 'ended' || this.stopping) break;
		}
	}
}
