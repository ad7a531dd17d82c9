/* What the tests of sealing share: bytes from hex, a folder for key files. */
#pragma once
#include "arena.h"
#include "seal.h"
#include "seal_vectors.h"
#include "secret.h"
#include "text.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena *arena;
static char folder[64], key_file[128];

static inline struct blob from_hex(const char *hex)
{
	size_t n = strlen(hex) / 2;
	uint8_t *p = arena_take(arena, n + 1);
	assert_true(hex_decode(p, n, hex));
	return (struct blob){.p = p, .n = n};
}

static inline struct id id_from_hex(const char *hex)
{
	struct id i;
	assert_true(hex_decode(i.b, sizeof i.b, hex));
	return i;
}

static inline struct blob with_flipped_bit(struct blob b, size_t bit)
{
	uint8_t *p = (uint8_t *)arena_copy(arena, b.p, b.n);
	p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	return (struct blob){.p = p, .n = b.n};
}

static inline void write_key_file(const char *text, mode_t mode)
{
	FILE *f = fopen(key_file, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(key_file, mode), 0);
}

static int each_start(void **state)
{
	(void)state;
	arena = arena_new(64u << 20);
	strcpy(folder, "/tmp/seal-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(key_file, sizeof key_file, "%s/keys", folder);
	return 0;
}

static int each_stop(void **state)
{
	(void)state;
	arena_free(arena);
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		char path[400];
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		(void)unlink(path);
	}
	if (d)
		(void)closedir(d);
	return rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, each_start, each_stop)
