// The acceptance list against a real service, with the key of the environment: what commands.mjs asks, and
// nothing that needs a service which can be spoilt. Run by ./check live PROVIDER, and not with the others.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ready, sql } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { commands } from './commands.mjs';
import { Place, Way } from './places.mjs';
import { Stage } from './stage.mjs';

const { env } = process;
const CREDENTIALS = {
	vercel: { token: env.VERCEL_TOKEN, team_id: env.VERCEL_TEAM_ID, project_id: env.VERCEL_PROJECT_ID },
	e2b: { token: env.E2B_API_KEY, api_url: env.E2B_API_URL },
	daytona: { token: env.DAYTONA_API_KEY, api_url: env.DAYTONA_API_URL },
	modal: { token: `${env.MODAL_TOKEN_ID}:${env.MODAL_TOKEN_SECRET}` },
	'modal-bridge': { token: env.MODAL_BRIDGE_TOKEN, bridge_url: env.MODAL_BRIDGE_URL },
	workers: { token: env.WORKERS_BRIDGE_TOKEN, bridge_url: env.WORKERS_BRIDGE_URL },
};

class Live extends Place {
	constructor(name) {
		super(name);
		this.provider = name.replace(/-bridge$/, '');
		this.credential = CREDENTIALS[name];
		this.token = this.credential.token;
	}

	use() {
		return ready();
	}

	async way(client) {
		client.saved ??= this.save(client, this.name);
		const saved = await client.saved;
		assert.equal(saved.status, 200, saved.text);
		return new Way(this, this.name, client);
	}

	save(client, name, more = {}) {
		return client.rest('save_provider_key', { provider: this.provider, name, ...this.credential, ...more });
	}

	submit(way, fn) {
		return fn();
	}

	creating() {
		return true; // nobody here knows, so a lost create is looked for as long as for everybody
	}

	async close() {}
}

const s = new Stage(new Live(env.CC_LIVE), { trouble: false });

describe(`live: ${env.CC_LIVE}`, () => {
	before(() => s.start());
	after(() => s.stop());
	commands(s);
	test('every sandbox is proven to be stopped', () => until('they are', async () => {
		const left = await sql("SELECT mark, state FROM sandbox WHERE state NOT IN ('stopped', 'absent')");
		return left.length === 0 || { missing: left };
	}, 300000));
});
