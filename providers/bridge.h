/*
 * Client of the bridge contract, version 1: one set of operations for every provider that is
 * reached through a bridge (own computers now; Modal and Workers bridges share it, with facts of
 * their own).
 */
#pragma once
#include "provider.h"

extern const struct provider_ops bridge_ops;
