-- A job or schedule that was found, or the job of a run, may have been removed, or have another name or owner, since the transaction of
-- the caller began. A transaction of the routine's own reads what is there now, and waits for nobody who edits.
CREATE PROCEDURE dbjobs_still_there(IN mine boolean, IN kind text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN called text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN its_id bigint)
READS SQL DATA SQL SECURITY INVOKER COMMENT 'for the other routines: refuses what is no longer there by this name'
BEGIN
  DECLARE me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything boolean;
  CALL dbjobs_me(me, everything);
  IF NOT mine AND kind = 'job' THEN
    SELECT MAX(j.id) INTO its_id FROM dbjobs_jobs j WHERE j.id = its_id AND j.live_name = SUBSTRING(called, LOCATE('/', called) + 1) AND (everything OR j.owner = me) LOCK IN SHARE MODE;
  ELSEIF NOT mine AND kind = 'schedule' THEN
    SELECT MAX(s.id) INTO its_id FROM dbjobs_schedules s WHERE s.id = its_id AND s.name = called AND (everything OR s.owner = me) LOCK IN SHARE MODE;
  ELSEIF NOT mine AND kind = 'run' AND NOT everything THEN
    SELECT MAX(j.id) INTO its_id FROM dbjobs_jobs j WHERE j.id = its_id AND j.owner = me LOCK IN SHARE MODE;
  ELSE
    SET its_id = 0;
  END IF;
  IF its_id IS NULL THEN
    CALL dbjobs_refuse('JB001', CONCAT(kind, ' ', LEFT(called, 40), ': not found any more; give the name that dbjobs_', kind, 's has'));
  END IF;
END
;
