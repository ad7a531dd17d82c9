/*
 * The master's children: one place per wanted child, and a list of those that were told to leave.
 *
 * Times are monotonic milliseconds; 0 means never.
 */
#pragma once
#include "master.h"

#include <stdint.h>

struct place {
	bool worker;
	bool ready;
	pid_t pid;    /* 0: not running */
	int ready_fd; /* -1: reported, or not running */
	int64_t started_at;
	int64_t start_at; /* when to start it again */
	int pause_ms;     /* the last pause before a restart; 0: none was needed */
};

/* The children of one start or reload: the workers, then the keeper. */
struct team {
	struct place *places;
	unsigned n;
};

void team_make(struct team *t, const struct master_conf *conf);
void team_free(struct team *t);
bool team_ready(const struct team *t);
struct place *team_find(const struct team *t, pid_t pid);

/* Starts the child of a place; when that fails, or when it dies, place_restart plans another try.
 */
void place_start(struct place *p, const struct master_conf *conf, int listen_fd);
/* Its child is gone: plans the next start. At once when it lived long, else after a doubled pause.
 */
void place_restart(struct place *p, int64_t now);
/* The child wrote to its readiness pipe, or closed it. */
void place_report(struct place *p);

struct leavers {
	struct leaver {
		pid_t pid;
		bool worker;
		int64_t kill_at;
	} * at;
	unsigned n;
	bool killed; /* one of them had to be killed */
};

/* Sends SIGTERM to every child of the team and moves it to the leavers, to be killed at kill_at. */
void team_leave(struct team *t, struct leavers *l, int64_t kill_at);
/* True when pid was a leaver; it is one no more. */
bool leavers_remove(struct leavers *l, pid_t pid, bool *ret_worker);
/* Kills those whose time has come. */
void leavers_kill(struct leavers *l, int64_t now);
