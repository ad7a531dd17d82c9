// Speaks the bridge contract to a place (tests/simulators), and reads streams of commands strictly.
import crypto from 'node:crypto';
import https from 'node:https';

const agent = new https.Agent({ keepAlive: true, maxSockets: 50, rejectUnauthorized: false });

export const BASE = '/bridge/v1/sandboxes';
let ids = 0;
export const newId = () => `box-${process.pid}-${++ids}-${crypto.randomBytes(3).toString('hex')}`;
export const newExec = () => `exec-${++ids}-${crypto.randomBytes(4).toString('hex')}`;
export const fileUrl = (id, p, more = '') => `${BASE}/${id}/file?path=${encodeURIComponent(p)}${more}`;

/** One request; body: undefined, object (JSON), string or Buffer. A header of null is left out. */
export function call(place, method, url, body, { headers = {}, onData, onRequest } = {}) {
	const all = { authorization: `Bearer ${place.credential.token}`, ...headers };
	for (const name of Object.keys(all)) if (all[name] === null) delete all[name];
	const data = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
	if (data !== undefined) all['content-length'] = Buffer.byteLength(data);
	return new Promise((resolve, reject) => {
		const req = https.request(place.url + url, { method, headers: all, agent }, (res) => {
			const parts = [];
			res.on('data', (part) => { parts.push(part); onData?.(part); });
			res.on('error', reject);
			res.on('end', () => {
				const bytes = Buffer.concat(parts);
				let json;
				try { json = JSON.parse(bytes); } catch { /* not JSON */ }
				resolve({ status: res.statusCode, headers: res.headers, bytes, json });
			});
		});
		req.on('error', reject);
		onRequest?.(req);
		req.end(data);
	});
}

export async function create(place, more = {}) {
	const id = more.id ?? newId();
	const a = await call(place, 'POST', BASE, { ttl_seconds: 300, ...more, id });
	if (a.status !== 201 && a.status !== 200) throw new Error(`create: ${a.status} ${a.bytes}`);
	return id;
}
export const destroy = (place, id) => call(place, 'DELETE', `${BASE}/${id}`);

/** The frames of a stream and both outputs; a gap or a frame behind the last one is an error. */
export function frames(answer, from = [0, 0]) {
	const list = answer.bytes.toString().split('\n').filter(Boolean).map((line) => JSON.parse(line));
	const at = { stdout: from[0], stderr: from[1] };
	const parts = { stdout: [], stderr: [] };
	for (const [i, f] of list.entries()) {
		if (['exit', 'pending', 'error'].includes(f.t) !== (i === list.length - 1)) throw new Error(`frame ${i}: ${f.t}`);
		if (f.t !== 'out') continue;
		if (f.o !== at[f.s]) throw new Error(`offset ${f.o}, expected ${at[f.s]}`);
		const data = Buffer.from(f.d, 'base64');
		if (data.length > 262144) throw new Error('frame too large');
		parts[f.s].push(data);
		at[f.s] += data.length;
	}
	return { list, last: list.at(-1), out: Buffer.concat(parts.stdout), err: Buffer.concat(parts.stderr) };
}

export const execRaw = (place, id, body) => call(place, 'POST', `${BASE}/${id}/exec`, { exec_id: newExec(), ...body });
export async function exec(place, id, argv, more = {}) {
	const a = await execRaw(place, id, { argv, follow_ms: 60000, ...more });
	if (a.status !== 200) throw new Error(`exec: ${a.status} ${a.bytes}`);
	const f = frames(a);
	return { ...f, code: f.last.t === 'exit' ? f.last.code : undefined, text: f.out.toString() };
}
export const sh = (place, id, text, more) => exec(place, id, ['sh', '-c', text], more);
export const follow = async (place, id, execId, query, from) =>
	frames(await call(place, 'GET', `${BASE}/${id}/exec/${execId}?${query}`), from);
