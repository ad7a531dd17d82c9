// What a command prints and does to its sandbox: tails, offsets, bytes that are no text, much of
// everything, and commands that behave badly within their limits.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { allowOrigins, mark } from '../lib/instance.mjs';
import { nothingLeft, startRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { assertEnded, customer, saveRunner } from './stage.mjs';

const TAIL = 16384;
let client, tiny;

before(async () => {
	tiny = await startRunner({ args: ['--disk', '24', '--memory', '256'] });
	await allowOrigins([tiny.url]);
	client = await customer();
	await saveRunner(client, 'tiny', tiny);
});
after(() => tiny.stop());

const bytes = (text) => Buffer.from(text, 'base64');

describe('tails of a running job', { concurrency: 8 }, () => {
	test('show what was written so far, then the end, and offsets go on from there', async () => {
		const cmd = 'echo one; echo two >&2; echo three; sleep 12; echo four';
		const job = await client.job({ cmd, wait_s: 0 });
		assert.notEqual(job.state, 'ended');
		assert.match(job.note, /get_job/);
		const now = await until('output is there', async () => {
			const seen = await client.get(job.job_id, { wait_s: 0 });
			return seen.stdout?.includes('three') && seen;
		});
		assert.equal(now.state, 'running');
		assert.equal(now.stdout, 'one\nthree\n');
		assert.equal(now.stderr, 'two\n');
		assert.equal(now.output, 'inline');
		const done = await client.get(job.job_id, { stdout_offset: now.stdout_bytes });
		assertEnded(done, 'succeeded');
		assert.equal(done.stdout, 'four\n');
		assert.equal(done.stdout_offset, 10);
		assert.equal(done.stdout_truncated, false);
		const all = await client.get(job.job_id);
		assert.equal(all.stdout, 'one\nthree\nfour\n');
		assert.deepEqual([all.stdout_bytes, all.stderr_bytes, all.stdout_offset], [15, 4, 0]);
	});

	test('are the same from every worker, and from MCP', async () => {
		const job = await client.job({ cmd: 'echo begun; sleep 8', wait_s: 0 });
		await until('output is there', async () =>
			(await client.get(job.job_id, { wait_s: 0 })).stdout);
		const seen = await Promise.all(Array.from({ length: 12 }, async (_, i) =>
			(i % 2 ? (await client.mcp('get_job', { job_id: job.job_id, wait_s: 0 })).json
				: client.get(job.job_id, { wait_s: 0 }))));
		for (const s of seen) if (s.state === 'running') assert.equal(s.stdout, 'begun\n');
		assertEnded(await client.get(job.job_id), 'succeeded');
	});
});

describe('output', { concurrency: 8 }, () => {
	test('bytes are kept as written: CR, NUL, broken UTF-8; base64 has them all', async () => {
		const cmd = String.raw`printf 'a\rb\0c\377\376d\n'; printf '\303' >&2`;
		const plain = assertEnded(await client.job({ cmd }), 'succeeded');
		assert.equal(plain.stdout_base64, undefined);
		const job = assertEnded(await client.job({ cmd, base64_output: true }), 'succeeded');
		assert.deepEqual(bytes(job.stdout_base64), Buffer.from('a\rb\0c\xff\xfed\n', 'latin1'));
		assert.deepEqual(bytes(job.stderr_base64), Buffer.from([0xc3]));
		assert.match(job.stdout, /^a\rb.c\ufffd+d\n$/);
		assert.equal(job.invalid_utf8_replaced, true);
		assert.deepEqual([job.stdout_bytes, job.stderr_bytes], [9, 1]);
	});

	test('a long output is cut to its last 16 KiB, at the border of a character', async () => {
		const cmd = String.raw`i=0; while [ $i -lt 9000 ]; do printf '\303\244'; i=$((i+1)); done; printf x`;
		const job = assertEnded(await client.job({ cmd, base64_output: true }), 'succeeded');
		assert.equal(job.stdout_bytes, 18001);
		assert.equal(job.stdout_truncated, true);
		assert.equal(job.stdout_offset, 18001 - TAIL + 1, 'the cut fell into a character');
		assert.match(job.stdout, /^ä+x$/);
		assert.equal(job.invalid_utf8_replaced, false);
		assert.equal(bytes(job.stdout_base64).length, TAIL - 1);
	});

	test('100 MB of output keep their true count and their end', async () => {
		const cmd = 'yes 123456789 | head -c 104857600; echo; echo end; yes e | head -c 70000 >&2';
		const job = assertEnded(await client.job({ cmd, wait_s: 200 }), 'succeeded');
		assert.equal(job.stdout_bytes, 104857600 + 5);
		assert.equal(job.stderr_bytes, 70000);
		assert.ok(job.stdout.endsWith('\nend\n'));
		assert.equal(job.stdout.length, TAIL);
		assert.equal(job.stdout_truncated, true);
	});

	test('an offset beyond the end shows nothing, one before the tail shows the tail', async () => {
		const job = assertEnded(await client.job({ cmd: 'yes abcdefg | head -c 20000' }), 'succeeded');
		const beyond = await client.get(job.job_id, { stdout_offset: 20000 });
		assert.equal(beyond.stdout, '');
		assert.equal(beyond.stdout_offset, 20000);
		const early = await client.get(job.job_id, { stdout_offset: 8 });
		assert.equal(early.stdout_offset, 20000 - TAIL);
		assert.equal(early.stdout_truncated, true);
		const exact = await client.get(job.job_id, { stdout_offset: 20000 - TAIL });
		assert.equal(exact.stdout_truncated, false);
		assert.equal(exact.stdout.length, TAIL);
	});

	test('a job without output has empty tails', async () => {
		const job = assertEnded(await client.job({ cmd: 'true', base64_output: true }), 'succeeded');
		assert.deepEqual([job.stdout, job.stderr, job.stdout_base64], ['', '', '']);
		assert.deepEqual([job.stdout_bytes, job.stderr_bytes], [0, 0]);
	});
});

describe('commands', { concurrency: 8 }, () => {
	const says = (name, args, outcome, check) => test(name, async () => {
		const job = assertEnded(await client.job({ wait_s: 120, ...args }), outcome);
		await check(job);
	});

	says('that read standard input find it empty', { cmd: 'cat; echo read=$?' }, 'succeeded',
		(job) => assert.equal(job.stdout, 'read=0\n'));
	says('with a here-document work', { cmd: 'cat <<X\none $((1+1))\nX\nexit 5' }, 'failed',
		(job) => assert.deepEqual([job.stdout, job.exit_code], ['one 2\n', 5]));
	says('with set -e end at the first failure', { cmd: 'set -e\necho a\nfalse\necho b' }, 'failed',
		(job) => assert.deepEqual([job.stdout, job.exit_code], ['a\n', 1]));
	says('with CRLF line ends run as with LF', { cmd: 'echo a\r\nif true\r\nthen echo b\r\nfi\r\n' },
		'succeeded', (job) => assert.equal(job.stdout, 'a\nb\n'));
	says('with a syntax error fail with the shell\'s code', { cmd: 'if' }, 'failed',
		(job) => assert.equal(job.exit_code, 2));
	says('that do not exist fail with 127', { cmd: 'no-such-command-here' }, 'failed',
		(job) => assert.equal(job.exit_code, 127));
	says('get files, environment and a working directory', {
		cmd: 'pwd; cat x.txt; ./run.sh; echo "$A"',
		cwd: 'sub dir',
		env: { A: 'it\'s "quoted" $HOME\nline' },
		files: [{ path: 'sub dir/x.txt', content: 'aGFsbG8K', encoding: 'base64' },
			{ path: 'sub dir/run.sh', content: '#!/bin/sh\necho ran\n', mode: '0755' }],
	}, 'succeeded', (job) => assert.match(job.stdout,
		/^\/tmp\/job-[a-z2-7]+\/sub dir\nhallo\nran\nit's "quoted" \$HOME\nline\n$/));
	says('that exit 137 by themselves are failed with 137, which the rule suspects', { cmd: 'exit 137' },
		'failed', (job) => assert.deepEqual([job.exit_code, job.oom_suspected], [137, true]));
	says('that kill themselves are failed', { cmd: 'kill -9 $$' }, 'failed',
		(job) => assert.equal(job.exit_code, 137));
	says('that are ended by SIGTERM of their own are failed with 143', { cmd: 'kill -TERM $$' },
		'failed', (job) => assert.equal(job.exit_code, 143));
	says('that fill the disk keep their exit code', {
		cmd: 'cat /dev/zero >/tmp/fill 2>/dev/null; cat /dev/zero >fill2 2>/dev/null; echo full; exit 7',
		key: 'tiny',
	}, 'failed', (job) => assert.equal(job.exit_code, 7));
	says('that fill the disk and succeed are not taken for failed', {
		cmd: 'cat /dev/zero >/tmp/fill 2>/dev/null; df /tmp | tail -n 1; exit 0', key: 'tiny',
	}, 'succeeded', () => {});
	says('that fill the disk of a sandbox with little memory meet the disk\'s end first', {
		cmd: 'cat /dev/zero >/tmp/fill; a=$?; rm /tmp/fill; echo $a; cat /dev/zero 2>&1 >/tmp/fill | head -c 200; exit 7', memory_mb: 128,
	}, 'failed', (job) => {
		assert.equal(job.exit_code, 7);
		assert.match(job.stdout, /^1\n/);
	});
	says('that use more memory than the sandbox has are suspected of it', {
		cmd: 'head -c 400m /dev/zero | tail >/dev/null; a=$?; echo "code $a"; exit $a', memory_mb: 128,
	}, 'failed', (job) => {
		assert.equal(job.oom_suspected, true);
		assert.ok(job.exit_code > 0);
		assert.ok(job.peak_mb >= 100 && job.peak_mb <= 130, `peak ${job.peak_mb}`);
	});
	says('that fork without end stay within their limit, and end with their time', {
		cmd: 'f() { f | f & }; f 2>/dev/null; sleep 60', timeout_s: 3,
	}, 'timed_out', (job) => assert.match(job.sandbox, /^stopp/));
	says('that leave a daemon behind end, and it with them', {
		cmd: 'setsid sh -c "trap \'\' HUP TERM; sleep 1000" >/dev/null 2>&1 & (sleep 1000 &) ; echo left',
	}, 'succeeded', async (job) => {
		assert.equal(job.stdout, 'left\n');
		await until('its sandbox is stopped', async () =>
			(await client.get(job.job_id)).sandbox === 'stopped');
	});
});

test('nothing of all that runs any more', async () => {
	const prefix = await mark();
	await nothingLeft(prefix);
});
