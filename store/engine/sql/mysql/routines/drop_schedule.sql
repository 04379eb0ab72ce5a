-- See Store.RemoveSchedule (store/remove_schedule.go). A link that is gone has no row that could differ from what is planned: the job's row
-- says that it changed.
CREATE PROCEDURE dbjobs_drop_schedule(IN schedule text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, IN detach boolean, IN reason text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)
MODIFIES SQL DATA SQL SECURITY DEFINER COMMENT 'removes a schedule that no job uses; with detach it is taken away from the jobs first'
BEGIN
  DECLARE mine boolean;
  DECLARE its_id, of_job bigint;
  DECLARE was, became longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE users, named text CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
  DECLARE at_end boolean DEFAULT false;
  DECLARE jobs CURSOR FOR SELECT j.id, CONCAT_WS('/', NULLIF(j.owner, ''), j.name) FROM dbjobs_jobs j WHERE j.id IN (SELECT l.job_id FROM dbjobs_job_schedules l WHERE l.schedule_id = its_id) ORDER BY j.id FOR UPDATE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET at_end = true;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION
  BEGIN
    CALL dbjobs_undo(mine);
    RESIGNAL;
  END;
  CALL dbjobs_begin(mine);
  CALL dbjobs_lock_schedule(schedule, its_id);
  IF detach THEN
    DELETE l FROM dbjobs_job_schedules l LEFT JOIN dbjobs_jobs j ON j.id = l.job_id WHERE l.schedule_id = its_id AND (j.id IS NULL OR j.removed_at IS NOT NULL); -- by SQL
    OPEN jobs;
    FETCH jobs INTO of_job, named;
    WHILE NOT at_end DO
      CALL dbjobs_find_job(named, of_job, named); -- whether the caller may change it
      CALL dbjobs_job_document(of_job, was);
      DELETE FROM dbjobs_job_schedules WHERE job_id = of_job AND schedule_id = its_id;
      UPDATE dbjobs_jobs t SET t.planned = CONCAT(t.planned, '.'), t.changed_at = UTC_TIMESTAMP(6) WHERE t.id = of_job;
      -- Without any time, these have no effect: see Job.loses (store/contradiction.go).
      UPDATE dbjobs_jobs t SET t.not_before = IF(t.start_rule <> '', NULL, t.not_before), t.start_rule = NULL, t.start_zone = NULL, t.remove_when_done = false
      WHERE t.id = of_job AND t.repeat_after_ms IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs_job_schedules l WHERE l.job_id = of_job);
      CALL dbjobs_job_document(of_job, became);
      CALL dbjobs_log_change('job', of_job, named, 'change', reason, was, became);
      FETCH jobs INTO of_job, named;
    END WHILE;
    CLOSE jobs;
  END IF;
  SET users = (SELECT MIN(CONCAT_WS('/', NULLIF(j.owner, ''), j.name)) FROM dbjobs_job_schedules l JOIN dbjobs_jobs j ON j.id = l.job_id WHERE l.schedule_id = its_id);
  IF users IS NOT NULL THEN
    CALL dbjobs_refuse('JB004', CONCAT('schedule ', LEFT(schedule, 30), ': is used by ', LEFT(users, 40), '; drop it there first, or give detach'));
  END IF;
  CALL dbjobs_schedule_document(its_id, was);
  UPDATE dbjobs_pauses p SET p.resumed_at = UTC_TIMESTAMP(6), p.resumed_by = LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))
  WHERE p.scope = 'schedule' AND p.subject_id = its_id AND p.resumed_at IS NULL AND p.ends_at > UTC_TIMESTAMP(6);
  DELETE FROM dbjobs_schedules WHERE id = its_id;
  CALL dbjobs_log_change('schedule', its_id, schedule, 'remove', reason, was, NULL);
  CALL dbjobs_done(mine);
END
;
