/*
 * Runs a fuzz target over the files of a folder: its seeds and the findings of the past, as a
 * regression test. Stands in for libFuzzer's main; does not make inputs of its own.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SEED_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Whether the file could be read. The copy ends where the file ends, for the sanitizers. */
static int run_file(const char *path)
{
	static uint8_t bytes[SEED_BYTES_MAX];
	FILE *f = fopen(path, "rb");
	if (!f)
		return 0;
	size_t n = fread(bytes, 1, sizeof bytes, f);
	(void)fclose(f); /* it was only read */
	uint8_t *copy = malloc(n + !n);
	for (size_t i = 0; i < n; i++)
		copy[i] = bytes[i];
	(void)LLVMFuzzerTestOneInput(copy, n); /* always 0 */
	free(copy);
	return 1;
}

int main(int argc, char **argv)
{
	char path[4096];
	unsigned ran = 0;
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	if (!folder) {
		(void)fprintf(stderr, "usage: %s FOLDER (of seeds)\n", argv[0]);
		return 1;
	}
	for (struct dirent *e; (e = readdir(folder));) {
		if (e->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
		if (!run_file(path)) {
			(void)fprintf(stderr, "%s can not be read\n", path);
			return 1;
		}
		ran++;
	}
	(void)closedir(folder);
	(void)printf("%u seeds\n", ran);
	return ran == 0; /* an empty folder tests nothing */
}
