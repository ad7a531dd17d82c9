// Terminals of a session over a web socket: the client starts one program, types in binary frames and
// reads in binary frames; the end is a text frame with the exit code.

import { randomBytes } from 'node:crypto';
import { WebSocketServer } from 'ws';

const quoted = (word) => `'${word.replaceAll("'", "'\\''")}'`;

export class Terminals {
	#tokens = new Map(); // token -> session
	#server = new WebSocketServer({ noServer: true });

	constructor(origin) {
		this.origin = origin;
	}

	open(session) {
		const token = randomBytes(16).toString('hex');
		this.#tokens.set(token, session);
		return { url: `${this.origin()}/terminal/${session.id}`, token };
	}

	upgrade(req, socket, head) {
		const session = this.#tokens.get(req.query.get('token'));
		if (!session || session.stoppedAt || !req.path.endsWith(session.id))
			return socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
		return this.#server.handleUpgrade(req, socket, head, (ws) => this.#serve(ws, session));
	}

	#serve(ws, session) {
		let child;
		ws.on('message', (data, binary) => {
			if (binary) return child?.stdin.write(data);
			const message = JSON.parse(data);
			if (message.type === 'start' && !child) child = this.#start(ws, session, message);
			return undefined;
		});
		ws.on('error', () => {});
		ws.on('close', () => child && session.guest.signal(child, 'SIGHUP', { group: true }));
	}

	#start(ws, session, { command, args = [], env = [], cwd, cols = 80, rows = 24 }) {
		const line = `stty cols ${Number(cols)} rows ${Number(rows)}; exec ${[command, ...args].map(quoted).join(' ')}`;
		const child = session.guest.spawn(['script', '-qec', line, '/dev/null'], { stdin: 'pipe', cwd: cwd ?? session.cwd,
			env: Object.fromEntries(env.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])) });
		child.stdin.on('error', () => {}); // it has ended
		child.stdout.on('data', (part) => ws.send(part, { binary: true }));
		child.on('close', (code) => {
			ws.send(JSON.stringify({ type: 'exit', code: code ?? 137 }));
			ws.close();
		});
		return child;
	}
}
