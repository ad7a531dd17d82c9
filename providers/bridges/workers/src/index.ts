// sbx-bridge 1: sandboxes of this Cloudflare account over plain HTTP. README.md tells what it is for.
import { Box, bytesOf, type Frame } from "./box";
import type { Env, Row } from "./registry";
import { bad, Wrong } from "./wrong";

export { Sandbox } from "@cloudflare/sandbox";
export { Registry } from "./registry";

const BOX_ID = /^[a-z][a-z0-9-]{7,62}$/;
const EXEC_ID = /^[A-Za-z0-9-]{8,64}$/;
const ENV_NAME = /^[A-Za-z_]\w*$/;
const BASE = "/bridge/v1/sandboxes";
const TOKEN_MIN = 32;
const FOLLOW_MS = 60_000;
const BLOCK = 8 << 20; // bytes of a file in one call
const BODY = 1 << 20;
const COMMAND = 32768; // bytes: command, env and stdin together
const NO_STORE = { "cache-control": "no-store" };

type Json = Record<string, unknown>;

// -- what comes in --------------------------------------------------------------------------------

/** Both sides are hashed, so that the comparison tells nothing, not even the length. */
async function admit(request: Request, env: Env): Promise<void> {
	if ((env.BRIDGE_TOKEN ?? "").length < TOKEN_MIN) throw new Wrong(503, "misconfigured", "BRIDGE_TOKEN is not set");
	const given = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
	const hash = (s: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(s));
	if (!crypto.subtle.timingSafeEqual(await hash(given), await hash(env.BRIDGE_TOKEN!)))
		throw new Wrong(401, "unauthorized", "this token is not the bridge's");
}

async function bytes(request: Request, max: number): Promise<Uint8Array> {
	const tooLarge = new Wrong(413, "too_large", `the body may have ${max} bytes`);
	if (Number(request.headers.get("content-length") ?? 0) > max) throw tooLarge;
	const body = new Uint8Array(await request.arrayBuffer());
	if (body.length > max) throw tooLarge;
	return body;
}

async function object(request: Request): Promise<Json> {
	const body = await bytes(request, BODY);
	try {
		const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
		if (value && typeof value === "object" && !Array.isArray(value)) return value as Json;
	} catch {
		// Told below.
	}
	throw bad("the body must be a JSON object");
}

function whole(value: unknown, name: string, min: number, max: number, otherwise?: number): number {
	if (value === undefined && otherwise !== undefined) return otherwise;
	if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
		throw bad(`${name} must be a whole number from ${min} to ${max}`);
	return value as number;
}

/** A number of the query. */
function asked(url: URL, name: string, otherwise: number): number {
	const all = url.searchParams.getAll(name);
	if (all.length > 1 || (all[0] !== undefined && !/^\d{1,15}$/.test(all[0]))) throw bad(`${name} must be one number`);
	return all[0] === undefined ? otherwise : Number(all[0]);
}

function text(value: unknown, name: string, otherwise?: string): string {
	if (value === undefined && otherwise !== undefined) return otherwise;
	if (typeof value !== "string" || value.includes("\0")) throw bad(`${name} must be a text without NUL`);
	return value;
}

function texts(value: unknown, name: string): Record<string, string> {
	if (value === undefined) return {};
	if (!value || typeof value !== "object" || Array.isArray(value)) throw bad(`${name} must be an object`);
	for (const [key, one] of Object.entries(value)) text(one, `${name}.${key}`);
	return value as Record<string, string>;
}

function variables(value: unknown): Record<string, string> {
	const env = texts(value, "env");
	for (const name of Object.keys(env)) if (!ENV_NAME.test(name)) throw bad("env has a bad name");
	return env;
}

// -- what goes out --------------------------------------------------------------------------------

const reply = (status: number, body: unknown) => Response.json(body, { status, headers: NO_STORE });

const view = (row: Row) => ({
	id: row.id,
	state: row.state,
	created_at: row.created / 1000,
	expires_at: row.expires / 1000,
	labels: JSON.parse(row.labels) as Record<string, string>,
	enforced: [], // the size of a sandbox is set when the bridge is deployed
});

function lines(frames: AsyncGenerator<Frame>): Response {
	const encoder = new TextEncoder();
	const body = new ReadableStream<Uint8Array>({
		async pull(to) {
			const { done, value } = await frames.next();
			if (done) to.close();
			else to.enqueue(encoder.encode(`${JSON.stringify(value)}\n`));
		},
		async cancel() {
			await frames.return(undefined);
		},
	});
	return new Response(body, { headers: { "content-type": "application/x-ndjson", ...NO_STORE } });
}

function health(env: Env): Response {
	const ok = (env.BRIDGE_TOKEN ?? "").length >= TOKEN_MIN;
	return reply(ok ? 200 : 503, {
		ok,
		contract: "sbx-bridge",
		version: 1,
		minor: 0,
		provider: "cloudflare",
		features: ["exec", "kill", "stdin", "env", "files", "ttl"],
		limits: { follow_ms: FOLLOW_MS, file_block: BLOCK, command_bytes: COMMAND },
	});
}

// -- the calls ------------------------------------------------------------------------------------

type Registry = DurableObjectStub<import("./registry").Registry>;

async function list(url: URL, registry: Registry): Promise<Response> {
	const wanted = url.searchParams.getAll("label").map((label) => {
		const at = label.indexOf("=");
		if (at < 1) throw bad("label must be name=value");
		return [label.slice(0, at), label.slice(at + 1)] as const;
	});
	const all = (await registry.list()).map(view);
	return reply(200, { sandboxes: all.filter((s) => wanted.every(([k, v]) => s.labels[k] === v)) });
}

async function create(request: Request, registry: Registry): Promise<Response> {
	const body = await object(request);
	const id = text(body.id, "id");
	if (!BOX_ID.test(id)) throw bad("id must be 8 to 63 of a-z, 0-9 and -, and begin with a letter");
	const ttl = whole(body.ttl_seconds, "ttl_seconds", 1, 86400);
	const idle = whole(body.idle_seconds, "idle_seconds", 1, 86400, ttl);
	for (const name of ["image", "network"])
		if (body[name] !== undefined) throw new Wrong(400, "unsupported", `${name} is fixed when the bridge is deployed`);
	const labels = JSON.stringify(texts(body.labels, "labels"));
	const made = await registry.add(id, ttl, Math.min(idle, ttl), labels, JSON.stringify(variables(body.env)));
	if (!made) throw new Wrong(409, "conflict", "this sandbox is just being stopped");
	return reply(made.fresh ? 201 : 200, view(made.row));
}

async function stop(id: string, registry: Registry): Promise<Response> {
	const gone = await registry.stop(id);
	return reply(gone ? 200 : 202, { id, state: gone ? "stopped" : "stopping" });
}

async function exec(request: Request, box: Box, row: Row): Promise<Response> {
	const body = await object(request);
	const id = text(body.exec_id, "exec_id");
	if (!EXEC_ID.test(id)) throw bad("exec_id must be 8 to 64 letters, digits and -");
	if (!Array.isArray(body.argv) || !body.argv.length || body.argv[0] === "") throw bad("argv must be a list that begins with a program");
	const argv = body.argv.map((word, i) => text(word, `argv[${i}]`));
	const env = Object.entries({ ...JSON.parse(row.env), ...variables(body.env) }).map(([k, v]) => `${k}=${v}`);
	const input = text(body.stdin_b64, "stdin_b64", "");
	try {
		bytesOf(input);
	} catch {
		throw bad("stdin_b64 is not base64");
	}
	const cwd = text(body.cwd, "cwd", "");
	if (cwd && !cwd.startsWith("/")) throw new Wrong(400, "bad_cwd", "cwd must be absolute");
	const seconds = Math.ceil(whole(body.timeout_ms, "timeout_ms", 0, 86_400_000, 0) / 1000);
	const ms = whole(body.follow_ms, "follow_ms", 0, FOLLOW_MS, 30_000);
	const words = env.length ? ["env", ...env, ...argv] : argv;
	if (new TextEncoder().encode([id, cwd, input, ...words].join("")).length > COMMAND)
		throw new Wrong(413, "too_large", `command, env and stdin may have ${COMMAND} bytes together`);
	const answer = await box.run("start", id, cwd, seconds, input, ...words);
	if (answer.words[0] === "badcwd") throw new Wrong(400, "bad_cwd", "cwd is no folder that can be entered");
	if (answer.words[0] === "nospace") throw new Wrong(502, "provider_error", "the disk of the sandbox is full");
	return lines(box.follow(id, 0, 0, ms));
}

async function kill(request: Request, box: Box, id: string): Promise<Response> {
	const signal = text((await object(request)).signal, "signal", "KILL");
	if (!["KILL", "TERM", "INT"].includes(signal)) throw bad("signal must be KILL, TERM or INT");
	const { words } = await box.run("kill", id, signal);
	if (words[0] === "gone") throw new Wrong(404, "exec_not_found", "no such command here");
	return reply(200, { state: words[0] });
}

async function follow(url: URL, box: Box, id: string): Promise<Response> {
	const [stdout, stderr] = [asked(url, "stdout", 0), asked(url, "stderr", 0)];
	const ms = Math.min(asked(url, "follow_ms", 30_000), FOLLOW_MS);
	// A stream says 200 before anything is known, so a command that was never here is looked for first.
	const { words } = await box.run("poll", id, 0, 0, 0, 0);
	if (words[0] === "gone") throw new Wrong(404, "exec_not_found", "no such command here");
	return lines(box.follow(id, stdout, stderr, ms));
}

async function file(request: Request, url: URL, box: Box): Promise<Response> {
	const [path, ...more] = url.searchParams.getAll("path");
	if (!path?.startsWith("/") || path.includes("\0") || path.length > 4095 || more.length) throw bad("path must be one absolute path");
	const offset = asked(url, "offset", 0);
	if (request.method === "PUT") return reply(200, { size: await box.write(path, offset, await bytes(request, BLOCK)) });
	const part = await box.read(path, offset, Math.min(asked(url, "length", BLOCK), BLOCK));
	return new Response(part.bytes, { headers: { "content-type": "application/octet-stream", "x-file-size": part.size, ...NO_STORE } });
}

// -- routes ---------------------------------------------------------------------------------------

const ROUTE = /^\/bridge\/v1\/sandboxes\/([^/]+)(?:\/(?:(exec)(?:\/([^/]+)(\/kill)?)?|(file)))?$/;

async function answer(request: Request, env: Env): Promise<Response> {
	const url = new URL(request.url);
	const method = request.method;
	const wrongMethod = new Wrong(405, "method_not_allowed", "not with this method");
	const only = (...methods: string[]) => {
		if (!methods.includes(method)) throw wrongMethod;
	};
	if (url.pathname === "/health") {
		only("GET");
		return health(env);
	}
	await admit(request, env);
	const registry = env.Registry.get(env.Registry.idFromName("registry"));
	if (url.pathname === BASE) {
		only("GET", "POST");
		return method === "GET" ? list(url, registry) : create(request, registry);
	}
	const [, id, isExec, execId, isKill, isFile] = ROUTE.exec(url.pathname) ?? [];
	if (!id || !BOX_ID.test(id) || (execId !== undefined && !EXEC_ID.test(execId))) throw new Wrong(404, "not_found", "there is no such route");
	only(...(isKill || (isExec && !execId) ? ["POST"] : execId ? ["GET"] : isFile ? ["GET", "PUT"] : ["GET", "DELETE"]));
	if (method === "DELETE") return stop(id, registry);

	const row = await registry.get(id);
	if (row?.state !== "running") throw new Wrong(404, "sandbox_not_found", "there is no such running sandbox");
	if (!isExec && !isFile) return reply(200, view(row));
	const box = new Box(env, row, registry);
	if (isFile) return file(request, url, box);
	if (!execId) return exec(request, box, row);
	return isKill ? kill(request, box, execId) : follow(url, box, execId);
}

export default {
	async fetch(request: Request, env: Env): Promise<Response> {
		try {
			return await answer(request, env);
		} catch (e) {
			const [status, code] = e instanceof Wrong ? [e.status, e.code] : [502, "provider_error"];
			const message = e instanceof Error ? e.message.slice(0, 300) : "unknown";
			return reply(status, { error: { code, message } });
		}
	},
} satisfies ExportedHandler<Env>;
