/*
 * The ordered list of providers, the look-up by name, and where their APIs are. A new provider is
 * one file and one line.
 */
#include "provider.h"
#include "providers.h"

#include <string.h>

const struct provider *const providers[] = {
	&provider_vercel,
	&provider_e2b,
	&provider_daytona,
	&provider_modal,
	&provider_workers,
	&provider_tunnel,
	&provider_runloop,
	&provider_codesandbox,
	&provider_railway,
	&provider_boat,
	&provider_browserbase,
	&provider_browser_use,
	NULL,
};
#define PROVIDERS (sizeof providers / sizeof providers[0] - 1)

#define BASE_CHARS 160 /* a line of the settings is no longer */

/* Of the operator, by the place in the list above; "": the provider's own. */
static char bases[PROVIDERS][BASE_CHARS];

static size_t place(const char *name, size_t n)
{
	size_t i = 0;
	while (i < PROVIDERS &&
		(strlen(providers[i]->name) != n || memcmp(providers[i]->name, name, n) != 0))
		i++;
	return i;
}

const struct provider *provider_find(const char *name)
{
	return providers[place(name, strlen(name))];
}

const char *provider_base(const struct provider *p)
{
	size_t at = place(p->name, strlen(p->name));
	return at < PROVIDERS && *bases[at] ? bases[at] : p->base;
}

/* One "name=address" of n characters. */
static enum err set_base(const char *s, size_t n)
{
	const char *sign = memchr(s, '=', n);
	size_t at = sign ? place(s, (size_t)(sign - s)) : PROVIDERS;
	if (at == PROVIDERS || !providers[at]->base)
		return fail(ERR_BAD_INPUT, "outbound.provider_urls",
			"must be name=https://..., with the name of a provider that has a fixed "
			"address");
	size_t url_n = n - (size_t)(sign + 1 - s);
	while (url_n > 0 && sign[url_n] == '/')
		url_n--;
	if (url_n <= 8 || url_n >= BASE_CHARS || strncmp(sign + 1, "https://", 8) != 0)
		return fail(
			ERR_BAD_INPUT, "outbound.provider_urls", "an address must be https://...");
	memcpy(bases[at], sign + 1, url_n);
	bases[at][url_n] = '\0';
	return OK;
}

enum err provider_bases_set(const char *list)
{
	enum err e = OK;
	while (!e && *list) {
		size_t n = strcspn(list, ", ");
		if (n)
			e = set_base(list, n);
		list += n;
		list += strspn(list, ", ");
	}
	return e;
}

void call_done(struct call *c)
{
	secret_done(&c->memo.token);
	secret_done(&c->pass);
	c->memo.box[0] = '\0';
}
