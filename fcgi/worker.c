/*
 * The event thread of a worker: accepts, watches, and drains.
 *
 * It never blocks but in epoll_wait and never runs a handler. Promises: every connection that sends
 * a whole head gets an answer (served by the pool or refused with 503); connections that owe us a
 * head are closed after HEAD_WAIT_MS; after SIGTERM no kept connection is closed by us. What
 * happens to a connection in other threads is in worker_conn.c, who runs when in pool.c.
 */
#include "worker.h"

#include "clock.h"
#include "bounds.h"
#include "log.h"
#include "pool.h"
#include "worker_conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX      64  /* of one epoll_wait */
#define ACCEPT_PAUSE_MS 100 /* when descriptors are used up */
#define DRAIN_TICK_MS   50  /* between two looks at whether the drain is over */

static struct {
	const struct worker_conf *conf;
	const struct worker_hooks *hooks;
	struct pool *pool;
	int epoll_fd, signal_fd, wake_fd;
	int listen_fd;                     /* -1: closed, draining */
	int64_t accept_paused;             /* 0, or when to listen again */
	int64_t drain_until;               /* 0: not draining */
	unsigned conns;                    /* connections open or not yet freed */
	struct client *owing, *owing_last; /* those that owe a head, oldest first */
} w;

/* -- connections that owe a head --------------------------------------------------------------- */

static void owing_add(struct client *c)
{
	c->head_until = clock_mono_ms() + HEAD_WAIT_MS;
	c->next = NULL;
	c->prev = w.owing_last;
	*(w.owing_last ? &w.owing_last->next : &w.owing) = c;
	w.owing_last = c;
}

static void owing_remove(struct client *c)
{
	if (!c->head_until)
		return;
	c->head_until = 0;
	*(c->prev ? &c->prev->next : &w.owing) = c->next;
	*(c->next ? &c->next->prev : &w.owing_last) = c->prev;
}

/* -- connections ------------------------------------------------------------------------------- */

/* Closes an idle connection: nginx closed it, or it did not keep the protocol. Freed with the
 * others after the events at hand. */
static void close_idle(struct client *c)
{
	owing_remove(c);
	close(c->fd);
	conn_hand_closed(c);
}

/* Something may have arrived on an idle connection. */
static void look(struct client *c, bool is_new)
{
	switch (conn_peek(c)) {
	case HEAD_BAD:
		close_idle(c);
		return;
	case HEAD_PARTIAL:
		/* A kept connection may be silent for as long as nginx likes; a new one not. */
		if (!c->head_until && (is_new || conn_has_bytes(c)))
			owing_add(c);
		return;
	case HEAD_WHOLE:
		break;
	}
	owing_remove(c);
	conn_begin(c);
	if (!pool_put(w.pool, POOL_REQUEST, conn_serve, c))
		conn_refuse(c);
}

static void listen_watch(bool on)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = &w.listen_fd};
	int rc = epoll_ctl(w.epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, w.listen_fd, &e);
	assert(rc == 0);
}

/*
 * Takes one connection and goes to the end of the kernel's line of waiting workers. Without that
 * the first worker in the line is woken every time, and is full while the others are idle.
 */
static void accept_one(void)
{
	if (w.listen_fd < 0 || w.accept_paused)
		return; /* an event from before the drain or the pause */
	int fd = accept4(w.listen_fd, NULL, NULL, SOCK_CLOEXEC);
	int error = errno;
	listen_watch(false);
	if (fd < 0 && (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM)) {
		w.accept_paused = clock_mono_ms() + ACCEPT_PAUSE_MS; /* or it would spin */
		return;
	}
	listen_watch(true);
	struct client *c = fd < 0 ? NULL : conn_new(fd); /* < 0: another worker was faster */
	if (!c)
		return;
	w.conns++;
	look(c, true);
}

static void free_closed(void)
{
	for (struct client *next, *c = conn_closed(); c; c = next) {
		next = c->next_handed;
		conn_free(c);
		w.conns--;
	}
}

/* -- signals and drain ------------------------------------------------------------------------- */

void worker_signals(void)
{
	sigset_t set;
	int rc = FCGX_Init(); /* replaces handlers, so it comes first */
	assert(rc == 0);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGINT, SIG_IGN); /* the terminal's; the master passes it on as SIGTERM */
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int signals_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void drain_begin(void)
{
	struct signalfd_siginfo info;
	while (read(w.signal_fd, &info, sizeof info) > 0)
		;
	if (w.drain_until)
		return;
	w.drain_until = clock_mono_ms() + (int64_t)w.conf->drain_s * 1000;
	log_event(EV_WORKER_DRAIN, LOG_INT("connections", w.conns));
	if (!w.accept_paused)
		listen_watch(false);
	w.accept_paused = 0;
	close(w.listen_fd); /* our copy: what is queued there stays for the other workers */
	w.listen_fd = -1;
	if (w.hooks->drain)
		w.hooks->drain();
}

static bool drained(void)
{
	return w.conns == 0 && !pool_busy(w.pool) && (!w.hooks->idle || w.hooks->idle());
}

/* -- the loop ---------------------------------------------------------------------------------- */

static void watch_fd(int fd, int *tag)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = tag};
	int rc = epoll_ctl(w.epoll_fd, EPOLL_CTL_ADD, fd, &e);
	assert(fd >= 0 && rc == 0);
}

static int64_t sooner(int64_t a, int64_t b)
{
	return b && b < a ? b : a;
}

/* Milliseconds until the loop has something to do by itself; -1: never. */
static int next_timeout(void)
{
	int64_t now = clock_mono_ms(), at = INT64_MAX;
	if (w.drain_until)
		at = now + DRAIN_TICK_MS;
	at = sooner(at, w.accept_paused);
	at = sooner(at, w.owing ? w.owing->head_until : 0);
	if (at == INT64_MAX)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void on_time(void)
{
	int64_t now = clock_mono_ms();
	if (w.accept_paused && w.accept_paused <= now) {
		w.accept_paused = 0;
		listen_watch(true);
	}
	while (w.owing && w.owing->head_until <= now)
		close_idle(w.owing);
}

static void on_event(const struct epoll_event *e)
{
	uint64_t count;
	if (e->data.ptr == &w.listen_fd)
		accept_one();
	else if (e->data.ptr == &w.signal_fd)
		drain_begin();
	else if (e->data.ptr == &w.wake_fd)
		(void)!read(w.wake_fd, &count, sizeof count); /* only resets it */
	else if (conn_event(e->data.ptr))
		look(e->data.ptr, false);
}

static int loop(void)
{
	struct epoll_event events[EVENTS_MAX];
	for (;;) {
		int n = epoll_wait(w.epoll_fd, events, EVENTS_MAX, next_timeout());
		for (int i = 0; i < n; i++)
			on_event(&events[i]);
		on_time();
		free_closed(); /* after the events, which may point at them */
		if (w.drain_until && drained())
			return 0;
		if (w.drain_until && clock_mono_ms() >= w.drain_until)
			return 1;
	}
}

/* -- start and end ----------------------------------------------------------------------------- */

static void raise_descriptors(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= DESCRIPTORS_MAX)
		return;
	r.rlim_cur = r.rlim_max < DESCRIPTORS_MAX ? r.rlim_max : DESCRIPTORS_MAX;
	(void)setrlimit(RLIMIT_NOFILE, &r); /* with fewer, accept pauses earlier */
}

static void start(const struct worker_conf *conf, const struct worker_hooks *hooks)
{
	w.conf = conf;
	w.hooks = hooks;
	w.listen_fd = conf->listen_fd;
	w.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w.signal_fd = signals_open();
	w.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert(w.epoll_fd >= 0);
	w.pool = pool_new(&(struct pool_conf){.threads_max = conf->threads_max,
		.runnable = conf->runnable,
		.queue_max = conf->queue_max,
		.expired = conn_refuse});
	pool_use(w.pool);
	conn_start(
		&(struct conn_hooks){.epoll_fd = w.epoll_fd, .wake_fd = w.wake_fd, .hooks = hooks});
	(void)fcntl(w.listen_fd, F_SETFL, fcntl(w.listen_fd, F_GETFL) | O_NONBLOCK);
	(void)fcntl(w.listen_fd, F_SETFD, FD_CLOEXEC);
	watch_fd(w.signal_fd, &w.signal_fd);
	watch_fd(w.wake_fd, &w.wake_fd);
	listen_watch(true);
}

static void say_ready(int fd)
{
	if (fd < 0)
		return;
	ssize_t n = write(fd, "1", 1);
	(void)n; /* a master that has gone is told by its death signal */
	close(fd);
}

int worker_run(const struct worker_conf *conf, const struct worker_hooks *hooks)
{
	worker_signals();
	raise_descriptors();
	start(conf, hooks);
	say_ready(conf->ready_fd);
	int rc = loop();
	if (rc != 0)
		return rc; /* threads are still running; everything stays as it is for them */
	conn_stop();
	pool_use(NULL);
	pool_free(w.pool);
	w.pool = NULL;
	close(w.epoll_fd);
	close(w.signal_fd);
	close(w.wake_fd);
	w.drain_until = 0;
	return 0;
}

void pool_figures(struct pool_figures *ret)
{
	*ret = (struct pool_figures){0};
	if (w.pool)
		pool_count(w.pool, ret);
	ret->refused = conn_refused();
}
