/* The command line: one table of rows (options.c) for reader and help. */
#pragma once
#include "config.h"

#include <stdbool.h>

/* Reads it into c, whose defaults are set first. Prints the reason to standard error and returns
 * false when something is wrong; *ret_exit is the status to leave with. */
bool options_read(int argc, char **argv, struct config *c, int *ret_exit);

/* Memory of this machine in MiB, for the default limits. */
int64_t machine_memory_mib(void);
