/*
 * What both files of the OpenAPI document write: contents, headers, problems.
 */
#pragma once
#include "gen_part.h"

#define TEXT_BYTES_MAX 8192 /* one description, our own words */

/* {"$ref": ...} to a component; its name ends with `side`. */
void openapi_ref(struct jw *w, const char *kind, const char *name, const char *side);
/* {"<type>": {"schema": {"$ref": ...}   and leaves the media type open for an example. */
void openapi_open_content(struct jw *w, const char *type, const char *schema, const char *side);
void openapi_close_content(struct jw *w);

/* One header of a response; "headers" is open. */
void openapi_header(struct jw *w, const char *name, const char *type, const char *text);
/* Those that tell the day's count. */
void openapi_quota_headers(struct jw *w);

/* One status with every code that this tool can answer there; nothing when there is none. A page
 * (t is NULL) refuses nothing but foreign origins. */
void openapi_problems(struct jw *w, const struct conf *c, const struct tool *t, int status);
/* The schema of all problems, and the list x-errors. */
void openapi_problem_schema(struct jw *w);
void openapi_error_list(struct jw *w);
