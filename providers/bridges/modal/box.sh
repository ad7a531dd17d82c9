# What the bridge runs in a sandbox, as sh -c TEXT box VERB FIRST ARGUMENT...
#
#   start ID FOLDER SECONDS INPUT PROGRAM ARGUMENT...   started | dup | badcwd | nospace
#   poll  ID OUT ERR MOST WAIT   new|run|done|lost CODE LATE OUTSIZE ERRSIZE, then a line of base64 of each
#   kill  ID SIGNAL              sent | done | new
#   read  PATH OFFSET MOST       ok SIZE, then a line of base64
#   write PATH OFFSET NEWFILE    ok SIZE | conflict
#
# Every answer is a line that begins with "box". Besides it may say: gone (no such command), missing,
# folder, failed (files), and reset: FIRST is 1 until something was run in this machine; later a missing
# spool means that the machine was replaced and its files are lost.
#
# A command has a folder of its own. Its output can be read at any time and its end does not depend on the
# call that began it. Numbers are written over blanks that are there from the start: on a full disk an exit
# code must not become an empty file. The first one of a line is repeated at its end: a shell reads a byte
# at a time, and sees the rest of a number only when the write comes while it reads.
spool=/tmp/.sbx-bridge verb=$1 first=$2
shift 2
say() { echo "box $*"; exit 0; }
if [ "$first" = 1 ]; then
	(umask 077; mkdir -p $spool) 2>/dev/null || say nospace
fi
[ -d $spool ] || say reset

# Becomes the command: $1 its folder, then its words.
run='
printf %-20s "$$ $$" 1<>"$1/job"
exec <"$1/in" >"$1/out" 2>"$1/err"
shift
exec "$@"'

# The time limit: $1 folder, $2 seconds. Who makes the file "end" first, this or the supervisor, decides
# whether the command ended in time.
watch='
sleep "$2"
set -C
true >"$1/end" || [ ! -e "$1/end" ] || exit
read -r job again <"$1/job"
kill -s TERM -- "-$job"
sleep 5
kill -s KILL -- "-$job"'

# Waits for the command and writes its code: $1 folder, $2 seconds, $3 run, $4 watch, then the words. The
# command is in the foreground because shells let background commands ignore INT.
supervise='
d=$1 s=$2 run=$3 watch=$4 w= late=0
shift 4
printf %-20s "$$ $$" 1<>"$d/sup"
if [ "$s" -gt 0 ]; then setsid sh -c "$watch" box "$d" "$s" & w=$!; fi
setsid sh -c "$run" box "$d" "$@"
c=$?
set -C
true >"$d/end" || [ ! -e "$d/end" ] || late=1
[ -z "$w" ] || kill -s KILL -- "-$w" || kill -s KILL "$w"
read -r job again <"$d/job"
[ $late = 0 ] || kill -s KILL -- "-$job"
printf %-20s "$c $late $c" 1<>"$d/code"'

start() {
	d=$spool/$1 cwd=$2 seconds=$3 input=$4
	shift 4
	mask=$(umask)
	umask 077
	if ! mkdir "$d" 2>/dev/null; then
		[ -d "$d" ] && say dup
		say nospace
	fi
	for f in sup job code; do
		printf '%20s\n' '' >"$d/$f" && measure "$d/$f" && [ "$size" -eq 21 ] || { rm -rf "$d"; say nospace; }
	done 2>/dev/null
	printf %s "$input" | base64 -d >"$d/in" && : >"$d/out" && : >"$d/err" || { rm -rf "$d"; say nospace; }
	umask "$mask"
	[ -z "$cwd" ] || cd "$cwd" 2>/dev/null || { rm -rf "$d"; say badcwd; }
	{ read -r up idle </proc/uptime; } 2>/dev/null && echo "${up%%.*}" >"$d/at"
	# setsid forks only when its caller leads a group: the first makes it so, the second forks.
	setsid setsid sh -c "$supervise" box "$d" "$seconds" "$run" "$watch" "$@" </dev/null >/dev/null 2>&1
	say started
}

# A dead process that nobody collected can still be signalled, so its state is read where that is possible.
alive() {
	[ -r /proc/self/stat ] || { kill -0 "$1" 2>/dev/null; return; }
	z=X
	{ read -r a b z c <"/proc/$1/stat"; } 2>/dev/null
	[ "$z" != Z ] && [ "$z" != X ]
}
# Sets size. A file without content costs no process: a poll asks ten times a second.
measure() { size=0; [ ! -s "$1" ] || [ ! -f "$1" ] || size=$(($(wc -c <"$1"))); }
# Whether the supervisor lives is asked before the code is read: it writes the code and then ends.
look() {
	state=new code=- late=0 sup= job= c= l= at= up= again=
	{ read -r sup again <"$d/sup"; } 2>/dev/null
	[ "$sup" = "$again" ] || sup=
	{ read -r job again <"$d/job"; } 2>/dev/null
	[ "$job" = "$again" ] || job=
	if [ -n "$sup" ]; then
		state=run
		alive "$sup" || state=lost
	elif { read -r at <"$d/at" && read -r up idle </proc/uptime; } 2>/dev/null; then
		[ $((${up%%.*} - at)) -lt 60 ] || state=lost # its start died half-way
	fi
	{ read -r c l again <"$d/code"; } 2>/dev/null
	[ "$c" = "$again" ] || c=
	case $c:$l in
	[0-9]:[01] | [0-9][0-9]:[01] | [0-9][0-9][0-9]:[01]) state=done code=$c late=$l ;;
	esac
	measure "$d/out"
	out=$size
	measure "$d/err"
	err=$size
}
# $1 file, $2 its size, $3 offset, $4 most bytes
slice() {
	[ "$3" -ge "$2" ] || tail -c "+$(($3 + 1))" "$1" 2>/dev/null | head -c "$4" | base64 | tr -d '\n'
	echo
}

poll() {
	d=$spool/$1 i=$(($5 * 10))
	[ -d "$d" ] || say gone
	look
	while [ $i -gt 0 ] && [ "$out" -le "$2" ] && [ "$err" -le "$3" ]; do
		case $state in done | lost) break ;; esac
		sleep 0.1
		i=$((i - 1))
		look
	done
	echo "box $state $code $late $out $err"
	slice "$d/out" "$out" "$2" "$4"
	slice "$d/err" "$err" "$3" "$4"
}

send() {
	d=$spool/$1
	[ -d "$d" ] || say gone
	look
	case $state in done | lost) say done ;; esac
	[ -n "$job" ] || say new
	kill -s "$2" -- "-$job" 2>/dev/null || kill -s "$2" "$job" 2>/dev/null
	say sent
}

# Pipes and devices are no files: reading them may never end.
read_file() {
	[ ! -d "$1" ] || say folder
	[ -e "$1" ] || say missing
	[ -f "$1" ] && [ -r "$1" ] || say failed
	measure "$1"
	echo "box ok $size"
	slice "$1" "$size" "$2" "$3"
}

write_file() {
	trap 'rm -f "$3"' EXIT
	case $1 in */*) mkdir -p "${1%/*}/" 2>/dev/null || say failed ;; esac
	[ ! -d "$1" ] || say folder
	[ ! -e "$1" ] || [ -f "$1" ] || say failed
	if [ "$2" = 0 ]; then
		{ cat "$3" >"$1"; } 2>/dev/null || say failed
	else
		measure "$1"
		[ "$size" -eq "$2" ] || say conflict
		{ cat "$3" >>"$1"; } 2>/dev/null || say failed
	fi
	measure "$1"
	say "ok $size"
}

case $verb in
start) start "$@" ;;
poll) poll "$@" ;;
kill) send "$@" ;;
read) read_file "$@" ;;
write) write_file "$@" ;;
esac
