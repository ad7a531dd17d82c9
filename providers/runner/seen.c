/* A set of hashed ids: open addressing, at most half full, never shrinks. */
#include "seen.h"

#include "arena.h"
#include "clock.h"

#define FIRST_PLACES 64

/* FNV-1a twice, from different random starts. */
static void hash(const struct seen *s, const char *id, uint64_t out[2])
{
	for (int k = 0; k < 2; k++) {
		out[k] = s->seed[k];
		for (const char *c = id; *c; c++)
			out[k] = (out[k] ^ (uint8_t)*c) * 0x100000001b3ull;
		out[k] ^= out[k] >> 29;
	}
	out[1] |= 1; /* zero marks a free place */
}

static uint64_t (*table(struct arena **ret_a, size_t places))[2]
{
	*ret_a = arena_new(places * 16 + 4096);
	return arena_take(*ret_a, places * 16);
}

void seen_init(struct seen *s)
{
	*s = (struct seen){.places = FIRST_PLACES};
	random_bytes(s->seed, sizeof s->seed);
	s->at = table(&s->a, s->places);
}

void seen_done(struct seen *s)
{
	arena_free(s->a);
	*s = (struct seen){0};
}

bool seen_full(const struct seen *s)
{
	return s->n >= SEEN_MAX;
}

/* The place of a hash, or the free one where it belongs. */
static size_t place(uint64_t (*at)[2], size_t places, const uint64_t h[2])
{
	size_t i = h[0] & (places - 1);
	while (at[i][1] && (at[i][0] != h[0] || at[i][1] != h[1]))
		i = (i + 1) & (places - 1);
	return i;
}

static void grow(struct seen *s)
{
	struct arena *a;
	size_t places = s->places * 2;
	uint64_t(*at)[2] = table(&a, places);
	for (size_t i = 0; i < s->places; i++)
		if (s->at[i][1]) {
			size_t to = place(at, places, s->at[i]);
			at[to][0] = s->at[i][0];
			at[to][1] = s->at[i][1];
		}
	arena_free(s->a);
	s->a = a;
	s->at = at;
	s->places = places;
}

void seen_add(struct seen *s, const char *id)
{
	uint64_t h[2];
	hash(s, id, h);
	if ((s->n + 1) * 2 > s->places)
		grow(s);
	size_t i = place(s->at, s->places, h);
	s->n += s->at[i][1] == 0;
	s->at[i][0] = h[0];
	s->at[i][1] = h[1];
}

bool seen_has(const struct seen *s, const char *id)
{
	uint64_t h[2];
	hash(s, id, h);
	return s->at[place(s->at, s->places, h)][1] != 0;
}
