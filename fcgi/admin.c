/*
 * Operator commands. They print to standard output; only the command that makes a token shows it.
 */
#include "admin.h"

#include "account.h"
#include "arena.h"
#include "audit.h"
#include "clock.h"
#include "db_migrate.h"
#include "bounds.h"
#include "log.h"
#include "node.h"
#include "seal.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADMIN_ARENA (64u << 20)
#define LIST_MAX    10000

struct admin {
	const struct conf *conf;
	const struct admin_options *options;
	struct arena *arena;
	char **args; /* what follows the command's own words */
};

static int complain(enum err e)
{
	const struct fault *f = fault_of(e);
	(void)fprintf(stderr, "compute-connector: %s %s%s%s\n", err_row(e)->text, f->field,
		f->field[0] ? ": " : "", f->detail);
	return 1;
}

/* -- schema ------------------------------------------------------------------------------------ */

int migrate_run(const struct conf *c)
{
	unsigned applied;
	bool own = c->db_admin_user[0] != 0;
	struct db_conf db = {.socket = c->db_socket,
		.host = c->db_host,
		.port = (unsigned)c->db_port,
		.user = own ? c->db_admin_user : c->db_user,
		.password = own ? c->db_admin_password : c->db_password,
		.schema = c->db_schema};
	enum err e = db_migrate(&db, migration_texts, &applied);
	if (e)
		return complain(e);
	(void)printf("%u migrations applied\n", applied);
	return 0;
}

/* -- accounts and tokens ----------------------------------------------------------------------- */

static enum err account_create_cmd(struct admin *a)
{
	const char *plan = a->options->plan ? a->options->plan : a->conf->default_plan, *token;
	struct id account;
	char id[ID_TEXT_SIZE];
	if (strcmp(plan, plan_name(plan_of(plan))) != 0)
		return fail(ERR_BAD_INPUT, "plan", "free or pro");
	enum err e = account_create(plan, a->arena, &account, &token);
	if (e)
		return e;
	id_text(id, "acc", account);
	(void)printf(a->options->json ? "{\"account\":\"%s\",\"token\":\"%s\"}\n"
				      : "account %s\ntoken %s\n",
		id, token);
	log_event(EV_ADMIN, LOG_NAME("command", "account.create"), LOG_ID("account", account));
	return OK;
}

static enum err account_list_cmd(struct admin *a)
{
	struct rows rows;
	char id[ID_TEXT_SIZE], at[TIME_TEXT_SIZE];
	enum err e = db_run(SQL_ACCOUNT_LIST, ARGS(A_INT(LIST_MAX)), a->arena, &rows);
	for (size_t i = 0; !e && i < rows.n; i++)
		(void)printf("%s\t%s\t%s\t%s\t%" PRId64 " keys\n",
			id_text(id, "acc", row_id(&rows, i, 0)), row_str(&rows, i, 1),
			row_str(&rows, i, 2), time_text(at, row_int(&rows, i, 3)),
			row_int(&rows, i, 4));
	return e;
}

static enum err read_account(const char *text, struct id *ret)
{
	return id_parse(text, "acc", ret)
		       ? OK
		       : fail(ERR_BAD_INPUT, "account", "acc_ and 26 characters");
}

struct plan_change {
	struct id account;
	const char *plan;
};

static enum err write_plan(struct db *tx, void *ctx)
{
	struct plan_change *x = ctx;
	struct id operator= {{0}};
	uint64_t changed;
	enum err e = audit_add(tx, x->account, operator, "account.plan", x->plan);
	return e ? e
		 : db_tx_change(tx, SQL_ACCOUNT_SET_PLAN, ARGS(A_STR(x->plan), A_ID(x->account)),
			   &changed);
}

static enum err account_plan_cmd(struct admin *a)
{
	struct plan_change x = {.plan = a->args[1]};
	struct rows rows;
	enum err e = read_account(a->args[0], &x.account);
	if (!e && strcmp(x.plan, plan_name(plan_of(x.plan))) != 0)
		e = fail(ERR_BAD_INPUT, "plan", "free or pro");
	if (!e)
		e = db_run(SQL_ACCOUNT_PLAN, ARGS(A_ID(x.account)), a->arena, &rows);
	if (!e && rows.n == 0)
		e = fail(ERR_NOT_FOUND, "account", "there is no such account");
	return e ? e : db_transaction(write_plan, &x);
}

static enum err token_create_cmd(struct admin *a)
{
	struct token_wish w = {
		.agent = a->options->agent, .name = "operator", .expires_at = ABSENT_INT};
	struct id id;
	struct rows rows;
	const char *token;
	char text[ID_TEXT_SIZE];
	enum err e = read_account(a->args[0], &w.account);
	if (!e)
		e = db_run(SQL_ACCOUNT_PLAN, ARGS(A_ID(w.account)), a->arena, &rows);
	if (!e && rows.n == 0)
		e = fail(ERR_NOT_FOUND, "account", "there is no such account");
	if (!e)
		e = token_create(&w, a->arena, &id, &token);
	if (e)
		return e;
	id_text(text, "key", id);
	(void)printf(a->options->json ? "{\"id\":\"%s\",\"token\":\"%s\"}\n" : "id %s\ntoken %s\n",
		text, token);
	return OK;
}

/* Prints the audit log and follows its chain of hashes. Rows older than the retention are gone, so
 * the first row that is left is the anchor. */
static enum err audit_cmd(struct admin *a)
{
	struct id account;
	struct rows rows;
	uint8_t hash[AUDIT_HASH_BYTES], before[AUDIT_HASH_BYTES] = {0};
	char at[TIME_TEXT_SIZE], who[ID_TEXT_SIZE];
	enum err e = read_account(a->args[0], &account);
	if (!e)
		e = db_run(SQL_AUDIT_LIST, ARGS(A_ID(account), A_INT(LIST_MAX)), a->arena, &rows);
	if (e)
		return e;
	for (size_t i = 0; i < rows.n; i++) {
		int64_t seq = row_int(&rows, i, 0), time = row_int(&rows, i, 4);
		const char *action = row_str(&rows, i, 2), *object = row_str(&rows, i, 3);
		audit_hash(before, (uint64_t)seq, time, action, object, hash);
		bool anchor = i == 0 && seq > 1,
		     whole = bytes_equal(hash, row_cell(&rows, i, 5)->p, sizeof hash);
		(void)printf("%" PRId64 "\t%s\t%s\t%s\t%s\t%s\n", seq, time_text(at, time),
			row_null(&rows, i, 1) ? "operator"
					      : id_text(who, "key", row_id(&rows, i, 1)),
			action, object,
			anchor  ? "anchor"
			: whole ? "ok"
				: "BROKEN");
		if (!anchor && !whole)
			e = fail(ERR_INTERNAL, NULL, "row %lld does not continue the chain",
				(long long)seq);
		memcpy(before, row_cell(&rows, i, 5)->p, sizeof before);
	}
	return e;
}

/* -- master keys ------------------------------------------------------------------------------- */

static enum err key_create_cmd(struct admin *a)
{
	uint32_t id;
	enum err e = keyring_create(a->conf->master_keys, &id);
	if (!e)
		(void)printf("%08" PRIx32 "\n", id);
	return e;
}

static enum err key_add_cmd(struct admin *a)
{
	uint32_t id;
	enum err e = keyring_add(a->conf->master_keys, &id);
	if (!e)
		(void)printf("%08" PRIx32 "\n", id);
	return e;
}

static enum err read_key_id(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long v = strtoul(text, &end, 16);
	*ret = (uint32_t)v;
	return strlen(text) == 8 && !*end ? OK : fail(ERR_BAD_INPUT, "id", "8 hex digits");
}

static enum err key_use_cmd(struct admin *a)
{
	uint32_t id;
	enum err e = read_key_id(a->args[0], &id);
	return e ? e : keyring_make_current(a->conf->master_keys, id);
}

static enum err key_status_cmd(struct admin *a)
{
	struct rows rows;
	enum err e = db_run(SQL_MASTER_KEYS_IN_USE, ARGS(), a->arena, &rows);
	if (!e)
		(void)printf("current %08" PRIx32 "\n", keyring_current(node()->keys));
	for (size_t i = 0; !e && i < rows.n; i++)
		(void)printf("%08" PRIx32 "\t%" PRId64 " data keys\t%s\n",
			(uint32_t)row_int(&rows, i, 0), row_int(&rows, i, 1),
			keyring_has(node()->keys, (uint32_t)row_int(&rows, i, 0)) ? "present"
										  : "MISSING");
	return e;
}

/* One row: opened under its old master key, wrapped again under the current one. Any stop in
 * between leaves the old row, which still opens. */
static enum err rewrap_one(struct admin *a, const struct rows *rows, size_t i)
{
	struct data_key d;
	struct blob wrapped;
	uint64_t changed;
	const struct cell *old = row_cell(rows, i, 2);
	struct id id = row_id(rows, i, 0);
	enum err e = data_key_open(node()->keys, id, row_id(rows, i, 1),
		(struct blob){(const uint8_t *)old->p, old->n}, &d);
	if (e)
		return e;
	e = data_key_wrap(node()->keys, &d, a->arena, &wrapped);
	data_key_done(&d);
	return e ? e
		 : db_change(SQL_DATA_KEY_REWRAP,
			   ARGS(A_INT(keyring_current(node()->keys)), A_BYTES(wrapped.p, wrapped.n),
				   A_ID(id), A_INT(row_int(rows, i, 3))),
			   &changed);
}

static enum err key_rewrap_cmd(struct admin *a)
{
	struct rows rows;
	uint64_t done = 0;
	for (;;) {
		enum err e = db_run(SQL_DATA_KEYS_NOT_UNDER,
			ARGS(A_INT(keyring_current(node()->keys))), a->arena, &rows);
		for (size_t i = 0; !e && i < rows.n; i++, done++)
			e = rewrap_one(a, &rows, i);
		if (e)
			return e;
		if (rows.n == 0)
			break;
	}
	(void)printf("%" PRIu64 " data keys rewrapped\n", done);
	return OK;
}

static enum err key_remove_cmd(struct admin *a)
{
	uint32_t id;
	struct rows rows;
	enum err e = read_key_id(a->args[0], &id);
	if (!e)
		e = db_run(SQL_MASTER_KEYS_IN_USE, ARGS(), a->arena, &rows);
	for (size_t i = 0; !e && i < rows.n; i++)
		if ((uint32_t)row_int(&rows, i, 0) == id)
			e = fail(ERR_BAD_INPUT, "id",
				"%lld data keys are wrapped under it; rewrap first",
				(long long)row_int(&rows, i, 1));
	return e ? e : keyring_remove(a->conf->master_keys, id);
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct command {
	const char *noun, *verb;
	int args;
	bool needs_database;
	enum err (*run)(struct admin *a);
	const char *help;
} commands[] = {
	{"account", "create", 0, true, account_create_cmd, "[--plan free|pro] [--json]"},
	{"account", "list", 0, true, account_list_cmd, ""},
	{"account", "plan", 2, true, account_plan_cmd, "ACCOUNT free|pro"},
	{"token", "create", 1, true, token_create_cmd, "ACCOUNT [--agent] [--json]"},
	{"audit", "show", 1, true, audit_cmd, "ACCOUNT"},
	{"master-key", "create", 0, false, key_create_cmd, "(makes the file)"},
	{"master-key", "add", 0, false, key_add_cmd, ""},
	{"master-key", "use", 1, false, key_use_cmd, "ID"},
	{"master-key", "status", 0, true, key_status_cmd, ""},
	{"master-key", "rewrap", 0, true, key_rewrap_cmd, ""},
	{"master-key", "remove", 1, true, key_remove_cmd, "ID"},
};

static int usage(void)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		(void)fprintf(stderr, "compute-connector admin %s %s %s\n", commands[i].noun,
			commands[i].verb, commands[i].help);
	return 2;
}

static int count(char **words)
{
	int n = 0;
	while (words[n])
		n++;
	return n;
}

int admin_run(const struct conf *conf, char **words, const struct admin_options *options)
{
	int n = count(words);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		const struct command *c = &commands[i];
		if (n != 2 + c->args || strcmp(words[0], c->noun) != 0 ||
			strcmp(words[1], c->verb) != 0)
			continue;
		struct admin a = {conf, options, arena_new(ADMIN_ARENA), words + 2};
		enum err e = c->needs_database ? node_open(conf) : OK;
		if (!e)
			e = c->run(&a);
		if (c->needs_database)
			node_close();
		arena_free(a.arena);
		return e ? complain(e) : 0;
	}
	return usage();
}
