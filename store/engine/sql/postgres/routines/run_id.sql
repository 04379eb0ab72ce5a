-- The run of an id, of JOB#NUMBER or JOB#ID, or the latest run of a job.
CREATE FUNCTION dbjobs.run_id(run text) RETURNS uuid
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a_uuid CONSTANT text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  job text := substring(run FROM '^(.+)#[^#]*$');
  rest text := substring(run FROM '#([^#]*)$');
  of_job bigint;
  found uuid;
BEGIN
  IF run ~ a_uuid THEN
    SELECT r.id INTO found FROM dbjobs.runs r WHERE r.id = run::uuid;
  ELSIF rest ~ a_uuid THEN
    SELECT r.id INTO found FROM dbjobs.runs r WHERE r.id = rest::uuid;
  ELSIF job IS NOT NULL AND rest ~ '^[1-9][0-9]{0,17}$' THEN
    of_job := dbjobs.job_id(job);
    SELECT r.id INTO found FROM dbjobs.runs r WHERE r.job_id = of_job AND r.number = rest::bigint;
  ELSIF run IS NOT NULL THEN
    of_job := dbjobs.job_id(run);
    SELECT r.id INTO found FROM dbjobs.runs r WHERE r.job_id = of_job
    ORDER BY r.number DESC NULLS FIRST, r.created_at DESC, r.id DESC LIMIT 1;
  END IF;
  IF found IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB001', MESSAGE = format('run %s: not found', coalesce(quote_ident(run), 'NULL')),
      HINT = 'Give JOB#NUMBER, JOB for its latest run, or an id of dbjobs.runs.';
  END IF;
  RETURN found;
END
$$
;

COMMENT ON FUNCTION dbjobs.run_id(text) IS 'the id of a run, by that id, by JOB#NUMBER, or by a job whose latest run it is'
;
