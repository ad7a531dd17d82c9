/*
 * The database: a pool of connections, statements prepared on first use, one place for repeats.
 *
 * It knows no table and no product word. A connection that failed in any unexpected way is closed,
 * never reused.
 */
#include "db.h"

#include "alloc.h"
#include "arena.h"
#include "block.h"
#include "clock.h"
#include "bounds.h"
#include "log.h"
#include "shape.h"

#include <assert.h>
#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POOL_MAX       64
#define CONNECT_S      5
#define RETRY_PAUSE_MS 20 /* times the number of the try, plus as much again at random */
#define SLOW_MS        500
#define IDLE_PING_MS   10000 /* a connection idle for longer is asked before it is trusted */

static const char session_settings[] =
	"SET SESSION tx_isolation='READ-COMMITTED', time_zone='+00:00', innodb_lock_wait_timeout=5,"
	" max_statement_time=10, sql_mode='STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
	"NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY'";

struct db {
	MYSQL *link; /* NULL: not connected */
	MYSQL_STMT *ready[SQL__MAX];
	int64_t used_ms;
};

static struct {
	struct db_conf conf;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct db all[POOL_MAX];
	struct db *idle[POOL_MAX]; /* a stack: the warmest connection first */
	unsigned idle_n;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

/* -- connections ------------------------------------------------------------------------------- */

void db_start(const struct db_conf *conf)
{
	pool.conf = *conf;
	if (pool.conf.connections == 0 || pool.conf.connections > POOL_MAX)
		pool.conf.connections = DB_CONNECTIONS;
	pool.idle_n = 0;
	for (unsigned i = 0; i < pool.conf.connections; i++)
		pool.idle[pool.idle_n++] = &pool.all[i];
}

static void disconnect(struct db *d)
{
	for (int i = 0; i < SQL__MAX; i++) {
		if (d->ready[i])
			(void)mysql_stmt_close(d->ready[i]);
		d->ready[i] = NULL;
	}
	if (d->link)
		mysql_close(d->link);
	d->link = NULL;
}

void db_stop(void)
{
	for (unsigned i = 0; i < pool.conf.connections; i++)
		disconnect(&pool.all[i]);
}

static bool connect_to(MYSQL *m, const char *host)
{
	const struct db_conf *c = &pool.conf;
	const unsigned connect_s = CONNECT_S, io_s = DB_READ_TIMEOUT_S;
	(void)mysql_optionsv(m, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	(void)mysql_optionsv(m, MYSQL_OPT_READ_TIMEOUT, &io_s);
	(void)mysql_optionsv(m, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
	(void)mysql_optionsv(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	const unsigned no_files = 0;
	(void)mysql_optionsv(m, MYSQL_OPT_LOCAL_INFILE, &no_files);
	if (c->ca_file && *c->ca_file)
		(void)mysql_ssl_set(m, NULL, NULL, c->ca_file, NULL, NULL);
	const char *socket = c->socket && *c->socket ? c->socket : NULL;
	return mysql_real_connect(m, socket ? NULL : host, c->user, c->password, c->schema, c->port,
		       socket, 0) &&
	       mysql_query(m, session_settings) == 0;
}

/* Hosts are tried in their order, so that all nodes write through the same server while it lives.
 */
static enum err connect_any(struct db *d)
{
	char hosts[512];
	(void)snprintf(hosts, sizeof hosts, "%s", pool.conf.host ? pool.conf.host : "");
	char *rest = hosts;
	do {
		char *host = strsep(&rest, ",");
		MYSQL *m = must(mysql_init(NULL));
		if (connect_to(m, host)) {
			d->link = m;
			return OK;
		}
		log_event(EV_DB_ERROR, LOG_NAME("at", "connect"), LOG_INT("code", mysql_errno(m)));
		mysql_close(m);
	} while (rest);
	return fail(ERR_DB_DOWN, NULL, "no connection to the database");
}

static struct db *take(void)
{
	block_begin();
	(void)pthread_mutex_lock(&pool.lock);
	while (pool.idle_n == 0)
		(void)pthread_cond_wait(&pool.freed, &pool.lock);
	struct db *d = pool.idle[--pool.idle_n];
	(void)pthread_mutex_unlock(&pool.lock);
	return d;
}

static void give(struct db *d)
{
	d->used_ms = clock_mono_ms();
	(void)pthread_mutex_lock(&pool.lock);
	pool.idle[pool.idle_n++] = d;
	(void)pthread_mutex_unlock(&pool.lock);
	(void)pthread_cond_signal(&pool.freed); /* whoever wakes finds the lock free */
	block_end();
}

static enum err ensure_connected(struct db *d)
{
	if (d->link && clock_mono_ms() - d->used_ms > IDLE_PING_MS && mysql_ping(d->link) != 0)
		disconnect(d);
	return d->link ? OK : connect_any(d);
}

/* -- one execution ----------------------------------------------------------------------------- */

/* Tests make statements fail once: CC_DB_FAULT in the environment of a debug build names a folder.
 * A file NAME with the text "CODE:before" or "CODE:after" in it is the plan for one statement;
 * whoever removes it carries it out. */
#ifdef CC_TEST_SEAMS
static unsigned planned_fault(enum sql q, bool after)
{
	char path[256], plan[32] = "";
	const char *folder = getenv("CC_DB_FAULT");
	if (!folder)
		return 0;
	(void)snprintf(path, sizeof path, "%s/%s", folder, sql_rows[q].name);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(plan, 1, sizeof plan - 1, f);
	(void)fclose(f);
	bool planned = n > 0 && (strstr(plan, ":after") != NULL) == after;
	return planned && unlink(path) == 0 ? (unsigned)strtoul(plan, NULL, 10) : 0;
}
#else
static unsigned planned_fault(enum sql q, bool after)
{
	(void)q;
	(void)after;
	return 0;
}
#endif

static bool is_lost(unsigned code)
{
	return code == CR_SERVER_GONE_ERROR || code == CR_SERVER_LOST ||
	       code == CR_CONNECTION_ERROR || code == ER_SERVER_SHUTDOWN ||
	       code == ER_CONNECTION_KILLED;
}

static MYSQL_STMT *prepared(struct db *d, enum sql q, unsigned *ret_code)
{
	if (d->ready[q])
		return d->ready[q];
	MYSQL_STMT *s = must(mysql_stmt_init(d->link));
	const bool want_lengths = true;
	(void)mysql_stmt_attr_set(s, STMT_ATTR_UPDATE_MAX_LENGTH, &want_lengths);
	if (mysql_stmt_prepare(s, sql_rows[q].text, strlen(sql_rows[q].text)) != 0) {
		*ret_code = mysql_stmt_errno(s);
		/* A statement that could not even be sent was certainly not executed. */
		if (*ret_code == CR_SERVER_LOST)
			*ret_code = CR_SERVER_GONE_ERROR;
		(void)mysql_stmt_close(s);
		return NULL;
	}
	assert(mysql_stmt_param_count(s) == sql_rows[q].params);
	return d->ready[q] = s;
}

static void bind_args(MYSQL_BIND *bind, const struct arg *args)
{
	for (; args->kind != ARG_END; args++, bind++) {
		memset(bind, 0, sizeof *bind);
		if (args->kind == ARG_NULL) {
			bind->buffer_type = MYSQL_TYPE_NULL;
		} else if (args->kind == ARG_INT) {
			bind->buffer_type = MYSQL_TYPE_LONGLONG;
			memcpy(&bind->buffer, &(const void *){&args->number}, sizeof bind->buffer);
		} else {
			bind->buffer_type =
				args->kind == ARG_STR ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
			memcpy(&bind->buffer, &args->p, sizeof bind->buffer);
			bind->buffer_length = args->n;
		}
	}
}

static size_t count_args(const struct arg *args)
{
	size_t n = 0;
	while (args[n].kind != ARG_END)
		n++;
	return n;
}

#define PARAMS_MAX  32
#define COLUMNS_MAX 48

static void bind_columns(
	MYSQL_RES *meta, struct arena *a, MYSQL_BIND *bind, unsigned long *lengths, my_bool *nulls)
{
	for (unsigned c = 0; c < mysql_num_fields(meta); c++) {
		/* max_length of a number is its binary size; 32 characters hold any number's text.
		 */
		size_t room = mysql_fetch_field_direct(meta, c)->max_length + 32;
		bind[c] = (MYSQL_BIND){.buffer_type = MYSQL_TYPE_STRING,
			.buffer = arena_take(a, room),
			.buffer_length = room,
			.length = &lengths[c],
			.is_null = &nulls[c]};
	}
}

static unsigned fetch_all(MYSQL_STMT *s, struct arena *a, MYSQL_RES *meta, struct rows *ret)
{
	MYSQL_BIND bind[COLUMNS_MAX] = {0};
	unsigned long lengths[COLUMNS_MAX];
	my_bool nulls[COLUMNS_MAX];
	unsigned columns = mysql_num_fields(meta);
	size_t n = (size_t)mysql_stmt_num_rows(s);
	assert(columns <= COLUMNS_MAX && a);
	bind_columns(meta, a, bind, lengths, nulls);
	if (mysql_stmt_bind_result(s, bind))
		return mysql_stmt_errno(s);
	*ret = (struct rows){.columns = columns, .cells = ARENA_LIST(a, n * columns, struct cell)};
	while (ret->n < n && mysql_stmt_fetch(s) == 0) {
		struct cell *row = &ret->cells[ret->n++ * columns];
		for (unsigned c = 0; c < columns; c++)
			if (!nulls[c])
				row[c] = (struct cell){
					arena_copy(a, bind[c].buffer, lengths[c]), lengths[c]};
	}
	return 0;
}

/* Reads the whole result into the arena; every column as text or bytes. */
static unsigned read_rows(MYSQL_STMT *s, struct arena *a, struct rows *ret)
{
	if (mysql_stmt_store_result(s))
		return mysql_stmt_errno(s);
	/* After the result was stored, so that the longest value of each column is known. */
	MYSQL_RES *meta = mysql_stmt_result_metadata(s);
	if (!meta)
		return mysql_stmt_errno(s);
	unsigned code = fetch_all(s, a, meta, ret);
	mysql_free_result(meta);
	(void)mysql_stmt_free_result(s);
	return code;
}

/* Runs the statement once. 0, or the server's or client's error code. */
static unsigned execute(
	struct db *d, enum sql q, const struct arg *args, struct arena *a, struct rows *ret)
{
	MYSQL_BIND bind[PARAMS_MAX];
	unsigned code = planned_fault(q, false);
	MYSQL_STMT *s = code ? NULL : prepared(d, q, &code);
	if (!s)
		return code;
	assert(count_args(args) == sql_rows[q].params && sql_rows[q].params <= PARAMS_MAX);
	bind_args(bind, args);
	int64_t began = clock_mono_ms();
	if ((sql_rows[q].params && mysql_stmt_bind_param(s, bind)) || mysql_stmt_execute(s))
		return mysql_stmt_errno(s);
	if (sql_rows[q].rows)
		code = read_rows(s, a, ret);
	ret->affected = mysql_stmt_affected_rows(s);
	ret->insert_id = mysql_stmt_insert_id(s);
	int64_t took = clock_mono_ms() - began;
	if (took > SLOW_MS)
		log_event(EV_DB_SLOW, LOG_NAME("statement", sql_rows[q].name), LOG_INT("ms", took));
	return code ? code : planned_fault(q, true);
}

static void pause_before(unsigned try)
{
	clock_sleep_ms((int64_t)(try * RETRY_PAUSE_MS + random_below(try * RETRY_PAUSE_MS)));
}

/* The error of a statement that will not be repeated. */
static enum err give_up(enum sql q, unsigned code, bool may_have_happened)
{
	log_event(EV_DB_ERROR, LOG_NAME("at", sql_rows[q].name), LOG_INT("code", code));
	if (may_have_happened)
		return fail(ERR_DB_UNSURE, NULL, "the connection broke during a change");
	if (is_lost(code) || code == ER_UNKNOWN_COM_ERROR || code == ER_LOCK_WAIT_TIMEOUT ||
		code == ER_LOCK_DEADLOCK)
		return fail(ERR_DB_DOWN, NULL, "the database does not answer");
	return fail(ERR_INTERNAL, NULL, "statement error %u", code);
}

/* -- statements in autocommit ------------------------------------------------------------------ */

enum fate { DONE, AGAIN, GIVE_UP, UNSURE };

/* What a code means for a statement in autocommit. */
static enum fate fate_of(enum sql q, unsigned code)
{
	if (code == 0 || code == ER_DUP_ENTRY)
		return DONE;
	if (code == ER_LOCK_DEADLOCK || code == ER_LOCK_WAIT_TIMEOUT)
		return AGAIN;
	if (!is_lost(code))
		return GIVE_UP;
	return code == CR_SERVER_GONE_ERROR || sql_rows[q].again ? AGAIN : UNSURE;
}

/* *ret_code is ER_DUP_ENTRY or 0 when OK is returned. */
static enum err run(
	enum sql q, const struct arg *args, struct arena *a, struct rows *ret, unsigned *ret_code)
{
	struct db *d = take();
	enum err e = OK;
	enum fate fate = AGAIN;
	for (unsigned try = 1; fate == AGAIN; try++) {
		e = ensure_connected(d);
		if (e)
			break;
		*ret_code = execute(d, q, args, a, ret);
		fate = fate_of(q, *ret_code);
		if (is_lost(*ret_code))
			disconnect(d);
		if (fate == AGAIN && try == DB_TRIES)
			fate = GIVE_UP;
		if (fate == AGAIN)
			pause_before(try);
	}
	if (fate == GIVE_UP || fate == UNSURE)
		e = give_up(q, *ret_code, fate == UNSURE);
	give(d);
	return e;
}

enum err db_run(enum sql q, const struct arg *args, struct arena *a, struct rows *ret)
{
	struct rows unused;
	unsigned code = 0;
	enum err e = run(q, args, a, ret ? ret : &unused, &code);
	return e ? e : code == ER_DUP_ENTRY ? give_up(q, code, false) : OK;
}

enum err db_insert(enum sql q, const struct arg *args, bool *ret_duplicate)
{
	struct rows done;
	unsigned code = 0;
	enum err e = run(q, args, NULL, &done, &code);
	*ret_duplicate = code == ER_DUP_ENTRY;
	return e;
}

enum err db_change(enum sql q, const struct arg *args, uint64_t *ret_changed)
{
	struct rows done = {0};
	enum err e = db_run(q, args, NULL, &done);
	*ret_changed = done.affected;
	return e;
}

/* -- transactions ------------------------------------------------------------------------------ */

/* What a statement of the running transaction met, for db_transaction: errors travel up as enum
 * err, the code that decides about a repeat stays here. */
static _Thread_local unsigned tx_code;

enum err db_tx_run(
	struct db *tx, enum sql q, const struct arg *args, struct arena *a, struct rows *ret)
{
	struct rows unused;
	tx_code = execute(tx, q, args, a, ret ? ret : &unused);
	return tx_code ? give_up(q, tx_code, false) : OK;
}

enum err db_tx_insert(struct db *tx, enum sql q, const struct arg *args, bool *ret_duplicate)
{
	struct rows done;
	tx_code = execute(tx, q, args, NULL, &done);
	*ret_duplicate = tx_code == ER_DUP_ENTRY;
	if (*ret_duplicate)
		tx_code = 0;
	return tx_code ? give_up(q, tx_code, false) : OK;
}

enum err db_tx_change(struct db *tx, enum sql q, const struct arg *args, uint64_t *ret_changed)
{
	struct rows done = {0};
	enum err e = db_tx_run(tx, q, args, NULL, &done);
	*ret_changed = done.affected;
	return e;
}

static enum err try_transaction(struct db *d, enum err (*fn)(struct db *tx, void *ctx), void *ctx)
{
	tx_code = 0;
	if (mysql_query(d->link, "START TRANSACTION") != 0) {
		/* Nothing was executed yet, whatever happened to the connection. */
		tx_code =
			is_lost(mysql_errno(d->link)) ? CR_SERVER_GONE_ERROR : mysql_errno(d->link);
		return fail(ERR_DB_DOWN, NULL, "the database does not answer");
	}
	enum err e = fn(d, ctx);
	if (e) {
		/* 1205 rolls only the statement back; after anything else this does no harm. */
		if (!is_lost(tx_code))
			(void)mysql_query(d->link, "ROLLBACK");
		return e;
	}
	unsigned code = planned_fault(SQL_COMMIT, false);
	if (!code && mysql_query(d->link, "COMMIT") != 0)
		code = mysql_errno(d->link);
	if (!code)
		code = planned_fault(SQL_COMMIT, true);
	if (!code)
		return OK;
	tx_code = code == ER_LOCK_DEADLOCK ? code : 0;
	disconnect(d);
	return tx_code ? fail(ERR_DB_DOWN, NULL, "the transaction was rolled back")
		       : fail(ERR_DB_UNSURE, NULL, "the answer to COMMIT was lost");
}

enum err db_transaction(enum err (*fn)(struct db *tx, void *ctx), void *ctx)
{
	struct db *d = take();
	enum err e = OK;
	for (unsigned try = 1; try <= DB_TRIES; try++) {
		e = ensure_connected(d);
		if (!e)
			e = try_transaction(d, fn, ctx);
		if (!e || tx_code == 0)
			break;
		/* A connection that breaks before COMMIT was sent takes the transaction with it. */
		bool lost = is_lost(tx_code);
		if (lost)
			disconnect(d);
		if (!lost && tx_code != ER_LOCK_DEADLOCK && tx_code != ER_LOCK_WAIT_TIMEOUT)
			break;
		pause_before(try);
	}
	give(d);
	return e;
}

/* -- rows -------------------------------------------------------------------------------------- */

struct arg db_arg_str(const char *s)
{
	return s ? (struct arg){.kind = ARG_STR, .p = s, .n = strlen(s)} : A_NULL;
}

const struct cell *row_cell(const struct rows *r, size_t row, size_t column)
{
	assert(row < r->n && column < r->columns);
	return &r->cells[row * r->columns + column];
}

bool row_null(const struct rows *r, size_t row, size_t column)
{
	return row_cell(r, row, column)->p == NULL;
}

int64_t row_int(const struct rows *r, size_t row, size_t column)
{
	const char *p = row_cell(r, row, column)->p;
	return p ? strtoll(p, NULL, 10) : ABSENT_INT;
}

const char *row_str(const struct rows *r, size_t row, size_t column)
{
	return row_cell(r, row, column)->p;
}

struct id row_id(const struct rows *r, size_t row, size_t column)
{
	const struct cell *c = row_cell(r, row, column);
	struct id i = {{0}};
	if (c->p && c->n == sizeof i.b)
		memcpy(i.b, c->p, sizeof i.b);
	return i;
}
