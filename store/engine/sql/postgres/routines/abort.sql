-- Cancels the runs of a job that have not ended, and disables it; with run_only it stays as it is. It returns how many runs: see
-- Store.AbortJob (store/cancel.go). The plan's lock, and those of the jobs after which it runs, come before the locks of runs.
CREATE FUNCTION dbjobs.abort(job text, run_only boolean DEFAULT false, reason text DEFAULT '') RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.job_id(job);
  deciding bigint[];
  asked uuid[];
BEGIN
  SELECT array_agg(a.after_job_id) || its_id INTO deciding FROM dbjobs.job_after a WHERE a.job_id = its_id;
  INSERT INTO dbjobs.plans (job_id, owner)
  SELECT j.id, j.owner FROM dbjobs.jobs j
  WHERE j.id = ANY(deciding) AND NOT EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = j.id)
  ON CONFLICT DO NOTHING;
  PERFORM p.job_id FROM dbjobs.plans p WHERE p.job_id = ANY(deciding) ORDER BY p.job_id FOR UPDATE;
  SELECT array_agg(r.id) INTO asked FROM (SELECT o.id FROM dbjobs.runs o WHERE o.settled_at IS NULL AND o.job_id = its_id AND o.state IN ('waiting', 'queued', 'running')
    ORDER BY o.id FOR UPDATE) AS r; -- none of them ends before it is cancelled
  UPDATE dbjobs.runs u SET cancel_at = statement_timestamp(), cancel_by = session_user, state = CASE WHEN u.state = 'queued' THEN 'waiting' ELSE u.state END
  WHERE u.id = ANY(asked) AND u.state IN ('waiting', 'queued', 'running') AND u.cancel_at IS NULL;
  IF run_only THEN
    PERFORM dbjobs.log_change('job', its_id, dbjobs.job_name(its_id), 'cancel', reason, NULL,
      CASE WHEN asked IS NULL THEN jsonb '{}' ELSE jsonb_build_object('runs', to_jsonb(asked)) END);
  ELSE
    PERFORM dbjobs.set_enabled(its_id, false, 'abort', reason);
  END IF;
  RETURN coalesce(cardinality(asked), 0);
END
$$
;

COMMENT ON FUNCTION dbjobs.abort(text, boolean, text) IS 'cancels the runs of a job that have not ended, and disables it'
;
