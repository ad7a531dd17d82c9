/*
 * Files and commands of an E2B sandbox, which its own daemon takes. Both may be repeated. After a
 * call that failed the daemon's address is forgotten, so that the next one asks the API first,
 * which knows whether the sandbox still lives.
 */
#include "e2b_call.h"

#include "arena.h"
#include "bounds.h"
#include "clock.h"
#include "json.h"
#include "text.h"

#include <assert.h>
#include <string.h>

#define PUT_MS   60000
#define SLACK_MS 20000 /* of a command, beyond what it may take */
#define BODY_MAX (64 << 10)

/* -- files ------------------------------------------------------------------------------------- */

/* The daemon tells what it wrote. */
static enum err check_written(const struct http_reply *r, const char *path)
{
	CLEANUP_JSON struct json *root = NULL;
	enum err e = e2b_list_of(r, &root);
	if (e)
		return e;
	const char *where = reply_str(json_at(root, 0), "path");
	if (json_len(root) != 1 || !where || strcmp(where, path) != 0)
		return fail(ERR_UPSTREAM, NULL, "E2B did not say that the file was written");
	return OK;
}

/* A file as the only part of a form: the way of daemons before 0.5.7, which come with templates
 * that were built before them. The border is random, so that it can not stand in the file. */
static enum err post_form(
	struct call *c, const struct e2b_ask *plain, const char *border, struct http_reply *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, plain->body_n + 512);
	buf_printf(&body,
		"--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"
		"Content-Type: application/octet-stream\r\n\r\n",
		border);
	buf_put(&body, plain->body, plain->body_n);
	buf_printf(&body, "\r\n--%s--\r\n", border);
	assert(!body.full);
	struct e2b_ask q = *plain;
	q.type = arena_printf(c->arena, "multipart/form-data; boundary=%s", border);
	q.body = body.p;
	q.body_n = body.n;
	return e2b_ask(c, &q, ret);
}

static bool wants_form(const struct http_reply *r)
{
	return r->fate == HTTP_REPLIED &&
	       (r->status == 400 || r->status == 415 || r->status == 500);
}

static enum err put_file(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	struct http_reply r;
	uint8_t raw[16];
	char border[2 * sizeof raw + 1];
	struct e2b_ask q = {.method = "POST",
		.box = id,
		.path = arena_printf(c->arena, "/files?path=%s", e2b_escape(c->arena, path)),
		.body = p,
		.body_n = n,
		.type = "application/octet-stream",
		.total_ms = PUT_MS};
	enum err e = e2b_ask(c, &q, &r);
	if (!e && wants_form(&r)) {
		random_bytes(raw, sizeof raw);
		hex_encode(border, raw, sizeof raw);
		e = post_form(c, &q, border, &r);
	}
	e = e ? e : e2b_judge(&r, E2B_DAEMON, EFFECT_REPEATS, e2b_own(c));
	return e ? e : check_written(&r, path);
}

enum err e2b_put(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	enum err e = e2b_reach(c, id);
	if (e)
		return e;
	e = put_file(c, id, path, p, n);
	if (e && e != ERR_UPSTREAM_LIMIT)
		e2b_forget(c);
	return e;
}

/* -- commands ---------------------------------------------------------------------------------- */

/* No deadline is sent: the daemon would kill the command at it. The working directory is one that
 * every template has. */
static void write_command(const char *const *argv, struct buf *b)
{
	e2b_frame_begin(b);
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_key(&w, "process");
	jw_obj(&w);
	jw_kstr(&w, "cmd", strcmp(argv[0], "sh") == 0 ? "/bin/sh" : argv[0]);
	jw_key(&w, "args");
	jw_list(&w);
	for (argv++; *argv; argv++)
		jw_str(&w, *argv);
	jw_end_list(&w);
	jw_kstr(&w, "cwd", "/");
	jw_end(&w);
	jw_kbool(&w, "stdin", false);
	jw_end(&w);
	e2b_frame_end(b);
}

/* What the end of a stream means. */
static enum err ended(const struct e2b_stream *s)
{
	switch (s->end) {
	case E2B_EXIT:
		return OK;
	case E2B_KILLED:
		return fail(ERR_UPSTREAM, NULL, "a short command was killed in the sandbox");
	case E2B_REFUSED:
		return fail(ERR_UPSTREAM, NULL, "the sandbox did not take a short command");
	case E2B_BAD:
		return fail(ERR_UPSTREAM, NULL, "E2B told of a command in a wrong form");
	case E2B_FAILED:
	case E2B_OPEN:
		break;
	}
	return fail(ERR_UPSTREAM_UNSURE, NULL, "E2B broke off in the middle of a command");
}

static enum err judge_command(struct call *c, struct http_reply *r, const struct e2b_listener *l)
{
	bool replied = r->fate == HTTP_REPLIED;
	if (replied && r->status != 200) {
		r->body = l->head.p;
		r->body_n = l->head.n;
	}
	if ((replied && r->status != 200) || r->fate == HTTP_NOT_SENT) {
		enum err e = e2b_judge(r, E2B_DAEMON, EFFECT_REPEATS, e2b_own(c));
		return e ? e : fail(ERR_UPSTREAM, NULL, "E2B answered with status %d", r->status);
	}
	if (replied && strcmp(r->type, "application/connect+json") != 0)
		return fail(ERR_UPSTREAM, NULL, "E2B did not answer with a stream");
	return ended(&l->stream);
}

static enum err run_command(struct call *c, const char *id, const char *const *argv, int64_t wait_s,
	struct e2b_listener *l)
{
	CLEANUP_BUF struct buf body;
	struct http_reply r;
	buf_init(&body, BODY_MAX);
	write_command(argv, &body);
	assert(!body.full);
	struct e2b_ask q = {.method = "POST",
		.box = id,
		.path = "/process.Process/Start",
		.type = "application/connect+json",
		.body = body.p,
		.body_n = body.n,
		.total_ms = wait_s * 1000 + SLACK_MS,
		.listener = l};
	enum err e = e2b_ask(c, &q, &r);
	return e ? e : judge_command(c, &r, l);
}

enum err e2b_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret)
{
	(void)exec_id; /* the daemon knows no ids of ours; all scripts may be repeated */
	struct e2b_listener l;
	enum err e = e2b_reach(c, id);
	if (e)
		return e;
	buf_init(&l.head, E2B_HEAD_MAX);
	e2b_stream_init(&l.stream);
	e = run_command(c, id, argv, wait_s, &l);
	const struct e2b_stream *s = &l.stream;
	if (!e)
		*ret = (struct exec_result){.code = s->code,
			.out = arena_copy(c->arena, s->out.p, s->out.n),
			.err = arena_copy(c->arena, s->err.p, s->err.n),
			.out_n = s->out.n,
			.err_n = s->err.n};
	else if (e != ERR_UPSTREAM_LIMIT)
		e2b_forget(c);
	e2b_stream_done(&l.stream);
	buf_done(&l.head);
	return e;
}
