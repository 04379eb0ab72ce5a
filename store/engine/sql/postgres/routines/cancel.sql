-- Requests the end of a run: see Store.CancelRun (store/cancel.go). The name of a job means its open run: see Store.openRun.
CREATE FUNCTION dbjobs.cancel(run text, reason text DEFAULT '') RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id uuid := dbjobs.run_id(run);
  r dbjobs.runs;
  asked uuid[];
BEGIN
  IF run !~ '(^|#)[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' AND run !~ '.#[1-9][0-9]{0,17}$' THEN
    asked := ARRAY(SELECT o.id FROM dbjobs.runs o WHERE o.job_id = (SELECT u.job_id FROM dbjobs.runs u WHERE u.id = its_id)
      AND o.settled_at IS NULL AND o.state IN ('waiting', 'queued', 'running') LIMIT 2);
    IF cardinality(asked) > 1 THEN
      RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('run %s: several runs of the job are open', cancel.run),
        HINT = 'Name one of them, JOB#NUMBER, or cancel all of them with dbjobs.abort(job, true).';
    END IF;
    its_id := coalesce(asked[1], its_id);
  END IF;
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
