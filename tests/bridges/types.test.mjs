// The bridges as programs: types against the vendor's own, versions that must agree, files that must be the same.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { createRequire } from 'node:module';

const here = import.meta.dirname;
const bridges = path.resolve(here, '../../providers/bridges');
const read = (name) => fs.readFileSync(path.join(bridges, name), 'utf8');
const pinned = JSON.parse(read('workers/package.json'));
const installed = JSON.parse(fs.readFileSync(path.resolve(here, '../package.json'))).devDependencies;

const compile = (...more) => spawnSync(process.execPath, [createRequire(import.meta.url).resolve('typescript/lib/tsc.js'), ...more], { encoding: 'utf8', cwd: here });

test('the Workers bridge fits the types of @cloudflare/sandbox and of the runtime', () => {
	const { status, stdout } = compile('-p', path.join(here, 'tsconfig.json'));
	assert.equal(status, 0, stdout);
});

test('a call that the SDK does not have is found by that', () => {
	const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'types-'));
	const real = path.resolve(here, '../node_modules/@cloudflare');
	try {
		fs.writeFileSync(path.join(dir, 'wrong.ts'), `import { getSandbox } from "@cloudflare/sandbox";
			import type { Env } from ${JSON.stringify(path.join(bridges, 'workers/src/registry'))};
			export const f = (env: Env) => getSandbox(env.Sandbox, "id").execute("true");`);
		fs.writeFileSync(path.join(dir, 'tsconfig.json'), JSON.stringify({
			extends: path.join(here, 'tsconfig.json'), include: [],
			files: [path.join(real, 'workers-types/index.d.ts'), path.join(bridges, 'workers/src/text.d.ts'), 'wrong.ts'],
		}));
		const { status, stdout } = compile('-p', dir);
		assert.notEqual(status, 0);
		assert.match(stdout, /wrong\.ts.*execute/);
		assert.equal(stdout.trim().split('\n').length, 1, stdout);
	} finally {
		fs.rmSync(dir, { recursive: true });
	}
});

test('all versions are exact, and those that are tried here', () => {
	for (const [name, version] of Object.entries({ ...pinned.dependencies, ...pinned.devDependencies })) {
		assert.match(version, /^\d+\.\d+\.\d+$/, name);
		if (installed[name]) assert.equal(version, installed[name], name);
	}
	assert.match(read('modal/requirements.txt'), /^modal==\d+\.\d+\.\d+\n$/);
});

test('image and SDK have one version', () => {
	assert.ok(read('workers/Dockerfile').includes(`FROM docker.io/cloudflare/sandbox:${pinned.dependencies['@cloudflare/sandbox']}\n`));
});

test('the deployment names every class of the program', () => {
	const config = JSON.parse(read('workers/wrangler.jsonc').replace(/^\s*\/\/.*$/gm, ''));
	assert.ok(fs.existsSync(path.join(bridges, 'workers', config.main)));
	const classes = config.durable_objects.bindings.map((b) => b.class_name).sort();
	assert.deepEqual(classes, ['Registry', 'Sandbox']);
	assert.deepEqual(config.migrations[0].new_sqlite_classes.sort(), classes);
	assert.deepEqual(config.containers.map((c) => c.class_name), ['Sandbox']);
	assert.ok(config.compatibility_flags.includes('nodejs_compat'));
});

test('both bridges run the same script, which is plain POSIX', () => {
	assert.equal(read('modal/box.sh'), read('workers/src/box.sh'));
	for (const shell of [['dash'], ['bash', '--posix'], ['busybox', 'sh']])
		assert.equal(spawnSync(shell[0], [...shell.slice(1), '-n', path.join(bridges, 'modal/box.sh')]).status, 0, shell[0]);
});
