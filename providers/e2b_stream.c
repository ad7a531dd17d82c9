/*
 * Reads the stream of a command: frames of a byte of flags, four bytes of length, and JSON, in
 * pieces of any size.
 *
 * Promises: a stream without its last frame stays open, and only an event "end" of a known form
 * that is followed by a last frame without an error yields an exit code. Runs in the thread of the
 * pool, so it reports by its state and not through fail().
 */
#include "e2b_reply.h"

#include "arena.h"
#include "bounds.h"
#include "json.h"
#include "text.h"

#include <string.h>

#define HEAD_BYTES 5
#define FLAG_LAST  2

void e2b_stream_init(struct e2b_stream *s)
{
	*s = (struct e2b_stream){.end = E2B_OPEN};
	buf_init(&s->frame, HEAD_BYTES + EXEC_LINE_MAX);
	buf_init(&s->out, EXEC_OUTPUT_MAX);
	buf_init(&s->err, EXEC_OUTPUT_MAX);
}

void e2b_stream_done(struct e2b_stream *s)
{
	buf_done(&s->frame);
	buf_done(&s->out);
	buf_done(&s->err);
}

static bool bad(struct e2b_stream *s)
{
	s->end = E2B_BAD;
	return false;
}

/* "" when the member is absent or no string. */
static const char *word(const struct json *o, const char *key)
{
	const struct json *j = json_get(o, key);
	return json_type(j) == JSON_STR ? json_str(j, NULL) : "";
}

static bool take_bytes(struct e2b_stream *s, struct buf *b, const struct json *data)
{
	if (json_type(data) == JSON_NULL)
		return true; /* an event of the other stream */
	CLEANUP_ARENA struct arena *a = arena_new(2 * EXEC_LINE_MAX);
	size_t text_n, n;
	const char *text = json_str(data, &text_n);
	const uint8_t *bytes = text ? base64_decode(a, text, text_n, &n) : NULL;
	if (!bytes)
		return bad(s);
	buf_put(b, bytes, n);
	return b->full ? bad(s) : true;
}

/* Values that are zero may be left out, so "end" without a code is the end of a command that
 * succeeded, unless it says that the command was killed. */
static bool take_end(struct e2b_stream *s, const struct json *o)
{
	const struct json *code = json_get(o, "exitCode"), *exited = json_get(o, "exited");
	bool signalled = strncmp(word(o, "status"), "signal", 6) == 0 ||
			 (json_type(exited) == JSON_BOOL && !json_bool(exited));
	if (json_type(code) != JSON_NULL && json_type(code) != JSON_INT)
		return bad(s);
	int64_t n = json_int(code);
	s->told = true;
	s->killed = signalled || n < 0;
	if (!s->killed && n > 255)
		return bad(s);
	s->code = (int)n;
	return true;
}

static bool take_event(struct e2b_stream *s, const struct json *root)
{
	const struct json *event = json_get(root, "event");
	const struct json *data = json_get(event, "data"), *end = json_get(event, "end");
	if (json_type(event) != JSON_OBJ || s->told)
		return bad(s);
	if (json_type(json_get(event, "start")) == JSON_OBJ)
		s->started = true;
	if (json_type(data) == JSON_OBJ)
		return take_bytes(s, &s->out, json_get(data, "stdout")) &&
		       take_bytes(s, &s->err, json_get(data, "stderr"));
	if (json_type(end) == JSON_OBJ)
		return take_end(s, end);
	return true; /* signs of life, and what later versions add */
}

/* Errors that come before any command does. */
static bool refuses(const char *code)
{
	static const char *const codes[] = {"invalid_argument", "unauthenticated",
		"permission_denied", "not_found", "unimplemented", "resource_exhausted", NULL};
	for (int i = 0; codes[i]; i++)
		if (strcmp(code, codes[i]) == 0)
			return true;
	return false;
}

static bool take_last(struct e2b_stream *s, const struct json *root)
{
	const struct json *error = json_get(root, "error");
	if (json_type(root) != JSON_OBJ)
		return bad(s);
	if (json_type(error) != JSON_NULL)
		s->end = !s->started && refuses(word(error, "code")) ? E2B_REFUSED : E2B_FAILED;
	else if (!s->told)
		s->end = E2B_FAILED;
	else
		s->end = s->killed ? E2B_KILLED : E2B_EXIT;
	return true;
}

static bool take_frame(struct e2b_stream *s)
{
	CLEANUP_JSON struct json *root = NULL;
	const char *p = s->frame.p;
	if (json_parse(p + HEAD_BYTES, s->frame.n - HEAD_BYTES, &root))
		return bad(s);
	return p[0] == FLAG_LAST ? take_last(s, root) : take_event(s, root);
}

/* How long the frame at hand is, head included, as far as its head is there. */
static size_t frame_bytes(const struct e2b_stream *s)
{
	const unsigned char *p = (const unsigned char *)s->frame.p;
	if (s->frame.n < HEAD_BYTES)
		return HEAD_BYTES;
	return HEAD_BYTES + ((size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4]);
}

/* We ask for no compression and take no other flags than "message" and "last message". */
static bool head_ok(const struct e2b_stream *s)
{
	return (s->frame.p[0] == 0 || s->frame.p[0] == FLAG_LAST) &&
	       frame_bytes(s) <= HEAD_BYTES + EXEC_LINE_MAX;
}

bool e2b_stream_feed(struct e2b_stream *s, const char *p, size_t n)
{
	while (n > 0) {
		if (s->end != E2B_OPEN)
			return bad(s); /* more after the last frame, or after nonsense */
		size_t want = frame_bytes(s) - s->frame.n, part = n < want ? n : want;
		buf_put(&s->frame, p, part);
		p += part;
		n -= part;
		if (s->frame.n < HEAD_BYTES)
			continue;
		if (!head_ok(s))
			return bad(s);
		if (s->frame.n < frame_bytes(s))
			continue;
		if (!take_frame(s))
			return false;
		buf_reset(&s->frame);
	}
	return true;
}

void e2b_frame_begin(struct buf *b)
{
	buf_put(b, "\0\0\0\0\0", HEAD_BYTES);
}

void e2b_frame_end(struct buf *b)
{
	if (b->full)
		return;
	size_t n = b->n - HEAD_BYTES;
	for (size_t i = 1; i < HEAD_BYTES; i++)
		b->p[i] = (char)(n >> 8 * (HEAD_BYTES - 1 - i) & 255);
}
