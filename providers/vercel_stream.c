/*
 * Reads what Vercel Sandbox tells of a command, one JSON object a line, in pieces of any size.
 *
 * Promises: only a second command object of the same command with an exit code is an exit; an end
 * of the body without it is none. Runs in the thread of the pool, so it reports by its state and
 * not through fail().
 */
#include "vercel_reply.h"

#include "bounds.h"
#include "json.h"

#include <stdio.h>
#include <string.h>

void vercel_stream_init(struct vercel_stream *s)
{
	*s = (struct vercel_stream){.end = VERCEL_OPEN};
	buf_init(&s->line, EXEC_LINE_MAX);
	buf_init(&s->out, EXEC_OUTPUT_MAX);
	buf_init(&s->err, EXEC_OUTPUT_MAX);
}

void vercel_stream_done(struct vercel_stream *s)
{
	buf_done(&s->line);
	buf_done(&s->out);
	buf_done(&s->err);
}

static void take_command(struct vercel_stream *s, const struct json *o)
{
	const char *id = reply_str(o, "id");
	const struct json *code = json_get(o, "exitCode");
	if (!id || strlen(id) >= sizeof s->id) {
		s->end = VERCEL_BAD;
	} else if (!s->id[0]) {
		(void)snprintf(
			s->id, sizeof s->id, "%s", id); /* even with a code: output follows */
	} else if (strcmp(s->id, id) != 0 || json_type(code) != JSON_INT || json_int(code) < 0 ||
		   json_int(code) > 255) {
		s->end = VERCEL_BAD;
	} else {
		s->code = (int)json_int(code);
		s->end = VERCEL_EXIT;
	}
}

static void take_output(struct vercel_stream *s, const char *stream, const struct json *data)
{
	size_t n;
	struct buf *b = strcmp(stream, "stdout") == 0   ? &s->out
			: strcmp(stream, "stderr") == 0 ? &s->err
							: NULL;
	if (strcmp(stream, "error") == 0) {
		s->end = VERCEL_LOST;
		return;
	}
	if (!b || json_type(data) != JSON_STR || !s->id[0]) {
		s->end = VERCEL_BAD;
		return;
	}
	const char *text = json_str(data, &n);
	buf_put(b, text, n);
	if (b->full)
		s->end = VERCEL_BAD;
}

static void take_line(struct vercel_stream *s)
{
	CLEANUP_JSON struct json *root = NULL;
	if (s->line.n == 0 || s->end != VERCEL_OPEN)
		return;
	if (json_parse(s->line.p, s->line.n, &root)) {
		s->end = VERCEL_BAD;
		return;
	}
	const struct json *command = json_get(root, "command");
	const char *stream = reply_str(root, "stream");
	if (json_type(command) == JSON_OBJ)
		take_command(s, command);
	else if (stream)
		take_output(s, stream, json_get(root, "data"));
	else
		s->end = VERCEL_BAD;
}

void vercel_stream_feed(struct vercel_stream *s, const char *p, size_t n)
{
	const char *end = p + n;
	while (p < end && s->end == VERCEL_OPEN) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		buf_put(&s->line, p, (size_t)((nl ? nl : end) - p));
		if (s->line.full)
			s->end = VERCEL_BAD;
		if (!nl || s->end != VERCEL_OPEN)
			return;
		take_line(s);
		buf_reset(&s->line);
		p = nl + 1;
	}
}
