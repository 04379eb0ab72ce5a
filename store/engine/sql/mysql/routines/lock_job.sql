CREATE PROCEDURE dbjobs_lock_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint, OUT named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: locks a job that is to be changed'
BEGIN
  CALL dbjobs_take_turns();
  CALL dbjobs_find_job(job, its_id, named);
  SELECT j.id INTO its_id FROM dbjobs_jobs j WHERE j.id = its_id FOR UPDATE;
  CALL dbjobs_find_job(job, its_id, named); -- removed this moment
END
;
