/* Where outbound calls may go, and which settings they start with. */
#include "http_parts.h"
#include "http_world.h"

#include <pthread.h>

/* -- guards --------------------------------------------------------------------------------------
 */

static void every_spelling_of_a_private_address_is_refused(void **state)
{
	struct world *w = *state;
	static const char *const hosts[] = {"127.0.0.1", "localhost", "LOCALHOST", "localhost.",
		"127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "0177.0.0.1", "0",
		"0.0.0.0", "127.0.0.1.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[0:0:0:0:0:0:0:1]", "[fe80::1%25lo]",
		"169.254.169.254", "[::ffff:a9fe:a9fe]", "10.0.0.1", "%31%32%37.0.0.1"};
	const struct accepts before = accepts(w);
	for (size_t i = 0; i < 2 * sizeof hosts / sizeof *hosts; i++) {
		struct http_call c = get(w, "");
		c.pool = i % 2 ? HTTP_USER : HTTP_FIXED;
		snprintf(w->url, sizeof w->url, "https://%s:%d/", hosts[i / 2], server.misnamed);
		if (i / 2 >= 1 && i / 2 <= 2) /* localhost with this port is allowed here */
			snprintf(w->url, sizeof w->url, "https://%s:%d/", hosts[i / 2], server.tls);
		enum err e = http_run(&c, w->arena, &w->reply);
		bool dotted = hosts[i / 2][strlen(hosts[i / 2]) - 1] == '.';
		bool refused = e == ERR_FORBIDDEN_ADDRESS ||
			       (e == OK && w->reply.fate == HTTP_NOT_SENT &&
				       (w->reply.refused_address || dotted /* may not resolve */));
		if (!refused)
			fail_msg("%s: error %d, fate %d", w->url, e, w->reply.fate);
	}
	assert_int_equal(accepts(w).tls, before.tls);
}

/* libcurl does not ask for a socket when it has a kept connection. The operator's list is taken
 * away under a running pool, so that a call which must be guarded finds a connection that was not.
 */
static void a_kept_connection_does_not_get_round_the_guard(void **state)
{
	struct world *w = *state;
	struct http_call c = get(w, "");
	c.url = url_of(w, origin_texts[3], "/guarded");
	assert_int_equal(run(w, c)->status, 200);
	struct accepts before = accepts(w);
	assert_int_equal(guard_start(NULL), OK);
	const struct http_reply *r = run(w, c);
	assert_int_equal(r->fate, HTTP_NOT_SENT);
	assert_true(r->refused_address);
	assert_int_equal(guard_start(origins), OK);
	assert_int_equal(accepts(w).h2, before.h2);
	assert_int_equal(run(w, c)->status, 200);
}

static void only_the_listed_origin_itself_is_exempt(void **state)
{
	struct world *w = *state;
	char url[256];
	const struct accepts before = accepts(w);
	static const char *const hosts[] = {
		"http://localhost", "http://127.0.0.2", "https://127.0.0.1", "http://[::1]"};
	for (size_t i = 0; i < 4; i++) {
		struct http_call c = get(w, "");
		snprintf(url, sizeof url, "%s:%d/echo", hosts[i], server.plain);
		c.url = url;
		assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_FORBIDDEN_ADDRESS);
	}
	struct http_call c = get(w, "");
	snprintf(url, sizeof url, "http://127.0.0.1:%d/echo", server.proxy);
	c.url = url;
	assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_FORBIDDEN_ADDRESS);
	snprintf(url, sizeof url, "unix:%s/other.sock/echo", server.dir);
	assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_FORBIDDEN_ADDRESS);
	snprintf(url, sizeof url, "unix:%s/web.sockets/echo", server.dir);
	assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_FORBIDDEN_ADDRESS);
	assert_int_equal(accepts(w).plain, before.plain);
	snprintf(url, sizeof url, "HTTP://127.1:%d/echo", server.plain); /* the same origin */
	assert_int_equal(run(w, c)->status, 200);
}

static const struct {
	const char *url;
	enum err want;
} urls[] = {
	{"https://example.com", OK},
	{"https://example.com/", OK},
	{"https://example.com:8443/base/path", OK},
	{"HTTPS://EXAMPLE.com/", OK},
	{"https://8.8.8.8/", OK},
	{"https://[2606:4700::1111]/", OK},
	{"https://xn--bcher-kva.example/", OK},
	{"", ERR_BAD_INPUT},
	{"example.com", ERR_BAD_INPUT},
	{"//example.com/", ERR_BAD_INPUT},
	{"https://", ERR_BAD_INPUT},
	{"https:///path", ERR_BAD_INPUT},
	{"https://example.com:0/", ERR_BAD_INPUT},
	{"https://example.com:65536/", ERR_BAD_INPUT},
	{"https://example.com:x/", ERR_BAD_INPUT},
	{"https://exa mple.com/", ERR_BAD_INPUT},
	{"https://example.com/\r\nX: 1", ERR_BAD_INPUT},
	{"https://example.com/\t", ERR_BAD_INPUT},
	{"https://b\xc3\xbc"
	 "cher.example/",
		ERR_BAD_INPUT},
	{"https://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/", ERR_BAD_INPUT},
	{"https://example.com/?q=1", ERR_BAD_INPUT},
	{"https://example.com/?", ERR_BAD_INPUT},
	{"https://example.com/#f", ERR_BAD_INPUT},
	{"https://example.com#", ERR_BAD_INPUT},
	{"https://user@example.com/", ERR_BAD_INPUT},
	{"https://user:pw@example.com/", ERR_BAD_INPUT},
	{"https://@example.com/", ERR_BAD_INPUT},
	{"https://:@example.com/", ERR_BAD_INPUT},
	{"https://example.com\\@127.0.0.1/", ERR_BAD_INPUT},
	{"https://[::1/", ERR_BAD_INPUT},
	{"https://[zz]/", ERR_BAD_INPUT},
	{"http://example.com/", ERR_FORBIDDEN_ADDRESS},
	{"ftp://example.com/", ERR_FORBIDDEN_ADDRESS},
	{"file:///etc/passwd", ERR_BAD_INPUT},
	{"gopher://example.com/", ERR_FORBIDDEN_ADDRESS},
	{"foo://example.com/", ERR_FORBIDDEN_ADDRESS},
	{"unix:/run/docker.sock", ERR_FORBIDDEN_ADDRESS},
	{"unix:", ERR_FORBIDDEN_ADDRESS},
	{"unix:///run/x", ERR_FORBIDDEN_ADDRESS},
	{"https://127.0.0.1/", ERR_FORBIDDEN_ADDRESS},
	{"https://2130706433/", ERR_FORBIDDEN_ADDRESS},
	{"https://[::1]/", ERR_FORBIDDEN_ADDRESS},
	{"https://192.168.1.1/", ERR_FORBIDDEN_ADDRESS},
};

static void urls_are_judged_and_the_field_is_named(void **state)
{
	struct world *w = *state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		enum err e = http_url_check(urls[i].url, "bridge_url");
		if (e != urls[i].want)
			fail_msg("%s: %d", urls[i].url, e);
		if (e)
			assert_string_equal(fault_of(e)->field, "bridge_url");
		if (e && strlen(urls[i].url) > 8)
			assert_null(strstr(fault_of(e)->detail, urls[i].url));
	}
	char *url = arena_take(w->arena, 2100);
	memset(url, 'a', 2048);
	memcpy(url, "https://a.example/", 18);
	assert_int_equal(http_url_check(url, "u"), OK);
	url[2048] = 'a';
	assert_int_equal(http_url_check(url, "u"), ERR_BAD_INPUT);
	assert_int_equal(http_url_check(origin_texts[0], "u"), OK);
	assert_int_equal(http_url_check(origin_texts[4], "u"), OK);
	assert_int_equal(http_url_check(url_of(w, origin_texts[4], "/base"), "u"), OK);
	assert_int_equal(http_url_check(url_of(w, origin_texts[4], "/base?x"), "u"), ERR_BAD_INPUT);
}

/* -- start and stop ------------------------------------------------------------------------------
 */

static void wrong_settings_are_refused_by_name(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", "127.0.0.1:80", "http://127.0.0.1:80/path",
		"http://127.0.0.1:80?x", "http://u@127.0.0.1", "ftp://127.0.0.1", "unix:run/x",
		"http://a b/", "unix:"};
	http_stop();
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *const list[] = {"http://127.0.0.1:1", wrong[i], NULL};
		struct http_conf conf = {.ca_file = ca_paths[0], .allowed_origins = list};
		if (http_start(&conf) != ERR_INTERNAL)
			fail_msg("%s", wrong[i]);
		assert_string_equal(fault_of(ERR_INTERNAL)->field, "outbound.allowed_origins");
	}
	for (size_t i = 0; i < 6; i++) {
		static const char *const fields[] = {"outbound.ca_file", "outbound.ca_extra"};
		const char *file = i / 2 == 0 ? "/nowhere.pem" : ca_paths[i / 2 + 2];
		struct http_conf conf = conf_with(i % 2 ? ca_paths[0] : file, i % 2 ? file : NULL);
		assert_int_equal(http_start(&conf), ERR_INTERNAL);
		assert_string_equal(fault_of(ERR_INTERNAL)->field, fields[i % 2]);
	}
	start();
}

static void *call_silent(void *arg)
{
	struct world *w = arg;
	struct http_call c = post(w, "/silent");
	assert_int_equal(http_run(&c, w->arena, &w->reply), OK);
	return NULL;
}

static void a_stop_ends_the_calls_under_way_and_refuses_more(void **state)
{
	struct world *w = *state;
	pthread_t thread;
	struct http_call c = get(w, "/echo");
	struct world other = {.arena = w->arena};
	int before = witness(w, "/silent");
	struct world *late = calloc(1, sizeof *late);
	late->arena = arena_new(ARENA_MAX);
	assert_int_equal(pthread_create(&thread, NULL, call_silent, late), 0);
	while (witness(&other, "/silent") == before)
		;
	http_stop();
	(void)pthread_join(thread, NULL);
	assert_int_equal(late->reply.fate, HTTP_UNSURE);
	assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_FORBIDDEN_ADDRESS); /* no origins */
	c.url = "https://8.8.8.8/";
	assert_int_equal(http_run(&c, w->arena, &w->reply), ERR_BUSY);
	start();
	assert_int_equal(run(w, get(w, "/echo"))->status, 200);
	arena_free(late->arena);
	free(late);
}

static void no_call_went_to_the_proxy_of_the_environment(void **state)
{
	assert_int_equal(accepts(*state).proxy, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_spelling_of_a_private_address_is_refused),
		TEST(a_kept_connection_does_not_get_round_the_guard),
		TEST(only_the_listed_origin_itself_is_exempt),
		TEST(urls_are_judged_and_the_field_is_named),
		TEST(wrong_settings_are_refused_by_name),
		TEST(a_stop_ends_the_calls_under_way_and_refuses_more),
		TEST(no_call_went_to_the_proxy_of_the_environment),
	};
	secret_init();
	return cmocka_run_group_tests_name("http_guard", tests, group_start, group_stop);
}
