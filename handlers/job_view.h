/*
 * What a caller sees of a job: the answer of run_job, get_job, cancel_job and list_jobs.
 */
#pragma once
#include "db.h"
#include "tool.h"

struct attempt_out {
	const char *provider, *key, *sandbox, *error, *detail;
	int64_t create_ms, waited_ms;
	const char *warnings;
};

struct cost_out {
	double usd, usd_per_hour; /* ABSENT_NUM: not known */
	int64_t seconds;
	enum tri estimate;
	const char *prices_of, *note;
};

struct timings_out {
	int64_t queue_ms, create_ms, upload_ms, run_ms, stop_ms, own_ms, round_trips;
};

struct memory_out {
	const char *status, *verdict, *reason;
	int64_t need_mb, floor_mb;
};

struct error_out {
	const char *code, *text, *detail;
};

struct job_out {
	const char *job_id;
	const char *state; /* a job state, or "watch_only" */
	const char *outcome;
	int64_t exit_code;
	const char *provider, *key, *command_word;
	const char *sandbox;   /* none, running, stopping, stopped */
	const char *out, *err; /* stdout and stderr: names that C macros leave alone */
	const char *out_base64, *err_base64;
	int64_t out_bytes, err_bytes, out_offset, err_offset;
	enum tri out_truncated, err_truncated, replaced;
	const char *output; /* inline, expired, sealed_to_other_key, none */
	enum tri oom_suspected;
	int64_t peak_mb, timeout_s;
	int64_t created_at, started_at, ended_at;
	const void *error;         /* struct error_out */
	const void *timings;       /* struct timings_out */
	const void *memory;        /* struct memory_out */
	const void *cost_estimate; /* struct cost_out */
	struct list attempts;
	const char *note;
};
extern const struct shape job_out_shape;

struct jobs_out {
	struct list jobs;
	const char *next;
};
extern const struct shape jobs_out_shape;

/* -- attempts and their cost (job_attempts.c) ---------------------------------------------------
 */

extern const struct shape attempt_shape, cost_shape;

/* "none", "running", "stopping" or "stopped", from the rows of SANDBOXES_OF_JOB. */
const char *sandbox_word(const struct rows *boxes);
/* Fills sandbox, attempts, cost_estimate, and the lines of an error that all of them share. */
void view_attempts(struct req *r, const struct rows *boxes, struct job_out *j);
/* What sandboxes have cost until now by the price of their time. usd is unknown when one's price
 * is, or when it is not known whether one was made. */
struct cost_out cost_of(const struct rows *boxes, int64_t now);

/* Fills a view from row `at` of JOB_GET or JOB_LIST: state and numbers, no output. */
void job_view(struct req *r, const struct rows *rows, size_t at, struct job_out *ret);

/* Which output a caller asks for. */
struct output_wish {
	int64_t out_from, err_from; /* byte offsets; 0: as much as is kept */
	bool base64;
	bool kept_only; /* of a running job none, so that its provider is not asked */
};

/* Reads one job of the caller's account with attempts and output. ERR_JOB_NOT_FOUND. */
MUST_USE enum err job_read(
	struct req *r, struct id job, const struct output_wish *wish, struct job_out *ret);
/* True when the view says that nothing more is to come (ended and its sandbox stopped). */
bool job_settled(const struct job_out *j);
bool job_is_ended(const struct job_out *j);
/* Ended without what the caller wanted to know: MCP isError. */
bool job_is_error(const struct job_out *j);

/* Waits up to wait_s for the end of the job, reports progress meanwhile, then reads it. */
MUST_USE enum err job_wait(struct req *r, struct id job, int64_t wait_s,
	const struct output_wish *wish, struct job_out *ret);
