/*
 * The thread that reads from boxes: answers of their first processes, output of their commands. It
 * also watches the clock of every sandbox. Promises: what it reads is input from strangers (a box
 * may say anything; only known numbers and states are acted on); all output that was in the pipe
 * when a command ended is kept before the end is told; it alone closes and frees what it watches.
 */
#include "sandbox.h"

#include "arena.h"
#include "clock.h"
#include "wire.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX  64
#define PIECE_BYTES 65536
#define SWEEP_MS    100

bool pump_watch(struct watch *w)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = w};
	return epoll_ctl(registry.epoll, EPOLL_CTL_ADD, w->fd, &e) == 0;
}

static void unwatch(struct watch *w)
{
	if (w->fd < 0)
		return;
	(void)epoll_ctl(registry.epoll, EPOLL_CTL_DEL, w->fd, NULL);
	(void)close(w->fd);
	w->fd = -1;
}

/* Keeps n bytes of a stream; in memory under the lock, in a file without it (see output.h). */
static void keep(struct exec *e, int stream, const char *p, size_t n)
{
	struct output *o = &e->out[stream];
	registry_lock();
	bool in_file = o->fd >= 0;
	if (in_file)
		registry_unlock();
	size_t kept = output_append(o, p, n);
	if (in_file)
		registry_lock();
	o->size += (int64_t)kept;
	o->dropped += (int64_t)(n - kept);
	(void)pthread_cond_broadcast(&e->changed);
	registry_unlock();
}

/* Reads at most limit bytes that are there; false at the end of the stream. */
static bool read_some(struct watch *w, size_t limit, size_t *ret_n)
{
	static char piece[PIECE_BYTES];
	ssize_t n = read(w->fd, piece, limit < sizeof piece ? limit : sizeof piece);
	*ret_n = n > 0 ? (size_t)n : 0;
	/* After the end of a command its left-over children may go on writing; nobody waits for
	 * that. */
	if (n > 0 && w->exec->state != EXEC_DONE)
		keep(w->exec, w->stream, piece, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void stream_event(struct watch *w)
{
	size_t n;
	if (w->fd >= 0 && !read_some(w, PIECE_BYTES, &n))
		unwatch(w);
}

/* What is in the pipe now was written before the command ended. */
static void drain(struct exec *e)
{
	for (int i = 0; i < 2; i++) {
		int left = 0;
		if (e->watch[i].fd < 0 || ioctl(e->watch[i].fd, FIONREAD, &left) < 0)
			continue;
		for (size_t n = 1; left > 0 && n > 0; left -= (int)n)
			if (!read_some(&e->watch[i], (size_t)left, &n))
				break;
	}
}

static struct exec *find_seq(struct sandbox *s, uint32_t seq)
{
	struct exec *found = NULL;
	registry_lock();
	for (struct exec *e = s->execs; e && !found; e = e->next)
		if (e->seq == seq)
			found = e;
	registry_unlock();
	return found; /* records are freed by this thread alone */
}

static void settle(struct exec *e, enum exec_state state, const struct wire_head *h)
{
	registry_lock();
	e->state = state;
	if (state == EXEC_REFUSED)
		e->stage = h->b;
	if (state == EXEC_DONE)
		e->timed_out = h->b == 1;
	if (state != EXEC_RUNNING) {
		e->code = h->a & 255;
		e->ended_ms = clock_mono_ms();
	}
	(void)pthread_cond_broadcast(&e->changed);
	registry_unlock();
}

static void box_says(struct sandbox *s, const struct wire_head *h)
{
	struct exec *e = find_seq(s, h->seq);
	if (!e)
		return;
	if (h->op == WIRE_STARTED && e->state == EXEC_NEW) {
		settle(e, EXEC_RUNNING, h);
	} else if (h->op == WIRE_REFUSED && e->state == EXEC_NEW) {
		settle(e, EXEC_REFUSED, h);
	} else if (h->op == WIRE_EXIT && (e->state == EXEC_RUNNING || e->state == EXEC_NEW)) {
		drain(e);
		settle(e, EXEC_DONE, h);
	}
}

/* The box ended by itself or was ended. */
static void box_gone(struct sandbox *s)
{
	registry_lock();
	unwatch(&s->watch);
	for (struct exec *e = s->execs; e; e = e->next) {
		if (e->state != EXEC_NEW && e->state != EXEC_RUNNING)
			continue;
		e->state = EXEC_LOST;
		e->ended_ms = clock_mono_ms();
		(void)pthread_cond_broadcast(&e->changed);
	}
	sandbox_stop_locked(s);
	registry_unlock();
}

static void box_event(struct sandbox *s)
{
	struct wire_head h;
	ssize_t n = s->watch.fd < 0 ? -1 : recv(s->watch.fd, &h, sizeof h, MSG_DONTWAIT);
	if (n == sizeof h)
		box_says(s, &h);
	else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && s->watch.fd >= 0))
		box_gone(s);
}

/* -- the clock --------------------------------------------------------------------------------- */

static bool ended(const struct exec *e)
{
	return e->state == EXEC_DONE || e->state == EXEC_LOST || e->state == EXEC_REFUSED;
}

/* A record whose streams are still held open by a child left behind stays: closing our end would
 * kill that child with SIGPIPE. */
static bool may_forget(const struct exec *e, bool excess, int64_t now)
{
	if (e->state == EXEC_REFUSED)
		return true;
	if (!ended(e))
		return false;
	if (!e->id[0])
		return e->refs == 1;
	return (excess || now - e->ended_ms > EXEC_KEPT_MS) && e->watch[0].fd < 0 &&
	       e->watch[1].fd < 0;
}

static void forget(struct sandbox *s, bool all, int64_t now)
{
	size_t at = 0; /* new records come first */
	for (struct exec **p = &s->execs; *p;) {
		struct exec *e = *p;
		at += ended(e) && e->id[0];
		if (!all && !may_forget(e, at > EXECS_KEPT, now)) {
			p = &e->next;
			continue;
		}
		unwatch(&e->watch[0]);
		unwatch(&e->watch[1]);
		if (e->id[0] && e->state != EXEC_REFUSED)
			seen_add(&s->seen, e->id);
		*p = e->next;
		s->execs_n--;
		exec_put_locked(e);
	}
}

static bool is_idle(const struct sandbox *s, int64_t now)
{
	for (const struct exec *e = s->execs; e; e = e->next)
		if (!ended(e))
			return false;
	return s->idle_ms && now - s->used_ms > s->idle_ms;
}

static void sweep(int64_t now)
{
	registry_lock();
	for (struct sandbox **p = &registry.list; *p;) {
		struct sandbox *s = *p;
		if (s->state == SANDBOX_RUNNING && (now >= s->due_ms || is_idle(s, now)))
			sandbox_stop_locked(s);
		bool gone = s->state == SANDBOX_GONE;
		if (gone)
			unwatch(&s->watch);
		forget(s, gone, now);
		if (!gone) {
			p = &s->next;
			continue;
		}
		*p = s->next;
		registry_unlock();
		sandbox_put(s);
		registry_lock();
		p = &registry.list; /* the list may have changed meanwhile */
	}
	registry_unlock();
}

void *pump_run(void *unused)
{
	struct epoll_event events[EVENTS_MAX];
	for (int64_t last = 0;;) {
		int n = epoll_wait(registry.epoll, events, EVENTS_MAX, SWEEP_MS);
		for (int i = 0; i < n; i++) {
			struct watch *w = events[i].data.ptr;
			if (w->kind == WATCH_BOX)
				box_event(w->sandbox);
			else
				stream_event(w);
		}
		int64_t now = clock_mono_ms();
		if (now - last >= SWEEP_MS)
			sweep(now);
		last = now - last >= SWEEP_MS ? now : last;
	}
	return unused;
}
