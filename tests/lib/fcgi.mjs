// A caller that speaks FastCGI itself, for groups of connector processes that no nginx stands before.

import net from 'node:net';
import { Client } from './client.mjs';

const BEGIN = 1, END = 3, PARAMS = 4, STDIN = 5, STDOUT = 6;
const RECORD_MAX = 65000;

function record(type, body) {
	const head = Buffer.alloc(8);
	head.writeUInt8(1, 0);
	head.writeUInt8(type, 1);
	head.writeUInt16BE(1, 2);
	head.writeUInt16BE(body.length, 4);
	return Buffer.concat([head, body]);
}

function stream(type, body) {
	const parts = [];
	for (let at = 0; at < body.length; at += RECORD_MAX)
		parts.push(record(type, body.subarray(at, at + RECORD_MAX)));
	return Buffer.concat([...parts, record(type, Buffer.alloc(0))]);
}

function length(n) {
	const long = Buffer.alloc(4);
	long.writeUInt32BE((n | 0x80000000) >>> 0);
	return n < 128 ? Buffer.from([n]) : long;
}

const params = (map) => Buffer.concat(Object.entries(map).flatMap(([name, value]) => {
	const [n, v] = [Buffer.from(name), Buffer.from(String(value))];
	return [length(n.length), length(v.length), n, v];
}));

/** The bytes of the standard output in what the server sent. */
function output(all) {
	const parts = [];
	for (let at = 0; at + 8 <= all.length;) {
		const n = all.readUInt16BE(at + 4);
		if (all[at + 1] === STDOUT) parts.push(all.subarray(at + 8, at + 8 + n));
		if (all[at + 1] === END) return Buffer.concat(parts).toString('utf8');
		at += 8 + n + all[at + 6];
	}
	return undefined;
}

function call(socketPath, { method, path, headers, body }) {
	const text = Buffer.from(body ?? '');
	const map = { REQUEST_METHOD: method, REQUEST_URI: path, DOCUMENT_URI: path, QUERY_STRING: '',
		CONTENT_LENGTH: text.length, CONTENT_TYPE: '', REMOTE_ADDR: '127.0.0.1', SERVER_NAME: 'localhost',
		SERVER_PROTOCOL: 'HTTP/1.1', REQUEST_ID: '0'.repeat(32) };
	for (const [name, value] of Object.entries(headers))
		map[name === 'Content-Type' ? 'CONTENT_TYPE' : `HTTP_${name.toUpperCase().replaceAll('-', '_')}`] = value;
	return new Promise((resolve, reject) => {
		const socket = net.connect(socketPath);
		let all = Buffer.alloc(0);
		socket.on('error', reject);
		socket.on('data', (part) => {
			all = Buffer.concat([all, part]);
		});
		socket.on('close', () => {
			const reply = output(all);
			if (reply === undefined) reject(new Error('the connection closed without an answer'));
			else resolve(reply);
		});
		socket.write(Buffer.concat([record(BEGIN, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0])),
			stream(PARAMS, params(map)), stream(STDIN, text)]));
	});
}

/** A Client whose requests go straight to a connector's socket. */
export class SocketClient extends Client {
	constructor(socketPath, key) {
		super('', key);
		this.socketPath = socketPath;
	}

	async api(method, path, body, { headers = {} } = {}) {
		const reply = await call(this.socketPath, {
			method,
			path,
			headers: { ...(this.key ? { Authorization: `Bearer ${this.key}` } : {}),
				...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
			body: body === undefined ? '' : JSON.stringify(body),
		});
		const [head, ...rest] = reply.split('\r\n\r\n');
		const lines = head.split('\r\n').map((line) => line.split(/: (.*)/s));
		const map = Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value]));
		const text = rest.join('\r\n\r\n');
		let json;
		try {
			json = JSON.parse(text);
		} catch {
			// The caller looks at the text.
		}
		return { status: Number((map.status ?? '200').split(' ')[0]), headers: map, text, json };
	}
}
