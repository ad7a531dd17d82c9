/*
 * Facts about keys, ends, bills and limits of every provider, one row each. Figures are those of
 * the providers' own pages in 2026; whoever needs them exactly follows the links of the row in
 * NAME.c.
 */
#include "setup.h"

#include "modal_bridge_texts.h"
#include "provider.h"
#include "workers_bridge_texts.h"

#include <assert.h>
#include <string.h>

/* clang-format off */
static const struct setup rows[] = {
	{
		.provider = "vercel",
		.members = {
			{WANT_TOKEN, "An access token whose scope is the team."},
			{WANT_TEAM, "The Team ID, team_..."},
			{WANT_PROJECT, "The Project ID, prj_...; nothing is deployed to it."},
		},
		.ends = "A time-out of its own, set to the job's limit and a margin; it counts from the start and can not be outlived.",
		.billed = "Processor time that is used, memory by the second, each creation, traffic.",
		.stays = "Nothing: sandboxes are made without a saved file system.",
		.limits = {"Hobby: 45 minutes, 10 at once, 4 cpus.", "Pro: 24 hours, 2000 at once, 8 cpus."},
	}, {
		.provider = "e2b",
		.members = {
			{WANT_TOKEN, "The API key, e2b_..."},
			{WANT_API_URL, "Only for an installation of your own: the address of its API."},
		},
		.ends = "A time-out of its own, set to the job's limit and a margin; the sandbox is killed then.",
		.billed = "Processors and memory of the template by the second, used or not.",
		.stays = "Nothing: sandboxes are killed, never paused.",
		.limits = {"Hobby: 20 at once, one creation a second, one hour.", "Pro: 100 and more at once, five creations a second, 24 hours."},
	}, {
		.provider = "daytona",
		.members = {
			{WANT_TOKEN, "An API key, dtn_..., with write:sandboxes and delete:sandboxes."},
			{WANT_API_URL, "Only for an installation of your own: the address of its API."},
		},
		.ends = "A lifetime in minutes, set to the job's limit and a margin. Where an older installation does not know it, the idle end deletes the sandbox.",
		.billed = "Processors, memory, and disk beyond 5 GiB of the snapshot, by the second.",
		.stays = "Nothing: sandboxes are deleted, not stopped. A sandbox that you stop yourself keeps its disk, and that is billed.",
		.limits = {"Usually at most 4 cpus, 8 GiB of memory and 10 GiB of disk each.", "How many at once depends on the pool of your tier."},
	}, {
		.provider = "modal",
		.members = {
			{WANT_TOKEN, "The API token as id:secret, ak-...:as-...; with bridge_url the token of your bridge instead."},
			{WANT_BRIDGE_URL, "Only when you deployed the bridge: its address, https://...modal.run."},
		},
		.ends = "A time-out of its own from 1 second to 24 hours, set to the job's limit and a margin; it can not be extended.",
		.billed = "Processors and memory by the second, the larger of what was asked for and what is used.",
		.stays = "Nothing. A bridge is billed only while it answers a call.",
		.limits = {"24 hours.", "How many at once depends on your plan."},
		.bridge = "modal",
		.deploy = "pip install -r requirements.txt && modal setup && modal secret create sbx-bridge BRIDGE_TOKEN=\"$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\\n' | tee token)\" && modal deploy app.py",
	}, {
		.provider = "workers",
		.members = {
			{WANT_TOKEN, "The token that you gave the bridge: BRIDGE_TOKEN, at least 32 characters. For Cloudflare's own bridge: SANDBOX_API_KEY."},
			{WANT_BRIDGE_URL, "The address of the Worker, https://...workers.dev."},
		},
		.ends = "The bridge destroys each sandbox at its hard end and tries again until Cloudflare confirms it. Cloudflare's own bridge has no such end: its sandboxes stop after ten idle minutes.",
		.billed = "Processor time that is used, memory and disk by the second while a container runs, beyond what the plan includes.",
		.stays = "The Workers Paid plan, $5 a month. No container runs between jobs, unless you set a warm pool.",
		.limits = {"max_instances of wrangler.jsonc at once.", "Its instance_type is the size of every sandbox: lite 256 MiB to standard-4 with 4 cpus and 12 GiB.", "A deployment replaces running sandboxes."},
		.bridge = "workers",
		.deploy = "npm install && openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\\n' >token && npx wrangler deploy && npx wrangler secret put BRIDGE_TOKEN <token",
	}, {
		.provider = "tunnel",
		.members = {
			{WANT_TOKEN, "token of the connection file of compute-runner."},
			{WANT_BRIDGE_URL, "url of that file, reachable from this server."},
		},
		.ends = "The runner ends each sandbox at its hard end, and all of them when it ends itself.",
		.billed = "Nothing: it is your computer.",
		.stays = "Nothing.",
		.limits = {"What you gave the runner: compute-runner --check tells what this computer can enforce.", "Jobs run only while the runner does."},
	}, {
		.provider = "runloop",
		.members = {{WANT_TOKEN, "The API key, ak_..."}},
		.ends = "A time after which the devbox ends, at most 48 hours.",
		.billed = "Processors, memory and disk by the second.",
		.stays = "A devbox that was suspended, not shut down, still costs its disk.",
		.limits = {"48 hours.", "How many at once is set for each account."},
	}, {
		.provider = "codesandbox",
		.members = {{WANT_TOKEN, "The API key, csb_..."}},
		.ends = "Hibernation after a time of silence; there is no hard end.",
		.billed = "The machine by the second while it is awake.",
		.stays = "A hibernated machine keeps its stored state until it is deleted.",
		.limits = {"Machines at once and requests an hour depend on the plan."},
	}, {
		.provider = "railway",
		.members = {
			{WANT_TOKEN, "A project token of one environment."},
			{WANT_PROJECT, "The project, where the token does not tell."},
		},
		.ends = "An idle time of 1 to 120 minutes; there is no hard end.",
		.billed = "Processors and memory by the second, idle time included.",
		.stays = "Nothing after the sandbox is destroyed.",
		.limits = {"10, 50 or 100 at once by plan.", "100, 1000 or 10000 requests an hour by plan."},
	}, {
		.provider = "boat",
		.members = {{WANT_TOKEN, "The key, boat_..."}},
		.ends = "A lifetime in seconds, one hour unless said otherwise, at most 30 days.",
		.billed = "The machine while it is active, by its size.",
		.stays = "A stopped machine keeps its disk; a deleted one nothing.",
		.limits = {"Starts are limited by minute, hour and day; a trial has two machines at once."},
	}, {
		.provider = "browserbase",
		.members = {
			{WANT_TOKEN, "The API key of the project."},
			{WANT_PROJECT, "The project, only if the key covers several."},
		},
		.ends = "A time-out of 1 minute to 6 hours.",
		.billed = "The browser by the minute, and traffic through its proxies.",
		.stays = "Nothing after the session.",
		.limits = {"3, 25, 100 or more browsers at once by plan."},
	}, {
		.provider = "browser-use",
		.members = {{WANT_TOKEN, "The API key, bu_..."}},
		.ends = "A time-out of 1 to 240 minutes.",
		.billed = "The browser by the hour from your credit; what was not used is given back.",
		.stays = "Nothing after the session.",
		.limits = {"240 minutes."},
	},
};
/* clang-format on */
#define ROWS (sizeof rows / sizeof rows[0])

const struct setup *setup_of(const char *provider)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].provider, provider) == 0)
			return &rows[i];
	return NULL;
}

/* -- bridges ----------------------------------------------------------------------------------- */

static const char *const modal_paths[] = {
	"README.md", "requirements.txt", "app.py", "box.sh", NULL};
static const char *const workers_paths[] = {"README.md", "package.json", "wrangler.jsonc",
	"Dockerfile", "tsconfig.json", "src/index.ts", "src/box.ts", "src/registry.ts",
	"src/wrong.ts", "src/text.d.ts", "src/box.sh", NULL};

static const char *text_of(const struct text_file *all, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	for (; all->name; all++)
		if (strcmp(all->name, name) == 0)
			return all->text;
	assert(!"a file of a bridge is missing");
	return NULL;
}

size_t setup_files(const char *provider, struct setup_file ret[SETUP_FILES])
{
	const struct setup *s = setup_of(provider);
	if (!s || !s->bridge)
		return 0;
	bool modal = strcmp(s->bridge, "modal") == 0;
	const char *const *paths = modal ? modal_paths : workers_paths;
	size_t n = 0;
	for (; paths[n]; n++) {
		assert(n < SETUP_FILES);
		ret[n] = (struct setup_file){.path = paths[n],
			.text = text_of(
				modal ? modal_bridge_texts : workers_bridge_texts, paths[n])};
	}
	return n;
}
