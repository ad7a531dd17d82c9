-- Accounts, data keys, tokens, usage.

-- ACCOUNT_CREATE (id, plan, created_at) change
INSERT INTO account (id, plan, created_at) VALUES (?, ?, ?)

-- ACCOUNT_PLAN (account) rows
SELECT plan, state FROM account WHERE id = ?

-- ACCOUNT_ROUTING (account) rows
SELECT plan, created_at, strategy, fallback FROM account WHERE id = ?

-- ACCOUNT_SET_ROUTING (strategy, fallback, account) change again
UPDATE account SET strategy = COALESCE(?, strategy), fallback = COALESCE(?, fallback) WHERE id = ?

-- The number of this job among all that take turns. A repeat leaves one turn out.
-- ACCOUNT_TURN (account) change again
UPDATE account SET turn = LAST_INSERT_ID(turn + 1) WHERE id = ?

-- ACCOUNT_SET_PLAN (plan, account) change again
UPDATE account SET plan = ? WHERE id = ? AND state = 'active'

-- ACCOUNT_LIST (limit) rows
SELECT a.id, a.plan, a.state, a.created_at,
	(SELECT COUNT(*) FROM token t WHERE t.account = a.id AND t.revoked_at IS NULL)
FROM account a ORDER BY a.created_at DESC LIMIT ?

-- ACCOUNT_DELETING (account) change again
UPDATE account SET state = 'deleting' WHERE id = ?

-- ACCOUNTS_DELETING () rows
SELECT id FROM account WHERE state = 'deleting' LIMIT 100

-- ACCOUNT_LIVE_SANDBOXES (account) rows
SELECT COUNT(*) FROM sandbox WHERE account = ? AND state IN ('intent', 'unsure', 'running', 'stopping')

-- ACCOUNT_LIVE_JOBS (account) rows
SELECT COUNT(*) FROM job WHERE account = ? AND state <> 'ended'

-- ACCOUNT_ERASE_DATA_KEYS (account) change again
DELETE FROM data_key WHERE account = ?

-- ACCOUNT_ERASE_KEYS (account) change again
DELETE FROM provider_key WHERE account = ?

-- ACCOUNT_ERASE_TOKENS (account) change again
DELETE FROM token WHERE account = ?

-- ACCOUNT_ERASE_RESULTS (account) change again
DELETE r FROM result r JOIN job j ON j.id = r.job WHERE j.account = ?

-- ACCOUNT_ERASE_SANDBOXES (account) change again
DELETE FROM sandbox WHERE account = ?

-- ACCOUNT_ERASE_JOBS (account) change again
DELETE FROM job WHERE account = ?

-- ACCOUNT_ERASE_CHECKS (account) change again
DELETE FROM check_log WHERE account = ?

-- ACCOUNT_ERASE_USAGE (account) change again
DELETE FROM usage_day WHERE account = ?

-- ACCOUNT_ERASE_SUMS (account) change again
DELETE FROM day_sum WHERE account = ?

-- ACCOUNT_ERASE (account) change again
DELETE FROM account WHERE id = ?

-- DATA_KEY_CREATE (id, account, master_key, wrapped, created_at) change
INSERT INTO data_key (id, account, master_key, wrapped, created_at) VALUES (?, ?, ?, ?, ?)

-- DATA_KEY_NEWEST (account) rows
SELECT id, wrapped, seals FROM data_key WHERE account = ? ORDER BY created_at DESC LIMIT 1

-- DATA_KEY_OLDEST (account) rows
SELECT id, wrapped, seals FROM data_key WHERE account = ? ORDER BY created_at, id LIMIT 1

-- DATA_KEY_GET (id, account) rows
SELECT wrapped FROM data_key WHERE id = ? AND account = ?

-- DATA_KEY_COUNT_SEAL (id, account) change
UPDATE data_key SET seals = seals + 1 WHERE id = ? AND account = ?

-- DATA_KEYS_NOT_UNDER (master_key) rows
SELECT id, account, wrapped, master_key FROM data_key WHERE master_key <> ? LIMIT 1000

-- DATA_KEY_REWRAP (new_master, wrapped, id, old_master) change again
UPDATE data_key SET master_key = ?, wrapped = ? WHERE id = ? AND master_key = ?

-- MASTER_KEYS_IN_USE () rows
SELECT master_key, COUNT(*) FROM data_key GROUP BY master_key

-- TOKEN_CREATE (id, account, kind, hash, last4, name, public_key, created_by, created_at, expires_at) change
INSERT INTO token (id, account, kind, hash, last4, name, public_key, created_by, created_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- TOKEN_BY_HASH (hash) rows
SELECT t.id, t.account, t.kind, t.expires_at, t.revoked_at, t.used_at, a.plan, a.state
FROM token t JOIN account a ON a.id = t.account WHERE t.hash = ?

-- TOKEN_USED (at, id, at_hour) change again
UPDATE token SET used_at = ? WHERE id = ? AND (used_at IS NULL OR used_at < ?)

-- TOKEN_LIST (account) rows
SELECT id, kind, name, last4, created_at, expires_at, used_at FROM token
WHERE account = ? AND revoked_at IS NULL ORDER BY created_at LIMIT 1000

-- TOKEN_PUBLIC (id, account) rows
SELECT public_key, revoked_at FROM token WHERE id = ? AND account = ?

-- TOKEN_KIND (id, account) rows
SELECT kind FROM token WHERE id = ? AND account = ? AND revoked_at IS NULL

-- TOKEN_REVOKE_AGENT (at, id, account) change again
UPDATE token SET revoked_at = ? WHERE id = ? AND account = ? AND revoked_at IS NULL AND kind = 'agent'

-- The number of this change; the account's row stays locked until the transaction ends, so two
-- revocations can not both see the other's owner token alive.
-- ACCOUNT_CHANGE (account) change
UPDATE account SET changes = LAST_INSERT_ID(changes + 1) WHERE id = ?

-- TOKEN_REVOKE_OWNER (at, id, account, account2, id2, now) change again
UPDATE token SET revoked_at = ? WHERE id = ? AND account = ? AND revoked_at IS NULL AND kind = 'owner'
AND EXISTS (SELECT 1 FROM (SELECT id FROM token WHERE account = ? AND kind = 'owner' AND revoked_at IS NULL
	AND id <> ? AND (expires_at IS NULL OR expires_at > ?)) other)

-- TOKEN_RESULTS_DELETE (token) change again
DELETE FROM result WHERE token = ?

-- TOKEN_JOBS_CANCEL (at, token, account) change again
UPDATE job SET cancel_at = ? WHERE token = ? AND account = ? AND state <> 'ended' AND cancel_at IS NULL

-- Counts and checks in one statement: the counter stands still at the limit, and a call that changed no
-- row was refused.
-- USAGE_COUNT (account, day, limit) change
INSERT INTO usage_day (account, day, n) VALUES (?, ?, LAST_INSERT_ID(1))
ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + (n < ?))

-- USAGE_GIVE_BACK (account, day) change
UPDATE usage_day SET n = n - 1 WHERE account = ? AND day = ? AND n > 0

-- USAGE_TODAY (account, day) rows
SELECT n FROM usage_day WHERE account = ? AND day = ?

-- ADDRESS_COUNT (address, day, kind, limit) change
INSERT INTO address_day (address, day, kind, n) VALUES (?, ?, ?, LAST_INSERT_ID(1))
ON DUPLICATE KEY UPDATE n = LAST_INSERT_ID(n + (n < ?))

-- ADDRESS_GIVE_BACK (address, day, kind) change
UPDATE address_day SET n = n - 1 WHERE address = ? AND day = ? AND kind = ? AND n > 0

-- ADDRESS_TODAY (address, day, kind) rows
SELECT n FROM address_day WHERE address = ? AND day = ? AND kind = ?

-- AUDIT_HASH (account, seq) rows
SELECT hash FROM audit WHERE account = ? AND seq = ?

-- AUDIT_ADD (account, seq, token, action, object, at, hash) change
INSERT INTO audit (account, seq, token, action, object, at, hash) VALUES (?, ?, ?, ?, ?, ?, ?)

-- AUDIT_LIST (account, limit) rows
SELECT seq, token, action, object, at, hash FROM audit WHERE account = ? ORDER BY seq LIMIT ?

-- ACCOUNT_JOBS_CANCEL (at, account) change again
UPDATE job SET cancel_at = ? WHERE account = ? AND state <> 'ended' AND cancel_at IS NULL

-- ACCOUNT_RESULTS_DELETE (account) change again
DELETE r FROM result r JOIN token t ON t.id = r.token WHERE t.account = ?
