/*
 * Fuzz target: protocol buffers and frames of gRPC as a server may send them. The first byte
 * chooses: 's' the stream of frames, which means the same in one piece and in single bytes; 'd' the
 * details of a status; anything else a message and a unary reply.
 */
#include "arena.h"
#include "buf.h"
#include "grpc.h"
#include "proto.h"

#include <assert.h>
#include <string.h>

#define ARENA_MAX (64u << 20)
#define OUT_MAX   (1u << 20)
#define DEPTH_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bool collect(void *ctx, struct pb_msg m)
{
	struct buf *all = ctx;
	struct pb_msg data = pb_bytes(m, 1);
	buf_put(all, data.p, data.n);
	return !all->full;
}

static void stream(const char *p, size_t n)
{
	CLEANUP_BUF struct buf one, many;
	struct grpc_stream whole, bytes;
	buf_init(&one, OUT_MAX);
	buf_init(&many, OUT_MAX);
	grpc_stream_init(&whole, collect, &one);
	grpc_stream_init(&bytes, collect, &many);
	grpc_stream_feed(&whole, p, n);
	for (size_t i = 0; i < n; i++)
		grpc_stream_feed(&bytes, p + i, 1);
	assert(whole.bad == bytes.bad && one.n == many.n);
	assert(memcmp(one.p, many.p, one.n) == 0);
	assert(whole.bad || whole.part.n == bytes.part.n);
	grpc_stream_done(&whole);
	grpc_stream_done(&bytes);
}

/* Everything that is read of a message lies in it. */
static void look(struct pb_msg m, int depth)
{
	const uint8_t *begin = m.p, *end = m.p + m.n;
	struct pb_field f;
	struct pb_msg rest = m;
	while (pb_next(&rest, &f)) {
		assert(f.number >= 1 && f.number <= 536870911);
		assert(rest.p >= begin && rest.p + rest.n == end);
		if (f.type != PB_BYTES)
			continue;
		assert(f.bytes.p >= begin && f.bytes.p + f.bytes.n <= end);
		if (depth < DEPTH_MAX)
			look(f.bytes, depth + 1);
	}
	assert(pb_whole(m) == (rest.n == 0));
}

/* A whole message that is written again from what was read of it reads the same. */
static void copy(struct pb_msg m)
{
	CLEANUP_BUF struct buf b;
	struct pb_msg rest = m;
	struct pb_field f, again;
	buf_init(&b, OUT_MAX);
	while (pb_next(&rest, &f)) {
		size_t at = b.n;
		if (f.type == PB_VARINT)
			pb_put_uint(&b, f.number, f.value);
		else if (f.type == PB_BYTES)
			pb_put_bytes(&b, f.number, f.bytes.p, f.bytes.n);
		else
			continue;
		struct pb_msg last = {(const uint8_t *)b.p + at, b.n - at};
		if (b.full)
			return;
		assert(pb_next(&last, &again) && last.n == 0 && again.number == f.number);
		assert(again.value == f.value && again.bytes.n == f.bytes.n);
	}
}

static void reply(const char *p, size_t n, bool details)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct pb_msg m;
	const char *text = arena_copy(a, p, n);
	struct http_reply r = {.fate = HTTP_REPLIED,
		.status = 200,
		.type = "application/grpc",
		.body = text,
		.body_n = n,
		.trailers = {details ? "8" : text, details ? text : NULL}};
	int wait_s = grpc_retry_after_s(&r, a);
	assert(wait_s >= 0 && wait_s <= 3600);
	assert(grpc_http_status(&r) >= 0);
	if (grpc_message(&r, &m))
		assert(m.n == n - 5 && pb_whole(m));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0;
	if (*p == 's') {
		stream((const char *)p + 1, n - 1);
		return 0;
	}
	look((struct pb_msg){p + 1, n - 1}, 0);
	copy((struct pb_msg){p + 1, n - 1});
	reply((const char *)p + 1, n - 1, *p == 'd');
	return 0;
}
