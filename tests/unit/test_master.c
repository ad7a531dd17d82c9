/*
 * The parts of the master: socket, messages to the service manager, pauses, children. This program
 * is its own child: executed with "worker" or "keeper" it does what MT_MODE says.
 */
#include "alloc.h"
#include "clock.h"
#include "fcgi/master_child.h"
#include "fcgi/master_socket.h"
#include "bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], path[100], other[100];
static char self[4096];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/master-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/s", folder);
	snprintf(other, sizeof other, "%s/n", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	rmdir(folder);
	return 0;
}

static bool connects(const char *to)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	strncpy(a.sun_path, to, sizeof a.sun_path - 1);
	bool yes = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
	close(fd);
	return yes;
}

/* -- the socket -------------------------------------------------------------------------------- */

static void the_socket_is_for_owner_and_group_only(void **state)
{
	struct listener l;
	struct stat s;
	(void)state;
	assert_true(listener_open(path, NULL, &l));
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0660);
	assert_true(fcntl(l.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(connects(path));
	listener_close(&l);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_socket_left_behind_is_replaced(void **state)
{
	struct listener dead, l;
	(void)state;
	assert_true(listener_open(path, NULL, &dead));
	close(dead.fd); /* as a kill -9 leaves it */
	assert_false(connects(path));
	assert_true(listener_open(path, NULL, &l));
	assert_true(connects(path));
	listener_close(&l);
}

static void closing_spares_the_socket_of_a_later_master(void **state)
{
	struct listener first, second;
	(void)state;
	assert_true(listener_open(path, NULL, &first));
	assert_true(listener_open(path, NULL, &second));
	listener_close(&first);
	assert_true(connects(path));
	listener_close(&second);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	struct listener l;
	struct stat s;
	(void)state;
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_false(listener_open(path, NULL, &l));
	assert_int_equal(stat(path, &s), 0);
	assert_true(S_ISREG(s.st_mode));
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
	struct listener l;
	char deep[200];
	(void)state;
	memset(deep, 'x', sizeof deep);
	memcpy(deep, "/tmp/", 5);
	deep[sizeof deep - 1] = 0;
	assert_false(listener_open(deep, NULL, &l));
}

static void a_folder_that_is_missing_is_refused(void **state)
{
	struct listener l;
	(void)state;
	assert_false(listener_open("/nonexistent/folder/s", NULL, &l));
}

static void an_unknown_group_is_refused_and_nothing_listens(void **state)
{
	struct listener l;
	(void)state;
	assert_false(listener_open(path, "no-such-group-here", &l));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(folder), 0); /* nothing was left in it */
}

/* Runs fn in a child and gives its exit status; descriptors and environment stay as they are here.
 */
static int in_child(int (*fn)(void))
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(fn());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int take_descriptor_0(void)
{
	struct listener made, l;
	if (!listener_open(path, NULL, &made) || dup2(made.fd, 0) < 0)
		return 1;
	if (!listener_open(NULL, NULL, &l) || l.fd == 0 || l.path)
		return 2;
	if (!(fcntl(l.fd, F_GETFD) & FD_CLOEXEC))
		return 3;
	int on = 0;
	socklen_t n = sizeof on;
	if (getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0)
		return 4; /* descriptor 0 must be a socket no more */
	return connects(path) ? 0 : 5;
}

static int take_passed_socket(void)
{
	struct listener made, l;
	char pid[32];
	close(0);
	if (!listener_open(path, NULL, &made) || dup2(made.fd, 3) < 0)
		return 1;
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	if (made.fd != 3)
		close(made.fd);
	return listener_open(NULL, NULL, &l) && l.fd == 3 ? 0 : 2;
}

static int take_socket_of_another_process(void)
{
	struct listener made, l;
	close(0);
	if (open("/dev/null", O_RDONLY) != 0 || !listener_open(path, NULL, &made))
		return 1;
	if (dup2(made.fd, 3) < 0)
		return 2;
	setenv("LISTEN_PID", "1", 1);
	setenv("LISTEN_FDS", "1", 1);
	return listener_open(NULL, NULL, &l);
}

static int take_nothing(void)
{
	struct listener l;
	close(0);
	return listener_open(NULL, NULL, &l);
}

static void a_socket_on_descriptor_0_is_taken_and_moved_away(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_descriptor_0), 0);
}

static void a_socket_passed_by_the_service_manager_is_taken(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_passed_socket), 0);
}

static void a_socket_passed_to_another_process_is_not_ours(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_socket_of_another_process), 0);
}

static void without_any_socket_there_is_no_start(void **state)
{
	(void)state;
	assert_int_equal(in_child(take_nothing), 0);
}

/* -- the service manager ------------------------------------------------------------------------
 */

static void the_manager_is_told(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char text[200] = "";
	(void)state;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	memcpy(a.sun_path, other, strlen(other));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	setenv("NOTIFY_SOCKET", other, 1);
	notify_manager("READY=1");
	assert_true(recv(fd, text, sizeof text - 1, 0) > 0);
	assert_memory_equal(text, "READY=1\nMONOTONIC_USEC=", 23);
	close(fd);
	notify_manager("READY=1"); /* nobody listens any more: not an error */
	setenv("NOTIFY_SOCKET", "relative/path", 1);
	notify_manager("READY=1");
	unsetenv("NOTIFY_SOCKET");
	notify_manager("READY=1");
}

static void an_abstract_manager_is_told_too(void **state)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64], text[200] = "";
	(void)state;
	snprintf(name, sizeof name, "@master-test-%d", (int)getpid());
	memcpy(a.sun_path, name, strlen(name));
	a.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	notify_manager("STOPPING=1");
	unsetenv("NOTIFY_SOCKET");
	assert_true(recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
	assert_memory_equal(text, "STOPPING=1\n", 11);
	close(fd);
}

/* -- children -------------------------------------------------------------------------------------
 */

static void pauses_double_for_children_that_die_young(void **state)
{
	static const int wanted[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
	struct place p = {.worker = true, .ready_fd = -1};
	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		p.started_at = 1000;
		place_restart(&p, 1000 + CHILD_YOUNG_MS - 1);
		assert_int_equal(p.pause_ms, wanted[i]);
		assert_int_equal(p.start_at, 1000 + CHILD_YOUNG_MS - 1 + wanted[i]);
	}
	place_restart(&p, 1000 + CHILD_YOUNG_MS); /* it lived: the next start is at once */
	assert_int_equal(p.pause_ms, 0);
	assert_int_equal(p.start_at, 1000 + CHILD_YOUNG_MS);
}

static void a_team_is_the_workers_and_one_keeper(void **state)
{
	struct team t;
	(void)state;
	team_make(&t, &(struct master_conf){.workers = 3});
	assert_int_equal(t.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(t.places[i].worker, i < 3);
	assert_false(team_ready(&t));
	assert_null(team_find(&t, 12345));
	team_free(&t);
	team_make(&t, &(struct master_conf){0});
	assert_true(t.n >= 3); /* at least two workers on any machine */
	team_free(&t);
}

static void await_report(struct place *p)
{
	while (p->ready_fd >= 0) {
		struct pollfd f = {.fd = p->ready_fd, .events = POLLIN};
		assert_int_equal(poll(&f, 1, 20000), 1);
		place_report(p);
	}
}

static struct place started(const char *mode, bool worker, int listen_fd)
{
	static char option[] = "--config", file[] = "file", *args[] = {option, file, NULL};
	struct master_conf conf = {.self = self, .child_args = args};
	struct place p = {.worker = worker, .ready_fd = -1};
	setenv("MT_MODE", mode, 1);
	place_start(&p, &conf, listen_fd);
	assert_true(p.pid > 0);
	return p;
}

static int status_of(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void a_child_reports_ready_and_leaves_on_request(void **state)
{
	struct leavers l = {0};
	struct team t;
	bool worker;
	(void)state;
	team_make(&t, &(struct master_conf){.workers = 1});
	t.places[0] = started("ready", true, -1);
	t.places[1] = started("ready", false, -1);
	await_report(&t.places[0]);
	assert_false(team_ready(&t));
	await_report(&t.places[1]);
	assert_true(team_ready(&t));
	pid_t one = t.places[0].pid, two = t.places[1].pid;
	team_leave(&t, &l, clock_mono_ms() + 60000);
	assert_int_equal(l.n, 2);
	assert_int_equal(status_of(one), 1000 + SIGTERM);
	assert_int_equal(status_of(two), 1000 + SIGTERM);
	assert_true(leavers_remove(&l, one, &worker));
	assert_true(worker);
	assert_true(leavers_remove(&l, two, &worker));
	assert_false(worker);
	assert_false(leavers_remove(&l, two, &worker));
	assert_false(l.killed);
	free(l.at);
}

static void a_child_that_ignores_term_is_killed_in_time(void **state)
{
	struct leavers l = {0};
	struct team t;
	(void)state;
	team_make(&t, &(struct master_conf){.workers = 1});
	t.places[0] = started("stubborn", true, -1);
	await_report(&t.places[0]);
	pid_t pid = t.places[0].pid;
	team_leave(&t, &l, 5000);
	leavers_kill(&l, 4999);
	assert_false(l.killed);
	leavers_kill(&l, 5000);
	assert_true(l.killed);
	assert_int_equal(status_of(pid), 1000 + SIGKILL);
	free(l.at);
}

static void a_child_that_ends_without_a_report_is_not_ready(void **state)
{
	(void)state;
	struct place p = started("exit", true, -1);
	await_report(&p);
	assert_false(p.ready);
	assert_int_equal(status_of(p.pid), 3);
}

static void a_binary_that_is_missing_ends_with_127(void **state)
{
	struct place p = {.worker = true, .ready_fd = -1};
	(void)state;
	place_start(&p, &(struct master_conf){.self = "/nonexistent/binary"}, -1);
	await_report(&p);
	assert_false(p.ready);
	assert_int_equal(status_of(p.pid), 127);
}

/* The child itself checks what it got; see check_inheritance. */
static void children_get_their_descriptors_and_nothing_else(void **state)
{
	struct listener l;
	(void)state;
	setenv("LISTEN_FDS", "1", 1);
	setenv("NOTIFY_SOCKET", "/nowhere", 1);
	assert_true(listener_open(path, NULL, &l));
	struct place worker = started("check", true, l.fd);
	struct place keeper = started("check", false, l.fd);
	unsetenv("LISTEN_FDS");
	unsetenv("NOTIFY_SOCKET");
	await_report(&worker);
	await_report(&keeper);
	assert_int_equal(status_of(worker.pid), 0);
	assert_int_equal(status_of(keeper.pid), 0);
	listener_close(&l);
}

/* -- the whole master, where it gives up by itself
 * --------------------------------------------------- */

static int run_master(void)
{
	struct master_conf conf = {.socket_path = path, .workers = 2, .drain_s = 1, .self = self};
	struct master_hooks hooks = {0};
	if (getenv("MT_MISSING"))
		conf.self = "/nonexistent/binary";
	return 10 + master_run(&conf, &hooks);
}

static void a_start_with_a_missing_binary_fails(void **state)
{
	(void)state;
	setenv("MT_MISSING", "1", 1);
	assert_int_equal(in_child(run_master), 11);
	unsetenv("MT_MISSING");
	assert_int_equal(access(path, F_OK), -1);
}

static void a_start_with_bad_settings_fails(void **state)
{
	(void)state;
	setenv("MT_MODE", "exit", 1); /* as a child does that does not like its settings */
	assert_int_equal(in_child(run_master), 11);
}

/* -- as a child
 * ----------------------------------------------------------------------------------------- */

static int number_of(const char *name)
{
	const char *s = getenv(name);
	return s ? (int)strtol(s, NULL, 10) : -2;
}

/* 0: exactly what a child is to have. */
static int check_inheritance(int argc, char **argv)
{
	bool worker = strcmp(argv[1], "worker") == 0;
	int listen_fd = number_of("CC_LISTEN_FD");
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (argc != 4 || strcmp(argv[2], "--config") != 0 || strcmp(argv[3], "file") != 0)
		return 20;
	if (getenv("LISTEN_FDS") || getenv("NOTIFY_SOCKET"))
		return 21;
	if (sigismember(&mask, SIGTERM) || sigismember(&mask, SIGCHLD))
		return 22;
	if (worker != (listen_fd >= 0))
		return 23;
	for (int fd = 3; fd < 64; fd++) {
		int on = 0;
		socklen_t n = sizeof on;
		bool listens = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0 && on;
		if (listens != (fd == listen_fd))
			return 24;
	}
	return 0;
}

static int be_child(int argc, char **argv)
{
	const char *mode = getenv("MT_MODE");
	int ready_fd = number_of("CC_READY_FD");
	if (!mode || strcmp(mode, "exit") == 0)
		return 3;
	if (strcmp(mode, "check") == 0)
		return check_inheritance(argc, argv);
	if (strcmp(mode, "stubborn") == 0)
		signal(SIGTERM, SIG_IGN);
	if (write(ready_fd, "1", 1) != 1)
		return 4;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "worker") == 0 || strcmp(argv[1], "keeper") == 0))
		return be_child(argc, argv);
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(the_socket_is_for_owner_and_group_only),
		IN_FOLDER(a_socket_left_behind_is_replaced),
		IN_FOLDER(closing_spares_the_socket_of_a_later_master),
		IN_FOLDER(a_file_that_is_no_socket_is_left_alone),
		cmocka_unit_test(a_path_too_long_for_a_socket_is_refused),
		cmocka_unit_test(a_folder_that_is_missing_is_refused),
		IN_FOLDER(an_unknown_group_is_refused_and_nothing_listens),
		IN_FOLDER(a_socket_on_descriptor_0_is_taken_and_moved_away),
		IN_FOLDER(a_socket_passed_by_the_service_manager_is_taken),
		IN_FOLDER(a_socket_passed_to_another_process_is_not_ours),
		cmocka_unit_test(without_any_socket_there_is_no_start),
		IN_FOLDER(the_manager_is_told),
		cmocka_unit_test(an_abstract_manager_is_told_too),
		cmocka_unit_test(pauses_double_for_children_that_die_young),
		cmocka_unit_test(a_team_is_the_workers_and_one_keeper),
		cmocka_unit_test(a_child_reports_ready_and_leaves_on_request),
		cmocka_unit_test(a_child_that_ignores_term_is_killed_in_time),
		cmocka_unit_test(a_child_that_ends_without_a_report_is_not_ready),
		cmocka_unit_test(a_binary_that_is_missing_ends_with_127),
		IN_FOLDER(children_get_their_descriptors_and_nothing_else),
		IN_FOLDER(a_start_with_a_missing_binary_fails),
		IN_FOLDER(a_start_with_bad_settings_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
