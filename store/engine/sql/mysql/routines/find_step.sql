CREATE PROCEDURE dbjobs_find_step(IN its_id bigint, IN named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN step text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT place int)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the steps of a job, and the place of one of them, from 0'
BEGIN
  DECLARE document longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  CALL dbjobs_job_document(its_id, document);
  SET list = JSON_EXTRACT(document, '$.steps');
  SET place = (SELECT s.position FROM dbjobs_steps s WHERE s.job_id = its_id AND s.name = step) - 1;
  IF place IS NOT NULL THEN
    SET place = (SELECT COUNT(*) FROM dbjobs_steps s WHERE s.job_id = its_id AND s.position <= place);
  ELSEIF step IS NOT NULL THEN
    CALL dbjobs_refuse('JB001', CONCAT('job ', LEFT(named, 40), ': there is no step ', LEFT(step, 30), '; give the name of a step'));
  END IF;
END
;
