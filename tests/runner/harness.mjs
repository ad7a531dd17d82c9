// Starts compute-runner for tests and speaks the bridge contract to it.
import { spawn, spawnSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const here = path.dirname(new URL(import.meta.url).pathname);
const top = path.resolve(here, '../..');
export const isRoot = process.getuid() === 0;
export const PLAIN_UID = 47611; // an account number that no user has; only namespaces need it

function buildFolder() {
	const all = [process.env.CC_BUILD, 'build/dev', 'build/release', 'build/runner'].filter(Boolean);
	const found = all.map((p) => path.resolve(top, p)).find((p) => fs.existsSync(`${p}/compute-runner`));
	if (!found) throw new Error('build compute-runner first (CC_BUILD names the folder)');
	return found;
}

// A folder that the plain user can reach, with copies of the programs.
export const work = fs.mkdtempSync('/var/tmp/runner-test-');
fs.chmodSync(work, 0o755);
for (const name of ['compute-runner', 'compute-runner-init'])
	fs.copyFileSync(`${buildFolder()}/${name}`, `${work}/${name}`);
export const program = `${work}/compute-runner`;

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits for a condition, never for a time that is hoped to be enough.
export async function until(what, probe, ms = 20000) {
	for (const end = Date.now() + ms; Date.now() < end; await wait(20)) {
		const v = await probe();
		if (v) return v;
	}
	throw new Error(`waited in vain for ${what}`);
}

let folders = 0;
export function freshFolder(uid) {
	const p = `${work}/f${++folders}`;
	fs.mkdirSync(p, { mode: 0o700 });
	if (uid) fs.chownSync(p, uid, uid);
	return p;
}

const running = new Set();

// mode 'root' or 'plain'; extra: environment. Resolves when the connection file is there.
export async function startRunner(mode, args = [], extra = {}) {
	const uid = mode === 'plain' && isRoot ? PLAIN_UID : 0;
	const folder = freshFolder(uid);
	const file = `${folder}/connection.json`;
	const own = ['--connection-file', file, ...args];
	const [cmd, argv] = uid
		? ['setpriv', ['--reuid', uid, '--regid', uid, '--clear-groups', program, ...own].map(String)]
		: [program, own];
	const child = spawn(cmd, argv, {
		env: { PATH: process.env.PATH, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '', ...extra }, stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' });
	const r = { child, file, folder, log: '', exit: null };
	child.stderr.on('data', (d) => { r.log += d; });
	child.stdout.on('data', (d) => { r.log += d; });
	r.ended = new Promise((resolve) => child.on('exit', (code, signal) => {
		r.exit = { code, signal };
		running.delete(r);
		resolve(r.exit);
	}));
	running.add(r);
	await until(`the runner (${r.log})`, () => {
		if (r.exit) throw new Error(`the runner ended: ${JSON.stringify(r.exit)} ${r.log}`);
		return fs.existsSync(file);
	});
	Object.assign(r, JSON.parse(fs.readFileSync(file, 'utf8')));
	r.agent = new http.Agent({ keepAlive: true, maxSockets: 200 });
	r.stop = async (signal = 'SIGTERM') => {
		process.kill(r.pid, signal);
		await r.ended;
		r.agent.destroy();
		if (/runtime error|Sanitizer/.test(r.log)) throw new Error(r.log);
	};
	return r;
}

// Runs it to its end, for refusals.
export function runOnce(args, mode = isRoot ? 'root' : 'plain') {
	const uid = mode === 'plain' && isRoot;
	const argv = uid ? ['setpriv', '--reuid', PLAIN_UID, '--regid', PLAIN_UID, '--clear-groups', program, ...args]
		: [program, ...args];
	return spawnSync(String(argv[0]), argv.slice(1).map(String), { encoding: 'utf8', timeout: 20000 });
}

export function cleanUp() {
	for (const r of running) try { process.kill(r.pid ?? r.child.pid, 'SIGKILL'); } catch { /* gone */ }
	fs.rmSync(work, { recursive: true, force: true });
}

// One request; body: undefined, object (JSON), string or Buffer. Returns status, headers, bytes, json.
export function call(r, method, url, body, options = {}) {
	const headers = { authorization: `Bearer ${r.token}`, ...options.headers };
	for (const k of Object.keys(headers)) if (headers[k] === null) delete headers[k];
	const data = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
		? body : JSON.stringify(body);
	if (data !== undefined) headers['content-length'] = Buffer.byteLength(data);
	const target = r.url.startsWith('unix:') ? { socketPath: r.url.slice(5) }
		: { host: '127.0.0.1', port: new URL(r.url).port };
	return new Promise((resolve, reject) => {
		const req = http.request({ ...target, method, path: url, headers, agent: r.agent }, (res) => {
			const parts = [];
			res.on('data', (d) => { parts.push(d); options.onData?.(d); });
			res.on('error', reject);
			res.on('end', () => {
				const bytes = Buffer.concat(parts);
				let json;
				try { json = JSON.parse(bytes); } catch { /* not JSON */ }
				resolve({ status: res.statusCode, headers: res.headers, bytes, json });
			});
		});
		req.on('error', reject);
		options.onRequest?.(req);
		req.end(data);
	});
}

export const BASE = '/bridge/v1/sandboxes';
let ids = 0;
export const newId = () => `box-${process.pid}-${++ids}-${crypto.randomBytes(3).toString('hex')}`;
export const newExec = () => `exec-${++ids}-${crypto.randomBytes(4).toString('hex')}`;

export async function create(r, more = {}) {
	const id = more.id ?? newId();
	const a = await call(r, 'POST', BASE, { ttl_seconds: 300, ...more, id });
	if (a.status !== 201 && a.status !== 200) throw new Error(`create: ${a.status} ${a.bytes}`);
	return id;
}
export const destroy = (r, id) => call(r, 'DELETE', `${BASE}/${id}`);

// Reads a stream of frames; checks offsets; returns frames and the two outputs.
export function frames(answer, from = [0, 0]) {
	const list = answer.bytes.toString().split('\n').filter(Boolean).map((l) => JSON.parse(l));
	const at = { stdout: from[0], stderr: from[1] };
	const parts = { stdout: [], stderr: [] };
	for (const f of list) {
		if (f.t !== 'out') continue;
		if (f.o !== at[f.s]) throw new Error(`offset ${f.o}, expected ${at[f.s]}`);
		const d = Buffer.from(f.d, 'base64');
		if (d.length > 262144) throw new Error('frame too large');
		parts[f.s].push(d);
		at[f.s] += d.length;
	}
	return { list, last: list.at(-1), out: Buffer.concat(parts.stdout), err: Buffer.concat(parts.stderr) };
}

export const execRaw = (r, id, body) => call(r, 'POST', `${BASE}/${id}/exec`, { exec_id: newExec(), ...body });
export async function exec(r, id, argv, more = {}) {
	const a = await execRaw(r, id, { argv, follow_ms: 60000, ...more });
	if (a.status !== 200) throw new Error(`exec: ${a.status} ${a.bytes}`);
	const f = frames(a);
	return { ...f, code: f.last.t === 'exit' ? f.last.code : undefined, text: f.out.toString() };
}
export const sh = (r, id, text, more) => exec(r, id, ['sh', '-c', text], more);
export const follow = async (r, id, execId, query, from) =>
	frames(await call(r, 'GET', `${BASE}/${id}/exec/${execId}?${query}`), from);
export const fileUrl = (id, p, more = '') => `${BASE}/${id}/file?path=${encodeURIComponent(p)}${more}`;

// Processes of this machine whose command line holds the text.
export function processesWith(text) {
	return fs.readdirSync('/proc').filter((p) => /^\d+$/.test(p)).filter((p) => {
		try { return fs.readFileSync(`/proc/${p}/cmdline`, 'latin1').includes(text); } catch { return false; }
	}).map(Number).filter((p) => p !== process.pid);
}

// Control group folders of runners, by their own name.
export function groups(name = 'compute-runner') {
	const found = spawnSync('find', ['/sys/fs/cgroup', '-type', 'd', '-name', `${name}*`], { encoding: 'utf8' });
	return found.stdout.split('\n').filter(Boolean);
}
export const mounts = () => fs.readFileSync('/proc/self/mounts', 'utf8');
export const children = (pid) => spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' })
	.stdout.split('\n').map(Number).filter(Boolean);
