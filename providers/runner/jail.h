/*
 * Turns the calling (forked) process into a box: groups, namespaces, private files, fewer rights,
 * bubblewrap, our init. Never returns.
 */
#pragma once
#include "cgroup.h"
#include "config.h"
#include "netns.h"

struct jail {
	const struct config *config;
	const struct cgroups *groups;
	const struct host_addresses *host;
	const char *id;
	enum network network;
	struct limits limits;
	unsigned controllers; /* groups to join */
	int socket;           /* init's end of the pair */
	int info;             /* bubblewrap writes the number of the first process here */
	int ready, go;        /* a byte out when the namespaces are there, a byte in to go on */
};

void jail_enter(const struct jail *j) __attribute__((noreturn));
