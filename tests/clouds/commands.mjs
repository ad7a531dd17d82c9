// The part of the list that asks what a command says, gets and leaves behind. It spoils nothing, so a real
// service can be asked the same (live.mjs).

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Client } from '../lib/client.mjs';
import { dev } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded } from './stage.mjs';

const TAIL = 16384;
const LONGEST_S = 3600;
const AT_ONCE = 50;
const AT_ONCE_LIVE = 5; // somebody pays for them
const SIDE_BY_SIDE = 8;

const bytes = (text) => Buffer.from(text, 'base64');

// [what it is, arguments, outcome, what must be seen of it]
const SAID = [
	['exit code 0 is succeeded', { cmd: 'true' }, 'succeeded', {}],
	['exit code 1 is failed', { cmd: 'false' }, 'failed', { exit_code: 1 }],
	['exit code 3 is its own', { cmd: 'echo out; echo err >&2; exit 3' }, 'failed',
		{ exit_code: 3, stdout: 'out\n', stderr: 'err\n' }],
	['a file that may not be executed is 126', { cmd: './f', files: [{ path: 'f', content: 'x' }] }, 'failed',
		{ exit_code: 126 }],
	['a command that does not exist is 127', { cmd: 'no-such-command-here' }, 'failed', { exit_code: 127 }],
	['exit code 255 is the highest', { cmd: 'exit 255' }, 'failed', { exit_code: 255 }],
	['a command that is killed is 137', { cmd: 'echo a; kill -9 $$' }, 'failed', { exit_code: 137, stdout: 'a\n' }],
	['a command that ends itself with TERM is 143', { cmd: 'kill -TERM $$' }, 'failed', { exit_code: 143 }],
	['a child that dies of a signal is told by its shell', { cmd: 'sh -c "kill -SEGV \\$\\$"; echo $?' }, 'succeeded',
		{ stdout: '139\n' }],
	['a syntax error is the shell\'s own code', { cmd: 'if' }, 'failed', { exit_code: 2 }],
	['both streams are kept apart and in order', { cmd: 'for i in 1 2 3; do echo o$i; echo e$i >&2; done' }, 'succeeded',
		{ stdout: 'o1\no2\no3\n', stderr: 'e1\ne2\ne3\n' }],
	['no output is empty', { cmd: 'exit 0' }, 'succeeded', { stdout: '', stderr: '', stdout_bytes: 0, stderr_bytes: 0 }],
	['only standard error', { cmd: 'echo e >&2' }, 'succeeded', { stdout: '', stderr: 'e\n' }],
	['output without a line end', { cmd: 'printf abc; printf def >&2' }, 'succeeded', { stdout: 'abc', stderr: 'def' }],
	['a character whose bytes come one by one',
		{ cmd: String.raw`printf '\303'; sleep 0.3; printf '\244\360\237'; sleep 0.3; printf '\230\200'; printf '\342' >&2; sleep 0.1; printf '\202\254' >&2` },
		'succeeded', { stdout: 'ä😀', stderr: '€', invalid_utf8_replaced: false }],
	['standard input is empty', { cmd: 'cat; echo read=$?' }, 'succeeded', { stdout: 'read=0\n' }],
	['a here-document', { cmd: 'cat <<X\none $((1+1))\nX\nexit 5' }, 'failed', { exit_code: 5, stdout: 'one 2\n' }],
	['quotes, newlines, unicode and = in the environment', {
		cmd: 'printf "%s|%s|%s|%s" "$Q" "$U" "$E" "$EMPTY"; test "${EMPTY+set}" = set',
		env: { Q: 'it\'s "quoted" `echo no` $HOME\nsecond line\\', U: 'ä😀', E: 'a=b=c', EMPTY: '' },
	}, 'succeeded', { stdout: 'it\'s "quoted" `echo no` $HOME\nsecond line\\|ä😀|a=b=c|' }],
	['quotes of every kind in the command', { cmd: 'echo \'$HOME\' "a\'b" \\"; echo "`echo c`" $(echo d)' }, 'succeeded',
		{ stdout: '$HOME a\'b "\nc d\n' }],
	['a working directory inside the job folder', { cmd: 'cat here', cwd: 'deep/er', files: [{ path: 'deep/er/here', content: 'x' }] },
		'succeeded', { stdout: 'x' }],
	['an absolute working directory', { cmd: 'pwd', cwd: '/tmp' }, 'succeeded', { stdout: '/tmp\n' }],
	['files with modes, nested and empty', {
		cmd: 'stat -c %a run.sh a/b/c.txt; ./run.sh; cat a/b/c.txt; wc -c <empty; ls',
		files: [{ path: 'run.sh', content: '#!/bin/sh\necho ran\n', mode: '0755' },
			{ path: 'a/b/c.txt', content: 'aGFsbG8K', encoding: 'base64', mode: '0640' }, { path: 'empty', content: '' }],
	}, 'succeeded', { stdout: '755\n640\nran\nhallo\n0\na\nempty\nrun.sh\n' }],
	['a background child that keeps the pipes open', { cmd: 'sleep 1000 & echo left' }, 'succeeded', { stdout: 'left\n' }],
	['a daemon that leaves its session',
		{ cmd: 'setsid sh -c "trap \'\' HUP TERM; sleep 1000" >/dev/null 2>&1 & (sleep 1000 &) ; echo left' },
		'succeeded', { stdout: 'left\n' }],
	['a command that outlives its time', { cmd: 'echo begun; sleep 100', timeout_s: 2 }, 'timed_out', { stdout: 'begun\n' }],
	['a command that answers TERM with 0 was timed out', { cmd: 'trap "exit 0" TERM; while :; do sleep 0.1; done', timeout_s: 2 },
		'timed_out', {}],
	['a command that ignores TERM', { cmd: 'trap "echo no" TERM; echo begun; while :; do sleep 1; done', timeout_s: 2 },
		'timed_out', { stdout: /^begun\nno\n/ }],
];

function saw(job, wanted) {
	for (const [name, value] of Object.entries(wanted))
		if (value instanceof RegExp) assert.match(job[name], value);
		else assert.equal(job[name], value, name);
}

function outcomes(s) {
	for (const [name, args, outcome, wanted] of SAID)
		test(name, async () => {
			const way = await s.way();
			const job = s.judge(await way.job(args));
			saw(assertEnded(job, outcome), wanted);
			await s.settled(job);
		});
}

function output(s) {
	test('bytes that are no text are kept: NUL, CR, broken UTF-8', async () => {
		const way = await s.way();
		const cmd = String.raw`printf 'a\rb\0c\377\376d\n'; printf '\303' >&2`;
		const job = assertEnded(await way.job({ cmd, base64_output: true }), 'succeeded');
		assert.deepEqual(bytes(job.stdout_base64), Buffer.from('a\rb\0c\xff\xfed\n', 'latin1'));
		assert.deepEqual(bytes(job.stderr_base64), Buffer.from([0xc3]));
		assert.equal(job.invalid_utf8_replaced, true);
	});

	test('a long output is cut to its last 16 KiB, at the border of a character', async () => {
		const way = await s.way();
		const cmd = String.raw`i=0; while [ $i -lt 9000 ]; do printf '\303\244'; i=$((i+1)); done; printf x`;
		const job = assertEnded(await way.job({ cmd, base64_output: true }), 'succeeded');
		saw(job, { stdout_bytes: 18001, stdout_truncated: true, stdout: /^ä+x$/, invalid_utf8_replaced: false });
		assert.equal(bytes(job.stdout_base64).length, TAIL - 1);
	});

	test('100 MB of output keep their true size and their end', async () => {
		const way = await s.way();
		const cmd = 'yes 123456789 | head -c 104857600; echo; echo end; yes e | head -c 70000 >&2';
		const job = assertEnded(await way.job({ cmd }), 'succeeded');
		saw(job, { stdout_bytes: 104857605, stderr_bytes: 70000, stdout: /\nend\n$/, stdout_truncated: true });
		assert.equal(job.stdout.length, TAIL);
	});

	test('of a running job can be read while it runs, and goes on by offset', async () => {
		const way = await s.way();
		const job = await way.start({ cmd: 'echo one; sleep 12; echo two' });
		const now = await until('output is there', async () => {
			const seen = await s.client.get(job.job_id, { wait_s: 0 });
			return seen.stdout && seen;
		});
		assert.equal(now.stdout, 'one\n');
		const done = assertEnded(await s.client.get(job.job_id, { stdout_offset: 4, wait_s: 60 }), 'succeeded');
		assert.equal(done.stdout, 'two\n');
	});

	test('the environment of a command holds nothing of ours', async () => {
		const way = await s.way();
		const job = assertEnded(await way.job({ cmd: 'cat /proc/$$/environ /proc/self/environ /proc/*/cmdline | tr "\\0" "\\n"' }),
			'succeeded');
		for (const secret of [s.client.key, s.place.token].filter(Boolean)) assert.ok(!job.stdout.includes(secret));
	});
}

function refusals(s) {
	test('a working directory that does not exist is not_started and names it', async () => {
		const way = await s.way();
		const job = assertEnded(await way.job({ cmd: 'true', cwd: 'no/such' }), 'not_started');
		saw(job, { started_at: undefined });
		saw(job.error, { code: 'bad_input', detail: /folder/ });
		await s.settled(job);
	});

	test('a time limit above the maximum is an error that names field and bound', async () => {
		const way = await s.way();
		const reply = await way.begin({ cmd: 'true', timeout_s: LONGEST_S + 1 });
		assert.equal(reply.status, 400, reply.text);
		assert.match(reply.text, /timeout_s/);
		assert.match(reply.text, /3600/);
	});

	test('the longest time limit is kept, or refused by name and number', async () => {
		const way = await s.way();
		const reply = await way.begin({ cmd: 'echo a', timeout_s: LONGEST_S });
		if (reply.status === 200) {
			const job = await s.end(reply.json);
			if (job.outcome === 'succeeded') assert.equal(job.timeout_s, LONGEST_S);
			else assert.match(`${job.outcome} ${job.error.detail}`, /(not_started|provider_error).*\d\d/);
		} else {
			assert.match(reply.text, /timeout_s.*\d\d|\d\d.*timeout_s/s);
		}
	});

	const wishes = { runtime: 'no-such-runtime', template: 'no-such-template-here', memory_mb: 1000000, cpu: 255,
		gpu: 'NO-SUCH:2' };
	for (const [option, value] of Object.entries(wishes))
		test(`${option}: what is not to be had is refused by name, never dropped`, async () => {
			const { providers } = (await s.client.rest('list_providers')).json;
			const offers = providers.find((p) => p.name === s.place.provider).options.includes(option);
			const way = await s.way();
			const reply = await way.begin({ cmd: 'true', [option]: value });
			if (!offers) {
				assert.equal(reply.status, 400, reply.text);
				assert.equal(reply.json.code, 'unsupported');
				assert.match(reply.text, new RegExp(option));
				assert.equal(way.count('create'), 0);
				return;
			}
			if (reply.status !== 200) return assert.match(reply.text, new RegExp(option));
			const job = await s.end(reply.json);
			if (job.outcome === 'succeeded')
				assert.ok(job.attempts[0].warnings || (way.seen[0]?.body.includes(value) ?? true), 'it was asked for, or its want is told');
			else assert.match(`${job.outcome} ${job.error.detail}`, /^(not_started|provider_error) ./);
			return s.settled(job);
		});

	test('a key that the provider does not know is refused, and so is a job with it', async () => {
		const bad = `no${s.place.token.slice(2).split('').reverse().join('')}`;
		const refused = await s.place.save(s.client, 'bad', { token: bad });
		assert.equal(refused.status, 400, refused.text);
		assert.equal(refused.json.code, 'key_refused');
		assert.ok(!refused.text.includes(bad));
		const saved = await s.place.save(s.client, 'bad', { token: bad, skip_check: true });
		assert.equal(saved.status, 200, saved.text);
		const way = await s.way(); // its create must not be taken for one of another case
		const job = await s.end(await way.start({ cmd: 'true', key: 'bad' }));
		assertEnded(job, 'provider_error');
		assert.equal(job.error.code, 'key_refused');
		assert.equal(job.sandbox, 'none');
	});

	test('a caller without a key, or with a wrong one, runs nothing', async () => {
		for (const key of [undefined, `${s.client.key.slice(0, -4)}aaaa`]) {
			const reply = await new Client(dev.url, key).rest('run_job', { cmd: 'true', provider: s.place.provider });
			assert.ok([401, 403, 409].includes(reply.status) || reply.json.state === 'watch_only', reply.text);
		}
	});
}

function calls(s) {
	test('over MCP the same job says the same', async () => {
		const way = await s.way();
		const args = { cmd: 'echo out; echo err >&2; exit 7', key: way.key };
		const mcp = await s.place.submit(way, async () => {
			const reply = await s.client.mcp('run_job', { ...args, wait_s: 0 });
			return { ...reply, status: 200 };
		});
		const job = await s.client.mcp('get_job', { job_id: mcp.json.job_id, wait_s: 100 });
		saw(assertEnded(job.json, 'failed'), { exit_code: 7, stdout: 'out\n', stderr: 'err\n' });
		assert.equal(job.isError, false);
	});

	test('the same idempotency key twice is one job in one sandbox', async () => {
		const way = await s.way();
		const args = { cmd: 'date +%s%N', idempotency_key: `twice-${s.place.name}` };
		const first = await way.start(args);
		const twins = await Promise.all([1, 2, 3].map(() => s.client.job({ ...s.place.extra, ...args, key: way.key, wait_s: 100 })));
		for (const twin of twins) {
			assert.equal(twin.job_id, first.job_id);
			assert.equal(twin.stdout, twins[0].stdout);
		}
		assert.equal((await s.sandboxes(first)).length, 1);
		const other = await s.client.rest('run_job', { ...args, key: way.key, cmd: 'echo other' });
		assert.equal(other.json.code, 'idempotency_conflict');
	});

	test('a cancel while it runs ends the command', async () => {
		const way = await s.way();
		const job = await way.start({ cmd: 'echo begun; sleep 300', timeout_s: 400 });
		await until('it says something', async () => (await s.client.get(job.job_id, { wait_s: 0 })).stdout);
		await s.client.rest('cancel_job', { job_id: job.job_id });
		const done = await s.ends(job, 'cancelled');
		assert.equal(done.stdout, 'begun\n');
		await s.settled(job);
	});

	test('a cancel right after the call, whatever the job is at', async () => {
		const way = await s.way();
		for (let i = 0; i < 3; i++) {
			let reply;
			const begun = await s.place.submit(way, async () => {
				const job = await s.client.rest('run_job', { cmd: 'sleep 300', timeout_s: 400, key: way.key, wait_s: 0 });
				reply = await s.client.rest('cancel_job', { job_id: job.json.job_id, wait_s: 60 });
				return job;
			});
			assertEnded(reply.json, 'cancelled');
			await s.settled(begun.json);
		}
	});

	test('a job that has ended keeps its outcome', async () => {
		const way = await s.way();
		const job = await way.job({ cmd: 'exit 3' });
		const reply = await s.client.rest('cancel_job', { job_id: job.job_id });
		assert.equal(assertEnded(reply.json, 'failed').exit_code, 3);
	});
}

/** Some at a time, in order. */
async function inTurns(n, width, fn) {
	const results = [];
	let next = 0;
	const worker = async () => {
		while (next < n) {
			const i = next;
			next += 1;
			results[i] = await fn(i);
		}
	};
	await Promise.all(Array.from({ length: width }, worker));
	return results;
}

function crowd(s) {
	const n = s.trouble ? AT_ONCE : AT_ONCE_LIVE;
	test(`${n} jobs at once: each has its own end, and none the files of another`, async () => {
		const way = await s.way();
		// All of them have a sandbox until the last command has ended.
		const gate = s.trouble && way.rule('destroy', 'hold');
		if (gate) s.hindered = way.marks; // filled as they are made
		const begun = await inTurns(n, SIDE_BY_SIDE, (i) => way.start({ cmd: 'cat f; ls /tmp | grep -c ^job-; exit $((N % 3))',
			env: { N: String(i) }, files: [{ path: 'f', content: `file ${i}\n` }] }));
		const jobs = await Promise.all(begun.map((job) => s.end(job)));
		if (gate) assert.equal((await way.living()).length, n);
		if (gate) gate.release();
		jobs.forEach((job, i) => {
			assertEnded(job, i % 3 ? 'failed' : 'succeeded');
			assert.equal(job.exit_code, i % 3);
			assert.equal(job.stdout, `file ${i}\n1\n`);
		});
		assert.equal(new Set(jobs.map((job) => job.job_id)).size, n);
		await Promise.all(jobs.map((job) => s.settled(job)));
	});
}

export function commands(s) {
	describe(`${s.place.name}: what a command does`, { concurrency: SIDE_BY_SIDE }, () => {
		outcomes(s);
		output(s);
		refusals(s);
		calls(s);
	});
	describe(`${s.place.name}: many jobs`, () => crowd(s));
}
