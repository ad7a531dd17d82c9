/* weekly_report: the last seven days in plain English, and the same numbers as structure. */
#include "clock.h"
#include "db.h"
#include "job.h"
#include "report_text.h"
#include "tool.h"

#include <string.h>

#define WEEK_MS (7 * 24 * 60 * 60 * 1000LL)

struct count_out {
	const char *name;
	int64_t count;
};
struct provider_count_out {
	const char *provider;
	int64_t jobs, succeeded, failed, timed_out, cancelled, not_started, provider_error, lost,
		uncertain, oom_suspected;
	double minutes;
};
struct report_out {
	const char *text;
	int64_t from, to, checks, low, critical, would_offload, jobs;
	double minutes;
	struct list by_provider, would_offload_by_word;
};

/* clang-format off */
static const struct field count_fields[] = {
	STR_FIELD(struct count_out, name, REQUIRED, 0, 0, "First word of the command."),
	INT_FIELD(struct count_out, count, REQUIRED, 0, 0, "How often."),
};
static const struct shape count_shape = SHAPE(struct count_out, count_fields, "A count.");
#define COUNT(member, text) INT_FIELD(struct provider_count_out, member, REQUIRED, 0, 0, text)
static const struct field provider_count_fields[] = {
	STR_FIELD(struct provider_count_out, provider, REQUIRED, 0, 0, "The provider."),
	COUNT(jobs, "Jobs that ended there."),
	COUNT(succeeded, "Exit code 0."), COUNT(failed, "Another exit code."), COUNT(timed_out, "Ran out of time."),
	COUNT(cancelled, "Cancelled."), COUNT(not_started, "Never began."), COUNT(provider_error, "The provider failed."),
	COUNT(lost, "The sandbox vanished."), COUNT(uncertain, "The end is not known."),
	COUNT(oom_suspected, "Probably died for want of memory."),
	NUM_FIELD(struct provider_count_out, minutes, REQUIRED, 0, 0, "Minutes that commands ran."),
};
static const struct shape provider_count_shape = SHAPE(struct provider_count_out, provider_count_fields, "Jobs at one provider.");
static const struct field report_fields[] = {
	STR_FIELD(struct report_out, text, REQUIRED, 0, 0, "The report in plain English."),
	TIME_FIELD(struct report_out, from, REQUIRED, "Begin of the period."),
	TIME_FIELD(struct report_out, to, REQUIRED, "Its end: now."),
	INT_FIELD(struct report_out, checks, REQUIRED, 0, 0, "Memory checks."),
	INT_FIELD(struct report_out, low, REQUIRED, 0, 0, "Checks below the floor."),
	INT_FIELD(struct report_out, critical, REQUIRED, 0, 0, "Checks that did not fit."),
	INT_FIELD(struct report_out, would_offload, REQUIRED, 0, 0, "Jobs noted on the free plan."),
	INT_FIELD(struct report_out, jobs, REQUIRED, 0, 0, "Jobs that ended."),
	NUM_FIELD(struct report_out, minutes, REQUIRED, 0, 0, "Minutes that commands ran."),
	LIST_FIELD(struct report_out, by_provider, REQUIRED, &provider_count_shape, 0, 0, "Jobs by provider and outcome."),
	LIST_FIELD(struct report_out, would_offload_by_word, REQUIRED, &count_shape, 0, 0, "The most frequent of the noted jobs."),
};
static const struct shape report_shape = SHAPE(struct report_out, report_fields, "The last seven days.");
/* clang-format on */

static enum err read_checks(struct req *r, int64_t since, struct report_counts *c)
{
	struct rows rows;
	enum err e = db_run(
		SQL_REPORT_CHECKS, ARGS(A_ID(r->caller.account), A_INT(since)), r->arena, &rows);
	for (size_t i = 0; !e && i < rows.n; i++) {
		int64_t n = row_int(&rows, i, 3);
		if (strcmp(row_str(&rows, i, 0), "would_offload") == 0) {
			c->would_offload += n;
			continue;
		}
		c->checks += n;
		c->low += strcmp(row_str(&rows, i, 1), "low") == 0 ? n : 0;
		c->critical += strcmp(row_str(&rows, i, 1), "critical") == 0 ? n : 0;
	}
	return e;
}

static enum err read_words(struct req *r, int64_t since, struct report_counts *c)
{
	struct rows rows;
	enum err e = db_run(
		SQL_REPORT_WOULD, ARGS(A_ID(r->caller.account), A_INT(since)), r->arena, &rows);
	if (e)
		return e;
	struct report_count *list = ARENA_LIST(r->arena, rows.n, struct report_count);
	for (size_t i = 0; i < rows.n; i++)
		list[i] = (struct report_count){row_str(&rows, i, 0), row_int(&rows, i, 1)};
	c->offload_by_word = (struct report_counts_list){rows.n, list};
	return OK;
}

static int64_t *slot_of(struct report_provider *p, int outcome)
{
	int64_t *slots[OUTCOME__MAX] = {&p->succeeded, &p->failed, &p->timed_out, &p->cancelled,
		&p->not_started, &p->provider_error, &p->lost, &p->uncertain};
	return slots[outcome];
}

/* Rows come ordered by provider. */
static enum err read_jobs(struct req *r, int64_t since, struct report_counts *c)
{
	struct rows rows;
	enum err e = db_run(
		SQL_REPORT_JOBS, ARGS(A_ID(r->caller.account), A_INT(since)), r->arena, &rows);
	if (e)
		return e;
	struct report_provider *list = ARENA_LIST(r->arena, rows.n, struct report_provider);
	struct report_provider *p = NULL;
	for (size_t i = 0; i < rows.n; i++) {
		const char *name = row_str(&rows, i, 0);
		if (!p || strcmp(p->name, name) != 0) {
			p = &list[c->providers_n++];
			p->name = name;
		}
		*slot_of(p, word_index(outcomes, row_str(&rows, i, 1))) += row_int(&rows, i, 2);
		p->run_ms += row_int(&rows, i, 3);
		p->oom_suspected += row_int(&rows, i, 4);
	}
	c->providers = list;
	return OK;
}

static void show(struct req *r, const struct report_counts *c, struct report_out *out)
{
	struct provider_count_out *list =
		ARENA_LIST(r->arena, c->providers_n, struct provider_count_out);
	struct count_out *words = ARENA_LIST(r->arena, c->offload_by_word.n, struct count_out);
	int64_t run_ms = 0;
	for (size_t i = 0; i < c->providers_n; i++) {
		const struct report_provider *p = &c->providers[i];
		list[i] = (struct provider_count_out){p->name, report_jobs(p), p->succeeded,
			p->failed, p->timed_out, p->cancelled, p->not_started, p->provider_error,
			p->lost, p->uncertain, p->oom_suspected, report_minutes(p->run_ms)};
		out->jobs += report_jobs(p);
		run_ms += p->run_ms;
	}
	for (size_t i = 0; i < c->offload_by_word.n; i++)
		words[i] = (struct count_out){
			c->offload_by_word.items[i].name, c->offload_by_word.items[i].n};
	out->minutes = report_minutes(run_ms);
	out->by_provider = (struct list){c->providers_n, list};
	out->would_offload_by_word = (struct list){c->offload_by_word.n, words};
}

static enum err report_run(struct req *r, const void *in, void *vout)
{
	struct report_out *out = vout;
	int64_t now = clock_ms();
	struct report_counts c = {.from_ms = now - WEEK_MS, .to_ms = now};
	(void)in;
	enum err e = read_checks(r, c.from_ms, &c);
	if (!e)
		e = read_words(r, c.from_ms, &c);
	if (!e)
		e = read_jobs(r, c.from_ms, &c);
	if (e)
		return e;
	*out = (struct report_out){.from = c.from_ms,
		.to = c.to_ms,
		.checks = c.checks,
		.low = c.low,
		.critical = c.critical,
		.would_offload = c.would_offload};
	show(r, &c, out);
	out->text = report_text(r->arena, &c);
	return OK;
}

const struct tool tool_weekly_report = {
	.name = "weekly_report",
	.title = "Weekly report",
	.doc = "The last seven days in plain English: memory checks and warnings, jobs that were "
	       "noted (free) or ran "
	       "(Pro) by provider and outcome, minutes and failures. Reads only.",
	.in = &no_arguments,
	.out = &report_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED,
	.errors = (const enum err[]){OK},
	.run = report_run,
};
