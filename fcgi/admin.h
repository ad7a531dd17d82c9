/*
 * Operator commands: accounts, plans, tokens, master keys, audit, the schema.
 */
#pragma once
#include "conf.h"

struct admin_options {
	bool json;        /* --json: one JSON object per result */
	bool agent;       /* --agent: an agent token instead of an owner token */
	const char *plan; /* --plan; NULL: the settings' default */
};

/* `words` (NULL-terminated) are what follows "admin". Returns the exit status. */
int admin_run(const struct conf *conf, char **words, const struct admin_options *options);

/* Applies the migrations that are not applied yet. Returns the exit status. */
int migrate_run(const struct conf *conf);
