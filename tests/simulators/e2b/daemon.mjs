// What listens in a sandbox: health, files (files.mjs), processes (processes.mjs).

import { Failed, unframe } from './frames.mjs';
import { files, filesystem } from './files.mjs';
import { processes, streams } from './processes.mjs';

const unary = { ...processes, ...filesystem };

async function call(box, req) {
	try {
		const message = req.body.length ? JSON.parse(req.body) : {};
		return { status: 200, body: await unary[req.path](box, message) };
	} catch (error) {
		if (error instanceof Failed) return error.answer;
		return new Failed('invalid_argument', 'the message can not be read').answer;
	}
}

/** The status is 200 whatever happens: what went wrong stands in the last frame. */
function stream(box, req, place) {
	const headers = { 'content-type': 'application/connect+json' };
	const failed = (error) => ({ status: 200, headers, stream: async (write) => write(error.last) });
	const message = unframe(req.body);
	if (!message) return failed(new Failed('invalid_argument', 'one frame is needed'));
	const options = { chunk: place.chunk, gone: req.gone,
		deadlineMs: Number(req.headers['connect-timeout-ms'] ?? 0),
		keepaliveS: Number(req.headers['keepalive-ping-interval'] ?? 90) };
	return { status: 200, headers, stream: (write) => streams[req.path](box, message, options, write) };
}

export function daemon(box, req, place) {
	if (req.path === '/health') return { status: 204 };
	if (box.token && req.headers['x-access-token'] !== box.token) {
		const message = 'unauthorized access, please provide a valid access token';
		const code = req.path.startsWith('/files') ? 401 : 'unauthenticated';
		return { status: 401, body: { code, message } };
	}
	if (req.path === '/files') return files(box, req);
	if (req.method !== 'POST') return { status: 405 };
	if (streams[req.path]) return stream(box, req, place);
	if (unary[req.path]) return call(box, req);
	return new Failed('unimplemented', 'there is no such procedure').answer;
}
