// ./check live says what it would need, and that it did nothing (beside CC_DEV_JSON of this folder).

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';

const check = path.join(process.env.CC_ROOT, 'check');
const live = (args, env = {}) => spawnSync(check, ['live', ...args],
	{ encoding: 'utf8', env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env } });

describe('check live', () => {
	const needs = { vercel: ['VERCEL_TOKEN', 'VERCEL_TEAM_ID', 'VERCEL_PROJECT_ID'], e2b: ['E2B_API_KEY'],
		daytona: ['DAYTONA_API_KEY'], modal: ['MODAL_TOKEN_ID', 'MODAL_TOKEN_SECRET'],
		'modal-bridge': ['MODAL_BRIDGE_TOKEN', 'MODAL_BRIDGE_URL'],
		workers: ['WORKERS_BRIDGE_TOKEN', 'WORKERS_BRIDGE_URL'] };
	for (const [name, variables] of Object.entries(needs))
		test(`${name} without its key is skipped, and says why`, () => {
			const ran = live([name]);
			assert.equal(ran.status, 0, ran.stderr);
			assert.match(ran.stdout, new RegExp(`^live ${name}: skipped`));
			for (const variable of variables) assert.ok(ran.stdout.includes(variable));
		});

	test('a part of a key is not enough, and what is there is not printed', () => {
		const ran = live(['vercel'], { VERCEL_TOKEN: 'a-token-that-is-there', VERCEL_TEAM_ID: 'team' });
		assert.equal(ran.status, 0);
		assert.match(ran.stdout, /skipped.* VERCEL_PROJECT_ID /);
		assert.ok(!`${ran.stdout}${ran.stderr}`.includes('a-token-that-is-there'));
		assert.ok(!ran.stdout.includes('VERCEL_TOKEN'));
	});

	test('another word is an error that names those which can be asked', () => {
		for (const args of [[], ['tunnel'], ['nobody']]) {
			const ran = live(args);
			assert.equal(ran.status, 2);
			assert.match(ran.stderr, /vercel, e2b, daytona, modal, modal-bridge, workers/);
		}
	});
});
