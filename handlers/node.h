/*
 * What one process of ours is: its row in the table of processes, the installation's mark, the
 * master keys, the settings. Set up once after the start, read-only afterwards.
 */
#pragma once
#include "conf.h"
#include "err.h"
#include "id.h"
#include "seal.h"

#include <stdbool.h>

#define NODE_MARK_CHARS 6
#define MARK_SIZE       64 /* "cc-" 6 "-" 26 and NUL, with room */

struct node {
	struct id process; /* the driver id of jobs that this process drives */
	char mark[NODE_MARK_CHARS + 1];
	struct keyring *keys;
	struct data_key own; /* the installation's data key: address hashes */
	const struct conf *conf;
	/* Runs fn(arg) on a thread that may block for long; false: no room. */
	bool (*submit)(void (*fn)(void *), void *arg);
};

/*
 * Opens database and master keys, reads or makes the installation's mark and data key, writes the
 * process row and starts the heartbeat (every HEARTBEAT_S). ERR_SEALED, ERR_DB_DOWN.
 */
MUST_USE enum err node_start(
	const struct conf *conf, bool (*submit)(void (*fn)(void *), void *arg));

/* Without process row and heartbeat: for admin commands. */
MUST_USE enum err node_open(const struct conf *conf);

/* Marks the process row as ended, so that its jobs are claimed at once; the process exits next. */
void node_leave(void);

/* Closes what node_open opened. */
void node_close(void);
const struct node *node(void);

/* False when a master key that rows name is missing here; looked up at most every few seconds. */
bool node_keys_complete(void);

/* The node's name in the table of processes: the host name. */
const char *node_host(void);

/* A fresh mark for one create attempt, derived from the sandbox row's id. */
void node_mark_of(struct id sandbox, char out[MARK_SIZE]);
/* "cc-xxxxxx-": the prefix of all our marks. */
void node_mark_prefix(char out[MARK_SIZE]);

/* The UTC day of a time as YYYY-MM-DD. */
#define DAY_SIZE 11
const char *day_text(char out[DAY_SIZE], int64_t ms);
