/*
 * Sandboxes at Modal: made, found, listed, ended. Made ones are of the second generation, and with
 * a GPU (modal_gpu.c) of the first, which alone has any. It promises that a sandbox never outlives
 * its hard end, which goes with the order to make it.
 */
#include "modal_call.h"

#include "arena.h"
#include "clock.h"
#include "json.h"

#include <string.h>

#define LIFE_MAX_S    86400
#define MEMORY_MB_TOP 344064 /* of one sandbox, 336 GiB; and 64 physical cores */
#define CPU_TOP       128
#define MILLI_PER_CPU 500 /* their unit is the physical core: two processors as programs count */
#define CREATE_MS     60000
#define END_WAIT_S    8
#define PAGES_MAX     200
#define BOXES_MAX     5000
#define MARK_MAX      64
#define SECONDS_MAX   1e11 /* no time of theirs lies behind the year 5138 */

enum { NETWORK_OPEN = 1, NETWORK_BLOCKED = 2 };

/* -- create ------------------------------------------------------------------------------------ */

static int64_t life_of(const struct box_spec *spec)
{
	/* It is not known whether the time in which it waits for its machine counts. */
	int64_t life_s = spec->life_s + modal_queue_s(spec);
	return life_s < LIFE_MAX_S ? life_s : LIFE_MAX_S;
}

static void write_resources(struct arena *a, const struct box_spec *spec, struct buf *b)
{
	CLEANUP_BUF struct buf r;
	buf_init(&r, 128);
	if (spec->memory_mb)
		pb_put_uint(&r, 2, (uint64_t)spec->memory_mb);
	if (spec->cpu)
		pb_put_uint(&r, 3, (uint64_t)spec->cpu * MILLI_PER_CPU);
	modal_gpu_write(a, spec, &r);
	pb_put_msg(b, 5, &r);
}

static void write_definition(
	struct arena *a, const struct box_spec *spec, const char *image, struct buf *b)
{
	CLEANUP_BUF struct buf network;
	buf_init(&network, 16);
	pb_put_uint(&network, 1, spec->network == NETWORK_NONE ? NETWORK_BLOCKED : NETWORK_OPEN);
	pb_put_str(b, 3, image);
	write_resources(a, spec, b);
	pb_put_uint(b, 7, (uint64_t)life_of(spec));
	pb_put_bytes(b, 20, "", 0); /* no ports */
	pb_put_msg(b, 22, &network);
	pb_put_str(b, 30, spec->mark);
}

/* The mark without its last part: the same for all sandboxes of this installation. */
static const char *install_of(struct arena *a, const char *mark)
{
	const char *dash = strrchr(mark, '-');
	return dash ? arena_copy(a, mark, (size_t)(dash - mark)) : mark;
}

static void write_tag(struct arena *a, const char *mark, struct buf *b, unsigned number)
{
	CLEANUP_BUF struct buf tag;
	buf_init(&tag, 256);
	pb_put_str(&tag, 1, MODAL_TAG);
	pb_put_str(&tag, 2, install_of(a, mark));
	pb_put_msg(b, number, &tag);
}

static enum err order(struct call *c, const struct modal_key *k, const struct box_spec *spec,
	const struct buf *body, int *ret_status, struct box *ret)
{
	struct pb_msg m;
	struct modal_ask q = {.method = spec->gpu ? "SandboxCreate" : "SandboxCreateV2",
		.body = body,
		.effect = EFFECT_CREATES,
		.total_ms = CREATE_MS,
		.once = modal_uuid(c->arena, spec->mark),
		.ret_status = ret_status};
	int64_t now = clock_ms();
	enum err e = modal_control(c, k, &q, &m);
	if (e == ERR_BOX_GONE)
		return fail(ERR_UPSTREAM, NULL, "Modal does not know the app or the image");
	if (e)
		return *ret_status == 400 && spec->gpu ? modal_gpu_refused() : e;
	const char *id = pb_word(m, 1, MODAL_ID_MAX, c->arena);
	if (!id || !modal_id_ok(id))
		return fail(ERR_UPSTREAM_UNSURE, NULL, "Modal did not answer with the new sandbox");
	/* Without it the first command asks where the sandbox is reached. */
	(void)modal_note(c, id, pb_word(m, 3, MODAL_ID_MAX, c->arena), pb_bytes(m, 5));
	e = spec->gpu ? modal_wait_machine(c, k, spec, id) : OK;
	if (e)
		return e;
	*ret = (struct box){.id = id,
		.mark = arena_str(c->arena, spec->mark),
		.state = BOX_RUNNING,
		.created_ms = now,
		.ends_ms = now + life_of(spec) * 1000};
	return OK;
}

static bool template_ok(const char *s)
{
	size_t n = strlen(s);
	return n > 0 && n <= MODAL_TEMPLATE_MAX && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-") ==
		       n;
}

static enum err check_spec(const struct box_spec *spec)
{
	if (spec->runtime)
		return fail(ERR_UNSUPPORTED, "runtime", "this provider has no such choice");
	if (spec->network == NETWORK_HOST)
		return fail(ERR_UNSUPPORTED, "network", "this provider has no such choice");
	if (spec->memory_mb > MEMORY_MB_TOP)
		return fail(
			ERR_UNSUPPORTED, "memory_mb", "Modal gives at most %d MB", MEMORY_MB_TOP);
	if (spec->cpu > CPU_TOP)
		return fail(ERR_UNSUPPORTED, "cpu", "Modal gives at most %d processors", CPU_TOP);
	if (spec->template && !template_ok(spec->template))
		return fail(ERR_BAD_INPUT, "template",
			"must be the name of an image in a registry or an image id, at most %d "
			"characters",
			MODAL_TEMPLATE_MAX);
	return OK;
}

/* *ret_stale: the order was refused, and what it named was remembered: it may be gone. */
static enum err create_with(struct call *c, const struct modal_key *k, const struct box_spec *spec,
	bool *ret_stale, struct box *ret)
{
	CLEANUP_BUF struct buf body, definition;
	struct modal_parts parts;
	int status = 0;
	buf_init(&body, MODAL_BODY);
	buf_init(&definition, MODAL_BODY);
	enum err e = modal_parts(c, k, spec->template, &parts);
	if (e)
		return e;
	write_definition(c->arena, spec, parts.image, &definition);
	pb_put_str(&body, 1, parts.app);
	pb_put_msg(&body, 2, &definition);
	write_tag(c->arena, spec->mark, &body, 4);
	e = order(c, k, spec, &body, &status, ret);
	*ret_stale = e && parts.remembered && (status == 404 || status == 412);
	return e;
}

/* A refusal that is certain is the one answer to a create after which it may be made once more. */
enum err modal_create(struct call *c, const struct box_spec *spec, struct box *ret)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	bool stale = false;
	enum err e = check_spec(spec);
	e = e ? e : modal_open(c, &k);
	e = e ? e : create_with(c, &k, spec, &stale, ret);
	if (!stale)
		return e;
	modal_forget(c, spec->template);
	return create_with(c, &k, spec, &stale, ret);
}

/* -- find and list ----------------------------------------------------------------------------- */

/* A generation finds only its own. Which one the sandbox would be of is not known here. */
static enum err find_in_both(
	struct call *c, const struct modal_key *k, const char *mark, struct pb_msg *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, mark);
	pb_put_str(&body, 3, MODAL_APP);
	struct modal_ask q = {
		.method = "SandboxGetFromNameV2", .body = &body, .effect = EFFECT_READS};
	enum err e = modal_control(c, k, &q, ret);
	q.method = "SandboxGetFromName";
	return e == ERR_BOX_GONE ? modal_control(c, k, &q, ret) : e;
}

enum err modal_find(struct call *c, const char *mark, struct box *ret)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	struct pb_msg m;
	enum err e = modal_open(c, &k);
	e = e ? e : find_in_both(c, &k, mark, &m);
	if (e == ERR_BOX_GONE) {
		*ret = (struct box){.id = NULL, .state = BOX_STOPPED};
		return OK;
	}
	if (e)
		return e;
	const char *id = pb_word(m, 1, MODAL_ID_MAX, c->arena);
	if (!id || !modal_id_ok(id))
		return fail(ERR_UPSTREAM, NULL, "Modal did not answer with the sandbox");
	*ret = (struct box){.id = id, .mark = arena_str(c->arena, mark), .state = BOX_RUNNING};
	return OK;
}

struct listing {
	struct call *call;
	const struct modal_key *key;
	const char *app, *prefix;
	double before;
	struct box *items;
	size_t n, seen; /* seen: of the last page */
};

/* Of this installation, and not ended. */
static bool is_ours(const struct listing *l, struct pb_msg info, const char *mark)
{
	uint64_t result = pb_uint(pb_bytes(pb_bytes(info, 4), 4), 1);
	return mark && result == MODAL_RESULT_RUNNING &&
	       strncmp(mark, l->prefix, strlen(l->prefix)) == 0;
}

static int64_t ends_ms(struct pb_msg info, int64_t began_ms)
{
	uint64_t life_s = pb_uint(info, 11);
	return life_s && life_s <= LIFE_MAX_S ? began_ms + (int64_t)life_s * 1000 : 0;
}

/* One sandbox of a page; false: of a wrong form. */
static bool take_box(struct listing *l, struct pb_msg info)
{
	struct arena *a = l->call->arena;
	const char *id = pb_word(info, 1, MODAL_ID_MAX, a), *mark = pb_word(info, 7, MARK_MAX, a);
	double created = pb_double(info, 3);
	if (!id || !modal_id_ok(id) || !(created > 0 && created < SECONDS_MAX))
		return false;
	l->before = l->seen == 0 || created < l->before ? created : l->before;
	l->seen++;
	if (!is_ours(l, info, mark))
		return true;
	if (l->n == BOXES_MAX)
		return false;
	int64_t began_ms = (int64_t)(created * 1000);
	l->items[l->n++] = (struct box){.id = id,
		.mark = mark,
		.state = BOX_RUNNING,
		.created_ms = began_ms,
		.ends_ms = ends_ms(info, began_ms)};
	return true;
}

/* The next page, which begins before the oldest sandbox of the last one. */
static enum err list_page(struct listing *l)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	struct pb_field f;
	double last = l->before;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, l->app);
	if (last > 0)
		pb_put_double(&body, 2, last);
	write_tag(l->call->arena, l->prefix, &body, 5);
	struct modal_ask q = {.method = "SandboxListV2", .body = &body, .effect = EFFECT_READS};
	enum err e = modal_control(l->call, l->key, &q, &m);
	bool good = true;
	l->seen = 0;
	while (!e && good && pb_next(&m, &f))
		if (f.number == 1 && f.type == PB_BYTES)
			good = take_box(l, f.bytes);
	if (!e && (!good || (l->seen && last > 0 && !(l->before < last))))
		return fail(ERR_UPSTREAM, NULL, "Modal listed sandboxes in a wrong form");
	return e;
}

enum err modal_list(struct call *c, const char *prefix, struct box_list *ret)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	struct listing l = {.call = c, .key = &k, .prefix = prefix};
	enum err e = modal_open(c, &k);
	e = e ? e : modal_app(c, &k, false, &l.app);
	if (e == ERR_BOX_GONE) {
		*ret = (struct box_list){0}; /* nothing was ever made with this key */
		return OK;
	}
	if (e)
		return e;
	l.items = ARENA_LIST(c->arena, BOXES_MAX, struct box);
	for (int i = 0; !e && (i == 0 || l.seen); i++)
		e = i < PAGES_MAX ? list_page(&l)
				  : fail(ERR_UPSTREAM, NULL, "Modal lists sandboxes without end");
	if (!e)
		*ret = (struct box_list){l.n, l.items};
	return e;
}

/* -- destroy ----------------------------------------------------------------------------------- */

enum err modal_destroy(struct call *c, const char *id, enum box_state *ret)
{
	CLEANUP_MODAL_KEY struct modal_key k = {0};
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	bool over = false;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, id);
	enum err e = modal_check_id(id);
	struct modal_ask q = {.method = modal_rpc(c, "SandboxTerminate", id),
		.body = &body,
		.effect = EFFECT_REPEATS};
	e = e ? e : modal_open(c, &k);
	e = e ? e : modal_control(c, &k, &q, &m);
	bool unknown = e == ERR_BOX_GONE;
	if (!e)
		e = modal_ended(c, &k, id, END_WAIT_S, &over);
	if (e && !unknown)
		return e;
	*ret = unknown || over ? BOX_STOPPED : BOX_STOPPING;
	return OK;
}
