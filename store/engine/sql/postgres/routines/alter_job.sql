CREATE FUNCTION dbjobs.alter_job(job text, options jsonb, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
BEGIN
  IF options ? 'owner' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: owner: the owner of a job stays', dbjobs.job_name(its_id)), HINT = 'Create the job for the other owner, and drop this one.';
  END IF;
  PERFORM dbjobs.change_job(its_id, options, reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.alter_job(text, jsonb, text) IS 'changes a job in place: the keys that options give, and no others; null is the default of a key'
;
