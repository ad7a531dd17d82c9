// The machine of a simulated sandbox: real processes and real files of its own. /tmp and the home are
// private and writable, the rest of the file system is this machine's, read-only. All processes live in a
// pid namespace that ends with the guest.
//
//   const guest = await Guest.start({ home: '/home/user' });
//   const child = guest.spawn(['sh', '-c', 'exit 3'], { cwd, env, stdin: 'pipe' });   // see spawner.mjs
//   guest.signal(child, 'SIGTERM');         // the command itself; { group: true }: its process group
//   guest.file('/home/user/a')              // the same file, seen from outside
//   guest.end();                            // everything in it is killed

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { spawn, spawner } from './spawner.mjs';

const BOOTS_MAX = 4; // at the same time: starting a process holds up all else that this one serves

const living = new Set();
const waiting = [];
let booting = 0;
process.on('exit', () => {
	for (const guest of living) guest.end({ wait: false });
});

const children = (pid) => {
	try {
		return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
	} catch {
		return [];
	}
};

export class Guest {
	static async start(options) {
		if (booting >= BOOTS_MAX) await new Promise((resolve) => waiting.push(resolve));
		else booting += 1;
		try {
			const guest = new Guest(options);
			await guest.#boot().catch((error) => {
				guest.end();
				throw error;
			});
			return guest;
		} finally {
			if (waiting.length) waiting.shift()();
			else booting -= 1;
		}
	}

	constructor({ home, env = {} }) {
		this.home = home;
		this.env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: home, ...env };
		this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-guest-'));
		for (const sub of ['tmp', 'home', 'top']) fs.mkdirSync(path.join(this.dir, sub), { mode: 0o755 });
		fs.chmodSync(path.join(this.dir, 'tmp'), 0o1777);
		this.ended = false;
		living.add(this);
	}

	/** A root directory of links into this machine, so that the home may have any path. */
	#mounts() {
		const args = [];
		for (const name of fs.readdirSync('/')) {
			if (['proc', 'dev', 'tmp', 'home', 'var', 'run', 'sys', this.home.split('/')[1]].includes(name)) continue;
			const at = `/${name}`;
			const stat = fs.lstatSync(at);
			if (stat.isSymbolicLink()) args.push('--symlink', fs.readlinkSync(at), at);
			else if (stat.isDirectory()) args.push('--ro-bind', at, at);
		}
		return args;
	}

	async #boot() {
		const args = ['--die-with-parent', '--unshare-pid', '--unshare-ipc', ...this.#mounts(),
			'--proc', '/proc', '--dev', '/dev', '--dir', '/var/tmp', '--dir', '/run',
			'--bind', path.join(this.dir, 'tmp'), '/tmp', '--bind', path.join(this.dir, 'home'), this.home,
			'--chdir', this.home, '--info-fd', '3', 'sh', '-c', 'echo up; read never'];
		await spawner();
		this.bwrap = spawn(['bwrap', ...args], { cwd: '/', env: this.env, files: ['pipe', 'pipe', 'pipe', 'pipe'] });
		const said = { out: '', err: '', info: '' };
		this.bwrap.stdout.on('data', (part) => { said.out += part; });
		this.bwrap.stderr.on('data', (part) => { said.err += part; });
		this.bwrap.stdio[3].on('data', (part) => { said.info += part; });
		await new Promise((resolve, reject) => {
			const whole = () => said.out === 'up\n' && said.info.endsWith('}\n') && resolve();
			this.bwrap.stdout.on('data', whole);
			this.bwrap.stdio[3].on('data', whole);
			this.bwrap.once('exit', () => reject(new Error(`no sandbox: ${said.err}`)));
			this.bwrap.once('error', reject);
		});
		this.pid = JSON.parse(said.info)['child-pid'];
	}

	/** Starts a command in the guest, in a process group of its own: what spawner.mjs gives. A folder or program
	 * that is missing shows as 126 or 127. */
	spawn(argv, { cwd = this.home, env = {}, stdin = 'ignore' } = {}) {
		return spawn(argv, {
			cwd: path.posix.resolve(this.home, cwd), env: { ...this.env, ...env }, files: [stdin, 'pipe', 'pipe'], guest: this.pid,
		});
	}

	/** The command's own process, seen from outside. */
	leader(child) {
		return children(child.pid)[0];
	}

	signal(child, name, { group = false } = {}) {
		if (child.pid === undefined) {
			child.started.then(() => this.signal(child, name, { group }), () => {}); // its 'error' tells that
			return true;
		}
		try {
			if (child.lives) return process.kill(group ? -child.pid : this.leader(child) ?? child.pid, name);
			const left = group ? this.#left(child) : [];
			for (const pid of left) process.kill(pid, name);
			return left.length > 0;
		} catch {
			return false; // it has ended
		}
	}

	/** Who is left of a group whose leader has gone: its number may be another group's by now. */
	#left({ pid: group }) {
		const ours = fs.readlinkSync(`/proc/${this.pid}/ns/pid`);
		return fs.readdirSync('/proc').filter((pid) => {
			try {
				const [, , of] = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1).split(' ');
				return Number(of) === group && fs.readlinkSync(`/proc/${pid}/ns/pid`) === ours;
			} catch {
				return false; // it has ended, or is no process
			}
		}).map(Number);
	}

	/** The path of a guest's file outside; undefined where the guest may not write. */
	file(name, cwd = this.home) {
		const full = path.posix.resolve(cwd, name);
		for (const [inside, outside] of [['/tmp', 'tmp'], [this.home, 'home']])
			if (full === inside || full.startsWith(`${inside}/`))
				return path.join(this.dir, outside, full.slice(inside.length));
		return undefined;
	}

	isDir(name, cwd) {
		const file = this.file(name, cwd) ?? path.posix.resolve(cwd ?? this.home, name);
		return fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() ?? false;
	}

	/** Kills everything in the guest. Its files go when nobody is left who could miss them. */
	end({ wait = true } = {}) {
		if (this.ended) return;
		this.ended = true;
		living.delete(this);
		const forget = () => fs.rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
		const lives = this.bwrap?.lives;
		try {
			if (lives) process.kill(this.pid, 'SIGKILL'); // the first process: bwrap ends when all of them have
			if (lives && wait) return void this.bwrap.once('exit', forget);
		} catch {
			this.bwrap.kill('SIGKILL'); // there was none yet, or it was gone already
		}
		forget();
	}
}
