/*
 * MCP over Streamable HTTP, stateless, both eras on one endpoint: the handshake of 2025-11-25 and
 * older, and 2026-07-28 where every request carries its own metadata.
 */
#pragma once
#include "exchange.h"

/* Computes what is the same in every answer; before the first request. */
void mcp_start(void);

/* Serves POST /mcp; the body is read and the caller is known (or e says why not). */
void mcp_serve(struct exchange *x);

/* Answers an error that came before any message was read (body, key, origin), without an id. */
void mcp_refuse(struct exchange *x, enum err e);
