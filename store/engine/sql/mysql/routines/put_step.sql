-- Given as in a file of jobs, or as in a document of a job.
CREATE PROCEDURE dbjobs_put_step(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN n int, IN step longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes a step'
BEGIN
  DECLARE named, how, ok_way, bad_way text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE spec, of_sql, texts, t, c longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE i int DEFAULT 0;
  DECLARE EXIT HANDLER FOR 1062 CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': steps: two steps have one name; give each a name of its own'));
  CALL dbjobs_check_options(CONCAT(LEFT(subject, 40), ', step ', n), step, '["name", "sql", "args", "atomic", "fail_if", "target", "executor", "spec", "timeout", "retry", "on_success", "on_failure"]');
  CALL dbjobs_option_text(subject, 'name', JSON_EXTRACT(step, '$.name'), named);
  SET named = COALESCE(named, CONCAT('step ', n));
  CALL dbjobs_check_name(subject, 'name', named);
  SET subject = CONCAT(LEFT(subject, 40), ', step ', LEFT(named, 20));
  SET of_sql = JSON_MERGE_PATCH('{}', JSON_REMOVE(step, '$.name', '$.executor', '$.spec', '$.timeout', '$.retry', '$.on_success', '$.on_failure'));
  SET spec = JSON_EXTRACT(step, '$.spec');
  IF JSON_LENGTH(of_sql) > 0 THEN
    IF spec IS NOT NULL OR JSON_EXTRACT(of_sql, '$.sql') IS NULL THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 60), ': a step has either sql, or executor and spec'));
    END IF;
    IF JSON_TYPE(JSON_EXTRACT(of_sql, '$.atomic')) = 'BOOLEAN' AND JSON_EXTRACT(of_sql, '$.atomic') = false THEN
      SET of_sql = JSON_REMOVE(of_sql, '$.atomic');
    END IF;
    SET texts = JSON_EXTRACT(of_sql, '$.sql'), how = 'sql';
    IF JSON_TYPE(texts) <> 'ARRAY' THEN
      SET texts = JSON_ARRAY(JSON_EXTRACT(texts, '$'));
    END IF;
    IF JSON_LENGTH(texts) = 0 THEN
      SET texts = '[""]';
    END IF;
    WHILE i < JSON_LENGTH(texts) DO
      SET t = NULL;
      IF JSON_TYPE(JSON_EXTRACT(texts, CONCAT('$[', i, ']'))) = 'STRING' THEN
        -- Without the look behind, each blank of a long row of them is tried as the first one.
        SET t = REGEXP_REPLACE(JSON_UNQUOTE(JSON_EXTRACT(texts, CONCAT('$[', i, ']'))), '^[ \t\r\n]+|(?<![ \t\r\n])[ \t\r\n]++$', '');
        SET texts = JSON_SET(texts, CONCAT('$[', i, ']'), t);
      ELSEIF JSON_TYPE(JSON_EXTRACT(texts, CONCAT('$[', i, ']'))) <> 'OBJECT' THEN
        SET t = '';
      END IF;
      IF t = '' THEN
        CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 60), ': sql: is no statement; give a text, or a list of texts'));
      END IF;
      SET i = i + 1;
    END WHILE;
    SET spec = JSON_SET(of_sql, '$.sql', JSON_EXTRACT(texts, '$'));
  ELSE
    CALL dbjobs_option_text(subject, 'executor', JSON_EXTRACT(step, '$.executor'), how);
    IF COALESCE(JSON_TYPE(spec), 'NULL') <> 'OBJECT' OR COALESCE(how, '') = '' THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 60), ': the step does nothing; give sql, or executor and spec'));
    END IF;
  END IF;
  -- What is as it was stays as it was written: JSON of MySQL has a large number as the nearest double. The step had this name, or this place.
  SET spec = COALESCE((SELECT w.spec FROM dbjobs_steps w WHERE w.job_id = -its_id AND (w.name = named OR w.position = n) AND CONCAT(JSON_EXTRACT(w.spec, '$')) = spec ORDER BY w.name = named DESC LIMIT 1), spec);
  SET c = '{}', t = NULL;
  CALL dbjobs_policy_columns(subject, '', JSON_MERGE_PATCH('{}', JSON_OBJECT('timeout', JSON_EXTRACT(step, '$.timeout'), 'retry', JSON_EXTRACT(step, '$.retry'))), c);
  CALL dbjobs_option_text(subject, 'on_success', JSON_EXTRACT(step, '$.on_success'), ok_way);
  CALL dbjobs_option_text(subject, 'on_failure', JSON_EXTRACT(step, '$.on_failure'), bad_way);
  INSERT INTO dbjobs_steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms, retry_jitter, on_success, on_failure)
  VALUES (its_id, n, named, how, spec, JSON_UNQUOTE(JSON_EXTRACT(c, '$.timeout_ms')), JSON_UNQUOTE(JSON_EXTRACT(c, '$.retry_attempts')), JSON_UNQUOTE(JSON_EXTRACT(c, '$.retry_backoff_ms')),
    JSON_UNQUOTE(JSON_EXTRACT(c, '$.retry_max_backoff_ms')), JSON_UNQUOTE(JSON_EXTRACT(c, '$.retry_jitter')), COALESCE(ok_way, 'next'), COALESCE(bad_way, 'fail'));
END
;
