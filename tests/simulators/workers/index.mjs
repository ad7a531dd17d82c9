// Workers Sandbox, as a user has it deployed: the Worker of providers/bridges/workers, or the vendor's own
// bridge ({ dialect: 'vendor' }), unchanged in the real Workers runtime; only the class that needs a
// container has a stand-in (sandbox.mjs). HTTPS in front of it as for every simulator (lib.mjs). Besides:
//
//   machines     tests/simulators/machines.mjs; machines.lose(place.machineOf(id)) replaces one
//   redeploy()   the same Worker is deployed once more: what is under way is cut, machines live on
//   beyondMs     a machine that a call started behind the end of its sandbox may live so much longer than the
//                job: the bridge looks again two minutes later
//   plan         nothing can be set: size and number are fixed when a bridge is deployed

import crypto from 'node:crypto';
import path from 'node:path';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { serve } from '../lib.mjs';
import { Machines } from '../machines.mjs';

const here = import.meta.dirname;
const modules = path.resolve(here, '../../node_modules');
const REAL = path.join(modules, '@cloudflare/sandbox/dist');
const OURS = path.resolve(here, '../../../providers/bridges/workers/src/index.ts');

const VENDORS = `
	export { Sandbox } from '@cloudflare/sandbox';
	export { WarmPool } from '@cloudflare/sandbox/bridge';
	import { bridge } from '@cloudflare/sandbox/bridge';
	export default bridge({});`;

/** One file, as wrangler would make it, with the stand-in in place of the SDK's class. */
async function bundle(dialect) {
	const entry = dialect === 'vendor' ? { stdin: { contents: VENDORS, resolveDir: here } } : { entryPoints: [OURS] };
	const standIn = {
		name: 'stand-in',
		setup(b) {
			b.onResolve({ filter: /^@cloudflare\/sandbox$/ }, () => ({ path: path.join(here, 'sandbox.mjs') }));
			b.onResolve({ filter: /^the-real-sandbox$/ }, () => ({ path: path.join(REAL, 'index.js') }));
			b.onResolve({ filter: /^@cloudflare\/sandbox\/bridge$/ }, () => ({ path: path.join(REAL, 'bridge/index.js') }));
		},
	};
	const { outputFiles } = await build({
		...entry, bundle: true, write: false, format: 'esm', target: 'es2022', conditions: ['workerd', 'import'],
		external: ['cloudflare:*', 'node:*'], loader: { '.sh': 'text' }, plugins: [standIn], logLevel: 'error',
	});
	return outputFiles[0].text;
}

/** The mark in an id of the vendor's bridge, which allows no dashes; our bridge's id is the mark. */
const markOf = (id) => (id.length === 34 ? `${id.slice(0, 2)}-${id.slice(2, 8)}-${id.slice(8)}` : id);

const opOf = ({ method, path: at, body }) => {
	if (at === '/health') return 'check';
	if (/\/file(\/|$)/.test(at)) return method === 'PUT' ? 'put' : 'get';
	if (/\/kill$/.test(at)) return 'kill';
	if (/^\/v1\/.*\/exec$/.test(at) && body.includes('mkdir -p /tmp/.sbx"')) return 'create';
	if (/^\/v1\/.*\/exec$/.test(at) && body.includes('"/workspace/.sbx-')) return 'move';
	if (/\/exec\b/.test(at)) return method === 'GET' ? 'follow' : 'exec';
	if (/^\/v1\/pool\/stats$/.test(at)) return 'check';
	if (/\/sandboxes?$/.test(at)) return method === 'POST' ? 'create' : body.length ? 'other' : 'list';
	if (method === 'DELETE') return 'destroy';
	return 'find';
};

/** A reply of fetch as an answer of lib.mjs. */
const passedOn = (reply) => {
	const headers = Object.fromEntries(reply.headers);
	delete headers['transfer-encoding'];
	if (!/ndjson|event-stream/.test(headers['content-type'] ?? ''))
		return reply.arrayBuffer().then((body) => ({ status: reply.status, headers, body: Buffer.from(body) }));
	return { status: reply.status, headers, stream: async (write) => {
		for await (const part of reply.body) await write(Buffer.from(part));
	} };
};

export async function start(options = {}) {
	const dialect = options.dialect ?? 'ours';
	const token = options.token ?? crypto.randomBytes(32).toString('base64url');
	const machines = await new Machines({ home: '/workspace', replaces: true }).listen();
	const mine = { useSQLite: true };
	const objects = dialect === 'vendor' ? { WarmPool: { className: 'WarmPool', ...mine } }
		: { Registry: { className: 'Registry', ...mine } };
	const deployment = {
		modules: [{ type: 'ESModule', path: 'worker.mjs', contents: await bundle(dialect) }],
		compatibilityDate: '2026-07-01', compatibilityFlags: ['nodejs_compat'],
		durableObjects: { Sandbox: { className: 'Sandbox', ...mine }, ...objects },
		bindings: { MACHINES: machines.url, SANDBOX_TRANSPORT: 'rpc',
			...(token && { [dialect === 'vendor' ? 'SANDBOX_API_KEY' : 'BRIDGE_TOKEN']: token }) },
		...options.miniflare,
	};
	const flare = new Miniflare(deployment);
	await flare.ready;
	const made = new Map(); // id -> { started, ended }
	const marks = new Map(); // names of machines of the vendor's bridge -> ids of sandboxes
	const note = async (id) => {
		if ([...marks.values()].includes(id)) return;
		const pools = await flare.getDurableObjectNamespace('WarmPool');
		const name = await pools.get(pools.idFromName('global-pool')).lookupContainer(id);
		if (name) marks.set(name, id);
	};
	const place = await serve({
		op: opOf,
		answer: async (req) => {
			const headers = { ...req.headers };
			for (const name of ['host', 'connection', 'content-length', 'transfer-encoding', 'expect']) delete headers[name];
			const body = ['GET', 'HEAD'].includes(req.method) ? undefined : req.body;
			const reply = await flare.dispatchFetch(`http://bridge${req.url}`, { method: req.method, headers, body, redirect: 'manual' });
			const id = /^\/(?:bridge\/v1\/sandboxes|v1\/sandbox)\/([^/]+)/.exec(req.path)?.[1];
			if (dialect === 'vendor' && id && reply.ok && req.method !== 'DELETE') await note(id);
			const answer = await passedOn(reply);
			if (req.op === 'create' && reply.ok) made.set(id ?? JSON.parse(req.body).id, { started: Date.now() });
			if (req.method === 'DELETE' && [200, 204].includes(reply.status) && made.has(id)) made.get(id).ended ??= Date.now();
			return answer;
		},
	});
	const stop = place.stop.bind(place);
	return Object.assign(place, {
		flare, machines, dialect, providerName: 'workers', beyondMs: 150000, base: place.url, plan: {},
		markOf: (req) => dialect === 'vendor' && /^\/v1\/sandbox\/([a-z2-7]{34})/.exec(req.url)?.slice(1).map(markOf)[0],
		credential: { token, bridge_url: place.url },
		redeploy: () => flare.setOptions(deployment),
		/** The name of the machine behind a sandbox: the vendor's bridge has names of its own. */
		machineOf: (id) => [...marks].find(([, mark]) => mark === id)?.[0] ?? id,
		/** A sandbox lives from its create, or the first of its machines, to its deletion or the last one's end. */
		boxes: () => [...made].map(([id, { started, ended }]) => {
			const runs = machines.history.filter(({ name }) => (marks.get(name) ?? name) === id);
			const ends = runs.map((one) => one.ended);
			const end = ends.includes(undefined) ? undefined : Math.max(ended ?? 0, ...ends) || undefined;
			return { id, mark: markOf(id), state: end ? 'stopped' : 'running',
				started: Math.min(started, ...runs.map((one) => one.started)), ended: end,
				billedMs: runs.reduce((sum, one) => sum + (one.ended ?? Date.now()) - one.started, 0) };
		}),
		async stop() {
			await stop();
			await flare.dispose();
			await machines.stop();
		},
	});
}
