/** A refusal: becomes the reply {"error":{"code","message"}}. */
export class Wrong extends Error {
	constructor(
		readonly status: number,
		readonly code: string,
		message: string,
	) {
		super(message);
	}
}

export const bad = (message: string) => new Wrong(400, "bad_request", message);
