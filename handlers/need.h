/*
 * How much memory a job needs, and whether it fits on the machine that asks.
 *
 * Pure functions: no database, no clock. All figures are MB of 1 048 576 bytes. The need comes from
 * the caller's own number, else from the account's own observed peaks, else from the table of job
 * kinds (need_rows.c); the reason text always says which. docs/memory.md explains the figures.
 */
#pragma once
#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

#define NEED_HISTORY_MIN 3    /* own observations from which on they beat the table */
#define NEED_WORKERS_MAX 1024 /* a written worker count above it is read as this many */
#define NEED_CORES_GUESS 4    /* workers when neither the text nor the caller tells a number */
#define NEED_FLOOR_MB    512  /* kept free at least, unless the caller says otherwise */
/* Systems without a memory limit report 2^63 - 4096 or 2^64 - 1 bytes: in MB, this or more. */
#define NEED_NO_LIMIT_MB 8796093022207.0

/* -- the table -- */

enum need_basis {
	NEED_UNKNOWN, /* no row: 500 MB are assumed */
	NEED_LIGHT,   /* a command like ls: never a reason to offload */
	NEED_ROW,     /* a row of the table, with its margin of a quarter */
	NEED_GUESS,   /* a script or a recipe hides the tool: the largest usual one, with margin */
	NEED_SETTING, /* a memory setting in the text itself */
};
enum need_runtime { RUNTIME_PLAIN, RUNTIME_NODE, RUNTIME_JVM }; /* has its own heap limit */

struct need_row {
	const char *kind; /* shown to the caller */
	/* Ends with NULL. Words apart by spaces, alternatives by '|'; '*' at the end of an
	 * alternative matches any rest, '$' that no further argument follows. The first word is the
	 * program. */
	const char *const *patterns;
	const char *also;      /* one of these texts ('|') stands somewhere in the part; NULL: no
				  condition */
	int64_t mb, worker_mb; /* mb + workers * worker_mb */
	int64_t serial_mb;     /* instead, when no worker count is written; 0: workers = cores */
	const char *options;   /* that carry the worker count, apart by spaces; NULL: none */
	enum need_runtime runtime;
	enum need_basis basis;
	const char *example; /* a command of this kind */
};
extern const struct need_row need_rows[]; /* tried in this order; ends with a NULL kind */

struct need {
	int64_t mb;       /* with margin; 1 ... MEMORY_MB_MAX */
	int64_t plain_mb; /* without margin */
	const char *kind; /* static text; of the largest part */
	enum need_basis basis;
	enum need_runtime runtime;
	int64_t workers;      /* counted into mb; 0: this kind does not multiply */
	bool workers_written; /* false: assumed from cores */
	bool summed;          /* several parts run at the same time */
};

/* Estimates from the whole job text. cores: of the caller's machine, 0 or less: unknown. Any text
 * is fine; beyond NEED_TEXT_MAX bytes it is not read. */
#define NEED_TEXT_MAX 64000 /* CMD_CHARS_MAX characters of 4 bytes */
void need_from_table(const char *job, int cores, struct need *ret);

/* -- own history -- */

/* The 90th percentile (nearest rank) of the positive peaks, 0 when there are none. */
int64_t need_p90(const int64_t *peaks_mb, size_t n);
/* What a run counts as: after an OOM kill twice its peak, for the peak is only the limit it hit. */
int64_t need_peak_counted(int64_t peak_mb, bool oom);

/* -- judgement -- */

struct memory_seen {
	double free_mb, total_mb, job_mb, floor_mb; /* ABSENT_NUM: not given; free_mb is required */
};

/* ERR_BAD_INPUT, naming field and unit: free_mb missing; a figure negative, not finite or above
 * MEMORY_MB_MAX; total_mb of 0; free_mb above total_mb. A total_mb from NEED_NO_LIMIT_MB on means
 * "no limit" and is accepted. */
MUST_USE enum err need_check_input(const struct memory_seen *in);

enum need_source { NEED_FROM_CALLER, NEED_FROM_HISTORY, NEED_FROM_TABLE };
struct need_choice {
	enum need_source source;
	double mb;
	size_t observations; /* NEED_FROM_HISTORY */
	struct need table;   /* NEED_FROM_TABLE */
};

/* job_mb, else NEED_HISTORY_MIN or more positive peaks, else the table. job may be NULL. */
void need_choose(const struct memory_seen *in, const int64_t *peaks_mb, size_t n, const char *job,
	int cores, struct need_choice *ret);

enum memory_status { MEMORY_OK, MEMORY_LOW, MEMORY_CRITICAL };
struct verdict {
	enum memory_status status;
	bool offload; /* verdict "offload"; else "run_local" */
	double need_mb, floor_mb;
	double left_mb;      /* free - need; negative when it does not fit */
	const char *reason;  /* in numbers; in the arena */
	const char *warning; /* what may happen, static; NULL when the status is ok */
	const char *advice;  /* what an offloaded job should set as well, static; NULL: nothing */
};
/* in passed need_check_input. */
void need_judge(struct arena *a, const struct memory_seen *in, const struct need_choice *choice,
	struct verdict *ret);

/* -- after the run -- */

enum oom_sign {
	OOM_NONE,
	OOM_SUSPECTED,
	OOM_CERTAIN, /* the kernel or the provider counted a kill */
	OOM_HEAP,    /* the runtime's own heap limit: more memory alone does not help */
};
/* code: exit code, negative when unknown. killed_by_us: kill, cancel or time-out of ours.
 * oom_kills: growth of the counter, negative when unknown. err_tail: end of standard error, any
 * bytes. */
enum oom_sign oom_read(
	int code, bool killed_by_us, int64_t oom_kills, const char *err_tail, size_t n);
/* oom_suspected of a job: OOM_SUSPECTED or OOM_CERTAIN. */
bool oom_signs(int code, bool killed_by_us, int64_t oom_kills, const char *err_tail, size_t n);
