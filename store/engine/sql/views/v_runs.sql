-- Runs, each with its job. A run that a pause holds shows that before a pass has recorded it.
-- The table is in a subquery, as in other views, so that MariaDB and MySQL do not let anybody write by a view.
CREATE VIEW dbjobs.v_runs AS
SELECT r.id, r.job_id, j.owner, j.name AS job, r.number, r.occurrence, r.state,
  CASE WHEN r.started_at IS NULL AND r.state IN ('waiting', 'queued') AND (SELECT COUNT(*) FROM dbjobs.pauses p
      WHERE p.scope IN ('all', 'job', 'owner', 'tag') AND p.resumed_at IS NULL AND p.ends_at > @clock
      AND (p.scope = 'all' OR p.scope = 'job' AND p.subject_id = r.job_id OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag)) > 0
    THEN 'pause' ELSE r.held_by END AS held_by,
  r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end, r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses,
  r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at, r.finished_at, r.settled_at, r.error
FROM (SELECT * FROM dbjobs.runs) AS r
LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @visible(j.owner)
;
