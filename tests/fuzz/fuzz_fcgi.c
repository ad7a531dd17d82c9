/*
 * Fuzz target: the head of a FastCGI request. Every shorter part of a whole head is partial, and
 * what is judged whole is read by libfcgi to its end without waiting, without an error and without
 * ending the process.
 */
#include "bounds.h"
#include "fcgi/worker_head.h"

#include <assert.h>
#include <fcgiapp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The length of the head at p, of which the first n bytes are whole. */
static size_t head_length(const uint8_t *p, size_t n)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		enum head h = head_judge(p, middle);
		assert(h != HEAD_BAD);
		if (h == HEAD_WHOLE)
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}

/* What the worker does with it: sets the private fields, reads the head, drains, finishes. */
static void read_with_library(int fd, unsigned role)
{
	FCGX_Request r;
	FCGX_InitRequest(&r, -1, 0);
	r.ipcFd = fd;
	r.keepConnection = 1;
	FCGX_Detach(&r);
	int rc = FCGX_Accept_r(&r);
	assert((rc == 0) == (role >= 1 && role <= 3));
	if (rc != 0)
		return; /* the library has closed it */
	while (FCGX_GetChar(r.in) != EOF)
		;
	assert(FCGX_GetError(r.in) == 0);
	r.keepConnection = 0;
	FCGX_Finish_r(&r);
	assert(r.ipcFd < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	int ends[2];
	if (n > HEAD_BYTES_MAX || head_judge(p, n) != HEAD_WHOLE)
		return 0;
	size_t length = head_length(p, n);
	const uint8_t end_of_input[8] = {1, 5, p[2], p[3], 0, 0, 0, 0};
	(void)FCGX_Init();
	(void)signal(SIGPIPE, SIG_IGN);
	assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	assert(write(ends[0], p, length) == (ssize_t)length);
	assert(write(ends[0], end_of_input, sizeof end_of_input) == sizeof end_of_input);
	read_with_library(ends[1], (unsigned)p[8] << 8 | p[9]);
	close(ends[0]);
	return 0;
}
