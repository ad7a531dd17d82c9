/* A shape with every kind of field, shared by the tests of shapes and their fuzz target. */
#pragma once
#include "shape.h"

#include <string.h>

struct part {
	const char *name;
	int64_t size;
	struct secret token;
};

struct kinds {
	int64_t count;
	const char *text, *bytes, *word, *odd;
	struct secret token;
	int64_t any, near;
	double ratio, real;
	enum tri flag;
	int mode;
	int64_t when;
	const void *one;
	struct list parts, tags;
	struct map env;
	const char *extra;
};

static bool letters_only(const char *s)
{
	return strspn(s, "abcdefghijklmnopqrstuvwxyz") == strlen(s);
}

static bool not_dots(const char *s)
{
	return strcmp(s, "..") != 0;
}

static bool env_name(const char *s)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	return strchr(first, *s) &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
			 "0123456789") == strlen(s);
}

static const char *const modes[] = {"plain", "base64", NULL};

/* clang-format off */
static const struct field part_fields[] = {
	STR_FIELD(struct part, name, REQUIRED, 1, 8, "What it is called."),
	INT_FIELD(struct part, size, 0, 0, 99, "How large it is."),
	SECRET_FIELD(struct part, token, 0, 1, 8, "A secret of the part."),
};
static const struct shape part_shape = SHAPE(struct part, part_fields, "A part.");

static const struct field kinds_fields[] = {
	INT_FIELD(struct kinds, count, REQUIRED, 1, 3600, "How many.", .example = "60"),
	STR_FIELD(struct kinds, text, NULLABLE, 2, 5, "Counts characters."),
	STR_FIELD(struct kinds, bytes, IN_BYTES, 2, 5, "Counts bytes."),
	STR_FIELD(struct kinds, word, 0, 0, 0, "Letters.", .pattern = "^[a-z]*$", .valid = letters_only),
	STR_FIELD(struct kinds, odd, 0, 0, 0, "Anything but two dots.", .valid = not_dots),
	SECRET_FIELD(struct kinds, token, 0, 4, 16, "A secret."),
	INT_FIELD(struct kinds, any, 0, 0, 0, "Any integer."),
	INT_FIELD(struct kinds, near, NULLABLE, -5, 0, "Not above zero."),
	NUM_FIELD(struct kinds, ratio, NULLABLE, 0, 1, "A share."),
	NUM_FIELD(struct kinds, real, 0, 0, 0, "Any number."),
	BOOL_FIELD(struct kinds, flag, NULLABLE, "Yes or no."),
	ENUM_FIELD(struct kinds, mode, NULLABLE, modes, "How."),
	TIME_FIELD(struct kinds, when, NULLABLE, "When."),
	OBJ_FIELD(struct kinds, one, NULLABLE, &part_shape, "One part.", .example = "{\"name\":\"a\"}"),
	LIST_FIELD(struct kinds, parts, 0, &part_shape, 1, 3, "Parts."),
	LIST_FIELD(struct kinds, tags, NULLABLE, NULL, 0, 3, "Tags.", .value_max = 4),
	MAP_FIELD(struct kinds, env, 0, 0, 2, "Variables.", .value_max = 4,
		.pattern = "^[A-Za-z_][A-Za-z0-9_]*$", .valid = env_name),
	RAW_FIELD(struct kinds, extra, 0, "Anything."),
};
/* clang-format on */
static const struct shape kinds_shape = SHAPE(struct kinds, kinds_fields, "Every kind.");
