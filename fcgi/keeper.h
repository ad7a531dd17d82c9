/*
 * The keeper: background duties that no request waits for.
 *
 * Every work item is claimed by compare-and-set, so several keepers are harmless. The duties: mark
 * silent processes dead, go on with driverless jobs, confirm stops with growing pauses, sweep the
 * providers, erase deleted accounts and unused keys, roll up, delete what is older than the
 * retention.
 */
#pragma once
#include "conf.h"

/* Runs until SIGTERM; writes one byte to ready_fd when it works. Returns the exit status. */
int keeper_run(const struct conf *conf, int ready_fd);
