CREATE FUNCTION dbjobs.drop_job_schedule(job text, schedule text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  document jsonb := dbjobs.job_document(its_id);
BEGIN
  IF document -> 'schedules' ? schedule THEN
    PERFORM dbjobs.change_job(its_id, jsonb_build_object('schedules', (document -> 'schedules') - schedule), reason);
  ELSIF document #>> '{own,rule}' = schedule THEN
    PERFORM dbjobs.change_job(its_id, '{"rule": null}', reason);
  ELSE
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('job %s: schedules: %s is not among them', dbjobs.job_name(its_id), coalesce(quote_literal(schedule), 'NULL')),
      HINT = format('There are %s.', concat_ws(', ', (SELECT string_agg(e, ', ') FROM jsonb_array_elements_text(coalesce(document -> 'schedules', '[]')) e), document #>> '{own,rule}'));
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.drop_job_schedule(text, text, text) IS 'takes a shared schedule away from a job by its name, or its own rule by the text'
;
