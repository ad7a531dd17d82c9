/* Which key comes first, when it counts as sick, how long a limit is waited for, what a job costs.
 */
#include "bounds.h"
#include "health.h"
#include "job_view.h"
#include "pick.h"
#include "provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* -- order ------------------------------------------------------------------------------------- */

#define KEY(n, s, f, p)                                                                            \
	{                                                                                          \
		.c = {.name = (n)}, .state = BREAKER_##s, .first = (f), .place = (p)               \
	}

static void assert_order(const struct ranked *list, size_t n, const char *want)
{
	char got[32] = "";
	for (size_t i = 0; i < n; i++)
		got[i] = *list[i].c.name;
	assert_string_equal(got, want);
}

static void the_default_comes_first_then_places(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("c", CLOSED, false, 2), KEY("d", CLOSED, true, 3),
		KEY("a", CLOSED, false, 0), KEY("b", CLOSED, false, 1)};
	pick_rank(list, 4, -1);
	assert_order(list, 4, "dabc");
}

static void the_limited_come_after_the_well_and_the_sick_last(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", OPEN, true, 0), KEY("b", LIMITED, false, 1),
		KEY("c", CLOSED, false, 2), KEY("d", HALF_OPEN, false, 3)};
	pick_rank(list, 4, -1);
	assert_order(list, 4, "cbad");
}

static void a_sick_key_alone_is_not_left_out(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", OPEN, true, 0)};
	pick_rank(list, 1, -1);
	assert_order(list, 1, "a");
	assert_int_equal(pick_probe(list, 1, false), 1);
	assert_int_equal(pick_probe(list, 1, true), 1);
}

static void turns_go_round_and_skip_no_one(void **state)
{
	(void)state;
	static const char *const want[] = {"abcx", "bcax", "cabx", "abcx", "bcax"};
	for (int64_t turn = 0; turn < 5; turn++) {
		struct ranked list[] = {KEY("x", OPEN, false, 0), KEY("b", CLOSED, false, 2),
			KEY("a", CLOSED, false, 1), KEY("c", CLOSED, false, 3)};
		pick_rank(list, 4, turn);
		assert_order(list, 4, want[turn]);
	}
}

static void the_sick_take_turns_among_themselves(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", OPEN, false, 0), KEY("b", OPEN, false, 1)};
	pick_rank(list, 2, 7);
	assert_order(list, 2, "ba");
}

static void a_half_open_key_is_tried_where_it_would_be_first(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", HALF_OPEN, true, 1), KEY("b", CLOSED, false, 0),
		KEY("c", HALF_OPEN, false, 2)};
	pick_rank(list, 3, -1);
	assert_order(list, 3, "bac");
	assert_int_equal(pick_probe(list, 3, false), 1);
	pick_to_front(list, 1);
	assert_order(list, 3, "abc");
}

static void a_half_open_key_behind_a_well_one_is_left_alone(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", CLOSED, false, 0), KEY("b", HALF_OPEN, false, 1)};
	assert_int_equal(pick_probe(list, 2, false), 2);
	assert_int_equal(pick_probe(list, 2, true), 1); /* in turn each one's time comes */
}

static void an_open_key_is_never_tried_first(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("b", CLOSED, false, 1), KEY("a", OPEN, false, 0)};
	assert_int_equal(pick_probe(list, 2, false), 2);
	assert_int_equal(pick_probe(list, 2, true), 2);
}

static void when_all_are_sick_nobody_claims_a_try(void **state)
{
	(void)state;
	struct ranked list[] = {KEY("a", OPEN, false, 0), KEY("b", HALF_OPEN, false, 1)};
	assert_int_equal(pick_probe(list, 2, true), 2);
}

/* -- breaker ----------------------------------------------------------------------------------- */

#define NEVER ABSENT_INT

static void a_breaker_opens_after_failures_in_a_row_and_half_opens_after_a_pause(void **state)
{
	(void)state;
	struct health h = {0, NEVER, NEVER, NEVER, NEVER};
	assert_int_equal(health_breaker(&h, 1000), BREAKER_CLOSED);
	h.fails = BREAKER_FAILS - 1;
	assert_int_equal(health_breaker(&h, 1000), BREAKER_CLOSED);
	h.fails = BREAKER_FAILS;
	h.open_until = 2000;
	assert_int_equal(health_breaker(&h, 1999), BREAKER_OPEN);
	assert_int_equal(health_breaker(&h, 2000), BREAKER_HALF_OPEN);
	h.probe_until = 3000;
	assert_int_equal(health_breaker(&h, 2999), BREAKER_OPEN);
	assert_int_equal(health_breaker(&h, 3000), BREAKER_HALF_OPEN);
}

static void a_limit_ends_by_itself_and_is_no_illness(void **state)
{
	(void)state;
	struct health h = {0, NEVER, NEVER, 5000, 1};
	assert_int_equal(health_breaker(&h, 4999), BREAKER_LIMITED);
	assert_string_equal(health_word(&h), "healthy");
	assert_int_equal(health_breaker(&h, 5000), BREAKER_CLOSED);
	h.fails = BREAKER_FAILS;
	h.open_until = 9000;
	assert_int_equal(health_breaker(&h, 4999), BREAKER_OPEN);
}

static void words_of_health(void **state)
{
	(void)state;
	struct health h = {0, NEVER, NEVER, NEVER, NEVER};
	assert_string_equal(health_word(&h), "untried");
	h.fails = 1;
	assert_string_equal(health_word(&h), "untried");
	h.used_at = 7;
	assert_string_equal(health_word(&h), "healthy");
	h.fails = BREAKER_FAILS;
	assert_string_equal(health_word(&h), "sick");
}

static void only_the_provider_is_blamed_for_what_it_did(void **state)
{
	(void)state;
	static const enum err blamed[] = {ERR_UPSTREAM, ERR_UPSTREAM_UNSURE, ERR_KEY_REFUSED,
		ERR_FORBIDDEN_ADDRESS, ERR_BOX_GONE};
	size_t n = 0;
	for (enum err e = OK; e < ERR__MAX; e++)
		n += health_blames(e);
	assert_int_equal(n, sizeof blamed / sizeof blamed[0]);
	for (size_t i = 0; i < n; i++)
		assert_true(health_blames(blamed[i]));
	assert_false(health_blames(ERR_BAD_INPUT));
	assert_false(health_blames(ERR_UNSUPPORTED));
	assert_false(health_blames(ERR_UPSTREAM_LIMIT));
	assert_false(health_blames(ERR_SEALED));
}

/* -- limits ------------------------------------------------------------------------------------ */

static void a_told_time_is_waited_for_within_patience(void **state)
{
	(void)state;
	assert_int_equal(health_limit_pause(2, 1, 10000, false), 2000);
	assert_int_equal(health_limit_pause(10, 1, 10000, false), 10000);
	assert_int_equal(health_limit_pause(11, 1, 10000, false), -1);
	assert_int_equal(health_limit_pause(1, 1, 0, false), -1);
	assert_int_equal(health_limit_pause(1, 1, -500, false), -1);
	assert_int_equal(health_limit_pause(3600, 1, LIMIT_PATIENCE_MS, false), -1);
}

static void a_detour_is_taken_rather_than_a_long_wait(void **state)
{
	(void)state;
	assert_int_equal(health_limit_pause(5, 1, 60000, true), 5000);
	assert_int_equal(health_limit_pause(6, 1, 60000, true), -1);
	assert_int_equal(health_limit_pause(2, 1, 1000, true), -1);
}

static void without_a_told_time_there_are_few_tries_and_no_wait_when_others_are_there(void **state)
{
	(void)state;
	assert_int_equal(health_limit_pause(0, 1, 60000, false), 1000);
	assert_int_equal(health_limit_pause(0, 2, 60000, false), 2000);
	assert_int_equal(health_limit_pause(0, 3, 60000, false), 4000);
	assert_int_equal(health_limit_pause(0, 4, 60000, false), -1);
	assert_int_equal(health_limit_pause(0, 1, 60000, true), -1);
}

/* -- prices ------------------------------------------------------------------------------------ */

static const struct provider *named(const char *name)
{
	const struct provider *p = provider_find(name);
	assert_non_null(p);
	return p;
}

/* $0.0504 for 50400 millionths: without zeros at the end. */
static void dollars(char out[24], int64_t micros)
{
	int n = snprintf(out, 24, "$%d.%06d", (int)(micros / 1000000), (int)(micros % 1000000));
	while (n > 0 && out[n - 1] == '0')
		out[--n] = 0;
}

static void assert_tells(const struct provider *p, int64_t micros)
{
	char text[24];
	dollars(text, micros);
	const char *at = micros ? strstr(p->price, text) : p->price;
	assert_non_null(at);
	assert_false(micros && at[strlen(text)] >= '0' && at[strlen(text)] <= '9');
}

static void every_sentence_has_its_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; providers[i]; i++) {
		const struct provider *p = providers[i];
		const struct price *row = price_of(p->name);
		assert_int_equal(p->price != NULL, row != NULL);
		if (!row)
			continue;
		assert_tells(p, row->cpu);
		assert_tells(p, row->gib);
		assert_tells(p, row->flat);
		char year[5] = "";
		memcpy(year, row->as_of, 4);
		bool free = row->cpu + row->gib + row->flat == 0;
		assert_true(free || strstr(p->price, year));
		assert_true(!free || strstr(p->price, "Free"));
	}
	assert_null(price_of("nobody"));
}

static int64_t rate(const char *name, int64_t cpu, int64_t memory_mb, const char *template)
{
	struct box_spec spec = {.cpu = cpu, .memory_mb = memory_mb, .template = template};
	return price_rate(named(name), &spec);
}

static void rates_follow_the_size_that_was_asked_for(void **state)
{
	(void)state;
	assert_int_equal(rate("tunnel", 0, 0, NULL), 0);
	assert_int_equal(rate("tunnel", 8, 65536, NULL), 0);
	assert_int_equal(rate("e2b", 0, 0, NULL), 2 * 50400 + 16200 / 2);
	assert_int_equal(rate("daytona", 0, 0, NULL), 50400 + 16200);
	assert_int_equal(rate("daytona", 4, 8192, NULL), 4 * 50400 + 8 * 16200);
	/* Vercel: 2048 MB come with each processor, so memory alone decides as well. */
	assert_int_equal(rate("vercel", 0, 0, NULL), 2 * 128000 + 4 * 21200);
	assert_int_equal(rate("vercel", 4, 0, NULL), 4 * 128000 + 8 * 21200);
	assert_int_equal(rate("vercel", 0, 8192, NULL), 4 * 128000 + 8 * 21200);
	assert_int_equal(rate("vercel", 0, 8193, NULL), 5 * 128000 + 10 * 21200);
	assert_int_equal(rate("browser-use", 0, 0, NULL), 20000);
}

static void an_unknown_size_or_price_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(rate("e2b", 0, 0, "my-template"), PRICE_UNKNOWN);
	assert_int_equal(rate("daytona", 0, 4096, "my-snapshot"), PRICE_UNKNOWN);
	assert_int_equal(rate("daytona", 2, 4096, "my-snapshot"), 2 * 50400 + 4 * 16200);
	assert_int_equal(rate("modal", 0, 0, NULL), PRICE_UNKNOWN);
	assert_int_equal(rate("modal", 2, 1024, NULL), 2 * 71000 + 24000);
	assert_int_equal(rate("runloop", 2, 1024, NULL), PRICE_UNKNOWN);
	struct box_spec gpu = {.cpu = 2, .memory_mb = 1024, .gpu = "T4", .gpu_count = 1};
	assert_int_equal(price_rate(named("modal"), &gpu), PRICE_UNKNOWN);
}

/* -- estimates --------------------------------------------------------------------------------- */

#define COLUMNS 18

struct box_row {
	const char *provider, *id, *state, *created, *waited, *stopped, *rate;
};

static struct cell cell(const char *s)
{
	return (struct cell){s, s ? strlen(s) : 0};
}

static struct cost_out cost(const struct box_row *boxes, size_t n, int64_t now)
{
	struct cell cells[4 * COLUMNS] = {0};
	for (size_t i = 0; i < n; i++) {
		struct cell *row = cells + i * COLUMNS;
		row[3] = cell(boxes[i].provider);
		row[6] = cell(boxes[i].id);
		row[7] = cell(boxes[i].state);
		row[13] = cell(boxes[i].stopped);
		row[14] = cell(boxes[i].created);
		row[16] = cell(boxes[i].waited);
		row[17] = cell(boxes[i].rate);
	}
	struct rows rows = {.n = n, .columns = COLUMNS, .cells = cells};
	return cost_of(&rows, now);
}

static void assert_near(double got, double want)
{
	assert_true(got > want - 1e-9 && got < want + 1e-9);
}

static void a_cost_is_life_times_rate(void **state)
{
	(void)state;
	const struct box_row b = {"e2b", "x", "stopped", "1000", "0", "1801000", "108900"};
	struct cost_out c = cost(&b, 1, 9999999);
	assert_int_equal(c.estimate, YES);
	assert_int_equal(c.seconds, 1800);
	assert_near(c.usd, 0.05445);
	assert_near(c.usd_per_hour, 0.1089);
	assert_string_equal(c.prices_of, "2026-08");
	assert_non_null(strstr(c.note, "price list"));
}

static void a_living_sandbox_costs_until_now_and_a_wait_before_it_nothing(void **state)
{
	(void)state;
	const struct box_row b = {"vercel", "x", "running", "1000", "60000", NULL, "340800"};
	struct cost_out c = cost(&b, 1, 1000 + 60000 + 3600000);
	assert_int_equal(c.seconds, 3600);
	assert_near(c.usd, 0.3408);
	assert_non_null(strstr(c.note, "At most"));
}

static void failed_attempts_cost_nothing(void **state)
{
	(void)state;
	const struct box_row b[] = {{"e2b", NULL, "absent", "1000", "0", NULL, "108900"},
		{"tunnel", "x", "stopped", "2000", "0", "12000", "0"}};
	struct cost_out c = cost(b, 2, 99999);
	assert_int_equal(c.seconds, 10);
	assert_near(c.usd, 0);
	assert_non_null(strstr(c.note, "Free"));
}

static void an_unknown_price_makes_the_sum_unknown(void **state)
{
	(void)state;
	const struct box_row b = {"modal", "x", "stopped", "1000", NULL, "2000", NULL};
	struct cost_out c = cost(&b, 1, 99999);
	assert_true(isnan(c.usd) && isnan(c.usd_per_hour));
	assert_int_equal(c.seconds, 1);
	assert_non_null(strstr(c.note, "not known"));
}

static void a_sandbox_that_may_exist_makes_the_sum_unknown(void **state)
{
	(void)state;
	const struct box_row b[] = {{"e2b", NULL, "unsure", "1000", "0", NULL, "108900"},
		{"tunnel", "x", "stopped", "2000", "0", "12000", "0"}};
	struct cost_out c = cost(b, 2, 99999);
	assert_true(isnan(c.usd));
	assert_near(c.usd_per_hour, 0);
	assert_non_null(strstr(c.note, "not known yet"));
}

static void without_an_attempt_there_is_no_cost(void **state)
{
	(void)state;
	struct cost_out c = cost(NULL, 0, 99999);
	assert_near(c.usd, 0);
	assert_true(isnan(c.usd_per_hour));
	assert_int_equal(c.seconds, 0);
	assert_null(c.prices_of);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_comes_first_then_places),
		cmocka_unit_test(the_limited_come_after_the_well_and_the_sick_last),
		cmocka_unit_test(a_sick_key_alone_is_not_left_out),
		cmocka_unit_test(turns_go_round_and_skip_no_one),
		cmocka_unit_test(the_sick_take_turns_among_themselves),
		cmocka_unit_test(a_half_open_key_is_tried_where_it_would_be_first),
		cmocka_unit_test(a_half_open_key_behind_a_well_one_is_left_alone),
		cmocka_unit_test(an_open_key_is_never_tried_first),
		cmocka_unit_test(when_all_are_sick_nobody_claims_a_try),
		cmocka_unit_test(
			a_breaker_opens_after_failures_in_a_row_and_half_opens_after_a_pause),
		cmocka_unit_test(a_limit_ends_by_itself_and_is_no_illness),
		cmocka_unit_test(words_of_health),
		cmocka_unit_test(only_the_provider_is_blamed_for_what_it_did),
		cmocka_unit_test(a_told_time_is_waited_for_within_patience),
		cmocka_unit_test(a_detour_is_taken_rather_than_a_long_wait),
		cmocka_unit_test(
			without_a_told_time_there_are_few_tries_and_no_wait_when_others_are_there),
		cmocka_unit_test(every_sentence_has_its_numbers),
		cmocka_unit_test(rates_follow_the_size_that_was_asked_for),
		cmocka_unit_test(an_unknown_size_or_price_is_unknown),
		cmocka_unit_test(a_cost_is_life_times_rate),
		cmocka_unit_test(a_living_sandbox_costs_until_now_and_a_wait_before_it_nothing),
		cmocka_unit_test(failed_attempts_cost_nothing),
		cmocka_unit_test(an_unknown_price_makes_the_sum_unknown),
		cmocka_unit_test(a_sandbox_that_may_exist_makes_the_sum_unknown),
		cmocka_unit_test(without_an_attempt_there_is_no_cost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
