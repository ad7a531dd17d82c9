// Values that must be found nowhere, in every form that a program might give them, and the search.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const LENGTH = 16;

/** Letters and digits, so that escapes for URLs, JSON and shells leave it as it is. */
export function core() {
	let text = '';
	while (text.length < LENGTH) text += randomBytes(32).toString('base64').replace(/[^A-Za-z0-9]/g, '');
	return text.slice(0, LENGTH);
}

/** The part of a base64 text that depends on the value alone when `before` bytes stand in front. */
function base64Part(value, before) {
	const whole = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
	const first = Math.ceil((before * 8) / 6);
	return whole.toString('base64').slice(first, Math.floor((whole.length * 8) / 6));
}

const perByte = (value, write) => [...Buffer.from(value)].map(write).join('');
const hex = (byte) => byte.toString(16).padStart(2, '0');

/** [form, text] pairs. What is escaped only in part is found by the raw form. */
export function formsOf(value) {
	const list = [
		['raw', value],
		['hex', perByte(value, hex)],
		['HEX', perByte(value, hex).toUpperCase()],
		['percent', perByte(value, (byte) => `%${hex(byte)}`)],
		['PERCENT', perByte(value, (byte) => `%${hex(byte).toUpperCase()}`)],
		['json', perByte(value, (byte) => `\\u00${hex(byte)}`)],
		['JSON', perByte(value, (byte) => `\\u00${hex(byte).toUpperCase()}`)],
		['utf16', perByte(value, (byte) => `${String.fromCharCode(byte)}\0`).slice(0, -1)],
	];
	for (const before of [0, 1, 2]) {
		const text = base64Part(value, before);
		list.push([`base64+${before}`, text]);
		const url = text.replaceAll('+', '-').replaceAll('/', '_');
		if (url !== text) list.push([`base64url+${before}`, url]);
	}
	return list;
}

export class Needles {
	#texts = new Map(); // text -> "name as form"
	#file;

	/** `values` is { name: value }. */
	constructor(values) {
		for (const [name, value] of Object.entries(values))
			for (const [form, text] of formsOf(value)) this.#texts.set(text, `${name} as ${form}`);
		this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cc-needles-'));
		this.#file = path.join(this.dir, 'patterns');
		// A pattern of grep holds no NUL; the form with NULs is searched for in texts only.
		const patterns = [...this.#texts.keys()].filter((text) => !text.includes('\0'));
		fs.writeFileSync(this.#file, `${patterns.join('\n')}\n`, { mode: 0o600 });
	}

	/** What of the values a text or a Buffer holds, apart from the names in `allowed`. */
	inText(text, allowed = []) {
		const whole = Buffer.isBuffer(text) ? text.toString('latin1') : String(text);
		const found = [];
		for (const [needle, name] of this.#texts)
			if (whole.includes(needle) && !allowed.some((a) => name.startsWith(`${a} as `))) found.push(name);
		return found;
	}

	/** Every file below these paths: ["path: name as form"]. Files that vanish meanwhile are passed over. */
	inFiles(paths, except = []) {
		const args = ['-raosF', '-D', 'skip', '-f', this.#file, '--exclude-dir=bin',
			...except.map((name) => `--exclude=${name}`), '--', ...paths];
		return new Promise((resolve, reject) => {
			execFile('grep', args, { env: { PATH: process.env.PATH, LC_ALL: 'C' }, maxBuffer: 1 << 26 },
				(error, out, errors) => {
					if (errors || (error && ![1, 2].includes(error.code))) {
						reject(error ?? new Error(errors));
						return;
					}
					const lines = out.split('\n').filter(Boolean).map((line) => {
						const at = line.lastIndexOf(':');
						return `${line.slice(0, at)}: ${this.#texts.get(line.slice(at + 1))}`;
					});
					resolve([...new Set(lines)]);
				});
		});
	}

	done() {
		fs.rmSync(this.dir, { recursive: true });
	}
}
