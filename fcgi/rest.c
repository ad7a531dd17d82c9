/* REST: arguments from the JSON body, the result as JSON, errors as problem documents. */
#include "rest.h"

#include "call.h"
#include "bounds.h"

#include <string.h>
#include <strings.h>

static bool is_json_type(const char *type)
{
	size_t n = strcspn(type, "; \t");
	return n == strlen("application/json") && strncasecmp(type, "application/json", n) == 0;
}

/* A body that is absent means no arguments. */
static enum err read_arguments(struct exchange *x, struct json **ret)
{
	*ret = NULL;
	if (x->body_n == 0)
		return OK;
	if (!x->type || !is_json_type(x->type))
		return fail(ERR_UNSUPPORTED_MEDIA, NULL, "Content-Type must be application/json");
	enum err e = json_parse(x->body, x->body_n, ret);
	if (!e && json_type(*ret) != JSON_OBJ)
		return fail(ERR_BAD_INPUT, NULL, "the body must be a JSON object");
	return e;
}

static void reply_result(struct exchange *x, const struct tool *t, const void *out)
{
	CLEANUP_BUF struct buf b;
	static const struct header headers[] = {{"Cache-Control", "no-store"}, {0}};
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw w = jw_new(&b);
	put_result(&w, t, out);
	if (b.full)
		reply_problem(x, fail(ERR_INTERNAL, NULL, "the result is too large"));
	else
		reply(x, t->status ? t->status : 200, "application/json", headers, b.p, b.n);
}

void rest_serve(struct exchange *x, const struct tool *t)
{
	CLEANUP_JSON struct json *args = NULL;
	void *out;
	enum err e = read_arguments(x, &args);
	if (!e)
		e = call_tool(x, t, args, &out);
	if (e)
		reply_problem(x, e);
	else
		reply_result(x, t, out);
}
