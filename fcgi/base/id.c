/* Our ids. */
#include "id.h"

#include "clock.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

struct id id_new(void)
{
	struct id i;
	uint64_t ms = (uint64_t)clock_ms();
	for (int k = 0; k < 6; k++)
		i.b[k] = (uint8_t)(ms >> (40 - 8 * k));
	random_bytes(i.b + 6, sizeof i.b - 6);
	return i;
}

bool id_equal(struct id a, struct id b)
{
	return memcmp(a.b, b.b, sizeof a.b) == 0;
}

bool id_is_null(struct id i)
{
	static const struct id none;
	return id_equal(i, none);
}

const char *id_text(char out[ID_TEXT_SIZE], const char *prefix, struct id i)
{
	int n = prefix ? snprintf(out, ID_TEXT_SIZE - ID_TEXT_CHARS, "%s_", prefix) : 0;
	base32_encode(out + n, i.b, sizeof i.b);
	return out;
}

bool id_parse(const char *s, const char *prefix, struct id *ret)
{
	size_t n = prefix ? strlen(prefix) : 0;
	if (prefix && (strncmp(s, prefix, n) != 0 || s[n++] != '_'))
		return false;
	if (strlen(s + n) != ID_TEXT_CHARS)
		return false;
	return base32_decode(ret->b, sizeof ret->b, s + n);
}
