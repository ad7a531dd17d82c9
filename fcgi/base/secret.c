/* Values that may not be printed. */
#include "secret.h"

#include "alloc.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define SECURE_HEAP_BYTES (4u << 20) /* about 8,000 keys of 200 bytes with the heap's rounding */
#define SECURE_HEAP_MIN   32u

void secret_init(void)
{
	struct rlimit none = {0, 0};
	(void)setrlimit(RLIMIT_CORE, &none); /* lowering a limit can not fail */
	(void)prctl(PR_SET_DUMPABLE, 0);
	if (!CRYPTO_secure_malloc_initialized())
		(void)CRYPTO_secure_malloc_init(SECURE_HEAP_BYTES, SECURE_HEAP_MIN);
}

struct secret secret_new(const void *p, size_t n)
{
	struct secret s = {.p = must(OPENSSL_secure_zalloc(n + 1)), .n = n};
	if (n)
		memcpy(s.p, p, n);
	return s;
}

void secret_done(struct secret *s)
{
	if (s->p)
		OPENSSL_secure_clear_free(s->p, s->n + 1);
	*s = (struct secret){0};
}

bool secret_given(const struct secret *s)
{
	return s->p != NULL;
}

const uint8_t *secret_bytes(const struct secret *s)
{
	return s->p;
}

bool secret_split(
	const struct secret *s, char at, struct secret *ret_left, struct secret *ret_right)
{
	const uint8_t *sign = s->p ? memchr(s->p, at, s->n) : NULL;
	if (!sign || sign == s->p || sign + 1 == s->p + s->n)
		return false;
	*ret_left = secret_new(s->p, (size_t)(sign - s->p));
	*ret_right = secret_new(sign + 1, (size_t)(s->p + s->n - sign - 1));
	return true;
}
