/* Results sealed to a token: known answers, and everything that must not open. */
#include "seal_world.h"

#include "bounds.h"
#include "token.h"

#include <openssl/evp.h>

static const char known_text[] = "cc_live_0123456789ABCDEFGHIJKLMNOPQRST2S6kUD";

static struct secret known_token(void)
{
	return secret_new(known_text, strlen(known_text));
}

static bool opens(const struct secret *t, struct id job, struct id token_id, struct blob b)
{
	uint8_t *text = NULL;
	size_t n = 77;
	enum err e = result_open(t, job, token_id, b, arena, &text, &n);
	assert_true(e == OK || e == ERR_SEALED);
	assert_true(e == OK || (text == NULL && n == 77));
	return e == OK;
}

static void a_result_of_another_implementation_opens(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = known_token();
	uint8_t public_key[RESULT_PUBLIC_BYTES], *text = NULL;
	size_t n = 0;
	result_public(&t, public_key);
	assert_memory_equal(public_key, from_hex(v_result_public).p, sizeof public_key);
	assert_int_equal(result_open(&t, id_from_hex(v_result_job), id_from_hex(v_result_token_id),
				 from_hex(v_result), arena, &text, &n),
		OK);
	assert_int_equal(n, 7);
	assert_memory_equal(text, "exit 0\n", 8);
}

static void what_was_sealed_opens_with_the_token_alone(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 16, 32768, REPLY_BYTES_MAX};
	CLEANUP_SECRET struct secret t = token_new();
	uint8_t public_key[RESULT_PUBLIC_BYTES];
	struct id job = id_new(), token_id = id_new();
	result_public(&t, public_key);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct blob b;
		uint8_t *text, *in = arena_take(arena, sizes[i] + 1);
		size_t n;
		memset(in, 'r', sizes[i]);
		assert_int_equal(
			result_seal(public_key, job, token_id, in, sizes[i], arena, &b), OK);
		assert_int_equal(b.n, sizes[i] + RESULT_OVERHEAD);
		assert_int_equal(result_open(&t, job, token_id, b, arena, &text, &n), OK);
		assert_int_equal(n, sizes[i]);
		assert_memory_equal(text, in, n + 1);
		if (n > 8)
			assert_null(memmem(b.p, b.n, in, 8));
	}
}

static void another_token_job_or_token_id_does_not_open(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = token_new();
	CLEANUP_SECRET struct secret other = token_new();
	uint8_t public_key[RESULT_PUBLIC_BYTES];
	struct id job = id_new(), token_id = id_new();
	struct blob b;
	result_public(&t, public_key);
	assert_int_equal(result_seal(public_key, job, token_id, "abc", 3, arena, &b), OK);
	assert_true(opens(&t, job, token_id, b));
	assert_false(opens(&other, job, token_id, b));
	assert_false(opens(&t, id_new(), token_id, b));
	assert_false(opens(&t, job, id_new(), b));
	assert_false(opens(&t, token_id, job, b));
	for (size_t i = 0; i < 16; i++) {
		job.b[i] ^= 0x80;
		assert_false(opens(&t, job, token_id, b));
		job.b[i] ^= 0x80;
		token_id.b[i] ^= 0x80;
		assert_false(opens(&t, job, token_id, b));
		token_id.b[i] ^= 0x80;
	}
	t.p[20] ^= 1;
	assert_false(opens(&t, job, token_id, b));
}

static void every_flipped_bit_of_a_result_is_noticed(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = known_token();
	struct id job = id_from_hex(v_result_job), token_id = id_from_hex(v_result_token_id);
	struct blob b = from_hex(v_result);
	assert_true(opens(&t, job, token_id, b));
	for (size_t bit = 0; bit < 8 * b.n; bit++)
		if (opens(&t, job, token_id, with_flipped_bit(b, bit)))
			fail_msg("bit %zu", bit);
}

static void every_other_length_of_a_result_is_refused(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = known_token();
	struct id job = id_from_hex(v_result_job), token_id = id_from_hex(v_result_token_id);
	struct blob b = from_hex(v_result);
	for (size_t n = 0; n < b.n; n++) {
		struct blob cut = {(const uint8_t *)arena_copy(arena, b.p, n), n};
		assert_false(opens(&t, job, token_id, cut));
	}
	struct blob longer = {(const uint8_t *)arena_copy(arena, b.p, b.n), b.n + 1};
	assert_false(opens(&t, job, token_id, longer));
	assert_false(opens(&t, job, token_id, (struct blob){NULL, 0}));
}

/* What a database holds: the public half, and what can be hashed or derived from it. */
static void nothing_in_the_database_opens_a_result(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = known_token();
	struct id job = id_from_hex(v_result_job), token_id = id_from_hex(v_result_token_id);
	struct blob b = from_hex(v_result), public_key = from_hex(v_result_public);
	uint8_t hash[TOKEN_HASH_BYTES];
	token_hash(&t, hash);
	CLEANUP_SECRET struct secret from_hash = secret_new(hash, sizeof hash);
	CLEANUP_SECRET struct secret from_public = secret_new(public_key.p, public_key.n);
	CLEANUP_SECRET struct secret empty = secret_new("", 0);
	assert_false(opens(&from_hash, job, token_id, b));
	assert_false(opens(&from_public, job, token_id, b));
	assert_false(opens(&empty, job, token_id, b));
}

static void results_of_one_job_have_different_blobs(void **state)
{
	(void)state;
	CLEANUP_SECRET struct secret t = token_new();
	uint8_t public_key[RESULT_PUBLIC_BYTES];
	struct id job = id_new(), token_id = id_new();
	struct blob a, b;
	result_public(&t, public_key);
	assert_int_equal(result_seal(public_key, job, token_id, "abc", 3, arena, &a), OK);
	assert_int_equal(result_seal(public_key, job, token_id, "abc", 3, arena, &b), OK);
	assert_memory_not_equal(a.p + 1, b.p + 1, 32);
	assert_memory_not_equal(a.p + 33, b.p + 33, 12);
	assert_memory_not_equal(a.p + 45, b.p + 45, 3);
}

/* RFC 7748, section 6.1: with these the shared secret is zero, whatever the other key. */
static void points_of_small_order_are_refused_on_both_sides(void **state)
{
	(void)state;
	static const char *const points[] = {
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
	};
	CLEANUP_SECRET struct secret t = known_token();
	struct id job = id_from_hex(v_result_job), token_id = id_from_hex(v_result_token_id);
	assert_false(opens(&t, job, token_id, from_hex(v_result_forged)));
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		struct blob b, point = from_hex(points[i]), forged = from_hex(v_result);
		assert_int_equal(
			result_seal(point.p, job, token_id, "abc", 3, arena, &b), ERR_SEALED);
		uint8_t *p = (uint8_t *)arena_copy(arena, forged.p, forged.n);
		memcpy(p + 1, point.p, 32);
		assert_false(opens(&t, job, token_id, (struct blob){p, forged.n}));
	}
}

static void public_halves_differ_and_are_stable(void **state)
{
	(void)state;
	uint8_t a[RESULT_PUBLIC_BYTES], b[RESULT_PUBLIC_BYTES];
	CLEANUP_SECRET struct secret t = token_new();
	CLEANUP_SECRET struct secret other = token_new();
	result_public(&t, a);
	result_public(&t, b);
	assert_memory_equal(a, b, sizeof a);
	result_public(&other, b);
	assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_result_of_another_implementation_opens),
		TEST(what_was_sealed_opens_with_the_token_alone),
		TEST(another_token_job_or_token_id_does_not_open),
		TEST(every_flipped_bit_of_a_result_is_noticed),
		TEST(every_other_length_of_a_result_is_refused),
		TEST(nothing_in_the_database_opens_a_result),
		TEST(results_of_one_job_have_different_blobs),
		TEST(points_of_small_order_are_refused_on_both_sides),
		TEST(public_halves_differ_and_are_stable),
	};
	secret_init();
	return cmocka_run_group_tests_name("seal_result", tests, NULL, NULL);
}
