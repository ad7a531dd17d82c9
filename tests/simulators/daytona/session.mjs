// Sessions: one shell that lives on and reads its commands from its standard input. Lines of output get a
// mark of three bytes for their stream, by helpers inside the sandbox, with all that follows from it: a last
// line gains a newline, NUL bytes vanish, and a command that ends the shell never gets an exit code.

import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { until } from '../../lib/wait.mjs';

const DIR = '/tmp/.daytona';
const GRACE_MS = 500;
const FOLLOW_MS = 20;
const DAY_MS = 24 * 60 * 60 * 1000;
const MARKS = { stdout: '\u0001\u0001\u0001', stderr: '\u0002\u0002\u0002' };

const label = (mark) => `while IFS= read -r _l || [ -n "$_l" ]; do printf '\\${mark}\\${mark}\\${mark}%s\\n' "$_l"; done >>"$_d/log"`;

const wrapped = (dir, command) => `
_d=${dir}; mkfifo "$_d/o" "$_d/e" "$_d/in"; exec 9<>"$_d/in"
(${label(1)}) <"$_d/o" 9<&- & _o=$!
(${label(2)}) <"$_d/e" 9<&- & _e=$!
{ ${command}
} <&9 >"$_d/o" 2>"$_d/e" 9<&-
_c=$?; wait $_o $_e; echo $_c >"$_d/code.new"; mv "$_d/code.new" "$_d/code"
`;

class Command {
	constructor(session, text, quiet) {
		this.id = randomUUID();
		this.text = text;
		this.quiet = quiet;
		this.session = session;
		this.inside = `${DIR}/${session.id}/${this.id}`;
		this.dir = session.box.guest.file(this.inside);
		fs.mkdirSync(this.dir, { recursive: true });
		fs.writeFileSync(`${this.dir}/log`, '');
		session.shell.stdin.write(wrapped(this.inside, text));
	}

	get code() {
		try {
			return Number(fs.readFileSync(`${this.dir}/code`, 'utf8'));
		} catch {
			return undefined;
		}
	}

	log() {
		try {
			return fs.readFileSync(`${this.dir}/log`);
		} catch {
			return Buffer.alloc(0); // the sandbox is gone
		}
	}

	streams() {
		const output = this.log().toString();
		const of = (mark) => output.split(/(?<=\n)/).filter((l) => l.startsWith(mark)).map((l) => l.slice(3)).join('');
		return { output, stdout: of(MARKS.stdout), stderr: of(MARKS.stderr) };
	}

	input(data) {
		const line = data.endsWith('\n') ? data : `${data}\n`;
		if (!this.quiet) fs.appendFileSync(`${this.dir}/log`, MARKS.stdout + line);
		const pipe = fs.openSync(`${this.dir}/in`, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
		fs.writeSync(pipe, line);
		fs.closeSync(pipe);
	}

	told() {
		return { id: this.id, command: this.text, exitCode: this.code };
	}
}

/** Clients that do not say that they know better get one text of both streams. */
const splits = (req) => req.headers['x-daytona-split-output'] === 'true' ||
	(req.headers['x-daytona-sdk-version'] ?? '0.0').split('.').reduce((n, part) => n * 1000 + Number.parseInt(part, 10), 0) >= 167000;

function shown(req, command) {
	const streams = command.streams();
	return splits(req) ? streams : { output: streams.output.replace(/(^|\n)(\u0001{3}|\u0002{3})/g, '$1') };
}

class Session {
	commands = [];

	constructor(box, id) {
		this.box = box;
		this.id = id;
		this.shell = box.guest.spawn(['bash'], { stdin: 'pipe' });
		this.shell.stdin.on('error', () => {});
		this.shell.stdout.resume();
		this.shell.stderr.resume();
		this.shell.on('exit', () => { this.over = true; });
	}

	told() {
		return { sessionId: this.id, commands: this.commands.map((c) => c.told()) };
	}

	end() {
		const { guest } = this.box;
		guest.signal(this.shell, 'SIGTERM', { group: true });
		setTimeout(() => guest.signal(this.shell, 'SIGKILL', { group: true }), GRACE_MS).unref();
	}
}

async function execute(req, box, session, fail) {
	const ask = JSON.parse(req.body);
	if (session.over) return fail(410, 'session has ended', 'SESSION_ENDED');
	const command = new Command(session, ask.command, ask.suppressInputEcho ?? false);
	session.commands.push(command);
	if (ask.runAsync || ask.async)
		return { status: 202, body: { cmdId: command.id, output: null, stdout: null, stderr: null, exitCode: null } };
	// For ever, when the command ended its shell.
	await until('the command ends', () => command.code !== undefined || !box.guest, DAY_MS);
	return { status: 200, body: { cmdId: command.id, ...shown(req, command), exitCode: command.code ?? null } };
}

function one(req, command, what, fail) {
	if (!what) return { status: 200, body: command.told() };
	if (what === 'logs') return { status: 200, body: splits(req) ? shown(req, command) : shown(req, command).output };
	if (what !== 'input') return fail(404, 'no such path', 'NOT_FOUND');
	if (command.code !== undefined) return fail(410, 'command has completed', 'COMMAND_ALREADY_COMPLETED');
	command.input(JSON.parse(req.body).data);
	return { status: 204, body: '' };
}

/** /process/session...; rest is the path behind it. */
export async function sessions(req, box, rest, fail) {
	const [id, what, commandId, more] = rest;
	if (!id && req.method === 'GET') return { status: 200, body: [...box.sessions.values()].map((s) => s.told()) };
	if (!id) {
		const { sessionId } = JSON.parse(req.body);
		if (box.sessions.has(sessionId)) return fail(409, 'session already exists', 'CONFLICT');
		box.sessions.set(sessionId, new Session(box, sessionId));
		return { status: 201, body: '' };
	}
	const session = box.sessions.get(id);
	if (!session) return fail(404, 'session not found', 'NOT_FOUND');
	if (what === 'exec') return execute(req, box, session, fail);
	if (what === 'command') {
		const command = session.commands.find((c) => c.id === commandId);
		return command ? one(req, command, more, fail) : fail(404, 'command not found', 'NOT_FOUND');
	}
	if (req.method === 'GET') return { status: 200, body: session.told() };
	session.end();
	box.sessions.delete(id);
	return { status: 204, body: '' };
}

/** The web socket that follows a command's log from its first byte to the command's end. */
export function follow(ws, box, rest) {
	const command = box.sessions.get(rest[2])?.commands.find((c) => c.id === rest[4]);
	if (!command) return ws.close(1011, 'command not found');
	let sent = 0;
	const timer = setInterval(() => {
		const over = command.code !== undefined || !box.guest;
		const log = command.log();
		if (log.length > sent) ws.send(log.subarray(sent), { binary: true });
		sent = log.length;
		if (over) ws.close(1000);
	}, FOLLOW_MS);
	return ws.on('close', () => clearInterval(timer));
}
