/*
 * Parts of the OpenAPI document that have to do with problems: headers, examples, the one schema
 * and the list of all errors.
 */
#include "gen_openapi_part.h"

#include <stdio.h>

void openapi_ref(struct jw *w, const char *kind, const char *name, const char *side)
{
	char text[160];
	snprintf(text, sizeof text, "#/components/%s/%s%s", kind, name, side);
	jw_obj(w);
	jw_kstr(w, "$ref", text);
	jw_end(w);
}

void openapi_open_content(struct jw *w, const char *type, const char *schema, const char *side)
{
	jw_key(w, "content");
	jw_obj(w);
	jw_key(w, type);
	jw_obj(w);
	jw_key(w, "schema");
	openapi_ref(w, "schemas", schema, side);
}

void openapi_close_content(struct jw *w)
{
	jw_end(w);
	jw_end(w);
}

void openapi_header(struct jw *w, const char *name, const char *type, const char *text)
{
	jw_key(w, name);
	jw_obj(w);
	jw_kstr(w, "description", text);
	jw_key(w, "schema");
	jw_obj(w);
	jw_kstr(w, "type", type);
	jw_end(w);
	jw_end(w);
}

void openapi_quota_headers(struct jw *w)
{
	openapi_header(w, "RateLimit-Policy", "string",
		"Calls of a day: `\"day\";q=LIMIT;w=86400`. Only where a call is counted.");
	openapi_header(w, "RateLimit", "string",
		"What is left today and for how many seconds: `\"day\";r=LEFT;t=SECONDS`.");
}

/* -- problems ---------------------------------------------------------------------------------- */

static void put_problem_example(struct jw *w, const struct conf *c, const struct err_row *row)
{
	char type[400];
	snprintf(type, sizeof type, "%s/openapi.json#%s", c->public_url, row->code);
	jw_key(w, "example");
	jw_obj(w);
	jw_kstr(w, "type", type);
	jw_kint(w, "status", row->http);
	jw_kstr(w, "code", row->code);
	jw_kstr(w, "title", row->text);
	if (row->advice[0])
		jw_kstr(w, "advice", row->advice);
	jw_kbool(w, "retryable", row->again);
	jw_kstr(w, "request_id", "req_aaaaaaaaaaaaaaaaaaaaaaaaaa");
	jw_end(w);
}

static void put_problem_headers(struct jw *w, int status)
{
	jw_key(w, "headers");
	jw_obj(w);
	openapi_header(w, "X-Request-Id", "string", "The id of this request.");
	if (status == 429)
		openapi_quota_headers(w);
	if (status == 429 || status == 503)
		openapi_header(w, "Retry-After", "integer", "Seconds to wait.");
	if (status == 401)
		openapi_header(
			w, "WWW-Authenticate", "string", "Bearer, with error=\"invalid_token\".");
	jw_end(w);
}

void openapi_problems(struct jw *w, const struct conf *c, const struct tool *t, int status)
{
	CLEANUP_BUF struct buf text;
	const struct err_row *first = NULL;
	char key[8];
	buf_init(&text, TEXT_BYTES_MAX);
	for (int e = OK + 1; e < ERR__MAX; e++) {
		const struct err_row *row = err_row((enum err)e);
		if (row->http != status ||
			!(t ? gen_can_fail(t, (enum err)e) : e == ERR_FORBIDDEN_ORIGIN))
			continue;
		buf_printf(&text, "%s`%s`: %s", first ? "\n\n" : "", row->code, row->text);
		first = first ? first : row;
	}
	if (!first)
		return;
	snprintf(key, sizeof key, "%d", status);
	jw_key(w, key);
	jw_obj(w);
	jw_kstr(w, "description", text.p);
	put_problem_headers(w, status);
	openapi_open_content(w, "application/problem+json", "Problem", "");
	put_problem_example(w, c, first);
	openapi_close_content(w);
	jw_end(w);
}

static void put_member(struct jw *w, const char *name, const char *type, const char *text)
{
	jw_key(w, name);
	jw_obj(w);
	jw_kstr(w, "type", type);
	jw_kstr(w, "description", text);
	jw_end(w);
}

static void put_codes(struct jw *w)
{
	jw_key(w, "code");
	jw_obj(w);
	jw_kstr(w, "type", "string");
	jw_kstr(w, "description", "Stable code of the error; x-errors lists them all.");
	jw_key(w, "enum");
	jw_list(w);
	for (int e = OK + 1; e < ERR__MAX; e++)
		jw_str(w, err_row((enum err)e)->code);
	jw_end_list(w);
	jw_end(w);
}

void openapi_problem_schema(struct jw *w)
{
	static const char *const required[] = {"type", "status", "code", "title", "request_id"};
	jw_key(w, "Problem");
	jw_obj(w);
	jw_kstr(w, "type", "object");
	jw_kstr(w, "description", "What went wrong (RFC 9457), in our own words.");
	jw_key(w, "properties");
	jw_obj(w);
	put_member(w, "type", "string", "Address of the kind of problem.");
	put_member(w, "status", "integer", "The HTTP status.");
	put_codes(w);
	put_member(w, "title", "string", "What happened.");
	put_member(w, "field", "string", "Path of the argument at fault, such as files[3].path.");
	put_member(w, "detail", "string", "More about this case: the bound, the numbers.");
	put_member(w, "advice", "string", "What to do next.");
	put_member(w, "retryable", "boolean", "Whether the same call may succeed later.");
	put_member(w, "retry_after_s", "integer", "Seconds to wait before that.");
	put_member(w, "request_id", "string", "Id to tell the operator.");
	jw_end(w);
	jw_key(w, "required");
	jw_list(w);
	for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
		jw_str(w, required[i]);
	jw_end_list(w);
	jw_kbool(w, "additionalProperties", false);
	jw_end(w);
}

void openapi_error_list(struct jw *w)
{
	jw_key(w, "x-errors");
	jw_list(w);
	for (int e = OK + 1; e < ERR__MAX; e++) {
		const struct err_row *row = err_row((enum err)e);
		jw_obj(w);
		jw_kstr(w, "code", row->code);
		jw_kint(w, "status", row->http);
		if (row->rpc)
			jw_kint(w, "jsonrpc", row->rpc);
		jw_kbool(w, "retryable", row->again);
		jw_kstr(w, "title", row->text);
		jw_kstr(w, "advice", row->advice);
		jw_end(w);
	}
	jw_end_list(w);
}
