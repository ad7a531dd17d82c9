/*
 * Reads the replies of the spool scripts, byte by byte of their form. It promises that an exit
 * code, a size or an offset only comes out of a reply that is whole and fits the question. It does
 * not judge what the numbers mean for the job.
 */
#include "spool_reply.h"

#include "arena.h"
#include "text.h"

#include <string.h>

#define MARK       "sbx1 "
#define FIELD_MAX  20 /* digits of the largest size */
#define SIZE_LIMIT 0x3fffffffffffffffLL

/* One line of the text without its end; p moves behind it. False when there is no whole line. */
static bool take_line(const char **p, const char *end, const char **ret, size_t *ret_n)
{
	const char *nl = memchr(*p, '\n', (size_t)(end - *p));
	if (!nl)
		return false;
	*ret = *p;
	*ret_n = (size_t)(nl - *p);
	*p = nl + 1;
	return true;
}

/* The next word of a line into out (NUL-terminated); words are parted by exactly one blank. */
static bool take_field(const char **p, const char *end, char out[FIELD_MAX])
{
	size_t n = 0;
	while (*p < end && **p != ' ' && n < FIELD_MAX - 1)
		out[n++] = *(*p)++;
	out[n] = '\0';
	if (n == 0 || strlen(out) != n || (*p < end && **p != ' '))
		return false;
	if (*p < end)
		(*p)++;
	return true;
}

static bool take_size(const char **p, const char *end, int64_t *ret)
{
	char word[FIELD_MAX];
	return take_field(p, end, word) && int_parse(word, 0, SIZE_LIMIT, ret);
}

/* A number, or "-" for unknown. */
static bool take_maybe(const char **p, const char *end, int64_t *ret)
{
	char word[FIELD_MAX];
	*ret = -1;
	return take_field(p, end, word) &&
	       (strcmp(word, "-") == 0 || int_parse(word, 0, SIZE_LIMIT, ret));
}

static const char *const states[] = {"new", "run", "done", "lost", NULL};

static bool take_code(const char **p, const char *end, struct spool_status *s)
{
	char word[FIELD_MAX];
	int64_t value = -1;
	if (!take_field(p, end, word))
		return false;
	bool right = s->state == SPOOL_DONE ? strlen(word) <= 3 && int_parse(word, 0, 255, &value)
					    : strcmp(word, "-") == 0;
	s->code = (int)value;
	return right;
}

static bool take_state(const char **p, const char *end, struct spool_status *s)
{
	char state[FIELD_MAX], late[FIELD_MAX];
	int i = 0;
	if (!take_field(p, end, state))
		return false;
	while (states[i] && strcmp(states[i], state) != 0)
		i++;
	s->state = (enum spool_state)i;
	if (!states[i] || !take_code(p, end, s) || !take_field(p, end, late))
		return false;
	s->timed_out = strcmp(late, "1") == 0;
	return s->timed_out || strcmp(late, "0") == 0;
}

static bool take_head(const char *p, const char *end, struct spool_status *s)
{
	return take_state(&p, end, s) && take_size(&p, end, &s->out_bytes) &&
	       take_size(&p, end, &s->err_bytes) && take_size(&p, end, &s->out_at) &&
	       take_size(&p, end, &s->err_at) && take_maybe(&p, end, &s->peak_bytes) &&
	       take_maybe(&p, end, &s->oom_kills) && p == end && p[-1] != ' ';
}

/* A slice must lie where it was asked for and inside what there is. */
static bool slice_fits(int64_t from, int64_t at, int64_t size, int64_t slice, size_t n)
{
	int64_t want = size - slice > from ? size - slice : from;
	return at == want && (n == 0 || (int64_t)n <= size - at);
}

/* Lines of base64 up to an empty one. */
static bool take_slice(
	const char **p, const char *end, struct arena *a, const char **ret, size_t *ret_n)
{
	char *digits = arena_take(a, (size_t)(end - *p) + 1);
	size_t n = 0, line_n;
	const char *line;
	while (take_line(p, end, &line, &line_n)) {
		if (line_n == 0) {
			*ret = (const char *)base64_decode(a, digits, n, ret_n);
			return *ret;
		}
		memcpy(digits + n, line, line_n);
		n += line_n;
	}
	return false;
}

static bool read_poll(const char *p, const char *end, const struct spool_ask *ask, struct arena *a,
	struct spool_status *s)
{
	const char *head;
	size_t head_n;
	return take_line(&p, end, &head, &head_n) &&
	       take_head(head + sizeof MARK - 1, head + head_n, s) &&
	       take_slice(&p, end, a, &s->out, &s->out_n) &&
	       take_slice(&p, end, a, &s->err, &s->err_n) && p == end &&
	       slice_fits(ask->out_from, s->out_at, s->out_bytes, ask->slice, s->out_n) &&
	       slice_fits(ask->err_from, s->err_at, s->err_bytes, ask->slice, s->err_n);
}

static bool is_line(const char *p, size_t n, const char *word)
{
	size_t mark = sizeof MARK - 1, len = strlen(word);
	return n == mark + len + 1 && memcmp(p, MARK, mark) == 0 &&
	       memcmp(p + mark, word, len) == 0 && p[n - 1] == '\n';
}

enum err spool_read_poll(const char *p, size_t n, const struct spool_ask *ask, struct arena *a,
	struct spool_status *ret)
{
	struct spool_status s = {
		.state = SPOOL_GONE, .code = -1, .peak_bytes = -1, .oom_kills = -1};
	if (is_line(p, n, "reset"))
		return fail(ERR_BOX_GONE, NULL, "the machine of the sandbox was replaced");
	if (is_line(p, n, "gone")) {
		s.out = s.err = "";
		*ret = s;
		return OK;
	}
	if (n < sizeof MARK || memcmp(p, MARK, sizeof MARK - 1) != 0 ||
		!read_poll(p, p + n, ask, a, &s))
		return fail(ERR_UPSTREAM, NULL, "the state of the job came back in a wrong form");
	*ret = s;
	return OK;
}

enum err spool_read_word(const char *p, size_t n, const char *const *words, int *ret)
{
	for (int i = 0; words[i]; i++)
		if (is_line(p, n, words[i])) {
			*ret = i;
			return OK;
		}
	return fail(ERR_UPSTREAM, NULL, "a spool script answered in a wrong form");
}

enum err spool_read_first(
	const char *p, size_t n, const char *const *words, int *ret, size_t *ret_n)
{
	const char *nl = memchr(p, '\n', n);
	*ret_n = nl ? (size_t)(nl + 1 - p) : n;
	return spool_read_word(p, *ret_n, words, ret);
}
