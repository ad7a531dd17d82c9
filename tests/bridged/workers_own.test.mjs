// What only Workers have, on both bridges: a machine that its idle time or a new deployment took away under a
// running command, and a Worker that is deployed again while the machine lives on (lib/instance.mjs is used).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { account, useSimulators } from '../lib/instance.mjs';
import { until } from '../lib/wait.mjs';
import { once } from '../clouds/trouble.mjs';
import { start } from '../simulators/workers/index.mjs';

const WAITS = 'echo ran; while [ ! -e /tmp/go ] && [ $((i=i+1)) -lt 900 ]; do sleep 0.1; done; exit 3';

for (const dialect of ['ours', 'vendor'])
	describe(`workers, the ${dialect === 'ours' ? 'bridge of ours' : "vendor's bridge"}: what only it has`, () => {
		let place, client;

		before(async () => {
			place = await start({ dialect });
			await useSimulators({ workers: place });
			client = await account('pro');
			const saved = await client.rest('save_provider_key', { provider: 'workers', name: 'workers', ...place.credential });
			assert.equal(saved.status, 200, saved.text);
		});

		after(() => place.stop());

		const machines = (box) => place.machines.history.filter(({ name }) => name === place.machineOf(box.id));
		const view = (job, wait_s = 0) => client.get(job.job_id, { wait_s });
		const end = (job) => until('it ends', async () => {
			const seen = await view(job, 100);
			return seen.state === 'ended' && seen;
		});

		/** Begins a job and gives it with its sandbox, once its command is known to run. */
		async function running() {
			const before = new Set(place.boxes().map((box) => box.id));
			const reply = await client.rest('run_job', { key: 'workers', cmd: once(WAITS), wait_s: 0, timeout_s: 300 });
			assert.equal(reply.status, 200, reply.text);
			await until('its command runs', async () => (await view(reply.json)).stdout === 'ran\n');
			return { job: reply.json, box: place.boxes().find((box) => !before.has(box.id)) };
		}

		const nothingLives = () => until('nothing lives', () => place.machines.living.size === 0);

		test('a machine that was put to sleep under a running command: lost, and its successor is ended', async () => {
			const { job, box } = await running();
			await place.machines.lose(place.machineOf(box.id));
			const done = await end(job);
			assert.deepEqual([done.outcome, done.error?.code, done.exit_code], ['lost', 'sandbox_gone', undefined]);
			await nothingLives();
		});

		test('a Worker that is deployed again under a running command: it goes on, and ends with its own code', async () => {
			const { job, box } = await running();
			await place.redeploy();
			const entry = await place.machines.living.get(place.machineOf(box.id));
			entry.guest.spawn(['touch', '/tmp/go']);
			const done = await end(job);
			assert.deepEqual([done.outcome, done.exit_code, done.stdout], ['failed', 3, 'ran\n'], JSON.stringify(done.error));
			assert.equal(machines(box).length, 1, 'on one machine');
			await nothingLives();
		});
	});
