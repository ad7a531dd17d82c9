/*
 * One outbound call. The only module that speaks through libcurl.
 *
 * Three threads per process drive three multi handles: one for the fixed hosts of providers, one
 * for hosts that users chose, where both address guards are always set (a pooled connection skips
 * the socket callback, so guarded and unguarded calls never share a pool), and one, guarded
 * likewise, where no two calls under way share a connection: this libcurl loses trailers of HTTP/2
 * streams that do. https only, no redirects, no proxy from the environment, certificates always
 * checked, bounded in every direction. The calling thread waits inside block brackets.
 *
 * No request with an effect is sent twice: libcurl would repeat a request that it wrote to a kept
 * connection which then broke without an answer. Only GET, HEAD, PUT, DELETE and OPTIONS may be
 * repeated so; for any other method such a call ends as HTTP_UNSURE.
 *
 * A call over a unix socket is written "unix:/path/of.sock/v1/things?x=1": one of the allowed
 * origins, then the path. It is requested as http://localhost/v1/things?x=1 over that socket.
 */
#pragma once
#include "buf.h"
#include "err.h"
#include "secret.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum http_pool {
	HTTP_FIXED,
	HTTP_USER,
	HTTP_ALONE, /* a connection for each call under way, kept for later ones: gRPC */
};

#define HTTP_TRAILERS_MAX 2

/* What happened to the request, whatever the reply was. */
enum http_fate {
	HTTP_NOT_SENT, /* certainly without effect: refused address, no connection, TLS failure */
	HTTP_UNSURE,   /* some of it left us and no whole reply came back */
	HTTP_REPLIED,
};

struct http_header {
	const char *name, *value; /* our own or checked text: no control characters */
};

struct http_secret {
	const char *name; /* our own text */
	const struct secret *value;
};
#define HTTP_SECRETS_MAX 3 /* of one call, the bearer included */

struct http_call {
	enum http_pool pool;
	const char *method, *url;
	const struct secret *bearer;       /* sent as "Authorization: Bearer ..."; NULL: none */
	const struct http_secret *secrets; /* sent as they are; ends with a NULL name; NULL: none */
	const struct http_header *headers; /* ends with a NULL name; NULL: none */
	const char *type;                  /* Content-Type of the body */
	const void *body;
	size_t body_n;
	size_t reply_max; /* 0: UPSTREAM_REPLY_MAX; with on_data as well */
	int64_t total_ms; /* required */
	int64_t first_ms; /* from the request's last byte to the reply's first; 0: FIRST_BYTE_MS */
	int64_t idle_ms;  /* longest silence after the first byte; 0: total_ms */
	const char *keep_header; /* name of one reply header to keep; NULL: none */
	/* Names of trailers to keep; NULL: none. A reply without a body has them in its head. */
	const char *keep_trailers[HTTP_TRAILERS_MAX];
	/* Called in the thread of the pool for each piece of the body; false ends the call. When
	 * set, nothing is collected in the reply. */
	bool (*on_data)(void *ctx, const char *p, size_t n);
	void *ctx;
};

struct http_reply {
	enum http_fate fate;
	int status;       /* HTTP_REPLIED: the status code; else 0 */
	const char *body; /* in the arena, NUL-terminated; "" unless HTTP_REPLIED */
	size_t body_n;
	const char *type; /* media type in lower case without parameters, "" when absent */
	const char *kept; /* value of keep_header, or NULL */
	const char *trailers[HTTP_TRAILERS_MAX]; /* values of keep_trailers, or NULL */
	int retry_after_s;                       /* 0: not sent */
	bool too_large; /* the reply passed reply_max or UPSTREAM_HEADERS_MAX: HTTP_UNSURE */
	bool refused_address;
	bool timed_out;
	int64_t took_ms;
};

struct http_conf {
	const char *ca_file;  /* one bundle; NULL or "": the system's. A further PEM file: */
	const char *ca_extra; /* the operator's own CA, or NULL or "" */
	/* Origins the operator lets us call although they are private or not https:
	 * "http://127.0.0.1:PORT", "https://build.internal" or "unix:/path"; ends with NULL, or is
	 * NULL; borrowed until http_stop. */
	const char *const *allowed_origins;
};

/* Starts the threads. Once per process, after fork. ERR_INTERNAL with the setting as field when
 * a certificate file or an origin can not be read. */
MUST_USE enum err http_start(const struct http_conf *conf);
/* Ends the calls under way (HTTP_UNSURE, HTTP_NOT_SENT) and joins the threads. */
void http_stop(void);

/*
 * Makes the call and waits for its end. The reply's memory is in the arena. The return value is OK
 * whenever the reply says what happened, also HTTP_NOT_SENT; ERR_FORBIDDEN_ADDRESS or ERR_BAD_INPUT
 * on "url" when the URL itself is not allowed (scheme, user part, fragment, private literal);
 * ERR_BAD_INPUT on "token" when a secret has characters that no header can carry; ERR_BUSY after
 * http_stop.
 */
MUST_USE enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret);

/* True when a URL of a user may be called at all: https (or an allowed origin), host, no user part,
 * no fragment, no query. ERR_FORBIDDEN_ADDRESS or ERR_BAD_INPUT on `field` otherwise. */
MUST_USE enum err http_url_check(const char *url, const char *field);
