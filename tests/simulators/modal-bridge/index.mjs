// The Modal bridge of providers/bridges/modal, unchanged under Python; only the modal package has a stand-in
// (standin/modal.py) whose machines are real ones. HTTPS in front of it as for every simulator (lib.mjs).
// Besides: machines (tests/simulators/machines.mjs), and plan, of which nothing can be set.

import { spawn } from 'node:child_process';
import crypto from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import { serve } from '../lib.mjs';
import { Machines } from '../machines.mjs';

const here = import.meta.dirname;
const BRIDGE = path.resolve(here, '../../../providers/bridges/modal');

const opOf = ({ method, path: at }) => {
	if (at === '/health') return 'check';
	if (/\/file$/.test(at)) return method === 'PUT' ? 'put' : 'get';
	if (/\/kill$/.test(at)) return 'kill';
	if (/\/exec\b/.test(at)) return method === 'GET' ? 'follow' : 'exec';
	if (/\/sandboxes$/.test(at)) return method === 'POST' ? 'create' : 'list';
	return method === 'DELETE' ? 'destroy' : 'find';
};

/** Passes one request on to the bridge. */
const ask = (port, req) => new Promise((resolve, reject) => {
	const headers = { ...req.headers, 'content-length': String(req.body.length) };
	const out = http.request({ port, host: '127.0.0.1', method: req.method, path: req.url, headers, agent: false }, resolve);
	out.on('error', reject);
	out.end(req.body);
});

export async function start(options = {}) {
	const token = options.token ?? crypto.randomBytes(32).toString('base64url');
	const machines = await new Machines({ home: '/root' }).listen();
	const python = spawn('python3', ['-B', path.join(here, 'serve.py'), path.join(here, 'standin'), BRIDGE], {
		env: { PATH: process.env.PATH, MACHINES: machines.url, BRIDGE_TOKEN: token }, stdio: ['ignore', 'pipe', 'inherit'],
	});
	process.on('exit', () => python.kill('SIGKILL'));
	const port = await new Promise((resolve, reject) => {
		python.stdout.once('data', (line) => resolve(Number(line)));
		python.once('exit', () => reject(new Error('the bridge did not start')));
	});
	const place = await serve({
		op: opOf,
		answer: async (req) => {
			const reply = await ask(port, req);
			const headers = { ...reply.headers };
			delete headers.connection;
			delete headers['transfer-encoding'];
			return { status: reply.statusCode, headers, stream: async (write) => {
				for await (const part of reply) await write(part);
			} };
		},
	});
	const stop = place.stop.bind(place);
	return Object.assign(place, {
		machines, providerName: 'modal', base: place.url, plan: {}, credential: { token, bridge_url: place.url },
		machineOf: (id) => id,
		boxes: () => machines.history.map(({ name, started, ended }) => ({
			id: name, mark: name, state: ended ? 'stopped' : 'running', started, ended,
			billedMs: (ended ?? Date.now()) - started,
		})),
		async stop() {
			await stop();
			const ended = new Promise((resolve) => python.once('exit', resolve));
			python.kill('SIGKILL');
			await ended;
			await machines.stop();
		},
	});
}
