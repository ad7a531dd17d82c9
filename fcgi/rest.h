/*
 * REST: POST /api/run/<tool> and the routes that tools name themselves.
 */
#pragma once
#include "exchange.h"

/* Serves one call of a tool; x->req.path_arg is set when the route has {id}. */
void rest_serve(struct exchange *x, const struct tool *t);
