/* Settings: what the reader takes, and above all what it refuses and how it says so. */
#include "conf.h" /* before cmocka.h, whose macro fail() hides our function */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_conf.XXXXXX";
static char path[128], said[16384];

static int folder_make(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/settings.ini", folder);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

/* Runs fn with one of the standard descriptors sent to a file, whose content goes to said[]. */
static void capture(int fd, void (*fn)(void *ctx), void *ctx)
{
	char name[160];
	snprintf(name, sizeof name, "%s/said", folder);
	fflush(NULL);
	int old = dup(fd), file = open(name, O_CREAT | O_TRUNC | O_RDWR, 0600);
	assert_true(old >= 0 && file >= 0);
	dup2(file, fd);
	fn(ctx);
	fflush(NULL);
	dup2(old, fd);
	close(old);
	ssize_t n = pread(file, said, sizeof said - 1, 0);
	assert_true(n >= 0);
	said[n] = 0;
	close(file);
	unlink(name);
}

struct attempt {
	const char *path;
	struct conf conf;
	bool good;
};

static void attempt_run(void *ctx)
{
	struct attempt *a = ctx;
	a->good = conf_read(a->path, &a->conf);
}

static void file_write(const void *p, size_t n, mode_t mode)
{
	unlink(path);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	fchmod(fd, mode);
	close(fd);
}

static struct attempt read_bytes(const char *p, size_t n)
{
	struct attempt a = {.path = path};
	file_write(p, n, 0640);
	capture(2, attempt_run, &a);
	return a;
}

static struct attempt read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

/* The file is refused, and what is printed names the file and contains `reason`. */
static void refused(const char *text, const char *reason)
{
	struct attempt a = read_text(text);
	if (a.good || !strstr(said, reason))
		print_error("file:\n%s\nwanted: %s\nsaid: %s\n", text, reason, said);
	assert_false(a.good);
	assert_non_null(strstr(said, reason));
	assert_non_null(strstr(said, path));
}

static void without_a_file_every_setting_has_its_default(void **state)
{
	(void)state;
	struct conf c;
	assert_true(conf_read(NULL, &c));
	assert_string_equal(c.public_url, "https://localhost:8443");
	assert_string_equal(c.default_plan, "free");
	assert_int_equal(c.workers, 0);
	assert_int_equal(c.free_calls, 500);
	assert_int_equal(c.pro_calls, 50000);
	assert_int_equal(c.anonymous_calls, 500);
	assert_int_equal(c.anonymous_accounts, 5);
	assert_int_equal(c.retention_days, 90);
	assert_int_equal(c.db_connections, 8);
	assert_string_equal(c.db_password, "");
	assert_string_equal(c.upgrade_yearly_price, "");
}

static void values_of_every_kind_are_read(void **state)
{
	(void)state;
	struct attempt a = read_text("# a comment\n"
				     "[server]\n"
				     "public_url = https://connector.example\n"
				     "workers = 3 ; cores\n"
				     "\n"
				     "[plans]\n"
				     "free_calls=0\n"
				     "[database]\n"
				     "password = p=a:s#s\n"
				     "[server]\n"
				     "default_plan = pro\n"
				     "[upgrade]\n"
				     "monthly_price = 9 \xe2\x82\xac\n");
	assert_string_equal(said, "");
	assert_true(a.good);
	assert_string_equal(a.conf.public_url, "https://connector.example");
	assert_int_equal(a.conf.workers, 3);
	assert_int_equal(a.conf.free_calls, 0);
	assert_string_equal(a.conf.db_password, "p=a:s#s");
	assert_string_equal(a.conf.default_plan, "pro");
	assert_string_equal(a.conf.upgrade_monthly_price, "9 \xe2\x82\xac");
}

static void lines_may_end_in_cr_lf_and_the_last_in_nothing(void **state)
{
	(void)state;
	struct attempt a = read_text("[server]\r\nworkers = 7\r\n\r\nqueue = 12");
	assert_true(a.good);
	assert_int_equal(a.conf.workers, 7);
	assert_int_equal(a.conf.queue, 12);
}

static void a_relative_path_is_taken_from_the_folder_of_the_file(void **state)
{
	(void)state;
	char want[160];
	struct attempt a = read_text("[keys]\nmaster_keys = master.keys\n"
				     "[server]\nsocket = /run/x/fcgi.sock\nca_hint =\n");
	assert_true(a.good);
	snprintf(want, sizeof want, "%s/master.keys", folder);
	assert_string_equal(a.conf.master_keys, want);
	assert_string_equal(a.conf.socket, "/run/x/fcgi.sock");
	assert_string_equal(a.conf.ca_hint, "");
}

static void both_ends_of_a_range_are_inside_it(void **state)
{
	(void)state;
	struct attempt a = read_text("[database]\nport = 1\n[server]\nworkers = 256\n");
	assert_true(a.good);
	assert_int_equal(a.conf.db_port, 1);
	assert_int_equal(a.conf.workers, 256);
	refused("[database]\nport = 0\n",
		"line 2: [database] port must be a whole number from 1 to 65535");
	refused("[database]\nport = 65536\n", "from 1 to 65535");
	refused("[server]\nworkers = 257\n",
		"line 2: [server] workers must be a whole number from 0 to 256");
}

static void what_is_no_number_is_refused(void **state)
{
	(void)state;
	refused("[server]\nworkers = many\n", "[server] workers must be a whole number");
	refused("[server]\nworkers = 2.0\n", "[server] workers must be a whole number");
	refused("[server]\nworkers = 2 3\n", "[server] workers must be a whole number");
	refused("[server]\nworkers =\n", "[server] workers must be a whole number");
	refused("[server]\nworkers = -1\n", "[server] workers must be a whole number");
	refused("[server]\nworkers = 99999999999999999999\n",
		"[server] workers must be a whole number");
}

static void unknown_sections_and_settings_are_refused_by_name(void **state)
{
	(void)state;
	refused("[srever]\nworkers = 1\n", "line 2: there is no section [srever]");
	refused("[server]\n\nworker = 1\n", "line 3: section [server] has no setting worker");
	refused("workers = 1\n", "there is no section [?]");
	refused("[server]\nport = 1\n", "section [server] has no setting port");
	refused("[server]\nWorkers = 1\n", "section [server] has no setting Workers");
}

static void a_setting_given_twice_is_refused(void **state)
{
	(void)state;
	refused("[server]\nworkers = 1\nworkers = 1\n", "line 3: [server] workers is set twice");
	refused("[server]\nworkers = 1\n[plans]\nfree_calls=1\n[server]\nworkers = 2\n",
		"line 6: [server] workers is set twice");
	refused("[server]\norigins = https://a\n  https://b\n",
		"line 3: [server] origins is set twice");
}

static void a_line_of_no_form_is_refused(void **state)
{
	(void)state;
	refused("[server]\nworkers\n", "line 2: this is neither [section] nor");
	refused("[server\nworkers = 1\n", "line 1: this is neither [section] nor");
}

static void texts_have_lengths_and_forms(void **state)
{
	(void)state;
	char text[512];
	snprintf(text, sizeof text, "[upgrade]\nmonthly_price = %065d\n", 0);
	refused(text, "line 2: [upgrade] monthly_price must have 0 to 64 bytes");
	refused("[database]\nuser =\n", "[database] user must have 1 to 64 bytes");
	refused("[database]\nschema = a;b\n[database]\nuser = a b\n",
		"user must be letters, digits");
	refused("[server]\npublic_url = http://x.example\n", "public_url must be https://host");
	refused("[server]\npublic_url = https://x.example/\n", "public_url must be https://host");
	refused("[server]\ndefault_plan = gold\n", "default_plan must be free or pro");
	refused("[upgrade]\nyearly_url = javascript:1\n", "yearly_url must be empty or begin with");
	refused("[outbound]\nallowed_origins = ftp://x\n", "allowed_origins must be a list of");
	refused("[outbound]\nallowed_origins = http://127.0.0.1:1,x\n", "allowed_origins must be");
	refused("[server]\norigins = \xff\n", "origins must be UTF-8 without control characters");
	refused("[server]\norigins = a\x01z\n", "origins must be UTF-8 without control characters");
}

static void a_line_that_is_too_long_is_refused_not_cut(void **state)
{
	(void)state;
	char text[4096];
	snprintf(text, sizeof text, "[server]\norigins = %03000d\nworkers = 1\n", 0);
	refused(text, "line 2: the line is longer than");
	snprintf(text, sizeof text, "[server]\n# %03000d\nworkers = 300\n", 0);
	refused(text, "line 3: [server] workers");
}

static void a_nul_byte_is_refused(void **state)
{
	(void)state;
	static const char text[] = "[server]\nworkers = 1\0002\n";
	struct attempt a = read_bytes(text, sizeof text - 1);
	assert_false(a.good);
	assert_non_null(strstr(said, "line 2: the line contains a NUL byte"));
}

static void every_problem_of_a_file_is_reported(void **state)
{
	(void)state;
	struct attempt a = read_text("[server]\nworkers = x\nwrong = 1\n[plans]\npro_calls = -5\n");
	assert_false(a.good);
	assert_non_null(strstr(said, "line 2:"));
	assert_non_null(strstr(said, "line 3:"));
	assert_non_null(strstr(said, "line 5:"));
}

static void names_from_the_file_are_not_echoed_raw(void **state)
{
	(void)state;
	refused("[server]\n\x1b[31mred = 1\n", "section [server] has no setting ?");
	assert_null(strchr(said, '\x1b'));
}

static void a_missing_file_and_a_folder_are_refused(void **state)
{
	(void)state;
	struct attempt a = {.path = "/nowhere/settings.ini"};
	capture(2, attempt_run, &a);
	assert_false(a.good);
	assert_non_null(strstr(said, "/nowhere/settings.ini: No such file or directory"));
	a.path = folder;
	capture(2, attempt_run, &a);
	assert_false(a.good);
	assert_non_null(strstr(said, "is not a plain file"));
}

static void a_huge_file_is_refused(void **state)
{
	(void)state;
	size_t n = 100000;
	char *text = malloc(n);
	memset(text, '\n', n);
	struct attempt a = read_bytes(text, n);
	free(text);
	assert_false(a.good);
	assert_non_null(strstr(said, "can not be read whole (at most 65536 bytes)"));
}

static void a_password_in_a_file_open_to_others_is_refused(void **state)
{
	(void)state;
	static const char secret[] = "[database]\npassword = hush\n";
	static const char plain[] = "[database]\npassword =\n";
	struct attempt a = {.path = path};
	file_write(secret, sizeof secret - 1, 0644);
	capture(2, attempt_run, &a);
	assert_false(a.good);
	assert_non_null(strstr(said, "chmod 0640"));
	assert_null(strstr(said, "hush"));
	file_write(secret, sizeof secret - 1, 0640);
	capture(2, attempt_run, &a);
	assert_true(a.good);
	file_write(plain, sizeof plain - 1, 0644);
	capture(2, attempt_run, &a);
	assert_true(a.good);
}

static void a_refused_file_leaves_the_settings_as_they_were(void **state)
{
	(void)state;
	struct attempt a = {.path = path, .conf = {.workers = 42}};
	file_write("[server]\nworkers = 1\nno\n", 24, 0640);
	capture(2, attempt_run, &a);
	assert_false(a.good);
	assert_int_equal(a.conf.workers, 42);
}

static void example_run(void *ctx)
{
	(void)ctx;
	conf_print_example();
}

static void the_printed_example_is_a_file_of_the_defaults(void **state)
{
	(void)state;
	static char example[sizeof said];
	struct conf defaults;
	capture(1, example_run, NULL);
	memcpy(example, said, sizeof example);
	assert_true(strlen(example) < sizeof example - 1);
	struct attempt a = read_text(example);
	assert_string_equal(said, "");
	assert_true(a.good);
	assert_true(conf_read(NULL, &defaults));
	assert_string_equal(a.conf.public_url, defaults.public_url);
	assert_string_equal(a.conf.ca_file, defaults.ca_file);
	assert_int_equal(a.conf.threads, defaults.threads);
	assert_int_equal(a.conf.sweep_s, defaults.sweep_s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_file_every_setting_has_its_default),
		cmocka_unit_test(values_of_every_kind_are_read),
		cmocka_unit_test(lines_may_end_in_cr_lf_and_the_last_in_nothing),
		cmocka_unit_test(a_relative_path_is_taken_from_the_folder_of_the_file),
		cmocka_unit_test(both_ends_of_a_range_are_inside_it),
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(unknown_sections_and_settings_are_refused_by_name),
		cmocka_unit_test(a_setting_given_twice_is_refused),
		cmocka_unit_test(a_line_of_no_form_is_refused),
		cmocka_unit_test(texts_have_lengths_and_forms),
		cmocka_unit_test(a_line_that_is_too_long_is_refused_not_cut),
		cmocka_unit_test(a_nul_byte_is_refused),
		cmocka_unit_test(every_problem_of_a_file_is_reported),
		cmocka_unit_test(names_from_the_file_are_not_echoed_raw),
		cmocka_unit_test(a_missing_file_and_a_folder_are_refused),
		cmocka_unit_test(a_huge_file_is_refused),
		cmocka_unit_test(a_password_in_a_file_open_to_others_is_refused),
		cmocka_unit_test(a_refused_file_leaves_the_settings_as_they_were),
		cmocka_unit_test(the_printed_example_is_a_file_of_the_defaults),
	};
	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
