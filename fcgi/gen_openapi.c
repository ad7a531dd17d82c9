/*
 * The OpenAPI 3.1 document: one operation for every tool, and the few addresses beside them.
 *
 * Every schema has its place under components and is referred to locally. All problems share one
 * schema; the description of a status names the codes that a call can answer there.
 */
#include "gen_openapi_part.h"

#include "bounds.h"

#include <stdio.h>
#include <string.h>

/* -- one operation ----------------------------------------------------------------------------- */

static bool has_body(const struct tool *t, const struct route_text *r)
{
	if (strcmp(r->method, "GET") == 0)
		return false;
	return t->in->n > 0 || strcmp(r->method, "POST") == 0;
}

static bool any_required(const struct shape *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->fields[i].flags & REQUIRED)
			return true;
	return false;
}

static void put_body(struct jw *w, const struct tool *t)
{
	jw_key(w, "requestBody");
	jw_obj(w);
	jw_kbool(w, "required", any_required(t->in));
	openapi_open_content(w, "application/json", t->name, "_input");
	jw_key(w, "example");
	gen_sample(t->in, true, w);
	openapi_close_content(w);
	jw_end(w);
}

static void put_parameter(struct jw *w, const char *name, const char *in, const char *text, int max)
{
	jw_obj(w);
	jw_kstr(w, "name", name);
	jw_kstr(w, "in", in);
	jw_kbool(w, "required", strcmp(in, "path") == 0);
	jw_kstr(w, "description", text);
	jw_key(w, "schema");
	jw_obj(w);
	jw_kstr(w, "type", "string");
	jw_kint(w, "minLength", 1);
	jw_kint(w, "maxLength", max);
	jw_end(w);
	jw_end(w);
}

static void put_parameters(struct jw *w, const struct tool *t, const struct route_text *r)
{
	bool id = strstr(r->path, "{id}") != NULL, replays = t->flags & TOOL_REPLAYS;
	if (!id && !replays)
		return;
	jw_key(w, "parameters");
	jw_list(w);
	if (id)
		put_parameter(w, "id", "path", "Which one, as the list of them names it.", 64);
	if (replays)
		put_parameter(w, "Idempotency-Key", "header",
			"Repeating a call with the same key and body within 48 hours answers for "
			"the same job "
			"instead of a new one; another body with this key is refused. Printable "
			"ASCII.",
			IDEM_KEY_CHARS_MAX);
	jw_end_list(w);
}

/* Without a key where anyone may call; a key changes the quota there, so it is always possible. */
static void put_security(struct jw *w, bool anyone)
{
	jw_key(w, "security");
	jw_list(w);
	if (anyone) {
		jw_obj(w);
		jw_end(w);
	}
	jw_obj(w);
	jw_key(w, "bearer");
	jw_list(w);
	jw_end_list(w);
	jw_end(w);
	jw_end_list(w);
}

static void put_tag(struct jw *w, const char *tag)
{
	jw_key(w, "tags");
	jw_list(w);
	jw_str(w, tag);
	jw_end_list(w);
}

static void put_success(struct jw *w, const struct tool *t)
{
	char key[8];
	snprintf(key, sizeof key, "%d", t->status ? t->status : 200);
	jw_key(w, key);
	jw_obj(w);
	jw_kstr(w, "description", t->out->doc);
	jw_key(w, "headers");
	jw_obj(w);
	openapi_header(w, "X-Request-Id", "string", "The id of this request.");
	if (t->flags & TOOL_METERED)
		openapi_quota_headers(w);
	jw_end(w);
	openapi_open_content(w, "application/json", t->name, "_output");
	jw_key(w, "example");
	gen_sample(t->out, false, w);
	openapi_close_content(w);
	jw_end(w);
}

static void put_default(struct jw *w)
{
	jw_key(w, "default");
	jw_obj(w);
	jw_kstr(w, "description",
		"`bad_request` with status 408, 414, 421 or 431: the request came too slowly, is "
		"too long, "
		"or asks for another host.");
	openapi_open_content(w, "application/problem+json", "Problem", "");
	openapi_close_content(w);
	jw_end(w);
}

/* Hosted assistants import no operation with a longer description. The whole text is in MCP's list
 * of tools and in /llms.txt. */
#define DESCRIPTION_MAX 300

/* The length of the leading sentences that fit into max bytes; the first one is always taken. */
static size_t sentences(const char *text, size_t max)
{
	size_t taken = 0;
	for (const char *end = text; (end = strstr(end, ". ")); end++)
		if (!taken || (size_t)(end + 1 - text) <= max)
			taken = (size_t)(end + 1 - text);
	size_t all = strlen(text);
	return !taken || all <= max ? all : taken;
}

static void put_operation(
	struct jw *w, const struct conf *c, const struct tool *t, const struct route_text *r)
{
	CLEANUP_BUF struct buf text;
	buf_init(&text, TEXT_BYTES_MAX);
	char access[120];
	int n = snprintf(access, sizeof access, "\n\nAccess: %s. %s", gen_access(t),
		t->flags & TOOL_METERED ? "Counts as a call of the day." : "Not counted.");
	buf_put(&text, t->doc, sentences(t->doc, DESCRIPTION_MAX - (size_t)n));
	buf_str(&text, access);
	jw_obj(w);
	put_tag(w, t->flags & TOOL_REST_ONLY ? "account" : "tools");
	jw_kstr(w, "operationId", t->name);
	jw_kstr(w, "summary", t->title);
	jw_kstr(w, "description", text.p);
	put_security(w, t->role == ROLE_ANYONE);
	put_parameters(w, t, r);
	if (has_body(t, r))
		put_body(w, t);
	jw_key(w, "responses");
	jw_obj(w);
	put_success(w, t);
	for (int status = 400; status < 600; status++)
		openapi_problems(w, c, t, status);
	put_default(w);
	jw_end(w);
	jw_end(w);
}

static void key_of_method(struct jw *w, const char *method)
{
	char lower[8] = "";
	for (size_t i = 0; method[i] && i < sizeof lower - 1; i++)
		lower[i] = (char)(method[i] | 0x20);
	jw_key(w, lower);
}

/* -- paths ------------------------------------------------------------------------------------- */

/* Tools that share a path stand under it together, where the first of them is. */
static void put_path(struct jw *w, const struct conf *c, size_t at)
{
	struct route_text r, other;
	gen_route(tools[at], &r);
	for (size_t i = 0; i < at; i++) {
		gen_route(tools[i], &other);
		if (strcmp(r.path, other.path) == 0)
			return;
	}
	jw_key(w, r.path);
	jw_obj(w);
	for (size_t i = at; tools[i]; i++) {
		gen_route(tools[i], &other);
		if (strcmp(r.path, other.path) != 0)
			continue;
		key_of_method(w, other.method);
		put_operation(w, c, tools[i], &other);
	}
	jw_end(w);
}

/* What is no tool: documents and signs of life. */
struct plain {
	const char *path, *id, *summary, *answer, *type;
	const char *refusal; /* of status 503; NULL: there is none */
	bool tagged;         /* has an ETag */
};

static void put_plain_answer(struct jw *w, const char *status, const char *text, const char *type)
{
	jw_key(w, status);
	jw_obj(w);
	jw_kstr(w, "description", text);
	jw_key(w, "content");
	jw_obj(w);
	jw_key(w, type);
	jw_obj(w);
	jw_end(w);
	jw_end(w);
	jw_end(w);
}

static void put_plain_path(struct jw *w, const struct conf *c, const struct plain *p)
{
	jw_key(w, p->path);
	jw_obj(w);
	jw_key(w, "get");
	jw_obj(w);
	put_tag(w, "server");
	jw_kstr(w, "operationId", p->id);
	jw_kstr(w, "summary", p->summary);
	put_security(w, true);
	jw_key(w, "responses");
	jw_obj(w);
	put_plain_answer(w, "200", p->answer, p->type);
	if (p->tagged) {
		jw_key(w, "304");
		jw_obj(w);
		jw_kstr(w, "description", "It is what If-None-Match names.");
		jw_end(w);
	}
	openapi_problems(w, c, NULL, 403);
	if (p->refusal)
		put_plain_answer(w, "503", p->refusal, p->type);
	put_default(w);
	jw_end(w);
	jw_end(w);
	jw_end(w);
}

static void put_object_content(struct jw *w)
{
	jw_key(w, "application/json");
	jw_obj(w);
	jw_key(w, "schema");
	jw_obj(w);
	jw_kstr(w, "type", "object");
	jw_end(w);
	jw_end(w);
}

static void put_mcp_responses(struct jw *w)
{
	jw_key(w, "responses");
	jw_obj(w);
	jw_key(w, "200");
	jw_obj(w);
	jw_kstr(w, "description",
		"A JSON-RPC response, or a stream of events when progress was asked for.");
	jw_key(w, "content");
	jw_obj(w);
	put_object_content(w);
	jw_key(w, "text/event-stream");
	jw_obj(w);
	jw_end(w);
	jw_end(w);
	jw_end(w);
	jw_key(w, "202");
	jw_obj(w);
	jw_kstr(w, "description", "A notification was taken.");
	jw_end(w);
	jw_key(w, "default");
	jw_obj(w);
	jw_kstr(w, "description", "A JSON-RPC error, or a problem document of the proxy.");
	jw_key(w, "content");
	jw_obj(w);
	put_object_content(w);
	jw_key(w, "application/problem+json");
	jw_obj(w);
	jw_key(w, "schema");
	openapi_ref(w, "schemas", "Problem", "");
	jw_end(w);
	jw_end(w);
	jw_end(w);
	jw_end(w);
}

static void put_mcp_path(struct jw *w)
{
	jw_key(w, "/mcp");
	jw_obj(w);
	jw_key(w, "post");
	jw_obj(w);
	put_tag(w, "mcp");
	jw_kstr(w, "operationId", "mcp");
	jw_kstr(w, "summary", "Model Context Protocol");
	jw_kstr(w, "description",
		"Streamable HTTP without sessions. The tools are those of /api/run/, with the same "
		"arguments "
		"and results. Connect an MCP client here instead of calling it by hand.");
	put_security(w, true);
	jw_key(w, "requestBody");
	jw_obj(w);
	jw_kbool(w, "required", true);
	jw_key(w, "content");
	jw_obj(w);
	put_object_content(w);
	jw_end(w);
	jw_end(w);
	put_mcp_responses(w);
	jw_end(w);
	jw_end(w);
}

static void put_paths(struct jw *w, const struct conf *c)
{
	static const struct plain plain[] = {
		{"/openapi.json", "get_openapi", "This document", "OpenAPI 3.1.",
			"application/json", NULL, true},
		{"/llms.txt", "get_llms", "What this server is, for models and people", "Markdown.",
			"text/plain", NULL, true},
		{"/healthz", "get_health", "Whether a worker answers", "It does.",
			"application/json", NULL, false},
		{"/readyz", "get_ready", "Whether calls can be served", "They can.",
			"application/json", "The database or a master key is missing.", false},
	};
	jw_key(w, "paths");
	jw_obj(w);
	for (size_t i = 0; tools[i]; i++)
		put_path(w, c, i);
	put_mcp_path(w);
	for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
		put_plain_path(w, c, &plain[i]);
	jw_end(w);
}

/* -- the document ------------------------------------------------------------------------------ */

static void put_schema(struct jw *w, const struct tool *t, bool input)
{
	char name[80];
	snprintf(name, sizeof name, "%s%s", t->name, input ? "_input" : "_output");
	jw_key(w, name);
	shape_schema(input ? t->in : t->out, input, w);
}

static void put_components(struct jw *w)
{
	struct route_text r;
	jw_key(w, "components");
	jw_obj(w);
	jw_key(w, "securitySchemes");
	jw_obj(w);
	jw_key(w, "bearer");
	jw_obj(w);
	jw_kstr(w, "type", "http");
	jw_kstr(w, "scheme", "bearer");
	jw_kstr(w, "description", "An API key of this server. POST /api/key makes a free one.");
	jw_end(w);
	jw_end(w);
	jw_key(w, "schemas");
	jw_obj(w);
	openapi_problem_schema(w);
	for (size_t i = 0; tools[i]; i++) {
		gen_route(tools[i], &r);
		if (has_body(tools[i], &r))
			put_schema(w, tools[i], true);
		put_schema(w, tools[i], false);
	}
	jw_end(w);
	jw_end(w);
}

static void put_info(struct jw *w, const struct conf *c)
{
	CLEANUP_BUF struct buf text;
	buf_init(&text, TEXT_BYTES_MAX);
	gen_text_intro(&text);
	buf_printf(&text,
		"\nA body has at most %d bytes under /api/run/ and on /mcp, %d elsewhere.",
		BODY_BYTES_MAX, BODY_BYTES_SMALL_MAX);
	jw_key(w, "info");
	jw_obj(w);
	jw_kstr(w, "title", "Compute Connector");
	jw_kstr(w, "version", CC_VERSION);
	jw_kstr(w, "description", text.p);
	jw_key(w, "license");
	jw_obj(w);
	jw_kstr(w, "name", "MIT");
	jw_kstr(w, "identifier", "MIT");
	jw_end(w);
	jw_end(w);
	jw_key(w, "servers");
	jw_list(w);
	jw_obj(w);
	jw_kstr(w, "url", c->public_url);
	jw_end(w);
	jw_end_list(w);
}

void gen_openapi(const struct conf *c, struct buf *b)
{
	static const char *const tags[][2] = {{"tools", "What agents call; the same as over MCP."},
		{"account", "Accounts and API keys."}, {"mcp", "The Model Context Protocol."},
		{"server", "Documents and signs of life."}};
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "openapi", "3.1.0");
	put_info(&w, c);
	jw_key(&w, "tags");
	jw_list(&w);
	for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
		jw_obj(&w);
		jw_kstr(&w, "name", tags[i][0]);
		jw_kstr(&w, "description", tags[i][1]);
		jw_end(&w);
	}
	jw_end_list(&w);
	put_paths(&w, c);
	put_components(&w);
	openapi_error_list(&w);
	jw_end(&w);
}
