// A provider that remembers every byte it was sent. It takes one token of its own and passes what comes
// on to a runner with that runner's token; or it makes trouble:
//
//   pass      as the runner answers
//   refuse    401 to everything but the question whether it lives
//   tell      500, and the body repeats all that was sent
//   redirect  307 to another address

import http from 'node:http';

export class Recorder {
	received = [];
	mode = 'pass';

	constructor(runner, token) {
		this.runner = runner;
		this.token = token;
	}

	async start() {
		this.server = http.createServer((req, res) => this.#serve(req, res).catch(() => req.destroy()));
		await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
		this.url = `http://127.0.0.1:${this.server.address().port}`;
		return this;
	}

	async #serve(req, res) {
		const parts = [];
		for await (const part of req) parts.push(part);
		const body = Buffer.concat(parts);
		const head = `${req.method} ${req.url}\n${req.rawHeaders.join('\n')}\n\n`;
		this.received.push(Buffer.concat([Buffer.from(head), body]));
		const health = req.url.endsWith('/health'); // asked without a token
		const authorized = req.headers.authorization === `Bearer ${this.token}`;
		if (!health && (this.mode === 'refuse' || !authorized)) {
			const error = { code: 'unauthorized', message: `no such token: ${req.headers.authorization}` };
			res.writeHead(401, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error }));
		} else if (this.mode === 'tell') {
			const error = { code: 'internal', message: head, body: body.toString('base64') };
			res.writeHead(500, { 'Content-Type': 'application/json', 'X-Seen': `${req.headers.authorization}` })
				.end(JSON.stringify({ error }));
		} else if (this.mode === 'redirect') {
			res.writeHead(307, { Location: this.elsewhere + req.url }).end();
		} else {
			await this.#pass(req, res, body);
		}
	}

	#pass(req, res, body) {
		const headers = { ...req.headers, authorization: `Bearer ${this.runner.token}`, connection: 'close' };
		delete headers['transfer-encoding'];
		if (body.length) headers['content-length'] = String(body.length);
		return new Promise((resolve) => {
			const up = http.request(this.runner.url + req.url, { method: req.method, headers, agent: false },
				(reply) => {
					res.writeHead(reply.statusCode, reply.headers);
					reply.pipe(res);
					reply.on('error', () => req.socket.destroy());
					res.on('close', () => reply.destroy());
					resolve();
				});
			up.on('error', () => {
				req.socket.destroy();
				resolve();
			});
			up.end(body);
		});
	}

	stop() {
		const closed = new Promise((resolve) => this.server.close(resolve));
		this.server.closeAllConnections();
		return closed;
	}
}
