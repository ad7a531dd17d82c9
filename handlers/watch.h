/*
 * Waiting for the end of jobs, whoever drives them.
 *
 * A driver in this process wakes its watchers at once. For jobs driven elsewhere one thread per
 * process asks the database every WATCH_MS for the jobs that ended lately.
 */
#pragma once
#include "id.h"

#include <stdbool.h>
#include <stdint.h>

struct watch;

/* Starts to watch a job; free with watch_end. */
struct watch *watch_begin(struct id job);
void watch_end(struct watch *w);

/* Waits until the job was signalled since the last call, or until_ms (clock_mono_ms) is reached. */
bool watch_wait(struct watch *w, int64_t until_ms);

/* Wakes one watch (the argument is the watch), e.g. because its client has gone. */
void watch_wake(void *w);

/* Wakes everybody who watches this job. */
void watch_signal(struct id job);

/* Wakes every watch of this process. */
void watch_wake_all(void);

/* The thread that asks the database; once per process. */
void watch_start(void);
void watch_stop(void);
