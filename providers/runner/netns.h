/*
 * The network of a box, set up from inside its own namespace before rights are dropped.
 *
 * Loopback goes up; for mode internet, addresses that are not of the public internet, and every
 * address of this machine, become unreachable. The box has no rights over this namespace, so it
 * can't undo that.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define HOST_ADDRESSES_MAX 64

/* Addresses of this machine (IPv4, network order) outside 127/8; call before unsharing. */
struct host_addresses {
	uint32_t a[HOST_ADDRESSES_MAX];
	int n;
};
void netns_host_addresses(struct host_addresses *ret);

bool netns_loopback_up(void);
bool netns_public_only(const struct host_addresses *host);

/* Resolver that slirp4netns offers in the box. */
#define NETNS_RESOLVER "10.0.2.3"
