// docs/clients.md and the skill say what is true: snippets parse, what is called tested works as it stands,
// tools and arguments exist.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { dev } from '../lib/instance.mjs'; // CC_DEV_JSON
import { request } from '../lib/client.mjs';
import { freshHome, run, tidy } from './world.mjs';

const docs = path.join(import.meta.dirname, '../../docs');
const clients = fs.readFileSync(path.join(docs, 'clients.md'), 'utf8');
const skill = fs.readFileSync(path.join(docs, 'skill/compute-connector/SKILL.md'), 'utf8');
const host = new URL(dev.url).host;
after(tidy);

const section = (title) => clients.split(/^## /m).find((part) => part.startsWith(title));
const blocks = (text, kind) => [...text.matchAll(new RegExp(`\`\`\`${kind}\n([^]*?)\`\`\``, 'g'))].map(([, code]) => code);
const here = (text) => text.replaceAll('HOST', host);

describe('docs/clients.md', () => {
	test('every JSON snippet parses and leads to /mcp', () => {
		const found = blocks(clients, 'json');
		assert.ok(found.length >= 5);
		for (const code of found) {
			JSON.parse(code);
			assert.match(code, /https:\/\/HOST\/mcp"/);
		}
	});

	test('no snippet holds a key', () => assert.doesNotMatch(clients, /cc_live_/));

	test('the line for Claude Code connects', async () => {
		const home = freshHome();
		const env = { COMPUTE_CONNECTOR_KEY: dev.key };
		const added = await run('bash', ['-c', here(blocks(section('Claude Code'), 'sh')[0])], { home, env });
		assert.equal(added.code, 0, added.out + added.err);
		const list = await run('claude', ['mcp', 'list'], { home, env });
		assert.match(list.out, /compute-connector: .* \u2714 Connected/, list.out + list.err);
	});

	for (const [title, env] of [['Claude Code', { COMPUTE_CONNECTOR_KEY: dev.key }], ['Any client', {}]])
		test(`the settings under "${title}" connect`, async () => {
			const home = freshHome();
			const { mcpServers } = JSON.parse(here(blocks(section(title), 'json')[0]).replace('Bearer KEY', `Bearer ${dev.key}`)
				.replace('"npx"', '"mcp-remote"').replace('"-y", "mcp-remote@0.15.1", ', ''));
			const text = JSON.stringify(mcpServers['compute-connector']);
			const added = await run('claude', ['mcp', 'add-json', 'compute-connector', text], { home, env });
			assert.equal(added.code, 0, added.out + added.err);
			const list = await run('claude', ['mcp', 'list'], { home, env });
			assert.match(list.out, /compute-connector: .* \u2714 Connected/, list.out + list.err);
		});
});

describe('the skill', async () => {
	const document = (await request(`${dev.url}/openapi.json`)).json;
	const members = new Set(Object.values(document.components.schemas)
		.flatMap((schema) => Object.keys(schema.properties ?? {})).concat(['path', 'content', 'encoding']));
	const words = new Set(document.paths['/api/run/get_job'].post.responses[200]
		&& Object.values(document.components.schemas.get_job_output.properties).flatMap((p) => p.enum ?? []));

	test('has the head that agents look for', () => {
		const head = /^---\nname: compute-connector\ndescription: (.{50,1024})\n---\n/.exec(skill);
		assert.ok(head);
	});

	test('names only tools, arguments and results that exist', () => {
		const tools = Object.keys(document.paths).map((p) => p.split('/').at(-1));
		const codes = [...skill.matchAll(/`([a-z][a-z_]+)(?:: ?([a-z_]+))?`/g)];
		assert.ok(codes.length > 20);
		const known = new Set([...tools, ...members, ...words, 'compute-connector', 'run_local', 'offload', 'stderr']);
		for (const [, name, value] of codes) {
			assert.ok(known.has(name), `${name} is nothing`);
			if (value) assert.ok(known.has(value) || ['base64', 'true'].includes(value), `${value} is nothing`);
		}
	});

	test('tells every outcome', () => {
		for (const outcome of document.components.schemas.get_job_output.properties.outcome.enum.filter(Boolean))
			assert.match(skill, new RegExp(`\`${outcome}\``), outcome);
	});
});
