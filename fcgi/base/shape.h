/*
 * Shapes: a struct described by a table of fields.
 *
 * From one table come the decoder of arguments, the encoder of results and the JSON Schema of both,
 * so they can not disagree. Name, C type and offset are bound by the macros below: a wrong kind is
 * a compile error.
 *
 *   static const struct field cancel_in_fields[] = {
 *           STR_FIELD(struct cancel_in, job_id, REQUIRED, 1, 64, "The job."),
 *   };
 *   static const struct shape cancel_in = SHAPE(struct cancel_in, cancel_in_fields, "...");
 */
#pragma once
#include "err.h"
#include "secret.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct json;
struct jw;

enum kind {
	KIND_STR,    /* const char *; min ... max count characters, or bytes with IN_BYTES */
	KIND_SECRET, /* struct secret; decoded only, schemas show it as write-only; bytes */
	KIND_INT,    /* int64_t */
	KIND_NUM,    /* double */
	KIND_BOOL,   /* enum tri */
	KIND_ENUM,   /* int: index into choices, -1 absent */
	KIND_TIME,   /* int64_t milliseconds since 1970, encoded as ISO 8601; encode only */
	KIND_OBJ,    /* const void *: a struct of shape */
	KIND_LIST,   /* struct list of structs of shape, or of const char * when shape is NULL */
	KIND_MAP,    /* struct map: string to string; min ... max count entries */
	KIND_RAW,    /* const char *: text of any JSON value; encode only */
};

/* Absent values. Decoding fills every field that was not sent with these; encoding leaves such
 * fields out, or writes null when the field is NULLABLE. Pointers, lists and maps are absent when
 * NULL (their items); a REQUIRED list or map that is absent is written empty. */
#define ABSENT_INT INT64_MIN
#define ABSENT_NUM ((double)NAN)
enum tri { ABSENT_BOOL = -1, NO = 0, YES = 1 };

struct list {
	size_t n;
	void *items; /* array of the shape's struct, or of const char * */
};
struct map_entry {
	const char *name, *value;
};
struct map {
	size_t n;
	struct map_entry *items;
};

enum field_flags {
	REQUIRED = 1,
	NULLABLE = 2, /* results: written as null when absent, so the member is always there */
	IN_BYTES = 4, /* min and max count bytes */
};

struct shape;
struct field {
	const char *name, *doc;
	enum kind kind;
	unsigned flags;
	size_t at;                  /* offset in the struct */
	int64_t min, max;           /* value, length or count; both 0: no bound */
	const char *const *choices; /* KIND_ENUM, words of a KIND_STR: NULL-terminated */
	const struct shape *shape;  /* KIND_OBJ, KIND_LIST */
	int64_t value_max;          /* KIND_MAP, KIND_LIST of strings: bytes of one; 0: no bound */
	const char *pattern;        /* JSON Schema pattern shown to clients; checked by valid() */
	bool (*valid)(const char *s); /* KIND_STR, and names of KIND_MAP; NULL: anything goes */
	const char *example;          /* JSON text for the documents, or NULL */
};
struct shape {
	const char *doc;
	size_t size;
	const struct field *fields;
	size_t n;
};

#define FIELD_AT(type, member, want) _Generic(((type *)0)->member, want : offsetof(type, member))
#define STR_FIELD(type, member, flag, low, high, text, ...)                                        \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_STR, .flags = (flag), .min = (low),   \
		.max = (high), .at = FIELD_AT(type, member, const char *), __VA_ARGS__             \
	}
#define SECRET_FIELD(type, member, flag, low, high, text, ...)                                     \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_SECRET, .flags = (flag),              \
		.min = (low), .max = (high), .at = FIELD_AT(type, member, struct secret),          \
		__VA_ARGS__                                                                        \
	}
#define INT_FIELD(type, member, flag, low, high, text, ...)                                        \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_INT, .flags = (flag), .min = (low),   \
		.max = (high), .at = FIELD_AT(type, member, int64_t), __VA_ARGS__                  \
	}
#define NUM_FIELD(type, member, flag, low, high, text, ...)                                        \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_NUM, .flags = (flag), .min = (low),   \
		.max = (high), .at = FIELD_AT(type, member, double), __VA_ARGS__                   \
	}
#define BOOL_FIELD(type, member, flag, text, ...)                                                  \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_BOOL, .flags = (flag),                \
		.at = FIELD_AT(type, member, enum tri), __VA_ARGS__                                \
	}
#define ENUM_FIELD(type, member, flag, words, text, ...)                                           \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_ENUM, .flags = (flag),                \
		.choices = (words), .at = FIELD_AT(type, member, int), __VA_ARGS__                 \
	}
/* A text of a result that is always one of these words. */
#define WORD_FIELD(type, member, flag, words, text)                                                \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_STR, .flags = (flag),                 \
		.choices = (words), .at = FIELD_AT(type, member, const char *)                     \
	}
#define TIME_FIELD(type, member, flag, text, ...)                                                  \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_TIME, .flags = (flag),                \
		.at = FIELD_AT(type, member, int64_t), __VA_ARGS__                                 \
	}
#define OBJ_FIELD(type, member, flag, of, text, ...)                                               \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_OBJ, .flags = (flag), .shape = (of),  \
		.at = FIELD_AT(type, member, const void *), __VA_ARGS__                            \
	}
#define LIST_FIELD(type, member, flag, of, low, high, text, ...)                                   \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_LIST, .flags = (flag), .shape = (of), \
		.min = (low), .max = (high), .at = FIELD_AT(type, member, struct list),            \
		__VA_ARGS__                                                                        \
	}
#define MAP_FIELD(type, member, flag, low, high, text, ...)                                        \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_MAP, .flags = (flag), .min = (low),   \
		.max = (high), .at = FIELD_AT(type, member, struct map), __VA_ARGS__               \
	}
#define RAW_FIELD(type, member, flag, text, ...)                                                   \
	{                                                                                          \
		.name = #member, .doc = (text), .kind = KIND_RAW, .flags = (flag),                 \
		.at = FIELD_AT(type, member, const char *), __VA_ARGS__                            \
	}
#define SHAPE(type, list_of_fields, text)                                                          \
	{                                                                                          \
		.doc = (text), .size = sizeof(type), .fields = (list_of_fields),                   \
		.n = sizeof(list_of_fields) / sizeof((list_of_fields)[0])                          \
	}

/* Puts the absent value into every field of a struct, and zeros into the rest of it. */
void shape_init(const struct shape *s, void *out);

/*
 * Decodes an object into out (s->size bytes, initialised here). Unknown members, wrong types,
 * missing required members and values out of bounds are ERR_BAD_INPUT with the path of the field
 * and the bound in the detail. null counts as absent, but not inside a list or map; 60.0 is an
 * integer. NULL o counts as {}. Names in a map have at most MAP_NAME_BYTES_MAX bytes. Encode-only
 * kinds are unknown here. Strings and lists live in the arena, secrets in the secure heap (free
 * with shape_done); on failure no secret is left and every field is absent.
 */
MUST_USE enum err shape_decode(
	const struct shape *s, const struct json *o, struct arena *a, void *out);

/* Wipes and frees the secrets of a decoded struct. */
void shape_done(const struct shape *s, void *out);

/* Writes the struct as an object in declared order. Secrets are never written. */
void shape_encode(const struct shape *s, const void *in, struct jw *w);

/*
 * Writes the JSON Schema (2020-12) of the struct. Unknown members are refused. input: secrets are
 * writeOnly, encode-only kinds are left out. Results: secrets are left out; REQUIRED and NULLABLE
 * members are required. What shape_decode accepts (apart from members that are null) is valid; the
 * converse holds except for fields that count bytes (the schema can only count characters) or that
 * have a valid() without a pattern.
 */
void shape_schema(const struct shape *s, bool input, struct jw *w);
