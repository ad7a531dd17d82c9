/* tools/call of the test build: its own rows, then the product's tools. */
#include "fixture.h"

#include "block.h"
#include "bounds.h"
#include "node.h"
#include "seal.h"
#include "text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define STEP_MS   50
#define SLEEP_MAX 5

static void sleep_ms(int64_t ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	block_begin();
	(void)nanosleep(&t, NULL);
	block_end();
}

/* -- notifications ----------------------------------------------------------------------------- */

static void notify(struct exchange *x, const struct json *token, int step)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kstr(&w, "jsonrpc", "2.0");
	jw_kstr(&w, "method", token ? "notifications/progress" : "notifications/message");
	jw_key(&w, "params");
	jw_obj(&w);
	if (token) {
		jw_key(&w, "progressToken");
		jw_json(&w, token);
		jw_kint(&w, "progress", step * 50);
		jw_kint(&w, "total", 100);
	} else {
		jw_kstr(&w, "level", "info");
		jw_kstr(&w, "data", "The tool goes on.");
	}
	jw_end(&w);
	jw_end(&w);
	if (!x->streaming)
		stream_begin(x);
	(void)stream_event(x, b.p, b.n);
}

static void notify_thrice(struct exchange *x, const struct json *token)
{
	for (int step = 0; step < 3; step++) {
		notify(x, token, step);
		sleep_ms(STEP_MS);
	}
}

static void notify_as_it_does(
	struct exchange *x, const struct message *m, const struct fixture_tool *t)
{
	const struct json *token = json_get(m->meta, "progressToken");
	if (!mcp_accepts(x, "text/event-stream"))
		return;
	if (t->reports && token)
		notify_thrice(x, token);
	if (t->logs && !m->modern)
		notify_thrice(x, NULL);
}

/* -- the header of a parameter ----------------------------------------------------------------- */

#define WRAP_FRONT "=?base64?"
#define WRAP_BACK  "?="

static const char *unwrap(const struct exchange *x, const char *v)
{
	size_t n = v ? strlen(v) : 0, front = strlen(WRAP_FRONT), back = strlen(WRAP_BACK), len;
	if (n < front + back || strncmp(v, WRAP_FRONT, front) != 0 ||
		strcmp(v + n - back, WRAP_BACK) != 0)
		return v;
	return (const char *)base64_decode(x->req.arena, v + front, n - front - back, &len);
}

static enum err check_header(
	struct exchange *x, struct message *m, const struct fixture_tool *t, const char *value)
{
	if (!t->header || !m->modern || !value)
		return OK;
	const char *sent = unwrap(x, FCGX_GetParam(t->header, x->fcgi->envp));
	m->http = 0;
	if (!sent || strcmp(sent, value) != 0)
		return fail(
			ERR_HEADER_MISMATCH, "Mcp-Param-Region", "must equal the argument region");
	return OK;
}

/* -- questions --------------------------------------------------------------------------------- */

/* name.round.mac: neither another tool's nor another round's, and nobody else's. */
static const char *state_of(const struct exchange *x, const struct fixture_tool *t, int round)
{
	uint8_t mac[32];
	char hex[65];
	const char *text = arena_printf(x->req.arena, "%s.%d", t->name, round);
	seal_hmac(&node()->own, "fixture", text, strlen(text), mac);
	hex_encode(hex, mac, sizeof mac);
	return arena_printf(x->req.arena, "%s.%s", text, hex);
}

/* The round that the client answers; without a state it is the first one. */
static enum err find_round(
	const struct exchange *x, struct message *m, const struct fixture_tool *t, int *ret)
{
	const char *state = json_str(json_get(m->params, "requestState"), NULL);
	*ret = 0;
	if (!state)
		return OK;
	for (; *ret < ROUNDS_MAX; ++*ret)
		if (strcmp(state_of(x, t, *ret), state) == 0)
			return OK;
	return fixture_wrong(m, "params.requestState", "it is not what was given");
}

static enum err ask_round(struct exchange *x, struct message *m, struct jw *w,
	const struct fixture_tool *t, int round, unsigned answered)
{
	if (fixture_put_asks(w, m, t->rounds[round], answered) == 0)
		return fixture_lacks(m, "{\"elicitation\":{}}");
	if (t->has_state)
		jw_kstr(w, "requestState", state_of(x, t, round));
	mcp_put_type(w, x, m, "input_required", OK);
	return OK;
}

/* *ret_asked: a question was written, and that is the answer. */
static enum err ask(struct exchange *x, struct message *m, struct jw *w,
	const struct fixture_tool *t, bool *ret_asked)
{
	int round;
	const struct json *answers = json_get(m->params, "inputResponses");
	*ret_asked = false;
	if (!t->rounds[0][0].key)
		return OK;
	enum err e = find_round(x, m, t, &round);
	if (e)
		return e;
	unsigned answered = fixture_answered(t->rounds[round], answers);
	if (t->has_state && !json_get(m->params, "requestState"))
		answered = 0;
	bool done = answered != 0 && answered == fixture_all(t->rounds[round]);
	if (done && round + 1 < ROUNDS_MAX && t->rounds[round + 1][0].key) {
		round++;
		answered = 0;
	} else if (done) {
		return OK;
	}
	*ret_asked = true;
	return ask_round(x, m, w, t, round, answered);
}

/* -- the call ---------------------------------------------------------------------------------- */

static const char *word_of(const struct message *m, const struct fixture_tool *t)
{
	const struct json *v = NULL;
	if (t->argument)
		v = json_get(json_get(m->params, "arguments"), t->argument);
	if (t->answer_of)
		v = json_get(json_get(json_get(json_get(m->params, "inputResponses"), t->answer_of),
				     "content"),
			"name");
	return json_type(v) == JSON_STR ? json_str(v, NULL) : NULL;
}

static enum err check_client(
	const struct exchange *x, struct message *m, const struct fixture_tool *t)
{
	if (t->capability && m->modern && !fixture_declares(m, t->capability))
		return fixture_lacks(m, arena_printf(x->req.arena, "{\"%s\":{}}", t->capability));
	if (t->only_task && !m->tasks)
		return fixture_lacks(m, "{\"extensions\":{\"" MCP_TASKS "\":{}}}");
	return OK;
}

static void put_answer(
	struct jw *w, const struct exchange *x, const struct fixture_tool *t, const char *word)
{
	if (t->content) {
		jw_key(w, "content");
		jw_raw(w, t->content, strlen(t->content));
	} else {
		fixture_put_text(w, arena_printf(x->req.arena, "%s%s%s", t->before,
					    word ? word : "", t->after ? t->after : ""));
	}
	if (t->is_error)
		jw_kbool(w, "isError", true);
}

/* A client without tasks waits as long as the tool takes. */
static void work(const struct message *m, const struct fixture_tool *t)
{
	const struct json *s = json_get(json_get(m->params, "arguments"), "seconds");
	double seconds = s ? json_num(s) : 0;
	if (t->task && seconds > 0)
		sleep_ms((int64_t)((seconds < SLEEP_MAX ? seconds : SLEEP_MAX) * 1000));
}

enum err fixture_call(struct exchange *x, struct message *m, struct jw *w)
{
	const struct json *name = json_get(m->params, "name");
	const struct fixture_tool *t = fixture_tools;
	bool asked;
	while (t->name &&
		(json_type(name) != JSON_STR || strcmp(t->name, json_str(name, NULL)) != 0))
		t++;
	if (!t->name)
		return mcp_tools_call(x, m, w);
	enum err e = check_client(x, m, t);
	if (!e)
		e = check_header(x, m, t, word_of(m, t));
	if (!e)
		e = ask(x, m, w, t, &asked);
	if (e || asked)
		return e;
	if (t->task && m->tasks)
		return fixture_begin_task(x, m, w, t, word_of(m, t));
	work(m, t);
	notify_as_it_does(x, m, t);
	put_answer(w, x, t, word_of(m, t));
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}
