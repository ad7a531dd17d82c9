/* Small parts of the runner: connection file, tunnel name, kept output, ids that have run, options.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "providers/runner/connfile.h"
#include "providers/runner/options.h"
#include "providers/runner/output.h"
#include "providers/runner/seen.h"
#include "providers/runner/tunnel.h"

static void the_pid_of_a_connection_file_is_read(void **state)
{
	const char *good = "{\"url\":\"x\",\"token\":\"y\",\"pid\":123}\n";
	(void)state;
	assert_int_equal(connection_pid(good, strlen(good)), 123);
}

static void a_connection_file_that_is_none_has_no_pid(void **state)
{
	static const char *const bad[] = {"", "{", "[]", "123", "{}", "{\"pid\":\"1\"}",
		"{\"pid\":0}", "{\"pid\":-5}", "{\"pid\":1.5}", "{\"pid\":99999999999}",
		"{\"pid\":1,\"pid\":2}", "\xff"};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(connection_pid(bad[i], strlen(bad[i])), 0);
}

static void the_name_of_a_quick_tunnel_is_found(void **state)
{
	char url[128];
	(void)state;
	assert_true(tunnel_find("INF |  https://a-b-9.trycloudflare.com     |", url, sizeof url));
	assert_string_equal(url, "https://a-b-9.trycloudflare.com");
	assert_true(tunnel_find(
		"https://x.example/ https://q.trycloudflare.com/path", url, sizeof url));
	assert_string_equal(url, "https://q.trycloudflare.com");
}

static void other_addresses_are_not_taken_for_it(void **state)
{
	char url[24];
	(void)state;
	for (const char *const *t =
			(const char *const[]){"", "https://", "https://.trycloudflare.com",
				"http://a.trycloudflare.com", "https://api.trycloudflare.com/t",
				"https://a.trycloudflare.org", "https://A.trycloudflare.com",
				"https://a.b.trycloudflare.com", "https://a@b.trycloudflare.com",
				"https://much-too-long-for-the-place.trycloudflare.com", NULL};
		*t; t++)
		assert_false(tunnel_find(*t, url, sizeof url));
}

static void append(struct output *o, const char *p, size_t n)
{
	size_t kept = output_append(o, p, n);
	o->size += (int64_t)kept;
	o->dropped += (int64_t)(n - kept);
}

static void output_can_be_read_at_any_offset_in_memory_and_in_a_file(void **state)
{
	struct output o;
	char piece[1000], back[3000];
	(void)state;
	output_init(&o);
	for (int i = 0; i < 40; i++) {
		(void)memset(piece, 'a' + i % 26, sizeof piece);
		append(&o, piece, sizeof piece);
		assert_int_equal(o.size, (i + 1) * 1000);
		assert_int_equal(output_read(&o, i * 1000 + 999, back, sizeof back), 1);
		assert_int_equal(back[0], 'a' + i % 26);
	}
	assert_true(o.fd >= 0);
	assert_int_equal(output_read(&o, 999, back, 3000), 3000);
	assert_true(back[0] == 'a' && back[1] == 'b' && back[1001] == 'c' && back[2999] == 'd');
	assert_int_equal(output_read(&o, 40000, back, 10), 0);
	assert_int_equal(output_read(&o, 999999, back, 10), 0);
	assert_int_equal(o.dropped, 0);
	output_done(&o);
}

static void output_beyond_its_bound_is_counted_and_leaves_no_gap(void **state)
{
	struct output o;
	char piece[100] = "x";
	(void)state;
	output_init(&o);
	for (int i = 0; i < 100; i++)
		append(&o, piece, sizeof piece);
	o.size = OUTPUT_BYTES_MAX - 30; /* as if so much had come */
	append(&o, piece, sizeof piece);
	assert_int_equal(o.size, OUTPUT_BYTES_MAX);
	assert_int_equal(o.dropped, 70);
	append(&o, piece, 1);
	assert_int_equal(o.dropped, 71);
	assert_int_equal(o.size, OUTPUT_BYTES_MAX);
	output_done(&o);
}

static void a_failing_disk_drops_output_and_counts_it(void **state)
{
	struct output o;
	char piece[9000] = "x";
	(void)state;
	output_init(&o);
	append(&o, piece, sizeof piece);
	assert_int_equal(o.size, 9000);
	assert_true(o.fd >= 0);
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[0], o.fd) >= 0); /* nothing can be written there any more */
	append(&o, piece, sizeof piece);
	assert_int_equal(o.size, 9000);
	assert_int_equal(o.dropped, 9000);
	(void)close(ends[0]);
	(void)close(ends[1]);
	output_done(&o);
}

static void ids_that_ran_are_remembered_and_others_are_not(void **state)
{
	struct seen s;
	char id[32];
	(void)state;
	seen_init(&s);
	for (int i = 0; i < 5000; i++) {
		(void)snprintf(id, sizeof id, "exec-%d", i);
		assert_false(seen_has(&s, id));
		seen_add(&s, id);
		seen_add(&s, id);
	}
	assert_int_equal(s.n, 5000);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(id, sizeof id, "exec-%d", i);
		assert_int_equal(seen_has(&s, id), i < 5000);
	}
	assert_false(seen_full(&s));
	s.n = SEEN_MAX;
	assert_true(seen_full(&s));
	seen_done(&s);
}

static bool options(struct config *c, const char *one, const char *two)
{
	char a[] = "compute-runner", b[64], d[64];
	char *argv[] = {a, b, d, NULL};
	int status;
	(void)snprintf(b, sizeof b, "%s", one);
	(void)snprintf(d, sizeof d, "%s", two ? two : "");
	return options_read(two ? 3 : 2, argv, c, &status);
}

static void options_have_defaults_and_bounds(void **state)
{
	struct config c;
	(void)state;
	assert_true(options(&c, "--check", NULL));
	assert_true(c.check);
	assert_int_equal(c.lifetime_s, LIFETIME_S_DEFAULT);
	assert_int_equal(c.network, NETWORK_UNSET);
	assert_true(c.most.memory_mib > 0 && c.most.memory_mib <= 4096);
	assert_int_equal(c.most.disk_mib, c.most.memory_mib / 2);
	assert_true(options(&c, "--lifetime", "86400"));
	assert_int_equal(c.lifetime_s, 86400);
	assert_true(options(&c, "--cpus=0.5", NULL));
	assert_true(c.most.cpus > 0.4 && c.most.cpus < 0.6);
	assert_true(options(&c, "--network", "host"));
	assert_int_equal(c.network, NETWORK_HOST);
}

static void bad_options_are_refused(void **state)
{
	static const char *const rows[][2] = {{"--lifetime", "59"}, {"--lifetime", "86401"},
		{"--lifetime", ""}, {"--lifetime", NULL}, {"--cpus", "nan"}, {"--cpus", "inf"},
		{"--cpus", "1x"}, {"--network", "Internet"}, {"--network=", NULL},
		{"--check=1", NULL}, {"--", NULL}, {"-l", "5"}, {"--lifetimes", "60"},
		{"--memory", "0x100"}, {"--listen", ""}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct config c;
		assert_false(options(&c, rows[i][0], rows[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pid_of_a_connection_file_is_read),
		cmocka_unit_test(a_connection_file_that_is_none_has_no_pid),
		cmocka_unit_test(the_name_of_a_quick_tunnel_is_found),
		cmocka_unit_test(other_addresses_are_not_taken_for_it),
		cmocka_unit_test(output_can_be_read_at_any_offset_in_memory_and_in_a_file),
		cmocka_unit_test(output_beyond_its_bound_is_counted_and_leaves_no_gap),
		cmocka_unit_test(a_failing_disk_drops_output_and_counts_it),
		cmocka_unit_test(ids_that_ran_are_remembered_and_others_are_not),
		cmocka_unit_test(options_have_defaults_and_bounds),
		cmocka_unit_test(bad_options_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
