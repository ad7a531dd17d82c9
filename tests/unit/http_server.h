/* Starts and stops http_server.mjs and knows its ports and files. */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

struct server {
	char dir[64];
	int plain, tls, misnamed, h2, proxy, late, closed; /* ports on 127.0.0.1 */
	pid_t pid;
	int stdin_fd;
};

static void server_start(struct server *s)
{
	int in[2], out[2];
	strcpy(s->dir, "/tmp/http-test-XXXXXX");
	if (!mkdtemp(s->dir) || pipe(in) != 0 || pipe(out) != 0)
		abort();
	s->pid = fork();
	if (s->pid == 0) {
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(out[1], STDOUT_FILENO);
		(void)close(in[1]);
		(void)execlp(
			"node", "node", SOURCE_DIR "/tests/unit/http_server.mjs", s->dir, NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	s->stdin_fd = in[1];
	FILE *ports = fdopen(out[0], "r");
	if (!ports || fscanf(ports, "%d %d %d %d %d %d %d", &s->plain, &s->tls, &s->misnamed,
			      &s->h2, &s->proxy, &s->late, &s->closed) != 7)
		abort();
	(void)fclose(ports);
}

static void server_stop(struct server *s)
{
	static const char *const files[] = {
		"ca", "other", "third", "good", "misnamed", "empty", "broken"};
	static const char *const kinds[] = {"pem", "key", "csr", "ext", "srl"};
	char path[128];
	(void)close(s->stdin_fd);
	(void)waitpid(s->pid, NULL, 0);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
			(void)snprintf(path, sizeof path, "%s/%s.%s", s->dir, files[i], kinds[k]);
			(void)unlink(path);
		}
	}
	(void)snprintf(path, sizeof path, "%s/web.sock", s->dir);
	(void)unlink(path);
	(void)rmdir(s->dir);
}
