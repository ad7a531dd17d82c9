#!/bin/bash
# A function has at most 60 lines and a complexity of at most 12, a .c file 600 lines, a header 200.
# Tests are lists of cases and may be as long as they have to be.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
lines_max=60 complexity_max=12 file_max=600 header_max=200
while read -r complexity _ _ _ lines place name; do
	file=${place%%(*}
	((complexity <= complexity_max)) ||
		finding "$file: $name has a complexity of $complexity, at most $complexity_max; split it"
	((lines <= lines_max)) ||
		finding "$file: $name has $lines lines, at most $lines_max; split it"
done < <(sources '*.c' | grep -v '^tests/' | xargs pmccabe)
while read -r file; do
	lines=$(wc -l <"$file") most=$file_max
	[[ $file == *.h ]] && most=$header_max
	((lines <= most)) || finding "$file: $lines lines, at most $most; split it by meaning"
done < <(sources '*.c' '*.h' | grep -v '^tests/')
exit "$found"
