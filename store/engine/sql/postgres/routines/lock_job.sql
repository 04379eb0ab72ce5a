-- A job that is to be changed, and nobody else changes it.
CREATE FUNCTION dbjobs.lock_job(job text) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint;
BEGIN
  PERFORM dbjobs.take_turns();
  its_id := dbjobs.job_id(job);
  PERFORM j.id FROM dbjobs.jobs j WHERE j.id = its_id FOR UPDATE;
  RETURN dbjobs.job_id(job); -- removed this moment
END
$$
;

COMMENT ON FUNCTION dbjobs.lock_job(text) IS 'for the other routines: locks a job'
;
