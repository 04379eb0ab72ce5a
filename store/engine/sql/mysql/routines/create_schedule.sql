CREATE PROCEDURE dbjobs_create_schedule(IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN rule longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN zone text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'creates a schedule that jobs may share, and returns its id; options: nonexistent, ambiguous, calendar, on_holiday, description'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  SET options = COALESCE(options, JSON_OBJECT());
  CALL dbjobs_check_name('schedule', 'name', name);
  CALL dbjobs_take_turns();
  IF NOT JSON_VALID(options) OR JSON_TYPE(options) <> 'OBJECT' THEN
    CALL dbjobs_check_options('schedule', options, '[]');
  END IF;
  SET options = JSON_SET(options, '$.rule', rule);
  IF zone IS NOT NULL THEN
    SET options = JSON_SET(options, '$.zone', zone);
  END IF;
  CALL dbjobs_put_schedule(CONCAT('schedule ', name), its_id, name, NULL, options);
  CALL dbjobs_schedule_document(its_id, became);
  CALL dbjobs_log_change('schedule', its_id, name, 'create', reason, NULL, became);
  CALL dbjobs_done(mine);
  SELECT its_id AS schedule_id;
END
;
