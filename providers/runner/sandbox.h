/*
 * The sandboxes of a run and the commands in them.
 *
 * One lock guards all of it (registry_lock). Objects are counted: a list holds one reference, each
 * caller of a function that returns one another. The pump thread alone reads from boxes and frees
 * what it watches; the ender thread alone ends boxes.
 */
#pragma once
#include "body.h"
#include "launch.h"
#include "output.h"
#include "seen.h"
#include "wrong.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct jw;
struct sandbox;
struct exec;

#define EXECS_KEPT     256    /* ended commands of a sandbox that can still be read */
#define EXEC_KEPT_MS   600000 /* and for how long */
#define EXECS_MAX      2048   /* records of a sandbox, running ones included */
#define START_WAIT_MS  30000  /* until a box must have answered a call */
#define DELETE_WAIT_MS 3000   /* how long DELETE waits for the proof */

enum watch_kind { WATCH_BOX, WATCH_STREAM };
struct watch {
	enum watch_kind kind;
	int fd, stream;
	struct sandbox *sandbox;
	struct exec *exec;
};

enum exec_state {
	EXEC_NEW, /* the box has not answered yet */
	EXEC_RUNNING,
	EXEC_REFUSED, /* nothing ran */
	EXEC_DONE,
	EXEC_LOST, /* the box ended first */
};
struct exec {
	struct exec *next;
	struct arena *a;
	char id[EXEC_ID_SIZE]; /* "": a file call */
	uint32_t seq;
	unsigned refs;
	enum exec_state state;
	int code; /* EXEC_DONE: exit status or errno; EXEC_REFUSED: errno */
	int stage;
	bool timed_out;
	int64_t ended_ms;
	struct output out[2];
	struct watch watch[2];
	pthread_cond_t changed;
};

enum sandbox_state { SANDBOX_STARTING, SANDBOX_RUNNING, SANDBOX_STOPPING, SANDBOX_GONE };
struct sandbox {
	struct sandbox *next;
	struct arena *a;
	const char *id;
	struct pairs labels, env;
	unsigned refs;
	enum sandbox_state state;
	int64_t created_ms, expires_ms;             /* wall clock, for people */
	int64_t due_ms, used_ms, idle_ms, tried_ms; /* monotonic */
	struct limits limits;
	enum network network;
	unsigned controllers;
	bool cut; /* the run ends before the asked time */
	struct watch watch;
	struct exec *execs;
	size_t execs_n;
	uint32_t seq;
	struct seen seen;
};

struct registry {
	const struct config *config;
	struct launcher *launcher;
	pthread_mutex_t lock;
	pthread_cond_t changed, ender;
	struct sandbox *list;
	int epoll;
	int64_t due_ms; /* monotonic end of the run */
	int64_t expires_ms;
	enum network network; /* best mode that was seen to work */
	bool internet;        /* mode internet was seen to work */
	unsigned controllers; /* limits that were seen to hold */
	bool stopping;
};
extern struct registry registry;

void registry_lock(void);
void registry_unlock(void);
/* Waits for a condition until a monotonic time; false when that has come. */
bool registry_wait(pthread_cond_t *c, int64_t until_ms);
void condition_init(pthread_cond_t *c);

/* Makes a first box to see what this machine can do, and starts pump and ender. NULL, or why not.
 */
const char *registry_probe(const struct config *c, struct launcher *l);
bool registry_start(int64_t lifetime_ms);
/* No more calls are served and all that wait are woken. */
void registry_stop(void);

/* -- sandboxes --------------------------------------------------------------------------------- */
enum wrong sandbox_create(const struct create_ask *ask, bool *ret_new, struct sandbox **ret);
enum wrong sandbox_get(const char *id, struct sandbox **ret);
void sandbox_put(struct sandbox *s);
bool sandbox_delete(const char *id); /* true: proven gone; false: still stopping */
void sandbox_write(const struct sandbox *s, struct jw *w);
void sandboxes_write(const struct pairs *labels, struct jw *w);
void sandbox_stop_locked(struct sandbox *s);
/* Words of the limits and of what could not be had, for S, /health and --check. */
void enforced_write(unsigned controllers, enum network network, struct jw *w);
void warnings_write(unsigned controllers, enum network network, bool cut, struct jw *w);

/* -- commands and files ------------------------------------------------------------------------ */
enum wrong exec_start(struct sandbox *s, const struct exec_ask *ask, struct exec **ret);
enum wrong exec_get(struct sandbox *s, const char *id, struct exec **ret);
void exec_put(struct exec *e);
void exec_put_locked(struct exec *e);
enum wrong exec_kill(struct sandbox *s, const char *id, int signal, const char **ret_state);
enum wrong file_read(struct sandbox *s, const char *path, int64_t offset, int64_t length,
	struct buf *ret, int64_t *ret_size);
enum wrong file_write(struct sandbox *s, const char *path, int64_t offset, const void *p, size_t n,
	int64_t *ret_size);

/* Adds a record for a call and sends it with three descriptors; under the lock. */
enum wrong call_send(struct sandbox *s, struct exec *e, struct buf *message, const int fds[3]);
struct exec *exec_new(struct sandbox *s);
bool pump_watch(struct watch *w);
void *pump_run(void *unused);
