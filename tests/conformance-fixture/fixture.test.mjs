// The public conformance suite of MCP against the connector with the tools, prompts and resources that
// the suite asks for: everything that a revision requires.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { conformance } from '../lib/conform.mjs'; // an instance: CC_DEV_JSON

const TASKS = ['tasks-lifecycle', 'tasks-wire-fields', 'tasks-dispatch-and-envelope', 'tasks-request-state-removal',
	'tasks-request-headers', 'tasks-capability-negotiation', 'tasks-required-task-error', 'tasks-mrtr-input',
	'tasks-mrtr-composition'];
const HEADERS = ['http-header-validation', 'http-custom-header-server-validation'];
const expected = path.join(import.meta.dirname, 'expected.yml');
let suite, conform;

before(async () => {
	suite = await conformance();
	({ conform } = suite);
});
after(() => suite.stop());

// Of scenarios that are not scored the suite's exit status says nothing.
const passed = (out, scenario) => assert.match(out, new RegExp(`✓ ${scenario}: [1-9]\\d* passed, 0 failed`), scenario);

test('revision 2026-07-28: all of it, tasks and headers too, without a list of exceptions', async () => {
	const { code, out } = await conform('--requirements', '2026-07-28');
	assert.equal(code, 0, out.slice(-6000));
	assert.match(out, /Total: [1-9]\d* passed, 0 failed/);
	for (const scenario of [...TASKS, ...HEADERS, 'json-schema-2020-12']) passed(out, scenario);
});

test('revision 2025-11-25: all but what asks the client on a stream, or for a session', async () => {
	const { code, out } = await conform('--requirements', '2025-11-25', '--expected-failures', expected);
	assert.equal(code, 0, out.slice(-6000));
	for (const scenario of ['tools-call-with-logging', 'resources-subscribe', 'completion-complete'])
		passed(out, scenario);
});
