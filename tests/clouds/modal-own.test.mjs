// What only Modal has, simulated: tokens of routers that run out, ends that are not told, routers and images
// that take their time, lists of several pages (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { account, useSimulators } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { start } from '../simulators/modal/index.mjs';
import { once } from './trouble.mjs';

describe('modal: what only it has', () => {
	let place, client;

	before(async () => {
		place = await start();
		await useSimulators({ modal: place });
		client = await account('pro');
		const saved = await client.rest('save_provider_key', { provider: 'modal', name: 'modal', ...place.credential });
		assert.equal(saved.status, 200, saved.text);
		assert.equal(saved.json.checked, true);
	});

	afterEach(async () => {
		place.clear();
		await until('nothing lives', () => place.boxes().every((box) => box.ended !== undefined));
		Object.assign(place.plan, { bootMs: 0, imageBuild: false, throttleS: 0 });
		place.log.length = 0;
	});

	after(() => place.stop());

	const begin = async (args) => {
		const reply = await client.rest('run_job', { key: 'modal', wait_s: 0, ...args });
		assert.equal(reply.status, 200, reply.text);
		return reply.json;
	};
	const end = (job) => until('it ends', async () => {
		const seen = await client.get(job.job_id, { wait_s: 100 });
		return seen.state === 'ended' && seen;
	});
	const job = async (args) => end(await begin(args));
	const calls = (name) => place.log.filter((entry) => entry.name === name);

	const fine = (done, code = 3) => {
		assert.equal(done.outcome, 'failed', JSON.stringify(done.error));
		assert.deepEqual([done.exit_code, done.stdout], [code, 'ran\n']);
	};

	test('a sandbox is made as it was asked for', async () => {
		await job({ cmd: 'true', memory_mb: 512, cpu: 2, template: 'debian:12', timeout_s: 100 });
		const [box] = place.boxes();
		const made = place.definition(box.id);
		assert.deepEqual(made.resources, { memoryMb: 512, milliCpu: 1000 });
		assert.equal(made.timeoutSecs, 220);
		assert.equal(made.networkAccess.type, 1);
		assert.equal(made.name, box.mark);
	});

	test('the keys go to the control service alone, and a router gets its own token', async () => {
		fine(await job({ cmd: once('echo ran; exit 3') }));
		for (const { path, headers } of place.log) {
			const router = path.includes('TaskCommandRouter');
			assert.equal('x-modal-token-secret' in headers, !router, path);
			assert.equal('x-modal-token-id' in headers, !router, path);
			assert.equal('authorization' in headers, router, path);
		}
	});

	test('a router token that runs out under a running command is renewed', async () => {
		const running = await begin({ cmd: once('while [ ! -e /tmp/go ] && [ $((i=i+1)) -lt 50 ]; do sleep 0.1; done; echo ran; exit 3') });
		await until('it is polled', () => calls('TaskExecStart').length >= 3);
		place.expireRouterTokens();
		fine(await end(running));
		assert.ok(calls('SandboxGetCommandRouterAccess').length >= 1);
	});

	test('the end of any call may stay untold once: the command runs once, and its code is its own', async () => {
		for (const op of ['put', 'write', 'exec', 'read', 'wait', 'destroy', 'look']) {
			const rule = place.rule({ op }, 'untold', { times: 1 });
			fine(await job({ cmd: once('echo ran; exit 3') }));
			assert.equal(rule.count, 1, op);
			place.clear();
		}
	});

	test('a create whose end is untold is found by its name and ended', async () => {
		place.rule({ op: 'create' }, 'untold', { times: 1 });
		const done = await job({ cmd: once('true') });
		assert.equal(done.outcome, 'provider_error');
		assert.equal(done.error.code, 'upstream_unsure');
		await until('it is looked for and ended', () => place.count('find') > 0 && place.count('destroy') > 0);
		assert.equal(calls('SandboxCreateV2').length, 1);
	});

	test('streams that break in the middle are taken up where they ended', async () => {
		const rule = place.rule({ op: 'read' }, 'cut-body', { bytes: 12, times: 3 });
		fine(await job({ cmd: once('echo ran; exit 3') }));
		assert.ok(rule.count >= 1);
		assert.ok(calls('TaskExecStdioRead').length > 4);
	});

	test('the router of a new sandbox takes its time', async () => {
		place.plan.bootMs = 2000;
		fine(await job({ cmd: once('echo ran; exit 3') }));
		assert.ok(calls('TaskExecStart').filter((entry) => entry.status === 14).length >= 1);
		assert.equal(calls('SandboxCreateV2').length, 1);
	});

	test('an image that has to be built is waited for', async () => {
		place.plan.imageBuild = true;
		fine(await job({ cmd: once('echo ran; exit 3'), template: 'new:1' }));
		assert.equal(calls('ImageJoinStreaming').length, 2);
	});

	test('an image that can not be made is the template\'s fault, and nothing is made', async () => {
		const done = await job({ cmd: 'true', template: 'no-such:1' });
		assert.equal(done.error.code, 'bad_input', JSON.stringify(done.error));
		assert.match(JSON.stringify(done.error), /template/);
		assert.equal(calls('SandboxCreateV2').length, 0);
	});

	test('a limit with a waiting time is told as one', async () => {
		place.plan.throttleS = 3000;
		const done = await job({ cmd: 'true' });
		assert.equal(done.outcome, 'provider_error');
		assert.equal(done.error.code, 'upstream_limit');
		assert.equal(place.boxes().filter((box) => box.ended === undefined).length, 0);
	});

	test('a sandbox that ends by itself is lost, whatever its end is called', async () => {
		for (const status of [4, 6, 7, 8]) {
			const running = await begin({ cmd: once('echo begun; sleep 300'), timeout_s: 400 });
			await until('it is polled', () => calls('TaskExecStart').length >= 3);
			place.end(place.boxes().find((box) => box.ended === undefined).id, status);
			const done = await end(running);
			assert.equal(done.outcome, 'lost', `${status}: ${JSON.stringify(done.error)}`);
			assert.equal(done.error.code, 'sandbox_gone');
			place.log.length = 0;
		}
	});

	test('keys that are halves, or nobody\'s, are refused by name', async () => {
		for (const token of ['ak-only', 'ak-only:', `${place.credential.token}x`]) {
			const reply = await client.rest('save_provider_key', { provider: 'modal', name: 'bad', token });
			assert.equal(reply.status, 400, reply.text);
			assert.equal(reply.json.code, 'key_refused');
			assert.ok(!reply.text.includes(token));
		}
	});
});
