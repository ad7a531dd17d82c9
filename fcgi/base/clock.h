/*
 * Time and randomness: the only places where either enters the program.
 *
 * Tests shift the wall clock with CC_CLOCK_SHIFT_S (seconds, may be negative; debug builds only),
 * so that midnight, expiry and retention can be reached without waiting.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

int64_t clock_ms(void);      /* wall clock, milliseconds since 1970, UTC */
int64_t clock_mono_ms(void); /* monotonic; only differences mean anything */
int64_t clock_mono_us(void);
void clock_sleep_ms(int64_t ms);

/* n bytes of the system generator; the process ends when there are none. */
void random_bytes(void *p, size_t n);
uint32_t random_below(uint32_t limit); /* 0 ... limit - 1, limit > 0 */
