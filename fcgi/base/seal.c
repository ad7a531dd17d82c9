/*
 * Envelope encryption: a master key wraps data keys, a data key seals values. The format is told
 * byte by byte in docs/sealing.md; this file and that one change together.
 *
 * Promises: a key is found by its id and never by trying; a blob opens only with every part of its
 * identity as it was; plain keys and values lie in the secure heap or in stack that is wiped. It
 * keeps nothing, counts nothing, and knows no database.
 */
#include "seal.h"

#include "alloc.h"
#include "arena.h"
#include "clock.h"
#include "bounds.h"
#include "seal_parts.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <string.h>

#define KEY_ID_AT    1
#define NONCE_AT     5
#define LABEL_PREFIX "compute-connector v1 "

/* OpenSSL's functions here fail only without memory or by our own mistake. */
static void expect(int ok)
{
	assert(ok == 1);
}

/* -- additional data -----------------------------------------------------------------------------
 */

static void put_u32(uint8_t out[4], uint32_t v)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t p[4])
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void aad_put(struct aad *a, const void *p, size_t n)
{
	assert(n <= sizeof a->p - a->n - 4 && a->n + 4 <= sizeof a->p);
	put_u32(a->p + a->n, (uint32_t)n);
	memcpy(a->p + a->n + 4, p, n);
	a->n += 4 + n;
}

void aad_str(struct aad *a, const char *s)
{
	aad_put(a, s, strlen(s));
}

void aad_u32(struct aad *a, uint32_t v)
{
	uint8_t bytes[4];
	put_u32(bytes, v);
	aad_put(a, bytes, sizeof bytes);
}

struct aad aad_begin(const char *purpose)
{
	static const uint8_t version = SEAL_VERSION;
	struct aad a = {.n = 0};
	aad_str(&a, purpose);
	aad_put(&a, &version, 1);
	return a;
}

/* -- ciphers -------------------------------------------------------------------------------------
 */

void derive(uint8_t out[SEAL_KEY_BYTES], const void *secret, size_t n, const struct use *use)
{
	uint8_t info[160];
	size_t label_n = strlen(use->label), lead = sizeof LABEL_PREFIX - 1;
	size_t info_n = lead + label_n + use->context_n;
	assert(info_n <= sizeof info);
	memcpy(info, LABEL_PREFIX, lead);
	memcpy(info + lead, use->label, label_n);
	if (use->context_n)
		memcpy(info + lead + label_n, use->context, use->context_n);
	EVP_KDF *kdf = must(EVP_KDF_fetch(NULL, "HKDF", NULL));
	EVP_KDF_CTX *ctx = must(EVP_KDF_CTX_new(kdf));
	char digest[] = "SHA256";
	uint8_t *ikm = must(OPENSSL_secure_malloc(n)); /* the parameter's type has no const */
	memcpy(ikm, secret, n);
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, ikm, n),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_n),
		OSSL_PARAM_construct_end(),
	};
	expect(EVP_KDF_derive(ctx, out, SEAL_KEY_BYTES, params));
	EVP_KDF_CTX_free(ctx); /* wipes its copy of the key */
	EVP_KDF_free(kdf);
	OPENSSL_secure_clear_free(ikm, n);
}

void derive_from(uint8_t out[SEAL_KEY_BYTES], const struct secret *secret, const struct use *use)
{
	derive(out, secret_bytes(secret), secret->n, use);
}

void gcm_seal(const uint8_t key[SEAL_KEY_BYTES], const struct aad *aad, const void *p, size_t n,
	uint8_t *out)
{
	int done = 0;
	EVP_CIPHER_CTX *ctx = must(EVP_CIPHER_CTX_new());
	random_bytes(out, NONCE_BYTES);
	expect(EVP_EncryptInit_ex2(ctx, EVP_aes_256_gcm(), key, out, NULL));
	expect(EVP_EncryptUpdate(ctx, NULL, &done, aad->p, (int)aad->n));
	expect(EVP_EncryptUpdate(ctx, out + NONCE_BYTES, &done, p, (int)n));
	expect(EVP_EncryptFinal_ex(ctx, out + NONCE_BYTES + n, &done));
	expect(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, out + NONCE_BYTES + n));
	EVP_CIPHER_CTX_free(ctx); /* wipes the key schedule */
}

bool gcm_open(const uint8_t key[SEAL_KEY_BYTES], const struct aad *aad, const uint8_t *p, size_t n,
	uint8_t *out)
{
	int done = 0;
	uint8_t tag[TAG_BYTES];
	assert(n >= NONCE_BYTES + TAG_BYTES);
	size_t text_n = n - NONCE_BYTES - TAG_BYTES;
	EVP_CIPHER_CTX *ctx = must(EVP_CIPHER_CTX_new());
	memcpy(tag, p + n - TAG_BYTES, TAG_BYTES);
	expect(EVP_DecryptInit_ex2(ctx, EVP_aes_256_gcm(), key, p, NULL));
	expect(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag));
	expect(EVP_DecryptUpdate(ctx, NULL, &done, aad->p, (int)aad->n));
	expect(EVP_DecryptUpdate(ctx, out, &done, p + NONCE_BYTES, (int)text_n));
	bool whole = EVP_DecryptFinal_ex(ctx, out + text_n, &done) == 1;
	EVP_CIPHER_CTX_free(ctx);
	if (!whole)
		OPENSSL_cleanse(out, text_n); /* nothing unauthenticated gets out */
	return whole;
}

/* -- blobs with a key id -------------------------------------------------------------------------
 */

static struct blob seal_under(const struct secret *key, const char *label, uint32_t key_id,
	const struct aad *aad, struct blob plain, struct arena *a)
{
	uint8_t own[SEAL_KEY_BYTES];
	uint8_t *out = arena_take(a, SEAL_OVERHEAD + plain.n);
	derive_from(own, key, &(struct use){.label = label});
	out[0] = SEAL_VERSION;
	put_u32(out + KEY_ID_AT, key_id);
	gcm_seal(own, aad, plain.p, plain.n, out + NONCE_AT);
	OPENSSL_cleanse(own, sizeof own);
	return (struct blob){.p = out, .n = SEAL_OVERHEAD + plain.n};
}

/* Decrypts inside the secure heap: the plain text never lies anywhere else. */
static bool open_under(const struct secret *key, const char *label, const struct aad *aad,
	struct blob b, struct secret *ret)
{
	uint8_t own[SEAL_KEY_BYTES];
	struct secret plain = secret_new(b.p + NONCE_AT + NONCE_BYTES, b.n - SEAL_OVERHEAD);
	derive_from(own, key, &(struct use){.label = label});
	bool whole = gcm_open(own, aad, b.p + NONCE_AT, b.n - NONCE_AT, plain.p);
	OPENSSL_cleanse(own, sizeof own);
	if (whole)
		*ret = plain;
	else
		secret_done(&plain);
	return whole;
}

static bool well_formed(struct blob b, size_t plain_max)
{
	return b.n >= SEAL_OVERHEAD && b.n <= SEAL_OVERHEAD + plain_max && b.p[0] == SEAL_VERSION;
}

/* -- data keys -----------------------------------------------------------------------------------
 */

static struct aad data_key_aad(struct id id, struct id account, uint32_t master_id)
{
	struct aad a = aad_begin("data-key");
	aad_put(&a, account.b, sizeof account.b);
	aad_put(&a, id.b, sizeof id.b);
	aad_u32(&a, master_id);
	return a;
}

void data_key_done(struct data_key *d)
{
	secret_done(&d->key);
	*d = (struct data_key){.key = {0}};
}

enum err data_key_wrap(
	const struct keyring *k, const struct data_key *d, struct arena *a, struct blob *ret)
{
	uint32_t master_id = keyring_current(k);
	struct aad aad = data_key_aad(d->id, d->account, master_id);
	struct blob plain = {.p = secret_bytes(&d->key), .n = d->key.n};
	*ret = seal_under(keyring_key(k, master_id), "wrap", master_id, &aad, plain, a);
	return OK;
}

enum err data_key_new(const struct keyring *k, struct id account, struct arena *a,
	struct data_key *ret, struct blob *ret_wrapped)
{
	uint8_t key[SEAL_KEY_BYTES];
	random_bytes(key, sizeof key);
	struct data_key d = {
		.id = id_new(), .account = account, .key = secret_new(key, sizeof key)};
	OPENSSL_cleanse(key, sizeof key);
	*ret = d;
	return data_key_wrap(k, ret, a, ret_wrapped);
}

uint32_t blob_key_id(struct blob b)
{
	bool wrapped = b.n == SEAL_OVERHEAD + SEAL_KEY_BYTES && b.p[0] == SEAL_VERSION;
	return wrapped ? get_u32(b.p + KEY_ID_AT) : 0;
}

enum err data_key_open(const struct keyring *k, struct id id, struct id account,
	struct blob wrapped, struct data_key *ret)
{
	uint32_t master_id = blob_key_id(wrapped);
	if (master_id == 0)
		return fail(ERR_SEALED, NULL, "a wrapped data key is malformed");
	const struct secret *master = keyring_key(k, master_id);
	if (!master)
		return fail(ERR_SEALED, NULL, "master key %08x is not in the key file", master_id);
	struct aad aad = data_key_aad(id, account, master_id);
	struct data_key d = {.id = id, .account = account};
	if (!open_under(master, "wrap", &aad, wrapped, &d.key))
		return fail(ERR_SEALED, NULL, "a data key does not open under master key %08x",
			master_id);
	*ret = d;
	return OK;
}

/* -- values --------------------------------------------------------------------------------------
 */

static struct aad value_aad(const struct data_key *d, const struct seal_place *at)
{
	struct aad a = aad_begin(at->purpose);
	aad_put(&a, d->account.b, sizeof d->account.b);
	aad_str(&a, at->provider);
	aad_str(&a, at->name);
	aad_u32(&a, at->version);
	aad_put(&a, d->id.b, sizeof d->id.b);
	return a;
}

enum err seal_value(const struct data_key *d, const struct seal_place *at, const void *p, size_t n,
	struct arena *a, struct blob *ret)
{
	if (n > SEAL_VALUE_BYTES_MAX)
		return fail(
			ERR_BAD_INPUT, "value", "must have at most %d bytes", SEAL_VALUE_BYTES_MAX);
	struct aad aad = value_aad(d, at);
	*ret = seal_under(&d->key, "seal", get_u32(d->id.b), &aad, (struct blob){p, n}, a);
	return OK;
}

enum err seal_open(
	const struct data_key *d, const struct seal_place *at, struct blob b, struct secret *ret)
{
	if (!well_formed(b, SEAL_VALUE_BYTES_MAX))
		return fail(ERR_SEALED, NULL, "a sealed value is malformed");
	if (get_u32(b.p + KEY_ID_AT) != get_u32(d->id.b))
		return fail(ERR_SEALED, NULL, "a sealed value names another data key");
	struct aad aad = value_aad(d, at);
	if (!open_under(&d->key, "seal", &aad, b, ret))
		return fail(ERR_SEALED, NULL, "a sealed value does not open in this place");
	return OK;
}

void seal_hmac(
	const struct data_key *d, const char *purpose, const void *p, size_t n, uint8_t out[32])
{
	uint8_t own[SEAL_KEY_BYTES];
	unsigned out_n = 0;
	derive_from(own, &d->key,
		&(struct use){.label = "hmac ", .context = purpose, .context_n = strlen(purpose)});
	(void)must(HMAC(EVP_sha256(), own, sizeof own, p, n, out, &out_n));
	OPENSSL_cleanse(own, sizeof own);
}
