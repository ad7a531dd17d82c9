/*
 * Daytona against a scripted network: what is asked, and what is made of any answer. The texts of
 * commands are run by the shells of this machine.
 */
#include "arena.h"
#include "clock.h"
#include "daytona_reply.h"
#include "http.h"
#include "json.h"
#include "provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Answers leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MARK "cc-abcdef-abcdefghijklmnopqrstuvwxyz"
#define ID   "0b7f1c52-6a3e-4a55-9d56-1f2e3d4c5b6a"
#define API  "https://app.daytona.io/api"
#define TOOL "https://proxy.app.daytona.io/toolbox"

#define BOX_AT(state, url, more)                                                                   \
	"{\"id\":\"" ID "\",\"name\":\"" MARK "\",\"state\":\"" state                              \
	"\",\"toolboxProxyUrl\":\"" url "\"" more "}"
#define BOX(state) BOX_AT(state, TOOL, ",\"autoDestroyAt\":\"2026-12-01T23:00:00.000Z\"")
#define WRONG(status, words)                                                                       \
	"{\"path\":\"/x\",\"statusCode\":" #status ",\"error\":\"E\",\"message\":\"" words "\"}"

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method, *url; /* wanted */
	int status;               /* 0: HTTP_UNSURE; -1: HTTP_NOT_SENT */
	const char *body;
	const char *type; /* NULL: application/json */
	int retry_after_s;
	const char *kept;
};

static const struct answer *script;
static size_t played;
static enum http_pool pool;
static char last_body[1 << 17], last_type[256], last_keep[64];
static size_t last_body_n;
static int64_t last_total_ms, last_first_ms;

enum err http_url_check(const char *url, const char *field)
{
	return strncmp(url, "https://", 8) == 0
		       ? OK
		       : (fail)(ERR_FORBIDDEN_ADDRESS, field, "must be https");
}

/* In the body of an answer, "@" stands for the mark that was asked for with the command. */
static const char *filled(struct arena *a, const char *body)
{
	const char *at = strchr(body, '@'), *mark = strstr(last_body, "cc-");
	if (!at || !mark)
		return body;
	return arena_printf(a, "%.*s%.35s%s", (int)(at - body), body, mark, at + 1);
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played++];
	assert_non_null(q->method);
	assert_string_equal(c->method, q->method);
	assert_string_equal(c->url, q->url);
	assert_int_equal(c->pool, pool);
	assert_non_null(c->bearer);
	assert_true(c->total_ms > 0);
	last_body_n = c->body_n < sizeof last_body - 1 ? c->body_n : sizeof last_body - 1;
	memcpy(last_body, c->body ? c->body : "", c->body ? last_body_n : 0);
	last_body[last_body_n] = '\0';
	(void)snprintf(last_type, sizeof last_type, "%s", c->type ? c->type : "");
	(void)snprintf(last_keep, sizeof last_keep, "%s", c->keep_header ? c->keep_header : "");
	last_total_ms = c->total_ms;
	last_first_ms = c->first_ms;
	bool replied = q->status > 0;
	*ret = (struct http_reply){.fate = replied          ? HTTP_REPLIED
					   : q->status == 0 ? HTTP_UNSURE
							    : HTTP_NOT_SENT,
		.status = replied ? q->status : 0,
		.body = replied && q->body ? filled(a, q->body) : "",
		.type = q->type ? q->type : "application/json",
		.kept = q->kept,
		.retry_after_s = q->retry_after_s};
	ret->body_n = strlen(ret->body);
	return OK;
}

struct bench {
	struct arena *arena;
	struct credential credential;
	struct call call;
	const struct provider_ops *ops;
};

static int begin(void **state)
{
	static struct bench b;
	secret_init();
	b = (struct bench){.arena = arena_new(64 << 20)};
	b.credential.token = secret_new("dtn_0123456789abcdef", 20);
	b.call = (struct call){.provider = provider_find("daytona"),
		.credential = &b.credential,
		.arena = b.arena};
	b.ops = b.call.provider->ops;
	played = 0;
	pool = HTTP_FIXED;
	*state = &b;
	return 0;
}

static int end(void **state)
{
	struct bench *b = *state;
	call_done(&b->call);
	secret_done(&b->credential.token);
	arena_free(b->arena);
	return 0;
}

static void play(const struct answer *answers)
{
	script = answers;
	played = 0;
}

static void expect_fault(size_t at, enum err got, enum err want, const char *words)
{
	const struct fault *f = fault_of(want);
	if (got != want || (words && !strstr(f->detail, words)))
		fail_msg("case %zu: error %d, `%s`", at, got, f->detail);
	assert_null(strstr(f->detail, "OUTSIDE"));
}

/* -- addresses --------------------------------------------------------------------------------- */

static void the_base_is_what_people_paste(void **state)
{
	struct bench *b = *state;
	assert_string_equal(daytona_base(b->arena, "https://x.example"), "https://x.example/api");
	assert_string_equal(daytona_base(b->arena, "https://x.example//"), "https://x.example/api");
	assert_string_equal(
		daytona_base(b->arena, "https://x.example/d/api/"), "https://x.example/d/api");
	assert_string_equal(daytona_base(b->arena, API), API);
}

static void the_key_stays_in_its_house(void **state)
{
	static const char *const near[][2] = {{API, TOOL}, {API, "https://app.daytona.io/x"},
		{API, "https://APP.Daytona.IO:8443/x"}, {API, "https://daytona.io"},
		{"https://daytona.example.co.uk/api",
			"https://proxy.daytona.example.co.uk/toolbox"},
		{"https://example.com/api", "https://proxy.example.com/t"},
		{"https://10.0.0.7:3000/api", "https://10.0.0.7:4000/toolbox"},
		{"http://127.0.0.1:3000/api", "http://127.0.0.1:3000/toolbox"},
		{"https://[::1]:3/api", "https://[::1]:3/toolbox"}};
	static const char *const far[][2] = {{API, "http://proxy.app.daytona.io/toolbox"},
		{API, "https://daytona.io.evil.example/"}, {API, "https://evildaytona.io/"},
		{API, "https://app.daytona.io@evil.example/"},
		{API, "https://evil.example/daytona.io"},
		{API, "https://evil.example\\\\.daytona.io/"},
		{API, "https://evil.example?.daytona.io"},
		{API, "https://evil.example#.daytona.io"}, {API, "https://io/"},
		{API, "https:///x"}, {API, "ftp://app.daytona.io/"}, {API, ""}, {API, "https://"},
		{API, "https://u:p@app.daytona.io/"},
		{"https://example.com/api", "https://other.com/"},
		{"https://localhost/api", "https://evil/"},
		{"https://10.0.0.7/api", "https://10.0.0.8/"},
		{"https://10.0.0.7/api", "https://1.0.0.7/"},
		{"https://[::1]/api", "https://[::2]/"},
		{"http://127.0.0.1:3000/api", "http://127.0.0.1:4000/toolbox"}};
	(void)state;
	for (size_t i = 0; i < sizeof near / sizeof *near; i++)
		if (!daytona_near(near[i][0], near[i][1]))
			fail_msg("near %zu", i);
	for (size_t i = 0; i < sizeof far / sizeof *far; i++)
		if (daytona_near(far[i][0], far[i][1]))
			fail_msg("far %zu", i);
}

static void ids_of_another_form_never_reach_a_path(void **state)
{
	struct bench *b = *state;
	static const char *const ids[] = {"", ".", "..", "../../admin", "a/b", "a?b", "a\n", "a b"};
	enum box_state s;
	struct box box;
	struct exec_result r;
	const char *const argv[] = {"true", NULL};
	play((const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		assert_int_equal(b->ops->destroy(&b->call, ids[i], &s), ERR_INTERNAL);
		assert_int_equal(b->ops->find(&b->call, ids[i], &box), ERR_INTERNAL);
		assert_int_equal(b->ops->put(&b->call, ids[i], "/f", "", 0), ERR_INTERNAL);
		assert_int_equal(b->ops->exec(&b->call, ids[i], "e", argv, 1, &r), ERR_INTERNAL);
	}
	assert_int_equal(played, 0);
}

/* -- check ------------------------------------------------------------------------------------- */

#define KEYS         API "/api-keys/current"
#define RIGHTS(list) "{\"name\":\"k\",\"permissions\":[" list "]}"
#define BOTH         RIGHTS("\"read:x\",\"write:sandboxes\",\"delete:sandboxes\"")

static const struct {
	struct answer answers[3];
	enum err err;
	const char *words;
} checks[] = {
	{{{"GET", KEYS, 200, BOTH}}, OK, NULL},
	{{{"GET", KEYS, 404, WRONG(404, "Cannot GET")},
		 {"GET", API "/sandbox?limit=1", 200, "{\"items\":[],\"nextCursor\":null}"}},
		OK, NULL},
	{{{"GET", KEYS, 404, "x", "text/html"}, {"GET", API "/sandbox?limit=1", 200, "[]"}}, OK,
		NULL},
	{{{"GET", KEYS, 200, RIGHTS("\"write:sandboxes\"")}}, ERR_KEY_REFUSED,
		"lacks the permission delete:sandboxes"},
	{{{"GET", KEYS, 200, RIGHTS("\"delete:sandboxes\",7")}}, ERR_KEY_REFUSED,
		"lacks the permission write:sandboxes"},
	{{{"GET", KEYS, 200, RIGHTS("\"OUTSIDE\"")}}, ERR_KEY_REFUSED,
		"write:sandboxes and delete:sandboxes"},
	{{{"GET", KEYS, 401, WRONG(401, "Invalid credentials OUTSIDE")}}, ERR_KEY_REFUSED,
		"does not accept the key"},
	{{{"GET", KEYS, 401, WRONG(401, "This API key has expired")}}, ERR_KEY_REFUSED, "expired"},
	{{{"GET", KEYS, 401, ""}}, ERR_KEY_REFUSED, "does not accept the key"},
	{{{"GET", KEYS, 403, WRONG(403, "Organization is suspended: OUTSIDE")}}, ERR_KEY_REFUSED,
		"suspended"},
	{{{"GET", KEYS, 403, WRONG(403, "Region us is not allowed")}}, ERR_KEY_REFUSED, "region"},
	{{{"GET", KEYS, 403, WRONG(403, "no")}}, ERR_KEY_REFUSED, "may not do this"},
	{{{"GET", KEYS, 403, "<html>", "text/html"}}, ERR_KEY_CHECK_FAILED,
		"not the API of Daytona"},
	{{{"GET", KEYS, 302, ""}}, ERR_KEY_CHECK_FAILED, "status 302"},
	{{{"GET", KEYS, 200, "<html>", "text/html"}}, ERR_KEY_CHECK_FAILED, "not the API"},
	{{{"GET", KEYS, 200, "[]"}}, ERR_KEY_CHECK_FAILED, "not the API"},
	{{{"GET", KEYS, 200, "{}"}}, ERR_KEY_CHECK_FAILED, "not the API"},
	{{{"GET", KEYS, 200, "{\"permissions\":{}}"}}, ERR_KEY_CHECK_FAILED, "not the API"},
	{{{"GET", KEYS, 404, ""}, {"GET", API "/sandbox?limit=1", 404, ""}}, ERR_KEY_CHECK_FAILED,
		"status 404"},
	{{{"GET", KEYS, 404, ""}, {"GET", API "/sandbox?limit=1", 200, "{\"a\":1}"}},
		ERR_KEY_CHECK_FAILED, "not the API"},
	{{{"GET", KEYS, 404, ""}, {"GET", API "/sandbox?limit=1", 401, ""}}, ERR_KEY_REFUSED, NULL},
	{{{"GET", KEYS, 429, "", .retry_after_s = 7}}, ERR_UPSTREAM_LIMIT, "limits the rate"},
	{{{"GET", KEYS, 500, "x", "text/html"}}, ERR_UPSTREAM, "status 500"},
	{{{"GET", KEYS, 502, ""}}, ERR_UPSTREAM, "status 502"},
	{{{"GET", KEYS, -1}}, ERR_UPSTREAM, "no connection to Daytona"},
	{{{"GET", KEYS, 0}}, ERR_UPSTREAM, "broke off"},
};

static void every_check_has_its_own_words(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		play(checks[i].answers);
		enum err e = b->ops->check(&b->call);
		if (checks[i].err == OK)
			assert_int_equal(e, OK);
		else
			expect_fault(i, e, checks[i].err, checks[i].words);
	}
}

static void an_address_of_ones_own_is_used_and_guarded(void **state)
{
	struct bench *b = *state;
	b->credential.api_url = "https://daytona.example/";
	pool = HTTP_USER;
	play((const struct answer[]){
		{"GET", "https://daytona.example/api/api-keys/current", 200, BOTH},
		{"GET", "https://daytona.example/api/api-keys/current", 418, ""}, {0}});
	assert_int_equal(b->ops->check(&b->call), OK);
	assert_int_equal(b->ops->check(&b->call), ERR_KEY_CHECK_FAILED);
	assert_string_equal(fault_of(ERR_KEY_CHECK_FAILED)->field, "api_url");
	b->credential.api_url = "http://daytona.example";
	assert_int_equal(b->ops->check(&b->call), ERR_FORBIDDEN_ADDRESS);
	assert_int_equal(played, 2);
}

/* -- create ------------------------------------------------------------------------------------ */

#define BOXES API "/sandbox"
static const struct box_spec spec = {.mark = MARK, .life_s = 361};

static void a_sandbox_is_made(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"POST", BOXES, 200, BOX("started")}, {0}});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, ID);
	assert_string_equal(box.mark, MARK);
	assert_int_equal(box.state, BOX_RUNNING);
	assert_null(box.warnings);
	assert_string_equal(last_body,
		"{\"name\":\"" MARK "\",\"labels\":{\"cc-install\":\"cc-abcdef\"},"
		"\"autoStopInterval\":7,\"autoDeleteInterval\":0,\"ttlMinutes\":7}");
	assert_string_equal(last_keep, "Retry-After-sandbox-create");
	assert_string_equal(b->call.memo.box, ID);
	assert_string_equal(b->call.memo.base, TOOL "/" ID);
	assert_int_equal(b->call.round_trips, 1);
}

static void what_is_not_enforced_is_told(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {
		.mark = MARK, .life_s = 600, .template = "big", .network = NETWORK_NONE};
	struct box box;
	play((const struct answer[]){
		{"POST", BOXES, 200, BOX_AT("started", TOOL, ",\"networkBlockAll\":true")},
		{"POST", BOXES, 200, BOX("started")},
		{"POST", BOXES, 200, BOX_AT("started", TOOL, "")}, {0}});
	assert_int_equal(b->ops->create(&b->call, &want, &box), OK);
	assert_non_null(strstr(box.warnings, "no hard end"));
	assert_non_null(strstr(box.warnings, "10 idle minutes"));
	assert_null(strstr(box.warnings, "network"));
	assert_non_null(strstr(last_body, "\"snapshot\":\"big\",\"networkBlockAll\":true"));
	assert_int_equal(b->ops->create(&b->call, &want, &box), OK);
	assert_string_equal(box.warnings, "not enforced there as asked: network");
	assert_int_equal(b->ops->create(&b->call, &want, &box), OK);
	assert_non_null(strstr(box.warnings, "network; this server sets no hard end"));
}

static void a_slow_start_is_waited_for(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){
		{"POST", BOXES, 200,
			"{\"id\":\"" ID "\",\"name\":\"" MARK "\",\"state\":\"creating\"}"},
		{"GET", BOXES "/" ID, 500, ""}, {"GET", BOXES "/" ID, 0},
		{"GET", BOXES "/" ID, 200, BOX("restoring")},
		{"GET", BOXES "/" ID, 200, BOX("started")}, {0}});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
	assert_int_equal(b->call.round_trips, 5);
	assert_true(b->call.upstream_us >= 100000); /* waiting for it is its time */
	assert_string_equal(b->call.memo.base, TOOL "/" ID);
}

static void a_failed_start_leaves_something_to_delete(void **state)
{
	struct bench *b = *state;
	static const char *const states[] = {
		"error", "build_failed", "destroyed", "destroying", "stopped", "archived"};
	struct box box;
	for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
		const char *now = arena_printf(b->arena,
			"{\"id\":\"" ID "\",\"name\":\"" MARK
			"\",\"state\":\"%s\",\"errorReason\":\"OUTSIDE\"}",
			states[i]);
		const struct answer answers[] = {{"POST", BOXES, 200, BOX("pending_build")},
			{"GET", BOXES "/" ID, 200, now}, {0}};
		play(answers);
		expect_fault(i, b->ops->create(&b->call, &spec, &box), ERR_UPSTREAM_UNSURE,
			"failed to start");
		assert_string_equal(b->call.memo.box, "");
	}
	play((const struct answer[]){{"POST", BOXES, 200, BOX("creating")},
		{"GET", BOXES "/" ID, 404, WRONG(404, "not found")}, {0}});
	expect_fault(
		99, b->ops->create(&b->call, &spec, &box), ERR_UPSTREAM_UNSURE, "failed to start");
}

static const struct {
	struct answer answer;
	enum err err;
	const char *words;
} creates[] = {
	{{.status = -1}, ERR_UPSTREAM, "no connection"},
	{{.status = 0}, ERR_UPSTREAM_UNSURE, "broke off"},
	{{.status = 401, .body = WRONG(401, "Invalid credentials")}, ERR_KEY_REFUSED, NULL},
	{{.status = 403, .body = WRONG(403, "Organization is suspended")}, ERR_KEY_REFUSED,
		"suspended"},
	{{.status = 403, .body = WRONG(403, "Insufficient permissions")}, ERR_KEY_REFUSED,
		"may not"},
	{{.status = 403, .body = WRONG(403, "Total disk limit exceeded")}, ERR_UPSTREAM_LIMIT,
		"quota"},
	{{.status = 400, .body = WRONG(400, "Total CPU quota exceeded. OUTSIDE")},
		ERR_UPSTREAM_LIMIT, "quota"},
	{{.status = 400,
		 .body = "{\"statusCode\":400,\"message\":[\"name must be a string OUTSIDE\",1]}"},
		ERR_UPSTREAM, "in the form"},
	{{.status = 400, .body = "{\"statusCode\":400}"}, ERR_UPSTREAM, "in the form"},
	{{.status = 400, .body = WRONG(400, "Snapshot x not found")}, ERR_UPSTREAM, "in the form"},
	{{.status = 400, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM, "status 400"},
	{{.status = 404, .body = WRONG(404, "gone")}, ERR_UPSTREAM, "status 404"},
	{{.status = 409, .body = WRONG(409, "Sandbox with name x already exists")},
		ERR_UPSTREAM_UNSURE, "there already"},
	{{.status = 409, .body = ""}, ERR_UPSTREAM_UNSURE, "status 409"},
	{{.status = 429, .kept = "7"}, ERR_UPSTREAM_LIMIT, "rate"},
	{{.status = 429, .kept = "soon", .retry_after_s = 7}, ERR_UPSTREAM_LIMIT, "rate"},
	{{.status = 408}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 500, .body = WRONG(500, "x")}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 502}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 303}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 204}, ERR_UPSTREAM_UNSURE, "new sandbox"},
	{{.status = 200, .body = "{"}, ERR_UPSTREAM_UNSURE, "new sandbox"},
	{{.status = 200, .body = "[]"}, ERR_UPSTREAM_UNSURE, "new sandbox"},
	{{.status = 200, .body = "{}"}, ERR_UPSTREAM_UNSURE, "new sandbox"},
	{{.status = 200, .body = BOX("started"), .type = "text/html"}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 200, .body = "{\"id\":7,\"name\":\"" MARK "\"}"}, ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 200, .body = "{\"id\":\"../x\",\"name\":\"" MARK "\"}"}, ERR_UPSTREAM_UNSURE,
		NULL},
	{{.status = 200, .body = "{\"id\":\"" ID "\",\"name\":\"other\",\"state\":\"started\"}"},
		ERR_UPSTREAM_UNSURE, NULL},
	{{.status = 200, .body = "{\"id\":\"" ID "\",\"name\":\"" MARK "\",\"state\":\"started\"}"},
		ERR_UPSTREAM_UNSURE, "did not tell the address"},
	{{.status = 200, .body = BOX_AT("started", "https://evil.example/t", "")},
		ERR_UPSTREAM_UNSURE, "not sent there"},
	{{.status = 200, .body = BOX_AT("started", TOOL "?x=1", "")}, ERR_UPSTREAM_UNSURE,
		"can not be used"},
};

static void a_create_is_certain_or_says_that_it_is_not(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof creates / sizeof *creates; i++) {
		struct answer a[2] = {creates[i].answer, {0}};
		struct box box = {.id = "untouched"};
		a[0].method = "POST";
		a[0].url = BOXES;
		play(a);
		expect_fault(
			i, b->ops->create(&b->call, &spec, &box), creates[i].err, creates[i].words);
		assert_string_equal(box.id, "untouched");
		assert_string_equal(b->call.memo.box, "");
		if (a[0].status == 429)
			assert_int_equal(fault_of(ERR_UPSTREAM_LIMIT)->retry_after_s, 7);
	}
}

static void an_unknown_snapshot_is_the_template(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK, .life_s = 60, .template = "none"};
	struct box box;
	play((const struct answer[]){
		{"POST", BOXES, 400, WRONG(400, "Snapshot none not found. Did you add it?")},
		{"POST", BOXES, 404, WRONG(404, "snapshot none is not active")}, {0}});
	for (int i = 0; i < 2; i++) {
		assert_int_equal(b->ops->create(&b->call, &want, &box), ERR_UNSUPPORTED);
		assert_string_equal(fault_of(ERR_UNSUPPORTED)->field, "template");
	}
}

static void choices_that_it_lacks_are_refused_by_name_before_the_network(void **state)
{
	struct bench *b = *state;
	const struct box_spec wants[] = {{.mark = MARK, .life_s = 1, .runtime = "node22"},
		{.mark = MARK, .life_s = 1, .memory_mb = 512},
		{.mark = MARK, .life_s = 1, .cpu = 2},
		{.mark = MARK, .life_s = 1, .network = NETWORK_HOST},
		{.mark = MARK, .life_s = 1, .gpu = "T4", .gpu_count = 1}};
	const char *const fields[] = {"runtime", "memory_mb", "cpu", "network", "gpu"};
	struct box box;
	play((const struct answer[]){{0}});
	for (int i = 0; i < 5; i++) {
		assert_int_equal(b->ops->create(&b->call, &wants[i], &box), ERR_UNSUPPORTED);
		assert_string_equal(fault_of(ERR_UNSUPPORTED)->field, fields[i]);
	}
	assert_int_equal(played, 0);
}

/* -- find, list, destroy ----------------------------------------------------------------------- */

static void find_tells_there_from_not_there_from_unknown(void **state)
{
	struct bench *b = *state;
	const char *url = BOXES "/" MARK;
	struct box box;
	play((const struct answer[]){{"GET", url, 200, BOX("started")},
		{"GET", url, 200, BOX("error")}, {"GET", url, 200, BOX("destroying")},
		{"GET", url, 200, BOX("destroyed")},
		{"GET", url, 404, WRONG(404, "Sandbox with ID or name x not found")},
		{"GET", url, 404, "<html>", "text/html"}, {"GET", url, 404, "{}"},
		{"GET", url, 404, WRONG(400, "x")}, {"GET", url, 0}, {"GET", url, 200, "{}"},
		{"GET", url, 200, "{\"id\":\"" ID "\",\"name\":\"another\"}"},
		{"GET", url, 500, WRONG(500, "x")}, {0}});
	const enum box_state states[] = {BOX_RUNNING, BOX_RUNNING, BOX_STOPPING};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(b->ops->find(&b->call, MARK, &box), OK);
		assert_string_equal(box.id, ID);
		assert_int_equal(box.state, states[i]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(b->ops->find(&b->call, MARK, &box), OK);
		assert_null(box.id);
	}
	for (int i = 0; i < 7; i++)
		assert_int_equal(b->ops->find(&b->call, MARK, &box), ERR_UPSTREAM);
	assert_int_equal(played, 12);
}

#define LIST  BOXES "?limit=100&labels=%7B%22cc-install%22%3A%22cc-abcdef%22%7D"
#define OTHER "{\"id\":\"x\",\"name\":\"cc-zzzzzz-1\",\"state\":\"started\"}"
#define NAMED(name, state)                                                                         \
	"{\"id\":\"i-" name "\",\"name\":\"cc-abcdef-" name "\",\"state\":\"" state "\"}"

static void a_list_is_read_to_its_end(void **state)
{
	struct bench *b = *state;
	struct box_list list;
	play((const struct answer[]){
		{"GET", LIST, 200,
			"{\"items\":[" NAMED("a", "started") "," OTHER
							     "],\"nextCursor\":\"a+b=&c\"}"},
		{"GET", LIST "&cursor=a%2Bb%3D%26c", 200, "{\"items\":[],\"nextCursor\":\"d\"}"},
		{"GET", LIST "&cursor=d", 200,
			"{\"items\":[" NAMED("b", "destroying") "," NAMED(
				"c", "destroyed") "],\"nextCursor\":null}"},
		{"GET", LIST, 200, "[" NAMED("d", "stopped") "," OTHER "]"},
		{"GET", LIST, 200, "{\"items\":[]}"}, {0}});
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.items[0].id, "i-a");
	assert_string_equal(list.items[1].mark, "cc-abcdef-b");
	assert_int_equal(list.items[1].state, BOX_STOPPING);
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), OK); /* the older form */
	assert_int_equal(list.n, 1);
	assert_int_equal(list.items[0].state, BOX_RUNNING); /* it keeps its disk */
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 0);
}

static void a_list_of_another_form_is_no_list(void **state)
{
	struct bench *b = *state;
	static const struct answer bad[] = {{"GET", LIST, 200, "{\"items\":{}}"},
		{"GET", LIST, 200, "{}"}, {"GET", LIST, 200, "7"},
		{"GET", LIST, 200, "{\"items\":[1]}"},
		{"GET", LIST, 200, "{\"items\":[{\"id\":\"../..\",\"name\":\"x\"}]}"},
		{"GET", LIST, 200, "[]", "text/html"}, {"GET", LIST, 200, ""}, {"GET", LIST, 0},
		{"GET", LIST, 500, ""}};
	static struct answer endless[120];
	struct box_list list = {.n = 77};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct answer answers[] = {bad[i], {0}};
		play(answers);
		assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
	}
	for (size_t i = 0; i < 119; i++)
		endless[i] = (struct answer){"GET", i ? LIST "&cursor=again" : LIST, 200,
			"{\"items\":[],\"nextCursor\":\"again\"}"};
	play(endless);
	expect_fault(0, b->ops->list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM, "no end");
	assert_int_equal(played, 100);
	assert_int_equal(list.n, 77);
}

static void an_end_is_proven_or_not(void **state)
{
	struct bench *b = *state;
	const char *url = BOXES "/" ID;
	enum box_state s;
	const struct answer told[] = {{"DELETE", url, 200, BOX("destroying")},
		{"DELETE", url, 200, BOX("started")}, {"DELETE", url, 200, BOX("destroyed")},
		{"DELETE", url, 404, WRONG(404, "not found")},
		{"DELETE", url, 409, WRONG(409, "Sandbox state change in progress")}, {0}};
	const enum box_state states[] = {
		BOX_STOPPING, BOX_STOPPING, BOX_STOPPED, BOX_STOPPED, BOX_STOPPING};
	play(told);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(b->ops->destroy(&b->call, ID, &s), OK);
		assert_int_equal(s, states[i]);
	}
	const struct answer doubtful[] = {{"DELETE", url, 200, "{}"}, {"DELETE", url, 204, ""},
		{"DELETE", url, 200,
			"{\"id\":\"other\",\"name\":\"" MARK "\",\"state\":\"destroyed\"}"},
		{"DELETE", url, 404, "<html>", "text/html"}, {"DELETE", url, 409, ""},
		{"DELETE", url, 500, WRONG(500, "x")}, {"DELETE", url, 502, ""}, {"DELETE", url, 0},
		{"DELETE", url, -1}, {"DELETE", url, 401, ""}, {"DELETE", url, 429, ""}, {0}};
	play(doubtful);
	while (script[played].method)
		assert_int_not_equal(b->ops->destroy(&b->call, ID, &s), OK);
}

/* -- inside ------------------------------------------------------------------------------------ */

#define PUT  TOOL "/" ID "/files/bulk-upload"
#define EXEC TOOL "/" ID "/process/execute"
#define LOOK                                                                                       \
	{                                                                                          \
		"GET", BOXES "/" ID, 200, BOX("started")                                           \
	}

static void a_file_goes_up_in_one_form(void **state)
{
	struct bench *b = *state;
	play((const struct answer[]){LOOK,
		{"POST", PUT, 200, "{\"files\":[{\"path\":\"/tmp/x\",\"bytes\":5}]}"},
		{"POST", PUT, 200, "", "text/plain"}, {0}});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/x", "a\0\r\nb", 5), OK);
	const char *boundary = strstr(last_type, "boundary=");
	assert_non_null(boundary);
	boundary += 9;
	assert_int_equal(strncmp(last_type, "multipart/form-data; ", 21), 0);
	const char *head = arena_printf(b->arena,
		"--%s\r\nContent-Disposition: form-data; "
		"name=\"files[0].path\"\r\n\r\n/tmp/x\r\n--%s\r\n"
		"Content-Disposition: form-data; name=\"files[0].file\"; filename=\"file\"\r\n"
		"Content-Type: application/octet-stream\r\n\r\n",
		boundary, boundary);
	const char *tail = arena_printf(b->arena, "\r\n--%s--\r\n", boundary);
	assert_int_equal(last_body_n, strlen(head) + 5 + strlen(tail));
	assert_memory_equal(last_body, head, strlen(head));
	assert_memory_equal(last_body + strlen(head), "a\0\r\nb", 5);
	assert_memory_equal(last_body + strlen(head) + 5, tail, strlen(tail));
	/* Its address is known now; an older daemon says nothing. */
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/x", NULL, 0), OK);
	assert_int_equal(b->call.round_trips, 3);
}

static void a_file_that_arrived_otherwise_is_an_error(void **state)
{
	struct bench *b = *state;
	static const struct {
		struct answer answers[3];
		enum err err;
	} cases[] = {
		{{{"POST", PUT, 200, "{\"files\":[{\"bytes\":2}]}"}}, ERR_UPSTREAM},
		{{{"POST", PUT, 200, "{\"files\":[]}"}}, ERR_UPSTREAM},
		{{{"POST", PUT, 200, "{}"}}, ERR_UPSTREAM},
		{{{"POST", PUT, 200, "OK", "text/plain"}}, ERR_UPSTREAM},
		{{{"POST", PUT, 0}}, ERR_UPSTREAM_UNSURE},
		{{{"POST", PUT, 403, "{}"}}, ERR_UPSTREAM},
		{{{"POST", PUT, 400, "{\"errors\":[\"OUTSIDE\"],\"files\":[]}"}, LOOK},
			ERR_UPSTREAM},
		{{{"POST", PUT, 400, "{}"}, {"GET", BOXES "/" ID, 404, WRONG(404, "x")}},
			ERR_BOX_GONE},
		{{{"POST", PUT, 502, ""}, {"GET", BOXES "/" ID, 200, BOX("stopped")}},
			ERR_BOX_GONE},
		{{{"POST", PUT, 502, ""}, {"GET", BOXES "/" ID, 0}}, ERR_UPSTREAM},
	};
	assert_int_equal((play((const struct answer[]){LOOK, {"POST", PUT, 200, ""}, {0}}),
				 b->ops->put(&b->call, ID, "/f", "x", 1)),
		OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		play(cases[i].answers);
		expect_fault(i, b->ops->put(&b->call, ID, "/f", "x", 1), cases[i].err, NULL);
	}
}

static void an_address_that_is_not_its_own_gets_nothing(void **state)
{
	struct bench *b = *state;
	play((const struct answer[]){
		{"GET", BOXES "/" ID, 200, BOX_AT("started", "https://evil.example/t", "")},
		{"GET", BOXES "/" ID, 404, WRONG(404, "x")}, {0}});
	expect_fault(0, b->ops->put(&b->call, ID, "/f", "x", 1), ERR_UPSTREAM, "not sent there");
	assert_int_equal(b->ops->put(&b->call, ID, "/f", "x", 1), ERR_BOX_GONE);
	assert_int_equal(played, 2);
}

static const char *const argv[] = {"sh", "-c", "echo \"it's\"", "sbx", "", NULL};

static enum err execute(struct bench *b, const struct answer *answers, struct exec_result *ret)
{
	play(answers);
	return b->ops->exec(&b->call, ID, "exec-1", argv, 20, ret);
}

static void know(struct bench *b)
{
	struct box box;
	play((const struct answer[]){{"POST", BOXES, 200, BOX("started")}, {0}});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
}

static void a_command_comes_back_whole(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	know(b);
	assert_int_equal(
		execute(b,
			(const struct answer[]){
				{"POST", EXEC, 200,
					"{\"exitCode\":3,\"result\":\"a\\nb\\n\\n@er\\nr\"}"},
				{0}},
			&r),
		OK);
	assert_int_equal(r.code, 3);
	assert_string_equal(r.out, "a\nb\n");
	assert_string_equal(r.err, "er\nr");
	assert_int_equal(r.out_n, 4);
	assert_non_null(strstr(last_body, "\\u003c/dev/null"));
	assert_non_null(strstr(last_body, "\"timeout\":20}"));
	/* The daemon says nothing before the end: a limit of silence must not cut it off. */
	assert_true(last_total_ms > 20000);
	assert_int_equal(last_first_ms, last_total_ms);
	/* An alias of older daemons, and no output at all. */
	assert_int_equal(
		execute(b,
			(const struct answer[]){
				{"POST", EXEC, 200, "{\"code\":0,\"result\":\"\\n@\"}"}, {0}},
			&r),
		OK);
	assert_int_equal(r.out_n + r.err_n, 0);
}

static const struct {
	struct answer answers[3];
	enum err err;
	const char *words;
} execs[] = {
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"result\":\"\"}"}}, ERR_UPSTREAM, "whole output"},
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"result\":\"@\"}"}}, ERR_UPSTREAM, "whole output"},
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"result\":\"\\ncc-short\"}"}}, ERR_UPSTREAM,
		"whole"},
	{{{"POST", EXEC, 200, "{\"exitCode\":256,\"result\":\"\\n@\"}"}}, ERR_UPSTREAM, "whole"},
	{{{"POST", EXEC, 200, "{\"exitCode\":-1,\"result\":\"\"}"}}, ERR_UPSTREAM,
		"could not start"},
	{{{"POST", EXEC, 200, "{\"result\":\"\\n@\"}"}}, ERR_UPSTREAM, "how a short command ended"},
	{{{"POST", EXEC, 200, "{\"exitCode\":null,\"result\":\"\\n@\"}"}}, ERR_UPSTREAM, "ended"},
	{{{"POST", EXEC, 200, "{\"exitCode\":\"0\",\"result\":\"\\n@\"}"}}, ERR_UPSTREAM, "ended"},
	{{{"POST", EXEC, 200, "{\"exitCode\":0.5,\"result\":\"\\n@\"}"}}, ERR_UPSTREAM, "ended"},
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"exitCode\":1,\"result\":\"\\n@\"}"}}, ERR_UPSTREAM,
		NULL},
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"result\":[\"\\n@\"]}"}}, ERR_UPSTREAM, "ended"},
	{{{"POST", EXEC, 200, "{\"exitCode\":0,\"result\":\"\\n@\"}", "text/plain"}}, ERR_UPSTREAM,
		"JSON"},
	{{{"POST", EXEC, 200, "hello", "text/plain"}}, ERR_UPSTREAM, "JSON"},
	{{{"POST", EXEC, 200, ""}}, ERR_UPSTREAM, "JSON"},
	{{{"POST", EXEC, 200, "[]"}}, ERR_UPSTREAM, "JSON"},
	{{{"POST", EXEC, 204, ""}}, ERR_UPSTREAM, "JSON"},
	{{{"POST", EXEC, 408, "{\"statusCode\":408,\"code\":\"PROCESS_EXECUTION_TIMEOUT\"}"}},
		ERR_UPSTREAM_UNSURE, "time limit"},
	{{{"POST", EXEC, 401, "{}"}}, ERR_KEY_REFUSED, "does not accept"},
	{{{"POST", EXEC, 403, "{}"}}, ERR_UPSTREAM, "does not allow"},
	{{{"POST", EXEC, 429, "", .kept = "9"}}, ERR_UPSTREAM_LIMIT, "rate"},
	{{{"POST", EXEC, 303, ""}}, ERR_UPSTREAM, "status 303"},
	{{{"POST", EXEC, 0}}, ERR_UPSTREAM_UNSURE, "broke off"},
	{{{"POST", EXEC, -1}}, ERR_UPSTREAM, "no connection"},
	/* the daemon died of its memory: the sandbox may be as good as gone, or not */
	{{{"POST", EXEC, 502, ""}, LOOK}, ERR_UPSTREAM, "memory may have run out"},
	{{{"POST", EXEC, 502, ""}, {"GET", BOXES "/" ID, 200, BOX("error")}}, ERR_BOX_GONE,
		"does not run any more"},
	{{{"POST", EXEC, 400, "{\"statusCode\":400,\"message\":\"failed to get runner info\"}"},
		 {"GET", BOXES "/" ID, 404, WRONG(404, "x")}},
		ERR_BOX_GONE, "no such sandbox"},
	{{{"POST", EXEC, 400, "{\"statusCode\":400,\"message\":\"OUTSIDE\"}"}, LOOK}, ERR_UPSTREAM,
		"could not do this"},
	{{{"POST", EXEC, 404, "<html>", "text/html"},
		 {"GET", BOXES "/" ID, 404, "<html>", "text/html"}},
		ERR_UPSTREAM, "does not find"},
	{{{"POST", EXEC, 410, ""}, {"GET", BOXES "/" ID, 200, BOX("destroying")}}, ERR_BOX_GONE,
		NULL},
	{{{"POST", EXEC, 500, ""}, {"GET", BOXES "/" ID, 500, ""}}, ERR_UPSTREAM, "status 500"},
};

static void only_a_whole_result_is_an_exit_code(void **state)
{
	struct bench *b = *state;
	know(b);
	for (size_t i = 0; i < sizeof execs / sizeof *execs; i++) {
		struct exec_result r = {.code = 99};
		expect_fault(i, execute(b, execs[i].answers, &r), execs[i].err, execs[i].words);
		assert_int_equal(r.code, 99);
		assert_null(script[played].method); /* no call is missing */
	}
}

/* -- the text of a command, run ---------------------------------------------------------------- */

/* Gives the text to a shell on its input, as the daemon does. */
static size_t run_text(const char *shell, const char *text, char *out, size_t room, int *code)
{
	char file[] = "/tmp/test-daytona-XXXXXX", line[300];
	int fd = mkstemp(file);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)snprintf(line, sizeof line, "%s <%s 2>&1", shell, file);
	FILE *p = popen(line, "r");
	assert_non_null(p);
	size_t n = fread(out, 1, room - 1, p);
	out[n] = '\0';
	int status = pclose(p);
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	(void)close(fd);
	(void)unlink(file);
	return n;
}

static void the_text_of_a_command_survives_every_shell(void **state)
{
	struct bench *b = *state;
	static const char *const shells_used[] = {"sh", "bash", "bash --posix", "busybox sh"};
	static const char *const words[] = {"sh", "-c",
		"cat; for a; do printf '<%s>' \"$a\"; done; printf 'e\\nf' >&2; exit 7", "sbx",
		"it's", "a b", "", "$HOME `id` \"\\", "two\nlines", "'", "*", "--", NULL};
	char out[4096];
	int code;
	for (size_t i = 0; i < sizeof shells_used / sizeof *shells_used; i++) {
		if (strncmp(shells_used[i], "busybox", 7) == 0 && access("/bin/busybox", X_OK) != 0)
			continue;
		struct buf text;
		buf_init(&text, 65536);
		daytona_command(&text, words, "cc-mark");
		(void)run_text(shells_used[i], text.p, out, sizeof out, &code);
		assert_int_equal(code, 7);
		assert_string_equal(
			out, "<it's><a b><><$HOME `id` \"\\><two\nlines><'><*><-->\ncc-marke\nf");
		buf_done(&text);
	}
	(void)b;
}

static void a_child_in_the_background_does_not_hold_a_command_up(void **state)
{
	static const char *const words[] = {
		"sh", "-c", "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!", NULL};
	char out[4096];
	int code, pid = 0;
	struct buf text;
	(void)state;
	buf_init(&text, 65536);
	daytona_command(&text, words, "cc-mark");
	(void)run_text("bash", text.p, out, sizeof out, &code);
	buf_done(&text);
	assert_int_equal(code, 0);
	assert_int_equal(sscanf(out, "%d", &pid), 1);
	(void)kill(pid, SIGKILL);
	assert_non_null(strstr(out, "\n\ncc-mark"));
}

static void a_mark_in_the_output_is_not_the_end(void **state)
{
	struct bench *b = *state;
	CLEANUP_JSON struct json *root = NULL;
	const char *text = "{\"exitCode\":0,\"result\":\"\\ncc-m not yet\\ncc-merr\"}";
	struct exec_result r;
	assert_int_equal(json_parse(text, strlen(text), &root), OK);
	assert_int_equal(daytona_result(root, "cc-m", b->arena, &r), OK);
	assert_string_equal(r.out, "\ncc-m not yet");
	assert_string_equal(r.err, "err");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(the_base_is_what_people_paste),
		T(the_key_stays_in_its_house),
		T(ids_of_another_form_never_reach_a_path),
		T(every_check_has_its_own_words),
		T(an_address_of_ones_own_is_used_and_guarded),
		T(a_sandbox_is_made),
		T(what_is_not_enforced_is_told),
		T(a_slow_start_is_waited_for),
		T(a_failed_start_leaves_something_to_delete),
		T(a_create_is_certain_or_says_that_it_is_not),
		T(an_unknown_snapshot_is_the_template),
		T(choices_that_it_lacks_are_refused_by_name_before_the_network),
		T(find_tells_there_from_not_there_from_unknown),
		T(a_list_is_read_to_its_end),
		T(a_list_of_another_form_is_no_list),
		T(an_end_is_proven_or_not),
		T(a_file_goes_up_in_one_form),
		T(a_file_that_arrived_otherwise_is_an_error),
		T(an_address_that_is_not_its_own_gets_nothing),
		T(a_command_comes_back_whole),
		T(only_a_whole_result_is_an_exit_code),
		T(the_text_of_a_command_survives_every_shell),
		T(a_child_in_the_background_does_not_hold_a_command_up),
		T(a_mark_in_the_output_is_not_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
