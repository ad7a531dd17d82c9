// Benchmarks of a private instance. Prints figures as a table and as JSON, and one line per target.
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { bridge, serve } from './bridge.mjs';
import { clouds } from './clouds.mjs';
import { eras, streams } from './mcp.mjs';
import { peer } from './peer.mjs';
import { account, admin, allowOrigins, dev, owner, servicePid } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';

const run = promisify(execFile);
const here = import.meta.dirname;
const tmp = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-bench-'));
const ticks = Number((await run('getconf', ['CLK_TCK'])).stdout);
const seconds = Number(process.env.BENCH_SECONDS ?? 10);
const results = {};
const targets = [];

/** A target is reported, met or not; a miss is told, it does not fail the run. */
function target(name, value, bound, unit) {
	targets.push({ name, value, bound, met: value <= bound });
	console.log(`${value <= bound ? 'met   ' : 'MISSED'} ${name}: ${value.toFixed(2)} ${unit}, at most ${bound} ${unit}`);
}

function parentOf(pid) {
	try {
		return Number(fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1]);
	} catch {
		return 0;
	}
}

/** The processes below these, themselves included. */
function family(roots) {
	const all = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);
	return all.filter((pid) => {
		for (let p = pid; p > 1; p = parentOf(p)) if (roots.includes(p)) return true;
		return false;
	});
}

function cpu(pids) {
	let sum = 0;
	for (const pid of pids) {
		try {
			const f = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
			sum += Number(f[11]) + Number(f[12]);
		} catch {
			// It ended meanwhile.
		}
	}
	return sum / ticks;
}

function rssKb(pids) {
	let sum = 0;
	for (const pid of pids) {
		try {
			sum += Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
		} catch {
			// It ended meanwhile.
		}
	}
	return sum;
}

const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];

async function wrk(url, keys, body, connections, headers = '') {
	const keyFile = path.join(tmp, 'keys');
	fs.writeFileSync(keyFile, `${keys.join('\n')}\n`, { mode: 0o600 });
	const env = { ...process.env, KEYS: keyFile, BODY: body, HEADERS: headers, TARGET: new URL(url).pathname };
	const { stdout } = await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', path.join(here, 'load.lua'), url], { env });
	return JSON.parse(/RESULT (.*)/.exec(stdout)[1]);
}

async function measured(name, roots, url, keys, body, { connections = 64, headers = '' } = {}) {
	await wrk(url, keys, body, connections, headers); // warm
	const pids = family(roots);
	const before = cpu(pids);
	const r = await wrk(url, keys, body, connections, headers);
	r.cpu_us = (cpu(pids) - before) / r.requests * 1e6;
	r.rate = r.requests / r.seconds;
	results[name] = r;
	console.log(`${name}: ${r.rate.toFixed(0)} requests/s, ${r.cpu_us.toFixed(0)} us CPU each, p50 ${r.p50_ms.toFixed(1)} ms, p99 ${r.p99_ms.toFixed(1)} ms, ${r.bad} bad`);
	return r;
}

async function calls() {
	const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'check_memory', arguments: { free_mb: 1500, job: 'npm ci' } } });
	const sdk = await peer(1);
	const keys = [];
	for (let i = 0; i < 64; i++) keys.push((await account('free')).key);
	const roots = [await servicePid('nginx'), await servicePid('connector'), await servicePid('mariadb')];
	const ours = await measured('check_memory, 64 accounts', roots, `${dev.url}/mcp`, keys, body);
	const peers = await measured('peer, trivial tool, plain http', [sdk.pid], sdk.url, ['-'], body);
	await measured('check_memory, one hot account', roots, `${dev.url}/mcp`, keys.slice(0, 1), body);
	await measured('check_memory, no key', roots, `${dev.url}/mcp`, ['-'], body);
	sdk.stop();
	target('CPU per check_memory against the peer', ours.cpu_us / peers.cpu_us, 0.2, 'of the peer');
	target('99 % of check_memory at 64 connections', ours.p99_ms, 10, 'ms');
	if (ours.bad) throw new Error(`${ours.bad} bad answers`);
}

async function ownTime() {
	const me = owner();
	const own = [];
	for (let i = 0; i < 120; i++) {
		const job = await me.job({ cmd: 'true', files: [{ path: 'a.txt', content: 'x' }] });
		if (job.outcome !== 'succeeded') throw new Error(JSON.stringify(job));
		if (i >= 20) own.push(job.timings.own_ms);
	}
	results.own_ms = { median: quantile(own, 0.5), p99: quantile(own, 0.99) };
	target('own time of run_job, median', results.own_ms.median, 1, 'ms');
	target('own time of run_job, 99 %', results.own_ms.p99, 5, 'ms');
}

async function burst() {
	const me = owner();
	const began = performance.now();
	const jobs = await Promise.all(Array.from({ length: 100 }, () => me.job({ cmd: 'sleep 1', wait_s: 240 })));
	const wall = performance.now() - began;
	const bad = jobs.filter((job) => job.outcome !== 'succeeded');
	if (bad.length) throw new Error(`${bad.length} jobs of 100 failed: ${JSON.stringify(bad[0])}`);
	const slowest = Math.max(...jobs.map((j) => j.timings.create_ms + j.timings.upload_ms + j.timings.run_ms + (j.timings.stop_ms ?? 0)));
	results.burst = { wall_ms: wall, slowest_ms: slowest };
	target('100 jobs at once against the slowest provider time', wall / slowest, 1.2, 'times');
}

async function waiting() {
	const token = 'x'.repeat(43);
	const { server, state } = bridge(token);
	const url = await serve(server);
	await allowOrigins([url]);
	const me = await account('pro');
	const saved = await me.rest('save_provider_key', { provider: 'tunnel', token, bridge_url: url, make_default: true });
	if (saved.status !== 200) throw new Error(saved.text);
	const roots = [await servicePid('connector')];
	const before = rssKb(family(roots));
	const n = Number(process.env.BENCH_WAITING ?? 2000);
	const pending = [];
	for (let i = 0; i < n; i += 50) {
		const some = Array.from({ length: Math.min(50, n - i) }, () => me.rest('run_job', { cmd: 'true', wait_s: 0, timeout_s: 3000 }));
		pending.push(...(await Promise.all(some)).map((r) => { if (r.status !== 200) throw new Error(r.text); return r.json.job_id; }));
	}
	await until('every job polls', () => state.waiters.size >= n, 240000);
	const during = rssKb(family(roots));
	const cpuBefore = cpu(family(roots));
	await new Promise((resolve) => { setTimeout(resolve, 20000); });
	const idle = (cpu(family(roots)) - cpuBefore) / 20;
	state.end();
	await until('every job ends', () => state.alive.size === 0, 600000);
	server.close();
	results.waiting = { jobs: n, kb_each: (during - before) / n, cpu_share: idle };
	console.log(`${n} waiting jobs: ${results.waiting.kb_each.toFixed(1)} KB each, ${(idle * 100).toFixed(1)} % of a core`);
	target('10 000 waiting jobs on a node', results.waiting.kb_each * 10000 / 1048576, 1.5, 'GB');
}

const figures = { cpu, family, rssKb, quantile, measured, target, results };
const parts = { calls, eras: () => eras(figures), streams: () => streams(figures), ownTime, burst, waiting,
	clouds: () => clouds(figures) };
let [passed, failed] = [0, 0];
for (const [name, part] of Object.entries(parts)) {
	if (process.env.BENCH && !process.env.BENCH.split(',').includes(name)) continue;
	console.log(`-- ${name}`);
	try {
		await part();
		passed += 1;
	} catch (e) {
		failed += 1;
		console.log(`${name} failed: ${e.stack}`);
	}
}
fs.rmSync(tmp, { recursive: true });
console.log(JSON.stringify({ results, targets }));
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
