/*
 * gRPC on top of an HTTP call: frames of messages, and the status that ends a call.
 */
#pragma once
#include "buf.h"
#include "http.h"
#include "proto.h"

#include <stdbool.h>

#define GRPC_FRAME_MAX (16u << 20) /* of one message that we read */

enum grpc_status {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID = 3,
	GRPC_DEADLINE = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_EXISTS = 6,
	GRPC_DENIED = 7,
	GRPC_EXHAUSTED = 8,
	GRPC_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

/* Appends one frame. */
void grpc_frame(struct buf *b, const void *p, size_t n);

/* Makes a call of gRPC out of it: pool, method, type, and what grpc_judge needs of the reply.
 * Headers are the caller's: "te: trailers" must be among them. */
void grpc_call(struct http_call *h);

/* What ended a call that grpc_call prepared, in the numbers of HTTP, so that one rule (reply.h)
 * judges both: 200 for a good end, 401 for UNAUTHENTICATED and so on; the server's own status when
 * it was not 200; 0 when the end was not told, or nothing came. */
int grpc_http_status(const struct http_reply *r);

/* How long the server wants us to wait, from the details of the status; 0: it does not say. */
int grpc_retry_after_s(const struct http_reply *r, struct arena *a);

/* The message of a reply that must be exactly one whole frame around a whole message. */
bool grpc_message(const struct http_reply *r, struct pb_msg *ret);

/* -- a stream of messages ---------------------------------------------------------------------- */

/* Fed with pieces of the body, whatever their size; passes each whole message on. */
struct grpc_stream {
	struct buf part; /* the beginning of a frame */
	bool bad;        /* no frame, or a longer one than GRPC_FRAME_MAX: nothing more is read */
	bool (*on_message)(void *ctx, struct pb_msg m); /* false: the stream is bad */
	void *ctx;
};

void grpc_stream_init(
	struct grpc_stream *s, bool (*on_message)(void *ctx, struct pb_msg m), void *ctx);
void grpc_stream_done(struct grpc_stream *s);
void grpc_stream_feed(struct grpc_stream *s, const char *p, size_t n);
