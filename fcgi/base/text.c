/* Encodings and strict readers of text. */
#include "text.h"

#include "arena.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char base32_digits[] = "abcdefghijklmnopqrstuvwxyz234567";

void base32_encode(char *out, const uint8_t *p, size_t n)
{
	unsigned bits = 0, have = 0;
	for (size_t i = 0; i < n; i++) {
		bits = (bits << 8 | p[i]) & 0xfff;
		for (have += 8; have >= 5; have -= 5)
			*out++ = base32_digits[bits >> (have - 5) & 31];
	}
	if (have)
		*out++ = base32_digits[bits << (5 - have) & 31];
	*out = 0;
}

bool base32_decode(uint8_t *out, size_t n, const char *s)
{
	unsigned bits = 0, have = 0;
	size_t at = 0;
	for (; *s; s++) {
		const char *digit = strchr(base32_digits, *s);
		if (!digit)
			return false;
		bits = (bits << 5 | (unsigned)(digit - base32_digits)) & 0xfff;
		have += 5;
		if (have < 8)
			continue;
		have -= 8;
		if (at == n)
			return false;
		out[at++] = (uint8_t)(bits >> have);
	}
	return at == n && have < 5 && (bits & ((1u << have) - 1)) == 0;
}

void hex_encode(char *out, const void *p, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *b = p;
	for (size_t i = 0; i < n; i++) {
		*out++ = digits[b[i] >> 4];
		*out++ = digits[b[i] & 15];
	}
	*out = 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool hex_decode(uint8_t *out, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++) {
		int high = hex_digit(s[2 * i]);
		int low = high < 0 ? -1 : hex_digit(s[2 * i + 1]);
		if (low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return s[2 * n] == 0;
}

char *base64_encode(struct arena *a, const void *p, size_t n)
{
	char *out = arena_take(a, (n + 2) / 3 * 4 + 1);
	(void)EVP_EncodeBlock((unsigned char *)out, p, (int)n);
	return out;
}

static bool is_base64_digit(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '/';
}

uint8_t *base64_decode(struct arena *a, const char *s, size_t n, size_t *ret_n)
{
	if (n % 4)
		return NULL;
	size_t pad = n == 0 || s[n - 1] != '=' ? 0 : s[n - 2] == '=' ? 2 : 1;
	for (size_t i = 0; i < n - pad; i++)
		if (!is_base64_digit(s[i]))
			return NULL;
	uint8_t *out = arena_take(a, n / 4 * 3 + 1);
	if (n && EVP_DecodeBlock(out, (const unsigned char *)s, (int)n) < 0)
		return NULL;
	*ret_n = n / 4 * 3 - pad;
	out[*ret_n] = 0;
	return out;
}

char *base64url_encode(struct arena *a, const void *p, size_t n)
{
	char *s = base64_encode(a, p, n);
	for (char *c = s; *c; c++) {
		if (*c == '+')
			*c = '-';
		else if (*c == '/')
			*c = '_';
		else if (*c == '=')
			*c = 0;
	}
	return s;
}

bool int_parse(const char *s, int64_t min, int64_t max, int64_t *ret)
{
	const char *digits = *s == '-' ? s + 1 : s;
	size_t n = strlen(digits);
	if (n == 0 || n > 19 || strspn(digits, "0123456789") != n)
		return false;
	errno = 0;
	long long v = strtoll(s, NULL, 10);
	if (errno || v < min || v > max)
		return false;
	*ret = v;
	return true;
}

bool name_safe(const char *s, size_t max)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+-");
	return n > 0 && n <= max && s[n] == 0;
}

/* The well-formed sequences of Unicode 15, table 3-7: first byte, length, bounds of the second
 * byte. */
static const struct {
	uint8_t first, last, len, low, high;
} utf8_rows[] = {{0x00, 0x7f, 1, 0x00, 0xff}, {0xc2, 0xdf, 2, 0x80, 0xbf},
	{0xe0, 0xe0, 3, 0xa0, 0xbf}, {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},
	{0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf},
	{0xf4, 0xf4, 4, 0x80, 0x8f}};

/* Length of the well-formed character at p, 0 when there is none. */
static size_t utf8_char(const uint8_t *p, size_t n)
{
	size_t row = 0, rows = sizeof utf8_rows / sizeof utf8_rows[0];
	while (row < rows && (p[0] < utf8_rows[row].first || p[0] > utf8_rows[row].last))
		row++;
	if (row == rows || n < utf8_rows[row].len)
		return 0;
	size_t len = utf8_rows[row].len;
	if (len > 1 && (p[1] < utf8_rows[row].low || p[1] > utf8_rows[row].high))
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool utf8_valid(const char *p, size_t n, size_t *ret_chars)
{
	size_t chars = 0;
	for (size_t i = 0, len; i < n; i += len, chars++) {
		len = utf8_char((const uint8_t *)p + i, n - i);
		if (len == 0)
			return false;
	}
	if (ret_chars)
		*ret_chars = chars;
	return true;
}

char *utf8_repair(struct arena *a, const void *p, size_t n, size_t *ret_n, bool *ret_replaced)
{
	const uint8_t *in = p;
	char *out = arena_take(a, 3 * n + 1);
	size_t at = 0;
	*ret_replaced = false;
	for (size_t i = 0; i < n;) {
		size_t len = utf8_char(in + i, n - i);
		if (len) {
			memcpy(out + at, in + i, len);
		} else {
			memcpy(out + at, "\xef\xbf\xbd", 3);
			*ret_replaced = true;
		}
		at += len ? len : 3;
		i += len ? len : 1;
	}
	*ret_n = at;
	return out;
}

size_t utf8_lead_cut(const uint8_t *p, size_t n)
{
	size_t i = 0;
	while (i < n && i < 3 && (p[i] & 0xc0) == 0x80)
		i++;
	return i < n && (p[i] & 0xc0) != 0x80 ? i
					      : 0; /* four in a row: not UTF-8, nothing to cut */
}

const char *time_text(char out[TIME_TEXT_SIZE], int64_t ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm t;
	(void)gmtime_r(&s, &t);
	(void)snprintf(out, TIME_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		(unsigned)(t.tm_year + 1900) % 10000, (unsigned)(t.tm_mon + 1) % 100,
		(unsigned)t.tm_mday % 100, (unsigned)t.tm_hour % 100, (unsigned)t.tm_min % 100,
		(unsigned)t.tm_sec % 100, (unsigned)(ms % 1000));
	return out;
}

bool bytes_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}

uint32_t crc32_of(const void *p, size_t n)
{
	const uint8_t *b = p;
	uint32_t crc = ~0u;
	for (size_t i = 0; i < n; i++) {
		crc ^= b[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}
