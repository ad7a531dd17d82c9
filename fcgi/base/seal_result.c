/*
 * Results sealed to a token: anybody with the public half seals, only the holder of the token
 * opens. Steps and what they protect are in docs/sealing.md. Nothing here is stored or counted.
 */
#include "alloc.h"
#include "arena.h"
#include "clock.h"
#include "bounds.h"
#include "seal_parts.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#define EPHEMERAL_AT 1
#define NONCE_AT     (EPHEMERAL_AT + RESULT_PUBLIC_BYTES)

static EVP_PKEY *key_pair(const uint8_t private_key[32])
{
	return must(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, private_key, 32));
}

static EVP_PKEY *token_pair(const struct secret *token)
{
	uint8_t private_key[32];
	derive_from(private_key, token, &(struct use){.label = "result private"});
	EVP_PKEY *pair = key_pair(private_key);
	OPENSSL_cleanse(private_key, sizeof private_key);
	return pair;
}

static void public_of(const EVP_PKEY *pair, uint8_t out[RESULT_PUBLIC_BYTES])
{
	size_t n = RESULT_PUBLIC_BYTES;
	int ok = EVP_PKEY_get_raw_public_key(pair, out, &n);
	assert(ok == 1 && n == RESULT_PUBLIC_BYTES);
}

void result_public(const struct secret *token, uint8_t out[RESULT_PUBLIC_BYTES])
{
	EVP_PKEY *pair = token_pair(token);
	public_of(pair, out);
	EVP_PKEY_free(pair);
}

/* OpenSSL refuses a point of small order, with which the shared secret would be zero (RFC 7748,
 * section 6.1). */
static bool agree(EVP_PKEY *own, const uint8_t theirs[RESULT_PUBLIC_BYTES], uint8_t out[32])
{
	size_t n = 32;
	EVP_PKEY *peer = must(
		EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, theirs, RESULT_PUBLIC_BYTES));
	EVP_PKEY_CTX *ctx = must(EVP_PKEY_CTX_new(own, NULL));
	bool agreed = EVP_PKEY_derive_init(ctx) == 1 && EVP_PKEY_derive_set_peer(ctx, peer) == 1 &&
		      EVP_PKEY_derive(ctx, out, &n) == 1 && n == 32;
	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(peer);
	return agreed;
}

/* Both public keys go into the derivation, so that the key belongs to this exchange alone. */
static bool message_key(EVP_PKEY *own, const uint8_t *theirs, const uint8_t *ephemeral,
	const uint8_t *token_public, uint8_t out[SEAL_KEY_BYTES])
{
	uint8_t shared[32], both[2 * RESULT_PUBLIC_BYTES];
	if (!agree(own, theirs, shared))
		return false;
	memcpy(both, ephemeral, RESULT_PUBLIC_BYTES);
	memcpy(both + RESULT_PUBLIC_BYTES, token_public, RESULT_PUBLIC_BYTES);
	derive(out, shared, sizeof shared,
		&(struct use){.label = "result ", .context = both, .context_n = sizeof both});
	OPENSSL_cleanse(shared, sizeof shared);
	return true;
}

static struct aad result_aad(struct id job, struct id token_id)
{
	struct aad a = aad_begin("result");
	aad_put(&a, job.b, sizeof job.b);
	aad_put(&a, token_id.b, sizeof token_id.b);
	return a;
}

enum err result_seal(const uint8_t public_key[RESULT_PUBLIC_BYTES], struct id job,
	struct id token_id, const void *p, size_t n, struct arena *a, struct blob *ret)
{
	uint8_t private_key[32], key[SEAL_KEY_BYTES];
	assert(n <= REPLY_BYTES_MAX);
	uint8_t *out = arena_take(a, RESULT_OVERHEAD + n);
	random_bytes(private_key, sizeof private_key);
	EVP_PKEY *ephemeral = key_pair(private_key);
	OPENSSL_cleanse(private_key, sizeof private_key);
	out[0] = SEAL_VERSION;
	public_of(ephemeral, out + EPHEMERAL_AT);
	bool agreed = message_key(ephemeral, public_key, out + EPHEMERAL_AT, public_key, key);
	EVP_PKEY_free(ephemeral);
	if (!agreed)
		return fail(ERR_SEALED, NULL, "the public half of a token is no usable point");
	struct aad aad = result_aad(job, token_id);
	gcm_seal(key, &aad, p, n, out + NONCE_AT);
	OPENSSL_cleanse(key, sizeof key);
	*ret = (struct blob){.p = out, .n = RESULT_OVERHEAD + n};
	return OK;
}

enum err result_open(const struct secret *token, struct id job, struct id token_id, struct blob b,
	struct arena *a, uint8_t **ret, size_t *ret_n)
{
	uint8_t public_key[RESULT_PUBLIC_BYTES], key[SEAL_KEY_BYTES];
	if (b.n < RESULT_OVERHEAD || b.n > RESULT_OVERHEAD + REPLY_BYTES_MAX ||
		b.p[0] != SEAL_VERSION)
		return fail(ERR_SEALED, NULL, "a sealed result is malformed");
	EVP_PKEY *pair = token_pair(token);
	public_of(pair, public_key);
	bool agreed = message_key(pair, b.p + EPHEMERAL_AT, b.p + EPHEMERAL_AT, public_key, key);
	EVP_PKEY_free(pair);
	size_t n = b.n - RESULT_OVERHEAD;
	uint8_t *out = arena_take(a, n + 1); /* a NUL behind it, for text */
	struct aad aad = result_aad(job, token_id);
	bool whole = agreed && gcm_open(key, &aad, b.p + NONCE_AT, b.n - NONCE_AT, out);
	OPENSSL_cleanse(key, sizeof key);
	if (!whole)
		return fail(ERR_SEALED, NULL, "a sealed result does not open with this token");
	*ret = out;
	*ret_n = n;
	return OK;
}
