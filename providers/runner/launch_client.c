/*
 * The HTTP side of the launcher. Calls are made one after the other under a lock; a launcher that
 * does not answer counts as gone, never as success.
 */
#include "launch.h"

#include "launch_wire.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct launcher {
	int fd;
	pid_t pid;
	pthread_mutex_t lock;
	char why[160];
};

static struct launcher only = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

bool launch_send(int to, const void *p, size_t n, int fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof fd)};
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	ssize_t sent;
	do
		sent = sendmsg(to, &m, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)n;
}

static bool receive(int from, struct launch_reply *r, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {.iov_base = r, .iov_len = sizeof *r};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	ssize_t n;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	*ret_fd = -1;
	if (n != sizeof *r)
		return false;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
	return true;
}

struct launcher *launcher_start(const struct config *c, void (*at_end)(void))
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid_t pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		launcher_main(c, pair[1], at_end);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		(void)close(pair[0]);
		return NULL;
	}
	only.fd = pair[0];
	only.pid = pid;
	return &only;
}

pid_t launcher_pid(const struct launcher *l)
{
	return l->pid;
}

bool launcher_alive(struct launcher *l)
{
	return waitpid(l->pid, NULL, WNOHANG) == 0;
}

void launcher_stop(struct launcher *l)
{
	(void)shutdown(l->fd, SHUT_RDWR);
	(void)waitpid(l->pid, NULL, 0);
}

static bool call(
	struct launcher *l, const struct launch_ask *a, struct launch_reply *r, int *ret_fd)
{
	(void)pthread_mutex_lock(&l->lock);
	bool ok = launch_send(l->fd, a, sizeof *a, -1) && receive(l->fd, r, ret_fd);
	(void)pthread_mutex_unlock(&l->lock);
	return ok;
}

const char *launch_box(struct launcher *l, const char *id, enum network network,
	const struct limits *limits, struct launched *ret)
{
	static _Thread_local struct launch_reply r;
	struct launch_ask a = {.op = LAUNCH_NEW, .network = network, .limits = *limits};
	(void)snprintf(a.id, sizeof a.id, "%s", id);
	if (!call(l, &a, &r, &ret->socket))
		return "the launcher does not answer";
	if (r.ok && ret->socket >= 0) {
		ret->controllers = r.controllers;
		return NULL;
	}
	r.why[sizeof r.why - 1] = 0;
	return r.why;
}

bool launch_end(struct launcher *l, const char *id)
{
	struct launch_reply r;
	struct launch_ask a = {.op = LAUNCH_END};
	int fd;
	(void)snprintf(a.id, sizeof a.id, "%s", id);
	return call(l, &a, &r, &fd) && r.ok;
}
