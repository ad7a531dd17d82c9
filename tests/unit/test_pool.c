/* The elastic pool: who runs, who waits, who is refused. Waits are for conditions, never for time.
 */
#include "block.h"
#include "clock.h"
#include "fcgi/pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEVER_MS 600000 /* a valve that shall not open during a test */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct pool *pool;

/* What the works of a test did. Guarded by lock. */
static struct {
	unsigned inside, most_inside; /* outside a bracket now, and the most at once */
	unsigned begun, ended, waiting, expired;
	bool gate; /* open: everybody may go on */
	pthread_t who[8];
	unsigned order[64], orders;
} seen;

static void start(struct pool_conf conf)
{
	memset(&seen, 0, sizeof seen);
	pool = pool_new(&conf);
}

static void stop(void)
{
	pool_free(pool);
	pool = NULL;
}

static void change(unsigned *what, int by)
{
	pthread_mutex_lock(&lock);
	*what += (unsigned)by;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void await(const unsigned *what, unsigned least)
{
	pthread_mutex_lock(&lock);
	while (*what < least)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&lock);
	seen.gate = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void await_gate(void)
{
	pthread_mutex_lock(&lock);
	seen.waiting++;
	pthread_cond_broadcast(&changed);
	while (!seen.gate)
		pthread_cond_wait(&changed, &lock);
	seen.waiting--;
	pthread_mutex_unlock(&lock);
}

static void enter(void)
{
	pthread_mutex_lock(&lock);
	if (++seen.inside > seen.most_inside)
		seen.most_inside = seen.inside;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void leave(void)
{
	change(&seen.inside, -1);
}

/* -- works ------------------------------------------------------------------------------------- */

static void quick(void *arg)
{
	(void)arg;
	enter();
	leave();
	change(&seen.ended, 1);
}

/* Runs, waits in brackets, runs again, many times. */
static void waits_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		enter();
		leave();
		block_begin();
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		block_end();
	}
	change(&seen.ended, 1);
}

static void stuck(void *arg) /* waits without a bracket */
{
	(void)arg;
	change(&seen.begun, 1);
	await_gate();
	change(&seen.ended, 1);
}

static void bracketed(void *arg)
{
	(void)arg;
	change(&seen.begun, 1);
	block_begin();
	await_gate();
	block_end();
	change(&seen.ended, 1);
}

static void says_who(void *arg)
{
	pthread_mutex_lock(&lock);
	seen.who[(uintptr_t)arg] = pthread_self();
	pthread_mutex_unlock(&lock);
	change(&seen.ended, 1);
}

static void says_order(void *arg)
{
	pthread_mutex_lock(&lock);
	seen.order[seen.orders++] = (unsigned)(uintptr_t)arg;
	pthread_mutex_unlock(&lock);
	change(&seen.ended, 1);
}

static void *number(uintptr_t n)
{
	return (void *)n;
}

static void put(enum pool_kind kind, void (*fn)(void *), void *arg)
{
	assert_true(pool_put(pool, kind, fn, arg));
}

static unsigned queued(void)
{
	struct pool_figures f;
	pool_count(pool, &f);
	return f.queued;
}

/* Until no thread has work any more. */
static void settle(void)
{
	while (pool_busy(pool))
		clock_sleep_ms(1);
}

/* -- tests ------------------------------------------------------------------------------------- */

static void no_more_than_runnable_are_outside_brackets(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 32, .runnable = 3, .queue_max = 200, .valve_ms = NEVER_MS});
	for (int i = 0; i < 100; i++) {
		put(POOL_REQUEST, waits_often, NULL);
		put(POOL_DRIVER, quick, NULL);
	}
	await(&seen.ended, 200);
	stop();
	assert_in_range(seen.most_inside, 1, 3);
}

static void a_waiting_thread_gives_its_place_away(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 16, .runnable = 1, .queue_max = 20, .valve_ms = NEVER_MS});
	for (int i = 0; i < 8; i++)
		put(POOL_REQUEST, bracketed, NULL);
	await(&seen.begun, 8); /* all eight began although one may run */
	put(POOL_REQUEST, quick, NULL);
	await(&seen.ended, 1);
	open_gate();
	await(&seen.ended, 9);
	stop();
}

static void a_stuck_thread_keeps_its_place(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 16, .runnable = 1, .queue_max = 20, .valve_ms = NEVER_MS});
	put(POOL_REQUEST, stuck, NULL);
	await(&seen.begun, 1);
	put(POOL_REQUEST, quick, NULL);
	assert_int_equal(queued(), 1);
	open_gate();
	await(&seen.ended, 2);
	stop();
}

static void the_valve_lets_work_pass_stuck_threads(void **state)
{
	(void)state;
	start((struct pool_conf){.threads_max = 16, .runnable = 2, .queue_max = 50, .valve_ms = 1});
	put(POOL_REQUEST, stuck, NULL);
	put(POOL_REQUEST, stuck, NULL);
	await(&seen.begun, 2);
	for (int i = 0; i < 20; i++)
		put(POOL_REQUEST, quick, NULL);
	await(&seen.ended, 20); /* the stuck ones are still stuck */
	assert_int_equal(seen.waiting, 2);
	open_gate();
	await(&seen.ended, 22);
	stop();
}

static void the_valve_also_lets_resumers_pass(void **state)
{
	(void)state;
	start((struct pool_conf){.threads_max = 16, .runnable = 1, .queue_max = 50, .valve_ms = 1});
	put(POOL_REQUEST, bracketed, NULL);
	await(&seen.waiting, 1);
	put(POOL_DRIVER, stuck, NULL); /* takes the only place */
	await(&seen.waiting, 2);
	put(POOL_DRIVER, stuck, NULL);
	await(&seen.waiting, 3);
	open_gate();
	await(&seen.ended, 3);
	stop();
}

static void the_thread_that_became_idle_last_is_used_first(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 8, .runnable = 4, .queue_max = 50, .valve_ms = NEVER_MS});
	for (int i = 0; i < 4; i++)
		put(POOL_REQUEST, bracketed, NULL); /* makes four threads */
	await(&seen.waiting, 4);
	open_gate();
	await(&seen.ended, 4);
	settle();
	put(POOL_REQUEST, says_who, number(0));
	await(&seen.ended, 5);
	settle(); /* that thread is idle again: the last one to become so */
	for (uintptr_t i = 1; i < 4; i++) {
		put(POOL_REQUEST, says_who, number(i));
		await(&seen.ended, 5 + (unsigned)i);
		settle();
	}
	for (int i = 1; i < 4; i++)
		assert_true(pthread_equal(seen.who[0], seen.who[i]));
	stop();
}

static void queued_work_starts_in_the_order_it_came(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 8, .runnable = 1, .queue_max = 50, .valve_ms = NEVER_MS});
	put(POOL_REQUEST, stuck, NULL);
	await(&seen.begun, 1);
	for (uintptr_t i = 0; i < 10; i++) {
		put(i % 2 ? POOL_DRIVER : POOL_REQUEST, says_order, number(i));
		int64_t at = clock_mono_ms();
		while (clock_mono_ms() == at) /* age is counted in milliseconds */
			;
	}
	open_gate();
	await(&seen.ended, 11);
	stop();
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(seen.order[i], i);
}

/* Waits in a bracket for a gate of its own, then tells when it runs again. */
static void resumes(void *arg)
{
	block_begin();
	await(&seen.expired, 1);
	block_end();
	says_order(arg);
}

static void a_resumer_goes_before_new_work(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 8, .runnable = 1, .queue_max = 50, .valve_ms = NEVER_MS});
	put(POOL_REQUEST, resumes, number(1));
	put(POOL_REQUEST, stuck, NULL); /* holds the only place */
	await(&seen.waiting, 1);
	put(POOL_REQUEST, says_order, number(2));
	change(&seen.expired, 1);
	while (queued() < 2) /* until the resumer has lined up */
		clock_sleep_ms(1);
	open_gate();
	await(&seen.ended, 3);
	stop();
	assert_int_equal(seen.order[0], 1);
	assert_int_equal(seen.order[1], 2);
}

static void a_full_queue_refuses(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 8, .runnable = 1, .queue_max = 3, .valve_ms = NEVER_MS});
	put(POOL_REQUEST, stuck, NULL);
	await(&seen.begun, 1);
	for (int i = 0; i < 3; i++)
		put(POOL_REQUEST, quick, NULL);
	assert_false(pool_put(pool, POOL_REQUEST, quick, NULL));
	put(POOL_DRIVER, quick, NULL); /* the other kind has a queue of its own */
	open_gate();
	await(&seen.ended, 5);
	stop();
}

static void requests_cannot_take_the_threads_of_drivers(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 8, .runnable = 2, .queue_max = 50, .valve_ms = NEVER_MS});
	for (int i = 0; i < 20; i++)
		put(POOL_REQUEST, bracketed, NULL);
	await(&seen.waiting, 6); /* three quarters of eight */
	assert_int_equal(queued(), 14);
	put(POOL_DRIVER, quick, NULL);
	await(&seen.ended, 1);
	open_gate();
	await(&seen.ended, 21);
	stop();
}

static void drivers_cannot_take_the_threads_of_requests(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 2, .runnable = 2, .queue_max = 50, .valve_ms = NEVER_MS});
	for (int i = 0; i < 5; i++)
		put(POOL_DRIVER, bracketed, NULL);
	await(&seen.waiting, 1);
	put(POOL_REQUEST, quick, NULL);
	await(&seen.ended, 1);
	open_gate();
	await(&seen.ended, 6);
	stop();
}

static void submits_one(void *arg)
{
	(void)arg;
	if (pool_submit(quick, NULL))
		change(&seen.begun, 1);
}

static void a_pool_thread_can_submit(void **state)
{
	(void)state;
	start((struct pool_conf){
		.threads_max = 4, .runnable = 1, .queue_max = 50, .valve_ms = NEVER_MS});
	pool_use(pool);
	for (int i = 0; i < 10; i++)
		put(POOL_REQUEST, submits_one, NULL);
	await(&seen.ended, 10);
	pool_use(NULL);
	stop();
	assert_int_equal(seen.begun, 10);
}

static void without_a_pool_nothing_is_submitted(void **state)
{
	(void)state;
	assert_false(pool_submit(quick, NULL));
}

static void idle_threads_end(void **state)
{
	struct pool_figures f;
	(void)state;
	start((struct pool_conf){.threads_max = 16, .runnable = 2, .queue_max = 50, .idle_ms = 20});
	for (int i = 0; i < 10; i++)
		put(POOL_REQUEST, bracketed, NULL);
	await(&seen.waiting, 10);
	pool_count(pool, &f);
	assert_int_equal(f.threads, 10);
	open_gate();
	await(&seen.ended, 10);
	do
		pool_count(pool, &f);
	while (f.threads);
	put(POOL_REQUEST, quick, NULL); /* and new ones are made when needed */
	await(&seen.ended, 11);
	stop();
}

static void on_expired(void *arg)
{
	(void)arg;
	change(&seen.expired, 1);
}

static void a_request_without_a_thread_expires(void **state)
{
	(void)state;
	start((struct pool_conf){.threads_max = 2,
		.runnable = 1,
		.queue_max = 50,
		.queue_ms = 10,
		.expired = on_expired});
	put(POOL_REQUEST, bracketed, NULL);
	await(&seen.waiting, 1);
	put(POOL_REQUEST, quick, NULL);
	put(POOL_DRIVER, quick, NULL);
	await(&seen.expired, 1);
	open_gate();
	await(&seen.ended, 2);
	settle();
	stop();
	assert_int_equal(seen.ended, 2); /* the expired one never ran */
}

static void figures_tell_what_was_served(void **state)
{
	struct pool_figures f;
	(void)state;
	start((struct pool_conf){.threads_max = 4, .queue_max = 50});
	for (int i = 0; i < 7; i++)
		put(POOL_REQUEST, quick, NULL);
	put(POOL_DRIVER, quick, NULL);
	await(&seen.ended, 8);
	settle();
	pool_count(pool, &f);
	assert_int_equal(f.served, 7);
	assert_int_equal(f.running, 0);
	assert_int_equal(f.queued, 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_than_runnable_are_outside_brackets),
		cmocka_unit_test(a_waiting_thread_gives_its_place_away),
		cmocka_unit_test(a_stuck_thread_keeps_its_place),
		cmocka_unit_test(the_valve_lets_work_pass_stuck_threads),
		cmocka_unit_test(the_valve_also_lets_resumers_pass),
		cmocka_unit_test(the_thread_that_became_idle_last_is_used_first),
		cmocka_unit_test(queued_work_starts_in_the_order_it_came),
		cmocka_unit_test(a_resumer_goes_before_new_work),
		cmocka_unit_test(a_full_queue_refuses),
		cmocka_unit_test(requests_cannot_take_the_threads_of_drivers),
		cmocka_unit_test(drivers_cannot_take_the_threads_of_requests),
		cmocka_unit_test(a_pool_thread_can_submit),
		cmocka_unit_test(without_a_pool_nothing_is_submitted),
		cmocka_unit_test(idle_threads_end),
		cmocka_unit_test(a_request_without_a_thread_expires),
		cmocka_unit_test(figures_tell_what_was_served),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
