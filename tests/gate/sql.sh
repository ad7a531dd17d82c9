#!/bin/bash
# No SQL text in C: statements live in schema/queries/ under a name.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
while read -r file; do
	while IFS=: read -r line _; do
		finding "$file:$line: SQL in C; give it a name in schema/queries/ and use db.h"
	done < <(grep -nE '"[^"]*\b(SELECT .* FROM|INSERT (IGNORE )?INTO|UPDATE [a-z_]+ SET|DELETE FROM|REPLACE INTO|CREATE TABLE|ALTER TABLE|DROP TABLE)\b' "$file" || true)
done < <(sources 'fcgi/*.c' 'fcgi/*.h' 'handlers/*.c' 'handlers/*.h' 'providers/*.c' 'providers/*.h')
# What one database node decides alone is not decided on a cluster (docs of the schema say more).
while read -r file; do
	while IFS=: read -r line _; do
		finding "$file:$line: not safe on a cluster; claim with one compare-and-set UPDATE"
	done < <(sed 's/--.*//' "$file" | grep -niE 'for update|skip locked|get_lock|lock tables|[[:space:]]returning[[:space:]]' || true)
done < <(sources 'schema/*.sql' 'schema/queries/*.sql')
exit "$found"
