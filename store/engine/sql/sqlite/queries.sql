-- SQLite.

-- It also enlists removed jobs, and jobs whose row is gone, because decisions for the rest of them are still needed.

-- name: enlist
INSERT INTO dbjobs.plans (job_id)
SELECT value FROM json_each(:ids) WHERE true
ON CONFLICT DO NOTHING;

-- The schedules are read name by name: most names are NULL, so the planner assumes that their index is useless.

-- name: schedules_named
SELECT @schedule_columns FROM json_each(:ids) AS n CROSS JOIN dbjobs.schedules s ON s.name = n.value;

-- name: insert_runs
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args, COALESCE(d.ready_at, @now), @now
FROM @rows(id uuid, job_id bigint, number bigint, occurrence text, state text, held_by text, queue text,
  priority int, scheduled_for instant, interval_start instant, interval_end instant, args text,
  ready_at instant) WHERE true
ON CONFLICT DO NOTHING;

-- For runs that are queued at once. It has fewer columns than insert_runs, because each column of a document has its
-- cost.

-- name: insert_queued
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT value ->> 'id', value ->> 'job_id', value ->> 'number', value ->> 'occurrence', 'queued', value ->> 'queue',
  COALESCE(value ->> 'priority', 0), value ->> 'scheduled_for', value ->> 'interval_start', value ->> 'scheduled_for', @now, @now
FROM jsonb_each(:rows) WHERE true
ON CONFLICT DO NOTHING;

-- From a list of runs that end, the runs that were not delivered again. The last column says whether everything is
-- paused.

-- name: lock_ending
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
FROM jsonb_each(:rows) AS d CROSS JOIN dbjobs.runs r
ON r.id = d.value ->> 'id' AND r.fence = d.value ->> 'fence' AND r.holder = d.value ->> 'holder' AND r.state = 'running' AND r.attempts = d.value ->> 'number'
WHERE d.value ->> 'recorded' IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts a
  WHERE a.run_id = r.id AND a.number = r.attempts AND a.fence = r.fence AND a.state = 'succeeded');

-- name: lock_settling
SELECT d.value ->> 'run_id' FROM jsonb_each(:rows) AS d CROSS JOIN dbjobs.plans p
ON p.job_id = d.value ->> 'job_id' AND p.version = d.value ->> 'version' AND p.parked IS NULL WHERE @settles;

-- name: settle_plans
UPDATE dbjobs.plans AS p SET last_run_id = d.run_id, last_state = 'succeeded', last_finished_at = @now, last_success_at = @now, streak = 0,
  cycles = p.cycles + 1, version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM @rows(job_id bigint, version bigint, run_id uuid) WHERE p.job_id = d.job_id AND p.version = d.version;

-- name: finish_runs
UPDATE dbjobs.runs AS r SET state = d.final, finished_at = @now, lease_until = NULL, error = d.run_error,
  settled_at = CASE WHEN d.job_id IS NOT NULL THEN @now END,
  expires_at = CASE WHEN d.job_id IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%f000Z', @now, (d.keep_ms / 1000.0) || ' seconds') END
FROM @rows(id uuid, fence int, number int, final text, run_error text, job_id bigint, keep_ms bigint)
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: end_attempts
UPDATE dbjobs.attempts AS a SET state = d.state, finished_at = @now,
  started_at = CASE WHEN d.waited_ms > 0 THEN min(@now, strftime('%Y-%m-%dT%H:%M:%f000Z', a.started_at, (d.waited_ms / 1000.0) || ' seconds')) ELSE a.started_at END, rows_affected = d.rows_affected, error = d.error,
  error_code = d.code, error_line = d.line, error_severity = d.severity, error_detail = d.detail, error_hint = d.hint, output = d.output,
  result = d.result
FROM @rows(id uuid, fence int, number int, state text, rows_affected bigint, error text, code text, line int,
  severity text, detail text, hint text, output text, result text, waited_ms bigint)
WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: drop_attempts
DELETE FROM dbjobs.attempts WHERE rowid IN (
  SELECT a.rowid FROM jsonb_each(:rows) AS d CROSS JOIN dbjobs.attempts a ON a.run_id = d.value ->> 'id' AND a.number = d.value ->> 'number'
    AND a.fence = d.value ->> 'fence' AND a.state = 'running');

-- name: surplus_runs
SELECT r.id, d.job_id, r.number <= d.below FROM @rows(job_id bigint, below bigint, through bigint, since instant)
JOIN dbjobs.runs r ON r.job_id = d.job_id AND r.number <= d.through
WHERE r.settled_at IS NOT NULL AND (r.number <= d.below OR r.finished_at < d.since) LIMIT :limit;

-- name: lock_old_gaps
SELECT g.job_id, g.schedule_id, g.through_at, g.reason
FROM jsonb_each(:rows) AS d CROSS JOIN dbjobs.gaps g ON g.job_id = d.value ->> 'job_id' AND g.through_at < d.value ->> 'since' AND g.recorded_at < d.value ->> 'since' LIMIT :limit;

-- name: delete_gaps
DELETE FROM dbjobs.gaps WHERE rowid IN (
  SELECT g.rowid FROM jsonb_each(:rows) AS d CROSS JOIN dbjobs.gaps g ON g.job_id = d.value ->> 'job_id' AND g.schedule_id = d.value ->> 'schedule_id'
    AND g.through_at = d.value ->> 'through_at' AND g.reason = d.value ->> 'reason');

-- name: delete_ends
DELETE FROM dbjobs.job_ends WHERE id IN (
  SELECT e.id FROM @rows(id bigint, run_id uuid) CROSS JOIN dbjobs.job_ends e ON e.id = d.id AND e.run_id = d.run_id);

-- name: delete_links
DELETE FROM dbjobs.job_schedules WHERE rowid IN (
  SELECT l.rowid FROM @rows(job_id bigint, schedule_id bigint) CROSS JOIN dbjobs.job_schedules l ON l.job_id = d.job_id AND l.schedule_id = d.schedule_id);

-- ----------------------------------------------------------------------------------------- what the file is like

-- name: catalogue
SELECT name FROM sqlite_master WHERE type IN ('table', 'index', 'view');

-- name: server_settings
SELECT 'synchronous', CAST(synchronous AS text) FROM pragma_synchronous
UNION ALL SELECT 'query_only', CAST(query_only AS text) FROM pragma_query_only;

-- name: file_size
SELECT p.page_count * s.page_size, f.freelist_count * s.page_size FROM pragma_page_count p, pragma_page_size s, pragma_freelist_count f;

-- name: file_faults
SELECT quick_check FROM pragma_quick_check;

-- name: runs_of_job
SELECT @run_columns, @run_job FROM dbjobs.runs r INDEXED BY dbjobs.runs_number LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND (:state = '' OR r.state = :state) AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;
