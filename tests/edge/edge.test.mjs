// What nginx does by itself in front of the connector: sizes, hosts, its own errors, limits, and that
// nothing of a request or an answer ever lies in a file.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readFileSync, readdirSync, realpathSync } from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import tls from 'node:tls';

const dev = JSON.parse(readFileSync(process.env.CC_DEV_JSON));
const { port } = new URL(dev.url);
const ca = readFileSync(dev.ca);
const state = dirname(dirname(realpathSync(dev.ca)));
const MIB = 1 << 20;

function service(verb, name) {
	return execFileSync(process.env.CC_INSTANCE, [verb, name], { encoding: 'utf8' });
}

function http1(path, { method = 'GET', body, chunked = false, headers = {}, host = 'localhost', agent } = {}) {
	return new Promise((resolve, reject) => {
		const all = { ...headers };
		if (body && !chunked)
			all['Content-Length'] = body.length;
		const request = https.request({ host, port, path, method, headers: all, ca, agent, servername: host.includes('.') || host.includes(':') ? '' : host }, (reply) => {
			const parts = [];
			reply.on('data', (part) => parts.push(part));
			reply.on('end', () => resolve({ status: reply.statusCode, headers: reply.headers,
				text: Buffer.concat(parts).toString() }));
		});
		request.on('error', reject);
		for (let at = 0; body && at < body.length; at += 65536)
			request.write(body.subarray(at, at + 65536));
		request.end();
	});
}

function h2(path, { method = 'GET', body, length = true, headers = {} } = {}) {
	return new Promise((resolve, reject) => {
		const session = http2.connect(`https://localhost:${port}`, { ca });
		session.on('error', reject);
		const all = { ':path': path, ':method': method, ...headers };
		if (body && length)
			all['content-length'] = body.length;
		const stream = session.request(all, { endStream: !body });
		let head;
		const parts = [];
		stream.on('response', (given) => { head = given; });
		stream.on('data', (part) => parts.push(part));
		stream.on('error', reject);
		stream.on('close', () => {
			session.close();
			resolve({ status: head?.[':status'], headers: head ?? {}, text: Buffer.concat(parts).toString() });
		});
		if (body)
			stream.end(body);
	});
}

// Sends bytes as they are and returns what comes back until the server closes.
function raw(bytes) {
	return new Promise((resolve, reject) => {
		const socket = tls.connect({ host: 'localhost', port, ca, servername: 'localhost' });
		const parts = [];
		socket.on('secureConnect', () => socket.write(bytes));
		socket.on('data', (part) => parts.push(part));
		socket.on('error', reject);
		socket.on('close', () => resolve(Buffer.concat(parts).toString()));
	});
}

function isProblem(reply, status, code) {
	assert.equal(reply.status, status, reply.text);
	assert.match(reply.headers['content-type'], /^application\/problem\+json/);
	const problem = JSON.parse(reply.text);
	assert.equal(problem.status, status);
	assert.equal(problem.code, code);
	assert.equal(typeof problem.title, 'string');
	return problem;
}

// nginx can not write into these any more: a request that wanted a file would fail.
const temp = join(state, 'nginx', 'temp');
before(() => { for (const name of readdirSync(temp)) chmodSync(join(temp, name), 0); });
after(() => { for (const name of readdirSync(temp)) chmodSync(join(temp, name), 0o700); });

const JSON_TYPE = { 'Content-Type': 'application/json' };
const kinds = {
	'HTTP/1.1 with a length': (path, body) => http1(path, { method: 'POST', body, headers: JSON_TYPE }),
	'HTTP/1.1 in chunks': (path, body) => http1(path, { method: 'POST', body, chunked: true, headers: JSON_TYPE }),
	'HTTP/2 with a length': (path, body) => h2(path, { method: 'POST', body, headers: JSON_TYPE }),
	'HTTP/2 without a length': (path, body) => h2(path, { method: 'POST', body, length: false, headers: JSON_TYPE }),
};
for (const [name, send] of Object.entries(kinds)) {
	for (const path of ['/mcp', '/api/run/check_memory']) {
		test(`${name}: a body of 4 MiB reaches ${path} through memory`, async () => {
			const reply = await send(path, Buffer.alloc(4 * MIB, 'x'));
			assert.equal(reply.status, 400, reply.text);
		});
		test(`${name}: one byte more on ${path} is 413`, async () => {
			isProblem(await send(path, Buffer.alloc(4 * MIB + 1, 'x')), 413, 'too_large');
		});
	}
	test(`${name}: elsewhere 8193 bytes are 413`, async () => {
		isProblem(await send('/api/key', Buffer.alloc(8193, 'x')), 413, 'too_large');
		isProblem(await send('//mcp', Buffer.alloc(8193, 'x')), 413, 'too_large');
	});
}

test('a host that is not ours is 421, over both protocols', async () => {
	for (const Host of ['evil.example', 'localhost.evil.example', '10.0.0.1', `evil.example:${port}`])
		isProblem(await http1('/healthz', { headers: { Host } }), 421, 'bad_request');
	isProblem(await h2('/healthz', { headers: { ':authority': 'evil.example' } }), 421, 'bad_request');
	isProblem(await http1('/mcp', { method: 'POST', body: Buffer.alloc(5 * MIB), headers: { Host: 'evil.example' } }),
		413, 'too_large');
});

test('localhost, 127.0.0.1 and ::1 are ours', async () => {
	for (const host of ['localhost', '127.0.0.1', '::1'])
		assert.equal((await http1('/healthz', { host })).status, 200);
});

test('what can not be read is answered in JSON', async () => {
	for (const [bytes, status] of [
		['GET / HTTP/1.1\r\nbroken\r\n\r\n', 400],
		['GET / HTTP/1.1\r\n\r\n', 400],
		['GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', 400],
		['POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
		['POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n', 400],
		['POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
		[`GET /${'a'.repeat(9000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 414],
		[`GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'a'.repeat(9000)}\r\n\r\n`, 431],
		['TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
		['POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n', 501],
		['GET / HTTP/2.0\r\nHost: localhost\r\nConnection: close\r\n\r\n', 505],
		['CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 400],
	]) {
		const reply = await raw(bytes);
		assert.match(reply, new RegExp(`^HTTP/1.1 ${status} `), bytes.slice(0, 60));
		assert.match(reply, /content-type: application\/problem\+json/i);
		assert.doesNotMatch(reply, /<html/);
		const problem = JSON.parse(reply.slice(reply.indexOf('\r\n\r\n') + 4));
		assert.equal(problem.status, status);
		assert.ok(problem.code && problem.title && problem.request_id, reply);
	}
});

test('every error that nginx can answer by itself has a page of ours', () => {
	const text = readFileSync(join(import.meta.dirname, '../../nginx/errors.conf'), 'utf8');
	const mapped = [...text.matchAll(/^error_page ([\d ]+) =(\d+) \/\.error\/(\d+);/gm)];
	const from = mapped.flatMap(([, codes]) => codes.trim().split(' ').map(Number));
	for (const code of [400, 403, 404, 405, 408, 413, 414, 421, 429, 494, 495, 496, 497, 500, 501, 502, 503, 504, 505])
		assert.ok(from.includes(code), `no page for ${code}`);
	for (const [line, , status, page] of mapped) {
		assert.equal(status, page, line);
		const [, given, body] = new RegExp(`location = /\\.error/${page} {[^}]*?return (\\d+) '(.*?)\\\\n';`, 's').exec(text);
		assert.equal(given, status);
		assert.equal(JSON.parse(body).status, Number(status));
	}
});

test('unknown addresses and well-known documents are 404, whatever is asked', async () => {
	for (const path of ['/nothing', '/api', '/api/', '/api/nothing', '/mcp/', '/mcp/.well-known/openid-configuration', '/register',
		'/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp',
		'/.well-known/oauth-authorization-server', '/.well-known/oauth-authorization-server/mcp',
		'/.well-known/openid-configuration', '/.well-known/openid-configuration/mcp', '/.well-known/mcp.json',
		'/favicon.ico', '/robots.txt', '/index.html', '/openapi.yaml'])
		for (const method of ['GET', 'POST', 'HEAD']) {
			const reply = await http1(path, { method });
			if (method !== 'HEAD')
				isProblem(reply, 404, 'not_found');
			assert.equal(reply.status, 404, `${method} ${path}`);
			assert.equal(reply.headers['www-authenticate'], undefined);
			if (method === 'HEAD')
				assert.equal(reply.text, '');
		}
});

test('HEAD is GET without the body, with its length and tag', async () => {
	for (const path of ['/', '/openapi.json', '/llms.txt']) {
		const [get, head] = [await http1(path), await http1(path, { method: 'HEAD' })];
		assert.equal(head.status, 200);
		assert.equal(head.text, '');
		for (const name of ['content-length', 'content-type', 'etag', 'cache-control'])
			assert.equal(head.headers[name], get.headers[name], `${name} of ${path}`);
		assert.equal(Number(get.headers['content-length']), Buffer.byteLength(get.text));
		const again = await http1(path, { headers: { 'If-None-Match': get.headers.etag } });
		assert.equal(again.status, 304);
		assert.equal(again.text, '');
	}
});

test('large answers are whole, also behind callers who leave in the middle of one', async () => {
	const whole = (await http1('/openapi.json')).text;
	assert.ok(whole.length > 2 * 65536, 'longer than two records of FastCGI');
	const leave = () => new Promise((resolve, reject) => {
		const socket = tls.connect({ host: 'localhost', port, ca, servername: 'localhost' });
		socket.on('secureConnect', () => socket.write('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'));
		socket.once('data', () => { socket.destroy(); resolve(); });
		socket.on('error', reject);
	});
	const replies = [];
	for (let i = 0; i < 5; i++)
		replies.push(...await Promise.all([leave(), http1('/openapi.json'), leave(), h2('/openapi.json')]));
	for (const reply of replies.filter(Boolean))
		assert.equal(reply.text, whole);
});

test('OPTIONS tells what an address takes, which is what it takes', async () => {
	for (const [path, allowed] of [['/mcp', 'POST, OPTIONS'], ['/openapi.json', 'GET, HEAD, OPTIONS'],
		['/api/run/run_job', 'POST, OPTIONS'], ['/api/account', 'DELETE, GET, OPTIONS, PATCH']]) {
		const reply = await http1(path, { method: 'OPTIONS' });
		assert.equal(reply.status, 204, path);
		assert.deepEqual(reply.headers.allow.split(', ').sort(), allowed.split(', ').sort(), path);
		assert.equal(reply.headers['access-control-allow-origin'], undefined, 'nobody asked from a page');
	}
	isProblem(await http1('/nothing', { method: 'OPTIONS' }), 404, 'not_found');
});

test('plain HTTP on the TLS port is refused in JSON', async () => {
	const reply = await fetch(`http://127.0.0.1:${port}/healthz`);
	assert.equal(reply.status, 400);
	assert.match(reply.headers.get('content-type'), /^application\/problem\+json/);
});

test('old TLS is refused', async () => {
	await assert.rejects(new Promise((resolve, reject) => {
		const socket = tls.connect({ host: 'localhost', port, ca, servername: 'localhost', minVersion: 'TLSv1',
			maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' }, resolve);
		socket.on('error', reject);
	}));
});

test('every answer has the security headers once and hides the version of nginx', async () => {
	for (const reply of [await http1('/healthz'), await http1('/'), await h2('/no-such-page'),
		await http1('/mcp', { method: 'POST', body: Buffer.alloc(4 * MIB + 1) })]) {
		assert.equal(reply.headers['x-content-type-options'], 'nosniff');
		assert.equal(reply.headers['x-frame-options'], 'DENY');
		assert.equal(reply.headers['referrer-policy'], 'no-referrer');
		assert.match(reply.headers['content-security-policy'], /^default-src 'none'/);
		assert.match(reply.headers['x-request-id'], /^(req_[a-z2-7]{26}|[0-9a-f]{32})$/);
		assert.equal(reply.headers.server, 'nginx');
	}
});

test('the pages of nginx itself can not be asked for', async () => {
	isProblem(await http1('/.error/503'), 404, 'not_found');
});

test('the access log knows paths, not query strings or keys', async () => {
	await http1('/healthz?canary=query-canary', { headers: { Authorization: 'Bearer header-canary' } });
	const log = readFileSync(join(state, 'log', 'nginx.access.log'), 'utf8');
	assert.ok(log.includes('"path":"/healthz"'));
	assert.ok(!log.includes('canary'));
});

test('without a connector the answer is 503 with Retry-After, and it comes back', async () => {
	service('stop', 'connector');
	const reply = await http1('/healthz');
	isProblem(reply, 503, 'busy');
	assert.equal(reply.headers['retry-after'], '2');
	service('start', 'connector');
	let status;
	for (let i = 0; i < 200 && status !== 200; i++)
		({ status } = await http1('/healthz'));
	assert.equal(status, 200);
});

test('the limit of requests bites, for one address and not for the other', async () => {
	const agent = new https.Agent({ keepAlive: true, maxSockets: 40 });
	const replies = await Promise.all(Array.from({ length: 600 },
		() => http1('/healthz', { host: '127.0.0.1', agent })));
	agent.destroy();
	const limited = replies.filter(({ status }) => status === 429);
	assert.ok(limited.length > 0, 'nothing was limited');
	assert.ok(replies.length - limited.length >= 200, 'less than the burst was let through');
	isProblem(limited[0], 429, 'rate_limited');
	assert.equal(limited[0].headers['retry-after'], '1');
	assert.equal((await http1('/healthz', { host: '::1' })).status, 200);
});

test('no temp file was wanted', () => {
	const log = readFileSync(join(state, 'log', 'nginx.error.log'), 'utf8');
	assert.deepEqual(log.split('\n').filter((line) => /temporary file|Permission denied/.test(line)), []);
});
