// A signal reaches whom it is for: the number of a process that has ended may be another's.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import { test } from 'node:test';
import { until } from '../lib/wait.mjs';
import { Guest } from '../simulators/guest.mjs';

const SECONDS = '31536'; // no other sleep takes so long

const sleeping = () => fs.readdirSync('/proc').filter((pid) => {
	try {
		return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${SECONDS}\0`;
	} catch {
		return false; // it has ended, or is no process
	}
}).length;

test('what a command left behind is found by its group, and a command that has ended gets no signal', async () => {
	const guest = await Guest.start({ home: '/home/user' });
	const child = guest.spawn(['sh', '-c', `sleep ${SECONDS} >/dev/null 2>&1 &`]);
	await once(child, 'exit');
	await until('it was left behind', () => sleeping() === 1);
	assert.equal(guest.signal(child, 'SIGKILL'), false);
	assert.equal(child.kill('SIGKILL'), false);
	assert.equal(sleeping(), 1);
	assert.equal(guest.signal(child, 'SIGKILL', { group: true }), true);
	await until('it is gone', () => sleeping() === 0);
	assert.equal(guest.signal(child, 'SIGKILL', { group: true }), false);
	guest.end();
});
