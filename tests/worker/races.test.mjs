// The worker core under the thread sanitizer: everything at once, for some seconds. Builds what it
// needs (two small programs) in the folder of the preset, or in WORKER_TSAN_BUILD.
import test from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const top = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const build = process.env.WORKER_TSAN_BUILD ?? join(top, 'build', 'tsan');
execFileSync('cmake', ['--preset', 'tsan', '-B', build], { cwd: top, stdio: 'pipe' });
execFileSync('cmake', ['--build', build, '--target', 'worker_fixture', 'pool_races'], { cwd: top, stdio: 'pipe' });
process.env.WORKER_FIXTURE = join(build, 'worker_fixture');
const { until, withService } = await import('./harness.mjs');

test('no race in the pool', () => {
  const r = spawnSync(join(build, 'pool_races'), { encoding: 'utf8', timeout: 60000 });
  assert.equal(r.status, 0, r.stdout + r.stderr);
  assert.ok(!r.stderr.includes('ThreadSanitizer'), r.stderr);
});

test('no race between requests, clients that leave, refusals, jobs, a reload and the drain', async () => {
  const end = await withService({ FX_WORKERS: '2', FX_THREADS: '24', FX_QUEUE: '8' }, async (s) => {
    const seen = {};
    let go = true;
    let rounds = 0;
    const ask = async (path, more) => {
      const { status } = await s.ask(path, more);
      seen[status] = (seen[status] ?? 0) + 1;
    };
    const body = Buffer.alloc(30000, 'r');
    const clients = Array.from({ length: 24 }, async (_, i) => {
      for (; go; rounds++) {
        if (i % 8 === 0) {
          const c = s.begin(i ? '/hold' : '/sleep?20');
          await new Promise((r) => setTimeout(r, 1 + (rounds % 9)));
          c.leave();
        } else if (i === 1) await ask('/figures');
        else if (i === 2) await ask('/job');
        else if (i === 3) await ask('/stuck?15');
        else if (i === 4) await ask('/release');
        else if (i % 8 === 5) await ask('/nowhere', { method: 'POST', body });
        else if (i % 8 === 6) await ask('/sleep?3');
        else await ask('/body', { method: 'POST', body });
      }
    });
    await until(() => rounds > 1500, 'enough of everything');
    s.hup();
    await s.logged('master.reload', { result: 'done' });
    const at = rounds;
    await until(() => rounds > at + 1000, 'as much again');
    go = false;
    await Promise.all(clients);
    // Full pools answer 503; nothing breaks and nothing else is answered.
    assert.deepEqual(Object.keys(seen).filter((k) => !['200', '404', '503'].includes(k)), []);
    assert.ok(seen[200] > 500);
  });
  assert.deepEqual(end, { code: 0, signal: null });
});
