/* Errors: the table and the record of the running thread. */
#include "err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_row rows[] = {
	[OK] = {"ok", 200, 0, false, "", ""},
#define ERR(name, code, http, rpc, again, text, advice)                                            \
	[ERR_##name] = {code, http, rpc, again, text, advice},
#include "err.def"
#undef ERR
};

static _Thread_local struct fault current;

const struct err_row *err_row(enum err e)
{
	assert(e > OK && e < ERR__MAX);
	return &rows[e];
}

enum err fail(enum err e, const char *field, const char *fmt, ...)
{
	va_list ap;
	current = (struct fault){.err = e};
	(void)snprintf(current.field, sizeof current.field, "%s", field ? field : "");
	va_start(ap, fmt);
	(void)vsnprintf(current.detail, sizeof current.detail, fmt, ap);
	va_end(ap);
	return e;
}

const struct fault *fault_of(enum err e)
{
	if (current.err != e)
		current = (struct fault){.err = e};
	return &current;
}

void fault_retry_after(int seconds)
{
	current.retry_after_s = seconds;
}

void fault_restore(const struct fault *f)
{
	current = *f;
}
