/*
 * Accounts and our own tokens: POST /api/key, /api/keys, DELETE /api/account, usage_and_upgrade.
 */
#include "audit.h"
#include "clock.h"
#include "db.h"
#include "bounds.h"
#include "job.h"
#include "node.h"
#include "token.h"
#include "vault.h"
#include "account.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS     (24 * 60 * 60 * 1000LL)
#define TOKENS_MAX 100 /* living tokens of one account */

static const char *const plan_names[] = {"free", "pro"};

enum plan plan_of(const char *name)
{
	return strcmp(name, plan_names[PLAN_PRO]) == 0 ? PLAN_PRO : PLAN_FREE;
}

const char *plan_name(enum plan p)
{
	return plan_names[p];
}

int64_t plan_limit(const struct conf *c, const struct caller *who)
{
	if (who->role == ROLE_ANYONE)
		return c->anonymous_calls;
	return who->plan == PLAN_PRO ? c->pro_calls : c->free_calls;
}

bool over_limit(const struct rows *counted, int64_t limit)
{
	return counted->affected == 0 || limit < 1;
}

int64_t day_end_ms(int64_t now)
{
	return (now / DAY_MS + 1) * DAY_MS;
}

/* -- making tokens ----------------------------------------------------------------------------- */

struct token_row {
	struct id id, account, created_by; /* null: the operator, or the account's first token */
	const char *kind, *name;
	int64_t expires_at; /* ABSENT_INT: never */
};

static enum err insert_token(struct db *tx, const struct token_row *t, const struct secret *token)
{
	uint8_t hash[TOKEN_HASH_BYTES], public_key[RESULT_PUBLIC_BYTES];
	char last4[5];
	bool duplicate;
	token_hash(token, hash);
	token_last4(token, last4);
	result_public(token, public_key);
	struct arg by = id_is_null(t->created_by) ? A_NULL : A_ID(t->created_by);
	return db_tx_insert(tx, SQL_TOKEN_CREATE,
		ARGS(A_ID(t->id), A_ID(t->account), A_STR(t->kind), A_BYTES(hash, sizeof hash),
			A_STR(last4), A_STR(t->name), A_BYTES(public_key, sizeof public_key), by,
			A_INT(clock_ms()),
			t->expires_at == ABSENT_INT ? A_NULL : A_INT(t->expires_at)),
		&duplicate);
}

static const char *token_text(const struct secret *t, struct arena *a)
{
	char *s = arena_take(a, TOKEN_CHARS + 1);
	token_show(t, s);
	return s;
}

struct new_account {
	const char *plan;
	struct fresh_key key;
	struct token_row row;
	struct secret token;
};

static enum err insert_account(struct db *tx, void *ctx)
{
	struct new_account *n = ctx;
	bool duplicate;
	int64_t now = clock_ms();
	enum err e = db_tx_insert(tx, SQL_ACCOUNT_CREATE,
		ARGS(A_ID(n->row.account), A_STR(n->plan), A_INT(now)), &duplicate);
	if (!e)
		e = db_tx_insert(tx, SQL_DATA_KEY_CREATE,
			ARGS(A_ID(n->key.key.id), A_ID(n->row.account),
				A_INT(keyring_current(node()->keys)),
				A_BYTES(n->key.wrapped.p, n->key.wrapped.n), A_INT(now)),
			&duplicate);
	if (!e)
		e = insert_token(tx, &n->row, &n->token);
	return e ? e : audit_add(tx, n->row.account, n->row.id, "account.create", n->plan);
}

enum err account_create(
	const char *plan, struct arena *a, struct id *ret_account, const char **ret_token)
{
	struct new_account n = {.plan = plan,
		.row = {.id = id_new(),
			.account = id_new(),
			.kind = "owner",
			.name = "first",
			.expires_at = ABSENT_INT}};
	enum err e = vault_fresh_key(n.row.account, a, &n.key);
	if (e)
		return e;
	n.token = token_new();
	e = db_transaction(insert_account, &n);
	*ret_account = n.row.account;
	*ret_token = token_text(&n.token, a);
	secret_done(&n.token);
	data_key_done(&n.key.key);
	return e;
}

/* -- POST /api/key ----------------------------------------------------------------------------- */

struct created_out {
	const char *account, *key, *kind, *plan, *note;
};

/* clang-format off */
static const struct field created_fields[] = {
	STR_FIELD(struct created_out, account, REQUIRED, 0, 0, "The account."),
	STR_FIELD(struct created_out, key, REQUIRED, 0, 0, "The API key. It is shown this once; keep it."),
	STR_FIELD(struct created_out, kind, REQUIRED, 0, 0, "owner or agent."),
	STR_FIELD(struct created_out, plan, REQUIRED, 0, 0, "The plan."),
	STR_FIELD(struct created_out, note, REQUIRED, 0, 0, "How to use it."),
};
static const struct shape created_shape = SHAPE(struct created_out, created_fields, "A new account.");
/* clang-format on */

static enum err count_new_account(struct req *r)
{
	struct rows done;
	char day[DAY_SIZE];
	int64_t now = clock_ms(), limit = r->conf->anonymous_accounts;
	if (r->caller.role != ROLE_ANYONE)
		return OK;
	enum err e = db_run(SQL_ADDRESS_COUNT,
		ARGS(A_BYTES(r->caller.address, 16), A_STR(day_text(day, now)), A_STR("account"),
			A_INT(limit)),
		NULL, &done);
	if (e || !over_limit(&done, limit))
		return e;
	e = fail(ERR_RATE_LIMITED, NULL, "%d new accounts a day from one address", (int)limit);
	fault_retry_after((int)((day_end_ms(now) - now) / 1000));
	return e;
}

static enum err create_run(struct req *r, const void *in, void *vout)
{
	struct created_out *out = vout;
	struct id account;
	char id[ID_TEXT_SIZE];
	(void)in;
	enum err e = count_new_account(r);
	if (!e)
		e = account_create(r->conf->default_plan, r->arena, &account, &out->key);
	if (e)
		return e;
	out->account = arena_str(r->arena, id_text(id, "acc", account));
	out->kind = "owner";
	out->plan = r->conf->default_plan;
	out->note = "Send it as Authorization: Bearer KEY. Make agent keys with POST /api/keys.";
	return OK;
}

const struct tool tool_create_account = {
	.name = "create_account",
	.title = "Make an account",
	.doc = "Makes an account and its first owner key. No sign-up.",
	.route = "POST /api/key",
	.in = &no_arguments,
	.out = &created_shape,
	.status = 201,
	.flags = TOOL_REST_ONLY,
	.errors = (const enum err[]){ERR_RATE_LIMITED, ERR_SEALED, OK},
	.run = create_run,
};

/* -- /api/keys --------------------------------------------------------------------------------- */

struct token_in {
	const char *name;
	int kind;
	int64_t expires_in_s;
};
struct token_out {
	const char *id, *key, *kind, *name, *ends_with;
	int64_t created_at, expires_at, used_at;
	enum tri is_this;
};
struct tokens_out {
	struct list keys;
};
static const char *const kinds[] = {"owner", "agent", NULL};

static bool is_token_name(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* clang-format off */
static const struct field token_in_fields[] = {
	STR_FIELD(struct token_in, name, 0, 1, KEY_NAME_CHARS_MAX, "A name to tell keys apart.", .valid = is_token_name),
	ENUM_FIELD(struct token_in, kind, 0, kinds, "agent keys run jobs; owner keys also manage keys. agent unless said otherwise."),
	INT_FIELD(struct token_in, expires_in_s, 0, 60, 315360000, "Seconds until it expires; never unless given."),
};
static const struct shape token_in_shape = SHAPE(struct token_in, token_in_fields, "A new API key.");
static const struct field token_fields[] = {
	STR_FIELD(struct token_out, id, REQUIRED, 0, 0, "Its id, for DELETE /api/keys/{id}."),
	STR_FIELD(struct token_out, key, 0, 0, 0, "The key itself, shown this once."),
	STR_FIELD(struct token_out, kind, REQUIRED, 0, 0, "owner or agent."),
	STR_FIELD(struct token_out, name, REQUIRED, 0, 0, "Its name."),
	STR_FIELD(struct token_out, ends_with, REQUIRED, 0, 0, "Its last four characters."),
	TIME_FIELD(struct token_out, created_at, REQUIRED, "When it was made."),
	TIME_FIELD(struct token_out, expires_at, 0, "When it expires."),
	TIME_FIELD(struct token_out, used_at, 0, "Last use, to the hour."),
	BOOL_FIELD(struct token_out, is_this, REQUIRED, "Whether this request used it."),
};
static const struct shape token_shape = SHAPE(struct token_out, token_fields, "An API key.");
static const struct field tokens_fields[] = {
	LIST_FIELD(struct tokens_out, keys, REQUIRED, &token_shape, 0, 0, "Living keys, oldest first."),
};
static const struct shape tokens_shape = SHAPE(struct tokens_out, tokens_fields, "The account's API keys.");
/* clang-format on */

static const char *token_id_text(struct arena *a, struct id id)
{
	char text[ID_TEXT_SIZE];
	return arena_str(a, id_text(text, "key", id));
}

struct new_token {
	struct token_row row;
	struct secret token;
	struct arena *arena;
};

static enum err insert_new_token(struct db *tx, void *ctx)
{
	struct new_token *n = ctx;
	struct rows living;
	/* First, because it locks the account: the count below can not be overtaken. */
	enum err e = audit_add(tx, n->row.account, n->row.created_by, "token.create", n->row.kind);
	if (!e)
		e = db_tx_run(tx, SQL_TOKEN_LIST, ARGS(A_ID(n->row.account)), n->arena, &living);
	if (!e && living.n >= TOKENS_MAX)
		return fail(
			ERR_BAD_INPUT, NULL, "an account has at most %d living keys", TOKENS_MAX);
	return e ? e : insert_token(tx, &n->row, &n->token);
}

enum err token_create(
	const struct token_wish *w, struct arena *a, struct id *ret_id, const char **ret_token)
{
	struct new_token n = {.arena = a,
		.row = {.id = id_new(),
			.account = w->account,
			.created_by = w->created_by,
			.kind = w->agent ? "agent" : "owner",
			.name = w->name,
			.expires_at = w->expires_at}};
	n.token = token_new();
	enum err e = db_transaction(insert_new_token, &n);
	*ret_id = n.row.id;
	*ret_token = token_text(&n.token, a);
	secret_done(&n.token);
	return e;
}

static enum err token_create_run(struct req *r, const void *vin, void *vout)
{
	const struct token_in *in = vin;
	struct token_out *out = vout;
	struct id id;
	int64_t now = clock_ms();
	struct token_wish w = {.account = r->caller.account,
		.created_by = r->caller.token_id,
		.agent = in->kind != 0,
		.name = in->name ? in->name : "unnamed",
		.expires_at = in->expires_in_s == ABSENT_INT ? ABSENT_INT
							     : now + in->expires_in_s * 1000};
	enum err e = token_create(&w, r->arena, &id, &out->key);
	if (e)
		return e;
	out->id = token_id_text(r->arena, id);
	out->kind = kinds[w.agent ? 1 : 0];
	out->name = w.name;
	out->ends_with = out->key + TOKEN_CHARS - 4;
	out->created_at = now;
	out->expires_at = w.expires_at;
	out->is_this = NO;
	return OK;
}

const struct tool tool_create_token = {
	.name = "create_key",
	.title = "Make an API key",
	.doc = "Makes another API key of the account. Agent keys can run and read jobs but can not "
	       "touch keys.",
	.route = "POST /api/keys",
	.in = &token_in_shape,
	.out = &token_shape,
	.role = ROLE_OWNER,
	.status = 201,
	.flags = TOOL_REST_ONLY,
	.errors = (const enum err[]){ERR_BAD_INPUT, OK},
	.run = token_create_run,
};

static enum err token_list_run(struct req *r, const void *in, void *vout)
{
	struct tokens_out *out = vout;
	struct rows rows;
	(void)in;
	enum err e = db_run(SQL_TOKEN_LIST, ARGS(A_ID(r->caller.account)), r->arena, &rows);
	if (e)
		return e;
	struct token_out *list = ARENA_LIST(r->arena, rows.n, struct token_out);
	for (size_t i = 0; i < rows.n; i++)
		list[i] = (struct token_out){.id = token_id_text(r->arena, row_id(&rows, i, 0)),
			.kind = row_str(&rows, i, 1),
			.name = row_str(&rows, i, 2),
			.ends_with = row_str(&rows, i, 3),
			.created_at = row_int(&rows, i, 4),
			.expires_at = row_int(&rows, i, 5),
			.used_at = row_int(&rows, i, 6),
			.is_this = id_equal(row_id(&rows, i, 0), r->caller.token_id) ? YES : NO};
	out->keys = (struct list){rows.n, list};
	return OK;
}

const struct tool tool_list_tokens = {
	.name = "list_keys",
	.title = "List API keys",
	.doc = "The account's living API keys, without the keys themselves.",
	.route = "GET /api/keys",
	.in = &no_arguments,
	.out = &tokens_shape,
	.role = ROLE_OWNER,
	.flags = TOOL_REST_ONLY | TOOL_READS | TOOL_REPEATABLE,
	.errors = (const enum err[]){OK},
	.run = token_list_run,
};

struct revoke_in {
	enum tri keep_jobs;
};
struct revoke_out {
	const char *id;
	int64_t jobs_cancelled;
};

/* clang-format off */
static const struct field revoke_fields[] = {
	BOOL_FIELD(struct revoke_in, keep_jobs, 0, "Let its running jobs go on; their results are deleted all the same."),
};
static const struct shape revoke_shape = SHAPE(struct revoke_in, revoke_fields, "How to revoke.");
static const struct field revoke_out_fields[] = {
	STR_FIELD(struct revoke_out, id, REQUIRED, 0, 0, "The revoked key."),
	INT_FIELD(struct revoke_out, jobs_cancelled, REQUIRED, 0, 0, "Running jobs that were cancelled with it."),
};
static const struct shape revoke_out_shape = SHAPE(struct revoke_out, revoke_out_fields, "What was done.");
/* clang-format on */

struct revoking {
	struct req *r;
	struct id token;
	bool keep_jobs;
	uint64_t cancelled;
};

static enum err revoke_one(struct db *tx, struct revoking *x, const char *kind)
{
	struct id account = x->r->caller.account;
	int64_t now = clock_ms();
	uint64_t changed;
	enum err e = strcmp(kind, "agent") == 0
			     ? db_tx_change(tx, SQL_TOKEN_REVOKE_AGENT,
				       ARGS(A_INT(now), A_ID(x->token), A_ID(account)), &changed)
			     : db_tx_change(tx, SQL_TOKEN_REVOKE_OWNER,
				       ARGS(A_INT(now), A_ID(x->token), A_ID(account),
					       A_ID(account), A_ID(x->token), A_INT(now)),
				       &changed);
	if (!e && changed == 0)
		return fail(ERR_LAST_OWNER_TOKEN, "id", "it is the only living owner key");
	return e;
}

static enum err revoke_rows(struct db *tx, void *ctx)
{
	struct revoking *x = ctx;
	struct id account = x->r->caller.account;
	struct rows row;
	uint64_t changed;
	char name[ID_TEXT_SIZE];
	enum err e = audit_add(
		tx, account, x->r->caller.token_id, "token.revoke", id_text(name, "key", x->token));
	if (!e)
		e = db_tx_run(
			tx, SQL_TOKEN_KIND, ARGS(A_ID(x->token), A_ID(account)), x->r->arena, &row);
	if (e)
		return e;
	if (row.n == 0)
		return fail(ERR_NOT_FOUND, "id", "there is no living key of this id");
	e = revoke_one(tx, x, row_str(&row, 0, 0));
	if (!e)
		e = db_tx_change(tx, SQL_TOKEN_RESULTS_DELETE, ARGS(A_ID(x->token)), &changed);
	if (!e && !x->keep_jobs)
		e = db_tx_change(tx, SQL_TOKEN_JOBS_CANCEL,
			ARGS(A_INT(clock_ms()), A_ID(x->token), A_ID(account)), &x->cancelled);
	return e;
}

static enum err revoke_run(struct req *r, const void *vin, void *vout)
{
	const struct revoke_in *in = vin;
	struct revoke_out *out = vout;
	struct revoking x = {.r = r, .keep_jobs = in->keep_jobs == YES};
	if (!r->path_arg || !id_parse(r->path_arg, "key", &x.token))
		return fail(ERR_NOT_FOUND, "id", "it is no key id");
	enum err e = db_transaction(revoke_rows, &x);
	if (!e && x.cancelled)
		jobs_kill_cancelled(r->caller.account);
	*out = (struct revoke_out){token_id_text(r->arena, x.token), (int64_t)x.cancelled};
	return e;
}

const struct tool tool_revoke_token = {
	.name = "revoke_key",
	.title = "Revoke an API key",
	.doc = "Revokes a key at once, deletes its results and cancels its running jobs unless "
	       "keep_jobs. The last "
	       "owner key can not be revoked.",
	.route = "DELETE /api/keys/{id}",
	.in = &revoke_shape,
	.out = &revoke_out_shape,
	.role = ROLE_OWNER,
	.flags = TOOL_REST_ONLY | TOOL_DESTROYS,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_NOT_FOUND, ERR_LAST_OWNER_TOKEN, OK},
	.run = revoke_run,
};

/* -- DELETE /api/account ----------------------------------------------------------------------- */

struct gone_out {
	const char *account, *note;
};

/* clang-format off */
static const struct field gone_fields[] = {
	STR_FIELD(struct gone_out, account, REQUIRED, 0, 0, "The account."),
	STR_FIELD(struct gone_out, note, REQUIRED, 0, 0, "What happens now."),
};
static const struct shape gone_shape = SHAPE(struct gone_out, gone_fields, "A deleted account.");
/* clang-format on */

static enum err delete_rows(struct db *tx, void *ctx)
{
	struct req *r = ctx;
	struct id account = r->caller.account;
	uint64_t changed;
	enum err e = audit_add(tx, account, r->caller.token_id, "account.delete", "");
	if (!e)
		e = db_tx_change(tx, SQL_ACCOUNT_DELETING, ARGS(A_ID(account)), &changed);
	if (!e)
		e = db_tx_change(tx, SQL_ACCOUNT_JOBS_CANCEL,
			ARGS(A_INT(clock_ms()), A_ID(account)), &changed);
	return e ? e : db_tx_change(tx, SQL_ACCOUNT_RESULTS_DELETE, ARGS(A_ID(account)), &changed);
}

static enum err account_delete_run(struct req *r, const void *in, void *vout)
{
	struct gone_out *out = vout;
	char id[ID_TEXT_SIZE];
	(void)in;
	enum err e = db_transaction(delete_rows, r);
	if (!e)
		jobs_kill_cancelled(r->caller.account);
	out->account = arena_str(r->arena, id_text(id, "acc", r->caller.account));
	out->note = "Its keys no longer work. Running jobs are being stopped; once every sandbox "
		    "is proven gone the "
		    "account's data key and all its rows are erased.";
	return e;
}

const struct tool tool_delete_account = {
	.name = "delete_account",
	.title = "Delete the account",
	.doc = "Deletes the account: its API keys stop working at once, its jobs are cancelled, "
	       "its sandboxes stopped, "
	       "then its data key and all its rows are erased.",
	.route = "DELETE /api/account",
	.in = &no_arguments,
	.out = &gone_shape,
	.role = ROLE_OWNER,
	.flags = TOOL_REST_ONLY | TOOL_DESTROYS,
	.errors = (const enum err[]){OK},
	.run = account_delete_run,
};
