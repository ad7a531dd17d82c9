// The public conformance suite of MCP against an instance. The suite sends foreign Host headers, which
// its TLS would refuse by itself; a pipe takes its bytes to our TLS unchanged.

import { execFile } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { dev } from './instance.mjs';

const suite = path.join(import.meta.dirname, '../node_modules/@modelcontextprotocol/conformance/dist/index.js');
const ca = fs.readFileSync(dev.ca);

function join(plain) {
	const secure = tls.connect({ host: 'localhost', port: new URL(dev.url).port, servername: 'localhost', ca,
		ALPNProtocols: ['http/1.1'] });
	plain.pipe(secure).pipe(plain);
	plain.on('error', () => secure.destroy()).on('close', () => secure.destroy());
	secure.on('error', () => plain.destroy());
}

/** { conform(...arguments) -> { code, out }, stop() } */
export async function conformance() {
	const pipe = net.createServer(join);
	await new Promise((resolve) => pipe.listen(0, '127.0.0.1', resolve));
	const url = `http://localhost:${pipe.address().port}/mcp`;
	return {
		conform: (...args) => new Promise((resolve) => {
			execFile(process.execPath, [suite, 'server', '--url', url, ...args], { timeout: 240000, maxBuffer: 1 << 26 },
				(error, out, err) => resolve({ code: error ? error.code ?? error.signal : 0, out: out + err }));
		}),
		stop: () => pipe.close(),
	};
}
