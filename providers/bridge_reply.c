/*
 * Decodes the replies of a bridge: errors, sandboxes, ids and addresses. It promises that no text
 * from outside gets into an error, and that a reply which is not of the form of the contract is
 * never taken for a success.
 */
#include "bridge_reply.h"

#include "arena.h"
#include "json.h"

#include <string.h>

#define CODE_MAX    32
#define SECONDS_MAX 100e9 /* no time of the contract lies behind the year 5138 */
#define BRIDGE_PATH "/bridge/v1"

/* -- errors ------------------------------------------------------------------------------------ */

/* The code of an error body, "" when the body is anything else. */
static void error_code(const struct http_reply *r, char out[CODE_MAX])
{
	CLEANUP_JSON struct json *root = NULL;
	size_t n;
	out[0] = '\0';
	if (strcmp(r->type, "application/json") != 0 || json_parse(r->body, r->body_n, &root))
		return;
	const struct json *code = json_get(json_get(root, "error"), "code");
	if (json_type(code) != JSON_STR)
		return;
	const char *s = json_str(code, &n);
	if (n < CODE_MAX)
		memcpy(out, s, n + 1);
}

static const struct refusal refusals[] = {
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the token"},
	{404, "sandbox_not_found", ERR_BOX_GONE, NULL, "has no such running sandbox"},
	{409, "sandbox_reset", ERR_BOX_GONE, NULL, "says that the machine was replaced"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"},
	{503, "capacity", ERR_UPSTREAM_LIMIT, NULL, "takes no more at the moment"},
	{503, "misconfigured", ERR_UPSTREAM, NULL, "has no token of its own; set it there"},
	{400, "unsupported", ERR_UNSUPPORTED, NULL, "can not give a limit or network mode"},
	{0, NULL, OK, NULL, NULL},
};
static const struct service bridge = {"the bridge", "bridge_url", refusals};

enum err bridge_judge(const struct http_reply *r, enum effect effect)
{
	char code[CODE_MAX];
	error_code(r, code);
	return reply_judge(&bridge, r, code, effect);
}

enum err bridge_object(const struct http_reply *r, struct json **ret_root)
{
	return reply_object(&bridge, r, ret_root);
}

const char *const bridge_networks[] = {NULL, "none", "internet", "host"};

/* -- sandboxes --------------------------------------------------------------------------------- */

bool bridge_id_ok(const char *s)
{
	size_t n = strlen(s);
	return n >= 8 && n <= 63 && s[0] >= 'a' && s[0] <= 'z' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static bool time_of(const struct json *o, const char *key, int64_t *ret_ms)
{
	const struct json *j = json_get(o, key);
	if (json_type(j) != JSON_INT && json_type(j) != JSON_NUM)
		return false;
	double s = json_num(j);
	if (!(s >= 0 && s < SECONDS_MAX))
		return false;
	*ret_ms = (int64_t)(s * 1000);
	return true;
}

bool bridge_box(const struct json *o, struct arena *a, struct box *ret)
{
	const struct json *id = json_get(o, "id"), *state = json_get(o, "state");
	struct box b = {.state = BOX_RUNNING};
	if (json_type(id) != JSON_STR || json_type(state) != JSON_STR ||
		!bridge_id_ok(json_str(id, NULL)))
		return false;
	if (strcmp(json_str(state, NULL), "stopping") == 0)
		b.state = BOX_STOPPING;
	else if (strcmp(json_str(state, NULL), "running") != 0)
		return false;
	if (!time_of(o, "created_at", &b.created_ms) || !time_of(o, "expires_at", &b.ends_ms))
		return false;
	b.id = b.mark = arena_str(a, json_str(id, NULL));
	*ret = b;
	return true;
}

static bool has_word(const struct json *list, const char *word)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (json_type(json_at(list, i)) == JSON_STR &&
			strcmp(json_str(json_at(list, i), NULL), word) == 0)
			return true;
	return false;
}

/* The bridge may give less than was asked for; it tells what it gives. */
static bool gives(const struct json *o, const char *limit, int64_t asked)
{
	const struct json *given = json_get(json_get(o, "limits"), limit);
	if (json_type(given) != JSON_INT && json_type(given) != JSON_NUM)
		return true;
	return json_num(given) >= (double)asked;
}

static bool gives_network(const struct json *o, enum network asked)
{
	const struct json *given = json_get(o, "network");
	return asked == NETWORK_DEFAULT || json_type(given) != JSON_STR ||
	       strcmp(json_str(given, NULL), bridge_networks[asked]) == 0;
}

const char *bridge_warnings(const struct json *o, const struct box_spec *spec, struct arena *a)
{
	const struct json *enforced = json_get(o, "enforced");
	if (json_type(enforced) != JSON_LIST)
		return NULL;
	const char *memory = "", *cpu = "", *network = "";
	if (spec->memory_mb &&
		(!has_word(enforced, "memory") || !gives(o, "memory_mib", spec->memory_mb)))
		memory = " memory";
	if (spec->cpu && (!has_word(enforced, "cpus") || !gives(o, "cpus", spec->cpu)))
		cpu = " cpu";
	if (!gives_network(o, spec->network))
		network = " network";
	if (!*memory && !*cpu && !*network)
		return NULL;
	return arena_printf(a, "not enforced there as asked:%s%s%s", memory, cpu, network);
}

/* -- addresses --------------------------------------------------------------------------------- */

const char *bridge_base(struct arena *a, const char *url)
{
	size_t n = strlen(url), tail = sizeof BRIDGE_PATH - 1;
	while (n > 0 && url[n - 1] == '/')
		n--;
	if (n > tail && memcmp(url + n - tail, BRIDGE_PATH, tail) == 0)
		n -= tail;
	while (n > 0 && url[n - 1] == '/')
		n--;
	return arena_copy(a, url, n);
}

const char *bridge_escape(struct arena *a, const char *s)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_take(a, 3 * strlen(s) + 1), *at = out;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (strchr(plain, c)) {
			*at++ = (char)c;
			continue;
		}
		*at++ = '%';
		*at++ = hex[c >> 4];
		*at++ = hex[c & 15];
	}
	return out;
}
