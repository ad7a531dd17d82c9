/*
 * JSON: the tree behind the gate, and the writer. The only file that knows json-c.
 *
 * struct json is json-c's object under another name; as there, null is the NULL pointer.
 */
#include "json.h"

#include "buf.h"
#include "bounds.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* json-c has types of these names; they are only needed inside its headers. */
#define json_bool theirs_bool
#define json_type theirs_type
#include <json-c/json.h>
#undef json_bool
#undef json_type

#define LEVELS_MAX 64u /* of the writer: bits of its masks */

static const struct json *ours(const struct json_object *o)
{
	return (const struct json *)o;
}

static const struct json_object *theirs(const struct json *j)
{
	return (const struct json_object *)j;
}

/* -- tree -------------------------------------------------------------------------------------- */

enum err json_parse(const char *p, size_t n, struct json **ret_root)
{
	enum err e = json_gate(p, n);
	if (e)
		return e;
	/* One level more than the gate lets through, and one for json-c's own count. */
	struct json_tokener *t = json_tokener_new_ex(JSON_DEPTH_MAX + 2);
	json_tokener_set_flags(t, JSON_TOKENER_STRICT);
	struct json_object *root = json_tokener_parse_ex(t, p, (int)n);
	if (json_tokener_get_error(t) == json_tokener_continue)
		root = json_tokener_parse_ex(t, "", 1); /* a bare number ends only at a NUL */
	enum json_tokener_error result = json_tokener_get_error(t);
	json_tokener_free(t);
	if (result != json_tokener_success)
		return fail(ERR_BAD_JSON, NULL, "it can not be read");
	*ret_root = (struct json *)root;
	return OK;
}

void json_free(struct json *root)
{
	(void)json_object_put((struct json_object *)root); /* the root is never shared */
}

void json_cleanup(struct json **root)
{
	json_free(*root);
}

/* Whether a number is an integer that every reader holds exactly. */
static bool is_whole(double v)
{
	return fabs(v) <= (double)JSON_INT_MAX && v == trunc(v);
}

enum json_type json_type(const struct json *j)
{
	switch (json_object_get_type(theirs(j))) {
	case json_type_boolean:
		return JSON_BOOL;
	case json_type_int:
		return JSON_INT;
	case json_type_double:
		return is_whole(json_object_get_double(theirs(j))) ? JSON_INT : JSON_NUM;
	case json_type_string:
		return JSON_STR;
	case json_type_array:
		return JSON_LIST;
	case json_type_object:
		return JSON_OBJ;
	case json_type_null:
	default:
		return JSON_NULL;
	}
}

const char *json_type_name(enum json_type t)
{
	static const char *const names[] = {
		[JSON_NULL] = "null",
		[JSON_BOOL] = "a boolean",
		[JSON_INT] = "an integer",
		[JSON_NUM] = "a number",
		[JSON_STR] = "a string",
		[JSON_LIST] = "a list",
		[JSON_OBJ] = "an object",
	};
	return names[t];
}

const struct json *json_get(const struct json *o, const char *key)
{
	struct json_object *v = NULL;
	if (json_type(o) != JSON_OBJ)
		return NULL;
	(void)json_object_object_get_ex(theirs(o), key, &v); /* leaves NULL when there is none */
	return ours(v);
}

size_t json_len(const struct json *j)
{
	enum json_type t = json_type(j);
	if (t == JSON_LIST)
		return json_object_array_length(theirs(j));
	return t == JSON_OBJ ? (size_t)json_object_object_length(theirs(j)) : 0;
}

const struct json *json_at(const struct json *list, size_t i)
{
	return json_type(list) == JSON_LIST ? ours(json_object_array_get_idx(theirs(list), i))
					    : NULL;
}

const struct json *json_member(const struct json *o, size_t i, const char **ret_key)
{
	assert(json_type(o) == JSON_OBJ && i < json_len(o));
	struct lh_entry *entry = json_object_get_object(theirs(o))->head;
	while (i--)
		entry = entry->next;
	*ret_key = lh_entry_k(entry);
	return lh_entry_v(entry);
}

const char *json_str(const struct json *j, size_t *ret_n)
{
	bool given = json_type(j) == JSON_STR;
	if (ret_n)
		*ret_n = given ? (size_t)json_object_get_string_len(theirs(j)) : 0;
	/* Of a string json-c returns its own bytes and changes nothing. */
	return given ? json_object_get_string((struct json_object *)(uintptr_t)j) : NULL;
}

int64_t json_int(const struct json *j)
{
	return json_type(j) == JSON_INT ? json_object_get_int64(theirs(j)) : 0;
}

double json_num(const struct json *j)
{
	enum json_type t = json_type(j);
	return t == JSON_INT || t == JSON_NUM ? json_object_get_double(theirs(j)) : 0;
}

bool json_bool(const struct json *j)
{
	return json_type(j) == JSON_BOOL && json_object_get_boolean(theirs(j));
}

void json_print(const struct json *j, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_json(&w, j);
}

/* -- writer ------------------------------------------------------------------------------------ */

struct jw jw_new(struct buf *b)
{
	return (struct jw){.b = b};
}

static uint64_t bit(const struct jw *w)
{
	return (uint64_t)1 << w->depth;
}

/* Every value passes here first: puts the comma, and holds the caller to the grammar. */
static void before_value(struct jw *w)
{
	bool in_object = w->depth > 0 && !(w->lists & bit(w));
	assert(in_object == w->named);
	assert(w->depth > 0 || !(w->some & 1));
	if (!in_object && w->some & bit(w))
		buf_char(w->b, ',');
	w->some |= bit(w);
	w->named = false;
}

static void open_level(struct jw *w, char c, bool list)
{
	before_value(w);
	assert(w->depth + 1 < LEVELS_MAX);
	buf_char(w->b, c);
	w->depth++;
	w->some &= ~bit(w);
	w->lists = list ? w->lists | bit(w) : w->lists & ~bit(w);
}

static void close_level(struct jw *w, char c, bool list)
{
	assert(w->depth > 0 && !w->named && !!(w->lists & bit(w)) == list);
	buf_char(w->b, c);
	w->depth--;
}

void jw_obj(struct jw *w)
{
	open_level(w, '{', false);
}

void jw_list(struct jw *w)
{
	open_level(w, '[', true);
}

void jw_end(struct jw *w)
{
	close_level(w, '}', false);
}

void jw_end_list(struct jw *w)
{
	close_level(w, ']', true);
}

/* How many bytes at p must be escaped: 0, 1, or 3 (U+2028 and U+2029, e2 80 a8 and a9). */
static size_t escape_len(const uint8_t *p, size_t n)
{
	if (*p < 0x20 || *p == '"' || *p == '\\' || *p == '<' || *p == '>' || *p == '&')
		return 1;
	return *p == 0xe2 && n >= 3 && p[1] == 0x80 && (p[2] | 1) == 0xa9 ? 3 : 0;
}

static void put_escape(struct buf *b, const uint8_t *p, size_t n)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known = *p ? strchr(from, (int)*p) : NULL;
	if (n == 1 && known)
		buf_put(b, (char[]){'\\', to[known - from]}, 2);
	else
		buf_printf(b, "\\u%04x", n == 1 ? (unsigned)*p : 0x2000u | (p[2] & 0x3f));
}

static void put_quoted(struct buf *b, const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t from = 0;
	buf_char(b, '"');
	for (size_t i = 0, len; i < n; i += len ? len : 1) {
		len = escape_len(p + i, n - i);
		if (len == 0)
			continue;
		buf_put(b, p + from, i - from);
		put_escape(b, p + i, len);
		from = i + len;
	}
	buf_put(b, p + from, n - from);
	buf_char(b, '"');
}

void jw_key(struct jw *w, const char *key)
{
	assert(w->depth > 0 && !(w->lists & bit(w)) && !w->named);
	if (w->some & bit(w))
		buf_char(w->b, ',');
	put_quoted(w->b, key, strlen(key));
	buf_char(w->b, ':');
	w->named = true;
}

void jw_strn(struct jw *w, const char *s, size_t n)
{
	before_value(w);
	put_quoted(w->b, s, n);
}

void jw_str(struct jw *w, const char *s)
{
	if (s)
		jw_strn(w, s, strlen(s));
	else
		jw_null(w);
}

void jw_int(struct jw *w, int64_t v)
{
	before_value(w);
	buf_printf(w->b, "%" PRId64, v);
}

void jw_num(struct jw *w, double v)
{
	char text[32];
	if (!isfinite(v)) {
		jw_null(w);
		return;
	}
	before_value(w);
	if (is_whole(v)) {
		buf_printf(w->b, "%" PRId64, (int64_t)v); /* -0.0 as 0, which is equal */
		return;
	}
	for (int digits = 1; digits <= 17; digits++) { /* 17 tell any two doubles apart */
		(void)snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_str(w->b, text);
	if (!strpbrk(text, ".e"))
		buf_str(w->b, ".0"); /* beyond JSON_INT_MAX: must not look like an integer */
}

void jw_bool(struct jw *w, bool v)
{
	before_value(w);
	buf_str(w->b, v ? "true" : "false");
}

void jw_null(struct jw *w)
{
	before_value(w);
	buf_str(w->b, "null");
}

void jw_raw(struct jw *w, const char *text, size_t n)
{
	assert(n > 0);
	before_value(w);
	buf_put(w->b, text, n);
}

static void write_list(struct jw *w, const struct json *j)
{
	jw_list(w);
	for (size_t i = 0, n = json_len(j); i < n; i++)
		jw_json(w, json_at(j, i));
	jw_end_list(w);
}

static void write_object(struct jw *w, const struct json *j)
{
	jw_obj(w);
	for (struct lh_entry *e = json_object_get_object(theirs(j))->head; e; e = e->next) {
		jw_key(w, lh_entry_k(e));
		jw_json(w, lh_entry_v(e));
	}
	jw_end(w);
}

void jw_json(struct jw *w, const struct json *j)
{
	size_t n;
	const char *s;
	switch (json_type(j)) {
	case JSON_BOOL:
		jw_bool(w, json_bool(j));
		break;
	case JSON_INT:
		jw_int(w, json_int(j));
		break;
	case JSON_NUM:
		jw_num(w, json_num(j));
		break;
	case JSON_STR:
		s = json_str(j, &n);
		jw_strn(w, s, n);
		break;
	case JSON_LIST:
		write_list(w, j);
		break;
	case JSON_OBJ:
		write_object(w, j);
		break;
	case JSON_NULL:
	default:
		jw_null(w);
	}
}

void jw_kstr(struct jw *w, const char *key, const char *s)
{
	jw_key(w, key);
	jw_str(w, s);
}

void jw_kint(struct jw *w, const char *key, int64_t v)
{
	jw_key(w, key);
	jw_int(w, v);
}

void jw_kbool(struct jw *w, const char *key, bool v)
{
	jw_key(w, key);
	jw_bool(w, v);
}
