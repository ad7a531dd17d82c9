/*
 * A sandbox for tests of the spool scripts: a private /tmp, one shell as "sh", and a provider whose
 * put and exec work right here. Nothing of it reaches the machine's own /tmp; processes are not
 * hidden. Included by one test.
 */
#pragma once
#include "arena.h"
#include "buf.h"
#include "provider.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX (8 << 20)
#define SHELLS     "/mnt/shells"

static const char *shell_name, *shell_path; /* set by shells_enter */

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	(void)close(fd);
	return ok;
}

static bool own_mounts(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();
	if (uid == 0)
		return unshare(CLONE_NEWNS) == 0;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return false;
	(void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
	if (!write_text("/proc/self/uid_map", map) || !write_text("/proc/self/setgroups", "deny"))
		return false;
	(void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
	return write_text("/proc/self/gid_map", map);
}

static bool run_here(const char *command)
{
	pid_t pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	int status;
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Makes the private /tmp and the shell's folder. False when this machine does not allow it. */
static bool shells_enter(const char *shell)
{
	static char path[256];
	char command[512];
	shell_name = shell;
	if (!own_mounts() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("tmpfs", "/mnt", "tmpfs", 0, "size=1m") ||
		mount("tmpfs", "/tmp", "tmpfs", 0, "size=320m,mode=1777"))
		return false;
	bool busybox = strcmp(shell, "busybox") == 0;
	(void)snprintf(path, sizeof path, SHELLS "%s", busybox ? "" : ":/usr/bin:/bin");
	shell_path = path;
	(void)snprintf(command, sizeof command,
		busybox ? "mkdir " SHELLS " && %s --install -s " SHELLS
			: "mkdir " SHELLS " && ln -s $(command -v %s) " SHELLS "/sh",
		shell);
	return run_here(command);
}

static void child(const char *const *argv, int out, int err)
{
	const char *const env[] = {NULL, "HOME=/tmp", "LANG=C.UTF-8", NULL};
	char path[300];
	(void)snprintf(path, sizeof path, "PATH=%s", shell_path);
	const char *const real[] = {path, env[1], env[2], NULL};
	int in = open("/dev/null", O_RDONLY);
	(void)dup2(in, 0);
	(void)dup2(out, 1);
	(void)dup2(err, 2);
	/* The runner gives nothing else either. */
	(void)close_range(3, ~0U, 0);
	union {
		const char *const *in;
		char *const *out;
	} args = {.in = argv}, vars = {.in = real};
	(void)execve(SHELLS "/sh", args.out, vars.out);
	_exit(126);
}

static void collect(int out, int err, struct buf *o, struct buf *e)
{
	struct pollfd fds[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
	struct buf *bufs[] = {o, e};
	static char piece[65536];
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int ready = poll(fds, 2, 60000);
		assert(ready > 0);
		for (int i = 0; i < 2; i++) {
			if (!fds[i].revents)
				continue;
			ssize_t n = read(fds[i].fd, piece, sizeof piece);
			if (n > 0) {
				buf_put(bufs[i], piece, (size_t)n);
				continue;
			}
			(void)close(fds[i].fd);
			fds[i].fd = -1;
		}
	}
}

/* Runs argv with stdin at /dev/null; bytes of both streams are in the arena. */
static enum err shells_exec(struct arena *a, const char *const *argv, struct exec_result *ret)
{
	int out[2], err[2], status;
	CLEANUP_BUF struct buf o;
	CLEANUP_BUF struct buf e;
	buf_init(&o, OUTPUT_MAX);
	buf_init(&e, OUTPUT_MAX);
	int failed = pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC);
	assert(!failed);
	pid_t pid = fork();
	if (pid == 0)
		child(argv, out[1], err[1]);
	(void)close(out[1]);
	(void)close(err[1]);
	collect(out[0], err[0], &o, &e);
	pid_t done = waitpid(pid, &status, 0);
	assert(done == pid && !o.full && !e.full);
	*ret = (struct exec_result){
		.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		.out = arena_copy(a, o.p, o.n),
		.err = arena_copy(a, e.p, e.n),
		.out_n = o.n,
		.err_n = e.n};
	return OK;
}

static enum err local_put(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	(void)id;
	c->round_trips++;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(ERR_UPSTREAM, NULL, "errno %d", errno);
	ssize_t put = write(fd, p, n);
	(void)close(fd);
	return put == (ssize_t)n ? OK : fail(ERR_UPSTREAM, NULL, "the disk is full");
}

static enum err local_exec(struct call *c, const char *id, const char *exec_id,
	const char *const *argv, int64_t wait_s, struct exec_result *ret)
{
	(void)id;
	(void)exec_id;
	(void)wait_s;
	c->round_trips++;
	return shells_exec(c->arena, argv, ret);
}

static const struct provider_ops local_ops = {.put = local_put, .exec = local_exec};
static const struct provider local = {.name = "local", .ops = &local_ops};

static struct call shells_call(struct arena *a)
{
	return (struct call){.provider = &local, .arena = a};
}

/* A small file system over /tmp, and away again. */
static void shells_small_disk(const char *options)
{
	int rc = mount("tmpfs", "/tmp", "tmpfs", 0, options);
	assert(rc == 0);
}

static void shells_usual_disk(void)
{
	int rc = umount2("/tmp", MNT_DETACH);
	assert(rc == 0);
}
