/*
 * Provider keys: sealed into the database, opened for one call.
 */
#pragma once
#include "arena.h"
#include "err.h"
#include "id.h"
#include "provider.h"
#include "seal.h"

/* The account's oldest data key: stable, so it serves for HMACs. Free with data_key_done. */
MUST_USE enum err vault_account_key(struct id account, struct arena *a, struct data_key *ret);

/* Makes an account's first data key, to be written in the transaction that makes the account. */
struct fresh_key {
	struct data_key key;
	struct blob wrapped;
};
MUST_USE enum err vault_fresh_key(struct id account, struct arena *a, struct fresh_key *ret);

struct sealed_key {
	struct id data_key;
	struct blob blob;
	char fingerprint[9]; /* 8 hex digits of an HMAC over the whole credential */
};
/* Seals a credential for one key name and version. */
MUST_USE enum err vault_seal(struct id account, const struct credential *c, const char *provider,
	const char *name, uint32_t version, struct arena *a, struct sealed_key *ret);

/* A key opened for use. Free with vault_close. */
struct opened_key {
	const struct provider *provider;
	struct credential credential;
	const char *name;
	bool deleting; /* only the keeper may go on with it, to stop sandboxes */
};
/* ERR_KEY_NOT_FOUND, ERR_SEALED, ERR_PROVIDER_UNAVAILABLE. */
MUST_USE enum err vault_open(
	struct id account, struct id key, struct arena *a, struct opened_key *ret);
void vault_close(struct opened_key *k);
#define CLEANUP_KEY __attribute__((cleanup(vault_close)))
