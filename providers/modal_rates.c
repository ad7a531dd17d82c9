/*
 * What a Modal account pays, by Modal's own call for it. It promises to hand on only what has the
 * form of a rate; what a name stands for is Modal's to say, so nothing is computed from it.
 */
#include "modal_call.h"

#include "arena.h"

#include <string.h>

#define USD_MAX 20 /* characters */

static bool is_decimal(const char *s)
{
	size_t whole = strspn(s, "0123456789");
	size_t part = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
	return whole > 0 && (s[whole] == '\0' || (part > 0 && s[whole + 1 + part] == '\0'));
}

static bool is_told(const struct told_rates *told, const char *name)
{
	for (size_t i = 0; i < told->n; i++)
		if (strcmp(told->items[i].name, name) == 0)
			return true;
	return false;
}

/* An entry of a map is a message of key and value. */
static void take_rate(struct pb_msg entry, struct arena *a, struct told_rates *ret)
{
	const char *name = pb_word(entry, 1, TOLD_RATE_MAX, a),
		   *usd = pb_word(entry, 2, USD_MAX, a);
	if (name && usd && is_decimal(usd) && !is_told(ret, name))
		ret->items[ret->n++] = (struct told_rate){name, usd};
}

static void take_rates(struct pb_msg m, struct arena *a, struct told_rates *ret)
{
	struct pb_field f;
	ret->items = ARENA_LIST(a, TOLD_RATES_MAX, struct told_rate);
	while (ret->n < TOLD_RATES_MAX && pb_next(&m, &f))
		if (f.number == 1 && f.type == PB_BYTES)
			take_rate(f.bytes, a, ret);
}

enum err modal_rates(struct call *c, struct told_rates *ret)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	CLEANUP_BUF struct buf empty;
	struct pb_msg m;
	buf_init(&empty, 1);
	struct modal_ask q = {
		.method = "WorkspaceBillingRates", .body = &empty, .effect = EFFECT_READS};
	enum err e = modal_open(c, &k);
	e = e ? e : modal_control(c, &k, &q, &m);
	if (!e)
		take_rates(m, c->arena, ret);
	return e;
}
