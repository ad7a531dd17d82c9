/*
 * Browserbase: rents browsers, no shells; for browser sessions, not for run_job. Facts only: the
 * operations are not written yet, so the row says what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step browserbase_setup[] = {
	{"In the Browserbase dashboard copy the API key of your project.",
		"https://www.browserbase.com/settings"},
	{"Call save_provider_key with provider browserbase and token; project_id only if the key "
	 "covers several projects.",
		NULL},
	{NULL, NULL},
};

const struct provider provider_browserbase = {
	.name = "browserbase",
	.title = "Browserbase",
	.how = "Rents a browser that is driven over the network; it runs no shell commands.",
	.can = CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = WANT_PROJECT,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = NULL,
	.docs_url = "https://docs.browserbase.com",
	.price_url = "https://www.browserbase.com/pricing",
	.setup = browserbase_setup,
	.ops = NULL,
};
