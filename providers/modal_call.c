/*
 * How Modal is spoken to. It promises that the account's key goes to the control service only, that
 * the token of a sandbox goes only to a router under one of Modal's names, and that a lost
 * connection to a router is never taken for the end of the sandbox: that is asked for.
 */
#include "modal_call.h"

#include "arena.h"
#include "clock.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define JWT_MAX 4000
#define PASS_MS                                                                                    \
	60000 /* an exchanged key is good for much longer; short jobs need no second one           \
	       */

static const struct refusal refusals[] = {
	{400, NULL, ERR_UPSTREAM, NULL, "takes the request for wrong"},
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the token"},
	{403, NULL, ERR_KEY_REFUSED, "token", "does not allow this to the token"},
	{404, NULL, ERR_BOX_GONE, NULL, "does not know this sandbox"},
	{412, NULL, ERR_UPSTREAM, NULL, "can not do this in the present state"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"},
	{501, NULL, ERR_UPSTREAM, NULL, "does not know this call any more"},
	{0, NULL, OK, NULL, NULL},
};
static const struct service modal = {"Modal", NULL, refusals};

/* -- one call ---------------------------------------------------------------------------------- */

static bool hear(void *ctx, const char *p, size_t n)
{
	struct grpc_stream *s = ctx;
	grpc_stream_feed(s, p, n);
	return !s->bad;
}

static enum err send(
	struct call *c, struct http_call *h, const struct modal_ask *q, struct http_reply *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, q->body->n + 5);
	grpc_frame(&body, q->body->p, q->body->n);
	grpc_call(h);
	h->body = q->frames ? q->body->p : body.p;
	h->body_n = q->frames ? q->body->n : body.n;
	h->total_ms = h->first_ms = q->total_ms ? q->total_ms : MODAL_CALL_MS;
	h->on_data = q->stream ? hear : NULL;
	h->ctx = q->stream;
	return call_http(c, h, ret);
}

static enum err untold(enum effect effect)
{
	return fail(effect == EFFECT_READS ? ERR_UPSTREAM : ERR_UPSTREAM_UNSURE, NULL,
		"Modal did not say how a call ended");
}

/* Judges the end of a call by the rule for all providers, in the numbers of HTTP. */
static enum err judge(
	struct call *c, const struct http_reply *r, const struct modal_ask *q, struct pb_msg *ret)
{
	struct http_reply as_http = *r;
	as_http.status = grpc_http_status(r);
	if (r->fate == HTTP_REPLIED && as_http.status == 0)
		return untold(q->effect);
	as_http.retry_after_s = grpc_retry_after_s(r, c->arena);
	enum err e = reply_judge(&modal, &as_http, "", q->effect);
	if (e || q->stream)
		return e;
	return grpc_message(r, ret) ? OK : untold(q->effect);
}

/* -- the control service ----------------------------------------------------------------------- */

static const char *timeout_of(struct call *c, const struct modal_ask *q)
{
	return arena_printf(
		c->arena, "%lldm", (long long)(q->total_ms ? q->total_ms : MODAL_CALL_MS));
}

enum err modal_control(
	struct call *c, const struct modal_key *k, const struct modal_ask *q, struct pb_msg *ret)
{
	const struct http_secret secrets[] = {{"x-modal-token-id", &k->id},
		{"x-modal-token-secret", &k->secret},
		{k->token ? "x-modal-auth-token" : NULL, k->token}, {NULL, NULL}};
	/* The kind of client decides which replies are sent; 8 is the one these calls are of. */
	const struct http_header headers[] = {{"te", "trailers"}, {"x-modal-client-type", "8"},
		{"x-modal-client-version", "1.0.0"},
		{"x-modal-libmodal-version", "compute-connector/" CC_VERSION},
		{"grpc-timeout", timeout_of(c, q)}, {q->once ? "x-idempotency-key" : NULL, q->once},
		{NULL, NULL}};
	struct http_call h = {.url = arena_printf(c->arena, "%s/modal.client.ModalClient/%s",
				      provider_base(c->provider), q->method),
		.headers = headers,
		.secrets = secrets};
	struct http_reply r;
	enum err e = send(c, &h, q, &r);
	if (!e && q->ret_status)
		*q->ret_status = r.status == 200 ? grpc_http_status(&r) : 0;
	return e ? e : judge(c, &r, q, ret);
}

/* A text of a reply as a secret; false when it is absent or no header could carry it. */
static bool take_secret(struct pb_msg m, unsigned number, struct arena *a, struct secret *ret)
{
	const char *word = pb_word(m, number, JWT_MAX, a);
	if (word)
		*ret = secret_new(word, strlen(word));
	return word;
}

enum err modal_open(struct call *c, struct modal_key *ret)
{
	CLEANUP_BUF struct buf empty;
	struct pb_msg m;
	*ret = (struct modal_key){0};
	buf_init(&empty, 1);
	if (!secret_split(&c->credential->token, ':', &ret->id, &ret->secret))
		return fail(
			ERR_KEY_REFUSED, "token", "must be the token's id and secret as id:secret");
	if (c->pass.p && clock_mono_ms() < c->pass_until_ms) {
		ret->token = &c->pass;
		return OK;
	}
	struct modal_ask q = {.method = "AuthTokenGet", .body = &empty, .effect = EFFECT_READS};
	enum err e = modal_control(c, ret, &q, &m);
	if (e)
		return e;
	secret_done(&c->pass);
	if (!take_secret(m, 1, c->arena, &c->pass))
		return fail(ERR_UPSTREAM, NULL, "Modal did not exchange the token");
	c->pass_until_ms = clock_mono_ms() + PASS_MS;
	ret->token = &c->pass;
	return OK;
}

void modal_close(struct modal_key *k)
{
	secret_done(&k->id);
	secret_done(&k->secret);
}

/* -- ids --------------------------------------------------------------------------------------- */

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool modal_id_ok(const char *id)
{
	size_t n = strlen(id);
	return n > 3 && n <= MODAL_ID_MAX && strncmp(id, "sb-", 3) == 0 &&
	       strspn(id, LETTERS "-") == n;
}

enum err modal_check_id(const char *id)
{
	return modal_id_ok(id) ? OK : fail(ERR_INTERNAL, NULL, "a sandbox id is not one of Modal");
}

/* Ids of the first generation are "sb-" and exactly 22 letters and digits. */
const char *modal_rpc(struct call *c, const char *name, const char *id)
{
	bool first = strlen(id) == 25 && strspn(id + 3, LETTERS) == 22;
	return first ? name : arena_printf(c->arena, "%sV2", name);
}

static uint64_t fnv(const char *s, uint64_t h)
{
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

const char *modal_uuid(struct arena *a, const char *text)
{
	uint64_t x = fnv(text, 0xcbf29ce484222325u), y = fnv(text, x ^ 0x9e3779b97f4a7c15u);
	return arena_printf(a, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(x >> 32),
		(unsigned)(x >> 16 & 0xffff), (unsigned)(x & 0xfff), (unsigned)(y >> 48 & 0xfff),
		(unsigned long long)(y & 0xffffffffffff));
}

/* -- the router -------------------------------------------------------------------------------- */

/* The host of an https address without a path, in lower case; false: another form. */
static bool host_of(const char *url, char *out, size_t room)
{
	int64_t port;
	if (strncmp(url, "https://", 8) != 0)
		return false;
	const char *host = url + 8;
	size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-");
	if (n == 0 || n >= room || (host[n] && host[n] != ':'))
		return false;
	if (host[n] == ':' && !int_parse(host + n + 1, 1, 65535, &port))
		return false;
	memcpy(out, host, n);
	out[n] = '\0';
	return true;
}

static bool under(const char *host, const char *domain)
{
	size_t n = strlen(host), tail = strlen(domain);
	return n > tail + 1 && host[n - tail - 1] == '.' && strcmp(host + n - tail, domain) == 0;
}

/* The host of the control service itself, or a name of Modal's. */
static bool leads_to_modal(struct call *c, const char *url)
{
	static const char *const domains[] = {"modal.com", "modal.host", "modal.run"};
	char host[200], own[200];
	if (!host_of(url, host, sizeof host))
		return false;
	if (host_of(provider_base(c->provider), own, sizeof own) && strcmp(host, own) == 0)
		return true;
	for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
		if (under(host, domains[i]))
			return true;
	return false;
}

bool modal_note(struct call *c, const char *id, const char *task, struct pb_msg access)
{
	struct box_memo *memo = &c->memo;
	const char *url = pb_word(access, 2, sizeof memo->base - 1, c->arena);
	struct secret token;
	size_t n = url ? strlen(url) : 0;
	if (!task || strlen(task) >= sizeof memo->task || strlen(id) >= sizeof memo->box)
		return false;
	if (n && url[n - 1] == '/')
		n--;
	url = arena_copy(c->arena, url ? url : "", n);
	if (!leads_to_modal(c, url) || !take_secret(access, 1, c->arena, &token))
		return false;
	secret_done(&memo->token);
	memo->token = token;
	(void)snprintf(memo->box, sizeof memo->box, "%s", id);
	(void)snprintf(memo->task, sizeof memo->task, "%s", task);
	(void)snprintf(memo->base, sizeof memo->base, "%s", url);
	return true;
}

static enum err gone(void)
{
	return fail(ERR_BOX_GONE, NULL, "the sandbox has ended");
}

/* The task of a sandbox that has not ended; *ret NULL: it waits for a machine. */
static enum err ask_task(
	struct call *c, const struct modal_key *k, const char *id, const char **ret)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, id);
	struct modal_ask q = {.method = modal_rpc(c, "SandboxGetTaskId", id),
		.body = &body,
		.effect = EFFECT_READS};
	enum err e = modal_control(c, k, &q, &m);
	if (e)
		return e;
	if (pb_uint(pb_bytes(m, 2), 1) != MODAL_RESULT_RUNNING)
		return gone();
	*ret = pb_word(m, 1, MODAL_ID_MAX, c->arena);
	return OK;
}

static enum err ask_access(struct call *c, const struct modal_key *k, const char *id,
	const char *task, struct pb_msg *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, MODAL_BODY);
	bool first = modal_rpc(c, "", id)[0] == '\0';
	pb_put_str(&body, 1, first ? task : id);
	struct modal_ask q = {
		.method = first ? "TaskGetCommandRouterAccess" : "SandboxGetCommandRouterAccess",
		.body = &body,
		.effect = EFFECT_READS};
	return modal_control(c, k, &q, ret);
}

static enum err reach_task(
	struct call *c, const struct modal_key *k, const char *id, const char *task)
{
	struct pb_msg access;
	if (!task)
		return fail(ERR_UPSTREAM, NULL, "the sandbox has not begun yet");
	enum err e = ask_access(c, k, id, task, &access);
	if (!e && !modal_note(c, id, task, access))
		return fail(ERR_UPSTREAM, NULL, "Modal did not say where the sandbox is reached");
	return e;
}

static enum err reach_anew(struct call *c, const char *id)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	const char *task = NULL;
	enum err e = modal_open(c, &k);
	e = e ? e : ask_task(c, &k, id, &task);
	return e ? e : reach_task(c, &k, id, task);
}

enum err modal_begun(struct call *c, const struct modal_key *k, const char *id, bool *ret)
{
	const char *task = NULL;
	enum err e = ask_task(c, k, id, &task);
	*ret = task;
	if (task)
		(void)!reach_task(c, k, id, task);
	return e;
}

enum err modal_reach(struct call *c, const char *id)
{
	return strcmp(c->memo.box, id) == 0 ? OK : reach_anew(c, id);
}

enum err modal_ended(
	struct call *c, const struct modal_key *k, const char *id, int64_t wait_s, bool *ret)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, id);
	pb_put_float(&body, 2, (float)wait_s);
	struct modal_ask q = {.method = modal_rpc(c, "SandboxWait", id),
		.body = &body,
		.effect = EFFECT_READS,
		.total_ms = MODAL_CALL_MS + wait_s * 1000};
	enum err e = modal_control(c, k, &q, &m);
	if (e && e != ERR_BOX_GONE)
		return e;
	*ret = e == ERR_BOX_GONE || pb_uint(pb_bytes(m, 1), 1) != MODAL_RESULT_RUNNING;
	return OK;
}

/* What an error of the router means: the sandbox may have ended, which only the control service
 * knows. */
static enum err explain(struct call *c, const char *id, enum err e)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	struct fault why = *fault_of(e);
	bool over = false;
	if (e != ERR_BOX_GONE && e != ERR_UPSTREAM && e != ERR_UPSTREAM_UNSURE)
		return e;
	if (!modal_open(c, &k) && !modal_ended(c, &k, id, 0, &over) && over)
		return gone();
	if (e == ERR_BOX_GONE)
		return fail(ERR_UPSTREAM_UNSURE, NULL, "the sandbox does not know its own command");
	fault_restore(&why);
	return e;
}

static enum err ask_router(struct call *c, const struct modal_ask *q, struct pb_msg *ret)
{
	const struct http_header headers[] = {
		{"te", "trailers"}, {"grpc-timeout", timeout_of(c, q)}, {NULL, NULL}};
	struct http_call h = {
		.url = arena_printf(c->arena, "%s/modal.task_command_router.TaskCommandRouter/%s",
			c->memo.base, q->method),
		.headers = headers,
		.bearer = &c->memo.token};
	struct http_reply r;
	enum err e = send(c, &h, q, &r);
	if (!e && q->ret_later)
		*q->ret_later = r.fate == HTTP_NOT_SENT || grpc_http_status(&r) == 503;
	if (!e && grpc_http_status(&r) == 401)
		return ERR_KEY_REFUSED;
	return e ? e : judge(c, &r, q, ret);
}

enum err modal_router(struct call *c, const char *id, const struct modal_ask *q, struct pb_msg *ret)
{
	enum err e = ask_router(c, q, ret);
	if (e == ERR_KEY_REFUSED) {
		e = reach_anew(c, id);
		e = e ? e : ask_router(c, q, ret);
		if (e == ERR_KEY_REFUSED)
			e = fail(ERR_UPSTREAM, NULL, "the sandbox does not accept its own token");
	}
	return e ? explain(c, id, e) : OK;
}
