// Requests that no client library sends, byte by byte through TLS (raw.json): each is answered with one
// of the expected states or closed, and the server goes on answering others meanwhile.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';

import { port } from './instance.mjs';
import { seen } from './judge.mjs';
import { send, sendBytes } from './send.mjs';
import { bytes } from './values.mjs';

const cases = JSON.parse(readFileSync(new URL('raw.json', import.meta.url)));

// A piece is text, or a list of texts and [text, times].
function piece(value) {
	const text = [value].flat(1).map((part) => (Array.isArray(part) ? part[0].repeat(part[1]) : part)).join('');
	return bytes(text.replaceAll('Host: localhost\r\n', `Host: localhost:${port}\r\n`)
		.replaceAll('https://localhost/', `https://localhost:${port}/`));
}

const statesOf = (got) => [...got.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map((m) => Number(m[1]));

function check(entry, got) {
	const states = statesOf(got);
	assert.ok(!states.some((s) => s >= 500 && s !== 501 && s !== 505), got);
	if (entry.in_order)
		assert.deepEqual(states, entry.status, got);
	else if (entry.status && (states.length > 0 || !entry.closed))
		assert.ok(entry.status.includes(states[0]), `${JSON.stringify(states)}: ${got.slice(0, 600)}`);
	if (entry.answers)
		assert.equal(states.length, entry.answers, got);
	for (const part of got.split(/(?=HTTP\/1)/).filter((p) => /^HTTP\/1\.1 [45]/.test(p)))
		assert.match(part, /^Content-Type: application\/problem\+json/mi, got.slice(0, 600));
}

const isRefusal = (entry) => Boolean(entry.hang || entry.closed) || entry.status.every((s) => s >= 400);

describe('raw', { concurrency: 16 }, () => {
	for (const entry of cases) {
		seen.cases++;
		seen.refusals += isRefusal(entry);
		test(entry.name, async () => {
			check(entry, await sendBytes(entry.send.map(piece), { hang: entry.hang && !entry.status }));
		});
	}
	after(async () => {
		const answer = await send({ method: 'GET', path: '/readyz' });
		assert.equal(answer.status, 200);
	});
});

// Half-open clients hold no worker: with more of them than threads would run, others are served.
test('200 clients that never finish their requests keep nobody waiting', async () => {
	const head = bytes(`POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{`);
	const stop = { now: false };
	const slow = Array.from({ length: 200 }, () => sendBytes([head], { until: () => stop.now }));
	for (let i = 0; i < 20; i++)
		assert.equal((await send({ method: 'POST', path: '/api/run/usage_and_upgrade' })).status, 200);
	for (const got of await Promise.all(slow))
		assert.ok(['', '408'].includes(statesOf(got).join()), got);
});
