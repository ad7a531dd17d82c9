/*
 * Vercel Sandbox: one microVM per job, addressed with a token, a team and a project.
 *
 * A sandbox has our mark as its name, which is unique in its project, so a create whose answer was
 * lost is found by it; it is never repeated. It keeps no files after its end and has an end of its
 * own. Our id of it is its name and the session (the run of its machine) that commands are sent to.
 * What the service answers decides nothing before vercel_reply.c has checked its form.
 */
#include "provider.h"
#include "providers.h"
#include "vercel_reply.h"
#include "vercel_request.h"

#include "arena.h"
#include "bounds.h"
#include "bridge_reply.h"
#include "json.h"

#include <assert.h>
#include <string.h>

#define CALL_MS    30000
#define CREATE_MS  60000
#define PUT_MS     60000
#define SLACK_MS   30000      /* of a command's call, beyond what the command may take */
#define BODY_MAX   (64 << 10) /* spool scripts and their parameters: below 32 KiB, and escapes */
#define PUT_MAX    (8 << 20)  /* one file, compressed */
#define HEAD_MAX   4096       /* of an error body */
#define PAGE       50         /* sandboxes asked for at once */
#define PAGES_MAX  200        /* the largest plan has 2000 at once */
#define CURSOR_MAX 300        /* characters, which become three each */

/* -- one call ---------------------------------------------------------------------------------- */

/* The stream of a command, and the first bytes for the case that it is an error body instead. */
struct listener {
	struct vercel_stream *stream;
	struct buf head;
};

struct ask {
	const char *method, *path; /* behind the base, with its query */
	const char *type;
	const void *body;
	size_t body_n;
	const struct http_header *headers;
	int64_t total_ms;
	struct listener *listener;
};

static bool hear(void *ctx, const char *p, size_t n)
{
	struct listener *l = ctx;
	buf_put(&l->head, p, n < HEAD_MAX - l->head.n ? n : HEAD_MAX - l->head.n);
	vercel_stream_feed(l->stream, p, n);
	return true; /* to the end of the body, which lets the connection be used again */
}

static enum err ask(struct call *c, const struct ask *q, struct http_reply *ret)
{
	struct http_call h = {
		.pool = HTTP_FIXED,
		.method = q->method,
		.url = arena_printf(c->arena, "%s%s", provider_base(c->provider), q->path),
		.bearer = &c->credential->token,
		.headers = q->headers,
		.type = q->type,
		.body = q->body,
		.body_n = q->body_n,
		.total_ms = q->total_ms,
		.first_ms = q->total_ms, /* the stream of a quiet command may begin with its end */
		.on_data = q->listener ? hear : NULL,
		.ctx = q->listener,
	};
	return call_http(c, &h, ret);
}

/* A call whose answer is one JSON object. */
static enum err ask_object(struct call *c, const struct ask *q, enum vercel_ask what,
	enum effect effect, struct json **ret_root)
{
	struct http_reply r;
	enum err e = ask(c, q, &r);
	e = e ? e : vercel_judge(&r, what, effect);
	return e ? e : vercel_object(&r, ret_root);
}

/* "teamId=..." for an id, "slug=..." for the name that people see in addresses. */
static const char *team_of(struct call *c)
{
	const char *team = c->credential->team_id;
	bool id = strncmp(team, "team_", 5) == 0;
	return arena_printf(
		c->arena, "%s=%s", id ? "teamId" : "slug", bridge_escape(c->arena, team));
}

static const char *project_of(struct call *c)
{
	return bridge_escape(c->arena, c->credential->project_id);
}

static const char *box_path(struct call *c, const char *name, const char *more)
{
	return arena_printf(c->arena, "/v2/sandboxes/%s?%s&projectId=%s%s", name, team_of(c),
		project_of(c), more);
}

static const char *session_path(struct call *c, const char *session, const char *rest)
{
	return arena_printf(c->arena, "/v2/sandboxes/sessions/%s/%s?%s", session, rest, team_of(c));
}

/* Ids come back from our own rows, but a foreign character would change the path. */
static enum err read_id(
	struct call *c, const char *id, const char **ret_name, const char **ret_session)
{
	return vercel_id_read(id, c->arena, ret_name, ret_session)
		       ? OK
		       : fail(ERR_INTERNAL, NULL, "a sandbox id is not of Vercel's form");
}

static enum err read_session(struct call *c, const char *id, const char **ret_session)
{
	const char *name;
	enum err e = read_id(c, id, &name, ret_session);
	if (!e && !**ret_session)
		return fail(ERR_INTERNAL, NULL, "the session of a sandbox is not known");
	return e;
}

/* -- check ------------------------------------------------------------------------------------- */

/* Whether the token may look at this; false when that is not certain. */
static bool may_see(struct call *c, const char *path)
{
	struct http_reply r;
	struct ask q = {.method = "GET", .path = path, .total_ms = CALL_MS};
	return !ask(c, &q, &r) && r.fate == HTTP_REPLIED && r.status == 200;
}

/* The service says "forbidden" to a wrong token, a wrong team and a wrong project alike; which one
 * it is shows in what the token may see. */
static enum err narrow(struct call *c)
{
	const char *team = arena_printf(
		c->arena, "/v2/teams/%s", bridge_escape(c->arena, c->credential->team_id));
	if (strchr(c->credential->team_id, '/') || !may_see(c, "/v2/user"))
		return fail(ERR_KEY_REFUSED, "token",
			"Vercel does not accept the token, or it is limited to another team");
	if (!may_see(c, team))
		return fail(ERR_KEY_REFUSED, "team_id",
			"Vercel accepts the token, but not for this team");
	return fail(ERR_KEY_REFUSED, "project_id",
		"Vercel accepts token and team, but not for this project's sandboxes");
}

static enum err vercel_check(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct ask q = {.method = "GET",
		.path = arena_printf(
			c->arena, "/v2/sandboxes?%s&project=%s&limit=1", team_of(c), project_of(c)),
		.total_ms = CALL_MS};
	enum err e = ask(c, &q, &r);
	e = e ? e : vercel_judge(&r, VERCEL_READ, EFFECT_READS);
	if (e == ERR_KEY_REFUSED && r.status == 403)
		return narrow(c);
	e = e ? e : vercel_object(&r, &root);
	if (!e && json_type(json_get(root, "sandboxes")) != JSON_LIST)
		return fail(ERR_UPSTREAM, NULL, "Vercel did not answer with its sandboxes");
	return e;
}

/* -- create ------------------------------------------------------------------------------------ */

static enum err vercel_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	CLEANUP_BUF struct buf body = {0};
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	int64_t cpu;
	enum err e = vercel_check_spec(spec, &cpu);
	if (e)
		return e;
	buf_init(&body, BODY_MAX);
	vercel_write_spec(c->credential->project_id, spec, cpu, &body);
	assert(!body.full);
	/* The legacy runtimes are made by the older path. */
	struct ask q = {.method = "POST",
		.path = arena_printf(
			c->arena, "/v%d/sandboxes?%s", spec->runtime ? 2 : 3, team_of(c)),
		.type = "application/json",
		.body = body.p,
		.body_n = body.n,
		.total_ms = CREATE_MS};
	e = ask(c, &q, &r);
	enum vercel_ask what = spec->template         ? VERCEL_IMAGE
			       : spec->runtime || cpu ? VERCEL_CHOSEN
						      : VERCEL_CREATE;
	e = e ? e : vercel_judge(&r, what, EFFECT_CREATES);
	if (e)
		return e;
	if (vercel_object(&r, &root) || !vercel_created(root, spec, c->arena, ret))
		return fail(ERR_UPSTREAM_UNSURE, NULL,
			"Vercel did not answer with the new, running sandbox");
	return OK;
}

/* -- find, list, destroy ----------------------------------------------------------------------- */

static enum err vercel_find(struct call *c, const char *mark, struct box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct box b;
	if (!vercel_word_ok(mark, VERCEL_NAME_MAX))
		return fail(ERR_INTERNAL, NULL, "a mark is not fit for a name");
	struct ask q = {.method = "GET", .path = box_path(c, mark, ""), .total_ms = CALL_MS};
	enum err e = ask(c, &q, &r);
	e = e ? e : vercel_judge(&r, VERCEL_BOX, EFFECT_READS);
	if (e == ERR_BOX_GONE && r.status == 404) {
		*ret = (struct box){.id = NULL, .state = BOX_STOPPED};
		return OK;
	}
	if (e == ERR_BOX_GONE)
		return fail(ERR_UPSTREAM, NULL, "Vercel is ending the sandbox; ask again");
	e = e ? e : vercel_object(&r, &root);
	if (e)
		return e;
	if (!vercel_box(json_get(root, "sandbox"), c->arena, &b) || strcmp(b.mark, mark) != 0)
		return fail(ERR_UPSTREAM, NULL, "Vercel did not answer with the sandbox");
	*ret = b;
	return OK;
}

/* Appends the living sandboxes of a page that are ours. */
static enum err take_page(
	struct call *c, const struct json *all, const char *prefix, struct box_list *list)
{
	if (json_type(all) != JSON_LIST)
		return fail(ERR_UPSTREAM, NULL, "Vercel did not answer with its sandboxes");
	struct box *items = ARENA_LIST(c->arena, list->n + json_len(all) + 1, struct box);
	for (size_t i = 0; i < list->n; i++)
		items[i] = list->items[i];
	list->items = items;
	for (size_t i = 0; i < json_len(all); i++) {
		struct box *b = &items[list->n];
		const char *name = reply_str(json_at(all, i), "name");
		if (name && strncmp(name, prefix, strlen(prefix)) != 0)
			continue; /* the service did not keep to the beginning that was asked for */
		if (!vercel_box(json_at(all, i), c->arena, b))
			return fail(ERR_UPSTREAM, NULL, "Vercel listed a sandbox in a wrong form");
		if (b->state != BOX_STOPPED)
			list->n++;
	}
	return OK;
}

/* Where the next page begins: NULL after the last one. */
static enum err next_page(struct call *c, const struct json *root, const char **ret_cursor)
{
	const struct json *pages = json_get(root, "pagination");
	const char *next = reply_str(pages, "next");
	*ret_cursor = NULL;
	if (json_type(pages) != JSON_OBJ || (!next && json_get(pages, "next")) ||
		(next && strlen(next) > CURSOR_MAX))
		return fail(ERR_UPSTREAM, NULL, "Vercel did not say whether its list goes on");
	if (next)
		*ret_cursor = bridge_escape(c->arena, next);
	return OK;
}

static enum err vercel_list(struct call *c, const char *prefix, struct box_list *ret)
{
	struct box_list list = {0};
	const char *cursor = "";
	enum err e = OK;
	for (int page = 0; !e && cursor; page++) {
		CLEANUP_JSON struct json *root = NULL;
		if (page == PAGES_MAX)
			return fail(ERR_UPSTREAM, NULL, "Vercel's list has no end");
		struct ask q = {.method = "GET",
			.path = arena_printf(c->arena,
				"/v2/sandboxes?%s&project=%s&limit=%d&sortBy=name&sortOrder=asc"
				"&namePrefix=%s%s%s",
				team_of(c), project_of(c), PAGE, bridge_escape(c->arena, prefix),
				*cursor ? "&cursor=" : "", cursor),
			.total_ms = CALL_MS};
		e = ask_object(c, &q, VERCEL_READ, EFFECT_READS, &root);
		e = e ? e : take_page(c, json_get(root, "sandboxes"), prefix, &list);
		e = e ? e : next_page(c, root, &cursor);
	}
	if (!e)
		*ret = list;
	return e;
}

/* Deleting stops the machine first and takes its name away, so "not there" is its proven end. */
static enum err vercel_destroy(struct call *c, const char *id, enum box_state *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	const char *name, *session;
	struct http_reply r;
	struct box b;
	enum err e = read_id(c, id, &name, &session);
	if (e)
		return e;
	struct ask q = {.method = "DELETE",
		.path = box_path(c, name, "&deleteOrphanSnapshots=true"),
		.total_ms = CALL_MS};
	e = ask(c, &q, &r);
	e = e ? e : vercel_judge(&r, VERCEL_BOX, EFFECT_REPEATS);
	if (e == ERR_BOX_GONE) {
		*ret = r.status == 422 ? BOX_STOPPING : BOX_STOPPED;
		return OK;
	}
	e = e ? e : vercel_object(&r, &root);
	if (e)
		return e;
	if (!vercel_box(json_get(root, "sandbox"), c->arena, &b) || strcmp(b.mark, name) != 0)
		return fail(ERR_UPSTREAM, NULL, "Vercel did not say how the sandbox stands");
	*ret = b.state == BOX_STOPPED ? BOX_STOPPED : BOX_STOPPING;
	return OK;
}

/* -- files ------------------------------------------------------------------------------------- */

static enum err vercel_put(
	struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	static const struct http_header to_root[] = {{"x-cwd", "/"}, {NULL, NULL}};
	CLEANUP_BUF struct buf body = {0};
	CLEANUP_JSON struct json *root = NULL;
	const char *session;
	enum err e = read_session(c, id, &session);
	if (e)
		return e;
	buf_init(&body, PUT_MAX);
	vercel_pack_file(path + strspn(path, "/"), p, n, &body);
	if (body.full)
		return fail(ERR_INTERNAL, NULL, "a file is larger than one upload");
	struct ask q = {.method = "POST",
		.path = session_path(c, session, "fs/write"),
		.type = "application/gzip",
		.headers = to_root,
		.body = body.p,
		.body_n = body.n,
		.total_ms = PUT_MS};
	return ask_object(c, &q, VERCEL_BOX, EFFECT_REPEATS, &root);
}

/* -- commands ---------------------------------------------------------------------------------- */

/* What became of the command. A code that was told is true even when the end of the body was not
 * seen; a body that ends without one says nothing about the command. */
static enum err ended(struct http_reply *r, const struct listener *l)
{
	bool replied = r->fate == HTTP_REPLIED;
	bool good = replied && r->status >= 200 && r->status <= 204;
	if ((replied && !good) || r->fate == HTTP_NOT_SENT) {
		r->body = l->head.p;
		r->body_n = l->head.n;
		return vercel_judge(r, VERCEL_BOX, EFFECT_REPEATS);
	}
	if (good && strcmp(r->type, "application/x-ndjson") != 0)
		return fail(ERR_UPSTREAM, NULL, "Vercel did not tell of a command in its form");
	switch (l->stream->end) {
	case VERCEL_EXIT:
		return OK;
	case VERCEL_BAD:
		return fail(ERR_UPSTREAM, NULL, "Vercel told of a command in a wrong form");
	case VERCEL_LOST:
		return fail(ERR_UPSTREAM_UNSURE, NULL, "Vercel lost sight of a command");
	case VERCEL_OPEN:
		break;
	}
	return fail(ERR_UPSTREAM_UNSURE, NULL, "Vercel broke off in the middle of a command");
}

/* Scripts of the spool may be run again, so a lost one needs no look at the list of commands. */
static enum err vercel_exec(struct call *c, const char *id, const char *exec_id,
	const char *const *argv, int64_t wait_s, struct exec_result *ret)
{
	CLEANUP_BUF struct buf body = {0};
	struct vercel_stream s;
	struct listener l = {.stream = &s};
	struct http_reply r;
	const char *session;
	(void)exec_id;
	enum err e = read_session(c, id, &session);
	if (e)
		return e;
	buf_init(&body, BODY_MAX);
	vercel_write_command(argv, wait_s, &body);
	assert(!body.full);
	struct ask q = {.method = "POST",
		.path = session_path(c, session, "cmd"),
		.type = "application/json",
		.body = body.p,
		.body_n = body.n,
		.total_ms = wait_s * 1000 + SLACK_MS,
		.listener = &l};
	vercel_stream_init(&s);
	buf_init(&l.head, HEAD_MAX);
	e = ask(c, &q, &r);
	e = e ? e : ended(&r, &l);
	if (!e)
		*ret = (struct exec_result){.code = s.code,
			.out = arena_copy(c->arena, s.out.p, s.out.n),
			.err = arena_copy(c->arena, s.err.p, s.err.n),
			.out_n = s.out.n,
			.err_n = s.err.n};
	buf_done(&l.head);
	vercel_stream_done(&s);
	return e;
}

/* -- facts ------------------------------------------------------------------------------------- */

static const struct setup_step vercel_setup[] = {
	{"Choose the Vercel team that shall pay, and on its page Settings, General copy the Team "
	 "ID "
	 "(team_...): that is team_id.",
		"https://vercel.com/docs/accounts"},
	{"Choose or create a project of this team that shall hold the sandboxes; nothing is "
	 "deployed to it. On its page Settings, General copy the Project ID (prj_...): that is "
	 "project_id.",
		"https://vercel.com/docs/projects/overview"},
	{"In your account settings open Tokens and create one whose scope is that team, with an "
	 "expiry that suits you; copy it, it is shown once.",
		"https://vercel.com/account/settings/tokens"},
	{"Call save_provider_key with provider vercel, token, team_id and project_id.", NULL},
	{"Used CPU time, provisioned memory, creations and traffic are billed to the team; nothing "
	 "is stored after a job.",
		"https://vercel.com/docs/vercel-sandbox/pricing"},
	{"On the Hobby plan a sandbox lives at most 45 minutes (a job 2580 s), 10 may live at once "
	 "and 4 cpus are the largest; on Pro 24 hours, 2000 and 8 cpus.",
		"https://vercel.com/docs/vercel-sandbox/pricing"},
	{NULL, NULL},
};

static const struct provider_ops vercel_ops = {
	.check = vercel_check,
	.create = vercel_create,
	.find = vercel_find,
	.list = vercel_list,
	.destroy = vercel_destroy,
	.put = vercel_put,
	.exec = vercel_exec,
};

const struct provider provider_vercel = {
	.name = "vercel",
	.base = "https://vercel.com/api",
	.title = "Vercel Sandbox",
	.how = "Each job gets a fresh microVM in one of your Vercel projects; it is deleted right "
	       "after the job.",
	.can = CAN_FILES | CAN_MEMORY | CAN_CPU | CAN_TEMPLATE | CAN_RUNTIME | CAN_LIST,
	.needs = WANT_TOKEN | WANT_TEAM | WANT_PROJECT,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "$0.128 per hour of used CPU and $0.0212 per GB-hour of memory; the Hobby plan "
		 "includes 5 CPU hours a month (2026).",
	.docs_url = "https://vercel.com/docs/vercel-sandbox",
	.price_url = "https://vercel.com/docs/vercel-sandbox/pricing",
	.setup = vercel_setup,
	.ops = &vercel_ops,
};
