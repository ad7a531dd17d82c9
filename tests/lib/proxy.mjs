// A proxy that makes trouble between the connector and a runner: requests and replies that are lost,
// held back or spoilt, one rule at a time. Without rules it only passes on. One port serves many
// lanes, which differ in the first part of the path, so that tests do not meet.
//
//   const hub = await proxyHub();
//   const lane = hub.lane(runner.url);      // lane.url is the address to save
//   const rule = lane.rule({ method: 'POST', path: /sandboxes$/ }, 'hold', { times: 1 });
//   await rule.seen;                        // the request is here and goes no further
//   rule.release();
//
// rules.mjs tells what a rule may do.

import http from 'node:http';
import { Rules } from './rules.mjs';

const KEPT_MS = 60000; // longer than the connector keeps one

class Lane extends Rules {
	requests = [];

	constructor(hub, name, target) {
		super();
		this.url = `${hub.url}/${name}`;
		this.target = new URL(target);
		this.bearer = undefined; // replaces the caller's token
	}

	async serve(req, res) {
		const parts = [];
		for await (const part of req) parts.push(part);
		const body = Buffer.concat(parts);
		this.requests.push(`${req.method} ${req.url}`);
		req.body = body; // a rule may look at it
		const rule = this.take(req);
		switch (rule?.act) {
		case 'drop':
			req.socket.destroy();
			return;
		case 'answer':
			this.#say(res, rule.more);
			return;
		case 'hold':
			await rule.releaseGate.promise;
			break;
		default:
		}
		await this.#pass(req, res, body, rule);
	}

	#say(res, { status, headers, body }) {
		res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(body);
	}

	#pass(req, res, body, rule) {
		const headers = { ...req.headers, host: this.target.host, connection: 'close' };
		delete headers['transfer-encoding'];
		if (body.length) headers['content-length'] = String(body.length);
		if (this.bearer && headers.authorization) headers.authorization = `Bearer ${this.bearer}`;
		return new Promise((resolve, reject) => {
			const up = http.request({
				host: this.target.hostname,
				port: this.target.port,
				method: req.method,
				path: req.url,
				headers,
				agent: false,
			}, (reply) => this.#reply(req, res, reply, rule).then(resolve, reject));
			up.on('error', () => {
				req.socket.destroy();
				resolve();
			});
			up.end(body);
		});
	}

	async #reply(req, res, reply, rule) {
		delete reply.headers.connection; // ours to its caller is another one
		if (!rule || rule.act === 'hold') {
			res.writeHead(reply.statusCode, reply.headers);
			reply.pipe(res);
			reply.on('error', () => req.socket.destroy());
			res.on('close', () => reply.destroy());
			return;
		}
		const parts = [];
		for await (const part of reply) parts.push(part);
		if (rule.act === 'hold-reply') await rule.releaseGate.promise;
		if (rule.act === 'cut') {
			req.socket.destroy();
		} else if (rule.act === 'garbage') {
			res.writeHead(200, { 'Content-Type': 'application/json' }).end('{"sandbox":[1,');
		} else if (rule.act === 'replace') {
			this.#say(res, rule.more);
		} else {
			this.#whole(req, res, reply, Buffer.concat(parts), rule);
		}
	}

	/** What was held back, or its beginning and then nothing. */
	#whole(req, res, reply, body, rule) {
		const headers = { ...reply.headers };
		delete headers['transfer-encoding'];
		if (rule.act !== 'cut-body') return res.writeHead(reply.statusCode, headers).end(body);
		res.writeHead(reply.statusCode, { ...headers, 'content-length': String(body.length + 1) });
		return res.write(body.subarray(0, rule.more.bytes ?? 0), () => req.socket.destroy());
	}
}

class Hub {
	#lanes = new Map();
	#sockets = new Set();

	listen(port) {
		this.server = http.createServer((req, res) => {
			const [, name, rest] = /^\/([^/]*)(\/.*)$/.exec(req.url) ?? [];
			const lane = this.#lanes.get(name);
			req.url = rest;
			if (lane) lane.during(req, lane.serve(req, res).catch(() => req.socket.destroy()));
			else res.writeHead(404).end();
		});
		// A connection that is closed under a request would be trouble that nobody asked for.
		this.server.keepAliveTimeout = KEPT_MS;
		this.server.on('connection', (socket) => {
			this.#sockets.add(socket);
			socket.on('close', () => this.#sockets.delete(socket));
			socket.on('error', () => {});
		});
		return new Promise((resolve, reject) => {
			this.server.on('error', reject);
			this.server.listen(port, '127.0.0.1', () => {
				this.port = this.server.address().port;
				this.url = `http://127.0.0.1:${this.port}`;
				resolve(this);
			});
		});
	}

	lane(target) {
		const name = `lane${this.#lanes.size}`;
		const lane = new Lane(this, name, target);
		this.#lanes.set(name, lane);
		return lane;
	}

	/** Connections are refused until up(). */
	async down() {
		const closed = new Promise((resolve) => this.server.close(resolve));
		for (const socket of this.#sockets) socket.destroy();
		await closed;
	}

	up() {
		return this.listen(this.port);
	}

	async stop() {
		for (const lane of this.#lanes.values()) lane.clear();
		if (this.server.listening) await this.down();
	}
}

export const proxyHub = () => new Hub().listen(0);
