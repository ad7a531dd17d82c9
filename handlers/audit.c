/* The audit log: chained rows, written in the transaction of the action. */
#include "audit.h"

#include "arena.h"
#include "clock.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define AUDIT_ARENA (64u << 10)
#define ROW_BYTES   512 /* two numbers, 32 characters of action, 80 of object: 491 at most */

void audit_hash(const uint8_t before[AUDIT_HASH_BYTES], uint64_t seq, int64_t at,
	const char *action, const char *object, uint8_t out[AUDIT_HASH_BYTES])
{
	char text[ROW_BYTES];
	uint8_t all[AUDIT_HASH_BYTES + sizeof text];
	int n = snprintf(
		text, sizeof text, "%" PRIu64 "|%" PRId64 "|%s|%s", seq, at, action, object);
	assert(n > 0 && (size_t)n < sizeof text);
	memcpy(all, before, AUDIT_HASH_BYTES);
	memcpy(all + AUDIT_HASH_BYTES, text, (size_t)n);
	(void)SHA256(all, AUDIT_HASH_BYTES + (size_t)n, out);
}

/* Counting the account's changes locks its row until the end of the transaction: actions of one
 * account come one by one, so the row before this one is there. */
enum err audit_add(
	struct db *tx, struct id account, struct id token, const char *action, const char *object)
{
	CLEANUP_ARENA struct arena *a = arena_new(AUDIT_ARENA);
	struct rows change, last;
	uint8_t hash[AUDIT_HASH_BYTES], before[AUDIT_HASH_BYTES] = {0};
	int64_t now = clock_ms();
	bool duplicate;
	enum err e = db_tx_run(tx, SQL_ACCOUNT_CHANGE, ARGS(A_ID(account)), NULL, &change);
	if (!e)
		e = db_tx_run(tx, SQL_AUDIT_HASH,
			ARGS(A_ID(account), A_INT((int64_t)change.insert_id - 1)), a, &last);
	if (e)
		return e;
	if (last.n && row_cell(&last, 0, 0)->n == sizeof before)
		memcpy(before, row_cell(&last, 0, 0)->p, sizeof before);
	audit_hash(before, change.insert_id, now, action, object, hash);
	struct arg who = id_is_null(token) ? A_NULL : A_ID(token);
	return db_tx_insert(tx, SQL_AUDIT_ADD,
		ARGS(A_ID(account), A_INT((int64_t)change.insert_id), who, A_STR(action),
			A_STR(object), A_INT(now), A_BYTES(hash, sizeof hash)),
		&duplicate);
}
