/*
 * What the generated documents share: where a tool is called, who may, what can go wrong, and
 * examples.
 */
#pragma once
#include "gen.h"
#include "tool.h"

struct route_text {
	char method[8];
	char path[120]; /* with {id} where the tool has one */
};
void gen_route(const struct tool *t, struct route_text *ret);

/* "no API key needed", "an owner key, Pro plan" ... */
const char *gen_access(const struct tool *t);

/* Whether a REST call of the tool can answer with this error. */
bool gen_can_fail(const struct tool *t, enum err e);

/* Whether a field exists on this side: secrets are never results, times never arguments. */
bool gen_shown(const struct field *f, bool input);

/* Type and bounds in words: "string, 1 to 64 characters". */
void gen_field_type(const struct field *f, struct buf *b);

/* An object that is valid against the schema of the shape: required members and those that have an
 * example. */
void gen_sample(const struct shape *s, bool input, struct jw *w);

/* Markdown pieces of /llms.txt, some of them also on the start page. */
void gen_text_intro(struct buf *b);
void gen_text_connect(const struct conf *c, struct buf *b);
void gen_text_plans(const struct conf *c, struct buf *b);
void gen_text_providers(struct buf *b);
void gen_text_bounds(struct buf *b);
void gen_text_privacy(const struct conf *c, struct buf *b);
void gen_text_clients(const struct conf *c, struct buf *b);

/* Renders the Markdown that our own texts use as HTML: headings, paragraphs, flat lists, fenced and
 * inline code, bare https links. Whatever the text holds, it comes out escaped. */
void gen_html(const char *markdown, struct buf *b);
