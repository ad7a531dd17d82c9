// What can be seen of processes from outside while they work: command lines, environments, open files.

import fs from 'node:fs';
import { pause } from '../lib/wait.mjs';

const numbers = () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number);

function attempt(fn, otherwise) {
	try {
		return fn();
	} catch {
		return otherwise;
	}
}

const namespaceOf = (pid) => attempt(() => fs.readlinkSync(`/proc/${pid}/ns/pid`));
const parentOf = (pid) =>
	attempt(() => Number(/^PPid:\s*(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]));

/** These processes and all below them. */
export function familyOf(pids) {
	const parents = new Map(numbers().map((pid) => [pid, parentOf(pid)]));
	const within = (pid) => {
		for (let at = pid; at > 1; at = parents.get(at)) if (pids.includes(at)) return true;
		return false;
	};
	return [...parents.keys()].filter(within);
}

/** Collects, until stopped, what stands in command lines of all processes of this machine (those inside
 * a box have a name space of their own and are left out) and in environments of some. */
export class Sampler {
	#stopping = false;
	#inside = new Set();
	seen = new Set();
	samples = 0;
	boxes = 0;

	/** `roots` gives the pids whose environment, and that of their descendants, is read as well. */
	constructor(roots) {
		this.roots = roots;
		this.own = namespaceOf('self');
		this.running = this.#run();
	}

	#sample() {
		const family = new Set(familyOf(this.roots()));
		for (const pid of numbers()) {
			const space = namespaceOf(pid);
			if (space && space !== this.own) {
				this.#inside.add(pid);
				continue;
			}
			const line = attempt(() => fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1'), '');
			// It may have entered a box between the two looks.
			if (line && namespaceOf(pid) === space) this.seen.add(line);
			if (family.has(pid))
				this.seen.add(attempt(() => fs.readFileSync(`/proc/${pid}/environ`, 'latin1'), ''));
		}
		this.boxes = this.#inside.size;
		this.samples += 1;
	}

	async #run() {
		while (!this.#stopping) {
			this.#sample();
			await pause(5);
		}
	}

	async stop() {
		this.#stopping = true;
		await this.running;
	}
}

/** Regular files that a process has open: [{ pid, name, deleted, content }]. */
export function openFiles(pid) {
	const dir = `/proc/${pid}/fd`;
	const found = [];
	for (const fd of attempt(() => fs.readdirSync(dir), [])) {
		const where = `${dir}/${fd}`;
		const stat = attempt(() => fs.statSync(where));
		if (!stat?.isFile()) continue;
		const name = attempt(() => fs.readlinkSync(where), '');
		found.push({
			pid,
			name: name.replace(/ \(deleted\)$/, ''),
			deleted: stat.nlink === 0,
			content: () => attempt(() => fs.readFileSync(where), Buffer.alloc(0)),
		});
	}
	return found;
}
