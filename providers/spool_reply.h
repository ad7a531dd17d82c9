/*
 * The strict reader of what the spool scripts print (spool.c, tests, fuzzing).
 *
 * The text comes from a machine that runs somebody else's code. Whatever differs from the form of
 * the script is ERR_UPSTREAM, never an exit code.
 */
#pragma once
#include "spool.h"

/* What was asked; the reply must fit it. */
struct spool_ask {
	int64_t out_from, err_from, slice;
};

/* Reads a poll reply. OK with SPOOL_GONE on "gone", ERR_BOX_GONE on "reset". */
MUST_USE enum err spool_read_poll(const char *p, size_t n, const struct spool_ask *ask,
	struct arena *a, struct spool_status *ret);

/* Reads a reply of one word; *ret becomes its index in words (NULL-terminated). */
MUST_USE enum err spool_read_word(const char *p, size_t n, const char *const *words, int *ret);

/* The same for the first line alone; *ret_n becomes its length with its end. */
MUST_USE enum err spool_read_first(
	const char *p, size_t n, const char *const *words, int *ret, size_t *ret_n);

/* The line of the environment file for one variable, appended to b. */
struct buf;
void spool_env_line(struct buf *b, const char *name, const char *value);
