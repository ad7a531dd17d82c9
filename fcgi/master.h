/*
 * The master: opens the socket, starts workers and the keeper by fork and exec, and only
 * supervises.
 *
 * SIGHUP: new workers and a new keeper are started from the binary on disk with freshly read
 * settings; when all of them reported ready the old ones get SIGTERM; when one did not, the new
 * ones are stopped and the old go on. SIGTERM and SIGINT: children get SIGTERM and are waited for.
 * A child that dies is started again, with a growing pause when it dies young, and `child_ended` is
 * called so that its jobs are claimed at once.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct master_conf {
	const char *socket_path;  /* NULL: the socket is inherited (LISTEN_FDS, or descriptor 0) */
	const char *socket_group; /* group of the socket (nginx's), NULL: own */
	unsigned workers;         /* 0: cores, at least 2 */
	int drain_s;
	const char *self; /* path of the binary to exec; the children get argv "worker"/"keeper" */
	char *const *child_args; /* further arguments for a child (e.g. --config FILE),
				    NULL-terminated */
};

struct master_hooks {
	/* SIGHUP: reads the settings anew; false: they are bad, nothing is reloaded. */
	bool (*reload)(struct master_conf *conf);
	/* A child ended (any reason). Runs in the master; may not block long. */
	void (*child_ended)(pid_t pid, bool worker);
};

/*
 * Opens or takes the socket and supervises until SIGTERM or SIGINT. Returns the exit status: 0, or
 * 1 when the start failed or a child had to be killed in the end.
 *
 * A child is executed as `self worker ...` or `self keeper ...` with CC_LISTEN_FD (-1 for the
 * keeper) and CC_READY_FD in its environment; it writes one byte to CC_READY_FD when it serves. It
 * starts with no signal blocked, and gets SIGTERM when the master dies. A child that exits by
 * itself before the first ones were all ready ends the master: the program or its settings are bad.
 *
 * A reload does not move the socket. The service manager (NOTIFY_SOCKET) is told READY=1,
 * RELOADING=1 and STOPPING=1.
 */
int master_run(struct master_conf *conf, const struct master_hooks *hooks);
