/* Shapes: decoding and encoding every kind of field. */
#include "arena.h"
#include "buf.h"
#include "json.h"
#include "shape.h"
#include "tests/unit/test_shape_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct arena *arena;
	struct kinds k;
	struct json *root;
	char out[4096];
};

static int begin(void **state)
{
	static struct fixture f;
	f = (struct fixture){.arena = arena_new(1 << 20)};
	shape_init(&kinds_shape, &f.k);
	*state = &f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;
	shape_done(&kinds_shape, &f->k);
	json_free(f->root);
	arena_free(f->arena);
	return 0;
}

static enum err decode(struct fixture *f, const char *text)
{
	shape_done(&kinds_shape, &f->k);
	json_free(f->root);
	f->root = NULL;
	assert_int_equal(json_parse(text, strlen(text), &f->root), OK);
	return shape_decode(&kinds_shape, f->root, f->arena, &f->k);
}

/* Decodes {"count":1, and the member}. */
static enum err decode_member(struct fixture *f, const char *member)
{
	return decode(f, arena_printf(f->arena, "{\"count\":1,%s}", member));
}

static const char *encode(struct fixture *f, const struct shape *s, const void *in)
{
	struct buf b;
	buf_init(&b, sizeof f->out - 1);
	struct jw w = jw_new(&b);
	shape_encode(s, in, &w);
	assert_false(b.full);
	memcpy(f->out, b.p, b.n + 1);
	buf_done(&b);
	return f->out;
}

/* -- accepted ---------------------------------------------------------------------------------- */

static void every_kind_is_decoded(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		decode(f,
			"{\"count\":60,\"text\":\"h\\u00e9llo\",\"bytes\":\"abcde\",\"word\":\"\","
			"\"odd\":\"...\",\"token\":\"secret\",\"any\":-9007199254740991,"
			"\"near\":-5,\"ratio\":0.5,\"real\":1e300,\"flag\":false,"
			"\"mode\":\"base64\",\"one\":{\"name\":\"a\",\"size\":0},"
			"\"parts\":[{\"name\":\"b\"},{\"name\":\"c\",\"size\":9}],"
			"\"tags\":[\"x\",\"\"],\"env\":{\"A\":\"1\",\"_b2\":\"\"}}"),
		OK);
	const struct kinds *k = &f->k;
	const struct part *one = k->one, *parts = k->parts.items;
	assert_int_equal(k->count, 60);
	assert_string_equal(k->text, "h\xc3\xa9llo");
	assert_string_equal(k->bytes, "abcde");
	assert_string_equal(k->word, "");
	assert_string_equal(k->odd, "...");
	assert_int_equal(k->token.n, 6);
	assert_memory_equal(k->token.p, "secret", 6);
	assert_int_equal(k->any, -9007199254740991);
	assert_int_equal(k->near, -5);
	assert_true(k->ratio == 0.5 && k->real == 1e300);
	assert_int_equal(k->flag, NO);
	assert_int_equal(k->mode, 1);
	assert_string_equal(one->name, "a");
	assert_int_equal(one->size, 0);
	assert_false(secret_given(&one->token));
	assert_int_equal(k->parts.n, 2);
	assert_string_equal(parts[0].name, "b");
	assert_int_equal(parts[0].size, ABSENT_INT);
	assert_int_equal(parts[1].size, 9);
	assert_int_equal(k->tags.n, 2);
	assert_string_equal(((const char **)k->tags.items)[0], "x");
	assert_int_equal(k->env.n, 2);
	assert_string_equal(k->env.items[1].name, "_b2");
	assert_string_equal(k->env.items[0].value, "1");
}

static void assert_absent(const struct kinds *k)
{
	assert_null(k->text);
	assert_null(k->bytes);
	assert_null(k->word);
	assert_null(k->odd);
	assert_false(secret_given(&k->token));
	assert_int_equal(k->any, ABSENT_INT);
	assert_int_equal(k->near, ABSENT_INT);
	assert_true(isnan(k->ratio) && isnan(k->real));
	assert_int_equal(k->flag, ABSENT_BOOL);
	assert_int_equal(k->mode, -1);
	assert_int_equal(k->when, ABSENT_INT);
	assert_null(k->one);
	assert_null(k->parts.items);
	assert_null(k->tags.items);
	assert_null(k->env.items);
	assert_null(k->extra);
}

static void what_is_not_sent_is_absent(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(decode(f, "{\"count\":1}"), OK);
	assert_absent(&f->k);
}

static void null_counts_as_absent(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		decode_member(f,
			"\"text\":null,\"bytes\":null,\"word\":null,\"odd\":null,\"token\":null,"
			"\"any\":null,\"near\":null,\"ratio\":null,\"real\":null,\"flag\":null,"
			"\"mode\":null,\"one\":null,\"parts\":null,\"tags\":null,\"env\":null"),
		OK);
	assert_absent(&f->k);
}

static void bounds_themselves_are_accepted(void **state)
{
	static const char *const members[] = {
		"\"text\":\"ab\"",
		"\"text\":\"abcde\"",
		"\"text\":"
		"\"\\ud83d\\ude00\\ud83d\\ude00\\ud83d\\ude00\\ud83d\\ude00\\ud83d\\ude00\"",
		"\"bytes\":\"\\u00e9\"",
		"\"bytes\":\"\\ud83d\\ude00x\"",
		"\"token\":\"abcd\"",
		"\"token\":\"abcdefghijklmnop\"",
		"\"any\":9007199254740991",
		"\"near\":0",
		"\"near\":-0.0",
		"\"near\":-5e0",
		"\"ratio\":0",
		"\"ratio\":1",
		"\"real\":-1e308",
		"\"flag\":true",
		"\"parts\":[{\"name\":\"12345678\"},{\"name\":\"b\",\"size\":99},{\"name\":\"c\","
		"\"size\":0}]",
		"\"tags\":[]",
		"\"tags\":[\"1234\",\"\\ud83d\\ude00\",\"\"]",
		"\"env\":{}",
		"\"env\":{\"A\":\"1234\",\"B\":\"\"}",
	};
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		assert_int_equal(decode_member(*state, members[i]), OK);
}

static void whole_numbers_are_integers_however_written(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(decode(f, "{\"count\":60.0}"), OK);
	assert_int_equal(f->k.count, 60);
	assert_int_equal(decode(f, "{\"count\":6e1}"), OK);
	assert_int_equal(f->k.count, 60);
	assert_int_equal(decode(f, "{\"count\":6000E-2}"), OK);
	assert_int_equal(f->k.count, 60);
}

static void an_empty_list_is_not_an_absent_one(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(decode_member(f, "\"tags\":[],\"env\":{}"), OK);
	assert_non_null(f->k.tags.items);
	assert_non_null(f->k.env.items);
	assert_int_equal(f->k.tags.n + f->k.env.n, 0);
}

/* -- refused ----------------------------------------------------------------------------------- */

#define LONG_NAME "x234567890123456789012345678901234567890123456789"

/* clang-format off */
static const struct {
	const char *member, *field, *detail;
} refused[] = {
	/* wrong types */
	{"\"text\":1", "text", "must be a string of 2 to 5 characters, not an integer"},
	{"\"text\":1.5", "text", "must be a string of 2 to 5 characters, not a number"},
	{"\"text\":true", "text", "must be a string of 2 to 5 characters, not a boolean"},
	{"\"text\":[]", "text", "must be a string of 2 to 5 characters, not a list"},
	{"\"text\":{}", "text", "must be a string of 2 to 5 characters, not an object"},
	{"\"bytes\":[\"ab\"]", "bytes", "must be a string of 2 to 5 bytes, not a list"},
	{"\"word\":0", "word", "must be a string, not an integer"},
	{"\"token\":1234", "token", "must be a string of 4 to 16 bytes, not an integer"},
	{"\"token\":[\"abcd\"]", "token", "must be a string of 4 to 16 bytes, not a list"},
	{"\"any\":\"1\"", "any", "must be an integer, not a string"},
	{"\"any\":1.5", "any", "must be an integer"},
	{"\"any\":1e20", "any", "must be an integer"},
	{"\"any\":true", "any", "must be an integer, not a boolean"},
	{"\"near\":\"-1\"", "near", "must be an integer from -5 to 0, not a string"},
	{"\"near\":-0.5", "near", "must be an integer from -5 to 0"},
	{"\"near\":[]", "near", "must be an integer from -5 to 0, not a list"},
	{"\"ratio\":\"0.5\"", "ratio", "must be a number from 0 to 1, not a string"},
	{"\"ratio\":{}", "ratio", "must be a number from 0 to 1, not an object"},
	{"\"real\":false", "real", "must be a number, not a boolean"},
	{"\"flag\":0", "flag", "must be true or false, not an integer"},
	{"\"flag\":\"true\"", "flag", "must be true or false, not a string"},
	{"\"mode\":1", "mode", "must be one of: plain, base64, not an integer"},
	{"\"mode\":[\"plain\"]", "mode", "must be one of: plain, base64, not a list"},
	{"\"one\":[]", "one", "must be an object, not a list"},
	{"\"one\":\"{}\"", "one", "must be an object, not a string"},
	{"\"parts\":{}", "parts", "must be a list of 1 to 3 elements, not an object"},
	{"\"parts\":\"a\"", "parts", "must be a list of 1 to 3 elements, not a string"},
	{"\"tags\":{}", "tags", "must be a list of 0 to 3 elements, not an object"},
	{"\"env\":[]", "env", "must be an object of 0 to 2 members, not a list"},
	{"\"env\":\"A=1\"", "env", "must be an object of 0 to 2 members, not a string"},
	/* below and above */
	{"\"text\":\"\"", "text", "must be a string of 2 to 5 characters"},
	{"\"text\":\"a\"", "text", "must be a string of 2 to 5 characters"},
	{"\"text\":\"\\ud83d\\ude00\"", "text", "must be a string of 2 to 5 characters"},
	{"\"text\":\"abcdef\"", "text", "must be a string of 2 to 5 characters"},
	{"\"bytes\":\"a\"", "bytes", "must be a string of 2 to 5 bytes"},
	{"\"bytes\":\"\\u00e9\\u00e9\\u00e9\"", "bytes", "must be a string of 2 to 5 bytes"},
	{"\"token\":\"abc\"", "token", "must be a string of 4 to 16 bytes"},
	{"\"token\":\"abcdefghijklmnopq\"", "token", "must be a string of 4 to 16 bytes"},
	{"\"near\":-6", "near", "must be an integer from -5 to 0"},
	{"\"near\":1", "near", "must be an integer from -5 to 0"},
	{"\"near\":9007199254740991", "near", "must be an integer from -5 to 0"},
	{"\"ratio\":-0.001", "ratio", "must be a number from 0 to 1"},
	{"\"ratio\":1.001", "ratio", "must be a number from 0 to 1"},
	{"\"ratio\":1e300", "ratio", "must be a number from 0 to 1"},
	{"\"parts\":[]", "parts", "must be a list of 1 to 3 elements"},
	{"\"parts\":[{},{},{},{}]", "parts", "must be a list of 1 to 3 elements"},
	{"\"tags\":[\"\",\"\",\"\",\"\"]", "tags", "must be a list of 0 to 3 elements"},
	{"\"env\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}", "env", "must be an object of 0 to 2 members"},
	/* words and forms */
	{"\"mode\":\"\"", "mode", "must be one of: plain, base64"},
	{"\"mode\":\"Plain\"", "mode", "must be one of: plain, base64"},
	{"\"mode\":\"plain \"", "mode", "must be one of: plain, base64"},
	{"\"word\":\"aB\"", "word", "must match ^[a-z]*$"},
	{"\"odd\":\"..\"", "odd", "is not of the allowed form: Anything but two dots."},
	/* nested */
	{"\"one\":{}", "one.name", "is required"},
	{"\"one\":{\"name\":null}", "one.name", "is required"},
	{"\"one\":{\"name\":\"\"}", "one.name", "must be a string of 1 to 8 characters"},
	{"\"one\":{\"name\":\"a\",\"size\":100}", "one.size", "must be an integer from 0 to 99"},
	{"\"one\":{\"name\":\"a\",\"colour\":1}", "one.colour", "is not a known name here"},
	{"\"one\":{\"name\":\"a\",\"token\":1}", "one.token",
		"must be a string of 1 to 8 bytes, not an integer"},
	{"\"parts\":[null]", "parts[0]", "must be an object, not null"},
	{"\"parts\":[{\"name\":\"a\"},3]", "parts[1]", "must be an object, not an integer"},
	{"\"parts\":[{\"name\":\"a\"},{}]", "parts[1].name", "is required"},
	{"\"parts\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\",\"size\":-1}]", "parts[2].size",
		"must be an integer from 0 to 99"},
	{"\"parts\":[{\"name\":\"a\",\"path\":\"b\"}]", "parts[0].path", "is not a known name here"},
	{"\"tags\":[1]", "tags[0]", "must be a string of 0 to 4 bytes, not an integer"},
	{"\"tags\":[\"a\",null]", "tags[1]", "must be a string of 0 to 4 bytes, not null"},
	{"\"tags\":[\"\",\"\",\"\\ud83d\\ude00x\"]", "tags[2]", "must be a string of 0 to 4 bytes"},
	{"\"env\":{\"A\":1}", "env.A", "must be a string of 0 to 4 bytes, not an integer"},
	{"\"env\":{\"A\":null}", "env.A", "must be a string of 0 to 4 bytes, not null"},
	{"\"env\":{\"A\":\"\",\"PATH\":\"12345\"}", "env.PATH", "must be a string of 0 to 4 bytes"},
	{"\"env\":{\"1A\":\"\"}", "env.1A", "must match ^[A-Za-z_][A-Za-z0-9_]*$"},
	{"\"env\":{\"A B\":\"\"}", "env.(a name with other characters)",
		"must match ^[A-Za-z_][A-Za-z0-9_]*$"},
	{"\"env\":{\"\":\"\"}", "env", "each name must have 1 to 128 bytes"},
	/* unknown names; those that are not harmless are not repeated */
	{"\"colour\":1", "colour", "is not a known name here"},
	{"\"colour\":null", "colour", "is not a known name here"},
	{"\"Text\":\"ab\"", "Text", "is not a known name here"},
	{"\"\":1", "(a name with other characters)", "is not a known name here"},
	{"\"a b\":1", "(a name with other characters)", "is not a known name here"},
	{"\"<b>\":1", "(a name with other characters)", "is not a known name here"},
	{"\"caf\\u00e9\":1", "(a name with other characters)", "is not a known name here"},
	{"\"a\\nb\":1", "(a name with other characters)", "is not a known name here"},
	{"\"%s\":1", "(a name with other characters)", "is not a known name here"},
	{"\"" LONG_NAME "\":1", "(a name with other characters)", "is not a known name here"},
	/* only encoded */
	{"\"when\":1", "when", "is not a known name here"},
	{"\"extra\":{}", "extra", "is not a known name here"},
};
/* clang-format on */

static void every_refusal_names_the_field_and_the_bound(void **state)
{
	unsigned bad = 0;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		enum err e = decode_member(*state, refused[i].member);
		const struct fault *fault = fault_of(ERR_BAD_INPUT);
		if (e == ERR_BAD_INPUT && strcmp(fault->field, refused[i].field) == 0 &&
			strcmp(fault->detail, refused[i].detail) == 0)
			continue;
		print_error("%s: %d %s: %s\n", refused[i].member, e, fault->field, fault->detail);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static void a_required_member_may_not_be_missing_or_null(void **state)
{
	static const char *const texts[] = {"{}", "{\"count\":null}", "{\"flag\":true}", "null"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(decode(*state, texts[i]), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "count");
		assert_string_equal(fault_of(ERR_BAD_INPUT)->detail, "is required");
	}
}

static void arguments_that_are_no_object_are_refused(void **state)
{
	static const char *const texts[] = {"[]", "\"count\"", "1", "true", "[{\"count\":1}]"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(decode(*state, texts[i]), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "");
	}
	assert_string_equal(fault_of(ERR_BAD_INPUT)->detail, "must be an object, not a list");
}

static void a_name_sent_twice_does_not_reach_the_decoder(void **state)
{
	(void)state;
	static const char text[] = "{\"count\":1,\"count\":2}";
	struct json *root;
	assert_int_equal(json_parse(text, sizeof text - 1, &root), ERR_BAD_JSON);
}

static void a_name_of_a_map_too_long_is_refused(void **state)
{
	struct fixture *f = *state;
	char name[130] = "";
	memset(name, 'A', 128);
	assert_int_equal(
		decode_member(f, arena_printf(f->arena, "\"env\":{\"%s\":\"\"}", name)), OK);
	name[128] = 'A';
	assert_int_equal(decode_member(f, arena_printf(f->arena, "\"env\":{\"%s\":\"\"}", name)),
		ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->detail, "each name must have 1 to 128 bytes");
}

static void a_failed_decode_leaves_no_secret_and_nothing_half_done(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		decode_member(f,
			"\"token\":\"canary\",\"one\":{\"name\":\"a\",\"token\":\"canary\"},"
			"\"parts\":[{\"name\":\"a\",\"token\":\"canary\"},"
			"{\"name\":\"b\",\"token\":\"too long canary\"}]"),
		ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "parts[1].token");
	assert_absent(&f->k);
}

/* -- secrets ----------------------------------------------------------------------------------- */

static void done_wipes_secrets_at_every_level_and_may_be_repeated(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		decode_member(f,
			"\"token\":\"canary\",\"one\":{\"name\":\"a\",\"token\":\"canary\"},"
			"\"parts\":[{\"name\":\"a\"},{\"name\":\"b\",\"token\":\"canary\"}]"),
		OK);
	const struct part *one = f->k.one, *parts = f->k.parts.items;
	assert_true(secret_given(&one->token) && secret_given(&parts[1].token));
	for (int times = 0; times < 2; times++) {
		shape_done(&kinds_shape, &f->k);
		assert_false(secret_given(&f->k.token));
		assert_false(secret_given(&one->token));
		assert_false(secret_given(&parts[1].token));
	}
}

static void secrets_are_never_written(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		decode_member(f,
			"\"token\":\"canary\",\"one\":{\"name\":\"a\",\"token\":\"canary\"},"
			"\"parts\":[{\"name\":\"b\",\"token\":\"canary\"}]"),
		OK);
	const char *text = encode(f, &kinds_shape, &f->k);
	assert_null(strstr(text, "canary"));
	assert_null(strstr(text, "token"));
}

/* -- encoding ---------------------------------------------------------------------------------- */

static void absent_fields_are_left_out_or_null(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(encode(f, &kinds_shape, &f->k),
		"{\"text\":null,\"near\":null,\"ratio\":null,\"flag\":null,\"mode\":null,\"when\":"
		"null,"
		"\"one\":null,\"tags\":null}");
}

static void every_kind_is_encoded_in_declared_order(void **state)
{
	struct fixture *f = *state;
	struct part parts[] = {{.name = "a", .size = 1}, {.name = "b", .size = ABSENT_INT}};
	const char *tags[] = {"<x>"};
	struct map_entry env[] = {{"A", "1"}};
	struct kinds k = {.count = 1,
		.text = "a\"b",
		.bytes = "",
		.word = "w",
		.odd = "o",
		.any = -3,
		.near = 0,
		.ratio = 0.25,
		.real = -0.1,
		.flag = YES,
		.mode = 0,
		.when = 1796151600123,
		.one = &parts[1],
		.parts = {2, parts},
		.tags = {1, tags},
		.env = {1, env},
		.extra = "[1]"};
	assert_string_equal(encode(f, &kinds_shape, &k),
		"{\"count\":1,\"text\":\"a\\\"b\",\"bytes\":\"\",\"word\":\"w\",\"odd\":\"o\","
		"\"any\":-3,"
		"\"near\":0,\"ratio\":0.25,\"real\":-0.1,\"flag\":true,\"mode\":\"plain\","
		"\"when\":\"2026-12-01T19:00:00.123Z\",\"one\":{\"name\":\"b\"},"
		"\"parts\":[{\"name\":\"a\",\"size\":1},{\"name\":\"b\"}],\"tags\":["
		"\"\\u003cx\\u003e\"],"
		"\"env\":{\"A\":\"1\"},\"extra\":[1]}");
}

static void a_required_list_is_written_even_when_it_is_empty(void **state)
{
	struct rows {
		struct list rows;
		struct map names;
	};
	static const struct field fields[] = {
		LIST_FIELD(struct rows, rows, REQUIRED, &part_shape, 0, 0, "Rows."),
		MAP_FIELD(struct rows, names, REQUIRED, 0, 0, "Names."),
	};
	static const struct shape shape = SHAPE(struct rows, fields, "Rows.");
	struct rows rows;
	shape_init(&shape, &rows);
	assert_string_equal(encode(*state, &shape, &rows), "{\"rows\":[],\"names\":{}}");
}

static void a_long_path_is_cut_and_still_an_error(void **state)
{
	struct deep {
		const void *a_name_of_thirty_two_characters_;
	};
	static const struct field inner[] = {
		OBJ_FIELD(struct deep, a_name_of_thirty_two_characters_, 0, &part_shape, "Inner."),
	};
	static const struct shape in = SHAPE(struct deep, inner, "Inner.");
	static const struct field outer[] = {
		OBJ_FIELD(struct deep, a_name_of_thirty_two_characters_, 0, &in, "Outer."),
	};
	static const struct shape out = SHAPE(struct deep, outer, "Outer.");
	static const char text[] =
		"{\"a_name_of_thirty_two_characters_\":{\"a_name_of_thirty_two_characters_\":"
		"{\"name\":\"a\",\"unknown_name_of_thirty_2_characters\":1}}}";
	struct fixture *f = *state;
	struct deep deep;
	assert_int_equal(json_parse(text, sizeof text - 1, &f->root), OK);
	assert_int_equal(shape_decode(&out, f->root, f->arena, &deep), ERR_BAD_INPUT);
	assert_int_equal(strlen(fault_of(ERR_BAD_INPUT)->field), 95);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	secret_init();
	const struct CMUnitTest tests[] = {
		TEST(every_kind_is_decoded),
		TEST(what_is_not_sent_is_absent),
		TEST(null_counts_as_absent),
		TEST(bounds_themselves_are_accepted),
		TEST(whole_numbers_are_integers_however_written),
		TEST(an_empty_list_is_not_an_absent_one),
		TEST(every_refusal_names_the_field_and_the_bound),
		TEST(a_required_member_may_not_be_missing_or_null),
		TEST(arguments_that_are_no_object_are_refused),
		TEST(a_name_sent_twice_does_not_reach_the_decoder),
		TEST(a_name_of_a_map_too_long_is_refused),
		TEST(a_failed_decode_leaves_no_secret_and_nothing_half_done),
		TEST(done_wipes_secrets_at_every_level_and_may_be_repeated),
		TEST(secrets_are_never_written),
		TEST(absent_fields_are_left_out_or_null),
		TEST(every_kind_is_encoded_in_declared_order),
		TEST(a_required_list_is_written_even_when_it_is_empty),
		TEST(a_long_path_is_cut_and_still_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
