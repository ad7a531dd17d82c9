// A create whose reply was lost is looked for over two minutes. Tests do not wait for them:
//
//   await sql(hurried("job = 0x..."))
//
// makes sandboxes that were looked for a few times as if they had been looked for for so long, and ends the
// pause after a look that failed later. What the keeper has in hand then is left alone; the first looks are
// so short that it does not matter. Not while a create is under way (creating() of rules.mjs): what comes later
// than the looks would live on.

const ABSENT_TRIES = 7; // so many vain looks make a sandbox "absent"
const LONGEST_PAUSE_S = 600; // between two of them

export function hurried(which = 'TRUE') {
	const pause_ms = `1000 * LEAST(POW(2, stop_tries - 1), ${LONGEST_PAUSE_S})`;
	return `UPDATE sandbox SET stop_tries = GREATEST(stop_tries, ${ABSENT_TRIES}), next_try_at = 0
		WHERE ${which} AND state IN ('intent', 'unsure') AND (stop_tries BETWEEN 2 AND ${ABSENT_TRIES - 1}
		OR (stop_tries > ${ABSENT_TRIES} AND next_try_at BETWEEN 1 AND ${Date.now()} + ${pause_ms}))`;
}
