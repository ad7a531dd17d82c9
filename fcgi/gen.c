/*
 * Documents computed from the rows: the MCP tools array and the Markdown references of tools and
 * errors, and the facts about a tool that every document tells.
 *
 * Nothing here reads a request or the database: one installation always prints the same bytes.
 */
#include "gen_part.h"

#include "bounds.h"

#include <stdio.h>
#include <string.h>

#define WORDS(x)  #x
#define NUMBER(x) WORDS(x)

const char gen_instructions[] =
	"Compute Connector moves heavy jobs (builds, installs, test suites, headless browsers) off "
	"the "
	"machine you live on. Before such a job call check_memory with the memory that is free "
	"(free_mb, "
	"on Linux MemAvailable in MB) and the command; its verdict is run_local or offload, with "
	"the "
	"numbers. To offload, call run_job with the command and the few input files it needs: it "
	"runs in a "
	"fresh sandbox on the user's own provider account or computer, which is stopped right "
	"after. Larger "
	"inputs are cloned or downloaded by the command itself. run_job answers with exit code and "
	"the last "
	"16 KiB of stdout and stderr; a job that takes longer than wait_s (" NUMBER(
		WAIT_S_DEFAULT) " s unless "
				"you say otherwise) answers with state running and a job_id: the "
				"job goes on, and get_job waits for "
				"it and picks up the result within an hour. cancel_job ends it, "
				"list_jobs finds a lost job_id. Send "
				"idempotency_key when you may repeat a run_job call. A non-zero "
				"exit code, a time-out and a cancel "
				"are results, not tool errors. run_job needs an API key and the "
				"Pro plan; on the free plan nothing "
				"runs and the job is only noted for weekly_report. Providers are "
				"set up once by the owner: "
				"list_providers, provider_setup, save_provider_key. "
				"usage_and_upgrade shows the calls left today and "
				"is free of charge.";

/* -- facts about a tool ------------------------------------------------------------------------ */

void gen_route(const struct tool *t, struct route_text *ret)
{
	*ret = (struct route_text){.method = "POST"};
	if (!t->route) {
		snprintf(ret->path, sizeof ret->path, "/api/run/%s", t->name);
		return;
	}
	size_t n = strcspn(t->route, " ");
	snprintf(ret->method, sizeof ret->method, "%.*s", (int)n, t->route);
	snprintf(ret->path, sizeof ret->path, "%s", t->route + n + 1);
}

const char *gen_access(const struct tool *t)
{
	static const char *const words[][2] = {
		[ROLE_ANYONE] = {"no API key needed", "Pro plan"},
		[ROLE_AGENT] = {"any API key", "any API key, Pro plan"},
		[ROLE_OWNER] = {"an owner key", "an owner key, Pro plan"},
	};
	return words[t->role][t->plan == PLAN_PRO];
}

bool gen_can_fail(const struct tool *t, enum err e)
{
	static const enum err always[] = {ERR_BAD_JSON, ERR_BAD_REQUEST, ERR_BAD_INPUT,
		ERR_FORBIDDEN_ORIGIN, ERR_UNSUPPORTED_MEDIA, ERR_TOO_LARGE, ERR_METHOD_NOT_ALLOWED,
		ERR_TOKEN_INVALID, ERR_RATE_LIMITED, ERR_BUSY, ERR_DB_DOWN, ERR_DB_UNSURE,
		ERR_INTERNAL};
	for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
		if (always[i] == e)
			return true;
	for (size_t i = 0; t->errors[i] != OK; i++)
		if (t->errors[i] == e)
			return true;
	return (e == ERR_TOKEN_NEEDED && t->role != ROLE_ANYONE) ||
	       (e == ERR_OWNER_NEEDED && t->role == ROLE_OWNER) ||
	       (e == ERR_PRO_NEEDED && t->plan == PLAN_PRO) ||
	       (e == ERR_QUOTA_USED_UP && t->flags & TOOL_METERED);
}

bool gen_shown(const struct field *f, bool input)
{
	return input ? f->kind != KIND_TIME && f->kind != KIND_RAW : f->kind != KIND_SECRET;
}

static const char *type_word(const struct field *f)
{
	static const char *const words[] = {
		[KIND_STR] = "string",
		[KIND_SECRET] = "secret string",
		[KIND_INT] = "integer",
		[KIND_NUM] = "number",
		[KIND_BOOL] = "boolean",
		[KIND_ENUM] = "one of",
		[KIND_TIME] = "time",
		[KIND_OBJ] = "object",
		[KIND_LIST] = "list of objects",
		[KIND_MAP] = "object of strings",
		[KIND_RAW] = "any JSON",
	};
	return f->kind == KIND_LIST && !f->shape ? "list of strings" : words[f->kind];
}

static const char *unit_word(const struct field *f)
{
	switch (f->kind) {
	case KIND_STR:
		return f->flags & IN_BYTES ? " bytes" : " characters";
	case KIND_SECRET:
		return " bytes";
	case KIND_LIST:
	case KIND_MAP:
		return " entries";
	case KIND_INT:
	case KIND_NUM:
	case KIND_BOOL:
	case KIND_ENUM:
	case KIND_TIME:
	case KIND_OBJ:
	case KIND_RAW:
	default:
		return "";
	}
}

void gen_field_type(const struct field *f, struct buf *b)
{
	buf_str(b, type_word(f));
	for (size_t i = 0; f->kind == KIND_ENUM && f->choices[i]; i++)
		buf_printf(b, "%s %s", i ? "," : "", f->choices[i]);
	if (f->min || f->max)
		buf_printf(
			b, ", %lld to %lld%s", (long long)f->min, (long long)f->max, unit_word(f));
}

/* -- MCP --------------------------------------------------------------------------------------- */

static void put_annotations(const struct tool *t, struct jw *w)
{
	jw_key(w, "annotations");
	jw_obj(w);
	jw_kstr(w, "title", t->title);
	jw_kbool(w, "readOnlyHint", t->flags & TOOL_READS);
	jw_kbool(w, "destructiveHint", t->flags & TOOL_DESTROYS);
	jw_kbool(w, "idempotentHint", t->flags & TOOL_REPEATABLE);
	jw_kbool(w, "openWorldHint", t->flags & TOOL_OPEN_WORLD);
	jw_end(w);
}

void gen_mcp_tools(struct jw *w)
{
	jw_list(w);
	for (size_t i = 0; tools[i]; i++) {
		const struct tool *t = tools[i];
		if (t->flags & TOOL_REST_ONLY)
			continue;
		jw_obj(w);
		jw_kstr(w, "name", t->name);
		jw_kstr(w, "title", t->title);
		jw_kstr(w, "description", t->doc);
		jw_key(w, "inputSchema");
		shape_schema(t->in, true, w);
		jw_key(w, "outputSchema");
		shape_schema(t->out, false, w);
		put_annotations(t, w);
		jw_end(w);
	}
	jw_end_list(w);
}

/* -- Markdown references ----------------------------------------------------------------------- */

/* A cell of a table must not hold the sign that ends it. */
static void cell(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == '|')
			buf_char(b, '\\');
		buf_char(b, *s);
	}
}

static void field_rows(const struct shape *s, bool input, const char *prefix, struct buf *b)
{
	const unsigned always = input ? REQUIRED : REQUIRED | NULLABLE;
	for (size_t i = 0; i < s->n; i++) {
		const struct field *f = &s->fields[i];
		if (!gen_shown(f, input))
			continue;
		buf_printf(b, "| `%s%s` | ", prefix, f->name);
		gen_field_type(f, b);
		buf_str(b, f->flags & always ? " | yes | " : " | no | ");
		cell(b, f->doc);
		buf_str(b, " |\n");
		if (f->shape) {
			char deeper[160];
			snprintf(deeper, sizeof deeper, "%s%s%s", prefix, f->name,
				f->kind == KIND_LIST ? "[]." : ".");
			field_rows(f->shape, input, deeper, b);
		}
	}
}

static void fields_table(const struct shape *s, bool input, struct buf *b)
{
	if (s->n == 0) {
		buf_str(b, "None.\n");
		return;
	}
	buf_printf(b, "| Field | Type | %s | What it is |\n|---|---|---|---|\n",
		input ? "Required" : "Always there");
	field_rows(s, input, "", b);
}

static void flags_line(const struct tool *t, struct buf *b)
{
	static const struct {
		unsigned flag;
		const char *text;
	} lines[] = {{TOOL_READS, "changes nothing"},
		{TOOL_DESTROYS, "may end or delete something"},
		{TOOL_REPEATABLE, "twice is like once"},
		{TOOL_OPEN_WORLD, "reaches outside of this server"},
		{TOOL_METERED, "counts as a call of the day"}, {TOOL_REST_ONLY, "REST only"},
		{TOOL_STREAMS, "reports progress over MCP"},
		{TOOL_REPLAYS, "takes an idempotency key"}};
	buf_printf(b, "Access: %s. ", gen_access(t));
	bool some = false;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		if (t->flags & lines[i].flag) {
			buf_printf(b, "%s%s", some ? "; " : "Marks: ", lines[i].text);
			some = true;
		}
	buf_str(b, some ? ".\n\n" : "\n\n");
}

static void tool_section(const struct tool *t, struct buf *b)
{
	struct route_text r;
	gen_route(t, &r);
	buf_printf(b, "## %s\n\n%s\n\n`%s %s`. ", t->name, t->doc, r.method, r.path);
	flags_line(t, b);
	buf_str(b, "### Arguments\n\n");
	fields_table(t->in, true, b);
	buf_str(b, "\n### Result\n\n");
	fields_table(t->out, false, b);
	buf_str(b, "\n### Errors of its own\n\n");
	for (size_t i = 0; t->errors[i] != OK; i++)
		buf_printf(b, "%s`%s`", i ? ", " : "", err_row(t->errors[i])->code);
	buf_str(b, t->errors[0] == OK ? "None.\n\n" : "\n\n");
}

void gen_tools(struct buf *b)
{
	buf_str(b, "# Tools\n\nEvery tool, from the table that the server itself uses. Errors that "
		   "any call "
		   "can meet are in the list of errors.\n\n");
	for (size_t i = 0; tools[i]; i++)
		tool_section(tools[i], b);
}

void gen_errors(struct buf *b)
{
	buf_str(b, "# Errors\n\nREST answers with `application/problem+json` and the status below. "
		   "MCP shows an "
		   "error as a tool error (`isError`) with the same members, or as a JSON-RPC "
		   "error where a number "
		   "is given. Codes are never renamed.\n\n"
		   "| Code | Status | JSON-RPC | May be repeated | What happened | What to do |\n"
		   "|---|---|---|---|---|---|\n");
	for (int e = OK + 1; e < ERR__MAX; e++) {
		const struct err_row *row = err_row((enum err)e);
		buf_printf(b, "| `%s` | %d | ", row->code, row->http);
		if (row->rpc)
			buf_printf(b, "%d", row->rpc);
		else
			buf_str(b, "tool error");
		buf_str(b, row->again ? " | yes | " : " | no | ");
		cell(b, row->text);
		buf_str(b, " | ");
		cell(b, row->advice);
		buf_str(b, " |\n");
	}
}
