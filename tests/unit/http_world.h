/* What the tests of outbound calls share: settings, short ways to call, witnesses. */
#pragma once
#include "arena.h"
#include "http.h"
#include "http_server.h"
#include "secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ARENA_MAX (64u << 20)
#define TOTAL_MS  20000 /* long: a test that reaches it has failed */
#define SHORT_MS  150

static struct server server;
static char origin_texts[7][128], ca_paths[5][128];
static const char *origins[8];

/* -- helpers -------------------------------------------------------------------------------------
 */

static struct http_conf conf_with(const char *ca_file, const char *ca_extra)
{
	return (struct http_conf){
		.ca_file = ca_file, .ca_extra = ca_extra, .allowed_origins = origins};
}

static void start(void)
{
	struct http_conf conf = conf_with(NULL, ca_paths[0]);
	assert_int_equal(http_start(&conf), OK);
}

static int group_start(void **state)
{
	static const char *const cas[] = {"ca", "other", "third", "empty", "broken"};
	(void)state;
	server_start(&server);
	for (int i = 0; i < 5; i++)
		snprintf(ca_paths[i], sizeof ca_paths[i], "%s/%s.pem", server.dir, cas[i]);
	snprintf(origin_texts[0], 128, "http://127.0.0.1:%d", server.plain);
	snprintf(origin_texts[1], 128, "https://127.0.0.1:%d", server.tls);
	snprintf(origin_texts[2], 128, "https://localhost:%d", server.misnamed);
	snprintf(origin_texts[3], 128, "https://localhost:%d", server.h2);
	snprintf(origin_texts[4], 128, "unix:%s/web.sock", server.dir);
	snprintf(origin_texts[5], 128, "http://127.0.0.1:%d/", server.closed);
	snprintf(origin_texts[6], 128, "https://127.0.0.1:%d", server.late);
	for (int i = 0; i < 7; i++)
		origins[i] = origin_texts[i];
	/* A proxy of the environment would see every call of every test here. */
	char proxy[64];
	snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", server.proxy);
	setenv("http_proxy", proxy, 1);
	setenv("https_proxy", proxy, 1);
	setenv("ALL_PROXY", proxy, 1);
	start();
	return 0;
}

static int group_stop(void **state)
{
	(void)state;
	http_stop();
	server_stop(&server);
	return 0;
}

struct world {
	struct arena *arena;
	struct http_reply reply;
	char url[256];
};

static int each_start(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	w->arena = arena_new(ARENA_MAX);
	*state = w;
	return 0;
}

static int each_stop(void **state)
{
	struct world *w = *state;
	arena_free(w->arena);
	free(w);
	return 0;
}

static const char *url_of(struct world *w, const char *base, const char *path)
{
	snprintf(w->url, sizeof w->url, "%s%s", base, path);
	return w->url;
}

static struct http_call get(struct world *w, const char *path)
{
	return (struct http_call){.pool = HTTP_USER,
		.method = "GET",
		.url = url_of(w, origin_texts[0], path),
		.total_ms = TOTAL_MS};
}

static struct http_call post(struct world *w, const char *path)
{
	struct http_call c = get(w, path);
	c.method = "POST";
	c.type = "application/json";
	c.body = "{}";
	c.body_n = 2;
	return c;
}

static const struct http_reply *run(struct world *w, struct http_call c)
{
	assert_int_equal(http_run(&c, w->arena, &w->reply), OK);
	return &w->reply;
}

/* How often the server saw a path; read over the unix socket, so that no connection of the test is
 * touched. */
static int witness(struct world *w, const char *path)
{
	char url[300];
	struct http_reply reply;
	snprintf(url, sizeof url, "%s/seen%s", origin_texts[4], path);
	struct http_call c = {
		.pool = HTTP_FIXED, .method = "GET", .url = url, .total_ms = TOTAL_MS};
	assert_int_equal(http_run(&c, w->arena, &reply), OK);
	assert_int_equal(reply.status, 200);
	return atoi(reply.body);
}

struct accepts {
	int plain, tls, h2, unix_socket, proxy;
};

static struct accepts accepts(struct world *w)
{
	char url[300];
	struct http_reply reply;
	struct accepts n;
	snprintf(url, sizeof url, "%s/accepts", origin_texts[4]);
	struct http_call c = {
		.pool = HTTP_FIXED, .method = "GET", .url = url, .total_ms = TOTAL_MS};
	assert_int_equal(http_run(&c, w->arena, &reply), OK);
	assert_int_equal(sscanf(reply.body, "%d %d %d %d %d", &n.plain, &n.tls, &n.h2,
				 &n.unix_socket, &n.proxy),
		5);
	return n;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, each_start, each_stop)
