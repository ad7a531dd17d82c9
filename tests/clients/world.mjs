// What the tests of real clients share: programs with an empty HOME, and the lines that ./run prints.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { dev, owner } from '../lib/instance.mjs';

const tests = path.dirname(import.meta.dirname);
export const programs = path.join(tests, 'node_modules/.bin');
export const url = `${dev.url}/mcp`;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Nobody ever made this key, but its form and its check digits are those of one. */
function strangeKey() {
	const head = `cc_live_${'0'.repeat(30)}`;
	let rest = crc32(head), tail = '';
	for (let i = 0; i < 6; i++, rest = Math.floor(rest / 62)) tail = BASE62[rest % 62] + tail;
	return head + tail;
}

/** A key that was good until now: { key, revoke() }. */
export async function passingKey() {
	const { json: { key, id } } = await owner().api('POST', '/api/keys', { kind: 'agent' });
	return {
		key,
		revoke: async () => {
			const { status, text } = await owner().api('DELETE', `/api/keys/${id}`);
			if (status !== 200) throw new Error(text);
		},
	};
}

export async function revokedKey() {
	const { key, revoke } = await passingKey();
	await revoke();
	return key;
}

/** Every key that must not be let in, and what is said of it. */
export const refusedKeys = async () => [['malformed', `cc_live_${'0'.repeat(36)}`, 'it does not have the form of a key'],
	['strange', strangeKey(), 'there is no such key'],
	['revoked', await revokedKey(), 'it was revoked']];

const homes = [];

/** An empty folder; all are removed by tidy(). */
export function freshHome() {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-client-'));
	homes.push(dir);
	return dir;
}

export function tidy() {
	for (const dir of homes) fs.rmSync(dir, { recursive: true, force: true });
}

/** What a program of the user's gets to see: nothing of our own environment but the CA. */
export const bare = (home, more = {}) => ({
	PATH: `${programs}:/usr/bin:/bin`,
	HOME: home,
	LANG: 'C.UTF-8',
	NODE_EXTRA_CA_CERTS: dev.ca,
	...more,
});

/** Runs a program to its end: { code, out, err }. Standard input is empty. */
export function run(command, args, { home = freshHome(), env = {}, ms = 180000 } = {}) {
	return new Promise((resolve, reject) => {
		const child = spawn(command, args, {
			cwd: home,
			env: bare(home, env),
			stdio: ['ignore', 'pipe', 'pipe'],
			detached: true,
		});
		const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), ms);
		const parts = { out: '', err: '' };
		child.stdout.on('data', (text) => { parts.out += text; });
		child.stderr.on('data', (text) => { parts.err += text; });
		child.on('error', reject);
		child.on('close', (code, signal) => {
			clearTimeout(timer);
			resolve({ code: code ?? signal, ...parts });
		});
	});
}

/** The two commands that ./run prints: { claude, curl }. */
export async function printedLines() {
	const root = path.dirname(tests);
	const script = `cd "$1" && . nginx/instance.sh && . nginx/first_job.sh &&
		instance_paths && ports_recall && connect_lines`;
	const { code, out, err } = await run('bash', ['-c', script, 'bash', root], {
		env: { CC_VAR: process.env.CC_VAR, CC_BUILD: process.env.CC_BUILD },
	});
	if (code !== 0) throw new Error(err);
	const find = (word) => out.split('\n').find((line) => line.includes(word)).trim();
	return { claude: find('claude mcp add'), curl: find('curl -sS'), all: out };
}
