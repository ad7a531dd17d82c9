/*
 * Our tokens: making, checking the form, hashing. Whether a token is known, expired or revoked is a
 * question for the database and not answered here.
 */
#include "token.h"

#include "clock.h"
#include "text.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

#define PREFIX_CHARS (sizeof TOKEN_PREFIX - 1)
#define RANDOM_CHARS 30
#define CHECK_CHARS  6 /* 62^6 > 2^32: every checksum has room */
#define CHECKED      (PREFIX_CHARS + RANDOM_CHARS)

static_assert(CHECKED + CHECK_CHARS == TOKEN_CHARS, "the parts of a token make up its length");

static const char base62_digits[] =
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The checksum is no protection against forgery: it lets a typing error, a cut copy or a scanner's
 * false match be told from a real token without asking the database. */
static void put_checksum(char out[CHECK_CHARS], const char *s)
{
	uint32_t crc = crc32_of(s, CHECKED);
	for (int i = CHECK_CHARS - 1; i >= 0; i--) {
		out[i] = base62_digits[crc % 62];
		crc /= 62;
	}
}

struct secret token_new(void)
{
	char s[TOKEN_CHARS];
	memcpy(s, TOKEN_PREFIX, PREFIX_CHARS);
	for (size_t i = PREFIX_CHARS; i < CHECKED; i++)
		s[i] = base62_digits[random_below(62)];
	put_checksum(s + CHECKED, s);
	struct secret t = secret_new(s, sizeof s);
	OPENSSL_cleanse(s, sizeof s);
	return t;
}

static bool base62_only(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool digit = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'A' && s[i] <= 'Z') ||
			     (s[i] >= 'a' && s[i] <= 'z');
		if (!digit)
			return false;
	}
	return true;
}

bool token_form_ok(const char *s, size_t n)
{
	char check[CHECK_CHARS];
	if (n != TOKEN_CHARS || memcmp(s, TOKEN_PREFIX, PREFIX_CHARS) != 0)
		return false;
	if (!base62_only(s + PREFIX_CHARS, TOKEN_CHARS - PREFIX_CHARS))
		return false;
	put_checksum(check, s);
	return memcmp(check, s + CHECKED, CHECK_CHARS) == 0;
}

void token_hash(const struct secret *t, uint8_t out[TOKEN_HASH_BYTES])
{
	/* A plain hash is enough: 178 random bits can not be searched, so nothing slow or salted
	 * would add to it, and the lookup needs the same value every time. */
	int ok = EVP_Digest(secret_bytes(t), t->n, out, NULL, EVP_sha256(), NULL);
	assert(ok == 1);
}

void token_last4(const struct secret *t, char out[5])
{
	assert(t->n == TOKEN_CHARS);
	memcpy(out, secret_bytes(t) + TOKEN_CHARS - 4, 4);
	out[4] = 0;
}

void token_show(const struct secret *t, char out[TOKEN_CHARS + 1])
{
	assert(t->n == TOKEN_CHARS);
	memcpy(out, secret_bytes(t), TOKEN_CHARS);
	out[TOKEN_CHARS] = 0;
}
