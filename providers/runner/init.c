/*
 * The first process of a box: runs commands, tells how they ended, reaps orphans.
 *
 * It promises that every command is the leader of a session of its own, that its exit status is the
 * true one (128 + n for signals), that a command whose time is over gets TERM and five seconds
 * later KILL, and that the box ends when the runner is gone. It reads and writes files for the
 * runner in forked children, so that paths mean what they mean in the box and memory counts there.
 * It has no rights and no limits of its own to enforce: those are set before it starts. Linked
 * statically, because the box may lack every library.
 */
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX   20000 /* argv and environment of one command: 32 KiB of one-byte strings */
#define COPY_BYTES (64u << 10)

struct job {
	uint32_t seq;
	pid_t pid;
	int64_t due_ms; /* 0: no limit; then TERM, then KILL */
	bool is_command, timed_out;
};

static struct job jobs[WIRE_JOBS_MAX];
static size_t jobs_n;
static char packet[WIRE_BYTES_MAX + 1];
static char *strings[ARGS_MAX + 2];
static sigset_t no_signals;

static int64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void tell(uint32_t op, uint32_t seq, int32_t a, int32_t b)
{
	struct wire_head h = {.op = op, .seq = seq, .a = a, .b = b};
	while (send(WIRE_SOCKET_FD, &h, sizeof h, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(1); /* the runner is gone: the box ends with its first process */
}

/* -- in the child ------------------------------------------------------------------------------ */

static void child_begin(const int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(127);
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	/* Without the socket a child has nothing to hide, and needs its own files under /proc. */
	(void)close(WIRE_SOCKET_FD);
	(void)prctl(PR_SET_DUMPABLE, 1);
	/* When memory runs out the kernel should choose a command, not the process that reports it.
	 */
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = write(fd, "300", 3);
		(void)n; /* without it the box still works */
		(void)close(fd);
	}
}

static void say(const char *s)
{
	ssize_t n = write(STDERR_FILENO, s, strlen(s));
	(void)n; /* nobody else to tell */
}

static void __attribute__((noreturn))
child_command(const char *cwd, char **argv, char **env, int report)
{
	(void)setsid();
	if (chdir(cwd) < 0) {
		int e = errno;
		ssize_t n = write(report, &e, sizeof e);
		_exit(n == sizeof e ? 1 : 2);
	}
	environ = env;
	(void)execvp(argv[0], argv);
	int code = errno == ENOENT || errno == ENOTDIR ? 127 : 126;
	say(argv[0]);
	say(": ");
	say(strerror(errno));
	say("\n");
	/* The report pipe closes with this process, so this counts as started: like a shell's 127.
	 */
	_exit(code);
}

static bool copy_all(int from, int to, int64_t want, int64_t *ret_done)
{
	static char piece[COPY_BYTES];
	*ret_done = 0;
	while (*ret_done < want) {
		size_t ask =
			want - *ret_done < COPY_BYTES ? (size_t)(want - *ret_done) : COPY_BYTES;
		ssize_t n = read(from, piece, ask);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0;
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(to, piece + at, (size_t)(n - at));
			if (w < 0 && errno != EINTR)
				return false;
			at += w > 0 ? w : 0;
		}
		*ret_done += n;
	}
	return true;
}

/* Ends with an errno; before the bytes goes the size of the whole file. */
static void __attribute__((noreturn)) child_read(const char *path, int64_t offset, int64_t length)
{
	struct stat st;
	int64_t done;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		_exit(errno);
	if (!S_ISREG(st.st_mode))
		_exit(S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
	int64_t size = st.st_size;
	if (write(STDOUT_FILENO, &size, sizeof size) != sizeof size ||
		lseek(fd, offset, SEEK_SET) < 0)
		_exit(EIO);
	_exit(copy_all(fd, STDOUT_FILENO, length, &done) ? 0 : errno);
}

static bool make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		bool made = mkdir(path, 0755) == 0 || errno == EEXIST || errno == EROFS;
		*p = '/';
		if (!made)
			return false;
	}
	return true;
}

/* Opens a plain file for writing at offset, which must be its size unless it is 0; else an errno.
 */
static int open_at(char *path, int64_t offset)
{
	struct stat st;
	if (!make_parents(path))
		_exit(errno);
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
	if (fd < 0 || fstat(fd, &st) < 0)
		_exit(errno);
	if (!S_ISREG(st.st_mode))
		_exit(EINVAL);
	if (offset != 0 && st.st_size != offset)
		_exit(ESTALE);
	if (ftruncate(fd, offset) < 0 || lseek(fd, offset, SEEK_SET) < 0)
		_exit(errno);
	return fd;
}

/* All or nothing per block: a block that did not fit is taken back, so that it can be repeated. */
static void __attribute__((noreturn)) child_write(char *path, int64_t offset, int64_t length)
{
	int64_t done;
	int fd = open_at(path, offset);
	errno = 0;
	if (copy_all(STDIN_FILENO, fd, length, &done) && done == length)
		_exit(0);
	int e = errno ? errno : EPIPE;
	_exit(ftruncate(fd, offset) < 0 ? EIO : e);
}

/* -- in init ----------------------------------------------------------------------------------- */

static void job_add(const struct wire_head *h, pid_t pid)
{
	struct job *j = &jobs[jobs_n++];
	*j = (struct job){.seq = h->seq, .pid = pid, .is_command = h->op == WIRE_RUN};
	if (j->is_command && h->x > 0)
		j->due_ms = now_ms() + h->x * 1000;
}

/* Splits the strings behind the head; false when there are not exactly n. */
static bool split(char *p, size_t len, size_t n)
{
	size_t i = 0;
	if (n > ARGS_MAX || len == 0 || p[len - 1] != 0)
		return false;
	for (char *end = p + len; p < end && i <= n; p += strlen(p) + 1)
		strings[i++] = p;
	return i == n;
}

static void start_command(const struct wire_head *h, const int fds[3])
{
	int report[2], e = 0;
	size_t argc = (size_t)h->a, envc = (size_t)h->b;
	/* One place between argv and environment for the NULL that ends argv. */
	memmove(strings + argc + 2, strings + argc + 1, envc * sizeof *strings);
	strings[argc + 1] = NULL;
	strings[argc + 2 + envc] = NULL;
	if (pipe2(report, O_CLOEXEC) < 0) {
		tell(WIRE_REFUSED, h->seq, errno, WIRE_STAGE_FORK);
		return;
	}
	pid_t pid = fork();
	if (pid == 0) {
		child_begin(fds);
		child_command(strings[0], strings + 1, strings + argc + 2, report[1]);
	}
	int fork_errno = errno;
	(void)close(report[1]);
	ssize_t n = pid < 0 ? 0 : read(report[0], &e, sizeof e);
	(void)close(report[0]);
	if (pid < 0) {
		tell(WIRE_REFUSED, h->seq, fork_errno, WIRE_STAGE_FORK);
	} else if (n == sizeof e) {
		(void)waitpid(pid, NULL, 0);
		tell(WIRE_REFUSED, h->seq, e, WIRE_STAGE_CWD);
	} else {
		job_add(h, pid);
		tell(WIRE_STARTED, h->seq, 0, 0);
	}
}

static void start_file(const struct wire_head *h, const int fds[3])
{
	pid_t pid = fork();
	if (pid == 0) {
		child_begin(fds);
		if (h->op == WIRE_READ)
			child_read(strings[0], h->x, h->y);
		child_write(strings[0], h->x, h->y);
	}
	if (pid < 0) {
		tell(WIRE_REFUSED, h->seq, errno, WIRE_STAGE_FORK);
		return;
	}
	job_add(h, pid);
}

static void start(const struct wire_head *h, size_t len, const int fds[3])
{
	size_t n = h->op == WIRE_RUN ? (size_t)h->a + (size_t)h->b + 1 : 1;
	if (jobs_n == WIRE_JOBS_MAX || fds[2] < 0 || h->a < 0 || h->b < 0 ||
		!split(packet + sizeof *h, len - sizeof *h, n)) {
		tell(WIRE_REFUSED, h->seq, EAGAIN, WIRE_STAGE_FULL);
		return;
	}
	if (h->op == WIRE_RUN)
		start_command(h, fds);
	else
		start_file(h, fds);
}

static void send_signal(const struct wire_head *h)
{
	for (size_t i = 0; i < jobs_n; i++)
		if (jobs[i].seq == h->seq && jobs[i].is_command)
			(void)kill(-jobs[i].pid, h->a);
}

static void take_fds(struct msghdr *m, int fds[3])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(3 * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), 3 * sizeof(int));
}

static void receive(void)
{
	int fds[3] = {-1, -1, -1};
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec part = {.iov_base = packet, .iov_len = WIRE_BYTES_MAX};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	ssize_t n = recvmsg(WIRE_SOCKET_FD, &m, MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0)
		_exit(0); /* the runner is gone */
	take_fds(&m, fds);
	struct wire_head h;
	if ((size_t)n >= sizeof h) {
		memcpy(&h, packet, sizeof h);
		if (h.op == WIRE_SIGNAL)
			send_signal(&h);
		else
			start(&h, (size_t)n, fds);
	}
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static void job_ended(size_t i)
{
	struct job j = jobs[i];
	siginfo_t info;
	/* Not reaped yet, so the number of the group is still ours. */
	if (j.timed_out)
		(void)kill(-j.pid, SIGKILL);
	if (waitid(P_PID, (id_t)j.pid, &info, WEXITED | WNOHANG) < 0)
		info = (siginfo_t){.si_code = CLD_KILLED, .si_status = SIGKILL};
	jobs[i] = jobs[--jobs_n];
	int code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	/* A file call that was killed (memory) must not read as an errno. */
	if (!j.is_command && info.si_code != CLD_EXITED)
		code = ENOMEM;
	tell(WIRE_EXIT, j.seq, code, j.timed_out);
}

static void reap(void)
{
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
			return;
		size_t i = 0;
		while (i < jobs_n && jobs[i].pid != info.si_pid)
			i++;
		if (i < jobs_n)
			job_ended(i);
		else
			(void)waitpid(info.si_pid, NULL, WNOHANG);
	}
}

/* Signals jobs whose time is over; milliseconds until the next one, -1 when there is none. */
static int time_limits(void)
{
	int64_t now = now_ms(), next = -1;
	for (size_t i = 0; i < jobs_n; i++) {
		struct job *j = &jobs[i];
		if (j->due_ms && j->due_ms <= now) {
			(void)kill(-j->pid, j->timed_out ? SIGKILL : SIGTERM);
			j->due_ms = j->timed_out ? 0 : now + WIRE_KILL_AFTER * 1000;
			j->timed_out = true;
		}
		if (j->due_ms && (next < 0 || j->due_ms - now < next))
			next = j->due_ms - now;
	}
	return next > 1000000 ? 1000000 : (int)next;
}

int main(void)
{
	sigset_t chld;
	(void)sigemptyset(&no_signals);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)umask(022);
	/* The commands have our user id: keep them from tracing us and using our socket. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)fcntl(WIRE_SOCKET_FD, F_SETFD, FD_CLOEXEC);
	int signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return 1;
	tell(WIRE_HELLO, 0, 0, 0);
	for (;;) {
		struct pollfd p[2] = {{.fd = WIRE_SOCKET_FD, .events = POLLIN},
			{.fd = signals, .events = POLLIN}};
		if (poll(p, 2, time_limits()) < 0 && errno != EINTR)
			return 1;
		if (p[1].revents) {
			struct signalfd_siginfo s;
			while (read(signals, &s, sizeof s) == sizeof s)
				; /* one signal may stand for many children */
			reap();
		}
		if (p[0].revents)
			receive();
	}
}
