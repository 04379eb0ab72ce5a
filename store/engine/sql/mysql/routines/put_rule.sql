-- rule is a text, or an object as of a schedule; zone is beside it.
CREATE PROCEDURE dbjobs_put_rule(IN subject text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, INOUT touched boolean)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: writes the own rule of a job'
BEGIN
  DECLARE own bigint DEFAULT (SELECT s.id FROM dbjobs_schedules s WHERE s.job_id = its_id);
  DECLARE was bigint DEFAULT own;
  DECLARE given longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT JSON_OBJECT();
  IF JSON_TYPE(JSON_EXTRACT(options, '$.rule')) = 'NULL' OR JSON_UNQUOTE(JSON_EXTRACT(options, '$.rule')) = '' THEN
    IF own IS NOT NULL THEN
      DELETE FROM dbjobs_job_schedules WHERE job_id = its_id AND schedule_id = own;
      DELETE FROM dbjobs_schedules WHERE id = own;
      SET touched = true;
    END IF;
  ELSE
    IF JSON_TYPE(JSON_EXTRACT(options, '$.rule')) = 'OBJECT' THEN
      SET given = JSON_EXTRACT(options, '$.rule');
    ELSEIF JSON_EXTRACT(options, '$.rule') IS NOT NULL THEN
      SET given = JSON_OBJECT('rule', JSON_EXTRACT(options, '$.rule'));
    ELSEIF own IS NULL THEN
      CALL dbjobs_refuse('JB003', CONCAT(LEFT(subject, 50), ': zone: the job has no rule of its own; give rule, too'));
    END IF;
    IF JSON_EXTRACT(options, '$.zone') IS NOT NULL THEN
      SET given = JSON_SET(given, '$.zone', JSON_EXTRACT(options, '$.zone'));
    END IF;
    CALL dbjobs_put_schedule(CONCAT(LEFT(subject, 50), ', rule'), own, NULL, its_id, given);
    IF was IS NULL THEN
      INSERT INTO dbjobs_job_schedules (job_id, schedule_id) VALUES (its_id, own);
    END IF;
  END IF;
END
;
