-- See Store.RemoveSchedule (store/remove_schedule.go). A link that is gone has no row that could differ from what is planned:
-- the job's row says that it changed.
CREATE FUNCTION dbjobs.drop_schedule(schedule text, detach boolean DEFAULT false, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_schedule(schedule);
  of_job bigint;
  was jsonb;
  users text;
BEGIN
  IF detach THEN
    DELETE FROM dbjobs.job_schedules l WHERE l.schedule_id = its_id AND NOT EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = l.job_id AND j.removed_at IS NULL); -- by SQL
    PERFORM j.id FROM dbjobs.jobs j WHERE j.id IN (SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.schedule_id = its_id) ORDER BY j.id FOR UPDATE;
    FOR of_job IN SELECT l.job_id FROM dbjobs.job_schedules l WHERE l.schedule_id = its_id ORDER BY l.job_id LOOP
      was := dbjobs.job_document(of_job);
      DELETE FROM dbjobs.job_schedules l WHERE l.job_id = of_job AND l.schedule_id = its_id;
      UPDATE dbjobs.jobs t SET planned = t.planned || '.', changed_at = statement_timestamp() WHERE t.id = of_job;
      -- Without any time, these have no effect: see Job.loses (store/contradiction.go).
      UPDATE dbjobs.jobs t SET not_before = CASE WHEN t.start_rule <> '' THEN NULL ELSE t.not_before END, start_rule = NULL, start_zone = NULL, remove_when_done = false
      WHERE t.id = of_job AND t.repeat_after_ms IS NULL AND NOT EXISTS (SELECT 1 FROM dbjobs.job_schedules l WHERE l.job_id = of_job);
      PERFORM dbjobs.log_change('job', of_job, dbjobs.job_name(of_job), 'change', reason, was, dbjobs.job_document(of_job));
    END LOOP;
  END IF;
  SELECT string_agg(dbjobs.job_name(l.job_id), ', ') INTO users FROM (SELECT * FROM dbjobs.job_schedules l WHERE l.schedule_id = its_id ORDER BY l.job_id LIMIT 5) l;
  IF users IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('schedule %s: cannot be removed: it is used by %s', quote_ident(schedule), users),
      HINT = 'Remove it from these jobs first, or give detach => true.';
  END IF;
  PERFORM dbjobs.remove_schedule(its_id, reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.drop_schedule(text, boolean, text) IS 'removes a schedule that no job uses; with detach it is taken away from the jobs first'
;
