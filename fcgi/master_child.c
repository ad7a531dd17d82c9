/*
 * Starting, restarting and dismissing children.
 *
 * A child is a fresh execution of the binary on disk, so a reload runs new code and a crashed child
 * inherits nothing. It gets the listening socket (workers only) and the readiness pipe, no other
 * descriptor of ours, and SIGTERM when we die. Does not decide when to start or stop anybody.
 */
#include "master_child.h"

#include "alloc.h"
#include "clock.h"
#include "bounds.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* -- argument list and environment ------------------------------------------------------------- */

static const char *const not_for_children[] = {"CC_LISTEN_FD=", "CC_READY_FD=", "LISTEN_PID=",
	"LISTEN_FDS=", "LISTEN_FDNAMES=", "NOTIFY_SOCKET="};

static bool for_children(const char *variable)
{
	for (size_t i = 0; i < sizeof not_for_children / sizeof *not_for_children; i++)
		if (strncmp(variable, not_for_children[i], strlen(not_for_children[i])) == 0)
			return false;
	return true;
}

struct image {
	char *role, listen[32], ready[32];
	char **argv, **envp;
};

/* Everything execve needs, made before fork: the child of a process with threads may not allocate.
 */
static void image_make(
	struct image *m, const struct master_conf *conf, bool worker, int listen_fd, int ready_fd)
{
	size_t args = 0, vars = 0, n = 0;
	while (conf->child_args && conf->child_args[args])
		args++;
	while (environ[vars])
		vars++;
	snprintf(m->listen, sizeof m->listen, "CC_LISTEN_FD=%d", worker ? listen_fd : -1);
	snprintf(m->ready, sizeof m->ready, "CC_READY_FD=%d", ready_fd);
	m->argv = must(calloc(args + 3, sizeof *m->argv));
	m->envp = must(calloc(vars + 3, sizeof *m->envp));
	m->role = must(strdup(worker ? "worker" : "keeper"));
	m->argv[0] = must(strdup(conf->self));
	m->argv[1] = m->role;
	for (size_t i = 0; i < args; i++)
		m->argv[i + 2] = conf->child_args[i];
	for (size_t i = 0; i < vars; i++)
		if (for_children(environ[i]))
			m->envp[n++] = environ[i];
	m->envp[n++] = m->listen;
	m->envp[n] = m->ready;
}

static void image_free(struct image *m)
{
	free(m->role);
	free(m->argv[0]);
	free(m->argv);
	free(m->envp);
}

/* -- starting ---------------------------------------------------------------------------------- */

/* The child's side of fork. */
static _Noreturn void become(const struct image *m, pid_t master, int listen_fd, int ready_fd)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != master) /* it died before the line above */
		_exit(1);
	fcntl(ready_fd, F_SETFD, 0);
	if (listen_fd >= 0)
		fcntl(listen_fd, F_SETFD, 0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(m->argv[0], m->argv, m->envp);
	_exit(127);
}

static pid_t spawn(const struct master_conf *conf, bool worker, int listen_fd, int *ret_ready_fd)
{
	struct image m;
	int ends[2];
	pid_t master = getpid();
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	image_make(&m, conf, worker, listen_fd, ends[1]);
	pid_t pid = fork();
	if (pid == 0)
		become(&m, master, worker ? listen_fd : -1, ends[1]);
	image_free(&m);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*ret_ready_fd = ends[0];
	return pid;
}

static void close_report(struct place *p)
{
	if (p->ready_fd >= 0)
		close(p->ready_fd);
	p->ready_fd = -1;
}

void place_start(struct place *p, const struct master_conf *conf, int listen_fd)
{
	p->started_at = clock_mono_ms();
	p->start_at = 0;
	p->ready = false;
	pid_t pid = spawn(conf, p->worker, listen_fd, &p->ready_fd);
	if (pid > 0)
		p->pid = pid;
	else
		place_restart(p, p->started_at);
}

void place_restart(struct place *p, int64_t now)
{
	close_report(p);
	p->pid = 0;
	p->ready = false;
	if (now - p->started_at >= CHILD_YOUNG_MS)
		p->pause_ms = 0;
	else if (p->pause_ms == 0)
		p->pause_ms = CHILD_PAUSE_MS;
	else
		p->pause_ms =
			p->pause_ms * 2 < CHILD_PAUSE_MAX_MS ? p->pause_ms * 2 : CHILD_PAUSE_MAX_MS;
	p->start_at = now + p->pause_ms;
}

void place_report(struct place *p)
{
	char byte;
	ssize_t n = read(p->ready_fd, &byte, 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close_report(p);
	if (n != 1)
		return; /* it ended without a word, which SIGCHLD tells, or its start time will run
			   out */
	p->ready = true;
	log_event(EV_CHILD_READY, LOG_NAME("kind", p->worker ? "worker" : "keeper"),
		LOG_INT("child", p->pid), LOG_INT("ms", clock_mono_ms() - p->started_at));
}

/* -- teams ------------------------------------------------------------------------------------- */

void team_make(struct team *t, const struct master_conf *conf)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned workers = conf->workers ? conf->workers : cores > 2 ? (unsigned)cores : 2;
	t->n = workers + 1;
	t->places = must(calloc(t->n, sizeof *t->places));
	for (unsigned i = 0; i < t->n; i++)
		t->places[i] = (struct place){.worker = i < workers, .ready_fd = -1};
}

void team_free(struct team *t)
{
	free(t->places);
	*t = (struct team){0};
}

bool team_ready(const struct team *t)
{
	for (unsigned i = 0; i < t->n; i++)
		if (!t->places[i].ready)
			return false;
	return t->n > 0;
}

struct place *team_find(const struct team *t, pid_t pid)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->places[i].pid == pid)
			return &t->places[i];
	return NULL;
}

/* -- leaving ----------------------------------------------------------------------------------- */

void team_leave(struct team *t, struct leavers *l, int64_t kill_at)
{
	l->at = must(realloc(l->at, (l->n + t->n + 1) * sizeof *l->at));
	for (unsigned i = 0; i < t->n; i++) {
		struct place *p = &t->places[i];
		close_report(p);
		if (!p->pid)
			continue;
		kill(p->pid, SIGTERM);
		l->at[l->n++] =
			(struct leaver){.pid = p->pid, .worker = p->worker, .kill_at = kill_at};
	}
	team_free(t);
}

bool leavers_remove(struct leavers *l, pid_t pid, bool *ret_worker)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->at[i].pid != pid)
			continue;
		*ret_worker = l->at[i].worker;
		l->at[i] = l->at[--l->n];
		return true;
	}
	return false;
}

void leavers_kill(struct leavers *l, int64_t now)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->at[i].kill_at > now || !l->at[i].kill_at)
			continue;
		kill(l->at[i].pid, SIGKILL);
		l->at[i].kill_at = 0;
		l->killed = true;
	}
}
