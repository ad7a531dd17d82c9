// The OpenAPI document and the MCP tools as the program prints them, judged by public validators: the
// document by one for OpenAPI 3.1, every schema and every example by one for JSON Schema 2020-12.
import { Validator } from '@seriousme/openapi-schema-validator';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const build = process.env.CC_BUILD ?? fileURLToPath(new URL('../../build/dev', import.meta.url));

function run(program, ...words) {
	const done = spawnSync(`${build}/${program}`, words, { encoding: 'utf8', maxBuffer: 1 << 26 });
	assert.equal(done.status, 0, done.error ?? done.stderr);
	return done.stdout;
}

const document = JSON.parse(run('compute-connector', 'print', 'openapi'));
const tools = JSON.parse(run('test_gen', 'mcp-tools'));
const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];

// Strict: an unknown keyword, a misplaced one or a doubtful schema is an error.
function newAjv() {
	const ajv = new Ajv({ strict: true, allowUnionTypes: true, allErrors: true });
	addFormats(ajv);
	ajv.addFormat('password', true);
	return ajv;
}

const ajv = newAjv();
ajv.addVocabulary(['components']);
ajv.addSchema({ $id: 'document', components: document.components });
const judge = (schema) => ajv.compile(schema.$ref ? { $ref: `document${schema.$ref}` } : schema);

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
	Object.entries(item).filter(([method]) => METHODS.includes(method))
		.map(([method, operation]) => ({ path, method, operation, where: `${method} ${path}` })));
const contents = operations.flatMap(({ operation, where }) => [
	...Object.entries(operation.requestBody?.content ?? {}).map(([type, media]) =>
		({ where: `${where} request ${type}`, media })),
	...Object.entries(operation.responses).flatMap(([status, response]) =>
		Object.entries(response.content ?? {}).map(([type, media]) =>
			({ where: `${where} ${status} ${type}`, type, status, media }))),
]);

function refsOf(value, found = []) {
	for (const [key, part] of Object.entries(value ?? {})) {
		if (key === '$ref' && typeof part === 'string')
			found.push(part);
		else if (part && typeof part === 'object')
			refsOf(part, found);
	}
	return found;
}

test('the document is valid OpenAPI 3.1', async () => {
	const validator = new Validator();
	const verdict = await validator.validate(structuredClone(document));
	assert.ok(verdict.valid, JSON.stringify(verdict.errors, null, 1));
	assert.equal(validator.version, '3.1');
});

test('the validator refuses a document that is broken', async () => {
	for (const spoil of [
		(d) => delete d.info,
		(d) => { d.paths['/mcp'].post.responses['200'] = {}; },
		(d) => { d.paths['/api/keys/{id}'].delete.parameters[0].in = 'body'; },
	]) {
		const copy = structuredClone(document);
		spoil(copy);
		assert.equal((await new Validator().validate(copy)).valid, false, String(spoil));
	}
});

// What importers of hosted assistants have published as their limits (docs/clients.md).
test('the document can be imported by hosted assistants', () => {
	assert.ok(operations.length <= 30);
	const described = (value, found = []) => {
		for (const [key, part] of Object.entries(value ?? {})) {
			if (key === 'description' && typeof part === 'string') found.push(part);
			else if (part && typeof part === 'object') described(part, found);
		}
		return found;
	};
	for (const { where, operation } of operations) {
		assert.match(operation.operationId, /^[a-zA-Z0-9_]{1,64}$/, where);
		assert.ok(operation.summary.length <= 300, where);
		assert.ok((operation.description ?? '').length <= 300, where);
		assert.match(operation.description ?? '.', /[.]$/, where);
		for (const text of described(operation.parameters)) assert.ok(text.length <= 700, where);
	}
	for (const [name, schema] of Object.entries(document.components.schemas))
		for (const text of described(schema)) assert.ok(text.length <= 700, name);
	assert.match(document.servers[0].url, /^https:/);
});

test('every reference is local and leads somewhere', () => {
	const refs = refsOf(document);
	assert.ok(refs.length > 50);
	for (const ref of new Set(refs)) {
		const [root, ...steps] = ref.split('/');
		assert.equal(root, '#');
		assert.ok(steps.reduce((at, step) => at?.[step], document), ref);
	}
});

test('no component is left over', () => {
	const used = new Set(refsOf(document));
	for (const name of Object.keys(document.components.schemas))
		assert.ok(used.has(`#/components/schemas/${name}`), name);
});

test('operation ids are unique', () => {
	const ids = operations.map(({ operation }) => operation.operationId);
	assert.deepEqual([...new Set(ids)], ids);
});

test('names in paths and path parameters are the same', () => {
	for (const { path, operation, where } of operations) {
		const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
		const declared = (operation.parameters ?? []).filter((p) => p.in === 'path').map((p) => p.name);
		assert.deepEqual(declared, inPath, where);
	}
});

test('every component compiles in strict mode', () => {
	for (const name of Object.keys(document.components.schemas))
		judge({ $ref: `#/components/schemas/${name}` });
});

test('every example is valid against its schema', () => {
	let seen = 0;
	for (const { where, media } of contents) {
		if (media.example === undefined)
			continue;
		const good = judge(media.schema);
		assert.ok(good(media.example), `${where}: ${ajv.errorsText(good.errors)}`);
		seen++;
	}
	assert.ok(seen > 100, `${seen} examples`);
});

test('examples with one wrong member are refused', () => {
	for (const { where, media } of contents.filter((c) => c.media.example !== undefined)) {
		const good = judge(media.schema);
		assert.equal(good({ ...media.example, unknown: 1 }), false, where);
		for (const name of Object.keys(media.example))
			assert.equal(good({ ...media.example, [name]: [[]] }), false, `${where} ${name}`);
	}
});

test('examples without a required member are refused', () => {
	for (const { where, media } of contents.filter((c) => c.media.example !== undefined)) {
		const schema = document.components.schemas[media.schema.$ref.split('/').at(-1)];
		const good = judge(media.schema);
		for (const name of schema.required) {
			const { [name]: _, ...rest } = media.example;
			assert.equal(good(rest), false, `${where} ${name}`);
		}
	}
});

test('examples inside of schemas are valid there', () => {
	let seen = 0;
	function walk(schema, where) {
		for (const example of schema?.examples ?? []) {
			const good = newAjv().compile(schema);
			assert.ok(good(example), where);
			seen++;
		}
		for (const [name, part] of Object.entries(schema?.properties ?? {}))
			walk(part, `${where}.${name}`);
		if (schema?.items)
			walk(schema.items, `${where}[]`);
	}
	for (const [name, schema] of Object.entries(document.components.schemas))
		walk(schema, name);
	assert.ok(seen > 5);
});

test('an answer of every error status is a problem whose example has that status', () => {
	for (const { where, type, status, media } of contents.filter((c) => /^[45]/.test(c.status ?? ''))) {
		if (where.startsWith('get /readyz'))
			continue;
		assert.equal(type, 'application/problem+json', where);
		assert.equal(media.schema.$ref, '#/components/schemas/Problem', where);
		assert.equal(String(media.example.status), status, where);
	}
});

test('the list of errors and the codes of problems are the same', () => {
	const codes = document['x-errors'].map((e) => e.code);
	assert.deepEqual(document.components.schemas.Problem.properties.code.enum, codes);
	assert.equal(new Set(codes).size, codes.length);
});

test('names, titles and descriptions of tools keep to the rules of MCP', () => {
	const names = tools.map((t) => t.name);
	assert.equal(new Set(names).size, names.length);
	for (const t of tools) {
		assert.match(t.name, /^[a-z_]{1,64}$/);
		assert.ok(t.title.length > 0 && t.title.length <= 64, t.name);
		assert.ok(t.description.length > 0 && t.description.length < 4096, t.name);
		assert.deepEqual(Object.keys(t.annotations),
			['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'], t.name);
		assert.ok(!(t.annotations.readOnlyHint && t.annotations.destructiveHint), t.name);
	}
});

test('schemas of tools compile in strict mode and have an object at their root', () => {
	for (const t of tools)
		for (const schema of [t.inputSchema, t.outputSchema]) {
			newAjv().compile(schema);
			assert.equal(schema.type, 'object', t.name);
			assert.equal(schema.additionalProperties, false, t.name);
			assert.deepEqual(refsOf(schema), [], t.name);
		}
});

test('a tool has the same schemas over MCP and REST', () => {
	for (const t of tools) {
		assert.deepEqual(document.components.schemas[`${t.name}_input`], t.inputSchema);
		assert.deepEqual(document.components.schemas[`${t.name}_output`], t.outputSchema);
		assert.equal(document.paths[`/api/run/${t.name}`].post.operationId, t.name);
	}
});
