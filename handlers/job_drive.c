/*
 * Drives one job from its first sandbox to its end: create, upload, start, wait, end, stop.
 *
 * Straight-line blocking code on a thread of its own. Each step returns true while the job goes on
 * and is still ours; otherwise d->end says how it ended, or d->lost that another process has it.
 * An effect at a provider happens only after its row was committed (job_store.c). Nothing here
 * repeats a step that might run the command twice: put and start may be repeated by construction of
 * the spool, create never is.
 */
#include "job_create.h"

#include "db.h"
#include "log.h"
#include "need.h"
#include "node.h"
#include "watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVE_ARENA_MAX   (16u << 20)
#define INPUT_ARENA_MAX   (48u << 20) /* command, environment, files, and their archive */
#define TRIES             3           /* of put and start */
#define TRY_PAUSE_MS      300
#define POLL_PAUSE_MS     500 /* after a failed poll, doubling up to: */
#define POLL_PAUSE_MAX_MS 5000
#define NEW_PATIENCE_MS   15000 /* a started job that stays "new" for longer never began */
#define OVERDUE_MS        30000 /* beyond time-out and grace: the supervisor does not do its work */
#define POLL_ARENA        (8u << 20)
#define START             (-1) /* of ask(): no poll, but the start that answers as one */
#define DRAIN_MARGIN_MS   2000 /* left for the answers of a draining process */

static atomic_uint driving;
static atomic_bool draining;
static _Atomic int64_t drain_end_ms; /* 0: not draining */

void drive_drain(void)
{
	int64_t room = node()->conf->drain_s * 1000;
	int64_t margin = room / 4 < DRAIN_MARGIN_MS ? room / 4 : DRAIN_MARGIN_MS;
	drain_end_ms = clock_mono_ms() + room - margin;
	draining = true;
	watch_wake_all();
}

int64_t drive_wait_end(int64_t until_ms)
{
	int64_t end = drain_end_ms;
	return end && end < until_ms ? end : until_ms;
}

unsigned drive_count(void)
{
	return driving;
}

struct drive *drive_new(void)
{
	struct arena *a = arena_new(DRIVE_ARENA_MAX);
	struct drive *d = ARENA_NEW(a, struct drive);
	d->arena = a;
	d->input = arena_new(INPUT_ARENA_MAX);
	d->end = (struct ending){.outcome = OUTCOME_NONE, .code = -1};
	d->hold.fence = 1;
	driving++;
	return d;
}

void drive_free(struct drive *d)
{
	call_done(&d->call);
	vault_close(&d->key);
	arena_free(d->input);
	arena_free(d->arena);
	driving--;
}

/* -- ends -------------------------------------------------------------------------------------- */

bool drive_ends(struct drive *d, enum outcome outcome, enum err why)
{
	d->end.outcome = outcome;
	if (why)
		d->end.fault = *fault_of(why);
	return false;
}

bool drive_held(struct drive *d, enum err e)
{
	if (e)
		d->lost = true;
	return !d->lost;
}

bool drive_is_draining(void)
{
	return draining;
}

bool drive_goes_on(struct drive *d)
{
	if (!drive_held(d, job_look(d)))
		return false;
	return d->cancelled ? drive_ends(d, OUTCOME_CANCELLED, OK) : true;
}

/* What a start said as the first poll. */
struct first {
	struct spool_status status;
	bool known;
};

/* -- upload and start -------------------------------------------------------------------------- */

static bool worth_repeating(enum err e)
{
	return e == ERR_UPSTREAM || e == ERR_UPSTREAM_UNSURE || e == ERR_UPSTREAM_LIMIT;
}

static bool upload(struct drive *d)
{
	int64_t began = clock_mono_ms();
	enum err e = OK;
	for (int try = 1; try <= TRIES; try++) {
		e = spool_put(&d->call, d->box, &d->spool, d->archive, d->archive_n);
		if (!worth_repeating(e))
			break;
		clock_sleep_ms(TRY_PAUSE_MS * try);
	}
	if (e)
		return drive_ends(d, OUTCOME_PROVIDER_ERROR, e);
	return drive_held(d, job_uploaded(d, clock_mono_ms() - began)) && drive_goes_on(d);
}

/* A job may run for an hour: what it was made of is not kept in memory for so long. */
static void forget_input(struct drive *d)
{
	arena_free(d->input);
	d->input = NULL;
	d->archive = NULL;
}

/* Copies the slices of a status into the drive's arena: the request's own arena goes away. */
static struct spool_status kept(struct drive *d, const struct spool_status *s)
{
	struct spool_status k = *s;
	k.out = arena_copy(d->arena, s->out, s->out_n);
	k.err = arena_copy(d->arena, s->err, s->err_n);
	return k;
}

/* One start (wait_s START) or poll in an arena of its own, so that a long job does not grow. */
static enum err ask(struct drive *d, int64_t wait_s, struct spool_status *ret)
{
	CLEANUP_ARENA struct arena *a = arena_new(POLL_ARENA);
	struct spool_status s;
	d->call.arena = a;
	enum err e = wait_s == START ? spool_start(&d->call, d->box, &d->spool, TAIL_BYTES_MAX, &s)
				     : spool_poll(&d->call, d->box, d->spool_id, 0, 0,
					       TAIL_BYTES_MAX, wait_s, &s);
	d->call.arena = d->arena;
	if (e)
		return e;
	*ret = s;
	if (s.state == SPOOL_DONE || s.state == SPOOL_LOST)
		*ret = kept(d, &s);
	return OK;
}

/* After an unsure start the poll tells whether the command began; a sure one is the first poll. */
static bool start(struct drive *d, struct first *ret)
{
	enum err e = OK;
	int64_t asked_ms = clock_ms();
	for (int try = 1; try <= TRIES; try++) {
		e = ask(d, START, &ret->status);
		if (!worth_repeating(e))
			break;
		d->doubtful = d->doubtful || e != ERR_UPSTREAM_LIMIT;
		clock_sleep_ms(TRY_PAUSE_MS * try);
	}
	if (e == ERR_BAD_INPUT)
		return drive_ends(d, OUTCOME_NOT_STARTED, e);
	if (e && !worth_repeating(e))
		return drive_ends(d, d->doubtful ? OUTCOME_UNCERTAIN : OUTCOME_PROVIDER_ERROR, e);
	d->doubtful = d->doubtful && e;
	forget_input(d);
	ret->known = !e;
	return drive_held(d, job_running(d, asked_ms));
}

/* -- wait -------------------------------------------------------------------------------------- */

static int64_t overdue_at(const struct drive *d)
{
	return d->started_ms + (d->timeout_s + KILL_GRACE_S) * 1000 + OVERDUE_MS;
}

static bool kill_once(struct drive *d)
{
	if (!d->killed && !spool_kill(&d->call, d->box, d->spool_id, "KILL"))
		d->killed = true;
	return d->killed;
}

static bool died(const struct spool_status *s)
{
	return s->code == 137 || s->code == 143;
}

/* A command that ended before our signal keeps its own outcome. */
static enum outcome outcome_of(const struct drive *d, const struct spool_status *s)
{
	if (s->timed_out)
		return OUTCOME_TIMED_OUT;
	if (d->cancelled && died(s))
		return OUTCOME_CANCELLED;
	if (d->killed && died(s))
		return OUTCOME_TIMED_OUT; /* the sandbox's own watch had failed */
	return s->code == 0 ? OUTCOME_SUCCEEDED : OUTCOME_FAILED;
}

static bool ends_by_itself(struct drive *d, const struct spool_status *s)
{
	/* cancel_job kills through the provider itself, so the kill may be seen before the wish. */
	if (died(s) && !d->cancelled && !drive_held(d, job_look(d)))
		return false;
	d->end.last = *s;
	d->end.have_output = true;
	d->end.outcome = outcome_of(d, s);
	bool ours = d->end.outcome == OUTCOME_TIMED_OUT || d->end.outcome == OUTCOME_CANCELLED;
	if (!ours)
		d->end.code = s->code;
	d->end.oom_suspected = oom_signs(s->code, ours, s->oom_kills, s->err, s->err_n);
	return false;
}

/* Without the job in its sandbox. A job that was claimed after its cancellation is waited for
 * without having been started: then it never began. */
static bool vanished(struct drive *d, enum err e)
{
	if (!d->cancelled || d->state != JOB_UPLOADED)
		return drive_ends(d, d->doubtful ? OUTCOME_UNCERTAIN : OUTCOME_LOST, e);
	d->started_ms = 0;
	return drive_ends(d, OUTCOME_CANCELLED, OK);
}

/* What one good poll means. True: go on waiting. */
static bool judge(struct drive *d, const struct spool_status *s)
{
	int64_t now = clock_ms();
	d->doubtful = d->doubtful && s->state != SPOOL_RUN;
	switch (s->state) {
	case SPOOL_DONE:
		return ends_by_itself(d, s);
	case SPOOL_LOST:
		d->end.last = *s;
		d->end.have_output = true;
		return drive_ends(d, OUTCOME_LOST,
			fail(ERR_BOX_GONE, NULL, "the command's supervisor died without a code"));
	case SPOOL_NEW:
		if (now - d->started_ms < NEW_PATIENCE_MS)
			return true;
		return drive_ends(d, OUTCOME_NOT_STARTED,
			fail(ERR_UPSTREAM, NULL, "the sandbox did not begin the command"));
	case SPOOL_GONE:
		return vanished(d, fail(ERR_BOX_GONE, NULL, "the sandbox was replaced"));
	case SPOOL_RUN:
		break;
	}
	if (now > overdue_at(d) && !kill_once(d))
		return drive_ends(d, OUTCOME_UNCERTAIN,
			fail(ERR_UPSTREAM, NULL, "the command did not end in time"));
	return true;
}

static bool hand_over(struct drive *d)
{
	if (!draining || job_give_up(d))
		return false;
	d->lost = true;
	return true;
}

/* A poll that failed: the job ends here, or the wait goes on after a growing pause. */
static bool forgives(struct drive *d, enum err e, int64_t *pause)
{
	if (e == ERR_BOX_GONE)
		return vanished(d, e);
	if (clock_ms() > overdue_at(d))
		return drive_ends(d, OUTCOME_UNCERTAIN, e);
	clock_sleep_ms(*pause);
	*pause = *pause * 2 > POLL_PAUSE_MAX_MS ? POLL_PAUSE_MAX_MS : *pause * 2;
	return true;
}

/* A cancel_job that came before the command did had nothing to kill: that is left to us. */
static bool goes_on(struct drive *d, const struct spool_status *s)
{
	return judge(d, s) && drive_held(d, job_look(d));
}

static void wait_for_end(struct drive *d, const struct first *first)
{
	struct spool_status s;
	int64_t pause = POLL_PAUSE_MS;
	if (first->known ? !goes_on(d, &first->status) : !drive_held(d, job_look(d)))
		return;
	while (!hand_over(d)) {
		if (d->cancelled)
			(void)kill_once(d);
		enum err e = ask(d, d->cancelled ? 1 : POLL_WAIT_S, &s);
		if (!e)
			pause = POLL_PAUSE_MS;
		bool on = e ? forgives(d, e, &pause) : judge(d, &s);
		if (!on || !drive_held(d, job_look(d)))
			return;
	}
}

/* -- whole drives ------------------------------------------------------------------------------ */

static void finish(struct drive *d)
{
	if (!d->lost && d->end.outcome != OUTCOME_NONE && drive_held(d, job_ended(d))) {
		watch_signal(d->hold.job);
		sandbox_stop(d);
		watch_signal(d->hold.job);
	}
	drive_free(d);
}

void drive_fresh(void *arg)
{
	struct drive *d = arg;
	struct first first = {0};
	bool runs = drive_create(d) && drive_goes_on(d) && upload(d) && start(d, &first);
	drive_note_health(d); /* while the command runs: nobody waits for this */
	if (runs)
		wait_for_end(d, &first);
	finish(d);
}

void drive_unsure(void *arg)
{
	struct drive *d = arg;
	if (drive_held(d, job_look(d)))
		drive_fresh(d);
	else
		drive_free(d);
}

void job_refused(struct drive *d)
{
	(void)drive_ends(d, OUTCOME_NOT_STARTED, fail(ERR_BUSY, NULL, "every thread is busy"));
	finish(d);
}

static enum err read_claimed(void *ctx)
{
	struct drive *d = ctx;
	struct rows rows;
	enum err e = db_run(
		SQL_JOB_CLAIMED, ARGS(A_ID(d->hold.job), A_ID(node()->process)), d->arena, &rows);
	if (e)
		return e;
	if (rows.n != 1 || row_int(&rows, 0, 2) != (int64_t)d->hold.fence) {
		d->lost = true;
		return OK;
	}
	d->account = row_id(&rows, 0, 0);
	d->token_id = row_id(&rows, 0, 1);
	d->state = (enum job_state)word_index(job_states, row_str(&rows, 0, 3));
	d->timeout_s = row_int(&rows, 0, 4);
	d->created_ms = row_int(&rows, 0, 5);
	d->started_ms = row_null(&rows, 0, 6) ? 0 : row_int(&rows, 0, 6);
	d->cancelled = !row_null(&rows, 0, 7);
	return OK;
}

/* The last attempt is the one in use: earlier ones have failed. */
static enum err read_sandbox(void *ctx)
{
	struct drive *d = ctx;
	struct rows rows;
	enum err e = db_run(SQL_SANDBOXES_OF_JOB, ARGS(A_ID(d->hold.job)), d->arena, &rows);
	if (e || rows.n == 0)
		return e;
	size_t last = rows.n - 1;
	d->sandbox = row_id(&rows, last, 0);
	d->attempt = (unsigned)row_int(&rows, last, 1);
	d->box = row_str(&rows, last, 6);
	return drive_open_key(d, row_id(&rows, last, 2));
}

enum err drive_claim(struct id job, uint32_t fence, struct drive **ret, bool *ret_held)
{
	uint64_t changed;
	enum err e = db_change(
		SQL_JOB_CLAIM, ARGS(A_ID(node()->process), A_ID(job), A_INT(fence)), &changed);
	/* An unsure claim is read back: a job that we hold without driving it would wait for ever.
	 */
	bool unsure = e == ERR_DB_UNSURE;
	*ret_held = unsure || (!e && changed == 1);
	if (!*ret_held)
		return e;
	struct drive *d = drive_new();
	d->hold = (struct hold){job, fence + 1};
	(void)id_text(d->spool_id, NULL, job);
	d->spool.id = d->spool_id;
	e = job_patient(read_claimed, d);
	if (e || d->lost) {
		*ret_held = false;
		drive_free(d);
		return e;
	}
	log_event(EV_JOB_CLAIMED, LOG_ID("job", job), LOG_NAME("state", job_states[d->state]));
	*ret = d;
	return OK;
}

/* Whether its last driver started a cancelled job is not known: it is killed, never started again.
 */
static bool stays_unstarted(struct drive *d)
{
	if (!d->cancelled)
		return false;
	d->started_ms = clock_ms();
	return true;
}

/* A job whose files never arrived can not be continued; one that was uploaded is simply started
 * (again), because starting is idempotent. */
void drive_claimed(void *arg)
{
	struct drive *d = arg;
	struct first first = {0};
	enum err e = job_patient(read_sandbox, d);
	d->spool.timeout_s = d->timeout_s;
	d->doubtful = d->state == JOB_UPLOADED; /* its last driver may have started it */
	if (d->state < JOB_UPLOADED)
		(void)drive_ends(d, OUTCOME_NOT_STARTED,
			fail(ERR_BUSY, NULL, "the server stopped before the command began"));
	else if (e || !d->box)
		(void)drive_ends(d, OUTCOME_UNCERTAIN,
			e ? e : fail(ERR_INTERNAL, NULL, "the sandbox is not known"));
	else if (d->state == JOB_RUNNING || stays_unstarted(d) || start(d, &first))
		wait_for_end(d, &first);
	finish(d);
}
