/*
 * A growing byte buffer with a maximum.
 *
 * A buffer remembers that it overflowed and later calls do nothing, so a writer checks once, at the
 * end. The bytes are always followed by a NUL.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *p;  /* never NULL after buf_init */
	size_t n; /* bytes in use */
	size_t cap, max;
	bool full; /* a write did not fit; the content is incomplete */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b); /* wipes and frees; the buffer may be initialised again */
void buf_reset(struct buf *b);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define CLEANUP_BUF __attribute__((cleanup(buf_done)))
