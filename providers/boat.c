/*
 * Boat: whole Ubuntu machines by the second. Facts only: the operations are not written yet, so
 * the row says what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step boat_setup[] = {
	{"In the Boat console create a key (boat_...) that may only create, use and delete its own "
	 "sandboxes.",
		"https://boat.dev"},
	{"Call save_provider_key with provider boat and token.", NULL},
	{NULL, NULL},
};

const struct provider provider_boat = {
	.name = "boat",
	.title = "Boat",
	.how = "Each job gets a fresh Ubuntu machine; it is deleted right after the job.",
	.can = CAN_FILES | CAN_CPU,
	.needs = WANT_TOKEN,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = NULL,
	.docs_url = "https://boat.dev",
	.price_url = "https://boat.dev",
	.setup = boat_setup,
	.ops = NULL,
};
