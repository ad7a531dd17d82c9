# shellcheck shell=bash
#
# What ./run does with a started instance: an account, this computer as its provider, a first job,
# and the lines that tell how to connect. Sourced after instance.sh. No key ever stands on a command
# line: headers and bodies come from files and pipes.

# call PATH: posts standard input as JSON with the account's key; prints the answer.
call() {
	ask --max-time 300 -H "@$CC_VAR/header" -H 'Content-Type: application/json' \
		--data-binary @- "$URL$1"
}

key_works() {
	[[ -s $CC_VAR/dev.json && -s $CC_VAR/header ]] || return 1
	[[ $(ask -o /dev/null -w '%{http_code}' -H "@$CC_VAR/header" \
		-H 'Content-Type: application/json' -d '{}' "$URL/api/run/list_providers") == 200 ]]
}

# The account of an earlier start is used again as long as its key is good.
account_make() {
	local made=$CC_VAR/account.new
	if ! key_works; then
		connector admin account create --plan pro --json >"$made" 2>>"$STATE/log/admin.log" || {
			tail -n 3 "$STATE/log/admin.log" >&2
			die "the account could not be made"
		}
		jq -r '"Authorization: Bearer " + .token' "$made" >"$CC_VAR/header"
	else
		jq '{account, token: .key}' "$CC_VAR/dev.json" >"$made"
	fi
	jq --arg url "$URL" --arg ca "$STATE/tls/ca.pem" \
		'{url: $url, ca: $ca, key: .token, account: .account}' "$made" >"$CC_VAR/dev.json.new"
	mv "$CC_VAR/dev.json.new" "$CC_VAR/dev.json"
	rm -f "$made"
}

# The runner has a new token after each start, so its key is saved anew each time.
provider_save() {
	local answer
	answer=$(jq '{provider: "tunnel", name: "this-computer", token: .token, bridge_url: .url,
		make_default: true}' "$STATE/runner/connection.json" | call /api/run/save_provider_key)
	jq -e 'has("code") | not' <<<"$answer" >/dev/null || {
		warn "$answer"
		die "this computer could not be saved as a provider"
	}
}

job_body() {
	local dir=$CC_ROOT/tests/first-job
	jq -n --rawfile makefile "$dir/Makefile" --rawfile sum_c "$dir/sum.c" \
		--rawfile sum_h "$dir/sum.h" --rawfile test_c "$dir/test.c" '{
		cmd: "make test", timeout_s: 120, wait_s: 130,
		files: [{path: "Makefile", content: $makefile}, {path: "sum.c", content: $sum_c},
			{path: "sum.h", content: $sum_h}, {path: "test.c", content: $test_c}]}'
}

first_job() {
	local answer
	say "First job: make test of tests/first-job, in a sandbox on this computer"
	answer=$(job_body | call /api/run/run_job)
	jq -r 'if .job_id then
		"  outcome \(.outcome // .state), exit code \(.exit_code // "-"), \(.timings.run_ms // "?") ms",
		((.stdout // "") + (.stderr // "") | rtrimstr("\n") | split("\n")[] | "  | " + .)
		else "  " + tojson end' <<<"$answer"
	[[ $(jq -r '.outcome' <<<"$answer") == succeeded ]] || die "the first job did not succeed"
}

# What ./run prints last. Both commands work exactly as they stand there.
connect_lines() {
	local key ca=$STATE/tls/ca.pem
	key=$(jq -r .key "$CC_VAR/dev.json")
	cat <<-TEXT

		Compute Connector runs at $URL (start page: $URL/)

		Connect Claude Code:
		  export NODE_EXTRA_CA_CERTS=$(printf %q "$ca"); claude mcp add --transport http compute-connector $URL/mcp --header "Authorization: Bearer $key"

		Call it with curl:
		  curl -sS --cacert $(printf %q "$ca") -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d '{"cmd":"uname -a"}' $URL/api/run/run_job

		Key, address and CA for programs: $CC_VAR/dev.json
	TEXT
}
