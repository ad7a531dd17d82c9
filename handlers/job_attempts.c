/*
 * What a caller sees of a job's attempts to get a sandbox: each with its error in our words, and
 * what they cost by the price list. An estimate says that it is one, and is null rather than wrong.
 */
#include "job_view.h"

#include "buf.h"
#include "clock.h"
#include "job.h"
#include "provider.h"

#include <string.h>

#define MICROS          1000000
#define HOUR_MS         (60 * 60 * 1000)
#define ERROR_BYTES_MAX (16 << 10) /* of the lines of all attempts */

/* clang-format off */
static const struct field attempt_fields[] = {
	STR_FIELD(struct attempt_out, provider, REQUIRED, 0, 0, "The provider."),
	STR_FIELD(struct attempt_out, key, REQUIRED, 0, 0, "The saved key."),
	STR_FIELD(struct attempt_out, sandbox, REQUIRED, 0, 0, "intent, unsure, running, stopping, stopped or absent (never came to be)."),
	STR_FIELD(struct attempt_out, error, 0, 0, 0, "Code of the error that this attempt met."),
	STR_FIELD(struct attempt_out, detail, 0, 0, 0, "More about it, in our words."),
	INT_FIELD(struct attempt_out, create_ms, 0, 0, 0, "How long the create call took; the last one, when it was asked again."),
	INT_FIELD(struct attempt_out, waited_ms, 0, 0, 0, "How long we waited before asking again, because the provider limited its rate."),
	STR_FIELD(struct attempt_out, warnings, 0, 0, 0, "What the provider could not enforce."),
};
const struct shape attempt_shape = SHAPE(struct attempt_out, attempt_fields, "One attempt to get a sandbox.");

static const struct field cost_fields[] = {
	BOOL_FIELD(struct cost_out, estimate, REQUIRED, "Always true: the provider's bill decides."),
	NUM_FIELD(struct cost_out, usd, REQUIRED | NULLABLE, 0, 0, "Dollars until now; null when it is not known."),
	NUM_FIELD(struct cost_out, usd_per_hour, REQUIRED | NULLABLE, 0, 0, "The rate of the last sandbox; null when it is not known."),
	INT_FIELD(struct cost_out, seconds, REQUIRED, 0, 0, "How long sandboxes of this job have lived, in whole seconds."),
	STR_FIELD(struct cost_out, prices_of, REQUIRED | NULLABLE, 0, 0, "How old the price list is; null without one."),
	STR_FIELD(struct cost_out, note, REQUIRED, 0, 0, "What the numbers mean."),
};
const struct shape cost_shape = SHAPE(struct cost_out, cost_fields, "An estimate of what a job cost.");
/* clang-format on */

/* Columns of SANDBOXES_OF_JOB. */
enum {
	COL_PROVIDER = 3,
	COL_KEY = 4,
	COL_BOX = 6,
	COL_STATE = 7,
	COL_ERROR = 8,
	COL_CREATE_MS = 9,
	COL_WARNINGS = 12,
	COL_STOPPED = 13,
	COL_CREATED = 14,
	COL_DETAIL = 15,
	COL_WAITED = 16,
	COL_RATE = 17,
};

static bool is_state(const struct rows *boxes, size_t at, const char *state)
{
	return strcmp(row_str(boxes, at, COL_STATE), state) == 0;
}

const char *sandbox_word(const struct rows *boxes)
{
	const char *word = "none";
	for (size_t i = 0; i < boxes->n; i++) {
		if (is_state(boxes, i, "running"))
			return "running";
		if (is_state(boxes, i, "stopping") || is_state(boxes, i, "unsure") ||
			is_state(boxes, i, "intent"))
			word = "stopping";
		else if (is_state(boxes, i, "stopped") && strcmp(word, "none") == 0)
			word = "stopped";
	}
	return word;
}

/* -- cost -------------------------------------------------------------------------------------- */

/* From the create call to the confirmed stop. */
static int64_t lived_ms(const struct rows *boxes, size_t at, int64_t now)
{
	int64_t from = row_int(boxes, at, COL_CREATED);
	if (!row_null(boxes, at, COL_WAITED))
		from += row_int(boxes, at, COL_WAITED);
	int64_t to = row_null(boxes, at, COL_STOPPED) ? now : row_int(boxes, at, COL_STOPPED);
	return to > from ? to - from : 0;
}

static const char *cost_note(const struct price *p, bool rated)
{
	if (!p || !rated)
		return "The price of this provider, size or GPU is not known here.";
	if (p->cpu == 0 && p->gib == 0 && p->flat == 0)
		return "Free: it is your own computer.";
	if (p->cpu_used)
		return "At most: processors are counted as if they were busy all the time. Free "
		       "shares, disk and traffic are left out.";
	return "Life of the sandbox by the price list. Free shares, disk and traffic are left out.";
}

struct sum {
	int64_t lived_ms, micros_ms; /* the latter: life times rate */
	bool known, unsure;
};

static struct sum add_up(const struct rows *boxes, int64_t now)
{
	struct sum s = {.known = true};
	for (size_t i = 0; i < boxes->n; i++) {
		s.unsure = s.unsure || is_state(boxes, i, "unsure");
		if (row_null(boxes, i, COL_BOX))
			continue;
		int64_t ms = lived_ms(boxes, i, now);
		s.lived_ms += ms;
		if (row_null(boxes, i, COL_RATE))
			s.known = false;
		else
			s.micros_ms += ms * row_int(boxes, i, COL_RATE);
	}
	return s;
}

struct cost_out cost_of(const struct rows *boxes, int64_t now)
{
	struct sum s = add_up(boxes, now);
	struct cost_out out = {.estimate = YES,
		.usd = ABSENT_NUM,
		.usd_per_hour = ABSENT_NUM,
		.seconds = (s.lived_ms + 500) / 1000};
	const struct price *p = NULL;
	if (boxes->n) {
		size_t last = boxes->n - 1;
		p = price_of(row_str(boxes, last, COL_PROVIDER));
		if (!row_null(boxes, last, COL_RATE))
			out.usd_per_hour = (double)row_int(boxes, last, COL_RATE) / MICROS;
	}
	if (s.known && !s.unsure)
		out.usd = (double)((s.micros_ms + HOUR_MS / 2) / HOUR_MS) / MICROS;
	out.prices_of = p ? p->as_of : NULL;
	out.note = s.unsure ? "It is not known yet whether a sandbox was made."
			    : cost_note(p, s.known && !isnan(out.usd_per_hour));
	return out;
}

/* -- attempts ---------------------------------------------------------------------------------- */

static const char *filled(const char *s)
{
	return s && *s ? s : NULL;
}

/* One line for each attempt. Names of keys are the account's own words. */
static const void *with_lines(struct req *r, const struct error_out *e, const struct list *attempts)
{
	CLEANUP_BUF struct buf b;
	const struct attempt_out *list = attempts->items;
	struct error_out *full = ARENA_NEW(r->arena, struct error_out);
	buf_init(&b, ERROR_BYTES_MAX);
	for (size_t i = 0; i < attempts->n; i++)
		buf_printf(&b, "%s%s (%s): %s%s%s", i ? "\n" : "", list[i].key, list[i].provider,
			list[i].error ? list[i].error : "no error", list[i].detail ? ", " : "",
			list[i].detail ? list[i].detail : "");
	*full = *e;
	full->detail = arena_copy(r->arena, b.p, b.n);
	return full;
}

void view_attempts(struct req *r, const struct rows *boxes, struct job_out *j)
{
	struct attempt_out *list = ARENA_LIST(r->arena, boxes->n, struct attempt_out);
	struct cost_out *cost = ARENA_NEW(r->arena, struct cost_out);
	for (size_t i = 0; i < boxes->n; i++)
		list[i] = (struct attempt_out){.provider = row_str(boxes, i, COL_PROVIDER),
			.key = row_str(boxes, i, COL_KEY),
			.sandbox = row_str(boxes, i, COL_STATE),
			.error = row_str(boxes, i, COL_ERROR),
			.detail = filled(row_str(boxes, i, COL_DETAIL)),
			.create_ms = row_int(boxes, i, COL_CREATE_MS),
			.waited_ms = row_int(boxes, i, COL_WAITED),
			.warnings = row_str(boxes, i, COL_WARNINGS)};
	j->attempts = (struct list){boxes->n, list};
	j->sandbox = sandbox_word(boxes);
	if (job_is_ended(j) && strcmp(j->sandbox, "running") == 0)
		j->sandbox = "stopping";
	*cost = cost_of(boxes, clock_ms());
	j->cost_estimate = cost;
	const struct error_out *e = j->error;
	if (e && strcmp(e->code, err_row(ERR_ALL_FAILED)->code) == 0)
		j->error = with_lines(r, e, &j->attempts);
}
