/* Request memory: a list of blocks that grows in halves of what is taken and is freed at once. */
#include "arena.h"

#include "alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK 4096u
#define BLOCK_MAX   (256u << 10)

struct block {
	struct block *next;
	size_t used, size;
	max_align_t data[];
};

struct arena {
	size_t taken, max;
	struct block *top;
};

struct arena *arena_new(size_t max)
{
	struct arena *a = must(calloc(1, sizeof *a));
	a->max = max;
	return a;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	for (struct block *b = a->top, *next; b; b = next) {
		next = b->next;
		wipe_free(b, sizeof *b + b->size);
	}
	free(a);
}

static struct block *block_add(struct arena *a, size_t need)
{
	size_t size = a->taken / 2;
	if (size < FIRST_BLOCK)
		size = FIRST_BLOCK;
	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	if (size < need)
		size = need;
	if (a->taken + size > a->max)
		memory_is_out();
	struct block *b = must(malloc(sizeof *b + size));
	*b = (struct block){.next = a->top, .size = size};
	a->taken += size;
	a->top = b;
	return b;
}

void *arena_take(struct arena *a, size_t n)
{
	const size_t align = _Alignof(max_align_t);
	if (n > a->max)
		memory_is_out();
	n = (n + align - 1) / align * align;
	struct block *b = a->top;
	if (!b || b->size - b->used < n)
		b = block_add(a, n);
	void *p = (char *)b->data + b->used;
	b->used += n;
	return memset(p, 0, n);
}

char *arena_copy(struct arena *a, const void *p, size_t n)
{
	char *copy = arena_take(a, n + 1);
	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *arena_str(struct arena *a, const char *s)
{
	return arena_copy(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		memory_is_out();
	char *s = arena_take(a, (size_t)n + 1);
	(void)vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}
