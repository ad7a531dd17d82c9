/*
 * The keeper. One loop, one table of duties with their pauses; jobs that it goes on with are driven
 * on threads of their own.
 */
#include "keeper.h"

#include "alloc.h"
#include "arena.h"
#include "clock.h"
#include "db.h"
#include "job.h"
#include "bounds.h"
#include "log.h"
#include "node.h"
#include "rates.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define DUTY_ARENA    (16u << 20)
#define DRIVES_MAX    2000 /* threads of 512 KiB stacks, mostly asleep */
#define CLAIM_BATCH   100
#define STOP_BATCH    50
#define SETTLES_MAX   100  /* stops that are being confirmed at the same time */
#define DELETE_ROUNDS 20   /* batches of one duty in one go */
#define STOP_GRACE_MS 3000 /* the driver stops its own sandbox first */
#define WARY_MS       (4 * HEARTBEAT_S * 1000)
#define DAY_MS        (24 * 60 * 60 * 1000LL)

static const struct conf *settings;
static atomic_bool leaving;

/* -- driverless jobs --------------------------------------------------------------------------- */

struct start {
	void (*fn)(void *);
	void *arg;
};

static void *thread_main(void *arg)
{
	struct start s = *(struct start *)arg;
	free(arg);
	s.fn(s.arg);
	return NULL;
}

static bool submit(void (*fn)(void *), void *arg)
{
	pthread_t thread;
	pthread_attr_t attr;
	struct start *s = must(malloc(sizeof *s));
	*s = (struct start){fn, arg};
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	int failed = pthread_create(&thread, &attr, thread_main, s);
	(void)pthread_attr_destroy(&attr);
	if (failed)
		free(s);
	return !failed;
}

/* While the database was away, or this machine asleep, nobody could be heard: silence means nothing
 * until everybody had time to speak again. */
static void mark_silent(void)
{
	static int64_t heard_ms, wary_until_ms;
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	uint64_t changed;
	struct rows rows;
	int64_t now = clock_mono_ms();
	if (now - heard_ms > WARY_MS)
		wary_until_ms = now + WARY_MS;
	bool wary = now < wary_until_ms;
	enum err e = wary ? db_run(SQL_PING, ARGS(), a, &rows)
			  : db_change(SQL_PROCESSES_SILENT,
				    ARGS(A_INT(clock_ms() - DRIVER_DEAD_S * 1000)), &changed);
	heard_ms = clock_mono_ms();
	if (e)
		wary_until_ms = heard_ms + WARY_MS;
}

static void adopt_jobs(void)
{
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	struct rows rows;
	if (drive_count() >= DRIVES_MAX ||
		db_run(SQL_JOBS_ORPHANED, ARGS(A_INT(CLAIM_BATCH)), a, &rows))
		return;
	for (size_t i = 0; i < rows.n && !leaving; i++) {
		struct drive *d;
		bool held;
		enum err e =
			drive_claim(row_id(&rows, i, 0), (uint32_t)row_int(&rows, i, 1), &d, &held);
		if (e || !held)
			continue;
		if (!submit(drive_claimed, d))
			drive_claimed(d); /* no thread to be had: slower, but it goes on */
	}
}

/* -- stops and sweeps -------------------------------------------------------------------------- */

static atomic_uint settling;

/* A row that outlives the list it was read from. */
struct settle {
	struct arena *arena;
	struct sandbox_row row;
};

static void settle_one(void *arg)
{
	struct settle *s = arg;
	sandbox_settle(&s->row, s->arena);
	arena_free(s->arena);
	settling--;
}

static char *copy_or_null(struct arena *a, const char *s)
{
	return s ? arena_str(a, s) : NULL;
}

static void begin_settle(const struct rows *rows, size_t i)
{
	struct arena *a = arena_new(DUTY_ARENA);
	struct settle *s = ARENA_NEW(a, struct settle);
	*s = (struct settle){a, {.id = row_id(rows, i, 0),
					.account = row_id(rows, i, 1),
					.key = row_id(rows, i, 2),
					.mark = arena_str(a, row_str(rows, i, 4)),
					.provider_id = copy_or_null(a, row_str(rows, i, 5)),
					.state = arena_str(a, row_str(rows, i, 6)),
					.stop_tries = row_int(rows, i, 7),
					.ends_ms = row_int(rows, i, 8)}};
	if (!sandbox_claim(&s->row)) {
		arena_free(a);
		return;
	}
	settling++;
	if (!submit(settle_one, s))
		settle_one(s);
}

/* On threads of their own: a provider that hangs must not keep jobs from being adopted. */
static void confirm_stops(void)
{
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	struct rows rows;
	int64_t now = clock_ms();
	if (settling >= SETTLES_MAX ||
		db_run(SQL_SANDBOXES_TO_STOP,
			ARGS(A_INT(now), A_INT(now + SANDBOX_TRY_MAX_MS),
				A_INT(now - STOP_GRACE_MS), A_INT(STOP_BATCH)),
			a, &rows))
		return;
	for (size_t i = 0; i < rows.n && !leaving; i++)
		begin_settle(&rows, i);
}

/* One keeper per provider key and period: the row of the duty decides. */
static bool take_duty(const char *duty, struct id key, int64_t period_ms)
{
	char name[64], id[ID_TEXT_SIZE];
	uint64_t changed;
	int64_t now = clock_ms();
	(void)snprintf(name, sizeof name, "%s-%s", duty, id_text(id, NULL, key));
	if (db_change(SQL_DUTY_CREATE, ARGS(A_STR(name), A_INT(0)), &changed))
		return false;
	return db_change(SQL_DUTY_TAKE, ARGS(A_INT(now + period_ms), A_STR(name), A_INT(now)),
		       &changed) == OK &&
	       changed == 1;
}

static atomic_bool sweeping;

/* For every key that made a sandbox within a day. */
static const struct key_duty {
	const char *name;
	enum err (*run)(struct id account, struct id key, struct arena *a);
	int64_t period_ms; /* 0: settings->sweep_s */
} key_duties[] = {
	{"sweep", sandbox_sweep, 0},
	{"rates", rates_refresh, DAY_MS},
};

static void do_key_duty(const struct key_duty *d, struct id account, struct id key)
{
	if (!take_duty(d->name, key, d->period_ms ? d->period_ms : settings->sweep_s * 1000))
		return;
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	enum err e = d->run(account, key, a);
	if (e)
		log_event(EV_KEEPER_DUTY, LOG_NAME("duty", d->name),
			LOG_NAME("error", err_row(e)->code));
}

static void sweep_all(void *unused)
{
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	struct rows rows = {0};
	(void)unused;
	if (db_run(SQL_KEYS_TO_SWEEP, ARGS(A_INT(clock_ms() - DAY_MS)), a, &rows))
		rows.n = 0;
	for (size_t i = 0; i < rows.n && !leaving; i++)
		for (size_t d = 0; d < sizeof key_duties / sizeof *key_duties; d++)
			do_key_duty(&key_duties[d], row_id(&rows, i, 1), row_id(&rows, i, 0));
	sweeping = false;
}

static void sweep(void)
{
	if (!atomic_exchange(&sweeping, true) && !submit(sweep_all, NULL))
		sweeping = false;
}

/* -- erasing ----------------------------------------------------------------------------------- */

static int64_t count_of(enum sql q, struct id account, struct arena *a)
{
	struct rows rows;
	return db_run(q, ARGS(A_ID(account)), a, &rows) ? -1 : row_int(&rows, 0, 0);
}

/* The data key goes first: from then on no sealed value of the account can be opened, here or in a
 * backup that lacks the row. */
static void erase_account(struct id account, struct arena *a)
{
	static const enum sql steps[] = {SQL_ACCOUNT_ERASE_DATA_KEYS, SQL_ACCOUNT_ERASE_KEYS,
		SQL_ACCOUNT_ERASE_RESULTS, SQL_ACCOUNT_ERASE_TOKENS, SQL_ACCOUNT_ERASE_SANDBOXES,
		SQL_ACCOUNT_ERASE_JOBS, SQL_ACCOUNT_ERASE_CHECKS, SQL_ACCOUNT_ERASE_USAGE,
		SQL_ACCOUNT_ERASE_SUMS, SQL_ACCOUNT_ERASE};
	uint64_t changed;
	if (count_of(SQL_ACCOUNT_LIVE_JOBS, account, a) != 0 ||
		count_of(SQL_ACCOUNT_LIVE_SANDBOXES, account, a) != 0)
		return; /* its keys are needed until every sandbox is proven gone */
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		if (db_change(steps[i], ARGS(A_ID(account)), &changed))
			return; /* the account's row is the last to go, so the next round goes on */
	log_event(EV_KEEPER_DUTY, LOG_NAME("duty", "erase_account"), LOG_ID("account", account));
}

static void erase_accounts(void)
{
	CLEANUP_ARENA struct arena *a = arena_new(DUTY_ARENA);
	struct rows rows;
	if (db_run(SQL_ACCOUNTS_DELETING, ARGS(), a, &rows))
		return;
	for (size_t i = 0; i < rows.n; i++)
		erase_account(row_id(&rows, i, 0), a);
}

static void drop_keys(void)
{
	uint64_t changed;
	(void)!db_change(SQL_KEYS_DROP_UNUSED, ARGS(), &changed);
}

static void expire_results(void)
{
	uint64_t changed;
	(void)!db_change(SQL_RESULTS_EXPIRE, ARGS(A_INT(clock_ms())), &changed);
	(void)!db_change(
		SQL_IDEM_EXPIRE, ARGS(A_INT(clock_ms() - IDEM_TTL_H * 3600 * 1000LL)), &changed);
	(void)!db_change(SQL_PROCESSES_DELETE, ARGS(A_INT(clock_ms() - DAY_MS)), &changed);
	(void)!db_change(SQL_DUTIES_EXPIRE, ARGS(A_INT(clock_ms() - 2 * DAY_MS)), &changed);
}

/* In batches, so that nothing else waits long for a lock. */
static void delete_batches(enum sql q, struct arg before)
{
	uint64_t changed = DELETE_BATCH;
	for (int i = 0; i < DELETE_ROUNDS && changed == DELETE_BATCH && !leaving; i++)
		if (db_change(q, ARGS(before), &changed))
			return;
}

static void expire_rows(void)
{
	static const enum sql by_time[] = {
		SQL_JOBS_EXPIRE, SQL_SANDBOXES_EXPIRE, SQL_CHECKS_EXPIRE, SQL_AUDIT_EXPIRE};
	static const enum sql by_day[] = {SQL_USAGE_EXPIRE, SQL_SUMS_EXPIRE};
	char day[DAY_SIZE], yesterday[DAY_SIZE];
	int64_t before = clock_ms() - settings->retention_days * DAY_MS;
	for (size_t i = 0; i < sizeof by_time / sizeof by_time[0]; i++)
		delete_batches(by_time[i], A_INT(before));
	for (size_t i = 0; i < sizeof by_day / sizeof by_day[0]; i++)
		delete_batches(by_day[i], A_STR(day_text(day, before)));
	/* The key of address hashes changes every day: older rows mean nothing. */
	delete_batches(SQL_ADDRESSES_EXPIRE, A_STR(day_text(yesterday, clock_ms() - DAY_MS)));
}

/* Yesterday and today, made anew each time: twice is like once. */
static void roll_up(void)
{
	uint64_t changed;
	int64_t today = clock_ms() / DAY_MS * DAY_MS;
	for (int64_t from = today - DAY_MS; from <= today; from += DAY_MS) {
		char day[DAY_SIZE];
		struct arg begin = A_INT(from), end = A_INT(from + DAY_MS);
		(void)!db_change(SQL_SUM_DAY,
			ARGS(A_STR(day_text(day, from)), begin, end, begin, end, begin, end),
			&changed);
	}
}

/* -- the loop ---------------------------------------------------------------------------------- */

static struct duty {
	void (*run)(void);
	int64_t pause_ms; /* 0: in every round */
	int64_t next_ms;
} duties[] = {
	{mark_silent, 5000, 0},
	{adopt_jobs, 0, 0},
	{confirm_stops, 0, 0},
	{sweep, 1000, 0},
	{erase_accounts, 1000, 0},
	{drop_keys, 5000, 0},
	{expire_results, 10000, 0},
	{expire_rows, 60000, 0},
	{roll_up, 60000, 0},
};

static void round_of_duties(void)
{
	for (size_t i = 0; i < sizeof duties / sizeof duties[0] && !leaving; i++) {
		struct duty *d = &duties[i];
		if (clock_mono_ms() < d->next_ms)
			continue;
		d->run();
		d->next_ms = clock_mono_ms() + d->pause_ms;
	}
}

static void wait_for_signal(const sigset_t *set, int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	int sig = sigtimedwait(set, NULL, &t);
	if (sig == SIGTERM || sig == SIGINT)
		leaving = true;
}

int keeper_run(const struct conf *conf, int ready_fd)
{
	sigset_t set;
	settings = conf;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)signal(SIGPIPE, SIG_IGN);
	if (node_start(conf, submit))
		return 1;
	if (ready_fd >= 0 && write(ready_fd, "1", 1) == 1)
		(void)close(ready_fd);
	while (!leaving) {
		round_of_duties();
		wait_for_signal(&set, conf->keeper_pause_ms);
	}
	/* Its jobs are claimed by the next keeper: every step of a drive may be cut off anywhere.
	 */
	node_leave();
	return 0;
}
