/*
 * What one run of the runner was asked to do and what it may at most give to a sandbox.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum network { NETWORK_UNSET = -1, NETWORK_NONE, NETWORK_INTERNET, NETWORK_HOST, NETWORK__MAX };
const char *network_name(enum network n);
enum network network_parse(const char *s); /* NETWORK_UNSET when s is no mode */

/* Limits of one sandbox; 0 in a request: the runner's own. */
struct limits {
	int64_t memory_mib, pids, disk_mib;
	double cpus;
};

struct config {
	const char *listen;          /* 127.0.0.1:PORT, [::1]:PORT or unix:/path */
	const char *url;             /* what the connection file tells; NULL: the listen address */
	const char *connection_file; /* NULL: print where none is written */
	const char *rootfs;          /* NULL: system folders of this machine */
	const char *user;            /* of the boxes when we are root; NULL: BOX_UID */
	int64_t lifetime_s, sandboxes;
	enum network network; /* the most that a sandbox may have; NETWORK_UNSET: not said */
	struct limits most;
	bool check, tunnel;
	/* found out at start */
	bool root;
	uid_t box_uid;
	gid_t box_gid;
	const char *init; /* path of compute-runner-init */
	int listener;     /* bound, not yet listening */
};

/* As root, boxes and the HTTP side run under numbers that no account uses (Debian policy 9.2.2:
 * 60000 - 64999 is left to such purposes). They differ, so a box could not even signal the server.
 */
#define BOX_UID  64071
#define HTTP_UID 64070

#define LIFETIME_S_MIN     60
#define LIFETIME_S_MAX     86400
#define LIFETIME_S_DEFAULT 900
#define TTL_S_MAX          86400
#define SANDBOXES_DEFAULT  128
#define SANDBOXES_MAX      1000
#define SANDBOX_ID_SIZE    64 /* ^[a-z][a-z0-9-]{7,62}$ and a NUL */
#define EXEC_ID_SIZE       65 /* ^[A-Za-z0-9-]{8,64}$ and a NUL */
