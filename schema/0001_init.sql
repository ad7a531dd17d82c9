-- Schema 1. Ids are 16 bytes of ours, times are milliseconds since 1970 in UTC, every table has a
-- primary key, and every state move is one UPDATE that names the state it leaves.

CREATE TABLE migration (
	version INT UNSIGNED NOT NULL PRIMARY KEY,
	applied_at BIGINT NOT NULL
);

-- Who we are: six characters that mark our sandboxes at providers, fixed for ever.
CREATE TABLE installation (
	one TINYINT UNSIGNED NOT NULL PRIMARY KEY,
	mark CHAR(6) NOT NULL,
	created_at BIGINT NOT NULL
);

-- `turn` counts the jobs that strategy round-robin has placed.
CREATE TABLE account (
	id BINARY(16) NOT NULL PRIMARY KEY,
	plan VARCHAR(16) NOT NULL,
	strategy VARCHAR(16) NOT NULL DEFAULT 'priority',
	fallback TINYINT NOT NULL DEFAULT 1,
	turn BIGINT UNSIGNED NOT NULL DEFAULT 0,
	state VARCHAR(8) NOT NULL DEFAULT 'active',
	changes BIGINT UNSIGNED NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	KEY by_state (state)
);

-- The account of zeros holds the installation's own data key.
CREATE TABLE data_key (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	master_key INT UNSIGNED NOT NULL,
	wrapped VARBINARY(128) NOT NULL,
	seals INT UNSIGNED NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	KEY by_account (account, created_at),
	KEY by_master (master_key)
);

CREATE TABLE token (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	kind VARCHAR(8) NOT NULL,
	hash BINARY(32) NOT NULL,
	last4 CHAR(4) NOT NULL,
	name VARCHAR(64) NOT NULL,
	public_key BINARY(32) NOT NULL,
	created_by BINARY(16),
	created_at BIGINT NOT NULL,
	expires_at BIGINT,
	revoked_at BIGINT,
	used_at BIGINT,
	UNIQUE KEY by_hash (hash),
	KEY by_account (account)
);

-- One row per version. `active_name` makes the name unique among versions that new jobs may use.
-- The health of a key: `fails` in a row, the last of them at `failed_at` with `fail_error`; from some
-- number on it is sick until `open_until`, then one job at a time tries it, until `probe_until`.
-- `limited_until`: its provider asked for so much patience. `health_at`: since when it is as it is.
CREATE TABLE provider_key (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	name VARCHAR(64) NOT NULL,
	provider VARCHAR(32) NOT NULL,
	version INT UNSIGNED NOT NULL,
	state VARCHAR(8) NOT NULL,
	data_key BINARY(16) NOT NULL,
	blob_bytes VARBINARY(8192) NOT NULL,
	fingerprint CHAR(8) NOT NULL,
	is_default TINYINT NOT NULL DEFAULT 0,
	rank_no INT UNSIGNED NOT NULL DEFAULT 0,
	created_at BIGINT NOT NULL,
	used_at BIGINT,
	failed_at BIGINT,
	fails INT UNSIGNED NOT NULL DEFAULT 0,
	fail_error VARCHAR(32),
	open_until BIGINT,
	probe_until BIGINT,
	limited_until BIGINT,
	health_at BIGINT NOT NULL,
	active_name VARCHAR(64) AS (IF(state = 'active', name, NULL)) PERSISTENT,
	UNIQUE KEY by_name (account, active_name),
	KEY by_state (state)
);

CREATE TABLE usage_day (
	account BINARY(16) NOT NULL,
	day DATE NOT NULL,
	n INT UNSIGNED NOT NULL,
	PRIMARY KEY (account, day),
	KEY by_day (day)
);

CREATE TABLE address_day (
	address BINARY(16) NOT NULL,
	day DATE NOT NULL,
	kind VARCHAR(8) NOT NULL,
	n INT UNSIGNED NOT NULL,
	PRIMARY KEY (address, day, kind),
	KEY by_day (day)
);

-- Processes that drive jobs. A dead one's jobs are claimed.
CREATE TABLE process (
	id BINARY(16) NOT NULL PRIMARY KEY,
	node VARCHAR(64) NOT NULL,
	pid INT UNSIGNED NOT NULL,
	beat_at BIGINT NOT NULL,
	dead TINYINT NOT NULL DEFAULT 0,
	KEY by_pid (node, pid)
);

-- `idem_at` finds the few jobs whose idempotency key is to be forgotten.
CREATE TABLE job (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	token BINARY(16) NOT NULL,
	driver BINARY(16),
	fence INT UNSIGNED NOT NULL,
	state VARCHAR(10) NOT NULL,
	outcome VARCHAR(16),
	exit_code SMALLINT,
	error VARCHAR(32),
	error_detail VARCHAR(200),
	provider VARCHAR(32),
	key_name VARCHAR(64),
	word VARCHAR(32) NOT NULL,
	timeout_s INT UNSIGNED NOT NULL,
	free_mb BIGINT,
	idem_key BINARY(32),
	fingerprint BINARY(32),
	cancel_at BIGINT,
	created_at BIGINT NOT NULL,
	started_at BIGINT,
	ended_at BIGINT,
	queue_ms INT UNSIGNED,
	create_ms INT UNSIGNED,
	upload_ms INT UNSIGNED,
	run_ms INT UNSIGNED,
	stop_ms INT UNSIGNED,
	own_ms INT UNSIGNED,
	round_trips INT UNSIGNED,
	stdout_bytes BIGINT UNSIGNED,
	stderr_bytes BIGINT UNSIGNED,
	peak_mb INT UNSIGNED,
	oom_kills INT UNSIGNED,
	oom_suspected TINYINT,
	idem_at BIGINT AS (IF(idem_key IS NULL, NULL, created_at)) PERSISTENT,
	UNIQUE KEY by_idem (account, idem_key),
	KEY by_idem_age (idem_at),
	KEY by_account (account, id),
	KEY by_word (account, word, ended_at),
	KEY by_end (ended_at),
	KEY by_state (state, driver)
);

-- Every attempt to create a sandbox at a provider, written before the attempt. `error_detail` is of a
-- create that failed; `rate_micros` is what it costs by the price known then, in millionths of a dollar
-- an hour.
CREATE TABLE sandbox (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	job BINARY(16) NOT NULL,
	attempt INT UNSIGNED NOT NULL,
	provider_key BINARY(16) NOT NULL,
	provider VARCHAR(32) NOT NULL,
	key_name VARCHAR(64) NOT NULL,
	mark VARCHAR(63) NOT NULL,
	provider_id VARCHAR(128),
	state VARCHAR(8) NOT NULL,
	error VARCHAR(32),
	error_detail VARCHAR(200),
	warnings VARCHAR(400),
	created_at BIGINT NOT NULL,
	create_ms INT UNSIGNED,
	waited_ms INT UNSIGNED,
	rate_micros BIGINT UNSIGNED,
	ends_at BIGINT NOT NULL,
	stop_tries INT UNSIGNED NOT NULL DEFAULT 0,
	next_try_at BIGINT,
	tried_by BINARY(16),
	stopped_at BIGINT,
	UNIQUE KEY by_mark (mark),
	UNIQUE KEY by_attempt (job, attempt),
	KEY by_key (provider_key, state),
	KEY by_account (account, key_name),
	KEY by_age (created_at),
	KEY by_work (state, next_try_at)
);

CREATE TABLE result (
	job BINARY(16) NOT NULL PRIMARY KEY,
	token BINARY(16) NOT NULL,
	sealed MEDIUMBLOB NOT NULL,
	expires_at BIGINT NOT NULL,
	KEY by_expiry (expires_at),
	KEY by_token (token)
);

-- What the free plan and check_memory leave behind: numbers and one word.
CREATE TABLE check_log (
	id BINARY(16) NOT NULL PRIMARY KEY,
	account BINARY(16) NOT NULL,
	kind VARCHAR(13) NOT NULL,
	word VARCHAR(32) NOT NULL,
	status VARCHAR(8) NOT NULL,
	verdict VARCHAR(9) NOT NULL,
	provider VARCHAR(32),
	free_mb BIGINT,
	total_mb BIGINT,
	need_mb BIGINT,
	at BIGINT NOT NULL,
	KEY by_account (account, at),
	KEY by_time (at)
);

-- One row per account and day, made again from the rows by the keeper.
CREATE TABLE day_sum (
	account BINARY(16) NOT NULL,
	day DATE NOT NULL,
	checks INT UNSIGNED NOT NULL,
	jobs INT UNSIGNED NOT NULL,
	failed INT UNSIGNED NOT NULL,
	run_ms BIGINT UNSIGNED NOT NULL,
	PRIMARY KEY (account, day),
	KEY by_day (day)
);

-- Actions on tokens, keys and accounts, in the transaction of the action; chained by hash. seq is
-- account.changes: counting it locks the account's row, so actions of one account come one by one.
CREATE TABLE audit (
	account BINARY(16) NOT NULL,
	seq BIGINT UNSIGNED NOT NULL,
	token BINARY(16),
	action VARCHAR(32) NOT NULL,
	object VARCHAR(80) NOT NULL,
	at BIGINT NOT NULL,
	hash BINARY(32) NOT NULL,
	PRIMARY KEY (account, seq),
	KEY by_time (at)
);

-- Duties that one keeper at a time does for a key: sweeps.
CREATE TABLE duty (
	name VARCHAR(64) NOT NULL PRIMARY KEY,
	next_at BIGINT NOT NULL
);
