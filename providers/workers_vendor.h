/*
 * The bridge that Cloudflare itself publishes for its sandboxes, as far as jobs need it.
 *
 * It knows no list, no hard end, no kill and no end that it proves, and it may put a fresh machine
 * in the place of a lost one without a word. What we make of that: an id of ours is enough to
 * create; a folder made with the sandbox tells one machine from the next; a deleted sandbox counts
 * as stopped, because asking again would start a machine, and the idle end is the bridge's own (ten
 * minutes).
 */
#pragma once
#include "http.h"
#include "provider.h"
#include "reply.h"

extern const struct provider_ops vendor_ops;

/* -- pure parts (tests, fuzzing) --------------------------------------------------------------- */

#define VENDOR_ID_CHARS 34

/* The id at the bridge, which allows only a-z and 2-7: the mark without its dashes. False: not a
 * mark. */
bool vendor_id_of(const char *mark, char out[VENDOR_ID_CHARS + 1]);
/* Whether this is such an id; ids of our own bridge never are. */
bool vendor_id_ok(const char *id);

/* The error that a reply stands for; OK when its status is 200 to 204. */
MUST_USE enum err vendor_judge(const struct http_reply *r, enum effect effect);

/* Reads the events of a command. ERR_UPSTREAM_UNSURE: the end is missing, or the bridge lost sight
 * of it. ERR_UPSTREAM: not of the form, or too much output. */
MUST_USE enum err vendor_events(const char *p, size_t n, struct arena *a, struct exec_result *ret);
