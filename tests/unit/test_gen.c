/*
 * Generated documents: complete, valid, and closed to what a setting may hold.
 *
 * With an argument this program prints one document instead, for the tests that judge it with
 * public validators: openapi, mcp-tools, llms, start, errors, limits, tools.
 */
#include "gen_part.h" /* before cmocka.h, whose macro fail() hides our function */

#include "arena.h"
#include "limits_texts.h"
#include "provider.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT_MAX (4 << 20)

static const struct conf plain = {
	.public_url = "https://connector.example",
	.default_plan = "free",
	.ca_hint = "",
	.free_calls = 501,
	.pro_calls = 50001,
	.anonymous_calls = 502,
	.anonymous_accounts = 6,
	.upgrade_monthly_url = "",
	.upgrade_monthly_price = "",
	.upgrade_yearly_url = "",
	.upgrade_yearly_price = "",
	.retention_days = 91,
};

static const struct conf priced = {
	.public_url = "https://connector.example",
	.default_plan = "pro",
	.ca_hint = "/srv/my ca's/ca.pem",
	.upgrade_monthly_url = "https://pay.example/month",
	.upgrade_monthly_price = "9 euro",
	.upgrade_yearly_url = "https://pay.example/year",
	.upgrade_yearly_price = "90 euro",
};

/* What conf.c would never let through; the documents must hold all the same. */
static const struct conf hostile = {
	.public_url = "https://x\"'><script>alert(1)</script>&`</code><b>",
	.default_plan = "\"><i>",
	.ca_hint = "/a`\"'><script>2</script>",
	.upgrade_monthly_url = "https://y\" onclick=\"z",
	.upgrade_monthly_price = "<b>9</b>",
	.upgrade_yearly_url = "javascript:alert(3)",
	.upgrade_yearly_price = "]](https://z)",
};

static struct buf b;

static int begin(void **state)
{
	(void)state;
	buf_init(&b, DOCUMENT_MAX);
	return 0;
}

static int end(void **state)
{
	(void)state;
	buf_done(&b);
	return 0;
}

static void mcp_tools(const struct conf *c, struct buf *out)
{
	(void)c;
	struct jw w = jw_new(out);
	gen_mcp_tools(&w);
}

static void errors(const struct conf *c, struct buf *out)
{
	(void)c;
	gen_errors(out);
}

static void limits(const struct conf *c, struct buf *out)
{
	(void)c;
	gen_limits(out);
}

static void tools_md(const struct conf *c, struct buf *out)
{
	(void)c;
	gen_tools(out);
}

static const struct document {
	const char *name;
	void (*gen)(const struct conf *c, struct buf *out);
} documents[] = {{"openapi", gen_openapi}, {"mcp-tools", mcp_tools}, {"llms", gen_llms},
	{"start", gen_start}, {"errors", errors}, {"limits", limits}, {"tools", tools_md}};

static void want(const char *text)
{
	if (!strstr(b.p, text))
		fail_msg("missing: %s", text);
}

static void refuse(const char *text)
{
	const char *at = strstr(b.p, text);
	if (at)
		fail_msg("must not be there: %.80s", at);
}

/* The member at a path of keys that ends with NULL. */
static const struct json *member(const struct json *j, const char *const *keys)
{
	for (; *keys; keys++) {
		j = json_get(j, *keys);
		if (!j)
			fail_msg("no member %s", *keys);
	}
	return j;
}
#define MEMBER(j, ...) member(j, (const char *const[]){__VA_ARGS__, NULL})

static bool has(const struct json *list, const char *word)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (strcmp(json_str(json_at(list, i), NULL), word) == 0)
			return true;
	return false;
}

static struct json *parsed(void)
{
	struct json *root;
	assert_false(b.full);
	if (json_parse(b.p, b.n, &root))
		fail_msg("the document does not pass the gate: %s", fault_of(ERR_BAD_JSON)->detail);
	return root;
}

/* -- OpenAPI ----------------------------------------------------------------------------------- */

static const struct json *operation(const struct json *root, const struct tool *t)
{
	struct route_text r;
	char method[8] = "";
	gen_route(t, &r);
	for (size_t i = 0; r.method[i]; i++)
		method[i] = (char)(r.method[i] | 0x20);
	return MEMBER(root, "paths", r.path, method);
}

static void openapi_has_an_operation_for_every_tool(void **state)
{
	(void)state;
	gen_openapi(&plain, &b);
	CLEANUP_JSON struct json *root = parsed();
	assert_string_equal(json_str(MEMBER(root, "openapi"), NULL), "3.1.0");
	assert_string_equal(json_str(json_get(json_at(MEMBER(root, "servers"), 0), "url"), NULL),
		plain.public_url);
	for (size_t i = 0; tools[i]; i++) {
		const struct json *o = operation(root, tools[i]);
		char status[8];
		snprintf(status, sizeof status, "%d", tools[i]->status ? tools[i]->status : 200);
		assert_string_equal(json_str(MEMBER(o, "operationId"), NULL), tools[i]->name);
		MEMBER(o, "responses", status, "content", "application/json", "schema", "$ref");
		MEMBER(o, "responses", "401");
		MEMBER(o, "responses", "503");
	}
}

static void openapi_declares_every_error_of_every_tool(void **state)
{
	(void)state;
	gen_openapi(&plain, &b);
	CLEANUP_JSON struct json *root = parsed();
	for (size_t i = 0; tools[i]; i++)
		for (int e = OK + 1; e < ERR__MAX; e++) {
			const struct err_row *row = err_row((enum err)e);
			char status[8], code[64];
			if (!gen_can_fail(tools[i], (enum err)e))
				continue;
			snprintf(status, sizeof status, "%d", row->http);
			snprintf(code, sizeof code, "`%s`", row->code);
			const struct json *r =
				MEMBER(operation(root, tools[i]), "responses", status);
			assert_non_null(strstr(json_str(MEMBER(r, "description"), NULL), code));
			MEMBER(r, "content", "application/problem+json", "schema", "$ref");
		}
}

static void openapi_lists_every_code_once(void **state)
{
	(void)state;
	gen_openapi(&plain, &b);
	CLEANUP_JSON struct json *root = parsed();
	const struct json *all = MEMBER(root, "x-errors");
	const struct json *codes =
		MEMBER(root, "components", "schemas", "Problem", "properties", "code", "enum");
	assert_int_equal(json_len(all), ERR__MAX - 1);
	assert_int_equal(json_len(codes), ERR__MAX - 1);
	for (int e = OK + 1; e < ERR__MAX; e++) {
		const struct json *row = json_at(all, (size_t)e - 1);
		assert_string_equal(
			json_str(json_get(row, "code"), NULL), err_row((enum err)e)->code);
		assert_int_equal(json_int(json_get(row, "status")), err_row((enum err)e)->http);
		assert_true(has(codes, err_row((enum err)e)->code));
	}
}

static void openapi_asks_for_a_key_only_where_one_is_needed(void **state)
{
	(void)state;
	gen_openapi(&plain, &b);
	CLEANUP_JSON struct json *root = parsed();
	for (size_t i = 0; tools[i]; i++) {
		const struct json *s = MEMBER(operation(root, tools[i]), "security");
		bool anyone = tools[i]->role == ROLE_ANYONE;
		assert_int_equal(json_len(s), anyone ? 2 : 1);
		assert_int_equal(json_len(json_at(s, 0)), anyone ? 0 : 1);
		assert_non_null(json_get(json_at(s, anyone ? 1 : 0), "bearer"));
	}
}

static void openapi_gives_no_body_to_get_and_the_header_to_replays(void **state)
{
	(void)state;
	gen_openapi(&plain, &b);
	CLEANUP_JSON struct json *root = parsed();
	for (size_t i = 0; tools[i]; i++) {
		const struct json *o = operation(root, tools[i]);
		struct route_text r;
		gen_route(tools[i], &r);
		if (strcmp(r.method, "GET") == 0)
			assert_null(json_get(o, "requestBody"));
		if (strcmp(r.method, "POST") == 0)
			assert_non_null(json_get(o, "requestBody"));
		const struct json *p = json_get(o, "parameters");
		size_t n = (tools[i]->flags & TOOL_REPLAYS ? 1U : 0U) +
			   (strstr(r.path, "{id}") ? 1U : 0U);
		assert_int_equal(json_len(p), n);
		if (tools[i]->flags & TOOL_REPLAYS)
			assert_string_equal(json_str(json_get(json_at(p, n - 1), "name"), NULL),
				"Idempotency-Key");
	}
}

static void openapi_holds_with_any_settings(void **state)
{
	(void)state;
	gen_openapi(&hostile, &b);
	CLEANUP_JSON struct json *root = parsed();
	assert_string_equal(json_str(json_get(json_at(MEMBER(root, "servers"), 0), "url"), NULL),
		hostile.public_url);
	refuse("<script>");
}

/* -- MCP --------------------------------------------------------------------------------------- */

static void mcp_lists_the_tools_in_order_without_rest_only_ones(void **state)
{
	size_t n = 0;
	(void)state;
	mcp_tools(NULL, &b);
	CLEANUP_JSON struct json *root = parsed();
	for (size_t i = 0; tools[i]; i++) {
		if (tools[i]->flags & TOOL_REST_ONLY)
			continue;
		const struct json *t = json_at(root, n++);
		const struct json *a = MEMBER(t, "annotations");
		assert_string_equal(json_str(MEMBER(t, "name"), NULL), tools[i]->name);
		assert_string_equal(json_str(MEMBER(t, "title"), NULL), tools[i]->title);
		assert_string_equal(json_str(MEMBER(t, "inputSchema", "type"), NULL), "object");
		assert_string_equal(json_str(MEMBER(t, "outputSchema", "type"), NULL), "object");
		assert_int_equal(
			json_bool(MEMBER(a, "readOnlyHint")), !!(tools[i]->flags & TOOL_READS));
		assert_int_equal(json_bool(MEMBER(a, "destructiveHint")),
			!!(tools[i]->flags & TOOL_DESTROYS));
		assert_int_equal(json_bool(MEMBER(a, "idempotentHint")),
			!!(tools[i]->flags & TOOL_REPEATABLE));
		assert_int_equal(json_bool(MEMBER(a, "openWorldHint")),
			!!(tools[i]->flags & TOOL_OPEN_WORLD));
	}
	assert_int_equal(json_len(root), n);
	assert_int_equal(n, 11);
}

static void instructions_fit_and_name_only_tools_that_exist(void **state)
{
	static const char *const named[] = {"check_memory", "run_job", "get_job", "cancel_job",
		"list_jobs", "weekly_report", "list_providers", "provider_setup",
		"save_provider_key", "usage_and_upgrade"};
	(void)state;
	assert_true(strlen(gen_instructions) < 2000);
	assert_null(strchr(gen_instructions, '\n'));
	for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
		assert_non_null(strstr(gen_instructions, named[i]));
		assert_non_null(tool_find(named[i]));
	}
}

/* Clients cut what is long, and a model reads all of it before every choice. */
static void texts_of_tools_are_short_and_plain(void **state)
{
	(void)state;
	for (size_t i = 0; tools[i]; i++) {
		const struct tool *t = tools[i];
		assert_true(strlen(t->name) <= 32);
		assert_int_equal(strspn(t->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(t->name));
		assert_in_range(strlen(t->title), 5, 40);
		assert_in_range(strlen(t->doc), 40, 800);
		assert_null(strchr(t->doc, '\n'));
		assert_null(strstr(t->doc, "  "));
		for (size_t k = 0; k < t->in->n; k++)
			assert_in_range(strlen(t->in->fields[k].doc), 5, 240);
		for (size_t k = 0; k < t->out->n; k++)
			assert_in_range(strlen(t->out->fields[k].doc), 5, 240);
	}
	mcp_tools(NULL, &b);
	assert_true(b.n < 64 << 10);
}

/* -- references -------------------------------------------------------------------------------- */

static void error_list_has_every_code(void **state)
{
	(void)state;
	gen_errors(&b);
	for (int e = OK + 1; e < ERR__MAX; e++) {
		char row[96];
		snprintf(row, sizeof row, "| `%s` | %d |", err_row((enum err)e)->code,
			err_row((enum err)e)->http);
		want(row);
	}
}

static void limit_list_has_every_limit_with_its_value(void **state)
{
	size_t n = 0, rows = 0;
	(void)state;
	gen_limits(&b);
	for (const char *p = limits_texts[0].text; (p = strstr(p, "\n#define ")); n++) {
		char row[96];
		p += strlen("\n#define ");
		snprintf(row, sizeof row, "| `%.*s` | ", (int)strcspn(p, " "), p);
		want(row);
	}
	for (const char *p = b.p; (p = strstr(p, "\n| `")); p++)
		rows++;
	assert_int_equal(n, rows);
	assert_true(n > 50);
	want("| `BODY_BYTES_MAX` | 4194304 | ");
	want("| `JSON_INT_MAX` | 9007199254740991 | ");
	want("| `CMD_CHARS_MAX` | 16000 | characters");
	want("## What a caller may send\n");
	refuse("*/");
}

static void tool_list_has_every_tool_and_field(void **state)
{
	(void)state;
	gen_tools(&b);
	for (size_t i = 0; tools[i]; i++) {
		char row[128];
		snprintf(row, sizeof row, "## %s\n\n%s", tools[i]->name, tools[i]->doc);
		row[sizeof row - 1] = 0;
		want(row);
		for (size_t k = 0; k < tools[i]->in->n; k++) {
			snprintf(row, sizeof row, "| `%s` | ", tools[i]->in->fields[k].name);
			want(row);
		}
	}
	want("| `files[].path` | string, 1 to 512 bytes | yes |");
}

/* -- llms.txt and the start page --------------------------------------------------------------- */

static void llms_tells_tools_plans_and_clients(void **state)
{
	(void)state;
	gen_llms(&plain, &b);
	for (size_t i = 0; tools[i]; i++) {
		char head[96];
		snprintf(head, sizeof head, "### %s\n", tools[i]->name);
		want(head);
		want(tools[i]->doc);
	}
	for (size_t i = 0; providers[i]; i++)
		want(providers[i]->title);
	want("claude mcp add --transport http compute-connector https://connector.example/mcp "
	     "--header "
	     "\"Authorization: Bearer KEY\"");
	want("Free: 501 calls");
	want("Pro: 50001 calls");
	want("502 calls a day from one address");
	want("6 new accounts");
	want("after 91 days");
	want("`cmd` (string, 1 to 16000 characters, required)");
	static const char *const clients[] = {
		"Claude Code", "Codex", "Inspector", "mcp-remote", "ChatGPT"};
	for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++)
		want(clients[i]);
}

static void nothing_is_said_about_prices_and_authorities_that_do_not_exist(void **state)
{
	(void)state;
	gen_llms(&plain, &b);
	refuse("NODE_EXTRA_CA_CERTS");
	refuse("--cacert");
	refuse("Pro by the");
	refuse("on Pro at once");
	refuse("Access: any API key, Pro plan");
	refuse("(null)");
}

static void prices_and_a_private_authority_are_told(void **state)
{
	(void)state;
	gen_llms(&priced, &b);
	want("Pro by the month: 9 euro, https://pay.example/month");
	want("Pro by the year: 90 euro, https://pay.example/year");
	want("on Pro at once");
	want("export NODE_EXTRA_CA_CERTS='/srv/my ca'\\''s/ca.pem'\n");
	want("curl --cacert '/srv/my ca'\\''s/ca.pem' -X POST");
}

static void start_page_shows_connect_line_and_tools(void **state)
{
	(void)state;
	gen_start(&priced, &b);
	assert_false(b.full);
	for (size_t i = 0; tools[i]; i++) {
		char head[96];
		snprintf(head, sizeof head, "<dt><code>%s</code></dt>", tools[i]->name);
		if (!(tools[i]->flags & TOOL_REST_ONLY))
			want(head);
	}
	want("<html lang=\"en\">");
	want("claude mcp add --transport http compute-connector https://connector.example/mcp "
	     "--header "
	     "&quot;Authorization: Bearer KEY&quot;");
	want("<a href=\"https://pay.example/month\">https://pay.example/month</a>");
	refuse("<script");
	refuse("`");
}

static void start_page_lets_no_setting_out_of_its_place(void **state)
{
	(void)state;
	gen_start(&hostile, &b);
	want("&lt;script&gt;alert(1)&lt;/script&gt;");
	refuse("<script");
	refuse("<b>");
	refuse("<i>");
	refuse("\" onclick");
	refuse("href=\"javascript");
}

static void start_page_policy_names_the_hash_of_its_style(void **state)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int n;
	(void)state;
	gen_start(&plain, &b);
	const char *from = strstr(b.p, "<style>") + strlen("<style>"),
		   *to = strstr(b.p, "</style>");
	assert_int_equal(EVP_Digest(from, (size_t)(to - from), digest, &n, EVP_sha256(), NULL), 1);
	struct arena *a = arena_new(4096);
	char *want_hash = arena_printf(a, "style-src 'sha256-%s'", base64_encode(a, digest, n));
	assert_non_null(strstr(gen_start_policy, want_hash));
	assert_non_null(strstr(gen_start_policy, "default-src 'none'"));
	arena_free(a);
}

static void rendering_escapes_everything_it_is_given(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{"", ""},
		{"# a<b>", "<h1>a&lt;b&gt;</h1>\n"},
		{"#no heading", "<p>#no heading</p>\n"},
		{"#", "<p>#</p>\n"},
		{"a & \"b\"", "<p>a &amp; &quot;b&quot;</p>\n"},
		{"one\ntwo", "<p>one two</p>\n"},
		{"- `x<y`", "<ul>\n<li><code>x&lt;y</code></li>\n</ul>\n"},
		{"an open ` mark", "<p>an open ` mark</p>\n"},
		{"```\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>\n"},
		{"```\nnever closed", "<pre><code>never closed\n</code></pre>\n"},
		{"see https://a.b/c.", "<p>see <a href=\"https://a.b/c\">https://a.b/c</a>.</p>\n"},
		{"https://a\"b", "<p><a href=\"https://a\">https://a</a>&quot;b</p>\n"},
		{"https://", "<p>https://</p>\n"},
		{"http://a.b javascript:c", "<p>http://a.b javascript:c</p>\n"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		buf_reset(&b);
		gen_html(cases[i].from, &b);
		assert_string_equal(b.p, cases[i].to);
	}
}

static void every_document_is_the_same_twice_and_tells_when_it_does_not_fit(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
		CLEANUP_BUF struct buf again, small;
		buf_init(&again, DOCUMENT_MAX);
		buf_init(&small, 100);
		buf_reset(&b);
		documents[i].gen(&plain, &b);
		documents[i].gen(&plain, &again);
		documents[i].gen(&plain, &small);
		assert_string_equal(b.p, again.p);
		assert_true(small.full);
		assert_false(b.full);
		assert_true(utf8_valid(b.p, b.n, NULL));
		refuse("(null)");
	}
}

static int print(const char *name)
{
	for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
		if (strcmp(documents[i].name, name) != 0)
			continue;
		buf_init(&b, DOCUMENT_MAX);
		documents[i].gen(&plain, &b);
		size_t n = fwrite(b.p, 1, b.n, stdout);
		bool whole = n == b.n && !b.full;
		buf_done(&b);
		return whole ? 0 : 1;
	}
	return 2;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(openapi_has_an_operation_for_every_tool),
		TEST(openapi_declares_every_error_of_every_tool),
		TEST(openapi_lists_every_code_once),
		TEST(openapi_asks_for_a_key_only_where_one_is_needed),
		TEST(openapi_gives_no_body_to_get_and_the_header_to_replays),
		TEST(openapi_holds_with_any_settings),
		TEST(mcp_lists_the_tools_in_order_without_rest_only_ones),
		TEST(instructions_fit_and_name_only_tools_that_exist),
		TEST(texts_of_tools_are_short_and_plain),
		TEST(error_list_has_every_code),
		TEST(limit_list_has_every_limit_with_its_value),
		TEST(tool_list_has_every_tool_and_field),
		TEST(llms_tells_tools_plans_and_clients),
		TEST(nothing_is_said_about_prices_and_authorities_that_do_not_exist),
		TEST(prices_and_a_private_authority_are_told),
		TEST(start_page_shows_connect_line_and_tools),
		TEST(start_page_lets_no_setting_out_of_its_place),
		TEST(start_page_policy_names_the_hash_of_its_style),
		TEST(rendering_escapes_everything_it_is_given),
		TEST(every_document_is_the_same_twice_and_tells_when_it_does_not_fit),
	};
	return argc > 1 ? print(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
