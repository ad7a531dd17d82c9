// Everything that can be refused, with planted values where they do not belong. Each row gives a reply
// that is an error; none of them may repeat what it was sent, but for the name of the field that is wrong.

import assert from 'node:assert/strict';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const MCP = { ...JSON_TYPE, Accept: 'application/json, text/event-stream' };
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

/** Arguments that run_job refuses. */
function badArguments(bad, field, good) {
	return [
		{ ...good, [field]: bad },
		{ ...good, cmd: [bad] },
		{ ...good, cmd: { [field]: bad } },
		{ ...good, cmd: `${bad}${'x'.repeat(16001)}` },
		{ ...good, cmd: `${bad}\0` },
		{ ...good, provider: bad },
		{ ...good, key: bad },
		{ ...good, runtime: bad },
		{ ...good, template: bad },
		{ ...good, cwd: `/${bad}\n` },
		{ ...good, timeout_s: bad },
		{ ...good, env: { [`1${field}`]: bad } },
		{ ...good, env: { X: [bad] } },
		{ ...good, env: { X: `${bad}${'x'.repeat(100001)}` } },
		{ ...good, files: [{ path: `../${bad}`, content: bad }] },
		{ ...good, files: [{ path: `/${bad}`, content: bad }] },
		{ ...good, files: [{ path: 'x', content: `${bad}!`, encoding: 'base64' }] },
		{ ...good, files: [{ path: 'x', content: '', encoding: bad }] },
		{ ...good, files: [{ path: 'x', content: '', mode: bad.slice(0, 4) }] },
		{ ...good, files: [{ path: 'x', content: '', [field]: bad }] },
		{ ...good, files: bad },
		{ ...good, idempotency_key: `${bad} ${bad}` },
	];
}

async function refusedTools(stage) {
	const bad = stage.planted['bad argument'];
	const field = stage.planted['field name'];
	const refused = [
		...badArguments(bad, field, stage.job()).map((args) => ['run_job', args]),
		['get_job', { job_id: bad }],
		['cancel_job', { job_id: `job_${bad}` }],
		['check_memory', { job: 5, [field]: bad }],
		['provider_setup', { provider: bad }],
		['delete_provider_key', { name: bad }],
		['save_provider_key', { provider: bad, token: bad }],
		['save_provider_key', { provider: 'tunnel', token: bad }],
		['save_provider_key', { provider: 'tunnel', token: bad, bridge_url: `https://${bad}:1/ /` }],
		['save_provider_key', { provider: 'tunnel', token: bad, bridge_url: `file:///${bad}` }],
		['save_provider_key', { provider: 'tunnel', token: `${bad}\n`, bridge_url: stage.providers.first.url }],
		['save_provider_key', { provider: 'tunnel', token: bad, bridge_url: 'http://169.254.169.254/' }],
		['save_provider_key', { provider: 'tunnel', token: bad,
			bridge_url: `https://u:${stage.planted['password in an address']}@localhost/` }],
		['save_provider_key', { provider: 'tunnel', token: { [field]: bad }, bridge_url: 'https://x.example' }],
	];
	for (const [tool, args] of refused) {
		const rest = await stage.rest(stage.owner, tool, args, ['field name']);
		assert.ok(rest.status >= 400, `${tool} took ${JSON.stringify(args).slice(0, 200)}: ${rest.text}`);
		const mcp = await stage.mcp(stage.owner, tool, args, ['field name']);
		assert.ok(mcp.result?.isError ?? true, mcp.text);
	}
}

async function refusedBodies(stage) {
	const bad = stage.planted['bad argument'];
	const key = bearer(stage.owner.key);
	const bodies = [
		`{"cmd":"${bad}`,
		`{"cmd":"${bad}","cmd":"${bad}"}`,
		`{"${bad}":1,"${bad}":2}`,
		`{"cmd":${bad}}`,
		`${bad}`,
		`["${bad}"]`,
		Buffer.concat([Buffer.from(`{"cmd":"${bad}`), Buffer.from([0xff]), Buffer.from('"}')]),
		`{"cmd":"${bad}\\ud800"}`,
		`{"cmd":"${bad}","timeout_s":1e999}`,
		`${'['.repeat(40)}"${bad}"${']'.repeat(40)}`,
		`{"cmd":"${bad}"}${' '.repeat(5 << 20)}`,
	];
	for (const body of bodies) {
		for (const [path, type] of [['/api/run/run_job', JSON_TYPE], ['/mcp', MCP], ['/api/keys', JSON_TYPE]]) {
			const { status, json } =
				await stage.raw(`body at ${path}`, path, { headers: { ...key, ...type }, body });
			assert.ok(status >= 400 || json?.[0]?.error, `${path} took ${body.slice(0, 100)}`);
		}
	}
	const good = `{"cmd":"${bad}"}`;
	for (const headers of [{ 'Content-Type': `text/${bad}` }, { ...JSON_TYPE, 'Content-Encoding': bad },
		{ ...JSON_TYPE, Origin: `https://${bad}.example` }, { ...JSON_TYPE, 'Idempotency-Key': `${bad} ${bad}` }]) {
		const { status } = await stage.raw('headers', '/api/run/run_job', { headers: { ...key, ...headers }, body: good });
		assert.ok(status >= 400, JSON.stringify(headers));
	}
}

async function refusedMessages(stage) {
	const bad = stage.planted['bad argument'];
	const key = bearer(stage.owner.key);
	const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28',
		'io.modelcontextprotocol/clientCapabilities': {} };
	const messages = [
		[{ method: bad }],
		[{ method: 'tools/call', params: { name: bad, arguments: {} } }],
		[{ method: 'tools/call', params: { name: 'run_job', arguments: bad } }],
		[{ method: 'tools/call', params: bad }],
		[{ method: 'tools/list', params: { cursor: bad } }],
		[{ method: 'initialize', params: { protocolVersion: { [bad]: bad } } }],
		[{ method: 'tools/list', params: { _meta: meta } }, { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': bad }],
		[{ method: 'tools/call', params: { name: 'run_job', arguments: {}, _meta: meta } },
			{ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': bad }],
	];
	for (const [message, headers] of messages) {
		const reply = await stage.raw('message', '/mcp', { headers: { ...key, ...MCP, ...headers },
			body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }) });
		assert.ok(reply.json.error, reply.text);
	}
}

async function refusedCallers(stage) {
	const wrong = stage.planted['wrong key'];
	const body = JSON.stringify({ cmd: 'true' });
	const list = [`Bearer ${wrong}`, `Bearer cc_live_${wrong}`, `Bearer cc_live_${wrong}${'a'.repeat(20)}`,
		`Basic ${wrong}`, wrong, `Bearer ${stage.owner.key} ${wrong}`, [`Bearer ${stage.owner.key}`, `Bearer ${wrong}`]];
	for (const authorization of list) {
		for (const [path, type] of [['/api/run/run_job', JSON_TYPE], ['/mcp', MCP], ['/api/keys', JSON_TYPE]]) {
			const { status } = await stage.raw('wrong key', path,
				{ headers: { ...type, Authorization: authorization }, body });
			assert.ok([400, 401].includes(status), `${status} ${path} ${authorization}`);
		}
	}
	const query = await stage.raw('query', `/api/run/list_providers?key=${stage.planted.query}`,
		{ headers: JSON_TYPE, body: '{}' });
	assert.equal(query.status, 200, 'a query changes nothing');
	for (const call of ['rest', 'mcp']) {
		await stage[call](stage.nobody, 'run_job', stage.job());
		await stage[call](stage.nobody, 'save_provider_key', { provider: 'tunnel', token: wrong });
		await stage[call](stage.agent, 'save_provider_key', { provider: 'tunnel', token: wrong });
	}
}

async function refusedKeys(stage) {
	assert.equal((await stage.save('refuse')).json.code, 'key_refused');
	assert.equal((await stage.save('tell')).json.code, 'key_check_failed');
	assert.ok((await stage.save('redirect')).status >= 400);
	const railway = await stage.rest(stage.owner, 'save_provider_key',
		{ provider: 'railway', token: stage.planted['key of refuse'] });
	assert.ok(railway.status >= 400);
}

/** A free account, until its calls of the day are used up. */
async function refusedQuota(stage, free) {
	let last;
	for (let i = 0; i < 4; i += 1) {
		await stage.rest(free, 'run_job', stage.job({ key: undefined }));
		last = await stage.rest(free, 'check_memory', { job: stage.job().cmd, free_mb: 1, total_mb: 100 });
	}
	assert.equal(last.status, 429, last.text);
	const mcp = await stage.mcp(free, 'run_job', stage.job({ key: undefined }));
	assert.equal(mcp.result.isError, true);
}

export async function trouble(stage, free) {
	await refusedTools(stage);
	await refusedBodies(stage);
	await refusedMessages(stage);
	await refusedCallers(stage);
	await refusedKeys(stage);
	await refusedQuota(stage, free);
}
