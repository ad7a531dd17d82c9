/*
 * Ends the commands of cancelled jobs through their providers.
 *
 * A driver may be waiting inside a poll, for up to POLL_WAIT_S: ending the command wakes it at
 * once. What fails here the driver does after its poll, so nothing is repeated or reported. A job
 * that has no sandbox yet is stopped by its driver between two steps.
 */
#include "job.h"

#include "alloc.h"
#include "arena.h"
#include "db.h"
#include "node.h"

#include <stdlib.h>

#define KILL_ARENA (8u << 20)

struct target {
	struct id account, job;
};

void job_kill(struct id account, struct id job)
{
	CLEANUP_ARENA struct arena *a = arena_new(KILL_ARENA);
	CLEANUP_KEY struct opened_key key = {0};
	struct rows boxes;
	char id[ID_TEXT_SIZE];
	if (db_run(SQL_SANDBOXES_OF_JOB, ARGS(A_ID(job)), a, &boxes) || boxes.n == 0)
		return;
	size_t last = boxes.n - 1;
	if (row_null(&boxes, last, 6) || vault_open(account, row_id(&boxes, last, 2), a, &key))
		return;
	CLEANUP_CALL struct call c = {
		.provider = key.provider, .credential = &key.credential, .arena = a};
	(void)!spool_kill(&c, row_str(&boxes, last, 6), id_text(id, NULL, job), "KILL");
}

enum err job_cancel(struct id account, struct id job)
{
	uint64_t changed;
	enum err e = db_change(
		SQL_JOB_CANCEL, ARGS(A_INT(clock_ms()), A_ID(job), A_ID(account)), &changed);
	if (!e && changed)
		job_kill(account, job);
	return e;
}

static void kill_one(void *arg)
{
	struct target t = *(struct target *)arg;
	free(arg);
	job_kill(t.account, t.job);
}

void jobs_kill_cancelled(struct id account)
{
	CLEANUP_ARENA struct arena *a = arena_new(KILL_ARENA);
	struct rows rows;
	if (db_run(SQL_JOBS_CANCELLED, ARGS(A_ID(account)), a, &rows))
		return;
	for (size_t i = 0; i < rows.n; i++) {
		struct target *t = must(malloc(sizeof *t));
		*t = (struct target){account, row_id(&rows, i, 0)};
		if (!node()->submit(kill_one, t))
			free(t);
	}
}
