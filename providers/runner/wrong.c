/* The table of refusals, and the text of the one at hand. */
#include "wrong.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* clang-format off */
static const struct wrong_row rows[] = {
	[WRONG_NOTHING] =     {200, "", ""},
	[WRONG_REQUEST] =     {400, "bad_request", "the request is not of the expected form"},
	[WRONG_CWD] =         {400, "bad_cwd", "cwd is not a folder in the sandbox"},
	[WRONG_DIRECTORY] =   {400, "is_directory", "path is a folder"},
	[WRONG_FILE] =        {400, "file_error", "the file can not be used"},
	[WRONG_UNSUPPORTED] = {400, "unsupported", "this runner can not do that"},
	[WRONG_TOKEN] =       {401, "unauthorized", "the token is missing or wrong"},
	[WRONG_ORIGIN] =      {403, "forbidden_origin", "requests from web pages are not accepted"},
	[WRONG_ROUTE] =       {404, "not_found", "there is no such route"},
	[WRONG_SANDBOX] =     {404, "sandbox_not_found", "there is no such running sandbox"},
	[WRONG_EXEC] =        {404, "exec_not_found", "there is no such exec in this sandbox"},
	[WRONG_FILE_ABSENT] = {404, "file_not_found", "there is no such file"},
	[WRONG_METHOD] =      {405, "method_not_allowed", "this route does not serve this method"},
	[WRONG_CONFLICT] =    {409, "conflict", "the sandbox of this id is stopping"},
	[WRONG_SIZE] =        {413, "too_large", "the body is too large"},
	[WRONG_CAPACITY] =    {503, "capacity", "there is no room at the moment"},
	[WRONG_CONFIG] =      {503, "misconfigured", "the runner can not make sandboxes"},
	[WRONG_PROVIDER] =    {502, "provider_error", "the sandbox did not answer"},
	[WRONG_LOST] =        {502, "exec_lost", "the sandbox ended while the command ran"},
};
/* clang-format on */
static_assert(sizeof rows / sizeof *rows == WRONG__MAX, "a row for each");

static _Thread_local struct {
	enum wrong of;
	char text[240];
} last;

const struct wrong_row *wrong_row(enum wrong w)
{
	assert(w < WRONG__MAX);
	return &rows[w];
}

enum wrong wrong(enum wrong w, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(last.text, sizeof last.text, fmt, ap);
	va_end(ap);
	last.of = w;
	return w;
}

const char *wrong_text(enum wrong w)
{
	return last.of == w && last.text[0] ? last.text : rows[w].text;
}
