// Judges every answer of the suite against what the server declares: the OpenAPI document, the output
// schemas of the tools, the rules of JSON-RPC. Keeps what was seen, for the table at the end.
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import assert from 'node:assert/strict';

import { send } from './send.mjs';

async function getJson(path) {
	const answer = await send({ method: 'GET', path });
	assert.equal(answer.status, 200, path);
	return JSON.parse(answer.text);
}

async function listTools() {
	const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
	const answer = await send({ method: 'POST', path: '/mcp', body, headers: { 'Content-Type': 'application/json' } });
	return JSON.parse(answer.text).result.tools;
}

export const openapi = await getJson('/openapi.json');
export const tools = await listTools();
export const errors = Object.fromEntries(openapi['x-errors'].map((row) => [row.code, row]));
export const operations = Object.entries(openapi.paths).flatMap(([path, item]) =>
	Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation,
		form: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`) })));

// Where a tool's error stands in a result of MCP.
export const TOOL_ERROR = 'compute-connector/error';

export const seen = { errors: new Map(), tools: new Map(), outcomes: new Map(), cases: 0, refusals: 0, answers: 0,
	mcp: { cases: 0, refusals: 0 } };
const count = (map, name) => map.set(name, (map.get(name) ?? 0) + 1);

// ---- schemas ---------------------------------------------------------------------------------------

const ajv = new Ajv({ strict: false, allErrors: true });
addFormats(ajv);
ajv.addSchema({ $id: 'document', components: openapi.components });
const compiled = new Map();

function valid(schema, value, where) {
	const key = JSON.stringify(schema);
	if (!compiled.has(key))
		compiled.set(key, ajv.compile(schema.$ref ? { $ref: `document${schema.$ref}` } : schema));
	const judge = compiled.get(key);
	assert.ok(judge(value), `${where}: ${ajv.errorsText(judge.errors)}`);
}

export const schemaOf = (schema) => (schema?.$ref ? openapi.components.schemas[schema.$ref.split('/').at(-1)] : schema);
const toolOutput = Object.fromEntries(tools.map((tool) => [tool.name, tool.outputSchema]));

// ---- what is noted -----------------------------------------------------------------------------------

function noteJob(value) {
	for (const job of Array.isArray(value?.jobs) ? value.jobs : [value]) {
		if (typeof job?.state === 'string')
			count(seen.outcomes, job.outcome ?? job.state);
		if (job?.error?.code)
			count(seen.errors, job.error.code);
	}
}

function noteProblem(problem) {
	count(seen.errors, problem.code);
	assert.ok(problem.code in errors, `${problem.code} is no row`);
	assert.equal(problem.title, errors[problem.code].title);
}

function noteTool(name, result) {
	const row = seen.tools.get(name) ?? { succeeded: 0, refused: 0 };
	row[result]++;
	seen.tools.set(name, row);
}

// ---- HTTP ------------------------------------------------------------------------------------------------

const BY_NGINX = [408, 414, 421, 431];
const mediaType = (answer) => (answer.headers['content-type'] ?? '').split(';')[0];

export function judgeHead(answer) {
	seen.answers++;
	assert.doesNotThrow(() => new TextDecoder('utf-8', { fatal: true }).decode(answer.body), 'the body is UTF-8');
	const names = answer.raw.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
	for (const name of ['x-request-id', 'x-content-type-options', 'content-security-policy'])
		assert.equal(names.filter((n) => n === name).length, 1, `header ${name} of ${answer.status}`);
	assert.equal(answer.headers['mcp-session-id'], undefined);
	assert.equal(answer.headers['set-cookie'], undefined);
	assert.doesNotMatch(answer.headers.server ?? '', /\d/);
	assert.notEqual(answer.status, 500, answer.text);
}

function judgeProblem(answer, problem) {
	valid({ $ref: '#/components/schemas/Problem' }, problem, 'problem');
	assert.equal(problem.status, answer.status);
	if (problem.type === 'about:blank') // by nginx, whose rows a gate compares
		return;
	const row = errors[problem.code];
	assert.equal(answer.status, row.status);
	assert.equal(problem.type, `${openapi.servers[0].url}/openapi.json#${problem.code}`);
	assert.equal(problem.retryable, row.retryable);
	if ([429, 503].includes(answer.status))
		assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
	if (problem.retry_after_s)
		assert.equal(answer.headers['retry-after'], String(problem.retry_after_s));
	if (answer.status === 405)
		assert.ok(answer.headers.allow);
	if (answer.status === 401)
		assert.match(answer.headers['www-authenticate'], /^Bearer realm="[^"]+", error="invalid_token"/);
}

// Returns the parsed body (undefined when there is none).
export function judgeRest({ method, path }, answer) {
	const plain = path.split('?')[0];
	const found = operations.find((o) => o.form.test(plain) && o.method === method);
	judgeHead(answer);
	if (method === 'HEAD' || answer.status === 204) {
		assert.equal(answer.body.length, 0);
		return undefined;
	}
	const type = mediaType(answer);
	const value = /json$/.test(type) ? JSON.parse(answer.text) : undefined;
	if (answer.status >= 400 && plain !== '/readyz') {
		assert.equal(type, 'application/problem+json', answer.text);
		judgeProblem(answer, value);
		noteProblem(value);
	}
	if (!found)
		return value;
	const declared = found.operation.responses[answer.status] ??
		(BY_NGINX.includes(answer.status) ? found.operation.responses.default : undefined);
	assert.ok(declared, `${answer.status} of ${method} ${found.path} is not declared: ${answer.text}`);
	if (answer.status === 304) {
		assert.equal(answer.body.length, 0);
		return undefined;
	}
	const media = declared.content?.[type];
	assert.ok(media, `${answer.status} ${type} of ${method} ${found.path} is not declared`);
	if (media.schema)
		valid(media.schema, value ?? answer.text, `${answer.status} of ${method} ${found.path}`);
	noteTool(found.operation.operationId, answer.status < 400 ? 'succeeded' : 'refused');
	if (answer.status < 400)
		noteJob(value);
	return value;
}

// ---- MCP ---------------------------------------------------------------------------------------------------

function judgeToolResult(tool, result) {
	assert.ok(result.content.length > 0);
	assert.equal(result.content[0].type, 'text');
	assert.equal(typeof result.content[0].text, 'string');
	const problem = result._meta?.[TOOL_ERROR];
	const failed = problem !== undefined;
	if (failed) {
		assert.equal(result.isError, true);
		assert.equal(result.structuredContent, undefined, 'clients hold it against the schema of results');
		noteProblem(problem);
		assert.ok([undefined, -32603].includes(errors[problem.code].jsonrpc), `${problem.code} is no error of a tool`);
		for (const part of [problem.title, problem.code, problem.field, problem.detail, problem.advice])
			assert.ok(result.content[0].text.includes(part ?? ''), `the text lacks: ${part}`);
	} else {
		assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
		valid(toolOutput[tool], result.structuredContent, `result of ${tool}`);
		noteJob(result.structuredContent);
	}
	noteTool(tool, failed ? 'refused' : 'succeeded');
}

// What a task tells is a job's, and the result of one that was completed is the tool's.
function judgeTask(task) {
	assert.match(task.taskId, /^job_[a-z2-7]{26}$/);
	assert.ok(['working', 'completed', 'cancelled'].includes(task.status), task.status);
	for (const number of [task.ttlMs, task.pollIntervalMs])
		assert.ok(Number.isInteger(number) && number > 0);
	assert.ok(task.createdAt <= task.lastUpdatedAt);
	assert.equal('result' in task, task.status === 'completed');
	if (task.result)
		judgeToolResult('run_job', task.result);
}

function judgeResult(sent, result, modern) {
	assert.ok(result !== null && typeof result === 'object' && !Array.isArray(result));
	const isTask = result.resultType === 'task' && sent?.method === 'tools/call';
	if (!isTask)
		assert.equal(result.resultType, modern ? 'complete' : undefined);
	if (modern)
		assert.equal(result._meta['io.modelcontextprotocol/serverInfo'].name, 'compute-connector');
	const listed = ['server/discover', 'tools/list'].includes(sent?.method);
	if (isTask || sent?.method === 'tasks/get')
		judgeTask(result);
	else
		assert.equal(result.ttlMs, modern && listed ? 300000 : undefined);
	assert.equal(result.cacheScope, modern && listed ? 'public' : undefined);
	if (sent?.method === 'tools/call' && !isTask)
		judgeToolResult(sent.params.name, result);
}

function judgeError(answer, error) {
	assert.ok(Number.isInteger(error.code));
	assert.ok(typeof error.message === 'string' && error.message.length > 0);
	noteProblem(error.data);
	assert.ok(error.message.startsWith(error.data.title));
	if (answer.status === 401)
		assert.match(answer.headers['www-authenticate'], /^Bearer realm="[^"]+", error="invalid_token"/);
	if ([429, 503].includes(answer.status))
		assert.match(answer.headers['retry-after'] ?? '', /^[1-9]\d*$/);
}

// sent: the message, when it could be one; modern: in which era it is answered.
export function judgeMessage(answer, got, { sent, modern = false } = {}) {
	assert.equal(got.jsonrpc, '2.0');
	assert.equal(('result' in got) + ('error' in got), 1, answer.text);
	assert.deepEqual(Object.keys(got).filter((k) => !['jsonrpc', 'id', 'result', 'error'].includes(k)), []);
	if ('id' in got && sent)
		assert.deepEqual(got.id, sent.id);
	if ('result' in got)
		judgeResult(sent, got.result, modern);
	else
		judgeError(answer, got.error);
}

// Progress that grows, with the token that was given and the id of the job, and then the one answer.
function judgeStream(answer, context) {
	assert.ok(answer.text.endsWith('\n\n'));
	const messages = answer.text.slice(0, -2).split('\n\n').map((event) => {
		const [, data] = /^event: message\ndata: ([^\n]+)$/.exec(event) ?? assert.fail(event);
		return JSON.parse(data);
	});
	const value = messages.pop();
	let last = -1;
	for (const { jsonrpc, id, method, params } of messages) {
		assert.deepEqual([jsonrpc, id, method], ['2.0', undefined, 'notifications/progress']);
		assert.deepEqual(params.progressToken, context.sent.params._meta.progressToken);
		assert.ok(params.progress > last);
		last = params.progress;
		assert.match(params.message, /^job_[a-z2-7]{26} [a-z]+, \d+ s, \d+ bytes of output/);
	}
	assert.ok(messages.length > 0, 'a stream has progress');
	judgeMessage(answer, value, context);
	return value;
}

export function judgeMcp(answer, context = {}) {
	judgeHead(answer);
	if (answer.status === 202 || answer.status === 405) {
		assert.equal(answer.body.length, 0);
		assert.equal(answer.headers['content-length'], '0');
		return undefined;
	}
	if (mediaType(answer) === 'text/event-stream')
		return judgeStream(answer, context);
	const value = JSON.parse(answer.text);
	if (mediaType(answer) === 'application/problem+json') { // by nginx
		judgeProblem(answer, value);
		noteProblem(value);
		return value;
	}
	assert.equal(mediaType(answer), 'application/json');
	for (const one of Array.isArray(value) ? value : [value])
		judgeMessage(answer, one, Array.isArray(value) ? {} : context);
	return value;
}
