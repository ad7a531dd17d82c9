/*
 * Modal: sandboxes with a hard end, through its own protocol or, where the user gave the address of
 * one, through a bridge on the user's account.
 */
#include "bridge.h"
#include "modal_call.h"
#include "provider.h"
#include "providers.h"

#include "bounds.h"

static const struct setup_step modal_setup[] = {
	{"In the Modal settings open API Tokens and create a token; it has an id (ak-...) and a "
	 "secret (as-...).",
		"https://modal.com/settings/tokens"},
	{"Call save_provider_key with provider modal and the token as id:secret.", NULL},
	{"If you do not want to hand out an account token: write the files of this answer's bridge "
	 "into "
	 "a folder, run the line deploy there (it needs Python 3), and pass the token in the file "
	 "token and "
	 "the address that it shows as bridge_url.",
		"https://modal.com/docs/guide/sandbox"},
	{NULL, NULL},
};

/* -- which way --------------------------------------------------------------------------------- */

static bool bridged(const struct call *c)
{
	return c->credential->bridge_url;
}

static enum err check(struct call *c)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	return bridged(c) ? bridge_ops.check(c) : modal_open(c, &k);
}

static enum err create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	return bridged(c) ? bridge_ops.create(c, spec, ret) : modal_create(c, spec, ret);
}

static enum err find(struct call *c, const char *mark, struct box *ret)
{
	return bridged(c) ? bridge_ops.find(c, mark, ret) : modal_find(c, mark, ret);
}

static enum err list(struct call *c, const char *prefix, struct box_list *ret)
{
	return bridged(c) ? bridge_ops.list(c, prefix, ret) : modal_list(c, prefix, ret);
}

static enum err destroy(struct call *c, const char *id, enum box_state *ret)
{
	return bridged(c) ? bridge_ops.destroy(c, id, ret) : modal_destroy(c, id, ret);
}

static enum err put(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	return bridged(c) ? bridge_ops.put(c, id, path, p, n) : modal_put(c, id, path, p, n);
}

static enum err exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret)
{
	return bridged(c) ? bridge_ops.exec(c, id, exec_id, argv, wait_s, ret)
			  : modal_exec(c, id, exec_id, argv, wait_s, ret);
}

static enum err rates(struct call *c, struct told_rates *ret)
{
	*ret = (struct told_rates){0};
	return bridged(c) ? OK : modal_rates(c, ret);
}

const struct provider_ops modal_ops = {
	.check = check,
	.create = create,
	.find = find,
	.list = list,
	.destroy = destroy,
	.put = put,
	.exec = exec,
	.rates = rates,
};

const struct provider provider_modal = {
	.name = "modal",
	.base = "https://api.modal.com",
	.title = "Modal",
	.how = "Each job gets a fresh Modal sandbox; it is terminated right after the job.",
	.can = CAN_FILES | CAN_MEMORY | CAN_CPU | CAN_TEMPLATE | CAN_GPU | CAN_LIST,
	.needs = WANT_TOKEN,
	.takes = WANT_BRIDGE_URL,
	.timeout_max_s = TIMEOUT_S_MAX,
	.price = "About $0.071 per vCPU-hour and $0.024 per GiB-hour of memory, by the second "
		 "(June 2026); a GPU costs more.",
	.docs_url = "https://modal.com/docs/guide/sandbox",
	.price_url = "https://modal.com/pricing",
	.setup = modal_setup,
	.ops = &modal_ops,
};
