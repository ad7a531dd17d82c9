/*
 * The JSON gate: tests/json-suite/cases.txt, and the bounds, which are too long for a line.
 *
 * Called with the word "judge" this program reads one text from its input and prints "y" or "n",
 * for tests/json-suite/public.test.mjs.
 */
#include "buf.h"
#include "json.h"
#include "bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES_LEAST 300 /* a list that was cut by mistake must not pass */

/* Undoes %HH in place and returns the length. */
static size_t unescape(char *s)
{
	char *out = s, hex[3] = "";
	for (const char *in = s; *in; in++) {
		if (*in != '%') {
			*out++ = *in;
			continue;
		}
		memcpy(hex, in + 1, 2);
		*out++ = (char)strtol(hex, NULL, 16);
		in += 2;
	}
	return (size_t)(out - s);
}

/* A copy that ends where the text ends, so that a sanitizer sees a read behind it. */
static enum err gate_exactly(const char *text, size_t n)
{
	char *copy = malloc(n + !n);
	memcpy(copy, text, n);
	enum err e = json_gate(copy, n);
	free(copy);
	return e;
}

static void every_case_of_the_list_gets_its_verdict(void **state)
{
	(void)state;
	FILE *f = fopen(SOURCE_DIR "/tests/json-suite/cases.txt", "r");
	assert_non_null(f);
	char line[512], name[64];
	unsigned cases = 0, bad = 0;
	while (fgets(line, sizeof line, f)) {
		int at = 0;
		line[strcspn(line, "\n")] = 0;
		if (*line == '#' || sscanf(line + 1, "%63s%n", name, &at) != 1)
			continue;
		char *text = line + 1 + at + 1;
		size_t n = unescape(text);
		enum err want = *line == 'y' ? OK : ERR_BAD_JSON;
		if (gate_exactly(text, n) != want) {
			print_error("%s must be %s\n", name, want ? "refused" : "accepted");
			bad++;
		}
		cases++;
	}
	(void)fclose(f);
	assert_true(cases >= CASES_LEAST);
	assert_int_equal(bad, 0);
}

static void what_the_gate_accepts_is_parsed_and_printed_as_the_same_value(void **state)
{
	(void)state;
	FILE *f = fopen(SOURCE_DIR "/tests/json-suite/cases.txt", "r");
	assert_non_null(f);
	char line[512], name[64];
	while (fgets(line, sizeof line, f)) {
		int at = 0;
		line[strcspn(line, "\n")] = 0;
		if (*line != 'y' || sscanf(line + 1, "%63s%n", name, &at) != 1)
			continue;
		char *text = line + 1 + at + 1;
		size_t n = unescape(text);
		CLEANUP_JSON struct json *root = NULL, *again = NULL;
		CLEANUP_BUF struct buf first, second;
		buf_init(&first, 4096);
		buf_init(&second, 4096);
		assert_int_equal(json_parse(text, n, &root), OK);
		json_print(root, &first);
		assert_int_equal(json_parse(first.p, first.n, &again), OK);
		json_print(again, &second);
		assert_string_equal(first.p, second.p);
	}
	(void)fclose(f);
}

static void every_cut_of_a_document_is_refused(void **state)
{
	(void)state;
	static const char text[] = "{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\xe2\x82\xac\",true,"
				   "false,null],\"b\":{}}";
	for (size_t n = 0; n < sizeof text - 1; n++)
		assert_int_equal(gate_exactly(text, n), ERR_BAD_JSON);
	assert_int_equal(gate_exactly(text, sizeof text - 1), OK);
}

static void repeat(struct buf *b, const char *s, size_t n)
{
	while (n--)
		buf_str(b, s);
}

static enum err gate_of(struct buf *b)
{
	assert_false(b->full);
	enum err e = gate_exactly(b->p, b->n);
	buf_done(b);
	return e;
}

static enum err nested(size_t levels, const char *open, const char *inner, const char *close)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	repeat(&b, open, levels);
	buf_str(&b, inner);
	repeat(&b, close, levels);
	return gate_of(&b);
}

static void depth_is_accepted_up_to_its_bound(void **state)
{
	(void)state;
	assert_int_equal(nested(JSON_DEPTH_MAX, "[", "", "]"), OK);
	assert_int_equal(nested(JSON_DEPTH_MAX, "[", "1", "]"), OK);
	assert_int_equal(nested(JSON_DEPTH_MAX, "{\"a\":", "1", "}"), OK);
}

static void depth_above_its_bound_is_refused(void **state)
{
	(void)state;
	assert_int_equal(nested(JSON_DEPTH_MAX + 1, "[", "", "]"), ERR_BAD_JSON);
	assert_string_equal(fault_of(ERR_BAD_JSON)->detail, "it is nested deeper than 32 levels");
	assert_int_equal(nested(JSON_DEPTH_MAX + 1, "{\"a\":", "1", "}"), ERR_BAD_JSON);
	assert_int_equal(nested(100000, "[", "", "]"), ERR_BAD_JSON);
	assert_int_equal(nested(100000, "[", "", ""), ERR_BAD_JSON);
}

static void a_document_of_the_full_depth_is_parsed(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	CLEANUP_JSON struct json *root = NULL;
	buf_init(&b, 4096);
	repeat(&b, "{\"a\":", JSON_DEPTH_MAX);
	buf_str(&b, "1");
	repeat(&b, "}", JSON_DEPTH_MAX);
	assert_int_equal(json_parse(b.p, b.n, &root), OK);
}

/* A list of so many zeros; the list is a value too. */
static enum err zeros(size_t n)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_str(&b, "[0");
	repeat(&b, ",0", n - 1);
	buf_str(&b, "]");
	return gate_of(&b);
}

static void the_number_of_values_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(zeros(JSON_VALUES_MAX - 1), OK);
	assert_int_equal(zeros(JSON_VALUES_MAX), ERR_BAD_JSON);
	assert_string_equal(fault_of(ERR_BAD_JSON)->detail, "there are more than 10000 values");
}

static enum err members(size_t n, const char *last)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_char(&b, '{');
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "\"name%zu\":0,", i);
	buf_printf(&b, "\"%s\":0}", last);
	return gate_of(&b);
}

static void a_name_that_appears_twice_is_found_among_thousands(void **state)
{
	(void)state;
	assert_int_equal(members(JSON_VALUES_MAX - 2, "other"), OK);
	assert_int_equal(members(JSON_VALUES_MAX - 2, "name0"), ERR_BAD_JSON);
	assert_int_equal(members(JSON_VALUES_MAX - 2, "\\u006eame5000"), ERR_BAD_JSON);
}

static enum err digits(size_t n)
{
	struct buf b;
	buf_init(&b, 1024);
	buf_str(&b, "0.");
	repeat(&b, "3", n - 2);
	return gate_of(&b);
}

static void the_length_of_a_number_is_bounded(void **state)
{
	(void)state;
	assert_int_equal(digits(JSON_NUMBER_CHARS_MAX), OK);
	assert_int_equal(digits(JSON_NUMBER_CHARS_MAX + 1), ERR_BAD_JSON);
	assert_string_equal(fault_of(ERR_BAD_JSON)->detail,
		"at byte 0: this number has more than 128 characters");
}

static void a_text_longer_than_the_parser_counts_is_refused_unread(void **state)
{
	(void)state;
	assert_int_equal(json_gate("", (size_t)INT32_MAX + 1), ERR_BAD_JSON);
}

static void the_detail_names_the_byte_and_repeats_nothing_sent(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct {
		const char *text, *detail;
	} cases[] = {
		{"", "at byte 0: the text ends too early"},
		{"{\"canary\":", "at byte 10: the text ends too early"},
		{"{\"canary\" 1}", "at byte 10: a colon is missing"},
		{"{\"canary\":1,\"canary\":2}", "at byte 13: this name appears twice in one object"},
		{"[canary]", "at byte 1: a value was expected"},
		{"[1 canary]", "at byte 3: a comma or ] is missing"},
		{"{\"a\":1 canary}", "at byte 7: a comma or } is missing"},
		{"{canary:1}", "at byte 1: a name in double quotes is missing"},
		{"[\"canary\\q\"]", "at byte 8: this escape is not allowed"},
		{"[\"canary\n\"]", "at byte 8: control characters must be escaped"},
		{"[\"\xff" "canary\"]", "at byte 2: a string that begins or goes on here is not UTF-8"},
		{"[]canary", "at byte 2: nothing may follow the value"},
		{"[9007199254740992]", "at byte 1: integers must lie within 2^53 - 1 of zero"},
		{"[1e999]", "at byte 1: this number is too large"},
		{"[1.]", "at byte 3: digits must follow the point"},
		{"[1e]", "at byte 3: digits must follow the exponent's sign"},
		{"[-]", "at byte 2: digits must follow the sign"},
		{"\xef\xbb\xbf[]", "at byte 0: a byte order mark is not allowed"},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(gate_exactly(cases[i].text, strlen(cases[i].text)), ERR_BAD_JSON);
		assert_string_equal(fault_of(ERR_BAD_JSON)->detail, cases[i].detail);
		assert_string_equal(fault_of(ERR_BAD_JSON)->field, "");
	}
}

static int judge(void)
{
	static char text[1 << 20];
	return puts(json_gate(text, fread(text, 1, sizeof text, stdin)) ? "n" : "y") < 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "judge") == 0)
		return judge();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_of_the_list_gets_its_verdict),
		cmocka_unit_test(what_the_gate_accepts_is_parsed_and_printed_as_the_same_value),
		cmocka_unit_test(every_cut_of_a_document_is_refused),
		cmocka_unit_test(depth_is_accepted_up_to_its_bound),
		cmocka_unit_test(depth_above_its_bound_is_refused),
		cmocka_unit_test(a_document_of_the_full_depth_is_parsed),
		cmocka_unit_test(the_number_of_values_is_bounded),
		cmocka_unit_test(a_name_that_appears_twice_is_found_among_thousands),
		cmocka_unit_test(the_length_of_a_number_is_bounded),
		cmocka_unit_test(a_text_longer_than_the_parser_counts_is_refused_unread),
		cmocka_unit_test(the_detail_names_the_byte_and_repeats_nothing_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
