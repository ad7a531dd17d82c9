// Jobs and those who call: idempotency, result pick-up, clients that go away, cancels, and keys,
// tokens and accounts that end before their jobs do.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client, request } from '../lib/client.mjs';
import { children, dev, idHex, jobState, sql, sqlOne } from '../lib/instance.mjs';
import { instanceRunner, sandboxes } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded, CREATE, customer, hubs, saveRunner, through } from './stage.mjs';

let hub, client;

before(async () => {
	[hub] = await hubs(1);
	client = await customer();
});
after(() => hub.stop());

const used = (who) => who.rest('usage_and_upgrade').then((r) => r.json.used);
const lane = () => hub.lane(instanceRunner().url);
const boxOf = (id) => sqlOne(`SELECT provider_id FROM sandbox WHERE job = ${idHex(id)}`);
const runs = (id) => until('it runs', async () => await jobState(id) === 'running');
const isGone = (box) => until('the runner has it no more', async () =>
	!(await sandboxes(instanceRunner())).includes(box));

/** A job that would take five minutes, running; with its sandbox. */
async function longJob(who, more = {}) {
	const job = await who.job({ cmd: 'echo begun; sleep 300', timeout_s: 400, wait_s: 0, ...more });
	await runs(job.job_id);
	return { id: job.job_id, box: await boxOf(job.job_id) };
}

async function newKey(who, kind = 'agent') {
	const reply = await who.api('POST', '/api/keys', { name: 'made here', kind });
	assert.equal(reply.status, 201, reply.text);
	const made = new Client(dev.url, reply.json.key);
	made.keyId = reply.json.id;
	return made;
}

describe('idempotency', { concurrency: 8 }, () => {
	test('the same key and arguments give the same job, over REST and MCP, and count once', async () => {
		const who = await customer();
		const before = await used(who);
		const args = { cmd: 'echo $$; date +%N', env: { A: '1' }, files: [{ path: 'a', content: 'b' }] };
		const first = await who.job({ ...args, idempotency_key: 'k1' });
		const again = await who.job({ ...args, wait_s: 7, base64_output: true },
			{ headers: { 'Idempotency-Key': 'k1' } });
		const mcp = (await who.mcp('run_job', { ...args, idempotency_key: 'k1' })).json;
		for (const twin of [again, mcp]) {
			assert.equal(twin.job_id, first.job_id);
			assert.equal(twin.stdout, first.stdout);
		}
		assert.ok(again.stdout_base64);
		assert.equal(await used(who), before + 1);
	});

	test('another content is 422, over REST and MCP, and counts nothing', async () => {
		const who = await customer();
		const first = await who.job({ cmd: 'echo a', idempotency_key: 'k2' });
		const before = await used(who);
		for (const other of [{ cmd: 'echo b' }, { cmd: 'echo a', timeout_s: 9 },
			{ cmd: 'echo a', files: [{ path: 'x', content: '' }] }]) {
			const rest = await who.rest('run_job', { ...other, idempotency_key: 'k2' });
			assert.equal(rest.status, 422, rest.text);
			assert.equal(rest.json.code, 'idempotency_conflict');
			assert.match(rest.headers['content-type'], /problem\+json/);
			const mcp = await who.mcp('run_job', { ...other, idempotency_key: 'k2' });
			assert.equal(mcp.isError, true);
			assert.match(mcp.text, /idempotency_conflict/);
		}
		assert.equal(await used(who), before);
		assert.equal((await who.job({ cmd: 'echo a', idempotency_key: 'k2' })).job_id, first.job_id);
	});

	test('a header that differs from the argument is refused by name', async () => {
		const reply = await client.rest('run_job', { cmd: 'true', idempotency_key: 'a' },
			{ headers: { 'Idempotency-Key': 'b' } });
		assert.equal(reply.status, 400);
		assert.equal(reply.json.code, 'bad_input');
		assert.match(reply.text, /idempotency_key/);
	});

	test('two accounts may use the same key', async () => {
		const other = await customer();
		const [a, b] = await Promise.all([client, other].map((who) =>
			who.job({ cmd: 'true', idempotency_key: 'shared' })));
		assert.notEqual(a.job_id, b.job_id);
	});

	test('16 twins at once are one job, one sandbox, one command and one counted call', async () => {
		const who = await customer();
		const way = lane();
		await saveRunner(who, 'counted', { url: way.url, token: instanceRunner().token });
		const before = await used(who);
		const args = { cmd: 'date +%s%N', key: 'counted', idempotency_key: 'twins' };
		const twins = await Promise.all(Array.from({ length: 16 }, async (_, i) =>
			(i % 2 ? (await who.mcp('run_job', args)).json : who.job(args))));
		for (const twin of twins) {
			assertEnded(twin, 'succeeded');
			assert.equal(twin.job_id, twins[0].job_id);
			assert.equal(twin.stdout, twins[0].stdout);
		}
		assert.equal(await used(who), before + 1);
		assert.equal((await who.rest('list_jobs')).json.jobs.length, 1);
		const creates = way.requests.filter((r) => CREATE.path.test(r.split(' ')[1]) && r.startsWith('POST'));
		assert.equal(creates.length, 1, 'one sandbox was asked for');
	});

	test('a twin of a running job waits on it; its connection is not what keeps it', async () => {
		const cut = new AbortController();
		const args = { cmd: 'tac /dev/null; sleep 4; echo end', idempotency_key: 'cut' };
		const first = client.rest('run_job', args, { signal: cut.signal }).catch((e) => e.name);
		const id = await until('the job is there', async () =>
			(await client.rest('list_jobs', { limit: 20 })).json.jobs
				.find((j) => j.command_word === 'tac' && j.state === 'running')?.job_id);
		cut.abort();
		assert.equal(await first, 'AbortError');
		const twin = await client.job(args);
		assertEnded(twin, 'succeeded');
		assert.equal(twin.job_id, id);
		assert.equal(twin.stdout, 'end\n');
	});
});

describe('whoever asks', { concurrency: 8 }, () => {
	test('another key of the account sees state and code, not the output', async () => {
		const who = await customer();
		const agent = await newKey(who);
		const job = await agent.job({ cmd: 'echo secret; exit 9' });
		assert.equal(job.stdout, 'secret\n');
		const seen = await who.get(job.job_id);
		assert.equal(assertEnded(seen, 'failed').exit_code, 9);
		assert.equal(seen.output, 'sealed_to_other_key');
		assert.equal(seen.stdout, undefined);
		const mcp = await who.mcp('get_job', { job_id: job.job_id });
		assert.equal(mcp.json.output, 'sealed_to_other_key');
		assert.ok(!mcp.text.includes('secret'));
		const running = await agent.job({ cmd: 'echo secret; sleep 3', wait_s: 0 });
		await runs(running.job_id);
		const now = await who.get(running.job_id, { wait_s: 0 });
		assert.equal(now.output, 'sealed_to_other_key');
		assert.equal(now.stdout, undefined);
		await who.rest('cancel_job', { job_id: running.job_id });
	});

	test('another account finds no such job, to read, cancel or list', async () => {
		const other = await customer();
		const job = await client.job({ cmd: 'true' });
		for (const tool of ['get_job', 'cancel_job']) {
			const rest = await other.rest(tool, { job_id: job.job_id });
			assert.equal(rest.status, 404);
			assert.equal(rest.json.code, 'job_not_found');
			const mcp = await other.mcp(tool, { job_id: job.job_id });
			assert.equal(mcp.isError, true);
			assert.match(mcp.text, /job_not_found/);
		}
		assert.equal((await other.rest('list_jobs')).json.jobs.length, 0);
	});

	test('a job id that is none is refused by name', async () => {
		for (const id of ['job_', 'x', `job_${'a'.repeat(27)}`, '']) {
			const reply = await client.rest('get_job', { job_id: id });
			assert.equal(reply.status, 400, reply.text);
			assert.match(reply.text, /job_id/);
		}
		const none = await client.rest('get_job', { job_id: `job_${'a'.repeat(26)}` });
		assert.equal(none.status, 404);
	});

	test('pages of list_jobs hold every job once, newest first', async () => {
		const who = await customer();
		const made = [];
		for (let i = 0; i < 5; i++)
			made.push((await who.job({ cmd: 'true', wait_s: 0 })).job_id);
		const seen = [];
		let before;
		do {
			const page = (await who.rest('list_jobs', { limit: 2, ...(before ? { before } : {}) })).json;
			seen.push(...page.jobs.map((j) => j.job_id));
			before = page.next;
		} while (before);
		assert.deepEqual(seen, made.reverse());
	});

	test('a client that goes away does not stop its job', async () => {
		for (const way of ['rest', 'mcp']) {
			const who = await customer();
			const cut = new AbortController();
			const call = who[way]('run_job', { cmd: 'sleep 2; echo kept' }, { signal: cut.signal })
				.catch((e) => e.name);
			const id = await until('the job runs', async () =>
				(await who.rest('list_jobs')).json.jobs.find((j) => j.state === 'running')?.job_id);
			cut.abort();
			assert.equal(await call, 'AbortError');
			assert.equal(assertEnded(await who.get(id), 'succeeded').stdout, 'kept\n');
		}
	});

	test('any worker cancels: every one of them does so once', async () => {
		const workers = (await children()).worker.length;
		assert.ok(workers >= 2);
		const jobs = await Promise.all(Array.from({ length: 4 }, () => longJob(client)));
		await Promise.all(jobs.map(async (job, i) => {
			const reply = await client[i % 2 ? 'mcp' : 'rest']('cancel_job', { job_id: job.id });
			assertEnded(reply.json, 'cancelled');
			await isGone(job.box);
		}));
	});

	test('a job that is cancelled by many at once is cancelled', async () => {
		const job = await longJob(client);
		const replies = await Promise.all(Array.from({ length: 8 }, () =>
			client.rest('cancel_job', { job_id: job.id })));
		for (const reply of replies) assertEnded(reply.json, 'cancelled');
		await isGone(job.box);
	});
});

describe('what ends before its job', { concurrency: 8 }, () => {
	test('a revoked key: its jobs are cancelled at once, its results deleted, it is dead', async () => {
		const who = await customer();
		const agent = await newKey(who);
		const old = await agent.job({ cmd: 'echo old' });
		const job = await longJob(agent);
		const reply = await who.api('DELETE', `/api/keys/${agent.keyId}`);
		assert.equal(reply.status, 200, reply.text);
		assert.equal(reply.json.jobs_cancelled, 1);
		assert.equal((await agent.rest('list_jobs')).status, 401);
		assert.equal((await agent.mcp('list_jobs')).status, 401);
		const done = assertEnded(await who.get(job.id), 'cancelled');
		assert.ok(done.timings.run_ms < 19000, 'at once, not when a poll was over');
		assert.equal(await sqlOne(`SELECT COUNT(*) FROM result WHERE job IN
			(${idHex(job.id)}, ${idHex(old.job_id)})`), '0');
		await isGone(job.box);
	});

	test('a revoked key with keep_jobs: they go on to their end, without a result', async () => {
		const who = await customer();
		const agent = await newKey(who);
		const job = await agent.job({ cmd: 'sleep 3; echo end; exit 6', wait_s: 0 });
		await runs(job.job_id);
		const reply = await who.api('DELETE', `/api/keys/${agent.keyId}`, { keep_jobs: true });
		assert.equal(reply.json.jobs_cancelled, 0);
		assert.equal((await agent.rest('list_jobs')).status, 401);
		const done = assertEnded(await who.get(job.job_id), 'failed');
		assert.equal(done.exit_code, 6);
		assert.equal(await sqlOne(`SELECT COUNT(*) FROM result WHERE job = ${idHex(job.job_id)}`), '0');
	});

	test('a deleted provider key: no new job, its own are cancelled at once, the key is erased', async () => {
		const who = await customer();
		await saveRunner(who, 'second', instanceRunner());
		const job = await longJob(who, { key: 'second' });
		const other = await longJob(who, { key: 'direct' });
		const reply = await who.rest('delete_provider_key', { name: 'second' });
		assert.equal(reply.json.jobs_cancelled, 1);
		const refused = await who.rest('run_job', { cmd: 'true', key: 'second' });
		assert.equal(refused.status, 404);
		assert.equal(refused.json.code, 'key_not_found');
		const done = assertEnded(await who.get(job.id), 'cancelled');
		assert.ok(done.timings.run_ms < 19000, 'at once, not when a poll was over');
		await isGone(job.box);
		await until('the sealed key is erased', async () => await sqlOne(`SELECT COUNT(*)
			FROM provider_key WHERE account = ${idHex(who.account)} AND name = 'second'`) === '0');
		assert.equal(await jobState(other.id), 'running', 'jobs of other keys go on');
		await who.rest('cancel_job', { job_id: other.id });
	});

	test('a replaced provider key: the running job ends with the old version', async () => {
		const who = await customer();
		const way = lane();
		await through(who, way, 'mine');
		const job = await who.job({ cmd: 'sleep 4; echo end', key: 'mine', wait_s: 0 });
		await runs(job.job_id);
		const saved = await saveRunner(who, 'mine', { url: lane().url, token: instanceRunner().token });
		assert.equal(saved.version, 2);
		const next = await who.job({ cmd: 'echo next', key: 'mine' });
		assertEnded(next, 'succeeded');
		assert.equal(assertEnded(await who.get(job.job_id), 'succeeded').stdout, 'end\n');
		assert.ok(way.requests.some((r) => r.startsWith('DELETE')), 'stopped with the old version');
		await until('the old version is erased', async () => (await sql(`SELECT version FROM provider_key
			WHERE account = ${idHex(who.account)} AND name = 'mine'`)).map(String).join() === '2');
	});

	test('a deleted account: dead at once, its sandboxes stopped, its rows erased', async () => {
		const who = await customer();
		const agent = await newKey(who);
		await who.rest('check_memory', { free_mb: 100, job: 'make' });
		await who.job({ cmd: 'true' });
		const job = await longJob(agent);
		assert.equal((await agent.api('DELETE', '/api/account')).status, 403);
		const reply = await who.api('DELETE', '/api/account');
		assert.equal(reply.status, 200, reply.text);
		for (const dead of [who, agent]) {
			assert.equal((await dead.rest('list_jobs')).status, 401);
			assert.equal((await dead.mcp('list_jobs')).status, 401);
		}
		await isGone(job.box);
		const tables = ['job', 'sandbox', 'token', 'provider_key', 'data_key', 'check_log', 'usage_day'];
		await until('every row is erased', async () => {
			for (const table of tables)
				if (await sqlOne(`SELECT COUNT(*) FROM ${table}
					WHERE account = ${idHex(who.account)}`) !== '0') return false;
			return await sqlOne(`SELECT COUNT(*) FROM account WHERE id = ${idHex(who.account)}`) === '0';
		}, 60000);
		assert.equal((await request(`${dev.url}/readyz`)).status, 200);
	});
});
