// One command in a session: a process, its output in the order in which it came, and its end.

import { randomBytes } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';
import os from 'node:os';
import { gate, pause } from '../../lib/wait.mjs';

const CLOSE_MS = 300; // a process of the background may hold the output open: it is not waited for

export class Command {
	lines = []; // { stream, data }
	exitCode = null;
	#changed = gate();
	#child;
	#guest;

	constructor(session, { command, args = [], cwd, env = {}, sudo = false, timeout }) {
		this.id = `cmd_${randomBytes(12).toString('hex')}`;
		this.name = command;
		this.args = args;
		this.cwd = cwd ?? session.cwd;
		this.session = session;
		this.startedAt = Date.now();
		this.#guest = session.guest;
		this.#child = this.#guest.spawn([command, ...args], {
			cwd: this.cwd,
			env: { ...session.sandbox.env, ...(sudo ? { HOME: '/root' } : {}), ...env },
		});
		if (timeout !== undefined)
			this.timer = setTimeout(() => this.#guest.signal(this.#child, 'SIGKILL', { group: true }), timeout);
		for (const stream of ['stdout', 'stderr']) this.#listen(stream);
		this.#child.on('error', () => this.#finish(127));
		this.#child.on('exit', async (code, signal) => {
			const closed = new Promise((resolve) => this.#child.on('close', resolve));
			await Promise.race([closed, pause(CLOSE_MS)]);
			this.#finish(code ?? 128 + os.constants.signals[signal]);
		});
	}

	/** Text, as the service gives it: what is no UTF-8 is replaced, a character is never cut in two. */
	#listen(stream) {
		const decoder = new StringDecoder('utf8');
		const put = (data) => {
			if (!data || this.exitCode !== null || this.lost) return;
			this.lines.push({ stream, data });
			this.#change();
		};
		this.#child[stream].on('data', (part) => put(decoder.write(part)));
		this.#child[stream].on('end', () => put(decoder.end()));
	}

	#change() {
		this.#changed.open();
		this.#changed = gate();
	}

	#finish(code) {
		clearTimeout(this.timer);
		if (this.exitCode !== null || this.lost) return;
		this.exitCode = code;
		this.durationMs = Date.now() - this.startedAt;
		this.#change();
	}

	/** The session ended under it: nobody knows how it would have ended. */
	lose() {
		clearTimeout(this.timer);
		if (this.exitCode !== null) return;
		this.lost = true;
		this.#change();
	}

	kill(signal) {
		if (this.exitCode === null) this.#guest.signal(this.#child, signal);
	}

	get json() {
		return { id: this.id, name: this.name, args: this.args, cwd: this.cwd, sessionId: this.session.id,
			exitCode: this.exitCode, startedAt: this.startedAt,
			...(this.durationMs === undefined ? {} : { durationMs: this.durationMs }) };
	}

	async ended() {
		while (this.exitCode === null && !this.lost) await this.#changed.promise;
	}

	/** Writes all output from the start, then follows it to the end; false when the end is not known. */
	async follow(write) {
		for (let at = 0; ;) {
			for (; at < this.lines.length; at++) write(this.lines[at]);
			if (this.lost) {
				write({ stream: 'error', data: { code: 'sandbox_stream_closed',
					message: 'Sandbox stream was closed and is not accepting commands.' } });
				return false;
			}
			if (this.exitCode !== null) return true;
			await this.#changed.promise;
		}
	}
}
