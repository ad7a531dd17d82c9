/*
 * Shapes: decoding JSON into structs and encoding structs as JSON, both from the same table.
 *
 * The decoder promises that a struct it fills is inside every bound of its table, and that an error
 * names the field and the bound and repeats nothing that was sent, unless it is a harmless name. It
 * knows no meaning: rules between two fields belong to the handler. Schemas: shape_schema.c.
 */
#include "shape.h"

#include "arena.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define SHOWN_NAME_MAX 48 /* characters of a name from outside in an error's path */

/* Where the decoder is, for the error. */
struct walk {
	struct arena *arena;
	char path[sizeof(((struct fault *)0)->field)];
	size_t len;
};

static void *slot(void *s, const struct field *f)
{
	return (char *)s + f->at;
}

static const void *slot_of(const void *s, const struct field *f)
{
	return (const char *)s + f->at;
}

/* -- path and errors --------------------------------------------------------------------------- */

/* Both return the length to come back to. A path too long is cut. */
static size_t enter(struct walk *w, const char *name)
{
	size_t len = w->len;
	int n = snprintf(w->path + len, sizeof w->path - len, "%s%s", len ? "." : "", name);
	w->len += (size_t)n < sizeof w->path - len ? (size_t)n : sizeof w->path - len - 1;
	return len;
}

static size_t enter_index(struct walk *w, size_t i)
{
	size_t len = w->len;
	int n = snprintf(w->path + len, sizeof w->path - len, "[%zu]", i);
	w->len += (size_t)n < sizeof w->path - len ? (size_t)n : sizeof w->path - len - 1;
	return len;
}

static void leave(struct walk *w, size_t len)
{
	w->len = len;
	w->path[len] = 0;
}

/* For names that the caller chose. */
static size_t enter_given(struct walk *w, const char *name)
{
	return enter(w, name_safe(name, SHOWN_NAME_MAX) ? name : "(a name with other characters)");
}

static bool bounded(const struct field *f)
{
	return f->min || f->max;
}

static bool within(const struct field *f, int64_t v)
{
	return !bounded(f) || (v >= f->min && v <= f->max);
}

static void list_choices(char *out, size_t size, const struct field *f)
{
	size_t n = (size_t)snprintf(out, size, "one of:");
	for (size_t i = 0; f->choices[i] && n < size; i++)
		n += (size_t)snprintf(out + n, size - n, "%s %s", i ? "," : "", f->choices[i]);
}

/* "an integer from 1 to 3600" */
static void expected(char *out, size_t size, const struct field *f)
{
	static const struct {
		const char *noun, *link, *unit;
	} words[] = {
		[KIND_STR] = {"a string", " of ", " characters"},
		[KIND_SECRET] = {"a string", " of ", " bytes"},
		[KIND_INT] = {"an integer", " from ", ""},
		[KIND_NUM] = {"a number", " from ", ""},
		[KIND_BOOL] = {"true or false", "", ""},
		[KIND_OBJ] = {"an object", "", ""},
		[KIND_LIST] = {"a list", " of ", " elements"},
		[KIND_MAP] = {"an object", " of ", " members"},
	};
	if (f->kind == KIND_ENUM)
		list_choices(out, size, f);
	else if (bounded(f))
		(void)snprintf(out, size, "%s%s%lld to %lld%s", words[f->kind].noun,
			words[f->kind].link, (long long)f->min, (long long)f->max,
			f->flags & IN_BYTES ? " bytes" : words[f->kind].unit);
	else
		(void)snprintf(out, size, "%s", words[f->kind].noun);
}

/* The value is not what the field wants; says of which type it is when that is the reason. */
static enum err wrong(const struct walk *w, const struct field *f, const struct json *got)
{
	static const enum json_type types[] = {
		[KIND_STR] = JSON_STR,
		[KIND_SECRET] = JSON_STR,
		[KIND_INT] = JSON_INT,
		[KIND_NUM] = JSON_INT,
		[KIND_BOOL] = JSON_BOOL,
		[KIND_ENUM] = JSON_STR,
		[KIND_OBJ] = JSON_OBJ,
		[KIND_LIST] = JSON_LIST,
		[KIND_MAP] = JSON_OBJ,
	};
	char want[160];
	enum json_type type = json_type(got);
	bool same = type == types[f->kind] || (type == JSON_NUM && types[f->kind] == JSON_INT);
	expected(want, sizeof want, f);
	return fail(ERR_BAD_INPUT, w->path, "must be %s%s%s", want, same ? "" : ", not ",
		same ? "" : json_type_name(type));
}

static enum err malformed(const struct walk *w, const struct field *f)
{
	if (f->pattern)
		return fail(ERR_BAD_INPUT, w->path, "must match %s", f->pattern);
	return fail(ERR_BAD_INPUT, w->path, "is not of the allowed form: %s", f->doc);
}

/* -- decoding ---------------------------------------------------------------------------------- */

static enum err decode_object(
	struct walk *w, const struct shape *s, const struct json *o, void *out);

static int64_t text_len(const struct field *f, const char *s, size_t n)
{
	size_t chars = n;
	if (f->kind == KIND_STR && !(f->flags & IN_BYTES))
		(void)utf8_valid(s, n, &chars); /* the gate has seen to it */
	return (int64_t)chars;
}

static enum err decode_str(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	size_t n;
	const char *s = json_str(j, &n);
	if (!s || !within(f, text_len(f, s, n)))
		return wrong(w, f, j);
	if (f->valid && !f->valid(s))
		return malformed(w, f);
	*(const char **)out = arena_copy(w->arena, s, n);
	return OK;
}

static enum err decode_secret(
	struct walk *w, const struct field *f, const struct json *j, void *out)
{
	size_t n;
	const char *s = json_str(j, &n);
	if (!s || !within(f, text_len(f, s, n)))
		return wrong(w, f, j);
	*(struct secret *)out = secret_new(s, n);
	return OK;
}

static enum err decode_int(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	if (json_type(j) != JSON_INT || !within(f, json_int(j)))
		return wrong(w, f, j);
	*(int64_t *)out = json_int(j);
	return OK;
}

static enum err decode_num(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	double v = json_num(j);
	if (json_type(j) != JSON_INT && json_type(j) != JSON_NUM)
		return wrong(w, f, j);
	if (bounded(f) && !(v >= (double)f->min && v <= (double)f->max))
		return wrong(w, f, j);
	*(double *)out = v;
	return OK;
}

static enum err decode_bool(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	if (json_type(j) != JSON_BOOL)
		return wrong(w, f, j);
	*(enum tri *)out = json_bool(j) ? YES : NO;
	return OK;
}

static enum err decode_enum(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	const char *s = json_str(j, NULL);
	for (int i = 0; s && f->choices[i]; i++) {
		if (strcmp(s, f->choices[i]) == 0) {
			*(int *)out = i;
			return OK;
		}
	}
	return wrong(w, f, j);
}

static enum err decode_obj(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	if (json_type(j) != JSON_OBJ)
		return wrong(w, f, j);
	void *inner = arena_take(w->arena, f->shape->size);
	shape_init(f->shape, inner);
	*(const void **)out =
		inner; /* before its secrets are made, so that shape_done finds them */
	return decode_object(w, f->shape, j, inner);
}

/* A value of a map or an element of a list of strings. */
static enum err decode_item(
	struct walk *w, const struct field *f, const struct json *j, const char **ret_item)
{
	struct field item = {.kind = KIND_STR, .flags = IN_BYTES, .max = f->value_max};
	return decode_str(w, &item, j, ret_item);
}

static enum err decode_element(
	struct walk *w, const struct field *f, const struct json *j, void *out)
{
	static const struct field element = {.kind = KIND_OBJ};
	if (!f->shape)
		return decode_item(w, f, j, out);
	if (json_type(j) != JSON_OBJ)
		return wrong(w, &element, j);
	return decode_object(w, f->shape, j, out);
}

static enum err decode_list(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	size_t n = json_len(j), size = f->shape ? f->shape->size : sizeof(const char *);
	if (json_type(j) != JSON_LIST || !within(f, (int64_t)n))
		return wrong(w, f, j);
	char *items = arena_take(w->arena, n * size);
	for (size_t i = 0; f->shape && i < n; i++)
		shape_init(f->shape, items + i * size);
	*(struct list *)out = (struct list){.n = n, .items = items};
	for (size_t i = 0; i < n; i++) {
		size_t back = enter_index(w, i);
		enum err e = decode_element(w, f, json_at(j, i), items + i * size);
		if (e)
			return e;
		leave(w, back);
	}
	return OK;
}

static enum err decode_entry(struct walk *w, const struct field *f, const char *name,
	const struct json *value, struct map_entry *ret_entry)
{
	size_t n = strlen(name);
	if (n == 0 || n > MAP_NAME_BYTES_MAX)
		return fail(ERR_BAD_INPUT, w->path, "each name must have 1 to %d bytes",
			MAP_NAME_BYTES_MAX);
	size_t back = enter_given(w, name);
	if (f->valid && !f->valid(name))
		return malformed(w, f);
	ret_entry->name = arena_copy(w->arena, name, n);
	enum err e = decode_item(w, f, value, &ret_entry->value);
	if (e)
		return e;
	leave(w, back);
	return OK;
}

static enum err decode_map(struct walk *w, const struct field *f, const struct json *j, void *out)
{
	size_t n = json_len(j);
	if (json_type(j) != JSON_OBJ || !within(f, (int64_t)n))
		return wrong(w, f, j);
	struct map_entry *items = ARENA_LIST(w->arena, n, struct map_entry);
	for (size_t i = 0; i < n; i++) {
		const char *name;
		const struct json *value = json_member(j, i, &name);
		enum err e = decode_entry(w, f, name, value, &items[i]);
		if (e)
			return e;
	}
	*(struct map *)out = (struct map){.n = n, .items = items};
	return OK;
}

typedef enum err decode_kind(struct walk *, const struct field *, const struct json *, void *);

/* Kinds that are only encoded have none. */
static decode_kind *const decoders[] = {
	[KIND_STR] = decode_str,
	[KIND_SECRET] = decode_secret,
	[KIND_INT] = decode_int,
	[KIND_NUM] = decode_num,
	[KIND_BOOL] = decode_bool,
	[KIND_ENUM] = decode_enum,
	[KIND_TIME] = NULL,
	[KIND_OBJ] = decode_obj,
	[KIND_LIST] = decode_list,
	[KIND_MAP] = decode_map,
	[KIND_RAW] = NULL,
};

static bool known(const struct shape *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (decoders[s->fields[i].kind] && strcmp(s->fields[i].name, name) == 0)
			return true;
	return false;
}

/* Stops at the first unknown name, so it looks at no more members than the shape has, and one. */
static enum err refuse_unknown(struct walk *w, const struct shape *s, const struct json *o)
{
	for (size_t i = 0, n = json_len(o); i < n; i++) {
		const char *name;
		(void)json_member(o, i, &name); /* only the name is wanted */
		if (known(s, name))
			continue;
		(void)enter_given(w, name); /* never left: this is the end */
		return fail(ERR_BAD_INPUT, w->path, "is not a known name here");
	}
	return OK;
}

static enum err decode_object(
	struct walk *w, const struct shape *s, const struct json *o, void *out)
{
	enum err e = refuse_unknown(w, s, o);
	for (size_t i = 0; !e && i < s->n; i++) {
		const struct field *f = &s->fields[i];
		const struct json *j = decoders[f->kind] ? json_get(o, f->name) : NULL;
		size_t back = enter(w, f->name);
		if (j)
			e = decoders[f->kind](w, f, j, slot(out, f));
		else if (f->flags & REQUIRED)
			e = fail(ERR_BAD_INPUT, w->path, "is required");
		if (!e)
			leave(w, back);
	}
	return e;
}

enum err shape_decode(const struct shape *s, const struct json *o, struct arena *a, void *out)
{
	struct walk w = {.arena = a};
	shape_init(s, out);
	if (json_type(o) != JSON_OBJ && json_type(o) != JSON_NULL)
		return fail(ERR_BAD_INPUT, NULL, "must be an object, not %s",
			json_type_name(json_type(o)));
	enum err e = decode_object(&w, s, o, out);
	if (e) {
		shape_done(s, out);
		shape_init(s, out);
	}
	return e;
}

/* -- a struct's life --------------------------------------------------------------------------- */

void shape_init(const struct shape *s, void *out)
{
	memset(out, 0, s->size);
	for (size_t i = 0; i < s->n; i++) {
		const struct field *f = &s->fields[i];
		void *at = slot(out, f);
		if (f->kind == KIND_INT || f->kind == KIND_TIME)
			*(int64_t *)at = ABSENT_INT;
		else if (f->kind == KIND_NUM)
			*(double *)at = ABSENT_NUM;
		else if (f->kind == KIND_BOOL)
			*(enum tri *)at = ABSENT_BOOL;
		else if (f->kind == KIND_ENUM)
			*(int *)at = -1;
	}
}

static void list_done(const struct shape *s, struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		shape_done(s, (char *)l->items + i * s->size);
}

void shape_done(const struct shape *s, void *out)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct field *f = &s->fields[i];
		void *at = slot(out, f);
		if (f->kind == KIND_SECRET)
			secret_done(at);
		else if (f->kind == KIND_LIST && f->shape)
			list_done(f->shape, at);
		else if (f->kind == KIND_OBJ && *(void **)at)
			shape_done(f->shape, *(void **)at);
	}
}

/* -- encoding ---------------------------------------------------------------------------------- */

static bool given(const struct field *f, const void *at)
{
	switch (f->kind) {
	case KIND_INT:
	case KIND_TIME:
		return *(const int64_t *)at != ABSENT_INT;
	case KIND_NUM:
		return !isnan(*(const double *)at);
	case KIND_BOOL:
		return *(const enum tri *)at != ABSENT_BOOL;
	case KIND_ENUM:
		return *(const int *)at >= 0;
	case KIND_LIST:
		return ((const struct list *)at)->items || f->flags & REQUIRED;
	case KIND_MAP:
		return ((const struct map *)at)->items || f->flags & REQUIRED;
	case KIND_STR:
	case KIND_OBJ:
	case KIND_RAW:
		return *(const void *const *)at != NULL;
	case KIND_SECRET:
	default:
		return false;
	}
}

static void encode_list(const struct shape *s, const struct list *l, struct jw *w)
{
	jw_list(w);
	for (size_t i = 0; i < l->n; i++) {
		if (s)
			shape_encode(s, (const char *)l->items + i * s->size, w);
		else
			jw_str(w, ((const char *const *)l->items)[i]);
	}
	jw_end_list(w);
}

static void encode_map(const struct map *m, struct jw *w)
{
	jw_obj(w);
	for (size_t i = 0; i < m->n; i++)
		jw_kstr(w, m->items[i].name, m->items[i].value);
	jw_end(w);
}

static void encode_value(const struct field *f, const void *at, struct jw *w)
{
	char time[TIME_TEXT_SIZE];
	switch (f->kind) {
	case KIND_INT:
		jw_int(w, *(const int64_t *)at);
		break;
	case KIND_NUM:
		jw_num(w, *(const double *)at);
		break;
	case KIND_BOOL:
		jw_bool(w, *(const enum tri *)at == YES);
		break;
	case KIND_ENUM:
		jw_str(w, f->choices[*(const int *)at]);
		break;
	case KIND_TIME:
		jw_str(w, time_text(time, *(const int64_t *)at));
		break;
	case KIND_OBJ:
		shape_encode(f->shape, *(const void *const *)at, w);
		break;
	case KIND_LIST:
		encode_list(f->shape, at, w);
		break;
	case KIND_MAP:
		encode_map(at, w);
		break;
	case KIND_RAW:
		jw_raw(w, *(const char *const *)at, strlen(*(const char *const *)at));
		break;
	case KIND_STR:
	case KIND_SECRET: /* never given */
	default:
		jw_str(w, *(const char *const *)at);
	}
}

void shape_encode(const struct shape *s, const void *in, struct jw *w)
{
	jw_obj(w);
	for (size_t i = 0; i < s->n; i++) {
		const struct field *f = &s->fields[i];
		const void *at = slot_of(in, f);
		if (f->kind == KIND_SECRET)
			continue;
		if (given(f, at)) {
			jw_key(w, f->name);
			encode_value(f, at, w);
		} else if (f->flags & NULLABLE) {
			jw_key(w, f->name);
			jw_null(w);
		}
	}
	jw_end(w);
}
