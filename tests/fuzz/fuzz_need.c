/*
 * Fuzz target: any job text, once as a string and once as bytes with NULs, through everything that
 * reads commands. Stops when an estimate is no memory size, a word is no safe name, or a figure of
 * the verdict is not what the input says.
 */
#include "arena.h"
#include "handlers/first_word.h"
#include "handlers/need.h"
#include "handlers/shell_words.h"
#include "bounds.h"
#include "shape.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool held)
{
	if (!held)
		abort();
}

static void read_words(const char *text, size_t n)
{
	char room[64];
	struct shell_word w = {.p = room, .cap = sizeof room};
	struct shell s = shell_start(text, n);
	size_t tokens = 0;
	for (enum shell_token t; (t = shell_next(&s, &w)) != SHELL_END; tokens++) {
		require(s.at <= s.end && tokens <= n);
		require(t != SHELL_WORD || (w.n < sizeof room && room[w.n] == 0));
	}
}

static void judge(struct arena *a, const char *text)
{
	struct memory_seen in = {1000, 8000, ABSENT_NUM, ABSENT_NUM};
	struct need_choice choice;
	struct verdict v;
	need_choose(&in, NULL, 0, text, 4, &choice);
	const struct need *need = &choice.table;
	require(need->mb >= 1 && need->mb <= MEMORY_MB_MAX);
	require(need->plain_mb >= 1 && need->plain_mb <= need->mb);
	require(need->kind && need->workers >= 0 && need->workers <= NEED_WORKERS_MAX);
	need_judge(a, &in, &choice, &v);
	require(v.need_mb == (double)need->mb && v.left_mb == 1000 - v.need_mb);
	require(utf8_valid(v.reason, strlen(v.reason), NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP_ARENA struct arena *a = arena_new(1 << 20);
	char *text = arena_copy(a, data, n < NEED_TEXT_MAX ? n : NEED_TEXT_MAX);
	char word[FIRST_WORD_SIZE];
	read_words((const char *)data, n);
	first_word(text, word);
	require(name_safe(word, FIRST_WORD_SIZE - 1));
	judge(a, text);
	(void)oom_read(1, false, 0, (const char *)data, n);
	return 0;
}
