/*
 * The client of E2B against a scripted network: what it asks whom, and what it makes of any answer.
 */
#include "arena.h"
#include "bounds.h"
#include "e2b_reply.h"
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

#define API     "https://api.e2b.app"
#define SHARED  "https://sandbox.e2b.app"
#define INSTALL "cc-abcdef"
#define MARK    INSTALL "-abcdefghijklmnopqrstuvwxyz"
#define ID      "i0123456789abcdefghij"
#define BOX_OF(domain)                                                                             \
	"{\"templateID\":\"base\",\"sandboxID\":\"" ID "\",\"clientID\":\"x\","                    \
	"\"envdVersion\":\"0.6.13\",\"envdAccessToken\":\"tok\",\"domain\":" domain "}"
#define BOX         BOX_OF("null")
#define ROW(id, mk) "{\"sandboxID\":\"" id "\",\"metadata\":{\"mark\":\"" mk "\"}}"
#define NOT_FOUND   "{\"code\":404,\"message\":\"Sandbox doesn't exist\"}"
#define HTML        "<html>secret words</html>"
#define LISTED(key, value)                                                                         \
	API "/v2/sandboxes?metadata=" key "%3D" value "&state=running%2Cpaused&limit=100"
#define FIND API "/v2/sandboxes?metadata=mark%3D" MARK "&state=running%2Cpaused&limit=100"

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method, *url;
	int status; /* 0: HTTP_UNSURE; -1: HTTP_NOT_SENT */
	const char *body;
	size_t body_n;    /* 0: a string */
	const char *type; /* NULL: application/json */
	const char *next; /* X-Next-Token */
	int retry_after_s;
};

static const struct answer *script;
static size_t played;
static char last_body[65536];
static char last_secret[64], last_id[64], last_type[96];
static enum http_pool last_pool;
static size_t piece; /* most bytes of a stream at once */

enum err http_url_check(const char *url, const char *field)
{
	return strncmp(url, "https://", 8) == 0
		       ? OK
		       : (fail)(ERR_FORBIDDEN_ADDRESS, field, "must be https");
}

static void deliver(const struct http_call *c, const char *body, size_t n)
{
	for (size_t at = 0; at < n; at += piece)
		if (!c->on_data(c->ctx, body + at, n - at < piece ? n - at : piece))
			return;
}

static void note_request(const struct http_call *c)
{
	/* At a deadline the daemon would kill the command. */
	for (const struct http_header *h = c->headers; h && h->name; h++)
		assert_int_not_equal(strcmp(h->name, "Connect-Timeout-Ms"), 0);
	last_secret[0] = last_id[0] = last_type[0] = '\0';
	if (c->secrets && c->secrets->name)
		(void)snprintf(last_secret, sizeof last_secret, "%s: %.*s", c->secrets->name,
			(int)c->secrets->value->n, (const char *)c->secrets->value->p);
	for (const struct http_header *h = c->headers; h && h->name; h++)
		if (strcmp(h->name, "E2b-Sandbox-Id") == 0)
			(void)snprintf(last_id, sizeof last_id, "%s", h->value);
	(void)snprintf(last_type, sizeof last_type, "%s", c->type ? c->type : "");
	size_t n = c->body_n < sizeof last_body - 1 ? c->body_n : sizeof last_body - 1;
	if (n)
		memcpy(last_body, c->body, n);
	last_body[n] = '\0';
	last_pool = c->pool;
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played++];
	assert_non_null(q->method);
	assert_string_equal(c->method, q->method);
	assert_string_equal(c->url, q->url);
	assert_true(c->total_ms > 0);
	assert_null(c->bearer);
	note_request(c);
	bool replied = q->status > 0;
	const char *body = q->body ? q->body : "";
	size_t n = q->body_n ? q->body_n : strlen(body);
	*ret = (struct http_reply){.fate = replied          ? HTTP_REPLIED
					   : q->status == 0 ? HTTP_UNSURE
							    : HTTP_NOT_SENT,
		.status = replied ? q->status : 0,
		.body = replied && !c->on_data ? arena_copy(a, body, n) : "",
		.type = q->type ? q->type : "application/json",
		.kept = c->keep_header && q->next ? arena_str(a, q->next) : NULL,
		.retry_after_s = q->retry_after_s};
	ret->body_n = replied && !c->on_data ? n : 0;
	if (c->on_data)
		deliver(c, body, n);
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
	b.credential.token = secret_new("e2b_key", 7);
	b.call = (struct call){
		.provider = provider_find("e2b"), .credential = &b.credential, .arena = b.arena};
	played = 0;
	piece = 7;
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

static void expect_played(size_t n)
{
	assert_int_equal(played, n);
}

/* The error's field and words; nothing from outside is in them. */
static void expect_fault(enum err e, enum err want, const char *field, const char *words)
{
	assert_int_equal(e, want);
	assert_string_equal(fault_of(e)->field, field);
	assert_non_null(strstr(fault_of(e)->detail, words));
	assert_null(strstr(fault_of(e)->detail, "secret words"));
}

static const struct provider_ops *ops(void)
{
	return provider_find("e2b")->ops;
}

/* -- frames ------------------------------------------------------------------------------------ */

#define FRAMES_MAX 8192
struct frames {
	char p[FRAMES_MAX];
	size_t n;
};

static void add(struct frames *f, unsigned char flags, const char *json)
{
	size_t n = strlen(json);
	assert_true(f->n + 5 + n <= sizeof f->p);
	unsigned char head[5] = {flags, (unsigned char)(n >> 24), (unsigned char)(n >> 16),
		(unsigned char)(n >> 8), (unsigned char)n};
	memcpy(f->p + f->n, head, 5);
	memcpy(f->p + f->n + 5, json, n);
	f->n += 5 + n;
}

#define START    "{\"event\":{\"start\":{\"pid\":7}}}"
#define OUT      "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}" /* hi */
#define ERR_OUT  "{\"event\":{\"data\":{\"stderr\":\"AAE=\"}}}" /* 00 01 */
#define ALIVE    "{\"event\":{\"keepalive\":{}}}"
#define END_ZERO "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}"
#define END_3                                                                                      \
	"{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\","        \
	"\"error\":\"exit status 3\"}}}"
#define END_KILLED                                                                                 \
	"{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\","                      \
	"\"error\":\"signal: killed\"}}}"

static struct frames whole(const char *end_event)
{
	struct frames f = {.n = 0};
	add(&f, 0, START);
	add(&f, 0, OUT);
	add(&f, 0, ALIVE);
	add(&f, 0, ERR_OUT);
	add(&f, 0, end_event);
	add(&f, 2, "{}");
	return f;
}

static void expect_whole(const struct e2b_stream *s, int code)
{
	assert_int_equal(s->end, E2B_EXIT);
	assert_int_equal(s->code, code);
	assert_int_equal(s->out.n, 3);
	assert_memory_equal(s->out.p, "hi\n", 3);
	assert_int_equal(s->err.n, 2);
	assert_memory_equal(s->err.p, "\0\1", 2);
}

static void frames_may_be_split_at_every_byte(void **state)
{
	(void)state;
	struct frames f = whole(END_3);
	for (size_t cut = 0; cut <= f.n; cut++) {
		struct e2b_stream s;
		e2b_stream_init(&s);
		assert_true(e2b_stream_feed(&s, f.p, cut));
		assert_true(e2b_stream_feed(&s, f.p + cut, f.n - cut));
		expect_whole(&s, 3);
		e2b_stream_done(&s);
	}
	struct e2b_stream s;
	e2b_stream_init(&s);
	for (size_t i = 0; i < f.n; i++)
		assert_true(e2b_stream_feed(&s, f.p + i, 1));
	expect_whole(&s, 3);
	e2b_stream_done(&s);
}

static void a_stream_that_ends_anywhere_else_stays_open(void **state)
{
	(void)state;
	struct frames f = whole(END_ZERO);
	for (size_t n = 0; n < f.n; n++) {
		struct e2b_stream s;
		e2b_stream_init(&s);
		assert_true(e2b_stream_feed(&s, f.p, n));
		assert_int_equal(s.end, E2B_OPEN);
		e2b_stream_done(&s);
	}
}

static void a_code_of_zero_may_be_left_out(void **state)
{
	(void)state;
	static const char *const ends[] = {END_ZERO, "{\"event\":{\"end\":{\"exited\":true}}}",
		"{\"event\":{\"end\":{}}}",
		"{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true}}}"};
	for (int i = 0; i < 4; i++) {
		struct e2b_stream s;
		struct frames f = whole(ends[i]);
		e2b_stream_init(&s);
		assert_true(e2b_stream_feed(&s, f.p, f.n));
		expect_whole(&s, 0);
		e2b_stream_done(&s);
	}
}

/* How one stream of up to four frames ends; a flag of -1 is no frame. */
struct ending {
	struct {
		int flags;
		const char *json;
	} frames[4];
	enum e2b_end end;
};

#define NO_FRAME                                                                                   \
	{                                                                                          \
		-1, NULL                                                                           \
	}
#define ERROR(c) "{\"error\":{\"code\":\"" c "\",\"message\":\"secret words\"}}"

static const struct ending endings[] = {
	{{{0, START}, {0, END_KILLED}, {2, "{}"}, NO_FRAME}, E2B_KILLED},
	{{{0, START}, {0, "{\"event\":{\"end\":{\"exited\":false,\"status\":\"exit status 1\"}}}"},
		 {2, "{}"}, NO_FRAME},
		E2B_KILLED},
	/* never begun, for certain */
	{{{2, ERROR("invalid_argument")}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_REFUSED},
	{{{2, ERROR("unauthenticated")}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_REFUSED},
	{{{2, ERROR("not_found")}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_REFUSED},
	/* nobody knows */
	{{{2, ERROR("unavailable")}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{2, ERROR("internal")}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{2, "{\"error\":\"text\"}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{0, START}, {2, ERROR("invalid_argument")}, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{0, START}, {2, ERROR("deadline_exceeded")}, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{0, START}, {0, END_ZERO}, {2, ERROR("unavailable")}, NO_FRAME}, E2B_FAILED},
	{{{0, START}, {2, "{}"}, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{2, "{}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_FAILED},
	{{{0, START}, {0, END_ZERO}, NO_FRAME, NO_FRAME}, E2B_OPEN},
	/* not of the form */
	{{{1, START}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{3, "{}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{'{', START}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "{\"event\""}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, ""}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "[]"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "{}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{2, "[]"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "{\"event\":{\"data\":{\"stdout\":\"a\"}}}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "{\"event\":{\"data\":{\"stdout\":7}}}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, "{\"event\":{\"end\":{\"exitCode\":\"0\"}}}"}, NO_FRAME, NO_FRAME, NO_FRAME},
		E2B_BAD},
	{{{0, "{\"event\":{\"end\":{\"exitCode\":256}}}"}, NO_FRAME, NO_FRAME, NO_FRAME}, E2B_BAD},
	{{{0, START}, {0, END_ZERO}, {0, OUT}, NO_FRAME}, E2B_BAD},
	{{{0, START}, {0, END_ZERO}, {0, END_3}, NO_FRAME}, E2B_BAD},
	{{{0, START}, {0, END_ZERO}, {2, "{}"}, {2, "{}"}}, E2B_BAD},
};

static void only_an_end_and_a_last_frame_make_a_code(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
		struct frames f = {.n = 0};
		for (int k = 0; k < 4 && endings[i].frames[k].flags >= 0; k++)
			add(&f, (unsigned char)endings[i].frames[k].flags,
				endings[i].frames[k].json);
		for (size_t step = 1; step <= f.n; step += 3) {
			struct e2b_stream s;
			e2b_stream_init(&s);
			bool good = true;
			for (size_t at = 0; good && at < f.n; at += step)
				good = e2b_stream_feed(
					&s, f.p + at, f.n - at < step ? f.n - at : step);
			assert_int_equal(s.end, endings[i].end);
			assert_int_equal(good, endings[i].end != E2B_BAD);
			e2b_stream_done(&s);
		}
	}
}

static void a_frame_that_says_it_is_huge_is_refused_by_its_head(void **state)
{
	(void)state;
	static const char *const heads[] = {"\0\377\377\377\377", "\0\0\020\0\0"};
	for (int i = 0; i < 2; i++) {
		struct e2b_stream s;
		e2b_stream_init(&s);
		assert_false(e2b_stream_feed(&s, heads[i], 5));
		assert_int_equal(s.end, E2B_BAD);
		assert_false(e2b_stream_feed(&s, "x", 1));
		e2b_stream_done(&s);
	}
}

static void more_output_than_a_short_command_has_is_refused(void **state)
{
	(void)state;
	static char json[400000];
	struct e2b_stream s;
	size_t n = (size_t)snprintf(json, sizeof json, "{\"event\":{\"data\":{\"stdout\":\"");
	memset(json + n, 'A', 349528);
	memcpy(json + n + 349528, "\"}}}", 5);
	n = strlen(json);
	unsigned char head[5] = {
		0, 0, (unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
	e2b_stream_init(&s);
	bool good = true;
	int frames = 0;
	for (; good && frames < 100; frames++) {
		assert_true(e2b_stream_feed(&s, (const char *)head, 5));
		good = e2b_stream_feed(&s, json, n);
	}
	assert_in_range(frames, 8, 9); /* 2 MiB in pieces of 256 KiB */
	assert_int_equal(s.end, E2B_BAD);
	e2b_stream_done(&s);
}

/* -- ids and addresses ------------------------------------------------------------------------- */

static void ids_of_another_form_never_reach_a_path(void **state)
{
	struct bench *b = *state;
	static const char *const good[] = {"a", ID, "i-1_x", "0123456789"};
	static const char *const wrong[] = {"", "../x", "a/b", "a b", "a%2f", "-a", "_a", "a.b",
		"a?b", "i\n", "\303\244", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"};
	enum box_state how;
	struct exec_result r;
	static const char *const argv[] = {"sh", NULL};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(e2b_id_ok(good[i]));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_false(e2b_id_ok(wrong[i]));
		assert_int_equal(ops()->destroy(&b->call, wrong[i], &how), ERR_INTERNAL);
		assert_int_equal(ops()->put(&b->call, wrong[i], "/f", "", 0), ERR_INTERNAL);
		assert_int_equal(ops()->exec(&b->call, wrong[i], "e", argv, 1, &r), ERR_INTERNAL);
	}
	expect_played(0);
}

static void a_daemon_is_where_its_api_is(void **state)
{
	struct bench *b = *state;
	/* API, domain that it named, where the daemon is; NULL: nowhere */
	static const char *const cases[][3] = {
		{API, NULL, SHARED},
		{API, "e2b.app", SHARED},
		{API, "eu.e2b.app", "https://49983-i1.eu.e2b.app"},
		{"https://api.e2b.dev", NULL, "https://sandbox.e2b.dev"},
		{"https://api.my.corp", NULL, "https://49983-i1.my.corp"},
		{"https://api.my.corp:8443/v", NULL, "https://49983-i1.my.corp:8443"},
		{"https://api.my.corp", "boxes.my.corp", "https://49983-i1.boxes.my.corp"},
		{"https://e2b.my.corp", NULL, "https://e2b.my.corp"},
		{"https://e2b.my.corp", "my.corp", "https://49983-i1.my.corp"},
		{"https://e2b.my.corp/x", NULL, "https://e2b.my.corp/x"},
		{"https://127.0.0.1:9000", NULL, "https://127.0.0.1:9000"},
		{"https://[::1]:9000", NULL, "https://[::1]:9000"},
		{"https://api.localhost", NULL, "https://api.localhost"},
		{"unix:/run/e2b.sock", NULL, "unix:/run/e2b.sock"},
		{API, "evil.example", NULL},
		{API, "xe2b.app", NULL},
		{API, "app", NULL},
		{API, "e2b.app.evil.example", NULL},
		{API, "e2b.app/x", NULL},
		{API, "evil.example#.e2b.app", NULL},
		{API, "evil.example/.e2b.app", NULL},
		{API, "u@e2b.app", NULL},
		{API, ".e2b.app", NULL},
		{API, "a..e2b.app", NULL},
		{"https://127.0.0.1:9000", "evil.example", NULL},
		{"https://127.0.0.1:9000", "0.0.1", NULL},
		{"https://[::1]:9000", "evil.example", NULL},
		{"https://e2b.app", "evil.app", NULL},
		{"unix:/run/e2b.sock", "e2b.app", NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *at = e2b_daemon_at(b->arena, cases[i][0], "i1", cases[i][1]);
		if (cases[i][2])
			assert_string_equal(at, cases[i][2]);
		else
			assert_null(at);
	}
}

static void queries_are_escaped(void **state)
{
	struct bench *b = *state;
	assert_string_equal(
		e2b_escape(b->arena, "/tmp/a b&c=d\xc3\xa4"), "%2Ftmp%2Fa%20b%26c%3Dd%C3%A4");
}

/* -- create ------------------------------------------------------------------------------------ */

static const struct box_spec spec = {.mark = MARK, .life_s = 360};

static void a_sandbox_is_made_with_mark_and_end(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"POST", API "/v2/sandboxes", 201, BOX}, {0}});
	assert_int_equal(ops()->create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, ID);
	assert_string_equal(box.mark, MARK);
	assert_string_equal(last_secret, "X-API-KEY: e2b_key");
	assert_string_equal(last_body,
		"{\"templateID\":\"base\",\"timeout\":360,\"autoPause\":false,\"metadata\":"
		"{\"mark\":\"" MARK "\",\"install\":\"" INSTALL "\"}}");
	assert_int_equal(last_pool, HTTP_FIXED);
	assert_string_equal(b->call.memo.base, SHARED);
	assert_int_equal(b->call.round_trips, 1);
}

static void the_template_is_passed_on_and_sizes_are_refused_by_name(void **state)
{
	struct bench *b = *state;
	struct box box;
	struct box_spec with = spec;
	with.template = "big:\"1\"";
	with.network = NETWORK_NONE;
	play((const struct answer[]){{"POST", API "/v2/sandboxes", 201, BOX}, {0}});
	assert_int_equal(ops()->create(&b->call, &with, &box), OK);
	assert_non_null(strstr(last_body, "\"templateID\":\"big:\\\"1\\\"\""));
	assert_non_null(strstr(last_body, "\"allow_internet_access\":false"));
	const struct box_spec wrong[] = {{.mark = MARK, .runtime = "python"},
		{.mark = MARK, .memory_mb = 1024}, {.mark = MARK, .cpu = 4},
		{.mark = MARK, .network = NETWORK_HOST},
		{.mark = MARK, .gpu = "T4", .gpu_count = 1}};
	static const char *const fields[] = {"runtime", "memory_mb", "cpu", "network", "gpu"};
	play((const struct answer[]){{0}});
	for (int i = 0; i < 5; i++)
		expect_fault(ops()->create(&b->call, &wrong[i], &box), ERR_UNSUPPORTED, fields[i],
			"E2B");
	expect_played(0);
}

static void an_older_server_is_asked_at_the_older_route(void **state)
{
	struct bench *b = *state;
	struct box box;
	static const int missing[] = {404, 405};
	for (int i = 0; i < 2; i++) {
		play((const struct answer[]){{"POST", API "/v2/sandboxes", missing[i], HTML},
			{"POST", API "/sandboxes", 201, BOX}, {0}});
		assert_int_equal(ops()->create(&b->call, &spec, &box), OK);
		assert_non_null(strstr(last_body, "\"secure\":true"));
		expect_played(2);
	}
}

struct refused {
	struct answer answer;
	enum err err;
	const char *field, *words;
};

static void every_refusal_of_a_create_is_told_apart(void **state)
{
	struct bench *b = *state;
	struct box box;
#define AT "POST", API "/v2/sandboxes"
	static const struct refused cases[] = {
		{{AT, 401, "{\"code\":401,\"message\":\"Invalid API key\"}"}, ERR_KEY_REFUSED,
			"token", "does not know the key"},
		{{AT, 403, "{\"code\":403,\"message\":\"secret words\"}"}, ERR_KEY_REFUSED, "token",
			"has blocked the team"},
		{{AT, 400, "{\"code\":400,\"message\":\"Timeout cannot be greater than 1 hours\"}"},
			ERR_BAD_INPUT, "timeout_s", "at most 3480 s: "},
		{{AT, 400,
			 "{\"code\":400,\"message\":\"Timeout cannot be greater than 0.25 "
			 "hours\"}"},
			ERR_BAD_INPUT, "timeout_s", "at most 780 s: "},
		{{AT, 400,
			 "{\"code\":400,\"message\":\"Timeout cannot be greater than "
			 "9999999999999999 "
			 "hours\"}"},
			ERR_BAD_INPUT, "timeout_s", "plan of this key"},
		{{AT, 400, "{\"code\":400,\"message\":\"Timeout cannot be greater than ever\"}"},
			ERR_BAD_INPUT, "timeout_s", "plan of this key"},
		{{AT, 400, "{\"code\":400,\"message\":\"secret words\"}"}, ERR_UPSTREAM, "",
			"status 400"},
		{{AT, 429,
			 "{\"code\":429,\"message\":\"you have reached the maximum number of "
			 "concurrent E2B sandboxes (20)\"}"},
			ERR_UPSTREAM_LIMIT, "", "as many sandboxes"},
		{{AT, 429, "{\"code\":429,\"message\":\"Rate limit exceeded\"}",
			 .retry_after_s = 3},
			ERR_UPSTREAM_LIMIT, "", "rate"},
		{{AT, 500, "{\"code\":500,\"message\":\"Failed to place sandbox\"}"},
			ERR_UPSTREAM_UNSURE, "", "status 500"},
		{{AT, 502, HTML, .type = "text/html"}, ERR_UPSTREAM_UNSURE, "", "status 502"},
		{{AT, 504, "upstream request timeout", .type = "text/plain"}, ERR_UPSTREAM_UNSURE,
			"", "status 504"},
		{{AT, 409, "{}"}, ERR_UPSTREAM_UNSURE, "", "status 409"},
		{{AT, 0}, ERR_UPSTREAM_UNSURE, "", "broke off"},
		{{AT, -1}, ERR_UPSTREAM, "", "no connection"},
		{{AT, 201, HTML, .type = "text/html"}, ERR_UPSTREAM_UNSURE, "", "new sandbox"},
		{{AT, 201, ""}, ERR_UPSTREAM_UNSURE, "", "new sandbox"},
		{{AT, 201, "{\"sandboxID\":7}"}, ERR_UPSTREAM_UNSURE, "", "new sandbox"},
		{{AT, 201, "{\"sandboxID\":\"../x\"}"}, ERR_UPSTREAM_UNSURE, "", "new sandbox"},
		{{AT, 201, "{\"sandboxID\":\"" ID "\",\"envdAccessToken\":7}"}, ERR_UPSTREAM_UNSURE,
			"", "wrong form"},
		{{AT, 201, "{\"sandboxID\":\"" ID "\",\"domain\":7}"}, ERR_UPSTREAM_UNSURE, "",
			"wrong form"},
		{{AT, 201, BOX_OF("\"evil.example\"")}, ERR_UPSTREAM_UNSURE, "",
			"not below its own domain"},
	};
#undef AT
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct answer answers[] = {cases[i].answer, {0}};
		play(answers);
		enum err e = ops()->create(&b->call, &spec, &box);
		expect_fault(e, cases[i].err, cases[i].field, cases[i].words);
		assert_int_equal(fault_of(e)->retry_after_s, cases[i].answer.retry_after_s);
		expect_played(1);
		assert_string_equal(b->call.memo.box, "");
	}
}

static void a_template_that_is_unknown_is_told_when_both_routes_say_so(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"POST", API "/v2/sandboxes", 404, NOT_FOUND},
		{"POST", API "/sandboxes", 404, NOT_FOUND}, {0}});
	expect_fault(ops()->create(&b->call, &spec, &box), ERR_BAD_INPUT, "template",
		"no such template");
}

/* -- commands ---------------------------------------------------------------------------------- */

#define EXEC   SHARED "/process.Process/Start"
#define STREAM .type = "application/connect+json"
static const char *const argv_of[] = {"sh", "-c", "exit 3", "sbx", "it's", NULL};

static void made(struct bench *b)
{
	struct box box;
	play((const struct answer[]){{"POST", API "/v2/sandboxes", 201, BOX}, {0}});
	assert_int_equal(ops()->create(&b->call, &spec, &box), OK);
}

static enum err run(struct bench *b, struct exec_result *ret)
{
	return ops()->exec(&b->call, ID, "exec-1", argv_of, 5, ret);
}

static void a_command_is_one_call_to_the_daemon(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	struct frames f = whole(END_3);
	made(b);
	for (piece = 1; piece < 40; piece += 13) {
		const struct answer answers[] = {
			{"POST", EXEC, 200, f.p, .body_n = f.n, STREAM}, {0}};
		play(answers);
		assert_int_equal(run(b, &r), OK);
		expect_played(1);
		assert_int_equal(r.code, 3);
		assert_int_equal(r.out_n, 3);
		assert_string_equal(r.out, "hi\n");
		assert_int_equal(r.err_n, 2);
	}
	assert_string_equal(last_secret, "X-Access-Token: tok");
	assert_string_equal(last_id, ID);
	assert_string_equal(last_type, "application/connect+json");
	assert_memory_equal(last_body, "\0\0\0\0", 4);
	const char *json = last_body + 5;
	assert_int_equal((unsigned char)last_body[4], strlen(json));
	assert_string_equal(json,
		"{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"exit 3\",\"sbx\",\"it's\"],"
		"\"cwd\":\"/\"},\"stdin\":false}");
}

static void who_did_not_make_the_sandbox_asks_for_its_token(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	struct frames f = whole(END_ZERO);
	const struct answer answers[] = {{"GET", API "/sandboxes/" ID, 200, BOX},
		{"POST", EXEC, 200, f.p, .body_n = f.n, STREAM},
		{"POST", EXEC, 200, f.p, .body_n = f.n, STREAM}, {0}};
	play(answers);
	assert_int_equal(run(b, &r), OK);
	assert_int_equal(run(b, &r), OK);
	expect_played(3);
	assert_int_equal(b->call.round_trips, 3);
}

static void a_sandbox_without_a_token_is_spoken_to_without_one(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	struct frames f = whole(END_ZERO);
	const struct answer answers[] = {
		{"GET", API "/sandboxes/" ID, 200, "{\"sandboxID\":\"" ID "\"}"},
		{"POST", EXEC, 200, f.p, .body_n = f.n, STREAM}, {0}};
	play(answers);
	assert_int_equal(run(b, &r), OK);
	assert_string_equal(last_secret, "");
}

static void gone_is_said_only_on_the_word_of_e2b(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
#define AT "GET", API "/sandboxes/" ID
	static const struct refused cases[] = {
		{{AT, 404, NOT_FOUND}, ERR_BOX_GONE, "", "no such sandbox"},
		{{AT, 404, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "status 404"},
		{{AT, 401, "{}"}, ERR_KEY_REFUSED, "token", "does not know the key"},
		{{AT, 502, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "status 502"},
		{{AT, 200, "{\"sandboxID\":\"other\"}"}, ERR_UPSTREAM, "", "the sandbox"},
		{{AT, 200, "[]"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 200, BOX_OF("\"evil.example\"")}, ERR_UPSTREAM, "", "own domain"},
		{{AT, 0}, ERR_UPSTREAM, "", "broke off"},
	};
#undef AT
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct answer answers[] = {cases[i].answer, {0}};
		play(answers);
		expect_fault(run(b, &r), cases[i].err, cases[i].field, cases[i].words);
		expect_played(1);
	}
}

/* The next call after each of these asks the API whether the sandbox still lives. */
static void trouble_with_a_daemon_is_told_and_its_address_forgotten(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	struct frames good = whole(END_ZERO), killed = whole(END_KILLED), refusal = {.n = 0},
		      lost = {.n = 0};
	add(&refusal, 2, ERROR("invalid_argument"));
	add(&lost, 0, START);
	add(&lost, 2, ERROR("unavailable"));
#define AT "POST", EXEC
	const struct refused cases[] = {
		{{AT, 502,
			 "{\"sandboxId\":\"x\",\"message\":\"The sandbox was not found\",\"code\":"
			 "502}"},
			ERR_BOX_GONE, "", "has ended the sandbox"},
		{{AT, 502,
			 "{\"message\":\"The sandbox is running but port is not "
			 "open\",\"code\":502}"},
			ERR_UPSTREAM, "", "does not reach the daemon"},
		{{AT, 502, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "status 502"},
		{{AT, 502, "The sandbox was not found", .type = "text/plain"}, ERR_UPSTREAM, "",
			"status 502"},
		{{AT, 404, NOT_FOUND}, ERR_UPSTREAM, "", "status 404"},
		{{AT, 401, "{\"code\":\"unauthenticated\"}"}, ERR_UPSTREAM, "", "access token"},
		{{AT, 409, "{}"}, ERR_UPSTREAM, "", "between two states"},
		{{AT, 201, "{}"}, ERR_UPSTREAM, "", "status 201"},
		{{AT, 200, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "a stream"},
		{{AT, 200, good.p, .body_n = good.n - 7, STREAM}, ERR_UPSTREAM_UNSURE, "",
			"broke off"},
		{{AT, 200, "", STREAM}, ERR_UPSTREAM_UNSURE, "", "broke off"},
		{{AT, 200, "{\"a\":1}", STREAM}, ERR_UPSTREAM, "", "wrong form"},
		{{AT, 200, killed.p, .body_n = killed.n, STREAM}, ERR_UPSTREAM, "", "killed"},
		{{AT, 200, refusal.p, .body_n = refusal.n, STREAM}, ERR_UPSTREAM, "",
			"did not take"},
		{{AT, 200, lost.p, .body_n = lost.n, STREAM}, ERR_UPSTREAM_UNSURE, "", "broke off"},
		{{AT, 0}, ERR_UPSTREAM_UNSURE, "", "broke off"},
		{{AT, -1}, ERR_UPSTREAM, "", "no connection"},
	};
#undef AT
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		made(b);
		const struct answer answers[] = {
			cases[i].answer, {"GET", API "/sandboxes/" ID, 404, NOT_FOUND}, {0}};
		play(answers);
		expect_fault(run(b, &r), cases[i].err, cases[i].field, cases[i].words);
		assert_int_equal(run(b, &r), ERR_BOX_GONE);
		expect_played(2);
	}
}

/* The last frame was there: what the connection did afterwards changes nothing. */
static void a_whole_stream_counts_although_the_connection_broke(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	struct frames f = whole(END_3);
	made(b);
	const struct answer answers[] = {{"POST", EXEC, 0, f.p, .body_n = f.n, STREAM}, {0}};
	play(answers);
	assert_int_equal(run(b, &r), OK);
	assert_int_equal(r.code, 3);
}

static void a_limit_of_the_daemon_carries_its_time(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	made(b);
	play((const struct answer[]){
		{"POST", EXEC, 429, "{}", .retry_after_s = 2}, {"POST", EXEC, -1}, {0}});
	enum err e = run(b, &r);
	expect_fault(e, ERR_UPSTREAM_LIMIT, "", "rate");
	assert_int_equal(fault_of(e)->retry_after_s, 2);
	assert_int_equal(run(b, &r), ERR_UPSTREAM); /* nothing was forgotten */
}

/* -- files ------------------------------------------------------------------------------------- */

#define FILES   SHARED "/files?path=%2Ftmp%2F.sbx-x.tar"
#define WRITTEN "[{\"path\":\"/tmp/.sbx-x.tar\",\"name\":\".sbx-x.tar\",\"type\":\"file\"}]"

static enum err put(struct bench *b)
{
	return ops()->put(&b->call, ID, "/tmp/.sbx-x.tar", "con\0tent", 8);
}

static void a_file_is_one_call(void **state)
{
	struct bench *b = *state;
	made(b);
	play((const struct answer[]){{"POST", FILES, 200, WRITTEN}, {0}});
	assert_int_equal(put(b), OK);
	assert_string_equal(last_type, "application/octet-stream");
	assert_memory_equal(last_body, "con\0tent", 9);
	assert_string_equal(last_secret, "X-Access-Token: tok");
}

static void an_older_daemon_gets_the_file_as_a_form(void **state)
{
	struct bench *b = *state;
	static const int refusals[] = {400, 415, 500};
	for (int i = 0; i < 3; i++) {
		made(b);
		play((const struct answer[]){
			{"POST", FILES, refusals[i], "{}"}, {"POST", FILES, 200, WRITTEN}, {0}});
		assert_int_equal(put(b), OK);
		assert_int_equal(strncmp(last_type, "multipart/form-data; boundary=", 30), 0);
		assert_int_equal(strncmp(last_body, "--", 2), 0);
		assert_int_equal(strncmp(last_body + 2, last_type + 30, 32), 0);
	}
}

static void a_file_that_was_not_written_is_an_error(void **state)
{
	struct bench *b = *state;
#define AT "POST", FILES
	static const struct refused cases[] = {
		{{AT, 200, "[]"}, ERR_UPSTREAM, "", "was written"},
		{{AT, 200, "[{\"path\":\"/other\"}]"}, ERR_UPSTREAM, "", "was written"},
		{{AT, 200, "{}"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 200, ""}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 200, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 204, ""}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 507, "{}"}, ERR_UPSTREAM, "", "disk of the sandbox is full"},
		{{AT, 401, "{}"}, ERR_UPSTREAM, "", "access token"},
		{{AT, 502, "{\"message\":\"The sandbox was not found\"}"}, ERR_BOX_GONE, "",
			"has ended"},
		{{AT, 0}, ERR_UPSTREAM_UNSURE, "", "broke off"},
	};
#undef AT
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		made(b);
		const struct answer answers[] = {cases[i].answer, {0}};
		play(answers);
		expect_fault(put(b), cases[i].err, cases[i].field, cases[i].words);
		assert_string_equal(b->call.memo.box, "");
	}
}

/* -- stop, find, list -------------------------------------------------------------------------- */

static void an_end_is_proven_or_asked_for_again(void **state)
{
	struct bench *b = *state;
	struct {
		struct answer answer;
		enum err err;
		enum box_state state;
	} cases[] = {
		{{"DELETE", API "/sandboxes/" ID, 204, ""}, OK, BOX_STOPPED},
		{{"DELETE", API "/sandboxes/" ID, 404, NOT_FOUND}, OK, BOX_STOPPED},
		{{"DELETE", API "/sandboxes/" ID, 200, "{}"}, OK, BOX_STOPPING},
		{{"DELETE", API "/sandboxes/" ID, 409, "{}"}, OK, BOX_STOPPING},
		{{"DELETE", API "/sandboxes/" ID, 404, HTML, .type = "text/html"}, ERR_UPSTREAM, 0},
		{{"DELETE", API "/sandboxes/" ID, 401, "{}"}, ERR_KEY_REFUSED, 0},
		{{"DELETE", API "/sandboxes/" ID, 500, "{}"}, ERR_UPSTREAM, 0},
		{{"DELETE", API "/sandboxes/" ID, 0}, ERR_UPSTREAM_UNSURE, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct answer answers[] = {cases[i].answer, {0}};
		enum box_state how = BOX_RUNNING;
		play(answers);
		assert_int_equal(ops()->destroy(&b->call, ID, &how), cases[i].err);
		assert_int_equal(how, cases[i].err ? BOX_RUNNING : cases[i].state);
	}
}

static void a_sandbox_is_found_by_its_mark_on_any_page(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){{"GET", FIND, 200, "[]"}, {0}});
	assert_int_equal(ops()->find(&b->call, MARK, &box), OK);
	assert_null(box.id);
	play((const struct answer[]){{"GET", FIND, 200, "[]", .next = "a b"},
		{"GET", FIND "&nextToken=a%20b", 200, "[" ROW(ID, MARK) "]"}, {0}});
	assert_int_equal(ops()->find(&b->call, MARK, &box), OK);
	assert_string_equal(box.id, ID);
	expect_played(2);
	assert_string_equal(last_secret, "X-API-KEY: e2b_key");
}

static void a_service_that_ignores_the_filter_makes_nobody_elses_ours(void **state)
{
	struct bench *b = *state;
	struct box box;
	play((const struct answer[]){
		{"GET", FIND, 200,
			"[{\"sandboxID\":\"i1\"},{\"sandboxID\":\"i2\",\"metadata\":null},"
			"{\"sandboxID\":\"i3\",\"metadata\":{\"mark\":7}}," ROW(
				"i4", "cc-abcdef-") "]"},
		{0}});
	assert_int_equal(ops()->find(&b->call, MARK, &box), OK);
	assert_null(box.id);
}

static void further_sandboxes_of_one_mark_are_ended(void **state)
{
	struct bench *b = *state;
	struct box box;
	static const char rows[] = "[" ROW("i1", MARK) "," ROW("i2", MARK) "," ROW("i3", MARK) "]";
	play((const struct answer[]){{"GET", FIND, 200, rows},
		{"DELETE", API "/sandboxes/i2", 204, ""},
		{"DELETE", API "/sandboxes/i3", 404, NOT_FOUND}, {0}});
	assert_int_equal(ops()->find(&b->call, MARK, &box), OK);
	assert_string_equal(box.id, "i1");
	expect_played(3);
	static const struct answer wrong[] = {{"DELETE", API "/sandboxes/i2", 500, ""},
		{"DELETE", API "/sandboxes/i2", 409, ""}, {"DELETE", API "/sandboxes/i2", 0}};
	for (int i = 0; i < 3; i++) {
		const struct answer answers[] = {{"GET", FIND, 200, rows}, wrong[i], {0}};
		play(answers);
		assert_int_not_equal(ops()->find(&b->call, MARK, &box), OK);
	}
}

static void a_list_holds_the_marks_of_this_installation(void **state)
{
	struct bench *b = *state;
	struct box_list all;
	play((const struct answer[]){
		{"GET", LISTED("install", INSTALL), 200,
			"[" ROW("i1", MARK) "," ROW("i2", "cc-zzzzzz-x") "]", .next = "2"},
		{"GET", LISTED("install", INSTALL) "&nextToken=2", 200,
			"[" ROW("i3", INSTALL "-y") ",{\"sandboxID\":\"i4\"}]"},
		{0}});
	assert_int_equal(ops()->list(&b->call, INSTALL "-", &all), OK);
	assert_int_equal(all.n, 2);
	assert_string_equal(all.items[0].id, "i1");
	assert_string_equal(all.items[1].id, "i3");
	assert_string_equal(all.items[1].mark, INSTALL "-y");
	assert_ptr_equal(b->call.arena, b->arena);
}

static void a_list_of_an_older_server_is_one_page(void **state)
{
	struct bench *b = *state;
	struct box_list all;
	play((const struct answer[]){{"GET", LISTED("install", INSTALL), 404, HTML},
		{"GET", API "/sandboxes?metadata=install%3D" INSTALL, 200, "[" ROW("i1", MARK) "]"},
		{0}});
	assert_int_equal(ops()->list(&b->call, INSTALL "-", &all), OK);
	assert_int_equal(all.n, 1);
}

static void a_broken_list_is_no_list(void **state)
{
	struct bench *b = *state;
	struct box_list all = {.n = 77};
#define AT "GET", LISTED("install", INSTALL)
	static const struct refused cases[] = {
		{{AT, 200, "{}"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 200, "[1,"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 200, "[7]"}, ERR_UPSTREAM, "", "wrong form"},
		{{AT, 200, "[null]"}, ERR_UPSTREAM, "", "wrong form"},
		{{AT, 200, "[{\"sandboxID\":\"a/b\"}]"}, ERR_UPSTREAM, "", "wrong form"},
		{{AT, 200, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "JSON"},
		{{AT, 500, "{}"}, ERR_UPSTREAM, "", "status 500"},
		{{AT, 401, "{}"}, ERR_KEY_REFUSED, "token", "does not know"},
		{{AT, 0}, ERR_UPSTREAM, "", "broke off"},
	};
#undef AT
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct answer answers[] = {cases[i].answer, {0}};
		play(answers);
		expect_fault(ops()->list(&b->call, INSTALL "-", &all), cases[i].err, cases[i].field,
			cases[i].words);
		assert_ptr_equal(b->call.arena, b->arena);
	}
	play((const struct answer[]){{"GET", LISTED("install", INSTALL), 200, "[]", .next = "x"},
		{"GET", LISTED("install", INSTALL) "&nextToken=x", 200, "[]", .next = "x"}, {0}});
	expect_fault(ops()->list(&b->call, INSTALL "-", &all), ERR_UPSTREAM, "", "no further page");
	play((const struct answer[]){{"GET", LISTED("install", INSTALL), 404, NOT_FOUND},
		{"GET", API "/sandboxes?metadata=install%3D" INSTALL, 404, NOT_FOUND}, {0}});
	expect_fault(ops()->list(&b->call, INSTALL "-", &all), ERR_UPSTREAM, "", "a list");
	assert_int_equal(all.n, 77);
}

/* -- check ------------------------------------------------------------------------------------- */

#define CHECK "/v2/sandboxes?limit=1"

static void a_check_tells_what_is_wrong(void **state)
{
	struct bench *b = *state;
#define AT "GET", API CHECK
	static const struct refused cases[] = {
		{{AT, 401, "{}"}, ERR_KEY_REFUSED, "token", "does not know the key"},
		{{AT, 403, "{}"}, ERR_KEY_REFUSED, "token", "has blocked the team"},
		{{AT, 429, "{}", .retry_after_s = 5}, ERR_UPSTREAM_LIMIT, "", "rate"},
		{{AT, 502, HTML, .type = "text/html"}, ERR_UPSTREAM, "", "status 502"},
		{{AT, 0}, ERR_UPSTREAM, "", "broke off"},
		{{AT, -1}, ERR_UPSTREAM, "", "no connection"},
		{{AT, 200, HTML, .type = "text/html"}, ERR_KEY_CHECK_FAILED, "", "is not E2B"},
		{{AT, 200, "{}"}, ERR_KEY_CHECK_FAILED, "", "is not E2B"},
		{{AT, 200, ""}, ERR_KEY_CHECK_FAILED, "", "is not E2B"},
		{{AT, 302, ""}, ERR_KEY_CHECK_FAILED, "", "status 302"},
	};
#undef AT
	play((const struct answer[]){{"GET", API CHECK, 200, "[]"}, {0}});
	assert_int_equal(ops()->check(&b->call), OK);
	assert_string_equal(last_secret, "X-API-KEY: e2b_key");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct answer answers[] = {cases[i].answer, {0}};
		play(answers);
		expect_fault(ops()->check(&b->call), cases[i].err, cases[i].field, cases[i].words);
	}
}

static void an_address_of_the_users_is_guarded_and_named(void **state)
{
	struct bench *b = *state;
	struct box box;
	struct exec_result r;
	struct frames f = whole(END_ZERO);
	b->credential.api_url = "https://api.my.corp//";
	play((const struct answer[]){{"GET", "https://api.my.corp" CHECK, 404, HTML},
		{"GET", "https://api.my.corp/sandboxes", 404, HTML}, {0}});
	expect_fault(ops()->check(&b->call), ERR_KEY_CHECK_FAILED, "api_url", "is not E2B");
	assert_int_equal(last_pool, HTTP_USER);
	play((const struct answer[]){{"GET", "https://api.my.corp" CHECK, -1}, {0}});
	expect_fault(ops()->check(&b->call), ERR_UPSTREAM, "api_url", "no connection");
	play((const struct answer[]){{"GET", "https://api.my.corp" CHECK, 404, HTML},
		{"GET", "https://api.my.corp/sandboxes", 200, "[]"}, {0}});
	assert_int_equal(ops()->check(&b->call), OK);
	const struct answer answers[] = {
		{"POST", "https://api.my.corp/v2/sandboxes", 201, BOX_OF("\"my.corp\"")},
		{"POST", "https://49983-" ID ".my.corp/process.Process/Start", 200, f.p,
			.body_n = f.n, STREAM},
		{0}};
	play(answers);
	assert_int_equal(ops()->create(&b->call, &spec, &box), OK);
	assert_int_equal(run(b, &r), OK);
	assert_int_equal(last_pool, HTTP_USER);
	b->credential.api_url = "http://api.my.corp";
	play((const struct answer[]){{0}});
	assert_int_equal(ops()->check(&b->call), ERR_FORBIDDEN_ADDRESS);
	expect_played(0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(frames_may_be_split_at_every_byte),
		CASE(a_stream_that_ends_anywhere_else_stays_open),
		CASE(a_code_of_zero_may_be_left_out),
		CASE(only_an_end_and_a_last_frame_make_a_code),
		CASE(a_frame_that_says_it_is_huge_is_refused_by_its_head),
		CASE(more_output_than_a_short_command_has_is_refused),
		CASE(ids_of_another_form_never_reach_a_path),
		CASE(a_daemon_is_where_its_api_is),
		CASE(queries_are_escaped),
		CASE(a_sandbox_is_made_with_mark_and_end),
		CASE(the_template_is_passed_on_and_sizes_are_refused_by_name),
		CASE(an_older_server_is_asked_at_the_older_route),
		CASE(every_refusal_of_a_create_is_told_apart),
		CASE(a_template_that_is_unknown_is_told_when_both_routes_say_so),
		CASE(a_command_is_one_call_to_the_daemon),
		CASE(who_did_not_make_the_sandbox_asks_for_its_token),
		CASE(a_sandbox_without_a_token_is_spoken_to_without_one),
		CASE(gone_is_said_only_on_the_word_of_e2b),
		CASE(trouble_with_a_daemon_is_told_and_its_address_forgotten),
		CASE(a_whole_stream_counts_although_the_connection_broke),
		CASE(a_limit_of_the_daemon_carries_its_time),
		CASE(a_file_is_one_call),
		CASE(an_older_daemon_gets_the_file_as_a_form),
		CASE(a_file_that_was_not_written_is_an_error),
		CASE(an_end_is_proven_or_asked_for_again),
		CASE(a_sandbox_is_found_by_its_mark_on_any_page),
		CASE(a_service_that_ignores_the_filter_makes_nobody_elses_ours),
		CASE(further_sandboxes_of_one_mark_are_ended),
		CASE(a_list_holds_the_marks_of_this_installation),
		CASE(a_list_of_an_older_server_is_one_page),
		CASE(a_broken_list_is_no_list),
		CASE(a_check_tells_what_is_wrong),
		CASE(an_address_of_the_users_is_guarded_and_named),
	};
	return cmocka_run_group_tests_name("e2b", tests, NULL, NULL);
}
