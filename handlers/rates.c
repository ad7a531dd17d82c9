/* Rates that a provider tells of the account: from its answer to a column, and from there to a
 * list. */
#include "rates.h"

#include "arena.h"
#include "buf.h"
#include "clock.h"
#include "db.h"
#include "json.h"
#include "provider.h"
#include "vault.h"

#include <string.h>

#define RATES_BYTES (48u << 10) /* holds TOLD_RATES_MAX of them, however they are escaped */

enum rates_column { RATES_COL_KEY, RATES_COL_RATES, RATES_COL_AT };

/* -- asked for and kept ------------------------------------------------------------------------ */

static enum err keep(const struct told_rates *told, struct id account, struct id key)
{
	CLEANUP_BUF struct buf text;
	uint64_t changed;
	buf_init(&text, RATES_BYTES);
	struct jw w = jw_new(&text);
	jw_obj(&w);
	for (size_t i = 0; i < told->n; i++)
		jw_kstr(&w, told->items[i].name, told->items[i].usd);
	jw_end(&w);
	return db_change(SQL_KEY_RATES_SET,
		ARGS(A_STR(text.p), A_INT(clock_ms()), A_ID(key), A_ID(account)), &changed);
}

enum err rates_ask(struct call *c, struct id account, struct id key)
{
	struct told_rates told = {0};
	if (!c->provider->ops->rates)
		return OK;
	enum err e = c->provider->ops->rates(c, &told);
	return e || told.n == 0 ? e : keep(&told, account, key);
}

enum err rates_refresh(struct id account, struct id key, struct arena *a)
{
	CLEANUP_KEY struct opened_key opened;
	enum err e = vault_open(account, key, a, &opened);
	if (e || opened.deleting)
		return e;
	CLEANUP_CALL struct call c = {
		.provider = opened.provider, .credential = &opened.credential, .arena = a};
	return rates_ask(&c, account, key);
}

/* -- shown ------------------------------------------------------------------------------------- */

struct rate_out {
	const char *name, *usd;
};
/* clang-format off */
static const struct field rate_fields[] = {
	STR_FIELD(struct rate_out, name, REQUIRED, 0, 0, "What it is for, in the provider's words."),
	STR_FIELD(struct rate_out, usd, REQUIRED, 0, 0, "Dollars, as the provider wrote the number."),
};
const struct shape account_rate_shape = SHAPE(struct rate_out, rate_fields, "A rate of the account.");
/* clang-format on */

enum err rates_read(struct id account, struct arena *a, struct rows *ret)
{
	return db_run(SQL_KEYS_RATES, ARGS(A_ID(account)), a, ret);
}

static struct list list_of(const char *text, struct arena *a)
{
	CLEANUP_JSON struct json *root = NULL;
	if (json_parse(text, strlen(text), &root))
		return (struct list){0};
	size_t n = json_len(root);
	struct rate_out *items = ARENA_LIST(a, n, struct rate_out);
	for (size_t i = 0; i < n; i++) {
		const char *name;
		const char *usd = json_str(json_member(root, i, &name), NULL);
		items[i] = (struct rate_out){arena_str(a, name), arena_str(a, usd ? usd : "")};
	}
	return (struct list){n, items};
}

struct list rates_view(const struct rows *all, struct id key, struct arena *a, int64_t *ret_told_at)
{
	*ret_told_at = ABSENT_INT;
	for (size_t i = 0; i < all->n; i++) {
		if (!id_equal(row_id(all, i, RATES_COL_KEY), key))
			continue;
		*ret_told_at = row_int(all, i, RATES_COL_AT);
		return list_of(row_str(all, i, RATES_COL_RATES), a);
	}
	return (struct list){0};
}
