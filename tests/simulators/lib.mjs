// What every simulator of a provider is built on: an HTTPS server that keeps a log of its requests, counts
// handshakes, spoils what a rule names (tests/lib/rules.mjs) and adds latency. The provider itself is a
// function from a request to an answer.
//
//   const place = await serve({
//     op: (req) => 'create',               // what the request is, for rules and log: one of check create
//                                          // find list destroy put exec, or another word
//     answer: async (req) => ({ status: 200, headers: {}, body: {...} | 'text' | Buffer }),
//                                          // or { status, headers, stream: async (write) => {...} };
//                                          // req has method, url, path, query, headers, body, op, gone
//     upgrade: (req, socket, head) => {},  // web sockets; without it they are refused
//   });

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { Rules } from '../lib/rules.mjs';
import { pause } from '../lib/wait.mjs';

let made;

/** One certificate for 127.0.0.1 and localhost in a run: { key, cert, file }; file holds cert. */
export function certificate() {
	if (made) return made;
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-sim-'));
	process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
	const file = path.join(dir, 'cert.pem');
	const key = path.join(dir, 'key.pem');
	execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
		'-days', '2', '-subj', '/CN=simulator', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost',
		'-keyout', key, '-out', file], { stdio: 'ignore' });
	made = { key: fs.readFileSync(key), cert: fs.readFileSync(file), file };
	return made;
}

const bytesOf = (body) => Buffer.isBuffer(body) ? body
	: Buffer.from(typeof body === 'string' ? body : body === undefined ? '' : JSON.stringify(body));

const typeOf = (body) => typeof body === 'string' || Buffer.isBuffer(body) ? {} : { 'content-type': 'application/json' };

class Place extends Rules {
	log = []; // { op, method, path, query, headers, bytes, status, at, connection }
	handshakes = 0;
	latencyMs = 0; // added to each answer, as by a long way
	#sockets = new Set();
	#raw = new Set();
	#connections = 0;

	constructor(provider) {
		super();
		this.provider = provider;
	}

	listen() {
		const { key, cert } = certificate();
		this.server = https.createServer({ key, cert, keepAlive: true }, (req, res) => {
			this.during(req, this.#serve(req, res).catch(() => req.socket.destroy()));
		});
		this.server.keepAliveTimeout = 60000;
		this.server.on('connection', (raw) => {
			this.#raw.add(raw); // one whose handshake is not over would keep the server from closing
			raw.on('close', () => this.#raw.delete(raw));
		});
		this.server.on('secureConnection', (socket) => {
			this.handshakes += 1;
			this.#connections += 1;
			socket.connection = this.#connections;
			this.#sockets.add(socket);
			socket.on('close', () => this.#sockets.delete(socket));
			socket.on('error', () => {});
		});
		this.server.on('upgrade', (req, socket, head) => {
			if (this.provider.upgrade) this.provider.upgrade(this.#known(req), socket, head);
			else socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
		});
		return new Promise((resolve, reject) => {
			this.server.on('error', reject);
			this.server.listen(0, '127.0.0.1', () => {
				this.port = this.server.address().port;
				this.url = `https://127.0.0.1:${this.port}`;
				resolve(this);
			});
		});
	}

	#known(req) {
		const url = new URL(req.url, this.url);
		req.path = url.pathname;
		req.query = url.searchParams;
		req.op = this.provider.op(req);
		return req;
	}

	async #serve(req, res) {
		const parts = [];
		for await (const part of req) parts.push(part);
		req.body = Buffer.concat(parts);
		req.gone = new Promise((resolve) => res.on('close', resolve));
		this.#known(req);
		const entry = { op: req.op, method: req.method, path: req.path, query: req.query, headers: req.headers,
			bytes: req.body.length, at: Date.now(), connection: req.socket.connection };
		this.log.push(entry);
		if (this.latencyMs) await pause(this.latencyMs);
		const rule = this.take(req);
		if (rule?.act === 'drop') return req.socket.destroy();
		if (rule?.act === 'hold') await rule.releaseGate.promise;
		const reply = rule?.act === 'answer' ? rule.more : await this.provider.answer(req);
		entry.status = reply.status;
		return this.#reply(req, res, reply, rule);
	}

	async #reply(req, res, reply, rule) {
		const spoils = ['hold-reply', 'cut', 'cut-body', 'garbage', 'replace'].includes(rule?.act);
		if (!spoils) return this.#send(res, reply);
		const whole = [];
		if (reply.stream) await reply.stream((part) => whole.push(bytesOf(part)));
		else whole.push(bytesOf(reply.body));
		const body = Buffer.concat(whole);
		if (rule.act === 'hold-reply') await rule.releaseGate.promise;
		if (rule.act === 'cut') return req.socket.destroy();
		if (rule.act === 'garbage')
			return res.writeHead(200, { 'content-type': 'application/json' }).end('{"sandbox":[1,');
		if (rule.act === 'replace') return this.#send(res, rule.more);
		const headers = { ...typeOf(reply.body), ...reply.headers };
		if (rule.act === 'hold-reply') return res.writeHead(reply.status, headers).end(body);
		res.writeHead(reply.status, { ...headers, 'content-length': String(body.length + 1) });
		res.write(body.subarray(0, rule.more.bytes ?? 0), () => req.socket.destroy());
	}

	async #send(res, { status, headers, body, stream }) {
		if (!stream) {
			const bytes = bytesOf(body);
			const length = status === 204 ? {} : { 'content-length': String(bytes.length) };
			return res.writeHead(status, { ...typeOf(body), ...length, ...headers }).end(bytes);
		}
		res.writeHead(status, headers);
		res.flushHeaders();
		await stream((part) => res.destroyed || res.write(bytesOf(part)));
		return res.end();
	}

	/** How often each operation was asked for since the log was emptied. */
	count(op) {
		return this.log.filter((entry) => entry.op === op).length;
	}

	async stop() {
		this.clear();
		const closed = new Promise((resolve) => this.server.close(resolve));
		for (const socket of [...this.#sockets, ...this.#raw]) socket.destroy();
		await closed;
	}
}

export const serve = (provider) => new Place(provider).listen();
