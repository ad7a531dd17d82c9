/*
 * Commands and files in a sandbox at Modal, through its command router. A command is started under
 * an id that is always the same for the same exec_id, so that it runs once however often it is
 * asked for; output is kept there by offset, so that a broken stream is taken up where it ended.
 */
#include "modal_call.h"

#include "arena.h"
#include "clock.h"
#include "text.h"

#include <string.h>

#define OUT_MAX            (4u << 20)   /* of a short command */
#define BLOCK_BYTES        (256u << 10) /* of one message to standard input */
#define PUT_S              60
#define AFTER_S            5 /* the command is killed so long after its time */
#define SLACK_MS           20000
#define ENDED_MS           30000 /* from the end of its output to the end of a command */
#define BREAKS_MAX         3     /* of one stream that bring nothing */
#define READY_MS           90000 /* for the router of a new sandbox; and between two looks: */
#define READY_PAUSE_MS     100
#define READY_PAUSE_MAX_MS 2000
#define SIGNAL_BASE        128
#define SIGNAL_MAX         64

enum { STREAM_NULL, STREAM_PIPE };

struct command {
	struct call *call;
	const char *box, *exec;
	int64_t ends_ms; /* monotonic */
};

static void write_command_ids(const struct command *k, struct buf *b)
{
	pb_put_str(b, 1, k->call->memo.task);
	pb_put_str(b, 2, k->exec);
}

static int64_t left_ms(const struct command *k)
{
	int64_t left = k->ends_ms - clock_mono_ms();
	return left > 0 ? left + SLACK_MS : SLACK_MS;
}

static enum err start(
	struct command *k, const char *const *argv, int64_t wait_s, bool heard, bool *ret_later)
{
	CLEANUP_BUF struct buf body;
	struct pb_msg none;
	buf_init(&body, MODAL_BODY);
	write_command_ids(k, &body);
	for (; *argv; argv++)
		pb_put_str(&body, 3, *argv);
	pb_put_uint(&body, 4, heard ? STREAM_PIPE : STREAM_NULL);
	pb_put_uint(&body, 5, STREAM_NULL); /* it would be one request more of each poll */
	pb_put_uint(&body, 6, (uint64_t)(wait_s + AFTER_S));
	if (body.full)
		return fail(ERR_INTERNAL, NULL, "a short command is too long");
	struct modal_ask q = {.method = "TaskExecStart",
		.body = &body,
		.effect = EFFECT_REPEATS,
		.ret_later = ret_later};
	return modal_router(k->call, k->box, &q, &none);
}

/* The first command of a sandbox: the router may be there only some time after the sandbox was
 * made. Whether the sandbox still lives is asked for each time (modal_router). */
static enum err start_first(struct command *k, const char *const *argv, int64_t wait_s)
{
	int64_t until = clock_mono_ms() + READY_MS, pause = READY_PAUSE_MS;
	for (;;) {
		bool later = false;
		enum err e = start(k, argv, wait_s, false, &later);
		if (e != ERR_UPSTREAM || !later || clock_mono_ms() > until)
			return e;
		clock_sleep_ms(pause);
		pause = pause * 2 < READY_PAUSE_MAX_MS ? pause * 2 : READY_PAUSE_MAX_MS;
	}
}

/* -- output ------------------------------------------------------------------------------------ */

static bool on_output(void *ctx, struct pb_msg m)
{
	struct buf *out = ctx;
	struct pb_msg data = pb_bytes(m, 1);
	buf_put(out, data.p, data.n);
	return !out->full;
}

/* What came is in out; how it ended says the error. */
static enum err read_once(struct command *k, struct buf *out)
{
	CLEANUP_BUF struct buf body;
	struct grpc_stream s;
	struct pb_msg none;
	buf_init(&body, MODAL_BODY);
	write_command_ids(k, &body);
	pb_put_uint(&body, 3, out->n);
	pb_put_uint(&body, 4, 0); /* standard output */
	grpc_stream_init(&s, on_output, out);
	struct modal_ask q = {.method = "TaskExecStdioRead",
		.body = &body,
		.effect = EFFECT_REPEATS,
		.total_ms = left_ms(k),
		.stream = &s};
	enum err e = modal_router(k->call, k->box, &q, &none);
	/* A whole end with half a frame before it is none. */
	bool whole = s.part.n == 0 && !s.bad;
	grpc_stream_done(&s);
	if (out->full)
		return fail(
			ERR_UPSTREAM, NULL, "a short command wrote more than %u bytes", OUT_MAX);
	if (s.bad || (!e && !whole))
		return fail(ERR_UPSTREAM_UNSURE, NULL, "Modal told of a command in a wrong form");
	return e;
}

static enum err read_all(struct command *k, struct buf *out)
{
	enum err e = ERR_UPSTREAM_UNSURE;
	for (int breaks = 0; breaks < BREAKS_MAX;) {
		size_t had = out->n;
		e = read_once(k, out);
		if (e != ERR_UPSTREAM_UNSURE)
			return e;
		breaks = out->n > had ? 1 : breaks + 1;
		if (clock_mono_ms() > k->ends_ms + SLACK_MS)
			break;
	}
	return e;
}

/* -- the end ----------------------------------------------------------------------------------- */

static enum err ask_end(struct command *k, struct pb_msg *ret)
{
	CLEANUP_BUF struct buf body;
	buf_init(&body, MODAL_BODY);
	write_command_ids(k, &body);
	struct modal_ask q = {.method = "TaskExecWait",
		.body = &body,
		.effect = EFFECT_REPEATS,
		.total_ms = left_ms(k) + ENDED_MS};
	return modal_router(k->call, k->box, &q, ret);
}

static enum err wait_end(struct command *k, int *ret)
{
	struct pb_msg m;
	struct pb_field f;
	enum err e = ERR_UPSTREAM_UNSURE;
	for (int i = 0; e == ERR_UPSTREAM_UNSURE && i < BREAKS_MAX; i++)
		e = ask_end(k, &m);
	if (e)
		return e;
	if (pb_find(m, 1, PB_VARINT, &f) && f.value <= UINT8_MAX) {
		*ret = (int)f.value;
		return OK;
	}
	if (pb_find(m, 2, PB_VARINT, &f) && f.value > 0 && f.value <= SIGNAL_MAX) {
		*ret = SIGNAL_BASE + (int)f.value;
		return OK;
	}
	return fail(ERR_UPSTREAM_UNSURE, NULL, "Modal did not say how a command ended");
}

/* Reaches the sandbox first: the command's ids name its task. */
static enum err begin(
	struct call *c, const char *id, const char *exec_id, int64_t wait_s, struct command *ret)
{
	enum err e = modal_check_id(id);
	e = e ? e : modal_reach(c, id);
	*ret = (struct command){.call = c,
		.box = id,
		.exec = modal_uuid(c->arena, exec_id),
		.ends_ms = clock_mono_ms() + (wait_s + AFTER_S) * 1000};
	return e;
}

enum err modal_exec(struct call *c, const char *id, const char *exec_id, const char *const *argv,
	int64_t wait_s, struct exec_result *ret)
{
	CLEANUP_BUF struct buf out;
	struct command k;
	int code = -1;
	buf_init(&out, OUT_MAX);
	enum err e = begin(c, id, exec_id, wait_s, &k);
	e = e ? e : start(&k, argv, wait_s, true, NULL);
	e = e ? e : read_all(&k, &out);
	e = e ? e : wait_end(&k, &code);
	if (!e)
		*ret = (struct exec_result){.code = code,
			.out = arena_copy(c->arena, out.p, out.n),
			.err = "",
			.out_n = out.n};
	return e;
}

/* -- files ------------------------------------------------------------------------------------- */

static void put_frame(struct buf *frames, struct buf *message)
{
	grpc_frame(frames, message->p, message->n);
	buf_reset(message);
}

/* The whole of a file as messages to standard input, in one body. */
static void write_input(const struct command *k, const uint8_t *p, size_t n, struct buf *frames)
{
	CLEANUP_BUF struct buf message, head;
	buf_init(&message, BLOCK_BYTES + 64);
	buf_init(&head, MODAL_BODY);
	write_command_ids(k, &head);
	pb_put_msg(&message, 1, &head);
	put_frame(frames, &message);
	for (size_t at = 0; at < n; at += BLOCK_BYTES) {
		pb_put_bytes(&message, 2, p + at, n - at < BLOCK_BYTES ? n - at : BLOCK_BYTES);
		put_frame(frames, &message);
	}
	pb_put_bytes(&message, 3, "", 0);
	put_frame(frames, &message);
}

/* A stream that broke leaves the command waiting for the rest until its time is over; the caller
 * writes the file anew under another id. */
static enum err send_input(struct command *k, const void *p, size_t n)
{
	CLEANUP_BUF struct buf frames;
	struct pb_msg none;
	buf_init(&frames, n + (n / BLOCK_BYTES + 3) * 64 + 512);
	write_input(k, p, n, &frames);
	struct modal_ask q = {.method = "TaskExecStdinWriteStream",
		.body = &frames,
		.frames = true,
		.effect = EFFECT_REPEATS,
		.total_ms = PUT_S * 1000};
	return modal_router(k->call, k->box, &q, &none);
}

enum err modal_put(struct call *c, const char *id, const char *path, const void *p, size_t n)
{
	static const char script[] =
		"umask 077; cat >\"$1\" && [ $(($(wc -c <\"$1\"))) -eq \"$2\" ]";
	uint8_t raw[16];
	char hex[2 * sizeof raw + 1];
	struct command k;
	int code = -1;
	random_bytes(raw, sizeof raw);
	hex_encode(hex, raw, sizeof raw);
	const char *const argv[] = {
		"sh", "-c", script, "put", path, arena_printf(c->arena, "%zu", n), NULL};
	enum err e = begin(c, id, hex, PUT_S, &k);
	e = e ? e : start_first(&k, argv, PUT_S);
	e = e ? e : send_input(&k, p, n);
	e = e ? e : wait_end(&k, &code);
	if (!e && code != 0)
		return fail(ERR_UPSTREAM, NULL,
			"a file could not be written in the sandbox (code %d); its disk may be "
			"full",
			code);
	return e;
}
