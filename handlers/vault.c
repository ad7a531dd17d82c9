/*
 * Provider keys: sealed into the database, opened for one call.
 *
 * The sealed value is the whole credential, five fields in a fixed order, each behind its length in
 * four bytes. A new data key is made when the account's newest has sealed SEALS_MAX values.
 */
#include "vault.h"

#include "alloc.h"
#include "clock.h"
#include "db.h"
#include "node.h"
#include "text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define SEALS_MAX        (1 << 20) /* far from the 2^32 of NIST SP 800-38D for random nonces */
#define OPENS_A_MINUTE   3000      /* of one account in one process: 50 jobs a second */
#define OPEN_SLOTS       4096
#define CREDENTIAL_MAX   8000
#define LENGTH_BYTES     4
#define CREDENTIAL_PARTS 5

void vault_close(struct opened_key *k)
{
	secret_done(&k->credential.token);
}

static enum err open_row(const struct rows *rows, struct id account, struct data_key *ret)
{
	const struct cell *wrapped = row_cell(rows, 0, 1);
	return data_key_open(node()->keys, row_id(rows, 0, 0), account,
		(struct blob){(const uint8_t *)wrapped->p, wrapped->n}, ret);
}

enum err vault_account_key(struct id account, struct arena *a, struct data_key *ret)
{
	struct rows rows;
	enum err e = db_run(SQL_DATA_KEY_OLDEST, ARGS(A_ID(account)), a, &rows);
	if (e)
		return e;
	return rows.n ? open_row(&rows, account, ret)
		      : fail(ERR_SEALED, NULL, "the account has no data key");
}

enum err vault_fresh_key(struct id account, struct arena *a, struct fresh_key *ret)
{
	return data_key_new(node()->keys, account, a, &ret->key, &ret->wrapped);
}

static enum err make_data_key(struct id account, struct arena *a, struct data_key *ret)
{
	struct fresh_key fresh;
	bool duplicate;
	enum err e = vault_fresh_key(account, a, &fresh);
	if (e)
		return e;
	*ret = fresh.key;
	return db_insert(SQL_DATA_KEY_CREATE,
		ARGS(A_ID(ret->id), A_ID(account), A_INT(keyring_current(node()->keys)),
			A_BYTES(fresh.wrapped.p, fresh.wrapped.n), A_INT(clock_ms())),
		&duplicate);
}

static enum err sealing_key(struct id account, struct arena *a, struct data_key *ret)
{
	struct rows rows;
	uint64_t changed;
	enum err e = db_run(SQL_DATA_KEY_NEWEST, ARGS(A_ID(account)), a, &rows);
	if (e)
		return e;
	if (rows.n && row_int(&rows, 0, 2) < SEALS_MAX)
		e = open_row(&rows, account, ret);
	else
		e = make_data_key(account, a, ret);
	return e ? e
		 : db_change(SQL_DATA_KEY_COUNT_SEAL, ARGS(A_ID(ret->id), A_ID(account)), &changed);
}

/* -- how often keys are opened ----------------------------------------------------------------- */

/* A worker that was broken into could open every key one by one; opening many of one account in a
 * minute is refused. Slots are shared by accounts that meet in a hash: the bound holds for each. */
static enum err count_open(struct id account)
{
	static struct {
		atomic_llong minute;
		atomic_int opened;
	} slots[OPEN_SLOTS];
	size_t at = ((size_t)account.b[14] << 8 | account.b[15]) % OPEN_SLOTS;
	long long minute = clock_mono_ms() / 60000;
	if (slots[at].minute != minute) {
		slots[at].minute = minute;
		slots[at].opened = 0;
	}
	if (++slots[at].opened <= OPENS_A_MINUTE)
		return OK;
	return fail(ERR_BUSY, NULL,
		"keys of this account are opened too often, at most %d times a minute",
		OPENS_A_MINUTE);
}

/* -- the credential as bytes ------------------------------------------------------------------- */

static void put_part(struct buf *b, const void *p, size_t n)
{
	uint8_t length[LENGTH_BYTES] = {
		(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	buf_put(b, length, sizeof length);
	buf_put(b, p, n);
}

static void put_text(struct buf *b, const char *s)
{
	put_part(b, s ? s : "", s ? strlen(s) : 0);
}

static bool take_part(const uint8_t **at, const uint8_t *end, const uint8_t **ret, size_t *ret_n)
{
	if (end - *at < LENGTH_BYTES)
		return false;
	const uint8_t *l = *at;
	size_t n = (size_t)l[0] << 24 | (size_t)l[1] << 16 | (size_t)l[2] << 8 | l[3];
	if ((size_t)(end - l - LENGTH_BYTES) < n)
		return false;
	*ret = l + LENGTH_BYTES;
	*ret_n = n;
	*at = *ret + n;
	return true;
}

static enum err unpack(const struct secret *plain, struct arena *a, struct credential *ret)
{
	const uint8_t *at = secret_bytes(plain), *end = at + plain->n, *part;
	const char **texts[] = {&ret->team_id, &ret->project_id, &ret->api_url, &ret->bridge_url};
	size_t n;
	if (!take_part(&at, end, &part, &n))
		return fail(ERR_SEALED, NULL, "a stored key has an unknown form");
	ret->token = secret_new(part, n);
	for (size_t i = 0; i < CREDENTIAL_PARTS - 1; i++) {
		if (!take_part(&at, end, &part, &n))
			return fail(ERR_SEALED, NULL, "a stored key has an unknown form");
		*texts[i] = n ? arena_copy(a, part, n) : NULL;
	}
	return OK;
}

enum err vault_seal(struct id account, const struct credential *c, const char *provider,
	const char *name, uint32_t version, struct arena *a, struct sealed_key *ret)
{
	CLEANUP_BUF struct buf plain = {0};
	struct data_key d;
	uint8_t mac[32];
	enum err e = sealing_key(account, a, &d);
	if (e)
		return e;
	buf_init(&plain, CREDENTIAL_MAX);
	put_part(&plain, secret_bytes(&c->token), c->token.n);
	put_text(&plain, c->team_id);
	put_text(&plain, c->project_id);
	put_text(&plain, c->api_url);
	put_text(&plain, c->bridge_url);
	ret->data_key = d.id;
	if (plain.full)
		e = fail(ERR_BAD_INPUT, "token",
			"all fields of a key together hold at most %d bytes", CREDENTIAL_MAX);
	else
		e = seal_value(&d, &(struct seal_place){"provider-key", provider, name, version},
			plain.p, plain.n, a, &ret->blob);
	if (!e) {
		seal_hmac(&d, "fingerprint", plain.p, plain.n, mac);
		hex_encode(ret->fingerprint, mac, 4);
	}
	data_key_done(&d);
	return e;
}

enum err vault_open(struct id account, struct id key, struct arena *a, struct opened_key *ret)
{
	struct rows row, data;
	*ret = (struct opened_key){0};
	enum err e = count_open(account);
	if (!e)
		e = db_run(SQL_KEY_BLOB, ARGS(A_ID(key), A_ID(account)), a, &row);
	if (e)
		return e;
	if (row.n == 0)
		return fail(ERR_KEY_NOT_FOUND, NULL, "the key was deleted");
	struct id data_key = row_id(&row, 0, 3);
	e = db_run(SQL_DATA_KEY_GET, ARGS(A_ID(data_key), A_ID(account)), a, &data);
	if (e)
		return e;
	if (data.n == 0)
		return fail(ERR_SEALED, NULL, "the account's data key was erased");
	struct data_key d;
	const struct cell *wrapped = row_cell(&data, 0, 0), *blob = row_cell(&row, 0, 4);
	e = data_key_open(node()->keys, data_key, account,
		(struct blob){(const uint8_t *)wrapped->p, wrapped->n}, &d);
	if (e)
		return e;
	CLEANUP_SECRET struct secret plain = {0};
	ret->name = row_str(&row, 0, 0);
	struct seal_place at = {
		"provider-key", row_str(&row, 0, 1), ret->name, (uint32_t)row_int(&row, 0, 2)};
	e = seal_open(&d, &at, (struct blob){(const uint8_t *)blob->p, blob->n}, &plain);
	data_key_done(&d);
	ret->provider = provider_find(at.provider);
	ret->deleting = strcmp(row_str(&row, 0, 5), "deleting") == 0;
	if (!e && (!ret->provider || !ret->provider->ops))
		e = fail(ERR_PROVIDER_UNAVAILABLE, "provider",
			"the key's provider is not connected here");
	return e ? e : unpack(&plain, a, &ret->credential);
}
