// Terminals of a sandbox: a shell under script(1), spoken to over a web socket.

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

class Pty {
	constructor(box, { id, cols, rows, cwd, envs }) {
		this.box = box;
		this.told = { id, cols, rows, cwd, envs, active: true, lazyStart: false, createdAt: new Date().toISOString() };
		const shell = `tty >/tmp/.pty-${id}; stty cols ${cols} rows ${rows}; exec bash`;
		this.child = box.guest.spawn(['script', '-qfec', shell, '/dev/null'], { cwd: cwd || undefined, stdin: 'pipe',
			env: { TERM: 'xterm-256color', SHELL: '/bin/bash', ...envs } });
		this.child.stdin.on('error', () => {});
	}

	attach(ws) {
		this.ws = ws;
		ws.send(JSON.stringify({ type: 'control', status: 'connected' }));
		for (const stream of [this.child.stdout, this.child.stderr])
			stream.on('data', (part) => ws.readyState === ws.OPEN && ws.send(part, { binary: true }));
		ws.on('message', (data) => this.child.stdin.write(data));
		this.child.on('close', (code, signal) => {
			this.told.active = false;
			const exitCode = signal ? 137 : code;
			const said = { exitCode, exitReason: signal ? 'killed' : '' };
			if (ws.readyState !== ws.OPEN) return;
			ws.send(JSON.stringify({ type: 'control', status: 'exited', ...said }));
			ws.close(exitCode === 0 ? 1000 : 1011, JSON.stringify(said));
		});
	}

	async resize(cols, rows) {
		Object.assign(this.told, { cols, rows });
		const at = `stty -F "$(cat /tmp/.pty-${this.told.id})" cols ${cols} rows ${rows}`;
		const child = this.box.guest.spawn(['sh', '-c', at]);
		await new Promise((resolve) => child.on('close', resolve));
	}

	close() {
		this.box.guest?.signal(this.child, 'SIGKILL', { group: true });
		this.ws?.close(1001);
	}
}

/** The environment travels in a subprotocol. */
function envsOf(ws) {
	const token = ws.protocol?.startsWith('X-Daytona-Pty-Envs~') ? ws.protocol.split('~')[1] : undefined;
	return token ? JSON.parse(Buffer.from(token, 'base64url').toString()) : {};
}

export function openPty(ws, box, rest, query) {
	const created = rest[2] === 'create-connect';
	const id = created ? query.get('id') : rest[2];
	const refuse = (error) => {
		ws.send(JSON.stringify({ type: 'control', status: 'error', error }));
		ws.close(1011, error);
	};
	if (!NAME.test(id ?? '')) return refuse('bad id');
	if (created && box.ptys.has(id)) return refuse('PTY session already exists');
	if (!created && !box.ptys.has(id)) return refuse('PTY session not found');
	if (created) box.ptys.set(id, new Pty(box, { id, cols: Number(query.get('cols') ?? 80), rows: Number(query.get('rows') ?? 24),
		cwd: query.get('cwd'), envs: envsOf(ws) }));
	return box.ptys.get(id).attach(ws);
}

/** /process/pty...; rest is the path behind it. */
export async function ptys(req, box, rest, fail) {
	const [id, what] = rest;
	if (!id) return { status: 200, body: { sessions: [...box.ptys.values()].map((p) => p.told) } };
	const pty = box.ptys.get(id);
	if (!pty) return fail(404, 'PTY session not found', 'NOT_FOUND');
	if (what === 'resize') {
		const { cols, rows } = JSON.parse(req.body);
		await pty.resize(cols, rows);
	} else if (req.method === 'DELETE') {
		pty.close();
		box.ptys.delete(id);
	}
	return { status: 200, body: pty.told };
}
