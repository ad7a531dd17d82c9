/*
 * From method and path to what serves it. Paths exist only as rows: here, and as routes of tools.
 */
#pragma once
#include "exchange.h"

/* Serves one request from its first byte to its last: the `serve` hook of a worker. */
void serve_request(FCGX_Request *fcgi, struct client *c);
/* The 503 of a worker that has no thread left. */
void refuse_request(FCGX_Request *fcgi);

/* The settings that requests see, and the documents computed from them; before the first request.
 */
void route_start(const struct conf *conf);
