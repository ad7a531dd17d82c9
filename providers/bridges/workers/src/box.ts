// One sandbox: runs box.sh in it, and follows its commands.
import { getSandbox } from "@cloudflare/sandbox";
import SCRIPT from "./box.sh";
import type { Env, Row } from "./registry";
import { Wrong } from "./wrong";

export type Frame =
	| { t: "start"; exec_id: string }
	| { t: "out"; s: "stdout" | "stderr"; o: number; d: string }
	| { t: "hb" }
	| { t: "exit"; code: number; timed_out: boolean }
	| { t: "pending"; stdout: number; stderr: number }
	| { t: "error"; code: string; message: string };

const SLICE = 262144; // bytes of a stream in one frame
const WAIT_S = 1; // how long a poll waits inside the sandbox
const SCRIPT_MS = 40_000; // no script takes longer
const BEAT_MS = 10_000;

const quote = (s: string) => `'${s.replaceAll("'", "'\\''")}'`;
const reset = () => new Wrong(409, "sandbox_reset", "the machine was replaced and its files are lost");

export function bytesOf(base64: string): Uint8Array {
	const text = atob(base64);
	const bytes = new Uint8Array(text.length);
	for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
	return bytes;
}

const lengthOf = (base64: string) => (base64.length / 4) * 3 - (base64.match(/=*$/)?.[0].length ?? 0);

function base64Of(bytes: Uint8Array): string {
	let text = "";
	for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
	return btoa(text);
}

export class Box {
	#sandbox;
	#first: boolean;

	constructor(
		private readonly env: Env,
		private readonly row: Row,
		private readonly registry: DurableObjectStub<import("./registry").Registry>,
	) {
		// Commands run in the background, which the SDK does not take for activity: without a limit of our own
		// it would stop a busy machine after ten minutes that nobody asks about.
		this.#sandbox = getSandbox(this.env.Sandbox, row.id, {
			enableDefaultSession: false,
			sleepAfter: Math.max(60, row.idle),
		});
		this.#first = !row.used;
	}

	/** Runs a verb of box.sh; gives its words and the lines behind them. */
	async run(verb: string, ...args: (string | number)[]): Promise<{ words: string[]; lines: string[] }> {
		const words = ["sh", "-c", SCRIPT, "box", verb, this.#first ? 1 : 0, ...args];
		const command = words.map((word) => quote(String(word))).join(" ");
		const result = await Promise.race([this.#sandbox.exec(command, { timeout: SCRIPT_MS }), scheduler.wait(SCRIPT_MS)]);
		if (!result) throw new Wrong(502, "provider_error", "the sandbox did not answer in time");
		const [head = "", ...lines] = result.stdout.split("\n");
		const [mark, ...rest] = head.split(" ");
		if (mark !== "box" || !rest[0]) throw new Wrong(502, "provider_error", `unexpected answer: ${(result.stderr || head).slice(0, 200)}`);
		const lost = rest[0] === "reset";
		if (this.#first || lost) {
			const ours = await this.registry.used(this.row.id, this.row.created);
			this.#first = false;
			if (!ours) throw new Wrong(404, "sandbox_not_found", "the sandbox was stopped");
		}
		if (lost) throw reset();
		return { words: rest, lines };
	}

	/** What a command did from these offsets on, until it ends or ms are over. */
	async *follow(id: string, stdout: number, stderr: number, ms: number): AsyncGenerator<Frame> {
		const end = Date.now() + ms;
		let beat = Date.now();
		yield { t: "start", exec_id: id };
		try {
			for (;;) {
				const wait = Math.min(WAIT_S, Math.ceil((end - Date.now()) / 1000));
				const { words, lines } = await this.run("poll", id, stdout, stderr, SLICE, Math.max(0, wait));
				const [state, code, late, outSize, errSize] = words;
				const [out = "", err = ""] = lines;
				if (state === "gone") return yield { t: "error", code: "exec_not_found", message: "no such command here" };
				if (out) yield { t: "out", s: "stdout", o: stdout, d: out };
				if (err) yield { t: "out", s: "stderr", o: stderr, d: err };
				stdout += lengthOf(out);
				stderr += lengthOf(err);
				if (stdout >= Number(outSize) && stderr >= Number(errSize)) {
					if (state === "done") return yield { t: "exit", code: Number(code), timed_out: late === "1" };
					if (state === "lost") return yield { t: "error", code: "exec_lost", message: "nobody knows how the command ended" };
				}
				if (Date.now() >= end) return yield { t: "pending", stdout, stderr };
				if (out || err) beat = Date.now();
				else if (Date.now() - beat >= BEAT_MS) {
					beat = Date.now();
					yield { t: "hb" };
				}
			}
		} catch (e) {
			yield { t: "error", code: e instanceof Wrong ? e.code : "provider_error", message: String(e).slice(0, 300) };
		}
	}

	/** The bytes from the offset on, and the size of the whole file. */
	async read(path: string, offset: number, length: number): Promise<{ bytes: Uint8Array; size: string }> {
		const { words, lines } = await this.run("read", path, offset, length);
		this.#fileWord(words[0]!);
		return { bytes: bytesOf(lines[0] ?? ""), size: words[1]! };
	}

	/** The size of the file afterwards. */
	async write(path: string, offset: number, bytes: Uint8Array): Promise<number> {
		const part = `/tmp/.sbx-part-${crypto.randomUUID()}`;
		await this.#sandbox.writeFile(part, base64Of(bytes), { encoding: "base64" });
		const { words } = await this.run("write", path, offset, part);
		this.#fileWord(words[0]!);
		return Number(words[1]);
	}

	#fileWord(word: string): void {
		if (word === "ok") return;
		if (word === "missing") throw new Wrong(404, "file_not_found", "there is no such file");
		if (word === "folder") throw new Wrong(400, "is_directory", "this is a folder");
		if (word === "conflict") throw new Wrong(409, "conflict", "the file does not end at this offset");
		throw new Wrong(400, "file_error", "the file can not be read or written");
	}
}
