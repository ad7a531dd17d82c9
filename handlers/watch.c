/* Waiting for the end of jobs. */
#include "watch.h"

#include "alloc.h"
#include "arena.h"
#include "block.h"
#include "clock.h"
#include "db.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define WATCH_MS    500
#define OVERLAP_MS  2000 /* clocks of nodes and slow commits; a second signal does no harm */
#define WATCH_ARENA (4u << 20)
#define BUCKETS     256u

struct watch {
	struct id job;
	struct watch *next, *prev;
	pthread_cond_t woken;
	bool signalled;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t stop;
	struct watch *buckets[BUCKETS];
	unsigned n;
	bool running;
	pthread_t thread;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void cond_init(pthread_cond_t *c)
{
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

static void wait_until(pthread_cond_t *c, int64_t mono_ms)
{
	struct timespec t = {.tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000};
	(void)pthread_cond_timedwait(c, &all.lock, &t);
}

static struct watch **bucket_of(struct id job)
{
	return &all.buckets[job.b[15] % BUCKETS]; /* the last byte is random */
}

struct watch *watch_begin(struct id job)
{
	struct watch *w = must(calloc(1, sizeof *w));
	struct watch **head = bucket_of(job);
	w->job = job;
	cond_init(&w->woken);
	(void)pthread_mutex_lock(&all.lock);
	w->next = *head;
	if (w->next)
		w->next->prev = w;
	*head = w;
	all.n++;
	(void)pthread_mutex_unlock(&all.lock);
	return w;
}

void watch_end(struct watch *w)
{
	(void)pthread_mutex_lock(&all.lock);
	if (w->prev)
		w->prev->next = w->next;
	else
		*bucket_of(w->job) = w->next;
	if (w->next)
		w->next->prev = w->prev;
	all.n--;
	(void)pthread_mutex_unlock(&all.lock);
	(void)pthread_cond_destroy(&w->woken);
	free(w);
}

bool watch_wait(struct watch *w, int64_t until_ms)
{
	block_begin();
	(void)pthread_mutex_lock(&all.lock);
	while (!w->signalled && clock_mono_ms() < until_ms)
		wait_until(&w->woken, until_ms);
	bool signalled = w->signalled;
	w->signalled = false;
	(void)pthread_mutex_unlock(&all.lock);
	block_end();
	return signalled;
}

void watch_wake(void *p)
{
	struct watch *w = p;
	(void)pthread_mutex_lock(&all.lock);
	w->signalled = true;
	(void)pthread_cond_signal(&w->woken);
	(void)pthread_mutex_unlock(&all.lock);
}

void watch_signal(struct id job)
{
	(void)pthread_mutex_lock(&all.lock);
	for (struct watch *w = *bucket_of(job); w; w = w->next) {
		if (!id_equal(w->job, job))
			continue;
		w->signalled = true;
		(void)pthread_cond_signal(&w->woken);
	}
	(void)pthread_mutex_unlock(&all.lock);
}

void watch_wake_all(void)
{
	(void)pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct watch *w = all.buckets[i]; w; w = w->next) {
			w->signalled = true;
			(void)pthread_cond_signal(&w->woken);
		}
	(void)pthread_mutex_unlock(&all.lock);
}

/* After a failure the same span is asked again, so nothing that ended meanwhile is missed. */
static int64_t signal_ended_since(int64_t since)
{
	CLEANUP_ARENA struct arena *a = arena_new(WATCH_ARENA);
	struct rows rows;
	int64_t now = clock_ms();
	if (db_run(SQL_JOBS_ENDED_SINCE, ARGS(A_INT(since)), a, &rows))
		return since;
	for (size_t i = 0; i < rows.n; i++)
		watch_signal(row_id(&rows, i, 0));
	return now - OVERLAP_MS;
}

static void *watch_thread(void *unused)
{
	(void)unused;
	int64_t since = clock_ms() - OVERLAP_MS;
	(void)pthread_mutex_lock(&all.lock);
	while (all.running) {
		bool somebody = all.n > 0;
		(void)pthread_mutex_unlock(&all.lock);
		since = somebody ? signal_ended_since(since) : clock_ms() - OVERLAP_MS;
		(void)pthread_mutex_lock(&all.lock);
		if (all.running)
			wait_until(&all.stop, clock_mono_ms() + WATCH_MS);
	}
	(void)pthread_mutex_unlock(&all.lock);
	return NULL;
}

void watch_start(void)
{
	cond_init(&all.stop);
	all.running = true;
	if (pthread_create(&all.thread, NULL, watch_thread, NULL) != 0)
		memory_is_out();
}

void watch_stop(void)
{
	(void)pthread_mutex_lock(&all.lock);
	all.running = false;
	(void)pthread_cond_signal(&all.stop);
	(void)pthread_mutex_unlock(&all.lock);
	(void)pthread_join(all.thread, NULL);
}
