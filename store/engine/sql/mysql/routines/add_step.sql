CREATE PROCEDURE dbjobs_add_step(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN name text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN statement longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN before_step text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'adds a step at the end of a job, or before another; options have the keys of a step in a file'
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
  SET options = COALESCE(options, JSON_OBJECT());
  CALL dbjobs_lock_job(job, its_id, named);
  IF NOT JSON_VALID(options) OR JSON_TYPE(options) <> 'OBJECT' THEN
    CALL dbjobs_check_options(CONCAT('job ', named), options, '[]');
  END IF;
  CALL dbjobs_find_step(its_id, named, before_step, list, place);
  IF name IS NOT NULL THEN
    SET options = JSON_SET(options, '$.name', name);
  END IF;
  IF statement IS NOT NULL THEN
    SET options = JSON_SET(options, '$.sql', statement);
  END IF;
  IF COALESCE(JSON_TYPE(list), 'NULL') <> 'ARRAY' THEN
    SET list = '[]';
  END IF;
  SET list = JSON_ARRAY_INSERT(list, CONCAT('$[', COALESCE(place, JSON_LENGTH(list)), ']'), JSON_EXTRACT(options, '$'));
  CALL dbjobs_change_job(its_id, named, JSON_OBJECT('steps', JSON_EXTRACT(list, '$')), reason, false);
  CALL dbjobs_done(mine);
END
;
