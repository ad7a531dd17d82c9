/*
 * Request memory: taken piece by piece, given back all at once.
 *
 * Everything that lives as long as a request (strings, decoded arguments, rows, the reply) is taken
 * from its arena, so nothing inside a request has an owner. Exceeding the cap, like running out of
 * memory, stops the process (alloc.h); the input limits keep a caller from causing it.
 */
#pragma once
#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new arena that will hold at most max bytes. Free with arena_free. */
struct arena *arena_new(size_t max);
void arena_free(struct arena *a); /* NULL is fine */

/* n zeroed bytes, aligned for any type. n may be 0. */
void *arena_take(struct arena *a, size_t n);

/* A copy of n bytes with a NUL behind them; a copy of a string. */
char *arena_copy(struct arena *a, const void *p, size_t n);
char *arena_str(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define ARENA_NEW(a, type)     ((type *)arena_take(a, sizeof(type)))
#define ARENA_LIST(a, n, type) ((type *)arena_take(a, (n) * sizeof(type)))
#define CLEANUP_ARENA          __attribute__((cleanup(arena_cleanup)))
static inline void arena_cleanup(struct arena **a)
{
	arena_free(*a);
}
