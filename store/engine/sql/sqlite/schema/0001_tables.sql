-- The tables of dbjobs on SQLite.
--
-- Three kinds:
--   definitions  written by people: commands, apply, plain SQL. What the program writes there is in store/doc.go.
--   plans        written by the program, under the lock of the job's plan row.
--   ledger       written by the program; workers in any language may update the run that they hold.
-- No foreign key leads from plans or ledger to definitions: a definition may go while its history stays.
-- Every instant is UTC text of fixed width, 2026-01-05T08:00:00.000000Z; every duration is in whole milliseconds and named so.
--
-- Each statement ends with a semicolon at the end of a line, and can be run twice.

-- ------------------------------------------------------------------------------------------------- definitions

-- A schedule is a named recurrence set; many jobs may use one. A job's own rule (rule: in jobs.yaml) is a
-- schedule without a name that belongs to that job.
CREATE TABLE IF NOT EXISTS dbjobs_schedules (
  id           integer PRIMARY KEY AUTOINCREMENT,
  name         text UNIQUE CHECK (length(CAST(name AS BLOB)) <= 190),  -- NULL: the own rule of the job in job_id
  job_id       integer,                                         -- the job that this unnamed schedule belongs to
  owner        text NOT NULL DEFAULT '' CHECK (length(CAST(owner AS BLOB)) <= 190),  -- the login that made it; for a job's own rule, the owner of the job counts
  rule         text NOT NULL,                                  -- any form that dbjobs reads: RRULE text, cron, every, at, ...
  zone         text NOT NULL DEFAULT 'UTC',                    -- IANA name; what wall times in the rule mean
  nonexistent  text NOT NULL DEFAULT 'forward' CHECK (nonexistent IN ('forward', 'skip')),      -- a wall time that a clock change leaves out
  ambiguous    text NOT NULL DEFAULT 'first' CHECK (ambiguous IN ('first', 'last', 'both')),    -- a wall time that a clock change repeats
  description  text NOT NULL DEFAULT '',
  manifest     text,                                           -- the manifest that owns the row, and may prune it
  created_at   text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(created_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(created_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', created_at) AND created_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', created_at IS NULL)),  -- rules that count "from creation" count from here
  changed_at   text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(changed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(changed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', changed_at) AND changed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', changed_at IS NULL)),  -- commands that change the rule set it: the new rule counts from here
  calendar     text NOT NULL DEFAULT '',                       -- name of the calendar whose holidays count; empty: none
  on_holiday   text NOT NULL DEFAULT 'skip' CHECK (on_holiday IN ('skip', 'next', 'previous')),  -- what happens to a time on a holiday
  calendar_version text NOT NULL DEFAULT '',                   -- the version of the calendar's days; the program writes it when they change
  plan_input   text GENERATED ALWAYS AS (rule || char(31) || zone || char(31) || nonexistent || char(31) || ambiguous
    || CASE WHEN calendar = '' THEN '' ELSE char(31) || calendar || char(31) || on_holiday || char(31) || calendar_version END) STORED,
  planned      text,                                           -- the plan_input from which all its jobs were planned
  parked       text,                                           -- why it cannot be used, as the last pass that looked at it found; NULL: it can be used
  CHECK ((name IS NULL) <> (job_id IS NULL))
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS dbjobs_schedules_job ON dbjobs_schedules (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_schedules_stale ON dbjobs_schedules (id) WHERE planned IS NOT plan_input;
CREATE INDEX IF NOT EXISTS dbjobs_schedules_calendar ON dbjobs_schedules (calendar) WHERE calendar <> '';

-- A calendar has the days on which the schedules that name it do nothing. Plans contain the days, so the next pass
-- brings an edit of a calendar into the plans, as it does with an edit of a schedule.
CREATE TABLE IF NOT EXISTS dbjobs_calendars (
  name         text NOT NULL PRIMARY KEY CHECK (length(CAST(name AS BLOB)) <= 190),
  owner        text NOT NULL DEFAULT '' CHECK (length(CAST(owner AS BLOB)) <= 190),  -- the login that made it
  working_days text NOT NULL DEFAULT '',                       -- weekdays, such as MO-FR; empty: all of them
  days         text NOT NULL DEFAULT '',                       -- a line for each holiday: 2026-12-25 Christmas Day, 2026-12-24..2026-12-31, or 12-25 of each year
  description  text NOT NULL DEFAULT '',
  manifest     text,                                           -- the manifest that owns the row, and may prune it
  plan_input   text GENERATED ALWAYS AS (name || char(31) || working_days || char(31) || days) STORED,
  planned      text                                            -- the plan_input that its schedules know
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_calendars_stale ON dbjobs_calendars (name) WHERE planned IS NOT plan_input;

-- A job: what to do (its steps), for whom, when (its links to schedules), and its policies.
CREATE TABLE IF NOT EXISTS dbjobs_jobs (
  id               integer PRIMARY KEY AUTOINCREMENT,
  owner            text NOT NULL DEFAULT '' CHECK (length(CAST(owner AS BLOB)) <= 190),  -- the login that its SQL steps run as
  name             text NOT NULL CHECK (length(CAST(name AS BLOB)) <= 190),
  description      text NOT NULL DEFAULT '',
  enabled          integer NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),              -- false: nothing is decided for it
  tags             text NOT NULL DEFAULT '[]' CHECK (json_valid(tags) AND json_type(tags) = 'array'),  -- array of strings; a pause can name a tag
  queue            text NOT NULL DEFAULT 'tick' CHECK (length(CAST(queue AS BLOB)) BETWEEN 1 AND 190),  -- who takes its runs: the tick, or a worker of that queue
  priority         integer NOT NULL DEFAULT 0,                 -- higher is taken first within a queue
  group_name       text CHECK (length(CAST(group_name AS BLOB)) <= 190),  -- shares the cap of dbjobs_groups
  overlap          text NOT NULL DEFAULT 'wait' CHECK (overlap IN ('wait', 'wait-all', 'skip', 'allow', 'replace')),
  max_running      integer NOT NULL DEFAULT 1 CHECK (max_running > 0),      -- with overlap allow
  missed           text NOT NULL DEFAULT 'latest' CHECK (missed IN ('latest', 'all', 'skip')),
  missed_limit     integer NOT NULL DEFAULT 100 CHECK (missed_limit > 0),   -- with missed all: how many of the newest missed times run
  missed_within_ms integer CHECK (missed_within_ms BETWEEN 1 AND 9000000000000),        -- older than this is a gap; NULL: no limit
  missed_grace_ms  integer NOT NULL DEFAULT 120000 CHECK (missed_grace_ms BETWEEN 1 AND 9000000000000),    -- with missed skip: how late the newest time may be
  retry_attempts   integer NOT NULL DEFAULT 1 CHECK (retry_attempts >= 0),  -- tries of a step; 0: until the next occurrence
  retry_backoff_ms integer NOT NULL DEFAULT 10000 CHECK (retry_backoff_ms BETWEEN 0 AND 9000000000000),         -- doubles with every try ...
  retry_max_backoff_ms integer NOT NULL DEFAULT 3600000 CHECK (retry_max_backoff_ms BETWEEN 0 AND 9000000000000),   -- ... up to this
  retry_jitter     integer NOT NULL DEFAULT 10 CHECK (retry_jitter BETWEEN 0 AND 100),  -- per cent of the back-off added at random
  max_deliveries   integer NOT NULL DEFAULT 3 CHECK (max_deliveries > 0),         -- times a run may be delivered and not come back; 1: at most once
  on_error         text NOT NULL DEFAULT 'continue' CHECK (on_error IN ('continue', 'pause')),
  pause_after_failures integer CHECK (pause_after_failures > 0),            -- failed runs in a row that pause the job
  timeout_ms       integer CHECK (timeout_ms BETWEEN 1 AND 9000000000000),              -- of a whole run; NULL: none
  jitter_ms        integer NOT NULL DEFAULT 0 CHECK (jitter_ms BETWEEN 0 AND 9000000000000),        -- a run becomes ready later, by up to this; always by the same for one occurrence
  max_runs         integer CHECK (max_runs > 0),              -- finished after this number of runs
  not_before       text CHECK (coalesce(not_before GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(not_before, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', not_before) AND not_before BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', not_before IS NULL)),  -- nominal times before this are not times of the job
  not_after        text CHECK (coalesce(not_after GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(not_after, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', not_after) AND not_after BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', not_after IS NULL)),  -- nominal times after this are not times of the job
  start_rule       text,                                       -- the start schedule: its first time after the job was made, or got it, is not_before; the next pass writes that where it is NULL
  start_zone       text,                                      -- the zone of its wall times; NULL: UTC
  repeat_after_ms  integer CHECK (repeat_after_ms BETWEEN 1 AND 9000000000000),         -- instead of a schedule: the next run is this long after the end of the last one
  on_startup       integer NOT NULL DEFAULT 0 CHECK (on_startup IN (0, 1)),             -- runs once for each start-up identity that a tick reports
  keep_runs        integer NOT NULL DEFAULT 1000 CHECK (keep_runs > 0),     -- newest runs kept
  keep_age_ms      integer NOT NULL DEFAULT 7776000000 CHECK (keep_age_ms BETWEEN 1 AND 9000000000000),  -- runs older than this (90 days) are deleted
  remove_when_done integer NOT NULL DEFAULT 0 CHECK (remove_when_done IN (0, 1)),             -- removed when the job has no further run and its last run has succeeded
  on_failed        text CHECK (length(CAST(on_failed AS BLOB)) <= 381),  -- the job that is run once for each failed run: its name, or owner/name; the same below
  on_recovered     text CHECK (length(CAST(on_recovered AS BLOB)) <= 381),
  on_missed        text CHECK (length(CAST(on_missed AS BLOB)) <= 381),
  on_late          text CHECK (length(CAST(on_late AS BLOB)) <= 381),
  on_lost          text CHECK (length(CAST(on_lost AS BLOB)) <= 381),
  on_parked        text CHECK (length(CAST(on_parked AS BLOB)) <= 381),
  on_paused        text CHECK (length(CAST(on_paused AS BLOB)) <= 381),
  heartbeat_url    text,                                       -- an outside service that gets signals about its runs; or one URL for each signal:
  heartbeat_start  text,
  heartbeat_success text,
  heartbeat_failure text,
  manifest         text,                                       -- the manifest that owns the row, and may prune it
  created_at       text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(created_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(created_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', created_at) AND created_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', created_at IS NULL)),  -- nominal times count from here
  changed_at       text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(changed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(changed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', changed_at) AND changed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', changed_at IS NULL)),
  removed_at       text CHECK (coalesce(removed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(removed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', removed_at) AND removed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', removed_at IS NULL)),  -- removed: the name is free, the ledger stays until pruned
  done_at          text CHECK (coalesce(done_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(done_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', done_at) AND done_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', done_at IS NULL)),  -- when remove_when_done removed it: apply makes no new job of the same definition
  -- All values that a decision reads of the job, except the identity of the job. Jobs with the same text are alike to a
  -- decision. If this expression changes, the text of every job differs from planned, so the next pass decides for all
  -- jobs at once. planInput (store/job.go) names the fields in this order. A new field goes to the end.
  plan_input       text GENERATED ALWAYS AS (
    enabled || char(31) || coalesce(removed_at, '') || char(31) || coalesce(not_before, '') || char(31) || coalesce(not_after, '')
    || char(31) || jitter_ms || char(31) || coalesce(repeat_after_ms, '') || char(31) || coalesce(max_runs, '')
    || char(31) || overlap || char(31) || max_running || char(31) || quote(group_name) || char(31) || quote(queue)
    || char(31) || priority || char(31) || missed || char(31) || missed_limit || char(31) || coalesce(missed_within_ms, '')
    || char(31) || missed_grace_ms || char(31) || retry_attempts || char(31) || retry_backoff_ms
    || char(31) || retry_max_backoff_ms || char(31) || retry_jitter || char(31) || max_deliveries || char(31) || on_error
    || char(31) || coalesce(pause_after_failures, '') || char(31) || coalesce(timeout_ms, '') || char(31) || on_startup
    || char(31) || keep_runs || char(31) || keep_age_ms
    || char(31) || remove_when_done || char(31) || coalesce(start_zone, '') || char(31) || coalesce(start_rule, '')
    || char(31) || tags || char(31) || owner
    || char(31) || coalesce(on_failed, '') || char(31) || coalesce(on_recovered, '') || char(31) || coalesce(on_missed, '')
    || char(31) || coalesce(on_late, '') || char(31) || coalesce(on_lost, '') || char(31) || coalesce(on_parked, '')
    || char(31) || coalesce(on_paused, '')) STORED,
  planned          text                                        -- the plan_input from which its plan was made
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS dbjobs_jobs_name ON dbjobs_jobs (name, owner) WHERE removed_at IS NULL;
CREATE INDEX IF NOT EXISTS dbjobs_jobs_group ON dbjobs_jobs (group_name) WHERE group_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_jobs_startup ON dbjobs_jobs (id) WHERE on_startup = 1;
CREATE INDEX IF NOT EXISTS dbjobs_jobs_hooks ON dbjobs_jobs (id) WHERE removed_at IS NULL AND COALESCE(on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_jobs_stale ON dbjobs_jobs (id) WHERE planned IS NOT plan_input;

-- The steps of a job, in order.
CREATE TABLE IF NOT EXISTS dbjobs_steps (
  job_id               integer NOT NULL,
  position             integer NOT NULL CHECK (position > 0),  -- 1, 2, ...
  name                 text NOT NULL CHECK (length(CAST(name AS BLOB)) <= 190),
  executor             text NOT NULL,                          -- sql, ...: what is done
  spec                 text NOT NULL,                         -- the executor's own arguments, as an object
  timeout_ms           integer CHECK (timeout_ms BETWEEN 1 AND 9000000000000),          -- of one attempt; NULL: none
  retry_attempts       integer CHECK (retry_attempts >= 0),    -- NULL: the value of the job; the same below
  retry_backoff_ms     integer CHECK (retry_backoff_ms BETWEEN 0 AND 9000000000000),
  retry_max_backoff_ms integer CHECK (retry_max_backoff_ms BETWEEN 0 AND 9000000000000),
  retry_jitter         integer CHECK (retry_jitter BETWEEN 0 AND 100),
  on_success           text NOT NULL DEFAULT 'next',           -- next, succeed, fail, or step:NAME
  on_failure           text NOT NULL DEFAULT 'fail',           -- the same
  PRIMARY KEY (job_id, position),
  UNIQUE (job_id, name)
) STRICT;

-- Which jobs use which schedules.
CREATE TABLE IF NOT EXISTS dbjobs_job_schedules (
  job_id      integer NOT NULL,
  schedule_id integer NOT NULL,
  created_at  text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(created_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(created_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', created_at) AND created_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', created_at IS NULL)),  -- from here on, the schedule's nominal times are times of the job
  planned     integer,                                          -- the schedule_id that the plan knows
  PRIMARY KEY (job_id, schedule_id)
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_job_schedules_schedule ON dbjobs_job_schedules (schedule_id, job_id);
CREATE INDEX IF NOT EXISTS dbjobs_job_schedules_stale ON dbjobs_job_schedules (job_id) WHERE planned IS NOT schedule_id;

-- Which jobs run after which others, and after which ends of their runs.
CREATE TABLE IF NOT EXISTS dbjobs_job_after (
  job_id       integer NOT NULL,
  after_job_id integer NOT NULL,
  on_end       text NOT NULL DEFAULT 'success' CHECK (on_end IN ('success', 'failure', 'end')),  -- a lost run is a failure; end is any end, also of a cancelled run
  planned      integer,                                         -- the after_job_id that a decision has seen
  PRIMARY KEY (job_id, after_job_id),
  CHECK (job_id <> after_job_id)
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_job_after_job ON dbjobs_job_after (after_job_id, job_id);
CREATE INDEX IF NOT EXISTS dbjobs_job_after_stale ON dbjobs_job_after (job_id) WHERE planned IS NOT after_job_id;

-- A cap that several jobs share.
CREATE TABLE IF NOT EXISTS dbjobs_groups (
  name        text NOT NULL PRIMARY KEY CHECK (length(CAST(name AS BLOB)) <= 190),
  owner       text NOT NULL DEFAULT '' CHECK (length(CAST(owner AS BLOB)) <= 190),  -- the login that made it
  max_running integer NOT NULL CHECK (max_running > 0)
) STRICT;

-- Pauses, as intervals that stay on record for 400 days after their end.
CREATE TABLE IF NOT EXISTS dbjobs_pauses (
  id         integer PRIMARY KEY AUTOINCREMENT,
  scope      text NOT NULL CHECK (scope IN ('job', 'schedule', 'tag', 'owner', 'all')),
  subject_id integer,                                           -- of a job or schedule
  subject    text,                                             -- the tag or owner
  reason     text NOT NULL DEFAULT '',
  paused_by  text NOT NULL DEFAULT '',
  since      text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(since GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(since, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', since) AND since BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', since IS NULL)),
  until_at   text CHECK (coalesce(until_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(until_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', until_at) AND until_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', until_at IS NULL)),  -- ends by itself; NULL: until resumed
  until_as   text CHECK (until_as IN ('length', 'day')),       -- how until_at was given: as a length, or as a day after the present one; NULL: as an instant
  resumed_at text CHECK (coalesce(resumed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(resumed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', resumed_at) AND resumed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', resumed_at IS NULL)),
  resumed_by text,
  missed     integer NOT NULL DEFAULT 0 CHECK (missed IN (0, 1)),                   -- resumed with the missed times: the interval holds back no time
  plan_input text GENERATED ALWAYS AS (
    coalesce(until_at, '') || char(31)
    || coalesce(resumed_at, '')) STORED,
  ends_at    text GENERATED ALWAYS AS (                        -- the earlier of the two; without both, the end of time
    min(coalesce(until_at, '9999-12-31T23:59:59.000000Z'), coalesce(resumed_at, '9999-12-31T23:59:59.000000Z'))) STORED,
  planned    text                                              -- the plan_input that its jobs have seen
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_pauses_ends ON dbjobs_pauses (scope, ends_at);
CREATE INDEX IF NOT EXISTS dbjobs_pauses_subject ON dbjobs_pauses (scope, subject_id, ends_at);
CREATE INDEX IF NOT EXISTS dbjobs_pauses_stale ON dbjobs_pauses (id) WHERE planned IS NOT plan_input;

-- ------------------------------------------------------------------------------------------------------- plans

-- One narrow row for each job. The session that holds the lock of the row may decide for the job. Where there is no
-- lock, version makes a decision conditional on the values that it read.
CREATE TABLE IF NOT EXISTS dbjobs_plans (
  job_id             integer PRIMARY KEY,
  owner              text NOT NULL DEFAULT '',   -- the owner of the job, whose ticks decide its nominal times; on SQLite it is empty
  version            integer NOT NULL DEFAULT 0,                -- grows by one with every decision
  next_run           text CHECK (coalesce(next_run GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(next_run, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', next_run) AND next_run BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', next_run IS NULL)),                              -- when the job needs a decision; NULL: at no time
  decided_through    text CHECK (coalesce(decided_through GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(decided_through, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', decided_through) AND decided_through BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', decided_through IS NULL)),                              -- every nominal time up to here has a run or lies in a gap
  parked             text,                                     -- why the job is parked; NULL: it is not
  last_scheduled_for text CHECK (coalesce(last_scheduled_for GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(last_scheduled_for, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', last_scheduled_for) AND last_scheduled_for BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', last_scheduled_for IS NULL)),                              -- the newest nominal time that became a run: where the next interval starts
  last_run_id        text,                                     -- the run that ended last; its facts follow
  last_state         text,
  last_finished_at   text CHECK (coalesce(last_finished_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(last_finished_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', last_finished_at) AND last_finished_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', last_finished_at IS NULL)),
  last_success_at    text CHECK (coalesce(last_success_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(last_success_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', last_success_at) AND last_success_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', last_success_at IS NULL)),
  last_error         text,
  streak             integer NOT NULL DEFAULT 0 CHECK (streak <= 2000000000),               -- failed runs in a row
  cycles             integer NOT NULL DEFAULT 0 CHECK (cycles <= 4000000000000000000),                -- runs ended
  runs_made          integer NOT NULL DEFAULT 0 CHECK (runs_made <= 4000000000000000000),                -- runs made; the next run has this number plus one
  startup_ids        text,  -- the start-up identities for which it ran, the newest first, each with a line end before and after it
  skips              text,  -- future nominal times that somebody has decided not to run, as JSON; NULL: none
  repeat_from        text CHECK (coalesce(repeat_from GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(repeat_from, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', repeat_from) AND repeat_from BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', repeat_from IS NULL))                                    -- repeat_after counts from here: the last end, or the decision that a time has no run
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_plans_next_run ON dbjobs_plans (owner, next_run, job_id);
CREATE INDEX IF NOT EXISTS dbjobs_plans_parked ON dbjobs_plans (job_id) WHERE parked IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_plans_failing ON dbjobs_plans (job_id) WHERE streak > 0;

-- The rules from which a job was planned. When a rule is edited, the times that the old rule still owes are counted
-- from here.
CREATE TABLE IF NOT EXISTS dbjobs_plan_rules (
  job_id      integer NOT NULL,
  schedule_id integer NOT NULL,
  input       text NOT NULL,                                   -- the schedule's plan_input at that time
  rule        text NOT NULL,                                   -- RFC 5545 text
  ends        text NOT NULL DEFAULT '',                        -- the release of the zone database by which it was read, and where its COUNTs end
  since       text NOT NULL CHECK (coalesce(since GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(since, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', since) AND since BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', since IS NULL)),  -- the row decided all nominal times from here on, to decided_through of the plan
  changed_at  text CHECK (coalesce(changed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(changed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', changed_at) AND changed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', changed_at IS NULL)),  -- the changed_at of the schedule at that time: it has another one since a command has changed the rule
  PRIMARY KEY (job_id, schedule_id)
) STRICT;

-- Ends of runs, for a job that runs after several others. The job gets a run when each of the others has an end for
-- the same interval. A decision for the job deletes these rows.
CREATE TABLE IF NOT EXISTS dbjobs_job_ends (
  id           integer PRIMARY KEY,
  job_id       integer NOT NULL,                               -- the job that runs after others
  meets        text NOT NULL,                                  -- the end of the interval, or the run from which all of them come
  after_job_id integer NOT NULL,                               -- one of the others
  run_id       text NOT NULL,                                  -- its run
  ended_at     text NOT NULL,                                  -- when that run was settled
  seen         integer NOT NULL DEFAULT 0 CHECK (seen IN (0, 1)),  -- a decision has seen it, and found that others are missing
  UNIQUE (job_id, meets, after_job_id)
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_job_ends_unseen ON dbjobs_job_ends (job_id, meets) WHERE seen = 0;
CREATE INDEX IF NOT EXISTS dbjobs_job_ends_old ON dbjobs_job_ends (job_id, ended_at);

-- The lock under which a group's cap is decided. Lock order: plans, groups, runs.
CREATE TABLE IF NOT EXISTS dbjobs_group_plans (
  name text NOT NULL PRIMARY KEY
) STRICT;

-- ------------------------------------------------------------------------------------------------------ ledger

-- One row for each occurrence that is to be executed.
--
--                     +--------- retry, lease expired -----------+
--                     v                                          |
--   (decided) --> waiting --> queued --> running --> succeeded | failed | cancelled | lost --> settled
CREATE TABLE IF NOT EXISTS dbjobs_runs (
  id             text NOT NULL PRIMARY KEY,                             -- a UUIDv7 of the database's instant of the decision; any other UUID works too: created_at and ready_at define the order
  job_id         integer NOT NULL,
  number         integer,                                       -- 1, 2, ... within the job; NULL until decided
  occurrence     text NOT NULL,                                -- at:<instant>, now:<id>, key:<key>, start:<identity>, after:<run>[:<first run>], fill:..., hook:...
  state          text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'queued', 'running', 'succeeded', 'failed', 'cancelled', 'lost')),
  held_by        text CHECK (held_by IN ('predecessor', 'group', 'pause')),     -- what a waiting run waits for, besides ready_at
  queue          text NOT NULL DEFAULT 'tick' CHECK (length(CAST(queue AS BLOB)) BETWEEN 1 AND 190),
  priority       integer NOT NULL DEFAULT 0,
  scheduled_for  text CHECK (coalesce(scheduled_for GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(scheduled_for, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', scheduled_for) AND scheduled_for BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', scheduled_for IS NULL)),                                  -- the nominal time; NULL: a request
  interval_start text CHECK (coalesce(interval_start GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(interval_start, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', interval_start) AND interval_start BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', interval_start IS NULL)),                                  -- the data interval, from the last nominal time that became a run ...
  interval_end   text CHECK (coalesce(interval_end GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(interval_end, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', interval_end) AND interval_end BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', interval_end IS NULL)),                                  -- ... to this one
  args           text,                                        -- of a request: an object
  ready_at       text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(ready_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(ready_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', ready_at) AND ready_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', ready_at IS NULL)),  -- it does not start before this: jitter, back-off
  queued_at      text CHECK (coalesce(queued_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(queued_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', queued_at) AND queued_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', queued_at IS NULL)),  -- when a decision queued it after a wait; NULL: it was queued when it was ready
  step           integer NOT NULL DEFAULT 1,                   -- the step at which it starts or continues
  step_name      text,                                         -- the name of that step, where no attempt tells it: see @last_step (store/engine/shared.go)
  attempt        integer NOT NULL DEFAULT 0 CHECK (attempt <= 2000000000),                   -- tries of that step
  attempts       integer NOT NULL DEFAULT 0 CHECK (attempts <= 2000000000),                   -- tries of all steps: the newest number in dbjobs_attempts
  fence          integer NOT NULL DEFAULT 0 CHECK (fence <= 2000000000),                   -- times delivered; a writer with another number is outdated
  losses         integer NOT NULL DEFAULT 0 CHECK (losses <= 2000000000),                   -- times its step was delivered without coming back
  lease_until    text CHECK (coalesce(lease_until GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(lease_until, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', lease_until) AND lease_until BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', lease_until IS NULL)),  -- the holder has to report before this; of a queued run: when it was given back
  holder         text,                                         -- who holds it: host and process
  cancel_at      text CHECK (coalesce(cancel_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(cancel_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', cancel_at) AND cancel_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', cancel_at IS NULL)),  -- when somebody asked to cancel it: the next decision or the holder does so
  cancel_by      text,
  created_at     text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(created_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(created_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', created_at) AND created_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', created_at IS NULL)),
  started_at     text CHECK (coalesce(started_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(started_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', started_at) AND started_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', started_at IS NULL)),                                  -- first delivered
  finished_at    text CHECK (coalesce(finished_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(finished_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', finished_at) AND finished_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', finished_at IS NULL)),  -- reached its final state
  settled_at     text CHECK (coalesce(settled_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(settled_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', settled_at) AND settled_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', settled_at IS NULL)),                                  -- the job's facts include it
  expires_at     text CHECK (coalesce(expires_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(expires_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', expires_at) AND expires_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', expires_at IS NULL)),                                  -- may be pruned from then on
  error          text,                                         -- of the attempt that decided its end
  wake_at        text GENERATED ALWAYS AS (             -- the job needs a decision: a wait is over, a cancel was asked for, a lease ended 30 s ago (only then it counts as expired), a run was given back or has ended
    CASE WHEN state = 'waiting' THEN CASE WHEN cancel_at IS NOT NULL THEN cancel_at WHEN held_by IS NULL THEN ready_at END
         WHEN state = 'running' THEN coalesce(strftime('%Y-%m-%dT%H:%M:%S', lease_until, '30 seconds') || substr(lease_until, 20), lease_until)
         WHEN state = 'queued' THEN lease_until
         WHEN settled_at IS NULL THEN created_at END) STORED,
  queued_since   text GENERATED ALWAYS AS (        -- of a queued run: since when it could be taken; what held it before is no part of that
    CASE WHEN state = 'queued' THEN COALESCE(queued_at, ready_at) END) STORED,
  UNIQUE (job_id, occurrence)
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_runs_number ON dbjobs_runs (job_id, number);
CREATE INDEX IF NOT EXISTS dbjobs_runs_open ON dbjobs_runs (job_id, id) WHERE settled_at IS NULL;
CREATE INDEX IF NOT EXISTS dbjobs_runs_wake ON dbjobs_runs (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_runs_queued ON dbjobs_runs (queue, priority DESC, ready_at, id) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS dbjobs_runs_queued_since ON dbjobs_runs (queued_since) WHERE queued_since IS NOT NULL;
CREATE INDEX IF NOT EXISTS dbjobs_runs_created ON dbjobs_runs (created_at, id);
CREATE INDEX IF NOT EXISTS dbjobs_runs_unwell ON dbjobs_runs (state, created_at, id) WHERE state IN ('failed', 'cancelled', 'lost');
CREATE INDEX IF NOT EXISTS dbjobs_runs_expire ON dbjobs_runs (expires_at) WHERE expires_at IS NOT NULL;

-- Each try of a step.
CREATE TABLE IF NOT EXISTS dbjobs_attempts (
  run_id        text NOT NULL,
  number        integer NOT NULL,                              -- 1, 2, ... within the run
  step          integer NOT NULL,
  step_name     text NOT NULL,
  attempt       integer NOT NULL,                              -- 1, 2, ... of that step
  fence         integer NOT NULL,                              -- the delivery that it belongs to
  holder        text NOT NULL,
  state         text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'succeeded', 'failed', 'cancelled', 'lost', 'cut')),
  started_at    text NOT NULL CHECK (coalesce(started_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(started_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', started_at) AND started_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', started_at IS NULL)),
  finished_at   text CHECK (coalesce(finished_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(finished_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', finished_at) AND finished_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', finished_at IS NULL)),
  rows_affected integer,
  error         text,
  error_code    text,                                          -- SQLSTATE, error number, HTTP status, exit code
  error_line    integer,                                       -- where the engine gives it
  error_severity text,
  error_detail  text,                                      -- what PostgreSQL adds to the message, and its advice
  error_hint    text,
  output        text,                                          -- its output, at most 16 KiB: rows, notices, the text that a program printed
  result        text,                                          -- a value that later steps can name: JSON, kept only if one of them does
  PRIMARY KEY (run_id, number)
) STRICT;

-- A stretch of nominal times that a decision did not run: those times of its rule in (from_at, through_at] that have no
-- run.
CREATE TABLE IF NOT EXISTS dbjobs_gaps (
  job_id      integer NOT NULL,
  schedule_id integer NOT NULL,
  from_at     text NOT NULL CHECK (coalesce(from_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(from_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', from_at) AND from_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', from_at IS NULL)),
  through_at  text NOT NULL CHECK (coalesce(through_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(through_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', through_at) AND through_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', through_at IS NULL)),
  reason      text NOT NULL CHECK (reason IN ('missed', 'overlap', 'paused', 'disabled', 'edited', 'over-limit', 'skipped')),
  rule        text NOT NULL,                                   -- RFC 5545 text, as it was
  recorded_at text NOT NULL CHECK (coalesce(recorded_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(recorded_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', recorded_at) AND recorded_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', recorded_at IS NULL)),                            -- of the decision, or of the last one that extended it
  PRIMARY KEY (job_id, schedule_id, through_at, reason)
) STRICT;

-- Changes of definitions, with who, when and why.
CREATE TABLE IF NOT EXISTS dbjobs_changes (
  id         integer PRIMARY KEY AUTOINCREMENT,
  changed_at text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')) CHECK (coalesce(changed_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(changed_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', changed_at) AND changed_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', changed_at IS NULL)),
  changed_by text NOT NULL DEFAULT '',
  kind       text NOT NULL CHECK (kind IN ('job', 'schedule', 'calendar', 'group', 'pause')),
  subject_id integer,
  subject    text NOT NULL,                                    -- its name at the time; a job's is owner/name
  action     text NOT NULL,                                    -- create, change, remove, pause, resume, ...
  reason     text NOT NULL DEFAULT '',
  was        text,
  became     text
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_changes_subject ON dbjobs_changes (kind, subject_id, id);
-- What says the state or the definition of a job: a job may have very many requests of runs on record.
CREATE INDEX IF NOT EXISTS dbjobs_changes_defined ON dbjobs_changes (subject_id, id)
  WHERE kind = 'job' AND action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort');
-- Requests, the oldest first: they go by their age.
CREATE INDEX IF NOT EXISTS dbjobs_changes_asked ON dbjobs_changes (changed_at) WHERE action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan');

-- When ticks came. There is one row for each name and unbroken stretch of ticks. The time between two rows is a silence.
CREATE TABLE IF NOT EXISTS dbjobs_ticks (
  name        text NOT NULL,
  since       text NOT NULL CHECK (coalesce(since GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(since, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', since) AND since BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', since IS NULL)),                            -- the first tick of the stretch
  last_at     text NOT NULL CHECK (coalesce(last_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(last_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', last_at) AND last_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', last_at IS NULL)),                            -- when the newest one ended
  began_at    text CHECK (coalesce(began_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(began_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', began_at) AND began_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', began_at IS NULL)),                            -- when the newest pass on record began: the one that began last, and not the one that ended last; a pass that failed does not count
  checked_at  text CHECK (coalesce(checked_at GLOB '*:[0-9][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND substr(checked_at, 1, 19) = strftime('%Y-%m-%dT%H:%M:%S', checked_at) AND checked_at BETWEEN '1000' AND '9999-12-31T23:59:59.000000Z', checked_at IS NULL)),                            -- when the newest pass began that has looked for deleted rows
  passes      integer NOT NULL DEFAULT 1,
  holder      text NOT NULL,                                   -- host and process of the newest
  version     text NOT NULL,                                   -- of its program
  decided     integer NOT NULL DEFAULT 0,                       -- jobs decided in the stretch
  started     integer NOT NULL DEFAULT 0,                       -- runs started
  failed      integer NOT NULL DEFAULT 0,                       -- runs that failed
  error       text,                                            -- of the newest pass that failed
  took_ms     integer,                                         -- how long the newest pass took
  PRIMARY KEY (name, since)
) STRICT;
CREATE INDEX IF NOT EXISTS dbjobs_ticks_since ON dbjobs_ticks (since);
