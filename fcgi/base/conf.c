/*
 * Settings: the table of rows, and the reader that libinih drives.
 *
 * Promises: every problem of the file is reported with its line; nothing unknown is skipped; a
 * value is taken whole or refused. The environment is not read, so the file says everything. Does
 * not check that a path exists or a server answers: that is the business of whoever opens it.
 */
#include "conf.h"

#include "arena.h"
#include "buf.h"
#include "text.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX  (64 << 10) /* of a settings file: some hundred times the example */
#define ARENA_CONF_MAX  (1 << 20)  /* all texts of one file */
#define REPORTS_MAX     20         /* lines of complaint before the rest is only counted */
#define SHOWN_CHARS_MAX 64         /* of a name from the file, in a complaint */

enum kind {
	KIND_INT,    /* int64_t; min ... max */
	KIND_TEXT,   /* const char *; min ... max bytes */
	KIND_PATH,   /* the same; a relative path is taken from the folder of the settings file */
	KIND_SECRET, /* a text that makes a file that others can read an error */
};

struct row {
	const char *section, *key;
	enum kind kind;
	size_t at; /* in struct conf */
	const char *def;
	int64_t min, max;
	bool (*form)(const char *s); /* NULL: any text */
	const char *form_doc;        /* what form() asks for, as in "must be ..." */
	const char *doc;
};

struct reading {
	FILE *file;
	const char *path;
	struct arena *texts;
	struct conf *ret;
	int line;
	size_t bytes;
	bool secrets; /* a KIND_SECRET row has a value */
	unsigned reports;
	bool seen[64];
};

/* A scheme and a host, nothing behind it: paths are appended to it. */
static bool is_origin(const char *s)
{
	if (strncmp(s, "https://", 8) != 0 || !s[8])
		return false;
	return !strpbrk(s + 8, "/?#@ ");
}

static bool is_link(const char *s)
{
	return !*s || (strncmp(s, "https://", 8) == 0 && s[8] && !strpbrk(s, " \"<>"));
}

static bool is_plan(const char *s)
{
	return strcmp(s, "free") == 0 || strcmp(s, "pro") == 0;
}

static bool is_name(const char *s)
{
	return !*s || name_safe(s, 64);
}

static bool is_allowed_list(const char *s)
{
	while (*s) {
		size_t n = strcspn(s, ",");
		if (strncmp(s, "http://", 7) != 0 && strncmp(s, "https://", 8) != 0 &&
			strncmp(s, "unix:/", 6) != 0)
			return false;
		s += n;
		s += strspn(s, ", ");
	}
	return true;
}

#define AT(member) offsetof(struct conf, member)
/* The C type of the member is checked, so a row can not write a number over a text. */
#define IS_INT(m) (_Generic(((struct conf *)0)->m, int64_t : AT(m)))
#define IS_STR(m) (_Generic(((struct conf *)0)->m, const char * : AT(m)))
#define INT(s, k, m, d, lo, hi, doc)                                                               \
	{                                                                                          \
		s, k, KIND_INT, IS_INT(m), d, lo, hi, NULL, NULL, doc                              \
	}
#define TEXT(s, k, m, d, lo, hi, doc)                                                              \
	{                                                                                          \
		s, k, KIND_TEXT, IS_STR(m), d, lo, hi, NULL, NULL, doc                             \
	}
#define PATH(s, k, m, d, lo, doc)                                                                  \
	{                                                                                          \
		s, k, KIND_PATH, IS_STR(m), d, lo, 160, NULL, NULL, doc                            \
	}
#define SECRET(s, k, m, doc)                                                                       \
	{                                                                                          \
		s, k, KIND_SECRET, IS_STR(m), "", 0, 128, NULL, NULL, doc                          \
	}
#define FORM(s, k, m, d, lo, hi, f, fd, doc)                                                       \
	{                                                                                          \
		s, k, KIND_TEXT, IS_STR(m), d, lo, hi, f, fd, doc                                  \
	}

#define NAME_DOC "letters, digits and . _ + -"
#define LINK_DOC "empty or begin with https://"

/* clang-format off */
static const struct row rows[] = {
	FORM("server", "public_url", public_url, "https://localhost:8443", 9, 160, is_origin, "https://host or https://host:port without a path",
		"Address under which callers reach this server."),
	PATH("server", "socket", socket, "/run/compute-connector/fcgi.sock", 0,
		"Unix socket for nginx, mode 0660. Empty: the socket is inherited (LISTEN_FDS, or descriptor 0)."),
	FORM("server", "socket_group", socket_group, "", 0, 64, is_name, NAME_DOC,
		"Group of the socket: the one of nginx. Empty: our own group."),
	INT("server", "workers", workers, "0", 0, 256,
		"Worker processes. 0: as many as cores, at least 2."),
	INT("server", "threads", threads, "4000", 4, 20000,
		"Threads of one worker at most; each waiting request and each job in hand holds one."),
	INT("server", "queue", queue, "1000", 0, 100000,
		"Requests of one worker that may wait for a thread; further ones are answered 503."),
	INT("server", "runnable", runnable, "0", 0, 1024,
		"Threads of one worker that run at once. 0: as many as cores, at least 2."),
	INT("server", "drain_s", drain_s, "250", 1, 250,
		"Seconds that an old worker may take to finish its requests after a reload or stop."),
	TEXT("server", "origins", origins, "", 0, 160,
		"Browser origins that may call besides our own, separated by commas."),
	FORM("server", "default_plan", default_plan, "free", 3, 4, is_plan, "free or pro",
		"Plan of an account that is made with POST /api/key. pro suits a private installation."),
	PATH("server", "ca_hint", ca_hint, "", 0,
		"Certificate file of a private CA, named in texts about connecting. Empty: a public CA."),

	PATH("database", "socket", db_socket, "/run/mysqld/mysqld.sock", 0,
		"Unix socket of MariaDB. Empty: host and port are used."),
	TEXT("database", "host", db_host, "127.0.0.1", 0, 160,
		"Hosts of MariaDB, separated by commas and tried in this order: one writer at a time."),
	INT("database", "port", db_port, "3306", 1, 65535, "Port of MariaDB on these hosts."),
	FORM("database", "user", db_user, "compute_connector", 1, 64, is_name, NAME_DOC,
		"Database user of workers and keeper; needs SELECT, INSERT, UPDATE and DELETE only."),
	SECRET("database", "password", db_password,
		"Its password. Empty: the server knows the user by the socket."),
	FORM("database", "schema", db_schema, "compute_connector", 1, 64, is_name, NAME_DOC,
		"Name of the database."),
	PATH("database", "ca_file", db_ca, "", 0,
		"CA of the database server when it is reached over the network. Empty: no TLS."),
	INT("database", "connections", db_connections, "8", 1, 64,
		"Connections of one process; 8 serve many threads, because none is held while a provider works."),
	FORM("database", "admin_user", db_admin_user, "", 0, 64, is_name, NAME_DOC,
		"Database user of `migrate`, which creates tables. Empty: the user above."),
	SECRET("database", "admin_password", db_admin_password, "Its password."),

	PATH("keys", "master_keys", master_keys, "/etc/compute-connector/master.keys", 1,
		"File of the master keys, mode 0600. `admin master-key create` makes it. Back it up apart from the database."),

	PATH("outbound", "ca_file", ca_file, "/etc/ssl/certs/ca-certificates.crt", 1,
		"Bundle of the CAs that providers are checked against."),
	PATH("outbound", "ca_extra", ca_extra, "", 0,
		"A further CA file, for bridges of your own."),
	FORM("outbound", "allowed_origins", allowed_origins, "", 0, 160, is_allowed_list, "a list of http://host:port, https://host:port or unix:/path",
		"Origins, separated by commas, that users may name although they are private or not https."),
	TEXT("outbound", "provider_urls", provider_urls, "", 0, 160,
		"Addresses that stand in for the fixed ones of providers, for a gateway of yours: name=https://host/path, separated by commas."),

	INT("plans", "free_calls", free_calls, "500", 0, 1000000000, "Calls a day of a free account."),
	INT("plans", "pro_calls", pro_calls, "50000", 0, 1000000000, "Calls a day of a pro account."),
	INT("plans", "anonymous_calls", anonymous_calls, "500", 0, 1000000000,
		"Calls a day without a key, of one address."),
	INT("plans", "anonymous_accounts", anonymous_accounts, "5", 0, 1000000,
		"Accounts a day that one address may make. 0: only the operator makes accounts."),

	FORM("upgrade", "monthly_url", upgrade_monthly_url, "", 0, 160, is_link, LINK_DOC,
		"Page on which a user buys the pro plan by the month. Empty: none is shown."),
	TEXT("upgrade", "monthly_price", upgrade_monthly_price, "", 0, 64, "Its price, as shown to users."),
	FORM("upgrade", "yearly_url", upgrade_yearly_url, "", 0, 160, is_link, LINK_DOC,
		"The same by the year."),
	TEXT("upgrade", "yearly_price", upgrade_yearly_price, "", 0, 64, "Its price, as shown to users."),

	INT("keeper", "pause_ms", keeper_pause_ms, "1000", 50, 60000,
		"Milliseconds between two rounds of the keeper."),
	INT("keeper", "sweep_s", sweep_s, "300", 5, 86400,
		"Seconds between two comparisons of the sandboxes at the providers with our rows."),
	INT("keeper", "retention_days", retention_days, "90", 1, 3650,
		"Days after which ended jobs and usage rows are deleted."),
};
/* clang-format on */
#define ROWS (sizeof rows / sizeof rows[0])

/* What was read lives until the process ends; the chain keeps it reachable for leak checkers. */
struct kept {
	struct kept *next;
	struct arena *texts;
};
static struct kept *kept;

static struct arena *texts_new(void)
{
	struct arena *a = arena_new(ARENA_CONF_MAX);
	struct kept *k = ARENA_NEW(a, struct kept);
	*k = (struct kept){.next = kept, .texts = a};
	kept = k;
	return a;
}

/* A name from the file, fit to be printed. */
static const char *shown(const char *name)
{
	return name_safe(name, SHOWN_CHARS_MAX) ? name : "?";
}

#define REPORT(r, fmt, ...)                                                                        \
	do {                                                                                       \
		if ((r)->reports++ < REPORTS_MAX)                                                  \
			fprintf(stderr, "%s: line %d: " fmt "\n", (r)->path, (r)->line,            \
				__VA_ARGS__);                                                      \
	} while (0)

static const struct row *row_find(const char *section, const char *key)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].section, section) == 0 && strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	return NULL;
}

static bool section_known(const char *section)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].section, section) == 0)
			return true;
	}
	return false;
}

static bool printable(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	}
	return true;
}

/* Relative to the folder of the settings file, so that a folder with its file can be moved. */
static const char *path_resolve(const struct reading *r, const char *value)
{
	const char *slash = r->path ? strrchr(r->path, '/') : NULL;
	if (!*value || *value == '/' || !slash)
		return arena_str(r->texts, value);
	return arena_printf(r->texts, "%.*s/%s", (int)(slash - r->path), r->path, value);
}

/* The reason why a value does not fit its row, or NULL. */
static const char *text_problem(const struct row *row, const char *value)
{
	size_t n = strlen(value), chars;
	if (n < (size_t)row->min || n > (size_t)row->max)
		return "length";
	if (!utf8_valid(value, n, &chars) || !printable(value))
		return "UTF-8 without control characters";
	if (row->form && !row->form(value))
		return row->form_doc;
	return NULL;
}

static bool row_set(struct reading *r, const struct row *row, const char *value)
{
	char *at = (char *)r->ret + row->at;
	if (row->kind == KIND_INT) {
		int64_t number;
		if (!int_parse(value, row->min, row->max, &number)) {
			REPORT(r, "[%s] %s must be a whole number from %lld to %lld", row->section,
				row->key, (long long)row->min, (long long)row->max);
			return false;
		}
		memcpy(at, &number, sizeof number);
		return true;
	}
	const char *problem = text_problem(row, value);
	if (problem && strcmp(problem, "length") == 0)
		REPORT(r, "[%s] %s must have %lld to %lld bytes", row->section, row->key,
			(long long)row->min, (long long)row->max);
	else if (problem)
		REPORT(r, "[%s] %s must be %s", row->section, row->key, problem);
	if (problem)
		return false;
	const char *text =
		row->kind == KIND_PATH ? path_resolve(r, value) : arena_str(r->texts, value);
	memcpy(at, &text, sizeof text);
	return true;
}

static int on_setting(void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;
	const struct row *row = row_find(section, key);
	if (!row && !section_known(section)) {
		REPORT(r, "there is no section [%s]", shown(section));
		return 1;
	}
	if (!row) {
		REPORT(r, "section [%s] has no setting %s", section, shown(key));
		return 1;
	}
	size_t i = (size_t)(row - rows);
	if (r->seen[i])
		REPORT(r, "[%s] %s is set twice (an indented line continues the one above)",
			section, key);
	else if (row_set(r, row, value) && row->kind == KIND_SECRET && *value)
		r->secrets = true;
	r->seen[i] = true;
	return 1;
}

/* Hands one line to libinih, which neither counts for its callback nor minds a cut line. */
static char *next_line(char *line, int size, void *ctx)
{
	struct reading *r = ctx;
	size_t n = 0;
	int c;
	bool nul = false, cut = false;
	while ((c = fgetc(r->file)) != EOF && r->bytes < FILE_BYTES_MAX) {
		r->bytes++;
		nul = nul || c == 0;
		if (n + 1 < (size_t)size)
			line[n++] = (char)c;
		else
			cut = cut || c != '\n';
		if (c == '\n')
			break;
	}
	line[n] = 0;
	if (n == 0)
		return NULL;
	r->line++;
	if (cut)
		REPORT(r, "the line is longer than %d bytes", size - 1);
	if (nul)
		REPORT(r, "%s", "the line contains a NUL byte");
	if (cut || nul)
		line[0] = '#', line[1] = 0;
	return line;
}

static void read_open(struct reading *r, const struct stat *about)
{
	int bad = ini_parse_stream(next_line, r, on_setting, r);
	if (bad > 0) {
		r->line = bad;
		REPORT(r, "%s", "this is neither [section] nor `name = value`");
	}
	if (ferror(r->file) || r->bytes >= FILE_BYTES_MAX) {
		r->reports++;
		fprintf(stderr, "%s: can not be read whole (at most %d bytes)\n", r->path,
			FILE_BYTES_MAX);
	}
	if (r->secrets && (about->st_mode & (S_IROTH | S_IWOTH))) {
		r->reports++;
		fprintf(stderr, "%s: holds a password but is open to others; chmod 0640\n",
			r->path);
	}
	if (r->reports > REPORTS_MAX)
		fprintf(stderr, "%s: and %u more\n", r->path, r->reports - REPORTS_MAX);
}

static bool read_file(struct reading *r)
{
	struct stat about;
	r->file = fopen(r->path, "re");
	if (!r->file || fstat(fileno(r->file), &about) < 0 || !S_ISREG(about.st_mode)) {
		fprintf(stderr, "%s: %s\n", r->path,
			r->file ? "is not a plain file" : strerror(errno));
		if (r->file)
			(void)fclose(r->file); /* nothing was written */
		return false;
	}
	read_open(r, &about);
	(void)fclose(r->file);
	return r->reports == 0;
}

bool conf_read(const char *path, struct conf *ret)
{
	_Static_assert(ROWS <= sizeof((struct reading *)0)->seen, "a flag for every row");
	struct conf conf = {0};
	struct reading r = {.texts = texts_new(), .ret = &conf, .path = "defaults"};
	bool good = true;
	for (size_t i = 0; i < ROWS; i++)
		good = row_set(&r, &rows[i], rows[i].def) && good;
	r.path = path;
	if (path)
		good = read_file(&r) && good;
	if (good)
		*ret = conf;
	return good;
}

static void example_row(struct buf *b, const struct row *row)
{
	buf_printf(b, "\n# %s\n", row->doc);
	if (row->kind == KIND_INT)
		buf_printf(b, "# A whole number from %lld to %lld.\n", (long long)row->min,
			(long long)row->max);
	else if (row->form_doc)
		buf_printf(b, "# Must be %s; at most %lld bytes.\n", row->form_doc,
			(long long)row->max);
	buf_printf(b, "%s = %s\n", row->key, row->def);
}

void conf_print_example(void)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, FILE_BYTES_MAX);
	buf_str(&b, "# Settings of Compute Connector, each with its default.\n"
		    "# A relative path is taken from the folder of this file. \" ;\" begins a "
		    "comment.\n"
		    "# When a password is set the file must not be open to others (0640).\n");
	const char *section = "";
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(rows[i].section, section) != 0)
			buf_printf(&b, "\n[%s]\n", rows[i].section);
		section = rows[i].section;
		example_row(&b, &rows[i]);
	}
	fputs(b.p, stdout);
	fflush(stdout);
}
