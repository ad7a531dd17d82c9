/*
 * What callers send: bodies of create, exec and kill, the path, the query. Nothing here has
 * effects, so all of it can be fed with anything.
 */
#pragma once
#include "config.h"
#include "wrong.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define JSON_BODY_MAX     (1u << 20)
#define FILE_BLOCK_MAX    (8u << 20)
#define COMMAND_BYTES_MAX 32768 /* argv, env and stdin of one exec together */
#define FOLLOW_MS_MAX     60000
#define FOLLOW_MS_DEFAULT 30000
#define OFFSET_MAX        999999999999999 /* 15 digits */
#define PAIRS_MAX         64              /* labels; variables of a sandbox or an exec */
#define LABEL_BYTES_MAX   256
#define QUERY_PARAMS_MAX  24
#define BOX_ENV_BYTES_MAX 16384 /* variables given to create */

struct pair {
	const char *name, *value;
};
struct pairs {
	size_t n;
	struct pair p[PAIRS_MAX];
};

struct create_ask {
	const char *id;
	int64_t ttl_s, idle_s; /* idle_s 0: not given */
	enum network network;  /* NETWORK_UNSET: not given */
	struct limits limits;  /* 0: not given */
	struct pairs labels, env;
};
enum wrong body_create(const char *p, size_t n, struct arena *a, struct create_ask *ret);

struct exec_ask {
	const char *exec_id, *cwd; /* cwd NULL: home */
	const char *const *argv;
	size_t argc;
	struct pairs env;
	const uint8_t *stdin_bytes; /* NULL: empty */
	size_t stdin_n;
	int64_t timeout_s, follow_ms;
};
enum wrong body_exec(const char *p, size_t n, struct arena *a, struct exec_ask *ret);

/* The signal's number. An empty body means KILL. */
enum wrong body_kill(const char *p, size_t n, int *ret_signal);

enum target {
	TARGET_HEALTH,
	TARGET_SANDBOXES,
	TARGET_SANDBOX,
	TARGET_EXECS,
	TARGET_EXEC,
	TARGET_KILL,
	TARGET_FILE,
};
struct route {
	enum target target;
	char id[SANDBOX_ID_SIZE], exec_id[EXEC_ID_SIZE];
};
/* path as it came, without the query. Ids never need escaping, so an escape is no route. */
enum wrong route_parse(const char *path, struct route *ret);

struct query {
	size_t n;
	struct pair p[QUERY_PARAMS_MAX];
};
enum wrong query_parse(const char *raw, struct arena *a, struct query *ret);
/* 0 ... max; the default when the parameter is absent; larger values count as max. */
enum wrong query_int(
	const struct query *q, const char *name, int64_t absent, int64_t max, int64_t *ret);
enum wrong query_path(const struct query *q, const char **ret);

bool sandbox_id_ok(const char *s);
bool exec_id_ok(const char *s);
