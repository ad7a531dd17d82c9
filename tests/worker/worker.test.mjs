// The worker core behind a real nginx: kept connections, bodies, clients that leave, full pools,
// restarts, reloads, drains, hostile peers. Waits are for conditions; nothing is asserted about speed.
import test from 'node:test';
import assert from 'node:assert/strict';
import http from 'node:http';
import { copyFileSync, rmSync, writeFileSync, renameSync, statSync } from 'node:fs';
import { beginRecord, ending, fnv, pair, record, Service, until, withService } from './harness.mjs';

const clean = { code: 0, signal: null };
const params = (...list) => record(4, 1, Buffer.concat(list));
const headOf = (path, flags) => Buffer.concat([beginRecord(flags), params(pair('DOCUMENT_URI', path)), params(), record(5, 1, Buffer.alloc(0))]);

// `clients` loops that ask until stopped; counts answers by status.
function load(s, clients, ask) {
  const seen = {};
  let go = true;
  const agent = new http.Agent({ keepAlive: true, maxSockets: clients });
  const loops = Array.from({ length: clients }, async () => {
    while (go) {
      const { status } = await ask(agent);
      seen[status] = (seen[status] ?? 0) + 1;
    }
  });
  return { seen, total: () => Object.values(seen).reduce((a, b) => a + b, 0),
    stop: async () => { go = false; await Promise.all(loops); agent.destroy(); return seen; } };
}

test('requests: kept connections, sizes, bodies', async (t) => {
  const end = await withService({}, async (s) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

    await t.test('thousands over kept connections', async () => {
      const l = load(s, 32, (a) => s.ask('/quick', { agent: a }));
      await until(() => l.total() >= 3000, '3000 answers');
      assert.deepEqual(Object.keys(await l.stop()), ['200']);
    });
    await t.test('parameters that end anywhere around the 8 KiB buffer', async () => {
      for (let n = 7880; n < 8200; n++) {
        const r = await s.ask('/pad', { method: 'POST', body: 'unread', headers: { 'X-Pad': 'p'.repeat(n) }, agent });
        assert.deepEqual([r.status, r.body], [200, String(n)]);
      }
    });
    await t.test('bodies up to 4 MiB arrive whole', async () => {
      for (const n of [0, 1, 8183, 8184, 8191, 8192, 8193, 65535, 65536, 1 << 20, 4 << 20]) {
        const body = Buffer.alloc(n, 'compute');
        const r = await s.ask('/body', { method: 'POST', body, agent });
        assert.deepEqual([r.status, r.body], [200, `${n} ${fnv(body)}`]);
      }
    });
    await t.test('a body of unknown length arrives whole', async () => {
      const r = await new Promise((resolve, reject) => {
        const q = http.request({ host: '127.0.0.1', port: s.port, path: '/body', method: 'POST' }, (res) => {
          let text = '';
          res.on('data', (d) => { text += d; }).on('end', () => resolve(text));
        }).on('error', reject);
        for (let i = 0; i < 40; i++) q.write('x'.repeat(5000));
        q.end();
      });
      assert.equal(r, `200000 ${fnv(Buffer.alloc(200000, 'x'))}`);
    });
    await t.test('a body that the handler leaves unread spoils nothing', async () => {
      for (let i = 0; i < 20; i++) {
        const r = await s.ask('/nowhere', { method: 'POST', body: Buffer.alloc(i % 2 ? 4 << 20 : 300000), agent });
        assert.equal(r.status, 404);
        assert.equal((await s.ask('/quick', { agent })).body, 'ok');
      }
    });
    await t.test('a body over the limit is refused by nginx', async () => {
      assert.equal((await s.ask('/body', { method: 'POST', body: Buffer.alloc((4 << 20) + 1) })).status, 413);
    });
    await t.test('a reply of 4 MiB arrives whole', async () => {
      const r = await s.ask(`/big?${4 << 20}`, { agent });
      assert.equal(r.body.length, 4 << 20);
    });
    agent.destroy();
  });
  assert.deepEqual(end, clean);
});

test('a client that leaves is seen by its handler, and only by its own', async () => {
  await withService({ FX_WORKERS: '1' }, async (s) => {
    const stays = s.begin('/hold');
    await s.noted('holding', 1);
    const leaves = s.begin('/hold');
    await s.noted('holding', 2);
    leaves.leave();
    await s.noted('gone', 1);
    assert.equal(s.notes('released').length, 0);
    await s.ask('/release');
    assert.equal((await stays.answer).body, 'released');
    assert.equal(s.notes('gone').length, 1);
  });
});

test('clients that leave at any moment never hold a thread', async () => {
  await withService({ FX_WORKERS: '1', FX_THREADS: '16' }, async (s) => {
    for (let round = 0; round < 10; round++) {
      const many = Array.from({ length: 12 }, () => s.begin(round % 2 ? '/hold' : '/sleep?5'));
      if (round % 3) await new Promise((r) => setImmediate(r));
      for (const m of many) m.leave();
    }
    await until(async () => JSON.parse((await s.ask('/figures')).body).running === 1, 'only the asking one runs');
    await until(async () => {
      await s.ask('/release');
      return s.notes('holding').length === s.notes('gone').length + s.notes('released').length;
    }, 'every holder ended');
    assert.equal((await s.ask('/quick')).status, 200);
  });
});

test('full threads and a full queue are answered 503, and the queue is served later', async () => {
  await withService({ FX_WORKERS: '1', FX_THREADS: '4', FX_QUEUE: '3' }, async (s) => {
    const holders = [1, 2, 3].map(() => s.begin('/hold')); // 3 of 4: one is kept for drivers
    await s.noted('holding', 3);
    const queued = [1, 2, 3].map(() => s.begin('/quick'));
    const refused = await until(async () => {
      const r = await s.ask('/quick', { method: 'POST', body: Buffer.alloc(1 << 20) });
      return r.status === 503 && r;
    }, 'a refusal');
    assert.equal(refused.headers['retry-after'], '2');
    assert.equal(refused.body, 'busy');
    const l = load(s, 8, (a) => s.ask('/quick', { agent: a }));
    await until(() => l.total() > 500, 'many refusals');
    assert.deepEqual(Object.keys(await l.stop()), ['503']);
    for (const h of holders) h.leave();
    for (const q of queued) assert.ok([200, 503].includes((await q.answer).status));
    assert.equal((await s.ask('/quick')).status, 200);
    assert.ok(JSON.parse((await s.ask('/figures')).body).refused > 500);
  });
});

test('a request that finds no thread for long is answered 503, not left hanging', async () => {
  await withService({ FX_WORKERS: '1', FX_THREADS: '2' }, async (s) => {
    const holder = s.begin('/hold');
    await s.noted('holding');
    assert.equal((await s.ask('/quick')).status, 503); // after the queue's longest wait
    holder.leave();
    await s.noted('gone');
    assert.equal((await s.ask('/quick')).status, 200);
  });
});

test('drivers are bounded, told when there are too many, and leave threads for requests', async () => {
  await withService({ FX_WORKERS: '1', FX_THREADS: '8', FX_QUEUE: '2' }, async (s) => {
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push((await s.ask('/job')).body);
    assert.deepEqual(answers, [...Array(8).fill('started'), 'full', 'full']); // 6 run, 2 wait
    await s.noted('driving', 6);
    const holder = s.begin('/hold'); // 7 of 8 threads
    await s.noted('holding');
    assert.equal((await s.ask('/quick')).body, 'ok');
    holder.leave();
  });
});

test('forgotten brackets do not stall the worker', async () => {
  await withService({ FX_WORKERS: '1', FX_RUNNABLE: '2' }, async (s) => {
    let over = 0;
    const stuck = [1, 2, 3, 4].map(() => s.begin('/stuck?4000'));
    for (const r of stuck) r.answer.then(() => { over++; });
    for (let i = 0; i < 20; i++) assert.equal((await s.ask('/quick')).status, 200);
    assert.equal(over, 0);
    for (const r of stuck) assert.equal((await r.answer).body, 'unstuck');
  });
});

test('a killed worker and a killed keeper are started again, no zombie stays', async () => {
  await withService({}, async (s) => {
    for (const role of ['worker', 'keeper', 'worker']) {
      const victim = s.children().find((c) => c.role === role).pid;
      process.kill(victim, 'SIGKILL');
      await s.logged('child.ended', { child: victim, signal: 9, asked: 'no' });
      await until(() => s.children().filter((c) => c.state[0] !== 'Z').length === 3, 'three children again');
      assert.ok(!s.children().some((c) => c.pid === victim));
    }
    await until(() => s.events('child.ready').length === 6, 'the new ones are ready');
    assert.deepEqual([s.notes('worker-ended').length, s.notes('keeper-was-ended').length], [2, 1]);
    for (let i = 0; i < 20; i++) assert.equal((await s.ask('/quick')).status, 200);
  });
});

test('reloads under load lose no request', async () => {
  const end = await withService({}, async (s) => {
    const body = Buffer.alloc(20000, 'b');
    const wanted = `20000 ${fnv(body)}`;
    let wrong = 0;
    const quick = load(s, 16, async (agent) => {
      const r = await s.ask('/body', { method: 'POST', body, agent });
      if (r.status === 200 && r.body !== wanted) wrong++;
      return r;
    });
    const slow = load(s, 8, (agent) => s.ask('/sleep?50', { method: 'POST', agent }));
    for (let i = 1; i <= 5; i++) {
      const before = quick.total();
      s.hup();
      await s.logged('master.reload', { result: 'done' }, i);
      await until(() => quick.total() > before + 100, 'more answers');
    }
    await until(() => s.workers().length === 2, 'the old workers have drained');
    assert.deepEqual(Object.keys(await quick.stop()), ['200']);
    assert.deepEqual(Object.keys(await slow.stop()), ['200']);
    assert.equal(wrong, 0);
    assert.equal(s.notes('drained').length, 10);
    assert.equal(s.notes('cut-off').length, 0);
  });
  assert.deepEqual(end, clean);
});

test('a waiting request is finished by the old worker after a reload', async () => {
  await withService({ FX_WORKERS: '1' }, async (s) => {
    const old = Number((await s.ask('/pid')).body);
    const waiting = s.begin('/sleep?2500');
    await until(async () => JSON.parse((await s.ask('/figures')).body).threads === 2, 'it waits');
    s.hup();
    await s.logged('master.reload', { result: 'done' });
    await until(async () => Number((await s.ask('/pid', { agent: false })).body) !== old, 'the new one answers');
    assert.deepEqual((await waiting.answer).body, 'slept');
    await until(() => s.notes('drained').includes(old), 'the old one ended by itself');
  });
});

test('stop finishes what waits, hands jobs over, removes the socket', async () => {
  const end = await withService({ FX_WORKERS: '1' }, async (s) => {
    await s.ask('/job');
    const waiting = s.begin('/sleep?1500');
    await s.noted('driving');
    await until(async () => JSON.parse((await s.ask('/figures')).body).threads === 3, 'it waits');
    s.master.kill('SIGTERM');
    await s.logged('worker.drain');
    assert.throws(() => statSync(s.socket));
    assert.equal((await waiting.answer).body, 'slept');
    await s.noted('handed-over');
    await s.noted('drained');
    assert.equal((await s.ask('/quick')).status, 503); // by nginx: nobody is there
  });
  assert.deepEqual(end, clean);
});

test('a kept connection is served during the drain until its peer closes it', async () => {
  const end = await withService({ FX_WORKERS: '1' }, async (s) => {
    const c = await s.raw(headOf('/quick'));
    let got = '';
    c.on('data', (d) => { got += d.toString('latin1'); });
    const answers = (n) => until(() => got.split('\r\n\r\nok').length === n + 1, `${n} answers`);
    await answers(1);
    s.master.kill('SIGTERM');
    await s.noted('drain');
    for (let n = 2; n < 6; n++) {
      c.write(headOf('/quick'));
      await answers(n);
    }
    assert.equal(s.notes('drained').length, 0);
    c.destroy();
    await s.noted('drained');
  });
  assert.deepEqual(end, clean);
});

test('a drain ends at its longest time', async () => {
  const end = await withService({ FX_WORKERS: '1', FX_DRAIN_S: '1' }, async (s) => {
    const waiting = s.begin('/hold');
    await s.noted('holding');
    s.master.kill('SIGTERM');
    await s.noted('cut-off');
    assert.equal((await waiting.answer).status, 503); // nginx, for the connection that broke
  });
  assert.deepEqual(end, clean);
});

test('a broken binary or bad settings are refused and the old ones go on', async () => {
  await withService({}, async (s) => {
    const before = s.workers().sort();
    const good = `${s.self}.good`;
    renameSync(s.self, good);
    let refusals = 0;
    const refuse = async (why) => {
      s.hup();
      await s.logged('master.reload', { result: 'refused' }, ++refusals);
      assert.ok(s.events('child.refused').length >= refusals, why);
      await until(() => s.children().length === 3, 'the new ones have gone');
      assert.deepEqual(s.workers().sort(), before);
      assert.equal((await s.ask('/quick')).status, 200);
    };
    await refuse('missing');
    writeFileSync(s.self, '#!/bin/sh\nexit 0\n', { mode: 0o755 });
    await refuse('ends at once');
    writeFileSync(s.self, 'not a program', { mode: 0o755 });
    await refuse('no program');
    writeFileSync(s.self, '#!/bin/sh\n[ "$1" = keeper ] && exit 9\nexec sleep 100\n', { mode: 0o755 });
    await refuse('only the keeper ends');
    rmSync(s.self);
    copyFileSync(good, s.self);
    writeFileSync(s.bad, '');
    s.hup();
    await s.logged('master.reload', { result: 'bad_settings' });
    assert.deepEqual(s.workers().sort(), before);
    rmSync(s.bad);
    s.hup();
    await s.logged('master.reload', { result: 'done' });
    await until(() => s.workers().length === 2 && !s.workers().some((p) => before.includes(p)), 'new workers');
    assert.equal((await s.ask('/quick')).status, 200);
  });
});

test('the death of the master ends its children, and a new one starts at once', async () => {
  await withService({ FX_WORKERS: '1' }, async (s) => {
    const old = Number((await s.ask('/pid')).body);
    const waiting = s.begin('/sleep?2500');
    await until(async () => JSON.parse((await s.ask('/figures')).body).threads === 2, 'it waits');
    s.master.kill('SIGKILL');
    await s.ended;
    s.startMaster();
    await s.logged('master.ready', {}, 2);
    await until(async () => {
      const r = await s.ask('/pid', { agent: false });
      return r.status === 200 && Number(r.body) !== old;
    }, 'the new one answers');
    assert.equal((await waiting.answer).body, 'slept'); // the orphan drained
    await until(() => s.notes('drained').includes(old) && s.notes('keeper-ended').length === 1, 'the old children ended');
  });
});

test('hostile and silent peers neither kill the worker nor hold its threads', async (t) => {
  const end = await withService({ FX_WORKERS: '1', FX_THREADS: '8' }, async (s) => {
    const pid = (await s.ask('/pid')).body;
    const still = async () => assert.equal((await s.ask('/pid')).body, pid);
    const closed = async (bytes) => {
      const c = await s.raw(bytes);
      await ending(c);
      await still();
    };
    const huge = Buffer.from([0xc0, 0, 0, 0, 0xc0, 0, 0, 0]);

    const givenUp = [ending(await s.raw(headOf('/quick').subarray(0, 20))), // a head that never ends
      ending(await s.raw(headOf('/body').subarray(0, -8)))]; // input that never comes
    await t.test('silent ones', async () => {
      const silent = await Promise.all(Array.from({ length: 100 }, () => s.raw()));
      await still();
      for (const c of silent) c.destroy();
    });
    await t.test('half a head, byte by byte', async () => {
      const whole = headOf('/quick');
      const head = whole.length - 8; // the rest is the end of the input
      const slow = await s.raw();
      let got = '';
      slow.on('data', (d) => { got += d.toString('latin1'); });
      for (let i = 0; i < head; i++) {
        slow.write(whole.subarray(i, i + 1));
        if (i % 8 === 0) await still();
      }
      slow.write(whole.subarray(head));
      await until(() => got.includes('ok'), 'the slow one is served too');
      slow.destroy();
    });
    await t.test('no FastCGI', () => closed('GET / HTTP/1.1\r\nHost: x\r\n\r\n'));
    await t.test('zeros', () => closed(Buffer.alloc(100)));
    await t.test('lengths of gigabytes', () => closed(Buffer.concat([beginRecord(), params(huge)])));
    await t.test('lengths of gigabytes, cut', () => closed(Buffer.concat([beginRecord(), params(huge.subarray(0, 3)), params(huge.subarray(3))])));
    await t.test('a management record', () => closed(record(9, 0, pair('FCGI_MAX_CONNS', ''))));
    await t.test('another request inside the head', () => closed(Buffer.concat([beginRecord(), beginRecord()])));
    await t.test('an unknown role', () => closed(Buffer.concat([record(1, 1, Buffer.from([0, 9, 1, 0, 0, 0, 0, 0])), params(pair('A', 'b')), params()])));
    await t.test('parameters without end', () => closed(Buffer.concat([beginRecord(), ...Array.from({ length: 30 }, () => params(Buffer.alloc(4000)))])));
    await t.test('input of another kind', () => closed(Buffer.concat([beginRecord(), params(pair('DOCUMENT_URI', '/body')), params(), record(4, 1, Buffer.from('x'))])));
    await t.test('a peer that leaves in mid-body', async () => {
      const c = await s.raw(Buffer.concat([beginRecord(), params(pair('DOCUMENT_URI', '/body')), params(), record(5, 1, Buffer.alloc(100))]));
      c.destroy();
      await still();
    });
    await t.test('a connection that is not to be kept is closed after its answer', async () => {
      const c = await s.raw(headOf('/quick', 0));
      let got = '';
      c.on('data', (d) => { got += d.toString('latin1'); });
      await ending(c);
      assert.ok(got.includes('ok'));
    });
    await t.test('what never comes is given up', () => Promise.all(givenUp));
    await still();
  });
  assert.deepEqual(end, clean);
});

test('a start that cannot work fails instead of trying for ever', async () => {
  const s = new Service({ FX_SOCKET: '/nonexistent/folder/s' });
  s.startMaster();
  assert.deepEqual(await s.ended, { code: 1, signal: null });
  assert.equal(s.events('config.bad')[0].what, 'socket');
  rmSync(s.dir, { recursive: true });
});
