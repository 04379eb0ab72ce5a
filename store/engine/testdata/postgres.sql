-- Every statement as postgres is sent it, made from the files in sql by
-- `go test ./store -run TestStatements -update`. Do not edit.

-- name: accounted_gaps
-- arguments: ids, from
SELECT g.job_id, g.schedule_id, g.from_at, g.through_at, g.reason FROM dbjobs.gaps g WHERE g.job_id = ANY($1::bigint[]) AND g.through_at > $2
ORDER BY g.job_id, g.schedule_id, g.from_at;

-- name: accounted_rules
-- arguments: ids
SELECT r.job_id, r.schedule_id, r.rule, r.ends, r.since FROM dbjobs.plan_rules r WHERE r.job_id = ANY($1::bigint[]) AND r.rule <> '' ORDER BY r.job_id, r.schedule_id;

-- name: accounted_runs
-- arguments: ids, from
SELECT r.job_id, r.scheduled_for FROM dbjobs.runs r WHERE r.job_id = ANY($1::bigint[]) AND r.occurrence LIKE 'at:%' AND r.scheduled_for > $2;

-- name: advance
-- arguments: rows
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, version bigint, next_run timestamptz, decided_through timestamptz, parked text, last_scheduled_for timestamptz,
  last_run_id uuid, last_state text, last_finished_at timestamptz, last_success_at timestamptz, last_error text, streak int,
  cycles bigint, runs_made bigint, startup_ids text, repeat_from timestamptz, skips text)
)
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = d.decided_through, parked = d.parked,
  last_scheduled_for = d.last_scheduled_for, last_run_id = d.last_run_id, last_state = d.last_state,
  last_finished_at = d.last_finished_at, last_success_at = d.last_success_at, last_error = d.last_error,
  streak = d.streak, cycles = d.cycles, runs_made = d.runs_made, startup_ids = d.startup_ids,
  repeat_from = d.repeat_from, skips = d.skips, version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
FROM d
WHERE p.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND p.job_id = d.job_id AND p.version = d.version;

-- name: advance_due
-- arguments: rows, now
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, version bigint, next_run timestamptz, last_scheduled_for timestamptz)
)
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = coalesce($2::timestamptz, pg_catalog.statement_timestamp()), last_scheduled_for = d.last_scheduled_for, runs_made = p.runs_made + 1,
  version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
FROM d
WHERE p.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND p.job_id = d.job_id AND p.version = d.version;

-- name: attempts
-- arguments: id, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, a.output FROM dbjobs.attempts a WHERE a.run_id = $1 ORDER BY a.number DESC LIMIT $2;

-- name: back_off
-- arguments: now, later_ms, run_error, id, fence, holder, number
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond'), lease_until = NULL, error = $3
WHERE id = $4 AND fence = $5 AND holder = $6 AND state = 'running' AND attempts = $7;

-- name: batch_ends
-- arguments: ids
SELECT e.id, e.job_id, e.meets, e.after_job_id, e.run_id, CASE WHEN (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN true ELSE false END,
  CASE WHEN a.job_id IS NULL OR r.id IS NULL AND j.id IS NOT NULL OR r.state NOT IN ('waiting', 'queued', 'running') AND NOT (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') THEN true ELSE false END,
  CASE WHEN (SELECT m.id FROM dbjobs.runs m WHERE m.job_id = e.job_id AND m.occurrence = 'all:' || e.meets) IS NULL THEN false ELSE true END,
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_after o WHERE o.job_id = e.job_id), j.name, r.interval_start, r.interval_end, r.args
FROM (SELECT DISTINCT job_id, meets FROM dbjobs.job_ends WHERE seen = false AND job_id = ANY($1::bigint[])) AS n
JOIN dbjobs.job_ends e ON e.job_id = n.job_id AND e.meets = n.meets
LEFT JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
LEFT JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
LEFT JOIN dbjobs.jobs j ON j.id = e.after_job_id
ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: batch_followers
-- arguments: ids
SELECT a.after_job_id, j.id, j.queue, j.priority, a.on_end,
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_after o WHERE o.job_id = a.job_id),
  CASE WHEN j.max_runs <= (SELECT p.runs_made FROM dbjobs.plans p WHERE p.job_id = j.id) THEN true ELSE false END
FROM pg_catalog.unnest($1::bigint[]) AS i(id)
CROSS JOIN LATERAL (SELECT * FROM dbjobs.job_after x WHERE x.after_job_id = i.id OFFSET 0) AS a
CROSS JOIN LATERAL (SELECT * FROM dbjobs.jobs y WHERE y.id = a.job_id OFFSET 0) AS j
WHERE j.removed_at IS NULL AND j.enabled ORDER BY a.after_job_id, j.id;

-- name: batch_inputs
-- arguments: ids
SELECT id, owner, name, created_at, changed_at, plan_input, CASE WHEN planned IS DISTINCT FROM plan_input THEN COALESCE(planned, '') END,
  CASE WHEN (SELECT a.job_id FROM dbjobs.job_after a WHERE a.job_id = dbjobs.jobs.id LIMIT 1) IS NULL THEN false ELSE true END
FROM dbjobs.jobs WHERE id = ANY($1::bigint[]) ORDER BY id;

-- name: batch_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, j.plan_input FROM dbjobs.jobs j WHERE j.id = ANY($1::bigint[]) ORDER BY j.id;

-- name: batch_links
-- arguments: ids
SELECT i.id, l.* FROM pg_catalog.unnest($1::bigint[]) AS i(id) CROSS JOIN LATERAL (
  SELECT l.schedule_id, CASE WHEN l.planned <> l.schedule_id THEN NULL ELSE l.created_at END, coalesce(l.planned = l.schedule_id, false), true AS linked,
    s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at AS made, s.changed_at
  FROM dbjobs.job_schedules l LEFT JOIN LATERAL (SELECT * FROM dbjobs.schedules s WHERE s.id = l.schedule_id OFFSET 0) AS s ON true
  WHERE l.job_id = i.id
  UNION ALL
  SELECT s.id, s.created_at, true, false, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
  FROM dbjobs.schedules s
  WHERE s.job_id = i.id AND (SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.job_id = i.id AND l.schedule_id = s.id) IS NULL
  OFFSET 0) AS l;

-- name: batch_pauses
-- arguments: ids, since
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs.pauses p  WHERE p.scope = 'job' AND p.subject_id = ANY($1::bigint[]) AND p.ends_at > $2
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs.pauses p  WHERE p.scope IN ('all', 'owner', 'schedule', 'tag') AND p.ends_at > $2 ORDER BY 1;

-- name: batch_plans
-- arguments: ids, whatever, up_to
SELECT job_id, owner, version, next_run, decided_through, parked, last_scheduled_for, last_run_id, last_state, last_finished_at,
  last_success_at, last_error, streak, cycles, runs_made, startup_ids, repeat_from, skips, (SELECT r.number FROM dbjobs.runs r  WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1)
FROM dbjobs.plans p WHERE job_id = ANY($1::bigint[]) AND ($2 = 1 OR next_run <= $3) ORDER BY job_id FOR UPDATE SKIP LOCKED;

-- name: batch_rules
-- arguments: ids
SELECT i.id, r.schedule_id, r.input, r.rule, r.ends, r.changed_at, r.rule <> '' AND r.stands
FROM pg_catalog.unnest($1::bigint[]) AS i(id) CROSS JOIN LATERAL (
  SELECT r.schedule_id, r.input, r.rule, r.ends, r.changed_at, EXISTS (
    SELECT 1 FROM dbjobs.schedules s LEFT JOIN dbjobs.job_schedules l ON l.job_id = i.id AND l.schedule_id = s.id
    WHERE s.id = r.schedule_id AND s.plan_input = r.input AND (l.planned = s.id OR l.job_id IS NULL AND s.job_id = i.id) OFFSET 0) AS stands
  FROM dbjobs.plan_rules r WHERE r.job_id = i.id ORDER BY r.schedule_id) AS r;

-- name: batch_runs
-- arguments: ids
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs.job_after f WHERE f.after_job_id = r.job_id LIMIT 1)
FROM pg_catalog.unnest($1::bigint[]) AS i(id) CROSS JOIN LATERAL (SELECT * FROM dbjobs.runs WHERE settled_at IS NULL AND job_id = i.id OFFSET 0) AS r
ORDER BY r.job_id, r.id;

-- name: batch_started
-- arguments: ids, occurrence
SELECT job_id FROM dbjobs.runs WHERE job_id = ANY($1::bigint[]) AND occurrence = $2;

-- name: batch_steps
-- arguments: ids
SELECT job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure
FROM dbjobs.steps WHERE job_id = ANY($1::bigint[]) ORDER BY job_id, position;

-- name: begin_attempt
-- arguments: id, number, step, step_name, attempt, fence, holder, now
INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8::timestamptz, pg_catalog.statement_timestamp()));

-- name: begin_attempts
-- arguments: now, rows
INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
SELECT d.run_id, d.number, d.step, d.step_name, d.attempt, d.fence, d.holder, coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(run_id uuid, number int, step int, step_name text, attempt int, fence int,
  holder text);

-- name: behind_sequences
SELECT t.name, t.used FROM (SELECT 'dbjobs.schedules' AS name, pg_catalog.MAX(id) AS used FROM dbjobs.schedules
  UNION ALL SELECT 'dbjobs.jobs', pg_catalog.MAX(id) FROM dbjobs.jobs
  UNION ALL SELECT 'dbjobs.pauses', pg_catalog.MAX(id) FROM dbjobs.pauses
  UNION ALL SELECT 'dbjobs.job_ends', pg_catalog.MAX(id) FROM dbjobs.job_ends
  UNION ALL SELECT 'dbjobs.changes', pg_catalog.MAX(id) FROM dbjobs.changes) AS t
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.pg_get_serial_sequence(t.name, 'id')::regclass
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_sequences s ON s.schemaname = n.nspname AND s.sequencename = c.relname
WHERE CASE WHEN c.relkind = 'S' THEN pg_catalog.has_sequence_privilege(c.oid, 'USAGE, SELECT') END AND t.used > coalesce(s.last_value, 0) ORDER BY t.name;

-- name: brief_users
-- arguments: id
SELECT l.job_id FROM dbjobs.job_schedules l CROSS JOIN dbjobs.jobs j
WHERE l.schedule_id = $1 AND j.id = l.job_id AND j.remove_when_done = true AND j.removed_at IS NULL ORDER BY l.job_id;

-- name: broken_indexes
SELECT c.relname::text FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs' AND NOT i.indisvalid ORDER BY c.relname;

-- name: bury_runs
-- arguments: now, rows
UPDATE dbjobs.runs AS r SET state = d.state, held_by = NULL, lease_until = NULL, cancel_at = NULL, finished_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), settled_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()),
  expires_at = d.expires_at, error = coalesce(d.error, r.error)
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, state text, was text, lease timestamptz, expires_at timestamptz, error text)
WHERE r.id = d.id AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease) AND r.settled_at IS NULL;

-- name: calendar_users
SELECT calendar, pg_catalog.COUNT(*) FROM dbjobs.schedules WHERE calendar <> '' GROUP BY calendar;

-- name: calendars
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END FROM dbjobs.calendars ORDER BY name;

-- name: calendars_named
-- arguments: ids
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END FROM dbjobs.calendars WHERE name = ANY($1::text[]);

-- name: cancellable
-- arguments: job
SELECT id FROM dbjobs.runs  WHERE settled_at IS NULL AND job_id = $1 AND state IN ('waiting', 'queued', 'running') ORDER BY id FOR UPDATE;

-- name: catalogue
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs'
UNION ALL SELECT p.proname::text FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'dbjobs';

-- name: changes
-- arguments: kind, subject, id, limit
SELECT changed_at, changed_by, kind, COALESCE(subject_id, 0), subject, action, reason, was, became FROM dbjobs.changes
WHERE ($1 = '' OR kind = $1) AND ($2 = '' OR subject = $2 OR subject_id = $3) ORDER BY id DESC LIMIT $4;

-- name: circles
-- arguments: ids
WITH RECURSIVE up (id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id = ANY($1::bigint[])
  UNION
  SELECT up.id, a.after_job_id FROM up JOIN dbjobs.job_after a ON a.job_id = up.after_id WHERE up.after_id <> up.id
)
SELECT id, after_id, true, false, false FROM up WHERE after_id = id
UNION ALL
SELECT a.job_id, a.after_job_id, false,
  CASE WHEN (SELECT o.id FROM dbjobs.jobs o WHERE o.id = a.after_job_id) IS NULL THEN true ELSE false END,
  CASE WHEN planned IS DISTINCT FROM after_job_id THEN true ELSE false END
FROM dbjobs.job_after a WHERE a.job_id = ANY($1::bigint[]);

-- name: coming_jobs
-- arguments: ids, overdue, until, limit
SELECT p.job_id FROM dbjobs.plans p
WHERE p.owner = ANY($1::text[]) AND p.next_run > $2 AND p.next_run < $3 AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = true ORDER BY p.next_run, p.job_id LIMIT $4;

-- name: contents_jobs
SELECT pg_catalog.COUNT(*) FROM dbjobs.jobs WHERE removed_at IS NULL;

-- name: contents_runs
SELECT pg_catalog.COUNT(*), pg_catalog.COUNT(CASE WHEN state = 'running' THEN 1 END) FROM dbjobs.runs;

-- name: contents_schedules
SELECT pg_catalog.COUNT(*) FROM dbjobs.schedules WHERE job_id IS NULL;

-- name: count_ahead
-- arguments: now, later_ms
SELECT pg_catalog.COUNT(DISTINCT u.job_id), pg_catalog.MAX(u.until_at) FROM (
  SELECT p.job_id, CASE WHEN p.decided_through > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN p.decided_through
    ELSE (SELECT pg_catalog.MAX(r.wake_at) FROM dbjobs.runs r WHERE r.job_id = p.job_id AND (r.wake_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND COALESCE((SELECT b.started_at FROM dbjobs.attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond'))) END AS until_at
  FROM dbjobs.plans p WHERE p.decided_through > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') OR p.job_id IN (SELECT r.job_id FROM dbjobs.runs r WHERE (r.wake_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND COALESCE((SELECT b.started_at FROM dbjobs.attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')))
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p 
  JOIN dbjobs.jobs j ON p.scope = 'all' OR p.scope = 'owner' AND j.owner = p.subject OR p.scope = 'tag' AND j.tags @> pg_catalog.jsonb_build_array(p.subject)
  WHERE p.scope IN ('tag', 'owner', 'all') AND p.ends_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.resumed_at IS NOT NULL OR p.since > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p  JOIN dbjobs.jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.ends_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.resumed_at IS NOT NULL OR p.since > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')) AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p 
  JOIN dbjobs.job_schedules l ON l.schedule_id = p.subject_id JOIN dbjobs.jobs j ON j.id = l.job_id
  WHERE p.scope = 'schedule' AND p.ends_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.resumed_at IS NOT NULL OR p.since > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')) AND j.removed_at IS NULL
  UNION ALL
  SELECT p.job_id, j.created_at FROM dbjobs.jobs j JOIN dbjobs.plans p ON p.job_id = j.id
  WHERE j.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND j.removed_at IS NULL AND (p.next_run + interval '1 second') > j.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs.schedules s JOIN dbjobs.plans p ON p.job_id = s.job_id
  WHERE s.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.next_run + interval '1 second') > s.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs.schedules s JOIN dbjobs.job_schedules l ON l.schedule_id = s.id JOIN dbjobs.plans p ON p.job_id = l.job_id
  WHERE s.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.next_run + interval '1 second') > s.created_at
  UNION ALL
  SELECT j.id, j.not_before FROM dbjobs.jobs j WHERE j.start_rule IS NOT NULL AND j.not_before > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (SELECT CASE WHEN l.changed_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(pg_catalog.jsonb_extract_path_text(l.was, 'not_before'), '') <> COALESCE(pg_catalog.jsonb_extract_path_text(l.became, 'not_before'), '')) ORDER BY l.id DESC LIMIT 1) = 1 AND j.removed_at IS NULL
) u;

-- name: count_jobs
SELECT pg_catalog.COUNT(*) FROM dbjobs.jobs WHERE removed_at IS NULL AND name IS NOT NULL;

-- name: count_paused
-- arguments: now
SELECT pg_catalog.COUNT(*) FROM (
  SELECT j.id FROM dbjobs.pauses p JOIN dbjobs.jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND j.removed_at IS NULL
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs.pauses p WHERE p.scope IN ('all', 'owner') AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) LIMIT 1) x CROSS JOIN dbjobs.jobs j
  WHERE j.removed_at IS NULL AND (EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) OR j.owner IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())))
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) LIMIT 1) x CROSS JOIN dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t
  WHERE j.removed_at IS NULL AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1
  UNION
  SELECT j.id FROM dbjobs.pauses p JOIN dbjobs.job_schedules k ON k.schedule_id = p.subject_id JOIN dbjobs.jobs j ON j.id = k.job_id
  WHERE p.scope = 'schedule' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND j.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id)
    AND NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules c ON c.id = l.schedule_id WHERE l.job_id = j.id AND c.name IS NOT NULL
      AND c.id NOT IN (SELECT q.subject_id FROM dbjobs.pauses q WHERE q.scope = 'schedule' AND q.subject_id IS NOT NULL AND q.resumed_at IS NULL AND q.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())))
) u;

-- name: count_paused_itself
-- arguments: now
SELECT u.jobs, j.owner, j.name FROM (
  SELECT pg_catalog.COUNT(DISTINCT p.job_id) AS jobs, pg_catalog.MIN(p.job_id) AS id FROM dbjobs.pauses i  JOIN dbjobs.plans p ON p.job_id = i.subject_id
  WHERE i.scope = 'job' AND i.paused_by = 'dbjobs itself' AND i.resumed_at IS NULL AND i.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true) u
JOIN dbjobs.jobs j ON j.id = u.id;

-- name: created_ahead
-- arguments: job, now, later_ms
SELECT j.id, j.owner, j.name FROM dbjobs.jobs j
WHERE (j.id = $1 OR $1 = 0) AND j.removed_at IS NULL AND (j.created_at > (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond') OR j.start_rule IS NOT NULL AND j.not_before > (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond') AND (SELECT CASE WHEN l.changed_at > (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(pg_catalog.jsonb_extract_path_text(l.was, 'not_before'), '') <> COALESCE(pg_catalog.jsonb_extract_path_text(l.became, 'not_before'), '')) ORDER BY l.id DESC LIMIT 1) = 1
  OR j.id IN (SELECT s.job_id FROM dbjobs.schedules s WHERE s.job_id IS NOT NULL AND s.created_at > (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond'))
  OR j.id IN (SELECT l.job_id FROM dbjobs.schedules s JOIN dbjobs.job_schedules l ON l.schedule_id = s.id WHERE s.created_at > (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond')))
ORDER BY j.id;

-- name: crowd_queue
-- arguments: job, times, queue
SELECT pg_catalog.COUNT(*), pg_catalog.MAX(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END) FROM dbjobs.runs r  WHERE settled_at IS NULL AND job_id = $1 AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT $2 THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN $3 WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END = $3;

-- name: crowd_runs
-- arguments: job, times, queue, from, to, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT f.job_id FROM dbjobs.job_after f WHERE f.after_job_id = r.job_id LIMIT 1) FROM dbjobs.runs r  WHERE settled_at IS NULL AND job_id = $1 AND CASE WHEN COALESCE(r.number, 0) = 0 OR r.started_at IS NOT NULL OR r.cancel_at IS NOT NULL OR r.occurrence LIKE 'at:%' AND NOT $2 THEN 0 WHEN r.state = 'queued' AND r.lease_until IS NULL THEN $3 WHEN r.state = 'waiting' AND r.held_by = 'predecessor' THEN CASE WHEN r.occurrence LIKE 'at:%' AND r.fence = 0 THEN 2 ELSE 1 END ELSE 0 END BETWEEN $4 AND $5
ORDER BY r.created_at, r.id LIMIT $6;

-- name: date_calendar
-- arguments: now, name
UPDATE dbjobs.schedules SET changed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE calendar = $2 AND calendar <> '';

-- name: date_own_rules
-- arguments: now, rows
UPDATE dbjobs.schedules AS s SET changed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text,
  on_holiday text)
WHERE s.id = d.id AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous
  OR s.calendar <> d.calendar OR s.on_holiday <> d.on_holiday);

-- name: delete_after
-- arguments: ids
DELETE FROM dbjobs.job_after WHERE job_id = ANY($1::bigint[]);

-- name: delete_attempts
-- arguments: ids
DELETE FROM dbjobs.attempts WHERE run_id = ANY($1::uuid[]);

-- name: delete_calendar
-- arguments: name
DELETE FROM dbjobs.calendars WHERE name = $1;

-- name: delete_changes
-- arguments: ids
DELETE FROM dbjobs.changes WHERE id = ANY($1::bigint[]);

-- name: delete_ends
-- arguments: rows
DELETE FROM dbjobs.job_ends AS e USING pg_catalog.json_to_recordset($1::json) AS d(id bigint, run_id uuid) WHERE e.id = d.id AND e.run_id = d.run_id;

-- name: delete_first_attempts
-- arguments: id, through
DELETE FROM dbjobs.attempts WHERE run_id = $1 AND number <= $2;

-- name: delete_gaps
-- arguments: rows
DELETE FROM dbjobs.gaps AS g USING pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, schedule_id bigint, through_at timestamptz, reason text)
WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.through_at AND g.reason = d.reason;

-- name: delete_links
-- arguments: rows
DELETE FROM dbjobs.job_schedules AS l USING pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, schedule_id bigint) WHERE l.job_id = d.job_id AND l.schedule_id = d.schedule_id;

-- name: delete_lost_links
-- arguments: ids
DELETE FROM dbjobs.job_schedules
WHERE job_id = ANY($1::bigint[]) AND (SELECT s.id FROM dbjobs.schedules s WHERE s.id = dbjobs.job_schedules.schedule_id) IS NULL;

-- name: delete_pauses
-- arguments: ids, now, later_ms
DELETE FROM dbjobs.pauses WHERE id = ANY($1::bigint[]) AND ends_at < (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond');

-- name: delete_runs
-- arguments: ids
DELETE FROM dbjobs.runs WHERE id = ANY($1::uuid[]) AND settled_at IS NOT NULL;

-- name: delete_schedule
-- arguments: id
DELETE FROM dbjobs.schedules WHERE id = $1;

-- name: delete_steps
-- arguments: ids
DELETE FROM dbjobs.steps WHERE job_id = ANY($1::bigint[]);

-- name: delete_ticks
-- arguments: through, now, later_ms
DELETE FROM dbjobs.ticks WHERE since <= $1 AND last_at < (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond');

-- name: drop_attempts
-- arguments: rows
DELETE FROM dbjobs.attempts AS a USING pg_catalog.json_to_recordset($1::json) AS d(id uuid, fence int, number int)
WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: drop_gaps_ahead
-- arguments: ids, now
DELETE FROM dbjobs.gaps WHERE job_id = ANY($1::bigint[]) AND from_at >= coalesce($2::timestamptz, pg_catalog.statement_timestamp());

-- name: drop_ticks_ahead
-- arguments: now, later_ms
DELETE FROM dbjobs.ticks WHERE since > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond');

-- name: durations
-- arguments: most
SELECT p.job_id, r.started_at, r.finished_at FROM dbjobs.plans p
CROSS JOIN LATERAL (SELECT o.started_at, o.finished_at FROM dbjobs.runs o WHERE o.job_id = p.job_id AND o.number > p.runs_made - $1
  AND o.state = 'succeeded' AND o.started_at IS NOT NULL AND o.finished_at IS NOT NULL OFFSET 0) AS r;

-- name: edited_since
-- arguments: job, at
SELECT l.was FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = $1 AND l.action = 'change'
AND l.changed_at > $2 ORDER BY l.id LIMIT 1;

-- name: enable_job
-- arguments: enabled, now, id
UPDATE dbjobs.jobs SET enabled = $1, changed_at = coalesce($2::timestamptz, pg_catalog.statement_timestamp()) WHERE id = $3 AND removed_at IS NULL;

-- name: end_attempt
-- arguments: state, now, waited_ms, rows, error, code, line, severity, detail, hint, output, result, id, number, fence
UPDATE dbjobs.attempts SET state = $1, finished_at = coalesce($2::timestamptz, pg_catalog.statement_timestamp()), started_at = CASE WHEN $3 > 0::bigint THEN least(coalesce($2::timestamptz, pg_catalog.statement_timestamp()), started_at + $3::double precision * interval '1 millisecond') ELSE started_at END, rows_affected = $4, error = $5, error_code = $6,
  error_line = $7, error_severity = $8, error_detail = $9, error_hint = $10, output = $11, result = $12
WHERE run_id = $13 AND number = $14 AND fence = $15 AND state = 'running';

-- name: end_gaps_now
-- arguments: now, ids
UPDATE dbjobs.gaps SET through_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE job_id = ANY($2::bigint[]) AND through_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp());

-- name: end_idle_pauses
-- arguments: now, resumed_by, ids
UPDATE dbjobs.pauses SET resumed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), resumed_by = $2 WHERE id = ANY($3::bigint[]) AND resumed_at IS NULL AND ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND (
  scope = 'job' AND (SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.pauses.subject_id AND j.removed_at IS NULL) IS NULL
  OR scope = 'schedule' AND (SELECT s.id FROM dbjobs.schedules s WHERE s.id = dbjobs.pauses.subject_id) IS NULL);

-- name: end_own
-- arguments: id, fence, number, final, step, step_name, holder, lease_ms, waited_ms, rows, error, run_error, output, result, now
SELECT dbjobs.end_own($1::uuid, $2::integer, $3::integer, $4::text, $5::integer, $6::text, $7::text, $8::bigint, $9::bigint,
  $10::bigint, $11::text, $12::text, $13::text, $14::text, $15::timestamptz);

-- name: end_pauses
-- arguments: now, resumed_by, scope, ids
UPDATE dbjobs.pauses SET resumed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), resumed_by = $2
WHERE scope = $3 AND subject_id = ANY($4::bigint[]) AND resumed_at IS NULL AND ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp());

-- name: end_queued
-- arguments: now, rows
UPDATE dbjobs.runs AS r SET state = 'failed', finished_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), error = d.error
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, error text)
WHERE r.id = d.id AND r.state = 'queued';

-- name: engine
SELECT 'PostgreSQL ' || pg_catalog.current_setting('server_version');

-- name: enlist
-- arguments: ids
INSERT INTO dbjobs.plans (job_id, owner)
SELECT i.id, coalesce((SELECT j.owner FROM dbjobs.jobs j WHERE j.id = i.id), session_user::text) FROM pg_catalog.unnest($1::bigint[]) AS i(id) WHERE (SELECT p.job_id FROM dbjobs.plans p WHERE p.job_id = i.id) IS NULL
ON CONFLICT DO NOTHING;

-- name: enlist_groups
-- arguments: ids
INSERT INTO dbjobs.group_plans (name)
SELECT name FROM dbjobs.groups WHERE name = ANY($1::text[]) ORDER BY name
ON CONFLICT DO NOTHING;

-- name: examine_after
-- arguments: limit
SELECT f.job_id, NULL, NULL, pg_catalog.COUNT(*) FROM dbjobs.job_after f JOIN dbjobs.jobs l ON l.id = f.job_id AND l.removed_at IS NULL
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = f.after_job_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)) GROUP BY f.job_id ORDER BY f.job_id LIMIT $1;

-- name: examine_attempts
-- arguments: limit
SELECT r.job_id, pg_catalog.MIN(a.started_at), pg_catalog.MIN(CAST(a.run_id AS CHAR(36))), pg_catalog.COUNT(*)
FROM dbjobs.attempts a LEFT JOIN dbjobs.runs r ON r.id = a.run_id
WHERE r.id IS NULL OR a.number > r.attempts OR a.state = 'running' AND r.settled_at IS NOT NULL
GROUP BY r.job_id ORDER BY r.job_id LIMIT $1;

-- name: examine_calendars
-- arguments: limit
SELECT s.job_id, NULL, s.calendar, pg_catalog.COUNT(*) FROM dbjobs.schedules s
WHERE s.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars c WHERE c.name = s.calendar)
  AND (s.job_id IS NULL OR EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = s.job_id AND j.removed_at IS NULL))
GROUP BY s.job_id, s.calendar ORDER BY s.job_id, s.calendar LIMIT $1;

-- name: examine_gaps
-- arguments: limit
SELECT g.job_id, pg_catalog.MIN(g.from_at), NULL, pg_catalog.COUNT(*) FROM dbjobs.gaps g WHERE g.from_at >= g.through_at GROUP BY g.job_id ORDER BY g.job_id LIMIT $1;

-- name: examine_groups
-- arguments: limit
SELECT j.id, NULL, j.group_name, 1 FROM dbjobs.jobs j
WHERE j.removed_at IS NULL AND j.group_name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.groups g WHERE g.name = j.group_name)
ORDER BY j.id LIMIT $1;

-- name: examine_links
-- arguments: limit
SELECT l.job_id, NULL, NULL, pg_catalog.COUNT(*) FROM dbjobs.job_schedules l
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.schedules s WHERE s.id = l.schedule_id) GROUP BY l.job_id ORDER BY l.job_id LIMIT $1;

-- name: examine_numbers
-- arguments: limit
SELECT p.job_id, NULL, NULL, p.runs_made FROM dbjobs.plans p
WHERE p.runs_made < (SELECT pg_catalog.MAX(r.number) FROM dbjobs.runs r WHERE r.job_id = p.job_id) ORDER BY p.job_id LIMIT $1;

-- name: examine_older
-- arguments: limit
SELECT r.job_id, pg_catalog.MIN(r.created_at), NULL, pg_catalog.COUNT(*) FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.created_at < j.created_at GROUP BY r.job_id ORDER BY r.job_id LIMIT $1;

-- name: examine_orphans
-- arguments: limit
SELECT o.job_id, NULL, o.what, pg_catalog.COUNT(*) FROM (
  SELECT job_id, 'steps' AS what FROM dbjobs.steps
  UNION ALL SELECT job_id, 'job_schedules' FROM dbjobs.job_schedules
  UNION ALL SELECT job_id, 'job_after' FROM dbjobs.job_after
  UNION ALL SELECT job_id, 'job_ends' FROM dbjobs.job_ends
  UNION ALL SELECT job_id, 'schedules' FROM dbjobs.schedules WHERE job_id IS NOT NULL
  UNION ALL SELECT job_id, 'plans' FROM dbjobs.plans
  UNION ALL SELECT job_id, 'plan_rules' FROM dbjobs.plan_rules
  UNION ALL SELECT job_id, 'gaps' FROM dbjobs.gaps
  UNION ALL SELECT job_id, 'runs' FROM dbjobs.runs
) AS o WHERE NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = o.job_id)
GROUP BY o.job_id, o.what ORDER BY o.job_id, o.what LIMIT $1;

-- name: examine_pauses
-- arguments: now, limit
SELECT NULL, p.since, p.scope, p.id FROM dbjobs.pauses p WHERE p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND (
  p.scope = 'job' AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = p.subject_id)
  OR p.scope = 'schedule' AND NOT EXISTS (SELECT 1 FROM dbjobs.schedules s WHERE s.id = p.subject_id))
ORDER BY p.id LIMIT $2;

-- name: examine_queued
-- arguments: now, later_ms, limit
SELECT NULL, pg_catalog.MIN(r.queued_since), r.queue, pg_catalog.COUNT(*) FROM dbjobs.runs r WHERE r.queued_since < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') GROUP BY r.queue ORDER BY r.queue LIMIT $3;

-- name: examine_runs
-- arguments: now, later_ms, limit
SELECT job_id, pg_catalog.MIN(created_at), what, pg_catalog.COUNT(*) FROM (
  SELECT r.job_id, r.created_at,
    CASE WHEN r.state = 'running' AND r.lease_until IS NULL THEN 'running without a lease'
      WHEN r.state NOT IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.settled_at IS NOT NULL THEN 'settled before the end'
      WHEN r.state IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.finished_at IS NULL THEN 'ended at no time'
      WHEN r.settled_at IS NOT NULL AND r.expires_at IS NULL THEN 'kept for ever'
      WHEN r.finished_at < r.started_at THEN 'ended before it began'
      WHEN r.interval_end < r.interval_start THEN 'of an interval that ends before it begins'
      WHEN r.occurrence LIKE 'at:%' AND r.scheduled_for IS NULL THEN 'of a nominal time that is missing'
      WHEN r.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN 'made in the future'
      WHEN (r.wake_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND COALESCE((SELECT b.started_at FROM dbjobs.attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')) THEN 'begun in the future'
      WHEN r.state = 'waiting' AND r.held_by = 'predecessor' AND r.fence = 0 AND NOT EXISTS (SELECT 1 FROM dbjobs.runs o
        WHERE o.job_id = r.job_id AND o.id <> r.id AND o.settled_at IS NULL) THEN 'waiting for a run that is not there' END AS what
  FROM dbjobs.runs r) AS odd
WHERE what IS NOT NULL GROUP BY job_id, what ORDER BY job_id, what LIMIT $3;

-- name: examine_stuck
-- arguments: now, later_ms, limit
SELECT r.job_id, pg_catalog.MIN(COALESCE(r.finished_at, r.wake_at)), r.state, pg_catalog.COUNT(*) FROM dbjobs.runs r
WHERE r.wake_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND COALESCE(r.finished_at, r.wake_at) < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') GROUP BY r.job_id, r.state ORDER BY pg_catalog.MIN(COALESCE(r.finished_at, r.wake_at)) LIMIT $3;

-- name: examine_ticks
-- arguments: now, later_ms, limit
SELECT NULL, t.last_at, t.name, pg_catalog.COUNT(*) FROM dbjobs.ticks t WHERE t.last_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') GROUP BY t.name, t.last_at ORDER BY t.name LIMIT $3;

-- name: examine_twice
-- arguments: limit
SELECT r.job_id, r.scheduled_for, NULL, pg_catalog.COUNT(*) FROM dbjobs.runs r
WHERE r.occurrence LIKE 'at:%' AND r.scheduled_for IS NOT NULL
GROUP BY r.job_id, r.scheduled_for HAVING pg_catalog.COUNT(*) > 1 ORDER BY r.job_id, r.scheduled_for LIMIT $1;

-- name: examine_unplanned
-- arguments: now, later_ms, limit
SELECT j.id, j.created_at, NULL, 1 FROM dbjobs.jobs j
WHERE j.enabled = true AND j.removed_at IS NULL AND j.created_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND NOT EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id)
ORDER BY j.id LIMIT $3;

-- name: expire_later
-- arguments: ids
UPDATE dbjobs.runs SET expires_at = COALESCE(CASE WHEN finished_at < '9000-01-01' THEN finished_at + (SELECT j.keep_age_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id)::double precision * interval '1 millisecond' END, expires_at) WHERE id = ANY($1::uuid[]) AND settled_at IS NOT NULL;

-- name: expired_runs
-- arguments: now, limit
SELECT id FROM dbjobs.runs WHERE expires_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND settled_at IS NOT NULL ORDER BY expires_at LIMIT $2;

-- name: extend_gaps
-- arguments: rows, now
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, schedule_id bigint, from_at timestamptz, through_at timestamptz, reason text, rule text)
)
UPDATE dbjobs.gaps AS g SET through_at = d.through_at, recorded_at = coalesce($2::timestamptz, pg_catalog.statement_timestamp())
FROM d
WHERE g.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND g.through_at = ANY(ARRAY(SELECT from_at FROM d))
  AND g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule;

-- name: failures
-- arguments: since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r
    WHERE r.created_at >= $1 AND r.created_at < $2 AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state IS NOT NULL AND r.created_at < $1 AND (r.finished_at >= $1 OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r
    WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.created_at < $1 AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
CROSS JOIN LATERAL (SELECT * FROM dbjobs.attempts x WHERE x.run_id = f.id AND x.state IN ('failed', 'lost') OFFSET 0) AS a LEFT JOIN dbjobs.jobs j ON j.id = f.job_id
WHERE a.finished_at >= $1 AND a.finished_at < $2
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT $3;

-- name: failures_of_job
-- arguments: job, since, until, limit
SELECT a.run_id, a.number, a.step, a.step_name, a.attempt, a.fence, a.holder, a.state, a.started_at, a.finished_at, a.rows_affected,
  a.error, a.error_code, a.error_line, a.error_severity, a.error_detail, a.error_hint, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs.runs r CROSS JOIN LATERAL (SELECT * FROM dbjobs.attempts x WHERE x.run_id = r.id AND x.state IN ('failed', 'lost') OFFSET 0) AS a LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = $1 AND (r.attempts > 1 OR r.error IS NOT NULL OR r.state NOT IN ('succeeded', 'queued') OR r.state = 'queued' AND r.attempts > 0) AND a.finished_at >= $2 AND a.finished_at < $3
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT $4;

-- name: failures_of_runs
-- arguments: since, until, job, limit
SELECT r.id, r.attempt, r.fence, r.holder, r.state, r.started_at, r.finished_at, r.error, j.owner, j.name, r.job_id, r.number
FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state IN ('failed', 'lost') AND r.finished_at >= $1 AND r.finished_at < $2 AND (r.job_id = $3 OR $3 = 0)
AND (NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.state IN ('failed', 'lost'))
  OR NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number >= r.attempts))
ORDER BY r.finished_at DESC, r.id DESC LIMIT $4;

-- name: figures
-- arguments: before
SELECT
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs r WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = 'running'),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs r WHERE r.wake_at < $1 AND COALESCE(r.finished_at, r.wake_at) < $1)
  + (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs r WHERE r.queued_since < $1)
FROM (SELECT 1 AS one) AS source;

-- name: finish
-- arguments: final, now, run_error, id, fence, holder, number
UPDATE dbjobs.runs SET state = $1, finished_at = coalesce($2::timestamptz, pg_catalog.statement_timestamp()), lease_until = NULL, error = $3
WHERE id = $4 AND fence = $5 AND holder = $6 AND state = 'running' AND attempts = $7 AND ($1 <> 'lost' OR cancel_at IS NULL);

-- name: finish_attempt
-- arguments: id, fence, holder, number, recorded, job, version, final, now, run_error, keep_ms, state, waited_ms, rows, error, code, line, severity, detail, hint, output, result
WITH run AS (
  SELECT id FROM dbjobs.runs WHERE id = $1 AND fence = $2 AND holder = $3 AND state = 'running' AND attempts = $4
    AND ($5::bigint IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts
      WHERE run_id = $1 AND number = $4 AND fence = $2 AND state = 'succeeded')) FOR UPDATE SKIP LOCKED
), plan AS (
  SELECT p.job_id FROM dbjobs.plans p
  WHERE p.job_id = $6 AND p.version = $7 AND p.parked IS NULL AND (SELECT j.id FROM dbjobs.jobs j WHERE j.id = p.job_id AND CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END = 0) IS NOT NULL AND (SELECT a.job_id FROM dbjobs.job_after a WHERE a.after_job_id = p.job_id LIMIT 1) IS NULL AND (SELECT id FROM run) IS NOT NULL FOR UPDATE SKIP LOCKED
), moved AS (
  UPDATE dbjobs.runs SET state = $8, finished_at = coalesce($9::timestamptz, pg_catalog.statement_timestamp()), lease_until = NULL, error = $10,
    settled_at = CASE WHEN (SELECT job_id FROM plan) IS NOT NULL THEN coalesce($9::timestamptz, pg_catalog.statement_timestamp()) END,
    expires_at = CASE WHEN (SELECT job_id FROM plan) IS NOT NULL THEN coalesce($9::timestamptz, pg_catalog.statement_timestamp()) + $11::double precision * interval '1 millisecond' END
  WHERE id = (SELECT id FROM run) AND fence = $2 AND state = 'running' AND attempts = $4 RETURNING id
), ended AS (
  UPDATE dbjobs.attempts SET state = $12, finished_at = coalesce($9::timestamptz, pg_catalog.statement_timestamp()), started_at = CASE WHEN $13 > 0::bigint THEN least(coalesce($9::timestamptz, pg_catalog.statement_timestamp()), started_at + $13::double precision * interval '1 millisecond') ELSE started_at END,
    rows_affected = $14, error = $15, error_code = $16, error_line = $17, error_severity = $18, error_detail = $19,
    error_hint = $20, output = $21, result = $22
  WHERE run_id = (SELECT id FROM moved) AND number = $4 AND fence = $2 AND state = 'running'
), counted AS (
  UPDATE dbjobs.plans SET last_run_id = $1, last_state = $8, last_finished_at = coalesce($9::timestamptz, pg_catalog.statement_timestamp()), last_success_at = coalesce($9::timestamptz, pg_catalog.statement_timestamp()), streak = 0,
    cycles = cycles + 1, version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END
  WHERE job_id = (SELECT job_id FROM plan) AND (SELECT id FROM moved) IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($9::timestamptz, pg_catalog.statement_timestamp())), (SELECT job_id FROM plan) IS NOT NULL FROM moved;

-- name: finish_attempts
-- arguments: rows, limit, now
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(id uuid, fence int, number int, final text, run_error text, state text,
  rows_affected bigint, error text, code text, line int, severity text, detail text,
  hint text, output text, result text, waited_ms double precision, recorded int, job_id bigint,
  version bigint, keep_ms double precision, holder text) LIMIT $2
), free AS (
  SELECT d.*, s.job_id AS settles FROM d CROSS JOIN LATERAL (SELECT id FROM dbjobs.runs
    WHERE id = d.id AND fence = d.fence AND holder = d.holder AND state = 'running' AND attempts = d.number AND (d.recorded IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'succeeded')) OFFSET 0 FOR UPDATE SKIP LOCKED) AS r
  LEFT JOIN LATERAL (SELECT p.job_id FROM dbjobs.plans p
    WHERE p.job_id = d.job_id AND p.version = d.version AND p.parked IS NULL AND (SELECT j.id FROM dbjobs.jobs j WHERE j.id = p.job_id AND CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END = 0) IS NOT NULL AND (SELECT a.job_id FROM dbjobs.job_after a WHERE a.after_job_id = p.job_id LIMIT 1) IS NULL OFFSET 0 FOR UPDATE SKIP LOCKED) AS s ON true
), moved AS (
  UPDATE dbjobs.runs AS r SET state = d.final, finished_at = coalesce($3::timestamptz, pg_catalog.statement_timestamp()), lease_until = NULL, error = d.run_error,
    settled_at = CASE WHEN d.settles IS NOT NULL THEN coalesce($3::timestamptz, pg_catalog.statement_timestamp()) END,
    expires_at = CASE WHEN d.settles IS NOT NULL THEN coalesce($3::timestamptz, pg_catalog.statement_timestamp()) + d.keep_ms * interval '1 millisecond' END
  FROM free AS d
  WHERE r.id = ANY(ARRAY(SELECT id FROM free)) AND r.id = d.id AND r.fence = d.fence
    AND CASE WHEN r.state = 'running' THEN true ELSE false END AND r.attempts = d.number RETURNING d.*
), ended AS (
  UPDATE dbjobs.attempts AS a SET state = d.state, finished_at = coalesce($3::timestamptz, pg_catalog.statement_timestamp()),
    started_at = CASE WHEN d.waited_ms > 0::double precision THEN least(coalesce($3::timestamptz, pg_catalog.statement_timestamp()), a.started_at + d.waited_ms * interval '1 millisecond') ELSE a.started_at END, rows_affected = d.rows_affected, error = d.error,
    error_code = d.code, error_line = d.line, error_severity = d.severity, error_detail = d.detail, error_hint = d.hint, output = d.output,
    result = d.result
  FROM moved AS d
  WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running'
), counted AS (
  UPDATE dbjobs.plans AS p SET last_run_id = d.id, last_state = d.final, last_finished_at = coalesce($3::timestamptz, pg_catalog.statement_timestamp()), last_success_at = coalesce($3::timestamptz, pg_catalog.statement_timestamp()), streak = 0,
    cycles = p.cycles + 1, version = CASE WHEN p.version < 4000000000000000000 THEN p.version + 1 ELSE 1 END
  FROM moved AS d
  WHERE p.job_id = ANY(ARRAY(SELECT settles FROM free)) AND p.job_id = d.settles
)
SELECT id, fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())), settles IS NOT NULL FROM moved;

-- name: finish_jobs
-- arguments: now, ids
UPDATE dbjobs.jobs SET removed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), done_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE id = ANY($2::bigint[]);

-- name: finish_links
-- arguments: ids
DELETE FROM dbjobs.job_schedules WHERE job_id = ANY($1::bigint[]);

-- name: finish_schedules
-- arguments: ids
DELETE FROM dbjobs.schedules WHERE job_id = ANY($1::bigint[]);

-- name: first_installation
-- arguments: now
INSERT INTO dbjobs.installation (id, version, oldest, migrated_at)
SELECT 1, 0, 0, coalesce($1::timestamptz, pg_catalog.statement_timestamp()) FROM (SELECT 1 AS one) AS source
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.installation WHERE id = 1);

-- name: first_keepers
-- arguments: name, limit
SELECT s.id, s.name, s.job_id, j.owner, j.name FROM dbjobs.schedules s LEFT JOIN dbjobs.jobs j ON j.id = s.job_id
WHERE s.calendar = $1 AND s.calendar <> '' ORDER BY s.id LIMIT $2;

-- name: first_users
-- arguments: id, limit
SELECT j.owner, j.name FROM dbjobs.job_schedules l JOIN dbjobs.jobs j ON j.id = l.job_id
WHERE l.schedule_id = $1 ORDER BY l.job_id LIMIT $2;

-- name: followers
-- arguments: ids
SELECT a.after_job_id, j.id, j.owner, j.name FROM dbjobs.job_after a CROSS JOIN dbjobs.jobs j
WHERE a.after_job_id = ANY($1::bigint[]) AND j.id = a.job_id AND j.removed_at IS NULL;

-- name: forget_ends
-- arguments: ids, since
DELETE FROM dbjobs.job_ends WHERE job_id = ANY($1::bigint[]) AND ended_at < $2;

-- name: forget_jobs
-- arguments: ids
DELETE FROM dbjobs.jobs WHERE id = ANY($1::bigint[]);

-- name: forget_plan_rules
-- arguments: ids
DELETE FROM dbjobs.plan_rules WHERE job_id = ANY($1::bigint[]);

-- name: forget_plans
-- arguments: ids
DELETE FROM dbjobs.plans WHERE job_id = ANY($1::bigint[]);

-- name: gaps
-- arguments: job, limit
SELECT job_id, schedule_id, from_at, through_at, reason, rule, recorded_at FROM dbjobs.gaps
WHERE job_id = $1 ORDER BY through_at DESC, schedule_id LIMIT $2;

-- name: group_caps
-- arguments: here, ids
SELECT g.name, g.max_running,
  (SELECT COALESCE(pg_catalog.SUM((SELECT pg_catalog.COUNT(*) FROM dbjobs.runs r
     WHERE settled_at IS NULL AND job_id = j.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL))), 0)
   FROM dbjobs.jobs j WHERE j.group_name = g.name AND j.id <> ALL($1::bigint[]))
FROM dbjobs.groups g WHERE g.name = ANY($2::text[]);

-- name: group_held
-- arguments: ids, here, limit
SELECT name, run, job_id, priority, ready_at FROM (
  SELECT j.group_name AS name, r.id AS run, r.job_id, r.priority, r.ready_at,
    pg_catalog.ROW_NUMBER() OVER (PARTITION BY j.group_name ORDER BY r.priority DESC, r.ready_at, r.id) AS place
  FROM dbjobs.jobs j CROSS JOIN dbjobs.runs r 
  WHERE settled_at IS NULL AND job_id = j.id AND r.state = 'waiting' AND r.held_by = 'group' AND j.group_name = ANY($1::text[]) AND j.id <> ALL($2::bigint[])) AS h
WHERE place <= $3 ORDER BY name, place;

-- name: group_runs
-- arguments: name, state
SELECT r.id FROM dbjobs.jobs j CROSS JOIN dbjobs.runs r
WHERE settled_at IS NULL AND job_id = j.id AND j.group_name = $1 AND r.state = $2 AND r.started_at IS NULL AND (r.state = 'queued' OR r.held_by = 'group');

-- name: groups
SELECT name, max_running FROM dbjobs.groups ORDER BY name;

-- name: groups_quoted
-- arguments: ids
SELECT q.name, q.quoted FROM (SELECT g.name, pg_catalog.quote_nullable(g.name) AS quoted FROM dbjobs.groups g) AS q WHERE q.quoted = ANY($1::text[]);

-- name: heartbeat
-- arguments: now, lease_ms, ids, holder
UPDATE dbjobs.runs SET lease_until = (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') WHERE id = ANY($3::uuid[]) AND holder = $4 AND state = 'running';

-- name: held
-- arguments: ids, holder
SELECT id, fence, cancel_at FROM dbjobs.runs WHERE id = ANY($1::uuid[]) AND holder = $2 AND state = 'running';

-- name: hidden_tables
SELECT 'dbjobs.' || t FROM pg_catalog.unnest('{attempts,calendars,gaps,group_plans,groups,job_after,job_ends,job_schedules,jobs,pauses,plan_rules,plans,runs,schedules,steps,changes,ticks,installation}'::text[]) t WHERE pg_catalog.row_security_active(pg_catalog.to_regclass('dbjobs.' || t)::oid) AND (NOT (SELECT coalesce(pg_catalog.string_agg(p.polcmd::text, ''), '') FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('dbjobs.' || t)::oid AND EXISTS (SELECT 1 FROM pg_catalog.unnest(p.polroles) r WHERE CASE WHEN r = 0::oid THEN true ELSE pg_catalog.pg_has_role(r, 'USAGE') END) AND p.polpermissive AND coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') = 'true') ~ CASE WHEN t IN ('plans', 'runs') THEN '[*]|r.*w|w.*r' ELSE '[*]|r' END OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('dbjobs.' || t)::oid AND EXISTS (SELECT 1 FROM pg_catalog.unnest(p.polroles) r WHERE CASE WHEN r = 0::oid THEN true ELSE pg_catalog.pg_has_role(r, 'USAGE') END) AND NOT p.polpermissive AND NOT coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') = 'true' AND p.polcmd IN ('*', 'r', 'w')));

-- name: hold_runs
-- arguments: ids
UPDATE dbjobs.runs SET state = 'waiting' WHERE id = ANY($1::uuid[]) AND state = 'queued' AND started_at IS NULL;

-- name: holds_own
-- arguments: id, fence
SELECT dbjobs.holds_own($1::uuid, $2::integer);

-- name: hook_uses
-- arguments: name, full
SELECT id, owner, name, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs.jobs
WHERE removed_at IS NULL AND (on_failed IS NOT NULL OR on_recovered IS NOT NULL OR on_missed IS NOT NULL OR on_late IS NOT NULL OR on_lost IS NOT NULL OR on_parked IS NOT NULL OR on_paused IS NOT NULL)
AND ($1 = '' OR $1 IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) OR $2 IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused));

-- name: hooks
-- arguments: ids
SELECT id, owner, name, queue, priority, enabled FROM dbjobs.jobs WHERE removed_at IS NULL AND name = ANY($1::text[]);

-- name: hooks_in_use
SELECT DISTINCT owner, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs.jobs
WHERE removed_at IS NULL AND (on_failed IS NOT NULL OR on_recovered IS NOT NULL OR on_missed IS NOT NULL OR on_late IS NOT NULL OR on_lost IS NOT NULL OR on_parked IS NOT NULL OR on_paused IS NOT NULL);

-- name: insert_after
-- arguments: rows
INSERT INTO dbjobs.job_after (job_id, after_job_id, on_end)
SELECT d.job_id, d.after_job_id, d.on_end FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, after_job_id bigint, on_end text);

-- name: insert_calendar
-- arguments: name, working_days, days, description, manifest
INSERT INTO dbjobs.calendars (name, working_days, days, description, owner, manifest)
VALUES ($1, $2, $3, $4, session_user::text, $5);

-- name: insert_changes
-- arguments: now, rows
INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason)
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), 'dbjobs itself', 'job', d.subject_id, d.subject, d.action, d.reason
FROM pg_catalog.json_to_recordset($2::json) AS d(subject_id bigint, subject text, action text, reason text);

-- name: insert_ends
-- arguments: now, rows
INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at)
SELECT d.job_id, d.meets, d.after_job_id, d.run_id, coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(job_id bigint, meets text, after_job_id bigint, run_id uuid)
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.job_ends e JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
  JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
  WHERE e.job_id = d.job_id AND e.meets = d.meets AND e.after_job_id = d.after_job_id AND r.id <> d.run_id AND (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end'))
ON CONFLICT (job_id, meets, after_job_id) DO UPDATE SET run_id = excluded.run_id, ended_at = excluded.ended_at, seen = false;

-- name: insert_gaps
-- arguments: now, rows
INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
SELECT d.job_id, d.schedule_id, d.from_at, d.through_at, d.reason, d.rule, coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(job_id bigint, schedule_id bigint, from_at timestamptz, through_at timestamptz, reason text, rule text)
WHERE (SELECT g.job_id FROM dbjobs.gaps g WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id
  AND g.through_at = d.through_at AND g.reason = d.reason) IS NULL;

-- name: insert_group
-- arguments: name, max_running
INSERT INTO dbjobs.groups (name, max_running, owner) VALUES ($1, $2, session_user::text);

-- name: insert_jobs
-- arguments: now, rows
INSERT INTO dbjobs.jobs (owner, name, created_at, changed_at, description, enabled, tags, queue, priority, group_name, overlap, max_running,
  missed, missed_limit, missed_within_ms, missed_grace_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms, retry_jitter,
  max_deliveries, on_error, pause_after_failures, timeout_ms, jitter_ms, max_runs, not_before, not_after,
  start_rule, start_zone, repeat_after_ms, on_startup, keep_runs, keep_age_ms, remove_when_done, on_failed,
  on_recovered, on_missed, on_late, on_lost, on_parked, on_paused, heartbeat_url, heartbeat_start,
  heartbeat_success, heartbeat_failure, manifest)
SELECT d.owner, d.name, coalesce($1::timestamptz, pg_catalog.statement_timestamp()), coalesce($1::timestamptz, pg_catalog.statement_timestamp()), d.description, d.enabled, d.tags, d.queue, d.priority, d.group_name, d.overlap, d.max_running,
  d.missed, d.missed_limit, d.missed_within_ms, d.missed_grace_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms, d.retry_jitter,
  d.max_deliveries, d.on_error, d.pause_after_failures, d.timeout_ms, d.jitter_ms, d.max_runs, d.not_before, d.not_after,
  d.start_rule, d.start_zone, d.repeat_after_ms, d.on_startup, d.keep_runs, d.keep_age_ms, d.remove_when_done, d.on_failed,
  d.on_recovered, d.on_missed, d.on_late, d.on_lost, d.on_parked, d.on_paused, d.heartbeat_url, d.heartbeat_start,
  d.heartbeat_success, d.heartbeat_failure, d.manifest
FROM pg_catalog.json_to_recordset($2::json) AS d(owner text, name text, description text, enabled boolean, tags jsonb, queue text,
  priority int, group_name text, overlap text, max_running int, missed text, missed_limit int,
  missed_within_ms bigint, missed_grace_ms bigint, retry_attempts int, retry_backoff_ms bigint, retry_max_backoff_ms bigint, retry_jitter int,
  max_deliveries int, on_error text, pause_after_failures int, timeout_ms bigint, jitter_ms bigint, max_runs bigint,
  not_before timestamptz, not_after timestamptz, start_rule text, start_zone text, repeat_after_ms bigint, on_startup boolean,
  keep_runs int, keep_age_ms bigint, remove_when_done boolean, on_failed text, on_recovered text, on_missed text,
  on_late text, on_lost text, on_parked text, on_paused text, heartbeat_url text, heartbeat_start text,
  heartbeat_success text, heartbeat_failure text, manifest text);

-- name: insert_links
-- arguments: now, rows
INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
SELECT d.job_id, d.schedule_id, coalesce($1::timestamptz, pg_catalog.statement_timestamp()) FROM pg_catalog.json_to_recordset($2::json) AS d(job_id bigint, schedule_id bigint);

-- name: insert_own_rules
-- arguments: now, rows
INSERT INTO dbjobs.schedules (job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
SELECT d.job_id, d.rule, d.zone, d.nonexistent, d.ambiguous, d.calendar, d.on_holiday, d.calendar_version, d.description, coalesce($1::timestamptz, pg_catalog.statement_timestamp()), coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(job_id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text,
  on_holiday text, calendar_version text, description text);

-- name: insert_pauses
-- arguments: now, rows
INSERT INTO dbjobs.pauses (scope, subject_id, reason, paused_by, since)
SELECT 'job', d.subject_id, d.reason, 'dbjobs itself', coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(subject_id bigint, reason text);

-- name: insert_plan_rules
-- arguments: rows
INSERT INTO dbjobs.plan_rules (job_id, schedule_id, input, rule, ends, since, changed_at)
SELECT d.job_id, d.schedule_id, d.input, d.rule, d.ends, d.since, d.changed_at
FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, schedule_id bigint, input text, rule text, ends text, since timestamptz,
  changed_at timestamptz);

-- name: insert_queued
-- arguments: now, rows
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, 'queued', d.queue, COALESCE(d.priority, 0), d.scheduled_for, d.interval_start,
  d.scheduled_for, coalesce($1::timestamptz, pg_catalog.statement_timestamp()), coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, job_id bigint, number bigint, occurrence text, queue text, priority int,
  scheduled_for timestamptz, interval_start timestamptz)
ON CONFLICT DO NOTHING;

-- name: insert_runs
-- arguments: now, rows
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args::jsonb, COALESCE(d.ready_at, coalesce($1::timestamptz, pg_catalog.statement_timestamp())), coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, job_id bigint, number bigint, occurrence text, state text, held_by text,
  queue text, priority int, scheduled_for timestamptz, interval_start timestamptz, interval_end timestamptz, args text,
  ready_at timestamptz)
ON CONFLICT DO NOTHING;

-- name: insert_schedule
-- arguments: name, job, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, manifest, now
INSERT INTO dbjobs.schedules (name, job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, owner, manifest, created_at, changed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, session_user::text, $11, coalesce($12::timestamptz, pg_catalog.statement_timestamp()), coalesce($12::timestamptz, pg_catalog.statement_timestamp()));

-- name: insert_steps
-- arguments: rows
INSERT INTO dbjobs.steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure)
SELECT d.job_id, d.position, d.name, d.executor, d.spec, d.timeout_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms,
  d.retry_jitter, d.on_success, d.on_failure
FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, position int, name text, executor text, spec jsonb, timeout_ms bigint,
  retry_attempts int, retry_backoff_ms bigint, retry_max_backoff_ms bigint, retry_jitter int, on_success text, on_failure text);

-- name: installation
SELECT version, oldest, repeatable, instance, owners, migrated_at FROM dbjobs.installation WHERE id = 1;

-- name: intervals
-- arguments: job, from, to, now
SELECT interval_start, interval_end FROM dbjobs.runs
WHERE job_id = $1 AND interval_end >= $2 AND (interval_start IS NULL OR interval_start < $3)
  AND (interval_end <= coalesce($4::timestamptz, pg_catalog.statement_timestamp()) OR occurrence NOT LIKE 'at:%')
  AND (state <> 'cancelled' OR attempts > 0 OR occurrence LIKE 'fill:%');

-- name: is_recorded
-- arguments: id, number, fence
SELECT pg_catalog.COUNT(*) FROM dbjobs.attempts WHERE run_id = $1 AND number = $2 AND fence = $3 AND state = 'succeeded';

-- name: job_links
-- arguments: ids
SELECT l.job_id, s.id, s.name,
  (SELECT CASE WHEN planned IS DISTINCT FROM schedule_id THEN 1 ELSE 0 END FROM dbjobs.job_schedules x WHERE x.job_id = l.job_id AND x.schedule_id = l.schedule_id),
  (SELECT CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END FROM dbjobs.schedules y WHERE y.id = l.schedule_id), NULL, NULL, NULL
FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id
WHERE l.job_id = ANY($1::bigint[])
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs.job_after a LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id
WHERE a.job_id = ANY($1::bigint[]) ORDER BY 1, 3;

-- name: job_name
-- arguments: id
SELECT owner, name, (SELECT p.parked FROM dbjobs.plans p WHERE p.job_id = $1) FROM dbjobs.jobs WHERE id = $1;

-- name: job_names
SELECT owner, name, queue, tags FROM dbjobs.jobs WHERE removed_at IS NULL ORDER BY name, owner;

-- name: jobs
SELECT j.id, j.owner, j.name, j.description, j.enabled, j.tags, j.queue, j.priority,
  j.group_name, j.overlap, j.max_running, j.missed, j.missed_limit, j.missed_within_ms, j.missed_grace_ms, j.retry_attempts,
  j.retry_backoff_ms, j.retry_max_backoff_ms, j.retry_jitter, j.max_deliveries, j.on_error, j.pause_after_failures, j.timeout_ms, j.jitter_ms,
  j.max_runs, j.not_before, j.not_after, j.start_rule, j.start_zone, j.repeat_after_ms, j.on_startup, j.keep_runs,
  j.keep_age_ms, j.remove_when_done, j.on_failed, j.on_recovered, j.on_missed, j.on_late, j.on_lost, j.on_parked,
  j.on_paused, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure, j.manifest, j.created_at, j.changed_at,
  j.removed_at, p.next_run, p.decided_through, p.parked, p.last_state, p.last_scheduled_for, p.last_finished_at, p.last_success_at,
  p.last_error, p.streak, p.cycles, p.runs_made, p.repeat_from,
  (SELECT CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT c.action FROM dbjobs.changes c WHERE c.id = (SELECT pg_catalog.MAX(l.id) FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs.changes c WHERE c.id = (SELECT pg_catalog.MAX(l.id) FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs  WHERE settled_at IS NULL AND job_id = j.id),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs  WHERE settled_at IS NULL AND job_id = j.id AND state = 'running'), CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, p.skips
FROM dbjobs.jobs j
LEFT JOIN dbjobs.plans p ON p.job_id = j.id WHERE j.removed_at IS NULL ORDER BY j.name, j.owner;

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
  (SELECT CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = p.last_run_id),
  (SELECT c.action FROM dbjobs.changes c WHERE c.id = (SELECT pg_catalog.MAX(l.id) FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT c.changed_at FROM dbjobs.changes c WHERE c.id = (SELECT pg_catalog.MAX(l.id) FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort'))),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs  WHERE settled_at IS NULL AND job_id = j.id),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs  WHERE settled_at IS NULL AND job_id = j.id AND state = 'running'), CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, p.skips
FROM dbjobs.jobs j
LEFT JOIN dbjobs.plans p ON p.job_id = j.id WHERE j.removed_at IS NULL AND j.id = ANY($1::bigint[]) ORDER BY j.name, j.owner;

-- name: jobs_named
-- arguments: ids
SELECT id, owner, name, manifest FROM dbjobs.jobs WHERE removed_at IS NULL AND name = ANY($1::text[]);

-- name: jobs_owned
-- arguments: manifest
SELECT id, owner, name, manifest FROM dbjobs.jobs WHERE manifest = $1 AND removed_at IS NULL;

-- name: keyed_run
-- arguments: job, occurrence
SELECT id FROM dbjobs.runs WHERE job_id = $1 AND occurrence = $2;

-- name: known_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, j.description, j.heartbeat_url, j.heartbeat_start, j.heartbeat_success, j.heartbeat_failure,
  j.manifest, j.created_at, j.changed_at, j.plan_input FROM dbjobs.jobs j WHERE j.id = ANY($1::bigint[]);

-- name: known_links
-- arguments: ids
SELECT l.job_id, s.id, s.name, 0, 0, NULL, NULL, NULL
FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id
WHERE l.job_id = ANY($1::bigint[]) AND s.job_id IS NULL
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs.job_after a LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id
WHERE a.job_id = ANY($1::bigint[]) ORDER BY 1, 3;

-- name: last_step
-- arguments: id
SELECT COALESCE((SELECT a.step_name FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name) FROM dbjobs.runs r WHERE r.id = $1;

-- name: link_own_rules
-- arguments: now, ids
INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
SELECT s.job_id, s.id, coalesce($1::timestamptz, pg_catalog.statement_timestamp()) FROM dbjobs.schedules s WHERE s.job_id = ANY($2::bigint[]);

-- name: lock_ahead
-- arguments: now, later_ms, job, limit
SELECT p.job_id, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.job_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.job_id)
FROM dbjobs.plans p WHERE (p.decided_through > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') OR p.job_id IN (SELECT r.job_id FROM dbjobs.runs r WHERE (r.wake_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND COALESCE((SELECT b.started_at FROM dbjobs.attempts b WHERE b.run_id = r.id AND b.number = r.attempts), r.started_at, r.created_at) > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond'))))
  AND (p.job_id = $3 OR $3 = 0) ORDER BY p.job_id LIMIT $4 FOR UPDATE;

-- name: lock_altered
-- arguments: ids
SELECT id FROM dbjobs.schedules WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE;

-- name: lock_calendar
-- arguments: name
SELECT name, working_days, days, description, manifest, CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END FROM dbjobs.calendars WHERE name = $1 AND planned IS DISTINCT FROM plan_input FOR UPDATE SKIP LOCKED;

-- name: lock_calendars
-- arguments: ids
SELECT name FROM dbjobs.calendars WHERE name = ANY($1::text[]) FOR UPDATE SKIP LOCKED;

-- name: lock_done_schedules
-- arguments: ids
SELECT job_id FROM dbjobs.schedules WHERE job_id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED;

-- name: lock_ending
-- arguments: now, rows
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()))
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, fence int, holder text, number int, recorded int) CROSS JOIN LATERAL (SELECT id, fence FROM dbjobs.runs
  WHERE id = d.id AND fence = d.fence AND holder = d.holder AND state = 'running' AND attempts = d.number AND (d.recorded IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'succeeded')) OFFSET 0 FOR UPDATE SKIP LOCKED) AS r;

-- name: lock_groups
-- arguments: ids
SELECT name FROM dbjobs.group_plans WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE;

-- name: lock_holders
SELECT a.pid, a.usename::text, a.application_name, pg_catalog.min(a.xact_start)
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_class c ON c.oid = l.relation AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'dbjobs'
JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.mode <> 'AccessShareLock' AND a.pid <> pg_catalog.pg_backend_pid()
GROUP BY a.pid, a.usename, a.application_name
ORDER BY pg_catalog.min(a.xact_start) NULLS LAST, a.pid LIMIT 3;

-- name: lock_installation
SELECT version FROM dbjobs.installation WHERE id = 1 FOR UPDATE;

-- name: lock_jobs
-- arguments: ids
SELECT id FROM dbjobs.jobs WHERE id = ANY($1::bigint[]) ORDER BY id FOR UPDATE;

-- name: lock_old_gaps
-- arguments: rows, limit
SELECT g.job_id, g.schedule_id, g.through_at, g.reason FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, since timestamptz)
CROSS JOIN LATERAL (SELECT o.job_id, o.schedule_id, o.through_at, o.reason FROM dbjobs.gaps o WHERE o.job_id = d.job_id AND o.through_at < d.since AND o.recorded_at < d.since
  OFFSET 0 FOR UPDATE SKIP LOCKED) AS g LIMIT $2;

-- name: lock_own_schedules
-- arguments: ids
SELECT id, CASE WHEN planned IS DISTINCT FROM plan_input THEN true ELSE false END FROM dbjobs.schedules WHERE job_id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED;

-- name: lock_pauses
-- arguments: ids
SELECT id, plan_input FROM dbjobs.pauses WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED;

-- name: lock_plans
-- arguments: ids
SELECT job_id FROM dbjobs.plans WHERE job_id = ANY($1::bigint[]) ORDER BY job_id FOR UPDATE;

-- name: lock_queued
-- arguments: now, ids, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, (SELECT COALESCE(pg_catalog.MAX(a.number), 0) FROM dbjobs.attempts a WHERE a.run_id = r.id), COALESCE((SELECT a.step_name FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name), coalesce($1::timestamptz, pg_catalog.statement_timestamp())
FROM dbjobs.runs r WHERE r.id = ANY($2::uuid[]) AND state || '' = 'queued'
AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()))
ORDER BY r.priority DESC, r.ready_at, r.id LIMIT $3 FOR UPDATE SKIP LOCKED;

-- name: lock_removed_jobs
-- arguments: ids, now, later_ms
SELECT j.id, CASE WHEN EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id) THEN true ELSE false END
FROM dbjobs.jobs j WHERE j.id = ANY($1::bigint[]) AND j.removed_at < (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond') AND (j.done_at IS NULL OR j.manifest IS NULL)
AND (SELECT r.job_id FROM dbjobs.runs r WHERE r.job_id = j.id LIMIT 1) IS NULL
AND (SELECT g.job_id FROM dbjobs.gaps g WHERE g.job_id = j.id LIMIT 1) IS NULL
AND (SELECT f.job_id FROM dbjobs.job_after f WHERE f.after_job_id = j.id LIMIT 1) IS NULL ORDER BY j.id FOR UPDATE SKIP LOCKED;

-- name: lock_removed_plans
-- arguments: ids
SELECT job_id FROM dbjobs.plans WHERE job_id = ANY($1::bigint[]) ORDER BY job_id FOR UPDATE SKIP LOCKED;

-- name: lock_runs
-- arguments: ids
SELECT id FROM dbjobs.runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: lock_schedules
-- arguments: ids
SELECT id, plan_input FROM dbjobs.schedules WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED;

-- name: lock_settled
-- arguments: now, ids
SELECT id, COALESCE((SELECT pg_catalog.MIN(a.number) FROM dbjobs.attempts a WHERE a.run_id = dbjobs.runs.id), attempts + 1), attempts,
  CASE WHEN COALESCE(CASE WHEN finished_at < '9000-01-01' THEN finished_at + (SELECT j.keep_age_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id)::double precision * interval '1 millisecond' END, expires_at) <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN true ELSE false END, CASE WHEN expires_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN true ELSE false END
FROM dbjobs.runs WHERE id = ANY($2::uuid[]) AND settled_at IS NOT NULL ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: lock_stale_after
-- arguments: ids
SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id = ANY($1::bigint[]) ORDER BY job_id, after_job_id FOR UPDATE SKIP LOCKED;

-- name: lock_stale_jobs
-- arguments: ids
SELECT id, plan_input FROM dbjobs.jobs WHERE id = ANY($1::bigint[]) FOR UPDATE SKIP LOCKED;

-- name: lock_stale_links
-- arguments: ids
SELECT job_id FROM dbjobs.job_schedules WHERE job_id = ANY($1::bigint[]) ORDER BY job_id, schedule_id FOR UPDATE SKIP LOCKED;

-- name: lock_unchanged_jobs
-- arguments: ids
SELECT id FROM dbjobs.jobs WHERE id = ANY($1::bigint[]) AND planned = plan_input FOR UPDATE SKIP LOCKED;

-- name: log_changes
-- arguments: now, by, reason, rows
INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason, was, became)
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), $2, d.kind, d.subject_id, d.subject, d.action, $3, d.was, d.became
FROM pg_catalog.json_to_recordset($4::json) AS d(kind text, subject_id bigint, subject text, action text, was jsonb, became jsonb);

-- name: login
SELECT session_user::text;

-- name: lose_attempts
-- arguments: now, ids
UPDATE dbjobs.attempts SET state = 'lost', finished_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE run_id = ANY($2::uuid[]) AND state = 'running';

-- name: manifest_owners
-- arguments: manifest
SELECT 'schedule', name, owner FROM dbjobs.schedules WHERE manifest = $1 AND name IS NOT NULL AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) = true
UNION ALL
SELECT 'calendar', name, owner FROM dbjobs.calendars WHERE manifest = $1 AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) = true;

-- name: mark_after
-- arguments: ids
UPDATE dbjobs.job_after SET planned = after_job_id WHERE job_id = ANY($1::bigint[]);

-- name: mark_calendar
-- arguments: name
UPDATE dbjobs.calendars SET planned = plan_input WHERE name = $1;

-- name: mark_jobs
-- arguments: ids
UPDATE dbjobs.jobs SET planned = plan_input WHERE id = ANY($1::bigint[]);

-- name: mark_links
-- arguments: ids
UPDATE dbjobs.job_schedules SET planned = schedule_id WHERE job_id = ANY($1::bigint[])
AND EXISTS (SELECT 1 FROM dbjobs.plan_rules r WHERE r.job_id = dbjobs.job_schedules.job_id AND r.schedule_id = dbjobs.job_schedules.schedule_id);

-- name: mark_pauses
-- arguments: ids
UPDATE dbjobs.pauses SET planned = plan_input WHERE id = ANY($1::bigint[]);

-- name: mark_schedules
-- arguments: ids
UPDATE dbjobs.schedules SET planned = plan_input, parked = NULL WHERE id = ANY($1::bigint[]) AND (
  SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.schedule_id = dbjobs.schedules.id
  AND COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> dbjobs.schedules.plan_input
  LIMIT 1) IS NULL
AND (job_id IS NULL OR (SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = dbjobs.schedules.job_id AND r.schedule_id = dbjobs.schedules.id) = plan_input);

-- name: move_steps
-- arguments: rows
UPDATE dbjobs.runs AS r SET step = d.step, step_name = d.step_name
FROM pg_catalog.json_to_recordset($1::json) AS d(id uuid, step int, step_name text)
WHERE r.id = d.id AND r.state = 'queued';

-- name: need_check
-- arguments: now, zones, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), u.id, NULL, u.id FROM (
  SELECT j.id FROM dbjobs.jobs j LEFT JOIN dbjobs.plans p ON p.job_id = j.id WHERE p.job_id IS NULL AND j.removed_at IS NULL
  UNION
  SELECT a.job_id FROM dbjobs.job_after a JOIN dbjobs.jobs j ON j.id = a.job_id LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id
  WHERE o.id IS NULL AND j.removed_at IS NULL
  UNION
  SELECT l.job_id FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE s.id IS NULL
  UNION
  SELECT COALESCE(s.job_id, l.job_id) FROM dbjobs.schedules s LEFT JOIN dbjobs.calendars c ON c.name = s.calendar
  LEFT JOIN dbjobs.job_schedules l ON l.schedule_id = s.id
  WHERE s.calendar <> '' AND c.name IS NULL AND COALESCE(s.job_id, l.job_id) IS NOT NULL
  UNION
  SELECT n.job_id FROM dbjobs.runs n  LEFT JOIN dbjobs.jobs j ON j.id = n.job_id WHERE settled_at IS NULL AND job_id > 0 AND j.id IS NULL
  UNION
  SELECT n.job_id FROM dbjobs.runs n  WHERE settled_at IS NULL AND job_id > 0 AND n.state = 'waiting' AND n.held_by = 'group'
  UNION
  SELECT p.job_id FROM dbjobs.jobs j JOIN dbjobs.plans p ON p.job_id = j.id
  WHERE j.repeat_after_ms IS NOT NULL AND j.enabled = true AND j.removed_at IS NULL AND (j.max_runs IS NULL OR j.max_runs > p.runs_made)
    AND p.next_run IS NULL AND p.repeat_from = p.last_scheduled_for
    AND NOT EXISTS (SELECT 1 FROM dbjobs.runs n  WHERE settled_at IS NULL AND job_id = j.id AND settled_at IS NULL AND job_id > 0 AND n.scheduled_for = p.repeat_from AND n.occurrence LIKE 'at:%')
  UNION
  SELECT p.job_id FROM dbjobs.plans p WHERE parked IS NOT NULL
  UNION
  SELECT r.job_id FROM dbjobs.plan_rules r WHERE r.ends <> '' AND r.ends < $2
) AS u WHERE u.id > $3 ORDER BY u.id LIMIT $4;

-- name: need_ended
-- arguments: now, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), job_id, NULL, job_id FROM dbjobs.job_ends WHERE seen = false AND job_id > $2 ORDER BY job_id LIMIT $3;

-- name: need_job
-- arguments: now, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), id, NULL, id FROM dbjobs.jobs WHERE planned IS DISTINCT FROM plan_input AND id > $2 ORDER BY id LIMIT $3;

-- name: need_link
-- arguments: now, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), u.id, NULL, u.id FROM (
  SELECT * FROM (SELECT job_id AS id FROM dbjobs.job_schedules WHERE planned IS DISTINCT FROM schedule_id AND job_id > $2 ORDER BY job_id LIMIT $3) AS l
  UNION
  SELECT * FROM (SELECT job_id AS id FROM dbjobs.job_after WHERE planned IS DISTINCT FROM after_job_id AND job_id > $2 ORDER BY job_id LIMIT $3) AS a
) AS u ORDER BY u.id LIMIT $3;

-- name: need_older
-- arguments: now, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), p.job_id, NULL, p.job_id FROM dbjobs.plans p
WHERE p.job_id > $2 AND p.runs_made < (SELECT r.number FROM dbjobs.runs r  WHERE r.job_id = p.job_id AND r.number IS NOT NULL ORDER BY r.job_id DESC, r.number DESC LIMIT 1) ORDER BY p.job_id LIMIT $3;

-- name: need_pause
-- arguments: window, now, id, wide, limit
WITH p AS (SELECT scope, subject_id, subject FROM dbjobs.pauses WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT $1)
SELECT coalesce($2::timestamptz, pg_catalog.statement_timestamp()), u.id, NULL, u.id FROM (
  SELECT p.subject_id AS id FROM p WHERE p.scope = 'job' AND p.subject_id > $3
  UNION
  SELECT l.job_id FROM p CROSS JOIN dbjobs.job_schedules l WHERE p.scope = 'schedule' AND l.schedule_id = p.subject_id AND l.job_id > $3
  UNION
  SELECT a.id FROM (
    SELECT j.id FROM dbjobs.jobs j
    WHERE j.id > $4 AND EXISTS (SELECT 1 FROM p WHERE p.scope = 'all' OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND j.tags @> pg_catalog.jsonb_build_array(p.subject))
    AND j.removed_at IS NULL ORDER BY j.id LIMIT $5) AS a
) AS u ORDER BY u.id LIMIT $5;

-- name: need_plan
-- arguments: now, owner, up_to, at, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), job_id, next_run, job_id FROM dbjobs.plans
WHERE owner = COALESCE($2, session_user::text) AND next_run <= $3 AND (next_run, job_id) > ($4, $5) ORDER BY next_run, job_id LIMIT $6;

-- name: need_run
-- arguments: now, at, id, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), job_id, wake_at, id, CASE WHEN finished_at > wake_at AND finished_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN finished_at ELSE wake_at END AS since FROM dbjobs.runs
WHERE wake_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND (wake_at, id) > ($2, $3) ORDER BY wake_at, id LIMIT $4;

-- name: need_schedule
-- arguments: window, now, id, limit
WITH s AS (SELECT id, job_id, plan_input FROM dbjobs.schedules WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT $1)
SELECT coalesce($2::timestamptz, pg_catalog.statement_timestamp()), u.id, NULL, u.id FROM (
  SELECT l.job_id AS id FROM s CROSS JOIN dbjobs.job_schedules l
  WHERE l.schedule_id = s.id
    AND COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> s.plan_input
    AND l.job_id > $3
  UNION
  SELECT s.job_id FROM s
  WHERE COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = s.job_id AND r.schedule_id = s.id), '') <> s.plan_input
    AND s.job_id > $3
) AS u ORDER BY u.id LIMIT $4;

-- name: need_startup
-- arguments: now, startup, owner, id, start, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), j.id, NULL, j.id FROM dbjobs.jobs j LEFT JOIN dbjobs.plans p ON p.job_id = j.id AND pg_catalog.strpos(p.startup_ids, pg_catalog.chr(10) || $2::text || pg_catalog.chr(10)) > 0
WHERE j.on_startup = true AND p.job_id IS NULL AND j.removed_at IS NULL AND j.owner = COALESCE($3, session_user::text) AND j.id > $4
AND NOT EXISTS (SELECT 1 FROM dbjobs.runs r WHERE r.job_id = j.id AND r.occurrence = $5) ORDER BY j.id LIMIT $6;

-- name: newest_due
-- arguments: owner, up_to, now
SELECT pg_catalog.MAX(t.due) FROM (
  SELECT pg_catalog.MAX(next_run) AS due FROM dbjobs.plans WHERE owner = COALESCE($1, session_user::text) AND next_run <= $2
  UNION ALL
  SELECT pg_catalog.MAX(w.since) AS due FROM (SELECT CASE WHEN finished_at > wake_at AND finished_at <= coalesce($3::timestamptz, pg_catalog.statement_timestamp()) THEN finished_at ELSE wake_at END AS since FROM dbjobs.runs WHERE wake_at <= $2 ORDER BY wake_at DESC LIMIT 1000) AS w
) AS t;

-- name: next_after
-- arguments: owner, after
SELECT pg_catalog.MIN(t.due) FROM (
  SELECT pg_catalog.MIN(next_run) AS due FROM dbjobs.plans WHERE owner = COALESCE($1, session_user::text) AND next_run > $2
  UNION ALL
  SELECT pg_catalog.MIN(wake_at) AS due FROM dbjobs.runs WHERE wake_at > $2
) AS t;

-- name: next_of_owner
-- arguments: owner, now
SELECT (SELECT pg_catalog.MIN(next_run) FROM dbjobs.plans WHERE owner = $1),
  (SELECT next_run FROM dbjobs.plans WHERE owner = $1 AND next_run <= coalesce($2::timestamptz, pg_catalog.statement_timestamp()) AND parked IS NULL ORDER BY next_run LIMIT 1);

-- name: next_queue
-- arguments: after
SELECT queue FROM dbjobs.runs WHERE state = 'queued' AND queue > $1 ORDER BY queue LIMIT 1;

-- name: next_step
-- arguments: step, now, lease_ms, id, fence, holder, number
UPDATE dbjobs.runs SET step = $1, attempt = 1, attempts = attempts + 1, losses = 0, lease_until = (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond')
WHERE id = $4 AND fence = $5 AND holder = $6 AND state = 'running' AND attempts = $7;

-- name: nominal_runs
-- arguments: ids, after, through, filled_after, filled_through, limit
SELECT job_id, scheduled_for FROM dbjobs.runs WHERE job_id = ANY($1::bigint[]) AND occurrence > $2 AND occurrence <= $3
UNION ALL SELECT job_id, scheduled_for FROM dbjobs.runs WHERE job_id = ANY($1::bigint[]) AND occurrence > $4 AND occurrence < $5 LIMIT $6;

-- name: old_records
-- arguments: now, later_ms, limit, share
SELECT t.since, NULL, 'tick' FROM (SELECT since FROM dbjobs.ticks  WHERE since < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND last_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') ORDER BY since LIMIT $3) AS t
UNION ALL
SELECT NULL, p.id, 'pause' FROM (SELECT id FROM dbjobs.pauses 
  WHERE scope IN ('all', 'job', 'owner', 'schedule', 'tag') AND ends_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END = 0 LIMIT $3) AS p
UNION ALL
SELECT NULL, a.id, 'change' FROM (SELECT id FROM dbjobs.changes  WHERE action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND changed_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') ORDER BY changed_at LIMIT $3) AS a
UNION ALL
SELECT NULL, c.id, 'change' FROM (
  SELECT n.id, n.changed_at, n.kind, n.subject_id, n.action FROM dbjobs.changes n
  WHERE n.id >= (SELECT (coalesce(pg_catalog.max(m.id), 0)::double precision * $4::double precision)::bigint FROM dbjobs.changes m) ORDER BY n.id LIMIT $3) AS c
WHERE c.changed_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND c.action <> 'rename' AND NOT action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND (c.kind <> 'job'
  OR EXISTS (SELECT 1 FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = c.subject_id AND l.id > c.id
    AND l.action <> 'rename' AND (l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort') OR c.action IN ('pause', 'resume') AND l.action IN ('create', 'change', 'pause', 'resume', 'enable', 'disable', 'abort')))
    AND (c.action IN ('pause', 'resume') OR NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = c.subject_id AND j.remove_when_done = true))
  OR NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = c.subject_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)));

-- name: old_views
-- arguments: names
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY($1::text[])
  AND pg_catalog.current_setting('server_version_num')::integer >= 150000
  AND NOT ('security_invoker=true' = ANY(coalesce(c.reloptions, '{}'::text[]))) ORDER BY c.relname;

-- name: oldest_kept
-- arguments: ids
SELECT r.job_id, pg_catalog.MIN(r.number), pg_catalog.MIN(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END)
FROM dbjobs.runs r JOIN dbjobs.plans p ON p.job_id = r.job_id JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = ANY($1::bigint[]) AND r.number > p.runs_made - j.keep_runs GROUP BY r.job_id;

-- name: oldest_queued
SELECT pg_catalog.MIN(queued_since) FROM dbjobs.runs WHERE queued_since IS NOT NULL;

-- name: only_own
SELECT pg_catalog.row_security_active('dbjobs.ticks') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r
  WHERE r.rolname IN ('dbjobs_admin', 'dbjobs_ticker', 'dbjobs_reader') AND pg_catalog.pg_has_role(r.oid, 'USAGE'));

-- name: open_pause
-- arguments: scope, subject_id, subject, now
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed FROM dbjobs.pauses p 
WHERE p.scope = $1 AND (p.subject_id = $2 OR $2 = 0) AND ($3 = '' OR p.subject = $3) AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp()) ORDER BY p.id;

-- name: open_runs
-- arguments: now, limit
SELECT g.state, g.held_by, g.begun, g.later, g.queue, g.cap, g.runs, g.created, g.ready, j.owner, j.name FROM (
  SELECT s.state, s.held_by, s.begun, s.later, s.queue, s.cap, pg_catalog.COUNT(*) AS runs, pg_catalog.MIN(s.created_at) AS created, pg_catalog.MIN(s.ready_at) AS ready, pg_catalog.MIN(s.job_id) AS job_id
  FROM (SELECT r.state, r.held_by, CASE WHEN r.started_at IS NULL THEN false ELSE true END AS begun,
      CASE WHEN r.ready_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN true ELSE false END AS later, r.queue, r.created_at,
      COALESCE(r.queued_since, r.ready_at) AS ready_at, r.job_id,
      CASE WHEN r.held_by = 'group' THEN (SELECT x.group_name FROM dbjobs.jobs x WHERE x.id = r.job_id) END AS cap
    FROM dbjobs.runs r WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state IN ('waiting', 'queued', 'running')) AS s
  GROUP BY s.state, s.held_by, s.begun, s.later, s.queue, s.cap) AS g
LEFT JOIN dbjobs.jobs j ON j.id = g.job_id ORDER BY g.created, g.job_id LIMIT $2;

-- name: others_in_schema
SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs')
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'dbjobs')
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = 'dbjobs');

-- name: own_plans
-- arguments: ids
UPDATE dbjobs.plans SET owner = COALESCE((SELECT j.owner FROM dbjobs.jobs j WHERE j.id = dbjobs.plans.job_id), owner) WHERE job_id = ANY($1::bigint[]);

-- name: own_rules
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs.schedules s WHERE s.job_id = ANY($1::bigint[]);

-- name: own_schedules
-- arguments: ids
SELECT job_id FROM dbjobs.schedules WHERE job_id = ANY($1::bigint[]);

-- name: owners
WITH RECURSIVE o (owner) AS (
  SELECT pg_catalog.MIN(p.owner) FROM dbjobs.plans p
  UNION ALL
  SELECT (SELECT pg_catalog.MIN(p.owner) FROM dbjobs.plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner FROM o WHERE owner IS NOT NULL ORDER BY owner;

-- name: park_plans
-- arguments: rows
UPDATE dbjobs.plans AS p SET parked = d.parked, next_run = d.next_run
FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, parked text, next_run timestamptz)
WHERE p.job_id = d.job_id;

-- name: park_schedule
-- arguments: parked, id
UPDATE dbjobs.schedules SET parked = $1 WHERE id = $2 AND planned = plan_input;

-- name: past_renames
-- arguments: ids
SELECT kind, COALESCE(subject_id, 0), subject, was FROM dbjobs.changes WHERE action = 'rename' AND subject = ANY($1::text[]);

-- name: path
SELECT pg_catalog.array_to_string(pg_catalog.current_schemas(true), pg_catalog.chr(31)), session_user::text;

-- name: pause
-- arguments: scope, subject_id, subject, reason, paused_by, now, until_at, until_as
INSERT INTO dbjobs.pauses (scope, subject_id, subject, reason, paused_by, since, until_at, until_as)
VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, pg_catalog.statement_timestamp()), $7, $8);

-- name: pauses
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, j.owner, j.name, s.name
FROM dbjobs.pauses p
LEFT JOIN dbjobs.jobs j ON p.scope = 'job' AND j.id = p.subject_id
LEFT JOIN dbjobs.schedules s ON p.scope = 'schedule' AND s.id = p.subject_id
ORDER BY p.id DESC LIMIT $1;

-- name: pauses_ahead
-- arguments: now, later_ms, job, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p 
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.ends_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (p.resumed_at IS NOT NULL OR p.since > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')) AND (p.subject_id = $3 AND p.scope = 'job' OR $3 = 0)
ORDER BY p.id LIMIT $4;

-- name: pauses_among
-- arguments: ids, now, wide
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id), NULL
FROM dbjobs.pauses p  WHERE p.scope = 'job' AND p.subject_id = ANY($1::bigint[]) AND p.resumed_at IS NULL AND p.ends_at > coalesce($2::timestamptz, pg_catalog.statement_timestamp())
UNION ALL
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p  WHERE $3 = 1 AND p.scope IN ('schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > coalesce($2::timestamptz, pg_catalog.statement_timestamp()) ORDER BY 1 DESC;

-- name: pauses_held
-- arguments: now, limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p 
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ORDER BY CASE p.scope WHEN 'all' THEN 0 ELSE 1 END, p.id DESC LIMIT $2;

-- name: pauses_left
-- arguments: limit
SELECT p.id, p.scope, p.subject_id, p.subject, p.reason, p.paused_by, p.since, p.until_at, p.until_as, p.resumed_at, p.resumed_by, p.missed, NULL, NULL, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p  WHERE planned IS DISTINCT FROM plan_input AND p.resumed_at IS NOT NULL ORDER BY p.id DESC LIMIT $1;

-- name: predecessors
-- arguments: ids
WITH RECURSIVE up (job_id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id = ANY($1::bigint[])
  UNION
  SELECT a.job_id, a.after_job_id FROM up JOIN dbjobs.job_after a ON a.job_id = up.after_id
)
SELECT up.job_id, j.id, j.owner, j.name FROM up CROSS JOIN dbjobs.jobs j WHERE j.id = up.after_id AND j.removed_at IS NULL;

-- name: probe
-- arguments: now, queue, owners, name
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), i.version, i.oldest, i.instance, i.owners, EXISTS (SELECT 1 FROM pg_catalog.unnest('{attempts,calendars,gaps,group_plans,groups,job_after,job_ends,job_schedules,jobs,pauses,plan_rules,plans,runs,schedules,steps}'::text[]) t WHERE pg_catalog.to_regclass('dbjobs.' || t || '_pkey') IS NULL) OR pg_catalog.to_regclass('dbjobs.runs_job_id_occurrence_key') IS NULL, (NOT i.owners AND EXISTS (SELECT 1 FROM pg_catalog.unnest('{attempts,calendars,gaps,group_plans,groups,job_after,job_ends,job_schedules,jobs,pauses,plan_rules,plans,runs,schedules,steps,changes,ticks,installation}'::text[]) t WHERE pg_catalog.row_security_active(pg_catalog.to_regclass('dbjobs.' || t)::oid) AND (NOT (SELECT coalesce(pg_catalog.string_agg(p.polcmd::text, ''), '') FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('dbjobs.' || t)::oid AND EXISTS (SELECT 1 FROM pg_catalog.unnest(p.polroles) r WHERE CASE WHEN r = 0::oid THEN true ELSE pg_catalog.pg_has_role(r, 'USAGE') END) AND p.polpermissive AND coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') = 'true') ~ CASE WHEN t IN ('plans', 'runs') THEN '[*]|r.*w|w.*r' ELSE '[*]|r' END OR EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE p.polrelid = pg_catalog.to_regclass('dbjobs.' || t)::oid AND EXISTS (SELECT 1 FROM pg_catalog.unnest(p.polroles) r WHERE CASE WHEN r = 0::oid THEN true ELSE pg_catalog.pg_has_role(r, 'USAGE') END) AND NOT p.polpermissive AND NOT coalesce(pg_catalog.pg_get_expr(p.polqual, p.polrelid), '') = 'true' AND p.polcmd IN ('*', 'r', 'w'))))),
  (SELECT pg_catalog.MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())),
  (SELECT pg_catalog.MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.ends_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp())),
  (SELECT pg_catalog.MIN(next_run) FROM dbjobs.plans WHERE owner = session_user::text),
  (SELECT next_run FROM dbjobs.plans WHERE owner = session_user::text AND next_run <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND parked IS NULL ORDER BY next_run LIMIT 1),
  (SELECT wake_at FROM dbjobs.runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT CASE WHEN finished_at > wake_at AND finished_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN finished_at ELSE wake_at END AS since FROM dbjobs.runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT id FROM dbjobs.jobs WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT 1),
  COALESCE((SELECT job_id FROM dbjobs.job_schedules WHERE planned IS DISTINCT FROM schedule_id ORDER BY job_id LIMIT 1),
    (SELECT job_id FROM dbjobs.job_after WHERE planned IS DISTINCT FROM after_job_id ORDER BY job_id LIMIT 1)),
  (SELECT id FROM dbjobs.schedules WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT 1),
  (SELECT id FROM dbjobs.pauses WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT 1),
  (SELECT name FROM dbjobs.calendars WHERE planned IS DISTINCT FROM plan_input ORDER BY name LIMIT 1),
  (SELECT job_id FROM dbjobs.job_ends WHERE seen = false ORDER BY job_id LIMIT 1),
  (SELECT queued_since FROM dbjobs.runs WHERE state = 'queued' AND queue = $2 AND (SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id AND (j.owner = session_user::text OR j.owner = ANY($3::text[]))) IS NOT NULL ORDER BY priority DESC, ready_at, id LIMIT 1),
  (SELECT pg_catalog.MIN(owner) FROM dbjobs.plans), (SELECT pg_catalog.MAX(owner) FROM dbjobs.plans),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE parked IS NOT NULL AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = true),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE streak > 0 AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = true),
  CASE WHEN (SELECT expires_at FROM dbjobs.runs WHERE expires_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ORDER BY expires_at LIMIT 1) IS NULL THEN false ELSE true END,
  t.since, t.last_at, t.began_at, t.checked_at, COALESCE(t.passes, 0), session_user::text, pg_catalog.array_to_string(pg_catalog.current_schemas(true), pg_catalog.chr(31))
FROM dbjobs.installation i
LEFT JOIN dbjobs.ticks t ON t.name = $4 AND t.since = (SELECT pg_catalog.MAX(since) FROM dbjobs.ticks WHERE name = $4)
WHERE i.id = 1;

-- name: queued_ids
-- arguments: queue, login, owners, within_ms, timed, now, ids, until, holder, limit
SELECT id FROM dbjobs.runs WHERE state = 'queued' AND queue = $1
AND ($2 = '' OR (SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id AND (j.owner = session_user::text OR j.owner = ANY($3::text[]))) IS NOT NULL)
AND ($4 = 0::bigint OR
  COALESCE((SELECT j.timeout_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id), CASE WHEN $5 THEN $4 + 1 ELSE 0 END) <= $4)
AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.resumed_at IS NULL AND p.ends_at > coalesce($6::timestamptz, pg_catalog.statement_timestamp()))
AND CASE WHEN id = ANY($7::uuid[]) THEN true WHEN created_at > $8 AND created_at <= coalesce($6::timestamptz, pg_catalog.statement_timestamp())
  AND COALESCE((SELECT b.holder FROM dbjobs.runs b WHERE b.id = CASE WHEN dbjobs.runs.occurrence ~ '^(after|hook[:][a-z]+)[:][0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}([:]|$)' THEN pg_catalog.split_part(dbjobs.runs.occurrence, ':', CASE WHEN dbjobs.runs.occurrence LIKE 'after%' THEN 2 ELSE 3 END)::uuid END), '') <> $9 THEN false ELSE true END = true
ORDER BY priority DESC, ready_at, id LIMIT $10;

-- name: read_now
-- arguments: now
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()) FROM (SELECT 1 AS one) AS source;

-- name: read_thaw
-- arguments: now
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), (SELECT pg_catalog.MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.ends_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp())) FROM (SELECT 1 AS one) AS source;

-- name: recall
-- arguments: ids
SELECT p.job_id, (SELECT pg_catalog.MAX(r.number) FROM dbjobs.runs r WHERE r.job_id = p.job_id),
  (SELECT pg_catalog.MAX(r.scheduled_for) FROM dbjobs.runs r WHERE r.job_id = p.job_id AND r.occurrence LIKE 'at:%'),
  (SELECT pg_catalog.MAX(g.through_at) FROM dbjobs.gaps g WHERE g.job_id = p.job_id)
FROM dbjobs.plans p WHERE p.job_id = ANY($1::bigint[]);

-- name: recent_gaps
-- arguments: since, limit
SELECT g.job_id, j.owner, j.name, g.schedule_id, g.from_at, g.through_at, g.reason, g.rule, g.recorded_at FROM dbjobs.gaps g LEFT JOIN dbjobs.jobs j ON j.id = g.job_id
WHERE g.through_at >= $1 ORDER BY g.through_at DESC, g.job_id, g.schedule_id LIMIT $2;

-- name: record_attempt
-- arguments: id, fence, holder, number, waited_ms, rows, output, result, now
SELECT dbjobs.record_attempt($1::uuid, $2::integer, $3::text, $4::integer, $5::bigint, $6::bigint, $7::text, $8::text, $9::timestamptz);

-- name: record_first_tick
-- arguments: name, now, began, checked, holder, version, decided, started, failed, error, took_ms
INSERT INTO dbjobs.ticks (name, since, last_at, began_at, checked_at, holder, version, decided, started, failed, error, took_ms)
VALUES ($1, coalesce($2::timestamptz, pg_catalog.statement_timestamp()), coalesce($2::timestamptz, pg_catalog.statement_timestamp()), $3, $4, $5, $6, $7, $8, $9, $10, $11);

-- name: record_migration
-- arguments: version, oldest, now
UPDATE dbjobs.installation SET version = $1, oldest = $2, migrated_at = coalesce($3::timestamptz, pg_catalog.statement_timestamp()) WHERE id = 1;

-- name: record_repeatable
-- arguments: repeatable
UPDATE dbjobs.installation SET repeatable = $1 WHERE id = 1;

-- name: record_tick
-- arguments: now, later_ms, began, checked, regular, holder, version, decided, started, failed, error, took_ms, name, since
UPDATE dbjobs.ticks SET since = CASE WHEN last_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN last_at ELSE since END, last_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()),
  began_at = CASE WHEN began_at > $3 AND began_at <= coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN began_at ELSE COALESCE($3, began_at) END, checked_at = COALESCE($4, checked_at),
  passes = passes + $5, holder = $6, version = $7, decided = decided + $8,
  started = started + $9, failed = failed + $10, error = $11, took_ms = $12
WHERE name = $13 AND since = $14;

-- name: recorded_runs
-- arguments: ids
SELECT r.id, r.job_id, a.finished_at FROM dbjobs.runs r JOIN dbjobs.attempts a ON a.run_id = r.id AND a.number = r.attempts
WHERE r.id = ANY($1::uuid[]) AND r.state = 'running' AND a.fence = r.fence AND a.state = 'succeeded';

-- name: redeliver
-- arguments: now, later_ms, lost, run_error, id, fence, holder, number
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond'), lease_until = NULL, losses = losses + $3,
  attempt = attempt - 1, error = $4
WHERE id = $5 AND fence = $6 AND holder = $7 AND state = 'running' AND attempts = $8;

-- name: remove_jobs
-- arguments: now, ids
UPDATE dbjobs.jobs SET removed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE id = ANY($2::bigint[]) AND removed_at IS NULL;

-- name: removed_job
-- arguments: owner, name
SELECT id FROM dbjobs.jobs WHERE owner = $1 AND name = $2 AND removed_at IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: removed_jobs
-- arguments: ids
SELECT j.id, j.owner, j.name, CASE WHEN j.done_at IS NULL THEN false ELSE true END, l.became
FROM dbjobs.jobs j
LEFT JOIN dbjobs.changes l  ON j.done_at IS NOT NULL AND l.kind = 'job' AND l.action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') AND l.subject_id = j.id AND l.action IN ('create', 'change', 'rename', 'enable', 'disable', 'abort')
WHERE j.removed_at IS NOT NULL AND j.name = ANY($1::text[]) ORDER BY j.id;

-- name: rename_job
-- arguments: name, id
UPDATE dbjobs.jobs SET name = $1 WHERE id = $2;

-- name: rename_schedule
-- arguments: name, id
UPDATE dbjobs.schedules SET name = $1 WHERE id = $2;

-- name: reopen
-- arguments: now, step, step_name, id
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), step = $2, step_name = $3, attempt = 0, losses = 0, lease_until = NULL,
  cancel_at = NULL, cancel_by = NULL, started_at = NULL, finished_at = NULL, settled_at = NULL, expires_at = NULL, error = NULL
WHERE id = $4 AND state IN ('failed', 'cancelled', 'lost') AND settled_at IS NOT NULL;

-- name: repeatable_drops
-- arguments: names
SELECT 'DROP VIEW ' || pg_catalog.string_agg(pg_catalog.format('dbjobs.%I', c.relname), ', ')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY($1::text[]) HAVING pg_catalog.count(*) > 0
UNION ALL
SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::regprocedure::text, ', ')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY($1::text[]) HAVING pg_catalog.count(*) > 0;

-- name: repeatable_rights
-- arguments: names
WITH o AS (
  SELECT 'TABLE' AS kind, c.relname::text AS name, c.relacl AS acl, c.relowner AS owner
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY($1::text[])
  UNION ALL
  SELECT 'ROUTINE', p.proname::text, p.proacl, p.proowner
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY($1::text[])
)
SELECT u.text FROM (
  SELECT 1 AS place, pg_catalog.format('REVOKE ALL ON %s dbjobs.%I FROM PUBLIC', o.kind, o.name) AS text FROM o WHERE o.acl IS NOT NULL
  UNION ALL
  SELECT 2, pg_catalog.format('GRANT %s ON %s dbjobs.%I TO %s%s', a.privilege_type, o.kind, o.name,
    coalesce(pg_catalog.quote_ident(r.rolname::text), 'PUBLIC'), CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM o CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) AS a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
  WHERE a.grantee <> o.owner
) AS u ORDER BY u.place, u.text;

-- name: repeatables_there
-- arguments: names
SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY($1::text[]))
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY($1::text[]));

-- name: request_cancel
-- arguments: now, by, ids
UPDATE dbjobs.runs SET cancel_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), cancel_by = $2, state = CASE WHEN state = 'queued' THEN 'waiting' ELSE state END
WHERE id = ANY($3::uuid[]) AND state IN ('waiting', 'queued', 'running') AND cancel_at IS NULL;

-- name: request_run
-- arguments: id, job, occurrence, queue, priority, at, from, to, args, ready, now, step, step_name
INSERT INTO dbjobs.runs (id, job_id, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, args, ready_at, created_at, step, step_name)
VALUES ($1, $2, $3, 'waiting', $4, $5, $6, $7, $8, $9, $10, coalesce($11::timestamptz, pg_catalog.statement_timestamp()), $12, $13);

-- name: reserve_queued
-- arguments: ids, limit
SELECT c.id FROM pg_catalog.unnest($1::uuid[]) AS c(id)
WHERE CASE WHEN (SELECT r.id FROM dbjobs.runs r WHERE r.id = c.id AND state || '' = 'queued') IS NOT NULL
  THEN pg_catalog.pg_try_advisory_xact_lock(('x' || pg_catalog.right(c.id::text, 12))::bit(48)::bigint) END
LIMIT $2;

-- name: resume
-- arguments: now, resumed_by, missed, scope, subject_id, subject
UPDATE dbjobs.pauses SET resumed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), resumed_by = $2, missed = $3
WHERE scope = $4 AND (subject_id = $5 OR $5 = 0) AND ($6 = '' OR subject = $6)
AND resumed_at IS NULL AND (until_at IS NULL OR until_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()));

-- name: return_runs
-- arguments: now, rows
UPDATE dbjobs.runs AS r SET state = CASE WHEN r.cancel_at IS NULL THEN 'queued' ELSE 'waiting' END, held_by = NULL, lease_until = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), attempt = r.attempt - 1, attempts = r.attempts - 1,
  started_at = CASE WHEN d.fresh THEN NULL ELSE r.started_at END, error = d.error
FROM pg_catalog.json_to_recordset($2::json) AS d(id uuid, fence int, number int, fresh boolean, error text)
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: rewind_jobs
-- arguments: now, later_ms, job
UPDATE dbjobs.jobs SET created_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), planned = planned || '.' WHERE created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND removed_at IS NULL AND (id = $3 OR $3 = 0);

-- name: rewind_leases
-- arguments: now, ids, later_ms
UPDATE dbjobs.runs SET lease_until = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE settled_at IS NULL AND job_id = ANY($2::bigint[]) AND state = 'running' AND lease_until > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond');

-- name: rewind_open
-- arguments: now, later_ms, ids
UPDATE dbjobs.runs SET created_at = CASE WHEN created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE created_at END,
  started_at = CASE WHEN started_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE started_at END,
  queued_at = CASE WHEN queued_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE queued_at END
WHERE settled_at IS NULL AND job_id = ANY($3::bigint[]) AND (created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') OR started_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') OR queued_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond'));

-- name: rewind_pause
-- arguments: now, until_at, id
UPDATE dbjobs.pauses SET until_at = CASE WHEN since > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) AND until_at IS NOT NULL THEN $2 ELSE until_at END,
  since = CASE WHEN since > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE since END,
  resumed_at = CASE WHEN resumed_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE resumed_at END
WHERE id = $3;

-- name: rewind_plans
-- arguments: now, ids
UPDATE dbjobs.plans SET decided_through = CASE WHEN decided_through > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE decided_through END,
  next_run = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END,
  last_scheduled_for = CASE WHEN last_scheduled_for > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN NULL ELSE last_scheduled_for END,
  repeat_from = CASE WHEN repeat_from > coalesce($1::timestamptz, pg_catalog.statement_timestamp()) THEN coalesce($1::timestamptz, pg_catalog.statement_timestamp()) ELSE repeat_from END
WHERE job_id = ANY($2::bigint[]);

-- name: rewind_rules
-- arguments: now, later_ms, job
UPDATE dbjobs.plan_rules SET input = input || ' edited' WHERE schedule_id IN (SELECT s.id FROM dbjobs.schedules s WHERE s.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')
  AND (s.job_id = $3 OR s.id IN (SELECT l.schedule_id FROM dbjobs.job_schedules l WHERE l.job_id = $3) OR $3 = 0));

-- name: rewind_schedules
-- arguments: now, later_ms, job
UPDATE dbjobs.schedules SET created_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), planned = planned || '.' WHERE created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond')
  AND (job_id = $3 OR id IN (SELECT l.schedule_id FROM dbjobs.job_schedules l WHERE l.job_id = $3) OR $3 = 0);

-- name: rewind_start
-- arguments: not_before, id
UPDATE dbjobs.jobs SET not_before = $1, planned = planned || '.' WHERE id = $2;

-- name: rewind_waits
-- arguments: now, ids, later_ms
UPDATE dbjobs.runs SET ready_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()) WHERE settled_at IS NULL AND job_id = ANY($2::bigint[]) AND state = 'waiting' AND ready_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond')
  AND (started_at IS NOT NULL OR scheduled_for IS NULL OR scheduled_for < ready_at OR scheduled_for <= created_at);

-- name: room
SELECT 'of this login', least(
  pg_catalog.current_setting('max_connections')::bigint - pg_catalog.current_setting('superuser_reserved_connections')::bigint
    - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::bigint - (SELECT pg_catalog.sum(s.numbackends)::bigint FROM pg_catalog.pg_stat_database s),
  (SELECT CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit::bigint - s.numbackends::bigint END
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_stat_database s ON s.datid = d.oid WHERE d.datname = pg_catalog.current_database()),
  (SELECT CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit::bigint
      - (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = r.oid) END
    FROM pg_catalog.pg_roles r WHERE r.rolname = session_user));

-- name: run_by_number
-- arguments: job, number
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = $1 AND r.number = $2 ORDER BY r.id LIMIT 2;

-- name: run_by_prefix
-- arguments: low, high
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.id >= $1 AND r.id <= $2 ORDER BY r.id LIMIT 2;

-- name: run_job
-- arguments: id
SELECT r.job_id, j.owner, j.name, r.occurrence FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id WHERE r.id = $1;

-- name: run_latest
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = $1 AND r.number IS NOT NULL ORDER BY r.number DESC LIMIT 1;

-- name: run_undecided
-- arguments: job
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = $1 AND r.number IS NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: runs
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE ($1 = '' OR r.state = $1) AND r.created_at >= $2 AND r.created_at < $3
AND ($4 = 0::bigint OR (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = $4) > 0) AND ($5 = '' OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = $5)) ORDER BY r.created_at DESC, r.id DESC LIMIT $6;

-- name: runs_holding
-- arguments: job, group, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END
FROM (SELECT x.id FROM dbjobs.jobs x WHERE x.id = $1 UNION ALL SELECT x.id FROM dbjobs.jobs x WHERE x.group_name = $2) AS m
CROSS JOIN dbjobs.runs r  JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = m.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL)
ORDER BY COALESCE(r.started_at, r.created_at), r.id LIMIT $3;

-- name: runs_longest
-- arguments: limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = 'running' ORDER BY r.started_at, r.id LIMIT $1;

-- name: runs_of_job
-- arguments: job, state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = $1 AND ($2 = '' OR r.state = $2) AND r.created_at >= $3 AND r.created_at < $4
AND ($5 = 0::bigint OR (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = $5) > 0) AND ($6 = '' OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = $6)) ORDER BY r.created_at DESC, r.id DESC LIMIT $7;

-- name: runs_open_of_job
-- arguments: job, state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r  LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = $1 AND r.state = $2 AND r.created_at >= $3 AND r.created_at < $4
AND ($5 = 0::bigint OR (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = $5) > 0) AND ($6 = '' OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = $6)) ORDER BY r.created_at DESC, r.id DESC LIMIT $7;

-- name: runs_under_way
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r  LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id IS NOT NULL AND r.state = $1 AND r.created_at >= $2 AND r.created_at < $3
AND ($4 = 0::bigint OR (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = $4) > 0) AND ($5 = '' OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = $5)) ORDER BY r.created_at DESC, r.id DESC LIMIT $6;

-- name: runs_unended
-- arguments: job, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r  LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE settled_at IS NULL AND job_id = $1 AND r.state IN ('waiting', 'queued', 'running')
ORDER BY CASE r.state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, r.id LIMIT $2;

-- name: runs_unwell
-- arguments: state, since, until, schedule, step, limit
SELECT r.id, r.job_id, r.number, r.occurrence, r.state, r.held_by, r.queue, r.priority, r.scheduled_for, r.interval_start, r.interval_end,
  r.args, r.ready_at, r.step, r.attempt, r.attempts, r.fence, r.losses, r.lease_until, r.holder, r.cancel_at, r.cancel_by, r.created_at, r.started_at,
  r.finished_at, r.settled_at, r.error, j.owner, j.name, j.tags, CASE WHEN j.removed_at IS NULL THEN false ELSE true END FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.state IN ('failed', 'cancelled', 'lost') AND r.state = $1 AND r.created_at >= $2 AND r.created_at < $3
AND ($4 = 0::bigint OR (SELECT pg_catalog.COUNT(*) FROM dbjobs.job_schedules l WHERE l.job_id = r.job_id AND l.schedule_id = $4) > 0) AND ($5 = '' OR EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.step_name = $5)) ORDER BY r.created_at DESC, r.id DESC LIMIT $6;

-- name: schedule_id
-- arguments: name
SELECT id FROM dbjobs.schedules WHERE name = $1;

-- name: schedule_jobs
-- arguments: id
SELECT job_id FROM dbjobs.job_schedules WHERE schedule_id = $1 ORDER BY job_id;

-- name: schedule_users
-- arguments: ids
SELECT schedule_id, pg_catalog.COUNT(*) FROM dbjobs.job_schedules WHERE schedule_id = ANY($1::bigint[]) GROUP BY schedule_id;

-- name: schedules
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs.schedules s WHERE s.name IS NOT NULL ORDER BY s.name;

-- name: schedules_among
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs.schedules s WHERE s.id = ANY($1::bigint[]) AND s.name IS NOT NULL;

-- name: schedules_named
-- arguments: ids
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs.schedules s WHERE s.name = ANY($1::text[]);

-- name: schedules_owned
-- arguments: manifest
SELECT s.id, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.description, s.manifest, s.created_at, s.job_id,
  CASE WHEN planned IS DISTINCT FROM plan_input THEN 1 ELSE 0 END, s.parked FROM dbjobs.schedules s WHERE s.manifest = $1 AND s.name IS NOT NULL;

-- name: see_calendar
-- arguments: version, name
UPDATE dbjobs.schedules SET calendar_version = $1, planned = NULL WHERE calendar = $2 AND calendar <> '';

-- name: see_ends
-- arguments: rows
UPDATE dbjobs.job_ends AS e SET seen = true FROM pg_catalog.json_to_recordset($1::json) AS d(id bigint, run_id uuid) WHERE e.id = d.id AND e.run_id = d.run_id;

-- name: server_settings
SELECT s.name, s.setting FROM pg_catalog.pg_settings s
WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'default_transaction_read_only', 'in_hot_standby');

-- name: server_tables
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup, pg_catalog.has_table_privilege(s.relid, 'SELECT') AND NOT pg_catalog.row_security_active(s.relid)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_stats p WHERE p.schemaname = s.schemaname AND p.tablename = s.relname)
FROM pg_catalog.pg_stat_user_tables s WHERE s.schemaname = 'dbjobs' ORDER BY s.relname;

-- name: set_instance
-- arguments: instance
UPDATE dbjobs.installation SET instance = $1 WHERE id = 1;

-- name: skips_ahead
-- arguments: ids, now
SELECT g.job_id, p.skips, g.schedule_id, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = g.schedule_id), g.through_at
FROM dbjobs.gaps g JOIN dbjobs.plans p ON p.job_id = g.job_id
WHERE g.job_id = ANY($1::bigint[]) AND g.from_at >= coalesce($2::timestamptz, pg_catalog.statement_timestamp()) AND g.reason = 'skipped' ORDER BY g.job_id, g.through_at;

-- name: spare_leases
-- arguments: until, ids
UPDATE dbjobs.runs SET lease_until = $1 WHERE id = ANY($2::uuid[]) AND state = 'running';

-- name: stale_calendars
-- arguments: window
SELECT name FROM dbjobs.calendars WHERE planned IS DISTINCT FROM plan_input ORDER BY name LIMIT $1;

-- name: stale_pauses
-- arguments: window
SELECT id, plan_input, CASE WHEN scope IN ('tag', 'owner', 'all') THEN true ELSE false END
FROM dbjobs.pauses WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT $1;

-- name: stale_schedules
-- arguments: window
SELECT id, plan_input, false FROM dbjobs.schedules WHERE planned IS DISTINCT FROM plan_input ORDER BY id LIMIT $1;

-- name: standing
-- arguments: ids, overdue, now
SELECT
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE p.owner = ANY($1::text[]) AND p.next_run <= $2 AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = true),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true),
  (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($3::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true)
FROM (SELECT 1 AS one) AS source;

-- name: standing_jobs
-- arguments: ids, overdue, limit, now
SELECT kind, job_id FROM (
  SELECT * FROM (SELECT 'overdue' AS kind, p.job_id FROM dbjobs.plans p
    WHERE p.owner = ANY($1::text[]) AND p.next_run <= $2 AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL) = true ORDER BY p.next_run, p.job_id LIMIT $3) AS a
  UNION ALL
  SELECT * FROM (SELECT 'parked' AS kind, p.job_id FROM dbjobs.plans p WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true ORDER BY p.job_id LIMIT $3) AS b
  UNION ALL
  SELECT * FROM (SELECT 'failing' AS kind, p.job_id FROM dbjobs.plans p WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($4::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true ORDER BY p.streak DESC, p.job_id LIMIT $3) AS c
) AS k;

-- name: starts_ahead
-- arguments: now, later_ms, job
SELECT j.id, j.start_rule, j.start_zone, j.not_before FROM dbjobs.jobs j
WHERE (j.created_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND j.start_rule IS NOT NULL AND j.not_before > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') OR j.start_rule IS NOT NULL AND j.not_before > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND (SELECT CASE WHEN l.changed_at > (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') AND l.changed_at < j.not_before THEN 1 ELSE 0 END FROM dbjobs.changes l  WHERE l.kind = 'job' AND l.subject_id = j.id AND (l.action = 'replan' OR COALESCE(pg_catalog.jsonb_extract_path_text(l.was, 'not_before'), '') <> COALESCE(pg_catalog.jsonb_extract_path_text(l.became, 'not_before'), '')) ORDER BY l.id DESC LIMIT 1) = 1) AND j.removed_at IS NULL AND (j.id = $3 OR $3 = 0) ORDER BY j.id;

-- name: step_attempts
-- arguments: ids
SELECT job_id, retry_attempts FROM dbjobs.steps WHERE job_id = ANY($1::bigint[]) ORDER BY job_id, position;

-- name: step_facts
-- arguments: id, step
SELECT a.step_name, a.state, a.rows_affected, a.error, a.output, a.result
FROM (SELECT pg_catalog.MAX(e.number) AS number FROM dbjobs.attempts e
  WHERE e.run_id = $1 AND e.state <> 'running' AND (e.step_name <> $2 OR e.state = 'succeeded'
    OR e.number < (SELECT pg_catalog.MAX(o.number) FROM dbjobs.attempts o WHERE o.run_id = $1 AND o.step_name <> $2)
    OR e.state = 'failed' AND e.number < (SELECT pg_catalog.MAX(o.number) FROM dbjobs.attempts o WHERE o.run_id = $1 AND o.attempt = 1)
      AND e.started_at >= (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = $1))
  GROUP BY e.step_name) AS l
JOIN dbjobs.attempts a ON a.run_id = $1 AND a.number = l.number;

-- name: stretches
-- arguments: name, since, limit
SELECT t.since, t.last_at, t.passes FROM dbjobs.ticks t
WHERE t.name = $1 AND t.since >= COALESCE((SELECT pg_catalog.MAX(l.since) FROM dbjobs.ticks l WHERE l.name = $1 AND l.since < $2), $2)
ORDER BY t.since DESC LIMIT $3;

-- name: stuck
-- arguments: before, limit
SELECT u.since, j.owner, j.name FROM (
  SELECT * FROM (SELECT COALESCE(r.finished_at, r.wake_at) AS since, r.job_id FROM dbjobs.runs r
    WHERE r.wake_at < $1 AND COALESCE(r.finished_at, r.wake_at) < $1 ORDER BY 1, 2 LIMIT $2) AS a
  UNION ALL
  SELECT * FROM (SELECT r.queued_since AS since, r.job_id FROM dbjobs.runs r WHERE r.queued_since < $1 ORDER BY 1, 2 LIMIT $2) AS b
) AS u LEFT JOIN dbjobs.jobs j ON j.id = u.job_id ORDER BY u.since, u.job_id LIMIT $2;

-- name: surplus_runs
-- arguments: rows, limit
SELECT r.id, d.job_id, r.number <= d.below FROM pg_catalog.json_to_recordset($1::json) AS d(job_id bigint, below bigint, through bigint, since timestamptz)
CROSS JOIN LATERAL (SELECT id, number FROM dbjobs.runs WHERE job_id = d.job_id AND number <= d.through AND settled_at IS NOT NULL
  AND (number <= d.below OR finished_at < d.since) OFFSET 0) AS r LIMIT $2;

-- name: sweep_jobs
-- arguments: now, later_ms, share, limit
SELECT coalesce($1::timestamptz, pg_catalog.statement_timestamp()), j.id, CASE WHEN (SELECT r.id FROM dbjobs.runs r  WHERE settled_at IS NULL AND job_id = j.id ORDER BY r.id LIMIT 1 OFFSET 1000) IS NULL
    THEN COALESCE((SELECT p.runs_made FROM dbjobs.plans p WHERE p.job_id = j.id), 0) - (SELECT pg_catalog.COUNT(*) FROM dbjobs.runs r  WHERE settled_at IS NULL AND job_id = j.id)
    ELSE (SELECT COALESCE(r.number, 1) - 1 FROM dbjobs.runs r  WHERE settled_at IS NULL AND job_id = j.id ORDER BY r.id LIMIT 1) END - j.keep_runs, j.keep_age_ms,
  CASE WHEN j.removed_at < (coalesce($1::timestamptz, pg_catalog.statement_timestamp()) + $2::double precision * interval '1 millisecond') THEN true ELSE false END,
  COALESCE((SELECT r.number FROM dbjobs.runs r  WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1), 0),
  (SELECT r.finished_at FROM dbjobs.runs r  WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1)
FROM dbjobs.jobs j
WHERE j.id >= (SELECT (coalesce(pg_catalog.max(m.id), 0)::double precision * $3::double precision)::bigint FROM dbjobs.jobs m) ORDER BY j.id LIMIT $4;

-- name: take
-- arguments: holder, now, lease_ms, ids
UPDATE dbjobs.runs SET state = 'running', fence = fence + 1, holder = $1, lease_until = (coalesce($2::timestamptz, pg_catalog.statement_timestamp()) + $3::double precision * interval '1 millisecond'),
  started_at = COALESCE(started_at, coalesce($2::timestamptz, pg_catalog.statement_timestamp())), attempt = attempt + 1, error = NULL,
  attempts = greatest(attempts, (SELECT COALESCE(pg_catalog.MAX(a.number), 0) FROM dbjobs.attempts a WHERE a.run_id = dbjobs.runs.id)) + 1
WHERE id = ANY($4::uuid[]) AND state || '' = 'queued';

-- name: too_long
-- arguments: queue, front, within_ms
SELECT j.owner, j.name, j.timeout_ms, q.since
FROM (SELECT f.job_id, pg_catalog.MIN(f.since) AS since FROM
    (SELECT job_id, queued_since AS since FROM dbjobs.runs WHERE state = 'queued' AND queue = $1 ORDER BY priority DESC, ready_at, id LIMIT $2) AS f
  WHERE (SELECT t.timeout_ms FROM dbjobs.jobs t WHERE t.id = f.job_id) > $3 GROUP BY f.job_id LIMIT 20) AS q
JOIN dbjobs.jobs j ON j.id = q.job_id ORDER BY j.name, j.owner;

-- name: touch_group
-- arguments: name
UPDATE dbjobs.jobs SET planned = planned || '.' WHERE group_name = $1 AND removed_at IS NULL AND name IS NOT NULL;

-- name: touch_jobs
-- arguments: ids
UPDATE dbjobs.jobs SET planned = planned || '.' WHERE id = ANY($1::bigint[]);

-- name: touch_parked
-- arguments: ids
UPDATE dbjobs.jobs SET planned = planned || '.' WHERE id = ANY($1::bigint[]) AND EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = dbjobs.jobs.id AND parked IS NOT NULL);

-- name: triggers
WITH RECURSIVE n (name) AS (
  SELECT pg_catalog.MIN(x.name) FROM dbjobs.ticks x
  UNION ALL
  SELECT (SELECT pg_catalog.MIN(x.name) FROM dbjobs.ticks x WHERE x.name > n.name) FROM n WHERE n.name IS NOT NULL
)
SELECT t.name, t.since, t.last_at, t.passes, t.holder, t.version, t.error, t.took_ms,
  (SELECT pg_catalog.MIN(f.since) FROM dbjobs.ticks f WHERE f.name = n.name)
FROM n CROSS JOIN dbjobs.ticks t
WHERE t.name = n.name AND t.since = (SELECT pg_catalog.MAX(l.since) FROM dbjobs.ticks l WHERE l.name = n.name) ORDER BY t.name;

-- name: troubled
-- arguments: now, limit
SELECT j.owner, j.name, t.parked, t.error, t.streak, t.jobs FROM (
  SELECT * FROM (SELECT p.job_id, true AS parked, p.parked AS error, p.streak, pg_catalog.COUNT(*) OVER () AS jobs FROM dbjobs.plans p
    WHERE parked IS NOT NULL AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true ORDER BY p.job_id LIMIT $2) AS parked
  UNION ALL
  SELECT * FROM (SELECT p.job_id, false AS parked, p.last_error AS error, p.streak, pg_catalog.COUNT(*) OVER () AS jobs FROM dbjobs.plans p
    WHERE streak > 0 AND p.job_id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'job' AND p.subject_id IS NOT NULL AND p.paused_by <> 'dbjobs itself' AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = p.job_id AND j.removed_at IS NULL AND j.owner NOT IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'owner' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(j.tags) AS t WHERE j.id = p.job_id AND CASE WHEN t.value IN (SELECT  p.subject FROM dbjobs.pauses p WHERE p.scope = 'tag' AND p.subject IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp())) THEN 1 ELSE 0 END = 1) AND (EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id) OR EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL AND s.id NOT IN (SELECT p.subject_id FROM dbjobs.pauses p WHERE p.scope = 'schedule' AND p.subject_id IS NOT NULL AND p.resumed_at IS NULL AND p.ends_at > coalesce($1::timestamptz, pg_catalog.statement_timestamp()))) OR NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules s ON s.id = l.schedule_id WHERE l.job_id = j.id AND s.name IS NOT NULL))) = true ORDER BY p.job_id LIMIT $2) AS failing
) AS t JOIN dbjobs.jobs j ON j.id = t.job_id ORDER BY t.parked DESC, t.job_id;

-- name: unbound
SELECT CASE WHEN r.rolsuper THEN 'is a superuser' WHEN r.rolbypassrls THEN 'has BYPASSRLS' ELSE 'owns the tables' END
FROM pg_catalog.pg_roles r
WHERE r.rolname = session_user AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1)
  AND (r.rolsuper OR r.rolbypassrls OR (SELECT pg_catalog.pg_has_role(session_user, c.relowner, 'member') FROM pg_catalog.pg_class c WHERE c.oid = 'dbjobs.jobs'::regclass));

-- name: unguarded
-- arguments: names
WITH tables AS (
  SELECT c.oid, 'dbjobs.' || c.relname::text AS name, c.relrowsecurity FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs'
), there AS (
  SELECT 'row security of ' || t.name AS name FROM tables t WHERE t.relrowsecurity
  UNION ALL SELECT 'policy ' || p.polname::text || ' of ' || t.name FROM pg_catalog.pg_policy p JOIN tables t ON t.oid = p.polrelid
  UNION ALL SELECT 'trigger ' || g.tgname::text || ' of ' || t.name FROM pg_catalog.pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE g.tgenabled IN ('O', 'A')
)
SELECT w.name FROM pg_catalog.unnest($1::text[]) AS w(name)
WHERE (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) AND w.name NOT IN (SELECT name FROM there);

-- name: unmark_calendars
-- arguments: ids
UPDATE dbjobs.calendars SET planned = NULL WHERE name = ANY($1::text[]);

-- name: unplanned
SELECT j.owner, j.name, j.created_at FROM dbjobs.jobs j
WHERE j.enabled = true AND j.removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id)
ORDER BY j.created_at, j.id LIMIT 1;

-- name: unserved
-- arguments: since, login
WITH RECURSIVE o (owner) AS (
  SELECT pg_catalog.MIN(p.owner) FROM dbjobs.plans p
  UNION ALL
  SELECT (SELECT pg_catalog.MIN(p.owner) FROM dbjobs.plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner, jobs, since FROM (
  SELECT o.owner, (SELECT pg_catalog.COUNT(*) FROM dbjobs.plans p WHERE p.owner = o.owner AND p.next_run <= $1 AND p.parked IS NULL) AS jobs,
    (SELECT p.next_run FROM dbjobs.plans p WHERE p.owner = o.owner AND p.next_run <= $1 AND p.parked IS NULL ORDER BY p.next_run LIMIT 1) AS since
  FROM o WHERE o.owner IS NOT NULL AND o.owner <> $2) AS u
WHERE jobs > 0 ORDER BY owner;

-- name: update_calendar
-- arguments: working_days, days, description, manifest, name
UPDATE dbjobs.calendars SET working_days = $1, days = $2, description = $3, manifest = $4 WHERE name = $5;

-- name: update_group
-- arguments: max_running, name
UPDATE dbjobs.groups SET max_running = $1 WHERE name = $2;

-- name: update_jobs
-- arguments: now, rows
UPDATE dbjobs.jobs AS j SET changed_at = coalesce($1::timestamptz, pg_catalog.statement_timestamp()), description = d.description, enabled = d.enabled, tags = d.tags, queue = d.queue, priority = d.priority, group_name = d.group_name, overlap = d.overlap, max_running = d.max_running,
  missed = d.missed, missed_limit = d.missed_limit, missed_within_ms = d.missed_within_ms, missed_grace_ms = d.missed_grace_ms, retry_attempts = d.retry_attempts, retry_backoff_ms = d.retry_backoff_ms, retry_max_backoff_ms = d.retry_max_backoff_ms, retry_jitter = d.retry_jitter,
  max_deliveries = d.max_deliveries, on_error = d.on_error, pause_after_failures = d.pause_after_failures, timeout_ms = d.timeout_ms, jitter_ms = d.jitter_ms, max_runs = d.max_runs, not_before = d.not_before, not_after = d.not_after,
  start_rule = d.start_rule, start_zone = d.start_zone, repeat_after_ms = d.repeat_after_ms, on_startup = d.on_startup, keep_runs = d.keep_runs, keep_age_ms = d.keep_age_ms, remove_when_done = d.remove_when_done, on_failed = d.on_failed,
  on_recovered = d.on_recovered, on_missed = d.on_missed, on_late = d.on_late, on_lost = d.on_lost, on_parked = d.on_parked, on_paused = d.on_paused, heartbeat_url = d.heartbeat_url, heartbeat_start = d.heartbeat_start,
  heartbeat_success = d.heartbeat_success, heartbeat_failure = d.heartbeat_failure, manifest = d.manifest
FROM pg_catalog.json_to_recordset($2::json) AS d(id bigint, description text, enabled boolean, tags jsonb, queue text, priority int,
  group_name text, overlap text, max_running int, missed text, missed_limit int, missed_within_ms bigint,
  missed_grace_ms bigint, retry_attempts int, retry_backoff_ms bigint, retry_max_backoff_ms bigint, retry_jitter int, max_deliveries int,
  on_error text, pause_after_failures int, timeout_ms bigint, jitter_ms bigint, max_runs bigint, not_before timestamptz,
  not_after timestamptz, start_rule text, start_zone text, repeat_after_ms bigint, on_startup boolean, keep_runs int,
  keep_age_ms bigint, remove_when_done boolean, on_failed text, on_recovered text, on_missed text, on_late text,
  on_lost text, on_parked text, on_paused text, heartbeat_url text, heartbeat_start text, heartbeat_success text,
  heartbeat_failure text, manifest text) WHERE j.id = d.id AND j.removed_at IS NULL;

-- name: update_own_rules
-- arguments: rows
UPDATE dbjobs.schedules AS s SET rule = d.rule, zone = d.zone, nonexistent = d.nonexistent, ambiguous = d.ambiguous,
  calendar = d.calendar, on_holiday = d.on_holiday, calendar_version = d.calendar_version, description = d.description, manifest = NULL
FROM pg_catalog.json_to_recordset($1::json) AS d(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text,
  on_holiday text, calendar_version text, description text) WHERE s.id = d.id;

-- name: update_runs
-- arguments: rows, now
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(id uuid, fence int, was text, lease timestamptz, state text, held_by text,
  queue text, priority int, ready_at timestamptz, number bigint, losses int, finished_at timestamptz,
  settled_at timestamptz, expires_at timestamptz, error text)
)
UPDATE dbjobs.runs AS r
SET state = d.state, held_by = d.held_by, queue = d.queue, priority = d.priority, ready_at = d.ready_at, number = d.number, losses = d.losses,
  finished_at = d.finished_at, settled_at = d.settled_at, expires_at = d.expires_at, error = d.error,
  lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN coalesce($2::timestamptz, pg_catalog.statement_timestamp()) ELSE r.queued_at END,
  attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END
FROM d
WHERE r.id = ANY(ARRAY(SELECT id FROM d)) AND r.id = d.id AND r.fence = d.fence AND r.state = d.was
  AND (d.lease IS NULL OR r.lease_until = d.lease) AND (d.state <> 'queued' OR r.cancel_at IS NULL);

-- name: update_schedule
-- arguments: rule, zone, nonexistent, ambiguous, calendar, on_holiday, now, calendar_version, description, manifest, id
UPDATE dbjobs.schedules SET changed_at = CASE WHEN rule = $1 AND zone = $2 AND nonexistent = $3 AND ambiguous = $4
    AND calendar = $5 AND on_holiday = $6 THEN changed_at ELSE coalesce($7::timestamptz, pg_catalog.statement_timestamp()) END,
  rule = $1, zone = $2, nonexistent = $3, ambiguous = $4,
  calendar = $5, on_holiday = $6, calendar_version = $8, description = $9, manifest = $10
WHERE id = $11;

-- name: users
-- arguments: ids, limit
SELECT u.schedule_id, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = u.job_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = u.job_id),
  (SELECT r.rule FROM dbjobs.plan_rules r WHERE r.job_id = u.job_id AND r.schedule_id = u.schedule_id
    AND r.input = (SELECT s.plan_input FROM dbjobs.schedules s WHERE s.id = u.schedule_id)) FROM (
  SELECT l.schedule_id, l.job_id, pg_catalog.ROW_NUMBER() OVER (PARTITION BY l.schedule_id ORDER BY l.job_id) AS place
  FROM dbjobs.job_schedules l WHERE l.schedule_id = ANY($1::bigint[])) AS u
WHERE u.place <= $2 ORDER BY u.schedule_id, u.place;

-- name: vain_deliveries
-- arguments: id, number
SELECT a.started_at FROM dbjobs.attempts a WHERE a.run_id = $1 AND a.number <= $2 AND a.number > COALESCE((SELECT pg_catalog.MAX(e.number) FROM dbjobs.attempts e
  WHERE e.run_id = $1 AND e.number < $2 AND (e.state NOT IN ('cut', 'lost') OR e.started_at < (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = $1))), 0)
ORDER BY a.number DESC;

-- name: waiting_ends
SELECT e.job_id, e.meets, e.after_job_id, e.run_id, e.ended_at, e.seen, r.interval_start, r.interval_end
FROM dbjobs.job_ends e JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
WHERE (r.state = 'succeeded' AND a.on_end IN ('success', 'end') OR r.state IN ('failed', 'lost') AND a.on_end IN ('failure', 'end') OR r.state = 'cancelled' AND a.on_end = 'end') ORDER BY e.job_id, e.meets, e.after_job_id;

-- name: wake_held
-- arguments: ids
UPDATE dbjobs.runs SET held_by = NULL WHERE id = ANY($1::uuid[]) AND state = 'waiting' AND held_by = 'group';

-- name: write_skips
-- arguments: skips, job
UPDATE dbjobs.plans SET skips = $1, version = CASE WHEN version < 4000000000000000000 THEN version + 1 ELSE 1 END WHERE job_id = $2;

-- name: write_starts
-- arguments: rows
WITH d AS (
  SELECT * FROM pg_catalog.json_to_recordset($1::json) AS d(id bigint, not_before timestamptz)
)
UPDATE dbjobs.jobs AS j SET not_before = d.not_before FROM d WHERE j.id = ANY(ARRAY(SELECT id FROM d)) AND j.id = d.id;
