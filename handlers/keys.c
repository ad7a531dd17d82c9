/* save_provider_key and delete_provider_key. */
#include "audit.h"
#include "clock.h"
#include "db.h"
#include "bounds.h"
#include "health.h"
#include "job.h"
#include "node.h"
#include "rates.h"
#include "tool.h"
#include "vault.h"

#include <stdio.h>
#include <string.h>

#define SAVE_TRIES 5
#define KEYS_MAX   200 /* of one account: as many as KEYS_OF_ACCOUNT gives */

/* -- save_provider_key ------------------------------------------------------------------------- */

struct save_in {
	const char *provider, *name, *team_id, *project_id, *api_url, *bridge_url;
	struct secret token;
	enum tri make_default, skip_check;
};

struct save_out {
	const char *name, *provider, *fingerprint;
	int64_t version;
	enum tri is_default, checked;
};

/* A blank at an end would look like another key's name, to people and to the database. */
static bool is_key_name(const char *s)
{
	if (*s == ' ' || s[strlen(s) - 1] == ' ')
		return false;
	for (const char *c = s; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return true;
}

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s < 0x21 || *s > 0x7e)
			return false;
	return true;
}

/* clang-format off */
static const struct field save_fields[] = {
	STR_FIELD(struct save_in, provider, REQUIRED, 1, 32, "One of list_providers.", .example = "\"tunnel\""),
	SECRET_FIELD(struct save_in, token, REQUIRED, 1, TOKEN_BYTES_MAX, "The provider's key. It is sealed and never returned."),
	STR_FIELD(struct save_in, name, 0, 1, KEY_NAME_CHARS_MAX, "Your name for it; the provider's name unless said otherwise. Saving the same name again replaces the key.", .valid = is_key_name),
	STR_FIELD(struct save_in, team_id, 0, 1, 200, "Vercel: the team.", .valid = is_plain),
	STR_FIELD(struct save_in, project_id, 0, 1, 200, "Vercel: the project.", .valid = is_plain),
	STR_FIELD(struct save_in, api_url, 0, 1, 500, "Address of a self-hosted or compatible service.", .valid = is_plain),
	STR_FIELD(struct save_in, bridge_url, 0, 1, 500, "Address of your bridge or runner.", .valid = is_plain),
	BOOL_FIELD(struct save_in, make_default, 0, "Use this key for jobs that name none. The first key saved is the default anyway."),
	BOOL_FIELD(struct save_in, skip_check, 0, "Save without asking the provider whether the key is good."),
};
static const struct shape save_shape = SHAPE(struct save_in, save_fields, "A key of yours.");
static const struct field save_out_fields[] = {
	STR_FIELD(struct save_out, name, REQUIRED, 0, 0, "The name it was saved under."),
	STR_FIELD(struct save_out, provider, REQUIRED, 0, 0, "The provider."),
	STR_FIELD(struct save_out, fingerprint, REQUIRED, 0, 0, "Eight hex digits to tell keys apart."),
	INT_FIELD(struct save_out, version, REQUIRED, 0, 0, "1 for a new name, more for a replaced key."),
	BOOL_FIELD(struct save_out, is_default, REQUIRED, "Whether jobs that name nothing use it."),
	BOOL_FIELD(struct save_out, checked, REQUIRED, "Whether the provider accepted it just now."),
};
static const struct shape save_out_shape = SHAPE(struct save_out, save_out_fields, "The saved key.");
/* clang-format on */

static enum err check_fields(const struct provider *p, const struct save_in *in)
{
	const struct {
		const char *value, *field;
		unsigned bit;
	} parts[] = {{in->team_id, "team_id", WANT_TEAM},
		{in->project_id, "project_id", WANT_PROJECT},
		{in->api_url, "api_url", WANT_API_URL},
		{in->bridge_url, "bridge_url", WANT_BRIDGE_URL}};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (!parts[i].value && (p->needs & parts[i].bit))
			return fail(ERR_BAD_INPUT, parts[i].field,
				"provider %s needs it; see provider_setup", p->name);
		if (parts[i].value && !((p->needs | p->takes) & parts[i].bit))
			return fail(ERR_BAD_INPUT, parts[i].field, "provider %s does not take it",
				p->name);
	}
	enum err e = in->api_url ? http_url_check(in->api_url, "api_url") : OK;
	return e || !in->bridge_url ? e : http_url_check(in->bridge_url, "bridge_url");
}

static enum err find_connected(const char *name, const struct provider **ret)
{
	*ret = provider_find(name);
	if (!*ret)
		return fail(ERR_UNKNOWN_PROVIDER, "provider", "list_providers names them all");
	if (!(*ret)->ops)
		return fail(ERR_PROVIDER_UNAVAILABLE, "provider", "%s is not connected yet",
			(*ret)->name);
	return OK;
}

struct saving {
	struct req *r;
	const struct save_in *in;
	const struct provider *p;
	const char *name;
	struct credential credential;
	struct save_out *out;
	uint32_t version; /* bound into the sealed key, so it is known before the transaction */
	int64_t place;    /* in the account's order: the old version's, else behind all others */
	struct sealed_key sealed;
	struct id id; /* of the new row */
	bool raced;
};

static uint32_t next_version(const struct rows *active)
{
	return active->n ? (uint32_t)row_int(active, 0, 2) + 1 : 1;
}

static enum err replace_old(
	struct db *tx, struct saving *s, const struct rows *old, bool *ret_was_default)
{
	uint64_t changed;
	s->raced = s->version != next_version(old);
	if (s->raced)
		return fail(ERR_BUSY, "name", "another call saved this name at the same moment");
	if (old->n == 0)
		return OK;
	if (strcmp(row_str(old, 0, 1), s->p->name) != 0)
		return fail(ERR_KEY_NAME_TAKEN, "name", "choose another name");
	*ret_was_default = row_int(old, 0, 3) == 1;
	struct id id = row_id(old, 0, 0);
	return db_tx_change(tx, SQL_KEY_RETIRE,
		ARGS(A_STR("old"), A_ID(id), A_ID(s->r->caller.account)), &changed);
}

/* A key that is saved anew keeps its place; another one comes behind all others. */
static enum err choose_place(struct saving *s, const struct rows *old, const struct rows *all)
{
	s->place = 0;
	if (old->n) {
		s->place = row_int(old, 0, 4);
		return OK;
	}
	if (all->n >= KEYS_MAX)
		return fail(
			ERR_BAD_INPUT, "name", "an account has at most %d saved keys", KEYS_MAX);
	for (size_t i = 0; i < all->n; i++)
		if (row_int(all, i, KEY_COL_PLACE) >= s->place)
			s->place = row_int(all, i, KEY_COL_PLACE) + 1;
	return OK;
}

static enum err add_key(struct db *tx, struct saving *s)
{
	struct id account = s->r->caller.account;
	const struct sealed_key *k = &s->sealed;
	int64_t now = clock_ms();
	bool duplicate;
	s->id = id_new();
	enum err e = db_tx_insert(tx, SQL_KEY_ADD,
		ARGS(A_ID(s->id), A_ID(account), A_STR(s->name), A_STR(s->p->name),
			A_INT(s->version), A_ID(k->data_key), A_BYTES(k->blob.p, k->blob.n),
			A_STR(k->fingerprint), A_INT(s->place), A_INT(now), A_INT(now)),
		&duplicate);
	s->raced = !e && duplicate;
	return s->raced ? fail(ERR_BUSY, "name", "another call saved this name at the same moment")
			: e;
}

static enum err save_rows(struct db *tx, void *ctx)
{
	struct saving *s = ctx;
	struct id account = s->r->caller.account;
	struct rows old, all;
	uint64_t changed;
	bool was_default = false;
	/* The audit row comes first: it locks the account, so saves of one account do not
	 * interleave. */
	enum err e = audit_add(tx, account, s->r->caller.token_id, "key.save", s->name);
	if (!e)
		e = db_tx_run(
			tx, SQL_KEY_ACTIVE, ARGS(A_ID(account), A_STR(s->name)), s->r->arena, &old);
	if (!e)
		e = db_tx_run(tx, SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(account)), s->r->arena, &all);
	if (!e)
		e = replace_old(tx, s, &old, &was_default);
	if (!e)
		e = choose_place(s, &old, &all);
	if (!e)
		e = add_key(tx, s);
	bool make_default = was_default || s->in->make_default == YES || all.n == 0;
	s->out->is_default = make_default ? YES : NO;
	if (e || !make_default)
		return e;
	e = db_tx_change(tx, SQL_KEYS_CLEAR_DEFAULT, ARGS(A_ID(account)), &changed);
	return e ? e
		 : db_tx_change(
			   tx, SQL_KEY_SET_DEFAULT, ARGS(A_ID(account), A_STR(s->name)), &changed);
}

/* Whatever the provider lacked when it was asked: the key may be good. */
static enum err check_key(struct call *c)
{
	enum err e = c->provider->ops->check(c);
	struct fault f = *fault_of(e);
	if (e != ERR_UPSTREAM && e != ERR_UPSTREAM_UNSURE && e != ERR_UPSTREAM_LIMIT)
		return e;
	return fail(ERR_KEY_CHECK_FAILED, f.field, "%s", f.detail);
}

/* Seals for the version that is next, then writes; again when another call took that version. */
static enum err seal_and_save(struct saving *s)
{
	struct id account = s->r->caller.account;
	struct rows old;
	enum err e = OK;
	for (int try = 0; try < SAVE_TRIES; try++) {
		e = db_run(SQL_KEY_ACTIVE, ARGS(A_ID(account), A_STR(s->name)), s->r->arena, &old);
		if (e)
			return e;
		s->version = next_version(&old);
		e = vault_seal(account, &s->credential, s->p->name, s->name, s->version,
			s->r->arena, &s->sealed);
		if (!e)
			e = db_transaction(save_rows, s);
		if (!e || !s->raced)
			break;
	}
	s->out->fingerprint = arena_str(s->r->arena, s->sealed.fingerprint);
	s->out->version = s->version;
	return e;
}

static enum err save_run(struct req *r, const void *vin, void *vout)
{
	const struct save_in *in = vin;
	struct saving s = {.r = r,
		.in = in,
		.out = vout,
		.credential = {
			in->token, in->team_id, in->project_id, in->api_url, in->bridge_url}};
	enum err e = find_connected(in->provider, &s.p);
	if (!e)
		e = check_fields(s.p, in);
	if (e)
		return e;
	s.name = in->name ? in->name : s.p->name;
	if (provider_find(s.name) && strcmp(s.name, s.p->name) != 0)
		return fail(ERR_BAD_INPUT, "name", "is the name of another provider");
	s.out->checked = in->skip_check == YES ? NO : YES;
	CLEANUP_CALL struct call c = {
		.provider = s.p, .credential = &s.credential, .arena = r->arena};
	if (s.out->checked == YES)
		e = check_key(&c);
	if (!e)
		e = seal_and_save(&s);
	if (!e && s.out->checked == YES)
		(void)!rates_ask(&c, r->caller.account, s.id); /* the keeper asks again */
	s.out->name = s.name;
	s.out->provider = s.p->name;
	return e;
}

const struct tool tool_save_provider_key = {
	.name = "save_provider_key",
	.title = "Save a provider key",
	.doc = "Saves one key of yours for a provider: checked with a read-only call, sealed with "
	       "AES-256-GCM "
	       "before it reaches the database, never returned and never logged. provider_setup "
	       "says which "
	       "fields a provider needs. Pro plan and owner key only.",
	.in = &save_shape,
	.out = &save_out_shape,
	.role = ROLE_OWNER,
	.plan = PLAN_PRO,
	.flags = TOOL_REPEATABLE | TOOL_OPEN_WORLD | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_UNKNOWN_PROVIDER, ERR_PROVIDER_UNAVAILABLE,
		ERR_KEY_REFUSED, ERR_KEY_CHECK_FAILED, ERR_KEY_NAME_TAKEN, ERR_FORBIDDEN_ADDRESS,
		ERR_SEALED, OK},
	.run = save_run,
};

/* -- delete_provider_key ----------------------------------------------------------------------- */

struct delete_in {
	const char *name;
};
struct delete_out {
	const char *name;
	int64_t jobs_cancelled;
};

/* clang-format off */
static const struct field delete_fields[] = {
	STR_FIELD(struct delete_in, name, REQUIRED, 1, KEY_NAME_CHARS_MAX, "The name it was saved under.", .valid = is_key_name, .example = "\"tunnel\""),
};
static const struct shape delete_shape = SHAPE(struct delete_in, delete_fields, "Which key.");
static const struct field delete_out_fields[] = {
	STR_FIELD(struct delete_out, name, REQUIRED, 0, 0, "The deleted key."),
	INT_FIELD(struct delete_out, jobs_cancelled, REQUIRED, 0, 0, "Running jobs that were cancelled with it."),
};
static const struct shape delete_out_shape = SHAPE(struct delete_out, delete_out_fields, "What was done.");
/* clang-format on */

struct deleting {
	struct req *r;
	const char *name;
	uint64_t cancelled;
};

static enum err find_active(struct db *tx, const struct deleting *x, struct id *ret)
{
	struct rows row;
	enum err e = db_tx_run(tx, SQL_KEY_ACTIVE, ARGS(A_ID(x->r->caller.account), A_STR(x->name)),
		x->r->arena, &row);
	if (e)
		return e;
	if (row.n == 0)
		return fail(ERR_KEY_NOT_FOUND, "name", "list_providers shows the saved names");
	*ret = row_id(&row, 0, 0);
	return OK;
}

/* A name is written to the audit only when it is known: anything might have been sent as one, and
 * the redo log keeps what was rolled back. Behind the audit's lock it is looked up again. */
static enum err delete_rows(struct db *tx, void *ctx)
{
	struct deleting *x = ctx;
	struct id account = x->r->caller.account, id;
	uint64_t changed;
	enum err e = find_active(tx, x, &id);
	if (!e)
		e = audit_add(tx, account, x->r->caller.token_id, "key.delete", x->name);
	if (!e)
		e = find_active(tx, x, &id);
	if (e)
		return e;
	e = db_tx_change(
		tx, SQL_KEY_RETIRE, ARGS(A_STR("deleting"), A_ID(id), A_ID(account)), &changed);
	if (!e)
		e = db_tx_change(
			tx, SQL_KEY_NAME_RETIRE, ARGS(A_ID(account), A_STR(x->name)), &changed);
	if (!e)
		e = db_tx_change(tx, SQL_KEY_JOBS_CANCEL,
			ARGS(A_INT(clock_ms()), A_ID(account), A_STR(x->name)), &x->cancelled);
	return e;
}

static enum err delete_run(struct req *r, const void *vin, void *vout)
{
	const struct delete_in *in = vin;
	struct delete_out *out = vout;
	struct deleting x = {r, in->name, 0};
	enum err e = db_transaction(delete_rows, &x);
	if (!e && x.cancelled)
		jobs_kill_cancelled(r->caller.account);
	*out = (struct delete_out){in->name, (int64_t)x.cancelled};
	return e;
}

const struct tool tool_delete_provider_key = {
	.name = "delete_provider_key",
	.title = "Delete a provider key",
	.doc = "Deletes a saved key by name. No new job can use it, its running jobs are cancelled "
	       "at once, and "
	       "the sealed key is erased as soon as each of their sandboxes is proven gone. Pro "
	       "plan and owner "
	       "key only.",
	.in = &delete_shape,
	.out = &delete_out_shape,
	.role = ROLE_OWNER,
	.plan = PLAN_PRO,
	.flags = TOOL_DESTROYS | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_KEY_NOT_FOUND, OK},
	.run = delete_run,
};
