/* run_job, get_job, cancel_job, list_jobs. */
#include "clock.h"
#include "first_word.h"
#include "json.h"
#include "job.h"
#include "job_input.h"
#include "job_view.h"
#include "memory.h"
#include "node.h"
#include "pick.h"
#include "seal.h"
#include "text.h"

#include <string.h>

#define FINGERPRINT_BYTES_MAX (4 << 20)

/* -- run_job ----------------------------------------------------------------------------------- */

static struct output_wish wish_of(const struct req *r, const struct run_in *in)
{
	return (struct output_wish){.base64 = in->base64_output == YES, .kept_only = r->as_task};
}

static int64_t wait_of(const struct req *r, int64_t asked)
{
	if (r->as_task)
		return 0;
	return asked == ABSENT_INT ? WAIT_S_DEFAULT : asked;
}

static enum err wait_and_show(struct req *r, struct id job, int64_t wait_s,
	const struct output_wish *wish, struct job_out *out)
{
	enum err e = job_wait(r, job, wait_s, wish, out);
	if (!e)
		r->tool_error = job_is_error(out);
	return e;
}

/* Both HMACs under the account's data key: neither key nor arguments can be told from them. The
 * fingerprint covers what the job does, not how its caller waits for it. */
static enum err fingerprint(struct req *r, const struct run_in *in, const char *key,
	uint8_t idem[32], uint8_t print[32])
{
	CLEANUP_BUF struct buf b = {0};
	struct data_key d;
	struct run_in same = *in;
	enum err e = vault_account_key(r->caller.account, r->arena, &d);
	if (e)
		return e;
	same.idempotency_key = NULL;
	same.wait_s = ABSENT_INT;
	same.base64_output = ABSENT_BOOL;
	buf_init(&b, FINGERPRINT_BYTES_MAX + BODY_BYTES_MAX);
	struct jw w = jw_new(&b);
	shape_encode(&run_in_shape, &same, &w);
	seal_hmac(&d, "idempotency", key, strlen(key), idem);
	seal_hmac(&d, "fingerprint", b.p, b.n, print);
	data_key_done(&d);
	return b.full ? fail(ERR_BAD_INPUT, NULL, "the arguments are too large") : OK;
}

static const char *idem_key_of(const struct req *r, const struct run_in *in)
{
	return in->idempotency_key ? in->idempotency_key : r->idempotency_key;
}

static enum err find_twin(struct req *r, const uint8_t idem[32], const uint8_t print[32],
	struct id *ret, bool *ret_found)
{
	struct rows rows;
	enum err e = db_run(
		SQL_JOB_BY_IDEM, ARGS(A_ID(r->caller.account), A_BYTES(idem, 32)), r->arena, &rows);
	*ret_found = !e && rows.n == 1;
	if (!*ret_found)
		return e;
	if (!bytes_equal(row_cell(&rows, 0, 1)->p, print, 32))
		return fail(ERR_IDEM_CONFLICT, "idempotency_key",
			"the earlier request had other arguments");
	*ret = row_id(&rows, 0, 0);
	return OK;
}

static enum err run_replay(struct req *r, const void *vin, void *out, bool *ret_found)
{
	const struct run_in *in = vin;
	const char *key = idem_key_of(r, in);
	uint8_t idem[32], print[32];
	struct id job;
	*ret_found = false;
	if (!key || r->caller.plan != PLAN_PRO)
		return OK;
	if (in->idempotency_key && r->idempotency_key &&
		strcmp(in->idempotency_key, r->idempotency_key) != 0)
		return fail(ERR_BAD_INPUT, "idempotency_key",
			"differs from the Idempotency-Key header");
	enum err e = fingerprint(r, in, key, idem, print);
	if (!e)
		e = find_twin(r, idem, print, &job, ret_found);
	if (e || !*ret_found)
		return e;
	struct output_wish wish = wish_of(r, in);
	return wait_and_show(r, job, wait_of(r, in->wait_s), &wish, out);
}

/* The free plan watches: one row, no outbound call. */
static enum err watch_only(struct req *r, const struct run_in *in, struct job_out *out)
{
	struct memory_seen seen = {in->free_mb, ABSENT_NUM, ABSENT_NUM, ABSENT_NUM};
	struct judged j = {
		.status = "unknown", .verdict = {.offload = true, .need_mb = ABSENT_NUM}};
	enum err e = OK;
	first_word(in->cmd, j.first);
	j.word = j.first;
	if (!isnan(in->free_mb))
		e = memory_judge(r, &seen, in->cmd, &j);
	j.verdict.offload = true;
	if (!e)
		e = memory_log(r, "would_offload", &seen, &j, NULL);
	out->state = "watch_only";
	out->command_word = arena_str(r->arena, j.word);
	out->note = "Your plan watches only: nothing ran, and the job was noted for your weekly "
		    "report. "
		    "usage_and_upgrade shows how to get the plan that runs jobs.";
	return e;
}

static enum err judge_free(struct req *r, const struct run_in *in, const void **ret)
{
	struct memory_seen seen = {in->free_mb, ABSENT_NUM, ABSENT_NUM, ABSENT_NUM};
	struct judged j;
	if (isnan(in->free_mb))
		return OK;
	enum err e = memory_judge(r, &seen, in->cmd, &j);
	if (e)
		return e;
	struct memory_out *m = ARENA_NEW(r->arena, struct memory_out);
	*m = (struct memory_out){j.status, memory_verdicts[j.verdict.offload], j.verdict.reason,
		(int64_t)j.verdict.need_mb, (int64_t)j.verdict.floor_mb};
	*ret = m;
	return OK;
}

/* Everything a driver needs, in memory of its own: it outlives the request. */
static enum err prepare(struct req *r, const struct run_in *in, struct drive *d)
{
	struct choice choice;
	struct wish_for_provider w = {.provider = in->provider,
		.key = in->key,
		.runtime = in->runtime,
		.template = in->template,
		.gpu = in->gpu,
		.memory_mb = in->memory_mb,
		.cpu = in->cpu,
		.timeout_s = in->timeout_s == ABSENT_INT ? TIMEOUT_S_DEFAULT : in->timeout_s};
	enum err e = pick_keys(r, &w, &choice);
	if (e)
		return e;
	struct candidate *list = ARENA_LIST(d->arena, choice.n, struct candidate);
	for (size_t i = 0; i < choice.n; i++)
		list[i] = (struct candidate){choice.list[i].key,
			arena_str(d->arena, choice.list[i].name), choice.list[i].provider};
	d->candidates = list;
	d->candidates_n = choice.n;
	d->fallback = choice.fallback;
	d->hold.job = id_new();
	d->account = r->caller.account;
	d->token_id = r->caller.token_id;
	d->timeout_s = w.timeout_s;
	d->created_ms = clock_ms();
	d->began_us = clock_mono_us();
	(void)id_text(d->spool_id, NULL, d->hold.job);
	d->spool.id = d->spool_id;
	d->spool.timeout_s = d->timeout_s;
	d->spec = (struct box_spec){.life_s = d->timeout_s + SANDBOX_GRACE_S,
		.memory_mb = in->memory_mb == ABSENT_INT ? 0 : in->memory_mb,
		.cpu = in->cpu == ABSENT_INT ? 0 : in->cpu,
		.runtime = in->runtime ? arena_str(d->arena, in->runtime) : NULL,
		.template = in->template ? arena_str(d->arena, in->template) : NULL};
	if (in->gpu)
		gpu_read(in->gpu, d->arena, &d->spec.gpu, &d->spec.gpu_count);
	return OK;
}

/* What the driver sends: one archive with command, environment and files. Packed before the job is
 * accepted, so that whatever can not be packed is refused and not a job that failed. */
static enum err pack(struct drive *d, const struct spool_job *job)
{
	struct spool_job named = *job;
	named.id = d->spool_id;
	named.timeout_s = d->timeout_s;
	return spool_pack(&named, d->input, &d->archive, &d->archive_n);
}

/* The call with the same key that was faster has the job; this one was counted for nothing. */
static enum err join_twin(
	struct req *r, const uint8_t idem[32], const uint8_t print[32], struct id *ret_job)
{
	bool found;
	r->metered = false;
	enum err e = find_twin(r, idem, print, ret_job, &found);
	if (!e && !found)
		e = fail(ERR_BUSY, "idempotency_key",
			"the job of this key has just ended without a start");
	return e;
}

/* Owns the drive from here on. */
static enum err accept_and_drive(
	struct req *r, const struct run_in *in, struct drive *d, struct id *ret_job)
{
	char word[FIRST_WORD_SIZE];
	uint8_t idem[32], print[32];
	const char *key = idem_key_of(r, in);
	bool twin = false;
	enum err e = key ? fingerprint(r, in, key, idem, print) : OK;
	first_word(in->cmd, word);
	struct job_intent intent = {d, word, isnan(in->free_mb) ? ABSENT_INT : (int64_t)in->free_mb,
		key ? idem : NULL, key ? print : NULL};
	*ret_job = d->hold.job;
	if (!e)
		e = job_accept(&intent, &twin);
	if (e == ERR_DB_UNSURE && node()->submit(drive_unsure, d))
		return e;
	if (e || twin) {
		drive_free(d);
		return e ? e : join_twin(r, idem, print, ret_job);
	}
	if (!node()->submit(drive_fresh, d))
		job_refused(d);
	return OK;
}

static enum err run_run(struct req *r, const void *vin, void *vout)
{
	const struct run_in *in = vin;
	struct job_out *out = vout;
	struct spool_job job = {0};
	const void *memory = NULL;
	struct id id;
	enum err e = job_input(in, r->arena, &job);
	if (e || r->caller.plan != PLAN_PRO)
		return e ? e : watch_only(r, in, out);
	e = judge_free(r, in, &memory);
	if (e)
		return e;
	struct drive *d = drive_new();
	e = prepare(r, in, d);
	if (!e)
		e = pack(d, &job);
	if (e) {
		drive_free(d);
		return e;
	}
	e = accept_and_drive(r, in, d, &id);
	struct output_wish wish = wish_of(r, in);
	if (!e)
		e = wait_and_show(r, id, wait_of(r, in->wait_s), &wish, out);
	out->memory = memory;
	return e;
}

const struct tool tool_run_job = {
	.name = "run_job",
	.title = "Run a job in a sandbox",
	.doc = "Runs a shell command in a fresh sandbox on your own provider account or computer "
	       "and gives "
	       "its exit code and the last 16 KB of stdout and stderr. Send small input files "
	       "along. The "
	       "sandbox is made for the job and stopped right after it, so nothing keeps billing. "
	       "Waits up "
	       "to wait_s seconds, then answers with a job_id: the job goes on, also when you "
	       "disconnect, "
	       "and get_job picks up the result within an hour. Give an idempotency_key when you "
	       "might "
	       "repeat the call. Pro plan; on the free plan nothing runs and the job is noted for "
	       "the "
	       "weekly report.",
	.in = &run_in_shape,
	.out = &job_out_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_OPEN_WORLD | TOOL_METERED | TOOL_STREAMS | TOOL_REPLAYS | TOOL_TASKS,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_NO_KEY, ERR_KEY_NOT_FOUND,
		ERR_UNKNOWN_PROVIDER, ERR_PROVIDER_UNAVAILABLE, ERR_UNSUPPORTED, ERR_IDEM_CONFLICT,
		ERR_SEALED, OK},
	.run = run_run,
	.replay = run_replay,
};

/* -- get_job ----------------------------------------------------------------------------------- */

struct get_in {
	const char *job_id;
	int64_t wait_s, stdout_offset, stderr_offset;
	enum tri base64_output;
};

static bool is_job_id(const char *s)
{
	struct id unused;
	return id_parse(s, "job", &unused);
}

/* clang-format off */
#define JOB_ID_FIELD(type) STR_FIELD(type, job_id, REQUIRED, 1, 40, "The job.", .pattern = "^job_[a-z2-7]{26}$", .valid = is_job_id, .example = "\"job_aaaaaaaaaaaaaaaaaaaaaaaaaa\"")
static const struct field get_fields[] = {
	JOB_ID_FIELD(struct get_in),
	INT_FIELD(struct get_in, wait_s, 0, 0, WAIT_S_MAX, "How long to wait for the end; 0 answers at once. 45 unless said otherwise."),
	INT_FIELD(struct get_in, stdout_offset, 0, 0, JSON_INT_MAX, "Show stdout from this byte on, as far as the last 16 KiB reach."),
	INT_FIELD(struct get_in, stderr_offset, 0, 0, JSON_INT_MAX, "Show stderr from this byte on, as far as the last 16 KiB reach."),
	BOOL_FIELD(struct get_in, base64_output, 0, "Also give the output as base64, unchanged."),
};
static const struct shape get_shape = SHAPE(struct get_in, get_fields, "Which job.");
/* clang-format on */

static enum err get_run(struct req *r, const void *vin, void *out)
{
	const struct get_in *in = vin;
	struct id job;
	struct output_wish wish = {
		.out_from = in->stdout_offset == ABSENT_INT ? 0 : in->stdout_offset,
		.err_from = in->stderr_offset == ABSENT_INT ? 0 : in->stderr_offset,
		.base64 = in->base64_output == YES};
	if (!id_parse(in->job_id, "job", &job))
		return fail(ERR_JOB_NOT_FOUND, "job_id", "it is no job id");
	return wait_and_show(r, job, wait_of(r, in->wait_s), &wish, out);
}

const struct tool tool_get_job = {
	.name = "get_job",
	.title = "Pick up a job",
	.doc = "State, exit code and output of a job. Of a running job it shows the output so far, "
	       "of an ended "
	       "one the last 16 KB of each stream for one hour, to the API key that started it. "
	       "Waits up to "
	       "wait_s seconds for the end.",
	.in = &get_shape,
	.out = &job_out_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED | TOOL_STREAMS,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_JOB_NOT_FOUND, OK},
	.run = get_run,
};

/* -- cancel_job -------------------------------------------------------------------------------- */

struct cancel_in {
	const char *job_id;
	int64_t wait_s;
};

/* clang-format off */
static const struct field cancel_fields[] = {
	JOB_ID_FIELD(struct cancel_in),
	INT_FIELD(struct cancel_in, wait_s, 0, 0, WAIT_S_MAX, "How long to wait until it has ended; 10 unless said otherwise."),
};
static const struct shape cancel_shape = SHAPE(struct cancel_in, cancel_fields, "Which job.");
/* clang-format on */

#define CANCEL_WAIT_S 10

static enum err cancel_run(struct req *r, const void *vin, void *vout)
{
	const struct cancel_in *in = vin;
	struct job_out *out = vout;
	struct output_wish wish = {0};
	struct id job;
	if (!id_parse(in->job_id, "job", &job))
		return fail(ERR_JOB_NOT_FOUND, "job_id", "it is no job id");
	enum err e = job_cancel(r->caller.account, job);
	if (e)
		return e;
	return job_wait(r, job, in->wait_s == ABSENT_INT ? CANCEL_WAIT_S : in->wait_s, &wish, out);
}

const struct tool tool_cancel_job = {
	.name = "cancel_job",
	.title = "Cancel a job",
	.doc = "Ends a job and its sandbox. A job that has ended already keeps its outcome; a "
	       "command that ended "
	       "before the kill reached it keeps its exit code.",
	.in = &cancel_shape,
	.out = &job_out_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_DESTROYS | TOOL_REPEATABLE | TOOL_OPEN_WORLD | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, ERR_JOB_NOT_FOUND, OK},
	.run = cancel_run,
};

/* -- list_jobs --------------------------------------------------------------------------------- */

struct list_in {
	int64_t limit;
	const char *before;
};

#define LIST_DEFAULT 20

/* clang-format off */
static const struct field list_fields[] = {
	INT_FIELD(struct list_in, limit, 0, 1, PAGE_ROWS_MAX, "How many; 20 unless said otherwise."),
	STR_FIELD(struct list_in, before, 0, 1, 40, "Only jobs older than this one: `next` of the page before.", .pattern = "^job_[a-z2-7]{26}$", .valid = is_job_id),
};
static const struct shape list_shape = SHAPE(struct list_in, list_fields, "Which page.");
/* clang-format on */

static enum err list_run(struct req *r, const void *vin, void *vout)
{
	const struct list_in *in = vin;
	struct jobs_out *out = vout;
	struct rows rows;
	struct id before;
	int64_t limit = in->limit == ABSENT_INT ? LIST_DEFAULT : in->limit;
	memset(before.b, 0xff, sizeof before.b);
	if (in->before && !id_parse(in->before, "job", &before))
		return fail(ERR_BAD_INPUT, "before", "it is no job id");
	enum err e = db_run(SQL_JOB_LIST,
		ARGS(A_ID(r->caller.account), A_ID(before), A_INT(limit + 1)), r->arena, &rows);
	if (e)
		return e;
	size_t n = rows.n > (size_t)limit ? (size_t)limit : rows.n;
	struct job_out *jobs = ARENA_LIST(r->arena, n, struct job_out);
	for (size_t i = 0; i < n; i++)
		job_view(r, &rows, i, &jobs[i]);
	out->jobs = (struct list){n, jobs};
	out->next = rows.n > n ? jobs[n - 1].job_id : NULL;
	return OK;
}

const struct tool tool_list_jobs = {
	.name = "list_jobs",
	.title = "List jobs",
	.doc = "The account's jobs, newest first, with state, outcome and numbers, without output. "
	       "Finds a job "
	       "whose job_id was lost.",
	.in = &list_shape,
	.out = &jobs_out_shape,
	.role = ROLE_AGENT,
	.flags = TOOL_READS | TOOL_REPEATABLE | TOOL_METERED,
	.errors = (const enum err[]){ERR_BAD_INPUT, OK},
	.run = list_run,
};
