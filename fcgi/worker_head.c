/*
 * Judges the head of a FastCGI request by what libfcgi can read. A pure function of bytes: reads no
 * socket, keeps no state. libfcgi forgets the padding of the BEGIN record and of the empty record
 * at the end, and would take it for the next header, so such padding is refused (nginx sends none).
 * Does not cover the input records behind the head: libfcgi reads those with 16-bit lengths only,
 * but a management record among them still reaches its parameter reader. The socket's mode keeps
 * strangers from sending one.
 */
#include "worker_head.h"

#include "bounds.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_HEADER 8
#define BEGIN_BYTES   8

enum record { RECORD_BEGIN = 1, RECORD_PARAMS = 4 };

struct header {
	unsigned type, id;
	size_t content, padding;
};

/* Names and values, which may be cut anywhere by record borders. */
struct pairs {
	unsigned char length[4]; /* of a length that is being read */
	unsigned have;           /* bytes of it so far */
	bool value_next;         /* the name's length is known, the value's is being read */
	size_t name;             /* length of the name */
	size_t skip;             /* bytes of the current pair still to come */
};

/* False when the bytes are not a record of version 1. */
static bool read_header(const unsigned char *p, struct header *ret)
{
	ret->type = p[1];
	ret->id = (unsigned)p[2] << 8 | p[3];
	ret->content = (size_t)p[4] << 8 | p[5];
	ret->padding = p[6];
	return p[0] == 1;
}

/* Takes one byte of a length; false when the length can not fit in a head. */
static bool take_length_byte(struct pairs *s, unsigned char byte)
{
	s->length[s->have++] = byte;
	bool is_long = s->length[0] & 0x80;
	if (is_long && s->have < 4)
		return true;
	size_t n = s->length[0];
	if (is_long)
		n = ((size_t)s->length[0] & 0x7f) << 24 | (size_t)s->length[1] << 16 |
		    (size_t)s->length[2] << 8 | s->length[3];
	s->have = 0;
	if (n > HEAD_BYTES_MAX)
		return false;
	if (s->value_next)
		s->skip = s->name + n;
	else
		s->name = n;
	s->value_next = !s->value_next;
	return true;
}

static bool take_content(struct pairs *s, const unsigned char *p, size_t n)
{
	while (n) {
		if (s->skip) {
			size_t step = s->skip < n ? s->skip : n;
			s->skip -= step;
			p += step;
			n -= step;
			continue;
		}
		if (!take_length_byte(s, *p))
			return false;
		p++;
		n--;
	}
	return true;
}

static bool between_pairs(const struct pairs *s)
{
	return !s->skip && !s->have && !s->value_next;
}

static bool is_params(const struct header *h, unsigned id)
{
	return h->type == RECORD_PARAMS && h->id == id && (h->content || !h->padding);
}

/* p stands behind the BEGIN record of request id. */
static enum head judge_params(const unsigned char *p, size_t n, unsigned id)
{
	struct pairs s = {0};
	for (size_t at = 0;;) {
		struct header h;
		if (n - at < RECORD_HEADER)
			return HEAD_PARTIAL;
		if (!read_header(p + at, &h) || !is_params(&h, id))
			return HEAD_BAD;
		at += RECORD_HEADER;
		size_t here = n - at < h.content ? n - at : h.content;
		if (!take_content(&s, p + at, here))
			return HEAD_BAD;
		if (n - at < h.content + h.padding)
			return HEAD_PARTIAL;
		at += h.content + h.padding;
		if (h.content == 0)
			return between_pairs(&s) ? HEAD_WHOLE : HEAD_BAD;
	}
}

static enum head judge_begin(const unsigned char *p, size_t n)
{
	struct header h;
	if (n == 0)
		return HEAD_PARTIAL;
	if (p[0] != 1 || (n > 1 && p[1] != RECORD_BEGIN))
		return HEAD_BAD; /* at once: such a peer may never send more */
	if (n < RECORD_HEADER)
		return HEAD_PARTIAL;
	if (!read_header(p, &h) || h.type != RECORD_BEGIN || h.id == 0 ||
		h.content != BEGIN_BYTES || h.padding)
		return HEAD_BAD;
	size_t whole = RECORD_HEADER + BEGIN_BYTES;
	return n < whole ? HEAD_PARTIAL : judge_params(p + whole, n - whole, h.id);
}

enum head head_judge(const unsigned char *p, size_t n)
{
	enum head h = judge_begin(p, n);
	return h == HEAD_PARTIAL && n >= HEAD_BYTES_MAX ? HEAD_BAD : h;
}
