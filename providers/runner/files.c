/*
 * Files of a sandbox, read and written by a process inside it, so that paths, links, rights and
 * limits are the box's own. Promises: a block is written whole or not at all; only plain files.
 */
#include "sandbox.h"

#include "buf.h"
#include "clock.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define FILE_MS 60000

static enum wrong wrong_of(int e)
{
	switch (e) {
	case 0:
		return WRONG_NOTHING;
	case ENOENT:
		return WRONG_FILE_ABSENT;
	case EISDIR:
		return WRONG_DIRECTORY;
	case ESTALE:
		return wrong(WRONG_CONFLICT, "offset is not the present size of the file");
	case ENOSPC:
		return wrong(WRONG_FILE, "no space is left in the sandbox");
	case EINVAL:
		return wrong(WRONG_FILE, "path is no plain file");
	case EACCES:
	case EPERM:
	case EROFS:
		return wrong(WRONG_FILE, "this path may not be used");
	case ENOTDIR:
		return wrong(WRONG_FILE, "a part of path is no folder");
	default:
		return wrong(WRONG_FILE, "the file can not be used (error %d)", e);
	}
}

/* Sends the call; ours is our end of the pipe that carries the bytes. */
static enum wrong begin(struct sandbox *s, const struct wire_head *h, const char *path,
	struct exec **ret, int *ret_ours)
{
	bool reads = h->op == WIRE_READ;
	int ends[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	CLEANUP_BUF struct buf message;
	buf_init(&message, WIRE_BYTES_MAX);
	buf_put(&message, h, sizeof *h);
	buf_put(&message, path, strlen(path) + 1);
	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		if (null >= 0)
			(void)close(null);
		return wrong(WRONG_CAPACITY, "the runner has no descriptors left");
	}
	int ours = ends[reads ? 0 : 1], theirs = ends[reads ? 1 : 0];
	const int fds[3] = {reads ? null : theirs, reads ? theirs : null, null};
	(void)fcntl(ours, F_SETFL, O_NONBLOCK);
	struct exec *e = exec_new(s);
	registry_lock();
	enum wrong w = call_send(s, e, &message, fds);
	if (w) {
		e->refs = 1;
		exec_put_locked(e);
	}
	registry_unlock();
	(void)close(theirs);
	(void)close(null);
	if (w)
		(void)close(ours);
	*ret = e;
	*ret_ours = ours;
	return w;
}

static enum wrong finish(struct exec *e)
{
	registry_lock();
	int64_t until = clock_mono_ms() + START_WAIT_MS;
	while ((e->state == EXEC_NEW || e->state == EXEC_RUNNING) && !registry.stopping &&
		registry_wait(&e->changed, until))
		;
	enum wrong w = e->state == EXEC_DONE ? wrong_of(e->code)
		       : e->state == EXEC_REFUSED
			       ? wrong(WRONG_CAPACITY, "the sandbox has no room for a process")
			       : WRONG_PROVIDER;
	exec_put_locked(e);
	registry_unlock();
	return w;
}

static bool ready(int fd, short events, int64_t until)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left = until - clock_mono_ms();
	return left > 0 && poll(&p, 1, (int)left) == 1;
}

/* Reads to the end: first the size of the whole file, then bytes. False when the size never came.
 */
static bool read_all(int fd, struct buf *ret, int64_t *ret_size)
{
	char piece[16384];
	size_t head = 0;
	int64_t until = clock_mono_ms() + FILE_MS;
	while (ready(fd, POLLIN, until)) {
		bool in_head = head < sizeof *ret_size;
		ssize_t n = in_head ? read(fd, (char *)ret_size + head, sizeof *ret_size - head)
				    : read(fd, piece, sizeof piece);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		if (n > 0 && in_head)
			head += (size_t)n;
		else if (n > 0)
			buf_put(ret, piece, (size_t)n);
	}
	return head == sizeof *ret_size;
}

enum wrong file_read(struct sandbox *s, const char *path, int64_t offset, int64_t length,
	struct buf *ret, int64_t *ret_size)
{
	struct wire_head h = {.op = WIRE_READ, .x = offset, .y = length};
	struct exec *e;
	int fd;
	enum wrong w = begin(s, &h, path, &e, &fd);
	if (w)
		return w;
	*ret_size = 0;
	bool whole = read_all(fd, ret, ret_size) && !ret->full;
	(void)close(fd);
	w = finish(e);
	return w ? w : whole ? WRONG_NOTHING : WRONG_PROVIDER;
}

enum wrong file_write(struct sandbox *s, const char *path, int64_t offset, const void *p, size_t n,
	int64_t *ret_size)
{
	struct wire_head h = {.op = WIRE_WRITE, .x = offset, .y = (int64_t)n};
	struct exec *e;
	int fd;
	enum wrong w = begin(s, &h, path, &e, &fd);
	if (w)
		return w;
	int64_t until = clock_mono_ms() + FILE_MS;
	for (size_t at = 0; at < n && ready(fd, POLLOUT, until);) {
		ssize_t k = write(fd, (const char *)p + at, n - at);
		if (k < 0 && errno != EAGAIN && errno != EINTR)
			break; /* the other side gave up; its exit tells why */
		at += k > 0 ? (size_t)k : 0;
	}
	(void)close(fd);
	*ret_size = offset + (int64_t)n;
	return finish(e);
}
