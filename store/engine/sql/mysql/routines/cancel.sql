-- See Store.CancelRun (store/cancel.go).
CREATE PROCEDURE dbjobs_cancel(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'requests the end of a run'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE of_job bigint;
  DECLARE named, is_state text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_run(run, its_id, of_job, named);
  SELECT r.state INTO is_state FROM dbjobs_runs r WHERE r.id = its_id FOR UPDATE;
  IF is_state IN ('succeeded', 'failed', 'cancelled', 'lost') THEN
    CALL dbjobs_refuse('JB004', CONCAT('run ', LEFT(run, 50), ': has ended: ', is_state, '; only a run that has not ended can be cancelled'));
  END IF;
  UPDATE dbjobs_runs u SET u.cancel_at = UTC_TIMESTAMP(6), u.cancel_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER()))), u.state = IF(u.state = 'queued', 'waiting', u.state)
  WHERE u.id = its_id AND u.state IN ('waiting', 'queued', 'running') AND u.cancel_at IS NULL;
  IF ROW_COUNT() > 0 THEN
    CALL dbjobs_log_change('job', of_job, named, 'cancel', reason, NULL, JSON_OBJECT('runs', JSON_ARRAY(its_id)));
  END IF;
  CALL dbjobs_done(mine);
END
;
