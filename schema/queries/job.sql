-- Jobs and their sandboxes. Every move of a job names its driver and fence.

-- JOB_CREATE (id, account, token, driver, provider, key_name, word, timeout_s, free_mb, idem_key, fingerprint, created_at) change
INSERT INTO job (id, account, token, driver, fence, state, provider, key_name, word, timeout_s, free_mb, idem_key,
	fingerprint, created_at)
VALUES (?, ?, ?, ?, 1, 'creating', ?, ?, ?, ?, ?, ?, ?, ?)

-- JOB_BY_IDEM (account, idem_key) rows
SELECT id, fingerprint, token FROM job WHERE account = ? AND idem_key = ?

-- JOB_CHOSE (provider, key_name, id, driver, fence) change again
UPDATE job SET provider = ?, key_name = ? WHERE id = ? AND driver = ? AND fence = ? AND state <> 'ended'

-- JOB_CREATED (queue_ms, create_ms, id, driver, fence) change again
UPDATE job SET state = 'uploading', queue_ms = ?, create_ms = ? WHERE id = ? AND driver = ? AND fence = ?
AND state = 'creating'

-- JOB_UPLOADED (upload_ms, id, driver, fence) change again
UPDATE job SET state = 'uploaded', upload_ms = ? WHERE id = ? AND driver = ? AND fence = ? AND state = 'uploading'

-- JOB_RUNNING (started_at, id, driver, fence) change again
UPDATE job SET state = 'running', started_at = ? WHERE id = ? AND driver = ? AND fence = ? AND state = 'uploaded'

-- JOB_END (outcome, exit_code, error, error_detail, ended_at, run_ms, own_ms, round_trips, out, err, peak, oom, suspected, keep_idem, id, driver, fence) change
UPDATE job SET state = 'ended', outcome = ?, exit_code = ?, error = ?, error_detail = ?, ended_at = ?, run_ms = ?,
	own_ms = ?, round_trips = ?, stdout_bytes = ?, stderr_bytes = ?, peak_mb = ?, oom_kills = ?,
	oom_suspected = ?, idem_key = IF(? = 1, idem_key, NULL)
WHERE id = ? AND driver = ? AND fence = ? AND state <> 'ended'

-- JOB_STOPPED (stop_ms, own_ms, round_trips, id) change again
UPDATE job SET stop_ms = ?, own_ms = ?, round_trips = ? WHERE id = ? AND state = 'ended'

-- RESULT_PUT (job, token, sealed, expires_at) change again
INSERT IGNORE INTO result (job, token, sealed, expires_at) VALUES (?, ?, ?, ?)

-- RESULT_GET (job, token, now) rows
SELECT sealed FROM result WHERE job = ? AND token = ? AND expires_at > ?

-- JOB_CANCEL (at, id, account) change again
UPDATE job SET cancel_at = ? WHERE id = ? AND account = ? AND state <> 'ended' AND cancel_at IS NULL

-- JOBS_CANCELLED (account) rows
SELECT id FROM job WHERE account = ? AND cancel_at IS NOT NULL AND state IN ('uploaded', 'running') LIMIT 1000

-- JOB_HELD (id) rows
SELECT driver, fence, state, cancel_at FROM job WHERE id = ?

-- JOB_GET (id, account) rows
SELECT id, token, state, outcome, exit_code, error, error_detail, provider, key_name, word, timeout_s, cancel_at,
	created_at, started_at, ended_at, queue_ms, create_ms, upload_ms, run_ms, stop_ms, own_ms, round_trips,
	stdout_bytes, stderr_bytes, peak_mb, oom_kills, oom_suspected
FROM job WHERE id = ? AND account = ?

-- JOB_LIST (account, before, limit) rows
SELECT id, token, state, outcome, exit_code, error, error_detail, provider, key_name, word, timeout_s, cancel_at,
	created_at, started_at, ended_at, queue_ms, create_ms, upload_ms, run_ms, stop_ms, own_ms, round_trips,
	stdout_bytes, stderr_bytes, peak_mb, oom_kills, oom_suspected
FROM job WHERE account = ? AND id < ? ORDER BY id DESC LIMIT ?

-- JOBS_ENDED_SINCE (since) rows
SELECT id FROM job WHERE ended_at >= ? LIMIT 5000

-- Jobs without a living driver. Keepers may read the same rows: the claim decides.
-- JOBS_ORPHANED (limit) rows
SELECT j.id, j.fence, j.account FROM job j LEFT JOIN process p ON p.id = j.driver
WHERE j.state IN ('creating', 'uploading', 'uploaded', 'running')
AND (j.driver IS NULL OR p.id IS NULL OR p.dead = 1) LIMIT ?

-- JOB_CLAIM (driver, id, fence) change
UPDATE job SET driver = ?, fence = fence + 1 WHERE id = ? AND fence = ? AND state <> 'ended'

-- JOB_CLAIMED (id, driver) rows
SELECT account, token, fence, state, timeout_s, created_at, started_at, cancel_at, provider, key_name
FROM job WHERE id = ? AND driver = ?

-- JOB_GIVE_UP (id, driver, fence) change again
UPDATE job SET driver = NULL WHERE id = ? AND driver = ? AND fence = ? AND state IN ('uploaded', 'running')

-- SANDBOX_INTENT (id, account, job, attempt, provider_key, provider, key_name, mark, created_at, rate_micros, ends_at) change
INSERT INTO sandbox (id, account, job, attempt, provider_key, provider, key_name, mark, state, created_at, rate_micros,
	ends_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'intent', ?, ?, ?)

-- SANDBOX_RUNNING (provider_id, create_ms, waited_ms, warnings, id) change again
UPDATE sandbox SET state = 'running', provider_id = ?, create_ms = ?, waited_ms = ?, warnings = ?
WHERE id = ? AND state = 'intent'

-- SANDBOX_FAILED (state, error, error_detail, create_ms, waited_ms, next_try_at, id) change again
UPDATE sandbox SET state = ?, error = ?, error_detail = ?, create_ms = ?, waited_ms = ?, next_try_at = ?
WHERE id = ? AND state = 'intent'

-- SANDBOX_FOUND (provider_id, id) change again
UPDATE sandbox SET provider_id = ?, state = 'stopping' WHERE id = ? AND state IN ('intent', 'unsure')

-- SANDBOX_ABSENT (stopped_at, id) change again
UPDATE sandbox SET state = 'absent', stopped_at = ? WHERE id = ? AND state IN ('intent', 'unsure')

-- SANDBOX_STOPPING (next_try_at, id) change again
UPDATE sandbox SET state = 'stopping', next_try_at = ? WHERE id = ? AND state = 'running'

-- SANDBOX_STOPPED (stopped_at, id) change again
UPDATE sandbox SET state = 'stopped', stopped_at = ? WHERE id = ? AND state IN ('running', 'stopping')

-- One keeper takes one try: the number of tries so far is part of the claim.
-- SANDBOX_TRY (next_try_at, process, id, tries) change
UPDATE sandbox SET stop_tries = stop_tries + 1, next_try_at = ?, tried_by = ? WHERE id = ? AND stop_tries = ?
AND state IN ('intent', 'unsure', 'running', 'stopping')

-- The error of a failed create stays.
-- SANDBOX_TRY_FAILED (error, next_try_at, id, tries) change again
UPDATE sandbox SET error = IF(error_detail IS NULL, ?, error), next_try_at = ?, tried_by = NULL
WHERE id = ? AND stop_tries = ?
AND state IN ('intent', 'unsure', 'running', 'stopping')

-- SANDBOX_RAN_OUT (stopped_at, error, id) change again
UPDATE sandbox SET state = 'stopped', stopped_at = ?, error = IF(error_detail IS NULL, ?, error) WHERE id = ?
AND state IN ('intent', 'unsure', 'running', 'stopping')

-- SANDBOXES_OF_JOB (job) rows
SELECT id, attempt, provider_key, provider, key_name, mark, provider_id, state, error, create_ms, ends_at, stop_tries,
	warnings, stopped_at, created_at, error_detail, waited_ms, rate_micros
FROM sandbox WHERE job = ? ORDER BY attempt

-- Sandboxes whose end is still to be confirmed and whose job needs them no more. A try ends with the process that took
-- it, so that nothing is billed for the rest of a dead keeper's claim: `dead_now` is later by the longest try.
-- SANDBOXES_TO_STOP (now, dead_now, grace, limit) rows
SELECT s.id, s.account, s.provider_key, s.provider, s.mark, s.provider_id, s.state, s.stop_tries, s.ends_at, s.created_at
FROM sandbox s JOIN job j ON j.id = s.job LEFT JOIN process p ON p.id = s.tried_by
WHERE s.state IN ('intent', 'unsure', 'running', 'stopping')
AND (COALESCE(s.next_try_at, 0) <= ? OR (s.tried_by IS NOT NULL AND (p.id IS NULL OR p.dead = 1) AND s.next_try_at <= ?))
AND (s.state = 'stopping' OR (j.state = 'ended' AND j.ended_at <= ?)) LIMIT ?

-- SANDBOX_BY_MARK (mark) rows
SELECT s.id, s.state, s.created_at, j.state FROM sandbox s JOIN job j ON j.id = s.job WHERE s.mark = ?

-- SANDBOX_LOST_AND_FOUND (provider_id, next_try_at, id) change
UPDATE sandbox SET state = 'stopping', provider_id = ?, next_try_at = ? WHERE id = ? AND state IN ('absent', 'stopped')

-- PROCESS_START (id, node, pid, beat_at) change again
INSERT IGNORE INTO process (id, node, pid, beat_at) VALUES (?, ?, ?, ?)

-- A process that was taken for dead in silence comes back to life: its fences tell which jobs it lost.
-- PROCESS_BEAT (beat_at, id) change again
UPDATE process SET beat_at = ?, dead = 0 WHERE id = ?

-- PROCESS_DEAD (node, pid) change again
UPDATE process SET dead = 1 WHERE node = ? AND pid = ? AND dead = 0

-- PROCESS_ENDED (id) change again
UPDATE process SET dead = 1 WHERE id = ? AND dead = 0

-- PROCESSES_SILENT (since) change again
UPDATE process SET dead = 1 WHERE dead = 0 AND beat_at < ?

-- PROCESSES_DELETE (before) change again
DELETE FROM process WHERE dead = 1 AND beat_at < ? AND NOT EXISTS (SELECT 1 FROM job j WHERE j.driver = process.id
AND j.state <> 'ended')

-- IDEM_EXPIRE (before) change again
UPDATE job SET idem_key = NULL, fingerprint = NULL WHERE idem_at < ? LIMIT 1000

-- RESULTS_EXPIRE (now) change again
DELETE FROM result WHERE expires_at <= ? LIMIT 1000

-- JOBS_EXPIRE (before) change again
DELETE FROM job WHERE ended_at < ? AND state = 'ended' AND NOT EXISTS (SELECT 1 FROM sandbox s WHERE s.job = job.id
AND s.state IN ('intent', 'unsure', 'running', 'stopping')) ORDER BY ended_at LIMIT 1000

-- SANDBOXES_EXPIRE (before) change again
DELETE FROM sandbox WHERE created_at < ? AND state IN ('absent', 'stopped') ORDER BY created_at LIMIT 1000

-- CHECKS_EXPIRE (before) change again
DELETE FROM check_log WHERE at < ? ORDER BY at LIMIT 1000

-- USAGE_EXPIRE (before_day) change again
DELETE FROM usage_day WHERE day < ? LIMIT 1000

-- ADDRESSES_EXPIRE (before_day) change again
DELETE FROM address_day WHERE day < ? LIMIT 1000

-- SUMS_EXPIRE (before_day) change again
DELETE FROM day_sum WHERE day < ? LIMIT 1000

-- AUDIT_EXPIRE (before) change again
DELETE FROM audit WHERE at < ? ORDER BY at LIMIT 1000

-- JOB_COUNTS () rows
SELECT state, COUNT(*) FROM job WHERE state <> 'ended' GROUP BY state

-- A duty of which nobody thought for so long has no key any more.
-- DUTIES_EXPIRE (before) change again
DELETE FROM duty WHERE next_at < ?

-- DUTY_TAKE (next_at, name, now) change
UPDATE duty SET next_at = ? WHERE name = ? AND next_at <= ?

-- DUTY_CREATE (name, next_at) change again
INSERT IGNORE INTO duty (name, next_at) VALUES (?, ?)

-- SUM_DAY (day, from_ms, to_ms, from2, to2, from3, to3) change again
INSERT INTO day_sum (account, day, checks, jobs, failed, run_ms)
SELECT a.id, ?, (SELECT COUNT(*) FROM check_log c WHERE c.account = a.id AND c.at >= ? AND c.at < ?) AS checks,
	COALESCE(j.jobs, 0), COALESCE(j.failed, 0), COALESCE(j.run_ms, 0)
FROM account a LEFT JOIN (SELECT account, COUNT(*) AS jobs, SUM(outcome <> 'succeeded') AS failed,
	SUM(COALESCE(run_ms, 0)) AS run_ms FROM job WHERE ended_at >= ? AND ended_at < ? GROUP BY account) j
	ON j.account = a.id
WHERE j.jobs > 0 OR EXISTS (SELECT 1 FROM check_log c WHERE c.account = a.id AND c.at >= ? AND c.at < ?)
ON DUPLICATE KEY UPDATE checks = VALUES(checks), jobs = VALUES(jobs), failed = VALUES(failed), run_ms = VALUES(run_ms)
