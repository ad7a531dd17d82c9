#!/bin/bash
# A dangerous or foreign function is called only in the modules that own it. One row a rule: the
# functions, the files that may call them, the remedy.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
rules() {
	cat <<-'RULES'
		sprintf|vsprintf|strcpy|strcat|strncpy|strncat|strtok|gets|atoi|atol|atof||use buf.h, arena.h or text.h
		scanf|sscanf|fscanf|schema/embed.c providers/runner/cgroup.c|use int_parse() of text.h
		system|popen||run programs with fork and exec, without a shell
		localtime|gmtime|ctime|asctime|mktime||times are milliseconds; time_text() of text.h
		rand|srand|random|srandom||use clock.h
		alloca||use the arena
		tmpnam|tempnam|mktemp||use mkstemp()
		malloc|calloc|realloc|strdup|strndup|asprintf|vasprintf|free|fcgi/base/alloc.c fcgi/base/arena.c fcgi/base/buf.c fcgi/base/secret.c fcgi/base/http* fcgi/base/db* fcgi/base/seal* fcgi/base/keyring.c fcgi/base/json* handlers/watch.c handlers/job_kill.c fcgi/keeper.c fcgi/main.c fcgi/worker* fcgi/pool* fcgi/master* providers/runner/ schema/embed.c|request memory is the arena; ownership elsewhere needs a reason
		printf|vprintf|puts|putchar|fcgi/main.c fcgi/admin* fcgi/gen* fcgi/print* providers/runner/main.c|events go through log.h; only a command prints
		syslog|openlog||events go through log.h
		getenv|secure_getenv|fcgi/base/alloc.c fcgi/base/clock.c fcgi/base/db.c fcgi/main.c fcgi/master* providers/runner/|settings come from the file; see conf.c
		exit|fcgi/main.c fcgi/admin* fcgi/master* providers/runner/ schema/embed.c|return an error
		time|gettimeofday|clock_gettime|fcgi/base/clock.c handlers/node.c providers/runner/|use clock.h, which tests can move
		curl_[a-z_]+|fcgi/base/http*|outbound calls go through http.h
		mysql_[a-z_]+|fcgi/base/db* fcgi/migrate*|the database is reached through db.h
		json_(object|tokener|c)_[a-z_0-9]+|fcgi/base/json*|JSON is read and written through json.h
		EVP_[A-Za-z0-9_]+|fcgi/base/seal* fcgi/base/keyring.c fcgi/base/secret.c fcgi/base/text.c fcgi/base/id.c fcgi/base/token.c fcgi/base/crypt*|cryptography lives in seal.c
		RAND_[a-z_]+|fcgi/base/clock.c fcgi/base/seal* fcgi/base/keyring.c fcgi/base/secret.c fcgi/base/id.c providers/runner/|random bytes come from clock.h
		FCGX_[A-Za-z_]+|fcgi/exchange.c fcgi/worker*|FastCGI stays in exchange.c and the worker
	RULES
}
# owned FILE OWNER...: an owner is a file, a pattern or a folder.
owned() {
	local file=$1 owner
	shift
	for owner in "$@"; do
		# shellcheck disable=SC2254
		case $file in $owner | ${owner%/}/*) return 0 ;; esac
	done
	return 1
}
set -f # patterns of owners are for files of the rule, not of this folder

all=$(mktemp)
trap 'rm -f "$all"' EXIT
while read -r file; do
	code "$file" | awk -v file="$file" '{ print file ":" NR ":" $0 }'
done < <(sources 'fcgi/*.c' 'handlers/*.c' 'providers/*.c' 'schema/*.c') >"$all"

while IFS= read -r rule; do
	remedy=${rule##*|} rest=${rule%|*}
	owners=${rest##*|} names=${rest%|*}
	while IFS=: read -r file line text; do
		# shellcheck disable=SC2086
		owned "$file" $owners && continue
		call=$(grep -oE "($names)[[:space:]]*\(" <<<"$text" | head -n 1)
		finding "$file:$line: ${call}): $remedy"
	done < <(grep -E ":.*(^|[^A-Za-z0-9_.>])($names)[[:space:]]*\(" "$all" || true)
done < <(rules)
exit "$found"
