/*
 * The token and the connection file that tells it to the user.
 *
 * Made exclusively, 0600, in a folder that nobody else may write to; written whole, then renamed;
 * removed at the end only while it is still ours. A file of a dead run is removed at start, one of
 * a living run is an error.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the token of this run: 43 characters. */
void token_make(void);
/* True when the n characters at p are the token; takes the same time for every wrong one. */
bool token_equals(const char *p, size_t n);

/* NULL, or what is wrong in fixed words. path NULL: there is no file. */
const char *connection_prepare(const char *path);
const char *connection_publish(const char *url, int64_t expires_ms);
void connection_remove(void);

/* The pid in the text of a connection file; 0 when it holds none. */
int64_t connection_pid(const char *text, size_t n);
