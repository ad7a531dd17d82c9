/*
 * Decodes what Daytona answers and writes what its daemon runs. It promises that no text from
 * outside gets into an error, that the words of a message only choose between refusals of one
 * status, and that nothing but a whole result is taken for an exit code.
 */
#include "daytona_reply.h"

#include "arena.h"
#include "json.h"
#include "text.h"

#include <ctype.h>
#include <string.h>

#define ID_CHARS_MAX   80
#define MESSAGE_MAX    400 /* so much of a message is looked at */
#define EXIT_CODE_LAST 255

/* -- addresses --------------------------------------------------------------------------------- */

#define HTTPS "https://"

const char *daytona_base(struct arena *a, const char *url)
{
	size_t n = strlen(url);
	while (n > 0 && url[n - 1] == '/')
		n--;
	const char *base = arena_copy(a, url, n), *host = strstr(base, "://");
	return host && !strchr(host + 3, '/') ? arena_printf(a, "%s/api", base) : base;
}

/* Length of the origin of an address: scheme, host and port. */
static size_t origin_n(const char *url)
{
	const char *host = strstr(url, "://");
	return host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : strlen(url);
}

/* Writes the host of an https address in lower case; false when it has none, or a user part. */
static bool host_of(const char *url, char out[256])
{
	if (strncmp(url, HTTPS, sizeof HTTPS - 1) != 0)
		return false;
	const char *s = url + sizeof HTTPS - 1;
	size_t n = strcspn(s, "/?#"), host_n = strcspn(s, "/?#:");
	if (memchr(s, '@', n) || host_n == 0 || host_n > 255)
		return false;
	for (size_t i = 0; i < host_n; i++) {
		if (!isalnum((unsigned char)s[i]) && s[i] != '-' && s[i] != '.')
			return false;
		out[i] = (char)tolower((unsigned char)s[i]);
	}
	out[host_n] = '\0';
	return true;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), end_n = strlen(end);
	return n > end_n && s[n - end_n - 1] == '.' && strcmp(s + n - end_n, end) == 0;
}

bool daytona_near(const char *api, const char *url)
{
	char home[256], there[256];
	size_t n = origin_n(api);
	if (origin_n(url) == n && memcmp(api, url, n) == 0 && !strchr(url, '@'))
		return true;
	if (!host_of(api, home) || !host_of(url, there))
		return false;
	if (strcmp(home, there) == 0)
		return true;
	/* An IP address has no parent; a domain right below a top one is its own. */
	if (strspn(home, "0123456789.") == strlen(home))
		return false;
	const char *parent = strchr(home, '.');
	parent = parent && strchr(parent + 1, '.') ? parent + 1 : home;
	return strchr(parent, '.') && (strcmp(there, parent) == 0 || ends_with(there, parent));
}

/* -- errors ------------------------------------------------------------------------------------ */

/* clang-format off */
const struct refusal daytona_api_refusals[] = {
	{401, "expired", ERR_KEY_REFUSED, "token", "says that the key has expired"},
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the key"},
	{403, "suspended", ERR_KEY_REFUSED, "token", "says that the organisation of the key is suspended"},
	{403, "region", ERR_KEY_REFUSED, "token", "does not let the organisation of the key use this region"},
	{403, "quota", ERR_UPSTREAM_LIMIT, NULL, "has no room left in the organisation's quota of CPU, memory or disk"},
	{403, "own", ERR_KEY_REFUSED, "token", "says that the key may not do this; it needs the permissions "
		"write:sandboxes and delete:sandboxes"},
	{400, "quota", ERR_UPSTREAM_LIMIT, NULL, "has no room left in the organisation's quota of CPU, memory or disk"},
	{400, "snapshot", ERR_UNSUPPORTED, "template", "has no active snapshot of this name"},
	{404, "snapshot", ERR_UNSUPPORTED, "template", "has no active snapshot of this name"},
	{400, "own", ERR_UPSTREAM, NULL, "refuses the request in the form in which it was sent"},
	{404, "own", ERR_BOX_GONE, NULL, "has no such sandbox"},
	{409, "taken", ERR_UPSTREAM_UNSURE, NULL, "says that a sandbox of this name is there already"},
	{409, "moving", ERR_UPSTREAM_UNSURE, NULL, "says that the sandbox is in the middle of a change"},
	{410, NULL, ERR_BOX_GONE, NULL, "says that the sandbox is over"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "limits the rate of requests"},
	{0, NULL, OK, NULL, NULL},
};
const struct refusal daytona_box_refusals[] = {
	{400, NULL, ERR_UPSTREAM, NULL, "could not do this in the sandbox"},
	{401, NULL, ERR_KEY_REFUSED, "token", "does not accept the key in the sandbox"},
	{403, NULL, ERR_UPSTREAM, NULL, "does not allow this in the sandbox"},
	{404, NULL, ERR_UPSTREAM, NULL, "does not find in the sandbox what was asked for"},
	{408, NULL, ERR_UPSTREAM_UNSURE, NULL, "ended a short command at its time limit"},
	{410, NULL, ERR_UPSTREAM, NULL, "says that what was asked for is over"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "limits the rate of requests"},
	{502, NULL, ERR_UPSTREAM, NULL, "can not reach the sandbox; its memory may have run out"},
	{0, NULL, OK, NULL, NULL},
};
/* Messages are for people and have no code: a part of one, in lower case, and our word for it. */
static const struct saying {
	int status;
	const char *part, *word;
} sayings[] = {
	{401, "expired", "expired"},
	{403, "suspend", "suspended"},
	{403, "quota", "quota"},
	{403, "limit exceeded", "quota"},
	{403, "region", "region"},
	{400, "quota", "quota"},
	{400, "limit exceeded", "quota"},
	{400, "snapshot", "snapshot"},
	{404, "snapshot", "snapshot"},
	{409, "already exists", "taken"},
	{409, "in progress", "moving"},
};
/* clang-format on */

static void lower(char out[MESSAGE_MAX], const struct json *message)
{
	if (json_type(message) == JSON_LIST)
		message = json_at(message, 0);
	size_t n = 0;
	const char *s = json_type(message) == JSON_STR ? json_str(message, &n) : "";
	n = n < MESSAGE_MAX - 1 ? n : MESSAGE_MAX - 1;
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)s[i]);
	out[n] = '\0';
}

const char *daytona_code(const struct http_reply *r)
{
	CLEANUP_JSON struct json *root = NULL;
	char message[MESSAGE_MAX];
	if (r->status < 400 || strcmp(r->type, "application/json") != 0 ||
		json_parse(r->body, r->body_n, &root) || json_type(root) != JSON_OBJ ||
		reply_int(root, "statusCode", 0) != r->status)
		return "";
	lower(message, json_get(root, "message"));
	for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++)
		if (sayings[i].status == r->status && strstr(message, sayings[i].part))
			return sayings[i].word;
	return "own";
}

/* -- sandboxes --------------------------------------------------------------------------------- */

static enum daytona_phase phase_of(const char *state)
{
	static const struct {
		const char *state;
		enum daytona_phase phase;
	} rows[] = {
		{"started", DAYTONA_STARTED},
		{"destroying", DAYTONA_LEAVING},
		{"destroyed", DAYTONA_GONE},
		{"stopping", DAYTONA_DOWN},
		{"stopped", DAYTONA_DOWN},
		{"pausing", DAYTONA_DOWN},
		{"paused", DAYTONA_DOWN},
		{"error", DAYTONA_DOWN},
		{"build_failed", DAYTONA_DOWN},
		{"archiving", DAYTONA_DOWN},
		{"archived", DAYTONA_DOWN},
	};
	for (size_t i = 0; state && i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].state, state) == 0)
			return rows[i].phase;
	return DAYTONA_COMING;
}

static bool plain(const char *s)
{
	return s && name_safe(s, ID_CHARS_MAX) && s[0] != '.';
}

bool daytona_box(const struct json *o, struct arena *a, struct daytona_box *ret)
{
	const char *id = reply_str(o, "id"), *name = reply_str(o, "name"),
		   *toolbox = reply_str(o, "toolboxProxyUrl");
	const struct json *blocked = json_get(o, "networkBlockAll");
	if (!plain(id) || !name)
		return false;
	*ret = (struct daytona_box){.id = arena_str(a, id),
		.name = arena_str(a, name),
		.toolbox = toolbox ? arena_str(a, toolbox) : NULL,
		.phase = phase_of(reply_str(o, "state")),
		.limited = reply_str(o, "autoDestroyAt") != NULL,
		.blocked = json_type(blocked) == JSON_BOOL && json_bool(blocked)};
	return true;
}

enum box_state daytona_state(enum daytona_phase phase)
{
	return phase == DAYTONA_GONE      ? BOX_STOPPED
	       : phase == DAYTONA_LEAVING ? BOX_STOPPING
					  : BOX_RUNNING;
}

static bool holds(const struct json *list, const char *word)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (json_type(json_at(list, i)) == JSON_STR &&
			strcmp(json_str(json_at(list, i), NULL), word) == 0)
			return true;
	return false;
}

const char *daytona_lacks(const struct json *permissions)
{
	bool make = holds(permissions, "write:sandboxes"),
	     end = holds(permissions, "delete:sandboxes");
	if (make && end)
		return NULL;
	return make  ? "delete:sandboxes"
	       : end ? "write:sandboxes"
		     : "write:sandboxes and delete:sandboxes";
}

/* -- commands ---------------------------------------------------------------------------------- */

/* $1 is the mark, the rest the command. Descriptor 3 is the true output; what comes out of the
 * command substitution is stderr. */
#define APART                                                                                      \
	"m=$1; shift; { e=$(\"$@\" 2>&1 >&3 3>&-); } 3>&1; c=$?; "                                 \
	"printf '\\n%s%s' \"$m\" \"$e\"; exit \"$c\""

static void put_quoted(struct buf *b, const char *s)
{
	buf_str(b, " '");
	for (const char *quote; (quote = strchr(s, '\'')); s = quote + 1) {
		buf_put(b, s, (size_t)(quote - s));
		buf_str(b, "'\\''");
	}
	buf_str(b, s);
	buf_char(b, '\'');
}

void daytona_command(struct buf *b, const char *const *argv, const char *mark)
{
	buf_str(b, "exec sh -c");
	put_quoted(b, APART);
	put_quoted(b, "sh");
	put_quoted(b, mark);
	for (; *argv; argv++)
		put_quoted(b, *argv);
	/* A program that read its input would eat the rest of this text; what the outer shell has
	 * to say belongs to neither stream. */
	buf_str(b, " </dev/null 2>/dev/null\n");
}

/* Where the last "\n" mark begins; NULL: nowhere. */
static const char *find_mark(const char *p, size_t n, const char *mark)
{
	size_t mark_n = strlen(mark);
	if (n < mark_n + 1)
		return NULL;
	for (const char *s = p + n - mark_n - 1;; s--) {
		if (*s == '\n' && memcmp(s + 1, mark, mark_n) == 0)
			return s;
		if (s == p)
			return NULL;
	}
}

enum err daytona_result(
	const struct json *o, const char *mark, struct arena *a, struct exec_result *ret)
{
	const struct json *result = json_get(o, "result");
	int64_t code = reply_int(o, "exitCode", reply_int(o, "code", INT64_MIN));
	size_t n;
	if (json_type(result) != JSON_STR || code == INT64_MIN)
		return fail(ERR_UPSTREAM, NULL, "Daytona did not tell how a short command ended");
	if (code < 0)
		return fail(ERR_UPSTREAM, NULL, "Daytona could not start a short command");
	const char *p = json_str(result, &n), *at = find_mark(p, n, mark);
	if (code > EXIT_CODE_LAST || !at)
		return fail(ERR_UPSTREAM, NULL,
			"Daytona did not bring the whole output of a short command");
	const char *err = at + 1 + strlen(mark);
	size_t out_n = (size_t)(at - p), err_n = (size_t)(p + n - err);
	*ret = (struct exec_result){.code = (int)code,
		.out = arena_copy(a, p, out_n),
		.err = arena_copy(a, err, err_n),
		.out_n = out_n,
		.err_n = err_n};
	return OK;
}

/* -- files ------------------------------------------------------------------------------------- */

const void *daytona_upload(struct arena *a, const char *boundary, const char *path, const void *p,
	size_t n, size_t *ret_n)
{
	/* The path first: the daemon reads the parts in their order. */
	const char *head = arena_printf(a,
		"--%s\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n%s\r\n"
		"--%s\r\nContent-Disposition: form-data; name=\"files[0].file\"; "
		"filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n",
		boundary, path, boundary);
	const char *tail = arena_printf(a, "\r\n--%s--\r\n", boundary);
	size_t head_n = strlen(head), tail_n = strlen(tail);
	char *body = arena_take(a, head_n + n + tail_n);
	memcpy(body, head, head_n);
	if (n)
		memcpy(body + head_n, p, n);
	memcpy(body + head_n + n, tail, tail_n);
	*ret_n = head_n + n + tail_n;
	return body;
}
