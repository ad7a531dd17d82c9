// Holds the list of the JSON gate against a reader that is not ours: what we accept it must read, what
// we call broken it must refuse, and what we refuse by rules of our own it must read.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const lines = readFileSync(new URL('cases.txt', import.meta.url), 'utf8').split('\n');
const cases = lines.filter((line) => /^[ynx] /.test(line)).map((line) => {
	const [, verdict, name, text] = /^(.) (\S+) (.*)$/.exec(line);
	const bytes = [];
	for (let i = 0; i < text.length; i++) {
		if (text[i] === '%') {
			bytes.push(parseInt(text.slice(i + 1, i + 3), 16));
			i += 2;
		} else {
			bytes.push(text.charCodeAt(i));
		}
	}
	return { verdict, name, bytes: Uint8Array.from(bytes) };
});

function reads(bytes) {
	try {
		JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
		return true;
	} catch {
		return false;
	}
}

test('the list is whole and its names are unique', () => {
	assert.ok(cases.length >= 300);
	assert.equal(new Set(cases.map((c) => c.name)).size, cases.length);
});

test('another reader agrees with every verdict on the grammar', () => {
	const wrong = cases.filter((c) => reads(c.bytes) !== (c.verdict !== 'n')).map((c) => c.name);
	assert.deepEqual(wrong, []);
});
