// Machines for bridges that run in another program (workerd, Python): real processes and files behind a small
// HTTP server that only the stand-ins of the vendors' SDKs ask.
//
//   POST /NAME/exec    { argv, timeoutMs } -> { code, stdout, stderr } (base64; code 124: its time was over)
//   POST /NAME/write   { path, bytes } (base64); parents are made
//   POST /NAME/read    { path } -> { bytes } or 404
//   POST /NAME/start   starts the machine
//   POST /NAME/end     kills everything in it
//   POST /NAME/state   { running }
//
// With { replaces: true } a call to a machine that never was, was lost (`lose`) or has ended starts a fresh one, as
// some clouds do it; else the answer is 410.

import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { Guest } from './guest.mjs';

class Gone extends Error {}

const collect = async (stream) => {
	const parts = [];
	for await (const part of stream) parts.push(part);
	return Buffer.concat(parts);
};

export class Machines {
	history = []; // { name, started, ended, guest }, one for each machine that ever ran
	failEnd = 0; // so many calls of end fail

	constructor({ home, env, replaces = false }) {
		this.options = { home, env };
		this.replaces = replaces;
		this.living = new Map(); // name -> promise of an entry of the history
	}

	start(name) {
		if (!this.living.has(name)) {
			const made = Guest.start(this.options).then((guest) => {
				const entry = { name, started: Date.now(), ended: undefined, guest };
				this.history.push(entry);
				return entry;
			});
			this.living.set(name, made);
			made.catch(() => this.living.delete(name));
		}
		return this.living.get(name);
	}

	/** The one that a call means. */
	async #machine(name) {
		if (!this.replaces && !this.living.has(name)) throw new Gone(name);
		const entry = await this.start(name);
		if (entry.ended !== undefined) throw new Gone(name); // while we waited
		return entry;
	}

	async exec(name, { argv, timeoutMs }) {
		const { guest } = await this.#machine(name);
		const child = guest.spawn(argv);
		let late = false;
		const timer = timeoutMs && setTimeout(() => {
			late = true;
			guest.signal(child, 'SIGKILL', { group: true });
		}, timeoutMs);
		const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? (signal ? 137 : 1))));
		const [stdout, stderr, code] = await Promise.all([collect(child.stdout), collect(child.stderr), ended]);
		clearTimeout(timer);
		return { code: late ? 124 : code, stdout: stdout.toString('base64'), stderr: stderr.toString('base64') };
	}

	async write(name, { path: to, bytes }) {
		const { guest } = await this.#machine(name);
		const file = guest.file(to);
		if (!file) throw new Error('this path can not be written');
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, Buffer.from(bytes, 'base64'));
		return {};
	}

	async read(name, { path: from }) {
		const { guest } = await this.#machine(name);
		const file = guest.file(from) ?? from;
		if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return undefined;
		return { bytes: fs.readFileSync(file).toString('base64') };
	}

	state(name) {
		return { running: this.living.has(name) };
	}

	async end(name) {
		if (this.failEnd > 0) {
			this.failEnd -= 1;
			throw new Error('the machine does not end');
		}
		await this.lose(name);
		return {};
	}

	/** The machine dies. */
	async lose(name) {
		const entry = await this.living.get(name);
		this.living.delete(name);
		if (!entry) return;
		entry.guest.end();
		entry.ended = Date.now();
	}

	async #serve(req, res) {
		const [, name, verb] = req.url.split('/').map(decodeURIComponent);
		const body = JSON.parse((await collect(req)).toString() || '{}');
		if (!['start', 'exec', 'write', 'read', 'state', 'end'].includes(verb)) return res.writeHead(404).end();
		const answer = verb === 'start' ? await this.start(name).then(() => ({})) : await this[verb](name, body);
		res.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}));
	}

	listen() {
		this.server = http.createServer((req, res) => {
			this.#serve(req, res).catch((e) => res.writeHead(e instanceof Gone ? 410 : 500).end(e.message));
		});
		this.server.keepAliveTimeout = 3600_000; // a connection that ends under a request would be an error there
		return new Promise((resolve) => {
			this.server.listen(0, '127.0.0.1', () => {
				this.url = `http://127.0.0.1:${this.server.address().port}`;
				resolve(this);
			});
		});
	}

	async stop() {
		await Promise.all([...this.living.keys()].map((name) => this.lose(name)));
		this.server.closeAllConnections();
		await new Promise((resolve) => this.server.close(resolve));
	}
}
