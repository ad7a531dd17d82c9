/*
 * Typed log events, one JSON line each on standard error.
 *
 *   log_event(EV_JOB_ENDED, LOG_ID("job", id), LOG_NAME("outcome", "failed"), LOG_INT("run_ms",
 * ms));
 *
 * There is no format string and no way to pass free text: a name that is not 1 - 64 safe characters
 * is written as "?".
 */
#pragma once
#include "id.h"

#include <stdint.h>

enum event {
#define EVENT(name, text, level) EV_##name,
#include "log.def"
#undef EVENT
	EV__MAX
};

struct log_field {
	enum { LOG_END, LOG_FIELD_ID, LOG_FIELD_INT, LOG_FIELD_NAME } kind;
	const char *name;
	union {
		struct id id;
		int64_t number;
		const char *word;
	};
};

#define LOG_ID(n, v)   ((struct log_field){.kind = LOG_FIELD_ID, .name = (n), .id = (v)})
#define LOG_INT(n, v)  ((struct log_field){.kind = LOG_FIELD_INT, .name = (n), .number = (v)})
#define LOG_NAME(n, v) ((struct log_field){.kind = LOG_FIELD_NAME, .name = (n), .word = (v)})

#define log_event(event, ...)                                                                      \
	log_fields((event), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.kind = LOG_END}})
void log_fields(enum event e, const struct log_field *fields);

/* What this process is called in its lines: "master", "worker", "keeper". */
void log_role(const char *role);
