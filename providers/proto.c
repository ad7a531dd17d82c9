/*
 * Protocol buffers on the wire. It promises never to look beyond the bytes it was given, and that a
 * number or length that does not fit its type ends the reading. It checks no text and no meaning.
 */
#include "proto.h"

#include "arena.h"
#include "buf.h"

#include <string.h>

#define VARINT_BYTES_MAX 10
#define NUMBER_MAX       ((1u << 29) - 1)

/* -- writing ----------------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t v)
{
	while (v >= 0x80) {
		buf_char(b, (char)(v | 0x80));
		v >>= 7;
	}
	buf_char(b, (char)v);
}

static void put_tag(struct buf *b, unsigned number, enum pb_type type)
{
	put_varint(b, (uint64_t)number << 3 | type);
}

static void put_fixed(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_char(b, (char)(v >> 8 * i));
}

void pb_put_uint(struct buf *b, unsigned number, uint64_t v)
{
	put_tag(b, number, PB_VARINT);
	put_varint(b, v);
}

void pb_put_double(struct buf *b, unsigned number, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_tag(b, number, PB_FIXED64);
	put_fixed(b, bits, 8);
}

void pb_put_float(struct buf *b, unsigned number, float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	put_tag(b, number, PB_FIXED32);
	put_fixed(b, bits, 4);
}

void pb_put_bytes(struct buf *b, unsigned number, const void *p, size_t n)
{
	put_tag(b, number, PB_BYTES);
	put_varint(b, n);
	buf_put(b, p, n);
}

void pb_put_str(struct buf *b, unsigned number, const char *s)
{
	pb_put_bytes(b, number, s, strlen(s));
}

void pb_put_msg(struct buf *b, unsigned number, const struct buf *msg)
{
	pb_put_bytes(b, number, msg->p, msg->n);
}

/* -- reading ----------------------------------------------------------------------------------- */

static bool take_varint(struct pb_msg *m, uint64_t *ret)
{
	uint64_t v = 0;
	for (size_t i = 0; i < m->n && i < VARINT_BYTES_MAX; i++) {
		uint8_t byte = m->p[i];
		if (i == VARINT_BYTES_MAX - 1 && byte > 1)
			return false; /* more than 64 bits */
		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		m->p += i + 1;
		m->n -= i + 1;
		*ret = v;
		return true;
	}
	return false;
}

static bool take_fixed(struct pb_msg *m, size_t bytes, uint64_t *ret)
{
	uint64_t v = 0;
	if (m->n < bytes)
		return false;
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)m->p[i] << 8 * i;
	m->p += bytes;
	m->n -= bytes;
	*ret = v;
	return true;
}

static bool take_bytes(struct pb_msg *m, struct pb_msg *ret)
{
	uint64_t n;
	if (!take_varint(m, &n) || n > m->n)
		return false;
	*ret = (struct pb_msg){m->p, (size_t)n};
	m->p += n;
	m->n -= n;
	return true;
}

static bool take_value(struct pb_msg *m, struct pb_field *f)
{
	switch (f->type) {
	case PB_VARINT:
		return take_varint(m, &f->value);
	case PB_FIXED64:
		return take_fixed(m, 8, &f->value);
	case PB_FIXED32:
		return take_fixed(m, 4, &f->value);
	case PB_BYTES:
		return take_bytes(m, &f->bytes);
	}
	return false; /* groups, which nobody sends, and types that there are not */
}

bool pb_next(struct pb_msg *m, struct pb_field *ret)
{
	struct pb_msg rest = *m;
	struct pb_field f = {0};
	uint64_t tag;
	if (!take_varint(&rest, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
		return false;
	f.number = (unsigned)(tag >> 3);
	f.type = (enum pb_type)(tag & 7);
	if (!take_value(&rest, &f))
		return false;
	*m = rest;
	*ret = f;
	return true;
}

bool pb_whole(struct pb_msg m)
{
	struct pb_field f;
	while (pb_next(&m, &f))
		;
	return m.n == 0;
}

bool pb_find(struct pb_msg m, unsigned number, enum pb_type type, struct pb_field *ret)
{
	struct pb_field f;
	bool found = false;
	while (pb_next(&m, &f))
		if (f.number == number && f.type == type) {
			*ret = f;
			found = true;
		}
	return found;
}

uint64_t pb_uint(struct pb_msg m, unsigned number)
{
	struct pb_field f;
	return pb_find(m, number, PB_VARINT, &f) ? f.value : 0;
}

double pb_double(struct pb_msg m, unsigned number)
{
	struct pb_field f;
	double v = 0;
	if (pb_find(m, number, PB_FIXED64, &f))
		memcpy(&v, &f.value, sizeof v);
	return v;
}

struct pb_msg pb_bytes(struct pb_msg m, unsigned number)
{
	struct pb_field f;
	return pb_find(m, number, PB_BYTES, &f) ? f.bytes : (struct pb_msg){0};
}

const char *pb_word(struct pb_msg m, unsigned number, size_t max, struct arena *a)
{
	struct pb_msg text = pb_bytes(m, number);
	if (text.n == 0 || text.n > max)
		return NULL;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f)
			return NULL;
	return arena_copy(a, text.p, text.n);
}
