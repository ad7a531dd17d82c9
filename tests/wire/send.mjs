// Sends requests: ordinary ones over kept connections, and plain bytes over a TLS connection.
import https from 'node:https';
import tls from 'node:tls';

import { ca, port } from './instance.mjs';

const agents = new Map();

function agentOf(address) {
	if (!agents.has(address))
		agents.set(address, new https.Agent({ keepAlive: true, maxSockets: 4, localAddress: address }));
	return agents.get(address);
}

export function closeAll() {
	for (const agent of agents.values())
		agent.destroy();
}

function finish(reply, resolve, reject) {
	const parts = [];
	reply.on('data', (part) => parts.push(part));
	reply.on('error', reject);
	reply.on('end', () => {
		const body = Buffer.concat(parts);
		resolve({ status: reply.statusCode, headers: reply.headers, raw: reply.rawHeaders, body, text: body.toString() });
	});
}

// headers: name to value or list of values (a header sent twice). from: the client's own address.
export function send({ method, path, headers = {}, body, chunked = false, from = '127.0.0.1' }) {
	return new Promise((resolve, reject) => {
		const all = { ...headers };
		if (body && !chunked)
			all['Content-Length'] = body.length;
		const request = https.request({ host: '127.0.0.1', servername: 'localhost', port, ca, method, path,
			headers: { Host: `localhost:${port}`, ...all }, agent: agentOf(from) },
		(reply) => finish(reply, resolve, reject));
		request.on('error', reject);
		request.end(body);
	});
}

// Writes the pieces one after the other and collects what comes until the server closes.
// hang: the client leaves after its last piece without waiting for anything.
export function sendBytes(pieces, { hang = false, until = () => false } = {}) {
	return new Promise((resolve, reject) => {
		const socket = tls.connect({ host: '127.0.0.1', servername: 'localhost', port, ca });
		let got = Buffer.alloc(0);
		const end = () => {
			socket.destroy();
			resolve(got.toString('latin1'));
		};
		socket.on('data', (part) => {
			got = Buffer.concat([got, part]);
			if (until(got.toString('latin1')))
				end();
		});
		socket.on('close', end);
		socket.on('error', (e) => (['ECONNRESET', 'EPIPE'].includes(e.code) ? end() : reject(e)));
		socket.on('secureConnect', async () => {
			for (const piece of pieces)
				await new Promise((written) => socket.write(piece, written));
			if (hang)
				end();
		});
	});
}
