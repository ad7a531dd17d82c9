/*
 * Tasks (the extension io.modelcontextprotocol/tasks): another view of jobs. There is no store of
 * tasks: the id of a task is the id of its job, and what a task tells is read from the job's row,
 * so it is the same on every worker, after a restart and on another connection.
 *
 * A job never asks for anything, so no task is ever input_required; an error of the protocol is
 * never kept, so no task is ever failed: what went wrong is a result with isError.
 */
#include "mcp_part.h"

#include "bounds.h"
#include "clock.h"
#include "job.h"
#include "job_view.h"
#include "text.h"

#include <string.h>

#define POLL_MS_MIN 1000  /* short jobs are asked often, */
#define POLL_MS_MAX 10000 /* long ones rarely: */
#define POLL_PART   10    /* after a tenth of their age */
#define NEEDS_TASKS "{\"extensions\":{\"" MCP_TASKS "\":{}}}"

extern const struct tool tool_run_job;

/* -- what a task tells ------------------------------------------------------------------------- */

/* The job's end is told once its sandbox has stopped, too, as by the tools; but not much later. */
static bool is_over(const struct job_out *j)
{
	return job_is_ended(j) && (job_settled(j) || clock_ms() > j->ended_at + STOP_WAIT_MS);
}

static const char *status_of(const struct job_out *j)
{
	if (!is_over(j))
		return "working";
	return strcmp(j->outcome, outcomes[OUTCOME_CANCELLED]) == 0 ? "cancelled" : "completed";
}

static const char *status_text(const struct exchange *x, const struct job_out *j)
{
	if (!is_over(j))
		return arena_printf(x->req.arena, "%s, %lld s after it was accepted", j->state,
			(long long)(clock_ms() - j->created_at) / 1000);
	if (j->exit_code != ABSENT_INT)
		return arena_printf(x->req.arena, "%s with exit code %lld", j->outcome,
			(long long)j->exit_code);
	return j->outcome;
}

static int64_t last_change(const struct job_out *j)
{
	return j->ended_at != ABSENT_INT     ? j->ended_at
	       : j->started_at != ABSENT_INT ? j->started_at
					     : j->created_at;
}

/* How long the whole result can be had, counted from the creation: an hour after the end, which a
 * job that has not ended reaches when its time is over. */
static int64_t ttl_ms(const struct job_out *j)
{
	int64_t runs =
		j->ended_at == ABSENT_INT ? j->timeout_s * 1000 : j->ended_at - j->created_at;
	return (runs > 0 ? runs : 0) + RESULT_TTL_S * 1000LL;
}

static int64_t poll_ms(const struct job_out *j)
{
	int64_t ms = (clock_ms() - j->created_at) / POLL_PART;
	return ms < POLL_MS_MIN ? POLL_MS_MIN : ms > POLL_MS_MAX ? POLL_MS_MAX : ms;
}

static void put_task(struct jw *w, const struct exchange *x, const struct job_out *j)
{
	char at[TIME_TEXT_SIZE];
	jw_kstr(w, "taskId", j->job_id);
	jw_kstr(w, "status", status_of(j));
	jw_kstr(w, "statusMessage", status_text(x, j));
	jw_kstr(w, "createdAt", time_text(at, j->created_at));
	jw_kstr(w, "lastUpdatedAt", time_text(at, last_change(j)));
	jw_kint(w, "ttlMs", ttl_ms(j));
	jw_kint(w, "pollIntervalMs", poll_ms(j));
}

bool mcp_put_task(struct jw *w, const struct exchange *x, const struct message *m, const void *out)
{
	const struct job_out *j = out;
	if (!j->job_id || job_is_ended(j))
		return false; /* the plan runs nothing, or the call was repeated after the end */
	put_task(w, x, j);
	mcp_put_type(w, x, m, "task", OK);
	return true;
}

/* -- methods ----------------------------------------------------------------------------------- */

/* A caller without the right to a job is told no more than one whose job never was. */
static enum err find_job(struct exchange *x, struct message *m, struct id *ret)
{
	const struct json *id = json_get(m->params, "taskId");
	if (!m->tasks) {
		m->needs = NEEDS_TASKS;
		return fail(ERR_MISSING_CAPABILITY, "params._meta",
			"clientCapabilities.extensions lacks " MCP_TASKS);
	}
	m->http = 200;
	m->rpc = MCP_RPC_PARAMS;
	if (json_type(id) != JSON_STR)
		return fail(ERR_BAD_PARAMS, "params.taskId", "must be a string");
	if (x->req.caller.role == ROLE_ANYONE)
		return fail(ERR_TOKEN_NEEDED, "params.taskId", "tasks belong to accounts");
	if (!id_parse(json_str(id, NULL), "job", ret))
		return fail(ERR_JOB_NOT_FOUND, "params.taskId", "it is no id of a task");
	return OK;
}

/* Bytes that no text can hold are given as base64 as well: nobody can ask for them here. */
static enum err read_job(struct exchange *x, struct message *m, struct id job, struct job_out *ret)
{
	const struct output_wish wish = {.base64 = true, .kept_only = true};
	enum err e = job_read(&x->req, job, &wish, ret);
	if (e && e != ERR_JOB_NOT_FOUND)
		m->rpc = 0; /* that of its row */
	if (!e && ret->replaced != YES)
		ret->out_base64 = ret->err_base64 = NULL;
	return e;
}

enum err mcp_tasks_get(struct exchange *x, struct message *m, struct jw *w)
{
	struct job_out *j = ARENA_NEW(x->req.arena, struct job_out);
	struct id job;
	enum err e = find_job(x, m, &job);
	if (!e)
		e = read_job(x, m, job, j);
	if (e)
		return e;
	put_task(w, x, j);
	if (strcmp(status_of(j), "completed") == 0) {
		x->req.tool_error = job_is_error(j);
		jw_key(w, "result");
		jw_obj(w);
		jw_kstr(w, "resultType",
			"complete"); /* the official client asks for it here, too */
		mcp_put_result(w, x, &tool_run_job, j);
		jw_end(w);
	}
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}

/* Nobody is asked for input, so every answer is one that is not waited for; it is taken and
 * dropped. */
enum err mcp_tasks_update(struct exchange *x, struct message *m, struct jw *w)
{
	struct job_out *j = ARENA_NEW(x->req.arena, struct job_out);
	struct id job;
	enum err e = find_job(x, m, &job);
	if (!e && json_type(json_get(m->params, "inputResponses")) != JSON_OBJ)
		e = fail(ERR_BAD_PARAMS, "params.inputResponses", "must be an object");
	if (!e)
		e = read_job(x, m, job, j);
	if (!e)
		mcp_put_type(w, x, m, "complete", OK);
	return e;
}

enum err mcp_tasks_cancel(struct exchange *x, struct message *m, struct jw *w)
{
	struct job_out *j = ARENA_NEW(x->req.arena, struct job_out);
	struct id job;
	enum err e = find_job(x, m, &job);
	if (!e)
		e = read_job(x, m, job, j);
	if (!e && !job_is_ended(j))
		e = job_cancel(x->req.caller.account, job);
	if (!e)
		mcp_put_type(w, x, m, "complete", OK);
	return e;
}
