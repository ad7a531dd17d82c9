/*
 * One control group per sandbox: memory, processes, CPU, under versions 1 and 2.
 *
 * Groups lie under our own one, in compute-runner/<name of this run>/<sandbox>. While a run lives
 * it holds a lock on its folder, so a later run can tell what a dead one left behind and removes
 * it.
 */
#pragma once
#include "config.h"

#include <stdbool.h>
#include <stddef.h>

enum controller { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU, CONTROLLER__MAX };

struct cgroups {
	bool v2[CONTROLLER__MAX];
	char base[CONTROLLER__MAX]
		 [512];             /* folder of this run; "" when the controller can't be had */
	int locks[CONTROLLER__MAX]; /* close-on-exec */
};

/* Finds the controllers, removes what dead runs left, makes the folders of this run. */
void cgroup_open(struct cgroups *g);
/* Removes the folders of this run; the sandboxes' groups are gone before. */
void cgroup_close(struct cgroups *g);

/* Makes the groups of a sandbox; returns a bit (1 << controller) for each limit that holds. */
unsigned cgroup_make(const struct cgroups *g, const char *id, const struct limits *limits);
/* Moves the calling process into them; false when one refuses. */
bool cgroup_join(const struct cgroups *g, const char *id, unsigned controllers);
/* Kills what is in them and removes them; false while something is left. Repeat later. */
bool cgroup_remove(const struct cgroups *g, const char *id);
/* Folder of the sandbox's memory group, and where scripts in the box expect to see it. */
bool cgroup_memory(const struct cgroups *g, const char *id, char path[640], const char **ret_shown);
