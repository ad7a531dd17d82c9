/* provider_setup: everything that a person or an agent needs before it saves a key of a provider.
 */
#include "setup.h"

#include "catalog.h"
#include "provider.h"
#include "tool.h"

struct setup_in {
	const char *provider;
};
struct member_out {
	const char *name, *text;
	enum tri required;
};
struct step_out {
	const char *text, *link;
};
struct file_out {
	const char *path, *content;
};
struct bridge_out {
	const char *folder, *deploy;
	struct list files;
};
struct setup_out {
	const void *provider; /* as in list_providers */
	struct list save_with, steps, limits;
	const char *ends, *billed, *stays_billed, *note;
	const void *bridge; /* struct bridge_out */
};

/* clang-format off */
static const struct field setup_fields[] = {
	STR_FIELD(struct setup_in, provider, REQUIRED, 1, 32, "One of list_providers.", .example = "\"tunnel\""),
};
static const struct shape setup_shape = SHAPE(struct setup_in, setup_fields, "Which provider.");
static const struct field member_fields[] = {
	STR_FIELD(struct member_out, name, REQUIRED, 0, 0, "The argument of save_provider_key."),
	BOOL_FIELD(struct member_out, required, REQUIRED, "Whether it must be given."),
	STR_FIELD(struct member_out, text, REQUIRED, 0, 0, "What it is."),
};
static const struct shape member_shape = SHAPE(struct member_out, member_fields, "One argument.");
static const struct field step_fields[] = {
	STR_FIELD(struct step_out, text, REQUIRED, 0, 0, "What to do."),
	STR_FIELD(struct step_out, link, 0, 0, 0, "Where."),
};
static const struct shape step_shape = SHAPE(struct step_out, step_fields, "One step.");
static const struct field file_fields[] = {
	STR_FIELD(struct file_out, path, REQUIRED, 0, 0, "Where to write it, in the folder of the bridge."),
	STR_FIELD(struct file_out, content, REQUIRED, 0, 0, "The whole file, to be written as it is."),
};
static const struct shape file_shape = SHAPE(struct file_out, file_fields, "One file.");
static const struct field bridge_fields[] = {
	STR_FIELD(struct bridge_out, folder, REQUIRED, 0, 0, "A name for the folder."),
	LIST_FIELD(struct bridge_out, files, REQUIRED, &file_shape, 0, 0, "All files of the bridge."),
	STR_FIELD(struct bridge_out, deploy, REQUIRED, 0, 0, "One line of shell that deploys it from its folder. It leaves the bridge's token in the file token."),
};
static const struct shape bridge_shape = SHAPE(struct bridge_out, bridge_fields, "A program to deploy on the user's own account.");
static const struct field setup_out_fields[] = {
	OBJ_FIELD(struct setup_out, provider, REQUIRED, &provider_shape, "The provider."),
	LIST_FIELD(struct setup_out, steps, REQUIRED, &step_shape, 0, 0, "Steps in order."),
	LIST_FIELD(struct setup_out, save_with, REQUIRED, &member_shape, 0, 0, "Exactly what save_provider_key takes of this provider, besides provider and name."),
	STR_FIELD(struct setup_out, billed, REQUIRED, 0, 0, "What the provider bills for a job."),
	STR_FIELD(struct setup_out, stays_billed, REQUIRED, 0, 0, "What it bills when no job runs."),
	STR_FIELD(struct setup_out, ends, REQUIRED, 0, 0, "What ends a sandbox if this server can not."),
	LIST_FIELD(struct setup_out, limits, REQUIRED, NULL, 0, 0, "Limits of the provider."),
	OBJ_FIELD(struct setup_out, bridge, 0, &bridge_shape, "Where one is needed or offered."),
	STR_FIELD(struct setup_out, note, 0, 0, 0, "What to know besides."),
};
static const struct shape setup_out_shape = SHAPE(struct setup_out, setup_out_fields, "How to set a provider up.");
/* clang-format on */

static struct list view_steps(struct arena *a, const struct provider *p)
{
	size_t n = 0;
	while (p->setup[n].text)
		n++;
	struct step_out *steps = ARENA_LIST(a, n, struct step_out);
	for (size_t i = 0; i < n; i++)
		steps[i] = (struct step_out){p->setup[i].text, p->setup[i].link};
	return (struct list){n, steps};
}

static const char *name_of(unsigned want)
{
	switch (want) {
	case WANT_TEAM:
		return "team_id";
	case WANT_PROJECT:
		return "project_id";
	case WANT_API_URL:
		return "api_url";
	case WANT_BRIDGE_URL:
		return "bridge_url";
	default:
		return "token";
	}
}

static struct list view_members(struct arena *a, const struct provider *p, const struct setup *s)
{
	struct member_out *list = ARENA_LIST(a, SETUP_MEMBERS, struct member_out);
	size_t n = 0;
	for (; n < SETUP_MEMBERS && s->members[n].want; n++)
		list[n] = (struct member_out){.name = name_of(s->members[n].want),
			.required = p->needs & s->members[n].want ? YES : NO,
			.text = s->members[n].text};
	return (struct list){n, list};
}

static struct list view_limits(struct arena *a, const struct setup *s)
{
	const char **list = ARENA_LIST(a, SETUP_LIMITS, const char *);
	size_t n = 0;
	for (; n < SETUP_LIMITS && s->limits[n]; n++)
		list[n] = s->limits[n];
	return (struct list){n, list};
}

static const void *view_bridge(struct arena *a, const struct setup *s)
{
	struct setup_file files[SETUP_FILES];
	size_t n = setup_files(s->provider, files);
	if (n == 0)
		return NULL;
	struct file_out *list = ARENA_LIST(a, n, struct file_out);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct file_out){files[i].path, files[i].text};
	struct bridge_out *bridge = ARENA_NEW(a, struct bridge_out);
	*bridge = (struct bridge_out){
		.folder = s->bridge, .deploy = s->deploy, .files = (struct list){n, list}};
	return bridge;
}

static enum err setup_run(struct req *r, const void *vin, void *vout)
{
	const struct setup_in *in = vin;
	struct setup_out *out = vout;
	const struct provider *p = provider_find(in->provider);
	if (!p)
		return fail(ERR_UNKNOWN_PROVIDER, "provider", "list_providers names them all");
	const struct setup *s = setup_of(p->name);
	*out = (struct setup_out){.provider = provider_view(r->arena, p),
		.steps = view_steps(r->arena, p),
		.save_with = view_members(r->arena, p, s),
		.billed = s->billed,
		.stays_billed = s->stays,
		.ends = s->ends,
		.limits = view_limits(r->arena, s),
		.bridge = view_bridge(r->arena, s)};
	if (!p->ops)
		out->note = "This version can not run jobs there yet; its keys can not be saved.";
	return OK;
}

const struct tool tool_provider_setup = {
	.name = "provider_setup",
	.title = "Set up a provider",
	.doc = "Everything about one provider before its key is saved: steps with links, the exact "
	       "arguments of save_provider_key, what is billed and what goes on being billed, "
	       "limits, and for workers and modal the whole bridge to deploy.",
	.in = &setup_shape,
	.out = &setup_out_shape,
	.role = ROLE_ANYONE,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_UNKNOWN_PROVIDER, OK},
	.run = setup_run,
};
