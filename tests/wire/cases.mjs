// The case files of cases/: each entry is one test. cases/README.md tells what an entry may hold.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, test } from 'node:test';

import { runner } from './instance.mjs';
import { TOOL_ERROR, errors, judgeMcp, judgeRest, openapi, seen } from './judge.mjs';
import { send } from './send.mjs';
import { caller, headersOf } from './states.mjs';
import { bytes, expand, fits } from './values.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const MODERN = '2026-07-28';
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const names = { runner_token: runner.token, runner_url: runner.url, origin: openapi.servers[0].url };

// ---- from an entry to a request ------------------------------------------------------------------------

// The members of an object with the text of one of them taken as it is.
function withRaw(value, raw) {
	return bytes(JSON.stringify(value).replace('"@raw@"', () => raw));
}

function modernHeaders(method, name) {
	return { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...(name === undefined ? {} : { 'Mcp-Name': name }) };
}

function call(step, era) {
	const args = 'raw' in step ? '@raw@' : step.arguments;
	const params = { name: step.tool, ...(args === undefined ? {} : { arguments: args }) };
	if (era === 'modern')
		params._meta = { [VERSION]: MODERN, [CAPABILITIES]: {} };
	const sent = { jsonrpc: '2.0', id: era === 'modern' ? 'call-1' : 7, method: 'tools/call', params };
	const headers = era === 'modern' ? modernHeaders('tools/call', step.tool) : { 'MCP-Protocol-Version': '2025-11-25' };
	return { method: 'POST', path: '/mcp', headers, sent, modern: era === 'modern', body: withRaw(sent, step.raw ?? '') };
}

function ofTool(step, over) {
	if (over !== 'rest')
		return call(step, over);
	const body = 'raw' in step ? bytes(step.raw) : Buffer.from(JSON.stringify(step.arguments ?? {}));
	return { method: 'POST', path: `/api/run/${step.tool}`, headers: {}, body };
}

// rpc: a message. modern: with the metadata and headers of the newest revision.
function ofMessage(step) {
	let sent = { jsonrpc: '2.0', id: 1, ...step.rpc };
	let headers = {};
	if (step.modern) {
		sent = { ...sent, params: { ...sent.params,
			_meta: { [VERSION]: MODERN, [CAPABILITIES]: {}, ...sent.params?._meta } } };
		headers = modernHeaders(sent.method, sent.params.name);
	}
	sent = JSON.parse(JSON.stringify(sent, (_, value) => (value === '@absent' ? undefined : value)));
	return { method: 'POST', path: '/mcp', headers, sent, modern: step.modern, body: Buffer.from(JSON.stringify(sent)) };
}

function ofRequest(step) {
	const [method, path] = (step.request ?? 'POST /mcp').split(' ');
	let body;
	if ('json' in step)
		body = Buffer.from(JSON.stringify(step.json));
	else if ('text' in step)
		body = bytes(step.text);
	return { method, path, headers: {}, body, modern: step.modern };
}

function requestOf(step, over) {
	const request = step.tool ? ofTool(step, over) : step.rpc ? ofMessage(step) : ofRequest(step);
	const own = Object.entries(step.headers ?? {});
	const type = request.body ? JSON_TYPE : {};
	request.headers = { ...type, ...request.headers };
	for (const [name, value] of own) {
		for (const old of Object.keys(request.headers).filter((n) => n.toLowerCase() === name.toLowerCase()))
			delete request.headers[old];
		if (value !== null)
			request.headers[name] = Array.isArray(value) ? value.map(latin1) : latin1(value);
	}
	return request;
}

// Header values are sent as the bytes that they name.
const latin1 = (text) => bytes(text).toString('latin1');

// ---- from an answer to a verdict -------------------------------------------------------------------------

// The problem of an answer wherever its protocol puts it.
function problemOf(value) {
	return value?.error?.data ?? value?.result?._meta?.[TOOL_ERROR] ?? value;
}

function checkError(step, over, answer, value) {
	const problem = problemOf(value);
	assert.ok(step.error.startsWith('~') || step.error in errors, `there is no error ${step.error}`);
	fits(problem?.code, step.error, answer.text);
	const row = errors[problem.code];
	fits(problem, { ...('field' in step ? { field: step.field } : {}), ...('detail' in step ? { detail: step.detail } : {}),
		...step.problem }, 'problem');
	if (!step.tool)
		return;
	if (over === 'rest')
		assert.equal(answer.status, row.status);
	else if (row.jsonrpc === undefined)
		assert.equal(answer.status, 200);
	else
		assert.equal(value.error.code, row.jsonrpc);
}

const resultOf = (value, over) => (over === 'rest' ? value : value?.result?.structuredContent);

function check(step, over, answer, value) {
	if (step.error)
		checkError(step, over, answer, value);
	if (step.status && (!step.tool || over === 'rest'))
		assert.equal(answer.status, step.status, answer.text);
	if (step.result) {
		fits(resultOf(value, over), step.result, 'result');
		assert.equal(answer.status, step.status && over === 'rest' ? step.status : 200);
	}
	for (const [name, want] of Object.entries(step.answer ?? {}))
		fits(answer.headers[name.toLowerCase()], want, name);
	if ('body' in step)
		fits(value ?? answer.text, step.body);
	if (step.empty)
		assert.equal(answer.text, '');
	if (step.headers?.Origin === undefined)
		assert.equal(answer.headers['access-control-allow-origin'], undefined);
}

async function take(plain, over, run) {
	const step = expand(plain, { ...names, ...run.names });
	const who = await caller(step.as ?? 'none', run.callers);
	const request = requestOf(step, over);
	request.headers = { ...headersOf(who), ...request.headers };
	const answer = await send({ ...request, from: who.from, chunked: step.chunked });
	const isMcp = request.path.split('?')[0] === '/mcp' && answer.status !== 204;
	const value = isMcp ? judgeMcp(answer, request) : judgeRest(request, answer);
	check(step, over, answer, value);
	const result = step.tool ? resultOf(value, over) : value;
	for (const [name, member] of Object.entries(step.save ?? {})) {
		run.names[name] = member.startsWith('header:') ? answer.headers[member.slice(7).toLowerCase()]
			: member.split('.').reduce((at, part) => at[part], result);
		assert.notEqual(run.names[name], undefined, `${member} of ${answer.text}`);
	}
}

// ---- tests -----------------------------------------------------------------------------------------------

const KNOWN = new Set(['name', 'as', 'tool', 'arguments', 'raw', 'request', 'json', 'text', 'rpc', 'modern', 'headers', 'chunked',
	'over', 'before', 'error', 'field', 'detail', 'problem', 'status', 'result', 'answer', 'body', 'empty', 'save']);

function checkEntry(entry) {
	for (const step of [...(entry.before ?? []), entry]) {
		const unknown = Object.keys(step).filter((key) => !KNOWN.has(key));
		assert.deepEqual(unknown, [], `unknown members of ${entry.name}`);
	}
	const judged = ['error', 'status', 'result', 'body', 'empty'].some((key) => key in entry);
	assert.ok(entry.name && judged, `${entry.name ?? 'a case'} expects nothing`);
}

const isRefusal = (entry) => Boolean(entry.error) || entry.status >= 400;

const isOfMcp = (entry) => Boolean(entry.tool || entry.rpc) || / \/mcp(\?|$)/.test(entry.request ?? ' /mcp');

function addCase(entry) {
	checkEntry(entry);
	for (const over of entry.over ?? (entry.tool ? ['rest', 'legacy', 'modern'] : ['http'])) {
		seen.cases++;
		seen.refusals += isRefusal(entry);
		if (over !== 'rest' && isOfMcp(entry)) {
			seen.mcp.cases++;
			seen.mcp.refusals += isRefusal(entry);
		}
		test(over === 'http' ? entry.name : `${entry.name} (${over})`, async () => {
			const run = { names: {}, callers: new Map() };
			for (const step of entry.before ?? [])
				await take(step, over, run);
			await take(entry, over, run);
		});
	}
}

const folder = new URL('cases/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.json')).sort();
// Several files at once: those that wait for jobs do not keep the others.
describe('cases', { concurrency: 3 }, () => {
	for (const file of files)
		describe(file, { concurrency: 6 }, () => JSON.parse(readFileSync(new URL(file, folder))).forEach(addCase));
});
