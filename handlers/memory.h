/*
 * check_memory, and the same judgement for run_job's free_mb.
 */
#pragma once
#include "need.h"
#include "tool.h"

/* Words of the API: by enum memory_status; [0] run here, [1] send it away. NULL-terminated. */
extern const char *const memory_statuses[], *const memory_verdicts[];

struct judged {
	struct verdict verdict;
	struct need_choice choice;
	const char *status, *word; /* ok, low, critical; first word of the job */
	char first[33];
};

/* Judges with the account's own history of this first word. job may be NULL. */
MUST_USE enum err memory_judge(
	struct req *r, const struct memory_seen *seen, const char *job, struct judged *ret);

/* Writes the one row that checks and watch-only jobs leave; nothing for anonymous callers. */
MUST_USE enum err memory_log(struct req *r, const char *kind, const struct memory_seen *seen,
	const struct judged *j, const char *provider);
