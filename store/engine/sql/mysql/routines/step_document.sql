CREATE PROCEDURE dbjobs_step_document(IN its_id bigint, IN place int, OUT document longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: a step as the change log has it'
BEGIN
  DECLARE t, a, b, m text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE timeout, backoff, most bigint;
  DECLARE retry, spec longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  SELECT s.timeout_ms, s.retry_backoff_ms, s.retry_max_backoff_ms, s.spec INTO timeout, backoff, most, spec FROM dbjobs_steps s WHERE s.job_id = its_id AND s.position = place LOCK IN SHARE MODE;
  CALL dbjobs_duration(timeout, t);
  CALL dbjobs_duration(backoff, b);
  CALL dbjobs_duration(most, m);
  SELECT JSON_MERGE_PATCH('{}', JSON_OBJECT('attempts', IF(s.retry_attempts = 0, 'until-next', CAST(s.retry_attempts AS char)), 'backoff', b, 'max_backoff', m, 'jitter', s.retry_jitter)),
    JSON_MERGE_PATCH('{}', JSON_OBJECT('name', s.name, 'executor', s.executor, 'on_success', s.on_success, 'on_failure', s.on_failure, 'timeout', t))
  INTO retry, document FROM dbjobs_steps s WHERE s.job_id = its_id AND s.position = place LOCK IN SHARE MODE;
  SET document = JSON_SET(document, '$.spec', JSON_EXTRACT(spec, '$'));
  IF JSON_LENGTH(retry) > 0 THEN
    SET document = JSON_SET(document, '$.retry', JSON_EXTRACT(retry, '$'));
  END IF;
END
;
