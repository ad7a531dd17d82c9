/*
 * What Vercel Sandbox answers, decoded: errors, sandboxes, and the stream of a command. Pure
 * functions over bytes (vercel.c, tests, fuzzing). Everything here comes from outside.
 */
#pragma once
#include "buf.h"
#include "http.h"
#include "provider.h"
#include "reply.h"

struct json;

/* -- replies ----------------------------------------------------------------------------------- */

/* What was asked for, which decides what a refusal means. */
enum vercel_ask {
	VERCEL_READ,   /* key and lists: 404 is the project */
	VERCEL_CREATE, /* of a sandbox with the service's defaults */
	VERCEL_CHOSEN, /* of one with a runtime or size: 400 is about these */
	VERCEL_IMAGE,  /* of one with an image, perhaps a size */
	VERCEL_BOX,    /* one sandbox, its session, commands and files: 404 is the sandbox */
};

/* The error that a reply stands for; OK when its status is 200 to 204. A status counts as the
 * service's word only with an error body of its form, except 401 and 429. ERR_BOX_GONE: 404 (not
 * there), 410 (it has stopped), 422 (it is about to). */
MUST_USE enum err vercel_judge(const struct http_reply *r, enum vercel_ask ask, enum effect effect);

/* The body of a good reply as an object; free with json_free. */
MUST_USE enum err vercel_object(const struct http_reply *r, struct json **ret_root);

/* -- sandboxes --------------------------------------------------------------------------------- */

/* 1 ... max characters of [A-Za-z0-9_-]: fit to stand in a path. */
#define VERCEL_MB_PER_CPU  2048 /* memory is never chosen by itself */
#define VERCEL_NAME_MAX    63
#define VERCEL_SESSION_MAX 63
bool vercel_word_ok(const char *s, size_t max);

/* Our id of a sandbox: its name, and "/" and its session when that is known. False when a part is
 * of another form. *ret_session is "" when there is none. */
bool vercel_id_read(
	const char *id, struct arena *a, const char **ret_name, const char **ret_session);

/* The object "sandbox" of a reply; strings are copied into the arena. False: of a wrong form. */
bool vercel_box(const struct json *o, struct arena *a, struct box *ret);

/* The reply to a create: "sandbox" of our mark and "session", both good for use. */
bool vercel_created(
	const struct json *root, const struct box_spec *spec, struct arena *a, struct box *ret);

/* -- the stream of a command ------------------------------------------------------------------- */

enum vercel_end {
	VERCEL_OPEN, /* the second command object did not come yet */
	VERCEL_EXIT,
	VERCEL_LOST, /* the service lost sight of the command */
	VERCEL_BAD,  /* not of the form, or too much */
};

struct vercel_stream {
	struct buf line, out, err;
	char id[64]; /* of the command; "": its first object did not come yet */
	enum vercel_end end;
	int code;
};

void vercel_stream_init(struct vercel_stream *s);
void vercel_stream_done(struct vercel_stream *s);
/* Takes the next piece of the body, of any size. */
void vercel_stream_feed(struct vercel_stream *s, const char *p, size_t n);
