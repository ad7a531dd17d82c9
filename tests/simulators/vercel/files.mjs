// The file calls of a session, done by programs in its machine, as its own user would.

import { badRequest, notFound } from './errors.mjs';

/** Runs a program to its end: { code, out, err }. */
function run(guest, argv, { input, cwd } = {}) {
	return new Promise((resolve, reject) => {
		const child = guest.spawn(argv, { cwd, stdin: 'pipe' });
		const out = [], err = [];
		child.stdout.on('data', (part) => out.push(part));
		child.stderr.on('data', (part) => err.push(part));
		child.stdin.on('error', () => {}); // it ended before it read everything: its code tells
		child.on('error', reject);
		child.on('close', (code) => resolve({ code, out: Buffer.concat(out), err: Buffer.concat(err).toString() }));
		child.stdin.end(input);
	});
}

/** body is the gzip of a tar archive, unpacked in the folder that the header names. */
export async function write(session, req) {
	if (req.headers['content-type'] !== 'application/gzip') throw badRequest('Expected application/gzip.');
	const dir = req.headers['x-cwd'] ?? session.cwd;
	const unpack = 'mkdir -p -- "$0" && exec tar -xzf - --no-same-owner -C "$0"';
	const { code, err } = await run(session.guest, ['sh', '-c', unpack, dir], { input: req.body });
	if (code !== 0) throw badRequest(`The archive could not be unpacked: ${err}`);
	return {};
}

export async function read(session, { path, cwd = session.cwd }) {
	if (typeof path !== 'string') throw badRequest('Invalid request: `path`.');
	const { code, out } = await run(session.guest, ['sh', '-c', 'test -f "$0" && exec cat -- "$0"', path], { cwd });
	if (code !== 0) throw notFound('File');
	return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: out };
}

export async function mkdir(session, { path, cwd = session.cwd, recursive = false }) {
	if (typeof path !== 'string') throw badRequest('Invalid request: `path`.');
	const { code, err } = await run(session.guest, ['mkdir', ...(recursive ? ['-p'] : []), '--', path], { cwd });
	if (code !== 0) throw badRequest(`The folder could not be made: ${err}`);
	return {};
}
