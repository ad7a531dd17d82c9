# Sends a signal to a job's process group. May be repeated.
# $1 job, $2 TERM|KILL|INT
# Prints: sbx1 sent|done|gone|reset
d=/tmp/.sbx/$1
[ -d /tmp/.sbx ] || { echo "sbx1 reset"; exit 0; }
[ -d "$d" ] || { echo "sbx1 gone"; exit 0; }
if { read -r c t x <"$d/code"; } 2>/dev/null && [ -n "$c" ] && [ "$c" = "$x" ]; then
	echo "sbx1 done"
	exit 0
fi
# A job that is not there yet looks for this mark after it wrote its number: one of us sees the other.
job() { { read -r j x <"$d/job"; } 2>/dev/null && [ -n "$j" ] && [ "$j" = "$x" ]; }
job || true >"$d/stop"
if job; then
	kill -s "$2" -- "-$j" 2>/dev/null || kill -s "$2" "$j" 2>/dev/null
fi
echo "sbx1 sent"
