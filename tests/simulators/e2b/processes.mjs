// Processes of a sandbox: started, listened to, signalled. What nobody listens to is lost, and who comes
// later hears only what comes later.

import { Failed, LAST, frame } from './frames.mjs';

class Running {
	listeners = new Set();

	constructor(box, { process: config, stdin = true, tag }, chunk) {
		this.pid = box.nextPid++;
		this.config = config;
		this.tag = tag;
		this.child = box.guest.spawn([config.cmd, ...(config.args ?? [])], {
			cwd: config.cwd ?? box.guest.home, env: config.envs ?? {}, stdin: stdin ? 'pipe' : 'ignore' });
		this.kill = (signal) => box.guest.signal(this.child, signal); // the leader alone, not its children
		this.child.stdin?.on('error', () => {});
		for (const name of ['stdout', 'stderr'])
			this.child[name].on('data', (bytes) => this.#heard(name, bytes, chunk));
		// Only when both streams have ended, which a child in the background may put off.
		this.child.on('close', (code, signal) => this.#over(box, code, signal));
		this.child.on('error', () => this.#over(box, 127, null));
	}

	/** The deadline of who started it: it holds even when he has gone. */
	until(ms, fn) {
		this.deadline = setTimeout(() => {
			this.kill('SIGKILL');
			fn();
		}, ms);
	}

	tell(event) {
		for (const listen of this.listeners) listen({ event });
	}

	#heard(name, bytes, chunk) {
		for (let at = 0; at < bytes.length; at += chunk)
			this.tell({ data: { [name]: bytes.subarray(at, at + chunk).toString('base64') } });
	}

	/** A zero is left out, as everywhere in this encoding. */
	#over(box, code, signal) {
		const status = signal ? `signal: ${signal === 'SIGKILL' ? 'killed' : signal}` : `exit status ${code}`;
		this.ended = signal ? { exitCode: -1, status, error: status }
			: { ...(code && { exitCode: code, error: status }), exited: true, status };
		clearTimeout(this.deadline);
		this.tell({ end: this.ended });
		box.forgetLater(this.pid);
	}

	/** The sandbox is gone: the connection breaks, nobody hears an end. */
	cut() {
		clearTimeout(this.deadline);
		for (const listen of this.listeners) listen(undefined);
	}
}

/** Passes on what one process says until it ends, is cut off, or the listener goes. */
function listen(box, running, { gone, deadlineMs, keepaliveS }, write) {
	return new Promise((resolve, reject) => {
		let beat;
		const over = (why) => {
			clearInterval(beat);
			running.listeners.delete(hear);
			if (why) reject(why);
			else resolve();
		};
		const hear = (message) => {
			if (!message) return over(new Error('the sandbox has ended'));
			write(frame(message));
			if (!message.event.end) return undefined;
			write(frame({}, LAST));
			return over();
		};
		running.listeners.add(hear);
		write(frame({ event: { start: { pid: running.pid } } }));
		if (running.ended) return hear({ event: { end: running.ended } });
		beat = setInterval(() => write(frame({ event: { keepalive: {} } })), keepaliveS * 1000);
		if (deadlineMs)
			running.until(deadlineMs, () => {
				write(new Failed('deadline_exceeded', 'the deadline is over').last);
				over();
			});
		return gone.then(() => over());
	});
}

function chosen(box, { process: selector } = {}) {
	const found = [...box.processes.values()].find(({ pid, tag }) =>
		selector?.pid === pid || (selector?.tag && selector.tag === tag));
	if (!found) throw new Failed('not_found', 'there is no such process');
	return found;
}

const alive = (running) => {
	if (running.ended) throw new Failed('not_found', 'the process has ended');
	return running;
};

async function started(box, message, options, write) {
	const { cmd, cwd } = message.process ?? {};
	if (!cmd) return write(new Failed('invalid_argument', 'cmd is missing').last);
	if (message.pty) return write(new Failed('unimplemented', 'no terminals here').last);
	if (cwd && !box.guest.isDir(cwd)) return write(new Failed('invalid_argument', `cwd '${cwd}' does not exist`).last);
	const running = new Running(box, message, options.chunk);
	box.processes.set(running.pid, running);
	return listen(box, running, options, write);
}

async function connected(box, message, options, write) {
	try {
		return await listen(box, chosen(box, message), { ...options, deadlineMs: 0 }, write);
	} catch (error) {
		if (!(error instanceof Failed)) throw error;
		return write(error.last);
	}
}

export const streams = {
	'/process.Process/Start': started,
	'/process.Process/Connect': connected,
};

const SIGNALS = { SIGNAL_SIGTERM: 'SIGTERM', SIGNAL_SIGKILL: 'SIGKILL' };

export const processes = {
	'/process.Process/List': (box) => ({
		processes: [...box.processes.values()].filter(({ ended }) => !ended)
			.map(({ config, pid, tag }) => ({ config, pid, ...(tag && { tag }) })),
	}),
	'/process.Process/SendSignal': (box, message) => {
		const signal = SIGNALS[message.signal];
		if (!signal) throw new Failed('invalid_argument', 'no such signal');
		alive(chosen(box, message)).kill(signal);
		return {};
	},
	'/process.Process/SendInput': (box, message) => {
		const { child } = alive(chosen(box, message));
		if (!child.stdin?.writable) throw new Failed('invalid_argument', 'stdin is closed');
		child.stdin.write(Buffer.from(message.input?.stdin ?? '', 'base64'));
		return {};
	},
	'/process.Process/CloseStdin': (box, message) => {
		alive(chosen(box, message)).child.stdin?.end();
		return {};
	},
	'/process.Process/Update': (box, message) => {
		alive(chosen(box, message));
		return {};
	},
};
