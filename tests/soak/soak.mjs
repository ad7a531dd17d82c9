// Mixed calls for an hour: no server error, and the workers' memory no larger at the end than after
// the first tenth, but for a margin.
import fs from 'node:fs';
import { children, owner } from '../lib/instance.mjs';

const minutes = Number(process.env.SOAK_MINUTES ?? 60);
const marginKb = 8192; // per worker: arenas of requests that happen to be under way
const end = Date.now() + minutes * 60000;
const me = owner();
const counts = {};

async function caller(make) {
	while (Date.now() < end) {
		const reply = await make();
		counts[reply.status] = (counts[reply.status] ?? 0) + 1;
	}
}

const pssKb = (pid) => Number(/^Pss:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]);
const openFiles = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;
const { worker } = await children();
const look = () => worker.map((pid) => ({ pid, kb: pssKb(pid), files: openFiles(pid) }));

const early = new Promise((resolve) => { setTimeout(() => resolve(look()), minutes * 6000); });
await Promise.all([
	caller(() => me.rest('check_memory', { free_mb: 900, job: 'npm ci' })),
	caller(() => me.mcp('list_jobs', {})),
	caller(() => me.rest('run_job', { cmd: 'echo x', files: [{ path: 'a', content: 'x'.repeat(100000) }] })),
	caller(() => me.rest('run_job', { cmd: 5 })),
]);
const first = await early;
const last = look();
console.log(JSON.stringify({ counts, first, last }));
const bad = Object.keys(counts).filter((status) => Number(status) >= 500);
const grown = last.filter((w, i) => w.kb > first[i].kb + marginKb || w.files > first[i].files + 20);
for (const status of bad) console.log(`status ${status}: ${counts[status]} times`);
for (const w of grown) console.log(`worker ${w.pid} grew to ${w.kb} KB and ${w.files} files`);
const failed = bad.length + grown.length;
console.log(`${failed ? 0 : 1} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
