/*
 * Opening the socket. Promises: only 127.0.0.1, ::1 or a path; who may connect to the path is no
 * secret (0666), because every call needs the token, just as on loopback.
 */
#include "listen.h"

#include "text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char bound_path[108];

static int bad(const char *why)
{
	(void)fprintf(stderr, "compute-runner: --listen: %s\n", why);
	return -1;
}

static int open_at(const struct sockaddr *a, socklen_t n)
{
	int on = 1;
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, a, n) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static int open_path(const char *path, char *url, size_t size)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	if ((size_t)snprintf(a.sun_path, sizeof a.sun_path, "%s", path) >= sizeof a.sun_path ||
		*path != '/')
		return bad("the path must be absolute and short");
	struct stat st;
	if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool alive = connect(probe, (const struct sockaddr *)&a, sizeof a) == 0 ||
			     errno != ECONNREFUSED;
		(void)close(probe);
		if (!alive)
			(void)unlink(path);
	}
	int fd = open_at((const struct sockaddr *)&a, sizeof a);
	if (fd < 0 || chmod(path, 0666) < 0)
		return bad("the path can not be used");
	(void)snprintf(bound_path, sizeof bound_path, "%s", path);
	(void)snprintf(url, size, "unix:%s", path);
	return fd;
}

static int open_port(const char *where, char *url, size_t size)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int64_t port;
	const char *prefix = "127.0.0.1:";
	if (strncmp(where, prefix, strlen(prefix)) != 0 ||
		!int_parse(where + strlen(prefix), 0, 65535, &port))
		return bad("must be 127.0.0.1:PORT or unix:/path");
	a.sin_port = htons((uint16_t)port);
	int fd = open_at((const struct sockaddr *)&a, sizeof a);
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return bad("the port can not be used");
	(void)snprintf(url, size, "http://127.0.0.1:%u", ntohs(a.sin_port));
	return fd;
}

int listen_open(const char *where, char *url, size_t size)
{
	return strncmp(where, "unix:", 5) == 0 ? open_path(where + 5, url, size)
					       : open_port(where, url, size);
}

void listen_close(void)
{
	if (bound_path[0])
		(void)unlink(bound_path);
}
