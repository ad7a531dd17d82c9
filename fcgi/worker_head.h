/*
 * The head of a FastCGI request (BEGIN record and parameters), judged before libfcgi sees it.
 *
 * libfcgi reads a head blocking, and ends the process on parameter lengths whose sum passes 2 GiB.
 * So the event thread looks at the bytes first, without taking them from the socket: a head is
 * handed over only when it is whole and well formed, and a silent or malformed peer costs no
 * thread.
 */
#pragma once
#include <stddef.h>

enum head { HEAD_PARTIAL, HEAD_WHOLE, HEAD_BAD };

/*
 * Judges the first n bytes of a request. HEAD_WHOLE: one BEGIN record, then parameter records of
 * the same request up to the empty one, every name and value inside them. More than HEAD_BYTES_MAX
 * is bad. What follows the head is not looked at.
 */
enum head head_judge(const unsigned char *p, size_t n);
