/* The arguments of run_job. */
#include "job_input.h"

#include "bounds.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 255 /* one part of a path: NAME_MAX of every file system we meet */

static bool is_env_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	return *s == 0;
}

static bool is_mode(const char *s)
{
	return strspn(s, "01234567") == strlen(s) &&
	       (strlen(s) == 3 || (strlen(s) == 4 && *s == '0'));
}

static bool is_line(const char *s)
{
	while ((unsigned char)*s >= 0x20 && *s != 0x7f)
		s++;
	return *s == 0;
}

#define GPU_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+!.-"

/* A type, and perhaps a count of one digit. */
static bool is_gpu(const char *s)
{
	size_t n = strspn(s, GPU_LETTERS);
	if (!isalnum((unsigned char)*s) || n > GPU_CHARS_MAX)
		return false;
	return s[n] == 0 ||
	       (s[n] == ':' && s[n + 1] > '0' && s[n + 1] <= '0' + GPUS_MAX && s[n + 2] == 0);
}

static bool is_idem_key(const char *s)
{
	for (; *s; s++)
		if (*s < 0x21 || *s > 0x7e)
			return false;
	return true;
}

/* clang-format off */
static const char *const encodings[] = {"utf8", "base64", NULL};
static const struct field file_fields[] = {
	STR_FIELD(struct file_in, path, REQUIRED | IN_BYTES, 1, PATH_BYTES_MAX, "Relative path inside the job folder; folders are made.", .example = "\"src/main.c\""),
	STR_FIELD(struct file_in, content, REQUIRED, 0, 0, "The content, as text or base64."),
	ENUM_FIELD(struct file_in, encoding, 0, encodings, "How content is written; utf8 unless said otherwise."),
	STR_FIELD(struct file_in, mode, 0, 3, 4, "Octal permissions, 0644 unless said otherwise.", .pattern = "^(0?[0-7]{3})$", .valid = is_mode, .example = "\"0755\""),
};
static const struct shape file_shape = SHAPE(struct file_in, file_fields, "A small input file.");

static const struct field run_fields[] = {
	STR_FIELD(struct run_in, cmd, REQUIRED, 1, CMD_CHARS_MAX, "Shell text, run by `sh -c` in a fresh folder that holds the files.", .example = "\"make test\""),
	STR_FIELD(struct run_in, provider, 0, 1, KEY_NAME_CHARS_MAX, "A provider, or the name of a saved key. Without it: the account's default, then its other keys.", .example = "\"tunnel\""),
	STR_FIELD(struct run_in, key, 0, 1, KEY_NAME_CHARS_MAX, "The name of a saved key."),
	LIST_FIELD(struct run_in, files, 0, &file_shape, 0, FILES_MAX, "Input files: together at most 512000 bytes once decoded. Clone or download larger inputs inside the job."),
	MAP_FIELD(struct run_in, env, 0, 0, ENV_NAMES_MAX, "Environment variables: names of letters, digits and _, values of at most 100000 bytes.", .value_max = ENV_VALUE_BYTES_MAX, .pattern = "^[A-Za-z_][A-Za-z0-9_]*$", .valid = is_env_name),
	STR_FIELD(struct run_in, cwd, 0, 1, PATH_BYTES_MAX, "Working directory: absolute, or relative to the job folder. It must exist once the files are there.", .valid = is_line),
	INT_FIELD(struct run_in, timeout_s, 0, 1, TIMEOUT_S_MAX, "Time limit of the command in seconds; 240 unless said otherwise. Then it gets TERM, and KILL 5 s later."),
	INT_FIELD(struct run_in, wait_s, 0, 0, WAIT_S_MAX, "How long this call waits for the end; 45 unless said otherwise. Then it answers with a job_id for get_job."),
	STR_FIELD(struct run_in, runtime, 0, 1, 64, "What the provider calls a runtime; refused where there is none."),
	STR_FIELD(struct run_in, template, 0, 1, 200, "What the provider calls a template or image; refused where there is none."),
	STR_FIELD(struct run_in, gpu, 0, 1, GPU_CHARS_MAX + 2, "A type of GPU as the provider calls it, and how many where it is not one; refused where there is none.", .pattern = "^[A-Za-z0-9][A-Za-z0-9+!.-]{0,31}(:[1-8])?$", .valid = is_gpu, .example = "\"H100:2\""),
	INT_FIELD(struct run_in, memory_mb, 0, 64, 1048576, "Memory of the sandbox in MB, where the provider lets one choose."),
	INT_FIELD(struct run_in, cpu, 0, 1, 256, "Processors of the sandbox, where the provider lets one choose."),
	NUM_FIELD(struct run_in, free_mb, 0, 0, MEMORY_MB_MAX, "Free memory in MB on your machine: recorded and judged as check_memory does."),
	STR_FIELD(struct run_in, idempotency_key, 0, 1, IDEM_KEY_CHARS_MAX, "Repeating a call with the same key and arguments within 48 hours gives the same job instead of a new one.", .pattern = "^[!-~]*$", .valid = is_idem_key),
	BOOL_FIELD(struct run_in, base64_output, 0, "Also give the output as base64, unchanged."),
};
const struct shape run_in_shape = SHAPE(struct run_in, run_fields, "A job.");
/* clang-format on */

/* -- paths ------------------------------------------------------------------------------------- */

static enum err bad_path(const char *field, const char *why)
{
	return fail(ERR_BAD_INPUT, field, "%s", why);
}

static bool is_dot(const char *part, size_t n)
{
	return n == 0 || (n == 1 && *part == '.');
}

static const char *check_whole(const char *path)
{
	if (*path == '/')
		return "must be relative, without a leading slash";
	if (strspn(path, "\\") == strlen(path))
		return "must hold more than backslashes";
	const char *last = strrchr(path, '/');
	last = last ? last + 1 : path;
	return is_dot(last, strlen(last)) ? "must name a file, not a folder" : NULL;
}

static const char *check_part(const char *part, size_t n)
{
	if (n > NAME_BYTES_MAX)
		return "each part may have at most 255 bytes";
	return n == 2 && strncmp(part, "..", 2) == 0 ? "must not contain .." : NULL;
}

enum err path_normalise(const char *path, const char *field, struct arena *a, const char **ret)
{
	char *out = arena_take(a, strlen(path) + 1), *at = out;
	const char *why = check_whole(path);
	while (!why && *path) {
		size_t n = strcspn(path, "/");
		why = check_part(path, n);
		if (!is_dot(path, n) && at != out)
			*at++ = '/';
		if (!is_dot(path, n))
			at = (char *)mempcpy(at, path, n);
		path += path[n] ? n + 1 : n;
	}
	*at = 0;
	*ret = out;
	return why ? bad_path(field, why) : OK;
}

static int by_path(const void *a, const void *b)
{
	const struct spool_file *const *x = a, *const *y = b;
	return strcmp((*x)->path, (*y)->path);
}

static bool is_inside(const char *folder, const char *path)
{
	size_t n = strlen(folder);
	return strncmp(folder, path, n) == 0 && path[n] == '/';
}

/* Two files of one name, or a file where another one needs a folder: neither could be obeyed. */
static enum err check_collisions(const struct spool_file *files, size_t n, struct arena *a)
{
	const struct spool_file **sorted = ARENA_LIST(a, n, const struct spool_file *);
	char field[40];
	for (size_t i = 0; i < n; i++)
		sorted[i] = &files[i];
	qsort(sorted, n, sizeof *sorted, by_path);
	for (size_t i = 0; i + 1 < n; i++) {
		/* Names between "a" and "a/b" (such as "a-") may stand between them in the order.
		 */
		for (size_t k = i + 1; k < n && strncmp(sorted[i]->path, sorted[k]->path,
							strlen(sorted[i]->path)) == 0;
			k++) {
			bool same = strcmp(sorted[i]->path, sorted[k]->path) == 0;
			if (!same && !is_inside(sorted[i]->path, sorted[k]->path))
				continue;
			(void)snprintf(field, sizeof field, "files[%zu].path",
				(size_t)(sorted[k] - files));
			return bad_path(
				field, same ? "is given twice" : "is inside another file's path");
		}
	}
	return OK;
}

/* -- files and command ------------------------------------------------------------------------- */

static enum err read_file(
	const struct file_in *in, size_t i, struct arena *a, struct spool_file *ret)
{
	char field[40];
	(void)snprintf(field, sizeof field, "files[%zu].path", i);
	enum err e = path_normalise(in->path, field, a, &ret->path);
	if (e)
		return e;
	ret->mode = in->mode ? (unsigned)strtoul(in->mode, NULL, 8) : 0644;
	ret->n = strlen(in->content);
	ret->p = in->content;
	if (in->encoding != ENCODING_BASE64)
		return OK;
	ret->p = base64_decode(a, in->content, ret->n, &ret->n);
	(void)snprintf(field, sizeof field, "files[%zu].content", i);
	return ret->p ? OK
		      : fail(ERR_BAD_INPUT, field,
				"must be base64 with padding, without line breaks");
}

static enum err read_files(const struct list *in, struct arena *a, struct spool_job *ret)
{
	const struct file_in *items = in->items;
	struct spool_file *files = ARENA_LIST(a, in->n, struct spool_file);
	size_t total = 0;
	for (size_t i = 0; i < in->n; i++) {
		enum err e = read_file(&items[i], i, a, &files[i]);
		if (e)
			return e;
		total += files[i].n;
		if (total > FILES_BYTES_MAX)
			return fail(ERR_BAD_INPUT, "files", "hold more than %d bytes together",
				FILES_BYTES_MAX);
	}
	ret->files = files;
	ret->files_n = in->n;
	return check_collisions(files, in->n, a);
}

static void read_env(const struct map *in, struct arena *a, struct spool_job *ret)
{
	struct spool_env *env = ARENA_LIST(a, in->n, struct spool_env);
	for (size_t i = 0; i < in->n; i++)
		env[i] = (struct spool_env){in->items[i].name, in->items[i].value};
	ret->env = env;
	ret->env_n = in->n;
}

/* Shells take a carriage return for part of the last word. */
static const char *unix_lines(const char *cmd, struct arena *a)
{
	char *out = arena_take(a, strlen(cmd) + 1), *at = out;
	for (; *cmd; cmd++)
		if (!(cmd[0] == '\r' && cmd[1] == '\n'))
			*at++ = *cmd;
	return out;
}

void gpu_read(const char *text, struct arena *a, const char **ret_type, int64_t *ret_count)
{
	size_t n = strcspn(text, ":");
	*ret_type = arena_copy(a, text, n);
	*ret_count = text[n] ? text[n + 1] - '0' : 1;
}

enum err job_input(const struct run_in *in, struct arena *a, struct spool_job *ret)
{
	ret->cmd = unix_lines(in->cmd, a);
	if (strspn(ret->cmd, " \t\r\n") == strlen(ret->cmd))
		return fail(ERR_BAD_INPUT, "cmd", "must hold a command");
	ret->cwd = in->cwd ? arena_str(a, in->cwd) : NULL;
	read_env(&in->env, a, ret);
	return read_files(&in->files, a, ret);
}
