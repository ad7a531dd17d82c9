// Decoder, encoder and schema of a shape come from one table. Here a public validator judges the same
// documents by our schemas, and must agree: it accepts what the decoder accepts, and refuses what the
// decoder refuses, but for the two things a schema can not say (lengths in bytes; a check without a
// pattern). What the encoder writes must fit the schema of results.
import Ajv from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const build = process.env.CC_BUILD ?? fileURLToPath(new URL('../../build/dev', import.meta.url));
const program = `${build}/test_shape_schema`;
const DOCUMENTS = 4000;
const BEYOND_SCHEMA = / bytes( |$)|^n odd /;

function run(word, input = '') {
	const done = spawnSync(program, [word], { input, encoding: 'utf8', maxBuffer: 1 << 26 });
	assert.equal(done.status, 0, done.error ?? done.stderr);
	return done.stdout;
}

// A fixed sequence, so that a failure can be repeated.
let seed = 20240607;
function below(n) {
	seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
	return Math.floor((seed / 2 ** 32) * n);
}
const any = (...choices) => choices[below(choices.length)];

// Values around every bound of the shape, of the right type most of the time.
const text = () => any('', 'a', 'ab', 'abc', 'abcd', 'abcde', 'abcdef', 'é', 'éé', 'ééééé', '😀', '😀😀',
	'😀😀😀😀😀', 'x'.repeat(16), 'x'.repeat(17), 'aB', '..', 'plain', 'base64', 'A B');
const number = () => any(0, 1, -1, -5, -6, 60, 60.0, 0.5, 1.5, 99, 100, 3600, 3601, 1e21, -1e300,
	Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER);
const odd = () => any(true, false, 0, 1, 0.5, '', 'a', [], {}, ['a'], { name: 'a' });
const mostly = (good) => (below(16) ? good() : odd());
const some = (members) => Object.fromEntries(Object.entries(members)
	.filter(() => below(4) === 0).map(([name, make]) => [name, mostly(make)]));
const list = (make) => Array.from({ length: below(5) }, () => mostly(make));
const part = () => ({ ...(below(8) ? { name: text() } : {}),
	...some({ size: number, token: text, ...(below(10) ? {} : { unknown: text }) }) });
const env = () => Object.fromEntries(Array.from({ length: below(4) }, () =>
	[any('A', '_b', 'PATH', '1A', '', 'A B', 'é', 'A'.repeat(128), 'A'.repeat(129)), mostly(text)]));
const document = () => ({
	...(below(10) ? { count: any(1, 60, 3600, 60.0) } : some({ count: number })),
	...some({ text, bytes: text, word: text, odd: text, token: text, any: number, near: number,
		ratio: number, real: number, flag: () => any(true, false), mode: text, one: part,
		parts: () => list(part), tags: () => list(text), env }),
	...(below(20) ? {} : any({ when: 1 }, { extra: 1 }, { unknown: 1 }, { Count: 1 })),
});

const schemas = JSON.parse(run('schemas'));
const ajv = new Ajv({ strict: true, strictTypes: false, allErrors: true,
	formats: { password: true, 'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/ } });
const documents = Array.from({ length: DOCUMENTS }, document);
const verdicts = run('judge', documents.map((d) => `${JSON.stringify(d)}\n`).join('')).trimEnd().split('\n');

test('both schemas are valid JSON Schema 2020-12', () => {
	assert.ok(ajv.validateSchema(schemas.input), ajv.errorsText());
	assert.ok(ajv.validateSchema(schemas.result), ajv.errorsText());
});

test('the documents are of both kinds', () => {
	const accepted = verdicts.filter((v) => v.startsWith('y ')).length;
	assert.equal(verdicts.length, DOCUMENTS);
	assert.ok(accepted > 300 && DOCUMENTS - accepted > 300, `${accepted} accepted`);
});

test('validator and decoder agree', () => {
	const validate = ajv.compile(schemas.input);
	for (const [i, verdict] of verdicts.entries()) {
		const valid = validate(documents[i]);
		const message = `${JSON.stringify(documents[i])}: ${verdict}: ${ajv.errorsText(validate.errors)}`;
		if (verdict.startsWith('y '))
			assert.ok(valid, message);
		else if (!BEYOND_SCHEMA.test(verdict))
			assert.ok(!valid, message);
	}
});

test('what the encoder writes fits the schema of results', () => {
	const validate = ajv.compile(schemas.result);
	for (const verdict of verdicts.filter((v) => v.startsWith('y ')))
		assert.ok(validate(JSON.parse(verdict.slice(2))), `${verdict}: ${ajv.errorsText(validate.errors)}`);
});

test('a result without a member that is always there is refused', () => {
	const validate = ajv.compile(schemas.result);
	const whole = JSON.parse(verdicts.find((v) => v.startsWith('y ')).slice(2));
	for (const name of schemas.result.required) {
		const { [name]: _, ...rest } = whole;
		assert.ok(!validate(rest), name);
	}
});
