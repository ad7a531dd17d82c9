// The migrations make a schema in which every statement can be prepared, takes as many values as its
// header says, and finds its rows without reading a growing table from end to end.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { configFile, state } from '../lib/instance.mjs';
import { statements, tablesOf } from './statements.mjs';

const run = promisify(execFile);
const script = process.env.CC_INSTANCE;
const schema = 'cc_plans';
const config = path.join(path.dirname(configFile), 'plans.ini');

// Rows in these tables grow with use. The others hold one row a process, a duty, a migration.
const GROWING = ['account', 'address_day', 'audit', 'check_log', 'data_key', 'day_sum', 'job', 'provider_key',
	'result', 'sandbox', 'token', 'usage_day'];

// What may read a growing table whole, and why.
const ALLOWED = {
	ACCOUNT_LIST: ['a'], // an operator's command, which shows the newest of all accounts
	MASTER_KEYS_IN_USE: ['data_key'], // an operator's command, which counts over all rows
	SUM_DAY: ['a'], // once a minute; one row an account, each answered by an index
};

const ACCOUNTS = 200;
const JOBS = 8000; // 40 an account

const as = (text, ...args) => {
	const child = run('bash', ['-c', `source "$1"; shift; instance_paths; ${text}`, 'bash', script, ...args],
		{ env: { ...process.env, CC_VAR: path.dirname(process.env.CC_DEV_JSON) }, maxBuffer: 64 << 20 });
	child.child.stdin.on('error', () => {});
	return child;
};

/** Runs SQL as the administrator of the database; gives the lines of its answer as cells. */
async function admin(text, { database = schema, force = false } = {}) {
	// --force: a refused statement does not keep the next ones from running.
	const child = as(force ? 'as_daemon mariadb --no-defaults --socket="$DB_SOCKET" --force' : 'db_client');
	child.child.stdin.end(`${database ? `USE ${database};\n` : ''}${text}\n`);
	const { stdout, stderr } = await child.catch((error) => {
		if (!force) throw error;
		return error;
	});
	return (force ? stderr : stdout).split('\n').filter((line) => (force ? line.startsWith('ERROR') : line)).map((line) => line.split('\t'));
}

const id = (table, expression) => `UNHEX(MD5(CONCAT('${table}', ${expression})))`;
const NOW = 1_800_000_000_000; // the newest row; older ones go back 80 days
const AT = `(${NOW} - seq * ${Math.floor(80 * 86_400_000 / JOBS)})`;
const DAY = `DATE_SUB('2027-01-15', INTERVAL (seq DIV ${ACCOUNTS}) DAY)`;
const ACCOUNT = id('account', `seq % ${ACCOUNTS}`);
const LIVE = 'seq < 20';

const FILL = `
INSERT INTO account (id, plan, created_at) SELECT ${id('account', 'seq')}, 'pro', ${AT} FROM seq_0_to_${ACCOUNTS - 1};
INSERT INTO data_key (id, account, master_key, wrapped, created_at)
	SELECT ${id('data_key', 'seq')}, ${ACCOUNT}, 1, 'x', ${AT} FROM seq_0_to_${ACCOUNTS * 2 - 1};
INSERT INTO token (id, account, kind, hash, last4, name, public_key, created_at)
	SELECT ${id('token', 'seq')}, ${ACCOUNT}, 'owner', UNHEX(SHA2(seq, 256)), 'abcd', 'n', UNHEX(SHA2(seq, 256)), ${AT}
	FROM seq_0_to_${ACCOUNTS * 5 - 1};
INSERT INTO provider_key (id, account, name, provider, version, state, data_key, blob_bytes, fingerprint, created_at,
	health_at)
	SELECT ${id('provider_key', 'seq')}, ${ACCOUNT}, CONCAT('k', seq DIV ${ACCOUNTS}), 'tunnel', 1,
	IF(seq < 10, 'old', 'active'), ${id('data_key', 'seq')}, 'x', 'abcd', ${AT}, ${AT}
	FROM seq_0_to_${ACCOUNTS * 5 - 1};
INSERT INTO usage_day (account, day, n) SELECT ${ACCOUNT}, ${DAY}, 5 FROM seq_0_to_${ACCOUNTS * 40 - 1};
INSERT INTO day_sum (account, day, checks, jobs, failed, run_ms)
	SELECT ${ACCOUNT}, ${DAY}, 5, 5, 1, 100 FROM seq_0_to_${ACCOUNTS * 40 - 1};
INSERT INTO address_day (address, day, kind, n)
	SELECT UNHEX(MD5(seq)), ${DAY}, 'call', 5 FROM seq_0_to_${ACCOUNTS * 40 - 1};
INSERT INTO process (id, node, pid, beat_at, dead)
	SELECT ${id('process', 'seq')}, 'n', seq, ${AT}, seq > 2 FROM seq_0_to_50;
INSERT INTO job (id, account, token, driver, fence, state, outcome, provider, key_name, word, timeout_s, idem_key,
	fingerprint, created_at, ended_at, peak_mb)
	SELECT ${id('job', 'seq')}, ${ACCOUNT}, ${id('token', `seq % ${ACCOUNTS * 5}`)}, ${id('process', 'seq % 50')}, 1,
	IF(${LIVE}, 'running', 'ended'), IF(${LIVE}, NULL, 'succeeded'), 'tunnel', 'k0', CONCAT('w', seq % 7), 600,
	IF(seq < 400, UNHEX(SHA2(seq, 256)), NULL), IF(seq < 400, UNHEX(SHA2(seq, 256)), NULL), ${AT},
	IF(${LIVE}, NULL, ${AT} + 1000), 100 FROM seq_0_to_${JOBS - 1};
INSERT INTO sandbox (id, account, job, attempt, provider_key, provider, key_name, mark, provider_id, state, created_at,
	ends_at)
	SELECT ${id('sandbox', 'seq')}, ${ACCOUNT}, ${id('job', 'seq')}, 0, ${id('provider_key', `seq % ${ACCOUNTS * 5}`)},
	'tunnel', 'k0', CONCAT('cc-mark-', seq), CONCAT('cc-mark-', seq), IF(${LIVE}, 'running', 'stopped'), ${AT},
	${AT} + 100000 FROM seq_0_to_${JOBS - 1};
INSERT INTO result (job, token, sealed, expires_at)
	SELECT ${id('job', 'seq')}, ${id('token', `seq % ${ACCOUNTS * 5}`)}, 'x', ${AT} + 3600000 FROM seq_0_to_${JOBS - 1};
INSERT INTO check_log (id, account, kind, word, status, verdict, at)
	SELECT ${id('check', 'seq')}, ${ACCOUNT}, 'check', CONCAT('w', seq % 7), 'ok', 'offload', ${AT}
	FROM seq_0_to_${JOBS - 1};
INSERT INTO audit (account, seq, token, action, object, at, hash)
	SELECT ${ACCOUNT}, seq DIV ${ACCOUNTS}, ${id('token', 'seq')}, 'token_create', 'o', ${AT}, UNHEX(SHA2(seq, 256))
	FROM seq_0_to_${JOBS - 1};
ANALYZE TABLE ${GROWING.join(', ')}, process;
`;

/** A value that a parameter of this name would have: rows of account 7, ages as the keeper asks. */
function value(statement, name) {
	const table = ['account', 'job', 'token', 'data_key', 'sandbox', 'provider_key', 'process']
		.find((t) => t === name.replace(/2$/, ''));
	const own = () => tablesOf(statement.text)[Object.keys(tablesOf(statement.text))[0]];
	if (table) return id(table, 7);
	if (name === 'driver') return id('process', 7);
	if (/^id2?$/.test(name)) return id(own() === 'account' ? 'account' : own(), 7);
	if (name === 'before' && statement.name === 'JOB_LIST') return id('job', 7);
	if (name === 'hash' || name === 'idem_key' || name === 'fingerprint') return 'UNHEX(SHA2(7, 256))';
	if (name === 'day') return "'2027-01-15'";
	if (name === 'before_day') return "'2026-11-20'";
	if (name === 'before') return NOW - 79 * 86_400_000; // what expires is always a small part
	if (/^(now|since|grace|at|at_hour)$/.test(name))
		return /EXPIRE|expires/.test(statement.name + statement.text) ? NOW - 79 * 86_400_000 : NOW - 86_400_000;
	if (/^from/.test(name)) return NOW - 86_400_000;
	if (/^to\d?/.test(name) || /_at$/.test(name)) return NOW;
	if (name === 'limit') return 100;
	if (/^(name|key_name|kind|word|provider|mark|state|node|error|provider_id|plan|action|object|warnings|outcome|verdict|status|last4|error_detail)$/.test(name))
		return ({ word: "'w3'", mark: "'cc-mark-7'", name: "'k0'", kind: "'call'" })[name] ?? "'x'";
	if (/^(address|public_key|wrapped|blob|sealed|created_by)$/.test(name)) return 'UNHEX(MD5(7))';
	return 1;
}

const using = (s) => s.params.map((_, i) => `@p${i}`).join(', ');
const set = (s) => s.params.map((p, i) => `SET @p${i} = ${value(s, p)};`).join('\n');

before(async () => {
	fs.writeFileSync(config, fs.readFileSync(configFile, 'utf8')
		.replace('[database]\n', `[database]\nschema = ${schema}\n`), { mode: 0o600 });
	const { uid, gid } = fs.statSync(configFile);
	fs.chownSync(config, uid, gid);
	await admin(`DROP DATABASE IF EXISTS ${schema}; CREATE DATABASE ${schema};`, { database: null });
	await as('as_daemon "$STATE/bin/compute-connector" migrate --config "$1"', config);
	await admin(FILL);
});

after(async () => {
	await admin(`DROP DATABASE ${schema};`, { database: null });
	fs.rmSync(config);
});

describe('statements', () => {
	const list = statements();

	test('a second migration of the same schema changes nothing', async () => {
		const before = await admin('CHECKSUM TABLE migration, installation;');
		await as('as_daemon "$STATE/bin/compute-connector" migrate --config "$1"', config);
		assert.deepEqual(await admin('CHECKSUM TABLE migration, installation;'), before);
	});

	test('a schema of the first version is brought up to date, and its rows stay', async () => {
		const older = 'cc_older', olderConfig = path.join(path.dirname(configFile), 'older.ini');
		const { uid, gid } = fs.statSync(configFile);
		fs.writeFileSync(olderConfig, fs.readFileSync(config, 'utf8').replace(`schema = ${schema}`, `schema = ${older}`),
			{ mode: 0o600 });
		fs.chownSync(olderConfig, uid, gid);
		await admin(`DROP DATABASE IF EXISTS ${older}; CREATE DATABASE ${older};`, { database: null });
		const files = path.join(process.env.CC_ROOT, 'schema');
		const sql = (text) => admin(text, { database: older });
		await sql(fs.readFileSync(path.join(files, '0001_init.sql'), 'utf8'));
		await sql(`INSERT INTO migration VALUES (1, ${NOW});
			INSERT INTO provider_key (id, account, name, provider, version, state, data_key, blob_bytes, fingerprint, created_at,
				health_at) VALUES (${id('k', 1)}, ${id('a', 1)}, 'mine', 'modal', 3, 'active', ${id('d', 1)}, 'x', 'abcd', 1, 1);`);
		await as('as_daemon "$STATE/bin/compute-connector" migrate --config "$1"', olderConfig);
		const versions = fs.readdirSync(files).flatMap((name) => name.match(/^(\d{4})_.*\.sql$/)?.[1] ?? []).map(Number);
		assert.deepEqual((await sql('SELECT version FROM migration ORDER BY version;')).slice(1).flat().map(Number), versions);
		assert.deepEqual((await sql('SELECT name, version, rates FROM provider_key;')).at(-1), ['mine', '3', 'NULL']);
		const columns = (of) => admin(`SELECT table_name, column_name, column_type, is_nullable FROM information_schema.columns
			WHERE table_schema = '${of}' ORDER BY table_name, ordinal_position;`, { database: null });
		assert.deepEqual(await columns(older), await columns(schema));
		await admin(`DROP DATABASE ${older};`, { database: null });
		fs.rmSync(olderConfig);
	});

	test('every file of queries is known to this test', () => {
		assert.ok(list.length > 90, `${list.length} statements`);
		assert.equal(new Set(list.map((s) => s.name)).size, list.length, 'a name stands for one statement');
		for (const s of list) assert.ok(s.text, s.name);
	});

	test('every statement is prepared and takes as many values as its header says', async () => {
		const count = (s, n) => {
			const args = Array.from({ length: n }, (_, i) => `@n${i}`).join(', ');
			const explain = /^(SELECT|INSERT|UPDATE|DELETE)/.test(s.text) ? 'EXPLAIN ' : '';
			return `PREPARE s FROM '${explain}${s.text.replaceAll("'", "''")}'; EXECUTE s${n ? ` USING ${args}` : ''};`;
		};
		assert.deepEqual(await admin(list.map((s) => count(s, s.params.length)).join('\n'), { force: true }), []);
		const errors = await admin(list.map((s) => count(s, s.params.length + 1)).join('\n'), { force: true });
		assert.equal(errors.filter(([line]) => /^ERROR 1210 /.test(line)).length, list.length,
			'one value more is refused');
	});

	test('no statement reads a growing table from end to end', async () => {
		const wrong = [];
		const judged = list.filter((s) => /^(SELECT|UPDATE|DELETE|INSERT.*SELECT)/.test(s.text));
		const answer = await admin(judged.map((s) => `SELECT 'BEGIN', '${s.name}'; ${set(s)}
			PREPARE s FROM 'EXPLAIN ${s.text.replaceAll("'", "''")}';
			EXECUTE s${s.params.length ? ` USING ${using(s)}` : ''};`).join('\n'));
		let statement, head;
		const seen = new Set();
		for (const row of answer) {
			if (row[0] === 'BEGIN') statement = judged.find((s) => s.name === row[1]);
			else if (row[0] === 'id') head = row;
			if (row[0] === 'BEGIN' || row[0] === 'id') continue;
			const r = Object.fromEntries(head.map((key, i) => [key, row[i]]));
			if (process.env.CC_SHOW_PLANS) console.log(statement.name, row.join(' '));
			seen.add(statement.name);
			const growing = GROWING.includes(tablesOf(statement.text)[r.table]);
			if (!growing || ALLOWED[statement.name]?.includes(r.table)) continue;
			const whole = r.type === 'ALL' || r.type === 'index';
			if (whole || Number(r.rows) > JOBS / 10)
				wrong.push(`${statement.name}: ${r.table} ${r.type} ${r.key} ${r.rows} rows ${r.Extra}`);
		}
		assert.deepEqual(judged.map((s) => s.name).filter((name) => !seen.has(name)), []);
		assert.deepEqual(wrong, []);
	});

	test('the plans of a table without indexes would be refused', async () => {
		await admin('CREATE TABLE bare AS SELECT * FROM job;');
		const [head, row] = await admin("EXPLAIN SELECT id FROM bare WHERE account = 'x';");
		assert.equal(row[head.indexOf('type')], 'ALL');
		await admin('DROP TABLE bare;');
	});
});
