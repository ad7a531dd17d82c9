/*
 * Routes and rules of a box by rtnetlink. Promises: each request was acknowledged by the kernel
 * before true is returned. It knows nothing of slirp4netns but the two addresses that it answers
 * at.
 */
#include "netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	struct nlmsghdr head;
	char rest[256];
};

/* Not of the public internet (RFC 6890). slirp4netns' own 10.0.2.0/24 is more specific than 10/8.
 */
static const struct range {
	uint8_t a, b;
	uint8_t bits;
} private_ranges[] = {
	{0, 0, 8},
	{10, 0, 8},
	{100, 64, 10},
	{169, 254, 16},
	{172, 16, 12},
	{192, 168, 16},
	{198, 18, 15},
	{224, 0, 4},
	{240, 0, 4},
};

void netns_host_addresses(struct host_addresses *ret)
{
	struct ifaddrs *all = NULL;
	ret->n = 0;
	if (getifaddrs(&all) < 0)
		return;
	for (struct ifaddrs *i = all; i && ret->n < HOST_ADDRESSES_MAX; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		struct sockaddr_in in;
		memcpy(&in, i->ifa_addr, sizeof in);
		if (ntohl(in.sin_addr.s_addr) >> 24 != 127) /* that is the box's own loopback */
			ret->a[ret->n++] = in.sin_addr.s_addr;
	}
	freeifaddrs(all);
}

bool netns_loopback_up(void)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool ok = ioctl(fd, SIOCGIFFLAGS, &r) == 0;
	r.ifr_flags |= IFF_UP;
	ok = ok && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
	(void)close(fd);
	return ok;
}

static void add(struct request *r, unsigned short type, const void *p, size_t n)
{
	struct rtattr a = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(n)};
	char *at = (char *)r + NLMSG_ALIGN(r->head.nlmsg_len);
	memcpy(at, &a, sizeof a);
	memcpy(at + RTA_LENGTH(0), p, n);
	r->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->head.nlmsg_len) + RTA_ALIGN(RTA_LENGTH(n)));
}

/* Sends a request and reads its acknowledgement. */
static bool ask(int fd, struct request *r)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} reply;
	r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
	if (send(fd, r, r->head.nlmsg_len, 0) < 0)
		return false;
	ssize_t n = recv(fd, &reply, sizeof reply, 0);
	return n >= (ssize_t)(sizeof reply.head + sizeof(int)) &&
	       reply.head.nlmsg_type == NLMSG_ERROR &&
	       (reply.error.error == 0 || reply.error.error == -EEXIST);
}

static bool unreachable(int fd, uint32_t address, uint8_t bits)
{
	struct request r = {.head = {.nlmsg_type = RTM_NEWROUTE}};
	struct rtmsg route = {.rtm_family = AF_INET,
		.rtm_dst_len = bits,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_type = RTN_UNREACHABLE};
	memcpy(r.rest, &route, sizeof route);
	r.head.nlmsg_len = NLMSG_LENGTH(sizeof route);
	add(&r, RTA_DST, &address, sizeof address);
	return ask(fd, &r);
}

/* A rule for packets to one address: only to a port of a protocol, or (protocol 0) all of them. */
static bool rule(int fd, uint32_t order, uint32_t address, uint8_t protocol)
{
	struct request r = {.head = {.nlmsg_type = RTM_NEWRULE}};
	struct fib_rule_hdr h = {.family = AF_INET,
		.dst_len = 32,
		.action = protocol ? FR_ACT_TO_TBL : FR_ACT_UNREACHABLE,
		.table = protocol ? RT_TABLE_MAIN : RT_TABLE_UNSPEC};
	struct fib_rule_port_range dns = {53, 53};
	memcpy(r.rest, &h, sizeof h);
	r.head.nlmsg_len = NLMSG_LENGTH(sizeof h);
	add(&r, FRA_DST, &address, sizeof address);
	add(&r, FRA_PRIORITY, &order, sizeof order);
	if (protocol) {
		add(&r, FRA_IP_PROTO, &protocol, sizeof protocol);
		add(&r, FRA_DPORT_RANGE, &dns, sizeof dns);
	}
	return ask(fd, &r);
}

bool netns_public_only(const struct host_addresses *host)
{
	uint32_t resolver;
	bool ok = inet_pton(AF_INET, NETNS_RESOLVER, &resolver) == 1;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return false;
	for (size_t i = 0; i < sizeof private_ranges / sizeof *private_ranges; i++) {
		const struct range *p = &private_ranges[i];
		uint32_t first = htonl((uint32_t)p->a << 24 | (uint32_t)p->b << 16);
		ok = ok && unreachable(fd, first, p->bits);
	}
	for (int i = 0; i < host->n; i++)
		ok = ok && unreachable(fd, host->a[i], 32);
	/* The resolver's address stands for the host's own resolver, whatever the port, and that is
	 * often on the host's loopback: so nothing but DNS may go there. */
	ok = ok && rule(fd, 100, resolver, IPPROTO_UDP) && rule(fd, 101, resolver, IPPROTO_TCP) &&
	     rule(fd, 102, resolver, 0);
	(void)close(fd);
	return ok;
}
