-- The statements that the engines share. dbjobs.NAME is a table, :name an argument, @name a macro of the engine. The
-- statements of a single engine are in queries.sql of its folder. Such a statement can replace a statement of this
-- file: the replaced statement names the engine after "overridden:". ../testdata has the texts that are sent to the
-- servers.

-- name: engine
SELECT @version;

-- name: login
SELECT @login;

-- name: path
SELECT @path, @login;

-- ------------------------------------------------------------------------------------------------ installation

-- name: installation
SELECT version, oldest, repeatable, instance, owners, migrated_at FROM dbjobs.installation WHERE id = 1;

-- name: first_installation
INSERT INTO dbjobs.installation (id, version, oldest, migrated_at)
SELECT 1, 0, 0, @now FROM (SELECT 1 AS one) AS source
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.installation WHERE id = 1);

-- name: lock_installation
SELECT version FROM dbjobs.installation WHERE id = 1 @lock;

-- name: record_migration
UPDATE dbjobs.installation SET version = :version, oldest = :oldest, migrated_at = @now WHERE id = 1;

-- name: record_repeatable
UPDATE dbjobs.installation SET repeatable = :repeatable WHERE id = 1;

-- name: set_instance
UPDATE dbjobs.installation SET instance = :instance WHERE id = 1;

-- ------------------------------------------------------------------------------------------------------- probe

-- The first instant of an index is read with ORDER BY and LIMIT: for MIN with IS NOT NULL, MariaDB and MySQL read the whole index.
-- Row security looks at each row that an index gives: without the bound on expires_at, a login that has no run would look at all
-- runs of other owners.

-- name: probe
SELECT @now, i.version, i.oldest, i.instance, i.owners, @keyless, @hidden,
  (SELECT MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds),
  (SELECT MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.ends_at <= @now),
  (SELECT MIN(next_run) FROM dbjobs.plans WHERE owner = @served),
  (SELECT next_run FROM dbjobs.plans WHERE owner = @served AND @late ORDER BY next_run LIMIT 1),
  (SELECT wake_at FROM dbjobs.runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT @woken AS since FROM dbjobs.runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
  (SELECT id FROM dbjobs.jobs WHERE @stale ORDER BY id LIMIT 1),
  COALESCE((SELECT job_id FROM dbjobs.job_schedules WHERE @stale_link ORDER BY job_id LIMIT 1),
    (SELECT job_id FROM dbjobs.job_after WHERE @stale_after ORDER BY job_id LIMIT 1)),
  (SELECT id FROM dbjobs.schedules WHERE @stale ORDER BY id LIMIT 1),
  (SELECT id FROM dbjobs.pauses WHERE @stale ORDER BY id LIMIT 1),
  (SELECT name FROM dbjobs.calendars WHERE @stale ORDER BY name LIMIT 1),
  (SELECT job_id FROM dbjobs.job_ends WHERE seen = @false ORDER BY job_id LIMIT 1),
  (SELECT queued_since FROM dbjobs.runs WHERE @queued = :queue AND @runnable ORDER BY @urgency, ready_at, id LIMIT 1),
  (SELECT MIN(owner) FROM dbjobs.plans), (SELECT MAX(owner) FROM dbjobs.plans),
  (SELECT COUNT(*) FROM dbjobs.plans p WHERE @parked AND @counts),
  (SELECT COUNT(*) FROM dbjobs.plans p WHERE @failing AND @counts),
  CASE WHEN (SELECT expires_at FROM dbjobs.runs WHERE expires_at <= @now ORDER BY expires_at LIMIT 1) IS NULL THEN @false ELSE @true END,
  t.since, t.last_at, t.began_at, t.checked_at, COALESCE(t.passes, 0), @login, @path
FROM dbjobs.installation i
LEFT JOIN dbjobs.ticks t ON t.name = :name AND t.since = (SELECT MAX(since) FROM dbjobs.ticks WHERE name = :name)
WHERE i.id = 1;

-- Of the jobs that the probe counts as parked or failing, the first ones that nobody has paused, and how many there are.

-- name: troubled
SELECT j.owner, j.name, t.parked, t.error, t.streak, t.jobs FROM (
  SELECT * FROM (SELECT p.job_id, @true AS parked, p.parked AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs.plans p
    WHERE @parked AND @troubles ORDER BY p.job_id LIMIT :limit) AS parked
  UNION ALL
  SELECT * FROM (SELECT p.job_id, @false AS parked, p.last_error AS error, p.streak, COUNT(*) OVER () AS jobs FROM dbjobs.plans p
    WHERE @failing AND @troubles ORDER BY p.job_id LIMIT :limit) AS failing
) AS t JOIN dbjobs.jobs j ON j.id = t.job_id ORDER BY t.parked DESC, t.job_id;

-- The instant since which the oldest run that may be taken is ready.

-- name: oldest_queued
SELECT MIN(queued_since) FROM dbjobs.runs WHERE queued_since IS NOT NULL;

-- The number of jobs of each other login that have been due since the given instant, without parked ones: they may stay due while
-- ticks of that login come. Each owner is read through the index. The statement is sent only if there are other owners.

-- name: unserved
WITH RECURSIVE o (owner) AS (
  SELECT MIN(p.owner) FROM dbjobs.plans p
  UNION ALL
  SELECT (SELECT MIN(p.owner) FROM dbjobs.plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner, jobs, since FROM (
  SELECT o.owner, (SELECT COUNT(*) FROM dbjobs.plans p WHERE p.owner = o.owner AND p.next_run <= :since AND p.parked IS NULL) AS jobs,
    (SELECT p.next_run FROM dbjobs.plans p WHERE p.owner = o.owner AND p.next_run <= :since AND p.parked IS NULL ORDER BY p.next_run LIMIT 1) AS since
  FROM o WHERE o.owner IS NOT NULL AND o.owner <> :login) AS u
WHERE jobs > 0 ORDER BY owner;

-- The instant at which the first job of an owner is due, and since when one is late. It is sent for other owners whose jobs this
-- host also runs.

-- name: next_of_owner
SELECT (SELECT MIN(next_run) FROM dbjobs.plans WHERE owner = :owner),
  (SELECT next_run FROM dbjobs.plans WHERE owner = :owner AND @late ORDER BY next_run LIMIT 1);

-- What of an owner is due first after an instant, and when the first run wakes its job after it. It is sent where something
-- stays due, which hides what is due later.

-- name: next_after
SELECT MIN(t.due) FROM (
  SELECT MIN(next_run) AS due FROM dbjobs.plans WHERE owner = COALESCE(:owner, @served) AND next_run > :after
  UNION ALL
  SELECT MIN(wake_at) AS due FROM dbjobs.runs WHERE wake_at > :after
) AS t;

-- What of an owner became due last, up to an instant, or which run did, among the thousand that were made last. It is sent where
-- next_after is.

-- name: newest_due
SELECT MAX(t.due) FROM (
  SELECT MAX(next_run) AS due FROM dbjobs.plans WHERE owner = COALESCE(:owner, @served) AND next_run <= :up_to
  UNION ALL
  SELECT MAX(w.since) AS due FROM (SELECT @woken AS since FROM dbjobs.runs WHERE wake_at <= :up_to ORDER BY wake_at DESC LIMIT 1000) AS w
) AS t;

-- name: record_tick
UPDATE dbjobs.ticks SET since = CASE WHEN last_at > @later THEN last_at ELSE since END, last_at = @now,
  began_at = CASE WHEN began_at > :began AND began_at <= @now THEN began_at ELSE COALESCE(:began, began_at) END, checked_at = COALESCE(:checked, checked_at),
  passes = passes + :regular, holder = :holder, version = :version, decided = decided + :decided,
  started = started + :started, failed = failed + :failed, error = :error, took_ms = :took_ms
WHERE name = :name AND since = :since;

-- name: record_first_tick
INSERT INTO dbjobs.ticks (name, since, last_at, began_at, checked_at, holder, version, decided, started, failed, error, took_ms)
VALUES (:name, @now, @now, :began, :checked, :holder, :version, :decided, :started, :failed, :error, :took_ms);

-- The triggers, each with its newest stretch of passes. An hourly trigger has a row for each pass, so the rows are
-- read name by name.

-- name: triggers
-- overridden: mysql
WITH RECURSIVE n (name) AS (
  SELECT MIN(x.name) FROM dbjobs.ticks x
  UNION ALL
  SELECT (SELECT MIN(x.name) FROM dbjobs.ticks x WHERE x.name > n.name) FROM n WHERE n.name IS NOT NULL
)
SELECT t.name, t.since, t.last_at, t.passes, t.holder, t.version, t.error, t.took_ms,
  (SELECT MIN(f.since) FROM dbjobs.ticks f WHERE f.name = n.name)
FROM n CROSS JOIN dbjobs.ticks t
WHERE t.name = n.name AND t.since = (SELECT MAX(l.since) FROM dbjobs.ticks l WHERE l.name = n.name) ORDER BY t.name;

-- The unbroken stretches of a trigger that began lately, and the stretch before them, the newest first.

-- name: stretches
SELECT t.since, t.last_at, t.passes FROM dbjobs.ticks t
WHERE t.name = :name AND t.since >= COALESCE((SELECT MAX(l.since) FROM dbjobs.ticks l WHERE l.name = :name AND l.since < :since), :since)
ORDER BY t.since DESC LIMIT :limit;

-- ------------------------------------------------------------------------------------------- how things stand

-- The owners of plans. There are only a few, and next_run is indexed by owner.

-- name: owners
-- overridden: mysql
WITH RECURSIVE o (owner) AS (
  SELECT MIN(p.owner) FROM dbjobs.plans p
  UNION ALL
  SELECT (SELECT MIN(p.owner) FROM dbjobs.plans p WHERE p.owner > o.owner) FROM o WHERE o.owner IS NOT NULL
)
SELECT owner FROM o WHERE owner IS NOT NULL ORDER BY owner;

-- How many jobs are overdue, parked or failing.

-- name: standing
SELECT
  (SELECT COUNT(*) FROM dbjobs.plans p WHERE p.owner @among_names AND p.next_run <= :overdue AND @counts),
  (SELECT COUNT(*) FROM dbjobs.plans p WHERE @parked AND @troubles),
  (SELECT COUNT(*) FROM dbjobs.plans p WHERE @failing AND @troubles)
FROM (SELECT 1 AS one) AS source;

-- The first jobs of each of these kinds, the worst first. coming_jobs has the first jobs whose next time is still
-- ahead.

-- name: standing_jobs
SELECT kind, job_id FROM (
  SELECT * FROM (SELECT 'overdue' AS kind, p.job_id FROM dbjobs.plans p
    WHERE p.owner @among_names AND p.next_run <= :overdue AND @counts ORDER BY p.next_run, p.job_id LIMIT :limit) AS a
  UNION ALL
  SELECT * FROM (SELECT 'parked' AS kind, p.job_id FROM dbjobs.plans p WHERE @parked AND @troubles ORDER BY p.job_id LIMIT :limit) AS b
  UNION ALL
  SELECT * FROM (SELECT 'failing' AS kind, p.job_id FROM dbjobs.plans p WHERE @failing AND @troubles ORDER BY p.streak DESC, p.job_id LIMIT :limit) AS c
) AS k;

-- name: coming_jobs
SELECT p.job_id FROM dbjobs.plans p
WHERE p.owner @among_names AND p.next_run > :overdue AND p.next_run < :until AND @counts ORDER BY p.next_run, p.job_id LIMIT :limit;

-- The runs that have not ended, in groups by what they wait for. Each group has the number of its runs and one of their
-- jobs.

-- name: open_runs
-- overridden: mysql
SELECT g.state, g.held_by, g.begun, g.later, g.queue, g.cap, g.runs, g.created, g.ready, j.owner, j.name FROM (
  SELECT s.state, s.held_by, s.begun, s.later, s.queue, s.cap, COUNT(*) AS runs, MIN(s.created_at) AS created, MIN(s.ready_at) AS ready, MIN(s.job_id) AS job_id
  FROM (SELECT r.state, r.held_by, CASE WHEN r.started_at IS NULL THEN @false ELSE @true END AS begun,
      CASE WHEN r.ready_at > @now THEN @true ELSE @false END AS later, r.queue, r.created_at,
      COALESCE(r.queued_since, r.ready_at) AS ready_at, r.job_id,
      CASE WHEN r.held_by = 'group' THEN (SELECT x.group_name FROM dbjobs.jobs x WHERE x.id = r.job_id) END AS cap
    FROM dbjobs.runs r WHERE @open IS NOT NULL AND r.state IN ('waiting', 'queued', 'running')) AS s
  GROUP BY s.state, s.held_by, s.begun, s.later, s.queue, s.cap) AS g
LEFT JOIN dbjobs.jobs j ON j.id = g.job_id ORDER BY g.created, g.job_id LIMIT :limit;

-- name: runs_longest
-- overridden: mysql
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open IS NOT NULL AND r.state = 'running' ORDER BY r.started_at, r.id LIMIT :limit;

-- The runs of a job that have not ended, those that execute first. One statement, so that a run that moves on is not missed.

-- name: runs_unended
SELECT @run_columns, @run_job FROM dbjobs.runs r @by_open LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open = :job AND r.state IN ('waiting', 'queued', 'running')
ORDER BY CASE r.state WHEN 'running' THEN 0 WHEN 'queued' THEN 1 ELSE 2 END, r.id LIMIT :limit;

-- The runs under way of a job, or of all jobs of a group, those that began first first.

-- name: runs_holding
-- overridden: mysql
SELECT @run_columns, @run_job
FROM (SELECT x.id FROM dbjobs.jobs x WHERE x.id = :job UNION ALL SELECT x.id FROM dbjobs.jobs x WHERE x.group_name = :group) AS m
CROSS JOIN dbjobs.runs r @by_open JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open = m.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL)
ORDER BY COALESCE(r.started_at, r.created_at), r.id LIMIT :limit;

-- As long as a table was never vacuumed, PostgreSQL reads its rows.

-- name: count_jobs
SELECT COUNT(*) FROM dbjobs.jobs WHERE @live IS NOT NULL;

-- How many runs execute, and how many are stuck. A run is stuck if nobody has taken it, or decided for it, since an
-- instant. The wake_at of a run that has ended is the instant at which the run was made, so only its end counts.

-- name: figures
-- overridden: mysql
SELECT
  (SELECT COUNT(*) FROM dbjobs.runs r WHERE @open IS NOT NULL AND r.state = 'running'),
  (SELECT COUNT(*) FROM dbjobs.runs r WHERE r.wake_at < :before AND COALESCE(r.finished_at, r.wake_at) < :before)
  + (SELECT COUNT(*) FROM dbjobs.runs r WHERE r.queued_since < :before)
FROM (SELECT 1 AS one) AS source;

-- name: stuck
SELECT u.since, j.owner, j.name FROM (
  SELECT * FROM (SELECT COALESCE(r.finished_at, r.wake_at) AS since, r.job_id FROM dbjobs.runs r
    WHERE r.wake_at < :before AND COALESCE(r.finished_at, r.wake_at) < :before ORDER BY 1, 2 LIMIT :limit) AS a
  UNION ALL
  SELECT * FROM (SELECT r.queued_since AS since, r.job_id FROM dbjobs.runs r WHERE r.queued_since < :before ORDER BY 1, 2 LIMIT :limit) AS b
) AS u LEFT JOIN dbjobs.jobs j ON j.id = u.job_id ORDER BY u.since, u.job_id LIMIT :limit;

-- ------------------------------------------------------------------- what needs a decision: one page of job ids

-- name: need_plan
-- overridden: mysql
SELECT @now, job_id, next_run, job_id FROM dbjobs.plans
WHERE owner = COALESCE(:owner, @served) AND next_run <= :up_to AND (next_run, job_id) > (:at, :id) ORDER BY next_run, job_id LIMIT :limit;

-- name: need_run
-- overridden: mysql
SELECT @now, job_id, wake_at, id, @woken AS since FROM dbjobs.runs
WHERE wake_at <= @now AND (wake_at, id) > (:at, :id) ORDER BY wake_at, id LIMIT :limit;

-- name: need_job
SELECT @now, id, NULL, id FROM dbjobs.jobs WHERE @stale AND id > :id ORDER BY id LIMIT :limit;

-- name: need_link
SELECT @now, u.id, NULL, u.id FROM (
  SELECT * FROM (SELECT job_id AS id FROM dbjobs.job_schedules WHERE @stale_link AND job_id > :id ORDER BY job_id LIMIT :limit) AS l
  UNION
  SELECT * FROM (SELECT job_id AS id FROM dbjobs.job_after WHERE @stale_after AND job_id > :id ORDER BY job_id LIMIT :limit) AS a
) AS u ORDER BY u.id LIMIT :limit;

-- Jobs that run after several others, some of which have runs that ended.

-- name: need_ended
SELECT @now, job_id, NULL, job_id FROM dbjobs.job_ends WHERE seen = @false AND job_id > :id ORDER BY job_id LIMIT :limit;

-- It reads the same number of changed definitions at a time as stale_schedules and stale_pauses. Without a limit, the
-- planner assumes that an almost empty index is as long as the table.

-- name: need_schedule
WITH s AS (SELECT id, job_id, plan_input FROM dbjobs.schedules WHERE @stale ORDER BY id LIMIT :window)
SELECT @now, u.id, NULL, u.id FROM (
  SELECT l.job_id AS id FROM s CROSS JOIN dbjobs.job_schedules l
  WHERE l.schedule_id = s.id
    AND COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> s.plan_input
    AND l.job_id > :id
  UNION
  SELECT s.job_id FROM s
  WHERE COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = s.job_id AND r.schedule_id = s.id), '') <> s.plan_input
    AND s.job_id > :id
) AS u ORDER BY u.id LIMIT :limit;

-- Rows that leave no mark when plain SQL deletes them: a plan, a predecessor, the schedule of a link, the calendar of
-- a schedule, the job of a run, the run for whose end a job with repeat_after waits. They are looked for once an hour.
-- Parked jobs are included: the cause may have been repaired elsewhere. So are jobs with a run that waits for its group: the job that had the place may be gone.
-- So are jobs whose rules were read with an older release of the zone database: their times may be other ones now.
-- MySQL would look for the run of repeat_after among all runs, so the condition says twice that only open ones count.

-- name: need_check
SELECT @now, u.id, NULL, u.id FROM (
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
  SELECT n.job_id FROM dbjobs.runs n @by_open LEFT JOIN dbjobs.jobs j ON j.id = n.job_id WHERE @open > 0 AND j.id IS NULL
  UNION
  SELECT n.job_id FROM dbjobs.runs n @by_open WHERE @open > 0 AND n.state = 'waiting' AND n.held_by = 'group'
  UNION
  SELECT p.job_id FROM dbjobs.jobs j JOIN dbjobs.plans p ON p.job_id = j.id
  WHERE j.repeat_after_ms IS NOT NULL AND j.enabled = @true AND j.removed_at IS NULL AND (j.max_runs IS NULL OR j.max_runs > p.runs_made)
    AND p.next_run IS NULL AND p.repeat_from = p.last_scheduled_for
    AND NOT EXISTS (SELECT 1 FROM dbjobs.runs n @by_open WHERE @open = j.id AND @open > 0 AND n.scheduled_for = p.repeat_from AND n.occurrence LIKE 'at:%')
  UNION
  SELECT p.job_id FROM dbjobs.plans p WHERE @parked
  UNION
  SELECT r.job_id FROM dbjobs.plan_rules r WHERE r.ends <> '' AND r.ends < :zones
) AS u WHERE u.id > :id ORDER BY u.id LIMIT :limit;

-- Plans that are older than the runs, since somebody has brought back a copy of the table. They are looked for once an hour. A
-- decision finds that for its own jobs: see batch_plans.

-- name: need_older
SELECT @now, p.job_id, NULL, p.job_id FROM dbjobs.plans p
WHERE p.job_id > :id AND p.runs_made < @newest_number ORDER BY p.job_id LIMIT :limit;

-- name: need_startup
SELECT @now, j.id, NULL, j.id FROM dbjobs.jobs j LEFT JOIN dbjobs.plans p ON p.job_id = j.id AND @knows
WHERE j.on_startup = @true AND p.job_id IS NULL AND j.removed_at IS NULL AND @plan_owner = COALESCE(:owner, @served) AND j.id > :id
AND NOT EXISTS (SELECT 1 FROM dbjobs.runs r WHERE r.job_id = j.id AND r.occurrence = :start) ORDER BY j.id LIMIT :limit;

-- The jobs are read, page by page, only for a pause of a tag, an owner or all jobs. Otherwise :wide is behind the last
-- job.

-- name: need_pause
WITH p AS (SELECT scope, subject_id, subject FROM dbjobs.pauses WHERE @stale ORDER BY id LIMIT :window)
SELECT @now, u.id, NULL, u.id FROM (
  SELECT p.subject_id AS id FROM p WHERE p.scope = 'job' AND p.subject_id > :id
  UNION
  SELECT l.job_id FROM p CROSS JOIN dbjobs.job_schedules l WHERE p.scope = 'schedule' AND l.schedule_id = p.subject_id AND l.job_id > :id
  UNION
  SELECT a.id FROM (
    SELECT j.id FROM dbjobs.jobs j
    WHERE j.id > :wide AND EXISTS (SELECT 1 FROM p WHERE p.scope = 'all' OR p.scope = 'owner' AND p.subject = j.owner OR p.scope = 'tag' AND @has_tag)
    AND j.removed_at IS NULL ORDER BY j.id LIMIT :limit) AS a
) AS u ORDER BY u.id LIMIT :limit;

-- --------------------------------------------------------------------------------------- what a decision reads

-- With :whatever = 0, only plans that are still due: another session may have decided for them since the page was
-- read. The last column is the number of the newest run: a plan that has counted fewer runs is older than the runs.

-- name: batch_plans
SELECT job_id, owner, version, next_run, decided_through, parked, last_scheduled_for, last_run_id, last_state, last_finished_at,
  last_success_at, last_error, streak, cycles, runs_made, startup_ids, repeat_from, skips, @newest_number
FROM dbjobs.plans p WHERE job_id @among AND (:whatever = 1 OR next_run <= :up_to) ORDER BY job_id @skip;

-- name: write_skips
UPDATE dbjobs.plans SET skips = :skips, version = CASE WHEN version < @most THEN version + 1 ELSE 1 END WHERE job_id = :job;

-- name: lock_plans
SELECT job_id FROM dbjobs.plans WHERE job_id @among ORDER BY job_id @lock;

-- The names of the jobs, and the values that show whether two jobs are alike. The input from which a job was planned is
-- there only if it differs. The last column says whether the job runs after others.

-- name: batch_inputs
SELECT id, owner, name, created_at, changed_at, plan_input, CASE WHEN @stale THEN COALESCE(planned, '') END,
  CASE WHEN (SELECT a.job_id FROM dbjobs.job_after a WHERE a.job_id = dbjobs.jobs.id LIMIT 1) IS NULL THEN @false ELSE @true END
FROM dbjobs.jobs WHERE id @among ORDER BY id;

-- name: batch_jobs
SELECT @job_columns, j.plan_input FROM dbjobs.jobs j WHERE j.id @among ORDER BY j.id;

-- name: known_jobs
SELECT @job_beside, j.plan_input FROM dbjobs.jobs j WHERE j.id @among;

-- The history of jobs whose plans are new, or older than the runs. A deleted plan is made again from it. Runs on request, such as those of a
-- backfill, do not say which nominal times are decided.

-- name: recall
SELECT p.job_id, (SELECT MAX(r.number) FROM dbjobs.runs r WHERE r.job_id = p.job_id),
  (SELECT MAX(r.scheduled_for) FROM dbjobs.runs r WHERE r.job_id = p.job_id AND r.occurrence LIKE 'at:%'),
  (SELECT MAX(g.through_at) FROM dbjobs.gaps g WHERE g.job_id = p.job_id)
FROM dbjobs.plans p WHERE p.job_id @among;

-- A rule is as it was planned if its link exists and is marked, and its schedule is the same. A job's own schedule
-- needs no link.

-- name: batch_rules
-- overridden: postgres
SELECT r.job_id, r.schedule_id, r.input, r.rule, r.ends, r.changed_at,
  CASE WHEN r.rule <> '' AND (l.planned = r.schedule_id OR l.job_id IS NULL AND s.job_id = r.job_id) AND s.plan_input = r.input THEN @true ELSE @false END
FROM dbjobs.plan_rules r
LEFT JOIN dbjobs.job_schedules l ON l.job_id = r.job_id AND l.schedule_id = r.schedule_id
LEFT JOIN dbjobs.schedules s ON s.id = r.schedule_id
WHERE r.job_id @among ORDER BY r.job_id, r.schedule_id;

-- A link that was moved to another schedule has no instant at which it was made. A link whose schedule is gone has no
-- input. After the links come the jobs' own schedules, which have no link.

-- name: batch_links
-- overridden: postgres
SELECT l.job_id, l.schedule_id, CASE WHEN l.planned <> l.schedule_id THEN NULL ELSE l.created_at END, CASE WHEN l.planned = l.schedule_id THEN @true ELSE @false END,
  @true, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id
WHERE l.job_id @among
UNION ALL
SELECT s.job_id, s.id, s.created_at, @true, @false, s.name, s.rule, s.zone, s.nonexistent, s.ambiguous, s.calendar, s.on_holiday, s.plan_input, s.created_at, s.changed_at
FROM dbjobs.schedules s
WHERE s.job_id @among AND (SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.job_id = s.job_id AND l.schedule_id = s.id) IS NULL;

-- name: batch_followers
-- overridden: postgres
SELECT a.after_job_id, j.id, j.queue, j.priority, a.on_end,
  (SELECT COUNT(*) FROM dbjobs.job_after o WHERE o.job_id = a.job_id),
  CASE WHEN j.max_runs <= (SELECT p.runs_made FROM dbjobs.plans p WHERE p.job_id = j.id) THEN @true ELSE @false END
FROM dbjobs.job_after a CROSS JOIN dbjobs.jobs j
WHERE a.after_job_id @among AND j.id = a.job_id AND j.removed_at IS NULL AND j.enabled = @true ORDER BY a.after_job_id, j.id;

-- The jobs that events name as hooks.

-- name: hooks
SELECT id, owner, name, queue, priority, enabled FROM dbjobs.jobs WHERE @live @among_names;

-- The jobs after which the given jobs run: whether their rows are gone, and whether no pass has seen the link yet.
-- Before these rows come the jobs that run after themselves by way of others. No command makes such jobs. No command
-- makes a job that runs after a job without a row, either.

-- name: circles
WITH RECURSIVE up (id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id @among
  UNION
  SELECT up.id, a.after_job_id FROM up JOIN dbjobs.job_after a ON a.job_id = up.after_id WHERE up.after_id <> up.id
)
SELECT id, after_id, @true, @false, @false FROM up WHERE after_id = id
UNION ALL
SELECT a.job_id, a.after_job_id, @false,
  CASE WHEN (SELECT o.id FROM dbjobs.jobs o WHERE o.id = a.after_job_id) IS NULL THEN @true ELSE @false END,
  CASE WHEN @stale_after THEN @true ELSE @false END
FROM dbjobs.job_after a WHERE a.job_id @among;

-- Each run says whether other jobs run after its job. If none does, no further statement is needed.

-- name: batch_runs
-- overridden: mysql, postgres
SELECT @run_columns, @followed FROM dbjobs.runs r WHERE @open @among ORDER BY job_id, id;

-- The runs of a crowded job that rest in a range of ways.

-- name: crowd_runs
SELECT @run_columns, @followed FROM dbjobs.runs r @by_open WHERE @open = :job AND @rests BETWEEN :from AND :to
ORDER BY r.created_at, r.id LIMIT :limit;

-- The runs of a crowded job that rest in the queue.

-- name: crowd_queue
SELECT COUNT(*), MAX(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END) FROM dbjobs.runs r @by_open WHERE @open = :job AND @rests = :queue;

-- name: lock_runs
SELECT id FROM dbjobs.runs WHERE id @among_runs ORDER BY id @skip;

-- name: spare_leases
UPDATE dbjobs.runs SET lease_until = :until WHERE id @these_runs AND state = 'running';

-- name: batch_pauses
SELECT @pause_columns FROM dbjobs.pauses p @by_paused WHERE p.scope = 'job' AND p.subject_id @among AND p.ends_at > :since
UNION ALL
SELECT @pause_columns FROM dbjobs.pauses p @by_end WHERE p.scope IN ('all', 'owner', 'schedule', 'tag') AND p.ends_at > :since ORDER BY 1;

-- The jobs that have a run for the start of a host on record, which their plans may have forgotten.

-- name: batch_started
SELECT job_id FROM dbjobs.runs WHERE job_id @among AND occurrence = :occurrence;

-- name: lock_groups
SELECT name FROM dbjobs.group_plans WHERE name @among_names ORDER BY name @lock;

-- The groups whose names plan_input quotes so.

-- name: groups_quoted
SELECT q.name, q.quoted FROM (SELECT g.name, @quoted_name AS quoted FROM dbjobs.groups g) AS q WHERE q.quoted @among_names;

-- It goes from the jobs of a group to their runs, job by job. The planner plans a join by statistics, which a newly
-- filled table does not have, so it would count all runs for each group. The same is true for group_held, where CROSS
-- JOIN keeps the order on SQLite. The runs of the page's own jobs, which are here, are read by batch_runs.

-- name: group_caps
-- overridden: mysql
SELECT g.name, g.max_running,
  (SELECT COALESCE(SUM((SELECT COUNT(*) FROM dbjobs.runs r
     WHERE @open = j.id AND (r.state IN ('queued', 'running') OR r.state = 'waiting' AND r.started_at IS NOT NULL))), 0)
   FROM dbjobs.jobs j WHERE j.group_name = g.name AND @elsewhere)
FROM dbjobs.groups g WHERE g.name @among_names;

-- name: group_held
-- overridden: mysql
SELECT name, run, job_id, priority, ready_at FROM (
  SELECT j.group_name AS name, r.id AS run, r.job_id, r.priority, r.ready_at,
    ROW_NUMBER() OVER (PARTITION BY j.group_name ORDER BY r.priority DESC, r.ready_at, r.id) AS place
  FROM dbjobs.jobs j CROSS JOIN dbjobs.runs r @by_open
  WHERE @open = j.id AND r.state = 'waiting' AND r.held_by = 'group' AND j.group_name @among_names AND @elsewhere) AS h
WHERE place <= :limit ORDER BY name, place;

-- name: wake_held
UPDATE dbjobs.runs SET held_by = NULL WHERE id @these_runs AND state = 'waiting' AND held_by = 'group';

-- name: own_plans
UPDATE dbjobs.plans SET owner = COALESCE((SELECT @plan_owner FROM dbjobs.jobs j WHERE j.id = dbjobs.plans.job_id), owner) WHERE job_id @these;

-- name: forget_plan_rules
DELETE FROM dbjobs.plan_rules WHERE job_id @these;

-- ------------------------------------------------------- planned: written with the value that the decision read

-- name: lock_stale_jobs
SELECT id, plan_input FROM dbjobs.jobs WHERE id @among @skip;

-- The instants that decisions have found from start schedules. mark_jobs follows: the job is as planned with them.

-- name: write_starts
-- overridden: mysql, postgres
UPDATE dbjobs.jobs AS j SET not_before = d.not_before FROM @rows(id bigint, not_before instant) WHERE j.id = d.id;

-- name: mark_jobs
UPDATE dbjobs.jobs SET planned = plan_input WHERE id @these;

-- name: lock_stale_links
SELECT job_id FROM dbjobs.job_schedules WHERE job_id @among ORDER BY job_id, schedule_id @skip;

-- name: mark_links
UPDATE dbjobs.job_schedules SET planned = schedule_id WHERE job_id @these
AND EXISTS (SELECT 1 FROM dbjobs.plan_rules r WHERE r.job_id = dbjobs.job_schedules.job_id AND r.schedule_id = dbjobs.job_schedules.schedule_id);

-- All ends of the intervals that have a new end, with their runs, and the number of jobs that must have an end. They say
-- whether the end counts, or else is over, and whether the interval has its run already. A run that is open again may still end
-- as asked. A login that does not see the other job sees no run of it either, which says nothing. A run of a third job is none: a
-- user who may write an end may give it the id of a run that this user does not see.

-- name: batch_ends
SELECT e.id, e.job_id, e.meets, e.after_job_id, e.run_id, CASE WHEN @follows THEN @true ELSE @false END,
  CASE WHEN a.job_id IS NULL OR r.id IS NULL AND j.id IS NOT NULL OR r.state NOT IN ('waiting', 'queued', 'running') AND NOT @follows THEN @true ELSE @false END,
  CASE WHEN (SELECT m.id FROM dbjobs.runs m WHERE m.job_id = e.job_id AND m.occurrence = @meeting) IS NULL THEN @false ELSE @true END,
  (SELECT COUNT(*) FROM dbjobs.job_after o WHERE o.job_id = e.job_id), j.name, r.interval_start, r.interval_end, r.args
FROM (SELECT DISTINCT job_id, meets FROM dbjobs.job_ends WHERE seen = @false AND job_id @among) AS n
JOIN dbjobs.job_ends e ON e.job_id = n.job_id AND e.meets = n.meets
LEFT JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
LEFT JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
LEFT JOIN dbjobs.jobs j ON j.id = e.after_job_id
ORDER BY e.job_id, e.meets, e.after_job_id;

-- The ends that wait for the ends of other jobs, for people to look at.

-- name: waiting_ends
SELECT e.job_id, e.meets, e.after_job_id, e.run_id, e.ended_at, e.seen, r.interval_start, r.interval_end
FROM dbjobs.job_ends e JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
WHERE @follows ORDER BY e.job_id, e.meets, e.after_job_id;

-- A job has one row for each interval and job that it runs after: the decision that writes it holds the plan of that
-- job. A row whose run is not kept, or has not ended as asked, counts no more, and is written again. So is that of a run that was
-- opened again, at its next end.

-- name: insert_ends
-- overridden: mysql
INSERT INTO dbjobs.job_ends (job_id, meets, after_job_id, run_id, ended_at)
SELECT d.job_id, d.meets, d.after_job_id, d.run_id, @now
FROM @rows(job_id bigint, meets text, after_job_id bigint, run_id uuid)
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.job_ends e JOIN dbjobs.job_after a ON a.job_id = e.job_id AND a.after_job_id = e.after_job_id
  JOIN dbjobs.runs r ON r.id = e.run_id AND r.job_id = e.after_job_id
  WHERE e.job_id = d.job_id AND e.meets = d.meets AND e.after_job_id = d.after_job_id AND r.id <> d.run_id AND @follows)
ON CONFLICT (job_id, meets, after_job_id) DO UPDATE SET run_id = excluded.run_id, ended_at = excluded.ended_at, seen = @false;

-- name: see_ends
-- overridden: mysql
UPDATE dbjobs.job_ends AS e SET seen = @true FROM @rows(id bigint, run_id uuid) WHERE e.id = d.id AND e.run_id = d.run_id;

-- name: forget_ends
DELETE FROM dbjobs.job_ends WHERE job_id @these AND ended_at < :since;

-- name: lock_stale_after
SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id @among ORDER BY job_id, after_job_id @skip;

-- name: mark_after
UPDATE dbjobs.job_after SET planned = after_job_id WHERE job_id @these;

-- A job's own schedule, with the job.

-- name: lock_own_schedules
SELECT id, CASE WHEN @stale THEN @true ELSE @false END FROM dbjobs.schedules WHERE job_id @among @skip;

-- name: stale_schedules
SELECT id, plan_input, @false FROM dbjobs.schedules WHERE @stale ORDER BY id LIMIT :window;

-- name: lock_schedules
SELECT id, plan_input FROM dbjobs.schedules WHERE id @among @skip;

-- The values are looked up by their keys. The planner plans joins by statistics, which a newly filled table does not
-- have: it would read every link, or compare every link with every rule.

-- name: mark_schedules
UPDATE dbjobs.schedules SET planned = plan_input, parked = NULL WHERE id @these AND (
  SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.schedule_id = dbjobs.schedules.id
  AND COALESCE((SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = l.job_id AND r.schedule_id = l.schedule_id), '') <> dbjobs.schedules.plan_input
  LIMIT 1) IS NULL
AND (job_id IS NULL OR (SELECT r.input FROM dbjobs.plan_rules r WHERE r.job_id = dbjobs.schedules.job_id AND r.schedule_id = dbjobs.schedules.id) = plan_input);

-- name: park_schedule
UPDATE dbjobs.schedules SET parked = :parked WHERE id = :id AND planned = plan_input;

-- name: stale_pauses
SELECT id, plan_input, CASE WHEN scope IN ('tag', 'owner', 'all') THEN @true ELSE @false END
FROM dbjobs.pauses WHERE @stale ORDER BY id LIMIT :window;

-- name: lock_pauses
SELECT id, plan_input FROM dbjobs.pauses WHERE id @among @skip;

-- name: mark_pauses
UPDATE dbjobs.pauses SET planned = plan_input WHERE id @these;

-- A job or a schedule may be removed while its pause begins, and SQL may insert a pause of what is gone. No command could name it.

-- name: end_idle_pauses
UPDATE dbjobs.pauses SET resumed_at = @now, resumed_by = :resumed_by WHERE id @these AND resumed_at IS NULL AND ends_at > @now AND (
  scope = 'job' AND (SELECT j.id FROM dbjobs.jobs j WHERE j.id = dbjobs.pauses.subject_id AND j.removed_at IS NULL) IS NULL
  OR scope = 'schedule' AND (SELECT s.id FROM dbjobs.schedules s WHERE s.id = dbjobs.pauses.subject_id) IS NULL);

-- -------------------------------------------------------------------------------------------------------- work

-- The owner is a value that is looked up by its key: for an EXISTS, PostgreSQL sometimes makes a hash of all jobs. A
-- freeze also stops a pass that is under way. A run that was made after :until is left in the queue, unless it
-- follows a run that the same holder has had. Without this rule, passes that begin while another pass is under way
-- would keep that pass busy with the runs that they make. A run that was made later than now comes from a clock that
-- was wrong.

-- name: queued_ids
SELECT id FROM dbjobs.runs WHERE @queued = :queue
AND (:login = '' OR @runnable)
AND (:within_ms = @zero OR
  COALESCE((SELECT j.timeout_ms FROM dbjobs.jobs j WHERE j.id = dbjobs.runs.job_id), CASE WHEN :timed THEN :within_ms + 1 ELSE 0 END) <= :within_ms)
AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
AND CASE WHEN id @these_runs THEN @true WHEN created_at > :until AND created_at <= @now
  AND COALESCE((SELECT b.holder FROM dbjobs.runs b WHERE b.id = @predecessor), '') <> :holder THEN @false ELSE @true END = @true
ORDER BY @urgency, ready_at, id LIMIT :limit;

-- name: next_queue
SELECT @queue_key FROM dbjobs.runs WHERE @queued > :after ORDER BY @queue_key LIMIT 1;

-- Runs that nobody can take stay at the front of their queue while the others leave it. So it is enough to look at the
-- front, however many runs wait.

-- name: too_long
SELECT j.owner, j.name, j.timeout_ms, q.since
FROM (SELECT f.job_id, MIN(f.since) AS since FROM
    (SELECT job_id, queued_since AS since FROM dbjobs.runs WHERE @queued = :queue ORDER BY @urgency, ready_at, id LIMIT :front) AS f
  WHERE (SELECT t.timeout_ms FROM dbjobs.jobs t WHERE t.id = f.job_id) > :within_ms GROUP BY f.job_id LIMIT 20) AS q
JOIN dbjobs.jobs j ON j.id = q.job_id ORDER BY j.name, j.owner;

-- With the number of the newest attempt on record: a run that somebody put back by hand may have lost it. With the name of the step
-- that the run is in, if it has begun: an edit may have moved that step since. A freeze may have come
-- since the look at the queue.

-- name: lock_queued
-- overridden: mysql
SELECT @run_columns, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs.attempts a WHERE a.run_id = r.id), @last_step, @now
FROM dbjobs.runs r WHERE r.id @among_runs AND @is_queued
AND NOT EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds)
ORDER BY r.priority DESC, r.ready_at, r.id LIMIT :limit @skip;

-- name: take
UPDATE dbjobs.runs SET state = 'running', fence = fence + 1, holder = :holder, lease_until = @lease,
  started_at = COALESCE(started_at, @now), attempt = attempt + 1, error = NULL,
  attempts = @greatest(attempts, (SELECT COALESCE(MAX(a.number), 0) FROM dbjobs.attempts a WHERE a.run_id = dbjobs.runs.id)) + 1
WHERE id @these_runs AND @is_queued;

-- name: run_job
SELECT r.job_id, j.owner, j.name, r.occurrence FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id WHERE r.id = :id;

-- name: batch_steps
SELECT job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure
FROM dbjobs.steps WHERE job_id @among ORDER BY job_id, position;

-- All steps of the jobs, in their order: a run names its step by its place in that order, and positions may have holes.

-- name: step_attempts
SELECT job_id, retry_attempts FROM dbjobs.steps WHERE job_id @among ORDER BY job_id, position;

-- name: read_now
SELECT @now FROM (SELECT 1 AS one) AS source;

-- The clock, and the end of the last freeze that is over.

-- name: read_thaw
SELECT @now, (SELECT MAX(p.ends_at) FROM dbjobs.pauses p WHERE p.scope = 'all' AND p.ends_at <= @now) FROM (SELECT 1 AS one) AS source;

-- name: heartbeat
UPDATE dbjobs.runs SET lease_until = @lease WHERE id @these_runs AND holder = :holder AND state = 'running';

-- name: held
SELECT id, fence, cancel_at FROM dbjobs.runs WHERE id @among_runs AND holder = :holder AND state = 'running';

-- name: end_attempt
UPDATE dbjobs.attempts SET state = :state, finished_at = @now, started_at = CASE WHEN :waited_ms > @zero THEN @begun ELSE started_at END, rows_affected = :rows, error = :error, error_code = :code,
  error_line = :line, error_severity = :severity, error_detail = :detail, error_hint = :hint, output = :output, result = :result
WHERE run_id = :id AND number = :number AND fence = :fence AND state = 'running';

-- The success of an atomic step, in its own transaction: its fence is valid until COMMIT because of the lock of the
-- run.

-- name: record_attempt
-- overridden: postgres
UPDATE dbjobs.attempts SET state = 'succeeded', finished_at = @now, started_at = CASE WHEN :waited_ms > @zero THEN @begun ELSE started_at END,
  rows_affected = :rows, output = :output, result = :result
WHERE run_id = :id AND number = :number AND fence = :fence AND state = 'running'
AND (SELECT @true FROM dbjobs.runs WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number @lock);

-- name: is_recorded
SELECT COUNT(*) FROM dbjobs.attempts WHERE run_id = :id AND number = :number AND fence = :fence AND state = 'succeeded';

-- When the current attempt began, and those deliveries of the same try of its step that were lost or had no effect, the newest first:
-- those after the last attempt that ended otherwise, and since the run was opened again.

-- name: vain_deliveries
SELECT a.started_at FROM dbjobs.attempts a WHERE a.run_id = :id AND a.number <= :number AND a.number > COALESCE((SELECT MAX(e.number) FROM dbjobs.attempts e
  WHERE e.run_id = :id AND e.number < :number AND (e.state NOT IN ('cut', 'lost') OR e.started_at < (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = :id))), 0)
ORDER BY a.number DESC;

-- name: recorded_runs
SELECT r.id, r.job_id, a.finished_at FROM dbjobs.runs r JOIN dbjobs.attempts a ON a.run_id = r.id AND a.number = r.attempts
WHERE r.id @among_runs AND r.state = 'running' AND a.fence = r.fence AND a.state = 'succeeded';

-- name: next_step
UPDATE dbjobs.runs SET step = :step, attempt = 1, attempts = attempts + 1, losses = 0, lease_until = @lease
WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number;

-- A queued run waits again, so nobody takes it any more: the next decision cancels it.

-- name: request_cancel
UPDATE dbjobs.runs SET cancel_at = @now, cancel_by = :by, state = CASE WHEN state = 'queued' THEN 'waiting' ELSE state END
WHERE id @these_runs AND state IN ('waiting', 'queued', 'running') AND cancel_at IS NULL;

-- Locked, so that none of them ends before it is cancelled.

-- name: cancellable
SELECT id FROM dbjobs.runs @by_open WHERE @open = :job AND state IN ('waiting', 'queued', 'running') ORDER BY id @lock;

-- name: lose_attempts
UPDATE dbjobs.attempts SET state = 'lost', finished_at = @now WHERE run_id @these_runs AND state = 'running';

-- name: begin_attempt
INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
VALUES (:id, :number, :step, :step_name, :attempt, :fence, :holder, @now);

-- A run that is to be cancelled is not lost.

-- name: finish
UPDATE dbjobs.runs SET state = :final, finished_at = @now, lease_until = NULL, error = :run_error
WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number AND (:final <> 'lost' OR cancel_at IS NULL);

-- name: back_off
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = @later, lease_until = NULL, error = :run_error
WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number;

-- lost is 0 for a delivery that had no effect.

-- name: redeliver
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = @later, lease_until = NULL, losses = losses + :lost,
  attempt = attempt - 1, error = :run_error
WHERE id = :id AND fence = :fence AND holder = :holder AND state = 'running' AND attempts = :number;

-- ------------------------------------------------------------------------------------------------- definitions

-- Schedules that jobs share. schedule_users counts the jobs that use one: there may be many.

-- name: schedules
SELECT @schedule_columns FROM dbjobs.schedules s WHERE s.name IS NOT NULL ORDER BY s.name;

-- name: schedules_named
-- overridden: sqlite
SELECT @schedule_columns FROM dbjobs.schedules s WHERE s.name @among_names;

-- name: schedules_owned
SELECT @schedule_columns FROM dbjobs.schedules s WHERE s.manifest = :manifest AND s.name IS NOT NULL;

-- The owners of what a manifest has besides jobs; nothing where rows belong to nobody.
-- name: manifest_owners
SELECT 'schedule', name, owner FROM dbjobs.schedules WHERE manifest = :manifest AND name IS NOT NULL AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) = @true
UNION ALL
SELECT 'calendar', name, owner FROM dbjobs.calendars WHERE manifest = :manifest AND (SELECT i.owners FROM dbjobs.installation i WHERE i.id = 1) = @true;

-- name: schedules_among
SELECT @schedule_columns FROM dbjobs.schedules s WHERE s.id @among AND s.name IS NOT NULL;

-- name: own_rules
SELECT @schedule_columns FROM dbjobs.schedules s WHERE s.job_id @among;

-- name: schedule_users
SELECT schedule_id, COUNT(*) FROM dbjobs.job_schedules WHERE schedule_id @among GROUP BY schedule_id;

-- name: users
SELECT u.schedule_id, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = u.job_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = u.job_id),
  (SELECT r.rule FROM dbjobs.plan_rules r WHERE r.job_id = u.job_id AND r.schedule_id = u.schedule_id
    AND r.input = (SELECT s.plan_input FROM dbjobs.schedules s WHERE s.id = u.schedule_id)) FROM (
  SELECT l.schedule_id, l.job_id, ROW_NUMBER() OVER (PARTITION BY l.schedule_id ORDER BY l.job_id) AS place
  FROM dbjobs.job_schedules l WHERE l.schedule_id @among) AS u
WHERE u.place <= :limit ORDER BY u.schedule_id, u.place;

-- name: first_users
SELECT j.owner, j.name FROM dbjobs.job_schedules l JOIN dbjobs.jobs j ON j.id = l.job_id
WHERE l.schedule_id = :id ORDER BY l.job_id LIMIT :limit;

-- Calendars. An edit is noticed in the same way as an edit of a schedule. The schedules that name the calendar get its
-- new version, and their planned becomes NULL, so a pass looks at them again.

-- name: calendars
SELECT name, working_days, days, description, manifest, CASE WHEN @stale THEN 1 ELSE 0 END FROM dbjobs.calendars ORDER BY name;

-- name: calendars_named
SELECT name, working_days, days, description, manifest, CASE WHEN @stale THEN 1 ELSE 0 END FROM dbjobs.calendars WHERE name @among_names;

-- name: calendar_users
SELECT calendar, COUNT(*) FROM dbjobs.schedules WHERE calendar <> '' GROUP BY calendar;

-- name: first_keepers
SELECT s.id, s.name, s.job_id, j.owner, j.name FROM dbjobs.schedules s LEFT JOIN dbjobs.jobs j ON j.id = s.job_id
WHERE s.calendar = :name AND s.calendar <> '' ORDER BY s.id LIMIT :limit;

-- name: insert_calendar
INSERT INTO dbjobs.calendars (name, working_days, days, description, owner, manifest)
VALUES (:name, :working_days, :days, :description, @login, :manifest);

-- name: update_calendar
UPDATE dbjobs.calendars SET working_days = :working_days, days = :days, description = :description, manifest = :manifest WHERE name = :name;

-- name: delete_calendar
DELETE FROM dbjobs.calendars WHERE name = :name;

-- name: stale_calendars
SELECT name FROM dbjobs.calendars WHERE @stale ORDER BY name LIMIT :window;

-- name: lock_calendar
SELECT name, working_days, days, description, manifest, CASE WHEN @stale THEN 1 ELSE 0 END FROM dbjobs.calendars WHERE name = :name AND @stale @skip;

-- name: mark_calendar
UPDATE dbjobs.calendars SET planned = plan_input WHERE name = :name;

-- name: see_calendar
UPDATE dbjobs.schedules SET calendar_version = :version, planned = NULL WHERE calendar = :name AND calendar <> '';

-- name: lock_calendars
SELECT name FROM dbjobs.calendars WHERE name @among_names @skip;

-- name: unmark_calendars
UPDATE dbjobs.calendars SET planned = NULL WHERE name @among_names;

-- name: date_calendar
UPDATE dbjobs.schedules SET changed_at = @now WHERE calendar = :name AND calendar <> '';

-- name: insert_schedule
INSERT INTO dbjobs.schedules (name, job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, owner, manifest, created_at, changed_at)
VALUES (:name, :job, :rule, :zone, :nonexistent, :ambiguous, :calendar, :on_holiday, :calendar_version, :description, @login, :manifest, @now, @now);

-- name: update_schedule
UPDATE dbjobs.schedules SET changed_at = CASE WHEN rule = :rule AND zone = :zone AND nonexistent = :nonexistent AND ambiguous = :ambiguous
    AND calendar = :calendar AND on_holiday = :on_holiday THEN changed_at ELSE @now END,
  rule = :rule, zone = :zone, nonexistent = :nonexistent, ambiguous = :ambiguous,
  calendar = :calendar, on_holiday = :on_holiday, calendar_version = :calendar_version, description = :description, manifest = :manifest
WHERE id = :id;

-- name: delete_schedule
DELETE FROM dbjobs.schedules WHERE id = :id;

-- name: schedule_id
SELECT id FROM dbjobs.schedules WHERE name = :name;

-- name: insert_own_rules
INSERT INTO dbjobs.schedules (job_id, rule, zone, nonexistent, ambiguous, calendar, on_holiday, calendar_version, description, created_at, changed_at)
SELECT d.job_id, d.rule, d.zone, d.nonexistent, d.ambiguous, d.calendar, d.on_holiday, d.calendar_version, d.description, @now, @now
FROM @rows(job_id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text, on_holiday text, calendar_version text, description text);

-- name: link_own_rules
INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
SELECT s.job_id, s.id, @now FROM dbjobs.schedules s WHERE s.job_id @among;

-- name: jobs
SELECT @job_columns, @job_facts WHERE j.removed_at IS NULL ORDER BY j.name, j.owner;

-- name: jobs_among
SELECT @job_columns, @job_facts WHERE j.removed_at IS NULL AND j.id @among ORDER BY j.name, j.owner;

-- The content that is lost with the tables.

-- name: contents_jobs
SELECT COUNT(*) FROM dbjobs.jobs WHERE removed_at IS NULL;

-- name: contents_schedules
SELECT COUNT(*) FROM dbjobs.schedules WHERE job_id IS NULL;

-- name: contents_runs
SELECT COUNT(*), COUNT(CASE WHEN state = 'running' THEN 1 END) FROM dbjobs.runs;

-- How long the recent runs of all jobs took: of each job, the runs that succeeded among its last ones.

-- name: durations
-- overridden: mysql, postgres
SELECT r.job_id, r.started_at, r.finished_at FROM dbjobs.plans p CROSS JOIN dbjobs.runs r
WHERE r.job_id = p.job_id AND r.number > p.runs_made - :most AND r.state = 'succeeded' AND r.started_at IS NOT NULL AND r.finished_at IS NOT NULL;

-- name: jobs_named
SELECT id, owner, name, manifest FROM dbjobs.jobs WHERE @live @among_names;

-- name: jobs_owned
SELECT id, owner, name, manifest FROM dbjobs.jobs WHERE manifest = :manifest AND removed_at IS NULL;

-- The jobs after which these jobs run, the jobs after which those run, and so on.

-- name: predecessors
WITH RECURSIVE up (job_id, after_id) AS (
  SELECT job_id, after_job_id FROM dbjobs.job_after WHERE job_id @among
  UNION
  SELECT a.job_id, a.after_job_id FROM up JOIN dbjobs.job_after a ON a.job_id = up.after_id
)
SELECT up.job_id, j.id, j.owner, j.name FROM up CROSS JOIN dbjobs.jobs j WHERE j.id = up.after_id AND j.removed_at IS NULL;

-- name: job_names
SELECT owner, name, queue, tags FROM dbjobs.jobs WHERE removed_at IS NULL ORDER BY name, owner;

-- name: removed_job
SELECT id FROM dbjobs.jobs WHERE owner = :owner AND name = :name AND removed_at IS NOT NULL ORDER BY id DESC LIMIT 1;

-- name: followers
SELECT a.after_job_id, j.id, j.owner, j.name FROM dbjobs.job_after a CROSS JOIN dbjobs.jobs j
WHERE a.after_job_id @among AND j.id = a.job_id AND j.removed_at IS NULL;

-- name: job_name
SELECT owner, name, (SELECT p.parked FROM dbjobs.plans p WHERE p.job_id = :id) FROM dbjobs.jobs WHERE id = :id;

-- The schedules of jobs, and the jobs after which they run.

-- name: job_links
SELECT l.job_id, s.id, s.name,
  (SELECT CASE WHEN @stale_link THEN 1 ELSE 0 END FROM dbjobs.job_schedules x WHERE x.job_id = l.job_id AND x.schedule_id = l.schedule_id),
  (SELECT CASE WHEN @stale THEN 1 ELSE 0 END FROM dbjobs.schedules y WHERE y.id = l.schedule_id), NULL, NULL, NULL
FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id
WHERE l.job_id @among
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs.job_after a LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id
WHERE a.job_id @among ORDER BY 1, 3;

-- The same, without the marks for stale rows, and without the jobs' own rules.

-- name: known_links
SELECT l.job_id, s.id, s.name, 0, 0, NULL, NULL, NULL
FROM dbjobs.job_schedules l LEFT JOIN dbjobs.schedules s ON s.id = l.schedule_id
WHERE l.job_id @among AND s.job_id IS NULL
UNION ALL
SELECT a.job_id, o.id, o.name, 0, 0, a.after_job_id, o.owner, a.on_end
FROM dbjobs.job_after a LEFT JOIN dbjobs.jobs o ON o.id = a.after_job_id
WHERE a.job_id @among ORDER BY 1, 3;

-- name: insert_jobs
INSERT INTO dbjobs.jobs (owner, name, created_at, changed_at, @job_fields)
SELECT d.owner, d.name, @now, @now, @job_values
FROM @rows(owner text, name text, @job_types);

-- name: update_jobs
-- overridden: mysql
UPDATE dbjobs.jobs AS j SET changed_at = @now, @job_changes
FROM @rows(id bigint, @job_types) WHERE j.id = d.id AND j.removed_at IS NULL;

-- name: enable_job
UPDATE dbjobs.jobs SET enabled = :enabled, changed_at = @now WHERE id = :id AND removed_at IS NULL;

-- name: remove_jobs
UPDATE dbjobs.jobs SET removed_at = @now WHERE id @these AND removed_at IS NULL;

-- The jobs that remove_when_done removes: locked, and unchanged since they were planned.

-- name: lock_unchanged_jobs
SELECT id FROM dbjobs.jobs WHERE id @among AND planned = plan_input @skip;

-- name: hooks_in_use
SELECT DISTINCT owner, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs.jobs
WHERE @has_hooks;

-- name: own_schedules
SELECT job_id FROM dbjobs.schedules WHERE job_id @among;

-- name: lock_done_schedules
SELECT job_id FROM dbjobs.schedules WHERE job_id @among @skip;

-- name: finish_jobs
UPDATE dbjobs.jobs SET removed_at = @now, done_at = @now WHERE id @these;

-- name: finish_links
DELETE FROM dbjobs.job_schedules WHERE job_id @these;

-- name: finish_schedules
DELETE FROM dbjobs.schedules WHERE job_id @these;

-- Each job, and each definition that one which is done has had, from the change log, if commands made it.

-- name: removed_jobs
SELECT j.id, j.owner, j.name, CASE WHEN j.done_at IS NULL THEN @false ELSE @true END, l.became
FROM dbjobs.jobs j
LEFT JOIN dbjobs.changes l @by_defined ON j.done_at IS NOT NULL AND @defined = j.id AND @of_definition
WHERE j.removed_at IS NOT NULL AND j.name @among_names ORDER BY j.id;

-- Which definitions got these names, and those that they had before. A job has its full name.

-- name: past_renames
SELECT kind, COALESCE(subject_id, 0), subject, was FROM dbjobs.changes WHERE action = 'rename' AND subject @among_names;

-- name: insert_steps
INSERT INTO dbjobs.steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms,
  retry_jitter, on_success, on_failure)
SELECT d.job_id, d.position, d.name, d.executor, d.spec, d.timeout_ms, d.retry_attempts, d.retry_backoff_ms, d.retry_max_backoff_ms,
  d.retry_jitter, d.on_success, d.on_failure
FROM @rows(job_id bigint, position int, name text, executor text, spec json, timeout_ms bigint, retry_attempts int,
  retry_backoff_ms bigint, retry_max_backoff_ms bigint, retry_jitter int, on_success text, on_failure text);

-- name: delete_steps
DELETE FROM dbjobs.steps WHERE job_id @these;

-- name: insert_links
INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at)
SELECT d.job_id, d.schedule_id, @now FROM @rows(job_id bigint, schedule_id bigint);

-- name: insert_after
INSERT INTO dbjobs.job_after (job_id, after_job_id, on_end)
SELECT d.job_id, d.after_job_id, d.on_end FROM @rows(job_id bigint, after_job_id bigint, on_end text);

-- name: delete_after
DELETE FROM dbjobs.job_after WHERE job_id @these;

-- name: delete_lost_links
DELETE FROM dbjobs.job_schedules
WHERE job_id @these AND (SELECT s.id FROM dbjobs.schedules s WHERE s.id = dbjobs.job_schedules.schedule_id) IS NULL;

-- name: lock_jobs
SELECT id FROM dbjobs.jobs WHERE id @these ORDER BY id @lock;

-- name: rename_job
UPDATE dbjobs.jobs SET name = :name WHERE id = :id;

-- The jobs that name other jobs as hooks, or with :name one job of that name.

-- name: hook_uses
SELECT id, owner, name, on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused FROM dbjobs.jobs
WHERE @has_hooks
AND (:name = '' OR :name IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) OR :full IN (on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused));

-- name: lock_altered
SELECT id FROM dbjobs.schedules WHERE id @these ORDER BY id @lock;

-- name: rename_schedule
UPDATE dbjobs.schedules SET name = :name WHERE id = :id;

-- name: schedule_jobs
SELECT job_id FROM dbjobs.job_schedules WHERE schedule_id = :id ORDER BY job_id;

-- The jobs with remove_when_done that use a schedule.

-- name: brief_users
SELECT l.job_id FROM dbjobs.job_schedules l CROSS JOIN dbjobs.jobs j
WHERE l.schedule_id = :id AND j.id = l.job_id AND j.remove_when_done = @true AND j.removed_at IS NULL ORDER BY l.job_id;

-- name: touch_jobs
UPDATE dbjobs.jobs SET planned = @touched WHERE id @these;

-- Steps are no part of what is planned. But a job that is parked for one of them would stay so until its next time.

-- name: touch_parked
UPDATE dbjobs.jobs SET planned = @touched WHERE id @these AND EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = dbjobs.jobs.id AND @parked);

-- name: groups
SELECT name, max_running FROM dbjobs.groups ORDER BY name;

-- name: insert_group
INSERT INTO dbjobs.groups (name, max_running, owner) VALUES (:name, :max_running, @login);

-- The jobs that name a group whose row was deleted: they are parked, or their runs wait for it.

-- name: touch_group
UPDATE dbjobs.jobs SET planned = @touched WHERE group_name = :name AND @live IS NOT NULL;

-- The runs of a group that ask for their places again after its cap has changed: those that wait for it, or those that are queued
-- and that nobody has taken. They are read first, as in group_held, and then changed by their keys: an UPDATE with this subquery
-- reads all runs on MariaDB, and one with a join locks runs that are running.

-- name: group_runs
-- overridden: mysql
SELECT r.id FROM dbjobs.jobs j CROSS JOIN dbjobs.runs r
WHERE @open = j.id AND j.group_name = :name AND r.state = :state AND r.started_at IS NULL AND (r.state = 'queued' OR r.held_by = 'group');

-- name: hold_runs
UPDATE dbjobs.runs SET state = 'waiting' WHERE id @these_runs AND state = 'queued' AND started_at IS NULL;

-- name: update_group
UPDATE dbjobs.groups SET max_running = :max_running WHERE name = :name;

-- name: pause
INSERT INTO dbjobs.pauses (scope, subject_id, subject, reason, paused_by, since, until_at, until_as)
VALUES (:scope, :subject_id, :subject, :reason, :paused_by, @now, :until_at, :until_as);

-- name: open_pause
SELECT @pause_columns FROM dbjobs.pauses p @by_end_or_paused
WHERE p.scope = :scope AND (p.subject_id = :subject_id OR :subject_id = 0) AND (:subject = '' OR p.subject = :subject) AND @holds ORDER BY p.id;

-- name: resume
UPDATE dbjobs.pauses SET resumed_at = @now, resumed_by = :resumed_by, missed = :missed
WHERE scope = :scope AND (subject_id = :subject_id OR :subject_id = 0) AND (:subject = '' OR subject = :subject)
AND resumed_at IS NULL AND (until_at IS NULL OR until_at > @now);

-- The pauses of jobs or schedules that are removed.

-- name: end_pauses
UPDATE dbjobs.pauses SET resumed_at = @now, resumed_by = :resumed_by
WHERE scope = :scope AND subject_id @these AND resumed_at IS NULL AND ends_at > @now;

-- name: pauses
SELECT @pause_columns, j.owner, j.name, s.name
FROM dbjobs.pauses p
LEFT JOIN dbjobs.jobs j ON p.scope = 'job' AND j.id = p.subject_id
LEFT JOIN dbjobs.schedules s ON p.scope = 'schedule' AND s.id = p.subject_id
ORDER BY p.id DESC LIMIT :limit;

-- The pauses in force, among all on record: a freeze first, since it holds everything. Their names are looked up by key.

-- name: pauses_held
SELECT @pause_columns, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p @by_end
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND @holds ORDER BY CASE p.scope WHEN 'all' THEN 0 ELSE 1 END, p.id DESC LIMIT :limit;

-- The pauses in force of some jobs and, with :wide = 1, all that are not of single jobs.

-- name: pauses_among
SELECT @pause_columns, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id), NULL
FROM dbjobs.pauses p @by_paused WHERE p.scope = 'job' AND p.subject_id @among AND @holds
UNION ALL
SELECT @pause_columns, NULL, NULL, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p @by_end WHERE :wide = 1 AND p.scope IN ('schedule', 'tag', 'owner', 'all') AND @holds ORDER BY 1 DESC;

-- The pauses that somebody has ended, and no pass has seen that yet.

-- name: pauses_left
SELECT @pause_columns, NULL, NULL, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p @by_stale WHERE @stale AND p.resumed_at IS NOT NULL ORDER BY p.id DESC LIMIT :limit;

-- There may be many pauses of single jobs and schedules. They find their jobs by key. Where there are other pauses, all jobs
-- are looked at, once. A pause of a schedule holds a job that has no other schedule: JobStatus.hold (store/state.go) says the same.

-- name: count_paused
SELECT COUNT(*) FROM (
  SELECT j.id FROM dbjobs.pauses p JOIN dbjobs.jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND @holds AND j.removed_at IS NULL
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs.pauses p WHERE p.scope IN ('all', 'owner') AND @holds LIMIT 1) x CROSS JOIN dbjobs.jobs j
  WHERE j.removed_at IS NULL AND (EXISTS (SELECT 1 FROM dbjobs.pauses p WHERE p.scope = 'all' AND @holds) OR j.owner IN @paused_owners)
  UNION
  SELECT j.id FROM (SELECT p.id FROM dbjobs.pauses p WHERE p.scope = 'tag' AND @holds LIMIT 1) x CROSS JOIN dbjobs.jobs j @each_tag
  WHERE j.removed_at IS NULL AND CASE WHEN t.value IN @paused_tags THEN 1 ELSE 0 END = 1
  UNION
  SELECT j.id FROM dbjobs.pauses p JOIN dbjobs.job_schedules k ON k.schedule_id = p.subject_id JOIN dbjobs.jobs j ON j.id = k.job_id
  WHERE p.scope = 'schedule' AND @holds AND j.removed_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM dbjobs.schedules o WHERE o.job_id = j.id)
    AND NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l JOIN dbjobs.schedules c ON c.id = l.schedule_id WHERE l.job_id = j.id AND c.name IS NOT NULL
      AND c.id NOT IN (SELECT q.subject_id FROM dbjobs.pauses q WHERE q.scope = 'schedule' AND q.subject_id IS NOT NULL AND q.resumed_at IS NULL AND q.ends_at > @now))
) u;

-- The jobs that dbjobs has paused because of their runs: how many of them are trouble, and one of those.

-- name: count_paused_itself
SELECT u.jobs, j.owner, j.name FROM (
  SELECT COUNT(DISTINCT p.job_id) AS jobs, MIN(p.job_id) AS id FROM dbjobs.pauses i @by_end JOIN dbjobs.plans p ON p.job_id = i.subject_id
  WHERE i.scope = 'job' AND i.paused_by = 'dbjobs itself' AND i.resumed_at IS NULL AND i.ends_at > @now AND @troubles) u
JOIN dbjobs.jobs j ON j.id = u.id;

-- name: log_changes
INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason, was, became)
SELECT @now, :by, d.kind, d.subject_id, d.subject, d.action, :reason, d.was, d.became
FROM @rows(kind text, subject_id bigint, subject text, action text, was json, became json);

-- name: changes
SELECT changed_at, changed_by, kind, COALESCE(subject_id, 0), subject, action, reason, was, became FROM dbjobs.changes
WHERE (:kind = '' OR kind = :kind) AND (:subject = '' OR subject = :subject OR subject_id = :id) ORDER BY id DESC LIMIT :limit;

-- ------------------------------------------------------------------------------------------------------ ledger

-- name: request_run
INSERT INTO dbjobs.runs (id, job_id, occurrence, state, queue, priority, scheduled_for, interval_start, interval_end, args, ready_at, created_at, step, step_name)
VALUES (:id, :job, :occurrence, 'waiting', :queue, :priority, :at, :from, :to, :args, :ready, @now, :step, :step_name);

-- name: keyed_run
SELECT id FROM dbjobs.runs WHERE job_id = :job AND occurrence = :occurrence;

-- name: last_step
SELECT @last_step FROM dbjobs.runs r WHERE r.id = :id;

-- The definition that a job had at an instant, if it has changed since.

-- name: edited_since
SELECT l.was FROM dbjobs.changes l @by_defined WHERE @defined = :job AND l.action = 'change'
AND l.changed_at > :at ORDER BY l.id LIMIT 1;

-- The fence stays: nobody can end a run that waits, and the next delivery has another fence.

-- name: reopen
UPDATE dbjobs.runs SET state = 'waiting', held_by = NULL, ready_at = @now, step = :step, step_name = :step_name, attempt = 0, losses = 0, lease_until = NULL,
  cancel_at = NULL, cancel_by = NULL, started_at = NULL, finished_at = NULL, settled_at = NULL, expires_at = NULL, error = NULL
WHERE id = :id AND state IN ('failed', 'cancelled', 'lost') AND settled_at IS NOT NULL;

-- A run of a nominal time that has not come was made by a clock that was ahead. The times in its interval have not run. Nor
-- have those of a run that was cancelled before any attempt, as by a newer time with overlap: replace. One of a backfill counts
-- nevertheless: another backfill can make no second run for its time.

-- name: intervals
SELECT interval_start, interval_end FROM dbjobs.runs
WHERE job_id = :job AND interval_end >= :from AND (interval_start IS NULL OR interval_start < :to)
  AND (interval_end <= @now OR occurrence NOT LIKE 'at:%')
  AND (state <> 'cancelled' OR attempts > 0 OR occurrence LIKE 'fill:%');

-- name: runs
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE (:state = '' OR r.state = :state) AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;

-- name: runs_of_job
-- overridden: sqlite
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND (:state = '' OR r.state = :state) AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;

-- name: runs_open_of_job
SELECT @run_columns, @run_job FROM dbjobs.runs r @by_open LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open = :job AND r.state = :state AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;

-- For states that are rare among all runs: otherwise all runs would be read.

-- name: runs_unwell
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @unwell = :state AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;

-- name: runs_under_way
SELECT @run_columns, @run_job FROM dbjobs.runs r @by_open LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @open IS NOT NULL AND r.state = :state AND @selected AND (:step = '' OR @tried) ORDER BY r.created_at DESC, r.id DESC LIMIT :limit;

-- name: run_by_prefix
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.id >= :low AND r.id <= :high ORDER BY r.id LIMIT 2;

-- name: run_by_number
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND r.number = :number ORDER BY r.id LIMIT 2;

-- The latest run of a job: the newest run that has no number yet, otherwise the one with the highest number. There
-- are two statements, because the index has the answer to each at its end.

-- name: run_undecided
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND r.number IS NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1;

-- name: run_latest
SELECT @run_columns, @run_job FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND r.number IS NOT NULL ORDER BY r.number DESC LIMIT 1;

-- The newest attempts of a run, the newest first.

-- name: attempts
SELECT @attempt_columns, a.output FROM dbjobs.attempts a WHERE a.run_id = :id ORDER BY a.number DESC LIMIT :limit;

-- The attempts that failed or were lost within a range of time, the newest first. They belong to the runs that were
-- made in that range, and to earlier runs that have not ended or did not succeed. An index of attempts by time would
-- make each attempt more expensive.

-- name: failures
-- overridden: mysql, postgres
SELECT @attempt_columns, j.owner, j.name, f.job_id, f.number, f.state
FROM (SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r
    WHERE r.created_at >= :since AND r.created_at < :until AND @may_have_failed
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r WHERE @unwell IS NOT NULL AND r.created_at < :since AND (r.finished_at >= :since OR r.finished_at IS NULL)
  UNION ALL
  SELECT r.id, r.job_id, r.number, r.state FROM dbjobs.runs r @by_open
    WHERE @open IS NOT NULL AND r.created_at < :since AND r.attempts > 0 AND r.state IN ('waiting', 'queued', 'running')) AS f
CROSS JOIN dbjobs.attempts a LEFT JOIN dbjobs.jobs j ON j.id = f.job_id
WHERE a.run_id = f.id AND a.state IN ('failed', 'lost') AND a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- name: failures_of_job
-- overridden: mysql, postgres
SELECT @attempt_columns, j.owner, j.name, r.job_id, r.number, r.state
FROM dbjobs.runs r CROSS JOIN dbjobs.attempts a LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id = :job AND @may_have_failed AND a.run_id = r.id AND a.state IN ('failed', 'lost') AND a.finished_at >= :since AND a.finished_at < :until
ORDER BY a.finished_at DESC, a.run_id DESC, a.number DESC LIMIT :limit;

-- The runs that failed or were lost, and whose last attempt is not on record, or no attempt that failed. A worker that
-- executes runs by SQL writes no attempts, and it may follow upon others that do.

-- name: failures_of_runs
SELECT r.id, r.attempt, r.fence, r.holder, r.state, r.started_at, r.finished_at, r.error, j.owner, j.name, r.job_id, r.number
FROM dbjobs.runs r LEFT JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE @unwell IN ('failed', 'lost') AND r.finished_at >= :since AND r.finished_at < :until AND (r.job_id = :job OR :job = 0)
AND (NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.state IN ('failed', 'lost'))
  OR NOT EXISTS (SELECT 1 FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number >= r.attempts))
ORDER BY r.finished_at DESC, r.id DESC LIMIT :limit;

-- The nominal times of a range that have runs.

-- name: nominal_runs
SELECT job_id, scheduled_for FROM dbjobs.runs WHERE job_id @among AND occurrence > :after AND occurrence <= :through
UNION ALL SELECT job_id, scheduled_for FROM dbjobs.runs WHERE job_id @among AND occurrence > :filled_after AND occurrence < :filled_through LIMIT :limit;

-- The facts that the steps of a run have reported so far: those of the last attempt of each step. Of the step under way, attempts
-- that did not succeed count only where another step has begun since: the others are earlier tries and deliveries of this visit.
-- A failed one counts, too, where its tries have begun anew since: it led back to itself. A retry of the run begins them anew as
-- well, but within the visit. Outputs are read of the last attempts only, because a step may have many.

-- name: step_facts
SELECT a.step_name, a.state, a.rows_affected, a.error, a.output, a.result
FROM (SELECT MAX(e.number) AS number FROM dbjobs.attempts e
  WHERE e.run_id = :id AND e.state <> 'running' AND (e.step_name <> :step OR e.state = 'succeeded'
    OR e.number < (SELECT MAX(o.number) FROM dbjobs.attempts o WHERE o.run_id = :id AND o.step_name <> :step)
    OR e.state = 'failed' AND e.number < (SELECT MAX(o.number) FROM dbjobs.attempts o WHERE o.run_id = :id AND o.attempt = 1)
      AND e.started_at >= (SELECT r.started_at FROM dbjobs.runs r WHERE r.id = :id))
  GROUP BY e.step_name) AS l
JOIN dbjobs.attempts a ON a.run_id = :id AND a.number = l.number;

-- name: gaps
SELECT job_id, schedule_id, from_at, through_at, reason, rule, recorded_at FROM dbjobs.gaps
WHERE job_id = :job ORDER BY through_at DESC, schedule_id LIMIT :limit;

-- The gaps of all jobs. It reads the whole table: an index would make each decision more expensive, and only a report
-- would use it.

-- name: recent_gaps
SELECT g.job_id, j.owner, j.name, g.schedule_id, g.from_at, g.through_at, g.reason, g.rule, g.recorded_at FROM dbjobs.gaps g LEFT JOIN dbjobs.jobs j ON j.id = g.job_id
WHERE g.through_at >= :since ORDER BY g.through_at DESC, g.job_id, g.schedule_id LIMIT :limit;

-- name: expired_runs
SELECT id FROM dbjobs.runs WHERE expires_at <= @now AND settled_at IS NOT NULL ORDER BY expires_at LIMIT :limit;

-- With the number of the first and of the last attempt that still exists, and whether the run is too old and has expired.

-- name: lock_settled
SELECT id, COALESCE((SELECT MIN(a.number) FROM dbjobs.attempts a WHERE a.run_id = dbjobs.runs.id), attempts + 1), attempts,
  CASE WHEN @kept_until <= @now THEN @true ELSE @false END, CASE WHEN expires_at <= @now THEN @true ELSE @false END
FROM dbjobs.runs WHERE id @among_runs AND settled_at IS NOT NULL ORDER BY id @skip;

-- name: expire_later
UPDATE dbjobs.runs SET expires_at = @kept_until WHERE id @these_runs AND settled_at IS NOT NULL;

-- name: delete_attempts
DELETE FROM dbjobs.attempts WHERE run_id @these_runs;

-- name: delete_first_attempts
DELETE FROM dbjobs.attempts WHERE run_id = :id AND number <= :through;

-- name: delete_runs
DELETE FROM dbjobs.runs WHERE id @these_runs AND settled_at IS NOT NULL;

-- How much history some jobs keep, from any place in the table, whether a job was removed before @later, and the oldest of its runs
-- that are settled, with when that has ended. A run that is open, such as one of a later time, is no history, and pushes nothing out
-- of it. More than 1,000 open ones are not counted: up to the first one, all numbers are those of the history. Each plan is looked up: a join of the two tables would read all plans up to that place.

-- name: sweep_jobs
SELECT @now, j.id, CASE WHEN (SELECT r.id FROM dbjobs.runs r @by_open WHERE @open = j.id ORDER BY r.id LIMIT 1 OFFSET 1000) IS NULL
    THEN COALESCE((SELECT p.runs_made FROM dbjobs.plans p WHERE p.job_id = j.id), 0) - (SELECT COUNT(*) FROM dbjobs.runs r @by_open WHERE @open = j.id)
    ELSE (SELECT COALESCE(r.number, 1) - 1 FROM dbjobs.runs r @by_open WHERE @open = j.id ORDER BY r.id LIMIT 1) END - j.keep_runs, j.keep_age_ms,
  CASE WHEN j.removed_at < @later THEN @true ELSE @false END,
  COALESCE((SELECT r.number FROM dbjobs.runs r @by_number WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1), 0),
  (SELECT r.finished_at FROM dbjobs.runs r @by_number WHERE r.job_id = j.id AND r.number > 0 AND r.settled_at IS NOT NULL ORDER BY r.number LIMIT 1)
FROM dbjobs.jobs j
WHERE j.id >= (SELECT @anywhere FROM dbjobs.jobs m) ORDER BY j.id LIMIT :limit;

-- name: lock_removed_plans
SELECT job_id FROM dbjobs.plans WHERE job_id @among ORDER BY job_id @skip;

-- Removed jobs that nothing needs any more, with whether they have a plan. If a manifest has had a job that is done, its file may
-- still have it, and then it must not run again. A job that runs after one that is done names it. With NOT EXISTS, MariaDB may
-- read all gaps first.

-- name: lock_removed_jobs
SELECT j.id, CASE WHEN EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id) THEN @true ELSE @false END
FROM dbjobs.jobs j WHERE j.id @among AND j.removed_at < @later AND (j.done_at IS NULL OR j.manifest IS NULL)
AND (SELECT r.job_id FROM dbjobs.runs r WHERE r.job_id = j.id LIMIT 1) IS NULL
AND (SELECT g.job_id FROM dbjobs.gaps g WHERE g.job_id = j.id LIMIT 1) IS NULL
AND (SELECT f.job_id FROM dbjobs.job_after f WHERE f.after_job_id = j.id LIMIT 1) IS NULL ORDER BY j.id @skip;

-- name: forget_plans
DELETE FROM dbjobs.plans WHERE job_id @these;

-- name: forget_jobs
DELETE FROM dbjobs.jobs WHERE id @these;

-- What is older than @later, and no longer needed: stretches of ticks, ended pauses, requests, and other changes of a part of the
-- change log.
-- Who needs stretches wants the newest ones, and a decision needs pauses that ended after what its plan covers. A pause that
-- its jobs have not seen is needed. The latest changes of a job are needed: they say in which state the job is, and what its
-- definition is, or was when the job was done. A rename says nothing of the state, and makes no earlier change needless. An earlier
-- change is not needed, and neither is any change of a job that is gone, or what says neither state nor definition. But each definition
-- of a job that goes when it is done is needed: a file may have any of them. And a rename stays, whatever it has renamed, and also when
-- that is gone: renamed_from does it once.

-- name: old_records
SELECT t.since, NULL, 'tick' FROM (SELECT since FROM dbjobs.ticks @by_since WHERE since < @later AND last_at < @later ORDER BY since LIMIT :limit) AS t
UNION ALL
SELECT NULL, p.id, 'pause' FROM (SELECT id FROM dbjobs.pauses @by_end
  WHERE scope IN ('all', 'job', 'owner', 'schedule', 'tag') AND ends_at < @later AND CASE WHEN @stale THEN 1 ELSE 0 END = 0 LIMIT :limit) AS p
UNION ALL
SELECT NULL, a.id, 'change' FROM (SELECT id FROM dbjobs.changes @by_asked WHERE @asks AND @asked_at < @later ORDER BY @asked_at LIMIT :limit) AS a
UNION ALL
SELECT NULL, c.id, 'change' FROM (
  SELECT n.id, n.changed_at, n.kind, n.subject_id, n.action FROM dbjobs.changes n
  WHERE n.id >= (SELECT @anywhere FROM dbjobs.changes m) ORDER BY n.id LIMIT :limit) AS c
WHERE c.changed_at < @later AND c.action <> 'rename' AND NOT @asks AND (c.kind <> 'job'
  OR EXISTS (SELECT 1 FROM dbjobs.changes l @by_defined WHERE @defined = c.subject_id AND l.id > c.id
    AND l.action <> 'rename' AND (@of_definition OR c.action IN ('pause', 'resume') AND @of_state))
    AND (c.action IN ('pause', 'resume') OR NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = c.subject_id AND j.remove_when_done = @true))
  OR NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = c.subject_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)));

-- name: delete_changes
DELETE FROM dbjobs.changes WHERE id @these;

-- name: delete_pauses
DELETE FROM dbjobs.pauses WHERE id @these AND ends_at < @later;

-- name: delete_ticks
DELETE FROM dbjobs.ticks WHERE since <= :through AND last_at < @later;

-- ----------------------------------------------------------------------------------- a clock that was ahead

-- A job lies ahead if it is decided beyond the clock, or if a run of it waits beyond the clock whose last attempt began there, or that
-- was made there. A run of a later time, and the long lease of a worker, are none. A job also lies ahead if a pause holds it that began
-- or ended there, or if its next time comes after its creation, or that of a schedule of it, and that lies there. So does one that got
-- its start there.

-- name: count_ahead
SELECT COUNT(DISTINCT u.job_id), MAX(u.until_at) FROM (
  SELECT p.job_id, CASE WHEN p.decided_through > @later THEN p.decided_through
    ELSE (SELECT MAX(r.wake_at) FROM dbjobs.runs r WHERE r.job_id = p.job_id AND @is_ahead) END AS until_at
  FROM dbjobs.plans p WHERE p.decided_through > @later OR p.job_id IN (SELECT r.job_id FROM dbjobs.runs r WHERE @is_ahead)
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p @by_end
  JOIN dbjobs.jobs j ON p.scope = 'all' OR p.scope = 'owner' AND j.owner = p.subject OR p.scope = 'tag' AND @has_tag
  WHERE p.scope IN ('tag', 'owner', 'all') AND @pause_is_ahead AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p @by_end JOIN dbjobs.jobs j ON j.id = p.subject_id
  WHERE p.scope = 'job' AND @pause_is_ahead AND j.removed_at IS NULL
  UNION ALL
  SELECT j.id, CASE WHEN p.resumed_at IS NULL THEN p.since ELSE p.ends_at END FROM dbjobs.pauses p @by_end
  JOIN dbjobs.job_schedules l ON l.schedule_id = p.subject_id JOIN dbjobs.jobs j ON j.id = l.job_id
  WHERE p.scope = 'schedule' AND @pause_is_ahead AND j.removed_at IS NULL
  UNION ALL
  SELECT p.job_id, j.created_at FROM dbjobs.jobs j JOIN dbjobs.plans p ON p.job_id = j.id
  WHERE j.created_at > @later AND j.removed_at IS NULL AND @after_next_run > j.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs.schedules s JOIN dbjobs.plans p ON p.job_id = s.job_id
  WHERE s.created_at > @later AND @after_next_run > s.created_at
  UNION ALL
  SELECT p.job_id, s.created_at FROM dbjobs.schedules s JOIN dbjobs.job_schedules l ON l.schedule_id = s.id JOIN dbjobs.plans p ON p.job_id = l.job_id
  WHERE s.created_at > @later AND @after_next_run > s.created_at
  UNION ALL
  SELECT j.id, j.not_before FROM dbjobs.jobs j WHERE @start_is_ahead AND j.removed_at IS NULL
) u;

-- name: lock_ahead
SELECT p.job_id, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.job_id), (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.job_id)
FROM dbjobs.plans p WHERE (p.decided_through > @later OR p.job_id IN (SELECT r.job_id FROM dbjobs.runs r WHERE @is_ahead))
  AND (p.job_id = :job OR :job = 0) ORDER BY p.job_id LIMIT :limit @lock;

-- name: pauses_ahead
SELECT @pause_columns, (SELECT j.owner FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT j.name FROM dbjobs.jobs j WHERE j.id = p.subject_id AND p.scope = 'job'),
  (SELECT s.name FROM dbjobs.schedules s WHERE s.id = p.subject_id AND p.scope = 'schedule')
FROM dbjobs.pauses p @by_end
WHERE p.scope IN ('job', 'schedule', 'tag', 'owner', 'all') AND @pause_is_ahead AND (p.subject_id = :job AND p.scope = 'job' OR :job = 0)
ORDER BY p.id LIMIT :limit;

-- MySQL assigns from left to right: until_at looks at since as it was.

-- name: rewind_pause
UPDATE dbjobs.pauses SET until_at = CASE WHEN since > @now AND until_at IS NOT NULL THEN :until_at ELSE until_at END,
  since = CASE WHEN since > @now THEN @now ELSE since END,
  resumed_at = CASE WHEN resumed_at > @now THEN @now ELSE resumed_at END
WHERE id = :id;

-- The jobs that were created by such a clock or got their start by it, and those of a schedule that was. A schedule counts also if other jobs use it.

-- name: created_ahead
SELECT j.id, j.owner, j.name FROM dbjobs.jobs j
WHERE (j.id = :job OR :job = 0) AND j.removed_at IS NULL AND (j.created_at > @later OR @start_is_ahead
  OR j.id IN (SELECT s.job_id FROM dbjobs.schedules s WHERE s.job_id IS NOT NULL AND s.created_at > @later)
  OR j.id IN (SELECT l.job_id FROM dbjobs.schedules s JOIN dbjobs.job_schedules l ON l.schedule_id = s.id WHERE s.created_at > @later))
ORDER BY j.id;

-- Their plans may have the beginning in the text of a rule: see Rule.Reread.

-- name: rewind_rules
UPDATE dbjobs.plan_rules SET input = @unread WHERE schedule_id IN (SELECT s.id FROM dbjobs.schedules s WHERE s.created_at > @later
  AND (s.job_id = :job OR s.id IN (SELECT l.schedule_id FROM dbjobs.job_schedules l WHERE l.job_id = :job) OR :job = 0));

-- name: rewind_schedules
UPDATE dbjobs.schedules SET created_at = @now, planned = @touched WHERE created_at > @later
  AND (job_id = :job OR id IN (SELECT l.schedule_id FROM dbjobs.job_schedules l WHERE l.job_id = :job) OR :job = 0);

-- name: starts_ahead
SELECT j.id, j.start_rule, j.start_zone, j.not_before FROM dbjobs.jobs j
WHERE (j.created_at > @later AND j.start_rule IS NOT NULL AND j.not_before > @later OR @start_is_ahead) AND j.removed_at IS NULL AND (j.id = :job OR :job = 0) ORDER BY j.id;

-- name: rewind_start
UPDATE dbjobs.jobs SET not_before = :not_before, planned = @touched WHERE id = :id;

-- A job that was there before keeps the date of its creation.

-- name: rewind_jobs
UPDATE dbjobs.jobs SET created_at = @now, planned = @touched WHERE created_at > @later AND removed_at IS NULL AND (id = :job OR :job = 0);

-- The times to come that were skipped, and that a decision by the wrong clock has turned into gaps.

-- name: skips_ahead
SELECT g.job_id, p.skips, g.schedule_id, (SELECT s.name FROM dbjobs.schedules s WHERE s.id = g.schedule_id), g.through_at
FROM dbjobs.gaps g JOIN dbjobs.plans p ON p.job_id = g.job_id
WHERE g.job_id @these AND g.from_at >= @now AND g.reason = 'skipped' ORDER BY g.job_id, g.through_at;

-- name: rewind_plans
UPDATE dbjobs.plans SET decided_through = CASE WHEN decided_through > @now THEN @now ELSE decided_through END,
  next_run = @now, version = CASE WHEN version < @most THEN version + 1 ELSE 1 END,
  last_scheduled_for = CASE WHEN last_scheduled_for > @now THEN NULL ELSE last_scheduled_for END,
  repeat_from = CASE WHEN repeat_from > @now THEN @now ELSE repeat_from END
WHERE job_id @these;

-- name: drop_gaps_ahead
DELETE FROM dbjobs.gaps WHERE job_id @these AND from_at >= @now;

-- name: end_gaps_now
UPDATE dbjobs.gaps SET through_at = @now WHERE job_id @these AND through_at > @now;

-- A run that was requested for a later time waits for it by any clock.

-- name: rewind_waits
UPDATE dbjobs.runs SET ready_at = @now WHERE @open @these AND state = 'waiting' AND ready_at > @later
  AND (started_at IS NOT NULL OR scheduled_for IS NULL OR scheduled_for < ready_at OR scheduled_for <= created_at);

-- When such a run has ended, it wakes its job as of created_at. Its timeout counts from started_at.

-- name: rewind_open
UPDATE dbjobs.runs SET created_at = CASE WHEN created_at > @later THEN @now ELSE created_at END,
  started_at = CASE WHEN started_at > @later THEN @now ELSE started_at END,
  queued_at = CASE WHEN queued_at > @later THEN @now ELSE queued_at END
WHERE @open @these AND (created_at > @later OR started_at > @later OR queued_at > @later);

-- name: rewind_leases
UPDATE dbjobs.runs SET lease_until = @now WHERE @open @these AND state = 'running' AND lease_until > @later;

-- name: drop_ticks_ahead
DELETE FROM dbjobs.ticks WHERE since > @later;

-- Rows that are written come as one JSON document. @rows turns it into a table d, which conditional updates join.

-- name: extend_gaps
-- overridden: mysql, postgres
UPDATE dbjobs.gaps AS g SET through_at = d.through_at, recorded_at = @now
FROM @rows(job_id bigint, schedule_id bigint, from_at instant, through_at instant, reason text, rule text)
WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id AND g.through_at = d.from_at AND g.reason = d.reason AND g.rule = d.rule;

-- name: insert_gaps
INSERT INTO dbjobs.gaps (job_id, schedule_id, from_at, through_at, reason, rule, recorded_at)
SELECT d.job_id, d.schedule_id, d.from_at, d.through_at, d.reason, d.rule, @now
FROM @rows(job_id bigint, schedule_id bigint, from_at instant, through_at instant, reason text, rule text)
WHERE (SELECT g.job_id FROM dbjobs.gaps g WHERE g.job_id = d.job_id AND g.schedule_id = d.schedule_id
  AND g.through_at = d.through_at AND g.reason = d.reason) IS NULL;

-- A run that goes back from running to waiting or queued had a delivery that did not come back, which is not an
-- attempt. If somebody has requested its end since it was read, the run is not let go, and the decision is made
-- again.

-- name: update_runs
-- overridden: mysql, postgres
UPDATE dbjobs.runs AS r
SET state = d.state, held_by = d.held_by, queue = d.queue, priority = d.priority, ready_at = d.ready_at, number = d.number, losses = d.losses,
  finished_at = d.finished_at, settled_at = d.settled_at, expires_at = d.expires_at, error = d.error,
  lease_until = CASE WHEN d.state = 'running' THEN r.lease_until END,
  queued_at = CASE WHEN d.state = 'queued' AND d.was <> 'queued' THEN @now ELSE r.queued_at END,
  attempt = r.attempt - CASE WHEN d.was = 'running' AND d.state IN ('waiting', 'queued') THEN 1 ELSE 0 END
FROM @rows(id uuid, fence int, was text, lease instant, state text, held_by text, queue text, priority int, ready_at instant,
  number bigint, losses int, finished_at instant, settled_at instant, expires_at instant, error text)
WHERE r.id = d.id AND r.fence = d.fence AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease)
  AND (d.state <> 'queued' OR r.cancel_at IS NULL);

-- name: advance
-- overridden: mysql, postgres
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = d.decided_through, parked = d.parked,
  last_scheduled_for = d.last_scheduled_for, last_run_id = d.last_run_id, last_state = d.last_state,
  last_finished_at = d.last_finished_at, last_success_at = d.last_success_at, last_error = d.last_error,
  streak = d.streak, cycles = d.cycles, runs_made = d.runs_made, startup_ids = d.startup_ids,
  repeat_from = d.repeat_from, skips = d.skips, version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM @rows(job_id bigint, version bigint, next_run instant, decided_through instant, parked text,
  last_scheduled_for instant, last_run_id uuid, last_state text, last_finished_at instant,
  last_success_at instant, last_error text, streak int, cycles bigint, runs_made bigint, startup_ids text,
  repeat_from instant, skips text)
WHERE p.job_id = d.job_id AND p.version = d.version;

-- For plans that only went on to their next nominal time, after one run for the last one.

-- name: advance_due
-- overridden: mysql, postgres
UPDATE dbjobs.plans AS p
SET next_run = d.next_run, decided_through = @now, last_scheduled_for = d.last_scheduled_for, runs_made = p.runs_made + 1,
  version = CASE WHEN p.version < @most THEN p.version + 1 ELSE 1 END
FROM @rows(job_id bigint, version bigint, next_run instant, last_scheduled_for instant)
WHERE p.job_id = d.job_id AND p.version = d.version;

-- For a plan that cannot be read, or whose decision was refused: no other column of it changes.

-- name: park_plans
-- overridden: mysql
UPDATE dbjobs.plans AS p SET parked = d.parked, next_run = d.next_run
FROM @rows(job_id bigint, parked text, next_run instant)
WHERE p.job_id = d.job_id;

-- A run that cannot be read ends. The values that it has are not read.

-- name: bury_runs
-- overridden: mysql
UPDATE dbjobs.runs AS r SET state = d.state, held_by = NULL, lease_until = NULL, cancel_at = NULL, finished_at = @now, settled_at = @now,
  expires_at = d.expires_at, error = coalesce(d.error, r.error)
FROM @rows(id uuid, state text, was text, lease instant, expires_at instant, error text)
WHERE r.id = d.id AND r.state = d.was AND (d.lease IS NULL OR r.lease_until = d.lease) AND r.settled_at IS NULL;

-- Queued runs that cannot be delivered end as failed.

-- name: end_queued
-- overridden: mysql
UPDATE dbjobs.runs AS r SET state = 'failed', finished_at = @now, error = d.error
FROM @rows(id uuid, error text)
WHERE r.id = d.id AND r.state = 'queued';

-- name: move_steps
-- overridden: mysql
UPDATE dbjobs.runs AS r SET step = d.step, step_name = d.step_name
FROM @rows(id uuid, step int, step_name text)
WHERE r.id = d.id AND r.state = 'queued';

-- name: insert_changes
INSERT INTO dbjobs.changes (changed_at, changed_by, kind, subject_id, subject, action, reason)
SELECT @now, 'dbjobs itself', 'job', d.subject_id, d.subject, d.action, d.reason
FROM @rows(subject_id bigint, subject text, action text, reason text);

-- name: insert_pauses
INSERT INTO dbjobs.pauses (scope, subject_id, reason, paused_by, since)
SELECT 'job', d.subject_id, d.reason, 'dbjobs itself', @now
FROM @rows(subject_id bigint, reason text);

-- name: insert_plan_rules
INSERT INTO dbjobs.plan_rules (job_id, schedule_id, input, rule, ends, since, changed_at)
SELECT d.job_id, d.schedule_id, d.input, d.rule, d.ends, d.since, d.changed_at
FROM @rows(job_id bigint, schedule_id bigint, input text, rule text, ends text, since instant, changed_at instant);

-- name: begin_attempts
INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
SELECT d.run_id, d.number, d.step, d.step_name, d.attempt, d.fence, d.holder, @now
FROM @rows(run_id uuid, number int, step int, step_name text, attempt int, fence int, holder text);

-- Runs whose delivery never began are queued again as they were before it, except for the fence. Others may take them
-- at once. The next decision still looks at them: a pause or a lower cap may have come meanwhile.

-- name: return_runs
-- overridden: mysql
UPDATE dbjobs.runs AS r SET state = CASE WHEN r.cancel_at IS NULL THEN 'queued' ELSE 'waiting' END, held_by = NULL, lease_until = @now, attempt = r.attempt - 1, attempts = r.attempts - 1,
  started_at = CASE WHEN d.fresh THEN NULL ELSE r.started_at END, error = d.error
FROM @rows(id uuid, fence int, number int, fresh bool, error text)
WHERE r.id = d.id AND r.fence = d.fence AND r.state = 'running' AND r.attempts = d.number;

-- When a rule changes, its new times count from that moment.

-- name: date_own_rules
-- overridden: mysql
UPDATE dbjobs.schedules AS s SET changed_at = @now
FROM @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text, on_holiday text)
WHERE s.id = d.id AND (s.rule <> d.rule OR s.zone <> d.zone OR s.nonexistent <> d.nonexistent OR s.ambiguous <> d.ambiguous
  OR s.calendar <> d.calendar OR s.on_holiday <> d.on_holiday);

-- name: update_own_rules
-- overridden: mysql
UPDATE dbjobs.schedules AS s SET rule = d.rule, zone = d.zone, nonexistent = d.nonexistent, ambiguous = d.ambiguous,
  calendar = d.calendar, on_holiday = d.on_holiday, calendar_version = d.calendar_version, description = d.description, manifest = NULL
FROM @rows(id bigint, rule text, zone text, nonexistent text, ambiguous text, calendar text, on_holiday text, calendar_version text, description text) WHERE s.id = d.id;

-- name: enlist_groups
-- overridden: mysql
INSERT INTO dbjobs.group_plans (name)
SELECT name FROM dbjobs.groups WHERE name @among_names ORDER BY name
ON CONFLICT DO NOTHING;

-- --------------------------------------------------------- what no program writes: one statement a kind of damage

-- Each returns the job (NULL: there is none, or it is unknown), an instant, a text, and a count.

-- name: examine_twice
SELECT r.job_id, r.scheduled_for, NULL, COUNT(*) FROM dbjobs.runs r
WHERE r.occurrence LIKE 'at:%' AND r.scheduled_for IS NOT NULL
GROUP BY r.job_id, r.scheduled_for HAVING COUNT(*) > 1 ORDER BY r.job_id, r.scheduled_for LIMIT :limit;

-- name: examine_numbers
SELECT p.job_id, NULL, NULL, p.runs_made FROM dbjobs.plans p
WHERE p.runs_made < (SELECT MAX(r.number) FROM dbjobs.runs r WHERE r.job_id = p.job_id) ORDER BY p.job_id LIMIT :limit;

-- name: examine_older
SELECT r.job_id, MIN(r.created_at), NULL, COUNT(*) FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.created_at < j.created_at GROUP BY r.job_id ORDER BY r.job_id LIMIT :limit;

-- name: examine_attempts
SELECT r.job_id, MIN(a.started_at), MIN(CAST(a.run_id AS CHAR(36))), COUNT(*)
FROM dbjobs.attempts a LEFT JOIN dbjobs.runs r ON r.id = a.run_id
WHERE r.id IS NULL OR a.number > r.attempts OR a.state = 'running' AND r.settled_at IS NOT NULL
GROUP BY r.job_id ORDER BY r.job_id LIMIT :limit;

-- name: examine_runs
SELECT job_id, MIN(created_at), what, COUNT(*) FROM (
  SELECT r.job_id, r.created_at,
    CASE WHEN r.state = 'running' AND r.lease_until IS NULL THEN 'running without a lease'
      WHEN r.state NOT IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.settled_at IS NOT NULL THEN 'settled before the end'
      WHEN r.state IN ('succeeded', 'failed', 'cancelled', 'lost') AND r.finished_at IS NULL THEN 'ended at no time'
      WHEN r.settled_at IS NOT NULL AND r.expires_at IS NULL THEN 'kept for ever'
      WHEN r.finished_at < r.started_at THEN 'ended before it began'
      WHEN r.interval_end < r.interval_start THEN 'of an interval that ends before it begins'
      WHEN r.occurrence LIKE 'at:%' AND r.scheduled_for IS NULL THEN 'of a nominal time that is missing'
      WHEN r.created_at > @later THEN 'made in the future'
      WHEN @is_ahead THEN 'begun in the future'
      WHEN r.state = 'waiting' AND r.held_by = 'predecessor' AND r.fence = 0 AND NOT EXISTS (SELECT 1 FROM dbjobs.runs o
        WHERE o.job_id = r.job_id AND o.id <> r.id AND o.settled_at IS NULL) THEN 'waiting for a run that is not there' END AS what
  FROM dbjobs.runs r) AS odd
WHERE what IS NOT NULL GROUP BY job_id, what ORDER BY job_id, what LIMIT :limit;

-- name: examine_gaps
SELECT g.job_id, MIN(g.from_at), NULL, COUNT(*) FROM dbjobs.gaps g WHERE g.from_at >= g.through_at GROUP BY g.job_id ORDER BY g.job_id LIMIT :limit;

-- name: examine_stuck
SELECT r.job_id, MIN(COALESCE(r.finished_at, r.wake_at)), r.state, COUNT(*) FROM dbjobs.runs r
WHERE r.wake_at < @later AND COALESCE(r.finished_at, r.wake_at) < @later GROUP BY r.job_id, r.state ORDER BY MIN(COALESCE(r.finished_at, r.wake_at)) LIMIT :limit;

-- name: examine_queued
SELECT NULL, MIN(r.queued_since), r.queue, COUNT(*) FROM dbjobs.runs r WHERE r.queued_since < @later GROUP BY r.queue ORDER BY r.queue LIMIT :limit;

-- name: examine_unplanned
SELECT j.id, j.created_at, NULL, 1 FROM dbjobs.jobs j
WHERE j.enabled = @true AND j.removed_at IS NULL AND j.created_at < @later AND NOT EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id)
ORDER BY j.id LIMIT :limit;

-- The first job that no pass has planned yet.

-- name: unplanned
SELECT j.owner, j.name, j.created_at FROM dbjobs.jobs j
WHERE j.enabled = @true AND j.removed_at IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id)
ORDER BY j.created_at, j.id LIMIT 1;

-- name: examine_orphans
SELECT o.job_id, NULL, o.what, COUNT(*) FROM (
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
GROUP BY o.job_id, o.what ORDER BY o.job_id, o.what LIMIT :limit;

-- name: examine_links
SELECT l.job_id, NULL, NULL, COUNT(*) FROM dbjobs.job_schedules l
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.schedules s WHERE s.id = l.schedule_id) GROUP BY l.job_id ORDER BY l.job_id LIMIT :limit;

-- name: examine_after
SELECT f.job_id, NULL, NULL, COUNT(*) FROM dbjobs.job_after f JOIN dbjobs.jobs l ON l.id = f.job_id AND l.removed_at IS NULL
WHERE NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = f.after_job_id AND (j.removed_at IS NULL OR j.done_at IS NOT NULL)) GROUP BY f.job_id ORDER BY f.job_id LIMIT :limit;

-- name: examine_groups
SELECT j.id, NULL, j.group_name, 1 FROM dbjobs.jobs j
WHERE j.removed_at IS NULL AND j.group_name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.groups g WHERE g.name = j.group_name)
ORDER BY j.id LIMIT :limit;

-- name: examine_calendars
SELECT s.job_id, NULL, s.calendar, COUNT(*) FROM dbjobs.schedules s
WHERE s.calendar <> '' AND NOT EXISTS (SELECT 1 FROM dbjobs.calendars c WHERE c.name = s.calendar)
  AND (s.job_id IS NULL OR EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = s.job_id AND j.removed_at IS NULL))
GROUP BY s.job_id, s.calendar ORDER BY s.job_id, s.calendar LIMIT :limit;

-- name: examine_pauses
SELECT NULL, p.since, p.scope, p.id FROM dbjobs.pauses p WHERE @holds AND (
  p.scope = 'job' AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = p.subject_id)
  OR p.scope = 'schedule' AND NOT EXISTS (SELECT 1 FROM dbjobs.schedules s WHERE s.id = p.subject_id))
ORDER BY p.id LIMIT :limit;

-- name: examine_ticks
SELECT NULL, t.last_at, t.name, COUNT(*) FROM dbjobs.ticks t WHERE t.last_at > @later GROUP BY t.name, t.last_at ORDER BY t.name LIMIT :limit;

-- The nominal times that are accounted for: of these jobs, from an instant on.

-- name: accounted_rules
SELECT r.job_id, r.schedule_id, r.rule, r.ends, r.since FROM dbjobs.plan_rules r WHERE r.job_id @these AND r.rule <> '' ORDER BY r.job_id, r.schedule_id;

-- name: accounted_runs
SELECT r.job_id, r.scheduled_for FROM dbjobs.runs r WHERE r.job_id @these AND r.occurrence LIKE 'at:%' AND r.scheduled_for > :from;

-- name: accounted_gaps
SELECT g.job_id, g.schedule_id, g.from_at, g.through_at, g.reason FROM dbjobs.gaps g WHERE g.job_id @these AND g.through_at > :from
ORDER BY g.job_id, g.schedule_id, g.from_at;

-- Runs whose number is too old stay as long as they are not settled, and those beside them are gone.

-- name: oldest_kept
SELECT r.job_id, MIN(r.number), MIN(CASE WHEN r.occurrence LIKE 'at:%' THEN r.scheduled_for END)
FROM dbjobs.runs r JOIN dbjobs.plans p ON p.job_id = r.job_id JOIN dbjobs.jobs j ON j.id = r.job_id
WHERE r.job_id @these AND r.number > p.runs_made - j.keep_runs GROUP BY r.job_id;
