#include "sum.h"

#include <stdio.h>

static int passed, failed;

static void check(const char *name, _Bool good)
{
	printf("%s  %s\n", good ? "ok  " : "FAIL", name);
	*(good ? &passed : &failed) += 1;
}

int main(void)
{
	long sum = -1;
	check("numbers are added", sum_text("1 2 39", &sum) && sum == 42);
	check("signs count", sum_text("-5 +3", &sum) && sum == -2);
	check("an empty text is zero", sum_text("", &sum) && sum == 0);
	check("a word is refused", !sum_text("1 two 3", &sum));
	check("a sum that does not fit is refused", !sum_text("9223372036854775807 1", &sum));
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
