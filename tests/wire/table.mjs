// What was seen, as a table; a row of the program that nobody saw fails the run.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { errors, openapi, operations, seen } from './judge.mjs';

// Rows that this suite can not reach, with the name of the suite that does.
const elsewhere = JSON.parse(readFileSync(new URL('elsewhere.json', import.meta.url)));

// Whether a file of that suite speaks of it, by its code or by the name of its row.
function isIn(suite, name) {
	const folder = new URL(`../${suite}/`, import.meta.url);
	return readdirSync(folder).filter((file) => /\.(mjs|c)$/.test(file)).some((file) =>
		new RegExp(`\\b(${name}|ERR_${name.toUpperCase()})\\b`).test(readFileSync(new URL(file, folder), 'utf8')));
}

const line = (name, count) => console.log(`${name.padEnd(28)}${count}`);

function compare(kind, rows, counts) {
	console.log(`\n${kind}`);
	for (const name of rows)
		line(name, counts.get(name) ?? `in ${elsewhere[kind][name] ?? 'NO SUITE'}`);
	const lost = rows.filter((name) => !counts.has(name) && !elsewhere[kind][name]);
	const stale = Object.keys(elsewhere[kind]).filter((name) => counts.has(name) || !rows.includes(name));
	assert.deepEqual(lost, [], `${kind} never seen`);
	for (const [name, suite] of Object.entries(elsewhere[kind]))
		assert.ok(isIn(suite, name), `${suite} says nothing of ${name}`);
	assert.deepEqual(stale, [], `${kind} in elsewhere.json that were seen, or that do not exist`);
}

test('every error was seen', () => compare('errors', Object.keys(errors), seen.errors));

test('every outcome and state of a job was seen', () => {
	const text = JSON.stringify(openapi.components.schemas.run_job_output.properties);
	const rows = Object.keys({ ...Object.fromEntries(seen.outcomes), ...elsewhere.outcomes });
	for (const name of rows)
		assert.match(text, new RegExp(`\\b${name}\\b`), name);
	compare('outcomes', rows, seen.outcomes);
	for (const name of ['succeeded', 'failed', 'timed_out', 'cancelled', 'watch_only', 'not_started', 'provider_error', 'lost', 'uncertain'])
		assert.ok(rows.includes(name), name);
});

test('every tool was seen to succeed and to refuse', () => {
	console.log('\ntools');
	for (const { operation: { operationId: id } } of operations.filter((o) => o.path.startsWith('/api/'))) {
		const row = seen.tools.get(id) ?? { succeeded: 0, refused: 0 };
		line(id, `${row.succeeded} succeeded, ${row.refused} refused`);
		assert.ok(row.succeeded > 0 && row.refused > 0, id);
	}
});

test('there are enough cases, and at least half are refusals', () => {
	console.log(`\n${seen.cases} cases, ${seen.refusals} of them refusals, ${seen.answers} answers judged`);
	assert.ok(seen.cases >= 400);
	assert.ok(seen.refusals * 2 >= seen.cases);
});

test('of the cases that are written down, those of /mcp are many, and two thirds of them refusals', () => {
	const { cases, refusals } = seen.mcp;
	console.log(`${cases} cases of /mcp, ${refusals} of them refusals`);
	assert.ok(cases >= 700);
	assert.ok(refusals * 3 >= cases * 2);
});
