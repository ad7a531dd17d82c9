// A gRPC server for simulators, with the contract of ../lib.mjs over HTTP/2: a log of its requests, handshakes,
// rules of trouble, latency. What it serves is a function from a decoded request to messages.
//
//   const place = await serve({
//     methods,                             // messages.mjs
//     op: (name, request) => 'create',
//     about: (call) => 'sb-...',           // the sandbox it is about, for rules; undefined: none
//     answer: async (call) => ({...}),     // a unary reply; call has name, method, request(s), headers, write,
//   });                                    // closed (a promise), tls. Streams call write({...}) and return nothing.
//                                          // throw new Refusal(code, text, details) for a status
//
// One port speaks TLS (url), another one clear text as Modal's own client wants it of a local server (plainUrl).
// Beyond the acts of rules.mjs: 'answer' and 'replace' take { grpc: code, text } as well, and 'untold' leaves
// the status out at the end of a good reply.

import http2 from 'node:http2';
import { certificate } from '../lib.mjs';
import { Rules } from '../../lib/rules.mjs';
import { pause } from '../../lib/wait.mjs';
import { decode, encode } from './messages.mjs';

const FRAME_MAX = 100 << 20;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

export class Refusal extends Error {
	constructor(code, text = '', details = undefined) {
		super(text);
		this.code = code;
		this.details = details;
	}
}

export const OK = 0, NOT_FOUND = 5, ALREADY_EXISTS = 6, EXHAUSTED = 8, PRECONDITION = 9, INVALID = 3,
	UNIMPLEMENTED = 12, INTERNAL = 13, UNAVAILABLE = 14, UNAUTHENTICATED = 16;

export function frame(message) {
	const head = Buffer.alloc(5);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

/** The messages of a body of frames; throws when it is not made of whole ones. */
export function unframe(body) {
	const found = [];
	for (let at = 0; at < body.length;) {
		if (at + 5 > body.length || body[at] !== 0) throw new Refusal(INTERNAL, 'bad frame');
		const n = body.readUInt32BE(at + 1);
		if (n > FRAME_MAX || at + 5 + n > body.length) throw new Refusal(INTERNAL, 'bad length');
		found.push(body.subarray(at + 5, at + 5 + n));
		at += 5 + n;
	}
	return found;
}

const statusOf = (error) => ({
	'grpc-status': String(error?.code ?? 0),
	...(error?.message ? { 'grpc-message': encodeURIComponent(error.message) } : {}),
	...(error?.details ? { 'grpc-status-details-bin': error.details.toString('base64') } : {}),
});

class Place extends Rules {
	log = []; // { op, method, path, headers, bytes, status, at, connection }; status is that of gRPC
	handshakes = 0;
	latencyMs = 0;
	#sessions = new Set();
	#connections = 0;
	#stopped = false;

	constructor(provider) {
		super();
		this.provider = provider;
	}

	async listen() {
		const { key, cert } = certificate();
		this.servers = [http2.createSecureServer({ key, cert }), http2.createServer()];
		for (const [i, server] of this.servers.entries()) {
			server.on('session', (session) => {
				if (i === 0) this.handshakes += 1;
				this.#connections += 1;
				session.connection = this.#connections;
				this.#sessions.add(session);
				session.on('close', () => this.#sessions.delete(session));
				session.on('error', () => {});
				if (this.#stopped) session.destroy(); // it was shaking hands when all others were ended
			});
			server.on('stream', (stream, headers) => {
				stream.on('error', () => {});
				const call = { stream, headers, tls: i === 0, closed: new Promise((resolve) => stream.on('close', resolve)) };
				this.during(call, this.#serve(call).catch(() => stream.session?.destroy()));
			});
			await new Promise((resolve, reject) => {
				server.on('error', reject);
				server.listen(0, '127.0.0.1', resolve);
			});
		}
		[this.port, this.plainPort] = this.servers.map((server) => server.address().port);
		this.url = `https://127.0.0.1:${this.port}`;
		this.plainUrl = `http://127.0.0.1:${this.plainPort}`;
		return this;
	}

	async #serve(call) {
		const { stream, headers } = call;
		const body = await new Promise((resolve, reject) => {
			const chunks = []; // iterating over the stream would end it for the reply as well
			stream.on('data', (chunk) => chunks.push(chunk));
			stream.on('end', () => resolve(Buffer.concat(chunks)));
			stream.on('error', reject);
		});
		call.method = this.provider.methods.get(headers[':path']);
		call.name = call.method?.name ?? 'unknown';
		call.requests = call.method ? unframe(body).map((part) => decode(call.method.request, part)) : [];
		call.request = call.requests[0] ?? {};
		call.op = this.provider.op(call.name, call.request);
		const entry = { op: call.op, method: headers[':method'], name: call.name,
			path: headers[':path'], headers, bytes: body.length, at: Date.now(), connection: stream.session?.connection };
		this.log.push(entry);
		if (this.latencyMs) await pause(this.latencyMs);
		const rule = this.take({ method: headers[':method'], url: `${headers[':path']}?${this.provider.about(call) ?? ''}`,
			op: entry.op, headers, body, socket: stream.session });
		if (rule?.act === 'drop') return stream.session.destroy();
		if (rule?.act === 'hold') await rule.releaseGate.promise;
		if (rule?.act === 'answer') return this.#foreign(stream, rule.more, entry);
		return this.#reply(call, rule, entry);
	}

	/** Something that a proxy, a page or another state of the service would answer. */
	#foreign(stream, more, entry) {
		if (more.grpc === undefined) {
			entry.status = more.status;
			stream.respond({ ':status': more.status, 'content-type': 'application/json', ...more.headers });
			return stream.end(typeof more.body === 'string' || Buffer.isBuffer(more.body) ? more.body
				: JSON.stringify(more.body ?? ''));
		}
		entry.status = more.grpc;
		return stream.respond({ ...HEAD, ...statusOf(new Refusal(more.grpc, more.text, more.details)) }, { endStream: true });
	}

	async #run(call, write) {
		if (!call.method) throw new Refusal(UNIMPLEMENTED, 'no such method');
		call.write = (message) => write(frame(encode(call.method.reply, message)));
		const reply = await this.provider.answer(call);
		if (call.method.kind !== 'stream') call.write(reply ?? {});
	}

	async #reply(call, rule, entry) {
		const { stream } = call;
		const spoils = ['hold-reply', 'cut', 'cut-body', 'garbage', 'replace'].includes(rule?.act);
		const kept = [];
		const begin = () => {
			if (stream.headersSent || stream.destroyed) return;
			stream.respond(HEAD, { waitForTrailers: rule?.act !== 'untold' });
			stream.on('wantTrailers', () => stream.sendTrailers(statusOf(call.error)));
		};
		const write = (part) => {
			if (spoils) return kept.push(part);
			begin();
			return stream.destroyed || stream.write(part);
		};
		try {
			await this.#run(call, write);
		} catch (error) {
			call.error = error instanceof Refusal ? error : new Refusal(INTERNAL, 'the simulator failed');
			if (!(error instanceof Refusal)) console.error(error);
		}
		entry.status = call.error?.code ?? OK;
		if (rule?.act === 'hold-reply') await rule.releaseGate.promise;
		if (rule?.act === 'cut') return stream.session?.destroy();
		if (rule?.act === 'garbage') return this.#foreign(stream, { status: 200, body: '{"sandbox":[1,' }, entry);
		if (rule?.act === 'replace') return this.#foreign(stream, rule.more, entry);
		if (stream.destroyed) return undefined;
		if (call.error && !stream.headersSent && !kept.length)
			return stream.respond({ ...HEAD, ...statusOf(call.error) }, { endStream: true });
		begin();
		if (rule?.act === 'cut-body') {
			stream.write(Buffer.concat(kept).subarray(0, rule.more.bytes ?? 0), () => stream.session?.destroy());
			return undefined;
		}
		for (const part of kept) stream.write(part);
		return stream.end();
	}

	/** How often each operation was asked for since the log was emptied. */
	count(op) {
		return this.log.filter((entry) => entry.op === op).length;
	}

	async stop() {
		this.clear();
		this.#stopped = true;
		const closed = this.servers.map((server) => new Promise((resolve) => server.close(resolve)));
		for (const session of this.#sessions) session.destroy();
		await Promise.all(closed);
	}
}

export const serve = (provider) => new Place(provider).listen();
