CREATE PROCEDURE dbjobs_alter_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN options longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'changes a job in place: the keys that options give, and no others; null is the default of a key'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  IF JSON_VALID(options) AND JSON_EXTRACT(options, '$.owner') IS NOT NULL THEN
    CALL dbjobs_refuse('JB003', CONCAT('job ', LEFT(named, 50), ': owner: the owner of a job stays; create it for the other one'));
  END IF;
  CALL dbjobs_change_job(its_id, named, options, reason, false);
  CALL dbjobs_done(mine);
END
;
