/*
 * The breaker of saved keys: what a row says, and the notes that change it. Promises that every
 * note is one statement that reads nothing first, so workers need not agree beforehand. It chooses
 * no key (pick.c) and waits for nothing.
 */
#include "health.h"

#include "clock.h"
#include "db.h"

struct health health_of(const struct rows *keys, size_t row)
{
	return (struct health){.fails = row_int(keys, row, KEY_COL_FAILS),
		.open_until = row_int(keys, row, KEY_COL_OPEN),
		.probe_until = row_int(keys, row, KEY_COL_PROBE),
		.limited_until = row_int(keys, row, KEY_COL_LIMITED),
		.used_at = row_int(keys, row, KEY_COL_USED)};
}

/* Absent times are smaller than any other, so they are over. */
enum breaker health_breaker(const struct health *h, int64_t now)
{
	if (h->fails < BREAKER_FAILS)
		return h->limited_until > now ? BREAKER_LIMITED : BREAKER_CLOSED;
	return h->open_until > now || h->probe_until > now ? BREAKER_OPEN : BREAKER_HALF_OPEN;
}

const char *health_word(const struct health *h)
{
	if (h->fails >= BREAKER_FAILS)
		return "sick";
	return h->used_at == INT64_MIN ? "untried" : "healthy";
}

bool health_blames(enum err e)
{
	return e == ERR_UPSTREAM || e == ERR_UPSTREAM_UNSURE || e == ERR_KEY_REFUSED ||
	       e == ERR_FORBIDDEN_ADDRESS || e == ERR_BOX_GONE;
}

static void note_limit(struct id account, struct id key, int told_s)
{
	uint64_t changed;
	int64_t until = clock_ms() + (told_s > 0 ? told_s * 1000LL : LIMITED_MS);
	(void)!db_change(SQL_KEY_LIMITED,
		ARGS(A_INT(until), A_ID(key), A_ID(account), A_INT(until)), &changed);
}

void health_note(struct id account, struct id key, enum err e)
{
	uint64_t changed;
	int64_t now = clock_ms();
	if (e == ERR_UPSTREAM_LIMIT)
		note_limit(account, key, fault_of(e)->retry_after_s);
	else if (health_blames(e))
		(void)!db_change(SQL_KEY_FAILED,
			ARGS(A_INT(BREAKER_FAILS), A_INT(now), A_INT(now), A_STR(err_row(e)->code),
				A_INT(BREAKER_FAILS), A_INT(now), A_INT(BREAKER_PAUSE_MS),
				A_INT(BREAKER_FAILS), A_INT(BREAKER_PAUSE_MAX_MS), A_ID(key),
				A_ID(account)),
			&changed);
	else if (!e)
		(void)!db_change(SQL_KEY_USED,
			ARGS(A_INT(BREAKER_FAILS), A_INT(now), A_INT(now), A_ID(key),
				A_ID(account)),
			&changed);
}

bool health_probe(struct id account, struct id key)
{
	uint64_t changed;
	int64_t now = clock_ms();
	return !db_change(SQL_KEY_PROBE,
		       ARGS(A_INT(now + PROBE_MS), A_ID(key), A_ID(account), A_INT(BREAKER_FAILS),
			       A_INT(now), A_INT(now)),
		       &changed) &&
	       changed == 1;
}

int64_t health_limit_pause(int told_s, int tries, int64_t left_ms, bool others)
{
	int64_t bound = others && left_ms > LIMIT_DETOUR_MS ? LIMIT_DETOUR_MS : left_ms;
	if (told_s <= 0 && (others || tries > LIMIT_BLIND_TRIES))
		return -1; /* nothing says that waiting helps */
	int64_t pause = told_s > 0 ? told_s * 1000LL : 1000LL << (tries - 1);
	return pause <= bound ? pause : -1;
}
