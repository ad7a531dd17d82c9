#!/bin/bash
# Mechanics know nothing of meaning: fcgi/base includes only itself; providers may use base; handlers
# providers and base; fcgi everything. The runner is a program of its own: base and itself.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
set -f
declare -A may=(
	[fcgi/base]='fcgi/base'
	[providers/runner]='providers/runner fcgi/base'
	[providers]='providers fcgi/base'
	[handlers]='handlers providers fcgi/base'
	[fcgi]='fcgi handlers providers fcgi/base'
)
generated=' sql.h migration_texts.h spool_texts.h limits_texts.h workers_bridge_texts.h modal_bridge_texts.h '
while read -r file; do
	layer=${file%/*}
	while IFS=: read -r line text; do
		name=${text#*\"} name=${name%%\"*}
		[[ $generated == *" $name "* ]] && continue
		good=no
		for dir in ${may[$layer]:-none}; do
			[[ -e $dir/$name ]] && good=yes
			[[ -e $name && ${name%/*} == "$dir" ]] && good=yes
		done
		[[ $good == yes ]] ||
			finding "$file:$line: includes $name; $layer may include only: ${may[$layer]:-nothing}"
	done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$file" || true)
done < <(sources 'fcgi/*.c' 'fcgi/*.h' 'handlers/*.c' 'handlers/*.h' 'providers/*.c' 'providers/*.h')
exit "$found"
