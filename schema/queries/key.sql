-- Provider keys.

-- KEY_ADD (id, account, name, provider, version, data_key, blob, fingerprint, place, created_at, health_at) change
INSERT INTO provider_key (id, account, name, provider, version, state, data_key, blob_bytes, fingerprint, rank_no,
	created_at, health_at)
VALUES (?, ?, ?, ?, ?, 'active', ?, ?, ?, ?, ?, ?)

-- KEY_ACTIVE (account, name) rows
SELECT id, provider, version, is_default, rank_no FROM provider_key WHERE account = ? AND active_name = ?

-- KEY_RETIRE (state, id, account) change again
UPDATE provider_key SET state = ?, is_default = 0 WHERE id = ? AND account = ? AND state = 'active'

-- KEY_NAME_RETIRE (account, name) change again
UPDATE provider_key SET state = 'deleting' WHERE account = ? AND name = ? AND state = 'old'

-- KEYS_CLEAR_DEFAULT (account) change
UPDATE provider_key SET is_default = 0 WHERE account = ? AND is_default = 1

-- KEY_SET_DEFAULT (account, name) change
UPDATE provider_key SET is_default = 1 WHERE account = ? AND active_name = ? AND is_default = 0

-- KEY_PLACE (place, account, name) change again
UPDATE provider_key SET rank_no = ? WHERE account = ? AND active_name = ?

-- KEYS_OF_ACCOUNT (account) rows
SELECT id, name, provider, version, fingerprint, is_default, rank_no, created_at, used_at, failed_at, fails, fail_error,
	open_until, probe_until, limited_until, health_at
FROM provider_key WHERE account = ? AND state = 'active' ORDER BY is_default DESC, rank_no, created_at, id LIMIT 200

-- Any version: a living sandbox may need an old one.
-- KEY_BLOB (id, account) rows
SELECT name, provider, version, data_key, blob_bytes, state FROM provider_key WHERE id = ? AND account = ?

-- Assignments happen in the order in which they are written: each reads what those before it left.
-- KEY_USED (sick_fails, at, used_at, id, account) change again
UPDATE provider_key SET health_at = IF(used_at IS NULL OR fails >= ?, ?, health_at), used_at = ?, fails = 0,
	open_until = NULL, probe_until = NULL, limited_until = NULL WHERE id = ? AND account = ?

-- KEY_FAILED (sick_fails, at, failed_at, error, sick_fails2, at2, pause, sick_fails3, most, id, account) change
UPDATE provider_key SET fails = fails + 1, health_at = IF(fails = ?, ?, health_at), failed_at = ?, fail_error = ?,
	open_until = IF(fails < ?, NULL, ? + LEAST(? << LEAST(fails - ?, 10), ?)), probe_until = NULL
WHERE id = ? AND account = ?

-- KEY_LIMITED (until, id, account, until2) change again
UPDATE provider_key SET limited_until = ? WHERE id = ? AND account = ? AND COALESCE(limited_until, 0) < ?

-- One job at a time tries a sick key whose pause is over.
-- KEY_PROBE (until, id, account, sick_fails, now, now2) change
UPDATE provider_key SET probe_until = ? WHERE id = ? AND account = ? AND fails >= ? AND open_until <= ?
AND COALESCE(probe_until, 0) <= ?

-- The newest sandboxes that were made with keys of this name.
-- KEY_CREATES (account, name, provider, limit) rows
SELECT create_ms FROM sandbox WHERE account = ? AND key_name = ? AND provider = ? AND provider_id IS NOT NULL
AND create_ms IS NOT NULL ORDER BY id DESC LIMIT ?

-- KEY_RATES_SET (rates, at, id, account) change again
UPDATE provider_key SET rates = ?, rates_at = ? WHERE id = ? AND account = ? AND state = 'active'

-- KEYS_RATES (account) rows
SELECT id, rates, rates_at FROM provider_key WHERE account = ? AND state = 'active' AND rates IS NOT NULL LIMIT 200

-- KEY_JOBS_CANCEL (at, account, name) change again
UPDATE job SET cancel_at = ? WHERE account = ? AND key_name = ? AND state <> 'ended' AND cancel_at IS NULL

-- Versions that no living sandbox needs any more.
-- KEYS_DROP_UNUSED () change again
DELETE FROM provider_key WHERE state IN ('old', 'deleting') AND NOT EXISTS
	(SELECT 1 FROM sandbox s WHERE s.provider_key = provider_key.id
	AND s.state IN ('intent', 'unsure', 'running', 'stopping'))

-- KEYS_TO_SWEEP (since) rows
SELECT DISTINCT k.id, k.account, k.provider FROM provider_key k JOIN sandbox s ON s.provider_key = k.id
WHERE s.created_at > ? AND k.state IN ('active', 'old', 'deleting') LIMIT 1000
