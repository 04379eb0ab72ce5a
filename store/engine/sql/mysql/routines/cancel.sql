-- See Store.CancelRun (store/cancel.go). The name of a job means its open run: see Store.openRun.
CREATE PROCEDURE dbjobs_cancel(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'requests the end of a run'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE of_job bigint;
  DECLARE open_runs int;
  DECLARE named, is_state text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_run(run, its_id, of_job, named);
  CALL dbjobs_still_there(mine, 'run', run, of_job);
  IF NOT run REGEXP '(^|#)[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' AND NOT run REGEXP '.#[1-9][0-9]{0,17}$' THEN
    SELECT COUNT(*), COALESCE(MAX(o.id), its_id) INTO open_runs, its_id FROM dbjobs_runs o
    WHERE o.open_job_id = of_job AND o.state IN ('waiting', 'queued', 'running');
    IF open_runs > 1 THEN
      CALL dbjobs_refuse('JB004', CONCAT('run ', LEFT(run, 50), ': several runs of the job are open; name one of them, JOB#NUMBER, or cancel all of them with dbjobs_abort(job, true, NULL)'));
    END IF;
  END IF;
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
