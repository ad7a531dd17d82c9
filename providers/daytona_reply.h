/*
 * What Daytona's classic API and the daemon in a sandbox take and answer: texts that are sent,
 * replies decoded. Pure functions over bytes (daytona.c, tests). Replies come from outside.
 */
#pragma once
#include "buf.h"
#include "provider.h"
#include "reply.h"

struct json;

/* -- addresses --------------------------------------------------------------------------------- */

/* The API's address without trailing slashes; one without a path gets "/api". */
const char *daytona_base(struct arena *a, const char *url);

/* True when the key may be sent to url, an address that a reply of the API at `api` named: https
 * and the API's host or one under the same parent domain, or else the very same origin. */
bool daytona_near(const char *api, const char *url);

/* -- replies ----------------------------------------------------------------------------------- */

/* Certain refusals of the control plane, and of the daemon in a sandbox. */
extern const struct refusal daytona_api_refusals[], daytona_box_refusals[];

/* What an error body of the API's own form says, in a word of ours that the tables know: "own" when
 * it says nothing more, "" when the body is of another form. */
const char *daytona_code(const struct http_reply *r);

enum daytona_phase {
	DAYTONA_COMING, /* on its way to started, or not told */
	DAYTONA_STARTED,
	DAYTONA_DOWN, /* stopped, failed, archived ...: there, but nothing runs in it */
	DAYTONA_LEAVING,
	DAYTONA_GONE,
};
struct daytona_box {
	const char *id, *name, *toolbox; /* in the arena; toolbox: NULL when it is not told */
	enum daytona_phase phase;
	bool limited; /* it has a hard end */
	bool blocked; /* it has no network */
};
/* One sandbox. False when a member is missing or wrong. */
bool daytona_box(const struct json *o, struct arena *a, struct daytona_box *ret);

enum box_state daytona_state(enum daytona_phase phase);

/* Names of the permissions that a key needs and that the list lacks, for people; NULL: none. */
const char *daytona_lacks(const struct json *permissions);

/* -- commands and files ------------------------------------------------------------------------ */

/* The text for the shell that runs argv (NULL-terminated): its stdout, a new line, `mark`, then its
 * stderr. The daemon itself mixes the streams and gives the shell this text as its input. */
void daytona_command(struct buf *b, const char *const *argv, const char *mark);

/* The reply to that. ERR_UPSTREAM unless it is whole and has an exit code. */
MUST_USE enum err daytona_result(
	const struct json *o, const char *mark, struct arena *a, struct exec_result *ret);

/* The body of a form with one file, in the arena. */
const void *daytona_upload(struct arena *a, const char *boundary, const char *path, const void *p,
	size_t n, size_t *ret_n);
