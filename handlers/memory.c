/*
 * check_memory: a warning before a heavy job, from numbers the caller sends. Nothing runs, nothing
 * goes out; what stays is one row of numbers and the job's first word.
 */
#include "memory.h"

#include "clock.h"
#include "db.h"
#include "first_word.h"
#include "bounds.h"
#include "provider.h"

#include <string.h>

struct check_in {
	double free_mb, total_mb, job_mb, floor_mb;
	const char *job, *host;
};

struct check_out {
	const char *status, *verdict, *reason, *warning, *advice, *provider, *source, *kind,
		*command_word;
	int64_t need_mb, floor_mb, left_mb;
};

const char *const memory_statuses[] = {"ok", "low", "critical", NULL};
const char *const memory_verdicts[] = {"run_local", "offload", NULL};
static const char *const sources[] = {"given", "history", "table", NULL};

/* clang-format off */
static const struct field check_in_fields[] = {
	NUM_FIELD(struct check_in, free_mb, REQUIRED, 0, MEMORY_MB_MAX, "Free memory of your machine in MB (Linux: MemAvailable, not MemFree).", .example = "1480"),
	NUM_FIELD(struct check_in, total_mb, 0, 0, 0, "Its total memory in MB.", .example = "7900"),
	STR_FIELD(struct check_in, job, 0, 1, CMD_CHARS_MAX, "The command you are about to run. Only its first word is kept.", .example = "\"npm ci && npm run build\""),
	NUM_FIELD(struct check_in, job_mb, 0, 0, MEMORY_MB_MAX, "What the job needs in MB, if you know it. It beats every estimate."),
	NUM_FIELD(struct check_in, floor_mb, 0, 0, MEMORY_MB_MAX, "What must stay free in MB. Else 512 or a tenth of the total, whichever is more."),
	STR_FIELD(struct check_in, host, 0, 0, 200, "A name for your machine. It is not kept."),
};
static const struct shape check_in_shape = SHAPE(struct check_in, check_in_fields, "What is free and what is about to run.");

static const struct field check_out_fields[] = {
	WORD_FIELD(struct check_out, status, REQUIRED, memory_statuses, "ok, low (below the floor) or critical (does not fit)."),
	WORD_FIELD(struct check_out, verdict, REQUIRED, memory_verdicts, "Where to run it."),
	STR_FIELD(struct check_out, reason, REQUIRED, 0, 0, "The numbers behind the verdict."),
	STR_FIELD(struct check_out, warning, 0, 0, 0, "What may happen if the job runs here all the same."),
	STR_FIELD(struct check_out, advice, 0, 0, 0, "What to set when the job is moved."),
	STR_FIELD(struct check_out, provider, 0, 0, 0, "Where to send it: the saved default, or the usual one."),
	INT_FIELD(struct check_out, need_mb, REQUIRED, 0, 0, "What the job is expected to need, in MB."),
	INT_FIELD(struct check_out, floor_mb, REQUIRED, 0, 0, "What should stay free, in MB."),
	INT_FIELD(struct check_out, left_mb, REQUIRED, 0, 0, "Free minus need, in MB; negative when it does not fit."),
	WORD_FIELD(struct check_out, source, REQUIRED, sources, "Where the need comes from."),
	STR_FIELD(struct check_out, kind, 0, 0, 0, "The kind of job, when the table was used."),
	STR_FIELD(struct check_out, command_word, REQUIRED, 0, 0, "The word that is kept."),
};
static const struct shape check_out_shape = SHAPE(struct check_out, check_out_fields, "A verdict.");
/* clang-format on */

static enum err read_peaks(struct req *r, const char *word, int64_t **ret, size_t *ret_n)
{
	struct rows rows;
	*ret_n = 0;
	if (r->caller.role == ROLE_ANYONE)
		return OK;
	enum err e = db_run(
		SQL_PEAKS_OF_WORD, ARGS(A_ID(r->caller.account), A_STR(word)), r->arena, &rows);
	if (e)
		return e;
	*ret = ARENA_LIST(r->arena, rows.n, int64_t);
	for (size_t i = 0; i < rows.n; i++)
		(*ret)[i] = row_int(&rows, i, 0);
	*ret_n = rows.n;
	return OK;
}

enum err memory_judge(
	struct req *r, const struct memory_seen *seen, const char *job, struct judged *ret)
{
	int64_t *peaks = NULL;
	size_t n = 0;
	enum err e = need_check_input(seen);
	first_word(job ? job : "", ret->first);
	ret->word = ret->first;
	if (!e && job)
		e = read_peaks(r, ret->word, &peaks, &n);
	if (e)
		return e;
	need_choose(seen, peaks, n, job, 0, &ret->choice);
	need_judge(r->arena, seen, &ret->choice, &ret->verdict);
	ret->status = memory_statuses[ret->verdict.status];
	return OK;
}

static struct arg mb_or_null(double mb)
{
	return isnan(mb) || mb > MEMORY_MB_MAX ? A_NULL : A_INT((int64_t)mb);
}

enum err memory_log(struct req *r, const char *kind, const struct memory_seen *seen,
	const struct judged *j, const char *provider)
{
	uint64_t changed;
	if (r->caller.role == ROLE_ANYONE)
		return OK;
	struct id id = id_new();
	return db_change(SQL_CHECK_LOG_ADD,
		ARGS(A_ID(id), A_ID(r->caller.account), A_STR(kind), A_STR(j->word),
			A_STR(j->status), A_STR(memory_verdicts[j->verdict.offload]),
			A_STR(provider), mb_or_null(seen->free_mb), mb_or_null(seen->total_mb),
			mb_or_null(j->verdict.need_mb), A_INT(clock_ms())),
		&changed);
}

/* The default key's provider, or the first provider of the list for those who have no key. */
static enum err provider_to_use(struct req *r, const char **ret)
{
	struct rows rows;
	*ret = providers[0]->name;
	if (r->caller.role == ROLE_ANYONE)
		return OK;
	enum err e = db_run(SQL_KEYS_OF_ACCOUNT, ARGS(A_ID(r->caller.account)), r->arena, &rows);
	if (!e && rows.n)
		*ret = row_str(&rows, 0, 2);
	return e;
}

static enum err check_run(struct req *r, const void *vin, void *vout)
{
	const struct check_in *in = vin;
	struct check_out *out = vout;
	struct memory_seen seen = {in->free_mb, in->total_mb, in->job_mb, in->floor_mb};
	struct judged j;
	enum err e = memory_judge(r, &seen, in->job, &j);
	if (!e && j.verdict.offload)
		e = provider_to_use(r, &out->provider);
	if (!e)
		e = memory_log(r, "check", &seen, &j, out->provider);
	if (e)
		return e;
	out->status = j.status;
	out->verdict = memory_verdicts[j.verdict.offload];
	out->reason = j.verdict.reason;
	out->warning = j.verdict.warning;
	out->advice = j.verdict.offload ? j.verdict.advice : NULL;
	out->need_mb = (int64_t)j.verdict.need_mb;
	out->floor_mb = (int64_t)j.verdict.floor_mb;
	out->left_mb = (int64_t)j.verdict.left_mb;
	out->source = sources[j.choice.source];
	out->kind = j.choice.source == NEED_FROM_TABLE ? j.choice.table.kind : NULL;
	out->command_word = arena_str(r->arena, j.word);
	return OK;
}

const struct tool tool_check_memory = {
	.name = "check_memory",
	.title = "Check memory before a heavy job",
	.doc = "Call this before a heavy job (build, install, test suite, headless browser) with "
	       "the memory "
	       "that is free on your machine and the command you are about to run. The answer says "
	       "whether "
	       "to run it here or to send it to a sandbox with run_job, and why, in numbers. "
	       "Nothing runs "
	       "and nothing is reserved. Works without an API key; with one, the estimate learns "
	       "from your "
	       "own jobs.",
	.in = &check_in_shape,
	.out = &check_out_shape,
	.role = ROLE_ANYONE,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, OK},
	.run = check_run,
};
