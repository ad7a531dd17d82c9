/* The ordered list of all tools. A tool is a row at the end of its own file. */
#include "tool.h"

#include <string.h>

extern const struct tool tool_check_memory, tool_run_job, tool_get_job, tool_cancel_job,
	tool_list_jobs, tool_save_provider_key, tool_list_providers, tool_delete_provider_key,
	tool_provider_setup, tool_weekly_report, tool_usage, tool_create_account, tool_list_tokens,
	tool_create_token, tool_revoke_token, tool_get_account, tool_change_account,
	tool_delete_account;

const struct shape no_arguments = {.doc = "No arguments."};

const struct tool *const tools[] = {
	&tool_check_memory,
	&tool_run_job,
	&tool_get_job,
	&tool_cancel_job,
	&tool_list_jobs,
	&tool_save_provider_key,
	&tool_list_providers,
	&tool_delete_provider_key,
	&tool_provider_setup,
	&tool_weekly_report,
	&tool_usage,
	&tool_create_account,
	&tool_list_tokens,
	&tool_create_token,
	&tool_revoke_token,
	&tool_get_account,
	&tool_change_account,
	&tool_delete_account,
	NULL,
};

const struct tool *tool_find(const char *name)
{
	for (size_t i = 0; tools[i]; i++)
		if (strcmp(tools[i]->name, name) == 0 && !(tools[i]->flags & TOOL_REST_ONLY))
			return tools[i];
	return NULL;
}
