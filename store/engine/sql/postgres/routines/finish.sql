-- The end of a run. False says that it is not held any more: the lease had ended, or an earlier call has ended the run.
-- The error is kept as far as the program keeps one: clip (store/step_end.go).
CREATE FUNCTION dbjobs.finish(run uuid, fence integer, state text DEFAULT 'succeeded', error text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  state := coalesce(state, 'succeeded');
  IF state NOT IN ('succeeded', 'failed', 'cancelled') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('finish: state: %s is not one of succeeded, failed, cancelled', quote_literal(state)), HINT = 'Give one of these.';
  END IF;
  UPDATE dbjobs.runs AS r SET state = finish.state, finished_at = statement_timestamp(), lease_until = NULL,
    error = CASE WHEN length(finish.error) > 4000 THEN substr(finish.error, 1, 4000) || ' ...' ELSE finish.error END
  WHERE r.id = run AND r.fence = finish.fence AND r.state = 'running';
  RETURN FOUND;
END
$$
;

COMMENT ON FUNCTION dbjobs.finish(uuid, integer, text, text) IS 'ends a run that is held: succeeded, failed or cancelled, with its error'
;
