-- Requests the end of a run: see Store.CancelRun (store/cancel.go).
CREATE FUNCTION dbjobs.cancel(run text, reason text DEFAULT '') RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id uuid := dbjobs.run_id(run);
  r dbjobs.runs;
BEGIN
  SELECT * INTO r FROM dbjobs.runs WHERE id = its_id FOR UPDATE;
  IF r.state IN ('succeeded', 'failed', 'cancelled', 'lost') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('run %s: has ended: %s', cancel.run, r.state), HINT = 'Only a run that has not ended can be cancelled.';
  END IF;
  UPDATE dbjobs.runs u SET cancel_at = statement_timestamp(), cancel_by = session_user, state = CASE WHEN u.state = 'queued' THEN 'waiting' ELSE u.state END
  WHERE u.id = r.id AND u.state IN ('waiting', 'queued', 'running') AND u.cancel_at IS NULL;
  IF FOUND THEN
    PERFORM dbjobs.log_change('job', r.job_id, coalesce(dbjobs.job_name(r.job_id), ''), 'cancel', reason, NULL, jsonb_build_object('runs', jsonb_build_array(r.id)));
  END IF;
  RETURN r.id;
END
$$
;

COMMENT ON FUNCTION dbjobs.cancel(text, text) IS 'requests the end of a run'
;
