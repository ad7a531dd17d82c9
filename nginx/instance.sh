#!/bin/bash
#
# The private instance: MariaDB, nginx, the connector and one runner under one state folder. Sourced
# by ./run and ./check; called by tests that stop and start single services of an instance:
#
#     CC_VAR=/path/to/var nginx/instance.sh start|stop|kill|pid|restart SERVICE
#
# It touches no service of the system and nothing outside its folders. Everything that is remembered
# lies in $CC_VAR; two instances differ in $CC_VAR only. Settings, all optional:
#
#     CC_VAR     folder of the instance (var/ in the checkout)
#     CC_BUILD   folder with the built programs (build/release)
#     CC_PORT    port for https; without it the first free one from CC_PORT_FIRST (8443) on
#     CC_LIMITS  another file in the place of nginx/limits.conf
#     CC_EXTRA   file with settings lines that are appended to the connector's settings
set -euo pipefail
umask 077

CC_ROOT=${CC_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)}
CC_VAR=${CC_VAR:-$CC_ROOT/var}
CC_BUILD=${CC_BUILD:-$CC_ROOT/build/release}
CC_LIMITS=${CC_LIMITS:-$CC_ROOT/nginx/limits.conf}
CC_EXTRA=${CC_EXTRA:-}
CC_SERVICES=(mariadb connector nginx runner)
CLEAN=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent LANG=C.UTF-8)

# The system user of all daemons when root runs the instance.
CC_SYSTEM_USER=cc-dev
# Where the state goes when the checkout can not be reached by that user.
CC_MACHINE_STATE=/var/lib/compute-connector-dev

say() { printf '%s\n' "$@"; }
warn() { printf '%s\n' "$*" >&2; }
die() {
	warn "error: $*"
	exit 1
}
is_root() { [[ $EUID -eq 0 ]]; }

# ---- where things are ------------------------------------------------------------------------

# Sets the names of all folders. Makes none but $CC_VAR.
instance_paths() {
	mkdir -p "$CC_VAR"
	CC_VAR=$(cd "$CC_VAR" && pwd -P)
	CC_ID=$(printf %s "$CC_VAR" | sha256sum | cut -c1-8)
	DAEMON_USER=$(id -un)
	RUN_DIR=/tmp/cc-$CC_ID-$EUID
	STATE=$CC_VAR
	if is_root; then
		DAEMON_USER=$CC_SYSTEM_USER
		RUN_DIR=/run/cc-$CC_ID
		[[ -e $CC_VAR/state ]] && STATE=$(readlink -f "$CC_VAR/state")
	fi
	CONFIG=$STATE/etc/connector.ini
	DB_SOCKET=$RUN_DIR/db.sock
	FCGI_SOCKET=$RUN_DIR/fcgi.sock
	daemon_prefix
}

# Runs a command as the user of the daemons.
as_daemon() { "${DAEMON[@]}" "$@"; }

# What to put in front of a command for that: another user when we are root, and nothing of our
# environment but the options of the sanitizers and the seams of debug builds.
daemon_prefix() {
	local name
	DAEMON=()
	is_root && DAEMON=(setpriv "--reuid=$DAEMON_USER" "--regid=$DAEMON_USER" --init-groups)
	DAEMON+=(env -i "${CLEAN[@]}")
	for name in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS LSAN_OPTIONS CC_FAIL_ALLOCATION \
		CC_CLOCK_SHIFT_S CC_DB_FAULT; do
		if [[ -v $name ]]; then DAEMON+=("$name=${!name}"); fi
	done
}

daemon_user_make() {
	is_root || return 0
	getent passwd "$CC_SYSTEM_USER" >/dev/null && return 0
	useradd --system --user-group --no-create-home --home-dir /nonexistent \
		--shell /usr/sbin/nologin --comment "compute-connector development" \
		"$CC_SYSTEM_USER" || getent passwd "$CC_SYSTEM_USER" >/dev/null
}

# As root: the state stays in $CC_VAR only when the daemons can walk there.
state_choose() {
	is_root || return 0
	[[ -e $CC_VAR/state ]] && return 0
	chmod 0711 "$CC_VAR"
	if as_daemon test -x "$CC_VAR/."; then
		STATE=$CC_VAR
		return 0
	fi
	STATE=$CC_MACHINE_STATE/$(printf %s "$CC_VAR" | sha256sum | cut -c1-16)
	(umask 022 && mkdir -p "$CC_MACHINE_STATE")
	mkdir -p "$STATE"
	chmod 0711 "$STATE"
	printf '%s\n' "$CC_VAR" >"$STATE/made-for"
	ln -sfn "$STATE" "$CC_VAR/state"
	CONFIG=$STATE/etc/connector.ini
}

# owner_dir MODE OWNER DIR: makes a folder that is really ours.
owner_dir() {
	local mode=$1 owner=$2 dir=$3
	[[ ! -L $dir ]] || die "$dir is a symbolic link; remove it"
	mkdir -p "$dir"
	[[ $(stat -c %u "$dir") == "$EUID" ]] || is_root || die "$dir belongs to somebody else"
	chmod "$mode" "$dir"
	is_root && chown "$owner:" "$dir"
	return 0
}

folders_make() {
	local me
	me=$(id -un)
	daemon_user_make
	state_choose
	local dir
	owner_dir 0755 "$me" "$STATE/bin"
	owner_dir 0755 "$me" "$STATE/tls"
	for dir in pids runner; do owner_dir 0700 "$me" "$STATE/$dir"; done
	for dir in etc log nginx keys tmp; do owner_dir 0700 "$DAEMON_USER" "$STATE/$dir"; done
	owner_dir 0700 "$DAEMON_USER" "$RUN_DIR"
	[[ -e $CC_VAR/log ]] || ln -s "$STATE/log" "$CC_VAR/log"
}

# ---- ports -----------------------------------------------------------------------------------

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Between choosing a port and listening on it lie some seconds. An instance that starts at the same
# time sees in this file which ports were chosen a moment ago, and by whom.
port_claimed() {
	awk -v port="$1" -v by="$CC_VAR" -v now="$(date +%s)" \
		'$1 == port && $3 != by && now - $2 < 120 { found = 1 } END { exit !found }' "$CLAIMS"
}

port_unfit() { port_taken "$1" || port_claimed "$1"; }

# port_find FIRST: the first free port from FIRST on.
port_find() {
	local port
	for ((port = $1; port < $1 + 200 && port < 65536; port++)); do
		port_unfit "$port" || {
			printf '%s' "$port"
			return 0
		}
	done
	die "no free port between $1 and $((port - 1))"
}

# Ports are remembered, so that the printed lines stay true. A port that was asked for is kept or
# refused; one that we chose ourselves gives way to whoever has it now.
ports_choose() {
	local file=$CC_VAR/ports wanted=${CC_PORT:-}
	HTTPS_PORT='' RUNNER_PORT=''
	CLAIMS=/tmp/cc-ports-$EUID
	[[ ! -e $CLAIMS || (-O $CLAIMS && -f $CLAIMS && ! -L $CLAIMS) ]] || die "$CLAIMS is not ours"
	exec 8>>"$CLAIMS"
	flock 8
	[[ -z $(find "$CLAIMS" -mmin +5) ]] || : >"$CLAIMS"
	[[ -r $file ]] && read -r HTTPS_PORT RUNNER_PORT <"$file"
	if [[ -n $wanted ]]; then
		HTTPS_PORT=$wanted
		port_taken "$wanted" && die "port $wanted is in use"
	elif [[ -z $HTTPS_PORT ]] || port_unfit "$HTTPS_PORT"; then
		HTTPS_PORT=$(port_find "${CC_PORT_FIRST:-8443}")
	fi
	if [[ -z $RUNNER_PORT ]] || port_unfit "$RUNNER_PORT"; then
		RUNNER_PORT=$(port_find $((HTTPS_PORT < 55000 ? HTTPS_PORT + 1000 : HTTPS_PORT - 1000)))
	fi
	printf '%s %s\n' "$HTTPS_PORT" "$RUNNER_PORT" >"$file"
	printf '%s %(%s)T %s\n' "$HTTPS_PORT" -1 "$CC_VAR" "$RUNNER_PORT" -1 "$CC_VAR" >&8
	exec 8>&-
	URL=https://localhost:$HTTPS_PORT
}

ports_recall() {
	[[ -r $CC_VAR/ports ]] || die "there is no instance in $CC_VAR"
	read -r HTTPS_PORT RUNNER_PORT <"$CC_VAR/ports"
	URL=https://localhost:$HTTPS_PORT
}

# ---- processes -------------------------------------------------------------------------------

# A pid alone may be another process by now; with its start time it is not. Waiting for a service asks this
# many times: it starts no process.
process_born() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	read -ra stat <<<"${stat##*) }" # from the third field on
	[[ ${stat[0]} != Z ]] || return 1
	BORN=${stat[19]}
}

# service_lives NAME: and sets SERVICE_PID.
service_lives() {
	local born
	[[ -r $STATE/pids/$1 ]] || return 1
	read -r SERVICE_PID born <"$STATE/pids/$1" || return 1
	process_born "$SERVICE_PID" && [[ $BORN == "$born" ]]
}

# service_pid NAME: prints the pid of a living service.
service_pid() { service_lives "$1" && printf '%s' "$SERVICE_PID"; }

# service_launch NAME COMMAND...: in a session of its own, so that Ctrl-C reaches only us.
service_launch() {
	local name=$1 log
	shift
	log=$STATE/log/$name.log
	(
		ulimit -n "$(nofile)"
		ulimit -c 0
		# The folders that the runner makes must be open to its boxes, who are somebody else.
		[[ $name != runner ]] || umask 022
		exec setsid "$@"
	) >>"$log" 2>&1 </dev/null 9>&- &
	local pid=$!
	process_born "$pid" || BORN=0
	printf '%s %s\n' "$pid" "$BORN" >"$STATE/pids/$name"
}

nofile() {
	local hard
	hard=$(ulimit -Hn)
	[[ $hard == unlimited || $hard -gt 65536 ]] && hard=65536
	printf '%s' "$hard"
}

# wait_ready NAME SECONDS COMMAND...: until the command succeeds; the service must not die.
wait_ready() {
	local name=$1 tries=$(($2 * 20))
	shift 2
	while ((tries-- > 0)); do
		"$@" >/dev/null 2>&1 && return 0
		service_lives "$name" || break
		sleep 0.05
	done
	warn "$name did not become ready; the end of $STATE/log/$name.log:"
	tail -n 20 "$STATE/log/$name.log" >&2 || true
	return 1
}

# service_stop NAME: asks, waits, then kills.
service_stop() {
	local name=$1
	service_lives "$name" || {
		rm -f "$STATE/pids/$name"
		return 0
	}
	kill -TERM "$SERVICE_PID" 2>/dev/null || true
	timeout --foreground 30 tail --pid="$SERVICE_PID" -s 0.05 -f /dev/null || true
	if service_lives "$name"; then
		warn "$name did not stop within 30 s; killed"
		kill -KILL -- "-$SERVICE_PID" 2>/dev/null || kill -KILL "$SERVICE_PID" 2>/dev/null || true
	fi
	rm -f "$STATE/pids/$name"
}

# ---- MariaDB ---------------------------------------------------------------------------------

# Runs the SQL of standard input as the administrator of the database.
db_client() { as_daemon mariadb --no-defaults --protocol=socket --socket="$DB_SOCKET"; }
db_answers() { [[ -S $DB_SOCKET ]] && echo 'SELECT 1' | db_client; }

# The folder appears whole or not at all, so a start that was interrupted begins anew. --force: also
# on a machine that can not look up its own name, which we do not need.
mariadb_prepare() {
	[[ -d $STATE/db/mysql ]] && return 0
	rm -rf "$STATE/db.new"
	owner_dir 0700 "$DAEMON_USER" "$STATE/db.new"
	as_daemon mariadb-install-db --no-defaults --datadir="$STATE/db.new" --skip-test-db --force \
		--auth-root-authentication-method=socket --auth-root-socket-user="$DAEMON_USER" \
		--innodb-log-file-size=16M >"$STATE/log/mariadb-install.log" 2>&1 || {
		cat "$STATE/log/mariadb-install.log" >&2 # the reason stands first
		die "the database could not be created"
	}
	mv "$STATE/db.new" "$STATE/db"
}

mariadb_start() {
	service_launch mariadb "${DAEMON[@]}" mariadbd --no-defaults --datadir="$STATE/db" \
		--socket="$DB_SOCKET" --pid-file="$RUN_DIR/db.pid" --tmpdir="$STATE/tmp" \
		--skip-networking --skip-name-resolve --local-infile=0 --skip-log-bin \
		--character-set-server=utf8mb4 --collation-server=utf8mb4_bin \
		--default-time-zone=+00:00 --transaction-isolation=READ-COMMITTED \
		--innodb-lock-wait-timeout=5 --max-connections=300 --max-allowed-packet=16M \
		--sql-mode=STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY \
		--innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-log-buffer-size=2M \
		--key-buffer-size=1M --aria-pagecache-buffer-size=1M --table-open-cache=400 \
		--performance-schema=OFF
	wait_ready mariadb 60 db_answers
}

# The program's own user may change rows, never tables.
mariadb_accounts() {
	local password
	# shellcheck disable=SC2016 # these are the inner shell's own
	[[ -s $STATE/etc/db.password ]] || as_daemon sh -c \
		'umask 077; openssl rand -hex 24 >"$1.new" && mv "$1.new" "$1"' sh "$STATE/etc/db.password"
	password=$(cat "$STATE/etc/db.password")
	db_client <<-SQL
		CREATE DATABASE IF NOT EXISTS compute_connector;
		CREATE USER IF NOT EXISTS cc_app@localhost IDENTIFIED BY '$password';
		ALTER USER cc_app@localhost IDENTIFIED BY '$password';
		GRANT SELECT, INSERT, UPDATE, DELETE ON compute_connector.* TO cc_app@localhost;
	SQL
}

# ---- TLS -------------------------------------------------------------------------------------

# fresh CERTIFICATE: exists and lives for another 30 days.
fresh() { openssl x509 -in "$1" -noout -checkend $((30 * 86400)) >/dev/null 2>&1; }

# A CA that can vouch for no name but localhost, so that trusting it costs little. (Addresses can not
# be constrained: Claude Code's TLS refuses a certificate below such a constraint.)
tls_ca() {
	local dir=$STATE/tls
	fresh "$dir/ca.pem" && [[ -s $dir/ca.key ]] && return 0
	rm -f "$dir/server.pem"
	openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 \
		-days 3650 -subj "/CN=Compute Connector development CA $CC_ID" \
		-keyout "$dir/ca.key" -out "$dir/ca.pem" \
		-addext 'basicConstraints=critical,CA:TRUE,pathlen:0' \
		-addext 'keyUsage=critical,keyCertSign,cRLSign' \
		-addext 'nameConstraints=critical,permitted;DNS:localhost' \
		2>/dev/null
	chmod 0644 "$dir/ca.pem"
}

tls_make() {
	local dir=$STATE/tls
	tls_ca
	if fresh "$dir/server.pem" && openssl verify -CAfile "$dir/ca.pem" "$dir/server.pem" \
		>/dev/null 2>&1; then
		return 0
	fi
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
		-keyout "$dir/server.key.new" -out "$dir/server.csr" 2>/dev/null
	openssl x509 -req -in "$dir/server.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -sha256 \
		-days 397 -set_serial "0x$(openssl rand -hex 16)" -out "$dir/server.pem.new" \
		-extfile <(printf '%s\n' 'basicConstraints=critical,CA:FALSE' \
			'keyUsage=critical,digitalSignature' 'extendedKeyUsage=serverAuth' \
			'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:0:0:0:0:0:0:0:1') 2>/dev/null
	mv "$dir/server.key.new" "$dir/server.key"
	mv "$dir/server.pem.new" "$dir/server.pem"
	rm -f "$dir/server.csr"
	chmod 0644 "$dir/server.pem"
	if is_root; then chown "$DAEMON_USER:" "$dir/server.key"; fi
}

# ---- nginx -----------------------------------------------------------------------------------

nginx_listen() {
	printf '\t\tlisten 127.0.0.1:%s ssl http2%s;\n' "$HTTPS_PORT" "$1"
	if grep -q '^00000000000000000000000000000001 ' /proc/net/if_inet6 2>/dev/null; then
		printf '\t\tlisten [::1]:%s ssl http2%s;\n' "$HTTPS_PORT" "$1"
	fi
}

nginx_write() {
	local dir=$STATE/nginx tls=$STATE/tls
	rm -rf "$dir/compute-connector"
	mkdir -p "$dir/compute-connector"
	cp "$CC_ROOT"/nginx/*.conf "$dir/compute-connector/"
	cp "$CC_LIMITS" "$dir/compute-connector/limits.conf"
	cat >"$dir/nginx.conf" <<-CONF
		daemon off;
		worker_processes 2;
		worker_rlimit_nofile $(nofile);
		pid $RUN_DIR/nginx.pid;
		error_log "$STATE/log/nginx.error.log" warn;
		events { worker_connections $(($(nofile) / 2 < 16384 ? $(nofile) / 2 : 16384)); }
		http {
			client_body_temp_path "$dir/temp/body";
			fastcgi_temp_path "$dir/temp/fastcgi";
			proxy_temp_path "$dir/temp/proxy";
			uwsgi_temp_path "$dir/temp/uwsgi";
			scgi_temp_path "$dir/temp/scgi";
			include compute-connector/http.conf;
			access_log "$STATE/log/nginx.access.log" cc_access;
			ssl_certificate "$tls/server.pem";
			ssl_certificate_key "$tls/server.key";
			upstream compute_connector {
				server "unix:$FCGI_SOCKET" max_conns=6000 max_fails=0;
				include compute-connector/upstream.conf;
			}
			server {
		$(nginx_listen "")
				server_name localhost 127.0.0.1 [::1];
				set \$cc_hsts "";
				include compute-connector/site.conf;
			}
			server {
		$(nginx_listen " default_server")
				server_name _;
				set \$cc_hsts "";
				include compute-connector/foreign.conf;
			}
		}
	CONF
	mkdir -p "$dir/temp"
	if is_root; then chown -R "$DAEMON_USER:" "$dir"; fi
}

nginx_test() {
	as_daemon nginx -t -q -e stderr -p "$STATE/nginx/" -c "$STATE/nginx/nginx.conf"
}

nginx_start() {
	nginx_test || die "the nginx configuration is not valid"
	service_launch nginx "${DAEMON[@]}" nginx -e "$STATE/log/nginx.error.log" \
		-p "$STATE/nginx/" -c "$STATE/nginx/nginx.conf"
	wait_ready nginx 20 port_taken "$HTTPS_PORT"
}

# ---- the connector ---------------------------------------------------------------------------

connector() { as_daemon "$STATE/bin/compute-connector" "$@" --config "$CONFIG"; }

# Copies, because the daemons may be unable to reach the build folder, and a rebuild must not pull
# the program away under a running instance.
programs_copy() {
	local name
	for name in compute-connector compute-runner compute-runner-init; do
		[[ -x $CC_BUILD/$name ]] || die "$CC_BUILD/$name is not built"
		cmp -s "$CC_BUILD/$name" "$STATE/bin/$name" && continue
		install -m 0755 "$CC_BUILD/$name" "$STATE/bin/$name.new"
		mv "$STATE/bin/$name.new" "$STATE/bin/$name"
	done
}

# A line of a settings file holds some 190 bytes; a path in a deep folder is written relative to it.
state_path() {
	if ((${#STATE} < 120)); then printf '%s' "$STATE/$1"; else printf '%s' "../$1"; fi
}

connector_settings() {
	local file=$CONFIG.new
	# shellcheck disable=SC2016
	as_daemon sh -c 'umask 077; cat >"$1"' sh "$file" <<-INI
		[server]
		public_url = $URL
		socket = $FCGI_SOCKET
		workers = 2
		drain_s = 20
		ca_hint = $(state_path tls/ca.pem)
		[database]
		socket = $DB_SOCKET
		user = cc_app
		password = $(cat "$STATE/etc/db.password")
		admin_user = $DAEMON_USER
		[keys]
		master_keys = $(state_path keys/master.keys)
		[outbound]
		ca_extra = $(state_path tls/ca.pem)
		allowed_origins = http://127.0.0.1:$RUNNER_PORT
		$([[ -n $CC_EXTRA ]] && cat "$CC_EXTRA")
	INI
	mv "$file" "$CONFIG"
}

connector_prepare() {
	programs_copy
	connector_settings
	connector check-config >/dev/null
	[[ -e $STATE/keys/master.keys ]] || connector admin master-key create >/dev/null
	connector migrate >"$STATE/log/migrate.log" 2>&1 || {
		tail -n 20 "$STATE/log/migrate.log" >&2
		die "the database schema could not be brought up to date"
	}
}

ask() { curl -sS --max-time 10 --noproxy '*' --cacert "$STATE/tls/ca.pem" "$@"; }

connector_start() {
	rm -f "$FCGI_SOCKET"
	service_launch connector "${DAEMON[@]}" "$STATE/bin/compute-connector" serve --config "$CONFIG"
	wait_ready connector 30 test -S "$FCGI_SOCKET"
}

connector_ready() { wait_ready connector 30 ask -f -o /dev/null "$URL/readyz"; }

# ---- the runner ------------------------------------------------------------------------------

# As root it stays root: it makes cgroups and networks, its boxes run as somebody without rights.
runner_start() {
	rm -f "$STATE/runner/connection.json"
	service_launch runner env -i "${CLEAN[@]}" \
		"$STATE/bin/compute-runner" --listen "127.0.0.1:$RUNNER_PORT" --lifetime 86400 \
		--connection-file "$STATE/runner/connection.json"
	wait_ready runner 20 test -s "$STATE/runner/connection.json"
}

# ---- all of it -------------------------------------------------------------------------------

instance_start() {
	instance_paths
	folders_make
	ports_choose
	mariadb_prepare
	tls_make
	mariadb_start
	mariadb_accounts
	connector_prepare
	nginx_write
	connector_start
	nginx_start
	runner_start
	connector_ready
}

# nginx goes first, so that no caller waits for a connector that is leaving.
instance_stop() {
	local name
	for name in nginx connector runner mariadb; do service_stop "$name"; done
	rm -rf "$RUN_DIR"
}

instance_running() {
	local name
	for name in "${CC_SERVICES[@]}"; do service_lives "$name" || return 1; done
}

# Removes an instance that nobody needs any more.
instance_remove() {
	instance_paths
	instance_stop
	[[ $STATE == "$CC_MACHINE_STATE"/* ]] && rm -rf "$STATE"
	rm -rf "$CC_VAR"
}

# ---- called by itself ------------------------------------------------------------------------

service_command() {
	local verb=$1 name=$2
	[[ " ${CC_SERVICES[*]} " == *" $name "* ]] || die "there is no service $name"
	instance_paths
	ports_recall
	case $verb in
	start) service_lives "$name" || "${name}_start" ;;
	stop) service_stop "$name" ;;
	restart)
		service_stop "$name"
		"${name}_start"
		;;
	kill) kill -KILL "$(service_pid "$name")" ;;
	pid) service_pid "$name" ;;
	*) die "use: instance.sh start|stop|restart|kill|pid ${CC_SERVICES[*]}" ;;
	esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	[[ $# -eq 2 ]] || die "use: instance.sh start|stop|restart|kill|pid SERVICE"
	service_command "$@"
fi
