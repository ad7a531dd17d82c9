// Properties of every operation of the OpenAPI document: whatever is sent, the answer is declared (status,
// media type, schema) and is no failure of ours. Requests are made from the operation's own schema: valid
// ones, valid ones with one value exchanged for something else, and JSON of any form. A run that finds
// something prints its seed; CC_SEED repeats it.

import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Client, request } from '../lib/client.mjs';
import { account, dev } from '../lib/instance.mjs';

const RUNS = Number(process.env.CC_RUNS ?? 30); // for each operation and kind of request
const seed = process.env.CC_SEED ? { seed: Number(process.env.CC_SEED) } : {};
const ofDocument = (await request(`${dev.url}/openapi.json`)).json;
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema({ $id: 'document', components: ofDocument.components });
const compiled = new Map();
const judgeOf = (ref) => {
	if (!compiled.has(ref)) compiled.set(ref, ajv.compile({ $ref: `document${ref}` }));
	return compiled.get(ref);
};
const resolved = (schema) => (schema.$ref ? ofDocument.components.schemas[schema.$ref.split('/').at(-1)] : schema);

const everything = Object.entries(ofDocument.paths).flatMap(([path, item]) => Object.entries(item)
	.map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })));
const operations = everything.filter((o) => o.path.startsWith('/api/'));

// ---- values from a schema ----------------------------------------------------------------------------

const textOf = ({ minLength = 0, maxLength = 40, pattern }) => pattern
	? fc.stringMatching(new RegExp(pattern)).filter((s) => s.length >= minLength && s.length <= maxLength)
	: fc.string({ minLength, maxLength: Math.min(maxLength, minLength + 60), unit: 'grapheme' })
		.filter((s) => s.length <= maxLength && [...s].length >= minLength);

/** Arbitrary values that fit a schema. */
function fitting(plain) {
	const schema = resolved(plain);
	if (schema.enum) return fc.constantFrom(...schema.enum);
	if (schema.const !== undefined) return fc.constant(schema.const);
	switch (schema.type) {
	case 'string': return textOf(schema);
	case 'integer': return fc.integer({ min: Math.max(schema.minimum ?? 0, -(2 ** 31)),
		max: Math.min(schema.maximum ?? 1000, 2 ** 31 - 1) });
	case 'number': return fc.double({ min: schema.minimum ?? 0, max: schema.maximum ?? 1e6, noNaN: true });
	case 'boolean': return fc.boolean();
	case 'array': return fc.array(fitting(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 4 });
	case 'object': return objectOf(schema);
	default: return fc.jsonValue();
	}
}

function objectOf(schema) {
	const members = Object.entries(schema.properties ?? {});
	if (members.length === 0 && schema.additionalProperties?.type)
		return fc.dictionary(fc.stringMatching(/^[A-Z][A-Z0-9_]{0,8}$/), fitting(schema.additionalProperties), { maxKeys: 4 });
	return fc.record(Object.fromEntries(members.map(([name, part]) => [name, fitting(part)])),
		{ requiredKeys: schema.required ?? [] });
}

/** A fitting object with one member exchanged, dropped or added. */
const spoilt = (schema) => fc.tuple(objectOf(schema), fc.nat(), fc.jsonValue(), fc.constantFrom('set', 'drop', 'add'))
	.map(([value, at, other, how]) => {
		const names = Object.keys(resolved(schema).properties ?? {});
		const name = how === 'add' || names.length === 0 ? 'stranger' : names[at % names.length];
		const copy = { ...value, [name]: other };
		if (how === 'drop') delete copy[name];
		return copy;
	});

// ---- judging ---------------------------------------------------------------------------------------------

/** What runs must end soon and cost nothing: the command is no property of the answer. */
function tamed(operation, body) {
	if (operation.operationId !== 'run_job' || typeof body?.cmd !== 'string' || !body.cmd) return body;
	return { ...body, cmd: 'true', wait_s: 0, ...(body.timeout_s > 5 && { timeout_s: 5 }) };
}

function judge(operation, answer) {
	const declared = operation.responses[answer.status];
	const said = `${operation.operationId}: ${answer.status} ${answer.text.slice(0, 400)}`;
	// The save of a key may find its provider in trouble (502); nothing else is ever our failure.
	assert.ok(answer.status < 500 || (answer.status === 502 && declared), said);
	assert.ok(declared, `not declared: ${said}`);
	const type = (answer.headers['content-type'] ?? '').split(';')[0];
	const media = declared.content?.[type];
	assert.ok(media, `${type} is not declared: ${said}`);
	const fits = judgeOf(media.schema.$ref);
	assert.ok(fits(answer.json), `${said}: ${ajv.errorsText(fits.errors)}`);
	if (answer.status >= 400) assert.equal(answer.json.status, answer.status, said);
}

let clients, mayNotDelete;
before(async () => {
	const owner = await account('pro');
	const { json: agent } = await owner.api('POST', '/api/keys', { kind: 'agent' });
	clients = [owner, new Client(dev.url), await account('free')];
	// The others are still needed as callers.
	mayNotDelete = [new Client(dev.url, agent.key), new Client(dev.url), new Client(dev.url, 'cc_live_nothing')];
});

const callerOf = (operation, who) => (operation.operationId === 'delete_account' ? mayNotDelete : clients)[who];

async function ask(operation, who, body, id) {
	const path = operation.path.replace('{id}', encodeURIComponent(id) || 'x');
	const answer = await callerOf(operation, who).api(operation.method, path, operation.requestBody ? tamed(operation, body) : undefined);
	judge(operation, answer);
	return answer;
}

const kinds = (schema) => ({
	fitting: objectOf(schema),
	'with one member changed': spoilt(schema),
	'of any form': fc.jsonValue(),
});

for (const operation of operations) {
	const schema = resolved(operation.requestBody?.content['application/json'].schema ?? { type: 'object' });
	const ids = fc.oneof(fc.string({ minLength: 1, maxLength: 70 }), fc.stringMatching(/^key_[a-z2-7]{26}$/));
	describe(`${operation.method} ${operation.path}`, () => {
		for (const [kind, bodies] of Object.entries(kinds(schema)))
			test(`${kind}: every answer is declared`, async () => {
				let good = 0;
				await fc.assert(fc.asyncProperty(fc.nat({ max: 2 }), bodies, ids, async (who, body, id) => {
					const answer = await ask(operation, who, body, id);
					good += answer.status < 400;
				}), { numRuns: RUNS, ...seed });
				console.log(`${operation.operationId} ${kind}: ${good} of ${RUNS} accepted`);
			});
	});
}

test('an account that is deleted: the answer is declared, and so is the one after it', async () => {
	const operation = operations.find((o) => o.operationId === 'delete_account');
	const passing = await account('free');
	for (const status of [200, 401]) {
		const answer = await passing.api('DELETE', '/api/account');
		judge(operation, answer);
		assert.equal(answer.status, status);
	}
});

// ---- documents -------------------------------------------------------------------------------------------

const headers = fc.dictionary(fc.constantFrom('Accept', 'If-None-Match', 'Origin', 'Authorization', 'Range', 'Content-Type'),
	fc.oneof(fc.constantFrom('*', '"x"', '*/*', 'null', 'https://evil.example', 'bytes=0-1', 'Bearer x'), fc.stringMatching(/^[!-~]{1,20}$/)));

for (const operation of everything.filter((o) => o.method === 'GET' && !o.path.startsWith('/api/')))
	test(`GET ${operation.path} with any headers and query: every answer is declared`, () => fc.assert(
		fc.asyncProperty(headers, fc.stringMatching(/^[a-z=&]{0,20}$/), async (more, query) => {
			const answer = await request(`${dev.url}${operation.path}?${query}`, { headers: more });
			const declared = operation.responses[answer.status];
			const said = `${answer.status} ${answer.text.slice(0, 200)}`;
			assert.ok(declared && answer.status < 500, said);
			const type = answer.headers['content-type']?.split(';')[0];
			if (answer.status !== 304) assert.ok(declared.content[type], `${type}: ${said}`);
		}), { numRuns: RUNS, ...seed }));

// ---- MCP -------------------------------------------------------------------------------------------------

const METHODS = ['initialize', 'ping', 'server/discover', 'tools/list', 'tools/call', 'tasks/get', 'tasks/cancel', 'tasks/update',
	'notifications/cancelled', 'resources/list', 'prompts/get', 'no/such'];
const VERSIONS = ['2026-07-28', '2025-11-25', '2025-03-26', '2024-11-05', '2027-01-01', 'x'];
const meta = fc.record({ 'io.modelcontextprotocol/protocolVersion': fc.constantFrom(...VERSIONS),
	'io.modelcontextprotocol/clientCapabilities': fc.constant({}), progressToken: fc.oneof(fc.integer(), fc.string()) },
{ requiredKeys: [] });
const params = fc.record({ name: fc.constantFrom('check_memory', 'list_providers', 'usage_and_upgrade', 'nothing', 7),
	arguments: fc.oneof(fc.constant({ free_mb: 100 }), fc.jsonValue()), taskId: fc.string(), cursor: fc.string(),
	protocolVersion: fc.constantFrom(...VERSIONS), _meta: fc.oneof(meta, meta, fc.jsonValue()) }, { requiredKeys: [] });
const message = fc.record({ jsonrpc: fc.constantFrom('2.0', '2.0', '2.0', '1.0'),
	id: fc.oneof(fc.integer(), fc.string(), fc.constant(null)), method: fc.oneof(fc.constantFrom(...METHODS), fc.string()),
	params: fc.oneof(params, params, fc.jsonValue()) }, { requiredKeys: ['jsonrpc'] });
const mcpHeaders = fc.record({ 'MCP-Protocol-Version': fc.constantFrom(...VERSIONS), 'Mcp-Method': fc.constantFrom(...METHODS),
	'Mcp-Name': fc.constantFrom('check_memory', '=?base64?Y2hlY2tfbWVtb3J5?=', '=?base64?!?='),
	Accept: fc.constantFrom('application/json', 'text/event-stream', '*/*', 'text/html') }, { requiredKeys: [] });

/** Headers that agree with the message, as a client of the newest revision sends them. */
function agreeing(body) {
	const name = body?.params?.name ?? body?.params?.taskId;
	const plain = (text) => typeof text === 'string' && /^[!-~]+$/.test(text);
	return { 'MCP-Protocol-Version': '2026-07-28', ...(plain(body?.method) && { 'Mcp-Method': body.method }),
		...(plain(name) && { 'Mcp-Name': name }) };
}

/** What a JSON-RPC answer must be, to a body that may hold anything. */
function judgeRpc(body, answer) {
	const said = `${answer.status} ${answer.text.slice(0, 300)}`;
	assert.ok([200, 202, 400, 404, 406].includes(answer.status), said);
	if (answer.status === 202) return assert.equal(answer.text, '');
	assert.equal(answer.headers['content-type'], 'application/json', said);
	for (const one of [answer.json].flat()) {
		assert.equal(one.jsonrpc, '2.0', said);
		assert.equal('result' in one, !('error' in one), said);
		if (one.error) assert.ok(Number.isInteger(one.error.code) && one.error.message && one.error.data.code, said);
		else assert.equal(answer.status, 200, said);
		if (!Array.isArray(answer.json) && 'id' in one) assert.deepEqual(one.id, body.id, said);
	}
	return undefined;
}

for (const [kind, bodies, makeHeaders] of [
	['with headers that agree', message, (body) => fc.constant(agreeing(body))],
	['with headers of any kind', message, () => mcpHeaders],
	['in batches', fc.array(message, { maxLength: 5 }), () => fc.constant({})],
	['of any form', fc.jsonValue(), () => mcpHeaders],
])
	test(`POST /mcp, messages ${kind}: every answer is JSON-RPC`, () => fc.assert(
		fc.asyncProperty(fc.nat({ max: 2 }), bodies.chain((body) => makeHeaders(body).map((more) => [body, more])),
			async (who, [body, more]) => judgeRpc(body, await clients[who].api('POST', '/mcp', body, { headers: more }))),
		{ numRuns: 4 * RUNS, ...seed }));
