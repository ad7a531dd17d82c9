/*
 * The threads that fly calls: one curl multi handle each. A pool keeps every limit itself, because
 * libcurl does not count the time a call waits for a connection, and knows silence only in whole
 * seconds. It judges nothing about requests or replies.
 */
#include "http_parts.h"

#include "alloc.h"
#include "block.h"
#include "clock.h"

#include <signal.h>

/* Most connections to one fixed host: 100 streams on each carry more calls than a process has. */
#define FIXED_HOST_CONNECTIONS 128L
/* Kept connections, used ones among them: below it a finished call would close its connection, and
 * 2,000 jobs that wait over HTTP/1.1 would make a new TLS connection for every poll. */
#define CONNECTIONS_KEPT 2048L
#define LOOK_MIN_MS      20 /* between two looks at the limits of all flights */
#define LOOK_MAX_MS      60000

struct pool {
	pthread_t thread;
	CURLM *multi;
	pthread_mutex_t lock; /* guards the three below */
	struct flight *queue, **queue_end;
	bool running;
	/* of the thread: */
	struct flight *flying;
	int64_t next_look;
};

static struct pool pools[] = {
	[HTTP_FIXED] = {.lock = PTHREAD_MUTEX_INITIALIZER},
	[HTTP_USER] = {.lock = PTHREAD_MUTEX_INITIALIZER},
	[HTTP_ALONE] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static int64_t limit_of(const struct flight *f)
{
	int64_t total = f->begun_ms + f->total_ms;
	int64_t quiet = f->moved_ms + (f->answered ? f->idle_ms : f->first_ms);
	return quiet < total ? quiet : total;
}

static void look_by(struct pool *p, int64_t at)
{
	if (at < p->next_look)
		p->next_look = at;
}

void flight_moved(struct flight *f, bool answered)
{
	f->moved_ms = clock_mono_ms();
	if (!answered || f->answered)
		return;
	f->answered = true; /* from now on another limit counts, which may be nearer */
	look_by(f->pool, limit_of(f));
}

static void land(struct flight *f, CURLcode result)
{
	struct pool *p = f->pool;
	(void)curl_multi_remove_handle(p->multi, f->easy); /* fails only for our own mistakes */
	if (f->prev)
		f->prev->next = f->next;
	else
		p->flying = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->next = f->prev = NULL;
	f->result = result;
	(void)sem_post(&f->done); /* the flight belongs to its caller again */
}

static void take_off(struct pool *p, struct flight *f)
{
	f->begun_ms = f->moved_ms = clock_mono_ms();
	f->prev = NULL;
	f->next = p->flying;
	if (f->next)
		f->next->prev = f;
	p->flying = f;
	if (curl_multi_add_handle(p->multi, f->easy) != CURLM_OK) {
		land(f, CURLE_FAILED_INIT);
		return;
	}
	look_by(p, limit_of(f));
}

static bool take_queue(struct pool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	struct flight *f = p->queue;
	bool running = p->running;
	p->queue = NULL;
	p->queue_end = &p->queue;
	(void)pthread_mutex_unlock(&p->lock);
	for (struct flight *next; f; f = next) {
		next = f->next;
		take_off(p, f);
	}
	return running;
}

static void land_finished(struct pool *p)
{
	int left;
	for (CURLMsg *m; (m = curl_multi_info_read(p->multi, &left));) {
		struct flight *f = NULL;
		CURLcode result = m->data.result; /* the message dies with the handle */
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f);
		land(f, result);
	}
}

static void land_late(struct pool *p)
{
	int64_t now = clock_mono_ms(), earliest = now + LOOK_MAX_MS;
	if (now < p->next_look)
		return;
	for (struct flight *f = p->flying, *next; f; f = next) {
		int64_t at = limit_of(f);
		next = f->next;
		if (at <= now) {
			f->late = true;
			land(f, CURLE_OPERATION_TIMEDOUT);
		} else if (at < earliest) {
			earliest = at;
		}
	}
	p->next_look = earliest > now + LOOK_MIN_MS ? earliest : now + LOOK_MIN_MS;
}

static void *pool_main(void *arg)
{
	struct pool *p = arg;
	int running;
	while (take_queue(p)) {
		(void)curl_multi_perform(p->multi, &running);
		land_finished(p);
		land_late(p);
		int64_t wait = p->next_look - clock_mono_ms();
		(void)curl_multi_poll(p->multi, NULL, 0, wait > 0 ? (int)wait : 0, NULL);
	}
	while (p->flying)
		land(p->flying, CURLE_ABORTED_BY_CALLBACK);
	return NULL;
}

static void start(struct pool *p, const char *name, long host_connections_max)
{
	sigset_t all, before;
	p->flying = NULL;
	p->queue = NULL;
	p->queue_end = &p->queue;
	p->next_look = 0;
	p->multi = must(curl_multi_init());
	(void)curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
	(void)curl_multi_setopt(p->multi, CURLMOPT_MAX_HOST_CONNECTIONS, host_connections_max);
	if (p == &pools[HTTP_ALONE])
		(void)curl_multi_setopt(p->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	p->running = true;
	(void)sigfillset(&all); /* signals are for the thread that waits for them */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&p->thread, NULL, pool_main, p);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		memory_is_out(); /* no room for a thread at the start: the same to us */
	(void)pthread_setname_np(p->thread, name);
}

static void stop(struct pool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	bool ran = p->running;
	p->running = false;
	if (ran)
		(void)curl_multi_wakeup(p->multi);
	(void)pthread_mutex_unlock(&p->lock);
	if (!ran)
		return;
	(void)pthread_join(p->thread, NULL);
	(void)curl_multi_cleanup(p->multi);
}

void pools_start(void)
{
	start(&pools[HTTP_FIXED], "http-fixed", FIXED_HOST_CONNECTIONS);
	start(&pools[HTTP_USER], "http-user", 0);
	start(&pools[HTTP_ALONE], "http-alone", 0);
}

void pools_stop(void)
{
	stop(&pools[HTTP_FIXED]);
	stop(&pools[HTTP_USER]);
	stop(&pools[HTTP_ALONE]);
}

static bool enqueue(struct pool *p, struct flight *f)
{
	(void)pthread_mutex_lock(&p->lock);
	bool running = p->running;
	if (running) {
		bool idle = !p->queue;
		f->pool = p;
		f->next = NULL;
		*p->queue_end = f;
		p->queue_end = &f->next;
		if (idle)
			(void)curl_multi_wakeup(p->multi);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return running;
}

bool pool_fly(enum http_pool which, struct flight *f)
{
	if (!enqueue(&pools[which], f))
		return false;
	block_begin();
	while (sem_wait(&f->done) != 0)
		; /* interrupted by a signal */
	block_end();
	return true;
}
