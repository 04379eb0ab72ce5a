-- See Store.EnableJob (store/cancel.go).
CREATE FUNCTION dbjobs.enable(job text, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.job_id(job);
BEGIN
  IF (SELECT j.enabled FROM dbjobs.jobs j WHERE j.id = its_id AND j.removed_at IS NULL FOR UPDATE) THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('job %s: is enabled already', dbjobs.job_name(its_id)), HINT = 'There is nothing to do.';
  END IF;
  PERFORM dbjobs.set_enabled(its_id, true, 'enable', reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.enable(text, text) IS 'enables a job that was disabled; what fell due meanwhile becomes a gap'
;
