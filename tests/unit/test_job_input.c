/* The arguments of run_job that a shape can not judge. */
#include "arena.h"
#include "bounds.h"
#include "job_input.h"
#include "json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_MAX   (16u << 20)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void paths_lose_their_extra_parts(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {{"a", "a"}, {"./a", "a"}, {"a//b", "a/b"}, {"a/./b", "a/b"},
		{".//./a/b", "a/b"}, {"-rf", "-rf"}, {"a b", "a b"}, {"a\nb", "a\nb"},
		{"\xc3\xa4/\xe2\x82\xac", "\xc3\xa4/\xe2\x82\xac"}, {"..a", "..a"}, {"a..", "a.."},
		{"...", "..."}, {"a\\b", "a\\b"}, {".a", ".a"}, {"a/..b", "a/..b"}};
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	const char *out;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(path_normalise(rows[i].in, "p", a, &out), OK);
		assert_string_equal(out, rows[i].out);
	}
}

static void paths_that_leave_the_folder_are_refused(void **state)
{
	static const char *const rows[] = {"", "/", "/a", "//a", "..", "../a", "a/..", "a/../b",
		"a/../../b", "./..", "a/", "a//", "./", ".", "a/.", "\\", "\\\\", "a/b/",
		"a/../b/"};
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	const char *out;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(path_normalise(rows[i], "files[0].path", a, &out), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "files[0].path");
		assert_true(fault_of(ERR_BAD_INPUT)->detail[0] != 0);
	}
}

static void a_part_longer_than_a_name_is_refused(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	char name[300] = {0};
	const char *out;
	(void)state;
	memset(name, 'x', 255);
	assert_int_equal(path_normalise(name, "p", a, &out), OK);
	name[255] = 'x';
	assert_int_equal(path_normalise(name, "p", a, &out), ERR_BAD_INPUT);
}

static enum err take(struct arena *a, struct file_in *files, size_t n, struct spool_job *ret)
{
	struct run_in in;
	shape_init(&run_in_shape, &in);
	in.cmd = "true";
	in.files = (struct list){n, files};
	*ret = (struct spool_job){0};
	return job_input(&in, a, ret);
}

static void files_that_can_not_both_be_are_refused(void **state)
{
	static const struct {
		const char *first, *second, *third, *field;
	} rows[] = {{"a", "a", "b", "files[1].path"}, {"a", "./a", "b", "files[1].path"},
		{"a/b", "a", "c", "files[0].path"}, {"a", "a-", "a/b", "files[2].path"},
		{"x", "a//b", "a/b", "files[2].path"}};
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct spool_job job;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct file_in files[] = {{rows[i].first, "", NULL, 0},
			{rows[i].second, "", NULL, 0}, {rows[i].third, "", NULL, 0}};
		assert_int_equal(take(a, files, 3, &job), ERR_BAD_INPUT);
		/* Of two equal paths either may be named. */
		assert_non_null(strstr(fault_of(ERR_BAD_INPUT)->field, ".path"));
	}
	struct file_in fine[] = {{"a", "", NULL, 0}, {"a-", "", NULL, 0}, {"ab/c", "", NULL, 0}};
	assert_int_equal(take(a, fine, 3, &job), OK);
	assert_int_equal(job.files_n, 3);
}

static void bytes_are_counted_after_decoding(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct spool_job job;
	char *text = arena_take(a, FILES_BYTES_MAX + 2);
	(void)state;
	memset(text, 'x', FILES_BYTES_MAX);
	struct file_in files[] = {{"a", text, NULL, ENCODING_UTF8}, {"b", "", NULL, ENCODING_UTF8}};
	assert_int_equal(take(a, files, 2, &job), OK);
	files[1].content = "y";
	assert_int_equal(take(a, files, 2, &job), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "files");
	files[1] = (struct file_in){"b", "AAE=", NULL, ENCODING_BASE64};
	text[FILES_BYTES_MAX - 2] = 0;
	assert_int_equal(take(a, files, 2, &job), OK);
	assert_int_equal(job.files[1].n, 2);
	assert_memory_equal(job.files[1].p, "\0\1", 2);
}

static void bad_base64_is_named(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct file_in files[] = {{"a", "", NULL, 0}, {"b", "AAE", NULL, ENCODING_BASE64}};
	struct spool_job job;
	(void)state;
	assert_int_equal(take(a, files, 2, &job), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "files[1].content");
}

static void modes_are_octal(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct file_in files[] = {{"a", "", "0755", 0}, {"b", "", "600", 0}, {"c", "", NULL, 0}};
	struct spool_job job;
	(void)state;
	assert_int_equal(take(a, files, 3, &job), OK);
	assert_int_equal(job.files[0].mode, 0755);
	assert_int_equal(job.files[1].mode, 0600);
	assert_int_equal(job.files[2].mode, 0644);
}

static void carriage_returns_before_line_feeds_go(void **state)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct run_in in;
	struct spool_job job = {0};
	(void)state;
	shape_init(&run_in_shape, &in);
	in.files = (struct list){0};
	in.env = (struct map){0};
	in.cmd = "a\r\nb\rc\r\n";
	assert_int_equal(job_input(&in, a, &job), OK);
	assert_string_equal(job.cmd, "a\nb\rc\n");
	in.cmd = " \t\r\n";
	assert_int_equal(job_input(&in, a, &job), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "cmd");
}

static enum err take_gpu(struct arena *a, const char *gpu, struct run_in *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	const char *text = arena_printf(a, "{\"cmd\":\"true\",\"gpu\":\"%s\"}", gpu);
	assert_int_equal(json_parse(text, strlen(text), &root), OK);
	return shape_decode(&run_in_shape, root, a, ret);
}

static void a_gpu_is_a_type_and_perhaps_a_count(void **state)
{
	static const struct {
		const char *in, *type;
		int64_t count;
	} rows[] = {{"T4", "T4", 1}, {"A100-80GB", "A100-80GB", 1}, {"H100:2", "H100", 2},
		{"h100!:8", "h100!", 8}, {"B200+", "B200+", 1},
		{"RTX-PRO-6000:1", "RTX-PRO-6000", 1},
		{"abcdefghijklmnopqrstuvwxyz012345:3", "abcdefghijklmnopqrstuvwxyz012345", 3}};
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct run_in in;
	const char *type;
	int64_t count;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(take_gpu(a, rows[i].in, &in), OK);
		gpu_read(in.gpu, a, &type, &count);
		assert_string_equal(type, rows[i].type);
		assert_int_equal(count, rows[i].count);
	}
}

static void what_is_no_gpu_is_refused_with_the_form(void **state)
{
	static const char *const rows[] = {"", ":", ":2", "T4:", "T4:0", "T4:9", "T4:10", "T4:02",
		"T4:-1", "T4:2:2", "T4:x", "T4 :2", " T4", "T4\\n", "-T4", "T4,L4", "T\u00e44",
		"abcdefghijklmnopqrstuvwxyz0123456", "abcdefghijklmnopqrstuvwxyz0123456:2"};
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct run_in in;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_int_equal(take_gpu(a, rows[i], &in), ERR_BAD_INPUT);
		const struct fault *why = fault_of(ERR_BAD_INPUT);
		assert_string_equal(why->field, "gpu");
		assert_true(strstr(why->detail, "[1-8]") || strstr(why->detail, "1 to 34"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_lose_their_extra_parts),
		cmocka_unit_test(paths_that_leave_the_folder_are_refused),
		cmocka_unit_test(a_part_longer_than_a_name_is_refused),
		cmocka_unit_test(files_that_can_not_both_be_are_refused),
		cmocka_unit_test(bytes_are_counted_after_decoding),
		cmocka_unit_test(bad_base64_is_named),
		cmocka_unit_test(modes_are_octal),
		cmocka_unit_test(carriage_returns_before_line_feeds_go),
		cmocka_unit_test(a_gpu_is_a_type_and_perhaps_a_count),
		cmocka_unit_test(what_is_no_gpu_is_refused_with_the_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
