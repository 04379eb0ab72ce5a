CREATE FUNCTION dbjobs.alter_step(job text, step text, options jsonb, reason text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  its_id bigint := dbjobs.lock_job(job);
  list jsonb := dbjobs.job_document(its_id) -> 'steps';
  place integer := dbjobs.step_place(its_id, step) - 1;
  is_now jsonb := list -> place;
  of_sql CONSTANT text[] := ARRAY['sql', 'args', 'atomic', 'fail_if', 'target'];
BEGIN
  IF jsonb_typeof(options) IS DISTINCT FROM 'object' THEN
    RAISE EXCEPTION USING ERRCODE = 'JB003', MESSAGE = format('job %s: options: %s is no JSON object', job, coalesce(options, 'null')), HINT = 'Give an object, such as {"timeout": "5m"}.';
  END IF;
  IF options ?| of_sql AND (is_now ->> 'executor' = 'sql' OR options ? 'sql') THEN -- what a step that is SQL already has, stays
    is_now := CASE WHEN is_now ->> 'executor' = 'sql' THEN is_now -> 'spec' ELSE '{}' END || (is_now - 'executor' - 'spec');
  END IF;
  IF jsonb_typeof(options -> 'retry') = 'object' THEN
    options := options || jsonb_build_object('retry', coalesce(is_now -> 'retry', '{}') || (options -> 'retry'));
  END IF;
  PERFORM dbjobs.change_job(its_id, jsonb_build_object('steps', jsonb_set(list, ARRAY[place::text], is_now || options)), reason);
END
$$
;

COMMENT ON FUNCTION dbjobs.alter_step(text, text, jsonb, text) IS 'changes a step of a job: the keys that options give; null is the default of a key'
;
