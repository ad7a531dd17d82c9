# shellcheck shell=bash
#
# What the gates share. A gate prints "file:line: rule; remedy" for each finding and ends with 1 when
# there was one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck disable=SC2034 # the gates end with it
found=0

finding() {
	printf '%s\n' "$*"
	# shellcheck disable=SC2034
	found=1
}

# sources PATTERN...: files of the project, also in a copy without git.
sources() {
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
			if [[ -e $file ]]; then printf '%s\n' "$file"; fi
		done
	else
		local pattern args=()
		for pattern in "$@"; do args+=(-o -path "./$pattern"); done
		find . \( -path ./build -o -path ./var -o -name node_modules -o -name .git \) -prune -o \
			-type f \( "${args[@]:1}" \) -print | sed 's|^\./||'
	fi | sort
}

# code FILE: the file without comments and texts, line for line.
code() {
	awk '
	{
		out = ""; line = $0
		while (line != "") {
			if (inside) {
				at = index(line, "*/")
				if (!at) { line = ""; break }
				line = substr(line, at + 2); inside = 0
			} else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
				out = out substr(line, 1, RSTART - 1)
				what = substr(line, RSTART, 2)
				if (what == "//") { line = ""; break }
				if (what == "/*") { inside = 1; line = substr(line, RSTART + 2) }
				else { out = out "\"\""; line = substr(line, RSTART + RLENGTH) }
			} else { out = out line; line = "" }
		}
		print out
	}' "$1"
}
