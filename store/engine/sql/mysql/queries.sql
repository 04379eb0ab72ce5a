-- MySQL and MariaDB. Rows are changed by UPDATE ... JOIN, which counts exactly the rows that it found. ON DUPLICATE KEY
-- UPDATE is used for inserts only: it would insert a row that has vanished.

-- What an owner may do with his own run, while a tick executes it under the owner's login.

-- name: holds_own
CALL dbjobs.holds_own(:id, :fence);

-- name: end_own
CALL dbjobs.end_own(:id, :fence, :number, :final, :step, :step_name, :holder, :lease_ms, :waited_ms, :rows, :error, :run_error, :output, :result, :now);


-- The condition has an OR because MySQL does not use (next_run, job_id) > (?, ?) as a range of the index. FOR UPDATE
-- would then lock all rows before the page.

-- name: need_plan
SELECT @now, job_id, next_run, job_id FROM dbjobs.plans
WHERE owner = COALESCE(:owner, @served) AND next_run <= :up_to AND (next_run > :at OR (next_run = :at AND job_id > :id))
ORDER BY next_run, job_id LIMIT :limit;

-- name: need_run
SELECT @now, job_id, wake_at, id, @woken AS since FROM dbjobs.runs
WHERE wake_at <= @now AND (wake_at > :at OR (wake_at = :at AND id > :id))
ORDER BY wake_at, id LIMIT :limit;

-- It also enlists removed jobs, and jobs whose row is gone, because decisions for the rest of them are still needed.
-- Plans that exist are left out: an INSERT would wait for the session that holds them. ON DUPLICATE KEY UPDATE is for
-- two sessions that enlist a job at the same time.

-- name: enlist
INSERT INTO dbjobs.plans (job_id, owner)
SELECT i.id, COALESCE((SELECT @plan_owner FROM dbjobs.jobs j WHERE j.id = i.id), @served) FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id BIGINT PATH '$')) AS i
WHERE (SELECT p.job_id FROM dbjobs.plans p WHERE p.job_id = i.id) IS NULL
ON DUPLICATE KEY UPDATE job_id = dbjobs_plans.job_id;

-- The index is forced: most of its rows are NULL, so the optimizer assumes that it is useless.

-- name: batch_runs
SELECT @run_columns, @followed FROM dbjobs.runs r FORCE INDEX (runs_open) WHERE @open @among ORDER BY @open, id;

-- The indexes of open_runs, figures, runs_longest and failures are forced for the same reason.

-- name: open_runs
SELECT g.state, g.held_by, g.begun, g.later, g.queue, g.cap, g.runs, g.created, g.ready, j.owner, j.name FROM (
  SELECT s.state, s.held_by, s.begun, s.later, s.queue, s.cap, COUNT(*) AS runs, MIN(s.created_at) AS created, MIN(s.ready_at) AS ready, MIN(s.job_id) AS job_id
  FROM (SELECT r.state, r.held_by, CASE WHEN r.started_at IS NULL THEN @false ELSE @true END AS begun,
      CASE WHEN r.ready_at > @now THEN @true ELSE @false END AS later, r.queue, r.created_at,
      COALESCE(r.queued_since, r.ready_at) AS ready_at, r.job_id,
      CASE WHEN r.held_by = 'group' THEN (SELECT x.group_name FROM dbjobs.jobs x WHERE x.id = r.job_id) END AS cap
    FROM dbjobs.runs r FORCE INDEX (runs_open) WHERE @open IS NOT NULL AND r.state IN ('waiting', 'queued', 'running')) AS s
  GROUP BY s.state, s.held_by, s.begun, s.later, s.queue, s.cap) AS g
LEFT JOIN dbjobs.jobs j ON j.id = g.job_id ORDER BY g.created, g.job_id LIMIT :limit;

-- name: figures
SELECT
  (SELECT COUNT(*) FROM dbjobs.runs r FORCE INDEX (runs_open) WHERE @open IS NOT NULL AND r.state = 'running'),
  (SELECT COUNT(*) FROM dbjobs.runs r FORCE INDEX (runs_wake) WHERE r.wake_at < :before AND COALESCE(r.finished_at, r.wake_at) < :before)
  + (SELECT COUNT(*) FROM dbjobs.runs r FORCE INDEX (runs_queued_since) WHERE r.queued_since < :before)
FROM (SELECT 1 AS one) AS source;

-- name: runs_longest
SELECT @run_columns, @run_job FROM dbjobs.runs r FORCE INDEX (runs_open) LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open IS NOT NULL AND r.state = 'running' ORDER BY r.started_at, r.id LIMIT :limit;

-- name: runs_holding
SELECT @run_columns, @run_job
FROM (SELECT x.id FROM dbjobs.jobs x WHERE x.id = :job UNION ALL SELECT x.id FROM dbjobs.jobs x WHERE x.group_name = :group) AS m
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (runs_open) ON @open = m.id JOIN dbjobs.jobs j ON j.id = m.id
WHERE r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL
ORDER BY COALESCE(r.started_at, r.created_at), r.id LIMIT :limit;

-- name: failures
SELECT @attempt_columns, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r FORCE INDEX (runs_created)
    WHERE r.created_at >= :since AND r.created_at < :until AND @may_have_failed
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r FORCE INDEX (runs_unwell) WHERE @unwell IS NOT NULL AND r.created_at < :since AND (r.finished_at >= :since OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r FORCE INDEX (runs_open)
    WHERE @open IS NOT NULL AND r.created_at < :since AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
STRAIGHT_JOIN dbjobs.attempts a FORCE INDEX (PRIMARY) LEFT JOIN dbjobs.jobs j ON j.id = f.job_id
WHERE a.run_id = f.id AND a.state IN ('failed', 'lost') AND a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- The key is forced: otherwise MySQL reads the attempts of all jobs.

-- name: failures_of_job
SELECT @attempt_columns, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs.runs r STRAIGHT_JOIN dbjobs.attempts a FORCE INDEX (PRIMARY) LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND @may_have_failed AND a.run_id = r.id AND a.state IN ('failed', 'lost') AND a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- The index is forced, so that MySQL reads the runs job by job of the groups. Otherwise it counts the runs of all jobs.

-- name: group_caps
SELECT g.name, g.max_running,
  (SELECT COUNT(*) FROM dbjobs.jobs j STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (runs_open) ON @open = j.id
   WHERE j.group_name = g.name AND @elsewhere AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL))
FROM dbjobs.groups g WHERE g.name @among_names;

-- name: group_held
SELECT name, run, job_id, priority, ready_at FROM (
  SELECT j.group_name AS name, r.id AS run, r.job_id, r.priority, r.ready_at,
    ROW_NUMBER() OVER (PARTITION BY j.group_name ORDER BY r.priority DESC, r.ready_at, r.id) AS place
  FROM dbjobs.jobs j FORCE INDEX (jobs_group) STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (runs_open) ON @open = j.id
  WHERE r.state = 'waiting' AND r.held_by = 'group' AND j.group_name @among_names AND @elsewhere) AS h
WHERE place <= :limit ORDER BY name, place;

-- name: group_runs
SELECT r.id FROM dbjobs.jobs j FORCE INDEX (jobs_group) STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (runs_open) ON @open = j.id
WHERE j.group_name = :name AND r.state = :state AND r.started_at IS NULL AND (r.state = 'queued' OR r.held_by = 'group');

-- The runs are read one by one through the key, in the order of the list. To sort them, MySQL would first lock the
-- whole list, and other sessions that take runs at the same time would find nothing. The list is a subquery:
-- otherwise MySQL would try to lock it, and refuse the statement (error 3569).

-- name: lock_queued
SELECT @run_columns, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs.attempts a WHERE a.run_id = r.id), @last_step, @now
FROM (SELECT id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) AS listed) AS d
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND @is_queued
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds) LIMIT :limit @skip;

-- triggers reads one entry of the index for each name, and owners one for each owner: a loose scan.

-- name: triggers
SELECT t.name, t.since, t.last_at, t.passes, t.holder, t.version, t.error, t.took_ms, n.first
FROM (SELECT l.name, MAX(l.since) AS since, MIN(l.since) AS first FROM dbjobs.ticks l GROUP BY l.name) AS n
STRAIGHT_JOIN dbjobs.ticks t ON t.name = n.name AND t.since = n.since ORDER BY t.name;

-- name: owners
SELECT owner FROM dbjobs.plans GROUP BY owner;

-- name: enlist_groups
INSERT INTO dbjobs.group_plans (name)
SELECT name FROM dbjobs.groups WHERE name @among_names ORDER BY name
ON DUPLICATE KEY UPDATE name = dbjobs_group_plans.name;

-- name: insert_ends
INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at)
SELECT d.job_id, d.meets, d.after_job_id, d.run_id, @now
FROM @rows(job_id bigint, meets text, after_job_id bigint, run_id uuid)
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.job_ends e JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
  JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
  WHERE e.job_id = d.job_id AND e.meets = d.meets AND e.after_job_id = d.after_job_id AND r.id <> d.run_id AND @follows)
ON DUPLICATE KEY UPDATE run_id = d.run_id, ended_at = @now, seen = @false;

-- name: see_ends
UPDATE @rows(id bigint, run_id uuid)
STRAIGHT_JOIN dbjobs.job_ends e FORCE INDEX (PRIMARY) ON e.id = d.id AND e.run_id = d.run_id SET seen = @true;

-- name: delete_ends
DELETE e FROM @rows(id bigint, run_id uuid)
STRAIGHT_JOIN dbjobs.job_ends e FORCE INDEX (PRIMARY) ON e.id = d.id AND e.run_id = d.run_id;

-- name: insert_runs
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args, COALESCE(d.ready_at, @now), @now
FROM @rows(id uuid, job_id bigint, number bigint, occurrence text, state text, held_by text, queue text,
  priority int, scheduled_for instant, interval_start instant, interval_end instant, args text,
  ready_at instant)
ON DUPLICATE KEY UPDATE job_id = dbjobs_runs.job_id;

-- For runs that are queued at once. It has fewer columns than insert_runs, because each column of a document has its
-- cost.

-- name: insert_queued
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, 'queued', d.queue, COALESCE(d.priority, 0), d.scheduled_for, d.interval_start,
  d.scheduled_for, @now, @now
FROM @rows(id uuid, job_id bigint, number bigint, occurrence name, queue name, priority int,
  scheduled_for instant, interval_start instant)
ON DUPLICATE KEY UPDATE job_id = dbjobs_runs.job_id;

-- A run that goes back from running to waiting or queued had a delivery that did not come back, which is not an
-- attempt. If somebody has requested its end since it was read, the run is not let go, and the decision is made
-- again. The tables are joined in this order and by the key, as in advance: a scan of a short table would wait for the
-- locks of other rows.

-- name: update_runs
UPDATE @rows(id uuid, fence int, was text, lease instant, state text, held_by text, queue text, priority int, ready_at instant,
  number bigint, losses int, finished_at instant, settled_at instant, expires_at instant, error text)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND (d.state <> 'queued' OR r.cancel_at IS NULL)
SET r.state = d.state, r.held_by = d.held_by, r.queue = d.queue, r.priority = d.priority, r.ready_at = d.ready_at, r.number = d.number, r.losses = d.losses,
  r.finished_at = d.finished_at, r.settled_at = d.settled_at, r.expires_at = d.expires_at, r.error = d.error,
  r.lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  r.queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN @now ELSE r.queued_at END,
  r.attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END;

-- name: write_starts
UPDATE @rows(id bigint, not_before instant)
STRAIGHT_JOIN dbjobs.jobs j FORCE INDEX (PRIMARY) ON j.id = d.id
SET j.not_before = d.not_before;

-- name: extend_gaps
UPDATE @rows(job_id bigint, schedule_id bigint, from_at instant, through_at instant, reason text, rule text)
JOIN dbjobs.gaps g ON g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule
SET g.through_at = d.through_at, g.recorded_at = @now;

-- name: advance
UPDATE @rows(job_id bigint, version bigint, next_run instant, decided_through instant, parked text,
  last_scheduled_for instant, last_run_id uuid, last_state text, last_finished_at instant,
  last_success_at instant, last_error text, streak int, cycles bigint, runs_made bigint, startup_ids text,
  repeat_from instant, skips text)
STRAIGHT_JOIN dbjobs.plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.next_run = d.next_run, p.decided_through = d.decided_through, p.parked = d.parked,
  p.last_scheduled_for = d.last_scheduled_for, p.last_run_id = d.last_run_id, p.last_state = d.last_state,
  p.last_finished_at = d.last_finished_at, p.last_success_at = d.last_success_at, p.last_error = d.last_error,
  p.streak = d.streak, p.cycles = d.cycles, p.runs_made = d.runs_made, p.startup_ids = d.startup_ids, p.repeat_from = d.repeat_from, p.skips = d.skips,
  p.version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END;

-- For plans that only went on to their next nominal time, after one run for the last one.

-- name: advance_due
UPDATE @rows(job_id bigint, version bigint, next_run instant, last_scheduled_for instant)
STRAIGHT_JOIN dbjobs.plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.next_run = d.next_run, p.decided_through = @now, p.last_scheduled_for = d.last_scheduled_for,
  p.runs_made = p.runs_made + 1, p.version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END;

-- For a plan that cannot be read, or whose decision was refused: no other column of it changes.

-- name: park_plans
UPDATE @rows(job_id bigint, parked text, next_run instant)
STRAIGHT_JOIN dbjobs.plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id
SET p.parked = d.parked, p.next_run = d.next_run;

-- A run that cannot be read ends. The values that it has are not read.

-- name: bury_runs
UPDATE @rows(id uuid, state text, was text, lease instant, expires_at instant, error text)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND r.settled_at IS NULL
SET r.state = d.state, r.held_by = NULL, r.lease_until = NULL, r.cancel_at = NULL, r.finished_at = @now, r.settled_at = @now,
  r.expires_at = d.expires_at, r.error = COALESCE(d.error, r.error);

-- Queued runs that cannot be delivered end as failed.

-- name: end_queued
UPDATE @rows(id uuid, error text)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND @is_queued
SET r.state = 'failed', r.finished_at = @now, r.error = d.error;

-- name: move_steps
UPDATE @rows(id uuid, step int, step_name text)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND @is_queued
SET r.step = d.step, r.step_name = d.step_name;

-- From a list of runs that end, the runs whose row nobody else has locked, and that were not delivered again. The
-- last column says whether everything is paused. JSON_TABLE is inside a subquery, because MySQL refuses SKIP LOCKED
-- beside it.

-- name: lock_ending
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
FROM (SELECT * FROM JSON_TABLE(:rows, '$[*]' COLUMNS (id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.id',
  fence INT PATH '$.fence', holder LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.holder', number INT PATH '$.number', recorded INT PATH '$.recorded')) AS t) AS d
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.holder = d.holder AND r.state = 'running' AND r.attempts = d.number
WHERE @has_record FOR UPDATE SKIP LOCKED;

-- name: lock_settling
SELECT d.run_id
FROM (SELECT * FROM JSON_TABLE(:rows, '$[*]' COLUMNS (run_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$.run_id',
  job_id BIGINT PATH '$.job_id', version BIGINT PATH '$.version')) AS t) AS d
STRAIGHT_JOIN dbjobs.plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version AND p.parked IS NULL
WHERE @settles FOR UPDATE SKIP LOCKED;

-- name: settle_plans
UPDATE @rows(job_id bigint, version bigint, run_id uuid)
STRAIGHT_JOIN dbjobs.plans p FORCE INDEX (PRIMARY) ON p.job_id = d.job_id AND p.version = d.version
SET p.last_run_id = d.run_id, p.last_state = 'succeeded', p.last_finished_at = @now, p.last_success_at = @now, p.streak = 0,
  p.cycles = p.cycles + 1, p.version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END;

-- name: finish_runs
UPDATE @rows(id uuid, fence int, number int, final text, run_error text, job_id bigint, keep_ms bigint)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number
SET r.state = d.final, r.finished_at = @now, r.lease_until = NULL, r.error = d.run_error,
  r.settled_at = CASE WHEN d.job_id IS NOT NULL THEN @now END,
  r.expires_at = CASE WHEN d.job_id IS NOT NULL THEN DATE_ADD(@now, INTERVAL 1000 * d.keep_ms MICROSECOND) END;

-- name: end_attempts
UPDATE @rows(id uuid, fence int, number int, state text, rows_affected bigint, error text, code text,
  line int, severity text, detail text, hint text, output text, result text,
  waited_ms bigint)
STRAIGHT_JOIN dbjobs.attempts a FORCE INDEX (PRIMARY) ON a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running'
SET a.state = d.state, a.finished_at = @now,
  a.started_at = CASE WHEN d.waited_ms > 0 THEN LEAST(@now, DATE_ADD(a.started_at, INTERVAL 1000 * d.waited_ms MICROSECOND)) ELSE a.started_at END, a.rows_affected = d.rows_affected, a.error = d.error, a.error_code = d.code,
  a.error_line = d.line, a.error_severity = d.severity, a.error_detail = d.detail, a.error_hint = d.hint,
  a.output = d.output, a.result = d.result;

-- Runs whose delivery never began are queued again as they were before it, except for the fence. If somebody has
-- requested the end of such a run, the run waits instead.

-- name: return_runs
UPDATE @rows(id uuid, fence int, number int, fresh int, error text)
STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (PRIMARY) ON r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number
SET r.state = CASE WHEN r.cancel_at IS NULL THEN 'queued' ELSE 'waiting' END, r.held_by = NULL, r.lease_until = @now,
  r.attempt = r.attempt - 1, r.attempts = r.attempts - 1, r.started_at = CASE WHEN d.fresh = 1 THEN NULL ELSE r.started_at END, r.error = d.error;

-- name: drop_attempts
DELETE a FROM @rows(id uuid, fence int, number int)
STRAIGHT_JOIN dbjobs.attempts a FORCE INDEX (PRIMARY) ON a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: surplus_runs
SELECT r.id, d.job_id, CASE WHEN r.number <= d.below THEN 1 ELSE 0 END FROM @rows(job_id bigint, below bigint, through bigint, since instant)
STRAIGHT_JOIN dbjobs.runs r ON r.job_id = d.job_id AND r.number <= d.through
WHERE r.settled_at IS NOT NULL AND (r.number <= d.below OR r.finished_at < d.since) LIMIT :limit;

-- JSON_TABLE is inside a subquery, because MySQL refuses SKIP LOCKED beside it.

-- name: lock_old_gaps
SELECT o.job_id, o.schedule_id, o.through_at, o.reason
FROM (SELECT * FROM JSON_TABLE(:rows, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', since DATETIME(6) PATH '$.since')) AS t) AS d
STRAIGHT_JOIN dbjobs.gaps o FORCE INDEX (PRIMARY) ON o.job_id = d.job_id AND o.through_at < d.since AND o.recorded_at < d.since LIMIT :limit @skip;

-- name: delete_gaps
DELETE g FROM JSON_TABLE(:rows, '$[*]' COLUMNS (job_id BIGINT PATH '$.job_id', schedule_id BIGINT PATH '$.schedule_id',
  through_at DATETIME(6) PATH '$.through_at', reason VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.reason')) AS d
STRAIGHT_JOIN dbjobs.gaps g FORCE INDEX (PRIMARY)
ON g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.through_at AND g.reason = d.reason;

-- The sessions that have rows locked, except this session. InnoDB does not show the database of a transaction, so the
-- current database of the session counts. A session without a current database is included. InnoDB shows transactions
-- only to logins that may see the processes of others. It shows times in the zone of the server's machine, whatever the
-- zone of the session is.

-- name: lock_holders
SELECT t.trx_mysql_thread_id, p.USER, p.HOST, CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00')
FROM information_schema.INNODB_TRX t LEFT JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE t.trx_rows_locked > 0 AND t.trx_mysql_thread_id <> CONNECTION_ID() AND (p.DB IS NULL OR p.DB = DATABASE())
ORDER BY t.trx_started, t.trx_mysql_thread_id LIMIT 3;

-- name: update_jobs
UPDATE @rows(id bigint, @job_types)
STRAIGHT_JOIN dbjobs.jobs j FORCE INDEX (PRIMARY) ON j.id = d.id AND j.removed_at IS NULL
SET j.changed_at = @now, @job_changes_by_name;

-- name: delete_links
DELETE l FROM @rows(job_id bigint, schedule_id bigint)
STRAIGHT_JOIN dbjobs.job_schedules l FORCE INDEX (PRIMARY) ON l.job_id = d.job_id AND l.schedule_id = d.schedule_id;

-- When a rule changes, its new times count from that moment.

-- name: date_own_rules
UPDATE @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text, on_holiday text)
STRAIGHT_JOIN dbjobs.schedules s FORCE INDEX (PRIMARY) ON s.id = d.id
  AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous
    OR s.calendar <> d.calendar OR s.on_holiday <> d.on_holiday)
SET s.changed_at = @now;

-- name: update_own_rules
UPDATE @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text, on_holiday text, calendar_version text, description text)
STRAIGHT_JOIN dbjobs.schedules s FORCE INDEX (PRIMARY) ON s.id = d.id
SET s.rule = d.rule, s.zone = d.zone, s.nonexistent = d.nonexistent, s.ambiguous = d.ambiguous,
  s.calendar = d.calendar, s.on_holiday = d.on_holiday, s.calendar_version = d.calendar_version, s.description = d.description,
  s.manifest = NULL;

-- --------------------------------------------------------------------------------------- what the server is like

-- name: catalogue
SELECT t.table_name FROM information_schema.tables t WHERE t.table_schema = DATABASE() AND t.table_name LIKE 'dbjobs%'
UNION SELECT s.index_name FROM information_schema.statistics s WHERE s.table_schema = DATABASE() AND s.table_name LIKE 'dbjobs%'
UNION SELECT r.routine_name FROM information_schema.routines r WHERE r.routine_schema = DATABASE() AND r.routine_name LIKE 'dbjobs%';

-- The rights of this login with which a server shows it all routines of the database. Those that it has by a role are not among them.

-- name: shown_routines
SELECT COUNT(*) FROM (
  SELECT u.privilege_type, u.grantee FROM information_schema.user_privileges u
  UNION SELECT s.privilege_type, s.grantee FROM information_schema.schema_privileges s WHERE DATABASE() LIKE s.table_schema) AS g
WHERE g.privilege_type IN ('EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE')
  AND REPLACE(g.grantee, '''', '') = CURRENT_USER();

-- room returns how many connections the server allows in total, and how many more this account may have, if it has a limit of
-- its own. A login sees its own sessions without a right. connections returns how many there are in total. MySQL and MariaDB
-- have that number in tables of different names, but SHOW GLOBAL STATUS works on both.

-- name: room
SELECT 'in total', CAST(@@GLOBAL.max_connections AS SIGNED)
UNION ALL
SELECT 'of this account', CAST(@@SESSION.max_user_connections AS SIGNED) - (SELECT COUNT(*) FROM information_schema.PROCESSLIST p WHERE p.user = @login)
FROM DUAL WHERE @@SESSION.max_user_connections > 0;

-- name: connections
SHOW GLOBAL STATUS LIKE 'Threads_connected';

-- name: server_settings
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_stats_auto_recalc', 'read_only', 'transaction_read_only', 'tx_read_only');

-- The runs are looked up job by job. Otherwise MariaDB reads all runs of all jobs.

-- name: durations
SELECT r.job_id, r.started_at, r.finished_at FROM dbjobs.plans p STRAIGHT_JOIN dbjobs.runs r FORCE INDEX (runs_number)
WHERE r.job_id = p.job_id AND r.number > p.runs_made - :most AND r.state = 'succeeded' AND r.started_at IS NOT NULL AND r.finished_at IS NOT NULL;
