/*
 * Own computer: the user's machine runs compute-runner, which speaks the bridge contract.
 */
#include "provider.h"
#include "providers.h"

#include "bridge.h"
#include "bounds.h"

static const struct setup_step tunnel_setup[] = {
	{"On a Linux computer of yours install compute-runner and bubblewrap. compute-runner "
	 "--check tells which limits and network modes this computer can enforce.",
		NULL},
	{"Start compute-runner. It makes a token and writes it with its address into a connection "
	 "file that only you can read; --lifetime says how long it serves, --network what its "
	 "sandboxes may reach.",
		NULL},
	{"The connector must reach the runner at a public https address: put it behind your own "
	 "web server or tunnel and start it with --url ADDRESS. On the connector's own machine the "
	 "operator can allow its local address in the settings instead.",
		NULL},
	{"Call save_provider_key with provider tunnel, and token and url of the connection file as "
	 "token and bridge_url.",
		NULL},
	{"Each job runs in a sandbox of its own without access to your files; it is destroyed "
	 "right after the job, and with the runner at the latest.",
		NULL},
	{NULL, NULL},
};

const struct provider provider_tunnel = {
	.name = "tunnel",
	.title = "Own computer",
	.how = "Each job gets a fresh sandbox on your own computer, where compute-runner must be "
	       "running.",
	.can = CAN_FILES | CAN_MEMORY | CAN_CPU | CAN_LIST,
	.needs = WANT_TOKEN | WANT_BRIDGE_URL,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "Free: it is your own computer.",
	.docs_url = NULL,
	.price_url = NULL,
	.setup = tunnel_setup,
	.ops = &bridge_ops,
};
