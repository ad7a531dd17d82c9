/*
 * What one JSON-RPC message is, and whether its headers agree with it.
 *
 * The order of the checks is the order that official clients rely on: the first failing one
 * answers.
 */
#include "mcp_head.h"

#include "text.h"

#include <string.h>

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_TASKS        "io.modelcontextprotocol/tasks"
#define RPC_PARAMS        -32602
#define RPC_OLD_VERSION   -32000
#define BASE64_PREFIX     "=?base64?"
#define BASE64_SUFFIX     "?="

const char *const mcp_legacy_versions[] = {
	"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL};

static bool is_id(const struct json *id)
{
	return json_type(id) == JSON_STR || json_type(id) == JSON_INT;
}

/* The id's member also when it is null, which json_get would hide. */
static bool find_id(const struct json *j, const struct json **ret)
{
	for (size_t i = 0; i < json_len(j); i++) {
		const char *key;
		const struct json *value = json_member(j, i, &key);
		if (strcmp(key, "id") != 0)
			continue;
		*ret = value;
		return true;
	}
	return false;
}

static enum err read_params(const struct json *j, struct message *ret)
{
	ret->params = json_get(j, "params");
	if (ret->params && json_type(ret->params) != JSON_OBJ)
		return fail(ERR_BAD_REQUEST, "params", "must be an object");
	ret->meta = json_get(ret->params, "_meta");
	return OK;
}

enum err message_read(const struct json *j, struct message *ret)
{
	*ret = (struct message){0};
	if (json_type(j) != JSON_OBJ)
		return fail(ERR_BAD_REQUEST, NULL, "a message is a JSON object");
	const char *version = json_str(json_get(j, "jsonrpc"), NULL);
	const char *method = json_str(json_get(j, "method"), NULL);
	if (!version || strcmp(version, "2.0") != 0)
		return fail(ERR_BAD_REQUEST, "jsonrpc", "must be \"2.0\"");
	bool has_id = find_id(j, &ret->id);
	if (has_id && !is_id(ret->id)) {
		ret->id = NULL;
		return fail(ERR_BAD_REQUEST, "id", "must be a string or an integer");
	}
	bool is_response =
		!json_get(j, "method") && (json_get(j, "result") || json_get(j, "error"));
	if (has_id && is_response)
		return OK;
	if (!method)
		return fail(ERR_BAD_REQUEST, "method", "must be a string");
	ret->method = method;
	return read_params(j, ret);
}

static bool is_modern_date(const char *version)
{
	return version && strlen(version) == 10 && version[4] == '-' && version[7] == '-' &&
	       strcmp(version, "2026-01-01") >= 0;
}

static enum err unsupported(const struct exchange *x, struct message *m, const char *version)
{
	size_t n;
	bool replaced;
	m->version = utf8_repair(x->req.arena, version, strlen(version), &n, &replaced);
	return fail(ERR_UNSUPPORTED_VERSION, "MCP-Protocol-Version", "%s is supported", MCP_MODERN);
}

static enum err answered(struct message *m, enum err e, int rpc, int http)
{
	m->rpc = rpc;
	m->http = http;
	return e;
}

/* -- headers ----------------------------------------------------------------------------------- */

/* A header value as it was meant: base64 when it is wrapped so. NULL: badly wrapped. */
static const char *plain_value(const struct exchange *x, const char *v)
{
	const size_t front = strlen(BASE64_PREFIX), back = strlen(BASE64_SUFFIX), n = strlen(v);
	if (n < front + back || strncmp(v, BASE64_PREFIX, front) != 0 ||
		strcmp(v + n - back, BASE64_SUFFIX) != 0)
		return v;
	size_t len;
	uint8_t *p = base64_decode(x->req.arena, v + front, n - front - back, &len);
	return p && utf8_valid((const char *)p, len, NULL) && strlen((const char *)p) == len
		       ? (const char *)p
		       : NULL;
}

/* The body member that Mcp-Name repeats, for the methods that have one. */
static const struct json *name_source(const struct message *m)
{
	static const struct {
		const char *method, *member;
	} rows[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"},
		{"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].method, m->method) == 0)
			return json_get(m->params, rows[i].member);
	return NULL;
}

static enum err check_headers(const struct exchange *x, struct message *m)
{
	const struct json *name = name_source(m);
	if (!x->protocol_version)
		return fail(ERR_HEADER_MISMATCH, "MCP-Protocol-Version", "is required");
	if (!x->mcp_method || strcmp(x->mcp_method, m->method) != 0)
		return fail(ERR_HEADER_MISMATCH, "Mcp-Method", "must equal the method of the body");
	if (json_type(name) != JSON_STR)
		return OK;
	const char *plain = x->mcp_name ? plain_value(x, x->mcp_name) : NULL;
	if (!plain || strcmp(plain, json_str(name, NULL)) != 0)
		return fail(ERR_HEADER_MISMATCH, "Mcp-Name", "must equal the name in the body");
	return OK;
}

/* -- eras -------------------------------------------------------------------------------------- */

static enum err check_modern(const struct exchange *x, struct message *m, const struct json *claim)
{
	const char *version = json_type(claim) == JSON_STR ? json_str(claim, NULL) : NULL;
	const struct json *capabilities = json_get(m->meta, META_CAPABILITIES);
	m->tasks =
		json_type(json_get(json_get(capabilities, "extensions"), META_TASKS)) == JSON_OBJ;
	if (!version || json_type(capabilities) != JSON_OBJ)
		return answered(m,
			fail(ERR_BAD_PARAMS, "params._meta",
				"protocolVersion and clientCapabilities are required"),
			RPC_PARAMS, 400);
	if (x->protocol_version && strcmp(x->protocol_version, version) != 0)
		return fail(ERR_HEADER_MISMATCH, "MCP-Protocol-Version",
			"differs from the version in the body");
	if (strcmp(version, MCP_MODERN) != 0)
		return unsupported(x, m, version);
	return check_headers(x, m);
}

static bool is_known_legacy(const char *version)
{
	for (size_t i = 0; mcp_legacy_versions[i]; i++)
		if (strcmp(mcp_legacy_versions[i], version) == 0)
			return true;
	return false;
}

enum err message_check(const struct exchange *x, struct message *m)
{
	const struct json *claim = json_get(m->meta, META_VERSION);
	bool header_modern = is_modern_date(x->protocol_version);
	m->modern = claim || header_modern;
	if (!claim && header_modern && strcmp(m->method, "initialize") == 0)
		return fail(ERR_HEADER_MISMATCH, "MCP-Protocol-Version",
			"initialize belongs to older revisions");
	if (m->modern)
		return check_modern(x, m, claim);
	if (x->protocol_version && !is_known_legacy(x->protocol_version))
		return answered(m, unsupported(x, m, x->protocol_version), RPC_OLD_VERSION, 400);
	return OK;
}
