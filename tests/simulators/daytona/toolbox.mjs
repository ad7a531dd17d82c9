// The daemon inside a sandbox: one-call commands, code, files; sessions are in session.mjs.

import fs from 'node:fs';
import path from 'node:path';
import { HOME } from './sandbox.mjs';
import { BOUNDARY, readParts, writeParts } from './multipart.mjs';
import { sessions } from './session.mjs';
import { ptys } from './pty.mjs';
import { contexts } from './interpreter.mjs';

const fail = (status, message, code = 'BAD_REQUEST') => ({ status, body: { statusCode: status, message, code,
	timestamp: new Date().toISOString(), source: 'DAYTONA_DAEMON' } });

/** Runs a program to its end: { exitCode, result } or undefined when it took too long. */
function run(box, argv, { cwd = HOME, envs = {}, timeout = 0, input = '' }) {
	if (!box.guest.isDir(cwd)) return { exitCode: -1, result: '' };
	const child = box.guest.spawn(argv, { cwd, env: envs, stdin: 'pipe' });
	const said = [];
	let late = false;
	child.stdout.on('data', (part) => said.push(part));
	child.stderr.on('data', (part) => said.push(part));
	child.stdin.on('error', () => {}); // it may end without reading all
	child.stdin.end(input);
	const timer = timeout > 0 && setTimeout(() => {
		late = true;
		box.guest?.signal(child, 'SIGKILL', { group: true });
	}, timeout * 1000);
	return new Promise((resolve) => {
		// The end of the pipes counts, not that of the program: a child in the background holds it up.
		child.on('close', (code, signal) => {
			clearTimeout(timer);
			const result = Buffer.concat(said).toString();
			resolve(late ? undefined : { exitCode: signal ? -1 : code, result });
		});
	});
}

const late = () => fail(408, 'command execution timeout', 'PROCESS_EXECUTION_TIMEOUT');

/** The text goes to a shell on its standard input, both streams into one. */
async function execute(box, ask) {
	if (typeof ask.command !== 'string' || !ask.command) return fail(400, 'command is required');
	if (ask.timeout !== undefined && !(Number.isInteger(ask.timeout) && ask.timeout >= 0)) return fail(400, 'bad timeout');
	const done = await run(box, ['sh', '-c', 'exec bash 2>&1'], { ...ask, input: ask.command });
	return done ? { status: 200, body: done } : late();
}

const languages = { python: ['/usr/bin/python3', '-'], javascript: [process.execPath, '-'] };

async function codeRun(box, ask) {
	const argv = languages[ask.language];
	if (!argv) return fail(400, 'unsupported language');
	const done = await run(box, [...argv, ...(ask.argv ?? [])], { ...ask, input: ask.code });
	return done ? { status: 200, body: { ...done, artifacts: { charts: [] } } } : late();
}

// ---- files ---------------------------------------------------------------------------------------

const noFile = (name) => fail(404, `file not found: ${name}`, 'FILE_NOT_FOUND');

function upload(req, box) {
	const parts = readParts(req.body, req.headers['content-type']);
	if (!parts) return fail(400, 'not a multipart body');
	const paths = {};
	const files = [];
	const errors = [];
	for (const part of parts) {
		const [, at, what] = /^files\[(\d+)\]\.(path|file)$/.exec(part.name ?? '') ?? [];
		if (what === 'path') paths[at] = part.data.toString();
		if (what !== 'file') continue;
		const file = paths[at] !== undefined && box.guest.file(paths[at]);
		if (!file) {
			errors.push(paths[at] === undefined ? `files[${at}].path must come first` : `permission denied: ${paths[at]}`);
			continue;
		}
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, part.data);
		files.push({ path: paths[at], bytes: part.data.length });
	}
	return errors.length ? { status: 400, body: { errors, files } } : { status: 200, body: { files } };
}

const visible = (box, name) => {
	const file = box.guest.file(name) ?? path.posix.resolve(HOME, name);
	return { file, stat: fs.statSync(file, { throwIfNoEntry: false }) };
};

function bulkDownload(box, { paths }) {
	const parts = paths.map((name) => {
		const { file, stat } = visible(box, name);
		if (stat?.isFile()) return { name: 'file', filename: name, type: 'application/octet-stream', data: fs.readFileSync(file) };
		return { name: 'error', filename: name, type: 'application/json', data: Buffer.from(JSON.stringify(noFile(name).body)) };
	});
	return { status: 200, headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` }, body: writeParts(parts) };
}

const told = (name, stat) => ({ name, size: stat.size, mode: stat.isDirectory() ? 'drwxr-xr-x' : '-rw-r--r--',
	modTime: stat.mtime.toISOString(), modifiedAt: stat.mtime.toISOString(), isDir: stat.isDirectory(), owner: 'daytona',
	group: 'daytona', permissions: (stat.mode & 0o777).toString(8).padStart(4, '0') });

const fileRoutes = {
	'POST bulk-upload': (req, box) => upload(req, box),
	'POST upload-v2': (req, box, name) => {
		const part = readParts(req.body, req.headers['content-type'])?.find((p) => p.name === 'file');
		const file = box.guest.file(name);
		if (!part || !file) return fail(400, 'no file, or no place for it');
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, part.data);
		return { status: 200, body: { path: name, bytes: part.data.length } };
	},
	'POST bulk-download': (req, box) => bulkDownload(box, JSON.parse(req.body)),
	'GET download': (req, box, name) => {
		const { file, stat } = visible(box, name);
		return stat?.isFile() ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: fs.readFileSync(file) } : noFile(name);
	},
	'GET info': (req, box, name) => {
		const { stat } = visible(box, name);
		return stat ? { status: 200, body: told(path.basename(name), stat) } : noFile(name);
	},
	'GET ': (req, box, name) => {
		const { file, stat } = visible(box, name || HOME);
		if (!stat?.isDirectory()) return noFile(name);
		return { status: 200, body: fs.readdirSync(file).map((n) => told(n, fs.lstatSync(path.join(file, n)))) };
	},
	'POST folder': (req, box, name) => {
		if (!req.query.get('mode')) return fail(400, 'mode is required');
		fs.mkdirSync(box.guest.file(name), { recursive: true });
		return { status: 201, body: '' };
	},
	'POST move': (req, box) => {
		const from = visible(box, req.query.get('source'));
		if (!from.stat) return noFile(req.query.get('source'));
		fs.renameSync(from.file, box.guest.file(req.query.get('destination')));
		return { status: 200, body: '' };
	},
	'DELETE ': (req, box, name) => {
		const { file, stat } = visible(box, name);
		if (!stat) return noFile(name);
		if (stat.isDirectory() && req.query.get('recursive') !== 'true') return fail(400, 'cannot delete directory without recursive flag');
		fs.rmSync(file, { recursive: true });
		return { status: 204, body: '' };
	},
};

/** A request to /toolbox/ID/...; rest is the path behind the id. */
export async function toolbox(req, box, rest) {
	const [area, what = '', ...more] = rest;
	if (area === 'work-dir' || area === 'user-home-dir') return { status: 200, body: { dir: HOME } };
	if (area === 'files') {
		const route = fileRoutes[`${req.method} ${what}`];
		return route ? route(req, box, req.query.get('path') ?? '') : fail(404, 'no such path', 'NOT_FOUND');
	}
	if (area !== 'process') return fail(404, 'no such path', 'NOT_FOUND');
	if (what === 'execute') return execute(box, JSON.parse(req.body));
	if (what === 'code-run') return codeRun(box, JSON.parse(req.body));
	if (what === 'session') return sessions(req, box, more, fail);
	if (what === 'pty') return ptys(req, box, more, fail);
	if (what === 'interpreter') return contexts(req, box, more, fail);
	return fail(404, 'no such path', 'NOT_FOUND');
}
