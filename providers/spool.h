/*
 * Jobs in a sandbox that offers only "write a file" and "run a short command".
 *
 * Three POSIX scripts (providers/spool/) make a durable job of it: start unpacks the archive and
 * leaves a supervisor behind, poll reads state and output by offset, kill signals the process
 * group. Every call may be repeated. The archive carries the command, the environment and the
 * files, so no secret is ever on a command line. docs/spool.md tells how it works inside.
 */
#pragma once
#include "provider.h"

struct spool_file {
	const char *path; /* relative, normalised */
	const void *p;
	size_t n;
	unsigned mode; /* 0644 or 0755 */
};
struct spool_env {
	const char *name, *value;
};
struct spool_job {
	const char *id; /* 8 - 56 of [A-Za-z0-9-]: names the job in its sandbox */
	const char *cmd;
	const char *cwd; /* NULL: the job folder; a relative one begins there */
	int64_t timeout_s;
	const struct spool_file *files;
	size_t files_n;
	const struct spool_env *env;
	size_t env_n;
};

enum spool_state {
	SPOOL_NEW, /* the start did not get as far as the command */
	SPOOL_RUN,
	SPOOL_DONE,
	SPOOL_LOST, /* the supervisor died and left no exit code */
	SPOOL_GONE, /* the machine is there, but a job of this id was never started in it */
};
struct spool_status {
	enum spool_state state;
	int code;                     /* SPOOL_DONE: 0 - 255; else -1 */
	bool timed_out;               /* our TERM came before the command's end */
	int64_t out_bytes, err_bytes; /* true sizes */
	int64_t out_at, err_at;       /* offset of the slices below */
	const char *out, *err;        /* slices, in the arena, any bytes */
	size_t out_n, err_n;
	int64_t peak_bytes; /* -1: unknown */
	int64_t oom_kills;  /* -1: unknown */
};

/* Packs command, environment and files into one tar archive in the arena. ERR_BAD_INPUT on env when
 * it is larger than a program can be given or has a name that shells keep for themselves, on
 * files[i].path when one path is the same as, or a folder of, another. */
MUST_USE enum err spool_pack(
	const struct spool_job *job, struct arena *a, const void **ret, size_t *ret_n);

/* Sends the archive (one round trip), starts the job (one round trip) and waits about a second for
 * its end; *ret is what a poll from the beginning would say. Both may be repeated.
 * ERR_BAD_INPUT on cwd when the folder does not exist; ERR_UPSTREAM when the box is full or lacks a
 * tool; ERR_BOX_GONE when the machine was replaced since the archive was sent. */
MUST_USE enum err spool_put(struct call *c, const char *box, const struct spool_job *job,
	const void *archive, size_t n);
MUST_USE enum err spool_start(struct call *c, const char *box, const struct spool_job *job,
	int64_t slice, struct spool_status *ret);

/* State and new output: at most slice bytes of each stream, from the offset, or the last slice
 * bytes when more came since (the slice's true offset is in out_at, err_at). Waits inside the
 * sandbox up to wait_s (at most POLL_WAIT_S) for the end of the job. ERR_BOX_GONE when sandbox or
 * spool are gone; ERR_UPSTREAM on any reply that is not exactly of the script's form. */
MUST_USE enum err spool_poll(struct call *c, const char *box, const char *job_id, int64_t out_from,
	int64_t err_from, int64_t slice, int64_t wait_s, struct spool_status *ret);

/* Sends a signal ("TERM", "KILL", "INT") to the whole process group. OK also when the job has
 * ended, was never started, or is about to start (then it does not start). */
MUST_USE enum err spool_kill(
	struct call *c, const char *box, const char *job_id, const char *signal);
