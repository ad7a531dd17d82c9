/*
 * The weekly report in plain English, from counts.
 *
 * Every number in the text stands in the struct or is a sum of such, so text and structure can not
 * disagree. Names are providers and first words: never other text from outside.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct arena;

struct report_count {
	const char *name; /* a provider's name, or a first word */
	int64_t n;
};
struct report_counts_list {
	size_t n;
	const struct report_count *items;
};

/* Jobs that ran (or should have) at one provider, by outcome. */
struct report_provider {
	const char *name;
	int64_t succeeded, failed, timed_out, cancelled, not_started, provider_error, lost,
		uncertain;
	int64_t running;       /* not ended when the report was made */
	int64_t run_ms;        /* time that their commands ran */
	int64_t oom_suspected; /* of them, ended for want of memory, as it seems */
};

struct report_counts {
	int64_t from_ms, to_ms; /* the period: from included, to not */
	int64_t checks;         /* calls of check_memory */
	int64_t low, critical;  /* of them with these statuses */
	int64_t would_offload;  /* jobs that watch-only did not run */
	struct report_counts_list offload_by_provider, offload_by_word;
	size_t providers_n;
	const struct report_provider *providers;
};

int64_t report_jobs(const struct report_provider *p); /* sum over outcomes, running ones too */
/* Minutes rounded to a tenth: the figure of the text and of the structure alike. */
double report_minutes(int64_t ms);

/* The text, in the arena. Entries that are 0 are left out of lists. */
const char *report_text(struct arena *a, const struct report_counts *c);
