/* What the spool takes from a sandbox, and what it packs for one. */
#include "arena.h"
#include "bounds.h"
#include "buf.h"
#include "spool.h"
#include "spool_reply.h"

#include <archive.h>
#include <archive_entry.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int begin(void **state)
{
	*state = arena_new(64 << 20);
	return 0;
}

static int end(void **state)
{
	arena_free(*state);
	return 0;
}

/* -- poll -------------------------------------------------------------------------------------- */

static const struct spool_ask from_start = {.slice = 16};

static enum err read_poll(struct arena *a, const char *text, struct spool_status *ret)
{
	return spool_read_poll(text, strlen(text), &from_start, a, ret);
}

static void a_whole_reply_is_read(void **state)
{
	struct spool_status s;
	assert_int_equal(read_poll(*state,
				 "sbx1 done 7 0 5 100 0 84 1048576 -\naGVs\nbG8=\n\n"
				 "MTIzNDU2Nzg5MDEyMzQ1Ng==\n\n",
				 &s),
		OK);
	assert_int_equal(s.state, SPOOL_DONE);
	assert_int_equal(s.code, 7);
	assert_false(s.timed_out);
	assert_int_equal(s.out_bytes, 5);
	assert_string_equal(s.out, "hello");
	assert_int_equal(s.err_at, 84);
	assert_int_equal(s.err_n, 16);
	assert_int_equal(s.peak_bytes, 1048576);
	assert_int_equal(s.oom_kills, -1);
}

static void every_state_is_read(void **state)
{
	struct spool_status s;
	assert_int_equal(read_poll(*state, "sbx1 new - 0 0 0 0 0 - -\n\n\n", &s), OK);
	assert_int_equal(s.state, SPOOL_NEW);
	assert_int_equal(s.code, -1);
	assert_int_equal(read_poll(*state, "sbx1 run - 1 0 0 0 0 1 0\n\n\n", &s), OK);
	assert_int_equal(s.state, SPOOL_RUN);
	assert_true(s.timed_out);
	assert_int_equal(read_poll(*state, "sbx1 lost - 0 0 0 0 0 1 3\n\n\n", &s), OK);
	assert_int_equal(s.state, SPOOL_LOST);
	assert_int_equal(s.oom_kills, 3);
	assert_int_equal(read_poll(*state, "sbx1 gone\n", &s), OK);
	assert_int_equal(s.state, SPOOL_GONE);
	assert_string_equal(s.out, "");
	assert_int_equal(read_poll(*state, "sbx1 reset\n", &s), ERR_BOX_GONE);
	assert_int_equal(read_poll(*state, "sbx1 done 255 1 0 0 0 0 - -\n\n\n", &s), OK);
	assert_int_equal(s.code, 255);
}

static const char *const wrong_polls[] = {
	"",
	"\n",
	"sbx1",
	"sbx1 ",
	"sbx1 \n",
	"sbx2 gone\n",
	"sbx1 gone",
	"sbx1  gone\n",
	"sbx1 gone\n\n",
	"sbx1 gone \n",
	"sbx1 resetx\n",
	"<html>502</html>\n",
	"sh: 1: setsid: not found\n",
	/* cut anywhere */
	"sbx1 done",
	"sbx1 done 7",
	"sbx1 done 7 0 5 0 0 0 - -",
	"sbx1 done 7 0 5 0 0 0 - -\n",
	"sbx1 done 7 0 5 0 0 0 - -\naGVsbG8=\n",
	"sbx1 done 7 0 5 0 0 0 - -\naGVsbG8=\n\n",
	"sbx1 done 7 0 5 0 0 0 - -\naGVsbG8=\n\n\n\n",
	"sbx1 done 7 0 0 0 0 0 - -\n\n\nmore",
	"sbx1 done 7 0 0 0 0 0 -\n\n\n",
	"sbx1 done 7 0 0 0 0 0 - - \n\n\n",
	"sbx1 done 7 0 0 0 0 0 - - -\n\n\n",
	"sbx1 done 7 0 5 0 0 0 - -\n\naGVsbG8=\n\n\n",
	/* codes that are none */
	"sbx1 done - 0 0 0 0 0 - -\n\n\n",
	"sbx1 done  0 0 0 0 0 - -\n\n\n",
	"sbx1 done 256 0 0 0 0 0 - -\n\n\n",
	"sbx1 done -1 0 0 0 0 0 - -\n\n\n",
	"sbx1 done +7 0 0 0 0 0 - -\n\n\n",
	"sbx1 done 0x7 0 0 0 0 0 - -\n\n\n",
	"sbx1 done 0007 0 0 0 0 0 - -\n\n\n",
	"sbx1 done 7a 0 0 0 0 0 - -\n\n\n",
	"sbx1 run 7 0 0 0 0 0 - -\n\n\n",
	"sbx1 new 0 0 0 0 0 0 - -\n\n\n",
	"sbx1 lost 1 0 0 0 0 0 - -\n\n\n",
	"sbx1 DONE 7 0 0 0 0 0 - -\n\n\n",
	"sbx1 finished 7 0 0 0 0 0 - -\n\n\n",
	"sbx1 done 7 2 0 0 0 0 - -\n\n\n",
	"sbx1 done 7 00 0 0 0 0 - -\n\n\n",
	"sbx1 done 7 x 0 0 0 0 - -\n\n\n",
	/* sizes and offsets that are none, or do not fit each other */
	"sbx1 done 7 0 -5 0 0 0 - -\n\n\n",
	"sbx1 done 7 0 99999999999999999999 0 0 0 - -\n\n\n",
	"sbx1 done 7 0 9223372036854775807 0 9223372036854775807 0 - -\n\n\n",
	"sbx1 done 7 0 5 0 1 0 - -\naGVsbG8=\n\n\n",
	"sbx1 done 7 0 4 0 0 0 - -\naGVsbG8=\n\n\n",
	"sbx1 done 7 0 100 0 0 0 - -\naGVsbG8=\n\n\n",
	"sbx1 done 7 0 100 0 85 0 - -\naGVsbG8=\n\n\n",
	"sbx1 done 7 0 - 0 0 0 - -\n\n\n",
	"sbx1 done 7 0 0 0 0 0 -1 -\n\n\n",
	"sbx1 done 7 0 0 0 0 0 - x\n\n\n",
	"sbx1 done 7 0 0 0 0 0 1e9 -\n\n\n",
	/* slices that are no base64 */
	"sbx1 done 7 0 5 0 0 0 - -\naGVsbG8\n\n\n",
	"sbx1 done 7 0 5 0 0 0 - -\naGVs bG8=\n\n\n",
	"sbx1 done 7 0 5 0 0 0 - -\naGVsbG8=\r\n\n\n",
	"sbx1 done 7 0 5 0 0 0 - -\n====\n\n\n",
	"sbx1 done 7 0 0 0 0 0 - -\n\n!\n\n",
	"\n\nsbx1 done 7 0 0 0 0 0 - -\n\n\n",
};

static void any_other_reply_is_an_upstream_error(void **state)
{
	for (size_t i = 0; i < sizeof wrong_polls / sizeof wrong_polls[0]; i++) {
		struct spool_status s = {.code = 99};
		enum err e = read_poll(*state, wrong_polls[i], &s);
		if (e != ERR_UPSTREAM || s.code != 99)
			fail_msg("taken for good: `%s`", wrong_polls[i]);
	}
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = "sbx1 done 7 0 0 0 0 0 - -\0\n\n\n",
			  in[] = "sbx1 do\0ne 7 0 0 0 0 0 - -\n\n\n";
	struct spool_status s;
	assert_int_equal(
		spool_read_poll(nul, sizeof nul - 1, &from_start, *state, &s), ERR_UPSTREAM);
	assert_int_equal(spool_read_poll(in, sizeof in - 1, &from_start, *state, &s), ERR_UPSTREAM);
	char *large = arena_take(*state, 4 << 20);
	memset(large, '1', 4 << 20);
	memcpy(large, "sbx1 ", 5);
	assert_int_equal(spool_read_poll(large, 4 << 20, &from_start, *state, &s), ERR_UPSTREAM);
}

static void a_slice_beyond_the_question_is_refused(void **state)
{
	struct spool_ask ask = {.out_from = 10, .err_from = 0, .slice = 4};
	struct spool_status s;
	const char *good = "sbx1 run - 0 12 0 10 0 - -\nYWI=\n\n\n",
		   *early = "sbx1 run - 0 12 0 8 0 - -\nYWJjZA==\n\n\n";
	assert_int_equal(spool_read_poll(good, strlen(good), &ask, *state, &s), OK);
	assert_int_equal(spool_read_poll(early, strlen(early), &ask, *state, &s), ERR_UPSTREAM);
	/* The job made its output shorter than what was read before. */
	const char *shrunk = "sbx1 run - 0 3 0 10 0 - -\n\n\n";
	assert_int_equal(spool_read_poll(shrunk, strlen(shrunk), &ask, *state, &s), OK);
	assert_int_equal(s.out_n, 0);
	const char *more = "sbx1 run - 0 3 0 10 0 - -\nYWI=\n\n\n";
	assert_int_equal(spool_read_poll(more, strlen(more), &ask, *state, &s), ERR_UPSTREAM);
}

/* -- words ------------------------------------------------------------------------------------- */

static void words_are_read_exactly(void **state)
{
	static const char *const words[] = {"started", "dup", NULL};
	static const char *const wrong[] = {"", "sbx1 started", "sbx1 started\n\n", "started\n",
		"sbx1 start\n", "sbx1 startedd\n", "sbx1 dup \n", " sbx1 dup\n", "sbx1 dup\r\n",
		"sbx1 DUP\n", "sbx1 \n"};
	int i;
	(void)state;
	assert_int_equal(spool_read_word("sbx1 dup\n", 9, words, &i), OK);
	assert_int_equal(i, 1);
	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++)
		assert_int_equal(
			spool_read_word(wrong[k], strlen(wrong[k]), words, &i), ERR_UPSTREAM);
}

/* -- a provider that answers what it likes ----------------------------------------------------- */

static struct exec_result told;
static enum err told_err;
static const char *asked[16];

static enum err tell(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret)
{
	(void)id;
	(void)wait_s;
	size_t i = 0;
	asked[i++] = arena_str(c->arena, exec_id);
	for (; *argv && i < 15; argv++)
		asked[i++] = *argv;
	asked[i] = NULL;
	told.out_n = strlen(told.out);
	*ret = told;
	return told_err;
}

static const struct provider_ops ops = {.exec = tell};
static const struct provider told_provider = {.name = "told", .ops = &ops};

static void scripts_that_fail_are_upstream_errors(void **state)
{
	struct call c = {.provider = &told_provider, .arena = *state};
	struct spool_status s;
	struct spool_job job = {.id = "job-12345678", .cmd = "true", .timeout_s = 5};
	told = (struct exec_result){.code = 127, .out = "sbx1 done 0 0 0 0 0 0 - -\n\n\n"};
	assert_int_equal(spool_poll(&c, "box", job.id, 0, 0, 16, 0, &s), ERR_UPSTREAM);
	assert_int_equal(spool_kill(&c, "box", job.id, "KILL"), ERR_UPSTREAM);
	told = (struct exec_result){.code = 0, .out = "sbx1 nospace\n"};
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), ERR_UPSTREAM);
	told.out = "sbx1 badcwd\n";
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), ERR_BAD_INPUT);
	told.out = "sbx1 reset\n";
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), ERR_BOX_GONE);
	assert_int_equal(spool_kill(&c, "box", job.id, "KILL"), ERR_BOX_GONE);
	told.out = "sbx1 nofork\n";
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), ERR_UPSTREAM);
}

static void a_start_answers_as_the_first_poll(void **state)
{
	struct call c = {.provider = &told_provider, .arena = *state};
	struct spool_status s;
	struct spool_job job = {.id = "job-12345678", .cmd = "true", .timeout_s = 5};
	told = (struct exec_result){
		.out = "sbx1 started\nsbx1 done 3 0 5 0 0 0 - -\naGVsbG8=\n\n\n"};
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), OK);
	assert_int_equal(s.state, SPOOL_DONE);
	assert_int_equal(s.code, 3);
	assert_string_equal(s.out, "hello");
	told.out = "sbx1 dup\nsbx1 run - 0 0 0 0 0 - -\n\n\n";
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), OK);
	assert_int_equal(s.state, SPOOL_RUN);
	/* A command that took the spool away has begun: no error that says it never did. */
	told.out = "sbx1 started\nsbx1 reset\n";
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), OK);
	assert_int_equal(s.state, SPOOL_GONE);
}

static void a_start_that_tells_too_little_or_too_much_is_no_start(void **state)
{
	struct call c = {.provider = &told_provider, .arena = *state};
	struct spool_job job = {.id = "job-12345678", .cmd = "true", .timeout_s = 5};
	static const char *const wrong[] = {
		"",
		"sbx1 started",
		"sbx1 started\n",
		"sbx1 dup\n",
		"sbx1 dup\nsbx1 started\n",
		"sbx1 started\nsbx1 done 3 0 0 0 0 0 - -\n\n",
		"sbx1 started\nsbx1 done 3 0 0 0 0 0 - -\n\n\n\n",
		"sbx1 started\nsbx1 done - 0 0 0 0 0 - -\n\n\n",
		"sbx1 started\n\nsbx1 gone\n",
		"sbx1 done 0 0 0 0 0 0 - -\n\n\n",
		"sbx1 badcwd\nsbx1 gone\n",
		"sbx1 reset\nsbx1 done 0 0 0 0 0 0 - -\n\n\n",
		"sbx1 badcwd\n\n",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct spool_status s = {.code = -7};
		told = (struct exec_result){.out = wrong[i]};
		assert_int_equal(spool_start(&c, "box", &job, 16, &s), ERR_UPSTREAM);
		assert_int_equal(s.code, -7);
	}
}

static void errors_of_the_provider_pass_through(void **state)
{
	struct call c = {.provider = &told_provider, .arena = *state};
	struct spool_status s;
	told = (struct exec_result){.out = ""};
	for (int i = 0; i < 3; i++) {
		told_err = (enum err[]){ERR_BOX_GONE, ERR_UPSTREAM_UNSURE, ERR_KEY_REFUSED}[i];
		assert_int_equal(spool_poll(&c, "box", "job-12345678", 0, 0, 16, 0, &s), told_err);
	}
	told_err = OK;
}

static void a_start_keeps_its_id_and_a_poll_never_does(void **state)
{
	struct call c = {.provider = &told_provider, .arena = *state};
	struct spool_status s;
	struct spool_job job = {
		.id = "job-12345678", .cmd = "secret words", .cwd = "-", .timeout_s = 5};
	told = (struct exec_result){.out = "sbx1 dup\nsbx1 gone\n"};
	assert_int_equal(spool_start(&c, "box", &job, 16, &s), OK);
	assert_string_equal(asked[0], "job-12345678-start");
	const char *const want[] = {"job-12345678", "5", "/tmp/.sbx-job-12345678.tar", "16", "1"};
	for (int i = 0; i < 5; i++)
		assert_string_equal(asked[5 + i], want[i]);
	assert_null(asked[10]);
	told.out = "sbx1 gone\n";
	assert_int_equal(spool_poll(&c, "box", job.id, 1, 2, 16, 500, &s), OK);
	const char *first = asked[0];
	assert_string_equal(asked[9], "20");
	assert_int_equal(spool_poll(&c, "box", job.id, 1, 2, 16, 0, &s), OK);
	assert_string_not_equal(asked[0], first);
	assert_in_range(strlen(asked[0]), 8, 64);
}

/* -- the archive ------------------------------------------------------------------------------- */

static const char *listing(struct arena *a, const void *p, size_t n)
{
	struct archive *r = archive_read_new();
	struct archive_entry *e;
	struct buf b;
	buf_init(&b, 65536);
	assert_int_equal(archive_read_support_format_tar(r), ARCHIVE_OK);
	union {
		const void *in;
		void *out;
	} bytes = {.in = p};
	assert_int_equal(archive_read_open_memory(r, bytes.out, n), ARCHIVE_OK);
	while (archive_read_next_header(r, &e) == ARCHIVE_OK)
		buf_printf(&b, "%s %o %lld\n", archive_entry_pathname(e),
			(unsigned)archive_entry_mode(e), (long long)archive_entry_size(e));
	(void)archive_read_free(r);
	const char *text = arena_str(a, b.p);
	buf_done(&b);
	return text;
}

static void the_archive_holds_what_the_scripts_expect(void **state)
{
	const struct spool_file files[] = {{"a b", "12345", 5, 0644}, {"-x/run", "", 0, 0755}};
	const struct spool_env env = {"A", "it's"};
	struct spool_job job = {.id = "job-12345678",
		.cmd = "echo hi",
		.files = files,
		.files_n = 2,
		.env = &env,
		.env_n = 1};
	const void *p;
	size_t n;
	assert_int_equal(spool_pack(&job, *state, &p, &n), OK);
	assert_string_equal(listing(*state, p, n),
		".sbx/job-12345678/cmd 100600 7\n.sbx/job-12345678/code 100600 24\n"
		".sbx/job-12345678/job 100600 24\n.sbx/job-12345678/sup 100600 24\n"
		".sbx/job-12345678/out 100600 0\n.sbx/job-12345678/err 100600 0\n"
		".sbx/job-12345678/end 10600 0\n.sbx/job-12345678/env 100600 27\n"
		"job-job-12345678/ 40755 0\njob-job-12345678/a b 100644 5\njob-job-12345678/-x/run "
		"100755 0\n");
}

static void the_largest_job_fits(void **state)
{
	enum { EACH = FILES_BYTES_MAX / FILES_MAX };
	struct spool_file files[FILES_MAX];
	struct spool_env env[9];
	char *quotes = arena_take(*state, ENV_VALUE_BYTES_MAX + 1),
	     *bytes = arena_take(*state, EACH);
	memset(quotes, '\'', ENV_VALUE_BYTES_MAX);
	for (int i = 0; i < FILES_MAX; i++) {
		char *path = arena_take(*state, PATH_BYTES_MAX + 1);
		memset(path, 'a', PATH_BYTES_MAX);
		(void)snprintf(path, 3, "%02d", i);
		path[2] = 'a';
		files[i] = (struct spool_file){path, bytes, EACH, 0644};
	}
	for (int i = 0; i < 9; i++)
		env[i] = (struct spool_env){arena_printf(*state, "N%d", i), quotes};
	struct spool_job job = {.id = "job-12345678",
		.cmd = "x",
		.files = files,
		.files_n = FILES_MAX,
		.env = env,
		.env_n = 9};
	const void *p;
	size_t n;
	assert_int_equal(spool_pack(&job, *state, &p, &n), OK);
	assert_true(n > FILES_BYTES_MAX + 9 * 4 * ENV_VALUE_BYTES_MAX);
}

static void too_much_environment_is_refused(void **state)
{
	struct spool_env env[11];
	char *value = arena_take(*state, ENV_VALUE_BYTES_MAX + 1);
	memset(value, 'v', ENV_VALUE_BYTES_MAX);
	for (int i = 0; i < 11; i++)
		env[i] = (struct spool_env){"NAME", value};
	struct spool_job job = {.id = "job-12345678", .cmd = "x", .env = env, .env_n = 11};
	const void *p;
	size_t n;
	assert_int_equal(spool_pack(&job, *state, &p, &n), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "env");
	assert_non_null(strstr(fault_of(ERR_BAD_INPUT)->detail, "1000000"));
}

static void names_that_shells_keep_are_refused(void **state)
{
	static const char *const names[] = {
		"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO", "SBX_JOB"};
	const void *p;
	size_t n;
	for (int i = 0; i < 7; i++) {
		const struct spool_env env = {names[i], "1"};
		struct spool_job job = {.id = "job-12345678", .cmd = "x", .env = &env, .env_n = 1};
		assert_int_equal(spool_pack(&job, *state, &p, &n), ERR_BAD_INPUT);
		assert_non_null(strstr(fault_of(ERR_BAD_INPUT)->detail, names[i]));
	}
}

static void paths_that_block_each_other_are_refused(void **state)
{
	static const char *const pairs[][2] = {{"a", "a"}, {"a", "a/b"}, {"a/b/c", "a/b"}};
	const void *p;
	size_t n;
	for (int i = 0; i < 3; i++) {
		const struct spool_file files[] = {
			{pairs[i][0], "", 0, 0644}, {pairs[i][1], "", 0, 0644}};
		struct spool_job job = {
			.id = "job-12345678", .cmd = "x", .files = files, .files_n = 2};
		assert_int_equal(spool_pack(&job, *state, &p, &n), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "files[1].path");
	}
	const struct spool_file fine[] = {
		{"a", "", 0, 0644}, {"ab", "", 0, 0644}, {"b/a", "", 0, 0644}};
	struct spool_job job = {.id = "job-12345678", .cmd = "x", .files = fine, .files_n = 3};
	assert_int_equal(spool_pack(&job, *state, &p, &n), OK);
}

static void a_value_is_quoted_for_every_shell(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	spool_env_line(&b, "A", "");
	spool_env_line(&b, "B", "'");
	spool_env_line(&b, "C", "a'b''c\n$x`\\\"");
	assert_string_equal(b.p, "command export A=''\ncommand export B=''\\'''\n"
				 "command export C='a'\\''b'\\'''\\''c\n$x`\\\"'\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(a_whole_reply_is_read),
		T(every_state_is_read),
		T(any_other_reply_is_an_upstream_error),
		T(bytes_that_are_no_text_are_refused),
		T(a_slice_beyond_the_question_is_refused),
		T(words_are_read_exactly),
		T(scripts_that_fail_are_upstream_errors),
		T(a_start_answers_as_the_first_poll),
		T(a_start_that_tells_too_little_or_too_much_is_no_start),
		T(errors_of_the_provider_pass_through),
		T(a_start_keeps_its_id_and_a_poll_never_does),
		T(the_archive_holds_what_the_scripts_expect),
		T(the_largest_job_fits),
		T(too_much_environment_is_refused),
		T(names_that_shells_keep_are_refused),
		T(paths_that_block_each_other_are_refused),
		T(a_value_is_quoted_for_every_shell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
