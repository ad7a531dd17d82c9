/*
 * E2B, and services that speak its protocol: one microVM per job, made from a template that also
 * fixes CPU and memory.
 *
 * Two planes. The API makes, lists and ends sandboxes and knows our key; the daemon in a sandbox
 * takes files and commands (e2b_daemon.c) and knows a token of its own, which the API gives away. A
 * sandbox is found again by our mark in its metadata.
 */
#include "e2b_call.h"
#include "providers.h"

#include "arena.h"
#include "bounds.h"
#include "json.h"

#include <string.h>

#define CALL_MS    30000
#define CREATE_MS  60000
#define BODY_MAX   (64 << 10)
#define ROWS_MAX   100 /* of a page, as the API allows */
#define PAGES_MAX  200
#define PAGE_BYTES (2 << 20)
#define PAGE_ARENA (8 << 20)
#define NEXT_CHARS 512 /* of what leads to the next page */
#define EXTRAS_MAX 20

/* -- create ------------------------------------------------------------------------------------ */

/* The mark without its last part: the same for all sandboxes of this installation. */
static const char *install_of(struct arena *a, const char *mark)
{
	const char *dash = strrchr(mark, '-');
	return dash ? arena_copy(a, mark, (size_t)(dash - mark)) : mark;
}

/* Only the older route makes sandboxes that anybody could speak to, unless it is told not to. */
static void write_spec(struct call *c, const struct box_spec *spec, bool old, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "templateID", spec->template ? spec->template : "base");
	jw_kint(&w, "timeout", spec->life_s);
	jw_kbool(&w, "autoPause", false);
	jw_key(&w, "metadata");
	jw_obj(&w);
	jw_kstr(&w, "mark", spec->mark);
	jw_kstr(&w, "install", install_of(c->arena, spec->mark));
	jw_end(&w);
	if (spec->network == NETWORK_NONE)
		jw_kbool(&w, "allow_internet_access", false);
	if (old)
		jw_kbool(&w, "secure", true);
	jw_end(&w);
}

static enum err check_spec(const struct box_spec *spec)
{
	if (spec->runtime)
		return fail(ERR_UNSUPPORTED, "runtime", "belongs to the template at E2B");
	if (spec->memory_mb || spec->cpu)
		return fail(ERR_UNSUPPORTED, spec->memory_mb ? "memory_mb" : "cpu",
			"belongs to the template at E2B; choose one with the size you need");
	if (spec->gpu)
		return fail(ERR_UNSUPPORTED, "gpu", "E2B gives no gpu");
	if (spec->network == NETWORK_HOST)
		return fail(ERR_UNSUPPORTED, "network", "E2B has no such network");
	return OK;
}

static enum err post_create(
	struct call *c, const struct box_spec *spec, bool old, struct http_reply *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, BODY_MAX);
	write_spec(c, spec, old, &body);
	if (body.full)
		return fail(ERR_BAD_INPUT, "template", "is too long");
	struct e2b_ask q = {.method = "POST",
		.path = old ? "/sandboxes" : "/v2/sandboxes",
		.body = body.p,
		.body_n = body.n,
		.type = "application/json",
		.total_ms = CREATE_MS};
	return e2b_ask(c, &q, ret);
}

/* 404 may mean the route or the template, and says for certain that nothing was made: an older
 * server answers the older route. */
static enum err ask_create(struct call *c, const struct box_spec *spec, struct http_reply *ret)
{
	enum err e = post_create(c, spec, false, ret);
	return e || !e2b_no_route(ret) ? e : post_create(c, spec, true, ret);
}

static enum err e2b_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = check_spec(spec);
	e = e ? e : ask_create(c, spec, &r);
	if (!e && r.fate == HTTP_REPLIED)
		e = e2b_judge_life(&r);
	e = e ? e : e2b_judge(&r, E2B_CREATE, EFFECT_CREATES, e2b_own(c));
	if (e)
		return e;
	/* From here on there is a sandbox: whatever is wrong with the answer, find() ends it. */
	const char *id = e2b_object(&r, &root) ? NULL : reply_str(root, "sandboxID");
	if (!id || !e2b_id_ok(id))
		return fail(ERR_UPSTREAM_UNSURE, NULL, "E2B did not answer with the new sandbox");
	e = e2b_remember(c, id, root);
	if (e) {
		struct fault why = *fault_of(e);
		return fail(ERR_UPSTREAM_UNSURE, NULL, "%s", why.detail);
	}
	*ret = (struct box){.id = arena_str(c->arena, id),
		.mark = arena_str(c->arena, spec->mark),
		.state = BOX_RUNNING};
	return OK;
}

/* -- lists ------------------------------------------------------------------------------------- */

/* What is looked for, and what was found: in the arena of the whole operation. */
struct search {
	struct call *call;
	const char *key, *value; /* of the metadata */
	const char *prefix;      /* of the mark; the whole mark in find() */
	struct arena *arena;
	struct box_list found;
	size_t room;
	char next[NEXT_CHARS]; /* "": there is no further page */
};

static void add(struct search *s, const char *id, const char *mark)
{
	if (s->found.n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		struct box *more = ARENA_LIST(s->arena, s->room, struct box);
		if (s->found.n)
			memcpy(more, s->found.items, s->found.n * sizeof *more);
		s->found.items = more;
	}
	s->found.items[s->found.n++] = (struct box){.id = arena_str(s->arena, id),
		.mark = arena_str(s->arena, mark),
		.state = BOX_RUNNING};
}

/* A service that ignores the filter lists everybody's. */
static enum err take_page(struct search *s, const struct http_reply *r)
{
	CLEANUP_JSON struct json *root = NULL;
	enum err e = e2b_list_of(r, &root);
	for (size_t i = 0; !e && i < json_len(root); i++) {
		const struct json *o = json_at(root, i);
		const char *id = reply_str(o, "sandboxID");
		const char *mark = reply_str(json_get(o, "metadata"), "mark");
		if (!id || !e2b_id_ok(id))
			return fail(ERR_UPSTREAM, NULL, "E2B listed a sandbox in a wrong form");
		if (mark && strncmp(mark, s->prefix, strlen(s->prefix)) == 0)
			add(s, id, mark);
	}
	return e;
}

static const char *page_path(struct call *c, const struct search *s, bool old)
{
	const char *key = e2b_escape(c->arena, s->key), *value = e2b_escape(c->arena, s->value);
	if (old)
		return arena_printf(c->arena, "/sandboxes?metadata=%s%%3D%s", key, value);
	return arena_printf(c->arena,
		"/v2/sandboxes?metadata=%s%%3D%s&state=running%%2Cpaused&limit=%d%s%s", key, value,
		ROWS_MAX, *s->next ? "&nextToken=" : "", e2b_escape(c->arena, s->next));
}

/* Asks for a list; where the route is not known, at the older one. */
static enum err ask_list(
	struct call *c, const struct e2b_ask *q, const char *old, struct http_reply *ret)
{
	enum err e = e2b_ask(c, q, ret);
	if (e || !old || !e2b_no_route(ret))
		return e;
	struct e2b_ask again = *q;
	again.path = old;
	return e2b_ask(c, &again, ret);
}

/* One page, in memory of its own. */
static enum err one_page(struct search *s)
{
	struct call *c = s->call;
	CLEANUP_ARENA struct arena *a = arena_new(PAGE_ARENA);
	struct http_reply r;
	c->arena = a;
	struct e2b_ask q = {.method = "GET",
		.path = page_path(c, s, false),
		.reply_max = PAGE_BYTES,
		.total_ms = CALL_MS};
	enum err e = ask_list(c, &q, *s->next ? NULL : page_path(c, s, true), &r);
	e = e ? e : e2b_judge(&r, E2B_CONTROL, EFFECT_READS, e2b_own(c));
	/* A list can not be gone: there is no list at this address. */
	if (e == ERR_BOX_GONE)
		e = fail(ERR_UPSTREAM, NULL, "E2B did not answer with a list");
	e = e ? e : take_page(s, &r);
	c->arena = s->arena;
	const char *next = !e && r.kept ? r.kept : "";
	if (strlen(next) >= NEXT_CHARS || (*next && strcmp(next, s->next) == 0))
		return fail(ERR_UPSTREAM, NULL, "E2B leads to no further page of its list");
	memcpy(s->next, next, strlen(next) + 1);
	return e;
}

static enum err search(struct search *s)
{
	enum err e = OK;
	for (int pages = 0; !e; pages++) {
		if (pages == PAGES_MAX)
			return fail(ERR_UPSTREAM, NULL, "E2B lists more than %d pages", PAGES_MAX);
		e = one_page(s);
		if (!*s->next)
			break;
	}
	return e;
}

static enum err e2b_list(struct call *c, const char *prefix, struct box_list *ret)
{
	struct search s = {.call = c,
		.key = "install",
		.value = install_of(c->arena, prefix),
		.prefix = prefix,
		.arena = c->arena};
	enum err e = search(&s);
	if (!e)
		*ret = s.found;
	return e;
}

/* -- destroy ----------------------------------------------------------------------------------- */

static enum err e2b_destroy(struct call *c, const char *id, enum box_state *ret)
{
	struct http_reply r;
	enum err e = e2b_check_id(id);
	if (e)
		return e;
	struct e2b_ask q = {.method = "DELETE", .path = e2b_box_path(c, id), .total_ms = CALL_MS};
	e = e2b_ask(c, &q, &r);
	if (!e && r.fate == HTTP_REPLIED && r.status == 409) {
		*ret = BOX_STOPPING;
		return OK;
	}
	e = e ? e : e2b_judge(&r, E2B_CONTROL, EFFECT_REPEATS, e2b_own(c));
	if (e && e != ERR_BOX_GONE)
		return e;
	if (e2b_remembered(c, id))
		e2b_forget(c);
	/* Another good status is not the answer that proves an end: asked again, it will be. */
	*ret = e == ERR_BOX_GONE || r.status == 204 ? BOX_STOPPED : BOX_STOPPING;
	return OK;
}

/* One create may have made several, when a proxy on the way repeated it: one is told, the others
 * end here, for nobody else will look for them. */
static enum err e2b_find(struct call *c, const char *mark, struct box *ret)
{
	struct search s = {
		.call = c, .key = "mark", .value = mark, .prefix = mark, .arena = c->arena};
	enum err e = search(&s);
	if (!e && s.found.n > EXTRAS_MAX)
		return fail(ERR_UPSTREAM, NULL, "E2B lists too many sandboxes of one mark");
	for (size_t i = 1; !e && i < s.found.n; i++) {
		enum box_state state;
		e = e2b_destroy(c, s.found.items[i].id, &state);
		if (!e && state != BOX_STOPPED)
			e = fail(ERR_UPSTREAM, NULL, "a further sandbox of this mark still runs");
	}
	if (!e)
		*ret = s.found.n ? s.found.items[0] : (struct box){.state = BOX_STOPPED};
	return e;
}

/* -- check ------------------------------------------------------------------------------------- */

/* What a server of another kind would not say, or says of its own trouble. */
static bool tells_of_key(int status)
{
	return status == 401 || status == 403 || status == 429 || status >= 500;
}

static enum err e2b_check(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct e2b_ask q = {.method = "GET", .path = "/v2/sandboxes?limit=1", .total_ms = CALL_MS};
	enum err e = e2b_own(c) ? http_url_check(e2b_api(c), "api_url") : OK;
	e = e ? e : ask_list(c, &q, "/sandboxes", &r);
	if (e)
		return e;
	if (r.fate != HTTP_REPLIED || tells_of_key(r.status))
		return e2b_judge(&r, E2B_CONTROL, EFFECT_READS, e2b_own(c));
	if (r.status != 200 || e2b_list_of(&r, &root))
		return fail(ERR_KEY_CHECK_FAILED, e2b_own(c) ? "api_url" : NULL,
			"what answers at this address is not E2B (status %d)", r.status);
	return OK;
}

/* -- the provider ------------------------------------------------------------------------------ */

static const struct provider_ops ops = {
	.check = e2b_check,
	.create = e2b_create,
	.find = e2b_find,
	.list = e2b_list,
	.destroy = e2b_destroy,
	.put = e2b_put,
	.exec = e2b_exec,
};

static const struct setup_step setup[] = {
	{"Sign in to the E2B dashboard and open API Keys; a free Hobby account will do. It runs "
	 "jobs of up to 58 minutes there, a Pro account all.",
		"https://e2b.dev/dashboard"},
	{"Create a key and copy it; it is shown once and looks like e2b_ and 40 characters.",
		"https://e2b.dev/docs/api-key"},
	{"Call save_provider_key with provider e2b and token. For an installation of your own, or "
	 "a service that speaks E2B's protocol, pass the address of its API as api_url.",
		NULL},
	{"CPU and memory belong to the template: 2 processors and 512 MB unless you build one of "
	 "your own and pass its name as template to run_job.",
		"https://e2b.dev/docs/sandbox-template"},
	{NULL, NULL},
};

const struct provider provider_e2b = {
	.name = "e2b",
	.base = "https://api.e2b.app",
	.title = "E2B",
	.how = "Each job gets a fresh microVM from an E2B template; it is killed right after the "
	       "job.",
	.can = CAN_FILES | CAN_TEMPLATE | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = WANT_API_URL,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "$0.0504 per vCPU-hour and $0.0162 per GiB-hour of allocated memory, by the "
		 "second (August 2026).",
	.docs_url = "https://e2b.dev/docs",
	.price_url = "https://e2b.dev/pricing",
	.setup = setup,
	.ops = &ops,
};
