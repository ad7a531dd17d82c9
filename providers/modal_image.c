/*
 * What a sandbox at Modal is made of: the app of ours and an image. They stay the same from job to
 * job, so their ids are remembered for each key, as a program with Modal's own client does; who is
 * refused with a remembered one forgets it and asks again.
 */
#include "modal_call.h"

#include "arena.h"
#include "clock.h"
#include "token.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define IMAGE           "buildpack-deps:bookworm"
#define BUILD_S         55 /* of one call that waits for an image */
#define BUILD_CALLS_MAX 6
#define KNOWN_MAX       128
#define KNOWN_MS        (60 * 60 * 1000)

/* -- asking ------------------------------------------------------------------------------------ */

enum err modal_app(struct call *c, const struct modal_key *k, bool make, const char **ret)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	buf_init(&body, MODAL_BODY);
	pb_put_str(&body, 1, MODAL_APP);
	pb_put_uint(&body, 3, make);
	struct modal_ask q = {.method = "AppGetOrCreate", .body = &body, .effect = EFFECT_READS};
	enum err e = modal_control(c, k, &q, &m);
	if (e)
		return e;
	*ret = pb_word(m, 1, MODAL_ID_MAX, c->arena);
	return *ret ? OK : fail(ERR_UPSTREAM, NULL, "Modal did not name its app");
}

/* The version of the program that builds images, which an image must name. */
static enum err ask_builder(struct call *c, const struct modal_key *k, const char **ret)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg m;
	buf_init(&body, 1);
	struct modal_ask q = {
		.method = "EnvironmentGetOrCreate", .body = &body, .effect = EFFECT_READS};
	enum err e = modal_control(c, k, &q, &m);
	if (e)
		return e;
	*ret = pb_word(pb_bytes(pb_bytes(m, 2), 2), 1, 40, c->arena);
	return *ret ? OK : fail(ERR_UPSTREAM, NULL, "Modal did not tell how images are built");
}

static enum err judge_build(uint64_t status, const char *template)
{
	if (status == MODAL_RESULT_SUCCESS)
		return OK;
	return template ? fail(ERR_BAD_INPUT, "template",
				  "Modal could not make the image that template names")
			: fail(ERR_UPSTREAM, NULL, "Modal could not make the image");
}

struct build {
	struct arena *arena;
	uint64_t status;
	const char *entry;
};

static bool on_build(void *ctx, struct pb_msg m)
{
	struct build *b = ctx;
	const char *entry = pb_word(m, 3, MODAL_ID_MAX, b->arena);
	uint64_t status = pb_uint(pb_bytes(m, 1), 1);
	b->entry = entry ? entry : b->entry;
	b->status = status ? status : b->status;
	return true;
}

/* Waits at Modal until an image is made, one call after the other. */
static enum err join_build(
	struct call *c, const struct modal_key *k, const char *image, const char *template)
{
	struct build b = {.arena = c->arena};
	enum err e = OK;
	for (int i = 0; !e && !b.status && i < BUILD_CALLS_MAX; i++) {
		CLEANUP_BUF struct buf body;
		struct grpc_stream s;
		struct pb_msg none;
		buf_init(&body, MODAL_BODY);
		pb_put_str(&body, 1, image);
		pb_put_float(&body, 2, BUILD_S);
		pb_put_str(&body, 3, b.entry ? b.entry : "");
		grpc_stream_init(&s, on_build, &b);
		struct modal_ask q = {.method = "ImageJoinStreaming",
			.body = &body,
			.effect = EFFECT_READS,
			.total_ms = (BUILD_S + 10) * 1000,
			.stream = &s};
		e = modal_control(c, k, &q, &none);
		grpc_stream_done(&s);
	}
	if (!e && !b.status)
		return fail(ERR_UPSTREAM, NULL, "Modal is still making the image");
	return e ? e : judge_build(b.status, template);
}

static enum err ask_image(struct call *c, const struct modal_key *k, const char *app,
	const char *template, const char **ret)
{
	CLEANUP_BUF struct buf body, image;
	struct pb_msg m;
	const char *builder = NULL;
	buf_init(&body, MODAL_BODY);
	buf_init(&image, MODAL_BODY);
	enum err e = ask_builder(c, k, &builder);
	if (e)
		return e;
	pb_put_str(&image, 6, arena_printf(c->arena, "FROM %s", template ? template : IMAGE));
	pb_put_msg(&body, 2, &image);
	pb_put_str(&body, 4, app);
	pb_put_str(&body, 9, builder);
	struct modal_ask q = {.method = "ImageGetOrCreate", .body = &body, .effect = EFFECT_READS};
	e = modal_control(c, k, &q, &m);
	if (e)
		return e;
	*ret = pb_word(m, 1, MODAL_ID_MAX, c->arena);
	if (!*ret)
		return fail(ERR_UPSTREAM, NULL, "Modal did not name the image");
	uint64_t status = pb_uint(pb_bytes(m, 2), 1);
	return status ? judge_build(status, template) : join_build(c, k, *ret, template);
}

/* What a template names: an image of the account by its id, or one of a registry. */
static enum err choose_image(struct call *c, const struct modal_key *k, const char *app,
	const char *template, const char **ret)
{
	if (!template || strncmp(template, "im-", 3) != 0)
		return ask_image(c, k, app, template, ret);
	*ret = template;
	return OK;
}

/* -- remembering ------------------------------------------------------------------------------- */

struct known {
	uint8_t owner[TOKEN_HASH_BYTES]; /* the key's */
	char template[MODAL_TEMPLATE_MAX + 1];
	char app[MODAL_ID_MAX + 1], image[MODAL_ID_MAX + 1];
	int64_t until_ms; /* 0: nothing */
};

static struct known table[KNOWN_MAX];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static void name_entry(struct call *c, const char *template, struct known *ret)
{
	*ret = (struct known){0};
	token_hash(&c->credential->token, ret->owner);
	(void)snprintf(ret->template, sizeof ret->template, "%s", template ? template : "");
}

/* The entry of this name; else the one that goes first. */
static struct known *look_up(const struct known *name, bool *ret_found)
{
	struct known *first = &table[0];
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		struct known *t = &table[i];
		*ret_found = t->until_ms > 0 && strcmp(t->template, name->template) == 0 &&
			     memcmp(t->owner, name->owner, sizeof t->owner) == 0;
		if (*ret_found)
			return t;
		first = t->until_ms < first->until_ms ? t : first;
	}
	return first;
}

static bool remembered(struct call *c, const struct known *name, struct modal_parts *ret)
{
	bool found;
	(void)pthread_mutex_lock(&table_lock);
	const struct known *t = look_up(name, &found);
	found = found && clock_mono_ms() < t->until_ms;
	if (found)
		*ret = (struct modal_parts){
			arena_str(c->arena, t->app), arena_str(c->arena, t->image), true};
	(void)pthread_mutex_unlock(&table_lock);
	return found;
}

static void remember(struct known *name, const struct modal_parts *parts)
{
	bool found;
	(void)snprintf(name->app, sizeof name->app, "%s", parts->app);
	(void)snprintf(name->image, sizeof name->image, "%s", parts->image);
	name->until_ms = clock_mono_ms() + KNOWN_MS;
	(void)pthread_mutex_lock(&table_lock);
	*look_up(name, &found) = *name;
	(void)pthread_mutex_unlock(&table_lock);
}

void modal_forget(struct call *c, const char *template)
{
	struct known name;
	bool found;
	name_entry(c, template, &name);
	(void)pthread_mutex_lock(&table_lock);
	struct known *t = look_up(&name, &found);
	if (found)
		t->until_ms = 0;
	(void)pthread_mutex_unlock(&table_lock);
}

enum err modal_parts(
	struct call *c, const struct modal_key *k, const char *template, struct modal_parts *ret)
{
	struct known name;
	name_entry(c, template, &name);
	if (remembered(c, &name, ret))
		return OK;
	*ret = (struct modal_parts){0};
	enum err e = modal_app(c, k, true, &ret->app);
	e = e ? e : choose_image(c, k, ret->app, template, &ret->image);
	if (e == ERR_BOX_GONE)
		return fail(ERR_UPSTREAM, NULL, "Modal does not know its own app");
	if (!e)
		remember(&name, ret);
	return e;
}
