// Modal's own SDK against the simulator, in both generations of sandboxes: what it accepts and what it sees there
// is what a simulator has to be trusted for. The order of calls and their bytes are in modal-wire.test.mjs.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { until } from '../lib/wait.mjs';
import { certificate } from '../simulators/lib.mjs';
import { start } from '../simulators/modal/index.mjs';

// The SDK reads its settings when it is loaded, and must not find somebody's own ones.
for (const name of Object.keys(process.env)) if (name.startsWith('MODAL_')) delete process.env[name];
process.env.MODAL_CONFIG_PATH = os.devNull;
process.env.GRPC_DEFAULT_SSL_ROOTS_FILE_PATH = certificate().file;
const modal = await import('modal');

const S = { INVALID: 3, NOT_FOUND: 5, EXHAUSTED: 8, UNAUTHENTICATED: 16 };
const plain = {};
let place;

before(async () => {
	place = await start();
	Object.assign(plain, place.plan);
});
afterEach(() => {
	place.clear();
	place.log.length = 0;
	Object.assign(place.plan, plain);
});
after(() => place.stop());

/** A client of the simulator; its address and the generation of its sandboxes are settings of the environment. */
function connect({ url = place.plainUrl, v2 = true, ...more } = {}) {
	const [tokenId, tokenSecret] = place.credential.token.split(':');
	process.env.MODAL_SERVER_URL = url;
	process.env.MODAL_SANDBOX_V2 = v2 ? '1' : '0';
	return new modal.ModalClient({ tokenId, tokenSecret, logLevel: 'error', ...more });
}

const status = (code, words = /./) => (error) => {
	assert.equal(error.code, code, String(error));
	assert.match(error.message, words);
	return true;
};
const kind = (type, words = /./) => (error) => {
	assert.ok(error instanceof type, String(error));
	assert.match(error.message, words);
	return true;
};

async function prepare(client) {
	const app = await client.apps.fromName('sdk', { createIfMissing: true });
	return { client, app, image: client.images.fromRegistry('debian:12') };
}

/** A sandbox for one test, ended behind it. */
async function withBox({ client, app, image }, work, params = {}) {
	const box = await client.sandboxes.create(app, image, { timeoutMs: 60000, ...params });
	try {
		return await work(box);
	} finally {
		await box.terminate().catch(() => {});
		box.detach();
	}
}

/** What a command wrote to its streams, and its code. */
async function run(box, command, params, stdin) {
	const child = await box.exec(command, params);
	if (stdin !== undefined) await child.stdin.writeText(stdin);
	await child.stdin.close();
	const [out, err, code] = await Promise.all([child.stdout.readText(), child.stderr.readText(), child.wait()]);
	return { out, err, code };
}

async function idsOf(list) {
	const ids = [];
	for await (const box of list) ids.push(box.sandboxId);
	return ids;
}

const simulated = (box) => place.boxes().find(({ id }) => id === box.sandboxId);

// ---- apps and images -----------------------------------------------------------------------------

test('an app is made once, and one that is not there is told', async () => {
	const client = connect();
	await assert.rejects(client.apps.fromName('nobody'), kind(modal.NotFoundError, /'nobody' not found/));
	const app = await client.apps.fromName('made', { createIfMissing: true });
	assert.match(app.appId, /^ap-/);
	assert.equal((await client.apps.fromName('made')).appId, app.appId);
});

test('an image is built while one waits', async () => {
	place.plan.imageBuild = true;
	const { app, client } = await prepare(connect());
	const image = await client.images.fromRegistry('slow:2').build(app);
	assert.match(image.imageId, /^im-/);
	assert.ok(place.log.filter(({ name }) => name === 'ImageJoinStreaming').length > 1);
	assert.equal((await client.images.fromId(image.imageId)).imageId, image.imageId);
});

test('an image that can not be made says why', async () => {
	const { app, client } = await prepare(connect());
	await assert.rejects(client.images.fromRegistry('no-such:2').build(app), /could not be pulled/);
	await assert.rejects(client.sandboxes.create(app, client.images.fromRegistry('no-such:2')), /could not be pulled/);
	await assert.rejects(client.images.fromId('im-unknown'), kind(modal.NotFoundError));
	assert.equal(place.count('create'), 0);
});

// ---- sandboxes, in both generations --------------------------------------------------------------

for (const v2 of [true, false])
	describe(v2 ? 'second generation' : 'first generation', () => {
		let at;
		before(async () => { at = await prepare(connect({ v2 })); });

		test('what was asked for arrives', async () => {
			await withBox(at, async (box) => {
				assert.equal(box.sandboxId.startsWith('sb-v2'), v2);
				const made = place.definition(box.sandboxId);
				assert.equal(made.timeoutSecs, 90);
				assert.equal(made.resources.memoryMb, 512);
				assert.equal(made.resources.milliCpu, 500);
				assert.equal(made.networkAccess.type, 2);
				assert.equal(made.workdir, '/tmp');
				assert.equal((await run(box, ['sh', '-c', 'echo "$WHO"'])).out, 'me\n');
			}, { timeoutMs: 90000, memoryMiB: 512, cpu: 0.5, blockNetwork: true, env: { WHO: 'me' }, workdir: '/tmp' });
		});

		test('a command has both streams, its code, its environment and its folder', async () => {
			await withBox(at, async (box) => {
				assert.deepEqual(await run(box, ['sh', '-c', 'echo out; echo err >&2; exit 7']),
					{ out: 'out\n', err: 'err\n', code: 7 });
				assert.equal((await run(box, ['sh', '-c', 'echo "$A"; pwd'], { env: { A: 'b' }, workdir: '/tmp' })).out,
					'b\n/tmp\n');
				assert.equal((await run(box, ['sh', '-c', 'kill -TERM $$'])).code, 128 + 15);
				assert.deepEqual(await run(box, ['sh', '-c', 'echo out; echo err >&2'], { stdout: 'ignore', stderr: 'ignore' }),
					{ out: '', err: '', code: 0 });
			});
		});

		test('a command reads what is written to it, and bytes stay bytes', async () => {
			await withBox(at, async (box) => {
				assert.equal((await run(box, ['cat'], {}, 'x'.repeat(300000))).out.length, 300000);
				const child = await box.exec(['printf', '\\377\\000\\012'], { mode: 'binary' });
				assert.deepEqual([...await child.stdout.readBytes()], [255, 0, 10]);
			});
		});

		test('output is read while the command runs', async () => {
			await withBox(at, async (box) => {
				const child = await box.exec(['sh', '-c', 'echo first; read line; echo "$line"']);
				const reader = child.stdout.getReader();
				assert.equal((await reader.read()).value, 'first\n');
				await child.stdin.writeText('second\n');
				assert.equal((await reader.read()).value, 'second\n');
				assert.equal(await child.wait(), 0);
			});
		});

		test('a command is killed at its time-out', async () => {
			await withBox(at, async (box) => {
				const child = await box.exec(['sleep', '600'], { timeoutMs: 1000 });
				assert.equal(await child.wait(), 128 + 9);
			});
		});

		test('the command of the sandbox itself is read', async () => {
			await withBox(at, async (box) => {
				const reader = box.stdout.getReader();
				assert.equal((await reader.read()).value, 'main\n');
				await reader.cancel();
			}, { command: ['sh', '-c', 'echo main; exec sleep 600'] });
		});

		test('a sandbox whose command ends has its code', async () => {
			await withBox(at, async (box) => assert.equal(await box.wait(), 5), { command: ['sh', '-c', 'exit 5'] });
		});

		test('files are written, listed, read, copied and removed', async () => {
			const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-sdk-'));
			try {
				await withBox(at, async ({ filesystem: files }) => {
					await files.writeText('text', '/root/a/b');
					await files.writeBytes(Buffer.alloc(600000, 1), '/root/a/c');
					assert.equal(await files.readText('/root/a/b'), 'text');
					assert.equal((await files.readBytes('/root/a/c')).length, 600000);
					const listed = await files.listFiles('/root/a');
					assert.deepEqual(listed.map((file) => [file.name, file.path, file.type, file.size]),
						[['b', '/root/a/b', 'file', 4], ['c', '/root/a/c', 'file', 600000]]);
					await files.copyToLocal('/root/a/b', path.join(dir, 'b'));
					assert.equal(fs.readFileSync(path.join(dir, 'b'), 'utf8'), 'text');
					await files.copyFromLocal(path.join(dir, 'b'), '/tmp/copy');
					assert.equal((await files.stat('/tmp/copy')).size, 4);
					await files.makeDirectory('/tmp/d/e');
					assert.equal((await files.stat('/tmp/d/e')).type, 'directory');
					await files.remove('/root/a', { recursive: true });
					await assert.rejects(files.stat('/root/a'), kind(modal.SandboxFilesystemNotFoundError));
				});
			} finally {
				fs.rmSync(dir, { recursive: true });
			}
		});

		test('what is wrong with a file has an error of its own', async () => {
			await withBox(at, async ({ filesystem: files }) => {
				await files.writeText('', '/tmp/file');
				await files.writeText('', '/tmp/d/file');
				await assert.rejects(files.readText('/tmp/nothing'), kind(modal.SandboxFilesystemNotFoundError));
				await assert.rejects(files.readText('/tmp/d'), kind(modal.SandboxFilesystemIsADirectoryError));
				await assert.rejects(files.writeText('', '/tmp/d'), kind(modal.SandboxFilesystemIsADirectoryError));
				await assert.rejects(files.writeText('', '/tmp/file/below'), kind(modal.SandboxFilesystemNotADirectoryError));
				await assert.rejects(files.listFiles('/tmp/file'), kind(modal.SandboxFilesystemNotADirectoryError));
				await assert.rejects(files.remove('/tmp/d'), kind(modal.SandboxFilesystemDirectoryNotEmptyError));
				await assert.rejects(files.makeDirectory('/tmp/d', { createParents: false }),
					kind(modal.SandboxFilesystemPathAlreadyExistsError));
				await assert.rejects(files.makeDirectory('/tmp/x/y', { createParents: false }),
					kind(modal.SandboxFilesystemNotFoundError));
				await assert.rejects(files.readText('relative'), kind(modal.InvalidError, /absolute/));
			});
		});

		test('a sandbox is found by its name and its id while it runs', async () => {
			const { sandboxes } = at.client;
			await withBox(at, async (box) => {
				assert.equal((await sandboxes.fromName('sdk', `by-name-${v2}`)).sandboxId, box.sandboxId);
				const again = await sandboxes.fromId(box.sandboxId);
				assert.equal((await run(again, ['echo', 'here'])).out, 'here\n');
				again.detach();
				await assert.rejects(at.client.sandboxes.create(at.app, at.image, { name: `by-name-${v2}` }),
					kind(modal.AlreadyExistsError));
			}, { name: `by-name-${v2}` });
			await assert.rejects(sandboxes.fromName('sdk', `by-name-${v2}`), kind(modal.NotFoundError));
			await withBox(at, () => {}, { name: `by-name-${v2}` });
		});

		test('a list has all pages, and only what has the tags', async () => {
			const { sandboxes } = at.client;
			const boxes = [];
			for (let i = 0; i < 5; i++)
				boxes.push(await sandboxes.create(at.app, at.image, { timeoutMs: 60000, tags: i < 2 ? { kind: `${v2}` } : {} }));
			const ids = boxes.map((box) => box.sandboxId);
			assert.deepEqual((await idsOf(sandboxes.list({ appId: at.app.appId }))).toSorted(), ids.toSorted());
			assert.ok(place.count('list') > 2);
			const tagged = () => idsOf(sandboxes.list({ appId: at.app.appId, tags: { kind: `${v2}` } }));
			assert.deepEqual((await tagged()).toSorted(), ids.slice(0, 2).toSorted());
			assert.deepEqual(await boxes[0].getTags(), { kind: `${v2}` });
			await boxes[0].setTags({ kind: 'other' });
			assert.deepEqual(await tagged(), [ids[1]]);
			await boxes[1].terminate();
			assert.deepEqual(await tagged(), []);
			for (const box of boxes) await box.terminate();
		});

		test('terminated is proven, its commands die with it, and once more does no harm', async () => {
			await withBox(at, async (box) => {
				assert.equal(await box.poll(), null);
				const child = await box.exec(['sleep', '600']);
				assert.equal(await box.terminate({ wait: true }), 137);
				assert.equal(await box.poll(), 137);
				await assert.rejects(child.wait(), status(S.NOT_FOUND));
				await assert.rejects(box.exec(['true']), status(S.NOT_FOUND));
				await assert.rejects(box.filesystem.readText('/tmp/a'), kind(modal.NotFoundError, /shut down/));
				await box.terminate();
				assert.ok(simulated(box).ended);
			});
		});

		test('a sandbox that has ended lets nobody in', async () => {
			await withBox(at, async (box) => {
				await box.terminate();
				const late = await at.client.sandboxes.fromId(box.sandboxId);
				await assert.rejects(late.exec(['true']), /not available/);
			});
		});

		test('one ends at its own time-out and says so', async () => {
			await withBox(at, async (box) => {
				assert.equal(await box.wait(), 124);
				assert.equal(simulated(box).state, 'stopped');
			}, { timeoutMs: 1000 });
		});

		test('a wait outlasts the time of one call', async () => {
			await withBox(at, async (box) => {
				place.plan.waitS = 0.05;
				const ended = box.wait();
				await until('the SDK asks again', () => place.count('look') > 2);
				await box.terminate();
				assert.equal(await ended, 137);
			});
		});

		test('what is not there is told', async () => {
			const { sandboxes } = at.client;
			const id = v2 ? 'sb-v2unknown' : `sb-${'x'.repeat(22)}`;
			const unknown = await sandboxes.fromId(id);
			await assert.rejects(unknown.poll(), status(S.NOT_FOUND, /no such sandbox/));
			await assert.rejects(unknown.terminate(), status(S.NOT_FOUND));
			await assert.rejects(unknown.exec(['true']), status(S.NOT_FOUND));
			await assert.rejects(unknown.getTags(), status(S.NOT_FOUND));
			await assert.rejects(sandboxes.fromName('sdk', 'nobody'), kind(modal.NotFoundError));
			await assert.rejects(sandboxes.fromName('no-app', 'nobody'), kind(modal.NotFoundError));
		});

		test('what is too much is refused', async () => {
			await assert.rejects(at.client.sandboxes.create(at.app, at.image, { timeoutMs: 86401000 }),
				status(S.INVALID, /timeout/));
			const client = connect({ v2, maxThrottleWaitSecs: 1 });
			place.plan.throttleS = 3;
			await assert.rejects(client.sandboxes.create(at.app, at.image), status(S.EXHAUSTED));
			assert.deepEqual(await idsOf(client.sandboxes.list({ appId: at.app.appId })), []);
		});

		test('after the time that a refusal names the SDK tries again', async () => {
			place.plan.throttleS = 0.1;
			const made = at.client.sandboxes.create(at.app, at.image, { timeoutMs: 60000 });
			await until('it was refused more than once', () => place.count('create') > 1);
			place.plan.throttleS = 0;
			await (await made).terminate();
		});

		test('a router token is renewed when it is old, and a stream goes on where it broke', async () => {
			place.plan.tokenS = 20;
			await withBox(at, async (box) => {
				assert.equal((await run(box, ['true'])).code, 0);
				place.expireRouterTokens();
				assert.equal((await run(box, ['echo', 'renewed'])).out, 'renewed\n');
				const reads = place.count('read');
				place.rule({ op: 'read' }, 'cut-body', { times: 1, bytes: 5 + 2 + 'first\n'.length });
				const child = await box.exec(['sh', '-c', 'echo first; read line; echo second'], { stderr: 'ignore' });
				const text = child.stdout.readText();
				await until('it is read', () => place.count('read') > reads);
				await child.stdin.writeText('\n');
				assert.equal(await text, 'first\nsecond\n');
				assert.ok(place.count('read') > reads + 1);
			});
		});
	});

test('a generation knows only its own names, and the second one lists both', async () => {
	const [second, first] = [await prepare(connect()), await prepare(connect({ v2: false }))];
	await withBox(first, async (old) => {
		await withBox(second, async (box) => {
			assert.deepEqual((await idsOf(second.client.sandboxes.list({ appId: second.app.appId }))).toSorted(),
				[old.sandboxId, box.sandboxId].toSorted());
			assert.deepEqual(await idsOf(first.client.sandboxes.list({ appId: first.app.appId })), [old.sandboxId]);
			await assert.rejects(first.client.sandboxes.fromName('sdk', 'new'), kind(modal.NotFoundError));
		}, { name: 'new' });
	}, { name: 'old' });
});

test('a sandbox with GPUs is made in the first generation, waits for its machine, and is found by its name', async () => {
	const at = await prepare(connect());
	place.plan.queueMs = 700;
	await withBox(at, async (box) => {
		assert.match(box.sandboxId, /^sb-[A-Za-z0-9]{22}$/);
		assert.deepEqual(place.definition(box.sandboxId).resources.gpu, { count: 2, gpuType: 'A100-80GB' });
		assert.ok(place.log.filter(({ name }) => name === 'SandboxGetTaskId').length > 1);
		assert.equal((await at.client.sandboxes.fromName('sdk', 'with-gpu')).sandboxId, box.sandboxId);
		assert.ok((await idsOf(at.client.sandboxes.list({ appId: at.app.appId }))).includes(box.sandboxId));
		assert.deepEqual(await run(box, ['sh', '-c', 'echo out; exit 7']), { out: 'out\n', err: '', code: 7 });
		assert.equal(await box.terminate({ wait: true }), 137);
	}, { gpu: 'a100-80gb:2', name: 'with-gpu' });
	await withBox(at, (box) =>
		assert.deepEqual(place.definition(box.sandboxId).resources.gpu, { count: 1, gpuType: 'T4' }), { gpu: 'T4' });
});

test('a GPU that is not to be had is refused, by the server or by the SDK', async () => {
	const { client, app, image } = await prepare(connect());
	for (const gpu of ['NO-SUCH', 'T4:9', 'A10:5'])
		await assert.rejects(client.sandboxes.create(app, image, { gpu }), status(S.INVALID, /no such GPU/));
	await assert.rejects(client.sandboxes.create(app, image, { gpu: 'T4:0' }), /Invalid GPU count/);
	await assert.rejects(client.sandboxes.experimentalCreate(app, image, { gpu: 'T4' }), /GPUs are not supported/);
	assert.deepEqual(await idsOf(client.sandboxes.list({ appId: app.appId })), []);
});

// ---- the account and the way there ---------------------------------------------------------------

test('a wrong key is refused, and one that is missing is not sent', async () => {
	const wrong = connect({ tokenSecret: 'as-wrong' });
	await assert.rejects(wrong.apps.fromName('sdk'), status(S.UNAUTHENTICATED));
	await assert.rejects((await wrong.sandboxes.fromId('sb-v2x')).terminate(), status(S.UNAUTHENTICATED));
	place.log.length = 0;
	await assert.rejects(connect({ tokenSecret: '' }).apps.fromName('sdk'), /missing credentials/);
	assert.equal(place.log.length, 0);
});

test('a control token that was withdrawn is refused', async () => {
	const { client, app } = await prepare(connect());
	place.expireControlTokens();
	await assert.rejects(idsOf(client.sandboxes.list({ appId: app.appId })), status(S.UNAUTHENTICATED));
});

test('the rates of the account are read as they are told', async () => {
	const { rates } = await connect().cpClient.workspaceBillingRates({});
	assert.ok(Object.keys(rates).length > 0);
	assert.deepEqual(rates, place.plan.rates);
});

test('a broken connection is tried again', async () => {
	const { client, app } = await prepare(connect());
	place.rule({ op: 'list' }, 'answer', { times: 1, grpc: 14, text: 'later' });
	place.rule({ op: 'list' }, 'cut', { times: 1 });
	assert.deepEqual(await idsOf(client.sandboxes.list({ appId: app.appId })), []);
	assert.equal(place.count('list'), 3);
});

// The SDK speaks clear text to the routers of a server on this machine, by its address in the settings; so these
// are told another one once the connection to the control service is made.
test('all of it goes through TLS as well', async () => {
	const client = connect({ url: place.base });
	client.profile.serverUrl = 'https://elsewhere.invalid';
	const at = await prepare(client);
	const known = place.handshakes;
	await withBox(at, async (box) => {
		assert.deepEqual(await run(box, ['sh', '-c', 'echo out; echo err >&2; exit 7']),
			{ out: 'out\n', err: 'err\n', code: 7 });
		assert.equal(await box.terminate({ wait: true }), 137);
	});
	assert.ok(place.handshakes > known);
});
