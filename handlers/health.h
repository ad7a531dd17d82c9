/*
 * The health of saved keys, remembered in the database and so shared by every worker: a breaker.
 *
 *   closed --BREAKER_FAILS failures in a row--> open --pause--> half open --a success--> closed
 *
 * Only what the provider did wrong counts. A key that is open or half open is tried last, and never
 * left out; one job at a time tries a half-open key in its usual place.
 */
#pragma once
#include "err.h"
#include "id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rows;

#define BREAKER_FAILS        3           /* in a row; a single glitch opens nothing */
#define BREAKER_PAUSE_MS     (30 * 1000) /* doubled by each further failure, up to: */
#define BREAKER_PAUSE_MAX_MS (10 * 60 * 1000)
#define PROBE_MS             (60 * 1000)  /* a try that was not heard of for so long is over */
#define LIMITED_MS           (5 * 1000)   /* when a provider does not say how long to wait */
#define LIMIT_PATIENCE_MS    (120 * 1000) /* waiting for a provider that limits, a job */
#define LIMIT_DETOUR_MS      (5 * 1000)   /* the same when another key could be tried instead */
#define LIMIT_BLIND_TRIES    3            /* when the provider does not say how long to wait */

/* Columns of KEYS_OF_ACCOUNT. */
enum key_column {
	KEY_COL_ID,
	KEY_COL_NAME,
	KEY_COL_PROVIDER,
	KEY_COL_VERSION,
	KEY_COL_PRINT,
	KEY_COL_DEFAULT,
	KEY_COL_PLACE,
	KEY_COL_CREATED,
	KEY_COL_USED,
	KEY_COL_FAILED,
	KEY_COL_FAILS,
	KEY_COL_ERROR,
	KEY_COL_OPEN,
	KEY_COL_PROBE,
	KEY_COL_LIMITED,
	KEY_COL_HEALTH
};

enum breaker {
	BREAKER_CLOSED,
	BREAKER_LIMITED,   /* well, but its provider asked for patience */
	BREAKER_HALF_OPEN, /* the pause is over and nobody is trying it */
	BREAKER_OPEN
};

/* What is known of a key. Times are ABSENT_INT when they never were. */
struct health {
	int64_t fails, open_until, probe_until, limited_until, used_at;
};

struct health health_of(const struct rows *keys, size_t row);
enum breaker health_breaker(const struct health *h, int64_t now);
/* "untried" (no sandbox was ever made with it), "healthy" or "sick". */
const char *health_word(const struct health *h);

/* True for what the provider did wrong, or what it refused the key for. A wish that it does not
 * fulfil, its limits, and our own troubles are no illness. */
bool health_blames(enum err e);

/* Notes what became of a try: OK, or an error with its detail in fault_of(). Losing a note costs
 * nothing but a worse choice. */
void health_note(struct id account, struct id key, enum err e);

/* Claims the one try of a half-open key; false: another job has it. */
bool health_probe(struct id account, struct id key);

/* How long to wait before a create that the provider has certainly refused for its limits is asked
 * again, without the jitter; -1: not at all. told_s: what the provider asked for (0: nothing),
 * tries: how often it refused, left_ms: of this job's patience, others: another key can be tried.
 */
int64_t health_limit_pause(int told_s, int tries, int64_t left_ms, bool others);
