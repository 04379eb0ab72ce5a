CREATE FUNCTION dbjobs.disable(job text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.job_id(job);
BEGIN
  IF (SELECT NOT j.enabled FROM dbjobs.jobs j WHERE j.id = its_id AND j.removed_at IS NULL FOR UPDATE) THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: is disabled already', dbjobs.job_name(its_id)), HINT = 'There is nothing to do.';
  END IF;
  PERFORM dbjobs.set_enabled(its_id, false, 'disable', reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.disable(text, text) IS 'disables a job: nothing is decided for it'
;
