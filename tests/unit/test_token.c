/* Tokens: form, checksum, hash. */
#include "clock.h"
#include "secret.h"
#include "text.h"
#include "token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MANY 1000000

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Text and SHA-256, made by Python's zlib, hashlib and a base62 of its own. */
static const struct {
	const char *text, *hash;
} known[] = {
	{"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"8c255388742d57515601085656899d630d659f01984d9e85eb4ae8a44b803c73"},
	{"cc_live_WXYZabcdefghijklmnopqrstuvwxyz2Z7sQ6",
		"61dd3dca6608949dfd4023c7e30d05050848982213bf2cb4e0dfbfde7c21dd1f"},
	{"cc_live_00000000000000000000000000000003CLDg",
		"5080aef2d7f18db5625a9af9e1385400fbc3fc321cbd5aa5ac00ba42f612f6fe"},
	{"cc_live_Rml3kq15n7UPxcyOlr53fg70RA8VJg004PwV", NULL}, /* checksum begins with zeros */
};

static bool accepted(const char *s)
{
	return token_form_ok(s, strlen(s));
}

static void known_tokens_are_accepted_and_hash_as_elsewhere(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint8_t hash[TOKEN_HASH_BYTES];
		char hex[2 * TOKEN_HASH_BYTES + 1];
		assert_true(accepted(known[i].text));
		CLEANUP_SECRET struct secret t = secret_new(known[i].text, strlen(known[i].text));
		token_hash(&t, hash);
		hex_encode(hex, hash, sizeof hash);
		if (known[i].hash)
			assert_string_equal(hex, known[i].hash);
	}
}

static void fresh_tokens_are_accepted_and_differ(void **state)
{
	(void)state;
	char before[TOKEN_CHARS + 1] = "";
	for (int i = 0; i < 1000; i++) {
		char text[TOKEN_CHARS + 1], last4[5];
		CLEANUP_SECRET struct secret t = token_new();
		token_show(&t, text);
		token_last4(&t, last4);
		assert_true(accepted(text));
		assert_string_not_equal(text, before);
		assert_string_equal(last4, text + TOKEN_CHARS - 4);
		memcpy(before, text, sizeof text);
	}
}

static void fresh_tokens_use_every_digit_at_every_place(void **state)
{
	(void)state;
	static uint16_t seen[30][128];
	for (int i = 0; i < 5000; i++) {
		CLEANUP_SECRET struct secret t = token_new();
		for (int at = 0; at < 30; at++)
			seen[at][secret_bytes(&t)[8 + at]]++;
	}
	/* A digit is expected 80 times; to stay away altogether has odds of 10^-35. */
	for (int at = 0; at < 30; at++)
		for (const char *d = digits; *d; d++)
			assert_in_range(seen[at][(unsigned char)*d], 1, 400);
}

/* Cheap and good enough to make strings; no secret depends on it. */
static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* The checksum once more, by another way: as a number, not as text. */
static bool checksum_right(const char *s)
{
	uint64_t number = 0;
	for (int i = 38; i < TOKEN_CHARS; i++)
		number = number * 62 + (uint64_t)(strchr(digits, s[i]) - digits);
	return number == crc32_of(s, 38);
}

static void random_strings_are_accepted_only_with_the_right_checksum(void **state)
{
	(void)state;
	uint64_t seed = 1;
	char s[TOKEN_CHARS + 1] = TOKEN_PREFIX;
	long accepted_n = 0, wrong = 0;
	for (int i = 0; i < MANY; i++) {
		for (int at = 8; at < TOKEN_CHARS; at++)
			s[at] = digits[next(&seed) % 62];
		bool ok = token_form_ok(s, TOKEN_CHARS);
		accepted_n += ok;
		wrong += ok != checksum_right(s);
	}
	assert_int_equal(wrong, 0);
	assert_in_range(accepted_n, 0, 2); /* expected: 0.00002 */
}

static void every_changed_character_is_refused(void **state)
{
	(void)state;
	char s[TOKEN_CHARS + 1];
	for (int at = 0; at < TOKEN_CHARS; at++) {
		for (int c = 0; c < 256; c++) {
			strcpy(s, known[0].text);
			if ((char)c == s[at])
				continue;
			s[at] = (char)c;
			assert_false(token_form_ok(s, TOKEN_CHARS));
		}
	}
}

static void swapped_neighbours_are_refused(void **state)
{
	(void)state;
	char s[TOKEN_CHARS + 1];
	for (int at = 0; at + 1 < TOKEN_CHARS; at++) {
		strcpy(s, known[1].text);
		if (s[at] == s[at + 1])
			continue;
		char c = s[at];
		s[at] = s[at + 1];
		s[at + 1] = c;
		assert_false(accepted(s));
	}
}

static void other_forms_are_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"cc_live_",
		"cc_test_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"CC_LIVE_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"cc-live-0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kU",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUDD",
		" cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD ",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD\n",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST2s6kUD",
		"Bearer cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"ghp_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQR\xc3\xa4"
		"2S6kUD",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRST000000",
		"cc_live_0123456789ABCDEFGHIJKLMNOPQRSTzzzzzz",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(accepted(wrong[i]));
}

static void a_nul_inside_is_refused_and_nothing_is_read_behind_the_end(void **state)
{
	(void)state;
	char s[TOKEN_CHARS];
	memcpy(s, known[0].text, TOKEN_CHARS);
	assert_true(token_form_ok(s, TOKEN_CHARS)); /* no NUL behind it */
	s[20] = 0;
	assert_false(token_form_ok(s, TOKEN_CHARS));
	for (size_t n = 0; n < TOKEN_CHARS; n++)
		assert_false(token_form_ok(known[0].text, n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_tokens_are_accepted_and_hash_as_elsewhere),
		cmocka_unit_test(fresh_tokens_are_accepted_and_differ),
		cmocka_unit_test(fresh_tokens_use_every_digit_at_every_place),
		cmocka_unit_test(random_strings_are_accepted_only_with_the_right_checksum),
		cmocka_unit_test(every_changed_character_is_refused),
		cmocka_unit_test(swapped_neighbours_are_refused),
		cmocka_unit_test(other_forms_are_refused),
		cmocka_unit_test(a_nul_inside_is_refused_and_nothing_is_read_behind_the_end),
	};
	secret_init();
	return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
