// The list that every provider goes through.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { sql, sqlOne, state } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { commands } from './commands.mjs';
import { matrix } from './matrix.mjs';
import { open } from './places.mjs';
import { processes } from './processes.mjs';
import { LEAK, Stage } from './stage.mjs';
import { trouble } from './trouble.mjs';

const PATIENCE_MS = 100000;
// A sandbox that nobody hindered us to stop costs nothing for longer than this after its job: the sweep's
// interval (settings.ini) and time for a machine that is busy with other things.
// A bridge in the user's account may need longer for a machine that a late call started (its simulator says so).
const BILLED_MS = 45000;
const beyond = (s) => s.place.sim?.beyondMs ?? BILLED_MS;

function endings(s) {
	describe(`${s.place.name}: in the end`, () => {
		// Another file of this folder may have left what nobody can ask about any more, since its place is gone.
		const here = () => `provider = '${s.place.provider}' AND created_at >= ${s.began}`;
		test('every job has ended, and nothing of them lives', async () => {
			await until('every job has ended', async () =>
				await sqlOne(`SELECT COUNT(*) FROM job WHERE state <> 'ended' AND ${here()}`) === '0', PATIENCE_MS);
			await until('every sandbox is stopped or absent', async () => {
				await s.hurry(here());
				const left = await sql(`SELECT mark, state, error FROM sandbox
					WHERE state NOT IN ('stopped', 'absent') AND ${here()}`);
				return left.length === 0 || { missing: left };
			}, PATIENCE_MS);
			await until('nothing lives there', async () => {
				const living = (await s.place.boxes()).filter((box) => box.ended === undefined);
				return living.length === 0 || { missing: living };
			}, Math.max(PATIENCE_MS, beyond(s)));
			assert.equal(await sqlOne(`SELECT COUNT(*) FROM job WHERE exit_code = 99 AND ${here()}`), '0', 'no command ran twice');
		});

		test('no sandbox was billed for longer than its job and a sweep', async () => {
			const ends = new Map((await sql('SELECT s.mark, MAX(j.ended_at) FROM sandbox s JOIN job j ON j.id = s.job GROUP BY s.mark'))
				.map(([mark, at]) => [mark, Number(at)]));
			for (const box of await s.place.boxes())
				if (ends.has(box.mark) && !s.hindered.has(box.mark)) {
					const more = box.ended - ends.get(box.mark);
					assert.ok(more < beyond(s), `${box.mark} lived ${more} ms longer than its job`);
					assert.ok(box.billedMs <= box.ended - box.started + 1000, 'the bill is for its life');
				}
		});

		test('keys and texts were only where they belong', () => {
			assert.deepEqual(s.place.strays, []);
			for (const name of fs.readdirSync(path.join(state, 'log'))) {
				const text = fs.readFileSync(path.join(state, 'log', name));
				for (const secret of [LEAK, s.place.token, ...s.place.secrets])
					assert.ok(!text.includes(secret), `${name} holds what it must not`);
			}
		});
	});
}

/** `without`: what is left out of the list, and why is said where that is asked for: "matrix" (every operation
 * meets every failure), "list" (what needs a provider that can list its sandboxes and look for one). */
export async function conform(name, { without = [] } = {}) {
	const s = new Stage(await open(name));
	const can = { list: !without.includes('list') };
	describe(name, () => {
		before(() => s.start());
		after(() => s.stop());
		commands(s);
		trouble(s, can);
		if (!without.includes('matrix')) matrix(s, can);
		processes(s, can);
		endings(s);
	});
}
