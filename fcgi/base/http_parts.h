/*
 * What the three files of the outbound module share: http.c makes a call into a flight, http_pool.c
 * flies it, http_guard.c says where it may go. Nobody else includes this.
 */
#pragma once
#include "err.h"
#include "http.h"

#include <curl/curl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

/* -- http_guard.c: where a call may go -----------------------------------------------------------
 */
struct target {
	CURLU *url; /* free with curl_url_cleanup */
	bool open;  /* an origin that the operator listed: any address, any scheme */
	bool tls;
	const char *socket; /* path of a unix socket, or NULL */
};

enum target_kind { TARGET_CALL, TARGET_BASE /* of a user: no query */ };

MUST_USE enum err guard_start(const char *const *allowed_origins);
void guard_stop(void);
MUST_USE enum err guard_judge(
	const char *url, const char *field, enum target_kind kind, struct target *ret);

/* -- http_pool.c: the threads --------------------------------------------------------------------
 */
struct pool;

/* One call under way. The caller waits for `done`; from pool_fly to there only the pool's thread
 * touches the rest. */
struct flight {
	CURL *easy; /* its CURLOPT_PRIVATE is the flight */
	int64_t total_ms, first_ms, idle_ms;
	CURLcode result;
	bool late;
	sem_t done;
	/* of the pool: */
	struct pool *pool;
	struct flight *next, *prev;
	int64_t begun_ms, moved_ms;
	bool answered;
};

void pools_start(void);
void pools_stop(void);
/* Waits until the flight has landed; false when the pools do not run. */
bool pool_fly(enum http_pool which, struct flight *f);
/* Something moved: the request (answered = false) or the reply. Only in the pool's thread. */
void flight_moved(struct flight *f, bool answered);
