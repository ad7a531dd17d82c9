/*
 * A call of a tool, whatever protocol brought it: role and plan, arguments, replay, quota, the
 * tool.
 */
#pragma once
#include "exchange.h"

/*
 * Runs the tool with the arguments of a JSON object (NULL: none) and gives its result, a struct of
 * t->out in the arena. The order is fixed (design 4.1): who -> role and plan -> decode -> replay ->
 * meter -> do. A call that a check refuses is not counted.
 */
MUST_USE enum err call_tool(
	struct exchange *x, const struct tool *t, const struct json *args, void **ret_out);

/* Writes a result by its shape. */
void put_result(struct jw *w, const struct tool *t, const void *out);
