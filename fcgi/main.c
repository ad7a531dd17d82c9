/*
 * The verbs of the program.
 *
 *   serve               the master with its workers and keeper
 *   migrate             bring the schema up to date
 *   check-config        read the settings and say whether they are good
 *   print WHAT          openapi, tools, llms, errors, limits, settings
 *   admin ...           operator commands
 *   worker, keeper      children of the master
 */
#include "admin.h"
#include "alloc.h"
#include "clock.h"
#include "conf.h"
#include "db.h"
#include "gen.h"
#include "http.h"
#include "job.h"
#include "keeper.h"
#include "bounds.h"
#include "log.h"
#include "master.h"
#include "node.h"
#include "provider.h"
#include "route.h"
#include "secret.h"
#include "watch.h"
#include "worker.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command_line {
	const char *config;
	struct admin_options admin;
	char **words; /* verb and what follows */
};

static int usage(void)
{
	(void)fputs("usage: compute-connector serve|migrate|check-config|print WHAT|admin ... "
		    "[--config FILE]\n"
		    "  print openapi|tools|llms|errors|limits|settings\n",
		stderr);
	return 2;
}

static int child_fd(const char *name)
{
	const char *text = getenv(name);
	return text ? (int)strtol(text, NULL, 10) : -1;
}

/* -- serve ------------------------------------------------------------------------------------- */

static struct command_line line;

static void start_database(const struct conf *c)
{
	db_start(&(struct db_conf){.socket = c->db_socket,
		.host = c->db_host,
		.port = (unsigned)c->db_port,
		.user = c->db_user,
		.password = c->db_password,
		.schema = c->db_schema,
		.ca_file = c->db_ca,
		.connections = 1});
}

static void to_master(const struct conf *c, struct master_conf *m)
{
	m->socket_path = *c->socket ? c->socket : NULL;
	m->socket_group = *c->socket_group ? c->socket_group : NULL;
	m->workers = (unsigned)c->workers;
	m->drain_s = (int)c->drain_s;
}

static bool reload(struct master_conf *m)
{
	struct conf c;
	if (!conf_read(line.config, &c))
		return false;
	to_master(&c, m);
	return true;
}

/* Its jobs need not wait until its silence is noticed. */
static void child_ended(pid_t pid, bool worker)
{
	uint64_t changed;
	(void)worker;
	(void)!db_change(SQL_PROCESS_DEAD, ARGS(A_STR(node_host()), A_INT(pid)), &changed);
}

static int serve(const struct conf *c)
{
	static char self[PATH_MAX];
	char config_flag[] = "--config";
	char *config = line.config ? strdup(line.config) : NULL;
	char *args[] = {config ? config_flag : NULL, config, NULL};
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	if (n < 0)
		return 1;
	struct master_conf m = {.self = self, .child_args = args};
	to_master(c, &m);
	start_database(c);
	int status = master_run(&m, &(struct master_hooks){reload, child_ended});
	free(config);
	return status;
}

/* -- children ---------------------------------------------------------------------------------- */

/* "a, b" becomes {"a", "b", NULL}; lives until the process ends. */
static const char *const *split(const char *list)
{
	static const char *parts[64];
	char *copy = must(strdup(list)), *rest = copy, *part;
	size_t n = 0;
	while (n + 1 < sizeof parts / sizeof parts[0] && (part = strsep(&rest, ", ")))
		if (*part)
			parts[n++] = part;
	parts[n] = NULL;
	return parts;
}

static bool start_outbound(const struct conf *c)
{
	struct http_conf h = {.ca_file = c->ca_file,
		.ca_extra = *c->ca_extra ? c->ca_extra : NULL,
		.allowed_origins = split(c->allowed_origins)};
	return provider_bases_set(c->provider_urls) == OK && http_start(&h) == OK;
}

/* Threads that start before the keeper waits for signals must not take them away. */
static void block_signals(void)
{
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static bool jobs_done(void)
{
	return drive_count() == 0;
}

static int worker(const struct conf *c)
{
	struct worker_conf w = {.listen_fd = child_fd("CC_LISTEN_FD"),
		.ready_fd = child_fd("CC_READY_FD"),
		.threads_max = (unsigned)c->threads,
		.runnable = (unsigned)c->runnable,
		.queue_max = (unsigned)c->queue,
		.drain_s = (int)c->drain_s};
	static const struct worker_hooks hooks = {
		serve_request, refuse_request, drive_drain, jobs_done};
	worker_signals();
	if (!start_outbound(c) || node_start(c, pool_submit))
		return 1;
	route_start(c);
	watch_start();
	int status = worker_run(&w, &hooks);
	node_leave();
	_exit(status); /* pool threads may still run: what they stand on is not taken down */
}

static int keeper(const struct conf *c)
{
	block_signals();
	return start_outbound(c) ? keeper_run(c, child_fd("CC_READY_FD")) : 1;
}

/* -- documents --------------------------------------------------------------------------------- */

static int print(const struct conf *c, const char *what)
{
	CLEANUP_BUF struct buf b;
	buf_init(&b, REPLY_BYTES_MAX);
	if (strcmp(what, "settings") == 0)
		conf_print_example();
	else if (strcmp(what, "openapi") == 0)
		gen_openapi(c, &b);
	else if (strcmp(what, "llms") == 0)
		gen_llms(c, &b);
	else if (strcmp(what, "tools") == 0)
		gen_tools(&b);
	else if (strcmp(what, "errors") == 0)
		gen_errors(&b);
	else if (strcmp(what, "limits") == 0)
		gen_limits(&b);
	else
		return usage();
	(void)fwrite(b.p, 1, b.n, stdout);
	return 0;
}

/* -- verbs ------------------------------------------------------------------------------------- */

static int run(const struct conf *c, char **words)
{
	const char *verb = words[0];
	log_role(verb);
	secret_init();
	if (strcmp(verb, "serve") == 0)
		return serve(c);
	if (strcmp(verb, "worker") == 0)
		return worker(c);
	if (strcmp(verb, "keeper") == 0)
		return keeper(c);
	if (strcmp(verb, "migrate") == 0)
		return migrate_run(c);
	if (strcmp(verb, "check-config") == 0)
		return puts("the settings are good") < 0;
	if (strcmp(verb, "print") == 0 && words[1])
		return print(c, words[1]);
	if (strcmp(verb, "admin") == 0 && words[1] && words[2])
		return admin_run(c, words + 1, &line.admin);
	return usage();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"config", required_argument, NULL, 'c'},
		{"json", no_argument, NULL, 'j'}, {"plan", required_argument, NULL, 'p'},
		{"agent", no_argument, NULL, 'a'}, {0}};
	struct conf conf;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'c')
			line.config = optarg;
		else if (option == 'j')
			line.admin.json = true;
		else if (option == 'p')
			line.admin.plan = optarg;
		else if (option == 'a')
			line.admin.agent = true;
		else
			return usage();
	}
	if (optind == argc)
		return usage();
	return conf_read(line.config, &conf) ? run(&conf, argv + optind) : 1;
}
