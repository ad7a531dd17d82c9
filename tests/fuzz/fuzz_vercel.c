/*
 * Fuzz target: what Vercel Sandbox answers. The first byte chooses the reader: 's' the stream of a
 * command, anything else a body with one of the statuses ('A' the first). A stream means the same
 * in one piece and in single bytes; an exit code only comes out whole; an id always reads back.
 */
#include "arena.h"
#include "json.h"
#include "vercel_reply.h"

#include <assert.h>
#include <string.h>

#define ARENA_MAX (64u << 20)

/* 'A' is 1 modulo 32. */
static const int statuses[] = {
	204, 200, 302, 400, 401, 402, 403, 404, 409, 410, 422, 429, 500, 502, 599};

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void stream(const char *p, size_t n)
{
	struct vercel_stream whole, bytes;
	vercel_stream_init(&whole);
	vercel_stream_init(&bytes);
	vercel_stream_feed(&whole, p, n);
	for (size_t i = 0; i < n; i++)
		vercel_stream_feed(&bytes, p + i, 1);
	assert(whole.end == bytes.end && whole.code == bytes.code);
	assert(strcmp(whole.id, bytes.id) == 0);
	assert(whole.out.n == bytes.out.n && whole.err.n == bytes.err.n);
	assert(memcmp(whole.out.p, bytes.out.p, whole.out.n) == 0);
	assert(whole.code >= 0 && whole.code <= 255);
	assert(whole.end != VERCEL_EXIT || whole.id[0]);
	vercel_stream_done(&whole);
	vercel_stream_done(&bytes);
}

static void reads_back(const struct box *b, struct arena *a)
{
	const char *name, *session;
	assert(vercel_id_read(b->id, a, &name, &session) && strcmp(name, b->mark) == 0);
	assert(strlen(b->id) <= 127 && b->created_ms >= 0 && b->ends_ms >= 0);
}

static void body(int status, const char *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	CLEANUP_JSON struct json *root = NULL;
	struct box_spec spec = {.mark = "cc-abcdef-a", .memory_mb = 2048, .cpu = 1, .life_s = 60};
	struct http_reply r = {.fate = HTTP_REPLIED,
		.status = status,
		.body = arena_copy(a, p, n),
		.body_n = n,
		.type = "application/json"};
	struct box box;
	for (int ask = VERCEL_READ; ask <= VERCEL_BOX; ask++)
		for (int effect = EFFECT_READS; effect <= EFFECT_CREATES; effect++)
			assert((vercel_judge(&r, (enum vercel_ask)ask, (enum effect)effect) ==
				       OK) == (status >= 200 && status <= 204));
	if (vercel_object(&r, &root))
		return;
	if (vercel_box(root, a, &box))
		reads_back(&box, a);
	if (vercel_box(json_get(root, "sandbox"), a, &box))
		reads_back(&box, a);
	if (vercel_created(root, &spec, a, &box))
		reads_back(&box, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0;
	if (*p == 's')
		stream((const char *)p + 1, n - 1);
	else
		body(statuses[*p % 32 % (sizeof statuses / sizeof statuses[0])],
			(const char *)p + 1, n - 1);
	return 0;
}
