/*
 * Values that may not be printed have a type that can not be printed.
 *
 * The bytes lie in OpenSSL's secure heap (locked, guarded, wiped). Only the modules that seal, hash
 * or send a secret may look at them, by secret_bytes(); tests/gate holds the list.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secret {
	uint8_t *p; /* NULL: no value */
	size_t n;
};

/* Sets up the secure heap; once, before the first secret. Dumping core is switched off as well. */
void secret_init(void);

/* A copy of n bytes in the secure heap, followed by a NUL. Free with secret_done. */
struct secret secret_new(const void *p, size_t n);
void secret_done(struct secret *s);
bool secret_given(const struct secret *s);

/* Both sides of the first `at` as secrets of their own; false, and nothing made, when there is none
 * or one side is empty. */
bool secret_split(
	const struct secret *s, char at, struct secret *ret_left, struct secret *ret_right);

/* The bytes themselves, still owned by the secret. Only for seal.c, token.c, http.c. */
const uint8_t *secret_bytes(const struct secret *s);
#define CLEANUP_SECRET __attribute__((cleanup(secret_done)))
