/*
 * How a provider is shown: list_providers and provider_setup say the same of it.
 */
#pragma once

struct arena;
struct provider;
struct shape;

/* Of what provider_view gives. */
extern const struct shape provider_shape;
const void *provider_view(struct arena *a, const struct provider *p);
