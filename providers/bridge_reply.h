/*
 * What a bridge answers, decoded: status and error body, sandboxes, and the stream of a command.
 * Pure functions over bytes (bridge.c, tests, fuzzing). Everything here comes from outside.
 */
#pragma once
#include "buf.h"
#include "http.h"
#include "provider.h"
#include "reply.h"

struct json;

/* -- replies ----------------------------------------------------------------------------------- */

/* The error that a reply stands for; OK when its status is 200 to 204. */
MUST_USE enum err bridge_judge(const struct http_reply *r, enum effect effect);

/* The body of a good reply as an object; free with json_free. */
MUST_USE enum err bridge_object(const struct http_reply *r, struct json **ret_root);

/* One sandbox; strings are copied into the arena. False when a member is missing or wrong. */
bool bridge_box(const struct json *o, struct arena *a, struct box *ret);

/* Words of the contract by enum network; NULL for the default. */
extern const char *const bridge_networks[];

/* Our words for each limit that was asked for and that the bridge does not give or not enforce;
 * NULL when all is as asked, or when the bridge does not tell. */
const char *bridge_warnings(const struct json *o, const struct box_spec *spec, struct arena *a);

/* ^[a-z][a-z0-9-]{7,62}$: fit to stand in a path of the contract. */
bool bridge_id_ok(const char *s);

/* The user's URL without trailing slashes and without a pasted "/bridge/v1". */
const char *bridge_base(struct arena *a, const char *url);

/* s with everything but unreserved characters and '/' escaped for a query. */
const char *bridge_escape(struct arena *a, const char *s);

/* -- the stream of a command ------------------------------------------------------------------- */

enum bridge_end {
	BRIDGE_OPEN, /* no terminal frame yet */
	BRIDGE_EXIT,
	BRIDGE_PENDING, /* this call is over, the command goes on */
	BRIDGE_UNKNOWN, /* error exec_not_found: the bridge never heard of it */
	BRIDGE_LOST,    /* error exec_lost: it ran, nobody knows how it ended */
	BRIDGE_RESET,   /* error sandbox_reset: the machine was replaced */
	BRIDGE_ERROR,   /* any other error */
	BRIDGE_BAD,     /* not of the form of the contract, or too much */
};

/* Lives through all calls that follow one command. Fed by the thread of the pool. */
struct bridge_stream {
	const char *exec_id;
	struct buf line, out, err; /* out.n and err.n are the offsets to go on with */
	bool started;              /* the bridge has the command */
	enum bridge_end end;
	int code;
	bool timed_out;
};

void bridge_stream_init(struct bridge_stream *s, const char *exec_id);
void bridge_stream_done(struct bridge_stream *s);
/* Before each call: forgets the rest of the last one, keeps output and offsets. */
void bridge_stream_open(struct bridge_stream *s);
/* Takes the next piece of the body. False: the call may be ended, the stream is BRIDGE_BAD. */
bool bridge_stream_feed(struct bridge_stream *s, const char *p, size_t n);
