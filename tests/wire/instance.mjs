// The instance under test, and what only its operator can do: admin commands and SQL.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export const dev = JSON.parse(readFileSync(process.env.CC_DEV_JSON));
export const origin = dev.url;
export const port = Number(new URL(dev.url).port);
export const ca = readFileSync(dev.ca);

const inside = (script, words = []) => ['-c', `source "$1"; shift; instance_paths; ports_recall; ${script}`,
	'wire', process.env.CC_INSTANCE, ...words];
const shell = (script, words) => execFileSync('bash', inside(script, words), { encoding: 'utf8' });

export const admin = (...words) => shell('connector admin "$@"', words);
export const service = (verb, name) => execFileSync(process.env.CC_INSTANCE, [verb, name], { encoding: 'utf8' });

// Where the runner of the instance listens and what it asks for.
export const runner = JSON.parse(shell('cat "$STATE/runner/connection.json"'));

export const fcgiSocket = shell('printf %s "$FCGI_SOCKET"');

// One database client for all statements; each is followed by a line that marks the end of its rows.
const END = 'end of the rows';
let database;

function openDatabase() {
	const child = spawn('bash', inside('exec "${DAEMON[@]}" mariadb --no-defaults --protocol=socket ' +
		'--socket="$DB_SOCKET" --batch --skip-column-names --unbuffered compute_connector'),
	{ stdio: ['pipe', 'pipe', 'inherit'] });
	const waiting = [];
	let got = '';
	child.stdout.on('data', (part) => {
		got += part;
		for (let at = got.indexOf(`${END}\n`); at >= 0; at = got.indexOf(`${END}\n`)) {
			waiting.shift().resolve(got.slice(0, at));
			got = got.slice(at + END.length + 1);
		}
	});
	child.on('exit', () => waiting.forEach(({ reject }) => reject(new Error('the database client ended'))));
	return { child, waiting };
}

export function sql(text) {
	database ??= openDatabase();
	return new Promise((resolve, reject) => {
		database.waiting.push({ resolve, reject });
		database.child.stdin.write(`${text}\nSELECT '${END}';\n`);
	});
}

export function closeDatabase() {
	database?.child.stdin.end();
}
