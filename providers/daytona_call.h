/*
 * What the operations of Daytona share: one call to its API, and all that is done inside a sandbox,
 * through the daemon there.
 */
#pragma once
#include "provider.h"
#include "daytona_reply.h"

struct json;

#define DAYTONA_CALL_MS   30000
#define DAYTONA_BODY_MAX  (96 << 10) /* spool scripts and their parameters, quoted twice */
#define DAYTONA_REPLY_MAX (64 << 10) /* one sandbox; sixty looks at it fit the smallest arena */

struct daytona_ask {
	const char *method, *url;
	const void *body;
	size_t body_n;
	const char *type;
	int64_t total_ms;  /* 0: DAYTONA_CALL_MS */
	size_t reply_max;  /* as of struct http_call */
	const char *limit; /* which of the rate limits counts it; NULL: the general one */
};

/* The address of the API, the user's or the provider's own. */
const char *daytona_home(const struct call *c);
/* "api_url" when the user gave one, else NULL. */
const char *daytona_field(const struct call *c);

MUST_USE enum err daytona_ask(struct call *c, const struct daytona_ask *q, struct http_reply *ret);
/* `code`: of daytona_code(), or another word of the table. */
MUST_USE enum err daytona_judge(
	struct call *c, const struct http_reply *r, const char *code, enum effect effect);
/* The body of a good reply as an object; free with json_free. */
MUST_USE enum err daytona_object(
	struct call *c, const struct http_reply *r, struct json **ret_root);

/* Fit to stand in a path. Ids and marks come from our own rows: ERR_INTERNAL otherwise. */
MUST_USE enum err daytona_check_id(const char *id);
/* A call about one sandbox. */
struct daytona_ask daytona_about(struct call *c, const char *method, const char *id);
/* A sandbox by id or name; ERR_BOX_GONE when it is certainly not there. */
MUST_USE enum err daytona_get(struct call *c, const char *id, struct daytona_box *ret);

/* Notes where a sandbox is spoken to. ERR_UPSTREAM when the key may not be sent there. */
MUST_USE enum err daytona_remember(struct call *c, const struct daytona_box *b);

/* The operations of provider.h. */
enum err daytona_put(struct call *c, const char *id, const char *path, const void *p, size_t n);
enum err daytona_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret);
