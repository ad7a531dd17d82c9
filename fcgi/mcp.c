/*
 * MCP over Streamable HTTP: from the body of a request to the message or the batch in it, the
 * method it names, and the answer. What a method does stands in mcp_call.c and mcp_task.c, but for
 * those that only say who we are.
 */
#include "mcp.h"

#include "gen.h"
#include "bounds.h"
#include "mcp_part.h"

#include <string.h>
#include <strings.h>

#define TTL_MS      300000
#define BATCH_MAX   50
#define BATCH_ROOM  (BATCH_MAX * 4096) /* for an error in the place of every answer */
#define META_SERVER "io.modelcontextprotocol/serverInfo"
#define META_ERROR  "compute-connector/error"

#ifdef CC_TEST_SEAMS
const struct mcp_extra *mcp_extra; /* set by a test build that adds methods of its own */
#endif

static struct buf tools_array; /* of tools/list: the same for every caller */

void mcp_start(void)
{
	buf_done(&tools_array);
	buf_init(&tools_array, REPLY_BYTES_MAX);
	struct jw w = jw_new(&tools_array);
	gen_mcp_tools(&w);
}

/* -- answers ----------------------------------------------------------------------------------- */

static void put_id(struct jw *w, const struct message *m)
{
	jw_kstr(w, "jsonrpc", "2.0");
	if (!m->id)
		return;
	jw_key(w, "id");
	jw_json(w, m->id);
}

static void put_error(struct buf *b, const struct exchange *x, const struct message *m, enum err e)
{
	const struct err_row *row = err_row(e);
	const struct fault *f = fault_of(e);
	struct jw w = jw_new(b);
	jw_obj(&w);
	put_id(&w, m);
	jw_key(&w, "error");
	jw_obj(&w);
	jw_kint(&w, "code", m->rpc ? m->rpc : row->rpc ? row->rpc : -32603);
	jw_key(&w, "message");
	jw_str(&w, f->field[0]
			   ? arena_printf(x->req.arena, "%s %s: %s", row->text, f->field, f->detail)
		   : f->detail[0] ? arena_printf(x->req.arena, "%s (%s)", row->text, f->detail)
				  : row->text);
	jw_key(&w, "data");
	jw_obj(&w);
	if (e == ERR_UNSUPPORTED_VERSION) {
		jw_key(&w, "supported");
		jw_list(&w);
		jw_str(&w, MCP_MODERN);
		jw_end_list(&w);
		jw_kstr(&w, "requested", m->version);
	}
	if (e == ERR_MISSING_CAPABILITY) {
		jw_key(&w, "requiredCapabilities");
		jw_raw(&w, m->needs, strlen(m->needs));
	}
	put_problem(&w, x, e);
	jw_end(&w);
	jw_end(&w);
	jw_end(&w);
}

static void reply_rpc(struct exchange *x, const struct buf *b)
{
	if (x->streaming)
		(void)stream_event(x, b->p, b->n);
	else
		reply(x, 200, "application/json", NULL, b->p, b->n);
}

static void reply_error(struct exchange *x, const struct message *m, enum err e)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	put_error(&b, x, m, e);
	int status = m->http ? m->http : err_row(e)->http;
	if (x->streaming)
		(void)stream_event(x, b.p, b.n);
	else
		reply(x, status, "application/json", error_headers(x, e), b.p, b.n);
}

void mcp_refuse(struct exchange *x, enum err e)
{
	if (x->allow)
		reply(x, 405, NULL, (const struct header[]){{"Allow", x->allow}, {0}}, NULL, 0);
	else
		reply_error(x, &(struct message){0}, e);
}

/* -- methods ----------------------------------------------------------------------------------- */

static void put_server(struct jw *w, const struct exchange *x)
{
	jw_obj(w);
	jw_kstr(w, "name", "compute-connector");
	jw_kstr(w, "title", "Compute Connector");
	jw_kstr(w, "version", CC_VERSION);
	jw_kstr(w, "description",
		"Warns before memory runs out and moves heavy jobs to a sandbox of your own.");
	jw_kstr(w, "websiteUrl", x->req.conf->public_url);
	jw_end(w);
}

static void put_meta(struct jw *w, const struct exchange *x, const struct message *m, enum err e)
{
	if (!m->modern && !e)
		return;
	jw_key(w, "_meta");
	jw_obj(w);
	if (m->modern) {
		jw_key(w, META_SERVER);
		put_server(w, x);
	}
	if (e) {
		jw_key(w, META_ERROR);
		jw_obj(w);
		put_problem(w, x, e);
		jw_end(w);
	}
	jw_end(w);
}

void mcp_put_type(struct jw *w, const struct exchange *x, const struct message *m, const char *type,
	enum err e)
{
	if (m->modern)
		jw_kstr(w, "resultType", type);
	put_meta(w, x, m, e);
}

void mcp_put_cacheable(struct jw *w, const struct exchange *x, const struct message *m)
{
	if (m->modern) {
		jw_kint(w, "ttlMs", TTL_MS);
		jw_kstr(w, "cacheScope", "public"); /* the same for every caller */
	}
	mcp_put_type(w, x, m, "complete", OK);
}

/* Tasks are an extension of the newer era only; nothing is offered that is not served. */
static void put_capabilities(struct jw *w, const struct message *m)
{
	jw_key(w, "capabilities");
	jw_obj(w);
	jw_key(w, "tools");
	jw_obj(w);
	jw_end(w);
	if (m->modern) {
		jw_key(w, "extensions");
		jw_obj(w);
		jw_key(w, MCP_TASKS);
		jw_obj(w);
		jw_end(w);
		jw_end(w);
	}
#ifdef CC_TEST_SEAMS
	if (mcp_extra)
		mcp_extra->capabilities(w, m);
#endif
	jw_end(w);
}

static enum err discover(struct exchange *x, struct message *m, struct jw *w)
{
	jw_key(w, "supportedVersions");
	jw_list(w);
	jw_str(w, MCP_MODERN);
	jw_end_list(w);
	put_capabilities(w, m);
	jw_kstr(w, "instructions", gen_instructions);
	mcp_put_cacheable(w, x, m);
	return OK;
}

static enum err initialize(struct exchange *x, struct message *m, struct jw *w)
{
	const struct json *asked = json_get(m->params, "protocolVersion");
	const char *version = mcp_legacy_versions[0];
	if (json_type(asked) != JSON_STR) {
		m->rpc = MCP_RPC_PARAMS;
		m->http = 200;
		return fail(ERR_BAD_PARAMS, "params.protocolVersion", "must be a string");
	}
	for (size_t i = 0; mcp_legacy_versions[i]; i++)
		if (strcmp(mcp_legacy_versions[i], json_str(asked, NULL)) == 0)
			version = mcp_legacy_versions[i];
	jw_kstr(w, "protocolVersion", version);
	put_capabilities(w, m);
	jw_key(w, "serverInfo");
	put_server(w, x);
	jw_kstr(w, "instructions", gen_instructions);
	return OK;
}

static enum err ping(struct exchange *x, struct message *m, struct jw *w)
{
	(void)x;
	(void)m;
	(void)w;
	return OK;
}

static enum err tools_list(struct exchange *x, struct message *m, struct jw *w)
{
	const struct json *cursor = json_get(m->params, "cursor");
	if (cursor && json_type(cursor) != JSON_NULL) {
		m->http = 200;
		return fail(ERR_BAD_PARAMS, "params.cursor", "the list has one page");
	}
	jw_key(w, "tools");
	jw_raw(w, tools_array.p, tools_array.n);
	mcp_put_cacheable(w, x, m);
	return OK;
}

/* -- messages ---------------------------------------------------------------------------------- */

static const struct mcp_method methods[] = {
	{"server/discover", true, false, discover},
	{"initialize", false, true, initialize},
	{"ping", false, true, ping},
	{"tools/list", true, true, tools_list},
	{"tools/call", true, true, mcp_tools_call},
	{"tasks/get", true, false, mcp_tasks_get},
	{"tasks/update", true, false, mcp_tasks_update},
	{"tasks/cancel", true, false, mcp_tasks_cancel},
	{0},
};

static mcp_method_fn *find_in(const struct mcp_method *rows, const struct message *m)
{
	for (; rows->name; rows++)
		if (strcmp(rows->name, m->method) == 0 && (m->modern ? rows->modern : rows->legacy))
			return rows->run;
	return NULL;
}

static mcp_method_fn *find_method(const struct message *m)
{
#ifdef CC_TEST_SEAMS
	mcp_method_fn *run = mcp_extra ? find_in(mcp_extra->methods, m) : NULL;
	if (run)
		return run;
#endif
	return find_in(methods, m);
}

/* Runs one request and appends its whole response. */
static enum err answer(struct exchange *x, struct message *m, struct buf *b)
{
	mcp_method_fn *run = find_method(m);
	struct jw w = jw_new(b);
	if (!run) {
		m->http = m->modern ? 404 : 200;
		return fail(
			ERR_UNKNOWN_METHOD, "method", "this server offers tools and tasks only");
	}
	jw_obj(&w);
	put_id(&w, m);
	jw_key(&w, "result");
	jw_obj(&w);
	enum err e = run(x, m, &w);
	if (e)
		return e;
	jw_end(&w);
	jw_end(&w);
	return b->full ? fail(ERR_INTERNAL, NULL, "the answer is too large") : OK;
}

static void serve_one(struct exchange *x, const struct json *j)
{
	CLEANUP_BUF struct buf b = {0};
	struct message m;
	enum err e = message_read(j, &m);
	if (e) {
		reply_error(x, &m, e);
		return;
	}
	if (!m.method ||
		!m.id) { /* a response or a notification: nothing to answer, nothing to do */
		reply(x, 202, NULL, NULL, NULL, 0);
		return;
	}
	buf_init(&b, REPLY_BYTES_MAX);
	e = message_check(x, &m);
	if (!e)
		e = answer(x, &m, &b);
	if (e)
		reply_error(x, &m, e);
	else
		reply_rpc(x, &b);
}

/* Batches exist in the revision 2025-03-26 only. */
static enum err batch_allowed(const struct exchange *x, const struct json *list)
{
	if (x->protocol_version && strcmp(x->protocol_version, "2025-03-26") != 0)
		return fail(ERR_BAD_REQUEST, NULL, "this revision has no batches");
	if (json_len(list) == 0 || json_len(list) > BATCH_MAX)
		return fail(ERR_BAD_REQUEST, NULL, "a batch holds 1 to %d messages", BATCH_MAX);
	for (size_t i = 0; i < json_len(list); i++) {
		struct message m;
		if (message_read(json_at(list, i), &m) == OK && m.method &&
			(strcmp(m.method, "initialize") == 0 ||
				json_get(m.meta, "io.modelcontextprotocol/protocolVersion")))
			return fail(ERR_BAD_REQUEST, NULL, "this message may not stand in a batch");
	}
	return OK;
}

static void batch_one(struct exchange *x, const struct json *j, struct jw *w, size_t *n)
{
	CLEANUP_BUF struct buf b;
	struct message m;
	buf_init(&b, REPLY_BYTES_MAX);
	enum err e = message_read(j, &m);
	if (!e && (!m.method || !m.id))
		return;
	if (!e)
		e = answer(x, &m, &b);
	if (!e && w->b->n + b.n > REPLY_BYTES_MAX - BATCH_ROOM)
		e = fail(ERR_INTERNAL, NULL,
			"it was done, but the answers of the batch are too large together; "
			"send it alone");
	if (e) {
		buf_reset(&b);
		put_error(&b, x, &m, e);
	}
	jw_raw(w, b.p, b.n);
	(*n)++;
}

static void serve_batch(struct exchange *x, const struct json *list)
{
	CLEANUP_BUF struct buf b = {0};
	size_t n = 0;
	enum err e = batch_allowed(x, list);
	if (e) {
		reply_error(x, &(struct message){0}, e);
		return;
	}
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw w = jw_new(&b);
	const char *accept = x->accept;
	x->accept = NULL; /* a batch has one answer, so nothing in it streams */
	jw_list(&w);
	for (size_t i = 0; i < json_len(list); i++)
		batch_one(x, json_at(list, i), &w, &n);
	jw_end_list(&w);
	x->accept = accept;
	if (n == 0)
		reply(x, 202, NULL, NULL, NULL, 0);
	else
		reply_rpc(x, &b);
}

static enum err check_media(const struct exchange *x)
{
	size_t n = x->type ? strcspn(x->type, "; \t") : 0;
	if (n != 16 || strncasecmp(x->type, "application/json", n) != 0)
		return fail(ERR_UNSUPPORTED_MEDIA, "Content-Type", "must be application/json");
	if (x->accept && !mcp_accepts(x, "application/json") &&
		!mcp_accepts(x, "text/event-stream") && !mcp_accepts(x, "*/*") &&
		!mcp_accepts(x, "application/*"))
		return fail(ERR_NOT_ACCEPTABLE, "Accept",
			"must allow application/json or text/event-stream");
	return OK;
}

void mcp_serve(struct exchange *x)
{
	CLEANUP_JSON struct json *root = NULL;
	enum err e = check_media(x);
	if (!e)
		e = json_parse(x->body, x->body_n, &root);
	if (e)
		mcp_refuse(x, e);
	else if (json_type(root) == JSON_LIST)
		serve_batch(x, root);
	else
		serve_one(x, root);
}
