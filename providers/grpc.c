/*
 * gRPC: frames and statuses. It promises that a call without a status is never taken for a good
 * one, and that no length of a frame is believed before its bytes are there. Compressed frames are
 * not asked for and not read.
 */
#include "grpc.h"

#include "arena.h"
#include "text.h"

#include <math.h>
#include <string.h>

#define HEAD_BYTES   5
#define STATUS_MAX   16
#define DETAILS_MAX  4096 /* characters of the details of a status */
#define RETRY_MAX_S  3600
#define RETRY_TYPE   "/modal.client.RPCRetryPolicy"
#define STATUS_NAME  "grpc-status"
#define DETAILS_NAME "grpc-status-details-bin"
#define AT_STATUS    0 /* of the kept trailers */
#define AT_DETAILS   1

void grpc_frame(struct buf *b, const void *p, size_t n)
{
	const uint8_t head[HEAD_BYTES] = {
		0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	buf_put(b, head, sizeof head);
	buf_put(b, p, n);
}

void grpc_call(struct http_call *h)
{
	h->pool = HTTP_ALONE;
	h->method = "POST";
	h->type = "application/grpc";
	h->keep_trailers[AT_STATUS] = STATUS_NAME;
	h->keep_trailers[AT_DETAILS] = DETAILS_NAME;
}

/* By number of the status. What may have had an effect must not look like a refusal (4..). */
static const int statuses[STATUS_MAX + 1] = {
	200, 500, 500, 400, 504, 404, 409, 403, 429, 412, 500, 400, 501, 500, 503, 500, 401};

int grpc_http_status(const struct http_reply *r)
{
	int64_t status;
	if (r->fate != HTTP_REPLIED)
		return 0;
	if (r->status != 200)
		return r->status;
	if (strncmp(r->type, "application/grpc", 16) != 0 || !r->trailers[AT_STATUS])
		return 0;
	if (!int_parse(r->trailers[AT_STATUS], 0, STATUS_MAX, &status))
		return 0;
	return statuses[status];
}

/* Base64 without its padding, as some servers write it. */
static struct pb_msg from_base64(const char *s, struct arena *a)
{
	size_t n = strlen(s), out_n = 0;
	if (n > DETAILS_MAX)
		return (struct pb_msg){0};
	const char *padded = arena_printf(a, "%s%s", s, &"==="[3 - (4 - n % 4) % 4]);
	const uint8_t *p = base64_decode(a, padded, strlen(padded), &out_n);
	return p ? (struct pb_msg){p, out_n} : (struct pb_msg){0};
}

static bool is_retry(struct pb_msg any)
{
	struct pb_msg type = pb_bytes(any, 1);
	size_t n = sizeof RETRY_TYPE - 1;
	return type.n >= n && memcmp(type.p + type.n - n, RETRY_TYPE, n) == 0;
}

static int seconds_of(struct pb_msg policy)
{
	struct pb_field f;
	float s;
	if (!pb_find(policy, 1, PB_FIXED32, &f))
		return 0;
	uint32_t bits = (uint32_t)f.value;
	memcpy(&s, &bits, sizeof s);
	if (!(s > 0))
		return 0;
	return s < RETRY_MAX_S ? (int)ceilf(s) : RETRY_MAX_S;
}

int grpc_retry_after_s(const struct http_reply *r, struct arena *a)
{
	const char *details = r->trailers[AT_DETAILS];
	struct pb_msg m = details ? from_base64(details, a) : (struct pb_msg){0};
	struct pb_field f;
	while (pb_next(&m, &f))
		if (f.number == 3 && f.type == PB_BYTES && is_retry(f.bytes))
			return seconds_of(pb_bytes(f.bytes, 2));
	return r->retry_after_s;
}

/* Length of the message behind a head; false: no head of ours. */
static bool head_of(const uint8_t *p, size_t *ret)
{
	*ret = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	return p[0] == 0 && *ret <= GRPC_FRAME_MAX;
}

bool grpc_message(const struct http_reply *r, struct pb_msg *ret)
{
	const uint8_t *p = (const uint8_t *)r->body;
	size_t n;
	if (r->body_n < HEAD_BYTES || !head_of(p, &n) || r->body_n - HEAD_BYTES != n)
		return false;
	*ret = (struct pb_msg){p + HEAD_BYTES, n};
	return pb_whole(*ret);
}

/* -- streams ----------------------------------------------------------------------------------- */

void grpc_stream_init(
	struct grpc_stream *s, bool (*on_message)(void *ctx, struct pb_msg m), void *ctx)
{
	*s = (struct grpc_stream){.on_message = on_message, .ctx = ctx};
	buf_init(&s->part, HEAD_BYTES + GRPC_FRAME_MAX);
}

void grpc_stream_done(struct grpc_stream *s)
{
	buf_done(&s->part);
}

/* How many bytes the frame under way still lacks; its head comes first. */
static size_t lacks(struct grpc_stream *s)
{
	size_t n;
	if (s->part.n < HEAD_BYTES)
		return HEAD_BYTES - s->part.n;
	if (!head_of((const uint8_t *)s->part.p, &n)) {
		s->bad = true;
		return 0;
	}
	return HEAD_BYTES + n - s->part.n;
}

static void pass_on(struct grpc_stream *s)
{
	struct pb_msg m = {(const uint8_t *)s->part.p + HEAD_BYTES, s->part.n - HEAD_BYTES};
	s->bad = !pb_whole(m) || !s->on_message(s->ctx, m);
	buf_reset(&s->part);
}

void grpc_stream_feed(struct grpc_stream *s, const char *p, size_t n)
{
	while (!s->bad && n > 0) {
		size_t want = lacks(s), piece = want < n ? want : n;
		buf_put(&s->part, p, piece);
		p += piece;
		n -= piece;
		if (s->part.n >= HEAD_BYTES && lacks(s) == 0 && !s->bad)
			pass_on(s);
	}
}
