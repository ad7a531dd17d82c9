/*
 * One outbound call: a request becomes a curl handle with every guard and limit set, is flown by a
 * pool, and its end becomes a reply that says truly what happened. Nothing is retried here, and
 * nothing of a request or reply is logged.
 */
#include "http.h"

#include "alloc.h"
#include "arena.h"
#include "clock.h"
#include "egress.h"
#include "http_parts.h"
#include "bounds.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#define SYSTEM_CA_FILE     "/etc/ssl/certs/ca-certificates.crt"
#define KEPT_IDLE_S        50L         /* servers close idle connections after 60 s and more */
#define UPLOAD_WATCH_BYTES (64u << 10) /* a larger body may take longer than first_ms to send */
#define RETRY_AFTER_S_MAX  86400
#define TYPE_CHARS_MAX     127

/* A call, its handle, and what the callbacks saw. */
struct ride {
	struct flight flight; /* first: a flight is its ride */
	const struct http_call *call;
	struct target target;
	struct curl_slist
		*headers; /* own nodes in the arena, texts of secrets in the secure heap */
	struct {
		char *text;
		size_t n;
	} secrets[HTTP_SECRETS_MAX];
	size_t secrets_n;
	struct buf body;
	size_t got_n, got_max, head_n;
	curl_off_t sent_n;
	bool issued, head_done, refused, too_large;
};

static int ca_fd = -1;
static char ca_path[32];

/* -- certificates -------------------------------------------------------------------------------
 */

/* Certificates are read and written anew, so that a file with none in it is found at the start and
 * not by the first call. */
static enum err ca_copy(const char *path, const char *field, BIO *out)
{
	int n = 0;
	BIO *in = BIO_new_file(path, "r");
	if (!in)
		return fail(ERR_INTERNAL, field, "the file can not be read");
	for (X509 *cert; (cert = PEM_read_bio_X509(in, NULL, NULL, NULL)); n++) {
		int ok = PEM_write_bio_X509(out, cert);
		assert(ok == 1);
		X509_free(cert);
	}
	bool all = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(in);
	if (!all)
		return fail(ERR_INTERNAL, field, "certificate %d does not parse", n + 1);
	return n ? OK : fail(ERR_INTERNAL, field, "the file holds no certificate in PEM form");
}

/* Both bundles as one file without a place on the disk. It must be a file: libcurl 7.88 keeps the
 * parsed certificates of a multi handle only for CURLOPT_CAINFO, and parsing costs over 20 ms of
 * CPU for each new connection. */
static enum err ca_load(const struct http_conf *conf)
{
	const char *file = conf->ca_file && *conf->ca_file ? conf->ca_file : SYSTEM_CA_FILE;
	ca_fd = memfd_create("ca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert(ca_fd >= 0);
	BIO *out = must(BIO_new_fd(ca_fd, BIO_NOCLOSE));
	enum err e = ca_copy(file, "outbound.ca_file", out);
	if (!e && conf->ca_extra && *conf->ca_extra)
		e = ca_copy(conf->ca_extra, "outbound.ca_extra", out);
	BIO_free(out);
	(void)fcntl(ca_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	(void)snprintf(ca_path, sizeof ca_path, "/proc/self/fd/%d", ca_fd);
	return e;
}

enum err http_start(const struct http_conf *conf)
{
	CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
	assert(ready == CURLE_OK);
	enum err e = ca_load(conf);
	if (!e)
		e = guard_start(conf->allowed_origins);
	if (e) {
		http_stop();
		return e;
	}
	pools_start();
	return OK;
}

void http_stop(void)
{
	pools_stop();
	guard_stop();
	if (ca_fd >= 0)
		(void)close(ca_fd);
	ca_fd = -1;
}

/* -- callbacks, all in the thread of the pool ----------------------------------------------------
 */

/* Asked for every address that a new connection would go to, before any packet. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct ride *r = arg;
	if (purpose != CURLSOCKTYPE_IPCXN)
		return CURL_SOCKET_BAD;
	if (!r->target.open && !egress_allowed(&to->addr)) {
		r->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static bool repeatable(const char *method)
{
	static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

/* Asked on a ready connection, new or kept, before the request is written to it. A second time
 * means that libcurl wants to write the request once more. */
static int on_issue(void *arg, char *to, char *from, int to_port, int from_port)
{
	struct ride *r = arg;
	(void)from;
	(void)to_port;
	(void)from_port;
	if (!r->target.open && !egress_allowed_text(to)) {
		r->refused = true;
		return CURL_PREREQFUNC_ABORT;
	}
	if (r->issued && !repeatable(r->call->method))
		return CURL_PREREQFUNC_ABORT;
	r->issued = true;
	flight_moved(&r->flight, false);
	return CURL_PREREQFUNC_OK;
}

static int on_progress(
	void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
	struct ride *r = arg;
	(void)down_all;
	(void)down;
	(void)up_all;
	if (up != r->sent_n)
		flight_moved(&r->flight, false);
	r->sent_n = up;
	return 0;
}

static size_t on_head(char *p, size_t size, size_t n, void *arg)
{
	struct ride *r = arg;
	n *= size;
	flight_moved(&r->flight, true);
	r->head_n += n;
	if (r->head_n > UPSTREAM_HEADERS_MAX) {
		r->too_large = true;
		return 0;
	}
	/* libcurl takes a reply that ends inside its headers for a whole one. */
	if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
		r->head_done = false;
	else if (n <= 2 && (*p == '\r' || *p == '\n'))
		r->head_done = true;
	return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
	struct ride *r = arg;
	n *= size;
	flight_moved(&r->flight, true);
	if (n > r->got_max - r->got_n) {
		r->too_large = true;
		return 0;
	}
	r->got_n += n;
	if (r->call->on_data)
		return r->call->on_data(r->call->ctx, p, n) ? n : 0;
	buf_put(&r->body, p, n);
	return n;
}

/* -- the request ---------------------------------------------------------------------------------
 */

static void expect_set(CURLcode rc)
{
	assert(rc == CURLE_OK); /* else an option is unknown to this libcurl, or memory is out */
}
#define SET(r, option, value) expect_set(curl_easy_setopt((r)->flight.easy, (option), (value)))

static void set_guards(struct ride *r)
{
	SET(r, CURLOPT_CURLU, r->target.url);
	SET(r, CURLOPT_PROTOCOLS_STR, r->target.tls ? "https" : "http");
	SET(r, CURLOPT_FOLLOWLOCATION, 0L);
	SET(r, CURLOPT_PROXY, ""); /* also not the one of the environment */
	SET(r, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	SET(r, CURLOPT_OPENSOCKETDATA, r);
	SET(r, CURLOPT_PREREQFUNCTION, on_issue);
	SET(r, CURLOPT_PREREQDATA, r);
	if (r->target.socket)
		SET(r, CURLOPT_UNIX_SOCKET_PATH, r->target.socket);
}

static void set_connection(struct ride *r)
{
	SET(r, CURLOPT_CAINFO, ca_path);
	SET(r, CURLOPT_CAPATH, NULL);
	SET(r, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(r, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(r, CURLOPT_PIPEWAIT, r->target.tls && r->call->pool != HTTP_ALONE ? 1L : 0L);
	SET(r, CURLOPT_MAXAGE_CONN, KEPT_IDLE_S);
	SET(r, CURLOPT_NOSIGNAL, 1L);
	SET(r, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	/* A name server that does not answer must not hold up the pool when the call gives up. */
	SET(r, CURLOPT_QUICK_EXIT, 1L);
}

/* Methods whose meaning is to send something say "Content-Length: 0" when they have nothing. */
static bool sends_body(const struct http_call *c)
{
	return c->body_n || strcmp(c->method, "POST") == 0 || strcmp(c->method, "PUT") == 0 ||
	       strcmp(c->method, "PATCH") == 0;
}

static void set_method(struct ride *r)
{
	const struct http_call *c = r->call;
	if (sends_body(c)) {
		SET(r, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_n);
		SET(r, CURLOPT_POSTFIELDS, c->body_n ? c->body : ""); /* borrowed */
	}
	if (strcmp(c->method, "HEAD") == 0)
		SET(r, CURLOPT_NOBODY, 1L);
	else
		SET(r, CURLOPT_CUSTOMREQUEST, c->method);
	if (c->body_n <= UPLOAD_WATCH_BYTES)
		return;
	SET(r, CURLOPT_XFERINFOFUNCTION, on_progress);
	SET(r, CURLOPT_XFERINFODATA, r);
	SET(r, CURLOPT_NOPROGRESS, 0L);
}

static void set_reply(struct ride *r)
{
	const struct http_call *c = r->call;
	r->got_max = c->reply_max ? c->reply_max : UPSTREAM_REPLY_MAX;
	buf_init(&r->body, r->got_max);
	SET(r, CURLOPT_HEADERFUNCTION, on_head);
	SET(r, CURLOPT_HEADERDATA, r);
	SET(r, CURLOPT_WRITEFUNCTION, on_body);
	SET(r, CURLOPT_WRITEDATA, r);
	SET(r, CURLOPT_PRIVATE, &r->flight);
	if (strcmp(c->method, "HEAD") != 0)
		SET(r, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)r->got_max);
}

static void add_header(struct ride *r, struct arena *a, char *line)
{
	struct curl_slist *node = ARENA_NEW(a, struct curl_slist);
	*node = (struct curl_slist){.data = line, .next = r->headers};
	r->headers = node;
}

/* What is ours or was checked can not end a header line early; make sure all the same. */
static bool header_safe(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = ((const unsigned char *)p)[i];
		if (c < ' ' || c == 0x7f)
			return false;
	}
	return true;
}

static enum err add_headers(struct ride *r, struct arena *a)
{
	const struct http_call *c = r->call;
	add_header(r, a, arena_str(a, "Expect:")); /* an answer to it would cost a round trip */
	add_header(r, a, arena_str(a, "User-Agent: compute-connector/" CC_VERSION));
	add_header(r, a,
		c->type ? arena_printf(a, "Content-Type: %s", c->type)
			: arena_str(a, "Content-Type:"));
	for (const struct http_header *h = c->headers; h && h->name; h++) {
		if (!header_safe(h->name, strlen(h->name)) ||
			!header_safe(h->value, strlen(h->value)))
			return fail(ERR_INTERNAL, NULL, "a header has control characters");
		/* libcurl's way to say that a header has an empty value */
		add_header(r, a,
			*h->value ? arena_printf(a, "%s: %s", h->name, h->value)
				  : arena_printf(a, "%s;", h->name));
	}
	return OK;
}

static enum err add_secret(
	struct ride *r, struct arena *a, const char *lead, const struct secret *s)
{
	const size_t lead_n = strlen(lead), n = lead_n + s->n + 1;
	assert(r->secrets_n < HTTP_SECRETS_MAX);
	if (!secret_given(s) || !header_safe(secret_bytes(s), s->n))
		return fail(ERR_BAD_INPUT, "token", "has characters that no header can carry");
	char *text = must(OPENSSL_secure_zalloc(n));
	r->secrets[r->secrets_n].text = text;
	r->secrets[r->secrets_n++].n = n;
	memcpy(text, lead, lead_n);
	memcpy(text + lead_n, secret_bytes(s), s->n);
	add_header(r, a, text);
	return OK;
}

/* The last step before the call; secrets_done undoes it right after. */
static enum err add_secrets(struct ride *r, struct arena *a)
{
	const struct http_call *c = r->call;
	enum err e = c->bearer ? add_secret(r, a, "Authorization: Bearer ", c->bearer) : OK;
	for (const struct http_secret *s = c->secrets; !e && s && s->name; s++)
		e = add_secret(r, a, arena_printf(a, "%s: ", s->name), s->value);
	return e;
}

static void secrets_done(struct ride *r)
{
	while (r->secrets_n > 0) {
		r->secrets_n--;
		OPENSSL_secure_clear_free(
			r->secrets[r->secrets_n].text, r->secrets[r->secrets_n].n);
	}
}

static enum err prepare(struct ride *r, struct arena *a)
{
	const struct http_call *c = r->call;
	enum err e = guard_judge(c->url, "url", TARGET_CALL, &r->target);
	if (e)
		return e;
	assert(c->total_ms > 0);
	r->flight.easy = must(curl_easy_init());
	r->flight.total_ms = c->total_ms;
	r->flight.first_ms = c->first_ms ? c->first_ms : FIRST_BYTE_MS;
	r->flight.idle_ms = c->idle_ms ? c->idle_ms : c->total_ms;
	(void)sem_init(&r->flight.done, 0, 0);
	set_guards(r);
	set_connection(r);
	set_method(r);
	set_reply(r);
	e = add_headers(r, a);
	if (!e)
		e = add_secrets(r, a);
	SET(r, CURLOPT_HTTPHEADER, r->headers);
	return e;
}

/* -- the reply -----------------------------------------------------------------------------------
 */

static enum http_fate fate_of(const struct ride *r, long status)
{
	if (r->flight.result == CURLE_OK && r->head_done && status >= 200)
		return HTTP_REPLIED;
	return r->issued ? HTTP_UNSURE : HTTP_NOT_SENT;
}

static const char *media_type(const struct ride *r, struct arena *a)
{
	const char *type = NULL;
	(void)curl_easy_getinfo(r->flight.easy, CURLINFO_CONTENT_TYPE, &type);
	size_t n = type ? strcspn(type, "; \t") : 0;
	if (n == 0 || n > TYPE_CHARS_MAX)
		return "";
	char *own = arena_copy(a, type, n);
	for (char *p = own; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return own;
}

/* The value of a header from one of the origins; NULL: not sent. */
static const char *header_of(
	const struct ride *r, const char *name, unsigned origins, struct arena *a)
{
	struct curl_header *kept;
	if (!name || curl_easy_header(r->flight.easy, name, 0, origins, -1, &kept))
		return NULL;
	return arena_str(a, kept->value);
}

static void read_reply(const struct ride *r, struct arena *a, struct http_reply *ret)
{
	curl_off_t retry_after = 0;
	ret->body = arena_copy(a, r->body.p, r->body.n);
	ret->body_n = r->body.n;
	ret->type = media_type(r, a);
	(void)curl_easy_getinfo(r->flight.easy, CURLINFO_RETRY_AFTER, &retry_after);
	if (retry_after > 0)
		ret->retry_after_s =
			retry_after < RETRY_AFTER_S_MAX ? (int)retry_after : RETRY_AFTER_S_MAX;
	ret->kept = header_of(r, r->call->keep_header, CURLH_HEADER, a);
	for (int i = 0; i < HTTP_TRAILERS_MAX; i++)
		ret->trailers[i] =
			header_of(r, r->call->keep_trailers[i], CURLH_HEADER | CURLH_TRAILER, a);
}

static void report(const struct ride *r, struct arena *a, struct http_reply *ret)
{
	long status = 0;
	CURLcode result = r->flight.result;
	(void)curl_easy_getinfo(r->flight.easy, CURLINFO_RESPONSE_CODE, &status);
	*ret = (struct http_reply){
		.fate = fate_of(r, status),
		.body = "",
		.type = "",
		.too_large = r->too_large || result == CURLE_FILESIZE_EXCEEDED,
		.timed_out = r->flight.late || result == CURLE_OPERATION_TIMEDOUT,
	};
	/* One refused address of several does not matter when another one was reached. */
	ret->refused_address = r->refused && ret->fate == HTTP_NOT_SENT;
	if (ret->fate != HTTP_REPLIED)
		return;
	ret->status = (int)status;
	read_reply(r, a, ret);
}

static void ride_done(struct ride *r)
{
	if (r->flight.easy) {
		curl_easy_cleanup(r->flight.easy);
		(void)sem_destroy(&r->flight.done);
	}
	secrets_done(r);
	curl_url_cleanup(r->target.url);
	buf_done(&r->body);
}

enum err http_run(const struct http_call *c, struct arena *a, struct http_reply *ret)
{
	struct ride r = {.call = c};
	int64_t begun = clock_mono_ms();
	enum err e = prepare(&r, a);
	if (!e && !pool_fly(c->pool, &r.flight))
		e = fail(ERR_BUSY, NULL, "the server is stopping");
	secrets_done(&r);
	if (!e) {
		report(&r, a, ret);
		ret->took_ms = clock_mono_ms() - begun;
	}
	ride_done(&r);
	return e;
}
