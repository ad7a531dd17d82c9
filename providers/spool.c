/*
 * Packs a job and drives the three spool scripts through a provider's put and exec.
 *
 * Promises that command, environment and files travel only inside the archive, and that every call
 * may be repeated. Does not wait, retry or decide what a state means: that is the engine's.
 */
#include "spool.h"
#include "spool_reply.h"

#include "alloc.h"
#include "arena.h"
#include "buf.h"
#include "clock.h"
#include "bounds.h"
#include "spool_texts.h"
#include "text.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <string.h>

#define ARCHIVE_PATH  "/tmp/.sbx-%s.tar"
#define BLOCK         512
#define START_WAIT_S  30  /* unpacking half a megabyte on a slow disk */
#define FIRST_WAIT_S  "1" /* for the end of a short command, which then needs no poll */
#define SCRIPT_WAIT_S 15  /* poll and kill, beyond what poll waits on purpose */

/* -- the archive ------------------------------------------------------------------------------- */

/* A value in single quotes stands for itself in every shell, newlines included; a single quote ends
 * the quotes, stands escaped, and begins them anew. "command" keeps a name that the shell refuses
 * from ending it. */
void spool_env_line(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, "command export %s='", name);
	for (const char *quote; (quote = strchr(value, '\'')); value = quote + 1) {
		buf_put(b, value, (size_t)(quote - value));
		buf_str(b, "'\\''");
	}
	buf_str(b, value);
	buf_str(b, "'\n");
}

/* Shells set these themselves and bash lets nobody else do it; a value would be lost in silence. */
static const char *const reserved[] = {
	"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SBX_JOB", "SHELLOPTS", "UID", NULL};

static enum err check_env(const struct spool_job *job)
{
	size_t bytes = 0;
	for (size_t i = 0; i < job->env_n; i++) {
		for (int r = 0; reserved[r]; r++)
			if (strcmp(job->env[i].name, reserved[r]) == 0)
				return fail(ERR_BAD_INPUT, "env",
					"%s can not be set: the shell keeps it for itself",
					reserved[r]);
		bytes += strlen(job->env[i].name) + strlen(job->env[i].value) + 2;
	}
	if (bytes > ENV_BYTES_MAX)
		return fail(ERR_BAD_INPUT, "env",
			"names and values together are longer than %d bytes", ENV_BYTES_MAX);
	return OK;
}

/* True when a is b or a folder on the way to b. */
static bool blocks(const char *a, const char *b)
{
	size_t n = strlen(a);
	return strncmp(a, b, n) == 0 && (b[n] == '\0' || b[n] == '/');
}

static enum err check_files(const struct spool_job *job)
{
	for (size_t i = 0; i < job->files_n; i++)
		for (size_t k = 0; k < job->files_n; k++) {
			char field[40];
			if (i == k || !blocks(job->files[i].path, job->files[k].path))
				continue;
			(void)snprintf(field, sizeof field, "files[%zu].path", i > k ? i : k);
			return fail(ERR_BAD_INPUT, field,
				"is the same as, or inside, the path of files[%zu]", i > k ? k : i);
		}
	return OK;
}

/* Most bytes that one member can take: its header, a long name in blocks of its own, its content.
 */
static size_t member_bytes(size_t path_n, size_t n)
{
	return 4 * BLOCK + path_n + n + BLOCK;
}

struct packer {
	struct archive *w;
	struct arena *arena;
	size_t used;
};

/* GNU form: the one with long names that every tar can read, busybox's too. */
static void pack_begin(struct packer *k, void *p, size_t room)
{
	k->w = must(archive_write_new());
	int rc = archive_write_set_format_gnutar(k->w);
	rc = rc ? rc : archive_write_set_bytes_in_last_block(k->w, 1);
	rc = rc ? rc : archive_write_open_memory(k->w, p, room, &k->used);
	assert(rc == ARCHIVE_OK);
}

struct member {
	const char *path;
	unsigned type, mode;
	const void *p;
	size_t n;
};

static void pack(struct packer *k, const struct member *m)
{
	struct archive_entry *e = must(archive_entry_new());
	archive_entry_set_pathname(e, m->path);
	archive_entry_set_filetype(e, m->type);
	archive_entry_set_perm(e, (__LA_MODE_T)m->mode);
	archive_entry_set_size(e, (la_int64_t)m->n);
	/* The present time: build tools take files of 1970 for older than anything. */
	archive_entry_set_mtime(e, clock_ms() / 1000, 0);
	int rc = archive_write_header(k->w, e);
	la_ssize_t put = m->n ? archive_write_data(k->w, m->p, m->n) : 0;
	assert(rc == ARCHIVE_OK && put == (la_ssize_t)m->n);
	archive_entry_free(e);
}

/* The files of the spool itself; start.sh tells what each is for. */
static void pack_spool(struct packer *k, const struct spool_job *job, const struct buf *env)
{
	static const char blanks[] = "                        ";
	const struct member members[] = {
		{"cmd", AE_IFREG, 0600, job->cmd, strlen(job->cmd)},
		{"code", AE_IFREG, 0600, blanks, sizeof blanks - 1},
		{"job", AE_IFREG, 0600, blanks, sizeof blanks - 1},
		{"sup", AE_IFREG, 0600, blanks, sizeof blanks - 1},
		{"out", AE_IFREG, 0600, "", 0},
		{"err", AE_IFREG, 0600, "", 0},
		{"end", AE_IFIFO, 0600, "", 0},
		{"env", AE_IFREG, 0600, job->env_n ? env->p : NULL, env->n},
		{"cwd", AE_IFREG, 0600, job->cwd, job->cwd ? strlen(job->cwd) : 0},
	};
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		struct member m = members[i];
		if (!m.p)
			continue; /* an optional one that this job has not */
		m.path = arena_printf(k->arena, ".sbx/%s/%s", job->id, m.path);
		pack(k, &m);
	}
}

static void pack_files(struct packer *k, const struct spool_job *job)
{
	struct member folder = {
		.path = arena_printf(k->arena, "job-%s/", job->id), .type = AE_IFDIR, .mode = 0755};
	pack(k, &folder);
	for (size_t i = 0; i < job->files_n; i++) {
		const struct spool_file *f = &job->files[i];
		struct member m = {.path = arena_printf(k->arena, "job-%s/%s", job->id, f->path),
			.type = AE_IFREG,
			.mode = f->mode,
			.p = f->p,
			.n = f->n};
		pack(k, &m);
	}
}

static size_t env_room(const struct spool_job *job)
{
	size_t n = 1;
	for (size_t i = 0; i < job->env_n; i++)
		n += 4 * strlen(job->env[i].value) + strlen(job->env[i].name) + 32;
	return n;
}

enum err spool_pack(const struct spool_job *job, struct arena *a, const void **ret, size_t *ret_n)
{
	struct packer k = {.arena = a};
	enum err e = check_env(job);
	e = e ? e : check_files(job);
	if (e)
		return e;

	CLEANUP_BUF struct buf env;
	buf_init(&env, env_room(job));
	for (size_t i = 0; i < job->env_n; i++)
		spool_env_line(&env, job->env[i].name, job->env[i].value);
	assert(!env.full);

	size_t id_n = strlen(job->id);
	size_t room = 10 * member_bytes(id_n + 16, 16) + 4 * BLOCK + strlen(job->cmd) + env.n +
		      (job->cwd ? strlen(job->cwd) : 0);
	for (size_t i = 0; i < job->files_n; i++)
		room += member_bytes(id_n + 8 + strlen(job->files[i].path), job->files[i].n);
	void *p = arena_take(a, room);
	pack_begin(&k, p, room);
	pack_spool(&k, job, &env);
	pack_files(&k, job);
	int rc = archive_write_close(k.w);
	assert(rc == ARCHIVE_OK);
	archive_write_free(k.w);
	*ret = p;
	*ret_n = k.used;
	return OK;
}

/* -- the scripts ------------------------------------------------------------------------------- */

static const char *script(const char *name)
{
	for (int i = 0; spool_texts[i].name; i++)
		if (strcmp(spool_texts[i].name, name) == 0)
			return spool_texts[i].text;
	assert(!"a spool script is missing");
	return NULL;
}

#define PARAMS_MAX 5

/* Runs a script with its parameters; its output is the whole answer. */
static enum err run(struct call *c, const char *box, const char *exec_id, const char *text,
	const char *const params[PARAMS_MAX], int64_t wait_s, struct exec_result *ret)
{
	const char *argv[4 + PARAMS_MAX + 1] = {"sh", "-c", text, "sbx"};
	for (int i = 0; i < PARAMS_MAX; i++)
		argv[4 + i] = params[i];
	enum err e = c->provider->ops->exec(c, box, exec_id, argv, wait_s, ret);
	if (!e && ret->code != 0)
		return fail(
			ERR_UPSTREAM, NULL, "a spool script ended with exit code %d", ret->code);
	return e;
}

/* Poll and kill are made anew each time: a provider must not answer from memory. */
static const char *fresh_id(struct call *c)
{
	uint8_t raw[12];
	char hex[2 * sizeof raw + 1];
	random_bytes(raw, sizeof raw);
	hex_encode(hex, raw, sizeof raw);
	return arena_printf(c->arena, "spool-%s", hex);
}

enum err spool_put(
	struct call *c, const char *box, const struct spool_job *job, const void *archive, size_t n)
{
	const char *path = arena_printf(c->arena, ARCHIVE_PATH, job->id);
	return c->provider->ops->put(c, box, path, archive, n);
}

enum start_word {
	START_STARTED,
	START_DUP,
	START_BADCWD,
	START_BADTAR,
	START_NOSPACE,
	START_NOFORK,
	START_NOTOOLS,
	START_RESET,
};
static const char *const start_words[] = {
	"started", "dup", "badcwd", "badtar", "nospace", "nofork", "notools", "reset", NULL};

static enum err started(int word)
{
	switch ((enum start_word)word) {
	case START_STARTED:
	case START_DUP:
		return OK;
	case START_BADCWD:
		return fail(
			ERR_BAD_INPUT, "cwd", "is no folder that can be entered in the sandbox");
	case START_BADTAR:
		return fail(ERR_UPSTREAM, NULL,
			"the files of the job could not be unpacked in the sandbox; its disk may "
			"be full");
	case START_NOSPACE:
		return fail(ERR_UPSTREAM, NULL, "the disk of the sandbox is full");
	case START_NOFORK:
		return fail(ERR_UPSTREAM, NULL, "the sandbox can not start further processes");
	case START_NOTOOLS:
		return fail(ERR_UPSTREAM, NULL,
			"the sandbox lacks one of cat, setsid, tar, timeout, base64, tail, "
			"head, "
			"wc, grep");
	case START_RESET:
		break;
	}
	return fail(ERR_BOX_GONE, NULL, "the machine of the sandbox was replaced");
}

/* Start, and then, in the same request, the first poll. */
static const char *start_script(struct arena *a)
{
	return arena_printf(a,
		"start() {\n%s}\nstart \"$@\" || exit 0\nset -- \"$1\" 0 0 \"$4\" \"$5\"\n%s",
		script("start.sh"), script("poll.sh"));
}

static enum err read_start(
	const struct exec_result *r, int64_t slice, struct arena *a, struct spool_status *ret)
{
	struct spool_ask ask = {.slice = slice};
	size_t n;
	int word;
	enum err e = spool_read_first(r->out, r->out_n, start_words, &word, &n);
	if (!e && word > START_DUP && n != r->out_n)
		return fail(ERR_UPSTREAM, NULL, "a refused start told more than its refusal");
	e = e ? e : started(word);
	if (e)
		return e;
	e = spool_read_poll(r->out + n, r->out_n - n, &ask, a, ret);
	if (e != ERR_BOX_GONE)
		return e;
	/* It began, and took the spool away: that is no machine on which it never began. */
	*ret = (struct spool_status){.state = SPOOL_GONE, .code = -1, .out = "", .err = ""};
	return OK;
}

enum err spool_start(struct call *c, const char *box, const struct spool_job *job, int64_t slice,
	struct spool_status *ret)
{
	const char *const params[PARAMS_MAX] = {job->id,
		arena_printf(c->arena, "%lld", (long long)job->timeout_s),
		arena_printf(c->arena, ARCHIVE_PATH, job->id),
		arena_printf(c->arena, "%lld", (long long)slice), FIRST_WAIT_S};
	struct exec_result r;
	enum err e = run(c, box, arena_printf(c->arena, "%s-start", job->id),
		start_script(c->arena), params, START_WAIT_S, &r);
	return e ? e : read_start(&r, slice, c->arena, ret);
}

enum err spool_poll(struct call *c, const char *box, const char *job_id, int64_t out_from,
	int64_t err_from, int64_t slice, int64_t wait_s, struct spool_status *ret)
{
	assert(out_from >= 0 && err_from >= 0 && slice > 0);
	struct spool_ask ask = {.out_from = out_from, .err_from = err_from, .slice = slice};
	if (wait_s > POLL_WAIT_S)
		wait_s = POLL_WAIT_S;
	const char *const params[PARAMS_MAX] = {job_id,
		arena_printf(c->arena, "%lld", (long long)out_from),
		arena_printf(c->arena, "%lld", (long long)err_from),
		arena_printf(c->arena, "%lld", (long long)slice),
		arena_printf(c->arena, "%lld", (long long)wait_s)};
	struct exec_result r;
	enum err e =
		run(c, box, fresh_id(c), script("poll.sh"), params, wait_s + SCRIPT_WAIT_S, &r);
	return e ? e : spool_read_poll(r.out, r.out_n, &ask, c->arena, ret);
}

enum kill_word { KILL_SENT, KILL_DONE, KILL_GONE, KILL_RESET };
static const char *const kill_words[] = {"sent", "done", "gone", "reset", NULL};

enum err spool_kill(struct call *c, const char *box, const char *job_id, const char *signal)
{
	const char *const params[PARAMS_MAX] = {job_id, signal, NULL, NULL, NULL};
	struct exec_result r;
	int word;
	enum err e = run(c, box, fresh_id(c), script("kill.sh"), params, SCRIPT_WAIT_S, &r);
	if (!e)
		e = spool_read_word(r.out, r.out_n, kill_words, &word);
	if (!e && word == KILL_RESET)
		return fail(ERR_BOX_GONE, NULL, "the machine of the sandbox was replaced");
	return e;
}
