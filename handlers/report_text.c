/*
 * Words the weekly report. It promises correct singulars and plurals and the numbers of the struct;
 * it does not count, fetch or round anything but minutes.
 */
#include "report_text.h"

#include "arena.h"
#include "buf.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define REPORT_BYTES_MAX (64 << 10) /* a sentence per provider and a few names: far below */
#define DAY_CHARS        10         /* 2026-12-01 */

int64_t report_jobs(const struct report_provider *p)
{
	return p->succeeded + p->failed + p->timed_out + p->cancelled + p->not_started +
	       p->provider_error + p->lost + p->uncertain + p->running;
}

double report_minutes(int64_t ms)
{
	return round((double)ms / 6000) / 10;
}

/* "1 job", "2 jobs" */
static void put_count(struct buf *b, int64_t n, const char *thing)
{
	buf_printf(b, "%" PRId64 " %s%s", n, thing, n == 1 ? "" : "s");
}

static void put_day(struct buf *b, int64_t ms)
{
	char text[TIME_TEXT_SIZE];
	buf_put(b, time_text(text, ms), DAY_CHARS);
}

static void put_period(struct buf *b, const struct report_counts *c)
{
	buf_str(b, "From ");
	put_day(b, c->from_ms);
	buf_str(b, " to ");
	put_day(b, c->to_ms);
	buf_str(b, " (UTC): ");
}

static void put_minutes(struct buf *b, int64_t ms)
{
	double minutes = report_minutes(ms);
	if (ms > 0 && minutes == 0) /* the rounded figure would deny that anything ran */
		buf_str(b, "less than 0.1 minutes");
	else if (minutes == floor(minutes))
		buf_printf(b, "%.0f minute%s", minutes, minutes == 1 ? "" : "s");
	else
		buf_printf(b, "%.1f minutes", minutes);
}

static void put_checks(struct buf *b, const struct report_counts *c)
{
	if (c->checks == 0) {
		buf_str(b, "no memory checks.");
		return;
	}
	put_count(b, c->checks, "memory check");
	int64_t warned = c->low + c->critical;
	if (warned == 0) {
		buf_str(b, ", no low-memory warnings.");
		return;
	}
	buf_str(b, ", ");
	put_count(b, warned, "low-memory warning");
	buf_printf(b, " (%" PRId64 " low, %" PRId64 " critical).", c->low, c->critical);
}

/* ": 3 vercel, 1 e2b", nothing when all are 0. */
static void put_list(struct buf *b, const char *lead, const struct report_counts_list *list)
{
	const char *before = lead;
	for (size_t i = 0; i < list->n; i++) {
		if (list->items[i].n == 0)
			continue;
		buf_printf(b, "%s%" PRId64 " %s", before, list->items[i].n, list->items[i].name);
		before = ", ";
	}
}

static void put_offloads(struct buf *b, const struct report_counts *c)
{
	if (c->would_offload == 0)
		return;
	buf_char(b, ' ');
	put_count(b, c->would_offload, "job");
	buf_str(b, " would have been offloaded");
	put_list(b, "; by provider: ", &c->offload_by_provider);
	put_list(b, "; by command: ", &c->offload_by_word);
	buf_char(b, '.');
}

static void put_provider(struct buf *b, const struct report_provider *p)
{
	const struct report_count outcomes[] = {
		{"succeeded", p->succeeded},
		{"failed", p->failed},
		{"timed out", p->timed_out},
		{"cancelled", p->cancelled},
		{"not started", p->not_started},
		{"ended by a provider error", p->provider_error},
		{"lost", p->lost},
		{"of uncertain outcome", p->uncertain},
		{"still running", p->running},
	};
	const struct report_counts_list list = {sizeof outcomes / sizeof *outcomes, outcomes};
	buf_printf(b, " %s: ", p->name);
	put_count(b, report_jobs(p), "job");
	put_list(b, " (", &list);
	buf_str(b, "), ");
	put_minutes(b, p->run_ms);
	buf_char(b, '.');
}

static void put_failures(struct buf *b, const struct report_provider *sum)
{
	int64_t bad = report_jobs(sum) - sum->succeeded - sum->cancelled - sum->running;
	if (bad == 0) {
		buf_str(b, " No failures.");
		return;
	}
	buf_char(b, ' ');
	put_count(b, bad, "failure");
	if (sum->oom_suspected)
		buf_printf(
			b, ", %" PRId64 " of them probably for want of memory", sum->oom_suspected);
	buf_char(b, '.');
}

static struct report_provider provider_sum(const struct report_counts *c)
{
	struct report_provider sum = {0};
	for (size_t i = 0; i < c->providers_n; i++) {
		const struct report_provider *p = &c->providers[i];
		sum.succeeded += p->succeeded;
		sum.failed += p->failed;
		sum.timed_out += p->timed_out;
		sum.cancelled += p->cancelled;
		sum.not_started += p->not_started;
		sum.provider_error += p->provider_error;
		sum.lost += p->lost;
		sum.uncertain += p->uncertain;
		sum.running += p->running;
		sum.run_ms += p->run_ms;
		sum.oom_suspected += p->oom_suspected;
	}
	return sum;
}

static void put_jobs(
	struct buf *b, const struct report_counts *c, const struct report_provider *sum)
{
	if (report_jobs(sum) == 0)
		return;
	buf_char(b, ' ');
	put_count(b, report_jobs(sum), "job");
	buf_str(b, " sent to a provider, ");
	put_minutes(b, sum->run_ms);
	buf_str(b, " in all.");
	for (size_t i = 0; i < c->providers_n; i++)
		if (report_jobs(&c->providers[i]) > 0)
			put_provider(b, &c->providers[i]);
	put_failures(b, sum);
}

const char *report_text(struct arena *a, const struct report_counts *c)
{
	CLEANUP_BUF struct buf b;
	struct report_provider sum = provider_sum(c);
	buf_init(&b, REPORT_BYTES_MAX);
	put_period(&b, c);
	if (c->checks == 0 && c->would_offload == 0 && report_jobs(&sum) == 0) {
		buf_str(&b, "nothing logged.");
	} else {
		put_checks(&b, c);
		put_offloads(&b, c);
		put_jobs(&b, c, &sum);
	}
	return arena_copy(a, b.p, b.n);
}
