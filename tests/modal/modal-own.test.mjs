// What only Modal has, simulated: tokens of routers that run out, ends that are not told, routers and images
// that take their time, lists of several pages (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { hurried } from '../lib/hurry.mjs';
import { account, children, idHex, ready, sql, useSimulators } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { start } from '../simulators/modal/index.mjs';
import { once } from '../clouds/trouble.mjs';

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
		Object.assign(place.plan, { bootMs: 0, queueMs: 0, imageBuild: false, throttleS: 0 });
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
	const runs = (running) => until('it runs', async () =>
		(await client.get(running.job_id, { wait_s: 0 })).state === 'running');
	const hurry = (done) => place.creating() || sql(hurried(`job = ${idHex(done.job_id)}`));
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
		assert.ok(calls('TaskExecStdioRead').length > rule.count);
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

	// ---- GPUs: sandboxes of the first generation -----------------------------------------------------

	const FIRST = /^sb-[A-Za-z0-9]{22}$/;

	test('a job with a GPU gets a sandbox of the first generation that has it, and waits for its machine', async () => {
		place.plan.queueMs = 1500;
		const done = await job({ cmd: once('cat f; echo "$A"; echo oh >&2; exit 3'), gpu: 'a100-80gb:2', cpu: 4, memory_mb: 2048,
			template: 'debian:12', timeout_s: 100, files: [{ path: 'f', content: 'in\n' }], env: { A: 'b' } });
		assert.equal(done.outcome, 'failed', JSON.stringify(done.error));
		assert.deepEqual([done.exit_code, done.stdout, done.stderr], [3, 'in\nb\n', 'oh\n']);
		const box = place.boxes().at(-1);
		assert.match(box.id, FIRST);
		const made = place.definition(box.id);
		assert.deepEqual(made.resources, { memoryMb: 2048, milliCpu: 2000, gpu: { count: 2, gpuType: 'A100-80GB' } });
		assert.equal(made.timeoutSecs, 2 * 220); // as long again for its machine
		assert.equal(made.name, box.mark);
		assert.ok(calls('SandboxGetTaskId').length > 1);
		assert.deepEqual([calls('SandboxCreate').length, calls('SandboxCreateV2').length], [1, 0]);
		await until('its end is confirmed', async () => (await client.get(done.job_id)).sandbox === 'stopped');
		assert.equal(calls('SandboxTerminate').length, 1);
	});

	test('what a job with a GPU costs is not known', async () => {
		const without = await job({ cmd: 'true', cpu: 2, memory_mb: 1024 });
		assert.ok(without.cost_estimate.usd_per_hour > 0);
		const { cost_estimate: cost } = await job({ cmd: 'true', cpu: 2, memory_mb: 1024, gpu: 'T4' });
		assert.deepEqual([cost.usd, cost.usd_per_hour], [null, null]);
		assert.match(cost.note, /GPU/);
	});

	test('a create of a GPU job whose end is untold is found in its generation and ended', async () => {
		for (const act of ['untold', 'cut']) {
			place.rule({ op: 'create' }, act, { times: 1 });
			const done = await job({ cmd: once('true'), gpu: 'T4' });
			assert.equal(done.outcome, 'provider_error');
			assert.equal(done.error.code, 'upstream_unsure');
			await until('it is looked for and ended', () => calls('SandboxGetFromName').length > 0 && place.count('destroy') > 0
				&& place.boxes().every((box) => box.ended !== undefined));
			assert.equal(calls('SandboxCreate').length, 1);
			assert.equal(calls('SandboxTerminate').length, 1, 'the first generation was asked to end it');
			place.clear();
			place.log.length = 0;
		}
	});

	test('a create that never arrived is absent only when both generations say so', async () => {
		const broken = place.rule({ op: 'find', path: /SandboxGetFromName\?/ }, 'answer', { times: 2, grpc: 14, text: 'later' });
		place.rule({ op: 'create' }, 'drop', { times: 1 });
		const done = await job({ cmd: once('true'), gpu: 'T4' });
		assert.equal(done.error.code, 'upstream_unsure');
		await until('both were asked', async () => {
			await hurry(done);
			return broken.count === 2 && calls('SandboxGetFromName').length > 2;
		});
		await until('it is absent', async () => {
			await hurry(done);
			return (await client.get(done.job_id)).attempts[0].sandbox === 'absent';
		});
		assert.equal(place.count('destroy'), 0);
	});

	test('a GPU that Modal has not is refused by name, and nothing is made', async () => {
		for (const gpu of ['NO-SUCH', 'A10:5']) {
			const done = await job({ cmd: once('true'), gpu });
			assert.equal(done.outcome, 'provider_error');
			assert.equal(done.error.code, 'unsupported', JSON.stringify(done.error));
			assert.match(done.error.detail, /this gpu/);
			assert.equal(done.sandbox, 'none');
		}
		assert.deepEqual(place.boxes().filter((box) => box.ended === undefined), []);
	});

	test('a router token that runs out under a running GPU job is renewed, and a cancel ends it', async () => {
		const running = await begin({ cmd: once('while [ ! -e /tmp/go ] && [ $((i=i+1)) -lt 50 ]; do sleep 0.1; done; echo ran; exit 3'),
			gpu: 'T4' });
		await until('it is polled', () => calls('TaskExecStart').length >= 3);
		place.expireRouterTokens();
		fine(await end(running));
		assert.ok(calls('TaskGetCommandRouterAccess').length >= 2);
		assert.equal(calls('SandboxGetCommandRouterAccess').length, 0);
		const long = await begin({ cmd: once('echo begun; sleep 300'), gpu: 'T4', timeout_s: 400 });
		await runs(long);
		await client.rest('cancel_job', { job_id: long.job_id });
		assert.equal((await end(long)).outcome, 'cancelled');
	});

	test('a GPU job outlives our processes', async () => {
		const running = await begin({ cmd: once('echo begun; sleep 6; echo ran; exit 3'), gpu: 'T4', timeout_s: 100 });
		await runs(running);
		for (const pid of (await children()).worker) process.kill(pid, 'SIGKILL');
		await ready();
		const done = await end(running);
		assert.equal(done.outcome, 'failed', JSON.stringify(done.error));
		assert.deepEqual([done.exit_code, done.stdout], [3, 'begun\nran\n']);
		assert.equal(calls('SandboxCreate').length, 1);
	});

	test('a process that dies while a job waits for its machine leaves no sandbox', async () => {
		place.plan.queueMs = 100000;
		const waiting = await begin({ cmd: once('true'), gpu: 'T4' });
		await until('it waits', () => calls('SandboxGetTaskId').length > 0);
		for (const pid of (await children()).worker) process.kill(pid, 'SIGKILL');
		await ready();
		const done = await end(waiting);
		assert.equal(done.outcome, 'not_started', JSON.stringify(done.error));
		await until('its sandbox is ended', async () => (await client.get(done.job_id)).attempts[0].sandbox === 'stopped');
		assert.deepEqual([calls('SandboxTerminate').length, calls('TaskExecStart').length], [1, 0]);
	});

	test('a GPU sandbox that ends by itself is lost', async () => {
		const running = await begin({ cmd: once('echo begun; sleep 300'), gpu: 'T4', timeout_s: 400 });
		await until('it is polled', () => calls('TaskExecStart').length >= 3);
		place.end(place.boxes().find((box) => box.ended === undefined).id, 4);
		const done = await end(running);
		assert.deepEqual([done.outcome, done.error.code], ['lost', 'sandbox_gone']);
	});

	test('a job that waits for its machine is cancelled at once, and its key is not blamed', async () => {
		place.plan.queueMs = 100000;
		const waiting = await begin({ cmd: once('true'), gpu: 'T4' });
		await until('it waits', () => calls('SandboxGetTaskId').length > 0);
		const health = () => sql(`SELECT fails, limited_until FROM provider_key WHERE account = ${idHex(client.account)}`);
		const before = await health();
		await client.rest('cancel_job', { job_id: waiting.job_id, wait_s: 0 });
		const done = await end(waiting);
		assert.deepEqual([done.outcome, done.sandbox], ['cancelled', 'none'], JSON.stringify(done));
		assert.equal(done.attempts[0].sandbox, 'absent');
		assert.deepEqual([calls('SandboxTerminate').length, calls('TaskExecStart').length], [1, 0]);
		assert.deepEqual(await health(), before);
	});

	test('keys of providers without GPUs are passed over, and refuse one by name when they are named', async () => {
		const other = await account('pro');
		const save = (provider, more) => other.rest('save_provider_key', { provider, name: provider, skip_check: true, ...more });
		for (const [provider, more] of [['e2b', { token: 'e2b_x' }], ['daytona', { token: 'dtn_x' }],
			['vercel', { token: 'x', team_id: 'team_x', project_id: 'prj_x' }],
			['workers', { token: 'x', bridge_url: 'https://bridge.example' }],
			['tunnel', { token: 'x', bridge_url: 'https://runner.example' }]]) {
			const saved = await save(provider, more);
			assert.equal(saved.status, 200, saved.text);
			const reply = await other.rest('run_job', { cmd: 'true', gpu: 'T4', key: provider });
			assert.deepEqual([reply.status, reply.json.code, reply.json.field], [400, 'unsupported', 'gpu'], provider);
		}
		const none = await other.rest('run_job', { cmd: 'true', gpu: 'T4' });
		assert.deepEqual([none.status, none.json.code, none.json.field], [400, 'unsupported', 'gpu']);
		await save('modal', place.credential);
		const { json } = await other.rest('run_job', { cmd: once('echo ran; exit 3'), gpu: 'T4', wait_s: 100 });
		fine(json);
		assert.deepEqual(json.attempts.map(({ key }) => key), ['modal']);
		const { keys, providers } = (await other.rest('list_providers')).json;
		for (const list of [keys.map((key) => [key.provider, key.options]), providers.map((one) => [one.name, one.options])])
			assert.deepEqual(list.filter(([, options]) => options.includes('gpu')).map(([name]) => name), ['modal']);
	});

	test('a bridge on the user\'s account gives no GPU, and says so', async () => {
		const saved = await client.rest('save_provider_key', { provider: 'modal', name: 'bridged', token: 'x'.repeat(32),
			bridge_url: 'https://bridge.example', skip_check: true });
		assert.equal(saved.status, 200, saved.text);
		const done = await job({ cmd: 'true', key: 'bridged', gpu: 'T4' });
		assert.deepEqual([done.outcome, done.error.code, done.sandbox], ['provider_error', 'unsupported', 'none']);
		assert.match(done.error.detail, /gpu/);
	});

	test('a form that is no GPU is refused with the form', async () => {
		for (const gpu of ['T4:9', 'T4:', 'T4 ', ':1', '']) {
			const reply = await client.rest('run_job', { cmd: 'true', key: 'modal', gpu });
			assert.equal(reply.status, 400, reply.text);
			assert.deepEqual([reply.json.code, reply.json.field], ['bad_input', 'gpu']);
			assert.match(reply.json.detail, /\[1-8\]|1 to 34/);
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

	// ---- what the account pays -----------------------------------------------------------------------

	const told = async (one = client) => (await one.rest('list_providers')).json.keys[0];
	const saveAnew = async (more = {}) => {
		const one = await account('pro');
		const saved = await one.rest('save_provider_key', { provider: 'modal', ...place.credential, ...more });
		assert.equal(saved.status, 200, saved.text);
		return one;
	};
	const listed = (rates) => Object.entries(rates).map(([name, usd]) => ({ name, usd }));

	test('the rates of the account are asked for with the key, and daily while it is used', async () => {
		const before = Date.now();
		const one = await saveAnew();
		const key = await told(one);
		assert.deepEqual(key.account_rates, listed(place.plan.rates));
		const at = Date.parse(key.account_rates_at);
		assert.ok(at >= before && at <= Date.now(), key.account_rates_at);
		const usual = place.plan.rates;
		place.plan.rates = { cpu: '0.2', 'gpu/h100': '3.95' };
		fine((await one.rest('run_job', { cmd: once('echo ran; exit 3'), wait_s: 100 })).json);
		await until('the keeper has asked', async () => (await told(one)).account_rates.length === 2
			&& (await told(one)).account_rates[1].name === 'gpu/h100');
		assert.deepEqual((await told(one)).account_rates, listed(place.plan.rates));
		assert.ok(Date.parse((await told(one)).account_rates_at) > at);
		place.plan.rates = usual;
	});

	test('rates that are not told, or not in the form of a rate, cost no key and are not shown', async () => {
		const usual = place.plan.rates;
		for (const [rates, left] of [[{}, {}], [{ cpu: 'free', memory: '', 'a b': '1', disk: '1.5', x: '.', y: '1.', z: '-1' }, { disk: '1.5' }],
			[Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`<r${i}>`, '0.00000001'])),
				Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`<r${i}>`, '0.00000001']))]]) {
			place.plan.rates = rates;
			assert.deepEqual((await told(await saveAnew())).account_rates, listed(left));
		}
		place.plan.rates = usual;
		const broken = place.rule({ op: 'rates' }, 'answer', { grpc: 7, text: 'not for you' });
		const key = await told(await saveAnew());
		assert.deepEqual([key.account_rates, key.account_rates_at ?? null, broken.count], [[], null, 1]);
		assert.deepEqual((await told(await saveAnew({ skip_check: true }))).account_rates, []);
		assert.equal(broken.count, 1, 'who wants no check is not asked about');
	});
});
