/* Paths, queries and offsets as a runner reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "providers/runner/body.h"

#define S "/bridge/v1/sandboxes"

static void every_route_of_the_contract_is_known(void **state)
{
	static const struct {
		const char *path;
		enum target target;
	} rows[] = {
		{"/health", TARGET_HEALTH},
		{S, TARGET_SANDBOXES},
		{S "/sandbox-1", TARGET_SANDBOX},
		{S "/sandbox-1/exec", TARGET_EXECS},
		{S "/sandbox-1/exec/exec-0001", TARGET_EXEC},
		{S "/sandbox-1/exec/exec-0001/kill", TARGET_KILL},
		{S "/sandbox-1/file", TARGET_FILE},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct route r;
		assert_int_equal(route_parse(rows[i].path, &r), WRONG_NOTHING);
		assert_int_equal(r.target, rows[i].target);
		if (r.target >= TARGET_SANDBOX)
			assert_string_equal(r.id, "sandbox-1");
		if (r.target == TARGET_EXEC || r.target == TARGET_KILL)
			assert_string_equal(r.exec_id, "exec-0001");
	}
}

static void anything_else_is_no_route(void **state)
{
	static const char *const paths[] = {"", "/", "health", "/health/", "/healthy", "*", S "/",
		S "x", "/bridge/v1", "/bridge/v1//sandboxes", "/bridge/v1/sandbox", S "//exec",
		S "/short", S "/sandbox-1/", S "/sandbox-1/execs", S "/sandbox-1/exec/",
		S "/sandbox-1/exec/short", S "/sandbox-1/exec/exec-0001/",
		S "/sandbox-1/exec/exec-0001/kil", S "/sandbox-1/exec/exec-0001/kill/",
		S "/sandbox-1/exec/exec-0001/kill/x", S "/sandbox-1/file/", S "/sandbox-1/file/x",
		S "/sandbox%2d1", S "/Sandbox-1", S "/../../health", S "/sandbox-1/exec/exec_0001",
		S "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct route r;
		assert_int_equal(route_parse(paths[i], &r), WRONG_ROUTE);
	}
}

static void escapes_and_blanks_of_a_query_are_decoded(void **state)
{
	struct query q;
	CLEANUP_ARENA struct arena *a = arena_new(1u << 20);
	(void)state;
	assert_int_equal(query_parse("path=%2Ftmp%2fa+b%2Bc&offset=7&&x&y=", a, &q), WRONG_NOTHING);
	assert_int_equal(q.n, 4);
	assert_string_equal(q.p[0].value, "/tmp/a b+c");
	assert_string_equal(q.p[2].name, "x");
	assert_string_equal(q.p[2].value, "");
	assert_int_equal(query_parse("", a, &q), WRONG_NOTHING);
	assert_int_equal(q.n, 0);
}

static void malformed_queries_are_refused(void **state)
{
	static const char *const bad[] = {
		"a=%", "a=%4", "a=%zz", "a=%4g", "%=x", "a=b%00c", "a%00=b", "a=1&b=%"};
	struct query q;
	CLEANUP_ARENA struct arena *a = arena_new(1u << 20);
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(query_parse(bad[i], a, &q), WRONG_REQUEST);
	char many[QUERY_PARAMS_MAX * 4 + 8] = "";
	for (int i = 0; i <= QUERY_PARAMS_MAX; i++)
		(void)snprintf(many + strlen(many), sizeof many - strlen(many), "a=1&");
	assert_int_equal(query_parse(many, a, &q), WRONG_REQUEST);
}

static void offsets_are_up_to_15_digits(void **state)
{
	struct query q = {.n = 1, .p = {{"offset", ""}}};
	int64_t v;
	(void)state;
	assert_int_equal(query_int(&q, "absent", 42, 100, &v), WRONG_NOTHING);
	assert_int_equal(v, 42);
	q.p[0].value = "999999999999999";
	assert_int_equal(query_int(&q, "offset", 0, OFFSET_MAX, &v), WRONG_NOTHING);
	assert_int_equal(v, OFFSET_MAX);
	assert_int_equal(query_int(&q, "offset", 0, 10, &v), WRONG_NOTHING);
	assert_int_equal(v, 10);
	for (const char *const *t = (const char *const[]){"", "-1", "+1", " 1", "1 ", "0x10", "1.0",
		     "1e3", "1000000000000000", "99999999999999999999999", "a", NULL};
		*t; t++) {
		q.p[0].value = *t;
		assert_int_equal(query_int(&q, "offset", 0, OFFSET_MAX, &v), WRONG_REQUEST);
		assert_non_null(strstr(wrong_text(WRONG_REQUEST), "offset"));
	}
}

static void a_path_is_absolute_and_given_once(void **state)
{
	static char longer[4097];
	struct query q = {.n = 1, .p = {{"path", "/tmp/x"}, {"path", "/tmp/y"}}};
	const char *path;
	(void)state;
	assert_int_equal(query_path(&q, &path), WRONG_NOTHING);
	assert_string_equal(path, "/tmp/x");
	q.n = 2;
	assert_int_equal(query_path(&q, &path), WRONG_REQUEST);
	q.n = 0;
	assert_int_equal(query_path(&q, &path), WRONG_REQUEST);
	q.n = 1;
	q.p[0].value = "tmp/x";
	assert_int_equal(query_path(&q, &path), WRONG_REQUEST);
	(void)memset(longer, '/', sizeof longer - 1);
	q.p[0].value = longer;
	assert_int_equal(query_path(&q, &path), WRONG_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_route_of_the_contract_is_known),
		cmocka_unit_test(anything_else_is_no_route),
		cmocka_unit_test(escapes_and_blanks_of_a_query_are_decoded),
		cmocka_unit_test(malformed_queries_are_refused),
		cmocka_unit_test(offsets_are_up_to_15_digits),
		cmocka_unit_test(a_path_is_absolute_and_given_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
