// Starts processes through guest_spawner (spawner.c), because a fork of a program as big as this one holds it
// up for as long as some requests take.
//
//   await spawner();
//   const child = spawn(argv, { cwd, env, files: ['ignore', 'pipe', 'pipe'], guest: pid });
//
// The child is like node's: stdin, stdout, stderr (or stdio[n]), 'exit' and 'close' with code and signal, kill().
// Its pid is there when `child.started` is kept.

import { spawn as fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

const PROGRAM = path.resolve(import.meta.dirname, '../../build/dev/guest_spawner');
const SIGNALS = new Map(Object.entries(os.constants.signals).map(([name, number]) => [number, name]));

const rootless = process.getuid() === 0 ? 0 : 1;

let running, socket;

/** The one spawner of this program, which ends with it, is there. */
export function spawner() {
	running ??= (async () => {
		const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-spawn-'));
		process.on('exit', () => fs.rmSync(dir, { recursive: true, force: true }));
		const at = path.join(dir, 'socket');
		const child = fork(PROGRAM, [at], { stdio: ['pipe', 'pipe', 'inherit'] });
		await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(([code]) => {
			throw new Error(`no spawner: it ended with ${code}`);
		})]);
		for (const one of [child, child.stdin, child.stdout]) one.unref();
		socket = at;
	})();
	return running;
}

const variables = (env) => Object.entries(env).filter(([, value]) => value !== undefined)
	.map((pair) => pair.join('='));

class Child extends EventEmitter {
	pid;
	exitCode = null;
	signalCode = null;
	#said = '';
	#open;

	constructor(argv, { cwd, env, files, guest = 0 }) {
		super();
		this.stdio = files.map((what) => what === 'pipe' ? new net.Socket({ allowHalfOpen: true }) : null);
		[this.stdin, this.stdout, this.stderr] = this.stdio;
		this.#open = 1;
		const control = this.#ask([cwd, ...argv, ...variables(env)], argv.length, guest);
		for (const stream of this.stdio.slice(1)) if (stream) this.#watch(stream);
		this.started = new Promise((resolve, reject) => {
			control.on('data', (text) => this.#hear(text, resolve));
			control.on('error', reject);
			control.on('close', () => {
				if (this.pid > 0) this.#closed();
				else reject(new Error('nothing was started'));
			});
		});
		this.started.catch((error) => this.emit('error', error));
	}

	/** The order of the connections says what they are. */
	#ask(strings, argc, guest) {
		if (strings.some((text) => text.includes('\0'))) throw new Error('there is a NUL in it');
		const text = strings.map((one) => `${one}\0`).join('');
		const files = this.stdio.reduce((bits, stream, i) => bits | (stream ? 1 << i : 0), 0);
		const control = net.connect(socket);
		control.setEncoding('utf8');
		control.write(`${Buffer.byteLength(text)} ${argc} ${strings.length - argc - 1} ${guest} ${rootless} ${files}\n${text}`);
		for (const stream of this.stdio) stream?.connect(socket);
		return control;
	}

	#watch(stream) {
		this.#open += 1;
		stream.end();
		stream.on('close', () => this.#closed());
	}

	#hear(text, started) {
		this.#said += text;
		for (let end; (end = this.#said.indexOf('\n')) >= 0; this.#said = this.#said.slice(end + 1)) {
			const [word, first, second] = this.#said.slice(0, end).split(' ');
			if (word === 'pid') {
				this.pid = Number(first);
				started();
				continue;
			}
			this.signalCode = SIGNALS.get(Number(second)) ?? null;
			this.exitCode = this.signalCode ? null : Number(first);
			this.stdin?.destroy();
			this.emit('exit', this.exitCode, this.signalCode);
			for (const stream of this.stdio.slice(1)) stream?.resume(); // one that nobody reads would not end
		}
	}

	#closed() {
		this.#open -= 1;
		if (this.#open === 0) this.emit('close', this.exitCode, this.signalCode);
	}

	/** While it has not ended; then its number may be another's. */
	get lives() {
		return this.exitCode === null && this.signalCode === null;
	}

	kill(name) {
		try {
			return this.pid > 0 && this.lives && process.kill(this.pid, name);
		} catch {
			return false; // it has ended
		}
	}
}

export const spawn = (argv, options) => new Child(argv, options);
