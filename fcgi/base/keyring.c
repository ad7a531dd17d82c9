/*
 * The file of master keys: read strictly, written whole. It is the one secret that is not in the
 * database, and losing it loses every stored provider key; so a change is on the disk before it is
 * reported, and two changes at once wait for each other.
 */
#include "seal.h"

#include "alloc.h"
#include "buf.h"
#include "clock.h"
#include "bounds.h"
#include "seal_parts.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIELD          "keys.master_keys"
#define FILE_BYTES_MAX (16 << 10) /* MASTER_KEYS_MAX lines of 83 bytes, and comments */
#define KEY_HEX        (2 * SEAL_KEY_BYTES)

struct master {
	uint32_t id;
	struct secret key;
};

struct keyring {
	struct master keys[MASTER_KEYS_MAX];
	size_t n;
	uint32_t current; /* 0: none yet */
	uid_t owner;
	gid_t group;
};

/* -- look-up -------------------------------------------------------------------------------------
 */

const struct secret *keyring_key(const struct keyring *k, uint32_t id)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->keys[i].id == id)
			return &k->keys[i].key;
	return NULL;
}

bool keyring_has(const struct keyring *k, uint32_t id)
{
	return keyring_key(k, id) != NULL;
}

uint32_t keyring_current(const struct keyring *k)
{
	return k->current;
}

void keyring_free(struct keyring *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n; i++)
		secret_done(&k->keys[i].key);
	free(k);
}

static void keyring_cleanup(struct keyring **k)
{
	keyring_free(*k);
}
#define CLEANUP_KEYRING __attribute__((cleanup(keyring_cleanup)))

/* -- reading -------------------------------------------------------------------------------------
 */

/* Cuts the next word off the line; "" at its end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t\r");
	char *end = word + strcspn(word, " \t\r");
	*line = *end ? end + 1 : end;
	*end = 0;
	return word;
}

static bool read_id(const char *s, uint32_t *ret)
{
	uint8_t b[4];
	if (strlen(s) != 2 * sizeof b || !hex_decode(b, sizeof b, s))
		return false;
	*ret = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	return *ret != 0;
}

static enum err add_line(struct keyring *k, int at, uint32_t id, const char *hex, const char *flag)
{
	uint8_t key[SEAL_KEY_BYTES];
	bool current = strcmp(flag, "current") == 0;
	if (*flag && !current)
		return fail(ERR_SEALED, FIELD, "line %d: the third word can only be current", at);
	if (keyring_has(k, id))
		return fail(ERR_SEALED, FIELD, "line %d: key %08x stands here twice", at, id);
	if (current && k->current)
		return fail(ERR_SEALED, FIELD, "line %d: a second key is current", at);
	if (k->n == MASTER_KEYS_MAX)
		return fail(ERR_SEALED, FIELD, "line %d: more than %d keys", at, MASTER_KEYS_MAX);
	if (strlen(hex) != KEY_HEX || !hex_decode(key, sizeof key, hex))
		return fail(ERR_SEALED, FIELD,
			"line %d: the key must be %d hex digits in lower case", at, KEY_HEX);
	k->keys[k->n++] = (struct master){.id = id, .key = secret_new(key, sizeof key)};
	OPENSSL_cleanse(key, sizeof key);
	if (current)
		k->current = id;
	return OK;
}

static enum err read_line(struct keyring *k, int at, char *line)
{
	uint32_t id;
	line[strcspn(line, "#")] = 0;
	char *id_text = next_word(&line), *hex = next_word(&line), *flag = next_word(&line);
	if (!*id_text)
		return OK;
	if (!read_id(id_text, &id))
		return fail(ERR_SEALED, FIELD,
			"line %d: the id must be 8 hex digits in lower case and not 0", at);
	if (*next_word(&line))
		return fail(ERR_SEALED, FIELD, "line %d: more than three words", at);
	return add_line(k, at, id, hex, flag);
}

static enum err read_text(struct keyring *k, char *text, size_t n)
{
	if (strlen(text) != n)
		return fail(ERR_SEALED, FIELD, "the file has a NUL byte");
	for (int at = 1; text; at++) {
		char *end = strchr(text, '\n');
		if (end)
			*end = 0;
		enum err e = read_line(k, at, text);
		if (e)
			return e;
		text = end ? end + 1 : NULL;
	}
	if (!k->current)
		return fail(ERR_SEALED, FIELD, "no line says which key is current");
	return OK;
}

/* Nobody but the owner may read the keys, and the owner is us or root. */
static enum err check_access(int fd, struct keyring *k)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(ERR_SEALED, FIELD, "is not a file");
	if (st.st_mode & 077)
		return fail(ERR_SEALED, FIELD, "is open to others: mode %04o, must be 0600",
			(unsigned)(st.st_mode & 07777));
	if (st.st_uid != geteuid() && st.st_uid != 0 && geteuid() != 0)
		return fail(ERR_SEALED, FIELD, "belongs to another user");
	if (st.st_size > FILE_BYTES_MAX)
		return fail(ERR_SEALED, FIELD, "has more than %d bytes", FILE_BYTES_MAX);
	k->owner = st.st_uid;
	k->group = st.st_gid;
	return OK;
}

static enum err read_file(int fd, struct keyring *k)
{
	enum err e = check_access(fd, k);
	if (e)
		return e;
	char *text = must(OPENSSL_secure_zalloc(FILE_BYTES_MAX + 1));
	size_t n = 0;
	ssize_t got;
	while (n < FILE_BYTES_MAX && (got = read(fd, text + n, FILE_BYTES_MAX - n)) > 0)
		n += (size_t)got;
	e = read_text(k, text, n);
	OPENSSL_secure_clear_free(text, FILE_BYTES_MAX + 1);
	return e;
}

enum err keyring_load(const char *path, struct keyring **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us up */
	if (fd < 0)
		return fail(ERR_SEALED, FIELD, "can not be opened: %s",
			errno == ENOENT ? "there is no such file" : "no access");
	struct keyring *k = must(calloc(1, sizeof *k));
	enum err e = read_file(fd, k);
	(void)close(fd);
	if (e)
		keyring_free(k);
	else
		*ret = k;
	return e;
}

/* -- writing -------------------------------------------------------------------------------------
 */

/* The place of a change: its folder is locked, so that changes come one after the other. */
struct change {
	int folder;
	char path[4096], fresh[4096 + 8];
};

static void change_end(struct change *c)
{
	if (c->folder >= 0)
		(void)close(c->folder); /* and unlocks */
}
#define CLEANUP_CHANGE __attribute__((cleanup(change_end)))

static enum err change_begin(const char *path, struct change *c)
{
	c->folder = -1;
	if (strlen(path) >= sizeof c->path)
		return fail(ERR_SEALED, FIELD, "is too long for a path");
	(void)snprintf(c->path, sizeof c->path, "%s", path);
	(void)snprintf(c->fresh, sizeof c->fresh, "%s.new", path);
	char *slash = strrchr(c->path, '/');
	if (slash)
		*slash = 0;
	c->folder = open(slash ? (slash == c->path ? "/" : c->path) : ".",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (slash)
		*slash = '/';
	if (c->folder < 0 || flock(c->folder, LOCK_EX) != 0)
		return fail(ERR_SEALED, FIELD, "its folder can not be opened");
	return OK;
}

static void put_keys(const struct keyring *k, struct buf *b)
{
	char hex[KEY_HEX + 1];
	buf_str(b, "# Master keys: ID KEY [current]. Whoever reads this opens every stored key.\n");
	for (size_t i = 0; i < k->n; i++) {
		hex_encode(hex, secret_bytes(&k->keys[i].key), SEAL_KEY_BYTES);
		buf_printf(b, "%08x %s%s\n", k->keys[i].id, hex,
			k->keys[i].id == k->current ? " current" : "");
	}
	OPENSSL_cleanse(hex, sizeof hex);
	assert(!b->full);
}

static bool write_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t done = write(fd, p, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static bool write_fresh(const struct keyring *k, const char *path)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, FILE_BYTES_MAX);
	put_keys(k, &b);
	(void)unlink(path); /* what a change that was killed left behind */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool owned = geteuid() != 0 || fchown(fd, k->owner, k->group) == 0;
	bool ok = owned && write_all(fd, b.p, b.n) && fsync(fd) == 0;
	return close(fd) == 0 && ok;
}

/* The old file stays whole until the new one is on the disk. link() refuses an existing file, so a
 * first file never replaces another. */
static enum err save(const struct keyring *k, const struct change *c, bool first)
{
	bool written = write_fresh(k, c->fresh);
	if (written)
		written = (first ? link(c->fresh, c->path) : rename(c->fresh, c->path)) == 0;
	bool exists = first && !written && errno == EEXIST;
	if (first || !written)
		(void)unlink(c->fresh);
	if (exists)
		return fail(ERR_SEALED, FIELD, "the file exists already");
	if (!written || fsync(c->folder) != 0)
		return fail(ERR_SEALED, FIELD, "can not be written");
	return OK;
}

static uint32_t add_fresh(struct keyring *k)
{
	uint8_t key[SEAL_KEY_BYTES];
	uint32_t id = 0;
	while (id == 0 || keyring_has(k, id))
		random_bytes(&id, sizeof id);
	random_bytes(key, sizeof key);
	k->keys[k->n++] = (struct master){.id = id, .key = secret_new(key, sizeof key)};
	OPENSSL_cleanse(key, sizeof key);
	return id;
}

enum err keyring_create(const char *path, uint32_t *ret_id)
{
	CLEANUP_CHANGE struct change c;
	CLEANUP_KEYRING struct keyring *k = must(calloc(1, sizeof *k));
	enum err e = change_begin(path, &c);
	if (e)
		return e;
	k->owner = geteuid();
	k->group = getegid();
	k->current = add_fresh(k);
	e = save(k, &c, true);
	if (!e)
		*ret_id = k->current;
	return e;
}

enum err keyring_add(const char *path, uint32_t *ret_id)
{
	CLEANUP_CHANGE struct change c;
	CLEANUP_KEYRING struct keyring *k = NULL;
	enum err e = change_begin(path, &c);
	if (!e)
		e = keyring_load(path, &k);
	if (e)
		return e;
	if (k->n == MASTER_KEYS_MAX)
		return fail(ERR_SEALED, FIELD, "has %d keys already, remove one", MASTER_KEYS_MAX);
	uint32_t id = add_fresh(k);
	e = save(k, &c, false);
	if (!e)
		*ret_id = id;
	return e;
}

static enum err load_with(const char *path, uint32_t id, struct change *c, struct keyring **ret)
{
	enum err e = change_begin(path, c);
	if (!e)
		e = keyring_load(path, ret);
	if (!e && !keyring_has(*ret, id))
		e = fail(ERR_BAD_INPUT, "id", "there is no key %08x in the file", id);
	return e;
}

enum err keyring_make_current(const char *path, uint32_t id)
{
	CLEANUP_CHANGE struct change c;
	CLEANUP_KEYRING struct keyring *k = NULL;
	enum err e = load_with(path, id, &c, &k);
	if (e)
		return e;
	k->current = id;
	return save(k, &c, false);
}

enum err keyring_remove(const char *path, uint32_t id)
{
	CLEANUP_CHANGE struct change c;
	CLEANUP_KEYRING struct keyring *k = NULL;
	enum err e = load_with(path, id, &c, &k);
	if (e)
		return e;
	if (k->current == id)
		return fail(ERR_BAD_INPUT, "id", "key %08x is current", id);
	size_t at = 0;
	while (k->keys[at].id != id)
		at++;
	secret_done(&k->keys[at].key);
	memmove(&k->keys[at], &k->keys[at + 1], (k->n - at - 1) * sizeof *k->keys);
	k->n--;
	return save(k, &c, false);
}
