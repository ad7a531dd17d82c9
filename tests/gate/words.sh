#!/bin/bash
# No leftover marks, no paths of somebody's machine, no merge remains.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
while read -r file; do
	[[ $file == tests/gate/words.sh || $file == *package-lock.json ]] && continue
	while IFS=: read -r line text; do
		finding "$file:$line: ${text:0:60}; remove it, or file an issue"
	done < <(grep -nIE '\bTODO\b|\bFIXME\b|\bXXX\b|^(<<<<<<<|>>>>>>>) |/work/|/home/[a-tv-z][a-z]*/' "$file" || true)
done < <(sources '*.c' '*.h' '*.def' '*.sql' '*.sh' '*.md' '*.mjs' '*.conf' '*.service' '*.txt' 'run' 'check')
exit "$found"
