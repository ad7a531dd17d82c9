/* Adds the numbers of a text such as "1 2 3". */
#pragma once

/* True and the sum in *ret; false when something in the text is not a number or the sum is too
 * large. */
_Bool sum_text(const char *text, long *ret);
