/*
 * Runloop: one devbox per job. Facts only: the operations are not written yet, so the row says
 * what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step runloop_setup[] = {
	{"In the Runloop dashboard create an API key (ak_...).",
		"https://platform.runloop.ai/settings"},
	{"Call save_provider_key with provider runloop and token.", NULL},
	{NULL, NULL},
};

const struct provider provider_runloop = {
	.name = "runloop",
	.title = "Runloop",
	.how = "Each job gets a fresh Runloop devbox; it is shut down right after the job.",
	.can = CAN_FILES | CAN_MEMORY | CAN_CPU | CAN_TEMPLATE | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = NULL,
	.docs_url = "https://docs.runloop.ai",
	.price_url = "https://www.runloop.ai/pricing",
	.setup = runloop_setup,
	.ops = NULL,
};
