/*
 * The first word of a command. It promises that nothing of assignments, quotes that were left open,
 * expansions or comments gets out. It does not look behind wrappers: of "sudo npm ci" it is "sudo".
 */
#include "first_word.h"

#include "shell_words.h"
#include "text.h"

#include <stdbool.h>
#include <string.h>

/* A path with a name behind it that is longer than this is not worth reading. */
#define WORD_SIZE 1024

static bool may_be_named(const struct shell_word *w)
{
	/* A NUL can not be in the text, so the word is a string. */
	return !w->open && !w->cut && !strchr(w->p, '=') && !strstr(w->p, "://");
}

void first_word(const char *cmd, char out[FIRST_WORD_SIZE])
{
	char text[WORD_SIZE];
	struct shell_word w = {.p = text, .cap = sizeof text};
	struct shell s = shell_start(cmd, strlen(cmd));
	enum shell_token token;
	do
		token = shell_next(&s, &w);
	while (token != SHELL_END && (token != SHELL_WORD || w.assignment));
	memcpy(out, "other", sizeof "other");
	if (token == SHELL_END || !may_be_named(&w))
		return;
	const char *slash = strrchr(text, '/');
	const char *name = slash ? slash + 1 : text;
	if (name_safe(name, FIRST_WORD_SIZE - 1))
		memcpy(out, name, strlen(name) + 1);
}
