/* When a counted call is over the limit: the counter stands still at it, so no row was changed. */
#include "account.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool over(uint64_t affected, int64_t limit)
{
	return over_limit(&(struct rows){.affected = affected}, limit);
}

static void a_call_that_changed_no_row_is_over(void **state)
{
	(void)state;
	assert_true(over(0, 1));
	assert_true(over(0, INT64_MAX));
}

static void the_first_and_every_counted_call_is_not(void **state)
{
	(void)state;
	assert_false(over(1, 1));
	assert_false(over(2, 2));
	assert_false(over(2, 500));
}

static void a_limit_of_0_accepts_not_even_the_first(void **state)
{
	(void)state;
	assert_true(over(1, 0));
	assert_true(over(1, -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_changed_no_row_is_over),
		cmocka_unit_test(the_first_and_every_counted_call_is_not),
		cmocka_unit_test(a_limit_of_0_accepts_not_even_the_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
