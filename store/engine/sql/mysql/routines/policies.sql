-- The list in the program is in store/job.go; TestRoutinesKnowEachPolicy holds this one against it.
--
-- kinds: text, name (a name), word (of the column's CHECK), number, percent, attempts, length (of time), again (the same, which
-- is written also where it is zero), flag, off (a flag of which the column has the opposite), tags, instant, hook.
CREATE PROCEDURE dbjobs_policies(OUT list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the keys of a job, their columns, kinds and defaults'
BEGIN
  SET list = '[
    ["description", "description", "text", ""],
    ["disabled", "enabled", "off", false],
    ["tags", "tags", "tags", []],
    ["queue", "queue", "name", "tick"],
    ["priority", "priority", "number", 0],
    ["group", "group_name", "name", null],
    ["overlap", "overlap", "word", "wait"],
    ["max_running", "max_running", "number", 1],
    ["missed", "missed", "word", "latest"],
    ["missed_limit", "missed_limit", "number", 100],
    ["missed_within", "missed_within_ms", "length", null],
    ["missed_grace", "missed_grace_ms", "length", "2m"],
    ["retry.attempts", "retry_attempts", "attempts", 1],
    ["retry.backoff", "retry_backoff_ms", "again", "10s"],
    ["retry.max_backoff", "retry_max_backoff_ms", "again", "1h"],
    ["retry.jitter", "retry_jitter", "percent", 10],
    ["max_deliveries", "max_deliveries", "number", 3],
    ["on_error", "on_error", "word", "continue"],
    ["pause_after_failures", "pause_after_failures", "number", null],
    ["timeout", "timeout_ms", "length", null],
    ["jitter", "jitter_ms", "length", "0"],
    ["max_runs", "max_runs", "number", null],
    ["not_before", "not_before", "instant", null],
    ["not_after", "not_after", "instant", null],
    ["start", "start_rule", "text", null],
    ["start_zone", "start_zone", "text", null],
    ["repeat_after", "repeat_after_ms", "length", null],
    ["on_startup", "on_startup", "flag", false],
    ["keep.runs", "keep_runs", "number", 1000],
    ["keep.age", "keep_age_ms", "length", "90d"],
    ["remove_when_done", "remove_when_done", "flag", false],
    ["on.failed", "on_failed", "hook", null],
    ["on.recovered", "on_recovered", "hook", null],
    ["on.missed", "on_missed", "hook", null],
    ["on.late", "on_late", "hook", null],
    ["on.lost", "on_lost", "hook", null],
    ["on.parked", "on_parked", "hook", null],
    ["on.paused", "on_paused", "hook", null],
    ["heartbeat.url", "heartbeat_url", "text", null],
    ["heartbeat.start", "heartbeat_start", "text", null],
    ["heartbeat.success", "heartbeat_success", "text", null],
    ["heartbeat.failure", "heartbeat_failure", "text", null]]';
END
;
