-- The success of an atomic step, within the transaction of its effects: see Store.EndStepIn (store/step_end.go). The lock of the
-- run keeps its fence valid until COMMIT. A routine keeps its plan for the session; a statement would be planned for each step.
-- If the run was delivered again, this is an error, so that a COMMIT that was sent together with the call undoes the effects.
CREATE FUNCTION dbjobs.record_attempt(run uuid, fence integer, holder text, number integer, waited_ms bigint, rows_affected bigint, output text, result text, instant timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  at timestamptz := coalesce(instant, statement_timestamp());
BEGIN
  UPDATE dbjobs.attempts AS a SET state = 'succeeded', finished_at = at,
    started_at = CASE WHEN waited_ms > 0 THEN least(at, a.started_at + waited_ms::double precision * interval '1 millisecond') ELSE a.started_at END,
    rows_affected = record_attempt.rows_affected, output = record_attempt.output, result = record_attempt.result
  WHERE a.run_id = record_attempt.run AND a.number = record_attempt.number AND a.fence = record_attempt.fence AND a.state = 'running'
    AND (SELECT true FROM dbjobs.runs r WHERE r.id = record_attempt.run AND r.fence = record_attempt.fence AND r.holder = record_attempt.holder AND r.state = 'running'
      AND r.attempts = record_attempt.number FOR UPDATE);
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'JB006', MESSAGE = 'the run was delivered again, so this step has no effect';
  END IF;
END
$$
;

COMMENT ON FUNCTION dbjobs.record_attempt(uuid, integer, text, integer, bigint, bigint, text, text, timestamptz) IS 'records the success of an atomic step: for the program'
;
