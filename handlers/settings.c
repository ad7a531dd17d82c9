/*
 * GET and PATCH /api/account: how an account chooses the key of a job that names none. The choice
 * itself is made in pick.c.
 */
#include "account.h"
#include "audit.h"
#include "bounds.h"
#include "db.h"
#include "pick.h"

#include <stdio.h>
#include <string.h>

#define ORDER_MAX 200 /* as many keys as an account can have */

struct settings_out {
	const char *account, *plan, *strategy, *default_key;
	enum tri fallback;
	struct list order;
	int64_t created_at;
};
struct settings_in {
	int strategy;
	enum tri fallback;
	struct list order;
	const char *default_key;
};

/* clang-format off */
#define STRATEGY_DOC "priority: the default key first, then the others in their order. round-robin: keys take turns, and there is no first one."
#define FALLBACK_DOC "Whether a job that names no provider and no key goes on to the next key when no sandbox can be made with one."
static const struct field settings_out_fields[] = {
	STR_FIELD(struct settings_out, account, REQUIRED, 0, 0, "The account."),
	STR_FIELD(struct settings_out, plan, REQUIRED, 0, 0, "Its plan."),
	TIME_FIELD(struct settings_out, created_at, REQUIRED, "When it was made."),
	STR_FIELD(struct settings_out, strategy, REQUIRED, 0, 0, STRATEGY_DOC, .example = "\"priority\""),
	BOOL_FIELD(struct settings_out, fallback, REQUIRED, FALLBACK_DOC),
	STR_FIELD(struct settings_out, default_key, REQUIRED | NULLABLE, 0, 0, "The saved key that is tried first with strategy priority; null: none, the order decides alone."),
	LIST_FIELD(struct settings_out, order, REQUIRED, NULL, 0, 0, "All saved keys by name, in the account's order."),
};
static const struct shape settings_out_shape = SHAPE(struct settings_out, settings_out_fields, "How the account chooses keys.");
static const struct field settings_fields[] = {
	ENUM_FIELD(struct settings_in, strategy, 0, strategies, STRATEGY_DOC),
	BOOL_FIELD(struct settings_in, fallback, 0, FALLBACK_DOC),
	LIST_FIELD(struct settings_in, order, 0, NULL, 1, ORDER_MAX, "Saved keys by name, the first one first. Those that are not named follow in their present order.", .value_max = KEY_NAME_CHARS_MAX * 4, .example = "[\"tunnel\"]"),
	STR_FIELD(struct settings_in, default_key, 0, 0, KEY_NAME_CHARS_MAX, "The saved key that is tried first with strategy priority; an empty text for none.", .example = "\"tunnel\""),
};
static const struct shape settings_shape = SHAPE(struct settings_in, settings_fields, "What to change; the rest stays as it is.");
/* clang-format on */

/* -- GET --------------------------------------------------------------------------------------- */

/* Row numbers of KEYS_OF_ACCOUNT by place: only the first row, the default, may be out of it. */
static void in_order(const struct rows *keys, size_t *ret)
{
	for (size_t i = 0; i < keys->n; i++) {
		size_t at = i;
		int64_t place = row_int(keys, i, KEY_COL_PLACE);
		for (; at > 0 && row_int(keys, ret[at - 1], KEY_COL_PLACE) > place; at--)
			ret[at] = ret[at - 1];
		ret[at] = i;
	}
}

static void view_order(struct arena *a, const struct rows *keys, struct settings_out *out)
{
	size_t *order = ARENA_LIST(a, keys->n, size_t);
	const char **names = ARENA_LIST(a, keys->n, const char *);
	in_order(keys, order);
	for (size_t i = 0; i < keys->n; i++) {
		names[i] = row_str(keys, order[i], KEY_COL_NAME);
		if (row_int(keys, i, KEY_COL_DEFAULT) == 1)
			out->default_key = row_str(keys, i, KEY_COL_NAME);
	}
	out->order = (struct list){keys->n, names};
}

static enum err settings_show(struct req *r, struct settings_out *out)
{
	struct id account = r->caller.account;
	struct rows row, keys;
	char id[ID_TEXT_SIZE];
	enum err e = db_run(SQL_ACCOUNT_ROUTING, ARGS(A_ID(account)), r->arena, &row);
	if (!e)
		e = db_run(SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(account)), r->arena, &keys);
	if (e)
		return e;
	if (row.n == 0)
		return fail(ERR_TOKEN_INVALID, NULL, "the account is gone");
	out->account = arena_str(r->arena, id_text(id, "acc", account));
	out->plan = row_str(&row, 0, 0);
	out->created_at = row_int(&row, 0, 1);
	out->strategy = row_str(&row, 0, 2);
	out->fallback = row_int(&row, 0, 3) ? YES : NO;
	view_order(r->arena, &keys, out);
	return OK;
}

static enum err get_run(struct req *r, const void *in, void *out)
{
	(void)in;
	return settings_show(r, out);
}

const struct tool tool_get_account = {
	.name = "get_account",
	.title = "Show the account",
	.doc = "The account's plan, and how it chooses the key of a job that names none: strategy, "
	       "fallback, default key and order.",
	.route = "GET /api/account",
	.in = &no_arguments,
	.out = &settings_out_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_REST_ONLY | TOOL_READS | TOOL_REPEATABLE,
	.errors = (const enum err[]){OK},
	.run = get_run,
};

/* -- PATCH ------------------------------------------------------------------------------------- */

struct change {
	struct req *r;
	const struct settings_in *in;
	struct rows keys;
	size_t *order; /* row numbers of the keys in their new order */
};

static size_t row_of(const struct rows *keys, const char *name)
{
	size_t i = 0;
	while (i < keys->n && strcmp(row_str(keys, i, KEY_COL_NAME), name) != 0)
		i++;
	return i;
}

/* The named keys first, then the others as they were. */
static enum err new_order(struct change *x)
{
	const char *const *names = x->in->order.items;
	size_t *old = ARENA_LIST(x->r->arena, x->keys.n, size_t), n = 0;
	bool *taken = ARENA_LIST(x->r->arena, x->keys.n, bool);
	char field[32];
	x->order = ARENA_LIST(x->r->arena, x->keys.n, size_t);
	for (size_t i = 0; i < x->in->order.n; i++) {
		size_t at = row_of(&x->keys, names[i]);
		(void)snprintf(field, sizeof field, "order[%zu]", i);
		if (at == x->keys.n)
			return fail(ERR_KEY_NOT_FOUND, field, "no saved key has this name");
		if (taken[at])
			return fail(ERR_BAD_INPUT, field, "names a key for the second time");
		taken[at] = true;
		x->order[n++] = at;
	}
	in_order(&x->keys, old);
	for (size_t i = 0; i < x->keys.n; i++)
		if (!taken[old[i]])
			x->order[n++] = old[i];
	return OK;
}

static enum err write_order(struct db *tx, struct change *x)
{
	uint64_t changed;
	enum err e = new_order(x);
	for (size_t i = 0; !e && i < x->keys.n; i++)
		if (row_int(&x->keys, x->order[i], KEY_COL_PLACE) != (int64_t)i)
			e = db_tx_change(tx, SQL_KEY_PLACE,
				ARGS(A_INT((int64_t)i), A_ID(x->r->caller.account),
					A_STR(row_str(&x->keys, x->order[i], KEY_COL_NAME))),
				&changed);
	return e;
}

static enum err write_default(struct db *tx, struct change *x)
{
	struct id account = x->r->caller.account;
	const char *name = x->in->default_key;
	uint64_t changed;
	if (*name && row_of(&x->keys, name) == x->keys.n)
		return fail(ERR_KEY_NOT_FOUND, "default_key", "no saved key has this name");
	enum err e = db_tx_change(tx, SQL_KEYS_CLEAR_DEFAULT, ARGS(A_ID(account)), &changed);
	if (e || !*name)
		return e;
	return db_tx_change(tx, SQL_KEY_SET_DEFAULT, ARGS(A_ID(account), A_STR(name)), &changed);
}

static enum err write_settings(struct db *tx, void *ctx)
{
	struct change *x = ctx;
	const struct settings_in *in = x->in;
	struct id account = x->r->caller.account;
	uint64_t changed;
	/* First, because it locks the account: no key is saved in the meantime. */
	enum err e = audit_add(tx, account, x->r->caller.token_id, "account.change", "routing");
	if (!e)
		e = db_tx_change(tx, SQL_ACCOUNT_SET_ROUTING,
			ARGS(A_STR(in->strategy < 0 ? NULL : strategies[in->strategy]),
				in->fallback == ABSENT_BOOL ? A_NULL : A_INT(in->fallback),
				A_ID(account)),
			&changed);
	if (!e)
		e = db_tx_run(tx, SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(account)), x->r->arena, &x->keys);
	if (!e && in->order.items)
		e = write_order(tx, x);
	if (!e && in->default_key)
		e = write_default(tx, x);
	return e;
}

static enum err change_run(struct req *r, const void *in, void *out)
{
	struct change x = {.r = r, .in = in};
	enum err e = db_transaction(write_settings, &x);
	return e ? e : settings_show(r, out);
}

const struct tool tool_change_account = {
	.name = "change_account",
	.title = "Change the account",
	.doc = "Changes how the account chooses the key of a job that names none; what is not "
	       "given "
	       "stays. Gives the settings as they are then. Owner key only.",
	.route = "PATCH /api/account",
	.in = &settings_shape,
	.out = &settings_out_shape,
	.role = ROLE_OWNER,
	.flags = TOOL_REST_ONLY | TOOL_REPEATABLE,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_KEY_NOT_FOUND, OK},
	.run = change_run,
};
