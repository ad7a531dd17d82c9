// E2B, control plane and data plane on one address: the sandbox is named by the routing headers, or by the
// host name 49983-ID.DOMAIN.
//
//   const place = await start({ daemon: '0.6.13', onlyV1: false, domain: null });
//   place.plan            // { lifeS, concurrency, rate (calls a second), page (rows of a list) }
//   place.blocked         // why the team is blocked; undefined: it is not
//   place.templates       // Map of name -> what it stands for
//   place.chunk           // most bytes of one piece of output
//   place.twins           // so many further sandboxes are made by the next create
//   place.box(id)         // the sandbox itself (sandbox.mjs)

import { randomBytes } from 'node:crypto';
import { serve } from '../lib.mjs';
import { Control } from './control.mjs';
import { daemon } from './daemon.mjs';

const DAEMON_PORT = '49983';

/** { id, port } when a request is for a sandbox. */
function routed(req) {
	const host = /^(\d+)-([a-z0-9]+)\./.exec(req.headers.host ?? '');
	if (req.headers['e2b-sandbox-id'])
		return { id: req.headers['e2b-sandbox-id'], port: req.headers['e2b-sandbox-port'] ?? DAEMON_PORT };
	return host ? { port: host[1], id: host[2] } : undefined;
}

function opOf(req) {
	if (req.path === '/files') return req.method === 'POST' ? 'put' : 'get-file';
	if (req.path === '/process.Process/Start') return 'exec';
	if (routed(req)) return req.path.slice(1);
	const list = /^(\/v2)?\/sandboxes$/.test(req.path);
	if (list && req.method === 'POST') return 'create';
	if (list && req.query.get('limit') === '1') return 'check';
	if (list) return (req.query.get('metadata') ?? '').includes('mark=') ? 'find' : 'list';
	if (/^\/sandboxes\/[^/]+$/.test(req.path)) return req.method === 'DELETE' ? 'destroy' : 'look';
	return req.path.split('/').at(-1);
}

/** What the proxy in front of the sandboxes says when it can not pass a request on. */
function proxied(control, req) {
	const { id, port } = routed(req);
	const box = control.living(id);
	const say = (status, message) => ({ status, body: { sandboxId: id, message, port: Number(port), code: status } });
	if (!box) return say(502, 'The sandbox was not found');
	if (box.state !== 'running') return say(409, 'The sandbox is in transition');
	if (port !== DAEMON_PORT || box.deaf) return say(502, 'The sandbox is running but port is not open');
	return daemon(box, req, control.place);
}

export async function start(options = {}) {
	const key = options.key ?? `e2b_${randomBytes(20).toString('hex')}`;
	let control;
	const place = await serve({
		op: opOf,
		answer: (req) => routed(req) ? proxied(control, req) : control.answer(req),
	});
	const halt = place.stop.bind(place);
	control = new Control(place, { key, daemon: '0.6.13', onlyV1: false, domain: null, ...options });
	return Object.assign(place, {
		base: place.url,
		key,
		credential: { token: key },
		plan: control.plan,
		templates: control.templates,
		chunk: 32768,
		twins: 0,
		boxes: () => control.boxes(),
		box: (id) => control.all.get(id),
		stop: async () => {
			control.stop();
			await halt();
		},
	});
}
