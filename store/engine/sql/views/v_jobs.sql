-- Jobs that are not removed, each with its state, why it has that, and the facts of its plan. JobStatus.derive
-- (store/state.go) finds the state in the same way: TestViewsSayWhatCommandsSay holds one against the other.
--
-- The windows are of expressions (+ 0), not of columns: there, MariaDB would plan to look up the part of each job, and a server of
-- 10.11.19 stops for good where somebody stops the query at that moment: TestViewsCanBeStopped.
CREATE VIEW dbjobs.v_jobs AS
SELECT s.id, s.owner, s.name, s.description, s.state,
  CASE s.state WHEN 'paused' THEN a.reason WHEN 'parked' THEN s.parked
    WHEN 'disabled' THEN s.last_reason WHEN 'aborted' THEN s.last_reason
    ELSE CASE WHEN s.streak > 0 THEN s.last_error END END AS why,
  CASE WHEN s.changed = 1 OR s.pause_id IS NOT NULL OR s.enabled = @false OR s.left_pause = 1 THEN NULL ELSE s.next_run END AS next_run,
  s.stale, s.last_run_id, s.last_state, s.last_scheduled_for, s.last_finished_at, s.last_success_at, s.last_error, s.streak,
  CASE WHEN s.streak > 0 AND s.enabled = @true AND s.known = 0 THEN 1 ELSE 0 END AS failing,
  s.cycles, s.runs_made, s.runs_open, s.runs_running, s.decided_through, s.parked,
  a.scope AS paused_scope, a.paused_by, a.since AS paused_since, a.until_at AS paused_until,
  s.enabled, s.queue, s.priority, s.group_name, s.tags, s.rule, s.zone, s.manifest, s.created_at
FROM (
  SELECT f.id, f.owner, f.name, f.description, f.enabled, f.queue, f.priority, f.group_name, f.tags, f.rule, f.zone, f.manifest, f.created_at,
    f.next_run, f.stale AS changed, f.decided_through, f.parked, f.last_run_id, f.last_state, f.last_scheduled_for, f.last_finished_at, f.last_success_at,
    f.last_error, f.streak, f.cycles, f.runs_made, f.runs_open, f.runs_running, f.pause_id, f.known, f.left_pause, f.last_reason,
    CASE WHEN f.stale = 1 AND f.enabled = @true AND (f.ends = 1 OR f.on_startup = @true) THEN 1 ELSE 0 END AS stale,
    CASE WHEN f.runs_running > 0 THEN 'running'
      WHEN f.enabled = @false AND f.last_action = 'abort' THEN 'aborted'
      WHEN f.enabled = @false THEN 'disabled'
      WHEN f.pause_id IS NOT NULL THEN 'paused'
      WHEN f.parked <> '' THEN 'parked'
      WHEN f.last_action = 'resume' AND (f.last_finished_at IS NULL OR f.last_action_at > f.last_finished_at) THEN 'resumed'
      WHEN f.runs_open > 0 OR f.next_run IS NOT NULL AND (f.stale = 0 OR f.ends = 1) THEN 'sleeping'
      WHEN f.ends = 1 AND f.stale = 0 AND f.decided_through IS NOT NULL AND f.on_startup = @false AND f.others = 0 THEN 'finished'
      ELSE 'enabled' END AS state
  FROM (
    SELECT j.id, j.owner, j.name, j.description, j.enabled, j.queue, j.priority, j.group_name, j.tags, j.on_startup, j.manifest, j.created_at,
      o.rule, o.zone, p.decided_through, p.parked, p.last_run_id, p.last_state, p.last_scheduled_for, p.last_finished_at,
      p.last_success_at, p.last_error, COALESCE(p.streak, 0) AS streak, COALESCE(p.cycles, 0) AS cycles, COALESCE(p.runs_made, 0) AS runs_made,
      CASE WHEN p.skips IS NULL OR p.next_run IS NULL THEN p.next_run ELSE @after_skips END AS next_run,
      (SELECT COUNT(*) FROM dbjobs.runs @by_open WHERE @open = j.id) AS runs_open,
      (SELECT COUNT(*) FROM dbjobs.runs @by_open WHERE @open = j.id AND state = 'running') AS runs_running,
      (SELECT l.action FROM dbjobs.changes l @by_defined WHERE @defined = j.id AND @of_state ORDER BY l.id DESC LIMIT 1) AS last_action,
      (SELECT l.changed_at FROM dbjobs.changes l @by_defined WHERE @defined = j.id AND @of_state ORDER BY l.id DESC LIMIT 1) AS last_action_at,
      (SELECT l.reason FROM dbjobs.changes l @by_defined WHERE @defined = j.id AND @of_state ORDER BY l.id DESC LIMIT 1) AS last_reason,
      (SELECT COUNT(*) FROM dbjobs.job_after b WHERE b.job_id = j.id) AS others,
      CASE WHEN o.id IS NOT NULL OR j.repeat_after_ms IS NOT NULL OR (SELECT COUNT(*) FROM dbjobs.job_schedules l
          JOIN dbjobs.schedules c ON c.id = l.schedule_id WHERE l.job_id = j.id AND c.name IS NOT NULL) > 0 THEN 1 ELSE 0 END AS ends,
      CASE WHEN @edited THEN 1 ELSE 0 END AS stale,
      CASE WHEN p.next_run IN (SELECT u.until_at FROM dbjobs.pauses u WHERE @stale AND u.resumed_at IS NOT NULL) -- for most jobs, this is all
        AND p.next_run IN (SELECT p.until_at FROM dbjobs.pauses p WHERE @stale AND p.resumed_at IS NOT NULL AND (p.scope = 'all'
          OR p.scope = 'job' AND p.subject_id = j.id OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag
          OR p.scope = 'schedule' AND p.subject_id IN (SELECT l.schedule_id FROM dbjobs.job_schedules l WHERE l.job_id = j.id))) THEN 1 ELSE 0 END AS left_pause,
      (SELECT q.id FROM dbjobs.pauses q WHERE q.id = COALESCE(
          CASE WHEN w.id IS NULL THEN d.id WHEN d.id IS NULL OR d.ends_at < w.ends_at OR d.ends_at = w.ends_at AND d.id < w.id THEN w.id ELSE d.id END,
          CASE WHEN o.id IS NULL THEN e.id END)) AS pause_id,
      CASE WHEN d.known = 1 OR w.known = 1 OR o.id IS NULL AND e.id IS NOT NULL THEN 1 ELSE 0 END AS known
    FROM dbjobs.jobs j
    LEFT JOIN dbjobs.plans p ON p.job_id = j.id
    LEFT JOIN dbjobs.schedules o ON o.job_id = j.id
    LEFT JOIN (
      SELECT t.subject_id, t.id, t.ends_at, t.known FROM (
        SELECT p.subject_id, p.id, p.ends_at, ROW_NUMBER() OVER (PARTITION BY p.subject_id + 0 ORDER BY p.ends_at DESC, p.id DESC) AS place,
          MAX(CASE WHEN p.paused_by <> 'dbjobs itself' THEN 1 ELSE 0 END) OVER (PARTITION BY p.subject_id + 0) AS known
        FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.resumed_at IS NULL AND p.ends_at > @clock) AS t
      WHERE t.place = 1) AS d ON d.subject_id = j.id
    LEFT JOIN (
      SELECT t.job_id, t.id, t.ends_at, t.known FROM (
        SELECT j.id AS job_id, p.id, p.ends_at, ROW_NUMBER() OVER (PARTITION BY j.id + 0 ORDER BY p.ends_at DESC, p.id DESC) AS place,
          MAX(CASE WHEN p.scope <> 'all' THEN 1 ELSE 0 END) OVER (PARTITION BY j.id + 0) AS known
        FROM dbjobs.pauses p JOIN dbjobs.jobs j ON p.scope = 'all' OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag
        WHERE p.scope IN ('all', 'owner', 'tag') AND p.resumed_at IS NULL AND p.ends_at > @clock) AS t
      WHERE t.place = 1) AS w ON w.job_id = j.id
    LEFT JOIN (
      SELECT t.job_id, t.id FROM (
        SELECT l.job_id, p.id, ROW_NUMBER() OVER (PARTITION BY l.job_id + 0 ORDER BY p.ends_at, p.id DESC) AS place
        FROM dbjobs.pauses p JOIN dbjobs.job_schedules l ON l.schedule_id = p.subject_id
        WHERE p.scope = 'schedule' AND p.resumed_at IS NULL AND p.ends_at > @clock) AS t
      WHERE t.place = 1 AND (SELECT COUNT(*) FROM dbjobs.job_schedules l JOIN dbjobs.schedules c ON c.id = l.schedule_id
        WHERE l.job_id = t.job_id AND c.name IS NOT NULL AND c.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p
          WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > @clock)) = 0) AS e ON e.job_id = j.id
    WHERE j.removed_at IS NULL AND @visible(j.owner)) AS f) AS s
LEFT JOIN dbjobs.pauses a ON a.id = s.pause_id
;
