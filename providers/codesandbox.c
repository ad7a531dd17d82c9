/*
 * CodeSandbox: one VM per job. Its makers are winding the service down. Facts only: the
 * operations are not written yet, so the row says what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step codesandbox_setup[] = {
	{"CodeSandbox advises new users to choose another provider; use it only if you have it "
	 "already.",
		NULL},
	{"Create an API key (csb_...) that may create, read and edit sandboxes and manage VMs.",
		"https://codesandbox.io/t/api"},
	{"Call save_provider_key with provider codesandbox and token.", NULL},
	{NULL, NULL},
};

const struct provider provider_codesandbox = {
	.name = "codesandbox",
	.title = "CodeSandbox",
	.how = "Each job gets a fresh CodeSandbox VM; it is shut down right after the job.",
	.can = CAN_FILES | CAN_TEMPLATE | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = NULL,
	.docs_url = "https://codesandbox.io/docs/sdk",
	.price_url = "https://codesandbox.io/pricing",
	.setup = codesandbox_setup,
	.ops = NULL,
};
