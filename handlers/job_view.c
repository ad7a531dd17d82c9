/*
 * What a caller sees of a job, read from its rows.
 *
 * Output is never stored in clear: of a running job it comes from the sandbox itself, of an ended
 * one from the sealed result, which only the token that started the job can open.
 */
#include "job_view.h"

#include "job.h"
#include "memory.h"
#include "node.h"
#include "text.h"
#include "watch.h"

#include <stdio.h>
#include <string.h>

#define LINE_CHARS  160   /* of the last line in a progress message */
#define PROGRESS_MS 10000 /* clients give up on silence; see design 4.8 */
#define REREAD_MS   5000  /* a lost signal costs at most this */

/* The words of results; job_states and outcomes are those of the database. */
static const char *const outputs[] = {"inline", "expired", "sealed_to_other_key", "none", NULL};
static const char *const shown_states[] = {
	"creating", "uploading", "uploaded", "running", "ended", "watch_only", NULL};

/* clang-format off */
static const struct field timings_fields[] = {
	INT_FIELD(struct timings_out, queue_ms, 0, 0, 0, "From acceptance to the create call."),
	INT_FIELD(struct timings_out, create_ms, 0, 0, 0, "Creating the sandbox."),
	INT_FIELD(struct timings_out, upload_ms, 0, 0, 0, "Sending command and files."),
	INT_FIELD(struct timings_out, run_ms, 0, 0, 0, "From the start of the command to its end."),
	INT_FIELD(struct timings_out, stop_ms, 0, 0, 0, "Stopping the sandbox."),
	INT_FIELD(struct timings_out, own_ms, 0, 0, 0, "Time spent in this server, not waiting for the provider."),
	INT_FIELD(struct timings_out, round_trips, 0, 0, 0, "Requests made to the provider."),
};
static const struct shape timings_shape = SHAPE(struct timings_out, timings_fields, "Where the time went.");

static const struct field memory_fields[] = {
	WORD_FIELD(struct memory_out, status, REQUIRED, memory_statuses, "low: below the floor; critical: it does not fit."),
	WORD_FIELD(struct memory_out, verdict, REQUIRED, memory_verdicts, "Where to run it."),
	STR_FIELD(struct memory_out, reason, REQUIRED, 0, 0, "The numbers behind it."),
	INT_FIELD(struct memory_out, need_mb, 0, 0, 0, "Estimated need in MB."),
	INT_FIELD(struct memory_out, floor_mb, 0, 0, 0, "Memory to keep free in MB."),
};
static const struct shape memory_shape = SHAPE(struct memory_out, memory_fields, "free_mb, judged as check_memory does.");

static const struct field error_fields[] = {
	STR_FIELD(struct error_out, code, REQUIRED, 0, 0, "Stable code of the error."),
	STR_FIELD(struct error_out, text, REQUIRED, 0, 0, "What happened."),
	STR_FIELD(struct error_out, detail, 0, 0, 0, "More about it."),
};
static const struct shape error_shape = SHAPE(struct error_out, error_fields, "Why there is no exit code.");

/* STR_FIELD takes the member's name for the wire; these two are called stdout and stderr there. */
#define STREAM_FIELD(wire, member, text) {.name = wire, .doc = (text), .kind = KIND_STR, .at = FIELD_AT(struct job_out, member, const char *)}
#define COUNT_FIELD(wire, member, text) {.name = wire, .doc = (text), .kind = KIND_INT, .at = FIELD_AT(struct job_out, member, int64_t)}
#define FLAG_FIELD(wire, member, text) {.name = wire, .doc = (text), .kind = KIND_BOOL, .at = FIELD_AT(struct job_out, member, enum tri)}
static const struct field job_fields[] = {
	STR_FIELD(struct job_out, job_id, 0, 0, 0, "Handle of the job for get_job and cancel_job."),
	WORD_FIELD(struct job_out, state, REQUIRED, shown_states, "How far it is; watch_only when the plan runs nothing."),
	WORD_FIELD(struct job_out, outcome, 0, outcomes, "Only when ended."),
	INT_FIELD(struct job_out, exit_code, 0, 0, 255, "The command's own exit code, when it is known."),
	STREAM_FIELD("stdout", out, "End of standard output: the last 16 KiB, or from the asked offset."),
	STREAM_FIELD("stderr", err, "End of standard error."),
	STREAM_FIELD("stdout_base64", out_base64, "The same bytes unchanged, on request."),
	STREAM_FIELD("stderr_base64", err_base64, "The same bytes unchanged, on request."),
	COUNT_FIELD("stdout_bytes", out_bytes, "Bytes the command wrote in all."),
	COUNT_FIELD("stderr_bytes", err_bytes, "Bytes the command wrote in all."),
	COUNT_FIELD("stdout_offset", out_offset, "Offset of the first byte shown."),
	COUNT_FIELD("stderr_offset", err_offset, "Offset of the first byte shown."),
	FLAG_FIELD("stdout_truncated", out_truncated, "Earlier bytes than those asked for are not shown."),
	FLAG_FIELD("stderr_truncated", err_truncated, "Earlier bytes than those asked for are not shown."),
	FLAG_FIELD("invalid_utf8_replaced", replaced, "Bytes that are not UTF-8 were replaced; ask for base64."),
	WORD_FIELD(struct job_out, output, 0, outputs, "Where the streams are; expired: an hour after the end."),
	STR_FIELD(struct job_out, provider, 0, 0, 0, "Where it runs."),
	STR_FIELD(struct job_out, key, 0, 0, 0, "Name of the saved key."),
	STR_FIELD(struct job_out, command_word, 0, 0, 0, "First word of the command: all that is kept of it."),
	STR_FIELD(struct job_out, sandbox, 0, 0, 0, "none, running, stopping or stopped."),
	FLAG_FIELD("oom_suspected", oom_suspected, "The command probably died for want of memory."),
	INT_FIELD(struct job_out, peak_mb, 0, 0, 0, "Peak memory of the sandbox in MB, when it can be read."),
	INT_FIELD(struct job_out, timeout_s, 0, 0, 0, "The job's time limit."),
	TIME_FIELD(struct job_out, created_at, 0, "When it was accepted."),
	TIME_FIELD(struct job_out, started_at, 0, "When the command began."),
	TIME_FIELD(struct job_out, ended_at, 0, "When its end was known."),
	OBJ_FIELD(struct job_out, error, 0, &error_shape, "Why there is no exit code."),
	OBJ_FIELD(struct job_out, timings, 0, &timings_shape, "Where the time went."),
	OBJ_FIELD(struct job_out, memory, 0, &memory_shape, "free_mb, judged as check_memory does."),
	OBJ_FIELD(struct job_out, cost_estimate, 0, &cost_shape, "What its sandboxes cost at their providers until now: an estimate, never a bill."),
	LIST_FIELD(struct job_out, attempts, 0, &attempt_shape, 0, 0, "Every sandbox asked for, in order."),
	STR_FIELD(struct job_out, note, 0, 0, 0, "How to go on."),
};
const struct shape job_out_shape = SHAPE(struct job_out, job_fields, "A job.");

static const struct field jobs_fields[] = {
	LIST_FIELD(struct jobs_out, jobs, REQUIRED, &job_out_shape, 0, 0, "Newest first."),
	STR_FIELD(struct jobs_out, next, 0, 0, 0, "Pass as `before` for the next page; absent on the last."),
};
const struct shape jobs_out_shape = SHAPE(struct jobs_out, jobs_fields, "A page of jobs.");
/* clang-format on */

/* Columns of JOB_GET and JOB_LIST. */
enum {
	COL_ID,
	COL_TOKEN,
	COL_STATE,
	COL_OUTCOME,
	COL_EXIT,
	COL_ERROR,
	COL_DETAIL,
	COL_PROVIDER,
	COL_KEY,
	COL_WORD,
	COL_TIMEOUT,
	COL_CANCEL,
	COL_CREATED,
	COL_STARTED,
	COL_ENDED,
	COL_QUEUE,
	COL_CREATE,
	COL_UPLOAD,
	COL_RUN,
	COL_STOP,
	COL_OWN,
	COL_TRIPS,
	COL_OUT,
	COL_ERR,
	COL_PEAK,
	COL_OOM,
	COL_SUSPECTED
};

bool job_is_ended(const struct job_out *j)
{
	return strcmp(j->state, job_states[JOB_ENDED]) == 0;
}

bool job_is_error(const struct job_out *j)
{
	int outcome = word_index(outcomes, j->outcome);
	return outcome == OUTCOME_NOT_STARTED || outcome == OUTCOME_PROVIDER_ERROR ||
	       outcome == OUTCOME_LOST || outcome == OUTCOME_UNCERTAIN;
}

bool job_settled(const struct job_out *j)
{
	return job_is_ended(j) && strcmp(j->sandbox, "stopping") != 0 &&
	       strcmp(j->sandbox, "running") != 0;
}

static const void *view_error(struct req *r, const char *code, const char *detail)
{
	struct error_out *e = ARENA_NEW(r->arena, struct error_out);
	*e = (struct error_out){.code = code, .detail = detail, .text = ""};
	for (enum err k = OK + 1; k < ERR__MAX; k++)
		if (strcmp(err_row(k)->code, code) == 0)
			e->text = err_row(k)->text;
	return e;
}

static enum tri tri_of(int64_t v)
{
	return v == ABSENT_INT ? ABSENT_BOOL : v ? YES : NO;
}

void job_view(struct req *r, const struct rows *rows, size_t at, struct job_out *j)
{
	char id[ID_TEXT_SIZE];
	struct timings_out *t = ARENA_NEW(r->arena, struct timings_out);
	shape_init(&job_out_shape, j);
	j->job_id = arena_str(r->arena, id_text(id, "job", row_id(rows, at, COL_ID)));
	j->state = row_str(rows, at, COL_STATE);
	j->outcome = row_str(rows, at, COL_OUTCOME);
	j->exit_code = row_int(rows, at, COL_EXIT);
	j->provider = row_str(rows, at, COL_PROVIDER);
	j->key = row_str(rows, at, COL_KEY);
	j->command_word = row_str(rows, at, COL_WORD);
	j->timeout_s = row_int(rows, at, COL_TIMEOUT);
	j->created_at = row_int(rows, at, COL_CREATED);
	j->started_at = row_int(rows, at, COL_STARTED);
	j->ended_at = row_int(rows, at, COL_ENDED);
	j->out_bytes = row_int(rows, at, COL_OUT);
	j->err_bytes = row_int(rows, at, COL_ERR);
	j->peak_mb = row_int(rows, at, COL_PEAK);
	j->oom_suspected = tri_of(row_int(rows, at, COL_SUSPECTED));
	*t = (struct timings_out){row_int(rows, at, COL_QUEUE), row_int(rows, at, COL_CREATE),
		row_int(rows, at, COL_UPLOAD), row_int(rows, at, COL_RUN),
		row_int(rows, at, COL_STOP), row_int(rows, at, COL_OWN),
		row_int(rows, at, COL_TRIPS)};
	j->timings = t;
	if (!row_null(rows, at, COL_ERROR))
		j->error =
			view_error(r, row_str(rows, at, COL_ERROR), row_str(rows, at, COL_DETAIL));
}

/* -- output ------------------------------------------------------------------------------------ */

struct slice {
	const uint8_t *p;
	size_t n;
	int64_t at; /* offset of p[0] in the stream */
};

/* Cuts to what was asked for, and to a character border when the front was cut by us. */
static void trim(struct slice *s, int64_t from, enum tri *ret_truncated)
{
	if (s->at < from) {
		size_t skip = (uint64_t)(from - s->at) < s->n ? (size_t)(from - s->at) : s->n;
		*s = (struct slice){s->p + skip, s->n - skip, s->at + (int64_t)skip};
	}
	*ret_truncated = s->at > from ? YES : NO;
	size_t cut = s->at > 0 ? utf8_lead_cut(s->p, s->n) : 0;
	*s = (struct slice){s->p + cut, s->n - cut, s->at + (int64_t)cut};
}

static const char *shown(struct req *r, const struct slice *s, enum tri *replaced)
{
	size_t n;
	bool any;
	char *text = utf8_repair(r->arena, s->p, s->n, &n, &any);
	for (char *c = text; c < text + n; c++)
		if (*c == 0)
			*c = ' ', any = true; /* a NUL would end the text; base64 has the byte */
	if (any)
		*replaced = YES;
	return text;
}

static void view_output(struct req *r, struct slice out, struct slice err,
	const struct output_wish *wish, struct job_out *j)
{
	j->output = "inline";
	j->replaced = NO;
	trim(&out, wish->out_from, &j->out_truncated);
	trim(&err, wish->err_from, &j->err_truncated);
	j->out = shown(r, &out, &j->replaced);
	j->err = shown(r, &err, &j->replaced);
	j->out_offset = out.at;
	j->err_offset = err.at;
	if (wish->base64) {
		j->out_base64 = base64_encode(r->arena, out.p, out.n);
		j->err_base64 = base64_encode(r->arena, err.p, err.n);
	}
}

static bool take_stream(const uint8_t **at, const uint8_t *end, struct slice *ret, int64_t total)
{
	uint32_t n;
	if ((size_t)(end - *at) < sizeof n)
		return false;
	memcpy(&n, *at, sizeof n);
	*at += sizeof n;
	if ((size_t)(end - *at) < n)
		return false;
	*ret = (struct slice){*at, n, total - (int64_t)n};
	*at += n;
	return true;
}

static enum err ended_output(
	struct req *r, struct id job, const struct output_wish *wish, struct job_out *j)
{
	struct rows rows;
	enum err e = db_run(SQL_RESULT_GET,
		ARGS(A_ID(job), A_ID(r->caller.token_id), A_INT(clock_ms())), r->arena, &rows);
	if (e)
		return e;
	j->output = j->out_bytes == ABSENT_INT ? "none" : "expired";
	if (rows.n == 0)
		return OK;
	const struct cell *sealed = row_cell(&rows, 0, 0);
	uint8_t *plain;
	size_t n;
	e = result_open(&r->caller.token, job, r->caller.token_id,
		(struct blob){(const uint8_t *)sealed->p, sealed->n}, r->arena, &plain, &n);
	if (e)
		return e;
	const uint8_t *at = plain;
	struct slice out, err;
	if (take_stream(&at, plain + n, &out, j->out_bytes) &&
		take_stream(&at, plain + n, &err, j->err_bytes))
		view_output(r, out, err, wish, j);
	return OK;
}

/* Tails of a running job come straight from its sandbox. When that fails the state is still true.
 */
static void running_output(struct req *r, const struct rows *boxes, struct id job,
	const struct output_wish *wish, struct job_out *j)
{
	CLEANUP_KEY struct opened_key key = {0};
	struct spool_status s;
	char id[ID_TEXT_SIZE];
	size_t last = boxes->n - 1;
	j->output = "none";
	if (boxes->n == 0 || row_null(boxes, last, 6))
		return;
	if (vault_open(r->caller.account, row_id(boxes, last, 2), r->arena, &key))
		return;
	CLEANUP_CALL struct call c = {
		.provider = key.provider, .credential = &key.credential, .arena = r->arena};
	if (spool_poll(&c, row_str(boxes, last, 6), id_text(id, NULL, job), wish->out_from,
		    wish->err_from, TAIL_BYTES_MAX, 0, &s) ||
		s.state == SPOOL_GONE || s.state == SPOOL_NEW)
		return;
	j->out_bytes = s.out_bytes;
	j->err_bytes = s.err_bytes;
	view_output(r, (struct slice){(const uint8_t *)s.out, s.out_n, s.out_at},
		(struct slice){(const uint8_t *)s.err, s.err_n, s.err_at}, wish, j);
}

static void add_note(struct req *r, struct job_out *j)
{
	if (!job_is_ended(j))
		j->note = arena_printf(r->arena,
			"Still %s. Call get_job with this job_id (wait_s up to %d) for the "
			"result, or cancel_job to end it.",
			j->state, WAIT_S_MAX);
	else if (strcmp(j->output, "sealed_to_other_key") == 0)
		j->note = "The output can only be read with the API key that started the job.";
}

enum err job_read(struct req *r, struct id job, const struct output_wish *wish, struct job_out *ret)
{
	struct rows rows, boxes;
	enum err e = db_run(SQL_JOB_GET, ARGS(A_ID(job), A_ID(r->caller.account)), r->arena, &rows);
	if (e)
		return e;
	if (rows.n == 0)
		return fail(
			ERR_JOB_NOT_FOUND, "job_id", "jobs are kept for %d days", RETENTION_DAYS);
	e = db_run(SQL_SANDBOXES_OF_JOB, ARGS(A_ID(job)), r->arena, &boxes);
	if (e)
		return e;
	job_view(r, &rows, 0, ret);
	view_attempts(r, &boxes, ret);
	if (!id_equal(row_id(&rows, 0, COL_TOKEN), r->caller.token_id))
		ret->output = "sealed_to_other_key";
	else if (job_is_ended(ret))
		e = ended_output(r, job, wish, ret);
	else if (strcmp(ret->state, job_states[JOB_RUNNING]) == 0 && !wish->kept_only)
		running_output(r, &boxes, job, wish, ret);
	else
		ret->output = "none";
	add_note(r, ret);
	return e;
}

/* -- waiting ----------------------------------------------------------------------------------- */

static enum err read_states(struct req *r, struct id job, bool *ret_ended, bool *ret_settled)
{
	CLEANUP_ARENA struct arena *a = arena_new(1u << 20);
	struct rows rows, boxes;
	enum err e = db_run(SQL_JOB_GET, ARGS(A_ID(job), A_ID(r->caller.account)), a, &rows);
	if (!e && rows.n == 0)
		return fail(
			ERR_JOB_NOT_FOUND, "job_id", "jobs are kept for %d days", RETENTION_DAYS);
	if (!e)
		e = db_run(SQL_SANDBOXES_OF_JOB, ARGS(A_ID(job)), a, &boxes);
	if (e)
		return e;
	const char *word = sandbox_word(&boxes);
	*ret_ended = strcmp(row_str(&rows, 0, COL_STATE), job_states[JOB_ENDED]) == 0;
	*ret_settled = *ret_ended && (strcmp(word, "stopped") == 0 || strcmp(word, "none") == 0);
	return OK;
}

/* The last line of output, at most LINE_CHARS of it. */
static void last_line(const char *text, const char **ret, size_t *ret_n)
{
	size_t n = text ? strlen(text) : 0;
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	size_t from = n;
	while (from && text[from - 1] != '\n' && text[from - 1] != '\r' && n - from < LINE_CHARS)
		from--;
	if (text)
		from += utf8_lead_cut((const uint8_t *)text + from, n - from);
	*ret = text ? text + from : "";
	*ret_n = n - from;
}

static void report(struct req *r, struct id job, int64_t began_ms)
{
	struct job_out now;
	char id[ID_TEXT_SIZE], message[2 * LINE_CHARS + 200];
	const char *line;
	size_t n;
	if (!r->progress.send || job_read(r, job, &(struct output_wish){0}, &now))
		return;
	double seconds = (double)(clock_mono_ms() - began_ms) / 1000;
	int64_t bytes = now.out_bytes == ABSENT_INT ? 0 : now.out_bytes + now.err_bytes;
	last_line(now.out, &line, &n);
	(void)snprintf(message, sizeof message, "%s %s, %.0f s, %lld bytes of output%s%.*s",
		id_text(id, "job", job), now.state, seconds, (long long)bytes, n ? ": " : "",
		(int)n, line);
	r->progress.send(r->progress.ctx, seconds, message);
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool db_is_away(enum err e)
{
	return e == ERR_DB_DOWN || e == ERR_DB_UNSURE;
}

struct waiting {
	int64_t until, next_report;
	bool ended, settled;
};

/* One look at the rows. False: there is nothing more to wait for. The job goes on while the
 * database is away, so its caller waits on as well. */
static bool look(struct req *r, struct id job, struct waiting *w, enum err *ret_err)
{
	bool was_ended = w->ended;
	*ret_err = read_states(r, job, &w->ended, &w->settled);
	if (db_is_away(*ret_err))
		*ret_err = OK;
	int64_t now = clock_mono_ms();
	if (w->ended && !was_ended)
		w->until = now + STOP_WAIT_MS;
	return !*ret_err && !w->settled && now < drive_wait_end(w->until) &&
	       !(r->gone && r->gone(r->transport));
}

/* Whoever waited on a job must learn its name, also when there is nothing else to tell. */
static enum err read_waited(
	struct req *r, struct id job, const struct output_wish *wish, struct job_out *ret)
{
	char id[ID_TEXT_SIZE];
	enum err e = job_read(r, job, wish, ret);
	if (!db_is_away(e))
		return e;
	return fail(ERR_DB_DOWN, NULL, "%s goes on; get_job gives its result later",
		id_text(id, "job", job));
}

enum err job_wait(struct req *r, struct id job, int64_t wait_s, const struct output_wish *wish,
	struct job_out *ret)
{
	int64_t began = clock_mono_ms();
	struct waiting w = {.until = began + wait_s * 1000, .next_report = began};
	struct watch *watch = watch_begin(job);
	enum err e = OK;
	if (r->on_gone)
		r->on_gone(r->transport, watch_wake, watch);
	while (look(r, job, &w, &e)) {
		int64_t now = clock_mono_ms();
		if (!w.ended && now >= w.next_report) {
			report(r, job, began);
			w.next_report = now + PROGRESS_MS;
		}
		int64_t next = w.ended ? w.until : earliest(w.until, w.next_report);
		next = drive_wait_end(next);
		(void)watch_wait(watch, earliest(next, now + REREAD_MS));
	}
	if (r->on_gone)
		r->on_gone(r->transport, NULL, NULL);
	watch_end(watch);
	return e ? e : read_waited(r, job, wish, ret);
}
