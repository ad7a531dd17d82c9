/*
 * Browser Use: rents browsers, no shells; for browser sessions, not for run_job. Facts only: the
 * operations are not written yet, so the row says what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step browser_use_setup[] = {
	{"In the Browser Use Cloud settings create an API key (bu_...).",
		"https://cloud.browser-use.com/settings?tab=api-keys"},
	{"Call save_provider_key with provider browser-use and token.", NULL},
	{NULL, NULL},
};

const struct provider provider_browser_use = {
	.name = "browser-use",
	.title = "Browser Use",
	.how = "Rents a browser that is driven over the network; it runs no shell commands.",
	.can = CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "$0.02 per hour of a browser; unused time is given back at the stop (2026).",
	.docs_url = "https://docs.browser-use.com",
	.price_url = "https://browser-use.com/pricing",
	.setup = browser_use_setup,
	.ops = NULL,
};
