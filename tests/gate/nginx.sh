#!/bin/bash
# nginx accepts the example of a real installation, and its own answers use codes, titles and
# statuses of the error table.
# shellcheck source=tests/gate/lib.sh
source "$(dirname "$0")/lib.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/compute-connector" "$dir/temp"
cp nginx/*.conf "$dir/compute-connector/"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x \
	-keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
sed "s|/etc/letsencrypt/live/connector.example/fullchain.pem|$dir/cert.pem|
	s|/etc/letsencrypt/live/connector.example/privkey.pem|$dir/key.pem|
	s|/var/log/nginx/|$dir/|; s|/run/compute-connector/|$dir/|; s|443|18443|" nginx/example.conf >"$dir/site"
{
	printf 'pid %s/pid;\nevents { worker_connections 64; }\nhttp {\n' "$dir"
	printf '%s_temp_path %s/temp/%s;\n' client_body "$dir" body fastcgi "$dir" f proxy "$dir" p \
		uwsgi "$dir" u scgi "$dir" s
	printf 'include %s;\n}\n' "$dir/site"
} >"$dir/nginx.conf"
nginx -t -q -e stderr -p "$dir/" -c "$dir/nginx.conf" 2>&1 || finding "nginx/example.conf: see above"

answers=0
while read -r status title code; do
	answers=$((answers + 1))
	title=${title//_/ }
	row=$(grep -F ", \"$code\", " fcgi/base/err.def) || {
		finding "nginx/errors.conf: code $code is not in err.def"
		continue
	}
	[[ $row == *"\"$title\""* ]] || finding "nginx/errors.conf: $code has another title in err.def"
	[[ $row == *", $status, "* || $code == bad_request ]] ||
		finding "nginx/errors.conf: $code has another status in err.def"
done < <(sed -n 's/.*"title":"\([^"]*\)","status":\([0-9]*\),.*"code":"\([^"]*\)".*/\2\t\1\t\3/p' \
	nginx/errors.conf | tr ' ' _)
((answers >= 10)) || finding "nginx/errors.conf: only $answers answers were read"
exit "$found"
