/*
 * Fuzz target: a whole POST to /mcp as nginx hands it over. The input is text as a client sends it:
 * lines "Name: value", an empty line, the body. It travels as FastCGI records through the library,
 * from the first byte to the last of the answer, without a database (the calls that need one say
 * so). Whatever comes, the answer is whole, of a known status, and JSON-RPC.
 */
#include "arena.h"
#include "buf.h"
#include "db.h"
#include "node.h"
#include "route.h"
#include "text.h"

#include <assert.h>
#include <ctype.h>
#include <fcgiapp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INPUT_MAX  (256u << 10)
#define OUTPUT_MAX (16u << 20)
#define RECORD_MAX 60000

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* -- once -------------------------------------------------------------------------------------- */

static void begin(void)
{
	static const struct conf conf = {.public_url = "https://localhost:8443",
		.origins = "https://listed.example",
		.anonymous_calls = 500,
		.anonymous_accounts = 5,
		.default_plan = "free",
		.ca_hint = "",
		.upgrade_monthly_url = "",
		.upgrade_monthly_price = "",
		.upgrade_yearly_url = "",
		.upgrade_yearly_price = ""};
	static const struct db_conf nowhere = {.socket = "/nonexistent/db.sock", .user = "nobody"};
	static const uint8_t key[32] = {1};
	static bool done;
	if (done)
		return;
	done = true;
	(void)FCGX_Init();
	((struct node *)(uintptr_t)node())->own.key = secret_new(key, sizeof key);
	db_start(&nowhere);
	route_start(&conf);
}

/* -- from text to FastCGI ---------------------------------------------------------------------- */

static void put_record(struct buf *b, uint8_t type, const void *p, size_t n)
{
	const uint8_t head[8] = {1, type, 0, 1, (uint8_t)(n >> 8), (uint8_t)n, 0, 0};
	buf_put(b, head, sizeof head);
	buf_put(b, p, n);
}

static void put_param(struct buf *b, const char *name, const char *value, size_t n)
{
	size_t name_n = strlen(name);
	const uint8_t lengths[5] = {
		(uint8_t)name_n, 0x80, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	buf_put(b, lengths, sizeof lengths);
	buf_put(b, name, name_n);
	buf_put(b, value, n);
}

/* The name of a header as nginx passes it; false for names that it drops. */
static bool param_name(const char *name, size_t n, char out[64])
{
	bool plain = n == 12 && strncasecmp(name, "content-type", n) == 0;
	size_t at = plain ? 0 : (size_t)snprintf(out, 64, "HTTP_");
	for (size_t i = 0; i < n; i++, at++) {
		if (at >= 60 || !(isalnum((unsigned char)name[i]) || name[i] == '-'))
			return false;
		out[at] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
	}
	out[at] = 0;
	return n > 0;
}

static void put_header(struct buf *b, const char *line, size_t n)
{
	char name[64];
	const char *colon = memchr(line, ':', n);
	if (!colon || memchr(line, 0, n) || !param_name(line, (size_t)(colon - line), name))
		return;
	const char *value = colon + 1;
	size_t left = n - (size_t)(value - line);
	while (left && *value == ' ')
		value++, left--;
	while (left && value[left - 1] == ' ')
		left--;
	put_param(b, name, value, left);
}

static void put_params(struct buf *b, const char **at, const char *end)
{
	struct buf params;
	char length[24];
	buf_init(&params, INPUT_MAX * 2);
	put_param(&params, "REQUEST_METHOD", "POST", 4);
	put_param(&params, "DOCUMENT_URI", "/mcp", 4);
	put_param(&params, "REMOTE_ADDR", "192.0.2.1", 9);
	while (*at < end && params.n < RECORD_MAX / 2) {
		const char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		*at = stop < end ? stop + 1 : end;
		if (stop == line)
			break;
		if ((size_t)(stop - line) < RECORD_MAX / 4)
			put_header(&params, line, (size_t)(stop - line));
	}
	int k = snprintf(length, sizeof length, "%zu", (size_t)(end - *at));
	put_param(&params, "CONTENT_LENGTH", length, (size_t)k);
	put_record(b, 4, params.p, params.n);
	put_record(b, 4, NULL, 0);
	buf_done(&params);
}

static void put_request(struct buf *b, const uint8_t *p, size_t n)
{
	static const uint8_t responder[8] = {0, 1, 0};
	const char *at = (const char *)p, *end = at + n;
	put_record(b, 1, responder, sizeof responder);
	put_params(b, &at, end);
	while (at < end) {
		size_t part = (size_t)(end - at) < RECORD_MAX ? (size_t)(end - at) : RECORD_MAX;
		put_record(b, 5, at, part);
		at += part;
	}
	put_record(b, 5, NULL, 0);
}

/* -- the worker's part ------------------------------------------------------------------------- */

/* A file in the place of the connection: what is written stands behind what was read. */
static void serve(int fd)
{
	FCGX_Request r;
	FCGX_InitRequest(&r, -1, 0);
	r.ipcFd = fd;
	r.keepConnection = 1;
	FCGX_Detach(&r);
	assert(FCGX_Accept_r(&r) == 0);
	serve_request(&r, NULL);
	if (r.in) {
		while (FCGX_GetChar(r.in) != EOF)
			;
		FCGX_FreeStream(&r.in);
	}
	(void)FCGX_FClose(r.err);
	(void)FCGX_FClose(r.out);
	r.keepConnection = 0;
	FCGX_Detach(&r);
	FCGX_Finish_r(&r);
}

/* -- the answer -------------------------------------------------------------------------------- */

static void take_output(const uint8_t *p, size_t n, struct buf *ret)
{
	while (n >= 8) {
		size_t length = (size_t)p[4] << 8 | p[5], all = 8 + length + p[6];
		assert(p[0] == 1 && all <= n);
		if (p[1] == 6)
			buf_put(ret, p + 8, length);
		p += all;
		n -= all;
	}
	assert(n == 0 && !ret->full);
}

static int status_of(const char *head)
{
	static const int known[] = {200, 202, 400, 401, 403, 404, 406, 413, 415, 503};
	const char *line = strstr(head, "Status: ");
	assert(line == head);
	int status = (int)strtol(line + strlen("Status: "), NULL, 10);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i] == status)
			return status;
	abort();
}

static void check_response(const struct json *j)
{
	const struct json *error = json_get(j, "error"), *result = json_get(j, "result");
	assert(json_type(j) == JSON_OBJ);
	assert(strcmp(json_str(json_get(j, "jsonrpc"), NULL), "2.0") == 0);
	assert((error != NULL) != (result != NULL));
	if (result) {
		assert(json_type(result) == JSON_OBJ && json_get(j, "id"));
		return;
	}
	assert(json_type(json_get(error, "code")) == JSON_INT);
	assert(*json_str(json_get(error, "message"), NULL));
	assert(json_str(json_get(json_get(error, "data"), "code"), NULL));
}

static void check_body(int status, const char *body, size_t n)
{
	CLEANUP_JSON struct json *root = NULL;
	if (status == 202) {
		assert(n == 0);
		return;
	}
	assert(json_parse(body, n, &root) == OK);
	if (json_type(root) != JSON_LIST) {
		check_response(root);
		return;
	}
	assert(status == 200 && json_len(root) > 0);
	for (size_t i = 0; i < json_len(root); i++)
		check_response(json_at(root, i));
}

static void check_answer(struct buf *b)
{
	buf_char(b, 0);
	size_t n = b->n - 1;
	const char *end = strstr(b->p, "\r\n\r\n");
	assert(end);
	size_t head_n = (size_t)(end - b->p) + 4;
	const char *length = strstr(b->p, "Content-Length: ");
	assert(length && length < end);
	assert(strtoul(length + strlen("Content-Length: "), NULL, 10) == n - head_n);
	assert(!strstr(b->p, "Mcp-Session-Id"));
	check_body(status_of(b->p), b->p + head_n, n - head_n);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	CLEANUP_BUF struct buf sent = {0}, got = {0};
	if (n > INPUT_MAX)
		return 0;
	begin();
	buf_init(&sent, INPUT_MAX * 2);
	buf_init(&got, OUTPUT_MAX);
	put_request(&sent, p, n);
	int fd = memfd_create("connection", MFD_CLOEXEC), again = dup(fd);
	assert(fd >= 0 && again >= 0);
	assert(write(fd, sent.p, sent.n) == (ssize_t)sent.n && lseek(fd, 0, SEEK_SET) == 0);
	serve(fd);
	size_t all = (size_t)lseek(again, 0, SEEK_END);
	uint8_t *m = mmap(NULL, all, PROT_READ, MAP_SHARED, again, 0);
	assert(m != MAP_FAILED && all > sent.n);
	take_output(m + sent.n, all - sent.n, &got);
	(void)munmap(m, all);
	(void)close(again);
	check_answer(&got);
	return 0;
}
