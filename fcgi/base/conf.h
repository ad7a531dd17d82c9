/*
 * Settings: one table of rows (conf.c), read from an ini file with libinih.
 *
 * The table names section, key, kind, default, bounds and what it is for; `check-config`, the
 * documented example (print settings) and the reader are all computed from it. An unknown key, a
 * value out of bounds and an unreadable file are errors that name file, line and bound.
 */
#pragma once
#include "err.h"

#include <stdbool.h>
#include <stdint.h>

struct plan_conf {
	const char *name; /* "free", "pro" */
	int64_t calls_a_day;
	bool runs_jobs; /* false: watch-only */
};

struct conf {
	/* [server] */
	const char *public_url;   /* https://host[:port], no trailing slash */
	const char *socket;       /* unix socket for nginx; "" = inherited */
	const char *socket_group; /* "" = own group */
	int64_t workers, threads, queue, runnable, drain_s;
	const char *origins;      /* allowed browser origins besides our own, comma-separated */
	const char *default_plan; /* plan of accounts made by POST /api/key */
	const char *ca_hint;      /* path of a private CA, shown in connect texts; "" = public CA */
	/* [database] */
	const char *db_socket, *db_host, *db_user, *db_password, *db_schema, *db_ca;
	int64_t db_port, db_connections;
	/* the account for migrate (needs DDL rights); "" = the one above */
	const char *db_admin_user, *db_admin_password;
	/* [keys] */
	const char *master_keys; /* path of the 0600 key file */
	/* [outbound] */
	const char *ca_file, *ca_extra;
	const char *allowed_origins; /* comma-separated: http://127.0.0.1:PORT, unix:/path */
	const char *provider_urls;   /* name=https://..., ... */
	/* [plans] */
	int64_t free_calls, pro_calls, anonymous_calls, anonymous_accounts;
	/* [upgrade] */
	const char *upgrade_monthly_url, *upgrade_monthly_price;
	const char *upgrade_yearly_url, *upgrade_yearly_price;
	/* [keeper] */
	int64_t keeper_pause_ms, sweep_s, retention_days;
};

/* Reads the file (NULL: defaults only). Strings live until the process ends. Prints the reason to
 * standard error and returns false when something is wrong. */
bool conf_read(const char *path, struct conf *ret);

/* Writes the commented example of every setting with its default to standard output. */
void conf_print_example(void);
