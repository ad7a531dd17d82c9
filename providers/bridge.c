/*
 * The operations over a bridge. All ids are ours, so every call may be repeated after a lost reply;
 * what a bridge answers decides nothing before bridge_reply.c has checked its form.
 */
#include "bridge.h"
#include "bridge_reply.h"

#include "arena.h"
#include "clock.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <assert.h>
#include <string.h>

#define BOXES_PATH  "/bridge/v1/sandboxes"
#define TTL_MAX_S   86400
#define BLOCK_BYTES (8 << 20) /* largest body of a file call */
#define CALL_MS     30000
#define CREATE_MS   60000 /* the contract's longest call */
#define BLOCK_MS    60000
#define BODY_MAX    (64 << 10) /* spool scripts and their parameters: below 32 KiB, and escapes */
#define HEAD_MAX    4096       /* of an error body */
#define SLACK_MS    30000      /* of the contract, beyond what a call may wait on purpose */
#define FOLLOW_MS   60000      /* longest wait inside one exec call */
#define AFTER_MS    7000  /* a bridge ends a command at its limit with TERM, and KILL 5 s later */
#define QUIET_MS    25000 /* a living stream says something every 10 s */
#define FOLLOWS_MAX 3
#define SOON_MS     1000 /* a "pending" that comes sooner and brings nothing is no progress */

/* -- one call ---------------------------------------------------------------------------------- */

/* The stream of a command, and the first bytes for the case that it is an error body instead. */
struct listener {
	struct bridge_stream *stream;
	struct buf head;
};

struct ask {
	const char *method, *path; /* behind the base */
	const void *body;
	size_t body_n;
	const char *type;
	bool anonymous;
	int64_t total_ms;
	struct listener *listener;
};

static bool hear(void *ctx, const char *p, size_t n)
{
	struct listener *l = ctx;
	buf_put(&l->head, p, n < HEAD_MAX - l->head.n ? n : HEAD_MAX - l->head.n);
	(void)bridge_stream_feed(l->stream, p, n); /* a bad stream says so itself, at the end */
	return true;
}

static enum err ask(struct call *c, const struct ask *q, struct http_reply *ret)
{
	const char *base = bridge_base(c->arena, c->credential->bridge_url);
	struct http_call h = {
		.pool = HTTP_USER,
		.method = q->method,
		.url = arena_printf(c->arena, "%s%s", base, q->path),
		.bearer = q->anonymous ? NULL : &c->credential->token,
		.type = q->type,
		.body = q->body,
		.body_n = q->body_n,
		.total_ms = q->total_ms,
		.idle_ms = q->listener ? QUIET_MS : 0,
		.on_data = q->listener ? hear : NULL,
		.ctx = q->listener,
	};
	return call_http(c, &h, ret);
}

/* A call whose answer is one JSON object. */
static enum err ask_object(struct call *c, const struct ask *q, enum effect effect,
	struct http_reply *ret, struct json **ret_root)
{
	enum err e = ask(c, q, ret);
	e = e ? e : bridge_judge(ret, effect);
	return e ? e : bridge_object(ret, ret_root);
}

static const char *box_path(struct call *c, const char *id, const char *rest)
{
	return arena_printf(c->arena, BOXES_PATH "/%s%s", id, rest);
}

/* Ids come back from our own rows, but a foreign character would change the path. */
static enum err check_id(const char *id)
{
	return bridge_id_ok(id) ? OK
				: fail(ERR_INTERNAL, NULL, "a sandbox id is not of the contract");
}

/* -- check ------------------------------------------------------------------------------------- */

static enum err judge_health(const struct http_reply *r, const struct json *root)
{
	const struct json *contract = json_get(root, "contract"),
			  *version = json_get(root, "version"), *ok = json_get(root, "ok");
	if (json_type(contract) != JSON_STR || strcmp(json_str(contract, NULL), "sbx-bridge") != 0)
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"what answers at this address is not a bridge of ours");
	if (json_type(version) != JSON_INT || json_int(version) != 1)
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"the bridge is too old or too new: version 1 is needed");
	if (r->status != 200 || json_type(ok) != JSON_BOOL || !json_bool(ok))
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"the bridge refuses everything because it has no token of its own");
	return OK;
}

static enum err check_health(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct ask q = {.method = "GET", .path = "/health", .anonymous = true, .total_ms = CALL_MS};
	enum err e = ask(c, &q, &r);
	if (e)
		return e;
	if (r.fate != HTTP_REPLIED)
		return bridge_judge(&r, EFFECT_READS);
	if ((r.status != 200 && r.status != 503) || bridge_object(&r, &root))
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"there is no bridge at this address (status %d)", r.status);
	return judge_health(&r, root);
}

static enum err check_closed(struct call *c)
{
	struct http_reply r;
	struct ask q = {
		.method = "GET", .path = BOXES_PATH, .anonymous = true, .total_ms = CALL_MS};
	enum err e = ask(c, &q, &r);
	if (e)
		return e;
	if (r.fate != HTTP_REPLIED)
		return bridge_judge(&r, EFFECT_READS);
	if (r.status != 401)
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"the bridge must answer 401 without a token, but answered %d", r.status);
	return OK;
}

static enum err bridge_check(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct ask q = {.method = "GET", .path = BOXES_PATH, .total_ms = CALL_MS};
	enum err e = http_url_check(bridge_base(c->arena, c->credential->bridge_url), "bridge_url");
	e = e ? e : check_health(c);
	e = e ? e : check_closed(c);
	e = e ? e : ask_object(c, &q, EFFECT_READS, &r, &root);
	if (!e && json_type(json_get(root, "sandboxes")) != JSON_LIST)
		return fail(ERR_UPSTREAM, NULL, "the bridge did not answer with its sandboxes");
	return e;
}

/* -- sandboxes --------------------------------------------------------------------------------- */

/* The mark without its last part: the same for all sandboxes of this installation. */
static const char *install_of(struct arena *a, const char *mark)
{
	const char *dash = strrchr(mark, '-');
	return dash ? arena_copy(a, mark, (size_t)(dash - mark)) : mark;
}

static void write_spec(struct call *c, const struct box_spec *spec, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "id", spec->mark);
	jw_kint(&w, "ttl_seconds", spec->life_s < TTL_MAX_S ? spec->life_s : TTL_MAX_S);
	jw_key(&w, "labels");
	jw_obj(&w);
	jw_kstr(&w, "install", install_of(c->arena, spec->mark));
	jw_end(&w);
	/* Bridges read the first two, runners the limits; both ignore what they do not know. */
	if (spec->memory_mb)
		jw_kint(&w, "memory_mib", spec->memory_mb);
	if (spec->cpu)
		jw_kint(&w, "cpu", spec->cpu);
	if (spec->network != NETWORK_DEFAULT)
		jw_kstr(&w, "network", bridge_networks[spec->network]);
	if (spec->memory_mb || spec->cpu) {
		jw_key(&w, "limits");
		jw_obj(&w);
		if (spec->memory_mb)
			jw_kint(&w, "memory_mib", spec->memory_mb);
		if (spec->cpu)
			jw_kint(&w, "cpus", spec->cpu);
		jw_end(&w);
	}
	jw_end(&w);
}

static enum err bridge_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	CLEANUP_BUF struct buf body;
	struct http_reply r;
	buf_init(&body, BODY_MAX);
	enum err e = check_id(spec->mark);
	if (e)
		return e;
	if (spec->runtime || spec->template)
		return fail(ERR_UNSUPPORTED, spec->runtime ? "runtime" : "template",
			"this provider has no such choice");
	if (spec->gpu)
		return fail(ERR_UNSUPPORTED, "gpu", "this provider gives no gpu");
	write_spec(c, spec, &body);
	struct ask q = {.method = "POST",
		.path = BOXES_PATH,
		.body = body.p,
		.body_n = body.n,
		.type = "application/json",
		.total_ms = CREATE_MS};
	e = ask(c, &q, &r);
	e = e ? e : bridge_judge(&r, EFFECT_CREATES);
	if (e)
		return e;
	struct box b;
	if (bridge_object(&r, &root) || !bridge_box(root, c->arena, &b) ||
		strcmp(b.id, spec->mark) != 0 || b.state != BOX_RUNNING)
		return fail(ERR_UPSTREAM_UNSURE, NULL,
			"the bridge did not answer with the new sandbox");
	b.warnings = bridge_warnings(root, spec, c->arena);
	*ret = b;
	return OK;
}

static enum err bridge_find(struct call *c, const char *mark, struct box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = check_id(mark);
	if (e)
		return e;
	struct ask q = {.method = "GET", .path = box_path(c, mark, ""), .total_ms = CALL_MS};
	e = ask_object(c, &q, EFFECT_READS, &r, &root);
	if (e == ERR_BOX_GONE) {
		*ret = (struct box){.id = NULL, .state = BOX_STOPPED};
		return OK;
	}
	if (e)
		return e;
	struct box b;
	if (!bridge_box(root, c->arena, &b) || strcmp(b.id, mark) != 0)
		return fail(ERR_UPSTREAM, NULL, "the bridge did not answer with the sandbox");
	*ret = b;
	return OK;
}

static enum err bridge_list(struct call *c, const char *prefix, struct box_list *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct ask q = {.method = "GET",
		.path = arena_printf(c->arena, BOXES_PATH "?label=install%%3D%s",
			bridge_escape(c->arena, install_of(c->arena, prefix))),
		.total_ms = CALL_MS};
	enum err e = ask_object(c, &q, EFFECT_READS, &r, &root);
	if (e)
		return e;
	const struct json *all = json_get(root, "sandboxes");
	if (json_type(all) != JSON_LIST)
		return fail(ERR_UPSTREAM, NULL, "the bridge did not answer with its sandboxes");
	struct box_list list = {.items = ARENA_LIST(c->arena, json_len(all) + 1, struct box)};
	for (size_t i = 0; i < json_len(all); i++) {
		struct box *b = &list.items[list.n];
		if (!bridge_box(json_at(all, i), c->arena, b))
			return fail(
				ERR_UPSTREAM, NULL, "the bridge listed a sandbox in a wrong form");
		/* A bridge may serve several installations, and need not know labels. */
		if (strncmp(b->id, prefix, strlen(prefix)) == 0)
			list.n++;
	}
	*ret = list;
	return OK;
}

static enum err bridge_destroy(struct call *c, const char *id, enum box_state *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = check_id(id);
	if (e)
		return e;
	struct ask q = {.method = "DELETE", .path = box_path(c, id, ""), .total_ms = CALL_MS};
	e = ask_object(c, &q, EFFECT_REPEATS, &r, &root);
	if (e == ERR_BOX_GONE) {
		*ret = BOX_STOPPED;
		return OK;
	}
	if (e)
		return e;
	const struct json *state = json_get(root, "state"), *which = json_get(root, "id");
	const char *word = json_type(state) == JSON_STR ? json_str(state, NULL) : "";
	bool ours = json_type(which) == JSON_STR && strcmp(json_str(which, NULL), id) == 0;
	if (ours && r.status == 200 && strcmp(word, "stopped") == 0)
		*ret = BOX_STOPPED;
	else if (ours && r.status == 202 && strcmp(word, "stopping") == 0)
		*ret = BOX_STOPPING;
	else
		return fail(ERR_UPSTREAM, NULL, "the bridge did not say how the sandbox stands");
	return OK;
}

/* -- files ------------------------------------------------------------------------------------- */

static enum err put_block(struct call *c, const char *path, const uint8_t *p, size_t n, size_t end)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct ask q = {.method = "PUT",
		.path = path,
		.body = p,
		.body_n = n,
		.type = "application/octet-stream",
		.total_ms = BLOCK_MS};
	enum err e = ask_object(c, &q, EFFECT_REPEATS, &r, &root);
	if (e)
		return e;
	const struct json *size = json_get(root, "size");
	if (json_type(size) != JSON_INT || json_int(size) != (int64_t)end)
		return fail(ERR_UPSTREAM, NULL, "the bridge stored a file with a wrong size");
	return OK;
}

static enum err bridge_put(
	struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	enum err e = check_id(id);
	size_t at = 0;
	while (!e) {
		size_t block = n - at < BLOCK_BYTES ? n - at : BLOCK_BYTES;
		const char *where = arena_printf(c->arena, BOXES_PATH "/%s/file?path=%s&offset=%zu",
			id, bridge_escape(c->arena, path), at);
		e = put_block(c, where, (const uint8_t *)p + at, block, at + block);
		at += block;
		if (at == n)
			break;
	}
	return e;
}

/* -- commands ---------------------------------------------------------------------------------- */

struct command {
	struct call *call;
	const char *box;
	const char *body;
	size_t body_n;
	int64_t ends_ms; /* monotonic */
	struct bridge_stream stream;
};

static int64_t follow_ms(int64_t left)
{
	return left > FOLLOW_MS ? FOLLOW_MS : left > 0 ? left : 0;
}

static void write_command(
	const char *exec_id, const char *const *argv, int64_t wait_s, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "exec_id", exec_id);
	jw_key(&w, "argv");
	jw_list(&w);
	for (; *argv; argv++)
		jw_str(&w, *argv);
	jw_end_list(&w);
	jw_kint(&w, "timeout_ms", wait_s * 1000);
	jw_kint(&w, "follow_ms", follow_ms(wait_s * 1000 + AFTER_MS));
	jw_end(&w);
}

static struct ask question(struct command *k)
{
	const struct bridge_stream *s = &k->stream;
	if (!s->started)
		return (struct ask){.method = "POST",
			.path = box_path(k->call, k->box, "/exec"),
			.type = "application/json",
			.body = k->body,
			.body_n = k->body_n};
	const char *rest = arena_printf(k->call->arena,
		"/exec/%s?stdout=%zu&stderr=%zu&follow_ms=%lld", s->exec_id, s->out.n, s->err.n,
		(long long)follow_ms(k->ends_ms - clock_mono_ms()));
	return (struct ask){.method = "GET", .path = box_path(k->call, k->box, rest)};
}

/* Begins the command, or goes on with what the bridge has of it. Repeating the beginning is
 * harmless: the bridge knows the id and only tells from the first byte again. OK leaves it to the
 * stream what happened. */
static enum err follow(struct command *k)
{
	struct http_reply r;
	struct listener l = {.stream = &k->stream};
	struct ask q = question(k);
	buf_init(&l.head, HEAD_MAX);
	q.listener = &l;
	q.total_ms = FOLLOW_MS + SLACK_MS;
	bridge_stream_open(&k->stream);
	enum err e = ask(k->call, &q, &r);
	bool refused = !e && r.fate == HTTP_REPLIED && r.status != 200;
	bool never = !e && r.fate == HTTP_NOT_SENT && !k->stream.started;
	if (refused) {
		r.body = l.head.p;
		r.body_n = l.head.n;
	}
	if (refused || never)
		e = bridge_judge(&r, EFFECT_REPEATS);
	if (refused && !e)
		e = fail(ERR_UPSTREAM, NULL, "the bridge answered with status %d", r.status);
	buf_done(&l.head);
	return e;
}

/* What the end of one call means. ERR_UPSTREAM_UNSURE: worth another call. */
static enum err ended(const struct bridge_stream *s, bool soon)
{
	switch (s->end) {
	case BRIDGE_EXIT:
		return s->timed_out
			       ? fail(ERR_UPSTREAM, NULL, "a short command did not end in its time")
			       : OK;
	case BRIDGE_RESET:
		return fail(ERR_BOX_GONE, NULL, "the machine of the sandbox was replaced");
	case BRIDGE_BAD:
		return fail(ERR_UPSTREAM, NULL, "the bridge told of a command in a wrong form");
	case BRIDGE_LOST:
	case BRIDGE_UNKNOWN:
		return fail(ERR_UPSTREAM, NULL, "the bridge lost a short command");
	case BRIDGE_ERROR:
		return fail(ERR_UPSTREAM, NULL, "the bridge could not run a short command");
	case BRIDGE_PENDING:
		if (!soon)
			return ERR_UPSTREAM_UNSURE;
		break;
	case BRIDGE_OPEN:
		break;
	}
	return fail(ERR_UPSTREAM_UNSURE, NULL, "the bridge broke off in the middle of a command");
}

static enum err run_command(struct command *k)
{
	struct bridge_stream *s = &k->stream;
	enum err e = ERR_UPSTREAM_UNSURE;
	for (int failed = 0, asked = 0; failed < FOLLOWS_MAX; asked++) {
		size_t had = s->out.n + s->err.n;
		int64_t began = clock_mono_ms();
		e = follow(k);
		bool soon = s->out.n + s->err.n == had && clock_mono_ms() - began < SOON_MS;
		e = e ? e : ended(s, soon);
		/* Gone only now: what became of the command before that is not known. */
		if (e == ERR_BOX_GONE && asked)
			break;
		if (e != ERR_UPSTREAM_UNSURE)
			return e;
		failed = s->end == BRIDGE_PENDING && !soon ? 0 : failed + 1;
		if (clock_mono_ms() > k->ends_ms + SLACK_MS)
			break;
	}
	return fail(ERR_UPSTREAM_UNSURE, NULL, "the bridge broke off in the middle of a command");
}

static enum err bridge_exec(struct call *c, const char *id, const char *exec_id,
	const char *const *argv, int64_t wait_s, struct exec_result *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, BODY_MAX);
	enum err e = check_id(id);
	if (e)
		return e;
	write_command(exec_id, argv, wait_s, &body);
	assert(!body.full);
	struct command k = {.call = c,
		.box = id,
		.body = body.p,
		.body_n = body.n,
		.ends_ms = clock_mono_ms() + wait_s * 1000 + AFTER_MS};
	bridge_stream_init(&k.stream, exec_id);
	e = run_command(&k);
	if (!e)
		*ret = (struct exec_result){.code = k.stream.code,
			.out = arena_copy(c->arena, k.stream.out.p, k.stream.out.n),
			.err = arena_copy(c->arena, k.stream.err.p, k.stream.err.n),
			.out_n = k.stream.out.n,
			.err_n = k.stream.err.n};
	bridge_stream_done(&k.stream);
	return e;
}

const struct provider_ops bridge_ops = {
	.check = bridge_check,
	.create = bridge_create,
	.find = bridge_find,
	.list = bridge_list,
	.destroy = bridge_destroy,
	.put = bridge_put,
	.exec = bridge_exec,
};
