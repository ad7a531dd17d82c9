/*
 * Tools: one row each. From the rows come MCP tools/list, the REST routes, OpenAPI, the argument
 * decoder, the access rules and the list of tools that tests must hit.
 *
 * A handler runs after every general check (token, role, plan, arguments, quota) and ends before
 * any formatting. It knows nothing of HTTP, JSON or SQL text.
 */
#pragma once
#include "arena.h"
#include "conf.h"
#include "err.h"
#include "id.h"
#include "secret.h"
#include "shape.h"

#include <stdbool.h>
#include <stdint.h>

enum role { ROLE_ANYONE, ROLE_AGENT, ROLE_OWNER };
enum plan { PLAN_FREE, PLAN_PRO };

struct caller {
	enum role role; /* ROLE_ANYONE: no token was sent */
	enum plan plan;
	struct id account, token_id; /* null ids without a token */
	struct secret token;         /* the token itself: opens sealed results */
	uint8_t address[16]; /* ROLE_ANYONE: keyed hash of the client's address, new every day */
};

/* Where a running tool may report progress; send is NULL when the client did not ask. */
struct progress {
	void (*send)(void *ctx, double done, const char *message);
	void *ctx;
};

/* Calls of a caller's day, as its own call left them. */
struct quota {
	int64_t limit, left; /* limit 0: this call was not counted */
	int64_t resets_ms;   /* when the count starts again, since 1970 */
};

struct req {
	struct arena *arena;
	struct id id;
	const struct conf *conf;
	struct caller caller;
	const char *path_arg;        /* REST: the {id} of the route; NULL otherwise */
	const char *idempotency_key; /* REST header; NULL: none */
	struct progress progress;
	bool (*gone)(void *ctx); /* true when the client has closed the connection */
	void (*on_gone)(
		void *ctx, void (*wake)(void *arg), void *arg); /* wake NULL: end the watch */
	void *transport;
	struct quota quota;
	bool metered;    /* this call was counted and can be given back */
	bool tool_error; /* the result itself tells of a failure (MCP isError) */
	bool as_task;    /* the caller takes a handle at once and comes back for the result */
};

enum tool_flags {
	TOOL_READS = 1,      /* changes nothing */
	TOOL_DESTROYS = 2,   /* may end or delete something */
	TOOL_REPEATABLE = 4, /* twice is like once */
	TOOL_OPEN_WORLD = 8, /* reaches outside of this server */
	TOOL_METERED = 16,   /* counts against the daily quota */
	TOOL_REST_ONLY = 32, /* no MCP tool: administration by people and programs */
	TOOL_STREAMS = 64,   /* reports progress when the client asks */
	TOOL_REPLAYS = 128,  /* takes idempotency keys: metering waits until `replay` said no */
	TOOL_TASKS = 256,    /* gives a job, which MCP clients that declare tasks get as a task */
};

struct tool {
	const char *name; /* [a-z_], never renamed */
	const char *title;
	const char *doc;   /* read by models and people: what, when, what it costs */
	const char *route; /* "POST /api/keys"; NULL: POST /api/run/<name> */
	const struct shape *in, *out;
	enum role role;
	enum plan plan;
	unsigned flags;
	int status;             /* REST status of success; 0: 200 */
	const enum err *errors; /* besides those of every call; ends with OK */
	enum err (*run)(struct req *r, const void *in, void *out);
	/* TOOL_REPLAYS: looks for the earlier call of this idempotency key. *ret_found true: `out`
	 * is the answer and run is not called. */
	enum err (*replay)(struct req *r, const void *in, void *out, bool *ret_found);
};

/* The input of tools that take none. */
extern const struct shape no_arguments;

/* Every tool in the order of the lists; ends with NULL. */
extern const struct tool *const tools[];
const struct tool *tool_find(const char *name); /* MCP tools only; NULL: none */
