/*
 * The JSON Schema of a shape, from the same table that decodes and encodes.
 *
 * Lengths in bytes have no word in JSON Schema, which counts characters. Their schema is the widest
 * that holds for every accepted value, and the description tells the bytes.
 */
#include "shape.h"

#include "buf.h"
#include "json.h"
#include "bounds.h"

#include <string.h>

#define DOC_BYTES_MAX 4096 /* our own words */

static void object_schema(const struct shape *s, bool input, struct jw *w);
static void field_schema(const struct field *f, bool input, struct jw *w);

static bool bounded(const struct field *f)
{
	return f->min || f->max;
}

static bool in_bytes(const struct field *f)
{
	return bounded(f) && (f->kind == KIND_SECRET || f->flags & IN_BYTES);
}

/* Members of results that may be null say so; arguments do not, although null counts as absent. */
static bool nullable(const struct field *f, bool input)
{
	return !input && f->flags & NULLABLE;
}

static void write_type(const char *type, bool null, struct jw *w)
{
	jw_key(w, "type");
	if (!null) {
		jw_str(w, type);
		return;
	}
	jw_list(w);
	jw_str(w, type);
	jw_str(w, "null");
	jw_end_list(w);
}

static void write_doc(const struct field *f, struct jw *w)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, DOC_BYTES_MAX);
	buf_str(&b, f->doc);
	if (in_bytes(f))
		buf_printf(&b, " At most %lld bytes in UTF-8.", (long long)f->max);
	jw_kstr(w, "description", b.p);
}

static void write_bounds(const struct field *f, const char *low, const char *high, struct jw *w)
{
	if (!bounded(f))
		return;
	/* A character has at most four bytes. */
	int64_t min = in_bytes(f) ? (f->min + 3) / 4 : f->min;
	bool counts = f->kind != KIND_INT && f->kind != KIND_NUM;
	if (min || !counts)
		jw_kint(w, low, min);
	jw_kint(w, high, f->max);
}

static void write_enum(const struct field *f, bool null, struct jw *w)
{
	jw_key(w, "enum");
	jw_list(w);
	for (size_t i = 0; f->choices[i]; i++)
		jw_str(w, f->choices[i]);
	if (null)
		jw_null(w);
	jw_end_list(w);
}

/* A value of a map, an element of a list of strings. */
static void write_item(const struct field *f, struct jw *w)
{
	jw_obj(w);
	write_type("string", false, w);
	if (f->value_max) {
		jw_kint(w, "maxLength", f->value_max);
		jw_key(w, "description");
		CLEANUP_BUF struct buf b;
		buf_init(&b, DOC_BYTES_MAX);
		buf_printf(&b, "At most %lld bytes in UTF-8.", (long long)f->value_max);
		jw_str(w, b.p);
	}
	jw_end(w);
}

static void write_list(const struct field *f, bool input, struct jw *w)
{
	write_bounds(f, "minItems", "maxItems", w);
	jw_key(w, "items");
	if (f->shape)
		object_schema(f->shape, input, w);
	else
		write_item(f, w);
}

static void write_map(const struct field *f, struct jw *w)
{
	write_bounds(f, "minProperties", "maxProperties", w);
	jw_key(w, "propertyNames");
	jw_obj(w);
	jw_kint(w, "minLength", 1);
	jw_kint(w, "maxLength", MAP_NAME_BYTES_MAX);
	if (f->pattern)
		jw_kstr(w, "pattern", f->pattern);
	jw_end(w);
	jw_key(w, "additionalProperties");
	write_item(f, w);
}

static void write_text(const struct field *f, struct jw *w)
{
	write_bounds(f, "minLength", "maxLength", w);
	if (f->kind == KIND_TIME)
		jw_kstr(w, "format", "date-time");
	if (f->kind == KIND_SECRET) {
		jw_kstr(w, "format", "password");
		jw_kbool(w, "writeOnly", true);
	}
	if (f->kind == KIND_STR && f->pattern)
		jw_kstr(w, "pattern", f->pattern);
}

static void write_integer(const struct field *f, bool input, struct jw *w)
{
	static const struct field exact = {
		.kind = KIND_INT, .min = -JSON_INT_MAX, .max = JSON_INT_MAX};
	write_bounds(input && !bounded(f) ? &exact : f, "minimum", "maximum", w);
}

/* Whether the field exists on this side at all. */
static bool shown(const struct field *f, bool input)
{
	bool encode_only = f->kind == KIND_TIME || f->kind == KIND_RAW;
	return input ? !encode_only : f->kind != KIND_SECRET;
}

static void write_required(const struct shape *s, bool input, struct jw *w)
{
	const unsigned always = input ? REQUIRED : REQUIRED | NULLABLE;
	jw_key(w, "required");
	jw_list(w);
	for (size_t i = 0; i < s->n; i++)
		if (s->fields[i].flags & always && shown(&s->fields[i], input))
			jw_str(w, s->fields[i].name);
	jw_end_list(w);
}

/* What every object has behind its type and description. */
static void write_members(const struct shape *s, bool input, struct jw *w)
{
	jw_key(w, "properties");
	jw_obj(w);
	for (size_t i = 0; i < s->n; i++) {
		if (!shown(&s->fields[i], input))
			continue;
		jw_key(w, s->fields[i].name);
		field_schema(&s->fields[i], input, w);
	}
	jw_end(w);
	write_required(s, input, w);
	jw_kbool(w, "additionalProperties", false);
}

static void object_schema(const struct shape *s, bool input, struct jw *w)
{
	jw_obj(w);
	write_type("object", false, w);
	if (s->doc)
		jw_kstr(w, "description", s->doc);
	write_members(s, input, w);
	jw_end(w);
}

static void write_kind(const struct field *f, bool input, struct jw *w)
{
	switch (f->kind) {
	case KIND_INT:
		write_integer(f, input, w);
		break;
	case KIND_NUM:
		write_bounds(f, "minimum", "maximum", w);
		break;
	case KIND_ENUM:
		write_enum(f, nullable(f, input), w);
		break;
	case KIND_LIST:
		write_list(f, input, w);
		break;
	case KIND_MAP:
		write_map(f, w);
		break;
	case KIND_STR:
	case KIND_SECRET:
	case KIND_TIME:
		if (f->choices)
			write_enum(f, nullable(f, input), w);
		else
			write_text(f, w);
		break;
	case KIND_OBJ:
		write_members(f->shape, input, w);
		break;
	case KIND_BOOL:
	case KIND_RAW:
	default:
		break;
	}
}

static void field_schema(const struct field *f, bool input, struct jw *w)
{
	static const char *const types[] = {
		[KIND_STR] = "string",
		[KIND_SECRET] = "string",
		[KIND_INT] = "integer",
		[KIND_NUM] = "number",
		[KIND_BOOL] = "boolean",
		[KIND_ENUM] = "string",
		[KIND_TIME] = "string",
		[KIND_OBJ] = "object",
		[KIND_LIST] = "array",
		[KIND_MAP] = "object",
		[KIND_RAW] = NULL, /* anything */
	};
	jw_obj(w);
	if (types[f->kind])
		write_type(types[f->kind], nullable(f, input), w);
	write_doc(f, w);
	write_kind(f, input, w);
	if (f->example) {
		jw_key(w, "examples");
		jw_list(w);
		jw_raw(w, f->example, strlen(f->example));
		jw_end_list(w);
	}
	jw_end(w);
}

void shape_schema(const struct shape *s, bool input, struct jw *w)
{
	object_schema(s, input, w);
}
