/*
 * JSON: a strict gate, a tree, and a writer. json-c stays behind this header.
 *
 * The gate reads the bytes once before json-c does, because json-c in strict mode still accepts
 * duplicate keys, single quotes, NaN, encoded surrogates, NUL in strings, and clamps integers.
 */
#pragma once
#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json; /* one value of a tree; borrowed from the root that json_parse returned */

/*
 * Accepts RFC 8259 text only: UTF-8 without surrogates or byte order mark, no duplicate key in one
 * object (compared after unescaping), no NUL character, integers inside +-JSON_INT_MAX, finite
 * numbers of at most JSON_NUMBER_CHARS_MAX characters, at most JSON_DEPTH_MAX levels and
 * JSON_VALUES_MAX values. ERR_BAD_JSON with the byte offset or the bound in the detail otherwise.
 */
MUST_USE enum err json_gate(const char *p, size_t n);

/* Gate and parse. Free the root with json_free. The root of the text null is NULL. */
MUST_USE enum err json_parse(const char *p, size_t n, struct json **ret_root);
void json_free(struct json *root); /* NULL is fine */
void json_cleanup(struct json **root);
#define CLEANUP_JSON __attribute__((cleanup(json_cleanup)))

enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_NUM, JSON_STR, JSON_LIST, JSON_OBJ };

enum json_type json_type(const struct json *j); /* NULL counts as JSON_NULL; 60.0 is JSON_INT */
const char *json_type_name(enum json_type t);   /* "an integer", "a string" ... for messages */

/* Value of a member; NULL when there is none, when it is null, or when o is no object. */
const struct json *json_get(const struct json *o, const char *key);

size_t json_len(const struct json *j); /* elements or members; 0 for other types */
const struct json *json_at(const struct json *list, size_t i); /* element; NULL when it is null */

/* Member i (below json_len) in the order of the text; NULL when it is null. Walks there from the
 * first one, so a loop over many members costs their square. */
const struct json *json_member(const struct json *o, size_t i, const char **ret_key);

/* Getters of a value of another type give NULL, 0, 0 and false. */
const char *json_str(const struct json *j, size_t *ret_n); /* NUL-terminated; ret_n may be NULL */
int64_t json_int(const struct json *j);
double json_num(const struct json *j); /* also of an integer */
bool json_bool(const struct json *j);

/* The text of a value, compact, appended to b. */
void json_print(const struct json *j, struct buf *b);

/* -- writer: appends one value to a buffer, puts commas itself --------------------------------- */
/* A key without a value, a value without a key, a wrong end or a second root value is our own
 * mistake and stops the process. */
struct jw {
	struct buf *b;
	unsigned depth;
	uint64_t some;  /* bit d: level d already holds a value */
	uint64_t lists; /* bit d: level d is a list */
	bool named;     /* a key waits for its value */
};

struct jw jw_new(struct buf *b);
void jw_obj(struct jw *w);  /* { ... jw_end */
void jw_list(struct jw *w); /* [ ... jw_end_list */
void jw_end(struct jw *w);
void jw_end_list(struct jw *w);
void jw_key(struct jw *w, const char *key);
/* Strings must be valid UTF-8. Control characters and < > & U+2028 U+2029 are escaped, so that any
 * body is harmless inside HTML. NULL is written as null. */
void jw_str(struct jw *w, const char *s);
void jw_strn(struct jw *w, const char *s, size_t n);
void jw_int(struct jw *w, int64_t v);
void jw_num(struct jw *w, double v); /* shortest text that reads back equal; not finite: null */
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, const char *text, size_t n); /* one value, already JSON */
void jw_json(struct jw *w, const struct json *j);
/* key and value in one call */
void jw_kstr(struct jw *w, const char *key, const char *s);
void jw_kint(struct jw *w, const char *key, int64_t v);
void jw_kbool(struct jw *w, const char *key, bool v);
