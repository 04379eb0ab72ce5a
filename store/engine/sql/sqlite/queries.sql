-- SQLite: rows come as one JSON document through json_each.

-- name: need_plan
SELECT @now, job_id, next_run, job_id FROM dbjobs.plans
WHERE owner = @served AND next_run <= :up_to AND (next_run, job_id) > (:at, :id) ORDER BY next_run, job_id LIMIT :limit;

-- name: need_run
SELECT @now, job_id, wake_at, id FROM dbjobs.runs
WHERE wake_at <= @now AND (wake_at, id) > (:at, :id) ORDER BY wake_at, id LIMIT :limit;

-- Jobs that were removed, and what has no job's row any more, too: what is left of them is to be decided.

-- name: enlist
INSERT INTO dbjobs.plans (job_id)
SELECT value FROM json_each(:ids) WHERE true
ON CONFLICT DO NOTHING;

-- name: enlist_groups
INSERT INTO dbjobs.group_plans (name)
SELECT name FROM dbjobs.groups WHERE name @among_names ORDER BY name
ON CONFLICT DO NOTHING;

-- Name by name: most names are NULL, so that the planner takes their index for useless.

-- name: schedules_named
SELECT @schedule_columns FROM json_each(:ids) AS n CROSS JOIN dbjobs.schedules s ON s.name = n.value;

-- name: insert_runs
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args, COALESCE(d.ready_at, @now), @now
FROM (SELECT value ->> 'id' AS id, value ->> 'job_id' AS job_id, value ->> 'number' AS number,
  value ->> 'occurrence' AS occurrence, value ->> 'state' AS state, value ->> 'held_by' AS held_by,
  value ->> 'queue' AS queue, value ->> 'priority' AS priority, value ->> 'scheduled_for' AS scheduled_for,
  value ->> 'interval_start' AS interval_start, value ->> 'interval_end' AS interval_end,
  value ->> 'args' AS args, value ->> 'ready_at' AS ready_at FROM json_each(:rows)) AS d WHERE true
ON CONFLICT DO NOTHING;

-- Of runs that are queued at once: what a document costs grows with its columns.

-- name: insert_queued
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT value ->> 'id', value ->> 'job_id', value ->> 'number', value ->> 'occurrence', 'queued', value ->> 'queue',
  COALESCE(value ->> 'priority', 0), value ->> 'scheduled_for', value ->> 'interval_start', value ->> 'scheduled_for', @now, @now
FROM json_each(:rows) WHERE true
ON CONFLICT DO NOTHING;

-- A run that goes back from running to waiting or queued is one whose delivery did not come back, which is no attempt.
-- Who asked for its end since it was read has it: it is not let go, and the decision is made again.

-- name: update_runs
UPDATE dbjobs.runs AS r
SET state = d.state, held_by = d.held_by, ready_at = d.ready_at, number = d.number, losses = d.losses,
  finished_at = d.finished_at, settled_at = d.settled_at, expires_at = d.expires_at, error = d.error,
  lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'was' AS was, value ->> 'lease' AS lease,
  value ->> 'state' AS state, value ->> 'held_by' AS held_by, value ->> 'ready_at' AS ready_at,
  value ->> 'number' AS number, value ->> 'losses' AS losses, value ->> 'finished_at' AS finished_at,
  value ->> 'settled_at' AS settled_at, value ->> 'expires_at' AS expires_at,
  value ->> 'error' AS error FROM json_each(:rows)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND (d.state <> 'queued' OR r.cancel_at IS NULL);

-- name: extend_gaps
UPDATE dbjobs.gaps AS g SET through_at = d.through_at, recorded_at = @now
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'from_at' AS from_at,
  value ->> 'through_at' AS through_at, value ->> 'reason' AS reason,
  value ->> 'rule' AS rule FROM json_each(:rows)) AS d
WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule;

-- name: insert_gaps
INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
SELECT d.job_id, d.schedule_id, d.from_at, d.through_at, d.reason, d.rule, @now
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'from_at' AS from_at,
  value ->> 'through_at' AS through_at, value ->> 'reason' AS reason,
  value ->> 'rule' AS rule FROM json_each(:rows)) AS d
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.gaps g WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id
  AND g.through_at = d.through_at AND g.reason = d.reason);

-- name: advance
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = d.decided_through, parked = d.parked,
  last_scheduled_for = d.last_scheduled_for, last_run_id = d.last_run_id, last_state = d.last_state,
  last_finished_at = d.last_finished_at, last_success_at = d.last_success_at, last_error = d.last_error,
  streak = d.streak, cycles = d.cycles, runs_made = d.runs_made, startup_ids = d.startup_ids,
  repeat_from = d.repeat_from, version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'version' AS version, value ->> 'next_run' AS next_run,
  value ->> 'decided_through' AS decided_through, value ->> 'parked' AS parked,
  value ->> 'last_scheduled_for' AS last_scheduled_for, value ->> 'last_run_id' AS last_run_id,
  value ->> 'last_state' AS last_state, value ->> 'last_finished_at' AS last_finished_at,
  value ->> 'last_success_at' AS last_success_at, value ->> 'last_error' AS last_error, value ->> 'streak' AS streak,
  value ->> 'cycles' AS cycles, value ->> 'runs_made' AS runs_made,
  value ->> 'startup_ids' AS startup_ids, value ->> 'repeat_from' AS repeat_from FROM json_each(:rows)) AS d
WHERE p.job_id = d.job_id AND p.version = d.version;

-- Of plans that only went on to their next nominal time, after one run for the last.

-- name: advance_due
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = @now, last_scheduled_for = d.last_scheduled_for, runs_made = p.runs_made + 1,
  version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'version' AS version, value ->> 'next_run' AS next_run,
  value ->> 'last_scheduled_for' AS last_scheduled_for FROM json_each(:rows)) AS d
WHERE p.job_id = d.job_id AND p.version = d.version;

-- Of a plan that cannot be read, or whose decision was refused: nothing else of it is touched.

-- name: park_plans
UPDATE dbjobs.plans AS p SET parked = d.parked, next_run = d.next_run
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'parked' AS parked, value ->> 'next_run' AS next_run FROM json_each(:rows)) AS d
WHERE p.job_id = d.job_id;

-- A run that cannot be read ends, without a look at what it holds.

-- name: bury_runs
UPDATE dbjobs.runs AS r SET state = d.state, held_by = NULL, lease_until = NULL, cancel_at = NULL, finished_at = @now, settled_at = @now,
  expires_at = d.expires_at, error = coalesce(d.error, r.error)
FROM (SELECT value ->> 'id' AS id, value ->> 'state' AS state, value ->> 'was' AS was, value ->> 'expires_at' AS expires_at,
  value ->> 'error' AS error FROM json_each(:rows)) AS d
WHERE r.id = d.id AND r.state = d.was AND r.settled_at IS NULL;

-- Queued runs that cannot be delivered end as failed.

-- name: end_queued
UPDATE dbjobs.runs AS r SET state = 'failed', finished_at = @now, error = d.error
FROM (SELECT value ->> 'id' AS id, value ->> 'error' AS error FROM json_each(:rows)) AS d
WHERE r.id = d.id AND r.state = 'queued';

-- name: insert_changes
INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason)
SELECT @now, 'dbjobs', 'job', d.subject_id, d.subject, d.action, d.reason
FROM (SELECT value ->> 'subject_id' AS subject_id, value ->> 'subject' AS subject, value ->> 'action' AS action,
  value ->> 'reason' AS reason FROM json_each(:rows)) AS d WHERE true;

-- name: insert_pauses
INSERT INTO dbjobs.pauses (scope, subject_id, reason, paused_by, since)
SELECT 'job', d.subject_id, d.reason, 'dbjobs', @now
FROM (SELECT value ->> 'subject_id' AS subject_id, value ->> 'reason' AS reason FROM json_each(:rows)) AS d WHERE true;

-- name: insert_plan_rules
INSERT INTO dbjobs.plan_rules (job_id, schedule_id, input, rule, ends)
SELECT d.job_id, d.schedule_id, d.input, d.rule, d.ends
FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'schedule_id' AS schedule_id, value ->> 'input' AS input,
  value ->> 'rule' AS rule, value ->> 'ends' AS ends FROM json_each(:rows)) AS d WHERE true;

-- name: begin_attempts
INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
SELECT d.run_id, d.number, d.step, d.step_name, d.attempt, d.fence, d.holder, @now
FROM (SELECT value ->> 'run_id' AS run_id, value ->> 'number' AS number, value ->> 'step' AS step,
  value ->> 'step_name' AS step_name, value ->> 'attempt' AS attempt, value ->> 'fence' AS fence,
  value ->> 'holder' AS holder FROM json_each(:rows)) AS d WHERE true;

-- Of the ends of several runs, those that were not delivered again; and whether everything is paused.

-- name: lock_ending
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
FROM json_each(:rows) AS d CROSS JOIN dbjobs.runs r
ON r.id = d.value ->> 'id' AND r.fence = d.value ->> 'fence' AND r.state = 'running' AND r.attempts = d.value ->> 'number';

-- name: finish_runs
UPDATE dbjobs.runs AS r SET state = d.final, finished_at = @now, lease_until = NULL, error = d.run_error
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'final' AS final,
  value ->> 'run_error' AS run_error FROM json_each(:rows)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: end_attempts
UPDATE dbjobs.attempts AS a SET state = d.state, finished_at = @now,
  started_at = CASE WHEN d.waited_ms > 0 THEN min(@now, strftime('%Y-%m-%dT%H:%M:%f000Z', a.started_at, (d.waited_ms / 1000.0) || ' seconds')) ELSE a.started_at END, rows_affected = d.rows_affected, error = d.error,
  error_code = d.code, error_line = d.line, error_severity = d.severity, error_detail = d.detail, error_hint = d.hint, output = d.output
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'state' AS state,
  value ->> 'rows_affected' AS rows_affected, value ->> 'error' AS error, value ->> 'code' AS code, value ->> 'line' AS line,
  value ->> 'severity' AS severity, value ->> 'detail' AS detail, value ->> 'hint' AS hint, value ->> 'output' AS output,
  value ->> 'waited_ms' AS waited_ms FROM json_each(:rows)) AS d
WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- Runs whose delivery never began wait again, as they were before it, but for the fence.

-- name: return_runs
UPDATE dbjobs.runs AS r SET state = 'waiting', held_by = NULL, lease_until = NULL, attempt = r.attempt - 1, attempts = r.attempts - 1,
  started_at = CASE WHEN d.fresh THEN NULL ELSE r.started_at END, error = d.error
FROM (SELECT value ->> 'id' AS id, value ->> 'fence' AS fence, value ->> 'number' AS number, value ->> 'fresh' AS fresh,
  value ->> 'error' AS error FROM json_each(:rows)) AS d
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- name: drop_attempts
DELETE FROM dbjobs.attempts WHERE rowid IN (
  SELECT a.rowid FROM json_each(:rows) AS d CROSS JOIN dbjobs.attempts a ON a.run_id = d.value ->> 'id' AND a.number = d.value ->> 'number'
    AND a.fence = d.value ->> 'fence' AND a.state = 'running');

-- name: surplus_runs
SELECT r.id FROM (SELECT value ->> 'job_id' AS job_id, value ->> 'below' AS below FROM json_each(:rows)) AS d
JOIN dbjobs.runs r ON r.job_id = d.job_id AND r.number <= d.below
WHERE r.settled_at IS NOT NULL LIMIT :limit;

-- name: lock_old_gaps
SELECT g.job_id, g.schedule_id, g.through_at, g.reason
FROM json_each(:rows) AS d CROSS JOIN dbjobs.gaps g ON g.job_id = d.value ->> 'job_id' AND g.recorded_at < d.value ->> 'since' LIMIT :limit;

-- name: delete_gaps
DELETE FROM dbjobs.gaps WHERE rowid IN (
  SELECT g.rowid FROM json_each(:rows) AS d CROSS JOIN dbjobs.gaps g ON g.job_id = d.value ->> 'job_id' AND g.schedule_id = d.value ->> 'schedule_id'
    AND g.through_at = d.value ->> 'through_at' AND g.reason = d.value ->> 'reason');

-- name: delete_links
DELETE FROM dbjobs.job_schedules WHERE rowid IN (
  SELECT l.rowid FROM @rows(job_id bigint, schedule_id bigint) CROSS JOIN dbjobs.job_schedules l ON l.job_id = d.job_id AND l.schedule_id = d.schedule_id);

-- When a rule changes, its new times count from that moment.

-- name: date_own_rules
UPDATE dbjobs.schedules AS s SET changed_at = @now
FROM @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text)
WHERE s.id = d.id AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous);

-- name: update_own_rules
UPDATE dbjobs.schedules AS s SET rule = d.rule, zone = d.zone, nonexistent = d.nonexistent, ambiguous = d.ambiguous,
  description = d.description, manifest = NULL
FROM @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text, description text) WHERE s.id = d.id;
