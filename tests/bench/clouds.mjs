// Jobs on clouds, side by side: the connector and the provider's own SDK do the same job against the same
// simulator, with the same latency added to every answer.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { account, dev, servicePid, useSimulators } from '../lib/instance.mjs';
import { certificate } from '../simulators/lib.mjs';
import { start as daytona } from '../simulators/daytona/index.mjs';
import { start as e2b } from '../simulators/e2b/index.mjs';
import { start as modal } from '../simulators/modal/index.mjs';
import { start as vercel } from '../simulators/vercel/index.mjs';

const LATENCIES = [0, 50, 200];
const JOBS = 8;
const BURST = 100;
const FILES = [{ path: 'input.txt', content: 'hello' }];

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

/** The SDK in a process of its own: { walls, cpu_us, rss_kb, trips }. */
async function bySdk(name, place, jobs, atOnce) {
	const child = spawn(process.execPath, [path.join(import.meta.dirname, 'sdk-job.mjs'), name, String(jobs), String(atOnce)], {
		stdio: ['pipe', 'pipe', 'inherit'],
		env: { PATH: process.env.PATH, BASE: place.base, CREDENTIAL: JSON.stringify(place.credential),
			NODE_EXTRA_CA_CERTS: certificate().file },
	});
	let out = '';
	child.stdout.on('data', (text) => { out += text; });
	const closed = once(child, 'close');
	await Promise.race([once(child.stdout, 'data'), closed]);
	place.log.length = 0;
	child.stdin.on('error', () => {}); // it has failed, as its code says
	child.stdin.write('go\n');
	const [code] = await closed;
	if (code !== 0) throw new Error(`the SDK of ${name} failed`);
	return { ...JSON.parse(out.split('\n')[1]), trips: place.log.length / jobs };
}

async function byUs(name, place, client, jobs, atOnce, figures) {
	let failed = 0;
	const one = async () => {
		const began = performance.now();
		const job = await client.job({ cmd: 'cat input.txt; exit 3', files: FILES, key: name, wait_s: 200 });
		if (job.outcome === 'provider_error') failed += 1; // it could not be reached in time: told, not hidden
		else if (job.exit_code !== 3 || job.stdout !== 'hello') throw new Error(JSON.stringify(job));
		return performance.now() - began;
	};
	await one();
	place.log.length = 0;
	const roots = await Promise.all(['nginx', 'connector', 'mariadb'].map(servicePid));
	const before = figures.cpu(figures.family(roots));
	const walls = [];
	let left = jobs;
	await Promise.all(Array.from({ length: atOnce }, async () => {
		while (left-- > 0) walls.push(await one());
	}));
	return { walls, failed, trips: place.log.length / jobs,
		cpu_us: (figures.cpu(figures.family(roots)) - before) / jobs * 1e6,
		rss_kb: figures.rssKb(figures.family([await servicePid('connector')])) };
}

function line(what, ours, sdk) {
	const [a, b] = [median(ours.walls), median(sdk.walls)];
	console.log(`${what}: ${a.toFixed(0)} ms and ${ours.trips.toFixed(1)} round trips; the SDK ${b.toFixed(0)} ms and ${
		sdk.trips.toFixed(1)}: ${(a / b).toFixed(2)} of its time. CPU ${(ours.cpu_us / 1000).toFixed(1)} ms (database and TLS `
		+ `included) against ${(sdk.cpu_us / 1000).toFixed(1)} ms, memory ${(ours.rss_kb / 1024).toFixed(0)} MB against ${
			(sdk.rss_kb / 1024).toFixed(0)} MB${ours.failed ? `; ${ours.failed} of ours failed` : ''}`);
}

/** figures: { cpu, family, rssKb, target, results } of bench.mjs. */
export async function clouds(figures) {
	const all = { vercel, e2b, daytona, modal };
	const chosen = process.env.BENCH_CLOUDS?.split(',') ?? Object.keys(all);
	const places = {};
	for (const name of chosen) places[name] = await all[name]();
	await useSimulators(places);
	const client = await account('pro');
	for (const [name, place] of Object.entries(places)) {
		const saved = await client.rest('save_provider_key', { provider: name, name, ...place.credential });
		if (saved.status !== 200) throw new Error(`${name} is not saved at ${dev.url}: ${saved.text}`);
		for (const latency of LATENCIES) {
			place.latencyMs = latency;
			const sdk = await bySdk(name, place, JOBS, 1);
			const ours = await byUs(name, place, client, JOBS, 1, figures);
			line(`${name}, ${latency} ms away`, ours, sdk);
			figures.results[`${name} ${latency}`] = { ours: median(ours.walls), sdk: median(sdk.walls), trips: [ours.trips, sdk.trips] };
			figures.target(`a job on ${name}, ${latency} ms away, against its SDK`, median(ours.walls) / median(sdk.walls), 1, 'of its time');
		}
		place.latencyMs = 50;
		const sdk = await bySdk(name, place, BURST, BURST);
		const ours = await byUs(name, place, client, BURST, BURST, figures);
		line(`${name}, ${BURST} at once`, ours, sdk);
		figures.target(`${BURST} jobs at once on ${name} that could not begin`, ours.failed, 0, 'jobs');
		figures.target(`${BURST} jobs at once on ${name} against its SDK`, median(ours.walls) / median(sdk.walls), 1, 'of its time');
		place.latencyMs = 0;
	}
	for (const place of Object.values(places)) await place.stop();
}
