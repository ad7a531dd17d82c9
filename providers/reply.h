/*
 * What a reply of a provider means: one table of certain refusals per service, and one rule for all
 * that is not in it. No text from outside gets into an error.
 */
#pragma once
#include "err.h"
#include "http.h"
#include "provider.h"

#include <stdbool.h>
#include <stdint.h>

struct json;

/* One HTTP request of an operation: counted as a round trip, its time as the provider's. */
MUST_USE enum err call_http(struct call *c, const struct http_call *h, struct http_reply *ret);

/* What a call does there, which decides what a broken reply means. */
enum effect {
	EFFECT_READS,   /* a broken reply is ERR_UPSTREAM */
	EFFECT_REPEATS, /* has an effect but may be repeated: ERR_UPSTREAM_UNSURE when broken */
	EFFECT_CREATES, /* only a certain refusal is not ERR_UPSTREAM_UNSURE */
};

/* A reply that says for certain that nothing happened. The first row that fits is taken. */
struct refusal {
	int status;
	const char *code; /* of the error body; NULL: whatever the body is */
	enum err err;
	const char *field, *words; /* field: of our own request, or NULL */
};

struct service {
	const char *name;  /* for people: "the bridge", "Vercel" */
	const char *field; /* that holds its address: "bridge_url", "api_url"; NULL: fixed */
	const struct refusal *refusals; /* ends with status 0 */
};

/* The error that a reply stands for; OK when its status is 200 to 204. `code` is what the error
 * body says, "" for none or another form. ERR_UPSTREAM_LIMIT carries the waiting time. */
MUST_USE enum err reply_judge(
	const struct service *s, const struct http_reply *r, const char *code, enum effect effect);

/* The body of a good reply as a JSON object; free with json_free. ERR_UPSTREAM otherwise. */
MUST_USE enum err reply_object(
	const struct service *s, const struct http_reply *r, struct json **ret_root);
/* The same for a list. */
MUST_USE enum err reply_list(
	const struct service *s, const struct http_reply *r, struct json **ret_root);

/* A text member; NULL when it is missing, not a text, empty, or has control characters. */
const char *reply_str(const struct json *o, const char *key);
/* A whole number; `otherwise` when it is missing or of another type. */
int64_t reply_int(const struct json *o, const char *key, int64_t otherwise);
