/*
 * Fuzz target: one POST to /mcp before any method runs. The first three lines of the input are the
 * headers MCP-Protocol-Version, Mcp-Method and Mcp-Name ("-": not sent), the rest is the body. What
 * passes is of one era and its headers agree with the body; what is refused says why.
 */
#include "arena.h"
#include "buf.h"
#include "mcp_head.h"
#include "text.h"

#include <assert.h>
#include <string.h>

#define ARENA_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct input {
	const char *p;
	size_t n;
};

/* The next line as a header's value; FastCGI hands over text without NUL. */
static const char *take_header(struct input *in, struct arena *a)
{
	const char *end = memchr(in->p, '\n', in->n);
	size_t n = end ? (size_t)(end - in->p) : in->n;
	const char *line = arena_copy(a, in->p, n);
	in->p += n + (end != NULL);
	in->n -= n + (end != NULL);
	return strcmp(line, "-") == 0 ? NULL : line;
}

static bool known_legacy(const char *version)
{
	for (size_t i = 0; mcp_legacy_versions[i]; i++)
		if (strcmp(mcp_legacy_versions[i], version) == 0)
			return true;
	return false;
}

static void check_refusal(const struct message *m, enum err e)
{
	assert(*fault_of(e)->detail);
	if (e == ERR_UNSUPPORTED_VERSION)
		assert(m->version && utf8_valid(m->version, strlen(m->version), NULL));
	assert(!m->http || m->http == 400);
}

static void check_passed(const struct exchange *x, const struct message *m)
{
	const char *version = x->protocol_version;
	if (!m->modern) {
		assert(!version || known_legacy(version));
		return;
	}
	assert(version && strcmp(version, MCP_MODERN) == 0);
	assert(x->mcp_method && strcmp(x->mcp_method, m->method) == 0);
	const struct json *name = json_get(m->params, "name");
	if (strcmp(m->method, "tools/call") == 0 && json_type(name) == JSON_STR)
		assert(x->mcp_name);
}

static void judge(const struct exchange *x, const struct json *j)
{
	struct message m;
	enum err e = message_read(j, &m);
	if (m.id)
		assert(json_type(m.id) == JSON_STR || json_type(m.id) == JSON_INT);
	if (!e && m.method && m.id)
		e = message_check(x, &m);
	if (e)
		check_refusal(&m, e);
	else if (m.method && m.id)
		check_passed(x, &m);
	else
		assert(m.method || m.id); /* a notification or a response */
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	CLEANUP_JSON struct json *root = NULL;
	CLEANUP_ARENA struct arena *a = arena_new(ARENA_MAX);
	struct input in = {(const char *)p, n};
	struct exchange x = {.req.arena = a};
	x.protocol_version = take_header(&in, a);
	x.mcp_method = take_header(&in, a);
	x.mcp_name = take_header(&in, a);
	if (json_parse(in.p, in.n, &root))
		return 0;
	judge(&x, root);
	for (size_t i = 0; json_type(root) == JSON_LIST && i < json_len(root); i++)
		judge(&x, json_at(root, i));
	return 0;
}
