/*
 * Reading a shell command text word by word, without running or expanding anything.
 *
 * Knows quotes, backslashes, comments, operators, redirections, here-documents and the extent of
 * expansions ($x, ${...}, $(...), `...`). An expansion becomes one '$' in the word, so its inside
 * can never be taken for a name. Any bytes may come in; time is linear and nothing is allocated.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum shell_token {
	SHELL_WORD,
	SHELL_NEXT, /* newline ; && || ( ): what follows runs later */
	SHELL_PIPE, /* | & : what follows runs at the same time */
	SHELL_END,
};

#define SHELL_HEREDOCS_MAX 4
#define SHELL_HEREDOC_SIZE 64

struct shell {
	const char *at, *end;
	size_t heredocs; /* whose bodies begin behind the next newline */
	char heredoc[SHELL_HEREDOCS_MAX][SHELL_HEREDOC_SIZE];
};

struct shell_word {
	char *p;         /* in: where to put the unquoted word, NUL-terminated */
	size_t cap;      /* in: room at p, at least 1 */
	size_t n;        /* characters written */
	bool assignment; /* NAME=..., also NAME+= and NAME[i]= */
	bool cut;        /* the room was too small */
	bool open;       /* a quote or an expansion was not closed: the word runs to the end */
};

/* Borrows the text. */
struct shell shell_start(const char *text, size_t n);

/* The next word or operator. Redirections with their targets and here-document bodies are skipped.
 * The word is filled for SHELL_WORD only. */
enum shell_token shell_next(struct shell *s, struct shell_word *w);
