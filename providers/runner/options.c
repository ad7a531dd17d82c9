/*
 * Flags of compute-runner. Promises: every value is checked against its bounds, which the refusal
 * names; an unknown flag is refused.
 */
#include "options.h"

#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind { OPTION_TEXT, OPTION_INT, OPTION_NUMBER, OPTION_SWITCH, OPTION_NETWORK };

static const struct option_row {
	const char *name, *value;
	enum kind kind;
	size_t at;
	int64_t min, max;
	const char *help;
} rows[] = {
	/* clang-format off */
	{"listen", "ADDRESS", OPTION_TEXT, offsetof(struct config, listen), 0, 0,
		"127.0.0.1:PORT (0: any free one) or unix:/path (127.0.0.1:0)"},
	{"url", "URL", OPTION_TEXT, offsetof(struct config, url), 0, 0,
		"address under which others reach the runner, for the connection file"},
	{"lifetime", "SECONDS", OPTION_INT, offsetof(struct config, lifetime_s), LIFETIME_S_MIN, LIFETIME_S_MAX,
		"after this everything ends, 60 to 86400 (900)"},
	{"connection-file", "PATH", OPTION_TEXT, offsetof(struct config, connection_file), 0, 0,
		"where address and token are told, 0600, removed at the end"},
	{"network", "MODE", OPTION_NETWORK, offsetof(struct config, network), 0, 0,
		"none, internet or host: the most a sandbox may have (internet, else none)"},
	{"memory", "MIB", OPTION_INT, offsetof(struct config, most.memory_mib), 16, 1 << 30,
		"memory of a sandbox (half of the machine, at most 4096)"},
	{"cpus", "N", OPTION_NUMBER, offsetof(struct config, most.cpus), 0, 4096,
		"CPUs of a sandbox (all)"},
	{"pids", "N", OPTION_INT, offsetof(struct config, most.pids), 4, 1 << 22,
		"processes of a sandbox (512)"},
	{"disk", "MIB", OPTION_INT, offsetof(struct config, most.disk_mib), 4, 1 << 30,
		"writable space of a sandbox, held in memory (half of --memory)"},
	{"max-sandboxes", "N", OPTION_INT, offsetof(struct config, sandboxes), 1, SANDBOXES_MAX,
		"sandboxes at the same time (128)"},
	{"rootfs", "PATH", OPTION_TEXT, offsetof(struct config, rootfs), 0, 0,
		"root folder of the sandboxes, read-only (system folders of this machine)"},
	{"user", "NAME", OPTION_TEXT, offsetof(struct config, user), 0, 0,
		"when started as root: the user of the sandboxes (number 64071)"},
	{"tunnel", NULL, OPTION_SWITCH, offsetof(struct config, tunnel), 0, 0,
		"start cloudflared and tell its public address"},
	{"check", NULL, OPTION_SWITCH, offsetof(struct config, check), 0, 0,
		"print what this machine can enforce and leave"},
	/* clang-format on */
};
#define ROWS_N (sizeof rows / sizeof *rows)

int64_t machine_memory_mib(void)
{
	return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;
}

static void help(void)
{
	(void)fputs("usage: compute-runner [options]\nServes disposable sandboxes on this "
		    "computer.\n\n",
		stdout);
	for (size_t i = 0; i < ROWS_N; i++) {
		char left[64];
		(void)snprintf(left, sizeof left, "--%s %s", rows[i].name,
			rows[i].value ? rows[i].value : "");
		(void)fprintf(stdout, "  %-24s %s\n", left, rows[i].help);
	}
}

static void defaults(struct config *c)
{
	int64_t half = machine_memory_mib() / 2;
	*c = (struct config){.listen = "127.0.0.1:0",
		.network = NETWORK_UNSET,
		.lifetime_s = LIFETIME_S_DEFAULT,
		.sandboxes = SANDBOXES_DEFAULT,
		.listener = -1};
	c->most = (struct limits){.memory_mib = half < 4096 ? half : 4096,
		.pids = 512,
		.cpus = (double)sysconf(_SC_NPROCESSORS_ONLN)};
}

static bool store(const struct option_row *r, const char *value, struct config *c)
{
	void *at = (char *)c + r->at;
	char *end;
	switch (r->kind) {
	case OPTION_TEXT:
		*(const char **)at = value;
		return *value != 0;
	case OPTION_SWITCH:
		*(bool *)at = true;
		return true;
	case OPTION_NETWORK:
		*(enum network *)at = network_parse(value);
		return *(enum network *)at != NETWORK_UNSET;
	case OPTION_NUMBER:
		*(double *)at = strtod(value, &end);
		return *end == 0 && *value && *(double *)at >= 0.01 &&
		       *(double *)at <= (double)r->max;
	case OPTION_INT:
		return int_parse(value, r->min, r->max, at);
	}
	return false;
}

static void complain(const struct option_row *r)
{
	(void)fprintf(stderr, "compute-runner: --%s: ", r->name);
	if (r->kind == OPTION_INT)
		(void)fprintf(stderr, "must be an integer from %lld to %lld\n", (long long)r->min,
			(long long)r->max);
	else if (r->kind == OPTION_NUMBER)
		(void)fprintf(stderr, "must be a number from 0.01 to %lld\n", (long long)r->max);
	else if (r->kind == OPTION_NETWORK)
		(void)fputs("must be none, internet or host\n", stderr);
	else
		(void)fputs(r->kind == OPTION_SWITCH ? "takes no value\n" : "must not be empty\n",
			stderr);
}

/* The row of "--name" or "--name=value"; *ret_value behind the sign or NULL. */
static const struct option_row *find(const char *arg, const char **ret_value)
{
	size_t n = strcspn(arg, "=");
	*ret_value = arg[n] ? arg + n + 1 : NULL;
	for (size_t i = 0; i < ROWS_N; i++)
		if (n > 2 && strncmp(arg, "--", 2) == 0 && strlen(rows[i].name) == n - 2 &&
			strncmp(rows[i].name, arg + 2, n - 2) == 0)
			return &rows[i];
	return NULL;
}

static bool read_one(int argc, char **argv, int *i, struct config *c)
{
	const char *value;
	const struct option_row *r = find(argv[*i], &value);
	if (!r) {
		(void)fputs("compute-runner: unknown option; --help lists them\n", stderr);
		return false;
	}
	bool wants = r->kind != OPTION_SWITCH;
	if (wants && !value && *i + 1 < argc)
		value = argv[++*i];
	if ((wants && !value) || (!wants && value) || !store(r, value, c)) {
		complain(r);
		return false;
	}
	return true;
}

bool options_read(int argc, char **argv, struct config *c, int *ret_exit)
{
	defaults(c);
	*ret_exit = 2;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			help();
			*ret_exit = 0;
			return false;
		}
		if (!read_one(argc, argv, &i, c))
			return false;
	}
	if (!c->most.disk_mib)
		c->most.disk_mib = c->most.memory_mib / 2;
	return true;
}
