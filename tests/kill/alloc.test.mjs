// Allocations fail in workers while requests and jobs are served: the worker ends with its own exit
// status, the master starts another one, no caller gets a wrong answer, and every job ends truly.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { configFile, ready, service, state } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { children, endings, PATIENCE_MS, Stage } from './stage.mjs';

const HITS = Number(process.env.CC_ALLOCATIONS ?? 0); // 0: all of them
const EVERY = 5; // one in five of a warm stretch of work
const WORKERS = 8; // a child that dies young is started again after a pause: the others go on
const EXIT = 86;

const stage = new Stage();
const file = path.join(state, 'tmp', 'allocations');
const log = path.join(state, 'log', 'connector.log');
let shared;

const read = (at) => {
	const b = Buffer.alloc(8);
	fs.readSync(shared, b, 0, 8, at);
	return b.readBigInt64LE();
};

function write(at, n) {
	const b = Buffer.alloc(8);
	b.writeBigInt64LE(BigInt(n));
	fs.writeSync(shared, b, 0, 8, at);
}

/** How children ended since the log had `from` bytes: [{ kind, exit, signal, asked }]. */
function deaths(from) {
	return fs.readFileSync(log).subarray(from).toString().split('\n').filter((line) => line.includes('"child.ended"'))
		.map((line) => JSON.parse(line)).filter((e) => e.asked === 'no');
}

async function workers(n) {
	const text = fs.readFileSync(configFile, 'utf8');
	fs.writeFileSync(configFile, text.replace(/^workers = \d+$/m, `workers = ${n}`));
	await service('restart', 'connector');
	await ready();
}

describe('allocations that fail', () => {
	let from;

	before(async () => {
		fs.writeFileSync(file, Buffer.alloc(16));
		const { uid, gid } = fs.statSync(configFile);
		fs.chownSync(file, uid, gid);
		shared = fs.openSync(file, 'r+');
		process.env.CC_FAIL_ALLOCATION = file;
		await workers(WORKERS);
		await stage.start(0);
		from = fs.statSync(log).size;
	});
	after(async () => {
		await stage.stop();
		delete process.env.CC_FAIL_ALLOCATION;
		await workers(2);
		fs.closeSync(shared);
	});

	test(`one in ${EVERY} of a warm job and its calls`, async () => {
		await until('all workers are warm', () => children('worker').length === WORKERS
			&& stage.load.calls.length > 16, PATIENCE_MS);
		const [calls, count] = [stage.load.calls.length, read(8)];
		await until('eight jobs more', () => stage.load.calls.length >= calls + 8, PATIENCE_MS);
		const aJob = Number(read(8) - count) / 8;
		assert.ok(aJob > 100, `${aJob} allocations for a job and its calls`);
		const hits = HITS || Math.ceil(aJob / EVERY);
		for (let i = 1; i <= hits; i++) {
			write(0, i * EVERY);
			await until('it failed', () => read(0) <= 0n, PATIENCE_MS);
			await until('its worker is gone', () => deaths(from).length >= i, PATIENCE_MS);
		}
		console.log(`${hits} failures, one in ${EVERY} of ${Math.ceil(aJob)} allocations`);
		for (const d of deaths(from)) {
			assert.equal(d.kind, 'worker');
			assert.equal(d.exit, EXIT, JSON.stringify(d));
			assert.equal(d.signal, 0);
		}
		await until('every worker is there again', () => children('worker').length === WORKERS, PATIENCE_MS);
	});

	endings(stage, 20);
});
