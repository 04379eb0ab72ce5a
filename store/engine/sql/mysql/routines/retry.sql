-- See Store.RetryRun (store/retry.go).
CREATE PROCEDURE dbjobs_retry(IN run text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN from_step text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'opens a run again that failed, was cancelled or was lost'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id char(36) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE of_job, removable bigint;
  DECLARE named, is_state, last text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE start_at, steps int;
  DECLARE is_settled boolean;
  DECLARE begun datetime(6);
  DECLARE first_edit, last_edit bigint;
  DECLARE was, became json;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_find_run(run, its_id, of_job, named);
  CALL dbjobs_still_there(mine, 'run', run, of_job);
  SELECT MAX(j.id) INTO removable FROM dbjobs_jobs j WHERE j.id = of_job AND j.remove_when_done;
  IF removable IS NOT NULL THEN -- see jobToRun (store/request.go)
    SELECT MAX(p.job_id) INTO removable FROM dbjobs_plans p WHERE p.job_id = removable FOR UPDATE;
  END IF;
  IF NOT EXISTS (SELECT 1 FROM dbjobs_jobs j WHERE j.id = of_job AND j.removed_at IS NULL) THEN
    CALL dbjobs_refuse('JB004', CONCAT('run ', LEFT(run, 50), ': its job was removed; create it again, and request a run of it'));
  END IF;
  SELECT r.step, r.state, r.started_at, r.settled_at IS NOT NULL INTO start_at, is_state, begun, is_settled FROM dbjobs_runs r WHERE r.id = its_id FOR UPDATE;
  SELECT COUNT(*) INTO steps FROM dbjobs_steps s WHERE s.job_id = of_job;
  SET last = (SELECT COALESCE((SELECT a.step_name FROM dbjobs_attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name) FROM dbjobs_runs r WHERE r.id = its_id); -- see applier.lastStep (store/retry.go)
  IF COALESCE(from_step, '') = '' AND last = CONCAT('step ', start_at) AND begun IS NOT NULL THEN -- see applier.keptItsPlace; without locks of the change log
    SELECT MIN(l.id), MAX(l.id) INTO first_edit, last_edit FROM dbjobs_changes l FORCE INDEX (changes_defined) WHERE l.defined_job_id = of_job AND l.action = 'change' AND l.changed_at > begun;
    IF first_edit IS NOT NULL THEN
      SELECT JSON_REMOVE(JSON_EXTRACT(f.was, '$.steps'), CONCAT('$[', start_at - 1, ']')), JSON_REMOVE(JSON_EXTRACT(l.became, '$.steps'), CONCAT('$[', start_at - 1, ']'))
      INTO was, became FROM dbjobs_changes f JOIN dbjobs_changes l ON l.id = last_edit WHERE f.id = first_edit;
      IF COALESCE(was <> became /*M!100700 AND NOT JSON_EQUALS(was, became) */, true) THEN -- to MariaDB, JSON is text, and a command has another order and other spaces than a routine
        CALL dbjobs_refuse('JB003', CONCAT('run ', LEFT(run, 40), ': ', last, ' has no name of its own, and other steps have changed since; give from_step'));
      END IF;
    END IF;
  END IF;
  IF COALESCE(from_step, '') = '' AND last IS NOT NULL THEN
    SET start_at = (SELECT COUNT(*) FROM dbjobs_steps s JOIN dbjobs_steps o ON o.job_id = s.job_id AND o.position >= s.position WHERE o.job_id = of_job AND o.name = last);
  ELSEIF COALESCE(from_step, '') <> '' THEN
    SET start_at = COALESCE(NULLIF((SELECT COUNT(*) FROM dbjobs_steps s JOIN dbjobs_steps o ON o.job_id = s.job_id AND o.position >= s.position WHERE o.job_id = of_job AND o.name = from_step), 0), IF(from_step REGEXP '^[1-9][0-9]{0,8}$', from_step, 0));
  END IF;
  IF start_at < 1 OR start_at > steps THEN
    CALL dbjobs_refuse('JB003', CONCAT('run ', LEFT(run, 40), ': there is no step ', LEFT(COALESCE(NULLIF(from_step, ''), last, start_at), 20), '; give from_step, a name or 1 to ', steps));
  END IF;
  SET last = (SELECT s.name FROM dbjobs_steps s WHERE s.job_id = of_job AND start_at = (SELECT COUNT(*) FROM dbjobs_steps o WHERE o.job_id = of_job AND o.position <= s.position));
  UPDATE dbjobs_runs u SET u.state = 'waiting', u.held_by = NULL, u.ready_at = UTC_TIMESTAMP(6), u.step = start_at, u.step_name = last, u.attempt = 0, u.losses = 0, u.lease_until = NULL,
    u.cancel_at = NULL, u.cancel_by = NULL, u.started_at = NULL, u.finished_at = NULL, u.settled_at = NULL, u.expires_at = NULL, u.error = NULL
  WHERE u.id = its_id AND u.state IN ('failed', 'cancelled', 'lost') AND is_settled;
  IF ROW_COUNT() = 0 THEN
    IF is_state IN ('failed', 'cancelled', 'lost') THEN
      CALL dbjobs_refuse('JB004', CONCAT('run ', LEFT(run, 40), ': is ', is_state, ', but no tick has counted this yet; try again after the next tick'));
    END IF;
    CALL dbjobs_refuse('JB004', CONCAT('run ', LEFT(run, 40), ': is ', is_state, '; retry is for failed, cancelled, lost; dbjobs_run_now requests a new run'));
  END IF;
  CALL dbjobs_log_change('job', of_job, named, 'retry', reason, NULL, JSON_OBJECT('runs', JSON_ARRAY(its_id)));
  CALL dbjobs_done(mine);
END
;
