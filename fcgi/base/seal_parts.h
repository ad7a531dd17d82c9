/*
 * What the files behind seal.h share: seal.c (ciphers, data keys, values), keyring.c (the file of
 * master keys), seal_result.c (results). Nobody else includes this.
 */
#pragma once
#include "seal.h"

#define SEAL_VERSION 1
#define NONCE_BYTES  12
#define TAG_BYTES    16

/* Additional authenticated data: a list of items, each behind its length in four bytes, so that no
 * two lists give the same bytes. */
struct aad {
	uint8_t p[640];
	size_t n;
};
void aad_put(struct aad *a, const void *p, size_t n);
void aad_str(struct aad *a, const char *s);
void aad_u32(struct aad *a, uint32_t v);
/* The two items that every list begins with: what for, and the version of the blob. */
struct aad aad_begin(const char *purpose);

/* The key for one use of a secret: HKDF-SHA256 with the label and a context as info. */
struct use {
	const char *label;
	const void *context;
	size_t context_n;
};
void derive(uint8_t out[SEAL_KEY_BYTES], const void *secret, size_t n, const struct use *use);
void derive_from(uint8_t out[SEAL_KEY_BYTES], const struct secret *secret, const struct use *use);

/* AES-256-GCM. out takes nonce, ciphertext and tag: n + 28 bytes; the nonce is random. Opening
 * takes the same bytes, and writes n - 28; false and out wiped when anything differs. */
void gcm_seal(const uint8_t key[SEAL_KEY_BYTES], const struct aad *aad, const void *p, size_t n,
	uint8_t *out);
MUST_USE bool gcm_open(const uint8_t key[SEAL_KEY_BYTES], const struct aad *aad, const uint8_t *p,
	size_t n, uint8_t *out);

/* NULL when there is no such key. */
const struct secret *keyring_key(const struct keyring *k, uint32_t id);
