// Stands in for @cloudflare/sandbox inside workerd: its own getSandbox and, in place of the class that needs
// a container, one whose machine is a real one of tests/simulators/machines.mjs. Only the methods that the
// two bridges use.
import { DurableObject } from 'cloudflare:workers';

export { getSandbox } from 'the-real-sandbox';

const encoder = new TextEncoder();
const textOf = (base64) => new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
const event = (object) => encoder.encode(`data: ${JSON.stringify(object)}\n\n`);

export class Sandbox extends DurableObject {
	async #ask(verb, body = {}) {
		const name = this.ctx.id.name;
		const reply = await fetch(`${this.env.MACHINES}/${name}/${verb}`, { method: 'POST', body: JSON.stringify(body) });
		if (reply.status === 404) {
			const e = new Error('File not found');
			e.code = 'FILE_NOT_FOUND';
			throw e;
		}
		if (!reply.ok) throw new Error(await reply.text());
		return reply.json();
	}

	async configure({ sleepAfter, sandboxName }) {
		if (sleepAfter !== undefined) await this.ctx.storage.put('sleepAfter', sleepAfter);
		if (sandboxName) await this.ctx.storage.put('name', sandboxName.name);
	}

	async execWithSessionToken(command, _session, options = {}) {
		const { cwd = '/workspace', timeout, stream, onOutput, onComplete, onError } = options;
		const argv = ['bash', '-c', `cd ${cwd} && ${command}`];
		try {
			const { code, stdout, stderr } = await this.#ask('exec', { argv, timeoutMs: timeout });
			const result = { success: code === 0, exitCode: code, stdout: textOf(stdout), stderr: textOf(stderr), command };
			if (stream && result.stdout) await onOutput('stdout', result.stdout);
			if (stream && result.stderr) await onOutput('stderr', result.stderr);
			if (stream) await onComplete(result);
			return result;
		} catch (e) {
			if (!stream) throw e;
			await onError(e);
			return undefined;
		}
	}

	async writeFile(path, content, { encoding }) {
		if (encoding !== 'base64') throw new Error('only base64');
		await this.#ask('write', { path, bytes: content });
		return { success: true, path };
	}

	async readFileStream(path) {
		const { bytes } = await this.#ask('read', { path });
		return new ReadableStream({
			start(to) {
				to.enqueue(event({ type: 'metadata', mimeType: 'application/octet-stream', size: 0, isBinary: true, encoding: 'base64' }));
				to.enqueue(event({ type: 'chunk', data: bytes }));
				to.enqueue(event({ type: 'complete', bytesRead: 0 }));
				to.close();
			},
		});
	}

	async startAndWaitForPorts() {
		await this.#ask('start');
	}

	async getState() {
		const { running } = await this.#ask('state');
		return { status: running ? 'healthy' : 'stopped' };
	}

	renewActivityTimeout() {}

	async stop() {
		await this.#ask('end');
	}

	async destroy() {
		await this.#ask('end');
	}
}
