/*
 * The JSON Schema of shapes.
 *
 * Called with the word "schemas" this program prints the schemas of the test's shape, and with
 * "judge" it reads one JSON text per line and prints for each "y", or "n" with field and detail,
 * and for "y" what encoding gives. tests/json-suite/schemas.test.mjs holds both against a public
 * validator.
 */
#include "arena.h"
#include "buf.h"
#include "json.h"
#include "bounds.h"
#include "shape.h"
#include "tests/unit/test_shape_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_MAX 65536

static struct json *schema_of(bool input)
{
	struct json *root = NULL;
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	struct jw w = jw_new(&b);
	shape_schema(&kinds_shape, input, &w);
	assert_false(b.full);
	assert_int_equal(json_parse(b.p, b.n, &root), OK);
	return root;
}

/* The text of one property's schema. */
static void assert_property(const struct json *schema, const char *name, const char *want)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	json_print(json_get(json_get(schema, "properties"), name), &b);
	assert_string_equal(b.p, want);
}

static void assert_required(const struct json *schema, const char *want)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	json_print(json_get(schema, "required"), &b);
	assert_string_equal(b.p, want);
}

static void an_input_schema_tells_every_bound(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *s = schema_of(true);
	assert_string_equal(json_str(json_get(s, "type"), NULL), "object");
	assert_string_equal(json_str(json_get(s, "description"), NULL), "Every kind.");
	assert_int_equal(json_type(json_get(s, "additionalProperties")), JSON_BOOL);
	assert_false(json_bool(json_get(s, "additionalProperties")));
	assert_required(s, "[\"count\"]");
	assert_property(s, "count",
		"{\"type\":\"integer\",\"description\":\"How "
		"many.\",\"minimum\":1,\"maximum\":3600,"
		"\"examples\":[60]}");
	assert_property(s, "text",
		"{\"type\":\"string\",\"description\":\"Counts characters.\",\"minLength\":2,"
		"\"maxLength\":5}");
	assert_property(s, "bytes",
		"{\"type\":\"string\",\"description\":\"Counts bytes. At most 5 bytes in UTF-8.\","
		"\"minLength\":1,\"maxLength\":5}");
	assert_property(s, "word",
		"{\"type\":\"string\",\"description\":\"Letters.\",\"pattern\":\"^[a-z]*$\"}");
	assert_property(s, "token",
		"{\"type\":\"string\",\"description\":\"A secret. At most 16 bytes in UTF-8.\","
		"\"minLength\":1,\"maxLength\":16,\"format\":\"password\",\"writeOnly\":true}");
	assert_property(s, "any",
		"{\"type\":\"integer\",\"description\":\"Any "
		"integer.\",\"minimum\":-9007199254740991,"
		"\"maximum\":9007199254740991}");
	assert_property(s, "near",
		"{\"type\":\"integer\",\"description\":\"Not above "
		"zero.\",\"minimum\":-5,\"maximum\":0}");
	assert_property(s, "ratio",
		"{\"type\":\"number\",\"description\":\"A share.\",\"minimum\":0,\"maximum\":1}");
	assert_property(s, "real", "{\"type\":\"number\",\"description\":\"Any number.\"}");
	assert_property(s, "flag", "{\"type\":\"boolean\",\"description\":\"Yes or no.\"}");
	assert_property(s, "mode",
		"{\"type\":\"string\",\"description\":\"How.\",\"enum\":[\"plain\",\"base64\"]}");
	assert_property(s, "tags",
		"{\"type\":\"array\",\"description\":\"Tags.\",\"maxItems\":3,\"items\":{\"type\":"
		"\"string\","
		"\"maxLength\":4,\"description\":\"At most 4 bytes in UTF-8.\"}}");
	assert_property(s, "env",
		"{\"type\":\"object\",\"description\":\"Variables.\",\"maxProperties\":2,"
		"\"propertyNames\":{\"minLength\":1,\"maxLength\":128,"
		"\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\"},\"additionalProperties\":{\"type\":"
		"\"string\","
		"\"maxLength\":4,\"description\":\"At most 4 bytes in UTF-8.\"}}");
}

static void what_is_only_encoded_is_not_an_input(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *s = schema_of(true);
	assert_null(json_get(json_get(s, "properties"), "when"));
	assert_null(json_get(json_get(s, "properties"), "extra"));
}

static void nested_objects_are_closed_too(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *s = schema_of(true);
	assert_property(s, "one",
		"{\"type\":\"object\",\"description\":\"One "
		"part.\",\"properties\":{\"name\":{\"type\":"
		"\"string\",\"description\":\"What it is "
		"called.\",\"minLength\":1,\"maxLength\":8},"
		"\"size\":{\"type\":\"integer\",\"description\":\"How large it is.\",\"minimum\":0,"
		"\"maximum\":99},\"token\":{\"type\":\"string\",\"description\":\"A secret of the "
		"part. "
		"At most 8 bytes in "
		"UTF-8.\",\"minLength\":1,\"maxLength\":8,\"format\":\"password\","
		"\"writeOnly\":true}},\"required\":[\"name\"],\"additionalProperties\":false,"
		"\"examples\":[{\"name\":\"a\"}]}");
}

static void a_result_schema_lists_what_is_always_there(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *s = schema_of(false);
	assert_false(json_bool(json_get(s, "additionalProperties")));
	assert_required(s,
		"[\"count\",\"text\",\"near\",\"ratio\",\"flag\",\"mode\",\"when\",\"one\","
		"\"tags\"]");
	assert_property(s, "text",
		"{\"type\":[\"string\",\"null\"],\"description\":\"Counts "
		"characters.\",\"minLength\":2,"
		"\"maxLength\":5}");
	assert_property(s, "mode",
		"{\"type\":[\"string\",\"null\"],\"description\":\"How.\",\"enum\":[\"plain\","
		"\"base64\","
		"null]}");
	assert_property(s, "when",
		"{\"type\":[\"string\",\"null\"],\"description\":\"When.\",\"format\":\"date-"
		"time\"}");
	assert_property(s, "extra", "{\"description\":\"Anything.\"}");
	assert_property(s, "any", "{\"type\":\"integer\",\"description\":\"Any integer.\"}");
}

static void a_result_schema_knows_no_secret(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *s = schema_of(false);
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	json_print(s, &b);
	assert_null(strstr(b.p, "token"));
	assert_null(strstr(b.p, "secret"));
}

static void an_empty_shape_takes_nothing(void **state)
{
	(void)state;
	static const struct shape empty = {.doc = NULL};
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	struct jw w = jw_new(&b);
	shape_schema(&empty, true, &w);
	assert_string_equal(b.p, "{\"type\":\"object\",\"properties\":{},\"required\":[],"
				 "\"additionalProperties\":false}");
}

/* -- for the comparison with a public validator ------------------------------------------------ */

static int print_schemas(void)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, TEXT_MAX);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_key(&w, "input");
	shape_schema(&kinds_shape, true, &w);
	jw_key(&w, "result");
	shape_schema(&kinds_shape, false, &w);
	jw_end(&w);
	return puts(b.p) < 0;
}

static void judge(const char *text, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	CLEANUP_JSON struct json *root = NULL;
	CLEANUP_BUF struct buf b;
	struct kinds k;
	buf_init(&b, TEXT_MAX);
	enum err e = json_parse(text, n, &root);
	if (!e)
		e = shape_decode(&kinds_shape, root, a, &k);
	if (e) {
		(void)printf("n %s %s\n", fault_of(e)->field, fault_of(e)->detail);
		return;
	}
	k.when = 0;
	struct jw w = jw_new(&b);
	shape_encode(&kinds_shape, &k, &w);
	shape_done(&kinds_shape, &k);
	(void)printf("y %s\n", b.p);
}

int main(int argc, char **argv)
{
	static char line[TEXT_MAX];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_input_schema_tells_every_bound),
		cmocka_unit_test(what_is_only_encoded_is_not_an_input),
		cmocka_unit_test(nested_objects_are_closed_too),
		cmocka_unit_test(a_result_schema_lists_what_is_always_there),
		cmocka_unit_test(a_result_schema_knows_no_secret),
		cmocka_unit_test(an_empty_shape_takes_nothing),
	};
	if (argc == 1)
		return cmocka_run_group_tests(tests, NULL, NULL);
	secret_init();
	if (strcmp(argv[1], "schemas") == 0)
		return print_schemas();
	while (fgets(line, sizeof line, stdin))
		judge(line, strcspn(line, "\n"));
	return 0;
}
