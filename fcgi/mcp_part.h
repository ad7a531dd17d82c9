/*
 * What the files of MCP share: the methods, and what their results have in common.
 */
#pragma once
#include "mcp_head.h"

#define MCP_TASKS      "io.modelcontextprotocol/tasks"
#define MCP_RPC_PARAMS -32602

/* Writes the members of a result. On an error m->rpc and m->http may say how it is answered. */
typedef enum err mcp_method_fn(struct exchange *x, struct message *m, struct jw *w);

struct mcp_method {
	const char *name;
	bool modern, legacy; /* in which era it exists */
	mcp_method_fn *run;
};

/* What every modern result carries: its type and who answers. A tool's error (e) is told in full.
 */
void mcp_put_type(struct jw *w, const struct exchange *x, const struct message *m, const char *type,
	enum err e);
/* The same of results that clients may keep, with for how long and for whom. */
void mcp_put_cacheable(struct jw *w, const struct exchange *x, const struct message *m);

/* Whether the request takes answers of this type. */
bool mcp_accepts(const struct exchange *x, const char *type);

mcp_method_fn mcp_tools_call; /* mcp_call.c */
/* The result of a tool as structured content and as the same JSON in a text. */
void mcp_put_result(struct jw *w, const struct exchange *x, const struct tool *t, const void *out);

mcp_method_fn mcp_tasks_get, mcp_tasks_update, mcp_tasks_cancel; /* mcp_task.c */
/* Answers a call of a TOOL_TASKS tool with a task. False: there is nothing to wait for, and nothing
 * was written. */
MUST_USE bool mcp_put_task(
	struct jw *w, const struct exchange *x, const struct message *m, const void *out);

#ifdef CC_TEST_SEAMS
/* Methods that a test build adds or puts in the place of ours. */
struct mcp_extra {
	const struct mcp_method *methods; /* ends with a NULL name */
	void (*capabilities)(struct jw *w, const struct message *m);
};
extern const struct mcp_extra *mcp_extra;
#endif
