/*
 * Control groups by writing files. Promises: a limit is reported only after its file took the
 * value; groups of a run that still lives are never touched. It does not decide which limits to
 * set.
 */
#include "cgroup.h"

#include "clock.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER    "compute-runner"
#define PATH_SIZE 640

static const char *const names[] = {"memory", "pids", "cpu"};

/* a followed by b; false when that is too long (room is kept for a file name). */
static bool join(char out[PATH_SIZE], const char *a, const char *b)
{
	int n = snprintf(out, PATH_SIZE, "%s%s", a, b);
	return n > 0 && n < PATH_SIZE - 64;
}

static bool put(const char *folder, const char *file, const char *text)
{
	char path[PATH_SIZE + 64];
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	return close(fd) == 0 && ok;
}

static bool put_int(const char *folder, const char *file, int64_t v)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%lld", (long long)v);
	return put(folder, file, text);
}

/* -- where the controllers are ----------------------------------------------------------------- */

/* True when the comma-separated list (ends at a blank or the end) has the word. */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, n) == 0 && strchr(", \n", p[n]))
			return true;
	}
	return false;
}

/* Mount point of a version 1 controller, or of version 2 when controller is NULL. */
static bool find_mount(const char *controller, char out[PATH_SIZE])
{
	char line[4096];
	bool found = false;
	FILE *f = fopen("/proc/self/mounts", "re");
	while (f && !found && fgets(line, sizeof line, f)) {
		char where[256], type[64], options[1024];
		if (sscanf(line, "%*s %255s %63s %1023s", where, type, options) != 3)
			continue;
		found = controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
				   : strcmp(type, "cgroup2") == 0;
		if (found)
			(void)snprintf(out, PATH_SIZE, "%s", where);
	}
	if (f)
		(void)fclose(f);
	return found;
}

/* Our own group in that hierarchy, "" for the top. */
static void own_group(const char *controller, char out[PATH_SIZE])
{
	char line[4096];
	FILE *f = fopen("/proc/self/cgroup", "re");
	out[0] = 0;
	while (f && fgets(line, sizeof line, f)) {
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		bool ours = controller ? has_word(list + 1, controller) : list[1] == 0;
		path[strcspn(path, "\n")] = 0;
		if (ours && strcmp(path, "/") != 0)
			(void)snprintf(out, PATH_SIZE, "%s", path);
	}
	if (f)
		(void)fclose(f);
}

static bool file_has(const char *folder, const char *file, const char *word)
{
	char path[PATH_SIZE + 64], text[512] = "";
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	size_t n = fread(text, 1, sizeof text - 1, f);
	(void)fclose(f);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] == ' ' ? ',' : text[i];
	return has_word(text, word);
}

/* Moves the two processes of the runner into a child; false when others are in the group as well,
 * which are not ours to move. */
static bool step_aside(const char *folder)
{
	char path[PATH_SIZE + 64], child[PATH_SIZE + 32];
	long pid;
	bool alone = true;
	(void)snprintf(path, sizeof path, "%s/cgroup.procs", folder);
	FILE *f = fopen(path, "re");
	while (f && fscanf(f, "%ld", &pid) == 1)
		alone &= pid == getpid() || pid == getppid();
	if (f)
		(void)fclose(f);
	(void)snprintf(child, sizeof child, "%s/" FOLDER "-self", folder);
	return f && alone && (mkdir(child, 0755) == 0 || errno == EEXIST) &&
	       put_int(child, "cgroup.procs", getppid()) && put(child, "cgroup.procs", "0");
}

/* Version 2: lets children of folder use the controller. A group with processes in it cannot do
 * that (except the top one), so then we move ourselves into a child first. */
static bool delegate(const char *folder, const char *controller)
{
	char text[32];
	if (!file_has(folder, "cgroup.controllers", controller))
		return false;
	if (file_has(folder, "cgroup.subtree_control", controller))
		return true;
	(void)snprintf(text, sizeof text, "+%s", controller);
	if (put(folder, "cgroup.subtree_control", text))
		return true;
	return errno == EBUSY && step_aside(folder) && put(folder, "cgroup.subtree_control", text);
}

static bool place_v2(
	const char *mount, const char *own, const char *controller, char out[PATH_SIZE])
{
	char folder[PATH_SIZE];
	if (!join(folder, mount, own) || !delegate(folder, controller) ||
		!join(out, folder, "/" FOLDER))
		return false;
	return (mkdir(out, 0755) == 0 || errno == EEXIST) && delegate(out, controller);
}

/* Folder that holds the runs, made when it is not there. */
static bool place(enum controller c, char out[PATH_SIZE], bool *ret_v2)
{
	char mount[PATH_SIZE], own[PATH_SIZE], folder[PATH_SIZE];
	*ret_v2 = !find_mount(names[c], mount);
	if (*ret_v2) {
		if (!find_mount(NULL, mount))
			return false;
		own_group(NULL, own);
		/* The top first: its processes are no obstacle there. Only root may write to it. */
		return place_v2(mount, "", names[c], out) ||
		       (own[0] && place_v2(mount, own, names[c], out));
	}
	own_group(names[c], own);
	if (!join(folder, mount, own))
		return false;
	if (access(folder, W_OK) < 0 && !join(folder, mount, ""))
		return false;
	if (!join(out, folder, "/" FOLDER))
		return false;
	return mkdir(out, 0755) == 0 || errno == EEXIST;
}

/* -- removing ---------------------------------------------------------------------------------- */

static bool kill_all(const char *folder)
{
	char path[PATH_SIZE + 64];
	long pid;
	bool empty = true;
	if (put(folder, "cgroup.kill", "1"))
		return true;
	(void)snprintf(path, sizeof path, "%s/cgroup.procs", folder);
	FILE *f = fopen(path, "re");
	while (f && fscanf(f, "%ld", &pid) == 1) {
		empty = false;
		if (pid > 1 && pid != getpid())
			(void)kill((pid_t)pid, SIGKILL);
	}
	if (f)
		(void)fclose(f);
	return empty;
}

static bool remove_group(const char *folder)
{
	if (rmdir(folder) == 0 || errno == ENOENT)
		return true;
	(void)kill_all(folder);
	return rmdir(folder) == 0 || errno == ENOENT;
}

static void remove_run(const char *run)
{
	char child[PATH_SIZE + 300];
	/* Killed processes need a moment to leave; half a second is plenty for SIGKILL. */
	for (int tries = 0; tries < 50; tries++) {
		DIR *d = opendir(run);
		for (struct dirent *e; d && (e = readdir(d));) {
			if (e->d_type != DT_DIR || e->d_name[0] == '.')
				continue;
			(void)snprintf(child, sizeof child, "%s/%s", run, e->d_name);
			(void)remove_group(child);
		}
		if (d)
			(void)closedir(d);
		if (rmdir(run) == 0 || errno == ENOENT)
			return;
		clock_sleep_ms(10);
	}
}

/* A run whose lock can be taken is dead. */
static void remove_dead(const char *folder)
{
	char run[PATH_SIZE + 300];
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		(void)snprintf(run, sizeof run, "%s/%s", folder, e->d_name);
		int fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			remove_run(run);
		if (fd >= 0)
			(void)close(fd);
	}
	if (d)
		(void)closedir(d);
}

/* -- public ------------------------------------------------------------------------------------ */

/* The folder of this run, locked unless another controller of the same hierarchy did it. */
static bool make_run(struct cgroups *g, enum controller c, const char *folder, const char *run)
{
	bool shared = false;
	for (int i = 0; i < (int)c; i++)
		shared |= g->base[i][0] && strncmp(g->base[i], folder, strlen(folder)) == 0;
	if (!shared)
		remove_dead(folder);
	int n = snprintf(g->base[c], sizeof g->base[c], "%s/%s", folder, run);
	if (n >= (int)sizeof g->base[c] || (mkdir(g->base[c], 0755) < 0 && errno != EEXIST))
		return false;
	if (g->v2[c] && !delegate(g->base[c], names[c]))
		return false;
	if (shared)
		return true;
	g->locks[c] = open(g->base[c], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return g->locks[c] >= 0 && flock(g->locks[c], LOCK_EX | LOCK_NB) == 0;
}

static void open_one(struct cgroups *g, enum controller c, const char *run)
{
	char folder[PATH_SIZE];
	if (!place(c, folder, &g->v2[c]))
		return;
	/* One run at a time between making a folder and locking it. */
	int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock < 0)
		return;
	if (flock(lock, LOCK_EX) < 0 || !make_run(g, c, folder, run))
		g->base[c][0] = 0;
	(void)close(lock);
}

void cgroup_open(struct cgroups *g)
{
	uint8_t random[8];
	char run[17];
	random_bytes(random, sizeof random);
	hex_encode(run, random, sizeof random);
	*g = (struct cgroups){.locks = {-1, -1, -1}};
	for (int c = 0; c < CONTROLLER__MAX; c++)
		open_one(g, (enum controller)c, run);
}

void cgroup_close(struct cgroups *g)
{
	for (int c = 0; c < CONTROLLER__MAX; c++) {
		if (!g->base[c][0])
			continue;
		remove_run(g->base[c]);
		char *slash = strrchr(g->base[c], '/');
		*slash = 0;
		(void)rmdir(g->base[c]); /* fails while another run lives there */
		g->base[c][0] = 0;
		if (g->locks[c] >= 0)
			(void)close(g->locks[c]);
	}
}

static void group_path(
	const struct cgroups *g, enum controller c, const char *id, char out[PATH_SIZE])
{
	(void)snprintf(out, PATH_SIZE, "%s/%s", g->base[c], id);
}

static bool limit(
	const struct cgroups *g, enum controller c, const char *folder, const struct limits *l)
{
	int64_t bytes = l->memory_mib << 20;
	char quota[64];
	bool v2 = g->v2[c];
	switch (c) {
	case CONTROLLER_MEMORY:
		if (!put_int(folder, v2 ? "memory.max" : "memory.limit_in_bytes", bytes))
			return false;
		/* No swap; both files may be absent on kernels that do not count it. */
		(void)(v2 ? put(folder, "memory.swap.max", "0")
			  : put_int(folder, "memory.memsw.limit_in_bytes", bytes));
		return true;
	case CONTROLLER_PIDS:
		/* Two more: bubblewrap and our init live in the group too. */
		return put_int(folder, "pids.max", l->pids + 2);
	case CONTROLLER_CPU:
		(void)snprintf(quota, sizeof quota, "%lld 100000", (long long)(l->cpus * 100000));
		return v2 ? put(folder, "cpu.max", quota)
			  : put_int(folder, "cpu.cfs_period_us", 100000) &&
				       put_int(folder, "cpu.cfs_quota_us",
					       (int64_t)(l->cpus * 100000));
	case CONTROLLER__MAX:
		break;
	}
	return false;
}

unsigned cgroup_make(const struct cgroups *g, const char *id, const struct limits *limits)
{
	char folder[PATH_SIZE];
	unsigned made = 0;
	for (int c = 0; c < CONTROLLER__MAX; c++) {
		if (!g->base[c][0])
			continue;
		group_path(g, (enum controller)c, id, folder);
		if ((mkdir(folder, 0755) == 0 || errno == EEXIST) &&
			limit(g, (enum controller)c, folder, limits))
			made |= 1u << c;
	}
	return made;
}

bool cgroup_join(const struct cgroups *g, const char *id, unsigned controllers)
{
	char folder[PATH_SIZE];
	for (int c = 0; c < CONTROLLER__MAX; c++) {
		if (!(controllers & 1u << c))
			continue;
		group_path(g, (enum controller)c, id, folder);
		if (!put(folder, "cgroup.procs", "0"))
			return false;
	}
	return true;
}

bool cgroup_remove(const struct cgroups *g, const char *id)
{
	char folder[PATH_SIZE];
	bool gone = true;
	for (int c = 0; c < CONTROLLER__MAX; c++) {
		if (!g->base[c][0])
			continue;
		group_path(g, (enum controller)c, id, folder);
		gone &= remove_group(folder);
	}
	return gone;
}

bool cgroup_memory(const struct cgroups *g, const char *id, char path[640], const char **ret_shown)
{
	if (!g->base[CONTROLLER_MEMORY][0])
		return false;
	group_path(g, CONTROLLER_MEMORY, id, path);
	*ret_shown = g->v2[CONTROLLER_MEMORY] ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
	return true;
}
