/*
 * Out of memory stops the process.
 *
 * json-c 0.16, fed one failing allocation after another, crashed or silently lost parts of a
 * document; no caller can repair that. So the program's malloc family writes a fixed line and ends
 * the process with MEMORY_EXIT when memory is out, for every library in it. Stopping is safe
 * because every death is: intent rows are written before effects. Freed memory is wiped, so that no
 * copy of a request stays in the heap. Sanitizer builds keep the sanitizer's allocator.
 */
#pragma once
#include <stddef.h>

#define MEMORY_EXIT 86

/* Ends the process; safe to call anywhere, also in a signal handler. */
void memory_is_out(void) __attribute__((noreturn));

/* p, or the end of the process when p is NULL. */
void *must(void *p);

/* free() that wipes n bytes first, in every build. */
void wipe_free(void *p, size_t n);
