#!/bin/bash
#
# Installs the Debian packages that ./run or ./check needs and that are missing:
#
#     nginx/packages.sh run|check
#
# As root, or through sudo. No service is started, enabled or changed: starting is forbidden while
# apt works, and a server that came with it is not entered into the start of the machine.
set -euo pipefail

# The compiler, what we link with, the two servers, the tools of ./run, what boxes are made of.
RUN_PACKAGES=(gcc libc6-dev make cmake ninja-build pkg-config
	libfcgi-dev libcurl4-openssl-dev libjson-c-dev libssl-dev libmariadb-dev libinih-dev
	libarchive-dev libmicrohttpd-dev libcmocka-dev
	mariadb-server-core mariadb-client-core nginx
	openssl ca-certificates curl jq passwd util-linux procps
	bubblewrap slirp4netns iproute2)
# The gates, the sanitizers' symbolizer, the clients of the tests.
CHECK_PACKAGES=(git clang clang-format llvm pmccabe shellcheck systemd nodejs npm python3
	busybox dash bash strace file)

missing() {
	local name
	for name in "$@"; do
		dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed ||
			printf '%s\n' "$name"
	done
}

# npm comes with Node itself when that is not Debian's; any Python 3 will do.
wanted() {
	[[ $1 == run ]] || {
		local name
		for name in "${CHECK_PACKAGES[@]}"; do
			[[ $name == npm || $name == nodejs || $name == python3 ]] && command -v "${name/nodejs/node}" >/dev/null && continue
			printf '%s\n' "$name"
		done
	}
	printf '%s\n' "${RUN_PACKAGES[@]}"
}

no_start() {
	POLICY=/usr/sbin/policy-rc.d
	[[ -e $POLICY ]] && return 0
	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	chmod 0755 "$POLICY"
	trap 'rm -f "$POLICY"' EXIT
}

install() {
	local had_nginx=yes
	[[ -z $(missing nginx) ]] || had_nginx=no
	no_start
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -y -q --no-install-recommends "$@" || {
		apt-get update -q
		apt-get install -y -q --no-install-recommends "$@"
	}
	if [[ $had_nginx == no && -z $(missing nginx) ]]; then
		deb-systemd-helper disable nginx.service >/dev/null 2>&1 || true
		update-rc.d nginx disable >/dev/null 2>&1 || true
	fi
}

main() {
	local list
	case ${1:-} in
	run | check) ;;
	*)
		echo "use: packages.sh run|check" >&2
		exit 2
		;;
	esac
	command -v dpkg-query >/dev/null || {
		echo "error: this is not a Debian system; install by hand: $(wanted "$1" | xargs)" >&2
		exit 1
	}
	mapfile -t list < <(wanted "$1")
	mapfile -t list < <(missing "${list[@]}")
	[[ ${#list[@]} -gt 0 ]] || return 0
	echo "Installing Debian packages: ${list[*]}"
	if [[ $(id -u) -eq 0 ]]; then
		install "${list[@]}"
	elif command -v sudo >/dev/null; then
		sudo "$0" "$1"
	else
		echo "error: not root and no sudo; ask an administrator for: apt-get install ${list[*]}" >&2
		exit 1
	fi
}

main "$@"
