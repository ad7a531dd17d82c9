// MCP against the servers of the official SDKs in one run, and what a thousand waiting event streams cost.
import { once } from 'node:events';
import https from 'node:https';
import { account, allowOrigins, dev, servicePid } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { bridge, serve } from './bridge.mjs';
import { peer } from './peer.mjs';

const MODERN = '2026-07-28';
const META = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} };
const CALL = { name: 'check_memory', arguments: { free_mb: 1500, job: 'npm ci' } };

const modern = (method, params = {}) => ({
	body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } }),
	headers: [`MCP-Protocol-Version: ${MODERN}`, `Mcp-Method: ${method}`, ...(params.name ? [`Mcp-Name: ${params.name}`] : [])].join('\n'),
});
const legacy = (method, params = {}) => ({ body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers: '' });

const QUESTIONS = {
	'server/discover, modern': { ...modern('server/discover'), peers: ['2'] },
	'tools/list, modern': { ...modern('tools/list'), peers: ['2'] },
	'tools/list, legacy': { ...legacy('tools/list'), peers: ['1', '2'] },
	'tools/call, modern': { ...modern('tools/call', CALL), peers: ['2'] },
	'tools/call, legacy': { ...legacy('tools/call', CALL), peers: ['1', '2'] },
};

/** Requests a second and core: ours (TLS, key, database and all) and the peers' (plain HTTP, nothing stored). */
export async function eras({ measured, results }) {
	const peers = {};
	for (const n of ['1', '2']) peers[n] = await peer(n);
	const keys = [];
	for (let i = 0; i < 16; i++) keys.push((await account('free')).key);
	const roots = await Promise.all(['nginx', 'connector', 'mariadb'].map(servicePid));
	for (const [what, { body, headers, peers: asked }] of Object.entries(QUESTIONS)) {
		const ours = await measured(what, roots, `${dev.url}/mcp`, keys, body, { headers });
		if (ours.bad) throw new Error(`${what}: ${ours.bad} bad answers`);
		for (const n of asked) {
			const theirs = await measured(`${what}, SDK ${n}.x`, [peers[n].pid], peers[n].url, ['-'], body, { headers });
			results[`${what} against ${n}.x`] = theirs.cpu_us / ours.cpu_us;
			console.log(`${what}: ${(1e6 / ours.cpu_us).toFixed(0)} a second and core, SDK ${n}.x ${(1e6 / theirs.cpu_us).toFixed(0)}: `
				+ `${(theirs.cpu_us / ours.cpu_us).toFixed(2)} times as many`
				+ `${theirs.bad ? `; ${theirs.bad} of the peer's calls were not answered` : ''}`);
		}
	}
	for (const { stop } of Object.values(peers)) stop();
}

/** One call that waits with an event stream; resolves at its first event with the time that took. */
function stream(key) {
	const { body } = modern('tools/call', { name: 'run_job', arguments: { cmd: 'true', wait_s: 240, timeout_s: 3000 } });
	const asking = JSON.parse(body);
	asking.params._meta = { ...META, progressToken: 1 };
	const began = performance.now();
	return new Promise((resolve, reject) => {
		const req = https.request(`${dev.url}/mcp`, { method: 'POST', agent: false, headers: {
			'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', Authorization: `Bearer ${key}`,
			'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'run_job' } }, (res) => {
			let last;
			res.on('data', () => {
				const now = performance.now();
				if (last === undefined) resolve({ first: now - began, gaps, done: once(res, 'close') });
				else gaps.push(now - last);
				last = now;
			});
			res.on('error', () => {});
			const gaps = [];
		});
		req.on('error', reject);
		req.end(JSON.stringify(asking));
	});
}

export async function streams({ family, rssKb, quantile, results }) {
	const token = 'x'.repeat(43);
	const { server, state } = bridge(token);
	const url = await serve(server);
	await allowOrigins([url]);
	const me = await account('pro');
	const saved = await me.rest('save_provider_key', { provider: 'tunnel', token, bridge_url: url, make_default: true });
	if (saved.status !== 200) throw new Error(saved.text);
	const roots = await Promise.all(['connector', 'nginx'].map(servicePid));
	const before = rssKb(family(roots));
	const n = Number(process.env.BENCH_STREAMS ?? 1000);
	const open = [];
	for (let i = 0; i < n; i += 25) open.push(...await Promise.all(Array.from({ length: Math.min(25, n - i) }, () => stream(me.key))));
	await until('every job polls', () => state.waiters.size >= n, 240000);
	const kb = (rssKb(family(roots)) - before) / n;
	await until('every stream spoke again', () => open.every((s) => s.gaps.length > 0), 60000);
	const gaps = open.flatMap((s) => s.gaps);
	state.end();
	await Promise.all(open.map((s) => s.done));
	server.close();
	const firsts = open.map((s) => s.first);
	results.streams = { n, kb, first_ms: [quantile(firsts, 0.5), quantile(firsts, 0.99)], gap_ms: [quantile(gaps, 0.5), Math.max(...gaps)] };
	console.log(`${n} event streams: ${kb.toFixed(0)} KB each in connector and nginx; first event after ${quantile(firsts, 0.5).toFixed(0)} ms `
		+ `(99 % ${quantile(firsts, 0.99).toFixed(0)} ms, 25 begun at a time); then one every ${(quantile(gaps, 0.5) / 1000).toFixed(1)} s, `
		+ `at most ${(Math.max(...gaps) / 1000).toFixed(1)} s apart`);
}
