// One sandbox: its machine, its state, its timers and its bill.

import { randomBytes, randomUUID } from 'node:crypto';
import { Guest } from '../guest.mjs';
import { pause } from '../../lib/wait.mjs';

export const HOME = '/home/daytona';

/** States in which nothing else may be asked of a sandbox. */
export const transitional = ['creating', 'starting', 'stopping', 'restoring', 'snapshotting', 'resizing'];

/** A few machines boot at a time: each takes a processor for itself. */
const WIDTH = 4;
const lanes = Array.from({ length: WIDTH }, () => Promise.resolve());
let turn = 0;
function inTurn(work) {
	const lane = turn++ % WIDTH;
	const done = lanes[lane].then(work);
	lanes[lane] = done.catch(() => {});
	return done;
}

/** An error of the control plane. */
export class Refusal extends Error {
	constructor(status, title, message) {
		super(message);
		this.status = status;
		this.title = title;
	}
}

export class Sandbox {
	constructor(ask, plan, toolboxUrl) {
		const now = Date.now();
		this.id = randomUUID();
		this.mark = this.name = ask.name ?? this.id;
		this.labels = { ...ask.labels };
		this.env = { ...ask.env };
		this.snapshot = ask.snapshot ?? 'daytona-small';
		this.networkBlockAll = ask.networkBlockAll ?? false;
		this.autoStopInterval = ask.autoStopInterval ?? 15;
		this.autoDeleteInterval = ask.autoDeleteInterval ?? -1;
		this.autoArchiveInterval = ask.autoArchiveInterval ?? 10080;
		this.toolboxUrl = toolboxUrl;
		this.previewToken = randomBytes(8).toString('hex');
		this.state = 'creating';
		this.first = this.created = this.started = this.lastActivity = now;
		this.requests = 0;
		this.billedMs = 0;
		this.sessions = new Map();
		this.ptys = new Map();
		this.contexts = new Map();
		this.stuck = false; // deleting is answered 409 for ever
		this.daemonDead = !plan.daemon;
		this.setTtl(plan.ttl ? ask.ttlMinutes ?? 0 : 0, plan);
	}

	/** Anchored to now; 0 switches it off. */
	setTtl(minutes, plan) {
		this.autoDestroyAt = minutes > 0 ? Date.now() + minutes * plan.minuteMs : undefined;
	}

	async boot(plan) {
		await pause(plan.startMs);
		if (plan.failStart) {
			this.#close();
			this.state = 'error';
			this.errorReason = plan.failStart;
			return;
		}
		const guest = await inTurn(() => Guest.start({ home: HOME, env: this.env }));
		if (this.gone) return guest.end();
		this.guest = guest;
		this.state = 'started';
		this.started = this.lastActivity = Date.now();
	}

	/** The meter stops and all processes die; files stay for a restart only in name. */
	#close() {
		if (this.ended) return;
		this.ended = Date.now();
		this.billedMs += this.ended - this.created;
		this.guest?.end();
		this.guest = undefined;
		for (const pty of this.ptys.values()) pty.close();
		this.sessions.clear();
		this.contexts.clear();
	}

	#still() {
		if (this.stuck || transitional.includes(this.state))
			throw new Refusal(409, 'Conflict', 'Sandbox state change in progress');
	}

	async #become(state, plan) {
		await pause(plan.stopMs);
		this.state = state;
		this.since = Date.now();
	}

	stop(plan) {
		this.#still();
		if (this.state !== 'started') throw new Refusal(400, 'Bad Request', 'Sandbox is not started');
		this.#close();
		this.state = 'stopping';
		if (this.autoDeleteInterval === 0) return this.#remove(plan);
		return this.#become('stopped', plan);
	}

	async restart(plan) {
		this.#still();
		if (this.state !== 'stopped') throw new Refusal(400, 'Bad Request', 'Sandbox is not in valid state');
		this.state = 'starting';
		this.ended = undefined;
		this.created = Date.now();
		await this.boot(plan);
	}

	#remove(plan) {
		this.gone = true;
		this.#close();
		this.state = 'destroying';
		this.name = `DESTROYED_${this.name}_${Date.now()}`;
		return this.#become('destroyed', plan);
	}

	destroy(plan) {
		if (this.state === 'destroying') return;
		this.#still();
		void this.#remove(plan);
	}

	/** At the end of the simulator. */
	end() {
		this.gone = true;
		this.#close();
		this.state = 'destroyed';
	}

	/** The provider's own clocks. */
	tick(plan) {
		const now = Date.now();
		if (['destroying', 'destroyed'].includes(this.state)) return;
		if (this.requests) this.lastActivity = now;
		if (this.autoDestroyAt && now >= this.autoDestroyAt) void this.#remove(plan);
		else if (this.state === 'started' && this.autoStopInterval > 0 &&
			now - this.lastActivity >= this.autoStopInterval * plan.minuteMs) void this.stop(plan);
		else if (this.state === 'stopped' && this.autoDeleteInterval >= 0 &&
			now - this.since >= this.autoDeleteInterval * plan.minuteMs) void this.#remove(plan);
	}

	/** An open request keeps a sandbox from being idle; a running process does not. */
	async active(work) {
		this.requests += 1;
		this.lastActivity = Date.now();
		try {
			return await work();
		} finally {
			this.requests -= 1;
		}
	}

	bill() {
		const billed = this.ended ? this.billedMs : this.billedMs + Date.now() - this.created;
		return { id: this.id, mark: this.mark, state: this.ended ? 'stopped' : 'running', started: this.first,
			ended: this.ended, billedMs: billed };
	}

	/** The object that the API shows. */
	told() {
		const iso = (ms) => new Date(ms).toISOString();
		return {
			id: this.id, organizationId: 'organisation', name: this.name, snapshot: this.snapshot, user: 'daytona',
			env: this.env, labels: this.labels, public: false, networkBlockAll: this.networkBlockAll, target: 'us',
			cpu: 1, gpu: 0, memory: 1, disk: 3, state: this.state,
			desiredState: this.gone ? 'destroyed' : 'started', errorReason: this.errorReason,
			autoStopInterval: this.autoStopInterval, autoArchiveInterval: this.autoArchiveInterval,
			autoDeleteInterval: this.autoDeleteInterval,
			autoDestroyAt: this.autoDestroyAt ? iso(this.autoDestroyAt) : undefined,
			createdAt: iso(this.created), updatedAt: iso(Date.now()), lastActivityAt: iso(this.lastActivity),
			sandboxClass: 'container', daemonVersion: '0.190.0', toolboxProxyUrl: this.toolboxUrl,
		};
	}
}
