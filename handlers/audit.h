/*
 * Who did what to which object: one row in the transaction of the action itself, so an action
 * without a row can not exist. Each row's hash covers the row before it (per account).
 */
#pragma once
#include "db.h"
#include "id.h"

/* token: null id for the operator. object: an id or a name of ours. */
MUST_USE enum err audit_add(
	struct db *tx, struct id account, struct id token, const char *action, const char *object);

#define AUDIT_HASH_BYTES 32
/* The hash of a row, from the hash of the one before (32 zero bytes for the first). */
void audit_hash(const uint8_t before[AUDIT_HASH_BYTES], uint64_t seq, int64_t at,
	const char *action, const char *object, uint8_t out[AUDIT_HASH_BYTES]);
