/*
 * From a forked process to a box. Promises: any step that fails ends the process, so no command
 * ever runs with less isolation than asked for. The box gets no file of the machine but system
 * folders read-only, no variable, no descriptor but init's socket.
 *
 * Writable folders share one tmpfs of the allowed size, mounted in a mount namespace of our own;
 * bubblewrap then builds the box from it as an ordinary user without any right outside.
 */
#include "jail.h"

#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGV_MAX 400
#define INFO_FD  4
#define BOX_HOME "/home/user"

static void __attribute__((noreturn)) die(const char *step)
{
	/* The runner's own standard error; nothing in it comes from a caller. */
	(void)dprintf(STDERR_FILENO, "compute-runner: box: %s: %s\n", step, strerror(errno));
	_exit(1);
}

static void check(bool ok, const char *step)
{
	if (!ok)
		die(step);
}

/* -- the argument list of bubblewrap ----------------------------------------------------------- */

static const char *list[ARGV_MAX + 1];
static int list_n;
static char text[64 << 10];
static size_t text_n;

static void arg(const char *s)
{
	check(list_n < ARGV_MAX, "too many arguments");
	list[list_n++] = s;
}

static void args(const char *const *words)
{
	for (; *words; words++)
		arg(*words);
}
#define ARGS_OF(...) args((const char *const[]){__VA_ARGS__, NULL})

/* a and b in one string that lives as long as the list. */
static const char *join(const char *a, const char *b)
{
	size_t n = strlen(a) + strlen(b) + 1;
	check(n <= sizeof text - text_n, "arguments too long");
	char *s = text + text_n;
	(void)snprintf(s, n, "%s%s", a, b);
	text_n += n;
	return s;
}

/* -- files ------------------------------------------------------------------------------------- */

/* Top folders of a root. Of this machine, /etc is shown in parts and /opt is no system folder. */
static const char *const tops[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", NULL};

/* A folder to mount our tmpfs on: nothing that we still need may lie below it. */
static const char *mount_place(const struct config *c)
{
	static const char *const places[] = {"/mnt", "/media", "/srv", "/run", "/tmp"};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		size_t n = strlen(places[i]);
		bool in_use = strncmp(c->init, places[i], n) == 0 ||
			      (c->rootfs && strncmp(c->rootfs, places[i], n) == 0);
		if (!in_use && access(places[i], F_OK) == 0)
			return places[i];
	}
	errno = ENOENT;
	die("folder to mount on");
}

static void write_file(const char *stage, const char *name, const char *content)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", stage, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	check(fd >= 0 && write(fd, content, strlen(content)) == (ssize_t)strlen(content) &&
			close(fd) == 0,
		name);
}

static void make_dir(const char *stage, const char *name, mode_t mode, const struct config *c)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", stage, name);
	check(mkdir(path, 0700) == 0 && chmod(path, mode) == 0, name);
	check(!c->root || chown(path, c->box_uid, c->box_gid) == 0, name);
}

static void bind_here(const char *from, const char *stage, const char *name, bool is_dir)
{
	char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", stage, name);
	if (is_dir)
		check(mkdir(path, 0755) == 0, name);
	else
		write_file(stage, name, "");
	check(mount(from, path, NULL, MS_BIND | MS_REC, NULL) == 0, name);
}

/* Resolvers that a box may use: of slirp4netns, of this machine, none. */
static void write_resolver(const struct jail *j, const char *stage)
{
	char content[4096] = "";
	if (j->network == NETWORK_INTERNET) {
		(void)snprintf(content, sizeof content, "nameserver %s\n", NETNS_RESOLVER);
	} else if (j->network == NETWORK_HOST) {
		int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? 0 : read(fd, content, sizeof content - 1);
		content[n < 0 ? 0 : n] = 0;
		(void)close(fd);
	}
	write_file(stage, "resolv.conf", content);
}

/* The parts of a given root, each for itself: its top folder may be closed to the box's user. */
static void stage_root(const char *root, const char *stage)
{
	char path[256], target[256], name[64];
	(void)snprintf(path, sizeof path, "%s/root", stage);
	check(mkdir(path, 0755) == 0, "root");
	for (const char *const *t = tops; *t; t++) {
		struct stat st;
		const char *from = join(root, *t);
		(void)snprintf(name, sizeof name, "root%s", *t);
		if (lstat(from, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			bind_here(from, stage, name, true);
		ssize_t n = S_ISLNK(st.st_mode) ? readlink(from, target, sizeof target - 1) : -1;
		if (n <= 0)
			continue;
		target[n] = 0;
		(void)snprintf(path, sizeof path, "%s/%s", stage, name);
		check(symlink(target, path) == 0, name);
	}
}

/* The tmpfs with what the box may write (home, tmp, shm) and what we put into its /etc. */
static const char *stage_make(const struct jail *j)
{
	const struct config *c = j->config;
	const char *stage = mount_place(c);
	char options[128];
	/* A number of files in proportion: inodes are kernel memory that a size does not bound. */
	(void)snprintf(options, sizeof options, "size=%lldm,nr_inodes=%lld,mode=0755",
		(long long)j->limits.disk_mib, (long long)j->limits.disk_mib * 64 + 4096);
	check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	check(mount("box", stage, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0, "tmpfs");
	bind_here(c->init, stage, "init", false);
	if (c->rootfs)
		stage_root(c->rootfs, stage);
	make_dir(stage, "home", 0755, c);
	make_dir(stage, "tmp", 01777, c);
	make_dir(stage, "shm", 01777, c);
	write_file(stage, "passwd",
		"root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:" BOX_HOME ":/bin/sh\n"
		"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n");
	write_file(stage, "group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n");
	write_file(stage, "hosts", "127.0.0.1 localhost box\n::1 localhost\n");
	write_resolver(j, stage);
	return stage;
}

/* -- what the box sees ------------------------------------------------------------------------- */

/* One top folder of the machine: a link stays a link, a folder is bound read-only. */
static void show_top(const char *root, const char *name)
{
	char target[256];
	const char *from = join(root, name);
	struct stat st;
	if (lstat(from, &st) < 0)
		return;
	ssize_t n = S_ISLNK(st.st_mode) ? readlink(from, target, sizeof target - 1) : -1;
	if (n > 0) {
		target[n] = 0;
		ARGS_OF("--symlink", join(target, ""), name);
	} else if (S_ISDIR(st.st_mode)) {
		ARGS_OF("--ro-bind", from, name);
	}
}

static void show_system(const char *root)
{
	for (const char *const *t = tops; *t; t++) {
		bool given_only = strcmp(*t, "/opt") == 0 || strcmp(*t, "/etc") == 0;
		if (*root || !given_only)
			show_top(root, *t);
	}
}

/* Configuration that programs need to start, nothing about this machine or its people. */
static void show_etc(void)
{
	static const char *const names[] = {"/etc/alternatives", "/etc/ssl/certs",
		"/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/nsswitch.conf",
		"/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/services",
		"/etc/protocols", "/etc/debian_version", "/etc/os-release", "/etc/fonts",
		"/etc/perl", "/etc/python3", "/etc/python3.11", "/etc/java-17-openjdk",
		"/etc/magic", "/etc/profile", "/etc/bash.bashrc", "/etc/inputrc", "/etc/terminfo",
		"/etc/xml", "/etc/sgml", "/etc/gai.conf", "/etc/host.conf", NULL};
	for (const char *const *n = names; *n; n++)
		ARGS_OF("--ro-bind-try", *n, *n);
}

static void own_etc(const char *stage, const char *root)
{
	static const char *const names[] = {"/passwd", "/group", "/hosts", "/resolv.conf", NULL};
	for (const char *const *n = names; *n; n++) {
		struct stat st;
		const char *there = join(join(root, "/etc"), *n);
		/* Inside a given root only what is a plain file there can be covered. */
		if (*root && (lstat(there, &st) < 0 || !S_ISREG(st.st_mode)))
			continue;
		ARGS_OF("--ro-bind", join(stage, *n), join("/etc", *n));
	}
}

static void compose(const struct jail *j, const char *stage)
{
	const char *root = j->config->rootfs ? join(stage, "/root") : "";
	char group[640];
	const char *shown;
	ARGS_OF("bwrap", "--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc",
		"--unshare-uts", "--unshare-cgroup-try", "--uid", "1000", "--gid", "1000",
		"--hostname", "box", "--clearenv", "--die-with-parent", "--new-session",
		"--as-pid-1", "--info-fd", "4");
	show_system(root);
	if (!*root)
		show_etc();
	own_etc(stage, root);
	ARGS_OF("--proc", "/proc", "--dev", "/dev", "--bind", join(stage, "/shm"), "/dev/shm",
		"--remount-ro", "/dev", "--bind", join(stage, "/tmp"), "/tmp", "--bind",
		join(stage, "/home"), BOX_HOME, "--dir", "/run", "--dir", "/var", "--symlink",
		"../tmp", "/var/tmp", "--ro-bind", join(stage, "/init"), "/.init");
	if (j->controllers & 1u << CONTROLLER_MEMORY &&
		cgroup_memory(j->groups, j->id, group, &shown))
		ARGS_OF("--ro-bind", join(group, ""), shown);
	ARGS_OF("--remount-ro", "/", "--chdir", BOX_HOME, "/.init");
	list[list_n] = NULL;
}

/* -- rights ------------------------------------------------------------------------------------ */

static void put(const char *path, const char *s)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	check(fd >= 0 && write(fd, s, strlen(s)) == (ssize_t)strlen(s) && close(fd) == 0, path);
}

/* As an ordinary user the namespaces belong to a user namespace of their own, in which only this
 * process has rights; bubblewrap makes a second one below it. */
static void own_namespaces(const struct jail *j)
{
	int flags = CLONE_NEWNS | (j->network == NETWORK_HOST ? 0 : CLONE_NEWNET);
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();
	check(unshare(flags | (j->config->root ? 0 : CLONE_NEWUSER)) == 0, "namespaces");
	if (j->config->root)
		return;
	put("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof map, "%u %u 1", uid, uid);
	put("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof map, "%u %u 1", gid, gid);
	put("/proc/self/gid_map", map);
	/* Counted per user namespace, so only this box's processes count. bubblewrap and init too.
	 */
	rlim_t most = (rlim_t)j->limits.pids + 2;
	if (!(j->controllers & 1u << CONTROLLER_PIDS))
		check(setrlimit(RLIMIT_NPROC, &(struct rlimit){most, most}) == 0, "process limit");
}

static void drop_rights(const struct config *c)
{
	struct rlimit files;
	check(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) == 0, "core limit");
	/* The runner raised its own; programs that use select() or close "all" files want the
	 * usual. */
	check(getrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	files.rlim_cur = files.rlim_max < 1024 ? files.rlim_max : 1024;
	check(setrlimit(RLIMIT_NOFILE, &files) == 0, "file limit");
	if (c->root)
		check(setgroups(0, NULL) == 0 &&
				setresgid(c->box_gid, c->box_gid, c->box_gid) == 0 &&
				setresuid(c->box_uid, c->box_uid, c->box_uid) == 0,
			"user of the box");
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
	check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "death signal");
}

/* 0 and 1 to nowhere, 2 stays the runner's, 3 init's socket, 4 for bubblewrap's report. */
static void place_fds(const struct jail *j)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int socket = fcntl(j->socket, F_DUPFD_CLOEXEC, 10),
	    info = fcntl(j->info, F_DUPFD_CLOEXEC, 10);
	check(nowhere >= 0 && socket >= 0 && info >= 0 && dup2(nowhere, 0) >= 0 &&
			dup2(nowhere, 1) >= 0 && dup2(socket, WIRE_SOCKET_FD) >= 0 &&
			dup2(info, INFO_FD) >= 0,
		"descriptors");
	check(close_range(INFO_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0, "descriptors");
}

void jail_enter(const struct jail *j)
{
	char byte = 'n';
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	pid_t parent = getppid();
	check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent, "death signal");
	check(cgroup_join(j->groups, j->id, j->controllers), "control group");
	own_namespaces(j);
	if (j->network != NETWORK_HOST)
		check(netns_loopback_up(), "loopback");
	if (j->network == NETWORK_INTERNET)
		check(netns_public_only(j->host), "routes");
	const char *stage = stage_make(j);
	compose(j, stage);
	check(write(j->ready, &byte, 1) == 1 && read(j->go, &byte, 1) == 1, "word to go on");
	drop_rights(j->config);
	place_fds(j);
	(void)execvp("bwrap", (char *const *)(uintptr_t)list);
	die("bwrap");
}
