-- PostgreSQL.

-- What an owner may do with his own run, while a tick executes it under the owner's login.

-- name: holds_own
SELECT dbjobs.holds_own(:id::uuid, :fence::integer);

-- name: end_own
SELECT dbjobs.end_own(:id::uuid, :fence::integer, :number::integer, :final::text, :step::integer, :step_name::text, :holder::text, :lease_ms::bigint, :waited_ms::bigint,
  :rows::bigint, :error::text, :run_error::text, :output::text, :result::text, :now::timestamptz);

-- It also enlists removed jobs, and jobs whose row is gone, because decisions for the rest of them are still needed.
-- Plans that exist are left out: on a conflict of keys, the server would wait for the session that advances the plan.
-- ON CONFLICT is for two sessions that enlist a job at the same time.

-- name: enlist
INSERT INTO dbjobs.plans (job_id, owner)
SELECT i.id, coalesce((SELECT @plan_owner FROM dbjobs.jobs j WHERE j.id = i.id), @served) FROM pg_catalog.unnest(:ids::bigint[]) AS i(id) WHERE (SELECT p.job_id FROM dbjobs.plans p WHERE p.job_id = i.id) IS NULL
ON CONFLICT DO NOTHING;

-- The rows are read job by job through the keys. For = ANY(...) with 1,000 values, the planner makes a scan, whose cost
-- grows with the number of all jobs. For a newly filled table, it may do so with any number of values. It cannot do so
-- for a correlated subquery with OFFSET 0. Without OFFSET 0, it reads all schedules for each job as long as the tables
-- have no statistics.

-- name: batch_rules
SELECT i.id, r.schedule_id, r.input, r.rule, r.ends, r.changed_at, r.rule <> '' AND r.stands
FROM pg_catalog.unnest(:ids::bigint[]) AS i(id) CROSS JOIN LATERAL (
  SELECT r.schedule_id, r.input, r.rule, r.ends, r.changed_at, EXISTS (
    SELECT 1 FROM dbjobs.schedules s LEFT JOIN dbjobs.job_schedules l ON l.job_id = i.id AND l.schedule_id = s.id
    WHERE s.id = r.schedule_id AND s.plan_input = r.input AND (l.planned = s.id OR l.job_id IS NULL AND s.job_id = i.id) OFFSET 0) AS stands
  FROM dbjobs.plan_rules r WHERE r.job_id = i.id ORDER BY r.schedule_id) AS r;

-- name: batch_links
SELECT i.id, l.* FROM pg_catalog.unnest(:ids::bigint[]) AS i(id) CROSS JOIN LATERAL (
  SELECT l.schedule_id, CASE WHEN l.planned <> l.schedule_id THEN NULL ELSE l.created_at END, coalesce(l.planned = l.schedule_id, false), true AS linked,
    s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at AS made, s.changed_at
  FROM dbjobs.job_schedules l LEFT JOIN LATERAL (SELECT * FROM dbjobs.schedules s WHERE s.id = l.schedule_id OFFSET 0) AS s ON true
  WHERE l.job_id = i.id
  UNION ALL
  SELECT s.id, s.created_at, true, false, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
  FROM dbjobs.schedules s
  WHERE s.job_id = i.id AND (SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.job_id = i.id AND l.schedule_id = s.id) IS NULL
  OFFSET 0) AS l;

-- name: batch_runs
SELECT @run_columns, @followed
FROM pg_catalog.unnest(:ids::bigint[]) AS i(id) CROSS JOIN LATERAL (SELECT * FROM dbjobs.runs WHERE settled_at IS NULL AND job_id = i.id OFFSET 0) AS r
ORDER BY r.job_id, r.id;

-- name: batch_followers
SELECT a.after_job_id, j.id, j.queue, j.priority, a.on_end,
  (SELECT COUNT(*) FROM dbjobs.job_after o WHERE o.job_id = a.job_id),
  CASE WHEN j.max_runs <= (SELECT p.runs_made FROM dbjobs.plans p WHERE p.job_id = j.id) THEN @true ELSE @false END
FROM pg_catalog.unnest(:ids::bigint[]) AS i(id)
CROSS JOIN LATERAL (SELECT * FROM dbjobs.job_after x WHERE x.after_job_id = i.id OFFSET 0) AS a
CROSS JOIN LATERAL (SELECT * FROM dbjobs.jobs y WHERE y.id = a.job_id OFFSET 0) AS j
WHERE j.removed_at IS NULL AND j.enabled ORDER BY a.after_job_id, j.id;

-- FOR UPDATE locks the newest version of a run before it looks at its state again. So it also locks a run that
-- another session has taken since the statement's snapshot, and the holder of that run would wait to finish it. For
-- that reason, a session first takes this advisory lock for as many runs as it wants, in the order of the list. It
-- reads these runs in the next statement. That one has a newer snapshot, in which a run is as the last session with
-- its lock left it. The run is a value that is looked up by its key: for an EXISTS, the planner makes a hash of all
-- runs as long as there are some thousand of them.

-- name: reserve_queued
SELECT c.id FROM pg_catalog.unnest(:ids::uuid[]) AS c(id)
WHERE CASE WHEN (SELECT r.id FROM dbjobs.runs r WHERE r.id = c.id AND @is_queued) IS NOT NULL
  THEN pg_catalog.pg_try_advisory_xact_lock(('x' || pg_catalog.right(c.id::text, 12))::bit(48)::bigint) END
LIMIT :limit;

-- name: insert_runs
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, held_by, queue, priority, scheduled_for,
  interval_start, interval_end, args, ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, d.state, d.held_by, d.queue, COALESCE(d.priority, 0), d.scheduled_for,
  d.interval_start, COALESCE(d.interval_end, d.scheduled_for), d.args::jsonb, COALESCE(d.ready_at, @now), @now
FROM @rows(id uuid, job_id bigint, number bigint, occurrence text, state text, held_by text, queue text,
  priority int, scheduled_for instant, interval_start instant, interval_end instant, args text,
  ready_at instant)
ON CONFLICT DO NOTHING;

-- For runs that are queued at once. It has fewer columns than insert_runs, because each column of a document has its
-- cost.

-- name: insert_queued
INSERT INTO dbjobs.runs (id, job_id, number, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end,
  ready_at, created_at)
SELECT d.id, d.job_id, d.number, d.occurrence, 'queued', d.queue, COALESCE(d.priority, 0), d.scheduled_for, d.interval_start,
  d.scheduled_for, @now, @now
FROM @rows(id uuid, job_id bigint, number bigint, occurrence text, queue text, priority int,
  scheduled_for instant, interval_start instant)
ON CONFLICT DO NOTHING;

-- Rows that change are looked up by the key, which a list of their keys makes certain. Without the list, the planner
-- would read all of a table of some thousand rows for each hundred rows that are written.

-- name: extend_gaps
WITH d AS (
  SELECT * FROM @rows(job_id bigint, schedule_id bigint, from_at instant, through_at instant, reason text, rule text)
)
UPDATE dbjobs.gaps AS g SET through_at = d.through_at, recorded_at = @now
FROM d
WHERE g.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND g.through_at = ANY(ARRAY(SELECT from_at FROM d))
  AND g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule;

-- A run that goes back from running to waiting or queued had a delivery that did not come back, which is not an
-- attempt. If somebody has requested its end since it was read, the run is not let go, and the decision is made
-- again.

-- name: update_runs
WITH d AS (
  SELECT * FROM @rows(id uuid, fence int, was text, lease instant, state text, held_by text, queue text, priority int, ready_at instant,
  number bigint, losses int, finished_at instant, settled_at instant, expires_at instant, error text)
)
UPDATE dbjobs.runs AS r
SET state = d.state, held_by = d.held_by, queue = d.queue, priority = d.priority, ready_at = d.ready_at, number = d.number, losses = d.losses,
  finished_at = d.finished_at, settled_at = d.settled_at, expires_at = d.expires_at, error = d.error,
  lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN @now ELSE r.queued_at END,
  attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END
FROM d
WHERE r.id = ANY(ARRAY(SELECT id FROM d)) AND r.id = d.id AND r.fence = d.fence AND r.state = d.was
  AND (d.lease IS NULL OR r.lease_until = d.lease) AND (d.state <> 'queued' OR r.cancel_at IS NULL);

-- name: write_starts
WITH d AS (
  SELECT * FROM @rows(id bigint, not_before instant)
)
UPDATE dbjobs.jobs AS j SET not_before = d.not_before FROM d WHERE j.id = ANY(ARRAY(SELECT id FROM d)) AND j.id = d.id;

-- name: advance
WITH d AS (
  SELECT * FROM @rows(job_id bigint, version bigint, next_run instant, decided_through instant, parked text,
  last_scheduled_for instant, last_run_id uuid, last_state text, last_finished_at instant,
  last_success_at instant, last_error text, streak int, cycles bigint, runs_made bigint, startup_ids text,
  repeat_from instant, skips text)
)
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = d.decided_through, parked = d.parked,
  last_scheduled_for = d.last_scheduled_for, last_run_id = d.last_run_id, last_state = d.last_state,
  last_finished_at = d.last_finished_at, last_success_at = d.last_success_at, last_error = d.last_error,
  streak = d.streak, cycles = d.cycles, runs_made = d.runs_made, startup_ids = d.startup_ids,
  repeat_from = d.repeat_from, skips = d.skips, version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM d
WHERE p.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND p.job_id = d.job_id AND p.version = d.version;

-- For plans that only went on to their next nominal time, after one run for the last one.

-- name: advance_due
WITH d AS (
  SELECT * FROM @rows(job_id bigint, version bigint, next_run instant, last_scheduled_for instant)
)
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = @now, last_scheduled_for = d.last_scheduled_for, runs_made = p.runs_made + 1,
  version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM d
WHERE p.job_id = ANY(ARRAY(SELECT job_id FROM d)) AND p.job_id = d.job_id AND p.version = d.version;

-- The ends of several runs. Its own fence guards each run. A run whose row another session has locked is left out,
-- and so is a run that was delivered again. The answer names the runs that have ended, and says whether everything is
-- paused.

-- The limit is the length of the list, so it leaves no run out. Without it, the planner assumes that any list has 100
-- rows, and reads all of a table of some thousand runs for each end. The state is compared in a CASE, which hides it
-- from the planner: by its statistics, hardly a run is running, so it would compare each running run with each end of
-- the list. The ids are a list of their own, which leads the planner to the key: for the join alone, it would read
-- all runs as long as there are some thousand of them.

-- A run that succeeded is settled with its end if that changes only the facts of its plan: the plan has the version for
-- which this is known, nobody else has the plan locked, the job was not edited, and no job runs after it.

-- name: finish_attempts
WITH d AS (
  SELECT * FROM @rows(id uuid, fence int, number int, final text, run_error text, state text,
  rows_affected bigint, error text, code text, line int, severity text, detail text, hint text, output text,
  result text, waited_ms double precision, recorded int, job_id bigint, version bigint, keep_ms double precision, holder text) LIMIT :limit
), free AS (
  SELECT d.*, s.job_id AS settles FROM d CROSS JOIN LATERAL (SELECT id FROM dbjobs.runs
    WHERE id = d.id AND fence = d.fence AND holder = d.holder AND state = 'running' AND attempts = d.number AND @has_record OFFSET 0 FOR UPDATE SKIP LOCKED) AS r
  LEFT JOIN LATERAL (SELECT p.job_id FROM dbjobs.plans p
    WHERE p.job_id = d.job_id AND p.version = d.version AND p.parked IS NULL AND @settles OFFSET 0 FOR UPDATE SKIP LOCKED) AS s ON true
), moved AS (
  UPDATE dbjobs.runs AS r SET state = d.final, finished_at = @now, lease_until = NULL, error = d.run_error,
    settled_at = CASE WHEN d.settles IS NOT NULL THEN @now END,
    expires_at = CASE WHEN d.settles IS NOT NULL THEN @now + d.keep_ms * interval '1 millisecond' END
  FROM free AS d
  WHERE r.id = ANY(ARRAY(SELECT id FROM free)) AND r.id = d.id AND r.fence = d.fence
    AND CASE WHEN r.state = 'running' THEN true ELSE false END AND r.attempts = d.number RETURNING d.*
), ended AS (
  UPDATE dbjobs.attempts AS a SET state = d.state, finished_at = @now,
    started_at = CASE WHEN d.waited_ms > 0::double precision THEN least(@now, a.started_at + d.waited_ms * interval '1 millisecond') ELSE a.started_at END, rows_affected = d.rows_affected, error = d.error,
    error_code = d.code, error_line = d.line, error_severity = d.severity, error_detail = d.detail, error_hint = d.hint, output = d.output,
    result = d.result
  FROM moved AS d
  WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running'
), counted AS (
  UPDATE dbjobs.plans AS p SET last_run_id = d.id, last_state = d.final, last_finished_at = @now, last_success_at = @now, streak = 0,
    cycles = p.cycles + 1, version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
  FROM moved AS d
  WHERE p.job_id = ANY(ARRAY(SELECT settles FROM free)) AND p.job_id = d.settles
)
SELECT id, fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds), settles IS NOT NULL FROM moved;

-- The end of a single run, as finish_attempts writes it. Most runs end this way. Most of the cost of finish_attempts is
-- its planning. This statement looks up everything by keys, and its plan is kept.

-- name: finish_attempt
WITH run AS (
  SELECT id FROM dbjobs.runs WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number
    AND (:recorded::bigint IS NULL OR EXISTS (SELECT 1 FROM dbjobs.attempts
      WHERE run_id = :id AND number = :number AND fence = :fence AND state = 'succeeded')) FOR UPDATE SKIP LOCKED
), plan AS (
  SELECT p.job_id FROM dbjobs.plans p
  WHERE p.job_id = :job AND p.version = :version AND p.parked IS NULL AND @settles AND (SELECT id FROM run) IS NOT NULL FOR UPDATE SKIP LOCKED
), moved AS (
  UPDATE dbjobs.runs SET state = :final, finished_at = @now, lease_until = NULL, error = :run_error,
    settled_at = CASE WHEN (SELECT job_id FROM plan) IS NOT NULL THEN @now END,
    expires_at = CASE WHEN (SELECT job_id FROM plan) IS NOT NULL THEN @now + :keep_ms::double precision * interval '1 millisecond' END
  WHERE id = (SELECT id FROM run) AND fence = :fence AND state = 'running' AND attempts = :number RETURNING id
), ended AS (
  UPDATE dbjobs.attempts SET state = :state, finished_at = @now, started_at = CASE WHEN :waited_ms > @zero THEN @begun ELSE started_at END,
    rows_affected = :rows, error = :error, error_code = :code, error_line = :line, error_severity = :severity, error_detail = :detail,
    error_hint = :hint, output = :output, result = :result
  WHERE run_id = (SELECT id FROM moved) AND number = :number AND fence = :fence AND state = 'running'
), counted AS (
  UPDATE dbjobs.plans SET last_run_id = :id, last_state = :final, last_finished_at = @now, last_success_at = @now, streak = 0,
    cycles = cycles + 1, version = CASE WHEN version < @most THEN version + 1 ELSE 1 END
  WHERE job_id = (SELECT job_id FROM plan) AND (SELECT id FROM moved) IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds), (SELECT job_id FROM plan) IS NOT NULL FROM moved;

-- name: record_attempt
SELECT dbjobs.record_attempt(:id::uuid, :fence::integer, :holder::text, :number::integer, :waited_ms::bigint, :rows::bigint, :output::text, :result::text, :now::timestamptz);

-- name: lock_ending
SELECT r.id, r.fence, EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
FROM @rows(id uuid, fence int, holder text, number int, recorded int) CROSS JOIN LATERAL (SELECT id, fence FROM dbjobs.runs
  WHERE id = d.id AND fence = d.fence AND holder = d.holder AND state = 'running' AND attempts = d.number AND @has_record OFFSET 0 FOR UPDATE SKIP LOCKED) AS r;

-- name: drop_attempts
DELETE FROM dbjobs.attempts AS a USING @rows(id uuid, fence int, number int)
WHERE a.run_id = d.id AND a.number = d.number AND a.fence = d.fence AND a.state = 'running';

-- name: surplus_runs
SELECT r.id, d.job_id, r.number <= d.below FROM @rows(job_id bigint, below bigint, through bigint, since instant)
CROSS JOIN LATERAL (SELECT id, number FROM dbjobs.runs WHERE job_id = d.job_id AND number <= d.through AND settled_at IS NOT NULL
  AND (number <= d.below OR finished_at < d.since) OFFSET 0) AS r LIMIT :limit;

-- name: lock_old_gaps
SELECT g.job_id, g.schedule_id, g.through_at, g.reason FROM @rows(job_id bigint, since instant)
CROSS JOIN LATERAL (SELECT o.job_id, o.schedule_id, o.through_at, o.reason FROM dbjobs.gaps o WHERE o.job_id = d.job_id AND o.through_at < d.since AND o.recorded_at < d.since
  OFFSET 0 FOR UPDATE SKIP LOCKED) AS g LIMIT :limit;

-- name: delete_gaps
DELETE FROM dbjobs.gaps AS g USING @rows(job_id bigint, schedule_id bigint, through_at instant, reason text)
WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.through_at AND g.reason = d.reason;

-- The sessions that have locks on our tables for which a pass would wait, except this session. A value of another
-- login's session that the login may not see, such as the start of its transaction, is NULL.

-- name: lock_holders
SELECT a.pid, a.usename::text, a.application_name, pg_catalog.min(a.xact_start)
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_class c ON c.oid = l.relation AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'dbjobs'
JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.mode <> 'AccessShareLock' AND a.pid <> pg_catalog.pg_backend_pid()
GROUP BY a.pid, a.usename, a.application_name
ORDER BY pg_catalog.min(a.xact_start) NULLS LAST, a.pid LIMIT 3;

-- name: delete_ends
DELETE FROM dbjobs.job_ends AS e USING @rows(id bigint, run_id uuid) WHERE e.id = d.id AND e.run_id = d.run_id;

-- name: delete_links
DELETE FROM dbjobs.job_schedules AS l USING @rows(job_id bigint, schedule_id bigint) WHERE l.job_id = d.job_id AND l.schedule_id = d.schedule_id;

-- --------------------------------------------------------------------------------------- what the server is like

-- name: catalogue
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs'
UNION ALL SELECT p.proname::text FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'dbjobs';

-- These statements get the names of our views and routines. repeatable_rights returns the statements that grant again
-- the rights on them. repeatable_drops returns the statements that drop them, each routine with all of its arguments.
-- repeatables_there returns how many of them exist.

-- name: repeatable_rights
WITH o AS (
  SELECT 'TABLE' AS kind, c.relname::text AS name, c.relacl AS acl, c.relowner AS owner
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY(:names::text[])
  UNION ALL
  SELECT 'ROUTINE', p.proname::text, p.proacl, p.proowner
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY(:names::text[])
)
SELECT u.text FROM (
  SELECT 1 AS place, pg_catalog.format('REVOKE ALL ON %s dbjobs.%I FROM PUBLIC', o.kind, o.name) AS text FROM o WHERE o.acl IS NOT NULL
  UNION ALL
  SELECT 2, pg_catalog.format('GRANT %s ON %s dbjobs.%I TO %s%s', a.privilege_type, o.kind, o.name,
    coalesce(pg_catalog.quote_ident(r.rolname::text), 'PUBLIC'), CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM o CROSS JOIN LATERAL pg_catalog.aclexplode(o.acl) AS a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
  WHERE a.grantee <> o.owner
) AS u ORDER BY u.place, u.text;

-- name: repeatable_drops
SELECT 'DROP VIEW ' || pg_catalog.string_agg(pg_catalog.format('dbjobs.%I', c.relname), ', ')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY(:names::text[]) HAVING pg_catalog.count(*) > 0
UNION ALL
SELECT 'DROP ROUTINE ' || pg_catalog.string_agg(p.oid::regprocedure::text, ', ')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY(:names::text[]) HAVING pg_catalog.count(*) > 0;

-- name: repeatables_there
SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY(:names::text[]))
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'dbjobs' AND p.proname::text = ANY(:names::text[]));

-- How many tables, views, indexes, routines and types are in our schema. After our own are dropped, others have made
-- them.

-- name: others_in_schema
SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs')
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'dbjobs')
  + (SELECT pg_catalog.count(*) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = 'dbjobs');

-- How many more connections this login would get. Connections that are reserved for others do not count.

-- name: room
SELECT 'of this login', least(
  pg_catalog.current_setting('max_connections')::bigint - pg_catalog.current_setting('superuser_reserved_connections')::bigint
    - coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::bigint - (SELECT pg_catalog.sum(s.numbackends)::bigint FROM pg_catalog.pg_stat_database s),
  (SELECT CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit::bigint - s.numbackends::bigint END
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_stat_database s ON s.datid = d.oid WHERE d.datname = pg_catalog.current_database()),
  (SELECT CASE WHEN r.rolconnlimit >= 0 THEN r.rolconnlimit::bigint
      - (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity a WHERE a.usesysid = r.oid) END
    FROM pg_catalog.pg_roles r WHERE r.rolname = session_user));

-- The reason why row security does not bind this login, if rows have owners.

-- name: unbound
SELECT CASE WHEN r.rolsuper THEN 'is a superuser' WHEN r.rolbypassrls THEN 'has BYPASSRLS' ELSE 'owns the tables' END
FROM pg_catalog.pg_roles r
WHERE r.rolname = session_user AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1)
  AND (r.rolsuper OR r.rolbypassrls OR (SELECT pg_catalog.pg_has_role(session_user, c.relowner, 'member') FROM pg_catalog.pg_class c WHERE c.oid = 'dbjobs.jobs'::regclass));

-- What is missing of these guards of rows, if rows have owners. A trigger that is disabled, or for replicas only, guards nothing.

-- name: unguarded
WITH tables AS (
  SELECT c.oid, 'dbjobs.' || c.relname::text AS name, c.relrowsecurity FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs'
), there AS (
  SELECT 'row security of ' || t.name AS name FROM tables t WHERE t.relrowsecurity
  UNION ALL SELECT 'policy ' || p.polname::text || ' of ' || t.name FROM pg_catalog.pg_policy p JOIN tables t ON t.oid = p.polrelid
  UNION ALL SELECT 'trigger ' || g.tgname::text || ' of ' || t.name FROM pg_catalog.pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE g.tgenabled IN ('O', 'A')
)
SELECT w.name FROM pg_catalog.unnest(:names::text[]) AS w(name)
WHERE (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) AND w.name NOT IN (SELECT name FROM there);

-- Those of these views that show rows with the rights of their owner, although this server can show them with those of who asks.

-- name: old_views
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dbjobs' AND c.relkind = 'v' AND c.relname::text = ANY(:names::text[])
  AND pg_catalog.current_setting('server_version_num')::integer >= 150000
  AND NOT ('security_invoker=true' = ANY(coalesce(c.reloptions, '{}'::text[]))) ORDER BY c.relname;

-- The tables of which row security hides rows from this login, where rows have no owners.

-- name: hidden_tables
SELECT 'dbjobs.' || t FROM pg_catalog.unnest(@our_tables) t WHERE @hides;

-- Whether row security shows this login no rows but its own. A role that is missing has no members.

-- name: only_own
SELECT pg_catalog.row_security_active('dbjobs.ticks') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r
  WHERE r.rolname IN ('dbjobs_admin', 'dbjobs_ticker', 'dbjobs_reader') AND pg_catalog.pg_has_role(r.oid, 'USAGE'));

-- name: server_settings
SELECT s.name, s.setting FROM pg_catalog.pg_settings s
WHERE s.name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'autovacuum', 'default_transaction_read_only', 'in_hot_standby');

-- The planner's statistics of a table survive a crash of the server, and are there on a standby; when the server has made them, it
-- forgets. It shows them to a login that may read the table, and that no row security binds.

-- name: server_tables
SELECT s.relname::text, s.n_live_tup, s.n_dead_tup, pg_catalog.has_table_privilege(s.relid, 'SELECT') AND NOT pg_catalog.row_security_active(s.relid)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_stats p WHERE p.schemaname = s.schemaname AND p.tablename = s.relname)
FROM pg_catalog.pg_stat_user_tables s WHERE s.schemaname = 'dbjobs' ORDER BY s.relname;

-- name: broken_indexes
SELECT c.relname::text FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'dbjobs' AND NOT i.indisvalid ORDER BY c.relname;

-- A sequence that hands out no number beyond those of the rows, as after a restore or a replication of the rows alone. A
-- login without rights on the sequence does not see its state.

-- name: behind_sequences
SELECT t.name, t.used FROM (SELECT 'dbjobs.schedules' AS name, MAX(id) AS used FROM dbjobs.schedules
  UNION ALL SELECT 'dbjobs.jobs', MAX(id) FROM dbjobs.jobs
  UNION ALL SELECT 'dbjobs.pauses', MAX(id) FROM dbjobs.pauses
  UNION ALL SELECT 'dbjobs.job_ends', MAX(id) FROM dbjobs.job_ends
  UNION ALL SELECT 'dbjobs.changes', MAX(id) FROM dbjobs.changes) AS t
JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.pg_get_serial_sequence(t.name, 'id')::regclass
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_sequences s ON s.schemaname = n.nspname AND s.sequencename = c.relname
WHERE CASE WHEN c.relkind = 'S' THEN pg_catalog.has_sequence_privilege(c.oid, 'USAGE, SELECT') END AND t.used > coalesce(s.last_value, 0) ORDER BY t.name;

-- The attempts are read run by run, through their key. Otherwise the planner would read all attempts, because there are
-- only a few failed ones.

-- name: failures
SELECT @attempt_columns, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r
    WHERE r.created_at >= :since AND r.created_at < :until AND @may_have_failed
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r WHERE @unwell IS NOT NULL AND r.created_at < :since AND (r.finished_at >= :since OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r
    WHERE @open IS NOT NULL AND r.created_at < :since AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
CROSS JOIN LATERAL (SELECT * FROM dbjobs.attempts x WHERE x.run_id = f.id AND x.state IN ('failed', 'lost') OFFSET 0) AS a LEFT JOIN dbjobs.jobs j ON j.id = f.job_id
WHERE a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- name: failures_of_job
SELECT @attempt_columns, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs.runs r CROSS JOIN LATERAL (SELECT * FROM dbjobs.attempts x WHERE x.run_id = r.id AND x.state IN ('failed', 'lost') OFFSET 0) AS a LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND @may_have_failed AND a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- The runs are looked up job by job: for a join with a range, PostgreSQL reads all runs of all jobs.

-- name: durations
SELECT p.job_id, r.started_at, r.finished_at FROM dbjobs.plans p
CROSS JOIN LATERAL (SELECT o.started_at, o.finished_at FROM dbjobs.runs o WHERE o.job_id = p.job_id AND o.number > p.runs_made - :most
  AND o.state = 'succeeded' AND o.started_at IS NOT NULL AND o.finished_at IS NOT NULL OFFSET 0) AS r;
