// What the service answers when it refuses: status, code, message.

export class Refusal extends Error {
	constructor(status, code, message, { more = {}, headers = {} } = {}) {
		super(message);
		this.reply = { status, headers, body: { error: { code, message, ...more } } };
	}
}

export const notFound = (what) => new Refusal(404, 'not_found', `${what} not found.`);
export const badRequest = (message) => new Refusal(400, 'bad_request', message);

export const stopped = (id) => new Refusal(410, 'sandbox_stopped', `Sandbox ${id} has stopped execution and is no longer available.`);

export function limited(seconds, message = 'Rate limit exceeded.') {
	const reset = Math.floor(Date.now() / 1000) + seconds;
	return new Refusal(429, 'rate_limited', message, {
		headers: { 'retry-after': String(seconds) },
		more: { limit: { total: 1, remaining: 0, reset, resetMs: reset * 1000 } },
	});
}
