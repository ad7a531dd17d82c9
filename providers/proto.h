/*
 * The wire form of protocol buffers: enough to write and read the few messages of a provider.
 *
 * A message is a run of fields, each with a number and one of four wire types. The reader believes
 * no length before it has compared it with what is there, and knows nothing of what a field means:
 * unknown ones are simply not asked for.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;

/* -- writing: appends one field to a buffer ---------------------------------------------------- */
void pb_put_uint(struct buf *b, unsigned number, uint64_t v); /* also bool and enum */
void pb_put_double(struct buf *b, unsigned number, double v);
void pb_put_float(struct buf *b, unsigned number, float v);
void pb_put_bytes(struct buf *b, unsigned number, const void *p, size_t n);
void pb_put_str(struct buf *b, unsigned number, const char *s);
void pb_put_msg(struct buf *b, unsigned number, const struct buf *msg); /* a message in a message */

/* -- reading ----------------------------------------------------------------------------------- */
enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

/* A message, or the bytes of a field; borrowed. */
struct pb_msg {
	const uint8_t *p;
	size_t n;
};

struct pb_field {
	unsigned number;
	enum pb_type type;
	uint64_t value;      /* of the numeric types */
	struct pb_msg bytes; /* of PB_BYTES */
};

/* Takes the next field off the front of m. False at the end and, with m->n left above 0, where no
 * whole field begins. */
bool pb_next(struct pb_msg *m, struct pb_field *ret);

/* Every byte belongs to a field. What the getters below find in anything else is not to be used. */
bool pb_whole(struct pb_msg m);

/* The last field of this number and type, as the wire form wants it; false: none. */
bool pb_find(struct pb_msg m, unsigned number, enum pb_type type, struct pb_field *ret);

uint64_t pb_uint(struct pb_msg m, unsigned number);       /* 0: absent */
double pb_double(struct pb_msg m, unsigned number);       /* 0: absent */
struct pb_msg pb_bytes(struct pb_msg m, unsigned number); /* empty: absent */
/* A text of 1 to max visible ASCII characters, in the arena; NULL when it is absent or another. */
const char *pb_word(struct pb_msg m, unsigned number, size_t max, struct arena *a);
