/* The file of master keys: what it may look like, who may read it, how it is changed. */
#include "seal_world.h"

#include "bounds.h"

#include <pthread.h>
#include <sys/wait.h>

#define KEY_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_B "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static enum err load(struct keyring **k)
{
	*k = NULL;
	enum err e = keyring_load(key_file, k);
	assert_true((e == OK) == (*k != NULL));
	if (e) {
		assert_int_equal(e, ERR_SEALED);
		assert_string_equal(fault_of(e)->field, "keys.master_keys");
		assert_null(strstr(fault_of(e)->detail, "0102030405"));
	}
	return e;
}

static void forms_that_are_read(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"01020304 " KEY_A " current\n",
		"01020304 " KEY_A " current",
		"# a comment\n\n  01020304\t" KEY_A "  current  # made on Monday\n#end",
		"01020304 " KEY_A " current\r\n",
		"0a0b0c0d " KEY_B "\n01020304 " KEY_A " current\n",
		"01020304 " KEY_A " current\n0a0b0c0d " KEY_B "\n\n",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct keyring *k;
		write_key_file(texts[i], 0600);
		assert_int_equal(load(&k), OK);
		assert_int_equal(keyring_current(k), 0x01020304);
		assert_true(keyring_has(k, 0x01020304));
		assert_int_equal(keyring_has(k, 0x0a0b0c0d), i >= 4);
		assert_false(keyring_has(k, 0));
		keyring_free(k);
	}
	keyring_free(NULL);
}

static const struct {
	const char *text, *detail;
} malformed[] = {
	{"", "no line says which key is current"},
	{"# nothing\n", "no line says"},
	{"01020304 " KEY_A "\n", "no line says"},
	{"01020304\n", "line 1: the key must be 64 hex digits"},
	{"01020304 current\n", "line 1: the key must be"},
	{"\n\n01020304 " KEY_A "0 current\n", "line 3: the key must be"},
	{"01020304 00010203040506070809 current\n", "line 1: the key must be"},
	{"01020304 " KEY_A " current\n0a0b0c0d zz" KEY_B "\n", "line 2: the key must be"},
	{"01020304 FF0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F current\n",
		"line 1: the key must be 64 hex digits in lower case"},
	{"1020304 " KEY_A " current\n", "line 1: the id must be 8 hex digits"},
	{"010203040 " KEY_A " current\n", "line 1: the id must be"},
	{"0102030G " KEY_A " current\n", "line 1: the id must be"},
	{"0x020304 " KEY_A " current\n", "line 1: the id must be"},
	{"00000000 " KEY_A " current\n",
		"line 1: the id must be 8 hex digits in lower case and not 0"},
	{"01020304 " KEY_A " Current\n", "line 1: the third word can only be current"},
	{"01020304 " KEY_A " old\n", "line 1: the third word"},
	{"01020304 " KEY_A " current now\n", "line 1: more than three words"},
	{"01020304 " KEY_A " current\n01020304 " KEY_B "\n",
		"line 2: key 01020304 stands here twice"},
	{"01020304 " KEY_A " current\n0a0b0c0d " KEY_B " current\n",
		"line 2: a second key is current"},
	{"01020304:" KEY_A " current\n", "line 1: the id must be"},
	{"\xef\xbb\xbf"
	 "01020304 " KEY_A " current\n",
		"line 1: the id must be"},
};

static void malformed_files_are_refused_with_the_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
		struct keyring *k;
		write_key_file(malformed[i].text, 0600);
		if (load(&k) == OK)
			fail_msg("read: %s", malformed[i].text);
		if (!strstr(fault_of(ERR_SEALED)->detail, malformed[i].detail))
			fail_msg("%s: %s", malformed[i].text, fault_of(ERR_SEALED)->detail);
	}
}

static void too_many_keys_too_many_bytes_and_nul_are_refused(void **state)
{
	(void)state;
	struct keyring *k;
	char *text = arena_take(arena, 20000);
	size_t n = 0;
	for (int i = 1; i <= MASTER_KEYS_MAX + 1; i++)
		n += (size_t)sprintf(
			text + n, "%08x %s%s\n", (unsigned)i, KEY_A, i == 1 ? " current" : "");
	write_key_file(text, 0600);
	assert_int_equal(load(&k), ERR_SEALED);
	assert_non_null(strstr(fault_of(ERR_SEALED)->detail, "line 17: more than 16 keys"));
	memset(text, '#', 19999);
	write_key_file(text, 0600);
	assert_int_equal(load(&k), ERR_SEALED);
	assert_non_null(strstr(fault_of(ERR_SEALED)->detail, "bytes"));
	FILE *f = fopen(key_file, "w");
	assert_non_null(f);
	static const char nul[] = "01020304 " KEY_A " current\n\0 0a0b0c0d\n";
	assert_int_equal(fwrite(nul, 1, sizeof nul, f), sizeof nul);
	fclose(f);
	assert_int_equal(load(&k), ERR_SEALED);
	assert_non_null(strstr(fault_of(ERR_SEALED)->detail, "NUL"));
}

static void a_file_that_others_may_read_is_refused(void **state)
{
	(void)state;
	static const mode_t modes[] = {0640, 0604, 0620, 0602, 0601, 0610, 0666, 0777, 0644};
	struct keyring *k;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		char want[32];
		write_key_file("01020304 " KEY_A " current\n", modes[i]);
		assert_int_equal(load(&k), ERR_SEALED);
		snprintf(want, sizeof want, "mode %04o", (unsigned)modes[i]);
		assert_non_null(strstr(fault_of(ERR_SEALED)->detail, want));
	}
	write_key_file("01020304 " KEY_A " current\n", 0400);
	assert_int_equal(load(&k), OK);
	keyring_free(k);
}

static void what_is_no_file_is_refused(void **state)
{
	(void)state;
	struct keyring *k;
	assert_int_equal(load(&k), ERR_SEALED);
	assert_non_null(strstr(fault_of(ERR_SEALED)->detail, "no such file"));
	assert_int_equal(mkfifo(key_file, 0600), 0);
	assert_int_equal(load(&k), ERR_SEALED);
	assert_int_equal(unlink(key_file), 0);
	assert_int_equal(symlink(folder, key_file), 0);
	assert_int_equal(load(&k), ERR_SEALED);
}

/* In a child, because there is no way back from another user. */
static void a_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return; /* nobody else can make such a file */
	write_key_file("01020304 " KEY_A " current\n", 0600);
	assert_int_equal(chown(key_file, 12345, 12345), 0);
	assert_int_equal(chmod(folder, 0711), 0);
	struct keyring *k;
	assert_int_equal(load(&k), OK); /* root may */
	keyring_free(k);
	pid_t child = fork();
	if (child == 0) {
		bool dropped = setgid(12346) == 0 && setuid(12346) == 0;
		_exit(dropped && keyring_load(key_file, &k) == ERR_SEALED ? 0 : 1);
	}
	int status = 1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_created_file_has_one_current_key_and_is_private(void **state)
{
	(void)state;
	struct stat st;
	struct keyring *k;
	uint32_t id = 0, again = 0;
	mode_t before = umask(0);
	assert_int_equal(keyring_create(key_file, &id), OK);
	umask(before);
	assert_int_equal(stat(key_file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(load(&k), OK);
	assert_true(id != 0 && keyring_current(k) == id);
	keyring_free(k);
	assert_int_equal(keyring_create(key_file, &again), ERR_SEALED);
	assert_non_null(strstr(fault_of(ERR_SEALED)->detail, "exists already"));
	assert_int_equal(again, 0);
	assert_int_equal(load(&k), OK);
	assert_int_equal(keyring_current(k), id);
	keyring_free(k);
}

static void a_file_in_no_folder_is_not_created(void **state)
{
	(void)state;
	char path[200];
	uint32_t id = 0;
	snprintf(path, sizeof path, "%s/none/keys", folder);
	assert_int_equal(keyring_create(path, &id), ERR_SEALED);
	assert_int_equal(keyring_add(path, &id), ERR_SEALED);
	assert_int_equal(keyring_add(key_file, &id), ERR_SEALED);
	assert_int_equal(keyring_remove(key_file, 1), ERR_SEALED);
	assert_int_equal(keyring_make_current(key_file, 1), ERR_SEALED);
	assert_int_equal(id, 0);
}

static void keys_are_added_made_current_and_removed(void **state)
{
	(void)state;
	struct keyring *k;
	uint32_t first = 0, second = 0;
	assert_int_equal(keyring_create(key_file, &first), OK);
	assert_int_equal(keyring_add(key_file, &second), OK);
	assert_int_equal(load(&k), OK);
	assert_int_equal(keyring_current(k), first); /* added is not yet current */
	assert_true(keyring_has(k, second) && second != first);
	keyring_free(k);
	assert_int_equal(keyring_remove(key_file, first), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "id");
	assert_int_equal(keyring_make_current(key_file, second), OK);
	assert_int_equal(keyring_remove(key_file, second), ERR_BAD_INPUT);
	assert_int_equal(keyring_remove(key_file, first), OK);
	assert_int_equal(keyring_remove(key_file, first), ERR_BAD_INPUT);
	assert_int_equal(keyring_make_current(key_file, first), ERR_BAD_INPUT);
	assert_int_equal(load(&k), OK);
	assert_int_equal(keyring_current(k), second);
	assert_false(keyring_has(k, first));
	keyring_free(k);
}

static void a_full_file_takes_no_more_keys(void **state)
{
	(void)state;
	uint32_t id = 0;
	assert_int_equal(keyring_create(key_file, &id), OK);
	for (int i = 1; i < MASTER_KEYS_MAX; i++)
		assert_int_equal(keyring_add(key_file, &id), OK);
	assert_int_equal(keyring_add(key_file, &id), ERR_SEALED);
	struct keyring *k;
	assert_int_equal(load(&k), OK);
	keyring_free(k);
}

static void a_change_keeps_owner_and_mode_and_leaves_no_second_file(void **state)
{
	(void)state;
	struct stat st;
	uint32_t id = 0;
	char fresh[200];
	write_key_file("01020304 " KEY_A " current\n", 0600);
	if (geteuid() == 0)
		assert_int_equal(chown(key_file, 12345, 12346), 0);
	snprintf(fresh, sizeof fresh, "%s.new", key_file);
	assert_int_equal(symlink("/nowhere", fresh), 0); /* left behind, or planted */
	assert_int_equal(keyring_add(key_file, &id), OK);
	assert_int_equal(stat(key_file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	if (geteuid() == 0)
		assert_true(st.st_uid == 12345 && st.st_gid == 12346);
	assert_int_equal(lstat(fresh, &st), -1);
}

static void a_malformed_file_is_not_rewritten(void **state)
{
	(void)state;
	static const char text[] = "01020304 " KEY_A " current\nwhat is this\n";
	char now[sizeof text + 10] = "";
	uint32_t id = 0;
	write_key_file(text, 0600);
	assert_int_equal(keyring_add(key_file, &id), ERR_SEALED);
	assert_int_equal(keyring_make_current(key_file, 0x01020304), ERR_SEALED);
	FILE *f = fopen(key_file, "r");
	assert_non_null(f);
	assert_int_equal(fread(now, 1, sizeof now, f), sizeof text - 1);
	fclose(f);
	assert_string_equal(now, text);
}

static void *add_three(void *arg)
{
	int *added = arg;
	for (int i = 0; i < 3; i++) {
		uint32_t id;
		*added += keyring_add(key_file, &id) == OK;
	}
	return NULL;
}

static void changes_at_once_lose_no_key(void **state)
{
	(void)state;
	pthread_t threads[5];
	int added[5] = {0};
	uint32_t id, n = 0;
	assert_int_equal(keyring_create(key_file, &id), OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_three, &added[i]), 0);
	for (int i = 0; i < 5; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_int_equal(added[i], 3);
	}
	FILE *f = fopen(key_file, "r");
	assert_non_null(f);
	for (char line[200]; fgets(line, sizeof line, f);)
		n += line[0] != '#';
	fclose(f);
	assert_int_equal(n, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(forms_that_are_read),
		TEST(malformed_files_are_refused_with_the_line),
		TEST(too_many_keys_too_many_bytes_and_nul_are_refused),
		TEST(a_file_that_others_may_read_is_refused),
		TEST(what_is_no_file_is_refused),
		TEST(a_file_of_another_user_is_refused),
		TEST(a_created_file_has_one_current_key_and_is_private),
		TEST(a_file_in_no_folder_is_not_created),
		TEST(keys_are_added_made_current_and_removed),
		TEST(a_full_file_takes_no_more_keys),
		TEST(a_change_keeps_owner_and_mode_and_leaves_no_second_file),
		TEST(a_malformed_file_is_not_rewritten),
		TEST(changes_at_once_lose_no_key),
	};
	secret_init();
	return cmocka_run_group_tests_name("keyring", tests, NULL, NULL);
}
