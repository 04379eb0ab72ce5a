-- See Store.RemoveJob (store/change.go) and removeJobs (store/leave.go).
CREATE PROCEDURE dbjobs_drop_job(IN job text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'removes a job; its history stays until it is pruned'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id bigint;
  DECLARE named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE follower text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE was longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_job(job, its_id, named);
  SET follower = (SELECT CONCAT_WS('/', NULLIF(f.owner, ''), f.name) FROM dbjobs_job_after a JOIN dbjobs_jobs f ON f.id = a.job_id
    WHERE a.after_job_id = its_id AND f.removed_at IS NULL ORDER BY f.name, f.owner LIMIT 1);
  IF follower IS NOT NULL THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 35), ': job ', LEFT(follower, 35), ' runs after it: alter or drop that one first'));
  END IF;
  SET follower = (SELECT CONCAT_WS('/', NULLIF(f.owner, ''), f.name) FROM dbjobs_jobs f FORCE INDEX (jobs_hooks) JOIN dbjobs_jobs h ON h.id = its_id
    WHERE f.has_hooks = 1 AND f.id <> its_id AND (f.owner = h.owner AND h.name IN (f.on_failed, f.on_recovered, f.on_missed, f.on_late, f.on_lost, f.on_parked, f.on_paused)
      OR named IN (f.on_failed, f.on_recovered, f.on_missed, f.on_late, f.on_lost, f.on_parked, f.on_paused)) ORDER BY f.name, f.owner LIMIT 1);
  IF follower IS NOT NULL THEN
    CALL dbjobs_refuse('JB004', CONCAT('job ', LEFT(named, 35), ': is the hook of job ', LEFT(follower, 35), ': alter or drop that one first'));
  END IF;
  CALL dbjobs_job_document(its_id, was);
  UPDATE dbjobs_pauses p SET p.resumed_at = UTC_TIMESTAMP(6), p.resumed_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))
  WHERE p.scope = 'job' AND p.subject_id = its_id AND p.resumed_at IS NULL AND p.ends_at > UTC_TIMESTAMP(6);
  UPDATE dbjobs_jobs j SET j.removed_at = UTC_TIMESTAMP(6) WHERE j.id = its_id AND j.removed_at IS NULL;
  DELETE FROM dbjobs_job_schedules WHERE job_id = its_id;
  DELETE FROM dbjobs_schedules WHERE job_id = its_id;
  IF JSON_LENGTH(JSON_EXTRACT(was, '$.after')) > 1 THEN
    DELETE FROM dbjobs_job_ends WHERE job_id = its_id;
  END IF;
  CALL dbjobs_log_change('job', its_id, named, 'remove', reason, was, NULL);
  CALL dbjobs_done(mine);
END
;
