/*
 * Documents computed from the rows: OpenAPI, llms.txt, the start page, reference lists.
 */
#pragma once
#include "buf.h"
#include "conf.h"
#include "json.h"

void gen_openapi(const struct conf *c, struct buf *b); /* OpenAPI 3.1 of every REST operation */
void gen_llms(const struct conf *c, struct buf *b);    /* /llms.txt */
void gen_start(const struct conf *c, struct buf *b);   /* the start page, HTML without scripts */
/* Content-Security-Policy to send with the start page: the proxy's own forbids the page's style. */
extern const char gen_start_policy[];
void gen_errors(struct buf *b); /* Markdown list of err.def */
void gen_limits(struct buf *b); /* Markdown list of the limits */
void gen_tools(struct buf *b);  /* Markdown reference of the tools */

/* The tools array of MCP tools/list. */
void gen_mcp_tools(struct jw *w);
/* One paragraph for agents: what this server offers. */
extern const char gen_instructions[];
