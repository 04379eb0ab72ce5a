CREATE PROCEDURE dbjobs_lock_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint, OUT named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: locks a job that is to be changed'
BEGIN
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_me(me, everything);
  CALL dbjobs_take_turns();
  CALL dbjobs_find_job(job, its_id, named);
  -- It may be removed, or have another name or owner, this moment or since the transaction of the caller began.
  SELECT MAX(j.id) INTO its_id FROM dbjobs_jobs j WHERE j.id = its_id AND j.live_name = SUBSTRING(job, LOCATE('/', job) + 1) AND (everything OR j.owner = me) FOR UPDATE;
  IF its_id IS NULL THEN
    CALL dbjobs_refuse('JB001', CONCAT('job ', LEFT(job, 40), ': not found; give its name, or owner/name of dbjobs_jobs'));
  END IF;
END
;
