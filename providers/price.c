/*
 * What providers charge, as numbers: for estimates, which say that they are some. Each row tells
 * how old it is; the sentences in the providers' own rows say the same, which a test compares. A
 * provider without a row publishes no price that we know.
 */
#include "provider.h"

#include <string.h>

/* clang-format off */
static const struct price rows[] = {
	{.provider = "vercel", .cpu = 128000, .gib = 21200, .cpu_used = true, .default_cpu = 2, .mb_per_cpu = 2048, .as_of = "2026"},
	{.provider = "e2b", .cpu = 50400, .gib = 16200, .default_cpu = 2, .default_mb = 512, .template_decides = true, .as_of = "2026-08"},
	{.provider = "daytona", .cpu = 50400, .gib = 16200, .default_cpu = 1, .default_mb = 1024, .template_decides = true, .as_of = "2026-05"},
	{.provider = "modal", .cpu = 71000, .gib = 24000, .as_of = "2026-06"},
	{.provider = "workers", .cpu = 72000, .gib = 9000, .cpu_used = true, .as_of = "2026-08"},
	{.provider = "tunnel", .as_of = "2026"}, /* the user's own computer */
	{.provider = "railway", .cpu = 69400, .gib = 69400, .as_of = "2026-08"},
	{.provider = "browser-use", .flat = 20000, .as_of = "2026"},
};
/* clang-format on */

const struct price *price_of(const char *provider)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].provider, provider) == 0)
			return &rows[i];
	return NULL;
}

/* Memory that comes with the processors, or processors that come with the memory. */
static void pair(const struct price *row, int64_t *cpu, int64_t *mb)
{
	if (*cpu == 0)
		*cpu = (*mb + row->mb_per_cpu - 1) / row->mb_per_cpu;
	if (*cpu == 0)
		*cpu = row->default_cpu;
	*mb = *cpu * row->mb_per_cpu;
}

static int64_t by_size(const struct price *row, const struct box_spec *spec)
{
	bool by_template = row->template_decides && spec->template;
	int64_t cpu = spec->cpu, mb = spec->memory_mb;
	if (row->mb_per_cpu > 0)
		pair(row, &cpu, &mb);
	if (cpu == 0 && !by_template)
		cpu = row->default_cpu;
	if (mb == 0 && !by_template)
		mb = row->default_mb;
	if (cpu == 0 || mb == 0)
		return PRICE_UNKNOWN;
	return row->flat + cpu * row->cpu + mb * row->gib / 1024;
}

int64_t price_rate(const struct provider *p, const struct box_spec *spec)
{
	const struct price *row = price_of(p->name);
	if (!row || spec->gpu) /* no row has prices of GPUs, which cost more than all else */
		return PRICE_UNKNOWN;
	return row->cpu == 0 && row->gib == 0 ? row->flat : by_size(row, spec);
}
