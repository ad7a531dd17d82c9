/* The head of a FastCGI request: whole, partial, or nothing that libfcgi may see. */
#include "bounds.h"
#include "fcgi/worker_head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct bytes {
	unsigned char b[2 * HEAD_BYTES_MAX];
	size_t n;
};

static void add(struct bytes *s, const void *p, size_t n)
{
	memcpy(s->b + s->n, p, n);
	s->n += n;
}

static void add_record(struct bytes *s, int type, int id, const void *p, size_t n, size_t padding)
{
	unsigned char h[8] = {1, (unsigned char)type, (unsigned char)(id >> 8), (unsigned char)id,
		(unsigned char)(n >> 8), (unsigned char)n, (unsigned char)padding, 0};
	static const unsigned char zeros[255];
	add(s, h, sizeof h);
	add(s, p, n);
	add(s, zeros, padding);
}

static void add_begin(struct bytes *s)
{
	static const unsigned char responder[8] = {0, 1, 1};
	add_record(s, 1, 1, responder, sizeof responder, 0);
}

/* A good head with one parameter of a long value, its parameters cut into records of `step` bytes.
 */
static void good_head(struct bytes *s, size_t value, size_t step)
{
	static unsigned char pairs[HEAD_BYTES_MAX];
	size_t n = 0;
	s->n = 0;
	pairs[n++] = 3;
	pairs[n++] = 0x80 | (unsigned char)(value >> 24);
	pairs[n++] = (unsigned char)(value >> 16);
	pairs[n++] = (unsigned char)(value >> 8);
	pairs[n++] = (unsigned char)value;
	memcpy(pairs + n, "ABC", 3);
	n += 3 + value;
	add_begin(s);
	for (size_t at = 0; at < n; at += step)
		add_record(s, 4, 1, pairs + at, n - at < step ? n - at : step, at % 7);
	add_record(s, 4, 1, "", 0, 0);
}

static void a_whole_head_is_whole_and_any_part_of_it_partial(void **state)
{
	static struct bytes s;
	(void)state;
	for (size_t step = 1; step < 300; step += 23) {
		good_head(&s, 200, step);
		for (size_t n = 0; n < s.n; n++)
			assert_int_equal(head_judge(s.b, n), HEAD_PARTIAL);
		assert_int_equal(head_judge(s.b, s.n), HEAD_WHOLE);
		add(&s, "anything", 8); /* what follows is not its business */
		assert_int_equal(head_judge(s.b, s.n), HEAD_WHOLE);
	}
}

static void a_head_over_the_bound_is_bad(void **state)
{
	static struct bytes s;
	(void)state;
	good_head(&s, HEAD_BYTES_MAX - 200, 8000);
	assert_int_equal(head_judge(s.b, s.n), HEAD_WHOLE);
	s.n = 0;
	add_begin(&s);
	while (s.n < HEAD_BYTES_MAX) {
		static const unsigned char empty_pairs[1000];
		add_record(&s, 4, 1, empty_pairs, sizeof empty_pairs, 0);
	}
	assert_int_equal(head_judge(s.b, HEAD_BYTES_MAX - 1), HEAD_PARTIAL);
	assert_int_equal(head_judge(s.b, HEAD_BYTES_MAX), HEAD_BAD);
}

/* The lengths that end a process which hands them to libfcgi. */
static void lengths_of_gigabytes_are_bad(void **state)
{
	static const unsigned char two_huge[8] = {0xc0, 0, 0, 0, 0xc0, 0, 0, 0};
	static const unsigned char most[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static struct bytes s;
	(void)state;
	const unsigned char *cases[] = {two_huge, most};
	for (int i = 0; i < 2; i++) {
		s.n = 0;
		add_begin(&s);
		add_record(&s, 4, 1, cases[i], 8, 0);
		assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
	}
}

static void what_is_not_a_head_is_bad_at_once(void **state)
{
	static struct bytes s;
	(void)state;
	assert_int_equal(head_judge((const unsigned char *)"GET / HTTP/1.0", 14), HEAD_BAD);
	assert_int_equal(head_judge((const unsigned char *)"\x02", 1), HEAD_BAD);
	assert_int_equal(head_judge((const unsigned char *)"\x01\x04", 2), HEAD_BAD);
	s.n = 0; /* a management record */
	add_record(&s, 9, 0,
		"\x0e\x00"
		"FCGI_MAX_CONNS",
		16, 0);
	assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
	s.n = 0; /* request 0 */
	add_record(&s, 1, 0, "\0\1\1\0\0\0\0\0", 8, 0);
	assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
	s.n = 0; /* a body of another size */
	add_record(&s, 1, 1, "\0\1\1\0\0\0\0", 7, 0);
	assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
}

static void records_out_of_place_are_bad(void **state)
{
	static struct bytes s;
	(void)state;
	const struct {
		int type, id;
	} cases[] = {{5, 1}, {4, 2}, {1, 1}, {9, 0}, {2, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		s.n = 0;
		add_begin(&s);
		add_record(&s, 4, 1, "\1\1ab", 4, 0);
		add_record(&s, cases[i].type, cases[i].id, "\1\1ab", 4, 0);
		assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
	}
	s.n = 0; /* padding that libfcgi would take for the next record */
	add_begin(&s);
	add_record(&s, 4, 1, "", 0, 8);
	assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
	s.n = 0; /* the parameters end within a pair */
	add_begin(&s);
	add_record(&s, 4, 1, "\1\5ab", 4, 0);
	add_record(&s, 4, 1, "", 0, 0);
	assert_int_equal(head_judge(s.b, s.n), HEAD_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_head_is_whole_and_any_part_of_it_partial),
		cmocka_unit_test(a_head_over_the_bound_is_bad),
		cmocka_unit_test(lengths_of_gigabytes_are_bad),
		cmocka_unit_test(what_is_not_a_head_is_bad_at_once),
		cmocka_unit_test(records_out_of_place_are_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
