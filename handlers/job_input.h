/*
 * The arguments of run_job: shape, and the checks that a shape can not express.
 */
#pragma once
#include "spool.h"
#include "tool.h"

enum encoding { ENCODING_UTF8, ENCODING_BASE64 };

struct file_in {
	const char *path, *content, *mode;
	int encoding;
};

struct run_in {
	const char *cmd, *provider, *key, *cwd, *runtime, *template, *gpu, *idempotency_key;
	struct list files;
	struct map env;
	int64_t timeout_s, wait_s, memory_mb, cpu;
	double free_mb;
	enum tri base64_output;
};
extern const struct shape run_in_shape;

/* Checks paths, modes, encodings and sizes and fills cmd, cwd, files and env of the spool job; CRLF
 * in cmd becomes LF. All memory in the arena. ERR_BAD_INPUT names the field and the bound. */
MUST_USE enum err job_input(const struct run_in *in, struct arena *a, struct spool_job *ret);

/* "H100:2" in its parts; a type alone is one of it. The text has passed the shape. */
void gpu_read(const char *text, struct arena *a, const char **ret_type, int64_t *ret_count);

/* A relative path as it will be written: "./x" and "a//b" lose their extra parts. ERR_BAD_INPUT on
 * `field` for absolute paths, "..", "", backslash-only tricks and names too long. */
MUST_USE enum err path_normalise(
	const char *path, const char *field, struct arena *a, const char **ret);
