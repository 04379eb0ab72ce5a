-- The job that another one names as a hook or a predecessor: of the same owner first.
CREATE FUNCTION dbjobs.other_job(subject text, field text, name text, of_owner text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found bigint;
BEGIN
  SELECT j.id INTO found FROM dbjobs.jobs j WHERE j.removed_at IS NULL AND j.name = other_job.name AND j.owner = of_owner;
  RETURN coalesce(found, dbjobs.job_id(name));
EXCEPTION WHEN SQLSTATE 'JB001' OR SQLSTATE 'JB005' THEN
  RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = format('%s: %s: %s', subject, field, SQLERRM), HINT = 'Give the name of a job, or owner/name.';
END
$$
;

COMMENT ON FUNCTION dbjobs.other_job(text, text, text, text) IS 'for the other routines: the job that another one names'
;
