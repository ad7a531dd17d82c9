/*
 * The spool with real processes, under dash, bash and busybox: the same tests once per shell, each
 * shell in a process and a /tmp of its own, at the same time.
 */
#include "arena.h"
#include "clock.h"
#include "bounds.h"
#include "spool.h"
#include "tests/unit/shells.h"
#include "text.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 60000
#define SLICE       TAIL_BYTES_MAX

struct bench {
	struct arena *arena;
	struct call call;
	struct spool_job job;
	struct spool_status s;
};

static int begin(void **state)
{
	static struct bench b;
	uint8_t raw[8];
	char hex[2 * sizeof raw + 1];
	random_bytes(raw, sizeof raw);
	hex_encode(hex, raw, sizeof raw);
	b = (struct bench){.arena = arena_new(64 << 20)};
	b.call = shells_call(b.arena);
	b.job = (struct spool_job){.id = arena_printf(b.arena, "job-%s", hex), .timeout_s = 60};
	*state = &b;
	return 0;
}

static int end(void **state)
{
	struct bench *b = *state;
	arena_free(b->arena);
	return 0;
}

static const char *in_folder(struct bench *b, const char *name)
{
	return arena_printf(b->arena, "/tmp/.sbx/%s/%s", b->job.id, name);
}

static void put(struct bench *b)
{
	const void *archive;
	size_t n;
	assert_int_equal(spool_pack(&b->job, b->arena, &archive, &n), OK);
	assert_int_equal(spool_put(&b->call, "box", &b->job, archive, n), OK);
}

/* What it says as the first poll is in b->s. */
static enum err ask_start(struct bench *b)
{
	return spool_start(&b->call, "box", &b->job, SLICE, &b->s);
}

static void start(struct bench *b, const char *cmd)
{
	b->job.cmd = cmd;
	put(b);
	assert_int_equal(ask_start(b), OK);
}

static enum err look(struct bench *b, int64_t wait_s)
{
	return spool_poll(&b->call, "box", b->job.id, 0, 0, SLICE, wait_s, &b->s);
}

static void wait_end(struct bench *b)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	do
		assert_int_equal(look(b, 20), OK);
	while ((b->s.state == SPOOL_RUN || b->s.state == SPOOL_NEW) && clock_mono_ms() < until);
}

/* Starts a job and waits until it is done. */
static void run(struct bench *b, const char *cmd)
{
	start(b, cmd);
	if (b->s.state != SPOOL_DONE)
		wait_end(b);
	assert_int_equal(b->s.state, SPOOL_DONE);
}

static void expect_out(struct bench *b, const char *out)
{
	assert_string_equal(b->s.out, out);
	assert_int_equal(b->s.out_n, strlen(out));
}

static const char *slurp(struct bench *b, const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f)
		return "";
	char *p = arena_take(b->arena, 65536);
	size_t n = fread(p, 1, 65535, f);
	p[n] = '\0';
	(void)fclose(f);
	return p;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void wait_for_file(const char *path)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	while (!exists(path) && clock_mono_ms() < until)
		clock_sleep_ms(5);
	assert_true(exists(path));
}

/* True when a file of every process (cmdline, environ) lacks the text; `skip` is not looked at. */
static bool nowhere(const char *file, const char *text, pid_t skip)
{
	static char bytes[1 << 20];
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool found = false;
	while ((e = readdir(d))) {
		char path[300];
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || atoi(e->d_name) == skip)
			continue;
		(void)snprintf(path, sizeof path, "/proc/%s/%s", e->d_name, file);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, bytes, sizeof bytes);
		if (fd >= 0)
			(void)close(fd);
		if (n > 0 && memmem(bytes, (size_t)n, text, strlen(text)))
			found = true;
	}
	(void)closedir(d);
	return !found;
}

/* False also for a process that has ended and is not collected yet. */
static bool runs(pid_t pid)
{
	char path[64], state = 'Z';
	assert_true(pid > 1);
	(void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return false;
	(void)fscanf(f, "%*d (%*[^)]) %c", &state);
	(void)fclose(f);
	return state != 'Z' && state != 'X';
}

/* -- results ----------------------------------------------------------------------------------- */

static void code_and_both_streams_come_back(void **state)
{
	struct bench *b = *state;
	run(b, "echo out; echo err >&2; exit 7");
	assert_int_equal(b->s.code, 7);
	assert_false(b->s.timed_out);
	expect_out(b, "out\n");
	assert_string_equal(b->s.err, "err\n");
}

static void a_short_command_ends_in_the_answer_to_its_start(void **state)
{
	struct bench *b = *state;
	unsigned trips;
	int tries = 0;
	do { /* a machine that is busy may need more than the second */
		b->job.id = arena_printf(b->arena, "%s-%d", b->job.id, tries);
		trips = b->call.round_trips;
		start(b, "echo out; echo err >&2; exit 7");
	} while (b->s.state != SPOOL_DONE && ++tries < 9);
	assert_int_equal(b->call.round_trips - trips, 2);
	assert_int_equal(b->s.state, SPOOL_DONE);
	assert_int_equal(b->s.code, 7);
	expect_out(b, "out\n");
	assert_string_equal(b->s.err, "err\n");
}

static void a_start_does_not_wait_for_a_long_command(void **state)
{
	struct bench *b = *state;
	start(b, "echo begun; sleep 66");
	assert_in_set(b->s.state, ((uintmax_t[]){SPOOL_NEW, SPOOL_RUN}), 2);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	wait_end(b);
	assert_int_equal(b->s.code, 137);
}

static void a_command_killed_by_itself_is_137_and_not_timed_out(void **state)
{
	struct bench *b = *state;
	run(b, "echo a; kill -9 $$");
	assert_int_equal(b->s.code, 137);
	assert_false(b->s.timed_out);
	expect_out(b, "a\n");
	assert_string_equal(b->s.err, "");
}

/* Every command ends like under `sh -c` itself. */
static const char *const plain[] = {
	"fi",
	"echo a; fi",
	"echo 'x",
	"set -e; false; echo no",
	"set -e\nfalse\necho no",
	"cat <<X\nhi $((1+1))\nX\n",
	"cat <<X\nunterminated",
	"cat; echo $?",
	"read x; echo \"$? $x\"",
	"return 3; echo no",
	"nosuchcommand",
	"echo $0 $#",
	"trap 'echo bye' EXIT; exit 4",
	"trap 'echo t' TERM; kill -TERM $$; exit 5",
	"set -u; echo $nope; echo x",
	"kill -INT $$; echo x",
	"exit 300",
	"",
	"alias x=echo\nx hi",
	"umask; trap; echo $-",
};

static void compare(struct bench *b, const char *cmd)
{
	const char *const argv[] = {"sh", "-c", cmd, NULL};
	struct exec_result r;
	assert_int_equal(shells_exec(b->arena, argv, &r), OK);
	wait_end(b);
	if (b->s.state != SPOOL_DONE || b->s.code != r.code || b->s.out_n != r.out_n ||
		memcmp(b->s.out, r.out, r.out_n) != 0)
		fail_msg("%s: `%s` ended with %d, not %d, and said `%s`, not `%s`", shell_name, cmd,
			b->s.code, r.code, b->s.out, r.out);
}

static void commands_end_as_under_sh_itself(void **state)
{
	enum { N = sizeof plain / sizeof plain[0] };
	struct bench *b = *state;
	const char *ids[N], *first = b->job.id;
	for (int i = 0; i < N; i++) {
		ids[i] = b->job.id = arena_printf(b->arena, "%s-%d", first, i);
		start(b, plain[i]);
	}
	for (int i = 0; i < N; i++) {
		b->job.id = ids[i];
		compare(b, plain[i]);
	}
}

static void any_byte_comes_through(void **state)
{
	struct bench *b = *state;
	uint8_t all[256];
	for (int i = 0; i < 256; i++)
		all[i] = (uint8_t)i;
	struct spool_file f = {.path = "bytes", .p = all, .n = sizeof all, .mode = 0644};
	b->job.files = &f;
	b->job.files_n = 1;
	run(b, "cat bytes; cat bytes bytes >&2");
	assert_int_equal(b->s.out_n, 256);
	assert_memory_equal(b->s.out, all, 256);
	assert_int_equal(b->s.err_n, 512);
}

static void a_slice_may_begin_inside_a_character(void **state)
{
	struct bench *b = *state;
	start(b, "printf 'a\\303\\244\\342\\202\\254'");
	wait_end(b);
	assert_int_equal(spool_poll(&b->call, "box", b->job.id, 0, 0, 4, 0, &b->s), OK);
	assert_int_equal(b->s.out_bytes, 6);
	assert_int_equal(b->s.out_at, 2);
	assert_int_equal(b->s.out_n, 4);
	assert_memory_equal(b->s.out, "\xa4\xe2\x82\xac", 4);
}

static void a_hundred_megabytes_never_cross_the_wire(void **state)
{
	struct bench *b = *state;
	run(b, "yes 0123456789abcde | head -c 100000000; echo end");
	assert_int_equal(b->s.out_bytes, 100000004);
	assert_int_equal(b->s.out_at, 100000004 - SLICE);
	assert_int_equal(b->s.out_n, SLICE);
	assert_memory_equal(b->s.out + SLICE - 4, "end\n", 4);
	assert_true(b->call.round_trips < 8);
}

static void output_goes_on_from_an_offset(void **state)
{
	struct bench *b = *state;
	run(b, "echo 0123456789; echo abc >&2");
	assert_int_equal(spool_poll(&b->call, "box", b->job.id, 8, 4, SLICE, 0, &b->s), OK);
	assert_string_equal(b->s.out, "89\n");
	assert_int_equal(b->s.out_at, 8);
	assert_int_equal(b->s.err_n, 0);
	assert_int_equal(b->s.err_bytes, 4);
	assert_int_equal(spool_poll(&b->call, "box", b->job.id, 500, 0, SLICE, 0, &b->s), OK);
	assert_int_equal(b->s.out_n, 0);
}

static void the_state_of_memory_is_a_number_or_unknown(void **state)
{
	struct bench *b = *state;
	run(b, "true");
	assert_true(b->s.peak_bytes == -1 || b->s.peak_bytes > 0);
	assert_true(b->s.oom_kills >= -1);
}

/* -- waiting ----------------------------------------------------------------------------------- */

static void a_poll_waits_for_the_end(void **state)
{
	struct bench *b = *state;
	start(b, "sleep 3; echo late; exit 2");
	assert_int_equal(look(b, 20), OK);
	assert_int_equal(b->s.state, SPOOL_DONE);
	assert_int_equal(b->s.code, 2);
	expect_out(b, "late\n");
}

static void a_poll_that_waited_in_vain_tells_what_there_is(void **state)
{
	struct bench *b = *state;
	start(b, "echo so far; sleep 50");
	assert_int_equal(look(b, 1), OK);
	assert_int_equal(b->s.state, SPOOL_RUN);
	assert_int_equal(b->s.code, -1);
	expect_out(b, "so far\n");
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	wait_end(b);
	assert_int_equal(b->s.code, 137);
}

/* -- the end of everything --------------------------------------------------------------------- */

static void children_that_left_the_group_end_with_the_job(void **state)
{
	struct bench *b = *state;
	run(b, "setsid sleep 71 & (setsid sh -c 'sleep 72; sleep 73' &) ; sleep 0.2; echo "
	       "$SBX_JOB; "
	       "exit 4");
	assert_int_equal(b->s.code, 4);
	expect_out(b, arena_printf(b->arena, "%s\n", b->job.id));
	assert_true(nowhere("environ", arena_printf(b->arena, "SBX_JOB=%s", b->job.id), 0));
}

static void background_children_end_with_the_job(void **state)
{
	struct bench *b = *state;
	run(b, "sleep 74 & sleep 75 & echo $!; exit 0");
	assert_int_equal(b->s.code, 0);
	assert_false(runs((pid_t)atoi(b->s.out)));
}

static void term_ignored_is_followed_by_kill(void **state)
{
	struct bench *b = *state;
	b->job.timeout_s = 1;
	run(b, "trap '' TERM; echo deaf; sleep 60; sleep 60");
	assert_int_equal(b->s.code, 137);
	assert_true(b->s.timed_out);
	expect_out(b, "deaf\n");
}

static void a_clean_exit_after_term_is_still_timed_out(void **state)
{
	struct bench *b = *state;
	b->job.timeout_s = 1;
	run(b, "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.05; done");
	assert_int_equal(b->s.code, 0);
	assert_true(b->s.timed_out);
	expect_out(b, "cleaned\n");
}

static void an_end_before_the_time_keeps_its_outcome(void **state)
{
	struct bench *b = *state;
	b->job.timeout_s = 1;
	run(b, "sleep 0.3; exit 3");
	/* The time passes afterwards. */
	clock_sleep_ms(1200);
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_DONE);
	assert_int_equal(b->s.code, 3);
	assert_false(b->s.timed_out);
}

static void nothing_of_the_spool_outlives_the_job(void **state)
{
	struct bench *b = *state;
	run(b, "true");
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	while (!nowhere("cmdline", b->job.id, 0) && clock_mono_ms() < until)
		clock_sleep_ms(20);
	assert_true(nowhere("cmdline", b->job.id, 0));
	assert_false(exists(arena_printf(b->arena, "/sys/fs/cgroup/unified/sbx-%s", b->job.id)));
}

/* -- repeats and refusals ---------------------------------------------------------------------- */

static void a_repeated_start_runs_once(void **state)
{
	struct bench *b = *state;
	start(b, "echo ran >>/tmp/witness; sleep 3");
	assert_int_equal(ask_start(b), OK);
	put(b);
	assert_int_equal(ask_start(b), OK);
	wait_end(b);
	assert_int_equal(ask_start(b), OK);
	assert_string_equal(slurp(b, "/tmp/witness"), "ran\n");
	/* Nor does the archive of the repeat stay behind. */
	assert_false(exists(arena_printf(b->arena, "/tmp/.sbx-%s.tar", b->job.id)));
}

static void starts_at_the_same_time_run_once(void **state)
{
	struct bench *b = *state;
	pid_t twins[4];
	b->job.cmd = "echo ran >>/tmp/witness2; exit 6";
	put(b);
	for (int i = 0; i < 4; i++) {
		twins[i] = fork();
		if (twins[i] == 0)
			_exit(ask_start(b) ? 1 : 0);
	}
	for (int i = 0; i < 4; i++) {
		int status;
		assert_int_equal(waitpid(twins[i], &status, 0), twins[i]);
		assert_int_equal(status, 0);
	}
	wait_end(b);
	assert_int_equal(b->s.code, 6);
	assert_string_equal(slurp(b, "/tmp/witness2"), "ran\n");
}

static void a_missing_folder_is_an_error_of_cwd_also_when_repeated(void **state)
{
	struct bench *b = *state;
	b->job.cmd = "echo ran >/tmp/witness3";
	b->job.cwd = "/no/such/folder";
	put(b);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask_start(b), ERR_BAD_INPUT);
		assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "cwd");
	}
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_NEW);
	assert_false(exists("/tmp/witness3"));
	assert_false(exists(in_folder(b, "env")));
}

static void a_relative_cwd_begins_in_the_job_folder(void **state)
{
	struct bench *b = *state;
	struct spool_file f = {.path = "deep/er/file", .p = "x", .n = 1, .mode = 0644};
	b->job.files = &f;
	b->job.files_n = 1;
	b->job.cwd = "deep/er";
	run(b, "pwd; ls");
	expect_out(b, arena_printf(b->arena, "/tmp/job-%s/deep/er\nfile\n", b->job.id));
}

static void a_damaged_archive_starts_nothing(void **state)
{
	struct bench *b = *state;
	b->job.cmd = "echo ran >/tmp/witness4";
	assert_int_equal(spool_put(&b->call, "box", &b->job, "not a tar", 9), OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask_start(b), ERR_UPSTREAM);
	/* A whole one that comes later is taken. */
	put(b);
	assert_int_equal(ask_start(b), OK);
	wait_end(b);
	assert_int_equal(b->s.state, SPOOL_DONE);
}

static void a_missing_archive_means_another_machine(void **state)
{
	struct bench *b = *state;
	b->job.cmd = "true";
	assert_int_equal(ask_start(b), ERR_BOX_GONE);
}

static void an_unknown_job_and_another_machine_are_told_apart(void **state)
{
	struct bench *b = *state;
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_GONE);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	shells_small_disk("size=1m");
	enum err seen = look(b, 0), killed = spool_kill(&b->call, "box", b->job.id, "KILL");
	shells_usual_disk();
	assert_int_equal(seen, ERR_BOX_GONE);
	assert_int_equal(killed, ERR_BOX_GONE);
}

static void a_sandbox_without_the_tools_is_refused(void **state)
{
	struct bench *b = *state;
	const char *usual = shell_path;
	b->job.cmd = "true";
	put(b);
	shell_path = "/no/such/folder";
	enum err e = ask_start(b);
	shell_path = usual;
	assert_int_equal(e, ERR_UPSTREAM);
}

/* What only a supervisor would clear away: the processes of the time-out, and a control group. */
static void clear_up(struct bench *b)
{
	const char *const argv[] = {"sh", "-c",
		"for p in $(grep -lzF \"$1\" /proc/[0-9]*/cmdline); do\n"
		"p=${p#/proc/}; p=${p%/*}; [ \"$p\" = $$ ] || kill -9 -- \"-$p\" || kill -9 $p; "
		"done "
		"2>/dev/null\n"
		"for g in /sys/fs/cgroup /sys/fs/cgroup/unified; do\n"
		"[ ! -d \"$g/sbx-$1\" ] || rmdir \"$g/sbx-$1\"; done; true",
		"sbx", b->job.id, NULL};
	struct exec_result r;
	assert_int_equal(shells_exec(b->arena, argv, &r), OK);
}

static void a_dead_supervisor_is_lost_and_never_a_code(void **state)
{
	struct bench *b = *state;
	start(b, "echo alive; sleep 61");
	wait_for_file(in_folder(b, "out"));
	while (atoi(slurp(b, in_folder(b, "sup"))) <= 0 || atoi(slurp(b, in_folder(b, "job"))) <= 0)
		clock_sleep_ms(5);
	pid_t job = (pid_t)atoi(slurp(b, in_folder(b, "job")));
	assert_int_equal(kill((pid_t)atoi(slurp(b, in_folder(b, "sup"))), SIGKILL), 0);
	wait_end(b);
	assert_int_equal(b->s.state, SPOOL_LOST);
	assert_int_equal(b->s.code, -1);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	while (runs(job) && clock_mono_ms() < until)
		clock_sleep_ms(5);
	assert_false(runs(job));
	clear_up(b);
}

static void write_over(struct bench *b, const char *name, const char *text)
{
	FILE *f = fopen(in_folder(b, name), "r+");
	assert_non_null(f);
	assert_int_equal(fputs(text, f) >= 0, 1);
	assert_int_equal(fclose(f), 0);
}

/* A shell reads a byte at a time: its first bytes may be from before the write. */
static void a_number_that_is_written_while_it_is_read_is_not_there_yet(void **state)
{
	struct bench *b = *state;
	run(b, "exit 137");
	assert_int_equal(b->s.code, 137);
	write_over(b, "code", " 37 0       137        \n");
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_LOST);
	assert_int_equal(b->s.code, -1);
	write_over(b, "sup", "  1         4000001    \n");
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_NEW);
	write_over(b, "sup", "            4000001    \n");
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_NEW);
}

/* -- kill -------------------------------------------------------------------------------------- */

static void a_killed_job_tells_its_signal(void **state)
{
	struct bench *b = *state;
	start(b, "sleep 62 & sleep 63");
	while (atoi(slurp(b, in_folder(b, "job"))) <= 0)
		clock_sleep_ms(5);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "TERM"), OK);
	wait_end(b);
	assert_int_equal(b->s.code, 143);
	assert_false(b->s.timed_out);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
}

static void a_kill_before_the_command_keeps_it_from_starting(void **state)
{
	struct bench *b = *state;
	b->job.cmd = "echo ran >/tmp/witness5";
	put(b);
	/* As after a start that has made its folder and gone no further. */
	assert_int_equal(shells_exec(b->arena,
				 (const char *const[]){"sh", "-c", "mkdir -p \"$1\"", "x",
					 in_folder(b, ""), NULL},
				 &(struct exec_result){0}),
		OK);
	assert_int_equal(look(b, 0), OK);
	assert_int_equal(b->s.state, SPOOL_NEW);
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	assert_true(exists(in_folder(b, "stop")));
	assert_false(exists("/tmp/witness5"));
}

/* -- environment ------------------------------------------------------------------------------- */

static void values_of_any_kind_arrive(void **state)
{
	struct bench *b = *state;
	char *large = arena_take(b->arena, 100001);
	memset(large, 'x', 100000);
	const struct spool_env env[] = {
		{"Q", "it's \"quoted\" ''twice''"},
		{"D", "$HOME `id` $(id) ${x} \\ \\n !!"},
		{"N", "two\nlines\n"},
		{"U", "\xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80"},
		{"E", ""},
		{"S", "  blanks  "},
		{"BIG", large},
		{"e", "small name"},
		{"IFS", "x"},
	};
	b->job.env = env;
	b->job.env_n = sizeof env / sizeof env[0];
	run(b, "printf '%s|' \"$Q\" \"$D\" \"$N\" \"$U\" \"$E\" \"$S\" \"${#BIG}\" \"$e\"");
	expect_out(b, "it's \"quoted\" ''twice''|$HOME `id` $(id) ${x} \\ \\n !!|two\nlines\n|"
		      "\xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80||  blanks  |100000|small name|");
	assert_string_equal(b->s.err, "");
}

static void a_path_without_programs_only_hurts_the_command(void **state)
{
	struct bench *b = *state;
	const struct spool_env env = {"PATH", "/no/such/folder"};
	b->job.env = &env;
	b->job.env_n = 1;
	run(b, "echo $PATH; ls");
	assert_int_equal(b->s.code, 127);
	expect_out(b, "/no/such/folder\n");
	assert_false(exists(in_folder(b, "env")));
}

static void names_that_shells_use_do_not_end_them(void **state)
{
	struct bench *b = *state;
	const struct spool_env env[] = {{"OPTIND", "abc"}, {"LINENO", "abc"}, {"RANDOM", "x"},
		{"PS4", "$(exit 9)"}, {"ENV", "/no/such"}, {"BASH_ENV", "/no/such"}, {"_", "x"},
		{"PWD", "/"}, {"HOME", "/no/such"}, {"LAST", "yes"}};
	b->job.env = env;
	b->job.env_n = sizeof env / sizeof env[0];
	run(b, "echo $LAST; pwd; exit 3");
	assert_int_equal(b->s.code, 3);
	expect_out(b, arena_printf(b->arena, "yes\n/tmp/job-%s\n", b->job.id));
}

static void no_secret_is_on_a_command_line_or_left_behind(void **state)
{
	struct bench *b = *state;
	const char *text = arena_printf(b->arena, "CANARY-%s", b->job.id + 4);
	const struct spool_env env = {"SECRET", text};
	b->job.env = &env;
	b->job.env_n = 1;
	start(b, arena_printf(b->arena, ": %s; echo ready; sleep 64", text));
	while (!strstr(slurp(b, in_folder(b, "out")), "ready"))
		clock_sleep_ms(5);
	assert_true(nowhere("cmdline", text, 0));
	assert_false(nowhere("environ", text, 0));
	assert_false(exists(in_folder(b, "env")));
	assert_false(exists(arena_printf(b->arena, "/tmp/.sbx-%s.tar", b->job.id)));
	assert_int_equal(spool_kill(&b->call, "box", b->job.id, "KILL"), OK);
	wait_end(b);
}

/* -- files ------------------------------------------------------------------------------------- */

static void names_of_any_kind_arrive(void **state)
{
	struct bench *b = *state;
	char *deep = arena_take(b->arena, 512);
	for (int i = 0; i < 10; i++)
		strcat(deep, "a-folder-with-a-name-of-some-forty-letters/");
	strcat(deep, "file");
	const struct spool_file files[] = {
		{"with blanks ", "1", 1, 0644},
		{"-dash", "2", 1, 0644},
		{"--help/-n", "3", 1, 0644},
		{"new\nline", "4", 1, 0644},
		{"\xc3\xa4/\xe2\x82\xac\xf0\x9f\x98\x80", "5", 1, 0644},
		{"run me", "#!/bin/sh\necho ran\n", 19, 0755},
		{"empty", "", 0, 0644},
		{deep, "6", 1, 0644},
		{"$(id)`id`'\"", "7", 1, 0644},
	};
	b->job.files = files;
	b->job.files_n = sizeof files / sizeof files[0];
	run(b, "cat 'with blanks ' ./-dash ./--help/-n 'new\nline' \xc3\xa4/* "
	       "a-*/*/*/*/*/*/*/*/*/*/file "
	       "'$(id)`id`'*; './run me'; [ -x 'run me' ] && [ ! -x empty ] && [ ! -s empty ] && "
	       "echo ok");
	expect_out(b, "1234567ran\nok\n");
}

static void the_job_folder_is_fresh_and_open(void **state)
{
	struct bench *b = *state;
	run(b, "pwd; ls -A; stat -c %a .; umask; touch here && echo writable");
	expect_out(
		b, arena_printf(b->arena, "/tmp/job-%s\n755\n%s\nwritable\n", b->job.id, "0022"));
}

/* -- a full disk ------------------------------------------------------------------------------- */

static void an_exit_code_survives_a_full_disk(void **state)
{
	struct bench *b = *state;
	shells_small_disk("size=512k");
	b->job.timeout_s = 30;
	start(b, "dd if=/dev/zero of=fill bs=1024 2>/dev/null; echo lost output; exit 7");
	wait_end(b);
	shells_usual_disk();
	assert_int_equal(b->s.state, SPOOL_DONE);
	assert_int_equal(b->s.code, 7);
	assert_false(b->s.timed_out);
}

static void a_time_out_survives_a_full_disk(void **state)
{
	struct bench *b = *state;
	shells_small_disk("size=512k");
	b->job.timeout_s = 1;
	start(b, "dd if=/dev/zero of=fill bs=1024 2>/dev/null; sleep 65");
	wait_end(b);
	shells_usual_disk();
	assert_int_equal(b->s.state, SPOOL_DONE);
	assert_int_equal(b->s.code, 143);
	assert_true(b->s.timed_out);
}

static void a_start_on_a_full_disk_is_refused(void **state)
{
	struct bench *b = *state;
	const struct exec_result none = {0};
	struct exec_result r = none;
	b->job.cmd = "exit 0";
	shells_small_disk("size=64k");
	put(b);
	(void)shells_exec(
		b->arena, (const char *const[]){"sh", "-c", "cat /dev/zero >/tmp/fill", NULL}, &r);
	enum err e = ask_start(b), seen = look(b, 0);
	shells_usual_disk();
	assert_int_equal(e, ERR_UPSTREAM);
	assert_true(seen == OK ? b->s.state != SPOOL_DONE : seen == ERR_BOX_GONE);
}

/* -- one process per shell --------------------------------------------------------------------- */

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
static const struct CMUnitTest tests[] = {
	T(code_and_both_streams_come_back),
	T(a_short_command_ends_in_the_answer_to_its_start),
	T(a_start_does_not_wait_for_a_long_command),
	T(a_command_killed_by_itself_is_137_and_not_timed_out),
	T(commands_end_as_under_sh_itself),
	T(any_byte_comes_through),
	T(a_slice_may_begin_inside_a_character),
	T(a_hundred_megabytes_never_cross_the_wire),
	T(output_goes_on_from_an_offset),
	T(the_state_of_memory_is_a_number_or_unknown),
	T(a_poll_waits_for_the_end),
	T(a_poll_that_waited_in_vain_tells_what_there_is),
	T(children_that_left_the_group_end_with_the_job),
	T(background_children_end_with_the_job),
	T(term_ignored_is_followed_by_kill),
	T(a_clean_exit_after_term_is_still_timed_out),
	T(an_end_before_the_time_keeps_its_outcome),
	T(nothing_of_the_spool_outlives_the_job),
	T(a_repeated_start_runs_once),
	T(starts_at_the_same_time_run_once),
	T(a_missing_folder_is_an_error_of_cwd_also_when_repeated),
	T(a_relative_cwd_begins_in_the_job_folder),
	T(a_damaged_archive_starts_nothing),
	T(a_missing_archive_means_another_machine),
	T(an_unknown_job_and_another_machine_are_told_apart),
	T(a_sandbox_without_the_tools_is_refused),
	T(a_dead_supervisor_is_lost_and_never_a_code),
	T(a_number_that_is_written_while_it_is_read_is_not_there_yet),
	T(a_killed_job_tells_its_signal),
	T(a_kill_before_the_command_keeps_it_from_starting),
	T(values_of_any_kind_arrive),
	T(a_path_without_programs_only_hurts_the_command),
	T(names_that_shells_use_do_not_end_them),
	T(no_secret_is_on_a_command_line_or_left_behind),
	T(names_of_any_kind_arrive),
	T(the_job_folder_is_fresh_and_open),
	T(an_exit_code_survives_a_full_disk),
	T(a_time_out_survives_a_full_disk),
	T(a_start_on_a_full_disk_is_refused),
};

static int under(const char *shell)
{
	if (!shells_enter(shell)) {
		(void)fprintf(stderr, "%s: no private /tmp or no such shell here\n", shell);
		return 1;
	}
	return cmocka_run_group_tests_name(shell, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	static const char *const shells[] = {"dash", "bash", "busybox"};
	pid_t pids[3];
	int worst = 0;
	if (argc > 1)
		return under(argv[1]);
	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(under(shells[i]));
	}
	for (int i = 0; i < 3; i++) {
		int status;
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			worst = 1;
	}
	return worst;
}
