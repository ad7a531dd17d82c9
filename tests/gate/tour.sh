#!/bin/bash
# docs/tour.md leads to every file of the program.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -e docs/tour.md ]] || { finding "docs/tour.md: does not exist"; exit 1; }
while read -r file; do
	name=${file##*/}
	grep -qF "${name%.*}" docs/tour.md || finding "$file: not in docs/tour.md; add a line there"
done < <(sources 'fcgi/*' 'handlers/*' 'providers/*' 'schema/*' 'nginx/*' 'run' 'check')
exit "$found"
