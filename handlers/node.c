/* What one process of ours is. */
#include "node.h"

#include "alloc.h"
#include "arena.h"
#include "clock.h"
#include "db.h"
#include "bounds.h"
#include "log.h"
#include "text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEYS_LOOK_MS 5000
#define NODE_ARENA   (1u << 20)

static struct node self;
static pthread_t heart;
static bool beating;
static pthread_mutex_t heart_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t heart_stop;

const struct node *node(void)
{
	return &self;
}

const char *node_host(void)
{
	static char name[65];
	if (!name[0] && gethostname(name, sizeof name - 1) != 0)
		(void)snprintf(name, sizeof name, "unknown");
	return name;
}

const char *day_text(char out[DAY_SIZE], int64_t ms)
{
	char text[TIME_TEXT_SIZE];
	(void)time_text(text, ms);
	memcpy(out, text, DAY_SIZE - 1);
	out[DAY_SIZE - 1] = 0;
	return out;
}

void node_mark_prefix(char out[MARK_SIZE])
{
	(void)snprintf(out, MARK_SIZE, "cc-%s-", self.mark);
}

void node_mark_of(struct id sandbox, char out[MARK_SIZE])
{
	char id[ID_TEXT_SIZE];
	(void)snprintf(out, MARK_SIZE, "cc-%s-%s", self.mark, id_text(id, NULL, sandbox));
}

/* -- the installation -------------------------------------------------------------------------- */

static enum err read_mark(struct arena *a)
{
	struct rows rows;
	uint64_t made;
	uint8_t fresh[4];
	char mark[ID_TEXT_SIZE];
	random_bytes(fresh, sizeof fresh);
	base32_encode(mark, fresh, sizeof fresh);
	mark[NODE_MARK_CHARS] = 0;
	enum err e =
		db_change(SQL_INSTALLATION_CREATE, ARGS(A_STR(mark), A_INT(clock_ms())), &made);
	if (!e)
		e = db_run(SQL_INSTALLATION_MARK, ARGS(), a, &rows);
	if (e)
		return e;
	if (rows.n != 1)
		return fail(ERR_INTERNAL, NULL, "the database is not migrated");
	(void)snprintf(self.mark, sizeof self.mark, "%s", row_str(&rows, 0, 0));
	return OK;
}

/* The installation's data key belongs to the account of zeros. The oldest one counts: two processes
 * that make one at the same moment agree on it afterwards. */
static enum err read_own_key(struct arena *a)
{
	struct id nobody = {{0}};
	struct rows rows;
	enum err e = db_run(SQL_DATA_KEY_OLDEST, ARGS(A_ID(nobody)), a, &rows);
	if (e)
		return e;
	if (rows.n == 0) {
		struct data_key fresh;
		struct blob wrapped;
		bool duplicate;
		e = data_key_new(self.keys, nobody, a, &fresh, &wrapped);
		if (e)
			return e;
		e = db_insert(SQL_DATA_KEY_CREATE,
			ARGS(A_ID(fresh.id), A_ID(nobody), A_INT(keyring_current(self.keys)),
				A_BYTES(wrapped.p, wrapped.n), A_INT(clock_ms())),
			&duplicate);
		data_key_done(&fresh);
		if (!e)
			e = db_run(SQL_DATA_KEY_OLDEST, ARGS(A_ID(nobody)), a, &rows);
		if (e)
			return e;
	}
	const struct cell *wrapped = row_cell(&rows, 0, 1);
	return data_key_open(self.keys, row_id(&rows, 0, 0), nobody,
		(struct blob){(const uint8_t *)wrapped->p, wrapped->n}, &self.own);
}

enum err node_open(const struct conf *c)
{
	self.conf = c;
	db_start(&(struct db_conf){.socket = c->db_socket,
		.host = c->db_host,
		.port = (unsigned)c->db_port,
		.user = c->db_user,
		.password = c->db_password,
		.schema = c->db_schema,
		.ca_file = c->db_ca,
		.connections = (unsigned)c->db_connections});
	enum err e = keyring_load(c->master_keys, &self.keys);
	if (e)
		return e;
	CLEANUP_ARENA struct arena *a = arena_new(NODE_ARENA);
	e = read_mark(a);
	return e ? e : read_own_key(a);
}

bool node_keys_complete(void)
{
	static _Atomic int64_t looked;
	static atomic_bool complete = true;
	int64_t now = clock_mono_ms();
	if (looked && now - looked < KEYS_LOOK_MS)
		return complete;
	CLEANUP_ARENA struct arena *a = arena_new(NODE_ARENA);
	struct rows rows;
	if (db_run(SQL_MASTER_KEYS_IN_USE, ARGS(), a, &rows))
		return false;
	bool all = true;
	for (size_t i = 0; i < rows.n; i++)
		all = all && keyring_has(self.keys, (uint32_t)row_int(&rows, i, 0));
	if (!all)
		log_event(EV_SEAL_KEY_MISSING);
	complete = all;
	looked = now;
	return all;
}

/* -- heartbeat --------------------------------------------------------------------------------- */

static enum err write_row(void)
{
	uint64_t made;
	return db_change(SQL_PROCESS_START,
		ARGS(A_ID(self.process), A_STR(node_host()), A_INT(getpid()), A_INT(clock_ms())),
		&made);
}

/* A missed beat shows in the next one; DRIVER_DEAD_S allows for several. The row may be gone after
 * a long silence: without one every job of ours would be taken for an orphan. */
static void beat_once(void)
{
	uint64_t changed;
	if (!db_change(SQL_PROCESS_BEAT, ARGS(A_INT(clock_ms()), A_ID(self.process)), &changed) &&
		changed == 0)
		(void)!write_row();
}

static void *beat(void *unused)
{
	(void)unused;
	(void)pthread_mutex_lock(&heart_lock);
	while (beating) {
		(void)pthread_mutex_unlock(&heart_lock);
		beat_once();
		(void)pthread_mutex_lock(&heart_lock);
		struct timespec until;
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += HEARTBEAT_S;
		if (beating)
			(void)pthread_cond_timedwait(&heart_stop, &heart_lock, &until);
	}
	(void)pthread_mutex_unlock(&heart_lock);
	return NULL;
}

enum err node_start(const struct conf *conf, bool (*submit)(void (*fn)(void *), void *arg))
{
	enum err e = node_open(conf);
	if (e)
		return e;
	self.process = id_new();
	self.submit = submit;
	e = write_row();
	if (e)
		return e;
	pthread_condattr_t monotonic;
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&heart_stop, &monotonic);
	beating = true;
	if (pthread_create(&heart, NULL, beat, NULL) != 0)
		memory_is_out();
	return OK;
}

void node_leave(void)
{
	uint64_t changed;
	(void)pthread_mutex_lock(&heart_lock);
	beating = false;
	(void)pthread_cond_signal(&heart_stop);
	(void)pthread_mutex_unlock(&heart_lock);
	(void)pthread_join(heart, NULL);
	/* Without it the silence tells the same, DRIVER_DEAD_S later. */
	(void)!db_change(SQL_PROCESS_ENDED, ARGS(A_ID(self.process)), &changed);
}

void node_close(void)
{
	db_stop();
	data_key_done(&self.own);
	keyring_free(self.keys);
	self.keys = NULL;
}
