-- Every statement as sqlite is sent it, made from the files in sql by
-- `go test ./store -run TestStatements -update`. Do not edit.

-- name: accounted_gaps
-- arguments: ids, from
SELECT g.job_id, g.schedule_id, g.from_at, g.through_at, g.reason FROM dbjobs_gaps g WHERE g.job_id IN (SELECT value FROM json_each(?1)) AND g.through_at > ?2
ORDER BY g.job_id, g.schedule_id, g.from_at;

-- name: accounted_rules
-- arguments: ids
SELECT r.job_id, r.schedule_id, r.rule, r.ends, r.since FROM dbjobs_plan_rules r WHERE r.job_id IN (SELECT value FROM json_each(?1)) AND r.rule <> '' ORDER BY r.job_id, r.schedule_id;

-- name: accounted_runs
-- arguments: ids, from
SELECT r.job_id, r.scheduled_for FROM dbjobs_runs r WHERE r.job_id IN (SELECT value FROM json_each(?1)) AND r.occurrence LIKE 'at:%' AND r.scheduled_for > ?2;

-- name: advance
-- arguments: rows
UPDATE dbjobs_plans AS p
SET next_run = d.next_run, decided_through = d.decided_through, parked = d.parked,
  last_scheduled_for = d.last_scheduled_for, last_run_id = d.last_run_id, last_state = d.last_state,
  last_finished_at = d.last_finished_at, last_success_at = d.last_success_at, last_error = d.last_error,
  streak = d.streak, cycles = d.cycles, runs_made = d.runs_made, startup_ids = d.startup_ids,
  repeat_from = d.repeat_from, skips = d.skips, version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'version' AS version, value ->> 'next_run' AS next_run, value ->> 'decided_through' AS decided_through, value ->> 'parked' AS parked, value ->> 'last_scheduled_for' AS last_scheduled_for,
  value ->> 'last_run_id' AS last_run_id, value ->> 'last_state' AS last_state, value ->> 'last_finished_at' AS last_finished_at, value ->> 'last_success_at' AS last_success_at, value ->> 'last_error' AS last_error, value ->> 'streak' AS streak,
  value ->> 'cycles' AS cycles, value ->> 'runs_made' AS runs_made, value ->> 'startup_ids' AS startup_ids, value ->> 'repeat_from' AS repeat_from, value ->> 'skips' AS skips FROM jsonb_each(?1)) AS d
WHERE p.job_id = d.job_id AND p.version = d.version;

-- name: advance_due
-- arguments: now, rows
UPDATE dbjobs_plans AS p
SET next_run = d.next_run, decided_through = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), last_scheduled_for = d.last_scheduled_for, runs_made = p.runs_made + 1,
  version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'version' AS version, value ->> 'next_run' AS next_run, value ->> 'last_scheduled_for' AS last_scheduled_for FROM jsonb_each(?2)) AS d
WHERE p.job_id = d.job_id AND p.version = d.version;

-- name: attempts
-- arguments: id, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, a.output FROM dbjobs_attempts a WHERE a.run_id = ?1 ORDER BY a.number DESC LIMIT ?2;

-- name: back_off
-- arguments: now, later_ms, run_error, id, fence, holder, number
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds'), lease_until = NULL, error = ?3
WHERE id = ?4 AND fence = ?5 AND holder = ?6 AND state = 'running' AND attempts = ?7;

-- name: batch_ends
-- arguments: ids
SELECT e.id, e.job_id, e.meets, e.after_job_id, e.run_id, CASE WHEN (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN 1 ELSE 0 END,
  CASE WHEN a.job_id IS NULL OR r.id IS NULL AND j.id IS NOT NULL OR r.state NOT IN ('waiting', 'queued', 'running') AND NOT (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN 1 ELSE 0 END,
  CASE WHEN (SELECT m.id FROM dbjobs_runs m WHERE m.job_id = e.job_id AND m.occurrence = 'all:' || e.meets) IS NULL THEN 0 ELSE 1 END,
  (SELECT COUNT(*) FROM dbjobs_job_after o WHERE o.job_id = e.job_id), j.name, r.interval_start, r.interval_end, r.args
FROM (SELECT DISTINCT job_id, meets FROM dbjobs_job_ends WHERE seen = 0 AND job_id IN (SELECT value FROM json_each(?1))) AS n
JOIN dbjobs_job_ends e ON e.job_id = n.job_id AND e.meets = n.meets
LEFT JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
LEFT JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
LEFT JOIN dbjobs_jobs j ON j.id = e.after_job_id
ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: batch_followers
-- arguments: ids
SELECT a.after_job_id, j.id, j.queue, j.priority, a.on_end,
  (SELECT COUNT(*) FROM dbjobs_job_after o WHERE o.job_id = a.job_id),
  CASE WHEN j.max_runs <= (SELECT p.runs_made FROM dbjobs_plans p WHERE p.job_id = j.id) THEN 1 ELSE 0 END
FROM dbjobs_job_after a CROSS JOIN dbjobs_jobs j
WHERE a.after_job_id IN (SELECT value FROM json_each(?1)) AND j.id = a.job_id AND j.removed_at IS NULL AND j.enabled = 1 ORDER BY a.after_job_id, j.id;

-- name: batch_inputs
-- arguments: ids
SELECT id, owner, name, created_at, changed_at, plan_input, CASE WHEN planned IS NOT plan_input THEN COALESCE(planned, '') END,
  CASE WHEN (SELECT a.job_id FROM dbjobs_job_after a WHERE a.job_id = dbjobs_jobs.id LIMIT 1) IS NULL THEN 0 ELSE 1 END
FROM dbjobs_jobs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id;

-- name: batch_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, j.plan_input FROM dbjobs_jobs j WHERE j.id IN (SELECT value FROM json_each(?1)) ORDER BY j.id;

-- name: batch_links
-- arguments: ids
SELECT l.job_id, l.schedule_id, CASE WHEN l.planned <> l.schedule_id THEN NULL ELSE l.created_at END, CASE WHEN l.planned = l.schedule_id THEN 1 ELSE 0 END,
  1, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT s.job_id, s.id, s.created_at, 1, 0, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs_schedules s
WHERE s.job_id IN (SELECT value FROM json_each(?1)) AND (SELECT l.job_id FROM dbjobs_job_schedules l WHERE l.job_id = s.job_id AND l.schedule_id = s.id) IS NULL;

-- name: batch_pauses
-- arguments: ids, since
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p  WHERE p.scope = 'job' AND p.subject_id IN (SELECT value FROM json_each(?1)) AND p.ends_at > ?2
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p  WHERE p.scope IN ('all', 'owner', 'schedule', 'tag') AND p.ends_at > ?2 ORDER BY 1;

-- name: batch_plans
-- arguments: ids, whatever, up_to
SELECT job_id, owner, version, next_run, decided_through, parked, last_scheduled_for, last_run_id, last_state, last_finished_at,
  last_success_at, last_error, streak, cycles, runs_made, startup_ids, repeat_from, skips, (SELECT r.number FROM dbjobs_runs r  WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1)
FROM dbjobs_plans p WHERE job_id IN (SELECT value FROM json_each(?1)) AND (?2 = 1 OR next_run <= ?3) ORDER BY job_id ;

-- name: batch_rules
-- arguments: ids
SELECT r.job_id, r.schedule_id, r.input, r.rule, r.ends, r.changed_at,
  CASE WHEN r.rule <> '' AND (l.planned = r.schedule_id OR l.job_id IS NULL AND s.job_id = r.job_id) AND s.plan_input = r.input THEN 1 ELSE 0 END
FROM dbjobs_plan_rules r
LEFT JOIN dbjobs_job_schedules l ON l.job_id = r.job_id AND l.schedule_id = r.schedule_id
LEFT JOIN dbjobs_schedules s ON s.id = r.schedule_id
WHERE r.job_id IN (SELECT value FROM json_each(?1)) ORDER BY r.job_id, r.schedule_id;

-- name: batch_runs
-- arguments: ids
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = r.job_id LIMIT 1) FROM dbjobs_runs r WHERE settled_at IS NULL AND job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id, id;

-- name: batch_started
-- arguments: ids, occurrence
SELECT job_id FROM dbjobs_runs WHERE job_id IN (SELECT value FROM json_each(?1)) AND occurrence = ?2;

-- name: batch_steps
-- arguments: ids
SELECT job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure
FROM dbjobs_steps WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id, position;

-- name: begin_attempt
-- arguments: id, number, step, step_name, attempt, fence, holder, now
INSERT INTO dbjobs_attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, coalesce(?8, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')));

-- name: begin_attempts
-- arguments: now, rows
INSERT INTO dbjobs_attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
SELECT d.run_id, d.number, d.step, d.step_name, d.attempt, d.fence, d.holder, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'number' AS number, value ->> 'step' AS step, value ->> 'step_name' AS step_name, value ->> 'attempt' AS attempt, value ->> 'fence' AS fence,
  value ->> 'holder' AS holder FROM jsonb_each(?2)) AS d;

-- name: brief_users
-- arguments: id
SELECT l.job_id FROM dbjobs_job_schedules l CROSS JOIN dbjobs_jobs j
WHERE l.schedule_id = ?1 AND j.id = l.job_id AND j.remove_when_done = 1 AND j.removed_at IS NULL ORDER BY l.job_id;

-- name: bury_runs
-- arguments: now, rows
UPDATE dbjobs_runs AS r SET state = d.state, held_by = NULL, lease_until = NULL, cancel_at = NULL, finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), settled_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
  expires_at = d.expires_at, error = coalesce(d.error, r.error)
FROM (SELECT value ->> 'id' AS id, value ->> 'state' AS state, value ->> 'was' AS was, value ->> 'lease' AS lease, value ->> 'expires_at' AS expires_at, value ->> 'error' AS error FROM jsonb_each(?2)) AS d
WHERE r.id = d.id AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease) AND r.settled_at IS NULL;

-- name: calendar_users
SELECT calendar, COUNT(*) FROM dbjobs_schedules WHERE calendar <> '' GROUP BY calendar;

-- name: calendars
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END FROM dbjobs_calendars ORDER BY name;

-- name: calendars_named
-- arguments: ids
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END FROM dbjobs_calendars WHERE name IN (SELECT value FROM json_each(?1));

-- name: cancellable
-- arguments: job
SELECT id FROM dbjobs_runs INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = ?1 AND state IN ('waiting', 'queued', 'running') ORDER BY id ;

-- name: catalogue
SELECT name FROM sqlite_master WHERE type IN ('table', 'index', 'view');

-- name: changes
-- arguments: kind, subject, id, limit
SELECT changed_at, changed_by, kind, COALESCE(subject_id, 0), subject, action, reason, was, became FROM dbjobs_changes
WHERE (?1 = '' OR kind = ?1) AND (?2 = '' OR subject = ?2 OR subject_id = ?3) ORDER BY id DESC LIMIT ?4;

-- name: circles
-- arguments: ids
WITH RECURSIVE up (id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (SELECT value FROM json_each(?1))
  UNION
  SELECT up.id, a.after_job_id FROM up JOIN dbjobs_job_after a ON a.job_id = up.after_id WHERE up.after_id <> up.id
)
SELECT id, after_id, 1, 0, 0 FROM up WHERE after_id = id
UNION ALL
SELECT a.job_id, a.after_job_id, 0,
  CASE WHEN (SELECT o.id FROM dbjobs_jobs o WHERE o.id = a.after_job_id) IS NULL THEN 1 ELSE 0 END,
  CASE WHEN planned IS NOT after_job_id THEN 1 ELSE 0 END
FROM dbjobs_job_after a WHERE a.job_id IN (SELECT value FROM json_each(?1));

-- name: coming_jobs
-- arguments: ids, overdue, until, limit
SELECT p.job_id FROM dbjobs_plans p
WHERE p.owner IN (SELECT value FROM json_each(?1)) AND p.next_run > ?2 AND p.next_run < ?3 AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1 ORDER BY p.next_run, p.job_id LIMIT ?4;

-- name: contents_jobs
SELECT COUNT(*) FROM dbjobs_jobs WHERE removed_at IS NULL;

-- name: contents_runs
SELECT COUNT(*), COUNT(CASE WHEN state = 'running' THEN 1 END) FROM dbjobs_runs;

-- name: contents_schedules
SELECT COUNT(*) FROM dbjobs_schedules WHERE job_id IS NULL;

-- name: count_ahead
-- arguments: now, later_ms
SELECT COUNT(DISTINCT u.job_id), MAX(u.until_at) FROM (
  SELECT p.job_id, CASE WHEN p.decided_through > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN p.decided_through
    ELSE (SELECT MAX(r.wake_at) FROM dbjobs_runs r WHERE r.job_id = p.job_id AND (r.wake_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds'))) END AS until_at
  FROM dbjobs_plans p WHERE p.decided_through > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') OR p.job_id IN (SELECT r.job_id FROM dbjobs_runs r WHERE (r.wake_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')))
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p 
  JOIN dbjobs_jobs j ON p.scope = 'all' OR p.scope = 'owner' AND j.owner = p.subject OR p.scope = 'tag' AND EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE t.value = p.subject)
  WHERE p.scope IN ('tag', 'owner', 'all') AND p.ends_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (p.resumed_at IS NOT NULL OR p.since > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p  JOIN dbjobs_jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.ends_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (p.resumed_at IS NOT NULL OR p.since > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs_pauses p 
  JOIN dbjobs_job_schedules l ON l.schedule_id = p.subject_id JOIN dbjobs_jobs j ON j.id = l.job_id
  WHERE p.scope = 'schedule' AND p.ends_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (p.resumed_at IS NOT NULL OR p.since > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')) AND j.removed_at IS NULL
  UNION ALL
  SELECT p.job_id, j.created_at FROM dbjobs_jobs j JOIN dbjobs_plans p ON p.job_id = j.id
  WHERE j.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND j.removed_at IS NULL AND strftime('%Y-%m-%dT%H:%M:%f000Z', p.next_run, '1 seconds') > j.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs_schedules s JOIN dbjobs_plans p ON p.job_id = s.job_id
  WHERE s.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND strftime('%Y-%m-%dT%H:%M:%f000Z', p.next_run, '1 seconds') > s.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs_schedules s JOIN dbjobs_job_schedules l ON l.schedule_id = s.id JOIN dbjobs_plans p ON p.job_id = l.job_id
  WHERE s.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND strftime('%Y-%m-%dT%H:%M:%f000Z', p.next_run, '1 seconds') > s.created_at
  UNION ALL
  SELECT j.id, j.not_before FROM dbjobs_jobs j WHERE j.start_rule IS NOT NULL AND j.not_before > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (SELECT CASE WHEN l.changed_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(CASE WHEN json_valid(l.was) THEN l.was ->> 'not_before' END, '') <> COALESCE(CASE WHEN json_valid(l.became) THEN l.became ->> 'not_before' END, '')) ORDER BY l.id DESC LIMIT 1) = 1 AND j.removed_at IS NULL
) u;

-- name: count_jobs
SELECT COUNT(*) FROM dbjobs_jobs WHERE removed_at IS NULL AND name IS NOT NULL;

-- name: count_paused
-- arguments: now
SELECT COUNT(*) FROM (
  SELECT j.id FROM dbjobs_pauses p JOIN dbjobs_jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND j.removed_at IS NULL
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs_pauses p WHERE p.scope IN ('all', 'owner') AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) LIMIT 1) x CROSS JOIN dbjobs_jobs j
  WHERE j.removed_at IS NULL AND (EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) OR j.owner IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))))
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) LIMIT 1) x CROSS JOIN dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t
  WHERE j.removed_at IS NULL AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1
  UNION
  SELECT j.id FROM dbjobs_pauses p JOIN dbjobs_job_schedules k ON k.schedule_id = p.subject_id JOIN dbjobs_jobs j ON j.id = k.job_id
  WHERE p.scope = 'schedule' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND j.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id)
    AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules c ON c.id = l.schedule_id WHERE l.job_id = j.id AND c.name IS NOT NULL
      AND c.id NOT IN (SELECT q.subject_id FROM dbjobs_pauses q WHERE q.scope = 'schedule' AND q.subject_id IS NOT NULL AND q.resumed_at IS NULL AND q.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))))
) u;

-- name: count_paused_itself
-- arguments: now
SELECT u.jobs, j.owner, j.name FROM (
  SELECT COUNT(DISTINCT p.job_id) AS jobs, MIN(p.job_id) AS id FROM dbjobs_pauses i  JOIN dbjobs_plans p ON p.job_id = i.subject_id
  WHERE i.scope = 'job' AND i.paused_by = 'dbjobs itself' AND i.resumed_at IS NULL AND i.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1) u
JOIN dbjobs_jobs j ON j.id = u.id;

-- name: created_ahead
-- arguments: job, now, later_ms
SELECT j.id, j.owner, j.name FROM dbjobs_jobs j
WHERE (j.id = ?1 OR ?1 = 0) AND j.removed_at IS NULL AND (j.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds') OR j.start_rule IS NOT NULL AND j.not_before > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds') AND (SELECT CASE WHEN l.changed_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(CASE WHEN json_valid(l.was) THEN l.was ->> 'not_before' END, '') <> COALESCE(CASE WHEN json_valid(l.became) THEN l.became ->> 'not_before' END, '')) ORDER BY l.id DESC LIMIT 1) = 1
  OR j.id IN (SELECT s.job_id FROM dbjobs_schedules s WHERE s.job_id IS NOT NULL AND s.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds'))
  OR j.id IN (SELECT l.job_id FROM dbjobs_schedules s JOIN dbjobs_job_schedules l ON l.schedule_id = s.id WHERE s.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds')))
ORDER BY j.id;

-- name: crowd_queue
-- arguments: job, times, queue
SELECT COUNT(*), MAX(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END) FROM dbjobs_runs r INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = ?1 AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT ?2 THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN ?3 WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END = ?3;

-- name: crowd_runs
-- arguments: job, times, queue, from, to, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = r.job_id LIMIT 1) FROM dbjobs_runs r INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = ?1 AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT ?2 THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN ?3 WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END BETWEEN ?4 AND ?5
ORDER BY r.created_at, r.id LIMIT ?6;

-- name: date_calendar
-- arguments: now, name
UPDATE dbjobs_schedules SET changed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE calendar = ?2 AND calendar <> '';

-- name: date_own_rules
-- arguments: now, rows
UPDATE dbjobs_schedules AS s SET changed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'id' AS id, value ->> 'rule' AS rule, value ->> 'zone' AS zone, value ->> 'nonexistent' AS nonexistent, value ->> 'ambiguous' AS ambiguous, value ->> 'calendar' AS calendar,
  value ->> 'on_holiday' AS on_holiday FROM jsonb_each(?2)) AS d
WHERE s.id = d.id AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous
  OR s.calendar <> d.calendar OR s.on_holiday <> d.on_holiday);

-- name: delete_after
-- arguments: ids
DELETE FROM dbjobs_job_after WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: delete_attempts
-- arguments: ids
DELETE FROM dbjobs_attempts WHERE run_id IN (SELECT value FROM json_each(?1));

-- name: delete_calendar
-- arguments: name
DELETE FROM dbjobs_calendars WHERE name = ?1;

-- name: delete_changes
-- arguments: ids
DELETE FROM dbjobs_changes WHERE id IN (SELECT value FROM json_each(?1));

-- name: delete_ends
-- arguments: rows
DELETE FROM dbjobs_job_ends WHERE id IN (
  SELECT e.id FROM (SELECT value ->> 'id' AS id, value ->> 'run_id' AS run_id FROM jsonb_each(?1)) AS d CROSS JOIN dbjobs_job_ends e ON e.id = d.id AND e.run_id = d.run_id);

-- name: delete_first_attempts
-- arguments: id, through
DELETE FROM dbjobs_attempts WHERE run_id = ?1 AND number <= ?2;

-- name: delete_gaps
-- arguments: rows
DELETE FROM dbjobs_gaps WHERE rowid IN (
  SELECT g.rowid FROM jsonb_each(?1) AS d CROSS JOIN dbjobs_gaps g ON g.job_id = d.value ->> 'job_id' AND g.schedule_id = d.value ->> 'schedule_id'
    AND g.through_at = d.value ->> 'through_at' AND g.reason = d.value ->> 'reason');

-- name: delete_links
-- arguments: rows
DELETE FROM dbjobs_job_schedules WHERE rowid IN (
  SELECT l.rowid FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id FROM jsonb_each(?1)) AS d CROSS JOIN dbjobs_job_schedules l ON l.job_id = d.job_id AND l.schedule_id = d.schedule_id);

-- name: delete_lost_links
-- arguments: ids
DELETE FROM dbjobs_job_schedules
WHERE job_id IN (SELECT value FROM json_each(?1)) AND (SELECT s.id FROM dbjobs_schedules s WHERE s.id = dbjobs_job_schedules.schedule_id) IS NULL;

-- name: delete_pauses
-- arguments: ids, now, later_ms
DELETE FROM dbjobs_pauses WHERE id IN (SELECT value FROM json_each(?1)) AND ends_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds');

-- name: delete_runs
-- arguments: ids
DELETE FROM dbjobs_runs WHERE id IN (SELECT value FROM json_each(?1)) AND settled_at IS NOT NULL;

-- name: delete_schedule
-- arguments: id
DELETE FROM dbjobs_schedules WHERE id = ?1;

-- name: delete_steps
-- arguments: ids
DELETE FROM dbjobs_steps WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: delete_ticks
-- arguments: through, now, later_ms
DELETE FROM dbjobs_ticks WHERE since <= ?1 AND last_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds');

-- name: drop_attempts
-- arguments: rows
DELETE FROM dbjobs_attempts WHERE rowid IN (
  SELECT a.rowid FROM jsonb_each(?1) AS d CROSS JOIN dbjobs_attempts a ON a.run_id = d.value ->> 'id' AND a.number = d.value ->> 'number'
    AND a.fence = d.value ->> 'fence' AND a.state = 'running');

-- name: drop_gaps_ahead
-- arguments: ids, now
DELETE FROM dbjobs_gaps WHERE job_id IN (SELECT value FROM json_each(?1)) AND from_at >= coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

-- name: drop_ticks_ahead
-- arguments: now, later_ms
DELETE FROM dbjobs_ticks WHERE since > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds');

-- name: durations
-- arguments: most
SELECT r.job_id, r.started_at, r.finished_at FROM dbjobs_plans p CROSS JOIN dbjobs_runs r
WHERE r.job_id = p.job_id AND r.number > p.runs_made - ?1 AND r.state = 'succeeded' AND r.started_at IS NOT NULL AND r.finished_at IS NOT NULL;

-- name: edited_since
-- arguments: job, at
SELECT l.was FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = ?1 AND l.action = 'change'
AND l.changed_at > ?2 ORDER BY l.id LIMIT 1;

-- name: enable_job
-- arguments: enabled, now, id
UPDATE dbjobs_jobs SET enabled = ?1, changed_at = coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE id = ?3 AND removed_at IS NULL;

-- name: end_attempt
-- arguments: state, now, waited_ms, rows, error, code, line, severity, detail, hint, output, result, id, number, fence
UPDATE dbjobs_attempts SET state = ?1, finished_at = coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), started_at = CASE WHEN ?3 > 0 THEN min(coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), strftime('%Y-%m-%dT%H:%M:%f000Z', started_at, (?3 / 1000.0) || ' seconds')) ELSE started_at END, rows_affected = ?4, error = ?5, error_code = ?6,
  error_line = ?7, error_severity = ?8, error_detail = ?9, error_hint = ?10, output = ?11, result = ?12
WHERE run_id = ?13 AND number = ?14 AND fence = ?15 AND state = 'running';

-- name: end_attempts
-- arguments: now, rows
UPDATE dbjobs_attempts AS a SET state = d.state, finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
  started_at = CASE WHEN d.waited_ms > 0 THEN min(coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), strftime('%Y-%m-%dT%H:%M:%f000Z', a.started_at, (d.waited_ms / 1000.0) || ' seconds')) ELSE a.started_at END, rows_affected = d.rows_affected, error = d.error,
  error_code = d.code, error_line = d.line, error_severity = d.severity, error_detail = d.detail, error_hint = d.hint, output = d.output,
  result = d.result
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'state' AS state, value ->> 'rows_affected' AS rows_affected, value ->> 'error' AS error,
  value ->> 'code' AS code, value ->> 'line' AS line, value ->> 'severity' AS severity, value ->> 'detail' AS detail, value ->> 'hint' AS hint, value ->> 'output' AS output,
  value ->> 'result' AS result, value ->> 'waited_ms' AS waited_ms FROM jsonb_each(?2)) AS d
WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: end_gaps_now
-- arguments: now, ids
UPDATE dbjobs_gaps SET through_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE job_id IN (SELECT value FROM json_each(?2)) AND through_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

-- name: end_idle_pauses
-- arguments: now, resumed_by, ids
UPDATE dbjobs_pauses SET resumed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), resumed_by = ?2 WHERE id IN (SELECT value FROM json_each(?3)) AND resumed_at IS NULL AND ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND (
  scope = 'job' AND (SELECT j.id FROM dbjobs_jobs j WHERE j.id = dbjobs_pauses.subject_id AND j.removed_at IS NULL) IS NULL
  OR scope = 'schedule' AND (SELECT s.id FROM dbjobs_schedules s WHERE s.id = dbjobs_pauses.subject_id) IS NULL);

-- name: end_pauses
-- arguments: now, resumed_by, scope, ids
UPDATE dbjobs_pauses SET resumed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), resumed_by = ?2
WHERE scope = ?3 AND subject_id IN (SELECT value FROM json_each(?4)) AND resumed_at IS NULL AND ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'));

-- name: end_queued
-- arguments: now, rows
UPDATE dbjobs_runs AS r SET state = 'failed', finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), error = d.error
FROM (SELECT value ->> 'id' AS id, value ->> 'error' AS error FROM jsonb_each(?2)) AS d
WHERE r.id = d.id AND r.state = 'queued';

-- name: engine
SELECT 'SQLite ' || sqlite_version();

-- name: enlist
-- arguments: ids
INSERT INTO dbjobs_plans (job_id)
SELECT value FROM json_each(?1) WHERE true
ON CONFLICT DO NOTHING;

-- name: enlist_groups
-- arguments: ids
INSERT INTO dbjobs_group_plans (name)
SELECT name FROM dbjobs_groups WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name
ON CONFLICT DO NOTHING;

-- name: examine_after
-- arguments: limit
SELECT f.job_id, NULL, NULL, COUNT(*) FROM dbjobs_job_after f JOIN dbjobs_jobs l ON l.id = f.job_id AND l.removed_at IS NULL
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = f.after_job_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)) GROUP BY f.job_id ORDER BY f.job_id LIMIT ?1;

-- name: examine_attempts
-- arguments: limit
SELECT r.job_id, MIN(a.started_at), MIN(CAST(a.run_id AS CHAR(36))), COUNT(*)
FROM dbjobs_attempts a LEFT JOIN dbjobs_runs r ON r.id = a.run_id
WHERE r.id IS NULL OR a.number > r.attempts OR a.state = 'running' AND r.settled_at IS NOT NULL
GROUP BY r.job_id ORDER BY r.job_id LIMIT ?1;

-- name: examine_calendars
-- arguments: limit
SELECT s.job_id, NULL, s.calendar, COUNT(*) FROM dbjobs_schedules s
WHERE s.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs_calendars c WHERE c.name = s.calendar)
  AND (s.job_id IS NULL OR EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = s.job_id AND j.removed_at IS NULL))
GROUP BY s.job_id, s.calendar ORDER BY s.job_id, s.calendar LIMIT ?1;

-- name: examine_gaps
-- arguments: limit
SELECT g.job_id, MIN(g.from_at), NULL, COUNT(*) FROM dbjobs_gaps g WHERE g.from_at >= g.through_at GROUP BY g.job_id ORDER BY g.job_id LIMIT ?1;

-- name: examine_groups
-- arguments: limit
SELECT j.id, NULL, j.group_name, 1 FROM dbjobs_jobs j
WHERE j.removed_at IS NULL AND j.group_name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_groups g WHERE g.name = j.group_name)
ORDER BY j.id LIMIT ?1;

-- name: examine_links
-- arguments: limit
SELECT l.job_id, NULL, NULL, COUNT(*) FROM dbjobs_job_schedules l
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_schedules s WHERE s.id = l.schedule_id) GROUP BY l.job_id ORDER BY l.job_id LIMIT ?1;

-- name: examine_numbers
-- arguments: limit
SELECT p.job_id, NULL, NULL, p.runs_made FROM dbjobs_plans p
WHERE p.runs_made < (SELECT MAX(r.number) FROM dbjobs_runs r WHERE r.job_id = p.job_id) ORDER BY p.job_id LIMIT ?1;

-- name: examine_older
-- arguments: limit
SELECT r.job_id, MIN(r.created_at), NULL, COUNT(*) FROM dbjobs_runs r JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.created_at < j.created_at GROUP BY r.job_id ORDER BY r.job_id LIMIT ?1;

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
GROUP BY o.job_id, o.what ORDER BY o.job_id, o.what LIMIT ?1;

-- name: examine_pauses
-- arguments: now, limit
SELECT NULL, p.since, p.scope, p.id FROM dbjobs_pauses p WHERE p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND (
  p.scope = 'job' AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = p.subject_id)
  OR p.scope = 'schedule' AND NOT EXISTS (SELECT 1 FROM dbjobs_schedules s WHERE s.id = p.subject_id))
ORDER BY p.id LIMIT ?2;

-- name: examine_queued
-- arguments: now, later_ms, limit
SELECT NULL, MIN(r.queued_since), r.queue, COUNT(*) FROM dbjobs_runs r WHERE r.queued_since < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') GROUP BY r.queue ORDER BY r.queue LIMIT ?3;

-- name: examine_runs
-- arguments: now, later_ms, limit
SELECT job_id, MIN(created_at), what, COUNT(*) FROM (
  SELECT r.job_id, r.created_at,
    CASE WHEN r.state = 'running' AND r.lease_until IS NULL THEN 'running without a lease'
      WHEN r.state NOT IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.settled_at IS NOT NULL THEN 'settled before the end'
      WHEN r.state IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.finished_at IS NULL THEN 'ended at no time'
      WHEN r.settled_at IS NOT NULL AND r.expires_at IS NULL THEN 'kept for ever'
      WHEN r.finished_at < r.started_at THEN 'ended before it began'
      WHEN r.interval_end < r.interval_start THEN 'of an interval that ends before it begins'
      WHEN r.occurrence LIKE 'at:%' AND r.scheduled_for IS NULL THEN 'of a nominal time that is missing'
      WHEN r.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN 'made in the future'
      WHEN (r.wake_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')) THEN 'begun in the future'
      WHEN r.state = 'waiting' AND r.held_by = 'predecessor' AND r.fence = 0 AND NOT EXISTS (SELECT 1 FROM dbjobs_runs o
        WHERE o.job_id = r.job_id AND o.id <> r.id AND o.settled_at IS NULL) THEN 'waiting for a run that is not there' END AS what
  FROM dbjobs_runs r) AS odd
WHERE what IS NOT NULL GROUP BY job_id, what ORDER BY job_id, what LIMIT ?3;

-- name: examine_stuck
-- arguments: now, later_ms, limit
SELECT r.job_id, MIN(COALESCE(r.finished_at, r.wake_at)), r.state, COUNT(*) FROM dbjobs_runs r
WHERE r.wake_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND COALESCE(r.finished_at, r.wake_at) < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') GROUP BY r.job_id, r.state ORDER BY MIN(COALESCE(r.finished_at, r.wake_at)) LIMIT ?3;

-- name: examine_ticks
-- arguments: now, later_ms, limit
SELECT NULL, t.last_at, t.name, COUNT(*) FROM dbjobs_ticks t WHERE t.last_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') GROUP BY t.name, t.last_at ORDER BY t.name LIMIT ?3;

-- name: examine_twice
-- arguments: limit
SELECT r.job_id, r.scheduled_for, NULL, COUNT(*) FROM dbjobs_runs r
WHERE r.occurrence LIKE 'at:%' AND r.scheduled_for IS NOT NULL
GROUP BY r.job_id, r.scheduled_for HAVING COUNT(*) > 1 ORDER BY r.job_id, r.scheduled_for LIMIT ?1;

-- name: examine_unplanned
-- arguments: now, later_ms, limit
SELECT j.id, j.created_at, NULL, 1 FROM dbjobs_jobs j
WHERE j.enabled = 1 AND j.removed_at IS NULL AND j.created_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND NOT EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id)
ORDER BY j.id LIMIT ?3;

-- name: expire_later
-- arguments: ids
UPDATE dbjobs_runs SET expires_at = COALESCE(CASE WHEN finished_at < '9000-01-01' THEN strftime('%Y-%m-%dT%H:%M:%f000Z', finished_at, ((SELECT j.keep_age_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id) / 1000.0) || ' seconds') END, expires_at) WHERE id IN (SELECT value FROM json_each(?1)) AND settled_at IS NOT NULL;

-- name: expired_runs
-- arguments: now, limit
SELECT id FROM dbjobs_runs WHERE expires_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND settled_at IS NOT NULL ORDER BY expires_at LIMIT ?2;

-- name: extend_gaps
-- arguments: now, rows
UPDATE dbjobs_gaps AS g SET through_at = d.through_at, recorded_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'from_at' AS from_at, value ->> 'through_at' AS through_at, value ->> 'reason' AS reason, value ->> 'rule' AS rule FROM jsonb_each(?2)) AS d
WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule;

-- name: failures
-- arguments: since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r
    WHERE r.created_at >= ?1 AND r.created_at < ?2 AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state IS NOT NULL AND r.created_at < ?1 AND (r.finished_at >= ?1 OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs_runs r INDEXED BY dbjobs_runs_open
    WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.created_at < ?1 AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
CROSS JOIN dbjobs_attempts a LEFT JOIN dbjobs_jobs j ON j.id = f.job_id
WHERE a.run_id = f.id AND a.state IN ('failed', 'lost') AND a.finished_at >= ?1 AND a.finished_at < ?2
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT ?3;

-- name: failures_of_job
-- arguments: job, since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs_runs r CROSS JOIN dbjobs_attempts a LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ?1 AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0) AND a.run_id = r.id AND a.state IN ('failed', 'lost') AND a.finished_at >= ?2 AND a.finished_at < ?3
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT ?4;

-- name: failures_of_runs
-- arguments: since, until, job, limit
SELECT r.id, r.attempt, r.fence, r.holder, r.state, r.started_at, r.finished_at, r.error, j.owner, j.name, r.job_id, r.number
FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state IN ('failed', 'lost') AND r.finished_at >= ?1 AND r.finished_at < ?2 AND (r.job_id = ?3 OR ?3 = 0)
AND (NOT EXISTS (SELECT 1 FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.state IN ('failed', 'lost'))
  OR NOT EXISTS (SELECT 1 FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number >= r.attempts))
ORDER BY r.finished_at DESC, r.id DESC LIMIT ?4;

-- name: figures
-- arguments: before
SELECT
  (SELECT COUNT(*) FROM dbjobs_runs r WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = 'running'),
  (SELECT COUNT(*) FROM dbjobs_runs r WHERE r.wake_at < ?1 AND COALESCE(r.finished_at, r.wake_at) < ?1)
  + (SELECT COUNT(*) FROM dbjobs_runs r WHERE r.queued_since < ?1)
FROM (SELECT 1 AS one) AS source;

-- name: file_faults
SELECT quick_check FROM pragma_quick_check;

-- name: file_size
SELECT p.page_count * s.page_size, f.freelist_count * s.page_size FROM pragma_page_count p, pragma_page_size s, pragma_freelist_count f;

-- name: finish
-- arguments: final, now, run_error, id, fence, holder, number
UPDATE dbjobs_runs SET state = ?1, finished_at = coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), lease_until = NULL, error = ?3
WHERE id = ?4 AND fence = ?5 AND holder = ?6 AND state = 'running' AND attempts = ?7 AND (?1 <> 'lost' OR cancel_at IS NULL);

-- name: finish_jobs
-- arguments: now, ids
UPDATE dbjobs_jobs SET removed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), done_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE id IN (SELECT value FROM json_each(?2));

-- name: finish_links
-- arguments: ids
DELETE FROM dbjobs_job_schedules WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: finish_runs
-- arguments: now, rows
UPDATE dbjobs_runs AS r SET state = d.final, finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), lease_until = NULL, error = d.run_error,
  settled_at = CASE WHEN d.job_id IS NOT NULL THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) END,
  expires_at = CASE WHEN d.job_id IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (d.keep_ms / 1000.0) || ' seconds') END
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'final' AS final, value ->> 'run_error' AS run_error, value ->> 'job_id' AS job_id,
  value ->> 'keep_ms' AS keep_ms FROM jsonb_each(?2)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: finish_schedules
-- arguments: ids
DELETE FROM dbjobs_schedules WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: first_installation
-- arguments: now
INSERT INTO dbjobs_installation (id, version, oldest, migrated_at)
SELECT 1, 0, 0, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) FROM (SELECT 1 AS one) AS source
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_installation WHERE id = 1);

-- name: first_keepers
-- arguments: name, limit
SELECT s.id, s.name, s.job_id, j.owner, j.name FROM dbjobs_schedules s LEFT JOIN dbjobs_jobs j ON j.id = s.job_id
WHERE s.calendar = ?1 AND s.calendar <> '' ORDER BY s.id LIMIT ?2;

-- name: first_users
-- arguments: id, limit
SELECT j.owner, j.name FROM dbjobs_job_schedules l JOIN dbjobs_jobs j ON j.id = l.job_id
WHERE l.schedule_id = ?1 ORDER BY l.job_id LIMIT ?2;

-- name: followers
-- arguments: ids
SELECT a.after_job_id, j.id, j.owner, j.name FROM dbjobs_job_after a CROSS JOIN dbjobs_jobs j
WHERE a.after_job_id IN (SELECT value FROM json_each(?1)) AND j.id = a.job_id AND j.removed_at IS NULL;

-- name: forget_ends
-- arguments: ids, since
DELETE FROM dbjobs_job_ends WHERE job_id IN (SELECT value FROM json_each(?1)) AND ended_at < ?2;

-- name: forget_jobs
-- arguments: ids
DELETE FROM dbjobs_jobs WHERE id IN (SELECT value FROM json_each(?1));

-- name: forget_plan_rules
-- arguments: ids
DELETE FROM dbjobs_plan_rules WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: forget_plans
-- arguments: ids
DELETE FROM dbjobs_plans WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: gaps
-- arguments: job, limit
SELECT job_id, schedule_id, from_at, through_at, reason, rule, recorded_at FROM dbjobs_gaps
WHERE job_id = ?1 ORDER BY through_at DESC, schedule_id LIMIT ?2;

-- name: group_caps
-- arguments: here, ids
SELECT g.name, g.max_running,
  (SELECT COALESCE(SUM((SELECT COUNT(*) FROM dbjobs_runs r
     WHERE settled_at IS NULL AND job_id = j.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL))), 0)
   FROM dbjobs_jobs j WHERE j.group_name = g.name AND j.id NOT IN (SELECT value FROM json_each(?1)))
FROM dbjobs_groups g WHERE g.name IN (SELECT value FROM json_each(?2));

-- name: group_held
-- arguments: ids, here, limit
SELECT name, run, job_id, priority, ready_at FROM (
  SELECT j.group_name AS name, r.id AS run, r.job_id, r.priority, r.ready_at,
    ROW_NUMBER() OVER (PARTITION BY j.group_name ORDER BY r.priority DESC, r.ready_at, r.id) AS place
  FROM dbjobs_jobs j CROSS JOIN dbjobs_runs r INDEXED BY dbjobs_runs_open
  WHERE settled_at IS NULL AND job_id = j.id AND r.state = 'waiting' AND r.held_by = 'group' AND j.group_name IN (SELECT value FROM json_each(?1)) AND j.id NOT IN (SELECT value FROM json_each(?2))) AS h
WHERE place <= ?3 ORDER BY name, place;

-- name: group_runs
-- arguments: name, state
SELECT r.id FROM dbjobs_jobs j CROSS JOIN dbjobs_runs r
WHERE settled_at IS NULL AND job_id = j.id AND j.group_name = ?1 AND r.state = ?2 AND r.started_at IS NULL AND (r.state = 'queued' OR r.held_by = 'group');

-- name: groups
SELECT name, max_running FROM dbjobs_groups ORDER BY name;

-- name: groups_quoted
-- arguments: ids
SELECT q.name, q.quoted FROM (SELECT g.name, quote(g.name) AS quoted FROM dbjobs_groups g) AS q WHERE q.quoted IN (SELECT value FROM json_each(?1));

-- name: heartbeat
-- arguments: now, lease_ms, ids, holder
UPDATE dbjobs_runs SET lease_until = strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') WHERE id IN (SELECT value FROM json_each(?3)) AND holder = ?4 AND state = 'running';

-- name: held
-- arguments: ids, holder
SELECT id, fence, cancel_at FROM dbjobs_runs WHERE id IN (SELECT value FROM json_each(?1)) AND holder = ?2 AND state = 'running';

-- name: hold_runs
-- arguments: ids
UPDATE dbjobs_runs SET state = 'waiting' WHERE id IN (SELECT value FROM json_each(?1)) AND state = 'queued' AND started_at IS NULL;

-- name: hook_uses
-- arguments: name, full
SELECT id, owner, name, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs_jobs
WHERE removed_at IS NULL AND COALESCE(on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) IS NOT NULL
AND (?1 = '' OR ?1 IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) OR ?2 IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused));

-- name: hooks
-- arguments: ids
SELECT id, owner, name, queue, priority, enabled FROM dbjobs_jobs WHERE removed_at IS NULL AND name IN (SELECT value FROM json_each(?1));

-- name: hooks_in_use
SELECT DISTINCT owner, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs_jobs
WHERE removed_at IS NULL AND COALESCE(on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) IS NOT NULL;

-- name: insert_after
-- arguments: rows
INSERT INTO dbjobs_job_after (job_id, after_job_id, on_end)
SELECT d.job_id, d.after_job_id, d.on_end FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'after_job_id' AS after_job_id, value ->> 'on_end' AS on_end FROM jsonb_each(?1)) AS d;

-- name: insert_calendar
-- arguments: name, working_days, days, description, manifest
INSERT INTO dbjobs_calendars (name, working_days, days, description, owner, manifest)
VALUES (?1, ?2, ?3, ?4, '', ?5);

-- name: insert_changes
-- arguments: now, rows
INSERT INTO dbjobs_changes (changed_at, changed_by, kind, subject_id, subject, action, reason)
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), 'dbjobs itself', 'job', d.subject_id, d.subject, d.action, d.reason
FROM (SELECT value ->> 'subject_id' AS subject_id, value ->> 'subject' AS subject, value ->> 'action' AS action, value ->> 'reason' AS reason FROM jsonb_each(?2)) AS d;

-- name: insert_ends
-- arguments: now, rows
INSERT INTO dbjobs_job_ends (job_id, meets, after_job_id, run_id, ended_at)
SELECT d.job_id, d.meets, d.after_job_id, d.run_id, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'meets' AS meets, value ->> 'after_job_id' AS after_job_id, value ->> 'run_id' AS run_id FROM jsonb_each(?2)) AS d
WHERE NOT EXISTS (SELECT 1 FROM dbjobs_job_ends e JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
  JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
  WHERE e.job_id = d.job_id AND e.meets = d.meets AND e.after_job_id = d.after_job_id AND r.id <> d.run_id AND (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end'))
ON CONFLICT (job_id, meets, after_job_id) DO UPDATE SET run_id = excluded.run_id, ended_at = excluded.ended_at, seen = 0;

-- name: insert_gaps
-- arguments: now, rows
INSERT INTO dbjobs_gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
SELECT d.job_id, d.schedule_id, d.from_at, d.through_at, d.reason, d.rule, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'from_at' AS from_at, value ->> 'through_at' AS through_at, value ->> 'reason' AS reason, value ->> 'rule' AS rule FROM jsonb_each(?2)) AS d
WHERE (SELECT g.job_id FROM dbjobs_gaps g WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id
  AND g.through_at = d.through_at AND g.reason = d.reason) IS NULL;

-- name: insert_group
-- arguments: name, max_running
INSERT INTO dbjobs_groups (name, max_running, owner) VALUES (?1, ?2, '');

-- name: insert_jobs
-- arguments: now, rows
INSERT INTO dbjobs_jobs (owner, name, created_at, changed_at, description, enabled, tags, queue, priority, group_name, overlap, max_running,
  missed, missed_limit, missed_within_ms, missed_grace_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms, retry_jitter,
  max_deliveries, on_error, pause_after_failures, timeout_ms, jitter_ms, max_runs, not_before, not_after,
  start_rule, start_zone, repeat_after_ms, on_startup, keep_runs, keep_age_ms, remove_when_done, on_failed,
  on_recovered, on_missed, on_late, on_lost, on_parked, on_paused, heartbeat_url, heartbeat_start,
  heartbeat_success, heartbeat_failure, manifest)
SELECT d.owner, d.name, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), d.description, d.enabled, d.tags, d.queue, d.priority, d.group_name, d.overlap, d.max_running,
  d.missed, d.missed_limit, d.missed_within_ms, d.missed_grace_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms, d.retry_jitter,
  d.max_deliveries, d.on_error, d.pause_after_failures, d.timeout_ms, d.jitter_ms, d.max_runs, d.not_before, d.not_after,
  d.start_rule, d.start_zone, d.repeat_after_ms, d.on_startup, d.keep_runs, d.keep_age_ms, d.remove_when_done, d.on_failed,
  d.on_recovered, d.on_missed, d.on_late, d.on_lost, d.on_parked, d.on_paused, d.heartbeat_url, d.heartbeat_start,
  d.heartbeat_success, d.heartbeat_failure, d.manifest
FROM (SELECT value ->> 'owner' AS owner, value ->> 'name' AS name, value ->> 'description' AS description, value ->> 'enabled' AS enabled, value ->> 'tags' AS tags, value ->> 'queue' AS queue,
  value ->> 'priority' AS priority, value ->> 'group_name' AS group_name, value ->> 'overlap' AS overlap, value ->> 'max_running' AS max_running, value ->> 'missed' AS missed, value ->> 'missed_limit' AS missed_limit,
  value ->> 'missed_within_ms' AS missed_within_ms, value ->> 'missed_grace_ms' AS missed_grace_ms, value ->> 'retry_attempts' AS retry_attempts, value ->> 'retry_backoff_ms' AS retry_backoff_ms, value ->> 'retry_max_backoff_ms' AS retry_max_backoff_ms, value ->> 'retry_jitter' AS retry_jitter,
  value ->> 'max_deliveries' AS max_deliveries, value ->> 'on_error' AS on_error, value ->> 'pause_after_failures' AS pause_after_failures, value ->> 'timeout_ms' AS timeout_ms, value ->> 'jitter_ms' AS jitter_ms, value ->> 'max_runs' AS max_runs,
  value ->> 'not_before' AS not_before, value ->> 'not_after' AS not_after, value ->> 'start_rule' AS start_rule, value ->> 'start_zone' AS start_zone, value ->> 'repeat_after_ms' AS repeat_after_ms, value ->> 'on_startup' AS on_startup,
  value ->> 'keep_runs' AS keep_runs, value ->> 'keep_age_ms' AS keep_age_ms, value ->> 'remove_when_done' AS remove_when_done, value ->> 'on_failed' AS on_failed, value ->> 'on_recovered' AS on_recovered, value ->> 'on_missed' AS on_missed,
  value ->> 'on_late' AS on_late, value ->> 'on_lost' AS on_lost, value ->> 'on_parked' AS on_parked, value ->> 'on_paused' AS on_paused, value ->> 'heartbeat_url' AS heartbeat_url, value ->> 'heartbeat_start' AS heartbeat_start,
  value ->> 'heartbeat_success' AS heartbeat_success, value ->> 'heartbeat_failure' AS heartbeat_failure, value ->> 'manifest' AS manifest FROM jsonb_each(?2)) AS d;

-- name: insert_links
-- arguments: now, rows
INSERT INTO dbjobs_job_schedules (job_id, schedule_id, created_at)
SELECT d.job_id, d.schedule_id, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id FROM jsonb_each(?2)) AS d;

-- name: insert_own_rules
-- arguments: now, rows
INSERT INTO dbjobs_schedules (job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
SELECT d.job_id, d.rule, d.zone, d.nonexistent, d.ambiguous, d.calendar, d.on_holiday, d.calendar_version, d.description, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'rule' AS rule, value ->> 'zone' AS zone, value ->> 'nonexistent' AS nonexistent, value ->> 'ambiguous' AS ambiguous, value ->> 'calendar' AS calendar,
  value ->> 'on_holiday' AS on_holiday, value ->> 'calendar_version' AS calendar_version, value ->> 'description' AS description FROM jsonb_each(?2)) AS d;

-- name: insert_pauses
-- arguments: now, rows
INSERT INTO dbjobs_pauses (scope, subject_id, reason, paused_by, since)
SELECT 'job', d.subject_id, d.reason, 'dbjobs itself', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'subject_id' AS subject_id, value ->> 'reason' AS reason FROM jsonb_each(?2)) AS d;

-- name: insert_plan_rules
-- arguments: rows
INSERT INTO dbjobs_plan_rules (job_id, schedule_id, input, rule, ends, since, changed_at)
SELECT d.job_id, d.schedule_id, d.input, d.rule, d.ends, d.since, d.changed_at
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'input' AS input, value ->> 'rule' AS rule, value ->> 'ends' AS ends, value ->> 'since' AS since,
  value ->> 'changed_at' AS changed_at FROM jsonb_each(?1)) AS d;

-- name: insert_queued
-- arguments: now, rows
INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT value ->> 'id', value ->> 'job_id', value ->> 'number', value ->> 'occurrence', 'queued', value ->> 'queue',
  COALESCE(value ->> 'priority', 0), value ->> 'scheduled_for', value ->> 'interval_start', value ->> 'scheduled_for', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM jsonb_each(?2) WHERE true
ON CONFLICT DO NOTHING;

-- name: insert_runs
-- arguments: now, rows
INSERT INTO dbjobs_runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args, COALESCE(d.ready_at, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))), coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM (SELECT value ->> 'id' AS id, value ->> 'job_id' AS job_id, value ->> 'number' AS number, value ->> 'occurrence' AS occurrence, value ->> 'state' AS state, value ->> 'held_by' AS held_by,
  value ->> 'queue' AS queue, value ->> 'priority' AS priority, value ->> 'scheduled_for' AS scheduled_for, value ->> 'interval_start' AS interval_start, value ->> 'interval_end' AS interval_end, value ->> 'args' AS args,
  value ->> 'ready_at' AS ready_at FROM jsonb_each(?2)) AS d WHERE true
ON CONFLICT DO NOTHING;

-- name: insert_schedule
-- arguments: name, job, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, manifest, now
INSERT INTO dbjobs_schedules (name, job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, owner, manifest, created_at, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, coalesce(?12, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), coalesce(?12, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')));

-- name: insert_steps
-- arguments: rows
INSERT INTO dbjobs_steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure)
SELECT d.job_id, d.position, d.name, d.executor, d.spec, d.timeout_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms,
  d.retry_jitter, d.on_success, d.on_failure
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'position' AS position, value ->> 'name' AS name, value ->> 'executor' AS executor, value ->> 'spec' AS spec, value ->> 'timeout_ms' AS timeout_ms,
  value ->> 'retry_attempts' AS retry_attempts, value ->> 'retry_backoff_ms' AS retry_backoff_ms, value ->> 'retry_max_backoff_ms' AS retry_max_backoff_ms, value ->> 'retry_jitter' AS retry_jitter, value ->> 'on_success' AS on_success, value ->> 'on_failure' AS on_failure FROM jsonb_each(?1)) AS d;

-- name: installation
SELECT version, oldest, repeatable, instance, owners, migrated_at FROM dbjobs_installation WHERE id = 1;

-- name: intervals
-- arguments: job, from, to, now
SELECT interval_start, interval_end FROM dbjobs_runs
WHERE job_id = ?1 AND interval_end >= ?2 AND (interval_start IS NULL OR interval_start < ?3)
  AND (interval_end <= coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) OR occurrence NOT LIKE 'at:%')
  AND (state <> 'cancelled' OR attempts > 0 OR occurrence LIKE 'fill:%');

-- name: is_recorded
-- arguments: id, number, fence
SELECT COUNT(*) FROM dbjobs_attempts WHERE run_id = ?1 AND number = ?2 AND fence = ?3 AND state = 'succeeded';

-- name: job_links
-- arguments: ids
SELECT l.job_id, s.id, s.name,
  (SELECT CASE WHEN planned IS NOT schedule_id THEN 1 ELSE 0 END FROM dbjobs_job_schedules x WHERE x.job_id = l.job_id AND x.schedule_id = l.schedule_id),
  (SELECT CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END FROM dbjobs_schedules y WHERE y.id = l.schedule_id), NULL, NULL, NULL
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs_job_after a LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id
WHERE a.job_id IN (SELECT value FROM json_each(?1)) ORDER BY 1, 3;

-- name: job_name
-- arguments: id
SELECT owner, name, (SELECT p.parked FROM dbjobs_plans p WHERE p.job_id = ?1) FROM dbjobs_jobs WHERE id = ?1;

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
  (SELECT c.action FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT COUNT(*) FROM dbjobs_runs INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id),
  (SELECT COUNT(*) FROM dbjobs_runs INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id AND state = 'running'), CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, p.skips
FROM dbjobs_jobs j
LEFT JOIN dbjobs_plans p ON p.job_id = j.id WHERE j.removed_at IS NULL ORDER BY j.name, j.owner;

-- name: jobs_among
-- arguments: ids
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
  (SELECT c.action FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs_changes c WHERE c.id = (SELECT MAX(l.id) FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT COUNT(*) FROM dbjobs_runs INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id),
  (SELECT COUNT(*) FROM dbjobs_runs INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id AND state = 'running'), CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, p.skips
FROM dbjobs_jobs j
LEFT JOIN dbjobs_plans p ON p.job_id = j.id WHERE j.removed_at IS NULL AND j.id IN (SELECT value FROM json_each(?1)) ORDER BY j.name, j.owner;

-- name: jobs_named
-- arguments: ids
SELECT id, owner, name, manifest FROM dbjobs_jobs WHERE removed_at IS NULL AND name IN (SELECT value FROM json_each(?1));

-- name: jobs_owned
-- arguments: manifest
SELECT id, owner, name, manifest FROM dbjobs_jobs WHERE manifest = ?1 AND removed_at IS NULL;

-- name: keyed_run
-- arguments: job, occurrence
SELECT id FROM dbjobs_runs WHERE job_id = ?1 AND occurrence = ?2;

-- name: known_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, j.description, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure,
  j.manifest, j.created_at, j.changed_at, j.plan_input FROM dbjobs_jobs j WHERE j.id IN (SELECT value FROM json_each(?1));

-- name: known_links
-- arguments: ids
SELECT l.job_id, s.id, s.name, 0, 0, NULL, NULL, NULL
FROM dbjobs_job_schedules l LEFT JOIN dbjobs_schedules s ON s.id = l.schedule_id
WHERE l.job_id IN (SELECT value FROM json_each(?1)) AND s.job_id IS NULL
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs_job_after a LEFT JOIN dbjobs_jobs o ON o.id = a.after_job_id
WHERE a.job_id IN (SELECT value FROM json_each(?1)) ORDER BY 1, 3;

-- name: last_step
-- arguments: id
SELECT COALESCE((SELECT a.step_name FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name) FROM dbjobs_runs r WHERE r.id = ?1;

-- name: link_own_rules
-- arguments: now, ids
INSERT INTO dbjobs_job_schedules (job_id, schedule_id, created_at)
SELECT s.job_id, s.id, coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) FROM dbjobs_schedules s WHERE s.job_id IN (SELECT value FROM json_each(?2));

-- name: lock_ahead
-- arguments: now, later_ms, job, limit
SELECT p.job_id, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.job_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.job_id)
FROM dbjobs_plans p WHERE (p.decided_through > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') OR p.job_id IN (SELECT r.job_id FROM dbjobs_runs r WHERE (r.wake_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND COALESCE((SELECT b.started_at FROM dbjobs_attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds'))))
  AND (p.job_id = ?3 OR ?3 = 0) ORDER BY p.job_id LIMIT ?4 ;

-- name: lock_altered
-- arguments: ids
SELECT id FROM dbjobs_schedules WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id ;

-- name: lock_calendar
-- arguments: name
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END FROM dbjobs_calendars WHERE name = ?1 AND planned IS NOT plan_input ;

-- name: lock_calendars
-- arguments: ids
SELECT name FROM dbjobs_calendars WHERE name IN (SELECT value FROM json_each(?1)) ;

-- name: lock_done_schedules
-- arguments: ids
SELECT job_id FROM dbjobs_schedules WHERE job_id IN (SELECT value FROM json_each(?1)) ;

-- name: lock_ending
-- arguments: now, rows
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))
FROM jsonb_each(?2) AS d CROSS JOIN dbjobs_runs r
ON r.id = d.value ->> 'id' AND r.fence = d.value ->> 'fence' AND r.holder = d.value ->> 'holder' AND r.state = 'running' AND r.attempts = d.value ->> 'number'
WHERE d.value ->> 'recorded' IS NULL OR EXISTS (SELECT 1 FROM dbjobs_attempts a
  WHERE a.run_id = r.id AND a.number = r.attempts AND a.fence = r.fence AND a.state = 'succeeded');

-- name: lock_groups
-- arguments: ids
SELECT name FROM dbjobs_group_plans WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name ;

-- name: lock_installation
SELECT version FROM dbjobs_installation WHERE id = 1 ;

-- name: lock_jobs
-- arguments: ids
SELECT id FROM dbjobs_jobs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id ;

-- name: lock_old_gaps
-- arguments: rows, limit
SELECT g.job_id, g.schedule_id, g.through_at, g.reason
FROM jsonb_each(?1) AS d CROSS JOIN dbjobs_gaps g ON g.job_id = d.value ->> 'job_id' AND g.through_at < d.value ->> 'since' AND g.recorded_at < d.value ->> 'since' LIMIT ?2;

-- name: lock_own_schedules
-- arguments: ids
SELECT id, CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END FROM dbjobs_schedules WHERE job_id IN (SELECT value FROM json_each(?1)) ;

-- name: lock_pauses
-- arguments: ids
SELECT id, plan_input FROM dbjobs_pauses WHERE id IN (SELECT value FROM json_each(?1)) ;

-- name: lock_plans
-- arguments: ids
SELECT job_id FROM dbjobs_plans WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id ;

-- name: lock_queued
-- arguments: now, ids, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs_attempts a WHERE a.run_id = r.id), COALESCE((SELECT a.step_name FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name), coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
FROM dbjobs_runs r WHERE r.id IN (SELECT value FROM json_each(?2)) AND state || '' = 'queued'
AND NOT EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))
ORDER BY r.priority DESC, r.ready_at, r.id LIMIT ?3 ;

-- name: lock_removed_jobs
-- arguments: ids, now, later_ms
SELECT j.id, CASE WHEN EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id) THEN 1 ELSE 0 END
FROM dbjobs_jobs j WHERE j.id IN (SELECT value FROM json_each(?1)) AND j.removed_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds') AND (j.done_at IS NULL OR j.manifest IS NULL)
AND (SELECT r.job_id FROM dbjobs_runs r WHERE r.job_id = j.id LIMIT 1) IS NULL
AND (SELECT g.job_id FROM dbjobs_gaps g WHERE g.job_id = j.id LIMIT 1) IS NULL
AND (SELECT f.job_id FROM dbjobs_job_after f WHERE f.after_job_id = j.id LIMIT 1) IS NULL ORDER BY j.id ;

-- name: lock_removed_plans
-- arguments: ids
SELECT job_id FROM dbjobs_plans WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id ;

-- name: lock_runs
-- arguments: ids
SELECT id FROM dbjobs_runs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id ;

-- name: lock_schedules
-- arguments: ids
SELECT id, plan_input FROM dbjobs_schedules WHERE id IN (SELECT value FROM json_each(?1)) ;

-- name: lock_settled
-- arguments: now, ids
SELECT id, COALESCE((SELECT MIN(a.number) FROM dbjobs_attempts a WHERE a.run_id = dbjobs_runs.id), attempts + 1), attempts,
  CASE WHEN COALESCE(CASE WHEN finished_at < '9000-01-01' THEN strftime('%Y-%m-%dT%H:%M:%f000Z', finished_at, ((SELECT j.keep_age_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id) / 1000.0) || ' seconds') END, expires_at) <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN 1 ELSE 0 END, CASE WHEN expires_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN 1 ELSE 0 END
FROM dbjobs_runs WHERE id IN (SELECT value FROM json_each(?2)) AND settled_at IS NOT NULL ORDER BY id ;

-- name: lock_settling
-- arguments: rows
SELECT d.value ->> 'run_id' FROM jsonb_each(?1) AS d CROSS JOIN dbjobs_plans p
ON p.job_id = d.value ->> 'job_id' AND p.version = d.value ->> 'version' AND p.parked IS NULL WHERE (SELECT j.id FROM dbjobs_jobs j WHERE j.id = p.job_id AND CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END = 0) IS NOT NULL AND (SELECT a.job_id FROM dbjobs_job_after a WHERE a.after_job_id = p.job_id LIMIT 1) IS NULL;

-- name: lock_stale_after
-- arguments: ids
SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id, after_job_id ;

-- name: lock_stale_jobs
-- arguments: ids
SELECT id, plan_input FROM dbjobs_jobs WHERE id IN (SELECT value FROM json_each(?1)) ;

-- name: lock_stale_links
-- arguments: ids
SELECT job_id FROM dbjobs_job_schedules WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id, schedule_id ;

-- name: lock_unchanged_jobs
-- arguments: ids
SELECT id FROM dbjobs_jobs WHERE id IN (SELECT value FROM json_each(?1)) AND planned = plan_input ;

-- name: log_changes
-- arguments: now, by, reason, rows
INSERT INTO dbjobs_changes (changed_at, changed_by, kind, subject_id, subject, action, reason, was, became)
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), ?2, d.kind, d.subject_id, d.subject, d.action, ?3, d.was, d.became
FROM (SELECT value ->> 'kind' AS kind, value ->> 'subject_id' AS subject_id, value ->> 'subject' AS subject, value ->> 'action' AS action, value ->> 'was' AS was, value ->> 'became' AS became FROM jsonb_each(?4)) AS d;

-- name: login
SELECT '';

-- name: lose_attempts
-- arguments: now, ids
UPDATE dbjobs_attempts SET state = 'lost', finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE run_id IN (SELECT value FROM json_each(?2)) AND state = 'running';

-- name: manifest_owners
-- arguments: manifest
SELECT 'schedule', name, owner FROM dbjobs_schedules WHERE manifest = ?1 AND name IS NOT NULL AND (SELECT i.owners FROM dbjobs_installation i WHERE i.id = 1) = 1
UNION ALL
SELECT 'calendar', name, owner FROM dbjobs_calendars WHERE manifest = ?1 AND (SELECT i.owners FROM dbjobs_installation i WHERE i.id = 1) = 1;

-- name: mark_after
-- arguments: ids
UPDATE dbjobs_job_after SET planned = after_job_id WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: mark_calendar
-- arguments: name
UPDATE dbjobs_calendars SET planned = plan_input WHERE name = ?1;

-- name: mark_jobs
-- arguments: ids
UPDATE dbjobs_jobs SET planned = plan_input WHERE id IN (SELECT value FROM json_each(?1));

-- name: mark_links
-- arguments: ids
UPDATE dbjobs_job_schedules SET planned = schedule_id WHERE job_id IN (SELECT value FROM json_each(?1))
AND EXISTS (SELECT 1 FROM dbjobs_plan_rules r WHERE r.job_id = dbjobs_job_schedules.job_id AND r.schedule_id = dbjobs_job_schedules.schedule_id);

-- name: mark_pauses
-- arguments: ids
UPDATE dbjobs_pauses SET planned = plan_input WHERE id IN (SELECT value FROM json_each(?1));

-- name: mark_schedules
-- arguments: ids
UPDATE dbjobs_schedules SET planned = plan_input, parked = NULL WHERE id IN (SELECT value FROM json_each(?1)) AND (
  SELECT l.job_id FROM dbjobs_job_schedules l WHERE l.schedule_id = dbjobs_schedules.id
  AND COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> dbjobs_schedules.plan_input
  LIMIT 1) IS NULL
AND (job_id IS NULL OR (SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = dbjobs_schedules.job_id AND r.schedule_id = dbjobs_schedules.id) = plan_input);

-- name: move_steps
-- arguments: rows
UPDATE dbjobs_runs AS r SET step = d.step, step_name = d.step_name
FROM (SELECT value ->> 'id' AS id, value ->> 'step' AS step, value ->> 'step_name' AS step_name FROM jsonb_each(?1)) AS d
WHERE r.id = d.id AND r.state = 'queued';

-- name: need_check
-- arguments: now, zones, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), u.id, NULL, u.id FROM (
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
  SELECT n.job_id FROM dbjobs_runs n INDEXED BY dbjobs_runs_open LEFT JOIN dbjobs_jobs j ON j.id = n.job_id WHERE settled_at IS NULL AND job_id > 0 AND j.id IS NULL
  UNION
  SELECT n.job_id FROM dbjobs_runs n INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id > 0 AND n.state = 'waiting' AND n.held_by = 'group'
  UNION
  SELECT p.job_id FROM dbjobs_jobs j JOIN dbjobs_plans p ON p.job_id = j.id
  WHERE j.repeat_after_ms IS NOT NULL AND j.enabled = 1 AND j.removed_at IS NULL AND (j.max_runs IS NULL OR j.max_runs > p.runs_made)
    AND p.next_run IS NULL AND p.repeat_from = p.last_scheduled_for
    AND NOT EXISTS (SELECT 1 FROM dbjobs_runs n INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id AND settled_at IS NULL AND job_id > 0 AND n.scheduled_for = p.repeat_from AND n.occurrence LIKE 'at:%')
  UNION
  SELECT p.job_id FROM dbjobs_plans p WHERE parked IS NOT NULL
  UNION
  SELECT r.job_id FROM dbjobs_plan_rules r WHERE r.ends <> '' AND r.ends < ?2
) AS u WHERE u.id > ?3 ORDER BY u.id LIMIT ?4;

-- name: need_ended
-- arguments: now, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), job_id, NULL, job_id FROM dbjobs_job_ends WHERE seen = 0 AND job_id > ?2 ORDER BY job_id LIMIT ?3;

-- name: need_job
-- arguments: now, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), id, NULL, id FROM dbjobs_jobs WHERE planned IS NOT plan_input AND id > ?2 ORDER BY id LIMIT ?3;

-- name: need_link
-- arguments: now, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), u.id, NULL, u.id FROM (
  SELECT * FROM (SELECT job_id AS id FROM dbjobs_job_schedules WHERE planned IS NOT schedule_id AND job_id > ?2 ORDER BY job_id LIMIT ?3) AS l
  UNION
  SELECT * FROM (SELECT job_id AS id FROM dbjobs_job_after WHERE planned IS NOT after_job_id AND job_id > ?2 ORDER BY job_id LIMIT ?3) AS a
) AS u ORDER BY u.id LIMIT ?3;

-- name: need_older
-- arguments: now, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), p.job_id, NULL, p.job_id FROM dbjobs_plans p
WHERE p.job_id > ?2 AND p.runs_made < (SELECT r.number FROM dbjobs_runs r  WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1) ORDER BY p.job_id LIMIT ?3;

-- name: need_pause
-- arguments: window, now, id, wide, limit
WITH p AS (SELECT scope, subject_id, subject FROM dbjobs_pauses WHERE planned IS NOT plan_input ORDER BY id LIMIT ?1)
SELECT coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), u.id, NULL, u.id FROM (
  SELECT p.subject_id AS id FROM p WHERE p.scope = 'job' AND p.subject_id > ?3
  UNION
  SELECT l.job_id FROM p CROSS JOIN dbjobs_job_schedules l WHERE p.scope = 'schedule' AND l.schedule_id = p.subject_id AND l.job_id > ?3
  UNION
  SELECT a.id FROM (
    SELECT j.id FROM dbjobs_jobs j
    WHERE j.id > ?4 AND EXISTS (SELECT 1 FROM p WHERE p.scope = 'all' OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE t.value = p.subject))
    AND j.removed_at IS NULL ORDER BY j.id LIMIT ?5) AS a
) AS u ORDER BY u.id LIMIT ?5;

-- name: need_plan
-- arguments: now, owner, up_to, at, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), job_id, next_run, job_id FROM dbjobs_plans
WHERE owner = COALESCE(?2, '') AND next_run <= ?3 AND (next_run, job_id) > (?4, ?5) ORDER BY next_run, job_id LIMIT ?6;

-- name: need_run
-- arguments: now, at, id, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), job_id, wake_at, id, CASE WHEN finished_at > wake_at AND finished_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs
WHERE wake_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND (wake_at, id) > (?2, ?3) ORDER BY wake_at, id LIMIT ?4;

-- name: need_schedule
-- arguments: window, now, id, limit
WITH s AS (SELECT id, job_id, plan_input FROM dbjobs_schedules WHERE planned IS NOT plan_input ORDER BY id LIMIT ?1)
SELECT coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), u.id, NULL, u.id FROM (
  SELECT l.job_id AS id FROM s CROSS JOIN dbjobs_job_schedules l
  WHERE l.schedule_id = s.id
    AND COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> s.plan_input
    AND l.job_id > ?3
  UNION
  SELECT s.job_id FROM s
  WHERE COALESCE((SELECT r.input FROM dbjobs_plan_rules r WHERE r.job_id = s.job_id AND r.schedule_id = s.id), '') <> s.plan_input
    AND s.job_id > ?3
) AS u ORDER BY u.id LIMIT ?4;

-- name: need_startup
-- arguments: now, startup, owner, id, start, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), j.id, NULL, j.id FROM dbjobs_jobs j LEFT JOIN dbjobs_plans p ON p.job_id = j.id AND instr(p.startup_ids, char(10) || ?2 || char(10)) > 0
WHERE j.on_startup = 1 AND p.job_id IS NULL AND j.removed_at IS NULL AND '' = COALESCE(?3, '') AND j.id > ?4
AND NOT EXISTS (SELECT 1 FROM dbjobs_runs r WHERE r.job_id = j.id AND r.occurrence = ?5) ORDER BY j.id LIMIT ?6;

-- name: newest_due
-- arguments: owner, up_to, now
SELECT MAX(t.due) FROM (
  SELECT MAX(next_run) AS due FROM dbjobs_plans WHERE owner = COALESCE(?1, '') AND next_run <= ?2
  UNION ALL
  SELECT MAX(w.since) AS due FROM (SELECT CASE WHEN finished_at > wake_at AND finished_at <= coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs WHERE wake_at <= ?2 ORDER BY wake_at DESC LIMIT 1000) AS w
) AS t;

-- name: next_after
-- arguments: owner, after
SELECT MIN(t.due) FROM (
  SELECT MIN(next_run) AS due FROM dbjobs_plans WHERE owner = COALESCE(?1, '') AND next_run > ?2
  UNION ALL
  SELECT MIN(wake_at) AS due FROM dbjobs_runs WHERE wake_at > ?2
) AS t;

-- name: next_of_owner
-- arguments: owner, now
SELECT (SELECT MIN(next_run) FROM dbjobs_plans WHERE owner = ?1),
  (SELECT next_run FROM dbjobs_plans WHERE owner = ?1 AND next_run <= coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND parked IS NULL ORDER BY next_run LIMIT 1);

-- name: next_queue
-- arguments: after
SELECT queue FROM dbjobs_runs WHERE state = 'queued' AND queue > ?1 ORDER BY queue LIMIT 1;

-- name: next_step
-- arguments: step, now, lease_ms, id, fence, holder, number
UPDATE dbjobs_runs SET step = ?1, attempt = 1, attempts = attempts + 1, losses = 0, lease_until = strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds')
WHERE id = ?4 AND fence = ?5 AND holder = ?6 AND state = 'running' AND attempts = ?7;

-- name: nominal_runs
-- arguments: ids, after, through, filled_after, filled_through, limit
SELECT job_id, scheduled_for FROM dbjobs_runs WHERE job_id IN (SELECT value FROM json_each(?1)) AND occurrence > ?2 AND occurrence <= ?3
UNION ALL SELECT job_id, scheduled_for FROM dbjobs_runs WHERE job_id IN (SELECT value FROM json_each(?1)) AND occurrence > ?4 AND occurrence < ?5 LIMIT ?6;

-- name: old_records
-- arguments: now, later_ms, limit, share
SELECT t.since, NULL, 'tick' FROM (SELECT since FROM dbjobs_ticks  WHERE since < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND last_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') ORDER BY since LIMIT ?3) AS t
UNION ALL
SELECT NULL, p.id, 'pause' FROM (SELECT id FROM dbjobs_pauses 
  WHERE scope IN ('all', 'job', 'owner', 'schedule', 'tag') AND ends_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END = 0 LIMIT ?3) AS p
UNION ALL
SELECT NULL, a.id, 'change' FROM (SELECT id FROM dbjobs_changes  WHERE action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND changed_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') ORDER BY changed_at LIMIT ?3) AS a
UNION ALL
SELECT NULL, c.id, 'change' FROM (
  SELECT n.id, n.changed_at, n.kind, n.subject_id, n.action FROM dbjobs_changes n
  WHERE n.id >= (SELECT CAST(COALESCE(MAX(m.id), 0) * ?4 AS INTEGER) FROM dbjobs_changes m) ORDER BY n.id LIMIT ?3) AS c
WHERE c.changed_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND c.action <> 'rename' AND NOT action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND (c.kind <> 'job'
  OR EXISTS (SELECT 1 FROM dbjobs_changes l INDEXED BY dbjobs_changes_defined WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = c.subject_id AND l.id > c.id
    AND l.action <> 'rename' AND (l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort') OR c.action IN ('pause', 'resume') AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')))
    AND (c.action IN ('pause', 'resume') OR NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = c.subject_id AND j.remove_when_done = 1))
  OR NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = c.subject_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)));

-- name: oldest_kept
-- arguments: ids
SELECT r.job_id, MIN(r.number), MIN(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END)
FROM dbjobs_runs r JOIN dbjobs_plans p ON p.job_id = r.job_id JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id IN (SELECT value FROM json_each(?1)) AND r.number > p.runs_made - j.keep_runs GROUP BY r.job_id;

-- name: oldest_queued
SELECT MIN(queued_since) FROM dbjobs_runs WHERE queued_since IS NOT NULL;

-- name: open_pause
-- arguments: scope, subject_id, subject, now
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs_pauses p 
WHERE p.scope = ?1 AND (p.subject_id = ?2 OR ?2 = 0) AND (?3 = '' OR p.subject = ?3) AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ORDER BY p.id;

-- name: open_runs
-- arguments: now, limit
SELECT g.state, g.held_by, g.begun, g.later, g.queue, g.cap, g.runs, g.created, g.ready, j.owner, j.name FROM (
  SELECT s.state, s.held_by, s.begun, s.later, s.queue, s.cap, COUNT(*) AS runs, MIN(s.created_at) AS created, MIN(s.ready_at) AS ready, MIN(s.job_id) AS job_id
  FROM (SELECT r.state, r.held_by, CASE WHEN r.started_at IS NULL THEN 0 ELSE 1 END AS begun,
      CASE WHEN r.ready_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN 1 ELSE 0 END AS later, r.queue, r.created_at,
      COALESCE(r.queued_since, r.ready_at) AS ready_at, r.job_id,
      CASE WHEN r.held_by = 'group' THEN (SELECT x.group_name FROM dbjobs_jobs x WHERE x.id = r.job_id) END AS cap
    FROM dbjobs_runs r WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state IN ('waiting', 'queued', 'running')) AS s
  GROUP BY s.state, s.held_by, s.begun, s.later, s.queue, s.cap) AS g
LEFT JOIN dbjobs_jobs j ON j.id = g.job_id ORDER BY g.created, g.job_id LIMIT ?2;

-- name: own_plans
-- arguments: ids
UPDATE dbjobs_plans SET owner = COALESCE((SELECT '' FROM dbjobs_jobs j WHERE j.id = dbjobs_plans.job_id), owner) WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: own_rules
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.job_id IN (SELECT value FROM json_each(?1));

-- name: own_schedules
-- arguments: ids
SELECT job_id FROM dbjobs_schedules WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: owners
WITH RECURSIVE o (owner) AS (
  SELECT MIN(p.owner) FROM dbjobs_plans p
  UNION ALL
  SELECT (SELECT MIN(p.owner) FROM dbjobs_plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner FROM o WHERE owner IS NOT NULL ORDER BY owner;

-- name: park_plans
-- arguments: rows
UPDATE dbjobs_plans AS p SET parked = d.parked, next_run = d.next_run
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'parked' AS parked, value ->> 'next_run' AS next_run FROM jsonb_each(?1)) AS d
WHERE p.job_id = d.job_id;

-- name: park_schedule
-- arguments: parked, id
UPDATE dbjobs_schedules SET parked = ?1 WHERE id = ?2 AND planned = plan_input;

-- name: past_renames
-- arguments: ids
SELECT kind, COALESCE(subject_id, 0), subject, was FROM dbjobs_changes WHERE action = 'rename' AND subject IN (SELECT value FROM json_each(?1));

-- name: path
SELECT '', '';

-- name: pause
-- arguments: scope, subject_id, subject, reason, paused_by, now, until_at, until_as
INSERT INTO dbjobs_pauses (scope, subject_id, subject, reason, paused_by, since, until_at, until_as)
VALUES (?1, ?2, ?3, ?4, ?5, coalesce(?6, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), ?7, ?8);

-- name: pauses
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, j.owner, j.name, s.name
FROM dbjobs_pauses p
LEFT JOIN dbjobs_jobs j ON p.scope = 'job' AND j.id = p.subject_id
LEFT JOIN dbjobs_schedules s ON p.scope = 'schedule' AND s.id = p.subject_id
ORDER BY p.id DESC LIMIT ?1;

-- name: pauses_ahead
-- arguments: now, later_ms, job, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p 
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.ends_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (p.resumed_at IS NOT NULL OR p.since > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')) AND (p.subject_id = ?3 AND p.scope = 'job' OR ?3 = 0)
ORDER BY p.id LIMIT ?4;

-- name: pauses_among
-- arguments: ids, now, wide
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id), NULL
FROM dbjobs_pauses p  WHERE p.scope = 'job' AND p.subject_id IN (SELECT value FROM json_each(?1)) AND p.resumed_at IS NULL AND p.ends_at > coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p  WHERE ?3 = 1 AND p.scope IN ('schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ORDER BY 1 DESC;

-- name: pauses_held
-- arguments: now, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs_jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p 
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ORDER BY CASE p.scope WHEN 'all' THEN 0 ELSE 1 END, p.id DESC LIMIT ?2;

-- name: pauses_left
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs_pauses p  WHERE planned IS NOT plan_input AND p.resumed_at IS NOT NULL ORDER BY p.id DESC LIMIT ?1;

-- name: predecessors
-- arguments: ids
WITH RECURSIVE up (job_id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs_job_after WHERE job_id IN (SELECT value FROM json_each(?1))
  UNION
  SELECT a.job_id, a.after_job_id FROM up JOIN dbjobs_job_after a ON a.job_id = up.after_id
)
SELECT up.job_id, j.id, j.owner, j.name FROM up CROSS JOIN dbjobs_jobs j WHERE j.id = up.after_id AND j.removed_at IS NULL;

-- name: probe
-- arguments: now, queue, name
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), i.version, i.oldest, i.instance, i.owners, 0, 0,
  (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))),
  (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.ends_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))),
  (SELECT MIN(next_run) FROM dbjobs_plans WHERE owner = ''),
  (SELECT next_run FROM dbjobs_plans WHERE owner = '' AND next_run <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND parked IS NULL ORDER BY next_run LIMIT 1),
  (SELECT wake_at FROM dbjobs_runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT CASE WHEN finished_at > wake_at AND finished_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN finished_at ELSE wake_at END AS since FROM dbjobs_runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT id FROM dbjobs_jobs WHERE planned IS NOT plan_input ORDER BY id LIMIT 1),
  COALESCE((SELECT job_id FROM dbjobs_job_schedules WHERE planned IS NOT schedule_id ORDER BY job_id LIMIT 1),
    (SELECT job_id FROM dbjobs_job_after WHERE planned IS NOT after_job_id ORDER BY job_id LIMIT 1)),
  (SELECT id FROM dbjobs_schedules WHERE planned IS NOT plan_input ORDER BY id LIMIT 1),
  (SELECT id FROM dbjobs_pauses WHERE planned IS NOT plan_input ORDER BY id LIMIT 1),
  (SELECT name FROM dbjobs_calendars WHERE planned IS NOT plan_input ORDER BY name LIMIT 1),
  (SELECT job_id FROM dbjobs_job_ends WHERE seen = 0 ORDER BY job_id LIMIT 1),
  (SELECT queued_since FROM dbjobs_runs WHERE state = 'queued' AND queue = ?2 AND 1 = 1 ORDER BY priority DESC, ready_at, id LIMIT 1),
  (SELECT MIN(owner) FROM dbjobs_plans), (SELECT MAX(owner) FROM dbjobs_plans),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE parked IS NOT NULL AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE streak > 0 AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  CASE WHEN (SELECT expires_at FROM dbjobs_runs WHERE expires_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ORDER BY expires_at LIMIT 1) IS NULL THEN 0 ELSE 1 END,
  t.since, t.last_at, t.began_at, t.checked_at, COALESCE(t.passes, 0), '', ''
FROM dbjobs_installation i
LEFT JOIN dbjobs_ticks t ON t.name = ?3 AND t.since = (SELECT MAX(since) FROM dbjobs_ticks WHERE name = ?3)
WHERE i.id = 1;

-- name: queued_ids
-- arguments: queue, login, within_ms, timed, now, ids, until, holder, limit
SELECT id FROM dbjobs_runs WHERE state = 'queued' AND queue = ?1
AND (?2 = '' OR 1 = 1)
AND (?3 = 0 OR
  COALESCE((SELECT j.timeout_ms FROM dbjobs_jobs j WHERE j.id = dbjobs_runs.job_id), CASE WHEN ?4 THEN ?3 + 1 ELSE 0 END) <= ?3)
AND NOT EXISTS (SELECT 1 FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?5, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))
AND CASE WHEN id IN (SELECT value FROM json_each(?6)) THEN 1 WHEN created_at > ?7 AND created_at <= coalesce(?5, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))
  AND COALESCE((SELECT b.holder FROM dbjobs_runs b WHERE b.id = CASE WHEN dbjobs_runs.occurrence LIKE 'after:%' THEN substr(dbjobs_runs.occurrence, 7, 36) WHEN dbjobs_runs.occurrence LIKE 'hook:%' THEN substr(dbjobs_runs.occurrence, instr(substr(dbjobs_runs.occurrence, 6), ':') + 6, 36) END), '') <> ?8 THEN 0 ELSE 1 END = 1
ORDER BY priority DESC, ready_at, id LIMIT ?9;

-- name: read_now
-- arguments: now
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) FROM (SELECT 1 AS one) AS source;

-- name: read_thaw
-- arguments: now
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (SELECT MAX(p.ends_at) FROM dbjobs_pauses p WHERE p.scope = 'all' AND p.ends_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) FROM (SELECT 1 AS one) AS source;

-- name: recall
-- arguments: ids
SELECT p.job_id, (SELECT MAX(r.number) FROM dbjobs_runs r WHERE r.job_id = p.job_id),
  (SELECT MAX(r.scheduled_for) FROM dbjobs_runs r WHERE r.job_id = p.job_id AND r.occurrence LIKE 'at:%'),
  (SELECT MAX(g.through_at) FROM dbjobs_gaps g WHERE g.job_id = p.job_id)
FROM dbjobs_plans p WHERE p.job_id IN (SELECT value FROM json_each(?1));

-- name: recent_gaps
-- arguments: since, limit
SELECT g.job_id, j.owner, j.name, g.schedule_id, g.from_at, g.through_at, g.reason, g.rule, g.recorded_at FROM dbjobs_gaps g LEFT JOIN dbjobs_jobs j ON j.id = g.job_id
WHERE g.through_at >= ?1 ORDER BY g.through_at DESC, g.job_id, g.schedule_id LIMIT ?2;

-- name: record_attempt
-- arguments: now, waited_ms, rows, output, result, id, number, fence, holder
UPDATE dbjobs_attempts SET state = 'succeeded', finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), started_at = CASE WHEN ?2 > 0 THEN min(coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), strftime('%Y-%m-%dT%H:%M:%f000Z', started_at, (?2 / 1000.0) || ' seconds')) ELSE started_at END,
  rows_affected = ?3, output = ?4, result = ?5
WHERE run_id = ?6 AND number = ?7 AND fence = ?8 AND state = 'running'
AND (SELECT 1 FROM dbjobs_runs WHERE id = ?6 AND fence = ?8 AND holder = ?9 AND state = 'running' AND attempts = ?7 );

-- name: record_first_tick
-- arguments: name, now, began, checked, holder, version, decided, started, failed, error, took_ms
INSERT INTO dbjobs_ticks (name, since, last_at, began_at, checked_at, holder, version, decided, started, failed, error, took_ms)
VALUES (?1, coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- name: record_migration
-- arguments: version, oldest, now
UPDATE dbjobs_installation SET version = ?1, oldest = ?2, migrated_at = coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE id = 1;

-- name: record_repeatable
-- arguments: repeatable
UPDATE dbjobs_installation SET repeatable = ?1 WHERE id = 1;

-- name: record_tick
-- arguments: now, later_ms, began, checked, regular, holder, version, decided, started, failed, error, took_ms, name, since
UPDATE dbjobs_ticks SET since = CASE WHEN last_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN last_at ELSE since END, last_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')),
  began_at = CASE WHEN began_at > ?3 AND began_at <= coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN began_at ELSE COALESCE(?3, began_at) END, checked_at = COALESCE(?4, checked_at),
  passes = passes + ?5, holder = ?6, version = ?7, decided = decided + ?8,
  started = started + ?9, failed = failed + ?10, error = ?11, took_ms = ?12
WHERE name = ?13 AND since = ?14;

-- name: recorded_runs
-- arguments: ids
SELECT r.id, r.job_id, a.finished_at FROM dbjobs_runs r JOIN dbjobs_attempts a ON a.run_id = r.id AND a.number = r.attempts
WHERE r.id IN (SELECT value FROM json_each(?1)) AND r.state = 'running' AND a.fence = r.fence AND a.state = 'succeeded';

-- name: redeliver
-- arguments: now, later_ms, lost, run_error, id, fence, holder, number
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds'), lease_until = NULL, losses = losses + ?3,
  attempt = attempt - 1, error = ?4
WHERE id = ?5 AND fence = ?6 AND holder = ?7 AND state = 'running' AND attempts = ?8;

-- name: remove_jobs
-- arguments: now, ids
UPDATE dbjobs_jobs SET removed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE id IN (SELECT value FROM json_each(?2)) AND removed_at IS NULL;

-- name: removed_job
-- arguments: owner, name
SELECT id FROM dbjobs_jobs WHERE owner = ?1 AND name = ?2 AND removed_at IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: removed_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, CASE WHEN j.done_at IS NULL THEN 0 ELSE 1 END, l.became
FROM dbjobs_jobs j
LEFT JOIN dbjobs_changes l INDEXED BY dbjobs_changes_defined ON j.done_at IS NOT NULL AND l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort')
WHERE j.removed_at IS NOT NULL AND j.name IN (SELECT value FROM json_each(?1)) ORDER BY j.id;

-- name: rename_job
-- arguments: name, id
UPDATE dbjobs_jobs SET name = ?1 WHERE id = ?2;

-- name: rename_schedule
-- arguments: name, id
UPDATE dbjobs_schedules SET name = ?1 WHERE id = ?2;

-- name: reopen
-- arguments: now, step, step_name, id
UPDATE dbjobs_runs SET state = 'waiting', held_by = NULL, ready_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), step = ?2, step_name = ?3, attempt = 0, losses = 0, lease_until = NULL,
  cancel_at = NULL, cancel_by = NULL, started_at = NULL, finished_at = NULL, settled_at = NULL, expires_at = NULL, error = NULL
WHERE id = ?4 AND state IN ('failed', 'cancelled', 'lost') AND settled_at IS NOT NULL;

-- name: request_cancel
-- arguments: now, by, ids
UPDATE dbjobs_runs SET cancel_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), cancel_by = ?2, state = CASE WHEN state = 'queued' THEN 'waiting' ELSE state END
WHERE id IN (SELECT value FROM json_each(?3)) AND state IN ('waiting', 'queued', 'running') AND cancel_at IS NULL;

-- name: request_run
-- arguments: id, job, occurrence, queue, priority, at, from, to, args, ready, now, step, step_name
INSERT INTO dbjobs_runs (id, job_id, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, args, ready_at, created_at, step, step_name)
VALUES (?1, ?2, ?3, 'waiting', ?4, ?5, ?6, ?7, ?8, ?9, ?10, coalesce(?11, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), ?12, ?13);

-- name: resume
-- arguments: now, resumed_by, missed, scope, subject_id, subject
UPDATE dbjobs_pauses SET resumed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), resumed_by = ?2, missed = ?3
WHERE scope = ?4 AND (subject_id = ?5 OR ?5 = 0) AND (?6 = '' OR subject = ?6)
AND resumed_at IS NULL AND (until_at IS NULL OR until_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')));

-- name: return_runs
-- arguments: now, rows
UPDATE dbjobs_runs AS r SET state = CASE WHEN r.cancel_at IS NULL THEN 'queued' ELSE 'waiting' END, held_by = NULL, lease_until = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), attempt = r.attempt - 1, attempts = r.attempts - 1,
  started_at = CASE WHEN d.fresh THEN NULL ELSE r.started_at END, error = d.error
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'fresh' AS fresh, value ->> 'error' AS error FROM jsonb_each(?2)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: rewind_jobs
-- arguments: now, later_ms, job
UPDATE dbjobs_jobs SET created_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), planned = planned || '.' WHERE created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND removed_at IS NULL AND (id = ?3 OR ?3 = 0);

-- name: rewind_leases
-- arguments: now, ids, later_ms
UPDATE dbjobs_runs SET lease_until = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE settled_at IS NULL AND job_id IN (SELECT value FROM json_each(?2)) AND state = 'running' AND lease_until > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds');

-- name: rewind_open
-- arguments: now, later_ms, ids
UPDATE dbjobs_runs SET created_at = CASE WHEN created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE created_at END,
  started_at = CASE WHEN started_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE started_at END,
  queued_at = CASE WHEN queued_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE queued_at END
WHERE settled_at IS NULL AND job_id IN (SELECT value FROM json_each(?3)) AND (created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') OR started_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') OR queued_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds'));

-- name: rewind_pause
-- arguments: now, until_at, id
UPDATE dbjobs_pauses SET until_at = CASE WHEN since > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND until_at IS NOT NULL THEN ?2 ELSE until_at END,
  since = CASE WHEN since > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE since END,
  resumed_at = CASE WHEN resumed_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE resumed_at END
WHERE id = ?3;

-- name: rewind_plans
-- arguments: now, ids
UPDATE dbjobs_plans SET decided_through = CASE WHEN decided_through > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE decided_through END,
  next_run = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END,
  last_scheduled_for = CASE WHEN last_scheduled_for > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN NULL ELSE last_scheduled_for END,
  repeat_from = CASE WHEN repeat_from > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE repeat_from END
WHERE job_id IN (SELECT value FROM json_each(?2));

-- name: rewind_rules
-- arguments: now, later_ms, job
UPDATE dbjobs_plan_rules SET input = input || ' edited' WHERE schedule_id IN (SELECT s.id FROM dbjobs_schedules s WHERE s.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')
  AND (s.job_id = ?3 OR s.id IN (SELECT l.schedule_id FROM dbjobs_job_schedules l WHERE l.job_id = ?3) OR ?3 = 0));

-- name: rewind_schedules
-- arguments: now, later_ms, job
UPDATE dbjobs_schedules SET created_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), planned = planned || '.' WHERE created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds')
  AND (job_id = ?3 OR id IN (SELECT l.schedule_id FROM dbjobs_job_schedules l WHERE l.job_id = ?3) OR ?3 = 0);

-- name: rewind_start
-- arguments: not_before, id
UPDATE dbjobs_jobs SET not_before = ?1, planned = planned || '.' WHERE id = ?2;

-- name: rewind_waits
-- arguments: now, ids, later_ms
UPDATE dbjobs_runs SET ready_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) WHERE settled_at IS NULL AND job_id IN (SELECT value FROM json_each(?2)) AND state = 'waiting' AND ready_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds')
  AND (started_at IS NOT NULL OR scheduled_for IS NULL OR scheduled_for < ready_at OR scheduled_for <= created_at);

-- name: run_by_number
-- arguments: job, number
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ?1 AND r.number = ?2 ORDER BY r.id LIMIT 2;

-- name: run_by_prefix
-- arguments: low, high
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.id >= ?1 AND r.id <= ?2 ORDER BY r.id LIMIT 2;

-- name: run_job
-- arguments: id
SELECT r.job_id, j.owner, j.name, r.occurrence FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id WHERE r.id = ?1;

-- name: run_latest
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ?1 AND r.number IS NOT NULL ORDER BY r.number DESC LIMIT 1;

-- name: run_undecided
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ?1 AND r.number IS NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: runs
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE (?1 = '' OR r.state = ?1) AND r.created_at >= ?2 AND r.created_at < ?3
AND (?4 = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?4) > 0) AND (?5 = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?5) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?6;

-- name: runs_holding
-- arguments: job, group, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END
FROM (SELECT x.id FROM dbjobs_jobs x WHERE x.id = ?1 UNION ALL SELECT x.id FROM dbjobs_jobs x WHERE x.group_name = ?2) AS m
CROSS JOIN dbjobs_runs r INDEXED BY dbjobs_runs_open JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = m.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL)
ORDER BY COALESCE(r.started_at, r.created_at), r.id LIMIT ?3;

-- name: runs_longest
-- arguments: limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = 'running' ORDER BY r.started_at, r.id LIMIT ?1;

-- name: runs_of_job
-- arguments: job, state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r INDEXED BY dbjobs_runs_number LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.job_id = ?1 AND (?2 = '' OR r.state = ?2) AND r.created_at >= ?3 AND r.created_at < ?4
AND (?5 = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?5) > 0) AND (?6 = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?6) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?7;

-- name: runs_open_of_job
-- arguments: job, state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r INDEXED BY dbjobs_runs_open LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = ?1 AND r.state = ?2 AND r.created_at >= ?3 AND r.created_at < ?4
AND (?5 = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?5) > 0) AND (?6 = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?6) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?7;

-- name: runs_under_way
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r INDEXED BY dbjobs_runs_open LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = ?1 AND r.created_at >= ?2 AND r.created_at < ?3
AND (?4 = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?4) > 0) AND (?5 = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?5) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?6;

-- name: runs_unended
-- arguments: job, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r INDEXED BY dbjobs_runs_open LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = ?1 AND r.state IN ('waiting', 'queued', 'running')
ORDER BY CASE r.state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, r.id LIMIT ?2;

-- name: runs_unwell
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN 0 ELSE 1 END FROM dbjobs_runs r LEFT JOIN dbjobs_jobs j ON j.id = r.job_id
WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state = ?1 AND r.created_at >= ?2 AND r.created_at < ?3
AND (?4 = 0 OR (SELECT COUNT(*) FROM dbjobs_job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = ?4) > 0) AND (?5 = '' OR (SELECT COUNT(*) FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.step_name = ?5) > 0) ORDER BY r.created_at DESC, r.id DESC LIMIT ?6;

-- name: schedule_id
-- arguments: name
SELECT id FROM dbjobs_schedules WHERE name = ?1;

-- name: schedule_jobs
-- arguments: id
SELECT job_id FROM dbjobs_job_schedules WHERE schedule_id = ?1 ORDER BY job_id;

-- name: schedule_users
-- arguments: ids
SELECT schedule_id, COUNT(*) FROM dbjobs_job_schedules WHERE schedule_id IN (SELECT value FROM json_each(?1)) GROUP BY schedule_id;

-- name: schedules
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.name IS NOT NULL ORDER BY s.name;

-- name: schedules_among
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.id IN (SELECT value FROM json_each(?1)) AND s.name IS NOT NULL;

-- name: schedules_named
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, s.parked FROM json_each(?1) AS n CROSS JOIN dbjobs_schedules s ON s.name = n.value;

-- name: schedules_owned
-- arguments: manifest
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS NOT plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs_schedules s WHERE s.manifest = ?1 AND s.name IS NOT NULL;

-- name: see_calendar
-- arguments: version, name
UPDATE dbjobs_schedules SET calendar_version = ?1, planned = NULL WHERE calendar = ?2 AND calendar <> '';

-- name: see_ends
-- arguments: rows
UPDATE dbjobs_job_ends AS e SET seen = 1 FROM (SELECT value ->> 'id' AS id, value ->> 'run_id' AS run_id FROM jsonb_each(?1)) AS d WHERE e.id = d.id AND e.run_id = d.run_id;

-- name: server_settings
SELECT 'synchronous', CAST(synchronous AS text) FROM pragma_synchronous
UNION ALL SELECT 'query_only', CAST(query_only AS text) FROM pragma_query_only;

-- name: set_instance
-- arguments: instance
UPDATE dbjobs_installation SET instance = ?1 WHERE id = 1;

-- name: settle_plans
-- arguments: now, rows
UPDATE dbjobs_plans AS p SET last_run_id = d.run_id, last_state = 'succeeded', last_finished_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), last_success_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), streak = 0,
  cycles = p.cycles + 1, version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'version' AS version, value ->> 'run_id' AS run_id FROM jsonb_each(?2)) AS d WHERE p.job_id = d.job_id AND p.version = d.version;

-- name: skips_ahead
-- arguments: ids, now
SELECT g.job_id, p.skips, g.schedule_id, (SELECT s.name FROM dbjobs_schedules s WHERE s.id = g.schedule_id), g.through_at
FROM dbjobs_gaps g JOIN dbjobs_plans p ON p.job_id = g.job_id
WHERE g.job_id IN (SELECT value FROM json_each(?1)) AND g.from_at >= coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) AND g.reason = 'skipped' ORDER BY g.job_id, g.through_at;

-- name: spare_leases
-- arguments: until, ids
UPDATE dbjobs_runs SET lease_until = ?1 WHERE id IN (SELECT value FROM json_each(?2)) AND state = 'running';

-- name: stale_calendars
-- arguments: window
SELECT name FROM dbjobs_calendars WHERE planned IS NOT plan_input ORDER BY name LIMIT ?1;

-- name: stale_pauses
-- arguments: window
SELECT id, plan_input, CASE WHEN scope IN ('tag', 'owner', 'all') THEN 1 ELSE 0 END
FROM dbjobs_pauses WHERE planned IS NOT plan_input ORDER BY id LIMIT ?1;

-- name: stale_schedules
-- arguments: window
SELECT id, plan_input, 0 FROM dbjobs_schedules WHERE planned IS NOT plan_input ORDER BY id LIMIT ?1;

-- name: standing
-- arguments: ids, overdue, now
SELECT
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE p.owner IN (SELECT value FROM json_each(?1)) AND p.next_run <= ?2 AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1),
  (SELECT COUNT(*) FROM dbjobs_plans p WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?3, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1)
FROM (SELECT 1 AS one) AS source;

-- name: standing_jobs
-- arguments: ids, overdue, limit, now
SELECT kind, job_id FROM (
  SELECT * FROM (SELECT 'overdue' AS kind, p.job_id FROM dbjobs_plans p
    WHERE p.owner IN (SELECT value FROM json_each(?1)) AND p.next_run <= ?2 AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = 1 ORDER BY p.next_run, p.job_id LIMIT ?3) AS a
  UNION ALL
  SELECT * FROM (SELECT 'parked' AS kind, p.job_id FROM dbjobs_plans p WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?3) AS b
  UNION ALL
  SELECT * FROM (SELECT 'failing' AS kind, p.job_id FROM dbjobs_plans p WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?4, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.streak DESC, p.job_id LIMIT ?3) AS c
) AS k;

-- name: starts_ahead
-- arguments: now, later_ms, job
SELECT j.id, j.start_rule, j.start_zone, j.not_before FROM dbjobs_jobs j
WHERE (j.created_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND j.start_rule IS NOT NULL AND j.not_before > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') OR j.start_rule IS NOT NULL AND j.not_before > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND (SELECT CASE WHEN l.changed_at > strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs_changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(CASE WHEN json_valid(l.was) THEN l.was ->> 'not_before' END, '') <> COALESCE(CASE WHEN json_valid(l.became) THEN l.became ->> 'not_before' END, '')) ORDER BY l.id DESC LIMIT 1) = 1) AND j.removed_at IS NULL AND (j.id = ?3 OR ?3 = 0) ORDER BY j.id;

-- name: step_attempts
-- arguments: ids
SELECT job_id, retry_attempts FROM dbjobs_steps WHERE job_id IN (SELECT value FROM json_each(?1)) ORDER BY job_id, position;

-- name: step_facts
-- arguments: id, step
SELECT a.step_name, a.state, a.rows_affected, a.error, a.output, a.result
FROM (SELECT MAX(e.number) AS number FROM dbjobs_attempts e
  WHERE e.run_id = ?1 AND e.state <> 'running' AND (e.step_name <> ?2 OR e.state = 'succeeded'
    OR e.number < (SELECT MAX(o.number) FROM dbjobs_attempts o WHERE o.run_id = ?1 AND o.step_name <> ?2)
    OR e.state = 'failed' AND e.number < (SELECT MAX(o.number) FROM dbjobs_attempts o WHERE o.run_id = ?1 AND o.attempt = 1)
      AND e.started_at >= (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = ?1))
  GROUP BY e.step_name) AS l
JOIN dbjobs_attempts a ON a.run_id = ?1 AND a.number = l.number;

-- name: stretches
-- arguments: name, since, limit
SELECT t.since, t.last_at, t.passes FROM dbjobs_ticks t
WHERE t.name = ?1 AND t.since >= COALESCE((SELECT MAX(l.since) FROM dbjobs_ticks l WHERE l.name = ?1 AND l.since < ?2), ?2)
ORDER BY t.since DESC LIMIT ?3;

-- name: stuck
-- arguments: before, limit
SELECT u.since, j.owner, j.name FROM (
  SELECT * FROM (SELECT COALESCE(r.finished_at, r.wake_at) AS since, r.job_id FROM dbjobs_runs r
    WHERE r.wake_at < ?1 AND COALESCE(r.finished_at, r.wake_at) < ?1 ORDER BY 1, 2 LIMIT ?2) AS a
  UNION ALL
  SELECT * FROM (SELECT r.queued_since AS since, r.job_id FROM dbjobs_runs r WHERE r.queued_since < ?1 ORDER BY 1, 2 LIMIT ?2) AS b
) AS u LEFT JOIN dbjobs_jobs j ON j.id = u.job_id ORDER BY u.since, u.job_id LIMIT ?2;

-- name: surplus_runs
-- arguments: rows, limit
SELECT r.id, d.job_id, r.number <= d.below FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'below' AS below, value ->> 'through' AS through, value ->> 'since' AS since FROM jsonb_each(?1)) AS d
JOIN dbjobs_runs r ON r.job_id = d.job_id AND r.number <= d.through
WHERE r.settled_at IS NOT NULL AND (r.number <= d.below OR r.finished_at < d.since) LIMIT ?2;

-- name: sweep_jobs
-- arguments: now, later_ms, share, limit
SELECT coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), j.id, CASE WHEN (SELECT r.id FROM dbjobs_runs r INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id ORDER BY r.id LIMIT 1 OFFSET 1000) IS NULL
    THEN COALESCE((SELECT p.runs_made FROM dbjobs_plans p WHERE p.job_id = j.id), 0) - (SELECT COUNT(*) FROM dbjobs_runs r INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id)
    ELSE (SELECT COALESCE(r.number, 1) - 1 FROM dbjobs_runs r INDEXED BY dbjobs_runs_open WHERE settled_at IS NULL AND job_id = j.id ORDER BY r.id LIMIT 1) END - j.keep_runs, j.keep_age_ms,
  CASE WHEN j.removed_at < strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?2 / 1000.0) || ' seconds') THEN 1 ELSE 0 END,
  COALESCE((SELECT r.number FROM dbjobs_runs r  WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1), 0),
  (SELECT r.finished_at FROM dbjobs_runs r  WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1)
FROM dbjobs_jobs j
WHERE j.id >= (SELECT CAST(COALESCE(MAX(m.id), 0) * ?3 AS INTEGER) FROM dbjobs_jobs m) ORDER BY j.id LIMIT ?4;

-- name: take
-- arguments: holder, now, lease_ms, ids
UPDATE dbjobs_runs SET state = 'running', fence = fence + 1, holder = ?1, lease_until = strftime('%Y-%m-%dT%H:%M:%f000Z', coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), (?3 / 1000.0) || ' seconds'),
  started_at = COALESCE(started_at, coalesce(?2, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))), attempt = attempt + 1, error = NULL,
  attempts = max(attempts, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs_attempts a WHERE a.run_id = dbjobs_runs.id)) + 1
WHERE id IN (SELECT value FROM json_each(?4)) AND state || '' = 'queued';

-- name: too_long
-- arguments: queue, front, within_ms
SELECT j.owner, j.name, j.timeout_ms, q.since
FROM (SELECT f.job_id, MIN(f.since) AS since FROM
    (SELECT job_id, queued_since AS since FROM dbjobs_runs WHERE state = 'queued' AND queue = ?1 ORDER BY priority DESC, ready_at, id LIMIT ?2) AS f
  WHERE (SELECT t.timeout_ms FROM dbjobs_jobs t WHERE t.id = f.job_id) > ?3 GROUP BY f.job_id LIMIT 20) AS q
JOIN dbjobs_jobs j ON j.id = q.job_id ORDER BY j.name, j.owner;

-- name: touch_group
-- arguments: name
UPDATE dbjobs_jobs SET planned = planned || '.' WHERE group_name = ?1 AND removed_at IS NULL AND name IS NOT NULL;

-- name: touch_jobs
-- arguments: ids
UPDATE dbjobs_jobs SET planned = planned || '.' WHERE id IN (SELECT value FROM json_each(?1));

-- name: touch_parked
-- arguments: ids
UPDATE dbjobs_jobs SET planned = planned || '.' WHERE id IN (SELECT value FROM json_each(?1)) AND EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = dbjobs_jobs.id AND parked IS NOT NULL);

-- name: triggers
WITH RECURSIVE n (name) AS (
  SELECT MIN(x.name) FROM dbjobs_ticks x
  UNION ALL
  SELECT (SELECT MIN(x.name) FROM dbjobs_ticks x WHERE x.name > n.name) FROM n WHERE n.name IS NOT NULL
)
SELECT t.name, t.since, t.last_at, t.passes, t.holder, t.version, t.error, t.took_ms,
  (SELECT MIN(f.since) FROM dbjobs_ticks f WHERE f.name = n.name)
FROM n CROSS JOIN dbjobs_ticks t
WHERE t.name = n.name AND t.since = (SELECT MAX(l.since) FROM dbjobs_ticks l WHERE l.name = n.name) ORDER BY t.name;

-- name: troubled
-- arguments: now, limit
SELECT j.owner, j.name, t.parked, t.error, t.streak, t.jobs FROM (
  SELECT * FROM (SELECT p.job_id, 1 AS parked, p.parked AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs_plans p
    WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?2) AS parked
  UNION ALL
  SELECT * FROM (SELECT p.job_id, 0 AS parked, p.last_error AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs_plans p
    WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND (SELECT j.enabled FROM dbjobs_jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) AND NOT EXISTS (SELECT 1 FROM dbjobs_jobs j CROSS JOIN json_each(CASE WHEN json_valid(j.tags) THEN j.tags END) t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs_pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now'))) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs_schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs_pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')))) OR NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l JOIN dbjobs_schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = 1 ORDER BY p.job_id LIMIT ?2) AS failing
) AS t JOIN dbjobs_jobs j ON j.id = t.job_id ORDER BY t.parked DESC, t.job_id;

-- name: unmark_calendars
-- arguments: ids
UPDATE dbjobs_calendars SET planned = NULL WHERE name IN (SELECT value FROM json_each(?1));

-- name: unplanned
SELECT j.owner, j.name, j.created_at FROM dbjobs_jobs j
WHERE j.enabled = 1 AND j.removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = j.id)
ORDER BY j.created_at, j.id LIMIT 1;

-- name: unserved
-- arguments: since, login
WITH RECURSIVE o (owner) AS (
  SELECT MIN(p.owner) FROM dbjobs_plans p
  UNION ALL
  SELECT (SELECT MIN(p.owner) FROM dbjobs_plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner, jobs, since FROM (
  SELECT o.owner, (SELECT COUNT(*) FROM dbjobs_plans p WHERE p.owner = o.owner AND p.next_run <= ?1 AND p.parked IS NULL) AS jobs,
    (SELECT p.next_run FROM dbjobs_plans p WHERE p.owner = o.owner AND p.next_run <= ?1 AND p.parked IS NULL ORDER BY p.next_run LIMIT 1) AS since
  FROM o WHERE o.owner IS NOT NULL AND o.owner <> ?2) AS u
WHERE jobs > 0 ORDER BY owner;

-- name: update_calendar
-- arguments: working_days, days, description, manifest, name
UPDATE dbjobs_calendars SET working_days = ?1, days = ?2, description = ?3, manifest = ?4 WHERE name = ?5;

-- name: update_group
-- arguments: max_running, name
UPDATE dbjobs_groups SET max_running = ?1 WHERE name = ?2;

-- name: update_jobs
-- arguments: now, rows
UPDATE dbjobs_jobs AS j SET changed_at = coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')), description = d.description, enabled = d.enabled, tags = d.tags, queue = d.queue, priority = d.priority, group_name = d.group_name, overlap = d.overlap, max_running = d.max_running,
  missed = d.missed, missed_limit = d.missed_limit, missed_within_ms = d.missed_within_ms, missed_grace_ms = d.missed_grace_ms, retry_attempts = d.retry_attempts, retry_backoff_ms = d.retry_backoff_ms, retry_max_backoff_ms = d.retry_max_backoff_ms, retry_jitter = d.retry_jitter,
  max_deliveries = d.max_deliveries, on_error = d.on_error, pause_after_failures = d.pause_after_failures, timeout_ms = d.timeout_ms, jitter_ms = d.jitter_ms, max_runs = d.max_runs, not_before = d.not_before, not_after = d.not_after,
  start_rule = d.start_rule, start_zone = d.start_zone, repeat_after_ms = d.repeat_after_ms, on_startup = d.on_startup, keep_runs = d.keep_runs, keep_age_ms = d.keep_age_ms, remove_when_done = d.remove_when_done, on_failed = d.on_failed,
  on_recovered = d.on_recovered, on_missed = d.on_missed, on_late = d.on_late, on_lost = d.on_lost, on_parked = d.on_parked, on_paused = d.on_paused, heartbeat_url = d.heartbeat_url, heartbeat_start = d.heartbeat_start,
  heartbeat_success = d.heartbeat_success, heartbeat_failure = d.heartbeat_failure, manifest = d.manifest
FROM (SELECT value ->> 'id' AS id, value ->> 'description' AS description, value ->> 'enabled' AS enabled, value ->> 'tags' AS tags, value ->> 'queue' AS queue, value ->> 'priority' AS priority,
  value ->> 'group_name' AS group_name, value ->> 'overlap' AS overlap, value ->> 'max_running' AS max_running, value ->> 'missed' AS missed, value ->> 'missed_limit' AS missed_limit, value ->> 'missed_within_ms' AS missed_within_ms,
  value ->> 'missed_grace_ms' AS missed_grace_ms, value ->> 'retry_attempts' AS retry_attempts, value ->> 'retry_backoff_ms' AS retry_backoff_ms, value ->> 'retry_max_backoff_ms' AS retry_max_backoff_ms, value ->> 'retry_jitter' AS retry_jitter, value ->> 'max_deliveries' AS max_deliveries,
  value ->> 'on_error' AS on_error, value ->> 'pause_after_failures' AS pause_after_failures, value ->> 'timeout_ms' AS timeout_ms, value ->> 'jitter_ms' AS jitter_ms, value ->> 'max_runs' AS max_runs, value ->> 'not_before' AS not_before,
  value ->> 'not_after' AS not_after, value ->> 'start_rule' AS start_rule, value ->> 'start_zone' AS start_zone, value ->> 'repeat_after_ms' AS repeat_after_ms, value ->> 'on_startup' AS on_startup, value ->> 'keep_runs' AS keep_runs,
  value ->> 'keep_age_ms' AS keep_age_ms, value ->> 'remove_when_done' AS remove_when_done, value ->> 'on_failed' AS on_failed, value ->> 'on_recovered' AS on_recovered, value ->> 'on_missed' AS on_missed, value ->> 'on_late' AS on_late,
  value ->> 'on_lost' AS on_lost, value ->> 'on_parked' AS on_parked, value ->> 'on_paused' AS on_paused, value ->> 'heartbeat_url' AS heartbeat_url, value ->> 'heartbeat_start' AS heartbeat_start, value ->> 'heartbeat_success' AS heartbeat_success,
  value ->> 'heartbeat_failure' AS heartbeat_failure, value ->> 'manifest' AS manifest FROM jsonb_each(?2)) AS d WHERE j.id = d.id AND j.removed_at IS NULL;

-- name: update_own_rules
-- arguments: rows
UPDATE dbjobs_schedules AS s SET rule = d.rule, zone = d.zone, nonexistent = d.nonexistent, ambiguous = d.ambiguous,
  calendar = d.calendar, on_holiday = d.on_holiday, calendar_version = d.calendar_version, description = d.description, manifest = NULL
FROM (SELECT value ->> 'id' AS id, value ->> 'rule' AS rule, value ->> 'zone' AS zone, value ->> 'nonexistent' AS nonexistent, value ->> 'ambiguous' AS ambiguous, value ->> 'calendar' AS calendar,
  value ->> 'on_holiday' AS on_holiday, value ->> 'calendar_version' AS calendar_version, value ->> 'description' AS description FROM jsonb_each(?1)) AS d WHERE s.id = d.id;

-- name: update_runs
-- arguments: now, rows
UPDATE dbjobs_runs AS r
SET state = d.state, held_by = d.held_by, queue = d.queue, priority = d.priority, ready_at = d.ready_at, number = d.number, losses = d.losses,
  finished_at = d.finished_at, settled_at = d.settled_at, expires_at = d.expires_at, error = d.error,
  lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN coalesce(?1, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) ELSE r.queued_at END,
  attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'was' AS was, value ->> 'lease' AS lease, value ->> 'state' AS state, value ->> 'held_by' AS held_by,
  value ->> 'queue' AS queue, value ->> 'priority' AS priority, value ->> 'ready_at' AS ready_at, value ->> 'number' AS number, value ->> 'losses' AS losses, value ->> 'finished_at' AS finished_at,
  value ->> 'settled_at' AS settled_at, value ->> 'expires_at' AS expires_at, value ->> 'error' AS error FROM jsonb_each(?2)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND (d.state <> 'queued' OR r.cancel_at IS NULL);

-- name: update_schedule
-- arguments: rule, zone, nonexistent, ambiguous, calendar, on_holiday, now, calendar_version, description, manifest, id
UPDATE dbjobs_schedules SET changed_at = CASE WHEN rule = ?1 AND zone = ?2 AND nonexistent = ?3 AND ambiguous = ?4
    AND calendar = ?5 AND on_holiday = ?6 THEN changed_at ELSE coalesce(?7, strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) END,
  rule = ?1, zone = ?2, nonexistent = ?3, ambiguous = ?4,
  calendar = ?5, on_holiday = ?6, calendar_version = ?8, description = ?9, manifest = ?10
WHERE id = ?11;

-- name: users
-- arguments: ids, limit
SELECT u.schedule_id, (SELECT j.owner FROM dbjobs_jobs j WHERE j.id = u.job_id), (SELECT j.name FROM dbjobs_jobs j WHERE j.id = u.job_id),
  (SELECT r.rule FROM dbjobs_plan_rules r WHERE r.job_id = u.job_id AND r.schedule_id = u.schedule_id
    AND r.input = (SELECT s.plan_input FROM dbjobs_schedules s WHERE s.id = u.schedule_id)) FROM (
  SELECT l.schedule_id, l.job_id, ROW_NUMBER() OVER (PARTITION BY l.schedule_id ORDER BY l.job_id) AS place
  FROM dbjobs_job_schedules l WHERE l.schedule_id IN (SELECT value FROM json_each(?1))) AS u
WHERE u.place <= ?2 ORDER BY u.schedule_id, u.place;

-- name: vain_deliveries
-- arguments: id, number
SELECT a.started_at FROM dbjobs_attempts a WHERE a.run_id = ?1 AND a.number <= ?2 AND a.number > COALESCE((SELECT MAX(e.number) FROM dbjobs_attempts e
  WHERE e.run_id = ?1 AND e.number < ?2 AND (e.state NOT IN ('cut', 'lost') OR e.started_at < (SELECT r.started_at FROM dbjobs_runs r WHERE r.id = ?1))), 0)
ORDER BY a.number DESC;

-- name: waiting_ends
SELECT e.job_id, e.meets, e.after_job_id, e.run_id, e.ended_at, e.seen, r.interval_start, r.interval_end
FROM dbjobs_job_ends e JOIN dbjobs_job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
JOIN dbjobs_runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
WHERE (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: wake_held
-- arguments: ids
UPDATE dbjobs_runs SET held_by = NULL WHERE id IN (SELECT value FROM json_each(?1)) AND state = 'waiting' AND held_by = 'group';

-- name: write_skips
-- arguments: skips, job
UPDATE dbjobs_plans SET skips = ?1, version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END WHERE job_id = ?2;

-- name: write_starts
-- arguments: rows
UPDATE dbjobs_jobs AS j SET not_before = d.not_before FROM (SELECT value ->> 'id' AS id, value ->> 'not_before' AS not_before FROM jsonb_each(?1)) AS d WHERE j.id = d.id;
