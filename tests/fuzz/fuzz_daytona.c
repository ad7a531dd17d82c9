/*
 * Fuzz target: what Daytona answers, and the addresses it tells. The first byte chooses the reader:
 * 'u' an address, anything else a body with one of the statuses ('A' the first). An exit code only
 * comes out whole, an id always fits into a path, and a near address is never without our domain.
 */
#include "arena.h"
#include "daytona_reply.h"
#include "json.h"

#include <assert.h>
#include <string.h>

#define ARENA_MAX (64u << 20)
#define MARK      "cc-m"

/* 'A' is 1 modulo 32. */
static const int statuses[] = {
	204, 200, 302, 400, 401, 403, 404, 408, 409, 410, 422, 429, 500, 502, 599};

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void address(const char *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	const char *url = arena_copy(a, p, n);
	(void)daytona_base(a, url);
	if (!daytona_near("https://app.daytona.io/api", url))
		return;
	size_t host = strcspn(url + 8, "/?#:");
	assert(strncmp(url, "https://", 8) == 0 && host >= 10);
	for (size_t i = 0; i < 10; i++)
		assert((url[8 + host - 10 + i] | 0x20) == ("daytona.io"[i] | 0x20));
	assert(!memchr(url + 8, '@', strcspn(url + 8, "/?#")));
}

static void result(const struct json *root, struct arena *a)
{
	struct exec_result e = {.code = -7};
	if (daytona_result(root, MARK, a, &e)) {
		assert(e.code == -7);
		return;
	}
	assert(e.code >= 0 && e.code <= 255);
	assert(e.out[e.out_n] == '\0' && e.err[e.err_n] == '\0');
}

static void body(int status, const char *p, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r = {.fate = HTTP_REPLIED,
		.status = status,
		.body = arena_copy(a, p, n),
		.body_n = n,
		.type = "application/json"};
	const struct service services[] = {
		{"Daytona", NULL, daytona_api_refusals}, {"Daytona", NULL, daytona_box_refusals}};
	struct daytona_box b;
	const char *code = daytona_code(&r);
	assert(status >= 400 || !*code);
	for (int effect = EFFECT_READS; effect <= EFFECT_CREATES; effect++)
		for (int i = 0; i < 2; i++)
			assert((reply_judge(&services[i], &r, code, (enum effect)effect) == OK) ==
				(status >= 200 && status <= 204));
	if (reply_object(&services[0], &r, &root))
		return;
	if (daytona_box(root, a, &b))
		assert(*b.id && *b.id != '.' && !strpbrk(b.id, "/?#% \n") && strlen(b.id) <= 80);
	(void)daytona_lacks(json_get(root, "permissions"));
	result(root, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0;
	if (*p == 'u')
		address((const char *)p + 1, n - 1);
	else
		body(statuses[*p % 32 % (sizeof statuses / sizeof statuses[0])],
			(const char *)p + 1, n - 1);
	return 0;
}
