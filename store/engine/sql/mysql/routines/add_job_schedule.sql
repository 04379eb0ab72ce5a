CREATE PROCEDURE dbjobs_add_job_schedule(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'adds a shared schedule to a job'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE has longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE one bigint;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  CALL dbjobs_find_schedule(schedule, one);
  IF EXISTS (SELECT 1 FROM dbjobs_job_schedules l WHERE l.job_id = its_id AND l.schedule_id = one) THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 40), ': it uses schedule ', LEFT(schedule, 40), ' already; there is nothing to do'));
  END IF;
  CALL dbjobs_job_document(its_id, has);
  SET has = COALESCE(JSON_EXTRACT(has, '$.schedules'), JSON_ARRAY());
  CALL dbjobs_change_job(its_id, named, JSON_OBJECT('schedules', JSON_EXTRACT(JSON_ARRAY_APPEND(has, '$', schedule), '$')), reason, false);
  CALL dbjobs_done(mine);
END
;
