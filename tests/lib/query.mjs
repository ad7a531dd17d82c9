// One long connection to the database of the instance. A client for each query would cost more than most
// queries do, and a state that lasts a moment would be over before it has started.
//
//   const query = new Query(() => ({ socket, password }));
//   await query.rows('SELECT ...');          // keeps this process alive only while it waits

import { spawn } from 'node:child_process';

const CLIENT = ['--no-defaults', '--protocol=socket', '--user=cc_app', '--batch', '--skip-column-names', '--unbuffered',
	'--skip-reconnect'];

export class Query {
	#where;
	#child;
	#asked = Promise.resolve();
	#waiting; // { end, resolve, reject }
	#out = '';
	#err = '';

	/** `where` is asked for each new connection. */
	constructor(where) {
		this.#where = where;
	}

	/** Rows of SQL as arrays of strings; null is "NULL". One text after the other. Rejects with what the server
	 * said, or when it is away; the next one connects again. */
	rows(text) {
		const turn = this.#asked.then(() => this.#alive()).then(() => this.#ask(text));
		this.#asked = turn.catch(() => {});
		return turn;
	}

	/** A connection that broke since the last text is given up here: what was sent over it may not be repeated. */
	async #alive() {
		if (this.#child) await this.#ask('SELECT 1').catch(() => {});
	}

	#ask(text) {
		const child = this.#child ??= this.#open();
		const end = `end-${Math.random()}`;
		this.#hold(child, 'ref');
		return new Promise((resolve, reject) => {
			this.#waiting = { end: `${end}\n`, resolve, reject };
			child.stdin.write(`${text.replace(/[;\s]+$/, '')};\nSELECT '${end}';\n`);
		}).finally(() => this.#hold(child, 'unref'));
	}

	#open() {
		const { socket, password } = this.#where();
		const child = spawn('mariadb', [...CLIENT, `--socket=${socket}`, 'compute_connector'],
			{ env: { PATH: process.env.PATH, MYSQL_PWD: password } });
		this.#out = this.#err = '';
		child.stdin.on('error', () => {});
		child.stderr.on('data', (part) => { this.#err += part; });
		child.stdout.on('data', (part) => {
			this.#out += part;
			this.#look();
		});
		child.on('close', () => {
			this.#child = undefined;
			this.#waiting?.reject(new Error(this.#err || 'the database is away'));
			this.#waiting = undefined;
		});
		return child;
	}

	#look() {
		if (!this.#waiting || !this.#out.endsWith(this.#waiting.end)) return;
		const rows = this.#out.slice(0, -this.#waiting.end.length).split('\n').filter(Boolean).map((line) => line.split('\t'));
		this.#out = '';
		this.#waiting.resolve(rows);
		this.#waiting = undefined;
	}

	#hold(child, word) {
		for (const one of [child, child.stdin, child.stdout, child.stderr]) one[word]();
	}
}
