/* Where the listening socket comes from, and what the service manager is told. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct listener {
	int fd;           /* close-on-exec */
	const char *path; /* of a socket that we made; NULL: inherited */
	dev_t device;     /* which file that is */
	ino_t inode;
};

/*
 * Makes the socket at path (mode 0660, owned by group when that is given), or takes the inherited
 * one when path is NULL. A socket left by an earlier master is replaced in one step, so there is no
 * moment without one; any other file is left alone. False: the reason was logged.
 */
bool listener_open(const char *path, const char *group, struct listener *ret);

/* Closes it; removes the file unless a later master has put its own there. */
void listener_close(struct listener *l);

/* Sends a state such as "READY=1" to the service manager, if there is one. */
void notify_manager(const char *state);
