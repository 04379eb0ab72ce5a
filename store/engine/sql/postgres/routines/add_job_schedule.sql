CREATE FUNCTION dbjobs.add_job_schedule(job text, schedule text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  has jsonb := coalesce(dbjobs.job_document(its_id) -> 'schedules', '[]');
BEGIN
  IF has ? schedule THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: schedules: it uses schedule %s already', dbjobs.job_name(its_id), quote_ident(schedule)), HINT = 'There is nothing to do.';
  END IF;
  PERFORM dbjobs.schedule_id(schedule);
  PERFORM dbjobs.change_job(its_id, jsonb_build_object('schedules', has || to_jsonb(schedule)), reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.add_job_schedule(text, text, text) IS 'adds a shared schedule to a job'
;
