/*
 * Starts processes for a simulator, inside its guests or beside them.
 *
 *     guest_spawner SOCKET
 *
 * A simulator is a big program, and each fork of it holds up all that it serves; a fork of this one
 * costs little. spawner.mjs is the only client. It connects once to ask and once more for each
 * stream of the child, in this order, and the accepted sockets become the child's own files:
 * nothing is copied.
 *
 * A request: a line of 6 decimal numbers with blanks between them; then strings, each with a NUL
 * behind it: working directory, arguments, environment.
 *
 *     BYTES of all strings
 *     ARGC ENVC
 *     PID whose namespaces the child enters, or 0
 *     USER 1: the namespace of its users too
 *     FILES bits: which of 0 to 3 is a stream; 0, 1 and 2 are /dev/null else
 *
 * The answers: "pid N", then "exit CODE SIGNAL". The child leads a session. Inside a guest it is
 * the child of a process that waits for it and ends as it did; that one is told as N, and leads the
 * session.
 *
 * It ends when its standard input does, and takes with it what asked for that (bwrap
 * --die-with-parent).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES_MAX    4
#define CHILDREN_MAX 4096
#define BACKLOG      4096
#define NO_FOLDER    126 /* what a shell says that could not go there */

struct request {
	size_t bytes;
	int argc, envc;
	pid_t enter;
	int user, files;
	char *strings, *cwd, **argv, **env;
	int fds[FILES_MAX];
};

struct child {
	pid_t pid;
	int client;
};

static struct child children[CHILDREN_MAX];
static size_t children_n;
static sigset_t no_signals;

static void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	exit(1);
}

/* -- in the child ------------------------------------------------------------------------------ */

static void take_files(const struct request *r)
{
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < FILES_MAX; i++) {
		if (i == FILES_MAX - 1 && r->fds[i] < 0)
			(void)close(i);
		else if (dup2(r->fds[i] < 0 ? none : r->fds[i], i) < 0)
			_exit(127);
	}
	(void)close_range(FILES_MAX, ~0U, 0); /* files of other children among them */
}

static void __attribute__((noreturn)) become(const struct request *r)
{
	if (chdir(r->cwd) < 0)
		_exit(NO_FOLDER);
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execvpe(r->argv[0], r->argv, r->env);
	_exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

static int open_of(pid_t pid, const char *name)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* All are opened before the first is entered: /proc means something else in there. */
static bool enter(pid_t pid, bool user)
{
	static const char *const names[] = {"ns/user", "ns/mnt", "ns/ipc", "ns/pid"};
	int fds[4], root = open_of(pid, "root");
	for (int i = !user; i < 4; i++)
		fds[i] = open_of(pid, names[i]);
	for (int i = !user; i < 4; i++)
		if (fds[i] < 0 || setns(fds[i], 0) < 0)
			return false;
	return root >= 0 && fchdir(root) == 0 && chroot(".") == 0;
}

/* Ends as the child did, so that whoever looks at this process sees the other one's end. */
static void __attribute__((noreturn)) end_like(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			_exit(1);
	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	(void)raise(WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}

static void __attribute__((noreturn)) child(const struct request *r)
{
	(void)setsid();
	if (r->enter == 0) {
		take_files(r);
		become(r);
	}
	bool inside = enter(r->enter, r->user);
	take_files(r);
	pid_t pid = inside ? fork() : -1;
	if (pid < 0)
		_exit(1);
	if (pid == 0)
		become(r);
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	end_like(pid);
}

/* -- requests ---------------------------------------------------------------------------------- */

static bool read_all(int fd, char *p, size_t n)
{
	while (n > 0) {
		ssize_t got = read(fd, p, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

/* Reads no byte beyond the line. */
static bool read_line(int fd, char *line, size_t room)
{
	for (size_t n = 0; n < room; n++) {
		if (!read_all(fd, line + n, 1))
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
	}
	return false;
}

static char *next_string(char **at)
{
	char *s = *at;
	*at += strlen(s) + 1;
	return s;
}

static bool read_request(int fd, struct request *r)
{
	char line[128];
	if (!read_line(fd, line, sizeof line) ||
		sscanf(line, "%zu %d %d %d %d %d", &r->bytes, &r->argc, &r->envc, &r->enter,
			&r->user, &r->files) != 6)
		return false;
	r->strings = malloc(r->bytes + 1);
	r->argv = calloc((size_t)r->argc + 1, sizeof *r->argv);
	r->env = calloc((size_t)r->envc + 1, sizeof *r->env);
	if (!r->strings || !r->argv || !r->env || !read_all(fd, r->strings, r->bytes))
		return false;
	char *at = r->strings;
	r->cwd = next_string(&at);
	for (int i = 0; i < r->argc; i++)
		r->argv[i] = next_string(&at);
	for (int i = 0; i < r->envc; i++)
		r->env[i] = next_string(&at);
	return true;
}

static void forget(struct request *r)
{
	for (int i = 0; i < FILES_MAX; i++)
		if (r->fds[i] >= 0)
			(void)close(r->fds[i]);
	free(r->strings);
	free(r->argv);
	free(r->env);
}

/* The streams stand in the queue right behind their request. */
static void serve(int listener)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct request r = {.fds = {-1, -1, -1, -1}};
	if (client < 0 || children_n == CHILDREN_MAX || !read_request(client, &r))
		die("request");
	for (int i = 0; i < FILES_MAX; i++)
		if (r.files & 1 << i &&
			(r.fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
			die("accept");
	pid_t pid = fork();
	if (pid == 0)
		child(&r);
	(void)dprintf(client, "pid %d\n", (int)pid);
	if (pid > 0)
		children[children_n++] = (struct child){pid, client};
	else
		(void)close(client);
	forget(&r);
}

static void reap(void)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		for (size_t i = 0; i < children_n; i++) {
			if (children[i].pid != pid)
				continue;
			(void)dprintf(children[i].client, "exit %d %d\n", WEXITSTATUS(status),
				WIFSIGNALED(status) ? WTERMSIG(status) : 0);
			(void)close(children[i].client);
			children[i] = children[--children_n];
			break;
		}
}

static int listen_at(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || strlen(path) >= sizeof a.sun_path)
		die("socket");
	memcpy(a.sun_path, path, strlen(path));
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, BACKLOG) < 0)
		die(path);
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		(void)fprintf(stderr, "usage: guest_spawner SOCKET\n");
		return 2;
	}
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &ends, &no_signals);
	(void)signal(SIGPIPE, SIG_IGN);
	int listener = listen_at(argv[1]);
	struct pollfd wait[] = {{.fd = STDIN_FILENO},
		{.fd = signalfd(-1, &ends, SFD_CLOEXEC), .events = POLLIN},
		{.fd = listener, .events = POLLIN}};
	(void)dprintf(STDOUT_FILENO, "ready\n");
	while (poll(wait, 3, -1) >= 0 || errno == EINTR) {
		struct signalfd_siginfo told;
		if (wait[0].revents)
			return 0;
		if (wait[1].revents && read(wait[1].fd, &told, sizeof told) == sizeof told)
			reap();
		if (wait[2].revents)
			serve(listener);
	}
	return 1;
}
