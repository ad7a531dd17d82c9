/*
 * Errors: one enum from err.def, and the detail of the error at hand.
 *
 * A function that can fail returns enum err and writes its ret_ parameters only on OK. The detail
 * (field and numbers) is set once, where the failure is first seen, in a record of the running
 * thread; callers on the way up add nothing. Text that came from outside never enters the detail.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum err {
	OK = 0,
#define ERR(name, code, http, rpc, again, text, advice) ERR_##name,
#include "err.def"
#undef ERR
	ERR__MAX
};

struct err_row {
	const char *code; /* stable name in the API */
	int http;         /* status of the REST reply */
	int rpc;          /* JSON-RPC code; 0: shown by MCP as a tool error */
	bool again;       /* the same call may succeed later */
	const char *text, *advice;
};

/* The detail of one error. Fixed size, so that it can be copied and outlive its request. */
struct fault {
	enum err err;
	char field[96];    /* path of the argument, e.g. files[3].path; "" = none */
	char detail[200];  /* our own words and numbers; "" = none */
	int retry_after_s; /* 0 = unknown */
};

#define MUST_USE __attribute__((warn_unused_result))

/* The row of an error; never NULL. e must not be OK. */
const struct err_row *err_row(enum err e);

/* Records the detail for this thread and returns e. field may be NULL. fmt is one of our texts;
 * its arguments are numbers, our own words, or names that passed name_safe(). */
enum err fail(enum err e, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The detail recorded last in this thread, made to match e (a stale record is cleared). */
const struct fault *fault_of(enum err e);

/* How long the caller should wait before it tries again; goes with the record set by fail(). */
void fault_retry_after(int seconds);

/* Puts a copied record back, e.g. one that another thread met. */
void fault_restore(const struct fault *f);
