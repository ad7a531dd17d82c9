/*
 * Which addresses may be reached from here. Judged after name resolution, on the address itself, so
 * no spelling and no rebinding gets round it.
 */
#pragma once
#include <stdbool.h>
#include <sys/socket.h>

/*
 * True for addresses of the public internet. Denied: IPv4 0/8, 10/8, 100.64/10, 127/8, 169.254/16,
 * 172.16/12, 192.0.0/24, 192.0.2/24, 192.88.99/24, 192.168/16, 198.18/15, 198.51.100/24,
 * 203.0.113/24, 224/4, 240/4; IPv6 outside 2000::/3, and 2001::/23 (protocol assignments, Teredo
 * among them), 2001:db8::/32 and 3fff::/20 (documentation) in it. Mapped (::ffff:0:0/96),
 * translated (64:ff9b::/96) and 6to4 (2002::/16) addresses are judged by the IPv4 address inside.
 * Other families are denied.
 */
bool egress_allowed(const struct sockaddr *address);

/* The same for an address in numbers as inet_pton reads it; anything else is denied. */
bool egress_allowed_text(const char *address);
