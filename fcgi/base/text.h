/*
 * Encodings and strict readers of text. Nothing here allocates unless it takes an arena.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* RFC 4648 base32 in lower case without padding. out takes ceil(n * 8 / 5) characters and a NUL.
 * Decoding wants exactly the characters that encoding n bytes would give (unused bits zero). */
void base32_encode(char *out, const uint8_t *p, size_t n);
bool base32_decode(uint8_t *out, size_t n, const char *s);

void hex_encode(char *out, const void *p, size_t n); /* 2n characters and a NUL */
bool hex_decode(uint8_t *out, size_t n, const char *s);

/* RFC 4648 base64. encode returns an arena string; decode is strict (padding, alphabet, length) and
 * returns NULL when s is anything else. */
char *base64_encode(struct arena *a, const void *p, size_t n);
uint8_t *base64_decode(struct arena *a, const char *s, size_t n, size_t *ret_n);
char *base64url_encode(struct arena *a, const void *p, size_t n); /* without padding */

/* A decimal integer with nothing around it, within min ... max. */
bool int_parse(const char *s, int64_t min, int64_t max, int64_t *ret);

/* 1 ... max characters of [A-Za-z0-9._+-]. */
bool name_safe(const char *s, size_t max);

/* Well-formed UTF-8 (no surrogates, no overlong forms); counts the characters. */
bool utf8_valid(const char *p, size_t n, size_t *ret_chars);

/* Copies n bytes, each ill-formed part replaced by U+FFFD; sets *ret_replaced when any was. */
char *utf8_repair(struct arena *a, const void *p, size_t n, size_t *ret_n, bool *ret_replaced);

/* How many bytes to skip at the front so that p does not begin inside a character (0 ... 3). */
size_t utf8_lead_cut(const uint8_t *p, size_t n);

/* Writes 2026-12-01T19:00:00.123Z; out takes 25 bytes. */
#define TIME_TEXT_SIZE 25
const char *time_text(char out[TIME_TEXT_SIZE], int64_t ms);

/* Constant-time comparison of n bytes. */
bool bytes_equal(const void *a, const void *b, size_t n);

uint32_t crc32_of(const void *p, size_t n); /* CRC-32 of IEEE 802.3 */
