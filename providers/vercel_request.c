/*
 * Bodies of requests to Vercel Sandbox: a new sandbox, a command, a file. What can not be given is
 * refused by name here, before anything is sent.
 */
#include "vercel_request.h"
#include "vercel_reply.h"

#include "alloc.h"
#include "clock.h"
#include "json.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <string.h>

#define CPU_MAX 32 /* of the largest plan */

/* -- a sandbox --------------------------------------------------------------------------------- */

static const char *const runtimes[] = {"node22", "node24", "node26", "python3.13", NULL};

static enum err check_runtime(const struct box_spec *s)
{
	if (s->runtime && s->template)
		return fail(ERR_UNSUPPORTED, "template",
			"Vercel takes a runtime or an image (template), not both");
	for (int i = 0; s->runtime && runtimes[i]; i++)
		if (strcmp(s->runtime, runtimes[i]) == 0)
			return OK;
	return s->runtime ? fail(ERR_UNSUPPORTED, "runtime",
				    "Vercel has node22, node24, node26 and python3.13; an image "
				    "is named as template")
			  : OK;
}

/* Memory follows the processors: 2048 MB for each, and their number is 1 or even. */
static enum err choose_cpu(const struct box_spec *s, int64_t *ret)
{
	int64_t cpu = s->cpu;
	if (s->memory_mb) {
		if (s->memory_mb % VERCEL_MB_PER_CPU ||
			(cpu && s->memory_mb != cpu * VERCEL_MB_PER_CPU))
			return fail(ERR_UNSUPPORTED, "memory_mb",
				"Vercel gives exactly %d MB for each cpu: leave memory_mb out, or "
				"ask for %d, %d, %d ...",
				VERCEL_MB_PER_CPU, VERCEL_MB_PER_CPU, 2 * VERCEL_MB_PER_CPU,
				4 * VERCEL_MB_PER_CPU);
		cpu = s->memory_mb / VERCEL_MB_PER_CPU;
	}
	if (cpu > CPU_MAX || (cpu > 1 && cpu % 2))
		return fail(ERR_UNSUPPORTED, s->cpu ? "cpu" : "memory_mb",
			"Vercel gives 1, 2, 4, 6 ... cpus, at most 4 on Hobby, 8 on Pro and %d on "
			"Enterprise, each with %d MB",
			CPU_MAX, VERCEL_MB_PER_CPU);
	*ret = cpu;
	return OK;
}

enum err vercel_check_spec(const struct box_spec *s, int64_t *ret_cpu)
{
	enum err e = vercel_word_ok(s->mark, VERCEL_NAME_MAX)
			     ? OK
			     : fail(ERR_INTERNAL, NULL, "a mark is not fit for a name");
	if (!e && s->network == NETWORK_HOST)
		e = fail(ERR_UNSUPPORTED, "network", "a Vercel sandbox has no network of a host");
	if (!e && s->gpu)
		e = fail(ERR_UNSUPPORTED, "gpu", "a Vercel sandbox has no gpu");
	e = e ? e : check_runtime(s);
	return e ? e : choose_cpu(s, ret_cpu);
}

void vercel_write_spec(const char *project, const struct box_spec *s, int64_t cpu, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "projectId", project);
	jw_kstr(&w, "name", s->mark);
	jw_kint(&w, "timeout", s->life_s * 1000);
	jw_kbool(&w, "persistent", false); /* else its files are kept, and billed, after its end */
	jw_key(&w, "ports");
	jw_list(&w);
	jw_end_list(&w);
	jw_key(&w, "tags");
	jw_obj(&w);
	jw_kstr(&w, "made-by", "compute-connector");
	jw_end(&w);
	if (cpu) {
		jw_key(&w, "resources");
		jw_obj(&w);
		jw_kint(&w, "vcpus", cpu);
		jw_end(&w);
	}
	if (s->runtime)
		jw_kstr(&w, "runtime", s->runtime);
	if (s->template)
		jw_kstr(&w, "image", s->template);
	if (s->network != NETWORK_DEFAULT) {
		jw_key(&w, "networkPolicy");
		jw_obj(&w);
		jw_kstr(&w, "mode", s->network == NETWORK_NONE ? "deny-all" : "allow-all");
		jw_end(&w);
	}
	jw_end(&w);
}

/* -- a command --------------------------------------------------------------------------------- */

void vercel_write_command(const char *const *argv, int64_t wait_s, struct buf *b)
{
	struct jw w = jw_new(b);
	jw_obj(&w);
	jw_kstr(&w, "command", argv[0]);
	jw_key(&w, "args");
	jw_list(&w);
	for (int i = 1; argv[i]; i++)
		jw_str(&w, argv[i]);
	jw_end_list(&w);
	jw_key(&w, "env");
	jw_obj(&w);
	jw_end(&w);
	jw_kbool(&w, "wait", true);
	jw_kbool(&w, "logs", true);
	jw_kint(&w, "timeout", wait_s * 1000);
	jw_end(&w);
}

/* -- a file ------------------------------------------------------------------------------------ */

static la_ssize_t write_part(struct archive *w, void *ctx, const void *p, size_t n)
{
	(void)w;
	buf_put(ctx, p, n);
	return (la_ssize_t)n;
}

/* The service takes files as the gzip of a tar archive. Little is gained by pressing harder. */
void vercel_pack_file(const char *path, const void *p, size_t n, struct buf *b)
{
	struct archive *w = must(archive_write_new());
	int rc = archive_write_add_filter_gzip(w);
	rc = rc ? rc : archive_write_set_filter_option(w, "gzip", "compression-level", "1");
	rc = rc ? rc : archive_write_set_format_gnutar(w);
	rc = rc ? rc : archive_write_open(w, b, NULL, write_part, NULL);
	assert(rc == ARCHIVE_OK);
	struct archive_entry *e = must(archive_entry_new());
	archive_entry_set_pathname(e, path);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0600);
	archive_entry_set_size(e, (la_int64_t)n);
	archive_entry_set_mtime(e, clock_ms() / 1000, 0);
	rc = archive_write_header(w, e);
	la_ssize_t put = n ? archive_write_data(w, p, n) : 0;
	assert(rc == ARCHIVE_OK && put == (la_ssize_t)n);
	archive_entry_free(e);
	rc = archive_write_close(w);
	assert(rc == ARCHIVE_OK);
	archive_write_free(w);
}
