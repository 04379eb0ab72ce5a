CREATE PROCEDURE dbjobs_alter_step(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN step text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'changes a step of a job: the keys that options give; null is the default of a key'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE list, is_now, written longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE others text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT '(?<![0-9.])[0-9.]{1,15}(?![0-9.])|[^0-9.]+'; -- all but numbers that JSON may round
  DECLARE place int;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  CALL dbjobs_check_options(CONCAT('job ', named), COALESCE(options, 'null'), '["name", "sql", "args", "atomic", "fail_if", "target", "executor", "spec", "timeout", "retry", "on_success", "on_failure"]');
  CALL dbjobs_find_step(its_id, named, COALESCE(step, ''), list, place);
  SET is_now = JSON_EXTRACT(list, CONCAT('$[', place, ']'));
  IF JSON_CONTAINS_PATH(options, 'one', '$.spec', '$.args', '$.sql[*].args') THEN -- numbers are given, and dbjobs_put_step does not keep the old text
    SET written = (SELECT s.spec FROM dbjobs_steps s WHERE s.job_id = its_id AND s.name = step);
    UPDATE dbjobs_steps s SET s.spec = JSON_EXTRACT(s.spec, '$') WHERE s.job_id = its_id AND s.name = step;
  END IF;
  IF JSON_CONTAINS_PATH(options, 'one', '$.sql', '$.args', '$.atomic', '$.fail_if', '$.target') THEN
    IF JSON_UNQUOTE(JSON_EXTRACT(is_now, '$.executor')) = 'sql' THEN -- what a step that is SQL already has, stays
      SET is_now = JSON_MERGE_PATCH(JSON_REMOVE(is_now, '$.executor', '$.spec'), JSON_EXTRACT(is_now, '$.spec'));
    ELSEIF JSON_EXTRACT(options, '$.sql') IS NOT NULL THEN
      SET is_now = JSON_REMOVE(is_now, '$.executor', '$.spec');
    END IF;
  END IF;
  SET is_now = JSON_MERGE_PATCH(is_now, options);
  IF JSON_TYPE(JSON_EXTRACT(options, '$.spec')) = 'OBJECT' THEN -- as it is given: a null within it is a value
    SET is_now = JSON_SET(is_now, '$.spec', JSON_EXTRACT(options, '$.spec'));
  END IF;
  SET list = JSON_SET(list, CONCAT('$[', place, ']'), JSON_EXTRACT(is_now, '$'));
  CALL dbjobs_change_job(its_id, named, JSON_OBJECT('steps', JSON_EXTRACT(list, '$')), reason,
    COALESCE(REGEXP_REPLACE(written, others, '') <> REGEXP_REPLACE(CONCAT(JSON_EXTRACT(written, '$')), others, ''), false));
  CALL dbjobs_done(mine);
END
;
