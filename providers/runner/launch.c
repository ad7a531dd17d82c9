/*
 * The launcher's side: one thread, one loop, one box at a time (some 20 ms each). Promises: a box
 * is reported gone only after its first process was reaped (then the kernel has ended every process
 * in it) and its groups are removed. It trusts neither the HTTP side (what it asks for is checked
 * against the configuration again) nor the boxes (it never reads from them).
 */
#include "launch.h"

#include "cgroup.h"
#include "clock.h"
#include "jail.h"
#include "launch_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_MS    5000 /* one step of making a box on a busy machine */
#define END_MS     1500 /* one attempt to end a box */
#define LAST_MS    3500 /* all boxes at the end of the run, below the promised 5 s */
#define OVERTIME_S 15   /* the HTTP side ends the run by itself; this is the second wall */

struct slot {
	char id[SANDBOX_ID_SIZE];
	pid_t monitor, network; /* bubblewrap, slirp4netns; 0: none or reaped */
	int first;        /* pidfd of the box's first process; -1: none. Bubblewrap may reap it, */
			  /* and then its number says nothing any more. */
	int network_exit; /* closing it ends slirp4netns */
	bool used, ending;
};

static struct slot slots[SANDBOXES_MAX];
static struct cgroups groups;
static const struct config *config;

static void reap(void)
{
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < SANDBOXES_MAX; i++) {
			struct slot *s = &slots[i];
			s->monitor = s->monitor == pid ? 0 : s->monitor;
			s->network = s->network == pid ? 0 : s->network;
		}
}

static struct slot *slot_find(const char *id)
{
	for (int i = 0; i < SANDBOXES_MAX; i++)
		if (slots[i].used && strcmp(slots[i].id, id) == 0)
			return &slots[i];
	return NULL;
}

static struct slot *slot_free(void)
{
	for (int i = 0; i < SANDBOXES_MAX; i++)
		if (!slots[i].used)
			return &slots[i];
	return NULL;
}

static void end_begin(struct slot *s)
{
	if (s->first >= 0)
		(void)pidfd_send_signal(s->first, SIGKILL, NULL, 0);
	if (s->monitor > 0)
		(void)kill(s->monitor, SIGKILL);
	if (s->network > 0)
		(void)kill(s->network, SIGKILL);
	if (!s->ending && s->network_exit >= 0)
		(void)close(s->network_exit);
	s->ending = true;
}

/* A pidfd becomes readable when the process has ended; for the first process of a box that is after
 * the kernel has ended every other one in it. */
static bool first_ended(const struct slot *s)
{
	struct pollfd p = {.fd = s->first, .events = POLLIN};
	return s->first < 0 || poll(&p, 1, 0) == 1;
}

/* One look: true when nothing is left. Orphans of the box come to us (we are a subreaper). */
static bool end_look(struct slot *s)
{
	reap();
	if (s->monitor || s->network || !first_ended(s) || !cgroup_remove(&groups, s->id))
		return false;
	if (s->first >= 0)
		(void)close(s->first);
	*s = (struct slot){0};
	return true;
}

static bool end_slot(struct slot *s, int64_t wait_ms)
{
	end_begin(s);
	for (int64_t until = clock_mono_ms() + wait_ms; !end_look(s); clock_sleep_ms(1))
		if (clock_mono_ms() > until)
			return false;
	return true;
}

/* -- making a box ------------------------------------------------------------------------------ */

struct birth {
	struct jail jail;
	int ours; /* our end of the pair with init */
	int ready[2], go[2], info[2];
};

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, STEP_MS) == 1;
}

static bool got_byte(int fd)
{
	char byte;
	return readable(fd) && read(fd, &byte, 1) == 1;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* slirp4netns for the namespaces of pid; it is confined and has no rights once it runs. */
static void __attribute__((noreturn)) run_network(pid_t pid, int ready, int leave)
{
	char net[64], user[64];
	sigset_t none;
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int to = fcntl(ready, F_DUPFD_CLOEXEC, 10), from = fcntl(leave, F_DUPFD_CLOEXEC, 10);
	(void)snprintf(net, sizeof net, "/proc/%d/ns/net", (int)pid);
	(void)snprintf(user, sizeof user, "--userns-path=/proc/%d/ns/user", (int)pid);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int fd = 0; fd < 3; fd++)
		if (dup2(nowhere, fd) < 0)
			_exit(1);
	if (dup2(to, 3) < 0 || dup2(from, 4) < 0 || close_range(5, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		_exit(1);
	(void)execlp("slirp4netns", "slirp4netns", "--configure", "--mtu=65520",
		"--disable-host-loopback", "--enable-sandbox", "--enable-seccomp", "--ready-fd=3",
		"--exit-fd=4", "--netns-type=path", net, "tap0", config->root ? NULL : user, NULL);
	_exit(1);
}

static bool start_network(struct slot *s, pid_t pid)
{
	int ready[2], leave[2];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return false;
	if (pipe2(leave, O_CLOEXEC) < 0) {
		(void)close(ready[0]);
		(void)close(ready[1]);
		return false;
	}
	s->network = fork();
	if (s->network == 0)
		run_network(pid, ready[1], leave[0]);
	(void)close(ready[1]);
	(void)close(leave[0]);
	s->network_exit = leave[1];
	s->network = s->network > 0 ? s->network : 0;
	bool ok = s->network && got_byte(ready[0]);
	(void)close(ready[0]);
	return ok;
}

/* Reads {"child-pid": N ...} of bubblewrap. */
static pid_t first_process(int fd)
{
	char text[512] = "";
	size_t n = 0;
	while (n < sizeof text - 1 && !strchr(text, '}') && readable(fd)) {
		ssize_t got = read(fd, text + n, sizeof text - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	const char *at = strstr(text, "\"child-pid\":");
	long pid = at ? strtol(at + strlen("\"child-pid\":"), NULL, 10) : 0;
	return pid > 1 ? (pid_t)pid : 0;
}

/* A handle on the process, which must be a child of bubblewrap: a number that was used again since
 * is not. */
static int handle_on(pid_t pid, pid_t parent)
{
	char path[64], text[512];
	int fd = pid > 0 ? pidfd_open(pid, 0) : -1;
	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int stat = fd >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = stat >= 0 ? read(stat, text, sizeof text - 1) : -1;
	text[n > 0 ? n : 0] = 0;
	const char *behind = strrchr(text, ')'); /* pid (name) state parent ... */
	bool ours = behind && strlen(behind) > 4 && strtol(behind + 4, NULL, 10) == parent;
	if (stat >= 0)
		(void)close(stat);
	if (ours)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static const char *bring_up(struct slot *s, struct birth *b)
{
	s->monitor = fork();
	if (s->monitor == 0)
		jail_enter(&b->jail);
	if (s->monitor < 0) {
		s->monitor = 0;
		return "this machine has no room for another process";
	}
	shut(&b->ready[1]);
	shut(&b->info[1]);
	if (!got_byte(b->ready[0]))
		return "the namespaces of the box could not be made; the runner's error output "
		       "tells why";
	if (b->jail.network == NETWORK_INTERNET && !start_network(s, s->monitor))
		return "slirp4netns could not connect the box";
	if (write(b->go[1], "g", 1) != 1)
		return "the box ended before it started";
	s->first = handle_on(first_process(b->info[0]), s->monitor);
	return s->first >= 0
		       ? NULL
		       : "bubblewrap could not make the box; the runner's error output tells why";
}

static const char *make_box(struct slot *s, struct birth *b)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return "no descriptors left";
	b->ours = pair[0];
	b->jail.socket = pair[1];
	const char *why = "no descriptors left";
	if (pipe2(b->ready, O_CLOEXEC) == 0 && pipe2(b->go, O_CLOEXEC) == 0 &&
		pipe2(b->info, O_CLOEXEC) == 0) {
		b->jail.ready = b->ready[1];
		b->jail.go = b->go[0];
		b->jail.info = b->info[1];
		why = bring_up(s, b);
	}
	int *const all[] = {&b->jail.socket, &b->ready[0], &b->ready[1], &b->go[0], &b->go[1],
		&b->info[0], &b->info[1]};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		shut(all[i]);
	return why;
}

static bool within(int64_t v, int64_t most)
{
	return v >= 1 && v <= most;
}

/* The HTTP side speaks with strangers; what it asks for is checked once more. */
static bool allowed(const struct launch_ask *a)
{
	const struct limits *most = &config->most;
	enum network network =
		config->network == NETWORK_UNSET ? NETWORK_INTERNET : config->network;
	return within(a->limits.memory_mib, most->memory_mib) &&
	       within(a->limits.pids, most->pids) && within(a->limits.disk_mib, most->disk_mib) &&
	       a->limits.cpus > 0 && a->limits.cpus <= most->cpus && a->network >= NETWORK_NONE &&
	       a->network <= network &&
	       strspn(a->id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(a->id) &&
	       a->id[0] >= 'a';
}

static void launch(const struct launch_ask *a, struct launch_reply *r, int *ret_socket)
{
	struct host_addresses host;
	struct slot *s = slot_free();
	const char *why = !allowed(a) ? "not allowed" : !s || slot_find(a->id) ? "no place" : NULL;
	if (why) {
		(void)snprintf(r->why, sizeof r->why, "%s", why);
		return;
	}
	*s = (struct slot){.used = true, .first = -1, .network_exit = -1};
	(void)snprintf(s->id, sizeof s->id, "%s", a->id);
	netns_host_addresses(&host);
	struct birth b = {.jail = {.config = config,
				  .groups = &groups,
				  .host = &host,
				  .id = s->id,
				  .network = a->network,
				  .limits = a->limits},
		.ours = -1,
		.ready = {-1, -1},
		.go = {-1, -1},
		.info = {-1, -1}};
	b.jail.controllers = cgroup_make(&groups, s->id, &a->limits);
	why = make_box(s, &b);
	if (why) {
		shut(&b.ours);
		(void)end_slot(s, END_MS);
		(void)snprintf(r->why, sizeof r->why, "%s", why);
		return;
	}
	r->ok = true;
	r->controllers = b.jail.controllers;
	*ret_socket = b.ours;
}

/* -- the loop ---------------------------------------------------------------------------------- */

/* False when the HTTP side is gone. */
static bool serve_one(int fd)
{
	struct launch_ask a;
	struct launch_reply r = {0};
	int box = -1;
	ssize_t n = recv(fd, &a, sizeof a, 0);
	if (n != sizeof a)
		return n < 0 && errno == EINTR;
	a.id[sizeof a.id - 1] = 0;
	if (a.op == LAUNCH_NEW) {
		launch(&a, &r, &box);
	} else {
		struct slot *s = slot_find(a.id);
		r.ok = !s || end_slot(s, END_MS);
	}
	bool sent = launch_send(fd, &r, sizeof r, box);
	shut(&box);
	return sent;
}

static void end_all(void)
{
	int64_t until = clock_mono_ms() + LAST_MS;
	for (int i = 0; i < SANDBOXES_MAX; i++)
		if (slots[i].used)
			end_begin(&slots[i]);
	for (int left = 1; left && clock_mono_ms() < until; clock_sleep_ms(left ? 2 : 0)) {
		left = 0;
		for (int i = 0; i < SANDBOXES_MAX; i++)
			left += slots[i].used && !end_look(&slots[i]);
	}
	cgroup_close(&groups);
}

static void loop(int fd, int signals)
{
	int64_t deadline = clock_mono_ms() + (config->lifetime_s + OVERTIME_S) * 1000;
	for (bool going = true; going && clock_mono_ms() < deadline;) {
		struct pollfd p[2] = {
			{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
		struct signalfd_siginfo info;
		(void)poll(p, 2, 1000);
		if (p[1].revents)
			while (read(signals, &info, sizeof info) == sizeof info)
				; /* one signal may stand for many children */
		reap();
		if (p[0].revents)
			going = serve_one(fd);
		for (int i = 0; i < SANDBOXES_MAX; i++)
			if (slots[i].used && slots[i].ending)
				(void)end_look(&slots[i]);
	}
}

void launcher_main(const struct config *c, int fd, void (*at_end)(void))
{
	sigset_t set;
	config = c;
	(void)close(c->listener); /* nothing may listen on when the HTTP side is gone */
	/* Ctrl-C reaches the whole group; the HTTP side ends first and we follow. */
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	cgroup_open(&groups);
	loop(fd, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	end_all();
	at_end();
	_exit(0);
}
