/*
 * Our ids: 16 bytes, 6 of time (milliseconds) and 10 random, so they sort by age and can not be
 * guessed. Shown as a prefix, an underscore and 26 characters of base32 in lower case (job_...).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct id {
	uint8_t b[16];
};

#define ID_TEXT_CHARS 26 /* ceil(128 / 5) */
#define ID_TEXT_SIZE  40 /* prefix of at most 12, underscore, 26, NUL */

struct id id_new(void);
bool id_equal(struct id a, struct id b);
bool id_is_null(struct id i); /* all bytes zero: "no id" */

/* Writes prefix_26 characters (or only the 26 when prefix is NULL) and returns out. */
const char *id_text(char out[ID_TEXT_SIZE], const char *prefix, struct id i);

/* Reads exactly what id_text writes; false when s is anything else. */
bool id_parse(const char *s, const char *prefix, struct id *ret);
