/*
 * Fuzz target: decoding any JSON with a shape of every kind. What was decoded is encoded, decoded
 * and encoded again; both texts are equal. A refusal has a detail and leaves no secret behind.
 */
#include "arena.h"
#include "buf.h"
#include "json.h"
#include "tests/unit/test_shape_kinds.h"

#include <assert.h>

#define TEXT_MAX  (32u << 20)
#define ARENA_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The shape without null for what is only encoded, so that it reads all that it writes. */
static const struct shape *readable(void)
{
	static struct field fields[sizeof kinds_fields / sizeof *kinds_fields];
	static struct shape shape;
	memcpy(fields, kinds_fields, sizeof fields);
	shape = kinds_shape;
	shape.fields = fields;
	for (size_t i = 0; i < shape.n; i++)
		if (fields[i].kind == KIND_TIME)
			fields[i].flags = 0;
	return &shape;
}

static enum err decode(const char *text, size_t n, struct arena *a, struct kinds *ret_kinds)
{
	CLEANUP_JSON struct json *root = NULL;
	enum err e = json_parse(text, n, &root);
	return e ? e : shape_decode(readable(), root, a, ret_kinds);
}

static void encode(const struct kinds *k, struct buf *b)
{
	buf_init(b, TEXT_MAX);
	struct jw w = jw_new(b);
	shape_encode(readable(), k, &w);
	assert(!b->full);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct kinds k, again;
	shape_init(readable(), &k);
	enum err e = decode((const char *)p, n, a, &k);
	if (e) {
		assert(*fault_of(e)->detail);
		assert(!secret_given(&k.token));
		return 0;
	}
	CLEANUP_BUF struct buf first = {0}, second = {0};
	encode(&k, &first);
	assert(decode(first.p, first.n, a, &again) == OK);
	encode(&again, &second);
	assert(strcmp(first.p, second.p) == 0);
	shape_done(readable(), &k);
	shape_done(readable(), &again);
	return 0;
}
