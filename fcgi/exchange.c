/*
 * One HTTP request as FastCGI brings it, and its reply.
 */
#include "exchange.h"

#include "block.h"
#include "clock.h"
#include "bounds.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	int status;
	const char *text;
} reasons[] = {{200, "OK"}, {201, "Created"}, {202, "Accepted"}, {204, "No Content"},
	{304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"},
	{404, "Not Found"}, {405, "Method Not Allowed"}, {406, "Not Acceptable"}, {409, "Conflict"},
	{413, "Content Too Large"}, {415, "Unsupported Media Type"}, {422, "Unprocessable Content"},
	{429, "Too Many Requests"}, {499, "Client Closed Request"}, {500, "Internal Server Error"},
	{502, "Bad Gateway"}, {503, "Service Unavailable"}};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "Unknown";
}

/* -- reading ----------------------------------------------------------------------------------- */

static const char *param(const struct exchange *x, const char *name)
{
	const char *v = FCGX_GetParam(name, x->fcgi->envp);
	return v && *v ? arena_str(x->req.arena, v) : NULL;
}

/* nginx passes a header that was sent twice as two parameters of one name. */
static bool sent_twice(const struct exchange *x, const char *name)
{
	size_t n = strlen(name), seen = 0;
	for (char **e = x->fcgi->envp; *e; e++)
		seen += strncmp(*e, name, n) == 0 && (*e)[n] == '=';
	return seen > 1;
}

/* A header that decides something. Sent twice it counts as empty, which is nobody's right value.
 * Tabs at the ends belong to it no more than blanks, which nginx has taken away. */
static const char *header(const struct exchange *x, const char *name)
{
	const char *v = sent_twice(x, name) ? "" : FCGX_GetParam(name, x->fcgi->envp);
	if (!v)
		return NULL;
	v += strspn(v, " \t");
	size_t n = strlen(v);
	while (n > 0 && (v[n - 1] == ' ' || v[n - 1] == '\t'))
		n--;
	return arena_copy(x->req.arena, v, n);
}

static bool gone(void *client)
{
	return client_gone(client);
}

static void on_gone(void *client, void (*wake)(void *arg), void *arg)
{
	client_watch(client, wake, arg);
}

static const char *path_of(const struct exchange *x)
{
	const char *uri = param(x, "DOCUMENT_URI");
	return uri ? uri : "/";
}

void exchange_begin(
	struct exchange *x, FCGX_Request *fcgi, struct client *c, const struct conf *conf)
{
	*x = (struct exchange){.fcgi = fcgi, .client = c};
	x->req = (struct req){.arena = arena_new(ARENA_BYTES_MAX),
		.id = id_new(),
		.conf = conf,
		.gone = gone,
		.on_gone = on_gone,
		.transport = c};
	x->method = param(x, "REQUEST_METHOD");
	x->method = x->method ? x->method : "GET";
	x->path = path_of(x);
	x->query = param(x, "QUERY_STRING");
	x->type = header(x, "CONTENT_TYPE");
	x->accept = param(x, "HTTP_ACCEPT");
	x->if_none_match = param(x, "HTTP_IF_NONE_MATCH");
	x->origin = header(x, "HTTP_ORIGIN");
	x->authorization = header(x, "HTTP_AUTHORIZATION");
	x->remote = param(x, "REMOTE_ADDR");
	x->protocol_version = header(x, "HTTP_MCP_PROTOCOL_VERSION");
	x->mcp_method = header(x, "HTTP_MCP_METHOD");
	x->mcp_name = header(x, "HTTP_MCP_NAME");
	x->req.idempotency_key = header(x, "HTTP_IDEMPOTENCY_KEY");
}

void exchange_end(struct exchange *x)
{
	secret_done(&x->req.caller.token);
	arena_free(x->req.arena);
}

enum err exchange_body(struct exchange *x, size_t max)
{
	const char *length = param(x, "CONTENT_LENGTH"),
		   *encoding = header(x, "HTTP_CONTENT_ENCODING");
	size_t n = length ? strtoul(length, NULL, 10) : 0;
	if (encoding && strcasecmp(encoding, "identity") != 0)
		return fail(ERR_UNSUPPORTED_MEDIA, NULL, "the body is compressed");
	if (n > max)
		return fail(ERR_TOO_LARGE, NULL, "the body may have at most %zu bytes here", max);
	char *body = arena_take(x->req.arena, n + 1);
	size_t got = 0;
	while (got < n) {
		int k = FCGX_GetStr(body + got, (int)(n - got), x->fcgi->in);
		if (k <= 0)
			return fail(ERR_CLIENT_GONE, NULL, "the body ended early");
		got += (size_t)k;
	}
	client_input_done(x->fcgi); /* its buffer is not needed while a job is waited for */
	x->body = body;
	x->body_n = n;
	return OK;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* A client that reads slowly holds the write once nginx's buffers are full. */
static void put(struct exchange *x, const char *p, size_t n)
{
	block_begin();
	if (FCGX_PutStr(p, (int)n, x->fcgi->out) < 0)
		x->write_failed = true;
	block_end();
}

static void flush(struct exchange *x)
{
	block_begin();
	if (FCGX_FFlush(x->fcgi->out) < 0)
		x->write_failed = true;
	block_end();
}

static bool own_origin(const struct exchange *x)
{
	return x->origin != NULL; /* foreign origins were refused before any reply (route.c) */
}

/* The day's count for a caller who wants to slow down in time
 * (draft-ietf-httpapi-ratelimit-headers).
 */
static void put_quota(const struct quota *q, struct buf *b)
{
	int64_t wait_ms = q->resets_ms - clock_ms();
	if (q->limit > 0)
		buf_printf(b,
			"RateLimit-Policy: \"day\";q=%lld;w=86400\r\n"
			"RateLimit: \"day\";r=%lld;t=%lld\r\n",
			(long long)q->limit, (long long)(q->left > 0 ? q->left : 0),
			(long long)(wait_ms > 0 ? wait_ms / 1000 : 0));
}

static void put_head(struct exchange *x, int status, const char *type, const struct header *headers)
{
	CLEANUP_BUF struct buf b;
	char id[ID_TEXT_SIZE];
	x->status = status;
	buf_init(&b, UPSTREAM_HEADERS_MAX);
	buf_printf(&b, "Status: %d %s\r\nX-Request-Id: %s\r\n", status, reason_of(status),
		id_text(id, "req", x->req.id));
	if (type)
		buf_printf(&b, "Content-Type: %s\r\n", type);
	if (own_origin(x))
		buf_printf(&b,
			"Access-Control-Allow-Origin: %s\r\nVary: Origin\r\n"
			"Access-Control-Expose-Headers: WWW-Authenticate, Retry-After, "
			"X-Request-Id, RateLimit, RateLimit-Policy\r\n",
			x->origin);
	put_quota(&x->req.quota, &b);
	for (; headers && headers->name; headers++)
		buf_printf(&b, "%s: %s\r\n", headers->name, headers->value);
	put(x, b.p, b.n);
}

void reply(struct exchange *x, int status, const char *type, const struct header *headers,
	const void *body, size_t n)
{
	char length[48] = "\r\n";
	put_head(x, status, type, headers);
	if (status != 204 && status != 304) /* RFC 9110, 8.6 */
		(void)snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", n);
	put(x, length, strlen(length));
	if (n && strcmp(x->method, "HEAD") != 0)
		put(x, body, n);
}

void put_problem(struct jw *w, const struct exchange *x, enum err e)
{
	const struct err_row *row = err_row(e);
	const struct fault *f = fault_of(e);
	char id[ID_TEXT_SIZE];
	jw_kstr(w, "code", row->code);
	jw_kstr(w, "title", row->text);
	if (f->field[0])
		jw_kstr(w, "field", f->field);
	if (f->detail[0])
		jw_kstr(w, "detail", f->detail);
	if (row->advice[0])
		jw_kstr(w, "advice", row->advice);
	jw_kbool(w, "retryable", row->again);
	if (f->retry_after_s > 0)
		jw_kint(w, "retry_after_s", f->retry_after_s);
	jw_kstr(w, "request_id", id_text(id, "req", x->req.id));
}

const struct header *error_headers(const struct exchange *x, enum err e)
{
	struct header *headers = ARENA_LIST(x->req.arena, 5, struct header);
	int asked = fault_of(e)->retry_after_s, http = err_row(e)->http;
	int wait = asked > 0 ? asked : http == 503 ? 2 : http == 429 ? 1 : 0;
	size_t n = 0;
	headers[n++] = (struct header){"Cache-Control", "no-store"};
	if (wait)
		headers[n++] =
			(struct header){"Retry-After", arena_printf(x->req.arena, "%d", wait)};
	if (x->allow)
		headers[n++] = (struct header){"Allow", x->allow};
	if (e == ERR_TOKEN_INVALID)
		headers[n++] = (struct header){"WWW-Authenticate", INVALID_TOKEN_CHALLENGE};
	headers[n] = (struct header){0};
	return headers;
}

void reply_problem(struct exchange *x, enum err e)
{
	CLEANUP_BUF struct buf b;
	const struct err_row *row = err_row(e);
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_key(&w, "type");
	jw_str(&w, arena_printf(
			   x->req.arena, "%s/openapi.json#%s", x->req.conf->public_url, row->code));
	jw_kint(&w, "status", row->http);
	put_problem(&w, x, e);
	jw_end(&w);
	reply(x, row->http, "application/problem+json", error_headers(x, e), b.p, b.n);
}

void stream_begin(struct exchange *x)
{
	static const struct header headers[] = {
		{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}, {0}};
	put_head(x, 200, "text/event-stream", headers);
	put(x, "\r\n", 2);
	flush(x);
	x->streaming = true;
}

bool stream_event(struct exchange *x, const char *data, size_t n)
{
	put(x, "event: message\ndata: ", 21);
	put(x, data, n);
	put(x, "\n\n", 2);
	flush(x);
	return !x->write_failed;
}
