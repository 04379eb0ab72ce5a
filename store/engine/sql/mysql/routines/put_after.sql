-- A text, or a list of texts and of {"job": ..., "on": ...}. None may close a circle.
CREATE PROCEDURE dbjobs_put_after(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN its_owner text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes after which jobs a job runs'
BEGIN
  DECLARE one longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE t, way, other_owner, other_name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE other bigint;
  DECLARE depth bigint unsigned;
  DECLARE i, old int DEFAULT 0;
  DECLARE kept int DEFAULT 0;
  DECLARE EXIT HANDLER FOR 1062 CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': after: names a job twice; name each once'));
  IF COALESCE(JSON_TYPE(list), 'NULL') = 'NULL' THEN
    SET list = '[]';
  ELSEIF JSON_TYPE(list) <> 'ARRAY' THEN
    SET list = JSON_ARRAY(JSON_EXTRACT(list, '$'));
  END IF;
  SELECT COUNT(*) INTO old FROM dbjobs_job_after a WHERE a.job_id = its_id FOR UPDATE;
  -- A row that stays as it is keeps what a decision has seen, but only where all do: as the program writes them.
  WHILE i < JSON_LENGTH(list) DO
    SET one = JSON_EXTRACT(list, CONCAT('$[', i, ']'));
    IF JSON_TYPE(one) <> 'OBJECT' THEN
      SET one = JSON_OBJECT('job', JSON_EXTRACT(one, '$'));
    END IF;
    CALL dbjobs_check_options(CONCAT(LEFT(subject, 40), ', after'), one, '["job", "on"]');
    CALL dbjobs_option_text(subject, 'after', JSON_EXTRACT(one, '$.job'), t);
    CALL dbjobs_option_text(subject, 'after', JSON_EXTRACT(one, '$.on'), way);
    SET way = COALESCE(way, 'success');
    CALL dbjobs_other_job(subject, 'after', t, its_owner, other, other_owner, other_name);
    IF other = its_id THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': after: a job cannot run after itself; leave it out'));
    ELSEIF FIND_IN_SET(way, 'success,failure,end') = 0 THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': after: "', LEFT(way, 20), '" is not one of success, failure, end'));
    END IF;
    SET list = JSON_SET(list, CONCAT('$[', i, ']'), JSON_OBJECT('id', other, 'on', way));
    SET i = i + 1;
  END WHILE;
  SELECT COUNT(*) INTO kept FROM dbjobs_job_after a WHERE a.job_id = its_id AND JSON_CONTAINS(list, JSON_OBJECT('id', a.after_job_id, 'on', a.on_end)) FOR UPDATE;
  IF kept <> old OR old <> JSON_LENGTH(list) THEN
    DELETE FROM dbjobs_job_after WHERE job_id = its_id;
    SET i = 0;
    WHILE i < JSON_LENGTH(list) DO
      INSERT INTO dbjobs_job_after (job_id, after_job_id, on_end)
      VALUES (its_id, JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '].id'))), JSON_UNQUOTE(JSON_EXTRACT(list, CONCAT('$[', i, '].on'))));
      SET i = i + 1;
    END WHILE;
  END IF;
  -- A chain may be longer than the usual limit of levels, and than that of the session of the caller. The subquery of a SET reads
  -- what is there now; a SELECT INTO would read what the transaction of the caller sees.
  /*M! SET depth = @@SESSION.max_recursive_iterations, SESSION max_recursive_iterations = 4294967295; */
  /*!80003 SET depth = @@SESSION.cte_max_recursion_depth, SESSION cte_max_recursion_depth = 4294967295; */
  SET kept = (WITH RECURSIVE up AS (
    SELECT a.after_job_id AS id FROM dbjobs_job_after a WHERE a.job_id = its_id
    UNION
    SELECT a.after_job_id FROM up JOIN dbjobs_job_after a ON a.job_id = up.id
  )
  SELECT COUNT(*) FROM up WHERE up.id = its_id);
  /*M! SET SESSION max_recursive_iterations = depth; */
  /*!80003 SET SESSION cte_max_recursion_depth = depth; */
  IF kept > 0 THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': after: the jobs run after each other in a circle; leave one out'));
  END IF;
END
;
