/* Bodies of create, exec and kill as a runner reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "providers/runner/body.h"

static struct arena *a;

static int arena_up(void **state)
{
	(void)state;
	a = arena_new(8u << 20);
	return 0;
}

static int arena_down(void **state)
{
	(void)state;
	arena_free(a);
	return 0;
}

static enum wrong create(const char *text, struct create_ask *ret)
{
	return body_create(text, strlen(text), a, ret);
}

static enum wrong exec(const char *text, struct exec_ask *ret)
{
	return body_exec(text, strlen(text), a, ret);
}

static void create_with_everything_is_read(void **state)
{
	struct create_ask c;
	(void)state;
	assert_int_equal(create("{\"id\":\"sandbox-1\",\"ttl_seconds\":60,\"idle_seconds\":5,"
				"\"labels\":{\"a\":\"1\",\"\":\"\"},\"env\":{\"A_1\":\"x y\"},"
				"\"network\":\"none\",\"limits\":{\"memory_mib\":64,\"cpus\":0.5,"
				"\"pids\":9,\"disk_mib\":10},\"other\":[1,2]}",
				 &c),
		WRONG_NOTHING);
	assert_string_equal(c.id, "sandbox-1");
	assert_int_equal(c.ttl_s, 60);
	assert_int_equal(c.idle_s, 5);
	assert_int_equal(c.labels.n, 2);
	assert_string_equal(c.labels.p[0].name, "a");
	assert_string_equal(c.env.p[0].value, "x y");
	assert_int_equal(c.network, NETWORK_NONE);
	assert_int_equal(c.limits.memory_mib, 64);
	assert_int_equal(c.limits.pids, 9);
	assert_int_equal(c.limits.disk_mib, 10);
	assert_true(c.limits.cpus > 0.49 && c.limits.cpus < 0.51);
}

static void what_is_not_given_or_null_counts_as_not_asked(void **state)
{
	struct create_ask c;
	(void)state;
	assert_int_equal(
		create("{\"id\":\"sandbox-1\",\"ttl_seconds\":60.0,\"labels\":null,\"env\":null,"
		       "\"network\":null,\"limits\":null,\"image\":null,\"idle_seconds\":null}",
			&c),
		WRONG_NOTHING);
	assert_int_equal(c.ttl_s, 60);
	assert_int_equal(c.network, NETWORK_UNSET);
	assert_int_equal(c.limits.memory_mib, 0);
	assert_int_equal(c.idle_s, 0);
}

static void the_older_names_of_limits_are_understood(void **state)
{
	struct create_ask c;
	(void)state;
	assert_int_equal(
		create("{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"cpu\":2,\"memory_mib\":100}", &c),
		WRONG_NOTHING);
	assert_int_equal(c.limits.memory_mib, 100);
	assert_true(c.limits.cpus > 1.9);
}

static void bad_creates_are_refused_by_name(void **state)
{
	static const struct {
		const char *text;
		enum wrong what;
		const char *word;
	} rows[] = {
		{"", WRONG_REQUEST, "JSON"},
		{"[]", WRONG_REQUEST, "object"},
		{"null", WRONG_REQUEST, "object"},
		{"{}", WRONG_REQUEST, "id"},
		{"{\"id\":null,\"ttl_seconds\":1}", WRONG_REQUEST, "id"},
		{"{\"id\":\"sandbox\\u0000-1\",\"ttl_seconds\":1}", WRONG_REQUEST, "JSON"},
		{"{\"id\":\"sandbox-1\",\"id\":\"sandbox-2\",\"ttl_seconds\":1}", WRONG_REQUEST,
			"JSON"},
		{"{\"id\":\"sandbox_1\",\"ttl_seconds\":1}", WRONG_REQUEST, "id"},
		{"{\"id\":\"sandbox-1\"}", WRONG_REQUEST, "ttl_seconds"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":null}", WRONG_REQUEST, "ttl_seconds"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":-1}", WRONG_REQUEST, "1 to 86400"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1e9}", WRONG_REQUEST, "1 to 86400"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":true}", WRONG_REQUEST, "integer"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"labels\":{\"a\":null}}", WRONG_REQUEST,
			"labels"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"env\":{\"\":\"x\"}}", WRONG_REQUEST,
			"env"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"network\":5}", WRONG_REQUEST,
			"network"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"network\":\"HOST\"}", WRONG_REQUEST,
			"network"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"limits\":[]}", WRONG_REQUEST, "limits"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"limits\":{\"cpus\":0}}", WRONG_REQUEST,
			"cpus"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"limits\":{\"cpus\":\"1\"}}",
			WRONG_REQUEST, "cpus"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"limits\":{\"pids\":1.5}}",
			WRONG_REQUEST, "pids"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"limits\":{\"disk_mib\":-1}}",
			WRONG_REQUEST, "disk_mib"},
		{"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"image\":\"x\"}", WRONG_UNSUPPORTED,
			"image"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct create_ask c;
		assert_int_equal(create(rows[i].text, &c), rows[i].what);
		assert_non_null(strstr(wrong_text(rows[i].what), rows[i].word));
	}
}

static void variables_of_a_sandbox_have_a_bound(void **state)
{
	char text[BOX_ENV_BYTES_MAX + 200];
	struct create_ask c;
	(void)state;
	(void)snprintf(text, sizeof text,
		"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"env\":{\"A\":\"%0*d\"}}",
		BOX_ENV_BYTES_MAX - 3, 0);
	assert_int_equal(create(text, &c), WRONG_NOTHING);
	(void)snprintf(text, sizeof text,
		"{\"id\":\"sandbox-1\",\"ttl_seconds\":1,\"env\":{\"A\":\"%0*d\"}}",
		BOX_ENV_BYTES_MAX - 2, 0);
	assert_int_equal(create(text, &c), WRONG_SIZE);
}

static void exec_with_everything_is_read(void **state)
{
	struct exec_ask e;
	(void)state;
	assert_int_equal(
		exec("{\"exec_id\":\"exec-0001\",\"argv\":[\"sh\",\"\",\"-c\"],\"cwd\":\"/tmp\","
		     "\"env\":{\"A\":\"\"},\"stdin_b64\":\"AAEC\",\"timeout_ms\":1001,"
		     "\"follow_ms\":0}",
			&e),
		WRONG_NOTHING);
	assert_int_equal(e.argc, 3);
	assert_string_equal(e.argv[1], "");
	assert_null(e.argv[3]);
	assert_string_equal(e.cwd, "/tmp");
	assert_int_equal(e.stdin_n, 3);
	assert_memory_equal(e.stdin_bytes, "\0\1\2", 3);
	assert_int_equal(e.timeout_s, 2); /* rounded up */
	assert_int_equal(e.follow_ms, 0);
}

static void exec_has_defaults(void **state)
{
	struct exec_ask e;
	(void)state;
	assert_int_equal(exec("{\"exec_id\":\"exec-0001\",\"argv\":[\"true\"],\"cwd\":\"\",\"stdin_"
			      "b64\":\"\"}",
				 &e),
		WRONG_NOTHING);
	assert_null(e.cwd);
	assert_null(e.stdin_bytes);
	assert_int_equal(e.timeout_s, 0);
	assert_int_equal(e.follow_ms, FOLLOW_MS_DEFAULT);
}

static void bad_execs_are_refused_by_name(void **state)
{
	static const struct {
		const char *text, *word;
	} rows[] = {
		{"{\"argv\":[\"true\"]}", "exec_id"},
		{"{\"exec_id\":\"exec.0001\",\"argv\":[\"true\"]}", "exec_id"},
		{"{\"exec_id\":\"exec-01\",\"argv\":[\"true\"]}", "exec_id"},
		{"{\"exec_id\":\"exec-0001\"}", "argv"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":{}}", "argv"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[]}", "argv"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"\"]}", "argv[0]"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\",null]}", "argv[1]"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\\u0000b\"]}", "JSON"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"cwd\":1}", "cwd"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"env\":{\"A=\":\"\"}}", "env"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"stdin_b64\":\"A\"}", "stdin_b64"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"stdin_b64\":\"AA=A\"}",
			"stdin_b64"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"stdin_b64\":7}", "stdin_b64"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"timeout_ms\":\"5\"}", "timeout_ms"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"timeout_ms\":86400001}",
			"timeout_ms"},
		{"{\"exec_id\":\"exec-0001\",\"argv\":[\"a\"],\"follow_ms\":-1}", "follow_ms"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct exec_ask e;
		assert_int_equal(exec(rows[i].text, &e), WRONG_REQUEST);
		assert_non_null(strstr(wrong_text(WRONG_REQUEST), rows[i].word));
	}
}

static void a_command_has_a_bound_that_counts_all_its_parts(void **state)
{
	static char text[COMMAND_BYTES_MAX + 200];
	struct exec_ask e;
	(void)state;
	/* "true" and its NUL, the long one and its NUL. */
	(void)snprintf(text, sizeof text,
		"{\"exec_id\":\"exec-0001\",\"argv\":[\"true\",\"%0*d\"]}", COMMAND_BYTES_MAX - 6,
		0);
	assert_int_equal(exec(text, &e), WRONG_NOTHING);
	(void)snprintf(text, sizeof text,
		"{\"exec_id\":\"exec-0001\",\"argv\":[\"true\",\"%0*d\"]}", COMMAND_BYTES_MAX - 5,
		0);
	assert_int_equal(exec(text, &e), WRONG_SIZE);
	(void)snprintf(text, sizeof text,
		"{\"exec_id\":\"exec-0001\",\"argv\":[\"true\",\"%0*d\"],\"stdin_b64\":\"AAAA\"}",
		COMMAND_BYTES_MAX - 6, 0);
	assert_int_equal(exec(text, &e), WRONG_SIZE);
}

static void signals_are_three_words(void **state)
{
	int n;
	(void)state;
	assert_int_equal(body_kill("", 0, &n), WRONG_NOTHING);
	assert_int_equal(n, SIGKILL);
	assert_int_equal(body_kill("{\"signal\":\"TERM\"}", 17, &n), WRONG_NOTHING);
	assert_int_equal(n, SIGTERM);
	assert_int_equal(body_kill("{\"signal\":\"INT\"}", 16, &n), WRONG_NOTHING);
	assert_int_equal(n, SIGINT);
	assert_int_equal(body_kill("{\"signal\":null}", 15, &n), WRONG_NOTHING);
	assert_int_equal(n, SIGKILL);
	for (const char *const *t = (const char *const[]){"{\"signal\":\"STOP\"}", "{\"signal\":9}",
		     "{\"signal\":\"term\"}", "9", "{", NULL};
		*t; t++)
		assert_int_equal(body_kill(*t, strlen(*t), &n), WRONG_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			create_with_everything_is_read, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			what_is_not_given_or_null_counts_as_not_asked, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			the_older_names_of_limits_are_understood, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			bad_creates_are_refused_by_name, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			variables_of_a_sandbox_have_a_bound, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(exec_with_everything_is_read, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(exec_has_defaults, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			bad_execs_are_refused_by_name, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(
			a_command_has_a_bound_that_counts_all_its_parts, arena_up, arena_down),
		cmocka_unit_test_setup_teardown(signals_are_three_words, arena_up, arena_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
