/* Out of memory stops the process; freed memory is wiped. See alloc.h. */
#include "alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void memory_is_out(void)
{
	static const char line[] = "compute-connector: out of memory, stopping\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof line - 1);
	(void)n; /* nothing is left to do about it */
	_exit(MEMORY_EXIT);
}

void *must(void *p)
{
	if (!p)
		memory_is_out();
	return p;
}

void wipe_free(void *p, size_t n)
{
	if (p)
		OPENSSL_cleanse(p, n);
	free(p);
}

#ifndef CC_SANITIZED
/* glibc offers its allocator under these names so that a program can stand in front of it. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);

/* Tests make an allocation fail: CC_FAIL_ALLOCATION in the environment of a debug build is a number
 * N, for the Nth one of this process, or the path of a file of 16 bytes that the workers of an
 * instance share: a countdown, which fails the allocation that takes it to 0, and a count of
 * allocations. */
#ifdef CC_FAULTS
static long own[2] = {-1, 0};
static long *faults;

static long *open_faults(void)
{
	const char *text = getenv("CC_FAIL_ALLOCATION"), *fd = getenv("CC_LISTEN_FD");
	if (!text || text[0] != '/') {
		own[0] = text ? strtol(text, NULL, 10) : -1;
		return own;
	}
	int file = fd && fd[0] != '-' ? open(text, O_RDWR | O_CLOEXEC) : -1;
	void *p = MAP_FAILED;
	if (file >= 0) {
		p = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		(void)close(file);
	}
	return p == MAP_FAILED ? own : p;
}

static bool refused(void)
{
	if (!faults)
		faults = open_faults();
	(void)__atomic_add_fetch(&faults[1], 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&faults[0], __ATOMIC_RELAXED) > 0 &&
	       __atomic_sub_fetch(&faults[0], 1, __ATOMIC_RELAXED) == 0;
}
#else
static inline bool refused(void)
{
	return false;
}
#endif

void *malloc(size_t n)
{
	return must(refused() ? NULL : __libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
	return must(refused() ? NULL : __libc_calloc(n, size));
}

/* A moved block would leave its old copy behind, so growth is always a new block. */
void *realloc(void *p, size_t n)
{
	size_t had = p ? malloc_usable_size(p) : 0;
	if (p && n && n <= had && n > had / 2)
		return p;
	if (p && n == 0) {
		free(p);
		return NULL;
	}
	void *grown = must(refused() ? NULL : __libc_malloc(n));
	if (p) {
		memcpy(grown, p, had < n ? had : n);
		free(p);
	}
	return grown;
}

void free(void *p)
{
	if (!p)
		return;
	int saved = errno; /* POSIX 2024: free() leaves errno alone */
	OPENSSL_cleanse(p, malloc_usable_size(p));
	__libc_free(p);
	errno = saved;
}
#endif
