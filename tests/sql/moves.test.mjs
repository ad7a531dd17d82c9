// Every move of a job names the driver, the fence and the state it leaves; every move of a sandbox the
// state; a count stops at its limit. Tried on the statements themselves, in each state, with the right
// hold and with wrong ones.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { statements } from './statements.mjs';

const run = promisify(execFile);
const schema = 'cc_moves';
const STATES = ['creating', 'uploading', 'uploaded', 'running', 'ended'];
const LIVE = STATES.slice(0, 4);
const BOXES = ['intent', 'unsure', 'running', 'stopping', 'stopped', 'absent'];

// name: [states it may leave, state and fence behind it, is the driver asked]
const JOBS = {
	JOB_CHOSE: [LIVE, null],
	JOB_CREATED: [['creating'], 'uploading'],
	JOB_UPLOADED: [['uploading'], 'uploaded'],
	JOB_RUNNING: [['uploaded'], 'running'],
	JOB_END: [LIVE, 'ended'],
	JOB_GIVE_UP: [['uploaded', 'running'], null],
	JOB_CLAIM: [LIVE, null],
};
const SANDBOXES = {
	SANDBOX_RUNNING: [['intent'], 'running'],
	SANDBOX_FAILED: [['intent'], 'unsure'],
	SANDBOX_FOUND: [['intent', 'unsure'], 'stopping'],
	SANDBOX_ABSENT: [['intent', 'unsure'], 'absent'],
	SANDBOX_STOPPING: [['running'], 'stopping'],
	SANDBOX_STOPPED: [['running', 'stopping'], 'stopped'],
	SANDBOX_LOST_AND_FOUND: [['absent', 'stopped'], 'stopping'],
};

/** Answers of one script, line by line as cells. */
async function db(text) {
	const command = 'source "$1"; instance_paths; as_daemon mariadb --no-defaults --socket="$DB_SOCKET" -N';
	const child = run('bash', ['-c', command, 'bash', process.env.CC_INSTANCE],
		{ env: { ...process.env, CC_VAR: path.dirname(process.env.CC_DEV_JSON) }, maxBuffer: 16 << 20 });
	child.child.stdin.end(text);
	return (await child).stdout.split('\n').filter(Boolean).map((line) => line.split('\t'));
}

const ID = "UNHEX(REPEAT('11', 16))";
const OTHER = "UNHEX(REPEAT('22', 16))";
const FENCE = 7;

/** A prepared execution of a statement with these values; others get a harmless one. */
function execute(name, values) {
	const s = statements().find((one) => one.name === name);
	const sets = s.params.map((p, i) => `SET @p${i} = ${values[p] ?? values.rest ?? '1'};`).join(' ');
	return `${sets} PREPARE s FROM '${s.text.replaceAll("'", "''")}';
		EXECUTE s${s.params.length ? ` USING ${s.params.map((_, i) => `@p${i}`).join(', ')}` : ''};`;
}

const aJob = (state) => `REPLACE INTO job (id, account, token, driver, fence, state, word, timeout_s, created_at)
	VALUES (${ID}, ${ID}, ${ID}, ${ID}, ${FENCE}, '${state}', 'w', 1, 1);`;
const aBox = (state) => `REPLACE INTO sandbox (id, account, job, attempt, provider_key, provider, key_name, mark, state,
	created_at, ends_at) VALUES (${ID}, ${ID}, ${ID}, 0, ${ID}, 'tunnel', 'k', 'm', '${state}', 1, 1);`;

before(async () => {
	const tables = ['job', 'sandbox', 'usage_day', 'address_day']
		.map((t) => `CREATE TABLE ${schema}.${t} LIKE compute_connector.${t};`).join('\n');
	await db(`DROP DATABASE IF EXISTS ${schema}; CREATE DATABASE ${schema}; ${tables}`);
});
after(() => db(`DROP DATABASE ${schema};`));

describe('moves', () => {
	test('a job moves only for its driver, with its fence, out of the named state', async () => {
		const cases = [];
		for (const [name, [from, to]] of Object.entries(JOBS))
			for (const state of STATES)
				for (const hold of ['right', 'driver', 'fence-1', 'fence+1', 'id']) {
					if (name === 'JOB_CLAIM' && hold === 'driver') continue;
					const fence = { 'fence-1': FENCE - 1, 'fence+1': FENCE + 1 }[hold] ?? FENCE;
					const claims = name === 'JOB_CLAIM';
					const moves = hold === 'right' && from.includes(state);
					const text = `${aJob(state)} ${execute(name, { id: hold === 'id' ? OTHER : ID, fence,
						driver: claims || hold === 'driver' ? OTHER : ID, rest: claims ? '1' : "'9'" })}
						SELECT '${name}', ROW_COUNT(); SELECT state, fence, HEX(driver) FROM job WHERE id = ${ID};`;
					cases.push({ name, state, hold, text, moves, to: moves && to ? to : state,
						fence: moves && claims ? FENCE + 1 : FENCE });
				}
		const rows = await db(`USE ${schema};\n${cases.map((c) => c.text).join('\n')}`);
		cases.forEach((c, i) => {
			const what = `${c.name} on ${c.state} with ${c.hold}`;
			assert.deepEqual(rows[2 * i], [c.name, c.moves ? '1' : '0'], what);
			const [state, fence, driver] = rows[2 * i + 1];
			assert.deepEqual([state, fence], [c.to, String(c.fence)], what);
			const changed = { JOB_CLAIM: '22'.repeat(16), JOB_GIVE_UP: 'NULL' }[c.name];
			assert.equal(driver, c.moves && changed ? changed : '11'.repeat(16), what);
		});
	});

	test('a sandbox moves only out of the named states', async () => {
		const cases = [];
		for (const [name, [from, to]] of Object.entries(SANDBOXES))
			for (const state of BOXES)
				cases.push({ name, state, to: from.includes(state) ? to : state, text: `${aBox(state)}
					${execute(name, { id: ID, state: "'unsure'", rest: "'5'" })}
					SELECT state FROM sandbox WHERE id = ${ID};` });
		const rows = await db(`USE ${schema};\n${cases.map((c) => c.text).join('\n')}`);
		cases.forEach((c, i) => assert.equal(rows[i][0], c.to, `${c.name} on ${c.state}`));
	});

	test('of two claims with the same fence one wins', async () => {
		const claim = execute('JOB_CLAIM', { driver: OTHER, id: ID, fence: FENCE });
		const rows = await db(`USE ${schema}; ${aJob('running')} ${claim} SELECT ROW_COUNT(); ${claim} SELECT ROW_COUNT();`);
		assert.deepEqual(rows, [['1'], ['0']]);
	});

	for (const [name, values, table] of [
		['USAGE_COUNT', { account: ID }, 'usage_day'],
		['ADDRESS_COUNT', { address: ID, kind: "'call'" }, 'address_day']])
		test(`${name} stops at the limit, and a place given back is taken again`, async () => {
			const count = `${execute(name, { ...values, day: "'2027-01-01'", limit: 3 })} SELECT ROW_COUNT();`;
			const back = execute(name.replace('COUNT', 'GIVE_BACK'), { ...values, day: "'2027-01-01'" });
			const rows = await db(`USE ${schema}; ${count.repeat(5)} ${back} ${count.repeat(2)} SELECT n FROM ${table};`);
			assert.deepEqual(rows.flat(), ['1', '2', '2', '0', '0', '2', '0', '3']);
		});
});
