/*
 * From the text of a job to a row of the table.
 *
 * The text is read word by word, cut into parts, each part is freed of its wrappers (sudo, npx, env
 * ...) and matched. Parts that run one after another count with the largest, parts that run
 * together with the sum. It promises an answer for any text, in time linear in it; it runs nothing,
 * looks up nothing, and gives back only our own static words.
 */
#include "need.h"

#include "arena.h"
#include "bounds.h"
#include "need_part.h"
#include "shell_words.h"

#include <string.h>

#define PARTS_MAX      400 /* commands of one text; bounds the time a hostile text can take */
#define NEST_TEXTS_MAX 3   /* sh -c 'bash -c "..."' */
#define UNKNOWN_MB     500
#define LIGHT_MB       50
#define RUNTIME_MB     300 /* what a runtime needs beyond its heap */

struct match {
	struct arena *a;
	int64_t cores;
	unsigned parts;                       /* seen so far, in all texts */
	struct part part[NEST_TEXTS_MAX + 1]; /* the one being read, of each nested text */
};

enum wrapper_kind {
	WRAP_PLAIN,
	WRAP_ALONE,     /* harmless when nothing follows */
	WRAP_CONTAINER, /* -m, --memory */
	WRAP_UNIT,      /* MemoryMax= */
};

/* Words in front of the command that are not the command. */
struct wrapper {
	const char *pattern;
	const char *values; /* options that take the next word, apart by spaces */
	size_t positionals; /* arguments before the command */
	enum wrapper_kind kind;
};

#define RUN_VALUES                                                                                 \
	"-m --memory -v --volume -w --workdir -e --env --env-file -u --user --name -p --publish "  \
	"--network --net --cpus --cpu-shares --platform --mount --entrypoint -l --label "          \
	"--memory-swap "                                                                           \
	"--shm-size -h --hostname --add-host --gpus --tmpfs --ulimit --pull --security-opt "       \
	"--cap-add "                                                                               \
	"--cap-drop --device --ipc --pid --restart --userns --runtime -c --cpuset-cpus"

/* clang-format off */
static const struct wrapper wrappers[] = {
	{"sudo|doas", "-u -g -h -p -C -r -t -D -R -T --user --group --host --prompt --chdir", 0, WRAP_PLAIN},
	{"env|cross-env|export|declare|local|readonly", "-u --unset -C --chdir", 0, WRAP_ALONE},
	{"time", "-f -o --format --output", 0, WRAP_PLAIN},
	{"nice", "-n --adjustment", 0, WRAP_PLAIN},
	{"ionice", "-c -n -p --class --classdata", 0, WRAP_PLAIN},
	{"taskset|chrt", "", 1, WRAP_PLAIN},
	{"timeout|gtimeout", "-s -k --signal --kill-after", 1, WRAP_PLAIN},
	{"nohup|exec|command|builtin|setsid|chronic|caffeinate|unbuffer|dbus-run-session|strace|valgrind", "-a -o -e -p", 0, WRAP_PLAIN},
	{"stdbuf", "-i -o -e", 0, WRAP_PLAIN},
	{"xvfb-run", "-n -s -e -f -w -p --server-num --server-args", 0, WRAP_PLAIN},
	{"xargs|parallel", "-n -P -I -L -d -s -E -a -j --max-args --max-procs --replace --jobs", 0, WRAP_PLAIN},
	{"if|then|else|elif|while|until|do|{|!", "", 0, WRAP_ALONE},
	{"npx|bunx|pnpx|uvx|pipx", "-p --package --from --with --python -w --workspace", 0, WRAP_PLAIN},
	{"npm exec|x", "-p --package -w --workspace", 0, WRAP_PLAIN},
	{"pnpm exec|dlx", "--package -F --filter -C --dir", 0, WRAP_PLAIN},
	{"yarn exec|dlx|run", "-p --package --cwd", 0, WRAP_PLAIN},
	{"bun x|run", "", 0, WRAP_PLAIN},
	{"yarn workspace", "", 1, WRAP_PLAIN},
	{"yarn|pnpm|bun", "--cwd -C --dir -F --filter", 0, WRAP_PLAIN},
	{"corepack", "", 0, WRAP_PLAIN},
	{"uv run", "--with --extra --group --python -p --project --directory --env-file --package --with-requirements", 0, WRAP_PLAIN},
	{"poetry|pipenv|pdm|hatch|rye run", "-C --directory -P --project", 0, WRAP_PLAIN},
	{"conda|mamba run", "-n --name -p --prefix", 0, WRAP_PLAIN},
	{"python* -m", "", 0, WRAP_PLAIN},
	{"coverage run", "-m --rcfile --source", 0, WRAP_PLAIN},
	{"python*", "-c -W -X", 0, WRAP_PLAIN},
	{"node|nodejs|tsx|ts-node|deno", "-e -p -r --require --import --loader --eval --print --env-file", 0, WRAP_PLAIN},
	{"bundle exec", "", 0, WRAP_PLAIN},
	{"dotenv|direnv|dotenvx|doppler|mise|asdf|op|infisical run|exec", "-e -f -p -c", 0, WRAP_PLAIN},
	{"dotenv", "-e -f -c -p", 0, WRAP_PLAIN},
	{"systemd-run", "-p --property -u --unit --slice --uid --gid -E --setenv --working-directory --description", 0, WRAP_UNIT},
	{"docker|podman|nerdctl run|create", RUN_VALUES, 1, WRAP_CONTAINER},
	{"docker|podman container run", RUN_VALUES, 1, WRAP_CONTAINER},
	{"docker|podman|nerdctl exec", "-e --env --env-file -u --user -w --workdir", 1, WRAP_PLAIN},
	{"docker|podman compose run|exec", RUN_VALUES, 1, WRAP_PLAIN},
	{"docker-compose|podman-compose run|exec", RUN_VALUES, 1, WRAP_PLAIN},
};
/* clang-format on */

static const struct need_row *row_find(const struct part *p, size_t i)
{
	for (const struct need_row *row = need_rows; row->kind; row++)
		for (const char *const *pattern = row->patterns; *pattern; pattern++)
			if (part_match(p, i, *pattern) && part_holds(p, row->also))
				return row;
	return NULL;
}

static int64_t with_margin(int64_t mb)
{
	return (mb * 5 + 3) / 4;
}

static void row_need(const struct match *m, const struct part *p, size_t i,
	const struct need_row *row, struct need *ret)
{
	int64_t mb = row->mb;
	*ret = (struct need){.kind = row->kind, .basis = row->basis, .runtime = row->runtime};
	if (row->options) {
		int64_t written = part_workers(p, i + 1, row->options, m->cores);
		ret->workers_written = written > 0;
		ret->workers = written > 0 ? written : row->serial_mb ? 0 : m->cores;
		mb = ret->workers ? mb + ret->workers * row->worker_mb : row->serial_mb;
	}
	ret->plain_mb = mb;
	ret->mb = row->basis == NEED_LIGHT ? mb : with_margin(mb);
}

static void setting_take(struct need *best, int64_t mb, const char *kind, enum need_runtime runtime)
{
	if (mb > MEMORY_MB_MAX)
		mb = MEMORY_MB_MAX;
	if (mb > best->mb)
		*best = (struct need){.mb = mb,
			.plain_mb = mb,
			.kind = kind,
			.basis = NEED_SETTING,
			.runtime = runtime};
}

static void heap_in_word(const char *word, struct need *best)
{
	int64_t mb;
	for (const char *s = strstr(word, "-Xmx"); s; s = strstr(s + 4, "-Xmx"))
		if (size_read(s + 4, 1, &mb))
			setting_take(best, (mb * 13 + 9) / 10 + RUNTIME_MB, "JVM heap setting",
				RUNTIME_JVM);
	static const char *const names[] = {"--max-old-space-size=", "--max_old_space_size="};
	for (size_t i = 0; i < 2; i++) {
		const char *s = strstr(word, names[i]);
		if (s && size_read(s + strlen(names[i]), 1048576, &mb))
			setting_take(best, mb + RUNTIME_MB, "Node heap setting", RUNTIME_NODE);
	}
}

/* A heap setting beats the row, for it is what the job will be allowed; but each worker of a tool
 * has a heap of its own, so there, and around a whole text, the larger figure holds. */
static void heaps_apply(const struct part *p, size_t end, bool replaces, struct need *ret)
{
	struct need best = {0};
	for (size_t i = 0; i < end; i++)
		heap_in_word(p->w[i], &best);
	if (best.mb && (best.mb > ret->mb || (replaces && ret->workers < 2)))
		*ret = best;
}

/* The memory limit among the words of a wrapper: 0 when there is none. */
static int64_t limit_read(const struct part *p, size_t from, size_t to, enum wrapper_kind kind)
{
	int64_t mb = 0;
	for (size_t i = from; i < to; i++) {
		const char *w = p->w[i], *value = NULL;
		if (kind == WRAP_UNIT) {
			value = strstr(w, "MemoryMax=");
			value = value ? value + strlen("MemoryMax=") : NULL;
		} else if (kind == WRAP_CONTAINER) {
			value = word_option(w, "--memory", 8);
			value = value ? value : word_option(w, "-m", 2);
			if (value && !*value && i + 1 < to)
				value = p->w[i + 1];
		}
		if (value && value[strspn(value, "0123456789")] != '%')
			(void)size_read(value, 1, &mb); /* anything else is no limit */
	}
	return mb;
}

static void text_need(struct match *m, const char *text, unsigned depth, struct need *ret);

static size_t skip_assignments(const struct part *p, size_t i)
{
	while (i < p->n && p->assignment[i])
		i++;
	return i;
}

/* The script of sh -c, bash -lc, su -c, eval; NULL when word i begins none. */
static const char *script_of(const struct part *p, size_t i)
{
	size_t n;
	const char *name = word_program(p->w[i], &n);
	if (word_is("eval", 4, name, n))
		return i + 1 < p->n ? p->w[i + 1] : NULL;
	static const char shells[] = "sh|bash|zsh|dash|ash|ksh|su|script";
	if (!word_is(shells, sizeof shells - 1, name, n))
		return NULL;
	bool wanted = false;
	for (i++; i < p->n; i++) {
		const char *w = p->w[i];
		if (w[0] != '-' && wanted)
			return w;
		if (w[0] == '-' && (strcmp(w, "--command") == 0 || (w[1] != '-' && strchr(w, 'c'))))
			wanted = true;
	}
	return NULL;
}

/* The wrapper that begins at word i; *ret_end: where the command behind it begins. */
static const struct wrapper *wrapper_find(const struct part *p, size_t i, size_t *ret_end)
{
	for (size_t k = 0; k < sizeof wrappers / sizeof *wrappers; k++) {
		const struct wrapper *wrapper = &wrappers[k];
		size_t at = part_match(p, i, wrapper->pattern);
		if (at == 0)
			continue;
		while (at < p->n && (p->assignment[at] || word_is_option(p->w[at]))) {
			bool last = strcmp(p->w[at], "--") == 0;
			at += word_listed(wrapper->values, p->w[at]) ? 2 : 1;
			if (last)
				break;
		}
		at += wrapper->positionals;
		*ret_end = at < p->n ? at : p->n;
		return wrapper;
	}
	return NULL;
}

static bool only_asks_version(const struct part *p, size_t i)
{
	return p->n == i + 2 && word_listed("--version --help -V", p->w[i + 1]);
}

static const struct need light = {
	.mb = LIGHT_MB, .plain_mb = LIGHT_MB, .kind = "light command", .basis = NEED_LIGHT};
static const struct need unknown = {
	.mb = UNKNOWN_MB, .plain_mb = UNKNOWN_MB, .kind = "unknown command", .basis = NEED_UNKNOWN};

/* The command that begins at word i, behind its wrappers. False: it is itself a wrapper or unknown.
 */
static bool command_need(
	struct match *m, const struct part *p, size_t i, unsigned depth, struct need *ret)
{
	const char *script = depth < NEST_TEXTS_MAX ? script_of(p, i) : NULL;
	if (script) {
		text_need(m, script, depth + 1, ret);
		heaps_apply(p, i, false, ret);
		return true;
	}
	if (only_asks_version(p, i)) {
		*ret = light;
		return true;
	}
	const struct need_row *row = row_find(p, i);
	if (!row)
		return false;
	row_need(m, p, i, row, ret);
	if (row->basis != NEED_LIGHT)
		heaps_apply(p, p->n, true, ret);
	return true;
}

static void part_need(struct match *m, const struct part *p, unsigned depth, struct need *ret)
{
	int64_t limit_mb = 0;
	const struct wrapper *wrapper = NULL;
	size_t i = skip_assignments(p, 0);
	while (i < p->n && !command_need(m, p, i, depth, ret)) {
		size_t end;
		wrapper = wrapper_find(p, i, &end);
		if (!wrapper) {
			*ret = unknown;
			heaps_apply(p, p->n, true, ret);
			break;
		}
		int64_t mb = limit_read(p, i, end, wrapper->kind);
		limit_mb = mb ? mb : limit_mb;
		i = skip_assignments(p, end);
	}
	if (i == p->n) {
		*ret = !wrapper || wrapper->kind == WRAP_ALONE ? light : unknown;
		heaps_apply(p, p->n, true, ret);
	}
	if (limit_mb)
		*ret = (struct need){.mb = limit_mb,
			.plain_mb = limit_mb,
			.kind = "memory limit of the command",
			.basis = NEED_SETTING,
			.runtime = ret->runtime};
}

/* Two that run at the same time. */
static void need_add(struct need *sum, const struct need *one)
{
	if (sum->mb == 0) {
		*sum = *one;
		return;
	}
	struct need larger = one->mb > sum->mb ? *one : *sum;
	larger.plain_mb = sum->plain_mb + one->plain_mb;
	larger.mb = sum->mb + one->mb;
	larger.summed = true;
	if (larger.mb > MEMORY_MB_MAX)
		larger.mb = MEMORY_MB_MAX;
	if (larger.plain_mb > larger.mb)
		larger.plain_mb = larger.mb;
	*sum = larger;
}

static void part_take(struct part *p, const struct shell_word *w)
{
	if (p->n == PART_WORDS_MAX)
		return;
	p->w[p->n] = w->p;
	p->assignment[p->n++] = w->assignment;
}

static void text_need(struct match *m, const char *text, unsigned depth, struct need *ret)
{
	size_t n = strnlen(text, NEED_TEXT_MAX);
	struct shell s = shell_start(text, n);
	/* Words are never longer than their source, and one character at least lies between two. */
	char *room = arena_take(m->a, n + 2);
	struct part *p = &m->part[depth];
	p->n = 0;
	struct shell_word w = {.p = room, .cap = n + 2};
	struct need together = {0}, best = {0};
	for (enum shell_token token = SHELL_NEXT; token != SHELL_END;) {
		token = m->parts < PARTS_MAX ? shell_next(&s, &w) : SHELL_END;
		if (token == SHELL_WORD) {
			part_take(p, &w);
			w.p += w.n + 1;
			w.cap = (size_t)(room + n + 2 - w.p);
			continue;
		}
		if (p->n) {
			struct need one = {0};
			m->parts++;
			part_need(m, p, depth, &one);
			need_add(&together, &one);
			p->n = 0;
		}
		if (token == SHELL_PIPE)
			continue;
		if (together.mb > best.mb)
			best = together;
		together = (struct need){0};
	}
	*ret = best.mb ? best : unknown;
}

void need_from_table(const char *job, int cores, struct need *ret)
{
	/* Nested texts lie inside their outer one, so each of the four levels copies at most the
	 * whole text; the rest is room for the arena's block sizes. */
	CLEANUP_ARENA struct arena *a = arena_new(16u * NEED_TEXT_MAX);
	struct match *m = ARENA_NEW(a, struct match);
	m->a = a;
	m->cores = cores > 0 ? cores : NEED_CORES_GUESS;
	if (m->cores > NEED_WORKERS_MAX)
		m->cores = NEED_WORKERS_MAX;
	text_need(m, job, 0, ret);
}
