// The part of the list in which requests and replies are lost, held or spoilt: the command runs once or
// not at all, the answer is true, and nothing is left.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { LEAK } from './stage.mjs';

const SIDE_BY_SIDE = 10;
const FEW = 10;
const HTML = `<html><head><title>502</title></head><body>${LEAK}</body></html>`;
const JSON_TYPE = { 'content-type': 'application/json' };
const PAGE = { 'content-type': 'text/html' };
const GROUP = 'sh -c "sh -c \\"trap \'\' TERM; sleep 400\\" & trap \'\' TERM; sleep 400 & wait" & sleep 400 | sleep 400';

/** A second run in the same sandbox would end with 99; one in another sandbox would be a second row. */
export const once = (rest) => `mkdir /tmp/first || exit 99; ${rest}`;
/** Before a command: it outlives what the start waits for, so that there are polls. */
export const POLLED = 'sleep 3; ';

function creates(s) {
	const loses = (name, act, more, code) => test(name, async () => {
		const way = await s.way();
		const rule = way.rule('create', act, { times: 1, ...more });
		const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
		assert.match(job.error.code, code);
		assert.equal(rule.count, 1);
		assert.equal(way.count('create'), 1, 'a create is never repeated blindly');
		assert.equal(way.count('exec'), 0);
		await s.settled(job);
		assert.deepEqual(await way.living(), []);
	});

	loses('a create whose reply is lost is found by its mark and stopped', 'cut', {}, /^upstream_unsure$/);
	loses('a create that never arrived is found to be absent', 'drop', {}, /^upstream_(unsure|error)$/);
	loses('a create whose reply is cut in the middle', 'cut-body', { bytes: 20 }, /^upstream_unsure$/);
	loses('a create that is answered with nonsense', 'garbage', {}, /^upstream_unsure$/);
	loses('a create that is answered with a page', 'replace', { status: 200, headers: PAGE, body: HTML }, /^upstream_unsure$/);
	loses('a create that is answered with nothing', 'replace', { status: 200, body: '' }, /^upstream_unsure$/);
	loses('a create that is answered with 502 and a page', 'replace', { status: 502, headers: PAGE, body: HTML },
		/^upstream_(unsure|error)$/);
	loses('a create that is refused because the key is bad', 'answer',
		{ status: 401, headers: JSON_TYPE, body: `{"error":{"message":"${LEAK}"}}` },
		/^key_refused$/);

	test('429 with a waiting time is waited for, and the job runs', async () => {
		const way = await s.way();
		const rule = way.rule('create', 'answer', { times: 1, status: 429, headers: { ...JSON_TYPE, 'retry-after': '1' }, body: '{}' });
		const job = await s.end(await way.start({ cmd: once('echo ran') }));
		assert.equal(job.outcome, 'succeeded', JSON.stringify(job.error));
		assert.equal(rule.count, 1);
		assert.equal(way.count('create'), 2);
		assert.equal(job.attempts.length, 1);
		await s.settled(job);
	});

	test('429 that asks for more time than a job has is told as what it is', async () => {
		const way = await s.way();
		way.rule('create', 'answer', { status: 429, headers: { ...JSON_TYPE, 'retry-after': '3000' },
			body: `{"message":"${LEAK}"}` });
		const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
		assert.equal(job.error.code, 'upstream_limit');
		assert.equal(job.sandbox, 'none');
		await s.settled(job);
	});
}

function moves(s) {
	/** A job that meets trouble after its create and comes through it. */
	const survives = (name, rules, first = '') => test(name, async () => {
		const way = await s.way();
		const made = rules.map(([op, act, more]) => way.rule(op, act, more));
		const job = await s.ends(await way.start({ cmd: once(`${first}cat f; exit 4`), files: [{ path: 'f', content: 'kept\n' }] }), 'failed');
		assert.deepEqual([job.exit_code, job.stdout], [4, 'kept\n']);
		for (const rule of made) assert.ok(rule.count > 0, `${rule.where.op} was spoilt`);
		assert.equal(way.count('create'), 1);
		await s.settled(job);
		assert.deepEqual(await way.living(), []);
	});

	survives('an upload whose reply is lost is repeated', [['put', 'cut', { times: 1 }]]);
	survives('an upload that never arrived is repeated', [['put', 'drop', { times: 1 }]]);
	survives('a start whose reply is lost runs once', [['exec', 'cut', { times: 1 }]]);
	survives('a start whose reply is lost twice runs once', [['exec', 'cut', { times: 2 }]]);
	survives('a start that is answered with nonsense runs once', [['exec', 'garbage', { times: 1 }]]);
	survives('a lost poll changes nothing', [['exec', 'cut', { skip: 1, times: 1 }]], POLLED);
	survives('polls that fail for a while change nothing', [['exec', 'answer', { skip: 1, times: 3, status: 503, headers: PAGE, body: HTML }]], POLLED);
	survives('a lost stop is repeated', [['destroy', 'cut', { times: 1 }]]);
	survives('everything once', [['put', 'cut', { times: 1 }], ['exec', 'cut', { times: 1 }], ['destroy', 'drop', { times: 1 }]]);

	test('a reply that is far too large is no reply', async () => {
		const way = await s.way();
		way.rule('exec', 'replace', { skip: 1, times: 1, status: 200, headers: JSON_TYPE, body: Buffer.alloc(20 << 20, LEAK) });
		const job = await s.ends(await way.start({ cmd: once(`${POLLED}exit 4`) }), 'failed');
		assert.equal(job.exit_code, 4);
		await s.settled(job);
	});

	test('uploads that never arrive are provider_error, and nothing began', async () => {
		const way = await s.way();
		way.rule('put', 'drop');
		const job = await s.ends(await way.start({ cmd: once('true') }), 'provider_error');
		assert.equal(job.started_at, undefined);
		assert.equal(way.count('exec'), 0);
		await s.settled(job);
	});

	test('a stop that can not be confirmed is told as stopping, and confirmed later', async () => {
		const way = await s.way();
		const rule = way.rule('destroy', 'answer', { status: 500, headers: PAGE, body: HTML });
		const job = await s.ends(await way.start({ cmd: 'echo done' }), 'succeeded');
		assert.equal((await s.sandboxes(job))[0][0] === 'stopped', false);
		await until('it was asked for', () => rule.count >= 3);
		assert.equal((await s.client.get(job.job_id)).sandbox, 'stopping');
		rule.release();
		await s.settled(job);
	});

	test('the whole group ends with its time, before its sandbox does', async () => {
		const way = await s.way();
		const stop = way.rule('destroy', 'hold');
		const job = await way.start({ cmd: `${GROUP}; echo no`, timeout_s: 2 });
		await stop.seen;
		assert.equal(await s.processesOf(job), 0, 'nothing of it runs while the sandbox still does');
		assert.equal((await way.living()).length, 1);
		stop.release();
		await s.ends(job, 'timed_out');
		await s.settled(job);
	});
}

function cancels(s) {
	/** Cancels a job that a rule holds; the command never begins. */
	const held = (name, op, act) => test(name, async () => {
		const way = await s.way();
		const rule = way.rule(op, act, { times: 1 });
		const job = await way.start({ cmd: once('sleep 100') });
		await rule.seen;
		await s.client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		rule.release();
		const done = await s.ends(job, 'cancelled');
		assert.equal(done.started_at, undefined);
		assert.deepEqual([done.stdout, done.stderr], [undefined, undefined]);
		await s.settled(job);
		assert.deepEqual(await way.living(), []);
	});

	held('a cancel while the sandbox is made: the command never begins', 'create', 'hold-reply');
	held('a cancel while the files are sent: the command never begins', 'put', 'hold');

	test('a cancel while the command is started ends it', async () => {
		const way = await s.way();
		const rule = way.rule('exec', 'hold-reply', { times: 1 });
		const job = await way.start({ cmd: once('sleep 100') });
		await rule.seen;
		await s.client.rest('cancel_job', { job_id: job.job_id, wait_s: 0 });
		rule.release();
		await s.settled(await s.ends(job, 'cancelled'));
	});
}

function endings(s) {
	test('a sandbox that vanishes under a running command is lost', async () => {
		const way = await s.way();
		const job = await way.start({ cmd: 'echo begun; sleep 300', timeout_s: 400 });
		await s.runs(job);
		await s.place.vanish((await way.living())[0].id);
		const done = await s.ends(job, 'lost');
		assert.equal(done.error.code, 'sandbox_gone');
		await s.settled(job);
	});

	test('a sandbox that vanishes before the start was no start', async () => {
		const way = await s.way();
		const rule = way.rule('exec', 'hold', { times: 1 });
		const job = await way.start({ cmd: once('sleep 100') });
		await rule.seen;
		await s.place.vanish((await way.living())[0].id);
		rule.release();
		const done = await s.ends(job, 'provider_error');
		assert.equal(done.error.code, 'sandbox_gone');
		await s.settled(job);
	});

	test('a sandbox that vanishes after a start whose answer was lost is uncertain', async () => {
		const way = await s.way();
		way.rule('exec', 'cut', { times: 1 });
		const again = way.rule('exec', 'hold', { times: 1 });
		const job = await way.start({ cmd: once('sleep 100') });
		await again.seen;
		await s.place.vanish((await way.living())[0].id);
		again.release();
		await s.settled(await s.ends(job, 'uncertain'));
	});
}

function connections(s) {
	const [fixed, each, ...unseen] = s.place.trips ?? [4, 1, 0];
	/** Runs a job with a file, compares what the provider saw with what we tell, and gives its number of polls. */
	async function counted() {
		const way = await s.way();
		const job = await s.ends(await way.start({ cmd: 'cat f', files: [{ path: 'f', content: 'x' }] }), 'succeeded');
		await s.settled(job);
		const own = way.seen.filter((e) => e.op !== 'list');
		const polls = way.count('exec') - 1;
		const again = way.count('destroy') - 1; // a stop that takes its time is asked for once more
		assert.equal(own.length, fixed + each * polls + again, own.map((e) => e.op).join(' '));
		assert.equal(way.count('put'), 1);
		const shown = await s.client.get(job.job_id);
		assert.ok(unseen.includes(shown.timings.round_trips - own.length), `${shown.timings.round_trips} are told`);
		return polls;
	}

	// On a busy machine a command may take longer than the start waits for its end, but not every time.
	test(`a job with files is ${fixed + unseen[0]} round trips: its start is also its first poll`, async () => {
		const polls = [];
		while (!polls.includes(0) && polls.length < FEW) polls.push(await counted());
		assert.ok(polls.includes(0), `${polls} polls`);
	});

	test('jobs in a row use the connection that is there: none for each of them', async () => {
		const used = new Set();
		for (let i = 0; i < 6; i++) {
			const way = await s.way();
			await s.settled(await s.ends(await way.start({ cmd: 'true' }), 'succeeded'));
			const own = new Set(way.seen.map((e) => e.connection));
			assert.ok(own.size <= 2, `${own.size} connections for one job`);
			for (const c of own) used.add(c);
		}
		// One for each worker, and one for the stop that a keeper confirms.
		assert.ok(used.size <= 3, `${used.size} connections for six jobs`);
	});
}

const other = () => Array.from({ length: 26 }, () => 'abcdefghijklmnopqrstuvwxyz234567'[Math.floor(Math.random() * 32)]).join('');

function sweeps(s) {
	test('the sweep ends what a dead job left, tells what nobody knows, and leaves others alone', async () => {
		const way = await s.way();
		const job = await s.ends(await way.start({ cmd: 'true' }), 'succeeded');
		await s.settled(job);
		const [[, , mark]] = await s.sandboxes(job);
		const prefix = mark.slice(0, 'cc-xxxxxx-'.length);
		await sql(`UPDATE sandbox SET created_at = created_at - 600000 WHERE mark = '${mark}'`);
		const stranger = await s.place.plant(`${prefix}${other()}`);
		const theirs = await s.place.plant(`cc-${prefix === 'cc-zzzzzz-' ? 'yyyyyy' : 'zzzzzz'}-${other()}`);
		const before = s.logged('sandbox.without_row');
		const dead = await s.place.plant(mark);
		const lives = async (id) => (await s.place.boxes()).some((box) => box.id === id && box.ended === undefined);
		await until('the sweep ends what the dead job left', async () => !await lives(dead));
		await until('the one without a row is told', () => s.logged('sandbox.without_row') > before);
		await s.settled(job);
		for (const id of [stranger, theirs]) {
			assert.ok(await lives(id), 'what is not proven ours is never killed');
			await s.place.vanish(id);
		}
	});
}

function limits(s) {
	test('a time limit above what the plan there allows is an error that names it, and no shorter job', async () => {
		const way = await s.way();
		const restore = s.place.limitLife(300);
		const job = await s.end(await way.start({ cmd: 'true', timeout_s: 600 }));
		restore();
		assert.ok(['provider_error', 'not_started'].includes(job.outcome), JSON.stringify(job));
		assert.equal(job.error.code, 'bad_input');
		assert.match(job.error.detail, /\d{2}/);
		assert.equal(job.sandbox, 'none');
		assert.deepEqual(await way.living(), []);
	});
}

export function trouble(s, { list }) {
	describe(`${s.place.name}: connections`, () => {
		connections(s);
		if (s.place.limitLife) limits(s);
	});
	describe(`${s.place.name}: trouble`, { concurrency: SIDE_BY_SIDE }, () => {
		creates(s);
		moves(s);
		cancels(s);
		endings(s);
	});
	if (list) describe(`${s.place.name}: what is left over`, () => sweeps(s));
}
