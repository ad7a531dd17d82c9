# Starts a job once, however often it is called.
# $1 job, $2 time-out in seconds or 0, $3 archive
# Prints: sbx1 started|dup|badcwd|badtar|nospace|nofork|notools|reset
# Runs as the body of a function, which gives 0 when the job is on its way; then what follows the function
# looks at it.
#
# The archive is unpacked in /tmp. It holds the job folder job-ID and, in .sbx/ID, the command (cmd),
# its environment (env, if it has any), its working directory (cwd, if not the job folder: whoever
# starts the job need not know more than its name), blank files for output (out, err) and numbers (code, job,
# sup), and a pipe (end). Numbers are written over blanks that are there from the start: a full disk
# must not turn an exit code into an empty file. The first one stands at the end of its line once more,
# because a shell reads a byte at a time: who begins before the write and ends after it sees the rest of
# a number only, and knows it by that.
#
# The archive shows that this is still the machine to which it was sent; without it and without a job
# folder the machine was replaced. It is kept when it could not be used, so that a repeat tells the
# same.
d=/tmp/.sbx/$1 w=/tmp/job-$1
say() { echo "sbx1 $1"; return "${2:-1}"; }
for x in cat setsid tar timeout base64 tail head wc grep; do
	command -v "$x" >/dev/null 2>&1 || { say notools; return; }
done
[ -d /tmp/.sbx ] || mkdir -m 700 /tmp/.sbx 2>/dev/null
if ! mkdir -m 700 "$d" 2>/dev/null; then
	[ -d "$d" ] || { say nospace; return; }
	[ ! -e "$d/badcwd" ] || { say badcwd; return; }
	{ ! read -r x <"$d/sup"; } 2>/dev/null || rm -f "$3"
	say dup 0
	return
fi
[ -f "$3" ] || { rmdir "$d"; say reset; return; }
(umask 022 && exec tar -xof "$3" -C /tmp) 2>/dev/null && [ -p "$d/end" ] ||
	{ rm -rf "$d" "$w"; say badtar; return; }
rm -f "$3"
c=$w
[ ! -f "$d/cwd" ] || c=$(cat "$d/cwd")
case $c in
/*) ;;
*) c=$w/$c ;;
esac
cd "$c" 2>/dev/null ||
	{ mkdir "$d/badcwd"; rm -rf "$w" "$d/env" "$d/cmd" "$d/cwd"; say badcwd; return; }
unset OLDPWD

# Becomes the command: $1 folder, $2 shell, $3 cat, $4 control group or "". The environment file is
# gone before its values are set, because they may change PATH. The text of the command is read by
# the shell itself: on a command line everybody could see it. Output is redirected here because some
# shells write "Killed" to where the output of a killed child goes. When memory ends, the kernel shall
# take the command and not those who watch it.
run='
printf "%-11s %-11s\n" $$ $$ 1<>"$1/job"
{ echo 1000 >/proc/$$/oom_score_adj; } 2>/dev/null
exec >"$1/out" 2>"$1/err"
[ ! -e "$1/stop" ] || exit 137
[ -z "$4" ] || { echo 0 >"$4/cgroup.procs"; } 2>/dev/null
if [ -e "$1/env" ]; then
	set -- "$@" "$(cat "$1/env" || echo >"$1/fail")"
	rm -f "$1/env"
	eval "$5" 2>/dev/null
fi
export SBX_JOB="${1##*/}"
exec "$2" -c "eval \"\$($3 $1/cmd || echo >$1/fail)\"" sh'

# The time-out: $1 folder, $2 seconds. Both sleeps begin at once, so that nothing has to be forked
# when it counts. A sleep that was killed is no time-out: the rest is slept again. The new file "fin"
# decides who was first, the end or TERM.
watch='
up() { read -r n x </proc/uptime; n=${n%%.*}; }
up; e=$((n + $2))
sleep "$2" & a=$!
sleep "$(($2 + 5))" & b=$!
until wait "$a"; do
	up; n=$((e - n))
	[ "$n" -gt 0 ] || break
	sleep "$n" & a=$!
done
set -C
true >"$1/fin" || [ ! -e "$1/fin" ] || exit
read -r j x <"$1/job"
kill -s TERM -- "-$j"
wait "$b"
kill -s KILL -- "-$j"'

# The supervisor: $1 folder, $2 seconds, $3 shell, $4 cat, $5 run, $6 watch. The command is in the
# foreground because a shell lets its background commands ignore INT and QUIT. Whoever waits for the
# end reads the pipe "end", which closes when the supervisor ends, in whatever way. The exit code is
# written by a trap: a fork bomb may keep the shell from forking, and then only the trap is left.
sup='
d=$1 g= w= c= t=0 i=0
exec 9<>"$d/end"
printf "%-11s %-11s\n" $$ $$ 1<>"$d/sup"
for b in /sys/fs/cgroup /sys/fs/cgroup/unified; do
	[ -w "$b/cgroup.procs" ] && mkdir "$b/sbx-${d##*/}" && g=$b/sbx-${d##*/} && break
done
if [ "$2" -gt 0 ]; then
	setsid "$3" -c "$6" sbx "$d" "$2" 9>&- & w=$!
fi
setsid "$3" -c "$5" sbx "$d" "$3" "$4" "$g" 9>&-
c=$?
set -C
true >"$d/fin" || [ ! -e "$d/fin" ] || t=1
[ -z "$w" ] || kill -s KILL -- "-$w" || kill -s KILL "$w"
if ! read -r j x <"$d/job" || [ -z "$j" ] || [ -e "$d/fail" ]; then
	[ -z "$g" ] || rmdir "$g"
	exit
fi
end() { printf "%-3s %-7s %-11s\n" "$c" "$t" "$c" 1<>"$d/code"; rm -f "$d/end"; }
trap end EXIT
kill -s KILL -- "-$j"
while [ $i -lt 100 ]; do
	[ -z "$g" ] || echo 1 >|"$g/cgroup.kill"
	p=
	for e in $(grep -lzxF "SBX_JOB=${d##*/}" /proc/[0-9]*/environ); do
		e=${e#/proc/}
		p="$p ${e%%/*}"
	done
	[ -z "$p" ] || kill -s KILL $p
	[ -z "$g" ] || ! rmdir "$g" || g=
	[ -n "$p$g" ] || break
	i=$((i + 1))
	sleep 0.02
done'

# Where two programs lie. To catch what "command -v" says would take a process each.
s= k=
IFS=:
for x in $PATH; do
	[ -n "$s" ] || [ ! -x "$x/sh" ] || s=$x/sh
	[ -n "$k" ] || [ ! -x "$x/cat" ] || k=$x/cat
done
unset IFS

# setsid forks only when its caller leads a process group: the first one makes it so, the second one
# forks and returns. Unlike "&" this leaves INT and QUIT alone.
setsid setsid "${s:=sh}" -c "$sup" sbx "$d" "$2" "$s" "${k:-cat}" "$run" "$watch" </dev/null >/dev/null 2>&1 ||
	{ say nofork; return; }
say started 0
