CREATE PROCEDURE dbjobs_lock_schedule(IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint)
MODIFIES SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: locks a schedule that is to be changed'
BEGIN
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_me(me, everything);
  CALL dbjobs_take_turns();
  CALL dbjobs_find_schedule(schedule, its_id);
  SELECT MAX(s.id) INTO its_id FROM dbjobs_schedules s WHERE s.id = its_id AND s.name = schedule AND (everything OR s.owner = me) FOR UPDATE; -- as lock_job does
  IF its_id IS NULL THEN
    CALL dbjobs_refuse('JB001', CONCAT('schedule ', LEFT(schedule, 40), ': not found; give the name of one of dbjobs_schedules'));
  END IF;
END
;
