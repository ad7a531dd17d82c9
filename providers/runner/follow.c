/* One follower. See section 4 of the bridge contract for the frames. */
#include "follow.h"

#include "arena.h"
#include "clock.h"
#include "json.h"
#include "sandbox.h"
#include "text.h"

static const char *const stream_names[] = {"stdout", "stderr"};

struct follow {
	struct arena *a;
	struct exec *exec;
	int64_t at[2], due_ms, said_ms;
	bool begun, over;
};

struct follow *follow_new(struct exec *e, int64_t stdout_at, int64_t stderr_at, int64_t follow_ms)
{
	struct arena *a = arena_new(4096);
	struct follow *f = ARENA_NEW(a, struct follow);
	int64_t now = clock_mono_ms();
	*f = (struct follow){.a = a,
		.exec = e,
		.at = {stdout_at, stderr_at},
		.due_ms = now + follow_ms,
		.said_ms = now};
	return f;
}

void follow_free(struct follow *f)
{
	exec_put(f->exec);
	arena_free(f->a);
}

static void frame_start(struct follow *f, struct jw *w)
{
	f->begun = true;
	jw_kstr(w, "t", "start");
	jw_kstr(w, "exec_id", f->exec->id);
}

/* Called with the lock; a stream in a file is read without it. */
static void frame_out(struct follow *f, int s, struct jw *w)
{
	struct output *o = &f->exec->out[s];
	CLEANUP_ARENA struct arena *a = arena_new(2 * FRAME_BYTES_MAX);
	int64_t left = o->size - f->at[s];
	size_t want = left < FRAME_RAW_MAX ? (size_t)left : FRAME_RAW_MAX;
	void *p = arena_take(a, want);
	const struct output there = *o; /* what lies below this size never changes */
	if (there.fd >= 0)
		registry_unlock();
	size_t n = output_read(&there, f->at[s], p, want);
	jw_kstr(w, "t", "out");
	jw_kstr(w, "s", stream_names[s]);
	jw_kint(w, "o", f->at[s]);
	jw_kstr(w, "d", base64_encode(a, p, n));
	f->at[s] += (int64_t)n;
	f->over = n == 0; /* the disk fails: end without a terminal frame, which means unknown */
	if (there.fd >= 0)
		registry_lock();
}

static void frame_exit(struct follow *f, struct jw *w)
{
	const struct exec *e = f->exec;
	f->over = true;
	jw_kstr(w, "t", "exit");
	jw_kint(w, "code", e->code);
	jw_kbool(w, "timed_out", e->timed_out);
	if (e->out[0].dropped + e->out[1].dropped == 0)
		return;
	jw_key(w, "dropped");
	jw_obj(w);
	jw_kint(w, "stdout", e->out[0].dropped);
	jw_kint(w, "stderr", e->out[1].dropped);
	jw_end(w);
}

static void frame_error(struct follow *f, enum wrong what, struct jw *w)
{
	f->over = true;
	jw_kstr(w, "t", "error");
	jw_kstr(w, "code", wrong_row(what)->code);
	jw_kstr(w, "message", wrong_row(what)->text);
}

static void frame_pending(struct follow *f, struct jw *w)
{
	f->over = true;
	jw_kstr(w, "t", "pending");
	jw_kint(w, "stdout", f->at[0]);
	jw_kint(w, "stderr", f->at[1]);
}

/* Writes a frame when there is one to write now. */
static bool frame_now(struct follow *f, struct jw *w)
{
	const struct exec *e = f->exec;
	if (e->state == EXEC_NEW && !registry.stopping && clock_mono_ms() < f->due_ms)
		return false;
	if (!f->begun)
		return frame_start(f, w), true;
	for (int s = 0; s < 2; s++)
		if (e->out[s].size > f->at[s])
			return frame_out(f, s, w), true;
	if (e->state == EXEC_DONE)
		return frame_exit(f, w), true;
	if (e->state == EXEC_LOST || registry.stopping)
		return frame_error(f, WRONG_LOST, w), true;
	if (e->state == EXEC_REFUSED)
		return frame_error(f, WRONG_EXEC, w), true;
	if (clock_mono_ms() >= f->due_ms)
		return frame_pending(f, w), true;
	return false;
}

bool follow_next(struct follow *f, struct buf *b)
{
	if (f->over)
		return false;
	struct jw w = jw_new(b);
	jw_obj(&w);
	registry_lock();
	while (!frame_now(f, &w)) {
		int64_t beat = f->said_ms + HEARTBEAT_MS;
		if (clock_mono_ms() >= beat && f->begun) {
			jw_kstr(&w, "t", "hb");
			break;
		}
		(void)registry_wait(
			&f->exec->changed, beat < f->due_ms && f->begun ? beat : f->due_ms);
	}
	registry_unlock();
	jw_end(&w);
	buf_char(b, '\n');
	f->said_ms = clock_mono_ms();
	return !b->full;
}
