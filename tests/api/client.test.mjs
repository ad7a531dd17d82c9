// A client that a public generator makes from the OpenAPI document compiles in strict mode and runs the
// main job; what the document forbids does not compile.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { request } from '../lib/client.mjs';
import { dev } from '../lib/instance.mjs';

const run = promisify(execFile);
const here = import.meta.dirname;
const modules = path.join(here, '../node_modules');
let dir;

const OPTIONS = ['--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--module', 'nodenext',
	'--moduleResolution', 'nodenext', '--skipLibCheck', '--types', 'node'];

const tsc = (file, ...more) => run(process.execPath,
	[path.join(modules, 'typescript/bin/tsc'), ...OPTIONS, ...more, file], { cwd: dir })
	.then(() => '', (error) => error.stdout || String(error));

before(async () => {
	dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-generated-'));
	fs.symlinkSync(modules, path.join(dir, 'node_modules'));
	fs.writeFileSync(path.join(dir, 'package.json'), '{"type":"module"}');
	fs.writeFileSync(path.join(dir, 'openapi.json'), (await request(`${dev.url}/openapi.json`)).text);
	await run(process.execPath, [path.join(modules, 'openapi-typescript/bin/cli.js'), 'openapi.json', '-o', 'generated.d.ts'],
		{ cwd: dir });
});

after(() => fs.rmSync(dir, { recursive: true, force: true }));

test('the program compiles and runs the main job', async () => {
	const text = fs.readFileSync(path.join(here, 'main-job.ts'), 'utf8');
	fs.writeFileSync(path.join(dir, 'main-job.ts'), text.replace("'./generated'", "'./generated.js'"));
	assert.equal(await tsc('main-job.ts'), '');
	const { stdout } = await run(process.execPath, ['main-job.js'],
		{ cwd: dir, env: { PATH: process.env.PATH, BASE: dev.url, KEY: dev.key, NODE_EXTRA_CA_CERTS: dev.ca } });
	assert.deepEqual(JSON.parse(stdout),
		{ verdict: 'offload', outcome: 'failed', stdout: 'hello', exit: 3, field: 'job_id', status: 400 });
});

for (const [what, line, complaint] of [
	['an argument of a wrong type', "await api.POST('/api/run/run_job', { body: { cmd: 1 } });", /cmd|number/],
	['a word that is not in the list', "await api.POST('/api/run/run_job', { body: { cmd: 'x', files: [{ path: 'a', content: '', encoding: 'rot13' }] } });", /rot13/],
	['a missing argument', "await api.POST('/api/run/get_job', { body: {} });", /job_id/],
	['an address that does not exist', "await api.POST('/api/run/nothing', { body: {} });", /nothing/],
	['a method that an address lacks', "await api.GET('/api/run/run_job');", /run_job|never/],
	['an outcome that does not exist', "const r = await api.POST('/api/run/get_job', { body: { job_id: 'x' } });\n"
		+ "if (r.data?.outcome === 'fine') console.log(1);", /overlap|fine/],
])
	test(`${what} does not compile`, async () => {
		fs.writeFileSync(path.join(dir, 'wrong.ts'), `import createClient from 'openapi-fetch';
import type { paths } from './generated.js';
const api = createClient<paths>({ baseUrl: 'x' });
${line}
`);
		assert.match(await tsc('wrong.ts', '--noEmit'), complaint);
	});
