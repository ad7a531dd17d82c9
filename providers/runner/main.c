/*
 * compute-runner: disposable sandboxes on the user's own computer, served by the bridge contract.
 *
 * This file is the order of things: options, user, listening socket, connection file, launcher, a
 * first box as proof, less rights, threads, and the end. Nothing listens before a box was seen to
 * work; rights are given up before the first byte of a stranger is read.
 */
#include "cgroup.h"
#include "clock.h"
#include "connfile.h"
#include "json.h"
#include "listen.h"
#include "options.h"
#include "sandbox.h"
#include "secret.h"
#include "serve.h"
#include "tunnel.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG 256
#define LOOK_MS 500 /* how often the main thread looks whether the launcher lives */

static struct config config;
static char init_path[4096], rootfs_path[4096];

static bool complain(const char *what, const char *why)
{
	(void)fprintf(stderr, "compute-runner: %s: %s\n", what, why);
	return false;
}

/* compute-runner-init lies beside us. */
static bool find_init(void)
{
	ssize_t n = readlink("/proc/self/exe", init_path, sizeof init_path - 32);
	if (n <= 0)
		return complain("own path", "can not be read");
	init_path[n] = 0;
	char *slash = strrchr(init_path, '/');
	(void)snprintf(slash + 1, 32, "compute-runner-init");
	config.init = init_path;
	return access(init_path, X_OK) == 0 ||
	       complain("compute-runner-init", "is not beside this program");
}

static bool find_user(void)
{
	config.root = geteuid() == 0;
	if (!config.root && config.user)
		return complain("--user", "needs to be started as root");
	if (!config.root)
		return true;
	config.box_uid = config.box_gid = BOX_UID;
	if (!config.user)
		return true;
	const struct passwd *p = getpwnam(config.user);
	if (!p)
		return complain("--user", "there is no such user");
	config.box_uid = p->pw_uid;
	config.box_gid = p->pw_gid;
	return (p->pw_uid != 0 && p->pw_gid != 0 && p->pw_uid != HTTP_UID) ||
	       complain("--user", "boxes may not run as this user");
}

static bool find_rootfs(void)
{
	if (!config.rootfs)
		return true;
	if (!realpath(config.rootfs, rootfs_path) || strcmp(rootfs_path, "/") == 0)
		return complain("--rootfs", "must be a folder other than /");
	config.rootfs = rootfs_path;
	return true;
}

/* Two descriptors for each output that is kept, one per connection and box. */
static void raise_limits(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* The HTTP side needs nothing of root; files for output are made in /var/tmp by anybody. */
static bool give_up_rights(void)
{
	if (config.root && (setgroups(0, NULL) < 0 || setresgid(HTTP_UID, HTTP_UID, HTTP_UID) < 0 ||
				   setresuid(HTTP_UID, HTTP_UID, HTTP_UID) < 0))
		return complain("rights", "can not be given up");
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0); /* the token is in memory */
	return true;
}

static int print_check(const char *why)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, 65536);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kbool(&w, "ok", why == NULL);
	if (why)
		jw_kstr(&w, "reason", why);
	jw_kbool(&w, "root", config.root);
	jw_kstr(&w, "network", why ? "none" : network_name(registry.network));
	jw_key(&w, "limits");
	jw_obj(&w);
	jw_kint(&w, "memory_mib", config.most.memory_mib);
	jw_key(&w, "cpus");
	jw_num(&w, config.most.cpus);
	jw_kint(&w, "pids", config.most.pids);
	jw_kint(&w, "disk_mib", config.most.disk_mib);
	jw_end(&w);
	if (!why) {
		jw_key(&w, "enforced");
		enforced_write(registry.controllers, registry.network, &w);
		jw_key(&w, "warnings");
		warnings_write(registry.controllers, registry.network, false, &w);
	}
	jw_end(&w);
	(void)fprintf(stdout, "%s\n", b.p);
	return why ? 1 : 0;
}

static void block_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Until a signal, the end of the lifetime, or the end of the launcher; the exit status. */
static int wait_for_end(const sigset_t *set)
{
	const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
	for (;;) {
		if (sigtimedwait(set, NULL, &look) > 0 || clock_mono_ms() >= registry.due_ms)
			return 0;
		if (!launcher_alive(registry.launcher))
			return 1;
	}
}

static const char *address(const char *listening)
{
	static char public[512];
	if (config.tunnel && !config.url)
		return tunnel_start(listening, public, sizeof public) ? public : NULL;
	return config.url ? config.url : listening;
}

static int serve(int listener, const char *url)
{
	sigset_t set;
	(void)sigemptyset(&set);
	/* Not before: it makes the process undumpable, and then a box could not write its own maps.
	 */
	secret_init();
	token_make();
	if (!registry_start(config.lifetime_s * 1000))
		return !complain("threads", "can not be started");
	/* Who has read the file may connect at once; the first requests wait in the queue. */
	if (listen(listener, BACKLOG) < 0)
		return !complain("--listen", "can not listen");
	const char *why = connection_publish(url, registry.expires_ms);
	if (why)
		return !complain("--connection-file", why);
	if (!give_up_rights() || !serve_start(listener))
		return !complain("server", "can not be started");
	(void)fprintf(stderr, "compute-runner: serving at %s\n", url);
	block_signals(&set);
	int status = wait_for_end(&set);
	registry_stop();
	launcher_stop(registry.launcher);
	tunnel_stop();
	serve_stop();
	return status;
}

/* In the launcher, which has the rights for it, at the very end. */
static void clean_up(void)
{
	connection_remove();
	listen_close();
}

static int run(char *listening)
{
	struct launcher *l = launcher_start(&config, clean_up);
	if (!l)
		return !complain("launcher", "can not be started");
	int status;
	const char *why = registry_probe(&config, l);
	if (config.check) {
		status = print_check(why);
	} else if (why) {
		status = !complain("start", why);
	} else {
		const char *url = address(listening);
		status = url ? serve(config.listener, url) : 1;
	}
	launcher_stop(l);
	tunnel_stop();
	return status;
}

int main(int argc, char **argv)
{
	int status;
	sigset_t set;
	char listening[512];

	if (!options_read(argc, argv, &config, &status))
		return status;
	raise_limits();
	if (!find_init() || !find_user() || !find_rootfs())
		return 1;
	/* Before the launcher is forked: no signal may end us half-way. */
	block_signals(&set);
	if (config.check)
		return run(listening);
	const char *why = connection_prepare(config.connection_file);
	if (why)
		return !complain("--connection-file", why);
	config.listener = listen_open(config.listen, listening, sizeof listening);
	if (config.listener < 0) {
		connection_remove();
		return 1;
	}
	return run(listening);
}
