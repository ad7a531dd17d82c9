/*
 * GPUs at Modal. Only sandboxes of the first generation have any, and they wait for a machine after
 * they were made: a create ends when theirs is there. It promises that a sandbox which gets none in
 * time is ended, and that nothing is called certain before Modal confirms that.
 */
#include "modal_call.h"

#include "arena.h"
#include "clock.h"

#include <ctype.h>
#include <string.h>

#define QUEUE_S     300 /* Modal's own clients wait for 21 minutes; a caller waits for us */
#define LOOK_MS     500 /* as often as they look, and less often after some time: */
#define LOOK_MAX_MS 5000

/* In capitals, as Modal's own clients send it. */
static const char *type_of(struct arena *a, const char *gpu)
{
	size_t n = strlen(gpu);
	char *type = arena_take(a, n + 1);
	for (size_t i = 0; i < n; i++)
		type[i] = (char)toupper((unsigned char)gpu[i]);
	return type;
}

void modal_gpu_write(struct arena *a, const struct box_spec *spec, struct buf *resources)
{
	CLEANUP_BUF struct buf gpu;
	buf_init(&gpu, 64);
	if (!spec->gpu)
		return;
	pb_put_uint(&gpu, 2, (uint64_t)spec->gpu_count);
	pb_put_str(&gpu, 4, type_of(a, spec->gpu));
	pb_put_msg(resources, 4, &gpu);
}

int64_t modal_queue_s(const struct box_spec *spec)
{
	if (!spec->gpu)
		return 0;
	return spec->life_s < QUEUE_S ? spec->life_s : QUEUE_S;
}

/* All else in the order is ours or was checked. */
enum err modal_gpu_refused(void)
{
	return fail(ERR_UNSUPPORTED, "gpu",
		"Modal refuses the sandbox as asked for: it may not have this gpu, or not so many, "
		"or not with this cpu and memory_mb");
}

/* -- waiting ----------------------------------------------------------------------------------- */

static bool unwanted(const struct call *c)
{
	return c->wanted && !c->wanted(c->ctx);
}

static bool passes(enum err e)
{
	return e == ERR_UPSTREAM || e == ERR_UPSTREAM_LIMIT;
}

/* Looks until it is begun, has ended, the time is over, or nobody wants it any more. */
static enum err look(
	struct call *c, const struct modal_key *k, const char *id, int64_t wait_s, bool *ret_begun)
{
	int64_t until = clock_mono_ms() + wait_s * 1000;
	for (int64_t pause = LOOK_MS;; pause = pause * 2 < LOOK_MAX_MS ? pause * 2 : LOOK_MAX_MS) {
		enum err e = modal_begun(c, k, id, ret_begun);
		bool again = !*ret_begun && (!e || passes(e));
		if (!again || clock_mono_ms() + pause > until || unwanted(c))
			return e;
		clock_sleep_ms(pause);
	}
}

/* Why there was no machine. The time to wait is longer than a job's patience with limits, so that
 * one job is not queued again and again. */
static enum err no_machine(enum err e, const struct fault *why)
{
	if (e == ERR_BOX_GONE)
		return fail(ERR_UPSTREAM, NULL, "Modal ended the sandbox before it began");
	if (e && e != ERR_UPSTREAM_LIMIT) {
		fault_restore(why);
		return e;
	}
	e = fail(ERR_UPSTREAM_LIMIT, "gpu", "Modal had no machine with this gpu in time");
	fault_retry_after(QUEUE_S);
	return e;
}

enum err modal_wait_machine(
	struct call *c, const struct modal_key *k, const struct box_spec *spec, const char *id)
{
	enum box_state state = BOX_RUNNING;
	bool begun = false;
	enum err e = look(c, k, id, modal_queue_s(spec), &begun);
	if (begun)
		return OK;
	struct fault why = e ? *fault_of(e) : (struct fault){0};
	if (modal_destroy(c, id, &state) || state != BOX_STOPPED)
		return fail(ERR_UPSTREAM_UNSURE, NULL,
			"Modal had no machine in time, and did not confirm the end of the sandbox");
	return no_machine(e, &why);
}
