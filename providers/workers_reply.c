/*
 * Decodes what Cloudflare's own bridge answers: errors, ids, and the events of a command. Promises
 * that only an exit event of the exact form yields an exit code, and that no text from outside gets
 * into an error.
 */
#include "workers_vendor.h"

#include "arena.h"
#include "bounds.h"
#include "buf.h"
#include "json.h"
#include "text.h"

#include <string.h>

/* -- ids --------------------------------------------------------------------------------------- */

#define MARK_CHARS 36 /* cc-, six characters, a dash, 26 characters */
static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";

bool vendor_id_of(const char *mark, char out[VENDOR_ID_CHARS + 1])
{
	if (strlen(mark) != MARK_CHARS || mark[2] != '-' || mark[9] != '-')
		return false;
	memcpy(out, mark, 2);
	memcpy(out + 2, mark + 3, 6);
	memcpy(out + 8, mark + 10, 26);
	out[VENDOR_ID_CHARS] = '\0';
	return vendor_id_ok(out);
}

bool vendor_id_ok(const char *id)
{
	return strlen(id) == VENDOR_ID_CHARS && strspn(id, alphabet) == VENDOR_ID_CHARS;
}

/* -- errors ------------------------------------------------------------------------------------ */

static const struct refusal refusals[] = {
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the token"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"},
	{503, "capacity_exceeded", ERR_UPSTREAM_LIMIT, NULL, "has no free container"},
	{0, NULL, OK, NULL, NULL},
};
static const struct service vendor = {"the bridge", "bridge_url", refusals};

enum err vendor_judge(const struct http_reply *r, enum effect effect)
{
	CLEANUP_JSON struct json *root = NULL;
	const char *code = NULL;
	if (strcmp(r->type, "application/json") == 0 && !json_parse(r->body, r->body_n, &root))
		code = reply_str(root, "code");
	return reply_judge(&vendor, r, code ? code : "", effect);
}

/* -- events ------------------------------------------------------------------------------------ */

enum event { EVENT_NONE, EVENT_STDOUT, EVENT_STDERR, EVENT_EXIT, EVENT_ERROR, EVENT_OTHER };
static const char *const names[] = {"", "stdout", "stderr", "exit", "error"};

struct reader {
	struct arena *arena;
	struct buf data, out, err;
	enum event event;
	bool bad;
	enum event end; /* EVENT_EXIT or EVENT_ERROR came */
	int code;
};

static void take_output(struct reader *r, struct buf *b)
{
	size_t n;
	const uint8_t *bytes = base64_decode(r->arena, r->data.p ? r->data.p : "", r->data.n, &n);
	if (bytes)
		buf_put(b, bytes, n);
	r->bad = r->bad || !bytes || b->full;
}

static void take_exit(struct reader *r)
{
	CLEANUP_JSON struct json *root = NULL;
	int64_t code = -1;
	if (r->data.n && !json_parse(r->data.p, r->data.n, &root))
		code = reply_int(root, "exit_code", -1);
	r->bad = r->bad || code < 0 || code > 255;
	r->code = (int)code;
	r->end = EVENT_EXIT;
}

/* An empty line ends an event. Nothing after the last one counts. */
static void take_event(struct reader *r)
{
	if (r->end != EVENT_NONE)
		return;
	if (r->event == EVENT_STDOUT)
		take_output(r, &r->out);
	else if (r->event == EVENT_STDERR)
		take_output(r, &r->err);
	else if (r->event == EVENT_EXIT)
		take_exit(r);
	else if (r->event == EVENT_ERROR)
		r->end = EVENT_ERROR;
	buf_reset(&r->data);
	r->event = EVENT_NONE;
}

static void take_line(struct reader *r, const char *p, size_t n)
{
	if (n == 0) {
		take_event(r);
	} else if (n >= 7 && memcmp(p, "event: ", 7) == 0) {
		r->event = EVENT_OTHER;
		for (enum event e = EVENT_STDOUT; e <= EVENT_ERROR; e++)
			if (strlen(names[e]) == n - 7 && memcmp(p + 7, names[e], n - 7) == 0)
				r->event = e;
	} else if (n >= 6 && memcmp(p, "data: ", 6) == 0) {
		buf_put(&r->data, p + 6, n - 6);
		r->bad = r->bad || r->data.full;
	}
	/* Anything else is a comment or a field that means nothing to us. */
}

static enum err verdict(const struct reader *r)
{
	if (r->bad)
		return fail(ERR_UPSTREAM, NULL, "the bridge told of a command in a wrong form");
	if (r->end != EVENT_EXIT)
		return fail(ERR_UPSTREAM_UNSURE, NULL,
			"the bridge broke off in the middle of a command");
	return OK;
}

enum err vendor_events(const char *p, size_t n, struct arena *a, struct exec_result *ret)
{
	struct reader r = {.arena = a};
	const char *end = p + n;
	buf_init(&r.data, 2 * EXEC_OUTPUT_MAX); /* all of it may come in one event */
	buf_init(&r.out, EXEC_OUTPUT_MAX);
	buf_init(&r.err, EXEC_OUTPUT_MAX);
	while (p < end && !r.bad) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			break; /* a broken line is no line */
		size_t len = (size_t)(nl - p);
		take_line(&r, p, len && p[len - 1] == '\r' ? len - 1 : len);
		p = nl + 1;
	}
	enum err e = verdict(&r);
	if (!e)
		*ret = (struct exec_result){.code = r.code,
			.out = arena_copy(a, r.out.p, r.out.n),
			.err = arena_copy(a, r.err.p, r.err.n),
			.out_n = r.out.n,
			.err_n = r.err.n};
	buf_done(&r.data);
	buf_done(&r.out);
	buf_done(&r.err);
	return e;
}
