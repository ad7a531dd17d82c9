/*
 * Daytona: one sandbox per job through the classic API, found again by its name, which is our mark.
 * Commands and files go to the daemon in the sandbox, at an address that the API tells.
 *
 * A create waits, within bounds, until the sandbox has started; one that fails or takes too long is
 * "unsure", so that it is found by its name and deleted. What a refusal of the daemon means for the
 * sandbox is asked from the API. Nothing is repeated here.
 */
#include "provider.h"
#include "providers.h"
#include "daytona_call.h"

#include "arena.h"
#include "block.h"
#include "clock.h"
#include "json.h"
#include "bounds.h"
#include "bridge_reply.h"

#include <assert.h>
#include <string.h>

#define CREATE_MS   60000 /* the server may hold the answer back for half a minute */
#define START_MS    60000 /* a sandbox that has not started by then is given up */
#define LOOK_MS     100   /* between two looks at it, growing by half up to: */
#define LOOK_MAX_MS 1000
#define PAGE_ROWS   100
#define PAGES_MAX   100 /* of one list: ten thousand sandboxes of one installation */
#define PAGE_ARENA  (10u << 20)
#define LABEL       "cc-install"

/* -- check ------------------------------------------------------------------------------------- */

static enum err not_daytona(struct call *c, const struct http_reply *r)
{
	return fail(ERR_KEY_CHECK_FAILED, daytona_field(c),
		"what answers at this address is not the API of Daytona (status %d)", r->status);
}

/* Servers that do not know the call which tells about a key still list sandboxes. */
static enum err check_by_list(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct daytona_ask q = {.method = "GET",
		.url = arena_printf(c->arena, "%s/sandbox?limit=1", daytona_home(c))};
	enum err e = daytona_ask(c, &q, &r);
	if (!e && r.fate == HTTP_REPLIED && r.status == 404)
		return not_daytona(c, &r);
	e = e ? e : daytona_judge(c, &r, daytona_code(&r), EFFECT_READS);
	if (e)
		return e;
	bool json = strcmp(r.type, "application/json") == 0 && !json_parse(r.body, r.body_n, &root);
	if (!json ||
		(json_type(root) != JSON_LIST && json_type(json_get(root, "items")) != JSON_LIST))
		return not_daytona(c, &r);
	return OK;
}

static enum err judge_key(struct call *c, const struct http_reply *r)
{
	CLEANUP_JSON struct json *root = NULL;
	const struct json *permissions = NULL;
	if (!daytona_object(c, r, &root))
		permissions = json_get(root, "permissions");
	if (json_type(permissions) != JSON_LIST)
		return not_daytona(c, r);
	const char *lacks = daytona_lacks(permissions);
	return lacks ? fail(ERR_KEY_REFUSED, "token", "the key lacks the permission %s", lacks)
		     : OK;
}

/* True when the reply can be one of the API, whatever it means. */
static bool speaks(const struct http_reply *r)
{
	return (r->status >= 200 && r->status <= 204) || r->status == 401 || r->status == 429 ||
	       r->status >= 500 || *daytona_code(r);
}

static enum err daytona_check(struct call *c)
{
	const char *own = c->credential->api_url;
	struct http_reply r;
	enum err e = own ? http_url_check(own, "api_url") : OK;
	if (e)
		return e;
	struct daytona_ask q = {.method = "GET",
		.url = arena_printf(c->arena, "%s/api-keys/current", daytona_home(c))};
	e = daytona_ask(c, &q, &r);
	if (e)
		return e;
	if (r.status == 404 || r.status == 405)
		return check_by_list(c);
	if (r.fate == HTTP_REPLIED && !speaks(&r))
		return not_daytona(c, &r);
	e = daytona_judge(c, &r, daytona_code(&r), EFFECT_READS);
	return e ? e : judge_key(c, &r);
}

/* -- create ------------------------------------------------------------------------------------ */

static enum err check_spec(const struct box_spec *spec)
{
	if (spec->runtime)
		return fail(ERR_UNSUPPORTED, "runtime",
			"what is installed belongs to the snapshot: pass template");
	if (spec->memory_mb)
		return fail(ERR_UNSUPPORTED, "memory_mb",
			"memory belongs to the snapshot: pass template");
	if (spec->cpu)
		return fail(
			ERR_UNSUPPORTED, "cpu", "processors belong to the snapshot: pass template");
	if (spec->gpu)
		return fail(ERR_UNSUPPORTED, "gpu", "Daytona gives no gpu through this API");
	if (spec->network == NETWORK_HOST)
		return fail(ERR_UNSUPPORTED, "network", "a cloud sandbox has no network of a host");
	return daytona_check_id(spec->mark);
}

static int64_t minutes(const struct box_spec *spec)
{
	return (spec->life_s + 59) / 60;
}

/* The mark without its last part: the same for all sandboxes of this installation. */
static const char *install_of(struct arena *a, const char *mark)
{
	const char *dash = strrchr(mark, '-');
	return dash ? arena_copy(a, mark, (size_t)(dash - mark)) : mark;
}

/* The idle limit is as long as the hard one: it never ends a job that is allowed to run, and guards
 * where the hard one is not known. */
static void write_spec(struct call *c, const struct box_spec *spec, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "name", spec->mark);
	jw_key(&w, "labels");
	jw_obj(&w);
	jw_kstr(&w, LABEL, install_of(c->arena, spec->mark));
	jw_end(&w);
	if (spec->template)
		jw_kstr(&w, "snapshot", spec->template);
	if (spec->network == NETWORK_NONE)
		jw_kbool(&w, "networkBlockAll", true);
	jw_kint(&w, "autoStopInterval", minutes(spec));
	jw_kint(&w, "autoDeleteInterval", 0);
	jw_kint(&w, "ttlMinutes", minutes(spec));
	jw_end(&w);
}

/* A refusal of a create is never about a sandbox, and about a snapshot only when we named one. */
static const char *create_code(const struct http_reply *r, const struct box_spec *spec)
{
	const char *code = daytona_code(r);
	if (strcmp(code, "snapshot") == 0 && !spec->template)
		code = "own";
	return r->status == 404 && strcmp(code, "own") == 0 ? "" : code;
}

static enum err post_box(struct call *c, const struct box_spec *spec, struct daytona_box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	CLEANUP_BUF struct buf body;
	struct http_reply r;
	buf_init(&body, DAYTONA_BODY_MAX);
	write_spec(c, spec, &body);
	assert(!body.full);
	struct daytona_ask q = {.method = "POST",
		.url = arena_printf(c->arena, "%s/sandbox", daytona_home(c)),
		.body = body.p,
		.body_n = body.n,
		.type = "application/json",
		.total_ms = CREATE_MS,
		.reply_max = DAYTONA_REPLY_MAX,
		.limit = "sandbox-create"};
	enum err e = daytona_ask(c, &q, &r);
	e = e ? e : daytona_judge(c, &r, create_code(&r, spec), EFFECT_CREATES);
	if (e)
		return e;
	if (daytona_object(c, &r, &root) || !daytona_box(root, c->arena, ret) ||
		strcmp(ret->name, spec->mark) != 0)
		return fail(
			ERR_UPSTREAM_UNSURE, NULL, "Daytona did not answer with the new sandbox");
	return OK;
}

/* A look that failed says nothing about the sandbox; the next one may. */
static enum err await_start(struct call *c, struct daytona_box *b)
{
	int64_t end = clock_mono_ms() + START_MS, pause = LOOK_MS;
	while (b->phase == DAYTONA_COMING && clock_mono_ms() < end) {
		struct daytona_box now;
		block_begin();
		clock_sleep_ms(pause);
		block_end();
		c->upstream_us += pause * 1000; /* its time, not ours */
		pause = pause * 3 / 2 < LOOK_MAX_MS ? pause * 3 / 2 : LOOK_MAX_MS;
		enum err e = daytona_get(c, b->id, &now);
		if (e == ERR_BOX_GONE)
			b->phase = DAYTONA_GONE;
		else if (!e && strcmp(now.id, b->id) == 0)
			*b = now;
	}
	if (b->phase == DAYTONA_STARTED)
		return OK;
	return b->phase == DAYTONA_COMING
		       ? fail(ERR_UPSTREAM_UNSURE, NULL,
				 "the new sandbox did not start within %d seconds", START_MS / 1000)
		       : fail(ERR_UPSTREAM_UNSURE, NULL, "the new sandbox failed to start");
}

static const char *warnings(
	struct call *c, const struct box_spec *spec, const struct daytona_box *b)
{
	const char *network = spec->network == NETWORK_NONE && !b->blocked
				      ? "not enforced there as asked: network"
				      : NULL;
	if (b->limited)
		return network;
	return arena_printf(c->arena,
		"%s%sthis server sets no hard end to a sandbox: should we not delete it, it ends "
		"only "
		"after %lld idle minutes",
		network ? network : "", network ? "; " : "", (long long)minutes(spec));
}

static enum err daytona_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	struct daytona_box b;
	enum err e = check_spec(spec);
	e = e ? e : post_box(c, spec, &b);
	e = e ? e : await_start(c, &b);
	if (e)
		return e;
	/* It is there and can not be used: whoever finds it by its mark deletes it. */
	if (daytona_remember(c, &b)) {
		struct fault f = *fault_of(ERR_UPSTREAM);
		return fail(ERR_UPSTREAM_UNSURE, NULL, "%s", f.detail);
	}
	*ret = (struct box){.id = b.id,
		.mark = b.name,
		.state = BOX_RUNNING,
		.warnings = warnings(c, spec, &b)};
	return OK;
}

/* -- find, list, destroy ----------------------------------------------------------------------- */

static enum err daytona_find(struct call *c, const char *mark, struct box *ret)
{
	struct daytona_box b;
	enum err e = daytona_check_id(mark);
	e = e ? e : daytona_get(c, mark, &b);
	if (e && e != ERR_BOX_GONE)
		return e;
	if (e || b.phase == DAYTONA_GONE) {
		*ret = (struct box){.id = NULL, .state = BOX_STOPPED};
		return OK;
	}
	if (strcmp(b.name, mark) != 0)
		return fail(ERR_UPSTREAM, NULL, "Daytona answered with another sandbox");
	*ret = (struct box){.id = b.id, .mark = b.name, .state = daytona_state(b.phase)};
	return OK;
}

struct listing {
	const char *prefix, *url; /* url: without the cursor */
	struct arena *arena;      /* of the caller; pages have their own */
	struct box_list found;
	size_t room;
	const char *cursor; /* NULL: there is no further page */
};

static void keep(struct listing *l, const struct daytona_box *b)
{
	if (l->found.n == l->room) {
		size_t room = l->room ? 2 * l->room : PAGE_ROWS;
		struct box *more = ARENA_LIST(l->arena, room, struct box);
		if (l->found.n)
			memcpy(more, l->found.items, l->found.n * sizeof *more);
		l->found.items = more;
		l->room = room;
	}
	l->found.items[l->found.n++] = (struct box){.id = arena_str(l->arena, b->id),
		.mark = arena_str(l->arena, b->name),
		.state = daytona_state(b->phase)};
}

static enum err keep_page(struct call *c, const struct http_reply *r, struct listing *l)
{
	CLEANUP_JSON struct json *root = NULL;
	bool json =
		strcmp(r->type, "application/json") == 0 && !json_parse(r->body, r->body_n, &root);
	/* Older servers answer with all of them in one plain list. */
	const struct json *items = json_type(root) == JSON_LIST ? root : json_get(root, "items");
	if (!json || json_type(items) != JSON_LIST)
		return fail(ERR_UPSTREAM, NULL, "Daytona did not answer with its sandboxes");
	for (size_t i = 0; i < json_len(items); i++) {
		struct daytona_box b;
		if (!daytona_box(json_at(items, i), c->arena, &b))
			return fail(ERR_UPSTREAM, NULL, "Daytona listed a sandbox in a wrong form");
		/* The label only narrows the list: the name decides. */
		if (b.phase != DAYTONA_GONE && strncmp(b.name, l->prefix, strlen(l->prefix)) == 0)
			keep(l, &b);
	}
	const char *next = root == items ? NULL : reply_str(root, "nextCursor");
	l->cursor = next ? arena_str(l->arena, next) : NULL;
	return OK;
}

static enum err next_page(struct call *c, struct listing *l)
{
	CLEANUP_ARENA struct arena *page = arena_new(PAGE_ARENA);
	struct arena *outer = c->arena;
	struct http_reply r;
	c->arena = page;
	struct daytona_ask q = {.method = "GET",
		.url = l->cursor ? arena_printf(page, "%s&cursor=%s", l->url,
					   bridge_escape(page, l->cursor))
				 : l->url};
	enum err e = strlen(q.url) < URL_CHARS_MAX ? daytona_ask(c, &q, &r)
						   : fail(ERR_UPSTREAM, NULL,
							     "Daytona told a page of its list by "
							     "too long a name");
	e = e ? e : daytona_judge(c, &r, daytona_code(&r), EFFECT_READS);
	e = e ? e : keep_page(c, &r, l);
	c->arena = outer;
	return e;
}

static enum err daytona_list(struct call *c, const char *prefix, struct box_list *ret)
{
	const char *label =
		arena_printf(c->arena, "{\"" LABEL "\":\"%s\"}", install_of(c->arena, prefix));
	struct listing l = {.prefix = prefix,
		.arena = c->arena,
		.url = arena_printf(c->arena, "%s/sandbox?limit=%d&labels=%s", daytona_home(c),
			PAGE_ROWS, bridge_escape(c->arena, label))};
	enum err e = OK;
	int pages = 0;
	do
		e = next_page(c, &l);
	while (!e && l.cursor && ++pages < PAGES_MAX);
	if (!e && l.cursor)
		return fail(ERR_UPSTREAM, NULL, "the list of Daytona has no end");
	if (!e)
		*ret = l.found;
	return e;
}

/* Accepted; the proof that it is gone is the next answer. */
static enum err read_destroyed(
	struct call *c, const struct http_reply *r, const char *id, enum box_state *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct daytona_box b;
	enum err e = daytona_object(c, r, &root);
	if (!e && (!daytona_box(root, c->arena, &b) || strcmp(b.id, id) != 0))
		e = fail(ERR_UPSTREAM, NULL, "Daytona did not say how the sandbox stands");
	if (!e)
		*ret = b.phase == DAYTONA_GONE ? BOX_STOPPED : BOX_STOPPING;
	return e;
}

static enum err daytona_destroy(struct call *c, const char *id, enum box_state *ret)
{
	struct http_reply r;
	enum err e = daytona_check_id(id);
	if (e)
		return e;
	struct daytona_ask q = daytona_about(c, "DELETE", id);
	e = daytona_ask(c, &q, &r);
	if (e)
		return e;
	/* In the middle of a change nothing can be deleted yet. */
	if (r.status == 409 && *daytona_code(&r)) {
		*ret = BOX_STOPPING;
		return OK;
	}
	e = daytona_judge(c, &r, daytona_code(&r), EFFECT_REPEATS);
	if (e == ERR_BOX_GONE) {
		*ret = BOX_STOPPED;
		return OK;
	}
	return e ? e : read_destroyed(c, &r, id, ret);
}

static const struct provider_ops daytona_ops = {
	.check = daytona_check,
	.create = daytona_create,
	.find = daytona_find,
	.list = daytona_list,
	.destroy = daytona_destroy,
	.put = daytona_put,
	.exec = daytona_exec,
};

static const struct setup_step daytona_setup[] = {
	{"Sign in to Daytona and open Keys in its dashboard.",
		"https://app.daytona.io/dashboard/keys"},
	{"Create an API key with the permissions write:sandboxes and delete:sandboxes and copy it "
	 "(dtn_...): it is shown once.",
		"https://www.daytona.io/docs/en/api-keys/"},
	{"Call save_provider_key with provider daytona and the key as token. For an installation "
	 "of your own pass the address of its API as api_url, such as "
	 "https://daytona.example.com/api.",
		NULL},
	{"CPU, memory and disk belong to the snapshot that a sandbox is made from; pass its name "
	 "as template to run_job for another one than the organisation's default.",
		"https://www.daytona.io/docs/en/snapshots/"},
	{NULL, NULL},
};

const struct provider provider_daytona = {
	.name = "daytona",
	.base = "https://app.daytona.io/api",
	.title = "Daytona",
	.how = "Each job gets a fresh Daytona sandbox; it is deleted right after the job.",
	.can = CAN_FILES | CAN_TEMPLATE | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = WANT_API_URL,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "$0.0504 per vCPU-hour, $0.0162 per GiB-hour of memory, disk free up to 5 GiB "
		 "(May 2026).",
	.docs_url = "https://www.daytona.io/docs",
	.price_url = "https://www.daytona.io/pricing",
	.setup = daytona_setup,
	.ops = &daytona_ops,
};
