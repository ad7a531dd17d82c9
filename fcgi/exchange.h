/*
 * One HTTP request as FastCGI brings it, and its reply.
 *
 * Only exchange.c touches the FastCGI library. Strings point into the request's arena.
 */
#pragma once
#include "buf.h"
#include "json.h"
#include "tool.h"
#include "worker.h"

#include <fcgiapp.h>

struct exchange {
	struct req req;
	FCGX_Request *fcgi;
	struct client *client;
	const char *method, *path, *query;
	const char *type, *accept, *origin, *authorization, *if_none_match;
	const char *protocol_version, *mcp_method, *mcp_name; /* MCP headers; NULL: not sent */
	const char *remote;                                   /* the client's address */
	const char *body;
	size_t body_n;
	const char *allow; /* 405: the methods of this path */
	int status;        /* of the reply, for the log; 0: none yet */
	bool streaming;    /* an event stream has begun */
	bool write_failed;
};

/* Reads method, path and headers; a header that decides something and was sent twice is "". The
 * body is read by exchange_body once its limit is known. */
void exchange_begin(
	struct exchange *x, FCGX_Request *fcgi, struct client *c, const struct conf *conf);
void exchange_end(struct exchange *x);

/* Reads the whole body. ERR_TOO_LARGE above max; ERR_UNSUPPORTED_MEDIA when it is compressed. */
MUST_USE enum err exchange_body(struct exchange *x, size_t max);

/* RFC 6750, without resource_metadata: clients must not be dragged into a login they do not need.
 */
#define INVALID_TOKEN_CHALLENGE                                                                    \
	"Bearer realm=\"compute-connector\", error=\"invalid_token\", "                            \
	"error_description=\"the API key is not valid\""

struct header {
	const char *name, *value;
};
/* Sends a whole reply. headers end with a NULL name; NULL: none. HEAD requests get no body. */
void reply(struct exchange *x, int status, const char *type, const struct header *headers,
	const void *body, size_t n);
/* What goes with an error besides its body: Cache-Control, Retry-After, Allow, WWW-Authenticate. */
const struct header *error_headers(const struct exchange *x, enum err e);
/* Sends an error as application/problem+json (RFC 9457). */
void reply_problem(struct exchange *x, enum err e);
/* The members of a problem document, also used inside MCP errors. */
void put_problem(struct jw *w, const struct exchange *x, enum err e);

/* Event streams: headers at once, every event flushed. False: the client has gone. */
void stream_begin(struct exchange *x);
bool stream_event(struct exchange *x, const char *data, size_t n);
