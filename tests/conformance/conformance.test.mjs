// The public conformance suite of MCP against the server as it is shipped.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { conformance } from '../lib/conform.mjs'; // an instance: CC_DEV_JSON

const expected = path.join(import.meta.dirname, 'expected.yml');
let suite, conform;

before(async () => {
	suite = await conformance();
	({ conform } = suite);
});
after(() => suite.stop());

test('revision 2026-07-28: all but what needs more than tools', async () => {
	const { code, out } = await conform('--requirements', '2026-07-28', '--expected-failures', expected);
	assert.equal(code, 0, out.slice(-6000));
});

test('the same without the list of what is expected fails: the list is looked at', async () => {
	const { code, out } = await conform('--scenario', 'prompts-list', '--spec-version', '2026-07-28');
	assert.equal(code, 1, out);
});

test('headers of revision 2026-07-28 are validated', async () => {
	const { code, out } = await conform('--scenario', 'http-header-validation', '--spec-version', '2026-07-28');
	assert.equal(code, 0, out);
	assert.match(out, /Passed: 14\/14, 0 failed, 0 warnings/);
});

for (const scenario of ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']) {
	test(`revision 2025-11-25: ${scenario}`, async () => {
		const { code, out } = await conform('--scenario', scenario, '--spec-version', '2025-11-25');
		assert.equal(code, 0, out);
	});
}

test('the program that is shipped has nothing of the test build', () => {
	const program = fs.readFileSync(path.join(process.env.CC_BUILD, 'compute-connector'));
	assert.ok(program.includes('check_memory'), 'the search finds what is there');
	for (const word of ['test_simple_text', 'mcp_extra', 'protocol_error_job'])
		assert.ok(!program.includes(word), word);
});
