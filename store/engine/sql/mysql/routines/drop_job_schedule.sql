CREATE PROCEDURE dbjobs_drop_job_schedule(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'takes a shared schedule away from a job by its name, or its own rule by the text'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE has longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE place text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  CALL dbjobs_job_document(its_id, has);
  IF JSON_CONTAINS(COALESCE(JSON_EXTRACT(has, '$.schedules'), '[]'), JSON_QUOTE(schedule)) THEN
    SET has = JSON_EXTRACT(has, '$.schedules'), place = 0;
    WHILE JSON_UNQUOTE(JSON_EXTRACT(has, CONCAT('$[', place, ']'))) <> schedule DO
      SET place = place + 1;
    END WHILE;
    CALL dbjobs_change_job(its_id, named, JSON_OBJECT('schedules', JSON_EXTRACT(JSON_REMOVE(has, CONCAT('$[', place, ']')), '$')), reason, false);
  ELSEIF JSON_UNQUOTE(JSON_EXTRACT(has, '$.own.rule')) = schedule THEN
    CALL dbjobs_change_job(its_id, named, '{"rule": null}', reason, false);
  ELSE
    CALL dbjobs_refuse('JB001', CONCAT('job ', LEFT(named, 40), ': schedules: ', LEFT(COALESCE(schedule, 'NULL'), 30), ' is not among them; job show names them'));
  END IF;
  CALL dbjobs_done(mine);
END
;
