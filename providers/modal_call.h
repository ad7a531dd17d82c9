/*
 * Calls to Modal's two services: the control service, with the account's key, and the command
 * router of one sandbox, with a token for that sandbox alone. What the operations share.
 */
#pragma once
#include "err.h"
#include "grpc.h"
#include "proto.h"
#include "provider.h"
#include "reply.h"
#include "secret.h"

#include <stdint.h>

#define MODAL_APP          "compute-connector" /* of all sandboxes; costs nothing */
#define MODAL_TAG          "compute-connector" /* its value names the installation */
#define MODAL_ID_MAX       100
#define MODAL_CALL_MS      30000
#define MODAL_TEMPLATE_MAX 200
#define MODAL_BODY         (256u << 10) /* of requests without a file: scripts and their parameters */

/* What a result of a sandbox says; 0 means that it runs. */
enum { MODAL_RESULT_RUNNING = 0, MODAL_RESULT_SUCCESS = 1 };

/* The account's key in its two parts and the token that it was exchanged for, which is the call's.
 */
struct modal_key {
	struct secret id, secret;
	const struct secret *token; /* NULL: not yet */
};

struct modal_ask {
	const char *method;
	const struct buf *body; /* one message */
	enum effect effect;
	int64_t total_ms;           /* 0: MODAL_CALL_MS */
	const char *once;           /* makes a repeat harmless at the server; NULL: nothing does */
	struct grpc_stream *stream; /* of the reply; NULL: it is one message */
	bool frames;                /* the body consists of frames already */
	bool *ret_later;            /* set when nobody is there (yet) who could answer; or NULL */
	int *ret_status; /* what Modal itself says of it, in the numbers of HTTP; 0: nothing; or
			    NULL */
};

/* Exchanges the key; one round trip, or none when the same call did so a moment ago.
 * ERR_KEY_REFUSED on token. Close in any case. */
MUST_USE enum err modal_open(struct call *c, struct modal_key *ret);
void modal_close(struct modal_key *k);
#define CLEANUP_MODAL_KEY __attribute__((cleanup(modal_close)))

/* A call to the control service. ERR_BOX_GONE: it does not know what was named. */
MUST_USE enum err modal_control(
	struct call *c, const struct modal_key *k, const struct modal_ask *q, struct pb_msg *ret);

/* "sb-" and letters, digits, dashes. ERR_INTERNAL otherwise: ids come from our own rows. */
MUST_USE enum err modal_check_id(const char *id);
bool modal_id_ok(const char *id);
/* The name of a call for the generation that the id belongs to: name, or name and "V2". */
const char *modal_rpc(struct call *c, const char *name, const char *id);

/* Notes in the call where the sandbox is reached: its task, and the router's address and token
 * (message of jwt and url). False, and nothing noted, when any of it is missing or leads elsewhere
 * than to Modal. */
bool modal_note(struct call *c, const char *id, const char *task, struct pb_msg access);

/* Makes sure that the router of the sandbox is known; asks for it when it is not (three round
 * trips). ERR_BOX_GONE when the sandbox has ended. */
MUST_USE enum err modal_reach(struct call *c, const char *id);

/* Whether a sandbox that was just made has got its machine; then it is noted where it is reached,
 * if that is told. ERR_BOX_GONE when it has ended. */
MUST_USE enum err modal_begun(struct call *c, const struct modal_key *k, const char *id, bool *ret);

/* A call to the router of the sandbox that was reached; a token that is refused is renewed once.
 * An error is ERR_BOX_GONE only when the control service says that the sandbox has ended. */
MUST_USE enum err modal_router(
	struct call *c, const char *id, const struct modal_ask *q, struct pb_msg *ret);

/* Whether the sandbox has ended, waiting up to wait_s for it. */
MUST_USE enum err modal_ended(
	struct call *c, const struct modal_key *k, const char *id, int64_t wait_s, bool *ret);

/* -- what a sandbox is made of (modal_image.c) ------------------------------------------------- */

/* The account's app of ours. ERR_BOX_GONE: there is none, and none was wanted. */
MUST_USE enum err modal_app(struct call *c, const struct modal_key *k, bool make, const char **ret);
struct modal_parts {
	const char *app, *image;
	bool remembered; /* not asked for just now */
};
/* Both ids, in the arena; up to three round trips and the wait for an image that is being made, or
 * none when they are remembered. template NULL: the usual image. ERR_BAD_INPUT on template. */
MUST_USE enum err modal_parts(
	struct call *c, const struct modal_key *k, const char *template, struct modal_parts *ret);
/* The next modal_parts of this key and template asks again. */
void modal_forget(struct call *c, const char *template);

/* An id of the form of a UUID that is always the same for the same text. */
const char *modal_uuid(struct arena *a, const char *text);

/* -- GPUs (modal_gpu.c) ------------------------------------------------------------------------ */

/* The field of the resources; nothing without a GPU. */
void modal_gpu_write(struct arena *a, const struct box_spec *spec, struct buf *resources);
/* How long a sandbox may wait for its machine; 0 without a GPU. */
int64_t modal_queue_s(const struct box_spec *spec);
/* What a refusal of the order means when it was taken for wrong. */
MUST_USE enum err modal_gpu_refused(void);
/* Until the sandbox has its machine. One that does not get it is ended: then an error is certain,
 * and ERR_UPSTREAM_UNSURE when that can not be confirmed. */
MUST_USE enum err modal_wait_machine(
	struct call *c, const struct modal_key *k, const struct box_spec *spec, const char *id);

extern const struct provider_ops modal_ops; /* modal.c: direct, or through a bridge */
enum err modal_create(struct call *c, const struct box_spec *spec, struct box *ret);
enum err modal_find(struct call *c, const char *mark, struct box *ret);
enum err modal_list(struct call *c, const char *prefix, struct box_list *ret);
enum err modal_destroy(struct call *c, const char *id, enum box_state *ret);
enum err modal_put(struct call *c, const char *id, const char *path, const void *p, size_t n);
enum err modal_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret);
enum err modal_rates(struct call *c, struct told_rates *ret); /* modal_rates.c */
