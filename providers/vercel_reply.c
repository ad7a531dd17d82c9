/*
 * Decodes the replies of Vercel Sandbox: errors, sandboxes, ids. It promises that no text from
 * outside gets into an error, that an error page of something on the way is never taken for the
 * service's own word, and that a reply of another form is never taken for a success.
 */
#include "vercel_reply.h"

#include "arena.h"
#include "bounds.h"
#include "clock.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

#define CODE_MAX 48

/* -- errors ------------------------------------------------------------------------------------ */

/* clang-format off */
#define EVERYWHERE                                                                                 \
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the token"},                        \
	{402, NULL, ERR_KEY_REFUSED, NULL, "asks for payment: what the plan includes is used up, or the account is suspended"}, \
	{403, NULL, ERR_KEY_REFUSED, "token", "does not let this token into the team and project"}, \
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"}

#define TOO_LONG                                                                                   \
	{400, "sandbox_timeout_invalid", ERR_BAD_INPUT, "timeout_s", "ends a sandbox earlier: after 45 minutes on Hobby (2580 s for a job), 24 hours on Pro"}
#define NO_PROJECT                                                                                 \
	{404, NULL, ERR_KEY_REFUSED, "project_id", "has no such project in this team"}

static const struct refusal of_reads[] = {EVERYWHERE, NO_PROJECT, {0, NULL, OK, NULL, NULL}};
static const struct refusal of_creates[] = {EVERYWHERE, NO_PROJECT, TOO_LONG, {0, NULL, OK, NULL, NULL}};
static const struct refusal of_choices[] = {EVERYWHERE, NO_PROJECT, TOO_LONG,
	{400, NULL, ERR_UNSUPPORTED, NULL, "refuses the sandbox as asked for: its runtime, cpu or memory is not to be had, or not on this plan"},
	{0, NULL, OK, NULL, NULL}};
static const struct refusal of_images[] = {EVERYWHERE, TOO_LONG,
	{404, NULL, ERR_UNSUPPORTED, "template", "has no such image, or the project is gone"},
	{400, NULL, ERR_UNSUPPORTED, "template", "refuses the sandbox as asked for: the image (template) is not to be had, or its cpu or memory"},
	{0, NULL, OK, NULL, NULL}};
static const struct refusal of_boxes[] = {EVERYWHERE,
	{404, "not_found", ERR_BOX_GONE, NULL, "has no such sandbox"},
	{410, NULL, ERR_BOX_GONE, NULL, "says that the sandbox has stopped"},
	{422, "sandbox_stopping", ERR_BOX_GONE, NULL, "is stopping the sandbox"},
	{422, "sandbox_snapshotting", ERR_BOX_GONE, NULL, "is stopping the sandbox"},
	{0, NULL, OK, NULL, NULL}};
/* clang-format on */

/* Without an error body of the service only these are believed: anything on the way may say the
 * others. */
/* clang-format off */
static const struct refusal of_others[] = {
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the token"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"},
	{0, NULL, OK, NULL, NULL}};
/* clang-format on */

static const struct service services[] = {
	[VERCEL_READ] = {"Vercel", NULL, of_reads},
	[VERCEL_CREATE] = {"Vercel", NULL, of_creates},
	[VERCEL_CHOSEN] = {"Vercel", NULL, of_choices},
	[VERCEL_IMAGE] = {"Vercel", NULL, of_images},
	[VERCEL_BOX] = {"Vercel", NULL, of_boxes},
};
static const struct service others = {"Vercel", NULL, of_others};

/* What an error body says; all zero when it has another form. */
struct said {
	char code[CODE_MAX];
	bool exists; /* there is a sandbox of this name already */
	int wait_s;  /* until the limit is taken back */
};

static int until_reset(const struct json *error)
{
	int64_t reset = reply_int(json_get(error, "limit"), "reset", 0);
	int64_t left = reset - clock_ms() / 1000;
	return reset > 0 && left > 0 && left < INT32_MAX ? (int)left : 0;
}

static struct said read_error(const struct http_reply *r)
{
	CLEANUP_JSON struct json *root = NULL;
	struct said s = {0};
	if (strcmp(r->type, "application/json") != 0 || json_parse(r->body, r->body_n, &root))
		return s;
	const struct json *error = json_get(root, "error");
	const char *code = reply_str(error, "code"), *text = reply_str(error, "message");
	if (!code)
		return s;
	/* A longer one is of the service too, but none that is known here. */
	(void)snprintf(s.code, sizeof s.code, "%s", code);
	s.exists = text && strstr(text, "already exists");
	s.wait_s = until_reset(error);
	return s;
}

enum err vercel_judge(const struct http_reply *r, enum vercel_ask ask, enum effect effect)
{
	if (r->fate != HTTP_REPLIED || r->status < 300)
		return reply_judge(&others, r, "", effect);
	struct said s = read_error(r);
	struct http_reply known = *r;
	if (known.retry_after_s <= 0)
		known.retry_after_s = s.wait_s;
	/* Names are made for one attempt and we never repeat a create; something on the way did. */
	if (effect == EFFECT_CREATES && r->status == 400 && s.exists)
		return fail(ERR_UPSTREAM_UNSURE, NULL,
			"Vercel has the sandbox already, made by a repeated request");
	return reply_judge(s.code[0] ? &services[ask] : &others, &known, s.code, effect);
}

enum err vercel_object(const struct http_reply *r, struct json **ret_root)
{
	return reply_object(&others, r, ret_root);
}

/* -- sandboxes --------------------------------------------------------------------------------- */

bool vercel_word_ok(const char *s, size_t max)
{
	size_t n = strlen(s);
	return n > 0 && n <= max &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

bool vercel_id_read(
	const char *id, struct arena *a, const char **ret_name, const char **ret_session)
{
	const char *sign = strchr(id, '/');
	*ret_name = sign ? arena_copy(a, id, (size_t)(sign - id)) : id;
	*ret_session = sign ? sign + 1 : "";
	return vercel_word_ok(*ret_name, VERCEL_NAME_MAX) &&
	       (!sign || vercel_word_ok(*ret_session, VERCEL_SESSION_MAX));
}

/* A state of later versions counts as running: then it is ended, which is harmless. */
static enum box_state state_of(const struct json *o)
{
	static const struct {
		const char *word;
		enum box_state state;
	} states[] = {{"stopping", BOX_STOPPING}, {"snapshotting", BOX_STOPPING},
		{"stopped", BOX_STOPPED}, {"failed", BOX_STOPPED}, {"aborted", BOX_STOPPED}};
	const char *word = reply_str(o, "status");
	for (size_t i = 0; word && i < sizeof states / sizeof states[0]; i++)
		if (strcmp(word, states[i].word) == 0)
			return states[i].state;
	return BOX_RUNNING;
}

/* A time or a length in milliseconds; 0 for what can be neither. */
static int64_t positive(const struct json *o, const char *key)
{
	int64_t ms = reply_int(o, key, 0);
	return ms > 0 ? ms : 0;
}

bool vercel_box(const struct json *o, struct arena *a, struct box *ret)
{
	const char *name = reply_str(o, "name"), *session = reply_str(o, "currentSessionId");
	if (!name || !vercel_word_ok(name, VERCEL_NAME_MAX) || !reply_str(o, "status"))
		return false;
	bool known = session && vercel_word_ok(session, VERCEL_SESSION_MAX);
	int64_t created = positive(o, "createdAt"), life = positive(o, "timeout");
	*ret = (struct box){
		.id = known ? arena_printf(a, "%s/%s", name, session) : arena_str(a, name),
		.mark = arena_str(a, name),
		.state = state_of(o),
		.created_ms = created,
		.ends_ms = created && life ? created + life : 0};
	return true;
}

/* What was asked for and is told to be otherwise. */
static const char *warnings(const struct json *box, const struct json *session,
	const struct box_spec *spec, struct arena *a)
{
	const struct json *kept = json_get(box, "persistent");
	int64_t cpu = spec->cpu ? spec->cpu : spec->memory_mb / VERCEL_MB_PER_CPU;
	bool less = cpu && reply_int(session, "vcpus", cpu) != cpu;
	bool longer = reply_int(session, "timeout", 0) > spec->life_s * 1000;
	bool stays = json_type(kept) == JSON_BOOL && json_bool(kept);
	if (!less && !longer && !stays)
		return NULL;
	return arena_printf(a, "not as asked there:%s%s%s", less ? " cpu and memory" : "",
		longer ? " its end comes later" : "",
		stays ? " its files are kept and billed" : "");
}

bool vercel_created(
	const struct json *root, const struct box_spec *spec, struct arena *a, struct box *ret)
{
	const struct json *o = json_get(root, "sandbox"), *session = json_get(root, "session");
	const char *sid = reply_str(session, "id");
	struct box b;
	if (!vercel_box(o, a, &b) || strcmp(b.mark, spec->mark) != 0 || !sid ||
		!vercel_word_ok(sid, VERCEL_SESSION_MAX) || !reply_str(session, "status"))
		return false;
	b.state = state_of(session);
	if (b.state != BOX_RUNNING)
		return false; /* it will not come to life any more */
	b.id = arena_printf(a, "%s/%s", b.mark, sid);
	int64_t began = positive(session, "startedAt"), life = positive(session, "timeout");
	if (life && (began || b.created_ms))
		b.ends_ms = (began ? began : b.created_ms) + life;
	b.warnings = warnings(o, session, spec, a);
	*ret = b;
	return true;
}
