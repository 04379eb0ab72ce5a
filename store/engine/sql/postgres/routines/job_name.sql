CREATE FUNCTION dbjobs.job_name(id bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT dbjobs.full_name(j.owner, j.name) FROM dbjobs.jobs j WHERE j.id = job_name.id
$$
;

COMMENT ON FUNCTION dbjobs.job_name(bigint) IS 'owner/name of a job'
;
