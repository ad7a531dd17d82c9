/*
 * Which exec ids a sandbox has run and forgotten, so that none ever runs twice. Keeps 16 bytes per
 * id under a random seed; a false hit (2^-90 at the maximum) refuses, it never runs anything.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEN_MAX 200000 /* one command every 430 ms for a day; 6 MB */

struct arena;
struct seen {
	struct arena *a;
	uint64_t (*at)[2];
	size_t n, places;
	uint64_t seed[2];
};

void seen_init(struct seen *s);
void seen_done(struct seen *s);
bool seen_full(const struct seen *s);
void seen_add(struct seen *s, const char *id);
bool seen_has(const struct seen *s, const char *id);
