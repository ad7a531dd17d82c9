/*
 * The rows of all providers, for providers.c alone; others use providers[] and provider_find().
 */
#pragma once

struct provider;

extern const struct provider provider_vercel, provider_e2b, provider_daytona, provider_modal,
	provider_workers, provider_tunnel, provider_runloop, provider_codesandbox, provider_railway,
	provider_boat, provider_browserbase, provider_browser_use;
