/* A growing byte buffer with a maximum. */
#include "buf.h"

#include "alloc.h"

#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 256u

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
	b->p = must(calloc(1, 1));
}

void buf_done(struct buf *b)
{
	if (b->p)
		wipe_free(b->p, b->n);
	*b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
	OPENSSL_cleanse(b->p, b->n);
	b->n = 0;
	b->full = false;
}

static bool reserve(struct buf *b, size_t n)
{
	if (b->full || n > b->max - b->n) {
		b->full = true;
		return false;
	}
	if (b->n + n < b->cap)
		return true;
	size_t cap = b->cap ? b->cap : FIRST_BYTES;
	while (cap <= b->n + n)
		cap *= 2;
	char *grown = must(malloc(cap));
	memcpy(grown, b->p, b->n + 1);
	wipe_free(b->p, b->n);
	b->p = grown;
	b->cap = cap;
	return true;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	if (n == 0 || !reserve(b, n))
		return;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	b->p[b->n] = 0;
}

void buf_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && reserve(b, (size_t)n)) {
		(void)vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	} else {
		b->full = true;
	}
	va_end(again);
}
