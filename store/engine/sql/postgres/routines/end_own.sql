-- The end of a step of a run that its owner executes: see Store.EndStepIn (store/step_end.go). It is the definer's, so that the
-- owner needs rights on nothing but this. False says that the run is not his, or was delivered again.
CREATE FUNCTION dbjobs.end_own(run uuid, fence integer, number integer, final text, step integer, step_name text, holder text, lease_ms bigint, waited_ms bigint,
  rows_affected bigint, error text, run_error text, output text, result text, instant timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := coalesce(instant, statement_timestamp());
BEGIN
  IF final = 'succeeded' THEN -- the end of the run follows, from the tick
    UPDATE dbjobs.attempts AS a SET state = 'succeeded', finished_at = at,
      started_at = CASE WHEN waited_ms > 0 THEN least(at, a.started_at + waited_ms::double precision * interval '1 millisecond') ELSE a.started_at END,
      rows_affected = end_own.rows_affected, output = end_own.output, result = end_own.result
    WHERE a.run_id = end_own.run AND a.number = end_own.number AND a.fence = end_own.fence AND a.state = 'running'
      AND (SELECT true FROM dbjobs.runs r WHERE r.id = end_own.run AND r.fence = end_own.fence AND r.holder = end_own.holder AND r.state = 'running' AND r.attempts = end_own.number
        AND EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = r.job_id AND j.owner = session_user) FOR UPDATE);
    RETURN FOUND;
  END IF;
  UPDATE dbjobs.runs AS r SET state = coalesce(final, r.state), finished_at = CASE WHEN final IS NULL THEN r.finished_at ELSE at END,
    lease_until = CASE WHEN final IS NULL THEN at + end_own.lease_ms::double precision * interval '1 millisecond' END, error = CASE WHEN final IS NULL THEN r.error ELSE run_error END,
    step = CASE WHEN final IS NULL THEN end_own.step ELSE r.step END, attempt = CASE WHEN final IS NULL THEN 1 ELSE r.attempt END, attempts = r.attempts + CASE WHEN final IS NULL THEN 1 ELSE 0 END,
    losses = CASE WHEN final IS NULL THEN 0 ELSE r.losses END
  WHERE r.id = end_own.run AND r.fence = end_own.fence AND r.holder = end_own.holder AND r.state = 'running' AND r.attempts = end_own.number AND coalesce(final, 'failed') = 'failed'
    AND EXISTS (SELECT 1 FROM dbjobs.jobs j WHERE j.id = r.job_id AND j.owner = session_user);
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE dbjobs.attempts AS a SET state = 'succeeded', finished_at = at,
    started_at = CASE WHEN waited_ms > 0 THEN least(at, a.started_at + waited_ms::double precision * interval '1 millisecond') ELSE a.started_at END,
    rows_affected = end_own.rows_affected, error = end_own.error, output = end_own.output, result = end_own.result
  WHERE a.run_id = end_own.run AND a.number = end_own.number AND a.fence = end_own.fence AND a.state = 'running';
  IF final IS NULL THEN
    INSERT INTO dbjobs.attempts (run_id, number, step, step_name, attempt, fence, holder, started_at)
    VALUES (end_own.run, end_own.number + 1, end_own.step, end_own.step_name, 1, end_own.fence, end_own.holder, at);
  END IF;
  RETURN true;
END
$$
;

COMMENT ON FUNCTION dbjobs.end_own(uuid, integer, integer, text, integer, text, text, bigint, bigint, bigint, text, text, text, text, timestamptz) IS 'ends an atomic step of the login: for the program'
;
