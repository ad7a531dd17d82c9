/*
 * One call to E2B, and what is remembered of a sandbox between calls. Promises that the key goes to
 * the API alone and the sandbox's token to that sandbox alone, and only to hosts of the API's own
 * domain. Repeats nothing.
 */
#include "e2b_call.h"

#include "arena.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

#define CALL_MS   30000
#define TOKEN_MAX 1024

/* -- one call ---------------------------------------------------------------------------------- */

static bool hear(void *ctx, const char *p, size_t n)
{
	struct e2b_listener *l = ctx;
	buf_put(&l->head, p, n < E2B_HEAD_MAX - l->head.n ? n : E2B_HEAD_MAX - l->head.n);
	(void)e2b_stream_feed(&l->stream, p, n); /* a bad stream says so itself, at the end */
	return true;
}

bool e2b_own(const struct call *c)
{
	return c->credential->api_url != NULL;
}

const char *e2b_api(struct call *c)
{
	const char *url = e2b_own(c) ? c->credential->api_url : provider_base(c->provider);
	size_t n = strlen(url);
	while (n > 0 && url[n - 1] == '/')
		n--;
	return arena_copy(c->arena, url, n);
}

enum err e2b_ask(struct call *c, const struct e2b_ask *q, struct http_reply *ret)
{
	struct http_secret secrets[2] = {{"X-API-KEY", &c->credential->token}};
	struct http_header headers[] = {{"E2b-Sandbox-Id", q->box}, {"E2b-Sandbox-Port", "49983"},
		{"Connect-Protocol-Version", "1"}, {NULL, NULL}};
	if (q->box)
		secrets[0] = (struct http_secret){"X-Access-Token", &c->memo.token};
	bool anonymous = q->box && !secret_given(&c->memo.token);
	struct http_call h = {
		.pool = e2b_own(c) ? HTTP_USER : HTTP_FIXED,
		.method = q->method,
		.url = arena_printf(c->arena, "%s%s", q->box ? c->memo.base : e2b_api(c), q->path),
		.secrets = anonymous ? NULL : secrets,
		.headers = q->box ? headers : NULL,
		.type = q->type,
		.body = q->body,
		.body_n = q->body_n,
		.reply_max = q->reply_max,
		.total_ms = q->total_ms,
		.first_ms = q->total_ms,
		.keep_header = q->box ? NULL : "X-Next-Token",
		.on_data = q->listener ? hear : NULL,
		.ctx = q->listener,
	};
	return call_http(c, &h, ret);
}

const char *e2b_box_path(struct call *c, const char *id)
{
	return arena_printf(c->arena, "/sandboxes/%s", id);
}

enum err e2b_check_id(const char *id)
{
	return e2b_id_ok(id) ? OK : fail(ERR_INTERNAL, NULL, "a sandbox id is not one of E2B");
}

enum err e2b_object(const struct http_reply *r, struct json **ret_root)
{
	static const struct service e2b = {.name = "E2B"};
	return reply_object(&e2b, r, ret_root);
}

enum err e2b_list_of(const struct http_reply *r, struct json **ret_root)
{
	static const struct service e2b = {.name = "E2B"};
	return reply_list(&e2b, r, ret_root);
}

/* -- where a sandbox is spoken to -------------------------------------------------------------- */

void e2b_forget(struct call *c)
{
	secret_done(&c->memo.token);
	c->memo.box[0] = '\0';
}

bool e2b_remembered(const struct call *c, const char *id)
{
	return strcmp(c->memo.box, id) == 0;
}

enum err e2b_remember(struct call *c, const char *id, const struct json *o)
{
	const struct json *named = json_get(o, "domain"), *token = json_get(o, "envdAccessToken");
	const char *domain = reply_str(o, "domain"), *text = reply_str(o, "envdAccessToken");
	if ((json_type(named) != JSON_NULL && json_type(named) != JSON_STR) ||
		(json_type(token) != JSON_NULL && (!text || strlen(text) > TOKEN_MAX)))
		return fail(ERR_UPSTREAM, NULL, "E2B told of a sandbox in a wrong form");
	const char *base = e2b_daemon_at(c->arena, e2b_api(c), id, domain);
	if (!base || strlen(base) >= sizeof c->memo.base)
		return fail(ERR_UPSTREAM, NULL,
			"E2B named an address for the sandbox that is not below its own domain");
	e2b_forget(c);
	(void)snprintf(c->memo.box, sizeof c->memo.box, "%s", id);
	(void)snprintf(c->memo.base, sizeof c->memo.base, "%s", base);
	if (text)
		c->memo.token = secret_new(text, strlen(text));
	return OK;
}

enum err e2b_reach(struct call *c, const char *id)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = e2b_check_id(id);
	if (e || e2b_remembered(c, id))
		return e;
	struct e2b_ask q = {.method = "GET", .path = e2b_box_path(c, id), .total_ms = CALL_MS};
	e = e2b_ask(c, &q, &r);
	e = e ? e : e2b_judge(&r, E2B_CONTROL, EFFECT_READS, e2b_own(c));
	e = e ? e : e2b_object(&r, &root);
	if (!e && (!reply_str(root, "sandboxID") || strcmp(reply_str(root, "sandboxID"), id) != 0))
		e = fail(ERR_UPSTREAM, NULL, "E2B did not answer with the sandbox");
	return e ? e : e2b_remember(c, id, root);
}
