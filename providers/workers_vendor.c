/*
 * The operations over Cloudflare's own bridge. Every command it runs is short and may be repeated,
 * so a lost reply costs nothing. What it does not give (list, hard end, proof of an end) is not
 * made up here: workers_vendor.h tells what we do instead, and users are told in the warnings of
 * each job.
 */
#include "workers_vendor.h"

#include "arena.h"
#include "bridge_reply.h"
#include "clock.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <assert.h>
#include <string.h>

#define CALL_MS   30000
#define START_MS  120000 /* a first container after a deployment waits for its image */
#define PUT_MS    60000
#define SLACK_MS  30000      /* of a command's call, beyond what the command may take */
#define BODY_MAX  (64 << 10) /* spool scripts and their parameters: below 32 KiB, and escapes */
#define PUT_MAX   (32 << 20) /* the bridge takes no larger file */
#define FIRST_S   20         /* making the folder of a new machine */
#define MOVE_S    20
#define CODE_LOST 77 /* of our own scripts: the folder is missing */

static const char weak[] = "Cloudflare's own bridge has no hard end and no proof of a stop: a "
			   "sandbox whose stop fails there "
			   "ends after ten idle minutes. The bridge of provider_setup has both.";

/* -- one call ---------------------------------------------------------------------------------- */

struct ask {
	const char *method, *path, *type;
	const void *body;
	size_t body_n;
	bool anonymous;
	int64_t total_ms;
};

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
		.first_ms = q->total_ms, /* a quiet command may answer only at its end */
	};
	return call_http(c, &h, ret);
}

static const char *box_path(struct call *c, const char *id, const char *rest)
{
	return arena_printf(c->arena, "/v1/sandbox/%s%s", id, rest);
}

/* Ids come back from our own rows, but a foreign character would change the path. */
static enum err check_id(const char *id)
{
	return vendor_id_ok(id) ? OK
				: fail(ERR_INTERNAL, NULL, "a sandbox id is not of this bridge");
}

/* -- check ------------------------------------------------------------------------------------- */

/* Starts nothing, and shows whether the bridge wants a token at all. */
static enum err ask_stats(struct call *c, bool anonymous, struct http_reply *ret)
{
	struct ask q = {.method = "GET",
		.path = "/v1/pool/stats",
		.anonymous = anonymous,
		.total_ms = CALL_MS};
	return ask(c, &q, ret);
}

static enum err check_closed(struct call *c)
{
	struct http_reply r;
	enum err e = ask_stats(c, true, &r);
	if (e)
		return e;
	if (r.fate != HTTP_REPLIED)
		return vendor_judge(&r, EFFECT_READS);
	if (r.status == 200)
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"the bridge is open to everybody: set SANDBOX_API_KEY there first");
	if (r.status != 401)
		return fail(ERR_KEY_CHECK_FAILED, "bridge_url",
			"the bridge must answer 401 without a token, but answered %d", r.status);
	return OK;
}

static enum err vendor_check(struct call *c)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = check_closed(c);
	e = e ? e : ask_stats(c, false, &r);
	e = e ? e : vendor_judge(&r, EFFECT_READS);
	if (e)
		return e;
	if (strcmp(r.type, "application/json") != 0 || json_parse(r.body, r.body_n, &root) ||
		reply_int(root, "assigned", -1) < 0)
		return fail(ERR_UPSTREAM, NULL, "the bridge did not answer with its numbers");
	return OK;
}

/* -- commands ---------------------------------------------------------------------------------- */

static enum err run(struct call *c, const char *id, const char *const *argv, int64_t wait_s,
	int64_t total_ms, enum effect effect, struct exec_result *ret)
{
	CLEANUP_BUF struct buf body;
	struct http_reply r;
	buf_init(&body, BODY_MAX);
	struct jw w = jw_new(&body);
	jw_obj(&w);
	jw_key(&w, "argv");
	jw_list(&w);
	for (; *argv; argv++)
		jw_str(&w, *argv);
	jw_end_list(&w);
	jw_kint(&w, "timeout_ms", wait_s * 1000);
	jw_end(&w);
	assert(!body.full);
	struct ask q = {.method = "POST",
		.path = box_path(c, id, "/exec"),
		.type = "application/json",
		.body = body.p,
		.body_n = body.n,
		.total_ms = total_ms};
	enum err e = ask(c, &q, &r);
	e = e ? e : vendor_judge(&r, effect);
	if (!e && strcmp(r.type, "text/event-stream") != 0)
		e = fail(ERR_UPSTREAM, NULL, "the bridge did not answer with events");
	return e ? e : vendor_events(r.body, r.body_n, c->arena, ret);
}

static enum err vendor_exec(struct call *c, const char *id, const char *exec_id,
	const char *const *argv, int64_t wait_s, struct exec_result *ret)
{
	(void)exec_id; /* what runs through exec may run twice */
	enum err e = check_id(id);
	return e ? e : run(c, id, argv, wait_s, wait_s * 1000 + SLACK_MS, EFFECT_REPEATS, ret);
}

/* -- sandboxes --------------------------------------------------------------------------------- */

static enum err check_spec(const struct box_spec *spec)
{
	if (spec->runtime || spec->template)
		return fail(ERR_UNSUPPORTED, spec->runtime ? "runtime" : "template",
			"this provider has no such choice");
	if (spec->gpu)
		return fail(ERR_UNSUPPORTED, "gpu", "this provider gives no gpu");
	if (spec->network != NETWORK_DEFAULT && spec->network != NETWORK_INTERNET)
		return fail(ERR_UNSUPPORTED, "network", "this provider has no such choice");
	return OK;
}

/* The folder is the spool's own: it says "reset" where the folder is missing, because then this is
 * not the machine in which it was made. */
static enum err vendor_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	static const char *const first[] = {"sh", "-c", "umask 077 && mkdir -p /tmp/.sbx", NULL};
	struct exec_result done;
	char id[VENDOR_ID_CHARS + 1];
	enum err e = check_spec(spec);
	if (!e && !vendor_id_of(spec->mark, id))
		e = fail(ERR_INTERNAL, NULL, "a mark can not be an id of this bridge");
	e = e ? e : run(c, id, first, FIRST_S, START_MS, EFFECT_CREATES, &done);
	if (e == ERR_UPSTREAM || (!e && done.code != 0))
		return fail(ERR_UPSTREAM_UNSURE, NULL, "a new sandbox did not answer as it should");
	if (e)
		return e;
	*ret = (struct box){.id = arena_str(c->arena, id),
		.mark = arena_str(c->arena, spec->mark),
		.state = BOX_RUNNING,
		.created_ms = clock_ms(),
		.warnings = weak};
	return OK;
}

/* There is no question that does not start a machine, so it counts as there until it was deleted.
 */
static enum err vendor_find(struct call *c, const char *mark, struct box *ret)
{
	char id[VENDOR_ID_CHARS + 1];
	if (!vendor_id_of(mark, id))
		return fail(ERR_INTERNAL, NULL, "a mark can not be an id of this bridge");
	*ret = (struct box){.id = arena_str(c->arena, id),
		.mark = arena_str(c->arena, mark),
		.state = BOX_RUNNING};
	return OK;
}

/* It knows no list: there is nothing that a sweep could find. */
static enum err vendor_list(struct call *c, const char *prefix, struct box_list *ret)
{
	(void)c;
	(void)prefix;
	*ret = (struct box_list){0};
	return OK;
}

/* 204 comes whether or not the machine ended, and a second DELETE would first start a fresh one. */
static enum err vendor_destroy(struct call *c, const char *id, enum box_state *ret)
{
	struct http_reply r;
	enum err e = check_id(id);
	if (e)
		return e;
	struct ask q = {.method = "DELETE", .path = box_path(c, id, ""), .total_ms = CALL_MS};
	e = ask(c, &q, &r);
	e = e ? e : vendor_judge(&r, EFFECT_REPEATS);
	if (!e && r.status != 204)
		e = fail(ERR_UPSTREAM, NULL, "the bridge did not say how the sandbox stands");
	if (!e)
		*ret = BOX_STOPPED;
	return e;
}

/* -- files ------------------------------------------------------------------------------------- */

/* The bridge writes only below /workspace; a command brings the file to its place. */
static enum err move(struct call *c, const char *id, const char *from, const char *to, size_t n)
{
	static const char script[] =
		"[ -d /tmp/.sbx ] || exit 77\n"
		"mkdir -p \"${2%/*}/\" && chmod 600 \"$1\" && mv -f \"$1\" \"$2\" && wc -c <\"$2\"";
	const char *const argv[] = {"sh", "-c", script, "sbx", from, to, NULL};
	struct exec_result r;
	int64_t size;
	enum err e = run(c, id, argv, MOVE_S, MOVE_S * 1000 + SLACK_MS, EFFECT_REPEATS, &r);
	if (e)
		return e;
	if (r.code == CODE_LOST)
		return fail(ERR_BOX_GONE, NULL, "the machine of the sandbox was replaced");
	while (r.out_n && (r.out[r.out_n - 1] == '\n' || r.out[r.out_n - 1] == ' '))
		r.out_n--;
	const char *text = arena_copy(c->arena, r.out, r.out_n);
	if (r.code != 0 || !int_parse(text, 0, PUT_MAX, &size) || size != (int64_t)n)
		return fail(ERR_UPSTREAM, NULL, "the bridge stored a file with a wrong size");
	return OK;
}

static enum err vendor_put(
	struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	struct http_reply r;
	uint8_t raw[8];
	char hex[2 * sizeof raw + 1];
	enum err e = check_id(id);
	if (e)
		return e;
	if (n > PUT_MAX)
		return fail(ERR_BAD_INPUT, "files", "may have %d bytes in all there", PUT_MAX);
	random_bytes(raw, sizeof raw);
	hex_encode(hex, raw, sizeof raw);
	const char *part = arena_printf(c->arena, "/workspace/.sbx-%s", hex);
	struct ask q = {.method = "PUT",
		.path = box_path(c, id, arena_printf(c->arena, "/file%s", part)),
		.type = "application/octet-stream",
		.body = p,
		.body_n = n,
		.total_ms = PUT_MS};
	e = ask(c, &q, &r);
	e = e ? e : vendor_judge(&r, EFFECT_REPEATS);
	return e ? e : move(c, id, part, path, n);
}

const struct provider_ops vendor_ops = {
	.check = vendor_check,
	.create = vendor_create,
	.find = vendor_find,
	.list = vendor_list,
	.destroy = vendor_destroy,
	.put = vendor_put,
	.exec = vendor_exec,
};
