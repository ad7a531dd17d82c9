/* The JSON tree and the writer. */
#include "buf.h"
#include "json.h"
#include "bounds.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct json *parse(const char *text)
{
	struct json *root = NULL;
	assert_int_equal(json_parse(text, strlen(text), &root), OK);
	return root;
}

/* -- tree -------------------------------------------------------------------------------------- */

static void types_and_values_are_read(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *o = parse("{\"n\":null,\"t\":true,\"f\":false,\"i\":-7,\"d\":1.5,"
					    "\"s\":\"h\\u00e9\",\"l\":[1,null],\"o\":{\"x\":1}}");
	size_t n;
	assert_int_equal(json_type(o), JSON_OBJ);
	assert_int_equal(json_len(o), 8);
	assert_true(json_bool(json_get(o, "t")));
	assert_false(json_bool(json_get(o, "f")));
	assert_int_equal(json_int(json_get(o, "i")), -7);
	assert_true(json_num(json_get(o, "d")) == 1.5 && json_num(json_get(o, "i")) == -7);
	assert_string_equal(json_str(json_get(o, "s"), &n), "h\xc3\xa9");
	assert_int_equal(n, 3);
	assert_int_equal(json_len(json_get(o, "l")), 2);
	assert_int_equal(json_int(json_at(json_get(o, "l"), 0)), 1);
	assert_int_equal(json_type(json_at(json_get(o, "l"), 1)), JSON_NULL);
	assert_int_equal(json_int(json_get(json_get(o, "o"), "x")), 1);
}

static void members_come_in_the_order_of_the_text(void **state)
{
	(void)state;
	static const char *const names[] = {"z", "a", "m"};
	CLEANUP_JSON struct json *o = parse("{\"z\":1,\"a\":null,\"m\":3}");
	for (size_t i = 0; i < 3; i++) {
		const char *name;
		const struct json *v = json_member(o, i, &name);
		assert_string_equal(name, names[i]);
		assert_int_equal(json_type(v), i == 1 ? JSON_NULL : JSON_INT);
	}
}

static void what_is_not_there_is_null(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *o = parse("{\"a\":[1],\"n\":null}");
	assert_null(json_get(o, "b"));
	assert_null(json_get(o, "n"));
	assert_null(json_get(NULL, "a"));
	assert_null(json_get(json_get(o, "a"), "a"));
	assert_null(json_at(json_get(o, "a"), 1));
	assert_null(json_at(json_get(o, "a"), SIZE_MAX));
	assert_null(json_at(o, 0));
	assert_int_equal(json_len(NULL), 0);
	assert_int_equal(json_type(NULL), JSON_NULL);
}

static void getters_of_another_type_give_nothing(void **state)
{
	(void)state;
	size_t n = 9;
	CLEANUP_JSON struct json *l = parse("[\"1\",1,true,1.5,{},[]]");
	assert_null(json_str(json_at(l, 1), &n));
	assert_int_equal(n, 0);
	assert_null(json_str(json_at(l, 4), NULL));
	assert_int_equal(json_int(json_at(l, 0)), 0);
	assert_int_equal(json_int(json_at(l, 3)), 0);
	assert_true(json_num(json_at(l, 0)) == 0);
	assert_false(json_bool(json_at(l, 1)));
	assert_int_equal(json_len(json_at(l, 0)), 0);
}

static void the_text_null_is_a_root_that_is_null(void **state)
{
	(void)state;
	struct json *root = parse("null");
	assert_null(root);
	json_free(root);
}

static void a_refused_text_leaves_the_root_alone(void **state)
{
	(void)state;
	struct json *root = NULL;
	assert_int_equal(json_parse("{\"a\":1,\"a\":2}", 13, &root), ERR_BAD_JSON);
	assert_int_equal(json_parse("[1,]", 4, &root), ERR_BAD_JSON);
	assert_int_equal(json_parse("", 0, &root), ERR_BAD_JSON);
	assert_null(root);
}

static void a_text_ends_where_its_length_says(void **state)
{
	(void)state;
	struct json *root = NULL;
	assert_int_equal(json_parse("12345", 2, &root), OK);
	assert_int_equal(json_int(root), 12);
	json_free(root);
	assert_int_equal(json_parse("true", 3, &root), ERR_BAD_JSON);
}

static void whole_numbers_are_integers(void **state)
{
	(void)state;
	static const char whole[] = "[60.0,6e1,-0,-0.0,9007199254740991,-9007199254740991,"
				    "9007199254740991.0,1e15,0.1e1,5000e-3,1e-400]";
	static const int64_t values[] = {
		60, 60, 0, 0, JSON_INT_MAX, -JSON_INT_MAX, JSON_INT_MAX, 1000000000000000, 1, 5, 0};
	CLEANUP_JSON struct json *l = parse(whole);
	for (size_t i = 0; i < json_len(l); i++) {
		assert_int_equal(json_type(json_at(l, i)), JSON_INT);
		assert_int_equal(json_int(json_at(l, i)), values[i]);
	}
}

static void fractions_and_inexact_numbers_are_not_integers(void **state)
{
	(void)state;
	CLEANUP_JSON struct json *l =
		parse("[0.5,-1.25,9007199254740992.0,-9007199254740993.0,1e16,1e300,5e-324]");
	for (size_t i = 0; i < json_len(l); i++)
		assert_int_equal(json_type(json_at(l, i)), JSON_NUM);
}

/* -- writer ------------------------------------------------------------------------------------ */

static void assert_prints(const char *text, const char *want)
{
	CLEANUP_JSON struct json *root = parse(text);
	CLEANUP_BUF struct buf b;
	buf_init(&b, 1024);
	json_print(root, &b);
	assert_string_equal(b.p, want);
}

static void a_tree_is_printed_compactly_in_its_order(void **state)
{
	(void)state;
	assert_prints(" { \"b\" : [ 1 , 2.50 , 6e1 ] , \"a\" : { } , \"n\" : null } ",
		"{\"b\":[1,2.5,60],\"a\":{},\"n\":null}");
	assert_prints("[]", "[]");
	assert_prints("[[],[[]],false]", "[[],[[]],false]");
	assert_prints("null", "null");
	assert_prints("{\"<\\n\":0}", "{\"\\u003c\\n\":0}");
}

static const char *quoted(struct buf *b, const char *s, size_t n)
{
	buf_reset(b);
	struct jw w = jw_new(b);
	jw_strn(&w, s, n);
	return b->p;
}

static void strings_are_escaped_so_that_html_is_harmless(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct {
		const char *raw, *want;
	} cases[] = {
		{"", "\"\""},
		{"plain / text'", "\"plain / text'\""},
		{"a\"b", "\"a\\\"b\""},
		{"a\\b", "\"a\\\\b\""},
		{"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
		{"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
		{"</script>&amp;", "\"\\u003c/script\\u003e\\u0026amp;\""},
		{"\xe2\x80\xa8|\xe2\x80\xa9", "\"\\u2028|\\u2029\""},
		{"\xe2\x80\xa7\xe2\x80\xaa\xe2\x81\xa8", "\"\xe2\x80\xa7\xe2\x80\xaa\xe2\x81\xa8\""},
		{"\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
		{"<<", "\"\\u003c\\u003c\""},
	};
	/* clang-format on */
	CLEANUP_BUF struct buf b;
	buf_init(&b, 1024);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(quoted(&b, cases[i].raw, strlen(cases[i].raw)), cases[i].want);
	assert_string_equal(quoted(&b, "a\0b", 3), "\"a\\u0000b\"");
	assert_string_equal(quoted(&b, "abc", 2), "\"ab\"");
}

static void every_character_comes_back_as_it_was(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf raw, text;
	buf_init(&raw, 1 << 16);
	buf_init(&text, 1 << 18);
	for (int c = 1; c < 0x80; c++)
		buf_char(&raw, (char)c);
	for (int c = 0x80; c < 0x800; c++)
		buf_put(&raw, (char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
	for (int c = 0x2000; c < 0x2100; c++)
		buf_put(&raw,
			(char[]){(char)0xe2, (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))},
			3);
	(void)quoted(&text, raw.p, raw.n);
	CLEANUP_JSON struct json *root = parse(text.p);
	size_t n;
	const char *back = json_str(root, &n);
	assert_int_equal(n, raw.n);
	assert_memory_equal(back, raw.p, n);
}

static const char *number(struct buf *b, double v)
{
	buf_reset(b);
	struct jw w = jw_new(b);
	jw_num(&w, v);
	return b->p;
}

static void doubles_are_written_shortly(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 64);
	assert_string_equal(number(&b, 0.1), "0.1");
	assert_string_equal(number(&b, 60), "60");
	assert_string_equal(number(&b, -0.5), "-0.5");
	assert_string_equal(number(&b, -0.0), "0");
	assert_string_equal(number(&b, 1.0 / 3), "0.3333333333333333");
	assert_string_equal(number(&b, 5e-324), "5e-324");
	assert_string_equal(number(&b, DBL_MAX), "1.7976931348623157e+308");
	assert_string_equal(number(&b, 1e20), "1e+20");
	assert_string_equal(number(&b, 9007199254740991), "9007199254740991");
	assert_string_equal(number(&b, 9007199254740994), "9007199254740994.0");
}

static void numbers_that_are_not_finite_are_null(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 64);
	assert_string_equal(number(&b, (double)NAN), "null");
	assert_string_equal(number(&b, (double)INFINITY), "null");
	assert_string_equal(number(&b, -(double)INFINITY), "null");
}

static void every_double_is_read_back_equal(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 64);
	uint64_t bits = 0x9e3779b97f4a7c15u; /* a fixed walk over bit patterns */
	for (int i = 0; i < 20000; i++) {
		double v;
		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&v, &bits, sizeof v);
		if (!isfinite(v))
			continue;
		CLEANUP_JSON struct json *root = parse(number(&b, v));
		assert_true(json_num(root) == v);
	}
}

static void the_writer_puts_commas(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 1024);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kstr(&w, "a", "x");
	jw_kint(&w, "b", INT64_MIN + 1);
	jw_kbool(&w, "c", false);
	jw_kstr(&w, "d", NULL);
	jw_key(&w, "e");
	jw_list(&w);
	jw_obj(&w);
	jw_end(&w);
	jw_list(&w);
	jw_end_list(&w);
	jw_int(&w, 1);
	jw_raw(&w, "{\"r\":[]}", 8);
	jw_null(&w);
	jw_end_list(&w);
	jw_key(&w, "f");
	jw_json(&w, NULL);
	jw_end(&w);
	assert_string_equal(b.p, "{\"a\":\"x\",\"b\":-9223372036854775807,\"c\":false,\"d\":null,"
				 "\"e\":[{},[],1,{\"r\":[]},null],\"f\":null}");
}

static void a_full_buffer_is_noticed(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 8);
	struct jw w = jw_new(&b);
	jw_list(&w);
	jw_str(&w, "longer than that");
	jw_end_list(&w);
	assert_true(b.full);
}

/* -- the writer stops on our own mistakes ------------------------------------------------------ */

static void value_without_key(struct jw *w)
{
	jw_obj(w);
	jw_int(w, 1);
}

static void key_in_list(struct jw *w)
{
	jw_list(w);
	jw_key(w, "a");
}

static void key_at_the_root(struct jw *w)
{
	jw_key(w, "a");
}

static void two_keys(struct jw *w)
{
	jw_obj(w);
	jw_key(w, "a");
	jw_key(w, "b");
}

static void key_without_value(struct jw *w)
{
	jw_obj(w);
	jw_key(w, "a");
	jw_end(w);
}

static void list_ended_as_object(struct jw *w)
{
	jw_list(w);
	jw_end(w);
}

static void object_ended_as_list(struct jw *w)
{
	jw_obj(w);
	jw_end_list(w);
}

static void end_without_begin(struct jw *w)
{
	jw_end(w);
}

static void two_roots(struct jw *w)
{
	jw_int(w, 1);
	jw_int(w, 2);
}

static void raw_of_nothing(struct jw *w)
{
	jw_raw(w, "", 0);
}

static void too_deep(struct jw *w)
{
	for (int i = 0; i < 65; i++)
		jw_list(w);
}

static void nothing_wrong(struct jw *w)
{
	jw_list(w);
	jw_end_list(w);
}

/* Whether a child that makes this mistake is stopped by an assertion. */
static bool stops(void (*mistake)(struct jw *))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct buf b;
		(void)signal(SIGABRT, SIG_DFL); /* cmocka's would turn it into a failed test */
		(void)close(STDERR_FILENO);
		buf_init(&b, 1024);
		struct jw w = jw_new(&b);
		mistake(&w);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void invalid_nesting_stops_the_process(void **state)
{
	(void)state;
	assert_true(stops(value_without_key));
	assert_true(stops(key_in_list));
	assert_true(stops(key_at_the_root));
	assert_true(stops(two_keys));
	assert_true(stops(key_without_value));
	assert_true(stops(list_ended_as_object));
	assert_true(stops(object_ended_as_list));
	assert_true(stops(end_without_begin));
	assert_true(stops(two_roots));
	assert_true(stops(raw_of_nothing));
	assert_true(stops(too_deep));
	assert_false(stops(nothing_wrong));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_and_values_are_read),
		cmocka_unit_test(members_come_in_the_order_of_the_text),
		cmocka_unit_test(what_is_not_there_is_null),
		cmocka_unit_test(getters_of_another_type_give_nothing),
		cmocka_unit_test(the_text_null_is_a_root_that_is_null),
		cmocka_unit_test(a_refused_text_leaves_the_root_alone),
		cmocka_unit_test(a_text_ends_where_its_length_says),
		cmocka_unit_test(whole_numbers_are_integers),
		cmocka_unit_test(fractions_and_inexact_numbers_are_not_integers),
		cmocka_unit_test(a_tree_is_printed_compactly_in_its_order),
		cmocka_unit_test(strings_are_escaped_so_that_html_is_harmless),
		cmocka_unit_test(every_character_comes_back_as_it_was),
		cmocka_unit_test(doubles_are_written_shortly),
		cmocka_unit_test(numbers_that_are_not_finite_are_null),
		cmocka_unit_test(every_double_is_read_back_equal),
		cmocka_unit_test(the_writer_puts_commas),
		cmocka_unit_test(a_full_buffer_is_noticed),
		cmocka_unit_test(invalid_nesting_stops_the_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
