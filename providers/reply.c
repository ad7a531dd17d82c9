/*
 * Makes the requests of all providers and judges their replies by one rule. Promises that no text
 * from outside gets into an error and that only a certain refusal of a create is a refusal: a proxy
 * on the way may answer for a service that did the work.
 */
#include "reply.h"

#include "clock.h"
#include "json.h"

#include <string.h>

#define RETRY_MAX_S 3600

enum err call_http(struct call *c, const struct http_call *h, struct http_reply *ret)
{
	int64_t began = clock_mono_us();
	enum err e = http_run(h, c->arena, ret);
	c->round_trips++;
	c->upstream_us += clock_mono_us() - began;
	return e;
}

static enum err known(const struct service *s, const struct http_reply *r, const char *code)
{
	for (const struct refusal *f = s->refusals; f->status; f++) {
		if (r->status != f->status || (f->code && strcmp(code, f->code) != 0))
			continue;
		(void)fail(f->err, f->field, "%s %s", s->name, f->words);
		if (f->err == ERR_UPSTREAM_LIMIT && r->retry_after_s > 0)
			fault_retry_after(
				r->retry_after_s < RETRY_MAX_S ? r->retry_after_s : RETRY_MAX_S);
		return f->err;
	}
	return OK;
}

/* No whole reply came. */
static enum err unfinished(const struct service *s, const struct http_reply *r, enum effect effect)
{
	if (r->fate == HTTP_NOT_SENT && r->refused_address)
		return fail(
			ERR_FORBIDDEN_ADDRESS, s->field, "leads to a private or reserved address");
	if (r->fate == HTTP_NOT_SENT)
		return fail(ERR_UPSTREAM, s->field, "no connection to %s", s->name);
	if (effect != EFFECT_READS)
		return fail(ERR_UPSTREAM_UNSURE, NULL, "the connection to %s broke off", s->name);
	if (r->timed_out)
		return fail(ERR_UPSTREAM, NULL, "%s took too long to answer", s->name);
	return fail(ERR_UPSTREAM, NULL, "the answer of %s broke off", s->name);
}

enum err reply_judge(
	const struct service *s, const struct http_reply *r, const char *code, enum effect effect)
{
	if (r->fate != HTTP_REPLIED)
		return unfinished(s, r, effect);
	if (r->status >= 200 && r->status <= 204)
		return OK;
	enum err e = known(s, r, code);
	if (e)
		return e;
	bool refused = r->status >= 400 && r->status < 500 && r->status != 408 && r->status != 409;
	e = effect == EFFECT_CREATES && !refused ? ERR_UPSTREAM_UNSURE : ERR_UPSTREAM;
	return fail(e, NULL, "%s answered with status %d", s->name, r->status);
}

static enum err parsed(const struct service *s, const struct http_reply *r, enum json_type type,
	const char *what, struct json **ret_root)
{
	CLEANUP_JSON struct json *root = NULL;
	if (strcmp(r->type, "application/json") != 0)
		return fail(ERR_UPSTREAM, NULL, "%s did not answer with JSON", s->name);
	if (json_parse(r->body, r->body_n, &root) || json_type(root) != type)
		return fail(ERR_UPSTREAM, NULL, "%s did not answer with a JSON %s", s->name, what);
	*ret_root = root;
	root = NULL;
	return OK;
}

enum err reply_object(const struct service *s, const struct http_reply *r, struct json **ret_root)
{
	return parsed(s, r, JSON_OBJ, "object", ret_root);
}

enum err reply_list(const struct service *s, const struct http_reply *r, struct json **ret_root)
{
	return parsed(s, r, JSON_LIST, "list", ret_root);
}

const char *reply_str(const struct json *o, const char *key)
{
	const struct json *j = json_get(o, key);
	size_t n;
	if (json_type(j) != JSON_STR)
		return NULL;
	const char *s = json_str(j, &n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return NULL;
	return n ? s : NULL;
}

int64_t reply_int(const struct json *o, const char *key, int64_t otherwise)
{
	const struct json *j = json_get(o, key);
	return json_type(j) == JSON_INT ? json_int(j) : otherwise;
}
