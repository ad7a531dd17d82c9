#!/bin/bash
# Shell scripts pass shellcheck; texts that run in a sandbox are plain POSIX.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
while read -r file; do
	grep -qE '^#!/bin/(ba)?sh|^# shellcheck shell=' <(head -n 1 "$file") || continue
	shellcheck -x "$file" || finding "$file: see above"
done < <({ sources '*.sh'; printf '%s\n' run check .ci/run; } | sort -u)
# In scripts that run in a sandbox, texts for another shell stand in single quotes on purpose (2016),
# "a && b || c" guards whole commands (2015), fields that are read but not used have a name (2034), and
# states are called done (1010) or nothing (1007).
while read -r file; do
	shellcheck -s sh -e SC2016,SC2015,SC2034,SC1010,SC1007 "$file" || finding "$file: see above"
done < <(sources 'providers/spool/*.sh' 'providers/bridges/*.sh')
exit "$found"
