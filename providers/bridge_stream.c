/*
 * Reads the stream of a command, one JSON object a line, in pieces of any size.
 *
 * Promises: bytes are counted by ourselves and each is taken once, a gap is never bridged, and only
 * an exit frame of the exact form yields an exit code. Runs in the thread of the pool, so it
 * reports by its state and not through fail().
 */
#include "bridge_reply.h"

#include "arena.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <string.h>

void bridge_stream_init(struct bridge_stream *s, const char *exec_id)
{
	*s = (struct bridge_stream){.exec_id = exec_id};
	buf_init(&s->line, EXEC_LINE_MAX);
	buf_init(&s->out, EXEC_OUTPUT_MAX);
	buf_init(&s->err, EXEC_OUTPUT_MAX);
}

void bridge_stream_done(struct bridge_stream *s)
{
	buf_done(&s->line);
	buf_done(&s->out);
	buf_done(&s->err);
}

void bridge_stream_open(struct bridge_stream *s)
{
	buf_reset(&s->line);
	s->end = BRIDGE_OPEN;
}

/* "" when the member is absent or no string. */
static const char *word(const struct json *o, const char *key)
{
	const struct json *j = json_get(o, key);
	return json_type(j) == JSON_STR ? json_str(j, NULL) : "";
}

static bool bad(struct bridge_stream *s)
{
	s->end = BRIDGE_BAD;
	return false;
}

static bool take_output(struct bridge_stream *s, const struct json *o)
{
	const struct json *at = json_get(o, "o"), *data = json_get(o, "d");
	const char *name = word(o, "s");
	struct buf *b = strcmp(name, "stdout") == 0   ? &s->out
			: strcmp(name, "stderr") == 0 ? &s->err
						      : NULL;
	if (!b || json_type(at) != JSON_INT || json_type(data) != JSON_STR || json_int(at) < 0 ||
		json_int(at) > (int64_t)b->n)
		return bad(s);
	CLEANUP_ARENA struct arena *a = arena_new(2 * EXEC_LINE_MAX);
	size_t text_n, n, known = b->n - (size_t)json_int(at);
	const char *text = json_str(data, &text_n);
	const uint8_t *bytes = base64_decode(a, text, text_n, &n);
	if (!bytes)
		return bad(s);
	if (n > known)
		buf_put(b, bytes + known, n - known);
	return b->full ? bad(s) : true;
}

static bool take_exit(struct bridge_stream *s, const struct json *o)
{
	const struct json *code = json_get(o, "code"), *late = json_get(o, "timed_out");
	if (json_type(code) != JSON_INT || json_int(code) < 0 || json_int(code) > 255 ||
		json_type(late) != JSON_BOOL)
		return bad(s);
	s->code = (int)json_int(code);
	s->timed_out = json_bool(late);
	s->end = BRIDGE_EXIT;
	return true;
}

static bool take_start(struct bridge_stream *s, const struct json *o)
{
	if (strcmp(word(o, "exec_id"), s->exec_id) != 0)
		return bad(s);
	s->started = true;
	return true;
}

static bool take_error(struct bridge_stream *s, const struct json *o)
{
	const char *code = word(o, "code");
	s->end = strcmp(code, "exec_not_found") == 0  ? BRIDGE_UNKNOWN
		 : strcmp(code, "exec_lost") == 0     ? BRIDGE_LOST
		 : strcmp(code, "sandbox_reset") == 0 ? BRIDGE_RESET
						      : BRIDGE_ERROR;
	return true;
}

static bool take_frame(struct bridge_stream *s, const struct json *o)
{
	const char *t = word(o, "t");
	if (strcmp(t, "start") == 0)
		return take_start(s, o);
	if (strcmp(t, "out") == 0)
		return take_output(s, o);
	if (strcmp(t, "exit") == 0)
		return take_exit(s, o);
	if (strcmp(t, "error") == 0)
		return take_error(s, o);
	if (strcmp(t, "pending") == 0)
		s->end = BRIDGE_PENDING;
	/* "hb" and what later versions add mean nothing to us; a frame without a kind is none. */
	return t[0] ? true : bad(s);
}

static bool take_line(struct bridge_stream *s)
{
	CLEANUP_JSON struct json *root = NULL;
	if (s->line.n == 0 || s->end != BRIDGE_OPEN)
		return true;
	if (json_parse(s->line.p, s->line.n, &root) || json_type(root) != JSON_OBJ)
		return bad(s);
	return take_frame(s, root);
}

bool bridge_stream_feed(struct bridge_stream *s, const char *p, size_t n)
{
	const char *end = p + n;
	while (p < end && s->end == BRIDGE_OPEN) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		buf_put(&s->line, p, (size_t)((nl ? nl : end) - p));
		if (s->line.full)
			return bad(s);
		if (!nl)
			return true;
		if (!take_line(s))
			return false;
		buf_reset(&s->line);
		p = nl + 1;
	}
	return s->end != BRIDGE_BAD;
}
