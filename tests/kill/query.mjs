// One long connection to the database of the instance, because a state that lasts a moment is over
// before a new client has started. It is made again when the server was away.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { configFile } from '../lib/instance.mjs';

const settings = () => {
	const text = fs.readFileSync(configFile, 'utf8').split('[database]')[1];
	const get = (name) => new RegExp(`^${name} = (.*)$`, 'm').exec(text)[1];
	return { socket: get('socket'), password: get('password') };
};

export class Query {
	#n = 0;
	#child;
	#text = '';
	#waiting;

	#open() {
		const { socket, password } = settings();
		const child = spawn('mariadb', ['--no-defaults', '--protocol=socket', `--socket=${socket}`,
			'--user=cc_app', '--batch', '--skip-column-names', '--unbuffered', 'compute_connector'],
		{ env: { PATH: process.env.PATH, MYSQL_PWD: password }, stdio: ['pipe', 'pipe', 'ignore'] });
		child.stdin.on('error', () => {});
		child.stdout.on('data', (data) => {
			this.#text += data;
			this.#look();
		});
		child.on('close', () => {
			if (this.#child !== child) return;
			this.#child = undefined;
			this.#waiting?.reject(new Error('the database is away'));
			this.#waiting = undefined;
		});
		this.#text = '';
		this.#child = child;
	}

	#look() {
		const mark = `end-${this.#n}\n`;
		if (!this.#waiting || !this.#text.endsWith(mark)) return;
		const rows = this.#text.slice(0, -mark.length).split('\n').filter(Boolean)
			.map((line) => line.split('\t'));
		this.#text = '';
		this.#waiting.resolve(rows);
		this.#waiting = undefined;
	}

	/** Rows of one query; one at a time. Rejects while the database is away. */
	rows(sql) {
		if (!this.#child) this.#open();
		this.#n += 1;
		return new Promise((resolve, reject) => {
			this.#waiting = { resolve, reject };
			this.#child.stdin.write(`${sql};\nSELECT 'end-${this.#n}';\n`);
		});
	}

	stop() {
		this.#child?.stdin.end();
	}
}
