/*
 * Token and connection file. Promises: the token leaves this file only into the connection file; no
 * link is followed; a half-written file never has the final name.
 */
#include "connfile.h"

#include "arena.h"
#include "buf.h"
#include "clock.h"
#include "json.h"
#include "secret.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_BYTES     32
#define TOKEN_CHARS_B64 43
#define FILE_MAX        8192

static struct secret token;
static int folder = -1; /* by descriptor: the path may change its meaning */
static char name[256], draft[300];
static ino_t ours;

void token_make(void)
{
	unsigned char raw[TOKEN_BYTES];
	CLEANUP_ARENA struct arena *a = arena_new(4096);
	random_bytes(raw, sizeof raw);
	const char *s = base64url_encode(a, raw, sizeof raw);
	token = secret_new(s, strlen(s));
	explicit_bzero(raw, sizeof raw);
}

bool token_equals(const char *p, size_t n)
{
	return n == TOKEN_CHARS_B64 && bytes_equal(p, secret_bytes(&token), n);
}

int64_t connection_pid(const char *text, size_t n)
{
	CLEANUP_JSON struct json *o = NULL;
	if (json_parse(text, n, &o))
		return 0;
	const struct json *pid = json_get(o, "pid");
	return json_type(pid) == JSON_INT && json_int(pid) > 0 && json_int(pid) < INT32_MAX
		       ? json_int(pid)
		       : 0;
}

/* Removes a file of a dead run; false when something living or foreign is there. */
static bool clear_stale(void)
{
	char text[FILE_MAX];
	struct stat st;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	bool plain = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
	ssize_t n = plain ? read(fd, text, sizeof text) : -1;
	(void)close(fd);
	if (n < 0)
		return false;
	int64_t pid = connection_pid(text, (size_t)n);
	explicit_bzero(text, sizeof text);
	bool dead = pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
	return dead && unlinkat(folder, name, 0) == 0;
}

/* Opens the folder and keeps the name; NULL or what is wrong. */
static const char *open_folder(const char *path)
{
	char copy[4096], base[4096];
	struct stat st;
	if ((size_t)snprintf(copy, sizeof copy, "%s", path) >= sizeof copy)
		return "its path is too long";
	(void)snprintf(base, sizeof base, "%s", path);
	if ((size_t)snprintf(name, sizeof name, "%s", basename(base)) >= sizeof name)
		return "its name is too long";
	folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &st) < 0)
		return "its folder can not be opened";
	if (st.st_mode & 022 || (st.st_uid != geteuid() && st.st_uid != 0))
		return "others may write to its folder";
	return NULL;
}

const char *connection_prepare(const char *path)
{
	struct stat st;
	const char *why = path ? open_folder(path) : NULL;
	if (why || !path)
		return why;
	if (!clear_stale())
		return "a file of a living run, or something else, is there already";
	(void)snprintf(draft, sizeof draft, ".%s.%d", name, (int)getpid());
	int fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0 || fstat(fd, &st) < 0 || close(fd) < 0)
		return "it can not be made";
	ours = st.st_ino;
	return NULL;
}

const char *connection_publish(const char *url, int64_t expires_ms)
{
	char expires[TIME_TEXT_SIZE];
	CLEANUP_BUF struct buf b = {0};
	if (folder < 0)
		return NULL;
	buf_init(&b, FILE_MAX);
	struct jw w = jw_new(&b);
	jw_obj(&w);
	jw_kstr(&w, "url", url);
	jw_key(&w, "token");
	jw_strn(&w, (const char *)secret_bytes(&token), token.n);
	jw_kstr(&w, "expiresAt", time_text(expires, expires_ms));
	jw_kint(&w, "pid", getpid());
	jw_end(&w);
	buf_char(&b, '\n');
	int fd = openat(folder, draft, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (b.full || fd < 0 || write(fd, b.p, b.n) != (ssize_t)b.n || fsync(fd) < 0 ||
		close(fd) < 0)
		return "it can not be written";
	if (renameat2(folder, draft, folder, name, RENAME_NOREPLACE) < 0)
		return "it can not be put in place";
	return NULL;
}

static void remove_if_ours(const char *which)
{
	struct stat st;
	if (fstatat(folder, which, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ours)
		(void)unlinkat(folder, which, 0);
}

void connection_remove(void)
{
	if (folder < 0)
		return;
	remove_if_ours(name);
	remove_if_ours(draft);
}
