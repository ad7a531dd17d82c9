// Every statement fails once: before it had an effect and, where a server or a broken connection can do
// that, after it. What a caller asks for is then done once, or answered 503 in the declared form; jobs
// end truly, nothing is there twice and nothing is left.
//
// All statements are armed at the same time, and each one that fires is taken away; callers repeat what
// was answered 503, so a round goes on until nearly everything has failed once.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '../lib/client.mjs';
import { admin, allowOrigins, configFile, dev, driverOf, idHex, jobState, mark, service, servicePid, sql, sqlOne, state }
	from '../lib/instance.mjs';
import { hurried } from '../lib/hurry.mjs';
import { proxyHub } from '../lib/proxy.mjs';
import { bridge, instanceRunner, sandboxes } from '../lib/runner.mjs';
import { pause, until } from '../lib/wait.mjs';
import { statements } from './statements.mjs';

const run = promisify(execFile);
const folder = path.join(state, 'tmp', 'db-faults');
const all = statements();
const CREATE = { method: 'POST', path: /\/sandboxes$/ };
const DESTROY = { method: 'DELETE', path: /\/sandboxes\// };
const PATIENCE_MS = 120000;

// 1205 and 1213 say that nothing was done and 2006 that nothing was sent: for a statement in autocommit
// that is always "before". In a transaction each one may come after the statement had its effect,
// because the rollback takes it back.
const inTransactions = () => {
	const found = new Set();
	for (const dir of ['handlers', 'fcgi'])
		for (const file of fs.readdirSync(path.join(process.env.CC_ROOT, dir)).filter((f) => f.endsWith('.c')))
			for (const [, name] of fs.readFileSync(path.join(process.env.CC_ROOT, dir, file), 'utf8')
				.matchAll(/db_tx_\w+\(\s*\w+,\s*SQL_(\w+)/g)) found.add(name);
	return found;
};
const ROUNDS = ['1205:before', '1213:before', '2006:before', '2013:before', '2013:after', '1205:after',
	'1213:after', '2006:after'];

// Statements that this flow does not meet, and where they are tested.
const ELSEWHERE = {
	ACCOUNT_ERASE_SUMS: 'met when an account has lived over a day',
	ADDRESS_GIVE_BACK: 'tests/meter',
	DATA_KEY_REWRAP: 'met after a rotation only',
	INSTALLATION_CREATE: 'met by the first start only',
	JOB_GIVE_UP: 'when it is lost the job is like that of a dead driver: tests/kill',
	KEY_RATES_SET: 'met where a provider tells rates: tests/modal',
	SANDBOX_RAN_OUT: 'met an hour after the end of a sandbox that nobody could be asked about',
	MIGRATION_ADD: 'sent by migrate itself: plans.test.mjs',
	SCHEMA_VERSION: 'sent by migrate itself: plans.test.mjs',
};

const fired = new Map(ROUNDS.map((r) => [r, new Set()]));
const odd = [];
let hub, list, prefix, answered503;

function arm(plan) {
	const tx = inTransactions();
	const late = plan.endsWith(':after') && plan !== '2013:after';
	const armed = all.filter((s) => !late || tx.has(s.name)).map((s) => s.name);
	for (const name of armed) {
		const file = path.join(folder, name);
		fs.writeFileSync(file, plan);
	}
	return armed;
}

const disarm = () => {
	for (const name of fs.readdirSync(folder)) fs.rmSync(path.join(folder, name), { force: true });
};

/** Repeats a call that was answered 503. After an unsure one `done` looks whether it was done. */
async function ask(call, done) {
	for (let i = 0; i < 80; i++) {
		const reply = await call();
		if (reply.status < 300) return reply.json;
		const { code, title, detail, status } = reply.json ?? {};
		const declared = reply.status === 503 && status === 503 && title && detail
			&& ['unavailable', 'unavailable_unsure', 'busy'].includes(code);
		answered503 += 1;
		if (!declared) {
			odd.push(`${reply.status} ${reply.text}`);
			throw new Error(odd.at(-1));
		}
		const seen = code === 'unavailable_unsure' && await done?.();
		if (seen) return seen;
		await pause(30);
	}
	throw new Error('answered 503 for ever');
}

const tool = (client, name, args, done) => ask(() => client.rest(name, args), done);

/** An operator's command, repeated while the database is said to be away. */
async function operator(...args) {
	for (let i = 0; i < 60; i++) {
		try {
			return await admin(...args);
		} catch (error) {
			if (!/database/.test(error.stderr ?? '')) throw error;
		}
	}
	throw new Error(`${args.join(' ')}: no end`);
}

async function pro() {
	const made = JSON.parse(await operator('account', 'create', '--plan', 'pro', '--json'));
	return Object.assign(new Client(dev.url, made.token), { account: made.account, jobs: [] });
}

const save = (client, name, url, more = {}) => tool(client, 'save_provider_key',
	{ provider: 'tunnel', name, token: instanceRunner().token, bridge_url: url, ...more });

/** Starts a job and gives its id; the command says how often it began in its box. */
async function start(client, more = {}, tail = '') {
	const job = await tool(client, 'run_job', { cmd: `echo b >>/tmp/n; wc -l </tmp/n; ${tail}`,
		idempotency_key: randomUUID(), wait_s: 0, timeout_s: 60, ...more });
	client.jobs.push(job.job_id);
	return job.job_id;
}

async function ended(client, id) {
	const job = await until('the job ends', async () => {
		const seen = await tool(client, 'get_job', { job_id: id, wait_s: 2 });
		return seen.state === 'ended' && seen;
	}, PATIENCE_MS);
	return job;
}

const succeeded = async (client, id) => {
	const job = await ended(client, id);
	assert.equal(job.outcome, 'succeeded', JSON.stringify(job));
	assert.equal(job.stdout, '1\n');
	return job;
};

async function keysAndAccounts() {
	const free = new Client(dev.url);
	const made = await ask(() => free.api('POST', '/api/key', {}), async () => undefined);
	const client = new Client(dev.url, made.key);
	await tool(client, 'run_job', { cmd: 'make', free_mb: 100 });
	await tool(new Client(dev.url), 'check_memory', { free_mb: 100, total_mb: 1000 });
	await tool(new Client(dev.url), 'usage_and_upgrade', {});
	await tool(client, 'check_memory', { free_mb: 100, total_mb: 1000, job: 'make' });
	await tool(client, 'weekly_report', {});
	await tool(client, 'usage_and_upgrade', {});
	for (const kind of ['agent', 'owner']) {
		const name = `${kind}-${randomUUID().slice(0, 8)}`;
		const listed = async () => (await ask(() => client.api('GET', '/api/keys'))).keys.find((k) => k.name === name);
		await ask(() => client.api('POST', '/api/keys', { kind, name }), listed);
		const row = await listed();
		const keys = (await ask(() => client.api('GET', '/api/keys'))).keys;
		assert.equal(keys.filter((k) => k.name === name).length, 1, 'one key, however often it was asked for');
		await ask(() => client.api('DELETE', `/api/keys/${row.id}`), async () => !await listed());
	}
	await ask(() => client.api('DELETE', '/api/account'), async () =>
		['deleting', undefined].includes(await sqlOne(`SELECT state FROM account WHERE id = ${idHex(made.account)}`)));
	await until('the account is erased', async () =>
		!await sqlOne(`SELECT state FROM account WHERE id = ${idHex(made.account)}`), PATIENCE_MS);
}

async function providerKeys(client) {
	const direct = instanceRunner().url;
	await save(client, 'spare', direct);
	await save(client, 'spare', direct); // a second version
	await save(client, 'main', direct, { make_default: true });
	await tool(client, 'list_providers', {});
	const shown = (await tool(client, 'list_providers', {})).keys.map((k) => k.name).sort();
	assert.deepEqual(shown, ['main', 'spare']);
	const gone = async () => !(await tool(client, 'list_providers', {})).keys.some((k) => k.name === 'spare');
	await tool(client, 'delete_provider_key', { name: 'spare' }, gone);
	assert.ok(await gone());
}

const ownKey = (client, name) => `account = ${idHex(client.account)} AND name = '${name}'`;

/** A sick key whose pause is over: a job tries it, unless its claim was the one that failed. */
async function isTriedAnew(client) {
	for (let i = 0; i < 2; i++) {
		await sql(`UPDATE provider_key SET fails = 3, open_until = 1, probe_until = NULL WHERE ${ownKey(client, 'refuses')}`);
		const job = await succeeded(client, await start(client));
		assert.ok([1, 2].includes(job.attempts.length), JSON.stringify(job.attempts));
	}
}

/** Settings of the account; then jobs take turns. */
async function takesTurns(client) {
	const settings = { strategy: 'round-robin', fallback: true, order: ['refuses', 'main'] };
	const same = (got) => Object.keys(settings).every((k) => JSON.stringify(got[k]) === JSON.stringify(settings[k]));
	const read = () => ask(() => client.api('GET', '/api/account'));
	await ask(() => client.api('PATCH', '/api/account', settings), async () => same(await read()));
	assert.ok(same(await read()));
	await succeeded(client, await start(client));
}

const isLimited = async (client, lane) => {
	const rule = lane.rule(CREATE, 'answer', { status: 429, body: '{}', headers: { 'Retry-After': '3600' } });
	const job = await ended(client, await start(client, { key: 'refuses' }));
	assert.equal(job.error.code, 'upstream_limit');
	rule.release();
};

const fallsBack = async (client) => {
	const [refuses] = list;
	await save(client, 'refuses', refuses.url, { make_default: true });
	const rule = refuses.rule(CREATE, 'answer', { status: 500, body: '{}' });
	const fallen = await succeeded(client, await start(client));
	assert.equal(fallen.attempts.length, 2);
	await isTriedAnew(client);
	await takesTurns(client);
	rule.release();
	await isLimited(client, refuses);
	await tool(client, 'list_providers', {});
	await tool(client, 'delete_provider_key', { name: 'refuses' }, async () => true);
};

/** Answers to a create that are lost, with and without a sandbox behind them. */
const losesAnswers = async (client) => {
	const [, cuts] = list;
	await save(client, 'cuts', cuts.url);
	for (const act of ['cut', 'drop']) {
		const rule = cuts.rule(CREATE, act);
		const id = await start(client, { key: 'cuts' });
		assert.equal((await ended(client, id)).outcome, 'provider_error');
		rule.release();
	}
};

const stopsLate = async (client) => {
	const [, , keeps] = list;
	await save(client, 'keeps', keeps.url);
	const rule = keeps.rule(DESTROY, 'answer', { status: 500, body: '{}', times: 4 });
	await succeeded(client, await start(client, { key: 'keeps' }));
	await rule.seen;
};

const isCancelled = async (client) => {
	const id = await start(client, { key: 'main' }, 'sleep 50');
	await tool(client, 'cancel_job', { job_id: id, wait_s: 0 });
	assert.equal((await ended(client, id)).outcome, 'cancelled');
};

/** Orphaned by a dead worker, or left behind by one that is told to go. */
const changesHands = async (client, leave) => {
	const id = await start(client, { key: 'main' }, 'sleep 2');
	await until('it runs', async () => await jobState(id) === 'running', PATIENCE_MS);
	await leave(id);
	await succeeded(client, id);
};

async function jobsOf(client) {
	const ids = [await start(client), await start(client)];
	for (const id of ids) await succeeded(client, id);
	await tool(client, 'list_jobs', {});
	const files = [{ path: 'a', content: '' }, { path: 'a', content: '' }];
	const refused = await client.rest('run_job', { cmd: 'true', files });
	assert.ok([400, 503].includes(refused.status), refused.text);
	await fallsBack(client);
	await Promise.all([losesAnswers, stopsLate, isCancelled].map((fn) => fn(client)));
	await changesHands(client, async (id) => process.kill(await driverOf(id), 'SIGKILL'));
	await changesHands(client, async () => process.kill(await servicePid('connector'), 'SIGHUP'));
}

async function lostAndFound(client) {
	// A sandbox that runs although its row says that it was stopped long ago.
	const id = client.jobs[0];
	const [sandboxMark] = (await sql(`SELECT mark FROM sandbox WHERE job = ${idHex(id)}`))[0];
	const made = await bridge(instanceRunner(), 'POST', '/sandboxes', { id: sandboxMark, ttl_seconds: 300,
		labels: { install: prefix.slice(0, -1) } });
	assert.ok(made.status < 300, made.text);
	await sql(`UPDATE sandbox SET created_at = created_at - 100000 WHERE job = ${idHex(id)}`);
	await until('the sweep ends it', async () => !(await sandboxes(instanceRunner())).includes(sandboxMark), PATIENCE_MS);
}

async function operatorsCommands(client) {
	await client.api('GET', '/metrics');
	await client.api('GET', '/readyz');
	await operator('account', 'list');
	await operator('account', 'plan', client.account, 'pro');
	await operator('token', 'create', client.account, '--agent', '--json');
	assert.doesNotMatch(await operator('audit', 'show', client.account), /BROKEN/);
	await operator('master-key', 'status');
	await operator('master-key', 'rewrap');
	await until('the schema is looked at', async () => {
		const text = 'source "$1"; instance_paths; connector migrate';
		await run('bash', ['-c', text, 'bash', process.env.CC_INSTANCE],
			{ env: { ...process.env, CC_VAR: path.dirname(process.env.CC_DEV_JSON) } });
		return true;
	}, PATIENCE_MS);
}

async function settled(client) {
	await until('every job has ended', async () =>
		await sqlOne("SELECT COUNT(*) FROM job WHERE state <> 'ended'") === '0', PATIENCE_MS);
	await until('every sandbox is stopped or absent', async () => {
		await sql(hurried());
		return await sqlOne("SELECT COUNT(*) FROM sandbox WHERE state NOT IN ('stopped', 'absent')") === '0';
	}, PATIENCE_MS);
	assert.deepEqual((await sandboxes(instanceRunner())).filter((id) => id.startsWith(prefix)), []);
	const rows = await sql(`SELECT outcome FROM job WHERE account = ${idHex(client.account)}
		AND outcome <> 'not_started'`);
	assert.equal(rows.length, client.jobs.length, 'one job for each key');
}

before(async () => {
	prefix = await mark();
	hub = await proxyHub();
	list = [1, 2, 3].map(() => hub.lane(instanceRunner().url));
	await allowOrigins([hub.url]);
	fs.mkdirSync(folder);
	const { uid, gid } = fs.statSync(configFile);
	fs.chownSync(folder, uid, gid);
	process.env.CC_DB_FAULT = folder;
	await service('restart', 'connector');
});

after(async () => {
	disarm();
	await hub?.stop();
});

describe('every statement fails once', () => {
	for (const plan of ROUNDS)
		test(`${plan} effect`, async () => {
			for (const p of list) p.clear();
			answered503 = 0;
			const armed = arm(plan);
			const client = await pro();
			await keysAndAccounts();
			await providerKeys(client);
			await jobsOf(client);
			await lostAndFound(client);
			await operatorsCommands(client);
			await settled(client);
			const left = new Set(fs.readdirSync(folder));
			for (const name of armed) if (!left.has(name)) fired.get(plan).add(name);
			disarm();
			console.log(`${plan}: ${fired.get(plan).size} of ${armed.length} failed once, ${answered503} answers 503`);
			assert.deepEqual(odd.splice(0), []);
		});

	test('no statement was left out', async () => {
		const never = all.map((s) => s.name).filter((name) => !ELSEWHERE[name]
			&& !['1205:before', '1213:before', '2006:before', '2013:before', '2013:after']
				.some((r) => fired.get(r).has(name)));
		// What the keeper does by its clock alone may fall between two rounds (it holds off calling others
		// silent for a while after every failure): it needs no caller, only time.
		for (const name of never) fs.writeFileSync(path.join(folder, name), '2013:before');
		await until(`${never} fails`, () => !never.some((name) => fs.existsSync(path.join(folder, name))), PATIENCE_MS);
		for (const r of ROUNDS) assert.ok(fired.get(r).size > 15, r);
	});
});
