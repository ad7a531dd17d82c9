/* Who calls. */
#include "auth.h"

#include "account.h"
#include "clock.h"
#include "db.h"
#include "bounds.h"
#include "node.h"
#include "seal.h"
#include "text.h"
#include "token.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOUR_MS (60 * 60 * 1000LL)

/* IPv4 counts as a whole address, IPv6 by its /64: a household has all of it. The keyed hash
 * changes every day, so rows of two days can not be matched. */
static void hash_address(struct exchange *x)
{
	const char *text = x->remote;
	uint8_t address[16] = {0}, mac[32];
	char all[DAY_SIZE + 40], hex[33];
	bool v6 = text && inet_pton(AF_INET6, text, address) == 1;
	if (!v6 && text)
		(void)inet_pton(AF_INET, text, address);
	size_t n = v6 ? 8 : 4;
	hex_encode(hex, address, n);
	char day[DAY_SIZE];
	int k = snprintf(all, sizeof all, "%s %d %s", day_text(day, clock_ms()), v6 ? 6 : 4, hex);
	seal_hmac(&node()->own, "address", all, (size_t)k, mac);
	memcpy(x->req.caller.address, mac, sizeof x->req.caller.address);
}

static enum err invalid(const char *why)
{
	return fail(ERR_TOKEN_INVALID, NULL, "%s", why);
}

static enum err note_use(struct id token, int64_t used_at)
{
	int64_t now = clock_ms(), hour = now / HOUR_MS * HOUR_MS;
	uint64_t changed;
	if (used_at != ABSENT_INT && used_at >= hour)
		return OK;
	return db_change(SQL_TOKEN_USED, ARGS(A_INT(now), A_ID(token), A_INT(hour)), &changed);
}

static enum err look_up(struct exchange *x, const char *text)
{
	struct caller *who = &x->req.caller;
	uint8_t hash[TOKEN_HASH_BYTES];
	struct rows rows;
	who->token = secret_new(text, strlen(text));
	token_hash(&who->token, hash);
	enum err e =
		db_run(SQL_TOKEN_BY_HASH, ARGS(A_BYTES(hash, sizeof hash)), x->req.arena, &rows);
	if (e)
		return e;
	if (rows.n != 1)
		return invalid("there is no such key");
	if (!row_null(&rows, 0, 4))
		return invalid("it was revoked");
	if (!row_null(&rows, 0, 3) && row_int(&rows, 0, 3) <= clock_ms())
		return invalid("it has expired");
	if (strcmp(row_str(&rows, 0, 7), "active") != 0)
		return invalid("its account was deleted");
	who->token_id = row_id(&rows, 0, 0);
	who->account = row_id(&rows, 0, 1);
	who->role = strcmp(row_str(&rows, 0, 2), "owner") == 0 ? ROLE_OWNER : ROLE_AGENT;
	who->plan = plan_of(row_str(&rows, 0, 6));
	return note_use(who->token_id, row_int(&rows, 0, 5));
}

enum err auth_caller(struct exchange *x)
{
	const char *h = x->authorization;
	if (!h) {
		hash_address(x); /* only callers without a token are counted by address */
		return OK;
	}
	if (strncasecmp(h, "Bearer ", 7) != 0)
		return invalid("send one header: Authorization: Bearer KEY");
	const char *text = h + 7 + strspn(h + 7, " ");
	if (!token_form_ok(text, strlen(text)))
		return invalid("it does not have the form of a key");
	return look_up(x, text);
}

enum err auth_allows(const struct caller *who, const struct tool *t)
{
	if (t->role != ROLE_ANYONE && who->role == ROLE_ANYONE)
		return fail(ERR_TOKEN_NEEDED, NULL, "%s needs an API key", t->name);
	if (t->role == ROLE_OWNER && who->role != ROLE_OWNER)
		return fail(ERR_OWNER_NEEDED, NULL, "%s needs an owner key", t->name);
	if (t->plan == PLAN_PRO && who->plan != PLAN_PRO)
		return fail(ERR_PRO_NEEDED, NULL, "%s needs the Pro plan", t->name);
	return OK;
}
