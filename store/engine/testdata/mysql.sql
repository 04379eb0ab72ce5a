-- Every statement as mysql is sent it, made from the files in sql by
-- `go test ./store -run TestStatements -update`. Do not edit.

-- name: accounted_gaps
-- arguments: each_ids, from
SELECT g.job_id, g.schedule_id, g.from_at, g.through_at, g.reason FROM dbjobs_gaps g WHERE g.job_id IN (each_) AND g.through_at > ?
ORDER BY g.job_id, g.schedule_id, g.from_at;

-- name: accounted_rules
-- arguments: each_ids
SELECT r.job_id, r.schedule_id, r.rule, r.ends, r.since FROM dbjobs_plan_rules r WHERE r.job_id IN (each_) AND r.rule <> '' ORDER BY r.job_id, r.schedule_id;

-- name: accounted_runs
-- arguments: each_ids, from
SELECT r.job_id, r.scheduled_for FROM dbjobs_runs r WHERE r.job_id IN (each_) AND r.occurrence LIKE 'at:%' AND r.scheduled_for > ?;

-- name: advance
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', version BIGINT PATH '$.version', next_run DATETIME(6) PATH '$.next_run', decided_through DATETIME(6) PATH '$.decided_through', parked LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.parked', last_scheduled_for DATETIME(6) PATH '$.last_scheduled_for',
  last_run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.last_run_id', last_state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.last_state', last_finished_at DATETIME(6) PATH '$.last_finished_at', last_success_at DATETIME(6) PATH '$.last_success_at', last_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.last_error', streak INT PATH '$.streak',
  cycles BIGINT PATH '$.cycles', runs_made BIGINT PATH '$.runs_made', startup_ids LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.startup_ids', repeat_from DATETIME(6) PATH '$.repeat_from', skips LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.skips')) AS d
STRAIGHT_JOIN dbjobs_plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.next_run = d.next_run, p.decided_through = d.decided_through, p.parked = d.parked,
  p.last_scheduled_for = d.last_scheduled_for, p.last_run_id = d.last_run_id, p.last_state = d.last_state,
  p.last_finished_at = d.last_finished_at, p.last_success_at = d.last_success_at, p.last_error = d.last_error,
  p.streak = d.streak, p.cycles = d.cycles, p.runs_made = d.runs_made, p.startup_ids = d.startup_ids, p.repeat_from = d.repeat_from, p.skips = d.skips,
  p.version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END;

-- name: advance_due
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', version BIGINT PATH '$.version', next_run DATETIME(6) PATH '$.next_run', last_scheduled_for DATETIME(6) PATH '$.last_scheduled_for')) AS d
STRAIGHT_JOIN dbjobs_plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.next_run = d.next_run, p.decided_through = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), p.last_scheduled_for = d.last_scheduled_for,
  p.runs_made = p.runs_made + 1, p.version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END;

-- name: attempts
-- arguments: id, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, a.output FROM dbjobs_attempts a WHERE a.run_id = ? ORDER BY a.number DESC LIMIT ?;

-- name: back_off
-- arguments: now, later_ms, run_error, id, fence, holder, number
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND), lease_until = NULL, error = ?
WHERE id = ? AND fence = ? AND holder = ? AND state = 'running' AND attempts = ?;

-- name: batch_ends
-- arguments: each_ids
SELECT e.id, e.job_id, e.meets, e.after_job_id, e.run_id, CASE WHEN (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN 1 ELSE 0 END,
  CASE WHEN a.job_id IS NULL OR r.id IS NULL AND j.id IS NOT NULL OR r.state NOT IN ('waiting', 'queued', 'running') AND NOT (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN 1 ELSE 0 END,
  CASE WHEN (SELECT m.id FROM dbjobs_runs m WHERE m.job_id = e.job_id AND m.occurrence = CONCAT('all:', e.meets)) IS NULL THEN 0 ELSE 1 END,
  (SELECT COUNT(*) FROM dbjobs_job_after o WHERE o.job_id = e.job_id), j.name, r.interval_start, r.interval_end, r.args
FROM (SELECT DISTINCT job_id, meets FROM dbjobs_job_ends WHERE seen = 0 AND job_id IN (each_)) AS n
JOIN dbjobs_job_ends e ON e.job_id = n.job_id AND e.meets = n.meets
LEFT JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
LEFT JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
LEFT JOIN dbjobs_jobs j ON j.id = e.after_job_id
ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: batch_followers
-- arguments: each_ids
SELECT a.after_job_id, j.id, j.queue, j.priority, a.on_end,
  (SELECT COUNT(*) FROM dbjobs_job_after o WHERE o.job_id = a.job_id),
  CASE WHEN j.max_runs <= (SELECT p.runs_made FROM dbjobs_plans p WHERE p.job_id = j.id) THEN 1 ELSE 0 END
FROM dbjobs_job_after a CROSS JOIN dbjobs_jobs j
WHERE a.after_job_id IN (each_) AND j.id = a.job_id AND j.removed_at IS NULL AND j.enabled = 1 ORDER BY a.after_job_id, j.id;

-- name: batch_inputs
-- arguments: each_ids
SELECT id, owner, name, created_at, changed_at, plan_input, CASE WHEN stale = 1 THEN COALESCE(planned, '') END,
  CASE WHEN (SELECT a.job_id FROM dbjobs_job_after a WHERE a.job_id = dbjobs_jobs.id LIMIT 1) IS NULL THEN 0 ELSE 1 END
FROM dbjobs_jobs WHERE id IN (each_) ORDER BY id;

-- name: batch_jobs
-- arguments: each_ids
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, j.plan_input FROM dbjobs_jobs j WHERE j.id IN (each_) ORDER BY j.id;

-- name: batch_links
-- arguments: each_ids, each_ids
SELECT l.job_id, l.schedule_id, CASE WHEN l.planned <> l.schedule_id THEN NULL ELSE l.created_at END, CASE WHEN l.planned = l.schedule_id THEN 1 ELSE 0 END,
  1, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (each_)
UNION ALL
SELECT s.job_id, s.id, s.created_at, 1, 0, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs_schedules s
WHERE s.job_id IN (each_) AND (SELECT l.job_id FROM dbjobs_job_schedules l WHERE l.job_id = s.job_id AND l.schedule_id = s.id) IS NULL;

-- name: batch_pauses
-- arguments: each_ids, since, since
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p FORCE INDEX (pauses_subject) WHERE p.scope = 'job' AND p.subject_id IN (each_) AND p.ends_at > ?
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p FORCE INDEX (pauses_ends) WHERE p.scope IN ('all', 'owner', 'schedule', 'tag') AND p.ends_at > ? ORDER BY 1;

-- name: batch_plans
-- arguments: each_ids, whatever, up_to
SELECT job_id, owner, version, next_run, decided_through, parked, last_scheduled_for, last_run_id, last_state, last_finished_at,
  last_success_at, last_error, streak, cycles, runs_made, startup_ids, repeat_from, skips, (SELECT r.number FROM dbjobs_runs r FORCE INDEX (runs_number) WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1)
FROM dbjobs_plans p WHERE job_id IN (each_) AND (? = 1 OR next_run <= ?) ORDER BY job_id FOR UPDATE SKIP LOCKED;

-- name: batch_rules
-- arguments: each_ids
SELECT r.job_id, r.schedule_id, r.input, r.rule, r.ends, r.changed_at,
  CASE WHEN r.rule <> '' AND (l.planned = r.schedule_id OR l.job_id IS NULL AND s.job_id = r.job_id) AND s.plan_input = r.input THEN 1 ELSE 0 END
FROM dbjobs_plan_rules r
LEFT JOIN dbjobs_job_schedules l ON l.job_id = r.job_id AND l.schedule_id = r.schedule_id
LEFT JOIN dbjobs_schedules s ON s.id = r.schedule_id
WHERE r.job_id IN (each_) ORDER BY r.job_id, r.schedule_id;

-- name: batch_runs
-- arguments: each_ids
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = r.job_id LIMIT 1) FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id IN (each_) ORDER BY open_job_id, id;

-- name: batch_started
-- arguments: each_ids, occurrence
SELECT job_id FROM dbjobs_runs WHERE job_id IN (each_) AND occurrence = ?;

-- name: batch_steps
-- arguments: each_ids
SELECT job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure
FROM dbjobs_steps WHERE job_id IN (each_) ORDER BY job_id, position;

-- name: begin_attempt
-- arguments: id, number, step, step_name, attempt, fence, holder, now
INSERT INTO dbjobs_attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)));

-- name: begin_attempts
-- arguments: now, rows
INSERT INTO dbjobs_attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
SELECT d.run_id, d.number, d.step, d.step_name, d.attempt, d.fence, d.holder, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id', number INT PATH '$.number', step INT PATH '$.step', step_name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.step_name', attempt INT PATH '$.attempt', fence INT PATH '$.fence',
  holder LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.holder')) AS d;

-- name: brief_users
-- arguments: id
SELECT l.job_id FROM dbjobs_job_schedules l CROSS JOIN dbjobs_jobs j
WHERE l.schedule_id = ? AND j.id = l.job_id AND j.remove_when_done = 1 AND j.removed_at IS NULL ORDER BY l.job_id;

-- name: bury_runs
-- arguments: rows, now, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.state', was LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.was', lease DATETIME(6) PATH '$.lease', expires_at DATETIME(6) PATH '$.expires_at', error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.error')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND r.settled_at IS NULL
SET r.state = d.state, r.held_by = NULL, r.lease_until = NULL, r.cancel_at = NULL, r.finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), r.settled_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)),
  r.expires_at = d.expires_at, r.error = COALESCE(d.error, r.error);

-- name: calendar_users
SELECT calendar, COUNT(*) FROM dbjobs_schedules WHERE calendar <> '' GROUP BY calendar;

-- name: calendars
SELECT name, working_days, days, description, manifest, CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_calendars ORDER BY name;

-- name: calendars_named
-- arguments: each_ids
SELECT name, working_days, days, description, manifest, CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_calendars WHERE name IN (each_);

-- name: cancellable
-- arguments: job
SELECT id FROM dbjobs_runs FORCE INDEX (runs_open) WHERE open_job_id = ? AND state IN ('waiting', 'queued', 'running') ORDER BY id FOR UPDATE;

-- name: catalogue
SELECT t.table_name FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_name LIKE 'dbjobs%'
UNION SELECT s.index_name FROM information_schema.statistics s WHERE s.table_schema = DATABASE() AND s.table_name LIKE 'dbjobs%'
UNION SELECT r.routine_name FROM information_schema.routines r WHERE r.routine_schema = DATABASE() AND r.routine_name LIKE 'dbjobs%';

-- name: changes
-- arguments: kind, kind, subject, subject, id, limit
SELECT changed_at, changed_by, kind, COALESCE(subject_id, 0), subject, action, reason, was, became FROM dbjobs_changes
WHERE (? = '' OR kind = ?) AND (? = '' OR subject = ? OR subject_id = ?) ORDER BY id DESC LIMIT ?;

-- name: circles
-- arguments: each_ids, each_ids
WITH RECURSIVE up (id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (each_)
  UNION
  SELECT up.id, a.after_job_id FROM up JOIN dbjobs_job_after a ON a.job_id = up.after_id WHERE up.after_id <> up.id
)
SELECT id, after_id, 1, 0, 0 FROM up WHERE after_id = id
UNION ALL
SELECT a.job_id, a.after_job_id, 0,
  CASE WHEN (SELECT o.id FROM dbjobs_jobs o WHERE o.id = a.after_job_id) IS NULL THEN 1 ELSE 0 END,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END
FROM dbjobs_job_after a WHERE a.job_id IN (each_);

-- name: coming_jobs
-- arguments: each_ids, overdue, until, limit
SELECT p.job_id FROM dbjobs_plans p
WHERE p.owner IN (each_) AND p.next_run > ? AND p.next_run < ? AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1 ORDER BY p.next_run, p.job_id LIMIT ?;

-- name: connections
SHOW GLOBAL STATUS LIKE 'Threads_connected';

-- name: contents_jobs
SELECT COUNT(*) FROM dbjobs_jobs WHERE removed_at IS NULL;

-- name: contents_runs
SELECT COUNT(*), COUNT(CASE WHEN state = 'running' THEN 1 END) FROM dbjobs_runs;

-- name: contents_schedules
SELECT COUNT(*) FROM dbjobs_schedules WHERE job_id IS NULL;

-- name: count_ahead
-- arguments: now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms
SELECT COUNT(DISTINCT u.job_id), MAX(u.until_at) FROM (
  SELECT p.job_id, CASE WHEN p.decided_through > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN p.decided_through
    ELSE (SELECT MAX(r.wake_at) FROM dbjobs_runs r WHERE r.job_id = p.job_id AND (r.wake_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND))) END AS until_at
  FROM dbjobs_plans p WHERE p.decided_through > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR p.job_id IN (SELECT r.job_id FROM dbjobs_runs r WHERE (r.wake_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)))
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p FORCE INDEX (pauses_ends)
  JOIN dbjobs_jobs j ON p.scope = 'all' OR p.scope = 'owner' AND j.owner = p.subject OR p.scope = 'tag' AND JSON_SEARCH(j.tags, 'one', REPLACE(REPLACE(REPLACE(p.subject, '|', '||'), '%', '|%'), '_', '|_'), '|') IS NOT NULL
  WHERE p.scope IN ('tag', 'owner', 'all') AND p.ends_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (p.resumed_at IS NOT NULL OR p.since > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p FORCE INDEX (pauses_ends) JOIN dbjobs_jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.ends_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (p.resumed_at IS NOT NULL OR p.since > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p FORCE INDEX (pauses_ends)
  JOIN dbjobs_job_schedules l ON l.schedule_id = p.subject_id JOIN dbjobs_jobs j ON j.id = l.job_id
  WHERE p.scope = 'schedule' AND p.ends_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (p.resumed_at IS NOT NULL OR p.since > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)) AND j.removed_at IS NULL
  UNION ALL
  SELECT p.job_id, j.created_at FROM dbjobs_jobs j JOIN dbjobs_plans p ON p.job_id = j.id
  WHERE j.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND j.removed_at IS NULL AND DATE_ADD(p.next_run, INTERVAL 1 SECOND) > j.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs_schedules s JOIN dbjobs_plans p ON p.job_id = s.job_id
  WHERE s.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND DATE_ADD(p.next_run, INTERVAL 1 SECOND) > s.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs_schedules s JOIN dbjobs_job_schedules l ON l.schedule_id = s.id JOIN dbjobs_plans p ON p.job_id = l.job_id
  WHERE s.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND DATE_ADD(p.next_run, INTERVAL 1 SECOND) > s.created_at
  UNION ALL
  SELECT j.id, j.not_before FROM dbjobs_jobs j WHERE j.start_rule IS NOT NULL AND j.not_before > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (SELECT CASE WHEN l.changed_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l FORCE INDEX (changes_subject) WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.was, '$.not_before')), '') <> COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.became, '$.not_before')), '')) ORDER BY l.id DESC LIMIT 1) = 1 AND j.removed_at IS NULL
) u;

-- name: count_jobs
SELECT COUNT(*) FROM dbjobs_jobs WHERE live_name IS NOT NULL;

-- name: count_paused
-- arguments: now, now, now, now, now, now, now, now
SELECT COUNT(*) FROM (
  SELECT j.id FROM dbjobs_pauses p JOIN dbjobs_jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND j.removed_at IS NULL
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs_pauses p WHERE p.scope IN ('all', 'owner') AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) LIMIT 1) x CROSS JOIN dbjobs_jobs j
  WHERE j.removed_at IS NULL AND (EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) OR j.owner IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))))
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) LIMIT 1) x CROSS JOIN dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t
  WHERE j.removed_at IS NULL AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1
  UNION
  SELECT j.id FROM dbjobs_pauses p JOIN dbjobs_job_schedules k ON k.schedule_id = p.subject_id JOIN dbjobs_jobs j ON j.id = k.job_id
  WHERE p.scope = 'schedule' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND j.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id)
    AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules c ON c.id = l.schedule_id WHERE l.job_id = j.id AND c.name IS NOT NULL
      AND c.id NOT IN (SELECT q.subject_id FROM dbjobs_pauses q WHERE q.scope = 'schedule' AND q.subject_id IS NOT NULL AND q.resumed_at IS NULL AND q.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))))
) u;

-- name: count_paused_itself
-- arguments: now, now, now, now, now
SELECT u.jobs, j.owner, j.name FROM (
  SELECT COUNT(DISTINCT p.job_id) AS jobs, MIN(p.job_id) AS id FROM dbjobs_pauses i FORCE INDEX (pauses_ends) JOIN dbjobs_plans p ON p.job_id = i.subject_id
  WHERE i.scope = 'job' AND i.paused_by = 'dbjobs itself' AND i.resumed_at IS NULL AND i.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1) u
JOIN dbjobs_jobs j ON j.id = u.id;

-- name: created_ahead
-- arguments: job, job, now, later_ms, now, later_ms, now, later_ms, now, later_ms, now, later_ms
SELECT j.id, j.owner, j.name FROM dbjobs_jobs j
WHERE (j.id = ? OR ? = 0) AND j.removed_at IS NULL AND (j.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR j.start_rule IS NOT NULL AND j.not_before > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (SELECT CASE WHEN l.changed_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l FORCE INDEX (changes_subject) WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.was, '$.not_before')), '') <> COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.became, '$.not_before')), '')) ORDER BY l.id DESC LIMIT 1) = 1
  OR j.id IN (SELECT s.job_id FROM dbjobs_schedules s WHERE s.job_id IS NOT NULL AND s.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND))
  OR j.id IN (SELECT l.job_id FROM dbjobs_schedules s JOIN dbjobs_job_schedules l ON l.schedule_id = s.id WHERE s.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)))
ORDER BY j.id;

-- name: crowd_queue
-- arguments: job, times, queue, queue
SELECT COUNT(*), MAX(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END) FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id = ? AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT ? THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN ? WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END = ?;

-- name: crowd_runs
-- arguments: job, times, queue, from, to, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = r.job_id LIMIT 1) FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id = ? AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT ? THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN ? WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END BETWEEN ? AND ?
ORDER BY r.created_at, r.id LIMIT ?;

-- name: date_calendar
-- arguments: now, name
UPDATE dbjobs_schedules SET changed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE calendar = ? AND calendar <> '';

-- name: date_own_rules
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule', zone LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.zone', nonexistent LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.nonexistent', ambiguous LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.ambiguous', calendar LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.calendar',
  on_holiday LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_holiday')) AS d
STRAIGHT_JOIN dbjobs_schedules s FORCE INDEX (PRIMARY) ON s.id = d.id
  AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous
    OR s.calendar <> d.calendar OR s.on_holiday <> d.on_holiday)
SET s.changed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6));

-- name: delete_after
-- arguments: each_ids
DELETE FROM dbjobs_job_after WHERE job_id IN (each_);

-- name: delete_attempts
-- arguments: each_ids
DELETE FROM dbjobs_attempts WHERE run_id IN (each_);

-- name: delete_calendar
-- arguments: name
DELETE FROM dbjobs_calendars WHERE name = ?;

-- name: delete_changes
-- arguments: each_ids
DELETE FROM dbjobs_changes WHERE id IN (each_);

-- name: delete_ends
-- arguments: rows
DELETE e FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id')) AS d
STRAIGHT_JOIN dbjobs_job_ends e FORCE INDEX (PRIMARY) ON e.id = d.id AND e.run_id = d.run_id;

-- name: delete_first_attempts
-- arguments: id, through
DELETE FROM dbjobs_attempts WHERE run_id = ? AND number <= ?;

-- name: delete_gaps
-- arguments: rows
DELETE g FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id',
  through_at DATETIME(6) PATH '$.through_at', reason VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason')) AS d
STRAIGHT_JOIN dbjobs_gaps g FORCE INDEX (PRIMARY)
ON g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.through_at AND g.reason = d.reason;

-- name: delete_links
-- arguments: rows
DELETE l FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id')) AS d
STRAIGHT_JOIN dbjobs_job_schedules l FORCE INDEX (PRIMARY) ON l.job_id = d.job_id AND l.schedule_id = d.schedule_id;

-- name: delete_lost_links
-- arguments: each_ids
DELETE FROM dbjobs_job_schedules
WHERE job_id IN (each_) AND (SELECT s.id FROM dbjobs_schedules s WHERE s.id = dbjobs_job_schedules.schedule_id) IS NULL;

-- name: delete_pauses
-- arguments: each_ids, now, later_ms
DELETE FROM dbjobs_pauses WHERE id IN (each_) AND ends_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND);

-- name: delete_runs
-- arguments: each_ids
DELETE FROM dbjobs_runs WHERE id IN (each_) AND settled_at IS NOT NULL;

-- name: delete_schedule
-- arguments: id
DELETE FROM dbjobs_schedules WHERE id = ?;

-- name: delete_steps
-- arguments: each_ids
DELETE FROM dbjobs_steps WHERE job_id IN (each_);

-- name: delete_ticks
-- arguments: through, now, later_ms
DELETE FROM dbjobs_ticks WHERE since <= ? AND last_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND);

-- name: drop_attempts
-- arguments: rows
DELETE a FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', fence INT PATH '$.fence', number INT PATH '$.number')) AS d
STRAIGHT_JOIN dbjobs_attempts a FORCE INDEX (PRIMARY) ON a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: drop_gaps_ahead
-- arguments: each_ids, now
DELETE FROM dbjobs_gaps WHERE job_id IN (each_) AND from_at >= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6));

-- name: drop_ticks_ahead
-- arguments: now, later_ms
DELETE FROM dbjobs_ticks WHERE since > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND);

-- name: durations
-- arguments: most
SELECT r.job_id, r.started_at, r.finished_at FROM dbjobs_plans p STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (runs_number)
WHERE r.job_id = p.job_id AND r.number > p.runs_made - ? AND r.state = 'succeeded' AND r.started_at IS NOT NULL AND r.finished_at IS NOT NULL;

-- name: edited_since
-- arguments: job, at
SELECT l.was FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = ? AND l.action = 'change'
AND l.changed_at > ? ORDER BY l.id LIMIT 1;

-- name: enable_job
-- arguments: enabled, now, id
UPDATE dbjobs_jobs SET enabled = ?, changed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE id = ? AND removed_at IS NULL;

-- name: end_attempt
-- arguments: state, now, waited_ms, now, waited_ms, rows, error, code, line, severity, detail, hint, output, result, id, number, fence
UPDATE dbjobs_attempts SET state = ?, finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), started_at = CASE WHEN ? > 0 THEN LEAST(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), DATE_ADD(started_at, INTERVAL 1000 * ? MICROSECOND)) ELSE started_at END, rows_affected = ?, error = ?, error_code = ?,
  error_line = ?, error_severity = ?, error_detail = ?, error_hint = ?, output = ?, result = ?
WHERE run_id = ? AND number = ? AND fence = ? AND state = 'running';

-- name: end_attempts
-- arguments: rows, now, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', fence INT PATH '$.fence', number INT PATH '$.number', state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.state', rows_affected BIGINT PATH '$.rows_affected', error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.error',
  code LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.code', line INT PATH '$.line', severity LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.severity', detail LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.detail', hint LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.hint', output LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.output',
  result LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.result', waited_ms BIGINT PATH '$.waited_ms')) AS d
STRAIGHT_JOIN dbjobs_attempts a FORCE INDEX (PRIMARY) ON a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running'
SET a.state = d.state, a.finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)),
  a.started_at = CASE WHEN d.waited_ms > 0 THEN LEAST(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), DATE_ADD(a.started_at, INTERVAL 1000 * d.waited_ms MICROSECOND)) ELSE a.started_at END, a.rows_affected = d.rows_affected, a.error = d.error, a.error_code = d.code,
  a.error_line = d.line, a.error_severity = d.severity, a.error_detail = d.detail, a.error_hint = d.hint,
  a.output = d.output, a.result = d.result;

-- name: end_gaps_now
-- arguments: now, each_ids, now
UPDATE dbjobs_gaps SET through_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE job_id IN (each_) AND through_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6));

-- name: end_idle_pauses
-- arguments: now, resumed_by, each_ids, now
UPDATE dbjobs_pauses SET resumed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), resumed_by = ? WHERE id IN (each_) AND resumed_at IS NULL AND ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND (
  scope = 'job' AND (SELECT j.id FROM dbjobs_jobs j WHERE j.id = dbjobs_pauses.subject_id AND j.removed_at IS NULL) IS NULL
  OR scope = 'schedule' AND (SELECT s.id FROM dbjobs_schedules s WHERE s.id = dbjobs_pauses.subject_id) IS NULL);

-- name: end_own
-- arguments: id, fence, number, final, step, step_name, holder, lease_ms, waited_ms, rows, error, run_error, output, result, now
CALL dbjobs_end_own(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_pauses
-- arguments: now, resumed_by, scope, each_ids, now
UPDATE dbjobs_pauses SET resumed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), resumed_by = ?
WHERE scope = ? AND subject_id IN (each_) AND resumed_at IS NULL AND ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6));

-- name: end_queued
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.error')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND state = 'queued'
SET r.state = 'failed', r.finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), r.error = d.error;

-- name: engine
SELECT VERSION();

-- name: enlist
-- arguments: ids
INSERT INTO dbjobs_plans (job_id, owner)
SELECT i.id, COALESCE((SELECT j.owner FROM dbjobs_jobs j WHERE j.id = i.id), CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)) FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$')) AS i
WHERE (SELECT p.job_id FROM dbjobs_plans p WHERE p.job_id = i.id) IS NULL
ON DUPLICATE KEY UPDATE job_id = dbjobs_plans.job_id;

-- name: enlist_groups
-- arguments: each_ids
INSERT INTO dbjobs_group_plans (name)
SELECT name FROM dbjobs_groups WHERE name IN (each_) ORDER BY name
ON DUPLICATE KEY UPDATE name = dbjobs_group_plans.name;

-- name: examine_after
-- arguments: limit
SELECT f.job_id, NULL, NULL, COUNT(*) FROM dbjobs_job_after f JOIN dbjobs_jobs l ON l.id = f.job_id AND l.removed_at IS NULL
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = f.after_job_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)) GROUP BY f.job_id ORDER BY f.job_id LIMIT ?;

-- name: examine_attempts
-- arguments: limit
SELECT r.job_id, MIN(a.started_at), MIN(CAST(a.run_id AS CHAR(36))), COUNT(*)
FROM dbjobs_attempts a LEFT JOIN dbjobs_runs r ON r.id = a.run_id
WHERE r.id IS NULL OR a.number > r.attempts OR a.state = 'running' AND r.settled_at IS NOT NULL
GROUP BY r.job_id ORDER BY r.job_id LIMIT ?;

-- name: examine_calendars
-- arguments: limit
SELECT s.job_id, NULL, s.calendar, COUNT(*) FROM dbjobs_schedules s
WHERE s.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs_calendars c WHERE c.name = s.calendar)
  AND (s.job_id IS NULL OR EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = s.job_id AND j.removed_at IS NULL))
GROUP BY s.job_id, s.calendar ORDER BY s.job_id, s.calendar LIMIT ?;

-- name: examine_gaps
-- arguments: limit
SELECT g.job_id, MIN(g.from_at), NULL, COUNT(*) FROM dbjobs_gaps g WHERE g.from_at >= g.through_at GROUP BY g.job_id ORDER BY g.job_id LIMIT ?;

-- name: examine_groups
-- arguments: limit
SELECT j.id, NULL, j.group_name, 1 FROM dbjobs_jobs j
WHERE j.removed_at IS NULL AND j.group_name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_groups g WHERE g.name = j.group_name)
ORDER BY j.id LIMIT ?;

-- name: examine_links
-- arguments: limit
SELECT l.job_id, NULL, NULL, COUNT(*) FROM dbjobs_job_schedules l
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_schedules s WHERE s.id = l.schedule_id) GROUP BY l.job_id ORDER BY l.job_id LIMIT ?;

-- name: examine_numbers
-- arguments: limit
SELECT p.job_id, NULL, NULL, p.runs_made FROM dbjobs_plans p
WHERE p.runs_made < (SELECT MAX(r.number) FROM dbjobs_runs r WHERE r.job_id = p.job_id) ORDER BY p.job_id LIMIT ?;

-- name: examine_older
-- arguments: limit
SELECT r.job_id, MIN(r.created_at), NULL, COUNT(*) FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.created_at < j.created_at GROUP BY r.job_id ORDER BY r.job_id LIMIT ?;

-- name: examine_orphans
-- arguments: limit
SELECT o.job_id, NULL, o.what, COUNT(*) FROM (
  SELECT job_id, 'steps' AS what FROM dbjobs_steps
  UNION ALL SELECT job_id, 'job_schedules' FROM dbjobs_job_schedules
  UNION ALL SELECT job_id, 'job_after' FROM dbjobs_job_after
  UNION ALL SELECT job_id, 'job_ends' FROM dbjobs_job_ends
  UNION ALL SELECT job_id, 'schedules' FROM dbjobs_schedules WHERE job_id IS NOT NULL
  UNION ALL SELECT job_id, 'plans' FROM dbjobs_plans
  UNION ALL SELECT job_id, 'plan_rules' FROM dbjobs_plan_rules
  UNION ALL SELECT job_id, 'gaps' FROM dbjobs_gaps
  UNION ALL SELECT job_id, 'runs' FROM dbjobs_runs
) AS o WHERE NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = o.job_id)
GROUP BY o.job_id, o.what ORDER BY o.job_id, o.what LIMIT ?;

-- name: examine_pauses
-- arguments: now, limit
SELECT NULL, p.since, p.scope, p.id FROM dbjobs_pauses p WHERE p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND (
  p.scope = 'job' AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = p.subject_id)
  OR p.scope = 'schedule' AND NOT EXISTS (SELECT 1 FROM dbjobs_schedules s WHERE s.id = p.subject_id))
ORDER BY p.id LIMIT ?;

-- name: examine_queued
-- arguments: now, later_ms, limit
SELECT NULL, MIN(r.queued_since), r.queue, COUNT(*) FROM dbjobs_runs r WHERE r.queued_since < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) GROUP BY r.queue ORDER BY r.queue LIMIT ?;

-- name: examine_runs
-- arguments: now, later_ms, now, later_ms, now, later_ms, limit
SELECT job_id, MIN(created_at), what, COUNT(*) FROM (
  SELECT r.job_id, r.created_at,
    CASE WHEN r.state = 'running' AND r.lease_until IS NULL THEN 'running without a lease'
      WHEN r.state NOT IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.settled_at IS NOT NULL THEN 'settled before the end'
      WHEN r.state IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.finished_at IS NULL THEN 'ended at no time'
      WHEN r.settled_at IS NOT NULL AND r.expires_at IS NULL THEN 'kept for ever'
      WHEN r.finished_at < r.started_at THEN 'ended before it began'
      WHEN r.interval_end < r.interval_start THEN 'of an interval that ends before it begins'
      WHEN r.occurrence LIKE 'at:%' AND r.scheduled_for IS NULL THEN 'of a nominal time that is missing'
      WHEN r.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN 'made in the future'
      WHEN (r.wake_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)) THEN 'begun in the future'
      WHEN r.state = 'waiting' AND r.held_by = 'predecessor' AND r.fence = 0 AND NOT EXISTS (SELECT 1 FROM dbjobs_runs o
        WHERE o.job_id = r.job_id AND o.id <> r.id AND o.settled_at IS NULL) THEN 'waiting for a run that is not there' END AS what
  FROM dbjobs_runs r) AS odd
WHERE what IS NOT NULL GROUP BY job_id, what ORDER BY job_id, what LIMIT ?;

-- name: examine_stuck
-- arguments: now, later_ms, now, later_ms, limit
SELECT r.job_id, MIN(COALESCE(r.finished_at, r.wake_at)), r.state, COUNT(*) FROM dbjobs_runs r
WHERE r.wake_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND COALESCE(r.finished_at, r.wake_at) < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) GROUP BY r.job_id, r.state ORDER BY MIN(COALESCE(r.finished_at, r.wake_at)) LIMIT ?;

-- name: examine_ticks
-- arguments: now, later_ms, limit
SELECT NULL, t.last_at, t.name, COUNT(*) FROM dbjobs_ticks t WHERE t.last_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) GROUP BY t.name, t.last_at ORDER BY t.name LIMIT ?;

-- name: examine_twice
-- arguments: limit
SELECT r.job_id, r.scheduled_for, NULL, COUNT(*) FROM dbjobs_runs r
WHERE r.occurrence LIKE 'at:%' AND r.scheduled_for IS NOT NULL
GROUP BY r.job_id, r.scheduled_for HAVING COUNT(*) > 1 ORDER BY r.job_id, r.scheduled_for LIMIT ?;

-- name: examine_unplanned
-- arguments: now, later_ms, limit
SELECT j.id, j.created_at, NULL, 1 FROM dbjobs_jobs j
WHERE j.enabled = 1 AND j.removed_at IS NULL AND j.created_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND NOT EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id)
ORDER BY j.id LIMIT ?;

-- name: expire_later
-- arguments: each_ids
UPDATE dbjobs_runs SET expires_at = COALESCE(CASE WHEN finished_at < '9000-01-01' THEN DATE_ADD(finished_at, INTERVAL 1000 * (SELECT j.keep_age_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id) MICROSECOND) END, expires_at) WHERE id IN (each_) AND settled_at IS NOT NULL;

-- name: expired_runs
-- arguments: now, limit
SELECT id FROM dbjobs_runs WHERE expires_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND settled_at IS NOT NULL ORDER BY expires_at LIMIT ?;

-- name: extend_gaps
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id', from_at DATETIME(6) PATH '$.from_at', through_at DATETIME(6) PATH '$.through_at', reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule')) AS d
JOIN dbjobs_gaps g ON g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule
SET g.through_at = d.through_at, g.recorded_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6));

-- name: failures
-- arguments: since, until, since, since, since, since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r FORCE INDEX (runs_created)
    WHERE r.created_at >= ? AND r.created_at < ? AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r FORCE INDEX (runs_unwell) WHERE r.unwell IS NOT NULL AND r.created_at < ? AND (r.finished_at >= ? OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r FORCE INDEX (runs_open)
    WHERE open_job_id IS NOT NULL AND r.created_at < ? AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
STRAIGHT_JOIN dbjobs_attempts a FORCE INDEX (PRIMARY) LEFT JOIN dbjobs_jobs j ON j.id = f.job_id
WHERE a.run_id = f.id AND a.state IN ('failed', 'lost') AND a.finished_at >= ? AND a.finished_at < ?
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT ?;

-- name: failures_of_job
-- arguments: job, since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs_runs r STRAIGHT_JOIN dbjobs_attempts a FORCE INDEX (PRIMARY) LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ? AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0) AND a.run_id = r.id AND a.state IN ('failed', 'lost') AND a.finished_at >= ? AND a.finished_at < ?
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT ?;

-- name: failures_of_runs
-- arguments: since, until, job, job, limit
SELECT r.id, r.attempt, r.fence, r.holder, r.state, r.started_at, r.finished_at, r.error, j.owner, j.name, r.job_id, r.number
FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.unwell IN ('failed', 'lost') AND r.finished_at >= ? AND r.finished_at < ? AND (r.job_id = ? OR ? = 0)
AND (NOT EXISTS (SELECT 1 FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.state IN ('failed', 'lost'))
  OR NOT EXISTS (SELECT 1 FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number >= r.attempts))
ORDER BY r.finished_at DESC, r.id DESC LIMIT ?;

-- name: figures
-- arguments: before, before, before
SELECT
  (SELECT COUNT(*) FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id IS NOT NULL AND r.state = 'running'),
  (SELECT COUNT(*) FROM dbjobs_runs r FORCE INDEX (runs_wake) WHERE r.wake_at < ? AND COALESCE(r.finished_at, r.wake_at) < ?)
  + (SELECT COUNT(*) FROM dbjobs_runs r FORCE INDEX (runs_queued_since) WHERE r.queued_since < ?)
FROM (SELECT 1 AS one) AS source;

-- name: finish
-- arguments: final, now, run_error, id, fence, holder, number, final
UPDATE dbjobs_runs SET state = ?, finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), lease_until = NULL, error = ?
WHERE id = ? AND fence = ? AND holder = ? AND state = 'running' AND attempts = ? AND (? <> 'lost' OR cancel_at IS NULL);

-- name: finish_jobs
-- arguments: now, now, each_ids
UPDATE dbjobs_jobs SET removed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), done_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE id IN (each_);

-- name: finish_links
-- arguments: each_ids
DELETE FROM dbjobs_job_schedules WHERE job_id IN (each_);

-- name: finish_runs
-- arguments: rows, now, now, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', fence INT PATH '$.fence', number INT PATH '$.number', final LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.final', run_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.run_error', job_id BIGINT PATH '$.job_id',
  keep_ms BIGINT PATH '$.keep_ms')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number
SET r.state = d.final, r.finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), r.lease_until = NULL, r.error = d.run_error,
  r.settled_at = CASE WHEN d.job_id IS NOT NULL THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) END,
  r.expires_at = CASE WHEN d.job_id IS NOT NULL THEN DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * d.keep_ms MICROSECOND) END;

-- name: finish_schedules
-- arguments: each_ids
DELETE FROM dbjobs_schedules WHERE job_id IN (each_);

-- name: first_installation
-- arguments: now
INSERT INTO dbjobs_installation (id, version, oldest, migrated_at)
SELECT 1, 0, 0, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) FROM (SELECT 1 AS one) AS source
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_installation WHERE id = 1);

-- name: first_keepers
-- arguments: name, limit
SELECT s.id, s.name, s.job_id, j.owner, j.name FROM dbjobs_schedules s LEFT JOIN dbjobs_jobs j ON j.id = s.job_id
WHERE s.calendar = ? AND s.calendar <> '' ORDER BY s.id LIMIT ?;

-- name: first_users
-- arguments: id, limit
SELECT j.owner, j.name FROM dbjobs_job_schedules l JOIN dbjobs_jobs j ON j.id = l.job_id
WHERE l.schedule_id = ? ORDER BY l.job_id LIMIT ?;

-- name: followers
-- arguments: each_ids
SELECT a.after_job_id, j.id, j.owner, j.name FROM dbjobs_job_after a CROSS JOIN dbjobs_jobs j
WHERE a.after_job_id IN (each_) AND j.id = a.job_id AND j.removed_at IS NULL;

-- name: forget_ends
-- arguments: each_ids, since
DELETE FROM dbjobs_job_ends WHERE job_id IN (each_) AND ended_at < ?;

-- name: forget_jobs
-- arguments: each_ids
DELETE FROM dbjobs_jobs WHERE id IN (each_);

-- name: forget_plan_rules
-- arguments: each_ids
DELETE FROM dbjobs_plan_rules WHERE job_id IN (each_);

-- name: forget_plans
-- arguments: each_ids
DELETE FROM dbjobs_plans WHERE job_id IN (each_);

-- name: gaps
-- arguments: job, limit
SELECT job_id, schedule_id, from_at, through_at, reason, rule, recorded_at FROM dbjobs_gaps
WHERE job_id = ? ORDER BY through_at DESC, schedule_id LIMIT ?;

-- name: group_caps
-- arguments: each_here, each_ids
SELECT g.name, g.max_running,
  (SELECT COUNT(*) FROM dbjobs_jobs j STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (runs_open) ON open_job_id = j.id
   WHERE j.group_name = g.name AND NOT j.id IN (each_) AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL))
FROM dbjobs_groups g WHERE g.name IN (each_);

-- name: group_held
-- arguments: each_ids, each_here, limit
SELECT name, run, job_id, priority, ready_at FROM (
  SELECT j.group_name AS name, r.id AS run, r.job_id, r.priority, r.ready_at,
    ROW_NUMBER() OVER (PARTITION BY j.group_name ORDER BY r.priority DESC, r.ready_at, r.id) AS place
  FROM dbjobs_jobs j FORCE INDEX (jobs_group) STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (runs_open) ON open_job_id = j.id
  WHERE r.state = 'waiting' AND r.held_by = 'group' AND j.group_name IN (each_) AND NOT j.id IN (each_)) AS h
WHERE place <= ? ORDER BY name, place;

-- name: group_runs
-- arguments: name, state
SELECT r.id FROM dbjobs_jobs j FORCE INDEX (jobs_group) STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (runs_open) ON open_job_id = j.id
WHERE j.group_name = ? AND r.state = ? AND r.started_at IS NULL AND (r.state = 'queued' OR r.held_by = 'group');

-- name: groups
SELECT name, max_running FROM dbjobs_groups ORDER BY name;

-- name: groups_quoted
-- arguments: each_ids
SELECT q.name, q.quoted FROM (SELECT g.name, QUOTE(g.name) AS quoted FROM dbjobs_groups g) AS q WHERE q.quoted IN (each_);

-- name: heartbeat
-- arguments: now, lease_ms, each_ids, holder
UPDATE dbjobs_runs SET lease_until = DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) WHERE id IN (each_) AND holder = ? AND state = 'running';

-- name: held
-- arguments: each_ids, holder
SELECT id, fence, cancel_at FROM dbjobs_runs WHERE id IN (each_) AND holder = ? AND state = 'running';

-- name: hold_runs
-- arguments: each_ids
UPDATE dbjobs_runs SET state = 'waiting' WHERE id IN (each_) AND state = 'queued' AND started_at IS NULL;

-- name: holds_own
-- arguments: id, fence
CALL dbjobs_holds_own(?, ?);

-- name: hook_uses
-- arguments: name, name, full
SELECT id, owner, name, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs_jobs
WHERE has_hooks = 1
AND (? = '' OR ? IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) OR ? IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused));

-- name: hooks
-- arguments: each_ids
SELECT id, owner, name, queue, priority, enabled FROM dbjobs_jobs WHERE live_name IN (each_);

-- name: hooks_in_use
SELECT DISTINCT owner, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs_jobs
WHERE has_hooks = 1;

-- name: insert_after
-- arguments: rows
INSERT INTO dbjobs_job_after (job_id, after_job_id, on_end)
SELECT d.job_id, d.after_job_id, d.on_end FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', after_job_id BIGINT PATH '$.after_job_id', on_end LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_end')) AS d;

-- name: insert_calendar
-- arguments: name, working_days, days, description, manifest
INSERT INTO dbjobs_calendars (name, working_days, days, description, owner, manifest)
VALUES (?, ?, ?, ?, LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), ?);

-- name: insert_changes
-- arguments: now, rows
INSERT INTO dbjobs_changes (changed_at, changed_by, kind, subject_id, subject, action, reason)
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), 'dbjobs itself', 'job', d.subject_id, d.subject, d.action, d.reason
FROM JSON_TABLE(?, '$[*]' COLUMNS (subject_id BIGINT PATH '$.subject_id', subject LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.subject', action LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.action', reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason')) AS d;

-- name: insert_ends
-- arguments: now, rows, now
INSERT INTO dbjobs_job_ends (job_id, meets, after_job_id, run_id, ended_at)
SELECT d.job_id, d.meets, d.after_job_id, d.run_id, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', meets LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.meets', after_job_id BIGINT PATH '$.after_job_id', run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id')) AS d
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_job_ends e JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
  JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
  WHERE e.job_id = d.job_id AND e.meets = d.meets AND e.after_job_id = d.after_job_id AND r.id <> d.run_id AND (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end'))
ON DUPLICATE KEY UPDATE run_id = d.run_id, ended_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), seen = 0;

-- name: insert_gaps
-- arguments: now, rows
INSERT INTO dbjobs_gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
SELECT d.job_id, d.schedule_id, d.from_at, d.through_at, d.reason, d.rule, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id', from_at DATETIME(6) PATH '$.from_at', through_at DATETIME(6) PATH '$.through_at', reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule')) AS d
WHERE (SELECT g.job_id FROM dbjobs_gaps g WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id
  AND g.through_at = d.through_at AND g.reason = d.reason) IS NULL;

-- name: insert_group
-- arguments: name, max_running
INSERT INTO dbjobs_groups (name, max_running, owner) VALUES (?, ?, LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))));

-- name: insert_jobs
-- arguments: now, now, rows
INSERT INTO dbjobs_jobs (owner, name, created_at, changed_at, description, enabled, tags, queue, priority, group_name, overlap, max_running,
  missed, missed_limit, missed_within_ms, missed_grace_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms, retry_jitter,
  max_deliveries, on_error, pause_after_failures, timeout_ms, jitter_ms, max_runs, not_before, not_after,
  start_rule, start_zone, repeat_after_ms, on_startup, keep_runs, keep_age_ms, remove_when_done, on_failed,
  on_recovered, on_missed, on_late, on_lost, on_parked, on_paused, heartbeat_url, heartbeat_start,
  heartbeat_success, heartbeat_failure, manifest)
SELECT d.owner, d.name, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), d.description, d.enabled, d.tags, d.queue, d.priority, d.group_name, d.overlap, d.max_running,
  d.missed, d.missed_limit, d.missed_within_ms, d.missed_grace_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms, d.retry_jitter,
  d.max_deliveries, d.on_error, d.pause_after_failures, d.timeout_ms, d.jitter_ms, d.max_runs, d.not_before, d.not_after,
  d.start_rule, d.start_zone, d.repeat_after_ms, d.on_startup, d.keep_runs, d.keep_age_ms, d.remove_when_done, d.on_failed,
  d.on_recovered, d.on_missed, d.on_late, d.on_lost, d.on_parked, d.on_paused, d.heartbeat_url, d.heartbeat_start,
  d.heartbeat_success, d.heartbeat_failure, d.manifest
FROM JSON_TABLE(?, '$[*]' COLUMNS (owner LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.owner', name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.name', description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.description', enabled TINYINT PATH '$.enabled', tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.tags', queue LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.queue',
  priority INT PATH '$.priority', group_name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.group_name', overlap LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.overlap', max_running INT PATH '$.max_running', missed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.missed', missed_limit INT PATH '$.missed_limit',
  missed_within_ms BIGINT PATH '$.missed_within_ms', missed_grace_ms BIGINT PATH '$.missed_grace_ms', retry_attempts INT PATH '$.retry_attempts', retry_backoff_ms BIGINT PATH '$.retry_backoff_ms', retry_max_backoff_ms BIGINT PATH '$.retry_max_backoff_ms', retry_jitter INT PATH '$.retry_jitter',
  max_deliveries INT PATH '$.max_deliveries', on_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_error', pause_after_failures INT PATH '$.pause_after_failures', timeout_ms BIGINT PATH '$.timeout_ms', jitter_ms BIGINT PATH '$.jitter_ms', max_runs BIGINT PATH '$.max_runs',
  not_before DATETIME(6) PATH '$.not_before', not_after DATETIME(6) PATH '$.not_after', start_rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.start_rule', start_zone LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.start_zone', repeat_after_ms BIGINT PATH '$.repeat_after_ms', on_startup TINYINT PATH '$.on_startup',
  keep_runs INT PATH '$.keep_runs', keep_age_ms BIGINT PATH '$.keep_age_ms', remove_when_done TINYINT PATH '$.remove_when_done', on_failed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_failed', on_recovered LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_recovered', on_missed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_missed',
  on_late LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_late', on_lost LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_lost', on_parked LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_parked', on_paused LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_paused', heartbeat_url LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_url', heartbeat_start LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_start',
  heartbeat_success LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_success', heartbeat_failure LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_failure', manifest LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.manifest')) AS d;

-- name: insert_links
-- arguments: now, rows
INSERT INTO dbjobs_job_schedules (job_id, schedule_id, created_at)
SELECT d.job_id, d.schedule_id, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id')) AS d;

-- name: insert_own_rules
-- arguments: now, now, rows
INSERT INTO dbjobs_schedules (job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
SELECT d.job_id, d.rule, d.zone, d.nonexistent, d.ambiguous, d.calendar, d.on_holiday, d.calendar_version, d.description, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule', zone LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.zone', nonexistent LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.nonexistent', ambiguous LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.ambiguous', calendar LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.calendar',
  on_holiday LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_holiday', calendar_version LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.calendar_version', description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.description')) AS d;

-- name: insert_pauses
-- arguments: now, rows
INSERT INTO dbjobs_pauses (scope, subject_id, reason, paused_by, since)
SELECT 'job', d.subject_id, d.reason, 'dbjobs itself', CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (subject_id BIGINT PATH '$.subject_id', reason LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason')) AS d;

-- name: insert_plan_rules
-- arguments: rows
INSERT INTO dbjobs_plan_rules (job_id, schedule_id, input, rule, ends, since, changed_at)
SELECT d.job_id, d.schedule_id, d.input, d.rule, d.ends, d.since, d.changed_at
FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id', input LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.input', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule', ends LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.ends', since DATETIME(6) PATH '$.since',
  changed_at DATETIME(6) PATH '$.changed_at')) AS d;

-- name: insert_queued
-- arguments: now, now, rows
INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, 'queued', d.queue, COALESCE(d.priority, 0), d.scheduled_for, d.interval_start,
  d.scheduled_for, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', job_id BIGINT PATH '$.job_id', number BIGINT PATH '$.number', occurrence VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.occurrence', queue VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.queue', priority INT PATH '$.priority',
  scheduled_for DATETIME(6) PATH '$.scheduled_for', interval_start DATETIME(6) PATH '$.interval_start')) AS d
ON DUPLICATE KEY UPDATE job_id = dbjobs_runs.job_id;

-- name: insert_runs
-- arguments: now, now, rows
INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args, COALESCE(d.ready_at, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', job_id BIGINT PATH '$.job_id', number BIGINT PATH '$.number', occurrence LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.occurrence', state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.state', held_by LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.held_by',
  queue LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.queue', priority INT PATH '$.priority', scheduled_for DATETIME(6) PATH '$.scheduled_for', interval_start DATETIME(6) PATH '$.interval_start', interval_end DATETIME(6) PATH '$.interval_end', args LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.args',
  ready_at DATETIME(6) PATH '$.ready_at')) AS d
ON DUPLICATE KEY UPDATE job_id = dbjobs_runs.job_id;

-- name: insert_schedule
-- arguments: name, job, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, manifest, now, now
INSERT INTO dbjobs_schedules (name, job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, owner, manifest, created_at, changed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), ?, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)));

-- name: insert_steps
-- arguments: rows
INSERT INTO dbjobs_steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure)
SELECT d.job_id, d.position, d.name, d.executor, d.spec, d.timeout_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms,
  d.retry_jitter, d.on_success, d.on_failure
FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', position INT PATH '$.position', name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.name', executor LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.executor', spec LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.spec', timeout_ms BIGINT PATH '$.timeout_ms',
  retry_attempts INT PATH '$.retry_attempts', retry_backoff_ms BIGINT PATH '$.retry_backoff_ms', retry_max_backoff_ms BIGINT PATH '$.retry_max_backoff_ms', retry_jitter INT PATH '$.retry_jitter', on_success LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_success', on_failure LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_failure')) AS d;

-- name: installation
SELECT version, oldest, repeatable, instance, owners, migrated_at FROM dbjobs_installation WHERE id = 1;

-- name: intervals
-- arguments: job, from, to, now
SELECT interval_start, interval_end FROM dbjobs_runs
WHERE job_id = ? AND interval_end >= ? AND (interval_start IS NULL OR interval_start < ?)
  AND (interval_end <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) OR occurrence NOT LIKE 'at:%')
  AND (state <> 'cancelled' OR attempts > 0 OR occurrence LIKE 'fill:%');

-- name: is_recorded
-- arguments: id, number, fence
SELECT COUNT(*) FROM dbjobs_attempts WHERE run_id = ? AND number = ? AND fence = ? AND state = 'succeeded';

-- name: job_links
-- arguments: each_ids, each_ids
SELECT l.job_id, s.id, s.name,
  (SELECT CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_job_schedules x WHERE x.job_id = l.job_id AND x.schedule_id = l.schedule_id),
  (SELECT CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_schedules y WHERE y.id = l.schedule_id), NULL, NULL, NULL
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (each_)
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs_job_after a LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id
WHERE a.job_id IN (each_) ORDER BY 1, 3;

-- name: job_name
-- arguments: id, id
SELECT owner, name, (SELECT p.parked FROM dbjobs_plans p WHERE p.job_id = ?) FROM dbjobs_jobs WHERE id = ?;

-- name: job_names
SELECT owner, name, queue, tags FROM dbjobs_jobs WHERE removed_at IS NULL ORDER BY name, owner;

-- name: jobs
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, p.next_run, p.decided_through, p.parked, p.last_state, p.last_scheduled_for, p.last_finished_at, p.last_success_at,
  p.last_error, p.streak, p.cycles, p.runs_made, p.repeat_from,
  (SELECT CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END FROM dbjobs_runs r WHERE r.id = p.last_run_id),
  (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = p.last_run_id),
  (SELECT c.action FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT COUNT(*) FROM dbjobs_runs FORCE INDEX (runs_open) WHERE open_job_id = j.id),
  (SELECT COUNT(*) FROM dbjobs_runs FORCE INDEX (runs_open) WHERE open_job_id = j.id AND state = 'running'), CASE WHEN stale = 1 THEN 1 ELSE 0 END, p.skips
FROM dbjobs_jobs j
LEFT JOIN dbjobs_plans p ON p.job_id = j.id WHERE j.removed_at IS NULL ORDER BY j.name, j.owner;

-- name: jobs_among
-- arguments: each_ids
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, p.next_run, p.decided_through, p.parked, p.last_state, p.last_scheduled_for, p.last_finished_at, p.last_success_at,
  p.last_error, p.streak, p.cycles, p.runs_made, p.repeat_from,
  (SELECT CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END FROM dbjobs_runs r WHERE r.id = p.last_run_id),
  (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = p.last_run_id),
  (SELECT c.action FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT COUNT(*) FROM dbjobs_runs FORCE INDEX (runs_open) WHERE open_job_id = j.id),
  (SELECT COUNT(*) FROM dbjobs_runs FORCE INDEX (runs_open) WHERE open_job_id = j.id AND state = 'running'), CASE WHEN stale = 1 THEN 1 ELSE 0 END, p.skips
FROM dbjobs_jobs j
LEFT JOIN dbjobs_plans p ON p.job_id = j.id WHERE j.removed_at IS NULL AND j.id IN (each_) ORDER BY j.name, j.owner;

-- name: jobs_named
-- arguments: each_ids
SELECT id, owner, name, manifest FROM dbjobs_jobs WHERE live_name IN (each_);

-- name: jobs_owned
-- arguments: manifest
SELECT id, owner, name, manifest FROM dbjobs_jobs WHERE manifest = ? AND removed_at IS NULL;

-- name: keyed_run
-- arguments: job, occurrence
SELECT id FROM dbjobs_runs WHERE job_id = ? AND occurrence = ?;

-- name: known_jobs
-- arguments: each_ids
SELECT j.id, j.owner, j.name, j.description, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure,
  j.manifest, j.created_at, j.changed_at, j.plan_input FROM dbjobs_jobs j WHERE j.id IN (each_);

-- name: known_links
-- arguments: each_ids, each_ids
SELECT l.job_id, s.id, s.name, 0, 0, NULL, NULL, NULL
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (each_) AND s.job_id IS NULL
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs_job_after a LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id
WHERE a.job_id IN (each_) ORDER BY 1, 3;

-- name: last_step
-- arguments: id
SELECT COALESCE((SELECT a.step_name FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name) FROM dbjobs_runs r WHERE r.id = ?;

-- name: link_own_rules
-- arguments: now, each_ids
INSERT INTO dbjobs_job_schedules (job_id, schedule_id, created_at)
SELECT s.job_id, s.id, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) FROM dbjobs_schedules s WHERE s.job_id IN (each_);

-- name: lock_ahead
-- arguments: now, later_ms, now, later_ms, now, later_ms, job, job, limit
SELECT p.job_id, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.job_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.job_id)
FROM dbjobs_plans p WHERE (p.decided_through > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR p.job_id IN (SELECT r.job_id FROM dbjobs_runs r WHERE (r.wake_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND))))
  AND (p.job_id = ? OR ? = 0) ORDER BY p.job_id LIMIT ? FOR UPDATE;

-- name: lock_altered
-- arguments: each_ids
SELECT id FROM dbjobs_schedules WHERE id IN (each_) ORDER BY id FOR UPDATE;

-- name: lock_calendar
-- arguments: name
SELECT name, working_days, days, description, manifest, CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_calendars WHERE name = ? AND stale = 1 FOR UPDATE SKIP LOCKED;

-- name: lock_calendars
-- arguments: each_ids
SELECT name FROM dbjobs_calendars WHERE name IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_done_schedules
-- arguments: each_ids
SELECT job_id FROM dbjobs_schedules WHERE job_id IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_ending
-- arguments: now, rows
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))
FROM (SELECT * FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id',
  fence INT PATH '$.fence', holder LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.holder', number INT PATH '$.number', recorded INT PATH '$.recorded')) AS t) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.holder = d.holder AND r.state = 'running' AND r.attempts = d.number
WHERE (d.recorded IS NULL OR EXISTS (SELECT 1 FROM dbjobs_attempts a WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'succeeded')) FOR UPDATE SKIP LOCKED;

-- name: lock_groups
-- arguments: each_ids
SELECT name FROM dbjobs_group_plans WHERE name IN (each_) ORDER BY name FOR UPDATE;

-- name: lock_holders
SELECT t.trx_mysql_thread_id, p.USER, p.HOST, CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00')
FROM information_schema.INNODB_TRX t LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE t.trx_rows_locked > 0 AND t.trx_mysql_thread_id <> CONNECTION_ID() AND (p.DB IS NULL OR p.DB = DATABASE())
ORDER BY t.trx_started, t.trx_mysql_thread_id LIMIT 3;

-- name: lock_installation
SELECT version FROM dbjobs_installation WHERE id = 1 FOR UPDATE;

-- name: lock_jobs
-- arguments: each_ids
SELECT id FROM dbjobs_jobs WHERE id IN (each_) ORDER BY id FOR UPDATE;

-- name: lock_old_gaps
-- arguments: rows, limit
SELECT o.job_id, o.schedule_id, o.through_at, o.reason
FROM (SELECT * FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', since DATETIME(6) PATH '$.since')) AS t) AS d
STRAIGHT_JOIN dbjobs_gaps o FORCE INDEX (PRIMARY) ON o.job_id = d.job_id AND o.through_at < d.since AND o.recorded_at < d.since LIMIT ? FOR UPDATE SKIP LOCKED;

-- name: lock_own_schedules
-- arguments: each_ids
SELECT id, CASE WHEN stale = 1 THEN 1 ELSE 0 END FROM dbjobs_schedules WHERE job_id IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_pauses
-- arguments: each_ids
SELECT id, plan_input FROM dbjobs_pauses WHERE id IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_plans
-- arguments: each_ids
SELECT job_id FROM dbjobs_plans WHERE job_id IN (each_) ORDER BY job_id FOR UPDATE;

-- name: lock_queued
-- arguments: now, ids, now, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs_attempts a WHERE a.run_id = r.id), COALESCE((SELECT a.step_name FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
FROM (SELECT id FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND state = 'queued'
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) LIMIT ? FOR UPDATE SKIP LOCKED;

-- name: lock_removed_jobs
-- arguments: each_ids, now, later_ms
SELECT j.id, CASE WHEN EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id) THEN 1 ELSE 0 END
FROM dbjobs_jobs j WHERE j.id IN (each_) AND j.removed_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (j.done_at IS NULL OR j.manifest IS NULL)
AND (SELECT r.job_id FROM dbjobs_runs r WHERE r.job_id = j.id LIMIT 1) IS NULL
AND (SELECT g.job_id FROM dbjobs_gaps g WHERE g.job_id = j.id LIMIT 1) IS NULL
AND (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = j.id LIMIT 1) IS NULL ORDER BY j.id FOR UPDATE SKIP LOCKED;

-- name: lock_removed_plans
-- arguments: each_ids
SELECT job_id FROM dbjobs_plans WHERE job_id IN (each_) ORDER BY job_id FOR UPDATE SKIP LOCKED;

-- name: lock_runs
-- arguments: each_ids
SELECT id FROM dbjobs_runs WHERE id IN (each_) ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: lock_schedules
-- arguments: each_ids
SELECT id, plan_input FROM dbjobs_schedules WHERE id IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_settled
-- arguments: now, now, each_ids
SELECT id, COALESCE((SELECT MIN(a.number) FROM dbjobs_attempts a WHERE a.run_id = dbjobs_runs.id), attempts + 1), attempts,
  CASE WHEN COALESCE(CASE WHEN finished_at < '9000-01-01' THEN DATE_ADD(finished_at, INTERVAL 1000 * (SELECT j.keep_age_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id) MICROSECOND) END, expires_at) <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN 1 ELSE 0 END, CASE WHEN expires_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN 1 ELSE 0 END
FROM dbjobs_runs WHERE id IN (each_) AND settled_at IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: lock_settling
-- arguments: rows
SELECT d.run_id
FROM (SELECT * FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id',
  job_id BIGINT PATH '$.job_id', version BIGINT PATH '$.version')) AS t) AS d
STRAIGHT_JOIN dbjobs_plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version AND p.parked IS NULL
WHERE (SELECT j.id FROM dbjobs_jobs j WHERE j.id = p.job_id AND CASE WHEN stale = 1 THEN 1 ELSE 0 END = 0) IS NOT NULL AND (SELECT a.job_id FROM dbjobs_job_after a WHERE a.after_job_id = p.job_id LIMIT 1) IS NULL FOR UPDATE SKIP LOCKED;

-- name: lock_stale_after
-- arguments: each_ids
SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (each_) ORDER BY job_id, after_job_id FOR UPDATE SKIP LOCKED;

-- name: lock_stale_jobs
-- arguments: each_ids
SELECT id, plan_input FROM dbjobs_jobs WHERE id IN (each_) FOR UPDATE SKIP LOCKED;

-- name: lock_stale_links
-- arguments: each_ids
SELECT job_id FROM dbjobs_job_schedules WHERE job_id IN (each_) ORDER BY job_id, schedule_id FOR UPDATE SKIP LOCKED;

-- name: lock_unchanged_jobs
-- arguments: each_ids
SELECT id FROM dbjobs_jobs WHERE id IN (each_) AND planned = plan_input FOR UPDATE SKIP LOCKED;

-- name: log_changes
-- arguments: now, by, reason, rows
INSERT INTO dbjobs_changes (changed_at, changed_by, kind, subject_id, subject, action, reason, was, became)
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), ?, d.kind, d.subject_id, d.subject, d.action, ?, d.was, d.became
FROM JSON_TABLE(?, '$[*]' COLUMNS (kind LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.kind', subject_id BIGINT PATH '$.subject_id', subject LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.subject', action LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.action', was LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.was', became LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.became')) AS d;

-- name: login
SELECT LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())));

-- name: lose_attempts
-- arguments: now, each_ids
UPDATE dbjobs_attempts SET state = 'lost', finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE run_id IN (each_) AND state = 'running';

-- name: manifest_owners
-- arguments: manifest, manifest
SELECT 'schedule', name, owner FROM dbjobs_schedules WHERE manifest = ? AND name IS NOT NULL AND (SELECT i.owners FROM dbjobs_installation i WHERE i.id = 1) = 1
UNION ALL
SELECT 'calendar', name, owner FROM dbjobs_calendars WHERE manifest = ? AND (SELECT i.owners FROM dbjobs_installation i WHERE i.id = 1) = 1;

-- name: mark_after
-- arguments: each_ids
UPDATE dbjobs_job_after SET planned = after_job_id WHERE job_id IN (each_);

-- name: mark_calendar
-- arguments: name
UPDATE dbjobs_calendars SET planned = plan_input WHERE name = ?;

-- name: mark_jobs
-- arguments: each_ids
UPDATE dbjobs_jobs SET planned = plan_input WHERE id IN (each_);

-- name: mark_links
-- arguments: each_ids
UPDATE dbjobs_job_schedules SET planned = schedule_id WHERE job_id IN (each_)
AND EXISTS (SELECT 1 FROM dbjobs_plan_rules r WHERE r.job_id = dbjobs_job_schedules.job_id AND r.schedule_id = dbjobs_job_schedules.schedule_id);

-- name: mark_pauses
-- arguments: each_ids
UPDATE dbjobs_pauses SET planned = plan_input WHERE id IN (each_);

-- name: mark_schedules
-- arguments: each_ids
UPDATE dbjobs_schedules SET planned = plan_input, parked = NULL WHERE id IN (each_) AND (
  SELECT l.job_id FROM dbjobs_job_schedules l WHERE l.schedule_id = dbjobs_schedules.id
  AND COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> dbjobs_schedules.plan_input
  LIMIT 1) IS NULL
AND (job_id IS NULL OR (SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = dbjobs_schedules.job_id AND r.schedule_id = dbjobs_schedules.id) = plan_input);

-- name: move_steps
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', step INT PATH '$.step', step_name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.step_name')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND state = 'queued'
SET r.step = d.step, r.step_name = d.step_name;

-- name: need_check
-- arguments: now, zones, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), u.id, NULL, u.id FROM (
  SELECT j.id FROM dbjobs_jobs j LEFT JOIN dbjobs_plans p ON p.job_id = j.id WHERE p.job_id IS NULL AND j.removed_at IS NULL
  UNION
  SELECT a.job_id FROM dbjobs_job_after a JOIN dbjobs_jobs j ON j.id = a.job_id LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id
  WHERE o.id IS NULL AND j.removed_at IS NULL
  UNION
  SELECT l.job_id FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE s.id IS NULL
  UNION
  SELECT COALESCE(s.job_id, l.job_id) FROM dbjobs_schedules s LEFT JOIN dbjobs_calendars c ON c.name = s.calendar
  LEFT JOIN dbjobs_job_schedules l ON l.schedule_id = s.id
  WHERE s.calendar <> '' AND c.name IS NULL AND COALESCE(s.job_id, l.job_id) IS NOT NULL
  UNION
  SELECT n.job_id FROM dbjobs_runs n FORCE INDEX (runs_open) LEFT JOIN dbjobs_jobs j ON j.id = n.job_id WHERE open_job_id > 0 AND j.id IS NULL
  UNION
  SELECT n.job_id FROM dbjobs_runs n FORCE INDEX (runs_open) WHERE open_job_id > 0 AND n.state = 'waiting' AND n.held_by = 'group'
  UNION
  SELECT p.job_id FROM dbjobs_jobs j JOIN dbjobs_plans p ON p.job_id = j.id
  WHERE j.repeat_after_ms IS NOT NULL AND j.enabled = 1 AND j.removed_at IS NULL AND (j.max_runs IS NULL OR j.max_runs > p.runs_made)
    AND p.next_run IS NULL AND p.repeat_from = p.last_scheduled_for
    AND NOT EXISTS (SELECT 1 FROM dbjobs_runs n FORCE INDEX (runs_open) WHERE open_job_id = j.id AND open_job_id > 0 AND n.scheduled_for = p.repeat_from AND n.occurrence LIKE 'at:%')
  UNION
  SELECT p.job_id FROM dbjobs_plans p WHERE parked_job_id IS NOT NULL
  UNION
  SELECT r.job_id FROM dbjobs_plan_rules r WHERE r.ends <> '' AND r.ends < ?
) AS u WHERE u.id > ? ORDER BY u.id LIMIT ?;

-- name: need_ended
-- arguments: now, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), job_id, NULL, job_id FROM dbjobs_job_ends WHERE seen = 0 AND job_id > ? ORDER BY job_id LIMIT ?;

-- name: need_job
-- arguments: now, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), id, NULL, id FROM dbjobs_jobs WHERE stale = 1 AND id > ? ORDER BY id LIMIT ?;

-- name: need_link
-- arguments: now, id, limit, id, limit, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), u.id, NULL, u.id FROM (
  SELECT * FROM (SELECT job_id AS id FROM dbjobs_job_schedules WHERE stale = 1 AND job_id > ? ORDER BY job_id LIMIT ?) AS l
  UNION
  SELECT * FROM (SELECT job_id AS id FROM dbjobs_job_after WHERE stale = 1 AND job_id > ? ORDER BY job_id LIMIT ?) AS a
) AS u ORDER BY u.id LIMIT ?;

-- name: need_older
-- arguments: now, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), p.job_id, NULL, p.job_id FROM dbjobs_plans p
WHERE p.job_id > ? AND p.runs_made < (SELECT r.number FROM dbjobs_runs r FORCE INDEX (runs_number) WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1) ORDER BY p.job_id LIMIT ?;

-- name: need_pause
-- arguments: window, now, id, id, wide, limit, limit
WITH p AS (SELECT scope, subject_id, subject FROM dbjobs_pauses WHERE stale = 1 ORDER BY id LIMIT ?)
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), u.id, NULL, u.id FROM (
  SELECT p.subject_id AS id FROM p WHERE p.scope = 'job' AND p.subject_id > ?
  UNION
  SELECT l.job_id FROM p CROSS JOIN dbjobs_job_schedules l WHERE p.scope = 'schedule' AND l.schedule_id = p.subject_id AND l.job_id > ?
  UNION
  SELECT a.id FROM (
    SELECT j.id FROM dbjobs_jobs j
    WHERE j.id > ? AND EXISTS (SELECT 1 FROM p WHERE p.scope = 'all' OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND JSON_SEARCH(j.tags, 'one', REPLACE(REPLACE(REPLACE(p.subject, '|', '||'), '%', '|%'), '_', '|_'), '|') IS NOT NULL)
    AND j.removed_at IS NULL ORDER BY j.id LIMIT ?) AS a
) AS u ORDER BY u.id LIMIT ?;

-- name: need_plan
-- arguments: now, owner, up_to, at, at, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), job_id, next_run, job_id FROM dbjobs_plans
WHERE owner = COALESCE(?, CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)) AND next_run <= ? AND (next_run > ? OR (next_run = ? AND job_id > ?))
ORDER BY next_run, job_id LIMIT ?;

-- name: need_run
-- arguments: now, now, now, at, at, id, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), job_id, wake_at, id, CASE WHEN finished_at > wake_at AND finished_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs
WHERE wake_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND (wake_at > ? OR (wake_at = ? AND id > ?))
ORDER BY wake_at, id LIMIT ?;

-- name: need_schedule
-- arguments: window, now, id, id, limit
WITH s AS (SELECT id, job_id, plan_input FROM dbjobs_schedules WHERE stale = 1 ORDER BY id LIMIT ?)
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), u.id, NULL, u.id FROM (
  SELECT l.job_id AS id FROM s CROSS JOIN dbjobs_job_schedules l
  WHERE l.schedule_id = s.id
    AND COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> s.plan_input
    AND l.job_id > ?
  UNION
  SELECT s.job_id FROM s
  WHERE COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = s.job_id AND r.schedule_id = s.id), '') <> s.plan_input
    AND s.job_id > ?
) AS u ORDER BY u.id LIMIT ?;

-- name: need_startup
-- arguments: now, startup, owner, id, start, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), j.id, NULL, j.id FROM dbjobs_jobs j LEFT JOIN dbjobs_plans p ON p.job_id = j.id AND INSTR(p.startup_ids, CONCAT(CHAR(10), ?, CHAR(10))) > 0
WHERE j.on_startup = 1 AND p.job_id IS NULL AND j.removed_at IS NULL AND j.owner = COALESCE(?, CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)) AND j.id > ?
AND NOT EXISTS (SELECT 1 FROM dbjobs_runs r WHERE r.job_id = j.id AND r.occurrence = ?) ORDER BY j.id LIMIT ?;

-- name: newest_due
-- arguments: owner, up_to, now, up_to
SELECT MAX(t.due) FROM (
  SELECT MAX(next_run) AS due FROM dbjobs_plans WHERE owner = COALESCE(?, CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)) AND next_run <= ?
  UNION ALL
  SELECT MAX(w.since) AS due FROM (SELECT CASE WHEN finished_at > wake_at AND finished_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs WHERE wake_at <= ? ORDER BY wake_at DESC LIMIT 1000) AS w
) AS t;

-- name: next_after
-- arguments: owner, after, after
SELECT MIN(t.due) FROM (
  SELECT MIN(next_run) AS due FROM dbjobs_plans WHERE owner = COALESCE(?, CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)) AND next_run > ?
  UNION ALL
  SELECT MIN(wake_at) AS due FROM dbjobs_runs WHERE wake_at > ?
) AS t;

-- name: next_of_owner
-- arguments: owner, owner, now
SELECT (SELECT MIN(next_run) FROM dbjobs_plans WHERE owner = ?),
  (SELECT next_run FROM dbjobs_plans WHERE owner = ? AND next_run <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND parked IS NULL ORDER BY next_run LIMIT 1);

-- name: next_queue
-- arguments: after
SELECT queued_in FROM dbjobs_runs WHERE queued_in > ? ORDER BY queued_in LIMIT 1;

-- name: next_step
-- arguments: step, now, lease_ms, id, fence, holder, number
UPDATE dbjobs_runs SET step = ?, attempt = 1, attempts = attempts + 1, losses = 0, lease_until = DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)
WHERE id = ? AND fence = ? AND holder = ? AND state = 'running' AND attempts = ?;

-- name: nominal_runs
-- arguments: each_ids, after, through, each_ids, filled_after, filled_through, limit
SELECT job_id, scheduled_for FROM dbjobs_runs WHERE job_id IN (each_) AND occurrence > ? AND occurrence <= ?
UNION ALL SELECT job_id, scheduled_for FROM dbjobs_runs WHERE job_id IN (each_) AND occurrence > ? AND occurrence < ? LIMIT ?;

-- name: old_records
-- arguments: now, later_ms, now, later_ms, limit, now, later_ms, limit, now, later_ms, limit, share, limit, now, later_ms
SELECT t.since, NULL, 'tick' FROM (SELECT since FROM dbjobs_ticks FORCE INDEX (ticks_since) WHERE since < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND last_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) ORDER BY since LIMIT ?) AS t
UNION ALL
SELECT NULL, p.id, 'pause' FROM (SELECT id FROM dbjobs_pauses FORCE INDEX (pauses_ends)
  WHERE scope IN ('all', 'job', 'owner', 'schedule', 'tag') AND ends_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND CASE WHEN stale = 1 THEN 1 ELSE 0 END = 0 LIMIT ?) AS p
UNION ALL
SELECT NULL, a.id, 'change' FROM (SELECT id FROM dbjobs_changes FORCE INDEX (changes_asked) WHERE action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND asked_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) ORDER BY asked_at LIMIT ?) AS a
UNION ALL
SELECT NULL, c.id, 'change' FROM (
  SELECT n.id, n.changed_at, n.kind, n.subject_id, n.action FROM dbjobs_changes n
  WHERE n.id >= (SELECT CAST(COALESCE(MAX(m.id), 0) * ? AS SIGNED) FROM dbjobs_changes m) ORDER BY n.id LIMIT ?) AS c
WHERE c.changed_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND c.action <> 'rename' AND NOT action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND (c.kind <> 'job'
  OR EXISTS (SELECT 1 FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = c.subject_id AND l.id > c.id
    AND l.action <> 'rename' AND (l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort') OR c.action IN ('pause', 'resume') AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')))
    AND (c.action IN ('pause', 'resume') OR NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = c.subject_id AND j.remove_when_done = 1))
  OR NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = c.subject_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)));

-- name: oldest_kept
-- arguments: each_ids
SELECT r.job_id, MIN(r.number), MIN(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END)
FROM dbjobs_runs r JOIN dbjobs_plans p ON p.job_id = r.job_id JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id IN (each_) AND r.number > p.runs_made - j.keep_runs GROUP BY r.job_id;

-- name: oldest_queued
SELECT MIN(queued_since) FROM dbjobs_runs WHERE queued_since IS NOT NULL;

-- name: open_pause
-- arguments: scope, subject_id, subject_id, subject, subject, now
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p FORCE INDEX (pauses_ends, pauses_subject)
WHERE p.scope = ? AND (p.subject_id = ? OR ? = 0) AND (? = '' OR p.subject = ?) AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ORDER BY p.id;

-- name: open_runs
-- arguments: now, limit
SELECT g.state, g.held_by, g.begun, g.later, g.queue, g.cap, g.runs, g.created, g.ready, j.owner, j.name FROM (
  SELECT s.state, s.held_by, s.begun, s.later, s.queue, s.cap, COUNT(*) AS runs, MIN(s.created_at) AS created, MIN(s.ready_at) AS ready, MIN(s.job_id) AS job_id
  FROM (SELECT r.state, r.held_by, CASE WHEN r.started_at IS NULL THEN 0 ELSE 1 END AS begun,
      CASE WHEN r.ready_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN 1 ELSE 0 END AS later, r.queue, r.created_at,
      COALESCE(r.queued_since, r.ready_at) AS ready_at, r.job_id,
      CASE WHEN r.held_by = 'group' THEN (SELECT x.group_name FROM dbjobs_jobs x WHERE x.id = r.job_id) END AS cap
    FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id IS NOT NULL AND r.state IN ('waiting', 'queued', 'running')) AS s
  GROUP BY s.state, s.held_by, s.begun, s.later, s.queue, s.cap) AS g
LEFT JOIN dbjobs_jobs j ON j.id = g.job_id ORDER BY g.created, g.job_id LIMIT ?;

-- name: own_plans
-- arguments: each_ids
UPDATE dbjobs_plans SET owner = COALESCE((SELECT j.owner FROM dbjobs_jobs j WHERE j.id = dbjobs_plans.job_id), owner) WHERE job_id IN (each_);

-- name: own_rules
-- arguments: each_ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.job_id IN (each_);

-- name: own_schedules
-- arguments: each_ids
SELECT job_id FROM dbjobs_schedules WHERE job_id IN (each_);

-- name: owners
SELECT owner FROM dbjobs_plans GROUP BY owner;

-- name: park_plans
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', parked LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.parked', next_run DATETIME(6) PATH '$.next_run')) AS d
STRAIGHT_JOIN dbjobs_plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id
SET p.parked = d.parked, p.next_run = d.next_run;

-- name: park_schedule
-- arguments: parked, id
UPDATE dbjobs_schedules SET parked = ? WHERE id = ? AND planned = plan_input;

-- name: past_renames
-- arguments: each_ids
SELECT kind, COALESCE(subject_id, 0), subject, was FROM dbjobs_changes WHERE action = 'rename' AND subject IN (each_);

-- name: path
SELECT '', LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())));

-- name: pause
-- arguments: scope, subject_id, subject, reason, paused_by, now, until_at, until_as
INSERT INTO dbjobs_pauses (scope, subject_id, subject, reason, paused_by, since, until_at, until_as)
VALUES (?, ?, ?, ?, ?, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), ?, ?);

-- name: pauses
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, j.owner, j.name, s.name
FROM dbjobs_pauses p
LEFT JOIN dbjobs_jobs j ON p.scope = 'job' AND j.id = p.subject_id
LEFT JOIN dbjobs_schedules s ON p.scope = 'schedule' AND s.id = p.subject_id
ORDER BY p.id DESC LIMIT ?;

-- name: pauses_ahead
-- arguments: now, later_ms, now, later_ms, job, job, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p FORCE INDEX (pauses_ends)
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.ends_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (p.resumed_at IS NOT NULL OR p.since > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)) AND (p.subject_id = ? AND p.scope = 'job' OR ? = 0)
ORDER BY p.id LIMIT ?;

-- name: pauses_among
-- arguments: each_ids, now, wide, now
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id), NULL
FROM dbjobs_pauses p FORCE INDEX (pauses_subject) WHERE p.scope = 'job' AND p.subject_id IN (each_) AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p FORCE INDEX (pauses_ends) WHERE ? = 1 AND p.scope IN ('schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ORDER BY 1 DESC;

-- name: pauses_held
-- arguments: now, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p FORCE INDEX (pauses_ends)
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ORDER BY CASE p.scope WHEN 'all' THEN 0 ELSE 1 END, p.id DESC LIMIT ?;

-- name: pauses_left
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p FORCE INDEX (pauses_stale) WHERE stale = 1 AND p.resumed_at IS NOT NULL ORDER BY p.id DESC LIMIT ?;

-- name: predecessors
-- arguments: each_ids
WITH RECURSIVE up (job_id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (each_)
  UNION
  SELECT a.job_id, a.after_job_id FROM up JOIN dbjobs_job_after a ON a.job_id = up.after_id
)
SELECT up.job_id, j.id, j.owner, j.name FROM up CROSS JOIN dbjobs_jobs j WHERE j.id = up.after_id AND j.removed_at IS NULL;

-- name: probe
-- arguments: now, now, now, now, now, queue, each_owners, now, name, name
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), i.version, i.oldest, i.instance, i.owners, 0, 0,
  (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))),
  (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.ends_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))),
  (SELECT MIN(next_run) FROM dbjobs_plans WHERE owner = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4)),
  (SELECT next_run FROM dbjobs_plans WHERE owner = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4) AND next_run <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND parked IS NULL ORDER BY next_run LIMIT 1),
  (SELECT wake_at FROM dbjobs_runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT CASE WHEN finished_at > wake_at AND finished_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT id FROM dbjobs_jobs WHERE stale = 1 ORDER BY id LIMIT 1),
  COALESCE((SELECT job_id FROM dbjobs_job_schedules WHERE stale = 1 ORDER BY job_id LIMIT 1),
    (SELECT job_id FROM dbjobs_job_after WHERE stale = 1 ORDER BY job_id LIMIT 1)),
  (SELECT id FROM dbjobs_schedules WHERE stale = 1 ORDER BY id LIMIT 1),
  (SELECT id FROM dbjobs_pauses WHERE stale = 1 ORDER BY id LIMIT 1),
  (SELECT name FROM dbjobs_calendars WHERE stale = 1 ORDER BY name LIMIT 1),
  (SELECT job_id FROM dbjobs_job_ends WHERE seen = 0 ORDER BY job_id LIMIT 1),
  (SELECT queued_since FROM dbjobs_runs WHERE queued_in = ? AND (SELECT j.id FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id AND (j.owner = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4) OR j.owner IN (each_))) IS NOT NULL ORDER BY urgency, ready_at, id LIMIT 1),
  (SELECT MIN(owner) FROM dbjobs_plans), (SELECT MAX(owner) FROM dbjobs_plans),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE parked_job_id IS NOT NULL AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE failing_job_id IS NOT NULL AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  CASE WHEN (SELECT expires_at FROM dbjobs_runs WHERE expires_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ORDER BY expires_at LIMIT 1) IS NULL THEN 0 ELSE 1 END,
  t.since, t.last_at, t.began_at, t.checked_at, COALESCE(t.passes, 0), LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), ''
FROM dbjobs_installation i
LEFT JOIN dbjobs_ticks t ON t.name = ? AND t.since = (SELECT MAX(since) FROM dbjobs_ticks WHERE name = ?)
WHERE i.id = 1;

-- name: queued_ids
-- arguments: queue, login, each_owners, within_ms, timed, within_ms, within_ms, now, each_ids, until, now, holder, limit
SELECT id FROM dbjobs_runs WHERE queued_in = ?
AND (? = '' OR (SELECT j.id FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id AND (j.owner = CONVERT(LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))) USING utf8mb4) OR j.owner IN (each_))) IS NOT NULL)
AND (? = 0 OR
  COALESCE((SELECT j.timeout_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id), CASE WHEN ? THEN ? + 1 ELSE 0 END) <= ?)
AND NOT EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))
AND CASE WHEN id IN (each_) THEN 1 WHEN created_at > ? AND created_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))
  AND COALESCE((SELECT b.holder FROM dbjobs_runs b WHERE b.id = CONVERT(CASE WHEN dbjobs_runs.occurrence LIKE 'after:%' THEN SUBSTR(dbjobs_runs.occurrence, 7, 36) WHEN dbjobs_runs.occurrence LIKE 'hook:%' THEN SUBSTRING_INDEX(SUBSTRING_INDEX(dbjobs_runs.occurrence, ':', 3), ':', -1) END USING ascii) COLLATE ascii_bin), '') <> ? THEN 0 ELSE 1 END = 1
ORDER BY urgency, ready_at, id LIMIT ?;

-- name: read_now
-- arguments: now
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) FROM (SELECT 1 AS one) AS source;

-- name: read_thaw
-- arguments: now, now
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.ends_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) FROM (SELECT 1 AS one) AS source;

-- name: recall
-- arguments: each_ids
SELECT p.job_id, (SELECT MAX(r.number) FROM dbjobs_runs r WHERE r.job_id = p.job_id),
  (SELECT MAX(r.scheduled_for) FROM dbjobs_runs r WHERE r.job_id = p.job_id AND r.occurrence LIKE 'at:%'),
  (SELECT MAX(g.through_at) FROM dbjobs_gaps g WHERE g.job_id = p.job_id)
FROM dbjobs_plans p WHERE p.job_id IN (each_);

-- name: recent_gaps
-- arguments: since, limit
SELECT g.job_id, j.owner, j.name, g.schedule_id, g.from_at, g.through_at, g.reason, g.rule, g.recorded_at FROM dbjobs_gaps g LEFT JOIN dbjobs_jobs j ON j.id = g.job_id
WHERE g.through_at >= ? ORDER BY g.through_at DESC, g.job_id, g.schedule_id LIMIT ?;

-- name: record_attempt
-- arguments: now, waited_ms, now, waited_ms, rows, output, result, id, number, fence, id, fence, holder, number
UPDATE dbjobs_attempts SET state = 'succeeded', finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), started_at = CASE WHEN ? > 0 THEN LEAST(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), DATE_ADD(started_at, INTERVAL 1000 * ? MICROSECOND)) ELSE started_at END,
  rows_affected = ?, output = ?, result = ?
WHERE run_id = ? AND number = ? AND fence = ? AND state = 'running'
AND (SELECT 1 FROM dbjobs_runs WHERE id = ? AND fence = ? AND holder = ? AND state = 'running' AND attempts = ? FOR UPDATE);

-- name: record_first_tick
-- arguments: name, now, now, began, checked, holder, version, decided, started, failed, error, took_ms
INSERT INTO dbjobs_ticks (name, since, last_at, began_at, checked_at, holder, version, decided, started, failed, error, took_ms)
VALUES (?, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: record_migration
-- arguments: version, oldest, now
UPDATE dbjobs_installation SET version = ?, oldest = ?, migrated_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE id = 1;

-- name: record_repeatable
-- arguments: repeatable
UPDATE dbjobs_installation SET repeatable = ? WHERE id = 1;

-- name: record_tick
-- arguments: now, later_ms, now, began, now, began, checked, regular, holder, version, decided, started, failed, error, took_ms, name, since
UPDATE dbjobs_ticks SET since = CASE WHEN last_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN last_at ELSE since END, last_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)),
  began_at = CASE WHEN began_at > ? AND began_at <= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN began_at ELSE COALESCE(?, began_at) END, checked_at = COALESCE(?, checked_at),
  passes = passes + ?, holder = ?, version = ?, decided = decided + ?,
  started = started + ?, failed = failed + ?, error = ?, took_ms = ?
WHERE name = ? AND since = ?;

-- name: recorded_runs
-- arguments: each_ids
SELECT r.id, r.job_id, a.finished_at FROM dbjobs_runs r JOIN dbjobs_attempts a ON a.run_id = r.id AND a.number = r.attempts
WHERE r.id IN (each_) AND r.state = 'running' AND a.fence = r.fence AND a.state = 'succeeded';

-- name: redeliver
-- arguments: now, later_ms, lost, run_error, id, fence, holder, number
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND), lease_until = NULL, losses = losses + ?,
  attempt = attempt - 1, error = ?
WHERE id = ? AND fence = ? AND holder = ? AND state = 'running' AND attempts = ?;

-- name: remove_jobs
-- arguments: now, each_ids
UPDATE dbjobs_jobs SET removed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE id IN (each_) AND removed_at IS NULL;

-- name: removed_job
-- arguments: owner, name
SELECT id FROM dbjobs_jobs WHERE owner = ? AND name = ? AND removed_at IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: removed_jobs
-- arguments: each_ids
SELECT j.id, j.owner, j.name, CASE WHEN j.done_at IS NULL THEN 0 ELSE 1 END, l.became
FROM dbjobs_jobs j
LEFT JOIN dbjobs_changes l FORCE INDEX (changes_defined) ON j.done_at IS NOT NULL AND l.defined_job_id = j.id AND l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort')
WHERE j.removed_at IS NOT NULL AND j.name IN (each_) ORDER BY j.id;

-- name: rename_job
-- arguments: name, id
UPDATE dbjobs_jobs SET name = ? WHERE id = ?;

-- name: rename_schedule
-- arguments: name, id
UPDATE dbjobs_schedules SET name = ? WHERE id = ?;

-- name: reopen
-- arguments: now, step, step_name, id
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), step = ?, step_name = ?, attempt = 0, losses = 0, lease_until = NULL,
  cancel_at = NULL, cancel_by = NULL, started_at = NULL, finished_at = NULL, settled_at = NULL, expires_at = NULL, error = NULL
WHERE id = ? AND state IN ('failed', 'cancelled', 'lost') AND settled_at IS NOT NULL;

-- name: request_cancel
-- arguments: now, by, each_ids
UPDATE dbjobs_runs SET cancel_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), cancel_by = ?, state = CASE WHEN state = 'queued' THEN 'waiting' ELSE state END
WHERE id IN (each_) AND state IN ('waiting', 'queued', 'running') AND cancel_at IS NULL;

-- name: request_run
-- arguments: id, job, occurrence, queue, priority, at, from, to, args, ready, now, step, step_name
INSERT INTO dbjobs_runs (id, job_id, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, args, ready_at, created_at, step, step_name)
VALUES (?, ?, ?, 'waiting', ?, ?, ?, ?, ?, ?, ?, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), ?, ?);

-- name: resume
-- arguments: now, resumed_by, missed, scope, subject_id, subject_id, subject, subject, now
UPDATE dbjobs_pauses SET resumed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), resumed_by = ?, missed = ?
WHERE scope = ? AND (subject_id = ? OR ? = 0) AND (? = '' OR subject = ?)
AND resumed_at IS NULL AND (until_at IS NULL OR until_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)));

-- name: return_runs
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', fence INT PATH '$.fence', number INT PATH '$.number', fresh INT PATH '$.fresh', error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.error')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number
SET r.state = CASE WHEN r.cancel_at IS NULL THEN 'queued' ELSE 'waiting' END, r.held_by = NULL, r.lease_until = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)),
  r.attempt = r.attempt - 1, r.attempts = r.attempts - 1, r.started_at = CASE WHEN d.fresh = 1 THEN NULL ELSE r.started_at END, r.error = d.error;

-- name: rewind_jobs
-- arguments: now, now, later_ms, job, job
UPDATE dbjobs_jobs SET created_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), planned = CONCAT(planned, '.') WHERE created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND removed_at IS NULL AND (id = ? OR ? = 0);

-- name: rewind_leases
-- arguments: now, each_ids, now, later_ms
UPDATE dbjobs_runs SET lease_until = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE open_job_id IN (each_) AND state = 'running' AND lease_until > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND);

-- name: rewind_open
-- arguments: now, later_ms, now, now, later_ms, now, now, later_ms, now, each_ids, now, later_ms, now, later_ms, now, later_ms
UPDATE dbjobs_runs SET created_at = CASE WHEN created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE created_at END,
  started_at = CASE WHEN started_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE started_at END,
  queued_at = CASE WHEN queued_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE queued_at END
WHERE open_job_id IN (each_) AND (created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR started_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR queued_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND));

-- name: rewind_pause
-- arguments: now, until_at, now, now, now, now, id
UPDATE dbjobs_pauses SET until_at = CASE WHEN since > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND until_at IS NOT NULL THEN ? ELSE until_at END,
  since = CASE WHEN since > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE since END,
  resumed_at = CASE WHEN resumed_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE resumed_at END
WHERE id = ?;

-- name: rewind_plans
-- arguments: now, now, now, now, now, now, each_ids
UPDATE dbjobs_plans SET decided_through = CASE WHEN decided_through > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE decided_through END,
  next_run = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END,
  last_scheduled_for = CASE WHEN last_scheduled_for > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN NULL ELSE last_scheduled_for END,
  repeat_from = CASE WHEN repeat_from > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE repeat_from END
WHERE job_id IN (each_);

-- name: rewind_rules
-- arguments: now, later_ms, job, job, job
UPDATE dbjobs_plan_rules SET input = CONCAT(input, ' edited') WHERE schedule_id IN (SELECT s.id FROM dbjobs_schedules s WHERE s.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)
  AND (s.job_id = ? OR s.id IN (SELECT l.schedule_id FROM dbjobs_job_schedules l WHERE l.job_id = ?) OR ? = 0));

-- name: rewind_schedules
-- arguments: now, now, later_ms, job, job, job
UPDATE dbjobs_schedules SET created_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), planned = CONCAT(planned, '.') WHERE created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)
  AND (job_id = ? OR id IN (SELECT l.schedule_id FROM dbjobs_job_schedules l WHERE l.job_id = ?) OR ? = 0);

-- name: rewind_start
-- arguments: not_before, id
UPDATE dbjobs_jobs SET not_before = ?, planned = CONCAT(planned, '.') WHERE id = ?;

-- name: rewind_waits
-- arguments: now, each_ids, now, later_ms
UPDATE dbjobs_runs SET ready_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) WHERE open_job_id IN (each_) AND state = 'waiting' AND ready_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND)
  AND (started_at IS NOT NULL OR scheduled_for IS NULL OR scheduled_for < ready_at OR scheduled_for <= created_at);

-- name: room
SELECT 'in total', CAST(@@GLOBAL.max_connections AS SIGNED)
UNION ALL
SELECT 'of this account', CAST(@@SESSION.max_user_connections AS SIGNED) - (SELECT COUNT(*) FROM information_schema.PROCESSLIST p WHERE p.user = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))))
FROM DUAL WHERE @@SESSION.max_user_connections > 0;

-- name: run_by_number
-- arguments: job, number
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ? AND r.number = ? ORDER BY r.id LIMIT 2;

-- name: run_by_prefix
-- arguments: low, high
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.id >= ? AND r.id <= ? ORDER BY r.id LIMIT 2;

-- name: run_job
-- arguments: id
SELECT r.job_id, j.owner, j.name, r.occurrence FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id WHERE r.id = ?;

-- name: run_latest
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ? AND r.number IS NOT NULL ORDER BY r.number DESC LIMIT 1;

-- name: run_undecided
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ? AND r.number IS NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: runs
-- arguments: state, state, since, until, schedule, schedule, step, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE (? = '' OR r.state = ?) AND r.created_at >= ? AND r.created_at < ?
AND (? = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?) > 0) AND (? = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?;

-- name: runs_holding
-- arguments: job, group, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END
FROM (SELECT x.id FROM dbjobs_jobs x WHERE x.id = ? UNION ALL SELECT x.id FROM dbjobs_jobs x WHERE x.group_name = ?) AS m
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (runs_open) ON open_job_id = m.id JOIN dbjobs_jobs j ON j.id = m.id
WHERE r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL
ORDER BY COALESCE(r.started_at, r.created_at), r.id LIMIT ?;

-- name: runs_longest
-- arguments: limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r FORCE INDEX (runs_open) LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE open_job_id IS NOT NULL AND r.state = 'running' ORDER BY r.started_at, r.id LIMIT ?;

-- name: runs_of_job
-- arguments: job, state, state, since, until, schedule, schedule, step, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ? AND (? = '' OR r.state = ?) AND r.created_at >= ? AND r.created_at < ?
AND (? = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?) > 0) AND (? = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?;

-- name: runs_open_of_job
-- arguments: job, state, since, until, schedule, schedule, step, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r FORCE INDEX (runs_open) LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE open_job_id = ? AND r.state = ? AND r.created_at >= ? AND r.created_at < ?
AND (? = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?) > 0) AND (? = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?;

-- name: runs_under_way
-- arguments: state, since, until, schedule, schedule, step, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r FORCE INDEX (runs_open) LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE open_job_id IS NOT NULL AND r.state = ? AND r.created_at >= ? AND r.created_at < ?
AND (? = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?) > 0) AND (? = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?;

-- name: runs_unended
-- arguments: job, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r FORCE INDEX (runs_open) LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE open_job_id = ? AND r.state IN ('waiting', 'queued', 'running')
ORDER BY CASE r.state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, r.id LIMIT ?;

-- name: runs_unwell
-- arguments: state, since, until, schedule, schedule, step, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.unwell = ? AND r.created_at >= ? AND r.created_at < ?
AND (? = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?) > 0) AND (? = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?;

-- name: schedule_id
-- arguments: name
SELECT id FROM dbjobs_schedules WHERE name = ?;

-- name: schedule_jobs
-- arguments: id
SELECT job_id FROM dbjobs_job_schedules WHERE schedule_id = ? ORDER BY job_id;

-- name: schedule_users
-- arguments: each_ids
SELECT schedule_id, COUNT(*) FROM dbjobs_job_schedules WHERE schedule_id IN (each_) GROUP BY schedule_id;

-- name: schedules
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.name IS NOT NULL ORDER BY s.name;

-- name: schedules_among
-- arguments: each_ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.id IN (each_) AND s.name IS NOT NULL;

-- name: schedules_named
-- arguments: each_ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.name IN (each_);

-- name: schedules_owned
-- arguments: manifest
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN stale = 1 THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.manifest = ? AND s.name IS NOT NULL;

-- name: see_calendar
-- arguments: version, name
UPDATE dbjobs_schedules SET calendar_version = ?, planned = NULL WHERE calendar = ? AND calendar <> '';

-- name: see_ends
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id')) AS d
STRAIGHT_JOIN dbjobs_job_ends e FORCE INDEX (PRIMARY) ON e.id = d.id AND e.run_id = d.run_id SET seen = 1;

-- name: server_settings
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_stats_auto_recalc', 'read_only', 'transaction_read_only', 'tx_read_only');

-- name: set_instance
-- arguments: instance
UPDATE dbjobs_installation SET instance = ? WHERE id = 1;

-- name: settle_plans
-- arguments: rows, now, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', version BIGINT PATH '$.version', run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id')) AS d
STRAIGHT_JOIN dbjobs_plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.last_run_id = d.run_id, p.last_state = 'succeeded', p.last_finished_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), p.last_success_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), p.streak = 0,
  p.cycles = p.cycles + 1, p.version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END;

-- name: shown_routines
SELECT COUNT(*) FROM (
  SELECT u.privilege_type, u.grantee FROM information_schema.user_privileges u
  UNION SELECT s.privilege_type, s.grantee FROM information_schema.schema_privileges s WHERE DATABASE() LIKE s.table_schema) AS g
WHERE g.privilege_type IN ('EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE')
  AND REPLACE(g.grantee, '''', '') = CURRENT_USER();

-- name: skips_ahead
-- arguments: each_ids, now
SELECT g.job_id, p.skips, g.schedule_id, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = g.schedule_id), g.through_at
FROM dbjobs_gaps g JOIN dbjobs_plans p ON p.job_id = g.job_id
WHERE g.job_id IN (each_) AND g.from_at >= CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) AND g.reason = 'skipped' ORDER BY g.job_id, g.through_at;

-- name: spare_leases
-- arguments: until, each_ids
UPDATE dbjobs_runs SET lease_until = ? WHERE id IN (each_) AND state = 'running';

-- name: stale_calendars
-- arguments: window
SELECT name FROM dbjobs_calendars WHERE stale = 1 ORDER BY name LIMIT ?;

-- name: stale_pauses
-- arguments: window
SELECT id, plan_input, CASE WHEN scope IN ('tag', 'owner', 'all') THEN 1 ELSE 0 END
FROM dbjobs_pauses WHERE stale = 1 ORDER BY id LIMIT ?;

-- name: stale_schedules
-- arguments: window
SELECT id, plan_input, 0 FROM dbjobs_schedules WHERE stale = 1 ORDER BY id LIMIT ?;

-- name: standing
-- arguments: each_ids, overdue, now, now, now, now, now, now, now, now
SELECT
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE p.owner IN (each_) AND p.next_run <= ? AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE parked_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE failing_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1)
FROM (SELECT 1 AS one) AS source;

-- name: standing_jobs
-- arguments: each_ids, overdue, limit, now, now, now, now, limit, now, now, now, now, limit
SELECT kind, job_id FROM (
  SELECT * FROM (SELECT 'overdue' AS kind, p.job_id FROM dbjobs_plans p
    WHERE p.owner IN (each_) AND p.next_run <= ? AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1 ORDER BY p.next_run, p.job_id LIMIT ?) AS a
  UNION ALL
  SELECT * FROM (SELECT 'parked' AS kind, p.job_id FROM dbjobs_plans p WHERE parked_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?) AS b
  UNION ALL
  SELECT * FROM (SELECT 'failing' AS kind, p.job_id FROM dbjobs_plans p WHERE failing_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.streak DESC, p.job_id LIMIT ?) AS c
) AS k;

-- name: starts_ahead
-- arguments: now, later_ms, now, later_ms, now, later_ms, now, later_ms, job, job
SELECT j.id, j.start_rule, j.start_zone, j.not_before FROM dbjobs_jobs j
WHERE (j.created_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND j.start_rule IS NOT NULL AND j.not_before > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) OR j.start_rule IS NOT NULL AND j.not_before > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND (SELECT CASE WHEN l.changed_at > DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l FORCE INDEX (changes_subject) WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.was, '$.not_before')), '') <> COALESCE(JSON_UNQUOTE(JSON_EXTRACT(l.became, '$.not_before')), '')) ORDER BY l.id DESC LIMIT 1) = 1) AND j.removed_at IS NULL AND (j.id = ? OR ? = 0) ORDER BY j.id;

-- name: step_attempts
-- arguments: each_ids
SELECT job_id, retry_attempts FROM dbjobs_steps WHERE job_id IN (each_) ORDER BY job_id, position;

-- name: step_facts
-- arguments: id, step, id, step, id, id, id
SELECT a.step_name, a.state, a.rows_affected, a.error, a.output, a.result
FROM (SELECT MAX(e.number) AS number FROM dbjobs_attempts e
  WHERE e.run_id = ? AND e.state <> 'running' AND (e.step_name <> ? OR e.state = 'succeeded'
    OR e.number < (SELECT MAX(o.number) FROM dbjobs_attempts o WHERE o.run_id = ? AND o.step_name <> ?)
    OR e.state = 'failed' AND e.number < (SELECT MAX(o.number) FROM dbjobs_attempts o WHERE o.run_id = ? AND o.attempt = 1)
      AND e.started_at >= (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = ?))
  GROUP BY e.step_name) AS l
JOIN dbjobs_attempts a ON a.run_id = ? AND a.number = l.number;

-- name: stretches
-- arguments: name, name, since, since, limit
SELECT t.since, t.last_at, t.passes FROM dbjobs_ticks t
WHERE t.name = ? AND t.since >= COALESCE((SELECT MAX(l.since) FROM dbjobs_ticks l WHERE l.name = ? AND l.since < ?), ?)
ORDER BY t.since DESC LIMIT ?;

-- name: stuck
-- arguments: before, before, limit, before, limit, limit
SELECT u.since, j.owner, j.name FROM (
  SELECT * FROM (SELECT COALESCE(r.finished_at, r.wake_at) AS since, r.job_id FROM dbjobs_runs r
    WHERE r.wake_at < ? AND COALESCE(r.finished_at, r.wake_at) < ? ORDER BY 1, 2 LIMIT ?) AS a
  UNION ALL
  SELECT * FROM (SELECT r.queued_since AS since, r.job_id FROM dbjobs_runs r WHERE r.queued_since < ? ORDER BY 1, 2 LIMIT ?) AS b
) AS u LEFT JOIN dbjobs_jobs j ON j.id = u.job_id ORDER BY u.since, u.job_id LIMIT ?;

-- name: surplus_runs
-- arguments: rows, limit
SELECT r.id, d.job_id, CASE WHEN r.number <= d.below THEN 1 ELSE 0 END FROM JSON_TABLE(?, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', below BIGINT PATH '$.below', through BIGINT PATH '$.through', since DATETIME(6) PATH '$.since')) AS d
STRAIGHT_JOIN dbjobs_runs r ON r.job_id = d.job_id AND r.number <= d.through
WHERE r.settled_at IS NOT NULL AND (r.number <= d.below OR r.finished_at < d.since) LIMIT ?;

-- name: sweep_jobs
-- arguments: now, now, later_ms, share, limit
SELECT CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), j.id, CASE WHEN (SELECT r.id FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id = j.id ORDER BY r.id LIMIT 1 OFFSET 1000) IS NULL
    THEN COALESCE((SELECT p.runs_made FROM dbjobs_plans p WHERE p.job_id = j.id), 0) - (SELECT COUNT(*) FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id = j.id)
    ELSE (SELECT COALESCE(r.number, 1) - 1 FROM dbjobs_runs r FORCE INDEX (runs_open) WHERE open_job_id = j.id ORDER BY r.id LIMIT 1) END - j.keep_runs, j.keep_age_ms,
  CASE WHEN j.removed_at < DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND) THEN 1 ELSE 0 END,
  COALESCE((SELECT r.number FROM dbjobs_runs r FORCE INDEX (runs_number) WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1), 0),
  (SELECT r.finished_at FROM dbjobs_runs r FORCE INDEX (runs_number) WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1)
FROM dbjobs_jobs j
WHERE j.id >= (SELECT CAST(COALESCE(MAX(m.id), 0) * ? AS SIGNED) FROM dbjobs_jobs m) ORDER BY j.id LIMIT ?;

-- name: take
-- arguments: holder, now, lease_ms, now, each_ids
UPDATE dbjobs_runs SET state = 'running', fence = fence + 1, holder = ?, lease_until = DATE_ADD(CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), INTERVAL 1000 * ? MICROSECOND),
  started_at = COALESCE(started_at, CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))), attempt = attempt + 1, error = NULL,
  attempts = GREATEST(attempts, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs_attempts a WHERE a.run_id = dbjobs_runs.id)) + 1
WHERE id IN (each_) AND state = 'queued';

-- name: too_long
-- arguments: queue, front, within_ms
SELECT j.owner, j.name, j.timeout_ms, q.since
FROM (SELECT f.job_id, MIN(f.since) AS since FROM
    (SELECT job_id, queued_since AS since FROM dbjobs_runs WHERE queued_in = ? ORDER BY urgency, ready_at, id LIMIT ?) AS f
  WHERE (SELECT t.timeout_ms FROM dbjobs_jobs t WHERE t.id = f.job_id) > ? GROUP BY f.job_id LIMIT 20) AS q
JOIN dbjobs_jobs j ON j.id = q.job_id ORDER BY j.name, j.owner;

-- name: touch_group
-- arguments: name
UPDATE dbjobs_jobs SET planned = CONCAT(planned, '.') WHERE group_name = ? AND live_name IS NOT NULL;

-- name: touch_jobs
-- arguments: each_ids
UPDATE dbjobs_jobs SET planned = CONCAT(planned, '.') WHERE id IN (each_);

-- name: touch_parked
-- arguments: each_ids
UPDATE dbjobs_jobs SET planned = CONCAT(planned, '.') WHERE id IN (each_) AND EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = dbjobs_jobs.id AND parked_job_id IS NOT NULL);

-- name: triggers
SELECT t.name, t.since, t.last_at, t.passes, t.holder, t.version, t.error, t.took_ms, n.first
FROM (SELECT l.name, MAX(l.since) AS since, MIN(l.since) AS first FROM dbjobs_ticks l GROUP BY l.name) AS n
STRAIGHT_JOIN dbjobs_ticks t ON t.name = n.name AND t.since = n.since ORDER BY t.name;

-- name: troubled
-- arguments: now, now, now, now, limit, now, now, now, now, limit
SELECT j.owner, j.name, t.parked, t.error, t.streak, t.jobs FROM (
  SELECT * FROM (SELECT p.job_id, 1 AS parked, p.parked AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs_plans p
    WHERE parked_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?) AS parked
  UNION ALL
  SELECT * FROM (SELECT p.job_id, 0 AS parked, p.last_error AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs_plans p
    WHERE failing_job_id IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN JSON_TABLE(CASE WHEN JSON_VALID(j.tags) THEN j.tags ELSE '[]' END, '$[*]' COLUMNS (value varchar(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$')) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT /*+ SUBQUERY(MATERIALIZATION) */ p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?) AS failing
) AS t JOIN dbjobs_jobs j ON j.id = t.job_id ORDER BY t.parked DESC, t.job_id;

-- name: unmark_calendars
-- arguments: each_ids
UPDATE dbjobs_calendars SET planned = NULL WHERE name IN (each_);

-- name: unplanned
SELECT j.owner, j.name, j.created_at FROM dbjobs_jobs j
WHERE j.enabled = 1 AND j.removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id)
ORDER BY j.created_at, j.id LIMIT 1;

-- name: unserved
-- arguments: since, since, login
WITH RECURSIVE o (owner) AS (
  SELECT MIN(p.owner) FROM dbjobs_plans p
  UNION ALL
  SELECT (SELECT MIN(p.owner) FROM dbjobs_plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner, jobs, since FROM (
  SELECT o.owner, (SELECT COUNT(*) FROM dbjobs_plans p WHERE p.owner = o.owner AND p.next_run <= ? AND p.parked IS NULL) AS jobs,
    (SELECT p.next_run FROM dbjobs_plans p WHERE p.owner = o.owner AND p.next_run <= ? AND p.parked IS NULL ORDER BY p.next_run LIMIT 1) AS since
  FROM o WHERE o.owner IS NOT NULL AND o.owner <> ?) AS u
WHERE jobs > 0 ORDER BY owner;

-- name: update_calendar
-- arguments: working_days, days, description, manifest, name
UPDATE dbjobs_calendars SET working_days = ?, days = ?, description = ?, manifest = ? WHERE name = ?;

-- name: update_group
-- arguments: max_running, name
UPDATE dbjobs_groups SET max_running = ? WHERE name = ?;

-- name: update_jobs
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.description', enabled TINYINT PATH '$.enabled', tags LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.tags', queue LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.queue', priority INT PATH '$.priority',
  group_name LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.group_name', overlap LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.overlap', max_running INT PATH '$.max_running', missed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.missed', missed_limit INT PATH '$.missed_limit', missed_within_ms BIGINT PATH '$.missed_within_ms',
  missed_grace_ms BIGINT PATH '$.missed_grace_ms', retry_attempts INT PATH '$.retry_attempts', retry_backoff_ms BIGINT PATH '$.retry_backoff_ms', retry_max_backoff_ms BIGINT PATH '$.retry_max_backoff_ms', retry_jitter INT PATH '$.retry_jitter', max_deliveries INT PATH '$.max_deliveries',
  on_error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_error', pause_after_failures INT PATH '$.pause_after_failures', timeout_ms BIGINT PATH '$.timeout_ms', jitter_ms BIGINT PATH '$.jitter_ms', max_runs BIGINT PATH '$.max_runs', not_before DATETIME(6) PATH '$.not_before',
  not_after DATETIME(6) PATH '$.not_after', start_rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.start_rule', start_zone LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.start_zone', repeat_after_ms BIGINT PATH '$.repeat_after_ms', on_startup TINYINT PATH '$.on_startup', keep_runs INT PATH '$.keep_runs',
  keep_age_ms BIGINT PATH '$.keep_age_ms', remove_when_done TINYINT PATH '$.remove_when_done', on_failed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_failed', on_recovered LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_recovered', on_missed LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_missed', on_late LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_late',
  on_lost LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_lost', on_parked LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_parked', on_paused LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_paused', heartbeat_url LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_url', heartbeat_start LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_start', heartbeat_success LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_success',
  heartbeat_failure LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.heartbeat_failure', manifest LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.manifest')) AS d
STRAIGHT_JOIN dbjobs_jobs j FORCE INDEX (PRIMARY) ON j.id = d.id AND j.removed_at IS NULL
SET j.changed_at = CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)), j.description = d.description, j.enabled = d.enabled, j.tags = d.tags, j.queue = d.queue, j.priority = d.priority, j.group_name = d.group_name, j.overlap = d.overlap, j.max_running = d.max_running,
  j.missed = d.missed, j.missed_limit = d.missed_limit, j.missed_within_ms = d.missed_within_ms, j.missed_grace_ms = d.missed_grace_ms, j.retry_attempts = d.retry_attempts, j.retry_backoff_ms = d.retry_backoff_ms, j.retry_max_backoff_ms = d.retry_max_backoff_ms, j.retry_jitter = d.retry_jitter,
  j.max_deliveries = d.max_deliveries, j.on_error = d.on_error, j.pause_after_failures = d.pause_after_failures, j.timeout_ms = d.timeout_ms, j.jitter_ms = d.jitter_ms, j.max_runs = d.max_runs, j.not_before = d.not_before, j.not_after = d.not_after,
  j.start_rule = d.start_rule, j.start_zone = d.start_zone, j.repeat_after_ms = d.repeat_after_ms, j.on_startup = d.on_startup, j.keep_runs = d.keep_runs, j.keep_age_ms = d.keep_age_ms, j.remove_when_done = d.remove_when_done, j.on_failed = d.on_failed,
  j.on_recovered = d.on_recovered, j.on_missed = d.on_missed, j.on_late = d.on_late, j.on_lost = d.on_lost, j.on_parked = d.on_parked, j.on_paused = d.on_paused, j.heartbeat_url = d.heartbeat_url, j.heartbeat_start = d.heartbeat_start,
  j.heartbeat_success = d.heartbeat_success, j.heartbeat_failure = d.heartbeat_failure, j.manifest = d.manifest;

-- name: update_own_rules
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', rule LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.rule', zone LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.zone', nonexistent LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.nonexistent', ambiguous LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.ambiguous', calendar LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.calendar',
  on_holiday LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.on_holiday', calendar_version LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.calendar_version', description LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.description')) AS d
STRAIGHT_JOIN dbjobs_schedules s FORCE INDEX (PRIMARY) ON s.id = d.id
SET s.rule = d.rule, s.zone = d.zone, s.nonexistent = d.nonexistent, s.ambiguous = d.ambiguous,
  s.calendar = d.calendar, s.on_holiday = d.on_holiday, s.calendar_version = d.calendar_version, s.description = d.description,
  s.manifest = NULL;

-- name: update_runs
-- arguments: rows, now
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id', fence INT PATH '$.fence', was LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.was', lease DATETIME(6) PATH '$.lease', state LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.state', held_by LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.held_by',
  queue LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.queue', priority INT PATH '$.priority', ready_at DATETIME(6) PATH '$.ready_at', number BIGINT PATH '$.number', losses INT PATH '$.losses', finished_at DATETIME(6) PATH '$.finished_at',
  settled_at DATETIME(6) PATH '$.settled_at', expires_at DATETIME(6) PATH '$.expires_at', error LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.error')) AS d
STRAIGHT_JOIN dbjobs_runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND (d.state <> 'queued' OR r.cancel_at IS NULL)
SET r.state = d.state, r.held_by = d.held_by, r.queue = d.queue, r.priority = d.priority, r.ready_at = d.ready_at, r.number = d.number, r.losses = d.losses,
  r.finished_at = d.finished_at, r.settled_at = d.settled_at, r.expires_at = d.expires_at, r.error = d.error,
  r.lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  r.queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) ELSE r.queued_at END,
  r.attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END;

-- name: update_schedule
-- arguments: rule, zone, nonexistent, ambiguous, calendar, on_holiday, now, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, manifest, id
UPDATE dbjobs_schedules SET changed_at = CASE WHEN rule = ? AND zone = ? AND nonexistent = ? AND ambiguous = ?
    AND calendar = ? AND on_holiday = ? THEN changed_at ELSE CAST(COALESCE(?, UTC_TIMESTAMP(6)) AS DATETIME(6)) END,
  rule = ?, zone = ?, nonexistent = ?, ambiguous = ?,
  calendar = ?, on_holiday = ?, calendar_version = ?, description = ?, manifest = ?
WHERE id = ?;

-- name: users
-- arguments: each_ids, limit
SELECT u.schedule_id, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = u.job_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = u.job_id),
  (SELECT r.rule FROM dbjobs_plan_rules r WHERE r.job_id = u.job_id AND r.schedule_id = u.schedule_id
    AND r.input = (SELECT s.plan_input FROM dbjobs_schedules s WHERE s.id = u.schedule_id)) FROM (
  SELECT l.schedule_id, l.job_id, ROW_NUMBER() OVER (PARTITION BY l.schedule_id ORDER BY l.job_id) AS place
  FROM dbjobs_job_schedules l WHERE l.schedule_id IN (each_)) AS u
WHERE u.place <= ? ORDER BY u.schedule_id, u.place;

-- name: vain_deliveries
-- arguments: id, number, id, number, id
SELECT a.started_at FROM dbjobs_attempts a WHERE a.run_id = ? AND a.number <= ? AND a.number > COALESCE((SELECT MAX(e.number) FROM dbjobs_attempts e
  WHERE e.run_id = ? AND e.number < ? AND (e.state NOT IN ('cut', 'lost') OR e.started_at < (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = ?))), 0)
ORDER BY a.number DESC;

-- name: waiting_ends
SELECT e.job_id, e.meets, e.after_job_id, e.run_id, e.ended_at, e.seen, r.interval_start, r.interval_end
FROM dbjobs_job_ends e JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
WHERE (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: wake_held
-- arguments: each_ids
UPDATE dbjobs_runs SET held_by = NULL WHERE id IN (each_) AND state = 'waiting' AND held_by = 'group';

-- name: write_skips
-- arguments: skips, job
UPDATE dbjobs_plans SET skips = ?, version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END WHERE job_id = ?;

-- name: write_starts
-- arguments: rows
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$.id', not_before DATETIME(6) PATH '$.not_before')) AS d
STRAIGHT_JOIN dbjobs_jobs j FORCE INDEX (PRIMARY) ON j.id = d.id
SET j.not_before = d.not_before;
