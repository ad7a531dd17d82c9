/*
 * The client of the bridge contract against a scripted network: what it asks, and what it makes of
 * any answer.
 */
#include "arena.h"
#include "bridge.h"
#include "bridge_reply.h"
#include "http.h"
#include "json.h"
#include "provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Answers leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MARK "cc-abcdef-abcdefghijklmnopqrstuvwxyz"
#define BOX(state)                                                                                 \
	"{\"id\":\"" MARK "\",\"state\":\"" state                                                  \
	"\",\"created_at\":1.5,\"expires_at\":61,\"labels\":{}}"
#define URL "https://bridge.example/base"

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method, *path; /* wanted; path is behind URL */
	int status;                /* 0: HTTP_UNSURE; -1: HTTP_NOT_SENT */
	const char *body;
	const char *type; /* NULL: application/json */
	int retry_after_s;
};

static const struct answer *script;
static size_t played;
static char last_body[65536];
static bool last_bearer;

enum err http_url_check(const char *url, const char *field)
{
	return strncmp(url, "https://", 8) == 0
		       ? OK
		       : (fail)(ERR_FORBIDDEN_ADDRESS, field, "must be https");
}

static void deliver(const struct http_call *c, const char *body)
{
	/* In small pieces, as a slow network would. */
	for (size_t n = strlen(body), at = 0; at < n; at += 7)
		if (!c->on_data(c->ctx, body + at, n - at < 7 ? n - at : 7))
			return;
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played++];
	assert_non_null(q->method);
	assert_string_equal(c->method, q->method);
	assert_int_equal(strncmp(c->url, URL, strlen(URL)), 0);
	/* "~" at the end: what follows depends on the clock. */
	size_t path_n = strcspn(q->path, "~");
	assert_int_equal(strncmp(c->url + strlen(URL), q->path, path_n), 0);
	assert_true(q->path[path_n] == '~' || c->url[strlen(URL) + path_n] == '\0');
	assert_int_equal(c->pool, HTTP_USER);
	assert_true(c->total_ms > 0);
	last_bearer = c->bearer != NULL;
	(void)snprintf(last_body, sizeof last_body, "%.*s", (int)c->body_n,
		c->body ? (const char *)c->body : "");
	bool replied = q->status > 0;
	const char *body = q->body ? q->body : "";
	*ret = (struct http_reply){.fate = replied          ? HTTP_REPLIED
					   : q->status == 0 ? HTTP_UNSURE
							    : HTTP_NOT_SENT,
		.status = replied ? q->status : 0,
		.body = replied && !c->on_data ? arena_str(a, body) : "",
		.type = q->type ? q->type : "application/json",
		.retry_after_s = q->retry_after_s};
	ret->body_n = strlen(ret->body);
	if (c->on_data)
		deliver(c, body);
	return OK;
}

struct bench {
	struct arena *arena;
	struct credential credential;
	struct call call;
};

static int begin(void **state)
{
	static struct bench b;
	secret_init();
	b = (struct bench){.arena = arena_new(64 << 20)};
	b.credential.token = secret_new("0123456789abcdef0123456789abcdef", 32);
	b.credential.bridge_url = URL "/";
	b.call = (struct call){
		.provider = provider_find("tunnel"), .credential = &b.credential, .arena = b.arena};
	played = 0;
	*state = &b;
	return 0;
}

static int end(void **state)
{
	struct bench *b = *state;
	secret_done(&b->credential.token);
	arena_free(b->arena);
	return 0;
}

static void play(const struct answer *answers)
{
	script = answers;
	played = 0;
}

static void expect_played(size_t n)
{
	assert_int_equal(played, n);
}

/* -- addresses and ids ------------------------------------------------------------------------- */

static void the_base_loses_what_people_paste(void **state)
{
	struct bench *b = *state;
	static const char *const urls[] = {"https://x", "https://x/", "https://x//",
		"https://x/bridge/v1", "https://x/bridge/v1/"};
	for (int i = 0; i < 5; i++)
		assert_string_equal(bridge_base(b->arena, urls[i]), "https://x");
	assert_string_equal(bridge_base(b->arena, "https://x/a/b/"), "https://x/a/b");
	assert_string_equal(bridge_base(b->arena, "unix:/run/r.sock"), "unix:/run/r.sock");
}

static void paths_are_escaped(void **state)
{
	struct bench *b = *state;
	assert_string_equal(bridge_escape(b->arena, "/tmp/a b&c=d?e%f\xc3\xa4"),
		"/tmp/a%20b%26c%3Dd%3Fe%25f%C3%A4");
}

static void ids_of_another_form_never_reach_a_path(void **state)
{
	struct bench *b = *state;
	static const char *const ids[] = {"", "short", "../../admin", "Abcdefgh", "1bcdefgh",
		"abcdefg/", "abcdefgh?x",
		"abcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh", "abcdefg\n"};
	enum box_state s;
	struct box box;
	play((const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		assert_false(bridge_id_ok(ids[i]));
		assert_int_equal(bridge_ops.destroy(&b->call, ids[i], &s), ERR_INTERNAL);
		assert_int_equal(bridge_ops.find(&b->call, ids[i], &box), ERR_INTERNAL);
	}
	expect_played(0);
}

/* -- check ------------------------------------------------------------------------------------- */

#define HEALTH(contract, version, ok)                                                              \
	"{\"ok\":" ok ",\"contract\":\"" contract "\",\"version\":" version "}"
#define LIST "/bridge/v1/sandboxes"

static void a_good_bridge_passes_the_check(void **state)
{
	struct bench *b = *state;
	play((const struct answer[]){{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")},
		{"GET", LIST, 401, "{\"error\":{\"code\":\"unauthorized\"}}"},
		{"GET", LIST, 200, "{\"sandboxes\":[]}"}, {0}});
	assert_int_equal(bridge_ops.check(&b->call), OK);
	expect_played(3);
	assert_true(last_bearer);
	assert_int_equal(b->call.round_trips, 3);
}

struct refused_case {
	struct answer answers[4];
	enum err err;
	const char *words;
};

static const struct refused_case refusals[] = {
	{{{"GET", "/health", -1, NULL}}, ERR_UPSTREAM, "no connection"},
	{{{"GET", "/health", 0, NULL}}, ERR_UPSTREAM, "broke off"},
	{{{"GET", "/health", 404, "<html>", "text/html"}}, ERR_KEY_CHECK_FAILED,
		"no bridge at this address"},
	{{{"GET", "/health", 302, ""}}, ERR_KEY_CHECK_FAILED, "no bridge at this address"},
	{{{"GET", "/health", 200, "<html>", "text/html"}}, ERR_KEY_CHECK_FAILED,
		"no bridge at this address"},
	{{{"GET", "/health", 200, "{}"}}, ERR_KEY_CHECK_FAILED, "not a bridge of ours"},
	{{{"GET", "/health", 200, "[]"}}, ERR_KEY_CHECK_FAILED, "no bridge at this address"},
	{{{"GET", "/health", 200, HEALTH("other", "1", "true")}}, ERR_KEY_CHECK_FAILED,
		"not a bridge of ours"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "2", "true")}}, ERR_KEY_CHECK_FAILED,
		"version 1"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "\"1\"", "true")}}, ERR_KEY_CHECK_FAILED,
		"version 1"},
	{{{"GET", "/health", 503, HEALTH("sbx-bridge", "1", "false")}}, ERR_KEY_CHECK_FAILED,
		"no token of its own"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")},
		 {"GET", LIST, 200, "{\"sandboxes\":[]}"}},
		ERR_KEY_CHECK_FAILED, "401 without a token, but answered 200"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")}, {"GET", LIST, 403, "{}"}},
		ERR_KEY_CHECK_FAILED, "answered 403"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")}, {"GET", LIST, 401, ""},
		 {"GET", LIST, 401, ""}},
		ERR_KEY_REFUSED, "does not accept the token"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")}, {"GET", LIST, 401, ""},
		 {"GET", LIST, 200, "{}"}},
		ERR_UPSTREAM, "its sandboxes"},
	{{{"GET", "/health", 200, HEALTH("sbx-bridge", "1", "true")}, {"GET", LIST, 401, ""},
		 {"GET", LIST, 500, "x"}},
		ERR_UPSTREAM, "status 500"},
};

static void every_failed_check_has_its_own_words(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		play(refusals[i].answers);
		enum err e = bridge_ops.check(&b->call);
		const struct fault *f = fault_of(refusals[i].err);
		if (e != refusals[i].err || !strstr(f->detail, refusals[i].words))
			fail_msg("case %zu: error %d, `%s`", i, e, f->detail);
	}
}

static void an_address_that_is_not_https_is_never_called(void **state)
{
	struct bench *b = *state;
	b->credential.bridge_url = "http://bridge.example";
	play((const struct answer[]){{0}});
	assert_int_equal(bridge_ops.check(&b->call), ERR_FORBIDDEN_ADDRESS);
	expect_played(0);
}

/* -- sandboxes --------------------------------------------------------------------------------- */

static const struct box_spec spec = {.mark = MARK, .life_s = 360};

static void a_sandbox_is_made(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"POST", LIST, 201, BOX("running")}, {0}});
	assert_int_equal(bridge_ops.create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, MARK);
	assert_string_equal(box.mark, MARK);
	assert_int_equal(box.created_ms, 1500);
	assert_int_equal(box.ends_ms, 61000);
	assert_null(box.warnings);
	assert_string_equal(last_body,
		"{\"id\":\"" MARK "\",\"ttl_seconds\":360,\"labels\":{\"install\":\"cc-abcdef\"}}");
	assert_true(last_bearer);
}

static void limits_are_asked_for_and_their_lack_is_told(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK,
		.life_s = 100000,
		.memory_mb = 512,
		.cpu = 2,
		.network = NETWORK_NONE};
	struct box box;
	play((const struct answer[]){
		{"POST", LIST, 200,
			"{\"id\":\"" MARK
			"\",\"state\":\"running\",\"created_at\":1,\"expires_at\":2,\"enforced\":"
			"[\"memory\",7],\"network\":\"internet\",\"limits\":{\"memory_mib\":512},"
			"\"warnings\":[\"<b>\"]}"},
		{0}});
	assert_int_equal(bridge_ops.create(&b->call, &want, &box), OK);
	assert_string_equal(box.warnings, "not enforced there as asked: cpu network");
	assert_string_equal(last_body,
		"{\"id\":\"" MARK "\",\"ttl_seconds\":86400,\"labels\":{\"install\":\"cc-abcdef\"},"
		"\"memory_mib\":512,\"cpu\":2,\"network\":\"none\","
		"\"limits\":{\"memory_mib\":512,\"cpus\":2}}");
}

struct made {
	struct answer answer;
	enum err err;
};

static const struct made creates[] = {
	{{.status = -1}, ERR_UPSTREAM},
	{{.status = 0}, ERR_UPSTREAM_UNSURE},
	{{.status = 401, .body = "{}"}, ERR_KEY_REFUSED},
	{{.status = 429, .retry_after_s = 7}, ERR_UPSTREAM_LIMIT},
	{{.status = 503, .body = "{\"error\":{\"code\":\"capacity\"}}"}, ERR_UPSTREAM_LIMIT},
	{{.status = 503, .body = "{\"error\":{\"code\":\"misconfigured\"}}"}, ERR_UPSTREAM},
	{{.status = 503, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM_UNSURE},
	{{.status = 400, .body = "{\"error\":{\"code\":\"bad_request\"}}"}, ERR_UPSTREAM},
	{{.status = 400, .body = "{\"error\":{\"code\":\"unsupported\"}}"}, ERR_UNSUPPORTED},
	{{.status = 404, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM},
	{{.status = 409, .body = "{\"error\":{\"code\":\"conflict\"}}"}, ERR_UPSTREAM_UNSURE},
	{{.status = 303, .body = ""}, ERR_UPSTREAM_UNSURE},
	{{.status = 500, .body = "{\"error\":{\"code\":\"provider_error\"}}"}, ERR_UPSTREAM_UNSURE},
	{{.status = 502, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM_UNSURE},
	{{.status = 204, .body = ""}, ERR_UPSTREAM_UNSURE},
	/* It answered that it made something, but not what. */
	{{.status = 201, .body = ""}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = "{"}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = "[]"}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = "{}"}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = BOX("running"), .type = "text/html"}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = BOX("stopping")}, ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = BOX("stopped")}, ERR_UPSTREAM_UNSURE},
	{{.status = 201,
		 .body = "{\"id\":\"cc-abcdef-another\",\"state\":\"running\",\"created_at\":1,"
			 "\"expires_at\":2}"},
		ERR_UPSTREAM_UNSURE},
	{{.status = 201,
		 .body = "{\"id\":7,\"state\":\"running\",\"created_at\":1,\"expires_at\":2}"},
		ERR_UPSTREAM_UNSURE},
	{{.status = 201,
		 .body = "{\"id\":\"" MARK
			 "\",\"state\":\"running\",\"created_at\":\"1\",\"expires_at\":2}"},
		ERR_UPSTREAM_UNSURE},
	{{.status = 201,
		 .body = "{\"id\":\"" MARK
			 "\",\"state\":\"running\",\"created_at\":-1,\"expires_at\":2}"},
		ERR_UPSTREAM_UNSURE},
	{{.status = 201,
		 .body = "{\"id\":\"" MARK
			 "\",\"state\":\"running\",\"created_at\":1,\"expires_at\":1e300}"},
		ERR_UPSTREAM_UNSURE},
	{{.status = 201, .body = "{\"id\":\"" MARK "\",\"id\":\"x\",\"state\":\"running\"}"},
		ERR_UPSTREAM_UNSURE},
};

static void a_create_is_certain_or_says_that_it_is_not(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof creates / sizeof creates[0]; i++) {
		struct answer a = creates[i].answer;
		struct box box = {.id = "untouched"};
		a.method = "POST";
		a.path = LIST;
		play(&a);
		enum err e = bridge_ops.create(&b->call, &spec, &box);
		if (e != creates[i].err || strcmp(box.id, "untouched") != 0)
			fail_msg("case %zu: error %d", i, e);
		if (a.status == 429)
			assert_int_equal(fault_of(e)->retry_after_s, 7);
	}
}

static void a_choice_that_bridges_lack_is_refused_before_the_network(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK, .life_s = 1, .runtime = "node22"};
	struct box box;
	play((const struct answer[]){{0}});
	assert_int_equal(bridge_ops.create(&b->call, &want, &box), ERR_UNSUPPORTED);
	assert_string_equal(fault_of(ERR_UNSUPPORTED)->field, "runtime");
	want = (struct box_spec){.mark = MARK, .life_s = 1, .template = "x"};
	assert_int_equal(bridge_ops.create(&b->call, &want, &box), ERR_UNSUPPORTED);
	want = (struct box_spec){.mark = MARK, .life_s = 1, .gpu = "T4", .gpu_count = 1};
	assert_int_equal(bridge_ops.create(&b->call, &want, &box), ERR_UNSUPPORTED);
	assert_string_equal(fault_of(ERR_UNSUPPORTED)->field, "gpu");
	expect_played(0);
}

static void find_tells_there_from_not_there_from_unknown(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"GET", LIST "/" MARK, 200, BOX("stopping")},
		{"GET", LIST "/" MARK, 404, "{\"error\":{\"code\":\"sandbox_not_found\"}}"},
		{"GET", LIST "/" MARK, 404, "<html>", "text/html"},
		{"GET", LIST "/" MARK, 404, "{\"error\":{\"code\":\"not_found\"}}"},
		{"GET", LIST "/" MARK, 0, NULL}, {"GET", LIST "/" MARK, 200, "{}"}, {0}});
	assert_int_equal(bridge_ops.find(&b->call, MARK, &box), OK);
	assert_int_equal(box.state, BOX_STOPPING);
	assert_int_equal(bridge_ops.find(&b->call, MARK, &box), OK);
	assert_null(box.id);
	for (int i = 0; i < 4; i++)
		assert_int_equal(bridge_ops.find(&b->call, MARK, &box), ERR_UPSTREAM);
	expect_played(6);
}

static void a_list_holds_only_our_own(void **state)
{
	struct bench *b = *state;
	struct box_list list;
	const char *path = LIST "?label=install%3Dcc-abcdef";
	play((const struct answer[]){
		{"GET", path, 200,
			"{\"sandboxes\":[" BOX(
				"running") ",{\"id\":\"cc-zzzzzz-other\",\"state\":\"running\","
					   "\"created_at\":1,\"expires_at\":2}]}"},
		{"GET", path, 200, "{\"sandboxes\":[]}"}, {"GET", path, 200, "{\"sandboxes\":{}}"},
		{"GET", path, 200, "{\"sandboxes\":[1]}"},
		{"GET", path, 200, "{\"sandboxes\":[{\"id\":\"../..\"}]}"}, {0}});
	assert_int_equal(bridge_ops.list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.items[0].id, MARK);
	assert_int_equal(bridge_ops.list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bridge_ops.list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
}

static void an_end_is_proven_or_not(void **state)
{
	struct bench *b = *state;
	const char *path = LIST "/" MARK;
	enum box_state s;
	play((const struct answer[]){
		{"DELETE", path, 200, "{\"id\":\"" MARK "\",\"state\":\"stopped\"}"},
		{"DELETE", path, 202, "{\"id\":\"" MARK "\",\"state\":\"stopping\"}"},
		{"DELETE", path, 404, "{\"error\":{\"code\":\"sandbox_not_found\"}}"}, {0}});
	assert_int_equal(bridge_ops.destroy(&b->call, MARK, &s), OK);
	assert_int_equal(s, BOX_STOPPED);
	assert_int_equal(bridge_ops.destroy(&b->call, MARK, &s), OK);
	assert_int_equal(s, BOX_STOPPING);
	assert_int_equal(bridge_ops.destroy(&b->call, MARK, &s), OK);
	assert_int_equal(s, BOX_STOPPED);
	const struct answer doubtful[] = {{"DELETE", path, 200, "{}"},
		{"DELETE", path, 200, "{\"id\":\"" MARK "\",\"state\":\"stopping\"}"},
		{"DELETE", path, 202, "{\"id\":\"" MARK "\",\"state\":\"stopped\"}"},
		{"DELETE", path, 200, "{\"id\":\"other-box\",\"state\":\"stopped\"}"},
		{"DELETE", path, 404, "<html>", "text/html"},
		{"DELETE", path, 200, "OK", "text/plain"}, {"DELETE", path, 0, NULL},
		{"DELETE", path, 401, "{}"}, {0}};
	play(doubtful);
	while (script[played].method)
		assert_int_not_equal(bridge_ops.destroy(&b->call, MARK, &s), OK);
}

/* -- files ------------------------------------------------------------------------------------- */

static void a_large_file_goes_in_blocks(void **state)
{
	struct bench *b = *state;
	size_t n = (8 << 20) + 3;
	char *p = arena_take(b->arena, n);
	play((const struct answer[]){
		{"PUT", LIST "/" MARK "/file?path=/tmp/a%20b&offset=0", 200, "{\"size\":8388608}"},
		{"PUT", LIST "/" MARK "/file?path=/tmp/a%20b&offset=8388608", 200,
			"{\"size\":8388611}"},
		{0}});
	assert_int_equal(bridge_ops.put(&b->call, MARK, "/tmp/a b", p, n), OK);
	expect_played(2);
}

static void a_file_that_arrived_in_another_size_is_an_error(void **state)
{
	struct bench *b = *state;
	const char *path = LIST "/" MARK "/file?path=/f&offset=0";
	play((const struct answer[]){{"PUT", path, 200, "{\"size\":0}"},
		{"PUT", path, 200, "{\"size\":2}"}, {"PUT", path, 200, "{}"},
		{"PUT", path, 409, "{\"error\":{\"code\":\"conflict\"}}"},
		{"PUT", path, 409, "{\"error\":{\"code\":\"sandbox_reset\"}}"},
		{"PUT", path, 404, "{\"error\":{\"code\":\"sandbox_not_found\"}}"},
		{"PUT", path, 0, NULL}, {0}});
	const enum err want[] = {OK, ERR_UPSTREAM, ERR_UPSTREAM, ERR_UPSTREAM, ERR_BOX_GONE,
		ERR_BOX_GONE, ERR_UPSTREAM_UNSURE};
	for (int i = 0; i < 7; i++)
		assert_int_equal(
			bridge_ops.put(&b->call, MARK, "/f", "x", i == 0 ? 0 : 1), want[i]);
}

/* -- commands ---------------------------------------------------------------------------------- */

#define RUN        LIST "/" MARK "/exec"
#define START      "{\"t\":\"start\",\"exec_id\":\"exec-1234\"}\n"
#define OUT(at, d) "{\"t\":\"out\",\"s\":\"stdout\",\"o\":" #at ",\"d\":\"" d "\"}\n"
#define EXIT(code) "{\"t\":\"exit\",\"code\":" #code ",\"timed_out\":false}\n"
#define ND         "application/x-ndjson"

static const char *const argv[] = {"sh", "-c", "echo \"hi\"", NULL};

static enum err execute(struct bench *b, const struct answer *answers, struct exec_result *ret)
{
	play(answers);
	return bridge_ops.exec(&b->call, MARK, "exec-1234", argv, 5, ret);
}

static void a_command_comes_back_whole(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	const char *stream = START OUT(0, "aGVs") "{\"t\":\"hb\"}\n{\"t\":\"later\",\"x\":1}\n" OUT(
		3, "bG8=") "{\"t\":\"out\",\"s\":\"stderr\",\"o\":0,\"d\":\"AAE=\"}\n" EXIT(3);
	assert_int_equal(
		execute(b, (const struct answer[]){{"POST", RUN, 200, stream, ND}, {0}}, &r), OK);
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out, "hello");
	assert_int_equal(r.err_n, 2);
	assert_memory_equal(r.err, "\0\1", 2);
	assert_string_equal(last_body,
		"{\"exec_id\":\"exec-1234\",\"argv\":[\"sh\",\"-c\",\"echo \\\"hi\\\"\"],"
		"\"timeout_ms\":5000,\"follow_ms\":12000}");
	assert_int_equal(b->call.round_trips, 1);
}

static void a_repeated_beginning_counts_no_byte_twice(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	/* The first call broke before the start frame was read, the second tells all from the
	 * start. */
	assert_int_equal(
		execute(b,
			(const struct answer[]){{"POST", RUN, 0, OUT(0, "aGVs"), ND},
				{"POST", RUN, 200, START OUT(0, "aGVs") OUT(2, "bGxv") EXIT(0), ND},
				{0}},
			&r),
		OK);
	assert_int_equal(r.out_n, 5);
	assert_string_equal(r.out, "hello");
	expect_played(2);
}

static void a_broken_call_is_followed_by_offset(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	const char *from3 = RUN "/exec-1234?stdout=3&stderr=0&follow_ms=~";
	const char *from5 = RUN "/exec-1234?stdout=5&stderr=0&follow_ms=~";
	const struct answer answers[] = {
		{"POST", RUN, 0, START OUT(0, "aGVs") "{\"t\":\"out\",", ND}, {"GET", from3, -1},
		{"GET", from3, 200,
			START OUT(3, "bG8=") "{\"t\":\"pending\",\"stdout\":5,\"stderr\":0}\n", ND},
		{"GET", from5, 0, ""}, {"GET", from5, 200, START EXIT(4), ND}, {0}};
	assert_int_equal(execute(b, answers, &r), OK);
	assert_int_equal(r.code, 4);
	assert_string_equal(r.out, "hello");
	expect_played(5);
}

static void a_command_that_began_and_is_out_of_reach_is_unsure(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	const char *from0 = RUN "/exec-1234?stdout=0&stderr=0&follow_ms=~";
	const struct answer answers[] = {
		{"POST", RUN, 0, START, ND}, {"GET", from0, -1}, {"GET", from0, -1}, {0}};
	assert_int_equal(execute(b, answers, &r), ERR_UPSTREAM_UNSURE);
	expect_played(3);
}

struct ending {
	const char *stream;
	int status;
	enum err err;
	size_t calls;
};

static const struct ending endings[] = {
	{START "{\"t\":\"exit\",\"code\":0,\"timed_out\":true}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"error\",\"code\":\"sandbox_reset\",\"message\":\"<b>\"}\n", 200,
		ERR_BOX_GONE, 1},
	{START "{\"t\":\"error\",\"code\":\"exec_lost\"}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"error\",\"code\":\"exec_not_found\"}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"error\",\"code\":\"provider_error\"}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"error\"}\n", 200, ERR_UPSTREAM, 1},
	/* exit frames that are none */
	{START "{\"t\":\"exit\"}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":0}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":null,\"timed_out\":false}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":\"0\",\"timed_out\":false}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":256,\"timed_out\":false}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":-1,\"timed_out\":false}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":0.5,\"timed_out\":false}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":0,\"timed_out\":0}\n", 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"exit\",\"code\":0,\"code\":1,\"timed_out\":false}\n", 200, ERR_UPSTREAM,
		1},
	/* frames that are none */
	{"{\"t\":\"start\",\"exec_id\":\"another-id\"}\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{"{\"t\":\"start\"}\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{START OUT(1, "aGVs") EXIT(0), 200, ERR_UPSTREAM, 1}, /* a gap */
	{START OUT(-1, "aGVs") EXIT(0), 200, ERR_UPSTREAM, 1},
	{START OUT(0, "aGVs!") EXIT(0), 200, ERR_UPSTREAM, 1},
	{START "{\"t\":\"out\",\"s\":\"stdlog\",\"o\":0,\"d\":\"\"}\n" EXIT(0), 200, ERR_UPSTREAM,
		1},
	{START "{\"t\":\"out\",\"s\":\"stdout\",\"d\":\"\"}\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{START "{\"t\":7}\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{START "[]\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{START "{\n" EXIT(0), 200, ERR_UPSTREAM, 1},
	{"<html>a gateway of somebody</html>\n", 200, ERR_UPSTREAM, 1},
	/* refusals as a whole */
	{"{\"error\":{\"code\":\"sandbox_not_found\",\"message\":\"x\"}}", 404, ERR_BOX_GONE, 1},
	{"{\"error\":{\"code\":\"sandbox_reset\",\"message\":\"x\"}}", 409, ERR_BOX_GONE, 1},
	{"{\"error\":{\"code\":\"bad_cwd\",\"message\":\"x\"}}", 400, ERR_UPSTREAM, 1},
	{"{\"error\":{\"code\":\"capacity\",\"message\":\"x\"}}", 503, ERR_UPSTREAM_LIMIT, 1},
	{"{}", 401, ERR_KEY_REFUSED, 1},
	{"<html>", 502, ERR_UPSTREAM, 1},
	{EXIT(0), 500, ERR_UPSTREAM, 1}, /* not even an exit frame counts */
	{EXIT(0), 201, ERR_UPSTREAM, 1},
	{"", 303, ERR_UPSTREAM, 1},
	{"", -1, ERR_UPSTREAM, 1},
	/* no end at all: three calls, then nobody knows */
	{"", 0, ERR_UPSTREAM_UNSURE, 3},
	{"", 200, ERR_UPSTREAM_UNSURE, 3},
	{"{\"t\":\"hb\"}\n", 200, ERR_UPSTREAM_UNSURE, 3},
	{"{\"t\":\"exit\",\"code\":0,\"timed_out\":false}", 200, ERR_UPSTREAM_UNSURE,
		3}, /* no line end */
	{"{\"t\":\"pending\",\"stdout\":0,\"stderr\":0}\n", 200, ERR_UPSTREAM_UNSURE, 3},
};

static void only_a_whole_exit_frame_is_an_exit_code(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		const struct ending *k = &endings[i];
		struct answer a = {"POST", RUN, k->status, k->stream, k->status == 200 ? ND : NULL};
		struct exec_result r = {.code = 99};
		enum err e = execute(b, (const struct answer[]){a, a, a, a, {0}}, &r);
		if (e != k->err || r.code != 99 || played != k->calls)
			fail_msg("case %zu: error %d after %zu calls, code %d", i, e, played,
				r.code);
	}
}

static void a_stream_goes_on_by_offset_after_it_broke(void **state)
{
	(void)state;
	struct bridge_stream s;
	const char *first = START OUT(0, "aGVs"), *half = OUT(3, "bG8=");
	bridge_stream_init(&s, "exec-1234");
	bridge_stream_open(&s);
	assert_true(bridge_stream_feed(&s, first, strlen(first)));
	assert_true(bridge_stream_feed(&s, half, 20));
	/* A new call begins: the half line of the old one is forgotten. */
	bridge_stream_open(&s);
	assert_true(s.started);
	assert_int_equal(s.out.n, 3);
	assert_true(bridge_stream_feed(&s, half, strlen(half)));
	assert_true(bridge_stream_feed(&s, EXIT(9), strlen(EXIT(9))));
	assert_int_equal(s.end, BRIDGE_EXIT);
	assert_int_equal(s.code, 9);
	assert_memory_equal(s.out.p, "hello", 5);
	/* What follows the end changes nothing. */
	assert_true(bridge_stream_feed(&s, EXIT(0), strlen(EXIT(0))));
	assert_int_equal(s.code, 9);
	bridge_stream_done(&s);
}

static void a_line_or_an_output_without_end_is_given_up(void **state)
{
	(void)state;
	static char piece[1 << 16];
	struct bridge_stream s;
	memset(piece, 'a', sizeof piece);
	bridge_stream_init(&s, "exec-1234");
	bridge_stream_open(&s);
	int fed = 0;
	while (fed < 100 && bridge_stream_feed(&s, piece, sizeof piece))
		fed++;
	assert_int_equal(s.end, BRIDGE_BAD);
	assert_true(fed < 20);
	bridge_stream_done(&s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(the_base_loses_what_people_paste),
		T(paths_are_escaped),
		T(ids_of_another_form_never_reach_a_path),
		T(a_good_bridge_passes_the_check),
		T(every_failed_check_has_its_own_words),
		T(an_address_that_is_not_https_is_never_called),
		T(a_sandbox_is_made),
		T(limits_are_asked_for_and_their_lack_is_told),
		T(a_create_is_certain_or_says_that_it_is_not),
		T(a_choice_that_bridges_lack_is_refused_before_the_network),
		T(find_tells_there_from_not_there_from_unknown),
		T(a_list_holds_only_our_own),
		T(an_end_is_proven_or_not),
		T(a_large_file_goes_in_blocks),
		T(a_file_that_arrived_in_another_size_is_an_error),
		T(a_command_comes_back_whole),
		T(a_repeated_beginning_counts_no_byte_twice),
		T(a_broken_call_is_followed_by_offset),
		T(a_command_that_began_and_is_out_of_reach_is_unsure),
		T(only_a_whole_exit_frame_is_an_exit_code),
		T(a_stream_goes_on_by_offset_after_it_broke),
		T(a_line_or_an_output_without_end_is_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
