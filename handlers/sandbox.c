/*
 * Sandboxes end here: after a job, by the keeper for what was left over, and by the sweep that
 * starts from the provider's own list. Only the provider's answer makes a sandbox "stopped", or,
 * where it can not be asked any more, its own hard limit an hour ago.
 */
#include "job.h"

#include "db.h"
#include "log.h"
#include "node.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_FIRST_MS  1000
#define PAUSE_MAX_MS    (10 * 60 * 1000)
#define STOPPING_MAX_MS 15000 /* the provider is at it: the search before counts no longer */
#define UNSURE_WINDOW_MS                                                                           \
	60000 /* so long a sandbox may stay invisible to find() after its create                   \
	       */
#define SWEEP_GRACE_MS 60000
#define RAN_OUT_MS     (60 * 60 * 1000) /* so long after the provider's own limit it has worked */

/* -- after a job ------------------------------------------------------------------------------- */

/* Between two tries: who deletes without our waiting for it is often done after the first one. */
static const int stop_pause_ms[] = {120, 480, 900};
#define STOP_TRIES (1 + (int)(sizeof stop_pause_ms / sizeof stop_pause_ms[0]))

struct stopping {
	struct drive *d;
	int64_t stop_ms;
	bool stopped;
};

static enum err write_stop(struct db *tx, void *ctx)
{
	struct stopping *x = ctx;
	struct drive *d = x->d;
	uint64_t changed;
	enum err e = x->stopped ? db_tx_change(tx, SQL_SANDBOX_STOPPED,
					  ARGS(A_INT(clock_ms()), A_ID(d->sandbox)), &changed)
				: db_tx_change(tx, SQL_SANDBOX_STOPPING,
					  ARGS(A_INT(clock_ms()), A_ID(d->sandbox)), &changed);
	if (e || d->began_us == 0)
		return e;
	int64_t own = (clock_mono_us() - d->began_us - d->call.upstream_us) / 1000;
	return db_tx_change(tx, SQL_JOB_STOPPED,
		ARGS(A_INT(x->stop_ms), A_INT(own), A_INT(d->call.round_trips), A_ID(d->hold.job)),
		&changed);
}

void sandbox_stop(struct drive *d)
{
	if (!d->box || !d->call.provider)
		return; /* nothing was created, or the keeper finds it by its mark */
	enum box_state state = BOX_RUNNING;
	int64_t began = clock_mono_ms();
	for (int try = 0; try < STOP_TRIES && state != BOX_STOPPED; try++) {
		if (try > 0)
			clock_sleep_ms(stop_pause_ms[try - 1]);
		if (d->call.provider->ops->destroy(&d->call, d->box, &state))
			state = BOX_RUNNING;
	}
	struct stopping x = {d, clock_mono_ms() - began, state == BOX_STOPPED};
	/* A lost write leaves the row as it was: the keeper asks the provider again. */
	(void)!db_transaction(write_stop, &x);
	log_event(x.stopped ? EV_SANDBOX_STOPPED : EV_SANDBOX_STOP_FAILED,
		LOG_ID("sandbox", d->sandbox), LOG_INT("ms", x.stop_ms));
}

/* -- what was left over ------------------------------------------------------------------------ */

static int64_t pause_after(int64_t tries)
{
	int64_t pause = PAUSE_FIRST_MS;
	for (; tries > 0 && pause < PAUSE_MAX_MS; tries--)
		pause *= 2;
	return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}

/* A runner that was started anew has another token, a key may be revoked at its provider: then
 * nobody can ask any more. What the provider's own limit ended long ago must not keep key and
 * account. */
static bool ran_out(const struct sandbox_row *s, enum err why)
{
	uint64_t changed;
	int64_t now = clock_ms();
	if (!why || why == ERR_DB_DOWN || why == ERR_DB_UNSURE || now < s->ends_ms + RAN_OUT_MS)
		return false;
	const char *code = err_row(why)->code;
	if (db_change(SQL_SANDBOX_RAN_OUT, ARGS(A_INT(now), A_STR(code), A_ID(s->id)), &changed))
		return false;
	log_event(EV_SANDBOX_RAN_OUT, LOG_ID("sandbox", s->id), LOG_NAME("error", code));
	return true;
}

static void failed(const struct sandbox_row *s, enum err why)
{
	uint64_t changed;
	const char *code = why ? err_row(why)->code : NULL;
	int64_t pause = pause_after(s->stop_tries);
	if (!why && pause > STOPPING_MAX_MS)
		pause = STOPPING_MAX_MS;
	if (ran_out(s, why))
		return;
	/* Without this row the claim's own pause runs out. */
	(void)!db_change(SQL_SANDBOX_TRY_FAILED,
		ARGS(A_STR(code), A_INT(clock_ms() + pause), A_ID(s->id), A_INT(s->stop_tries + 1)),
		&changed);
	log_event(EV_SANDBOX_STOP_FAILED, LOG_ID("sandbox", s->id),
		LOG_INT("tries", s->stop_tries + 1), LOG_NAME("error", code ? code : "stopping"));
}

bool sandbox_claim(const struct sandbox_row *s)
{
	uint64_t changed;
	int64_t next = clock_ms() + pause_after(s->stop_tries) + SANDBOX_TRY_MAX_MS;
	return !db_change(SQL_SANDBOX_TRY,
		       ARGS(A_INT(next), A_ID(node()->process), A_ID(s->id), A_INT(s->stop_tries)),
		       &changed) &&
	       changed == 1;
}

/* A create whose answer was lost: found by its mark, or absent once the window is over. */
static enum err find_it(const struct sandbox_row *s, struct call *c, const char **ret_box)
{
	struct box box = {0};
	uint64_t changed;
	if (s->provider_id) {
		*ret_box = s->provider_id;
		return OK;
	}
	enum err e = c->provider->ops->find(c, s->mark, &box);
	if (e)
		return e;
	*ret_box = box.id;
	if (box.id)
		return db_change(SQL_SANDBOX_FOUND, ARGS(A_STR(box.id), A_ID(s->id)), &changed);
	bool window_over = s->stop_tries > 0 && clock_ms() - (int64_t)s->ends_ms > 0;
	bool asked_enough = pause_after(s->stop_tries) > UNSURE_WINDOW_MS;
	if (strcmp(s->state, "intent") != 0 && strcmp(s->state, "unsure") != 0)
		return OK;
	if (!window_over && !asked_enough)
		return ERR_UPSTREAM_UNSURE;
	return db_change(SQL_SANDBOX_ABSENT, ARGS(A_INT(clock_ms()), A_ID(s->id)), &changed);
}

void sandbox_settle(const struct sandbox_row *s, struct arena *a)
{
	CLEANUP_KEY struct opened_key key;
	CLEANUP_CALL struct call c = {.arena = a};
	const char *box = NULL;
	enum box_state state = BOX_RUNNING;
	uint64_t changed;
	enum err e = vault_open(s->account, s->key, a, &key);
	c.provider = key.provider;
	c.credential = &key.credential;
	if (!e)
		e = find_it(s, &c, &box);
	if (!e && !box)
		return;
	if (!e)
		e = c.provider->ops->destroy(&c, box, &state);
	if (!e && state == BOX_STOPPED)
		e = db_change(SQL_SANDBOX_STOPPED, ARGS(A_INT(clock_ms()), A_ID(s->id)), &changed);
	if (e || state != BOX_STOPPED)
		failed(s, e);
	else
		log_event(EV_SANDBOX_STOPPED, LOG_ID("sandbox", s->id),
			LOG_INT("tries", s->stop_tries + 1));
}

/* -- the sweep --------------------------------------------------------------------------------- */

static enum err sweep_one(struct call *c, const struct box *box, struct arena *a)
{
	struct rows rows;
	uint64_t changed;
	enum box_state state;
	enum err e = db_run(SQL_SANDBOX_BY_MARK, ARGS(A_STR(box->mark)), a, &rows);
	if (e)
		return e;
	if (rows.n == 0) {
		/* Not proven to be ours to end: perhaps a restored backup. Told, never killed. */
		log_event(EV_SANDBOX_STRANGE, LOG_NAME("provider", c->provider->name));
		return OK;
	}
	const char *own = row_str(&rows, 0, 1), *job = row_str(&rows, 0, 3);
	bool settled = strcmp(own, "absent") == 0 || strcmp(own, "stopped") == 0;
	bool young = clock_ms() - row_int(&rows, 0, 2) < SWEEP_GRACE_MS;
	if (!settled || young || strcmp(job, "ended") != 0)
		return OK; /* a living job's, or already in the keeper's hands */
	struct id id = row_id(&rows, 0, 0);
	e = db_change(SQL_SANDBOX_LOST_AND_FOUND, ARGS(A_STR(box->id), A_INT(clock_ms()), A_ID(id)),
		&changed);
	if (!e)
		e = c->provider->ops->destroy(c, box->id, &state);
	if (!e && state == BOX_STOPPED)
		e = db_change(SQL_SANDBOX_STOPPED, ARGS(A_INT(clock_ms()), A_ID(id)), &changed);
	return e;
}

enum err sandbox_sweep(struct id account, struct id key, struct arena *a)
{
	CLEANUP_KEY struct opened_key opened;
	struct box_list boxes = {0};
	char prefix[MARK_SIZE];
	enum err e = vault_open(account, key, a, &opened);
	if (e)
		return e;
	CLEANUP_CALL struct call c = {
		.provider = opened.provider, .credential = &opened.credential, .arena = a};
	if (!(c.provider->can & CAN_LIST))
		return OK;
	node_mark_prefix(prefix);
	e = c.provider->ops->list(&c, prefix, &boxes);
	for (size_t i = 0; !e && i < boxes.n; i++)
		e = sweep_one(&c, &boxes.items[i], a);
	return e;
}
