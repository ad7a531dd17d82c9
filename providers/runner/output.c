/* Output streams: memory first, then a nameless file. See output.h for the promises. */
#include "output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Large scratch space belongs into /var/tmp (FHS 5.15): /tmp is often memory. */
static const char *const folders[] = {"/var/tmp", "/tmp"};

static int nameless_file(void)
{
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char name[64];
		int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
		/* File systems without nameless files: unlinked at once. */
		(void)snprintf(name, sizeof name, "%s/compute-runner-XXXXXX", folders[i]);
		fd = mkostemp(name, O_CLOEXEC);
		if (fd >= 0 && unlink(name) == 0)
			return fd;
		if (fd >= 0)
			(void)close(fd);
	}
	return -1;
}

void output_init(struct output *o)
{
	*o = (struct output){.fd = -1};
	buf_init(&o->memory, OUTPUT_MEMORY_MAX);
}

void output_done(struct output *o)
{
	buf_done(&o->memory);
	if (o->fd >= 0)
		(void)close(o->fd);
	o->fd = -1;
}

static size_t write_at(int fd, int64_t at, const char *p, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t w = pwrite(fd, p + done, n - done, at + (int64_t)done);
		if (w <= 0)
			break;
		done += (size_t)w;
	}
	return done;
}

size_t output_append(struct output *o, const void *p, size_t n)
{
	if (o->dropped > 0)
		return 0; /* a gap would shift every later offset */
	if (o->fd < 0) {
		buf_put(&o->memory, p, n);
		if (!o->memory.full)
			return n;
		o->memory.full = false;
		int fd = nameless_file();
		if (fd < 0)
			return 0;
		if (write_at(fd, 0, o->memory.p, o->memory.n) < o->memory.n) {
			(void)close(fd);
			return 0;
		}
		o->fd = fd;
		buf_done(&o->memory);
	}
	int64_t room = OUTPUT_BYTES_MAX - o->size;
	return write_at(o->fd, o->size, p, (int64_t)n < room ? n : (size_t)room);
}

size_t output_read(const struct output *o, int64_t offset, void *p, size_t n)
{
	if (offset >= o->size)
		return 0;
	if ((int64_t)n > o->size - offset)
		n = (size_t)(o->size - offset);
	if (o->fd < 0) {
		memcpy(p, o->memory.p + offset, n);
		return n;
	}
	ssize_t got = pread(o->fd, p, n, offset);
	return got > 0 ? (size_t)got : 0;
}
