// Commands of one simulated sandbox, as Modal's command router keeps them: started once per id, output kept by
// offset, standard input by offset, an exit code or a signal at the end.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gate } from '../../lib/wait.mjs';
import { INVALID, PRECONDITION, Refusal } from './place.mjs';

const ARGS_MAX = 65536;
const FILE_TOOL = '/__modal/.bin/modal-sandbox-fs-tools';

/** Bytes that grow until they are whole; readers wait for more. */
class Pipe {
	#parts = [];
	#more = gate();
	size = 0;
	whole = false;

	put(part) {
		this.#parts.push(part);
		this.size += part.length;
		this.#wake();
	}

	end() {
		this.whole = true;
		this.#wake();
	}

	#wake() {
		this.#more.open();
		this.#more = gate();
	}

	/** Everything from the offset on, as it comes, until the end or until `closed` resolves. */
	async read(offset, write, closed) {
		let gone = false;
		closed.then(() => { gone = true; this.#wake(); });
		for (let at = offset; !gone;) {
			if (at < this.size) {
				write(Buffer.concat(this.#parts).subarray(at));
				at = this.size;
			} else if (this.whole) {
				return;
			} else {
				await this.#more.promise;
			}
		}
	}
}

export class Exec {
	out = new Pipe();
	err = new Pipe();
	stdinBytes = 0;
	stdinClosed = false;
	#done = gate();

	constructor(guest, request) {
		this.ended = this.#done.promise;
		this.guest = guest;
		if (!request.commandArgs.length) throw new Refusal(INVALID, 'no command');
		if (request.commandArgs.join('').length > ARGS_MAX) throw new Refusal(INVALID, 'arguments too long');
		if (request.stderrConfig === 2) throw new Refusal(INVALID, 'merging is not supported');
		if (request.workdir && !request.workdir.startsWith('/')) throw new Refusal(INVALID, 'workdir must be absolute');
		if (request.commandArgs[0] === FILE_TOOL) this.#tool(JSON.parse(request.commandArgs[1]));
		else this.#process(request);
	}

	get running() {
		return !this.status;
	}

	#end(status) {
		if (this.status) return;
		clearTimeout(this.timer);
		this.status = status;
		this.#done.open();
	}

	#process(request) {
		const env = Object.assign({}, request.env, ...request.secretSources.map((s) => s.env?.values ?? {}));
		this.child = this.guest.spawn(request.commandArgs, { cwd: request.workdir, env, stdin: 'pipe' });
		this.child.stdin.on('error', () => { this.stdinClosed = true; });
		for (const [stream, pipe, kept] of [[this.child.stdout, this.out, request.stdoutConfig === 1],
			[this.child.stderr, this.err, request.stderrConfig === 1]]) {
			stream.on('data', (part) => kept && pipe.put(part));
			stream.on('end', () => pipe.end());
			stream.on('error', () => pipe.end());
		}
		this.child.on('exit', (code, signal) =>
			this.#end(signal ? { signal: os.constants.signals[signal] } : { code }));
		if (request.timeoutSecs)
			this.timer = setTimeout(() => this.guest.signal(this.child, 'SIGKILL', { group: true }),
				request.timeoutSecs * 1000);
	}

	/** Bytes for standard input at an offset: what was there before is skipped, a hole is refused. */
	stdin(offset, data, eof) {
		if (offset > this.stdinBytes) throw new Refusal(INVALID, 'a hole in standard input');
		if (this.stdinClosed || this.status) {
			if (offset + data.length <= this.stdinBytes) return;
			throw new Refusal(PRECONDITION, 'standard input is closed');
		}
		const fresh = data.subarray(this.stdinBytes - offset);
		this.stdinBytes += fresh.length;
		if (this.take) this.take(fresh);
		else if (fresh.length) this.child.stdin.write(fresh);
		if (!eof) return;
		this.stdinClosed = true;
		if (this.finish) this.finish();
		else this.child.stdin.end();
	}

	kill() {
		clearTimeout(this.timer);
		this.#end({ signal: 9 });
		this.out.end();
		this.err.end();
	}

	// -- the program that Modal puts into every sandbox for files ----------------------------------------

	#finish(code, text = '', error = undefined) {
		if (text.length) this.out.put(Buffer.from(text));
		if (error) this.err.put(Buffer.from(JSON.stringify(error)));
		this.out.end();
		this.err.end();
		this.#end({ code });
	}

	#fail(error, verb) {
		const kinds = { ENOENT: 'NotFound', EISDIR: 'IsDirectory', ENOTDIR: 'NotDirectory', ENOTEMPTY: 'DirectoryNotEmpty',
			EEXIST: verb === 'MakeDirectory' ? 'PathAlreadyExists' : 'AlreadyExists', EACCES: 'PermissionDenied' };
		this.#finish(1, '', { error_kind: kinds[error.code] ?? 'NotSupported', message: error.code ?? 'failed', detail: '' });
	}

	#at(name) {
		const file = name.startsWith('/') && this.guest.file(name, '/');
		if (!file) throw Object.assign(new Error(name), { code: 'ENOENT' });
		return file;
	}

	#entry(file, name) {
		const stat = fs.lstatSync(file);
		const type = stat.isSymbolicLink() ? 'symlink' : stat.isDirectory() ? 'directory' : 'file';
		return { name: path.basename(name), path: name, type, size: stat.size, mode: stat.mode & 0o7777,
			permissions: (stat.mode & 0o777).toString(8), owner: 'root', group: 'root',
			modified_time: Math.floor(stat.mtimeMs / 1000),
			...(stat.isSymbolicLink() ? { symlink_target: fs.readlinkSync(file) } : {}) };
	}

	#work(verb, { path: name, parents, recursive }) {
		const file = this.#at(name);
		if (verb === 'ReadFile') return fs.readFileSync(file);
		if (verb === 'Stat') return JSON.stringify(this.#entry(file, name));
		if (verb === 'ListFiles')
			return JSON.stringify(fs.readdirSync(file).sort().map((one) =>
				this.#entry(path.join(file, one), path.posix.join(name, one))));
		if (verb === 'MakeDirectory') fs.mkdirSync(file, { recursive: Boolean(parents) });
		else if (verb === 'Remove' && fs.lstatSync(file).isDirectory() && !recursive) fs.rmdirSync(file);
		else if (verb === 'Remove') fs.rmSync(file, { recursive: Boolean(recursive) });
		else throw Object.assign(new Error(verb), { code: 'ENOSYS' });
		return '';
	}

	#tool(order) {
		const [verb, args] = Object.entries(order)[0];
		const safely = (work) => {
			try {
				this.#finish(0, work());
			} catch (error) {
				this.#fail(error, verb);
			}
		};
		if (verb !== 'WriteFile') {
			safely(() => this.#work(verb, args));
			return;
		}
		const parts = [];
		this.take = (part) => parts.push(part);
		this.finish = () => safely(() => {
			const file = this.#at(args.path);
			fs.mkdirSync(path.dirname(file), { recursive: true });
			fs.writeFileSync(file, Buffer.concat(parts));
			return '';
		});
	}
}
