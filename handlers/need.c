/*
 * From a need to a verdict, and from an end to its cause.
 *
 * Checks the figures a caller sent, chooses the source of the need, judges and words the reason. It
 * promises that the numbers in the text are the numbers it judged by, and that no text from outside
 * gets into them. It reserves nothing: two that ask at once are told the same.
 */
#include "need.h"

#include "arena.h"
#include "bounds.h"
#include "shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define OOM_TAIL_BYTES 8192 /* in 2 KB the sign was often already scrolled out */
#define EXIT_KILLED    137  /* 128 + SIGKILL */
#define EXIT_ABORTED   134  /* 128 + SIGABRT: V8 at its heap limit */
#define EXIT_TERMED    143  /* 128 + SIGTERM */
#define GB_SLIP_MB     128  /* no machine that runs agents has a total below this */

static size_t positive_count(const int64_t *peaks_mb, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += peaks_mb[i] > 0;
	return count;
}

int64_t need_p90(const int64_t *peaks_mb, size_t n)
{
	size_t count = positive_count(peaks_mb, n);
	size_t rank = (count * 9 + 9) / 10; /* the nearest rank, from 1 */
	/* The value with fewer than rank smaller ones and at least rank not larger. Histories are
	 * short (tens of rows), so no sorted copy is made. */
	for (size_t i = 0; i < n; i++) {
		size_t below = 0, not_above = 0;
		for (size_t k = 0; k < n; k++) {
			below += peaks_mb[k] > 0 && peaks_mb[k] < peaks_mb[i];
			not_above += peaks_mb[k] > 0 && peaks_mb[k] <= peaks_mb[i];
		}
		if (peaks_mb[i] > 0 && below < rank && not_above >= rank)
			return peaks_mb[i];
	}
	return 0;
}

int64_t need_peak_counted(int64_t peak_mb, bool oom)
{
	if (!oom || peak_mb <= 0)
		return peak_mb;
	return peak_mb > MEMORY_MB_MAX / 2 ? MEMORY_MB_MAX : 2 * peak_mb;
}

static enum err check_figure(const char *field, double mb)
{
	if (isnan(mb))
		return OK;
	if (isinf(mb))
		return fail(ERR_BAD_INPUT, field, "must be a finite number of MB");
	if (mb < 0)
		return fail(ERR_BAD_INPUT, field, "must not be negative; the unit is MB");
	if (mb > MEMORY_MB_MAX)
		return fail(ERR_BAD_INPUT, field,
			"is above %d MB (64 TB); the unit is MB, not bytes or kB", MEMORY_MB_MAX);
	return OK;
}

static bool total_known(const struct memory_seen *in)
{
	return in->total_mb < NEED_NO_LIMIT_MB; /* false when absent */
}

enum err need_check_input(const struct memory_seen *in)
{
	if (isnan(in->free_mb))
		return fail(ERR_BAD_INPUT, "free_mb", "is missing: the free memory in MB");
	enum err e = check_figure("free_mb", in->free_mb);
	if (!e && (total_known(in) || isinf(in->total_mb)))
		e = check_figure("total_mb", in->total_mb);
	if (!e)
		e = check_figure("job_mb", in->job_mb);
	if (!e)
		e = check_figure("floor_mb", in->floor_mb);
	if (e)
		return e;
	if (in->total_mb == 0)
		return fail(ERR_BAD_INPUT, "total_mb", "must be above 0; the unit is MB");
	if (in->free_mb > in->total_mb)
		return fail(ERR_BAD_INPUT, "free_mb",
			"is larger than total_mb; the unit of both is MB, not bytes or kB");
	return OK;
}

void need_choose(const struct memory_seen *in, const int64_t *peaks_mb, size_t n, const char *job,
	int cores, struct need_choice *ret)
{
	*ret = (struct need_choice){.source = NEED_FROM_CALLER, .mb = in->job_mb};
	if (!isnan(in->job_mb))
		return;
	size_t count = positive_count(peaks_mb, n);
	if (count >= NEED_HISTORY_MIN) {
		ret->source = NEED_FROM_HISTORY;
		ret->observations = count;
		ret->mb = (double)need_p90(peaks_mb, n);
		return;
	}
	ret->source = NEED_FROM_TABLE;
	need_from_table(job ? job : "", cores, &ret->table);
	ret->mb = (double)ret->table.mb;
}

/* A figure as people write it: whole when it is whole, else with one decimal. */
static const char *figure(struct arena *a, double mb)
{
	return arena_printf(a, floor(mb) == mb ? "%.0f" : "%.1f", mb);
}

static const char *table_source_text(struct arena *a, const struct need *t)
{
	const char *sum = t->summed ? ", the largest of several parts that run together" : "";
	const char *workers = "";
	if (t->workers)
		workers = arena_printf(
			a, " with %" PRId64 " worker%s", t->workers, t->workers == 1 ? "" : "s");
	switch (t->basis) {
	case NEED_ROW:
	case NEED_GUESS:
		return arena_printf(a,
			"%stable row \"%s\"%s%s: %" PRId64 " MB + %" PRId64 " MB margin",
			t->basis == NEED_GUESS ? "a guess, " : "", t->kind, workers, sum,
			t->plain_mb, t->mb - t->plain_mb);
	case NEED_SETTING:
		return arena_printf(a, "%s in the text of the job%s", t->kind, sum);
	case NEED_LIGHT:
		return arena_printf(a, "table row \"%s\"%s", t->kind, sum);
	case NEED_UNKNOWN:
		break;
	}
	return arena_printf(a, "table row \"%s\"%s: assumed, for no row fits", t->kind, sum);
}

static const char *source_text(struct arena *a, const struct need_choice *choice)
{
	if (choice->source == NEED_FROM_CALLER)
		return "job_mb as given";
	if (choice->source == NEED_FROM_HISTORY)
		return arena_printf(a, "own history: 90th percentile of %zu observed peaks",
			choice->observations);
	return table_source_text(a, &choice->table);
}

static const char *floor_text(struct arena *a, const struct memory_seen *in, double floor_mb)
{
	const char *why = "512 MB at least";
	if (!isnan(in->floor_mb))
		why = "floor_mb as given";
	else if (floor_mb > NEED_FLOOR_MB)
		why = "10 % of total_mb";
	return arena_printf(a, "%s MB (%s)", figure(a, floor_mb), why);
}

static const char *status_text(struct arena *a, const struct verdict *v)
{
	if (v->status == MEMORY_CRITICAL)
		return arena_printf(a, "%s MB are missing", figure(a, -v->left_mb));
	return arena_printf(a, "%s MB would be left, %s the floor", figure(a, v->left_mb),
		v->status == MEMORY_LOW ? "below" : "not below");
}

static const char *notes_text(const struct memory_seen *in, bool light)
{
	if (total_known(in) && in->total_mb < GB_SLIP_MB)
		return " Is total_mb in GB? The unit is MB.";
	if (in->total_mb >= NEED_NO_LIMIT_MB)
		return " total_mb is the sign for \"no limit\", no memory size, and was left out.";
	return light ? " A command this light is not worth moving." : "";
}

static const char *advice_for(const struct need_choice *choice)
{
	if (choice->source != NEED_FROM_TABLE)
		return NULL;
	if (choice->table.runtime == RUNTIME_NODE)
		return "Node stops at its own heap limit as well: on a larger machine also raise "
		       "NODE_OPTIONS=--max-old-space-size, in MB.";
	if (choice->table.runtime == RUNTIME_JVM)
		return "The Java runtime stops at its own heap limit as well: on a larger machine "
		       "also "
		       "raise -Xmx.";
	if (choice->table.workers)
		return "Workers multiply the need: on a machine with more cores write their "
		       "number, or "
		       "the job takes more memory there than here.";
	return NULL;
}

static double floor_of(const struct memory_seen *in)
{
	if (!isnan(in->floor_mb))
		return in->floor_mb;
	double tenth = total_known(in) ? in->total_mb / 10 : 0;
	return tenth > NEED_FLOOR_MB ? tenth : NEED_FLOOR_MB;
}

static const char *const warnings[] = {
	[MEMORY_LOW] = "It fits, but leaves less than the floor: at a peak it, or anything else on "
		       "this machine, may be killed or freeze.",
	[MEMORY_CRITICAL] =
		"It does not fit: it, or anything else on this machine, may be killed or "
		"freeze.",
};

void need_judge(struct arena *a, const struct memory_seen *in, const struct need_choice *choice,
	struct verdict *ret)
{
	bool light = choice->source == NEED_FROM_TABLE && choice->table.basis == NEED_LIGHT;
	struct verdict v = {.need_mb = choice->mb, .floor_mb = floor_of(in)};
	v.left_mb = in->free_mb - v.need_mb;
	v.status = v.left_mb < 0            ? MEMORY_CRITICAL
		   : v.left_mb < v.floor_mb ? MEMORY_LOW
					    : MEMORY_OK;
	v.offload = v.status != MEMORY_OK && !light;
	v.warning = v.status == MEMORY_OK ? NULL : warnings[v.status];
	v.advice = v.offload ? advice_for(choice) : NULL;
	v.reason = arena_printf(a,
		"Free: %s MB. Need: %s MB (%s). Floor: %s. %s.%s Nothing was reserved: another job "
		"that asks now sees the same free memory.",
		figure(a, in->free_mb), figure(a, v.need_mb), source_text(a, choice),
		floor_text(a, in, v.floor_mb), status_text(a, &v), notes_text(in, light));
	*ret = v;
}

static bool tail_holds(const char *tail, size_t n, const char *text)
{
	return n && memmem(tail, n, text, strlen(text));
}

/* What compilers, runtimes and test runners write when a child of theirs was killed, or when memory
 * was refused, while their own exit code is a plain 1, 2 or 101. */
static const char *const memory_signs[] = {
	"Killed signal terminated program",
	"ld terminated with signal 9",
	"signal: killed",
	"(signal: 9, SIGKILL",
	"Caught fatal signal 9",
	"std::bad_alloc",
	"MemoryError",
	"Cannot allocate memory",
	"not enough memory to run compilation",
	"node down: Not properly terminated",
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The shell's note about a killed child: the word alone on the last line. */
static bool ends_with_killed(const char *tail, size_t n)
{
	static const char word[] = "Killed";
	size_t len = sizeof word - 1;
	while (n && is_blank(tail[n - 1]))
		n--;
	if (n < len || memcmp(tail + n - len, word, len) != 0)
		return false;
	for (n -= len; n && tail[n - 1] != '\n'; n--)
		if (!is_blank(tail[n - 1]))
			return false;
	return true;
}

enum oom_sign oom_read(
	int code, bool killed_by_us, int64_t oom_kills, const char *err_tail, size_t n)
{
	if (oom_kills > 0)
		return OOM_CERTAIN;
	if (killed_by_us || code <= 0)
		return OOM_NONE; /* our own kill leaves the same signs; 0 is a success */
	if (n > OOM_TAIL_BYTES) {
		err_tail += n - OOM_TAIL_BYTES;
		n = OOM_TAIL_BYTES;
	}
	if (code == EXIT_ABORTED && tail_holds(err_tail, n, "heap out of memory"))
		return OOM_HEAP;
	if (code == EXIT_KILLED || code == EXIT_TERMED || ends_with_killed(err_tail, n))
		return OOM_SUSPECTED;
	for (size_t i = 0; i < sizeof memory_signs / sizeof *memory_signs; i++)
		if (tail_holds(err_tail, n, memory_signs[i]))
			return OOM_SUSPECTED;
	return OOM_NONE;
}

bool oom_signs(int code, bool killed_by_us, int64_t oom_kills, const char *err_tail, size_t n)
{
	enum oom_sign sign = oom_read(code, killed_by_us, oom_kills, err_tail, n);
	return sign == OOM_SUSPECTED || sign == OOM_CERTAIN;
}
