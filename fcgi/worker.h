/*
 * One worker process: an event thread and an elastic pool of plain blocking threads.
 *
 * The event thread (epoll) accepts connections of nginx, watches idle kept connections and clients
 * that go away, and handles signals. Pool threads run handlers and job drivers as straight-line
 * blocking code. At most `runnable` of them run at once: a thread that waits (block.h) gives its
 * place to queued work. When threads and queue are full the request is answered 503, never left
 * hanging. On SIGTERM the worker drains: it stops accepting, serves kept connections until nginx
 * closes them, hands its jobs over, and ends.
 */
#pragma once
#include "err.h"

#include <fcgiapp.h>
#include <stdbool.h>
#include <stdint.h>

struct client; /* the connection of the request that a thread is serving */

struct worker_conf {
	int listen_fd;
	int ready_fd;         /* one byte is written when the worker serves; -1: none */
	unsigned threads_max; /* pool threads; each waiting request or driven job holds one */
	unsigned runnable;    /* threads that may run at once; 0: cores, at least 2 */
	unsigned queue_max;   /* requests waiting for a thread before 503 */
	int drain_s;          /* longest drain */
};

struct worker_hooks {
	/* Serves one request on a pool thread: reads r->in, writes r->out. The worker drains the
	 * input and finishes the request afterwards. */
	void (*serve)(FCGX_Request *r, struct client *c);
	/* Writes the 503 reply for a request that found no thread (request already accepted). */
	void (*refuse)(FCGX_Request *r);
	/* SIGTERM came: give running jobs up (they are handed over); must not block. */
	void (*drain)(void);
	/* True when nothing of this worker is left to wait for (no driven job). */
	bool (*idle)(void);
};

/*
 * Prepares the signals of a worker: libfcgi's own set-up first, then SIGTERM blocked for a
 * signalfd, SIGINT, SIGHUP and SIGPIPE ignored. Call it before the process makes its first thread,
 * or a thread that does not block SIGTERM takes it away from the event thread. worker_run calls it
 * again.
 */
void worker_signals(void);

/*
 * Runs until drained. Returns 0, or 1 when the drain time was over (threads are then still running:
 * end the process with _exit).
 */
int worker_run(const struct worker_conf *conf, const struct worker_hooks *hooks);

/*
 * Runs fn(arg) on a pool thread, from any thread. False when the pool and its queue are full;
 * nothing was started. A quarter of the threads is kept for this and a quarter for requests
 * (pool.h).
 */
MUST_USE bool pool_submit(void (*fn)(void *), void *arg);

/* True once the client of this request has closed its connection. */
bool client_gone(const struct client *c);
/*
 * Calls wake(ctx) from the event thread when the client goes away; NULL wake ends the watch (and
 * returns only when no call is running). wake may not block and may not call client_watch; the
 * caller holds no lock that wake takes. A client that went before is not reported again: set the
 * watch first, then ask client_gone() before each wait.
 */
void client_watch(struct client *c, void (*wake)(void *ctx), void *ctx);

/*
 * Reads the rest of the input and frees its buffer (8 KiB): for a handler that is going to wait
 * long. r->in is NULL afterwards.
 */
void client_input_done(FCGX_Request *r);

/* Figures for /metrics of this process. */
struct pool_figures {
	unsigned threads, running,
		queued; /* queued: work and threads that wait for a place to run */
	uint64_t served, refused;
};
void pool_figures(struct pool_figures *ret);
