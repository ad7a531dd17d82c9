/*
 * Bodies by hand from the JSON tree, because the contract wants unknown members ignored. Promises:
 * every value is checked for type and bound, and the refusal names both.
 */
#include "body.h"

#include "arena.h"
#include "err.h"
#include "json.h"
#include "text.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool sandbox_id_ok(const char *s)
{
	size_t n = strlen(s);
	return n >= 8 && n <= 63 && s[0] >= 'a' && s[0] <= 'z' && strspn(s, LOWER DIGITS "-") == n;
}

bool exec_id_ok(const char *s)
{
	size_t n = strlen(s);
	return n >= 8 && n <= 64 && strspn(s, LOWER UPPER DIGITS "-") == n;
}

static bool env_name_ok(const char *s)
{
	size_t n = strlen(s);
	return n > 0 && n <= 128 && !strchr(DIGITS, s[0]) && strspn(s, LOWER UPPER DIGITS "_") == n;
}

static enum wrong object(const char *p, size_t n, struct json **ret)
{
	enum err e = json_parse(p, n, ret);
	if (e)
		return wrong(WRONG_REQUEST, "the body is not JSON: %s", fault_of(e)->detail);
	if (json_type(*ret) == JSON_OBJ)
		return WRONG_NOTHING;
	json_free(*ret);
	*ret = NULL;
	return wrong(WRONG_REQUEST, "the body must be a JSON object");
}

/* -- members; each leaves *ret alone when the member is absent or null --------------------------
 */

static enum wrong get_str(
	const struct json *o, const char *name, size_t max, struct arena *a, const char **ret)
{
	const struct json *v = json_get(o, name);
	size_t n;
	if (json_type(v) == JSON_NULL)
		return WRONG_NOTHING;
	if (json_type(v) != JSON_STR)
		return wrong(WRONG_REQUEST, "%s must be a string", name);
	const char *s = json_str(v, &n);
	if (n > max)
		return wrong(WRONG_REQUEST, "%s is longer than %zu bytes", name, max);
	*ret = arena_copy(a, s, n);
	return WRONG_NOTHING;
}

static enum wrong get_int(
	const struct json *o, const char *name, int64_t min, int64_t max, int64_t *ret)
{
	const struct json *v = json_get(o, name);
	if (json_type(v) == JSON_NULL)
		return WRONG_NOTHING;
	if (json_type(v) != JSON_INT || json_int(v) < min || json_int(v) > max)
		return wrong(WRONG_REQUEST, "%s must be an integer from %lld to %lld", name,
			(long long)min, (long long)max);
	*ret = json_int(v);
	return WRONG_NOTHING;
}

static enum wrong get_num(
	const struct json *o, const char *name, double min, double max, double *ret)
{
	const struct json *v = json_get(o, name);
	enum json_type t = json_type(v);
	if (t == JSON_NULL)
		return WRONG_NOTHING;
	if ((t != JSON_INT && t != JSON_NUM) || !(json_num(v) >= min && json_num(v) <= max))
		return wrong(WRONG_REQUEST, "%s must be a number from %g to %g", name, min, max);
	*ret = json_num(v);
	return WRONG_NOTHING;
}

static enum wrong get_pairs(const struct json *o, const char *name, size_t value_max,
	struct arena *a, struct pairs *ret)
{
	const struct json *v = json_get(o, name);
	if (json_type(v) == JSON_NULL)
		return WRONG_NOTHING;
	if (json_type(v) != JSON_OBJ || json_len(v) > PAIRS_MAX)
		return wrong(WRONG_REQUEST, "%s must be an object of at most %d strings", name,
			PAIRS_MAX);
	for (size_t i = 0; i < json_len(v); i++) {
		const char *key;
		size_t n = 0;
		const struct json *m = json_member(v, i, &key);
		if (json_type(m) != JSON_STR)
			return wrong(WRONG_REQUEST, "every value in %s must be a string", name);
		const char *s = json_str(m, &n);
		if (n > value_max || strlen(key) > LABEL_BYTES_MAX)
			return wrong(WRONG_REQUEST,
				"a name or value in %s is longer than %d or %zu bytes", name,
				LABEL_BYTES_MAX, value_max);
		ret->p[ret->n++] = (struct pair){arena_str(a, key), arena_copy(a, s, n)};
	}
	return WRONG_NOTHING;
}

static enum wrong get_env(const struct json *o, struct arena *a, struct pairs *ret)
{
	enum wrong w = get_pairs(o, "env", COMMAND_BYTES_MAX, a, ret);
	for (size_t i = 0; !w && i < ret->n; i++)
		if (!env_name_ok(ret->p[i].name))
			w = wrong(WRONG_REQUEST, "a name in env is not [A-Za-z_][A-Za-z0-9_]*");
	return w;
}

static size_t env_bytes(const struct pairs *env)
{
	size_t n = 0;
	for (size_t i = 0; i < env->n; i++)
		n += strlen(env->p[i].name) + strlen(env->p[i].value) + 2;
	return n;
}

/* -- create ------------------------------------------------------------------------------------ */

static enum wrong get_limits(const struct json *o, struct limits *ret)
{
	const struct json *l = json_get(o, "limits");
	if (json_type(l) != JSON_NULL && json_type(l) != JSON_OBJ)
		return wrong(WRONG_REQUEST, "limits must be an object");
	/* memory_mib and cpu beside limits are the contract's older spelling of the same. */
	enum wrong w = get_int(o, "memory_mib", 1, 1 << 30, &ret->memory_mib);
	w = w ? w : get_num(o, "cpu", 0.01, 4096, &ret->cpus);
	w = w ? w : get_int(l, "memory_mib", 1, 1 << 30, &ret->memory_mib);
	w = w ? w : get_num(l, "cpus", 0.01, 4096, &ret->cpus);
	w = w ? w : get_int(l, "pids", 1, 1 << 22, &ret->pids);
	return w ? w : get_int(l, "disk_mib", 1, 1 << 30, &ret->disk_mib);
}

static enum wrong get_network(const struct json *o, struct arena *a, enum network *ret)
{
	const char *s = NULL;
	enum wrong w = get_str(o, "network", 32, a, &s);
	if (w || !s)
		return w;
	*ret = network_parse(s);
	return *ret == NETWORK_UNSET
		       ? wrong(WRONG_REQUEST, "network must be none, internet or host")
		       : WRONG_NOTHING;
}

static enum wrong get_id_and_times(const struct json *o, struct arena *a, struct create_ask *ret)
{
	enum wrong w = get_str(o, "id", 256, a, &ret->id);
	if (!w && (!ret->id || !sandbox_id_ok(ret->id)))
		w = wrong(WRONG_REQUEST, "id must match ^[a-z][a-z0-9-]{7,62}$");
	w = w ? w : get_int(o, "ttl_seconds", 1, TTL_S_MAX, &ret->ttl_s);
	if (!w && ret->ttl_s == 0)
		w = wrong(WRONG_REQUEST, "ttl_seconds is missing");
	return w ? w : get_int(o, "idle_seconds", 1, TTL_S_MAX, &ret->idle_s);
}

static enum wrong get_extras(const struct json *o, struct arena *a, struct create_ask *ret)
{
	enum wrong w = get_pairs(o, "labels", LABEL_BYTES_MAX, a, &ret->labels);
	w = w ? w : get_env(o, a, &ret->env);
	if (!w && env_bytes(&ret->env) > BOX_ENV_BYTES_MAX)
		w = wrong(WRONG_SIZE, "env is larger than %d bytes", BOX_ENV_BYTES_MAX);
	if (!w && json_type(json_get(o, "image")) != JSON_NULL)
		w = wrong(WRONG_UNSUPPORTED, "image: sandboxes of this runner have one fixed root");
	return w;
}

enum wrong body_create(const char *p, size_t n, struct arena *a, struct create_ask *ret)
{
	CLEANUP_JSON struct json *o = NULL;
	*ret = (struct create_ask){.network = NETWORK_UNSET};
	enum wrong w = object(p, n, &o);
	w = w ? w : get_id_and_times(o, a, ret);
	w = w ? w : get_extras(o, a, ret);
	w = w ? w : get_network(o, a, &ret->network);
	return w ? w : get_limits(o, &ret->limits);
}

/* -- exec and kill ----------------------------------------------------------------------------- */

static enum wrong get_argv(
	const struct json *o, struct arena *a, struct exec_ask *ret, size_t *bytes)
{
	const struct json *list = json_get(o, "argv");
	if (json_type(list) != JSON_LIST || json_len(list) == 0)
		return wrong(WRONG_REQUEST, "argv must be a list of at least one string");
	const char **argv = ARENA_LIST(a, json_len(list) + 1, const char *);
	for (size_t i = 0; i < json_len(list); i++) {
		size_t n;
		if (json_type(json_at(list, i)) != JSON_STR)
			return wrong(WRONG_REQUEST, "argv[%zu] must be a string", i);
		const char *s = json_str(json_at(list, i), &n);
		argv[i] = arena_copy(a, s, n);
		*bytes += n + 1;
	}
	if (!argv[0][0])
		return wrong(WRONG_REQUEST, "argv[0] is empty");
	ret->argv = argv;
	ret->argc = json_len(list);
	return WRONG_NOTHING;
}

static enum wrong get_stdin(
	const struct json *o, struct arena *a, struct exec_ask *ret, size_t *bytes)
{
	const char *s = NULL;
	enum wrong w = get_str(o, "stdin_b64", JSON_BODY_MAX, a, &s);
	if (w || !s || !*s)
		return w;
	*bytes += strlen(s);
	if (*bytes > COMMAND_BYTES_MAX)
		return WRONG_NOTHING; /* the caller refuses */
	ret->stdin_bytes = base64_decode(a, s, strlen(s), &ret->stdin_n);
	return ret->stdin_bytes ? WRONG_NOTHING : wrong(WRONG_REQUEST, "stdin_b64 is not base64");
}

static enum wrong get_exec_id(const struct json *o, struct arena *a, struct exec_ask *ret)
{
	enum wrong w = get_str(o, "exec_id", 256, a, &ret->exec_id);
	if (!w && (!ret->exec_id || !exec_id_ok(ret->exec_id)))
		w = wrong(WRONG_REQUEST, "exec_id must match ^[A-Za-z0-9-]{8,64}$");
	return w;
}

static enum wrong get_exec_times(const struct json *o, struct exec_ask *ret)
{
	int64_t timeout_ms = 0;
	enum wrong w = get_int(o, "timeout_ms", 0, TTL_S_MAX * 1000, &timeout_ms);
	ret->timeout_s = (timeout_ms + 999) / 1000;
	return w ? w : get_int(o, "follow_ms", 0, FOLLOW_MS_MAX, &ret->follow_ms);
}

enum wrong body_exec(const char *p, size_t n, struct arena *a, struct exec_ask *ret)
{
	CLEANUP_JSON struct json *o = NULL;
	size_t bytes = 0;
	*ret = (struct exec_ask){.follow_ms = FOLLOW_MS_DEFAULT};
	enum wrong w = object(p, n, &o);
	w = w ? w : get_exec_id(o, a, ret);
	w = w ? w : get_argv(o, a, ret, &bytes);
	w = w ? w : get_str(o, "cwd", 4095, a, &ret->cwd);
	if (!w && ret->cwd && !*ret->cwd)
		ret->cwd = NULL; /* as in the contract's scripts */
	w = w ? w : get_env(o, a, &ret->env);
	w = w ? w : get_stdin(o, a, ret, &bytes);
	if (!w && bytes + env_bytes(&ret->env) > COMMAND_BYTES_MAX)
		w = wrong(WRONG_SIZE, "argv, env and stdin_b64 together exceed %d bytes",
			COMMAND_BYTES_MAX);
	return w ? w : get_exec_times(o, ret);
}

enum wrong body_kill(const char *p, size_t n, int *ret_signal)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"INT", SIGINT}};
	*ret_signal = SIGKILL;
	if (n == 0)
		return WRONG_NOTHING;
	CLEANUP_JSON struct json *o = NULL;
	enum wrong w = object(p, n, &o);
	const struct json *v = w ? NULL : json_get(o, "signal");
	if (w || json_type(v) == JSON_NULL)
		return w;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (json_type(v) == JSON_STR && strcmp(json_str(v, NULL), signals[i].name) == 0) {
			*ret_signal = signals[i].number;
			return WRONG_NOTHING;
		}
	return wrong(WRONG_REQUEST, "signal must be KILL, TERM or INT");
}
