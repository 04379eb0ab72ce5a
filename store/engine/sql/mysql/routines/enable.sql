-- See Store.EnableJob (store/cancel.go).
CREATE PROCEDURE dbjobs_enable(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'enables a job that was disabled; what fell due meanwhile becomes a gap'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id, already bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_job(job, its_id, named);
  SELECT MAX(j.id) INTO already FROM dbjobs_jobs j WHERE j.id = its_id AND j.enabled = true AND j.removed_at IS NULL FOR UPDATE; -- an IF would share its lock, and two calls wait for each other
  IF already IS NOT NULL THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 60), ': is enabled already; there is nothing to do'));
  END IF;
  CALL dbjobs_set_enabled(its_id, named, true, 'enable', reason);
  CALL dbjobs_done(mine);
END
;
