/*
 * Which saved keys a job may use, in the order in which they are tried.
 */
#pragma once
#include "health.h"
#include "job.h"
#include "tool.h"

struct wish_for_provider {
	const char *provider; /* a provider or the name of a saved key; NULL: not named */
	const char *key;      /* the name of a saved key; NULL: not named */
	const char *runtime, *template, *gpu;
	int64_t memory_mb, cpu, timeout_s; /* ABSENT_INT: not asked for */
};
struct choice {
	struct candidate *list;
	size_t n;
	bool fallback; /* only when nothing was named and the account lets */
};

extern const char *const strategies[]; /* of an account; NULL-terminated */
enum strategy { STRATEGY_PRIORITY, STRATEGY_ROUND_ROBIN };

/* ERR_NO_KEY, ERR_KEY_NOT_FOUND, ERR_UNKNOWN_PROVIDER, ERR_PROVIDER_UNAVAILABLE, and
 * ERR_UNSUPPORTED or ERR_BAD_INPUT naming the option that no allowed provider has. */
MUST_USE enum err pick_keys(struct req *r, const struct wish_for_provider *w, struct choice *ret);

/* -- parts, for tests ---------------------------------------------------------------------------
 */

struct ranked {
	struct candidate c;
	enum breaker state;
	bool first;   /* the account's default: before the others of its health */
	size_t place; /* in the account's order */
};

/* Sorts: the well, the limited, the sick; in each group the first, then by place. With a turn (not
 * negative) each group is rotated by it. */
void pick_rank(struct ranked *list, size_t n, int64_t turn);
/* Index in the ranked list of the half-open key that a job should try before all others, if it can
 * claim that; n: none. any: whatever its place is (round-robin); otherwise it would have to be the
 * first one if it were well. */
size_t pick_probe(const struct ranked *list, size_t n, bool any);
/* Puts it there. */
void pick_to_front(struct ranked *list, size_t at);
