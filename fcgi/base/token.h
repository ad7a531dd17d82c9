/*
 * Our tokens ("API keys" to users): "cc_live_", 30 characters of base62 (178 random bits), 6
 * characters of base62 with the CRC-32 of what precedes them. Form and checksum are checked before
 * any database work; stored is only the SHA-256.
 */
#pragma once
#include "secret.h"

#include <stdbool.h>

#define TOKEN_PREFIX     "cc_live_"
#define TOKEN_CHARS      (8 + 30 + 6)
#define TOKEN_HASH_BYTES 32

struct secret token_new(void);
bool token_form_ok(const char *s, size_t n);
void token_hash(const struct secret *t, uint8_t out[TOKEN_HASH_BYTES]);
void token_last4(const struct secret *t, char out[5]);
/* Copies the text for the one reply that shows it. out takes TOKEN_CHARS + 1 bytes. */
void token_show(const struct secret *t, char out[TOKEN_CHARS + 1]);
