// The control plane: keys, sandboxes by id, lists in pages, the plan's limits.

import { randomBytes } from 'node:crypto';
import { Box } from './sandbox.mjs';

const SECONDS = { v1: 15, v2: 300 }; // default life of a sandbox
const REFRESH_MAX_S = 3600;

const wrong = (status, message, headers = {}) => ({ status, headers, body: { code: status, message } });
const empty = () => ({ status: 204 });
const noBox = (id) => wrong(404, `Sandbox "${id}" doesn't exist or you don't have access to it`);

/** The filter is encoded once as a query, once as a whole, and once for each key and value. */
function filterOf(text) {
	if (!text) return [];
	return decodeURIComponent(text).split('&').map((pair) => pair.split('=').map(decodeURIComponent));
}

export class Control {
	all = new Map();
	snapshots = new Map();
	plan = { lifeS: 86400, concurrency: 2000, rate: Infinity, page: 2 };
	templates = new Map([['base', 'base'], ['code-interpreter-v1', 'nlhz8vlwyupq845jsdg9']]);
	#recent = [];

	constructor(place, options) {
		this.place = place;
		this.options = options;
	}

	living(id) {
		const box = this.all.get(id);
		return box && box.state !== 'ended' ? box : undefined;
	}

	boxes() {
		return [...this.all.values()].map((box) => ({
			id: box.id, mark: box.metadata.mark, state: box.state === 'ended' ? 'stopped' : 'running',
			started: box.startedAt, ended: box.endedAt, billedMs: box.billedMs(),
		}));
	}

	stop() {
		for (const box of this.all.values()) box.end();
	}

	/** Who asks, before what is asked. */
	#refuse(req) {
		const key = req.headers['x-api-key'] ?? '';
		if (key !== this.options.key) {
			const why = /^e2b_[0-9a-f]{40}$/.test(key) ? 'The key is not known.' : 'The key has a wrong format.';
			return wrong(401, 'Invalid API key, please visit https://e2b.dev/docs/api-key for more information.\n'
				+ why);
		}
		if (this.place.blocked) return wrong(403, this.place.blocked);
		const now = Date.now();
		this.#recent = this.#recent.filter((at) => now - at < 1000);
		if (this.#recent.length >= this.plan.rate)
			return wrong(429, 'Rate limit exceeded', { 'retry-after': '1', 'ratelimit-remaining': '0' });
		this.#recent.push(now);
		return undefined;
	}

	answer(req) {
		const refused = this.#refuse(req);
		if (refused) return refused;
		const v2 = req.path.startsWith('/v2/');
		if (v2 && this.options.onlyV1) return wrong(404, 'no matching operation was found');
		const [, what, id, verb] = req.path.replace(/^\/v2/, '').split('/');
		if (what === 'snapshots' && req.method === 'GET') return this.#listSnapshots(req);
		if (what === 'templates' && req.method === 'DELETE') return this.#dropSnapshot(decodeURIComponent(id));
		if (what !== 'sandboxes') return wrong(404, 'no matching operation was found');
		if (!id) return req.method === 'POST' ? this.#create(req, v2) : this.#list(req, v2);
		const box = this.living(id);
		return box ? this.#one(box, req, verb) : noBox(id);
	}

	#one(box, req, verb) {
		if (!verb && req.method === 'GET') return { status: 200, body: box.view() };
		if (!verb && req.method === 'DELETE') return box.end() ?? empty();
		const body = req.body.length ? JSON.parse(req.body) : {};
		const verbs = { timeout: this.#timeout, refreshes: this.#refresh, connect: this.#connect,
			pause: this.#pause, snapshots: this.#snapshot };
		if (req.method !== 'POST' || !verbs[verb]) return wrong(404, 'no matching operation was found');
		return verbs[verb].call(this, box, body);
	}

	#badLife(seconds) {
		if (!Number.isInteger(seconds)) return wrong(400, 'validation error: timeout must be an integer');
		if (seconds <= 0) return wrong(400, 'Timeout must be greater than 0');
		if (seconds > this.plan.lifeS)
			return wrong(400, `Timeout cannot be greater than ${this.plan.lifeS / 3600} hours`);
		return undefined;
	}

	#running() {
		return [...this.all.values()].filter((box) => box.state === 'running').length;
	}

	#badCreate(ask) {
		if (typeof ask.templateID !== 'string') return wrong(400, 'validation error: templateID is missing');
		const strings = Object.values(ask.metadata ?? {}).every((value) => typeof value === 'string');
		if (!strings) return wrong(400, 'validation error: metadata must hold strings');
		if (!this.templates.has(ask.templateID) && !this.snapshots.has(ask.templateID))
			return wrong(404, `template '${ask.templateID}' not found`);
		if (this.#running() >= this.plan.concurrency)
			return wrong(429, 'you have reached the maximum number of concurrent E2B sandboxes '
				+ `(${this.plan.concurrency})`);
		return undefined;
	}

	async #create(req, v2) {
		let ask;
		try {
			ask = JSON.parse(req.body);
		} catch {
			return wrong(400, 'validation error: the body is no JSON');
		}
		const seconds = ask.timeout ?? (v2 ? SECONDS.v2 : SECONDS.v1);
		const bad = this.#badLife(seconds) ?? this.#badCreate(ask);
		if (bad) return bad;
		const secure = v2 || ask.secure === true;
		const box = await this.#make(ask, seconds, secure);
		for (; this.place.twins > 0; this.place.twins -= 1) await this.#make(ask, seconds, secure);
		return { status: 201, body: box.made() };
	}

	async #make(ask, seconds, secure) {
		const box = new Box(ask, {
			id: `i${randomBytes(10).toString('hex').slice(0, 19)}`,
			token: secure ? randomBytes(24).toString('base64url') : undefined,
			template: this.snapshots.get(ask.templateID)?.templateID ?? this.templates.get(ask.templateID),
			daemon: this.options.daemon, domain: this.options.domain,
		});
		this.all.set(box.id, box);
		await box.boot(this.snapshots.get(ask.templateID)?.dir);
		box.liveFor(seconds);
		return box;
	}

	#list(req, v2) {
		const states = (req.query.get('state') ?? 'running').split(',');
		const filter = filterOf(req.query.get('metadata'));
		const fits = (box) => states.includes(box.state)
			&& filter.every(([key, value]) => box.metadata[key] === value)
			&& (!req.query.get('template') || box.templateID === req.query.get('template'));
		const found = [...this.all.values()].filter(fits);
		if (req.query.get('order') !== 'asc') found.reverse();
		if (!v2) return { status: 200, body: found.map((box) => box.view()) };
		const after = Number(req.query.get('nextToken') ?? 0);
		const rows = Math.min(Number(req.query.get('limit') ?? 100), this.plan.page);
		const headers = { 'x-total-running': String(this.#running()) };
		if (after + rows < found.length) headers['x-next-token'] = String(after + rows);
		const page = found.slice(after, after + rows).map((box) => {
			const { envdAccessToken, ...view } = box.view(); // a list never tells it
			return view;
		});
		return { status: 200, headers, body: page };
	}

	#timeout(box, { timeout }) {
		if (box.state !== 'running') return wrong(409, 'The sandbox is paused');
		if (timeout !== 0 && this.#badLife(timeout)) return this.#badLife(timeout);
		if (Date.now() + timeout * 1000 - box.startedAt > this.plan.lifeS * 1000)
			return wrong(400, 'Max instance length exceeded');
		box.liveFor(timeout);
		return empty();
	}

	#refresh(box, { duration }) {
		if (!(duration >= 0 && duration <= REFRESH_MAX_S)) return wrong(400, 'validation error: duration');
		if (Date.now() + duration * 1000 > box.endAt) box.liveFor(duration);
		return empty();
	}

	#connect(box, { timeout = SECONDS.v2 }) {
		const bad = this.#badLife(timeout);
		if (bad) return bad;
		const resumed = box.resume();
		if (resumed || Date.now() + timeout * 1000 > box.endAt) box.liveFor(timeout);
		return { status: resumed ? 201 : 200, body: box.made() };
	}

	#pause(box) {
		return box.pause() ? empty() : wrong(409, 'The sandbox is already paused');
	}

	#snapshot(box, { name }) {
		const snapshotID = `snap-${randomBytes(6).toString('hex')}`;
		this.snapshots.set(snapshotID, { ...box.save(), templateID: box.templateID, names: name ? [name] : [] });
		return { status: 201, body: { snapshotID, names: name ? [name] : [] } };
	}

	#listSnapshots(req) {
		const of = req.query.get('sandboxID');
		const found = [...this.snapshots].filter(([, one]) => !of || one.sandboxID === of);
		return { status: 200, body: found.map(([snapshotID, { names }]) => ({ snapshotID, names })) };
	}

	#dropSnapshot(id) {
		return this.snapshots.delete(id) ? empty() : wrong(404, 'no such snapshot');
	}
}
