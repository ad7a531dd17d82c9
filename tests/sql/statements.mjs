// The named statements of schema/queries/, read the way the build reads them.

import fs from 'node:fs';
import path from 'node:path';

// Another folder when a test of the tests has changed a statement.
const dir = process.env.CC_QUERIES || path.join(process.env.CC_ROOT, 'schema/queries');

/** [{ name, params, flags, text }] of every statement. */
export function statements() {
	const list = [];
	for (const file of fs.readdirSync(dir).filter((f) => f.endsWith('.sql'))) {
		for (const line of fs.readFileSync(path.join(dir, file), 'utf8').split('\n')) {
			const head = /^-- ([A-Z0-9_]+) \(([^)]*)\) (rows|change)( again)?$/.exec(line);
			if (head) {
				const [, name, params, kind, again] = head;
				list.push({ name, kind, again: Boolean(again), lines: [],
					params: params.split(',').map((p) => p.trim()).filter(Boolean) });
			} else if (list.length && !line.startsWith('--')) {
				list.at(-1).lines.push(line);
			}
		}
	}
	return list.map(({ lines, ...rest }) => ({ ...rest, text: lines.join(' ').trim() }));
}

/** Table behind each name that EXPLAIN may show: { alias: table }. */
export function tablesOf(text) {
	const found = {};
	for (const [, table, alias] of text.matchAll(
		/\b(?:FROM|JOIN|UPDATE|INTO)\s+([a-z_]+)(?:\s+(?!SET\b|WHERE\b|ON\b|JOIN\b|LEFT\b|GROUP\b|ORDER\b|LIMIT\b)([a-z]\w*))?/g))
		found[alias ?? table] = table;
	return found;
}
