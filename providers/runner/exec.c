/*
 * Commands of a sandbox. Promises: an exec id runs at most once for the life of its sandbox, also
 * when its record was forgotten; when nothing ran, the id is free again and the refusal tells so.
 */
#include "sandbox.h"

#include "arena.h"
#include "clock.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXEC_ARENA_MAX (64u << 10)
#define BOX_HOME       "/home/user"

static const struct pair base_env[] = {
	{"HOME", BOX_HOME},
	{"USER", "user"},
	{"LOGNAME", "user"},
	{"SHELL", "/bin/sh"},
	{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	{"LANG", "C.UTF-8"},
};

struct exec *exec_new(struct sandbox *s)
{
	struct arena *a = arena_new(EXEC_ARENA_MAX);
	struct exec *e = ARENA_NEW(a, struct exec);
	*e = (struct exec){.a = a, .refs = 2};
	for (int i = 0; i < 2; i++) {
		output_init(&e->out[i]);
		e->watch[i] = (struct watch){
			.kind = WATCH_STREAM, .fd = -1, .stream = i, .sandbox = s, .exec = e};
	}
	condition_init(&e->changed);
	return e;
}

void exec_put_locked(struct exec *e)
{
	if (--e->refs > 0)
		return;
	output_done(&e->out[0]);
	output_done(&e->out[1]);
	(void)pthread_cond_destroy(&e->changed);
	arena_free(e->a);
}

void exec_put(struct exec *e)
{
	registry_lock();
	exec_put_locked(e);
	registry_unlock();
}

enum wrong call_send(struct sandbox *s, struct exec *e, struct buf *message, const int fds[3])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control = {0};
	struct wire_head h;
	if (s->state != SANDBOX_RUNNING || s->watch.fd < 0)
		return WRONG_SANDBOX;
	if (s->execs_n >= EXECS_MAX)
		return wrong(WRONG_CAPACITY, "%d commands are known in this sandbox", EXECS_MAX);
	e->seq = ++s->seq;
	memcpy(&h, message->p, sizeof h);
	h.seq = e->seq;
	memcpy(message->p, &h, sizeof h);
	struct iovec part = {.iov_base = message->p, .iov_len = message->n};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(3 * sizeof(int))};
	memcpy(CMSG_DATA(c), fds, 3 * sizeof(int));
	/* Never waits: the box may not hold up the runner. */
	if (message->full || sendmsg(s->watch.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return wrong(WRONG_CAPACITY, "the sandbox does not take more calls at the moment");
	e->next = s->execs;
	s->execs = e;
	s->execs_n++;
	return WRONG_NOTHING;
}

/* -- the message ------------------------------------------------------------------------------- */

static bool has_name(const struct pair *p, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(p[i].name, name) == 0)
			return true;
	return false;
}

/* Adds variables that no later list sets; returns how many. */
static int32_t put_env(struct buf *b, const struct pair *p, size_t n, const struct pairs *over,
	const struct pairs *over_too)
{
	int32_t count = 0;
	for (size_t i = 0; i < n; i++) {
		if ((over && has_name(over->p, over->n, p[i].name)) ||
			(over_too && has_name(over_too->p, over_too->n, p[i].name)))
			continue;
		buf_printf(b, "%s=%s", p[i].name, p[i].value);
		buf_char(b, 0);
		count++;
	}
	return count;
}

static void compose(struct buf *b, const struct sandbox *s, const struct exec_ask *ask)
{
	struct wire_head h = {.op = WIRE_RUN, .a = (int32_t)ask->argc, .x = ask->timeout_s};
	const char *cwd = ask->cwd ? ask->cwd : BOX_HOME;
	buf_put(b, &h, sizeof h);
	buf_put(b, cwd, strlen(cwd) + 1);
	for (size_t i = 0; i < ask->argc; i++)
		buf_put(b, ask->argv[i], strlen(ask->argv[i]) + 1);
	h.b = put_env(b, base_env, sizeof base_env / sizeof *base_env, &s->env, &ask->env);
	h.b += put_env(b, s->env.p, s->env.n, &ask->env, NULL);
	h.b += put_env(b, ask->env.p, ask->env.n, NULL, NULL);
	memcpy(b->p, &h, sizeof h);
}

/* -- starting ---------------------------------------------------------------------------------- */

struct pipes {
	int ours[3], theirs[3]; /* stdin, stdout, stderr */
};

static void close_all(int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static bool pipe_out(struct pipes *p, int i)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	p->ours[i] = ends[0];
	p->theirs[i] = ends[1];
	/* Only our end: what a command gets must block like any pipe. */
	return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
}

/* The whole input fits into the pipe (64 KiB), so nobody has to feed it later. */
static bool pipe_in(struct pipes *p, const struct exec_ask *ask)
{
	int ends[2];
	if (!ask->stdin_bytes) {
		p->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return p->theirs[0] >= 0;
	}
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	p->theirs[0] = ends[0];
	bool ok = fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0 &&
		  write(ends[1], ask->stdin_bytes, ask->stdin_n) == (ssize_t)ask->stdin_n;
	(void)close(ends[1]);
	return ok;
}

static struct exec *find_locked(struct sandbox *s, const char *id)
{
	for (struct exec *e = s->execs; e; e = e->next)
		if (e->state != EXEC_REFUSED && strcmp(e->id, id) == 0)
			return e;
	return NULL;
}

/* The record of this id, or a new one whose call is on its way. With a reference. */
static enum wrong start_locked(struct sandbox *s, const struct exec_ask *ask, struct pipes *p,
	struct buf *message, struct exec **ret)
{
	*ret = find_locked(s, ask->exec_id);
	if (*ret) {
		(*ret)->refs++;
		return WRONG_NOTHING;
	}
	if (seen_has(&s->seen, ask->exec_id))
		return wrong(WRONG_EXEC, "this exec ended long ago; its output is no longer kept");
	if (seen_full(&s->seen))
		return wrong(WRONG_CAPACITY, "%d commands have run in this sandbox", SEEN_MAX);
	struct exec *e = exec_new(s);
	(void)snprintf(e->id, sizeof e->id, "%s", ask->exec_id);
	enum wrong w = call_send(s, e, message, p->theirs);
	if (w) {
		e->refs = 1;
		exec_put_locked(e);
		return w;
	}
	for (int i = 0; i < 2; i++) {
		e->watch[i].fd = p->ours[i + 1];
		p->ours[i + 1] = -1;
		(void)pump_watch(&e->watch[i]); /* a stream that can't be watched reads as empty */
	}
	*ret = e;
	return WRONG_NOTHING;
}

static enum wrong refused(const struct exec *e)
{
	if (e->stage == WIRE_STAGE_CWD)
		return WRONG_CWD;
	if (e->stage == WIRE_STAGE_FORK)
		return wrong(WRONG_CAPACITY, "the sandbox has no room for another process");
	return wrong(WRONG_CAPACITY, "%d commands run in this sandbox", WIRE_JOBS_MAX);
}

static enum wrong answer_locked(struct exec *e)
{
	int64_t until = clock_mono_ms() + START_WAIT_MS;
	while (e->state == EXEC_NEW && !registry.stopping && registry_wait(&e->changed, until))
		;
	return e->state == EXEC_REFUSED ? refused(e) : WRONG_NOTHING;
}

enum wrong exec_start(struct sandbox *s, const struct exec_ask *ask, struct exec **ret)
{
	struct pipes p = {.ours = {-1, -1, -1}, .theirs = {-1, -1, -1}};
	CLEANUP_BUF struct buf message;
	buf_init(&message, WIRE_BYTES_MAX);
	compose(&message, s, ask);
	enum wrong w = message.full ? wrong(WRONG_SIZE, "the command is too large")
		       : !pipe_in(&p, ask) || !pipe_out(&p, 1) || !pipe_out(&p, 2)
			       ? wrong(WRONG_CAPACITY, "the runner has no descriptors left")
			       : WRONG_NOTHING;
	registry_lock();
	w = w ? w : start_locked(s, ask, &p, &message, ret);
	if (!w) {
		w = answer_locked(*ret);
		if (w)
			exec_put_locked(*ret);
	}
	registry_unlock();
	close_all(p.ours);
	close_all(p.theirs);
	return w;
}

enum wrong exec_get(struct sandbox *s, const char *id, struct exec **ret)
{
	registry_lock();
	*ret = find_locked(s, id);
	if (*ret)
		(*ret)->refs++;
	registry_unlock();
	return *ret ? WRONG_NOTHING : WRONG_EXEC;
}

enum wrong exec_kill(struct sandbox *s, const char *id, int signal, const char **ret_state)
{
	enum wrong w = WRONG_NOTHING;
	registry_lock();
	struct exec *e = find_locked(s, id);
	if (!e) {
		w = WRONG_EXEC;
	} else if (e->state == EXEC_NEW) {
		*ret_state = "new";
	} else if (e->state != EXEC_RUNNING) {
		*ret_state = "done";
	} else {
		struct wire_head h = {.op = WIRE_SIGNAL, .seq = e->seq, .a = signal};
		bool sent = s->watch.fd >= 0 && send(s->watch.fd, &h, sizeof h,
							MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof h;
		*ret_state = "sent";
		w = sent ? w
			 : wrong(WRONG_CAPACITY,
				   "the sandbox does not take more calls at the moment");
	}
	registry_unlock();
	return w;
}
