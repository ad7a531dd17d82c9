# Tells how a job stands. May be called at any time, by several at once.
# $1 job, $2 offset in stdout, $3 offset in stderr, $4 most bytes of each, $5 seconds to wait for the end
# Prints: sbx1 new|run|done|lost CODE TIMEDOUT OUTSIZE ERRSIZE OUTAT ERRAT PEAK OOM
# and, of each stream, lines of base64 and an empty one; or sbx1 gone|reset.
d=/tmp/.sbx/$1
[ -d /tmp/.sbx ] || { echo "sbx1 reset"; exit 0; }
[ -d "$d" ] || { echo "sbx1 gone"; exit 0; }

# Where nobody collects dead processes they stay as zombies, which a signal would still find.
alive() {
	[ -r /proc/self/stat ] || { kill -0 "$1" 2>/dev/null; return; }
	z=X
	{ read -r x x z x <"/proc/$1/stat"; } 2>/dev/null
	[ "$z" != Z ] && [ "$z" != X ]
}
# Whether the supervisor lives is asked before the code is read: it writes the code and then ends. A line
# that is just being written (start.sh) is not there yet.
look() {
	s=new c=- t=0 p= q= x= y= z=
	if { read -r p q <"$d/sup"; } 2>/dev/null && [ -n "$p" ] && [ "$p" = "$q" ]; then
		s=run
		alive "$p" || s=lost
		[ ! -e "$d/fin" ] || t=1
	fi
	if { read -r x y z <"$d/code"; } 2>/dev/null && [ "$x" = "$z" ]; then
		case $x:$y in
		[0-9]:[01] | [0-9][0-9]:[01] | [0-9][0-9][0-9]:[01]) s=done c=$x t=$y ;;
		esac
	fi
}
look
# The pipe ends when the supervisor does; one that has not opened it yet keeps us waiting as well.
if [ "$5" -gt 0 ] && [ -p "$d/end" ]; then
	case $s in new | run)
		timeout "$5" cat "$d/end" >/dev/null 2>&1
		look
		;;
	esac
fi

# A file without content costs no process.
o=0 e=0
[ ! -s "$d/out" ] || o=$(($(wc -c <"$d/out")))
[ ! -s "$d/err" ] || e=$(($(wc -c <"$d/err")))
from() { if [ $(($1 - $3)) -gt "$2" ]; then at=$(($1 - $3)); else at=$2; fi; }
from "$o" "$2" "$4"
a=$at
from "$e" "$3" "$4"
b=$at

# Memory of the group of processes this machine or box consists of; version 2, then version 1.
m= k=
{ read -r m </sys/fs/cgroup/memory.peak ||
	read -r m </sys/fs/cgroup/memory/memory.max_usage_in_bytes; } 2>/dev/null
for f in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
	[ -r $f ] || continue
	while read -r x y; do
		[ "$x" != oom_kill ] || k=$y
	done <$f
	break
done
case $m in '' | *[!0-9]*) m=- ;; esac
case $k in '' | *[!0-9]*) k=- ;; esac

echo "sbx1 $s $c $t $o $e $a $b $m $k"
# A file may grow meanwhile: it is cut off where we said that it ends.
slice() {
	if [ "$2" -ge "$3" ]; then
		:
	elif [ "$2" -eq 0 ]; then
		head -c "$3" <"$1" | base64
	else
		tail -c "+$(($2 + 1))" <"$1" | head -c "$(($3 - $2))" | base64
	fi
	echo
}
slice "$d/out" "$a" "$o" 2>/dev/null
slice "$d/err" "$b" "$e" 2>/dev/null
