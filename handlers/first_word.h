/*
 * The one word of a command that may be stored.
 *
 * Everything else of a command may hold secrets, so the rule is narrow: leading assignments are
 * skipped, of a path only the base name counts, and what is not 1 ... 32 of [A-Za-z0-9._+-] is
 * "other". So is a word with '=' or "://" in it, or one whose quote is not closed: behind a slash
 * in those could stand a piece of a value.
 */
#pragma once

#define FIRST_WORD_SIZE 33

void first_word(const char *cmd, char out[FIRST_WORD_SIZE]);
