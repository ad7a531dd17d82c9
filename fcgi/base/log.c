/* Typed log events: one write(2) per line, so lines of several processes do not mix. */
#include "log.h"

#include "buf.h"
#include "clock.h"
#include "text.h"

#include <inttypes.h>
#include <unistd.h>

#define LINE_BYTES_MAX 2048
#define NAME_CHARS_MAX 64

static const struct {
	const char *name, *level;
} rows[] = {
#define EVENT(name, text, level) [EV_##name] = {text, #level},
#include "log.def"
#undef EVENT
};

static const char *own_role = "tool";

void log_role(const char *role)
{
	own_role = role;
}

static void put_field(struct buf *b, const struct log_field *f)
{
	char id[ID_TEXT_SIZE];
	buf_printf(b, ",\"%s\":", f->name);
	if (f->kind == LOG_FIELD_ID)
		buf_printf(b, "\"%s\"", id_text(id, NULL, f->id));
	else if (f->kind == LOG_FIELD_INT)
		buf_printf(b, "%" PRId64, f->number);
	else
		buf_printf(
			b, "\"%s\"", f->word && name_safe(f->word, NAME_CHARS_MAX) ? f->word : "?");
}

void log_fields(enum event e, const struct log_field *fields)
{
	CLEANUP_BUF struct buf b;
	char at[TIME_TEXT_SIZE];
	buf_init(&b, LINE_BYTES_MAX);
	buf_printf(&b,
		"{\"at\":\"%s\",\"level\":\"%s\",\"event\":\"%s\",\"role\":\"%s\",\"pid\":%d",
		time_text(at, clock_ms()), rows[e].level, rows[e].name, own_role, (int)getpid());
	for (; fields->kind != LOG_END; fields++)
		put_field(&b, fields);
	buf_str(&b, "}\n");
	ssize_t n = write(STDERR_FILENO, b.p, b.n);
	(void)n; /* a log that can not be written must not stop the work */
}
