/*
 * One call to Daytona's API, and what is done inside a sandbox through its daemon: files and short
 * commands. Promises that the key goes to the API's own house only, and that a refusal of the
 * daemon ends a job only when the API itself says that the sandbox does not run any more.
 */
#include "daytona_call.h"

#include "arena.h"
#include "clock.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PUT_MS     60000
#define SLACK_MS   30000 /* of a command, beyond its own time */
#define WAIT_MAX_S 3600  /* of a rate limit */

/* -- one call ---------------------------------------------------------------------------------- */

const char *daytona_home(const struct call *c)
{
	const char *own = c->credential->api_url;
	return daytona_base(c->arena, own ? own : provider_base(c->provider));
}

const char *daytona_field(const struct call *c)
{
	return c->credential->api_url ? "api_url" : NULL;
}

static struct service service(const struct call *c, const struct refusal *refusals)
{
	return (struct service){.name = "Daytona", .field = daytona_field(c), .refusals = refusals};
}

enum err daytona_ask(struct call *c, const struct daytona_ask *q, struct http_reply *ret)
{
	/* Without this header output of both streams may come as one text. */
	static const struct http_header headers[] = {
		{"X-Daytona-Split-Output", "true"}, {NULL, NULL}};
	int64_t total_ms = q->total_ms ? q->total_ms : DAYTONA_CALL_MS;
	struct http_call h = {
		.pool = c->credential->api_url ? HTTP_USER : HTTP_FIXED,
		.method = q->method,
		.url = q->url,
		.bearer = &c->credential->token,
		.headers = headers,
		.type = q->type,
		.body = q->body,
		.body_n = q->body_n,
		.reply_max = q->reply_max,
		.total_ms = total_ms,
		.first_ms = total_ms,
		.keep_header = arena_printf(
			c->arena, "Retry-After-%s", q->limit ? q->limit : "authenticated"),
	};
	int64_t wait_s;
	enum err e = call_http(c, &h, ret);
	if (!e && ret->retry_after_s == 0 && ret->kept &&
		int_parse(ret->kept, 1, WAIT_MAX_S, &wait_s))
		ret->retry_after_s = (int)wait_s;
	return e;
}

enum err daytona_judge(
	struct call *c, const struct http_reply *r, const char *code, enum effect effect)
{
	struct service s = service(c, daytona_api_refusals);
	return reply_judge(&s, r, code, effect);
}

enum err daytona_object(struct call *c, const struct http_reply *r, struct json **ret_root)
{
	struct service s = service(c, daytona_api_refusals);
	return reply_object(&s, r, ret_root);
}

/* Ids and marks come from our own rows or from checked replies, but a foreign character would
 * change the path. */
enum err daytona_check_id(const char *id)
{
	return name_safe(id, sizeof((struct box_memo *)0)->box - 1) && id[0] != '.'
		       ? OK
		       : fail(ERR_INTERNAL, NULL, "a sandbox id is not of the known form");
}

struct daytona_ask daytona_about(struct call *c, const char *method, const char *id)
{
	return (struct daytona_ask){.method = method,
		.url = arena_printf(c->arena, "%s/sandbox/%s", daytona_home(c), id),
		.reply_max = DAYTONA_REPLY_MAX,
		.limit = strcmp(method, "GET") == 0 ? NULL : "sandbox-lifecycle"};
}

enum err daytona_get(struct call *c, const char *id, struct daytona_box *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	struct daytona_ask q = daytona_about(c, "GET", id);
	enum err e = daytona_ask(c, &q, &r);
	e = e ? e : daytona_judge(c, &r, daytona_code(&r), EFFECT_READS);
	e = e ? e : daytona_object(c, &r, &root);
	if (!e && !daytona_box(root, c->arena, ret))
		e = fail(ERR_UPSTREAM, NULL, "Daytona did not answer with the sandbox");
	return e;
}

/* -- where a sandbox is spoken to -------------------------------------------------------------- */

enum err daytona_remember(struct call *c, const struct daytona_box *b)
{
	if (!b->toolbox)
		return fail(ERR_UPSTREAM, NULL,
			"Daytona did not tell the address at which the sandbox is spoken to");
	if (!daytona_near(daytona_home(c), b->toolbox))
		return fail(ERR_UPSTREAM, NULL,
			"Daytona told an address for the sandbox that is not its own; the key was "
			"not sent there");
	size_t n = strlen(b->toolbox);
	while (n > 0 && b->toolbox[n - 1] == '/')
		n--;
	struct box_memo *m = &c->memo;
	size_t id_n = strlen(b->id);
	bool fits = n + id_n + 2 <= sizeof m->base && id_n < sizeof m->box;
	if (!fits || strpbrk(b->toolbox, "?#"))
		return fail(ERR_UPSTREAM, NULL,
			"Daytona told an address for the sandbox that can not be used");
	(void)snprintf(m->base, sizeof m->base, "%s",
		arena_printf(c->arena, "%.*s/%s", (int)n, b->toolbox, b->id));
	memcpy(m->box, b->id, id_n + 1);
	return OK;
}

/* Before anything in a sandbox: another process may have made it. */
static enum err reach(struct call *c, const char *id)
{
	struct daytona_box b;
	enum err e = daytona_check_id(id);
	if (e || strcmp(c->memo.box, id) == 0)
		return e;
	e = daytona_get(c, id, &b);
	return e ? e : daytona_remember(c, &b);
}

/* The daemon refused, or nothing answers for it: is the sandbox still there? ERR_BOX_GONE when it
 * certainly is not, else what was known before. */
static enum err still_there(struct call *c, const char *id, enum err known)
{
	struct fault f = *fault_of(known);
	struct daytona_box b;
	enum err e = daytona_get(c, id, &b);
	if (e == ERR_BOX_GONE)
		return e;
	if (!e && b.phase != DAYTONA_STARTED && b.phase != DAYTONA_COMING)
		return fail(ERR_BOX_GONE, NULL, "the sandbox does not run any more");
	fault_restore(&f);
	return known;
}

static enum err judge_inside(struct call *c, const char *id, const struct http_reply *r)
{
	struct service s = service(c, daytona_box_refusals);
	enum err e = reply_judge(&s, r, "", EFFECT_REPEATS);
	bool doubt = r->status == 400 || r->status == 404 || r->status == 410 || r->status >= 500;
	return e && doubt ? still_there(c, id, e) : e;
}

/* -- files and commands ------------------------------------------------------------------------ */

/* Something that neither a file nor an output has in it by accident. */
static const char *random_word(struct arena *a)
{
	uint8_t raw[16];
	char hex[2 * sizeof raw + 1];
	random_bytes(raw, sizeof raw);
	hex_encode(hex, raw, sizeof raw);
	return arena_printf(a, "cc-%s", hex);
}

/* Older daemons answer with nothing; newer ones tell what they wrote. */
static enum err judge_upload(struct call *c, const struct http_reply *r, size_t n)
{
	CLEANUP_JSON struct json *root = NULL;
	if (r->body_n == 0)
		return OK;
	enum err e = daytona_object(c, r, &root);
	if (!e && reply_int(json_at(json_get(root, "files"), 0), "bytes", -1) != (int64_t)n)
		e = fail(ERR_UPSTREAM, NULL, "Daytona stored a file with a wrong size");
	return e;
}

enum err daytona_put(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	struct http_reply r;
	enum err e = reach(c, id);
	if (e)
		return e;
	const char *boundary = random_word(c->arena);
	struct daytona_ask q = {.method = "POST",
		.url = arena_printf(c->arena, "%s/files/bulk-upload", c->memo.base),
		.type = arena_printf(c->arena, "multipart/form-data; boundary=%s", boundary),
		.total_ms = PUT_MS,
		.reply_max = DAYTONA_REPLY_MAX};
	q.body = daytona_upload(c->arena, boundary, path, p, n, &q.body_n);
	e = daytona_ask(c, &q, &r);
	e = e ? e : judge_inside(c, id, &r);
	return e ? e : judge_upload(c, &r, n);
}

static void write_exec(const char *const *argv, const char *mark, int64_t wait_s, struct buf *b)
{
	CLEANUP_BUF struct buf text;
	buf_init(&text, DAYTONA_BODY_MAX);
	daytona_command(&text, argv, mark);
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_key(&w, "command");
	jw_strn(&w, text.p, text.n);
	/* Always told: what holds without it differs from server to server. */
	jw_kint(&w, "timeout", wait_s > 0 ? wait_s : 1);
	jw_end(&w);
	assert(!text.full && !b->full);
}

enum err daytona_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret)
{
	CLEANUP_JSON struct json *root = NULL;
	CLEANUP_BUF struct buf body;
	struct http_reply r;
	buf_init(&body, DAYTONA_BODY_MAX);
	(void)exec_id; /* the daemon has no such thing: a repeat runs again, as every script may */
	enum err e = reach(c, id);
	if (e)
		return e;
	const char *mark = random_word(c->arena);
	write_exec(argv, mark, wait_s, &body);
	struct daytona_ask q = {.method = "POST",
		.url = arena_printf(c->arena, "%s/process/execute", c->memo.base),
		.body = body.p,
		.body_n = body.n,
		.type = "application/json",
		.total_ms = wait_s * 1000 + SLACK_MS,
		.reply_max = EXEC_OUTPUT_MAX};
	e = daytona_ask(c, &q, &r);
	e = e ? e : judge_inside(c, id, &r);
	e = e ? e : daytona_object(c, &r, &root);
	return e ? e : daytona_result(root, mark, c->arena, ret);
}
