// A proxy between connector and runner that widens the states of a job: the requests that lead from
// one state to the next are held back for a moment. It shows the runner its own token, whichever the
// caller has, so that a runner which was started again needs no new key.

import http from 'node:http';

const SLOW = [
	['creating', 'POST', /\/sandboxes$/],
	['uploading', 'PUT', /\/file\?/],
	['uploaded', 'POST', /\/exec$/], // polls as well, which widens "running"
	['ended', 'DELETE', /\/sandboxes\//],
];

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class DelayProxy {
	constructor(delayMs) {
		this.delayMs = delayMs;
		this.sockets = new Set();
	}

	aim({ url, token }) {
		this.target = new URL(url);
		this.token = token;
	}

	async start() {
		this.server = http.createServer((req, res) => this.#serve(req, res).catch(() => req.destroy()));
		this.server.on('connection', (socket) => {
			this.sockets.add(socket);
			socket.on('close', () => this.sockets.delete(socket));
		});
		await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
		this.url = `http://127.0.0.1:${this.server.address().port}`;
		return this;
	}

	stop() {
		this.server.close();
		for (const socket of this.sockets) socket.destroy();
	}

	async #serve(req, res) {
		const slow = SLOW.find(([, method, path]) => method === req.method && path.test(req.url));
		const half = slow ? Math.random() * this.delayMs : 0;
		const parts = [];
		for await (const part of req) parts.push(part);
		await pause(half);
		await new Promise((resolve) => {
			const headers = { ...req.headers, host: this.target.host, connection: 'close' };
			if (headers.authorization) headers.authorization = `Bearer ${this.token}`;
			delete headers['transfer-encoding'];
			const body = Buffer.concat(parts);
			if (body.length) headers['content-length'] = String(body.length);
			const up = http.request({ host: this.target.hostname, port: this.target.port, agent: false,
				method: req.method, path: req.url, headers }, async (reply) => {
				if (slow) await pause(half);
				res.writeHead(reply.statusCode, reply.headers);
				reply.pipe(res);
				reply.on('error', () => req.destroy());
				reply.on('close', resolve);
				res.on('close', () => reply.destroy());
			});
			up.on('error', () => {
				req.destroy(); // as if there were no proxy
				resolve();
			});
			up.end(body);
		});
	}
}
