/* The connections of a worker: what the event thread (worker.c) and worker_conn.c share. */
#pragma once
#include "worker.h"
#include "worker_head.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * Idle: the event thread owns it, watches for a head, and may free it. Serving: a pool thread owns
 * it (or it is queued for one); an event means that the client has gone. Finishing: the pool thread
 * is in libfcgi's finish and events mean nothing.
 */
enum client_state { CLIENT_IDLE, CLIENT_SERVING, CLIENT_FINISHING };

struct client {
	int fd;
	FCGX_Request r;
	pthread_mutex_t lock; /* guards state and the watch */
	enum client_state state;
	_Atomic bool gone;
	void (*wake)(void *ctx);
	void *wake_ctx;
	/* of the event thread only */
	int64_t head_until;         /* 0: not in the list of those that owe a head */
	struct client *next, *prev; /* that list, oldest first */
	struct client *next_handed; /* closed ones for the event thread, or refused ones */
};

/* What connections need from the worker. */
struct conn_hooks {
	int epoll_fd;
	int wake_fd; /* eventfd: something for the event thread */
	const struct worker_hooks *hooks;
};

void conn_start(const struct conn_hooks *h);
/* Ends the refusing thread. */
void conn_stop(void);

/* A new connection with the time-outs set, watched for a head; NULL: epoll refused it (closed). */
struct client *conn_new(int fd);
void conn_free(struct client *c);

/* Looks at what has arrived on an idle connection. HEAD_WHOLE, _PARTIAL as in worker_head.h;
 * HEAD_BAD also for a closed one. */
enum head conn_peek(struct client *c);
bool conn_has_bytes(const struct client *c);

/* Idle to serving; from now on its events mean that the client has gone. */
void conn_begin(struct client *c);
/* Work for the pool: serves the request of a client that is in state serving. */
void conn_serve(void *client);
/* Hands a client in state serving to the thread that answers 503. Never blocks. */
void conn_refuse(void *client);

/* An event of the connection. True: it is idle, and the event thread has to look. */
bool conn_event(struct client *c);
/* Gives a connection whose descriptor is closed to the event thread, which may free it from then
 * on. */
void conn_hand_closed(struct client *c);
/* The connections closed since the last call, linked by next_handed; the caller frees them. */
struct client *conn_closed(void);
uint64_t conn_refused(void);
