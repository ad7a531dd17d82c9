/* Data keys and sealed values: known answers, and everything that must not open. */
#include "seal_world.h"

#include "bounds.h"

static struct data_key known_key(void)
{
	struct blob key = from_hex(v_data_key);
	return (struct data_key){.id = id_from_hex(v_data_key_id),
		.account = id_from_hex(v_account),
		.key = secret_new(key.p, key.n)};
}

static struct keyring *known_ring(void)
{
	char text[256];
	struct keyring *k = NULL;
	snprintf(text, sizeof text, "01020304 %s current\n", v_master);
	write_key_file(text, 0600);
	assert_int_equal(keyring_load(key_file, &k), OK);
	return k;
}

static struct keyring *fresh_ring(void)
{
	struct keyring *k = NULL;
	uint32_t id = 0;
	assert_int_equal(keyring_create(key_file, &id), OK);
	assert_int_equal(keyring_load(key_file, &k), OK);
	return k;
}

static const struct seal_place usual = {"provider-key", "vercel", "main", 1};

static bool opens(const struct data_key *d, const struct seal_place *at, struct blob b)
{
	CLEANUP_SECRET struct secret s = {0};
	enum err e = seal_open(d, at, b, &s);
	assert_true(e == OK || e == ERR_SEALED);
	if (e)
		assert_false(secret_given(&s));
	return e == OK;
}

/* -- known answers -------------------------------------------------------------------------------
 */

static void a_wrapped_key_of_another_implementation_opens(void **state)
{
	(void)state;
	struct keyring *k = known_ring();
	struct data_key d;
	struct blob want = from_hex(v_data_key);
	assert_int_equal(blob_key_id(from_hex(v_wrapped)), 0x01020304);
	assert_int_equal(data_key_open(k, id_from_hex(v_data_key_id), id_from_hex(v_account),
				 from_hex(v_wrapped), &d),
		OK);
	assert_int_equal(d.key.n, want.n);
	assert_memory_equal(secret_bytes(&d.key), want.p, want.n);
	data_key_done(&d);
	assert_false(secret_given(&d.key));
	keyring_free(k);
}

static void values_of_another_implementation_open(void **state)
{
	(void)state;
	char name[65], large[129] = "";
	memset(name, 'k', 64);
	name[64] = 0;
	for (int i = 0; i < 8; i++)
		strcat(large, "0123456789abcdef");
	const struct {
		const char *hex;
		struct seal_place at;
		const char *want;
	} cases[] = {
		{v_value_usual, usual, "{\"token\":\"abc\"}"},
		{v_value_empty, {"provider-key", "e2b", "a", 7}, ""},
		{v_value_large, {"provider-key", "tunnel", name, UINT32_MAX}, large},
	};
	struct data_key d = known_key();
	for (size_t i = 0; i < 3; i++) {
		CLEANUP_SECRET struct secret s = {0};
		assert_int_equal(seal_open(&d, &cases[i].at, from_hex(cases[i].hex), &s), OK);
		assert_int_equal(s.n, strlen(cases[i].want));
		assert_memory_equal(secret_bytes(&s), cases[i].want, s.n + 1);
	}
	data_key_done(&d);
}

static void hmacs_are_those_of_another_implementation(void **state)
{
	(void)state;
	static const char *const purposes[] = {"idempotency", "fingerprint", "address"};
	static const char *const want[] = {v_hmac_idempotency, v_hmac_fingerprint, v_hmac_address};
	struct data_key d = known_key();
	for (size_t i = 0; i < 3; i++) {
		uint8_t out[32];
		seal_hmac(&d, purposes[i], "some text", 9, out);
		assert_memory_equal(out, from_hex(want[i]).p, 32);
	}
	data_key_done(&d);
}

/* -- values --------------------------------------------------------------------------------------
 */

static void what_was_sealed_opens_again(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 15, 16, 17, 4096, SEAL_VALUE_BYTES_MAX};
	struct data_key d = known_key();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct blob b;
		CLEANUP_SECRET struct secret s = {0};
		char *text = arena_take(arena, sizes[i] + 1);
		memset(text, 's', sizes[i]);
		assert_int_equal(seal_value(&d, &usual, text, sizes[i], arena, &b), OK);
		assert_int_equal(b.n, sizes[i] + SEAL_OVERHEAD);
		assert_int_equal(seal_open(&d, &usual, b, &s), OK);
		assert_int_equal(s.n, sizes[i]);
		assert_memory_equal(secret_bytes(&s), text, s.n + 1);
		if (sizes[i] > 8)
			assert_null(memmem(b.p, b.n, text, 8));
	}
	data_key_done(&d);
}

static void a_value_over_the_limit_is_refused(void **state)
{
	(void)state;
	struct data_key d = known_key();
	struct blob b;
	char *text = arena_take(arena, SEAL_VALUE_BYTES_MAX + 1);
	assert_int_equal(
		seal_value(&d, &usual, text, SEAL_VALUE_BYTES_MAX + 1, arena, &b), ERR_BAD_INPUT);
	assert_string_equal(fault_of(ERR_BAD_INPUT)->field, "value");
	data_key_done(&d);
}

static void equal_values_have_different_blobs(void **state)
{
	(void)state;
	enum { N = 1000 };
	struct data_key d = known_key();
	struct blob b[N];
	for (int i = 0; i < N; i++)
		assert_int_equal(seal_value(&d, &usual, "x", 1, arena, &b[i]), OK);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < i; k++)
			assert_memory_not_equal(b[i].p + 5, b[k].p + 5, 12); /* nonces */
	data_key_done(&d);
}

static void a_blob_opens_in_its_own_place_only(void **state)
{
	(void)state;
	static const struct seal_place others[] = {
		{"provider-kez", "vercel", "main", 1},
		{"result", "vercel", "main", 1},
		{"", "vercel", "main", 1},
		{"provider-key", "e2b", "main", 1},
		{"provider-key", "Vercel", "main", 1},
		{"provider-key", "", "main", 1},
		{"provider-key", "vercel", "main2", 1},
		{"provider-key", "vercel", "mai", 1},
		{"provider-key", "vercel", "", 1},
		{"provider-key", "vercel", "main", 0},
		{"provider-key", "vercel", "main", 2},
		{"provider-key", "vercel", "main", 0x01000000},
		/* the same characters, divided elsewhere */
		{"provider-key", "vercelm", "ain", 1},
		{"provider-key", "verce", "lmain", 1},
		{"provider-keyv", "ercel", "main", 1},
	};
	struct data_key d = known_key();
	struct blob b;
	assert_int_equal(seal_value(&d, &usual, "abc", 3, arena, &b), OK);
	assert_true(opens(&d, &usual, b));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(opens(&d, &others[i], b));
	data_key_done(&d);
}

static void a_blob_moved_to_another_account_or_data_key_is_refused(void **state)
{
	(void)state;
	struct data_key d = known_key();
	struct blob b;
	assert_int_equal(seal_value(&d, &usual, "abc", 3, arena, &b), OK);
	for (size_t i = 0; i < 16; i++) {
		d.account.b[i] ^= 1;
		assert_false(opens(&d, &usual, b));
		d.account.b[i] ^= 1;
		d.id.b[i] ^= 1; /* also behind the four bytes that the blob names */
		assert_false(opens(&d, &usual, b));
		d.id.b[i] ^= 1;
	}
	assert_true(opens(&d, &usual, b));
	d.key.p[31] ^= 1;
	assert_false(opens(&d, &usual, b));
	data_key_done(&d);
}

static void swapped_rows_do_not_open(void **state)
{
	(void)state;
	static const struct seal_place place[] = {{"provider-key", "vercel", "main", 1},
		{"provider-key", "vercel", "main", 2}, {"provider-key", "e2b", "main", 1},
		{"provider-key", "vercel", "work", 1}};
	struct data_key d = known_key();
	struct blob b[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(seal_value(&d, &place[i], "abc", 3, arena, &b[i]), OK);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++)
			assert_int_equal(opens(&d, &place[i], b[k]), i == k);
	data_key_done(&d);
}

static void every_flipped_bit_of_a_value_is_noticed(void **state)
{
	(void)state;
	struct data_key d = known_key();
	struct blob b = from_hex(v_value_usual);
	assert_true(opens(&d, &usual, b));
	for (size_t bit = 0; bit < 8 * b.n; bit++)
		if (opens(&d, &usual, with_flipped_bit(b, bit)))
			fail_msg("bit %zu", bit);
	data_key_done(&d);
}

static void every_other_length_of_a_value_is_refused(void **state)
{
	(void)state;
	struct data_key d = known_key();
	struct blob b = from_hex(v_value_usual);
	for (size_t n = 0; n < b.n; n++) {
		struct blob cut = {(const uint8_t *)arena_copy(arena, b.p, n), n};
		assert_false(opens(&d, &usual, cut));
	}
	struct blob longer = {(const uint8_t *)arena_copy(arena, b.p, b.n), b.n + 1};
	assert_false(opens(&d, &usual, longer));
	struct blob huge = {arena_take(arena, 1u << 20), 1u << 20};
	assert_false(opens(&d, &usual, huge));
	assert_false(opens(&d, &usual, (struct blob){NULL, 0}));
	data_key_done(&d);
}

/* -- data keys -----------------------------------------------------------------------------------
 */

static void a_fresh_data_key_opens_with_its_own_ids_only(void **state)
{
	(void)state;
	struct keyring *k = fresh_ring();
	struct id account = id_new(), other = id_new();
	struct data_key d, again;
	struct blob wrapped;
	assert_int_equal(data_key_new(k, account, arena, &d, &wrapped), OK);
	assert_int_equal(blob_key_id(wrapped), keyring_current(k));
	assert_int_equal(data_key_open(k, d.id, account, wrapped, &again), OK);
	assert_memory_equal(secret_bytes(&again.key), secret_bytes(&d.key), SEAL_KEY_BYTES);
	assert_true(id_equal(again.id, d.id) && id_equal(again.account, account));
	data_key_done(&again);
	assert_int_equal(data_key_open(k, d.id, other, wrapped, &again), ERR_SEALED);
	assert_int_equal(data_key_open(k, other, account, wrapped, &again), ERR_SEALED);
	assert_int_equal(data_key_open(k, account, d.id, wrapped, &again), ERR_SEALED);
	data_key_done(&d);
	keyring_free(k);
}

static void every_flipped_bit_and_other_length_of_a_wrapped_key_is_refused(void **state)
{
	(void)state;
	struct keyring *k = known_ring();
	struct id id = id_from_hex(v_data_key_id), account = id_from_hex(v_account);
	struct blob b = from_hex(v_wrapped);
	struct data_key d;
	for (size_t bit = 0; bit < 8 * b.n; bit++)
		if (data_key_open(k, id, account, with_flipped_bit(b, bit), &d) != ERR_SEALED)
			fail_msg("bit %zu", bit);
	for (size_t n = 0; n < b.n; n++) {
		struct blob cut = {(const uint8_t *)arena_copy(arena, b.p, n), n};
		assert_int_equal(blob_key_id(cut), 0);
		assert_int_equal(data_key_open(k, id, account, cut, &d), ERR_SEALED);
	}
	struct blob longer = {(const uint8_t *)arena_copy(arena, b.p, b.n), b.n + 1};
	assert_int_equal(data_key_open(k, id, account, longer, &d), ERR_SEALED);
	keyring_free(k);
}

/* A sealed value has the form of a wrapped key when it is 32 bytes long; it must not pass as one.
 */
static void a_value_does_not_pass_for_a_data_key_nor_the_other_way(void **state)
{
	(void)state;
	char text[256];
	struct keyring *k = NULL;
	struct blob b, key = from_hex(v_data_key);
	struct data_key d = known_key(), other;
	/* a master key with the bytes and the id of the data key */
	snprintf(text, sizeof text, "%.8s %s current\n", v_data_key_id, v_data_key);
	write_key_file(text, 0600);
	assert_int_equal(keyring_load(key_file, &k), OK);
	const struct seal_place at = {"data-key", "", "", 0};
	assert_int_equal(seal_value(&d, &at, key.p, key.n, arena, &b), OK);
	assert_int_equal(blob_key_id(b), keyring_current(k));
	assert_int_equal(data_key_open(k, d.id, d.account, b, &other), ERR_SEALED);
	assert_int_equal(data_key_wrap(k, &d, arena, &b), OK);
	assert_false(opens(&d, &at, b));
	assert_false(opens(&d, &usual, b));
	data_key_done(&d);
	keyring_free(k);
}

static void an_unknown_master_key_is_named(void **state)
{
	(void)state;
	struct keyring *k = fresh_ring();
	struct data_key d;
	enum err e = data_key_open(
		k, id_from_hex(v_data_key_id), id_from_hex(v_account), from_hex(v_wrapped), &d);
	assert_int_equal(e, ERR_SEALED);
	assert_non_null(strstr(fault_of(e)->detail, "01020304 is not in the key file"));
	keyring_free(k);
}

/* Never tried: a blob that names one key is not opened with another one that would fit. */
static void a_key_is_looked_up_and_never_tried(void **state)
{
	(void)state;
	char text[256];
	struct keyring *k = NULL;
	struct data_key d;
	snprintf(text, sizeof text, "0a0b0c0d %s current\n", v_master);
	write_key_file(text, 0600);
	assert_int_equal(keyring_load(key_file, &k), OK);
	assert_int_equal(data_key_open(k, id_from_hex(v_data_key_id), id_from_hex(v_account),
				 from_hex(v_wrapped), &d),
		ERR_SEALED);
	keyring_free(k);
}

static void rotation_keeps_every_value(void **state)
{
	(void)state;
	struct keyring *old = fresh_ring(), *both = NULL, *only = NULL;
	struct data_key d, again;
	struct blob wrapped, rewrapped, value;
	uint32_t first = keyring_current(old), second = 0;
	assert_int_equal(data_key_new(old, id_new(), arena, &d, &wrapped), OK);
	assert_int_equal(seal_value(&d, &usual, "abc", 3, arena, &value), OK);
	struct id id = d.id, account = d.account;
	data_key_done(&d);

	assert_int_equal(keyring_add(key_file, &second), OK);
	assert_int_equal(keyring_make_current(key_file, second), OK);
	assert_int_equal(keyring_load(key_file, &both), OK);
	assert_int_equal(data_key_open(both, id, account, wrapped, &again), OK);
	assert_int_equal(data_key_wrap(both, &again, arena, &rewrapped), OK);
	assert_int_equal(blob_key_id(rewrapped), second);
	data_key_done(&again);

	assert_int_equal(keyring_remove(key_file, first), OK);
	assert_int_equal(keyring_load(key_file, &only), OK);
	assert_int_equal(data_key_open(only, id, account, wrapped, &again), ERR_SEALED);
	assert_int_equal(data_key_open(old, id, account, rewrapped, &again), ERR_SEALED);
	assert_int_equal(data_key_open(only, id, account, rewrapped, &again), OK);
	assert_true(opens(&again, &usual, value));
	data_key_done(&again);
	keyring_free(old);
	keyring_free(both);
	keyring_free(only);
}

static void hmacs_differ_by_purpose_key_and_text(void **state)
{
	(void)state;
	uint8_t out[6][32];
	struct data_key d = known_key();
	seal_hmac(&d, "idempotency", "some text", 9, out[0]);
	seal_hmac(&d, "fingerprint", "some text", 9, out[1]);
	seal_hmac(&d, "fingerprint", "some texu", 9, out[2]);
	seal_hmac(&d, "fingerprint", "", 0, out[3]);
	seal_hmac(&d, "", "some text", 9, out[4]);
	d.key.p[0] ^= 1;
	seal_hmac(&d, "idempotency", "some text", 9, out[5]);
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < i; k++)
			assert_memory_not_equal(out[i], out[k], 32);
	data_key_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrapped_key_of_another_implementation_opens),
		TEST(values_of_another_implementation_open),
		TEST(hmacs_are_those_of_another_implementation),
		TEST(what_was_sealed_opens_again),
		TEST(a_value_over_the_limit_is_refused),
		TEST(equal_values_have_different_blobs),
		TEST(a_blob_opens_in_its_own_place_only),
		TEST(a_blob_moved_to_another_account_or_data_key_is_refused),
		TEST(swapped_rows_do_not_open),
		TEST(every_flipped_bit_of_a_value_is_noticed),
		TEST(every_other_length_of_a_value_is_refused),
		TEST(a_fresh_data_key_opens_with_its_own_ids_only),
		TEST(every_flipped_bit_and_other_length_of_a_wrapped_key_is_refused),
		TEST(a_value_does_not_pass_for_a_data_key_nor_the_other_way),
		TEST(an_unknown_master_key_is_named),
		TEST(a_key_is_looked_up_and_never_tried),
		TEST(rotation_keeps_every_value),
		TEST(hmacs_differ_by_purpose_key_and_text),
	};
	secret_init();
	return cmocka_run_group_tests_name("seal", tests, NULL, NULL);
}
