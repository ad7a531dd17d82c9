/*
 * Protocol buffers and gRPC frames: as another implementation writes them, and whatever is not a
 * whole message.
 */
#include "arena.h"
#include "buf.h"
#include "grpc.h"
#include "proto.h"
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define VECTORS     300
#define LINE_MAX_   8192
#define FAR_NUMBER  536870911
#define BYTES(text) ((struct pb_msg){(const uint8_t *)(text), sizeof(text) - 1})

static int begin(void **state)
{
	*state = arena_new(64 << 20);
	return 0;
}

static int end(void **state)
{
	arena_free(*state);
	return 0;
}

/* -- against another implementation ------------------------------------------------------------ */

struct vector {
	uint64_t u, a, dbits, fbits;
	int64_t n;
	struct pb_msg s, b, inner_b, wire;
};

static struct pb_msg unhex(struct arena *a, const char *word)
{
	size_t n = strcmp(word, "-") == 0 ? 0 : strlen(word) / 2;
	uint8_t *p = arena_take(a, n + 1);
	assert_true(n == 0 || hex_decode(p, n, word));
	return (struct pb_msg){p, n};
}

static struct vector read_vector(struct arena *a, char *line)
{
	char *words[9], *rest = NULL;
	for (int i = 0; i < 9; i++) {
		words[i] = strtok_r(i ? NULL : line, " \n", &rest);
		assert_non_null(words[i]);
	}
	return (struct vector){.u = strtoull(words[0], NULL, 10),
		.s = unhex(a, words[1]),
		.b = unhex(a, words[2]),
		.dbits = strtoull(words[3], NULL, 16),
		.fbits = strtoull(words[4], NULL, 16),
		.a = strtoull(words[5], NULL, 10),
		.inner_b = unhex(a, words[6]),
		.n = strtoll(words[7], NULL, 10),
		.wire = unhex(a, words[8])};
}

static void expect_written(const struct vector *v)
{
	CLEANUP_BUF struct buf b, inner;
	uint32_t fbits = (uint32_t)v->fbits;
	double d;
	float f;
	buf_init(&b, 1 << 16);
	buf_init(&inner, 1 << 16);
	memcpy(&d, &v->dbits, sizeof d);
	memcpy(&f, &fbits, sizeof f);
	pb_put_uint(&inner, 1, v->a);
	pb_put_bytes(&inner, 2, v->inner_b.p, v->inner_b.n);
	pb_put_uint(&b, 1, v->u);
	pb_put_bytes(&b, 2, v->s.p, v->s.n);
	pb_put_bytes(&b, 3, v->b.p, v->b.n);
	pb_put_double(&b, 4, d);
	pb_put_float(&b, 5, f);
	pb_put_msg(&b, 600, &inner);
	pb_put_uint(&b, FAR_NUMBER, (uint64_t)v->n);
	assert_int_equal(b.n, v->wire.n);
	assert_memory_equal(b.p, v->wire.p, b.n);
}

static void expect_bytes(struct pb_msg have, struct pb_msg want)
{
	assert_int_equal(have.n, want.n);
	if (want.n)
		assert_memory_equal(have.p, want.p, want.n);
}

static void expect_read(const struct vector *v)
{
	struct pb_msg m = v->wire;
	struct pb_field f;
	double d = pb_double(m, 4);
	uint64_t dbits;
	memcpy(&dbits, &d, sizeof d);
	assert_true(pb_whole(m));
	assert_int_equal(pb_uint(m, 1), v->u);
	expect_bytes(pb_bytes(m, 2), v->s);
	expect_bytes(pb_bytes(m, 3), v->b);
	assert_int_equal(dbits, v->dbits);
	assert_true(pb_find(m, 5, PB_FIXED32, &f));
	assert_int_equal(f.value, v->fbits);
	assert_int_equal(pb_uint(pb_bytes(m, 600), 1), v->a);
	expect_bytes(pb_bytes(pb_bytes(m, 600), 2), v->inner_b);
	assert_int_equal((int64_t)pb_uint(m, FAR_NUMBER), v->n);
	/* Any message that lost its end is not whole, and nothing behind its end is touched. */
	for (size_t n = 1; n < m.n; n++) {
		uint8_t *copy = malloc(n);
		memcpy(copy, m.p, n);
		(void)pb_whole((struct pb_msg){copy, n});
		(void)pb_uint((struct pb_msg){copy, n}, FAR_NUMBER);
		free(copy);
	}
}

static void random_messages_are_written_and_read_as_protobufjs_does(void **state)
{
	static char line[LINE_MAX_];
	FILE *f = fopen(SOURCE_DIR "/tests/unit/proto_vectors.txt", "r");
	int seen = 0;
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		struct vector v = read_vector(*state, line);
		expect_written(&v);
		expect_read(&v);
		seen++;
	}
	(void)fclose(f);
	assert_int_equal(seen, VECTORS);
}

/* -- what is no message ------------------------------------------------------------------------ */

static void a_broken_message_is_not_whole(void **state)
{
	const struct pb_msg broken[] = {BYTES("\x08"), BYTES("\x08\x80"), BYTES("\x0a\x01"),
		BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), BYTES("\x09\x01\x02\x03"),
		BYTES("\x0d\x01\x02\x03"), BYTES("\x0b"), BYTES("\x0c"), BYTES("\x0e\x01"),
		BYTES("\x0f\x01"), BYTES("\x00\x01"), BYTES("\x02\x00"),
		BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
		BYTES("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
		BYTES("\x80\x80\x80\x80\x10\x01"), BYTES("\x08\x01\x08")};
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		if (pb_whole(broken[i]))
			fail_msg("case %zu is taken for whole", i);
		assert_int_equal(pb_bytes(broken[i], 1).n, 0);
	}
}

static void unknown_and_repeated_fields_do_not_disturb(void **state)
{
	struct pb_msg m = BYTES("\x08\x05\x7d\x01\x02\x03\x04\x08\x07\x12\x01x\x12\x02yz");
	(void)state;
	assert_true(pb_whole(m));
	assert_int_equal(pb_uint(m, 1), 7);
	expect_bytes(pb_bytes(m, 2), BYTES("yz"));
	assert_int_equal(pb_uint(m, 2), 0); /* of another type */
	assert_int_equal(pb_bytes(m, 9).n, 0);
	assert_true(pb_whole((struct pb_msg){0}));
}

static void a_word_has_only_what_a_word_may_have(void **state)
{
	const struct pb_msg others[] = {BYTES(""), BYTES("\x0a\x00"),
		BYTES("\x0a\x03"
		      "a b"),
		BYTES("\x0a\x02"
		      "a\n"),
		BYTES("\x0a\x02"
		      "a\0"),
		BYTES("\x0a\x02\xc3\xa4"),
		BYTES("\x0a\x05"
		      "abcde"),
		BYTES("\x08\x01"), BYTES("\x0a\x01\x7f")};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_null(pb_word(others[i], 1, 4, *state));
	assert_string_equal(pb_word(BYTES("\x0a\x04"
					  "sb-1"),
				    1, 4, *state),
		"sb-1");
}

/* -- frames ------------------------------------------------------------------------------------ */

static struct http_reply reply(const char *body, size_t n, const char *status)
{
	return (struct http_reply){.fate = HTTP_REPLIED,
		.status = 200,
		.type = "application/grpc",
		.body = body,
		.body_n = n,
		.trailers = {status, NULL}};
}

static void a_unary_reply_is_exactly_one_frame(void **state)
{
	const struct pb_msg bad[] = {BYTES(""), BYTES("\0\0\0\0"), BYTES("\0\0\0\0\x01"),
		BYTES("\1\0\0\0\0"), BYTES("\0\0\0\0\0\0\0\0\0\0"), BYTES("\0\xff\xff\xff\xff\x08"),
		BYTES("\0\0\0\0\x01\x08"), BYTES("\0\0\0\0\x02\x08\x01\x08")};
	struct pb_msg m;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct http_reply r = reply((const char *)bad[i].p, bad[i].n, "0");
		assert_false(grpc_message(&r, &m));
	}
	struct http_reply r = reply("\0\0\0\0\x02\x08\x07", 7, "0");
	assert_true(grpc_message(&r, &m));
	assert_int_equal(pb_uint(m, 1), 7);
	r = reply("\0\0\0\0\0", 5, "0");
	assert_true(grpc_message(&r, &m));
	assert_int_equal(m.n, 0);
}

static void an_end_that_is_not_told_is_no_good_end(void **state)
{
	static const char *const none[] = {
		NULL, "", "-1", "17", "0 ", "x", "999999999999999999999"};
	struct http_reply r;
	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		r = reply("", 0, none[i]);
		assert_int_not_equal(grpc_http_status(&r), 200);
	}
	r = reply("", 0, "0");
	assert_int_equal(grpc_http_status(&r), 200);
	r.type = "text/html";
	assert_int_equal(grpc_http_status(&r), 0);
	r.type = "application/grpc+proto";
	assert_int_equal(grpc_http_status(&r), 200);
	r.fate = HTTP_UNSURE;
	assert_int_equal(grpc_http_status(&r), 0);
}

static void statuses_have_the_meaning_of_http(void **state)
{
	static const struct {
		const char *grpc;
		int http;
	} rows[] = {{"3", 400}, {"5", 404}, {"6", 409}, {"7", 403}, {"8", 429}, {"9", 412},
		{"16", 401}};
	static const char *const unsure[] = {"1", "2", "4", "10", "12", "13", "14", "15"};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_reply r = reply("", 0, rows[i].grpc);
		assert_int_equal(grpc_http_status(&r), rows[i].http);
	}
	for (size_t i = 0; i < sizeof unsure / sizeof *unsure; i++) {
		struct http_reply r = reply("", 0, unsure[i]);
		assert_true(grpc_http_status(&r) >= 500);
	}
	struct http_reply page = reply("", 0, NULL);
	page.status = 503;
	assert_int_equal(grpc_http_status(&page), 503);
}

static const char *details_of(struct arena *a, const char *type, float seconds)
{
	CLEANUP_BUF struct buf policy, any, status;
	buf_init(&policy, 64);
	buf_init(&any, 256);
	buf_init(&status, 256);
	pb_put_float(&policy, 1, seconds);
	pb_put_str(&any, 1, type);
	pb_put_msg(&any, 2, &policy);
	pb_put_uint(&status, 1, 8);
	pb_put_msg(&status, 3, &any);
	return base64_encode(a, status.p, status.n);
}

static void a_waiting_time_is_read_with_and_without_padding(void **state)
{
	struct http_reply r = reply("", 0, "8");
	char *text = arena_str(*state,
		details_of(*state, "type.googleapis.com/modal.client.RPCRetryPolicy", 2.5f));
	r.trailers[1] = text;
	assert_int_equal(grpc_retry_after_s(&r, *state), 3);
	text[strcspn(text, "=")] = '\0';
	assert_int_equal(grpc_retry_after_s(&r, *state), 3);
}

static void a_waiting_time_that_makes_no_sense_is_none(void **state)
{
	static const char ours[] = "x/modal.client.RPCRetryPolicy";
	const char *const texts[] = {NULL, "", "!", "AAAA", "A",
		details_of(*state, "x/other.Type", 3), details_of(*state, ours, 0),
		details_of(*state, ours, -1), details_of(*state, ours, __builtin_nanf(""))};
	struct http_reply r = reply("", 0, "8");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		r.trailers[1] = texts[i];
		assert_int_equal(grpc_retry_after_s(&r, *state), 0);
	}
	r.trailers[1] = details_of(*state, ours, __builtin_inff());
	assert_int_equal(grpc_retry_after_s(&r, *state), 3600);
	r.trailers[1] = NULL;
	r.retry_after_s = 7;
	assert_int_equal(grpc_retry_after_s(&r, *state), 7);
}

/* -- streams ----------------------------------------------------------------------------------- */

static bool collect(void *ctx, struct pb_msg m)
{
	struct buf *all = ctx;
	struct pb_msg data = pb_bytes(m, 1);
	buf_put(all, data.p, data.n);
	return !all->full;
}

static void a_stream_is_the_same_in_pieces_of_any_size(void **state)
{
	(void)state;
	for (size_t piece = 1; piece < 40; piece++) {
		CLEANUP_BUF struct buf body, msg, all;
		struct grpc_stream s;
		buf_init(&body, 4096);
		buf_init(&msg, 256);
		buf_init(&all, 256);
		for (int i = 0; i < 5; i++) {
			buf_reset(&msg);
			pb_put_bytes(&msg, 1, "abcdefghijklmnopqrstuvwxyz", (size_t)(i * 6));
			grpc_frame(&body, msg.p, msg.n);
		}
		grpc_stream_init(&s, collect, &all);
		for (size_t at = 0; at < body.n; at += piece)
			grpc_stream_feed(
				&s, body.p + at, body.n - at < piece ? body.n - at : piece);
		assert_false(s.bad);
		assert_int_equal(s.part.n, 0);
		assert_int_equal(all.n, 60);
		grpc_stream_done(&s);
	}
}

static void a_stream_that_is_none_is_bad_at_once(void **state)
{
	const struct pb_msg bad[] = {BYTES("\1\0\0\0\0"), BYTES("{\"error\":1}"),
		BYTES("\0\xff\0\0\0"), BYTES("\0\0\0\0\x01\x08"),
		BYTES("\0\0\0\0\x0c\x0a\x0a"
		      "0123456789")};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CLEANUP_BUF struct buf all;
		struct grpc_stream s;
		buf_init(&all, 5);
		grpc_stream_init(&s, collect, &all);
		grpc_stream_feed(&s, (const char *)bad[i].p, bad[i].n);
		assert_true(s.bad);
		grpc_stream_feed(&s, "\0\0\0\0\0", 5);
		assert_true(s.bad);
		grpc_stream_done(&s);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(random_messages_are_written_and_read_as_protobufjs_does),
		TEST(a_broken_message_is_not_whole),
		TEST(unknown_and_repeated_fields_do_not_disturb),
		TEST(a_word_has_only_what_a_word_may_have),
		TEST(a_unary_reply_is_exactly_one_frame),
		TEST(an_end_that_is_not_told_is_no_good_end),
		TEST(statuses_have_the_meaning_of_http),
		TEST(a_waiting_time_is_read_with_and_without_padding),
		TEST(a_waiting_time_that_makes_no_sense_is_none),
		TEST(a_stream_is_the_same_in_pieces_of_any_size),
		TEST(a_stream_that_is_none_is_bad_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
