// For every input field that the server declares: missing, of every wrong type, below and above its
// bounds, null, exactly at its bounds, and an unknown neighbour. Over REST and, for tools, over MCP.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { TOOL_ERROR, judgeMcp, judgeRest, operations, schemaOf, seen, tools } from './judge.mjs';
import { send } from './send.mjs';
import { caller, headersOf } from './states.mjs';

// Arguments that are in order but lead nowhere, and who sends them.
const bases = JSON.parse(readFileSync(new URL('bases.json', import.meta.url)));

// ---- values that do not fit a schema ---------------------------------------------------------------

const TYPES = { string: 'x', integer: 7, number: 1.5, boolean: true, array: [], object: {} };
const ACCEPTS = { number: ['number', 'integer'], integer: ['number', 'integer'] };

function wrongTypes(schema) {
	const right = ACCEPTS[schema.type] ?? [schema.type];
	return Object.entries(TYPES).filter(([type]) => !right.includes(type)).map(([type, value]) =>
		({ kind: `of type ${type}`, value, detail: /must be .*, not / }));
}

const bound = (n) => new RegExp(`\\b${n}\\b`);

// Text of n characters; of the form that the field asks for where it asks for one.
function textOf(schema, n) {
	if (schema.pattern?.includes('[0-7]'))
		return '0'.repeat(n);
	return 'x'.repeat(n);
}

function outsideText(schema) {
	const list = [];
	if (schema.enum)
		list.push({ kind: 'of an unknown word', value: 'nonsense', detail: new RegExp(schema.enum.join(', ')) });
	if (schema.minLength > 0)
		list.push({ kind: 'below', value: textOf(schema, schema.minLength - 1), detail: bound(schema.maxLength) });
	if (schema.maxLength)
		list.push({ kind: 'above', value: textOf(schema, schema.maxLength + 1), detail: bound(schema.maxLength) });
	if (schema.pattern)
		list.push({ kind: 'of another form', value: ' '.repeat(schema.minLength), detail: /match/ });
	return list;
}

function outsideNumber(schema) {
	const list = [];
	if (schema.minimum !== undefined)
		list.push({ kind: 'below', value: schema.minimum - 1, detail: bound(schema.minimum) });
	if (schema.maximum < Number.MAX_SAFE_INTEGER) // a larger one is no JSON number for us
		list.push({ kind: 'above', value: schema.maximum + 1, detail: bound(schema.maximum) });
	if (schema.type === 'integer')
		list.push({ kind: 'a fraction', value: (schema.minimum ?? 0) + 1.5, detail: /integer/ });
	return list;
}

function outsideMany(schema) {
	const list = [];
	if (schema.maxItems)
		list.push({ kind: 'above', value: Array.from({ length: schema.maxItems + 1 }, (_, i) => ({ path: `f${i}`, content: '' })),
			detail: bound(schema.maxItems) });
	if (schema.maxProperties)
		list.push({ kind: 'above', value: Object.fromEntries(Array.from({ length: schema.maxProperties + 1 }, (_, i) => [`V${i}`, ''])),
			detail: bound(schema.maxProperties) });
	if (schema.additionalProperties?.type)
		list.push({ kind: 'with a number in it', value: { V: 1 }, below: '.V', detail: /string/ });
	return list;
}

function wrongValues(schema) {
	const outside = { string: outsideText, integer: outsideNumber, number: outsideNumber }[schema.type] ?? outsideMany;
	return [...wrongTypes(schema), ...outside(schema)];
}

// The smallest and the largest value that fit.
function edges(schema) {
	if (schema.type === 'boolean')
		return [false, true];
	if (schema.enum)
		return schema.enum;
	if (schema.minimum !== undefined)
		return [schema.minimum, schema.maximum];
	if (schema.maxLength && (!schema.pattern || schema.pattern.includes('[0-7]')))
		return [textOf(schema, schema.minLength), textOf(schema, schema.maxLength)];
	return [];
}

// ---- fields --------------------------------------------------------------------------------------------

// Every field with its path and how to set it (undefined: leave it out) in the base arguments.
function* fieldsOf(schema, path = '', put = (args, change) => change(args)) {
	for (const [name, field] of Object.entries(schema.properties ?? {})) {
		const set = (args, value) => put(args, (at) => {
			if (value === undefined)
				delete at[name];
			else
				at[name] = value;
		});
		yield { name, path: path + name, field, set, required: schema.required?.includes(name) ?? false, put, prefix: path };
		if (field.items?.properties)
			yield* fieldsOf(field.items, `${path}${name}[1].`, (args, change) => put(args, (at) => change(at[name][1])));
	}
}

// ---- tests ---------------------------------------------------------------------------------------------

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };

async function overRest(target, args, who) {
	const request = { method: target.method, path: target.path, body: Buffer.from(JSON.stringify(args)) };
	const answer = await send({ ...request, headers: { 'Content-Type': 'application/json', ...headersOf(who) } });
	const value = judgeRest(request, answer);
	return { problem: answer.status >= 400 ? value : undefined, answer };
}

async function overMcp(target, args, who) {
	const sent = { jsonrpc: '2.0', id: 'g', method: 'tools/call', params: { name: target.tool, arguments: args, _meta: META } };
	const headers = { 'Content-Type': 'application/json', 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call',
		'Mcp-Name': target.tool, ...headersOf(who) };
	const answer = await send({ method: 'POST', path: '/mcp', headers, body: Buffer.from(JSON.stringify(sent)) });
	const { result } = judgeMcp(answer, { sent, modern: true });
	return { problem: result._meta[TOOL_ERROR], answer };
}

function add(target, name, args, check, refused = true) {
	for (const [over, ask] of [['rest', overRest], ...(target.tool ? [['modern', overMcp]] : [])]) {
		seen.cases++;
		seen.refusals += refused;
		test(`${target.id}: ${name} (${over})`, async () => {
			const { problem, answer } = await ask(target, args, await caller(target.as));
			check(problem, answer);
		});
	}
}

function refused(path, detail) {
	return (problem, answer) => {
		assert.equal(problem?.code, 'bad_input', answer.text.slice(0, 500));
		assert.equal(problem.field, path);
		assert.match(problem.detail, detail);
	};
}

// What the base leads to, never a complaint about this field.
const accepted = (target, path) => (problem, answer) => {
	assert.equal(problem?.code, target.leads_to, answer.text.slice(0, 500));
	if (problem?.code === 'bad_input')
		assert.notEqual(problem.field, path);
};

function changed(target, f, value) {
	const args = structuredClone(target.arguments);
	f.set(args, value);
	return args;
}

function addField(target, f) {
	for (const { kind, value, detail, below = '' } of wrongValues(f.field))
		add(target, `${f.path} ${kind}`, changed(target, f, value), refused(f.path + below, detail));
	if (f.required) {
		add(target, `${f.path} missing`, changed(target, f, undefined), refused(f.path, /^is required$/));
		add(target, `${f.path} null`, changed(target, f, null), refused(f.path, /^is required$/));
	} else {
		add(target, `${f.path} null`, changed(target, f, null), accepted(target, f.path), false);
	}
	const neighbour = structuredClone(target.arguments);
	f.put(neighbour, (at) => { at[`${f.name}x`] = 1; });
	add(target, `a neighbour of ${f.path}`, neighbour, refused(`${f.path}x`, /not a known name/));
	if (!target.keep?.includes(f.name))
		for (const [i, value] of edges(f.field).entries())
			add(target, `${f.path} at its edge ${i}`, changed(target, f, value), accepted(target, f.path), false);
}

function addTarget(target, schema) {
	add(target, 'the base', target.arguments, accepted(target, ''), Boolean(target.leads_to));
	for (const f of fieldsOf(schema))
		addField(target, f);
	add(target, 'an unknown name alone', { nonsense: null }, refused('nonsense', /not a known name/));
	for (const [type, value] of Object.entries(TYPES).filter(([name]) => name !== 'object'))
		if (!target.tool)
			add(target, `a body of type ${type}`, value, refused(undefined, /object/));
}

describe('generated', { concurrency: 8 }, () => {
	for (const { path, method, operation } of operations.filter((o) => o.operation.requestBody && o.path !== '/mcp')) {
		const id = operation.operationId;
		const schema = schemaOf(operation.requestBody.content['application/json'].schema);
		const base = bases[id];
		assert.ok(base, `bases.json has no arguments for ${id}`);
		const tool = tools.some((t) => t.name === id) ? id : undefined;
		addTarget({ id, tool, method, path: base.path ?? path, ...base }, schema);
	}
	for (const { name } of tools)
		assert.ok(operations.some((o) => o.operation.operationId === name), `${name} is not in the OpenAPI document`);
});
