-- From each step that a run can reach, a way has to lead to an end. While the steps are written, those that were there have the id of
-- the job as a negative number: dbjobs_put_step looks at them.
CREATE PROCEDURE dbjobs_put_steps(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes the steps of a job anew'
BEGIN
  DECLARE i int DEFAULT 0;
  DECLARE odd text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  IF COALESCE(JSON_TYPE(list), 'NULL') <> 'ARRAY' OR JSON_LENGTH(list) = 0 THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': steps: a job needs a step; give sql, or steps as a list'));
  END IF;
  UPDATE dbjobs_steps SET job_id = -its_id WHERE job_id = its_id;
  WHILE i < JSON_LENGTH(list) DO
    CALL dbjobs_put_step(subject, its_id, i + 1, JSON_EXTRACT(list, CONCAT('$[', i, ']')));
    SET i = i + 1;
  END WHILE;
  DELETE FROM dbjobs_steps WHERE job_id = -its_id;
  SET odd = (SELECT MIN(s.name) FROM dbjobs_steps s WHERE s.job_id = its_id
    AND (LENGTH(TRIM(s.on_success)) < LENGTH(s.on_success) OR LENGTH(TRIM(s.on_failure)) < LENGTH(s.on_failure) -- to IN and =, a blank at the end is nothing
      OR s.on_success NOT IN ('next', 'succeed', 'fail') AND NOT EXISTS (SELECT 1 FROM dbjobs_steps o WHERE o.job_id = its_id AND s.on_success = CONCAT('step:', o.name))
      OR s.on_failure NOT IN ('next', 'succeed', 'fail') AND NOT EXISTS (SELECT 1 FROM dbjobs_steps o WHERE o.job_id = its_id AND s.on_failure = CONCAT('step:', o.name))));
  IF odd IS NOT NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ', step ', LEFT(odd, 20), ': leads to no step; give next, succeed, fail, or step:NAME'));
  END IF;
  -- For the limit of levels, see dbjobs_put_after.
  /*M! SET STATEMENT max_recursive_iterations = 4294967295 FOR */ WITH RECURSIVE way AS (
    SELECT s.position AS here, COALESCE((SELECT o.position FROM dbjobs_steps o WHERE o.job_id = its_id
      AND IF(s.on_success = 'next', o.position = s.position + 1, s.on_success = CONCAT('step:', o.name))), 0) AS there
    FROM dbjobs_steps s WHERE s.job_id = its_id
    UNION ALL
    SELECT s.position, COALESCE((SELECT o.position FROM dbjobs_steps o WHERE o.job_id = its_id
      AND IF(s.on_failure = 'next', o.position = s.position + 1, s.on_failure = CONCAT('step:', o.name))), 0)
    FROM dbjobs_steps s WHERE s.job_id = its_id
  ), comes AS (
    SELECT 1 AS here UNION SELECT way.there FROM comes JOIN way ON way.here = comes.here WHERE way.there > 0
  ), ends AS (
    SELECT 0 AS here UNION SELECT way.here FROM ends JOIN way ON way.there = ends.here
  )
  SELECT /*+ SET_VAR(cte_max_recursion_depth = 4294967295) */ MIN(s.name) INTO odd FROM dbjobs_steps s JOIN comes ON comes.here = s.position WHERE s.job_id = its_id AND s.position NOT IN (SELECT ends.here FROM ends);
  IF odd IS NOT NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 40), ', step ', LEFT(odd, 20), ': no path leads to an end: the steps form a circle'));
  END IF;
  -- Steps are no part of what is planned. But a job that is parked for one of them would stay so until its next time.
  UPDATE dbjobs_jobs t SET t.planned = CONCAT(t.planned, '.') WHERE t.id = its_id AND EXISTS (SELECT 1 FROM dbjobs_plans p WHERE p.job_id = its_id AND p.parked IS NOT NULL);
END
;
