-- Schedules that jobs share. A text is "not yet looked at" until a pass has seen it; then the schedule is active, or parked
-- if it cannot be used. Schedule states are found in the same way by ScheduleStatus.derive (store/state.go).
--
-- The next_run is the first one of its jobs in v_upcoming: a job that is paused, parked, disabled or not planned yet has none.
-- A schedule that is active is not paused, so a pause of schedules holds none of its jobs. All these times are read once, by a window
-- of an expression: see v_jobs.
CREATE VIEW dbjobs.v_schedules AS
SELECT f.id, f.owner, f.name, f.description, f.rule, f.zone, f.nonexistent, f.ambiguous, f.calendar, f.on_holiday, f.state,
  CASE f.state WHEN 'paused' THEN a.reason WHEN 'parked' THEN f.fault END AS why,
  CASE WHEN f.state = 'active' THEN n.next_run END AS next_run,
  f.jobs, a.scope AS paused_scope, a.paused_by, a.since AS paused_since, a.until_at AS paused_until, f.manifest, f.created_at, f.changed_at
FROM (
  SELECT c.id, c.owner, c.name, c.description, c.rule, c.zone, c.nonexistent, c.ambiguous, c.calendar, c.on_holiday, c.fault, c.jobs, c.pause_id,
    c.manifest, c.created_at, c.changed_at,
    CASE WHEN c.pause_id IS NOT NULL THEN 'paused' WHEN c.fault IS NOT NULL THEN 'parked' WHEN c.stale = 1 THEN 'not yet looked at' ELSE 'active' END AS state
  FROM (
    SELECT x.id, x.owner, x.name, x.description, x.rule, x.zone, x.nonexistent, x.ambiguous, x.calendar, x.on_holiday, x.manifest, x.created_at,
      x.changed_at, CASE WHEN @x_stale THEN 1 ELSE 0 END AS stale, @schedule_fault AS fault,
      (SELECT COUNT(*) FROM dbjobs.job_schedules l WHERE l.schedule_id = x.id) AS jobs,
      (SELECT p.id FROM dbjobs.pauses p WHERE p.scope IN ('all', 'schedule') AND (p.scope = 'all' OR p.subject_id = x.id)
        AND p.resumed_at IS NULL AND p.ends_at > @clock ORDER BY p.ends_at DESC, p.id DESC LIMIT 1) AS pause_id
    FROM dbjobs.schedules x WHERE x.name IS NOT NULL AND @visible(x.owner)) AS c) AS f
LEFT JOIN dbjobs.pauses a ON a.id = f.pause_id
LEFT JOIN (
  SELECT u.schedule_id, u.next_run FROM (
    SELECT t.schedule_id, t.next_run, ROW_NUMBER() OVER (PARTITION BY t.schedule_id + 0 ORDER BY t.next_run) AS place FROM (
      SELECT l.schedule_id, CASE WHEN p.skips IS NULL THEN p.next_run ELSE @after_skips END AS next_run
      FROM dbjobs.job_schedules l JOIN dbjobs.plans p ON p.job_id = l.job_id JOIN dbjobs.jobs j ON j.id = l.job_id
      LEFT JOIN (
        SELECT q.subject_id, ROW_NUMBER() OVER (PARTITION BY q.subject_id + 0 ORDER BY q.id) AS place
        FROM dbjobs.pauses q WHERE q.scope = 'job' AND q.resumed_at IS NULL AND q.ends_at > @clock) AS d ON d.subject_id = j.id
      WHERE d.subject_id IS NULL AND j.removed_at IS NULL AND j.enabled = @true AND p.next_run IS NOT NULL AND (p.parked IS NULL OR p.parked = '') AND NOT @edited
        AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope IN ('owner', 'tag') AND p.resumed_at IS NULL AND p.ends_at > @clock
          AND (p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag))) AS t
    WHERE t.next_run IS NOT NULL) AS u
  WHERE u.place = 1) AS n ON n.schedule_id = f.id
;
