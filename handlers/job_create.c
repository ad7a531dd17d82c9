/*
 * Gets a sandbox for a job: one candidate after the other, each attempt written down before it is
 * made. Falling back happens here and only here, because no command has begun yet. A create is
 * repeated in one case: its provider said for certain that it did nothing, because of its limits,
 * and the time that it asked for is within the job's patience.
 */
#include "job_create.h"

#include "db.h"
#include "health.h"

#define SLICE_MS 1000 /* of a wait, after which we look whether the job is still wanted */

struct opening {
	struct drive *d;
	struct id key;
};

static enum err open_once(void *ctx)
{
	struct opening *x = ctx;
	vault_close(&x->d->key);
	return vault_open(x->d->account, x->key, x->d->arena, &x->d->key);
}

enum err drive_open_key(struct drive *d, struct id key)
{
	enum err e = job_patient(open_once, &(struct opening){d, key});
	call_done(&d->call); /* what was learnt with another key */
	d->call.provider = d->key.provider;
	d->call.credential = &d->key.credential;
	d->call.arena = d->arena;
	return e;
}

/* -- limits of a provider ---------------------------------------------------------------------- */

static int64_t patience_left(const struct drive *d)
{
	int64_t all = d->timeout_s * 1000;
	all = all < LIMIT_PATIENCE_MS ? all : LIMIT_PATIENCE_MS;
	return all - d->waited_ms;
}

/* Jobs that were refused together do not come back together, and none comes too early. */
static int64_t with_jitter(int64_t pause_ms)
{
	return pause_ms + random_below((uint32_t)(pause_ms / 4 + 100));
}

/* Waits as the refusal at hand asks for. False: not worth it, or the job is not wanted any more. */
static bool wait_for_room(struct drive *d, int tries)
{
	int told_s = fault_of(ERR_UPSTREAM_LIMIT)->retry_after_s;
	bool others = d->fallback && d->attempt + 1 < d->candidates_n;
	int64_t pause = health_limit_pause(told_s, tries, patience_left(d), others);
	if (pause < 0)
		return false;
	int64_t began = clock_mono_ms(), until = began + with_jitter(pause);
	for (int64_t now = began; now < until; now = clock_mono_ms()) {
		clock_sleep_ms(until - now < SLICE_MS ? until - now : SLICE_MS);
		if (drive_is_draining() || !drive_goes_on(d))
			break;
	}
	int64_t waited = clock_mono_ms() - began;
	d->waited_ms += waited;
	d->call.upstream_us += waited * 1000; /* the provider asked for it: no time of ours */
	return !d->lost && !d->cancelled && !drive_is_draining();
}

/* -- create ------------------------------------------------------------------------------------ */

static bool still_wanted(void *ctx)
{
	return drive_goes_on(ctx);
}

/* Asks until the answer is not "later". *ret_ms: what the last of these calls took. */
static enum err ask(struct drive *d, const struct candidate *c, struct box *box, int64_t *ret_ms)
{
	struct fault why;
	enum err e;
	d->call.wanted = still_wanted;
	d->call.ctx = d;
	for (int tries = 1;; tries++) {
		int64_t began = clock_mono_ms();
		e = d->call.provider->ops->create(&d->call, &d->spec, box);
		*ret_ms = clock_mono_ms() - began;
		if (e != ERR_UPSTREAM_LIMIT || d->cancelled)
			return e;
		why = *fault_of(e);
		health_note(d->account, c->key, e);
		fault_restore(&why);
		if (!wait_for_room(d, tries))
			break;
	}
	fault_restore(&why);
	return e;
}

static bool create_with(struct drive *d, const struct candidate *c)
{
	struct box box = {0};
	int64_t took = 0;
	d->waited_ms = 0;
	enum err e = drive_open_key(d, c->key);
	if (!e)
		e = ask(d, c, &box, &took);
	if (!e) {
		d->box = box.id;
		return drive_held(d, job_created(d, &box, took));
	}
	struct fault why = *fault_of(e);
	if (health_blames(e) && !d->cancelled)
		health_note(d->account, c->key, e);
	if (!drive_held(d, job_attempt_failed(d, &why, took)))
		return false;
	if (d->cancelled)
		return drive_ends(d, OUTCOME_CANCELLED, OK);
	fault_restore(&why);
	return drive_ends(d, OUTCOME_PROVIDER_ERROR, e);
}

/* One error for all of them; who reads the job sees each (job_attempts.c). */
static bool nobody_did(struct drive *d)
{
	if (d->attempt > 0)
		(void)drive_ends(d, OUTCOME_PROVIDER_ERROR,
			fail(ERR_ALL_FAILED, NULL, "%u keys were tried; get_job tells of each",
				d->attempt + 1));
	return false;
}

bool drive_create(struct drive *d)
{
	for (size_t i = 0; i < d->candidates_n; i++) {
		const struct candidate *c = &d->candidates[i];
		if (i > 0 && (!drive_goes_on(d) || !drive_held(d, job_attempt(d, c))))
			return false;
		d->end.outcome = OUTCOME_NONE;
		d->end.fault = (struct fault){0};
		if (create_with(d, c))
			return true;
		if (d->lost || d->cancelled || !d->fallback)
			return false;
	}
	return nobody_did(d);
}

void drive_note_health(struct drive *d)
{
	if (d->lost || !d->box)
		return;
	enum err e = d->end.outcome == OUTCOME_NONE ? OK : d->end.fault.err;
	health_note(d->account, d->candidates[d->attempt].key, health_blames(e) ? e : OK);
}
