-- Whether a run of the login's own job is delivered with this fence: see Store.HoldsOwn (store/end_own.go).
CREATE FUNCTION dbjobs.holds_own(run uuid, fence integer) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT 1 FROM dbjobs.runs r JOIN dbjobs.jobs j ON j.id = r.job_id
    WHERE r.id = holds_own.run AND r.fence = holds_own.fence AND r.state = 'running' AND j.owner = session_user)
$$
;

COMMENT ON FUNCTION dbjobs.holds_own(uuid, integer) IS 'whether a run of the login is delivered so: for the program'
;
