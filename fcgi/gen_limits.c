/*
 * The list of limits, read out of bounds.h itself: the header travels inside the binary as a text,
 * so list and program can not differ. Its form is the one of that file: a heading is a comment that
 * begins with two dashes, a limit is one #define with its comment on the same line.
 */
#include "gen.h"

#include "limits_texts.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* One line of the header, taken apart; text may be empty. */
struct limit {
	char name[64], value[64], text[200];
};

/* Copies what stands between p and end without the space around it. */
static void take(char *out, size_t size, const char *p, const char *end)
{
	while (p < end && *p == ' ')
		p++;
	while (p < end && end[-1] == ' ')
		end--;
	snprintf(out, size, "%.*s", (int)(end - p), p);
}

static const char *find(const char *p, const char *end, const char *what)
{
	return memmem(p, (size_t)(end - p), what, strlen(what));
}

static bool read_limit(const char *p, const char *end, struct limit *ret)
{
	static const char define[] = "#define ";
	if (end - p < (int)sizeof define || memcmp(p, define, sizeof define - 1) != 0)
		return false;
	p += sizeof define - 1;
	const char *value = p + strcspn(p, " \n"), *comment = find(p, end, "/*");
	const char *close = comment ? find(comment, end, "*/") : NULL;
	take(ret->name, sizeof ret->name, p, value);
	take(ret->value, sizeof ret->value, value, comment ? comment : end);
	ret->text[0] = 0;
	if (comment)
		take(ret->text, sizeof ret->text, comment + 2, close ? close : end);
	return true;
}

/* A plain number as it is, a shifted one worked out. */
static void put_value(struct buf *b, const char *value)
{
	char base[32], by[32];
	int64_t n, bits;
	const char *shift = strstr(value, " << ");
	if (!shift || value[0] != '(') {
		buf_put(b, value, strcspn(value, "L"));
		return;
	}
	take(base, sizeof base, value + 1, shift);
	take(by, sizeof by, shift + strlen(" << "), strchr(value, 0) - 1);
	if (int_parse(base, 0, INT32_MAX, &n) && int_parse(by, 0, 30, &bits))
		buf_printf(b, "%lld", (long long)(n << bits));
	else
		buf_str(b, value);
}

static void put_heading(struct buf *b, const char *p, const char *end)
{
	char text[100];
	const char *rule = find(p, end, " ---");
	take(text, sizeof text, p, rule ? rule : end);
	buf_printf(b, "\n## %c%s\n\n| Limit | Value | Unit and reason |\n|---|---|---|\n",
		text[0] & ~0x20, text + 1);
}

static void put_text(struct buf *b, const char *s)
{
	for (; *s; s++)
		buf_printf(b, "%s%c", *s == '|' ? "\\" : "", *s);
}

void gen_limits(struct buf *b)
{
	static const char head[] = "/* -- ";
	struct limit l;
	buf_str(b, "# Limits\n\nEvery bound of the program. Names end with their unit where it is "
		   "not told: S seconds, MS "
		   "milliseconds, H hours. What an operator may change is a setting instead.\n");
	for (const char *p = limits_texts[0].text; *p;) {
		const char *end = p + strcspn(p, "\n");
		if (end - p > (int)sizeof head && memcmp(p, head, sizeof head - 1) == 0) {
			put_heading(b, p + sizeof head - 1, end);
		} else if (read_limit(p, end, &l)) {
			buf_printf(b, "| `%s` | ", l.name);
			put_value(b, l.value);
			buf_str(b, " | ");
			put_text(b, l.text);
			buf_str(b, " |\n");
		}
		p = end + (*end != 0);
	}
}
