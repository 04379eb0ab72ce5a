CREATE FUNCTION dbjobs.drop_step(job text, step text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  list jsonb := dbjobs.job_document(its_id) -> 'steps';
  place integer := dbjobs.step_place(its_id, step) - 1;
BEGIN
  IF jsonb_array_length(list) = 1 THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: steps: this is the only step, and a job needs one', dbjobs.job_name(its_id)),
      HINT = 'Drop the job, or change the step with dbjobs.alter_step.';
  END IF;
  PERFORM dbjobs.change_job(its_id, jsonb_build_object('steps', list - place), reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.drop_step(text, text, text) IS 'removes a step from a job'
;
