/* The word that may be stored: what it is, and above all what never gets into it. */
#include "handlers/first_word.h"
#include "handlers/shell_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct row {
	const char *cmd, *word;
};

static void check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char out[FIRST_WORD_SIZE];
		memset(out, 'x', sizeof out);
		first_word(rows[i].cmd, out);
		if (strcmp(out, rows[i].word) != 0)
			fail_msg("\"%s\" gave %s, not %s", rows[i].cmd, out, rows[i].word);
	}
}
#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

static void the_base_name_of_the_command_is_its_word(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"npm test", "npm"},
		{"  npm test", "npm"},
		{"\t\n npm", "npm"},
		{"npm\r\nls", "npm"},
		{"/usr/bin/npm ci", "npm"},
		{"./gradlew build", "gradlew"},
		{"../x/run.sh", "run.sh"},
		{"\"npm\" test", "npm"},
		{"'npm' test", "npm"},
		{"n\\pm test", "npm"},
		{"np\\\nm test", "npm"},
		{"\"$HOME/bin/npm\" test", "npm"},
		{"$(dirname /etc/x)/npm test", "npm"},
		{"npm;ls", "npm"},
		{"npm&&ls", "npm"},
		{"npm|cat", "npm"},
		{"npm>out", "npm"},
		{"npm 2>&1", "npm"},
		{">out npm", "npm"},
		{"2>/dev/null npm", "npm"},
		{"&>out npm", "npm"},
		{"<<EOF cat\nsecret\nEOF\n", "cat"},
		{"# a comment\nnpm test", "npm"},
		{"; npm", "npm"},
		{"(npm test)", "npm"},
		{"g++ -c x.cc", "g++"},
		{"python3.11 -V", "python3.11"},
		{"docker-compose up", "docker-compose"},
		{"sudo npm ci", "sudo"},
		{"cd web && npm ci", "cd"},
		{"npm 'never closed", "npm"},
		{"abcdefghijklmnopqrstuvwxyz012345", "abcdefghijklmnopqrstuvwxyz012345"},
	};
	CHECK(rows);
}

static void leading_assignments_are_skipped(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"X=secret npm test", "npm"},
		{"FOO='a b' npm test", "npm"},
		{"FOO=\"a b\" npm test", "npm"},
		{"FOO=a\\ b npm test", "npm"},
		{"FOO= npm test", "npm"},
		{"A=1 B=2 C=3 npm test", "npm"},
		{"A+=1 npm", "npm"},
		{"A[0]=secret npm", "npm"},
		{"A='it'\\''s' npm", "npm"},
		{"A=$(cat secret file) npm", "npm"},
		{"A=\"$(cat \"my secret\" x)\" npm", "npm"},
		{"A=`cat secret file` npm", "npm"},
		{"A=${B:-my secret} npm", "npm"},
		{"A=$((1 + 2)) npm", "npm"},
		{"A=$(echo ')' secret) npm", "npm"},
		{"A=$(echo \")\" \"$(echo x)\") npm", "npm"},
		{"A=$'a \\' b' npm", "npm"},
		{"A=$\"a b\" npm", "npm"},
		{"A=secret; npm test", "npm"},
		{"A=secret\nnpm test", "npm"},
		{"A=secret && npm test", "npm"},
		{"A=1 /opt/x/make -j4", "make"},
	};
	CHECK(rows);
}

static void everything_else_is_other(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"", "other"},
		{"   ", "other"},
		{"\n\n", "other"},
		{"# only a comment", "other"},
		{"X=secret", "other"},
		{"X='secret words npm test", "other"},
		{"X=\"secret words npm", "other"},
		{"X=$(secret words npm", "other"},
		{"X=`secret words", "other"},
		{"'npm test", "other"},
		{"\"\" npm", "other"},
		{"$SECRET", "other"},
		{"$(cat /etc/secret)", "other"},
		{"`cat /etc/secret`", "other"},
		{"${X:-/etc/secret}", "other"},
		{"'my prog' x", "other"},
		{"/usr/bin/", "other"},
		{"/", "other"},
		{"\"X=/home/secret\" npm", "other"},
		{"--token=/secret", "other"},
		{"https://user:secret@host/path", "other"},
		{"abcdefghijklmnopqrstuvwxyz0123456", "other"},
		{"n\xc3\xbcm test", "other"},
		{"\xff\xfe npm", "other"},
		{"\xe2\x98\x83", "other"},
		{"\x01\x02", "other"},
		{"npm\x7f", "other"},
		{"\\", "other"},
		{"'", "other"},
		{"\"", "other"},
		{"$", "other"},
		{"$(", "other"},
		{"<<", "other"},
		{"<<EOF", "other"},
		{"<(", "other"},
		{"2>", "other"},
		{"&", "other"},
		{"|||", "other"},
		{"a:b", "other"},
		{"C:\\x\\npm", "other"},
		{"!", "other"},
		{"[ -f x ]", "other"},
		{"~/x=y", "other"},
	};
	CHECK(rows);
}

static void a_long_text_gives_a_word_and_no_more(void **state)
{
	(void)state;
	size_t n = 16000;
	char *text = malloc(n + 8);
	assert_non_null(text);
	char out[FIRST_WORD_SIZE];
	for (size_t k = 0; k < 6; k++) {
		memset(text, "a(\"$'\\"[k], n);
		text[n] = 0;
		first_word(text, out);
		assert_string_equal(out, "other");
	}
	/* deeper nesting than any person writes */
	for (size_t i = 0; i + 1 < n; i += 2)
		memcpy(text + i, "$(", 2);
	first_word(text, out);
	assert_string_equal(out, "other");
	/* a long value, then the command */
	memset(text, 's', n);
	memcpy(text, "A=", 2);
	memcpy(text + n, " npm", 5);
	first_word(text, out);
	assert_string_equal(out, "npm");
	free(text);
}

/* The tokens of a text, written as "word word | word ;". */
static void tokens_are(const char *text, const char *want)
{
	char room[256], got[512] = "";
	struct shell_word w = {.p = room, .cap = sizeof room};
	struct shell s = shell_start(text, strlen(text));
	for (enum shell_token t; (t = shell_next(&s, &w)) != SHELL_END;) {
		const char *sign = t == SHELL_WORD ? w.p : t == SHELL_PIPE ? "|" : ";";
		size_t at = strlen(got);
		snprintf(got + at, sizeof got - at, "%s%s", at ? " " : "", sign);
	}
	if (strcmp(got, want) != 0)
		fail_msg("\"%s\" gave \"%s\", not \"%s\"", text, got, want);
}

static void words_and_operators_are_told_apart(void **state)
{
	(void)state;
	tokens_are("a b  c", "a b c");
	tokens_are("a&&b||c;d\ne", "a ; b ; c ; d ; e");
	tokens_are("a|b|&c&d", "a | b | c | d");
	tokens_are("a>x 2>&1 b", "a b");
	tokens_are("a >>x <y <<<z b", "a b");
	tokens_are("a 2>x3 4", "a 4");
	tokens_are("a >|x b", "a b");
	tokens_are("a &>x b", "a b");
	tokens_are("diff <(sort a) <(sort b) c", "diff c");
	tokens_are("cat <<EOF | grep x\nnpm ci\nEOF\nls", "cat | grep x ; ls");
	tokens_are("cat <<-'E F'\n\tnpm\n\tE F\nls", "cat ; ls");
	tokens_are("cat <<A <<B\n1\nA\n2\nB\nls", "cat ; ls");
	tokens_are("cat <<EOF\nnever closed", "cat ;");
	tokens_are("a # b\nc", "a ; c");
	tokens_are("a#b", "a#b");
	tokens_are("\"a\\\"b\\c\"", "a\"b\\c");
	tokens_are("'a\\b'", "a\\b");
	tokens_are("a$X-$1-${Y}-$(z z)-`z z`", "a$-$-$-$-$");
	tokens_are("a \\\n b", "a b");
	tokens_are("(a;b)", "; a ; b ;");
}

static void a_small_room_cuts_the_word_and_says_so(void **state)
{
	(void)state;
	char room[4];
	struct shell_word w = {.p = room, .cap = sizeof room};
	struct shell s = shell_start("abcdef 'gh", 10);
	assert_int_equal(shell_next(&s, &w), SHELL_WORD);
	assert_string_equal(room, "abc");
	assert_true(w.cut);
	assert_false(w.open);
	assert_int_equal(shell_next(&s, &w), SHELL_WORD);
	assert_string_equal(room, "gh");
	assert_false(w.cut);
	assert_true(w.open);
	assert_int_equal(shell_next(&s, &w), SHELL_END);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_base_name_of_the_command_is_its_word),
		cmocka_unit_test(leading_assignments_are_skipped),
		cmocka_unit_test(everything_else_is_other),
		cmocka_unit_test(a_long_text_gives_a_word_and_no_more),
		cmocka_unit_test(words_and_operators_are_told_apart),
		cmocka_unit_test(a_small_room_cuts_the_word_and_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
