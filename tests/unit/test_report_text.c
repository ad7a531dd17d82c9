/* The weekly report, word for word. */
#include "arena.h"
#include "handlers/report_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FROM_MS 1763942400000 /* 2025-11-24 */
#define TO_MS   1764547200000 /* 2025-12-01 */
#define PERIOD  "From 2025-11-24 to 2025-12-01 (UTC): "

static void text_is(struct report_counts c, const char *want)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	c.from_ms = FROM_MS;
	c.to_ms = TO_MS;
	assert_string_equal(report_text(a, &c), want);
}

static void nothing_is_said_to_be_nothing(void **state)
{
	(void)state;
	text_is((struct report_counts){0}, PERIOD "nothing logged.");
	/* a provider whose counts are all 0 changes nothing */
	const struct report_provider none = {.name = "e2b"};
	text_is((struct report_counts){.providers_n = 1, .providers = &none},
		PERIOD "nothing logged.");
}

static void one_is_singular(void **state)
{
	(void)state;
	const struct report_count provider = {"vercel", 1}, word = {"npm", 1};
	text_is((struct report_counts){.checks = 1,
			.low = 1,
			.would_offload = 1,
			.offload_by_provider = {1, &provider},
			.offload_by_word = {1, &word}},
		PERIOD
		"1 memory check, 1 low-memory warning (1 low, 0 critical). 1 job would have been "
		"offloaded; by provider: 1 vercel; by command: 1 npm.");
	const struct report_provider p = {.name = "tunnel", .failed = 1, .run_ms = 60000};
	text_is((struct report_counts){.checks = 1, .providers_n = 1, .providers = &p}, PERIOD
		"1 memory check, no low-memory warnings. 1 job sent to a provider, 1 minute in "
		"all. tunnel: 1 job (1 failed), 1 minute. 1 failure.");
}

static void many_are_plural(void **state)
{
	(void)state;
	const struct report_count providers[] = {{"vercel", 3}, {"modal", 0}, {"e2b", 1}};
	const struct report_count words[] = {{"npm", 2}, {"cargo", 2}};
	text_is((struct report_counts){.checks = 12,
			.low = 2,
			.critical = 3,
			.would_offload = 4,
			.offload_by_provider = {3, providers},
			.offload_by_word = {2, words}},
		PERIOD
		"12 memory checks, 5 low-memory warnings (2 low, 3 critical). 4 jobs would have "
		"been offloaded; by provider: 3 vercel, 1 e2b; by command: 2 npm, 2 cargo.");
}

static void every_outcome_is_named(void **state)
{
	(void)state;
	const struct report_provider p[] = {
		{"vercel", 1, 2, 3, 4, 5, 6, 7, 8, 9, 750000, 2},
		{.name = "modal"},
		{.name = "tunnel", .succeeded = 2, .run_ms = 1000},
	};
	assert_int_equal(report_jobs(&p[0]), 45);
	text_is((struct report_counts){.providers_n = 3, .providers = p}, PERIOD
		"no memory checks. 47 jobs sent to a provider, 12.5 minutes in all. "
		"vercel: 45 jobs (1 succeeded, 2 failed, 3 timed out, 4 cancelled, 5 not started, "
		"6 ended by a provider error, 7 lost, 8 of uncertain outcome, 9 still running), "
		"12.5 minutes. tunnel: 2 jobs (2 succeeded), less than 0.1 minutes. "
		"31 failures, 2 of them probably for want of memory.");
}

static void cancelled_and_running_jobs_are_no_failures(void **state)
{
	(void)state;
	const struct report_provider p = {
		.name = "e2b", .succeeded = 1, .cancelled = 1, .running = 1};
	text_is((struct report_counts){.providers_n = 1, .providers = &p},
		PERIOD "no memory checks. 3 jobs sent to a provider, 0 minutes in all. e2b: 3 jobs "
		       "(1 succeeded, 1 cancelled, 1 still running), 0 minutes. No failures.");
}

static void watch_only_jobs_without_lists_still_count(void **state)
{
	(void)state;
	text_is((struct report_counts){.would_offload = 2},
		PERIOD "no memory checks. 2 jobs would have been offloaded.");
}

static void minutes_are_rounded_to_a_tenth(void **state)
{
	(void)state;
	static const struct {
		int64_t ms;
		double minutes;
	} rows[] = {{0, 0}, {2999, 0}, {3000, 0.1}, {60000, 1}, {63000, 1.1}, {62999, 1.0},
		{750000, 12.5}, {3600000, 60}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_true(report_minutes(rows[i].ms) == rows[i].minutes);
}

static void a_hundred_providers_and_words_fit(void **state)
{
	(void)state;
	struct report_count words[100];
	for (size_t i = 0; i < 100; i++)
		words[i] =
			(struct report_count){"abcdefghijklmnopqrstuvwxyz012345", INT64_MAX / 200};
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	struct report_counts c = {.would_offload = INT64_MAX / 2, .offload_by_word = {100, words}};
	const char *text = report_text(a, &c);
	size_t n = 0;
	while (text[n])
		n++;
	assert_true(n > 5000 && text[n - 1] == '.');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said_to_be_nothing),
		cmocka_unit_test(one_is_singular),
		cmocka_unit_test(many_are_plural),
		cmocka_unit_test(every_outcome_is_named),
		cmocka_unit_test(cancelled_and_running_jobs_are_no_failures),
		cmocka_unit_test(watch_only_jobs_without_lists_still_count),
		cmocka_unit_test(minutes_are_rounded_to_a_tenth),
		cmocka_unit_test(a_hundred_providers_and_words_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
