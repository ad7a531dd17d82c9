/* usage_and_upgrade: what was counted today, when the count starts again, and how to get more. */
#include "account.h"
#include "clock.h"
#include "db.h"
#include "node.h"

struct offer_out {
	const char *price, *url;
};
struct usage_out {
	const char *plan, *note;
	int64_t used, limit, remaining, resets_at;
	enum tri runs_jobs;
	const void *monthly, *yearly;
};

/* clang-format off */
static const struct field offer_fields[] = {
	STR_FIELD(struct offer_out, price, REQUIRED, 0, 0, "The price."),
	STR_FIELD(struct offer_out, url, REQUIRED, 0, 0, "Where to buy it."),
};
static const struct shape offer_shape = SHAPE(struct offer_out, offer_fields, "An offer of the operator.");
static const struct field usage_fields[] = {
	STR_FIELD(struct usage_out, plan, REQUIRED, 0, 0, "free, pro, or none without an API key."),
	BOOL_FIELD(struct usage_out, runs_jobs, REQUIRED, "Whether run_job runs, or only watches."),
	INT_FIELD(struct usage_out, used, REQUIRED, 0, 0, "Calls counted today (UTC)."),
	INT_FIELD(struct usage_out, limit, REQUIRED, 0, 0, "Calls a day."),
	INT_FIELD(struct usage_out, remaining, REQUIRED, 0, 0, "Calls left today."),
	TIME_FIELD(struct usage_out, resets_at, REQUIRED, "When the count starts again."),
	OBJ_FIELD(struct usage_out, monthly, 0, &offer_shape, "Pro by the month."),
	OBJ_FIELD(struct usage_out, yearly, 0, &offer_shape, "Pro by the year."),
	STR_FIELD(struct usage_out, note, REQUIRED, 0, 0, "What the plan means."),
};
static const struct shape usage_shape = SHAPE(struct usage_out, usage_fields, "Usage and upgrade.");
/* clang-format on */

static const void *offer(struct arena *a, const char *price, const char *url)
{
	if (!*url)
		return NULL;
	struct offer_out *o = ARENA_NEW(a, struct offer_out);
	*o = (struct offer_out){price, url};
	return o;
}

static enum err usage_run(struct req *r, const void *in, void *vout)
{
	struct usage_out *out = vout;
	const struct caller *who = &r->caller;
	struct rows rows;
	char day[DAY_SIZE];
	int64_t now = clock_ms();
	(void)in;
	enum err e = who->role == ROLE_ANYONE
			     ? db_run(SQL_ADDRESS_TODAY,
				       ARGS(A_BYTES(who->address, 16), A_STR(day_text(day, now)),
					       A_STR("call")),
				       r->arena, &rows)
			     : db_run(SQL_USAGE_TODAY,
				       ARGS(A_ID(who->account), A_STR(day_text(day, now))),
				       r->arena, &rows);
	if (e)
		return e;
	out->limit = plan_limit(r->conf, who);
	out->used = rows.n ? row_int(&rows, 0, 0) : 0;
	/* The limit may have been higher when the calls were made. */
	out->used = out->used > out->limit ? out->limit : out->used;
	out->remaining = out->limit - out->used;
	out->resets_at = day_end_ms(now);
	out->plan = who->role == ROLE_ANYONE ? "none" : plan_name(who->plan);
	out->runs_jobs = who->plan == PLAN_PRO ? YES : NO;
	out->monthly =
		offer(r->arena, r->conf->upgrade_monthly_price, r->conf->upgrade_monthly_url);
	out->yearly = offer(r->arena, r->conf->upgrade_yearly_price, r->conf->upgrade_yearly_url);
	out->note = who->plan == PLAN_PRO
			    ? "Jobs run on your own providers, which bill you directly."
		    : who->role == ROLE_ANYONE ? "Without an API key only checks and lists work. "
						 "POST /api/key makes a free key."
					       : "Watch-only: nothing runs, jobs are noted for the "
						 "weekly report. Pro runs them.";
	return OK;
}

const struct tool tool_usage = {
	.name = "usage_and_upgrade",
	.title = "Usage and upgrade",
	.doc = "Calls used today, when the count resets, and how to upgrade. Not counted itself.",
	.in = &no_arguments,
	.out = &usage_shape,
	.role = ROLE_ANYONE,
	.flags = TOOL_READS | TOOL_REPEATABLE,
	.errors = (const enum err[]){OK},
	.run = usage_run,
};
