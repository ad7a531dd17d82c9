#!/bin/bash
# A local with a cleanup attribute is filled before the first way out: otherwise its cleanup would free
# whatever the stack held.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
while read -r file; do
	while IFS=: read -r line name; do
		finding "$file:$line: $name may be cleaned up before it is filled; write \"= {0}\""
	done < <(code "$file" | awk '
		/^}/ { delete at }
		/CLEANUP_[A-Z_]+ [^=(]*;/ {
			name = $0; sub(/;.*/, "", name); sub(/.*[ *]/, "", name); at[name] = NR; next
		}
		{
			for (name in at)
				if ($0 ~ "&" name "[^A-Za-z0-9_]") delete at[name]
			if ($0 ~ /(^|[^A-Za-z0-9_])(return|break|continue)[^A-Za-z0-9_]/)
				for (name in at) { print at[name] ":" name; delete at[name] }
		}')
done < <(sources 'fcgi/*.c' 'handlers/*.c' 'providers/*.c' 'schema/*.c')
exit "$found"
