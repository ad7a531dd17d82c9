/*
 * Bodies of requests to Vercel Sandbox. Pure functions (vercel.c, tests).
 */
#pragma once
#include "buf.h"
#include "provider.h"

/* Refuses by name what the service can not give. *ret_cpu: processors to ask for, 0 for the
 * service's default; memory follows them. */
MUST_USE enum err vercel_check_spec(const struct box_spec *s, int64_t *ret_cpu);

/* A checked spec as JSON. The sandbox keeps nothing after its end, which is life_s after now. */
void vercel_write_spec(const char *project, const struct box_spec *s, int64_t cpu, struct buf *b);

/* A command that is waited for with its output, and is killed after wait_s. */
void vercel_write_command(const char *const *argv, int64_t wait_s, struct buf *b);

/* One file, mode 0600, as the gzip of a tar archive; path is relative to where it is unpacked. */
void vercel_pack_file(const char *path, const void *p, size_t n, struct buf *b);
