CREATE PROCEDURE dbjobs_drop_step(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN step text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'removes a step from a job'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE list longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE place int;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  CALL dbjobs_find_step(its_id, named, COALESCE(step, ''), list, place);
  IF JSON_LENGTH(list) = 1 THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 40), ': this is the only step, and a job needs one; drop the job, or alter the step'));
  END IF;
  CALL dbjobs_change_job(its_id, named, JSON_OBJECT('steps', JSON_EXTRACT(JSON_REMOVE(list, CONCAT('$[', place, ']')), '$')), reason, false);
  CALL dbjobs_done(mine);
END
;
