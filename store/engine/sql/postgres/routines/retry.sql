-- Opens a run again that failed, was cancelled or was lost: see Store.RetryRun (store/retry.go).
CREATE FUNCTION dbjobs.retry(run text, from_step text DEFAULT NULL, reason text DEFAULT '') RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id uuid := dbjobs.run_id(run);
  r dbjobs.runs;
  named text;
  steps text[];
  last text; -- the name of the step in which the run ended, or was to begin; NULL: see applier.lastStep (store/retry.go)
  was jsonb; -- the steps that the job had when the run began, if it has changed since
  start_at integer;
BEGIN
  PERFORM p.job_id FROM dbjobs.plans p WHERE p.job_id = (SELECT j.id FROM dbjobs.jobs j WHERE j.remove_when_done AND j.id = (SELECT o.job_id FROM dbjobs.runs o WHERE o.id = its_id)) FOR UPDATE; -- see jobToRun (store/request.go)
  SELECT * INTO r FROM dbjobs.runs WHERE id = its_id FOR UPDATE;
  SELECT dbjobs.full_name(j.owner, j.name), (SELECT array_agg(s.name ORDER BY s.position) FROM dbjobs.steps s WHERE s.job_id = j.id)
  INTO named, steps FROM dbjobs.jobs j WHERE j.id = r.job_id AND j.removed_at IS NULL;
  IF named IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('run %s: its job was removed', retry.run), HINT = 'Create the job again, and request a run of it.';
  END IF;
  last := coalesce((SELECT a.step_name FROM dbjobs.attempts a WHERE a.run_id = r.id AND a.number = r.attempts AND a.step = r.step AND r.started_at IS NOT NULL), r.step_name);
  IF coalesce(from_step, '') = '' AND last = 'step ' || r.step AND r.started_at IS NOT NULL THEN -- see applier.keptItsPlace (store/retry.go)
    SELECT CASE jsonb_typeof(l.was -> 'steps') WHEN 'array' THEN l.was -> 'steps' ELSE '[]' END INTO was FROM dbjobs.changes l
    WHERE l.kind = 'job' AND l.subject_id = r.job_id AND l.action = 'change' AND l.changed_at > r.started_at ORDER BY l.id LIMIT 1;
    IF was - (r.step - 1) <> coalesce(nullif(dbjobs.job_document(r.job_id) -> 'steps', 'null'), '[]') - (r.step - 1) THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('run %s: it was in %s, which has no name of its own, and other steps have changed since; there are %s', retry.run, last, array_to_string(steps, ', ')),
        HINT = 'Choose a step with from_step: its name, or its number.';
    END IF;
  END IF;
  start_at := CASE WHEN coalesce(from_step, '') = '' AND last IS NULL THEN r.step
    WHEN coalesce(from_step, '') = '' THEN coalesce(array_position(steps, last), 0)
    WHEN array_position(steps, from_step) IS NOT NULL THEN array_position(steps, from_step)
    WHEN from_step ~ '^[1-9][0-9]{0,8}$' THEN from_step::integer ELSE 0 END;
  IF start_at NOT BETWEEN 1 AND coalesce(cardinality(steps), 0) THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('run %s: there is no step %s; there are %s', retry.run, coalesce(quote_literal(nullif(from_step, '')), quote_literal(last), r.step::text), array_to_string(steps, ', ')),
      HINT = 'Choose a step with from_step: its name, or its number.';
  END IF;
  UPDATE dbjobs.runs u SET state = 'waiting', held_by = NULL, ready_at = statement_timestamp(), step = start_at, step_name = steps[start_at], attempt = 0, losses = 0, lease_until = NULL,
    cancel_at = NULL, cancel_by = NULL, started_at = NULL, finished_at = NULL, settled_at = NULL, expires_at = NULL, error = NULL
  WHERE u.id = r.id AND u.state IN ('failed', 'cancelled', 'lost') AND u.settled_at IS NOT NULL;
  IF NOT FOUND AND r.state IN ('failed', 'cancelled', 'lost') THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('run %s: is %s, but no tick has counted this end yet', retry.run, r.state),
      HINT = 'Try again after the next tick.';
  ELSIF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'JB004', MESSAGE = format('run %s: is %s: only a run that failed, was cancelled or was lost can be retried', retry.run, r.state),
      HINT = 'dbjobs.run_now requests a new run.';
  END IF;
  PERFORM dbjobs.log_change('job', r.job_id, named, 'retry', reason, NULL, jsonb_build_object('runs', jsonb_build_array(r.id)));
  RETURN r.id;
END
$$
;

COMMENT ON FUNCTION dbjobs.retry(text, text, text) IS 'opens a run again that failed, was cancelled or was lost'
;
