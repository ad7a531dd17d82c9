/*
 * Reading a shell command text word by word. It promises to find the same word borders as sh and
 * bash for ordinary commands, and never to read past the end for any others. It does not expand,
 * does not know aliases or functions, and does not judge what the words mean.
 */
#include "shell_words.h"

#include <string.h>

/* Deeper nesting than people write; a fixed stack, so that no text can exhaust the thread's. */
#define NEST_MAX 32

struct shell shell_start(const char *text, size_t n)
{
	return (struct shell){.at = text, .end = text + n};
}

static bool is_name_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool ends_word(char c)
{
	return c && strchr(" \t\r\n;&|()<>", c);
}

static void emit(struct shell_word *w, char c)
{
	if (w->n + 1 < w->cap)
		w->p[w->n++] = c;
	else
		w->cut = true;
}

/* The character that closes what begins with c (p: behind it), or 0 when c opens nothing. */
static char closing(char c, const char *p, const char *end, char top)
{
	if (c == '"' || c == '`')
		return c;
	if (c == '(' && top == ')')
		return ')';
	if (c != '$' || p == end)
		return 0;
	return *p == '(' ? ')' : *p == '{' ? '}' : 0;
}

/* p: behind the opening. Returns what follows the matching close, NULL when there is none. */
static const char *skip_nested(const char *p, const char *end, char close)
{
	char stack[NEST_MAX] = {close};
	size_t depth = 1;
	while (p < end) {
		char c = *p++, top = stack[depth - 1];
		if (c == top) {
			if (--depth == 0)
				return p;
		} else if (c == '\\') {
			p += p < end;
		} else if (c == '\'' && top != '"') {
			p = memchr(p, '\'', (size_t)(end - p));
			if (!p)
				return NULL;
			p++;
		} else if ((close = closing(c, p, end, top))) {
			if (depth == NEST_MAX)
				return NULL;
			stack[depth++] = close;
			p += c == '$';
		}
	}
	return NULL;
}

static void word_left_open(struct shell *s, struct shell_word *w)
{
	w->open = true;
	s->at = s->end;
}

/* c is $ or a backquote, already behind s->at. */
static void read_expansion(struct shell *s, struct shell_word *w, char c)
{
	emit(w, '$');
	char next = s->at < s->end ? *s->at : 0;
	char close = c == '`' ? '`' : next == '(' ? ')' : next == '{' ? '}' : 0;
	if (close) {
		const char *p = skip_nested(s->at + (c == '$'), s->end, close);
		if (p)
			s->at = p;
		else
			word_left_open(s, w);
	} else if (next && strchr("$?!@*#-", next)) {
		s->at++;
	} else {
		while (s->at < s->end && is_name_char(*s->at))
			s->at++;
	}
}

static void read_single(struct shell *s, struct shell_word *w)
{
	while (s->at < s->end && *s->at != '\'')
		emit(w, *s->at++);
	if (s->at < s->end)
		s->at++;
	else
		word_left_open(s, w);
}

/* $'...': like single quotes, but a backslash keeps a quote from closing. */
static void read_escaped(struct shell *s, struct shell_word *w)
{
	for (s->at++; s->at < s->end && *s->at != '\''; s->at++) {
		if (*s->at == '\\' && s->at + 1 < s->end)
			s->at++;
		emit(w, *s->at);
	}
	if (s->at < s->end)
		s->at++;
	else
		word_left_open(s, w);
}

static void read_backslash(struct shell *s, struct shell_word *w)
{
	if (s->at == s->end)
		return;
	if (*s->at != '\n')
		emit(w, *s->at);
	s->at++;
}

static void read_double(struct shell *s, struct shell_word *w)
{
	while (s->at < s->end) {
		char c = *s->at++;
		if (c == '"')
			return;
		if (c == '$' || c == '`')
			read_expansion(s, w, c);
		else if (c == '\\' && s->at < s->end && strchr("$`\"\\\n", *s->at) && *s->at)
			read_backslash(s, w);
		else
			emit(w, c);
	}
	word_left_open(s, w);
}

static void read_piece(struct shell *s, struct shell_word *w)
{
	char c = *s->at++;
	if (c == '\\')
		read_backslash(s, w);
	else if (c == '\'')
		read_single(s, w);
	else if (c == '"')
		read_double(s, w);
	else if (c == '$' && s->at < s->end && *s->at == '\'')
		read_escaped(s, w);
	else if (c == '$' || c == '`')
		read_expansion(s, w, c);
	else
		emit(w, c);
}

/* Behind NAME[index], when there is an index at p. */
static const char *skip_index(const char *p, const char *end)
{
	if (p == end || *p != '[')
		return p;
	while (p < end && *p != ']' && *p != ' ' && *p != '\n')
		p++;
	return p + (p < end && *p == ']');
}

static bool assignment_at(const char *p, const char *end)
{
	if (p == end || is_digit(*p) || !is_name_char(*p))
		return false;
	while (p < end && is_name_char(*p))
		p++;
	p = skip_index(p, end);
	if (p < end && *p == '+')
		p++;
	return p < end && *p == '=';
}

static void read_word(struct shell *s, struct shell_word *w)
{
	*w = (struct shell_word){.p = w->p, .cap = w->cap};
	w->assignment = assignment_at(s->at, s->end);
	while (s->at < s->end && !ends_word(*s->at))
		read_piece(s, w);
	w->p[w->n] = 0;
}

static void skip_blanks(struct shell *s)
{
	while (s->at < s->end) {
		if (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
			s->at++;
		else if (*s->at == '\\' && s->at + 1 < s->end && s->at[1] == '\n')
			s->at += 2;
		else
			return;
	}
}

static void skip_line(struct shell *s)
{
	const char *p = memchr(s->at, '\n', (size_t)(s->end - s->at));
	s->at = p ? p : s->end;
}

static void skip_heredoc(struct shell *s, const char *delimiter)
{
	size_t n = strlen(delimiter);
	while (s->at < s->end) {
		while (s->at < s->end && *s->at == '\t')
			s->at++;
		const char *line = s->at;
		skip_line(s);
		size_t len = (size_t)(s->at - line);
		s->at += s->at < s->end;
		if (len > 0 && line[len - 1] == '\r')
			len--;
		if (len == n && memcmp(line, delimiter, n) == 0)
			return;
	}
}

static void newline(struct shell *s)
{
	s->at++;
	for (size_t i = 0; i < s->heredocs; i++)
		skip_heredoc(s, s->heredoc[i]);
	s->heredocs = 0;
}

/* <(...) and >(...): a command of its own, passed over. s->at is at the parenthesis. */
static void skip_process(struct shell *s)
{
	const char *p = skip_nested(s->at + 1, s->end, ')');
	s->at = p ? p : s->end;
}

static bool at_char(const struct shell *s, const char *any)
{
	return s->at < s->end && *s->at && strchr(any, *s->at);
}

/* s->at is at < or >. The operator and its target are passed over. */
static void skip_redirection(struct shell *s)
{
	const char *start = s->at;
	while (at_char(s, "<>") && s->at - start < 3)
		s->at++;
	bool heredoc = s->at - start == 2 && start[0] == '<' && start[1] == '<';
	if (at_char(s, "(")) {
		skip_process(s);
		return;
	}
	if (at_char(s, heredoc ? "-" : "&|"))
		s->at++;
	skip_blanks(s);
	char target[SHELL_HEREDOC_SIZE];
	struct shell_word w = {.p = target, .cap = sizeof target};
	read_word(s, &w);
	if (heredoc && !w.cut && w.n && s->heredocs < SHELL_HEREDOCS_MAX)
		memcpy(s->heredoc[s->heredocs++], target, w.n + 1);
}

/* True when a redirection stands here, perhaps behind its descriptor number or an &. */
static bool at_redirection(struct shell *s)
{
	const char *p = s->at;
	if (*p == '&')
		p++;
	else
		while (p < s->end && is_digit(*p))
			p++;
	if (p == s->end || (*p != '>' && *p != '<') || (*s->at == '&' && *p == '<'))
		return false;
	s->at = p;
	return true;
}

static enum shell_token operator_at(struct shell *s)
{
	char c = *s->at;
	if (c == '\n') {
		newline(s);
		return SHELL_NEXT;
	}
	s->at++;
	char next = s->at < s->end ? *s->at : 0;
	if (c == ';' || c == '(' || c == ')')
		return SHELL_NEXT;
	if (next == c || (c == '|' && next == '&'))
		s->at++;
	return next == c ? SHELL_NEXT : SHELL_PIPE;
}

enum shell_token shell_next(struct shell *s, struct shell_word *w)
{
	for (;;) {
		skip_blanks(s);
		if (s->at == s->end)
			return SHELL_END;
		if (*s->at == '#')
			skip_line(s);
		else if (at_redirection(s))
			skip_redirection(s);
		else if (ends_word(*s->at))
			return operator_at(s);
		else
			break;
	}
	read_word(s, w);
	return SHELL_WORD;
}
