/*
 * Railway: sandboxes in one environment of a project. Facts only: the operations are not written
 * yet, so the row says what is needed and nothing can be run.
 */
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step railway_setup[] = {
	{"In the settings of a Railway project create a project token for one environment.",
		"https://docs.railway.com"},
	{"Call save_provider_key with provider railway and token.", NULL},
	{NULL, NULL},
};

const struct provider provider_railway = {
	.name = "railway",
	.title = "Railway",
	.how = "Each job gets a fresh Railway sandbox in the environment of your project token; it "
	       "is deleted right after the job.",
	.can = CAN_FILES | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = WANT_PROJECT,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "About $0.0694 per vCPU-hour and per GB-hour of memory, idle time included "
		 "(August 2026).",
	.docs_url = "https://docs.railway.com",
	.price_url = "https://railway.com/pricing",
	.setup = railway_setup,
	.ops = NULL,
};
