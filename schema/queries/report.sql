-- check_memory and weekly_report.

-- CHECK_LOG_ADD (id, account, kind, word, status, verdict, provider, free_mb, total_mb, need_mb, at) change again
INSERT IGNORE INTO check_log (id, account, kind, word, status, verdict, provider, free_mb, total_mb, need_mb, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- A run that ended in an OOM kill counts twice its peak: the peak is only the limit it hit.
-- PEAKS_OF_WORD (account, word) rows
SELECT peak_mb * IF(oom_kills > 0, 2, 1) FROM job WHERE account = ? AND word = ? AND ended_at IS NOT NULL
AND peak_mb IS NOT NULL ORDER BY ended_at DESC LIMIT 50

-- REPORT_CHECKS (account, since) rows
SELECT kind, status, verdict, COUNT(*) FROM check_log WHERE account = ? AND at >= ? GROUP BY kind, status, verdict

-- REPORT_WOULD (account, since) rows
SELECT word, COUNT(*) AS n FROM check_log WHERE account = ? AND at >= ? AND kind = 'would_offload'
GROUP BY word ORDER BY n DESC, word LIMIT 10

-- REPORT_JOBS (account, since) rows
SELECT provider, outcome, COUNT(*), SUM(COALESCE(run_ms, 0)), SUM(COALESCE(oom_suspected, 0)) FROM job
WHERE account = ? AND ended_at >= ? GROUP BY provider, outcome ORDER BY provider, outcome
