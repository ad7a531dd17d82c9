/*
 * The listening socket and the messages to the service manager.
 *
 * A unix socket only: who may open it decides who may speak FastCGI to us, and libfcgi can be made
 * to fail by a hostile peer. Does not accept connections.
 */
#include "master_socket.h"

#include "clock.h"
#include "log.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG      4096 /* connections; the kernel's somaxconn caps it */
#define SOCKET_MODE  0660
#define NEW_SUFFIX   ".new"
#define FIRST_PASSED 3 /* descriptor of the first socket in the LISTEN_FDS protocol */

static bool bad(const char *what, int error)
{
	log_event(EV_CONFIG_BAD, LOG_NAME("what", what), LOG_INT("errno", error));
	return false;
}

/* -- our own ----------------------------------------------------------------------------------- */

/* Gives the file its owner and mode; until here nobody but us could open it. */
static bool set_owner(const char *path, const char *group)
{
	if (group && *group) {
		struct group *g = getgrnam(group);
		if (!g)
			return bad("socket_group", ENOENT);
		if (chown(path, (uid_t)-1, g->gr_gid) != 0)
			return bad("socket_group", errno);
	}
	return chmod(path, SOCKET_MODE) == 0 || bad("socket_mode", errno);
}

static bool bind_private(int fd, const struct sockaddr_un *a)
{
	mode_t before = umask(0177);
	int rc = bind(fd, (const struct sockaddr *)a, sizeof *a);
	int error = errno;
	umask(before);
	return rc == 0 || bad("socket", error);
}

/* Binds to the new name, which is then put in the place of the old one. */
static bool put_in_place(
	int fd, const struct sockaddr_un *a, const char *path, const char *group, struct stat *ret)
{
	if (!bind_private(fd, a) || !set_owner(a->sun_path, group))
		return false;
	if (listen(fd, BACKLOG) != 0 || stat(a->sun_path, ret) != 0)
		return bad("socket", errno);
	return rename(a->sun_path, path) == 0 || bad("socket", errno);
}

static bool make(int fd, const char *path, const char *group, struct listener *ret)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat s;
	if (strlen(path) + sizeof NEW_SUFFIX > sizeof a.sun_path)
		return bad("socket", ENAMETOOLONG);
	if (lstat(path, &s) == 0 && !S_ISSOCK(s.st_mode))
		return bad("socket", EEXIST);
	snprintf(a.sun_path, sizeof a.sun_path, "%s" NEW_SUFFIX, path);
	(void)unlink(a.sun_path); /* of a master that died here; bind tells if it is still there */
	if (!put_in_place(fd, &a, path, group, &s)) {
		(void)unlink(a.sun_path); /* the reason has been logged */
		return false;
	}
	*ret = (struct listener){.fd = fd, .path = path, .device = s.st_dev, .inode = s.st_ino};
	return true;
}

/* -- inherited --------------------------------------------------------------------------------- */

static bool is_listening(int fd)
{
	int on = 0;
	socklen_t n = sizeof on;
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0 && on;
}

static bool is_number(const char *name, int64_t wanted, int64_t *ret)
{
	const char *s = getenv(name);
	char *end;
	if (!s || !*s)
		return false;
	*ret = strtoll(s, &end, 10);
	return *end == 0 && (wanted < 0 || *ret == wanted);
}

static int passed_socket(void)
{
	int64_t n;
	bool ours =
		is_number("LISTEN_PID", getpid(), &n) && is_number("LISTEN_FDS", -1, &n) && n >= 1;
	if (ours && is_listening(FIRST_PASSED))
		return FIRST_PASSED;
	if (!is_listening(STDIN_FILENO))
		return -1;
	/* Away from descriptor 0, which every child would inherit. */
	int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_PASSED);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO); /* cannot fail with two open descriptors */
	if (null > STDIN_FILENO)
		close(null);
	return fd;
}

bool listener_open(const char *path, const char *group, struct listener *ret)
{
	if (!path || !*path) {
		int fd = passed_socket();
		if (fd < 0)
			return bad("inherited_socket", ENOTSOCK);
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail on an open descriptor */
		*ret = (struct listener){.fd = fd};
		return true;
	}
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return bad("socket", errno);
	if (make(fd, path, group, ret))
		return true;
	close(fd);
	return false;
}

void listener_close(struct listener *l)
{
	struct stat s;
	if (l->path && lstat(l->path, &s) == 0 && s.st_dev == l->device && s.st_ino == l->inode)
		(void)unlink(l->path); /* a left-over is replaced by the next master */
	close(l->fd);
	l->fd = -1;
}

/* -- the service manager ----------------------------------------------------------------------- */

void notify_manager(const char *state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	char text[128];
	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof a.sun_path)
		return;
	memcpy(a.sun_path, path, strlen(path));
	if (path[0] == '@')
		a.sun_path[0] = 0; /* an abstract address, which has no NUL behind it */
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	int length = snprintf(
		text, sizeof text, "%s\nMONOTONIC_USEC=%" PRId64 "\n", state, clock_mono_us());
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* A manager that does not listen is no reason to stop working. */
	(void)sendto(
		fd, text, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&a, n);
	close(fd);
}
