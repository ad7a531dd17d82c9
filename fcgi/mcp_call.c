/*
 * tools/call. Answers are plain JSON; a tool that reports progress answers with an event stream
 * when the client gave a progress token and accepts one, and one that takes long with a task when
 * the client declared tasks.
 */
#include "mcp_part.h"

#include "bounds.h"
#include "call.h"

#include <string.h>

bool mcp_accepts(const struct exchange *x, const char *type)
{
	return x->accept && strcasestr(x->accept, type);
}

struct progress_line {
	struct exchange *x;
	const struct json *token;
	double last;
};

/* The stream begins with the first progress: quick answers and errors stay plain JSON. */
static void send_progress(void *ctx, double done, const char *message)
{
	struct progress_line *p = ctx;
	CLEANUP_BUF struct buf b = {0};
	if (p->x->write_failed)
		return;
	if (done <= p->last)
		done = p->last + 0.001; /* must grow with every message */
	p->last = done;
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kstr(&w, "jsonrpc", "2.0");
	jw_kstr(&w, "method", "notifications/progress");
	jw_key(&w, "params");
	jw_obj(&w);
	jw_key(&w, "progressToken");
	jw_json(&w, p->token);
	jw_key(&w, "progress");
	jw_num(&w, done);
	jw_kstr(&w, "message", message);
	jw_end(&w);
	jw_end(&w);
	if (!p->x->streaming)
		stream_begin(p->x);
	(void)stream_event(p->x, b.p, b.n);
}

static void put_text_block(struct jw *w, const char *text, size_t n)
{
	jw_key(w, "content");
	jw_list(w);
	jw_obj(w);
	jw_kstr(w, "type", "text");
	jw_key(w, "text");
	jw_strn(w, text, n);
	jw_end(w);
	jw_end_list(w);
}

/* Models read the text of a failed call, so it holds everything they need to repair it. There is no
 * structured content: clients hold it against the schema of results, also when isError is set, and
 * would show the difference instead of the error. Programs find the error in _meta. */
static void put_tool_error(struct jw *w, const struct exchange *x, enum err e)
{
	const struct err_row *row = err_row(e);
	const struct fault *f = fault_of(e);
	const char *text = arena_printf(x->req.arena, "%s (%s) %s%s%s%s%s", row->text, row->code,
		f->field, f->field[0] && f->detail[0] ? ": " : "", f->detail,
		f->field[0] || f->detail[0] ? ". " : "", row->advice);
	put_text_block(w, text, strlen(text));
	jw_kbool(w, "isError", true);
}

void mcp_put_result(struct jw *w, const struct exchange *x, const struct tool *t, const void *out)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw inner = jw_new(&b);
	put_result(&inner, t, out);
	put_text_block(w, b.p, b.n);
	jw_key(w, "structuredContent");
	jw_raw(w, b.p, b.n);
	if (x->req.tool_error)
		jw_kbool(w, "isError", true);
}

static enum err find_tool(struct message *m, const struct tool **ret, const struct json **ret_args)
{
	const struct json *name = json_get(m->params, "name"),
			  *args = json_get(m->params, "arguments");
	m->http = 200;
	if (json_type(name) != JSON_STR)
		return fail(ERR_BAD_PARAMS, "params.name", "must be the name of a tool");
	if (args && json_type(args) != JSON_OBJ && json_type(args) != JSON_NULL)
		return fail(ERR_BAD_PARAMS, "params.arguments", "must be an object");
	*ret_args = json_type(args) == JSON_OBJ ? args : NULL;
	*ret = tool_find(json_str(name, NULL));
	return *ret ? OK : fail(ERR_UNKNOWN_TOOL, "params.name", "tools/list names them all");
}

/* A client that gave a token sees how a long call goes on; its answer then is an event stream. */
static void let_report(struct exchange *x, const struct tool *t, struct progress_line *line)
{
	bool wants = json_type(line->token) == JSON_STR || json_type(line->token) == JSON_INT;
	if (wants && (t->flags & TOOL_STREAMS) && !x->req.as_task &&
		mcp_accepts(x, "text/event-stream"))
		x->req.progress = (struct progress){send_progress, line};
}

enum err mcp_tools_call(struct exchange *x, struct message *m, struct jw *w)
{
	const struct tool *t;
	const struct json *args = NULL;
	void *out;
	enum err e = find_tool(m, &t, &args);
	if (e)
		return e;
	struct progress_line line = {x, json_get(m->meta, "progressToken"), -1};
	x->req.tool_error = false;
	x->req.as_task = m->tasks && (t->flags & TOOL_TASKS);
	let_report(x, t, &line);
	e = call_tool(x, t, args, &out);
	x->req.progress = (struct progress){0};
	if (!e && x->req.as_task && mcp_put_task(w, x, m, out))
		return OK;
	if (e)
		put_tool_error(w, x, e);
	else
		mcp_put_result(w, x, t, out);
	mcp_put_type(w, x, m, "complete", e);
	return OK;
}
