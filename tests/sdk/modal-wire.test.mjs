// The simulator of Modal answers a gRPC client that is not ours (@grpc/grpc-js, on which Modal's own client
// stands) as Modal would: both generations of sandboxes, commands, files, lists, limits, refusals. Modal's own client
// is in modal-sdk.test.mjs.

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import grpc from '@grpc/grpc-js';
import { until } from '../lib/wait.mjs';
import { certificate } from '../simulators/lib.mjs';
import { decode, encode, methods } from '../simulators/modal/messages.mjs';
import { start } from '../simulators/modal/index.mjs';

const { status: S } = grpc;
const paths = new Map([...methods].map(([path, method]) => [method.name, path]));
const TOOL = '/__modal/.bin/modal-sandbox-fs-tools';
let place;

before(async () => { place = await start(); });
after(() => place.stop());

/** A client of one address; metadata goes with every call. */
class Wire {
	constructor(url, metadata, secure = true) {
		const credentials = secure ? grpc.credentials.createSsl(certificate().cert) : grpc.credentials.createInsecure();
		this.client = new grpc.Client(new URL(url).host, credentials);
		this.metadata = new grpc.Metadata();
		for (const [name, value] of Object.entries(metadata)) this.metadata.set(name, value);
	}

	#codecs(name) {
		const method = methods.get(paths.get(name));
		return [paths.get(name), (value) => encode(method.request, value), (data) => decode(method.reply, data)];
	}

	call(name, request = {}) {
		return new Promise((resolve, reject) => {
			this.client.makeUnaryRequest(...this.#codecs(name), request, this.metadata,
				(error, reply) => error ? reject(error) : resolve(reply));
		});
	}

	async stream(name, request) {
		const parts = [];
		for await (const part of this.client.makeServerStreamRequest(...this.#codecs(name), request, this.metadata)) parts.push(part);
		return parts;
	}

	push(name, requests) {
		return new Promise((resolve, reject) => {
			const stream = this.client.makeClientStreamRequest(...this.#codecs(name), this.metadata,
				(error, reply) => error ? reject(error) : resolve(reply));
			for (const request of requests) stream.write(request);
			stream.end();
		});
	}

	close() {
		this.client.close();
	}
}

async function control() {
	const [id, secret] = place.credential.token.split(':');
	const keys = { 'x-modal-token-id': id, 'x-modal-token-secret': secret };
	const first = new Wire(place.base, keys);
	const { token } = await first.call('AuthTokenGet');
	first.close();
	return new Wire(place.base, { ...keys, 'x-modal-auth-token': token });
}

async function prepared(wire) {
	const { appId } = await wire.call('AppGetOrCreate', { appName: 'app', objectCreationType: 1 });
	const { metadata } = await wire.call('EnvironmentGetOrCreate');
	const { imageId, result } = await wire.call('ImageGetOrCreate', { appId, image: { dockerfileCommands: ['FROM debian:12'] },
		builderVersion: metadata.settings.imageBuilderVersion });
	assert.equal(result.status, 1);
	return { appId, imageId };
}

/** The router of a sandbox, with the words every call of it begins with. */
function routed(taskId, access) {
	const wire = new Wire(access.url, { authorization: `Bearer ${access.jwt}` });
	return { wire, taskId, async run(commandArgs, more = {}, stdin = undefined) {
		const exec = { taskId, execId: crypto.randomUUID() };
		await wire.call('TaskExecStart', { ...exec, commandArgs, stdoutConfig: 1, stderrConfig: 1, ...more });
		await wire.push('TaskExecStdinWriteStream', [{ start: exec }, ...(stdin ? [{ data: Buffer.from(stdin) }] : []), { end: {} }]);
		const read = async (fileDescriptor) => Buffer.concat((await wire.stream('TaskExecStdioRead',
			{ ...exec, fileDescriptor })).map((part) => part.data)).toString();
		const [out, err, end] = await Promise.all([read(0), read(1), wire.call('TaskExecWait', exec)]);
		return { out, err, ...end };
	} };
}

const fails = (code) => (error) => error.code === code;

for (const v2 of [true, false])
	describe(v2 ? 'second generation' : 'first generation', () => {
		const rpc = (name) => v2 ? `${name}V2` : name;
		let wire, app, made, router;

		async function create(definition = {}, tags = []) {
			const box = await wire.call(rpc('SandboxCreate'), { appId: app.appId, tags,
				definition: { imageId: app.imageId, timeoutSecs: 60, ...definition } });
			if (box.taskId) return box;
			const { taskId } = await wire.call('SandboxGetTaskId', box);
			return { ...box, taskId, commandRouterAccess: await wire.call('TaskGetCommandRouterAccess', { taskId }) };
		}

		before(async () => {
			wire = await control();
			app = await prepared(wire);
			made = await create({ name: `first-${v2}` }, [{ tagName: 'k', tagValue: 'v' }]);
			router = routed(made.taskId, made.commandRouterAccess);
		});
		beforeEach(() => place.clear());
		after(() => {
			router.wire.close();
			wire.close();
		});

		test('a command has both streams and its code', async () => {
			assert.deepEqual(await router.run(['sh', '-c', 'echo out; echo err >&2; exit 7']),
				{ out: 'out\n', err: 'err\n', code: 7 });
		});

		test('a command that a signal ended has no code', async () => {
			assert.equal((await router.run(['sh', '-c', 'kill -9 $$'])).signal, 9);
		});

		test('a command reads what is pushed to it, and its environment', async () => {
			assert.equal((await router.run(['cat'], {}, 'x'.repeat(300000))).out.length, 300000);
			const source = { env: { values: { A: 'from a source' } } };
			assert.equal((await router.run(['sh', '-c', 'echo "$A"; pwd'], { secretSources: [source], workdir: '/tmp' })).out,
				'from a source\n/tmp\n');
		});

		test('a command is killed at its time-out', async () => {
			assert.equal((await router.run(['sleep', '600'], { timeoutSecs: 1 })).signal, 9);
		});

		test('a start that is repeated runs once, and output is read from any offset', async () => {
			const exec = { taskId: made.taskId, execId: crypto.randomUUID() };
			const order = { ...exec, commandArgs: ['sh', '-c', 'echo x >>/tmp/once; cat /tmp/once'], stdoutConfig: 1 };
			for (let i = 0; i < 3; i++) await router.wire.call('TaskExecStart', order);
			await router.wire.call('TaskExecWait', exec);
			const parts = await router.wire.stream('TaskExecStdioRead', { ...exec, offset: 1 });
			assert.equal(Buffer.concat(parts.map((part) => part.data)).toString(), '\n');
			assert.deepEqual(await router.wire.call('TaskExecPoll', exec), { code: 0 });
		});

		test('files are written, listed, read and removed by the tool', async () => {
			const file = (verb, more, stdin) => router.run([TOOL, JSON.stringify({ [verb]: more })], {}, stdin);
			assert.equal((await file('WriteFile', { path: '/root/a/b' }, 'content')).code, 0);
			assert.equal((await file('ReadFile', { path: '/root/a/b' })).out, 'content');
			assert.equal(JSON.parse((await file('ListFiles', { path: '/root/a' })).out)[0].name, 'b');
			assert.equal(JSON.parse((await file('Stat', { path: '/root/a' })).out).type, 'directory');
			assert.equal(JSON.parse((await file('Remove', { path: '/root/a' })).err).error_kind, 'DirectoryNotEmpty');
			assert.equal((await file('Remove', { path: '/root/a', recursive: true })).code, 0);
			assert.equal(JSON.parse((await file('ReadFile', { path: '/root/a/b' })).err).error_kind, 'NotFound');
		});

		test('a sandbox is found by its name, in the list and by its tag', async () => {
			assert.equal((await wire.call(rpc('SandboxGetFromName'), { appName: 'app', sandboxName: `first-${v2}` })).sandboxId,
				made.sandboxId);
			const found = await wire.call(rpc('SandboxList'), { appId: app.appId, tags: [{ tagName: 'k', tagValue: 'v' }] });
			assert.ok(found.sandboxes.every((box) => box.name.startsWith('first-')));
			assert.ok(found.sandboxes.some((box) => box.id === made.sandboxId));
			assert.equal((await wire.call(rpc('SandboxList'), { appId: app.appId, tags: [{ tagName: 'k', tagValue: '-' }] }))
				.sandboxes.length, 0);
		});

		test('a list has pages', async () => {
			const more = [];
			for (let i = 0; i < 5; i++) more.push(await create());
			const seen = new Set();
			let pages = 0;
			for (let beforeTimestamp = 0; ;) {
				const { sandboxes } = await wire.call(rpc('SandboxList'), { appId: app.appId, beforeTimestamp });
				if (!sandboxes.length) break;
				pages += 1;
				for (const box of sandboxes) seen.add(box.id);
				beforeTimestamp = sandboxes.at(-1).createdAt;
			}
			assert.ok(pages > 1);
			for (const box of more) assert.ok(seen.has(box.sandboxId));
			for (const box of more) await wire.call(rpc('SandboxTerminate'), box);
		});

		test('two sandboxes do not see each other', async () => {
			const other = await create();
			const second = routed(other.taskId, other.commandRouterAccess);
			await router.run(['sh', '-c', 'echo mine >/tmp/file']);
			assert.notEqual((await second.run(['cat', '/tmp/file'])).code, 0);
			second.wire.close();
			await wire.call(rpc('SandboxTerminate'), other);
		});

		test('one ends at its own time-out and says so', async () => {
			const short = await create({ timeoutSecs: 1 });
			const { result } = await wire.call(rpc('SandboxWait'), { ...short, timeout: 30 });
			assert.equal(result.status, 4);
			assert.equal(place.boxes().find((box) => box.id === short.sandboxId).state, 'stopped');
		});

		test('terminated is proven, and its commands die', async () => {
			const box = await create();
			const own = routed(box.taskId, box.commandRouterAccess);
			const exec = { taskId: box.taskId, execId: crypto.randomUUID() };
			await own.wire.call('TaskExecStart', { ...exec, commandArgs: ['sleep', '600'] });
			assert.equal((await wire.call(rpc('SandboxWait'), box)).result, undefined);
			await wire.call(rpc('SandboxTerminate'), box);
			assert.equal((await wire.call(rpc('SandboxWait'), box)).result.status, 3);
			await assert.rejects(own.wire.call('TaskExecPoll', exec), fails(S.NOT_FOUND));
			assert.equal((await wire.call(rpc('SandboxTerminate'), box)).existingResult.status, 3);
			own.wire.close();
		});

		test('what is wrong is refused with its own status', async () => {
			await assert.rejects(create({ name: `first-${v2}` }), fails(S.ALREADY_EXISTS));
			await assert.rejects(create({ timeoutSecs: 86401 }), fails(S.INVALID_ARGUMENT));
			await assert.rejects(create({ imageId: 'im-unknown' }), fails(S.INVALID_ARGUMENT));
			await assert.rejects(create({ name: 'a/b' }), fails(S.INVALID_ARGUMENT));
			await assert.rejects(wire.call(rpc('SandboxGetFromName'), { appName: 'app', sandboxName: 'nobody' }), fails(S.NOT_FOUND));
			await assert.rejects(wire.call(rpc('SandboxTerminate'), { sandboxId: 'sb-x' }), fails(S.NOT_FOUND));
			await assert.rejects(router.run([]), fails(S.INVALID_ARGUMENT));
			await assert.rejects(router.run(['x'.repeat(70000)]), fails(S.INVALID_ARGUMENT));
			await assert.rejects(router.run(['true'], { stderrConfig: 2 }), fails(S.INVALID_ARGUMENT));
		});

		test('over its limit the refusal says how long to wait', async () => {
			place.plan.throttleS = 3;
			await assert.rejects(create(), (error) => error.code === S.RESOURCE_EXHAUSTED &&
				error.metadata.get('grpc-status-details-bin').length === 1);
			place.plan.throttleS = 0;
		});

		test('a router token that was withdrawn is refused, a new one works', async () => {
			place.expireRouterTokens();
			await assert.rejects(router.run(['true']), fails(S.UNAUTHENTICATED));
			const access = v2 ? await wire.call('SandboxGetCommandRouterAccess', made)
				: await wire.call('TaskGetCommandRouterAccess', made);
			router.wire.close();
			router = routed(made.taskId, access);
			assert.equal((await router.run(['true'])).code, 0);
		});
	});

test('a generation knows only its own sandboxes', async () => {
	const wire = await control();
	const app = await prepared(wire);
	const { sandboxId } = await wire.call('SandboxCreate', { appId: app.appId, definition: { imageId: app.imageId, timeoutSecs: 60 } });
	assert.match(sandboxId, /^sb-[A-Za-z0-9]{22}$/);
	await assert.rejects(wire.call('SandboxWaitV2', { sandboxId }), fails(S.NOT_FOUND));
	assert.ok((await wire.call('SandboxListV2', { appId: app.appId })).sandboxes.some((box) => box.id === sandboxId));
	await wire.call('SandboxTerminate', { sandboxId });
	wire.close();
});

test('the first generation has GPUs and waits for its machine, the second one has none', async () => {
	const wire = await control();
	const app = await prepared(wire);
	const order = (gpu) => ({ appId: app.appId, definition: { imageId: app.imageId, timeoutSecs: 60, resources: { gpu } } });
	await assert.rejects(wire.call('SandboxCreateV2', order({ gpuType: 'T4', count: 1 })), fails(S.INVALID_ARGUMENT));
	await assert.rejects(wire.call('SandboxCreate', order({ gpuType: 't4', count: 1 })), fails(S.INVALID_ARGUMENT));
	await assert.rejects(wire.call('SandboxCreate', order({ gpuType: 'T4' })), fails(S.INVALID_ARGUMENT));
	await wire.call('SandboxTerminate', await wire.call('SandboxCreate', order({})));
	place.plan.queueMs = 60000;
	const box = await wire.call('SandboxCreate', order({ gpuType: 'T4', count: 1 }));
	assert.equal((await wire.call('SandboxGetTaskId', box)).taskId, undefined);
	assert.equal((await wire.call('SandboxWait', box)).result, undefined);
	place.plan.queueMs = 0;
	assert.match((await wire.call('SandboxGetTaskId', box)).taskId, /^ta-/);
	await wire.call('SandboxTerminate', box);
	assert.equal((await wire.call('SandboxWait', box)).result.status, 3);
	wire.close();
});

test('an image is built while one waits, and one that does not exist says so', async () => {
	const wire = await control();
	const { appId } = await wire.call('AppGetOrCreate', { appName: 'app', objectCreationType: 1 });
	place.plan.imageBuild = true;
	const image = (tag) => ({ appId, builderVersion: '2025.06', image: { dockerfileCommands: [`FROM ${tag}`] } });
	const { imageId, result } = await wire.call('ImageGetOrCreate', image('slow:1'));
	assert.equal(result, undefined);
	const first = await wire.stream('ImageJoinStreaming', { imageId, timeout: 55 });
	assert.equal(first.at(-1).result, undefined);
	const second = await wire.stream('ImageJoinStreaming', { imageId, timeout: 55, lastEntryId: first.at(-1).entryId });
	assert.equal(second.at(-1).result.status, 1);
	place.plan.imageBuild = false;
	assert.equal((await wire.call('ImageGetOrCreate', image('no-such:1'))).result.status, 2);
	await assert.rejects(wire.call('ImageGetOrCreate', { appId, builderVersion: '2025.06', image: { dockerfileCommands: ['RUN x'] } }),
		fails(S.INVALID_ARGUMENT));
	await assert.rejects(wire.call('AppGetOrCreate', { appName: 'nobody' }), fails(S.NOT_FOUND));
	wire.close();
});

test('a wrong key, a missing token and an unknown call are refused', async () => {
	const [id] = place.credential.token.split(':');
	const bad = new Wire(place.base, { 'x-modal-token-id': id, 'x-modal-token-secret': 'as-wrong' });
	await assert.rejects(bad.call('AuthTokenGet'), fails(S.UNAUTHENTICATED));
	bad.close();
	const wire = await control();
	place.expireControlTokens();
	await assert.rejects(wire.call('SandboxListV2'), fails(S.UNAUTHENTICATED));
	wire.close();
});

test('clear text works for clients that want it of a local server', async () => {
	const [id, secret] = place.credential.token.split(':');
	const wire = new Wire(place.plainUrl, { 'x-modal-token-id': id, 'x-modal-token-secret': secret }, false);
	assert.equal((await wire.call('AuthTokenGet')).token.split('.').length, 3);
	wire.close();
});

test('rules spoil calls as they say', async () => {
	const wire = await control();
	place.rule({ op: 'list' }, 'answer', { times: 1, grpc: 14, text: 'later' });
	await assert.rejects(wire.call('SandboxListV2'), fails(S.UNAVAILABLE));
	place.rule({ op: 'list' }, 'untold', { times: 1 });
	await assert.rejects(wire.call('SandboxListV2'), (error) => error.code !== S.OK);
	place.rule({ op: 'list' }, 'cut', { times: 1 });
	await assert.rejects(wire.call('SandboxListV2'), (error) => error.code !== S.OK);
	place.rule({ op: 'list' }, 'garbage', { times: 1 });
	await assert.rejects(wire.call('SandboxListV2'), (error) => error.code !== S.OK);
	assert.ok(Array.isArray((await wire.call('SandboxListV2')).sandboxes));
	await until('the log has it', () => place.count('list') >= 5);
	wire.close();
});
