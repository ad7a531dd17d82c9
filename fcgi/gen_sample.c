/*
 * Examples for the documents: objects that are valid against the schema of a shape.
 *
 * A field's own example comes first, then the words below, then what its type and bounds ask for.
 * Members that are neither required nor have an example are left out.
 */
#include "gen_part.h"

#include <string.h>

/* Members whose meaning a type can not tell; together they show one job that went well. */
static const struct {
	const char *name, *json;
} words[] = {
	{"job_id", "\"job_aaaaaaaaaaaaaaaaaaaaaaaaaa\""},
	{"account", "\"acc_aaaaaaaaaaaaaaaaaaaaaaaaaa\""},
	{"id", "\"key_aaaaaaaaaaaaaaaaaaaaaaaaaa\""},
	{"state", "\"ended\""},
	{"outcome", "\"succeeded\""},
	{"exit_code", "0"},
	{"stdout", "\"all tests passed\\n\""},
	{"stderr", "\"\""},
	{"stdout_bytes", "17"},
	{"stderr_bytes", "0"},
	{"output", "\"inline\""},
	{"sandbox", "\"stopped\""},
	{"command_word", "\"make\""},
	{"provider", "\"tunnel\""},
	{"fingerprint", "\"0a1b2c3d\""},
	{"health", "\"healthy\""},
	{"status", "\"ok\""},
	{"verdict", "\"run_local\""},
	{"source", "\"table\""},
	{"kind", "\"owner\""},
	{"plan", "\"free\""},
	{"ends_with", "\"wxyz\""},
};

static const char *word_of(const struct field *f, bool input)
{
	if (f->example)
		return f->example;
	for (size_t i = 0; !input && i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i].name, f->name) == 0 && !f->shape)
			return words[i].json;
	return NULL;
}

/* Any text of a length within the bounds. */
static void put_text(const struct field *f, struct jw *w)
{
	static const char text[] = "text";
	size_t n = sizeof text - 1;
	if (f->max && n > (size_t)f->max)
		n = (size_t)f->max;
	jw_strn(w, text, n);
}

static void put_list(const struct field *f, bool input, struct jw *w)
{
	jw_list(w);
	if (f->shape)
		gen_sample(f->shape, input, w);
	else
		jw_str(w, "text");
	jw_end_list(w);
}

static void put_value(const struct field *f, bool input, struct jw *w)
{
	switch (f->kind) {
	case KIND_STR:
	case KIND_SECRET:
		if (f->choices)
			jw_str(w, f->choices[0]);
		else
			put_text(f, w);
		break;
	case KIND_INT:
	case KIND_NUM:
		jw_int(w, f->min);
		break;
	case KIND_BOOL:
		jw_bool(w, true);
		break;
	case KIND_ENUM:
		jw_str(w, f->choices[0]);
		break;
	case KIND_TIME:
		jw_str(w, "2026-01-31T12:00:00.000Z");
		break;
	case KIND_OBJ:
		gen_sample(f->shape, input, w);
		break;
	case KIND_LIST:
		put_list(f, input, w);
		break;
	case KIND_MAP:
	case KIND_RAW:
	default:
		jw_obj(w);
		jw_end(w);
		break;
	}
}

void gen_sample(const struct shape *s, bool input, struct jw *w)
{
	const unsigned always = input ? REQUIRED : REQUIRED | NULLABLE;
	jw_obj(w);
	for (size_t i = 0; i < s->n; i++) {
		const struct field *f = &s->fields[i];
		const char *word = word_of(f, input);
		if (!gen_shown(f, input) || !(word || f->flags & always))
			continue;
		jw_key(w, f->name);
		if (word)
			jw_raw(w, word, strlen(word));
		else
			put_value(f, input, w);
	}
	jw_end(w);
}
