/*
 * Fuzz target: what bridges and sandboxes answer. The first byte chooses the reader: 's' the stream
 * of a command, 'p' the reply of a poll, anything else a body with the status of that number. A
 * stream means the same in one piece and in single bytes; an exit code only comes out whole.
 */
#include "arena.h"
#include "bridge_reply.h"
#include "bounds.h"
#include "json.h"
#include "spool_reply.h"

#include <assert.h>
#include <string.h>

#define ARENA_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void stream(const char *p, size_t n)
{
	struct bridge_stream whole, bytes;
	bridge_stream_init(&whole, "exec-1234");
	bridge_stream_init(&bytes, "exec-1234");
	bridge_stream_open(&whole);
	bridge_stream_open(&bytes);
	(void)bridge_stream_feed(&whole, p, n);
	for (size_t i = 0; i < n && bridge_stream_feed(&bytes, p + i, 1); i++)
		;
	assert(whole.end == bytes.end && whole.code == bytes.code);
	assert(whole.started == bytes.started && whole.timed_out == bytes.timed_out);
	assert(whole.out.n == bytes.out.n && whole.err.n == bytes.err.n);
	assert(memcmp(whole.out.p, bytes.out.p, whole.out.n) == 0);
	assert(whole.code >= 0 && whole.code <= 255);
	bridge_stream_done(&whole);
	bridge_stream_done(&bytes);
}

static void poll_reply(const char *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct spool_ask ask = {.out_from = 3, .err_from = 0, .slice = 16};
	struct spool_status s;
	enum err e = spool_read_poll(p, n, &ask, a, &s);
	assert(e == OK || e == ERR_UPSTREAM || e == ERR_BOX_GONE);
	if (e || s.state == SPOOL_GONE)
		return;
	assert(s.state == SPOOL_DONE ? s.code >= 0 && s.code <= 255 : s.code == -1);
	assert(s.out_n == 0 || s.out_at + (int64_t)s.out_n <= s.out_bytes);
	assert(s.out_at >= ask.out_from && s.out_n <= 16 && s.err_n <= 16);
}

static void body(int status, const char *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	CLEANUP_JSON struct json *root = NULL;
	struct box_spec spec = {.memory_mb = 1, .cpu = 1, .network = NETWORK_NONE};
	struct http_reply r = {.fate = HTTP_REPLIED,
		.status = status,
		.body = arena_copy(a, p, n),
		.body_n = n,
		.type = "application/json"};
	struct box box;
	for (int effect = EFFECT_READS; effect <= EFFECT_CREATES; effect++)
		assert((bridge_judge(&r, (enum effect)effect) == OK) ==
			(status >= 200 && status <= 204));
	if (bridge_object(&r, &root))
		return;
	if (bridge_box(root, a, &box))
		assert(bridge_id_ok(box.id) && box.created_ms >= 0 && box.ends_ms >= 0);
	(void)bridge_warnings(root, &spec, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0;
	if (*p == 's')
		stream((const char *)p + 1, n - 1);
	else if (*p == 'p')
		poll_reply((const char *)p + 1, n - 1);
	else
		body(200 + 2 * *p, (const char *)p + 1, n - 1);
	return 0;
}
