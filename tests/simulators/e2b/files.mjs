// Files of a sandbox: bytes over plain HTTP, everything else by call.

import fs from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { Failed } from './frames.mjs';

const RAW_SINCE = [0, 5, 7]; // the first daemon that takes a file as the body itself

const wrong = (status, message) => ({ status, body: { code: status, message } });

const inside = (box, name) => path.posix.resolve(box.guest.home, name ?? '');

function older(version, than) {
	const parts = version.split('.').map(Number);
	const at = parts.findIndex((part, i) => part !== than[i]);
	return at >= 0 && parts[at] < than[at];
}

function read(box, req) {
	const name = inside(box, req.query.get('path'));
	const file = box.guest.file(name);
	const stat = file && fs.statSync(file, { throwIfNoEntry: false });
	if (!stat) return wrong(404, `path '${name}' does not exist`);
	if (stat.isDirectory()) return wrong(400, `path '${name}' is a directory`);
	return { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: fs.readFileSync(file) };
}

/** [path, bytes] of everything that a request brings. */
async function brought(box, req) {
	const bytes = req.headers['content-encoding'] === 'gzip' ? gunzipSync(req.body) : req.body;
	const type = req.headers['content-type'] ?? '';
	const given = req.query.get('path');
	if (type.startsWith('application/octet-stream') && !older(box.daemon, RAW_SINCE)) return [[given, bytes]];
	const form = await new Response(bytes, { headers: { 'content-type': type } }).formData();
	return Promise.all(form.getAll('file').map(async (file) =>
		[given ?? file.name, Buffer.from(await file.arrayBuffer())]));
}

async function write(box, req) {
	let all;
	try {
		all = await brought(box, req);
	} catch {
		return wrong(500, 'error parsing multipart form');
	}
	const names = all.map(([name]) => inside(box, name));
	if (new Set(names).size !== names.length) return wrong(400, 'the same path twice');
	if (box.full) return wrong(507, 'not enough disk space available');
	const files = names.map((name) => box.guest.file(name));
	if (files.includes(undefined)) return wrong(500, 'error opening file: permission denied');
	files.forEach((file, i) => {
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, all[i][1]);
	});
	return { status: 200, body: names.map((name) => ({ path: name, name: path.basename(name), type: 'file' })) };
}

export const files = (box, req) => req.method === 'POST' ? write(box, req) : read(box, req);

function entry(box, name) {
	const file = box.guest.file(name);
	const stat = file && fs.lstatSync(file, { throwIfNoEntry: false });
	if (!stat) throw new Failed('not_found', `file not found: ${name}`);
	const type = stat.isDirectory() ? 'DIRECTORY' : stat.isSymbolicLink() ? 'SYMLINK' : 'FILE';
	return { name: path.basename(name), type: `FILE_TYPE_${type}`, path: name, size: String(stat.size),
		mode: stat.mode & 0o777, permissions: '-rw-r--r--', owner: 'user', group: 'user',
		modifiedTime: stat.mtime.toISOString() };
}

function tree(box, name, depth) {
	return fs.readdirSync(box.guest.file(name)).sort().flatMap((child) => {
		const one = entry(box, path.posix.join(name, child));
		const below = depth > 1 && one.type === 'FILE_TYPE_DIRECTORY' ? tree(box, one.path, depth - 1) : [];
		return [one, ...below];
	});
}

const place = (box, name) => {
	const file = box.guest.file(inside(box, name));
	if (!file) throw new Failed('permission_denied', 'not in the folders of the sandbox');
	return file;
};

export const filesystem = {
	'/filesystem.Filesystem/Stat': (box, message) => ({ entry: entry(box, inside(box, message.path)) }),
	'/filesystem.Filesystem/ListDir': (box, message) => {
		const name = inside(box, message.path);
		if (entry(box, name).type !== 'FILE_TYPE_DIRECTORY') throw new Failed('invalid_argument', 'not a directory');
		return { entries: tree(box, name, message.depth || 1) };
	},
	'/filesystem.Filesystem/MakeDir': (box, message) => {
		const file = place(box, message.path);
		if (fs.existsSync(file)) throw new Failed('already_exists', 'it exists');
		fs.mkdirSync(file, { recursive: true });
		return { entry: entry(box, inside(box, message.path)) };
	},
	'/filesystem.Filesystem/Remove': (box, message) => {
		fs.rmSync(place(box, message.path), { recursive: true, force: true });
		return {};
	},
	'/filesystem.Filesystem/Move': (box, message) => {
		entry(box, inside(box, message.source));
		fs.renameSync(place(box, message.source), place(box, message.destination));
		return { entry: entry(box, inside(box, message.destination)) };
	},
};
