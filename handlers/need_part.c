/*
 * The words of one command: matching them against patterns, finding options, reading sizes. It
 * promises answers for any words; it does not know which programs there are.
 */
#include "need_part.h"

#include "bounds.h"
#include "need.h"

#include <string.h>

bool word_is(const char *pattern, size_t pattern_n, const char *word, size_t n)
{
	const char *end = pattern + pattern_n;
	while (pattern < end) {
		const char *bar = memchr(pattern, '|', (size_t)(end - pattern));
		size_t len = (size_t)((bar ? bar : end) - pattern);
		bool open = len > 0 && pattern[len - 1] == '*';
		len -= open;
		if ((open ? n >= len : n == len) && memcmp(pattern, word, len) == 0)
			return true;
		pattern = bar ? bar + 1 : end;
	}
	return false;
}

const char *word_program(const char *word, size_t *ret_n)
{
	const char *slash = strrchr(word, '/');
	const char *name = slash && slash[1] ? slash + 1 : word;
	size_t n = strlen(name);
	const char *at = n ? strchr(name + 1, '@') : NULL;
	if (at)
		n = (size_t)(at - name);
	static const char *const suffixes[] = {".js", ".cjs", ".mjs", ".cmd", ".exe"};
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t len = strlen(suffixes[i]);
		if (n > len && memcmp(name + n - len, suffixes[i], len) == 0)
			n -= len;
	}
	*ret_n = n;
	return name;
}

bool word_is_option(const char *w)
{
	return (w[0] == '-' && w[1]) || w[0] == '+'; /* cargo +nightly */
}

/* Where the pattern's next word stands, from at on; options in between are passed, and so is one
 * word behind each, which may be the option's value. 0: nowhere. */
static size_t find_argument(const struct part *p, size_t at, const char *pattern, size_t n)
{
	bool may_be_value = false;
	for (; at < p->n; at++) {
		const char *w = p->w[at];
		if (word_is(pattern, n, w, strlen(w)))
			return at;
		if (word_is_option(w)) {
			may_be_value = !strchr(w, '=');
			continue;
		}
		if (!may_be_value)
			return 0;
		may_be_value = false;
	}
	return word_is(pattern, n, "$", 1) ? at : 0;
}

size_t part_match(const struct part *p, size_t i, const char *pattern)
{
	size_t n = strcspn(pattern, " "), name_n;
	const char *name = word_program(p->w[i], &name_n);
	if (!word_is(pattern, n, name, name_n))
		return 0;
	size_t at = i + 1;
	while (pattern[n]) {
		pattern += n + 1;
		n = strcspn(pattern, " ");
		at = find_argument(p, at, pattern, n);
		if (at == 0)
			return 0;
		at++;
	}
	return at < p->n ? at : p->n;
}

bool word_listed(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (; *list; list += strspn(list, " ")) {
		size_t len = strcspn(list, " ");
		if (len == n && memcmp(list, word, n) == 0)
			return true;
		list += len;
	}
	return false;
}

bool size_read(const char *s, int64_t unit_bytes, int64_t *ret)
{
	size_t n = strspn(s, "0123456789");
	if (n == 0 || n > 19)
		return false;
	double v = 0;
	for (size_t i = 0; i < n; i++)
		v = v * 10 + (s[i] - '0');
	static const char units[] = "kKmMgGtT";
	const char *unit = s[n] ? strchr(units, s[n]) : NULL;
	double bytes = v * (double)unit_bytes;
	if (unit)
		bytes = v * (double)(1024LL << 10 * ((unit - units) / 2));
	double mb = bytes / 1048576;
	if (!(mb > 0) || mb > MEMORY_MB_MAX)
		return false;
	*ret = (int64_t)mb + ((double)(int64_t)mb < mb);
	return true;
}

/* A worker count: 0 means "none" and "as many as wanted" by tool; words like auto give cores. */
static int64_t count_read(const char *s, int64_t cores)
{
	size_t n = strspn(s, "0123456789");
	if (n == 0)
		return cores;
	int64_t v = 0;
	for (size_t i = 0; i < n && v <= NEED_WORKERS_MAX; i++)
		v = v * 10 + (s[i] - '0');
	if (s[n] == '%') {
		v = cores * (v < 100 ? v : 100) / 100;
		v = v ? v : 1;
	}
	return v < NEED_WORKERS_MAX ? v : NEED_WORKERS_MAX;
}

const char *word_option(const char *word, const char *option, size_t n)
{
	if (strncmp(word, option, n) != 0)
		return NULL;
	if (word[n] == '=')
		return word + n + 1;
	if (word[n] == 0)
		return "";
	if (n != 2)
		return NULL;
	const char *value = word + n;
	bool number =
		(*value >= '0' && *value <= '9') || *value == '$' || strcmp(value, "auto") == 0;
	return number ? value : NULL;
}

int64_t part_workers(const struct part *p, size_t from, const char *options, int64_t cores)
{
	for (size_t at = from; at < p->n; at++) {
		for (const char *o = options; *o; o += strspn(o, " ")) {
			size_t n = strcspn(o, " ");
			const char *value = word_option(p->w[at], o, n);
			o += n;
			if (!value)
				continue;
			if (!*value && at + 1 < p->n)
				value = p->w[at + 1];
			return count_read(value, cores);
		}
	}
	return -1;
}

static bool letters_equal(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)a[i] | 32) != ((unsigned char)b[i] | 32))
			return false;
	return true;
}

static bool word_holds(const char *word, const char *texts)
{
	size_t word_n = strlen(word);
	while (*texts) {
		size_t n = strcspn(texts, "|");
		for (size_t i = 0; i + n <= word_n; i++)
			if (letters_equal(word + i, texts, n))
				return true;
		texts += n + (texts[n] == '|');
	}
	return false;
}

bool part_holds(const struct part *p, const char *texts)
{
	if (!texts)
		return true;
	for (size_t i = 0; i < p->n; i++)
		if (word_holds(p->w[i], texts))
			return true;
	return false;
}
