CREATE PROCEDURE dbjobs_job_columns(IN its_id bigint, OUT c longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the columns of the policies of a job, without those that are NULL'
BEGIN
  SET c = (SELECT JSON_MERGE_PATCH('{}', JSON_OBJECT('description', j.description, 'enabled', j.enabled, 'tags', j.tags, 'queue', j.queue, 'priority', j.priority, 'group_name', j.group_name,
    'overlap', j.overlap, 'max_running', j.max_running, 'missed', j.missed, 'missed_limit', j.missed_limit, 'missed_within_ms', j.missed_within_ms, 'missed_grace_ms', j.missed_grace_ms,
    'retry_attempts', j.retry_attempts, 'retry_backoff_ms', j.retry_backoff_ms, 'retry_max_backoff_ms', j.retry_max_backoff_ms, 'retry_jitter', j.retry_jitter, 'max_deliveries', j.max_deliveries, 'on_error', j.on_error,
    'pause_after_failures', j.pause_after_failures, 'timeout_ms', j.timeout_ms, 'jitter_ms', j.jitter_ms, 'max_runs', j.max_runs, 'not_before', j.not_before, 'not_after', j.not_after,
    'start_rule', j.start_rule, 'start_zone', j.start_zone, 'repeat_after_ms', j.repeat_after_ms, 'on_startup', j.on_startup, 'keep_runs', j.keep_runs, 'keep_age_ms', j.keep_age_ms,
    'remove_when_done', j.remove_when_done, 'on_failed', j.on_failed, 'on_recovered', j.on_recovered, 'on_missed', j.on_missed, 'on_late', j.on_late, 'on_lost', j.on_lost,
    'on_parked', j.on_parked, 'on_paused', j.on_paused, 'heartbeat_url', j.heartbeat_url, 'heartbeat_start', j.heartbeat_start, 'heartbeat_success', j.heartbeat_success, 'heartbeat_failure', j.heartbeat_failure)) FROM dbjobs_jobs j WHERE j.id = its_id);
END
;
