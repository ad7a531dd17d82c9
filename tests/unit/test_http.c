/* Outbound calls against a server that answers well, badly, late or not at all. */
#include "block.h"
#include "http_world.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>

/* -- what is sent --------------------------------------------------------------------------------
 */

static void a_request_arrives_as_it_was_given(void **state)
{
	struct world *w = *state;
	const struct http_header headers[] = {{"X-One", "1"}, {"X-Empty", ""}, {NULL, NULL}};
	struct http_call c = post(w, "/echo?a=%20b");
	c.headers = headers;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_int_equal(r->status, 200);
	assert_string_equal(r->type, "application/json");
	assert_non_null(strstr(r->body, "\"method\":\"POST\""));
	assert_non_null(strstr(r->body, "\"path\":\"/echo?a=%20b\""));
	assert_non_null(strstr(r->body, "\"X-One: 1\""));
	assert_non_null(strstr(r->body, "\"X-Empty:\""));
	assert_non_null(strstr(r->body, "\"Content-Type: application/json\""));
	assert_non_null(strstr(r->body, "\"User-Agent: compute-connector/"));
	assert_non_null(strstr(r->body, "\"body\":\"{}\""));
	assert_null(strstr(r->body, "Expect"));
	assert_null(strstr(r->body, "Accept-Encoding"));
	assert_null(strstr(r->body, "Authorization"));
	assert_int_equal(strlen(r->body), r->body_n);
}

static void each_method_is_sent_as_its_name(void **state)
{
	struct world *w = *state;
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	for (size_t i = 0; i < 5; i++) {
		char want[64];
		struct http_call c = get(w, "/echo");
		c.method = methods[i];
		snprintf(want, sizeof want, "{\"method\":\"%s\"", methods[i]);
		const struct http_reply *r = run(w, c);
		assert_int_equal(strncmp(r->body, want, strlen(want)), 0);
		bool says_empty = strstr(r->body, "Content-Length: 0") != NULL;
		assert_int_equal(says_empty, i >= 1 && i <= 3);
		c.body = "abc";
		c.body_n = 3;
		r = run(w, c);
		assert_int_equal(strncmp(r->body, want, strlen(want)), 0);
		assert_non_null(strstr(r->body, "\"body\":\"abc\""));
		assert_null(strstr(r->body, "x-www-form"));
	}
}

static void a_body_of_four_megabytes_arrives_whole(void **state)
{
	struct world *w = *state;
	size_t n = 4u << 20;
	char *body = arena_take(w->arena, n);
	memset(body, 'q', n);
	struct http_call c = post(w, "/echo");
	c.body = body;
	c.body_n = n;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_in_range(r->body_n, n, n + 1000);
}

/* Sending takes longer than the server may take to answer; that is no silence. */
static void a_body_that_is_sent_slowly_is_not_taken_for_silence(void **state)
{
	struct world *w = *state;
	const size_t n = 16u << 20;
	char *body = arena_take(w->arena, n);
	struct http_call c = post(w, "/slow-reader");
	c.body = body;
	c.body_n = n;
	c.first_ms = 3000;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_int_equal(atoi(r->body), n);
	assert_true(r->took_ms > c.first_ms); /* else the test shows nothing */
}

static void a_bearer_is_sent(void **state)
{
	struct world *w = *state;
	CLEANUP_SECRET struct secret s = secret_new("tok.en-1=", 9);
	struct http_call c = get(w, "/echo");
	c.bearer = &s;
	assert_non_null(strstr(run(w, c)->body, "\"Authorization: Bearer tok.en-1=\""));
}

static void a_bearer_or_header_with_control_characters_is_refused(void **state)
{
	struct world *w = *state;
	static const char *const wrong[] = {"a\r\nX-Evil: 1", "a\n", "\ta", "a\x7f"};
	const int before = witness(w, "/echo");
	for (size_t i = 0; i < 4; i++) {
		CLEANUP_SECRET struct secret s = secret_new(wrong[i], strlen(wrong[i]));
		const struct http_header headers[] = {{"X-A", wrong[i]}, {NULL, NULL}};
		struct http_call c = get(w, "/echo");
		c.bearer = &s;
		assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "token");
		c.bearer = NULL;
		c.headers = headers;
		assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_INTERNAL);
	}
	assert_int_equal(witness(w, "/echo"), before);
}

/* -- what comes back -----------------------------------------------------------------------------
 */

static void a_reply_is_read_with_type_kept_header_and_retry_after(void **state)
{
	struct world *w = *state;
	struct http_call c = get(w, "/type");
	c.keep_header = "x-kept";
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_int_equal(r->status, 429);
	assert_string_equal(r->type, "application/problem+json");
	assert_string_equal(r->kept, "some value");
	assert_int_equal(r->retry_after_s, 7);
	assert_string_equal(r->body, "{}");
	r = run(w, get(w, "/bare"));
	assert_string_equal(r->type, "");
	assert_null(r->kept);
	assert_int_equal(r->retry_after_s, 0);
	assert_int_equal(r->body_n, 0);
	assert_int_equal(run(w, get(w, "/none"))->status, 204);
	r = run(w, get(w, "/nul"));
	assert_int_equal(r->body_n, 3);
	assert_memory_equal(r->body, "a\0b", 4);
}

static void a_redirect_is_a_reply_and_is_not_followed(void **state)
{
	struct world *w = *state;
	const int before = witness(w, "/echo");
	struct http_call c = get(w, "/redirect");
	c.keep_header = "Location";
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->status, 302);
	assert_string_equal(r->kept, "/echo");
	assert_int_equal(witness(w, "/echo"), before);
}

static void an_interim_reply_is_no_reply(void **state)
{
	struct world *w = *state;
	struct http_call c = get(w, "/hints");
	c.keep_header = "X-Kept";
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->status, 200);
	assert_string_equal(r->body, "late");
	assert_null(r->kept);
	assert_int_equal(run(w, get(w, "/hints-cut"))->fate, HTTP_UNSURE);
}

static void replies_that_end_early_are_unsure(void **state)
{
	struct world *w = *state;
	static const char *const paths[] = {"/cut", "/cut-head", "/cut-line", "/cut-chunk",
		"/cut-last-chunk", "/reset", "/close", "/garbage"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		const struct http_reply *r = run(w, post(w, paths[i]));
		if (r->fate != HTTP_UNSURE || r->status || r->body_n || r->timed_out ||
			r->too_large)
			fail_msg("%s: fate %d, status %d", paths[i], r->fate, r->status);
		assert_int_equal(witness(w, paths[i]), 1);
	}
}

struct pieces {
	size_t n, stop_at;
};

static bool count_piece(void *ctx, const char *p, size_t n)
{
	struct pieces *all = ctx;
	assert_int_equal(*p, 'x');
	all->n += n;
	return !all->stop_at || all->n < all->stop_at;
}

static void silence_is_unsure_and_timed_out(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/silent");
	c.first_ms = SHORT_MS;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_UNSURE);
	assert_true(r->timed_out);
	c.first_ms = 0;
	c.total_ms = SHORT_MS;
	r = run(w, c);
	assert_int_equal(r->fate, HTTP_UNSURE);
	assert_true(r->timed_out);
	assert_true(r->took_ms >= SHORT_MS);
}

static void a_stall_in_mid_body_is_unsure_and_timed_out(void **state)
{
	struct world *w = *state;
	struct http_call c = get(w, "/stall");
	c.idle_ms = SHORT_MS;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_UNSURE);
	assert_true(r->timed_out);
	c.idle_ms = 0;
	c.total_ms = SHORT_MS;
	assert_true(run(w, c)->timed_out);
	struct pieces all = {0};
	c = get(w, "/endless"); /* never silent, never at its end */
	c.total_ms = SHORT_MS;
	c.reply_max = SIZE_MAX / 4;
	c.on_data = count_piece;
	c.ctx = &all;
	assert_true(run(w, c)->timed_out);
	assert_int_equal(w->reply.fate, HTTP_UNSURE);
}

static void a_reply_over_the_limit_is_unsure_and_too_large(void **state)
{
	struct world *w = *state;
	static const char *const paths[] = {
		"/large", "/large-said", "/endless", "/headers", "/header"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct http_call c = get(w, paths[i]);
		c.reply_max = 1000;
		const struct http_reply *r = run(w, c);
		if (r->fate != HTTP_UNSURE || !r->too_large || r->body_n)
			fail_msg("%s: fate %d", paths[i], r->fate);
	}
	struct http_call c = get(w, "/just-fits");
	c.reply_max = 1000;
	assert_int_equal(run(w, c)->fate, HTTP_REPLIED);
	assert_int_equal(w->reply.body_n, 1000);
	c = get(w, "/endless");
	assert_true(run(w, c)->too_large); /* the limit that counts when none is given */
}

static void pieces_are_passed_on_and_the_receiver_may_end_the_call(void **state)
{
	struct world *w = *state;
	struct pieces all = {0};
	struct http_call c = get(w, "/just-fits");
	c.on_data = count_piece;
	c.ctx = &all;
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_int_equal(r->body_n, 0);
	assert_int_equal(all.n, 1000);
	c.url = url_of(w, origin_texts[0], "/endless");
	all = (struct pieces){.stop_at = 100000};
	r = run(w, c);
	assert_int_equal(r->fate, HTTP_UNSURE);
	assert_false(r->too_large);
	assert_in_range(all.n, 100000, 300000);
	all.stop_at = 0;
	all.n = 0;
	c.reply_max = 200000;
	assert_true(run(w, c)->too_large);
	assert_in_range(all.n, 1, 200000);
}

/* -- connections ---------------------------------------------------------------------------------
 */

static void a_refused_connection_is_not_sent(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/echo");
	snprintf(w->url, sizeof w->url, "http://127.0.0.1:%d/echo", server.closed);
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_NOT_SENT);
	assert_false(r->refused_address);
	assert_false(r->timed_out);
	assert_int_equal(r->status, 0);
	assert_string_equal(r->body, "");
}

/* A server to which a hundred connections come at once answers the last of them late. */
static void a_connection_that_is_made_late_is_waited_for(void **state)
{
	struct world *w = *state;
	snprintf(w->url, sizeof w->url, "https://127.0.0.1:%d/echo", server.late);
	struct http_call c = {.method = "POST", .url = w->url, .total_ms = TOTAL_MS};
	assert_int_equal(http_run(&c, w->arena, &w->reply), OK);
	assert_int_equal(w->reply.fate, HTTP_REPLIED);
	assert_int_equal(w->reply.status, 200);
}

static void an_unknown_host_is_not_sent(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/echo");
	c.url = "https://nowhere.invalid/";
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_NOT_SENT);
	assert_false(r->refused_address);
}

static void a_connection_is_kept_for_the_next_call(void **state)
{
	struct world *w = *state;
	run(w, get(w, "/echo"));
	struct accepts before = accepts(w);
	for (int i = 0; i < 20; i++)
		assert_int_equal(run(w, post(w, "/echo"))->status, 200);
	assert_int_equal(accepts(w).plain, before.plain);
}

static void a_post_on_a_kept_connection_that_breaks_is_unsure_and_sent_once(void **state)
{
	struct world *w = *state;
	static const char *const paths[] = {"/drop-kept", "/close-kept"};
	for (size_t i = 0; i < 2; i++) {
		run(w, get(w, "/echo")); /* leaves a kept connection */
		const int before = witness(w, paths[i]);
		const struct http_reply *r = run(w, post(w, paths[i]));
		assert_int_equal(r->fate, HTTP_UNSURE);
		assert_int_equal(witness(w, paths[i]), before + 1);
	}
}

static void a_get_on_a_kept_connection_that_breaks_is_repeated(void **state)
{
	struct world *w = *state;
	run(w, get(w, "/echo"));
	const int before = witness(w, "/drop-kept");
	const struct http_reply *r = run(w, get(w, "/drop-kept"));
	assert_int_equal(r->fate, HTTP_REPLIED);
	assert_string_equal(r->body, "fresh");
	assert_int_equal(witness(w, "/drop-kept"), before + 2);
}

static void a_unix_socket_is_called(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/echo");
	c.url = url_of(w, origin_texts[4], "/echo?x=1");
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->status, 200);
	assert_non_null(strstr(r->body, "\"path\":\"/echo?x=1\""));
	assert_non_null(strstr(r->body, "\"Host: localhost\""));
	c.url = url_of(w, origin_texts[4], "/../../echo");
	assert_non_null(strstr(run(w, c)->body, "\"path\":\"/echo\""));
}

/* -- TLS -----------------------------------------------------------------------------------------
 */

static void a_server_of_the_own_authority_is_trusted_and_others_are_not(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/echo");
	c.url = url_of(w, origin_texts[1], "/echo");
	assert_int_equal(run(w, c)->status, 200);
	http_stop();
	struct http_conf conf = conf_with(ca_paths[1], ca_paths[2]);
	assert_int_equal(http_start(&conf), OK);
	const int before = witness(w, "/echo");
	assert_int_equal(run(w, c)->fate, HTTP_NOT_SENT);
	assert_int_equal(witness(w, "/echo"), before);
	http_stop();
	conf = conf_with(NULL, NULL); /* the public authorities alone */
	assert_int_equal(http_start(&conf), OK);
	assert_int_equal(run(w, c)->fate, HTTP_NOT_SENT);
	http_stop();
	conf = conf_with(ca_paths[0], ca_paths[1]); /* both files count, in either order */
	assert_int_equal(http_start(&conf), OK);
	assert_int_equal(run(w, c)->status, 200);
	http_stop();
	conf = conf_with(ca_paths[1], ca_paths[0]);
	assert_int_equal(http_start(&conf), OK);
	assert_int_equal(run(w, c)->status, 200);
	http_stop();
	start();
}

static void a_certificate_for_another_name_is_not_sent_to(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "/echo");
	c.url = url_of(w, origin_texts[2], "/echo");
	const int before = witness(w, "/echo");
	assert_int_equal(run(w, c)->fate, HTTP_NOT_SENT);
	assert_int_equal(witness(w, "/echo"), before);
}

static void plain_text_at_the_other_end_of_tls_is_not_sent_to(void **state)
{
	struct world *w = *state;
	http_stop();
	char text[64];
	const char *const only[] = {text, origin_texts[4], NULL};
	snprintf(text, sizeof text, "https://127.0.0.1:%d", server.plain);
	struct http_conf conf = {.ca_extra = ca_paths[0], .allowed_origins = only};
	assert_int_equal(http_start(&conf), OK);
	struct http_call c = post(w, "/echo");
	c.url = url_of(w, text, "/echo");
	c.total_ms = 500;
	assert_int_equal(run(w, c)->fate, HTTP_NOT_SENT);
	assert_true(w->reply.timed_out);
	http_stop();
	start();
}

struct caller {
	pthread_t thread;
	const char *url, *method;
	int ok;
};

static void *call_many(void *arg)
{
	struct caller *me = arg;
	for (int i = 0; i < 5; i++) {
		struct arena *a = arena_new(ARENA_MAX);
		struct http_reply reply;
		struct http_call c = {.pool = i % 2 ? HTTP_USER : HTTP_FIXED,
			.method = me->method,
			.url = me->url,
			.total_ms = TOTAL_MS};
		if (http_run(&c, a, &reply) == OK && reply.status == 200)
			me->ok++;
		arena_free(a);
	}
	return NULL;
}

static void call_from_64_threads(const char *url)
{
	static struct caller callers[64];
	for (int i = 0; i < 64; i++) {
		callers[i] = (struct caller){.url = url, .method = i % 2 ? "GET" : "POST"};
		assert_int_equal(
			pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
	}
	for (int i = 0; i < 64; i++) {
		(void)pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].ok, 5);
	}
}

static void calls_of_64_threads_at_once_all_end(void **state)
{
	struct world *w = *state;
	call_from_64_threads(url_of(w, origin_texts[0], "/echo"));
	call_from_64_threads(url_of(w, origin_texts[4], "/echo"));
	call_from_64_threads(url_of(w, origin_texts[1], "/echo"));
}

static void http2_calls_share_one_connection_per_pool(void **state)
{
	struct world *w = *state;
	struct http_call c = get(w, "");
	c.url = url_of(w, origin_texts[3], "/echo");
	c.keep_header = "x-kept";
	assert_string_equal(run(w, c)->kept, "2.0");
	struct accepts before = accepts(w);
	call_from_64_threads(url_of(w, origin_texts[3], "/later"));
	assert_in_range(accepts(w).h2 - before.h2, 0, 1); /* the fixed pool's own */
}

static void an_http2_stream_that_breaks_is_unsure_and_spares_the_others(void **state)
{
	struct world *w = *state;
	struct http_call c = post(w, "");
	c.url = url_of(w, origin_texts[3], "/reset");
	assert_int_equal(run(w, c)->fate, HTTP_UNSURE);
	c.url = url_of(w, origin_texts[3], "/silent");
	c.first_ms = SHORT_MS;
	assert_int_equal(run(w, c)->fate, HTTP_UNSURE);
	assert_true(w->reply.timed_out);
	c.url = url_of(w, origin_texts[3], "/later");
	assert_int_equal(run(w, c)->status, 200);
}

static int begun_n, ended_n;
static void hook_begin(void *pool)
{
	(void)pool;
	begun_n++;
}
static void hook_end(void *pool)
{
	(void)pool;
	ended_n++;
}

static void *call_in_pool(void *arg)
{
	static const struct block_hooks hooks = {hook_begin, hook_end};
	block_join(&hooks, NULL);
	run(arg, get(arg, "/echo"));
	return NULL;
}

static void the_wait_stands_in_block_brackets(void **state)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, call_in_pool, *state), 0);
	(void)pthread_join(thread, NULL);
	assert_int_equal(begun_n, 1);
	assert_int_equal(ended_n, 1);
}

static int open_files(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static void a_thousand_calls_leave_nothing_behind(void **state)
{
	struct world *w = *state;
	static const char *const paths[] = {"/echo", "/cut", "/reset", "/large"};
	int files = 0;
	size_t bytes = 0;
	for (int i = 0; i < 1200; i++) {
		struct arena *a = arena_new(ARENA_MAX);
		CLEANUP_SECRET struct secret s = secret_new("abc", 3);
		struct http_call c = post(w, paths[i % 4]);
		c.bearer = &s;
		c.reply_max = 1000;
		assert_int_equal(http_run(&c, a, &w->reply), OK);
		arena_free(a);
		if (i == 200) {
			files = open_files();
			bytes = mallinfo2().uordblks;
		}
	}
	assert_in_range(open_files(), 0, files + 2);
	assert_true(mallinfo2().uordblks < bytes + (256u << 10));
}

static void no_call_went_to_the_proxy_of_the_environment(void **state)
{
	assert_int_equal(accepts(*state).proxy, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_arrives_as_it_was_given),
		TEST(each_method_is_sent_as_its_name),
		TEST(a_body_of_four_megabytes_arrives_whole),
		TEST(a_body_that_is_sent_slowly_is_not_taken_for_silence),
		TEST(a_bearer_is_sent),
		TEST(a_bearer_or_header_with_control_characters_is_refused),
		TEST(a_reply_is_read_with_type_kept_header_and_retry_after),
		TEST(a_redirect_is_a_reply_and_is_not_followed),
		TEST(an_interim_reply_is_no_reply),
		TEST(replies_that_end_early_are_unsure),
		TEST(silence_is_unsure_and_timed_out),
		TEST(a_stall_in_mid_body_is_unsure_and_timed_out),
		TEST(a_reply_over_the_limit_is_unsure_and_too_large),
		TEST(pieces_are_passed_on_and_the_receiver_may_end_the_call),
		TEST(a_refused_connection_is_not_sent),
		TEST(a_connection_that_is_made_late_is_waited_for),
		TEST(an_unknown_host_is_not_sent),
		TEST(a_connection_is_kept_for_the_next_call),
		TEST(a_post_on_a_kept_connection_that_breaks_is_unsure_and_sent_once),
		TEST(a_get_on_a_kept_connection_that_breaks_is_repeated),
		TEST(a_unix_socket_is_called),
		TEST(a_server_of_the_own_authority_is_trusted_and_others_are_not),
		TEST(a_certificate_for_another_name_is_not_sent_to),
		TEST(plain_text_at_the_other_end_of_tls_is_not_sent_to),
		TEST(calls_of_64_threads_at_once_all_end),
		TEST(http2_calls_share_one_connection_per_pool),
		TEST(an_http2_stream_that_breaks_is_unsure_and_spares_the_others),
		TEST(the_wait_stands_in_block_brackets),
		TEST(a_thousand_calls_leave_nothing_behind),
		TEST(no_call_went_to_the_proxy_of_the_environment),
	};
	secret_init();
	return cmocka_run_group_tests_name("http", tests, group_start, group_stop);
}
