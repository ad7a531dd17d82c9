// What depends on the day and the hour: quotas and midnight, the hour of a result, the free plan, the
// weekly report. A second group of connector processes has another clock.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { account, idHex, shifted, sql, sqlOne } from '../lib/instance.mjs';
import { SocketClient } from '../lib/fcgi.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded, customer } from './stage.mjs';

const DAY_S = 86400;
const groups = [];

/** Callers of the same account who live `seconds` in the future. */
async function later(seconds) {
	const group = await shifted(seconds);
	groups.push(group);
	const at = (who) => new SocketClient(group.socket, who.key);
	await until('the other group is ready', async () =>
		(await at({}).api('GET', '/readyz')).status === 200);
	return at;
}

let tomorrow, nextHour;
before(async () => {
	[tomorrow, nextHour] = [await later(DAY_S), await later(3700)];
});
after(async () => {
	for (const group of groups) await group.stop();
});

const usage = async (who) => (await who.rest('usage_and_upgrade')).json;
const midnight = (ms) => new Date((Math.floor(ms / (DAY_S * 1000)) + 1) * DAY_S * 1000).toISOString();

describe('the quota', () => {
	test('ends at its limit with the reset time, over REST and MCP, and begins again at midnight', async () => {
		const who = await account('free');
		const first = await usage(who);
		assert.deepEqual([first.plan, first.used, first.limit, first.remaining, first.runs_jobs],
			['free', 0, 20, 20, false]);
		assert.equal(new Date(first.resets_at).toISOString(), midnight(Date.now()));
		const replies = await Promise.all(Array.from({ length: 30 }, (_, i) =>
			who[i % 2 ? 'mcp' : 'rest']('check_memory', { free_mb: 9000, job: 'ls' })));
		const good = replies.filter((r) => r.status === 200 && !r.isError);
		const refused = replies.filter((r) => !good.includes(r));
		assert.equal(good.length, 20, 'exactly the limit');
		for (const reply of refused) {
			assert.match(reply.text, /quota_used_up/);
			assert.match(reply.text, /midnight UTC/);
			if (reply.status === 429) assert.ok(Number(reply.headers['retry-after']) > 0);
		}
		const full = await usage(who);
		assert.deepEqual([full.used, full.remaining], [20, 0], 'asking for it is not counted');
		const next = tomorrow(who);
		const fresh = await usage(next);
		assert.deepEqual([fresh.used, fresh.remaining], [0, 20]);
		assert.equal(new Date(fresh.resets_at).toISOString(), midnight(Date.now() + DAY_S * 1000));
		assert.equal((await next.rest('check_memory', { free_mb: 9000, job: 'ls' })).status, 200);
		assert.equal((await usage(next)).used, 1);
		assert.equal((await usage(who)).used, 20);
	});

	test('usage shows the operator\'s offers, monthly and yearly', async () => {
		const shown = await usage(await account('free'));
		assert.deepEqual(shown.monthly, { price: '9 EUR', url: 'https://pay.example/monthly' });
		assert.deepEqual(shown.yearly, { price: '90 EUR', url: 'https://pay.example/yearly' });
	});
});

describe('a result', () => {
	test('can be picked up for an hour, not longer', async () => {
		const who = await customer();
		const job = await who.job({ cmd: 'echo kept; exit 2' });
		const row = () => sqlOne(`SELECT COUNT(*) FROM result WHERE job = ${idHex(job.job_id)}`);
		const late = await nextHour(who).get(job.job_id);
		assert.equal(assertEnded(late, 'failed').exit_code, 2);
		assert.equal(late.output, 'expired');
		assert.equal(late.stdout, undefined);
		assert.equal(late.stdout_bytes, 5);
		const mcp = await nextHour(who).mcp('get_job', { job_id: job.job_id });
		assert.equal(mcp.json.output, 'expired');
		assert.equal(await row(), '1', 'it is there, and expired');
		groups[1].keeper('SIGCONT');
		await until('the sealed result is erased', async () => await row() === '0');
		groups[1].keeper('SIGSTOP');
	});
});

describe('the free plan', () => {
	test('stores nothing of a job but the log row, over REST and MCP', async () => {
		const who = await account('free');
		const count = async () => {
			const tables = ['job', 'sandbox', 'provider_key', 'check_log'];
			return Promise.all(tables.map((t) =>
				sqlOne(`SELECT COUNT(*) FROM ${t} WHERE account = ${idHex(who.account)}`)));
		};
		for (const way of ['rest', 'mcp']) {
			const reply = await who[way]('run_job', { cmd: 'SECRET=hunter2 make -j8 canary-target',
				env: { CANARY: 'canary-value' }, files: [{ path: 'canary-path', content: 'canary-content' }] });
			assert.equal(reply.status, 200);
			assert.equal(reply.json.state, 'watch_only');
			assert.equal(reply.json.job_id, undefined);
			assert.equal(reply.json.command_word, 'make');
			assert.ok(!reply.isError);
		}
		assert.deepEqual(await count(), ['0', '0', '0', '2']);
		const rows = (await sql(`SELECT * FROM check_log WHERE account = ${idHex(who.account)}`)).flat().join(' ');
		assert.match(rows, /would_offload/);
		assert.match(rows, /make/);
		assert.doesNotMatch(rows, /canary|hunter2/);
		const refused = await who.rest('save_provider_key', { provider: 'tunnel', token: 'x', bridge_url: 'https://a.example' });
		assert.equal(refused.status, 403);
		assert.equal(refused.json.code, 'pro_needed');
	});
});

describe('the weekly report', () => {
	test('has the numbers of the rows, for pro and free', async () => {
		const who = await customer();
		await Promise.all([who.job({ cmd: 'true' }), who.job({ cmd: 'exit 3' }), who.job({ cmd: 'exit 137' }),
			who.job({ cmd: 'true', cwd: 'none' }), who.job({ cmd: 'sleep 9', timeout_s: 1 }),
			who.rest('check_memory', { free_mb: 10, job: 'make' }),
			who.rest('check_memory', { free_mb: 90000, total_mb: 100000, job: 'ls' })]);
		const report = (await who.rest('weekly_report')).json;
		const mcp = (await who.mcp('weekly_report')).json;
		for (const name of ['jobs', 'checks', 'low', 'critical', 'minutes'])
			assert.equal(mcp[name], report[name], name);
		const [row] = report.by_provider;
		assert.equal(report.by_provider.length, 1);
		const rows = Object.fromEntries(await sql(`SELECT outcome, COUNT(*) FROM job
			WHERE account = ${idHex(who.account)} GROUP BY outcome`));
		for (const outcome of ['succeeded', 'failed', 'timed_out', 'cancelled', 'not_started', 'provider_error', 'lost', 'uncertain'])
			assert.equal(row[outcome], Number(rows[outcome] ?? 0), outcome);
		assert.deepEqual([row.succeeded, row.failed, row.not_started, row.timed_out], [1, 2, 1, 1]);
		assert.equal(row.oom_suspected, 1);
		assert.deepEqual([report.jobs, report.checks, report.critical], [5, 2, 1]);
		const ms = Number(await sqlOne(`SELECT SUM(COALESCE(run_ms, 0)) FROM job WHERE account = ${idHex(who.account)}`));
		assert.ok(Math.abs(report.minutes - ms / 60000) < 0.06, `${report.minutes} against ${ms} ms`);
		assert.match(report.text, /5 jobs/);
		const old = (await tomorrow(who).rest('weekly_report')).json;
		assert.equal(old.jobs, 5, 'a day later it is still in the week');
	});
});
