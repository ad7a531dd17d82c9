/*
 * The moves of a job in the database.
 *
 * Every move names driver, fence and the state it leaves. A move that changed nothing is read back:
 * either its first try had already succeeded and only the answer was lost, or the job is not ours
 * any more. A driver does not give a job up because the database is away for a while.
 */
#include "job.h"

#include "db.h"
#include "log.h"
#include "node.h"
#include "seal.h"
#include "shape.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define PAUSE_MS     200
#define PAUSE_MAX_MS 5000

const char *const job_states[] = {"creating", "uploading", "uploaded", "running", "ended", NULL};
const char *const outcomes[] = {"succeeded", "failed", "timed_out", "cancelled", "not_started",
	"provider_error", "lost", "uncertain", NULL};

int word_index(const char *const *words, const char *word)
{
	for (int i = 0; word && words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

/* -- patience ---------------------------------------------------------------------------------- */

/* True when the database is away and the statement should be tried again; sleeps before it says so.
 * A driver never gives up for that reason: its process lives, so nobody else would take the job. */
static bool try_again(int64_t *pause_ms, enum err e)
{
	if (e != ERR_DB_DOWN && e != ERR_DB_UNSURE)
		return false;
	clock_sleep_ms(*pause_ms);
	*pause_ms = *pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : *pause_ms * 2;
	return true;
}

enum err job_patient(enum err (*fn)(void *ctx), void *ctx)
{
	int64_t pause = PAUSE_MS;
	enum err e;
	do
		e = fn(ctx);
	while (try_again(&pause, e));
	return e;
}

static enum err look(struct drive *d, const char **ret_state)
{
	struct rows rows;
	int64_t pause = PAUSE_MS;
	enum err e;
	do
		e = db_run(SQL_JOB_HELD, ARGS(A_ID(d->hold.job)), d->arena, &rows);
	while (try_again(&pause, e));
	if (e)
		return e;
	bool ours = rows.n == 1 && id_equal(row_id(&rows, 0, 0), node()->process) &&
		    row_int(&rows, 0, 1) == (int64_t)d->hold.fence;
	d->lost = d->lost || !ours;
	*ret_state = rows.n == 1 ? row_str(&rows, 0, 2) : "";
	d->cancelled = d->cancelled || (rows.n == 1 && !row_null(&rows, 0, 3));
	return OK;
}

enum err job_look(struct drive *d)
{
	const char *state;
	return look(d, &state);
}

/* Settles a move that did not say "1 row changed". */
static enum err moved(struct drive *d, enum err e, uint64_t changed, enum job_state to)
{
	const char *state;
	if (e || changed == 1) {
		d->state = e ? d->state : to;
		return e;
	}
	e = look(d, &state);
	if (!e && (d->lost || strcmp(state, job_states[to]) != 0))
		d->lost = true;
	if (!e && !d->lost)
		d->state = to;
	return e;
}

static enum err move(struct drive *d, enum sql q, const struct arg *args, enum job_state to)
{
	int64_t pause = PAUSE_MS;
	uint64_t changed = 0;
	enum err e;
	do
		e = db_change(q, args, &changed);
	while (try_again(&pause, e));
	return moved(d, e, changed, to);
}

/* A transaction that may be repeated as a whole, because each statement in it is fenced or keyed.
 */
static enum err patient_transaction(enum err (*fn)(struct db *tx, void *ctx), void *ctx)
{
	int64_t pause = PAUSE_MS;
	enum err e;
	do
		e = db_transaction(fn, ctx);
	while (try_again(&pause, e));
	return e;
}

static struct arg int_or_null(bool given, int64_t v)
{
	return given ? A_INT(v) : A_NULL;
}

/* -- acceptance -------------------------------------------------------------------------------- */

struct accepting {
	const struct job_intent *in;
	bool twin;
};

static enum err insert_sandbox(
	struct db *tx, struct drive *d, const struct candidate *c, bool *ret_duplicate)
{
	char mark[MARK_SIZE];
	d->sandbox = id_new();
	node_mark_of(d->sandbox, mark);
	d->spec.mark = arena_str(d->arena, mark);
	int64_t now = clock_ms(), rate = price_rate(c->provider, &d->spec);
	return db_tx_insert(tx, SQL_SANDBOX_INTENT,
		ARGS(A_ID(d->sandbox), A_ID(d->account), A_ID(d->hold.job), A_INT(d->attempt),
			A_ID(c->key), A_STR(c->provider->name), A_STR(c->name), A_STR(d->spec.mark),
			A_INT(now), int_or_null(rate != PRICE_UNKNOWN, rate),
			A_INT(now + d->spec.life_s * 1000)),
		ret_duplicate);
}

static enum err insert_job(struct db *tx, void *ctx)
{
	struct accepting *x = ctx;
	struct drive *d = x->in->drive;
	const struct candidate *first = &d->candidates[0];
	struct arg idem = x->in->idem_key ? A_BYTES(x->in->idem_key, 32) : A_NULL;
	struct arg fingerprint = x->in->fingerprint ? A_BYTES(x->in->fingerprint, 32) : A_NULL;
	enum err e = db_tx_insert(tx, SQL_JOB_CREATE,
		ARGS(A_ID(d->hold.job), A_ID(d->account), A_ID(d->token_id), A_ID(node()->process),
			A_STR(first->provider->name), A_STR(first->name), A_STR(x->in->word),
			A_INT(d->timeout_s),
			x->in->free_mb == ABSENT_INT ? A_NULL : A_INT(x->in->free_mb), idem,
			fingerprint, A_INT(d->created_ms)),
		&x->twin);
	if (e || x->twin)
		return e;
	bool duplicate;
	return insert_sandbox(tx, d, first, &duplicate);
}

enum err job_accept(const struct job_intent *in, bool *ret_twin)
{
	struct accepting x = {.in = in};
	enum err e = db_transaction(insert_job, &x);
	*ret_twin = x.twin;
	return e;
}

/* -- attempts ---------------------------------------------------------------------------------- */

struct attempting {
	struct drive *d;
	const struct candidate *c;
};

static enum err insert_attempt(struct db *tx, void *ctx)
{
	struct attempting *x = ctx;
	struct drive *d = x->d;
	uint64_t changed;
	bool duplicate;
	enum err e = db_tx_change(tx, SQL_JOB_CHOSE,
		ARGS(A_STR(x->c->provider->name), A_STR(x->c->name), A_ID(d->hold.job),
			A_ID(node()->process), A_INT(d->hold.fence)),
		&changed);
	if (e)
		return e;
	/* The unique (job, attempt) makes a repeat after an unsure commit harmless. */
	return insert_sandbox(tx, d, x->c, &duplicate);
}

enum err job_attempt(struct drive *d, const struct candidate *c)
{
	enum err e = job_look(d);
	if (e || d->lost)
		return e;
	d->attempt++;
	return patient_transaction(insert_attempt, &(struct attempting){d, c});
}

struct creating {
	struct drive *d;
	const struct box *box;
	int64_t create_ms;
	uint64_t changed;
};

static enum err write_created(struct db *tx, void *ctx)
{
	struct creating *x = ctx;
	struct drive *d = x->d;
	enum err e = db_tx_change(tx, SQL_SANDBOX_RUNNING,
		ARGS(A_STR(x->box->id), A_INT(x->create_ms), A_INT(d->waited_ms),
			A_STR(x->box->warnings), A_ID(d->sandbox)),
		&x->changed);
	if (e)
		return e;
	int64_t queue_ms = clock_ms() - d->created_ms - x->create_ms;
	return db_tx_change(tx, SQL_JOB_CREATED,
		ARGS(A_INT(queue_ms > 0 ? queue_ms : 0), A_INT(x->create_ms), A_ID(d->hold.job),
			A_ID(node()->process), A_INT(d->hold.fence)),
		&x->changed);
}

enum err job_created(struct drive *d, const struct box *box, int64_t create_ms)
{
	struct creating x = {.d = d, .box = box, .create_ms = create_ms};
	enum err e = patient_transaction(write_created, &x);
	return moved(d, e, x.changed, JOB_UPLOADING);
}

enum err job_attempt_failed(struct drive *d, const struct fault *why, int64_t create_ms)
{
	int64_t pause = PAUSE_MS;
	uint64_t changed;
	enum err e;
	const char *state = why->err == ERR_UPSTREAM_UNSURE ? "unsure" : "absent";
	do
		e = db_change(SQL_SANDBOX_FAILED,
			ARGS(A_STR(state), A_STR(err_row(why->err)->code), A_STR(why->detail),
				A_INT(create_ms), A_INT(d->waited_ms), A_INT(clock_ms()),
				A_ID(d->sandbox)),
			&changed);
	while (try_again(&pause, e));
	return e;
}

enum err job_uploaded(struct drive *d, int64_t upload_ms)
{
	return move(d, SQL_JOB_UPLOADED,
		ARGS(A_INT(upload_ms), A_ID(d->hold.job), A_ID(node()->process),
			A_INT(d->hold.fence)),
		JOB_UPLOADED);
}

enum err job_running(struct drive *d, int64_t started_ms)
{
	d->started_ms = started_ms;
	return move(d, SQL_JOB_RUNNING,
		ARGS(A_INT(d->started_ms), A_ID(d->hold.job), A_ID(node()->process),
			A_INT(d->hold.fence)),
		JOB_RUNNING);
}

enum err job_give_up(struct drive *d)
{
	uint64_t changed;
	return db_change(SQL_JOB_GIVE_UP,
		ARGS(A_ID(d->hold.job), A_ID(node()->process), A_INT(d->hold.fence)), &changed);
}

/* -- the end ----------------------------------------------------------------------------------- */

struct ending_write {
	struct drive *d;
	struct blob sealed; /* n 0: nothing to pick up */
	int64_t now;
	uint64_t changed;
};

static struct arg wall_ms(const struct drive *d, int64_t now)
{
	return int_or_null(d->started_ms > 0, now > d->started_ms ? now - d->started_ms : 0);
}

/* Our own share: all time since acceptance that we were not waiting for the provider. */
static struct arg own_ms(const struct drive *d)
{
	return int_or_null(
		d->began_us > 0, (clock_mono_us() - d->began_us - d->call.upstream_us) / 1000);
}

static enum err write_ended(struct db *tx, void *ctx)
{
	struct ending_write *x = ctx;
	struct drive *d = x->d;
	const struct ending *end = &d->end;
	const struct spool_status *last = &end->last;
	bool explained = end->fault.err != OK;
	/* A job that never began frees its idempotency key. */
	bool keep = end->outcome != OUTCOME_NOT_STARTED;
	const char *error = explained ? err_row(end->fault.err)->code : NULL;
	const char *detail = explained && end->fault.detail[0] ? end->fault.detail : NULL;
	enum err e = db_tx_change(tx, SQL_JOB_END,
		ARGS(A_STR(outcomes[end->outcome]), int_or_null(end->code >= 0, end->code),
			A_STR(error), A_STR(detail), A_INT(x->now), wall_ms(d, x->now), own_ms(d),
			int_or_null(d->began_us > 0, d->call.round_trips),
			int_or_null(end->have_output, last->out_bytes),
			int_or_null(end->have_output, last->err_bytes),
			int_or_null(end->have_output && last->peak_bytes >= 0,
				(last->peak_bytes + (1 << 20) - 1) >> 20),
			int_or_null(end->have_output && last->oom_kills >= 0, last->oom_kills),
			int_or_null(end->have_output, end->oom_suspected), A_INT(keep),
			A_ID(d->hold.job), A_ID(node()->process), A_INT(d->hold.fence)),
		&x->changed);
	uint64_t put;
	if (e || x->changed == 0 || x->sealed.n == 0)
		return e;
	return db_tx_change(tx, SQL_RESULT_PUT,
		ARGS(A_ID(d->hold.job), A_ID(d->token_id), A_BYTES(x->sealed.p, x->sealed.n),
			A_INT(x->now + RESULT_TTL_S * 1000LL)),
		&put);
}

static void put_stream(struct buf *b, const char *p, size_t n)
{
	uint32_t length = (uint32_t)n;
	buf_put(b, &length, sizeof length);
	buf_put(b, p, n);
}

/* Seals both tails to the token that started the job. A token that is gone gets no result. */
static enum err seal_output(struct drive *d, struct blob *ret)
{
	CLEANUP_BUF struct buf plain = {0};
	struct rows rows;
	int64_t pause = PAUSE_MS;
	enum err e;
	do
		e = db_run(SQL_TOKEN_PUBLIC, ARGS(A_ID(d->token_id), A_ID(d->account)), d->arena,
			&rows);
	while (try_again(&pause, e));
	*ret = (struct blob){0};
	if (e || rows.n == 0 || !row_null(&rows, 0, 1))
		return e;
	buf_init(&plain, 2 * (TAIL_BYTES_MAX + sizeof(uint32_t)));
	put_stream(&plain, d->end.last.out, d->end.last.out_n);
	put_stream(&plain, d->end.last.err, d->end.last.err_n);
	assert(!plain.full);
	const struct cell *key = row_cell(&rows, 0, 0);
	return result_seal(
		(const uint8_t *)key->p, d->hold.job, d->token_id, plain.p, plain.n, d->arena, ret);
}

enum err job_ended(struct drive *d)
{
	struct ending_write x = {.d = d, .now = clock_ms()};
	enum err e = d->end.have_output ? seal_output(d, &x.sealed) : OK;
	if (!e)
		e = patient_transaction(write_ended, &x);
	e = moved(d, e, x.changed, JOB_ENDED);
	if (!e && !d->lost)
		log_event(EV_JOB_ENDED, LOG_ID("job", d->hold.job),
			LOG_NAME("outcome", outcomes[d->end.outcome]),
			LOG_INT("round_trips", d->call.round_trips));
	return e;
}
