// Callers in every state that the server tells apart. Each is made when a case first asks for it.
import { admin, dev, runner, sql } from './instance.mjs';
import { send } from './send.mjs';

const JSON_TYPE = { 'Content-Type': 'application/json' };

async function api(caller, method, path, value) {
	const body = value === undefined ? undefined : Buffer.from(JSON.stringify(value));
	const headers = { ...(body ? JSON_TYPE : {}), ...headersOf(caller) };
	const answer = await send({ method, path, headers, body, from: caller.from });
	if (answer.status >= 300)
		throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
	return JSON.parse(answer.text);
}

export function headersOf(caller) {
	return caller.token === undefined ? {} : { Authorization: `Bearer ${caller.token}` };
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

// The 16 bytes behind an id such as acc_..., as the database has them.
function idBytes(text) {
	let bits = '';
	for (const c of text.slice(4))
		bits += BASE32.indexOf(c).toString(2).padStart(5, '0');
	return `X'${bits.slice(0, 128).match(/.{4}/g).map((b) => parseInt(b, 2).toString(16)).join('')}'`;
}

function proAccount() {
	const { account, token } = JSON.parse(admin('account', 'create', '--plan', 'pro', '--json'));
	return { account, token };
}

async function freeAccount() {
	const { account, key } = await api({}, 'POST', '/api/key');
	return { account, token: key };
}

// The operator's command for one, and the same effect for the many that are needed only once.
async function freshAccount() {
	const owner = await freeAccount();
	await sql(`UPDATE account SET plan = 'pro' WHERE id = ${idBytes(owner.account)};`);
	return owner;
}

async function keyOf(owner, wish) {
	const made = await api(owner, 'POST', '/api/keys', wish);
	return { account: owner.account, token: made.key, id: made.id };
}

// Of today and of tomorrow, so that it is also true when midnight passes.
function useUp({ account }, n) {
	const id = idBytes(account);
	return sql(`INSERT INTO usage_day (account, day, n)
		VALUES (${id}, UTC_DATE(), ${n}), (${id}, UTC_DATE() + INTERVAL 1 DAY, ${n});`);
}

async function withRunner(caller) {
	await api(caller, 'POST', '/api/run/save_provider_key',
		{ provider: 'tunnel', name: 'this-computer', token: runner.token, bridge_url: runner.url });
	return caller;
}

const makers = {
	none: () => ({}),
	free: freeAccount,
	pro: proAccount,
	runner: () => ({ account: dev.account, token: dev.key }), // has a saved key for the runner
	many_keys: freeAccount, // makes API keys, which no case counts
	agent: async () => keyOf(await caller('pro'), { kind: 'agent', name: 'an agent' }),
	free_agent: async () => keyOf(await caller('free'), { kind: 'agent' }),
	runner_agent: async () => keyOf(await caller('runner'), { kind: 'agent' }),
	revoked: async () => {
		const owner = await caller('pro');
		const key = await keyOf(owner, { kind: 'owner' });
		await api(owner, 'DELETE', `/api/keys/${key.id}`);
		return key;
	},
	expired: async () => {
		const key = await keyOf(await caller('pro'), { kind: 'owner', expires_in_s: 60 });
		await sql(`UPDATE token SET expires_at = created_at + 1 WHERE id = ${idBytes(key.id)};`);
		return key;
	},
	deleted: async () => {
		const owner = await freshAccount();
		await api(owner, 'DELETE', '/api/account');
		return owner;
	},
	used_up: async () => {
		const owner = await freshAccount();
		await useUp(owner, 50000);
		return owner;
	},
	free_used_up: async () => {
		const owner = await freeAccount();
		await useUp(owner, 500);
		return owner;
	},
	almost_used_up: async () => {
		const owner = await freeAccount();
		await useUp(owner, 499);
		return owner;
	},
	// Its data key can not be opened.
	sealed: async () => {
		const owner = await freshAccount();
		await sql(`UPDATE data_key SET wrapped = REVERSE(wrapped) WHERE account = ${idBytes(owner.account)};`);
		return owner;
	},
	// The address 127.0.0.9 has made all its calls and accounts of today.
	address_used_up: async () => {
		const known = (await sql('SELECT HEX(address) FROM address_day;')).trim().split('\n');
		const here = { from: '127.0.0.9' };
		for (const path of ['/api/run/list_providers', '/api/key'])
			await send({ method: 'POST', path, from: here.from });
		const list = [...known, ''].map((hex) => `'${hex}'`).join(',');
		await sql(`UPDATE address_day SET n = 1000000 WHERE HEX(address) NOT IN (${list});`);
		return here;
	},
	// New for every run of a case that changes something.
	fresh: freshAccount,
	fresh_free: freeAccount,
	// Has a key called this-computer of a provider that this version does not connect.
	fresh_unconnected: async () => {
		const owner = await withRunner(await freshAccount());
		await sql(`UPDATE provider_key SET provider = 'runloop' WHERE account = ${idBytes(owner.account)};`);
		return owner;
	},
	fresh_runner: async () => withRunner(await freshAccount()),
};
const NEW_EACH_TIME = ['fresh', 'fresh_free', 'fresh_runner', 'fresh_unconnected', 'almost_used_up'];
const made = new Map();

// A caller in the named state; `run` keeps those that are new for each run of a case.
export async function caller(state, run = new Map()) {
	const kept = NEW_EACH_TIME.includes(state) ? run : made;
	if (!kept.has(state)) {
		if (!(state in makers))
			throw new Error(`no state is called ${state}`);
		kept.set(state, Promise.resolve(makers[state]()));
	}
	return kept.get(state);
}
