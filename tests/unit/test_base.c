/* Arena, buffer, allocator, errors, log, secrets: what everything stands on. */
#include "alloc.h"
#include "arena.h"
#include "block.h"
#include "bounds.h"
#include "buf.h"
#include "err.h"
#include "log.h"
#include "secret.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The exit status of fn in a process of its own. */
static int status_of(void (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(STDERR_FILENO);
		fn();
		_exit(0);
	}
	int status = 0;
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void arena_memory_is_zeroed_and_aligned(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	(void)state;
	for (size_t n = 0; n < 3000; n += 7) {
		unsigned char *p = arena_take(a, n);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xff, n);
	}
}

static void overfill_arena(void)
{
	struct arena *a = arena_new(10000);
	for (int i = 0; i < 100; i++)
		(void)arena_take(a, 1000);
}

static void a_full_arena_ends_the_process(void **state)
{
	(void)state;
	assert_int_equal(status_of(overfill_arena), MEMORY_EXIT);
}

static void ask_for_too_much(void)
{
	void *volatile p = must(malloc(SIZE_MAX / 4));
	free(p);
}

static void a_failed_allocation_ends_the_process(void **state)
{
	(void)state;
#ifdef CC_SANITIZED
	skip(); /* the sanitizer's own allocator answers differently */
#endif
	assert_int_equal(status_of(ask_for_too_much), MEMORY_EXIT);
}

static void a_buffer_remembers_that_it_overflowed(void **state)
{
	CLEANUP_BUF struct buf b;
	(void)state;
	buf_init(&b, 10);
	buf_str(&b, "12345");
	buf_printf(&b, "%d", 67890);
	assert_false(b.full);
	assert_string_equal(b.p, "1234567890");
	buf_char(&b, 'x');
	assert_true(b.full);
	assert_string_equal(b.p, "1234567890");
	buf_reset(&b);
	buf_str(&b, "again");
	assert_string_equal(b.p, "again");
}

static void every_error_has_a_whole_row(void **state)
{
	(void)state;
	for (enum err e = OK + 1; e < ERR__MAX; e++) {
		const struct err_row *row = err_row(e);
		assert_true(strlen(row->code) > 2);
		assert_true(strlen(row->text) > 10);
		assert_true(row->http >= 400 && row->http < 600);
		for (enum err other = OK + 1; other < e; other++)
			assert_string_not_equal(row->code, err_row(other)->code);
	}
}

static void a_stale_detail_is_not_shown_for_another_error(void **state)
{
	(void)state;
	assert_int_equal((fail)(ERR_BAD_INPUT, "cmd", "at most %d", 5), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "cmd");
	assert_string_equal(fault_of(ERR_BAD_INPUT)->detail, "at most 5");
	assert_string_equal(fault_of(ERR_BUSY)->detail, "");
}

static void read_line(void (*log)(void), char *out, size_t n)
{
	int ends[2], saved = dup(STDERR_FILENO);
	assert_int_equal(pipe(ends), 0);
	(void)dup2(ends[1], STDERR_FILENO);
	log();
	(void)dup2(saved, STDERR_FILENO);
	ssize_t k = read(ends[0], out, n - 1);
	out[k > 0 ? k : 0] = 0;
	(void)close(ends[0]);
	(void)close(ends[1]);
	(void)close(saved);
}

static void log_a_bad_name(void)
{
	log_event(EV_REQUEST, LOG_NAME("provider", "a b\"c"), LOG_INT("ms", -3));
}

static void unsafe_names_never_reach_the_log(void **state)
{
	char line[2048];
	(void)state;
	read_line(log_a_bad_name, line, sizeof line);
	assert_non_null(strstr(line, "\"provider\":\"?\""));
	assert_non_null(strstr(line, "\"ms\":-3"));
	assert_null(strstr(line, "a b"));
	assert_int_equal(line[strlen(line) - 1], '\n');
}

static void secrets_are_whole_and_gone(void **state)
{
	struct secret s = secret_new("a\0b", 3);
	(void)state;
	assert_int_equal(s.n, 3);
	assert_memory_equal(secret_bytes(&s), "a\0b", 3);
	secret_done(&s);
	assert_false(secret_given(&s));
	secret_done(&s);
}

static int begun, ended;

static void count_begin(void *pool)
{
	(void)pool;
	begun++;
}

static void count_end(void *pool)
{
	(void)pool;
	ended++;
}

static void nested_brackets_count_once(void **state)
{
	static const struct block_hooks hooks = {count_begin, count_end};
	(void)state;
	block_join(&hooks, NULL);
	block_begin();
	block_begin();
	block_end();
	assert_int_equal(ended, 0);
	block_end();
	assert_int_equal(begun, 1);
	assert_int_equal(ended, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
		cmocka_unit_test(a_full_arena_ends_the_process),
		cmocka_unit_test(a_failed_allocation_ends_the_process),
		cmocka_unit_test(a_buffer_remembers_that_it_overflowed),
		cmocka_unit_test(every_error_has_a_whole_row),
		cmocka_unit_test(a_stale_detail_is_not_shown_for_another_error),
		cmocka_unit_test(unsafe_names_never_reach_the_log),
		cmocka_unit_test(secrets_are_whole_and_gone),
		cmocka_unit_test(nested_brackets_count_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
