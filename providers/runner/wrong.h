/*
 * What can be wrong with a request, in the words of the bridge contract (section 2).
 *
 * A function that can refuse returns enum wrong and sets the text once, where it is seen; the text
 * is ours and names the field and the bound. It never repeats what the caller sent.
 */
#pragma once

enum wrong {
	WRONG_NOTHING = 0,
	WRONG_REQUEST,
	WRONG_CWD,
	WRONG_DIRECTORY,
	WRONG_FILE,
	WRONG_UNSUPPORTED,
	WRONG_TOKEN,
	WRONG_ORIGIN,
	WRONG_ROUTE,
	WRONG_SANDBOX,
	WRONG_EXEC,
	WRONG_FILE_ABSENT,
	WRONG_METHOD,
	WRONG_CONFLICT,
	WRONG_SIZE,
	WRONG_CAPACITY,
	WRONG_CONFIG,
	WRONG_PROVIDER,
	WRONG_LOST, /* only in frames: the box ended under a command */
	WRONG__MAX
};

struct wrong_row {
	int status;
	const char *code, *text; /* text: when no other was set */
};
const struct wrong_row *wrong_row(enum wrong w);

/* Sets the text for this thread and returns w. */
enum wrong wrong(enum wrong w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text set last in this thread when it was for w, else the row's. */
const char *wrong_text(enum wrong w);
