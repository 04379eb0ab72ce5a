-- Runs, each with its job. A run that a pause holds shows that before a pass has recorded it. A queued run is held only by a freeze: in
-- another pause it may be taken until a pass has seen the pause.
-- The table is in a subquery, as in other views, so that MariaDB and MySQL do not let anybody write by a view. The pauses are asked for
-- where the one row of the installation is joined (h), not in the list of columns: MySQL makes a whole table of a view that has a
-- subquery there, and so the newest ten runs would cost all of them.
CREATE VIEW dbjobs.v_runs AS
SELECT r.id, r.job_id, j.owner, j.name AS job, r.number, r.occurrence, r.state,
  CASE WHEN h.id IS NOT NULL THEN 'pause' ELSE r.held_by END AS held_by,
  r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end, r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses,
  r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at, r.finished_at, r.settled_at, r.error
FROM (SELECT * FROM dbjobs.runs) AS r
LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
LEFT JOIN dbjobs.installation h ON h.id = 1 AND r.started_at IS NULL AND r.state IN ('waiting', 'queued')
  AND (r.state = 'waiting' AND r.job_id IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.resumed_at IS NULL AND p.ends_at > @clock AND p.subject_id IS NOT NULL)
    OR (SELECT COUNT(*) FROM dbjobs.pauses p WHERE p.scope IN ('all', 'owner', 'tag') AND p.resumed_at IS NULL AND p.ends_at > @clock
      AND (p.scope = 'all' OR r.state = 'waiting' AND (p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag))) > 0)
WHERE @visible(j.owner)
;
