/* Time and randomness. */
#include "clock.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_us(clockid_t which)
{
	struct timespec t;
	(void)clock_gettime(which, &t); /* cannot fail for these clocks */
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t shift_ms(void)
{
#ifdef CC_TEST_SEAMS
	static int64_t shift = INT64_MIN;
	if (shift == INT64_MIN) {
		const char *s = getenv("CC_CLOCK_SHIFT_S");
		shift = s ? strtoll(s, NULL, 10) * 1000 : 0;
	}
	return shift;
#else
	return 0;
#endif
}

int64_t clock_ms(void)
{
	return now_us(CLOCK_REALTIME) / 1000 + shift_ms();
}

int64_t clock_mono_ms(void)
{
	return now_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
	return now_us(CLOCK_MONOTONIC);
}

void clock_sleep_ms(int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (nanosleep(&t, &t))
		;
}

void random_bytes(void *p, size_t n)
{
	if (RAND_bytes(p, (int)n) != 1)
		abort(); /* without randomness nothing here is safe */
}

uint32_t random_below(uint32_t limit)
{
	uint32_t r, most = UINT32_MAX - UINT32_MAX % limit;
	do
		random_bytes(&r, sizeof r);
	while (r >= most);
	return r % limit;
}
