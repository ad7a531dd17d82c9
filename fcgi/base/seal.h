/*
 * Keys at rest: master keys wrap one data key per account, the data key seals values. Format and
 * rotation are explained in docs/sealing.md.
 *
 *   blob = version (1) | key id (4) | nonce (12) | ciphertext | tag (16)
 *
 * The key id is the master key's in a wrapped data key, and the first four bytes of the data key's
 * id in a sealed value. It is looked up, never tried. Every part of a value's identity goes into
 * the additional authenticated data, so a blob that was copied to another row does not open.
 */
#pragma once
#include "err.h"
#include "id.h"
#include "secret.h"

#include <stddef.h>
#include <stdint.h>

struct arena;

#define SEAL_KEY_BYTES 32
#define SEAL_OVERHEAD  (1 + 4 + 12 + 16)

/* -- master keys: a 0600 file of lines "ID KEY [current]" ---------------------------------------
 * ID is 8 hex digits and not 0, KEY 64 hex digits; exactly one line is current; # begins a comment
 * (comments are lost when the file is rewritten). At most MASTER_KEYS_MAX lines. */
struct keyring;

/* ERR_SEALED on "keys.master_keys", with the line in the detail, when the file is missing, open to
 * others, or malformed. */
MUST_USE enum err keyring_load(const char *path, struct keyring **ret);
void keyring_free(struct keyring *k); /* wipes; NULL is fine */
uint32_t keyring_current(const struct keyring *k);
bool keyring_has(const struct keyring *k, uint32_t id);
/* Makes a file with one fresh key (exclusive create, 0600); adds a fresh key to it; makes one
 * current; removes one that is not current. Each rewrites the file by rename, keeps its owner, and
 * is on the disk when it returns. ERR_BAD_INPUT on "id" when there is no such key or it is current,
 * ERR_SEALED when the file can not be read or written. */
MUST_USE enum err keyring_create(const char *path, uint32_t *ret_id);
MUST_USE enum err keyring_add(const char *path, uint32_t *ret_id);
MUST_USE enum err keyring_make_current(const char *path, uint32_t id);
MUST_USE enum err keyring_remove(const char *path, uint32_t id);

/* -- data keys --------------------------------------------------------------------------------- */
struct data_key {
	struct id id;
	struct id account;
	struct secret key; /* free with data_key_done */
};
void data_key_done(struct data_key *d); /* wipes */

struct blob {
	const uint8_t *p;
	size_t n;
};

/* A fresh data key for an account, and its wrapped form under the current master key. */
MUST_USE enum err data_key_new(const struct keyring *k, struct id account, struct arena *a,
	struct data_key *ret, struct blob *ret_wrapped);
/* The wrapped form of an open data key under the now current master key: for rotation. */
MUST_USE enum err data_key_wrap(
	const struct keyring *k, const struct data_key *d, struct arena *a, struct blob *ret);
/* ERR_SEALED when the master key is unknown here, or when the blob does not open. */
MUST_USE enum err data_key_open(const struct keyring *k, struct id id, struct id account,
	struct blob wrapped, struct data_key *ret);
/* Which master key a wrapped data key names; 0 when the blob is malformed. */
uint32_t blob_key_id(struct blob b);

/* -- values: a provider key bound to account, provider, name and version ------------------------
 */
struct seal_place {
	const char *purpose; /* "provider-key" */
	const char *provider, *name;
	uint32_t version;
};
/* ERR_BAD_INPUT on "value" when n is over SEAL_VALUE_BYTES_MAX. */
MUST_USE enum err seal_value(const struct data_key *d, const struct seal_place *at, const void *p,
	size_t n, struct arena *a, struct blob *ret);
/* ERR_SEALED when the blob names another data key or was not made for this place. */
MUST_USE enum err seal_open(
	const struct data_key *d, const struct seal_place *at, struct blob b, struct secret *ret);

/* HMAC-SHA256 under a key that HKDF derives from the data key for this purpose
 * ("idempotency", "fingerprint", "address"). */
void seal_hmac(
	const struct data_key *d, const char *purpose, const void *p, size_t n, uint8_t out[32]);

/* -- results: sealed to the token that started the job ------------------------------------------
 * The private half is X25519 over HKDF(token), so only the token's holder can open; the server
 * stores the public half. AAD: job and token id. */
#define RESULT_PUBLIC_BYTES 32
#define RESULT_OVERHEAD     (1 + 32 + 12 + 16)
void result_public(const struct secret *token, uint8_t out[RESULT_PUBLIC_BYTES]);
/* blob = version (1) | ephemeral public key (32) | nonce (12) | ciphertext | tag (16)
 * ERR_SEALED when the public half is no usable point. n is at most REPLY_BYTES_MAX. */
MUST_USE enum err result_seal(const uint8_t public_key[RESULT_PUBLIC_BYTES], struct id job,
	struct id token_id, const void *p, size_t n, struct arena *a, struct blob *ret);
/* ERR_SEALED when the blob was not made for this token, job and token id. */
MUST_USE enum err result_open(const struct secret *token, struct id job, struct id token_id,
	struct blob b, struct arena *a, uint8_t **ret, size_t *ret_n);
