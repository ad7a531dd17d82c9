/* Trailers of HTTP/2 replies, and the pool whose calls share no connection. */
#include "http_world.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 16
#define ROUNDS  5

static struct http_call alone(struct world *w, const char *path)
{
	struct http_call c = post(w, "");
	c.pool = HTTP_ALONE;
	c.type = "application/grpc";
	c.url = url_of(w, origin_texts[3], path);
	c.keep_trailers[0] = "x-end";
	c.keep_trailers[1] = "x-other";
	return c;
}

static void trailers_are_kept_beside_headers(void **state)
{
	struct world *w = *state;
	struct http_call c = alone(w, "/trailers");
	c.keep_header = "x-kept";
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_int_equal(r->body_n, 100001);
	assert_string_equal(r->trailers[0], "told");
	assert_null(r->trailers[1]);
	assert_string_equal(r->kept, "early");
	c.pool = HTTP_USER;
	assert_string_equal(run(w, c)->trailers[0], "told");
}

static void a_reply_without_a_body_has_them_in_its_head(void **state)
{
	struct world *w = *state;
	const struct http_reply *r = run(w, alone(w, "/head-only"));
	assert_int_equal(r->status, 200);
	assert_string_equal(r->trailers[0], "at once");
}

static void what_was_not_sent_or_not_asked_for_is_not_there(void **state)
{
	struct world *w = *state;
	struct http_call c = alone(w, "/later");
	assert_null(run(w, c)->trailers[0]);
	c.url = url_of(w, origin_texts[3], "/trailers");
	c.keep_trailers[0] = NULL;
	assert_null(run(w, c)->trailers[0]);
	c.keep_header = "x-end"; /* a trailer is no header */
	assert_int_equal(run(w, c)->status, 200);
}

static void a_stream_that_breaks_before_them_is_unsure(void **state)
{
	struct world *w = *state;
	const struct http_reply *r = run(w, alone(w, "/cut-trailers"));
	assert_int_equal(r->fate, HTTP_UNSURE);
	assert_null(r->trailers[0]);
	r = run(w, alone(w, "/reset"));
	assert_int_equal(r->fate, HTTP_UNSURE);
}

static void the_guards_hold_in_this_pool_too(void **state)
{
	static const char *const urls[] = {"https://10.0.0.1/x", "https://127.0.0.1:1/x",
		"http://example.com/x", "https://user@example.com/x"};
	struct world *w = *state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		struct http_call c = alone(w, "");
		c.url = urls[i];
		enum err e = http_run(&c, w->arena, &w->reply);
		assert_true(e == ERR_FORBIDDEN_ADDRESS || e == ERR_BAD_INPUT);
	}
	assert_int_equal(witness(w, "/x"), 0);
}

struct caller {
	pthread_t thread;
	int told;
};

static void *call_many(void *arg)
{
	struct caller *me = arg;
	for (int i = 0; i < ROUNDS; i++) {
		struct world w = {.arena = arena_new(ARENA_MAX)};
		struct http_call c = alone(&w, "/trailers");
		if (http_run(&c, w.arena, &w.reply) == OK && w.reply.trailers[0])
			me->told++;
		arena_free(w.arena);
	}
	return NULL;
}

static void no_end_is_lost_when_many_calls_are_under_way(void **state)
{
	static struct caller callers[THREADS];
	struct world *w = *state;
	struct accepts before = accepts(w);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].told, ROUNDS);
	}
	/* Each call has its own, and takes one that another has left. */
	assert_in_range(accepts(w).h2 - before.h2, 2, THREADS);
}

static void calls_in_a_row_use_the_connection_that_is_there(void **state)
{
	struct world *w = *state;
	(void)run(w, alone(w, "/later"));
	struct accepts before = accepts(w);
	for (int i = 0; i < 10; i++)
		assert_int_equal(run(w, alone(w, "/later"))->status, 200);
	assert_int_equal(accepts(w).h2 - before.h2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(trailers_are_kept_beside_headers),
		TEST(a_reply_without_a_body_has_them_in_its_head),
		TEST(what_was_not_sent_or_not_asked_for_is_not_there),
		TEST(a_stream_that_breaks_before_them_is_unsure),
		TEST(the_guards_hold_in_this_pool_too),
		TEST(no_end_is_lost_when_many_calls_are_under_way),
		TEST(calls_in_a_row_use_the_connection_that_is_there),
	};
	return cmocka_run_group_tests(tests, group_start, group_stop);
}
