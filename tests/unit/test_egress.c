/* Which addresses may be reached: first and last of every denied range, and their neighbours. */
#include "egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

static const struct {
	const char *address;
	bool allowed;
} cases[] = {
	/* clang-format off */
	{"0.0.0.0", false}, {"0.255.255.255", false}, {"1.0.0.0", true}, {"1.1.1.1", true},
	{"8.8.8.8", true}, {"9.255.255.255", true}, {"10.0.0.0", false}, {"10.255.255.255", false},
	{"11.0.0.0", true}, {"100.63.255.255", true}, {"100.64.0.0", false},
	{"100.100.100.200", false}, {"100.127.255.255", false}, {"100.128.0.0", true},
	{"126.255.255.255", true}, {"127.0.0.0", false}, {"127.0.0.1", false}, {"127.1.2.3", false},
	{"127.255.255.255", false}, {"128.0.0.0", true}, {"169.253.255.255", true},
	{"169.254.0.0", false}, {"169.254.169.254", false}, {"169.254.255.255", false},
	{"169.255.0.0", true}, {"172.15.255.255", true}, {"172.16.0.0", false},
	{"172.31.255.255", false}, {"172.32.0.0", true}, {"191.255.255.255", true},
	{"192.0.0.0", false}, {"192.0.0.192", false}, {"192.0.0.255", false}, {"192.0.1.0", true},
	{"192.0.2.0", false}, {"192.0.2.255", false}, {"192.0.3.0", true}, {"192.88.98.255", true},
	{"192.88.99.0", false}, {"192.88.99.255", false}, {"192.88.100.0", true},
	{"192.167.255.255", true}, {"192.168.0.0", false}, {"192.168.255.255", false},
	{"192.169.0.0", true}, {"198.17.255.255", true}, {"198.18.0.0", false},
	{"198.19.255.255", false}, {"198.20.0.0", true}, {"198.51.99.255", true},
	{"198.51.100.0", false}, {"198.51.100.255", false}, {"198.51.101.0", true},
	{"203.0.112.255", true}, {"203.0.113.0", false}, {"203.0.113.255", false},
	{"203.0.114.0", true}, {"223.255.255.255", true}, {"224.0.0.0", false},
	{"239.255.255.255", false}, {"240.0.0.0", false}, {"255.255.255.255", false},

	{"::", false}, {"::1", false}, {"::2", false}, {"::7f00:1", false}, {"::8.8.8.8", false},
	{"1fff:ffff::", false}, {"2000::", true}, {"2000::1", true}, {"2001::", false},
	{"2001:0:4136:e378:8000:63bf:3fff:fdd2", false}, {"2001:2::1", false},
	{"2001:10::1", false}, {"2001:20::1", false}, {"2001:1ff:ffff::", false},
	{"2001:200::", true}, {"2001:4860:4860::8888", true}, {"2001:db7:ffff::", true},
	{"2001:db8::", false}, {"2001:db8:ffff:ffff::", false}, {"2001:db9::", true},
	{"2606:4700:4700::1111", true}, {"2a00:1450:4001::1", true}, {"3ffe:ffff::", true},
	{"3fff::", false}, {"3fff:fff::1", false}, {"3fff:1000::", true},
	{"4000::", false}, {"5f00::1", false}, {"fc00::", false}, {"fd00:ec2::254", false},
	{"fdff:ffff::", false}, {"fe80::1", false}, {"febf::1", false}, {"fec0::1", false},
	{"ff02::1", false}, {"ff0e::1", false}, {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},

	{"::ffff:127.0.0.1", false}, {"::ffff:7f00:1", false}, {"::ffff:10.1.2.3", false},
	{"::ffff:169.254.169.254", false}, {"::ffff:0.0.0.0", false}, {"::ffff:8.8.8.8", true},
	{"::fffe:8.8.8.8", false}, {"::1:ffff:8.8.8.8", false}, {"::ffff:0:8.8.8.8", false},
	{"64:ff9b::127.0.0.1", false}, {"64:ff9b::192.168.1.1", false},
	{"64:ff9b::a9fe:a9fe", false}, {"64:ff9b::8.8.8.8", true}, {"64:ff9b:1::8.8.8.8", false},
	{"64:ff9b::1:8.8.8.8", false}, {"2002:7f00:1::", false}, {"2002:a00:1::1", false},
	{"2002:a9fe:a9fe::", false}, {"2002:c0a8:101::1", false}, {"2002:808:808::1", true},
	/* clang-format on */
};

static bool judged(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(443)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return egress_allowed((const struct sockaddr *)&in);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return egress_allowed((const struct sockaddr *)&in6);
}

static void every_listed_address_is_judged_as_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (judged(cases[i].address) != cases[i].allowed)
			fail_msg("%s", cases[i].address);
		if (egress_allowed_text(cases[i].address) != cases[i].allowed)
			fail_msg("as text: %s", cases[i].address);
	}
}

/* The list once more, written as ranges of numbers: first and last of each. */
static const uint32_t denied[][2] = {
	{0x00000000, 0x00ffffff},
	{0x0a000000, 0x0affffff},
	{0x64400000, 0x647fffff},
	{0x7f000000, 0x7fffffff},
	{0xa9fe0000, 0xa9feffff},
	{0xac100000, 0xac1fffff},
	{0xc0000000, 0xc00000ff},
	{0xc0000200, 0xc00002ff},
	{0xc0586300, 0xc05863ff},
	{0xc0a80000, 0xc0a8ffff},
	{0xc6120000, 0xc613ffff},
	{0xc6336400, 0xc63364ff},
	{0xcb007100, 0xcb0071ff},
	{0xe0000000, 0xffffffff},
};

static bool denied_number(uint32_t n)
{
	for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
		if (n >= denied[i][0] && n <= denied[i][1])
			return true;
	return false;
}

/* One address of every /24, and the same address mapped, translated and as 6to4. */
static void all_forms_of_an_ipv4_address_are_judged_alike(void **state)
{
	(void)state;
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6}, nat64 = mapped, sixto4 = mapped;
	inet_pton(AF_INET6, "::ffff:0:0", &mapped.sin6_addr);
	inet_pton(AF_INET6, "64:ff9b::", &nat64.sin6_addr);
	inet_pton(AF_INET6, "2002::", &sixto4.sin6_addr);
	for (uint32_t net = 0; net < 1u << 24; net += 7) {
		uint32_t number = net << 8 | (net & 0xff), wire = htonl(number);
		bool want = !denied_number(number);
		in.sin_addr.s_addr = wire;
		memcpy(mapped.sin6_addr.s6_addr + 12, &wire, 4);
		memcpy(nat64.sin6_addr.s6_addr + 12, &wire, 4);
		memcpy(sixto4.sin6_addr.s6_addr + 2, &wire, 4);
		bool same = egress_allowed((const struct sockaddr *)&in) == want &&
			    egress_allowed((const struct sockaddr *)&mapped) == want &&
			    egress_allowed((const struct sockaddr *)&nat64) == want &&
			    egress_allowed((const struct sockaddr *)&sixto4) == want;
		if (!same)
			fail_msg("%08x", number);
	}
}

static void other_families_are_denied(void **state)
{
	(void)state;
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/run/x.sock"};
	struct sockaddr_storage none = {.ss_family = AF_UNSPEC}, packet = {.ss_family = AF_PACKET};
	assert_false(egress_allowed((const struct sockaddr *)&un));
	assert_false(egress_allowed((const struct sockaddr *)&none));
	assert_false(egress_allowed((const struct sockaddr *)&packet));
}

static void texts_that_are_no_plain_address_are_denied(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", "localhost", "example.com", "8.8.8", "8.8.8.8 ",
		"08.8.8.8", "0x8.8.8.8", "134744072", "[2606:4700::1]", "2606:4700::1%eth0",
		"8.8.8.8:443", "8.8.8.8/32", "2606:4700", "::ffff:8.8.8"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (egress_allowed_text(wrong[i]))
			fail_msg("%s", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_listed_address_is_judged_as_it_should),
		cmocka_unit_test(all_forms_of_an_ipv4_address_are_judged_alike),
		cmocka_unit_test(other_families_are_denied),
		cmocka_unit_test(texts_that_are_no_plain_address_are_denied),
	};
	return cmocka_run_group_tests_name("egress", tests, NULL, NULL);
}
