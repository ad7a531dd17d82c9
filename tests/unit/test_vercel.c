/*
 * Vercel Sandbox against a scripted network: what is asked for, and what is made of any answer.
 * Several cases come from public reports of clients that took something else for a result.
 */
#include "arena.h"
#include "clock.h"
#include "http.h"
#include "json.h"
#include "provider.h"
#include "vercel_reply.h"
#include "vercel_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <cmocka.h>

/* Answers leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define BASE  "https://vercel.com/api"
#define MARK  "cc-abcdef-abcdefghijklmnopqrstuvwxyz"
#define ID    MARK "/sbx_1"
#define SCOPE "teamId=team_1&projectId=prj%2B1"
#define ND    "application/x-ndjson"

#define BOX_OF(name, status)                                                                       \
	"{\"name\":\"" name "\",\"status\":\"" status                                              \
	"\",\"currentSessionId\":\"sbx_1\",\"createdAt\":1000,\"timeout\":60000,"                  \
	"\"persistent\":false}"
#define BOX(status) BOX_OF(MARK, status)
#define SESSION(status)                                                                            \
	"{\"id\":\"sbx_1\",\"status\":\"" status                                                   \
	"\",\"createdAt\":1000,\"startedAt\":1500,\"timeout\":360000,\"vcpus\":2}"
#define MADE(status) "{\"sandbox\":" BOX(status) ",\"session\":" SESSION(status) ",\"routes\":[]}"
#define ERROR(code)  "{\"error\":{\"code\":\"" code "\",\"message\":\"a text from outside\"}}"
#define FORBIDDEN    ERROR("forbidden")

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method, *path; /* wanted; path is behind BASE */
	int status; /* 0: HTTP_UNSURE; -1: HTTP_NOT_SENT; -2: UNSURE after the body */
	const char *body;
	const char *type; /* NULL: application/json */
	int retry_after_s;
};

static const struct answer *script;
static size_t played;
static char last_body[65536];
static size_t last_n, piece = 7;
static struct http_call last;

enum err http_url_check(const char *url, const char *field)
{
	(void)url;
	(void)field;
	return OK;
}

static void deliver(const struct http_call *c, const char *body)
{
	/* In small pieces, as a slow network would. */
	for (size_t n = strlen(body), at = 0; at < n; at += piece)
		if (!c->on_data(c->ctx, body + at, n - at < piece ? n - at : piece))
			return;
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played++];
	assert_non_null(q->method);
	assert_string_equal(c->method, q->method);
	assert_int_equal(strncmp(c->url, BASE, strlen(BASE)), 0);
	assert_string_equal(c->url + strlen(BASE), q->path);
	assert_int_equal(c->pool, HTTP_FIXED);
	assert_true(c->total_ms > 0);
	assert_non_null(c->bearer);
	last = *c;
	last_n = c->body_n < sizeof last_body - 1 ? c->body_n : sizeof last_body - 1;
	if (last_n)
		memcpy(last_body, c->body, last_n);
	last_body[last_n] = '\0';
	bool replied = q->status > 0;
	const char *body = q->body ? q->body : "";
	*ret = (struct http_reply){.fate = replied           ? HTTP_REPLIED
					   : q->status == -1 ? HTTP_NOT_SENT
							     : HTTP_UNSURE,
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
	const struct provider_ops *ops;
};

static int begin(void **state)
{
	static struct bench b;
	secret_init();
	b = (struct bench){.arena = arena_new(64 << 20)};
	b.credential.token = secret_new("0123456789abcdef", 16);
	b.credential.team_id = "team_1";
	b.credential.project_id = "prj+1";
	b.call = (struct call){
		.provider = provider_find("vercel"), .credential = &b.credential, .arena = b.arena};
	b.ops = b.call.provider->ops;
	played = 0;
	piece = 7;
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

/* No text of the service's own may be shown. */
static void expect_fault(enum err got, enum err want, const char *field, const char *words)
{
	const struct fault *f = fault_of(want);
	if (got != want || strcmp(f->field, field) != 0 || !strstr(f->detail, words) ||
		strstr(f->detail, "outside"))
		fail_msg("error %d, field `%s`, `%s`", got, f->field, f->detail);
}

/* -- the key ----------------------------------------------------------------------------------- */

#define CHECK "/v2/sandboxes?teamId=team_1&project=prj%2B1&limit=1"
#define GOOD  "{\"sandboxes\":[],\"pagination\":{\"count\":0,\"next\":null}}"

static void a_good_key_costs_one_call(void **state)
{
	struct bench *b = *state;
	play((const struct answer[]){{"GET", CHECK, 200, GOOD}, {0}});
	assert_int_equal(b->ops->check(&b->call), OK);
	assert_int_equal(b->call.round_trips, 1);
}

static void a_team_may_be_given_by_its_name(void **state)
{
	struct bench *b = *state;
	b->credential.team_id = "my team&x";
	play((const struct answer[]){
		{"GET", "/v2/sandboxes?slug=my%20team%26x&project=prj%2B1&limit=1", 200, GOOD},
		{0}});
	assert_int_equal(b->ops->check(&b->call), OK);
}

struct refused_case {
	struct answer answers[4];
	enum err err;
	const char *field, *words;
};

#define USER                                                                                       \
	{                                                                                          \
		"GET", "/v2/user", 200, "{}"                                                       \
	}
#define TEAM "/v2/teams/team_1"
static const struct refused_case refusals[] = {
	{{{"GET", CHECK, -1}}, ERR_UPSTREAM, "", "no connection"},
	{{{"GET", CHECK, 0}}, ERR_UPSTREAM, "", "broke off"},
	{{{"GET", CHECK, 401, ERROR("unauthorized")}}, ERR_KEY_REFUSED, "token", "the token"},
	{{{"GET", CHECK, 403, FORBIDDEN}, {"GET", "/v2/user", 403, FORBIDDEN}}, ERR_KEY_REFUSED,
		"token", "does not accept the token"},
	{{{"GET", CHECK, 403, FORBIDDEN}, {"GET", "/v2/user", 0}}, ERR_KEY_REFUSED, "token",
		"does not accept the token"},
	{{{"GET", CHECK, 403, FORBIDDEN}, USER, {"GET", TEAM, 403, FORBIDDEN}}, ERR_KEY_REFUSED,
		"team_id", "not for this team"},
	{{{"GET", CHECK, 403, FORBIDDEN}, USER, {"GET", TEAM, 404, ERROR("not_found")}},
		ERR_KEY_REFUSED, "team_id", "not for this team"},
	{{{"GET", CHECK, 403, FORBIDDEN}, USER, {"GET", TEAM, 200, "{}"}}, ERR_KEY_REFUSED,
		"project_id", "this project"},
	{{{"GET", CHECK, 404, ERROR("not_found")}}, ERR_KEY_REFUSED, "project_id",
		"no such project"},
	{{{"GET", CHECK, 402, ERROR("payment_required")}}, ERR_KEY_REFUSED, "", "payment"},
	{{{"GET", CHECK, 429, ERROR("rate_limited"), NULL, 9}}, ERR_UPSTREAM_LIMIT, "", "no more"},
	{{{"GET", CHECK, 500, ERROR("internal_server_error")}}, ERR_UPSTREAM, "", "status 500"},
	{{{"GET", CHECK, 502, "<html>", "text/html"}}, ERR_UPSTREAM, "", "status 502"},
	{{{"GET", CHECK, 307, ""}}, ERR_UPSTREAM, "", "status 307"},
	/* An error page of something on the way is not the service's word. */
	{{{"GET", CHECK, 401, "<html>", "text/html"}}, ERR_KEY_REFUSED, "token", "the token"},
	{{{"GET", CHECK, 402, "<html>", "text/html"}}, ERR_UPSTREAM, "", "status 402"},
	{{{"GET", CHECK, 403, "{}"}}, ERR_UPSTREAM, "", "status 403"},
	{{{"GET", CHECK, 404, "{\"error\":\"x\"}"}}, ERR_UPSTREAM, "", "status 404"},
	{{{"GET", CHECK, 200, "<html>", "text/html"}}, ERR_UPSTREAM, "", "JSON"},
	{{{"GET", CHECK, 200, "{}"}}, ERR_UPSTREAM, "", "its sandboxes"},
	{{{"GET", CHECK, 200, "[]"}}, ERR_UPSTREAM, "", "JSON object"},
	{{{"GET", CHECK, 200, ""}}, ERR_UPSTREAM, "", "JSON object"},
	{{{"GET", CHECK, 200, "{\"sandboxes\":[1,"}}, ERR_UPSTREAM, "", "JSON object"},
};

static void every_refused_key_has_its_own_words(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		const struct refused_case *k = &refusals[i];
		play(k->answers);
		expect_fault(b->ops->check(&b->call), k->err, k->field, k->words);
		assert_true(played == 4 || !k->answers[played].method);
	}
}

static void the_waiting_time_of_a_limit_is_told(void **state)
{
	struct bench *b = *state;
	char body[200];
	play((const struct answer[]){{"GET", CHECK, 429, "<html>", "text/html", 7}, {0}});
	assert_int_equal(b->ops->check(&b->call), ERR_UPSTREAM_LIMIT);
	assert_int_equal(fault_of(ERR_UPSTREAM_LIMIT)->retry_after_s, 7);
	(void)snprintf(body, sizeof body,
		"{\"error\":{\"code\":\"rate_limited\",\"limit\":{\"reset\":%lld}}}",
		(long long)(clock_ms() / 1000 + 100));
	play((const struct answer[]){{"GET", CHECK, 429, body}, {0}});
	assert_int_equal(b->ops->check(&b->call), ERR_UPSTREAM_LIMIT);
	assert_in_range(fault_of(ERR_UPSTREAM_LIMIT)->retry_after_s, 90, 101);
}

/* -- create ------------------------------------------------------------------------------------ */

static const struct box_spec spec = {.mark = MARK, .life_s = 360};
#define CREATE "/v3/sandboxes?teamId=team_1"
#define HEAD                                                                                       \
	"{\"projectId\":\"prj+1\",\"name\":\"" MARK                                                \
	"\",\"timeout\":360000,\"persistent\":false,\"ports\":[],\"tags\":{\"made-by\":"           \
	"\"compute-connector\"}"

static void a_sandbox_is_made_and_keeps_nothing(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"POST", CREATE, 200, MADE("running")}, {0}});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, ID);
	assert_string_equal(box.mark, MARK);
	assert_int_equal(box.created_ms, 1000);
	assert_int_equal(box.ends_ms, 361500);
	assert_null(box.warnings);
	assert_string_equal(last_body, HEAD "}");
	assert_string_equal(last.type, "application/json");
}

struct wish {
	struct box_spec spec;
	const char *path, *body;
};
static const struct wish wishes[] = {
	{{.mark = MARK, .life_s = 360, .runtime = "node22"}, "/v2/sandboxes?teamId=team_1",
		HEAD ",\"runtime\":\"node22\"}"},
	{{.mark = MARK, .life_s = 360, .template = "vercel/sandbox/\"node:24"}, CREATE,
		HEAD ",\"image\":\"vercel/sandbox/\\\"node:24\"}"},
	{{.mark = MARK, .life_s = 360, .cpu = 1}, CREATE, HEAD ",\"resources\":{\"vcpus\":1}}"},
	{{.mark = MARK, .life_s = 360, .memory_mb = 8192}, CREATE,
		HEAD ",\"resources\":{\"vcpus\":4}}"},
	{{.mark = MARK, .life_s = 360, .cpu = 8, .memory_mb = 16384}, CREATE,
		HEAD ",\"resources\":{\"vcpus\":8}}"},
	{{.mark = MARK, .life_s = 360, .network = NETWORK_NONE}, CREATE,
		HEAD ",\"networkPolicy\":{\"mode\":\"deny-all\"}}"},
	{{.mark = MARK, .life_s = 360, .network = NETWORK_INTERNET}, CREATE,
		HEAD ",\"networkPolicy\":{\"mode\":\"allow-all\"}}"},
};

static void what_is_chosen_is_asked_for(void **state)
{
	struct bench *b = *state;
	struct box box;
	for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
		play((const struct answer[]){{"POST", wishes[i].path, 200, MADE("running")}, {0}});
		assert_int_equal(b->ops->create(&b->call, &wishes[i].spec, &box), OK);
		assert_string_equal(last_body, wishes[i].body);
	}
}

struct denied {
	struct box_spec spec;
	const char *field, *words;
};
static const struct denied denials[] = {
	{{.mark = MARK, .runtime = "node18"}, "runtime", "node22, node24"},
	{{.mark = MARK, .runtime = "node22", .template = "x"}, "template", "not both"},
	{{.mark = MARK, .memory_mb = 1024}, "memory_mb", "2048"},
	{{.mark = MARK, .memory_mb = 6144}, "memory_mb", "1, 2, 4"},
	{{.mark = MARK, .memory_mb = 4096, .cpu = 4}, "memory_mb", "2048 MB for each"},
	{{.mark = MARK, .cpu = 3}, "cpu", "1, 2, 4"},
	{{.mark = MARK, .cpu = 34}, "cpu", "8 on Pro"},
	{{.mark = MARK, .network = NETWORK_HOST}, "network", "host"},
	{{.mark = MARK, .gpu = "T4", .gpu_count = 1}, "gpu", "no gpu"},
};

static void what_can_not_be_given_is_refused_by_name_before_the_network(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof denials / sizeof denials[0]; i++)
		expect_fault(b->ops->create(&b->call, &denials[i].spec, &box), ERR_UNSUPPORTED,
			denials[i].field, denials[i].words);
	struct box_spec bad = {.mark = "../x"};
	assert_int_equal(b->ops->create(&b->call, &bad, &box), ERR_INTERNAL);
	assert_int_equal(played, 0);
}

struct made {
	struct answer answer;
	enum err err;
	const char *field;
};
static const struct made creates[] = {
	{{.status = -1}, ERR_UPSTREAM, ""},
	{{.status = 0}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 400, .body = ERROR("bad_request")}, ERR_UPSTREAM, ""},
	{{.status = 400, .body = ERROR("sandbox_timeout_invalid")}, ERR_BAD_INPUT, "timeout_s"},
	{{.status = 401, .body = ERROR("unauthorized")}, ERR_KEY_REFUSED, "token"},
	{{.status = 402, .body = ERROR("payment_required")}, ERR_KEY_REFUSED, ""},
	{{.status = 403, .body = FORBIDDEN}, ERR_KEY_REFUSED, "token"},
	{{.status = 404, .body = ERROR("not_found")}, ERR_KEY_REFUSED, "project_id"},
	{{.status = 429, .body = ERROR("rate_limited"), .retry_after_s = 7}, ERR_UPSTREAM_LIMIT,
		""},
	{{.status = 404, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM, ""},
	{{.status = 409, .body = ERROR("conflict")}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 408, .body = ""}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 303, .body = ""}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 500, .body = ERROR("internal_server_error")}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 502, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM_UNSURE, ""},
	/* Something on the way asked twice: the first request made it. */
	{{.status = 400,
		 .body = "{\"error\":{\"code\":\"bad_request\",\"message\":\"A sandbox with the "
			 "name 'x' already exists for this project.\"}}"},
		ERR_UPSTREAM_UNSURE, ""},
	/* It answered that it made something, but not what. */
	{{.status = 204, .body = ""}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = ""}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = "{\"sandbox\":[1,"}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = "{}"}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = MADE("running"), .type = "text/html"}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = "{\"sandbox\":" BOX("running") "}"}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200,
		 .body = "{\"sandbox\":" BOX_OF("cc-other1-x", "running") ",\"session\":" SESSION(
			 "running") "}"},
		ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200,
		 .body = "{\"sandbox\":" BOX("running") ",\"session\":{\"id\":\"../x\",\"status\":"
							"\"running\"}}"},
		ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200,
		 .body = "{\"sandbox\":" BOX("running") ",\"session\":{\"id\":7,\"status\":"
							"\"running\"}}"},
		ERR_UPSTREAM_UNSURE, ""},
	/* A client that waited for "running" after a terminal state waited for ever. */
	{{.status = 200, .body = MADE("failed")}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = MADE("aborted")}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = MADE("stopped")}, ERR_UPSTREAM_UNSURE, ""},
	{{.status = 200, .body = MADE("stopping")}, ERR_UPSTREAM_UNSURE, ""},
};

static void a_create_is_certain_or_says_that_it_is_not(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof creates / sizeof creates[0]; i++) {
		struct answer a[] = {creates[i].answer, {0}};
		struct box box = {.id = "untouched"};
		a[0].method = "POST";
		a[0].path = CREATE;
		play(a);
		enum err e = b->ops->create(&b->call, &spec, &box);
		expect_fault(e, creates[i].err, creates[i].field, "Vercel");
		assert_string_equal(box.id, "untouched");
		assert_int_equal(played, 1);
		if (a[0].status == 429)
			assert_int_equal(fault_of(e)->retry_after_s, 7);
	}
}

static void a_refused_wish_is_told_from_a_fault(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK, .life_s = 360, .template = "nobody/has:it"};
	struct box box;
	play((const struct answer[]){{"POST", CREATE, 400, ERROR("bad_request")},
		{"POST", CREATE, 400, ERROR("sandbox_timeout_invalid")},
		{"POST", CREATE, 400, "<html>", "text/html"},
		{"POST", CREATE, 404, ERROR("not_found")},
		{"POST", CREATE, 404, "<html>", "text/html"},
		{"POST", CREATE, 400, ERROR("bad_request")}, {0}});
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_UNSUPPORTED, "template", "image");
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_BAD_INPUT, "timeout_s", "2580 s");
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_UPSTREAM, "", "status 400");
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_UNSUPPORTED, "template", "no such");
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_UPSTREAM, "", "status 404");
	want = (struct box_spec){.mark = MARK, .life_s = 360, .cpu = 16};
	expect_fault(b->ops->create(&b->call, &want, &box), ERR_UNSUPPORTED, "", "cpu");
}

static void what_is_given_otherwise_than_asked_is_told(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK, .life_s = 60, .cpu = 4};
	struct box box;
	play((const struct answer[]){
		{"POST", CREATE, 200,
			"{\"sandbox\":{\"name\":\"" MARK
			"\",\"status\":\"pending\",\"persistent\":true},\"session\":" SESSION(
				"pending") "}"},
		{0}});
	assert_int_equal(b->ops->create(&b->call, &want, &box), OK);
	assert_string_equal(box.warnings,
		"not as asked there: cpu and memory its end comes later its files are kept and "
		"billed");
}

/* -- find, list, destroy ----------------------------------------------------------------------- */

#define ONE "/v2/sandboxes/" MARK "?" SCOPE

static void find_tells_there_from_not_there_from_unknown(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"GET", ONE, 200, MADE("running")},
		{"GET", ONE, 200, MADE("snapshotting")}, {"GET", ONE, 200, MADE("stopped")},
		{"GET", ONE, 200, MADE("a-new-state")}, {"GET", ONE, 404, ERROR("not_found")},
		{0}});
	const enum box_state want[] = {BOX_RUNNING, BOX_STOPPING, BOX_STOPPED, BOX_RUNNING};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(b->ops->find(&b->call, MARK, &box), OK);
		assert_string_equal(box.id, ID);
		assert_int_equal(box.state, want[i]);
	}
	assert_int_equal(b->ops->find(&b->call, MARK, &box), OK);
	assert_null(box.id);
	play((const struct answer[]){{"GET", ONE, 404, "<html>", "text/html"},
		{"GET", ONE, 404, ERROR("project_not_found")}, {"GET", ONE, 0},
		{"GET", ONE, 200, "{}"}, {"GET", ONE, 410, ERROR("snapshot_not_found")},
		{"GET", ONE, 422, ERROR("sandbox_stopping")},
		{"GET", ONE, 200, "{\"sandbox\":" BOX_OF("cc-other", "running") "}"}, {0}});
	while (script[played].method)
		assert_int_equal(b->ops->find(&b->call, MARK, &box), ERR_UPSTREAM);
	assert_int_equal(b->ops->find(&b->call, "../../v2/user", &box), ERR_INTERNAL);
}

#define PAGE_AT(more)                                                                              \
	"/v2/sandboxes?teamId=team_1&project=prj%2B1&limit=50&sortBy=name&sortOrder=asc"           \
	"&namePrefix=cc-abcdef-" more
#define PAGE(items, next)                                                                          \
	"{\"sandboxes\":[" items "],\"pagination\":{\"count\":1,\"next\":" next "}}"

static void a_list_has_all_pages_and_only_what_lives_of_ours(void **state)
{
	struct bench *b = *state;
	struct box_list list;
	play((const struct answer[]){
		{"GET", PAGE_AT(""), 200,
			PAGE(BOX_OF("cc-abcdef-a", "running") "," BOX_OF("cc-abcdef-b", "stopped"),
				"\"a&b=\"")},
		{"GET", PAGE_AT("&cursor=a%26b%3D"), 200,
			PAGE(BOX_OF("cc-zzzzzz-a", "running") ",{\"name\":\"a name of its own\"}",
				"\"c\"")},
		{"GET", PAGE_AT("&cursor=c"), 200, PAGE(BOX_OF("cc-abcdef-c", "stopping"), "null")},
		{0}});
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 2);
	assert_string_equal(list.items[0].mark, "cc-abcdef-a");
	assert_string_equal(list.items[1].mark, "cc-abcdef-c");
	assert_int_equal(list.items[1].state, BOX_STOPPING);
}

static const struct answer bad_lists[] = {
	{"GET", PAGE_AT(""), 200, "{}"},
	{"GET", PAGE_AT(""), 200, "{\"sandboxes\":{},\"pagination\":{\"next\":null}}"},
	{"GET", PAGE_AT(""), 200, PAGE("1", "null")},
	{"GET", PAGE_AT(""), 200,
		PAGE("{\"name\":\"cc-abcdef-/\",\"status\":\"running\"}", "null")},
	{"GET", PAGE_AT(""), 200, PAGE("{\"name\":\"cc-abcdef-a\"}", "null")},
	{"GET", PAGE_AT(""), 200, "{\"sandboxes\":[]}"},
	{"GET", PAGE_AT(""), 200, PAGE("", "7")},
	{"GET", PAGE_AT(""), 200, PAGE("", "\"\"")},
	{"GET", PAGE_AT(""), 200, "<html>", "text/html"},
	{"GET", PAGE_AT(""), 500, ERROR("internal_server_error")},
	{0},
};

static void a_list_of_another_form_is_none(void **state)
{
	struct bench *b = *state;
	struct box_list list = {.n = 99};
	play(bad_lists);
	while (script[played].method)
		assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
	assert_int_equal(list.n, 99);
}

static void a_list_without_end_is_given_up(void **state)
{
	struct bench *b = *state;
	static struct answer pages[300];
	struct box_list list;
	for (int i = 0; i < 299; i++)
		pages[i] = (struct answer){
			"GET", PAGE_AT("&cursor=again"), 200, PAGE("", "\"again\"")};
	pages[0].path = PAGE_AT("");
	play(pages);
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
	assert_int_equal(played, 200);
}

#define GONE ONE "&deleteOrphanSnapshots=true"

static void an_end_is_proven_or_asked_for_again(void **state)
{
	struct bench *b = *state;
	enum box_state s;
	play((const struct answer[]){{"DELETE", GONE, 200, "{\"sandbox\":" BOX("stopped") "}"},
		{"DELETE", GONE, 404, ERROR("not_found")},
		{"DELETE", GONE, 410, ERROR("sandbox_stopped")},
		{"DELETE", GONE, 200, "{\"sandbox\":" BOX("stopping") "}"},
		{"DELETE", GONE, 200, "{\"sandbox\":" BOX("running") "}"},
		{"DELETE", GONE, 422, ERROR("sandbox_stopping")},
		{"DELETE", GONE, 422, ERROR("sandbox_snapshotting")}, {0}});
	for (int i = 0; i < 7; i++) {
		assert_int_equal(b->ops->destroy(&b->call, i % 2 ? MARK : ID, &s), OK);
		assert_int_equal(s, i < 3 ? BOX_STOPPED : BOX_STOPPING);
	}
	play((const struct answer[]){{"DELETE", GONE, 200, "{}"},
		{"DELETE", GONE, 200, "{\"sandbox\":" BOX_OF("cc-other", "stopped") "}"},
		{"DELETE", GONE, 200, "OK", "text/plain"},
		{"DELETE", GONE, 404, "<html>", "text/html"},
		{"DELETE", GONE, 404, ERROR("project_not_found")},
		{"DELETE", GONE, 422, ERROR("another")}, {"DELETE", GONE, 0}, {"DELETE", GONE, -1},
		{"DELETE", GONE, 403, FORBIDDEN}, {"DELETE", GONE, 502, ""}, {0}});
	while (script[played].method)
		assert_int_not_equal(b->ops->destroy(&b->call, ID, &s), OK);
	assert_int_equal(played, 10);
}

static void ids_of_another_form_never_reach_a_path(void **state)
{
	struct bench *b = *state;
	static const char *const ids[] = {"", "/", "a/", "/sbx_1", "../x", "a b/sbx", "a/b/c",
		"a/sbx?x", "a%2e/sbx", "a/sbx\n"};
	enum box_state s;
	struct exec_result r;
	static const char *const argv[] = {"true", NULL};
	play((const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		assert_int_equal(b->ops->destroy(&b->call, ids[i], &s), ERR_INTERNAL);
		assert_int_equal(b->ops->put(&b->call, ids[i], "/f", "x", 1), ERR_INTERNAL);
		assert_int_equal(b->ops->exec(&b->call, ids[i], "e", argv, 1, &r), ERR_INTERNAL);
	}
	/* What was found by its mark alone can be ended, and nothing else. */
	assert_int_equal(b->ops->put(&b->call, MARK, "/f", "x", 1), ERR_INTERNAL);
	assert_int_equal(played, 0);
}

/* -- files ------------------------------------------------------------------------------------- */

#define WRITE "/v2/sandboxes/sessions/sbx_1/fs/write?teamId=team_1"

static void a_file_goes_as_a_compressed_archive(void **state)
{
	struct bench *b = *state;
	char text[] = "content\0with everything\xff";
	struct archive_entry *entry;
	char got[64] = {0};
	play((const struct answer[]){{"POST", WRITE, 200, "{}"}, {0}});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/.sbx-1.tar", text, sizeof text), OK);
	assert_string_equal(last.type, "application/gzip");
	assert_string_equal(last.headers[0].name, "x-cwd");
	assert_string_equal(last.headers[0].value, "/");
	struct archive *r = archive_read_new();
	archive_read_support_filter_gzip(r);
	archive_read_support_format_tar(r);
	assert_int_equal(archive_read_open_memory(r, last_body, last_n), ARCHIVE_OK);
	assert_int_equal(archive_read_next_header(r, &entry), ARCHIVE_OK);
	assert_string_equal(archive_entry_pathname(entry), "tmp/.sbx-1.tar");
	assert_int_equal(archive_entry_perm(entry), 0600);
	assert_int_equal(archive_read_data(r, got, sizeof got), sizeof text);
	assert_memory_equal(got, text, sizeof text);
	assert_int_equal(archive_read_next_header(r, &entry), ARCHIVE_EOF);
	archive_read_free(r);
}

static void a_file_that_did_not_surely_arrive_is_no_success(void **state)
{
	struct bench *b = *state;
	const struct {
		struct answer a;
		enum err err;
	} cases[] = {
		{{"POST", WRITE, 0}, ERR_UPSTREAM_UNSURE},
		{{"POST", WRITE, -1}, ERR_UPSTREAM},
		{{"POST", WRITE, 200, "<html>", "text/html"}, ERR_UPSTREAM},
		{{"POST", WRITE, 400, ERROR("bad_request")}, ERR_UPSTREAM},
		{{"POST", WRITE, 404, ERROR("not_found")}, ERR_BOX_GONE},
		{{"POST", WRITE, 404, "<html>", "text/html"}, ERR_UPSTREAM},
		{{"POST", WRITE, 410, ERROR("sandbox_stopped")}, ERR_BOX_GONE},
		{{"POST", WRITE, 410, ""}, ERR_UPSTREAM},
		{{"POST", WRITE, 422, ERROR("sandbox_stopping")}, ERR_BOX_GONE},
		{{"POST", WRITE, 429, ERROR("rate_limited")}, ERR_UPSTREAM_LIMIT},
		{{"POST", WRITE, 500, ""}, ERR_UPSTREAM},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		play((const struct answer[]){cases[i].a, {0}});
		assert_int_equal(b->ops->put(&b->call, ID, "/f", "x", 1), cases[i].err);
	}
}

/* -- commands ---------------------------------------------------------------------------------- */

#define RUN         "/v2/sandboxes/sessions/sbx_1/cmd?teamId=team_1"
#define BEGUN       "{\"command\":{\"id\":\"cmd_1\",\"name\":\"sh\",\"exitCode\":null}}\n"
#define CODE(id, c) "{\"command\":{\"id\":\"" id "\",\"exitCode\":" c ",\"durationMs\":4}}\n"
#define OUT(s, d)   "{\"stream\":\"" s "\",\"data\":\"" d "\"}\n"
#define CLOSED                                                                                     \
	"{\"stream\":\"error\",\"data\":{\"code\":\"sandbox_stream_closed\",\"message\":\"x\"}}\n"
#define WHOLE                                                                                      \
	BEGUN OUT("stdout", "he\\u00e4") OUT("stderr", "bad\\n") OUT("stdout", "llo\xc3\xa4\\n")   \
		CODE("cmd_1", "3")

static const char *const argv[] = {"sh", "-c", "echo \"hi\"", "sbx", "x", NULL};

static enum err execute(struct bench *b, struct answer a, struct exec_result *r)
{
	a.method = "POST";
	a.path = RUN;
	play((const struct answer[]){a, {0}});
	return b->ops->exec(&b->call, ID, "exec-1", argv, 20, r);
}

static void a_command_comes_back_whole_however_it_is_cut(void **state)
{
	struct bench *b = *state;
	for (piece = 1; piece < sizeof WHOLE; piece++) {
		struct exec_result r;
		assert_int_equal(
			execute(b, (struct answer){.status = 200, .body = WHOLE, .type = ND}, &r),
			OK);
		assert_int_equal(r.code, 3);
		assert_int_equal(r.out_n, strlen("he\xc3\xa4llo\xc3\xa4\n"));
		assert_string_equal(r.out, "he\xc3\xa4llo\xc3\xa4\n");
		assert_string_equal(r.err, "bad\n");
	}
	assert_string_equal(last_body,
		"{\"command\":\"sh\",\"args\":[\"-c\",\"echo \\\"hi\\\"\",\"sbx\",\"x\"],"
		"\"env\":{},\"wait\":true,\"logs\":true,\"timeout\":20000}");
	assert_true(last.total_ms > 20000 && last.first_ms == last.total_ms);
}

static void a_command_that_broke_off_anywhere_has_no_result(void **state)
{
	struct bench *b = *state;
	for (size_t n = 0; n < sizeof WHOLE - 2; n++) {
		struct exec_result r = {.code = 99};
		char *part = arena_copy(b->arena, WHOLE, n);
		/* A cut connection, and one that ended as if all was well (a public report). */
		assert_int_equal(execute(b, (struct answer){.status = -2, .body = part}, &r),
			ERR_UPSTREAM_UNSURE);
		assert_int_equal(
			execute(b, (struct answer){.status = 200, .body = part, .type = ND}, &r),
			ERR_UPSTREAM_UNSURE);
		assert_int_equal(r.code, 99);
	}
}

struct ending {
	struct answer a;
	enum err err;
};
static const struct ending endings[] = {
	/* The code was told before the connection broke: a client that threw it away was wrong. */
	{{.status = -2, .body = WHOLE}, OK},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "0"), .type = ND}, OK},
	{{.status = 200, .body = BEGUN "\n" CODE("cmd_1", "0") "rubbish\n", .type = ND}, OK},
	/* The first object's code is not the end: output follows. */
	{{.status = 200, .body = CODE("cmd_1", "0"), .type = ND}, ERR_UPSTREAM_UNSURE},
	{{.status = 200, .body = "", .type = ND}, ERR_UPSTREAM_UNSURE},
	{{.status = 200, .body = BEGUN CLOSED, .type = ND}, ERR_UPSTREAM_UNSURE},
	{{.status = 200, .body = CLOSED, .type = ND}, ERR_UPSTREAM_UNSURE},
	{{.status = 200, .body = BEGUN CLOSED CODE("cmd_1", "0"), .type = ND}, ERR_UPSTREAM_UNSURE},
	{{.status = 0, .body = ""}, ERR_UPSTREAM_UNSURE},
	{{.status = -1}, ERR_UPSTREAM},
	/* Another command's code, or none that a command can have. */
	{{.status = 200, .body = BEGUN CODE("cmd_2", "0"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "256"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "-1"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "null"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "\"0\""), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN CODE("cmd_1", "0.5"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = "{\"command\":{}}\n", .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = OUT("stdout", "x") BEGUN, .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN OUT("stdin", "x"), .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN "{\"stream\":\"stdout\",\"data\":7}\n", .type = ND},
		ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN "{}\n", .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN "[1]\n", .type = ND}, ERR_UPSTREAM},
	{{.status = 200, .body = BEGUN "{\"stream\":\n", .type = ND}, ERR_UPSTREAM},
	/* The error body of a call is not the output of a command (a public report). */
	{{.status = 200, .body = WHOLE, .type = "text/html"}, ERR_UPSTREAM},
	{{.status = 200, .body = WHOLE}, ERR_UPSTREAM},
	{{.status = 204, .body = ""}, ERR_UPSTREAM},
	{{.status = 404, .body = ERROR("not_found")}, ERR_BOX_GONE},
	{{.status = 404, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM},
	{{.status = 410, .body = ERROR("sandbox_stopped")}, ERR_BOX_GONE},
	{{.status = 422, .body = ERROR("sandbox_stopping")}, ERR_BOX_GONE},
	{{.status = 422, .body = ERROR("sandbox_snapshotting")}, ERR_BOX_GONE},
	{{.status = 422, .body = ERROR("another")}, ERR_UPSTREAM},
	{{.status = 400, .body = ERROR("bad_request")}, ERR_UPSTREAM},
	{{.status = 401, .body = ERROR("unauthorized")}, ERR_KEY_REFUSED},
	{{.status = 402, .body = ERROR("payment_required")}, ERR_KEY_REFUSED},
	{{.status = 403, .body = FORBIDDEN}, ERR_KEY_REFUSED},
	{{.status = 429, .body = ERROR("rate_limited")}, ERR_UPSTREAM_LIMIT},
	{{.status = 500, .body = ERROR("internal_server_error")}, ERR_UPSTREAM},
	{{.status = 502, .body = "<html>", .type = "text/html"}, ERR_UPSTREAM},
	{{.status = 302, .body = ""}, ERR_UPSTREAM},
	/* A good stream under a bad status is no result. */
	{{.status = 500, .body = WHOLE, .type = ND}, ERR_UPSTREAM},
};

static void only_a_whole_stream_is_an_exit_code(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		struct exec_result r = {.code = 99};
		enum err e = execute(b, endings[i].a, &r);
		if (e != endings[i].err || (e && r.code != 99) || played != 1)
			fail_msg("case %zu: error %d after %zu calls, code %d", i, e, played,
				r.code);
	}
}

static void a_line_or_an_output_without_end_is_given_up(void **state)
{
	static char part[1 << 16];
	struct vercel_stream s;
	(void)state;
	memset(part, 'a', sizeof part);
	vercel_stream_init(&s);
	for (int i = 0; i < 20; i++)
		vercel_stream_feed(&s, part, sizeof part);
	assert_int_equal(s.end, VERCEL_BAD);
	vercel_stream_done(&s);

	static const char front[] = "{\"stream\":\"stdout\",\"data\":\"", back[] = "\"}\n";
	vercel_stream_init(&s);
	vercel_stream_feed(&s, BEGUN, strlen(BEGUN));
	for (int i = 0; i < 40 && s.end == VERCEL_OPEN; i++) {
		vercel_stream_feed(&s, front, sizeof front - 1);
		vercel_stream_feed(&s, part, sizeof part);
		vercel_stream_feed(&s, back, sizeof back - 1);
	}
	assert_int_equal(s.end, VERCEL_BAD);
	vercel_stream_feed(&s, CODE("cmd_1", "0"), strlen(CODE("cmd_1", "0")));
	assert_int_equal(s.end, VERCEL_BAD);
	vercel_stream_done(&s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_good_key_costs_one_call),
		T(a_team_may_be_given_by_its_name),
		T(every_refused_key_has_its_own_words),
		T(the_waiting_time_of_a_limit_is_told),
		T(a_sandbox_is_made_and_keeps_nothing),
		T(what_is_chosen_is_asked_for),
		T(what_can_not_be_given_is_refused_by_name_before_the_network),
		T(a_create_is_certain_or_says_that_it_is_not),
		T(a_refused_wish_is_told_from_a_fault),
		T(what_is_given_otherwise_than_asked_is_told),
		T(find_tells_there_from_not_there_from_unknown),
		T(a_list_has_all_pages_and_only_what_lives_of_ours),
		T(a_list_of_another_form_is_none),
		T(a_list_without_end_is_given_up),
		T(an_end_is_proven_or_asked_for_again),
		T(ids_of_another_form_never_reach_a_path),
		T(a_file_goes_as_a_compressed_archive),
		T(a_file_that_did_not_surely_arrive_is_no_success),
		T(a_command_comes_back_whole_however_it_is_cut),
		T(a_command_that_broke_off_anywhere_has_no_result),
		T(only_a_whole_stream_is_an_exit_code),
		T(a_line_or_an_output_without_end_is_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
