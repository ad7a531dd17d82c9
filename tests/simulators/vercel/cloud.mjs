// The service's state: sandboxes by name, their sessions, snapshots. A session is a machine (guest.mjs) with
// an end of its own; time in it is what is billed.

import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Guest } from '../guest.mjs';
import { Command } from './command.mjs';
import { badRequest, limited, notFound, Refusal, stopped } from './errors.mjs';

const HOME = '/vercel/sandbox';
const RUNTIMES = ['node22', 'node24', 'node26', 'python3.13'];
const IMAGES = /^(vercel\/sandbox\/(universal|ubuntu):latest|vercel\/sandbox\/(node:2[246]|python:3\.14)|my\/image(:[\w.-]+)?)$/;
const id = (prefix) => `${prefix}_${randomBytes(14).toString('base64url').replace(/[-_]/g, '0')}`;

class Session {
	commands = [];
	status = 'running';
	requestedAt = Date.now();
	cwd = HOME;

	constructor(sandbox, { timeout, snapshot }) {
		this.id = id('sbx');
		this.sandbox = sandbox;
		this.timeout = timeout;
		this.snapshot = snapshot;
	}

	async boot() {
		const guest = await Guest.start({ home: HOME });
		if (this.stoppedAt) return guest.end(); // deleted while it was made
		this.guest = guest;
		if (this.snapshot) fs.cpSync(this.snapshot.dir, path.join(this.guest.dir, 'home'), { recursive: true });
		this.startedAt = Date.now();
		return this.#arm();
	}

	#arm() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.end(), this.startedAt + this.timeout - Date.now());
		this.timer.unref();
	}

	extend(ms, max) {
		if (this.timeout + ms > max)
			throw new Refusal(400, 'sandbox_timeout_invalid', `The timeout may not exceed ${max} ms.`);
		this.timeout += ms;
		this.#arm();
	}

	/** Stops the machine; a persistent sandbox keeps its files. */
	end(status = 'stopped') {
		if (this.stoppedAt) return undefined;
		clearTimeout(this.timer);
		for (const command of this.commands) command.lose();
		const kept = this.sandbox.persistent && this.guest ? this.sandbox.cloud.keep(this) : undefined;
		this.guest?.end();
		this.status = status;
		this.stoppedAt = Date.now();
		this.sandbox.updatedAt = this.stoppedAt;
		return kept;
	}

	run(words) {
		if (typeof words.command !== 'string' || (words.args && !words.args.every((a) => typeof a === 'string')))
			throw badRequest('Invalid request: `command` must be a string.');
		const command = new Command(this, words);
		this.commands.unshift(command);
		return command;
	}

	command(name) {
		const found = this.commands.find((c) => c.id === name);
		if (!found) throw notFound('Command');
		return found;
	}

	get ms() {
		return this.startedAt === undefined ? 0 : (this.stoppedAt ?? Date.now()) - this.startedAt;
	}

	get json() {
		const { sandbox } = this;
		return { id: this.id, status: this.status, memory: sandbox.vcpus * 2048, vcpus: sandbox.vcpus,
			region: sandbox.region, timeout: this.timeout, requestedAt: this.requestedAt,
			createdAt: this.requestedAt, updatedAt: sandbox.updatedAt, cwd: this.cwd,
			interactivePort: 443, projectId: sandbox.projectId, sourceSandboxName: sandbox.name,
			...(sandbox.runtime && { runtime: sandbox.runtime }),
			...(this.startedAt && { startedAt: this.startedAt }),
			...(this.snapshot && { sourceSnapshotId: this.snapshot.id }),
			...(sandbox.networkPolicy && { networkPolicy: sandbox.networkPolicy }),
			...(this.stoppedAt && { requestedStopAt: this.stoppedAt, stoppedAt: this.stoppedAt,
				duration: this.ms, activeCpuDurationMs: 1, networkTransfer: { ingress: 0, egress: 0 } }) };
	}
}

class Sandbox {
	sessions = [];

	constructor(cloud, body) {
		Object.assign(this, { region: 'iad1', vcpus: 2, persistent: true, timeout: 300000, ports: [], env: {}, tags: {} },
			{ cloud, projectId: body.projectId, name: body.name ?? id('sandbox').replace('_', '-') });
		this.change(body);
		this.runtime = body.runtime;
		this.image = body.runtime ? undefined : body.image ?? 'vercel/sandbox/universal:latest';
		this.createdAt = this.updatedAt = Date.now();
	}

	change({ persistent, resources, timeout, ports, env, tags, networkPolicy, region }) {
		const given = { persistent, vcpus: resources?.vcpus, timeout, ports, env, tags, networkPolicy, region };
		for (const [key, value] of Object.entries(given)) if (value !== undefined) this[key] = value;
		this.updatedAt = Date.now();
	}

	async start() {
		const session = new Session(this, { timeout: this.timeout, snapshot: this.snapshot });
		this.sessions.push(session);
		try {
			await session.boot();
		} catch (error) {
			session.status = 'failed';
			session.stoppedAt = Date.now();
			throw error;
		}
		return session;
	}

	get session() {
		return this.sessions.at(-1);
	}

	get routes() {
		return this.ports.map((port) => ({ port, subdomain: `${this.name}-${port}`.slice(0, 60),
			url: `https://${this.name}-${port}.vercel.run` }));
	}

	get json() {
		const { name, persistent, createdAt, updatedAt, timeout, vcpus, region, runtime, image, tags, networkPolicy } = this;
		return { name, persistent, status: this.session.status, currentSessionId: this.session.id, createdAt,
			updatedAt, statusUpdatedAt: updatedAt, timeout, vcpus, memory: vcpus * 2048, region, cwd: HOME, tags,
			...(runtime ? { runtime } : { image }), ...(networkPolicy && { networkPolicy }),
			...(this.snapshot && { currentSnapshotId: this.snapshot.id }) };
	}

	get whole() {
		return { sandbox: this.json, session: this.session.json, routes: this.routes };
	}
}

export class Cloud {
	sandboxes = new Map(); // by name; gone once deleted
	made = []; // every sandbox ever
	snapshots = new Map();
	#starts = [];

	constructor(plan) {
		this.plan = plan;
		this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-vercel-'));
	}

	#check({ name, timeout, resources, runtime, image, tags, ports = [] }, { update = false } = {}) {
		if (name !== undefined && !/^[A-Za-z0-9_-]{1,128}$/.test(name)) throw badRequest('Invalid request: `name`.');
		if (!update && this.sandboxes.has(name))
			throw badRequest(`A sandbox with the name '${name}' already exists for this project.`);
		if (timeout !== undefined && !(Number.isInteger(timeout) && timeout >= 1000 && timeout <= this.plan.maxLifeMs))
			throw new Refusal(400, 'sandbox_timeout_invalid', `The timeout may not exceed ${this.plan.maxLifeMs} ms.`);
		if (runtime !== undefined && (image !== undefined || !RUNTIMES.includes(runtime)))
			throw badRequest('Invalid request: `runtime`.');
		if (image !== undefined && !IMAGES.test(image))
			throw badRequest('Invalid request: `image`.');
		const { vcpus = 2, memory = vcpus * 2048 } = resources ?? {};
		if ((vcpus !== 1 && vcpus % 2) || vcpus < 1 || vcpus > this.plan.vcpus || memory !== vcpus * 2048)
			throw badRequest('Invalid request: `resources`.');
		if (Object.keys(tags ?? {}).length > 5) throw badRequest('Invalid request: `tags`.');
		if (ports.length > 15 || !ports.every((p) => p >= 1024 && p <= 65535)) throw badRequest('Invalid request: `ports`.');
	}

	/** What the plan allows at once, and in each minute. */
	#admit() {
		if (this.plan.unpaid) throw new Refusal(402, 'payment_required', 'The usage of this plan is used up.');
		if (this.living().length >= this.plan.concurrency) throw limited(30, 'Too many sandboxes at once.');
		const now = Date.now();
		this.#starts = this.#starts.filter((at) => at > now - 60000);
		if (this.#starts.length >= this.plan.rate) throw limited(Math.ceil((this.#starts[0] + 60000 - now) / 1000));
		this.#starts.push(now);
	}

	living() {
		return this.made.filter((s) => s.session && !s.session.stoppedAt);
	}

	async create(body) {
		this.#check(body);
		this.#admit();
		const sandbox = new Sandbox(this, body);
		if (body.source?.type === 'snapshot') sandbox.snapshot = this.snapshot(body.source.snapshotId);
		this.sandboxes.set(sandbox.name, sandbox);
		this.made.push(sandbox);
		await sandbox.start();
		return sandbox;
	}

	sandbox(name) {
		const found = this.sandboxes.get(name);
		if (!found) throw notFound('Sandbox');
		return found;
	}

	async resumed(sandbox) {
		if (!sandbox.session.stoppedAt) return false;
		if (sandbox.persistent && sandbox.snapshot && !this.snapshots.has(sandbox.snapshot.id))
			throw new Refusal(410, 'snapshot_not_found', 'The snapshot of the sandbox is gone.');
		this.#admit();
		await sandbox.start();
		return true;
	}

	update(sandbox, body) {
		this.#check({ ...body, name: undefined }, { update: true });
		sandbox.change(body);
	}

	async fork(sandbox, body) {
		const { networkPolicy, tags, env, timeout, persistent, image, runtime } = sandbox;
		const base = { networkPolicy, tags, env, timeout, persistent, ...(runtime ? { runtime } : { image }) };
		const forked = await this.create({ ...base, resources: { vcpus: sandbox.vcpus }, ...body, projectId: sandbox.projectId });
		fs.cpSync(path.join(sandbox.session.guest.dir, 'home'), path.join(forked.session.guest.dir, 'home'), { recursive: true });
		return forked;
	}

	delete(sandbox) {
		sandbox.persistent = false;
		sandbox.session.end();
		this.sandboxes.delete(sandbox.name);
	}

	session(name) {
		for (const sandbox of this.made) {
			const found = sandbox.sessions.find((s) => s.id === name);
			if (found && this.sandboxes.get(sandbox.name) === sandbox) return found;
		}
		throw notFound('Session');
	}

	running(name) {
		const session = this.session(name);
		if (session.stoppedAt) throw stopped(name);
		return session;
	}

	/** A snapshot of a session that ends. */
	keep(session) {
		const snapshot = { id: id('snap'), session, createdAt: Date.now() };
		snapshot.dir = path.join(this.dir, snapshot.id);
		fs.cpSync(path.join(session.guest.dir, 'home'), snapshot.dir, { recursive: true });
		this.snapshots.set(snapshot.id, snapshot);
		session.sandbox.snapshot = snapshot;
		return snapshot;
	}

	snapshot(name) {
		const found = this.snapshots.get(name);
		if (!found) throw notFound('Snapshot');
		return found;
	}

	dropSnapshot(name) {
		const snapshot = this.snapshot(name);
		this.snapshots.delete(name);
		fs.rmSync(snapshot.dir, { recursive: true, force: true });
		return { ...snapshotJson(snapshot), status: 'deleted' };
	}

	boxes() {
		return this.made.map((sandbox) => ({
			id: sandbox.session?.id,
			mark: sandbox.name,
			state: sandbox.session && !sandbox.session.stoppedAt ? 'running' : 'stopped',
			started: sandbox.sessions[0]?.startedAt ?? sandbox.createdAt,
			ended: sandbox.session?.stoppedAt,
			billedMs: sandbox.sessions.reduce((sum, s) => sum + s.ms, 0),
		}));
	}

	end() {
		for (const sandbox of this.made) for (const session of sandbox.sessions) {
			sandbox.persistent = false;
			session.end();
		}
		fs.rmSync(this.dir, { recursive: true, force: true });
	}
}

export const snapshotJson = ({ id: name, session, createdAt }) => ({ id: name, sourceSessionId: session.id,
	region: session.sandbox.region, status: 'created', sizeBytes: 4096, createdAt, updatedAt: createdAt });
