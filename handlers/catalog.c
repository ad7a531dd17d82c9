/* list_providers: what the rows of providers/ say, and the account's own keys. */
#include "catalog.h"
#include "clock.h"
#include "db.h"
#include "health.h"
#include "provider.h"
#include "rates.h"
#include "tool.h"

#include <stdlib.h>

#define CREATES_MAX 99 /* so many creates make a median */

/* -- list_providers ---------------------------------------------------------------------------- */

struct rates_out {
	double cpu_hour_usd, gib_hour_usd, sandbox_hour_usd;
	enum tri used_cpu_only;
	const char *as_of;
};
struct provider_out {
	const char *name, *title, *how, *price, *docs_url, *price_url;
	enum tri available;
	int64_t timeout_max_s;
	struct list fields, options;
	const void *rates; /* struct rates_out */
};
struct key_out {
	const char *name, *provider, *fingerprint, *health, *last_error, *price;
	int64_t place, version, created_at, used_at, health_since, failed_at, limited_until,
		create_ms, creates, timeout_max_s;
	enum tri is_default;
	struct list options, account_rates;
	const void *rates; /* struct rates_out */
	int64_t account_rates_at;
};
struct providers_out {
	struct list providers, keys;
	const char *note;
};

static const char *const healths[] = {"healthy", "sick", "untried", NULL};

/* clang-format off */
static const struct field rates_fields[] = {
	NUM_FIELD(struct rates_out, cpu_hour_usd, REQUIRED, 0, 0, "Dollars for one processor and hour."),
	NUM_FIELD(struct rates_out, gib_hour_usd, REQUIRED, 0, 0, "Dollars for one GiB of memory and hour."),
	NUM_FIELD(struct rates_out, sandbox_hour_usd, REQUIRED, 0, 0, "Dollars for a sandbox and hour besides."),
	BOOL_FIELD(struct rates_out, used_cpu_only, REQUIRED, "Whether only processor time that is used is charged."),
	STR_FIELD(struct rates_out, as_of, REQUIRED, 0, 0, "Year, or year and month, in which the price list said so."),
};
static const struct shape rates_shape = SHAPE(struct rates_out, rates_fields, "The price as numbers; estimates of jobs use them.");
static const struct field provider_fields[] = {
	STR_FIELD(struct provider_out, name, REQUIRED, 0, 0, "The name to pass."),
	STR_FIELD(struct provider_out, title, REQUIRED, 0, 0, "Its name for people."),
	BOOL_FIELD(struct provider_out, available, REQUIRED, "Whether this version can run jobs there."),
	STR_FIELD(struct provider_out, how, REQUIRED, 0, 0, "How it runs a job."),
	LIST_FIELD(struct provider_out, fields, REQUIRED, NULL, 0, 0, "What save_provider_key needs besides provider."),
	LIST_FIELD(struct provider_out, options, REQUIRED, NULL, 0, 0, "Options of run_job that it honours."),
	INT_FIELD(struct provider_out, timeout_max_s, REQUIRED, 0, 0, "Longest job in seconds."),
	STR_FIELD(struct provider_out, price, 0, 0, 0, "What the provider charges, with its date."),
	OBJ_FIELD(struct provider_out, rates, 0, &rates_shape, "The same as numbers, where it is known."),
	STR_FIELD(struct provider_out, docs_url, 0, 0, 0, "Its documentation."),
	STR_FIELD(struct provider_out, price_url, 0, 0, 0, "Its price page."),
};
const struct shape provider_shape = SHAPE(struct provider_out, provider_fields, "A provider.");
static const struct field key_fields[] = {
	STR_FIELD(struct key_out, name, REQUIRED, 0, 0, "Your name for it."),
	STR_FIELD(struct key_out, provider, REQUIRED, 0, 0, "The provider."),
	STR_FIELD(struct key_out, fingerprint, REQUIRED, 0, 0, "Eight hex digits to tell keys apart."),
	BOOL_FIELD(struct key_out, is_default, REQUIRED, "Whether jobs that name nothing use it."),
	INT_FIELD(struct key_out, version, REQUIRED, 0, 0, "How often it was saved."),
	INT_FIELD(struct key_out, place, REQUIRED, 0, 0, "Its place in the account's order, from 1 on."),
	WORD_FIELD(struct key_out, health, REQUIRED, healths, "healthy; sick after three failures in a row (then tried last, and anew after a pause); untried before its first sandbox."),
	TIME_FIELD(struct key_out, health_since, REQUIRED, "Since when its health is so."),
	STR_FIELD(struct key_out, last_error, 0, 0, 0, "Code of its last failure, which may be long over."),
	TIME_FIELD(struct key_out, failed_at, 0, "When that was."),
	TIME_FIELD(struct key_out, limited_until, 0, "Until when the provider asked for patience; other keys are tried before it."),
	TIME_FIELD(struct key_out, created_at, REQUIRED, "When this version was saved."),
	TIME_FIELD(struct key_out, used_at, 0, "When a job last began with it."),
	INT_FIELD(struct key_out, create_ms, 0, 0, 0, "Median time of the last creates, at most 99."),
	INT_FIELD(struct key_out, creates, REQUIRED, 0, 0, "How many creates that is the median of."),
	LIST_FIELD(struct key_out, options, REQUIRED, NULL, 0, 0, "Options of run_job that it honours."),
	INT_FIELD(struct key_out, timeout_max_s, REQUIRED, 0, 0, "Longest job in seconds."),
	STR_FIELD(struct key_out, price, 0, 0, 0, "What the provider charges, with its date."),
	OBJ_FIELD(struct key_out, rates, 0, &rates_shape, "The same as numbers, where it is known."),
	LIST_FIELD(struct key_out, account_rates, REQUIRED, &account_rate_shape, 0, 0, "What this account pays, where the provider says so itself; empty where it does not."),
	TIME_FIELD(struct key_out, account_rates_at, 0, "When it said so; it is asked when the key is saved, and daily while the key is used."),
};
static const struct shape key_shape = SHAPE(struct key_out, key_fields, "A saved key.");
static const struct field providers_fields[] = {
	LIST_FIELD(struct providers_out, providers, REQUIRED, &provider_shape, 0, 0, "Every provider."),
	LIST_FIELD(struct providers_out, keys, REQUIRED, &key_shape, 0, 0, "Your saved keys; empty without an API key."),
	STR_FIELD(struct providers_out, note, 0, 0, 0, "What to do next."),
};
static const struct shape providers_shape = SHAPE(struct providers_out, providers_fields, "Providers and keys.");
/* clang-format on */

static struct list words_of(struct arena *a, unsigned bits, const char *const *names, size_t n)
{
	const char **list = ARENA_LIST(a, n, const char *);
	size_t used = 0;
	for (size_t i = 0; i < n; i++)
		if (bits >> i & 1)
			list[used++] = names[i];
	return (struct list){used, list};
}

/* In the order of the bits of enum provider_can. */
static const char *const options[] = {"files", "memory_mb", "cpu", "template", "runtime", "gpu"};
#define OPTIONS (sizeof options / sizeof options[0])

static const void *view_rates(struct arena *a, const char *provider)
{
	const struct price *p = price_of(provider);
	if (!p)
		return NULL;
	struct rates_out *rates = ARENA_NEW(a, struct rates_out);
	*rates = (struct rates_out){.cpu_hour_usd = (double)p->cpu / 1000000,
		.gib_hour_usd = (double)p->gib / 1000000,
		.sandbox_hour_usd = (double)p->flat / 1000000,
		.used_cpu_only = p->cpu_used ? YES : NO,
		.as_of = p->as_of};
	return rates;
}

static struct provider_out view_provider(struct arena *a, const struct provider *p)
{
	/* In the order of the bits of enum credential_field. */
	static const char *const fields[] = {
		"token", "team_id", "project_id", "api_url", "bridge_url"};
	return (struct provider_out){.name = p->name,
		.title = p->title,
		.how = p->how,
		.price = p->price,
		.docs_url = p->docs_url,
		.price_url = p->price_url,
		.available = p->ops ? YES : NO,
		.timeout_max_s = p->timeout_max_s,
		.rates = view_rates(a, p->name),
		.fields = words_of(a, p->needs, fields, 5),
		.options = words_of(a, p->can, options, OPTIONS)};
}

const void *provider_view(struct arena *a, const struct provider *p)
{
	struct provider_out *view = ARENA_NEW(a, struct provider_out);
	*view = view_provider(a, p);
	return view;
}

static struct key_out view_key(struct arena *a, const struct rows *rows, size_t i)
{
	const struct provider *p = provider_find(row_str(rows, i, KEY_COL_PROVIDER));
	struct health h = health_of(rows, i);
	return (struct key_out){.name = row_str(rows, i, KEY_COL_NAME),
		.provider = row_str(rows, i, KEY_COL_PROVIDER),
		.version = row_int(rows, i, KEY_COL_VERSION),
		.fingerprint = row_str(rows, i, KEY_COL_PRINT),
		.is_default = row_int(rows, i, KEY_COL_DEFAULT) == 1 ? YES : NO,
		.health = health_word(&h),
		.health_since = row_int(rows, i, KEY_COL_HEALTH),
		.last_error = row_str(rows, i, KEY_COL_ERROR),
		.failed_at = row_int(rows, i, KEY_COL_FAILED),
		.limited_until = h.limited_until > clock_ms() ? h.limited_until : ABSENT_INT,
		.created_at = row_int(rows, i, KEY_COL_CREATED),
		.used_at = h.used_at,
		.create_ms = ABSENT_INT,
		.options = words_of(a, p ? p->can : 0, options, OPTIONS),
		.timeout_max_s = p ? p->timeout_max_s : 0,
		.price = p ? p->price : NULL,
		.rates = p ? view_rates(a, p->name) : NULL};
}

static int by_number(const void *pa, const void *pb)
{
	const int64_t *a = pa, *b = pb;
	return (*a > *b) - (*a < *b);
}

static enum err add_median(struct req *r, struct key_out *k)
{
	int64_t ms[CREATES_MAX];
	struct rows rows;
	enum err e = db_run(SQL_KEY_CREATES,
		ARGS(A_ID(r->caller.account), A_STR(k->name), A_STR(k->provider),
			A_INT(CREATES_MAX)),
		r->arena, &rows);
	if (e || rows.n == 0)
		return e;
	for (size_t i = 0; i < rows.n; i++)
		ms[i] = row_int(&rows, i, 0);
	qsort(ms, rows.n, sizeof *ms, by_number);
	k->creates = (int64_t)rows.n;
	k->create_ms = (ms[(rows.n - 1) / 2] + ms[rows.n / 2]) / 2;
	return OK;
}

/* Of the keys in the account's order; the rows begin with the default, wherever its place is. */
static int by_place(const void *pa, const void *pb)
{
	const struct key_out *a = pa, *b = pb;
	return (a->place > b->place) - (a->place < b->place);
}

static enum err view_keys(struct req *r, struct list *ret)
{
	struct rows rows, rates;
	enum err e = db_run(SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(r->caller.account)), r->arena, &rows);
	if (!e)
		e = rates_read(r->caller.account, r->arena, &rates);
	if (e)
		return e;
	struct key_out *keys = ARENA_LIST(r->arena, rows.n, struct key_out);
	for (size_t i = 0; !e && i < rows.n; i++) {
		keys[i] = view_key(r->arena, &rows, i);
		keys[i].place = row_int(&rows, i, KEY_COL_PLACE) * (int64_t)rows.n + (int64_t)i;
		keys[i].account_rates = rates_view(
			&rates, row_id(&rows, i, KEY_COL_ID), r->arena, &keys[i].account_rates_at);
		e = add_median(r, &keys[i]);
	}
	qsort(keys, rows.n, sizeof *keys, by_place);
	for (size_t i = 0; i < rows.n; i++)
		keys[i].place = (int64_t)i + 1;
	*ret = (struct list){rows.n, keys};
	return e;
}

static enum err list_run(struct req *r, const void *in, void *vout)
{
	struct providers_out *out = vout;
	size_t n = 0;
	(void)in;
	while (providers[n])
		n++;
	struct provider_out *list = ARENA_LIST(r->arena, n, struct provider_out);
	for (size_t i = 0; i < n; i++)
		list[i] = view_provider(r->arena, providers[i]);
	out->providers = (struct list){n, list};
	out->note = "provider_setup explains each provider step by step.";
	if (r->caller.role == ROLE_ANYONE)
		return OK;
	return view_keys(r, &out->keys);
}

const struct tool tool_list_providers = {
	.name = "list_providers",
	.title = "List providers and saved keys",
	.doc = "Every provider, whether this server can use it, what it needs and what it costs; "
	       "with an API key also the keys you saved, by name and fingerprint, with their "
	       "health and how long their sandboxes take to begin; never the key itself.",
	.in = &no_arguments,
	.out = &providers_shape,
	.role = ROLE_ANYONE,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED,
	.errors = (const enum err[]){OK},
	.run = list_run,
};
