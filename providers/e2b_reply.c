/*
 * Decodes what E2B answers: the meaning of a status and of the message beside it, ids, and where
 * the daemon of a sandbox is. It promises that no text from outside gets into an error, and that a
 * sandbox is called gone only on the word of E2B itself: a proxy on the way uses the same statuses.
 */
#include "e2b_reply.h"

#include "arena.h"
#include "bounds.h"
#include "json.h"

#include <string.h>

#define DAEMON_PORT "49983"

/* -- errors ------------------------------------------------------------------------------------ */

#define HOURS_MAX 10000

/* Where the message of an error body goes on behind `lead`; NULL: it does not say that. The text
 * belongs to root. */
static const char *says(const struct json *root, const char *lead)
{
	const struct json *message = json_get(root, "message");
	const char *at =
		json_type(message) == JSON_STR ? strstr(json_str(message, NULL), lead) : NULL;
	return at ? at + strlen(lead) : NULL;
}

/* What the body of an error says, as a word of ours; "" when it is none of E2B's. */
static const char *word_of(const struct http_reply *r)
{
	static const char *const words[][2] = {
		{"The sandbox was not found", "gone"},
		{"port is not open", "closed"},
		{"maximum number of concurrent", "many"},
		{"Timeout cannot be greater", "long"},
	};
	CLEANUP_JSON struct json *root = NULL;
	if (r->fate != HTTP_REPLIED || strcmp(r->type, "application/json") != 0 ||
		json_parse(r->body, r->body_n, &root) || json_type(root) != JSON_OBJ)
		return "";
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (says(root, words[i][0]))
			return words[i][1];
	return "object";
}

/* clang-format off */
#define OF_THE_KEY                                                                                 \
	{401, NULL, ERR_KEY_REFUSED, "token", "does not know the key"},                            \
	{403, NULL, ERR_KEY_REFUSED, "token",                                                      \
		"has blocked the team of this key; its dashboard tells why"},                      \
	{429, "many", ERR_UPSTREAM_LIMIT, NULL,                                                    \
		"runs as many sandboxes as the plan of this key allows; waiting alone does not help"}, \
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "limits the rate of calls"}

static const struct refusal of_create[] = {
	OF_THE_KEY,
	{404, NULL, ERR_BAD_INPUT, "template", "has no such template for this key"},
	{0, NULL, OK, NULL, NULL},
};
static const struct refusal of_control[] = {
	OF_THE_KEY,
	{404, "object", ERR_BOX_GONE, NULL, "has no such sandbox"},
	{404, "gone", ERR_BOX_GONE, NULL, "has no such sandbox"},
	{409, NULL, ERR_UPSTREAM, NULL, "says that the sandbox is between two states"},
	{0, NULL, OK, NULL, NULL},
};
static const struct refusal of_daemon[] = {
	{502, "gone", ERR_BOX_GONE, NULL, "has ended the sandbox"},
	{502, "closed", ERR_UPSTREAM, NULL, "does not reach the daemon of the sandbox"},
	{401, NULL, ERR_UPSTREAM, NULL, "did not take the access token of the sandbox"},
	{409, NULL, ERR_UPSTREAM, NULL, "says that the sandbox is between two states"},
	{429, NULL, ERR_UPSTREAM_LIMIT, NULL, "limits the rate of calls"},
	{507, NULL, ERR_UPSTREAM, NULL, "says that the disk of the sandbox is full"},
	{0, NULL, OK, NULL, NULL},
};
/* clang-format on */

enum err e2b_judge(const struct http_reply *r, enum e2b_call call, enum effect effect, bool own)
{
	static const struct refusal *const tables[] = {
		[E2B_CREATE] = of_create, [E2B_CONTROL] = of_control, [E2B_DAEMON] = of_daemon};
	struct service s = {
		.name = "E2B", .field = own ? "api_url" : NULL, .refusals = tables[call]};
	return reply_judge(&s, r, word_of(r), effect);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A number of hours and what follows it, in seconds; 0: it is none. */
static int64_t seconds_of(const char *at)
{
	double hours = 0, digit = 1;
	for (; is_digit(*at) && hours < HOURS_MAX; at++)
		hours = hours * 10 + (*at - '0');
	for (at += *at == '.'; is_digit(*at); at++)
		hours += (*at - '0') * (digit /= 10);
	return *at == ' ' && hours < HOURS_MAX ? (int64_t)(hours * 3600 + 0.5) : 0;
}

/* How long a sandbox may live by the message; 0: it does not tell. */
static int64_t life_of(const struct http_reply *r)
{
	CLEANUP_JSON struct json *root = NULL;
	const char *at = json_parse(r->body, r->body_n, &root) ? NULL : says(root, "greater than ");
	return at ? seconds_of(at) : 0;
}

enum err e2b_judge_life(const struct http_reply *r)
{
	if (r->status != 400 || strcmp(word_of(r), "long") != 0)
		return OK;
	int64_t life_s = life_of(r);
	if (life_s <= SANDBOX_GRACE_S)
		return fail(ERR_BAD_INPUT, "timeout_s",
			"the plan of this key at E2B allows no sandbox for so long a job");
	return fail(ERR_BAD_INPUT, "timeout_s",
		"a job may take at most %lld s: the plan of this key at E2B ends a sandbox after "
		"%lld s, and %d s of them are ours",
		(long long)(life_s - SANDBOX_GRACE_S), (long long)life_s, SANDBOX_GRACE_S);
}

bool e2b_no_route(const struct http_reply *r)
{
	return r->fate == HTTP_REPLIED && (r->status == 404 || r->status == 405);
}

/* -- ids and addresses ------------------------------------------------------------------------- */

#define LETTERS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define IN_ID    LETTERS "0123456789-_"
#define IN_HOST  LETTERS "0123456789-."
#define IN_QUERY LETTERS "0123456789-._~"

bool e2b_id_ok(const char *s)
{
	size_t n = strlen(s);
	return n > 0 && n <= E2B_ID_MAX && s[0] != '-' && s[0] != '_' && strspn(s, IN_ID) == n;
}

const char *e2b_escape(struct arena *a, const char *s)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_take(a, 3 * strlen(s) + 1), *at = out;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (strchr(IN_QUERY, c)) {
			*at++ = (char)c;
			continue;
		}
		*at++ = '%';
		*at++ = hex[c >> 4];
		*at++ = hex[c & 15];
	}
	return out;
}

/* A name is the other one, or below it. */
static bool within(const char *name, const char *of)
{
	size_t n = strlen(name), of_n = strlen(of);
	return n >= of_n && strcmp(name + n - of_n, of) == 0 &&
	       (n == of_n || name[n - of_n - 1] == '.');
}

static bool has_dot(const char *s)
{
	return strchr(s, '.') != NULL;
}

static bool is_number(const char *host)
{
	return host[0] == '[' || strspn(host, "0123456789.") == strlen(host);
}

/* Where the names of sandboxes end, given the API's host; NULL: not known. */
static const char *domain_of(const char *host, const char *named)
{
	const char *dot = strchr(host, '.');
	const char *parent = dot && has_dot(dot + 1) && !is_number(host) ? dot + 1 : host;
	if (!named)
		return strncmp(host, "api.", 4) == 0 && has_dot(host + 4) ? host + 4 : "";
	bool plain = strspn(named, IN_HOST) == strlen(named) && named[0] != '.' &&
		     named[0] != '-' && !strstr(named, "..");
	return plain && within(named, parent) ? named : NULL;
}

/* Of E2B's own domains one name serves all sandboxes, so that a connection can be used again. */
static bool shared(const char *domain)
{
	static const char *const domains[] = {"e2b.app", "e2b.dev", "e2b.pro", NULL};
	for (int i = 0; domains[i]; i++)
		if (strcmp(domain, domains[i]) == 0)
			return true;
	return false;
}

const char *e2b_daemon_at(struct arena *a, const char *api, const char *id, const char *domain)
{
	const char *mark = strstr(api, "://");
	if (!mark)
		return domain ? NULL : api; /* over a socket */
	const char *host = mark + 3;
	size_t n = strcspn(host, host[0] == '[' ? "]" : ":/");
	const char *rest = host + n, *where = domain_of(arena_copy(a, host, n), domain);
	if (!where || !*where)
		return where ? api : NULL;
	const char *scheme = arena_copy(a, api, (size_t)(host - api));
	const char *port = arena_copy(a, rest, strcspn(rest, "/"));
	if (shared(where))
		return arena_printf(a, "%ssandbox.%s%s", scheme, where, port);
	return arena_printf(a, "%s" DAEMON_PORT "-%s.%s%s", scheme, id, where, port);
}
