CREATE PROCEDURE dbjobs_find_schedule(IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, OUT its_id bigint)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: the schedule of a name'
BEGIN
  DECLARE me, whose text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  SET its_id = NULL;
  CALL dbjobs_me(me, everything);
  SELECT MAX(s.id), MAX(s.owner) INTO its_id, whose FROM dbjobs_schedules s WHERE s.name = schedule;
  IF its_id IS NULL THEN
    CALL dbjobs_refuse('JB001', CONCAT('schedule ', LEFT(COALESCE(schedule, 'NULL'), 40), ': not found; give the name of one of dbjobs_schedules'));
  ELSEIF NOT everything AND whose <> me THEN
    CALL dbjobs_refuse('JB004', CONCAT('schedule ', LEFT(schedule, 40), ': belongs to another login; create one of your own'));
  END IF;
END
;
