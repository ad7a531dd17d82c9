#!/bin/bash
# Every C file is as clang-format writes it.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
while read -r file; do
	finding "$file: not formatted; clang-format -i $file"
done < <(sources '*.c' '*.h' | xargs clang-format --dry-run -Werror 2>&1 |
	sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error:.*/\1/p' | sort -u)
exit "$found"
