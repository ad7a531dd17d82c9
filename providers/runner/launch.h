/*
 * The launcher: a small process of its own that makes and ends boxes.
 *
 * It is the only part that keeps rights. The HTTP side asks it over a socket pair and, when we were
 * started as root, has none. When the HTTP side is gone for whatever reason, the launcher ends
 * every box, removes groups and connection file, and exits; when the launcher is gone, the kernel
 * kills the boxes (death signals), and the HTTP side stops.
 */
#pragma once
#include "config.h"

#include <stdbool.h>
#include <sys/types.h>

struct launcher; /* of the HTTP side */

/* Forks the launcher; call while there is one thread. at_end runs in it at the very end. */
struct launcher *launcher_start(const struct config *c, void (*at_end)(void));
/* The launcher's pid; its socket, readable only when it is gone. */
pid_t launcher_pid(const struct launcher *l);
bool launcher_alive(struct launcher *l);
/* Ends every box, waits for the launcher's exit. */
void launcher_stop(struct launcher *l);

struct launched {
	int socket;           /* to the box's init */
	unsigned controllers; /* limits that hold: bits of enum controller */
};
/* NULL, or a fixed text that tells why there is no box. May be called by several threads. */
const char *launch_box(struct launcher *l, const char *id, enum network network,
	const struct limits *limits, struct launched *ret);
/* True when nothing of the box is left (also when it never was). False: ask again. */
bool launch_end(struct launcher *l, const char *id);
