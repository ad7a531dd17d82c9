/*
 * One call to E2B: to its API, or to the daemon of a sandbox. What both halves of the provider
 * (e2b.c: sandboxes, e2b_daemon.c: files and commands) share.
 */
#pragma once
#include "e2b_reply.h"

/* The stream of a command, and the first bytes for the case that it is an error body instead. */
struct e2b_listener {
	struct e2b_stream stream;
	struct buf head;
};

struct e2b_ask {
	const char *method, *path; /* behind the API's base, or behind the daemon's address */
	const char *box; /* the daemon of this sandbox, which was reached; NULL: the API */
	const void *body;
	size_t body_n;
	const char *type;
	size_t reply_max; /* 0: as usual */
	int64_t total_ms;
	struct e2b_listener *listener; /* NULL: the reply is collected */
};
#define E2B_HEAD_MAX 4096 /* of an error body in place of a stream */

/* Makes the call; the API's reply keeps X-Next-Token. */
MUST_USE enum err e2b_ask(struct call *c, const struct e2b_ask *q, struct http_reply *ret);

/* The address of the API is the user's. */
bool e2b_own(const struct call *c);
/* The API, without slashes at the end. */
const char *e2b_api(struct call *c);
const char *e2b_box_path(struct call *c, const char *id);
/* Ids come back from our own rows, but a foreign character would change the path. */
MUST_USE enum err e2b_check_id(const char *id);

/* The body of a good reply; free with json_free. ERR_UPSTREAM otherwise. */
MUST_USE enum err e2b_object(const struct http_reply *r, struct json **ret_root);
MUST_USE enum err e2b_list_of(const struct http_reply *r, struct json **ret_root);

/* -- where a sandbox is spoken to -------------------------------------------------------------- */

bool e2b_remembered(const struct call *c, const char *id);
void e2b_forget(struct call *c);
/* What the API told of one sandbox. ERR_UPSTREAM: it leads to somebody else's host, or is wrong. */
MUST_USE enum err e2b_remember(struct call *c, const char *id, const struct json *o);
/* Makes sure that the daemon can be spoken to. ERR_BOX_GONE: the API knows no such sandbox. */
MUST_USE enum err e2b_reach(struct call *c, const char *id);

/* -- the other half of the operations ---------------------------------------------------------- */

enum err e2b_put(struct call *c, const char *id, const char *path, const void *p, size_t n);
enum err e2b_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret);
