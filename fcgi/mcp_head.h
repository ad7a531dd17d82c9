/*
 * What one JSON-RPC message is and whether its headers agree with it: steps 3 to 6 of the order in
 * which a dual-era server judges a request.
 */
#pragma once
#include "exchange.h"

struct message {
	const struct json *id; /* NULL: none */
	const char *method;    /* NULL: a response */
	const struct json *params, *meta;
	const char *version; /* that a refused version claimed, made valid UTF-8 */
	bool modern;
	bool tasks;        /* the client takes tasks as answers */
	const char *needs; /* ERR_MISSING_CAPABILITY: the capabilities that it lacks, as JSON */
	/* The error's JSON-RPC code and HTTP status when they are not those of its row. */
	int rpc, http;
};

#define MCP_MODERN "2026-07-28"
extern const char *const mcp_legacy_versions[]; /* newest first; ends with NULL */

/* Reads the members. ERR_BAD_REQUEST when it is no JSON-RPC message. */
MUST_USE enum err message_read(const struct json *j, struct message *ret);

/* Decides the era and checks version, method and name headers. On an error m->rpc and m->http say
 * how it is answered. */
MUST_USE enum err message_check(const struct exchange *x, struct message *m);
