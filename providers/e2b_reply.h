/*
 * What E2B answers, decoded: errors of its three kinds of calls, ids and addresses, and the stream
 * of a command. Pure functions over bytes (e2b.c, tests). Everything here comes from outside.
 */
#pragma once
#include "buf.h"
#include "http.h"
#include "provider.h"
#include "reply.h"

struct json;

/* -- replies ----------------------------------------------------------------------------------- */

/* Which table of refusals a reply is judged by. */
enum e2b_call {
	E2B_CREATE,  /* a sandbox */
	E2B_CONTROL, /* any other call of the API */
	E2B_DAEMON,  /* of a sandbox's own daemon */
};

/* The error that a reply stands for; OK when its status is 200 to 204. `own`: the address is the
 * user's. */
MUST_USE enum err e2b_judge(
	const struct http_reply *r, enum e2b_call call, enum effect effect, bool own);

/* ERR_BAD_INPUT on timeout_s when the plan does not allow so long a sandbox; OK otherwise. */
MUST_USE enum err e2b_judge_life(const struct http_reply *r);

/* A route that this server does not know, or a thing that is not there: nothing was done. */
bool e2b_no_route(const struct http_reply *r);

/* -- ids and addresses ------------------------------------------------------------------------- */

#define E2B_ID_MAX 50 /* it stands in a label of a host name, behind the number of a port */

/* Fit to stand in a path, a header and a host name. */
bool e2b_id_ok(const char *s);

/* s with everything but unreserved characters escaped for a query. */
const char *e2b_escape(struct arena *a, const char *s);

/* Where the daemon of a sandbox is reached, given the API's address and the domain that the API
 * named, or NULL. In the arena; NULL when that domain is not the API's own. */
const char *e2b_daemon_at(struct arena *a, const char *api, const char *id, const char *domain);

/* -- the stream of a command ------------------------------------------------------------------- */

enum e2b_end {
	E2B_OPEN, /* no last frame yet */
	E2B_EXIT,
	E2B_KILLED,
	E2B_REFUSED, /* certainly not begun */
	E2B_FAILED,  /* it began, or may have begun; nobody knows how it ended */
	E2B_BAD,     /* not of the form of the protocol, or too much */
};

/* Fed by the thread of the pool. */
struct e2b_stream {
	struct buf frame, out, err;
	bool started, told; /* the events "start" and "end" were there */
	bool killed;
	int code;
	enum e2b_end end;
};

void e2b_stream_init(struct e2b_stream *s);
void e2b_stream_done(struct e2b_stream *s);
/* Takes the next piece of the body. False: the stream is E2B_BAD. */
bool e2b_stream_feed(struct e2b_stream *s, const char *p, size_t n);

/* Around one message that is written into an empty buffer. */
void e2b_frame_begin(struct buf *b);
void e2b_frame_end(struct buf *b);
