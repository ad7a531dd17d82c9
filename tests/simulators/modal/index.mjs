// Modal as far as sandboxes go: its control service and its command router, in both generations, with real
// processes and files in each sandbox.
//
//   const place = await start({ plan: { concurrency: 2 } });
//   place.base, place.plainUrl              // for the connector; for Modal's own clients (clear text)
//   place.credential                        // { token: 'ak-...:as-...' }
//   place.boxes()                           // [{ id, mark, state, started, ended, billedMs }]
//   place.plan                              // mutable: see below
//   place.expireRouterTokens()              // every router token given out so far is refused from now on
//   place.end(id, status)                   // a sandbox ends by itself (7: idle, 8: memory ...)
//   await place.plant(mark)                 // a sandbox like the last one under another mark; gives its id
//   place.vanish(id)                        // its owner ends it

import crypto from 'node:crypto';
import { gate, until } from '../../lib/wait.mjs';
import { Guest } from '../guest.mjs';
import { Exec } from './exec.mjs';
import { encode, methods, types } from './messages.mjs';
import { ALREADY_EXISTS, EXHAUSTED, INVALID, NOT_FOUND, PRECONDITION, Refusal, serve, UNAUTHENTICATED,
	UNAVAILABLE } from './place.mjs';

export { Refusal } from './place.mjs';

const SUCCESS = 1, FAILURE = 2, TERMINATED = 3, TIMEOUT = 4;
const PAGE = 3; // sandboxes in one reply of a list
const HOME = '/root';
// How many of a kind one sandbox gets at most; what is not here is not to be had.
const GPUS = { T4: 8, L4: 8, A10: 4, A10G: 4, L40S: 8, A100: 8, 'A100-40GB': 8, 'A100-80GB': 8, 'RTX-PRO-6000': 8, H100: 8,
	'H100!': 8, H200: 8, B200: 8, 'B200+': 8, ANY: 8 };

const ops = [[/^AuthTokenGet$/, 'check'], [/^Sandbox(Create)(V2)?$/, 'create'], [/^SandboxGetFromName/, 'find'],
	[/^SandboxList/, 'list'], [/^SandboxTerminate/, 'destroy'], [/^SandboxWait/, 'look'], [/^TaskExecStart$/, 'exec'],
	[/^TaskExecStdinWrite/, 'write'], [/^(TaskExecStdioRead|SandboxStdioRead)/, 'read'], [/^TaskExec(Wait|Poll)$/, 'wait'],
	[/CommandRouterAccess$/, 'access'], [/^(App|Environment|Image)/, 'prepare'],
	[/^WorkspaceBillingRates$/, 'rates']];
// A command whose output nobody wants is there for its input: a file.
const opOf = (name, { stdoutConfig }) => (name === 'TaskExecStart' && !stdoutConfig ? 'put'
	: ops.find(([form]) => form.test(name))?.[1] ?? 'other');

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const random = (n) => Array.from(crypto.randomBytes(n), (byte) => letters[byte % letters.length]).join('');

function jwt(seconds) {
	const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
	return `${part({ alg: 'none' })}.${part({ exp: Math.floor(Date.now() / 1000) + seconds })}.${random(20)}`;
}

class Modal {
	/* waitS: the longest time that one call waits for the end of a sandbox; queueMs: so long one of the first
	   generation waits for its machine. */
	plan = { maxLifeS: 86400, concurrency: 1000, throttleS: 0, bootMs: 0, queueMs: 0, imageBuild: false, tokenS: 1200, waitS: 60,
		brokenImages: /no-such/, rates: { cpu: '0.1419', memory: '0.0242' } };
	credential = { token: `ak-${random(22)}:as-${random(22)}` };
	#boxes = new Map();
	#tasks = new Map();
	#apps = new Map();
	#images = new Map();
	#secrets = new Map();
	#controlTokens = new Set();

	// -- who asks ------------------------------------------------------------------------------------

	#authenticate({ name, headers }) {
		const [id, secret] = this.credential.token.split(':');
		if (headers['x-modal-token-id'] !== id || headers['x-modal-token-secret'] !== secret)
			throw new Refusal(UNAUTHENTICATED, 'Token ID is malformed');
		if (name !== 'AuthTokenGet' && !this.#controlTokens.has(headers['x-modal-auth-token']))
			throw new Refusal(UNAUTHENTICATED, 'auth token');
	}

	#routed({ headers, request, requests }) {
		const task = request.taskId ?? requests[0]?.start?.taskId;
		const box = this.#tasks.get(task);
		if (!box || headers.authorization === undefined || !box.tokens.has(headers.authorization.replace(/^Bearer /, '')))
			throw new Refusal(UNAUTHENTICATED, 'router token');
		if (box.result) throw new Refusal(NOT_FOUND, 'the task has finished');
		if (Date.now() < box.started + this.plan.bootMs) throw new Refusal(UNAVAILABLE, 'not there yet');
		return box;
	}

	answer(call) {
		if (call.method.router) return this[call.name](call.request, this.#routed(call), call);
		this.#authenticate(call);
		if (/^Sandbox.*V2$/.test(call.name) && !this[call.name]) return this[call.name.slice(0, -2)](call.request, call, true);
		return this[call.name](call.request, call, false);
	}

	AuthTokenGet() {
		const token = jwt(this.plan.tokenS);
		this.#controlTokens.add(token);
		return { token };
	}

	WorkspaceBillingRates() {
		return { rates: this.plan.rates };
	}

	// -- apps, images, secrets -----------------------------------------------------------------------

	AppGetOrCreate({ appName, objectCreationType = 0 }) {
		if (!this.#apps.has(appName)) {
			if (!objectCreationType) throw new Refusal(NOT_FOUND, 'no such app');
			this.#apps.set(appName, `ap-${random(22)}`);
		}
		return { appId: this.#apps.get(appName) };
	}

	EnvironmentGetOrCreate() {
		return { environmentId: `en-${random(22)}`, metadata: { name: 'main', settings: { imageBuilderVersion: '2025.06' } } };
	}

	ImageGetOrCreate({ image, appId, builderVersion }) {
		if (![...this.#apps.values()].includes(appId)) throw new Refusal(NOT_FOUND, 'no such app');
		if (!builderVersion) throw new Refusal(INVALID, 'builder version is missing');
		const [first] = image?.dockerfileCommands ?? [];
		if (!/^FROM \S+$/.test(first ?? '')) throw new Refusal(INVALID, 'no FROM');
		const key = image.dockerfileCommands.join('\n');
		const known = this.#images.get(key);
		const made = known ?? { id: `im-${random(22)}`, status: this.plan.brokenImages.test(first) ? FAILURE : SUCCESS,
			built: !this.plan.imageBuild };
		this.#images.set(key, made);
		return { imageId: made.id, ...(made.built ? { result: this.#built(made) } : {}) };
	}

	#built({ status }) {
		return { status, ...(status === FAILURE ? { exception: 'the image could not be pulled' } : {}) };
	}

	ImageJoinStreaming({ imageId, lastEntryId }, { write }) {
		const image = [...this.#images.values()].find((one) => one.id === imageId);
		if (!image) throw new Refusal(NOT_FOUND, 'no such image');
		write({ taskLogs: [{ data: 'building\n' }], entryId: '1-0' });
		if (lastEntryId || image.built) {
			image.built = true;
			write({ result: this.#built(image), entryId: '2-0', eof: true });
		}
	}

	ImageFromId({ imageId }) {
		if (![...this.#images.values()].some((one) => one.id === imageId))
			throw new Refusal(PRECONDITION, 'Could not find image with ID');
		return { imageId };
	}

	SecretGetOrCreate({ envDict = {} }) {
		const secretId = `st-${random(22)}`;
		this.#secrets.set(secretId, envDict);
		return { secretId };
	}

	// -- sandboxes -----------------------------------------------------------------------------------

	#living(appId) {
		return [...this.#boxes.values()].filter((box) => !box.result && (!appId || box.appId === appId));
	}

	#admit({ appId, definition = {} }) {
		const { name, timeoutSecs = 0, imageId } = definition;
		if (![...this.#apps.values()].includes(appId)) throw new Refusal(NOT_FOUND, 'no such app');
		const image = [...this.#images.values()].find((one) => one.id === imageId);
		if (!image?.built || image.status !== SUCCESS) throw new Refusal(INVALID, 'no such image');
		if (timeoutSecs < 1 || timeoutSecs > this.plan.maxLifeS) throw new Refusal(INVALID, 'timeout');
		if (name && !/^[A-Za-z0-9._-]{1,64}$/.test(name)) throw new Refusal(INVALID, 'name');
		if (name && this.#living(appId).some((box) => box.name === name)) throw new Refusal(ALREADY_EXISTS, 'name in use');
		if (this.plan.throttleS || this.#living().length >= this.plan.concurrency)
			throw new Refusal(EXHAUSTED, 'too many sandboxes', this.#retry(this.plan.throttleS || 5));
	}

	/** A sandbox without a GPU may say so with an empty message, as Modal's own clients do. */
	#admitGpu({ resources }, v2) {
		const { gpuType: type, count = 0 } = resources?.gpu ?? {};
		if (!type && !count) return;
		if (v2) throw new Refusal(INVALID, 'no GPUs in this generation');
		if (!Object.hasOwn(GPUS, type ?? '') || count < 1 || count > GPUS[type]) throw new Refusal(INVALID, 'no such GPU');
	}

	#retry(seconds) {
		const policy = encode(types.RetryPolicy, { retryAfterSecs: seconds });
		return encode(types.StatusDetails, { code: EXHAUSTED, message: 'wait',
			details: [{ typeUrl: 'type.googleapis.com/modal.client.RPCRetryPolicy', value: policy }] });
	}

	async #create({ appId, definition = {}, tags, secretSources }, v2) {
		const id = v2 ? `sb-v2${random(26)}` : `sb-${random(22)}`;
		this.#admitGpu(definition, v2);
		this.#admit({ appId, definition });
		const env = Object.assign({}, ...secretSources.map((s) => s.env?.values ?? this.#secrets.get(s.secretId) ?? {}),
			...definition.secretIds.map((s) => this.#secrets.get(s) ?? {}));
		const box = { id, appId, definition, name: definition.name ?? '', tags, taskId: `ta-${random(22)}`, tokens: new Set(),
			execs: new Map(), started: Date.now(), over: gate() };
		this.#boxes.set(id, box);
		this.#tasks.set(box.taskId, box);
		box.guest = await Guest.start({ home: HOME, env }).catch((error) => {
			this.#boxes.delete(id);
			throw error;
		});
		if (box.result) { // it was ended meanwhile
			box.guest.end();
			return box;
		}
		box.timer = setTimeout(() => this.end(id, TIMEOUT), (definition.timeoutSecs) * 1000);
		if (definition.entrypointArgs.length) this.#main(box, definition);
		return box;
	}

	#main(box, { entrypointArgs, workdir }) {
		box.main = new Exec(box.guest, { commandArgs: entrypointArgs, workdir, stdoutConfig: 1, stderrConfig: 1, env: {},
			secretSources: [] });
		box.main.ended.then(() => this.end(box.id, box.main.status.code === 0 ? SUCCESS : FAILURE, box.main.status.code ?? 137));
	}

	async SandboxCreateV2(request, call) {
		const box = await this.#create(request, true);
		return { sandboxId: box.id, taskId: box.taskId, commandRouterAccess: this.#access(box, call) };
	}

	async SandboxCreate(request) {
		return { sandboxId: (await this.#create(request, false)).id };
	}

	/** The sandbox of an id. The second generation's calls know only their own kind, the first one's likewise. */
	#box(id, v2) {
		const box = this.#boxes.get(id);
		if (!box || v2 !== id.startsWith('sb-v2')) throw new Refusal(NOT_FOUND, 'no such sandbox');
		return box;
	}

	#access(box, { tls }) {
		const token = jwt(this.plan.tokenS);
		box.tokens.add(token);
		return { jwt: token, url: `https://127.0.0.1:${tls ? this.place.port : this.place.plainPort}` };
	}

	SandboxGetCommandRouterAccess({ sandboxId }, call) {
		const box = this.#box(sandboxId, true);
		if (box.result) throw new Refusal(PRECONDITION, 'not running');
		return this.#access(box, call);
	}

	TaskGetCommandRouterAccess({ taskId }, call) {
		const box = this.#tasks.get(taskId);
		if (!box) throw new Refusal(NOT_FOUND, 'no such task');
		if (box.result) throw new Refusal(PRECONDITION, 'not running');
		return this.#access(box, call);
	}

	SandboxGetTaskId({ sandboxId }, call, v2) {
		const box = this.#box(sandboxId, v2);
		if (!v2 && !box.result && Date.now() < box.started + this.plan.queueMs) return {};
		return { taskId: box.taskId, ...(box.result ? { taskResult: box.result } : {}) };
	}

	async SandboxWait({ sandboxId, timeout = 0 }, { closed }, v2) {
		const box = this.#box(sandboxId, v2);
		if (!box.result && timeout) {
			let timer;
			const late = new Promise((resolve) => { timer = setTimeout(resolve, Math.min(timeout, this.plan.waitS) * 1000); });
			await Promise.race([box.over.promise, late, closed]);
			clearTimeout(timer);
		}
		return box.result ? { result: box.result } : {};
	}

	SandboxTerminate({ sandboxId }, call, v2) {
		const box = this.#box(sandboxId, v2);
		const before = box.result;
		if (!before && !this.plan.lazyEnd) this.end(sandboxId, TERMINATED, 137);
		return before ? { existingResult: before } : {};
	}

	SandboxList({ appId, beforeTimestamp, includeFinished, tags }, call, v2) {
		const boxes = [...this.#boxes.values()].filter((box) => (v2 || !box.id.startsWith('sb-v2')) &&
			(!appId || box.appId === appId) && (includeFinished || !box.result) &&
			(!beforeTimestamp || box.started / 1000 < beforeTimestamp) &&
			tags.every((want) => box.tags.some((tag) => tag.tagName === want.tagName && tag.tagValue === want.tagValue)));
		boxes.sort((a, b) => b.started - a.started);
		/* Those of one millisecond must stand on one page: the next one begins before their time. */
		let n = Math.min(PAGE, boxes.length);
		while (n && n < boxes.length && boxes[n].started === boxes[n - 1].started) n += 1;
		return { sandboxes: boxes.slice(0, n).map((box) => ({ id: box.id, createdAt: box.started / 1000, appId: box.appId,
			tags: box.tags, name: box.name, imageId: box.definition.imageId, timeoutSecs: box.definition.timeoutSecs,
			taskInfo: { id: box.taskId, startedAt: box.started / 1000, ...(box.result ? { result: box.result } : {}) } })) };
	}

	SandboxGetFromName({ sandboxName, appName, includeTerminated }, call, v2) {
		const appId = this.#apps.get(appName);
		const box = [...this.#boxes.values()].reverse().find((one) => one.name === sandboxName && one.appId === appId &&
			(includeTerminated || !one.result) && v2 === one.id.startsWith('sb-v2'));
		if (!box) throw new Refusal(NOT_FOUND, 'no such sandbox');
		return { sandboxId: box.id };
	}

	SandboxTagsSet({ sandboxId, tags }, call, v2) {
		this.#box(sandboxId, v2).tags = tags;
		return {};
	}

	SandboxTagsGet({ sandboxId }, call, v2) {
		return { tags: this.#box(sandboxId, v2).tags };
	}

	SandboxGetTunnels() {
		return { result: { status: SUCCESS }, tunnels: [] };
	}

	async SandboxGetLogs({ sandboxId, fileDescriptor, lastEntryId }, { write, closed }) {
		const box = this.#box(sandboxId, false);
		if (box.main && lastEntryId !== 'end')
			await (fileDescriptor === 2 ? box.main.err : box.main.out).read(0,
				(part) => write({ items: [{ data: part.toString() }], entryId: '1-0' }), closed);
		write({ entryId: 'end', eof: true });
	}

	end(id, status, exitcode = 0) {
		const box = this.#boxes.get(id);
		if (box.result) return;
		clearTimeout(box.timer);
		box.result = { status, exitcode };
		box.ended = Date.now();
		for (const exec of box.execs.values()) exec.kill();
		box.main?.kill();
		box.guest?.end();
		box.over.open();
	}

	// -- the router ----------------------------------------------------------------------------------

	#exec({ execId }, box) {
		const exec = box.execs.get(execId);
		if (!exec) throw new Refusal(NOT_FOUND, 'no such exec');
		return exec;
	}

	TaskExecStart(request, box) {
		if (!request.execId) throw new Refusal(INVALID, 'no exec id');
		if (!box.execs.has(request.execId)) box.execs.set(request.execId, new Exec(box.guest, request));
		return {};
	}

	TaskExecStdioRead(request, box, { write, closed }) {
		const exec = this.#exec(request, box);
		const pipe = request.fileDescriptor === 1 ? exec.err : exec.out;
		return pipe.read(request.offset ?? 0, (data) => write({ data }), closed);
	}

	async TaskExecWait(request, box, { closed }) {
		const exec = this.#exec(request, box);
		await Promise.race([exec.ended, closed]);
		return exec.status ?? {};
	}

	TaskExecPoll(request, box) {
		return this.#exec(request, box).status ?? {};
	}

	TaskExecStdinWrite(request, box) {
		this.#exec(request, box).stdin(request.offset ?? 0, request.data ?? Buffer.alloc(0), request.eof);
		return {};
	}

	TaskExecStdinWriteStream(first, box, { requests }) {
		const exec = this.#exec(first.start, box);
		let at = first.start.offset ?? 0;
		for (const { data, end } of requests.slice(1)) {
			exec.stdin(at, data ?? Buffer.alloc(0), Boolean(end));
			at += data?.length ?? 0;
		}
		return {};
	}

	TaskExecStdinStatus(request, box) {
		const exec = this.#exec(request, box);
		return { numBytesWritten: exec.stdinBytes, closed: exec.stdinClosed };
	}

	SandboxStdioReadV2({ offset = 0, fileDescriptor }, box, { write, closed }) {
		let at = offset;
		return (fileDescriptor === 1 ? box.main?.err : box.main?.out)?.read(at, (data) => {
			write({ data, startingOffset: at });
			at += data.length;
		}, closed);
	}

	// -- for tests -----------------------------------------------------------------------------------

	expireRouterTokens() {
		for (const box of this.#boxes.values()) box.tokens.clear();
	}

	expireControlTokens() {
		this.#controlTokens.clear();
	}

	/** The id or name of the sandbox that a request is about, where one can tell. */
	boxOf({ request, requests }) {
		const task = request.taskId ?? requests[0]?.start?.taskId;
		return task ? this.#tasks.get(task)?.id : request.sandboxId ?? request.sandboxName;
	}

	async plant(mark) {
		const like = [...this.#boxes.values()].at(-1);
		const before = like.name.slice(0, mark.lastIndexOf('-'));
		const tags = like.tags.map(({ tagName, tagValue }) => ({ tagName,
			tagValue: tagValue.replace(before, mark.slice(0, mark.lastIndexOf('-'))) }));
		const definition = { ...like.definition, name: mark };
		return (await this.#create({ appId: like.appId, definition, tags, secretSources: [] }, like.id.startsWith('sb-v2'))).id;
	}

	boxes() {
		return [...this.#boxes.values()].map(({ id, name, result, started, ended }) => ({ id, mark: name,
			state: result ? 'stopped' : 'running', started, ended, billedMs: (ended ?? Date.now()) - started }));
	}

	definition(id) {
		return this.#boxes.get(id)?.definition;
	}

	async stop() {
		for (const id of this.#boxes.keys()) this.end(id, TERMINATED, 137);
		await until('every sandbox is made or ended', () => [...this.#boxes.values()].every((box) => box.guest));
		for (const { guest } of this.#boxes.values()) guest.end();
	}
}

/** { plan: {...} } changes the limits from the start. */
export async function start(options = {}) {
	const modal = new Modal();
	Object.assign(modal.plan, options.plan);
	const place = await serve({ methods, op: opOf, about: (call) => modal.boxOf(call), answer: (call) => modal.answer(call) });
	modal.place = place;
	const stopServer = place.stop.bind(place);
	return Object.assign(place, {
		base: place.url,
		credential: modal.credential,
		plan: modal.plan,
		boxes: () => modal.boxes(),
		definition: (id) => modal.definition(id),
		plant: (mark) => modal.plant(mark),
		vanish: (id) => modal.end(id, TERMINATED, 137),
		end: (id, status, code) => modal.end(id, status, code),
		expireRouterTokens: () => modal.expireRouterTokens(),
		expireControlTokens: () => modal.expireControlTokens(),
		stop: async () => {
			await modal.stop();
			await stopServer();
		},
	});
}
