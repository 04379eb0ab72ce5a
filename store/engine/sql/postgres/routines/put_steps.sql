-- Writes the steps of a job anew. From each step that a run can reach, a way has to lead to an end.
CREATE FUNCTION dbjobs.put_steps(subject text, its_id bigint, list jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  odd text;
BEGIN
  IF jsonb_typeof(list) IS DISTINCT FROM 'array' OR jsonb_array_length(list) = 0 THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: steps: a job needs a step', subject), HINT = 'Give sql, or steps as a list.';
  END IF;
  DELETE FROM dbjobs.steps s WHERE s.job_id = its_id;
  BEGIN
    INSERT INTO dbjobs.steps (job_id, position, name, executor, spec, timeout_ms, retry_attempts, retry_backoff_ms, retry_max_backoff_ms, retry_jitter, on_success, on_failure)
    SELECT its_id, r.position, r.name, r.executor, r.spec, r.timeout_ms, r.retry_attempts, r.retry_backoff_ms, r.retry_max_backoff_ms, r.retry_jitter, r.on_success, r.on_failure
    FROM jsonb_array_elements(list) WITH ORDINALITY AS e(step, n)
    CROSS JOIN LATERAL jsonb_populate_record(NULL::dbjobs.steps, dbjobs.step_columns(subject, e.n::integer, e.step)) r;
  EXCEPTION
    WHEN unique_violation THEN
      RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s: steps: two steps have one name', subject), HINT = 'Give each a name of its own.';
    WHEN check_violation THEN
      GET STACKED DIAGNOSTICS odd = CONSTRAINT_NAME;
      PERFORM dbjobs.refuse_check(subject, 'steps', odd);
  END;
  SELECT format('step %s: ', s.name) || CASE WHEN w.way LIKE 'step:%' THEN format('there is no step %s', quote_literal(substr(w.way, 6))) ELSE format('found %s', quote_literal(w.way)) END INTO odd FROM dbjobs.steps s CROSS JOIN LATERAL (VALUES (s.on_success), (s.on_failure)) AS w(way)
  WHERE s.job_id = its_id AND w.way NOT IN ('next', 'succeed', 'fail') AND NOT EXISTS (SELECT 1 FROM dbjobs.steps o WHERE o.job_id = its_id AND w.way = 'step:' || o.name) LIMIT 1;
  IF odd IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s, %s', subject, odd), HINT = 'Give next, succeed, fail, or step:NAME, with the name of a step of the job.';
  END IF;
  WITH RECURSIVE way AS (
    SELECT s.position AS here, CASE w.way WHEN 'next' THEN coalesce((SELECT o.position FROM dbjobs.steps o WHERE o.job_id = its_id AND o.position = s.position + 1), 0)
      ELSE coalesce((SELECT o.position FROM dbjobs.steps o WHERE o.job_id = its_id AND w.way = 'step:' || o.name), 0) END AS there
    FROM dbjobs.steps s CROSS JOIN LATERAL (VALUES (s.on_success), (s.on_failure)) AS w(way) WHERE s.job_id = its_id
  ), comes(here) AS (
    SELECT 1 UNION SELECT way.there FROM comes JOIN way ON way.here = comes.here WHERE way.there > 0
  ), ends(here) AS (
    SELECT 0 UNION SELECT way.here FROM ends JOIN way ON way.there = ends.here
  )
  SELECT s.name INTO odd FROM dbjobs.steps s JOIN comes ON comes.here = s.position WHERE s.job_id = its_id AND s.position NOT IN (SELECT here FROM ends) ORDER BY s.position LIMIT 1;
  IF odd IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('%s, step %s: no path from here leads to an end: the steps form a circle', subject, odd), HINT = 'Change on_success or on_failure.';
  END IF;
  -- Steps are no part of what is planned. But a job that is parked for one of them would stay so until its next time.
  UPDATE dbjobs.jobs t SET planned = t.planned || '.' WHERE t.id = its_id AND EXISTS (SELECT 1 FROM dbjobs.plans p WHERE p.job_id = its_id AND p.parked IS NOT NULL);
END
$$
;

COMMENT ON FUNCTION dbjobs.put_steps(text, bigint, jsonb) IS 'for the other routines: writes the steps of a job'
;
