// The small language of the case files: large values, bytes that are no text, names of the run, and
// patterns for what is expected.
import assert from 'node:assert/strict';

// {"$repeat": [text, n]}, {"$list": [element, n]}, {"$map": [name, value, n]}: {i} becomes the number.
// {"$join": [part, ...]}, {"$base64": value}, {"$json": value}.
const makers = {
	$repeat: ([text, n]) => text.repeat(n),
	$list: ([element, n]) => Array.from({ length: n }, (_, i) => numbered(element, i)),
	$map: ([name, value, n]) => Object.fromEntries(Array.from({ length: n },
		(_, i) => [numbered(name, i), numbered(value, i)])),
	$join: (parts) => parts.join(''),
	$base64: (text) => Buffer.from(text).toString('base64'),
	$json: (value) => JSON.stringify(value),
};

function numbered(value, i) {
	return JSON.parse(JSON.stringify(value).replaceAll('{i}', String(i)));
}

function named(text, names) {
	return text.replace(/\$\{(\w+)\}/g, (_, name) => {
		assert.ok(name in names, `no value is called ${name}`);
		return names[name];
	});
}

export function expand(value, names = {}) {
	if (typeof value === 'string')
		return named(value, names);
	if (Array.isArray(value))
		return value.map((part) => expand(part, names));
	if (value === null || typeof value !== 'object')
		return value;
	const [key] = Object.keys(value);
	if (key in makers)
		return makers[key](expand(value[key], names));
	return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, expand(part, names)]));
}

// Text in which \xNN stands for one byte, as bytes.
export function bytes(text) {
	return Buffer.concat(text.split(/(\\x[0-9a-f]{2})/).map((part) =>
		(/^\\x[0-9a-f]{2}$/.test(part) ? Buffer.from(part.slice(2), 'hex') : Buffer.from(part))));
}

// Expected values: "~..." is a regular expression, "#" an integer, "*" anything, null absent, an object
// some of the members, a list all elements, everything else itself.
export function fits(got, want, where = 'answer') {
	if (want === '*')
		return assert.notEqual(got, undefined, `${where} is absent`);
	if (want === '#')
		return assert.ok(Number.isInteger(got), `${where} is ${JSON.stringify(got)}, not an integer`);
	if (want === null)
		return assert.equal(got, undefined, `${where} is there`);
	if (typeof want === 'string' && want.startsWith('~'))
		return assert.match(String(got), new RegExp(want.slice(1), 's'), where);
	if (Array.isArray(want)) {
		assert.ok(Array.isArray(got), `${where} is no list`);
		assert.equal(got.length, want.length, `${where}: length`);
		return want.forEach((part, i) => fits(got[i], part, `${where}[${i}]`));
	}
	if (typeof want !== 'object')
		return assert.deepEqual(got, want, where);
	assert.ok(got !== null && typeof got === 'object', `${where} is ${JSON.stringify(got)}`);
	for (const [name, part] of Object.entries(want))
		fits(got[name], part, `${where}.${name}`);
}
