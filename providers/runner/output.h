/*
 * One output stream of a command: appended by one thread, read by others at any offset.
 *
 * The first bytes stay in memory, the rest goes to a file without a name, so nothing is left on
 * disk whatever happens. Beyond OUTPUT_BYTES_MAX, or when the disk is full, bytes are dropped and
 * counted; the command is never blocked and its exit code never lost.
 */
#pragma once
#include "buf.h"

#include <stddef.h>
#include <stdint.h>

#define OUTPUT_BYTES_MAX  (256ll << 20)
#define OUTPUT_MEMORY_MAX 8192 /* most commands of a connector say less */

struct output {
	struct buf memory;
	int fd; /* -1 while everything is in memory */
	int64_t size, dropped;
};

void output_init(struct output *o);
void output_done(struct output *o);

/* Appends; the caller publishes the new size under its lock: output_append writes behind o->size
 * and returns how many bytes were kept. Only one thread may append. */
size_t output_append(struct output *o, const void *p, size_t n);

/* Up to n bytes from offset (below o->size); the number read. A stream in memory may only be read
 * under the lock of the appender; one in a file any time. */
size_t output_read(const struct output *o, int64_t offset, void *p, size_t n);
