/*
 * The gate: reads JSON text once, strictly, before the parser sees it.
 *
 * It promises that whatever passes is RFC 8259 text that every reader understands alike: no
 * duplicate names, no number that another reader rounds, no character that can not be a C string.
 * It builds nothing; the only memory it takes is one entry per member name of the objects that are
 * open.
 */
#include "buf.h"
#include "json.h"
#include "bounds.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_START                                                                                 \
	0xcbf29ce484222325u /* FNV-1a, 64 bits: only to make the usual comparison short */
#define HASH_PRIME 0x100000001b3u

/* A member name as written, without its quotes. */
struct key {
	const char *p;
	size_t n;
	uint64_t hash; /* of the unescaped bytes */
};

struct gate {
	const char *start, *p, *end;
	unsigned depth;
	size_t values;
	struct buf keys; /* struct key of every open object, outermost first */
};

static enum err value(struct gate *g);

static enum err refuse_at(const struct gate *g, const char *at, const char *why)
{
	return fail(ERR_BAD_JSON, NULL, "at byte %zu: %s", (size_t)(at - g->start), why);
}

static enum err refuse(const struct gate *g, const char *why)
{
	return refuse_at(g, g->p, g->p == g->end ? "the text ends too early" : why);
}

static void skip_space(struct gate *g)
{
	while (g->p < g->end && (*g->p == ' ' || *g->p == '\n' || *g->p == '\r' || *g->p == '\t'))
		g->p++;
}

static bool take(struct gate *g, char c)
{
	if (g->p == g->end || *g->p != c)
		return false;
	g->p++;
	return true;
}

/* -- strings ----------------------------------------------------------------------------------- */

/* The four hex digits at p, or -1. */
static int hex4(const char *p, const char *end)
{
	int v = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		if (c >= '0' && c <= '9')
			v = v * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v = v * 16 + (c - 'A' + 10);
		else
			return -1;
	}
	return v;
}

static size_t utf8_put(char out[4], unsigned c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(lead[n] | c);
	return n;
}

/* The character that the \uXXXX at *p (behind the u) stands for, with its second half when it is a
 * surrogate pair; 0 when it stands for none that we accept. Moves *p behind it. */
static unsigned unescape_hex(const char **p, const char *end)
{
	int high = hex4(*p, end);
	if (high < 0 || (high >= 0xdc00 && high <= 0xdfff))
		return 0;
	*p += 4;
	if (high < 0xd800 || high > 0xdbff)
		return (unsigned)high;
	int low = end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' ? hex4(*p + 2, end) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return 0;
	*p += 6;
	return 0x10000u + (unsigned)(high - 0xd800) * 0x400u + (unsigned)(low - 0xdc00);
}

/* The bytes of the escape at *p (its backslash); 0 when it is none. Moves *p behind it. */
static size_t unescape(const char **p, const char *end, char out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (end - *p < 2)
		return 0;
	char c = (*p)[1];
	*p += 2;
	if (c == 'u') {
		unsigned character = unescape_hex(p, end);
		return character ? utf8_put(out, character) : 0;
	}
	const char *known = c ? strchr(from, c) : NULL;
	if (!known)
		return 0;
	out[0] = to[known - from];
	return 1;
}

static uint64_t hash_add(uint64_t hash, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (uint8_t)p[i]) * HASH_PRIME;
	return hash;
}

/* The characters up to the next quote, backslash or control character. */
static enum err plain_run(struct gate *g)
{
	const char *from = g->p;
	unsigned seen = 0;
	while (g->p < g->end && *g->p != '"' && *g->p != '\\' && (uint8_t)*g->p >= 0x20)
		seen |= (uint8_t)*g->p++;
	if (seen & 0x80 && !utf8_valid(from, (size_t)(g->p - from), NULL))
		return refuse_at(g, from, "a string that begins or goes on here is not UTF-8");
	return OK;
}

/* A string; g->p is at its opening quote. ret_key may be NULL. */
static enum err string(struct gate *g, struct key *ret_key)
{
	const char *from = ++g->p;
	uint64_t hash = HASH_START;
	char out[4];
	for (;;) {
		const char *run = g->p;
		enum err e = plain_run(g);
		if (e)
			return e;
		if (ret_key)
			hash = hash_add(hash, run, (size_t)(g->p - run));
		if (g->p < g->end && *g->p == '\\') {
			const char *at = g->p;
			size_t n = unescape(&g->p, g->end, out);
			if (n == 0)
				return refuse_at(g, at, "this escape is not allowed");
			if (ret_key)
				hash = hash_add(hash, out, n);
			continue;
		}
		if (ret_key)
			*ret_key = (struct key){from, (size_t)(g->p - from), hash};
		return take(g, '"') ? OK : refuse(g, "control characters must be escaped");
	}
}

/* -- numbers ----------------------------------------------------------------------------------- */

static bool digits(struct gate *g)
{
	const char *from = g->p;
	while (g->p < g->end && *g->p >= '0' && *g->p <= '9')
		g->p++;
	return g->p > from;
}

/* Fraction and exponent; *ret_whole tells that there was neither. */
static enum err number_rest(struct gate *g, bool *ret_whole)
{
	*ret_whole = true;
	if (take(g, '.')) {
		*ret_whole = false;
		if (!digits(g))
			return refuse(g, "digits must follow the point");
	}
	if (take(g, 'e') || take(g, 'E')) {
		*ret_whole = false;
		if (!take(g, '+'))
			(void)take(g, '-'); /* a sign is optional */
		if (!digits(g))
			return refuse(g, "digits must follow the exponent's sign");
	}
	return OK;
}

static enum err number(struct gate *g)
{
	const char *from = g->p;
	char text[JSON_NUMBER_CHARS_MAX + 1];
	bool whole;
	(void)take(g, '-'); /* optional */
	if (!take(g, '0') && !digits(g))
		return refuse(g, "digits must follow the sign");
	enum err e = number_rest(g, &whole);
	if (e)
		return e;
	size_t n = (size_t)(g->p - from);
	if (n > JSON_NUMBER_CHARS_MAX)
		return fail(ERR_BAD_JSON, NULL,
			"at byte %zu: this number has more than %d characters",
			(size_t)(from - g->start), JSON_NUMBER_CHARS_MAX);
	memcpy(text, from, n);
	text[n] = 0;
	errno = 0;
	if (!whole)
		return isfinite(strtod(text, NULL))
			       ? OK
			       : refuse_at(g, from, "this number is too large");
	long long v = strtoll(text, NULL, 10);
	if (errno || v > JSON_INT_MAX || v < -JSON_INT_MAX)
		return refuse_at(g, from, "integers must lie within 2^53 - 1 of zero");
	return OK;
}

/* -- objects and lists ------------------------------------------------------------------------- */

/* Walks a name byte by byte as if it had been unescaped. */
struct reader {
	const char *p, *end;
	char out[4];
	size_t at, n;
};

static int next_byte(struct reader *r)
{
	if (r->at < r->n)
		return (uint8_t)r->out[r->at++];
	if (r->p == r->end)
		return -1;
	if (*r->p != '\\')
		return (uint8_t)*r->p++;
	r->n = unescape(&r->p, r->end, r->out);
	r->at = 1;
	return (uint8_t)r->out[0];
}

static int key_order(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	struct reader in = {.p = x->p, .end = x->p + x->n}, other = {.p = y->p, .end = y->p + y->n};
	for (;;) {
		int c = next_byte(&in), d = next_byte(&other);
		if (c != d)
			return c < d ? -1 : 1;
		if (c < 0)
			return 0;
	}
}

/* Checks and forgets the names of the object whose first name lies at this offset. */
static enum err keys_close(struct gate *g, size_t first)
{
	struct key *k = (struct key *)(void *)(g->keys.p + first);
	size_t n = (g->keys.n - first) / sizeof *k;
	if (n > 1)
		qsort(k, n, sizeof *k, key_order);
	for (size_t i = 1; i < n; i++) {
		const char *later = k[i].p > k[i - 1].p ? k[i].p : k[i - 1].p;
		if (key_order(&k[i - 1], &k[i]) == 0)
			return refuse_at(g, later, "this name appears twice in one object");
	}
	g->keys.n = first;
	return OK;
}

static enum err member(struct gate *g)
{
	struct key k;
	skip_space(g);
	if (g->p == g->end || *g->p != '"')
		return refuse(g, "a name in double quotes is missing");
	enum err e = string(g, &k);
	if (e)
		return e;
	buf_put(&g->keys, &k, sizeof k);
	skip_space(g);
	if (!take(g, ':'))
		return refuse(g, "a colon is missing");
	return value(g);
}

static enum err object(struct gate *g)
{
	size_t first = g->keys.n;
	g->p++;
	skip_space(g);
	if (take(g, '}'))
		return OK;
	do {
		enum err e = member(g);
		if (e)
			return e;
		skip_space(g);
	} while (take(g, ','));
	return take(g, '}') ? keys_close(g, first) : refuse(g, "a comma or } is missing");
}

static enum err list(struct gate *g)
{
	g->p++;
	skip_space(g);
	if (take(g, ']'))
		return OK;
	do {
		enum err e = value(g);
		if (e)
			return e;
		skip_space(g);
	} while (take(g, ','));
	return take(g, ']') ? OK : refuse(g, "a comma or ] is missing");
}

static enum err word(struct gate *g)
{
	static const char *const words[] = {"true", "false", "null"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		size_t n = strlen(words[i]);
		if ((size_t)(g->end - g->p) >= n && memcmp(g->p, words[i], n) == 0) {
			g->p += n;
			return OK;
		}
	}
	return refuse(g, "a value was expected");
}

static enum err value(struct gate *g)
{
	skip_space(g);
	if (g->p == g->end)
		return refuse(g, "");
	if (++g->values > JSON_VALUES_MAX)
		return fail(ERR_BAD_JSON, NULL, "there are more than %d values", JSON_VALUES_MAX);
	if (*g->p == '"')
		return string(g, NULL);
	if (*g->p == '-' || (*g->p >= '0' && *g->p <= '9'))
		return number(g);
	if (*g->p != '{' && *g->p != '[')
		return word(g);
	if (g->depth == JSON_DEPTH_MAX)
		return fail(
			ERR_BAD_JSON, NULL, "it is nested deeper than %d levels", JSON_DEPTH_MAX);
	g->depth++;
	enum err e = *g->p == '{' ? object(g) : list(g);
	g->depth--;
	return e;
}

enum err json_gate(const char *p, size_t n)
{
	if (n > INT32_MAX) /* json-c counts in int */
		return fail(ERR_BAD_JSON, NULL, "the text is longer than %d bytes", INT32_MAX);
	struct gate g = {.start = p, .p = p, .end = p + n};
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
		return refuse(&g, "a byte order mark is not allowed");
	buf_init(&g.keys, JSON_VALUES_MAX * sizeof(struct key));
	enum err e = value(&g);
	buf_done(&g.keys);
	if (e)
		return e;
	skip_space(&g);
	return g.p == g.end ? OK : refuse(&g, "nothing may follow the value");
}
