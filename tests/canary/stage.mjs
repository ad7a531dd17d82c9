// The actors of the search: accounts, providers and jobs that carry planted values, and every reply
// that anybody got.

import assert from 'node:assert/strict';
import { Client, request } from '../lib/client.mjs';
import { account, allowOrigins, dev, jobState } from '../lib/instance.mjs';
import { instanceRunner } from '../lib/runner.mjs';
import { until } from '../lib/wait.mjs';
import { core, Needles } from './needles.mjs';
import { Recorder } from './recorder.mjs';

const KINDS = ['command', 'env value', 'file content', 'file path', 'stdout', 'stderr', 'idempotency argument',
	'idempotency header', 'wrong key', 'bad argument', 'field name', 'password in an address', 'query'];
const PROVIDERS = ['first', 'second', 'refuse', 'tell', 'redirect'];
/** What the answer about a job may say to whom the output belongs. */
export const OUTPUT = ['stdout', 'stderr'];

const reversed = (text) => [...text].reverse().join('');

export class Stage {
	planted = Object.fromEntries(KINDS.map((kind) => [kind, core()]));
	replies = []; // { label, bytes, allowed }
	providers = {};

	async begin() {
		const runner = instanceRunner();
		for (const name of PROVIDERS) {
			this.planted[`key of ${name}`] = core();
			this.providers[name] = await new Recorder(runner, this.planted[`key of ${name}`]).start();
		}
		for (const name of ['refuse', 'tell', 'redirect']) this.providers[name].mode = name;
		this.providers.redirect.elsewhere = this.providers.second.url;
		await allowOrigins(Object.values(this.providers).map((provider) => provider.url));
		this.owner = await account('pro');
		const made = await this.owner.api('POST', '/api/keys', { name: 'of an agent' });
		assert.equal(made.status, 201, made.text);
		this.agent = new Client(dev.url, made.json.key);
		this.nobody = new Client(dev.url);
		this.planted['owner key'] = this.owner.key.slice(8);
		this.planted['agent key'] = this.agent.key.slice(8);
		this.planted['token of the runner'] = runner.token;
		this.needles = new Needles(this.planted);
	}

	async end() {
		await Promise.all(Object.values(this.providers).map((provider) => provider.stop()));
		this.needles?.done();
	}

	/** Remembers a reply; `allowed` names what it may hold. */
	async note(label, reply, allowed = []) {
		const got = await reply;
		const head = JSON.stringify(got.headers);
		this.replies.push({ label: `${label} (${got.status})`, head, text: got.text, allowed });
		return got;
	}

	rest(who, tool, args, allowed, options) {
		return this.note(`REST ${tool}`, who.rest(tool, args, options), allowed);
	}

	/** With a progress token, so that longer calls answer with a stream. */
	async mcp(who, tool, args, allowed) {
		const reply = await this.note(`MCP ${tool}`, who.api('POST', '/mcp', {
			jsonrpc: '2.0',
			id: 1,
			method: 'tools/call',
			params: { name: tool, arguments: args, _meta: { progressToken: 'p' } },
		}, { headers: { Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-11-25' } }),
		allowed);
		const last = reply.json ?? JSON.parse(reply.text.trim().split('\ndata: ').pop());
		return { ...reply, result: last.result, job: last.result?.structuredContent };
	}

	save(name, more = {}) {
		return this.rest(this.owner, 'save_provider_key', { provider: 'tunnel', name,
			token: this.planted[`key of ${name}`], bridge_url: this.providers[name].url, ...more });
	}

	/** Arguments of a job that carries every planted value. */
	job({ tail = 'exit 0', ...more } = {}) {
		const { planted } = this;
		return {
			cmd: `CANARY=${planted.command} npm test --quiet >/dev/null 2>&1; rev <out.txt; rev <err.txt >&2; ${tail}`,
			env: { SECRET: planted['env value'] },
			files: [
				{ path: 'out.txt', content: `${reversed(planted.stdout)}\n` },
				{ path: 'err.txt', content: `${reversed(planted.stderr)}\n` },
				{ path: `${planted['file path']}/secret.txt`, content: planted['file content'] },
			],
			key: 'first',
			wait_s: 100,
			...more,
		};
	}

	runs(id) {
		return until('the job runs', async () => await jobState(id) === 'running', 60000);
	}

	/** A raw request, whose reply is remembered. */
	raw(label, path, { method = 'POST', headers = {}, body } = {}) {
		return this.note(label, request(`${dev.url}${path}`, { method, headers, body }));
	}
}
