CREATE PROCEDURE dbjobs_alter_schedule(IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'changes a schedule in place; options: rule, zone, nonexistent, ambiguous, calendar, on_holiday, description; null is the default'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE was, became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_schedule(schedule, its_id);
  CALL dbjobs_schedule_document(its_id, was);
  CALL dbjobs_put_schedule(CONCAT('schedule ', schedule), its_id, NULL, NULL, COALESCE(options, JSON_OBJECT()));
  CALL dbjobs_schedule_document(its_id, became);
  IF was <> became THEN
    CALL dbjobs_log_change('schedule', its_id, schedule, 'change', reason, was, became);
  END IF;
  CALL dbjobs_done(mine);
END
;
