/*
 * Tasks of the test build. They live in a file that all workers map, next to the socket; what a
 * task is at the moment follows from the clock and from two numbers that only grow.
 */
#include "fixture.h"

#include "clock.h"
#include "text.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TASKS_MAX 1024
#define WORD_SIZE 64
#define TTL_MS    600000
#define POLL_MS   200

struct task {
	_Atomic(unsigned) taken, ready; /* ready: everything below but the last two stands */
	struct id id;
	unsigned tool;
	int64_t began_ms, ms;
	char word[WORD_SIZE];
	_Atomic(unsigned) answered; /* bits of task_asks */
	_Atomic(int64_t) cancelled_ms;
};

static struct task *tasks(const struct exchange *x)
{
	static _Atomic(struct task *) mapped;
	const size_t n = TASKS_MAX * sizeof(struct task);
	struct task *all = atomic_load(&mapped);
	if (all)
		return all;
	int fd = open(arena_printf(x->req.arena, "%s.tasks", x->req.conf->socket),
		O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)n) != 0)
		return NULL;
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (p == MAP_FAILED)
		return NULL;
	atomic_store(&mapped, p);
	return p;
}

/* -- what a task tells ------------------------------------------------------------------------- */

static const struct fixture_tool *tool_of(const struct task *t)
{
	return &fixture_tools[t->tool];
}

static bool is_answered(const struct task *t)
{
	return atomic_load(&t->answered) == fixture_all(tool_of(t)->task_asks);
}

static const char *status_of(const struct task *t)
{
	static const char *const ends[] = {[TASK_NONE] = "working",
		[TASK_RESULT] = "completed",
		[TASK_TOOL_ERROR] = "completed",
		[TASK_BROKEN] = "failed"};
	bool over = clock_ms() >= t->began_ms + t->ms;
	if (atomic_load(&t->cancelled_ms))
		return "cancelled";
	if (!is_answered(t))
		return "input_required";
	return over ? ends[tool_of(t)->task] : "working";
}

static void put_task(struct jw *w, const struct task *t)
{
	char id[ID_TEXT_SIZE], at[TIME_TEXT_SIZE];
	jw_kstr(w, "taskId", id_text(id, "job", t->id));
	jw_kstr(w, "status", status_of(t));
	jw_kstr(w, "createdAt", time_text(at, t->began_ms));
	jw_kstr(w, "lastUpdatedAt", time_text(at, t->began_ms));
	jw_kint(w, "ttlMs", TTL_MS);
	jw_kint(w, "pollIntervalMs", POLL_MS);
}

static void put_end(struct jw *w, const struct exchange *x, const struct task *t)
{
	const struct fixture_tool *tool = tool_of(t);
	bool broken = tool->task == TASK_BROKEN;
	jw_key(w, broken ? "error" : "result");
	jw_obj(w);
	if (broken) {
		jw_kint(w, "code", -32603);
		jw_kstr(w, "message", "It broke.");
	} else {
		jw_kstr(w, "resultType", "complete");
		fixture_put_text(w, arena_printf(x->req.arena, "%s%s%s", tool->before, t->word,
					    tool->after ? tool->after : ""));
		if (tool->task == TASK_TOOL_ERROR)
			jw_kbool(w, "isError", true);
	}
	jw_end(w);
}

/* -- methods ----------------------------------------------------------------------------------- */

static int64_t lasts_ms(const struct message *m, const struct fixture_tool *tool)
{
	const struct json *s = json_get(json_get(m->params, "arguments"), "seconds");
	return s ? (int64_t)(json_num(s) * 1000) : tool->task_ms;
}

enum err fixture_begin_task(struct exchange *x, struct message *m, struct jw *w,
	const struct fixture_tool *tool, const char *word)
{
	struct task *t = tasks(x);
	size_t i = 0;
	while (t && i < TASKS_MAX && atomic_exchange(&t[i].taken, 1))
		i++;
	if (!t || i == TASKS_MAX)
		return fail(ERR_INTERNAL, NULL, "there is no place for another task");
	t += i;
	t->id = id_new();
	t->tool = (unsigned)(tool - fixture_tools);
	t->began_ms = clock_ms();
	t->ms = lasts_ms(m, tool);
	(void)snprintf(t->word, sizeof t->word, "%s", word ? word : "");
	atomic_store(&t->ready, 1);
	put_task(w, t);
	mcp_put_type(w, x, m, "task", OK);
	return OK;
}

static enum err find_task(struct exchange *x, struct message *m, struct task **ret)
{
	const char *text = json_str(json_get(m->params, "taskId"), NULL);
	struct task *all = tasks(x);
	struct id id;
	if (!m->tasks)
		return fixture_lacks(m, "{\"extensions\":{\"" MCP_TASKS "\":{}}}");
	if (!text || !id_parse(text, "job", &id))
		return fixture_wrong(m, "params.taskId", "it is no id of a task");
	for (size_t i = 0; all && i < TASKS_MAX && atomic_load(&all[i].ready); i++)
		if (id_equal(all[i].id, id)) {
			*ret = &all[i];
			return OK;
		}
	return fixture_wrong(m, "params.taskId", "there is no such task");
}

enum err fixture_tasks_get(struct exchange *x, struct message *m, struct jw *w)
{
	struct task *t;
	enum err e = find_task(x, m, &t);
	if (e)
		return e;
	const char *status = status_of(t);
	put_task(w, t);
	if (strcmp(status, "input_required") == 0)
		(void)fixture_put_asks(w, m, tool_of(t)->task_asks, atomic_load(&t->answered));
	if (strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0)
		put_end(w, x, t);
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}

enum err fixture_tasks_update(struct exchange *x, struct message *m, struct jw *w)
{
	struct task *t;
	enum err e = find_task(x, m, &t);
	if (e)
		return e;
	const struct json *answers = json_get(m->params, "inputResponses");
	atomic_fetch_or(&t->answered, fixture_answered(tool_of(t)->task_asks, answers));
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}

enum err fixture_tasks_cancel(struct exchange *x, struct message *m, struct jw *w)
{
	struct task *t;
	int64_t never = 0;
	enum err e = find_task(x, m, &t);
	if (e)
		return e;
	const char *status = status_of(t);
	if (strcmp(status, "working") == 0 || strcmp(status, "input_required") == 0)
		atomic_compare_exchange_strong(&t->cancelled_ms, &never, clock_ms());
	mcp_put_type(w, x, m, "complete", OK);
	return OK;
}
