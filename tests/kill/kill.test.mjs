// kill -9 of everything there is, again and again, while short jobs come and go. What the database says
// of a job decides when its victim dies, so that every state is hit; what the job itself said to a
// witness decides what is true.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pidOf, service, sql, state } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { children, endings, PATIENCE_MS, Stage } from './stage.mjs';

const KILLS = Number(process.env.CC_KILLS ?? 200);
const DELAY_MS = 500;
const STATES = ['creating', 'uploading', 'uploaded', 'running', 'ended'];
const VICTIMS = ['worker', 'keeper', 'master', 'runner', 'mariadbd'];

const stage = new Stage();
const table = Object.fromEntries(VICTIMS.map((v) => [v, Object.fromEntries(STATES.map((s) => [s, 0]))]));

/** Pids of the drivers of all jobs that are in this state now; "ended" means not yet stopped. */
async function driversIn(wanted) {
	const rows = await sql(`SELECT p.pid FROM job j JOIN process p ON p.id = j.driver
		${wanted === 'ended' ? "JOIN sandbox s ON s.job = j.id AND s.state = 'running'" : ''}
		WHERE j.state = '${wanted}' AND j.created_at > UNIX_TIMESTAMP() * 1000 - 600000`);
	return rows.map(([pid]) => Number(pid));
}

async function again(what, fn) {
	await until(what, async () => {
		await fn();
		return true;
	}, PATIENCE_MS);
}

/** Kills one process with a job of this state in its hands (or, for the others, in the system). */
async function strike(victim, wanted) {
	const target = await until(`a job is ${wanted} for ${victim}`, async () => {
		const drivers = await driversIn(wanted);
		if (!drivers.length) return 0;
		if (victim === 'worker') return drivers.find((pid) => children('worker').includes(pid));
		if (victim === 'keeper') return children('keeper')[0];
		if (victim === 'runner') return stage.runner.pid;
		return pidOf(victim === 'master' ? 'connector' : 'mariadb');
	}, PATIENCE_MS);
	process.kill(target, 'SIGKILL');
	table[victim][wanted] += 1;
	if (victim === 'master') await again('a new master', () => service('start', 'connector'));
	if (victim === 'mariadbd') await again('the database again', () => service('start', 'mariadb'));
	if (victim === 'runner')
		await again('the runner again', async () => {
			await stage.runner.kill();
			await stage.newRunner();
		});
}

function show() {
	const line = (name, cells) => name.padEnd(10) + cells.map((c) => String(c).padStart(11)).join('');
	console.log([line('', STATES), ...VICTIMS.map((v) => line(v, STATES.map((s) => table[v][s])))].join('\n'));
}

describe('killed at any moment', () => {
	before(() => stage.start(DELAY_MS));
	after(() => stage.stop());

	test(`${KILLS} kills: every victim while a job is in every state`, async () => {
		for (let i = 0; i < KILLS; i++)
			await strike(VICTIMS[Math.floor(i / STATES.length) % VICTIMS.length], STATES[i % STATES.length]);
		show();
		for (const s of STATES) {
			const hits = VICTIMS.reduce((sum, v) => sum + table[v][s], 0);
			assert.ok(hits >= Math.min(5, KILLS / STATES.length), `${s} was hit ${hits} times`);
		}
		assert.equal(VICTIMS.flatMap((v) => Object.values(table[v])).reduce((a, b) => a + b), KILLS);
	});

	endings(stage, KILLS / 4);

	test('nothing of the services is left twice', async () => {
		await until('two workers and one keeper', () =>
			children('worker').length === 2 && children('keeper').length === 1);
		const connector = fs.realpathSync(path.join(state, 'bin/compute-connector'));
		await until('the children of dead masters have left', () => {
			const ours = fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n)).filter((pid) => {
				try {
					return fs.readlinkSync(`/proc/${pid}/exe`) === connector;
				} catch {
					return false;
				}
			});
			return ours.length === 4;
		}, PATIENCE_MS);
	});
});
