/* Paths and queries. Promises: a strict reader; what it does not know is no route, never a guess.
 */
#include "arena.h"
#include "body.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "/bridge/v1/sandboxes"

/* Copies the segment at *p (up to the next slash or the end) and moves behind it. */
static bool segment(const char **p, char *out, size_t size)
{
	if (**p != '/')
		return false;
	size_t n = strcspn(*p + 1, "/");
	if (n == 0 || n >= size)
		return false;
	memcpy(out, *p + 1, n);
	out[n] = 0;
	*p += n + 1;
	return true;
}

static bool below_sandbox(const char *p, struct route *ret)
{
	char word[8];
	if (!segment(&p, word, sizeof word))
		return false;
	if (strcmp(word, "file") == 0) {
		ret->target = TARGET_FILE;
		return !*p;
	}
	if (strcmp(word, "exec") != 0)
		return false;
	ret->target = TARGET_EXECS;
	if (!*p)
		return true;
	if (!segment(&p, ret->exec_id, sizeof ret->exec_id) || !exec_id_ok(ret->exec_id))
		return false;
	ret->target = TARGET_EXEC;
	if (!*p)
		return true;
	ret->target = TARGET_KILL;
	return segment(&p, word, sizeof word) && strcmp(word, "kill") == 0 && !*p;
}

enum wrong route_parse(const char *path, struct route *ret)
{
	*ret = (struct route){.target = TARGET_HEALTH};
	if (strcmp(path, "/health") == 0)
		return WRONG_NOTHING;
	if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
		return WRONG_ROUTE;
	const char *p = path + strlen(PREFIX);
	ret->target = TARGET_SANDBOXES;
	if (!*p)
		return WRONG_NOTHING;
	if (!segment(&p, ret->id, sizeof ret->id) || !sandbox_id_ok(ret->id))
		return WRONG_ROUTE;
	ret->target = TARGET_SANDBOX;
	return !*p || below_sandbox(p, ret) ? WRONG_NOTHING : WRONG_ROUTE;
}

static bool hex_byte(const char *p, uint8_t *ret)
{
	char low[3] = {p[0], p[1], 0};
	for (int i = 0; i < 2; i++)
		if (low[i] >= 'A' && low[i] <= 'F')
			low[i] = (char)(low[i] - 'A' + 'a');
	return hex_decode(ret, 1, low);
}

/* Decodes n bytes of a query: %XX, plus is a blank. NULL when malformed or with a NUL inside. */
static const char *unescape(const char *p, size_t n, struct arena *a)
{
	char *out = arena_take(a, n + 1);
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)p[i];
		if (c == '%') {
			if (i + 2 >= n || !hex_byte(p + i + 1, &c))
				return NULL;
			i += 2;
		} else if (c == '+') {
			c = ' ';
		}
		if (c == 0)
			return NULL;
		out[at++] = (char)c;
	}
	return out;
}

enum wrong query_parse(const char *raw, struct arena *a, struct query *ret)
{
	ret->n = 0;
	for (const char *p = raw; *p;) {
		size_t n = strcspn(p, "&");
		const char *eq = memchr(p, '=', n);
		size_t name_n = eq ? (size_t)(eq - p) : n;
		const char *name = unescape(p, name_n, a);
		const char *value = eq ? unescape(eq + 1, n - name_n - 1, a) : "";
		if (!name || !value)
			return wrong(WRONG_REQUEST, "the query has a malformed escape");
		if (n > 0 && ret->n == QUERY_PARAMS_MAX)
			return wrong(WRONG_REQUEST, "the query has more than %d parameters",
				QUERY_PARAMS_MAX);
		if (n > 0)
			ret->p[ret->n++] = (struct pair){name, value};
		p += n + (p[n] == '&');
	}
	return WRONG_NOTHING;
}

static enum wrong query_one(const struct query *q, const char *name, const char **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < q->n; i++) {
		if (strcmp(q->p[i].name, name) != 0)
			continue;
		if (*ret)
			return wrong(WRONG_REQUEST, "%s is given twice", name);
		*ret = q->p[i].value;
	}
	return WRONG_NOTHING;
}

enum wrong query_int(
	const struct query *q, const char *name, int64_t absent, int64_t max, int64_t *ret)
{
	const char *s;
	enum wrong w = query_one(q, name, &s);
	*ret = absent;
	if (w || !s)
		return w;
	if (strlen(s) > 15 || !int_parse(s, 0, OFFSET_MAX, ret))
		return wrong(WRONG_REQUEST, "%s must be 1 to 15 digits", name);
	*ret = *ret > max ? max : *ret;
	return WRONG_NOTHING;
}

enum wrong query_path(const struct query *q, const char **ret)
{
	enum wrong w = query_one(q, "path", ret);
	if (w)
		return w;
	if (!*ret || **ret != '/')
		return wrong(WRONG_REQUEST, "path must be absolute");
	if (strlen(*ret) > 4095)
		return wrong(WRONG_REQUEST, "path is longer than 4095 bytes");
	return WRONG_NOTHING;
}
