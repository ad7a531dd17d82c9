// A simulator of Vercel Sandbox: real processes and files, the service's own paths and errors. lib.mjs tells
// what a simulator offers; this one has besides:
//
//   credential   { token, team_id, project_id }
//   plan         { maxLifeMs, concurrency, rate (starts a minute), vcpus, page, unpaid }
//   boxes()      every sandbox ever made, with its billed time
//   snapshots()  what would be billed as storage
//   told(mark)   a sandbox as the service tells of it; expire(mark) ends its machine as its time would

import { serve } from '../lib.mjs';
import { Cloud, snapshotJson } from './cloud.mjs';
import { badRequest, notFound, Refusal } from './errors.mjs';
import * as files from './files.mjs';
import { Terminals } from './pty.mjs';

const NDJSON = { 'content-type': 'application/x-ndjson' };
const LONGEST_MS = 24 * 3600 * 1000;

const line = (object) => `${JSON.stringify(object)}\n`;

function parsed(req) {
	try {
		return req.body.length ? JSON.parse(req.body.toString()) : {};
	} catch {
		throw badRequest('Invalid JSON.');
	}
}

/** A page of a list: { [key]: [...], pagination }. */
function page(key, all, req, plan) {
	const limit = Math.min(Number(req.query.get('limit') ?? 20), plan.page);
	const from = Number(req.query.get('cursor') ?? 0);
	if (!(limit >= 1) || !Number.isInteger(from)) throw badRequest('Invalid request: `limit` or `cursor`.');
	const items = all.slice(from, from + limit);
	const next = from + limit < all.length ? String(from + limit) : null;
	return { [key]: items, pagination: { count: items.length, next } };
}

const orders = {
	createdAt: (a, b) => a.createdAt - b.createdAt,
	statusUpdatedAt: (a, b) => a.updatedAt - b.updatedAt,
	name: (a, b) => (a.name < b.name ? -1 : 1),
};

class Service {
	constructor(credential, plan) {
		this.credential = credential;
		this.plan = plan;
		this.cloud = new Cloud(plan);
		this.terminals = new Terminals(() => this.place.url.replace('https:', 'wss:'));
	}

	authorize(req) {
		const { token, team_id: team, project_id: project } = this.credential;
		if (req.headers.authorization !== `Bearer ${token}`) throw new Refusal(403, 'forbidden', 'Not authorized.');
		if (req.path.endsWith('/v2/user')) return;
		const [, own] = /\/v2\/teams\/([^/]+)$/.exec(req.path) ?? [];
		if (own === team || own === 'the-team') return;
		if (req.query.get('teamId') !== team && req.query.get('slug') !== 'the-team')
			throw new Refusal(403, 'forbidden', 'Not authorized.');
		const named = req.query.get('projectId') ?? req.query.get('project');
		if (named !== null && named !== project) throw notFound('Project');
	}

	projectOf(body) {
		if (body.projectId !== this.credential.project_id) throw notFound('Project');
	}

	async create(req, legacy) {
		const body = parsed(req);
		this.projectOf(body);
		if (legacy !== (body.runtime !== undefined)) throw badRequest('Invalid request: `runtime`.');
		return (await this.cloud.create(body)).whole;
	}

	list(req) {
		const { query } = req;
		const by = query.get('sortBy') ?? 'createdAt';
		if (!orders[by] || (query.has('namePrefix') && by !== 'name') || (query.has('status') && by !== 'createdAt'))
			throw badRequest('Invalid request: `sortBy`.');
		if (query.getAll('tags').length > 1) throw badRequest('Invalid request: `tags`.');
		const [tag, value] = (query.get('tags') ?? '').split(':');
		const all = [...this.cloud.sandboxes.values()]
			.filter((s) => s.name.startsWith(query.get('namePrefix') ?? '') && s.session)
			.filter((s) => !tag || s.tags[tag] === value)
			.filter((s) => !query.has('status') || s.session.status === query.get('status'))
			.sort(orders[by]);
		if (query.get('sortOrder') !== 'asc' && by !== 'name') all.reverse();
		return page('sandboxes', all.map((s) => s.json), req, this.plan);
	}

	async sandbox(req, name, more) {
		const sandbox = this.cloud.sandbox(decodeURIComponent(name));
		if (more === 'fork') return (await this.cloud.fork(sandbox, parsed(req))).whole;
		switch (req.method) {
		case 'GET': {
			const resumed = req.query.get('resume') === 'true' && await this.cloud.resumed(sandbox);
			return { ...sandbox.whole, resumed };
		}
		case 'PATCH':
			this.cloud.update(sandbox, parsed(req));
			return { sandbox: sandbox.json, routes: sandbox.routes };
		case 'DELETE':
			this.cloud.delete(sandbox);
			return { sandbox: sandbox.json };
		default:
			throw notFound('Route');
		}
	}

	sessions(req) {
		const name = req.query.get('name');
		const all = this.cloud.made.filter((s) => name === null || s.name === name).flatMap((s) => s.sessions);
		return page('sessions', all.map((s) => s.json).reverse(), req, this.plan);
	}

	async session(req, id, what, rest) {
		if (what === undefined) {
			const session = this.cloud.session(id);
			return { session: session.json, routes: session.sandbox.routes };
		}
		const session = this.cloud.running(id);
		switch (`${req.method} ${what}`) {
		case 'POST stop': {
			const snapshot = session.end();
			return { session: session.json, sandbox: session.sandbox.json, ...(snapshot && { snapshot: snapshotJson(snapshot) }) };
		}
		case 'POST extend-timeout': {
			const { duration } = parsed(req);
			if (!(duration >= 1000)) throw badRequest('Invalid request: `duration`.');
			session.extend(duration, this.plan.maxLifeMs);
			return { session: session.json };
		}
		case 'POST network-policy':
			session.sandbox.change({ networkPolicy: parsed(req) });
			return { session: session.json };
		case 'POST snapshot': {
			const snapshot = this.cloud.keep(session);
			session.sandbox.persistent = false;
			session.end();
			return { snapshot: snapshotJson(snapshot), session: session.json };
		}
		case 'POST interactive':
			return this.terminals.open(session);
		case 'POST fs':
			return this.file(req, session, rest[0]);
		default:
			if (what !== 'cmd') throw notFound('Route');
			return this.commands(req, session, ...rest);
		}
	}

	file(req, session, verb) {
		if (verb === 'write') return files.write(session, req);
		if (verb === 'read') return files.read(session, parsed(req));
		if (verb === 'mkdir') return files.mkdir(session, parsed(req));
		throw notFound('Route');
	}

	commands(req, session, id, what) {
		if (id === undefined)
			return req.method === 'POST' ? this.run(parsed(req), session)
				: { commands: session.commands.map((c) => c.json) };
		const command = session.command(id);
		if (what === 'logs')
			return { status: 200, headers: NDJSON, stream: (write) => command.follow((o) => write(line(o))) };
		if (what === 'kill') {
			const { signal } = parsed(req);
			if (!Number.isInteger(signal)) throw badRequest('Invalid request: `signal`.');
			command.kill(signal);
			return { command: command.json };
		}
		return this.status(req, command);
	}

	async status(req, command) {
		if (req.query.get('wait') === 'true') await command.ended();
		if (command.lost) throw new Refusal(410, 'sandbox_stopped', 'The sandbox has stopped.');
		return { command: command.json };
	}

	run(body, session) {
		const command = session.run(body);
		if (!body.wait) return { command: command.json };
		const stream = async (write) => {
			write(line({ command: { ...command.json, exitCode: null } }));
			const known = await command.follow((o) => body.logs && write(line(o)));
			if (known) write(line({ command: command.json }));
		};
		return { status: 200, headers: NDJSON, stream };
	}

	snapshots(req, id) {
		if (id === undefined)
			return page('snapshots', [...this.cloud.snapshots.values()].map(snapshotJson).reverse(), req, this.plan);
		return { snapshot: req.method === 'DELETE' ? this.cloud.dropSnapshot(id) : snapshotJson(this.cloud.snapshot(id)) };
	}

	/** The path behind /api, in parts. */
	async route(req, [version, group, ...rest]) {
		const { method } = req;
		if (group === 'user') return { user: { id: 'user_1', username: 'somebody', defaultTeamId: this.credential.team_id } };
		if (group === 'teams') return { id: this.credential.team_id, slug: 'the-team' };
		if (group === 'projects') {
			if (rest[0] !== this.credential.project_id) throw notFound('Project');
			return { id: rest[0], name: 'the-project' };
		}
		if (group !== 'sandboxes') throw notFound('Route');
		if (rest.length === 0) return method === 'POST' ? this.create(req, version === 'v2') : this.list(req);
		if (rest[0] === 'sessions') return rest.length === 1 ? this.sessions(req) : this.session(req, rest[1], rest[2], rest.slice(3));
		if (rest[0] === 'snapshots') return this.snapshots(req, rest[1]);
		return this.sandbox(req, ...rest);
	}

	async answer(req) {
		if (req.path === '/health') return { status: 200, body: { ok: true } };
		try {
			this.authorize(req);
			const made = await this.route(req, req.path.replace(/^\/api\//, '').split('/'));
			return made.status ? made : { status: 200, body: made };
		} catch (error) {
			if (error instanceof Refusal) return error.reply;
			return { status: 500, body: { error: { code: 'internal_server_error', message: String(error) } } };
		}
	}
}

/** The word of a request, for rules and log. */
function op({ method, path, query }) {
	const [, group, rest] = /\/v\d\/(\w+)(?:\/(.*))?$/.exec(path) ?? [];
	if (group !== 'sandboxes') return group ?? 'other';
	if (!rest) return method === 'POST' ? 'create' : query.has('namePrefix') ? 'list' : 'check';
	if (rest.endsWith('/fs/write')) return 'put';
	if (rest.endsWith('/cmd') && method === 'POST') return 'exec';
	if (/^(sessions|snapshots)/.test(rest)) return 'other';
	return { GET: 'find', DELETE: 'destroy' }[method] ?? 'other';
}

export async function start(options = {}) {
	const credential = { token: 'vercel-token-of-a-test-0123456789', team_id: 'team_abc123', project_id: 'prj_abc123' };
	const plan = { maxLifeMs: LONGEST_MS, concurrency: 2000, rate: Infinity, vcpus: 8, page: 3, unpaid: false, ...options.plan };
	const service = new Service(credential, plan);
	const place = await serve({ op, answer: (req) => service.answer(req),
		upgrade: (...args) => service.terminals.upgrade(...args) });
	const { stop } = place;
	service.place = place;
	return Object.assign(place, {
		base: `${place.url}/api`,
		credential,
		plan,
		boxes: () => service.cloud.boxes(),
		told: (mark) => service.cloud.made.find((s) => s.name === mark)?.whole,
		expire: (mark) => service.cloud.sandbox(mark).session.end(),
		snapshots: () => [...service.cloud.snapshots.values()].map(snapshotJson),
		async stop() {
			service.cloud.end();
			await stop.call(place);
		},
	});
}
