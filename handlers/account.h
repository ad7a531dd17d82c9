/*
 * Accounts, plans and our own tokens.
 */
#pragma once
#include "db.h"
#include "tool.h"

enum plan plan_of(const char *name);
const char *plan_name(enum plan p);
/* Calls a day of this caller, from the settings. */
int64_t plan_limit(const struct conf *c, const struct caller *who);
/* After USAGE_COUNT or ADDRESS_COUNT: nothing was counted, because the limit was reached. */
bool over_limit(const struct rows *counted, int64_t limit);
/* The next UTC midnight. */
int64_t day_end_ms(int64_t now);

/* Makes an account with its first owner token; the token's text is shown this once. */
MUST_USE enum err account_create(
	const char *plan, struct arena *a, struct id *ret_account, const char **ret_token);

struct token_wish {
	struct id account, created_by; /* null created_by: the operator */
	bool agent;
	const char *name;
	int64_t expires_at; /* ABSENT_INT: never */
};
MUST_USE enum err token_create(
	const struct token_wish *w, struct arena *a, struct id *ret_id, const char **ret_token);
