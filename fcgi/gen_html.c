/*
 * The start page: the same facts as /llms.txt, for people.
 *
 * The page needs no script, no font and no second request. Every byte of text that becomes part of
 * it goes through escape(), also our own, so no setting can break out of its place.
 */
#include "gen_part.h"

#include <string.h>

static const char style[] =
	":root{color-scheme:light dark}"
	"body{font:1rem/1.55 system-ui,sans-serif;max-width:46rem;margin:0 auto;padding:1.5rem "
	"1rem 4rem}"
	"h1{font-size:1.9rem;line-height:1.2;margin:1rem 0}h2{font-size:1.25rem;margin:2.2rem 0 "
	".6rem}"
	"h3{font-size:1.05rem;margin:1.4rem 0 .4rem}"
	"pre,code{font:.9rem/1.5 ui-monospace,monospace}"
	"pre{padding:.8rem 1rem;overflow-x:auto;border:1px solid;border-radius:.4rem}"
	"dt{font-weight:600;margin-top:.8rem}dd{margin:0 0 0 1rem}li{margin:.25rem 0}";

/* The hash is that of the style above; a test compares them. */
const char gen_start_policy[] =
	"default-src 'none'; style-src 'sha256-EpbRZzZu7grB5H52TReksSDV4d4LRua96vvcLvdAMpU='; "
	"frame-ancestors 'none'; base-uri 'none'";

/* -- rendering --------------------------------------------------------------------------------- */

static void escape(struct buf *b, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		switch (p[i]) {
		case '<':
			buf_str(b, "&lt;");
			break;
		case '>':
			buf_str(b, "&gt;");
			break;
		case '&':
			buf_str(b, "&amp;");
			break;
		case '"':
			buf_str(b, "&quot;");
			break;
		case '\'':
			buf_str(b, "&#39;");
			break;
		default:
			buf_char(b, p[i]);
		}
}

/* How many characters of a bare link stand at p; 0: none. A full stop at its end is not part. */
static size_t link_length(const char *p, size_t n)
{
	static const char begin[] = "https://";
	size_t k = 0;
	if (n < sizeof begin || memcmp(p, begin, sizeof begin - 1) != 0)
		return 0;
	while (k < n && !strchr(" \t\"'<>`", p[k]))
		k++;
	while (k && strchr(".,;)", p[k - 1]))
		k--;
	return k;
}

static size_t put_link(struct buf *b, const char *p, size_t n)
{
	buf_str(b, "<a href=\"");
	escape(b, p, n);
	buf_str(b, "\">");
	escape(b, p, n);
	buf_str(b, "</a>");
	return n;
}

/* `code`: with both its marks; 0 when it is not closed. */
static size_t put_code(struct buf *b, const char *p, size_t n)
{
	const char *end = memchr(p + 1, '`', n - 1);
	if (!end)
		return 0;
	size_t k = (size_t)(end - p);
	buf_str(b, "<code>");
	escape(b, p + 1, k - 1);
	buf_str(b, "</code>");
	return k + 1;
}

static void put_line(struct buf *b, const char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t k = link_length(p + i, n - i);
		k = k ? put_link(b, p + i, k) : p[i] == '`' ? put_code(b, p + i, n - i) : 0;
		if (k == 0)
			escape(b, p + i, k = 1);
		i += k;
	}
}

enum block { BLOCK_NONE, BLOCK_LIST, BLOCK_CODE, BLOCK_TEXT };

/* Ends the open block and begins another one. */
static void turn(struct buf *b, enum block *open, enum block next)
{
	static const char *const ends[] = {"", "</ul>\n", "</code></pre>\n", "</p>\n"};
	static const char *const begins[] = {"", "<ul>\n", "<pre><code>", "<p>"};
	if (*open == next)
		return;
	buf_str(b, ends[*open]);
	buf_str(b, begins[next]);
	*open = next;
}

/* The level of a heading; 0: it is none. */
static unsigned heading(const char *p, size_t n)
{
	unsigned level = 0;
	while (level < n && level < 4 && p[level] == '#')
		level++;
	return level && level < n && p[level] == ' ' ? level : 0;
}

static void put_block_line(struct buf *b, enum block *open, const char *p, size_t n)
{
	unsigned level = heading(p, n);
	if (n == 0) {
		turn(b, open, BLOCK_NONE);
	} else if (level) {
		turn(b, open, BLOCK_NONE);
		buf_printf(b, "<h%u>", level);
		put_line(b, p + level + 1, n - level - 1);
		buf_printf(b, "</h%u>\n", level);
	} else if (n > 2 && p[0] == '-' && p[1] == ' ') {
		turn(b, open, BLOCK_LIST);
		buf_str(b, "<li>");
		put_line(b, p + 2, n - 2);
		buf_str(b, "</li>\n");
	} else {
		bool goes_on = *open == BLOCK_TEXT;
		turn(b, open, BLOCK_TEXT);
		buf_str(b, goes_on ? " " : "");
		put_line(b, p, n);
	}
}

void gen_html(const char *markdown, struct buf *b)
{
	enum block open = BLOCK_NONE;
	for (const char *p = markdown; *p;) {
		size_t n = strcspn(p, "\n");
		bool fence = n >= 3 && memcmp(p, "```", 3) == 0;
		if (fence) {
			turn(b, &open, open == BLOCK_CODE ? BLOCK_NONE : BLOCK_CODE);
		} else if (open == BLOCK_CODE) {
			escape(b, p, n);
			buf_char(b, '\n');
		} else {
			put_block_line(b, &open, p, n);
		}
		p += n + (p[n] != 0);
	}
	turn(b, &open, BLOCK_NONE);
}

/* -- the page ---------------------------------------------------------------------------------- */

static void put_text(struct buf *b, const char *s)
{
	escape(b, s, strlen(s));
}

static void put_tools(struct buf *b)
{
	buf_str(b, "<h2>Tools</h2>\n<dl>\n");
	for (size_t i = 0; tools[i]; i++) {
		if (tools[i]->flags & TOOL_REST_ONLY)
			continue;
		buf_str(b, "<dt><code>");
		put_text(b, tools[i]->name);
		buf_str(b, "</code></dt>\n<dd>");
		put_text(b, tools[i]->doc);
		buf_str(b, " Access: ");
		put_text(b, gen_access(tools[i]));
		buf_str(b, ".</dd>\n");
	}
	buf_str(b, "</dl>\n");
}

#define PIECE_BYTES_MAX (64 << 10)

void gen_start(const struct conf *c, struct buf *b)
{
	CLEANUP_BUF struct buf head, tail;
	buf_init(&head, PIECE_BYTES_MAX);
	buf_init(&tail, PIECE_BYTES_MAX);
	buf_str(&head, "# Compute Connector\n\n");
	gen_text_intro(&head);
	buf_char(&head, '\n');
	gen_text_connect(c, &head);
	gen_text_plans(c, &tail);
	gen_text_providers(&tail);
	gen_text_bounds(&tail);
	gen_text_privacy(c, &tail);
	gen_text_clients(c, &tail);
	buf_str(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		   "<title>Compute Connector</title>\n"
		   "<meta name=\"description\" content=\"Takes heavy jobs off the machine that an "
		   "agent lives on.\">\n<style>");
	buf_str(b, style);
	buf_str(b, "</style>\n</head>\n<body>\n<main>\n");
	gen_html(head.p, b);
	put_tools(b);
	gen_html(tail.p, b);
	buf_str(b, "</main>\n</body>\n</html>\n");
	if (head.full || tail.full)
		b->full = true;
}
