/*
 * Which saved keys a job may use: those that were named, else all of the account that have what the
 * job asks for. The order is the account's: its default first, then by place; or in turn. Keys in
 * bad health come last (health.c), none is left out.
 */
#include "pick.h"

#include "db.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const strategies[] = {"priority", "round-robin", NULL};

/* -- order ------------------------------------------------------------------------------------- */

static int group_of(const struct ranked *r)
{
	return r->state == BREAKER_CLOSED ? 0 : r->state == BREAKER_LIMITED ? 1 : 2;
}

static int by_place(const struct ranked *a, const struct ranked *b)
{
	if (a->first != b->first)
		return a->first ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

static int by_rank(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;
	int apart = group_of(a) - group_of(b);
	return apart ? apart : by_place(a, b);
}

void pick_to_front(struct ranked *list, size_t at)
{
	struct ranked x = list[at];
	memmove(list + 1, list, at * sizeof *list);
	list[0] = x;
}

static void rotate(struct ranked *list, size_t n, uint64_t by)
{
	for (by %= n; by > 0; by--) {
		struct ranked x = list[0];
		memmove(list, list + 1, (n - 1) * sizeof *list);
		list[n - 1] = x;
	}
}

void pick_rank(struct ranked *list, size_t n, int64_t turn)
{
	qsort(list, n, sizeof *list, by_rank);
	for (size_t from = 0, to; turn >= 0 && from < n; from = to) {
		to = from + 1;
		while (to < n && group_of(&list[to]) == group_of(&list[from]))
			to++;
		rotate(list + from, to - from, (uint64_t)turn);
	}
}

size_t pick_probe(const struct ranked *list, size_t n, bool any)
{
	for (size_t i = 1; i < n; i++)
		if (list[i].state == BREAKER_HALF_OPEN && group_of(&list[0]) < 2 &&
			(any || by_place(&list[i], &list[0]) < 0))
			return i;
	return n;
}

/* -- what a job asks for ----------------------------------------------------------------------- */

/* What a provider lacks for this wish, as an error that names the option. */
static enum err fits(const struct provider *p, const struct wish_for_provider *w)
{
	const struct {
		bool asked;
		unsigned can;
		const char *field;
	} options[] = {
		{w->runtime != NULL, CAN_RUNTIME, "runtime"},
		{w->template != NULL, CAN_TEMPLATE, "template"},
		{w->memory_mb != ABSENT_INT, CAN_MEMORY, "memory_mb"},
		{w->cpu != ABSENT_INT, CAN_CPU, "cpu"},
		{w->gpu != NULL, CAN_GPU, "gpu"},
	};
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
		if (options[i].asked && !(p->can & options[i].can))
			return fail(ERR_UNSUPPORTED, options[i].field,
				"provider %s has no such option", p->name);
	if (w->timeout_s > p->timeout_max_s)
		return fail(ERR_BAD_INPUT, "timeout_s",
			"provider %s runs a job for at most %" PRId64 " seconds", p->name,
			p->timeout_max_s);
	return OK;
}

static bool is_named(const struct wish_for_provider *w, const char *key, const char *provider)
{
	if (w->key && strcmp(w->key, key) != 0)
		return false;
	return !w->provider || strcmp(w->provider, provider) == 0 || strcmp(w->provider, key) == 0;
}

/* Why nothing matched what was named. */
static enum err nothing_named(const struct wish_for_provider *w)
{
	const struct provider *p = w->provider ? provider_find(w->provider) : NULL;
	if (p && !p->ops)
		return fail(
			ERR_PROVIDER_UNAVAILABLE, "provider", "%s is not connected yet", p->name);
	if (w->key)
		return fail(ERR_KEY_NOT_FOUND, "key", "no saved key of this name fits");
	if (p)
		return fail(ERR_NO_KEY, "provider", "no key for %s is saved", p->name);
	return fail(ERR_UNKNOWN_PROVIDER, "provider", "it is neither a provider nor a saved key");
}

/* -- choosing ---------------------------------------------------------------------------------- */

/* Keys that the job may use, in any order. ERR_UNSUPPORTED or ERR_BAD_INPUT: what the first of
 * those that were allowed lacks. */
static enum err collect(const struct rows *rows, const struct wish_for_provider *w,
	struct ranked *list, size_t *ret_n)
{
	const struct provider *misfit = NULL;
	int64_t now = clock_ms();
	size_t n = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct provider *p = provider_find(row_str(rows, i, KEY_COL_PROVIDER));
		if (!p || !p->ops || !is_named(w, row_str(rows, i, KEY_COL_NAME), p->name))
			continue;
		if (fits(p, w)) {
			misfit = misfit ? misfit : p;
			continue;
		}
		struct health h = health_of(rows, i);
		list[n++] = (struct ranked){
			.c = {row_id(rows, i, KEY_COL_ID), row_str(rows, i, KEY_COL_NAME), p},
			.state = health_breaker(&h, now),
			.first = row_int(rows, i, KEY_COL_DEFAULT) == 1,
			.place = (size_t)row_int(rows, i, KEY_COL_PLACE) * rows->n + i,
		};
	}
	*ret_n = n;
	if (n > 0)
		return OK;
	if (misfit)
		return fits(misfit, w); /* once more: its detail is the one to show */
	return w->provider || w->key ? nothing_named(w)
				     : fail(ERR_NO_KEY, NULL, "no key is saved on this account");
}

/* Counted in the account's row, so that jobs of all workers take turns and none is left out. */
static enum err take_turn(struct id account, int64_t *ret)
{
	struct rows done;
	enum err e = db_run(SQL_ACCOUNT_TURN, ARGS(A_ID(account)), NULL, &done);
	*ret = e ? -1 : (int64_t)(done.insert_id & INT64_MAX);
	return e;
}

static enum err put_in_order(struct id account, bool in_turn, struct ranked *list, size_t n)
{
	int64_t turn = -1;
	for (size_t i = 0; in_turn && i < n; i++)
		list[i].first = false; /* a default would take all turns */
	enum err e = in_turn && n > 1 ? take_turn(account, &turn) : OK;
	if (e)
		return e;
	pick_rank(list, n, turn);
	size_t probe = pick_probe(list, n, in_turn);
	if (probe < n && health_probe(account, list[probe].c.key))
		pick_to_front(list, probe);
	return OK;
}

struct routing {
	bool in_turn, fallback;
};

static enum err read_routing(struct req *r, struct routing *ret)
{
	struct rows row;
	enum err e = db_run(SQL_ACCOUNT_ROUTING, ARGS(A_ID(r->caller.account)), r->arena, &row);
	*ret = (struct routing){.fallback = true};
	if (e || row.n == 0)
		return e;
	const char *in_turn = strategies[STRATEGY_ROUND_ROBIN];
	*ret = (struct routing){
		strcmp(row_str(&row, 0, 2), in_turn) == 0, row_int(&row, 0, 3) != 0};
	return OK;
}

enum err pick_keys(struct req *r, const struct wish_for_provider *w, struct choice *ret)
{
	struct rows rows;
	struct routing routing;
	size_t n = 0;
	enum err e = db_run(SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(r->caller.account)), r->arena, &rows);
	if (!e)
		e = read_routing(r, &routing);
	if (e)
		return e;
	struct ranked *list = ARENA_LIST(r->arena, rows.n, struct ranked);
	e = collect(&rows, w, list, &n);
	if (!e)
		e = put_in_order(r->caller.account, routing.in_turn, list, n);
	if (e)
		return e;
	*ret = (struct choice){.list = ARENA_LIST(r->arena, n, struct candidate),
		.n = n,
		.fallback = routing.fallback && !w->provider && !w->key};
	for (size_t i = 0; i < n; i++)
		ret->list[i] = list[i].c;
	return OK;
}
