// Callers of an instance: REST and MCP, each request on a connection of its own, so that no test
// depends on what another one left open.

import https from 'node:https';

/** One HTTPS request. Gives { status, headers, text, json }. */
export function request(url, { method = 'GET', headers = {}, body, signal, agent = false } = {}) {
	return new Promise((resolve, reject) => {
		const req = https.request(url, { method, headers, signal, agent }, (res) => {
			const parts = [];
			res.on('data', (part) => parts.push(part));
			res.on('error', reject);
			res.on('end', () => {
				const text = Buffer.concat(parts).toString('utf8');
				let json;
				try {
					json = JSON.parse(text);
				} catch {
					// The caller looks at the text.
				}
				resolve({ status: res.statusCode, headers: res.headers, text, json });
			});
		});
		req.on('error', reject);
		req.end(body);
	});
}

const WAITING = ['run_job', 'get_job', 'cancel_job'];

/** A caller with one API key (or none). Calls that wait for a job do so for wait_s unless they say
 * otherwise. */
export class Client {
	#id = 0;

	constructor(url, key, { wait_s } = {}) {
		this.url = url;
		this.key = key;
		this.wait_s = wait_s;
		this.agent = false; // a connection of its own for each request
	}

	#waiting(tool, args) {
		return this.wait_s && WAITING.includes(tool) ? { wait_s: this.wait_s, ...args } : args;
	}

	get #auth() {
		return this.key ? { Authorization: `Bearer ${this.key}` } : {};
	}

	/** Any path; `body` is sent as JSON. */
	api(method, path, body, { headers = {}, signal } = {}) {
		const text = body === undefined ? undefined : JSON.stringify(body);
		return request(`${this.url}${path}`, {
			method,
			signal,
			agent: this.agent,
			headers: {
				...this.#auth,
				...(text === undefined ? {} : {
					'Content-Type': 'application/json',
					'Content-Length': Buffer.byteLength(text),
				}),
				...headers,
			},
			body: text,
		});
	}

	/** A tool over REST. */
	rest(tool, args = {}, options) {
		return this.api('POST', `/api/run/${tool}`, this.#waiting(tool, args), options);
	}

	/** A tool over MCP: { status, result, error, isError, json } with json the tool's own answer. */
	async mcp(tool, args = {}, { headers = {}, signal } = {}) {
		this.#id += 1;
		const reply = await this.api('POST', '/mcp', {
			jsonrpc: '2.0',
			id: this.#id,
			method: 'tools/call',
			params: { name: tool, arguments: this.#waiting(tool, args) },
		}, {
			signal,
			headers: {
				Accept: 'application/json, text/event-stream',
				'MCP-Protocol-Version': '2025-11-25',
				...headers,
			},
		});
		const result = reply.json?.result;
		return {
			status: reply.status,
			headers: reply.headers,
			text: reply.text,
			error: reply.json?.error,
			result,
			isError: result?.isError ?? false,
			json: result?.structuredContent,
		};
	}

	/** run_job over REST, whose answer must be a job. */
	async job(args, options) {
		const reply = await this.rest('run_job', args, options);
		if (reply.status !== 200) throw new Error(`run_job: ${reply.status} ${reply.text}`);
		return reply.json;
	}

	async get(jobId, args = {}) {
		const reply = await this.rest('get_job', { job_id: jobId, ...args });
		if (reply.status !== 200) throw new Error(`get_job: ${reply.status} ${reply.text}`);
		return reply.json;
	}
}
