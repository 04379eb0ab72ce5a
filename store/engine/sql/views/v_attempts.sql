-- Attempts of steps, each with its run and its job, and with what the step answered: its output, and how many rows it changed.
CREATE VIEW dbjobs.v_attempts AS
SELECT a.run_id, r.job_id, j.owner, j.name AS job, r.number AS run_number, r.state AS run_state, a.number, a.step, a.step_name, a.attempt, a.state,
  a.fence, a.holder, a.started_at, a.finished_at, a.rows_affected, a.output, a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint
FROM (SELECT * FROM dbjobs.attempts) AS a
JOIN dbjobs.runs r ON r.id = a.run_id
LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @visible(j.owner)
;
