/* The methods of the test build that no tool is called with: lists, resources, prompts. */
#include "fixture.h"

#include "bounds.h"
#include "gen.h"

#include <string.h>

/* -- shared ------------------------------------------------------------------------------------ */

enum err fixture_wrong(struct message *m, const char *field, const char *why)
{
	m->http = 200;
	return fail(ERR_BAD_PARAMS, field, "%s", why);
}

enum err fixture_lacks(struct message *m, const char *needs)
{
	m->http = 0;
	m->needs = needs;
	return fail(ERR_MISSING_CAPABILITY, "params._meta", "see data.requiredCapabilities");
}

bool fixture_declares(const struct message *m, const char *capability)
{
	const struct json *all = json_get(m->meta, "io.modelcontextprotocol/clientCapabilities");
	return json_type(json_get(all, capability)) == JSON_OBJ;
}

void fixture_put_text(struct jw *w, const char *text)
{
	jw_key(w, "content");
	jw_list(w);
	jw_obj(w);
	jw_kstr(w, "type", "text");
	jw_kstr(w, "text", text);
	jw_end(w);
	jw_end_list(w);
}

static void put_raw(struct jw *w, const char *key, const char *json)
{
	jw_key(w, key);
	jw_raw(w, json, strlen(json));
}

size_t fixture_put_asks(
	struct jw *w, const struct message *m, const struct ask *asks, unsigned answered)
{
	size_t n = 0;
	jw_key(w, "inputRequests");
	jw_obj(w);
	for (unsigned i = 0; i < ASKS_MAX && asks[i].key; i++) {
		if (answered >> i & 1 || !fixture_declares(m, asks[i].capability))
			continue;
		n++;
		jw_key(w, asks[i].key);
		jw_obj(w);
		jw_kstr(w, "method", asks[i].method);
		put_raw(w, "params", asks[i].params);
		jw_end(w);
	}
	jw_end(w);
	return n;
}

unsigned fixture_answered(const struct ask *asks, const struct json *answers)
{
	unsigned set = 0;
	for (unsigned i = 0; i < ASKS_MAX && asks[i].key; i++)
		if (json_type(json_get(answers, asks[i].key)) == JSON_OBJ)
			set |= 1U << i;
	return set;
}

unsigned fixture_all(const struct ask *asks)
{
	unsigned set = 0;
	for (unsigned i = 0; i < ASKS_MAX && asks[i].key; i++)
		set |= 1U << i;
	return set;
}

static const char *text_of(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return json_type(v) == JSON_STR ? json_str(v, NULL) : "";
}

/* -- tools/list -------------------------------------------------------------------------------- */

static void put_tool(struct jw *w, const struct fixture_tool *t)
{
	jw_obj(w);
	jw_kstr(w, "name", t->name);
	jw_kstr(w, "description", t->text);
	put_raw(w, "inputSchema", t->schema ? t->schema : "{\"type\":\"object\"}");
	jw_end(w);
}

/* The product's tools come first, as they are. */
static enum err tools_list(struct exchange *x, struct message *m, struct jw *w)
{
	CLEANUP_BUF struct buf own = {0};
	CLEANUP_JSON struct json *list = NULL;
	buf_init(&own, REPLY_BYTES_MAX);
	struct jw inner = jw_new(&own);
	gen_mcp_tools(&inner);
	enum err e = json_parse(own.p, own.n, &list);
	if (e)
		return e;
	jw_key(w, "tools");
	jw_list(w);
	for (size_t i = 0; i < json_len(list); i++)
		jw_json(w, json_at(list, i));
	for (const struct fixture_tool *t = fixture_tools; t->name; t++)
		put_tool(w, t);
	jw_end_list(w);
	mcp_put_cacheable(w, x, m);
	return OK;
}

/* -- resources --------------------------------------------------------------------------------- */

static bool is_template(const struct fixture_resource *r)
{
	return strchr(r->uri, '{') != NULL;
}

static void put_resources(struct jw *w, bool templates)
{
	jw_key(w, templates ? "resourceTemplates" : "resources");
	jw_list(w);
	for (const struct fixture_resource *r = fixture_resources; r->uri; r++) {
		if (is_template(r) != templates)
			continue;
		jw_obj(w);
		jw_kstr(w, templates ? "uriTemplate" : "uri", r->uri);
		jw_kstr(w, "name", r->name);
		jw_kstr(w, "mimeType", r->type);
		jw_end(w);
	}
	jw_end_list(w);
}

static enum err resources_list(struct exchange *x, struct message *m, struct jw *w)
{
	put_resources(w, false);
	mcp_put_cacheable(w, x, m);
	return OK;
}

static enum err templates_list(struct exchange *x, struct message *m, struct jw *w)
{
	put_resources(w, true);
	mcp_put_cacheable(w, x, m);
	return OK;
}

/* The part of a template's uri in the place of {id}; NULL: it does not fit. */
static const char *id_in(const struct exchange *x, const char *uri, const char *form)
{
	size_t front = strcspn(form, "{"), n = strlen(uri);
	const char *back = strchr(form, '}');
	size_t end = back ? strlen(back + 1) : 0;
	if (!back || n <= front + end || strncmp(uri, form, front) != 0 ||
		strcmp(uri + n - end, back + 1) != 0)
		return NULL;
	return arena_copy(x->req.arena, uri + front, n - front - end);
}

static const struct fixture_resource *find_resource(
	const struct exchange *x, const char *uri, const char **ret_id)
{
	const struct fixture_resource *r = fixture_resources;
	for (*ret_id = NULL; r->uri; r++) {
		*ret_id = is_template(r) ? id_in(x, uri, r->uri) : NULL;
		if (*ret_id || strcmp(r->uri, uri) == 0)
			return r;
	}
	return NULL;
}

static void put_data(struct jw *w, const struct exchange *x, const char *id)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw inner = jw_new(&b);
	jw_obj(&inner);
	jw_kstr(&inner, "id", id);
	jw_kbool(&inner, "templateTest", true);
	jw_kstr(&inner, "data", arena_printf(x->req.arena, "Data for ID: %s", id));
	jw_end(&inner);
	jw_key(w, "text");
	jw_strn(w, b.p, b.n);
}

static enum err resources_read(struct exchange *x, struct message *m, struct jw *w)
{
	const char *id, *uri = text_of(m->params, "uri");
	const struct fixture_resource *r = find_resource(x, uri, &id);
	if (!r) {
		m->rpc = m->modern ? 0 : -32002;
		return fixture_wrong(m, "params.uri", "there is no such resource");
	}
	jw_key(w, "contents");
	jw_list(w);
	jw_obj(w);
	jw_kstr(w, "uri", uri);
	jw_kstr(w, "mimeType", r->type);
	if (id)
		put_data(w, x, id);
	else
		jw_kstr(w, r->text ? "text" : "blob", r->text ? r->text : r->blob);
	jw_end(w);
	jw_end_list(w);
	mcp_put_cacheable(w, x, m);
	return OK;
}

static enum err nothing(struct exchange *x, struct message *m, struct jw *w)
{
	(void)x;
	(void)m;
	(void)w;
	return OK;
}

/* -- prompts ----------------------------------------------------------------------------------- */

static enum err prompts_list(struct exchange *x, struct message *m, struct jw *w)
{
	jw_key(w, "prompts");
	jw_list(w);
	for (const struct fixture_prompt *p = fixture_prompts; p->name; p++) {
		jw_obj(w);
		jw_kstr(w, "name", p->name);
		jw_kstr(w, "description", p->text);
		if (p->arguments)
			put_raw(w, "arguments", p->arguments);
		jw_end(w);
	}
	jw_end_list(w);
	mcp_put_cacheable(w, x, m);
	return OK;
}

static void put_arguments_prompt(struct jw *w, const struct exchange *x, const struct json *args)
{
	jw_list(w);
	jw_obj(w);
	jw_kstr(w, "role", "user");
	jw_key(w, "content");
	jw_obj(w);
	jw_kstr(w, "type", "text");
	jw_kstr(w, "text",
		arena_printf(x->req.arena, "Prompt with arguments: arg1='%s', arg2='%s'",
			text_of(args, "arg1"), text_of(args, "arg2")));
	jw_end(w);
	jw_end(w);
	jw_end_list(w);
}

enum err fixture_prompts_get(struct exchange *x, struct message *m, struct jw *w)
{
	const struct fixture_prompt *p = fixture_prompts;
	while (p->name && strcmp(p->name, text_of(m->params, "name")) != 0)
		p++;
	if (!p->name)
		return fixture_wrong(m, "params.name", "there is no such prompt");
	unsigned answered = fixture_answered(p->asks, json_get(m->params, "inputResponses"));
	if (answered != fixture_all(p->asks)) {
		(void)fixture_put_asks(w, m, p->asks, answered);
		mcp_put_type(w, x, m, "input_required", OK);
		return OK;
	}
	jw_key(w, "messages");
	if (p->messages)
		jw_raw(w, p->messages, strlen(p->messages));
	else
		put_arguments_prompt(w, x, json_get(m->params, "arguments"));
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}

static enum err complete(struct exchange *x, struct message *m, struct jw *w)
{
	put_raw(w, "completion",
		"{\"values\":[\"paris\",\"park\",\"party\"],\"total\":3,\"hasMore\":false}");
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}

/* -- what stands in front of our methods ------------------------------------------------------- */

static void capabilities(struct jw *w, const struct message *m)
{
	put_raw(w, "prompts", "{}");
	put_raw(w, "resources", m->modern ? "{}" : "{\"subscribe\":true}");
	put_raw(w, "completions", "{}");
	if (!m->modern)
		put_raw(w, "logging", "{}");
}

static const struct mcp_method methods[] = {
	{"tools/list", true, true, tools_list},
	{"tools/call", true, true, fixture_call},
	{"tasks/get", true, false, fixture_tasks_get},
	{"tasks/update", true, false, fixture_tasks_update},
	{"tasks/cancel", true, false, fixture_tasks_cancel},
	{"resources/list", true, true, resources_list},
	{"resources/templates/list", true, true, templates_list},
	{"resources/read", true, true, resources_read},
	{"resources/subscribe", false, true, nothing},
	{"resources/unsubscribe", false, true, nothing},
	{"prompts/list", true, true, prompts_list},
	{"prompts/get", true, true, fixture_prompts_get},
	{"completion/complete", true, true, complete},
	{"logging/setLevel", false, true, nothing},
	{0},
};

static const struct mcp_extra extra = {methods, capabilities};

__attribute__((constructor)) static void put_in_front(void)
{
	mcp_extra = &extra;
}
