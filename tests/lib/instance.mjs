// The private instance that ./check started for a suite: its services, database, settings and
// processes.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { certificate } from '../simulators/lib.mjs';
import { Client } from './client.mjs';
import { Query } from './query.mjs';
import { until } from './wait.mjs';

const run = promisify(execFile);

export const dev = JSON.parse(fs.readFileSync(process.env.CC_DEV_JSON, 'utf8'));
const script = process.env.CC_INSTANCE;
const varDir = path.dirname(fs.realpathSync(process.env.CC_DEV_JSON));
export const state = path.dirname(path.dirname(dev.ca));
export const configFile = path.join(state, 'etc/connector.ini');

const setting = (name) =>
	new RegExp(`^${name} = (.*)$`, 'm').exec(fs.readFileSync(configFile, 'utf8'))?.[1];

/** start, stop, restart, kill a service of the instance; pid gives its number. */
export async function service(verb, name) {
	const env = { ...process.env, CC_VAR: varDir, CC_BUILD: process.env.CC_BUILD };
	const { stdout } = await run(script, [verb, name], { env });
	return stdout.trim();
}

/** Pid of a service and the time of its birth, as it was started last. */
const started = (name) => fs.readFileSync(path.join(state, 'pids', name), 'utf8').trim().split(' ');

/** Of a service as it was started last; it may be dead. */
export const pidOf = (name) => Number(started(name)[0]);

/** Of a service that lives. */
export function servicePid(name) {
	const [pid, born] = started(name);
	const stat = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' '); // from the third field on
	if (stat[0] === 'Z' || stat[19] !== born) throw new Error(`${name} does not run`);
	return Number(pid);
}

const query = new Query(() => ({ socket: dbSocket(), password: setting('password') }));

/** Rows of a query (query.mjs). */
export const sql = (text) => query.rows(text);

function dbSocket() {
	const database = fs.readFileSync(configFile, 'utf8').split('[database]')[1];
	return /^socket = (.*)$/m.exec(database)[1];
}

/** First column of the first row. */
export const sqlOne = async (query) => (await sql(query))[0]?.[0];

/** A condition on the id column for an id as callers see it (job_..., acc_...). */
export function idHex(text) {
	const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
	let bits = '';
	for (const c of text.replace(/^[a-z]+_/, ''))
		bits += alphabet.indexOf(c).toString(2).padStart(5, '0');
	return `x'${BigInt(`0b${bits.slice(0, 128)}`).toString(16).padStart(32, '0')}'`;
}

/** How the programs of the connector are started: as their user, with nothing of our environment but what the
 * sanitizers and the seams of debug builds read. */
function asDaemon(more = {}) {
	const { uid, gid } = fs.statSync(configFile);
	const kept = Object.entries(process.env).filter(([name]) => /^([AUTL]+SAN_OPTIONS|CC_FAIL_ALLOCATION|CC_DB_FAULT)$/.test(name));
	return { uid, gid, env: { PATH: process.env.PATH, ...Object.fromEntries(kept), ...more } };
}

/** Runs an operator command of the connector; gives what it printed. */
export async function admin(...args) {
	const { stdout } = await run(path.join(state, 'bin/compute-connector'), ['admin', ...args, '--config', configFile], asDaemon());
	return stdout;
}

/** A caller on an account of its own. */
export async function account(plan = 'pro') {
	const made = JSON.parse(await admin('account', 'create', '--plan', plan, '--json'));
	const client = new Client(dev.url, made.token, { wait_s: 200 });
	client.account = made.account;
	return client;
}

export const owner = () => new Client(dev.url, dev.key);

/** The connector may call these origins besides the instance's runner, and no others (a line of the
 * settings is short); takes effect with its restart. */
export async function allowOrigins(origins) {
	const text = fs.readFileSync(configFile, 'utf8');
	fs.writeFileSync(configFile, text.replace(/^(allowed_origins = [^,\n]*).*$/m,
		(line, first) => [first, ...origins].join(',')));
	await service('restart', 'connector');
	await ready();
}

/** The connector calls these simulators ({ vercel: place, ... }) in place of the real providers, and may
 * be given their addresses by users as well; takes effect with its restart. */
export async function useSimulators(places) {
	const bundle = path.join(state, 'tls', 'with-simulators.pem');
	fs.writeFileSync(bundle, fs.readFileSync(dev.ca, 'utf8') + fs.readFileSync(certificate().file, 'utf8'));
	// The address of a bridge is part of its key.
	const list = Object.entries(places).filter(([, place]) => !place.credential?.bridge_url)
		.map(([name, { base }]) => `${name}=${base}`);
	const text = fs.readFileSync(configFile, 'utf8').replace(/^provider_urls = .*\n/m, '');
	fs.writeFileSync(configFile, text.replace(/^ca_extra = .*$/m,
		`ca_extra = ${bundle}${list.length ? `\nprovider_urls = ${list.join(',')}` : ''}`));
	await allowOrigins(Object.values(places).map(({ base }) => new URL(base).origin));
}

export const ready = () => until('the connector is ready', async () =>
	(await new Client(dev.url).api('GET', '/readyz')).status === 200);

/** Processes of the connector by role: { worker: [pid...], keeper: [pid...] }. */
export async function children() {
	const master = await servicePid('connector');
	const found = { worker: [], keeper: [] };
	for (const pid of childrenOf(master)) {
		const role = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1];
		found[role]?.push(pid);
	}
	return found;
}

export function childrenOf(pid) {
	try {
		return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')
			.filter(Boolean).map(Number);
	} catch {
		return [];
	}
}

/** pid of the process that drives a job, 0 when nobody does. */
export async function driverOf(jobId) {
	const pid = await sqlOne(`SELECT p.pid FROM job j JOIN process p ON p.id = j.driver
		WHERE j.id = ${idHex(jobId)}`);
	return Number(pid ?? 0);
}

export const jobState = (jobId) => sqlOne(`SELECT state FROM job WHERE id = ${idHex(jobId)}`);

/** The installation's mark, which stands in every sandbox id. */
export const mark = async () => `cc-${await sqlOne('SELECT mark FROM installation')}-`;

/** A second group of connector processes whose clock differs, on a socket of its own. Its keeper is
 * held, because to it everybody else is silent or from the future: keeper('SIGCONT') lets it go. */
export async function shifted(seconds) {
	const dir = fs.mkdtempSync(path.join(path.dirname(dbSocket()), 'shift-'));
	const socket = path.join(dir, 'fcgi.sock');
	const ini = path.join(state, 'etc', `shifted-${path.basename(dir)}.ini`);
	const stat = fs.statSync(configFile);
	fs.chownSync(dir, stat.uid, stat.gid);
	fs.writeFileSync(ini, fs.readFileSync(configFile, 'utf8')
		.replace(/^(\[server\]\n(?:.*\n)*?)socket = .*$/m, `$1socket = ${socket}`), { mode: 0o600 });
	fs.chownSync(ini, stat.uid, stat.gid);
	const log = fs.openSync(path.join(state, 'log', 'connector.log'), 'a');
	const child = spawn(path.join(state, 'bin/compute-connector'), ['serve', '--config', ini], {
		...asDaemon({ CC_CLOCK_SHIFT_S: String(seconds) }),
		detached: true,
		stdio: ['ignore', log, log],
	});
	fs.closeSync(log);
	const ended = new Promise((resolve) => child.on('exit', resolve));
	const keeper = await until('it has a keeper', () => childrenOf(child.pid).find((pid) =>
		fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] === 'keeper'));
	process.kill(keeper, 'SIGSTOP');
	return {
		socket,
		keeper: (signal) => process.kill(keeper, signal),
		async stop() {
			process.kill(keeper, 'SIGCONT');
			child.kill('SIGTERM');
			await ended;
			fs.rmSync(dir, { recursive: true });
			fs.rmSync(ini);
		},
	};
}
