/*
 * The elastic pool: threads, queues, and who may run.
 *
 * One lock guards everything; every wait has its own condition variable, so a wake-up reaches
 * exactly the thread that was chosen. Promises: never more than `runnable` threads outside brackets
 * but for the valve; work of one kind cannot take the last quarter of the threads. Does not know
 * what the work is, and cannot interrupt it.
 */
#include "pool.h"

#include "alloc.h"
#include "block.h"
#include "clock.h"
#include "bounds.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef CC_SANITIZED
#define STACK_BYTES (4 * THREAD_STACK) /* instrumented frames are several times larger */
#else
#define STACK_BYTES THREAD_STACK
#endif
#define MONITOR_IDLE_MS 100 /* tick while work only waits for a thread */

struct work {
	void (*fn)(void *);
	void *arg;
	int64_t since;
};

struct ring {
	struct work *at;
	unsigned first, n;
};

struct thread {
	struct pool *pool;
	pthread_cond_t wake;
	struct thread *next, *prev; /* in the stack of idle threads, or in the line of resumers */
	struct work work;
	enum pool_kind kind;
	bool has_work; /* idle thread: work was handed over */
	sem_t granted; /* resumer: posted when a place to run was handed over */
};

struct list {
	struct thread *head, *tail;
};

struct pool {
	struct pool_conf conf;
	pthread_mutex_t lock;
	pthread_cond_t monitor_wake, all_gone;
	pthread_t monitor;
	pthread_attr_t attr;
	struct ring queue[POOL_KINDS];
	unsigned held[POOL_KINDS]; /* threads that a kind has, waiting or running */
	unsigned share;            /* most that one kind may hold */
	struct list idle, resumers;
	unsigned threads, running, resuming, extra;
	uint64_t moves; /* starts and resumes so far: tells whether anything moves */
	uint64_t served;
	int64_t raised_at; /* when extra changed last */
	bool stopping, monitor_asleep;
};

static _Thread_local struct thread *self;
static _Atomic(struct pool *) submit_pool;

/* -- small parts ------------------------------------------------------------------------------- */

static void list_add(struct list *l, struct thread *t)
{
	t->next = NULL;
	t->prev = l->tail;
	*(l->tail ? &l->tail->next : &l->head) = t;
	l->tail = t;
}

static void list_remove(struct list *l, struct thread *t)
{
	*(t->prev ? &t->prev->next : &l->head) = t->next;
	*(t->next ? &t->next->prev : &l->tail) = t->prev;
	t->next = t->prev = NULL;
}

static void cond_init(pthread_cond_t *c)
{
	pthread_condattr_t a;
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(c, &a);
	pthread_condattr_destroy(&a);
}

/* Waits at most until the monotonic millisecond; false: it has come. */
static bool wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	return pthread_cond_timedwait(c, lock, &t) != ETIMEDOUT;
}

static struct work ring_take(struct pool *p, enum pool_kind kind)
{
	struct ring *r = &p->queue[kind];
	struct work w = r->at[r->first];
	r->first = (r->first + 1) % p->conf.queue_max;
	r->n--;
	return w;
}

/* -- who runs next ----------------------------------------------------------------------------- */

/* The kind whose oldest work has waited longest, among those below their share; POOL_KINDS: none.
 */
static enum pool_kind pick(const struct pool *p)
{
	enum pool_kind best = POOL_KINDS;
	int64_t since = INT64_MAX;
	for (enum pool_kind k = 0; k < POOL_KINDS; k++) {
		const struct ring *r = &p->queue[k];
		if (!r->n || p->held[k] >= p->share || r->at[r->first].since >= since)
			continue;
		best = k;
		since = r->at[r->first].since;
	}
	if (!p->idle.tail && p->threads >= p->conf.threads_max)
		return POOL_KINDS;
	return best;
}

static void *thread_main(void *arg);

static struct thread *thread_new(struct pool *p)
{
	struct thread *t = must(calloc(1, sizeof *t));
	pthread_t id;
	t->pool = p;
	cond_init(&t->wake);
	sem_init(&t->granted, 0, 0);
	if (pthread_create(&id, &p->attr, thread_main, t) == 0) {
		p->threads++;
		return t;
	}
	sem_destroy(&t->granted);
	pthread_cond_destroy(&t->wake);
	free(t);
	return NULL; /* a limit of the machine; the work stays queued and other threads will come to
			it */
}

static bool start_next(struct pool *p)
{
	enum pool_kind k = pick(p);
	if (k == POOL_KINDS)
		return false;
	struct thread *t = p->idle.tail;
	if (t)
		list_remove(&p->idle, t);
	else
		t = thread_new(p);
	if (!t)
		return false;
	t->work = ring_take(p, k);
	t->kind = k;
	t->has_work = true;
	p->held[k]++;
	p->running++;
	p->moves++;
	pthread_cond_signal(&t->wake);
	return true;
}

static bool resume_next(struct pool *p)
{
	struct thread *t = p->resumers.head;
	if (!t)
		return false;
	list_remove(&p->resumers, t);
	p->resuming--;
	p->running++;
	p->moves++;
	sem_post(&t->granted);
	return true;
}

static bool something_waits(const struct pool *p)
{
	return p->resumers.head || p->queue[POOL_REQUEST].n || p->queue[POOL_DRIVER].n;
}

/* Hands out every free place. The lock is held. */
static void dispatch(struct pool *p)
{
	while (p->running < p->conf.runnable + p->extra)
		if (!resume_next(p) && !start_next(p))
			break;
	if (p->monitor_asleep && something_waits(p)) {
		p->monitor_asleep = false;
		pthread_cond_signal(&p->monitor_wake);
	}
}

/* -- brackets ---------------------------------------------------------------------------------- */

static void on_begin(void *pool)
{
	struct pool *p = pool;
	pthread_mutex_lock(&p->lock);
	p->running--;
	dispatch(p);
	pthread_mutex_unlock(&p->lock);
}

static void on_end(void *pool)
{
	struct pool *p = pool;
	struct thread *t = self;
	pthread_mutex_lock(&p->lock);
	list_add(&p->resumers, t);
	p->resuming++;
	dispatch(p);
	pthread_mutex_unlock(&p->lock);
	/* Without the lock: whoever is woken would have to wait for it again, after every
	 * statement. */
	while (sem_wait(&t->granted) != 0)
		;
}

static const struct block_hooks hooks = {.begin = on_begin, .end = on_end};

/* -- threads ----------------------------------------------------------------------------------- */

/* The lock is held; t is on the idle stack or has work. False: t is to end and is off the stack. */
static bool idle_wait(struct thread *t)
{
	struct pool *p = t->pool;
	int64_t until = clock_mono_ms() + p->conf.idle_ms;
	while (!t->has_work) {
		if (p->stopping || (!wait_until(&t->wake, &p->lock, until) && !t->has_work)) {
			list_remove(&p->idle, t);
			return false;
		}
	}
	return true;
}

static void run_work(struct thread *t)
{
	struct pool *p = t->pool;
	struct work w = t->work;
	t->has_work = false;
	pthread_mutex_unlock(&p->lock);
	w.fn(w.arg);
	pthread_mutex_lock(&p->lock);
	p->held[t->kind]--;
	p->running--;
	if (t->kind == POOL_REQUEST)
		p->served++;
	list_add(&p->idle, t); /* before dispatch: the next work comes to this thread first */
	dispatch(p);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct pool *p = t->pool;
	self = t;
	block_join(&hooks, p);
	pthread_mutex_lock(&p->lock);
	while (idle_wait(t))
		run_work(t);
	sem_destroy(&t->granted);
	pthread_cond_destroy(&t->wake);
	free(t);
	p->threads--;
	if (p->threads == 0)
		pthread_cond_broadcast(&p->all_gone);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* -- the monitor: valve and expiry ------------------------------------------------------------- */

static bool wants_a_place(const struct pool *p)
{
	return p->resumers.head || pick(p) != POOL_KINDS;
}

static void expire(struct pool *p, int64_t now)
{
	struct ring *r = &p->queue[POOL_REQUEST];
	while (p->conf.expired && r->n && r->at[r->first].since + p->conf.queue_ms <= now)
		p->conf.expired(ring_take(p, POOL_REQUEST).arg);
}

static void judge(struct pool *p, uint64_t moves_before)
{
	int64_t now = clock_mono_ms();
	expire(p, now);
	if (wants_a_place(p) && p->moves == moves_before) {
		if (p->running >= p->conf.runnable + p->extra)
			p->extra++;
		p->raised_at = now;
		dispatch(p);
	} else if (p->extra && now - p->raised_at >= VALVE_KEEP_MS) {
		p->extra--;
		p->raised_at = now;
	}
}

static void *monitor_main(void *arg)
{
	struct pool *p = arg;
	pthread_mutex_lock(&p->lock);
	while (!p->stopping) {
		if (!something_waits(p) && !p->extra) {
			p->monitor_asleep = true;
			while (p->monitor_asleep && !p->stopping)
				pthread_cond_wait(&p->monitor_wake, &p->lock);
		}
		uint64_t moves = p->moves;
		int tick = wants_a_place(p) || p->conf.valve_ms > MONITOR_IDLE_MS ? p->conf.valve_ms
										  : MONITOR_IDLE_MS;
		int64_t until = clock_mono_ms() + tick;
		while (!p->stopping && wait_until(&p->monitor_wake, &p->lock, until))
			;
		judge(p, moves);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* -- from outside ------------------------------------------------------------------------------ */

static void fill_in(struct pool_conf *c)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	if (c->runnable == 0)
		c->runnable = cores > 2 ? (unsigned)cores : 2;
	if (c->threads_max < 2)
		c->threads_max = 2;
	if (c->queue_max == 0)
		c->queue_max = 1;
	c->idle_ms = c->idle_ms ? c->idle_ms : THREAD_IDLE_MS;
	c->valve_ms = c->valve_ms ? c->valve_ms : VALVE_MS;
	c->queue_ms = c->queue_ms ? c->queue_ms : QUEUE_WAIT_MS;
}

struct pool *pool_new(const struct pool_conf *conf)
{
	struct pool *p = must(calloc(1, sizeof *p));
	p->conf = *conf;
	fill_in(&p->conf);
	unsigned reserve = p->conf.threads_max / 4;
	p->share = p->conf.threads_max - (reserve ? reserve : 1);
	for (enum pool_kind k = 0; k < POOL_KINDS; k++)
		p->queue[k].at = must(calloc(p->conf.queue_max, sizeof(struct work)));
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->monitor_wake);
	cond_init(&p->all_gone);
	pthread_attr_init(&p->attr);
	pthread_attr_setstacksize(&p->attr, STACK_BYTES);
	pthread_attr_setdetachstate(&p->attr, PTHREAD_CREATE_DETACHED);
	int rc = pthread_create(&p->monitor, NULL, monitor_main, p);
	assert(rc == 0); /* the first threads of a process; without them there is no service */
	return p;
}

void pool_free(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	for (enum pool_kind k = 0; k < POOL_KINDS; k++)
		p->queue[k].n = 0;
	for (struct thread *t = p->idle.head; t; t = t->next)
		pthread_cond_signal(&t->wake);
	pthread_cond_signal(&p->monitor_wake);
	while (p->threads)
		pthread_cond_wait(&p->all_gone, &p->lock);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->monitor, NULL);
	for (enum pool_kind k = 0; k < POOL_KINDS; k++)
		free(p->queue[k].at);
	pthread_attr_destroy(&p->attr);
	pthread_cond_destroy(&p->monitor_wake);
	pthread_cond_destroy(&p->all_gone);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

bool pool_put(struct pool *p, enum pool_kind kind, void (*fn)(void *), void *arg)
{
	struct ring *r = &p->queue[kind];
	pthread_mutex_lock(&p->lock);
	bool fits = r->n < p->conf.queue_max && !p->stopping;
	if (fits) {
		r->at[(r->first + r->n) % p->conf.queue_max] =
			(struct work){.fn = fn, .arg = arg, .since = clock_mono_ms()};
		r->n++;
		dispatch(p);
	}
	pthread_mutex_unlock(&p->lock);
	return fits;
}

bool pool_busy(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
	bool busy = something_waits(p) || p->held[POOL_REQUEST] || p->held[POOL_DRIVER];
	pthread_mutex_unlock(&p->lock);
	return busy;
}

void pool_count(struct pool *p, struct pool_figures *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = (struct pool_figures){.threads = p->threads,
		.running = p->running,
		.queued = p->queue[POOL_REQUEST].n + p->queue[POOL_DRIVER].n + p->resuming,
		.served = p->served};
	pthread_mutex_unlock(&p->lock);
}

void pool_use(struct pool *p)
{
	atomic_store(&submit_pool, p);
}

bool pool_submit(void (*fn)(void *), void *arg)
{
	struct pool *p = atomic_load(&submit_pool);
	return p && pool_put(p, POOL_DRIVER, fn, arg);
}
