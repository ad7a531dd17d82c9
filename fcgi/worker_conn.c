/*
 * The life of one connection of nginx, and of each request on it.
 *
 * Promises: one thread at a time touches a request; a connection is freed by the event thread only,
 * and only after it was closed; a kept connection is never closed by us unless it broke; input is
 * read to its end before the request is finished, because what is left would be taken for the next
 * request. Does not know what a request means.
 */
#include "worker_conn.h"

#include "alloc.h"
#include "clock.h"
#include "bounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEEK_FIRST 8192 /* bytes; the usual head is 1 - 2 KiB */

static struct {
	struct conn_hooks up;
	pthread_mutex_t lock; /* guards the two lists and stop */
	pthread_cond_t refuse_wake;
	pthread_t refuser;
	struct client *closed, *refuse_first, **refuse_last;
	bool stop;
	_Atomic uint64_t refused;
} conns = {.lock = PTHREAD_MUTEX_INITIALIZER, .refuse_wake = PTHREAD_COND_INITIALIZER};

static bool watch(struct client *c, int op, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.ptr = c};
	return epoll_ctl(conns.up.epoll_fd, op, c->fd, &e) == 0;
}

/* Edge-triggered, because a partial head stays in the socket and would be reported for ever. */
#define FOR_HEAD (EPOLLIN | EPOLLRDHUP | EPOLLET)
#define FOR_GONE (EPOLLRDHUP | EPOLLONESHOT)

struct client *conn_new(int fd)
{
	struct timeval in = {.tv_sec = PEER_READ_S}, out = {.tv_sec = PEER_WRITE_S};
	struct client *c = must(calloc(1, sizeof *c));
	c->fd = fd;
	pthread_mutex_init(&c->lock, NULL);
	FCGX_InitRequest(&c->r, -1, 0);
	(void)setsockopt(
		fd, SOL_SOCKET, SO_SNDTIMEO, &out, sizeof out); /* cannot fail on a socket */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &in, sizeof in);
	if (watch(c, EPOLL_CTL_ADD, FOR_HEAD))
		return c;
	close(fd);
	conn_free(c);
	return NULL;
}

void conn_free(struct client *c)
{
	pthread_mutex_destroy(&c->lock);
	free(c);
}

bool conn_has_bytes(const struct client *c)
{
	char byte;
	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

enum head conn_peek(struct client *c)
{
	static unsigned char bytes[HEAD_BYTES_MAX]; /* of the event thread */
	ssize_t n = recv(c->fd, bytes, PEEK_FIRST, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return HEAD_PARTIAL;
	if (n <= 0)
		return HEAD_BAD;
	enum head h = head_judge(bytes, (size_t)n);
	if (h != HEAD_PARTIAL || n < PEEK_FIRST)
		return h;
	n = recv(c->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
	return n <= 0 ? HEAD_BAD : head_judge(bytes, (size_t)n);
}

void conn_begin(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	c->state = CLIENT_SERVING;
	atomic_store(&c->gone, false);
	(void)watch(c, EPOLL_CTL_MOD, FOR_GONE); /* at worst a client's leaving stays unseen */
	pthread_mutex_unlock(&c->lock);
}

bool conn_event(struct client *c)
{
	pthread_mutex_lock(&c->lock);
	bool idle = c->state == CLIENT_IDLE;
	if (c->state == CLIENT_SERVING) {
		atomic_store(&c->gone, true);
		if (c->wake)
			c->wake(c->wake_ctx); /* under the lock: client_watch waits for it */
	}
	pthread_mutex_unlock(&c->lock);
	return idle;
}

/* -- closing ----------------------------------------------------------------------------------- */

void conn_hand_closed(struct client *c)
{
	uint64_t one = 1;
	pthread_mutex_lock(&conns.lock);
	c->next_handed = conns.closed;
	conns.closed = c;
	pthread_mutex_unlock(&conns.lock);
	ssize_t n = write(conns.up.wake_fd, &one, sizeof one);
	(void)n; /* full means that the event thread is already going to look */
}

struct client *conn_closed(void)
{
	pthread_mutex_lock(&conns.lock);
	struct client *c = conns.closed;
	conns.closed = NULL;
	pthread_mutex_unlock(&conns.lock);
	return c;
}

/* -- one request ------------------------------------------------------------------------------- */

/* Reads the input to its end; false when it broke or took too long. */
static bool drain_input(FCGX_Stream *in)
{
	int64_t until = clock_mono_ms() + INPUT_WAIT_MS;
	while (FCGX_GetChar(in) != EOF) {
		in->rdNext = in->stop; /* the rest of what one read brought */
		if (clock_mono_ms() > until)
			return false;
	}
	return FCGX_GetError(in) == 0;
}

void client_input_done(FCGX_Request *r)
{
	if (r->in && !drain_input(r->in))
		r->keepConnection = 0;
	FCGX_FreeStream(&r->in);
}

static void finish(struct client *c)
{
	FCGX_Request *r = &c->r;
	client_input_done(r);
	pthread_mutex_lock(&c->lock);
	c->state = CLIENT_FINISHING;
	c->wake = NULL;
	pthread_mutex_unlock(&c->lock);
	/* libfcgi closes the two streams only when the input still exists, so do it here. */
	if (FCGX_FClose(r->err) | FCGX_FClose(r->out))
		r->keepConnection = 0;
	FCGX_Detach(r); /* else a close waits up to 2 s for nginx to close first */
	FCGX_Finish_r(r);
	if (r->ipcFd < 0) {
		conn_hand_closed(c);
		return;
	}
	pthread_mutex_lock(&c->lock); /* held over epoll_ctl: the event thread may close it after */
	c->state = CLIENT_IDLE;
	bool watched = watch(c, EPOLL_CTL_MOD, FOR_HEAD);
	if (!watched) {
		c->state = CLIENT_FINISHING;
		close(c->fd);
	}
	pthread_mutex_unlock(&c->lock);
	if (!watched)
		conn_hand_closed(c);
}

/* Lets libfcgi read the head, which is whole; false: it did not like it and the socket is closed.
 */
static bool begin_request(struct client *c)
{
	FCGX_Request *r = &c->r;
	r->ipcFd = c->fd;
	r->keepConnection = 1; /* or the implied finish would close it; BEGIN sets the true value */
	r->listen_sock = -1;
	FCGX_Detach(r);
	if (atomic_load(&c->gone)) { /* while it was queued: nobody reads the answer */
		close(c->fd);
		return false;
	}
	return FCGX_Accept_r(r) == 0;
}

void conn_serve(void *client)
{
	struct client *c = client;
	if (!begin_request(c)) {
		conn_hand_closed(c);
		return;
	}
	conns.up.hooks->serve(&c->r, c);
	finish(c);
}

/* -- refusing ---------------------------------------------------------------------------------- */

void conn_refuse(void *client)
{
	struct client *c = client;
	pthread_mutex_lock(&conns.lock);
	c->next_handed = NULL;
	*conns.refuse_last = c;
	conns.refuse_last = &c->next_handed;
	pthread_cond_signal(&conns.refuse_wake);
	pthread_mutex_unlock(&conns.lock);
}

static struct client *next_refused(void)
{
	pthread_mutex_lock(&conns.lock);
	while (!conns.refuse_first && !conns.stop)
		pthread_cond_wait(&conns.refuse_wake, &conns.lock);
	struct client *c = conns.refuse_first;
	if (c)
		conns.refuse_first = c->next_handed;
	if (!conns.refuse_first)
		conns.refuse_last = &conns.refuse_first;
	pthread_mutex_unlock(&conns.lock);
	return c;
}

static void *refuser_main(void *arg)
{
	(void)arg;
	for (struct client *c; (c = next_refused());) {
		atomic_fetch_add(&conns.refused, 1);
		if (!begin_request(c)) {
			conn_hand_closed(c);
			continue;
		}
		conns.up.hooks->refuse(&c->r);
		finish(c);
	}
	return NULL;
}

uint64_t conn_refused(void)
{
	return atomic_load(&conns.refused);
}

void conn_start(const struct conn_hooks *h)
{
	conns.up = *h;
	conns.stop = false;
	conns.refuse_last = &conns.refuse_first;
	if (pthread_create(&conns.refuser, NULL, refuser_main, NULL) != 0)
		abort(); /* a process that cannot make one thread cannot serve */
}

void conn_stop(void)
{
	pthread_mutex_lock(&conns.lock);
	conns.stop = true;
	pthread_cond_signal(&conns.refuse_wake);
	pthread_mutex_unlock(&conns.lock);
	pthread_join(conns.refuser, NULL);
}

/* -- for handlers ------------------------------------------------------------------------------ */

bool client_gone(const struct client *c)
{
	return atomic_load(&c->gone);
}

void client_watch(struct client *c, void (*wake)(void *ctx), void *ctx)
{
	pthread_mutex_lock(&c->lock);
	c->wake = wake;
	c->wake_ctx = ctx;
	pthread_mutex_unlock(&c->lock);
}
