/* Brings a schema up to date, over a connection of its own that allows several statements at once.
 */
#include "db_migrate.h"

#include "alloc.h"
#include "clock.h"
#include "log.h"

#include <inttypes.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err run_script(MYSQL *m, const char *text, const char *what)
{
	int rc = mysql_query(m, text);
	while (rc == 0) {
		MYSQL_RES *unused = mysql_store_result(m);
		if (unused)
			mysql_free_result(unused);
		rc = mysql_next_result(m);
	}
	if (rc > 0) {
		log_event(EV_DB_ERROR, LOG_NAME("at", "migrate"), LOG_INT("code", mysql_errno(m)));
		return fail(ERR_INTERNAL, NULL, "%s: error %u", what, mysql_errno(m));
	}
	return OK; /* -1: no further result */
}

/* 0 when nothing was ever applied. */
static enum err read_version(MYSQL *m, int64_t *ret)
{
	*ret = 0;
	if (mysql_query(m, sql_rows[SQL_SCHEMA_VERSION].text) != 0)
		return mysql_errno(m) == ER_NO_SUCH_TABLE
			       ? OK
			       : fail(ERR_INTERNAL, NULL, "error %u", mysql_errno(m));
	MYSQL_RES *rows = mysql_store_result(m);
	MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
	if (row && row[0])
		*ret = strtoll(row[0], NULL, 10);
	mysql_free_result(rows);
	return OK;
}

static enum err record(MYSQL *m, int64_t version)
{
	long long values[2] = {version, clock_ms()};
	MYSQL_BIND bind[2] = {{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &values[0]},
		{.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &values[1]}};
	MYSQL_STMT *s = must(mysql_stmt_init(m));
	const char *text = sql_rows[SQL_MIGRATION_ADD].text;
	bool bad = mysql_stmt_prepare(s, text, strlen(text)) || mysql_stmt_bind_param(s, bind) ||
		   mysql_stmt_execute(s);
	(void)mysql_stmt_close(s);
	return bad ? fail(ERR_INTERNAL, NULL, "the migration could not be recorded") : OK;
}

static enum err apply_all(MYSQL *m, const struct text_file *files, unsigned *ret_applied)
{
	int64_t version;
	enum err e = read_version(m, &version);
	for (; !e && files->name; files++) {
		int64_t number = strtoll(files->name, NULL, 10);
		if (number <= version)
			continue;
		e = run_script(m, files->text, files->name);
		if (!e)
			e = record(m, number);
		*ret_applied += !e;
	}
	return e;
}

enum err db_migrate(const struct db_conf *c, const struct text_file *files, unsigned *ret_applied)
{
	MYSQL *m = must(mysql_init(NULL));
	const char *socket = c->socket && *c->socket ? c->socket : NULL;
	*ret_applied = 0;
	(void)mysql_optionsv(m, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	enum err e = OK;
	if (!mysql_real_connect(m, socket ? NULL : c->host, c->user, c->password, c->schema,
		    c->port, socket, CLIENT_MULTI_STATEMENTS)) {
		log_event(EV_DB_ERROR, LOG_NAME("at", "connect"), LOG_INT("code", mysql_errno(m)));
		e = fail(ERR_DB_DOWN, NULL, "no connection to the database, error %u",
			mysql_errno(m));
	}
	if (!e)
		e = apply_all(m, files, ret_applied);
	mysql_close(m);
	return e;
}
