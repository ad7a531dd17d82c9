#include "sum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Bool sum_text(const char *text, long *ret)
{
	long sum = 0;
	while (*(text += strspn(text, " "))) {
		char *end;
		errno = 0;
		long number = strtol(text, &end, 10);
		if (errno || end == text || (*end && *end != ' '))
			return 0;
		if (__builtin_add_overflow(sum, number, &sum))
			return 0;
		text = end;
	}
	*ret = sum;
	return 1;
}
