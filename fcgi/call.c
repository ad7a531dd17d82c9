/* A call of a tool, whatever protocol brought it. */
#include "call.h"

#include "account.h"
#include "auth.h"
#include "bounds.h"
#include "clock.h"
#include "db.h"
#include "node.h"

/* One statement counts and checks, exact under any concurrency. Anonymous calls are counted by
 * address. */
static enum err meter(struct req *r, const struct tool *t, char day[DAY_SIZE])
{
	const struct caller *who = &r->caller;
	int64_t now = clock_ms(), limit = plan_limit(r->conf, who);
	struct rows done = {0};
	if (!(t->flags & TOOL_METERED))
		return OK;
	day_text(day, now);
	enum err e =
		who->role == ROLE_ANYONE
			? db_run(SQL_ADDRESS_COUNT,
				  ARGS(A_BYTES(who->address, 16), A_STR(day), A_STR("call"),
					  A_INT(limit)),
				  NULL, &done)
			: db_run(SQL_USAGE_COUNT,
				  ARGS(A_ID(who->account), A_STR(day), A_INT(limit)), NULL, &done);
	if (e)
		return e;
	bool over = over_limit(&done, limit);
	r->quota =
		(struct quota){limit, over ? 0 : limit - (int64_t)done.insert_id, day_end_ms(now)};
	if (over) {
		e = fail(ERR_QUOTA_USED_UP, NULL,
			"%lld calls a day; the count starts again at midnight UTC",
			(long long)limit);
		fault_retry_after((int)((day_end_ms(now) - now) / 1000 + 1));
		return e;
	}
	r->metered = true;
	return OK;
}

/* Given back to the day that counted it, which may be over by now. */
static void give_back(struct req *r, const char *day)
{
	uint64_t changed;
	const struct caller *who = &r->caller;
	r->quota.left++;
	if (who->role == ROLE_ANYONE)
		(void)!db_change(SQL_ADDRESS_GIVE_BACK,
			ARGS(A_BYTES(who->address, 16), A_STR(day), A_STR("call")), &changed);
	else
		(void)!db_change(
			SQL_USAGE_GIVE_BACK, ARGS(A_ID(who->account), A_STR(day)), &changed);
}

static enum err run(struct req *r, const struct tool *t, const void *in, void *out)
{
	bool replayed = false;
	char day[DAY_SIZE];
	enum err e = t->replay ? t->replay(r, in, out, &replayed) : OK;
	if (e || replayed)
		return e;
	e = meter(r, t, day);
	if (e)
		return e;
	bool counted = r->metered;
	e = t->run(r, in, out);
	/* Only accepted calls count: arguments that a handler refused were not, nor was a twin that
	 * raced its way past the replay check. */
	if (counted && (!r->metered || e == ERR_BAD_INPUT))
		give_back(r, day);
	return e;
}

/* The header form of the argument idempotency_key, with the same bounds. */
static enum err check_key_header(const struct req *r, const struct tool *t)
{
	const char *key = t->flags & TOOL_REPLAYS ? r->idempotency_key : NULL;
	size_t n = 0;
	if (!key)
		return OK;
	while (key[n] > 0x20 && key[n] < 0x7f)
		n++;
	if (n > 0 && n <= IDEM_KEY_CHARS_MAX && !key[n])
		return OK;
	return fail(ERR_BAD_INPUT, "Idempotency-Key",
		"must be sent once, with 1 to %d printable ASCII characters", IDEM_KEY_CHARS_MAX);
}

enum err call_tool(
	struct exchange *x, const struct tool *t, const struct json *args, void **ret_out)
{
	struct req *r = &x->req;
	void *in = arena_take(r->arena, t->in->size), *out = arena_take(r->arena, t->out->size);
	enum err e = auth_allows(&r->caller, t);
	if (e)
		return e;
	e = check_key_header(r, t);
	if (!e)
		e = shape_decode(t->in, args, r->arena, in);
	if (!e) {
		shape_init(t->out, out);
		e = run(r, t, in, out);
	}
	shape_done(t->in, in);
	*ret_out = out;
	return e;
}

void put_result(struct jw *w, const struct tool *t, const void *out)
{
	shape_encode(t->out, out, w);
}
