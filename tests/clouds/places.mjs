// Where jobs run, as the conformance list sees it: the same words for a runner behind the fault proxy and
// for every simulator of a cloud.
//
//   const place = await open('e2b');
//   await place.use();                       // the connector talks to it from now on (restarts it)
//   const way = await place.way(client);     // one case's own jobs; way.key is the saved key to name
//   const job = await way.job({ cmd: 'true' });
//   way.rule('put', 'cut', { times: 1 });    // spoils this case's requests only
//   way.count('put'); await way.living();    // what the provider saw of it, and what lives there still
//   await place.close();
//
// The requests of one case are told from those of others by the mark in its create request, and later by
// the id of the sandbox that came of it; so creates are asked for one after another.

import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { allowOrigins, useSimulators } from '../lib/instance.mjs';
import { proxyHub } from '../lib/proxy.mjs';
import { sandboxes, startRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';

const MARK = /cc-[a-z2-7]{6}-[a-z2-7]{26}/;
const OURS = 'x-of-the-test'; // requests that the test itself makes are no part of any case

const heads = (req) => `${req.method} ${req.url}\n${JSON.stringify(req.headers)}`;

/** What both kinds have in common: requests, whose they are, and how to repeat one by hand. */
export class Place {
	samples = {}; // the first good request of an operation: { method, url, headers, body, mark, id }
	strays = []; // a secret that stood where it does not belong
	secrets = new Set(); // of callers and of other providers

	constructor(name) {
		this.name = name;
		this.provider = name;
	}

	/** Looks at a request before any rule does. */
	note(way, op, req) {
		if (way && (op === 'create' || op === 'destroy'))
			this.samples[op] ??= { method: req.method, url: req.url, headers: { ...req.headers },
				body: Buffer.from(req.body ?? ''), mark: MARK.exec(`${req.url}${req.body}`)?.[0], id: req.box };
		this.#guard(op, req);
		way?.seen.push({ op, method: req.method, url: req.url, connection: req.socket,
			body: op === 'create' ? `${req.body}` : undefined });
	}

	/** The key stands in one header and nowhere else; what callers hold stands nowhere. */
	#guard(op, req) {
		const { authorization, 'x-api-key': api, ...others } = req.headers;
		const all = Buffer.concat([Buffer.from(`${req.url}\n${JSON.stringify(others)}\n`), req.body ?? Buffer.alloc(0)]);
		for (const secret of this.secrets)
			if (all.includes(secret) || `${authorization}${api}`.includes(secret)) this.strays.push(`${op}: a foreign secret`);
		if (this.token && all.includes(this.token)) this.strays.push(`${op}: the key outside its header`);
	}

	/** One request by hand; `change` maps the texts of the sample to those of now. */
	async repeat(op, change) {
		const { method, url, headers, body } = this.samples[op];
		const swap = (text) => Object.entries(change).reduce((t, [from, to]) => t.replaceAll(from, to), text);
		const sent = swap(body.toString('latin1'));
		const changed = Object.fromEntries(Object.entries(headers)
			.filter(([name]) => !['content-length', 'transfer-encoding', 'expect', 'connection'].includes(name))
			.map(([name, value]) => [name, swap(value)]));
		const target = new URL(swap(url), this.origin);
		const { request } = target.protocol === 'https:' ? https : http;
		return new Promise((resolve, reject) => {
			const req = request(target, { method, agent: false, rejectUnauthorized: false,
				headers: { ...changed, [OURS]: '1', 'content-length': Buffer.byteLength(sent, 'latin1') } }, async (res) => {
				const parts = [];
				for await (const part of res) parts.push(part);
				resolve({ status: res.statusCode, text: Buffer.concat(parts).toString() });
			});
			req.on('error', reject);
			req.end(Buffer.from(sent, 'latin1'));
		});
	}

	/** A sandbox of this mark that no job asked for; gives its id. */
	async plant(mark) {
		const reply = await this.repeat('create', { [this.samples.create.mark]: mark });
		if (reply.status > 299) throw new Error(`not planted: ${reply.status} ${reply.text}`);
		return until('it is there', async () => (await this.boxes()).find((box) => box.mark === mark)?.id);
	}

	/** Ends a sandbox behind the connector's back, as its owner might. */
	async vanish(id) {
		const sample = this.samples.destroy;
		const now = (await this.boxes()).find((box) => box.id === id);
		const reply = await this.repeat('destroy', { ...(sample.id && { [sample.id]: id }),
			...(sample.mark && { [sample.mark]: now?.mark ?? id }) });
		if (reply.status > 299) throw new Error(`not ended: ${reply.status} ${reply.text}`);
	}
}

/** One case's part of a place. */
export class Way {
	marks = new Set();
	seen = [];
	gone = [];

	constructor(place, key, client) {
		Object.assign(this, { place, key, client });
	}

	count(op) {
		return this.seen.filter((entry) => entry.op === op).length;
	}

	/** Begins a job here and gives its first view, or the refusal. */
	begin(args, options) {
		return this.place.submit(this, () => this.client.rest('run_job', { key: this.key, ...this.place.extra, ...args, wait_s: 0 }, options));
	}

	/** Runs a job to its end. */
	async job(args, wait_s = 200) {
		const job = await this.start(args);
		return this.client.get(job.job_id, { wait_s, base64_output: args.base64_output ?? false });
	}

	/** The same without waiting for it. */
	async start(args) {
		const reply = await this.begin(args);
		if (reply.status !== 200) throw new Error(`run_job: ${reply.status} ${reply.text}`);
		return reply.json;
	}

	async boxes() {
		return (await this.place.boxes()).filter((box) => this.marks.has(box.mark));
	}

	async living() {
		return (await this.boxes()).filter((box) => box.ended === undefined);
	}
}

// ---- the user's own computer ---------------------------------------------------------------------

const LANE_OPS = [
	['create', 'POST', /\/sandboxes$/],
	['put', 'PUT', /\/file\?/],
	['exec', 'POST', /\/exec$/],
	['exec', 'GET', /\/exec\//],
	['destroy', 'DELETE', /\/sandboxes\/[^/]+$/],
	['list', 'GET', /\/sandboxes\?/],
	['find', 'GET', /\/sandboxes\/[^/]+$/],
	['check', 'GET', /\/(health|sandboxes)$/],
];

const laneOp = (req) => LANE_OPS.find(([, method, path]) => method === req.method && path.test(req.url))?.[0];

/** A runner behind a lane of the fault proxy, with the members of a simulator. */
async function runnerPlace() {
	const runner = await startRunner({ args: ['--network', 'host', '--memory', '256', '--disk', '512',
		'--max-sandboxes', '200'] });
	const hub = await proxyHub();
	const lane = hub.lane(runner.url);
	return Object.assign(lane, {
		opOf: laneOp,
		hub,
		credential: { token: runner.token, bridge_url: lane.url },
		// A runner tells of the living only; their ids are our marks.
		boxes: async () => (await sandboxes(runner)).map((id) => ({ id, mark: id, state: 'running' })),
		stop: async () => {
			await runner.stop(); // before the hub, which keeps this process waiting for it
			await hub.stop();
		},
	});
}

// ---- a cloud -------------------------------------------------------------------------------------

// How the plan of a simulator says how long a sandbox may live at most; Daytona's has no such limit.
const LIFE = { vercel: (plan, s) => Object.assign(plan, { maxLifeMs: s * 1000 }),
	e2b: (plan, s) => Object.assign(plan, { lifeS: s }) };

// [Requests about a sandbox besides its polls, requests of one poll, requests that name no sandbox] of a job,
// where that is not one request for each operation.
// Modal's app and image are asked for once by each process (three requests).
const TRIPS = { modal: [9, 3, 1, 4], 'modal-gpu': [11, 3, 1, 4], workers: [4, 1, 1], 'workers-vendor': [5, 1, 1] };

// Jobs that ask for something besides, which is another way through the same simulator.
const EXTRA = { 'modal-gpu': ['modal', { gpu: 'T4' }] };

class Cloud extends Place {
	#ids = new Map(); // sandbox id -> mark
	#ways = new Map(); // mark -> way
	#queue = Promise.resolve();
	#expecting;

	static async open(name) {
		const [like, extra] = EXTRA[name] ?? [name, {}];
		const [folder, dialect] = name === 'workers-vendor' ? ['workers', 'vendor'] : [like];
		const start = name === 'tunnel' ? runnerPlace : (await import(`../simulators/${folder}/index.mjs`)).start;
		const place = new Cloud(name);
		place.sim = await start({ dialect });
		// A bridge is saved under the name of what stands behind it.
		place.provider = place.sim.providerName ?? like;
		place.extra = extra;
		place.origin = place.sim.target ?? place.sim.url;
		place.token = place.sim.credential.token;
		place.trips = TRIPS[name];
		place.limitLife = LIFE[name] && ((seconds) => {
			const before = { ...place.sim.plan };
			LIFE[name](place.sim.plan, seconds);
			return () => Object.assign(place.sim.plan, before);
		});
		const take = place.sim.take.bind(place.sim);
		place.sim.take = (req) => (req.headers[OURS] ? undefined : place.#look(req, take));
		return place;
	}

	use() {
		return this.sim.hub ? allowOrigins([this.sim.hub.url]) : useSimulators({ [EXTRA[this.name]?.[0] ?? this.name]: this.sim });
	}

	#look(req, take) {
		req.op ??= this.sim.opOf(req);
		req.way = this.#wayOf(req);
		this.note(req.way, req.op, req);
		return take(req);
	}

	#wayOf(req) {
		const mark = this.sim.markOf?.(req) || MARK.exec(`${req.url}\n${req.op === 'create' ? req.body : ''}`)?.[0];
		if (mark && req.op === 'create' && !this.#ways.has(mark) && this.#expecting) {
			this.#ways.set(mark, this.#expecting);
			this.#expecting.marks.add(mark);
		}
		// Its id may be another text than the mark that it was told by; vanish() repeats this request.
		if (mark && req.op === 'destroy' && !this.sim.hub) req.box = this.sim.boxes().find((box) => box.mark === mark)?.id;
		return this.#ways.get(mark ?? this.#markIn(req));
	}

	/** The mark of the sandbox whose id stands in a request. */
	#markIn(req) {
		const text = heads(req);
		const known = () => [...this.#ids.keys()].find((id) => text.includes(id));
		let id = known();
		if (!id && !this.sim.hub) {
			for (const box of this.sim.boxes()) this.#ids.set(box.id, box.mark);
			id = known();
		}
		req.box = id;
		return this.#ids.get(id);
	}

	async way(client) {
		if (!client.saved) client.saved = this.save(client, this.name);
		const saved = await client.saved;
		if (saved.status !== 200) throw new Error(`not saved: ${saved.text}`);
		const way = new Way(this, this.name, client);
		const rules = [];
		way.rule = (op, act, more) => {
			const rule = this.sim.rule({ op, when: (req) => req.way === way }, act, more);
			rules.push(rule);
			return rule;
		};
		way.clear = () => rules.splice(0).forEach((rule) => rule.release());
		return way;
	}

	/** A rule for requests that belong to no job. */
	spoil(way, op, act, more) {
		return this.sim.rule({ op }, act, more);
	}

	save(client, name, more = {}) {
		return client.rest('save_provider_key', { provider: this.provider, name, ...this.sim.credential, ...more });
	}

	/** One create at a time, so that it is known whose it is. */
	submit(way, fn) {
		const turn = this.#queue.then(async () => {
			const before = way.marks.size;
			let looks = 0;
			this.#expecting = way;
			const reply = await fn();
			// Now and then it is asked whether the job has ended without one.
			if (reply.status === 200)
				await until('its sandbox was asked for', async () => way.marks.size > before || (++looks % 20 === 0
					&& (await way.client.get(reply.json.job_id, { wait_s: 0 })).state === 'ended'));
			this.#expecting = undefined;
			return reply;
		});
		this.#queue = turn.catch(() => {
			this.#expecting = undefined;
		});
		return turn;
	}

	async boxes() {
		return this.sim.boxes();
	}

	creating() {
		return this.sim.creating();
	}

	/** Where a request can not be repeated by hand the simulator does it itself. */
	plant(mark) {
		return this.sim.plant ? this.sim.plant(mark) : super.plant(mark);
	}

	async vanish(id) {
		return this.sim.vanish ? this.sim.vanish(id) : super.vanish(id);
	}

	close() {
		return this.sim.stop();
	}
}

export const SIMULATED = ['vercel', 'e2b', 'daytona', 'modal'].filter((name) =>
	fs.existsSync(new URL(`../simulators/${name}/`, import.meta.url)));

export const open = (name) => Cloud.open(name);
