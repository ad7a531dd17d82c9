/* Words of the configuration. */
#include "config.h"

#include <string.h>

static const char *const network_names[] = {"none", "internet", "host"};

const char *network_name(enum network n)
{
	return n >= 0 && n < NETWORK__MAX ? network_names[n] : "";
}

enum network network_parse(const char *s)
{
	for (int n = 0; n < NETWORK__MAX; n++)
		if (strcmp(s, network_names[n]) == 0)
			return (enum network)n;
	return NETWORK_UNSET;
}
