// provider_setup of every provider, as an agent reads it that has no key yet (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { account, dev } from '../lib/instance.mjs';
import { Client } from '../lib/client.mjs';

const top = path.resolve(import.meta.dirname, '../..');
const BRIDGES = { workers: 'providers/bridges/workers', modal: 'providers/bridges/modal' };
const client = new Client(dev.url);
const setups = {};
let providers;

before(async () => {
	({ providers } = (await client.rest('list_providers', {})).json);
	for (const { name } of providers) {
		const reply = await client.rest('provider_setup', { provider: name });
		assert.equal(reply.status, 200, reply.text);
		setups[name] = reply.json;
	}
});

/** The files of the folder that git knows. */
function tracked(folder) {
	const { stdout } = spawnSync('git', ['ls-files', folder], { cwd: top, encoding: 'utf8' });
	return stdout.split('\n').filter(Boolean).map((name) => path.relative(folder, name)).sort();
}

test('every provider is explained, and nobody needs a key for that', () => {
	assert.equal(providers.length, 12);
	for (const { name } of providers) {
		const s = setups[name];
		assert.equal(s.provider.name, name);
		assert.ok(s.steps.length >= 2, name);
		for (const word of ['billed', 'stays_billed', 'ends']) assert.match(s[word], /^[A-Z].*\.$/, `${name}: ${word}`);
		assert.ok(s.limits.length >= 1, name);
		for (const step of s.steps) if (step.link) assert.match(step.link, /^https:\/\/[^\s]+$/);
		assert.ok(s.steps.some((step) => step.text.includes('save_provider_key')), name);
	}
});

test('what is to be saved is exactly what save_provider_key takes', async () => {
	for (const { name, available, fields } of providers) {
		const { save_with: members } = setups[name];
		assert.deepEqual(members.filter((m) => m.required).map((m) => m.name).sort(), [...fields].sort(), name);
		assert.equal(new Set(members.map((m) => m.name)).size, members.length);
		if (!available) continue;
		const caller = await account('pro');
		for (const other of ['team_id', 'project_id', 'api_url', 'bridge_url'])
			if (!members.some((m) => m.name === other)) {
				const all = Object.fromEntries(members.filter((m) => m.required).map((m) => [m.name, m.name.endsWith('url') ? 'https://bridge.example' : 'x']));
				const reply = await caller.rest('save_provider_key', { provider: name, ...all, [other]: 'https://other.example' });
				assert.equal(reply.status, 400, `${name} ${other}: ${reply.text}`);
				assert.equal(reply.json.field, other, `${name}: ${reply.text}`);
			}
	}
});

test('a provider without a bridge shows none', () => {
	for (const { name } of providers) assert.equal(setups[name].bridge !== undefined, name in BRIDGES, name);
});

for (const [name, folder] of Object.entries(BRIDGES))
	test(`the bridge of ${name} is handed out whole, byte for byte`, () => {
		const { files, deploy } = setups[name].bridge;
		assert.deepEqual(files.map((f) => f.path).sort(), tracked(folder));
		for (const { path: at, content } of files)
			assert.ok(Buffer.from(content).equals(fs.readFileSync(path.join(top, folder, at))), at);
		assert.ok(!deploy.includes('\n') && /deploy/.test(deploy));
		assert.equal(spawnSync('sh', ['-n', '-c', deploy]).status, 0, deploy);
	});

test('an unknown provider is refused by name', async () => {
	for (const provider of ['nobody', '', 'Workers', 'workers ']) {
		const reply = await client.rest('provider_setup', { provider });
		assert.equal(reply.status, 400, reply.text);
		assert.equal(reply.json.field, 'provider');
	}
});

test('over MCP it is the same', async () => {
	assert.deepEqual((await client.mcp('provider_setup', { provider: 'workers' })).json, setups.workers);
});
