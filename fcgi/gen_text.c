/*
 * The facts that models and people read, as Markdown: what this is, how to connect, plans, tools,
 * providers, limits, privacy; and /llms.txt, which is all of them.
 *
 * Numbers come from the settings and bounds.h, tools and providers from their tables. The pieces
 * know only headings, paragraphs, flat lists, code and bare https links, so that gen_html can
 * render them.
 */
#include "gen_part.h"

#include "bounds.h"
#include "provider.h"

#include <string.h>

void gen_text_intro(struct buf *b)
{
	buf_str(b, "Takes heavy jobs (builds, installs, test suites, headless browsers) off the "
		   "machine that an "
		   "agent lives on. It warns before memory runs out and runs the job in a fresh "
		   "sandbox on your own "
		   "provider account or your own computer, then stops the sandbox. You bring the "
		   "provider's key and "
		   "pay the provider directly; compute is never resold here.\n");
}

/* -- connecting -------------------------------------------------------------------------------- */

/* A word for the shell, in single quotes. */
static void shell_word(struct buf *b, const char *s)
{
	buf_char(b, '\'');
	for (; *s; s++)
		if (*s == '\'')
			buf_str(b, "'\\''");
		else
			buf_char(b, *s);
	buf_char(b, '\'');
}

static void ca_export(const struct conf *c, struct buf *b)
{
	if (!*c->ca_hint)
		return;
	buf_str(b, "export NODE_EXTRA_CA_CERTS=");
	shell_word(b, c->ca_hint);
	buf_char(b, '\n');
}

static void ca_option(const struct conf *c, struct buf *b)
{
	if (!*c->ca_hint)
		return;
	buf_str(b, "--cacert ");
	shell_word(b, c->ca_hint);
	buf_char(b, ' ');
}

void gen_text_connect(const struct conf *c, struct buf *b)
{
	const char *url = c->public_url;
	buf_str(b, "## Connect\n\nClaude Code:\n\n```\n");
	ca_export(c, b);
	buf_printf(b,
		"claude mcp add --transport http compute-connector %s/mcp --header "
		"\"Authorization: Bearer KEY\"\n"
		"```\n\nREST:\n\n```\ncurl ",
		url);
	ca_option(c, b);
	buf_printf(b,
		"-H \"Authorization: Bearer KEY\" -H \"Content-Type: application/json\" -d "
		"'{\"free_mb\":1480,"
		"\"job\":\"npm ci\"}' %s/api/run/check_memory\n```\n\n",
		url);
	buf_printf(b, "- MCP over streamable HTTP: `%s/mcp`\n", url);
	buf_printf(
		b, "- REST: `POST %s/api/run/TOOL` with the arguments as one JSON object\n", url);
	buf_printf(b, "- OpenAPI 3.1: %s/openapi.json\n", url);
	buf_printf(b, "- This text for models: %s/llms.txt\n", url);
	if (*c->ca_hint)
		buf_printf(b, "- This installation has its own certificate authority: `%s`\n",
			c->ca_hint);
	buf_str(b, "\n## Get a key\n\nOne request makes an account and its first owner key, "
		   "without a sign-up. The key is "
		   "shown this once:\n\n```\ncurl ");
	ca_option(c, b);
	buf_printf(b, "-X POST %s/api/key\n```\n\n", url);
	buf_printf(b,
		"Send it as `Authorization: Bearer KEY`. Give agents a key of their own (POST "
		"/api/keys with an owner "
		"key): an agent key runs and reads jobs and can not touch keys. Without any key "
		"check_memory, list_providers, "
		"provider_setup and usage_and_upgrade work, %lld calls a day from one address.\n\n",
		(long long)c->anonymous_calls);
}

void gen_text_clients(const struct conf *c, struct buf *b)
{
	const char *url = c->public_url;
	buf_str(b, "## Clients\n\n### Claude Code\n\nThe line above. `claude mcp list` shows "
		   "whether it is connected.\n\n"
		   "### Codex\n\n```\nexport COMPUTE_CONNECTOR_KEY=KEY\n");
	buf_printf(b,
		"codex mcp add compute-connector --url %s/mcp --bearer-token-env-var "
		"COMPUTE_CONNECTOR_KEY\n```\n\n",
		url);
	buf_str(b, "### MCP Inspector\n\nNeeds Node 22.19 or later.\n\n```\n");
	ca_export(c, b);
	buf_printf(b,
		"npx @modelcontextprotocol/inspector --cli %s/mcp --transport http --method "
		"tools/list --header "
		"\"Authorization: Bearer KEY\" --stored-auth-only\n```\n\n",
		url);
	buf_str(b, "### Clients that only start local programs\n\nThrough mcp-remote:\n\n```\n");
	buf_printf(b,
		"{\"mcpServers\":{\"compute-connector\":{\"command\":\"npx\",\"args\":[\"-y\","
		"\"mcp-remote\",\"%s/mcp\","
		"\"--header\",\"Authorization: Bearer KEY\"]}}}\n```\n\n",
		url);
	buf_printf(b,
		"### ChatGPT\n\nIn the editor of a GPT create an action, import its schema from "
		"%s/openapi.json and choose "
		"API key, Bearer as authentication. ChatGPT must be able to reach that address "
		"from the internet.\n\n",
		url);
	if (*c->ca_hint)
		buf_str(b, "### Private certificate authority\n\nClients made with Node take "
			   "NODE_EXTRA_CA_CERTS, curl takes --cacert; "
			   "give other clients the certificate file named above in their own "
			   "way.\n\n");
}

/* -- plans ------------------------------------------------------------------------------------- */

static void offer(const char *what, const char *price, const char *url, struct buf *b)
{
	if (*url)
		buf_printf(b, "- Pro by the %s: %s, %s\n", what,
			*price ? price : "price on the page", url);
}

void gen_text_plans(const struct conf *c, struct buf *b)
{
	buf_str(b, "## Plans\n\n");
	buf_printf(b,
		"- Free: %lld calls a day, watch-only. Memory checks work; run_job runs nothing "
		"and is noted for the weekly "
		"report. No provider key is stored. It is not a trial.\n",
		(long long)c->free_calls);
	buf_printf(b, "- Pro: %lld calls a day, and jobs run.\n", (long long)c->pro_calls);
	offer("month", c->upgrade_monthly_price, c->upgrade_monthly_url, b);
	offer("year", c->upgrade_yearly_price, c->upgrade_yearly_url, b);
	if (strcmp(c->default_plan, "pro") == 0)
		buf_str(b, "- New accounts of this installation are on Pro at once.\n");
	else if (!*c->upgrade_monthly_url && !*c->upgrade_yearly_url)
		buf_str(b, "- The operator of this installation sets the plan of an account.\n");
	buf_printf(b,
		"- From one address %lld new accounts can be made a day. Counts start again at "
		"midnight UTC.\n",
		(long long)c->anonymous_accounts);
	buf_str(b, "- What a provider charges comes on top and goes to the provider.\n\n");
}

void gen_text_providers(struct buf *b)
{
	buf_str(b, "## Providers\n\n");
	for (size_t i = 0; providers[i]; i++) {
		const struct provider *p = providers[i];
		buf_printf(b, "- `%s` (%s)%s: %s", p->name, p->title,
			p->ops ? "" : ", not connected in this version", p->how);
		if (p->price)
			buf_printf(b, " %s", p->price);
		if (p->price_url)
			buf_printf(b, " %s", p->price_url);
		buf_char(b, '\n');
	}
	buf_str(b, "\nprovider_setup explains each of them step by step; save_provider_key stores "
		   "the key.\n\n");
}

/* -- limits and privacy ------------------------------------------------------------------------ */

void gen_text_bounds(struct buf *b)
{
	buf_str(b, "## How big a job can be\n\n");
	buf_printf(b,
		"- Command: %d characters. Time limit: 1 to %d s, %d s unless said otherwise; a "
		"provider may allow less.\n",
		CMD_CHARS_MAX, TIMEOUT_S_MAX, TIMEOUT_S_DEFAULT);
	buf_printf(b,
		"- One call waits up to %d s, %d s unless said otherwise; the job goes on behind "
		"it, also when the client "
		"disconnects.\n",
		WAIT_S_MAX, WAIT_S_DEFAULT);
	buf_printf(b,
		"- Input files: %d, together %d bytes once decoded. Clone or download larger "
		"inputs inside the job.\n",
		FILES_MAX, FILES_BYTES_MAX);
	buf_printf(b, "- Environment: %d variables, each value at most %d bytes.\n", ENV_NAMES_MAX,
		ENV_VALUE_BYTES_MAX);
	buf_printf(b,
		"- Output: the last %d bytes of stdout and of stderr, for %d minutes after the "
		"end.\n",
		TAIL_BYTES_MAX, RESULT_TTL_S / 60);
	buf_printf(b, "- An idempotency key is remembered for %d hours.\n\n", IDEM_TTL_H);
}

void gen_text_privacy(const struct conf *c, struct buf *b)
{
	buf_str(b, "## Privacy\n\n- Of a job only the first word of its command is kept (such as "
		   "npm), the provider, times, exit code "
		   "and memory numbers. Never the command, files, environment or output.\n");
	buf_printf(b, "- These rows are deleted after %lld days.\n", (long long)c->retention_days);
	buf_str(b, "- A result waits for its pick-up encrypted to the API key that started the "
		   "job; the server can not read it.\n"
		   "- Provider keys are sealed with AES-256-GCM before they reach the database, "
		   "bound to the account and the key's "
		   "name. No call returns one, and no log holds one.\n"
		   "- Calls without a key leave nothing but a counter for the day.\n"
		   "- DELETE /api/account stops what runs, then erases the account's data key and "
		   "its rows.\n\n");
}

/* -- llms.txt ---------------------------------------------------------------------------------- */

static void inputs_line(const struct shape *s, struct buf *b)
{
	bool some = false;
	buf_str(b, "Inputs: ");
	for (size_t i = 0; i < s->n; i++) {
		if (!gen_shown(&s->fields[i], true))
			continue;
		buf_printf(b, "%s`%s` (", some ? "; " : "", s->fields[i].name);
		gen_field_type(&s->fields[i], b);
		buf_str(b, s->fields[i].flags & REQUIRED ? ", required)" : ")");
		some = true;
	}
	buf_str(b, some ? ".\n\n" : "none.\n\n");
}

static void tools_section(bool rest_only, struct buf *b)
{
	for (size_t i = 0; tools[i]; i++) {
		const struct tool *t = tools[i];
		struct route_text r;
		if (!(t->flags & TOOL_REST_ONLY) == rest_only)
			continue;
		gen_route(t, &r);
		buf_printf(b, "### %s\n\n%s Access: %s.", t->name, t->doc, gen_access(t));
		if (rest_only)
			buf_printf(b, " `%s %s`", r.method, r.path);
		buf_str(b, "\n\n");
		inputs_line(t->in, b);
	}
}

void gen_llms(const struct conf *c, struct buf *b)
{
	buf_str(b, "# Compute Connector\n\n> ");
	gen_text_intro(b);
	buf_char(b, '\n');
	gen_text_connect(c, b);
	gen_text_plans(c, b);
	buf_str(b, "## Tools\n\nOver MCP and as POST /api/run/TOOL alike. Start with "
		   "check_memory.\n\n");
	tools_section(false, b);
	buf_str(b, "## Accounts and API keys\n\nREST only.\n\n");
	tools_section(true, b);
	gen_text_providers(b);
	gen_text_bounds(b);
	buf_str(b, "## Results and errors\n\nA non-zero exit code, a time-out and a cancelled job "
		   "are results. REST errors are "
		   "application/problem+json with a stable `code`, the `field` at fault and "
		   "advice; MCP shows the same as a tool "
		   "error. /openapi.json lists every code.\n\n");
	gen_text_privacy(c, b);
	gen_text_clients(c, b);
}
