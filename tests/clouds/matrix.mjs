// Every operation meets every kind of failure. What may come of it is a table: an outcome that is declared,
// the exit code of the command or none, one run at most, and nothing left behind.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { until } from '../lib/wait.mjs';
import { assertEnded, LEAK } from './stage.mjs';
import { once, POLLED } from './trouble.mjs';

const SIDE_BY_SIDE = 12;
const SWEPT = 4; // keys, so that a sweep is not waited for so often
const PAGE = `<!doctype html><html><body><h1>${LEAK}</h1></body></html>`;
const JSON_TYPE = { 'content-type': 'application/json' };
const WRONG = JSON.stringify({ id: 7, name: [LEAK], sandbox: LEAK, session: 1, items: LEAK, sandboxes: 3, code: LEAK, result: 0,
	state: 9, command: LEAK, sandboxID: {}, processes: LEAK, entries: null });

// Kinds of failure: what a rule does. The last word of some says who answers: "here" before the provider
// saw the request, "after" when it had done what was asked.
const KINDS = {
	dropped: ['drop', {}],
	'cut off': ['cut', {}],
	'cut in the middle': ['cut-body', { bytes: 9 }],
	nonsense: ['garbage', {}],
	'nothing after': ['replace', { status: 200, headers: JSON_TYPE, body: '' }],
	'wrong types after': ['replace', { status: 200, headers: JSON_TYPE, body: WRONG }],
	'a page after': ['replace', { status: 200, headers: { 'content-type': 'text/html' }, body: PAGE }],
	'500 after': ['replace', { status: 500, headers: { 'content-type': 'text/html' }, body: PAGE }],
	'500 here': ['answer', { status: 500, headers: JSON_TYPE, body: JSON.stringify({ error: LEAK, message: LEAK }) }],
	'401 here': ['answer', { status: 401, headers: JSON_TYPE, body: JSON.stringify({ error: { code: LEAK, message: LEAK } }) }],
	'429 here': ['answer', { status: 429, headers: { ...JSON_TYPE, 'retry-after': '1' }, body: JSON.stringify({ message: LEAK }) }],
};

const ENDED = ['failed']; // with the command's own code
const UNSURE = ['provider_error upstream_unsure', 'provider_error upstream_error'];
const REFUSED = 'provider_error key_refused';

// Which requests are spoilt, and what may come of it. A kind that is not named here has the first entry.
const OPS = {
	create: { rules: [['create', {}]], may: UNSURE,
		'401 here': [REFUSED], '429 here': [...ENDED, 'provider_error upstream_limit'] },
	put: { rules: [['put', {}]], may: ENDED, '401 here': [...ENDED, REFUSED] },
	start: { rules: [['exec', {}]], may: ENDED, '401 here': [...ENDED, REFUSED] },
	poll: { rules: [['exec', { skip: 1 }]], may: ENDED, first: POLLED },
	stop: { rules: [['destroy', {}]], may: ENDED },
	find: { lost: true, rules: [['find', {}]], may: UNSURE },
};

async function one(s, op, kind) {
	const way = await s.way();
	const { lost, rules, may, first = '', [kind]: special } = OPS[op];
	const [act, more] = KINDS[kind];
	if (lost) way.rule('create', 'cut', { times: 1 });
	const made = rules.map(([where, extra]) => way.rule(where, act, { times: 1, ...more, ...extra }));
	const job = await s.end(await way.start({ cmd: once(`${first}echo ran; exit 3`) }));
	const said = [job.outcome, job.error?.code].filter(Boolean).join(' ');
	assert.ok((special ?? may).includes(said), `${said}: ${JSON.stringify(job.error)}`);
	assertEnded(job, job.outcome);
	if (job.outcome === 'failed') assert.deepEqual([job.exit_code, job.stdout], [3, 'ran\n']);
	await s.settled(job);
	for (const rule of made) assert.equal(rule.count, 1, 'it was spoilt');
	assert.deepEqual(await way.living(), []);
	assert.equal(way.marks.size, 1, 'one sandbox was asked for');
}

/** The sweep meets all kinds, one after the other, while the jobs go on. */
async function lists(s) {
	const ways = await Promise.all(Array.from({ length: SWEPT }, async () => s.way(await s.newClient())));
	await Promise.all(ways.map(async (way) => s.settled(await s.end(await way.start({ cmd: 'true' }), way.client))));
	const rules = Object.values(KINDS).map(([act, more], i) =>
		s.place.spoil(ways[i % SWEPT], 'list', act, { times: 1, ...more }));
	const way = await s.way();
	const running = await way.start({ cmd: once('while [ ! -e /tmp/go ] && [ $((i=i+1)) -lt 300 ]; do sleep 0.1; done; exit 3'),
		timeout_s: 400 });
	await s.runs(running);
	for (const rule of rules) await rule.seen;
	assert.equal((await way.living()).length, 1, 'no list is a reason to stop anything');
	await s.client.rest('cancel_job', { job_id: running.job_id });
	await s.settled(await s.end(running));
}

/** A key is never called good on the word of a broken reply. */
async function checks(s, kind) {
	const [act, more] = KINDS[kind];
	const rule = s.place.spoil(undefined, 'check', act, more);
	const reply = await s.place.save(s.client, `checked-${kind}`);
	rule.release();
	assert.ok(rule.count > 0);
	assert.ok([400, 502].includes(reply.status), `${reply.status} ${reply.text}`);
	assert.match(reply.json.code, /^key_(check_failed|refused)$/);
	assert.ok(!reply.text.includes(LEAK));
}

export function matrix(s, { list }) {
	describe(`${s.place.name}: every operation and every failure`, { concurrency: SIDE_BY_SIDE }, () => {
		if (list) test('list: the sweep meets them all', () => lists(s));
		for (const op of Object.keys(OPS).filter((each) => list || each !== 'find'))
			for (const kind of Object.keys(KINDS))
				test(`${op}: ${kind}`, () => one(s, op, kind));
	});
	describe(`${s.place.name}: checks of a key`, () => {
		for (const kind of Object.keys(KINDS)) test(`check: ${kind}`, () => checks(s, kind));
		test('after all that a good key is good', async () => {
			const reply = await s.place.save(s.client, 'checked-good');
			assert.equal(reply.status, 200, reply.text);
			assert.equal(reply.json.checked, true);
			await until('and can be deleted', async () =>
				(await s.client.rest('delete_provider_key', { name: 'checked-good' })).status === 200);
		});
	});
}
