// A stand-in bridge whose jobs run until told to end: for counting what a waiting job costs. It speaks
// sbx-bridge v1 and answers the spool's polls without running anything.
import { once } from 'node:events';
import http from 'node:http';

export function bridge(token) {
	const state = { created: 0, alive: new Set(), polls: 0, ended: false, waiters: new Set() };
	const json = (res, status, value) => {
		const text = JSON.stringify(value);
		res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
		res.end(text);
	};
	const view = (id) => ({ id, state: 'running', created_at: Date.now() / 1000, expires_at: Date.now() / 1000 + 900, labels: {} });
	const answer = (res, execId, text) => {
		res.write(`${JSON.stringify({ t: 'out', s: 'stdout', o: 0, d: Buffer.from(text).toString('base64') })}\n`);
		res.end(`${JSON.stringify({ t: 'exit', code: 0, timed_out: false })}\n`);
	};
	const poll = (res, execId, wait) => {
		state.polls += 1;
		const first = execId.endsWith('-start') ? 'sbx1 started\n' : '';
		const done = () => {
			state.waiters.delete(finish);
			answer(res, execId, first + (state.ended ? 'sbx1 done 0 0 0 0 0 0 1048576 0\n\n\n' : 'sbx1 run - 0 0 0 0 0 1048576 0\n\n\n'));
		};
		const timer = setTimeout(done, wait * 1000);
		const finish = () => { clearTimeout(timer); done(); };
		if (state.ended || wait === 0) finish();
		else state.waiters.add(finish);
	};
	const server = http.createServer(async (req, res) => {
		const parts = [];
		for await (const part of req) parts.push(part);
		const body = Buffer.concat(parts);
		const url = new URL(req.url, 'http://x');
		if (url.pathname === '/health')
			return json(res, 200, { ok: true, contract: 'sbx-bridge', version: 1, minor: 1, provider: 'runner', features: [], limits: {} });
		if (req.headers.authorization !== `Bearer ${token}`) return json(res, 401, { error: { code: 'unauthorized', message: 'no' } });
		const [, , , , id, kind] = url.pathname.split('/');
		if (!id && req.method === 'GET') return json(res, 200, { sandboxes: [...state.alive].map(view) });
		if (!id) {
			const ask = JSON.parse(body);
			state.created += 1;
			state.alive.add(ask.id);
			return json(res, 201, view(ask.id));
		}
		if (req.method === 'DELETE') {
			state.alive.delete(id);
			return json(res, 200, { id, state: 'stopped' });
		}
		if (kind === 'file') return json(res, 200, { size: body.length });
		if (kind !== 'exec') return json(res, 200, view(id));
		const ask = JSON.parse(body);
		res.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
		res.write(`${JSON.stringify({ t: 'start', exec_id: ask.exec_id })}\n`);
		const params = ask.argv.slice(4);
		if (params.length === 5) return poll(res, ask.exec_id, Number(params[4]));
		return answer(res, ask.exec_id, 'sbx1 sent\n');
	});
	state.end = () => { state.ended = true; for (const finish of [...state.waiters]) finish(); };
	return { server, state };
}

/** Listens where there is room; gives the address. */
export async function serve(server) {
	server.listen(0, '127.0.0.1');
	await once(server, 'listening');
	return `http://127.0.0.1:${server.address().port}`;
}
