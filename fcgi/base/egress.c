/*
 * The list of denied addresses, as bytes and prefix lengths. It holds no exceptions: the origins
 * that the operator allows are an affair of the caller.
 */
#include "egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct range {
	uint8_t bytes[16];
	unsigned bits;
};

static const struct range denied4[] = {
	{{0}, 8},            /* "this network"; Linux connects 0.0.0.0 to itself */
	{{10}, 8},           /* private */
	{{100, 64}, 10},     /* shared by carriers */
	{{127}, 8},          /* loopback */
	{{169, 254}, 16},    /* link-local, the clouds' metadata services */
	{{172, 16}, 12},     /* private */
	{{192, 0, 0}, 24},   /* protocol assignments */
	{{192, 0, 2}, 24},   /* documentation */
	{{192, 88, 99}, 24}, /* 6to4 relays */
	{{192, 168}, 16},    /* private */
	{{198, 18}, 15},     /* benchmarks */
	{{198, 51, 100}, 24}, {{203, 0, 113}, 24}, {{224}, 4}, /* multicast */
	{{240}, 4},                                            /* reserved, broadcast */
};

static const struct range public6 = {{0x20}, 3};

static const struct range denied6[] = {
	{{0x20, 0x01}, 23},             /* protocol assignments: Teredo, ORCHID, benchmarks */
	{{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
	{{0x3f, 0xff}, 20},             /* documentation */
};

/* IPv6 addresses that stand for an IPv4 address, and where it begins in them. */
static const struct {
	struct range range;
	size_t at;
} carriers[] = {
	{{{[10] = 0xff, 0xff}, 96}, 12},      /* mapped */
	{{{0x00, 0x64, 0xff, 0x9b}, 96}, 12}, /* NAT64 */
	{{{0x20, 0x02}, 16}, 2},              /* 6to4 */
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool within(const uint8_t *address, const struct range *r)
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;
	if (memcmp(address, r->bytes, whole) != 0)
		return false;
	return rest == 0 || (address[whole] ^ r->bytes[whole]) >> (8 - rest) == 0;
}

static bool within_any(const uint8_t *address, const struct range *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (within(address, &list[i]))
			return true;
	return false;
}

static bool allowed4(const uint8_t *address)
{
	return !within_any(address, denied4, COUNT(denied4));
}

static bool allowed6(const uint8_t *address)
{
	for (size_t i = 0; i < COUNT(carriers); i++)
		if (within(address, &carriers[i].range))
			return allowed4(address + carriers[i].at);
	return within(address, &public6) && !within_any(address, denied6, COUNT(denied6));
}

bool egress_allowed(const struct sockaddr *address)
{
	/* Copied, because the caller's storage may be aligned for less than we read it as. */
	if (address->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, address, sizeof in);
		return allowed4((const uint8_t *)&in.sin_addr);
	}
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, address, sizeof in6);
		return allowed6(in6.sin6_addr.s6_addr);
	}
	return false;
}

bool egress_allowed_text(const char *address)
{
	uint8_t bytes[16];
	if (inet_pton(AF_INET, address, bytes) == 1)
		return allowed4(bytes);
	return inet_pton(AF_INET6, address, bytes) == 1 && allowed6(bytes);
}
