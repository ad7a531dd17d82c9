// The frames of a stream of calls: a byte of flags, four of length, JSON.

export const MESSAGE = 0;
export const LAST = 2;

export function frame(message, flags = MESSAGE) {
	const body = Buffer.from(JSON.stringify(message));
	const head = Buffer.alloc(5);
	head.writeUInt8(flags, 0);
	head.writeUInt32BE(body.length, 1);
	return Buffer.concat([head, body]);
}

/** The one message of a request; undefined when it is none. */
export function unframe(bytes) {
	if (bytes.length < 5 || bytes[0] !== MESSAGE || bytes.readUInt32BE(1) !== bytes.length - 5) return undefined;
	try {
		return JSON.parse(bytes.subarray(5));
	} catch {
		return undefined;
	}
}

const STATUS = { invalid_argument: 400, unauthenticated: 401, permission_denied: 403, not_found: 404,
	already_exists: 409, resource_exhausted: 429, internal: 500, unimplemented: 501, unavailable: 503 };

export class Failed extends Error {
	constructor(code, message) {
		super(message);
		this.code = code;
	}

	/** As the answer to a single call. */
	get answer() {
		return { status: STATUS[this.code] ?? 500, body: { code: this.code, message: this.message } };
	}

	/** As the last frame of a stream. */
	get last() {
		return frame({ error: { code: this.code, message: this.message } }, LAST);
	}
}
