-- Attempts that failed, or whose process was lost, each with its run and its job, and with all that the engine said of the error;
-- and runs that failed or were lost, and whose last attempt is not on record, or no attempt that failed: these have no number and
-- no step. The statements failures and failures_of_runs find the same: TestViewsSayWhatCommandsSay holds one against the other.
--
-- The outer SELECT is for a barrier of MariaDB: a LIMIT behind UNION ALL does not keep conditions of the caller out.
CREATE VIEW dbjobs.v_errors AS
SELECT * FROM (
  SELECT a.run_id, r.job_id, j.owner, j.name AS job, r.number AS run_number, r.state AS run_state, a.number, a.step, a.step_name, a.attempt, a.state,
    a.started_at, a.finished_at, a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, a.holder,
    (SELECT COUNT(*) FROM dbjobs.attempts o WHERE o.run_id = a.run_id AND o.number > a.number) AS later_attempts
  FROM (SELECT * FROM dbjobs.attempts) AS a
  JOIN dbjobs.runs r ON r.id = a.run_id
  LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
  WHERE a.state IN ('failed', 'lost') AND @visible(j.owner)
  UNION ALL
  SELECT r.id, r.job_id, j.owner, j.name, r.number, r.state, NULL, NULL, NULL, r.attempt, r.state,
    r.started_at, r.finished_at, r.error, NULL, NULL, NULL, NULL, NULL, r.holder, 0
  FROM dbjobs.runs r
  LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
  WHERE @unwell IN ('failed', 'lost') AND @visible(j.owner)
    AND (NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.state IN ('failed', 'lost'))
      OR NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number >= r.attempts))
) AS e
;
