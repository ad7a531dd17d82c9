/*
 * An elastic pool of plain blocking threads with a bounded number running.
 *
 * Threads are made when work finds none idle, up to threads_max, and end after idle_ms without
 * work. At most `runnable` threads are outside block brackets (block.h). Order when a place to run
 * gets free: first a thread that came out of a bracket (first in, first out: it holds what it
 * waited for, a row or a reply, so finishing it frees most), then the oldest queued work. Work goes
 * to the thread that became idle last: its stack and caches are warm, and the others can age and
 * end.
 *
 * Two kinds of work share the pool. Each may hold at most three quarters of the threads, so a
 * quarter is always left for the other: requests that wait for jobs cannot keep the jobs from
 * starting, and jobs cannot keep requests from being answered. Each kind has its own queue.
 *
 * A forgotten bracket cannot stall the pool: when work that has a thread did not move for valve_ms,
 * one more thread may run for a while.
 */
#pragma once
#include "worker.h"

enum pool_kind { POOL_REQUEST, POOL_DRIVER, POOL_KINDS };

struct pool_conf {
	unsigned threads_max;            /* at least 2 */
	unsigned runnable;               /* 0: cores, at least 2 */
	unsigned queue_max;              /* of each kind, at least 1 */
	int idle_ms, valve_ms, queue_ms; /* 0: the bound in bounds.h */
	/* A request waited queue_ms without getting a thread; it will not run. Called with the pool
	 * locked: may not call the pool. NULL: requests wait for ever. */
	void (*expired)(void *arg);
};

struct pool *pool_new(const struct pool_conf *conf);
/* Waits for running work, drops queued work, ends all threads. Not from a pool thread. */
void pool_free(struct pool *p);

/* Queues fn(arg). False when the queue of its kind is full; nothing was started then. */
MUST_USE bool pool_put(struct pool *p, enum pool_kind kind, void (*fn)(void *), void *arg);

/* True while any work is queued or held by a thread. */
bool pool_busy(struct pool *p);
/* queued counts all that wait for a place: queued work and threads that came out of a bracket;
 * served = pieces of work of the kind POOL_REQUEST that ended. */
void pool_count(struct pool *p, struct pool_figures *ret);

/* Makes p the pool of pool_submit() (NULL: none). worker_run does it; other processes may. */
void pool_use(struct pool *p);
