/*
 * Who calls: from the Authorization header to an account, a role and a plan.
 */
#pragma once
#include "exchange.h"

/* Without a header the caller is ROLE_ANYONE. A header that is not one living key is
 * ERR_TOKEN_INVALID: form and checksum are judged before any database work. */
MUST_USE enum err auth_caller(struct exchange *x);

/* Role and plan that a tool asks for: ERR_TOKEN_NEEDED, ERR_OWNER_NEEDED, ERR_PRO_NEEDED. */
MUST_USE enum err auth_allows(const struct caller *who, const struct tool *t);
