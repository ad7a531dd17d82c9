/*
 * cloudflared as a child. Promises: it gets no token and no rights beyond the user it runs as; it
 * ends with us. Its output is read for the name, then ignored.
 */
#include "tunnel.h"

#include "clock.h"
#include "config.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_MS 30000
#define SUFFIX  ".trycloudflare.com"

static pid_t child;

bool tunnel_find(const char *line, char *url, size_t size)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	for (const char *p = line; (p = strstr(p, "https://")); p++) {
		size_t n = strlen("https://") + strspn(p + strlen("https://"), chars);
		if (n == strlen("https://") || strncmp(p + n, SUFFIX, strlen(SUFFIX)) != 0)
			continue;
		/* Where it asks for a name; told when that fails. */
		if (strncmp(p, "https://api" SUFFIX, strlen("https://api" SUFFIX)) == 0)
			continue;
		n += strlen(SUFFIX);
		if (n >= size)
			return false;
		memcpy(url, p, n);
		url[n] = 0;
		return true;
	}
	return false;
}

static void __attribute__((noreturn)) run(const char *local, int out)
{
	sigset_t none;
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (geteuid() == 0 &&
		(setgroups(0, NULL) < 0 || setresgid(HTTP_UID, HTTP_UID, HTTP_UID) < 0 ||
			setresuid(HTTP_UID, HTTP_UID, HTTP_UID) < 0))
		_exit(1);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nowhere < 0 || dup2(nowhere, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(1);
	(void)execlp(
		"cloudflared", "cloudflared", "tunnel", "--no-autoupdate", "--url", local, NULL);
	_exit(127);
}

static bool read_name(int fd, char *url, size_t size)
{
	char text[16384] = "";
	size_t n = 0;
	int64_t until = clock_mono_ms() + NAME_MS;
	for (int64_t now; (now = clock_mono_ms()) < until && n < sizeof text - 1;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (poll(&p, 1, (int)(until - now)) != 1)
			break;
		ssize_t got = read(fd, text + n, sizeof text - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
		text[n] = 0;
		const char *end = strrchr(text, '\n');
		if (end && tunnel_find(text, url, size))
			return true;
	}
	return false;
}

/* A full pipe would stop cloudflared. */
static void *swallow(void *fd)
{
	char piece[4096];
	while (read((int)(intptr_t)fd, piece, sizeof piece) > 0)
		;
	return NULL;
}

bool tunnel_start(const char *local, char *url, size_t size)
{
	int out[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	child = fork();
	if (child == 0)
		run(local, out[1]);
	(void)close(out[1]);
	bool ok = child > 0 && read_name(out[0], url, size);
	if (!ok)
		(void)fputs("compute-runner: --tunnel: cloudflared told no address\n", stderr);
	pthread_t t;
	if (ok && pthread_create(&t, NULL, swallow, (void *)(intptr_t)out[0]) == 0)
		(void)pthread_detach(t);
	return ok;
}

void tunnel_stop(void)
{
	if (child <= 0)
		return;
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	child = 0;
}
