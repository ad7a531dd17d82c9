/*
 * From method and path to what serves it: the way of every request.
 *
 *   begin -> path and method -> origin -> body -> caller -> MCP or REST or a page -> end
 */
#include "route.h"

#include "auth.h"
#include "clock.h"
#include "db.h"
#include "gen.h"
#include "job.h"
#include "bounds.h"
#include "log.h"
#include "mcp.h"
#include "node.h"
#include "rest.h"
#include "text.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define TAG_BYTES 12 /* of the hash, in an entity tag */

static const struct conf *settings;

/* -- documents --------------------------------------------------------------------------------- */

/* They do not depend on who asks, so their bytes are made once. */
static struct document {
	const char *path, *type, *policy;
	void (*gen)(const struct conf *, struct buf *);
	struct buf bytes;
	char tag[2 * TAG_BYTES + 3];
} documents[] = {
	{"/", "text/html; charset=utf-8", gen_start_policy, gen_start, {0}, ""},
	{"/openapi.json", "application/json", NULL, gen_openapi, {0}, ""},
	{"/llms.txt", "text/plain; charset=utf-8", NULL, gen_llms, {0}, ""},
};

#define DOCUMENTS (sizeof documents / sizeof documents[0])

/* A strong tag: the same bytes have the same one, on every worker. */
static void set_tag(struct document *d)
{
	uint8_t hash[SHA256_DIGEST_LENGTH];
	char hex[2 * TAG_BYTES + 1];
	(void)SHA256((const uint8_t *)d->bytes.p, d->bytes.n, hash);
	hex_encode(hex, hash, TAG_BYTES);
	(void)snprintf(d->tag, sizeof d->tag, "\"%s\"", hex);
}

void route_start(const struct conf *conf)
{
	settings = conf;
	for (size_t i = 0; i < DOCUMENTS; i++) {
		buf_done(&documents[i].bytes);
		buf_init(&documents[i].bytes, REPLY_BYTES_MAX);
		documents[i].gen(conf, &documents[i].bytes);
		set_tag(&documents[i]);
	}
	mcp_start();
}

static const struct document *document_at(const char *path)
{
	for (size_t i = 0; i < DOCUMENTS; i++)
		if (strcmp(documents[i].path, path) == 0)
			return &documents[i];
	return NULL;
}

/* RFC 9110, 13.1.2: a list of tags or "*"; compared weakly. */
static bool has_it(const char *if_none_match, const char *tag)
{
	return if_none_match &&
	       (strcmp(if_none_match, "*") == 0 || strstr(if_none_match, tag) != NULL);
}

static void reply_document(struct exchange *x, const struct document *d)
{
	const struct header headers[] = {{"Cache-Control", "public, max-age=300"}, {"ETag", d->tag},
		{d->policy ? "Content-Security-Policy" : NULL, d->policy}, {0}};
	if (has_it(x->if_none_match, d->tag))
		reply(x, 304, NULL, headers, NULL, 0);
	else
		reply(x, 200, d->type, headers, d->bytes.p, d->bytes.n);
}

/* -- pages ------------------------------------------------------------------------------------- */

static void reply_status(struct exchange *x, bool good)
{
	static const struct header headers[] = {{"Cache-Control", "no-store"}, {0}};
	const char *body = good ? "{\"ok\":true}" : "{\"ok\":false}";
	reply(x, good ? 200 : 503, "application/json", headers, body, strlen(body));
}

/* Alive: this process answers. Ready: it can also serve (database, every master key). */
static void page_healthz(struct exchange *x)
{
	reply_status(x, true);
}

static void page_readyz(struct exchange *x)
{
	struct rows rows;
	reply_status(
		x, db_run(SQL_PING, ARGS(), x->req.arena, &rows) == OK && node_keys_complete());
}

static void page_metrics(struct exchange *x)
{
	CLEANUP_BUF struct buf b;
	struct pool_figures f;
	struct rows rows;
	pool_figures(&f);
	buf_init(&b, REPLY_BYTES_MAX);
	buf_printf(&b,
		"# TYPE cc_threads gauge\ncc_threads %u\n# TYPE cc_running gauge\ncc_running %u\n"
		"# TYPE cc_queued gauge\ncc_queued %u\n# TYPE cc_served counter\ncc_served %llu\n"
		"# TYPE cc_refused counter\ncc_refused %llu\n# TYPE cc_driven_jobs "
		"gauge\ncc_driven_jobs %u\n",
		f.threads, f.running, f.queued, (unsigned long long)f.served,
		(unsigned long long)f.refused, drive_count());
	if (db_run(SQL_JOB_COUNTS, ARGS(), x->req.arena, &rows) == OK)
		for (size_t i = 0; i < rows.n; i++)
			buf_printf(&b, "cc_jobs{state=\"%s\"} %s\n", row_str(&rows, i, 0),
				row_str(&rows, i, 1));
	reply(x, 200, "text/plain; version=0.0.4", NULL, b.p, b.n);
}

static const struct page {
	const char *path;
	void (*serve)(struct exchange *x);
} pages[] = {
	{"/healthz", page_healthz},
	{"/readyz", page_readyz},
	{"/metrics", page_metrics},
};

static void (*page_at(const char *path))(struct exchange *x)
{
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
		if (strcmp(pages[i].path, path) == 0)
			return pages[i].serve;
	return NULL;
}

/* -- finding ----------------------------------------------------------------------------------- */

#define RUN_PREFIX "/api/run/"

struct found {
	const struct tool *tool;
	const struct document *document;
	void (*page)(struct exchange *x);
	bool mcp;
};

/* Compares a route's path ("/api/keys/{id}") with the request's; the part in braces goes to *ret.
 */
static bool path_fits(const char *route, const char *path, const char **ret)
{
	const char *brace = strchr(route, '{');
	if (!brace)
		return strcmp(route, path) == 0;
	size_t n = (size_t)(brace - route);
	if (strncmp(route, path, n) != 0 || path[n] == 0 || strchr(path + n, '/'))
		return false;
	*ret = path + n;
	return true;
}

static void allow(struct exchange *x, const char *method)
{
	x->allow = x->allow ? arena_printf(x->req.arena, "%s, %s", x->allow, method)
			    : arena_str(x->req.arena, method);
}

static bool find_routed(struct exchange *x, struct found *ret)
{
	for (size_t i = 0; tools[i]; i++) {
		const char *route = tools[i]->route, *space = route ? strchr(route, ' ') : NULL;
		if (!space || !path_fits(space + 1, x->path, &x->req.path_arg))
			continue;
		size_t n = (size_t)(space - route);
		if (strlen(x->method) == n && strncmp(route, x->method, n) == 0) {
			ret->tool = tools[i];
			x->allow = NULL;
			return true;
		}
		allow(x, arena_copy(x->req.arena, route, n));
	}
	return false;
}

static bool is_method(const struct exchange *x, const char *method)
{
	return strcmp(x->method, method) == 0;
}

static enum err wrong_method(struct exchange *x, const char *allowed)
{
	if (allowed)
		allow(x, allowed);
	allow(x, "OPTIONS");
	return fail(ERR_METHOD_NOT_ALLOWED, NULL, "allowed: %s", x->allow);
}

static enum err find(struct exchange *x, struct found *ret)
{
	*ret = (struct found){0};
	ret->mcp = strcmp(x->path, "/mcp") == 0;
	if (ret->mcp)
		return is_method(x, "POST") ? OK : wrong_method(x, "POST");
	ret->document = document_at(x->path);
	ret->page = page_at(x->path);
	if (ret->document || ret->page)
		return is_method(x, "GET") || is_method(x, "HEAD") ? OK
								   : wrong_method(x, "GET, HEAD");
	if (strncmp(x->path, RUN_PREFIX, strlen(RUN_PREFIX)) == 0) {
		ret->tool = tool_find(x->path + strlen(RUN_PREFIX));
		if (!ret->tool)
			return fail(ERR_UNKNOWN_TOOL, NULL, "see /openapi.json");
		return is_method(x, "POST") ? OK : wrong_method(x, "POST");
	}
	if (find_routed(x, ret))
		return OK;
	return x->allow ? wrong_method(x, NULL) : fail(ERR_NOT_FOUND, NULL, "see /openapi.json");
}

/* -- browsers ---------------------------------------------------------------------------------- */

static bool is_port(const char *s)
{
	return *s && strspn(s, "0123456789") == strlen(s);
}

static bool is_loopback_origin(const char *origin)
{
	static const char *const starts[] = {"http://localhost", "https://localhost",
		"http://127.0.0.1", "https://127.0.0.1", "http://[::1]", "https://[::1]"};
	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
		size_t n = strlen(starts[i]);
		if (strncmp(origin, starts[i], n) != 0)
			continue;
		if (origin[n] == 0 || (origin[n] == ':' && is_port(origin + n + 1)))
			return true;
	}
	return false;
}

static bool is_listed(const char *list, const char *origin)
{
	size_t n = strlen(origin);
	for (const char *at = list; at && *at; at += strcspn(at, ", "), at += strspn(at, ", "))
		if (strcspn(at, ", ") == n && strncmp(at, origin, n) == 0)
			return true;
	return false;
}

/* A foreign page in a user's browser must not reach us, nor us under a rebound name. A server that
 * is itself on loopback accepts loopback origins of any port. */
static enum err check_origin(const struct exchange *x)
{
	const char *own = settings->public_url;
	if (!x->origin || strcmp(x->origin, own) == 0 || is_listed(settings->origins, x->origin))
		return OK;
	if (is_loopback_origin(own) && is_loopback_origin(x->origin))
		return OK;
	return fail(ERR_FORBIDDEN_ORIGIN, "Origin", "it is neither ours nor listed");
}

/* RFC 9110, 9.3.7: what may be asked at this address. */
static void reply_options(struct exchange *x)
{
	const struct header headers[] = {{"Allow", x->allow}, {"Cache-Control", "no-store"}, {0}};
	reply(x, 204, NULL, headers, NULL, 0);
}

static void reply_preflight(struct exchange *x)
{
	static const struct header headers[] = {
		{"Access-Control-Allow-Methods", "POST, GET, PATCH, DELETE, OPTIONS"},
		{"Access-Control-Allow-Headers",
			"Authorization, Content-Type, Accept, Idempotency-Key, "
			"MCP-Protocol-Version, "
			"Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"},
		{"Access-Control-Max-Age", "600"}, {0}};
	reply(x, 204, NULL, headers, NULL, 0);
}

/* -- the way of a request ---------------------------------------------------------------------- */

static size_t body_max(const struct found *f)
{
	bool large = f->mcp || (f->tool && !f->tool->route);
	return large ? BODY_BYTES_MAX : BODY_BYTES_SMALL_MAX;
}

static void refuse(struct exchange *x, const struct found *f, enum err e)
{
	if (e == ERR_FORBIDDEN_ORIGIN) {
		x->origin = NULL; /* no CORS headers for it */
		x->allow = NULL;
	}
	if (f->mcp)
		mcp_refuse(x, e);
	else
		reply_problem(x, e);
}

/* Body and caller, then the protocol. */
static void serve_call(struct exchange *x, const struct found *f)
{
	enum err e = exchange_body(x, body_max(f));
	if (!e)
		e = auth_caller(x);
	if (e)
		refuse(x, f, e);
	else if (f->mcp)
		mcp_serve(x);
	else
		rest_serve(x, f->tool);
}

static void serve(struct exchange *x)
{
	struct found f;
	bool foreign = check_origin(x) != OK, asks = is_method(x, "OPTIONS");
	if (x->origin && !foreign && asks) {
		reply_preflight(x);
		return;
	}
	enum err e = find(x, &f);
	if (foreign)
		e = check_origin(x);
	if (e == ERR_METHOD_NOT_ALLOWED && asks)
		reply_options(x);
	else if (e)
		refuse(x, &f, e);
	else if (f.document)
		reply_document(x, f.document);
	else if (f.page)
		f.page(x);
	else
		serve_call(x, &f);
}

void serve_request(FCGX_Request *fcgi, struct client *c)
{
	struct exchange x;
	int64_t began = clock_mono_us();
	exchange_begin(&x, fcgi, c, settings);
	serve(&x);
	if (x.status >= 500)
		log_event(EV_REQUEST_FAILED, LOG_ID("request", x.req.id),
			LOG_INT("status", x.status), LOG_INT("us", clock_mono_us() - began));
	exchange_end(&x);
}

void refuse_request(FCGX_Request *fcgi)
{
	struct exchange x;
	exchange_begin(&x, fcgi, NULL, settings);
	reply_problem(&x, fail(ERR_BUSY, NULL, "every thread and the queue are full"));
	exchange_end(&x);
}
