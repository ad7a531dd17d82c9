/*
 * The words of one command, and the small languages used on them: patterns, options, sizes.
 *
 * Internal to the estimate (need_match.c). Nothing here allocates.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PART_WORDS_MAX 256 /* of one command; worker counts and settings stand before that */

struct part {
	size_t n;
	const char *w[PART_WORDS_MAX];
	bool assignment[PART_WORDS_MAX];
};

/* True when the n characters of word are one of the '|'-separated alternatives of pattern; '*' at
 * the end of an alternative matches any rest. */
bool word_is(const char *pattern, size_t pattern_n, const char *word, size_t n);

/* True when word is one of the space-separated words of list. */
bool word_listed(const char *list, const char *word);

/* The program's name in a word: base name, without @version and without a script's suffix. */
const char *word_program(const char *word, size_t *ret_n);
bool word_is_option(const char *w);

/* What stands behind an option (n characters) in a word: "" when the option is the whole word, NULL
 * when it is another word. Short options may carry a number or "auto" without a '='. */
const char *word_option(const char *word, const char *option, size_t n);

/* The index behind the words that a pattern (need_row.patterns) matches from word i on, 0 when it
 * does not match. */
size_t part_match(const struct part *p, size_t i, const char *pattern);

/* True when one of texts ('|' between them; case of letters ignored) stands in a word. */
bool part_holds(const struct part *p, const char *texts);

/* The worker count that one of the options (spaces between them) carries, from word `from` on; -1:
 * none is written. Words like "auto" mean cores, a percentage is of cores. */
int64_t part_workers(const struct part *p, size_t from, const char *options, int64_t cores);

/* Digits with k, m, g or t behind them (anything else: units of unit_bytes), as MB rounded up.
 * False for zero and for more than MEMORY_MB_MAX: that is no memory size. */
bool size_read(const char *s, int64_t unit_bytes, int64_t *ret_mb);
