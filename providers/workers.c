/*
 * Workers Sandbox of Cloudflare: containers that can be reached only from a Worker of the user's
 * account. Two bridges are spoken to: ours (the contract of bridge.h) and Cloudflare's own.
 *
 * Which one stands at an address is asked of /health where nothing else tells: at the check, and
 * once for each sandbox that is made or looked for. An id tells by itself: ours keeps the dashes of
 * the mark, which the other one does not allow. Nothing about it is stored, so a user may replace
 * one bridge by the other at any time.
 */
#include "provider.h"
#include "providers.h"

#include "arena.h"
#include "bounds.h"
#include "bridge.h"
#include "bridge_reply.h"
#include "json.h"
#include "workers_vendor.h"

#include <string.h>

#define HEALTH_MS 30000

/* -- which bridge ------------------------------------------------------------------------------ */

static enum err ask_health(struct call *c, struct http_reply *ret)
{
	struct http_call h = {
		.pool = HTTP_USER,
		.method = "GET",
		.url = arena_printf(
			c->arena, "%s/health", bridge_base(c->arena, c->credential->bridge_url)),
		.total_ms = HEALTH_MS,
	};
	return call_http(c, &h, ret);
}

/* The operations of the bridge at the user's address; `wrong` when none stands there. Before
 * anything has an effect. */
static enum err choose(struct call *c, enum err wrong, const struct provider_ops **ret)
{
	CLEANUP_JSON struct json *root = NULL;
	struct http_reply r;
	enum err e = ask_health(c, &r);
	if (e)
		return e;
	if (r.fate != HTTP_REPLIED)
		return bridge_judge(&r, EFFECT_READS);
	if ((r.status != 200 && r.status != 503) || bridge_object(&r, &root) ||
		json_type(json_get(root, "ok")) != JSON_BOOL)
		return fail(wrong, "bridge_url", "there is no bridge at this address (status %d)",
			r.status);
	if (!json_get(root, "contract") && r.status != 200)
		return fail(
			wrong, "bridge_url", "the bridge says that it was not deployed completely");
	*ret = json_get(root, "contract") ? &bridge_ops : &vendor_ops;
	return OK;
}

static const struct provider_ops *of_id(const char *id)
{
	return vendor_id_ok(id) ? &vendor_ops : &bridge_ops;
}

/* -- operations -------------------------------------------------------------------------------- */

static enum err workers_check(struct call *c)
{
	const struct provider_ops *ops;
	enum err e = http_url_check(bridge_base(c->arena, c->credential->bridge_url), "bridge_url");
	e = e ? e : choose(c, ERR_KEY_CHECK_FAILED, &ops);
	return e ? e : ops->check(c);
}

static enum err workers_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	const struct provider_ops *ops;
	enum err e = choose(c, ERR_UPSTREAM, &ops);
	return e ? e : ops->create(c, spec, ret);
}

static enum err workers_find(struct call *c, const char *mark, struct box *ret)
{
	const struct provider_ops *ops;
	enum err e = choose(c, ERR_UPSTREAM, &ops);
	return e ? e : ops->find(c, mark, ret);
}

static enum err workers_list(struct call *c, const char *prefix, struct box_list *ret)
{
	const struct provider_ops *ops;
	enum err e = choose(c, ERR_UPSTREAM, &ops);
	return e ? e : ops->list(c, prefix, ret);
}

static enum err workers_destroy(struct call *c, const char *id, enum box_state *ret)
{
	return of_id(id)->destroy(c, id, ret);
}

static enum err workers_put(
	struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	return of_id(id)->put(c, id, path, p, n);
}

static enum err workers_exec(struct call *c, const char *id, const char *exec_id,
	const char *const *argv, int64_t wait_s, struct exec_result *ret)
{
	return of_id(id)->exec(c, id, exec_id, argv, wait_s, ret);
}

static const struct provider_ops workers_ops = {
	.check = workers_check,
	.create = workers_create,
	.find = workers_find,
	.list = workers_list,
	.destroy = workers_destroy,
	.put = workers_put,
	.exec = workers_exec,
};

/* -- the row ----------------------------------------------------------------------------------- */

static const struct setup_step workers_setup[] = {
	{"Take the Workers Paid plan on your Cloudflare account. Deploying needs Node.js 20 or "
	 "newer and a "
	 "running Docker on your machine.",
		"https://developers.cloudflare.com/sandbox/"},
	{"Write the files of this answer's bridge into a folder, each as it is.", NULL},
	{"Run the line deploy in that folder. wrangler asks you to log in, builds the image, and "
	 "shows the "
	 "address of the Worker; the token is in the file token.",
		"https://developers.cloudflare.com/workers/wrangler/"},
	{"Call save_provider_key with provider workers, that token, and the address as bridge_url. "
	 "Then "
	 "delete the file token. The key is saved only if the bridge refuses calls without it.",
		NULL},
	{"Right after a first deployment Cloudflare spreads the image for some minutes: the first "
	 "job may "
	 "be slow or fail; run it again then.",
		NULL},
	{"If you run Cloudflare's own bridge already, its address and its SANDBOX_API_KEY do as "
	 "well, with "
	 "what it lacks: a hard end and proof of a stop.",
		NULL},
	{NULL, NULL},
};

const struct provider provider_workers = {
	.name = "workers",
	.title = "Workers Sandbox",
	.how = "Each job gets a fresh container on your Cloudflare account, through a small bridge "
	       "that you deploy there.",
	.can = CAN_FILES | CAN_LIST,
	.needs = WANT_TOKEN | WANT_BRIDGE_URL,
	.takes = 0,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "$0.072 per hour of used vCPU and $0.009 per GiB-hour of memory, beyond what the "
		 "$5 a month plan includes (August 2026).",
	.docs_url = "https://developers.cloudflare.com/sandbox/",
	.price_url = "https://developers.cloudflare.com/containers/pricing/",
	.setup = workers_setup,
	.ops = &workers_ops,
};
