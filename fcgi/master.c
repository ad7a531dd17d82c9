/*
 * The master's loop: one thread that waits for signals, readiness reports and its own deadlines.
 *
 * Promises: old children are told to leave only after every new one reported ready; a child that
 * dies is started again until the end; no child outlives its time to leave, and no zombie stays. It
 * serves nothing and opens nothing but the socket, so there is little in it that can fail.
 */
#include "master.h"

#include "alloc.h"
#include "clock.h"
#include "bounds.h"
#include "log.h"
#include "master_child.h"
#include "master_socket.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	struct master_conf *conf;
	struct master_conf before; /* the settings in force while a reload is tried */
	const struct master_hooks *hooks;
	struct listener listener;
	struct team now, next; /* next.n is 0 unless a reload is under way */
	struct leavers leavers;
	int signal_fd;
	bool started; /* the first team has been ready */
	bool reload_again, stopping;
	int status;
} m;

/* -- stop -------------------------------------------------------------------------------------- */

static void stop(int status)
{
	if (m.stopping)
		return;
	m.stopping = true;
	m.status = status;
	m.leavers.killed = false; /* counts for the end only */
	log_event(EV_MASTER_STOP, LOG_INT("status", status));
	notify_manager("STOPPING=1");
	listener_close(&m.listener); /* nginx learns at once, and asks others or answers 503 */
	int64_t at = clock_mono_ms() + ((int64_t)m.conf->drain_s + CHILD_KILL_S) * 1000;
	team_leave(&m.now, &m.leavers, at);
	team_leave(&m.next, &m.leavers, at);
}

/* -- reload ------------------------------------------------------------------------------------ */

static void reload_begin(void)
{
	if (m.next.n || !m.started) {
		m.reload_again = true; /* when the one under way has come to its end */
		return;
	}
	m.reload_again = false;
	m.before = *m.conf;
	notify_manager("RELOADING=1");
	if (m.hooks->reload && !m.hooks->reload(m.conf)) {
		*m.conf = m.before;
		log_event(EV_MASTER_RELOAD, LOG_NAME("result", "bad_settings"));
		notify_manager("READY=1");
		return;
	}
	team_make(&m.next, m.conf);
	for (unsigned i = 0; i < m.next.n; i++)
		place_start(&m.next.places[i], m.conf, m.listener.fd);
}

static void reload_end(bool good)
{
	int64_t now = clock_mono_ms();
	if (good) {
		team_leave(&m.now, &m.leavers,
			now + ((int64_t)m.before.drain_s + CHILD_KILL_S) * 1000);
		m.now = m.next;
		m.next = (struct team){0};
	} else {
		team_leave(&m.next, &m.leavers, now + CHILD_KILL_S * 1000);
		*m.conf = m.before;
	}
	log_event(EV_MASTER_RELOAD, LOG_NAME("result", good ? "done" : "refused"));
	notify_manager("READY=1");
	if (m.reload_again)
		reload_begin();
}

static void note_ready(void)
{
	if (!m.started && team_ready(&m.now)) {
		m.started = true;
		log_event(EV_MASTER_READY, LOG_INT("workers", m.now.n - 1));
		notify_manager("READY=1");
		if (m.reload_again)
			reload_begin();
	}
	if (m.next.n && team_ready(&m.next))
		reload_end(true);
}

/* -- children that end ------------------------------------------------------------------------- */

static void log_end(pid_t pid, bool worker, int status, bool asked)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	log_event(EV_CHILD_ENDED, LOG_NAME("kind", worker ? "worker" : "keeper"),
		LOG_INT("child", pid),
		LOG_INT("exit", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
		LOG_INT("signal", signal), LOG_NAME("asked", asked ? "yes" : "no"));
}

static void refused(const struct place *p, const char *why)
{
	log_event(EV_CHILD_REFUSED, LOG_NAME("kind", p->worker ? "worker" : "keeper"),
		LOG_INT("child", p->pid), LOG_NAME("why", why));
}

/* A member of the present team ended by itself. */
static void member_ended(struct place *p, int status)
{
	/* One that gives up by itself before anybody was ever served means that the program or its
	 * settings are bad: say so by ending, instead of trying for ever. */
	if (!m.started && WIFEXITED(status)) {
		refused(p, "start");
		p->pid = 0;
		stop(1);
		return;
	}
	place_restart(p, clock_mono_ms());
}

/* A member of the team that a reload is starting ended: the reload is off. */
static void fresh_ended(struct place *p)
{
	refused(p, "reload");
	p->pid = 0;
	reload_end(false);
}

static void child_ended(pid_t pid, int status)
{
	bool worker, asked = leavers_remove(&m.leavers, pid, &worker);
	struct place *p = team_find(&m.now, pid), *fresh = team_find(&m.next, pid);
	if (!asked && !p && !fresh)
		return; /* not ours: left to us by whoever executed us */
	if (!asked)
		worker = p ? p->worker : fresh->worker;
	log_end(pid, worker, status, asked);
	if (m.hooks->child_ended)
		m.hooks->child_ended(pid, worker);
	if (p)
		member_ended(p, status);
	if (fresh)
		fresh_ended(fresh);
}

static void reap(void)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		child_ended(pid, status);
}

/* -- signals ----------------------------------------------------------------------------------- */

static void on_signals(void)
{
	struct signalfd_siginfo info;
	while (read(m.signal_fd, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGCHLD)
			reap();
		else if (info.ssi_signo != SIGHUP)
			stop(0);
		else if (!m.stopping)
			reload_begin();
	}
}

static void signals_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	m.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	assert(m.signal_fd >= 0);
}

/* -- deadlines --------------------------------------------------------------------------------- */

/* When something is due at a place; 0: nothing. */
static int64_t place_due(const struct place *p)
{
	if (p->start_at)
		return p->start_at;
	return p->pid && !p->ready ? p->started_at + CHILD_START_S * 1000 : 0;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return b && b < a ? b : a;
}

static int next_timeout(void)
{
	int64_t at = INT64_MAX, now = clock_mono_ms();
	for (unsigned i = 0; i < m.now.n; i++)
		at = sooner(at, place_due(&m.now.places[i]));
	for (unsigned i = 0; i < m.next.n; i++)
		at = sooner(at, place_due(&m.next.places[i]));
	for (unsigned i = 0; i < m.leavers.n; i++)
		at = sooner(at, m.leavers.at[i].kill_at);
	if (at == INT64_MAX)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void on_time(void)
{
	int64_t now = clock_mono_ms();
	bool late = false;
	for (unsigned i = 0; i < m.now.n; i++) {
		struct place *p = &m.now.places[i];
		int64_t due = place_due(p);
		if (!due || due > now)
			continue;
		if (p->start_at)
			place_start(p, m.next.n ? &m.before : m.conf, m.listener.fd);
		else
			kill(p->pid, SIGKILL); /* hangs in its start; SIGCHLD brings it back here */
	}
	for (unsigned i = 0; i < m.next.n; i++) {
		int64_t due = place_due(&m.next.places[i]);
		late = late || (due && due <= now);
	}
	if (late)
		reload_end(false);
	leavers_kill(&m.leavers, now);
}

/* -- the loop ---------------------------------------------------------------------------------- */

/* Adds the readiness pipes of a team to the set; returns the new number of entries. */
static nfds_t add_reports(struct pollfd *set, nfds_t n, const struct team *t)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->places[i].ready_fd >= 0)
			set[n++] = (struct pollfd){.fd = t->places[i].ready_fd, .events = POLLIN};
	return n;
}

static void take_report(const struct team *t, int fd)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->places[i].ready_fd == fd)
			place_report(&t->places[i]);
}

static void wait_and_act(void)
{
	struct pollfd *set = must(calloc(1 + m.now.n + m.next.n, sizeof *set));
	set[0] = (struct pollfd){.fd = m.signal_fd, .events = POLLIN};
	nfds_t n = add_reports(set, 1, &m.now);
	n = add_reports(set, n, &m.next);
	if (poll(set, n, next_timeout()) > 0) {
		for (nfds_t i = 1; i < n; i++) {
			if (!set[i].revents)
				continue;
			take_report(&m.now, set[i].fd);
			take_report(&m.next, set[i].fd);
		}
		note_ready();
		if (set[0].revents)
			on_signals();
	}
	free(set);
	on_time();
}

int master_run(struct master_conf *conf, const struct master_hooks *hooks)
{
	m.conf = conf;
	m.hooks = hooks;
	signal(SIGPIPE, SIG_IGN);
	signals_open();
	if (!listener_open(conf->socket_path, conf->socket_group, &m.listener))
		return 1;
	team_make(&m.now, conf);
	for (unsigned i = 0; i < m.now.n; i++)
		place_start(&m.now.places[i], conf, m.listener.fd);
	while (!m.stopping || m.leavers.n)
		wait_and_act();
	team_free(&m.now);
	free(m.leavers.at);
	close(m.signal_fd);
	return m.status ? m.status : m.leavers.killed;
}
