// The other side of test_http.c: a server that answers well, badly, late or not at all.
//
// usage: node http_server.mjs DIR
// Makes certificates and a unix socket in DIR, prints one line of ports, ends with its standard
// input. The path of a request chooses the behaviour; /seen/... and /accepts are the witnesses.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import { join } from 'node:path';
import tls from 'node:tls';

const dir = process.argv[2];
const LATE_MS = 6000;
const seen = new Map();
const accepts = { plain: 0, tls: 0, h2: 0, unix: 0, proxy: 0 };

function openssl(...args) {
	execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'ignore', 'ignore'] });
}

function makeAuthority(name) {
	openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
		'-keyout', `${name}.key`, '-out', `${name}.pem`, '-days', '2', '-subj', `/CN=${name}`);
}

function makeCertificate(name, authority, names) {
	writeFileSync(join(dir, `${name}.ext`), `subjectAltName=${names}\n`);
	openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
		'-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
	openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${authority}.pem`, '-CAkey',
		`${authority}.key`, '-CAcreateserial', '-days', '2', '-out', `${name}.pem`,
		'-extfile', `${name}.ext`);
	const read = (kind) => readFileSync(join(dir, `${name}.${kind}`));
	return { key: read('key'), cert: read('pem') };
}

function reply(socket, body, head = '', status = '200 OK') {
	socket.write(`HTTP/1.1 ${status}\r\n${head}Content-Length: ${body.length}\r\n\r\n${body}`);
}

const chunk = '10000\r\n' + 'x'.repeat(65536) + '\r\n';
function pour(socket) {
	while (!socket.destroyed && socket.write(chunk));
	if (!socket.destroyed) socket.once('drain', () => pour(socket));
}

// One entry per behaviour: what happens once the whole request was read.
const behaviours = {
	'/echo': (s, r) => reply(s, JSON.stringify({ method: r.method, path: r.path, head: r.head,
		body: r.body.toString('latin1') }), 'Content-Type: application/json\r\n'),
	'/accepts': (s) => reply(s, Object.values(accepts).join(' ')),
	'/type': (s) => reply(s, '{}', 'Content-Type: Application/Problem+JSON; charset="x"\r\n' +
		'X-Kept:   some value  \r\nRetry-After: 7\r\n', '429 Slow down'),
	'/bare': (s) => reply(s, ''),
	'/slow-reader': (s, r) => reply(s, String(r.body.length)),
	'/none': (s) => s.write('HTTP/1.1 204 No Content\r\n\r\n'),
	'/nul': (s) => reply(s, 'a\0b'),
	'/redirect': (s) => reply(s, 'gone', 'Location: /echo\r\n', '302 Found'),
	'/hints': (s) => { s.write('HTTP/1.1 103 Early Hints\r\nX-Kept: early\r\n\r\n'); reply(s, 'late'); },
	'/hints-cut': (s) => s.end('HTTP/1.1 103 Early Hints\r\nX-Kept: early\r\n\r\n'),
	'/cut': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n0123456789'),
	'/cut-head': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Type: te'),
	'/cut-line': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n'),
	'/cut-chunk': (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc'),
	'/cut-last-chunk': (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n'),
	'/reset': (s) => s.resetAndDestroy(),
	'/close': (s) => s.end(),
	'/garbage': (s) => s.end('this is no reply\r\n\r\n'),
	'/silent': () => {},
	'/stall': (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n01234'),
	'/large-said': (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n'),
	'/large': (s) => reply(s, 'x'.repeat(1001)),
	'/just-fits': (s) => reply(s, 'x'.repeat(1000)),
	'/endless': (s) => { s.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'); pour(s); },
	'/headers': (s) => reply(s, 'x', Array.from({ length: 900 },
		(_, i) => `X-H${i}: ${'y'.repeat(80)}\r\n`).join('')),
	'/header': (s) => reply(s, 'x', `X-H: ${'y'.repeat(70000)}\r\n`),
	// Well on a fresh connection; on a kept one the request is read and the connection dropped.
	'/drop-kept': (s, r) => (r.number === 1 ? reply(s, 'fresh') : s.resetAndDestroy()),
	'/close-kept': (s, r) => (r.number === 1 ? reply(s, 'fresh') : s.end()),
};

function answer(socket, request) {
	const path = request.path.split('?')[0];
	if (path.startsWith('/seen'))
		return reply(socket, String(seen.get(path.slice(5)) ?? 0));
	seen.set(path, (seen.get(path) ?? 0) + 1);
	const behaviour = behaviours[path];
	return behaviour ? behaviour(socket, request) : reply(socket, '', '', '404 Not Found');
}

// A body for /slow-reader is read slowly for its first twelve megabytes: more than the kernel's
// buffers take off the sender.
function rest(socket, size) {
	if (size > 12 << 20) return;
	socket.pause();
	setTimeout(() => socket.resume(), 30);
}

function serve(kind) {
	return (socket) => {
		let parts = [];
		let size = 0;
		let need = 0;
		let slow = false;
		let number = 0;
		accepts[kind]++;
		socket.on('error', () => {});
		socket.on('data', (data) => {
			parts.push(data);
			size += data.length;
			if (size < need) return slow && rest(socket, size);
			const have = Buffer.concat(parts);
			parts = [have];
			const end = have.indexOf('\r\n\r\n');
			if (end < 0) return;
			const head = have.subarray(0, end).toString('latin1').split('\r\n');
			const length = Number(head.find((l) => /^content-length:/i.test(l))?.slice(15) ?? 0);
			const [method, path] = head[0].split(' ');
			need = end + 4 + length;
			slow = path === '/slow-reader';
			if (size < need) return;
			parts = [have.subarray(need)];
			size -= need;
			const body = have.subarray(end + 4, need);
			need = 0;
			answer(socket, { method, path, head: head.slice(1), body, number: ++number });
		});
	};
}

function listen(server, where = { port: 0, host: '127.0.0.1' }) {
	return new Promise((done) => server.listen(where, () => done(server.address().port)));
}

makeAuthority('ca');
makeAuthority('other');
makeAuthority('third');
const good = makeCertificate('good', 'ca', 'DNS:localhost,IP:127.0.0.1');
const misnamed = makeCertificate('misnamed', 'ca', 'DNS:elsewhere.example');
writeFileSync(join(dir, 'empty.pem'), 'nothing in here\n');
writeFileSync(join(dir, 'broken.pem'), readFileSync(join(dir, 'ca.pem'), 'latin1') +
	'-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');

function replyH2(request, response) {
	if (request.url === '/silent') return;
	if (request.url === '/reset') return request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
	if (request.url === '/later') return setTimeout(() => response.end('later'), 20);
	if (request.url.startsWith('/trailers')) {
		response.setTrailer('x-end', 'told');
		response.setHeader('x-kept', 'early');
		response.write('x'.repeat(100000));
		return setTimeout(() => response.end('!'), 20);
	}
	if (request.url === '/head-only')
		return setTimeout(() => response.writeHead(200, { 'x-end': 'at once' }).end(), 20);
	if (request.url === '/cut-trailers') {
		response.setTrailer('x-end', 'told');
		response.write('half');
		return setTimeout(() => request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR), 20);
	}
	response.setHeader('x-kept', request.httpVersion);
	response.end(request.url);
}

// Not before the request's last byte has come: a reply that ends earlier counts as a broken stream.
const h2 = http2.createSecureServer(good, (request, response) => {
	request.resume().on('end', () => replyH2(request, response));
});
h2.on('connection', () => accepts.h2++);
h2.on('sessionError', () => {});

const late = tls.createServer({ ...good, ALPNProtocols: ['http/1.1'] }, serve('tls')); // a crowd is before it
const closed = net.createServer();
const closedPort = await listen(closed);
await new Promise((done) => closed.close(done));

const ports = [
	await listen(net.createServer(serve('plain'))),
	await listen(tls.createServer({ ...good, ALPNProtocols: ['http/1.1'] }, serve('tls'))),
	await listen(tls.createServer(misnamed, serve('tls'))),
	await listen(h2),
	await listen(net.createServer(serve('proxy'))),
	await listen(net.createServer((raw) => setTimeout(() => late.emit('connection', raw), LATE_MS))),
	closedPort,
];
await listen(net.createServer(serve('unix')), { path: join(dir, 'web.sock') });
process.stdout.write(ports.join(' ') + '\n');
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
