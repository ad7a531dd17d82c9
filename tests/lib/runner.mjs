// Runners of a test's own, beside the one of the instance, and what any runner has left behind.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { state } from './instance.mjs';
import { until } from './wait.mjs';

/** One call of the bridge contract. */
export function bridge({ url, token }, method, where, body) {
	const at = new URL(`/bridge/v1${where}`, url);
	return new Promise((resolve, reject) => {
		const req = http.request(at, {
			method,
			agent: false,
			headers: { Authorization: `Bearer ${token}`,
				...(body ? { 'Content-Type': 'application/json' } : {}) },
		}, async (res) => {
			const parts = [];
			for await (const part of res) parts.push(part);
			const text = Buffer.concat(parts).toString();
			let json;
			try {
				json = JSON.parse(text);
			} catch {
				// A stream of lines.
			}
			resolve({ status: res.statusCode, text, json });
		});
		req.on('error', reject);
		req.end(body ? JSON.stringify(body) : undefined);
	});
}

/** Ids of the living sandboxes. */
export const sandboxes = async (runner) =>
	(await bridge(runner, 'GET', '/sandboxes')).json.sandboxes.map((box) => box.id);

/** Address and token of the instance's own runner. */
export function instanceRunner() {
	const text = fs.readFileSync(path.join(state, 'runner/connection.json'), 'utf8');
	const { url, token } = JSON.parse(text);
	return { url, token };
}

export async function startRunner({ port = 0, args = [] } = {}) {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-runner-'));
	const file = path.join(dir, 'connection.json');
	fs.chmodSync(dir, 0o755);
	const log = fs.openSync(path.join(state, 'log', 'runner-of-test.log'), 'a');
	const umask = process.umask(0o022);
	const child = spawn(path.join(state, 'bin/compute-runner'), [
		'--listen', `127.0.0.1:${port}`, '--lifetime', '3600', '--connection-file', file, ...args,
	], { env: { PATH: process.env.PATH }, detached: true, stdio: ['ignore', log, log] });
	process.umask(umask);
	fs.closeSync(log);
	process.once('exit', () => child.kill('SIGKILL'));
	const ended = new Promise((resolve) => child.on('exit', resolve));
	child.unref();
	await until('the runner tells its address', () => fs.existsSync(file) && fs.statSync(file).size);
	const { url, token } = JSON.parse(fs.readFileSync(file, 'utf8'));
	const end = (signal) => async () => {
		child.kill(signal);
		await ended;
		fs.rmSync(dir, { recursive: true, force: true });
	};
	return { url, token, port: Number(new URL(url).port), pid: child.pid,
		stop: end('SIGTERM'), kill: end('SIGKILL') };
}

const GROUPS = ['memory', 'pids', 'cpu', 'cpu,cpuacct', 'unified', ''];

function walk(dir, depth, visit) {
	let names;
	try {
		names = fs.readdirSync(dir, { withFileTypes: true });
	} catch {
		return;
	}
	for (const entry of names) {
		if (!entry.isDirectory()) continue;
		visit(path.join(dir, entry.name), entry.name);
		if (depth > 1) walk(path.join(dir, entry.name), depth - 1, visit);
	}
}

/** Control groups and processes of sandboxes whose id begins with `mark`. */
export function leftovers(mark) {
	const groups = new Set();
	const processes = [];
	for (const name of GROUPS)
		walk(path.join('/sys/fs/cgroup', name, 'compute-runner'), 2, (where, base) => {
			if (base.startsWith(mark)) groups.add(fs.realpathSync(where));
		});
	for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
		try {
			if (fs.readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(`/${mark}`))
				processes.push(`${pid} ${fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim()}`);
		} catch {
			// It has just ended.
		}
	}
	return { groups: [...groups], processes };
}

/** Waits until nothing is left of sandboxes whose id begins with `mark`. */
export const nothingLeft = (mark) => until('no process and no group is left', () => {
	const left = leftovers(mark);
	return left.processes.length + left.groups.length === 0 || { missing: left };
});
