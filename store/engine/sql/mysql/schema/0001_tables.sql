-- The tables of dbjobs on MySQL and MariaDB. There are no partial indexes. Where the other engines have
-- an index with a condition, the index is here on a generated column that is NULL where the condition does not hold.
--
-- Three kinds:
--   definitions  written by people: commands, apply, plain SQL. What the program writes there is in store/doc.go.
--   plans        written by the program, under the lock of the job's plan row.
--   ledger       written by the program; workers in any language may update the run that they hold.
-- No foreign key leads from plans or ledger to definitions: a definition may go while its history stays.
-- Every instant is a DATETIME(6) in UTC; every duration is in whole milliseconds and named so. JSON is text, as it was
-- written: MySQL's own type would keep a large number as the nearest double.
--
-- The default of an owner is for plain SQL. It is the login as everywhere, all before the last @ of USER(): the name of an account
-- may have an @, and what comes before the first one may be another account.
--
-- What has to be one of several words is looked up with FIND_IN_SET: to = and IN, a blank at the end is nothing, and a
-- decision knows no such word.
--
-- Each statement ends with a semicolon at the end of a line, and can be run twice.

-- ------------------------------------------------------------------------------------------------- definitions

-- A schedule is a named recurrence set; many jobs may use one. A job's own rule (rule: in jobs.yaml) is a
-- schedule without a name that belongs to that job.
CREATE TABLE IF NOT EXISTS dbjobs_schedules (
  id           bigint AUTO_INCREMENT PRIMARY KEY,
  name         varchar(190) UNIQUE,                                    -- NULL: the own rule of the job in job_id
  job_id       bigint,                                         -- the job that this unnamed schedule belongs to
  owner        varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),  -- the login that made it; for a job's own rule, the owner of the job counts
  rule         text NOT NULL,                                  -- any form that dbjobs reads: RRULE text, cron, every, at, ...
  zone         varchar(190) NOT NULL DEFAULT 'UTC',                    -- IANA name; what wall times in the rule mean
  nonexistent  varchar(190) NOT NULL DEFAULT 'forward' CHECK (FIND_IN_SET(nonexistent, 'forward,skip') > 0),      -- a wall time that a clock change leaves out
  ambiguous    varchar(190) NOT NULL DEFAULT 'first' CHECK (FIND_IN_SET(ambiguous, 'first,last,both') > 0),    -- a wall time that a clock change repeats
  description  varchar(1000) NOT NULL DEFAULT '',
  manifest     varchar(190),                                           -- the manifest that owns the row, and may prune it
  created_at   datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (created_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(created_at) > 0 AND DAYOFMONTH(created_at) > 0),   -- rules that count "from creation" count from here
  changed_at   datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (changed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(changed_at) > 0 AND DAYOFMONTH(changed_at) > 0),   -- commands that change the rule set it: the new rule counts from here
  calendar     varchar(190) NOT NULL DEFAULT '',               -- name of the calendar whose holidays count; empty: none
  on_holiday   varchar(190) NOT NULL DEFAULT 'skip' CHECK (FIND_IN_SET(on_holiday, 'skip,next,previous') > 0),  -- what happens to a time on a holiday
  calendar_version varchar(190) NOT NULL DEFAULT '',           -- the version of the calendar's days; the program writes it when they change
  plan_input   text GENERATED ALWAYS AS (CONCAT_WS(CHAR(31 USING utf8mb4), rule, zone, nonexistent, ambiguous,
    CASE WHEN calendar = '' THEN NULL ELSE CONCAT_WS(CHAR(31 USING utf8mb4), calendar, on_holiday, calendar_version) END)) STORED,
  planned      text,                                           -- the plan_input from which all its jobs were planned
  parked       text,                                           -- why it cannot be used, as the last pass that looked at it found; NULL: it can be used
  CHECK ((name IS NULL) <> (job_id IS NULL)),
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> plan_input THEN NULL ELSE 1 END) STORED,
  UNIQUE KEY schedules_job (job_id),
  KEY schedules_stale (stale, id),
  KEY schedules_calendar (calendar)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A calendar has the days on which the schedules that name it do nothing. Plans contain the days, so the next pass
-- brings an edit of a calendar into the plans, as it does with an edit of a schedule.
CREATE TABLE IF NOT EXISTS dbjobs_calendars (
  name         varchar(190) PRIMARY KEY,
  owner        varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),  -- the login that made it
  working_days varchar(190) NOT NULL DEFAULT '',               -- weekdays, such as MO-FR; empty: all of them
  days         mediumtext NOT NULL DEFAULT (''),               -- a line for each holiday: 2026-12-25 Christmas Day, 2026-12-24..2026-12-31, or 12-25 of each year
  description  varchar(1000) NOT NULL DEFAULT '',
  manifest     varchar(190),                                   -- the manifest that owns the row, and may prune it
  plan_input   mediumtext GENERATED ALWAYS AS (CONCAT_WS(CHAR(31 USING utf8mb4), name, working_days, days)) STORED,
  planned      mediumtext,                                     -- the plan_input that its schedules know
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> plan_input THEN NULL ELSE 1 END) STORED,
  KEY calendars_stale (stale, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A job: what to do (its steps), for whom, when (its links to schedules), and its policies.
CREATE TABLE IF NOT EXISTS dbjobs_jobs (
  id               bigint AUTO_INCREMENT PRIMARY KEY,
  owner            varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),         -- the login that its SQL steps run as
  name             varchar(190) NOT NULL,
  description      varchar(1000) NOT NULL DEFAULT '',
  enabled          boolean NOT NULL DEFAULT true CHECK (enabled IN (0, 1)),              -- false: nothing is decided for it
  tags             longtext NOT NULL DEFAULT ('[]') CHECK (JSON_VALID(tags) AND JSON_TYPE(tags) = 'ARRAY'),  -- array of strings; a pause can name a tag
  queue            varchar(190) NOT NULL DEFAULT 'tick' CHECK (LENGTH(queue) > 0),               -- who takes its runs: the tick, or a worker of that queue
  priority         int NOT NULL DEFAULT 0,                 -- higher is taken first within a queue
  group_name       varchar(190),                                       -- shares the cap of dbjobs_groups
  overlap          varchar(190) NOT NULL DEFAULT 'wait' CHECK (FIND_IN_SET(overlap, 'wait,wait-all,skip,allow,replace') > 0),
  max_running      int NOT NULL DEFAULT 1 CHECK (max_running > 0),      -- with overlap allow
  missed           varchar(190) NOT NULL DEFAULT 'latest' CHECK (FIND_IN_SET(missed, 'latest,all,skip') > 0),
  missed_limit     int NOT NULL DEFAULT 100 CHECK (missed_limit > 0),   -- with missed all: how many of the newest missed times run
  missed_within_ms bigint CHECK (missed_within_ms BETWEEN 1 AND 9000000000000),        -- older than this is a gap; NULL: no limit
  missed_grace_ms  bigint NOT NULL DEFAULT 120000 CHECK (missed_grace_ms BETWEEN 1 AND 9000000000000),    -- with missed skip: how late the newest time may be
  retry_attempts   int NOT NULL DEFAULT 1 CHECK (retry_attempts >= 0),  -- tries of a step; 0: until the next occurrence
  retry_backoff_ms bigint NOT NULL DEFAULT 10000 CHECK (retry_backoff_ms BETWEEN 0 AND 9000000000000),         -- doubles with every try ...
  retry_max_backoff_ms bigint NOT NULL DEFAULT 3600000 CHECK (retry_max_backoff_ms BETWEEN 0 AND 9000000000000),   -- ... up to this
  retry_jitter     int NOT NULL DEFAULT 10 CHECK (retry_jitter BETWEEN 0 AND 100),  -- per cent of the back-off added at random
  max_deliveries   int NOT NULL DEFAULT 3 CHECK (max_deliveries > 0),         -- times a run may be delivered and not come back; 1: at most once
  on_error         varchar(190) NOT NULL DEFAULT 'continue' CHECK (FIND_IN_SET(on_error, 'continue,pause') > 0),
  pause_after_failures int CHECK (pause_after_failures > 0),            -- failed runs in a row that pause the job
  timeout_ms       bigint CHECK (timeout_ms BETWEEN 1 AND 9000000000000),              -- of a whole run; NULL: none
  jitter_ms        bigint NOT NULL DEFAULT 0 CHECK (jitter_ms BETWEEN 0 AND 9000000000000),        -- a run becomes ready later, by up to this; always by the same for one occurrence
  max_runs         bigint CHECK (max_runs > 0),              -- finished after this number of runs
  not_before       datetime(6) CHECK (not_before BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(not_before) > 0 AND DAYOFMONTH(not_before) > 0),                                -- nominal times before this are not times of the job
  not_after        datetime(6) CHECK (not_after BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(not_after) > 0 AND DAYOFMONTH(not_after) > 0),                                -- nominal times after this are not times of the job
  start_rule       text,                                       -- the start schedule: its first time after the job was made, or got it, is not_before; the next pass writes that where it is NULL
  start_zone       varchar(190),                              -- the zone of its wall times; NULL: UTC
  repeat_after_ms  bigint CHECK (repeat_after_ms BETWEEN 1 AND 9000000000000),         -- instead of a schedule: the next run is this long after the end of the last one
  on_startup       boolean NOT NULL DEFAULT false CHECK (on_startup IN (0, 1)),             -- runs once for each start-up identity that a tick reports
  keep_runs        int NOT NULL DEFAULT 1000 CHECK (keep_runs > 0),     -- newest runs kept
  keep_age_ms      bigint NOT NULL DEFAULT 7776000000 CHECK (keep_age_ms BETWEEN 1 AND 9000000000000),  -- runs older than this (90 days) are deleted
  remove_when_done boolean NOT NULL DEFAULT false CHECK (remove_when_done IN (0, 1)),             -- removed when the job has no further run and its last run has succeeded
  on_failed        varchar(381),  -- the job that is run once for each failed run: its name, or owner/name; the same below
  on_recovered     varchar(381),
  on_missed        varchar(381),
  on_late          varchar(381),
  on_lost          varchar(381),
  on_parked        varchar(381),
  on_paused        varchar(381),
  heartbeat_url    text,                                       -- an outside service that gets signals about its runs; or one URL for each signal:
  heartbeat_start  text,
  heartbeat_success text,
  heartbeat_failure text,
  manifest         varchar(190),                                       -- the manifest that owns the row, and may prune it
  created_at       datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (created_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(created_at) > 0 AND DAYOFMONTH(created_at) > 0),      -- nominal times count from here
  changed_at       datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (changed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(changed_at) > 0 AND DAYOFMONTH(changed_at) > 0),
  removed_at       datetime(6) CHECK (removed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(removed_at) > 0 AND DAYOFMONTH(removed_at) > 0),                                -- removed: the name is free, the ledger stays until pruned
  done_at          datetime(6) CHECK (done_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(done_at) > 0 AND DAYOFMONTH(done_at) > 0),                               -- when remove_when_done removed it: apply makes no new job of the same definition
  -- All values that a decision reads of the job, except the identity of the job. Jobs with the same text are alike to a
  -- decision. If this expression changes, the text of every job differs from planned, so the next pass decides for all
  -- jobs at once. planInput (store/job.go) names the fields in this order. A new field goes to the end.
  plan_input       text GENERATED ALWAYS AS (
    CONCAT_WS(CHAR(31 USING utf8mb4), enabled, COALESCE(removed_at, ''), COALESCE(not_before, ''), COALESCE(not_after, ''),
      jitter_ms, COALESCE(repeat_after_ms, ''), COALESCE(max_runs, ''), overlap, max_running, QUOTE(group_name), QUOTE(queue),
      priority, missed, missed_limit, COALESCE(missed_within_ms, ''), missed_grace_ms, retry_attempts, retry_backoff_ms,
      retry_max_backoff_ms, retry_jitter, max_deliveries, on_error, COALESCE(pause_after_failures, ''), COALESCE(timeout_ms, ''), on_startup,
      keep_runs, keep_age_ms, remove_when_done, COALESCE(start_zone, ''),
      COALESCE(start_rule, ''), tags, owner,
      COALESCE(on_failed, ''), COALESCE(on_recovered, ''), COALESCE(on_missed, ''), COALESCE(on_late, ''),
      COALESCE(on_lost, ''), COALESCE(on_parked, ''), COALESCE(on_paused, ''))) STORED,
  planned          text,  -- the plan_input from which its plan was made
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> plan_input THEN NULL ELSE 1 END) STORED,
  live_name varchar(190) GENERATED ALWAYS AS (CASE WHEN removed_at IS NULL THEN name END) STORED,
  has_hooks tinyint GENERATED ALWAYS AS (CASE WHEN removed_at IS NULL AND COALESCE(on_failed, on_recovered, on_missed, on_late, on_lost, on_parked, on_paused) IS NOT NULL THEN 1 END) STORED,
  UNIQUE KEY jobs_name (live_name, owner),
  KEY jobs_group (group_name),
  KEY jobs_startup (on_startup, id),
  KEY jobs_hooks (has_hooks, id),
  KEY jobs_stale (stale, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The steps of a job, in order.
CREATE TABLE IF NOT EXISTS dbjobs_steps (
  job_id               bigint NOT NULL,
  position             int NOT NULL CHECK (position > 0),  -- 1, 2, ...
  name                 varchar(190) NOT NULL,
  executor             varchar(190) NOT NULL,                          -- sql, ...: what is done
  spec                 longtext NOT NULL CHECK (JSON_VALID(spec)),  -- the executor's own arguments, as an object
  timeout_ms           bigint CHECK (timeout_ms BETWEEN 1 AND 9000000000000),          -- of one attempt; NULL: none
  retry_attempts       int CHECK (retry_attempts >= 0),    -- NULL: the value of the job; the same below
  retry_backoff_ms     bigint CHECK (retry_backoff_ms BETWEEN 0 AND 9000000000000),
  retry_max_backoff_ms bigint CHECK (retry_max_backoff_ms BETWEEN 0 AND 9000000000000),
  retry_jitter         int CHECK (retry_jitter BETWEEN 0 AND 100),
  on_success           varchar(190) NOT NULL DEFAULT 'next',           -- next, succeed, fail, or step:NAME
  on_failure           varchar(190) NOT NULL DEFAULT 'fail',           -- the same
  PRIMARY KEY (job_id, position),
  UNIQUE (job_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which jobs use which schedules.
CREATE TABLE IF NOT EXISTS dbjobs_job_schedules (
  job_id      bigint NOT NULL,
  schedule_id bigint NOT NULL,
  created_at  datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (created_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(created_at) > 0 AND DAYOFMONTH(created_at) > 0),    -- from here on, the schedule's nominal times are times of the job
  planned     bigint,                                          -- the schedule_id that the plan knows
  PRIMARY KEY (job_id, schedule_id),
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> schedule_id THEN NULL ELSE 1 END) STORED,
  KEY job_schedules_schedule (schedule_id, job_id),
  KEY job_schedules_stale (stale, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Which jobs run after which others, and after which ends of their runs.
CREATE TABLE IF NOT EXISTS dbjobs_job_after (
  job_id       bigint NOT NULL,
  after_job_id bigint NOT NULL,
  on_end       varchar(190) NOT NULL DEFAULT 'success' CHECK (FIND_IN_SET(on_end, 'success,failure,end') > 0),  -- a lost run is a failure; end is any end, also of a cancelled run
  planned      bigint,                                         -- the after_job_id that a decision has seen
  PRIMARY KEY (job_id, after_job_id),
  CHECK (job_id <> after_job_id),
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> after_job_id THEN NULL ELSE 1 END) STORED,
  KEY job_after_job (after_job_id, job_id),
  KEY job_after_stale (stale, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A cap that several jobs share.
CREATE TABLE IF NOT EXISTS dbjobs_groups (
  name        varchar(190) PRIMARY KEY,
  owner       varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),  -- the login that made it
  max_running int NOT NULL CHECK (max_running > 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Pauses, as intervals that stay on record for 400 days after their end.
CREATE TABLE IF NOT EXISTS dbjobs_pauses (
  id         bigint AUTO_INCREMENT PRIMARY KEY,
  scope      varchar(190) NOT NULL CHECK (FIND_IN_SET(scope, 'job,schedule,tag,owner,all') > 0),
  subject_id bigint,                                           -- of a job or schedule
  subject    varchar(190),                                             -- the tag or owner
  reason     varchar(1000) NOT NULL DEFAULT '',
  paused_by  varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),
  since      datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (since BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(since) > 0 AND DAYOFMONTH(since) > 0),
  until_at   datetime(6) CHECK (until_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(until_at) > 0 AND DAYOFMONTH(until_at) > 0),                                      -- ends by itself; NULL: until resumed
  until_as   varchar(190) CHECK (FIND_IN_SET(until_as, 'length,day') > 0),  -- how until_at was given: as a length, or as a day after the present one; NULL: as an instant
  resumed_at datetime(6) CHECK (resumed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(resumed_at) > 0 AND DAYOFMONTH(resumed_at) > 0),
  resumed_by varchar(190),
  missed     boolean NOT NULL DEFAULT false CHECK (missed IN (0, 1)),                   -- resumed with the missed times: the interval holds back no time
  plan_input text GENERATED ALWAYS AS (CONCAT_WS(CHAR(31 USING utf8mb4), COALESCE(until_at, ''), COALESCE(resumed_at, ''))) STORED,
  ends_at    datetime(6) GENERATED ALWAYS AS (                 -- the earlier of the two; without both, the end of time
    LEAST(COALESCE(until_at, TIMESTAMP'9999-12-31 23:59:59'), COALESCE(resumed_at, TIMESTAMP'9999-12-31 23:59:59'))) STORED,
  planned    text,  -- the plan_input that its jobs have seen
  stale tinyint GENERATED ALWAYS AS (CASE WHEN planned <=> plan_input THEN NULL ELSE 1 END) STORED,
  KEY pauses_ends (scope, ends_at),
  KEY pauses_subject (scope, subject_id, ends_at),
  KEY pauses_stale (stale, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ------------------------------------------------------------------------------------------------------- plans

-- One narrow row for each job. The session that holds the lock of the row may decide for the job. Where there is no
-- lock, version makes a decision conditional on the values that it read.
CREATE TABLE IF NOT EXISTS dbjobs_plans (
  job_id             bigint PRIMARY KEY,
  owner              varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),   -- the owner of the job, whose ticks decide its nominal times; on SQLite it is empty
  version            bigint NOT NULL DEFAULT 0,                -- grows by one with every decision
  next_run           datetime(6) CHECK (next_run BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(next_run) > 0 AND DAYOFMONTH(next_run) > 0),                              -- when the job needs a decision; NULL: at no time
  decided_through    datetime(6) CHECK (decided_through BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(decided_through) > 0 AND DAYOFMONTH(decided_through) > 0),                              -- every nominal time up to here has a run or lies in a gap
  parked             text,                                     -- why the job is parked; NULL: it is not
  last_scheduled_for datetime(6) CHECK (last_scheduled_for BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(last_scheduled_for) > 0 AND DAYOFMONTH(last_scheduled_for) > 0),                              -- the newest nominal time that became a run: where the next interval starts
  last_run_id        char(36) CHARACTER SET ascii COLLATE ascii_bin,                                     -- the run that ended last; its facts follow
  last_state         varchar(190),
  last_finished_at   datetime(6) CHECK (last_finished_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(last_finished_at) > 0 AND DAYOFMONTH(last_finished_at) > 0),
  last_success_at    datetime(6) CHECK (last_success_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(last_success_at) > 0 AND DAYOFMONTH(last_success_at) > 0),
  last_error         text,
  streak             int NOT NULL DEFAULT 0 CHECK (streak <= 2000000000),               -- failed runs in a row
  cycles             bigint NOT NULL DEFAULT 0 CHECK (cycles <= 4000000000000000000),                -- runs ended
  runs_made          bigint NOT NULL DEFAULT 0 CHECK (runs_made <= 4000000000000000000),                -- runs made; the next run has this number plus one
  startup_ids        text,  -- the start-up identities for which it ran, the newest first, each with a line end before and after it
  skips              mediumtext,  -- future nominal times that somebody has decided not to run, as JSON; NULL: none
  repeat_from        datetime(6) CHECK (repeat_from BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(repeat_from) > 0 AND DAYOFMONTH(repeat_from) > 0),                            -- repeat_after counts from here: the last end, or the decision that a time has no run
  parked_job_id bigint GENERATED ALWAYS AS (CASE WHEN parked IS NOT NULL THEN job_id END) STORED,
  failing_job_id bigint GENERATED ALWAYS AS (CASE WHEN streak > 0 THEN job_id END) STORED,
  KEY plans_next_run (owner, next_run, job_id),
  KEY plans_parked (parked_job_id),
  KEY plans_failing (failing_job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The rules from which a job was planned. When a rule is edited, the times that the old rule still owes are counted
-- from here.
CREATE TABLE IF NOT EXISTS dbjobs_plan_rules (
  job_id      bigint NOT NULL,
  schedule_id bigint NOT NULL,
  input       text NOT NULL,                                   -- the schedule's plan_input at that time
  rule        text NOT NULL,                                   -- RFC 5545 text
  ends        text NOT NULL DEFAULT (''),                        -- the release of the zone database by which it was read, and where its COUNTs end
  since       datetime(6) NOT NULL CHECK (since BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(since) > 0 AND DAYOFMONTH(since) > 0),  -- the row decided all nominal times from here on, to decided_through of the plan
  changed_at  datetime(6) CHECK (changed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(changed_at) > 0 AND DAYOFMONTH(changed_at) > 0),  -- the changed_at of the schedule at that time: it has another one since a command has changed the rule
  PRIMARY KEY (job_id, schedule_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Ends of runs, for a job that runs after several others. The job gets a run when each of the others has an end for
-- the same interval. A decision for the job deletes these rows.
CREATE TABLE IF NOT EXISTS dbjobs_job_ends (
  id           bigint AUTO_INCREMENT PRIMARY KEY,
  job_id       bigint NOT NULL,                                -- the job that runs after others
  meets        varchar(190) NOT NULL,                          -- the end of the interval, or the run from which all of them come
  after_job_id bigint NOT NULL,                                -- one of the others
  run_id       char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,  -- its run
  ended_at     datetime(6) NOT NULL,                           -- when that run was settled
  seen         boolean NOT NULL DEFAULT false CHECK (seen IN (0, 1)),  -- a decision has seen it, and found that others are missing
  UNIQUE KEY job_ends_meets (job_id, meets, after_job_id),
  KEY job_ends_unseen (seen, job_id, meets),
  KEY job_ends_old (job_id, ended_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The lock under which a group's cap is decided. Lock order: plans, groups, runs.
CREATE TABLE IF NOT EXISTS dbjobs_group_plans (
  name varchar(190) PRIMARY KEY
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- ------------------------------------------------------------------------------------------------------ ledger

-- One row for each occurrence that is to be executed.
--
--                     +--------- retry, lease expired -----------+
--                     v                                          |
--   (decided) --> waiting --> queued --> running --> succeeded | failed | cancelled | lost --> settled
CREATE TABLE IF NOT EXISTS dbjobs_runs (
  id             char(36) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,                             -- a UUIDv7 of the database's instant of the decision; any other UUID works too: created_at and ready_at define the order
  job_id         bigint NOT NULL,
  number         bigint,                                       -- 1, 2, ... within the job; NULL until decided
  occurrence     varchar(190) NOT NULL,                                -- at:<instant>, now:<id>, key:<key>, start:<identity>, after:<run>[:<first run>], fill:..., hook:...
  state          varchar(190) NOT NULL DEFAULT 'waiting' CHECK (FIND_IN_SET(state, 'waiting,queued,running,succeeded,failed,cancelled,lost') > 0),
  held_by        varchar(190) CHECK (FIND_IN_SET(held_by, 'predecessor,group,pause') > 0),     -- what a waiting run waits for, besides ready_at
  queue          varchar(190) NOT NULL DEFAULT 'tick' CHECK (LENGTH(queue) > 0),
  priority       int NOT NULL DEFAULT 0,
  scheduled_for  datetime(6) CHECK (scheduled_for BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(scheduled_for) > 0 AND DAYOFMONTH(scheduled_for) > 0),                                  -- the nominal time; NULL: a request
  interval_start datetime(6) CHECK (interval_start BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(interval_start) > 0 AND DAYOFMONTH(interval_start) > 0),                                  -- the data interval, from the last nominal time that became a run ...
  interval_end   datetime(6) CHECK (interval_end BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(interval_end) > 0 AND DAYOFMONTH(interval_end) > 0),                                  -- ... to this one
  args           longtext CHECK (JSON_VALID(args)),           -- of a request: an object
  ready_at       datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (ready_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(ready_at) > 0 AND DAYOFMONTH(ready_at) > 0),    -- it does not start before this: jitter, back-off
  queued_at      datetime(6) CHECK (queued_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(queued_at) > 0 AND DAYOFMONTH(queued_at) > 0),    -- when a decision queued it after a wait; NULL: it was queued when it was ready
  step           int NOT NULL DEFAULT 1,                   -- the step at which it starts or continues
  step_name      varchar(190),                             -- the name of that step, where no attempt tells it: see @last_step (store/engine/shared.go)
  attempt        int NOT NULL DEFAULT 0 CHECK (attempt <= 2000000000),                   -- tries of that step
  attempts       int NOT NULL DEFAULT 0 CHECK (attempts <= 2000000000),                   -- tries of all steps: the newest number in dbjobs_attempts
  fence          int NOT NULL DEFAULT 0 CHECK (fence <= 2000000000),                   -- times delivered; a writer with another number is outdated
  losses         int NOT NULL DEFAULT 0 CHECK (losses <= 2000000000),                   -- times its step was delivered without coming back
  lease_until    datetime(6) CHECK (lease_until BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(lease_until) > 0 AND DAYOFMONTH(lease_until) > 0),                                  -- the holder has to report before this; of a queued run: when it was given back
  holder         varchar(190),                                         -- who holds it: host and process
  cancel_at      datetime(6) CHECK (cancel_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(cancel_at) > 0 AND DAYOFMONTH(cancel_at) > 0),                                  -- when somebody asked to cancel it: the next decision or the holder does so
  cancel_by      varchar(190),
  created_at     datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (created_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(created_at) > 0 AND DAYOFMONTH(created_at) > 0),
  started_at     datetime(6) CHECK (started_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(started_at) > 0 AND DAYOFMONTH(started_at) > 0),                                  -- first delivered
  finished_at    datetime(6) CHECK (finished_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(finished_at) > 0 AND DAYOFMONTH(finished_at) > 0),                                  -- reached its final state
  settled_at     datetime(6) CHECK (settled_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(settled_at) > 0 AND DAYOFMONTH(settled_at) > 0),                                  -- the job's facts include it
  expires_at     datetime(6) CHECK (expires_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(expires_at) > 0 AND DAYOFMONTH(expires_at) > 0),                                  -- may be pruned from then on
  error          text,                                         -- of the attempt that decided its end
  wake_at        datetime(6) GENERATED ALWAYS AS (             -- the job needs a decision: a wait is over, a cancel was asked for, a lease ended 30 s ago (only then it counts as expired), a run was given back or has ended
    CASE WHEN state = 'waiting' THEN CASE WHEN cancel_at IS NOT NULL THEN cancel_at WHEN held_by IS NULL AND ready_at >= TIMESTAMP'1000-01-01 00:00:00' THEN ready_at END
         WHEN state = 'running' THEN LEAST(lease_until, TIMESTAMP'9999-12-31 23:59:00') + INTERVAL 30 SECOND
         WHEN state = 'queued' THEN lease_until
         -- MySQL also computes this before it knows a default, and at every ALTER TABLE. The instant is then zero. MySQL's
         -- default sql_mode refuses a zero instant as a result, and in NULLIF.
         WHEN settled_at IS NULL AND created_at >= TIMESTAMP'1000-01-01 00:00:00' THEN created_at END) STORED,
  queued_since   datetime(6) GENERATED ALWAYS AS (        -- of a queued run: since when it could be taken; what held it before is no part of that
    CASE WHEN state = 'queued' AND ready_at >= TIMESTAMP'1000-01-01 00:00:00' THEN COALESCE(queued_at, ready_at) END) STORED,
  UNIQUE (job_id, occurrence),
  open_job_id bigint GENERATED ALWAYS AS (CASE WHEN settled_at IS NULL THEN job_id END) STORED,
  queued_in varchar(190) GENERATED ALWAYS AS (CASE WHEN state = 'queued' THEN queue END) STORED,
  urgency bigint GENERATED ALWAYS AS (-priority) STORED,  -- bigint: for the least priority, the value does not fit an int
  unwell varchar(190) GENERATED ALWAYS AS (CASE WHEN state IN ('failed', 'cancelled', 'lost') THEN state END) STORED,
  KEY runs_number (job_id, number),
  KEY runs_open (open_job_id, id),
  KEY runs_wake (wake_at, id),
  KEY runs_queued (queued_in, urgency, ready_at, id),
  KEY runs_queued_since (queued_since),
  KEY runs_created (created_at, id),
  KEY runs_unwell (unwell, created_at, id),
  KEY runs_expire (expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Each try of a step.
CREATE TABLE IF NOT EXISTS dbjobs_attempts (
  run_id        char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  number        int NOT NULL,                              -- 1, 2, ... within the run
  step          int NOT NULL,
  step_name     varchar(190) NOT NULL,
  attempt       int NOT NULL,                              -- 1, 2, ... of that step
  fence         int NOT NULL,                              -- the delivery that it belongs to
  holder        varchar(190) NOT NULL,
  state         varchar(190) NOT NULL DEFAULT 'running' CHECK (FIND_IN_SET(state, 'running,succeeded,failed,cancelled,lost,cut') > 0),
  started_at    datetime(6) NOT NULL CHECK (started_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(started_at) > 0 AND DAYOFMONTH(started_at) > 0),
  finished_at   datetime(6) CHECK (finished_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(finished_at) > 0 AND DAYOFMONTH(finished_at) > 0),
  rows_affected bigint,
  error         text,
  error_code    varchar(190),                                          -- SQLSTATE, error number, HTTP status, exit code
  error_line    int,                                       -- where the engine gives it
  error_severity varchar(190),
  error_detail  text,                                      -- what PostgreSQL adds to the message, and its advice
  error_hint    text,
  output        text,                                          -- its output, at most 16 KiB: rows, notices, the text that a program printed
  result        text,                                          -- a value that later steps can name: JSON, kept only if one of them does
  PRIMARY KEY (run_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A stretch of nominal times that a decision did not run: those times of its rule in (from_at, through_at] that have no
-- run.
CREATE TABLE IF NOT EXISTS dbjobs_gaps (
  job_id      bigint NOT NULL,
  schedule_id bigint NOT NULL,
  from_at     datetime(6) NOT NULL CHECK (from_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(from_at) > 0 AND DAYOFMONTH(from_at) > 0),
  through_at  datetime(6) NOT NULL CHECK (through_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(through_at) > 0 AND DAYOFMONTH(through_at) > 0),
  reason      varchar(190) NOT NULL CHECK (FIND_IN_SET(reason, 'missed,overlap,paused,disabled,edited,over-limit,skipped') > 0),
  rule        text NOT NULL,                                   -- RFC 5545 text, as it was
  recorded_at datetime(6) NOT NULL CHECK (recorded_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(recorded_at) > 0 AND DAYOFMONTH(recorded_at) > 0),                            -- of the decision, or of the last one that extended it
  PRIMARY KEY (job_id, schedule_id, through_at, reason)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Changes of definitions, with who, when and why.
CREATE TABLE IF NOT EXISTS dbjobs_changes (
  id         bigint AUTO_INCREMENT PRIMARY KEY,
  changed_at datetime(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)) CHECK (changed_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(changed_at) > 0 AND DAYOFMONTH(changed_at) > 0),
  changed_by varchar(190) NOT NULL DEFAULT (LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))),
  kind       varchar(190) NOT NULL CHECK (FIND_IN_SET(kind, 'job,schedule,calendar,group,pause') > 0),
  subject_id bigint,
  subject    varchar(400) NOT NULL,                                    -- its name at the time; a job's is owner/name
  action     varchar(190) NOT NULL,                                    -- create, change, remove, pause, resume, ...
  reason     varchar(1000) NOT NULL DEFAULT '',
  was        longtext CHECK (JSON_VALID(was)),
  became     longtext CHECK (JSON_VALID(became)),
  -- The job whose state or definition the entry says: a job may have very many requests of runs on record.
  defined_job_id bigint GENERATED ALWAYS AS (CASE WHEN kind = 'job' AND action IN ('create', 'change', 'rename', 'pause', 'resume', 'enable', 'disable', 'abort') THEN subject_id END) STORED,
  -- When something was asked: such entries go by their age. For the comparison, see wake_at of the runs.
  asked_at datetime(6) GENERATED ALWAYS AS (CASE WHEN action IN ('run-now', 'retry', 'cancel', 'backfill', 'skip', 'unskip', 'replan') AND changed_at >= TIMESTAMP'1000-01-01 00:00:00' THEN changed_at END) STORED,
  KEY changes_subject (kind, subject_id, id),
  KEY changes_defined (defined_job_id, id),
  KEY changes_asked (asked_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- When ticks came. There is one row for each name and unbroken stretch of ticks. The time between two rows is a silence.
CREATE TABLE IF NOT EXISTS dbjobs_ticks (
  name        varchar(190) NOT NULL,
  since       datetime(6) NOT NULL CHECK (since BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(since) > 0 AND DAYOFMONTH(since) > 0),                            -- the first tick of the stretch
  last_at     datetime(6) NOT NULL CHECK (last_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(last_at) > 0 AND DAYOFMONTH(last_at) > 0),                            -- when the newest one ended
  began_at    datetime(6) CHECK (began_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(began_at) > 0 AND DAYOFMONTH(began_at) > 0),                            -- when the newest pass on record began: the one that began last, and not the one that ended last; a pass that failed does not count
  checked_at  datetime(6) CHECK (checked_at BETWEEN TIMESTAMP'1000-01-01 00:00:00' AND TIMESTAMP'9999-12-31 23:59:59' AND MONTH(checked_at) > 0 AND DAYOFMONTH(checked_at) > 0),                            -- when the newest pass began that has looked for deleted rows
  passes      bigint NOT NULL DEFAULT 1,
  holder      varchar(190) NOT NULL,                                   -- host and process of the newest
  version     varchar(190) NOT NULL,                                   -- of its program
  decided     bigint NOT NULL DEFAULT 0,                       -- jobs decided in the stretch
  started     bigint NOT NULL DEFAULT 0,                       -- runs started
  failed      bigint NOT NULL DEFAULT 0,                       -- runs that failed
  error       text,                                            -- of the newest pass that failed
  took_ms     bigint,                                         -- how long the newest pass took
  PRIMARY KEY (name, since),
  KEY ticks_since (since)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
