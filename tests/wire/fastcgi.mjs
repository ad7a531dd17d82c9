// Requests as nginx would never hand them on, straight to the connector's socket.
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';

import { fcgiSocket } from './instance.mjs';
import { seen } from './judge.mjs';
import { send } from './send.mjs';

const [BEGIN, PARAMS, STDIN, STDOUT] = [1, 4, 5, 6];

function record(type, body = '', id = 1) {
	const bytes = Buffer.from(body);
	return Buffer.concat([Buffer.from([1, type, 0, id, bytes.length >> 8, bytes.length & 255, 0, 0]), bytes]);
}

const begin = record(BEGIN, Buffer.from([0, 1, 0, 0, 0, 0, 0, 0]));
const pair = (name, value) => Buffer.concat([Buffer.from([name.length, value.length]), Buffer.from(name + value)]);

function head(params) {
	const pairs = Object.entries({ REQUEST_METHOD: 'POST', DOCUMENT_URI: '/api/run/usage_and_upgrade', REMOTE_ADDR: '127.0.0.1',
		CONTENT_TYPE: 'application/json', ...params }).map(([name, value]) => pair(name, value));
	return Buffer.concat([begin, record(PARAMS, Buffer.concat(pairs)), record(PARAMS)]);
}

// What the connector wrote as the answer until it closed.
function ask(bytes) {
	return new Promise((resolve, reject) => {
		const socket = net.connect(fcgiSocket, () => socket.write(bytes));
		let got = Buffer.alloc(0), out = '';
		socket.on('data', (part) => { got = Buffer.concat([got, part]); });
		socket.on('error', (e) => (['ECONNRESET', 'EPIPE'].includes(e.code) ? undefined : reject(e)));
		socket.on('close', () => {
			while (got.length >= 8) {
				const length = got.readUInt16BE(4);
				if (got[1] === STDOUT)
					out += got.subarray(8, 8 + length);
				got = got.subarray(8 + length + got[6]);
			}
			resolve(out);
		});
	});
}

const cases = {
	'a whole request': [head({ CONTENT_LENGTH: '2' }), record(STDIN, '{}'), record(STDIN)],
	'a body that ends early': [head({ CONTENT_LENGTH: '100' }), record(STDIN, '{"a":'), record(STDIN)],
	'a body that is longer than it says': [head({ CONTENT_LENGTH: '2' }), record(STDIN, '{}{}{}{}'), record(STDIN)],
	'a length that is no number': [head({ CONTENT_LENGTH: 'x' }), record(STDIN)],
	'a length beyond the limit': [head({ CONTENT_LENGTH: '999999999' }), record(STDIN)],
	'a length beyond 64 bits': [head({ CONTENT_LENGTH: '99999999999999999999999' }), record(STDIN)],
	'no parameters at all': [begin, record(PARAMS), record(STDIN)],
	'a parameter longer than its record': [begin, record(PARAMS, Buffer.from([100, 100, 65])), record(PARAMS), record(STDIN)],
	'a parameter of 2 GiB': [begin, record(PARAMS, Buffer.from([255, 255, 255, 255, 255, 255, 255, 255])), record(PARAMS)],
	'parameters before the begin': [record(PARAMS), record(STDIN)],
	'another version of the protocol': [Buffer.from([9, 1, 0, 1, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])],
	'no FastCGI': [Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
};
const want = {
	'a whole request': /^Status: 200 /,
	'a body that ends early': /^Status: 499 .*"client_gone"/s,
	'a body that is longer than it says': /^Status: 200 /,
	'a length that is no number': /^Status: 200 /, // counts as none
	'a length beyond the limit': /^Status: 413 .*"too_large"/s,
	'a length beyond 64 bits': /^Status: 413 .*"too_large"/s,
	'no parameters at all': /^(Status: 200 .*<html|$)/s, // the start page, or closed
};

for (const [name, parts] of Object.entries(cases)) {
	seen.cases++;
	seen.refusals += !/200/.test(want[name] ?? '');
	test(`FastCGI: ${name}`, async () => {
		const out = await ask(Buffer.concat(parts));
		assert.match(out, want[name] ?? /^$/);
		const code = /"code":"(\w+)"/.exec(out)?.[1];
		if (code)
			seen.errors.set(code, (seen.errors.get(code) ?? 0) + 1);
		assert.equal((await send({ method: 'GET', path: '/healthz' })).status, 200);
	});
}
