/*
 * Providers: facts and operations.
 *
 * A provider is a translation: build the request, send it, decode the reply, map the status. It has
 * no loop with a sleep, no database, no account and no log line. Its struct stands at the end of
 * its file; an operation that is NULL is "unsupported" and is refused before any network use.
 */
#pragma once
#include "err.h"
#include "http.h"
#include "secret.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct provider;

/* What a user saves for one provider. Which fields are used is a fact of the provider. */
struct credential {
	struct secret token;
	const char *team_id, *project_id, *api_url, *bridge_url; /* NULL: not given */
};

/* What an operation learnt about one sandbox and a later one of the same call needs: where it is
 * spoken to, and with what. Never stored: who lacks it asks the provider again. */
struct box_memo {
	char box[128];       /* the provider's id; "": nothing is remembered */
	char base[256];      /* address of this sandbox, without a trailing slash */
	char task[64];       /* a second id of it there, where the provider has one */
	struct secret token; /* of this sandbox alone */
};

/* One call to a provider, made by the engine; ends with call_done. */
struct call {
	const struct provider *provider;
	const struct credential *credential;
	struct arena *arena; /* of the operation under way: a poll brings its own */
	struct box_memo memo;
	struct secret pass;        /* what the key was exchanged for, where a provider does that, */
	int64_t pass_until_ms;     /* and how long it is used (clock_mono_ms) */
	bool (*wanted)(void *ctx); /* whether a long wait is still worth it; NULL: yes */
	void *ctx;
	unsigned round_trips; /* counted by the operations: one per HTTP request */
	int64_t upstream_us;  /* time spent waiting for the provider */
};

/* Wipes what the call remembers; the credential belongs to the caller. */
void call_done(struct call *c);
#define CLEANUP_CALL __attribute__((cleanup(call_done)))

enum network { NETWORK_DEFAULT, NETWORK_NONE, NETWORK_INTERNET, NETWORK_HOST };

struct box_spec {
	const char *mark;               /* our mark: name, label or metadata at the provider */
	int64_t life_s;                 /* hard end set at the provider */
	int64_t memory_mb, cpu;         /* 0: the provider's default */
	const char *gpu;                /* what the provider calls its type; NULL: none */
	int64_t gpu_count;              /* of that type, 1 to GPUS_MAX */
	const char *runtime, *template; /* NULL: default */
	enum network network;
};

enum box_state { BOX_RUNNING, BOX_STOPPING, BOX_STOPPED };
struct box {
	const char *id; /* the provider's id; in the arena */
	const char *mark;
	enum box_state state;
	int64_t created_ms, ends_ms; /* 0: unknown */
	const char *warnings;        /* what could not be enforced, our words; NULL: nothing */
};
struct box_list {
	size_t n;
	struct box *items;
};

/* A short command and its whole result. Not for jobs: those run under the spool, whose scripts say
 * all on standard output; so err is empty where it would have to be asked for apart. */
struct exec_result {
	int code;
	const char *out, *err;
	size_t out_n, err_n;
};

/* One rate of the account itself, in the provider's own words. */
struct told_rate {
	const char *name; /* visible ASCII, at most TOLD_RATE_MAX */
	const char *usd;  /* dollars as a decimal number: digits, at most one point */
};
#define TOLD_RATE_MAX  64
#define TOLD_RATES_MAX 64
struct told_rates {
	size_t n;
	struct told_rate *items;
};

struct provider_ops {
	/* The cheapest read-only call that proves the credential. ERR_KEY_REFUSED, ERR_UPSTREAM ...
	 */
	enum err (*check)(struct call *c);
	/* ERR_UPSTREAM_UNSURE when the sandbox may exist: find() decides later. */
	enum err (*create)(struct call *c, const struct box_spec *spec, struct box *ret);
	/* By our mark, after a lost reply. OK with ret->id NULL: certainly not there. */
	enum err (*find)(struct call *c, const char *mark, struct box *ret);
	/* Every living sandbox that carries a mark of this installation ("cc-xxxxxx-" in prefix).
	 */
	enum err (*list)(struct call *c, const char *prefix, struct box_list *ret);
	/* OK and BOX_STOPPED: proven end (also: unknown there). OK and BOX_STOPPING: ask again. */
	enum err (*destroy)(struct call *c, const char *id, enum box_state *ret);
	/* Writes one file; replaces it. mode 0600. */
	enum err (*put)(struct call *c, const char *id, const char *path, const void *p, size_t n);
	/* Runs argv (NULL-terminated) to its end, at most wait_s seconds plus the transfer.
	 * exec_id makes a repeat harmless. ERR_BOX_GONE: the sandbox is certainly gone. */
	enum err (*exec)(struct call *c, const char *id, const char *exec_id,
		const char *const *argv, int64_t wait_s, struct exec_result *ret);
	/* What the account pays, as the provider tells it; n 0: this way it does not say. NULL:
	 * there is no such call. */
	enum err (*rates)(struct call *c, struct told_rates *ret);
};

enum provider_can {
	CAN_FILES = 1,
	CAN_MEMORY = 2, /* memory_mb is honoured */
	CAN_CPU = 4,
	CAN_TEMPLATE = 8,
	CAN_RUNTIME = 16,
	CAN_GPU = 32,
	CAN_LIST = 64, /* can be swept by mark */
};

/* Which members of a credential a provider takes. */
enum credential_field {
	WANT_TOKEN = 1,
	WANT_TEAM = 2,
	WANT_PROJECT = 4,
	WANT_API_URL = 8,
	WANT_BRIDGE_URL = 16,
};

struct setup_step {
	const char *text, *link; /* link may be NULL */
};

struct provider {
	const char *name;  /* in the API; [a-z-] */
	const char *base;  /* its API where the user gives no address of his own; NULL: has none */
	const char *title; /* for people */
	const char *how;   /* one sentence: how it runs a job */
	unsigned can;
	unsigned needs, takes;            /* credential fields: required, allowed besides */
	int64_t timeout_max_s;            /* longest job */
	const char *price;                /* one sentence with its date, or NULL: unknown */
	const char *docs_url, *price_url; /* NULL: none */
	const struct setup_step *setup;   /* ends with a NULL text */
	const struct provider_ops *ops;   /* NULL: not connected in this version */
};

/* What a provider charges, in millionths of a dollar an hour. */
struct price {
	const char *provider;
	int64_t cpu, gib;      /* of one processor, of one GiB of memory */
	int64_t flat;          /* of a sandbox, whatever its size */
	bool cpu_used;         /* only processor time that is used is charged */
	int64_t default_cpu;   /* what a sandbox has when the job asks for nothing; */
	int64_t default_mb;    /* both 0: not known */
	int64_t mb_per_cpu;    /* memory follows the processors; 0: it is chosen by itself */
	bool template_decides; /* the size is the template's, and not known when one is named */
	const char *as_of;     /* "2026-08", or "2026" */
};
const struct price *price_of(const char *provider); /* NULL: not known */
#define PRICE_UNKNOWN (-1)
/* Of a sandbox made to this spec, in millionths of a dollar an hour, or PRICE_UNKNOWN. Where used
 * processor time is charged it is counted as if it were used all the time: at most so much. */
int64_t price_rate(const struct provider *p, const struct box_spec *spec);

/* The provider's API: what the operator put in place of it, else its own; NULL: it has none. */
const char *provider_base(const struct provider *p);
/* Takes the operator's list "name=https://host/path, ..." (a gateway, or a stand-in for tests).
 * Once, before the first call. ERR_BAD_INPUT names what is wrong. */
MUST_USE enum err provider_bases_set(const char *list);

/* Every provider in the order in which they are shown; ends with NULL. */
extern const struct provider *const providers[];
const struct provider *provider_find(const char *name); /* NULL: none of this name */
