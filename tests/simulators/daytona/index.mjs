// Daytona's classic API: control plane under /api, the sandboxes' own daemon under /toolbox/ID. Sandboxes are
// real machines (../guest.mjs) with states, clocks and a bill.
//
//   const place = await start({ plan: { startMs: 300 } });   // members: see Plan below
//   place.boxes()                                            // what exists and what it cost
//   place.box(mark)                                          // a Sandbox (sandbox.mjs), to break it
//
// Faults besides the rules of trouble: place.plan and the members of a Sandbox.

import { WebSocketServer } from 'ws';
import { serve } from '../lib.mjs';
import { Refusal, Sandbox, transitional } from './sandbox.mjs';
import { toolbox } from './toolbox.mjs';
import { follow } from './session.mjs';
import { openPty } from './pty.mjs';
import { interpret } from './interpreter.mjs';

const TICK_MS = 50;
const KEY = 'dtn_0123456789abcdef0123456789abcdef0123456789abcdef';

/** What the provider allows and how it behaves; tests change the members. */
class Plan {
	minuteMs = 60000; // length of a minute of its timers
	startMs = 0; // so long a new sandbox stays "creating"; 0: the answer already says "started"
	stopMs = 100; // so long it is "stopping" or "destroying"
	failStart = ''; // errorReason: new sandboxes end in state "error"
	ttl = true; // false: ttlMinutes is ignored, as by an older server
	list = 'pages'; // 'array': the form of older servers
	pageSize = 3; // most items of a page, whatever is asked for
	boxes = Infinity; // more at once: the organisation's quota is used up
	createsPerMinute = Infinity;
	permissions = ['write:sandboxes', 'delete:sandboxes', 'write:snapshots'];
	expired = false;
	suspended = false;
	keys = true; // false: a server without /api-keys/current
	snapshots = ['daytona-small', 'daytona-medium'];
	daemon = true; // false: new sandboxes have a dead daemon
	toolbox = ''; // the address that new sandboxes tell, if not the true one
}

const control = (req, status, error, message, headers = {}) => ({ status, headers,
	body: { path: req.path, timestamp: new Date().toISOString(), statusCode: status, error, message } });

class Daytona {
	constructor(options) {
		this.plan = Object.assign(new Plan(), options.plan);
		this.key = options.key ?? KEY;
		this.all = new Map(); // by id
		this.creates = [];
		this.sockets = new WebSocketServer({ noServer: true,
			handleProtocols: (offered) => [...offered].find((p) => p.startsWith('X-Daytona-Pty')) ?? false });
		this.timer = setInterval(() => this.tick(), TICK_MS);
		this.timer.unref();
	}

	tick() {
		for (const box of this.all.values()) box.tick(this.plan);
	}

	find(idOrName) {
		const box = this.all.get(idOrName) ?? [...this.all.values()].find((b) => b.name === idOrName);
		return box && box.state !== 'destroyed' ? box : undefined;
	}

	authorised(req) {
		return req.headers.authorization === `Bearer ${this.key}`;
	}

	/** What stands in the way of every request with this key, or undefined. */
	barred(req, right) {
		const { plan } = this;
		if (!this.authorised(req)) return control(req, 401, 'Unauthorized', 'Invalid credentials');
		if (plan.expired) return control(req, 401, 'Unauthorized', 'This API key has expired');
		if (right && plan.suspended)
			return control(req, 403, 'Forbidden', 'Organization is suspended: payment method required');
		if (right && !plan.permissions.includes(right))
			return control(req, 403, 'Forbidden', 'Insufficient permissions');
		return undefined;
	}

	keyInfo(req) {
		if (!this.plan.keys) return control(req, 404, 'Not Found', 'Cannot GET /api/api-keys/current');
		return { status: 200, body: { name: 'test', value: 'dtn_********cdef', permissions: this.plan.permissions,
			createdAt: '2026-01-01T00:00:00.000Z', lastUsedAt: null, expiresAt: null, userId: 'user' } };
	}

	/** Why a sandbox of this form is not made; undefined: it is. */
	refused(req, ask) {
		const { plan } = this;
		const now = Date.now();
		this.creates = this.creates.filter((at) => now - at < 60000);
		if (this.creates.length >= plan.createsPerMinute)
			return control(req, 429, 'Too Many Requests', 'ThrottlerException: Too Many Requests',
				{ 'retry-after-sandbox-create': '7', 'x-ratelimit-limit-sandbox-create': String(plan.createsPerMinute) });
		if (!ask.buildInfo && (ask.cpu || ask.memory || ask.disk || ask.gpu))
			return control(req, 400, 'Bad Request', 'Cannot specify Sandbox resources when using a snapshot');
		for (const name of ['autoStopInterval', 'autoDeleteInterval', 'ttlMinutes', 'autoArchiveInterval'])
			if (ask[name] !== undefined && !Number.isInteger(ask[name]))
				return control(req, 400, 'Bad Request', [`${name} must be an integer number`]);
		if (ask.snapshot && !plan.snapshots.includes(ask.snapshot))
			return control(req, 400, 'Bad Request', `Snapshot ${ask.snapshot} not found. Did you add it through the Daytona Dashboard?`);
		const living = [...this.all.values()].filter((b) => !['destroying', 'destroyed'].includes(b.state));
		if (living.length >= plan.boxes)
			return control(req, 400, 'Bad Request', `Total CPU quota exceeded. Maximum allowed: ${plan.boxes}.`);
		if (ask.name && living.some((b) => b.name === ask.name))
			return control(req, 409, 'Conflict', `Sandbox with name ${ask.name} already exists`);
		return undefined;
	}

	async create(req) {
		const ask = JSON.parse(req.body);
		const no = this.refused(req, ask);
		if (no) return no;
		this.creates.push(Date.now());
		const box = new Sandbox(ask, this.plan, this.plan.toolbox || `${this.place.url}/toolbox`);
		this.all.set(box.id, box);
		const ready = box.boot(this.plan);
		if (!this.plan.startMs) await ready;
		return { status: 200, body: box.told() };
	}

	list({ query }) {
		const { plan } = this;
		const labels = Object.entries(JSON.parse(query.get('labels') ?? '{}'));
		const starts = (value, key) => !query.get(key) || value.toLowerCase().startsWith(query.get(key).toLowerCase());
		const states = query.getAll('states').flatMap((s) => s.split(','));
		const fits = [...this.all.values()].filter((b) => b.state !== 'destroyed' && starts(b.name, 'name') &&
			starts(b.id, 'id') && labels.every(([k, v]) => b.labels[k] === v) &&
			(!states.length || states.includes(b.state)));
		if (plan.list === 'array') return { status: 200, body: fits.map((b) => b.told()) };
		const at = Number(Buffer.from(query.get('cursor') ?? '', 'base64').toString() || 0);
		const size = Math.min(Number(query.get('limit') ?? 100), plan.pageSize);
		const next = at + size < fits.length ? Buffer.from(`${at + size}`).toString('base64') : null;
		return { status: 200, body: { items: fits.slice(at, at + size).map((b) => b.told()), nextCursor: next } };
	}

	/** Everything about one sandbox; rest is the path behind its name. */
	async one(req, name, rest) {
		const box = this.find(decodeURIComponent(name));
		if (!box) return control(req, 404, 'Not Found', `Sandbox with ID or name ${name} not found`);
		const verb = `${req.method} ${rest[0] ?? ''}`.trim();
		const timers = { autostop: 'autoStopInterval', autodelete: 'autoDeleteInterval', autoarchive: 'autoArchiveInterval' };
		if (verb === 'GET') return { status: 200, body: box.told() };
		if (verb === 'DELETE') {
			box.destroy(this.plan);
			return { status: 200, body: box.told() };
		}
		if (verb === 'POST start') await box.restart(this.plan);
		else if (verb === 'POST stop') box.stop(this.plan);
		else if (verb === 'POST ttl') box.setTtl(Number(rest[1]), this.plan);
		else if (timers[rest[0]] && req.method === 'POST') box[timers[rest[0]]] = Number(rest[1]);
		else if (verb === 'POST last-activity') {
			box.lastActivity = Date.now();
			return { status: 201, body: '' };
		} else if (verb === 'PUT labels') box.labels = { ...JSON.parse(req.body).labels };
		else if (verb === 'GET toolbox-proxy-url') return { status: 200, body: { url: `${this.place.url}/toolbox` } };
		else if (verb === 'GET ports') return { status: 200, body: this.preview(box, rest, req.query) };
		else return control(req, 404, 'Not Found', `Cannot ${req.method} ${req.path}`);
		return { status: 200, body: verb === 'PUT labels' ? { labels: box.labels } : box.told() };
	}

	preview(box, [, port, kind], query) {
		const url = `https://${port}-${box.id}.proxy.simulator.example`;
		if (kind === 'preview-url') return { sandboxId: box.id, url, token: box.previewToken };
		return { sandboxId: box.id, port: Number(port), token: box.previewToken, url: `${url}/?until=${query.get('expiresInSeconds') ?? 60}` };
	}

	async control(req) {
		const [, , first, ...rest] = req.path.split('/');
		if (first === 'config') return { status: 200, body: { proxyToolboxUrl: `${this.place.url}/toolbox`, defaultSnapshot: 'daytona-small' } };
		const right = first !== 'sandbox' || req.method === 'GET' ? '' : req.method === 'DELETE' ? 'delete:sandboxes' : 'write:sandboxes';
		const no = this.barred(req, right);
		if (no) return no;
		if (first === 'api-keys' && rest[0] === 'current') return this.keyInfo(req);
		if (first === 'snapshots' && req.method === 'GET')
			return { status: 200, body: { items: this.plan.snapshots.map((name) => ({ id: name, name, state: 'active' })),
				total: this.plan.snapshots.length, page: 1, totalPages: 1 } };
		if (first !== 'sandbox') return control(req, 404, 'Not Found', `Cannot ${req.method} ${req.path}`);
		if (!rest.length) return req.method === 'POST' ? this.create(req) : this.list(req);
		return this.one(req, rest[0], rest.slice(1));
	}

	/** The sandbox that a request to the toolbox is for; a reply when it can not be had. */
	inside(req) {
		const [, , id, ...rest] = req.path.split('/');
		const fail = (status, message, code) => ({ reply: { status, body: { statusCode: status, message, code,
			timestamp: new Date().toISOString(), path: req.path, method: req.method } } });
		if (!this.authorised(req)) return fail(401, 'unauthorized: invalid credentials', 'UNAUTHORIZED');
		const box = this.all.get(id);
		if (!box || box.state === 'destroyed')
			return fail(400, 'bad request: failed to get runner info: 404 Not Found', 'BAD_REQUEST');
		if (box.state !== 'started' && !box.guest) return fail(400, 'bad request: sandbox is not started', 'BAD_REQUEST');
		if (box.daemonDead) return { reply: { status: 502, body: '' } };
		return { box, rest };
	}

	async answer(req) {
		try {
			if (req.path.startsWith('/api/')) return await this.control(req);
			if (!req.path.startsWith('/toolbox/')) return { status: 404, headers: { 'content-type': 'text/html' }, body: '<h1>not here</h1>' };
			const { reply, box, rest } = this.inside(req);
			return reply ?? await box.active(() => toolbox(req, box, rest));
		} catch (error) {
			if (error instanceof SyntaxError) return control(req, 400, 'Bad Request', error.message);
			if (!(error instanceof Refusal)) throw error;
			return control(req, error.status, error.title, error.message);
		}
	}

	upgrade(req, socket, head) {
		const found = req.path.startsWith('/toolbox/') ? this.inside(req) : {};
		const path = found.rest?.join('/') ?? '';
		const serveIt = path.endsWith('/logs') ? follow : path.startsWith('process/pty/') ? openPty
			: path === 'process/interpreter/execute' ? interpret : undefined;
		if (!found.box || !serveIt) return socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
		return this.sockets.handleUpgrade(req, socket, head, (ws) => serveIt(ws, found.box, found.rest, req.query));
	}
}

const OPS = [
	['GET', /^\/api\/api-keys\/current$/, 'check'],
	['POST', /^\/api\/sandbox$/, 'create'],
	['GET', /^\/api\/sandbox$/, 'list'],
	['GET', /^\/api\/sandbox\/[^/]+$/, 'find'],
	['DELETE', /^\/api\/sandbox\/[^/]+$/, 'destroy'],
	['POST', /^\/toolbox\/[^/]+\/files\/bulk-upload$/, 'put'],
	['POST', /^\/toolbox\/[^/]+\/process\/execute$/, 'exec'],
];

export async function start(options = {}) {
	const daytona = new Daytona(options);
	const place = await serve({
		op: (req) => OPS.find(([method, path]) => method === req.method && path.test(req.path))?.[2] ?? 'other',
		answer: (req) => daytona.answer(req),
		upgrade: (req, socket, head) => daytona.upgrade(req, socket, head),
	});
	daytona.place = place;
	const stop = place.stop.bind(place);
	return Object.assign(place, {
		base: `${place.url}/api`,
		credential: { token: daytona.key },
		plan: daytona.plan,
		boxes: () => [...daytona.all.values()].map((box) => box.bill()),
		box: (mark) => [...daytona.all.values()].find((box) => box.mark === mark || box.id === mark),
		transitional,
		stop: async () => {
			clearInterval(daytona.timer);
			for (const ws of daytona.sockets.clients) ws.terminate();
			for (const box of daytona.all.values()) box.end();
			await stop();
		},
	});
}
