/*
 * The list of sandboxes: making, finding, ending. Promises: an id names one sandbox at a time; a
 * sandbox is reported stopped only when the launcher saw nothing left of it; limits and network are
 * what was asked for or the call is refused.
 */
#include "sandbox.h"

#include "arena.h"
#include "cgroup.h"
#include "clock.h"
#include "json.h"
#include "wire.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SANDBOX_ARENA_MAX                                                                          \
	(1u << 20) /* labels and variables: at most 2 * 64 pairs of 256 to 16384 */
#define HELLO_MS 5000

struct registry registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoll = -1};

void registry_lock(void)
{
	(void)pthread_mutex_lock(&registry.lock);
}

void registry_unlock(void)
{
	(void)pthread_mutex_unlock(&registry.lock);
}

void condition_init(pthread_cond_t *c)
{
	pthread_condattr_t a;
	(void)pthread_condattr_init(&a);
	(void)pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	(void)pthread_cond_init(c, &a);
	(void)pthread_condattr_destroy(&a);
}

bool registry_wait(pthread_cond_t *c, int64_t until_ms)
{
	struct timespec t = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
	return pthread_cond_timedwait(c, &registry.lock, &t) == 0;
}

/* -- references -------------------------------------------------------------------------------- */

static void unref_locked(struct sandbox *s)
{
	if (--s->refs > 0)
		return;
	seen_done(&s->seen);
	arena_free(s->a);
}

void sandbox_put(struct sandbox *s)
{
	registry_lock();
	unref_locked(s);
	registry_unlock();
}

static void unlink_locked(struct sandbox *s)
{
	for (struct sandbox **p = &registry.list; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			unref_locked(s);
			return;
		}
}

static struct sandbox *find_locked(const char *id)
{
	for (struct sandbox *s = registry.list; s; s = s->next)
		if (s->state != SANDBOX_GONE && strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

/* The sandbox of an id once it is no longer starting, with a reference; NULL when there is none. */
static struct sandbox *settled_locked(const char *id)
{
	struct sandbox *s = find_locked(id);
	if (!s)
		return NULL;
	s->refs++;
	int64_t until = clock_mono_ms() + START_WAIT_MS;
	while (s->state == SANDBOX_STARTING && registry_wait(&registry.changed, until))
		;
	return s;
}

/* -- making ------------------------------------------------------------------------------------ */

static void copy_pairs(struct arena *a, const struct pairs *from, struct pairs *to)
{
	to->n = from->n;
	for (size_t i = 0; i < from->n; i++)
		to->p[i] = (struct pair){
			arena_str(a, from->p[i].name), arena_str(a, from->p[i].value)};
}

/* As an ordinary user the number of processes is bounded by the kernel's own counter. */
static bool pids_hold(unsigned controllers)
{
	return controllers & 1u << CONTROLLER_PIDS || !registry.config->root;
}

/* An asked limit must be within the runner's own and must be one that holds. */
static enum wrong settle_limits(const struct limits *ask, struct limits *ret)
{
	const struct limits *most = &registry.config->most;
	unsigned c = registry.controllers;
	const struct {
		const char *name;
		double asked, most;
		bool holds;
	} rows[] = {{"memory_mib", (double)ask->memory_mib, (double)most->memory_mib,
			    c & 1u << CONTROLLER_MEMORY},
		{"cpus", ask->cpus, most->cpus, c & 1u << CONTROLLER_CPU},
		{"pids", (double)ask->pids, (double)most->pids, pids_hold(c)},
		{"disk_mib", (double)ask->disk_mib, (double)most->disk_mib, true}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].asked > rows[i].most)
			return wrong(WRONG_UNSUPPORTED, "limits.%s: at most %g on this runner",
				rows[i].name, rows[i].most);
		if (rows[i].asked > 0 && !rows[i].holds)
			return wrong(WRONG_UNSUPPORTED,
				"limits.%s can not be enforced on this machine", rows[i].name);
	}
	*ret = (struct limits){.memory_mib = ask->memory_mib ? ask->memory_mib : most->memory_mib,
		.cpus = ask->cpus > 0 ? ask->cpus : most->cpus,
		.pids = ask->pids ? ask->pids : most->pids,
		.disk_mib = ask->disk_mib ? ask->disk_mib : most->disk_mib};
	/* Files are held in memory: where less of it was asked for, a full disk must leave some. */
	if (ask->memory_mib && !ask->disk_mib && ret->disk_mib > ret->memory_mib / 2)
		ret->disk_mib = ret->memory_mib / 2;
	return WRONG_NOTHING;
}

static enum wrong settle(const struct create_ask *ask, struct limits *l, enum network *n)
{
	*n = ask->network == NETWORK_UNSET ? registry.network : ask->network;
	if (*n > registry.network)
		return wrong(WRONG_UNSUPPORTED,
			"network: %s can not be had on this runner, at most %s", network_name(*n),
			network_name(registry.network));
	if (*n == NETWORK_INTERNET && !registry.internet)
		return wrong(WRONG_UNSUPPORTED, "network: internet can not be had on this machine");
	return settle_limits(&ask->limits, l);
}

static struct sandbox *sandbox_new(
	const struct create_ask *ask, const struct limits *l, enum network n)
{
	struct arena *a = arena_new(SANDBOX_ARENA_MAX);
	struct sandbox *s = ARENA_NEW(a, struct sandbox);
	int64_t now = clock_mono_ms(), left = registry.due_ms - now;
	*s = (struct sandbox){.a = a,
		.id = arena_str(a, ask->id),
		.refs = 2,
		.limits = *l,
		.network = n,
		.created_ms = clock_ms(),
		.used_ms = now,
		.idle_ms = ask->idle_s * 1000,
		.cut = ask->ttl_s * 1000 > left};
	int64_t ttl = s->cut ? left : ask->ttl_s * 1000;
	s->due_ms = now + ttl;
	s->expires_ms = s->created_ms + ttl;
	s->watch = (struct watch){.kind = WATCH_BOX, .fd = -1, .sandbox = s};
	copy_pairs(a, &ask->labels, &s->labels);
	copy_pairs(a, &ask->env, &s->env);
	seen_init(&s->seen);
	return s;
}

/* Adds the record, or finds that there is one: *ret_new tells. Both come with a reference. */
static enum wrong reserve_locked(const struct create_ask *ask, bool *ret_new, struct sandbox **ret)
{
	struct limits l = {0}; /* the optimizer does not see that settle() sets it */
	enum network n = NETWORK_NONE;
	size_t count = 0;
	*ret_new = false;
	*ret = settled_locked(ask->id);
	if (*ret && (*ret)->state == SANDBOX_RUNNING)
		return WRONG_NOTHING;
	if (*ret) {
		unref_locked(*ret);
		return WRONG_CONFLICT;
	}
	enum wrong w = settle(ask, &l, &n);
	if (w)
		return w;
	for (struct sandbox *s = registry.list; s; s = s->next)
		count += s->state != SANDBOX_GONE;
	if (count >= (size_t)registry.config->sandboxes)
		return wrong(
			WRONG_CAPACITY, "%zu sandboxes exist, the most this runner allows", count);
	*ret = sandbox_new(ask, &l, n);
	(*ret)->next = registry.list;
	registry.list = *ret;
	*ret_new = true;
	return WRONG_NOTHING;
}

static bool hello(int fd)
{
	struct wire_head h;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, HELLO_MS) == 1 && recv(fd, &h, sizeof h, MSG_DONTWAIT) == sizeof h &&
	       h.op == WIRE_HELLO;
}

enum wrong sandbox_create(const struct create_ask *ask, bool *ret_new, struct sandbox **ret)
{
	struct launched made;
	registry_lock();
	enum wrong w = registry.stopping ? WRONG_CAPACITY : reserve_locked(ask, ret_new, ret);
	registry_unlock();
	if (w || !*ret_new)
		return w;
	struct sandbox *s = *ret;
	const char *why = launch_box(registry.launcher, s->id, s->network, &s->limits, &made);
	bool up = !why && hello(made.socket);
	if (!why && !up)
		(void)close(made.socket);
	registry_lock();
	if (up) {
		s->watch.fd = made.socket;
		s->controllers = made.controllers;
		s->state = SANDBOX_RUNNING;
	}
	if (!up || !pump_watch(&s->watch)) {
		sandbox_stop_locked(s);
		w = wrong(WRONG_PROVIDER, "%s", why ? why : "the box did not start");
		unref_locked(s);
	}
	(void)pthread_cond_broadcast(&registry.changed);
	registry_unlock();
	return w;
}

/* -- finding and ending ------------------------------------------------------------------------ */

enum wrong sandbox_get(const char *id, struct sandbox **ret)
{
	registry_lock();
	struct sandbox *s = settled_locked(id);
	bool running = s && s->state == SANDBOX_RUNNING;
	if (s && !running)
		unref_locked(s);
	if (running)
		s->used_ms = clock_mono_ms();
	registry_unlock();
	*ret = s;
	return running ? WRONG_NOTHING : WRONG_SANDBOX;
}

void sandbox_stop_locked(struct sandbox *s)
{
	if (s->state == SANDBOX_STOPPING || s->state == SANDBOX_GONE)
		return;
	s->state = SANDBOX_STOPPING;
	(void)pthread_cond_broadcast(&registry.changed);
	(void)pthread_cond_signal(&registry.ender);
}

bool sandbox_delete(const char *id)
{
	registry_lock();
	struct sandbox *s = settled_locked(id);
	bool gone = !s;
	if (s) {
		sandbox_stop_locked(s);
		int64_t until = clock_mono_ms() + DELETE_WAIT_MS;
		while (s->state != SANDBOX_GONE && registry_wait(&registry.changed, until))
			;
		gone = s->state == SANDBOX_GONE;
		unref_locked(s);
	}
	registry_unlock();
	return gone;
}

/* The stopping sandbox that was tried longest ago. */
static struct sandbox *next_to_end(void)
{
	struct sandbox *best = NULL;
	for (struct sandbox *s = registry.list; s; s = s->next)
		if (s->state == SANDBOX_STOPPING && (!best || s->tried_ms < best->tried_ms))
			best = s;
	return best;
}

static void *ender_run(void *unused)
{
	registry_lock();
	while (!registry.stopping) {
		int64_t now = clock_mono_ms();
		struct sandbox *s = next_to_end();
		if (!s || now - s->tried_ms < 100) {
			(void)registry_wait(&registry.ender, now + (s ? 100 : 1000));
			continue;
		}
		s->tried_ms = now;
		s->refs++;
		registry_unlock();
		bool gone = launch_end(registry.launcher, s->id);
		registry_lock();
		if (gone) {
			s->state = SANDBOX_GONE;
			(void)pthread_cond_broadcast(&registry.changed);
			if (s->watch.fd < 0 && !s->execs)
				unlink_locked(s); /* else the pump does, which still watches it */
		}
		unref_locked(s);
	}
	registry_unlock();
	return unused;
}

/* -- showing ----------------------------------------------------------------------------------- */

void enforced_write(unsigned controllers, enum network network, struct jw *w)
{
	jw_list(w);
	if (controllers & 1u << CONTROLLER_MEMORY)
		jw_str(w, "memory");
	if (controllers & 1u << CONTROLLER_CPU)
		jw_str(w, "cpus");
	if (pids_hold(controllers))
		jw_str(w, "pids");
	jw_str(w, "disk");
	if (network != NETWORK_HOST)
		jw_str(w, "network");
	jw_end_list(w);
}

void warnings_write(unsigned controllers, enum network network, bool cut, struct jw *w)
{
	jw_list(w);
	if (!(controllers & 1u << CONTROLLER_MEMORY))
		jw_str(w, "memory is not limited: no control group can be made here");
	if (!(controllers & 1u << CONTROLLER_CPU))
		jw_str(w, "CPU is not limited: no control group can be made here");
	if (!pids_hold(controllers))
		jw_str(w, "the number of processes is not limited: no control group can be made "
			  "here");
	if (network == NETWORK_HOST)
		jw_str(w, "the sandbox shares the network of this machine");
	if (network == NETWORK_NONE && registry.config->network == NETWORK_UNSET)
		jw_str(w, "no network: slirp4netns or /dev/net/tun can not be used here");
	if (cut)
		jw_str(w, "the runner's own lifetime ends before ttl_seconds");
	jw_end_list(w);
}

static void seconds(struct jw *w, const char *key, int64_t ms)
{
	jw_key(w, key);
	jw_num(w, (double)ms / 1000);
}

void sandbox_write(const struct sandbox *s, struct jw *w)
{
	jw_obj(w);
	jw_kstr(w, "id", s->id);
	jw_kstr(w, "state", s->state == SANDBOX_STOPPING ? "stopping" : "running");
	seconds(w, "created_at", s->created_ms);
	seconds(w, "expires_at", s->expires_ms);
	jw_key(w, "labels");
	jw_obj(w);
	for (size_t i = 0; i < s->labels.n; i++)
		jw_kstr(w, s->labels.p[i].name, s->labels.p[i].value);
	jw_end(w);
	jw_kstr(w, "network", network_name(s->network));
	jw_key(w, "limits");
	jw_obj(w);
	jw_kint(w, "memory_mib", s->limits.memory_mib);
	jw_key(w, "cpus");
	jw_num(w, s->limits.cpus);
	jw_kint(w, "pids", s->limits.pids);
	jw_kint(w, "disk_mib", s->limits.disk_mib);
	jw_end(w);
	jw_key(w, "enforced");
	enforced_write(s->controllers, s->network, w);
	jw_key(w, "warnings");
	warnings_write(s->controllers, s->network, s->cut, w);
	jw_end(w);
}

static bool has_labels(const struct sandbox *s, const struct pairs *want)
{
	for (size_t i = 0; i < want->n; i++) {
		bool found = false;
		for (size_t k = 0; k < s->labels.n; k++)
			found |= strcmp(s->labels.p[k].name, want->p[i].name) == 0 &&
				 strcmp(s->labels.p[k].value, want->p[i].value) == 0;
		if (!found)
			return false;
	}
	return true;
}

void sandboxes_write(const struct pairs *labels, struct jw *w)
{
	jw_obj(w);
	jw_key(w, "sandboxes");
	jw_list(w);
	registry_lock();
	for (const struct sandbox *s = registry.list; s; s = s->next)
		if ((s->state == SANDBOX_RUNNING || s->state == SANDBOX_STOPPING) &&
			has_labels(s, labels))
			sandbox_write(s, w);
	registry_unlock();
	jw_end_list(w);
	jw_end(w);
}

/* -- begin and end of the run ------------------------------------------------------------------ */

static const char *probe_one(struct launcher *l, enum network n)
{
	struct launched made = {.socket = -1};
	const char *why = launch_box(l, "probe-of-this-machine", n, &registry.config->most, &made);
	if (!why && !hello(made.socket))
		why = "the first process of the box did not start";
	if (made.socket >= 0)
		(void)close(made.socket);
	bool gone = launch_end(l, "probe-of-this-machine");
	if (!why)
		registry.controllers = made.controllers;
	return why ? why : gone ? NULL : "a box could not be ended";
}

const char *registry_probe(const struct config *c, struct launcher *l)
{
	registry.config = c;
	registry.launcher = l;
	registry.network = c->network == NETWORK_UNSET ? NETWORK_INTERNET : c->network;
	const char *why = probe_one(l, registry.network);
	registry.internet = registry.network == NETWORK_INTERNET ? !why
			    : registry.network == NETWORK_HOST
				    ? !why && !probe_one(l, NETWORK_INTERNET)
				    : false;
	if (why && c->network == NETWORK_UNSET) {
		registry.network = NETWORK_NONE;
		why = probe_one(l, NETWORK_NONE);
	}
	return why;
}

bool registry_start(int64_t lifetime_ms)
{
	pthread_t t;
	condition_init(&registry.changed);
	condition_init(&registry.ender);
	registry.due_ms = clock_mono_ms() + lifetime_ms;
	registry.expires_ms = clock_ms() + lifetime_ms;
	registry.epoll = epoll_create1(EPOLL_CLOEXEC);
	return registry.epoll >= 0 && pthread_create(&t, NULL, pump_run, NULL) == 0 &&
	       pthread_detach(t) == 0 && pthread_create(&t, NULL, ender_run, NULL) == 0 &&
	       pthread_detach(t) == 0;
}

void registry_stop(void)
{
	registry_lock();
	registry.stopping = true;
	for (struct sandbox *s = registry.list; s; s = s->next)
		for (struct exec *e = s->execs; e; e = e->next)
			(void)pthread_cond_broadcast(&e->changed);
	(void)pthread_cond_broadcast(&registry.changed);
	(void)pthread_cond_broadcast(&registry.ender);
	registry_unlock();
}
