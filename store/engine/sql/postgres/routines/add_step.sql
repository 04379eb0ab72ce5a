CREATE FUNCTION dbjobs.add_step(job text, name text DEFAULT NULL, sql text DEFAULT NULL, options jsonb DEFAULT NULL, before text DEFAULT NULL, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  list jsonb := coalesce(nullif(dbjobs.job_document(its_id) -> 'steps', 'null'), '[]');
  place integer := CASE WHEN before IS NULL THEN jsonb_array_length(list) ELSE dbjobs.step_place(its_id, before) - 1 END;
BEGIN
  IF jsonb_typeof(options) <> 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: options: %s is no JSON object', job, options), HINT = 'Give an object, such as {"timeout": "5m"}.';
  END IF;
  PERFORM dbjobs.change_job(its_id, jsonb_build_object('steps', (SELECT jsonb_agg(s.step ORDER BY s.n) FROM (
    SELECT e.step, e.n FROM jsonb_array_elements(list) WITH ORDINALITY AS e(step, n)
    UNION ALL
    SELECT coalesce(options, '{}') || jsonb_strip_nulls(jsonb_build_object('name', add_step.name, 'sql', add_step.sql)), place + 0.5) s)), reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.add_step(text, text, text, jsonb, text, text) IS 'adds a step at the end of a job, or before another; options have the keys of a step in a file'
;
