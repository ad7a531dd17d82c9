/*
 * The client of Modal against a scripted network: what it asks, what it makes of any answer, and
 * where its secrets go.
 */
#include "arena.h"
#include "buf.h"
#include "grpc.h"
#include "http.h"
#include "modal_call.h"
#include "proto.h"
#include "provider.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Answers leave out what they do not need. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define MARK    "cc-abcdef-abcdefghijklmnopqrstuvwxyz"
#define ID      "sb-v2abcdefghij"
#define OLD_ID  "sb-0123456789abcdefghijkl" /* of the first generation */
#define CONTROL "https://api.modal.com/modal.client.ModalClient/"
#define ROUTER  "https://w1.modal.host:8443"
#define ROUTED  ROUTER "/modal.task_command_router.TaskCommandRouter/"

/* -- the network: a list of answers, played in order ------------------------------------------- */

struct answer {
	const char *method;    /* wanted, without the service */
	const char *grpc;      /* status in the trailers; NULL: none */
	struct pb_msg message; /* one frame; with a stream: each `piece` bytes a frame of field 1 */
	int status;            /* of HTTP; 0: 200; -1: HTTP_UNSURE; -2: HTTP_NOT_SENT */
	size_t piece;
};

#define M(text)                                                                                    \
	{                                                                                          \
		(const uint8_t *)(text), sizeof(text) - 1                                          \
	}
#define GOOD "0"
#define TOKEN                                                                                      \
	{                                                                                          \
		"AuthTokenGet", GOOD, M("\x0a\x05jwt.1")                                           \
	}
#define APP                                                                                        \
	{                                                                                          \
		"AppGetOrCreate", GOOD,                                                            \
			M("\x0a\x04"                                                               \
			  "ap-1")                                                                  \
	}
#define BUILDER                                                                                    \
	{                                                                                          \
		"EnvironmentGetOrCreate", GOOD,                                                    \
			M("\x12\x0b\x12\x09\x0a\x07"                                               \
			  "2025.06")                                                               \
	}
#define IMAGE                                                                                      \
	{                                                                                          \
		"ImageGetOrCreate", GOOD,                                                          \
			M("\x0a\x04"                                                               \
			  "im-1"                                                                   \
			  "\x12\x02\x08\x01")                                                      \
	}
#define MADE                                                                                       \
	{                                                                                          \
		"SandboxCreateV2", GOOD,                                                           \
			M("\x0a\x0f" ID "\x1a\x04"                                                 \
			  "ta-1"                                                                   \
			  "\x2a\x24\x0a\x06"                                                       \
			  "box.st"                                                                 \
			  "\x12\x1a" ROUTER)                                                       \
	}
#define TASK                                                                                       \
	{                                                                                          \
		"SandboxGetTaskIdV2", GOOD,                                                        \
			M("\x0a\x04"                                                               \
			  "ta-1")                                                                  \
	}
#define ACCESS                                                                                     \
	{                                                                                          \
		"SandboxGetCommandRouterAccess", GOOD,                                             \
			M("\x0a\x06"                                                               \
			  "box.st"                                                                 \
			  "\x12\x1a" ROUTER)                                                       \
	}
#define RUNS                                                                                       \
	{                                                                                          \
		"SandboxWaitV2", GOOD, M("\x0a\x02\x08\x00")                                       \
	}
#define ENDED                                                                                      \
	{                                                                                          \
		"SandboxWaitV2", GOOD, M("\x0a\x02\x08\x03")                                       \
	}

static const struct answer *script;
static size_t played;
static struct pb_msg sent[32]; /* bodies without their first frame's head */
static char sent_bytes[1 << 16];
static size_t sent_used;
static bool secrets_ok;

static bool has_secret(const struct http_call *c, const char *name)
{
	for (const struct http_secret *s = c->secrets; s && s->name; s++)
		if (strcmp(s->name, name) == 0)
			return true;
	return false;
}

/* The account's key goes to the control service alone, the box's token to the router alone. */
static void judge_secrets(const struct http_call *c, bool control)
{
	bool key = has_secret(c, "x-modal-token-id") && has_secret(c, "x-modal-token-secret");
	secrets_ok = secrets_ok && (control ? key && !c->bearer : !c->secrets && c->bearer);
}

static void keep_body(const struct http_call *c)
{
	assert_true(c->body_n >= 5);
	assert_true(sent_used + c->body_n <= sizeof sent_bytes);
	memcpy(sent_bytes + sent_used, c->body, c->body_n);
	sent[played] = (struct pb_msg){(const uint8_t *)sent_bytes + sent_used + 5, c->body_n - 5};
	sent_used += c->body_n;
}

static void stream_out(const struct http_call *c, const struct answer *q)
{
	for (size_t at = 0; at < q->message.n; at += q->piece) {
		CLEANUP_BUF struct buf msg, frame;
		size_t n = q->message.n - at < q->piece ? q->message.n - at : q->piece;
		buf_init(&msg, 4096);
		buf_init(&frame, 4096);
		pb_put_bytes(&msg, 1, q->message.p + at, n);
		grpc_frame(&frame, msg.p, msg.n);
		for (size_t i = 0; i < frame.n; i++)
			if (!c->on_data(c->ctx, frame.p + i, 1))
				return;
	}
}

static void fill(
	const struct http_call *c, const struct answer *q, struct arena *a, struct http_reply *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, 1 << 16);
	if (c->on_data && q->piece)
		stream_out(c, q);
	else if (c->on_data)
		(void)c->on_data(c->ctx, (const char *)q->message.p, q->message.n);
	else if (q->grpc && strcmp(q->grpc, GOOD) == 0)
		grpc_frame(&body, q->message.p, q->message.n);
	ret->body = arena_copy(a, body.p, body.n);
	ret->body_n = body.n;
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	const struct answer *q = &script[played];
	bool control = strncmp(c->url, CONTROL, strlen(CONTROL)) == 0;
	assert_true(control || strncmp(c->url, ROUTED, strlen(ROUTED)) == 0);
	const char *method = strrchr(c->url, '/') + 1;
	if (!q->method || strcmp(method, q->method) != 0)
		fail_msg(
			"call %zu is %s, not %s", played, method, q->method ? q->method : "wanted");
	assert_int_equal(c->pool, HTTP_ALONE);
	assert_string_equal(c->method, "POST");
	assert_string_equal(c->type, "application/grpc");
	assert_true(c->total_ms > 0);
	judge_secrets(c, control);
	keep_body(c);
	played++;
	*ret = (struct http_reply){.fate = q->status == -1   ? HTTP_UNSURE
					   : q->status == -2 ? HTTP_NOT_SENT
							     : HTTP_REPLIED,
		.body = "",
		.type = q->status > 0 ? "text/html" : "application/grpc"};
	if (ret->fate == HTTP_REPLIED) {
		ret->status = q->status ? q->status : 200;
		ret->trailers[0] = q->grpc;
	}
	fill(c, q, a, ret);
	return OK;
}

struct bench {
	struct arena *arena;
	struct credential credential;
	struct call call;
};

static int begin(void **state)
{
	static struct bench b;
	secret_init();
	b = (struct bench){.arena = arena_new(64 << 20)};
	b.credential.token = secret_new("ak-1:as-2", 9);
	b.call = (struct call){
		.provider = provider_find("modal"), .credential = &b.credential, .arena = b.arena};
	secrets_ok = true;
	*state = &b;
	return 0;
}

static int end(void **state)
{
	struct bench *b = *state;
	assert_true(secrets_ok);
	call_done(&b->call);
	secret_done(&b->credential.token);
	arena_free(b->arena);
	return 0;
}

static void play(struct bench *b, const struct answer *answers)
{
	script = answers;
	played = 0;
	sent_used = 0;
	call_done(&b->call);
	modal_forget(&b->call, NULL);
	modal_forget(&b->call, "debian:12");
}

static bool all_played(void)
{
	return script[played].method == NULL;
}

static bool text_is(struct pb_msg m, const char *s)
{
	return m.n == strlen(s) && memcmp(m.p, s, m.n) == 0;
}

/* -- rates --------------------------------------------------------------------------------------
 */

#define CPU                                                                                        \
	"\x0a\x0b\x0a\x03"                                                                         \
	"cpu\x12\x04"                                                                              \
	"0.14"

static struct told_rates told_of(struct bench *b, struct pb_msg reply)
{
	struct told_rates told = {0};
	struct answer answers[] = {TOKEN, {"WorkspaceBillingRates", GOOD, reply}, {0}};
	play(b, answers);
	assert_int_equal(modal_ops.rates(&b->call, &told), OK);
	assert_true(all_played() && secrets_ok);
	return told;
}

static void rates_are_told_as_modal_wrote_them(void **state)
{
	struct pb_msg reply = M(CPU "\x22\x03"
				    "abc"
				    "\x0a\x08\x0a\x03"
				    "gib\x12\x01"
				    "2");
	struct told_rates told = told_of(*state, reply);
	assert_int_equal(told.n, 2);
	assert_string_equal(told.items[0].name, "cpu");
	assert_string_equal(told.items[0].usd, "0.14");
	assert_string_equal(told.items[1].name, "gib");
	assert_string_equal(told.items[1].usd, "2");
}

static void what_is_no_rate_is_left_out(void **state)
{
	static const struct pb_msg none[] = {M(""), M("\x0a\x00"), M("\x08\x01"),
		M("\x0a\x08\x0a\x03"
		  "gib\x12\x01"
		  "x"),
		M("\x0a\x09\x0a\x03"
		  "gib\x12\x02"
		  "1."),
		M("\x0a\x08\x0a\x03"
		  "g b\x12\x01"
		  "1"),
		M("\x0a\x05\x0a\x03"
		  "gib")};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(told_of(*state, none[i]).n, 0);
	struct pb_msg twice = M(CPU CPU);
	assert_int_equal(told_of(*state, twice).n, 1);
}

/* -- check ------------------------------------------------------------------------------------- */

static void a_good_key_passes_the_check(void **state)
{
	struct bench *b = *state;
	play(b, (const struct answer[]){TOKEN, {0}});
	assert_int_equal(modal_ops.check(&b->call), OK);
	assert_int_equal(b->call.round_trips, 1);
	assert_int_equal(sent[0].n, 0);
}

struct wrong {
	struct answer answer;
	enum err reads, creates;
};

/* What any call may be answered with, and what it means by what the call does. */
static const struct wrong wrongs[] = {
	{{.status = -2}, ERR_UPSTREAM, ERR_UPSTREAM},
	{{.status = -1}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.status = 400}, ERR_UPSTREAM, ERR_UPSTREAM},
	{{.status = 401}, ERR_KEY_REFUSED, ERR_KEY_REFUSED},
	{{.status = 429}, ERR_UPSTREAM_LIMIT, ERR_UPSTREAM_LIMIT},
	{{.status = 303}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.status = 502}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.status = 524}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.status = 200}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = NULL}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "1"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "2"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "3"}, ERR_UPSTREAM, ERR_UPSTREAM},
	{{.grpc = "4"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "6"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "7"}, ERR_KEY_REFUSED, ERR_KEY_REFUSED},
	{{.grpc = "8"}, ERR_UPSTREAM_LIMIT, ERR_UPSTREAM_LIMIT},
	{{.grpc = "12"}, ERR_UPSTREAM, ERR_UPSTREAM},
	{{.grpc = "13"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "14"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = "16"}, ERR_KEY_REFUSED, ERR_KEY_REFUSED},
	{{.grpc = "99"}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = GOOD, .message = M("\x0a\x7f")}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
	{{.grpc = GOOD, .message = M("")}, ERR_UPSTREAM, ERR_UPSTREAM_UNSURE},
};

static void every_answer_to_a_check_is_told_as_what_it_is(void **state)
{
	struct bench *b = *state;
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct answer one[] = {wrongs[i].answer, {0}};
		one[0].method = "AuthTokenGet";
		play(b, one);
		enum err e = modal_ops.check(&b->call);
		if (e != wrongs[i].reads)
			fail_msg("case %zu: error %d, `%s`", i, e, fault_of(e)->detail);
	}
}

static void a_token_of_one_half_is_never_sent(void **state)
{
	static const char *const tokens[] = {"x", "ak-1", "ak-1:", ":as-2", ":"};
	struct bench *b = *state;
	play(b, (const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
		secret_done(&b->credential.token);
		b->credential.token = secret_new(tokens[i], strlen(tokens[i]));
		assert_int_equal(modal_ops.check(&b->call), ERR_KEY_REFUSED);
		assert_string_equal(fault_of(ERR_KEY_REFUSED)->field, "token");
	}
	assert_int_equal(played, 0);
}

/* -- create ------------------------------------------------------------------------------------ */

static const struct box_spec spec = {.mark = MARK, .life_s = 360};

static void a_sandbox_is_ordered_with_its_mark_and_its_end(void **state)
{
	struct bench *b = *state;
	struct box_spec want = {.mark = MARK,
		.life_s = 100000,
		.memory_mb = 512,
		.cpu = 2,
		.network = NETWORK_NONE};
	struct box box;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE, {0}});
	assert_int_equal(modal_ops.create(&b->call, &want, &box), OK);
	assert_true(all_played());
	assert_string_equal(box.id, ID);
	assert_string_equal(box.mark, MARK);
	assert_int_equal(box.ends_ms - box.created_ms, 86400000);
	assert_int_equal(pb_uint(sent[1], 3), 1);
	assert_true(text_is(pb_bytes(pb_bytes(sent[3], 2), 6), "FROM buildpack-deps:bookworm"));
	assert_true(text_is(pb_bytes(sent[3], 9), "2025.06"));
	struct pb_msg d = pb_bytes(sent[4], 2), tag = pb_bytes(sent[4], 4);
	assert_true(text_is(pb_bytes(sent[4], 1), "ap-1"));
	assert_true(text_is(pb_bytes(d, 3), "im-1"));
	assert_int_equal(pb_uint(pb_bytes(d, 5), 2), 512);
	assert_int_equal(pb_uint(pb_bytes(d, 5), 3), 1000);
	assert_int_equal(pb_uint(d, 7), 86400);
	assert_int_equal(pb_uint(pb_bytes(d, 22), 1), 2);
	assert_true(text_is(pb_bytes(d, 30), MARK));
	assert_true(text_is(pb_bytes(tag, 1), "compute-connector"));
	assert_true(text_is(pb_bytes(tag, 2), "cc-abcdef"));
	assert_string_equal(b->call.memo.base, ROUTER);
}

static void an_answer_to_a_create_is_a_refusal_only_when_it_is_certain(void **state)
{
	struct bench *b = *state;
	struct box box;
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct answer all[] = {TOKEN, APP, BUILDER, IMAGE, wrongs[i].answer, {0}};
		all[4].method = "SandboxCreateV2";
		play(b, all);
		enum err e = modal_ops.create(&b->call, &spec, &box);
		if (e != wrongs[i].creates)
			fail_msg("case %zu: error %d, `%s`", i, e, fault_of(e)->detail);
		assert_true(all_played());
	}
}

/* What is remembered belongs to one key and one template, and costs no second order unless the
 * first was certainly refused. */
static void app_and_image_are_asked_for_once_and_again_when_they_are_gone(void **state)
{
	static const struct answer missing = {"SandboxCreateV2", "5"};
	static const struct answer stopped = {"SandboxCreateV2", "9"};
	static const struct answer lost = {"SandboxCreateV2", NULL, M(""), -1};
	struct bench *b = *state;
	struct box_spec named = {.mark = MARK, .life_s = 1, .template = "debian:12"};
	struct box box;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE, MADE, missing, APP,
			BUILDER, IMAGE, MADE, stopped, APP, BUILDER, IMAGE, missing, lost, APP,
			BUILDER, IMAGE, MADE, TOKEN, APP, BUILDER, IMAGE, MADE, {0}});
	for (int i = 0; i < 3; i++)
		assert_int_equal(modal_ops.create(&b->call, &spec, &box), OK);
	assert_int_equal(modal_ops.create(&b->call, &spec, &box), ERR_UPSTREAM);
	assert_int_equal(played, 16);
	assert_int_equal(modal_ops.create(&b->call, &spec, &box), ERR_UPSTREAM_UNSURE);
	assert_int_equal(played, 17);
	assert_int_equal(modal_ops.create(&b->call, &named, &box), OK);
	call_done(&b->call);
	secret_done(&b->credential.token);
	b->credential.token = secret_new("ak-2:as-2", 9);
	modal_forget(&b->call, NULL);
	assert_int_equal(modal_ops.create(&b->call, &spec, &box), OK);
	assert_true(all_played());
}

static void what_comes_before_the_order_is_never_unsure(void **state)
{
	static const char *const methods[] = {
		"AuthTokenGet", "AppGetOrCreate", "EnvironmentGetOrCreate", "ImageGetOrCreate"};
	struct bench *b = *state;
	struct box box;
	for (size_t m = 0; m < 4; m++)
		for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
			struct answer all[] = {TOKEN, APP, BUILDER, IMAGE, {0}, {0}};
			all[m] = wrongs[i].answer;
			all[m].method = methods[m];
			all[m + 1] = (struct answer){0};
			play(b, all);
			enum err e = modal_ops.create(&b->call, &spec, &box);
			if (e != wrongs[i].reads)
				fail_msg("%s, case %zu: error %d", methods[m], i, e);
		}
}

static void what_modal_has_not_is_refused_before_anything_is_sent(void **state)
{
	static const struct {
		struct box_spec spec;
		enum err err;
		const char *field;
	} rows[] = {{{.mark = MARK, .runtime = "node"}, ERR_UNSUPPORTED, "runtime"},
		{{.mark = MARK, .network = NETWORK_HOST}, ERR_UNSUPPORTED, "network"},
		{{.mark = MARK, .memory_mb = 1000000}, ERR_UNSUPPORTED, "memory_mb"},
		{{.mark = MARK, .cpu = 255}, ERR_UNSUPPORTED, "cpu"},
		{{.mark = MARK, .template = ""}, ERR_BAD_INPUT, "template"},
		{{.mark = MARK, .template = "a b"}, ERR_BAD_INPUT, "template"},
		{{.mark = MARK, .template = "a\nRUN x"}, ERR_BAD_INPUT, "template"},
		{{.mark = MARK, .template = "--platform=x"}, ERR_BAD_INPUT, "template"}};
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(modal_ops.create(&b->call, &rows[i].spec, &box), rows[i].err);
		assert_string_equal(fault_of(rows[i].err)->field, rows[i].field);
	}
	assert_int_equal(played, 0);
}

static void an_image_is_waited_for_and_may_fail(void **state)
{
	static const struct answer building = {"ImageGetOrCreate", GOOD,
		M("\x0a\x04"
		  "im-2")};
	static const struct answer more = {"ImageJoinStreaming", GOOD,
		M("\0\0\0\0\x05\x1a\x03"
		  "1-0")};
	static const struct answer ready = {
		"ImageJoinStreaming", GOOD, M("\0\0\0\0\x04\x0a\x02\x08\x01")};
	static const struct answer failed = {
		"ImageJoinStreaming", GOOD, M("\0\0\0\0\x04\x0a\x02\x08\x02")};
	struct box_spec named = {.mark = MARK, .life_s = 1, .template = "debian:12"};
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, building, more, ready, MADE, {0}});
	assert_int_equal(modal_ops.create(&b->call, &named, &box), OK);
	assert_true(text_is(pb_bytes(sent[5], 3), "1-0"));
	assert_true(text_is(pb_bytes(pb_bytes(sent[6], 2), 3), "im-2"));
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, building, more, failed, {0}});
	assert_int_equal(modal_ops.create(&b->call, &named, &box), ERR_BAD_INPUT);
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, building, failed, {0}});
	assert_int_equal(modal_ops.create(&b->call, &spec, &box), ERR_UPSTREAM);
	named.template = "im-7";
	play(b, (const struct answer[]){TOKEN, APP, MADE, {0}});
	assert_int_equal(modal_ops.create(&b->call, &named, &box), OK);
	assert_true(text_is(pb_bytes(pb_bytes(sent[2], 2), 3), "im-7"));
}

/* -- create with a GPU ------------------------------------------------------------------------- */

static const struct box_spec with_gpu = {
	.mark = MARK, .life_s = 360, .cpu = 4, .gpu = "a100-80gb", .gpu_count = 2};

#define MADE_FIRST                                                                                 \
	{                                                                                          \
		"SandboxCreate", GOOD, M("\x0a\x19" OLD_ID)                                        \
	}
#define WAITS                                                                                      \
	{                                                                                          \
		"SandboxGetTaskId", GOOD, M("")                                                    \
	}
#define TASK_FIRST                                                                                 \
	{                                                                                          \
		"SandboxGetTaskId", GOOD,                                                          \
			M("\x0a\x04"                                                               \
			  "ta-1")                                                                  \
	}
#define ACCESS_FIRST                                                                               \
	{                                                                                          \
		"TaskGetCommandRouterAccess", GOOD,                                                \
			M("\x0a\x06"                                                               \
			  "box.st"                                                                 \
			  "\x12\x1a" ROUTER)                                                       \
	}
#define STOP_FIRST                                                                                 \
	{                                                                                          \
		"SandboxTerminate", GOOD, M("")                                                    \
	}
#define ENDED_FIRST                                                                                \
	{                                                                                          \
		"SandboxWait", GOOD, M("\x0a\x02\x08\x03")                                         \
	}

static void a_sandbox_with_gpus_is_of_the_first_generation_and_waited_for(void **state)
{
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, WAITS, TASK_FIRST,
			ACCESS_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), OK);
	assert_true(all_played());
	assert_string_equal(box.id, OLD_ID);
	struct pb_msg d = pb_bytes(sent[4], 2), gpu = pb_bytes(pb_bytes(d, 5), 4);
	assert_int_equal(pb_uint(gpu, 2), 2);
	assert_true(text_is(pb_bytes(gpu, 4), "A100-80GB"));
	assert_int_equal(pb_uint(pb_bytes(d, 5), 3), 2000);
	assert_true(text_is(pb_bytes(d, 30), MARK));
	assert_true(text_is(pb_bytes(pb_bytes(sent[4], 4), 2), "cc-abcdef"));
	/* What it may wait for its machine is not taken from its life. */
	assert_int_equal(pb_uint(d, 7), 360 + 300);
	assert_int_equal(box.ends_ms - box.created_ms, 660000);
	assert_true(text_is(sent[6], "\x0a\x19" OLD_ID));
	assert_true(text_is(pb_bytes(sent[7], 1), "ta-1"));
	assert_string_equal(b->call.memo.base, ROUTER);
	assert_string_equal(b->call.memo.task, "ta-1");
}

static void an_order_with_a_gpu_is_refused_only_when_it_is_certain(void **state)
{
	struct bench *b = *state;
	struct box box;
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct answer all[] = {TOKEN, APP, BUILDER, IMAGE, wrongs[i].answer, {0}};
		bool wrong = all[4].grpc && strcmp(all[4].grpc, "3") == 0;
		all[4].method = "SandboxCreate";
		play(b, all);
		enum err e = modal_ops.create(&b->call, &with_gpu, &box);
		if (e != (wrong ? ERR_UNSUPPORTED : wrongs[i].creates))
			fail_msg("case %zu: error %d, `%s`", i, e, fault_of(e)->detail);
		if (wrong)
			assert_string_equal(fault_of(e)->field, "gpu");
		assert_true(all_played());
	}
}

static void a_sandbox_that_gets_no_gpu_is_ended_and_only_then_certainly_not_there(void **state)
{
	static const struct answer refused = {"SandboxGetTaskId", "16"};
	static const struct answer over = {"SandboxGetTaskId", GOOD, M("\x12\x02\x08\x05")};
	static const struct answer runs = {"SandboxWait", GOOD, M("\x0a\x02\x08\x00")};
	struct box_spec short_life = with_gpu;
	struct bench *b = *state;
	struct box box;
	short_life.life_s = 0; /* it is looked at once */
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, WAITS, STOP_FIRST,
			ENDED_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &short_life, &box), ERR_UPSTREAM_LIMIT);
	assert_true(all_played());
	assert_string_equal(fault_of(ERR_UPSTREAM_LIMIT)->field, "gpu");
	assert_int_equal(fault_of(ERR_UPSTREAM_LIMIT)->retry_after_s, 300);
	play(b, (const struct answer[]){
			TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, WAITS, STOP_FIRST, runs, {0}});
	assert_int_equal(modal_ops.create(&b->call, &short_life, &box), ERR_UPSTREAM_UNSURE);
	assert_true(all_played());
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, refused, STOP_FIRST,
			ENDED_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), ERR_KEY_REFUSED);
	assert_true(all_played());
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, over, STOP_FIRST,
			ENDED_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), ERR_UPSTREAM);
	assert_true(all_played());
}

static bool unwanted(void *ctx)
{
	(*(int *)ctx)++;
	return false;
}

static void a_sandbox_that_nobody_wants_any_more_is_not_waited_for(void **state)
{
	struct bench *b = *state;
	struct box box;
	int asked = 0;
	b->call.wanted = unwanted;
	b->call.ctx = &asked;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, WAITS, STOP_FIRST,
			ENDED_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), ERR_UPSTREAM_LIMIT);
	assert_true(all_played());
	assert_int_equal(asked, 1);
	play(b, (const struct answer[]){
			TOKEN, APP, BUILDER, IMAGE, MADE_FIRST, TASK_FIRST, ACCESS_FIRST, {0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), OK);
	assert_int_equal(asked, 1);
}

static void a_look_that_fails_is_looked_again(void **state)
{
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){TOKEN, APP, BUILDER, IMAGE, MADE_FIRST,
			{"SandboxGetTaskId", "14"}, TASK_FIRST, {"TaskGetCommandRouterAccess", "9"},
			{0}});
	assert_int_equal(modal_ops.create(&b->call, &with_gpu, &box), OK);
	assert_true(all_played());
	assert_string_equal(b->call.memo.box, ""); /* the first command asks again */
}

static void a_router_elsewhere_is_not_noted(void **state)
{
	static const char *const urls[] = {"http://w1.modal.host",
		"https://modal.host.evil.example", "https://evilmodal.host", "https://modal.host",
		"https://w1.modal.host/path", "https://w1.modal.host@evil.example",
		"https://w1.modal.host:0", "https://w1.modal.host:99999", "https://w1.modal.host:x",
		"https://", "https://127.0.0.1", "https://W1.modal.host", "unix:/x.modal.host", ""};
	struct bench *b = *state;
	play(b, (const struct answer[]){{0}});
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		CLEANUP_BUF struct buf access;
		buf_init(&access, 512);
		pb_put_str(&access, 1, "box.st");
		pb_put_str(&access, 2, urls[i]);
		struct pb_msg m = {(const uint8_t *)access.p, access.n};
		if (modal_note(&b->call, ID, "ta-1", m))
			fail_msg("%s is taken", urls[i]);
		assert_string_equal(b->call.memo.box, "");
	}
}

/* -- find, list, destroy ----------------------------------------------------------------------- */

static void a_sandbox_is_found_or_certainly_not_there(void **state)
{
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){
			TOKEN, {"SandboxGetFromNameV2", GOOD, M("\x0a\x0f" ID)}, {0}});
	assert_int_equal(modal_ops.find(&b->call, MARK, &box), OK);
	assert_string_equal(box.id, ID);
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct answer all[] = {TOKEN, wrongs[i].answer, {0}};
		all[1].method = "SandboxGetFromNameV2";
		play(b, all);
		assert_int_equal(modal_ops.find(&b->call, MARK, &box), wrongs[i].reads);
	}
	play(b, (const struct answer[]){TOKEN,
			{"SandboxGetFromNameV2", GOOD,
				M("\x0a\x05"
				  "../..")},
			{0}});
	assert_int_equal(modal_ops.find(&b->call, MARK, &box), ERR_UPSTREAM);
}

/* Nobody knows any more of which generation the sandbox would be. */
static void a_sandbox_is_absent_when_both_generations_say_so(void **state)
{
	static const struct answer no = {"SandboxGetFromNameV2", "5"};
	struct bench *b = *state;
	struct box box;
	play(b, (const struct answer[]){TOKEN, no, {"SandboxGetFromName", "5"}, {0}});
	assert_int_equal(modal_ops.find(&b->call, MARK, &box), OK);
	assert_true(all_played());
	assert_null(box.id);
	assert_true(text_is(pb_bytes(sent[2], 1), MARK));
	assert_true(text_is(pb_bytes(sent[2], 3), "compute-connector"));
	play(b, (const struct answer[]){
			TOKEN, no, {"SandboxGetFromName", GOOD, M("\x0a\x19" OLD_ID)}, {0}});
	assert_int_equal(modal_ops.find(&b->call, MARK, &box), OK);
	assert_string_equal(box.id, OLD_ID);
	for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
		struct answer all[] = {TOKEN, no, wrongs[i].answer, {0}};
		all[2].method = "SandboxGetFromName";
		play(b, all);
		assert_int_equal(modal_ops.find(&b->call, MARK, &box), wrongs[i].reads);
	}
}

static void put_info(
	struct buf *b, const char *id, const char *name, double created, unsigned result)
{
	CLEANUP_BUF struct buf info, task, status;
	buf_init(&info, 512);
	buf_init(&task, 512);
	buf_init(&status, 512);
	pb_put_uint(&status, 1, result);
	pb_put_msg(&task, 4, &status);
	pb_put_str(&info, 1, id);
	pb_put_double(&info, 3, created);
	pb_put_msg(&info, 4, &task);
	pb_put_str(&info, 7, name);
	pb_put_uint(&info, 11, 60);
	pb_put_msg(b, 1, &info);
}

static struct answer page_of(struct buf *b)
{
	return (struct answer){"SandboxListV2", GOOD, {(const uint8_t *)b->p, b->n}, 0, 0};
}

static void a_list_has_what_is_ours_and_runs(void **state)
{
	struct bench *b = *state;
	struct box_list list;
	CLEANUP_BUF struct buf one, two, none;
	buf_init(&one, 4096);
	buf_init(&two, 4096);
	buf_init(&none, 16);
	put_info(&one, ID, MARK, 20, 0);
	put_info(&one, OLD_ID, "cc-other1-a", 19.5, 0);
	put_info(&two, OLD_ID, "cc-abcdef-b", 18, 0);
	put_info(&two, "sb-v2dead", "cc-abcdef-c", 17, 3);
	play(b, (const struct answer[]){
			TOKEN, APP, page_of(&one), page_of(&two), page_of(&none), {0}});
	assert_int_equal(modal_ops.list(&b->call, "cc-abcdef-", &list), OK);
	assert_true(all_played());
	assert_int_equal(list.n, 2);
	assert_string_equal(list.items[0].mark, MARK);
	assert_int_equal(list.items[0].ends_ms, 80000);
	assert_string_equal(list.items[1].id, OLD_ID);
	assert_int_equal(pb_uint(sent[1], 3), 0); /* an app is not made for a list */
	assert_true(pb_double(sent[3], 2) == 19.5 && pb_double(sent[4], 2) == 17);
	play(b, (const struct answer[]){TOKEN, {"AppGetOrCreate", "5"}, {0}});
	assert_int_equal(modal_ops.list(&b->call, "cc-abcdef-", &list), OK);
	assert_int_equal(list.n, 0);
}

static void a_list_that_does_not_end_or_is_wrong_is_none(void **state)
{
	struct bench *b = *state;
	struct box_list list;
	CLEANUP_BUF struct buf same, bad, early;
	buf_init(&same, 4096);
	buf_init(&bad, 4096);
	buf_init(&early, 4096);
	put_info(&same, ID, MARK, 20, 0);
	put_info(&bad, "x", MARK, 20, 0);
	put_info(&early, ID, MARK, -1, 0);
	play(b, (const struct answer[]){TOKEN, APP, page_of(&same), page_of(&same), {0}});
	assert_int_equal(modal_ops.list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
	play(b, (const struct answer[]){TOKEN, APP, page_of(&bad), {0}});
	assert_int_equal(modal_ops.list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
	play(b, (const struct answer[]){TOKEN, APP, page_of(&early), {0}});
	assert_int_equal(modal_ops.list(&b->call, "cc-abcdef-", &list), ERR_UPSTREAM);
}

static void an_end_is_told_when_it_is_proven(void **state)
{
	static const struct answer stop = {"SandboxTerminateV2", GOOD, M("")};
	struct bench *b = *state;
	enum box_state s;
	play(b, (const struct answer[]){TOKEN, stop, ENDED, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, ID, &s), OK);
	assert_int_equal(s, BOX_STOPPED);
	play(b, (const struct answer[]){TOKEN, stop, RUNS, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, ID, &s), OK);
	assert_int_equal(s, BOX_STOPPING);
	play(b, (const struct answer[]){TOKEN, {"SandboxTerminateV2", "5"}, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, ID, &s), OK);
	assert_int_equal(s, BOX_STOPPED);
	play(b, (const struct answer[]){TOKEN, stop, {"SandboxWaitV2", "14"}, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, ID, &s), ERR_UPSTREAM);
	play(b, (const struct answer[]){TOKEN, {"SandboxTerminateV2", NULL, M(""), -1}, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, ID, &s), ERR_UPSTREAM_UNSURE);
	play(b, (const struct answer[]){TOKEN, {"SandboxTerminate", GOOD, M("")},
			{"SandboxWait", GOOD, M("\x0a\x02\x08\x03")}, {0}});
	assert_int_equal(modal_ops.destroy(&b->call, OLD_ID, &s), OK);
	assert_int_equal(s, BOX_STOPPED);
	play(b, (const struct answer[]){{0}});
	assert_int_equal(modal_ops.destroy(&b->call, "../x", &s), ERR_INTERNAL);
}

/* -- commands ---------------------------------------------------------------------------------- */

static const char *const argv[] = {"sh", "-c", "echo", NULL};

#define START                                                                                      \
	{                                                                                          \
		"TaskExecStart", GOOD, M("")                                                       \
	}
#define OUT                                                                                        \
	{                                                                                          \
		"TaskExecStdioRead", GOOD, M("hello"), 0, 2                                        \
	}
#define CODE                                                                                       \
	{                                                                                          \
		"TaskExecWait", GOOD, M("\x08\x00")                                                \
	}

static enum err run(struct bench *b, const struct answer *answers, struct exec_result *ret)
{
	play(b, answers);
	return modal_ops.exec(&b->call, ID, "job-start", argv, 5, ret);
}

static void a_command_has_its_output_and_its_code(void **state)
{
	struct bench *b = *state;
	struct exec_result r;
	assert_int_equal(run(b,
				 (const struct answer[]){TOKEN, TASK, ACCESS, START, OUT,
					 {"TaskExecWait", GOOD, M("\x08\x07")}, {0}},
				 &r),
		OK);
	assert_true(all_played());
	assert_int_equal(r.code, 7);
	assert_string_equal(r.out, "hello");
	assert_string_equal(r.err, "");
	assert_true(text_is(pb_bytes(sent[3], 1), "ta-1"));
	assert_int_equal(pb_bytes(sent[3], 2).n, 36);
	assert_int_equal(pb_uint(sent[3], 6), 10);
	assert_int_equal(pb_uint(sent[3], 4), 1);
	assert_int_equal(pb_uint(sent[3], 5), 0);
	assert_int_equal(run(b,
				 (const struct answer[]){TOKEN, TASK, ACCESS, START, OUT,
					 {"TaskExecWait", GOOD, M("\x10\x09")}, {0}},
				 &r),
		OK);
	assert_int_equal(r.code, 137);
}

static void a_broken_stream_goes_on_where_it_ended(void **state)
{
	static const struct answer broken = {"TaskExecStdioRead", NULL, M("hel"), -1, 1};
	static const struct answer rest = {"TaskExecStdioRead", GOOD, M("lo"), 0, 1};
	struct bench *b = *state;
	struct exec_result r;
	assert_int_equal(run(b,
				 (const struct answer[]){
					 TOKEN, TASK, ACCESS, START, broken, RUNS, rest, CODE, {0}},
				 &r),
		OK);
	assert_true(all_played());
	assert_string_equal(r.out, "hello");
	assert_int_equal(pb_uint(sent[6], 3), 3);
	assert_true(text_is(pb_bytes(sent[6], 2), "") || pb_bytes(sent[6], 2).n == 36);
}

static void a_token_that_ran_out_is_renewed_once(void **state)
{
	static const struct answer expired = {"TaskExecStdioRead", "16"};
	struct bench *b = *state;
	struct exec_result r;
	assert_int_equal(run(b,
				 (const struct answer[]){TOKEN, TASK, ACCESS, START, expired, TASK,
					 ACCESS, OUT, CODE, {0}},
				 &r),
		OK);
	assert_string_equal(r.out, "hello");
	assert_int_equal(run(b,
				 (const struct answer[]){TOKEN, TASK, ACCESS, START, expired, TASK,
					 ACCESS, expired, RUNS, {0}},
				 &r),
		ERR_UPSTREAM);
	assert_true(all_played());
}

static void a_sandbox_is_gone_only_on_the_control_service_s_word(void **state)
{
	static const struct answer unknown = {"TaskExecStart", "5"};
	static const struct answer lost = {"TaskExecStart", NULL, M(""), -1};
	struct bench *b = *state;
	struct exec_result r;
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, TASK, ACCESS, unknown, ENDED, {0}}, &r),
		ERR_BOX_GONE);
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, TASK, ACCESS, unknown, RUNS, {0}}, &r),
		ERR_UPSTREAM_UNSURE);
	assert_int_equal(run(b, (const struct answer[]){TOKEN, TASK, ACCESS, lost, ENDED, {0}}, &r),
		ERR_BOX_GONE);
	assert_int_equal(run(b, (const struct answer[]){TOKEN, TASK, ACCESS, lost, RUNS, {0}}, &r),
		ERR_UPSTREAM_UNSURE);
	assert_int_equal(run(b,
				 (const struct answer[]){
					 TOKEN, TASK, ACCESS, lost, {"SandboxWaitV2", "14"}, {0}},
				 &r),
		ERR_UPSTREAM_UNSURE);
	assert_int_equal(run(b,
				 (const struct answer[]){TOKEN,
					 {"SandboxGetTaskIdV2", GOOD,
						 M("\x0a\x04"
						   "ta-1"
						   "\x12\x02\x08\x04")},
					 {0}},
				 &r),
		ERR_BOX_GONE);
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, {"SandboxGetTaskIdV2", "5"}, {0}}, &r),
		ERR_BOX_GONE);
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, {"SandboxGetTaskIdV2", "14"}, {0}}, &r),
		ERR_UPSTREAM);
}

static void a_code_that_is_not_told_is_none(void **state)
{
	static const struct answer ends[] = {{"TaskExecWait", GOOD, M("")},
		{"TaskExecWait", GOOD, M("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
		{"TaskExecWait", GOOD, M("\x08\x80\x02")}, {"TaskExecWait", GOOD, M("\x10\x00")},
		{"TaskExecWait", GOOD, M("\x10\x7f")}, {"TaskExecWait", GOOD, M("\x0a\x01x")}};
	struct bench *b = *state;
	struct exec_result r;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		assert_int_equal(run(b,
					 (const struct answer[]){
						 TOKEN, TASK, ACCESS, START, OUT, ends[i], {0}},
					 &r),
			ERR_UPSTREAM_UNSURE);
}

static void output_that_is_no_stream_of_frames_is_none(void **state)
{
	static const struct answer bad = {"TaskExecStdioRead", GOOD, M("{\"a\":1}")};
	static const struct answer half = {
		"TaskExecStdioRead", GOOD, M("\0\0\0\0\x09\x0a\x07half")};
	struct bench *b = *state;
	struct exec_result r;
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, TASK, ACCESS, START, bad, bad, bad, {0}}, &r),
		ERR_UPSTREAM_UNSURE);
	assert_int_equal(
		run(b, (const struct answer[]){TOKEN, TASK, ACCESS, START, half, OUT, CODE, {0}},
			&r),
		OK);
	assert_string_equal(r.out, "hello");
}

/* -- files ------------------------------------------------------------------------------------- */

static void a_file_is_written_and_its_size_is_asked_for_there(void **state)
{
	static const struct answer input = {"TaskExecStdinWriteStream", GOOD, M("")};
	struct bench *b = *state;
	play(b, (const struct answer[]){TOKEN, TASK, ACCESS, START, input, CODE, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/tmp/a b", "data", 4), OK);
	assert_true(all_played());
	assert_true(text_is(pb_bytes(sent[3], 3), "4")); /* the last argument */
	assert_int_equal(pb_uint(sent[3], 4), 0);
	play(b, (const struct answer[]){TOKEN, TASK, ACCESS, START, input,
			{"TaskExecWait", GOOD, M("\x08\x01")}, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), ERR_UPSTREAM);
	play(b, (const struct answer[]){
			TOKEN, TASK, ACCESS, START, {"TaskExecStdinWriteStream", "9"}, RUNS, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), ERR_UPSTREAM);
	play(b, (const struct answer[]){TOKEN, TASK, ACCESS, START,
			{"TaskExecStdinWriteStream", NULL, M(""), -1}, RUNS, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), ERR_UPSTREAM_UNSURE);
}

static void the_router_of_a_new_sandbox_is_waited_for(void **state)
{
	static const struct answer input = {"TaskExecStdinWriteStream", GOOD, M("")};
	static const struct answer not_yet = {"TaskExecStart", "14"};
	static const struct answer nobody = {"TaskExecStart", NULL, M(""), -2};
	static const struct answer broken = {"TaskExecStart", "13"};
	struct bench *b = *state;
	play(b, (const struct answer[]){
			TOKEN, TASK, ACCESS, not_yet, RUNS, nobody, RUNS, START, input, CODE, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), OK);
	assert_true(all_played());
	play(b, (const struct answer[]){TOKEN, TASK, ACCESS, not_yet, ENDED, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), ERR_BOX_GONE);
	play(b, (const struct answer[]){TOKEN, TASK, ACCESS, broken, RUNS, {0}});
	assert_int_equal(modal_ops.put(&b->call, ID, "/x", "data", 4), ERR_UPSTREAM);
	assert_true(all_played());
}

static void ids_of_commands_are_uuids_and_their_own(void **state)
{
	struct bench *b = *state;
	const char *one = modal_uuid(b->arena, "a-start"), *two = modal_uuid(b->arena, "b-start");
	assert_string_equal(one, modal_uuid(b->arena, "a-start"));
	assert_string_not_equal(one, two);
	assert_int_equal(strlen(one), 36);
	assert_true(one[8] == '-' && one[13] == '-' && one[14] == '4' && one[19] == '8' &&
		    one[23] == '-');
	play(b, (const struct answer[]){{0}});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_good_key_passes_the_check),
		TEST(rates_are_told_as_modal_wrote_them),
		TEST(what_is_no_rate_is_left_out),
		TEST(every_answer_to_a_check_is_told_as_what_it_is),
		TEST(a_token_of_one_half_is_never_sent),
		TEST(a_sandbox_is_ordered_with_its_mark_and_its_end),
		TEST(an_answer_to_a_create_is_a_refusal_only_when_it_is_certain),
		TEST(app_and_image_are_asked_for_once_and_again_when_they_are_gone),
		TEST(what_comes_before_the_order_is_never_unsure),
		TEST(what_modal_has_not_is_refused_before_anything_is_sent),
		TEST(an_image_is_waited_for_and_may_fail),
		TEST(a_sandbox_with_gpus_is_of_the_first_generation_and_waited_for),
		TEST(an_order_with_a_gpu_is_refused_only_when_it_is_certain),
		TEST(a_sandbox_that_gets_no_gpu_is_ended_and_only_then_certainly_not_there),
		TEST(a_sandbox_that_nobody_wants_any_more_is_not_waited_for),
		TEST(a_look_that_fails_is_looked_again),
		TEST(a_router_elsewhere_is_not_noted),
		TEST(a_sandbox_is_found_or_certainly_not_there),
		TEST(a_sandbox_is_absent_when_both_generations_say_so),
		TEST(a_list_has_what_is_ours_and_runs),
		TEST(a_list_that_does_not_end_or_is_wrong_is_none),
		TEST(an_end_is_told_when_it_is_proven),
		TEST(a_command_has_its_output_and_its_code),
		TEST(a_broken_stream_goes_on_where_it_ended),
		TEST(a_token_that_ran_out_is_renewed_once),
		TEST(a_sandbox_is_gone_only_on_the_control_service_s_word),
		TEST(a_code_that_is_not_told_is_none),
		TEST(output_that_is_no_stream_of_frames_is_none),
		TEST(a_file_is_written_and_its_size_is_asked_for_there),
		TEST(the_router_of_a_new_sandbox_is_waited_for),
		TEST(ids_of_commands_are_uuids_and_their_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
