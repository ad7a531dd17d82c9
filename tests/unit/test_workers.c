/*
 * Workers Sandbox against a scripted network: which bridge is spoken to, and what is made of the
 * answers of Cloudflare's own one.
 */
#include "arena.h"
#include "http.h"
#include "provider.h"
#include "workers_vendor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Answers leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MARK   "cc-abcdef-abcdefghijklmnopqrstuvwxyz"
#define ID     "ccabcdefabcdefghijklmnopqrstuvwxyz"
#define URL    "https://bridge.example"
#define OURS   "{\"ok\":true,\"contract\":\"sbx-bridge\",\"version\":1}"
#define BOX    "{\"id\":\"" MARK "\",\"state\":\"running\",\"created_at\":1,\"expires_at\":61}"
#define EVENTS "text/event-stream"
#define EXEC   "/v1/sandbox/" ID "/exec"
#define DONE   "event: exit\ndata: {\"exit_code\":0}\n\n"

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method, *path; /* wanted; "~" at the end: and anything behind it */
	int status;                /* 0: HTTP_UNSURE; -1: HTTP_NOT_SENT */
	const char *body, *type;   /* type NULL: application/json */
	bool anonymous;
};

static const struct answer *script;
static size_t played;
static char last_body[65536];
static enum err last; /* what the call of interest gave */

enum err http_url_check(const char *url, const char *field)
{
	return strncmp(url, "https://", 8) == 0
		       ? OK
		       : (fail)(ERR_FORBIDDEN_ADDRESS, field, "must be https");
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played++];
	assert_non_null(q->method);
	assert_string_equal(c->method, q->method);
	assert_int_equal(strncmp(c->url, URL, strlen(URL)), 0);
	size_t path_n = strcspn(q->path, "~");
	assert_int_equal(strncmp(c->url + strlen(URL), q->path, path_n), 0);
	assert_true(q->path[path_n] == '~' || c->url[strlen(URL) + path_n] == '\0');
	assert_int_equal(c->pool, HTTP_USER);
	assert_int_equal(!c->bearer, q->anonymous);
	(void)snprintf(last_body, sizeof last_body, "%.*s", (int)c->body_n,
		c->body ? (const char *)c->body : "");
	bool replied = q->status > 0;
	*ret = (struct http_reply){.fate = replied          ? HTTP_REPLIED
					   : q->status == 0 ? HTTP_UNSURE
							    : HTTP_NOT_SENT,
		.status = replied ? q->status : 0,
		.body = arena_str(a, replied && q->body ? q->body : ""),
		.type = q->type ? q->type : "application/json"};
	ret->body_n = strlen(ret->body);
	return OK;
}

static const char *fault_field(void)
{
	return fault_of(last)->field;
}

static const char *fault_detail(void)
{
	return fault_of(last)->detail;
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
	b.credential.token = secret_new("0123456789abcdef0123456789abcdef", 32);
	b.credential.bridge_url = URL "/";
	b.call = (struct call){.provider = provider_find("workers"),
		.credential = &b.credential,
		.arena = b.arena};
	b.ops = b.call.provider->ops;
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

#define PLAY(...) play((const struct answer[]){__VA_ARGS__, {NULL}})
#define HEALTH(status, body)                                                                       \
	{                                                                                          \
		"GET", "/health", status, body, NULL, true                                         \
	}
#define VENDOR HEALTH(200, "{\"ok\":true}")
#define STATS(status, body, anonymous)                                                             \
	{                                                                                          \
		"GET", "/v1/pool/stats", status, body, NULL, anonymous                             \
	}
#define NUMBERS "{\"warm\":0,\"assigned\":2,\"total\":2}"

/* -- ids --------------------------------------------------------------------------------------- */

static void an_id_of_the_vendors_bridge_is_the_mark_without_dashes(void **state)
{
	char id[VENDOR_ID_CHARS + 1];
	(void)state;
	assert_true(vendor_id_of(MARK, id));
	assert_string_equal(id, ID);
	assert_true(vendor_id_ok(id));
	assert_false(vendor_id_ok(MARK));
	static const char *const others[] = {"", "cc-abcdef-",
		"cc-abcdef-abcdefghijklmnopqrstuvwxy1", "cc_abcdef-abcdefghijklmnopqrstuvwxyz",
		MARK "a", "cc-abcdef-ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"cc-abc-ef-abcdefghijklmnopqrstuvwxyz"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_false(vendor_id_of(others[i], id));
	assert_false(vendor_id_ok("../pool/stats"));
	assert_false(vendor_id_ok(""));
}

/* -- check ------------------------------------------------------------------------------------- */

static void a_closed_bridge_of_either_kind_passes_the_check(void **state)
{
	struct bench *b = *state;
	PLAY(VENDOR, STATS(401, "{\"error\":\"x\",\"code\":\"unauthorized\"}", true),
		STATS(200, NUMBERS, false));
	assert_int_equal(b->ops->check(&b->call), OK);
	PLAY(HEALTH(200, OURS), HEALTH(200, OURS),
		{"GET", "/bridge/v1/sandboxes", 401, "{}", NULL, true},
		{"GET", "/bridge/v1/sandboxes", 200, "{\"sandboxes\":[]}"});
	assert_int_equal(b->ops->check(&b->call), OK);
	assert_int_equal(played, 4);
}

static void an_open_bridge_is_refused(void **state)
{
	struct bench *b = *state;
	PLAY(VENDOR, STATS(200, NUMBERS, true));
	assert_int_equal(last = b->ops->check(&b->call), ERR_KEY_CHECK_FAILED);
	assert_string_equal(fault_field(), "bridge_url");
	assert_non_null(strstr(fault_detail(), "SANDBOX_API_KEY"));
	static const int others[] = {404, 500, 302, 403};
	for (size_t i = 0; i < 4; i++) {
		PLAY(VENDOR, STATS(others[i], "", true));
		assert_int_equal(last = b->ops->check(&b->call), ERR_KEY_CHECK_FAILED);
	}
	PLAY(VENDOR, STATS(0, "", true));
	assert_int_equal(b->ops->check(&b->call), ERR_UPSTREAM);
}

static void a_wrong_token_is_the_tokens_fault(void **state)
{
	struct bench *b = *state;
	PLAY(VENDOR, STATS(401, "{}", true), STATS(401, "{}", false));
	assert_int_equal(last = b->ops->check(&b->call), ERR_KEY_REFUSED);
	assert_string_equal(fault_field(), "token");
	static const char *const wrong[] = {"[]", "{}", "{\"assigned\":\"2\"}", "<html>"};
	for (size_t i = 0; i < 4; i++) {
		PLAY(VENDOR, STATS(401, "{}", true), STATS(200, wrong[i], false));
		assert_int_equal(b->ops->check(&b->call), ERR_UPSTREAM);
	}
}

static void what_is_no_bridge_is_said_so(void **state)
{
	struct bench *b = *state;
	static const struct answer wrong[] = {HEALTH(404, "Not Found"), HEALTH(200, "<html>"),
		HEALTH(200, "[]"), HEALTH(200, "{}"), HEALTH(200, "{\"ok\":1}"), HEALTH(302, ""),
		HEALTH(500, OURS), HEALTH(503, "{\"ok\":false,\"errors\":[\"x\"]}")};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		PLAY(wrong[i]);
		assert_int_equal(last = b->ops->check(&b->call), ERR_KEY_CHECK_FAILED);
		assert_string_equal(fault_field(), "bridge_url");
	}
	b->credential.bridge_url = "http://bridge.example";
	PLAY({NULL});
	assert_int_equal(b->ops->check(&b->call), ERR_FORBIDDEN_ADDRESS);
}

/* -- sandboxes --------------------------------------------------------------------------------- */

static const struct box_spec spec = {.mark = MARK, .life_s = 60};

static void the_bridge_at_the_address_decides_how_a_sandbox_is_made(void **state)
{
	struct bench *b = *state;
	struct box box;
	PLAY(VENDOR, {"POST", EXEC, 200, DONE, EVENTS});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, ID);
	assert_string_equal(box.mark, MARK);
	assert_non_null(box.warnings);
	PLAY(HEALTH(200, OURS), {"POST", "/bridge/v1/sandboxes", 201, BOX});
	assert_int_equal(b->ops->create(&b->call, &spec, &box), OK);
	assert_string_equal(box.id, MARK);
	assert_null(box.warnings);
}

static void a_create_is_refused_only_when_that_is_certain(void **state)
{
	struct bench *b = *state;
	struct box box;
	const struct {
		struct answer answer;
		enum err err;
	} cases[] = {
		{{"POST", EXEC, 503, "{\"error\":\"x\",\"code\":\"capacity_exceeded\"}"},
			ERR_UPSTREAM_LIMIT},
		{{"POST", EXEC, 401, "{}"}, ERR_KEY_REFUSED},
		{{"POST", EXEC, 503, "<html>", "text/html"}, ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 502, "{\"error\":\"x\",\"code\":\"pool_error\"}"},
			ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 0}, ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 200, "", EVENTS}, ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 200, "event: exit\ndata: {\"exit_code\":1}\n\n", EVENTS},
			ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 200, "event: error\ndata: {}\n\n", EVENTS}, ERR_UPSTREAM_UNSURE},
		{{"POST", EXEC, 200, DONE, "text/html"}, ERR_UPSTREAM_UNSURE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		PLAY(VENDOR, cases[i].answer);
		assert_int_equal(b->ops->create(&b->call, &spec, &box), cases[i].err);
	}
	PLAY(HEALTH(0, "")); /* before anything has an effect nothing is unsure */
	assert_int_equal(b->ops->create(&b->call, &spec, &box), ERR_UPSTREAM);
}

static void what_the_vendors_bridge_can_not_do_is_refused(void **state)
{
	struct bench *b = *state;
	struct box box;
	const struct box_spec odd[] = {{.mark = MARK, .runtime = "python"},
		{.mark = MARK, .template = "debian"}, {.mark = MARK, .network = NETWORK_NONE},
		{.mark = MARK, .gpu = "T4", .gpu_count = 1}};
	static const char *const fields[] = {"runtime", "template", "network", "gpu"};
	for (size_t i = 0; i < 4; i++) {
		PLAY(VENDOR);
		assert_int_equal(last = b->ops->create(&b->call, &odd[i], &box), ERR_UNSUPPORTED);
		assert_string_equal(fault_field(), fields[i]);
	}
}

static void a_lost_create_is_found_and_deleted_by_its_id(void **state)
{
	struct bench *b = *state;
	struct box box;
	struct box_list list;
	enum box_state how;
	PLAY(VENDOR);
	assert_int_equal(b->ops->find(&b->call, MARK, &box), OK);
	assert_string_equal(box.id, ID);
	PLAY({"DELETE", "/v1/sandbox/" ID, 204, ""});
	assert_int_equal(b->ops->destroy(&b->call, box.id, &how), OK);
	assert_int_equal(how, BOX_STOPPED);
	PLAY(VENDOR);
	assert_int_equal(b->ops->list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 0);
	static const int bad[] = {200, 202, 404, 500, 302, 0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		PLAY({"DELETE", "/v1/sandbox/" ID, bad[i], "{}"});
		assert_int_not_equal(b->ops->destroy(&b->call, ID, &how), OK);
	}
}

static void ids_of_our_bridge_go_to_our_bridge(void **state)
{
	struct bench *b = *state;
	enum box_state how;
	PLAY({"DELETE", "/bridge/v1/sandboxes/" MARK, 200,
		"{\"id\":\"" MARK "\",\"state\":\"stopped\"}"});
	assert_int_equal(b->ops->destroy(&b->call, MARK, &how), OK);
	PLAY({NULL});
	assert_int_equal(b->ops->destroy(&b->call, "../../v1", &how), ERR_INTERNAL);
}

/* -- files ------------------------------------------------------------------------------------- */

static void a_file_is_written_and_moved_to_its_place(void **state)
{
	struct bench *b = *state;
	PLAY({"PUT", "/v1/sandbox/" ID "/file/workspace/.sbx-~", 200, "{\"ok\":true}"},
		{"POST", EXEC, 200, "event: stdout\ndata: Mwo=\n\n" DONE, EVENTS});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/a/b", "abc", 3), OK);
	assert_non_null(strstr(last_body, "/tmp/a/b"));
	assert_int_equal(played, 2);
	PLAY({"PUT", "/v1/sandbox/~", 200, "{\"ok\":true}"},
		{"POST", EXEC, 200, "event: stdout\ndata: Mgo=\n\n" DONE, EVENTS});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/a/b", "abc", 3), ERR_UPSTREAM);
	PLAY({"PUT", "/v1/sandbox/~", 200, "{\"ok\":true}"},
		{"POST", EXEC, 200, "event: exit\ndata: {\"exit_code\":77}\n\n", EVENTS});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/a/b", "abc", 3), ERR_BOX_GONE);
	PLAY({"PUT", "/v1/sandbox/~", 413, "{}"});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/a/b", "abc", 3), ERR_UPSTREAM);
	PLAY({"PUT", "/v1/sandbox/~", 0});
	assert_int_equal(b->ops->put(&b->call, ID, "/tmp/a/b", "abc", 3), ERR_UPSTREAM_UNSURE);
}

/* -- commands ---------------------------------------------------------------------------------- */

static void both_streams_and_the_code_are_read(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	const char *const argv[] = {"sh", "-c", "echo \"\x01", NULL};
	PLAY({"POST", EXEC, 200,
		": hello\r\nevent: stdout\r\ndata: aGk=\r\nid: 5\r\n\r\nevent: stderr\ndata: "
		"eA==\n\n"
		"event: stdout\ndata: IQ==\n\nevent: new\ndata: ?\n\nevent: exit\n"
		"data: {\"exit_code\":\ndata: 7}\n\nevent: stdout\ndata: bGF0ZQ==\n\n",
		EVENTS});
	assert_int_equal(b->ops->exec(&b->call, ID, "exec-0001", argv, 5, &r), OK);
	assert_int_equal(r.code, 7);
	assert_string_equal(r.out, "hi!");
	assert_string_equal(r.err, "x");
	assert_non_null(strstr(last_body, "\"timeout_ms\":5000"));
}

static void no_other_end_is_an_exit_code(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	static const struct {
		const char *events;
		enum err err;
	} cases[] = {
		{"", ERR_UPSTREAM_UNSURE},
		{"event: stdout\ndata: aGk=\n\n", ERR_UPSTREAM_UNSURE},
		{"event: exit\ndata: {\"exit_code\":0}\n", ERR_UPSTREAM_UNSURE},
		{"event: exit\ndata: {\"exit_code\":0}", ERR_UPSTREAM_UNSURE},
		{"data: {\"exit_code\":0}\n\n", ERR_UPSTREAM_UNSURE},
		{"event: exits\ndata: {\"exit_code\":0}\n\n", ERR_UPSTREAM_UNSURE},
		{"event: error\ndata: {\"error\":\"x\"}\n\n" DONE, ERR_UPSTREAM_UNSURE},
		{"event: exit\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: {}\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: 0\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: {\"exit_code\":\"0\"}\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: {\"exit_code\":256}\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: {\"exit_code\":-1}\n\n", ERR_UPSTREAM},
		{"event: exit\ndata: {\"exit_code\":0.5}\n\n", ERR_UPSTREAM},
		{"event: stdout\ndata: a*b=\n\n" DONE, ERR_UPSTREAM},
		{"event: stderr\ndata: aGk\n\n" DONE, ERR_UPSTREAM},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(
			vendor_events(cases[i].events, strlen(cases[i].events), b->arena, &r),
			cases[i].err);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_id_of_the_vendors_bridge_is_the_mark_without_dashes),
		TEST(a_closed_bridge_of_either_kind_passes_the_check),
		TEST(an_open_bridge_is_refused),
		TEST(a_wrong_token_is_the_tokens_fault),
		TEST(what_is_no_bridge_is_said_so),
		TEST(the_bridge_at_the_address_decides_how_a_sandbox_is_made),
		TEST(a_create_is_refused_only_when_that_is_certain),
		TEST(what_the_vendors_bridge_can_not_do_is_refused),
		TEST(a_lost_create_is_found_and_deleted_by_its_id),
		TEST(ids_of_our_bridge_go_to_our_bridge),
		TEST(a_file_is_written_and_moved_to_its_place),
		TEST(both_streams_and_the_code_are_read),
		TEST(no_other_end_is_an_exit_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
