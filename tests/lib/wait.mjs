// Waiting for conditions. A test never sleeps as proof: it asks until the answer is there.

const PAUSE_MS = 25;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks `fn` until it gives something true, and gives that; fails with `what` after `ms`. A value
 * { missing: ... } is not true, and is shown. */
export async function until(what, fn, ms = 60000) {
	const end = Date.now() + ms;
	let last, seen;
	for (;;) {
		try {
			const value = await fn();
			if (value === true || (value && value.missing === undefined)) return value;
			seen = value?.missing;
			last = undefined;
		} catch (error) {
			last = error;
		}
		if (Date.now() > end)
			throw new Error(`waited ${ms} ms in vain: ${what} ${JSON.stringify(seen) ?? ''}`, { cause: last });
		await pause(PAUSE_MS);
	}
}

/** A promise with its own resolve: { promise, open }. */
export function gate() {
	let open;
	const promise = new Promise((resolve) => {
		open = resolve;
	});
	return { promise, open };
}
