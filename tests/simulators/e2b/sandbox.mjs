// One sandbox: its machine (tests/simulators/guest.mjs), how long it lives, what it costs.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Guest } from '../guest.mjs';

const HOME = '/home/user';
const KEPT_MS = 30000; // so long the end of a process can still be heard
const parts = ['home', 'tmp'];

const saved = [];
process.on('exit', () => {
	for (const dir of saved) fs.rmSync(dir, { recursive: true, force: true });
});

export class Box {
	state = 'running';
	processes = new Map(); // number -> what daemon.mjs runs
	nextPid = 100;
	#billed = 0;

	constructor(ask, { id, token, template, daemon, domain }) {
		Object.assign(this, { id, token, daemon, domain });
		this.templateID = template;
		this.alias = ask.templateID;
		this.metadata = ask.metadata ?? {};
		this.envs = ask.envVars ?? {};
		this.autoPause = ask.autoPause ?? false;
		this.startedAt = Date.now();
		this.#since = this.startedAt;
	}

	#since;

	async boot(from) {
		this.guest = await Guest.start({ home: HOME, env: { USER: 'user', LOGNAME: 'user', ...this.envs } });
		for (const part of from ? parts : [])
			fs.cpSync(path.join(from, part), path.join(this.guest.dir, part), { recursive: true });
		// Killed by somebody before it was ready.
		if (this.state === 'ended') this.guest.end();
	}

	/** A copy of the files as they are now. */
	save() {
		const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-snapshot-'));
		saved.push(dir);
		for (const part of parts)
			fs.cpSync(path.join(this.guest.dir, part), path.join(dir, part), { recursive: true });
		return { dir, sandboxID: this.id };
	}

	liveFor(seconds) {
		clearTimeout(this.timer);
		this.endAt = Date.now() + seconds * 1000;
		this.timer = setTimeout(() => this.autoPause ? this.pause() : this.end(), seconds * 1000);
		this.timer.unref();
		if (this.state === 'ended') clearTimeout(this.timer);
	}

	billedMs() {
		return this.#billed + (this.state === 'running' ? Date.now() - this.#since : 0);
	}

	#all(signal) {
		for (const { child, ended } of this.processes.values())
			if (!ended) this.guest.signal(child, signal, { group: true });
	}

	pause() {
		if (this.state !== 'running') return false;
		this.#billed = this.billedMs();
		this.state = 'paused';
		clearTimeout(this.timer);
		this.#all('SIGSTOP');
		return true;
	}

	resume() {
		if (this.state !== 'paused') return false;
		this.state = 'running';
		this.#since = Date.now();
		this.#all('SIGCONT');
		return true;
	}

	end() {
		if (this.state === 'ended') return;
		this.#billed = this.billedMs();
		this.state = 'ended';
		this.endedAt = Date.now();
		clearTimeout(this.timer);
		for (const one of this.processes.values()) one.cut();
		this.guest?.end();
	}

	forgetLater(pid) {
		setTimeout(() => this.processes.delete(pid), KEPT_MS).unref();
	}

	/** What create and connect tell. */
	made() {
		return { templateID: this.templateID, alias: this.alias, sandboxID: this.id, clientID: '6532622b',
			envdVersion: this.daemon, trafficAccessToken: null, domain: this.domain,
			...(this.token && { envdAccessToken: this.token }) };
	}

	view() {
		return { templateID: this.templateID, alias: this.alias, sandboxID: this.id, clientID: '6532622b',
			startedAt: new Date(this.startedAt).toISOString(), endAt: new Date(this.endAt ?? 0).toISOString(),
			state: this.state, cpuCount: 2, memoryMB: 512, diskSizeMB: 10240, metadata: this.metadata,
			envdVersion: this.daemon, domain: this.domain, ...(this.token && { envdAccessToken: this.token }) };
	}
}
