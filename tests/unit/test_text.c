/* Encodings and strict readers of text. */
#include "arena.h"
#include "id.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CHECK_COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void base32_agrees_with_rfc_4648(void **state)
{
	static const struct {
		const char *plain, *coded;
	} rows[] = {{"", ""}, {"f", "my"}, {"fo", "mzxq"}, {"foo", "mzxw6"}, {"foob", "mzxw6yq"},
		{"fooba", "mzxw6ytb"}, {"foobar", "mzxw6ytboi"}};
	char out[32];
	uint8_t back[16];
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(rows); i++) {
		base32_encode(out, (const uint8_t *)rows[i].plain, strlen(rows[i].plain));
		assert_string_equal(out, rows[i].coded);
		assert_true(base32_decode(back, strlen(rows[i].plain), rows[i].coded));
		assert_memory_equal(back, rows[i].plain, strlen(rows[i].plain));
	}
}

static void base32_refuses_what_encoding_never_gives(void **state)
{
	static const struct {
		const char *text;
		size_t n;
	} rows[] = {{"m", 1}, {"MY", 1}, {"my=", 1}, {"mz", 1}, {"m1", 1}, {"myy", 1}, {"my", 2},
		{"", 1}, {"my", 0}};
	uint8_t back[16];
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(rows); i++)
		assert_false(base32_decode(back, rows[i].n, rows[i].text));
}

static void ids_come_back_and_sort_by_age(void **state)
{
	struct id a = id_new(), b;
	char text[ID_TEXT_SIZE];
	(void)state;
	assert_true(id_parse(id_text(text, "job", a), "job", &b));
	assert_true(id_equal(a, b));
	assert_int_equal(strlen(text), 4 + ID_TEXT_CHARS);
	assert_false(id_is_null(a));
	struct id c = id_new();
	assert_true(memcmp(a.b, c.b, 6) <= 0);
	assert_false(id_equal(a, c));
}

static void foreign_ids_are_refused(void **state)
{
	static const char *const rows[] = {"", "job", "job_", "key_aaaaaaaaaaaaaaaaaaaaaaaaaa",
		"job_aaaaaaaaaaaaaaaaaaaaaaaaa", "job_aaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"job_aaaaaaaaaaaaaaaaaaaaaaaaa1", "job_AAAAAAAAAAAAAAAAAAAAAAAAAA",
		"job_aaaaaaaaaaaaaaaaaaaaaaaaab", "JOB_aaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct id unused;
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(rows); i++)
		assert_false(id_parse(rows[i], "job", &unused));
}

static void base64_is_strict(void **state)
{
	static const char *const bad[] = {"a", "ab", "abc", "ab=c", "=abc", "a===", "ab c", "ab\nc",
		"abc-", "abc_", "====", "YQ=a"};
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	size_t n;
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(bad); i++)
		assert_null(base64_decode(a, bad[i], strlen(bad[i]), &n));
	assert_string_equal(base64_encode(a, "\0a\xff", 3), "AGH/");
	assert_memory_equal(base64_decode(a, "AGH/", 4, &n), "\0a\xff", 3);
	assert_int_equal(n, 3);
	assert_non_null(base64_decode(a, "", 0, &n));
	assert_int_equal(n, 0);
	assert_string_equal(base64url_encode(a, "\xfb\xff", 2), "-_8");
}

static void every_length_of_base64_comes_back(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	uint8_t bytes[100];
	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		size_t back;
		char *s = base64_encode(a, bytes, n);
		uint8_t *p = base64_decode(a, s, strlen(s), &back);
		assert_int_equal(back, n);
		assert_memory_equal(p, bytes, n);
	}
}

static void integers_have_nothing_around_them(void **state)
{
	static const char *const bad[] = {
		"", "-", "+1", " 1", "1 ", "0x1", "1.0", "99999999999999999999", "--1", "1e3"};
	int64_t v;
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(bad); i++)
		assert_false(int_parse(bad[i], INT64_MIN, INT64_MAX, &v));
	assert_true(int_parse("-7", -7, 7, &v));
	assert_int_equal(v, -7);
	assert_false(int_parse("8", -7, 7, &v));
	assert_false(int_parse("-8", -7, 7, &v));
}

static void hex_is_lower_case_and_exact(void **state)
{
	uint8_t b[2];
	char out[5];
	(void)state;
	hex_encode(out, "\x0a\xf0", 2);
	assert_string_equal(out, "0af0");
	assert_true(hex_decode(b, 2, "0af0"));
	assert_false(hex_decode(b, 2, "0AF0"));
	assert_false(hex_decode(b, 2, "0af"));
	assert_false(hex_decode(b, 2, "0af00"));
	assert_false(hex_decode(b, 2, "0a f"));
}

static void utf8_is_well_formed_or_not(void **state)
{
	static const char *const good[] = {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf",
		"\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
	static const char *const bad[] = {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41",
		"\xe0\x9f\xbf", "\xed\xa0\x80", "\xe1\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xe1\x80\xc0"};
	size_t chars;
	(void)state;
	for (size_t i = 0; i < CHECK_COUNT(good); i++) {
		assert_true(utf8_valid(good[i], strlen(good[i]), &chars));
		assert_int_equal(chars, *good[i] != 0);
	}
	for (size_t i = 0; i < CHECK_COUNT(bad); i++)
		assert_false(utf8_valid(bad[i], strlen(bad[i]), &chars));
}

static void broken_bytes_are_replaced_one_by_one(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	size_t n;
	bool replaced;
	(void)state;
	assert_string_equal(utf8_repair(a, "a\xff\xc3\xa4\xc3", 5, &n, &replaced),
		"a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd");
	assert_true(replaced);
	assert_string_equal(utf8_repair(a, "\xc3\xa4", 2, &n, &replaced), "\xc3\xa4");
	assert_false(replaced);
}

static void a_cut_never_begins_inside_a_character(void **state)
{
	(void)state;
	assert_int_equal(utf8_lead_cut((const uint8_t *)"\xa4z", 2), 1);
	assert_int_equal(utf8_lead_cut((const uint8_t *)"\x9f\x98\x80z", 4), 3);
	assert_int_equal(utf8_lead_cut((const uint8_t *)"abc", 3), 0);
	assert_int_equal(utf8_lead_cut((const uint8_t *)"\x80\x80\x80\x80", 4), 0);
	assert_int_equal(utf8_lead_cut((const uint8_t *)"", 0), 0);
}

static void names_are_short_and_plain(void **state)
{
	(void)state;
	assert_true(name_safe("a.b_c+d-9", 9));
	assert_false(name_safe("", 9));
	assert_false(name_safe("abcdefghij", 9));
	assert_false(name_safe("a b", 9));
	assert_false(name_safe("a\"b", 9));
	assert_false(name_safe("\xc3\xa4", 9));
}

static void times_are_iso_8601(void **state)
{
	char out[TIME_TEXT_SIZE];
	(void)state;
	assert_string_equal(time_text(out, 0), "1970-01-01T00:00:00.000Z");
	assert_string_equal(time_text(out, 1796169599999), "2026-12-01T23:59:59.999Z");
}

static void crc32_has_its_check_value(void **state)
{
	(void)state;
	assert_int_equal(crc32_of("123456789", 9), 0xcbf43926u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base32_agrees_with_rfc_4648),
		cmocka_unit_test(base32_refuses_what_encoding_never_gives),
		cmocka_unit_test(ids_come_back_and_sort_by_age),
		cmocka_unit_test(foreign_ids_are_refused),
		cmocka_unit_test(base64_is_strict),
		cmocka_unit_test(every_length_of_base64_comes_back),
		cmocka_unit_test(integers_have_nothing_around_them),
		cmocka_unit_test(hex_is_lower_case_and_exact),
		cmocka_unit_test(utf8_is_well_formed_or_not),
		cmocka_unit_test(broken_bytes_are_replaced_one_by_one),
		cmocka_unit_test(a_cut_never_begins_inside_a_character),
		cmocka_unit_test(names_are_short_and_plain),
		cmocka_unit_test(times_are_iso_8601),
		cmocka_unit_test(crc32_has_its_check_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
