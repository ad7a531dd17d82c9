/*
 * The database: named statements, typed arguments, plain rows.
 *
 * Statements live in schema/queries/ and are numbered at build time (sql.h). A process has one pool
 * of connections; a statement outside a transaction borrows one for its own time. Lost deadlocks
 * (1213), lock time-outs (1205) and dead idle connections (2006) are repeated here and nowhere
 * else. A connection lost during a statement (2013) leaves the outcome unknown: statements marked
 * `again` in their header line may simply be repeated; others return ERR_DB_UNSURE and the caller
 * reads back. Waiting happens inside block brackets.
 */
#pragma once
#include "err.h"
#include "id.h"
#include "sql.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct db;

struct arg {
	enum { ARG_END, ARG_NULL, ARG_INT, ARG_STR, ARG_BYTES } kind;
	int64_t number;
	const void *p;
	size_t n;
};
#define A_INT(v)      ((struct arg){.kind = ARG_INT, .number = (v)})
#define A_STR(s)      db_arg_str(s) /* NULL becomes SQL NULL */
#define A_BYTES(v, l) ((struct arg){.kind = ARG_BYTES, .p = (v), .n = (l)})
#define A_ID(i)       ((struct arg){.kind = ARG_BYTES, .p = (i).b, .n = 16}) /* i must be an lvalue */
#define A_NULL        ((struct arg){.kind = ARG_NULL})
#define ARGS(...)     ((const struct arg[]){__VA_ARGS__ __VA_OPT__(, ){.kind = ARG_END}})
struct arg db_arg_str(const char *s);

struct cell {
	const char *p; /* NUL-terminated; NULL for SQL NULL */
	size_t n;
};
struct rows {
	size_t n, columns;
	struct cell *cells; /* row after row, in the arena */
	uint64_t affected;  /* rows changed */
	uint64_t insert_id; /* LAST_INSERT_ID(expr) of the statement */
};

struct db_conf {
	const char *socket; /* unix socket; NULL: host and port */
	const char *host;   /* comma-separated list, tried in order: one writer at a time */
	unsigned port;
	const char *user, *password, *schema;
	const char *ca_file; /* TLS to the server; NULL: none */
	unsigned connections;
};

/* Remembers the settings and makes the pool; connects lazily. Once per process, after fork. */
void db_start(const struct db_conf *conf);
void db_stop(void);

/* Runs one statement in autocommit. ret may be NULL; its memory is in a (may be NULL when the
 * statement returns no rows). ERR_DB_DOWN: nothing was done. ERR_DB_UNSURE: see above. A duplicate
 * key is not an error here: it returns OK with *ret_duplicate (may not be NULL for inserts that
 * can meet one) set. */
MUST_USE enum err db_run(enum sql q, const struct arg *args, struct arena *a, struct rows *ret);
/* The same for an INSERT that may meet a unique key. */
MUST_USE enum err db_insert(enum sql q, const struct arg *args, bool *ret_duplicate);
/* An UPDATE or DELETE; *ret_changed = affected rows. */
MUST_USE enum err db_change(enum sql q, const struct arg *args, uint64_t *ret_changed);

/* Runs fn in a transaction, again when it lost a deadlock, at most DB_TRIES times. fn returns OK to
 * commit, anything else to roll back. ERR_DB_UNSURE: the COMMIT's answer was lost. */
MUST_USE enum err db_transaction(enum err (*fn)(struct db *tx, void *ctx), void *ctx);
MUST_USE enum err db_tx_run(
	struct db *tx, enum sql q, const struct arg *args, struct arena *a, struct rows *ret);
MUST_USE enum err db_tx_insert(
	struct db *tx, enum sql q, const struct arg *args, bool *ret_duplicate);
MUST_USE enum err db_tx_change(
	struct db *tx, enum sql q, const struct arg *args, uint64_t *ret_changed);

/* Cells of a row. Text of numbers is parsed; SQL NULL gives the absent values of shape.h. */
int64_t row_int(const struct rows *r, size_t row, size_t column);
const char *row_str(const struct rows *r, size_t row, size_t column);
struct id row_id(const struct rows *r, size_t row, size_t column);
bool row_null(const struct rows *r, size_t row, size_t column);
const struct cell *row_cell(const struct rows *r, size_t row, size_t column);
