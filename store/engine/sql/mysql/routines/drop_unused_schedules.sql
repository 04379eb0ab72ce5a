CREATE PROCEDURE dbjobs_drop_unused_schedules(IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'removes all schedules that no job uses, and returns how many'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE n int DEFAULT 0;
  DECLARE was longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE named, me text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE everything, at_end boolean DEFAULT false;
  DECLARE unused CURSOR FOR SELECT s.id, s.name FROM dbjobs_schedules s WHERE s.name IS NOT NULL AND (everything OR s.owner = me)
    AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l WHERE l.schedule_id = s.id) ORDER BY s.name;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_me(me, everything);
  CALL dbjobs_take_turns();
  OPEN unused;
  FETCH unused INTO its_id, named;
  WHILE NOT at_end DO
    CALL dbjobs_schedule_document(its_id, was);
    DELETE FROM dbjobs_schedules WHERE id = its_id AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l WHERE l.schedule_id = its_id);
    IF ROW_COUNT() > 0 THEN
      UPDATE dbjobs_pauses p SET p.resumed_at = UTC_TIMESTAMP(6), p.resumed_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))
      WHERE p.scope = 'schedule' AND p.subject_id = its_id AND p.resumed_at IS NULL AND p.ends_at > UTC_TIMESTAMP(6);
      CALL dbjobs_log_change('schedule', its_id, named, 'remove', reason, was, NULL);
      SET n = n + 1;
    END IF;
    FETCH unused INTO its_id, named;
  END WHILE;
  CLOSE unused;
  CALL dbjobs_done(mine);
  SELECT n AS schedules;
END
;
