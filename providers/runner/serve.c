/*
 * From a request to its answer. Promises: no call has an effect before origin, route, method and
 * token were checked; bodies are bounded while they arrive; every refusal has the declared form.
 *
 * One thread per connection (a follow call may wait a minute); what a thread waits for lies in
 * follow.c and sandbox.c.
 */
#include "serve.h"

#include "arena.h"
#include "body.h"
#include "buf.h"
#include "connfile.h"
#include "follow.h"
#include "json.h"
#include "sandbox.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define REQUEST_ARENA_MAX                                                                          \
	(8u << 20) /* a body of 1 MiB as JSON tree stays in json.c; copies here                    \
		    */
#define REPLY_MAX (16u << 20)

struct request {
	struct arena *a;
	const char *path, *raw_query;
	struct route route;
	struct query query;
	struct buf body;
	enum wrong early; /* found before the body arrived */
	char early_text[240];
	bool begun;
};

static struct MHD_Daemon *daemon_of_us;

/* -- answers ----------------------------------------------------------------------------------- */

static enum MHD_Result respond(
	struct MHD_Connection *c, unsigned status, struct MHD_Response *r, const char *type)
{
	if (!r)
		return MHD_NO;
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (status == 401)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (status == 503)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "2");
	enum MHD_Result done = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result respond_json(struct MHD_Connection *c, unsigned status, struct buf *b)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(b->n, b->p, MHD_RESPMEM_MUST_COPY);
	return respond(c, status, r, "application/json");
}

static enum MHD_Result refuse_with(struct MHD_Connection *c, enum wrong what, const char *text)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_key(&w, "error");
	jw_obj(&w);
	jw_kstr(&w, "code", wrong_row(what)->code);
	jw_kstr(&w, "message", text);
	jw_end(&w);
	jw_end(&w);
	return respond_json(c, (unsigned)wrong_row(what)->status, &b);
}

static enum MHD_Result refuse(struct MHD_Connection *c, enum wrong what)
{
	return refuse_with(c, what, wrong_text(what));
}

/* -- the calls --------------------------------------------------------------------------------- */

static enum MHD_Result call_health(struct MHD_Connection *c, struct request *q)
{
	static const char *const features[] = {
		"exec", "kill", "stdin", "env", "files", "ttl", "idle", "network", "limits"};
	bool ok = !registry.stopping;
	(void)q;
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kbool(&w, "ok", ok);
	jw_kstr(&w, "contract", "sbx-bridge");
	jw_kint(&w, "version", 1);
	jw_kint(&w, "minor", 1);
	jw_kstr(&w, "provider", "runner");
	jw_key(&w, "features");
	jw_list(&w);
	for (size_t i = 0; i < sizeof features / sizeof *features; i++)
		jw_str(&w, features[i]);
	jw_end_list(&w);
	jw_key(&w, "limits");
	jw_obj(&w);
	jw_kint(&w, "follow_ms", FOLLOW_MS_MAX);
	jw_kint(&w, "file_block", FILE_BLOCK_MAX);
	jw_kint(&w, "command_bytes", COMMAND_BYTES_MAX);
	jw_end(&w);
	jw_end(&w);
	return respond_json(c, ok ? 200 : 503, &b);
}

static enum wrong labels_of(const struct query *q, struct arena *a, struct pairs *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < q->n; i++) {
		if (strcmp(q->p[i].name, "label") != 0)
			continue;
		const char *eq = strchr(q->p[i].value, '=');
		if (!eq || eq == q->p[i].value)
			return wrong(WRONG_REQUEST, "label must be name=value");
		ret->p[ret->n++] =
			(struct pair){arena_copy(a, q->p[i].value, (size_t)(eq - q->p[i].value)),
				arena_str(a, eq + 1)};
	}
	return WRONG_NOTHING;
}

static enum MHD_Result call_list(struct MHD_Connection *c, struct request *q)
{
	struct pairs labels;
	enum wrong w = labels_of(&q->query, q->a, &labels);
	if (w)
		return refuse(c, w);
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_MAX);
	struct jw jw = jw_new(&b);
	sandboxes_write(&labels, &jw);
	return b.full ? refuse(c, WRONG_PROVIDER) : respond_json(c, 200, &b);
}

static enum MHD_Result show(struct MHD_Connection *c, unsigned status, struct sandbox *s)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, 1u << 20);
	struct jw w = jw_new(&b);
	registry_lock();
	sandbox_write(s, &w);
	registry_unlock();
	sandbox_put(s);
	return respond_json(c, status, &b);
}

static enum MHD_Result call_create(struct MHD_Connection *c, struct request *q)
{
	struct create_ask ask;
	struct sandbox *s;
	bool is_new;
	enum wrong w = body_create(q->body.p, q->body.n, q->a, &ask);
	w = w ? w : sandbox_create(&ask, &is_new, &s);
	return w ? refuse(c, w) : show(c, is_new ? 201 : 200, s);
}

static enum MHD_Result call_get(struct MHD_Connection *c, struct request *q)
{
	struct sandbox *s;
	enum wrong w = sandbox_get(q->route.id, &s);
	return w ? refuse(c, w) : show(c, 200, s);
}

static enum MHD_Result call_delete(struct MHD_Connection *c, struct request *q)
{
	bool gone = sandbox_delete(q->route.id);
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kstr(&w, "id", q->route.id);
	jw_kstr(&w, "state", gone ? "stopped" : "stopping");
	jw_end(&w);
	return respond_json(c, gone ? 200 : 202, &b);
}

/* -- streams ----------------------------------------------------------------------------------- */

struct stream {
	struct arena *a;
	struct follow *follow;
	struct buf frame;
	size_t sent;
};

static ssize_t stream_more(void *cls, uint64_t at, char *out, size_t max)
{
	struct stream *s = cls;
	(void)at;
	if (s->sent == s->frame.n) {
		buf_reset(&s->frame);
		s->sent = 0;
		if (!follow_next(s->follow, &s->frame))
			return MHD_CONTENT_READER_END_OF_STREAM;
	}
	size_t n = s->frame.n - s->sent < max ? s->frame.n - s->sent : max;
	memcpy(out, s->frame.p + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static void stream_free(void *cls)
{
	struct stream *s = cls;
	follow_free(s->follow);
	buf_done(&s->frame);
	arena_free(s->a);
}

static enum MHD_Result stream_begin(struct MHD_Connection *c, struct follow *f)
{
	struct arena *a = arena_new(4096);
	struct stream *s = ARENA_NEW(a, struct stream);
	*s = (struct stream){.a = a, .follow = f};
	buf_init(&s->frame, FRAME_BYTES_MAX);
	struct MHD_Response *r = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, 64u << 10, stream_more, s, stream_free);
	if (!r)
		stream_free(s);
	return respond(c, 200, r, "application/x-ndjson");
}

static enum MHD_Result call_exec(struct MHD_Connection *c, struct request *q)
{
	struct exec_ask ask;
	struct sandbox *s;
	struct exec *e;
	enum wrong w = body_exec(q->body.p, q->body.n, q->a, &ask);
	w = w ? w : sandbox_get(q->route.id, &s);
	if (w)
		return refuse(c, w);
	w = exec_start(s, &ask, &e);
	sandbox_put(s);
	return w ? refuse(c, w) : stream_begin(c, follow_new(e, 0, 0, ask.follow_ms));
}

static enum MHD_Result call_follow(struct MHD_Connection *c, struct request *q)
{
	int64_t out, err, ms;
	struct sandbox *s;
	struct exec *e;
	enum wrong w = query_int(&q->query, "stdout", 0, OFFSET_MAX, &out);
	w = w ? w : query_int(&q->query, "stderr", 0, OFFSET_MAX, &err);
	w = w ? w : query_int(&q->query, "follow_ms", FOLLOW_MS_DEFAULT, FOLLOW_MS_MAX, &ms);
	w = w ? w : sandbox_get(q->route.id, &s);
	if (w)
		return refuse(c, w);
	w = exec_get(s, q->route.exec_id, &e);
	sandbox_put(s);
	return w ? refuse(c, w) : stream_begin(c, follow_new(e, out, err, ms));
}

static enum MHD_Result call_kill(struct MHD_Connection *c, struct request *q)
{
	int signal;
	struct sandbox *s;
	const char *state = "";
	enum wrong w = body_kill(q->body.p, q->body.n, &signal);
	w = w ? w : sandbox_get(q->route.id, &s);
	if (w)
		return refuse(c, w);
	w = exec_kill(s, q->route.exec_id, signal, &state);
	sandbox_put(s);
	if (w)
		return refuse(c, w);
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	struct jw jw = jw_new(&b);
	jw_obj(&jw);
	jw_kstr(&jw, "state", state);
	jw_end(&jw);
	return respond_json(c, 200, &b);
}

/* -- files ------------------------------------------------------------------------------------- */

static enum MHD_Result call_read(struct MHD_Connection *c, struct request *q)
{
	const char *path;
	int64_t offset, length, size;
	struct sandbox *s;
	enum wrong w = query_path(&q->query, &path);
	w = w ? w : query_int(&q->query, "offset", 0, OFFSET_MAX, &offset);
	w = w ? w : query_int(&q->query, "length", FILE_BLOCK_MAX, FILE_BLOCK_MAX, &length);
	w = w ? w : sandbox_get(q->route.id, &s);
	if (w)
		return refuse(c, w);
	CLEANUP_BUF struct buf b, text;
	buf_init(&b, FILE_BLOCK_MAX);
	buf_init(&text, 32);
	w = file_read(s, path, offset, length, &b, &size);
	sandbox_put(s);
	if (w)
		return refuse(c, w);
	struct MHD_Response *r = MHD_create_response_from_buffer(b.n, b.p, MHD_RESPMEM_MUST_COPY);
	buf_printf(&text, "%lld", (long long)size);
	if (r)
		(void)MHD_add_response_header(r, "X-File-Size", text.p);
	return respond(c, 200, r, "application/octet-stream");
}

static enum MHD_Result call_write(struct MHD_Connection *c, struct request *q)
{
	const char *path;
	int64_t offset, size;
	struct sandbox *s;
	enum wrong w = query_path(&q->query, &path);
	w = w ? w : query_int(&q->query, "offset", 0, OFFSET_MAX, &offset);
	w = w ? w : sandbox_get(q->route.id, &s);
	if (w)
		return refuse(c, w);
	w = file_write(s, path, offset, q->body.p, q->body.n, &size);
	sandbox_put(s);
	if (w)
		return refuse(c, w);
	CLEANUP_BUF struct buf b;
	buf_init(&b, 4096);
	struct jw jw = jw_new(&b);
	jw_obj(&jw);
	jw_kint(&jw, "size", size);
	jw_end(&jw);
	return respond_json(c, 200, &b);
}

/* -- the table of calls ------------------------------------------------------------------------ */

static const struct call_row {
	enum target target;
	const char *method;
	size_t body_max; /* 0: a body is refused */
	enum MHD_Result (*run)(struct MHD_Connection *c, struct request *q);
} calls[] = {
	{TARGET_HEALTH, "GET", 0, call_health},
	{TARGET_SANDBOXES, "GET", 0, call_list},
	{TARGET_SANDBOXES, "POST", JSON_BODY_MAX, call_create},
	{TARGET_SANDBOX, "GET", 0, call_get},
	{TARGET_SANDBOX, "DELETE", 1024, call_delete},
	{TARGET_EXECS, "POST", JSON_BODY_MAX, call_exec},
	{TARGET_EXEC, "GET", 0, call_follow},
	{TARGET_KILL, "POST", JSON_BODY_MAX, call_kill},
	{TARGET_FILE, "GET", 0, call_read},
	{TARGET_FILE, "PUT", FILE_BLOCK_MAX, call_write},
};

static const struct call_row *find_call(enum target t, const char *method)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].target == t && strcmp(calls[i].method, method) == 0)
			return &calls[i];
	return NULL;
}

static bool authorized(struct MHD_Connection *c)
{
	const char *h =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
	if (!h || strncasecmp(h, "Bearer ", 7) != 0)
		return false;
	h += 7 + strspn(h + 7, " ");
	return token_equals(h, strlen(h));
}

/* Everything that can be said before the body. */
static enum wrong check_head(struct MHD_Connection *c, struct request *q, const char *method)
{
	if (MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin"))
		return WRONG_ORIGIN;
	enum wrong w = route_parse(q->path, &q->route);
	if (q->route.target != TARGET_HEALTH || w) {
		if (!authorized(c))
			return WRONG_TOKEN;
		if (w)
			return w;
	}
	w = query_parse(q->raw_query, q->a, &q->query);
	if (w)
		return w;
	const struct call_row *row = find_call(q->route.target, method);
	if (!row)
		return WRONG_METHOD;
	buf_done(&q->body);
	buf_init(&q->body, row->body_max);
	return WRONG_NOTHING;
}

static void *request_new(void *cls, const char *uri, struct MHD_Connection *c)
{
	(void)cls;
	(void)c;
	struct arena *a = arena_new(REQUEST_ARENA_MAX);
	struct request *q = ARENA_NEW(a, struct request);
	size_t path_n = strcspn(uri, "?");
	*q = (struct request){.a = a,
		.path = arena_copy(a, uri, path_n),
		.raw_query = arena_str(a, uri[path_n] ? uri + path_n + 1 : "")};
	buf_init(&q->body, 0);
	return q;
}

static void request_free(
	void *cls, struct MHD_Connection *c, void **req, enum MHD_RequestTerminationCode why)
{
	struct request *q = *req;
	(void)cls;
	(void)c;
	(void)why;
	*req = NULL;
	if (!q)
		return;
	buf_done(&q->body);
	arena_free(q->a);
}

static enum MHD_Result refuse_early(struct MHD_Connection *c, const struct request *q)
{
	return refuse_with(c, q->early, q->early_text);
}

static void set_early(struct request *q, enum wrong w)
{
	q->early = w;
	const char *text = wrong_text(w);
	size_t n = strnlen(text, sizeof q->early_text - 1);
	memcpy(q->early_text, text, n);
	q->early_text[n] = 0;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *data_n, void **req)
{
	struct request *q = *req;
	(void)cls;
	(void)url;
	(void)version;
	if (!q->begun) {
		q->begun = true;
		set_early(q, check_head(c, q, method));
		const char *n = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
		/* A huge body is not even read; MHD closes the connection then. */
		return q->early && n && strlen(n) > 8 ? refuse_early(c, q) : MHD_YES;
	}
	if (*data_n > 0) {
		if (q->body.n + *data_n > BODY_DISCARD_MAX)
			return MHD_NO;
		if (!q->early) {
			buf_put(&q->body, data, *data_n);
			if (q->body.full)
				set_early(q, wrong(WRONG_SIZE, "the body is larger than %zu bytes",
						     q->body.max));
		}
		*data_n = 0;
		return MHD_YES;
	}
	if (q->early)
		return refuse_early(c, q);
	return find_call(q->route.target, method)->run(c, q);
}

bool serve_start(int listener)
{
	daemon_of_us = MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0,
		NULL, NULL, on_request, NULL, MHD_OPTION_LISTEN_SOCKET, listener,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(128u << 10),
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)(512u << 10), MHD_OPTION_URI_LOG_CALLBACK,
		request_new, NULL, MHD_OPTION_NOTIFY_COMPLETED, request_free, NULL, MHD_OPTION_END);
	return daemon_of_us != NULL;
}

void serve_stop(void)
{
	MHD_stop_daemon(daemon_of_us);
}
