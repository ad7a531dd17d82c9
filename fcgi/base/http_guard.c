/*
 * Where a call may go: the URL judged as text, and the list of the operator's exceptions. The
 * address behind a name is judged later, by the callbacks in http.c, through egress.h.
 */
#include "http.h"
#include "http_parts.h"

#include "alloc.h"
#include "egress.h"
#include "bounds.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"

/* One of the operator's exceptions: a socket, or scheme, host and port. */
struct origin {
	const char *socket;
	char *scheme, *host, *port;
};

static struct origin *origins;
static size_t origins_n;

static char *part_of(CURLU *url, CURLUPart part)
{
	char *s = NULL;
	/* An absent part is NULL; memory can not run out (alloc.h). */
	if (curl_url_get(url, part, &s, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return NULL;
	return s;
}

static void origin_done(struct origin *o)
{
	curl_free(o->scheme);
	curl_free(o->host);
	curl_free(o->port);
}

static struct origin origin_of(CURLU *url)
{
	return (struct origin){.scheme = part_of(url, CURLUPART_SCHEME),
		.host = part_of(url, CURLUPART_HOST),
		.port = part_of(url, CURLUPART_PORT)};
}

/* Printable ASCII only: a host in other letters must come in its xn-- form, so that what is judged
 * here and what is called later can not be two readings of one text. */
static enum err check_text(const char *url, const char *field)
{
	size_t n = strlen(url);
	if (n == 0 || n > URL_CHARS_MAX)
		return fail(
			ERR_BAD_INPUT, field, "must be a URL of 1 to %d characters", URL_CHARS_MAX);
	for (size_t i = 0; i < n; i++)
		if (url[i] <= ' ' || url[i] > '~')
			return fail(ERR_BAD_INPUT, field,
				"must have no spaces and no characters outside ASCII");
	if (strchr(url, '#'))
		return fail(ERR_BAD_INPUT, field, "must not have a fragment");
	return OK;
}

/* libcurl would skip a third slash and an empty user part. */
static enum err check_authority(const char *url, const char *field)
{
	const char *host = strstr(url, "://");
	if (!host)
		return fail(ERR_BAD_INPUT, field, "must be a URL like https://host/path");
	host += 3;
	size_t n = strcspn(host, "/?");
	if (n == 0)
		return fail(ERR_BAD_INPUT, field, "has no host");
	if (memchr(host, '@', n))
		return fail(ERR_BAD_INPUT, field, "must not have a user name or password");
	return OK;
}

static enum err parse(const char *text, const char *field, CURLU **ret)
{
	CURLU *url = must(curl_url());
	CURLUcode rc = curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER);
	if (rc == CURLUE_OK) {
		*ret = url;
		return OK;
	}
	curl_url_cleanup(url);
	if (rc == CURLUE_UNSUPPORTED_SCHEME)
		return fail(ERR_FORBIDDEN_ADDRESS, field, "must begin with https://");
	return fail(ERR_BAD_INPUT, field, "must be a URL like https://host/path");
}

/* The path behind an allowed socket, or NULL when url is not on it. */
static const char *behind_socket(const char *url, const char *socket)
{
	size_t n = strlen(socket);
	const char *path = url + sizeof UNIX_PREFIX - 1;
	if (strncmp(path, socket, n) != 0 || !strchr("/?", path[n]))
		return NULL;
	return path + n;
}

static enum err judge_socket(const char *url, const char *field, struct target *ret)
{
	char text[URL_CHARS_MAX + 32];
	for (size_t i = 0; i < origins_n; i++) {
		const char *path = origins[i].socket ? behind_socket(url, origins[i].socket) : NULL;
		if (!path)
			continue;
		(void)snprintf(text, sizeof text, "http://localhost%s", path);
		*ret = (struct target){.open = true, .socket = origins[i].socket};
		return parse(text, field, &ret->url);
	}
	return fail(
		ERR_FORBIDDEN_ADDRESS, field, "names a socket that the operator has not allowed");
}

static bool operator_allows(const struct origin *o)
{
	for (size_t i = 0; i < origins_n; i++)
		if (!origins[i].socket && strcmp(origins[i].scheme, o->scheme) == 0 &&
			strcasecmp(origins[i].host, o->host) == 0 &&
			strcmp(origins[i].port, o->port) == 0)
			return true;
	return false;
}

/* libcurl has turned every spelling of an IPv4 address (0x7f.1, 2130706433) into the usual one. */
static bool private_literal(const char *host)
{
	char bare[INET6_ADDRSTRLEN] = "";
	uint8_t bytes[16];
	size_t n = strcspn(host + (*host == '['), "]");
	if (n >= sizeof bare)
		return false;
	memcpy(bare, host + (*host == '['), n);
	if (inet_pton(AF_INET, bare, bytes) != 1 && inet_pton(AF_INET6, bare, bytes) != 1)
		return *host == '[';
	return !egress_allowed_text(bare);
}

static enum err judge_origin(const struct origin *o, const char *field, struct target *ret)
{
	if (!o->scheme || !o->host || !o->port || strcmp(o->port, "0") == 0)
		return fail(ERR_BAD_INPUT, field, "must be a URL like https://host/path");
	ret->open = operator_allows(o);
	ret->tls = strcmp(o->scheme, "https") == 0;
	if (ret->open)
		return OK;
	if (!ret->tls)
		return fail(ERR_FORBIDDEN_ADDRESS, field, "must begin with https://");
	if (private_literal(o->host))
		return fail(ERR_FORBIDDEN_ADDRESS, field, "names a private or reserved address");
	return OK;
}

static enum err judge_network(const char *url, const char *field, struct target *ret)
{
	struct target t = {0};
	enum err e = check_authority(url, field);
	if (!e)
		e = parse(url, field, &t.url);
	if (e)
		return e;
	struct origin o = origin_of(t.url);
	e = judge_origin(&o, field, &t);
	origin_done(&o);
	if (e)
		curl_url_cleanup(t.url);
	else
		*ret = t;
	return e;
}

enum err guard_judge(const char *url, const char *field, enum target_kind kind, struct target *ret)
{
	enum err e = check_text(url, field);
	if (e)
		return e;
	if (kind == TARGET_BASE && strchr(url, '?'))
		return fail(ERR_BAD_INPUT, field, "must not have a query");
	if (strncmp(url, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) == 0)
		return judge_socket(url, field, ret);
	return judge_network(url, field, ret);
}

static const char origins_field[] = "outbound.allowed_origins";

static enum err socket_read(const char *text, struct origin *ret)
{
	struct sockaddr_un room;
	const char *path = text + sizeof UNIX_PREFIX - 1;
	if (*path != '/' || strlen(path) >= sizeof room.sun_path)
		return fail(ERR_INTERNAL, origins_field,
			"unix: needs an absolute path of at most %d bytes",
			(int)sizeof room.sun_path - 1);
	*ret = (struct origin){.socket = path};
	return OK;
}

static enum err origin_read(const char *text, struct origin *ret)
{
	CURLU *url = NULL;
	if (strncmp(text, UNIX_PREFIX, sizeof UNIX_PREFIX - 1) == 0)
		return socket_read(text, ret);
	if (check_text(text, origins_field) || check_authority(text, origins_field) ||
		parse(text, origins_field, &url))
		return fail(ERR_INTERNAL, origins_field, "an origin is no URL");
	char *path = part_of(url, CURLUPART_PATH);
	*ret = origin_of(url);
	bool web = ret->scheme && strncmp(ret->scheme, "http", 4) == 0;
	bool bare = path && strcmp(path, "/") == 0 && !strchr(text, '?');
	curl_free(path);
	curl_url_cleanup(url);
	if (web && bare)
		return OK;
	origin_done(ret);
	return fail(
		ERR_INTERNAL, origins_field, "an origin is scheme, host and port, without a path");
}

enum err guard_start(const char *const *allowed_origins)
{
	guard_stop();
	for (; allowed_origins && *allowed_origins; allowed_origins++) {
		struct origin o;
		enum err e = origin_read(*allowed_origins, &o);
		if (e) {
			guard_stop();
			return e;
		}
		origins = must(reallocarray(origins, origins_n + 1, sizeof o));
		origins[origins_n++] = o;
	}
	return OK;
}

void guard_stop(void)
{
	for (size_t i = 0; i < origins_n; i++)
		origin_done(&origins[i]);
	free(origins);
	origins = NULL;
	origins_n = 0;
}

enum err http_url_check(const char *url, const char *field)
{
	struct target t;
	enum err e = guard_judge(url, field, TARGET_BASE, &t);
	if (!e)
		curl_url_cleanup(t.url);
	return e;
}
