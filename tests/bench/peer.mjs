// A server of an official SDK in a process of its own, which ends with ours:
//
//   const { url, pid, stop } = await peer(1);

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export async function peer(n) {
	const child = spawn(process.execPath, [path.join(import.meta.dirname, `peer-${n}.mjs`)], { stdio: ['ignore', 'pipe', 'inherit'] });
	const stop = () => child.kill();
	process.on('exit', stop);
	const [port] = await once(child.stdout, 'data');
	return { url: `http://127.0.0.1:${Number(port)}/mcp`, pid: child.pid, stop };
}
