/*
 * A small program on the worker core, for its tests: master, workers and keeper with handlers that
 * do nothing but what a test wants to see. Settings come from FX_ variables.
 */
#include "block.h"
#include "clock.h"
#include "fcgi/master.h"
#include "fcgi/worker.h"
#include "log.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned released, draining;
static _Atomic int jobs;

static int setting(const char *name, int otherwise)
{
	const char *s = getenv(name);
	return s ? (int)strtol(s, NULL, 10) : otherwise;
}

static long query_number(FCGX_Request *r)
{
	const char *q = FCGX_GetParam("QUERY_STRING", r->envp);
	return q ? strtol(q, NULL, 10) : 0;
}

/* One line into the file that the test reads. */
static void note(const char *word)
{
	const char *path = getenv("FX_NOTES");
	char line[80];
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
	int n = snprintf(line, sizeof line, "%s %d\n", word, (int)getpid());
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		return;
	close(fd);
}

static void reply(FCGX_Request *r, const char *text)
{
	FCGX_FPrintF(r->out, "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n%s", text);
}

static void do_quick(FCGX_Request *r, struct client *c)
{
	(void)c;
	reply(r, "ok");
}

static void do_pid(FCGX_Request *r, struct client *c)
{
	char text[32];
	(void)c;
	snprintf(text, sizeof text, "%d", (int)getpid());
	reply(r, text);
}

/* The length of the header X-Pad, so that a test can place the end of the parameters anywhere. */
static void do_pad(FCGX_Request *r, struct client *c)
{
	char text[32];
	const char *pad = FCGX_GetParam("HTTP_X_PAD", r->envp);
	(void)c;
	snprintf(text, sizeof text, "%zu", pad ? strlen(pad) : 0);
	reply(r, text);
}

/* Reads the body; answers its length and FNV-1a sum. */
static void do_body(FCGX_Request *r, struct client *c)
{
	unsigned char b[65536];
	uint32_t sum = 2166136261;
	size_t total = 0;
	char text[64];
	(void)c;
	for (int n; (n = FCGX_GetStr((char *)b, sizeof b, r->in)) > 0; total += (size_t)n)
		for (int i = 0; i < n; i++)
			sum = (sum ^ b[i]) * 16777619;
	snprintf(text, sizeof text, "%zu %u", total, sum);
	reply(r, text);
}

static void do_big(FCGX_Request *r, struct client *c)
{
	char block[1024];
	(void)c;
	memset(block, 'x', sizeof block);
	reply(r, "");
	for (long n = query_number(r); n > 0; n -= 1024)
		FCGX_PutStr(block, n < 1024 ? (int)n : 1024, r->out);
}

static void on_gone(void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Waits until somebody calls /release or the client goes. */
static void do_hold(FCGX_Request *r, struct client *c)
{
	client_input_done(r);
	client_watch(c, on_gone, NULL);
	note("holding");
	block_begin();
	pthread_mutex_lock(&lock);
	unsigned before = released;
	while (released == before && !client_gone(c))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	block_end();
	client_watch(c, NULL, NULL);
	note(client_gone(c) ? "gone" : "released");
	reply(r, "released");
}

static void do_release(FCGX_Request *r, struct client *c)
{
	(void)c;
	pthread_mutex_lock(&lock);
	released++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	reply(r, "ok");
}

static void do_sleep(FCGX_Request *r, struct client *c)
{
	(void)c;
	block_begin();
	clock_sleep_ms(query_number(r));
	block_end();
	reply(r, "slept");
}

/* Waits without a bracket: what a forgotten one looks like. */
static void do_stuck(FCGX_Request *r, struct client *c)
{
	(void)c;
	clock_sleep_ms(query_number(r));
	reply(r, "unstuck");
}

/* A driver: runs until the drain tells it to hand over. */
static void drive(void *arg)
{
	(void)arg;
	note("driving");
	block_begin();
	pthread_mutex_lock(&lock);
	while (!draining)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	block_end();
	note("handed-over");
	atomic_fetch_sub(&jobs, 1);
}

static void do_job(FCGX_Request *r, struct client *c)
{
	(void)c;
	atomic_fetch_add(&jobs, 1);
	if (pool_submit(drive, NULL)) {
		reply(r, "started");
		return;
	}
	atomic_fetch_sub(&jobs, 1);
	reply(r, "full");
}

static void do_figures(FCGX_Request *r, struct client *c)
{
	struct pool_figures f;
	char text[160];
	(void)c;
	pool_figures(&f);
	snprintf(text, sizeof text,
		"{\"threads\":%u,\"running\":%u,\"queued\":%u,\"served\":%llu,\"refused\":%llu}",
		f.threads, f.running, f.queued, (unsigned long long)f.served,
		(unsigned long long)f.refused);
	reply(r, text);
}

static const struct {
	const char *path;
	void (*run)(FCGX_Request *r, struct client *c);
} pages[] = {{"/quick", do_quick}, {"/pid", do_pid}, {"/pad", do_pad}, {"/body", do_body},
	{"/big", do_big}, {"/hold", do_hold}, {"/release", do_release}, {"/sleep", do_sleep},
	{"/stuck", do_stuck}, {"/job", do_job}, {"/figures", do_figures}};

static void serve(FCGX_Request *r, struct client *c)
{
	const char *path = FCGX_GetParam("DOCUMENT_URI", r->envp);
	for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
		if (path && strcmp(path, pages[i].path) == 0) {
			pages[i].run(r, c);
			return;
		}
	}
	FCGX_PutS("Status: 404 Not Found\r\n\r\n", r->out); /* leaves the body unread */
}

static void refuse(FCGX_Request *r)
{
	FCGX_PutS("Status: 503 Service Unavailable\r\nRetry-After: 2\r\n\r\nbusy", r->out);
}

static void on_drain(void)
{
	pthread_mutex_lock(&lock);
	draining = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	note("drain");
}

static bool nothing_left(void)
{
	return atomic_load(&jobs) == 0;
}

static int run_worker(void)
{
	struct worker_conf conf = {.listen_fd = setting("CC_LISTEN_FD", 0),
		.ready_fd = setting("CC_READY_FD", -1),
		.threads_max = (unsigned)setting("FX_THREADS", 64),
		.runnable = (unsigned)setting("FX_RUNNABLE", 0),
		.queue_max = (unsigned)setting("FX_QUEUE", 100),
		.drain_s = setting("FX_DRAIN_S", 20)};
	struct worker_hooks hooks = {
		.serve = serve, .refuse = refuse, .drain = on_drain, .idle = nothing_left};
	log_role("worker");
	int rc = worker_run(&conf, &hooks);
	note(rc ? "cut-off" : "drained");
	if (rc)
		_exit(rc);
	return rc;
}

static int run_keeper(void)
{
	sigset_t set;
	int got, fd = setting("CC_READY_FD", -1);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (write(fd, "1", 1) != 1)
		return 1;
	sigwait(&set, &got);
	note("keeper-ended");
	return 0;
}

static bool reload(struct master_conf *conf)
{
	const char *bad = getenv("FX_BAD_FILE");
	conf->workers = (unsigned)setting("FX_WORKERS", 2);
	return !bad || access(bad, F_OK) != 0;
}

static void child_ended(pid_t pid, bool worker)
{
	(void)pid;
	note(worker ? "worker-ended" : "keeper-was-ended");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "worker") == 0)
		return run_worker();
	if (strcmp(argv[1], "keeper") == 0)
		return run_keeper();
	struct master_conf conf = {.socket_path = getenv("FX_SOCKET"),
		.socket_group = getenv("FX_GROUP"),
		.workers = (unsigned)setting("FX_WORKERS", 2),
		.drain_s = setting("FX_DRAIN_S", 20),
		.self = argv[0]};
	struct master_hooks hooks = {.reload = reload, .child_ended = child_ended};
	log_role("master");
	return master_run(&conf, &hooks);
}
