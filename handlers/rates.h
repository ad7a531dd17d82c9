/*
 * What an account pays at a provider, where the provider says so itself: asked for, kept beside the
 * saved key, shown by list_providers. Kept is what was told last; not being told changes nothing.
 */
#pragma once
#include "err.h"
#include "id.h"
#include "shape.h"

struct arena;
struct call;
struct rows;

/* Asks over a call whose key is open, and keeps the answer. OK also when the provider has no such
 * call, or tells nothing. */
MUST_USE enum err rates_ask(struct call *c, struct id account, struct id key);

/* The same, and opens the key itself. A key that is being deleted is left alone. */
MUST_USE enum err rates_refresh(struct id account, struct id key, struct arena *a);

/* Of every key of the account that has any: rows for rates_view. */
MUST_USE enum err rates_read(struct id account, struct arena *a, struct rows *ret);

extern const struct shape account_rate_shape;
/* The list of account_rate_shape for one key, in the arena, and when it was told; empty and
 * ABSENT_INT when nothing was. */
struct list rates_view(
	const struct rows *all, struct id key, struct arena *a, int64_t *ret_told_at);
