/*
 * A job's life (docs/tour.md walks through it).
 *
 *   creating -> uploading -> uploaded -> running -> ended (with an outcome)
 *
 * The process that drives a job holds it: `driver` and `fence` stand in the row and in every move.
 * Up to `uploaded` the files live only in the driver's memory; from then on any process can go on.
 */
#pragma once
#include "arena.h"
#include "clock.h"
#include "err.h"
#include "id.h"
#include "bounds.h"
#include "spool.h"
#include "vault.h"

#include <stdbool.h>
#include <stdint.h>

enum job_state {
	JOB_CREATING,
	JOB_UPLOADING,
	JOB_UPLOADED,
	JOB_RUNNING,
	JOB_ENDED,
	JOB_STATE__MAX
};
extern const char *const job_states[]; /* words of the column and of the API; NULL-terminated */

enum outcome {
	OUTCOME_NONE = -1,
	OUTCOME_SUCCEEDED, /* exit code 0 */
	OUTCOME_FAILED,    /* the command's own exit code, not 0 */
	OUTCOME_TIMED_OUT,
	OUTCOME_CANCELLED,
	OUTCOME_NOT_STARTED,    /* the command certainly did not begin */
	OUTCOME_PROVIDER_ERROR, /* the provider failed before the command began */
	OUTCOME_LOST,           /* the command began; its sandbox vanished with the exit code */
	OUTCOME_UNCERTAIN,      /* the provider could not be reached to find out */
	OUTCOME__MAX
};
extern const char *const outcomes[];

/* Index of a word in a NULL-terminated list, -1 when it is not there. */
int word_index(const char *const *words, const char *word);

/* -- the hold on a job --------------------------------------------------------------------------
 */

struct hold {
	struct id job;
	uint32_t fence; /* the driver is always node()->process */
};

/* One provider key that a job may use. */
struct candidate {
	struct id key;
	const char *name;
	const struct provider *provider;
};

/* How a job ended. */
struct ending {
	enum outcome outcome;     /* OUTCOME_NONE: it has not */
	int code;                 /* -1: the command's own code is not known */
	struct fault fault;       /* err OK: nothing to explain */
	struct spool_status last; /* sizes, tails, memory */
	bool have_output;
	bool oom_suspected;
};

/* What one thread knows about the job it drives. Lives in its own arena. */
struct drive {
	struct arena *arena;
	struct hold hold;
	struct id account, token_id;
	char spool_id[ID_TEXT_SIZE]; /* the job's id: names it inside the sandbox */
	int64_t created_ms, started_ms, timeout_s;
	int64_t began_us; /* monotonic; 0 when another process accepted the job */
	enum job_state state;
	/* fresh jobs only: the archive with command, environment and files; gone once the command
	 * began */
	struct arena *input;
	const void *archive;
	size_t archive_n;
	struct spool_job spool;
	struct box_spec spec;
	const struct candidate *candidates;
	size_t candidates_n;
	bool fallback;
	/* the sandbox in use */
	struct id sandbox;
	unsigned attempt;
	int64_t waited_ms; /* in this attempt, for a provider that limits */
	const char *box;   /* the provider's id; NULL: none */
	struct opened_key key;
	struct call call;
	struct ending end;
	bool lost;      /* another process holds the job now: touch nothing */
	bool cancelled; /* somebody asked for it */
	bool killed;    /* we sent KILL because of it */
	bool doubtful;  /* a start was asked for, and nobody has said yet what became of it */
};

/* A drive in an arena of its own; free with drive_free (also when another thread took it over). */
struct drive *drive_new(void);
void drive_free(struct drive *d);

/* Drives a job that this process has just accepted, from its first sandbox to its end; frees it. */
void drive_fresh(void *drive);

/* The same for a job whose acceptance is not sure: reads back whether it is there at all. */
void drive_unsure(void *drive);

/* Claims a job whose driver is gone and drives it to its end. *ret_held false: another keeper was
 * faster. */
MUST_USE enum err drive_claim(struct id job, uint32_t fence, struct drive **ret, bool *ret_held);
void drive_claimed(void *drive);

/* A draining process hands its jobs over as soon as they can be continued elsewhere. */
void drive_drain(void);
/* Up to when a request that wants to wait until then may wait (clock_mono_ms): a draining process
 * answers before it is ended. */
int64_t drive_wait_end(int64_t until_ms);
/* Jobs that this process drives at the moment. */
unsigned drive_count(void);

/* -- moves in the database (job_store.c) --------------------------------------------------------
 */

/* The moves wait for a database that is down. d->lost afterwards: the job is not ours any more. */
MUST_USE enum err job_chose(struct drive *d, const struct candidate *c);
MUST_USE enum err job_attempt(struct drive *d, const struct candidate *c);
MUST_USE enum err job_created(struct drive *d, const struct box *box, int64_t create_ms);
MUST_USE enum err job_attempt_failed(struct drive *d, const struct fault *why, int64_t create_ms);
MUST_USE enum err job_uploaded(struct drive *d, int64_t upload_ms);
MUST_USE enum err job_running(struct drive *d, int64_t started_ms);
MUST_USE enum err job_ended(struct drive *d);
MUST_USE enum err job_give_up(struct drive *d);
/* Reads whether the job is still ours and whether somebody wants it cancelled. */
MUST_USE enum err job_look(struct drive *d);

/* Calls fn again, with pauses, for as long as the database is away. */
MUST_USE enum err job_patient(enum err (*fn)(void *ctx), void *ctx);

/* Inserts job and first sandbox attempt in one transaction. *ret_twin true: the idempotency key was
 * taken by another call in the meantime. ERR_DB_UNSURE: the job may have been accepted, and must be
 * driven by drive_unsure(). */
struct job_intent {
	struct drive *drive;
	const char *word;
	int64_t free_mb;
	const uint8_t *idem_key, *fingerprint; /* 32 bytes each; NULL: none */
};
MUST_USE enum err job_accept(const struct job_intent *in, bool *ret_twin);

/* Tells how the pool of threads refused a job that was accepted a moment ago. */
void job_refused(struct drive *d);

/* -- ending commands (job_kill.c) ---------------------------------------------------------------
 */

/* Notes that somebody wants the job cancelled, and kills its command. No error when the account has
 * no such job or it has ended. */
MUST_USE enum err job_cancel(struct id account, struct id job);
/* Kills the command of one job. Whether that worked shows in how the job ends. */
void job_kill(struct id account, struct id job);
/* The same for all jobs of the account that somebody wants cancelled, on threads of their own. */
void jobs_kill_cancelled(struct id account);

/* -- sandboxes (sandbox.c) ----------------------------------------------------------------------
 */

/* Stops the drive's sandbox and writes it down; leaves it to the keeper when that takes too long.
 */
void sandbox_stop(struct drive *d);

/* One row of SANDBOXES_TO_STOP: finds, destroys, confirms, or plans the next try. */
struct sandbox_row {
	struct id id, account, key;
	const char *mark, *provider_id, *state;
	int64_t stop_tries, ends_ms;
};
void sandbox_settle(const struct sandbox_row *row, struct arena *a);
/* Find and destroy take no longer; then another keeper may try. It may at once when the process
 * that has the try is dead. */
#define SANDBOX_TRY_MAX_MS 60000
/* Claims the next try for this process; false: another keeper has it. */
MUST_USE bool sandbox_claim(const struct sandbox_row *row);

/* Starts from the provider's own list: destroys what carries our mark and whose row has ended. */
MUST_USE enum err sandbox_sweep(struct id account, struct id key, struct arena *a);
