/*
 * What the public conformance suite of MCP wants to find on a server besides a product: tools that
 * answer with every kind of content, prompts, resources, questions to the user, tasks. Rows here,
 * methods in front of ours (mcp_extra); linked into a program that only tests run.
 */
#pragma once
#include "mcp_part.h"

/* Something that the client is asked for before there is an answer. */
struct ask {
	const char *key, *method, *params; /* params is JSON */
	const char *capability;            /* of the client, without which it is not asked */
};
#define ASKS_MAX   3
#define ROUNDS_MAX 2

/* How a tool becomes a task. */
enum task_end { TASK_NONE, TASK_RESULT, TASK_TOOL_ERROR, TASK_BROKEN };

struct fixture_tool {
	const char *name, *text;
	const char *schema;  /* JSON; NULL: no arguments */
	const char *content; /* JSON list; NULL: a text made of before, a word and after */
	const char *before, *after;
	const char *argument;  /* whose value is the word */
	const char *answer_of; /* or: the key of the answer whose content.name it is */
	bool is_error;
	bool reports, logs;     /* progress; log messages of the older era */
	bool has_state;         /* its questions carry a sealed state */
	const char *header;     /* Mcp-Param-... that repeats its argument */
	const char *capability; /* of the client, without which it is refused */
	struct ask rounds[ROUNDS_MAX][ASKS_MAX];
	enum task_end task;
	bool only_task;  /* refused to clients without tasks */
	int64_t task_ms; /* how long it works; or the argument seconds does */
	struct ask task_asks[ASKS_MAX];
};
extern const struct fixture_tool fixture_tools[]; /* ends with a NULL name */

struct fixture_prompt {
	const char *name, *text, *arguments; /* arguments is JSON */
	const char *messages;                /* JSON; NULL: a text made of the arguments */
	struct ask asks[ASKS_MAX];
};
extern const struct fixture_prompt fixture_prompts[];

struct fixture_resource {
	const char *uri, *name, *type, *text, *blob; /* {id} in the uri: a template */
};
extern const struct fixture_resource fixture_resources[];

mcp_method_fn fixture_call, fixture_prompts_get;
mcp_method_fn fixture_tasks_get, fixture_tasks_update, fixture_tasks_cancel;

/* Whether the client declares this capability in the request. */
bool fixture_declares(const struct message *m, const char *capability);
/* The questions as inputRequests; those without a capability of the client and those answered in
 * the bit set are left out. Gives how many stand there. */
size_t fixture_put_asks(
	struct jw *w, const struct message *m, const struct ask *asks, unsigned answered);
/* The bit set of those that the answers, an object of JSON, hold. */
unsigned fixture_answered(const struct ask *asks, const struct json *answers);
unsigned fixture_all(const struct ask *asks);

/* content with one text. */
void fixture_put_text(struct jw *w, const char *text);
/* ERR_BAD_PARAMS over HTTP 200. */
enum err fixture_wrong(struct message *m, const char *field, const char *why);
/* ERR_MISSING_CAPABILITY; needs is JSON. */
enum err fixture_lacks(struct message *m, const char *needs);

/* Begins a task and writes the answer. */
enum err fixture_begin_task(struct exchange *x, struct message *m, struct jw *w,
	const struct fixture_tool *t, const char *word);
